package classifier

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// guard is one reason not to act on a confirm. It can say that it objects and
// nothing more: what happens then is decided in one place, [Reading.lowered],
// so no guard can raise a reading.
type guard struct {
	name    string
	objects func(*analysis) bool
	// any guards lower every class but unrelated: what they see is not the
	// person's answer at all, so it is no decline and no modify either.
	any bool
	// byLabel guards compare the words with the label of the one open offer, so that what they say of a reply to several
	// is of no label.
	byLabel bool
	// stray guards lower unrelated as well: there the text answers somebody, and
	// it is safer to ask whom than to take it for chatter.
	stray bool
}

// guards in the order in which they are named in a verdict. All of them run;
// the last is the strongest: consent is an allow-list.
var guards = [...]guard{
	{name: "no-words", objects: guardNoWords, any: true},               // mutant: guard.no-words
	{name: "tapback", objects: guardTapback, any: true},                // mutant: guard.tapback
	{name: "auto-reply", objects: guardAutoReply, any: true},           // mutant: guard.auto-reply
	{name: "double-negation", objects: guardDoubleNegation, any: true}, // mutant: guard.double-negation
	{name: "no-offer", objects: guardNoOffer},                          // mutant: guard.no-offer
	{name: GuardSeveralOffers, objects: guardSeveralOffers},            // mutant: guard.several-offers
	{name: "keyword", objects: guardKeyword},                           // mutant: guard.keyword
	{name: "quoted", objects: guardQuoted},                             // mutant: guard.quoted
	{name: "over-long", objects: guardOverLong},                        // mutant: guard.over-long
	{name: "mixed-scripts", objects: guardMixedScripts},                // mutant: guard.mixed-scripts
	{name: "invisible", objects: guardInvisible},                       // mutant: guard.invisible
	{name: "question", objects: guardQuestion},                         // mutant: guard.question
	{name: "negation", objects: guardNegation},                         // mutant: guard.negation
	{name: "stop", objects: guardStop},                                 // mutant: guard.stop
	{name: "hedge", objects: guardHedge},                               // mutant: guard.hedge
	{name: "condition", objects: guardCondition},                       // mutant: guard.condition
	{name: "change", objects: guardChange},                             // mutant: guard.change
	{name: "amount", objects: guardAmount, byLabel: true},              // mutant: guard.amount
	{name: "time", objects: guardTime, byLabel: true},                  // mutant: guard.time
	{name: "redirect", objects: guardRedirect, byLabel: true},          // mutant: guard.redirect
	{name: "other-action", objects: guardOtherAction, byLabel: true},   // mutant: guard.other-action
	{name: "third-person", objects: guardThirdPerson},                  // mutant: guard.third-person
	{name: "idiom", objects: guardIdiom},                               // mutant: guard.idiom
	{name: "keep", objects: guardKeep},                                 // mutant: guard.keep
	{name: "self", objects: guardSelf},                                 // mutant: guard.self
	{name: "mixed-signals", objects: guardMixedSignals},                // mutant: guard.mixed-signals
	{name: "no-and-yes", objects: guardNoAndYes, stray: true},          // mutant: guard.no-and-yes
	{name: "yes-to-another", objects: guardYesToAnother, any: true},    // mutant: guard.yes-to-another
	{name: "acknowledgement", objects: guardAcknowledgement},           // mutant: guard.acknowledgement
	{name: "consent", objects: guardConsent, byLabel: true},            // mutant: guard.consent
}

// GuardSeveralOffers is the name of the guard that holds a yes back because several offers are open.
const GuardSeveralOffers = "several-offers"

// GuardGoesByLabel says whether the guard of that name compares the words with the label of the one open offer. Where
// several were open it had none, and what it said then counts for nothing.
func GuardGoesByLabel(name string) bool {
	return slices.ContainsFunc(guards[:], func(g guard) bool { return g.byLabel && g.name == name })
}

// runGuards gives the reading after the guards and the names of those that
// lowered it.
func runGuards(raw Reading, p Prepared, offers []Label) (Reading, []string) {
	return newParse(p, offers).guard(raw)
}

// guard runs the guards over a text that may have been taken apart already.
func (s *parse) guard(raw Reading) (Reading, []string) {
	if raw.Class == Unclear {
		return raw, nil
	}
	a := s.analysis()
	var names []string
	for _, g := range guards {
		applies := raw.Class == Confirm || g.any && raw.Class != Unrelated || g.stray && raw.Class == Unrelated
		if applies && g.objects(a) {
			names = append(names, g.name)
		}
	}
	if len(names) == 0 {
		return raw, nil
	}
	return raw.lowered(), names
}

// guardNoWords: nothing in the text is the person's own.
func guardNoWords(a *analysis) bool {
	switch a.prepared.Form {
	case FormTyped, FormTapback, FormTapbackRemoved, FormAutoReply:
		return false
	}
	return true
}

// guardTapback: a reaction repeats our words, not the person's.
func guardTapback(a *analysis) bool {
	return a.prepared.Form == FormTapback || a.prepared.Form == FormTapbackRemoved
}

// guardAutoReply: a machine answered.
func guardAutoReply(a *analysis) bool { return a.prepared.Form == FormAutoReply }

// guardDoubleNegation: "don't not do it" is no no either.
func guardDoubleNegation(a *analysis) bool {
	const longest = 400 // nobody says it at length; and the reading of a long text is unclear anyhow
	own := a.own
	if len(own) > longest {
		own = own[:longest]
	}
	last := ""
	for w := range strings.FieldsSeq(fold(own)) {
		if w == "not" {
			switch last {
			case "not", "dont", "didnt", "doesnt", "wont", "cant", "never", "wouldnt", "shouldnt":
				return true
			}
		}
		last = w
	}
	return false
}

// guardNoOffer: nothing is open that could be confirmed.
func guardNoOffer(a *analysis) bool { return a.offers == 0 }

// guardSeveralOffers: which one is meant is not for code to guess, even when
// the reply seems to name it.
func guardSeveralOffers(a *analysis) bool { return a.offers > 1 }

// guardKeyword: carriers have acted on the word already.
func guardKeyword(a *analysis) bool {
	k := KeywordOf(NewWords(a.own))
	return k == KeywordStop || k == KeywordHelp
}

// guardQuoted: own words below or between quoted lines (whose question do they answer?), below a signature mark, or with
// words in quotation marks.
func guardQuoted(a *analysis) bool {
	if a.prepared.noted(NoteInline) || a.prepared.noted(NoteQuoteAbove) || a.prepared.noted(NoteSignatureFirst) || strings.HasPrefix(a.own, "--") {
		return true
	}
	return strings.ContainsFunc(a.own, isQuoteMark)
}

// Longest reply that may count as a yes. The longest plain ones seen in
// dialogues are about half as long.
const (
	maxYesRunes  = 280
	maxYesTokens = 48
)

// guardOverLong: nobody says yes at such length without saying more.
func guardOverLong(a *analysis) bool {
	return a.more || len(a.tokens) > maxYesTokens || utf8.RuneCountInString(a.own) > maxYesRunes
}

