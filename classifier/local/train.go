package local

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign/countersign/classifier"
)

// Example is one labelled reply to train on. Lang is an ISO 639-1 code.
type Example struct {
	Text    string
	Earlier []string // newest first
	Offers  []string
	Class   classifier.Class
	Lang    string
}

// input is what a reader will be asked: in production the preparation of the
// text comes first, so it does here. A text without own words stays as it is.
func (e Example) input() (classifier.Input, error) {
	in := classifier.Input{Newest: classifier.NewWords(e.Text)}
	if own := classifier.Prepare(in.Newest).Own; own != "" {
		in.Newest = classifier.NewWords(own)
	}
	for _, t := range e.Earlier {
		in.Earlier = append(in.Earlier, classifier.NewWords(t))
	}
	for _, o := range e.Offers {
		l, err := classifier.ParseLabel(o)
		if err != nil {
			return in, fmt.Errorf("%w: %w", ErrCorpus, err)
		}
		in.Offers = append(in.Offers, l)
	}
	return in, nil
}

// inputsHash is the SHA-256 over every feature that training sees. It changes
// with the corpus, with the extraction of features and with the lexicon, so
// that weights which no longer fit the code show by it.
func inputsHash(rows [][]feature) (sum [sha256.Size]byte) {
	h := sha256.New()
	var b []byte
	for _, fs := range rows {
		b = b[:0]
		for _, f := range fs {
			b = binary.LittleEndian.AppendUint32(b, f.idx)
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f.val))
		}
		h.Write(b)
		h.Write([]byte{'\n'})
	}
	h.Sum(sum[:0])
	return sum
}

// Options of training. The zero value means the defaults, with which the
// embedded weights were made.
type Options struct {
	Seed    uint64  // of the shuffles and of dropout
	Epochs  int     // passes over the examples
	Members int     // networks, whose logits are averaged
	Hidden  int     // hidden units of each; -1 for none
	Bits    uint    // the weight table has 1<<Bits rows
	Rate    float64 // AdaGrad's step
	Decay   float64 // L2, per step, of the rows touched
	Dropout float64 // share of features left out at each step
	MinSeen int     // rows that a word must occur in to be known
	Noisy   int     // copies of each example with slips of the thumb; -1 for none
	Swaps   int     // copies with another offer of each answer that speaks of none; -1 for none

	// Progress, if set, is told after each epoch: which, of how many, and the mean loss.
	Progress func(epoch, epochs int, loss float64)
}

func (o Options) withDefaults() Options {
	if o.Seed == 0 {
		o.Seed = 20261
	}
	if o.Epochs == 0 {
		o.Epochs = 10
	}
	if o.Hidden == 0 {
		o.Hidden = 8
	}
	if o.Hidden < 0 {
		o.Hidden = 0
	}
	if o.Members == 0 {
		o.Members = 4
	}
	if o.Bits == 0 {
		o.Bits = 17
	}
	if o.Rate == 0 {
		o.Rate = 0.08
	}
	if o.Decay == 0 {
		o.Decay = 1e-5
	}
	if o.Dropout == 0 {
		o.Dropout = 0.3
	}
	if o.MinSeen == 0 {
		o.MinSeen = 3
	}
	if o.Noisy == 0 {
		o.Noisy = 1
	}
	if o.Noisy < 0 {
		o.Noisy = 0
	}
	if o.Swaps == 0 {
		o.Swaps = 4
	}
	if o.Swaps < 0 {
		o.Swaps = 0
	}
	return o
}

