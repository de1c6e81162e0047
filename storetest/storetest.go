// Package storetest holds the one suite that every store must pass.
//
// A store's own test calls [Run] with a way to open a fresh, migrated store whose clock the suite can move. Nothing in
// here knows which database it is talking to.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Store is what the suite tests.
type Store interface {
	offers.Store
	people.Store
	people.Book
	offers.PromptLine
}

// Env is one fresh store with a clock that the suite moves. The suite calls the functions of an Env from one goroutine;
// the stores are used from many.
type Env struct {
	Store Store
	// Advance moves the store's clock; it may go backwards. Now reads it, as the store itself would.
	Advance func(d time.Duration)
	Now     func() time.Time
	// Second opens the same database again, as another replica would.
	Second func() Store
	// BreakLedger makes every write to the ledger fail from now on; RepairLedger puts it back as it was.
	BreakLedger  func()
	RepairLedger func()
	// HoldLock takes a person's lock (or one that stands for it) in a transaction of its own and returns what lets it go.
	HoldLock func(personID string) (release func())
	// Waiting says how many calls of the store are waiting for a lock now. It may be nil where a store cannot tell; the
	// suite then demands of a race only that its outcome is consistent, not which side came first.
	Waiting func() int

	// AddAccount makes an account.
	AddAccount func(id string)
	// Set changes one column of the row with that id behind the store's back: of table messages, runs, offers, texts,
	// operations. A value is a string, a time, or nil for NULL. It makes one condition fail alone where calls of a store would
	// always break two, and thereby proves each condition of the yes for itself.
	Set func(table, id, column string, value any)
	// Raw reads the bytes that messages.raw holds for a message.
	Raw func(messageID string) []byte
}

// Open makes a fresh store for one test.
type Open func(t *testing.T) Env

// Numbers for tests.
const (
	Ours      = people.Address("sms:+12025550100")
	OursToo   = people.Address("sms:+12025550199")
	MinRead   = time.Second
	other     = "other" // an account beside the default one
	longAgo   = 24 * time.Hour
	callOffer = "POST /v1/offers"
)

var serial atomic.Int64

// world is one test's store with what most tests need.
type world struct {
	Env
	t    *testing.T
	ctx  context.Context
	made *made
}

// made is shared by the worlds of a test's subtests.
type made struct {
	people int
	marker people.Person
	at     string // how far the event feed was read
	seen   []seen
}

func newWorld(t *testing.T, open Open) *world {
	t.Helper()
	return &world{Env: open(t), t: t, ctx: t.Context(), made: new(made)}
}