// guardMixedScripts: letters of two scripts in one word, or letters that look
// Latin and are not.
func guardMixedScripts(a *analysis) bool {
	if isPlainASCII(a.own) {
		return false
	}
	latin, lookalike := false, false
	word := 0 // bits of scripts in the word so far
	for _, r := range a.own {
		if r == utf8.RuneError {
			return true
		}
		if !unicode.IsLetter(r) {
			if !unicode.IsMark(r) {
				word = 0
			}
			continue
		}
		switch {
		case r >= 0x1D400 && r <= 0x1D7FF, r >= 0x2100 && r <= 0x214F, r >= 0x24B6 && r <= 0x24E9, r >= 0x1D00 && r <= 0x1DBF, r >= 0x0250 && r <= 0x02AF:
			return true // letters in fancy dress: mathematical, circled, phonetic
		case unicode.Is(unicode.Latin, r):
			latin = true
			word |= 1
		case unicode.Is(unicode.Cyrillic, r):
			lookalike = true
			word |= 2
		case unicode.Is(unicode.Greek, r):
			lookalike = true
			word |= 4
		case unicode.In(r, unicode.Armenian, unicode.Cherokee, unicode.Lisu, unicode.Coptic, unicode.Deseret):
			lookalike = true
			word |= 8
		case unicode.Is(unicode.Devanagari, r):
			word |= 16
		}
		if word&(word-1) != 0 {
			return true
		}
	}
	return latin && lookalike
}

// guardInvisible: something that cannot be seen stands inside the words, or
// turns their direction.
func guardInvisible(a *analysis) bool {
	return a.prepared.noted(NoteInvisible) || a.prepared.noted(NoteBidi) || a.prepared.noted(NoteInvalidUTF8)
}

// guardQuestion: a question mark anywhere, a question word, or the word order
// of a question.
func guardQuestion(a *analysis) bool {
	if strings.ContainsAny(a.own, "?？¿؟⁇⁈‽") {
		return true
	}
	return a.any(kindQuestion) || a.asksForDetails()
}

// asksForDetails tells "the details are right" from "I want the details" and
// from "yes, and the price": names of details are accounted for only where the
// sentence approves of them.
func (a *analysis) asksForDetails() bool {
	for _, d := range a.items {
		i := d.from
		if d.kind != kindFunction || d.to != i+1 {
			continue
		}
		switch a.tokens[i].text {
		case "info", "information", "detail", "details", "data", "summary", "address", "price", "cost", "total", "name", "number":
		default:
			continue
		}
		if a.label.echoes(a.tokens[i].text) {
			continue
		}
		approved, asked := false, false
		for _, it := range a.items {
			switch {
			case it.from < i && a.sentenceBetween(it.from, i), it.from > i && a.sentenceBetween(i, it.from):
			case it.kind == kindApprove:
				approved = true
			case (it.kind == kindGo || it.kind == kindVerb) && it.from < i && !a.commaBetween(it.from, i):
				asked = true
			}
		}
		if (asked || !approved) && a.label.verbs&words().bits.block == 0 {
			return true
		}
	}
	return false
}

func (a *analysis) commaBetween(from, to int) bool {
	for i := from + 1; i <= to; i++ {
		if a.tokens[i].comma {
			return true
		}
	}
	return false
}

func (a *analysis) sentenceBetween(from, to int) bool {
	for i := from + 1; i <= to; i++ {
		if a.tokens[i].start {
			return true
		}
	}
	return false
}

// guardNegation: a no of any kind.
func guardNegation(a *analysis) bool { return a.any(kindNegation) || a.any(kindLoss) }

// guardStop: wait, cancel, later, I did it myself.
func guardStop(a *analysis) bool { return a.any(kindStop) }

// guardHedge: maybe, I guess, not sure.
func guardHedge(a *analysis) bool {
	if a.any(kindHedge) {
		return true
	}
	// "lol sure" jokes; "send it lol" does not.
	if a.laughs() && !a.any(kindVerb) && !a.any(kindGo) {
		return true
	}
	// "ok..." is not done thinking.
	return len(a.items) <= 1 && (strings.HasSuffix(a.own, "..") || strings.HasSuffix(a.own, "…"))
}

func (a *analysis) laughs() bool {
	for i := range a.tokens {
		switch a.tokens[i].text {
		case "lol", "haha", "hahaha", "hehe", "lmao", "rofl", "lmfao":
			return true
		case "ha": // in Italian and Portuguese somebody has something
			if a.language == 0 {
				return true
			}
		}
	}
	return false
}

// guardCondition: if, once, only, unless; "should it be ready, yes" and "yes, given it's right".
func guardCondition(a *analysis) bool { return a.any(kindCondition) || a.supposes() }

// supposes says whether a clause sets a condition without an if.
func (a *analysis) supposes() bool {
	for i := 0; i+1 < len(a.tokens); i++ {
		switch a.tokens[i].text {
		case "should", "were", "had":
			if i > 0 && !a.tokens[i].start && !a.tokens[i].comma {
				continue
			}
		case "given":
			if i > 0 && a.tokens[i-1].text != "yes" && a.tokens[i-1].text != "ok" && a.tokens[i-1].text != "sure" && !a.tokens[i].comma && !a.tokens[i].start {
				continue
			}
		default:
			continue
		}
		switch a.tokens[i+1].text {
		case "it", "its", "that", "thats", "this", "they", "theyre", "he", "she", "hes", "shes", "you", "the":
			return true
		}
	}
	return false
}

// guardChange: but, instead, cc, another; and "on" to an offer to turn off.
func guardChange(a *analysis) bool {
	if a.any(kindChange) || a.addsNext() { // mutant: guard.adds-next
		return true
	}
	if a.turnsAround() { // mutant: guard.turns-around
		return true
	}
	if a.goesAnotherWay() { // mutant: guard.channel
		return true
	}
	if a.tellsSomething() { // mutant: guard.tells
		return true
	}
	for _, pair := range opposites {
		for k, w := range pair {
			if !a.label.has(w) || a.label.has(pair[1-k]) {
				continue
			}
			for i := range a.tokens {
				if it := a.itemAt(i); it.kind == kindVerb && it.to > it.from+1 {
					continue // "call it off" to "cancel … on Monday"
				}
				if a.tokens[i].text == pair[1-k] && (i == 0 || a.tokens[i-1].text != "go" && a.tokens[i-1].text != "come") {
					return true
				}
			}
		}
	}
	return false
}

// addsNext says whether a yes goes on with "and" to something that the label has
// in no such word: "yes and the retro" to a standup.
func (a *analysis) addsNext() bool {
	for n, it := range a.items {
		if n+1 >= len(a.items) || n > 0 && !a.boundary(n) && a.items[n-1].kind != kindAssent && a.items[n-1].kind != kindCourtesy {
			continue
		}
		switch a.tokens[it.from].text {
		case "and", "y", "et", "und", "e", "en", "aur":
		default:
			continue
		}
		next := a.items[n+1]
		if next.kind == kindFunction && isArticle(a.tokens[next.from].text) && n+2 < len(a.items) {
			next = a.items[n+2]
		}
		if next.kind == kindEcho && a.tokens[next.from].kind == wordToken && !a.label.echoes(a.tokens[next.from].text) {
			return true
		}
	}
	return false
}

