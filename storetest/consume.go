package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// consumeTests hold the yes: a plain one wins and leaves exactly its rows; with one thing changed it does not, and
// leaves nothing.
func consumeTests(t *testing.T, open Open) {
	t.Run("AYesReleasesOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "yes")
		win := w.wins(yes(o, m))
		closer := &offers.Closer{MessageID: m.MessageID, Reading: "confirm", P: 0.99}
		equal(t, "closer", w.offer(o.ID).ClosedBy, closer)
		equal(t, "the win's offer", win.Offer, w.offer(o.ID))
		if win.Operation.State != offers.OpApproved || win.Queued || string(win.Operation.Args) != string(o.Args) {
			t.Fatalf("win %+v", win)
		}
		w.wantOp(o.OperationID, offers.OpApproved)
		w.wantLedger(p, ledger.Asked, ledger.Consumed)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationApproved)
		w.wantTexts(p, "1 show* accepted")
		if !w.decided(m.MessageID) {
			t.Fatal("the message of the yes is undecided")
		}
		row := w.rows(p.ID)[1]
		if row.OperationID != o.OperationID {
			t.Fatalf("the ledger says that operation %s was consumed", row.OperationID)
		}

		op, err := w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
		if string(op.Args) != string(o.Args) || op.State != offers.OpRunning {
			t.Fatalf("begun %s with %s, want the shown %s", op.State, op.Args, o.Args)
		}
	})
	t.Run("TheWinSaysThatOthersWait", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.propose(w.proposal(p))
		if !w.wins(yes(o, w.says(p, "yes"))).Queued {
			t.Fatal("an offer is queued and the win does not say so")
		}
	})
	// The connection breaks after the commit was sent: the caller repeats what it cannot know.
	t.Run("DB03_TheSameYesFindsItsOwnWin", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "yes")
		first := w.wins(yes(o, m))
		was := w.trace(o)
		for _, s := range []Store{w.Store, w.Second()} {
			win, err := s.Consume(w.ctx, yes(o, m))
			w.must(err)
			if !win.Repeat || win.Operation.ID != first.Operation.ID || win.Operation.State != offers.OpApproved || win.Offer.ID != o.ID {
				t.Fatalf("again: %+v", win)
			}
		}
		equal(t, "a repeat left something behind", w.trace(o), was)
	})
	// A replica that missed every wake-up reads the row.
	t.Run("DB06_TheRowIsTheTruth", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		replica := w.Second()
		w.wins(yes(o, w.says(p, "yes")))
		op, err := replica.Operation(w.ctx, p.AccountID, o.OperationID)
		w.must(err)
		if op.State != offers.OpApproved || op.Offer.State != offers.Consumed {
			t.Fatalf("another replica reads %s and %s", op.State, op.Offer.State)
		}
	})
	t.Run("Invariant04_AnotherYesIsNoSecondRelease", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.wins(yes(o, w.says(p, "yes")))
		w.refused(yes(o, w.says(p, "yes")), offers.WhyConsumed)
	})
	// Should ever a condition be lost, the constraints still stand: the yes then fails as an error, not as a win.
	t.Run("Invariant04_TheConstraintBehindTheCondition", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.wins(yes(o, w.says(p, "yes")))
		w.Set("offers", o.ID, "state", "open")
		w.Set("offers", o.ID, "consumed_by", nil)
		w.fails(yes(o, w.says(p, "yes")))
	})
	t.Run("Invariant11_TheConstraintBehindTheCondition", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		m := w.says(p, "yes")
		w.wins(yes(a, m))
		b := w.shown(p)
		w.Set("messages", m.MessageID, "decided_at", nil)
		w.fails(everEarly(yes(b, m)))
	})
	t.Run("AnOfferThatIsNotThere", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		c := yes(w.shown(p), w.says(p, "yes"))
		c.Offer.ID = offers.NewID()
		_, err := w.Store.Consume(w.ctx, c)
		if got, err := why(err); got != offers.WhyGone || err != nil {
			t.Fatalf("refused with %q, %v", got, err)
		}
		c.PersonID = offers.NewID()
		_, err = w.Store.Consume(w.ctx, c)
		w.wantErr(err, offers.ErrNotFound)
	})
	t.Run("DB10_OneClock", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		m := w.says(p, "yes")
		w.Advance(a.TTL)
		w.refused(yes(a, m), offers.WhyExpired)
		w.Advance(-a.TTL) // nothing but the store's clock said that it was over
		w.wins(yes(a, m))

		// An end is a state, not a time in the past.
		b := w.shown(p)
		m = w.says(p, "yes")
		_, err := w.Store.Withdraw(w.ctx, p.AccountID, b.ID, offers.Closer{By: offers.ByAgent})
		w.must(err)
		w.Advance(-time.Second)
		w.refused(yes(b, m), offers.WhyClosed)
	})
	// A late answer to an old question does not reach the one that is open now.
	t.Run("HA08_ALateYesToAnOldOffer", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		w.Advance(a.TTL)
		w.due("expire", w.Store.ExpireDue, 1)
		b := w.shown(p)
		w.refused(yes(a, w.says(p, "yes")), offers.WhyClosed)
		w.wantState(a.ID, offers.Expired)
		w.wantState(b.ID, offers.Open)
	})
	// The inbox is played again after a restart, and another offer is open by then.
	t.Run("HA09_ReplayOfTheInbox", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		in := inbound(p, "yes")
		w.wins(yes(a, w.receive(in)))
		b := w.shown(p)
		again := w.receive(in)
		if !again.Duplicate || !again.Decided {
			t.Fatalf("again: %+v", again)
		}
		w.refused(everEarly(yes(b, again)), offers.WhyDecided)
	})
	// One text arrives twice under two ids while the next offer comes up.
	t.Run("TD05_TheSecondYesIsNotForTheNextOffer", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		b := w.propose(w.proposal(p))
		w.wins(yes(a, w.says(p, "yes")))
		w.due("advance", func(ctx context.Context) (int, error) { return w.Store.Advance(ctx, p.ID) }, 1)
		w.sendAll()
		w.Advance(2 * MinRead)
		w.refused(yes(w.offer(b.ID), w.says(p, "yes")), offers.WhyCrossed)
	})

	w := newWorld(t, open)
	for _, c := range conditions() {
		w.run(c.name, func(w *world) {
			w.refused(c.make(w), c.why)
			w.sendAll() // nothing is left in line for the tests that follow
		})
	}
	endedTests(w)
	crossedTests(w)
}

