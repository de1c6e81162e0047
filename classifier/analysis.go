package classifier

import (
	"context"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// item is one entry of the lexicon, label word, number or unknown token in a
// reply: tokens from up to to.
type item struct {
	kind     kind
	from, to int
}

// analysis is a reply taken apart once, for every guard.
type analysis struct {
	prepared Prepared
	own      string // prepared.Own
	offers   int
	tokens   []token
	more     bool // there were more tokens than maxTokens
	label    labelFacts
	items    []item
	language int // index in languages in which the items were read
}

// mend gives a token that nothing knows the word of the label of which two
// neighbouring letters are swapped: "balck" is "black" where the label has that.
func (f *labelFacts) mend(w string) (string, bool) {
	if len(w) < 4 || isGivenName(w) {
		return "", false
	}
	for i := range f.tokens {
		if t := &f.tokens[i]; t.kind == wordToken && len(t.text) == len(w) && t.text[0] == w[0] && oneSlip(w, t.text) && swaps(w, t.text) {
			return t.text, true
		}
	}
	return "", false
}

// labelFacts is what may be echoed: the words, actions, things and numbers of
// the one open offer. It is empty when there is not exactly one.
type labelFacts struct {
	text   string
	tokens []token
	verbs  uint64  // families of its action
	nouns  nounSet // groups of its things
	plain  bool    // its first word is in no family, so that word itself is the action

	codeLoses bool // it is code, some word of which loses something
}

func (f *labelFacts) has(w string) bool {
	for i := range f.tokens {
		if f.tokens[i].text == w {
			return true
		}
	}
	return false
}

// numbered says whether the label has a number.
func (f *labelFacts) numbered() bool {
	for i := range f.tokens {
		if f.tokens[i].kind == numberToken {
			return true
		}
	}
	return false
}

// toAll says whether the label is about everybody of a group.
func (f *labelFacts) toAll() bool {
	for _, w := range [...]string{"all", "everyone", "everybody", "team", "crew", "group", "staff", "members", "committee", "guests"} {
		if f.has(w) {
			return true
		}
	}
	return false
}

// echoes says whether w is a word of the label, give or take a plural or
// possessive s.
func (f *labelFacts) echoes(w string) bool {
	if f.has(w) {
		return true
	}
	if len(w) < 4 {
		return false
	}
	if s, ok := strings.CutSuffix(w, "s"); ok && f.has(s) {
		return true
	}
	for i := range f.tokens {
		if t := f.tokens[i].text; len(t) == len(w)+1 && t[len(w)] == 's' && t[:len(w)] == w {
			return true
		}
	}
	return false
}

func newLabelFacts(l *lexicon, label Label) labelFacts {
	f := labelFacts{text: label.String()}
	f.tokens, _ = tokenize(make([]token, 0, 24), fold(f.text), 48, l.cjk)
	if tag := l.tagOf(f.text); tag > 0 && tag < len(f.tokens) {
		// What stands behind a tag is the action; the tag may still be echoed.
		f.tokens = append(f.tokens[tag:len(f.tokens):len(f.tokens)], f.tokens[:tag]...)
	}
	// "A: pay …": the letter is a number in a list.
	if len(f.tokens) > 1 && utf8.RuneCountInString(f.tokens[0].text) == 1 && f.tokens[1].comma {
		f.tokens = f.tokens[1:]
	}
	if len(f.tokens) == 0 {
		return f
	}
	f.verbs = l.verbAt(f.tokens, 0)
	f.plain = f.verbs == 0
	if f.plain {
		// In some languages the action stands last.
		f.verbs = l.verbAt(f.tokens, len(f.tokens)-1)
	}
	if strings.Contains(f.text, " : ") || strings.Contains(f.text, "_") {
		l.readCode(&f)
	}
	if v := l.partedVerb(f.tokens); v != 0 {
		f.verbs = v
	}
	if f.tokens[0].text == "set" {
		f.verbs |= l.verbs.at("set") // "set alarm" is waking somebody, and setting
	}
	for i := range f.tokens {
		f.nouns.join(l.nouns.at(f.tokens[i].text))
		f.nouns.join(l.special.at(f.tokens[i].text))
	}
	for verbs := f.verbs; verbs != 0; verbs &= verbs - 1 {
		f.nouns.join(l.verbNoun[bits.TrailingZeros64(verbs)])
	}
	return f
}

// tagOf gives how many words a label has in round brackets in front of its action; 0 where it has none.
func (l *lexicon) tagOf(text string) int {
	tag, _, found := strings.Cut(text, ")")
	if !found || !strings.HasPrefix(tag, "(") {
		return 0
	}
	toks, _ := tokenize(nil, fold(tag), 48, l.cjk)
	return len(toks)
}

// readCode reads a label that is JSON, or the name of a function, whose brackets and quotes are gone: which of its words is the action
// is not certain, so that the first that may be it counts where the ends have none, and one anywhere that loses something makes
// the offer one that does.
func (l *lexicon) readCode(f *labelFacts) {
	for i := range f.tokens {
		v := l.verbAt(f.tokens, i)
		if f.verbs == 0 {
			f.verbs = v
		}
		f.codeLoses = f.codeLoses || v&l.bits.loses != 0
	}
}

// partedVerb gives the families of an action whose particle stands after its
// object: "sign Rosa up for swim club".
func (l *lexicon) partedVerb(toks []token) uint64 {
	switch toks[0].text {
	case "sign", "switch", "pick", "take", "shut":
	default:
		return 0
	}
	for k := 2; k < len(toks) && k <= 5; k++ {
		switch p := toks[k].text; p {
		case "up", "off", "on", "down", "out":
			return l.verbs.of(toks[0].text, p)
		}
	}
	return 0
}

// verbAt gives the families of the longest action that starts at toks[i] in
// any language. A verb that gives a family its name means that family alone:
// "send" may pay a bill, but an offer to send is none to pay.
func (l *lexicon) verbAt(toks []token, i int) uint64 {
	first := toks[i].text
	if len(toks)-i > 2 {
		if v := l.verbs.of(first, toks[i+1].text, toks[i+2].text); v != 0 {
			return v
		}
	}
	if len(toks)-i > 1 {
		if v := l.verbs.of(first, toks[i+1].text); v != 0 {
			return v
		}
	}
	if family, ok := l.families[first]; ok {
		return 1 << family
	}
	return l.verbs.at(first)
}

// analyse reads a prepared reply against the open offers.
func analyse(p Prepared, offers []Label) *analysis {
	l := words()
	a := &analysis{prepared: p, own: p.Own, offers: len(offers)}
	text := p.Own
	if len(text) > maxOwnBytes {
		text = text[:maxOwnBytes]
	}
	a.tokens, a.more = tokenize(make([]token, 0, 16), fold(text), maxTokens, l.cjk)
	a.tokens = l.joinNumbers(a.tokens)
	if len(offers) == 1 {
		a.label = newLabelFacts(l, offers[0])
	}
	var known [len(languages)]int // tokens that each language knows
	var own uint16                // languages of which some token is their own
	most, strange := 0, false
	for i := range a.tokens {
		t := &a.tokens[i]
		in := l.known.at(t.text)
		if in == 0 && t.kind == wordToken && !a.label.echoes(t.text) && l.nouns.at(t.text).empty() && l.numbers[t.text] == "" && l.same[t.text] == "" {
			w, mended := l.unstretch(t.text)
			if !mended && !a.mayBeName(t) {
				if w, mended = a.label.mend(t.text); !mended {
					w, mended = l.mend(t.text)
				}
				if !mended {
					w, mended = l.mendAction(t.text, a.label.verbs)
				}
			}
			if mended {
				t.text, t.fixed = w, true
				in = l.known.at(w)
			}
		}
		own |= l.own.at(t.text)
		strange = strange || in == 0 && t.kind == wordToken
		for lang := range known {
			if in&(1<<lang) != 0 {
				known[lang]++
				most = max(most, known[lang])
			}
		}
	}
	unknown, cues := -1, 0
	for lang := range l.tables {
		if lang > 0 && (known[lang] < most || own&(1<<lang) == 0) && !(strange && l.tables[lang].clitics) {
			continue // nothing is in it, or it leaves more unaccounted than another
		}
		items := a.parse(l, lang, false)
		u, c := tally(items)
		// The language that knows most is the one it was written in. Where two
		// know as much, the one that sees more reasons to ask decides: a text
		// that is a question in one language is no yes in another.
		// In longer texts it must have a word that English has not: "please do
		// so" is not Portuguese.
		better := unknown < 0 || u < unknown || u == unknown && c > cues && (len(a.tokens) < 3 || a.ownWords(l, lang))
		if !better && u == unknown && c == 0 && cues == 0 && !a.consent() && !a.acknowledges() { // mutant: analysis.acknowledges
			// "vas y" is small words in one language and a yes in another; "done" says something in both.
			before := a.items
			a.items = items
			better = a.consent()
			a.items = before
		}
		if better {
			unknown, cues, a.items, a.language = u, c, items, lang
		}
	}
	if unknown > 0 {
		// People mix English into other languages: "ok, send ihm die Einladung".
		for lang := 1; lang < len(l.tables); lang++ {
			if own&(1<<lang) == 0 || !a.writtenIn(l, lang) {
				continue
			}
			items := a.parse(l, lang, true)
			if u, c := tally(items); u < unknown || u == unknown && c > cues {
				unknown, cues, a.items, a.language = u, c, items, lang
			}
		}
	}
	a.giveReasons(l)
	return a
}

// acknowledges says whether the text is what people say to show that they have seen something, and nothing besides.
func (a *analysis) acknowledges() bool {
	for _, it := range a.items {
		if it.kind != kindAck {
			return false
		}
	}
	return len(a.items) > 0
}

// longestName is how long a word with a capital may be and still be taken for a
// short name rather than for a slip.
const longestName = 6

// mayBeName says whether a token that nothing knows stands with a capital where
// it is no slip: inside a sentence, or as a short word at its start. A text all in
// capitals says nothing about names.
func (a *analysis) mayBeName(t *token) bool {
	if !strings.ContainsFunc(a.own, unicode.IsLower) {
		return false
	}
	inside, first := capitals(a.own, t.text)
	return inside || first && len(t.text) <= longestName
}

// capitals says whether a word, folded, stands in a text with a capital, inside
// a sentence or as its first word.
func capitals(own, w string) (inside, first bool) {
	start := true
	for own != "" {
		i := strings.IndexFunc(own, unicode.IsLetter)
		if i < 0 {
			break
		}
		start = start || strings.ContainsAny(own[:i], ".!?\n;")
		own = own[i:]
		j := strings.IndexFunc(own, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !isApostrophe(r) })
		if j < 0 {
			j = len(own)
		}
		if r, _ := utf8.DecodeRuneInString(own); unicode.IsUpper(r) && fold(own[:j]) == w {
			if start {
				first = true
			} else {
				inside = true
			}
		}
		start = false
		own = own[j:]
	}
	return inside, first
}