// mistype makes one or two slips as thumbs do: a letter doubled, dropped or
// changed places, the apostrophe or the final mark left out, no capitals.
// Words of three letters and fewer stay: "no" and "on" must not meet.
func (p *prng) mistype(s string) string {
	rs := []rune(s)
	for range 1 + p.below(2) {
		i := p.below(len(rs) + 1)
		if i < 2 || i+2 >= len(rs) {
			continue
		}
		inside := true
		for _, r := range rs[i-2 : i+2] {
			inside = inside && unicode.IsLetter(r) && r < 0x250
		}
		if !inside {
			continue
		}
		switch p.below(3) {
		case 0:
			rs = slices.Insert(rs, i, rs[i])
		case 1:
			rs = slices.Delete(rs, i, i+1)
		default:
			rs[i-1], rs[i] = rs[i], rs[i-1]
		}
	}
	s = string(rs)
	switch p.below(4) {
	case 0:
		s = strings.ToLower(s)
	case 1:
		if t := strings.TrimRight(s, ".! "); len(s)-len(t) < 2 {
			s = t // "ok..." is no "ok"
		}
	case 2:
		s = strings.ReplaceAll(s, "'", "")
	}
	return s
}

// ErrCorpus says that the training examples cannot be trained on.
var ErrCorpus = errors.New("local: corpus cannot be trained on")

// prng is SplitMix64: our own, so that a change of the standard library's
// generators cannot change the weights.
type prng uint64

func (p *prng) next() uint64 {
	*p += 0x9e3779b97f4a7c15
	return mix(uint64(*p))
}

func (p *prng) float() float64 { return float64(p.next()>>11) / (1 << 53) }

func (p *prng) below(n int) int { return int(p.next() % uint64(n)) }

// Train fits a model. The same examples in the same order and the same
// options give the same model, bit for bit, on any machine: one goroutine,
// fixed order, own random numbers. It fails with [ErrCorpus] when there are
// no examples or too many languages, and with ctx's error when it ends.
func Train(ctx context.Context, examples []Example, o Options) (*Model, error) {
	o = o.withDefaults()
	if len(examples) == 0 {
		return nil, fmt.Errorf("%w: no examples", ErrCorpus)
	}
	if o.Members < 1 || o.Members*o.Hidden > maxHidden || o.Bits > 22 {
		return nil, fmt.Errorf("%w: at most %d hidden units and 22 bits", ErrCorpus, maxHidden)
	}
	m := &Model{bits: o.Bits, hidden: o.Hidden}
	for _, e := range examples {
		if !slices.Contains(m.langs, e.Lang) {
			m.langs = append(m.langs, e.Lang)
		}
		if int(e.Class) >= classifier.Classes {
			return nil, fmt.Errorf("%w: %w", ErrCorpus, classifier.ErrClass)
		}
	}
	slices.Sort(m.langs)
	if len(m.langs) > maxLangs {
		return nil, fmt.Errorf("%w: %d languages, at most %d", ErrCorpus, len(m.langs), maxLangs)
	}
	m.vocab = countWords(examples, m.langs, o.MinSeen)

	rows, classes, err := m.inputRows(examples, o)
	if err != nil {
		return nil, err
	}
	m.inputs = inputsHash(rows)
	all := newNet(o.Bits, o.Members*o.Hidden, classifier.Classes, 0)
	clear(all.w)
	clear(all.out)
	for i := range o.Members {
		n := newNet(o.Bits, o.Hidden, classifier.Classes, o.Seed+uint64(i)*1000)
		if err := n.fit(ctx, rows, classes, o); err != nil {
			return nil, err
		}
		all.join(n, i, o.Members)
	}
	m.hidden = all.hidden
	m.table, m.scale = quantise(all.w, all.columns)
	m.bias, m.out, m.outB = all.bias, all.out, all.outB

	return m, m.trainLanguages(ctx, examples, o)
}

