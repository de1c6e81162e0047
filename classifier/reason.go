package classifier

import (
	"slices"
	"strings"
	"unicode"
)

// People say why: "yes, she's been waiting all week", "cancel it, I'm ill". A
// reason changes nothing of what was offered, so that it is accounted for
// where it is one whole clause, made of words of lexicon/reasons.txt and small
// words alone, beside a yes that stands without it. What such a clause cannot
// hold: a cue of any kind, a number, another action, a name that the label does
// not have, a word of no list.

// reasonPart is what a word or phrase of reasons.txt does in a reason.
type reasonPart uint8

const (
	reasonNone   reasonPart = iota
	reasonWhy               // opens one: because
	reasonWho               // somebody or something else, as its subject
	reasonSelf              // the person, as its subject
	reasonBe                // joins a subject and a state
	reasonWaits             // why somebody else wants it: is waiting, asked for it
	reasonOwes              // why the person wants it: owe, need
	reasonState             // how things are: ill, late, broken
	reasonWhole             // a reason without a subject
	reasonBeside            // the same, beside a request alone
	reasonLoses             // the same, where something is to be lost
	reasonTail              // when, how long, how much
	reasonSince             // a tail together with a time: since monday
	reasonDue               // is due, with or without a time
	reasonAbout             // a word that a statement may hold
)

var reasonNames = [...]string{"", "why", "who", "self", "be", "waits", "owes", "state", "whole", "beside", "loses", "tail", "since", "due", "about"}

// loadReasons reads reasons.txt. What it holds counts as known: it is no name,
// and no slip of the finger.
func (b *builder) loadReasons() {
	for _, s := range b.sections("reasons") {
		part := slices.Index(reasonNames[:], s.section)
		if part <= 0 || s.lang < 0 {
			b.fail(s.line, "there is no part of a reason %q, or no language %q", s.section, s.code)
			return
		}
		for _, e := range s.entries {
			ws := b.split(s.line, e)
			if len(ws) == 0 {
				continue
			}
			b.reasons[s.lang][ws[0]] = append(b.reasons[s.lang][ws[0]], phrase{rest: ws[1:], part: reasonPart(part)}) //nolint:gosec // an index of a small array
			for _, w := range ws {
				b.known[w] |= 1 << s.lang
			}
		}
	}
	for _, t := range b.reasons {
		for _, ps := range t {
			slices.SortStableFunc(ps, func(a, b phrase) int { return len(b.rest) - len(a.rest) })
		}
	}
}

// reasonTable holds the phrases of one language by first word, longest first.
type reasonTable struct {
	d     *dictionary
	group uint8
}

// phrases are those that may stand at toks[i]. No comma stands in one.
func (t reasonTable) phrases(toks []token, i int) phrases {
	ps := t.d.phrases(toks, i, t.group)
	ps.close = true
	return ps
}

// at gives the longest phrase at toks[i] that ends before to, of a part that a
// clause is made of: a whole reason, or what opens one, is part of no other. n is
// 0 if there is none.
func (t reasonTable) at(toks []token, i, to int) (part reasonPart, n int) {
	for ps := t.phrases(toks, i); ps.next(); {
		switch part = reasonPart(ps.what()); part {
		case reasonWhole, reasonBeside, reasonLoses, reasonWhy, reasonAbout:
			continue
		}
		if ps.stands(toks, i, to) {
			return part, ps.more() + 1
		}
	}
	return reasonNone, 0
}

// of gives the length of the longest phrase of one part at toks[i]; 0 for none.
func (t reasonTable) of(part reasonPart, toks []token, i, to int) int {
	for ps := t.phrases(toks, i); ps.next(); {
		if reasonPart(ps.what()) == part && ps.stands(toks, i, to) {
			return ps.more() + 1
		}
	}
	return 0
}

// How plain a yes must be for a reason to stand beside it.
const (
	yesNone    = iota
	yesSaid    // "yes": an assent that is more than an acknowledgement
	yesAndMore // "yes please", "send it", "go ahead"
)

// maxReasons is how many reasons one yes may have.
const maxReasons = 2

