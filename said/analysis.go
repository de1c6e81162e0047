package said

import (
	"slices"
	"time"
)

// clause is one verb at the head of a clause, where an imperative can stand,
// with what stands before it and all that follows up to the next one.
type clause struct {
	from, to        int // tokens
	verbAt, verbEnd int
	verb            verb
	asked           bool // it reads as an ask
	negated         bool
	permission      bool // "you may", "no need to ask before"
	request         bool // "can you"
	command         bool // "please", "make sure to"
	conditional     bool // it hangs on something
	times           []span
}

// mention is a verb wherever it stands; what follows it belongs to it.
type mention struct {
	at, end int
	clause  int // index into clauses, -1 for one that asks nothing
}

// analysis is what code sees in the person's words. It is made once for a text
// and never changed.
type analysis struct {
	words    string
	toks     []token
	quoted   []bool // inside quotation marks: words to pass on, never asks
	clauses  []clause
	mentions []mention
	bounds   []bound // of the sentences
	now      time.Time
}

type bound struct{ from, to int }

func analyse(words string, now time.Time, loc *time.Location) *analysis {
	a := &analysis{words: words, toks: tokenise(words), now: now.In(zone(loc))}
	a.quoted = quotedTokens(a.toks)
	for from := 0; from < len(a.toks); {
		to := from
		for to < len(a.toks) && a.toks[to].sentence == a.toks[from].sentence {
			to++
		}
		a.bounds = append(a.bounds, bound{from, to})
		from = to
	}
	for _, b := range a.bounds {
		a.readSentence(b)
	}
	a.retract()
	a.reserve()
	a.mention()
	return a
}

func quotedTokens(toks []token) []bool {
	in := make([]bool, len(toks))
	open := false
	for i, t := range toks {
		switch t.text {
		case "“", "„", "«", "「", "『":
			open = true
			in[i] = true
			continue
		case "”", "»", "」", "』":
			open = false
			in[i] = true
			continue
		case `"`:
			in[i] = true
			open = !open
			continue
		}
		in[i] = open
	}
	return in
}

// readSentence finds the clauses of one sentence and which of them are asks.
func (a *analysis) readSentence(b bound) {
	first := len(a.clauses)
	trigger := a.isTrigger(b)
	for i := b.from; i < b.to; i++ {
		if a.quoted[i] {
			continue
		}
		asks, open := a.opening(b, i, first, trigger)
		if !open {
			continue
		}
		c, ok := a.head(b, i)
		if !ok {
			continue
		}
		if !asks && !c.command && !c.request {
			continue
		}
		if c.from > b.from && a.toks[c.from-1].fold == "to" {
			continue
		}
		a.settle(b, &c, first)
		if n := len(a.clauses); n > first {
			a.clauses[n-1].to = i
		}
		c.to = b.to
		a.clauses = append(a.clauses, c)
		i = c.verbEnd - 1
	}
	a.condition(b, first)
	a.question(b, first)
}

// opening says whether an imperative can stand at token i: at the start of the
// sentence, or behind a separator after something that does not carry on. asks is
// false where only a word like please can make it one.
func (a *analysis) opening(b bound, i, first int, trigger bool) (asks, open bool) {
	if i == b.from {
		return true, true
	}
	sep := a.toks[i-1]
	sepAt := i - 1
	comma := sep.text == ","
	switch sep.fold {
	case "and", "then", "&", "plus", "also", "or", "but", "so":
		for sepAt > b.from && (a.toks[sepAt-1].text == "," || isSeparatorWord(a.toks[sepAt-1].fold)) {
			sepAt--
			comma = comma || a.toks[sepAt].text == ","
		}
	}
	separated := comma || isSeparatorWord(sep.fold) || isDash(sep.text) || sep.text == ":" || sep.text == "."
	if len(a.clauses) == first { // after a statement
		before := a.toks[b.from:sepAt]
		free := !planning(before) && !slices.ContainsFunc(before, func(t token) bool { return t.text == ":" })
		switch {
		case trigger && (comma || a.permits(i)):
			return true, true
		case sep.text == ":":
			return i >= 2 && introduces[a.toks[i-2].fold] || free && (a.permits(i) || a.toks[i].fold == "always"), true
		case sep.text == "." || comma || isDash(sep.text) || sep.fold == "so":
			return free && !greets(before), !reports(before) && !greets(before) // mutant: said.reported
		case separated:
			return false, free
		}
		return false, free && politeWord(a.toks[i].fold)
	}
	last := a.clauses[len(a.clauses)-1]
	content := a.toks[min(last.verbEnd, sepAt):sepAt]
	risky := last.verb.content && a.carriesOn(content)
	switch {
	case !separated:
		return false, !risky && politeWord(a.toks[i].fold)
	case sep.text == ":":
		return false, false
	case last.negated && !comma && sep.fold != "but" && !isDash(sep.text):
		return false, true
	case sep.fold == "or":
		return false, true
	case risky:
		single := comma && !slices.ContainsFunc(content, func(t token) bool { return t.text == "," || t.text == ":" })
		return single && isSeparatorWord(sep.fold), true
	}
	return true, true
}