// fails demands an error that is no refusal, and nothing left behind.
func (w *world) fails(c offers.ConsumeRequest) {
	w.t.Helper()
	was := w.trace(c.Offer)
	_, err := w.Store.Consume(w.ctx, c)
	if got, err := why(err); got != "" || err == nil {
		w.t.Fatalf("got %q, %v; want an error", got, err)
	}
	equal(w.t, "a failure left something behind", w.trace(c.Offer), was)
}

// everEarly takes the conditions on time out of a request's way.
func everEarly(c offers.ConsumeRequest) offers.ConsumeRequest {
	c.MinRead = -longAgo
	return c
}

// condition is a yes in which exactly one condition does not hold. Each is there for one line of the statement that
// consumes; the line's mark in the source is in mutant.
type condition struct {
	name, mutant string
	why          offers.Why
	make         func(w *world) offers.ConsumeRequest
}

// plain makes a yes that would win.
func (w *world) plain() (people.Person, offers.Offer, offers.Received) {
	w.t.Helper()
	p := w.person(gate.TierOwner)
	o := w.shown(p)
	return p, o, w.says(p, "yes")
}

func conditions() []condition {
	list := []condition{
		{"Invariant05_OfferOfAnotherPerson", "consume.person", offers.WhyPerson, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			w.Set("offers", o.ID, "person_id", w.person(gate.TierOwner).ID)
			return yes(o, m)
		}},
		{"Invariant05_MessageOfAnotherPerson", "consume.message_person", offers.WhyDecided, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			w.Set("messages", m.MessageID, "person_id", w.person(gate.TierOwner).ID)
			return yes(o, m)
		}},
		{"Invariant05_AnotherPersonSaysYes", "", offers.WhyPerson, func(w *world) offers.ConsumeRequest {
			_, o, _ := w.plain()
			return yes(o, w.says(w.person(gate.TierOwner), "yes"))
		}},
		{"Invariant05_AnotherPersonsMessageInTheOwnersName", "", offers.WhyDecided, func(w *world) offers.ConsumeRequest {
			p, o, _ := w.plain()
			c := yes(o, w.says(w.person(gate.TierOwner), "yes"))
			c.PersonID = p.ID
			return c
		}},
		{"Invariant11_TheMessageHasDecidedSomethingElse", "consume.message_undecided", offers.WhyDecided, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			w.must(w.Store.Pass(w.ctx, pass(m)))
			return yes(o, m)
		}},
		{"Invariant05_Suspended", "consume.active", offers.WhySuspended, func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
			return yes(o, m)
		}},
		{"Invariant05_TierTakenAwayAfterTheShow", "consume.tier", offers.WhyTier, func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, gate.TierPaired))
			return yes(o, m)
		}},
		{"Invariant05_TierNeverHeldTheCapability", "consume.tier", offers.WhyTier, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierPaired)
			return yes(w.shown(p), w.says(p, "yes"))
		}},
		{"Invariant18_UnknownTier", "consume.tier", offers.WhyTier, func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, "admin"))
			return yes(o, m)
		}},
		{"Invariant05_AnotherAddressOfThePerson", "consume.address", offers.WhyAddress, func(w *world) offers.ConsumeRequest {
			return w.elsewhere(people.Binding{Address: w.address(), OurNumber: Ours}, people.Binding{Address: w.address(), OurNumber: Ours})
		}},
		{"Invariant05_AnotherNumberOfOurs", "consume.our_number", offers.WhyAddress, func(w *world) offers.ConsumeRequest {
			a := w.address()
			return w.elsewhere(people.Binding{Address: a, OurNumber: Ours}, people.Binding{Address: a, OurNumber: OursToo})
		}},
		{"Invariant07_TheMessagesOwnRunProposed", "consume.root_run", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			m := w.says(p, "email Dana for me, yes")
			pr := w.proposal(p)
			pr.RunID, pr.PersonID = m.RunID, ""
			o := w.propose(pr)
			w.sendAll()
			return everEarly(yes(w.offer(o.ID), m))
		}},
		{"Invariant07_ARunOfTheSameRootProposed", "consume.root_run", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			pr := w.proposal(p)
			pr.RunID, pr.PersonID = w.says(p, "email Dana").RunID, ""
			o := w.propose(pr)
			w.sendAll()
			w.Advance(20 * MinRead)
			m := w.says(p, "yes")
			w.Set("runs", m.RunID, "root_id", pr.RunID)
			return yes(w.offer(o.ID), m)
		}},
		{"Invariant06_Expired", "consume.expiry", offers.WhyExpired, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			w.Advance(o.TTL - 20*MinRead)
			return yes(o, m)
		}},
		{"Invariant03_OtherArguments", "consume.args", offers.WhyHash, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			o.ArgsSHA256 = offers.Hex(offers.Digest{1})
			return yes(o, m)
		}},
		{"Invariant03_OtherBinding", "consume.binding", offers.WhyHash, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			o.BindingSHA256[0] ^= 1
			return yes(o, m)
		}},
		{"Invariant09_NewerMessageWaits", "consume.newest", offers.WhyNewer, func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.says(p, "wait no")
			return yes(o, m)
		}},
		{"Invariant09_LastTextIsAboutAnother", "consume.last_text", offers.WhyLastText, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			b := w.propose(now(w.proposal(p)))
			w.sendAll()
			w.withdraw(b)
			w.Advance(20 * MinRead)
			return yes(o, w.says(p, "yes"))
		}},
		{"Invariant09_LastTextIsAboutNothing", "consume.last_text", offers.WhyLastText, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.propose(w.proposal(p))
			// While the offer is on its way its question is not repeated: what is said then comes after it.
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "By the way, do you still use the old laptop?"))
			w.sendAll()
			w.Advance(20 * MinRead)
			return yes(w.offer(o.ID), w.says(p, "yes"))
		}},
		{"Invariant08_AnotherIsOpen", "consume.only_one", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			w.propose(now(w.proposal(p)))
			w.sendAll()
			w.reask(p, o) // its question is the last text again; only the other offer is in the way
			w.sendAll()
			w.Advance(20 * MinRead)
			return yes(o, w.says(p, "yes"))
		}},
		{"Invariant08_AnotherIsOnItsWay", "consume.only_one", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			b := w.propose(now(w.proposal(p)))
			w.Set("texts", w.textAbout(b), "state", "rejected") // of its text nothing is left, and still it is live
			return yes(o, w.says(p, "yes"))
		}},
		{"Invariant09_TooSoon", "consume.min_read", offers.WhyTooSoon, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			c := yes(o, m)
			c.MinRead = time.Minute
			return c
		}},
		{"Invariant09_TooSoonAfterItWasAskedAgain", "consume.min_read", offers.WhyTooSoon, func(w *world) offers.ConsumeRequest {
			p, o, _ := w.plain()
			w.Advance(time.Minute)
			w.reask(p, o)
			w.sendAll()
			w.Advance(time.Second)
			c := yes(o, w.says(p, "yes"))
			c.MinRead = time.Minute
			return c
		}},
		{"Invariant09_SaidBeforeItWasShown", "consume.min_read", offers.WhyTooSoon, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			m := w.says(p, "yes")
			w.Advance(MinRead)
			o := w.shown(p)
			return yes(o, m)
		}},
		// What an agent asks in a text of its own is no ask of ours, and is answered all the same.
		{"Invariant09_CrossedWithAnAgentsText", "consume.crossed_text", offers.WhyCrossed, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			w.agentSays(p, "Shall I email your sister a happy birthday?")
			return crossing(w.shown(p), w.says(p, "yes"))
		}},
		{"Invariant09_SaidBeforeItWasShownAndTheClockPutBack", "consume.min_read", offers.WhyTooSoon, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			m := w.says(p, "yes")
			w.Advance(-time.Minute)
			o := w.propose(w.proposal(p))
			w.sendAll()
			return yes(w.offer(o.ID), m)
		}},
		{"Invariant09_TextsCrossed", "consume.crossed", offers.WhyCrossed, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			w.withdraw(w.shown(p))
			return crossing(w.shown(p), w.says(p, "yes"))
		}},
	}
	for _, s := range []offers.TextState{offers.TextUnknown, offers.TextQueued, offers.TextSending} {
		list = append(list, condition{"Invariant09_LastTextIs_" + string(s), "consume.last_accepted", offers.WhyUnconfirmed, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextReceipt, "Done: something else."))
			if s != offers.TextQueued {
				text := w.reserve()
				if s == offers.TextUnknown {
					w.sent(text, offers.OutcomeUnknown)
				}
			}
			return yes(o, w.says(p, "yes"))
		}})
	}
	for _, s := range states {
		if s == offers.Open {
			continue
		}
		list = append(list, condition{"Invariant06_StateIs_" + string(s), "consume.open", whyState(s), func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			w.Set("offers", o.ID, "state", string(s))
			return yes(o, m)
		}})
	}
	return list
}