// giveReasons joins the items of each clause that is a reason into one item,
// where there are at most maxReasons, all other clauses are accounted for, and
// what is left says yes as plainly as each of them needs.
func (a *analysis) giveReasons(l *lexicon) {
	if a.offers != 1 || a.more || len(a.items) > maxYesTokens || a.accounted(0, len(a.items)) {
		return
	}
	rest := analysis{offers: a.offers, tokens: a.tokens, label: a.label, language: a.language}
	need, reasons := yesNone, 0
	for from := 0; from < len(a.items); {
		to := from + 1
		for to < len(a.items) && !a.boundary(to) {
			to++
		}
		if a.accounted(from, to) {
			rest.items = append(rest.items, a.items[from:to]...)
			from = to
			continue
		}
		i, k, n := a.findReason(l, from, to)
		if n == yesNone {
			return
		}
		rest.items = append(rest.items, a.items[from:i]...)
		rest.items = append(rest.items, item{kind: kindReason, from: a.items[i].from, to: a.items[k-1].to})
		rest.items = append(rest.items, a.items[k:to]...)
		need, reasons = max(need, n), reasons+1
		from = to
	}
	if reasons <= maxReasons && rest.yes() >= need {
		a.items = rest.items
	}
}

// boundary says whether a clause starts at item n.
func (a *analysis) boundary(n int) bool {
	t := &a.tokens[a.items[n].from]
	return t.start || t.comma || t.kind == symbolToken
}

// accounted says whether the items from up to to are all accounted for.
func (a *analysis) accounted(from, to int) bool {
	for _, it := range a.items[from:to] {
		if it.kind == kindUnknown || it.kind.cue() {
			return false
		}
	}
	return true
}

// yes says how plain the yes of the items is.
func (a *analysis) yes() int {
	said, asked := false, false
	for n, it := range a.items {
		switch it.kind {
		case kindGo:
			return yesAndMore
		case kindVerb:
			if a.commanded(n) {
				return yesAndMore
			}
		case kindAssent:
			if it.to > it.from+1 && !isWeak(a.text(it)) && a.remark(words(), it.to-1)&remarkNoun == 0 || consentsFormally(a.tokens[it.from].text) {
				return yesAndMore // "please do", "approved"
			}
			said = said || !isWeak(a.text(it))
		case kindCourtesy:
			asked = asked || a.text(it) != "thanks"
		}
	}
	switch {
	case said && asked:
		return yesAndMore
	case said:
		return yesSaid
	}
	return yesNone
}

// consentsFormally is a word that answers nothing but an offer.
func consentsFormally(w string) bool {
	switch w {
	case "approved", "approve", "confirmed", "confirm", "accepted", "authorised", "authorized", "aprobado", "aprobada", "confirmado", "autorizado", "approuve", "valide", "confirme", "genehmigt", "freigegeben", "bestatigt", "aprovado", "aprovada", "autorizada", "approvato", "approvata", "confermato", "goedgekeurd", "akkoord", "批准", "同意", "承認", "manjoor", "manzoor", "मंजूर":
		return true
	}
	return false
}

// findReason looks for a reason among the items from up to to, all of which are
// in one clause: items i up to k, with everything before and after accounted
// for. need is yesNone where there is none.
func (a *analysis) findReason(l *lexicon, from, to int) (i, k, need int) {
	for i = from; i < to; i++ {
		for k = to; k > i; k-- {
			if k < to && (!a.accounted(k, to) || !a.concludes(k)) {
				continue
			}
			starts := i == from || a.opens(i-1)
			first, last := a.items[i].from, a.items[k-1].to
			if need = a.reason(l, first, last, starts); need == yesNone {
				need = a.comment(l, first, last, starts)
			} else if need == yesSaid && a.ends() { // mutant: reason.ends
				need = yesAndMore // "yes, I'm freezing" does not turn the heating off
			}
			if need != yesNone {
				return i, k, need
			}
		}
		if !a.accounted(i, i+1) {
			break
		}
	}
	return 0, 0, yesNone
}

// ends says whether the offer is to be rid of something, beside which what is said of it may be why it should stay.
func (a *analysis) ends() bool {
	return a.loses() || a.label.codeLoses || a.label.verbs&words().bits.block != 0 || a.label.has("off") || a.label.has("remove")
}