var introduces = wordSet("please todo todos to-do tasks favor favour favors favours then next now errands today")

func politeWord(w string) bool { return w == "please" || w == "pls" || w == "plz" || w == "kindly" }

func isSeparatorWord(w string) bool {
	switch w {
	case "and", "then", "&", "plus", "also", "or", "but", "so":
		return true
	}
	return false
}

func isDash(s string) bool {
	return s == "-" || s == "—" || s == "–" || s == "…" || s == "•" || s == "*"
}

// permits says whether a permission stands at i: "you can always text …".
func (a *analysis) permits(i int) bool {
	return longest(a.toks, i, permissions) > i || a.toks[i].fold == "just" || longest(a.toks, i, commands) > i
}

// isTrigger: the sentence begins with what its asks hang on, or with how long
// they hold.
func (a *analysis) isTrigger(b bound) bool {
	i := b.from
	for i < b.to {
		n := longest(a.toks, i, starters)
		if n == i && isDash(a.toks[i].text) {
			n++
		}
		if n == i {
			break
		}
		i = n
	}
	if i >= b.to || longest(a.toks, i, polite) > i {
		return false
	}
	if longest(a.toks, i, conditions) > i || longest(a.toks, i, ongoing) > i || a.toks[i].fold == "for" {
		return true
	}
	s, ok := spanAt(a.toks, i, a.now)
	return ok && (s.limit || s.every)
}

// reports says whether a clause tells of what somebody else says or wants.
func reports(toks []token) bool {
	return slices.ContainsFunc(toks, func(t token) bool { return reportWords[t.fold] || t.text == ":" })
}

// greets says whether a clause greets somebody by name: then what follows was
// written to them. "Hey" is how people speak to a machine.
func greets(toks []token) bool {
	if len(toks) < 2 {
		return false
	}
	w := toks[0].fold
	return (w == "hi" || w == "hello" || w == "dear") && toks[1].capital()
}

// planning says whether a clause speaks of a plan, a wish or what somebody said.
func planning(toks []token) bool {
	for i, t := range toks {
		if reportWords[t.fold] {
			return true
		}
		if planWords[t.fold] {
			if (t.fold == "will" || len(t.fold) > 3 && t.fold[len(t.fold)-3:] == "'ll") && i+1 < len(toks) && toks[i+1].fold == "be" {
				continue // "I'll be late": nothing that a list could go on with
			}
			return true
		}
		if infinitive(toks, i) {
			return true
		}
	}
	return false
}

// carriesOn says whether the words of a message could go on over an "and": they
// tell somebody to do something.
func (a *analysis) carriesOn(toks []token) bool {
	if planning(toks) {
		return true
	}
	for i, t := range toks {
		if t.text == ":" {
			return true
		}
		// "text Sam get milk and call mom"
		if i > 0 && commonVerbs[t.fold] && (toks[i-1].capital() || kin[toks[i-1].fold] || toks[i-1].isAddress()) {
			return true
		}
	}
	return false
}

func infinitive(toks []token, i int) bool {
	if toks[i].fold != "to" || i+1 >= len(toks) {
		return false
	}
	w := toks[i+1].fold
	if commonVerbs[w] {
		return true
	}
	_, _, ok := verbAt(toks, i+1)
	return ok && !toks[i+1].capital()
}