// writtenIn says whether the text is in the language and not in English with a
// name or a stray word that the language knows too: two words that English
// has not, or one that is the label's action or in another script.
func (a *analysis) writtenIn(l *lexicon, lang int) bool {
	n := 0
	for i := range a.tokens {
		w := a.tokens[i].text
		if in := l.own.at(w); in&(1<<lang) == 0 || in&1 != 0 {
			continue
		}
		n++
		if n > 1 || w[0] >= 0x80 || l.tables[lang].words.at(w).verbs&a.label.verbs != 0 {
			return true
		}
	}
	return false
}

// ownWords says whether some word is one of the language and not of English.
func (a *analysis) ownWords(l *lexicon, lang int) bool {
	for i := range a.tokens {
		if in := l.own.at(a.tokens[i].text); in&(1<<lang) != 0 && in&1 == 0 {
			return true
		}
	}
	return false
}

// tally counts what is unaccounted for and what is a reason to ask, other
// actions aside: they are reason enough in the language that was chosen, and
// none to choose it.
func tally(items []item) (unknown, cues int) {
	for _, it := range items {
		switch {
		case it.kind == kindUnknown:
			unknown++
		case it.kind.cue() && it.kind != kindOther:
			cues++
		}
	}
	return unknown, cues
}

// maxOwnBytes is more than maxTokens words of any language.
const maxOwnBytes = 1200

// parse goes through the tokens, longest entry first. What the language does
// not know is looked up in English where the text may mix the two.
func (a *analysis) parse(l *lexicon, lang int, mixed bool) []item {
	items := make([]item, 0, len(a.tokens))
	for i := 0; i < len(a.tokens); {
		k, n := a.classify(l, &l.tables[lang], i)
		if mixed && k == kindUnknown {
			k, n = a.classify(l, &l.tables[0], i)
		}
		items = append(items, item{kind: k, from: i, to: i + n})
		i += n
	}
	return items
}

