package classifier

import (
	"strings"
)

// Beside a yes people say how things are: "yes please, my back is in bits",
// "go ahead, legal have cleared it". What reasons.txt has no phrase for is read
// here as a sentence: a subject, something that is said of it, and no word
// that is not of comments.txt, the small ones of the language, or an echo of the
// label. The words are everyday ones that name neither what could be offered nor
// how. What such a sentence cannot hold: an action, a wish, a request, a
// condition, another time or number than how long or how often, a name, a no but
// to one of the few words that may be denied.

// remarkPart is what a word of comments.txt does in a comment, as bits.
type remarkPart uint8

const (
	remarkNoun  remarkPart = 1 << iota // may be a subject, or follow one
	remarkVerb                         // says something: a finite form, a participle
	remarkBase                         // the same, as a bare form that needs a subject
	remarkState                        // how somebody or something is
	remarkSmall                        // a small word that is accounted for in a comment alone
	remarkFree                         // may be denied, or be expected of somebody: "can't find", "she'll cry"
	remarkParts = 6                    // how many
	remarkMask  = 1<<remarkParts - 1
)

const topicShift = 32 // of the topics of a comment, above those of a label

func (b *builder) loadComments() {
	for _, s := range b.sections("comments") {
		if s.lang < 0 {
			b.fail(s.line, "there is no language %q", s.code)
			return
		}
		for _, e := range s.entries {
			forms, ok := remarkForms(s.section, s.code, e)
			if !ok {
				b.fail(s.line, "there is no section %q", s.section)
				return
			}
			for _, f := range forms {
				ws := b.split(s.line, f.word)
				if len(ws) != 1 {
					b.fail(s.line, "%q is of several words", e)
					return
				}
				b.remarks[ws[0]] |= uint64(f.part) << (s.lang * remarkParts)
				b.known[ws[0]] |= 1 << s.lang
			}
		}
	}
}

func (b *builder) loadTopics() {
	for topic, at := range b.lines("topics") {
		if topic == topicShift {
			b.fail(at, "there are more than %d topics", topicShift)
			return
		}
		_, list, _ := strings.Cut(at.text, ":")
		labels, comments, _ := strings.Cut(list, "|")
		for side, list := range [...]string{labels, comments} {
			bits := uint64(1) << (topic + side*topicShift)
			for _, e := range entries(list) {
				if e == "*" {
					b.anyTopic |= bits
					continue
				}
				for _, w := range b.split(at, e) {
					b.topics[w] |= bits
					if side == 1 && isCJK([]rune(w)[0]) {
						b.remarks[w] |= uint64(remarkState)<<(languageZH*remarkParts) | uint64(remarkState)<<(languageJA*remarkParts)
					}
				}
			}
		}
	}
}

// remark is what a word is in the language of the text; 0 for none.
func (a *analysis) remark(l *lexicon, i int) remarkPart {
	return remarkPart(l.remarks.at(a.tokens[i].text) >> (a.language * remarkParts) & remarkMask)
}

// comment says how plain a yes must be beside the tokens from up to to, where
// they are a comment: sentences that small joining words hold together.
func (a *analysis) comment(l *lexicon, from, to int, starts bool) (need int) {
	about, strange := a.about(l, from, to), 0
	for i := from; i < to; {
		k := i + 1
		for k < to && !a.joins(k, to) {
			k++
		}
		free, ok := a.sentence(l, i, k, starts || i > from, about)
		if strange += free; !ok || strange > maxStrange { // mutant: comment.strange
			return yesNone
		}
		if i = k; k < to {
			i++ // the joining word
		}
	}
	return yesAndMore // "yes, I'm freezing" may mean anything beside an offer to turn the heating off
}

// maxStrange is how many words of no list a comment may hold.
const maxStrange = 3

// joins says whether token k joins two sentences of a comment.
func (a *analysis) joins(k, to int) bool {
	if k+1 >= to {
		return false
	}
	switch a.tokens[k].text {
	case "and", "y", "et", "und", "e", "en", "aur", "और":
		return true
	case "since":
		return a.perfect(k) && isSubject(a.tokens[k+1].text) || a.perfect(k) && words().remarks.at(a.tokens[k+1].text)&uint64(remarkNoun) != 0
	}
	return false
}

// about says whether the words have a topic of the label's.
func (a *analysis) about(l *lexicon, from, to int) bool {
	label, said := l.anyTopic, uint64(0)
	for i := range a.label.tokens {
		label |= l.topics.at(a.label.tokens[i].text)
	}
	for i := from; i < to; i++ {
		said |= l.topics.at(a.tokens[i].text) >> topicShift
	}
	return label&said&(1<<topicShift-1) != 0
}

// sentence says whether the tokens from up to to say something of a subject in
// words that a comment may hold.
func (a *analysis) sentence(l *lexicon, from, to int, starts, linked bool) (strange int, ok bool) {
	t := l.reasons[a.language]
	i := from
	because := isCausal(a.tokens[i].text)
	if n := t.of(reasonWhy, a.tokens, i, to); n > 0 {
		because = because || a.explains(l, i)
		if i += n; i >= to {
			return 0, false
		}
	} else {
		because = false
	}
	for k := 0; k < 3 && i+1 < to && (starts || because) && a.leads(l, i); k++ {
		i++
	}
	first := a.tokens[i].text
	if !starts && !because && !isSubject(first) && !expects(first) && !isPossessive(first) && a.remark(l, i)&remarkNoun == 0 {
		return 0, false
	}
	next := a.topicOf(l, t, i, to)
	if next == to {
		return 0, false
	}
	if next > i && a.tokens[next-1].text == "on" && languages[a.language] == "fr" && a.remark(l, next)&(remarkVerb|remarkBase) != 0 && strings.HasSuffix(a.tokens[next].text, "e") {
		return 0, false // "on oublie" is "let's forget it"
	}
	if next == i && !a.saysItself(l, i) {
		return 0, false
	}
	if because && next > i && pointsOut(a.tokens[i].text) && a.mocks(next) { // mutant: comment.irony
		return 0, false
	}
	return a.predicated(l, t, i, next, to, linked)
}