// opens says whether item n takes nothing after it: what follows a "yes" or a
// "please" starts a clause of its own, with or without a comma.
func (a *analysis) opens(n int) bool {
	switch it := a.items[n]; it.kind {
	case kindAssent:
		return it.to == it.from+1
	case kindCourtesy:
		return true
	}
	return false
}

// concludes says whether item k draws the conclusion from a reason before it:
// "she asked for it so yes". In Japanese a reason may run on into the request.
func (a *analysis) concludes(k int) bool {
	switch a.tokens[a.items[k].from].text {
	case "so", "also", "donc", "alors", "asi", "entao", "quindi", "dus", "isliye", "इसलिए", "所以":
		return true
	}
	if it := a.items[k]; k+1 < len(a.items) && a.tokens[it.from].text == "and" && it.to == it.from+1 {
		switch a.items[k+1].kind {
		case kindGo, kindAssent, kindVerb:
			return true // "I have checked them and they may go"
		}
	}
	return languages[a.language] == "ja"
}

// reason says how plain a yes must be beside the tokens from up to to, where
// they are a reason: an opening word or none, a subject, what is said of it, and
// how long or how much. yesNone: they are no reason. Where they do not start a
// clause, they must not be what is acted on: "it" of "play it" is no subject.
func (a *analysis) reason(l *lexicon, from, to int, starts bool) int {
	t := l.reasons[a.language]
	i := from
	if need := a.whole(l, t, i, to); need != yesNone {
		return need
	}
	because := isCausal(a.tokens[i].text)
	if i += t.of(reasonWhy, a.tokens, i, to); i == to {
		return yesNone
	}
	if need := a.whole(l, t, i, to); need != yesNone {
		return need
	}
	because = because && i > from
	next, self := a.subject(l, t, i, to, because)
	if next == i {
		if part, _ := t.at(a.tokens, i, to); !a.withoutSubject() || !starts && i == from || part == reasonNone || part == reasonTail {
			return yesNone
		}
		return a.predicate(l, t, i, to, false)
	}
	if next == to || !starts && i == from && !isSubject(a.tokens[i].text) {
		return yesNone
	}
	if need := a.predicate(l, t, next, to, self); need != yesNone {
		return need
	}
	if !starts && i == from || i > from && !because {
		return yesNone
	}
	return a.statement(l, t, i, next, to, because)
}

// maxFree is how many words of that kind a statement may have.
const maxFree = 4

// statement reads what is said of the subject more freely: "cancel it, my ankle
// is killing me". Beside a plain request, or after because, a clause about
// somebody that is made of small words and of words about bodies, machines, work
// and weather says how things are, in whatever order. Languages without spaces or
// with the verb last are not read this way.
func (a *analysis) statement(l *lexicon, t reasonTable, subject, i, to int, because bool) int {
	switch languages[a.language] {
	case "hi", "zh", "ja":
		return yesNone
	}
	free := 0
	points := pointsOut(a.tokens[subject].text)
	for i < to {
		if points && (isArticle(a.tokens[i].text) || isPossessive(a.tokens[i].text) || a.tokens[i].text == "a" || a.tokens[i].text == "an") {
			return yesNone // "that's the wrong one"
		}
		if a.loses() && wouldStay(a.tokens[i].text) {
			return yesNone // "cancel it, I'm enjoying it" is two things
		}
		part, n := t.at(a.tokens, i, to)
		switch part {
		case reasonNone:
			kind, m := a.classify(l, &l.tables[a.language], i)
			tok := &a.tokens[i]
			switch kind {
			case kindUnknown:
				free++
				if t.of(reasonAbout, a.tokens, i, to) == 0 && (because || !a.mayHold(l, t, subject, i, to)) {
					return yesNone
				}
			case kindFunction, kindFiller, kindCourtesy, kindEcho:
			case kindApprove:
				if m > 1 {
					return yesNone
				}
			default:
				return yesNone
			}
			if n = m; i+m > to || asksMore(tok.text) || isWish(tok.text) || a.adds(i, m) {
				return yesNone
			}
		case reasonWaits, reasonOwes:
			return yesNone // for what else
		case reasonTail:
			if isAlready(a.tokens[i].text) {
				return yesNone // "i already did that"
			}
		case reasonSince, reasonDue:
			if n = a.sinceTime(l, i, i+n, to); n == 0 {
				return yesNone
			}
		}
		i += n
	}
	switch {
	case free == 0 || free > maxFree:
		return yesNone
	case because:
		return yesSaid
	}
	return yesAndMore
}

