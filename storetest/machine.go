package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// RunMachine plays random interleavings of everybody who touches a store: agent, person, carrier, owner, executor and
// clock, over two replicas of one database. After each step it reads the store afresh and holds it to the rules of
// machine_rules.go; before each yes, close and begin it works out from what it has seen whether that one may succeed.
//
// checks is how many sequences are played, of 60 steps on average. -rapid.checks and -rapid.steps, or RAPID_CHECKS and
// RAPID_STEPS, play more: RAPID_CHECKS=10000 go test ./sqlite -run TestMachine -timeout 1h.
func RunMachine(t *testing.T, open Open, checks int) {
	t.Helper()
	sequences(t, checks)
	env := open(t)
	reached := map[string]int{}
	replicas := []Store{env.Store, env.Second()}
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, env, replicas, reached)
		for range 2 {
			rt.Repeat(m.actions())
		}
		m.finish()
	})
	if t.Failed() {
		return
	}
	t.Logf("machine: %v", reached)
	// A machine that never gets anywhere holds every rule. What is rare is asked for in long runs only.
	want := []string{"open", "expired", "withdrawn", "superseded", "undeliverable", "declined", "modified", "yes", "cited yes", "yes again", "begun", "opt-out"}
	switch {
	case reached["step"] < 9_000:
		return
	case reached["step"] >= 300_000:
		want = append(want, "lapsed", "taken back", "gave way", "chosen", "refused: several_open", "refused: last_text_unproven")
	}
	for _, what := range want {
		if reached[what] == 0 {
			t.Errorf("never reached: %s", what)
		}
	}
}

// sequences sets how many sequences rapid plays, unless whoever runs the test has said so.
func sequences(t *testing.T, n int) {
	t.Helper()
	const name = "rapid.checks"
	_, said := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == name })
	if said {
		return
	}
	was := flag.Lookup(name).Value.String()
	set := func(v string) {
		if err := flag.Set(name, v); err != nil {
			t.Error(err)
		}
	}
	set(fmt.Sprint(n))
	t.Cleanup(func() { set(was) })
}

// machine is one sequence: a store, and what was done to it so far. Times are spans, since the store's clock runs while
// the machine looks at it: something happened at or after from, and at or before to.
type machine struct {
	Env
	t        *rapid.T
	ctx      context.Context
	replicas []Store
	account  string
	reached  map[string]int

	people   []*person
	messages []*message
	offers   map[string]*offer
	texts    map[string]*text
	lists    map[string][]string // by the text that showed them: offers by number
	took     map[string]span     // by text: when it was known as accepted
	gone     map[string]span     // by text: when it left
	ops      []string            // of every operation, in order
	asked    []offers.Proposal
	keyed    map[string]string // operation by idempotency key
	away     []string          // texts that were reserved and not answered

	step     int
	clock    time.Time // of the store, after the last step
	was      picture
	may      allowed
	position string // how far the feed was read
	feed     []offers.Event
	told     map[string]int // messages that an event was made of
}

// allowed is what the step that was just made may have changed; nothing is allowed unless it says so.
type allowed struct {
	offer func(was offers.Offer, to offers.State) bool
	op    func(id string, was, to offers.OpState) bool
	text  func(was offers.Text, to offers.TextState) bool
	none  bool // the step was refused, or a repetition: the store is as it was
}

type span struct{ from, to time.Time }

func (s span) plus(d time.Duration) span { return span{s.from.Add(d), s.to.Add(d)} }

type binding struct {
	people.Binding
	closed bool // opted out
	gone   bool // unbound, after a dead number
}

type person struct {
	id       string
	tier     string
	state    people.State
	bindings []*binding
	messages []*message
}

type message struct {
	in      offers.Inbound
	id      string
	person  *person
	run     string
	trusted bool
	at      span
	decided bool
	passed  bool   // … by being passed on to the agent
	used    string // the offer that it approved
	tainted bool   // its run is
	rivals  []string
	step    int
}

type offer struct {
	id, op, root string
	tried        bool // it has been sending
	first        span // when it was first open
	sent         span // when it was last put in line
	asked        span // the newest accepted text about it, while it was live
	askedStep    int
	left         span // when it last left the screen or ended
	approved     span
	opened       int
	takenBack    bool
}

type text struct {
	parts    int
	proved   map[int]bool
	ranks    map[int]int // how far callbacks have said that a part has come
	accepted bool        // the provider said so
}

func newMachine(t *rapid.T, env Env, replicas []Store, reached map[string]int) *machine {
	m := &machine{
		Env: env, t: t, ctx: context.Background(), replicas: replicas, account: fmt.Sprint("machine-", serial.Add(1)), reached: reached,
		offers: map[string]*offer{}, texts: map[string]*text{}, keyed: map[string]string{}, told: map[string]int{},
		lists: map[string][]string{}, took: map[string]span{}, gone: map[string]span{},
	}
	env.AddAccount(m.account)
	bound := func(n int64, our people.Address) *binding {
		return &binding{Binding: people.Binding{Address: people.Address(fmt.Sprint("sim:machine", n)), OurNumber: our}}
	}
	one, two, three := serial.Add(1), serial.Add(1), serial.Add(1)
	for _, list := range [][]*binding{{bound(one, Ours), bound(one, OursToo), bound(two, Ours)}, {bound(three, OursToo)}} {
		p := &person{id: offers.NewID(), tier: gate.TierOwner, state: people.Active, bindings: list}
		add := people.Person{ID: p.id, AccountID: m.account, Name: "Alex", Tier: p.tier, State: p.state}
		for _, b := range list {
			add.Addresses = append(add.Addresses, b.Binding)
		}
		m.must(env.Store.AddPerson(m.ctx, add))
		m.people = append(m.people, p)
	}
	m.clock = m.Now()
	m.was = m.picture()
	return m
}

func (m *machine) must(err error) {
	if err != nil {
		m.t.Helper()
		m.t.Fatalf("the store does not answer: %v", err)
	}
}

