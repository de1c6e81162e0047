package said

import (
	"context"
	"slices"
	"time"
)

// BuiltIn is the extractor that needs no model. It reads the plain forms of an
// English ask and leaves out whatever it is not sure of: what it does not find is
// put to the person as an offer. The zero value is ready, and safe for concurrent use.
type BuiltIn struct{}

var _ Extractor = BuiltIn{}

// builtInVersion changes with the rules.
const builtInVersion = "v1"

// Fingerprint names the rules.
func (BuiltIn) Fingerprint() string { return "builtin/" + builtInVersion }

// Extract never fails.
func (BuiltIn) Extract(_ context.Context, turn Turn) ([]Candidate, []Drop, error) {
	a := analyse(turn.Words, turn.Now, turn.Loc)
	var all []Candidate
	for k := range a.clauses {
		all = append(all, a.propose(k)...)
	}
	return all, nil, nil
}

// propose makes the candidates of one clause, none where anything is in doubt.
func (a *analysis) propose(k int) []Candidate {
	c := a.clauses[k]
	if !c.asked {
		return nil
	}
	standing := a.standing(k)
	if c.conditional && !standing {
		return nil
	}
	kind := c.verb.kinds[0]
	in := Intent{Kind: kind, Standing: standing}
	switch {
	case c.verb.words[0] == "send" && a.askFor(k, Intent{Kind: KindPay, Standing: standing}):
		kind = KindPay
	case c.verb.words[0] == "send" && a.askFor(k, Intent{Kind: KindActOut, Standing: standing}):
		kind = KindActOut
	case !a.askFor(k, in):
		return nil
	case kind == KindChange:
		return nil // what a setting is called is not for these rules
	}
	in.Kind = kind
	to := a.recipients(k, in)
	if len(to) == 0 {
		return nil
	}
	base := Candidate{Kind: string(kind), Channel: string(a.channelIn(c)), Standing: standing}
	if !a.addLimits(k, &base) {
		return nil
	}
	if kind != KindPay {
		base.To = to
		return []Candidate{base}
	}
	return a.payments(c, base, to)
}

// payments puts recipients with the same amount together.
func (a *analysis) payments(c clause, base Candidate, to []string) []Candidate {
	all := a.amounts(c)
	var out []Candidate
	for _, name := range to {
		m, ok := a.amountFor(all, c, name)
		if !ok {
			return nil
		}
		p := base
		p.AmountMax = plain(m)
		if len(m.currencies) == 1 {
			p.Currency = m.currencies[0]
		}
		if i := slices.IndexFunc(out, func(o Candidate) bool { return o.AmountMax == p.AmountMax && o.Currency == p.Currency }); i >= 0 {
			out[i].To = append(out[i].To, name)
			continue
		}
		p.To = []string{name}
		out = append(out, p)
	}
	return out
}

func plain(m money) string {
	if m.value.IsInt() {
		return m.value.Num().String()
	}
	return m.value.FloatString(2)
}

// recipients finds whom the clause names, as said.
func (a *analysis) recipients(k int, in Intent) []string {
	c := a.clauses[k]
	var all []string
	for i := c.verbEnd; i < c.to; i++ {
		n := a.nameAt(c, i)
		if n == i {
			continue
		}
		p := bound{i, n}
		if got, ok := a.governor(p, in); ok && got == k {
			all = append(all, a.words[a.toks[i].start:a.toks[n-1].end])
		}
		i = n - 1
	}
	if len(all) > 0 || !in.Standing || !a.takesUp(c) {
		return all
	}
	// "whenever Northwind Bakery invoices under $200, pay it"
	from := a.bounds[a.toks[c.verbAt].sentence-a.toks[0].sentence].from
	for i := from; i < c.verbAt; i++ {
		n := a.nameAt(c, i)
		if n == i {
			continue
		}
		if _, ok := a.governor(bound{i, n}, in); ok {
			all = append(all, a.words[a.toks[i].start:a.toks[n-1].end])
		}
		i = n - 1
	}
	if len(all) != 1 {
		return nil
	}
	return all
}

// roles are what people call somebody with an article or "my".
var roles = wordSet(`team babysitter sitter nanny plumber landlord landlady accountant lawyer doctor dentist cleaner gardener board group client
	boss manager assistant editor school office neighbors neighbours neighbor neighbour family crew band class builder electrician caterer agency vendor rent`)

