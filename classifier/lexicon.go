package classifier

import (
	_ "embed"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

//go:generate go run ./internal/lexicon

// The linker puts a string where nobody can write to it, so that its pages stay the file's.
//
//go:embed lexicon/words.bin
var lexiconFile string

// kind is what a word or phrase does in a reply; see lexicon/README.md.
type kind uint8

const (
	kindUnknown kind = iota
	kindFunction
	kindFiller
	kindCourtesy
	kindAck
	kindApprove
	kindGo
	kindAssent
	kindEcho   // a word of the label, or one that may stand for it
	kindVerb   // the action of the label
	kindReason // a clause that says why; see reason.go
	// From here on a kind is a reason to lower. Where an entry is listed under
	// two kinds, the later one wins.
	kindOther // the verb of another action
	kindTime
	kindThird
	kindKeep
	kindChange
	kindQuestion
	kindCondition
	kindHedge
	kindIdiom
	kindStop
	kindNegation
	kindLoss   // why a thing may go; a no to whatever is no loss
	kindNumber // a number that the label does not have
)

var kindNames = [...]string{"unaccounted", "function", "filler", "courtesy", "ack", "approve", "go", "assent",
	"echo", "action", "reason", "other action", "time", "third", "keep", "change", "question", "condition", "hedge", "idiom",
	"stop", "negation", "loss", "number"}

// agrees says whether a word answers, pleases or fills, so that it tells nobody to do a thing.
func (k kind) agrees() bool {
	return k == kindAssent || k == kindApprove || k == kindAck || k == kindCourtesy || k == kindFiller
}

func (k kind) String() string { return kindNames[k] }

func (k kind) cue() bool { return k >= kindOther }

func (k kind) consents() bool {
	return k == kindAssent || k == kindApprove || k == kindGo || k == kindVerb
}

// languages in the order in which ties are broken.
var languages = [...]string{"en", "es", "fr", "de", "pt", "it", "nl", "hi", "zh", "ja"}

// Indexes of languages that some rules are for.
const (
	languageDE = 3
	languagePT = 4
	languageNL = 6
	languageZH = 8
	languageJA = 9
)

// entry is what a language knows of a word or phrase: its kind, the families
// of actions that it may name, or both ("cancel").
type entry struct {
	kind  kind
	verbs uint64 // bit per family
}

// table is one language.
type table struct {
	words   entriesOf
	clitics bool // pronouns hang on verbs
}

// lexicon is everything that was read from lexicon/.
type lexicon struct {
	file     *dictionary
	tables   [len(languages)]table
	known    languagesOf
	own      languagesOf // the same, without what every language has in common
	cjk      *cjkSet
	verbs    verbsOf // any language
	nouns    nounsOf
	special  nounsOf           // groups that a label's word may be called by, not the other way round
	families map[string]int    // name of a verb family to its index
	verbNoun map[int]nounSet   // verb family index to groups
	numbers  map[string]string // number word to digits
	same     map[string]string // day, month or part of the day to its English name
	typo     []string          // assent words that a typo may be mended to
	swapped  []string          // words of four letters and more whose neighbours may be swapped back
	nearStop []string          // short negations and stop words that no mending may touch
	actions  actions           // words that a slip of the finger may be mended to
	reasons  [len(languages)]reasonTable
	remarks  bitsOf // remarkParts bits for each language
	topics   bitsOf // what words are about: the low half of the bits for a word of a label, the high half for one of a comment
	anyTopic uint64 // topics that every label has

	bits        familyBits
	headers     []headerSet
	tapbacks    []tapbackForm
	signatures  []string
	autoReplies []string
	answers     []string // small words that are a whole answer beside a yes, folded and sorted
}

// small says whether the word is a function word of some language.
func (l *lexicon) small(w string) bool {
	r := l.file.record(w)
	return r != 0 && le16(l.file.file, r+recordIn)&isWordFunction != 0
}

// familyBits are the families that guards ask for.
type familyBits struct {
	pay, block uint64
	tells      uint64 // somebody is told something
	sends      uint64 // something goes to somebody
	loses      uint64 // something is lost
	personal   uint64 // somebody is let in, let go, or asked
	timed      uint64 // happens at once or at its time, so that "now" changes it
}

func (f *familyBits) fields() [7]*uint64 {
	return [...]*uint64{&f.pay, &f.block, &f.tells, &f.sends, &f.loses, &f.personal, &f.timed}
}

// words is the lexicon, read at its first use.
var words = sync.OnceValue(loadLexicon)

// Load reads the lexicon, unless it has been read. It takes a millisecond, which the first message would wait for.
func Load() { words() }

// loadLexicon opens the file; it is ours, so that one that does not fit is a build mistake.
func loadLexicon() *lexicon {
	l, err := openLexicon(lexiconFile)
	if err != nil {
		panic(err)
	}
	return l
}

func openLexicon(file string) (*lexicon, error) {
	d, err := openDictionary(file)
	if err != nil {
		return nil, err
	}
	r := reader{file: file, at: int(le32(file, headerLists))}
	l := &lexicon{
		file:     d,
		known:    languagesOf{d, recordKnown},
		own:      languagesOf{d, recordOwn},
		cjk:      &cjkSet{file: d, max: r.number()},
		verbs:    verbsOf{d},
		nouns:    nounsOf{d, recordNouns},
		special:  nounsOf{d, recordSpecial},
		remarks:  bitsOf{d, recordRemarks},
		topics:   bitsOf{d, recordTopics},
		anyTopic: r.bits(),
	}
	for i, lang := range languages {
		l.tables[i] = table{words: entriesOf{d, i}, clitics: lang == "es" || lang == "it" || lang == "pt"}
		l.reasons[i] = reasonTable{d, groupReasons + uint8(i)}
	}
	for _, f := range l.bits.fields() {
		*f = r.bits()
	}
	l.families = map[string]int{}
	for i, name := range r.texts() {
		l.families[name] = i
	}
	l.verbNoun = map[int]nounSet{}
	for range r.number() {
		family := r.number()
		var s nounSet
		for range r.number() {
			s.add(r.number())
		}
		l.verbNoun[family] = s
	}
	l.numbers, l.same = r.pairs(), r.pairs()
	l.typo, l.nearStop, l.swapped = r.texts(), r.texts(), r.texts()
	l.readForms(&r)
	n := r.number()
	l.actions = actions{d: d, first: r.at, n: n}
	return l, nil
}

// nounSet is a set of groups of things.
type nounSet [14]uint64

const maxGroups = 64 * len(nounSet{})

func (s *nounSet) add(group int) { s[group/64] |= 1 << (group % 64) }

func (s *nounSet) join(o nounSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s nounSet) groups() (out []int) {
	for g := range maxGroups {
		if s[g/64]>>(g%64)&1 != 0 {
			out = append(out, g)
		}
	}
	return out
}

func (s nounSet) empty() bool { return s == nounSet{} }

func (s nounSet) meets(o nounSet) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// joinNumbers makes one token of a number that is written in several words:
// "seventy four", "treinta y cinco", "two hundred". It works in place.
func (l *lexicon) joinNumbers(toks []token) []token {
	out := toks[:0]
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		v := l.wordNumber(t)
		if v == 0 {
			out = append(out, t)
			continue
		}
		used := 0
		k := i + 1
		if v >= 20 && v < 100 && v%10 == 0 {
			j := k
			if j < len(toks) && !toks[j].start && !toks[j].comma {
				switch toks[j].text {
				case "y", "e", "et", "and":
					j++
				}
			}
			if j < len(toks) && !toks[j].start {
				if u := l.wordNumber(toks[j]); u > 0 && u < 10 {
					v += u
					used = j + 1 - k
				}
			}
		}
		if j := k + used; v < 100 && j < len(toks) && !toks[j].start && !toks[j].comma {
			if m := l.wordNumber(toks[j]); (m == 100 || m == 1000) && !(j+1 < len(toks) && toks[j+1].text == "percent") {
				v *= m
				used = j + 1 - k
			}
		}
		if used > 0 {
			t.text, t.kind = strconv.Itoa(v), numberToken
			i += used
		}
		out = append(out, t)
	}
	return out
}