// store is one of the replicas.
func (m *machine) store() Store { return m.replicas[m.upTo(len(m.replicas)-1, "replica")] }

func (m *machine) upTo(n int, label string) int { return rapid.IntRange(0, n).Draw(m.t, label) }

// oneIn is true once in n times.
func (m *machine) oneIn(n int, label string) bool { return m.upTo(n-1, label) == n-1 }

// late picks one of the last few of a list.
func late[T any](m *machine, list []T, label string) T {
	if len(list) == 0 {
		m.t.Skip("there is none")
	}
	return list[len(list)-1-m.upTo(min(len(list), 5)-1, label)]
}

func (m *machine) somebody() *person { return m.people[m.upTo(3, "person")/3] }

// someOffer is an offer as it is now: mostly one that is open, or at least live, else any of the last few.
func (m *machine) someOffer() offers.Offer {
	list := m.live("")
	if open := slices.DeleteFunc(slices.Clone(list), func(o offers.Offer) bool { return o.State != offers.Open }); len(open) > 0 && !m.oneIn(5, "sending") {
		list = open
	}
	if len(list) == 0 || m.oneIn(5, "any offer") {
		list = m.was.offers
	}
	return late(m, list, "offer")
}

// live are the offers of a person that are sending or open, of all where it is empty.
func (m *machine) live(personID string) (list []offers.Offer) {
	for _, o := range m.was.offers {
		if (o.State == offers.Sending || o.State == offers.Open) && (personID == "" || o.PersonID == personID) {
			list = append(list, o)
		}
	}
	return list
}

func (m *machine) owner(personID string) *person {
	return m.people[slices.IndexFunc(m.people, func(p *person) bool { return p.id == personID })]
}

func (p *person) at(a, our people.Address) *binding {
	for _, b := range p.bindings {
		if b.Address == a && b.OurNumber == our {
			return b
		}
	}
	return nil
}

// actions are what can happen. Each sets what it may change, and the rules hold it to that.
func (m *machine) actions() map[string]func(*rapid.T) {
	list := map[string]func(*rapid.T){"": func(t *rapid.T) { m.t = t; m.look() }}
	// What has to happen for others to happen is picked more often.
	add := func(often int, name string, f func()) {
		for i := range often {
			list[fmt.Sprint(name, i+1)] = func(t *rapid.T) { m.t, m.may = t, allowed{}; f() }
		}
	}
	add(8, "Propose", m.propose)
	add(1, "ProposeAgain", m.proposeAgain)
	add(1, "Allowed", m.allow)
	add(1, "Withdraw", m.withdraw)
	add(3, "Reserve", m.reserve)
	add(4, "Sent", m.sent)
	add(12, "Deliver", m.deliver)
	add(1, "Crash", m.crash)
	add(3, "Report", m.report)
	add(1, "Say", m.say)
	add(3, "Receive", m.receive)
	add(1, "ReceiveAgain", m.receiveAgain)
	add(3, "Yes", m.yes)
	add(10, "SaysYes", m.saysYes)
	add(1, "YesAgain", m.yesAgain)
	add(3, "SaysIt", m.saysIt)
	add(3, "Close", m.closeByReply)
	add(2, "Pass", m.pass)
	add(2, "Cited", m.cited)
	add(1, "OptOut", m.optOut)
	add(1, "OptIn", m.optIn)
	add(1, "End", m.end)
	add(4, "TakeBack", m.takeBack)
	add(1, "Choose", m.choose)
	add(3, "AskWhich", m.askWhich)
	add(4, "AnswerWhich", m.answerWhich)
	add(1, "Taint", m.taint)
	add(1, "State", m.setState)
	add(1, "Tier", m.setTier)
	add(2, "Begin", m.begin)
	add(2, "Finish", m.finishOp)
	add(2, "Clock", m.moveClock)
	add(3, "Read", m.read)
	add(6, "Sweep", m.sweep)
	add(1, "Advance", m.advance)
	return list
}

// The agent.