// mocks says whether something is praised from i to the end of the sentence: "yes, because that
// went so well last time" is no yes.
func (a *analysis) mocks(i int) bool {
	for ; i < len(a.tokens) && !a.tokens[i].start; i++ {
		if w := a.tokens[i].text; praises(w) || w == "well" || w == "fun" || w == "bien" || w == "gut" || w == "bem" || w == "bene" {
			return true
		}
	}
	return false
}

// explains says whether the "que" at i gives a reason, and is not what somebody
// is to be told: "apágala, que va a despertar al barrio", not "dile que viene".
func (a *analysis) explains(l *lexicon, i int) bool {
	switch a.tokens[i].text {
	case "que", "q", "che", "sonst", "senao", "senno", "sinon", "sino", "anders", "warna", "otherwise":
	default:
		return false
	}
	return a.label.verbs&l.bits.tells == 0 || i > 0 && (strings.HasSuffix(a.tokens[i-1].text, "lo") || strings.HasSuffix(a.tokens[i-1].text, "la"))
}

// leads says whether the word at i only says when, where or how much, before
// the subject or the verb: "siempre me quedo dormida", "hier stinkt's".
func (a *analysis) leads(l *lexicon, i int) bool {
	if a.language == 0 {
		return false
	}
	w := a.tokens[i].text
	if isDenial(w) || isArticle(w) || isPossessive(w) || isSubject(w) || isThere(w) {
		return false
	}
	return a.remark(l, i) == remarkSmall
}

// topicOf gives the token after the subject of a sentence that starts at i; i
// where it has none.
func (a *analysis) topicOf(l *lexicon, t reasonTable, i, to int) int {
	if n := t.of(reasonSelf, a.tokens, i, to); n > 0 {
		return i + n
	}
	if n := t.of(reasonWho, a.tokens, i, to); n > 0 && a.remark(l, i)&remarkNoun == 0 {
		return i + n
	}
	if isSubject(a.tokens[i].text) || isThere(a.tokens[i].text) || expects(a.tokens[i].text) || isAll(a.tokens[i].text) {
		return i + 1
	}
	k := i
	if isPossessive(a.tokens[k].text) || isArticle(a.tokens[k].text) {
		k++
	}
	for k > i && k < to && k-i < 3 && a.remark(l, k)&(remarkState|remarkNoun|remarkVerb) == remarkState {
		k++ // "my poor back"
	}
	first := k
	for k < to && k-first < 3 && a.nounAt(l, t, k, to) {
		k++
	}
	if k == to && !a.spaced() {
		return i // all may be said of somebody who is not named
	}
	if k == first {
		switch a.tokens[i].text {
		case "die", "der", "das":
			if i+1 < to && (a.remark(l, i+1)&(remarkVerb|remarkBase) != 0 || t.of(reasonBe, a.tokens, i+1, to) > 0) {
				return i + 1
			}
		}
		if (k > i || a.language == 0 && strings.HasSuffix(a.tokens[k].text, "s")) && k+1 < to && a.open(l, k) && a.saidOf(l, t, k+1, to) {
			return k + 1 // "the gazebo is ruined"
		}
		return i
	}
	return k
}

// saidOf says whether something is said of a thing that no list has, from token
// i up to to, and it is no praise: what is praised may be what is wanted.
func (a *analysis) saidOf(l *lexicon, t reasonTable, i, to int) bool {
	if i >= to || t.of(reasonBe, a.tokens, i, to) == 0 && a.remark(l, i)&(remarkVerb|remarkBase) == 0 {
		return false
	}
	for ; i < to; i++ {
		if a.kindAt(l, i) == kindApprove || praises(a.tokens[i].text) {
			return false
		}
	}
	return true
}

// praises is a word of comments that also says what somebody would rather have.
func praises(w string) bool {
	switch w {
	case "good", "great", "lovely", "nice", "best", "better", "fine", "perfect", "gorgeous", "amazing", "delicious", "brilliant", "fantastic", "wonderful", "cute", "beautiful", "stunning", "tasty", "yummy", "fabulous", "incredible",
		"bueno", "buena", "rico", "rica", "lindo", "linda", "bonito", "bonita", "bon", "bonne", "beau", "belle", "joli", "jolie", "gut", "schon", "lecker", "bom", "boa", "otimo", "otima", "gostoso", "gostosa", "buono", "buona", "bello", "bella", "ottimo", "goed", "lekker", "mooi", "leuk":
		return true
	}
	return false
}

// open says whether the word at i is of no list and may still stand in a
// comment: no detail, no name, no action of any kind, in letters of one script.
func (a *analysis) open(l *lexicon, i int) bool {
	tok := &a.tokens[i]
	if !a.spaced() || tok.kind != wordToken || len(tok.text) < 3 || !isPlainASCII(tok.text) || l.known.at(tok.text) != 0 || !l.nouns.at(tok.text).empty() ||
		isDetail(tok.text) || isDetail(strings.TrimSuffix(tok.text, "s")) || a.label.echoes(tok.text) || l.same[tok.text] != "" || l.numbers[tok.text] != "" || a.isName(tok.text) {
		return false
	}
	return true
}

// opened says whether a word of no list may stand at i: not where somebody is,
// has, uses or wants it, which may be a detail of what is offered.
func (a *analysis) opened(l *lexicon, subject, next, i int) bool {
	if a.language != 0 || !a.open(l, i) { // mutant: comment.name
		return false
	}
	w := a.tokens[i].text
	k := i - 1
	for k >= next && (isArticle(a.tokens[k].text) || isPossessive(a.tokens[k].text) || a.tokens[k].text == "a" || a.tokens[k].text == "an" || isMeasure(a.tokens[k].text) || a.remark(l, k) == remarkState) {
		k--
	}
	if k < next {
		switch first := a.tokens[subject].text; {
		case next == subject:
			return false
		case isPossessive(first) || isArticle(first):
			return strings.HasSuffix(a.tokens[next-1].text, "s") // "the bucket's brimming"
		case isItsBe(first) || first == "im" || first == "were":
			return strings.HasSuffix(w, "ing") || strings.HasSuffix(w, "ed")
		}
		return false
	}
	switch a.tokens[k].text {
	case "have", "has", "had", "got", "gets", "get", "having", "with", "without", "for", "to", "ive", "weve", "theyve", "like", "likes", "from", "eat", "eats", "eating", "ate", "drink", "drinks", "drinking", "wear", "wears", "wearing", "speak", "speaks", "love", "loves", "loved", "enjoy", "enjoys", "adore", "adores", "miss", "misses", "need", "needs", "as", "going", "went", "goes", "gone", "than", "no", "not", "never", "any", "only", "just", "say", "says":
		return false
	case "is", "are", "was", "were", "be", "been", "seems", "looks", "feels", "smells", "tastes", "keeps", "kept":
		first := a.tokens[subject].text
		if isPossessive(first) || isArticle(first) || a.remark(l, subject)&remarkNoun != 0 {
			return true
		}
		return strings.HasSuffix(w, "ing") || strings.HasSuffix(w, "ed")
	}
	return true
}