// nameAt is the end of a name that begins at token i, or i.
func (a *analysis) nameAt(c clause, i int) int {
	t := a.toks[i]
	if a.quoted[i] || !t.isWord() {
		return i
	}
	if t.isAddress() {
		return i + 1
	}
	if isArticle(t.fold) || possessor(t.fold) {
		n := i + 1
		if n < c.to && (a.toks[n].fold == "whole" || a.toks[n].fold == "entire") {
			n++
		}
		if n+1 < c.to && roles[a.toks[n+1].fold] && a.toks[n].isWord() && !functionWords[a.toks[n].fold] && !a.toks[n].capital() {
			n++ // the design team
		}
		if n < c.to && (roles[a.toks[n].fold] || possessor(t.fold) && kin[a.toks[n].fold]) {
			return n + 1
		}
		return i
	}
	if kin[t.fold] {
		return i + 1
	}
	if t.capital() {
		n := i
		for n < len(a.toks) && n < i+3 && a.toks[n].capital() && a.namelike(n) && (n == i || plainName(a.toks[n].text) && !openers[a.toks[n].fold]) {
			n++
		}
		if n < len(a.toks) && a.toks[n].fold == "'s" && n > i+1 {
			n-- // "Dana Priya's notes": the owner is another
		}
		return n
	}
	// "email priya the deck"
	if i < c.verbEnd {
		return i
	}
	lower := c.verb.person || c.verb.is(KindPay)
	if !lower || !a.namelike(i) || commonVerbs[t.fold] || !a.onlyParticles(c.verbEnd, i) && (i == 0 || a.toks[i-1].fold != "and" && a.toks[i-1].text != ",") {
		return i
	}
	if i+1 < c.to && a.toks[i+1].isWord() && !functionWords[a.toks[i+1].fold] || i+1 < c.to && a.toks[i+1].fold == "'s" || a.laterTo(c, i+1) {
		return i
	}
	return i + 1
}

func (a *analysis) namelike(i int) bool {
	w := a.toks[i].fold
	if functionWords[w] || pronoun[w] || digits(w) || currencyNames[w] != "" || politeWord(w) || w == "slack" || w == "github" || w == "gmail" {
		return false
	}
	if _, ok := weekday(w); ok {
		return false
	}
	_, isMonth := month(w)
	return !isMonth
}

// channelIn is the channel that the clause names, none where it is two.
func (a *analysis) channelIn(c clause) Channel {
	if c.verb.channel != "" {
		return c.verb.channel
	}
	part := c
	part.to = a.contentFrom(c)
	found := ChannelNone
	for _, ch := range [...]Channel{ChannelEmail, ChannelSlack, ChannelSMS, ChannelCalendar, ChannelGitHub, ChannelWeb} {
		if !a.named(part, ch) {
			continue
		}
		if found != ChannelNone {
			return ChannelNone
		}
		found = ch
	}
	if found == ChannelCalendar && !c.verb.is(KindActOut) {
		return ChannelNone
	}
	return found
}

// addLimits puts in times and counts; false where they are in doubt.
func (a *analysis) addLimits(k int, out *Candidate) bool {
	c := a.clauses[k]
	points, limits, unread := a.timesOf([]int{k})
	if unread || len(limits) > 1 {
		return false
	}
	if len(limits) == 1 && out.Standing {
		out.Until = limits[0].Format(time.RFC3339)
	}
	if said := a.countsIn(k); len(said) == 1 && (said[0] > 1 || out.Standing) {
		out.Count = said[0]
	} else if len(said) > 1 {
		return false
	}
	if out.Standing {
		return true
	}
	var before []span
	for _, s := range c.times {
		if !s.every && !s.limit {
			before = append(before, s)
		}
	}
	switch {
	case out.Kind == string(KindActOut):
		return len(before) == 0 // a time behind the verb is the event's
	case len(before) == 1 && len(points) == 1 && !before[0].day:
		out.At = before[0].t.Format(time.RFC3339)
		return true
	case len(before) > 0:
		return false
	case len(points) == 0:
		return true
	case len(points) > 1:
		return false
	}
	// One time behind the verb: of a payment it is when to pay; in a message it may be anything.
	s := a.behind(c)
	if s.day {
		return points[0].Sub(a.now) < 24*time.Hour && points[0].Day() == a.now.Day()
	}
	if c.verb.content {
		return false
	}
	out.At = s.t.Format(time.RFC3339)
	return true
}

func (a *analysis) behind(c clause) span {
	for i := c.verbEnd; i < c.to; i++ {
		if s, ok := spanAt(a.toks, i, a.now); ok && !s.limit && !s.every {
			return s
		}
	}
	return span{day: true}
}