// mayHold says whether a statement may hold a word of no list, at i: where
// something is to be lost, since no reason to lose it changes what goes; and as
// the last word of "I'm …", which says how the person is.
func (a *analysis) mayHold(l *lexicon, t reasonTable, subject, i, to int) bool {
	tok := &a.tokens[i]
	if tok.kind != wordToken || isDetail(tok.text) || a.isName(tok.text) {
		return false
	}
	if a.loses() {
		return true
	}
	return i+1 == to && len(tok.text) > 2 && l.nouns.at(tok.text).empty() && t.of(reasonSelf, a.tokens, subject, to) > 0 && i-subject <= 3 && isMyBe(a.tokens[i-1].text, a.tokens[subject].text)
}

// isMyBe says whether the word before a state, or the subject itself, is "am".
func isMyBe(before, subject string) bool {
	switch subject {
	case "im", "were":
		return true
	}
	switch before {
	case "am", "are", "suis", "sommes", "bin", "sind", "estoy", "estamos", "estou", "to", "sono", "siamo", "ben", "zijn", "so", "really", "too", "super", "muy", "tres", "trop", "sehr", "total", "muito", "molto", "heel":
		return true
	}
	return false
}

// isCausal says whether a word can open nothing but a reason, whatever follows.
func isCausal(w string) bool {
	switch w {
	case "because", "cause", "cuz", "cos", "coz", "bc", "porque", "pues", "ya", "parce", "parcequ", "pcq", "puisque", "weil", "denn", "pois", "perche", "siccome", "want", "omdat":
		return true
	}
	return false
}

// adds says whether the words from i on add somebody or something: "too", "as
// well".
func (a *analysis) adds(i, n int) bool {
	switch a.tokens[i].text {
	case "too":
		next := i + n
		return next == len(a.tokens) || a.tokens[next].start || a.tokens[next].comma
	case "as":
		return n == 2 && a.tokens[i+1].text == "well"
	}
	return false
}

// pointsOut is a subject that may name the offer itself.
func pointsOut(w string) bool {
	switch w {
	case "it", "its", "that", "thats", "this", "they", "theyre", "esto", "eso", "es", "ca", "cest", "das", "dies", "isso", "isto", "questo", "quello", "dit", "dat", "het":
		return true
	}
	return false
}

// isWish is a small word that says what somebody would have, or that something
// ought to be done.
func isWish(w string) bool {
	switch w {
	case "like", "liked", "love", "loved", "hope", "need", "needed", "would", "could", "may", "shall", "do", "does", "doing", "be", "let", "us",
		"gusta", "gustan", "necesito", "necesita", "debe", "quisiera", "aime", "aimerais", "voudrais", "doit", "faut", "mag", "hatte", "brauche", "brauchen", "braucht", "muss", "soll", "sollen", "kann", "darf",
		"gosto", "gostaria", "preciso", "precisa", "deve", "piace", "piacerebbe", "vorrei", "serve", "servono", "vind", "wil", "zou", "moet", "kan":
		return true
	}
	return false
}

// isAlready is a word that says that something has happened.
func isAlready(w string) bool {
	switch w {
	case "already", "ya", "deja", "schon", "ja", "gia", "al", "yesterday", "ayer", "hier", "gestern", "ontem", "ieri", "gisteren":
		return true
	}
	return false
}