// acts says whether a word of no list at i is what the subject, somebody else,
// has done or keeps doing: "he scoffed the lot", "she's revising". What they
// have decided is no comment, nor what is one of our actions.
func (a *analysis) acts(l *lexicon, i, next, subject int) bool {
	if a.language != 0 || i != next || next == subject || !a.open(l, i) {
		return false
	}
	w, before := a.tokens[i].text, a.tokens[i-1].text
	stem, past := strings.CutSuffix(w, "ed")
	if !past {
		var going bool
		if stem, going = strings.CutSuffix(w, "ing"); !going {
			return false
		}
		switch before {
		case "hes", "shes", "theyre", "its", "is", "are", "was", "were", "keeps", "keep", "kept", "been":
		default:
			return false
		}
	}
	if len(stem) < 3 || before == "i" || before == "we" || before == "it" || before == "that" || before == "this" {
		return false
	}
	for _, base := range participleOf(stem + "ed") {
		if l.verbs.at(base) != 0 || isDetail(base) {
			return false
		}
	}
	return true
}

func (a *analysis) nounAt(l *lexicon, t reasonTable, k, to int) bool {
	return a.remark(l, k)&remarkNoun != 0 || a.tokens[k].kind == wordToken && a.classifyOne(l, k) == kindEcho ||
		t.of(reasonWho, a.tokens, k, to) == 1
}

// isAll is all there is.
func isAll(w string) bool {
	switch w {
	case "alles", "todo", "todos", "tudo", "tutto", "tutti", "tout", "sab", "sabko", "सब", "iedereen", "全部", "全":
		return true
	}
	return false
}

// isThere opens a sentence about what there is.
func isThere(w string) bool {
	switch w {
	case "theres", "there", "hay", "habia", "ya", "yaura", "ci", "ce", "ceran", "era", "es", "er", "tem", "ha":
		return true
	}
	return false
}

// saysItself says whether the word at i says something without a subject: a
// form that nobody tells another with.
func (a *analysis) saysItself(l *lexicon, i int) bool {
	w := a.tokens[i].text
	if k := l.tables[a.language].words.at(w).kind; k.cue() && k != kindOther && k != kindThird && k != kindTime && k != kindNegation && k != kindLoss {
		return false // "sí, espera"
	}
	if !a.spaced() {
		return true
	}
	if p := a.remark(l, i); p&remarkVerb != 0 && l.verbs.at(w) == 0 || p&remarkState != 0 {
		return true
	}
	switch w {
	case "been", "had", "got", "just", "only", "finally", "havent", "hadnt", "cant", "couldnt", "never", "no", "not", "still", "nearly", "almost", "already", "too", "so":
		return true
	case "nadie", "ninguem", "nessuno", "niemand", "personne", "nunca", "nao", "non", "nicht", "nie", "niet", "nooit", "plus", "rien", "koi", "kein", "keine", "geen", "jamais", "mai", "nada", "niente", "nichts":
		return i+1 < len(a.tokens)
	case "ho", "tengo", "tenho", "to", "estoy", "estou", "sto", "ja", "ya", "gia", "hab", "habe", "bin", "heb", "ben", "suis", "ai":
		return a.language > 0 && i+1 < len(a.tokens)
	}
	return false
}

// spaced says whether the language puts the verb before its object and writes
// words apart.
func (a *analysis) spaced() bool {
	switch languages[a.language] {
	case "hi", "zh", "ja":
		return false
	}
	return true
}

// predicated reads the sentence whose subject stands from i up to next: all of
// its words are accounted for, and something is said.
func (a *analysis) predicated(l *lexicon, t reasonTable, subject, next, to int, linked bool) (strange int, ok bool) {
	said, denied, free := false, false, 0
	loses := a.loses()
	self := next > subject && t.of(reasonSelf, a.tokens, subject, to) > 0
	if next > subject && isItsBe(a.tokens[next-1].text) {
		said = a.complement(l, next, to)
	}
	points := next > subject && pointsOut(a.tokens[subject].text)
	for i := next; i < to; {
		tok := &a.tokens[i]
		p := a.remark(l, i)
		if isDetail(tok.text) && p == 0 {
			return 0, false
		}
		if points && (isArticle(tok.text) || tok.text == "a" || tok.text == "an") && i+1 < to && a.tokens[i+1].text == "one" {
			return 0, false
		}
		if n := a.likened(l, i, to); n > 0 {
			said = true
			i += n
			continue
		}
		if a.holds(i, to) || a.blames(i, next, subject) { // mutant: comment.doubt
			return 0, false
		}
		if loses && wouldStay(tok.text) { // mutant: comment.would-stay
			return 0, false
		}
		if n := a.pastTime(i, to, linked); n > 0 {
			said = said || isDuration(tok.text) || tok.text == "been"
			i += n
			continue
		}
		switch {
		case isDenial(tok.text):
			n := a.denial(l, subject, next, i, to, denied, linked)
			if n == 0 || points {
				return 0, false
			}
			said, denied = true, true
			i += n
			continue
		case isExpectation(tok.text) && (tok.text != "going" || i+1 < to && a.tokens[i+1].text == "to") || i == next && next > subject && expects(a.tokens[subject].text):
			n := a.expectation(l, subject, i, to)
			if n == 0 {
				return 0, false
			}
			said = true
			i += n
			continue
		case tok.text == "did" && a.job(l, i, to) > 0:
			said = true
			i += a.job(l, i, to)
			continue
		case tok.kind == numberToken || l.numbers[tok.text] != "" && p == 0:
			n := a.howLong(l, i, to)
			if n == 0 {
				return 0, false
			}
			i += n
			continue
		case tok.text == "were" && next > subject:
			said = said || a.complement(l, i+1, to)
			i++
			continue
		case strings.HasSuffix(tok.text, "ing") && i > 0 && (a.tokens[i-1].text == "stop" || a.tokens[i-1].text == "stopped" || a.tokens[i-1].text == "stops") && l.verbs.at(tok.text)&a.label.verbs == 0:
			i++
			continue
		case a.tells(l, i):
			return 0, false
		case p&(remarkVerb|remarkState) != 0, p&remarkBase != 0 && next > subject:
			said = true
			i++
			continue
		case p&(remarkNoun|remarkSmall) != 0:
			i++
			continue
		case p&remarkBase != 0:
			return 0, false
		case sees(tok.text) && i > next && a.tokens[i-1].text == "to" && !self:
			said = true
			i++
			continue
		}
		switch part, n := t.at(a.tokens, i, to); part {
		case reasonWaits, reasonOwes:
			if loses {
				return 0, false
			}
			said = true
			i += n
			continue
		case reasonState:
			said = true
			i += n
			continue
		case reasonSince:
			if n = a.sinceTime(l, i, i+n, to); n == 0 {
				return 0, false
			}
			i += n
			continue
		case reasonDue:
			said = true
			for i += n; i < to && a.kindAt(l, i) == kindTime; {
				i++
			}
			continue
		case reasonBe, reasonTail:
			said = said || part == reasonBe && a.complement(l, i+n, to)
			if isAlready(tok.text) && !said && tok.text != "already" {
				return 0, false
			}
			i += n
			continue
		}
		kind, m := a.classify(l, &l.tables[a.language], i)
		switch kind {
		case kindFunction, kindFiller, kindCourtesy, kindEcho:
		case kindUnknown:
			verb := a.acts(l, i, next, subject)
			if m > 1 || points && i == next || free > 1 || !verb && !a.opened(l, subject, next, i) {
				return 0, false
			}
			said = said || verb
			free++
		case kindApprove:
			if m > 1 || points {
				return 0, false
			}
		default:
			return 0, false
		}
		if i+m > to || asksMore(tok.text) || isWish(tok.text) && !isMeasure(tok.text) || a.adds(i, m) {
			return 0, false
		}
		i += m
	}
	return free, said
}