// inputRows turns examples into features: each as it is, each with slips of
// the thumb, and the bare ones once more with other offers.
func (m *Model) inputRows(examples []Example, o Options) ([][]feature, []int, error) {
	x := extractor{lex: newLexicon(), known: newVocabulary(m.vocab), bits: o.Bits}
	rows := make([][]feature, 0, len(examples)*(1+o.Noisy))
	classes := make([]int, 0, cap(rows))
	slips := prng(o.Seed + 2)
	for _, e := range examples {
		in, err := e.input()
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, slices.Clone(x.extract(in)))
		classes = append(classes, int(e.Class))
		for range o.Noisy {
			if noisy := slips.mistype(e.Text); noisy != e.Text {
				in.Newest = classifier.NewWords(noisy)
				rows = append(rows, slices.Clone(x.extract(in)))
				classes = append(classes, int(e.Class))
			}
		}
	}
	// A corpus without repeats has "yes" a dozen times, and people text it half
	// of the time: short answers that speak of no action fit every offer.
	for _, e := range examples {
		if !x.bare(e) {
			continue
		}
		for range o.Swaps {
			other := examples[slips.below(len(examples))]
			if len(other.Offers) != 1 {
				continue
			}
			in, err := Example{Text: e.Text, Offers: other.Offers}.input()
			if err != nil {
				return nil, nil, err
			}
			fs := x.extract(in)
			if x.echoes > 0 {
				continue
			}
			rows, classes = append(rows, slices.Clone(fs)), append(classes, int(e.Class))
		}
	}
	return rows, classes, nil
}

// bare says whether an answer is short, speaks of no action or number, and
// says yes or no to the one offer.
func (x *extractor) bare(e Example) bool {
	if e.Class != classifier.Confirm && e.Class != classifier.Decline || len(e.Offers) != 1 || len(e.Earlier) > 0 {
		return false
	}
	x.scanLabels(e.Offers)
	x.reply.reset()
	x.reply.scan(e.Text)
	if len(x.reply.tokens) > 6 {
		return false
	}
	for _, t := range x.reply.tokens {
		if t.kind == number || x.lex.familyOf(t) != famNone || x.inLabel(t) || t.kind == word && !x.known.has(t.hash) {
			return false
		}
	}
	return true
}

// countWords gives every word with the languages it was seen in as a bit set,
// and the mark knownWord where at least minSeen rows hold it.
func countWords(examples []Example, langs []string, minSeen int) map[uint32]uint16 {
	type seen struct {
		rows  int
		langs uint16
		last  int
	}
	count := map[uint32]*seen{}
	var s scanner
	for i, e := range examples {
		bit := uint16(1) << slices.Index(langs, e.Lang)
		s.reset()
		s.scan(e.Text)
		for _, t := range s.tokens {
			if t.kind != word && t.kind != ideo {
				continue
			}
			k := wordKey(t.hash)
			c := count[k]
			if c == nil {
				c = &seen{last: -1}
				count[k] = c
			}
			if c.last != i {
				c.rows, c.last = c.rows+1, i
			}
			c.langs |= bit
		}
	}
	words := map[uint32]uint16{}
	for k, c := range count {
		words[k] = c.langs
		if c.rows >= minSeen {
			words[k] |= knownWord
		}
	}
	return words
}

// knownWord marks a word that enough rows hold; rarer ones only tell their language.
const knownWord = 1 << 15

func sortedKeys(m map[uint32]uint16) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// net is a one-hidden-layer network over sparse features with direct
// connections, trained by AdaGrad. Without hidden units it is multinomial
// logistic regression.
type net struct {
	hidden, classes, columns int
	w, wg                    []float32
	bias, biasG              []float32
	out, outG                []float32
	outB, outBG              []float32
	rnd                      prng
}

func newNet(bits uint, hidden, classes int, seed uint64) *net {
	n := &net{hidden: hidden, classes: classes, columns: hidden + classes, rnd: prng(seed)}
	n.w = make([]float32, (1<<bits)*n.columns)
	n.wg = make([]float32, len(n.w))
	n.bias, n.biasG = make([]float32, hidden), make([]float32, hidden)
	n.out, n.outG = make([]float32, hidden*classes), make([]float32, hidden*classes)
	n.outB, n.outBG = make([]float32, classes), make([]float32, classes)
	// The table's hidden weights start from small numbers that depend on the
	// place alone; the output weights break the symmetry.
	for i := range n.out {
		n.out[i] = float32(n.rnd.float()-0.5) * 0.6
	}
	if hidden > 0 {
		for r := 0; r < len(n.w); r += n.columns {
			h := mix(uint64(r) ^ seed)
			for j := range hidden {
				h = mix(h + uint64(j))
				n.w[r+j] = (float32(h>>40)/(1<<24) - 0.5) * 0.1
			}
		}
	}
	return n
}