// head reads what can stand before an imperative and the verb itself.
func (a *analysis) head(b bound, i int) (clause, bool) {
	c := clause{from: i}
	gerund := false
	for p := i; p < b.to; {
		if a.quoted[p] {
			return c, false
		}
		lists := [...]struct {
			phrases [][]string
			set     func()
		}{
			{starters, nil}, {polite, nil},
			{commands, func() { c.command = true }},
			{requests, func() { c.request = true }},
			{mindings, func() { c.request, gerund = true, true }},
			{permissions, func() { c.permission = true }},
			{withoutQuestion, func() { c.permission, gerund = true, true }},
			{negations, func() { c.negated = true }},
		}
		best, which := p, -1
		for k, l := range lists {
			if n := longest(a.toks, p, l.phrases); n > best {
				best, which = n, k
			}
		}
		// A command is a starter too; of two equal ones the later list says more.
		for k := which + 1; which >= 0 && k < len(lists); k++ {
			if longest(a.toks, p, lists[k].phrases) == best {
				which = k
			}
		}
		t := a.toks[p]
		switch {
		case which >= 0:
			if lists[which].set != nil {
				lists[which].set()
			}
			p = best
			if (t.fold == "hey" || t.fold == "ok" || t.fold == "okay") && p+1 < b.to && a.toks[p].isWord() && a.toks[p+1].text == "," {
				p += 2 // whom it is said to
			}
			continue
		case t.fold == "always", t.fold == "only", t.fold == "instead", t.fold == "u":
			p++
			continue
		case t.text == "," || isDash(t.text) || t.text == "(" || t.text == ")" || t.text == ":" && len(c.times) > 0:
			p++
			continue
		}
		if s, ok := spanAt(a.toks, p, a.now); ok {
			c.times = append(c.times, s)
			p = s.to
			continue
		}
		if p+1 < b.to && (a.toks[p+1].text == ")" || a.toks[p+1].text == ".") && digits(t.text) {
			p += 2
			continue
		}
		e, end, ok := verbAt(a.toks, p)
		if !ok && gerund {
			if e, ok = gerundOf(t.fold); ok {
				end = p + 1
			}
		}
		if !ok && commonVerbs[t.fold] {
			e, end, ok = verb{words: []string{t.fold}}, p+1, true
		}
		if !ok || end > b.to || end < b.to && slices.Contains(e.noun, a.toks[end].fold) || end < b.to && a.toks[end].fold == "'s" {
			return c, false
		}
		c.verb, c.verbAt, c.verbEnd = e, p, end
		return c, true
	}
	return c, false
}

func digits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// settle says whether the clause is an ask as far as it can be seen from itself.
func (a *analysis) settle(b bound, c *clause, first int) {
	c.asked = len(c.verb.kinds) > 0 && !c.negated // mutant: said.negated
	if c.verbEnd < b.to {
		switch a.toks[c.verbEnd].fold {
		case "me", "us", "myself", "ourselves", "yourself": // mutant: said.aimed
			c.asked = false
		}
	}
	if c.verb.words[0] == "say" && len(a.clauses) > first {
		c.asked = false // "message Jo and say hi to Max" is a message to Jo
	}
	if c.verb.needs != nil {
		found := false
		for i := c.verbEnd; i < b.to && i < c.verbEnd+10; i++ {
			found = found || slices.Contains(c.verb.needs, a.toks[i].fold)
		}
		c.asked = c.asked && found
	}
	if c.verb.words[0] == "write" && len(c.verb.words) == 1 && c.asked {
		c.asked = false
		if c.verbEnd < b.to {
			t := a.toks[c.verbEnd]
			c.asked = t.fold == "to" || t.capital() || t.isAddress() || pronoun[t.fold]
		}
	}
	if n := len(a.clauses); n > first {
		// "can you email Tomás and text Inés?"
		c.request = c.request || a.clauses[n-1].request && a.toks[c.from-1].text != "."
	}
}

// condition marks the clauses that hang on something.
func (a *analysis) condition(b bound, first int) {
	for i := b.from; i < b.to; i++ {
		if n := longest(a.toks, i, polite); n > i {
			i = n - 1
			continue
		}
		end := longest(a.toks, i, conditions)
		if end == i || a.quoted[i] || !a.isCondition(b, i, end, first) {
			continue
		}
		before := i
		for before > b.from && a.toks[before-1].text == "," {
			before--
		}
		apart := before > b.from && isSeparatorWord(a.toks[before-1].fold)
		for k := first; k < len(a.clauses); k++ {
			c := &a.clauses[k]
			nearest := k+1 == len(a.clauses) || a.clauses[k+1].verbAt > i
			if c.verbAt > i || !apart && nearest { // mutant: said.conditional
				c.conditional = true
			}
		}
	}
}