// classify decides what the entry at token i is to this offer.
func (a *analysis) classify(l *lexicon, t *table, i int) (kind, int) {
	tok := &a.tokens[i]
	e, n := t.match(a.tokens, i)
	first := t.words.at(tok.text)
	label := &a.label
	if n > 1 && e.kind == kindUnknown && e.verbs&label.verbs == 0 && (first.kind != kindUnknown || first.verbs != 0) {
		e, n = first, 1 // the phrase is another action's; its first word may be this one's
	}
	if m := a.letKnow(l, i); m > 0 {
		return kindVerb, m
	}
	if m := a.parted(l, t, i); m > 0 {
		return kindVerb, m
	}
	switch {
	case (tok.kind == numberToken || l.numbers[tok.text] != "") && a.otherMinutes(i) > 0: // mutant: analysis.other-minutes
		return kindNumber, a.otherMinutes(i)
	case tok.text == "दो" && tok.start:
		return kindNumber, 1 // first it is "two", after a verb it is "please"
	case n == 1 && tok.kind == numberToken && a.label.numbered() && e.kind < kindOther:
		// "100" is a cheer, but not where the label has a number.
		if k := a.sameClock(i); k > 0 {
			return kindEcho, k
		}
		return a.classifyUnlisted(l, i), 1
	case n == 0 && (tok.kind == numberToken || l.numbers[tok.text] != ""):
		if k := a.sameClock(i); k > 0 {
			return kindEcho, k
		}
		return a.classifyUnlisted(l, i), 1
	case tok.text == "half" && t == &l.tables[0] && !a.countsHalvesBack(l) && a.halfPast(i):
		return kindEcho, 2
	case tok.text == "half" && (t == &l.tables[languageNL] || a.countsHalvesBack(l)) && a.halfBefore(i):
		return kindEcho, 2
	case tok.text == "half" || tok.text == "quarter" || tok.text == "viertel" || tok.text == "kwart" || tok.text == "halb" || isQuarterHindi(tok.text):
		if k := a.sameClock(i); k > 0 {
			return kindEcho, k
		}
		return max(e.kind, kindUnknown), max(n, 1)
	case n == 0:
		if e := t.withoutClitic(tok.text); e.verbs&label.verbs != 0 {
			return kindVerb, 1
		}
		if a.glued(l, tok.text) || a.toBeDone(l, i) {
			return kindVerb, 1
		}
		return a.classifyUnlisted(l, i), 1
	case e.verbs&label.verbs != 0 && !(n == 1 && e.kind == kindFunction && label.verbs == 0):
		return kindVerb, n
	case tok.text == "am" && n == 1 && e.kind == kindTime && i > 0 && !tok.start && t.words.at(a.tokens[i-1].text).verbs&label.verbs != 0:
		return kindFunction, 1 // West African English "send am" sends it
	case n > 1 && (e.kind == kindStop || e.kind == kindKeep || e.kind == kindChange) && first.kind == e.kind && first.verbs&label.verbs != 0:
		// "save it" to an offer to save. Not "take it off" to an offer to take:
		// there the phrase has a sense that its first word has not.
		return kindVerb, 1
	case n > 1 && (e.kind == kindCondition || e.kind == kindIdiom) && tok.text == "si" && first.kind == kindAssent && (a.tokens[i+1].comma || e.kind == kindCondition && a.accentedSi()):
		return kindAssent, 1 // "sí es correcto" is no "si es …", and "sí, no lo uso" no "si no"
	case n > 1 && e.kind == kindQuestion && !first.kind.cue() && !a.clauseStarts(l, i):
		// "this is it": the word order asks only where a clause starts.
		return max(first.kind, kindFunction), 1
	case label.plain && n == 1 && tok.text == label.tokens[0].text && !e.kind.cue():
		return kindVerb, 1
	case e.kind == kindLoss && a.hangsOn(t, i+n): // mutant: analysis.hangs-on
		return kindNegation, n
	case e.kind == kindLoss && a.loses():
		return kindFiller, n
	case e.kind.cue():
		// An echo of the label excuses names of time and the like, never a no,
		// a wait, an if or a question.
		if n == 1 && (e.kind == kindTime || e.kind == kindThird) && label.has(tok.text) {
			return kindEcho, 1
		}
		if n == 1 && e.kind == kindThird && label.nouns.meets(l.nouns.at(tok.text)) {
			return kindEcho, 1 // the client whom the label names
		}
		if tok.text == "no" && n == 1 && t == &l.tables[languagePT] && !tok.start && !tok.comma && i+1 < len(a.tokens) && !a.tokens[i+1].start && !a.tokens[i+1].comma && a.classifyIn(l, t, i+1) == kindEcho {
			return kindFunction, 1 // Portuguese "on the": "no sábado"
		}
		if n == 1 && tok.text == "cash" && label.has("cash") {
			return kindEcho, 1
		}
		if n == 1 && (tok.text == "everyone" || tok.text == "everybody") && label.toAll() {
			return kindEcho, 1
		}
		if n == 1 && a.labelsOwn(i) {
			return kindEcho, 1
		}
		if e.kind == kindTime && n == 1 && a.sameTime(l, i) {
			return kindEcho, 1
		}
		if e.kind == kindTime && n == 1 && l.same[tok.text] == "today" && label.verbs&l.bits.timed != 0 && !a.labelHasTime() {
			return kindFiller, 1 // what happens at once happens today
		}
		if e.kind == kindChange && n == 2 && tok.text == "the" && a.onThe(i+1) {
			return kindEcho, 2
		}
		if e.kind == kindChange && n <= 3 && isBoth(a.tokens[i+n-1].text) && (label.has("2") || label.pairs()) {
			return kindEcho, n
		}
		if e.kind == kindStop && n == 1 && tok.text == "ya" && i > 0 && !tok.start && (t.words.at(a.tokens[i-1].text).verbs|t.withoutClitic(a.tokens[i-1].text).verbs)&label.verbs != 0 {
			return kindFiller, 1 // Spanish "pay it already"; "ya lo pagué" is another entry
		}
		if tok.text == "maar" && n == 1 && (a.told(t, i) || a.particle(t, i) && i > 0 && !t.words.at(a.tokens[i-1].text).kind.agrees()) {
			return kindFiller, 1
		}
		return e.kind, n
	case n == 1 && (e.kind == kindFiller || e.kind == kindCourtesy) && a.spokenOf(l, t, i): // mutant: analysis.spoken-of
		if a.theOne(i) {
			return kindFunction, 1
		}
		return kindUnknown, 1 // "tell the team" is not said to the team
	case e.kind != kindUnknown:
		if n == 1 && e.kind.consents() && !everyday(tok.text) && label.has(tok.text) {
			return kindEcho, 1 // "Perfect" is the song
		}
		return e.kind, n
	default: // a verb of another action
		if label.nouns.meets(l.nouns.at(tok.text)) || label.echoes(tok.text) {
			return kindEcho, n
		}
		return kindOther, n
	}
}

// onThe says whether the ordinal at token i is the day of a date of the label's.
func (a *analysis) onThe(i int) bool {
	n := ""
	switch a.tokens[i].text {
	case "first":
		n = "1"
	case "second":
		n = "2"
	case "third":
		n = "3"
	default:
		return false
	}
	for k := range a.label.tokens {
		if t := &a.label.tokens[k]; t.kind == numberToken && t.text == n && (k > 0 && isMonth(a.label.tokens[k-1].text) || k+1 < len(a.label.tokens) && isMonth(a.label.tokens[k+1].text)) {
			return true
		}
	}
	return false
}

func isMonth(w string) bool {
	switch w {
	case "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
		"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec":
		return true
	}
	return false
}

// spokenOf says whether the person or thing at token i is spoken of, and not to:
// it has an article, a possessive or a preposition before it.
func (a *analysis) spokenOf(l *lexicon, t *table, i int) bool {
	if isPlease(a.tokens[i].text) {
		return false // "envoie le stp"
	}
	if i+1 < len(a.tokens) && !a.tokens[i+1].start && !a.tokens[i+1].comma {
		switch a.tokens[i+1].text {
		case "ko", "se", "ki", "ka", "ke", "ne", "को", "से", "की", "का", "के", "ने", "に", "へ":
			return true
		}
	}
	if i == 0 || a.tokens[i].start || a.tokens[i].comma {
		return false
	}
	switch w := a.tokens[i-1].text; w {
	case "my", "mi", "mon", "ma", "mein", "meine", "meu", "minha", "mio", "mia", "mijn", "mera", "meri":
		if i < 2 || a.tokens[i-1].start || a.tokens[i-1].comma {
			return i+1 < len(a.tokens) && !a.tokens[i+1].start && !a.tokens[i+1].comma
		}
		k := t.words.at(a.tokens[i-2].text).kind
		if k == kindAssent || k == kindCourtesy || k == kindAck || k == kindFiller {
			return i+1 < len(a.tokens) && !a.tokens[i+1].start && !a.tokens[i+1].comma // "yes my queen"
		}
	case "meinen", "meinem", "meiner", "unseren", "unserem", "unserer", "给", "发给", "跟", "和", "对", "问", "让", "叫", "告诉",
		"a", "an", "the", "to", "for", "with", "from", "at", "of", "and", "or", "by", "via",
		"al", "del", "con", "para", "por", "y", "au", "aux", "du", "avec", "pour", "chez", "et", "dem", "den", "mit", "fur", "und", "pro", "pra", "com", "e", "alla", "col", "per", "met", "voor", "aan", "en":
	default:
		if !isPossessive(w) && !isArticle(w) {
			return false
		}
	}
	if t != &l.tables[0] {
		return true
	}
	return l.remarks.at(a.tokens[i].text)&uint64(remarkNoun) != 0
}

