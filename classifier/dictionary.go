package classifier

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// The lexicon is one file that is made beforehand, by [BuildLexicon], and read in place: a word costs nothing until it is
// looked up, and none of it is the collector's. Numbers are little-endian; a place is three bytes, counted from the file's start.
//
//	header    see the offsets below
//	slots     of a hash table, four bytes each: a word's place and a piece of its hash; 0 is a free one
//	words     length, place of what the word is, place of its phrases or 0, the word
//	records   what words are: see the offsets of a record; words that are the same share one
//	phrases   of one first word: by language their size, how many second words there are, each with the end of its phrases,
//	          and these, longest first: how many words follow the first, what they are, and which follow the second
//	lists     what is small enough to be read at the start
const (
	lexiconMagic   = "CSLX"
	lexiconVersion = 2

	headerVersion = 4
	headerLength  = 8  // of the file
	headerSum     = 12 // of all that follows it
	headerSlots   = 16 // how many; they follow the header
	headerLists   = 20 // where they begin
	headerSize    = 24

	wordRecord  = 1
	wordPhrases = 4
	wordText    = 7
	maxWord     = 255 // bytes

	recordKnown   = 0  // languages
	recordOwn     = 2  // the same, without what all of them have in common
	recordIn      = 4  // languages that have an entry, and more bits
	recordVerbs   = 6  // of all languages
	recordRemarks = 9  // place of their bits
	recordTopics  = 12 // the same
	recordNouns   = 15 // place of a count and so many groups
	recordSpecial = 18 // the same
	recordEntries = 21 // of the languages that have one

	entryVerbs = 1 // after the kind
	entrySize  = 4

	groupSize    = 1 // after the group
	groupSeconds = 4 // how many, which follow
	secondSize   = 2 * placeSize

	phraseWhat  = 1
	phraseVerbs = 2
	phraseRest  = 5

	placeSize = 3
	maxPlace  = 1<<24 - 1

	isWordCJK      = 1 << 15 // in recordIn, above the languages
	isWordFunction = 1 << 14 // of some language

	groupReasons = uint8(len(languages)) // phrases of reasons stand behind those of the tables
	groupEnd     = 255
)

var errLexicon = errors.New("classifier: the lexicon cannot be used")

// dictionary is the file of the lexicon.
type dictionary struct {
	file  string
	slots uint64 // how many
}

func openDictionary(file string) (*dictionary, error) {
	if len(file) < headerSize || file[:len(lexiconMagic)] != lexiconMagic {
		return nil, fmt.Errorf("%w: it is none", errLexicon)
	}
	if v := le32(file, headerVersion); v != lexiconVersion {
		return nil, fmt.Errorf("%w: format version %d, want %d", errLexicon, v, lexiconVersion)
	}
	if n := le32(file, headerLength); int64(n) != int64(len(file)) {
		return nil, fmt.Errorf("%w: %d bytes, want %d", errLexicon, len(file), n)
	}
	if checksum(file) != le32(file, headerSum) {
		return nil, fmt.Errorf("%w: its checksum is wrong", errLexicon)
	}
	return &dictionary{file: file, slots: uint64(le32(file, headerSlots))}, nil
}

// checksum is that of the file behind its place in the header.
func checksum(file string) uint32 {
	var part [4096]byte
	sum := uint32(0)
	table := crc32.MakeTable(crc32.Castagnoli)
	for rest := file[headerSlots:]; rest != ""; {
		n := copy(part[:], rest)
		sum, rest = crc32.Update(sum, table, part[:n]), rest[n:]
	}
	return sum
}

func le16(s string, at int) uint16 {
	s = s[at : at+2]
	return uint16(s[0]) | uint16(s[1])<<8
}

func le24(s string, at int) int {
	s = s[at : at+3]
	return int(s[0]) | int(s[1])<<8 | int(s[2])<<16
}