// isDetail says whether a word of no list may be a detail of what was offered,
// or a doubt about it, also where it is said of somebody.
func isDetail(w string) bool {
	switch w {
	case "bogus", "dodgy", "sketchy", "phishy", "fishy", "shady", "dubious", "iffy", "fraudulent", "counterfeit", "phoney", "phony", "faulty", "defective", "inaccurate", "incomplete", "unfinished", "unsigned", "premature", "risky", "overpriced", "pricey", "extortionate", "steep", "ironic", "sarcasm", "mistaken", "typoed", "misleading", "outrageous", "ludicrous", "absurd", "lawsuit", "sue", "suing", "court", "bribe", "blackmail", "pressured", "coerced", "threatened", "threatening", "hostage", "gunpoint",
		"separately", "instead", "together", "elsewhere", "abroad", "overseas", "anonymously", "privately", "secretly", "quietly", "politely", "firmly", "gently", "briefly", "partially", "partly", "temporarily", "afterwards", "beforehand", "tonight", "overnight", "weekdays", "weekend", "fortnight", "noonish", "ish", "tomorrow",
		"french", "german", "spanish", "italian", "dutch", "english", "portuguese", "chinese", "japanese", "hindi", "arabic", "polish", "euros", "dollars", "pounds", "quid", "pence", "cents", "percent", "kilos", "grams", "litres", "liters", "metres", "inches", "feet",
		"purple", "orange", "pink", "yellow", "grey", "gray", "brown", "navy", "beige", "silver", "golden", "cotton", "wool", "leather", "plastic", "wooden", "glass", "paperback", "hardback", "ebook", "kindle", "pdf", "word", "excel", "spreadsheet", "whatsapp", "telegram", "signal", "facebook", "instagram", "linkedin", "paypal", "venmo", "visa", "mastercard", "amex", "bitcoin", "cheque",
		"veto", "vetoed", "object", "objected", "hesitate", "hesitated", "protest", "protested", "oppose", "warn", "warned", "advise", "advised", "suggest", "suggested", "mention", "mentioned", "claim", "claimed", "reckon", "reckoned", "reckons", "hint", "hinted", "argue", "argued",
		"regret", "regretted", "withdraw", "withdrew", "retract", "retracted", "resign", "resigned", "relocate", "relocated", "upgrade", "upgraded", "downgrade", "downgraded", "rename", "renamed", "reschedule", "rescheduled", "double", "doubled", "triple", "tripled", "halve", "halved", "increase", "increased", "decrease", "decreased", "reduce", "reduced", "extend", "extended", "shorten", "shortened",
		"postpone", "postponed", "delay", "delayed", "misspelled", "misspelt", "mistype", "mistyped", "overcharge", "overcharged", "undercharge", "undercharged", "quote", "quoted", "estimate", "estimated", "bill", "billed", "invoiced", "consider", "considered", "considering", "reconsider", "reconsidered", "reconsidering", "decide", "decided", "deciding", "rethink", "rethinking", "review", "reviewing", "check", "checking", "verify", "verifying",
		"discuss", "discussing", "negotiate", "negotiated", "negotiating", "evaluate", "evaluating", "assess", "assessing", "audit", "auditing", "investigate", "investigating", "inspecting", "comparing", "researching", "talking", "chatting", "reading", "looking", "wondering", "debating", "weighing", "finalise", "finalised", "finalising", "finalize", "finalized", "finalizing", "redo", "redone", "rewrite", "rewritten", "rewriting", "rewrote", "update", "updated", "updating", "amend", "amended", "amending", "correct", "correcting",
		"coeliacs", "celiacs", "keto", "paleo", "teetotal", "muslim", "jewish", "hindu", "sober", "autistic", "asthmatic", "epileptic", "intolerances", "sugarfree", "decaf", "spicy", "mild", "crispy", "welldone", "onions", "onion", "garlic", "mushrooms", "mushroom", "olives", "olive", "cheese", "meat", "fish", "seafood", "shellfish", "prawns", "pork", "beef", "chicken", "lamb", "eggs", "egg", "soy", "soya", "sesame", "peanut", "peanuts", "spice", "chilli", "chili", "sauce", "salt", "sugar", "beer", "wine", "champagne", "juice", "balcony", "terrace", "patio", "booth", "highchair", "crib", "cot", "pram", "buggy", "stroller", "crutches", "stairs", "lift", "ramp", "parking", "smoking", "view", "sunroof", "automatic", "manual", "diesel", "electric", "hybrid", "coupon", "coupons", "voucher", "vouchers", "discount", "promo", "code", "points", "miles",
		"kidding", "joking", "lying", "sarcastic", "bluffing", "drunk", "stoned", "forced", "unsure", "undecided", "torn", "sceptical", "skeptical", "doubtful",
		"doubts", "against", "opposed", "underage", "diabetic", "celiac", "coeliac", "deaf", "blind", "tall", "intolerant", "illegal", "fake", "suspicious", "wrong", "sad", "sorry",
		"bromeando", "borracho", "borracha", "diabetico", "diabetica", "plaisante", "rigole", "ivre", "diabetique", "betrunken", "diabetiker", "brincando", "bebado", "bebada",
		"scherzando", "ubriaco", "ubriaca", "dronken", "diabeet",
		"missing", "lacking", "wants", "prefers", "prefer", "vegan", "vegans", "vegetarian", "vegetarians", "veggie", "pescatarian", "allergic", "allergy", "allergies",
		"wheelchair", "kosher", "halal", "gluten", "lactose", "diet", "nut", "nuts", "dairy", "pregnant", "disabled", "bring", "bringing", "brings", "brought",
		"moved", "changed", "changing", "switched", "called", "named", "spelled", "spelt", "lives", "live", "living", "uses", "use", "using", "used", "expecting",
		"typo", "typos", "attachment", "attached", "draft", "version", "corrected", "fixed", "edited", "added", "adding", "removed", "pays", "paying", "paid", "sent",
		"booked", "ordered", "bought", "cancelled", "canceled", "deleted", "received", "arrived", "signed", "quit", "fired", "died", "closed", "locked", "blocked",
		"joining", "join", "joins", "coming", "comes", "new", "old", "red", "blue", "green", "black", "white", "large", "small", "medium", "window", "aisle", "cash", "card", "online", "upstairs", "downstairs",
		"dozen", "pair", "couple", "several", "few", "tip", "invoice", "receipt", "copy", "copies", "passport", "luggage", "bag", "bags", "bike", "pet", "pets",
		"figured", "meant", "suspect", "fear", "afraid", "concerned", "unhappy", "cheated", "lied", "laughing", "crying",
		"alergico", "alergica", "alergia", "vegano", "vegana", "vegetariano", "vegetariana", "celiaco", "celiaca", "mude", "mudamos", "mudado", "falta", "faltan", "prefiere", "prefiero", "quiere", "quieren", "quiero",
		"pague", "pagado", "pago", "envie", "enviado", "mande", "mandado", "compre", "comprado", "reserve", "reservado", "cancele", "cancelado", "recibi", "recibido", "llego", "llegaron",
		"allergique", "vegane", "vegetarien", "vegetarienne", "demenage", "manque", "manquent", "prefere", "veut", "veulent", "veux", "paye", "payee", "envoye", "envoyee", "achete", "annule", "recu", "recue", "rembourse", "arrive", "arrivee",
		"allergisch", "vegetarier", "vegetarierin", "veganer", "umgezogen", "fehlt", "fehlen", "mochte", "will", "wollen", "lieber", "bekommen", "angekommen",
		"mudei", "prefiro", "quer", "querem", "paguei", "enviei", "mandei", "comprei", "reservei", "cancelei", "recebi", "chegou",
		"allergico", "allergica", "trasferito", "trasferita", "manca", "mancano", "preferisce", "preferisco", "vuole", "vogliono", "voglio", "pagato", "pagata", "inviato", "mandato", "comprato", "prenotato", "annullato", "ricevuto", "arrivato", "arrivata",
		"vegetarisch", "veganistisch", "verhuisd", "ontbreekt", "ontbreken", "wil", "willen", "liever", "betaald", "verstuurd", "gekocht", "geboekt", "gekregen", "aangekomen":
		return true
	}
	return false
}