// glued says whether a word is an action of the label and its object written
// as one: "moveit".
func (a *analysis) glued(l *lexicon, w string) bool {
	if a.label.verbs == 0 || len(w) < 5 {
		return false
	}
	for _, object := range [...]string{"it", "them", "that", "em", "him", "her"} {
		if base, ok := strings.CutSuffix(w, object); ok && len(base) >= 3 && l.tables[0].words.at(base).verbs&a.label.verbs != 0 {
			return true
		}
	}
	return false
}

// toBeDone says whether token i is the participle of an action of the label
// after "be": "it can be sent", "I'd like it to be cancelled".
func (a *analysis) toBeDone(l *lexicon, i int) bool {
	if i == 0 || a.label.verbs == 0 || a.tokens[i].start || a.tokens[i-1].text != "be" {
		return false
	}
	w := a.tokens[i].text
	for _, base := range participleOf(w) {
		if l.tables[0].words.at(base).verbs&a.label.verbs != 0 {
			return true
		}
	}
	return false
}

// participleOf gives the English verbs that a word may be the participle of.
func participleOf(w string) []string {
	switch w {
	case "sent":
		return []string{"send"}
	case "paid":
		return []string{"pay"}
	case "bought":
		return []string{"buy"}
	case "sold":
		return []string{"sell"}
	case "told":
		return []string{"tell"}
	case "given":
		return []string{"give"}
	case "taken":
		return []string{"take"}
	case "written":
		return []string{"write"}
	case "withdrawn":
		return []string{"withdraw"}
	}
	s, ok := strings.CutSuffix(w, "ed")
	if !ok || len(s) < 2 {
		return nil
	}
	out := []string{s, s + "e"}
	if n := len(s); n > 2 && s[n-1] == s[n-2] {
		out = append(out, s[:n-1])
	}
	if y, ok := strings.CutSuffix(s, "i"); ok {
		out = append(out, y+"y")
	}
	return out
}

// labelsOwn says whether token i says how often, or until when, in the label's
// own words: "weekly is good", "until 8". What comes after an until is read by
// itself, so that it may not be another time.
func (a *analysis) labelsOwn(i int) bool {
	w := a.tokens[i].text
	switch w {
	case "daily", "weekly", "biweekly", "fortnightly", "monthly", "quarterly", "yearly":
		return a.label.has(w) && !a.label.has("or")
	case "until", "till", "til":
		if !a.label.has("until") && !a.label.has("till") && !a.label.has("til") || i+1 >= len(a.tokens) || a.tokens[i+1].start {
			return false
		}
		next := &a.tokens[i+1]
		return next.kind == numberToken || a.label.has(next.text)
	}
	return false
}

// letKnow gives the length of "let them know" at i, with the label's receiver or
// a pronoun for it, where the label tells somebody something.
func (a *analysis) letKnow(l *lexicon, i int) int {
	if a.tokens[i].text != "let" || a.label.verbs&l.bits.tells == 0 {
		return 0
	}
	for k := i + 1; k < len(a.tokens) && k <= i+4 && !a.tokens[k].start && !a.tokens[k].comma; k++ {
		switch w := a.tokens[k].text; w {
		case "know":
			if k > i+1 {
				return k + 1 - i
			}
			return 0
		case "him", "her", "them", "em", "the", "my", "our", "both", "all", "of", "team", "crew", "group", "everyone", "everybody":
		default:
			if !a.label.echoes(w) {
				return 0
			}
		}
	}
	return 0
}

// parted gives the length of an action of the label whose particle stands after
// its object: "switch the porch light off". The object is the label's own.
func (a *analysis) parted(l *lexicon, t *table, i int) int {
	if a.language != 0 && t != &l.tables[0] || a.label.verbs == 0 {
		return 0
	}
	w := a.tokens[i].text
	switch w {
	case "switch", "turn", "put", "take", "call", "send", "set", "sign", "add", "shut", "pick", "mark", "throw", "hand", "bring", "back", "clean", "clear":
	default:
		return 0
	}
	object := false
	for k := i + 1; k < len(a.tokens) && k <= i+5 && !a.tokens[k].start && !a.tokens[k].comma; k++ {
		o := a.tokens[k].text
		switch o {
		case "on", "off", "up", "down", "out", "over", "in", "away", "back":
			if k == i+1 || !object {
				return 0
			}
			if l.verbs.of(w, o)&a.label.verbs != 0 {
				return k + 1 - i
			}
			return 0
		case "the", "my", "our", "that", "this", "those", "these", "all":
		default:
			if !a.label.echoes(o) && !a.label.nouns.meets(l.nouns.at(o)) {
				return 0
			}
			object = true
		}
	}
	return 0
}

// classifyIn is the kind of token i in a language.
func (a *analysis) classifyIn(l *lexicon, t *table, i int) kind {
	k, _ := a.classify(l, t, i)
	return k
}

// accentedSi says whether the text spells yes in Spanish with its accent, and
// nowhere the if without.
func (a *analysis) accentedSi() bool {
	own := strings.ToLower(a.own)
	return strings.HasPrefix(own, "sí") && !strings.Contains(own, " si ")
}

// clauseStarts says whether token i is the first of its sentence or clause,
// small words aside.
func (a *analysis) clauseStarts(l *lexicon, i int) bool {
	for ; ; i-- {
		if a.tokens[i].start || a.tokens[i].comma || i == 0 {
			return true
		}
		switch a.tokens[i-1].text {
		case "and", "so", "but", "then", "oh", "wait", "well", "um", "uh":
			continue
		}
		k := l.tables[0].words.at(a.tokens[i-1].text).kind
		return k >= kindFiller && k != kindEcho && k != kindVerb
	}
}

// everyday words say yes whatever the label holds.
func everyday(w string) bool {
	switch w {
	case "yes", "yep", "yeah", "ok", "okay", "y", "yup", "sure", "si", "oui", "ja", "sim", "confirm", "approve", "haan", "是", "好", "はい":
		return true
	}
	return false
}

// theOne says whether the word at i calls somebody of the label by what anybody
// is called, right after the label's action: "pay the man", "rimborsi pure la
// signora".
func (a *analysis) theOne(i int) bool {
	switch a.tokens[i].text {
	case "man", "lad", "guy", "lady", "woman", "fella", "fellow", "bloke", "lass", "chap", "gentleman", "dude", "girl", "boy", "poor", "senor", "senora", "senorita", "chico", "chica", "hombre", "mujer", "monsieur", "dame", "madame", "gars", "mec", "herr", "herrn", "frau", "mann", "typen", "senhor", "senhora", "moco", "moca", "homem", "mulher",
		"signore", "signora", "signorina", "ragazzo", "ragazza", "tizio", "meneer", "mevrouw", "vrouw", "jongen", "meisje", "aadmi", "bande", "banda":
	default:
		return false
	}
	if i < 2 || a.tokens[i].start || a.tokens[i].comma {
		return false
	}
	k := i - 1
	switch a.tokens[k].text {
	case "poor", "lovely", "nice", "good", "pobre", "pauvre", "armen", "povera", "povero", "arme", "young", "old":
		k--
	}
	if k < 1 || !isArticle(a.tokens[k].text) && a.tokens[k].text != "al" && a.tokens[k].text != "au" && a.tokens[k].text != "dem" && a.tokens[k].text != "alla" && a.tokens[k].text != "ao" && a.tokens[k].text != "that" {
		return false
	}
	t := &words().tables[a.language]
	for n := k - 1; n >= 0 && n >= k-3; n-- {
		if (t.words.at(a.tokens[n].text).verbs|t.withoutClitic(a.tokens[n].text).verbs)&a.label.verbs != 0 {
			return true
		}
		if a.tokens[n].start {
			break
		}
	}
	return false
}