// direction is what an action does to a thing that can be on or off, open or shut, higher or lower.
type direction uint8

const (
	neither direction = iota
	onward            // on, open, higher
	offward
)

// direction is that of the label; its first word is the verb.
func (f *labelFacts) direction() direction {
	if len(f.tokens) == 0 {
		return neither
	}
	switch f.tokens[0].text {
	case "turn", "switch", "put", "set", "power":
		on, off := f.has("on") || f.has("up"), f.has("off") || f.has("down")
		switch {
		case on && !off:
			return onward
		case off && !on:
			return offward
		}
	case "start", "enable", "activate", "run", "resume", "open", "unlock", "unmute", "raise", "increase":
		return onward
	case "stop", "disable", "deactivate", "mute", "pause", "close", "lock", "shut", "lower", "reduce", "decrease":
		return offward
	}
	return neither
}

// turnsAround says whether a clause in German or Dutch ends in the half of a verb that does the opposite of the label:
// "mach die heizung aus" to an offer to turn it on. The thing stands between the halves, and it is the label's.
func (a *analysis) turnsAround() bool {
	label := a.label.direction()
	if label == neither {
		return false
	}
	for i := range a.tokens {
		if d := particle(languages[a.language], a.tokens[i].text); d != neither && d != label && a.endsClause(i) {
			return true
		}
	}
	return false
}

// particle is the direction of the second half of a verb.
func particle(lang, w string) direction {
	switch lang {
	case "de":
		switch w {
		case "an", "ein", "auf", "hoch", "rauf":
			return onward
		case "aus", "ab", "zu", "runter":
			return offward
		}
	case "nl":
		switch w {
		case "aan", "open", "omhoog":
			return onward
		case "uit", "af", "dicht", "toe", "omlaag":
			return offward
		}
	}
	return neither
}

// channel is the way by which a message goes, as a label or a reply names it; 0: none.
func channel(w string) uint {
	switch w {
	case "email", "emails", "mail", "mails", "mailen", "correo", "courriel", "e-mail", "मेल", "ईमेल", "メール", "邮件":
		return 1 << 1
	case "text", "sms", "texto", "imessage", "एसएमएस", "短信":
		return 1 << 2
	case "whatsapp", "whatsap", "wapp", "व्हाट्सएप", "व्हाट्सऐप":
		return 1 << 3
	case "slack":
		return 1 << 4
	case "telegram":
		return 1 << 5
	case "fax":
		return 1 << 6
	case "line", "ライン":
		return 1 << 7
	case "wechat", "weixin", "微信":
		return 1 << 8
	case "dm":
		return 1 << 9
	}
	return 0
}

// goesAnotherWay says whether the words name a way for a message, and none that the label names: "text her" to a mail.
func (a *analysis) goesAnotherWay() bool {
	if a.label.verbs&words().bits.tells == 0 {
		return false
	}
	var label, said uint
	for i := range a.label.tokens {
		label |= channel(a.label.tokens[i].text)
	}
	for i := range a.tokens {
		said |= channel(a.tokens[i].text)
	}
	return label != 0 && said != 0 && label&said == 0
}

// tellsSomething says whether a reply to an offer to tell somebody something tells us to say something, and what follows is
// not the label's: "tell him i'm sick" to an offer to accept. By itself it would be a reason.
func (a *analysis) tellsSomething() bool {
	if a.label.verbs&words().bits.tells == 0 {
		return false
	}
	for n, it := range a.items {
		if it.kind != kindVerb || !a.isTelling(it) {
			continue
		}
		for _, next := range a.items[n+1:] {
			if t := &a.tokens[next.from]; t.start || t.comma {
				break
			}
			if next.kind == kindReason || next.kind == kindApprove {
				return true
			}
		}
	}
	return false
}

// isTelling says whether an item has a verb of saying.
func (a *analysis) isTelling(it item) bool {
	for _, t := range a.tokens[it.from:it.to] {
		switch t.text {
		case "tell", "say", "text", "reply", "answer", "write", "inform", "message",
			"di", "dile", "diles", "dígale", "digale", "avisale", "avisa", "dis", "dites", "dire", "digli", "dille", "digle", "dica", "diz", "diga", "fala", "avise",
			"sag", "sage", "sagen", "schreib", "schreibe", "schreiben", "antworte", "zeg", "zeggen", "vertel", "schrijf", "laat",
			"bolo", "bol", "batao", "bata", "likh", "likho", "बोलो", "बोल", "बता", "बताओ", "लिख", "告诉", "回", "回复", "伝えて", "言って", "返信":
			return true
		}
	}
	return false
}

// endsClause says whether nothing but courtesy and small words follows in the clause.
func (a *analysis) endsClause(i int) bool {
	for i++; i < len(a.tokens) && !a.tokens[i].start && !a.tokens[i].comma; i++ {
		switch a.itemAt(i).kind {
		case kindFiller, kindCourtesy, kindAssent, kindApprove:
		default:
			return false
		}
	}
	return true
}

// opposites turn an action around.
var opposites = [...][2]string{{"on", "off"}, {"up", "down"}, {"open", "close"}, {"lock", "unlock"}, {"enable", "disable"}, {"raise", "lower"}}

// guardAmount: a number or a currency that the label does not have, "some" of a given number, one of what it lists,
// "everything" where a part was offered for deletion.
func guardAmount(a *analysis) bool {
	if a.any(kindNumber) || a.otherCurrency() || a.namesAPart() {
		return true
	}
	if a.goesBeyond() { // mutant: guard.beyond
		return true
	}
	loses := a.loses()
	for i := range a.tokens {
		switch a.tokens[i].text {
		case "part", "partly", "instalments", "installments":
			if !a.label.echoes(a.tokens[i].text) {
				return true // "yes part"
			}
		case "by":
			if it := a.itemAt(i); it.to == it.from+1 && i+1 < len(a.tokens) && !a.label.echoes(a.tokens[i+1].text) {
				return true // "yes by bus"
			}
		case "k", "each", "apiece":
			if i > 0 && a.tokens[i-1].kind == numberToken && !a.tokens[i].start && !a.tokens[i].comma && !a.label.has(a.tokens[i].text) { // mutant: guard.each
				return true
			}
		case "grand":
			if i > 0 && a.tokens[i-1].text == "a" && a.label.verbs&words().bits.pay != 0 {
				return true // a thousand
			}
		case "some":
			if loses || a.hasCount() {
				return true
			}
		case "aur", "और":
			// Hindi: "and", and behind a number "more".
			for k := i - 1; k >= max(0, i-2); k-- {
				if a.tokens[k].kind == numberToken || words().numbers[a.tokens[k].text] != "" { // mutant: guards.more
					return true
				}
			}
		case "everything", "entire", "whole", "every":
			if loses && !a.label.has(a.tokens[i].text) && i > 0 && !a.tokens[i].start {
				return true
			}
		case "todo", "tudo", "tutto", "tout", "alles":
			// "elimina tutto" to a part of it; "todo bien" is no amount.
			if it := a.itemAt(i); loses && !a.label.has("all") && (it.kind == kindVerb || a.verbEndsAt(i-1)) {
				return true
			}
		case "all":
			// "all of them" to a part of them; "it all looks good" is no number.
			if i+2 < len(a.tokens) && a.tokens[i+1].text == "of" && a.hasCount() && !loses {
				switch a.tokens[i+2].text {
				case "them", "those", "these", "em":
					return true
				}
			}
		}
	}
	return false
}