// isName says whether a word of no list stands with a capital letter inside a
// sentence, or the whole text has no small letter: it may be a name.
func (a *analysis) isName(w string) bool {
	if !strings.ContainsFunc(a.own, unicode.IsLower) {
		return true
	}
	inside, _ := capitals(a.own, w)
	return inside
}

// subject gives the token after the subject of a reason that starts at token
// i, and whether it is the person; i itself where there is no subject.
func (a *analysis) subject(l *lexicon, t reasonTable, i, to int, because bool) (next int, self bool) {
	if n := t.of(reasonSelf, a.tokens, i, to); n > 0 {
		return i + n, true
	}
	if n := t.of(reasonWho, a.tokens, i, to); n > 0 {
		return i + n, false
	}
	k := i
	if isPossessive(a.tokens[k].text) || isArticle(a.tokens[k].text) {
		k++
	}
	if k < to && k > i {
		if n := t.of(reasonWho, a.tokens, k, to); n > 0 {
			return k + n, false
		}
	}
	first := k
	for k < to && a.tokens[k].kind == wordToken && a.classifyOne(l, k) == kindEcho {
		k++
	}
	if k > first {
		return k, false
	}
	// "the sink is": a thing of no list, of which something is said.
	if k > i && k+1 < to && a.tokens[k].kind == wordToken && t.of(reasonAbout, a.tokens, k, to) > 0 {
		if because || a.loses() || t.of(reasonBe, a.tokens, k+1, to) > 0 {
			return k + 1, false
		}
	}
	return i, false
}