func (m *machine) propose() {
	p := m.somebody()
	n := serial.Add(1)
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"to":["dana@example.test"],"subject":"n%d","body":"hello"}`, n))
	m.must(err)
	pr := offers.Proposal{
		AccountID: m.account, Call: callOffer, Key: fmt.Sprint("key-", n), BodySum: sum, PersonID: p.id,
		Kind: string(gate.KindToolCall), Tool: "email.send", Args: args, ArgsSum: sum, Present: offers.PresentQueue,
	}
	if m.oneIn(3, "now") {
		pr.Present = offers.PresentNow
	}
	root := ""
	var run *message
	if m.oneIn(3, "in a run") && len(p.messages) > 0 {
		if run = late(m, p.messages, "of message"); run.trusted {
			pr.PersonID, pr.RunID, root = "", run.run, run.run
			if m.oneIn(3, "derived") {
				r, err := m.store().StartRun(m.ctx, m.account, offers.StartCause{ParentRunID: run.run})
				if errors.Is(err, offers.ErrRunExpired) {
					m.may.none = true
					return
				}
				m.must(err)
				pr.RunID = r.ID
			}
		} else {
			run = nil
		}
	}
	var old *offers.Offer
	if m.oneIn(4, "supersede") && len(m.was.offers) > 0 {
		o := m.someOffer()
		old, pr.Supersedes = &o, o.ID
	}
	ttl := []time.Duration{30 * time.Second, 10 * time.Minute, 24 * time.Hour}[m.upTo(2, "ttl")]
	settle := []time.Duration{0, 5 * time.Second, 0}[m.upTo(2, "settle")]
	taints := run != nil && m.oneIn(5, "taints")
	m.may.offer = func(was offers.Offer, to offers.State) bool {
		return old != nil && was.ID == old.ID && to == offers.Superseded
	}
	op, again, err := m.store().Propose(m.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
		plan, err := Ask(f, pr)
		plan.Taints = taints
		if !f.Reachable {
			plan.Offer, plan.Decision.Answer, plan.Decision.Reason = nil, gate.Refuse, gate.ReasonNoInteractivePath
			return plan, err
		}
		plan.Offer.TTL, plan.Offer.Settle = ttl, settle
		return plan, err
	})
	switch {
	case errors.Is(err, offers.ErrRunExpired) && run != nil:
		m.may.none = true
		return
	case errors.Is(err, offers.ErrNotFound) && old != nil && old.PersonID != p.id:
		m.may.none = true
		return
	case errors.Is(err, offers.ErrOfferClosed) && old != nil && old.Taken():
		m.may.none = true
		return
	}
	m.must(err)
	if again {
		m.t.Fatal("a new key was taken for a used one")
	}
	if taints {
		run.tainted = true
	}
	m.asked, m.ops, m.keyed[pr.Key] = append(m.asked, pr), append(m.ops, op.ID), op.ID
	if op.Offer == nil {
		return
	}
	if old != nil && (old.PersonID != p.id || old.Taken()) {
		m.t.Fatalf("an offer that was %s, of %s, was superseded for %s", old.State, old.PersonID, p.id)
	}
	o := &offer{id: op.Offer.ID, op: op.ID, root: root}
	if root == "" {
		o.root = op.RunID
	}
	m.offers[o.id] = o
}

func (m *machine) proposeAgain() {
	pr := late(m, m.asked, "proposal")
	m.may.none = true
	if m.oneIn(3, "with other content") {
		pr.BodySum[0] ^= 1
		if _, _, err := m.store().Propose(m.ctx, pr, decider(pr)); !errors.Is(err, offers.ErrIdempotencyConflict) {
			m.t.Fatalf("other content under a used key: %v", err)
		}
		return
	}
	op, again, err := m.store().Propose(m.ctx, pr, decider(pr))
	m.must(err)
	if !again || op.ID != m.keyed[pr.Key] {
		m.t.Fatalf("the key of %s came back with %s, again %v", m.keyed[pr.Key], op.ID, again)
	}
}

// allow proposes what the gate lets through, or refuses.
func (m *machine) allow() {
	p := m.somebody()
	n := serial.Add(1)
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"n":%d}`, n))
	m.must(err)
	pr := offers.Proposal{
		AccountID: m.account, Call: callOffer, Key: fmt.Sprint("key-", n), BodySum: sum, PersonID: p.id,
		Kind: string(gate.KindToolCall), Tool: "email.read", Args: args, ArgsSum: sum, Present: offers.PresentQueue,
	}
	how := answer(gate.Allow, gate.ReasonReversibleOwnData)
	if m.oneIn(2, "refuse") {
		how = answer(gate.Refuse, gate.ReasonTierUnknown)
	}
	op, _, err := m.store().Propose(m.ctx, pr, decider(pr, how))
	m.must(err)
	m.asked, m.ops, m.keyed[pr.Key] = append(m.asked, pr), append(m.ops, op.ID), op.ID
}

func (m *machine) withdraw() {
	o := m.someOffer()
	m.may.offer = func(was offers.Offer, to offers.State) bool { return was.ID == o.ID && to == offers.Withdrawn }
	_, err := m.store().Withdraw(m.ctx, m.account, o.ID, offers.Closer{By: offers.ByAgent})
	if errors.Is(err, offers.ErrOfferClosed) && o.State.Closed() {
		m.may.none = true
		return
	}
	m.must(err)
	if o.State.Closed() {
		m.t.Fatalf("an offer that was %s was withdrawn", o.State)
	}
}

// The line.

// take reserves the next text of this sequence's people; what earlier sequences have left in line goes by.
func (m *machine) take() *offers.Text {
	for {
		x, err := m.store().Reserve(m.ctx)
		m.must(err)
		if x == nil {
			return nil
		}
		if x.AccountID == m.account {
			p := m.owner(x.PersonID)
			if b := p.at(x.Address, x.OurNumber); b == nil || b.closed || b.gone {
				m.t.Fatalf("a text leaves for an address that takes none: %+v", x)
			}
			if m.texts[x.ID] == nil {
				m.texts[x.ID] = &text{parts: 1 + m.upTo(3, "parts")/3, proved: map[int]bool{}, ranks: map[int]int{}}
			} else {
				m.t.Fatalf("text %d was reserved twice", x.Number)
			}
			return x
		}
		m.must(m.store().Sent(m.ctx, x.ID, offers.SendResult{Outcome: offers.OutcomeAccepted}))
	}
}

// waits says whether a text could leave now. To somebody who is suspended none does.
func (m *machine) waits() bool {
	for id, list := range m.was.texts {
		if m.owner(id).state == people.Active &&
			!slices.ContainsFunc(list, func(x offers.Text) bool { return x.State == offers.TextSending }) &&
			slices.ContainsFunc(list, func(x offers.Text) bool { return x.State == offers.TextQueued }) {
			return true
		}
	}
	return false
}

func (m *machine) reserve() {
	x := m.take()
	m.may.text = func(was offers.Text, to offers.TextState) bool {
		return x != nil && was.ID == x.ID && was.State == offers.TextQueued && to == offers.TextSending
	}
	if x == nil {
		if m.waits() {
			m.t.Fatal("a text waits, and Reserve finds none")
		}
		return
	}
	if m.owner(x.PersonID).state != people.Active {
		m.t.Fatal("a text leaves to somebody who is suspended")
	}
	m.away = append(m.away, x.ID)
}

// provider makes the id that the provider gives to a part; it is the same whenever the part is spoken of.
func provider(textID string, part int) string { return fmt.Sprint("SM", textID, "-", part) }