// denial gives the length of what is denied in the sentence by the word at i, with that word; 0 where it may be the offer.
// denied says whether the sentence has denied something before.
func (a *analysis) denial(l *lexicon, subject, next, i, to int, denied, linked bool) int {
	switch {
	case denied && trailsDenial(a.tokens[i].text):
		return 1
	case a.language > 0 && i > next-1 && i > 0 && i > subject && a.remark(l, i-1)&remarkFree != 0 && !a.deniesOffer(l, i-1, i, linked):
		return 1 // the verb stands before it
	}
	return a.deniedBy(l, i, to, linked)
}

// expectation gives the length of what is expected of the subject from the word at i on, "will have left", with the words that
// say that it is expected; 0 where it is nothing that happens by itself.
func (a *analysis) expectation(l *lexicon, subject, i, to int) int {
	k, been := i, false
	if isExpectation(a.tokens[i].text) {
		k++
	}
	for k < to && (isMeasure(a.tokens[k].text) || a.tokens[k].text == "be" || a.tokens[k].text == "have" || a.tokens[k].text == "just" || a.tokens[k].text == "to") {
		been = been || a.tokens[k].text == "be" || a.tokens[k].text == "have"
		k++
	}
	if k >= to {
		return 0
	}
	had := !isExpectation(a.tokens[i].text) && strings.HasSuffix(a.tokens[subject].text, "d") && a.remark(l, k)&remarkVerb != 0
	if k+1 < to && a.tokens[k+1].text == "to" && happens(a.tokens[k].text) && a.tokens[k].text != "forget" {
		return 0 // "he would love to read it"
	}
	if p := a.remark(l, k); !happens(a.tokens[k].text) && !had && (!been || p&(remarkState|remarkVerb) == 0) {
		return 0
	}
	return k + 1 - i
}

// tells says whether the word at i, which has lost its accent, may as well tell
// somebody to do a thing, or say that it is being done: "revise" for "revisé",
// "vérifie" for "vérifié".
func (a *analysis) tells(l *lexicon, i int) bool {
	lang := languages[a.language]
	w := a.tokens[i].text
	if lang != "es" && lang != "fr" || !strings.HasSuffix(w, "e") || len(w) < 5 || a.remark(l, i)&(remarkVerb|remarkState|remarkNoun|remarkSmall) != remarkVerb {
		return false
	}
	for k := i - 1; k >= 0 && k >= i-3; k-- {
		switch a.tokens[k].text {
		case "ya", "yo", "ai", "a", "as", "ont", "avons", "avez", "jai", "est", "sont", "suis", "ete", "ma", "mont", "na", "nont", "lai", "la", "cest":
			return false
		}
	}
	return true
}

// isItsBe is a subject of English with its "is".
func isItsBe(w string) bool {
	switch w {
	case "its", "thats", "hes", "shes", "theyre", "theres", "cest":
		return true
	}
	return false
}

// complement says whether a thing that comments know, or praise, stands from i
// up to to, small words aside: "is a disgrace", "were fine".
func (a *analysis) complement(l *lexicon, i, to int) bool {
	for ; i < to; i++ {
		w := a.tokens[i].text
		switch p := a.remark(l, i); {
		case p&remarkNoun != 0:
			return true
		case w == "such" || isArticle(w) || w == "a" || w == "an" || isMeasure(w) || p&remarkState != 0:
		default:
			return a.kindAt(l, i) == kindApprove
		}
	}
	return false
}

// likened gives the length of "like a sheepdog" and the like at i: whatever a
// thing is likened to is not meant.
func (a *analysis) likened(l *lexicon, i, to int) int {
	switch a.tokens[i].text {
	case "like", "as", "como", "comme", "wie", "come", "als":
	default:
		return 0
	}
	if i+2 >= to {
		return 0
	}
	switch a.tokens[i+1].text {
	case "a", "an", "un", "una", "une", "ein", "eine", "um", "uma", "een":
	default:
		return 0
	}
	k := i + 2
	for k+1 < to && a.remark(l, k)&remarkState != 0 {
		k++
	}
	if w := a.tokens[k].text; a.tokens[k].kind != wordToken || isDetail(w) || a.isName(w) || a.label.echoes(w) || l.numbers[w] != "" {
		return 0
	}
	return k + 1 - i
}

