package said

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Validate checks one candidate against the person's own words. It returns the
// intent where nothing speaks against it, else every reason that does. It never
// fails, and adds to a candidate only what narrows it: the channel that its verb
// names.
func Validate(words string, c Candidate, now time.Time, loc *time.Location) (Intent, []Drop) {
	v, reasons := check(analyse(words, now, loc), c, loc)
	return v.intent, dropsOf(c, reasons)
}

func dropsOf(c Candidate, reasons []Reason) []Drop {
	var drops []Drop
	for _, r := range reasons {
		if !slices.ContainsFunc(drops, func(d Drop) bool { return d.Reason == r }) {
			drops = append(drops, Drop{Candidate: c, Reason: r})
		}
	}
	return drops
}

// valid is an intent and the clauses that ask for it.
type valid struct {
	intent  Intent
	clauses []int
}

func check(a *analysis, c Candidate, loc *time.Location) (valid, []Reason) {
	if bad := schemaReasons(c); len(bad) > 0 { // mutant: said.schema
		return valid{}, bad
	}
	in := Intent{Kind: Kind(c.Kind), To: slices.Clone(c.To), Channel: channelOf(c), Standing: c.Standing, AmountMax: c.AmountMax,
		Currency: c.Currency, Count: c.Count, ReplyToCurrent: c.ReplyToCurrent}
	var bad []Reason
	asks := a.asks(in)
	if len(asks) == 0 { // mutant: said.not-asked
		return valid{}, []Reason{DropNotAsked}
	}
	governors, why := a.governors(in)
	bad = append(bad, why...)
	if len(in.To) == 0 && !in.ReplyToCurrent { // mutant: said.no-target
		bad = append(bad, DropNoTarget)
	}
	if in.ReplyToCurrent {
		asks = slices.DeleteFunc(asks, func(k int) bool { return !a.replies(k) })
		if in.Kind != KindSend || len(asks) == 0 { // mutant: said.reply
			bad = append(bad, DropReplyNotSaid)
		}
	}
	if len(governors) == 0 {
		governors = asks
	}
	if len(bad) > 0 || len(governors) == 0 {
		if len(bad) == 0 {
			bad = append(bad, DropNotAsked)
		}
		return valid{}, bad
	}
	channel, ok := a.channel(governors, in)
	if !ok { // mutant: said.channel-not-said
		bad = append(bad, DropChannelNotSaid)
	}
	in.Channel = channel
	if in.Standing && !a.every(governors, a.standing) { // mutant: said.standing-not-said
		bad = append(bad, DropStandingNotSaid)
	}
	bad = append(bad, a.money(governors, in)...)
	bad = append(bad, a.counts(governors, in)...)
	bad = append(bad, a.when(governors, c, loc, &in)...)
	if len(bad) > 0 {
		return valid{}, bad
	}
	if !in.Standing {
		in.Window = DefaultWindow
		if c.WindowMinutes > 0 {
			in.Window = min(max(time.Duration(c.WindowMinutes)*time.Minute, MinWindow), MaxWindow) // mutant: said.window
		}
	}
	return valid{in, governors}, nil
}

func channelOf(c Candidate) Channel {
	if c.Channel == "" {
		return ChannelNone
	}
	return Channel(c.Channel)
}

// maxWindowMinutes is what a number of minutes can be before it is clamped.
const maxWindowMinutes = 10_000_000

func schemaReasons(c Candidate) []Reason {
	var bad []Reason
	if !Kind(c.Kind).known() {
		bad = append(bad, DropSchemaKind)
	}
	if !channelOf(c).known() {
		bad = append(bad, DropSchemaChannel)
	}
	if len(c.To) > MaxTo {
		bad = append(bad, DropSchemaTo)
	}
	for _, to := range c.To {
		if strings.TrimSpace(to) == "" || !utf8.ValidString(to) || utf8.RuneCountInString(to) > MaxToRunes || strings.ContainsAny(to, "\n\r\x00") {
			bad = append(bad, DropSchemaTo)
			break
		}
	}
	if c.AmountMax != "" {
		if d, ok := decimal(c.AmountMax); !ok || d.Sign() <= 0 {
			bad = append(bad, DropSchemaNumber)
		}
	}
	if c.Count < 0 || c.Count > MaxCount || c.WindowMinutes < 0 || c.WindowMinutes > maxWindowMinutes {
		bad = append(bad, DropSchemaNumber)
	}
	if c.Currency != "" && !isoCurrency(c.Currency) || len(c.At) > 40 || len(c.Until) > 40 {
		bad = append(bad, DropSchemaText)
	}
	return bad
}

func isoCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// asks are the clauses that ask for the kind.
func (a *analysis) asks(in Intent) []int {
	var all []int
	for k := range a.clauses {
		if a.askFor(k, in) {
			all = append(all, k)
		}
	}
	return all
}

func (a *analysis) askFor(k int, in Intent) bool {
	c := a.clauses[k]
	if !c.asked || !c.verb.is(in.Kind) {
		return false
	}
	if c.conditional && !(in.Standing && a.standing(k)) { // mutant: said.conditional-standing
		return false
	}
	if in.Standing && a.clauseHasAny(c, exceptions) { // mutant: said.exception
		return false
	}
	switch c.verb.words[0] {
	case "send": // "send Jo $40" and "send an invite" are something else than to send
		money, invites := a.sendsMoney(c), a.clauseHas(c, "invite", "invites", "invitation", "invitations")
		switch in.Kind {
		case KindPay:
			return money
		case KindActOut:
			return invites
		}
		return !money && !invites
	case "put": // "put lunch with Leo on my calendar", "put the menu on the blog"
		calendar := a.named(c, ChannelCalendar)
		return in.Kind == KindActOut && calendar || in.Kind == KindPost && !calendar
	case "update": // "update my address" is a change, "update Noor" a message
		return in.Kind == KindSend || c.verbEnd < c.to && (isArticle(a.toks[c.verbEnd].fold) || possessor(a.toks[c.verbEnd].fold))
	}
	if c.verb.words[0] == "share" && in.Kind == KindPost {
		return a.clauseHas(c, "on") || a.clauseHas(c, "in")
	}
	return true
}

func (a *analysis) clauseHas(c clause, words ...string) bool {
	for _, t := range a.toks[c.verbEnd:c.to] {
		if slices.Contains(words, t.fold) {
			return true
		}
	}
	return false
}

func (a *analysis) clauseHasAny(c clause, list [][]string) bool {
	for i := c.verbEnd; i < c.to; i++ {
		if !a.quoted[i] && longest(a.toks, i, list) > i {
			return true
		}
	}
	return false
}

// sendsMoney: money is what is sent, not what a thing is called after ("the $400 invoice").
func (a *analysis) sendsMoney(c clause) bool {
	if a.clauseHas(c, "money", "cash") {
		return true
	}
	for _, m := range a.amounts(c) {
		direct := m.from == c.verbEnd || m.from > c.verbEnd && a.personLike(bound{c.verbEnd, m.from})
		if m.currencies != nil && direct && !a.nounAt(m.to, c.to) {
			return true
		}
	}
	return false
}

func (a *analysis) replies(k int) bool {
	c := a.clauses[k]
	if c.verb.reply {
		return true
	}
	for i := c.verbEnd; i < min(c.to, c.verbEnd+3); i++ {
		if a.toks[i].fold == "back" { // "text him back"
			return c.verb.content
		}
	}
	return false
}

func (a *analysis) every(clauses []int, holds func(int) bool) bool {
	for _, k := range clauses {
		if !holds(k) {
			return false
		}
	}
	return len(clauses) > 0
}