// guardTime: a time that the label does not have; and "now" to something that
// was offered for a given time.
func guardTime(a *analysis) bool {
	if a.any(kindTime) || a.isRough() { // mutant: guard.rough
		return true
	}
	l := words()
	verbs := a.label.verbs
	if len(a.label.tokens) > 0 {
		verbs |= l.verbAt(a.label.tokens[:1], 0) // "send" of "send the report", which is to report
	}
	return a.saysNow() && verbs&l.bits.timed != 0 && a.labelHasTime()
}

// isRough says whether a number is said to be near or a beginning: "vers dix heures", "ab zehn".
func (a *analysis) isRough() bool {
	for i := 0; i+1 < len(a.tokens); i++ {
		switch w := a.tokens[i].text; w {
		case "vers", "verso", "gegen", "rond", "pelas", "ab", "vanaf", "circa", "environ":
			k := i + 1
			if w := a.tokens[k].text; k+1 < len(a.tokens) && (isArticle(w) || w == "las" || w == "le") {
				k++
			}
			if t := &a.tokens[k]; !t.start && !t.comma && (t.kind == numberToken || words().numbers[t.text] != "") && !a.label.has(w) {
				return true
			}
		}
	}
	return false
}

func (a *analysis) saysNow() bool {
	for i := range a.tokens {
		switch a.tokens[i].text {
		case "now", "immediately", "asap", "inmediatamente", "enseguida", "immediatement", "imediatamente", "immediatamente", "umgehend", "unverzuglich", "meteen", "direct", "gelijk", "onmiddellijk", "zsm", "turant", "तुरंत", "尽快", "立刻", "立马", "至急", "すぐに", "ahora", "maintenant", "jetzt", "sofort", "agora", "adesso", "subito", "nu", "abhi", "现在", "马上", "今すぐ", "今", "すぐ", "いますぐ", "अभी":
			return true
		}
	}
	return false
}

func (a *analysis) labelHasTime() bool {
	t := &words().tables[0]
	for i := range a.label.tokens {
		if t.words.at(a.label.tokens[i].text).kind == kindTime {
			return true
		}
		if i > 0 && a.label.tokens[i-1].text == "at" { // mutant: guard.at-a-time
			if _, _, n := clock(a.label.tokens, i); n > 0 || a.label.tokens[i].kind == numberToken {
				return true
			}
		}
	}
	return false
}

// guardRedirect: the reply names another receiver or another direction than
// the label: "send it to me", "from savings to checking".
func guardRedirect(a *analysis) bool {
	sends := a.label.verbs&words().bits.sends != 0
	for i := 1; i < len(a.tokens); i++ {
		w := a.tokens[i].text
		prev := a.tokens[i-1].text
		if a.itemAt(i).kind == kindReason {
			continue // "she's so good to us"
		}
		switch w {
		case "all", "both", "each", "everyone", "people":
			if sends && prev == "to" && !a.label.has(w) {
				return true
			}
		case "大家":
			if sends && a.verbEndsAt(i-1) && !a.label.toAll() {
				return true
			}
		case "me", "us", "myself", "you":
			if a.label.has(w) {
				continue
			}
			to := prev == "to" && (i < 2 || !a.approvesAt(i-2))
			if to && w != "you" && a.label.has("to") && a.any(kindVerb) { // mutant: guards.to-me
				return true // "assign to me" what was to be assigned to Marek
			}
			if !sends {
				continue
			}
			if to {
				return true
			}
			if w != "you" && a.verbEndsAt(i-1) {
				return true // "send me"
			}
		}
		if prev == "to" || prev == "from" {
			k := i
			if a.tokens[k].text == "the" || a.tokens[k].text == "my" {
				k++
			}
			if k < len(a.tokens) && a.label.turned(prev, a.tokens[k].text) {
				return true
			}
		}
	}
	return false
}

// turned says whether the label has the word, but after "from" where the reply
// has "to", or the other way round.
func (f *labelFacts) turned(preposition, w string) bool {
	other := "to"
	if preposition == "to" {
		other = "from"
	}
	found := false
	last := ""
	for i := range f.tokens {
		switch t := f.tokens[i].text; t {
		case "to", "from", "for", "with", "at", "on", "in", "by":
			last = t
		case w:
			if last == preposition {
				return false
			}
			found = found || last == other
		}
	}
	return found
}

func (a *analysis) approvesAt(tok int) bool {
	for _, it := range a.items {
		if it.from <= tok && tok < it.to {
			return it.kind == kindApprove || it.kind == kindAssent
		}
	}
	return false
}

func (a *analysis) verbEndsAt(tok int) bool {
	for _, it := range a.items {
		if it.from <= tok && tok < it.to {
			return it.kind == kindVerb
		}
	}
	return false
}

// guardOtherAction: the reply asks for something else, or names the action
// only inside the name of another thing.
func guardOtherAction(a *analysis) bool {
	return a.any(kindOther) || a.bent() || a.actsOnThing() // mutant: guard.acts-on-thing
}

// guardThirdPerson: somebody else's yes, or words about approval instead of
// approval.
func guardThirdPerson(a *analysis) bool {
	if strings.ContainsAny(a.own, "{}<>[]=") && !strings.Contains(a.own, "<3") && !strings.Contains(a.own, "=)") {
		return true
	}
	return a.any(kindThird) || a.namedApproves() || a.othersAgree() // mutant: guard.named-approves
}

// othersAgree says whether it is somebody else who agrees: "they agreed", "Dana is fine with it".
func (a *analysis) othersAgree() bool {
	for i := 1; i < len(a.tokens); i++ {
		if a.tokens[i].start || a.tokens[i].comma {
			continue
		}
		switch before := a.tokens[i-1].text; a.tokens[i].text {
		case "agree", "agrees", "agreed", "approve", "approves", "approved", "confirm", "confirms":
			switch before {
			case "they", "he", "she", "you", "everyone", "everybody":
				return true
			}
		case "with":
			if i < 2 || i+1 >= len(a.tokens) || a.tokens[i+1].text != "it" && a.tokens[i+1].text != "that" && a.tokens[i+1].text != "this" {
				continue
			}
			switch before {
			case "fine", "ok", "okay", "good", "happy", "cool", "down":
			default:
				continue
			}
			switch a.tokens[i-2].text {
			case "theyre", "hes", "shes", "youre":
				return true
			case "is", "are":
				return i > 2
			}
		}
	}
	return false
}