// wordNumber is the value of a number word; 0 for whatever is none.
func (l *lexicon) wordNumber(t token) int {
	if t.kind == numberToken {
		return 0
	}
	n := l.numbers[t.text]
	if n == "" {
		return 0
	}
	v, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return v
}

// match finds the longest entry of a language at toks[i]. It does not look
// across the end of a sentence. n is 0 if there is none.
func (t *table) match(toks []token, i int) (e entry, n int) {
	d := t.words.d
	at := d.find(toks[i].text)
	if at == 0 {
		return entry{}, 0
	}
	for ps := d.phrasesFrom(at, toks, i, uint8(t.words.lang)); ps.next(); { //nolint:gosec // an index of a small array
		if ps.stands(toks, i, len(toks)) {
			return entry{kind: kind(ps.what()), verbs: d.bits(ps.verbs())}, ps.more() + 1
		}
	}
	if e = d.entryIn(le24(d.file, at+wordRecord), t.words.lang); e != (entry{}) {
		return e, 1
	}
	return entry{}, 0
}

// withoutClitic finds the verb in forms such as "enviarlo" or "prendili", in
// which a pronoun hangs on it.
func (t *table) withoutClitic(w string) entry {
	if t.clitics {
		for _, c := range [...]string{"selos", "selas", "selo", "sela", "melos", "melas", "melo", "mela", "noslo", "nosla", "glielo", "gliela", "glieli", "gliele", "celo", "cela", "lo", "la", "los", "las", "le", "les", "li", "gli", "ne", "ci", "nos", "me", "mi"} {
			if base, ok := strings.CutSuffix(w, c); ok && len(base) >= 3 {
				if e := t.words.at(base); e.verbs != 0 {
					return e
				}
				if e := t.words.at(base + "e"); e.verbs != 0 { // mandar(e)lo
					return e
				}
			}
		}
	}
	return entry{}
}