// withoutSubject says whether a clause of the language may have none: the verb
// says who.
func (a *analysis) withoutSubject() bool {
	switch languages[a.language] {
	case "es", "pt", "it", "hi", "zh", "ja":
		return true
	}
	return false
}

// whole reads a reason that is in the lists as one phrase.
func (a *analysis) whole(l *lexicon, t reasonTable, i, to int) int {
	for {
		part, n := t.at(a.tokens, i, to)
		if part != reasonTail && part != reasonBe || i+n >= to {
			break
		}
		if need := a.wholeAt(l, t, i, to); need != yesNone {
			return need
		}
		i += n
	}
	return a.wholeAt(l, t, i, to)
}

func (a *analysis) wholeAt(l *lexicon, t reasonTable, i, to int) int {
	for ps := t.phrases(a.tokens, i); ps.next(); {
		need := yesSaid
		switch part := reasonPart(ps.what()); {
		case part == reasonBeside:
			need = yesAndMore
		case part == reasonWhole, part == reasonLoses && a.loses():
		default:
			continue
		}
		if !ps.stands(a.tokens, i, to) {
			continue
		}
		if need = a.tails(l, t, i+1+ps.more(), to, need); need != yesNone {
			return need
		}
	}
	return yesNone
}

// isSubject says whether a word can be nothing but the subject of a clause.
func isSubject(w string) bool {
	switch w {
	case "he", "she", "they", "hes", "shes", "theyre", "theyve", "i", "im", "ive", "we", "weve", "its", "er", "ich", "wir", "il", "elle", "ils", "elles", "je", "on",
		"jai", "hij", "zij", "ik", "ele", "ela", "eles", "eu", "lui", "lei", "io", "yo", "ella", "ellos", "woh", "main", "hum", "वो", "वह", "मैं", "हम", "他", "她", "我", "他们", "我们":
		return true
	}
	return false
}

// predicate reads what is said of the subject.
func (a *analysis) predicate(l *lexicon, t reasonTable, i, to int, self bool) (need int) {
	said := false
	for i < to {
		part, n := t.at(a.tokens, i, to)
		switch part {
		case reasonWaits, reasonOwes:
			if a.loses() {
				return yesNone // who needs it keeps it
			}
			said = true
			need = max(need, yesSaid)
			if self != (part == reasonOwes) {
				need = yesAndMore
			}
		case reasonState:
			said = true
			need = yesAndMore
		case reasonBe, reasonTail:
		case reasonDue:
			if a.loses() {
				need = yesAndMore
			}
			said = true
			need = max(need, yesSaid)
			for i+n < to && a.kindAt(l, i+n) == kindTime {
				n++
			}
		case reasonSince:
			if n = a.sinceTime(l, i, i+n, to); n == 0 {
				return yesNone
			}
		default:
			kind, m := a.classify(l, &l.tables[a.language], i)
			switch kind {
			case kindFunction, kindFiller, kindCourtesy, kindEcho:
			default:
				return yesNone
			}
			if n = m; i+m > to || asksMore(a.tokens[i].text) || a.adds(i, m) {
				return yesNone
			}
		}
		i += n
	}
	if !said {
		return yesNone
	}
	return need
}