// blames says whether token i finds the offer bad, or what was done for the pay
// that is offered: a doubt, unless it is to be lost.
func (a *analysis) blames(i, next, subject int) bool {
	if a.loses() {
		return false
	}
	switch a.tokens[i].text {
	case "broke", "broken", "ruined", "wrecked", "smashed", "destroyed", "cracked", "flooded", "lost", "burnt", "ripped", "forgot", "failed", "crashed", "trashed", "rompio", "casse", "ruine", "kaputt", "quebrou", "rotto", "kapot":
		return a.label.verbs&words().bits.pay != 0 && next > subject && isSubject(a.tokens[subject].text) && a.tokens[subject].text != "i" && a.tokens[subject].text != "we"
	case "terrible", "awful", "horrible", "dreadful", "rubbish", "useless", "ridiculous", "disgusting", "embarrassing", "stupid", "bad", "shocking", "grim", "poor", "rough", "nasty", "hopeless", "fatal", "espantoso", "affreux", "affreuse", "furchtbar", "schrecklich", "terrivel", "horrivel", "pessimo", "orribile", "terribile", "vreselijk", "verschrikkelijk":
	default:
		return false
	}
	if next == subject {
		return false
	}
	if pointsOut(a.tokens[subject].text) {
		return true
	}
	switch a.tokens[next-1].text {
	case "terms", "wording", "figures", "numbers", "sums", "maths", "math", "budget", "forms", "paperwork", "code", "tests", "books", "app", "site", "website", "page", "photos", "pictures", "reviews", "cifras", "chiffres", "zahlen", "numeros", "cifre", "cijfers":
		return true
	}
	return false
}

// holds says whether token i says that somebody has what is spoken of ("she got
// it"), or somebody with them ("we have a dog"): the one may mean that it has
// happened, the other changes what is offered.
func (a *analysis) holds(i, to int) bool {
	switch a.tokens[i].text {
	case "have", "has", "had", "got", "gets", "get", "ive", "weve", "tengo", "tenemos", "tiene", "jai", "ai", "avons", "hab", "habe", "haben", "tenho", "temos", "ho", "abbiamo", "heb", "hebben":
	default:
		return false
	}
	k := i + 1
	for k < to && isMeasure(a.tokens[k].text) {
		k++
	}
	if k >= to {
		return false
	}
	switch a.tokens[k].text {
	case "it", "that", "this", "them", "those", "these", "one", "some":
		return k+1 == to || a.tokens[k+1].text == "all" || a.tokens[k+1].text == "already" || a.tokens[k+1].text == "now" || a.tokens[k+1].text == "here"
	case "a", "an", "un", "una", "une", "ein", "eine", "einen", "um", "uma", "een", "my", "our", "the":
		k++
	}
	for k < to {
		switch a.tokens[k].text {
		case "dog", "dogs", "cat", "cats", "pet", "pets", "puppy", "baby", "babies", "toddler", "toddlers", "kid", "kids", "child", "children", "guest", "guests", "friend", "friends", "people", "car", "bike", "van",
			"perro", "gato", "bebe", "nino", "ninos", "hijos", "chien", "chat", "enfant", "enfants", "hund", "katze", "kind", "kinder", "cachorro", "crianca", "criancas", "cane", "gatto", "bambino", "bambini", "hond", "kat", "kinderen":
			return true
		case "little", "big", "small", "old", "young", "wee":
			k++
			continue
		}
		return false
	}
	return false
}

// wouldStay is a word that speaks for a thing: where it is to be lost, no reason.
func wouldStay(w string) bool {
	switch w {
	case "love", "loves", "loved", "enjoy", "enjoys", "enjoyed", "miss", "missed", "misses", "help", "helps", "helped", "works", "great", "better", "reading", "watching", "wearing", "like", "likes", "need", "needs", "needed", "use", "uses", "read", "reads", "watch", "watches", "playing", "plays", "falta", "necesito", "brauche", "preciso", "serve", "enjoying", "loving", "missing", "deserve", "deserves", "earned", "earns":
		return true
	}
	return false
}

// isDenial is a no inside a comment.
func isDenial(w string) bool {
	switch w {
	case "cant", "couldnt", "havent", "hasnt", "hadnt", "didnt", "doesnt", "dont", "isnt", "wasnt", "arent", "werent", "aint", "never", "no", "not", "nothing", "nobody", "noone", "without", "hardly", "barely", "wont", "none", "cannot",
		"nunca", "ni", "nadie", "nada", "sin", "pas", "ne", "jamais", "rien", "personne", "sans", "plus", "nicht", "nie", "kein", "keine", "keinen", "nix", "nichts", "ohne", "nimmer", "nao", "ninguem", "sem", "nem",
		"non", "mai", "niente", "nessuno", "senza", "nen", "na", "nont", "nest", "niet", "nooit", "geen", "niks", "niemand", "zonder", "nahi", "nahin", "mat", "bina", "नहीं", "不", "没", "没有", "睡不着":
		return true
	}
	return false
}

// deniedBy gives how many tokens a no at i takes with what it denies, which
// must be one of the words that may be denied; 0 where it is not. What is denied
// of the offer itself is a doubt: "I haven't seen it", "I can't find the invoice".
func (a *analysis) deniedBy(l *lexicon, i, to int, linked bool) int {
	for k := i + 1; k < to && k <= i+5; k++ {
		w := a.tokens[k].text
		switch {
		case a.remark(l, k)&remarkFree != 0:
			if a.deniesOffer(l, k, to, linked) { // mutant: comment.denial
				return 0
			}
			return k + 1 - i
		case isMeasure(w) || isDenial(w):
		default:
			switch w {
			case "been", "had", "have", "has", "got", "seem", "set", "foot", "to", "a", "an", "the", "any", "be", "my", "her", "his", "de", "du", "la", "le", "el", "o", "um", "uma", "un", "una", "me", "se", "mi", "si", "mich", "hab", "habe", "peux", "puedo", "consigo", "riesco", "kan", "kann", "tengo", "tenho", "ho", "avons", "ai", "hemos", "temos", "abbiamo", "single":
			default:
				return 0
			}
		}
	}
	return 0
}

