package said

import "slices"

// slot says whether a recipient can stand where it does behind the verb: right
// after it, after "to" or another word that points at somebody, or in a list that
// began so. What a message is about, or from, or contains, is no recipient.
func (a *analysis) slot(c clause, kind Kind, p bound, depth int) bool {
	if depth > MaxTo || p.from < c.verbEnd || p.to > c.to || a.quoted[p.from] {
		return false
	}
	if !a.endsWell(c, kind, p) {
		return false
	}
	at := p.from
	ownArticle := isArticle(a.toks[at].fold)
	article := false
	if at > c.verbEnd {
		switch prev := a.toks[at-1].fold; {
		case isArticle(prev):
			article = true
			at--
		case possessor(prev):
			at--
		}
	}
	if (kind == KindSend || kind == KindActOut) && (article || ownArticle) && a.nounAt(p.to, c.to) { // mutant: said.article
		return false
	}
	if kind == KindChange && a.nounAt(p.to, c.to) {
		return false // half of what a setting is called
	}
	if a.onlyParticles(c.verbEnd, at) {
		if kind == KindActOut || kind == KindPost {
			return !article // "merge the PR"
		}
		if kind != KindSend {
			return true
		}
		if article || ownArticle && (!c.verb.person || a.laterTo(c, p.to)) {
			return false
		}
		// "forward Lumen bill to Fern"
		return c.verb.person || !a.nounAt(p.to, c.to) || !a.laterTo(c, p.to)
	}
	head := a.toks[at-1]
	gap := a.toks[c.verbEnd : at-1]
	switch {
	case head.fold == "to" || head.fold == "cc" || head.fold == "bcc" || slices.Contains(c.verb.with, head.fold):
		return a.pointed(c, head.fold, gap)
	case head.fold == "from" && c.verb.reply: // "reply to the email from Dana"
		return len(gap) >= 2 && gap[0].fold == "to" && messageNouns[gap[len(gap)-1].fold] && !slices.ContainsFunc(gap[1:], func(t token) bool { return t.capital() })
	case head.fold == "and" || head.text == "," || head.text == "&" || head.text == "+" || head.fold == "plus" || head.fold == "both":
		return a.listed(c, kind, p, at, depth)
	}
	return false
}

var messageNouns = wordSet("email e-mail mail message text note dm comment question thread post letter invite one sms")

var billNouns = wordSet("invoice bill rent share fee fees tab part half lunch dinner ticket tickets account balance wages salary quote deposit subscription order")

// endsWell looks at what follows the recipient: an owner, and half of a longer
// name, are none.
func (a *analysis) endsWell(c clause, kind Kind, p bound) bool {
	if p.to >= c.to {
		return true
	}
	next := a.toks[p.to]
	if next.fold == "'s" {
		if p.to+1 >= c.to {
			return false
		}
		owned := a.toks[p.to+1].fold
		if owned == "last" || owned == "latest" || owned == "new" {
			if p.to+2 >= c.to {
				return false
			}
			owned = a.toks[p.to+2].fold
		}
		switch kind {
		case KindSend:
			return c.verb.reply && messageNouns[owned]
		case KindPay:
			return billNouns[owned]
		}
		return kind == KindChange
	}
	if !a.toks[p.to-1].capital() || !next.capital() || !plainName(next.text) || next.start != a.toks[p.to-1].end+1 {
		return true
	}
	if functionWords[next.fold] || openers[next.fold] {
		return true
	}
	if _, ok := month(next.fold); ok {
		return true
	}
	// "Email Dana Priya's notes" names two; "Sam Lee" is one.
	return kind == KindSend && p.to+1 < len(a.toks) && a.toks[p.to+1].fold == "'s" && !a.laterTo(c, p.to)
}

// openers are capitals that begin a message and no family name.
var openers = wordSet("happy good great congrats welcome sorry see running meet got can are is did do need let merry dear it the we")

func plainName(s string) bool {
	for i, r := range s {
		if i > 0 && r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return false
		}
	}
	return len(s) > 1
}

// nounAt says whether a thing goes on at token i: "the Harlow Legal invoice".
func (a *analysis) nounAt(i, end int) bool {
	if i >= end || !a.toks[i].isWord() || a.quoted[i] {
		return false
	}
	w := a.toks[i].fold
	if functionWords[w] {
		return false
	}
	if _, ok := spanAt(a.toks, i, a.now); ok {
		return false
	}
	return !digits(w)
}

func (a *analysis) onlyParticles(from, to int) bool {
	for _, t := range a.toks[from:to] {
		switch t.fold {
		case "to", "back", "both", "over", "out", "at":
		default:
			return false
		}
	}
	return true
}