// answer records the provider's answer to one text, and says what may follow from it.
func (m *machine) answer(textID string, res offers.SendResult) {
	was := m.was.text(textID)
	mine := m.texts[textID]
	if res.Outcome != offers.OutcomeRejected {
		res.ProviderIDs = make([]string, mine.parts)
		for i := range res.ProviderIDs {
			if i+1 < mine.parts || res.Outcome == offers.OutcomeAccepted {
				res.ProviderIDs[i] = provider(textID, i+1) // a part that has an id is one that the provider took
				mine.proved[i+1] = true
			}
		}
	}
	mine.accepted = mine.accepted || res.Outcome == offers.OutcomeAccepted
	m.mayAnswer(was, res.Code)
	m.must(m.store().Sent(m.ctx, textID, res))
	if was.State == offers.TextSending || was.State == offers.TextUnknown {
		m.number(was, res.Code)
	}
}

// mayAnswer is what an answer or a callback about a text may change: the text, its offer, and what its code says of the
// number.
func (m *machine) mayAnswer(x offers.Text, code int) {
	m.may.text = func(was offers.Text, to offers.TextState) bool {
		silenced := was.Address == x.Address && was.OurNumber == x.OurNumber && (offers.OptsOut(code) || offers.DeadNumber(code))
		return was.ID == x.ID || to == offers.TextRejected && was.State == offers.TextQueued && silenced
	}
	m.may.offer = func(was offers.Offer, to offers.State) bool {
		at := was.PersonID == x.PersonID && was.Address == x.Address && was.OurNumber == x.OurNumber
		switch to {
		case offers.Open:
			return was.ID == x.OfferID
		case offers.Undeliverable:
			return was.ID == x.OfferID && x.Kind == offers.TextShow || at && offers.DeadNumber(code)
		case offers.Withdrawn:
			return at && offers.OptsOut(code)
		}
		return false
	}
}

// number remembers what a code has said of the number that a text went to.
func (m *machine) number(x offers.Text, code int) {
	b := m.owner(x.PersonID).at(x.Address, x.OurNumber)
	b.closed = b.closed || offers.OptsOut(code)
	b.gone = b.gone || offers.DeadNumber(code)
}

func (m *machine) code() int {
	return []int{0, 30007, 30007, 30008, offers.CodeOptedOut, 30003}[m.upTo(5, "code")]
}

func (m *machine) sent() {
	if len(m.away) == 0 {
		m.t.Skip("nothing is away")
	}
	i := m.upTo(len(m.away)-1, "text")
	id := m.away[i]
	m.away = slices.Delete(m.away, i, i+1)
	res := offers.SendResult{Outcome: []offers.Outcome{offers.OutcomeAccepted, offers.OutcomeAccepted, offers.OutcomeUnknown, offers.OutcomeRejected}[m.upTo(3, "outcome")]}
	switch res.Outcome {
	case offers.OutcomeRejected:
		res.Code = m.code()
	case offers.OutcomeUnknown:
		res.Partial = m.oneIn(4, "partial")
	}
	m.answer(id, res)
}

// deliver brings the next text to its phone, as goes well most of the time.
func (m *machine) deliver() {
	if !m.waits() {
		m.t.Skip("nothing in line")
	}
	x := m.take()
	if x == nil {
		m.t.Fatal("a text waits, and Reserve finds none")
	}
	res := offers.SendResult{Outcome: offers.OutcomeAccepted}
	m.was = m.picture() // it is sending by now
	m.answer(x.ID, res)
}

// crash is the end of a process between reserving a text and recording the answer to it.
func (m *machine) crash() {
	if len(m.away) == 0 {
		m.t.Skip("nothing is away")
	}
	m.away = slices.Delete(m.away, 0, 1)
	m.may.none = true
}

// report is a status callback of a text that has left, whoever knows of it.
func (m *machine) report() {
	var left []offers.Text
	for _, p := range m.people {
		for _, x := range m.was.texts[p.id] {
			if m.texts[x.ID] != nil {
				left = append(left, x)
			}
		}
	}
	x := late(m, left, "text")
	mine := m.texts[x.ID]
	part := 1 + m.upTo(mine.parts-1, "part")
	r := offers.StatusReport{
		TextID: x.ID, ProviderID: provider(x.ID, part), Part: part, Parts: mine.parts,
		Status: []string{"queued", "sent", "delivered", "delivered", "undelivered", "failed", "gibberish"}[m.upTo(6, "status")],
	}
	if r.Lost() {
		r.Code = m.code()
	}
	m.mayAnswer(x, r.Code)
	news := r.Rank() > mine.ranks[part] // what comes late says nothing new
	if r.Proves() && news {
		mine.proved[part] = true
	}
	m.must(m.store().Report(m.ctx, r))
	if news {
		mine.ranks[part] = r.Rank()
	}
	if r.Lost() && news {
		m.number(x, r.Code)
	}
}

func (m *machine) say() {
	kind := []offers.TextKind{offers.TextNotice, offers.TextReceipt, offers.TextMessage}[m.upTo(2, "kind")]
	m.must(m.store().Say(m.ctx, m.account, m.somebody().id, kind, "By the way"))
}

// The person.

func (m *machine) hear(p *person, b *binding) *message {
	msg := &message{person: p, step: m.step, in: offers.Inbound{
		Provider: "sim", ProviderID: fmt.Sprintf("SM%032x", serial.Add(1)), Address: b.Address, OurNumber: b.OurNumber, Text: "yes", Raw: []byte("yes"),
	}}
	for _, o := range m.live(p.id) {
		if o.State == offers.Open {
			msg.rivals = append(msg.rivals, o.ID)
		}
	}
	from := m.Now()
	r, err := m.store().Receive(m.ctx, msg.in)
	m.must(err)
	msg.at = span{from, m.Now()}
	if r.Duplicate || r.Trusted != (p.state == people.Active) || r.PersonID != p.id {
		m.t.Fatalf("a new message of somebody who is %s came in as %+v", p.state, r)
	}
	msg.id, msg.run, msg.trusted = r.MessageID, r.RunID, r.Trusted
	m.messages, p.messages = append(m.messages, msg), append(p.messages, msg)
	return msg
}