// deniesOffer says whether the denied word at k has the offer as its object.
func (a *analysis) deniesOffer(l *lexicon, k, to int, linked bool) bool {
	w := a.tokens[k].text
	switch w {
	case "afford":
		return !a.loses()
	case "work", "working", "works", "funciona", "funcionan", "anda", "marche", "fonctionne", "funktioniert", "geht", "lauft", "funzionano", "werkt", "chal", "chalta", "चल", "चलता":
		if !linked {
			return true // who is paid has not done it
		}
	case "wait", "waiting":
		if d := a.tokens[k-1].text; d != "cant" && d != "couldnt" && d != "cannot" {
			return true // "no wait"
		}
	}
	if w == "without" {
		return false
	}
	n := k + 1
	for n < to && (isArticle(a.tokens[n].text) || isPossessive(a.tokens[n].text) || a.tokens[n].text == "this" || a.tokens[n].text == "that") {
		n++
	}
	if n < to && a.classifyOne(l, n) == kindEcho && !linked {
		return true
	}
	if k+1 >= to {
		return false
	}
	switch a.tokens[k+1].text {
	case "it", "them", "that", "this", "those", "these", "one":
	default:
		return false
	}
	switch w {
	case "find":
		return !linked
	case "stand", "face", "help", "risk", "miss", "bear", "take":
		return n < to && !isArticle(a.tokens[k+1].text) && a.tokens[k+1].text == "one"
	}
	return true
}

// trailsDenial is the second half of a no that has been said.
func trailsDenial(w string) bool {
	switch w {
	case "jamais", "plus", "pas", "rien", "nunca", "nada", "mai", "niente", "nie", "meer", "mehr", "personne", "nadie":
		return true
	}
	return false
}

// isMeasure is a small word that says how much.
func isMeasure(w string) bool {
	switch w {
	case "really", "so", "too", "very", "even", "all", "much", "any", "ever", "well", "that", "quite", "only", "still", "probably", "proper", "properly",
		"muy", "mas", "tan", "tres", "trop", "bien", "sehr", "zu", "mehr", "muito", "tao", "molto", "piu", "erg", "meer", "nog", "encore", "ya", "ja":
		return true
	}
	return false
}

// isExpectation is a word after which stands what somebody will do by
// themselves. What somebody will do for us is no comment.
func isExpectation(w string) bool {
	switch w {
	case "will", "would", "ll", "gonna", "going", "might", "may", "could", "can", "must", "va", "van", "wird", "werden", "vai", "vao", "zal", "gaat", "gaan":
		return true
	}
	return false
}

// sees is what somebody else is dying to do.
func sees(w string) bool {
	switch w {
	case "see", "hear", "meet", "know", "get", "go", "come", "start", "try", "have":
		return true
	}
	return false
}

// happens is what somebody does without having decided to.
func happens(w string) bool {
	switch w {
	case "cry", "love", "laugh", "freak", "kill", "panic", "scream", "melt", "explode", "starve", "thank", "forget", "worry", "lose", "fail", "die", "drown", "stink", "flood", "freeze", "rot", "notice", "appreciate", "enjoy", "adore", "oversleep", "burst", "combust", "collapse", "break",
		"llorar", "morir", "encantar", "encantara", "pleurer", "adorer", "adorera", "weinen", "freuen", "chorar", "morrer", "adorar", "piangere", "morire", "adorare", "huilen":
		return true
	}
	return false
}

// expects is a subject that has such a word in it.
func expects(w string) bool {
	switch w {
	case "shell", "hell", "theyll", "itll", "hed", "shed", "theyd", "itd", "ill", "well", "id", "wed":
		return true
	}
	return false
}

// job gives the length of "did a lovely job" at i.
func (a *analysis) job(l *lexicon, i, to int) int {
	for k := i + 1; k < to && k <= i+5; k++ {
		switch w := a.tokens[k].text; {
		case w == "job" || w == "work":
			return k + 1 - i
		case w == "a" || w == "an" || w == "such" || isMeasure(w) || a.remark(l, k)&remarkState != 0 || a.kindAt(l, k) == kindApprove:
		default:
			return 0
		}
	}
	return 0
}

// howLong gives how many tokens say how long something has been so, how old
// somebody is or how often it happened: a number and its unit, which is none that
// the label counts. 0: the number may be another thing.
func (a *analysis) howLong(l *lexicon, i, to int) int {
	for k := i + 1; k < to && k <= i+3; k++ {
		if isFever(a.tokens[k].text) {
			return 1
		}
	}
	if i > 1 {
		switch a.tokens[i-2].text {
		case "temp", "temperature", "fever", "fiebre", "fievre", "fieber", "febre", "febbre", "koorts":
			return 1
		}
	}
	k := i + 1
	if k >= to || !isDuration(a.tokens[k].text) && !isTimes(a.tokens[k].text) || a.label.echoes(a.tokens[k].text) || a.label.numbered() && isDuration(a.tokens[k].text) && a.labelCountsTime() {
		return 0
	}
	unit := a.tokens[k].text
	if isTimes(unit) {
		return k + 1 - i
	}
	if k++; unit == "times" && k < to && a.tokens[k].text == "today" {
		return k + 1 - i
	}
	if unit == "times" || unit == "years" && k < to && a.tokens[k].text == "old" {
		return k - i
	}
	if k < to {
		switch a.tokens[k].text {
		case "ago", "late", "overdue", "straight", "running", "over", "already", "old", "now", "behind", "hace", "schon":
			return k + 1 - i
		}
	}
	if i > 0 {
		switch a.tokens[i-1].text {
		case "waited", "waiting", "for", "saving", "hace", "depuis", "seit", "ha", "faz", "da", "al", "about", "nearly", "almost", "over", "been", "in", "already", "gone":
			if a.tokens[i-1].text != "for" && a.tokens[i-1].text != "in" || a.perfect(i-1) {
				return k - i
			}
		}
	}
	return 0
}

// isTimes counts how often something has happened.
func isTimes(w string) bool {
	switch w {
	case "veces", "fois", "volte", "vezes", "keer", "mal", "baar", "बार", "次", "遍", "回", "度", "夜", "晚", "晚上", "晚上了":
		return true
	}
	return false
}