// isNamed says whether the token is a name: nothing in the lexicon.
func (a *analysis) isNamed(i int) bool {
	l := words()
	w := a.tokens[i].text
	return l.known.at(w) == 0 && l.nouns.at(w).empty() && len(w) > 1 && a.tokens[i].kind == wordToken && !a.loses()
}

// namedApproves says whether somebody whom the label names is said to have
// approved: "Owen approved it" to his own request.
func (a *analysis) namedApproves() bool {
	for n, it := range a.items {
		if it.kind != kindEcho || n > 0 && !a.boundary(n) || it.to >= len(a.tokens) {
			continue
		}
		switch a.tokens[it.to].text {
		case "approved", "agreed", "confirmed", "accepted", "authorised", "authorized", "okayed", "aprobo", "approuve", "aprovou":
		default:
			continue
		}
		if a.isNamed(it.from) {
			return true
		}
		if it.to+1 >= len(a.tokens) {
			continue
		}
		switch a.tokens[it.to+1].text {
		case "it", "this", "that", "them", "already", "yesterday":
			return true
		}
	}
	return false
}

// guardIdiom: words that say yes and mean no, or mean nothing.
func guardIdiom(a *analysis) bool {
	return a.any(kindIdiom) || a.says("hau", "ab") || len(a.tokens) == 2 && a.says("que", "va") // mutant: guards.idiom-apart
}

// loses says whether the offer is to lose something.
func (a *analysis) loses() bool {
	return a.label.verbs&words().bits.loses != 0
}

// guardKeep: keep it, leave it; and, where something is to be lost, "I need
// it", "I like it", "let's go" and "let it continue"; and "accept it" to what is
// to be declined.
func guardKeep(a *analysis) bool {
	if a.any(kindKeep) || a.accepts() {
		return true
	}
	if a.feelsOtherwise() { // mutant: guard.feels
		return true
	}
	if a.givesUp() && a.upholds() { // mutant: guards.upholds
		return true
	}
	if a.label.declines() && !a.plainly() { // mutant: guards.declines
		return true
	}
	if !a.givesUp() { // mutant: guards.gives
		return false
	}
	if !a.any(kindVerb) && (a.needs() || a.obtains()) { // mutant: guards.needs
		return true
	}
	for n, it := range a.items {
		if it.kind == kindApprove && a.likes(it) && !a.any(kindVerb) {
			return true
		}
		if (it.kind == kindGo || it.kind == kindAssent) && a.sets(it) {
			return true
		}
		if it.kind != kindGo {
			continue
		}
		first, last := a.tokens[it.from].text, a.tokens[it.to-1].text
		switch first {
		case "continue", "carry", "keep", "go":
			if first != "go" || last == "on" {
				return true
			}
		}
		for i := it.from; i < it.to; i++ {
			switch a.tokens[i].text {
			case "need", "want", "like", "love", "quiero", "veux", "will", "quero", "voglio", "wil", "chahiye", "चाहिए", "要", "欲しい", "ほしい":
			default:
				continue
			}
			// "I want to delete it" wants the loss.
			if last == "to" && n+1 < len(a.items) && a.items[n+1].kind == kindVerb {
				continue
			}
			return true
		}
	}
	return false
}

// sets says whether somebody sets out: "let's go" to a dinner that is to be cancelled is on the way there.
func (a *analysis) sets(it item) bool {
	for i := it.from; i < it.to; i++ {
		switch a.tokens[i].text {
		case "andiamo", "vamos", "vamonos", "allons", "gehts", "partiu", "vambora", "simbora", "bora", "letsgo", "lezgo", "lezzgo", "lesgo", "lessgo":
			return true
		case "go", "goo", "gooo":
			if i > 0 && (a.tokens[i-1].text == "lets" || a.tokens[i-1].text == "s") {
				return true
			}
		case "va", "gaan":
			if i > 0 && (a.tokens[i-1].text == "y" || a.tokens[i-1].text == "we") {
				return true
			}
		}
	}
	return false
}

// accepts says whether the text takes what the label turns down, and turns nothing down itself.
// declines says whether the offer is to say no to somebody.
func (f *labelFacts) declines() bool {
	for i := range f.tokens {
		next := ""
		if i+1 < len(f.tokens) {
			next = f.tokens[i+1].text
		}
		switch f.tokens[i].text {
		case "decline", "reject", "refuse", "deny", "dismiss", "regrets", "absagen", "ablehnen", "rechazar", "declinar", "decliner", "refuser", "recusar", "rifiutare", "afslaan", "afwijzen",
			"断る", "拒绝", "谢绝":
			return true
		case "turn":
			if next == "down" && !f.canBeLower() { // mutant: guards.lower
				return true
			}
		case "say", "rsvp", "reply", "vote":
			if next == "no" {
				return true
			}
		}
	}
	return false
}

// plainly says whether the yes is of words alone that can be to nothing but the question, or repeats what is to be done: beside
// an offer to decline something gladness and praise may be for what would be declined.
func (a *analysis) plainly() bool {
	if a.any(kindVerb) {
		return true
	}
	for _, it := range a.items {
		switch it.kind {
		case kindCourtesy, kindAck, kindEcho:
			continue
		case kindAssent, kindGo, kindFiller, kindFunction:
		default:
			return false
		}
		for i := it.from; i < it.to; i++ {
			switch a.tokens[i].text {
			case "yes", "yep", "yup", "yeah", "yea", "y", "ya", "aye", "ok", "okay", "oki", "okey", "sure", "confirm", "confirmed", "correct", "right", "do", "it", "that", "go", "ahead", "please", "just", "now", "then", "i", "him", "her", "them", "thanks", "so", "oh", "well", "mate", "for", "me",
				"proceed", "si", "sip", "dale", "vale", "claro", "hazlo", "oui", "ouais", "daccord", "d", "accord", "vas", "ja", "jo", "jep", "jawohl", "klar", "mach", "doe", "maar", "das",
				"es", "sim", "pode", "isso", "certo", "va", "bene", "prima", "is", "goed", "akkoord", "haan", "ha", "ji", "han", "theek", "hai", "kar", "karo",
				"हाँ", "हां", "जी", "ठीक", "है", "कर", "करो", "दो", "好", "好的", "是", "是的", "行", "可以", "嗯", "对", "はい", "うん", "お願いします", "お願い", "了解":
			default:
				return false
			}
		}
	}
	return true
}