var states = []offers.State{
	offers.Queued, offers.Sending, offers.Open, offers.Consumed, offers.Declined, offers.Modified, offers.Expired, offers.Withdrawn,
	offers.Superseded, offers.Undeliverable, offers.Lapsed,
}

func whyState(s offers.State) offers.Why {
	switch s {
	case offers.Queued, offers.Sending:
		return offers.WhyNotShown
	case offers.Consumed, offers.Lapsed:
		return offers.WhyConsumed
	}
	return offers.WhyClosed
}

// elsewhere makes a yes from the one of a person's two bindings at which the offer was not shown.
func (w *world) elsewhere(a, b people.Binding) offers.ConsumeRequest {
	w.t.Helper()
	p := w.personAt(people.DefaultAccount, gate.TierOwner, a, b)
	o := w.shown(p)
	p.Addresses[0] = a
	if o.Address == a.Address && o.OurNumber == a.OurNumber {
		p.Addresses[0] = b
	}
	return yes(o, w.says(p, "yes"))
}

// textAbout finds the newest text about an offer.
func (w *world) textAbout(o offers.Offer) string {
	w.t.Helper()
	list, err := w.Store.Texts(w.ctx, o.AccountID, o.PersonID)
	w.must(err)
	id := ""
	for _, x := range list {
		if x.OfferID == o.ID {
			id = x.ID
		}
	}
	return id
}