// run runs a subtest on the same store, with people of its own.
func (w *world) run(name string, f func(w *world)) {
	w.t.Run(name, func(t *testing.T) {
		f(&world{Env: w.Env, t: t, ctx: t.Context(), made: w.made})
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// wantErr demands an error of this kind.
func (w *world) wantErr(err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Fatalf("error %v, want %v", err, want)
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// address is one that nobody in this store has.
func (w *world) address() people.Address {
	w.t.Helper()
	w.made.people++
	if w.made.people > 98 {
		return people.Address(fmt.Sprintf("sim:person%d", w.made.people))
	}
	return people.Address(fmt.Sprintf("sms:+12025550%03d", 100+w.made.people))
}

// person makes an active person of a tier with one address of their own.
func (w *world) person(tier string) people.Person {
	w.t.Helper()
	return w.personAt(people.DefaultAccount, tier, people.Binding{Address: w.address(), OurNumber: Ours})
}

func (w *world) personAt(account, tier string, at ...people.Binding) people.Person {
	w.t.Helper()
	p := people.Person{ID: offers.NewID(), AccountID: account, Name: "Alex", Tier: tier, State: people.Active, Addresses: at}
	w.must(w.Store.AddPerson(w.ctx, p))
	return p
}

// Ask is a plan that asks with a fixed text; tests of the gate itself live with the gate.
func Ask(f offers.Facts, p offers.Proposal) (offers.Plan, error) {
	d := &offers.Draft{Label: "send email to Dana", ShownText: "Send email\nTo: dana@example.test\nReply YES or NO", AskLine: "Reply YES or NO", TTL: 10 * time.Minute}
	sum, err := offers.Binding{AccountID: p.AccountID, OperationID: f.OperationID, PersonID: f.Person.ID, Tool: p.Tool, ArgsSHA256: offers.Hex(p.ArgsSum)}.Sum()
	d.BindingSum = sum
	return offers.Plan{
		Decision: gate.Decision{Answer: gate.Ask, Reason: gate.ReasonFloorSendOutside, Rule: "3", Tier: f.Run.Tier, Capability: gate.CapNetworkSend},
		Offer:    d,
	}, err
}

// answer makes a plan without an offer.
func answer(a gate.Answer, r gate.Reason) change {
	return func(p *offers.Plan) { p.Offer, p.Decision.Answer, p.Decision.Reason = nil, a, r }
}

// proposal makes a short-way proposal with arguments of its own.
func (w *world) proposal(p people.Person) offers.Proposal {
	w.t.Helper()
	n := serial.Add(1)
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"to":["dana@example.test"],"subject":"n%d","body":"hello"}`, n))
	w.must(err)
	return offers.Proposal{
		AccountID: p.AccountID, Call: callOffer, Key: fmt.Sprint("key-", n), BodySum: sum,
		PersonID: p.ID, Kind: string(gate.KindToolCall), Tool: "email.send", Args: args, ArgsSum: sum, Present: offers.PresentQueue,
	}
}

type change = func(*offers.Plan)

// decider is Ask with changes.
func decider(pr offers.Proposal, changes ...change) func(offers.Facts) (offers.Plan, error) {
	return func(f offers.Facts) (offers.Plan, error) {
		plan, err := Ask(f, pr)
		for _, c := range changes {
			c(&plan)
		}
		return plan, err
	}
}

// operate proposes whatever the changes make of the plan.
func (w *world) operate(pr offers.Proposal, changes ...change) offers.Operation {
	w.t.Helper()
	op, again, err := w.Store.Propose(w.ctx, pr, decider(pr, changes...))
	w.must(err)
	if again {
		w.t.Fatal("a new key was taken for a used one")
	}
	return op
}

func (w *world) propose(pr offers.Proposal, changes ...change) offers.Offer {
	w.t.Helper()
	op := w.operate(pr, changes...)
	if op.Offer == nil {
		w.t.Fatalf("no offer: %+v", op)
	}
	return *op.Offer
}

// now makes a proposal that is to be shown at once.
func now(pr offers.Proposal) offers.Proposal { pr.Present = offers.PresentNow; return pr }

// reserve takes the next text in line; there must be one.
func (w *world) reserve() offers.Text {
	w.t.Helper()
	text, err := w.Store.Reserve(w.ctx)
	w.must(err)
	if text == nil {
		w.t.Fatal("no text in line")
	}
	return *text
}

func (w *world) sent(text offers.Text, o offers.Outcome) {
	w.t.Helper()
	res := offers.SendResult{Outcome: o}
	switch o {
	case offers.OutcomeAccepted:
		res.ProviderID = fmt.Sprint("SM", serial.Add(1))
	case offers.OutcomeRejected:
		res.Code = 30007
	}
	w.must(w.Store.Sent(w.ctx, text.ID, res))
}

// sendAll sends every queued text, all accepted, and returns how many.
func (w *world) sendAll() int {
	w.t.Helper()
	for n := 0; ; n++ {
		text, err := w.Store.Reserve(w.ctx)
		w.must(err)
		if text == nil {
			return n
		}
		w.sent(*text, offers.OutcomeAccepted)
	}
}

// shown proposes and shows an offer, and lets the time pass in which no yes counts.
func (w *world) shown(p people.Person, changes ...change) offers.Offer {
	w.t.Helper()
	o := w.propose(w.proposal(p), changes...)
	w.sendAll()
	w.Advance(20 * MinRead)
	return w.offer(o.ID)
}

func (w *world) offer(id string) offers.Offer {
	w.t.Helper()
	o, err := w.Store.Offer(w.ctx, people.DefaultAccount, id)
	w.must(err)
	return o
}

func (w *world) operation(id string) offers.Operation {
	w.t.Helper()
	op, err := w.Store.Operation(w.ctx, people.DefaultAccount, id)
	w.must(err)
	return op
}

// inbound is a text of a person as the provider gives it.
func inbound(p people.Person, text string) offers.Inbound {
	return offers.Inbound{
		Provider: "twilio", ProviderID: fmt.Sprintf("SM%032x", serial.Add(1)), Address: p.Addresses[0].Address, OurNumber: p.Addresses[0].OurNumber,
		Text: text, Raw: []byte(text),
	}
}

// says stores an inbound text.
func (w *world) says(p people.Person, text string) offers.Received {
	w.t.Helper()
	return w.receive(inbound(p, text))
}

func (w *world) receive(in offers.Inbound) offers.Received {
	w.t.Helper()
	r, err := w.Store.Receive(w.ctx, in)
	w.must(err)
	return r
}

// yes makes the request by which a message consumes an offer.
func yes(o offers.Offer, r offers.Received) offers.ConsumeRequest {
	return offers.ConsumeRequest{
		Offer: o, MessageID: r.MessageID, PersonID: r.PersonID, RunID: r.RunID,
		Closer:  offers.Closer{MessageID: r.MessageID, Reading: "confirm", P: 0.99},
		Reading: offers.ReadingRecord{Class: "confirm", P: map[string]float64{"confirm": 0.99, "unclear": 0.01}, Reader: "test"},
		Tiers:   offers.TiersHolding(o.Capability), MinRead: MinRead,
	}
}

// no makes the request by which a message ends an offer without a release.
func no(o offers.Offer, r offers.Received, state offers.State) offers.CloseRequest {
	reading := map[offers.State]string{offers.Declined: "decline", offers.Modified: "modify"}[state]
	return offers.CloseRequest{
		Offer: o, MessageID: r.MessageID, PersonID: r.PersonID, State: state,
		Closer:  offers.Closer{MessageID: r.MessageID, Reading: reading, P: 0.8},
		Reading: offers.ReadingRecord{Class: reading, P: map[string]float64{reading: 0.8, "unclear": 0.2}, Reader: "test"},
	}
}

// pass decides a message without touching an offer.
func pass(r offers.Received) offers.PassRequest {
	return offers.PassRequest{
		MessageID: r.MessageID, PersonID: r.PersonID, Type: offers.MessageReceived,
		Data:    offers.ReplyData{RunID: r.RunID, MessageID: r.MessageID, PersonID: r.PersonID, Text: r.Text, Reading: "unrelated", P: 0.9},
		Reading: offers.ReadingRecord{Class: "unrelated", P: map[string]float64{"unrelated": 0.9}, Reader: "test"},
	}
}

// reask decides a message and puts an offer's question in line again.
func (w *world) reask(p people.Person, o offers.Offer) {
	w.t.Helper()
	req := pass(w.says(p, "hm"))
	req.Type, req.Reask, req.ReaskText = offers.ReplyUnresolved, o.ID, offers.Question(o)
	w.must(w.Store.Pass(w.ctx, req))
}

// why takes the reason out of a refusal; "" is a win.
func why(err error) (offers.Why, error) {
	var r *offers.Refusal
	if errors.As(err, &r) {
		return r.Why, nil
	}
	return "", err
}

// wins demands that the yes releases, for the first time.
func (w *world) wins(c offers.ConsumeRequest) offers.Win {
	w.t.Helper()
	win, err := w.Store.Consume(w.ctx, c)
	w.must(err)
	if win.Repeat {
		w.t.Fatal("a first win says that it is a repeat")
	}
	w.wantState(c.Offer.ID, offers.Consumed)
	return win
}

// refused demands that the yes is refused for that reason, and that it left nothing behind: offer, operation, ledger,
// events and texts are as they were, and the message can still be decided.
func (w *world) refused(c offers.ConsumeRequest, want offers.Why) {
	w.t.Helper()
	w.leavesNothing(c.Offer, c.MessageID, want, func() error {
		_, err := w.Store.Consume(w.ctx, c)
		return err
	})
}

func (w *world) notClosed(c offers.CloseRequest, want offers.Why) {
	w.t.Helper()
	w.leavesNothing(c.Offer, c.MessageID, want, func() error {
		_, err := w.Store.CloseByReply(w.ctx, c)
		return err
	})
}

func (w *world) leavesNothing(o offers.Offer, messageID string, want offers.Why, call func() error) {
	w.t.Helper()
	was := w.trace(o)
	decided := w.decided(messageID)
	got, err := why(call())
	w.must(err)
	if got != want {
		w.t.Fatalf("refused with %q, want %q", got, want)
	}
	equal(w.t, "a refusal left something behind", w.trace(o), was)
	if w.decided(messageID) != decided {
		w.t.Fatal("a refusal decided its message")
	}
}

func (w *world) decided(messageID string) bool {
	w.t.Helper()
	r, err := w.Store.Context(w.ctx, messageID)
	w.must(err)
	return r.Decided
}

// trace is everything that a decision could have changed around an offer.
type trace struct {
	Offer     *offers.Offer
	Operation offers.OpState
	Ledger    []ledger.Kind
	Events    []offers.EventType
	Texts     []string
}

func (w *world) trace(o offers.Offer) trace {
	w.t.Helper()
	op := w.operation(o.OperationID)
	return trace{Offer: op.Offer, Operation: op.State, Ledger: w.ledger(o.PersonID), Events: w.events(o.PersonID), Texts: w.texts(o.PersonID)}
}

// ledger lists the kinds of a person's rows, of a chain that verifies.
func (w *world) ledger(personID string) []ledger.Kind {
	w.t.Helper()
	var kinds []ledger.Kind
	for _, r := range w.rows(personID) {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

func (w *world) rows(personID string) []ledger.Row {
	w.t.Helper()
	rows, err := w.Store.Ledger(w.ctx, people.DefaultAccount, personID)
	w.must(err)
	n, _, err := ledger.Verify(func(yield func(ledger.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	})
	w.must(err)
	if int(n) != len(rows) {
		w.t.Fatalf("%d rows verify of %d", n, len(rows))
	}
	return rows
}

// texts lists a person's texts as "number kind state", with a star where a text is about an offer.
func (w *world) texts(personID string) []string {
	w.t.Helper()
	list, err := w.Store.Texts(w.ctx, people.DefaultAccount, personID)
	w.must(err)
	var out []string
	for _, x := range list {
		about := ""
		if x.OfferID != "" {
			about = "*"
		}
		out = append(out, fmt.Sprintf("%d %s%s %s", x.Number, x.Kind, about, x.State))
	}
	return out
}

func (w *world) wantTexts(p people.Person, want ...string) {
	w.t.Helper()
	equal(w.t, "texts", w.texts(p.ID), want)
}

func (w *world) wantState(id string, want offers.State) {
	w.t.Helper()
	if got := w.offer(id).State; got != want {
		w.t.Fatalf("offer is %s, want %s", got, want)
	}
}

func (w *world) wantOp(id string, want offers.OpState) {
	w.t.Helper()
	if got := w.operation(id).State; got != want {
		w.t.Fatalf("operation is %s, want %s", got, want)
	}
}

func (w *world) wantLedger(p people.Person, want ...ledger.Kind) {
	w.t.Helper()
	equal(w.t, "ledger", w.ledger(p.ID), want)
}

func (w *world) wantEvents(p people.Person, want ...offers.EventType) {
	w.t.Helper()
	equal(w.t, "events", w.events(p.ID), want)
}

func sum(t *testing.T, o offers.Offer) offers.Digest {
	t.Helper()
	s, err := offers.ParseHex(o.ArgsSHA256)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begin makes the request that begins an offer's operation.
func (w *world) begin(o offers.Offer) offers.BeginRequest {
	w.t.Helper()
	return offers.BeginRequest{AccountID: o.AccountID, OperationID: o.OperationID, ArgsSum: sum(w.t, o), By: "exec"}
}

// due runs one step of the clock's work and demands how many rows it changed.
func (w *world) due(what string, step func(context.Context) (int, error), want int) {
	w.t.Helper()
	n, err := step(w.ctx)
	w.must(err)
	if n != want {
		w.t.Fatalf("%s changed %d rows, want %d", what, n, want)
	}
}