func (m *machine) receive() {
	p := m.somebody()
	b := p.bindings[m.upTo(len(p.bindings)-1, "address")]
	if b.gone {
		m.t.Skip("nobody is there any more")
	}
	m.hear(p, b)
}

func (m *machine) receiveAgain() {
	msg := late(m, m.messages, "message")
	r, err := m.store().Receive(m.ctx, msg.in)
	m.must(err)
	if !r.Duplicate || r.MessageID != msg.id || r.RunID != msg.run {
		m.t.Fatalf("a duplicate of %s came in as %+v", msg.id, r)
	}
	m.may.none = true
}

func (m *machine) yes() {
	m.consume(m.someOffer(), late(m, m.messages, "message"), m.oneIn(4, "names"))
}

// saysYes is the plain way: a person reads what is on the screen, and answers it.
func (m *machine) saysYes() {
	o := m.someOffer()
	msg := m.reads(o)
	m.meanwhile(msg.person)
	m.consume(o, msg, m.oneIn(4, "names"))
}

// meanwhile is what may come between a message and its decision, and takes nothing of what the decision reads of offers
// and texts.
func (m *machine) meanwhile(p *person) {
	switch m.upTo(11, "meanwhile") {
	case 11:
		p.state = people.Suspended
		m.must(m.store().SetState(m.ctx, m.account, p.id, p.state))
	case 10:
		p.tier = gate.TierPaired
		m.must(m.store().SetTier(m.ctx, m.account, p.id, p.tier))
	case 9:
		if b := p.bindings[0]; !b.gone {
			m.hear(p, b)
		}
	case 8:
		m.Advance(10 * time.Minute)
	}
}

// saysIt is the way over a main model: code passes the message on, and the model cites it.
func (m *machine) saysIt() {
	o := m.someOffer()
	msg := m.reads(o)
	if !msg.trusted {
		return
	}
	if m.decides(msg, m.store().Pass(m.ctx, pass(msg.received()))) {
		msg.passed = true
		m.told[msg.id]++
	}
	m.meanwhile(msg.person)
	if m.oneIn(4, "as if it were undecided") {
		m.decideBy(m.store().Consume, m.request(o, msg, false), o, msg, false)
		return
	}
	m.decideBy(m.store().ConsumeCited, m.request(o, msg, m.oneIn(3, "names")), o, msg, true)
}

// reads lets the owner of an offer look at it for a while, mostly, and answer from where it was shown, mostly. Whoever may
// say nothing by now gets their rights back, mostly.
func (m *machine) reads(o offers.Offer) *message {
	p := m.owner(o.PersonID)
	b := p.at(o.Address, o.OurNumber)
	if m.oneIn(6, "elsewhere") {
		b = p.bindings[m.upTo(len(p.bindings)-1, "address")]
	}
	if b.gone {
		m.t.Skip("nobody is there any more")
	}
	if (p.state != people.Active || p.tier != gate.TierOwner) && !m.oneIn(4, "still") {
		p.state, p.tier = people.Active, gate.TierOwner
		m.must(m.store().SetState(m.ctx, m.account, p.id, p.state))
		m.must(m.store().SetTier(m.ctx, m.account, p.id, p.tier))
	}
	if !m.oneIn(4, "at once") {
		m.Advance((offers.CrossFactor + 1) * MinRead)
	}
	return m.hear(p, b)
}

// request is a yes by a message, made of the offer as it was read.
func (m *machine) request(o offers.Offer, msg *message, names bool) offers.ConsumeRequest {
	return offers.ConsumeRequest{
		Offer: o, MessageID: msg.id, PersonID: msg.person.id, RunID: msg.run, Names: names,
		Closer:  offers.Closer{MessageID: msg.id, Reading: "confirm", P: 0.99},
		Reading: offers.ReadingRecord{Class: "confirm", P: map[string]float64{"confirm": 0.99, "unclear": 0.01}, Reader: "machine"},
		Tiers:   offers.TiersHolding(o.Capability), MinRead: MinRead,
	}
}

func (m *machine) consume(o offers.Offer, msg *message, names bool) {
	req := m.request(o, msg, names)
	if m.oneIn(10, "other arguments") {
		req.Offer.ArgsSHA256 = offers.Hex(offers.Digest{1})
	}
	if m.oneIn(10, "other binding") {
		req.Offer.BindingSHA256[0] ^= 1
	}
	m.decideBy(m.store().Consume, req, o, msg, false)
}

// cited is a main model's confirm, of a message that code has left to it.
func (m *machine) cited() {
	o, msg := m.someOffer(), late(m, m.messages, "message")
	req := m.request(o, msg, m.oneIn(3, "names"))
	if m.oneIn(8, "another run") && len(m.messages) > 1 {
		req.RunID = late(m, m.messages, "run of").run
	}
	if req.RunID == "" || msg.decided && !msg.passed && msg.used == "" {
		m.t.Skip("nobody asks the store for that: the message is pending, or was decided as something else")
	}
	m.decideBy(m.store().ConsumeCited, req, o, msg, true)
}

func (m *machine) decideBy(consume func(context.Context, offers.ConsumeRequest) (offers.Win, error), req offers.ConsumeRequest, o offers.Offer, msg *message, cited bool) {
	m.may.offer = func(was offers.Offer, to offers.State) bool { return was.ID == o.ID && to == offers.Consumed }
	from := m.Now()
	win, err := consume(m.ctx, req)
	during := span{from, m.Now()}
	reason, err := why(err)
	m.must(err)
	c := m.consuming(req, o, msg, during, cited)
	if reason == "" && win.Repeat {
		if msg.used != o.ID {
			m.t.Fatalf("a first yes says that it is a repetition")
		}
		m.may.none = true
		return
	}
	if reason != "" {
		m.may.none = true
		m.reached["refused: "+string(reason)]++
		c.refused(m, reason)
		return
	}
	c.won(m)
	msg.decided, msg.used = true, o.ID
	m.reached["yes"]++
	if cited {
		m.reached["cited yes"]++
	}
}