func (w *world) withdraw(o offers.Offer) {
	w.t.Helper()
	_, err := w.Store.Withdraw(w.ctx, o.AccountID, o.ID, offers.Closer{By: offers.ByAgent})
	w.must(err)
}

// endings are the ways in which an offer that is open comes to an end.
var endings = []struct {
	state offers.State
	end   func(w *world, p people.Person, o offers.Offer)
}{
	{offers.Consumed, func(w *world, p people.Person, o offers.Offer) {
		w.wins(everEarly(yes(o, w.says(p, "yes"))))
		_, err := w.Store.Advance(w.ctx, p.ID)
		w.must(err)
	}},
	{offers.Declined, func(w *world, p people.Person, o offers.Offer) { w.close(no(o, w.says(p, "no"), offers.Declined)) }},
	{offers.Modified, func(w *world, p people.Person, o offers.Offer) {
		w.close(no(o, w.says(p, "cc Sam"), offers.Modified))
	}},
	{offers.Withdrawn, func(w *world, _ people.Person, o offers.Offer) { w.withdraw(o) }},
	{offers.Expired, func(w *world, _ people.Person, o offers.Offer) {
		w.Advance(o.TTL)
		_, err := w.Store.ExpireDue(w.ctx)
		w.must(err)
	}},
	{offers.Superseded, func(w *world, p people.Person, o offers.Offer) {
		pr := w.proposal(p)
		pr.Supersedes = o.ID
		w.propose(pr)
	}},
}