func le32(s string, at int) uint32 {
	s = s[at : at+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func le64(s string, at int) uint64 {
	s = s[at : at+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// hashWord is the same at every start, since the file is made with it. Nobody but us chooses the words in the table, so that
// nobody can make them collide.
func hashWord(w string) uint64 {
	const k0, k1 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
	h := uint64(len(w)) * k0
	for len(w) > 8 {
		hi, lo := bits.Mul64(h^le64(w, 0), k1)
		h, w = hi^lo, w[8:]
	}
	var last uint64
	switch n := len(w); {
	case n == 8:
		last = le64(w, 0)
	case n >= 4:
		last = uint64(le32(w, 0)) | uint64(le32(w, n-4))<<32
	case n > 0:
		last = uint64(w[0]) | uint64(w[n/2])<<8 | uint64(w[n-1])<<16
	}
	hi, lo := bits.Mul64(h^last, k1)
	return (hi ^ lo) * k0
}

// slot is the one in which a word of that hash stands unless it is taken.
func slot(hash, slots uint64) uint64 { return hash >> 32 * slots >> 32 }

// find is the place of a word; 0 for none.
func (d *dictionary) find(w string) int {
	h := hashWord(w)
	for i := slot(h, d.slots); ; i++ {
		if i == d.slots {
			i = 0
		}
		s := le32(d.file, headerSize+4*int(i)) //nolint:gosec // below the number of slots
		if s == 0 {
			return 0
		}
		if at := int(s >> 8); uint8(s) == uint8(h) && d.word(at) == w { //nolint:gosec // a piece of the hash
			return at
		}
	}
}

// word is the one at a place.
func (d *dictionary) word(at int) string {
	return d.file[at+wordText : at+wordText+int(d.file[at])]
}

// record is the place of what a word is; 0 for a word that is not there.
func (d *dictionary) record(w string) int {
	at := d.find(w)
	if at == 0 {
		return 0
	}
	return le24(d.file, at+wordRecord)
}

// bits are those at a place; none at 0.
func (d *dictionary) bits(at int) uint64 {
	if at == 0 {
		return 0
	}
	return le64(d.file, at)
}

// entryIn is what a language knows of the word with that record; the zero entry is nothing.
func (d *dictionary) entryIn(record, lang int) entry {
	in := le16(d.file, record+recordIn)
	if in>>lang&1 == 0 {
		return entry{}
	}
	at := record + recordEntries + entrySize*bits.OnesCount16(in&(1<<lang-1))
	return entry{kind: kind(d.file[at]), verbs: d.bits(le24(d.file, at+entryVerbs))}
}

// languagesOf gives for each word the languages that know it.
type languagesOf struct {
	d     *dictionary
	field int
}

func (c languagesOf) at(w string) uint16 {
	if r := c.d.record(w); r != 0 {
		return le16(c.d.file, r+c.field)
	}
	return 0
}

func (c languagesOf) has(w string) bool { return c.at(w) != 0 }

// bitsOf gives for each word the bits of one field.
type bitsOf struct {
	d     *dictionary
	field int
}

func (c bitsOf) at(w string) uint64 {
	if r := c.d.record(w); r != 0 {
		return c.d.bits(le24(c.d.file, r+c.field))
	}
	return 0
}

// nounsOf gives for each word the groups of things that it names.
type nounsOf struct {
	d     *dictionary
	field int
}

func (c nounsOf) at(w string) (s nounSet) {
	if r := c.d.record(w); r != 0 {
		s = c.d.nouns(le24(c.d.file, r+c.field))
	}
	return s
}

// nouns are the groups at a place.
func (d *dictionary) nouns(at int) (s nounSet) {
	if at != 0 {
		for k := range int(d.file[at]) {
			s.add(int(le16(d.file, at+1+2*k)))
		}
	}
	return s
}

// entriesOf gives for each word what one language knows of it.
type entriesOf struct {
	d    *dictionary
	lang int
}

// at is the entry of a word; the zero one of a word that the language does not know.
func (c entriesOf) at(w string) entry {
	if r := c.d.record(w); r != 0 {
		return c.d.entryIn(r, c.lang)
	}
	return entry{}
}

// verbsOf gives the families of an action, of one word or of several, in any language.
type verbsOf struct{ d *dictionary }

func (c verbsOf) at(w string) uint64 { return bitsOf{c.d, recordVerbs}.at(w) }

func (c verbsOf) of(first, second string, more ...string) (verbs uint64) {
	at, ahead := c.d.find(first), c.d.find(second)
	if at == 0 || ahead == 0 {
		return 0
	}
	for lang := range uint8(len(languages)) {
		for ps := (phrases{d: c.d, left: c.d.group(at, lang).with(ahead)}); ps.next(); {
			if ps.more() == 1+len(more) && ps.goesOn(more) {
				verbs |= c.d.bits(ps.verbs())
			}
		}
	}
	return verbs
}

// phraseGroup are the phrases of a language, or of the reasons of one, that begin with the same word.
type phraseGroup struct {
	seconds string // places of second words, in their order, each with the end of its phrases
	phrases string
}

// group are the phrases that begin with the word at a place.
func (d *dictionary) group(word int, group uint8) phraseGroup {
	at := le24(d.file, word+wordPhrases)
	if at == 0 {
		return phraseGroup{}
	}
	for d.file[at] < group {
		at += groupSize + placeSize + le24(d.file, at+groupSize)
	}
	if d.file[at] != group {
		return phraseGroup{}
	}
	from, to := at+groupSeconds+2, at+groupSize+placeSize+le24(d.file, at+groupSize)
	n := secondSize * int(le16(d.file, at+groupSeconds))
	return phraseGroup{seconds: d.file[from : from+n], phrases: d.file[from+n : to]}
}

// with are those whose second word is at a place, longest first; at 0 those of one word.
func (g phraseGroup) with(second int) string {
	from, to := 0, len(g.seconds)/secondSize
	for from < to {
		if mid := (from + to) / 2; le24(g.seconds, secondSize*mid) < second {
			from = mid + 1
		} else {
			to = mid
		}
	}
	if at := secondSize * from; at < len(g.seconds) && le24(g.seconds, at) == second {
		return g.phrases[g.end(from-1):g.end(from)]
	}
	return ""
}

// end is where the phrases of a second word end.
func (g phraseGroup) end(second int) int {
	if second < 0 {
		return 0
	}
	return le24(g.seconds, secondSize*second+placeSize)
}

// phrases are those of one group that may stand at a token: they begin with its word, and go on with the next one's or not at all.
type phrases struct {
	d     *dictionary
	left  string // those that come next
	alone string // those of one word, which come after them
	first string // the one that it stands at
	close bool   // no comma may stand in it
}

// phrases are those that may stand at toks[i].
func (d *dictionary) phrases(toks []token, i int, group uint8) phrases {
	at := d.find(toks[i].text)
	if at == 0 {
		return phrases{}
	}
	return d.phrasesFrom(at, toks, i, group)
}

// phrasesFrom are the same where the place of the word of toks[i] is known.
func (d *dictionary) phrasesFrom(at int, toks []token, i int, group uint8) phrases {
	g := d.group(at, group)
	ps := phrases{d: d, alone: g.with(0)}
	if len(ps.alone) < len(g.phrases) && i+1 < len(toks) && !toks[i+1].start {
		if ahead := d.find(toks[i+1].text); ahead != 0 {
			ps.left = g.with(ahead)
		}
	}
	return ps
}

// next goes to the next phrase, at first to the longest one.
func (p *phrases) next() bool {
	if p.left == "" {
		p.left, p.alone = p.alone, ""
	}
	if p.left == "" {
		return false
	}
	n := phraseRest + placeSize*max(0, int(p.left[0])-1)
	p.first, p.left = p.left[:n], p.left[n:]
	return true
}

// more is how many words the phrase has after its first, and word is one of those after its second.
func (p *phrases) more() int { return int(p.first[0]) }

func (p *phrases) word(k int) string {
	return p.d.word(le24(p.first, phraseRest+placeSize*k))
}

// what is the kind of the phrase, or its part in a reason.
func (p *phrases) what() uint8 { return p.first[phraseWhat] }

func (p *phrases) verbs() int { return le24(p.first, phraseVerbs) }

// stands says whether the phrase, which may stand at toks[i], stands there and ends before to.
func (p *phrases) stands(toks []token, i, to int) bool {
	n := p.more()
	if n >= to-i || n > 0 && p.close && toks[i+1].comma {
		return false
	}
	for k := 2; k <= n; k++ {
		if tk := &toks[i+k]; tk.start || p.close && tk.comma || p.word(k-2) != tk.text {
			return false
		}
	}
	return true
}

// goesOn says whether the words after the second are these.
func (p *phrases) goesOn(words []string) bool {
	for k, w := range words {
		if p.word(k) != w {
			return false
		}
	}
	return true
}

// reader reads the lists, one after the other.
type reader struct {
	file string
	at   int
}

func (r *reader) number() int {
	r.at += 2
	return int(le16(r.file, r.at-2))
}

func (r *reader) bits() uint64 {
	r.at += 8
	return le64(r.file, r.at-8)
}

func (r *reader) text() string {
	n := r.number()
	r.at += n
	return r.file[r.at-n : r.at]
}

func (r *reader) texts() []string {
	out := make([]string, r.number())
	for i := range out {
		out[i] = r.text()
	}
	return out
}

// pairs reads keys, then the text of each.
func (r *reader) pairs() map[string]string {
	keys := r.texts()
	out := make(map[string]string, len(keys))
	for _, k := range keys {
		out[k] = r.text()
	}
	return out
}