// yesAgain says again what a message has said: it finds its own win, and wins nothing else.
func (m *machine) yesAgain() {
	var used []*message
	for _, msg := range m.messages {
		if msg.used != "" {
			used = append(used, msg)
		}
	}
	msg := late(m, used, "message")
	o := m.was.offer(msg.used)
	m.may.none = true
	m.reached["yes again"]++
	win, err := m.store().Consume(m.ctx, m.request(o, msg, false))
	m.must(err)
	if !win.Repeat || win.Operation.ID != o.OperationID {
		m.t.Fatalf("a repetition of %s found %+v", msg.id, win)
	}
}

func (m *machine) closeByReply() {
	o := m.someOffer()
	var msg *message
	if m.oneIn(3, "an old message") {
		msg = late(m, m.messages, "message")
	} else {
		msg = m.reads(o)
	}
	req := no(o, offers.Received{MessageID: msg.id, PersonID: msg.person.id}, []offers.State{offers.Declined, offers.Modified}[m.upTo(1, "state")])
	if m.oneIn(2, "receipt") {
		req.Receipt = "Not done."
	}
	if req.State == offers.Modified {
		req.Tell = &offers.ReplyData{MessageID: msg.id, PersonID: msg.person.id}
	}
	m.may.offer = func(was offers.Offer, to offers.State) bool { return was.ID == o.ID && to == req.State }
	m.may.text = mayDrop(o.ID)
	from := m.Now()
	_, err := m.store().CloseByReply(m.ctx, req)
	during := span{from, m.Now()}
	reason, err := why(err)
	m.must(err)
	c := m.closing(o, msg, during)
	if reason != "" {
		m.may.none = true
		c.refused(m, reason)
		return
	}
	c.won(m)
	msg.decided = true
	if req.Tell != nil {
		m.told[msg.id]++
	}
}

// decides runs what decides a message without touching whether an offer is consumed.
func (m *machine) decides(msg *message, err error) bool {
	reason, err := why(err)
	m.must(err)
	if (reason == offers.WhyDecided) != msg.decided || reason != "" && reason != offers.WhyDecided {
		m.t.Fatalf("message decided: %v; the store says %q", msg.decided, reason)
	}
	if msg.decided {
		m.may.none = true
		return false
	}
	msg.decided = true
	return true
}

// trusted is one of the last messages of somebody who may say something.
func (m *machine) trusted() *message {
	msg := late(m, m.messages, "message")
	if !msg.trusted {
		m.t.Skip("pending messages are not decided")
	}
	return msg
}

func (msg *message) received() offers.Received {
	return offers.Received{MessageID: msg.id, PersonID: msg.person.id, RunID: msg.run, Text: msg.in.Text}
}

func (m *machine) pass() {
	msg := m.trusted()
	req := pass(msg.received())
	if len(m.was.offers) > 0 && m.oneIn(2, "reask") {
		o := m.someOffer()
		req.Type, req.Reask, req.ReaskText = offers.ReplyUnresolved, o.ID, offers.Question(o)
		if live := m.live(msg.person.id); len(live) > 0 && m.oneIn(2, "several") {
			req.Reask, req.ReaskText, req.Listed = live[0].ID, offers.WhichOne(live), ids(live)
		}
	}
	m.passes(msg, req)
}

// passes has a message passed on, and remembers what the text that answers it has numbered.
func (m *machine) passes(msg *message, req offers.PassRequest) {
	if m.decides(msg, m.store().Pass(m.ctx, req)) {
		msg.passed = true
		m.told[msg.id]++
		list, err := m.Store.Texts(m.ctx, m.account, msg.person.id)
		m.must(err)
		if n := len(list); n > len(m.was.texts[msg.person.id]) && len(req.Listed) > 0 {
			m.lists[list[n-1].ID] = req.Listed
		}
	}
}

func (m *machine) optOut() {
	msg := m.trusted()
	if m.oneIn(2, "not yet") {
		m.t.Skip("rarer than the rest")
	}
	at := func(p string, a, our people.Address) bool {
		return p == msg.person.id && a == msg.in.Address && our == msg.in.OurNumber
	}
	m.may.offer = func(was offers.Offer, to offers.State) bool {
		return to == offers.Withdrawn && at(was.PersonID, was.Address, was.OurNumber)
	}
	m.may.text = func(was offers.Text, to offers.TextState) bool {
		return was.State == offers.TextQueued && to == offers.TextRejected && at(was.PersonID, was.Address, was.OurNumber)
	}
	err := m.store().OptOut(m.ctx, offers.OptOutRequest{MessageID: msg.id, PersonID: msg.person.id, Reading: pass(msg.received()).Reading})
	if m.decides(msg, err) {
		m.reached["opt-out"]++
		if b := msg.person.at(msg.in.Address, msg.in.OurNumber); !b.gone {
			b.closed = true
		}
	}
}

func (m *machine) optIn() {
	msg := m.trusted()
	if m.decides(msg, m.store().OptIn(m.ctx, pass(msg.received()))) {
		m.told[msg.id]++
		msg.person.at(msg.in.Address, msg.in.OurNumber).closed = false
	}
}

func (m *machine) end() {
	msg := m.trusted()
	m.decides(msg, m.store().End(m.ctx, msg.id, msg.person.id, pass(msg.received()).Reading))
}

