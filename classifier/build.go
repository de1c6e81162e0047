package classifier

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// BuildLexicon makes the file of the lexicon, lexicon/words.bin, from the lists in a folder. The same lists always make the
// same bytes. Its error names the list and the line. It is for the command that writes the file; see lexicon/README.md.
func BuildLexicon(files fs.FS) ([]byte, error) {
	b := newBuilder(files)
	b.load()
	if b.err != nil {
		return nil, b.err
	}
	return b.encode()
}

// builder holds the lists while they are read.
type builder struct {
	files fs.FS
	err   error // the first; what comes after one means nothing

	tables   []openTable       // by index in languages
	known    map[string]uint16 // words to languages, bit per language
	own      map[string]uint16 // the same, without what every language has in common
	cjk      *cjkSet
	nouns    map[string]nounSet
	special  map[string]nounSet // groups that a label's word may be called by, not the other way round
	families []string           // names, by index
	verbNoun map[int]nounSet    // verb family to groups
	numbers  map[string]string
	same     map[string]string
	reasons  []map[string][]phrase // by index in languages
	remarks  map[string]uint64
	topics   map[string]uint64
	anyTopic uint64

	headers     []headerSet
	tapbacks    []tapbackForm
	signatures  []string
	autoReplies []string
	answers     []string // small words that are a whole answer beside a yes
}

// openTable is one language.
type openTable struct {
	words   map[string]entry
	phrases map[string][]phrase // by first word
}

// phrase is an entry of several words, or one of reasons.txt, whose part in a reason it holds.
type phrase struct {
	rest []string // the words after the first
	entry
	part reasonPart
}

func newBuilder(files fs.FS) *builder {
	b := &builder{
		files:    files,
		tables:   make([]openTable, len(languages)),
		known:    map[string]uint16{},
		cjk:      &cjkSet{open: map[string]bool{}},
		nouns:    map[string]nounSet{},
		special:  map[string]nounSet{},
		verbNoun: map[int]nounSet{},
		numbers:  map[string]string{},
		same:     map[string]string{},
		reasons:  make([]map[string][]phrase, len(languages)),
		remarks:  map[string]uint64{},
		topics:   map[string]uint64{},
	}
	for i := range languages {
		b.tables[i] = openTable{words: map[string]entry{}, phrases: map[string][]phrase{}}
		b.reasons[i] = map[string][]phrase{}
	}
	return b
}

// load reads all lists. Their order matters: what is split into words later is split by the words that were read before.
func (b *builder) load() {
	for _, read := range []func(){
		b.loadVerbs, b.loadLanguages, b.loadNouns, b.loadNumbers, b.loadSame, b.loadReasons, b.loadComments, b.loadTopics, b.loadForms, b.loadAnswers,
	} {
		if read(); b.err != nil {
			return
		}
	}
}

func (b *builder) loadLanguages() {
	for i, lang := range languages {
		b.loadKinds(i, lang)
	}
	b.own = maps.Clone(b.known)
	b.inflectPraise()
	for i := range languages {
		b.loadKinds(i, "common")
	}
	for i := range b.tables {
		for first, ps := range b.tables[i].phrases {
			b.tables[i].phrases[first] = longestFirst(ps)
		}
	}
}

// line is a line of a list without its comment.
type line struct {
	list string
	n    int // from 1
	text string
}

// fail keeps the first mistake.
func (b *builder) fail(at line, format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("classifier: lexicon/%s.txt:%d: %s", at.list, at.n, fmt.Sprintf(format, args...))
	}
}

// lines gives the lines of a list that say something.
func (b *builder) lines(list string) []line {
	text, err := fs.ReadFile(b.files, list+".txt")
	if err != nil {
		if b.err == nil {
			b.err = fmt.Errorf("classifier: lexicon: %w", err)
		}
		return nil
	}
	var out []line
	n := 0
	for text := range strings.Lines(string(text)) {
		n++
		text, _, _ = strings.Cut(text, "# ")
		if text = strings.TrimSpace(text); text != "" && text != "#" {
			out = append(out, line{list, n, text})
		}
	}
	return out
}

