package storetest

import (
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// closeTests hold the ways in which an offer ends without a release.
func closeTests(t *testing.T, open Open) {
	t.Run("Declined", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "no")
		c := no(o, m, offers.Declined)
		c.Receipt = offers.DeclinedReceipt(o)
		got := w.close(c)
		equal(t, "the offer", got, w.offer(o.ID))
		equal(t, "closer", got.ClosedBy, &offers.Closer{MessageID: m.MessageID, Reading: "decline", P: 0.8})
		w.wantState(o.ID, offers.Declined)
		w.wantOp(o.OperationID, offers.OpState(offers.Declined))
		w.wantLedger(p, ledger.Asked, ledger.Closed)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed)
		w.wantTexts(p, "1 show* accepted", "2 receipt queued")
		if !w.decided(m.MessageID) {
			t.Fatal("the message is undecided")
		}
	})
	t.Run("Invariant10_AModifyClosesWhatItModifies", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "ok but cc Dana")
		c := no(o, m, offers.Modified)
		c.Tell = &offers.ReplyData{RunID: m.RunID, MessageID: m.MessageID, PersonID: p.ID, Text: m.Text, Reading: "modify", P: 0.8}
		w.close(c)
		w.wantState(o.ID, offers.Modified)
		w.wantOp(o.OperationID, offers.OpState(offers.Modified))
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed, offers.MessageReceived)
		w.refused(yes(o, w.says(p, "yes")), offers.WhyClosed)
		_, err := w.Store.Begin(w.ctx, w.begin(o))
		w.wantErr(err, offers.ErrNotApproved)
	})
	t.Run("TheSameMessageDecidesOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "no")
		w.close(no(o, m, offers.Declined))
		w.notClosed(no(o, m, offers.Declined), offers.WhyDecided)
		w.refused(yes(o, m), offers.WhyClosed)
	})
	t.Run("ANoNeedsNoTierAndNoReadingTime", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierPaired)
		o := w.propose(w.proposal(p))
		w.sendAll()
		w.close(no(w.offer(o.ID), w.says(p, "no"), offers.Declined))
		w.wantState(o.ID, offers.Declined)
	})
	t.Run("TheNextInTheQueueIsShownAfterTheReceipt", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		next := w.propose(w.proposal(p))
		c := no(o, w.says(p, "no"), offers.Declined)
		c.Receipt = offers.DeclinedReceipt(o)
		w.close(c)
		w.wantState(next.ID, offers.Sending)
		w.wantTexts(p, "1 show* accepted", "2 receipt queued", "3 show* queued")
	})
	refused := []condition{
		{"AnotherPersonSaysNo", "", offers.WhyPerson, func(w *world) offers.ConsumeRequest {
			_, o, _ := w.plain()
			return yes(o, w.says(w.person(gate.TierOwner), "no"))
		}},
		{"AnotherAddressOfThePerson", "", offers.WhyAddress, func(w *world) offers.ConsumeRequest {
			return w.elsewhere(people.Binding{Address: w.address(), OurNumber: Ours}, people.Binding{Address: w.address(), OurNumber: Ours})
		}},
		{"NewerMessageWaits", "", offers.WhyNewer, func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.says(p, "I mean yes")
			return yes(o, m)
		}},
		{"LastTextIsAboutAnother", "", offers.WhyLastText, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			b := w.propose(now(w.proposal(p)))
			w.sendAll()
			w.withdraw(b)
			return yes(o, w.says(p, "no"))
		}},
		{"AnotherIsOpen", "", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			w.propose(now(w.proposal(p)))
			return yes(o, w.says(p, "no"))
		}},
		{"Expired", "", offers.WhyExpired, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			w.Advance(o.TTL)
			return yes(o, m)
		}},
		{"NotShownYet", "", offers.WhyNotShown, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			return yes(w.propose(w.proposal(p)), w.says(p, "no"))
		}},
		{"ConsumedAlready", "", offers.WhyConsumed, func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.wins(yes(o, m))
			return yes(o, w.says(p, "no wait"))
		}},
	}
	w := newWorld(t, open)
	for _, c := range refused {
		w.run("Refused_"+c.name, func(w *world) {
			req := c.make(w)
			w.notClosed(no(req.Offer, offers.Received{MessageID: req.MessageID, PersonID: req.PersonID}, offers.Declined), c.why)
			w.sendAll()
		})
	}

	t.Run("Withdrawn", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o, queued := w.shown(p), w.propose(w.proposal(p))
		got, err := w.Store.Withdraw(w.ctx, p.AccountID, o.ID, offers.Closer{By: offers.ByOwner})
		w.must(err)
		equal(t, "the offer", got, w.offer(o.ID))
		equal(t, "closer", got.ClosedBy, &offers.Closer{By: offers.ByOwner})
		w.wantOp(o.OperationID, offers.OpState(offers.Withdrawn))
		w.wantState(queued.ID, offers.Sending)
		w.wantLedger(p, ledger.Asked, ledger.Asked, ledger.Closed)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed)
		w.wantTexts(p, "1 show* accepted", "2 show* queued") // no text says so
	})
	t.Run("WithdrawnBeforeItLeft", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.withdraw(o)
		w.wantTexts(p, "1 show* rejected")
		if n := w.sendAll(); n != 0 {
			t.Fatalf("%d texts left for an offer that was withdrawn", n)
		}
		w.wantState(o.ID, offers.Withdrawn)
	})
	t.Run("WithdrawAfterTheEnd", func(t *testing.T) {
		w := newWorld(t, open)
		for _, e := range endings {
			w.run(string(e.state), func(w *world) {
				p := w.person(gate.TierOwner)
				o := w.shown(p)
				e.end(w, p, o)
				was := w.trace(o)
				got, err := w.Store.Withdraw(w.ctx, p.AccountID, o.ID, offers.Closer{By: offers.ByAgent})
				w.wantErr(err, offers.ErrOfferClosed)
				equal(w.t, "the offer as it is", &got, was.Offer)
				equal(w.t, "a withdrawal that came late left something behind", w.trace(o), was)
			})
		}
	})
	t.Run("OneWayPerEnd", func(t *testing.T) {
		for _, e := range endings {
			t.Run(string(e.state), func(t *testing.T) {
				w := newWorld(t, open)
				p := w.person(gate.TierOwner)
				o := w.shown(p)
				first, second := w.propose(w.proposal(p), patient), w.propose(w.proposal(p), patient)
				e.end(w, p, o)
				w.wantState(o.ID, e.state)
				w.wantState(first.ID, offers.Sending) // the oldest in the queue comes up, and one alone
				w.wantState(second.ID, offers.Queued)
			})
		}
	})
}
