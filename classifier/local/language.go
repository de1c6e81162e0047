package local

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/countersign/countersign/classifier"
)

// Language says which languages a reply may be in. A reply that needs none
// ("👍", "ok", "2") is Neutral. Otherwise Likely holds every language that is
// not improbable, most probable first; it is empty where the words are of no
// language that training saw.
type Language struct {
	Neutral bool
	Likely  []string
}

// Within says whether code may rely on a reader that has shown its bound in
// the given languages: the reply is neutral, or all it may be is among them.
func (l Language) Within(blessed []string) bool {
	if l.Neutral {
		return true
	}
	for _, c := range l.Likely {
		if !slices.Contains(blessed, c) {
			return false
		}
	}
	return len(l.Likely) > 0
}

// Neutral words are written alike everywhere, or are understood everywhere.
const neutralWords = "ok okay k okey oki okk kk okie y yes yep yeah no stop super perfect thx pls plz please"

const langTableBits = 14

// langFeatures adds letter n-grams and words of everything that is not the
// label's.
func (x *extractor) langFeatures(text string, offers []string) (fs []feature, words int, known uint16, knownWords int) {
	x.out, x.reasons, x.salt = x.out[:0], x.reasons[:0], 0
	x.scanLabels(offers)
	x.reply.reset()
	x.reply.scan(text)
	for _, t := range x.reply.tokens {
		switch t.kind {
		case word, ideo:
		default:
			continue
		}
		if x.inLabel(t) {
			continue
		}
		words++
		if x.known != nil {
			if l := x.known.lookup(t.hash); l != 0 {
				knownWords++
				if known == 0 {
					known = l
				} else {
					known |= l
				}
			}
		}
		x.add(tUni, 2, t.hash)
		if t.accented {
			x.add(tAccent, 2, t.accent)
		}
		b := x.reply.buf[t.start:t.end]
		x.offsets = x.offsets[:0]
		for j := range string(b) {
			x.offsets = append(x.offsets, j)
		}
		x.offsets = append(x.offsets, len(b))
		runes := len(x.offsets) - 1
		for size := 1; size <= 4; size++ {
			for j := -1; j+size <= runes+1; j++ {
				from, to := max(j, 0), min(j+size, runes)
				edge := uint64(0)
				if j < 0 {
					edge |= 1
				}
				if j+size > runes {
					edge |= 2
				}
				x.add(tChar, 1, hashBytes(b[x.offsets[from]:x.offsets[to]]), edge, uint64(size))
			}
		}
	}
	if n := len(x.out); n > 0 {
		v := float32(2 / sqrt(float64(n)))
		for i := range x.out {
			x.out[i].val *= v
		}
	}
	return x.out, words, known, knownWords
}

func (m *Model) trainLanguages(ctx context.Context, examples []Example, o Options) error {
	m.langBits = langTableBits
	x := extractor{lex: newLexicon(), bits: m.langBits}
	var rows [][]feature
	var classes []int
	for _, e := range examples {
		fs, words, _, _ := x.langFeatures(e.Text, e.Offers)
		if words == 0 {
			continue
		}
		rows = append(rows, slices.Clone(fs))
		classes = append(classes, slices.Index(m.langs, e.Lang))
	}
	n := newNet(m.langBits, 0, len(m.langs), o.Seed+1)
	o.Progress = nil
	o.Epochs = 8
	if err := n.fit(ctx, rows, classes, o); err != nil {
		return err
	}
	m.langTable, m.langScale = quantise(n.w, n.columns)
	m.langB = n.outB
	return nil
}

// language shares below unlikely are left out of Likely.
const unlikely = 0.05

func (r *Reader) language(x *extractor, text string, offers []string) Language {
	m := r.model
	x.bits = m.langBits
	fs, words, known, knownWords := x.langFeatures(text, offers)
	neutral := words == 0
	if !neutral {
		neutral = true
		for _, t := range x.reply.tokens {
			if (t.kind == word || t.kind == ideo) && !x.inLabel(t) && !r.neutral[t.hash] {
				neutral = false
				break
			}
		}
	}
	if neutral {
		return Language{Neutral: true}
	}
	// Where most words are of no language we know, the best guess means nothing.
	if knownWords*2 < words {
		return Language{}
	}
	var acc [maxLangs]float64
	var p [maxLangs]float64
	n := len(m.langs)
	for _, f := range fs {
		row := m.langTable[int(f.idx)*n:][:n]
		for j := range row {
			acc[j] += float64(f.val) * float64(int8(row[j])) * float64(m.langScale[j])
		}
	}
	for j := range n {
		acc[j] += float64(m.langB[j])
	}
	softmax(acc[:n], p[:n])
	var l Language
	for range bits.Len16(known &^ knownWord) {
		best, at := unlikely, -1
		for j := range n {
			if p[j] >= best {
				best, at = p[j], j
			}
		}
		if at < 0 {
			break
		}
		p[at] = math.Inf(-1)
		l.Likely = append(l.Likely, m.langs[at])
	}
	return l
}

func neutralSet() map[uint64]bool {
	s := map[uint64]bool{}
	for w := range strings.FieldsSeq(neutralWords) {
		s[hashString(w)] = true
	}
	return s
}

// Language says which languages a reply may be in; words of the label do not count.
func (r *Reader) Language(in classifier.Input) Language {
	x := r.pool.Get().(*extractor)
	defer r.pool.Put(x)
	return r.language(x, in.Newest.String(), labels(in.Offers))
}