func entries(line string) []string {
	var out []string
	for _, e := range strings.Split(line, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// listed is a line with its section and what stands before its colon, which is the language in most lists.
type listed struct {
	line
	section string
	code    string
	lang    int // -1 for none
	entries []string
}

// sections reads a list of sections.
func (b *builder) sections(list string) []listed {
	var out []listed
	section := ""
	for _, at := range b.lines(list) {
		if strings.HasPrefix(at.text, "[") {
			section = strings.Trim(at.text, "[]")
			continue
		}
		if section == "" {
			b.fail(at, "stands before the first section")
		}
		code, rest, of := strings.Cut(at.text, ":")
		if !of {
			code, rest = "", at.text
		}
		out = append(out, listed{line: at, section: section, code: code, lang: slices.Index(languages[:], code), entries: entries(rest)})
	}
	return out
}

// isPlainWords says whether an entry is of spaces and small letters alone, Latin or Devanagari, that are folded already.
func isPlainWords(e string) bool {
	for _, r := range e {
		switch {
		case r == ' ', r >= 'a' && r <= 'z':
		case r >= 0x0900 && r <= 0x094D && r != 0x0929 && r != 0x0931 && r != 0x0934 && r != 0x093C:
		default:
			return false
		}
	}
	return true
}

// split gives the words of an entry as a reply would be split.
func (b *builder) split(at line, e string) []string {
	ws := b.splitFolded(e)
	for _, w := range ws {
		if w == "" || len(w) > maxWord {
			b.fail(at, "%q is a word of %d bytes, and at most %d are of use", w, len(w), maxWord)
		}
	}
	return ws
}

func (b *builder) splitFolded(e string) []string {
	if isPlainWords(e) {
		return strings.Fields(e) // most are, and need no folding
	}
	f := fold(e)
	if strings.IndexFunc(f, func(r rune) bool { return !isCJK(r) }) < 0 {
		b.cjk.add(f)
		return []string{f}
	}
	toks, _ := tokenize(nil, f, maxTokens, b.cjk)
	out := make([]string, len(toks))
	for i, t := range toks {
		out[i] = t.text
	}
	return out
}

func (b *builder) put(at line, lang int, e string, add entry) {
	ws := b.split(at, e)
	if len(ws) == 0 {
		return
	}
	t := &b.tables[lang]
	if len(ws) == 1 {
		t.words[ws[0]] = merged(t.words[ws[0]], add)
	} else {
		t.phrases[ws[0]] = append(t.phrases[ws[0]], phrase{rest: ws[1:], entry: add})
	}
	for _, w := range ws {
		b.known[w] |= 1 << lang
	}
}

// longestFirst sorts phrases with the same first word, and makes one of those that are the same.
func longestFirst(ps []phrase) []phrase {
	slices.SortFunc(ps, func(a, b phrase) int { return cmp.Or(len(b.rest)-len(a.rest), slices.Compare(a.rest, b.rest)) })
	out := ps[:0]
	for _, p := range ps {
		if n := len(out) - 1; n >= 0 && slices.Equal(out[n].rest, p.rest) {
			out[n].entry = merged(out[n].entry, p.entry)
			continue
		}
		out = append(out, p)
	}
	return slices.Clip(out)
}

func merged(a, b entry) entry {
	return entry{kind: max(a.kind, b.kind), verbs: a.verbs | b.verbs}
}

func (b *builder) loadKinds(lang int, list string) {
	for _, s := range b.sections(list) {
		i := slices.Index(kindNames[:], s.section)
		if i <= 0 {
			b.fail(s.line, "there is no kind %q", s.section)
			return
		}
		for _, e := range s.entries {
			b.put(s.line, lang, e, entry{kind: kind(i)})
		}
	}
}

// inflectPraise adds the forms of adjectives that approve, for gender and
// number, where the language does not use the word otherwise: "perfecta",
// "richtige".
func (b *builder) inflectPraise() {
	for i, lang := range languages {
		t := &b.tables[i]
		var bases []string
		for w, e := range t.words {
			if e.kind == kindApprove && len(w) >= 4 && isPlainASCII(w) {
				bases = append(bases, w)
			}
		}
		for _, w := range bases {
			for _, form := range praise(lang, w) {
				if _, taken := t.words[form]; !taken && t.phrases[form] == nil {
					t.words[form] = entry{kind: kindApprove}
					b.known[form] |= 1 << i
					b.own[form] |= 1 << i
				}
			}
		}
	}
}

func (b *builder) loadVerbs() {
	for _, s := range b.sections("verbs") {
		family := slices.Index(b.families, s.section)
		if family < 0 {
			if family = len(b.families); family == 64 {
				b.fail(s.line, "there are more than 64 families of verbs")
				return
			}
			b.families = append(b.families, s.section)
		}
		if s.lang < 0 {
			b.fail(s.line, "there is no language %q", s.code)
			return
		}
		put := func(e string) { b.put(s.line, s.lang, e, entry{verbs: 1 << family}) }
		for _, e := range s.entries {
			verb, regular := strings.CutPrefix(e, "~")
			if !regular {
				put(e)
				continue
			}
			for _, f := range inflections(s.code, fold(verb)) {
				put(f)
			}
			if s.code == "pt" {
				b.did(s, fold(verb))
			}
		}
	}
}

// did puts the past of "I" of a Portuguese verb: it says that it has happened.
func (b *builder) did(s listed, verb string) {
	if stem, ok := strings.CutSuffix(verb, "ar"); ok {
		b.put(s.line, s.lang, soft(stem, "c", "qu", "g", "gu")+"ei", entry{kind: kindStop})
	}
}

// familyBits are the families of those names.
func (b *builder) familyBits(names ...string) (bits uint64) {
	for _, n := range names {
		i := slices.Index(b.families, n)
		if i < 0 {
			b.fail(line{list: "verbs"}, "there is no family %q, which the guards ask for", n)
			return 0
		}
		bits |= 1 << i
	}
	return bits
}

func (b *builder) allFamilyBits() familyBits {
	return familyBits{
		pay: b.familyBits("pay"), block: b.familyBits("block"),
		tells:    b.familyBits("send", "remind", "publish", "forward", "call"),
		sends:    b.familyBits("send", "pay", "forward", "publish", "invite"),
		loses:    b.familyBits("delete", "cancel", "pause", "close"),
		personal: b.familyBits("invite", "grant", "join", "lend", "hiring", "accept", "assign"),
		timed: b.familyBits("send", "pay", "publish", "forward", "call", "run", "open", "close", "play", "pause", "lower", "raise", "mute", "water",
			"charge", "clean", "restarting", "backup", "print"),
	}
}

// loadNouns reads families of things, and the names of one thing in several
// languages. Of an entry of several words the small ones are left out: "de"
// names nothing.
func (b *builder) loadNouns() {
	for group, at := range slices.Concat(b.lines("nouns"), b.lines("things")) {
		if group == maxGroups {
			b.fail(at, "there are more than %d groups of things", maxGroups)
			return
		}
		_, list, _ := strings.Cut(at.text, ":")
		for _, e := range entries(list) {
			if verb, ok := strings.CutPrefix(e, "@"); ok {
				family := slices.Index(b.families, verb)
				if family < 0 {
					b.fail(at, "there is no family of verbs %q", verb)
					return
				}
				addGroup(b.verbNoun, family, group)
				continue
			}
			e, labelOnly := strings.CutPrefix(e, ">")
			ws := b.split(at, e)
			for _, w := range ws {
				switch {
				case labelOnly:
					addGroup(b.special, w, group)
				case len(ws) > 1 && (len(w) < 4 || b.small(w)):
				default:
					addGroup(b.nouns, w, group)
				}
			}
		}
	}
}

func addGroup[K comparable](to map[K]nounSet, key K, group int) {
	s := to[key]
	s.add(group)
	to[key] = s
}

// small says whether the word is a function word of some language.
func (b *builder) small(w string) bool {
	for i := range b.tables {
		if b.tables[i].words[w].kind == kindFunction {
			return true
		}
	}
	return false
}

func (b *builder) loadNumbers() {
	for _, at := range b.lines("numbers") {
		n, list, _ := strings.Cut(at.text, ":")
		for _, e := range entries(list) {
			for _, w := range b.split(at, e) {
				b.numbers[w] = n
			}
		}
	}
	for w, n := range madeNumbers() {
		b.numbers[w] = strconv.Itoa(n)
		if isCJK([]rune(w)[0]) {
			b.cjk.add(w)
		}
	}
}

// madeNumbers gives the number words that are made in one word from smaller
// ones: "二十五", "三千", "fünfundzwanzig", "vijfentwintig".
func madeNumbers() map[string]int {
	out := map[string]int{}
	digits := []string{"", "一", "二", "三", "四", "五", "六", "七", "八", "九"}
	for t := range 10 {
		for u := range 10 {
			switch {
			case t == 1:
				out["十"+digits[u]] = 10 + u
			case t > 1:
				out[digits[t]+"十"+digits[u]] = 10*t + u
			}
		}
		if t > 0 {
			for unit, n := range map[string]int{"百": 100, "千": 1000, "万": 10000} {
				out[digits[t]+unit] = t * n
			}
		}
	}
	for unit, n := range map[string]int{"百": 100, "千": 1000, "万": 10000} {
		out["两"+unit] = 2 * n
		if n < 10000 {
			out[unit] = n
		}
	}
	tens := [...]struct{ de, nl string }{{}, {}, {"zwanzig", "twintig"}, {"dreissig", "dertig"}, {"vierzig", "veertig"}, {"funfzig", "vijftig"},
		{"sechzig", "zestig"}, {"siebzig", "zeventig"}, {"achtzig", "tachtig"}, {"neunzig", "negentig"}}
	units := [...]struct{ de, nl string }{{}, {"ein", "een"}, {"zwei", "twee"}, {"drei", "drie"}, {"vier", "vier"}, {"funf", "vijf"},
		{"sechs", "zes"}, {"sieben", "zeven"}, {"acht", "acht"}, {"neun", "negen"}}
	for t := 2; t < 10; t++ {
		for u := 1; u < 10; u++ {
			out[units[u].de+"und"+tens[t].de] = 10*t + u
			out[units[u].nl+"en"+tens[t].nl] = 10*t + u
		}
	}
	return out
}

// loadAnswers reads small words as the analysis puts a clause's together: folded, with single spaces.
func (b *builder) loadAnswers() {
	for _, s := range b.sections("answers") {
		if s.section != "answer" || s.lang < 0 {
			b.fail(s.line, "there is no section %q for a language %q", s.section, s.code)
			return
		}
		for _, e := range s.entries {
			b.answers = append(b.answers, fold(e))
		}
	}
}

func (b *builder) loadSame() {
	for _, at := range b.lines("same") {
		name, list, _ := strings.Cut(at.text, ":")
		b.same[name] = name
		for _, e := range entries(list) {
			if ws := b.split(at, e); len(ws) == 1 {
				b.same[ws[0]] = name
			}
		}
	}
}

// typos gives the words that a typo may be mended to: assent, and the
// words of go-ahead, of at least five letters; and what it must stay away from.
func (b *builder) typos() (typo, nearStop []string) {
	typo = []string{"ahead", "proceed", "sounds", "correct"}
	for lang := range mendedLanguages {
		for w, e := range b.tables[lang].words {
			switch {
			case e.kind == kindAssent && len(w) >= 5, e.kind == kindApprove && len(w) >= 7, e.kind == kindCourtesy && w == "please":
				typo = append(typo, w)
			case (e.kind == kindNegation || e.kind == kindStop) && len(w) >= 3:
				nearStop = append(nearStop, w)
			}
		}
	}
	return sorted(typo), sorted(nearStop)
}

// swapped are the English words whose neighbouring letters may be swapped back.
func (b *builder) swapped() (out []string) {
	for w := range b.tables[0].words {
		if len(w) >= 4 {
			out = append(out, w)
		}
	}
	return sorted(out)
}

// actions are the words that a slip of the finger may be mended to.
func (b *builder) actions() map[string]uint64 {
	out := map[string]uint64{}
	for lang := range mendedLanguages {
		for w, e := range b.tables[lang].words {
			if e.verbs != 0 && len(w) >= 4 && isPlainASCII(w) {
				out[w] |= e.verbs
			}
		}
	}
	return out
}

// mendedLanguages are the first so many: those in Latin letters.
const mendedLanguages = 7

func sorted(ws []string) []string {
	slices.Sort(ws)
	return slices.Compact(ws)
}

// word is all that the lists say of one.
type word struct {
	known, own             uint16
	cjk, function          bool
	remarks, topics, verbs uint64
	nouns, special         nounSet
	entries                [len(languages)]entry
}

func (b *builder) word(w string) word {
	out := word{
		known: b.known[w], own: b.own[w], cjk: b.cjk.open[w], function: b.small(w),
		remarks: b.remarks[w], topics: b.topics[w], nouns: b.nouns[w], special: b.special[w],
	}
	for i := range b.tables {
		out.entries[i] = b.tables[i].words[w]
		out.verbs |= out.entries[i].verbs
	}
	return out
}

// words are all of them, the short ones, which are the most frequent, together.
func (b *builder) words() []string {
	all := map[string]bool{}
	for _, m := range []map[string]uint16{b.known, b.own} {
		for w := range m {
			all[w] = true
		}
	}
	for _, m := range []map[string]uint64{b.remarks, b.topics} {
		for w := range m {
			all[w] = true
		}
	}
	for _, m := range []map[string]nounSet{b.nouns, b.special} {
		for w := range m {
			all[w] = true
		}
	}
	for w := range b.cjk.open {
		all[w] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
}

// writer writes the file. A place of more than three bytes, or a number of more than two, is a mistake that it keeps.
type writer struct {
	b       []byte
	err     error
	bitsAt  map[uint64]int
	nounsAt map[nounSet]int
	words   map[string]int // places
}

func (w *writer) number(n int) {
	if n < 0 || n > math.MaxUint16 {
		w.err = cmp.Or(w.err, fmt.Errorf("classifier: the lexicon has a number %d, more than two bytes", n))
	}
	w.b = binary.LittleEndian.AppendUint16(w.b, uint16(n)) //nolint:gosec // checked above
}

func (w *writer) place(at int) {
	w.b = append(w.b, 0, 0, 0)
	w.setPlace(len(w.b)-placeSize, at)
}

func (w *writer) setPlace(i, at int) {
	if at < 0 || at > maxPlace {
		w.err = cmp.Or(w.err, fmt.Errorf("classifier: the lexicon is longer than %d bytes", maxPlace))
	}
	w.b[i], w.b[i+1], w.b[i+2] = byte(at), byte(at>>8), byte(at>>16)
}

// wordAt is the place of a word.
func (w *writer) wordAt(text string) int {
	at := w.words[text]
	if at == 0 {
		w.err = cmp.Or(w.err, fmt.Errorf("classifier: the lexicon has %q in a phrase, and not as a word", text))
	}
	return at
}

func (w *writer) set32(i int, v uint32) { binary.LittleEndian.PutUint32(w.b[i:], v) }

func (w *writer) bits(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

func (w *writer) flag(is bool) {
	n := 0
	if is {
		n = 1
	}
	w.number(n)
}

// actions writes them in the order of their words; they are read in place.
func (w *writer) actions(all map[string]uint64) {
	w.number(len(all))
	for _, a := range slices.Sorted(maps.Keys(all)) {
		w.place(w.wordAt(a))
		w.place(w.bitsAt[all[a]])
	}
}

func (w *writer) text(s string) {
	w.number(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) texts(all []string) {
	w.number(len(all))
	for _, s := range all {
		w.text(s)
	}
}

// addBits writes bits unless they have been, and gives their place.
func (w *writer) addBits(v uint64) int {
	if v == 0 {
		return 0
	}
	if w.bitsAt[v] == 0 {
		w.bitsAt[v] = len(w.b)
		w.bits(v)
	}
	return w.bitsAt[v]
}

func (w *writer) addNouns(s nounSet) int {
	if s.empty() {
		return 0
	}
	if w.nounsAt[s] == 0 {
		w.nounsAt[s] = len(w.b)
		groups := s.groups()
		if len(groups) > math.MaxUint8 {
			w.err = cmp.Or(w.err, fmt.Errorf("classifier: a word of the lexicon names %d groups of things", len(groups)))
		}
		w.b = append(w.b, byte(len(groups)))
		for _, g := range groups {
			w.number(g)
		}
	}
	return w.nounsAt[s]
}

// addRecord writes what a word is, and gives its place.
func (w *writer) addRecord(is word) int {
	in, entries := uint16(0), []byte(nil)
	verbs, remarks, topics := w.addBits(is.verbs), w.addBits(is.remarks), w.addBits(is.topics)
	nouns, special := w.addNouns(is.nouns), w.addNouns(is.special)
	for i, e := range is.entries {
		if e == (entry{}) {
			continue
		}
		in |= 1 << i
		at := w.addBits(e.verbs)
		entries = append(entries, byte(e.kind), byte(at), byte(at>>8), byte(at>>16)) //nolint:gosec // bytes of a place; the words behind it are checked
	}
	if is.cjk {
		in |= isWordCJK
	}
	if is.function {
		in |= isWordFunction
	}
	at := len(w.b)
	w.number(int(is.known))
	w.number(int(is.own))
	w.number(int(in))
	for _, place := range []int{verbs, remarks, topics, nouns, special} {
		w.place(place)
	}
	w.b = append(w.b, entries...)
	return at
}

// addPhrases writes those of one group that begin with the same word.
func (w *writer) addPhrases(group uint8, ps []phrase) {
	if len(ps) == 0 {
		return
	}
	bySecond := map[int][]phrase{} // by place; 0 for those of one word
	for _, p := range ps {
		second := 0
		if len(p.rest) > 0 {
			second = w.wordAt(p.rest[0])
		}
		bySecond[second] = append(bySecond[second], p)
	}
	seconds := slices.Sorted(maps.Keys(bySecond))
	w.b = append(w.b, group)
	size := len(w.b)
	w.place(0)
	w.number(len(seconds))
	index := len(w.b)
	w.b = append(w.b, make([]byte, secondSize*len(seconds))...)
	first := len(w.b)
	for i, second := range seconds {
		for _, p := range bySecond[second] {
			w.b = append(w.b, byte(len(p.rest)), max(byte(p.kind), byte(p.part))) //nolint:gosec // an entry has at most maxTokens words
			w.place(w.bitsAt[p.verbs])
			for k := 1; k < len(p.rest); k++ {
				w.place(w.wordAt(p.rest[k]))
			}
		}
		w.setPlace(index+secondSize*i, second)
		w.setPlace(index+secondSize*i+placeSize, len(w.b)-first)
	}
	w.setPlace(size, len(w.b)-size-placeSize)
}

// encode writes the file; see dictionary.
func (b *builder) encode() ([]byte, error) {
	all := b.words()
	slots := 2*len(all) + 1 // half of them free
	w := &writer{b: make([]byte, headerSize+4*slots), bitsAt: map[uint64]int{}, nounsAt: map[nounSet]int{}, words: map[string]int{}}
	for _, text := range all {
		w.words[text] = len(w.b)
		w.b = append(w.b, byte(len(text)), 0, 0, 0, 0, 0, 0) //nolint:gosec // split has checked it
		w.b = append(w.b, text...)
	}
	for _, text := range all {
		h := hashWord(text)
		i := slot(h, uint64(slots)) //nolint:gosec // not negative
		for le32(string(w.b[headerSize+4*i:][:4]), 0) != 0 {
			i = (i + 1) % uint64(slots) //nolint:gosec // not negative
		}
		w.set32(headerSize+4*int(i), uint32(w.words[text])<<8|uint32(uint8(h))) //nolint:gosec // below the number of slots; a piece of the hash
	}
	records := map[word]int{}
	for _, text := range all {
		is := b.word(text)
		if records[is] == 0 {
			records[is] = w.addRecord(is)
		}
		w.setPlace(w.words[text]+wordRecord, records[is])
	}
	actions := b.actions()
	for _, verbs := range b.phraseVerbs(actions) {
		w.addBits(verbs)
	}
	for _, text := range all {
		at := len(w.b)
		for i := range b.tables {
			w.addPhrases(uint8(i), b.tables[i].phrases[text]) //nolint:gosec // a language
		}
		for i := range b.reasons {
			w.addPhrases(groupReasons+uint8(i), b.reasons[i][text]) //nolint:gosec // a language
		}
		if len(w.b) > at {
			w.b = append(w.b, groupEnd)
			w.setPlace(w.words[text]+wordPhrases, at)
		}
	}
	w.set32(headerLists, uint32(len(w.b))) //nolint:gosec // a file is not so long
	b.encodeLists(w)
	w.actions(actions)
	copy(w.b, lexiconMagic)
	w.set32(headerVersion, lexiconVersion)
	w.set32(headerLength, uint32(len(w.b))) //nolint:gosec // a file is not so long
	w.set32(headerSlots, uint32(slots))     //nolint:gosec // of the same file
	w.set32(headerSum, checksum(string(w.b)))
	return w.b, cmp.Or(b.err, w.err)
}

// phraseVerbs are the families of phrases and of actions, each set of them once.
func (b *builder) phraseVerbs(actions map[string]uint64) []uint64 {
	all := map[uint64]bool{}
	for _, t := range b.tables {
		for _, ps := range t.phrases {
			for _, p := range ps {
				all[p.verbs] = true
			}
		}
	}
	for _, verbs := range actions {
		all[verbs] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// encodeLists writes what is read at the start; openLexicon reads it.
func (b *builder) encodeLists(w *writer) {
	w.number(b.cjk.max)
	w.bits(b.anyTopic)
	asked := b.allFamilyBits()
	for _, f := range asked.fields() {
		w.bits(*f)
	}
	w.texts(b.families)
	w.number(len(b.verbNoun))
	for _, family := range slices.Sorted(maps.Keys(b.verbNoun)) {
		w.number(family)
		groups := b.verbNoun[family].groups()
		w.number(len(groups))
		for _, g := range groups {
			w.number(g)
		}
	}
	for _, m := range []map[string]string{b.numbers, b.same} {
		keys := slices.Sorted(maps.Keys(m))
		w.texts(keys)
		for _, k := range keys {
			w.text(m[k])
		}
	}
	typo, nearStop := b.typos()
	w.texts(typo)
	w.texts(nearStop)
	w.texts(b.swapped())
	w.number(len(b.headers))
	for _, h := range b.headers {
		for _, names := range h {
			w.texts(names)
		}
	}
	w.number(len(b.tapbacks))
	for _, t := range b.tapbacks {
		w.number(int(t.kind))
		w.flag(t.removed)
		w.text(t.before)
		w.text(t.after)
	}
	w.texts(b.signatures)
	w.texts(b.autoReplies)
	w.texts(sorted(b.answers))
}