// mend gives a token that no language knows the word of assent it was meant
// for, where one slip of the finger lies between them. It never mends what is one
// slip from a no or a stop, and no given name.
func (l *lexicon) mend(w string) (string, bool) {
	if len(w) < 4 || !isPlainASCII(w) || isGivenName(w) {
		return "", false
	}
	for _, no := range l.nearStop {
		if w[0] == no[0] && oneSlip(w, no) {
			return "", false
		}
	}
	i, _ := slices.BinarySearch(l.swapped, w[:1])
	for ; i < len(l.swapped) && l.swapped[i][0] == w[0]; i++ {
		if word := l.swapped[i]; len(w) == len(word) && oneSlip(w, word) && swaps(w, word) {
			return word, true
		}
	}
	for _, yes := range l.typo {
		// The first letter of a word is seldom the wrong one; real words
		// ("night", "food") mostly differ from an assent word there.
		if w[0] == yes[0] && oneSlip(w, yes) && isSlip(w, yes) {
			return yes, true
		}
	}
	return "", false
}

// isSlip says whether a finger or an ear makes w of the word that it is one
// letter from: two letters swapped, one left out, one struck twice or together
// with a neighbour on the keyboard, a neighbour or another vowel for one.
func isSlip(w, word string) bool {
	if len(w) < len(word) {
		return true
	}
	i := 0
	for i < len(word) && w[i] == word[i] {
		i++
	}
	if len(w) > len(word) {
		return i > 0 && (w[i] == w[i-1] || nextKeys(w[i], w[i-1])) || i+1 < len(w) && (w[i] == w[i+1] || nextKeys(w[i], w[i+1]))
	}
	const vowels = "aeiouy"
	return swaps(w, word) || nextKeys(w[i], word[i]) || strings.IndexByte(vowels, w[i]) >= 0 && strings.IndexByte(vowels, word[i]) >= 0
}