var (
	embeds    = wordSet("see check know wonder wondering sure decide unsure")
	timeNouns = wordSet("lunch dinner breakfast work school noon bed bedtime midnight then that christmas today tomorrow tonight")
)

// isCondition tells a condition from a time, a count, and a question inside a message.
func (a *analysis) isCondition(b bound, i, end, first int) bool {
	w := a.toks[i].fold
	var owner *clause
	for k := first; k < len(a.clauses); k++ {
		if a.clauses[k].verbEnd <= i {
			owner = &a.clauses[k]
		}
	}
	next := ""
	if end < b.to {
		next = a.toks[end].fold
	}
	switch w {
	case "after", "before":
		if _, ok := spanAt(a.toks, i, a.now); ok || timeNouns[next] {
			return false
		}
		if i > b.from && (a.toks[i-1].fold == "ask" || a.toks[i-1].fold == "check" || a.toks[i-1].fold == "asking") {
			return false // "no need to ask before"
		}
		if i > b.from && a.toks[i-1].fold == "me" {
			return false
		}
		if isArticle(next) || next == "my" || next == "our" {
			// "after the meeting" is a time, "after the meeting ends" hangs on it
			return end+2 < b.to && a.toks[end+2].isWord() && !functionWord(a.toks[end+2].fold)
		}
	case "once":
		if next == "" || !a.toks[end].isWord() || next == "a" || next == "more" || next == "again" || next == "every" || i > b.from && a.toks[i-1].fold == "at" {
			return false
		}
	case "any", "anytime", "every", "each", "whenever":
		if next == "" || !a.toks[end].isWord() {
			return false
		}
	}
	if owner == nil {
		return true
	}
	if i > owner.verbEnd && (w == "if" || w == "when" || w == "whenever") {
		prev := a.toks[i-1].fold
		if owner.verb.words[0] == "ask" || embeds[prev] && owner.verb.words[0] != "let" {
			return false
		}
	}
	if owner.verb.content {
		for _, t := range a.toks[owner.verbEnd:i] {
			if t.fold == "that" || t.fold == "saying" || t.fold == "say" || t.text == ":" {
				return false // part of the message
			}
		}
	}
	return true
}

// question takes back the asks of a sentence that is a question, except where its
// form is that of a request, or the question is what is to be passed on.
func (a *analysis) question(b bound, first int) {
	end := b.to
	asks := false
	for end > b.from && !a.toks[end-1].isWord() {
		asks = asks || a.toks[end-1].text == "?" || a.toks[end-1].text == "？"
		end--
	}
	if !asks {
		return
	}
	for _, tag := range tags {
		if end-len(tag) > b.from && hasWords(a.toks, end-len(tag), tag) {
			return
		}
	}
	for k := first; k < len(a.clauses); k++ {
		c := &a.clauses[k]
		if c.request {
			continue
		}
		inside := false
		if c.verb.content {
			for i := c.verbEnd + 1; i < min(c.to, end); i++ {
				inside = inside || questionWords[a.toks[i].fold]
			}
		}
		if !inside { // mutant: said.question
			c.asked = false
		}
	}
}

var (
	tags          = phrases("ok", "okay", "please", "pls", "plz", "k", "thanks", "thx", "will you", "would you", "could you", "can you", "alright")
	questionWords = wordSet("are is do does did can could will would what what's when where where's who how why which if whether has have was were should any")
)

// retract takes back what was asked before a change of mind.
func (a *analysis) retract() {
	for _, b := range a.bounds {
		for i := b.from; i < b.to; i++ {
			if a.quoted[i] || i > b.from && a.toks[i-1].isWord() && !isSeparatorWord(a.toks[i-1].fold) && !wavering[a.toks[i-1].fold] {
				continue
			}
			end := longest(a.toks, i, retractions)
			if end == i || a.toks[i].fold == "leave" && end < b.to && a.toks[end].isWord() {
				continue
			}
			for k := range a.clauses {
				if a.clauses[k].verbAt < i { // mutant: said.retracted
					a.clauses[k].asked = false
				}
			}
		}
	}
}