// denied says whether the clause of a token has a word of denial: "we don't use it any more".
func (a *analysis) denied(i int) bool {
	from := i
	for from > 0 && !a.tokens[from].start && !a.tokens[from].comma {
		from--
	}
	for k := from; k < len(a.tokens) && (k <= i || !a.tokens[k].start && !a.tokens[k].comma); k++ {
		switch a.tokens[k].text {
		case "dont", "doesnt", "didnt", "not", "no", "never", "nobody", "hardly", "barely", "rarely", "nicht", "nie", "kein", "keine", "niemand", "niet", "geen", "nooit",
			"pas", "plus", "jamais", "nunca", "nadie", "nao", "ninguem", "non", "mai", "nessuno", "nahi", "nahin", "नहीं":
			return true
		}
	}
	return false
}

// canBeLower says whether the label is about a thing that is turned down as the volume is, not as an invitation.
func (f *labelFacts) canBeLower() bool {
	for _, w := range [...]string{"volume", "music", "heating", "heat", "thermostat", "radiator", "boiler", "light", "lights", "lamp", "brightness", "tv", "ac", "temperature", "fan", "speaker", "radio"} {
		if f.has(w) {
			return true
		}
	}
	return false
}

// needs says whether somebody is said to need, or to use, what would go.
func (a *analysis) needs() bool {
	for _, it := range a.items {
		if it.kind == kindLoss || it.kind == kindNegation {
			continue
		}
		for i := it.from; i < it.to; i++ {
			switch a.tokens[i].text {
			case "need", "needs", "needed", "use", "uses", "using", "worth", "love", "necesito", "necesitamos", "uso", "preciso", "precisamos", "besoin", "bisogno", "brauch", "brauche",
				"brauchen", "nodig", "zaroori", "zaruri", "jaroori", "जरूरी", "ज़रूरी", "需要", "在用", "必要":
				if !a.denied(i) { // mutant: guards.denied
					return true
				}
			}
		}
	}
	return false
}

// givesUp says whether the offer is to be rid of something, to turn it off, or to hand it back.
func (a *analysis) givesUp() bool {
	if a.ends() {
		return true
	}
	if len(a.label.tokens) == 0 {
		return false
	}
	switch a.label.tokens[0].text {
	case "return", "sell", "unfollow", "unsubscribe", "remove", "withdraw", "leave", "quit", "drop":
		return true
	}
	return false
}

// obtains says whether a yes is in the words of somebody who gets something, joins in or goes on: "grab it", "count me in", "keep
// it coming" are the opposite of giving it up.
func (a *analysis) obtains() bool {
	for _, it := range a.items {
		if it.kind != kindGo && it.kind != kindAssent && it.kind != kindApprove && it.kind != kindFiller {
			continue
		}
		for i := it.from; i < it.to; i++ {
			switch a.tokens[i].text {
			case "excited", "in", "grab", "secure", "lock", "hook", "sign", "count", "snag", "have", "launch", "live", "deploy", "coming", "cop", "take", "start", "started", "continue", "going",
				"llevo", "apunto", "apuntame", "cuenta", "sigue", "siga", "sigan", "continua", "marcha", "encantado", "encantada", "falta",
				"prends", "preneur", "preneuse", "volontiers", "continuez", "poursuis", "nehm", "nehme", "dabei", "weiter", "hatt", "hatte",
				"topo", "topamos", "dentro", "segue", "adoraria", "servono", "comodo", "partiamo", "continui", "sto", "meedoen", "doorgaan", "verder", "erbij",
				"lena", "lo", "续", "继续", "来一波", "来一个", "想要", "続行", "続けて", "ほしいです", "要る", "必要です", "楽しみです", "嬉しい", "うれしいです", "好きです":
				if w := a.tokens[i].text; w == "in" && a.tokens[max(0, i-1)].text != "im" || w == "have" && a.tokens[it.from].text != "ill" && a.tokens[it.from].text != "we" && a.tokens[it.from].text != "i" || w == "take" && !a.says("ill", "take") && !a.says("will", "take") || w == "going" && a.tokens[it.from].text != "keep" || w == "weiter" && it.to == it.from+1 && it.kind != kindGo || it.kind == kindFiller && w != "excited" || (w == "lo" || w == "sto" || w == "start") && it.kind != kindGo || w == "count" && !a.says("me", "in") || w == "hatte" && !a.says("gern", "e") && it.to == it.from+1 {
					continue
				}
				return true
			}
		}
	}
	return false
}

func (a *analysis) accepts() bool {
	if !a.label.declines() && (len(a.label.tokens) == 0 || a.label.tokens[0].text != "ignore") {
		return false
	}
	for i := range a.tokens {
		switch a.tokens[i].text {
		case "accept", "accepted", "accepting", "approve", "approved", "attend", "attending", "aceptar", "acepto", "acepta", "aceptado", "accepte", "accepter",
			"accetta", "accetto", "accettato", "akzeptieren", "akzeptiert", "annehmen", "zusagen", "aceito", "aceita", "aceitar", "accepteer", "accepteren",
			"接受", "同意", "批准", "承認", "参加", "स्वीकार", "manzoor":
			return !a.label.has(a.tokens[i].text)
		}
	}
	return false
}

// likes says whether an approval is a liking, of the offer or of what would go.
func (a *analysis) likes(it item) bool {
	for i := it.from; i < it.to; i++ {
		if w := a.tokens[i].text; (praises(w) || w == "well") && a.saysItIs(i, it.from) {
			return true // "it's great", not "great"
		}
	}
	for i := it.from; i < it.to; i++ {
		switch a.tokens[i].text {
		case "like", "love", "gusta", "encanta", "aime", "jaime", "adore", "jadore", "piace", "gosto", "adoro", "pasand", "पसंद", "喜欢", "好き", "leuk", "mag":
			return true
		}
	}
	return false
}

// saysItIs says whether the word at i is said of the thing itself.
func (a *analysis) saysItIs(i, from int) bool {
	for k := i - 1; k >= 0 && k >= from-2 && !a.tokens[k+1].start; k-- {
		switch a.tokens[k].text {
		case "its", "theyre", "been", "reads":
			return true
		case "is", "was", "are", "so", "really", "a", "it", "they":
		default:
			return false
		}
	}
	return false
}

// guardSelf: "I will send it" says who does it, and it is not us.
func guardSelf(a *analysis) bool {
	if a.doesIt() || a.happened() { // mutant: guards.does-it
		return true
	}
	if a.isDoing() { // mutant: guards.is-doing
		return true
	}
	for i := 0; i+1 < len(a.tokens); i++ {
		switch a.tokens[i].text {
		case "ill":
		case "he", "she", "they":
			// "they can pay" hands it to them; "they can be sent" does not.
			switch a.tokens[i+1].text {
			case "will", "can", "could", "shall", "should", "must":
			default:
				continue
			}
			if it := a.itemAt(i + 2); i+2 < len(a.tokens) && it.kind == kindVerb && it.from == i+2 && a.tokens[i+2].text != "go" && a.tokens[i+2].text != "be" && !a.tokens[i+2].start {
				return true
			}
			continue
		case "i", "we":
			switch a.tokens[i+1].text {
			case "will", "can", "could", "shall", "gonna":
			default:
				continue
			}
		default:
			continue
		}
		for _, it := range a.items {
			if it.from == i && it.to > i+1 && it.kind.consents() {
				break // "i will take it" is an entry of its own
			}
			if it.from > i && it.from <= i+5 && (it.kind == kindVerb || it.kind == kindGo) && !a.between(i, it.from) {
				return true
			}
		}
	}
	return false
}

