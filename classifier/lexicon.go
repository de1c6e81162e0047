package classifier

import (
	"cmp"
	"embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed lexicon/*.txt
var lexiconFiles embed.FS

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
	languagePT = 4
	languageZH = 8
	languageJA = 9
)

// entry is what a language knows of a word or phrase: its kind, the families
// of actions that it may name, or both ("cancel").
type entry struct {
	kind  kind
	verbs uint64 // bit per family
}

type phrase struct {
	rest []string // the words after the first
	entry
}

// table is one language.
type table struct {
	words   wordMap[entry]
	phrases map[string][]phrase // by first word, longest first
	clitics bool                // pronouns hang on verbs
}

// lexicon is everything that was read from lexicon/.
type lexicon struct {
	tables   []table         // by index in languages
	known    wordMap[uint16] // words to languages, bit per language
	own      wordMap[uint16] // the same, without what every language has in common
	cjk      *cjkSet
	verbs    wordMap[uint64] // any language; phrases joined by spaces
	nouns    wordMap[nounSet]
	special  wordMap[nounSet]  // groups that a label's word may be called by, not the other way round
	families map[string]int    // name of a verb family to its index
	verbNoun map[int]nounSet   // verb family index to groups
	numbers  map[string]string // number word to digits
	same     map[string]string // day, month or part of the day to its English name
	typo     []string          // assent words that a typo may be mended to
	swapped  []string          // words of four letters and more whose neighbours may be swapped back
	actions  []action          // words of five letters and more that a slip of the finger may be mended to
	nearStop []string          // short negations and stop words that no mending may touch
	reasons  []reasonTable     // by index in languages
	remarks  remarkWords
	topics   topicWords
	anyTopic uint64 // topics that every label has

	bits        familyBits
	headers     []headerSet
	tapbacks    []tapbackForm
	signatures  []string
	autoReplies []string
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

func (l *lexicon) familyBits(names ...string) uint64 {
	var bits uint64
	for _, n := range names {
		i, ok := l.families[n]
		if !ok {
			panic("classifier: there is no verb family " + n)
		}
		bits |= 1 << i
	}
	return bits
}

// words is the lexicon, read at its first use.
var words = sync.OnceValue(loadLexicon)

// Load reads the lexicon, unless it has been read. It takes a tenth of a second, which the first message would wait for.
func Load() { words() }

func loadLexicon() *lexicon {
	l := &lexicon{
		tables:   make([]table, len(languages)),
		known:    newWordMap[uint16](1 << 16),
		own:      newWordMap[uint16](1 << 15),
		cjk:      &cjkSet{words: newWordMap[struct{}](0)},
		verbs:    newWordMap[uint64](1 << 16),
		nouns:    newWordMap[nounSet](1 << 12),
		special:  newWordMap[nounSet](0),
		families: map[string]int{},
		verbNoun: map[int]nounSet{},
		numbers:  map[string]string{},
		same:     map[string]string{},
	}
	for i := range l.tables {
		l.tables[i] = table{words: newWordMap[entry](1 << 12), phrases: map[string][]phrase{},
			clitics: languages[i] == "es" || languages[i] == "it" || languages[i] == "pt"}
	}
	ahead := readAhead("verbs", languages[:]...)
	l.loadVerbs(<-ahead["verbs"])
	l.bits = familyBits{
		pay: l.familyBits("pay"), block: l.familyBits("block"),
		tells:    l.familyBits("send", "remind", "publish", "forward", "call"),
		sends:    l.familyBits("send", "pay", "forward", "publish", "invite"),
		loses:    l.familyBits("delete", "cancel", "pause", "close"),
		personal: l.familyBits("invite", "grant", "join", "lend", "hiring", "accept", "assign"),
		timed:    l.familyBits("send", "pay", "publish", "forward", "call", "run"),
	}
	for i, lang := range languages {
		l.loadKinds(i, <-ahead[lang])
	}
	for w, in := range l.known.open {
		l.own.open[w] = in
	}
	l.inflectPraise()
	common := readSections("common")
	for i := range languages {
		l.loadKinds(i, common)
	}
	for i := range l.tables {
		for first, ps := range l.tables[i].phrases {
			l.tables[i].phrases[first] = longestFirst(ps)
		}
	}
	l.loadNouns()
	l.loadNumbers()
	l.loadSame()
	l.loadReasons()
	l.loadComments()
	l.loadTypos()
	l.loadForms()
	l.close()
	return l
}

// close makes the maps of words small, when all of the lexicon is read.
func (l *lexicon) close() {
	maps := []interface{ close() }{&l.known, &l.own, &l.cjk.words, &l.verbs, &l.nouns, &l.special, &l.remarks, &l.topics}
	for i := range l.tables {
		maps = append(maps, &l.tables[i].words)
	}
	var wg sync.WaitGroup
	for _, m := range maps {
		wg.Go(m.close)
	}
	wg.Wait()
}

// lines gives the lines of a lexicon file without comments; files are ours, so
// a missing one is a build mistake.
func lines(name string) []string {
	b, err := lexiconFiles.ReadFile(path.Join("lexicon", name+".txt"))
	if err != nil {
		panic("classifier: lexicon file " + name + " is missing from the build")
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "# ")
		if line = strings.TrimSpace(line); line != "" && line != "#" {
			out = append(out, line)
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

// section is a part of a lexicon file, and the lists below its name.
type section struct {
	name  string
	lists []list
}

// list is one line: of the language before the colon, where there is one.
type list struct {
	lang    string
	entries []listed
}

// listed is an entry; words are what it is split into, nil where that takes more than its spaces.
type listed struct {
	text  string
	words []string
}

// readAhead reads files while what was read before goes into the lexicon.
func readAhead(first string, others ...string) map[string]<-chan []section {
	out := map[string]<-chan []section{}
	for _, name := range append([]string{first}, others...) {
		c := make(chan []section, 1)
		out[name] = c
		go func() { c <- readSections(name) }()
	}
	return out
}

// readSections reads a file of sections. It is half of the work of loading one.
func readSections(name string) []section {
	var out []section
	for _, line := range lines(name) {
		if strings.HasPrefix(line, "[") {
			out = append(out, section{name: strings.Trim(line, "[]")})
			continue
		}
		if len(out) == 0 {
			panic("classifier: lexicon " + name + " begins without a section")
		}
		lang, rest, of := strings.Cut(line, ":")
		if !of {
			lang, rest = "", line
		}
		read := list{lang: lang}
		for _, e := range entries(rest) {
			l := listed{text: e}
			if isPlainWords(e) {
				l.words = strings.Fields(e) // most are, and need no folding
			}
			read.entries = append(read.entries, l)
		}
		s := &out[len(out)-1]
		s.lists = append(s.lists, read)
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

// isPlainCJK says whether an entry is of Han letters and kana alone that are folded already.
func isPlainCJK(e string) bool {
	for _, r := range e {
		switch {
		case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3041 && r <= 0x3096, r >= 0x30A1 && r <= 0x30FA, r == 'ー':
		default:
			return false
		}
	}
	return true
}

// split gives the words of an entry as a reply would be split.
func (l *lexicon) split(e string) []string {
	if isPlainWords(e) {
		return strings.Fields(e) // most are, and need no folding
	}
	f := e
	if !isPlainCJK(e) {
		f = fold(e)
	}
	if strings.IndexFunc(f, func(r rune) bool { return !isCJK(r) }) < 0 {
		l.cjk.add(f)
		return []string{f}
	}
	toks, _ := tokenize(nil, f, maxTokens, l.cjk)
	out := make([]string, len(toks))
	for i, t := range toks {
		out[i] = t.text
	}
	return out
}

func (l *lexicon) put(lang int, e listed, add entry) (words []string) {
	ws := e.words
	if ws == nil {
		ws = l.split(e.text)
	}
	if len(ws) == 0 {
		return nil
	}
	t := &l.tables[lang]
	if len(ws) == 1 {
		t.words.open[ws[0]] = merged(t.words.open[ws[0]], add)
	} else {
		t.phrases[ws[0]] = append(t.phrases[ws[0]], phrase{rest: ws[1:], entry: add})
	}
	for _, w := range ws {
		l.known.open[w] |= 1 << lang
	}
	return ws
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

func (l *lexicon) loadKinds(lang int, all []section) {
	for _, s := range all {
		i := slices.Index(kindNames[:], s.name)
		if i <= 0 {
			panic("classifier: lexicon " + languages[lang] + " has a section " + s.name)
		}
		for _, list := range s.lists {
			for _, e := range list.entries {
				l.put(lang, e, entry{kind: kind(i)})
			}
		}
	}
}

// inflectPraise adds the forms of adjectives that approve, for gender and
// number, where the language does not use the word otherwise: "perfecta",
// "richtige".
func (l *lexicon) inflectPraise() {
	for i, lang := range languages {
		t := &l.tables[i]
		var bases []string
		for w, e := range t.words.open {
			if e.kind == kindApprove && len(w) >= 4 && isPlainASCII(w) {
				bases = append(bases, w)
			}
		}
		for _, w := range bases {
			for _, form := range praise(lang, w) {
				if _, taken := t.words.open[form]; !taken && t.phrases[form] == nil {
					t.words.open[form] = entry{kind: kindApprove}
					l.known.open[form] |= 1 << i
					l.own.open[form] |= 1 << i
				}
			}
		}
	}
}

func (l *lexicon) loadVerbs(all []section) {
	for _, s := range all {
		family := len(l.families)
		l.families[s.name] = family
		put := func(lang int, e listed) {
			key := strings.Join(l.put(lang, e, entry{verbs: 1 << family}), " ")
			l.verbs.open[key] |= 1 << family
		}
		for _, list := range s.lists {
			i := slices.Index(languages[:], list.lang)
			if i < 0 {
				panic("classifier: verbs has a language " + list.lang)
			}
			for _, e := range list.entries {
				verb, regular := strings.CutPrefix(e.text, "~")
				if !regular {
					put(i, e)
					continue
				}
				for _, f := range inflections(list.lang, fold(verb)) {
					put(i, listed{text: f})
				}
				if list.lang == "pt" {
					l.did(i, fold(verb))
				}
			}
		}
	}
}

// did puts the past of "I" of a Portuguese verb: it says that it has happened.
func (l *lexicon) did(lang int, verb string) {
	if s, ok := strings.CutSuffix(verb, "ar"); ok {
		l.put(lang, listed{text: soft(s, "c", "qu", "g", "gu") + "ei"}, entry{kind: kindStop})
	}
}

// loadNouns reads families of things, and the names of one thing in several
// languages. Of an entry of several words the small ones are left out: "de"
// names nothing.
func (l *lexicon) loadNouns() {
	group := 0
	for _, line := range slices.Concat(lines("nouns"), lines("things")) {
		_, list, _ := strings.Cut(line, ":")
		for _, e := range entries(list) {
			if verb, ok := strings.CutPrefix(e, "@"); ok {
				s := l.verbNoun[l.families[verb]]
				s.add(group)
				l.verbNoun[l.families[verb]] = s
				continue
			}
			e, labelOnly := strings.CutPrefix(e, ">")
			ws := l.split(e)
			for _, w := range ws {
				if labelOnly {
					s := l.special.at(w)
					s.add(group)
					l.special.open[w] = s
					continue
				}
				if len(ws) > 1 && (len(w) < 4 || l.small(w)) {
					continue
				}
				s := l.nouns.at(w)
				s.add(group)
				l.nouns.open[w] = s
			}
		}
		group++
	}
}

// small says whether the word is a function word of some language.
func (l *lexicon) small(w string) bool {
	for i := range l.tables {
		if l.tables[i].words.at(w).kind == kindFunction {
			return true
		}
	}
	return false
}

// nounSet is a set of groups of things.
type nounSet [14]uint64

func (s *nounSet) add(group int) { s[group/64] |= 1 << (group % 64) }

func (s *nounSet) join(o nounSet) {
	for i := range s {
		s[i] |= o[i]
	}
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

func (l *lexicon) loadNumbers() {
	for _, line := range lines("numbers") {
		n, list, _ := strings.Cut(line, ":")
		for _, e := range entries(list) {
			for _, w := range l.split(e) {
				l.numbers[w] = n
			}
		}
	}
	for w, n := range madeNumbers() {
		l.numbers[w] = strconv.Itoa(n)
		if isCJK([]rune(w)[0]) {
			l.cjk.add(w)
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

func (l *lexicon) loadSame() {
	for _, line := range lines("same") {
		name, list, _ := strings.Cut(line, ":")
		l.same[name] = name
		for _, e := range entries(list) {
			if ws := l.split(e); len(ws) == 1 {
				l.same[ws[0]] = name
			}
		}
	}
}

// loadTypos collects which words a typo may be mended to: assent, and the
// words of go-ahead, of at least five letters; and what it must stay away from.
func (l *lexicon) loadTypos() {
	for _, lang := range []int{0, 1, 2, 3, 4, 5, 6} {
		for w, e := range l.tables[lang].words.open {
			switch {
			case e.kind == kindAssent && len(w) >= 5, e.kind == kindApprove && len(w) >= 7, e.kind == kindCourtesy && w == "please":
				l.typo = append(l.typo, w)
			case (e.kind == kindNegation || e.kind == kindStop) && len(w) >= 3:
				l.nearStop = append(l.nearStop, w)
			}
		}
	}
	for _, lang := range []int{0} {
		for w, e := range l.tables[lang].words.open {
			if len(w) >= 4 && e != (entry{}) {
				l.swapped = append(l.swapped, w)
			}
		}
	}
	for lang := range 7 {
		for w, e := range l.tables[lang].words.open {
			if e.verbs != 0 && len(w) >= 4 && isPlainASCII(w) {
				l.actions = append(l.actions, action{w, e.verbs})
			}
		}
	}
	slices.SortFunc(l.actions, func(a, b action) int { return strings.Compare(a.word, b.word) })
	slices.Sort(l.swapped)
	l.typo = append(l.typo, "ahead", "proceed", "sounds", "correct")
	slices.Sort(l.typo)
	l.typo = slices.Compact(l.typo)
	slices.Sort(l.nearStop)
	l.nearStop = slices.Compact(l.nearStop)
}

// match finds the longest entry of a language at toks[i]. It does not look
// across the end of a sentence. n is 0 if there is none.
func (t *table) match(toks []token, i int) (e entry, n int) {
	for _, p := range t.phrases[toks[i].text] {
		if len(p.rest) >= len(toks)-i {
			continue
		}
		ok := true
		for k, w := range p.rest {
			if tk := &toks[i+1+k]; tk.text != w || tk.start {
				ok = false
				break
			}
		}
		if ok {
			return p.entry, len(p.rest) + 1
		}
	}
	if e, ok := t.words.get(toks[i].text); ok {
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
				if e, ok := t.words.get(base); ok && e.verbs != 0 {
					return e
				}
				if e, ok := t.words.get(base + "e"); ok && e.verbs != 0 { // mandar(e)lo
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

// action is a verb with its families.
type action struct {
	word  string
	verbs uint64
}

// mendAction gives a token that nothing knows the action of the label that it
// was meant for: two letters swapped, one left out or one too many, the first
// letter right. "delte" is "delete" where something is to be deleted.
func (l *lexicon) mendAction(w string, verbs uint64) (string, bool) {
	if verbs == 0 || len(w) < 4 || !isPlainASCII(w) || isGivenName(w) {
		return "", false
	}
	i, _ := slices.BinarySearchFunc(l.actions, w[:1], func(a action, first string) int { return strings.Compare(a.word, first) })
	for ; i < len(l.actions) && l.actions[i].word[0] == w[0]; i++ {
		a := l.actions[i]
		if a.verbs&verbs != 0 && oneSlip(w, a.word) && (len(w) != len(a.word) && !endsApart(w, a.word) || len(w) == len(a.word) && swaps(w, a.word)) && len(w)+len(a.word) > 8 {
			return a.word, true
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
		if _, ok := l.known.get(string(b)); ok {
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