// asksMore says whether a small word may ask for something, or name a part of
// the offer, when it stands in a longer sentence.
func asksMore(w string) bool {
	switch w {
	case "want", "wants", "wanted", "wanna", "wish", "request", "requested", "requesting", "make", "makes", "making", "take", "takes",
		"put", "give", "gives", "pick", "option", "selection", "same", "should", "some", "every", "each", "price", "amount", "address",
		"name", "number", "date", "dates", "time", "times", "details", "detail", "data", "info", "information", "you", "your", "u", "ur":
		return true
	}
	return false
}

// sinceTime gives how many tokens say since when or for how long: the phrase
// from i up to j, a number or none, and a time; 0 where they do not.
func (a *analysis) sinceTime(l *lexicon, i, j, to int) int {
	number := j < to && (a.tokens[j].kind == numberToken || l.numbers[a.tokens[j].text] != "")
	if number {
		j++
	}
	if j >= to || a.tokens[j].start || a.kindAt(l, j) != kindTime && !number || number && !isDuration(a.tokens[j].text) {
		return 0
	}
	if a.tokens[i].text == "for" && (!number || !a.perfect(i)) {
		return 0 // "for monday" says when
	}
	return j + 1 - i
}

// isDuration is a unit of time in the plural or singular, folded.
func isDuration(w string) bool {
	switch w {
	case "minutes", "mins", "minute", "hours", "hrs", "hour", "days", "day", "weeks", "week", "months", "month", "years", "year", "times",
		"minutos", "horas", "dias", "semanas", "meses", "anos", "heures", "jours", "semaines", "mois", "ans",
		"minuten", "stunden", "tagen", "wochen", "monaten", "jahren", "ore", "giorni", "settimane", "mesi", "anni", "minuti",
		"uur", "dagen", "weken", "maanden", "jaar", "din", "hafte", "mahine", "ghante":
		return true
	}
	return false
}

// isPossessive and isArticle stand before a thing or a person.
func isPossessive(w string) bool {
	switch w {
	case "my", "our", "his", "her", "their", "your", "mi", "mis", "nuestro", "nuestra", "su", "sus", "mon", "ma", "mes", "notre", "nos", "son", "sa", "ses",
		"mein", "meine", "unser", "unsere", "meu", "minha", "meus", "minhas", "nosso", "nossa", "mio", "mia", "miei", "nostro", "nostra",
		"mijn", "onze", "ons", "mera", "meri", "mere", "hamare", "मेरा", "मेरी", "मेरे", "हमारे", "我", "我们":
		return true
	}
	return false
}

func isArticle(w string) bool {
	switch w {
	case "the", "both", "all", "el", "la", "los", "las", "le", "les", "der", "die", "das", "den", "o", "a", "os", "as", "il", "lo", "i", "gli", "de", "het", "那个", "这个":
		return true
	}
	return false
}

// tails gives need where nothing but tails and small words stands from i up to
// to.
func (a *analysis) tails(l *lexicon, t reasonTable, i, to, need int) int {
	for i < to {
		part, n := t.at(a.tokens, i, to)
		switch part {
		case reasonTail:
		case reasonSince:
			if n = a.sinceTime(l, i, i+n, to); n == 0 {
				return yesNone
			}
		default:
			kind, m := a.classify(l, &l.tables[a.language], i)
			if kind != kindFunction && kind != kindFiller && kind != kindCourtesy && kind != kindAck || i+m > to || a.adds(i, m) {
				return yesNone
			}
			n = m
		}
		i += n
	}
	return need
}

// classifyOne is the kind of a token by itself.
func (a *analysis) classifyOne(l *lexicon, i int) kind {
	if k, n := a.classify(l, &l.tables[a.language], i); n == 1 {
		return k
	}
	return kindUnknown
}

func (a *analysis) kindAt(l *lexicon, i int) kind {
	return l.tables[a.language].words.at(a.tokens[i].text).kind
}