// particleOfVerb says whether the word at i belongs to the action before it:
// "send it over", "clear them out". Not after take, put and the like, where it
// makes another action ("put it off").
func (a *analysis) particleOfVerb(i int) bool {
	switch a.tokens[i].text {
	case "out", "over", "up", "away", "through", "off", "down", "along":
	case "back":
		if a.label.verbs&words().bits.pay == 0 {
			return false
		}
	default:
		return false
	}
	t := &words().tables[0]
	for k := i - 1; k >= 0 && k >= i-3 && !a.tokens[k+1].start; k-- {
		switch w := a.tokens[k].text; w {
		case "it", "them", "that", "this", "those", "these", "em", "all", "him", "her":
		case "take", "put", "turn", "get", "go", "hold", "call", "cut", "shut", "keep", "let", "set", "write", "make", "give", "leave", "start", "see":
			return false
		case "move":
			return a.tokens[i].text == "over" && t.words.at(w).verbs&a.label.verbs != 0 // "move it up" is another time
		default:
			return t.words.at(w).verbs&a.label.verbs != 0
		}
	}
	return false
}

// isDecoration says whether the emoji shows a thing (food, a plant, an animal,
// music, weather, camping): people put them beside a yes. Faces, hands and
// signs say something themselves and must be listed in the lexicon.
func isDecoration(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case r >= 0x1F32D && r <= 0x1F393, r >= 0x1F3A0 && r <= 0x1F3F0, r >= 0x1F400 && r <= 0x1F43E,
		r >= 0x1F950 && r <= 0x1F96F, r >= 0x1F980 && r <= 0x1F9C0:
		return true
	}
	switch r {
	case '☀', '☕', '⚽', '⚾', '⛄', '⛺', '✈', '❄', '🌈', '🌞', '🎶', '🎵', '📅', '📆', '📧', '📩', '📨', '💌', '💸', '💵', '💶', '💰', '🗑', '🚗', '🚕', '🚲', '🏠', '🛒':
		return true
	}
	return false
}

// isBoth is the last word of "both" in some language: an echo of "2 tickets".
func isBoth(w string) bool {
	switch w {
	case "both", "ambos", "deux", "beide", "beiden", "beides", "dois", "duas", "entrambi", "due", "allebei", "dos", "两个都", "両方", "dono", "दोनों":
		return true
	}
	return false
}

// particle says whether the Dutch word at i softens a request ("stuur maar")
// and does not turn against one: it follows a word and nothing but small words
// follow it.
func (a *analysis) particle(t *table, i int) bool {
	if a.tokens[i].start || a.tokens[i].comma {
		return false
	}
	for k := i + 1; k < len(a.tokens) && !a.tokens[k].start && !a.tokens[k].comma; k++ {
		switch t.words.at(a.tokens[k].text).kind {
		case kindFiller, kindCourtesy, kindAssent:
		default:
			return false
		}
	}
	return true
}

// told says whether the word at i stands inside a request to do what the label
// says, as in "zeg de lunch maar af": an action before it in the same clause.
func (a *analysis) told(t *table, i int) bool {
	for k := i; k > 0 && !a.tokens[k].start && !a.tokens[k].comma; k-- {
		e := t.words.at(a.tokens[k-1].text)
		if e.verbs&a.label.verbs != 0 || e.kind == kindGo {
			return true
		}
	}
	return false
}

// hangsOn says whether the label's action hangs as an infinitive on what stands before token i: "no need to cancel" is no
// reason to cancel, and "can't be bothered with it, cancel" is one.
func (a *analysis) hangsOn(t *table, i int) bool {
	infinitive := false
	for ; i < len(a.tokens) && !a.tokens[i].start && !a.tokens[i].comma; i++ {
		w := a.tokens[i].text
		switch w {
		case "to", "zu", "zum", "te", "de", "di", "da":
			infinitive = true
			continue
		case "be":
			return infinitive
		case "for", "it", "um", "om":
			continue
		}
		e, _ := t.match(a.tokens, i)
		verbs := e.verbs | t.withoutClitic(w).verbs
		if rest, elided := strings.CutPrefix(w, "d"); elided && !infinitive {
			infinitive, verbs = true, t.words.at(rest).verbs // "d'annuler": the apostrophe is folded away
		}
		return infinitive && verbs&a.label.verbs != 0
	}
	return false
}

// sameTime says whether the word at i names a day or month that the label
// names too, in any language, or is the "o'clock" of a number that was
// accounted for.
func (a *analysis) sameTime(l *lexicon, i int) bool {
	w := a.tokens[i].text
	if name := l.same[w]; name != "" {
		if i > 0 && !a.tokens[i].start && (w == "manana" && a.tokens[i-1].text == "la" || w == "morgen" && a.tokens[i-1].text == "am") { // mutant: analysis.la-manana
			name = "morning"
		}
		numbered := i > 0 && !a.tokens[i].start && (a.tokens[i-1].kind == numberToken || l.numbers[a.tokens[i-1].text] != "")
		if name == "night" && !numbered {
			name = "evening"
		}
		if isUnit(name) && !numbered {
			return false // "this week" is not "1 week"
		}
		if from, to := partOfDay(name); to > 0 {
			for k := range a.label.tokens {
				m, open, n := a.label.clockAt(k)
				if n > 0 && (m >= from*60 && m < to*60 || open && (m+720)%1440 >= from*60 && (m+720)%1440 < to*60) {
					return true
				}
			}
		}
		for k := range a.label.tokens {
			if l.same[a.label.tokens[k].text] == name {
				return true
			}
			if m, _, n := a.label.clockAt(k); n > 0 && m == 12*60 && name == "noon" { // mutant: analysis.noon
				return true
			}
		}
		return false
	}
	if (w == "am" || w == "pm") && i > 0 && a.sameClock(i-1) == 0 && a.label.hasClock() { // mutant: analysis.half-of-day
		return false
	}
	switch w {
	case "oclock", "uhr", "uur", "heures", "heure", "horas", "hora", "baje", "बजे", "am", "pm", "点", "點", "点钟", "時", "分", "ore", "号", "月", "日":
		return i > 0 && (a.tokens[i-1].kind == numberToken || l.numbers[a.tokens[i-1].text] != "") && (a.classifyUnlisted(l, i-1) == kindEcho || a.sameClock(i-1) > 0)
	}
	return false
}

// clockAt reads the time of day at k. Code writes hours and minutes of a day of 24 hours, so that 10:00 is in the morning.
func (f *labelFacts) clockAt(k int) (minutes int, open bool, n int) {
	minutes, open, n = clock(f.tokens, k)
	if n > 1 && k+1 < len(f.tokens) && f.tokens[k+1].kind == numberToken {
		open = false
	}
	return minutes, open, n
}

// hasClock says whether the label has a time of day.
func (f *labelFacts) hasClock() bool {
	for i := range f.tokens {
		if _, _, n := clock(f.tokens, i); n > 0 {
			return true
		}
	}
	return false
}

// isUnit says whether a name of same.txt is a unit of time.
func isUnit(name string) bool {
	switch name {
	case "day", "night", "week", "month", "year", "hour", "minute":
		return true
	}
	return false
}

// partOfDay gives the hours that a part of the day spans.
func partOfDay(name string) (from, to int) {
	switch name {
	case "morning":
		return 5, 12
	case "afternoon":
		return 12, 18
	case "evening":
		return 17, 24
	}
	return 0, 0
}