var wavering = wordSet("no wait oh actually hmm hm um nah sorry oops ah lol haha")

// reserve takes back every ask where the person wants to be asked or shown something first, where what they copied is
// written to customers, and where a text ends in a bare no.
func (a *analysis) reserve() {
	reserved := false
	for i := range a.toks {
		if a.quoted[i] {
			continue
		}
		end := longest(a.toks, i, reservations)
		reserved = reserved || end > i && !a.waived(i) || longest(a.toks, i, boilerplate) > i
	}
	n := len(a.toks)
	for n > 1 && !a.toks[n-1].isWord() {
		n--
	}
	if n > 1 && !a.quoted[n-1] && bareNo[a.toks[n-1].fold] {
		before := a.toks[n-2]
		reserved = reserved || !before.isWord() || before.sentence != a.toks[n-1].sentence || wavering[before.fold]
	}
	for k := range a.clauses {
		if reserved { // mutant: said.reserved
			a.clauses[k].asked = false
		}
	}
}

// waived: "no need to ask me", "don't ask me first".
func (a *analysis) waived(i int) bool {
	if i > 0 && a.toks[i-1].fold == "to" {
		i--
		return i > 0 && waivers[a.toks[i-1].fold]
	}
	return i > 0 && (negates(a.toks[i-1].fold) || a.toks[i-1].fold == "needn't")
}

var (
	bareNo  = wordSet("no nope nah not")
	waivers = wordSet("need have needn't needing having")
)

// mention collects every verb, also those that ask nothing.
func (a *analysis) mention() {
	at := make(map[int]int)
	for k, c := range a.clauses {
		at[c.verbAt] = k
	}
	for i := 0; i < len(a.toks); i++ {
		if k, ok := at[i]; ok {
			a.mentions = append(a.mentions, mention{at: i, end: a.clauses[k].verbEnd, clause: k})
			i = a.clauses[k].verbEnd - 1
			continue
		}
		if a.quoted[i] {
			continue
		}
		prev := ""
		if i > 0 && a.toks[i-1].sentence == a.toks[i].sentence {
			prev = a.toks[i-1].fold
		}
		if _, end, ok := verbAt(a.toks, i); ok {
			if verbBefore[prev] || negates(prev) {
				a.mentions = append(a.mentions, mention{at: i, end: end, clause: -1})
			}
			continue
		}
		if _, ok := inflected(a.toks[i].fold); ok {
			if isArticle(prev) || possessor(prev) || prev == "'s" || prev == "this" || prev == "that" || prev == "these" || prev == "those" ||
				preposition[prev] && a.toks[i].fold[len(a.toks[i].fold)-1] == 's' || digits(prev) {
				continue
			}
			a.mentions = append(a.mentions, mention{at: i, end: i + 1, clause: -1})
		}
	}
}

func negates(w string) bool {
	return w == "don't" || w == "dont" || w == "didn't" || w == "not" || w == "never"
}

var (
	verbBefore  = wordSet("to i we you they he she who will would can could should might may must please and then or i'll we'll he'll she'll they'll you'll he'd she'd they'd we'd let's but")
	preposition = wordSet("of from about on in at for with by to as after before into")
	kin         = wordSet("mom mum mommy mama dad daddy papa grandma grandpa granny sis bro")
	pronoun     = wordSet("him her them it he she they that this those these everyone everybody")
)

func possessor(w string) bool {
	switch w {
	case "my", "our", "his", "her", "their", "your", "its":
		return true
	}
	return false
}

// functionWord: not a noun, not a name.
func functionWord(w string) bool { return functionWords[w] }

var functionWords = wordSet(`a an the and or but so then if when whenever once while because since that which who whom whose what where how why whether
	to of from about on in at for with without by as after before until till through into onto over under up down off out re regarding
	i i'm im i'll i've i'd we we're we'll you he she it they he's she's it's they're that's there's my our your his her their its this these those
	is are was were be been am will would can can't could should may might must do does did don't has have had not no yes ok okay
	please pls thanks today tonight tomorrow now later asap soon again too also just back each every both all any some
	monday tuesday wednesday thursday friday saturday sunday hi hello hey say saying via immediately right always directly instead myself`)