// join puts member i of so many beside the others: the mean of the members'
// logits is itself one network, with all their hidden units side by side.
func (n *net) join(member *net, i, members int) {
	share := 1 / float32(members)
	h := member.hidden
	for from, to := 0, 0; to < len(n.w); from, to = from+member.columns, to+n.columns {
		copy(n.w[to+i*h:], member.w[from:from+h])
		for k := range n.classes {
			n.w[to+n.hidden+k] += float32(member.w[from+h+k] * share)
		}
	}
	copy(n.bias[i*h:], member.bias)
	for j, v := range member.out {
		n.out[i*h*n.classes+j] = float32(v * share)
	}
	for k, v := range member.outB {
		n.outB[k] += float32(v * share)
	}
}

func (n *net) fit(ctx context.Context, rows [][]feature, classes []int, o Options) error {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	acc := make([]float32, n.columns)
	hid := make([]float32, n.hidden)
	grad := make([]float32, n.columns)
	z, p := make([]float64, n.classes), make([]float64, n.classes)
	kept := make([]feature, 0, 1024)
	const smooth = 0.02 // label smoothing: no corpus is without slips
	keep := 1 - o.Dropout
	for epoch := range o.Epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := len(order) - 1; i > 0; i-- {
			j := n.rnd.below(i + 1)
			order[i], order[j] = order[j], order[i]
		}
		// The step shrinks towards the end, so that the last rows seen do not weigh most.
		rate := float32(o.Rate * (1 - 0.9*float64(epoch)/float64(o.Epochs)))
		decay := float32(o.Decay)
		loss := 0.0
		for _, r := range order {
			kept = kept[:0]
			for _, f := range rows[r] {
				if n.rnd.float() < keep {
					f.val = f.val / float32(keep)
					kept = append(kept, f)
				}
			}
			clear(acc)
			for _, f := range kept {
				row := n.w[int(f.idx)*n.columns:][:n.columns]
				for j, w := range row {
					acc[j] += float32(f.val * w)
				}
			}
			for k := range z {
				z[k] = float64(n.outB[k]) + float64(acc[n.hidden+k])
			}
			for j := range n.hidden {
				hid[j] = tanh32(acc[j] + n.bias[j])
				for k := range z {
					z[k] += float64(hid[j]) * float64(n.out[j*n.classes+k])
				}
			}
			softmax(z, p)
			loss -= logApprox(p[classes[r]])
			for k := range p {
				want := smooth / float64(n.classes)
				if k == classes[r] {
					want += 1 - smooth
				}
				grad[n.hidden+k] = float32(p[k] - want)
			}
			for j := range n.hidden {
				g := float32(0)
				for k := range n.classes {
					at := j*n.classes + k
					gk := grad[n.hidden+k]
					g += float32(gk * n.out[at])
					step(&n.out[at], &n.outG[at], float32(gk*hid[j]), rate*0.5, decay)
				}
				grad[j] = float32(g * (1 - float32(hid[j]*hid[j])))
				step(&n.bias[j], &n.biasG[j], grad[j], rate, 0)
			}
			for k := range n.classes {
				step(&n.outB[k], &n.outBG[k], grad[n.hidden+k], rate, 0)
			}
			for _, f := range kept {
				base := int(f.idx) * n.columns
				row, sq := n.w[base:base+n.columns], n.wg[base:base+n.columns]
				for j := range row {
					step(&row[j], &sq[j], float32(grad[j]*f.val), rate, decay)
				}
			}
		}
		if o.Progress != nil {
			o.Progress(epoch+1, o.Epochs, loss/float64(len(rows)))
		}
	}
	return nil
}

