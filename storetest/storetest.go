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

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Store is what the suite tests.
type Store interface {
	offers.Store
	people.Store
}

// Env is one fresh store with a clock that the suite moves. The suite calls the functions of an Env from one goroutine;
// the stores are used from many.
type Env struct {
	Store Store
	// Advance moves the store's clock; it may go backwards.
	Advance func(d time.Duration)
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
	// operations. A value is a string, or nil for NULL. It makes one condition fail alone where calls of a store would
	// always break two, and thereby proves each condition of the yes for itself.
	Set func(table, id, column string, value any)
	// Raw reads the bytes that messages.raw holds for a message.
	Raw func(messageID string) []byte
}

// Open makes a fresh store for one test.
type Open func(t *testing.T) Env

// Numbers for tests.
const (
	Ours    = people.Address("sms:+12025550100")
	Alex    = people.Address("sms:+12025550102")
	MinRead = time.Second
)

var serial atomic.Int64

// world is one test's store with what most tests need.
type world struct {
	Env
	t   *testing.T
	ctx context.Context
}

func newWorld(t *testing.T, open Open) *world {
	t.Helper()
	return &world{Env: open(t), t: t, ctx: t.Context()}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// person makes an active person of a tier with one address of their own.
func (w *world) person(tier string) people.Person {
	w.t.Helper()
	addr := people.Address(fmt.Sprintf("sms:+1202555%04d", 100+serial.Add(1)%9000))
	p := people.Person{
		ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: tier, State: people.Active,
		Addresses: []people.Binding{{Address: addr, OurNumber: Ours}},
	}
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

// proposal makes a short-way proposal with arguments of its own.
func (w *world) proposal(p people.Person) offers.Proposal {
	w.t.Helper()
	n := serial.Add(1)
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"to":["dana@example.test"],"subject":"n%d","body":"hello"}`, n))
	w.must(err)
	return offers.Proposal{
		AccountID: p.AccountID, Call: "POST /v1/offers", Key: fmt.Sprint("key-", n), BodySum: sum,
		PersonID: p.ID, Kind: string(gate.KindToolCall), Tool: "email.send", Args: args, ArgsSum: sum, Present: offers.PresentQueue,
	}
}

func (w *world) propose(pr offers.Proposal, change ...func(*offers.Plan)) offers.Offer {
	w.t.Helper()
	op, _, err := w.Store.Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
		plan, err := Ask(f, pr)
		for _, c := range change {
			c(&plan)
		}
		return plan, err
	})
	w.must(err)
	if op.Offer == nil {
		w.t.Fatalf("no offer: %+v", op)
	}
	return *op.Offer
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
		w.must(w.Store.Sent(w.ctx, text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: fmt.Sprint("SM", serial.Add(1))}))
	}
}

// shown proposes and shows an offer, and lets the time pass in which no yes counts.
func (w *world) shown(p people.Person) offers.Offer {
	w.t.Helper()
	o := w.propose(w.proposal(p))
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

// says stores an inbound text.
func (w *world) says(p people.Person, text string) offers.Received {
	w.t.Helper()
	r, err := w.Store.Receive(w.ctx, offers.Inbound{
		Provider: "twilio", ProviderID: fmt.Sprintf("SM%032x", serial.Add(1)), Address: p.Addresses[0].Address, OurNumber: p.Addresses[0].OurNumber,
		Text: text, Raw: []byte(text),
	})
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

// consume asks for the release and returns the refusal's reason, or "" for a win.
func (w *world) consume(c offers.ConsumeRequest) offers.Why {
	w.t.Helper()
	_, err := w.Store.Consume(w.ctx, c)
	return why(w.t, err)
}

func why(t *testing.T, err error) offers.Why {
	t.Helper()
	var r *offers.Refusal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &r):
		return r.Why
	}
	t.Fatalf("an error that is no refusal: %v", err)
	return ""
}

func (w *world) wantWhy(c offers.ConsumeRequest, want offers.Why) {
	w.t.Helper()
	if got := w.consume(c); got != want {
		w.t.Fatalf("consume: %q, want %q", got, want)
	}
}

func (w *world) wantState(id string, want offers.State) {
	w.t.Helper()
	if got := w.offer(id).State; got != want {
		w.t.Fatalf("offer is %s, want %s", got, want)
	}
}