// patient makes an offer that waits in the queue for longer than an outward one.
func patient(plan *offers.Plan) { plan.Offer.TTL = 24 * time.Hour }

func (w *world) close(c offers.CloseRequest) offers.Offer {
	w.t.Helper()
	o, err := w.Store.CloseByReply(w.ctx, c)
	w.must(err)
	return o
}

// endedTests: an offer that came to its end in the store's own way is not consumed by what is said after it.
func endedTests(w *world) {
	w.run("Invariant06_NeverAgainAfterItsEnd", func(w *world) {
		for _, e := range endings {
			w.run(string(e.state), func(w *world) {
				p := w.person(gate.TierOwner)
				o := w.shown(p)
				e.end(w, p, o)
				w.wantState(o.ID, e.state)
				w.sendAll()
				w.Advance(20 * MinRead)
				w.refused(yes(w.offer(o.ID), w.says(p, "yes")), whyState(e.state))
			})
		}
		w.run("undeliverable", func(w *world) {
			p := w.person(gate.TierOwner)
			o := w.propose(w.proposal(p))
			w.sent(w.reserve(), offers.OutcomeRejected)
			w.refused(everEarly(yes(o, w.says(p, "yes"))), offers.WhyClosed)
			w.wantState(o.ID, offers.Undeliverable)
		})
		w.run("lapsed", func(w *world) {
			p, o, m := w.plain()
			w.wins(yes(o, m))
			w.Advance(offers.BeginWithin)
			_, err := w.Store.LapseDue(w.ctx)
			w.must(err)
			w.refused(yes(o, w.says(p, "yes")), offers.WhyConsumed)
			w.wantState(o.ID, offers.Lapsed)
		})
	})
	w.run("Invariant06_NotBeforeItIsOnTheScreen", func(w *world) {
		p := w.person(gate.TierOwner)
		a, b := w.propose(w.proposal(p)), w.propose(w.proposal(p))
		w.wantState(a.ID, offers.Sending)
		w.wantState(b.ID, offers.Queued)
		for _, o := range []offers.Offer{a, b} {
			w.refused(everEarly(yes(o, w.says(p, "yes"))), offers.WhyNotShown)
		}
		text := w.reserve() // and not while the provider has it, either
		w.refused(everEarly(yes(a, w.says(p, "yes"))), offers.WhyNotShown)
		w.sent(text, offers.OutcomeUnknown)
		w.refused(everEarly(yes(a, w.says(p, "yes"))), offers.WhyNotShown)
	})
	w.run("Invariant08_OfTwoOpenNeither", func(w *world) {
		p := w.person(gate.TierOwner)
		a, b := w.propose(now(w.proposal(p))), w.propose(now(w.proposal(p)))
		w.sendAll()
		w.Advance(20 * MinRead)
		for _, o := range []offers.Offer{a, b} {
			w.refused(yes(w.offer(o.ID), w.says(p, "yes")), offers.WhySeveral)
		}
	})
	w.run("Invariant09_AfterTheReadingTimeItCounts", func(w *world) {
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.sendAll()
		w.Advance(time.Minute)
		c := yes(w.offer(o.ID), w.says(p, "yes"))
		c.MinRead = time.Minute
		w.wins(c)
	})
}