// doesIt says whether somebody is said to do it, in a word or two before the action or right behind it: "I do it", "let me do
// it", "lo mando yo", "kann ich machen".
func (a *analysis) doesIt() bool {
	for n, it := range a.items {
		if it.kind != kindVerb && it.kind != kindGo && (it.kind != kindAssent || !isToDo(a.tokens[it.from].text)) {
			continue
		}
		if it.to < len(a.tokens) && !a.tokens[it.to].start && !a.tokens[it.to].comma && a.itemAt(it.to).kind == kindFunction {
			last := it.to+1 == len(a.tokens) || a.tokens[it.to+1].start || a.tokens[it.to+1].comma
			switch w := a.tokens[it.to].text; w {
			case "ich", "ik", "io", "yo", "eu", "noi", "nosotros", "ella":
				if last || w == "ich" || w == "ik" {
					return true
				}
			}
		}
		if n == 0 || a.tokens[it.from].start || a.tokens[it.from].comma {
			continue
		}
		k := it.from - 1
		for k > 0 && isMeanwhile(a.tokens[k].text) && !a.tokens[k].start && !a.tokens[k].comma {
			k--
		}
		if before := a.itemAt(k); before.kind != kindFunction && before.kind != kindFiller && before.kind != kindUnknown || before.to != k+1 {
			continue
		}
		switch w := a.tokens[k].text; w {
		case "i", "il", "elle", "gonna":
			switch next := a.tokens[it.from].text; {
			case w == "i" && (languages[a.language] == "it" || next == "get"), w == "il" && languages[a.language] != "fr", next == "va" && it.to < len(a.tokens), next == "say":
				continue
			}
			return true
		case "we", "je", "j", "jle", "jla", "ich", "ik", "eu", "io", "yo", "main", "मैं", "hum", "हम", "我", "我们", "私が", "hij", "zij", "ella", "ela", "ele", "lui", "她", "他":
			return true
		case "me":
			if k > 0 && (a.tokens[k-1].text == "let" || a.tokens[k-1].text == "lemme") {
				return true
			}
		case "le", "la", "les", "l":
			if k > 0 && (a.tokens[k-1].text == "je" || a.tokens[k-1].text == "j") {
				return true
			}
		case "lo", "los", "las":
			if w := a.tokens[it.from].text; it.to == it.from+1 && strings.HasSuffix(w, "o") {
				return true // "lo envío"
			}
		case "would", "id", "should", "will", "ill", "well":
			if a.tokens[k].text == "id" || a.tokens[k].text == "ill" || k > 0 && (a.tokens[k-1].text == "i" || a.tokens[k-1].text == "we") {
				return true
			}
		case "kann", "kan", "macht", "mag":
			if k+1 < len(a.tokens) && (a.tokens[k+1].text == "ich" || a.tokens[k+1].text == "ik") {
				return true
			}
			if k > 0 && (a.tokens[k-1].text == "er" || a.tokens[k-1].text == "ich" || a.tokens[k-1].text == "sie" && a.tokens[k].text != "mag" || a.tokens[k-1].text == "hij" || a.tokens[k-1].text == "zij") {
				return true
			}
		}
	}
	if a.says("do", "it") && (a.says("i", "do") || a.says("we", "do")) {
		return true
	}
	return a.says("from", "here") || a.says("moi", "qui") || a.says("ga", "ik") || a.says("zal", "ik")
}

// isToDo is a word that does something, also where it is listed as a yes.
func isToDo(w string) bool {
	switch w {
	case "do", "go", "fais", "faites", "fonce", "foncez", "lance", "lancez", "leg", "mach", "machen", "zieh", "tu", "fai", "fallo", "faccio", "facciamo", "facciamolo", "faz", "haz", "hazlo", "doe", "doen", "regel", "fix", "fiks", "做", "办":
		return true
	}
	return false
}

// says whether the text has the two words after each other.
func (a *analysis) says(first, second string) bool {
	for i := 1; i < len(a.tokens); i++ {
		if a.tokens[i-1].text == first && a.tokens[i].text == second && !a.tokens[i].start {
			return true
		}
	}
	return false
}

// isMeanwhile is a small word between a subject and what it does.
func isMeanwhile(w string) bool {
	switch w {
	case "just", "also", "now", "always", "already", "mal", "jetzt", "gleich", "nu", "even", "ff", "ya", "ja", "schon", "马上", "就", "去", "来", "hi", "ही", "het", "dat", "das", "es", "die", "te":
		return true
	}
	return false
}

// happened says whether the action of the label, or a request, stands in a form that has lost its accent and is past: "envoyé",
// "envié".
func (a *analysis) happened() bool {
	for _, it := range a.items {
		if it.kind != kindVerb && it.kind != kindGo {
			continue
		}
		w := a.tokens[it.to-1].text
		if consentsFormally(w) {
			continue
		}
		switch languages[a.language] {
		case "fr":
			if it.to > it.from+1 {
				continue
			}
			next := ""
			if it.to < len(a.tokens) && !a.tokens[it.to].start {
				next = a.tokens[it.to].text
			}
			switch next {
			case "le", "la", "les", "lui", "leur", "moi", "nous", "ca":
				continue // "envoyé le" is how some spell "envoyez-le"
			}
			if strings.HasSuffix(w, "e") && accented(a.own, w, "é") || strings.HasSuffix(w, "ee") && accented(a.own, w[:len(w)-1], "é") {
				return true
			}
		case "es":
			if strings.HasSuffix(w, "e") && accented(a.own, w, "é") || strings.HasSuffix(w, "o") && accented(a.own, w, "ó") {
				return true
			}
		}
	}
	return false
}

// accented says whether a folded word stands in the text with the accent on its last letter.
func accented(own, w, end string) bool {
	for f := range strings.FieldsFuncSeq(strings.ToLower(own), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		if strings.Contains(f, end) && strings.HasPrefix(fold(f), w) && (strings.HasSuffix(f, end) || strings.HasSuffix(f, end+"e") || strings.HasSuffix(f, end+"s") || strings.HasSuffix(f, end+"es")) {
			return true
		}
	}
	return false
}

// between says whether a sentence, or a wish, starts between two tokens.
func (a *analysis) between(from, to int) bool {
	for i := from + 1; i <= to; i++ {
		if a.tokens[i].start || a.tokens[i].comma {
			return true
		}
		switch a.tokens[i].text {
		case "want", "like", "love", "to", "ready", "happy", "glad", "sure":
			return true
		}
	}
	return false
}

// guardMixedSignals: yes and no in one breath.
func guardMixedSignals(a *analysis) bool {
	yes := a.any(kindAssent) || a.any(kindApprove) || a.any(kindGo)
	return yes && (guardNegation(a) || a.any(kindStop) || a.any(kindIdiom))
}