func (m *machine) takeBack() {
	if !slices.ContainsFunc(m.ops, func(id string) bool { return m.was.ops[id] == offers.OpSettling }) {
		m.t.Skip("nothing settles")
	}
	msg := m.trusted()
	least, most := 0, 0
	for _, o := range m.was.offers {
		if m.was.ops[o.OperationID] != offers.OpSettling || o.PersonID != msg.person.id {
			continue
		}
		switch until(msg.at, m.offers[o.ID].approved.plus(o.Settle)) {
		case holds:
			least, most = least+1, most+1
		case maybe:
			most++
		}
	}
	m.may.op = func(id string, was, to offers.OpState) bool {
		return was == offers.OpSettling && to == offers.OpState(offers.Declined) && m.was.opOwner[id] == msg.person.id
	}
	n, err := m.store().CancelSettling(m.ctx, msg.id, msg.person.id, offers.CancelledReceipt)
	m.must(err)
	if n < least || n > most {
		m.t.Fatalf("%d yeses taken back, want %d to %d", n, least, most)
	}
	m.reached["taken back"] += n
}

// askWhich has somebody with several live offers say something that none can be told by.
func (m *machine) askWhich() {
	p := m.somebody()
	live := m.live(p.id)
	if len(live) < 2 || p.state != people.Active || p.bindings[0].gone {
		m.propose() // which is how there come to be several
		return
	}
	msg := m.hear(p, p.bindings[0])
	req := pass(msg.received())
	req.Type, req.Reask, req.ReaskText, req.Listed = offers.ReplyUnresolved, live[0].ID, offers.WhichOne(live), ids(live)
	m.passes(msg, req)
}

// answerWhich has somebody answer the list that they see.
func (m *machine) answerWhich() {
	p := m.somebody()
	last := m.last(p.id)
	b := p.at(last.Address, last.OurNumber)
	if len(m.lists[last.ID]) == 0 || p.state != people.Active || b == nil || b.gone {
		m.deliver()
		return
	}
	m.Advance([]time.Duration{0, 2 * MinRead, 16 * MinRead, 16 * MinRead}[m.upTo(3, "after")])
	m.chooses(m.hear(p, b), 1+m.upTo(2, "number"))
}

func (m *machine) choose() { m.chooses(m.trusted(), 1+m.upTo(2, "number")) }

func (m *machine) chooses(msg *message, n int) {
	req := picks(msg.received(), n)
	var picked string
	if list := m.lists[m.last(msg.person.id).ID]; n <= len(list) {
		picked = list[n-1]
	}
	o := m.was.offer(picked)
	m.may.offer = func(was offers.Offer, to offers.State) bool {
		return o.State == offers.Open && to == offers.Queued && was.ID != o.ID && was.PersonID == msg.person.id
	}
	m.may.text = func(was offers.Text, to offers.TextState) bool {
		return o.State == offers.Open && was.State == offers.TextQueued && to == offers.TextRejected && was.OfferID != o.ID && was.PersonID == msg.person.id
	}
	c := m.choosing(msg, n)
	reason, err := why(m.store().Choose(m.ctx, req))
	m.must(err)
	if reason != "" {
		m.may.none = true
		c.refused(m, reason)
		return
	}
	c.won(m)
	m.reached["chosen"]++
	msg.decided = true
	m.told[msg.id]++
}

// mayDrop lets the questions of an offer that ends leave the line.
func mayDrop(offerID string) func(was offers.Text, to offers.TextState) bool {
	return func(was offers.Text, to offers.TextState) bool {
		return was.OfferID == offerID && was.State == offers.TextQueued && to == offers.TextRejected
	}
}

// The owner.

func (m *machine) taint() {
	msg := m.trusted()
	_, err := m.store().Taint(m.ctx, m.account, msg.run)
	m.must(err)
	msg.tainted = true
}

func (m *machine) setState() {
	p := m.somebody()
	p.state = []people.State{people.Active, people.Active, people.Active, people.Suspended}[m.upTo(3, "state")]
	m.must(m.store().SetState(m.ctx, m.account, p.id, p.state))
}

func (m *machine) setTier() {
	p := m.somebody()
	p.tier = []string{gate.TierOwner, gate.TierOwner, gate.TierOwner, gate.TierPaired, "admin"}[m.upTo(4, "tier")]
	m.must(m.store().SetTier(m.ctx, m.account, p.id, p.tier))
}

// The executor.

func (m *machine) begin() {
	var ready []string
	for _, id := range m.ops {
		if s := m.was.ops[id]; s == offers.OpApproved || s == offers.OpAllowed || s == offers.OpSettling {
			ready = append(ready, id)
		}
	}
	if len(ready) == 0 || m.oneIn(4, "any operation") {
		ready = m.ops
	}
	id := late(m, ready, "operation")
	op, err := m.Store.Operation(m.ctx, m.account, id)
	m.must(err)
	sum, err := offers.ParseHex(op.ArgsSHA256)
	m.must(err)
	right := !m.oneIn(6, "other arguments")
	if !right {
		sum[0] ^= 1
	}
	m.may.op = func(of string, _, to offers.OpState) bool { return of == id && to == offers.OpRunning }
	from := m.Now()
	got, err := m.store().Begin(m.ctx, offers.BeginRequest{AccountID: m.account, OperationID: id, ArgsSum: sum, By: "executor"})
	c := m.beginning(op, right, span{from, m.Now()})
	if err != nil {
		if !errors.Is(err, offers.ErrHashMismatch) && !errors.Is(err, offers.ErrAlreadyBegun) && !errors.Is(err, offers.ErrNotApproved) {
			m.must(err)
		}
		m.may.none = true
		c.refused(m, "")
		return
	}
	c.won(m)
	m.reached["begun"]++
	if string(got.Args) != string(op.Args) || offers.Hex(sum) != got.ArgsSHA256 {
		m.t.Fatalf("begun with %s", got.Args)
	}
}