// nextKeys says whether two letters are neighbours on a keyboard.
func nextKeys(a, b byte) bool {
	const width = 10
	const rows = "qwertyuiopasdfghjkl;zxcvbnm,./"
	i, j := strings.IndexByte(rows, a), strings.IndexByte(rows, b)
	if i < 0 || j < 0 {
		return false
	}
	r, c := i/width-j/width, i%width-j%width
	return r*r <= 1 && c*c <= 1
}

// isGivenName says whether a word is a name that is one slip from a word of assent or of an action ("Greta", "great";
// "Emil", "email"): who is named instead of the label's person is a change, and no slip of the finger.
func isGivenName(w string) bool {
	switch w {
	case "greta", "emil", "emile", "emila", "emily", "emilia", "yeshi", "yesha", "yara", "yuri", "okoye", "sura", "suri",
		"surya", "fina", "finn", "corey", "cora", "perry", "goran", "gogo", "shura", "shauna", "senda", "sanda",
		"sandy", "mailo", "milo", "maila", "posey", "posy", "booker", "brook", "paye", "paya", "paja", "callie", "cally", "calla", "moe", "move-lee",
		"shari", "sharee", "bucky", "byron", "rena", "renty", "ordo", "orde", "addy", "addie", "adda", "invi", "trina", "tessa":
		return true
	}
	return false
}

// actions are verbs with their families, in the order of the words: places of both, in the file.
type actions struct {
	d     *dictionary
	first int // place of the list
	n     int
}

func (as actions) word(i int) string { return as.d.word(le24(as.d.file, as.first+2*placeSize*i)) }

func (as actions) verbs(i int) uint64 {
	return as.d.bits(le24(as.d.file, as.first+2*placeSize*i+placeSize))
}

// from is the index of the first one that begins with a letter or one behind it.
func (as actions) from(letter byte) int {
	return sort.Search(as.n, func(i int) bool { return as.word(i)[0] >= letter })
}

// mendAction gives a token that nothing knows the action of the label that it
// was meant for: two letters swapped, one left out or one too many, the first
// letter right. "delte" is "delete" where something is to be deleted.
func (l *lexicon) mendAction(w string, verbs uint64) (string, bool) {
	if verbs == 0 || len(w) < 4 || !isPlainASCII(w) || isGivenName(w) {
		return "", false
	}
	for i := l.actions.from(w[0]); i < l.actions.n; i++ {
		if l.actions.verbs(i)&verbs == 0 {
			continue
		}
		a := l.actions.word(i)
		if a[0] != w[0] {
			break
		}
		if oneSlip(w, a) && (len(w) != len(a) && !endsApart(w, a) || len(w) == len(a) && swaps(w, a)) && len(w)+len(a) > 8 {
			return a, true
		}
	}
	return "", false
}

// endsApart says whether two words differ by their last letter alone, one that
// is not its neighbour again: an ending ("mandei", "mande"), not a slip.
func endsApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := len(a)
	return a == b[:n] && b[n] != b[n-1]
}

// unstretch shortens runs of one letter, first to two, then to one.
func (l *lexicon) unstretch(w string) (string, bool) {
	for _, keep := range [...]int{2, 1} {
		b := make([]byte, 0, len(w))
		run, changed := 0, false
		for i := 0; i < len(w); i++ {
			if w[i] >= 0x80 {
				return "", false
			}
			if i > 0 && w[i] == w[i-1] {
				run++
			} else {
				run = 1
			}
			if run > keep {
				changed = true
				continue
			}
			b = append(b, w[i])
		}
		if !changed {
			continue
		}
		if l.known.has(string(b)) {
			// "kkkk" is laughter, "suuuure" is not meant.
			switch string(b) {
			case "k", "kk":
				return "", false
			case "sure", "right", "fine", "great":
				if len(w)-len(b) > 1 {
					return "", false
				}
			}
			return string(b), true
		}
	}
	return "", false
}

// swaps says whether two words that are one slip apart hold the same letters.
func swaps(a, b string) bool {
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i]
}

// oneSlip says whether a and b differ by one letter put in, left out or
// replaced, or by two neighbours swapped.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