func isFever(w string) bool {
	switch w {
	case "temp", "temperature", "fever", "fiebre", "fievre", "fieber", "febre", "febbre", "koorts", "bukhar", "बुखार", "度", "度の":
		return true
	}
	return false
}

// labelCountsTime says whether the label has a unit of time.
func (a *analysis) labelCountsTime() bool {
	for i := range a.label.tokens {
		if isDuration(a.label.tokens[i].text) {
			return true
		}
	}
	return false
}

// perfect says whether the sentence before token i says that something has been
// so: "been", "have", "ive".
func (a *analysis) perfect(i int) bool {
	for k := i; k >= 0; k-- {
		switch a.tokens[k].text {
		case "been", "have", "has", "ive", "weve", "theyve", "had", "havent", "hasnt", "waited", "waiting":
			return true
		}
		if a.tokens[k].start {
			break
		}
	}
	return false
}

// pastTime gives how many tokens at i say when something was or how long it
// lasted: "all week", "last night", "been months", "years old". A time that is to
// come may be another than the label's.
func (a *analysis) pastTime(i, to int, linked bool) int {
	if i+1 >= to || a.tokens[i+1].start {
		return 0
	}
	w, unit := a.tokens[i].text, a.tokens[i+1].text
	if isDuration(w) && (unit == "ago" || unit == "old" || unit == "overdue" || unit == "late") && !a.label.echoes(w) {
		return 2
	}
	if w == "a" && i > 0 && a.tokens[i-1].text == "on" && isWeekday(unit) && !a.labelHasTime() {
		return 2
	}
	if w != "a" && isOn(w) && isWeekday(unit) && !a.labelHasTime() && linked {
		return 2
	}
	if n := a.wholeUnit(i, to); n > 0 {
		return n
	}
	if !isDuration(unit) && !isPartOfDay(unit) || a.label.has(unit) {
		return 0
	}
	switch w {
	case "all", "whole", "entire", "past", "few", "couple", "long", "rough", "busy", "hard", "bad", "awful", "horrible", "crazy", "tough", "hectic", "terrible", "of", "over", "every", "each", "single":
		return 2
	case "last":
		if a.loses() {
			return 0
		}
		return 2
	case "this":
		if unit == "morning" || unit == "week" && a.perfect(i) {
			return 2
		}
	case "in", "for", "been", "waited", "took", "takes":
		if strings.HasSuffix(unit, "s") && isDuration(unit) {
			return 2
		}
	}
	return 0
}

// isOn stands before a weekday.
func isOn(w string) bool {
	switch w {
	case "on", "un", "am", "an", "num", "no", "di", "op", "el", "le", "a":
		return true
	}
	return false
}

// wholeUnit gives the length of "toda la noche", "die ganze woche" and "semana
// toda" at i.
func (a *analysis) wholeUnit(i, to int) int {
	unit := func(k int) bool {
		if k >= to {
			return false
		}
		switch a.tokens[k].text {
		case "dia", "noche", "semana", "tarde", "mes", "ano", "jour", "journee", "nuit", "semaine", "matinee", "soiree", "mois", "annee", "tag", "nacht", "woche", "monat", "jahr", "noite", "manha", "giorno", "giornata", "notte", "settimana", "mese", "anno", "dag", "week", "ochtend", "maand", "jaar", "raat", "din", "hafte", "mahine", "रात", "दिन", "हफ्ते":
			return !a.label.has(a.tokens[k].text)
		}
		return false
	}
	switch a.tokens[i].text {
	case "toda", "todo", "toute", "tout", "ganze", "ganzen", "tutta", "tutto", "hele", "heel", "poori", "poora", "pure", "saari", "पूरी", "सारी":
		k := i + 1
		if k < to && isArticle(a.tokens[k].text) {
			k++
		}
		if unit(k) {
			return k + 1 - i
		}
	}
	if unit(i) && i+1 < to {
		switch a.tokens[i+1].text {
		case "toda", "todo", "inteira", "inteiro", "entera", "entero", "bhar", "भर", "lang":
			return 2
		}
	}
	return 0
}

func isWeekday(w string) bool {
	switch w {
	case "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
		"lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche",
		"montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag", "segunda", "terca", "quarta", "quinta", "sexta",
		"lunedi", "martedi", "mercoledi", "giovedi", "venerdi", "sabato", "domenica", "maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag":
		return true
	}
	return false
}

// isPartOfDay is a part of a day, or a week's end.
func isPartOfDay(w string) bool {
	switch w {
	case "morning", "afternoon", "evening", "night", "nights", "weekend", "weekends":
		return true
	}
	return false
}

// remarkForm is a word that a line of comments.txt stands for.
type remarkForm struct {
	word string
	part remarkPart
}

// remarkForms gives the forms of an entry. "~" before a verb stands for its
// regular forms, "^" for the past ones alone, a noun of English has its plural, and an adjective of a Romance
// language its gender and number.
func remarkForms(section, lang, e string) (forms []remarkForm, ok bool) {
	verb, regular := strings.CutPrefix(e, "~")
	verb, past := strings.CutPrefix(verb, "^")
	word := fold(verb)
	switch section {
	case "noun":
		out := []remarkForm{{word, remarkNoun}}
		if p := plural(lang, word); p != "" {
			out = append(out, remarkForm{p, remarkNoun})
		}
		return out, true
	case "small":
		return []remarkForm{{word, remarkSmall}}, true
	case "free":
		return []remarkForm{{word, remarkFree}}, true
	case "base":
		return []remarkForm{{word, remarkBase}}, true
	case "state":
		out := []remarkForm{{word, remarkState}}
		for _, f := range praise(lang, word) {
			out = append(out, remarkForm{f, remarkState})
		}
		return out, true
	case "verb":
		switch {
		case past:
			return toldBefore(lang, word), true
		case regular:
			return told(lang, word), true
		}
		return []remarkForm{{word, remarkVerb}}, true
	}
	return nil, false
}

// plural is the regular plural of a noun; "" where the language has it listed.
func plural(lang, w string) string {
	if len(w) < 3 || strings.Contains(w, " ") {
		return ""
	}
	end := w[len(w)-1]
	switch lang {
	case "en":
		switch {
		case end == 's' || end == 'x' || strings.HasSuffix(w, "ch") || strings.HasSuffix(w, "sh"):
			return w + "es"
		case end == 'y' && !strings.ContainsRune("aeiou", rune(w[len(w)-2])):
			return w[:len(w)-1] + "ies"
		}
		return w + "s"
	case "es", "pt":
		if strings.IndexByte("aeiou", end) >= 0 {
			return w + "s"
		}
		return w + "es"
	case "fr":
		if end != 's' && end != 'x' && end != 'z' {
			return w + "s"
		}
	}
	return ""
}