// governors are the clauses by which each recipient is asked for.
func (a *analysis) governors(in Intent) (clauses []int, bad []Reason) {
	for _, to := range in.To {
		places := a.places(to)
		if len(places) == 0 { // mutant: said.to-not-said
			bad = append(bad, DropToNotSaid)
			continue
		}
		found := false
		for _, p := range places {
			if k, ok := a.governor(p, in); ok {
				clauses = append(clauses, k)
				found = true
				break
			}
		}
		if !found { // mutant: said.to-not-asked
			bad = append(bad, DropToNotAsked)
		}
	}
	slices.Sort(clauses)
	clauses = slices.Compact(clauses)
	// Two asks are two intents.
	if len(clauses) > 1 { // mutant: said.one-verb
		bad = append(bad, DropToNotAsked)
	}
	return clauses, bad
}

// places are where a recipient stands in the words, as whole words, case and
// spacing aside.
func (a *analysis) places(to string) []bound {
	var want []token
	for _, t := range tokenise(to) {
		if t.text != "\n" {
			want = append(want, t)
		}
	}
	if len(want) == 0 {
		return nil
	}
	address := sayableAddress(to)
	var all []bound
	for i := range a.toks {
		if address != "" && sayableAddress(a.toks[i].text) == address {
			all = append(all, bound{i, i + 1})
			continue
		}
		n := 0
		for n < len(want) && i+n < len(a.toks) && a.toks[i+n].fold == want[n].fold && a.toks[i+n].sentence == a.toks[i].sentence {
			n++
		}
		if n == len(want) && want[0].isWord() {
			all = append(all, bound{i, i + n})
		}
	}
	return all
}

// governor is the clause whose verb asks for this recipient: the nearest verb
// before it, or in a standing sentence one that follows and takes it up ("whenever
// Northwind invoices us, pay it").
func (a *analysis) governor(p bound, in Intent) (int, bool) {
	if a.quoted[p.from] {
		return 0, false
	}
	nearest := -1
	for i, m := range a.mentions {
		if m.end <= p.from && a.toks[m.at].sentence == a.toks[p.from].sentence {
			nearest = i
		}
	}
	if nearest >= 0 {
		k := a.mentions[nearest].clause
		if k < 0 || !a.askFor(k, in) { // mutant: said.nearest-verb
			return 0, false
		}
		return k, a.slot(a.clauses[k], in.Kind, p, 0)
	}
	if !in.Standing {
		return 0, false
	}
	for k, c := range a.clauses {
		if c.verbAt < p.to || a.toks[c.verbAt].sentence != a.toks[p.from].sentence {
			continue
		}
		return k, a.askFor(k, in) && a.standing(k) && a.takesUp(c) && a.triggers(p, in.Kind)
	}
	return 0, false
}

// triggers: it is what the recipient does that the ask hangs on, or a bill of
// theirs: "whenever Northwind …", "invoices from Lumen …".
func (a *analysis) triggers(p bound, kind Kind) bool {
	at := p.from
	if at > 0 && (isArticle(a.toks[at-1].fold) || possessor(a.toks[at-1].fold)) {
		at--
	}
	if at > 0 && kind == KindPay && a.toks[at-1].fold == "from" {
		return true
	}
	for n := 1; n <= 3 && n <= at; n++ {
		if longest(a.toks, at-n, conditions) == at || longest(a.toks, at-n, ongoing) == at {
			return a.toks[at-1].sentence == a.toks[p.from].sentence
		}
	}
	return false
}

// takesUp: the verb has no recipient of its own, but a word for one before it.
func (a *analysis) takesUp(c clause) bool {
	i := c.verbEnd
	for i < c.to && (a.toks[i].fold == "to" || a.toks[i].fold == "back") {
		i++
	}
	if i >= c.to || !a.toks[i].isWord() {
		return true
	}
	w := a.toks[i].fold
	for j := i; j+1 < c.to; j++ {
		if a.toks[j].fold == "to" && !pronoun[a.toks[j+1].fold] && !infinitive(a.toks, j) { // mutant: said.takes-up
			return false // "forward it to Priya" has its own
		}
	}
	if pronoun[w] {
		return true
	}
	return w == "the" && i+1 < c.to && (a.toks[i+1].fold == "invoice" || a.toks[i+1].fold == "bill" || a.toks[i+1].fold == "amount")
}