// guardNoAndYes: a text that starts with a no and says yes further on answers
// two things, and nobody but the person knows which of them is ours.
func guardNoAndYes(a *analysis) bool {
	if len(a.items) == 0 || a.items[0].kind != kindNegation {
		return false
	}
	for _, it := range a.items[1:] {
		if it.kind == kindAssent {
			return true
		}
	}
	return false
}

// guardYesToAnother: a no first, and then a yes to or for something: the no may
// as well be for another, so that it closes nothing.
func guardYesToAnother(a *analysis) bool {
	if !guardNoAndYes(a) {
		return false
	}
	for _, it := range a.items[1:] {
		if it.kind != kindAssent || it.to >= len(a.tokens) || a.tokens[it.to].start {
			continue
		}
		switch a.tokens[it.to].text {
		case "for", "to":
			return true
		}
	}
	return false
}

// guardAcknowledgement: "got it", "thanks", "no problem": the text was seen.
func guardAcknowledgement(a *analysis) bool {
	return (a.any(kindAck) || a.any(kindCourtesy)) && !a.consent() || a.onlyPleased()
}

// onlyPleased says whether all that could be a yes is one of the words that
// also just receive something: "cool", "ok thanks", "great, thank you".
func (a *analysis) onlyPleased() bool {
	thanked, pleased, agreed := false, false, 0
	for _, it := range a.items {
		switch it.kind {
		case kindAck:
			thanked = true
		case kindFiller:
			thanked = thanked || it.from == 0 // "oh ok"
		case kindCourtesy:
			switch a.tokens[it.from].text {
			case "thanks", "thank", "thx", "🙏":
				thanked = true
			}
		case kindAssent, kindApprove:
			switch t := a.text(it); {
			case receives(t):
				pleased = true
			case isWeak(t):
				agreed++
			default:
				return false
			}
		default:
			return false
		}
	}
	return pleased || agreed > 1 || agreed > 0 && thanked
}

// receives says whether a word that may approve just receives a thing as
// often.
func receives(w string) bool {
	switch w {
	case "k", "kk", "cool", "nice", "awesome", "amazing", "great", "lovely", "sweet", "wow", "okay then", "alrighty", "roger", "roger that", "10 4", "ten four", "bueno", "genial", "top", "toll",
		"legal", "bello", "mooi", "accha", "acha", "achha", "अच्छा", "嗯", "恩":
		return true
	}
	return false
}

// isWeak says whether a word of assent may be no more than an acknowledgement.
func isWeak(w string) bool {
	switch w {
	case "ok", "okay", "oki", "okey", "okie", "okis", "alright", "all right", "good", "right", "super", "excellent", "wonderful", "fantastic",
		"vale", "bien", "gut", "prima", "ta", "ta bom", "ta bem", "bom", "boa", "beleza", "bene", "va bene", "goed",
		"oke", "daccord", "dac", "ठीक", "ठीक है", "theek", "theek hai", "thik hai", "thik", "ji", "जी", "好的", "好", "好滴":
		return true
	}
	return receives(w)
}

// text is the words of an item, joined by spaces.
func (a *analysis) text(it item) string {
	if it.to == it.from+1 {
		return a.tokens[it.from].text
	}
	var b strings.Builder
	for i := it.from; i < it.to; i++ {
		if i > it.from {
			b.WriteByte(' ')
		}
		b.WriteString(a.tokens[i].text)
	}
	return b.String()
}

// guardConsent is the allow-list: a confirm stands only if somebody said yes
// and everything that they wrote is accounted for.
func guardConsent(a *analysis) bool {
	for _, it := range a.items {
		if it.kind == kindUnknown || it.kind.cue() {
			return true
		}
	}
	return !a.consent() || a.picksOne() || a.dangles() || a.pointsAtSomebody() || a.fragment()
}

// dangles says whether the text breaks off: "yes my", "ja maar", "sí y".
func (a *analysis) dangles() bool {
	if len(a.items) < 2 {
		return false
	}
	if last := a.items[len(a.items)-1]; last.kind != kindFunction && last.kind != kindFiller {
		return false
	}
	switch a.tokens[len(a.tokens)-1].text {
	case "i", "my", "the", "for", "by", "as", "to", "from", "of", "with", "and", "or", "im", "its", "theyre", "your", "our", "their", "because",
		"en", "een", "met", "van", "naar", "ik", "mijn",
		"und", "aber", "ein", "eine", "fur", "von", "ich", "mein", "dass",
		"y", "o", "un", "una", "con", "para", "de", "que", "mi", "por", "yo",
		"et", "ou", "une", "avec", "pour", "mon", "ma", "je",
		"um", "uma", "com", "pra", "meu", "eu",
		"che", "per", "di", "mio", "io",
		"aur", "ke", "ka", "main", "tum", "aap", "और", "के", "का", "मैं", "तुम", "आप":
		return true
	}
	return false
}

// pointsAtSomebody says whether a person is pointed at beside a yes, and nothing that is to be done: "yes her", "ja mit ihr".
func (a *analysis) pointsAtSomebody() bool {
	if a.any(kindVerb) || a.any(kindGo) {
		return false
	}
	for _, it := range a.items {
		if it.kind != kindFunction && it.kind != kindFiller && it.kind != kindEcho {
			continue
		}
		for i := it.from; i < it.to; i++ {
			switch a.tokens[i].text {
			case "him", "her", "hers", "them", "theirs", "me", "us", "mine", "myself",
				"ella", "ellos", "ellas", "lui", "elle", "eux", "moi", "ihm", "ihr", "ihn", "ihnen", "mir", "mich", "ele", "ela", "eles", "elas", "mim",
				"lei", "loro", "hem", "haar", "hun", "mij", "usko", "unko", "mujhe", "mereko", "उसको", "उन्हें", "मुझे", "他", "她", "他们", "她们", "我":
				if i >= 2 && a.itemAt(i-2).kind == kindApprove && isFirstPerson(a.tokens[i].text) { // mutant: guards.suits-her
					continue // "sounds good to me"
				}
				if i >= 1 && len(a.tokens[i-1].text) > 3 && a.label.echoes(a.tokens[i-1].text) {
					continue // "yeah, invite ihn"
				}
				return true
			}
		}
	}
	return false
}

// isFirstPerson is the person who writes, as an object.
func isFirstPerson(w string) bool {
	switch w {
	case "me", "us", "myself", "mine", "moi", "mir", "mich", "mim", "mij", "mujhe", "mereko", "मुझे", "我":
		return true
	}
	return false
}

// picksOne says whether the text names some of what the label leaves a choice of: "tacos" to a poll of tacos or sushi
// answers the poll. Both may be named, with the "or" between them.
func (a *analysis) picksOne() bool {
	if !a.label.has("or") {
		return false
	}
	echo := false
	for _, it := range a.items {
		echo = echo || it.kind == kindEcho
		for i := it.from; i < it.to; i++ {
			if a.tokens[i].text == "or" {
				return false
			}
		}
	}
	return echo
}