// told gives the forms in which a regular verb tells what is or was: third
// persons, past, participles, and the bare form.
func told(lang, w string) []remarkForm {
	out := []remarkForm{{w, remarkBase}}
	add := func(stem string, endings ...string) {
		for _, e := range endings {
			out = append(out, remarkForm{stem + e, remarkVerb})
		}
	}
	// What could as well tell somebody to do it needs a subject.
	bare := func(stem string, endings ...string) {
		for _, e := range endings {
			out = append(out, remarkForm{stem + e, remarkBase})
		}
	}
	cut := func(ending string) (string, bool) { return strings.CutSuffix(w, ending) }
	switch lang {
	case "en":
		end := w[len(w)-1]
		switch s, e := cut("e"); {
		case e:
			add(s, "es", "ed", "ing")
		case strings.HasSuffix(w, "y") && strings.IndexByte("aeiou", w[len(w)-2]) < 0:
			add(w[:len(w)-1], "ies", "ied")
			add(w, "ing")
		case end == 's' || end == 'x' || strings.HasSuffix(w, "ch") || strings.HasSuffix(w, "sh"):
			add(w, "es", "ed", "ing")
		default:
			add(w, "s", "ed", "ing")
			if doubles(w) {
				add(w+w[len(w)-1:], "ed", "ing")
			}
		}
	case "es":
		if s, ok := cut("ar"); ok {
			add(s, "o", "aba", "aban", "aron", "ado", "ando")
			bare(s, "a", "an", "e", "amos")
			bare(soft(s, "c", "qu", "g", "gu", "z", "c"), "e")
		} else if s, ok := cut("er"); ok {
			add(s, "o", "ia", "ian", "io", "i", "ieron", "ido", "iendo")
			bare(s, "e", "en")
		} else if s, ok := cut("ir"); ok {
			add(s, "o", "ia", "ian", "io", "i", "ieron", "ido", "iendo")
			bare(s, "e", "en")
		}
	case "pt":
		if s, ok := cut("ar"); ok {
			add(s, "o", "ava", "avam", "ou", "aram", "ado", "ada", "ando", "ei")
			bare(s, "a", "am", "amos")
			add(soft(s, "c", "qu", "g", "gu"), "ei")
		} else if s, ok := cut("er"); ok {
			add(s, "o", "ia", "iam", "eu", "eram", "ido", "endo", "i")
			bare(s, "e", "em")
		} else if s, ok := cut("ir"); ok {
			add(s, "o", "ia", "iam", "iu", "iram", "ido", "indo", "i")
			bare(s, "e", "em")
		}
	case "it":
		if s, ok := cut("are"); ok {
			bare(s, "a", "i")
			add(s, "o", "ano", "ava", "avano", "ato", "ata", "ati", "ando")
		} else if s, ok := cut("ere"); ok {
			bare(s, "e", "i")
			add(s, "o", "ono", "eva", "evano", "uto", "uta", "endo")
		} else if s, ok := cut("ire"); ok {
			bare(s, "e", "i")
			add(s, "o", "ono", "iva", "ivano", "ito", "ita", "endo")
		}
	case "fr":
		if s, ok := cut("er"); ok {
			bare(s, "e", "es")
			add(s, "ent", "ait", "aient", "ee", "ees", "ant", "era")
		} else if s, ok := cut("ir"); ok {
			add(s, "it", "issent", "issait", "i", "ie")
			bare(s, "is")
		} else if s, ok := cut("re"); ok {
			add(s, "ent", "ait", "aient", "u", "ue")
			bare(s, "", "s")
		}
	case "de":
		if s, ok := cut("en"); ok {
			bare(s, "t", "e")
			add(s, "te", "ten")
			out = append(out, remarkForm{"ge" + s + "t", remarkVerb})
		}
	case "nl":
		if s, ok := cut("en"); ok {
			for _, stem := range dutchStems(s) {
				bare(stem, "", "t")
				add(stem, "de", "te", "den", "ten")
				out = append(out, remarkForm{"ge" + stem + "d", remarkVerb}, remarkForm{"ge" + stem + "t", remarkVerb})
			}
		}
	}
	return out
}

// toldBefore gives the past forms of a regular verb: who has checked is done,
// who is checking is not.
func toldBefore(lang, w string) []remarkForm {
	var out []remarkForm
	for _, f := range told(lang, w) {
		past := false
		switch lang {
		case "en":
			past = strings.HasSuffix(f.word, "ed")
		case "es":
			past = strings.HasSuffix(f.word, "do") && !strings.HasSuffix(f.word, "ndo") || strings.HasSuffix(f.word, "amos") || strings.HasSuffix(f.word, "aron") || strings.HasSuffix(f.word, "e") && strings.HasSuffix(w, "ar")
		case "pt":
			past = strings.HasSuffix(f.word, "do") && !strings.HasSuffix(f.word, "ndo") || strings.HasSuffix(f.word, "amos") || strings.HasSuffix(f.word, "ou") || strings.HasSuffix(f.word, "ei") || strings.HasSuffix(f.word, "iu")
		case "it":
			past = strings.HasSuffix(f.word, "to") || strings.HasSuffix(f.word, "ta")
		case "fr":
			past = strings.HasSuffix(w, "er") && f.word == w[:len(w)-1] || strings.HasSuffix(w, "re") && f.word == w[:len(w)-2]+"u"
		case "nl", "de":
			past = strings.HasPrefix(f.word, "ge")
		}
		if past {
			f.part = remarkVerb
			out = append(out, f)
		}
	}
	return out
}

// doubles says whether an English verb of one syllable doubles its last letter.
func doubles(w string) bool {
	n := len(w)
	if n < 3 || n > 5 {
		return false
	}
	vowel := func(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
	return !vowel(w[n-1]) && vowel(w[n-2]) && !vowel(w[n-3]) && w[n-1] != 'w' && w[n-1] != 'x' && w[n-1] != 'y'
}