// clock reads the time of day that starts at toks[i]: minutes after midnight,
// whether the half of the day is open ("7:30"), and how many tokens it takes; n
// is 0 where no time stands there.
func clock(toks []token, i int) (minutes int, open bool, n int) {
	if minutes, n := spokenClock(toks, i); n > 0 {
		return minutes, true, n
	}
	onTheHour := false // "at seven"
	h, ok := smallNumber(toks, i, 24)
	if !ok {
		return 0, false, 0
	}
	n = 1
	if i > 0 && !toks[i].start {
		switch toks[i-1].text {
		case "at", "um", "om", "alle", "las", "as", "a":
			onTheHour = true
		}
	}
	m, withMinutes := smallNumber(toks, i+1, 59)
	if withMinutes && !toks[i+1].start && (toks[i+1].comma || toks[i+1].kind == numberToken && len(toks[i+1].text) == 2 || toks[i].kind != numberToken && m >= 10) {
		n++
	} else {
		m, withMinutes = 0, false
	}
	if extra, k := partOfHour(toks, i+n); k > 0 && !withMinutes && !(i > 0 && toks[i-1].text == "for") {
		return h*60 + extra, h <= 12, n + k
	}
	minutes, open = h*60+m, h >= 1 && h <= 12
	if i+n < len(toks) && !toks[i+n].start {
		switch toks[i+n].text {
		case "am":
			return (h%12)*60 + m, false, n + 1
		case "pm":
			return (h%12+12)*60 + m, false, n + 1
		case "oclock", "uhr", "uur", "heures", "baje", "बजे", "h", "点", "點", "時":
			return minutes, open, n + 1
		}
	}
	if !withMinutes && !onTheHour {
		return 0, false, 0
	}
	return minutes, open, n
}