// laterTo says whether the clause names a recipient behind "to", so that what
// stands right after the verb is the thing that is sent.
func (a *analysis) laterTo(c clause, from int) bool {
	for i := from; i+1 < c.to; i++ {
		if clauseMarkers[a.toks[i].fold] || a.toks[i].text == ":" {
			return false
		}
		if a.toks[i].fold == "to" && !infinitive(a.toks, i) {
			return true
		}
	}
	return false
}

// clauseMarkers begin what a message says; no recipient stands behind them.
var clauseMarkers = wordSet(`that saying say says because since if whether who which where when while why how what i i'm im i'll i've i'd we we're we'll we've
	he she they he's she's they're it's there's you're is are was were will has have had can't won't can could should would`)

var softMarkers = wordSet("about re regarding concerning on of from for with in at")

// pointed: a preposition points at the recipient.
func (a *analysis) pointed(c clause, head string, gap []token) bool {
	if len(gap) == 0 {
		return true
	}
	switch last := gap[len(gap)-1].fold; last {
	case "not", "never", "except", "but", "than", "of":
		return false
	}
	for i, t := range gap {
		if t.text == ":" && !(i+1 == len(gap)) || clauseMarkers[t.fold] && c.verb.words[0] != "let" {
			return false
		}
	}
	if head == "cc" || head == "bcc" {
		return true
	}
	if softMarkers[gap[0].fold] {
		return false
	}
	if head == "to" {
		return !a.dative(c, gap)
	}
	// with, at, on …: the nearest of them, and nothing between that it could belong to
	return !slices.ContainsFunc(gap, func(t token) bool { return t.fold == "about" || t.fold == "re" || t.fold == "regarding" }) && !a.dative(c, gap)
}

// dative says whether the words behind the verb begin with somebody and go on
// with a thing: "Max the link". Then "to" behind the thing points elsewhere.
func (a *analysis) dative(c clause, gap []token) bool {
	i := 0
	if possessor(gap[0].fold) {
		i++
	}
	n := i
	for n < len(gap) && (gap[n].capital() && gap[n].isWord() || kin[gap[n].fold] || gap[n].isAddress()) {
		n++
	}
	if n == i && pronounObject[gap[i].fold] {
		n++
	}
	if n == i {
		return false
	}
	if n >= len(gap) { // "invite Dana to", but "send Figma to"
		return c.verb.person || pronounObject[gap[n-1].fold]
	}
	w := gap[n]
	return isArticle(w.fold) || possessor(w.fold) || w.fold == "this" || w.fold == "that" || w.fold == "these" || w.fold == "those" || w.fold == "some" ||
		digits(w.text) || currencySign(w.text) != "" || softMarkers[w.fold]
}

var pronounObject = wordSet("him them her me us everyone everybody")

// listed: the recipient stands in a list, behind another of the same verb.
func (a *analysis) listed(c clause, kind Kind, p bound, at, depth int) bool {
	sep := at - 1
	for sep > c.verbEnd && (a.toks[sep-1].text == "," || a.toks[sep-1].fold == "and" || a.toks[sep-1].fold == "&") {
		sep--
	}
	for n := 1; n <= 4 && sep-n >= c.verbEnd; n++ {
		q := bound{sep - n, sep}
		if a.personLike(q) && a.slot(c, kind, q, depth+1) {
			return true
		}
	}
	// "send Dana the report and Sam the deck", "pay Max $20 and Noor $30"
	if p.to >= c.to {
		return false
	}
	next := a.toks[p.to]
	thing := isArticle(next.fold) || possessor(next.fold) || currencySign(next.text) != "" || digits(next.text)
	gap := a.toks[c.verbEnd:sep]
	return thing && a.personLike(p) && len(gap) > 1 && a.dative(c, gap) &&
		!slices.ContainsFunc(gap, func(t token) bool { return clauseMarkers[t.fold] || t.text == ":" })
}

// personLike: names, addresses, "my mom", "the team".
func (a *analysis) personLike(p bound) bool {
	for i := p.from; i < p.to; i++ {
		t := a.toks[i]
		if !t.isWord() {
			return false
		}
		if digits(t.text) {
			return false
		}
	}
	first := a.toks[p.from]
	if isArticle(first.fold) || possessor(first.fold) {
		return p.to-p.from > 1 && !functionWords[a.toks[p.from+1].fold]
	}
	for i := p.from; i < p.to; i++ {
		t := a.toks[i]
		if functionWords[t.fold] || clauseMarkers[t.fold] {
			return false
		}
	}
	return true
}