// step is one AdaGrad update with weight decay.
func step(w, sq *float32, g, rate, decay float32) {
	g += float32(decay * *w)
	*sq += float32(g * g)
	*w -= float32(rate*g) / (float32(sqrt(float64(*sq))) + 1e-3)
}

// logApprox is for the progress line alone: it never reaches a weight.
func logApprox(p float64) float64 {
	if p < 1e-12 {
		p = 1e-12
	}
	// ln p by Newton's method on our own exp.
	x := 0.0
	for range 60 {
		e := exp(x)
		x -= (e - p) / (e + p) * 2
	}
	return x
}

// line is one row of a corpus file.
type line struct {
	Text    string           `json:"text"`
	Earlier []string         `json:"earlier"`
	Offers  []string         `json:"offers"`
	Label   classifier.Class `json:"label"`
	Lang    string           `json:"lang"`
	Tags    []string         `json:"tags"`
}

// ReadCorpus reads every *.jsonl file at the top of fsys in the order of
// their names. It fails with [ErrCorpus] naming file and line.
func ReadCorpus(fsys fs.FS) ([]Example, error) {
	names, err := corpusFiles(fsys)
	if err != nil {
		return nil, err
	}
	var out []Example
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorpus, err)
		}
		sc := bufio.NewScanner(bytes.NewReader(b))
		sc.Buffer(nil, 1<<20)
		for n := 1; sc.Scan(); n++ {
			if len(bytes.TrimSpace(sc.Bytes())) == 0 {
				continue
			}
			var l line
			dec := json.NewDecoder(bytes.NewReader(sc.Bytes()))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&l); err != nil {
				return nil, fmt.Errorf("%w: %s:%d: %w", ErrCorpus, name, n, err)
			}
			if l.Lang == "" || len(l.Offers) == 0 {
				return nil, fmt.Errorf("%w: %s:%d: lang and offers are needed", ErrCorpus, name, n)
			}
			out = append(out, Example{Text: l.Text, Earlier: l.Earlier, Offers: l.Offers, Class: l.Label, Lang: baseLanguage(l.Lang)})
		}
		if err := sc.Err(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrCorpus, name, err)
		}
	}
	return out, nil
}

// baseLanguage drops the script: "hi-Latn" is Hindi.
func baseLanguage(tag string) string {
	base, _, _ := strings.Cut(tag, "-")
	return base
}

func corpusFiles(fsys fs.FS) ([]string, error) {
	all, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorpus, err)
	}
	var names []string
	for _, e := range all {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".jsonl") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: no .jsonl files", ErrCorpus)
	}
	return names, nil
}

// CorpusHash is the SHA-256, in hex, over name, size and bytes of every
// corpus file, in the order of their names.
func CorpusHash(fsys fs.FS) (string, error) {
	sum, err := corpusHash(fsys)
	return hex.EncodeToString(sum[:]), err
}

func corpusHash(fsys fs.FS) (sum [sha256.Size]byte, err error) {
	names, err := corpusFiles(fsys)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return sum, fmt.Errorf("%w: %w", ErrCorpus, err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(b))
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// TrainFromFS trains on the corpus files at the top of fsys and gives the
// bytes of the weights file. The same files give the same bytes.
func TrainFromFS(ctx context.Context, fsys fs.FS, o Options) ([]byte, error) {
	examples, err := ReadCorpus(fsys)
	if err != nil {
		return nil, err
	}
	sum, err := corpusHash(fsys)
	if err != nil {
		return nil, err
	}
	m, err := Train(ctx, examples, o)
	if err != nil {
		return nil, err
	}
	m.corpus = sum
	return m.Encode(), nil
}