// partOfHour reads a half or a quarter that is added after the hour: "seis y
// media", "六点半", "sette e un quarto". k is how many tokens say so.
func partOfHour(toks []token, i int) (minutes, k int) {
	for j := i; j < len(toks) && j <= i+3 && !toks[j].start && !toks[j].comma; j++ {
		switch toks[j].text {
		case "menos", "meno", "moins":
			for q := j + 1; q < len(toks) && q <= j+2 && !toks[q].start && !toks[q].comma; q++ {
				if w := toks[q].text; w == "cuarto" || w == "quart" || w == "quarto" {
					return -15, q + 1 - i
				}
			}
			return 0, 0
		case "y", "e", "et", "un", "heures", "heure", "horas", "uhr", "点", "點", "時", "时", "点钟", "baje":
		case "media", "demie", "demi", "mezza", "mezzo", "meia", "半":
			return 30, j + 1 - i
		case "cuarto", "quart", "quarto":
			return 15, j + 1 - i
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// spokenClock reads "half past seven" and "quarter to ten".
func spokenClock(toks []token, i int) (minutes, n int) {
	if toks[i].text == "halb" && i+1 < len(toks) && !toks[i+1].start {
		if h, ok := smallNumber(toks, i+1, 12); ok && h > 0 {
			return h*60 - 30, 2
		}
	}
	if minutes, n := quarterHindi(toks, i); n > 0 {
		return minutes, n
	}
	if i+2 >= len(toks) || toks[i+1].start || toks[i+2].start {
		return 0, 0
	}
	h, ok := smallNumber(toks, i+2, 12)
	if !ok || h == 0 {
		return 0, 0
	}
	part := 30
	switch toks[i].text {
	case "half":
	case "quarter", "viertel", "kwart":
		part = 15
	default:
		return 0, 0
	}
	switch toks[i+1].text {
	case "past", "after", "nach", "over":
		return h*60 + part, 3
	case "to", "before", "til", "till", "vor", "voor":
		if part == 15 {
			return h*60 - part, 3
		}
	}
	return 0, 0
}

func isQuarterHindi(w string) bool {
	switch w {
	case "sadhe", "saadhe", "साढ़े", "साढे", "sava", "sawa", "सवा", "paune", "पौने", "dedh", "डेढ़", "डेढ", "dhai", "ढाई":
		return true
	}
	return false
}

// quarterHindi reads the quarters that Hindi names before the hour: "sadhe das baje" is half past ten. Where no "baje" follows, they
// are as likely rupees.
func quarterHindi(toks []token, i int) (minutes, n int) {
	part := 0
	switch toks[i].text {
	case "sadhe", "saadhe", "साढ़े", "साढे":
		part = 30
	case "sava", "sawa", "सवा":
		part = 15
	case "paune", "पौने":
		part = -15
	case "dedh", "डेढ़", "डेढ":
		minutes, n = 90, 1
	case "dhai", "ढाई":
		minutes, n = 150, 1
	default:
		return 0, 0
	}
	if n == 0 {
		if i+1 >= len(toks) || toks[i+1].start {
			return 0, 0
		}
		h, ok := smallNumber(toks, i+1, 12)
		if toks[i+1].text == "das" {
			h, ok = 10, true
		}
		if !ok || h == 0 {
			return 0, 0
		}
		minutes, n = h*60+part, 2
	}
	if i+n < len(toks) && (toks[i+n].text == "baje" || toks[i+n].text == "बजे") {
		return minutes, n + 1
	}
	return 0, 0
}

// otherMinutes gives the length of "ten past ten" at token i, which is not ten o'clock; 0 where none stands
// there, where it is the label's time, or where the label itself goes from one number to another.
func (a *analysis) otherMinutes(i int) int {
	if i+2 >= len(a.tokens) || a.tokens[i+1].start || a.tokens[i+2].start || a.tokens[i+1].comma || !a.label.hasClock() || a.label.has("to") && a.tokens[i+1].text == "to" && a.label.isSpan() {
		return 0
	}
	switch a.tokens[i+1].text {
	case "past", "to", "till", "nach", "vor", "over", "voor":
	default:
		return 0
	}
	part, ok := smallNumber(a.tokens, i, 59)
	h, hour := smallNumber(a.tokens, i+2, 12)
	if !ok || !hour || h == 0 {
		return 0
	}
	switch a.tokens[i+1].text {
	case "to", "till", "vor", "voor":
		part = -part
	}
	for k := range a.label.tokens {
		if m, _, n := clock(a.label.tokens, k); n > 0 && m%720 == (h*60+part+720)%720 {
			return 0
		}
	}
	return 3
}

// isSpan says whether the label goes from one number to another.
func (f *labelFacts) isSpan() bool {
	for i := 1; i+1 < len(f.tokens); i++ {
		if f.tokens[i].text == "to" && f.tokens[i-1].kind == numberToken && f.tokens[i+1].kind == numberToken {
			return true
		}
	}
	return false
}

// halfPast says whether "half six" at token i is a time of the label's, as the
// British say it; Dutch and German have the half before.
func (a *analysis) halfPast(i int) bool { return a.minutesFromHour(i, 30) }

// countsHalvesBack says whether the text has a word by which "half ten" may be Dutch or German for half past nine.
func (a *analysis) countsHalvesBack(l *lexicon) bool {
	const backward = 1<<languageDE | 1<<languageNL
	for i := range a.tokens {
		w := a.tokens[i].text
		if w == "ja" || w == "om" || w == "um" {
			return true
		}
		switch w {
		case "een", "twee", "drie", "vier", "vijf", "zes", "zeven", "acht", "negen", "tien", "elf", "twaalf":
			return true
		}
		if own := l.own.at(w); w != "half" && own&backward != 0 && own&1 == 0 {
			return true
		}
	}
	return false
}

// halfBefore says whether "half tien" at token i is a time of the label's: half an hour before ten.
func (a *analysis) halfBefore(i int) bool { return a.minutesFromHour(i, -30) }

// minutesFromHour says whether so many minutes after the hour behind token i are a time of the label's, in either half of the day.
func (a *analysis) minutesFromHour(i, minutes int) bool {
	h, ok := smallNumber(a.tokens, i+1, 12)
	if !ok || h == 0 || a.tokens[i+1].start || a.tokens[i+1].comma {
		return false
	}
	for k := range a.label.tokens {
		if m, _, n := clock(a.label.tokens, k); n > 0 && m%720 == (h*60+720+minutes)%720 {
			return true
		}
	}
	return false
}

// pointClock reads "8.05" as a time of day.
func pointClock(w string) (minutes int, ok bool) {
	hour, rest, found := strings.Cut(w, ".")
	if !found || len(hour) > 2 || len(rest) == 0 || len(rest) > 2 {
		return 0, false
	}
	if len(rest) == 1 {
		rest += "0" // numbers lose their last zeros
	}
	v := 0
	for _, c := range []byte(hour + rest) {
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	if v/100 > 24 || v%100 > 59 {
		return 0, false
	}
	return v/100*60 + v%100, true
}

func smallNumber(toks []token, i, limit int) (int, bool) {
	if i >= len(toks) {
		return 0, false
	}
	text := toks[i].text
	if toks[i].kind != numberToken {
		text = words().numbers[text]
	}
	if text == "" || len(text) > 2 {
		return 0, false
	}
	v := 0
	for _, c := range []byte(text) {
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, v <= limit
}

// sameClock says whether the time at token i is one of the label's, as in
// "7:30" for "19:30"; n is how many tokens say so.
func (a *analysis) sameClock(i int) (n int) {
	minutes, open, n := clock(a.tokens, i)
	if m, ok := pointClock(a.tokens[i].text); ok && a.tokens[i].kind == numberToken {
		minutes, open, n = m, m < 720, 1
		if i+1 < len(a.tokens) && !a.tokens[i+1].start {
			switch a.tokens[i+1].text {
			case "am":
				minutes, open, n = m%720, false, 2
			case "pm":
				minutes, open, n = m%720+720, false, 2
			}
		}
	}
	if n == 0 {
		h, ok := smallNumber(a.tokens, i, 24)
		if !ok || h == 0 || a.hasCount() || i > 0 && a.tokens[i-1].text == "for" && !a.tokens[i].start {
			return 0
		}
		minutes, open, n = h*60, h <= 12, 1 // "6 is fine" to "… at 18:00"
		if i+1 < len(a.tokens) && !a.tokens[i+1].start && !a.tokens[i+1].comma {
			if k := words().tables[a.language].words.at(a.tokens[i+1].text).kind; k == kindUnknown {
				return 0
			}
		}
	}
	for k := range a.label.tokens {
		m, labelOpen, labelN := a.label.clockAt(k)
		if labelN == 0 {
			continue
		}
		if m == minutes || (open || labelOpen) && m%720 == minutes%720 {
			return n
		}
	}
	return 0
}

func (a *analysis) classifyUnlisted(l *lexicon, i int) kind {
	tok := &a.tokens[i]
	label := &a.label
	switch {
	case tok.kind == numberToken:
		if a.sameNumber(l, i, tok.text) {
			return kindEcho
		}
		return kindNumber
	case l.numbers[tok.text] != "":
		if a.sameNumber(l, i, l.numbers[tok.text]) {
			return kindEcho
		}
		if tok.text == "one" && a.pronounOne(l, i) {
			return kindFunction
		}
		return kindNumber
	case label.nouns.meets(l.nouns.at(tok.text)), label.mayMean(l, tok.text):
		return kindEcho
	case tok.kind == symbolToken && isDecoration(tok.text):
		return kindFiller
	case len(tok.text) > 3 && (tok.text[0] == 'l' || tok.text[0] == 'd') && l.nouns.at(tok.text).empty() &&
		(label.echoes(tok.text[1:]) || label.nouns.meets(l.nouns.at(tok.text[1:]))):
		return kindEcho // "l'invitation", "l'appel": the apostrophe is folded away
	case a.particleOfVerb(i), a.theOne(i):
		return kindFunction
	case label.plain && i >= 0 && tok.text == label.tokens[0].text:
		return kindVerb
	case label.echoes(tok.text):
		return kindEcho
	case tok.text[0] >= 0x80 && label.soundsLike(tok.text):
		return kindEcho
	}
	return kindUnknown
}

// sameNumber says whether the label has the number of token i in the same
// role: with the same preposition before it and the same thing after it. "4
// tickets" is no echo of "2 tickets on March 4th".
func (a *analysis) sameNumber(l *lexicon, i int, n string) bool {
	before, after := "", ""
	if i > 0 && !a.tokens[i].start {
		switch w := a.tokens[i-1].text; w {
		case "for", "at", "from", "to", "by", "until", "before", "after", "under", "over":
			before = w
		}
	}
	if i+1 < len(a.tokens) && !a.tokens[i+1].start && !a.tokens[i+1].comma && a.tokens[i+1].kind == wordToken {
		w := a.tokens[i+1].text
		if thing := !l.nouns.at(w).empty() || a.label.echoes(w) && l.tables[0].words.at(w).kind == kindUnknown; thing && l.verbs.at(w)&a.label.verbs == 0 && !l.small(w) && !a.label.mayMean(l, w) {
			after = w
			// The thing counted is the last of its words: "one event ticket".
			for k := i + 2; k < len(a.tokens) && !a.tokens[k].start && !a.tokens[k].comma && a.tokens[k].kind == wordToken; k++ {
				if w := a.tokens[k].text; l.tables[0].words.at(w).kind != kindUnknown || !a.label.echoes(w) {
					break
				}
				after = a.tokens[k].text
			}
		}
	}
	if n == "1" && after != "" && !strings.HasSuffix(after, "s") && a.label.has(after) {
		return !a.hasCount() // "one ticket" of "buy ticket to Ghent"
	}
	is := roleAt(l, a.tokens, i, after != "")
	for j := range a.label.tokens {
		t := &a.label.tokens[j]
		if t.text != n && l.numbers[t.text] != n {
			continue
		}
		if !a.label.mayBe(l, j, is) {
			continue
		}
		if a.label.partOfClock(j) || a.label.wholeOf(j) { // mutant: analysis.whole-of
			continue
		}
		if before != "" && (j == 0 || a.label.tokens[j-1].text != before) {
			continue
		}
		if after != "" && !a.label.counts(l, j, after) {
			continue
		}
		return true
	}
	return false
}

// partOfClock says whether the number at j of the label is the hour or the
// minutes of a time like 6:15, of which neither alone is an echo.
func (f *labelFacts) partOfClock(j int) bool {
	for k := max(0, j-1); k <= j; k++ {
		minutes, _, n := clock(f.tokens, k)
		if n > 1 && minutes%60 != 0 && j < k+2 && k+1 < len(f.tokens) && f.tokens[k+1].kind == numberToken {
			return true
		}
	}
	return false
}

// counts says whether the number at j of the label counts the thing: it stands
// at most two words before it.
func (f *labelFacts) counts(l *lexicon, j int, thing string) bool {
	for k := j + 1; k < len(f.tokens) && k <= j+3; k++ {
		t := f.tokens[k].text
		if t == thing || l.nouns.at(t).meets(l.nouns.at(thing)) || strings.TrimSuffix(t, "s") == strings.TrimSuffix(thing, "s") {
			return true
		}
	}
	return false
}

// pronounOne tells "book that one" from "book one ticket". Where the label
// says "a ticket", one is as many.
func (a *analysis) pronounOne(l *lexicon, i int) bool {
	if i > 0 {
		switch a.tokens[i-1].text {
		case "for", "at", "to", "from", "just", "only":
			return false
		case "that", "this", "the", "right", "good", "great", "perfect":
			return true
		}
	}
	if a.label.has("a") || a.label.has("an") {
		return true
	}
	if i+1 == len(a.tokens) || a.tokens[i+1].start || a.tokens[i+1].comma {
		return !a.hasCount()
	}
	next := a.tokens[i+1].text
	e := l.tables[0].words.at(next)
	return (e.kind == kindCourtesy || e.kind == kindFiller || next == "for") && !a.hasCount() && !a.label.several(l)
}

// several says whether the label has things in the plural: one of them is
// not what was offered.
func (f *labelFacts) several(l *lexicon) bool {
	for i := range f.tokens {
		if t := f.tokens[i].text; len(t) > 3 && strings.HasSuffix(t, "s") && !l.nouns.at(t).empty() && !f.has(strings.TrimSuffix(t, "s")) && l.tables[0].words.at(t).kind == kindUnknown {
			return true
		}
	}
	return false
}

// hasCount says whether the label says how many: a number before a thing, or
// after "for".
func (a *analysis) hasCount() bool {
	l := words()
	toks := a.label.tokens
	for i := range toks {
		if toks[i].kind != numberToken || toks[i].ordinal {
			continue
		}
		if i > 0 && toks[i-1].text == "for" {
			return true
		}
		if _, _, n := clock(toks, i); n > 0 || i+1 == len(toks) || toks[i+1].kind != wordToken {
			continue
		}
		next := l.tables[0].words.at(toks[i+1].text).kind
		if next == kindUnknown && l.same[toks[i+1].text] == "" || !l.nouns.at(toks[i+1].text).empty() {
			return true
		}
	}
	return false
}

func (a *analysis) any(k kind) bool {
	for _, it := range a.items {
		if it.kind == k {
			return true
		}
	}
	return false
}

// consent says whether some item says yes. The action of the label counts
// where it is told or wished ("book it"), not where it is a thing ("the
// booking").
func (a *analysis) consent() bool {
	if a.onlyPlease() || a.settled() {
		return true
	}
	for n, it := range a.items {
		if it.kind.consents() && (it.kind != kindVerb || a.commanded(n)) {
			return true
		}
	}
	return false
}

// onlyPlease says whether the whole text asks for it: "please" answers an offer,
// and so does "the early train please" where the label says so. "bitte" alone
// also hands something over.
func (a *analysis) onlyPlease() bool {
	asked, echo := false, false
	for _, it := range a.items {
		switch it.kind {
		case kindCourtesy:
			asked = asked || isPlease(a.text(it))
		case kindEcho, kindVerb:
			echo = true
		case kindFunction, kindFiller:
		default:
			return false
		}
	}
	return asked && (echo || len(a.items) == 1 && a.text(a.items[0]) != "bitte")
}

func isPlease(w string) bool {
	switch w {
	case "please", "pls", "plz", "por favor", "porfa", "porfavor", "s il te plait", "sil te plait", "sil vous plait", "svp", "stp",
		"per favore", "per piacere", "alsjeblieft", "alstublieft", "bitte", "kripya", "कृपया":
		return true
	}
	return false
}

// settled says whether the text is "thursday it is", with a word of the label.
func (a *analysis) settled() bool {
	n := len(a.items)
	if n < 2 || a.items[n-2].kind != kindEcho || a.text(a.items[n-1]) != "it is" || a.tokens[a.items[n-1].from].start || a.tokens[a.items[n-1].from].comma {
		return false
	}
	for _, it := range a.items[:n-1] {
		if it.kind != kindEcho && it.kind != kindFunction && it.kind != kindFiller {
			return false
		}
	}
	return true
}

// commanded says whether item n, an action of the label, is told or wished.
func (a *analysis) commanded(n int) bool {
	it := a.items[n]
	if n > 0 && a.items[n-1].to == it.from && !a.tokens[it.from].start {
		switch a.tokens[it.from-1].text {
		case "the", "a", "an", "my", "your", "this", "that", "our", "of", "for", "with", "from", "on", "in":
			return false
		}
	}
	if it.to < len(a.tokens) && !a.tokens[it.to].start && !a.tokens[it.to].comma {
		switch a.tokens[it.to].text {
		case "is", "was", "are", "were", "has", "had", "went", "goes", "ist", "war", "est", "etait", "era", "fue", "foi", "wordt":
			return false // "rent is going up"
		}
	}
	return true
}

// bent says whether the action of the label stands in a fixed phrase that is
// another thing: followed by "to" and neither a receiver nor a word of the
// label ("rent to own", "pay to win").
func (a *analysis) bent() bool {
	for n, it := range a.items {
		if it.kind != kindVerb || n+1 >= len(a.items) || it.to+1 >= len(a.tokens) {
			continue
		}
		to, next := &a.tokens[it.to], &a.tokens[it.to+1]
		if to.text != "to" || to.start || next.start || a.label.has("to") && a.label.has(next.text) {
			continue
		}
		e := words().tables[0].words.at(next.text)
		if a.itemAt(it.to+1).kind == kindVerb || e.verbs != 0 && !a.label.echoes(next.text) {
			return true
		}
		switch next.text {
		case "own", "go", "be", "do", "have", "get", "win", "keep", "let":
			return true
		}
	}
	return false
}

// itemAt is the item that holds token i.
func (a *analysis) itemAt(i int) item {
	for _, it := range a.items {
		if it.from <= i && i < it.to {
			return it
		}
	}
	return item{}
}

// TokenDetail is one piece of a reply as the guards see it, for
// explanations.
type TokenDetail struct {
	Text      string // folded: lower case, without accents
	As        string // what it was taken for, for example "assent", "echo", "negation", "unaccounted"
	Accounted bool   // false for whatever is a reason to ask
}

// Explain says what every piece of the newest message was taken for. It shows
// the person's words: print it for somebody who may see them, never log it.
func Explain(in Input) []TokenDetail {
	p := Prepare(in.Newest)
	if p.Own == "" {
		return nil
	}
	return analyse(p, in.Offers).details()
}

// ExplainRead is [Explain] for a reader inside [Read]: what the guards will
// look at is taken apart once.
func ExplainRead(ctx context.Context, in Input) []TokenDetail {
	if s, _ := ctx.Value(parseKey{}).(*parse); s.of(in) {
		return s.analysis().details()
	}
	return Explain(in)
}

func (a *analysis) details() []TokenDetail {
	out := make([]TokenDetail, 0, len(a.items))
	for _, it := range a.items {
		out = append(out, TokenDetail{Text: a.text(it), As: it.kind.String(),
			Accounted: it.kind != kindUnknown && !it.kind.cue()})
	}
	return out
}

// Accounted says in which language every piece of the newest message is
// accounted for, by its ISO 639-1 code; ok is false where none accounts for
// all of it.
func Accounted(in Input) (language string, ok bool) {
	p := Prepare(in.Newest)
	if p.Form != FormTyped {
		return "", false
	}
	a := analyse(p, in.Offers)
	for _, it := range a.items {
		if it.kind == kindUnknown || it.kind.cue() {
			return "", false
		}
	}
	return languages[a.language], len(a.items) > 0
}

// Knows says whether some language's lexicon has the word: whatever it does
// not know may be a name.
func Knows(word string) bool {
	l := words()
	toks, _ := tokenize(nil, fold(word), maxTokens, l.cjk)
	for i := range toks {
		w := toks[i].text
		if l.known.at(w) != 0 || !l.nouns.at(w).empty() || l.numbers[w] != "" || l.same[w] != "" {
			continue
		}
		return false
	}
	return true
}

// Unaccounted lists the pieces of the newest message that no yes to this offer
// needs, in order.
func Unaccounted(in Input) []string {
	var out []string
	for _, t := range Explain(in) {
		if !t.Accounted {
			out = append(out, t.Text)
		}
	}
	return out
}
