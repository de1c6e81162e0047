package storetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// lifeTests hold what time and the queue bring.
func lifeTests(t *testing.T, open Open) {
	t.Run("OneAtATime", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		var list []offers.Offer
		for range 3 {
			list = append(list, w.propose(w.proposal(p)))
		}
		w.wantState(w.propose(w.proposal(q)).ID, offers.Sending) // another person's line is another line
		for i, o := range list {
			w.wantState(o.ID, offers.Sending)
			w.sendAll()
			w.wantState(o.ID, offers.Open)
			for _, behind := range list[i+1:] {
				w.wantState(behind.ID, offers.Queued)
			}
			w.withdraw(o)
		}
	})
	t.Run("PresentNow", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a, b, c := w.propose(w.proposal(p)), w.propose(w.proposal(p)), w.propose(now(w.proposal(p)))
		w.sendAll()
		w.wantState(a.ID, offers.Open)
		w.wantState(b.ID, offers.Queued)
		w.wantState(c.ID, offers.Open)
		w.withdraw(a)
		w.wantState(b.ID, offers.Queued) // one is still live
		w.withdraw(c)
		w.wantState(b.ID, offers.Sending)
	})
	t.Run("Advance", func(t *testing.T) {
		w := newWorld(t, open)
		advance := func(p string) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) { return w.Store.Advance(ctx, p) }
		}
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		next, last := w.propose(w.proposal(p)), w.propose(w.proposal(p))
		w.due("advance", advance(p.ID), 0)
		w.due("advance", w.Store.AdvanceAll, 0)
		w.wins(yes(o, w.says(p, "yes")))
		w.wantState(next.ID, offers.Queued) // a yes shows nothing by itself
		w.due("advance", w.Store.AdvanceAll, 1)
		w.due("advance", advance(p.ID), 0)
		w.wantState(next.ID, offers.Sending)
		w.wantState(last.ID, offers.Queued)
	})
	t.Run("Expire", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o, next := w.shown(p), w.propose(w.proposal(p), patient)
		w.due("expire", w.Store.ExpireDue, 0)
		w.Advance(o.TTL)
		w.due("expire", w.Store.ExpireDue, 1)
		w.due("expire", w.Store.ExpireDue, 0)
		w.wantState(o.ID, offers.Expired)
		w.wantOp(o.OperationID, offers.OpState(offers.Expired))
		equal(t, "closer", w.offer(o.ID).ClosedBy, &offers.Closer{By: offers.ByClock})
		w.wantLedger(p, ledger.Asked, ledger.Asked, ledger.Closed)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed)
		w.wantState(next.ID, offers.Sending)
		w.wantTexts(p, "1 show* accepted", "2 show* queued") // no text says so
	})
	t.Run("QueuedForTooLong", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p, func(plan *offers.Plan) { plan.Offer.TTL = 24 * time.Hour })
		next := w.propose(w.proposal(p))
		w.Advance(offers.OutwardWait)
		w.withdraw(o)
		w.wantState(next.ID, offers.Queued) // over, though no clock has come by: it is not shown
		w.due("expire", w.Store.ExpireDue, 1)
		w.wantState(next.ID, offers.Lapsed)
		w.wantOp(next.OperationID, offers.OpState(offers.Lapsed))
	})
	t.Run("UnansweredGivesWay", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p, patient)
		w.Advance(offers.GiveWay)
		w.due("give way", w.Store.GiveWayDue, 0) // nobody waits
		next := w.propose(w.proposal(p), patient)
		w.due("give way", w.Store.GiveWayDue, 1)
		w.wantState(o.ID, offers.Queued)
		w.wantState(next.ID, offers.Sending)
		w.sendAll()
		w.due("give way", w.Store.GiveWayDue, 0) // its own ten minutes have begun
		w.Advance(2 * MinRead)
		w.refused(yes(w.offer(next.ID), w.says(p, "yes")), offers.WhyCrossed) // the other was on the screen a moment ago
		w.Advance(offers.GiveWay)
		w.due("give way", w.Store.GiveWayDue, 1) // and back: whoever has waited longest
		w.wantState(o.ID, offers.Sending)
		w.wantState(next.ID, offers.Queued)
	})
	t.Run("AnOutwardOfferGivesNoWay", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.propose(w.proposal(p))
		w.Advance(offers.GiveWay - 21*MinRead)
		w.due("give way", w.Store.GiveWayDue, 0)
		w.wantState(o.ID, offers.Open)
	})
	t.Run("Settle", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved(settling)
		w.wantOp(o.OperationID, offers.OpSettling)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed)
		w.due("settle", w.Store.SettleDue, 0)
		w.due("notice", w.notice, 0)
		w.Advance(30 * time.Second)
		w.due("settle", w.Store.SettleDue, 1)
		w.due("settle", w.Store.SettleDue, 0)
		w.wantOp(o.OperationID, offers.OpApproved)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationApproved)
		w.Advance(offers.BeginWithin - time.Second) // which counts from the approval
		_, err := w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
	})
	t.Run("SettlesNotBeforeWhatWasSaidIsDecided", func(t *testing.T) {
		w := newWorld(t, open)
		p, before := w.approved(settling)
		o := w.shown(p, settling) // 20 s later
		w.wins(yes(o, w.says(p, "yes")))
		w.Advance(15 * time.Second)
		m := w.says(p, "wait no")
		w.Advance(time.Hour) // however long it takes
		late := w.says(p, "and another thing")
		w.due("settle", w.Store.SettleDue, 1)
		w.wantOp(before.OperationID, offers.OpApproved) // it was too late for that one
		w.wantOp(o.OperationID, offers.OpSettling)
		w.must(w.Store.Pass(w.ctx, pass(m)))
		w.due("settle", w.Store.SettleDue, 1) // what came after the end keeps nothing
		w.wantOp(o.OperationID, offers.OpApproved)
		w.must(w.Store.Pass(w.ctx, pass(late)))
	})
	t.Run("APendingMessageKeepsNothingFromSettling", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved(settling)
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		if r := w.says(p, "wait no"); r.Trusted { // nobody will ever decide it
			t.Fatal("trusted")
		}
		w.Advance(time.Minute)
		w.due("settle", w.Store.SettleDue, 1)
		w.wantOp(o.OperationID, offers.OpApproved)
	})
	t.Run("OnePersonsFaultIsNobodyElses", func(t *testing.T) {
		w := newWorld(t, open)
		broken, whole := w.shown(w.person(gate.TierOwner)), w.shown(w.person(gate.TierOwner))
		w.Set("offers", broken.ID, "closed_by", `"no object"`)
		w.Advance(broken.TTL)
		n, err := w.Store.ExpireDue(w.ctx)
		if n != 1 || err == nil || !strings.Contains(err.Error(), broken.PersonID) {
			t.Fatalf("%d ended, %v", n, err)
		}
		w.wantState(whole.ID, offers.Expired)
		w.Set("offers", broken.ID, "closed_by", nil)
		w.due("expire", w.Store.ExpireDue, 1)
	})
	t.Run("Lapse", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved()
		_, begun := w.approved()
		_, err := w.Store.Begin(w.ctx, w.begin(begun))
		w.must(err)
		w.due("lapse", w.Store.LapseDue, 0)
		w.Advance(offers.BeginWithin)
		w.due("lapse", w.Store.LapseDue, 1)
		w.due("lapse", w.Store.LapseDue, 0)
		w.wantState(o.ID, offers.Lapsed)
		w.wantOp(o.OperationID, offers.OpState(offers.Lapsed))
		w.wantOp(begun.OperationID, offers.OpRunning)
		w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Closed)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationApproved, offers.OperationClosed)
		_, err = w.Store.Begin(w.ctx, w.begin(o))
		w.wantErr(err, offers.ErrNotApproved)
	})
	t.Run("NoticeOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p, _ := w.approved()
		q, begun := w.approved()
		_, err := w.Store.Begin(w.ctx, w.begin(begun))
		w.must(err)
		w.due("notice", w.notice, 0)
		w.Advance(offers.NotPickedUp)
		w.due("notice", w.notice, 1)
		w.due("notice", w.notice, 0)
		w.Advance(offers.NotPickedUp)
		w.due("notice", w.notice, 0)
		w.wantTexts(p, "1 show* accepted", "2 notice queued")
		w.wantTexts(q, "1 show* accepted")
	})
	t.Run("ReceiptAfterTheResult", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved()
		next := w.shown(p)
		_, err := w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
		_, err = w.Store.Finish(w.ctx, offers.FinishRequest{
			AccountID: p.AccountID, OperationID: o.OperationID,
			Result: offers.Result{Status: "succeeded", Output: json.RawMessage(`"sent"`)}, Receipt: offers.Receipt(o, "succeeded"),
		})
		w.must(err)
		w.wantTexts(p, "1 show* accepted", "2 show* accepted", "3 receipt* queued") // with the next offer's question
		w.refused(yes(next, w.says(p, "yes")), offers.WhyUnconfirmed)
		w.sendAll()
		w.Advance(20 * MinRead)
		w.wins(yes(next, w.says(p, "yes")))
	})
}

// notice puts the notice in line for approvals that nobody picked up.
func (w *world) notice(ctx context.Context) (int, error) {
	return w.Store.NoticeDue(ctx, offers.PickedUpNotice, offers.HourlyTexts)
}