func (m *machine) finishOp() {
	id := late(m, m.ops, "operation")
	status := []offers.OpState{offers.OpSucceeded, offers.OpFailed}[m.upTo(1, "status")]
	m.may.op = func(of string, was, to offers.OpState) bool {
		return of == id && was == offers.OpRunning && to == status
	}
	was := m.was.ops[id]
	_, err := m.store().Finish(m.ctx, offers.FinishRequest{
		AccountID: m.account, OperationID: id, Result: offers.Result{Status: string(status)}, Receipt: "Done.",
	})
	switch {
	case err == nil && was != offers.OpRunning && was != status:
		m.t.Fatalf("an operation that was %s has a result", was)
	case errors.Is(err, offers.ErrNotBegun) && was != offers.OpRunning, errors.Is(err, offers.ErrAlreadyBegun) && was.Final():
		m.may.none = true
	default:
		m.must(err)
	}
}

// The clock.

func (m *machine) moveClock() {
	d := []time.Duration{-time.Minute, -2 * time.Second, 500 * time.Millisecond, 2 * time.Second, 6 * time.Second, 31 * time.Second,
		70 * time.Second, 11 * time.Minute, 61 * time.Minute, 7 * time.Hour}
	m.goOn(d[m.upTo(len(d)-1, "by")])
}

// read is the time in which a person reads a text, beyond that in which a yes may be to another.
func (m *machine) read() { m.goOn((offers.CrossFactor + 1) * MinRead) }

func (m *machine) goOn(d time.Duration) {
	m.Advance(d)
	m.clock = m.Now()
	m.may.none = true
}

func (m *machine) sweep() {
	s := m.store()
	which := m.upTo(6, "which")
	if due := []time.Duration{10 * time.Minute, 5 * time.Second, offers.BeginWithin, offers.NotPickedUp, offers.SendTimeout, 0, offers.GiveWay}[which]; !m.oneIn(2, "too early") {
		m.Advance(due)
	}
	switch which {
	case 0:
		m.may.offer = func(was offers.Offer, to offers.State) bool {
			over := offers.Expired
			if was.State == offers.Queued && was.ShownAt == nil {
				over = offers.Lapsed
			}
			return to == over && !was.ExpiresAt.After(m.Now())
		}
		from := m.Now()
		_, err := s.ExpireDue(m.ctx)
		m.must(err)
		for _, o := range m.list() {
			if !o.State.Closed() && !o.ExpiresAt.After(from) {
				m.t.Fatalf("an offer that ended at %v is %s at %v", o.ExpiresAt, o.State, from)
			}
		}
	case 1:
		m.may.op = func(_ string, was, to offers.OpState) bool {
			return was == offers.OpSettling && to == offers.OpApproved
		}
		_, err := s.SettleDue(m.ctx)
		m.must(err)
	case 2:
		m.may.op = func(_ string, was, to offers.OpState) bool {
			return was == offers.OpApproved && to == offers.OpState(offers.Lapsed)
		}
		m.may.offer = func(was offers.Offer, to offers.State) bool {
			return was.State == offers.Consumed && to == offers.Lapsed
		}
		_, err := s.LapseDue(m.ctx)
		m.must(err)
	case 3:
		_, err := s.NoticeDue(m.ctx, offers.PickedUpNotice, offers.HourlyTexts)
		m.must(err)
	case 4:
		m.may.text = func(was offers.Text, to offers.TextState) bool {
			return was.State == offers.TextSending && to == offers.TextUnknown
		}
		m.may.offer = func(was offers.Offer, to offers.State) bool { // of which two shows are as uncertain
			return was.State == offers.Sending && to == offers.Undeliverable && m.doubts(was) > 1
		}
		_, err := s.ResendDue(m.ctx)
		m.must(err)
	case 6:
		m.may.offer = func(was offers.Offer, to offers.State) bool {
			return was.State == offers.Open && to == offers.Queued && was.TTL > offers.OutwardTTL && !m.Now().Before(m.offers[was.ID].asked.from.Add(offers.GiveWay))
		}
		n, err := s.GiveWayDue(m.ctx)
		m.must(err)
		m.reached["gave way"] += n
	case 5:
		_, err := s.AdvanceAll(m.ctx)
		m.must(err)
		for _, p := range m.people {
			var live, queued int
			for _, o := range m.list() {
				if o.PersonID == p.id && (o.State == offers.Sending || o.State == offers.Open) {
					live++
				}
				if o.PersonID == p.id && o.State == offers.Queued && o.ExpiresAt.After(m.Now()) {
					queued++
				}
			}
			if live == 0 && queued > 0 {
				m.t.Fatalf("%d offers wait, none is live, and nobody shows one", queued)
			}
		}
	}
}

func (m *machine) advance() {
	_, err := m.store().Advance(m.ctx, m.somebody().id)
	m.must(err)
}

// finish looks at everything once more and clears away what other sequences would stumble over.
func (m *machine) finish() {
	m.lookBack()
	for _, o := range m.list() {
		if !o.State.Closed() {
			_, err := m.Store.Withdraw(m.ctx, m.account, o.ID, offers.Closer{By: offers.ByAgent})
			if !errors.Is(err, offers.ErrOfferClosed) {
				m.must(err)
			}
		}
	}
	for _, id := range m.away {
		m.must(m.Store.Sent(m.ctx, id, offers.SendResult{Outcome: offers.OutcomeAccepted}))
	}
	for {
		x, err := m.Store.Reserve(m.ctx)
		m.must(err)
		if x == nil {
			break
		}
		m.must(m.Store.Sent(m.ctx, x.ID, offers.SendResult{Outcome: offers.OutcomeAccepted}))
	}
	m.reached["sequence"]++
}

// String lists the offers as they are, for a failure's report.
func (m *machine) String() string {
	var b strings.Builder
	for _, o := range m.was.offers {
		fmt.Fprintf(&b, "%s %s %s\n", o.ID, o.State, m.was.ops[o.OperationID])
	}
	for _, id := range slices.Sorted(maps.Keys(m.was.texts)) {
		for _, x := range m.was.texts[id] {
			fmt.Fprintf(&b, "%d %s %s %s\n", x.Number, x.Kind, x.State, x.OfferID)
		}
	}
	return b.String()
}