// crossing asks for a reading time in whose factor the yes falls, but not in itself.
func crossing(o offers.Offer, m offers.Received) offers.ConsumeRequest {
	c := yes(o, m)
	c.MinRead = 10 * time.Second
	return c
}

// crossedTests: where another ask was on the screen just before, a quick bare yes may have been meant for that one.
func crossedTests(w *world) {
	// two makes an offer that is on the screen, and one behind it.
	two := func(w *world) (people.Person, offers.Offer, offers.Offer) {
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		return p, a, w.propose(w.proposal(p), patient)
	}
	w.run("Invariant09_TextsCrossedAfterTheOther", func(w *world) {
		for _, e := range endings {
			w.run(string(e.state), func(w *world) {
				p, a, b := two(w)
				e.end(w, p, a)
				w.sendAll()
				w.Advance(20 * time.Second) // over the reading time of 10 s, and far under its factor
				w.refused(crossing(w.offer(b.ID), w.says(p, "yes")), offers.WhyCrossed)
				w.wantState(b.ID, offers.Open)
			})
		}
	})
	w.run("Invariant09_NotCrossedWithWhatNobodyHasSeen", func(w *world) {
		p := w.person(gate.TierOwner)
		a := w.propose(w.proposal(p))
		w.sent(w.reserve(), offers.OutcomeRejected)
		w.wantState(a.ID, offers.Undeliverable)
		b := w.shown(p)
		w.propose(w.proposal(p)) // queued: not on any screen
		w.wins(crossing(b, w.says(p, "yes")))
	})
	screenTests(w)
}
