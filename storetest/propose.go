package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// proposeTests hold the way in: one transaction, once per key.
func proposeTests(t *testing.T, open Open) {
	t.Run("Asked", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		op := w.operate(pr)
		if op.State != offers.OpAsked || op.Decision != "ask" || op.Reason != string(gate.ReasonFloorSendOutside) || string(op.Args) != string(pr.Args) {
			t.Fatalf("operation %+v", op)
		}
		o := op.Offer
		if o.State != offers.Sending || o.Address != p.Addresses[0].Address || o.OurNumber != Ours || o.ArgsSHA256 != offers.Hex(pr.ArgsSum) ||
			o.Label != "send email to Dana" || o.TTL != 10*time.Minute || o.Capability != string(gate.CapNetworkSend) || o.ShownAt != nil {
			t.Fatalf("offer %+v", o)
		}
		if o.RootRunID != o.RunID || o.RunID != op.RunID {
			t.Fatalf("run %q, root %q", o.RunID, o.RootRunID)
		}
		w.wantLedger(p, ledger.Asked)
		w.wantEvents(p) // offer.opened comes with the screen
		w.wantTexts(p, "1 show* queued")
		if text := w.reserve(); text.Body != o.ShownText || text.OfferID != o.ID || text.Address != o.Address {
			t.Fatalf("text %+v", text)
		}
	})
	t.Run("FactsOfTheShortWay", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierPaired)
		w.personAt(p.AccountID, gate.TierOwner, people.Binding{Address: "sim:boss", OurNumber: Ours})
		pr := w.proposal(p)
		pr.Reaches = []string{"sim:boss", string(p.Addresses[0].Address), "sms:+12025550199"}
		f := w.facts(pr)
		if f.Run.Tier != gate.TierPaired || !f.Run.Tainted || !f.Run.Interactive || !f.Run.Cause.Offer || f.Run.PersonID != p.ID || f.Run.RootID != f.Run.ID {
			t.Fatalf("run %+v", f.Run)
		}
		if !f.Reachable || f.Address != p.Addresses[0].Address || f.OurNumber != Ours || f.Person.Tier != gate.TierPaired || f.AskingIsApproving {
			t.Fatalf("facts %+v", f)
		}
		equal(t, "own addresses", f.OwnAddresses, []string{"sim:boss", string(p.Addresses[0].Address)})
	})
	t.Run("FactsOfAMessagesRun", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		m := w.says(p, "email Dana")
		pr := w.proposal(p)
		pr.RunID, pr.PersonID = m.RunID, ""
		f := w.facts(pr)
		if f.Run.ID != m.RunID || f.Run.Tainted || !f.Run.Interactive || f.Run.Cause.MessageID != m.MessageID || f.Run.Tier != gate.TierOwner {
			t.Fatalf("run %+v", f.Run)
		}
	})
	t.Run("ByAddress", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.personAt(people.DefaultAccount, gate.TierOwner, people.Binding{Address: "sim:a", OurNumber: Ours}, people.Binding{Address: "sim:b", OurNumber: Ours})
		pr := w.proposal(p)
		pr.PersonID, pr.Address = "", "sim:b"
		o := w.propose(pr)
		if o.PersonID != p.ID || o.Address != "sim:b" {
			t.Fatalf("offer of %s at %s", o.PersonID, o.Address)
		}
	})
	t.Run("SuspendedIsUnreachable", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		if f := w.facts(w.proposal(p)); f.Reachable || f.Person.State != people.Suspended {
			t.Fatalf("facts %+v", f)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		op := w.operate(w.proposal(p), answer(gate.Refuse, gate.ReasonTierUnknown))
		if op.State != offers.OpRefused || op.Decision != "refuse" || op.Reason != string(gate.ReasonTierUnknown) || op.Offer != nil {
			t.Fatalf("operation %+v", op)
		}
		w.wantLedger(p, ledger.Refused)
		w.wantTexts(p)
	})

	t.Run("Invariant17_TheSameKeyAgain", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		first := w.operate(pr)
		was := w.trace(*first.Offer)
		for _, s := range []Store{w.Store, w.Second()} {
			op, again, err := s.Propose(w.ctx, pr, func(offers.Facts) (offers.Plan, error) {
				t.Error("asked again")
				return offers.Plan{}, errors.New("asked again")
			})
			w.must(err)
			if !again {
				t.Fatal("a used key was taken for a new one")
			}
			equal(t, "the operation again", op, first)
		}
		equal(t, "a repeat left something behind", w.trace(*first.Offer), was)
		w.wins(yes(w.opened(*first.Offer), w.says(p, "yes")))
		op, again, err := w.Store.Propose(w.ctx, pr, decider(pr)) // the earlier result, as it is by now
		w.must(err)
		if !again || op.ID != first.ID || op.State != offers.OpApproved {
			t.Fatalf("again %v: %s", again, op.State)
		}
	})
	t.Run("Invariant17_TheSameKeyWithOtherContent", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		o := w.propose(pr)
		was := w.trace(o)
		pr.BodySum[0] ^= 1
		_, _, err := w.Store.Propose(w.ctx, pr, decider(pr))
		w.wantErr(err, offers.ErrIdempotencyConflict)
		equal(t, "a conflict left something behind", w.trace(o), was)
		w.wantOffers(p, 1)
	})
	t.Run("Invariant17_KeysArePerCall", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		w.propose(pr)
		pr.Call = "POST /v1/operations"
		w.propose(pr)
		w.wantOffers(p, 2)
	})
	t.Run("Invariant17_AConcurrentDuplicateWaitsForTheFirst", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		second := w.Second()
		deciding, decide := make(chan struct{}), make(chan struct{})
		type answer struct {
			op    offers.Operation
			again bool
			err   error
		}
		first, dup := make(chan answer, 1), make(chan answer, 1)
		go func() {
			op, again, err := w.Store.Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
				close(deciding)
				<-decide
				return Ask(f, pr)
			})
			first <- answer{op, again, err}
		}()
		<-deciding
		go func() {
			op, again, err := second.Propose(w.ctx, pr, decider(pr))
			dup <- answer{op, again, err}
		}()
		if w.Waiting != nil {
			for w.Waiting() == 0 {
				w.pause()
			}
		}
		close(decide)
		a, b := <-first, <-dup
		w.must(errors.Join(a.err, b.err))
		if a.again || !b.again || a.op.ID != b.op.ID {
			t.Fatalf("first again=%v, duplicate again=%v, operations %s and %s", a.again, b.again, a.op.ID, b.op.ID)
		}
		w.wantOffers(p, 1)
	})
	t.Run("Invariant17_ManyAtOnceAreOne", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		stores := []Store{w.Store, w.Second()}
		for range 10 {
			pr := w.proposal(p)
			var asked atomic.Int64
			got := together(20, func(i int) result[bool] {
				_, again, err := stores[i%2].Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
					asked.Add(1)
					return Ask(f, pr)
				})
				return result[bool]{again, err}
			})
			firsts := 0
			for _, r := range got {
				w.must(r.err)
				if !r.value {
					firsts++
				}
			}
			if firsts != 1 || asked.Load() != 1 {
				t.Fatalf("%d firsts, decided %d times", firsts, asked.Load())
			}
		}
		w.wantOffers(p, 10)
	})
	t.Run("WhatFailedBeforeADecisionStoresNothing", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		boom := errors.New("boom")
		_, _, err := w.Store.Propose(w.ctx, pr, func(offers.Facts) (offers.Plan, error) { return offers.Plan{}, boom })
		w.wantErr(err, boom)
		w.wantLedger(p)
		w.wantOffers(p, 0)
		w.propose(pr) // the key is still new
	})
	t.Run("Invariant16_LedgerDown", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		asked := w.shown(p)
		m := w.says(p, "yes")
		q, running := w.approved()
		_, err := w.Store.Begin(w.ctx, w.begin(running))
		w.must(err)
		_, approved := w.approved()
		pr := w.proposal(q)
		was := []trace{w.trace(asked), w.trace(approved), w.trace(running)}

		w.BreakLedger()
		for _, c := range []change{nil, answer(gate.Allow, gate.ReasonReplyAllowed), answer(gate.Refuse, gate.ReasonTierUnknown)} {
			changes := []change{c}
			if c == nil {
				changes = nil
			}
			_, _, err = w.Store.Propose(w.ctx, pr, decider(pr, changes...))
			w.wantErr(err, offers.ErrLedgerUnavailable)
		}
		_, err = w.Store.Consume(w.ctx, yes(asked, m))
		if got, err := why(err); got != "" || err == nil {
			t.Errorf("consume: %q, %v; want an error", got, err)
		}
		_, err = w.Store.CloseByReply(w.ctx, no(asked, m, offers.Declined))
		w.wantErr(err, offers.ErrLedgerUnavailable)
		_, err = w.Store.Withdraw(w.ctx, p.AccountID, asked.ID, offers.Closer{By: offers.ByAgent})
		w.wantErr(err, offers.ErrLedgerUnavailable)
		_, err = w.Store.Begin(w.ctx, w.begin(approved))
		w.wantErr(err, offers.ErrLedgerUnavailable)
		_, err = w.Store.Finish(w.ctx, offers.FinishRequest{AccountID: q.AccountID, OperationID: running.OperationID, Result: offers.Result{Status: "succeeded"}})
		w.wantErr(err, offers.ErrLedgerUnavailable)
		w.RepairLedger()

		equal(t, "something was stored without its ledger row", []trace{w.trace(asked), w.trace(approved), w.trace(running)}, was)
		w.wantOffers(q, 1)
		if w.decided(m.MessageID) {
			t.Fatal("the message was decided")
		}
		w.propose(pr) // the key is still new
		w.wins(yes(asked, m))
		_, err = w.Store.Begin(w.ctx, w.begin(approved))
		w.must(err)
	})

	t.Run("NotThere", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		for _, c := range []struct {
			name string
			set  func(*offers.Proposal)
			want error
		}{
			{"person", func(pr *offers.Proposal) { pr.PersonID = offers.NewID() }, offers.ErrNotFound},
			{"person that is no id", func(pr *offers.Proposal) { pr.PersonID = "dana" }, offers.ErrNotFound},
			{"run", func(pr *offers.Proposal) { pr.PersonID, pr.RunID = "", offers.NewID() }, offers.ErrNotFound},
			{"run that is no id", func(pr *offers.Proposal) { pr.PersonID, pr.RunID = "", "run" }, offers.ErrNotFound},
			{"address", func(pr *offers.Proposal) { pr.PersonID, pr.Address = "", "sim:nobody" }, offers.ErrNoAddress},
			{"superseded offer", func(pr *offers.Proposal) { pr.Supersedes = offers.NewID() }, offers.ErrNotFound},
			{"superseded offer that is no id", func(pr *offers.Proposal) { pr.Supersedes = "offer" }, offers.ErrNotFound},
		} {
			w.run(c.name, func(w *world) {
				pr := w.proposal(p)
				c.set(&pr)
				_, _, err := w.Store.Propose(w.ctx, pr, decider(pr))
				w.wantErr(err, c.want)
				w.wantLedger(p)
			})
		}
	})
	t.Run("ARunLastsAnHour", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		pr.RunID, pr.PersonID = w.says(p, "email Dana").RunID, ""
		w.propose(pr)
		w.Advance(offers.RunTTL)
		late := pr
		late.Key = "late"
		_, _, err := w.Store.Propose(w.ctx, late, decider(late))
		w.wantErr(err, offers.ErrRunExpired)
		w.wantOffers(p, 1)
		_, again, err := w.Store.Propose(w.ctx, pr, decider(pr)) // the earlier result, also then
		w.must(err)
		if !again {
			t.Fatal("a used key was taken for a new one")
		}
	})

	t.Run("Supersede", func(t *testing.T) {
		for _, state := range []offers.State{offers.Queued, offers.Sending, offers.Open} {
			t.Run(string(state), func(t *testing.T) {
				w := newWorld(t, open)
				p := w.person(gate.TierOwner)
				if state == offers.Queued {
					w.shown(p)
				}
				old := w.propose(w.proposal(p))
				if state == offers.Open {
					w.sendAll()
				}
				w.wantState(old.ID, state)
				pr := w.proposal(p)
				pr.Supersedes = old.ID
				var seen *offers.Offer
				op, _, err := w.Store.Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
					seen = f.Superseded
					return Ask(f, pr)
				})
				w.must(err)
				if seen == nil || seen.ID != old.ID {
					t.Fatalf("the decision saw %+v as superseded", seen)
				}
				if op.Offer.Supersedes != old.ID {
					t.Fatalf("the new offer supersedes %q", op.Offer.Supersedes)
				}
				got := w.offer(old.ID)
				equal(t, "closer", got.ClosedBy, &offers.Closer{By: offers.ByAgent})
				w.wantState(old.ID, offers.Superseded)
				w.wantOp(old.OperationID, offers.OpState(offers.Superseded))
				if state == offers.Queued {
					w.wantState(op.Offer.ID, offers.Queued)
				} else {
					w.wantState(op.Offer.ID, offers.Sending)
				}
			})
		}
	})
	t.Run("SupersedeAfterTheEnd", func(t *testing.T) {
		w := newWorld(t, open)
		for _, e := range endings {
			w.run(string(e.state), func(w *world) {
				p := w.person(gate.TierOwner)
				o := w.shown(p)
				e.end(w, p, o)
				was := w.trace(o)
				pr := w.proposal(p)
				pr.Supersedes = o.ID
				op, _, err := w.Store.Propose(w.ctx, pr, decider(pr))
				if !w.offer(o.ID).Taken() {
					w.must(err) // it ended without a yes: the new offer stands in its place, and the old end stays what it was
					w.wantState(o.ID, e.state)
					if got := w.offer(op.Offer.ID); got.State.Closed() || got.Supersedes != o.ID {
						w.t.Fatalf("the new offer is %s and stands for %q", got.State, got.Supersedes)
					}
					return
				}
				w.wantErr(err, offers.ErrOfferClosed)
				equal(w.t, "a new offer in place of an old one that was consumed left something behind", w.trace(o), was)
				pr.Supersedes = ""
				w.propose(pr) // the key is still new
			})
		}
	})
	t.Run("SupersedeAnotherPersonsOffer", func(t *testing.T) {
		w := newWorld(t, open)
		o := w.shown(w.person(gate.TierOwner))
		pr := w.proposal(w.person(gate.TierOwner))
		pr.Supersedes = o.ID
		_, _, err := w.Store.Propose(w.ctx, pr, decider(pr))
		w.wantErr(err, offers.ErrNotFound)
		w.wantState(o.ID, offers.Open)
	})
	t.Run("ARefusalSupersedesNothing", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		pr := w.proposal(p)
		pr.Supersedes = o.ID
		w.operate(pr, answer(gate.Refuse, gate.ReasonTierUnknown))
		w.wantState(o.ID, offers.Open)
	})
	t.Run("Lists", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		var ids []string
		for range 3 {
			ids = append([]string{w.propose(w.proposal(p)).ID}, ids...)
		}
		w.propose(w.proposal(q))
		w.sendAll()
		list := func(f offers.Filter) (got []string) {
			all, err := w.Store.Offers(w.ctx, people.DefaultAccount, f)
			w.must(err)
			for _, o := range all {
				got = append(got, o.ID)
			}
			return got
		}
		equal(t, "newest first", list(offers.Filter{PersonID: p.ID}), ids)
		equal(t, "open ones", list(offers.Filter{PersonID: p.ID, State: offers.Open}), ids[2:])
		equal(t, "two", list(offers.Filter{PersonID: p.ID, Limit: 2}), ids[:2])
		equal(t, "of nobody", list(offers.Filter{PersonID: "dana"}), nil)
		if n := len(list(offers.Filter{})); n != 4 {
			t.Fatalf("%d offers in the account, want 4", n)
		}
	})
}

// facts proposes something that is refused and returns what the decision was told.
func (w *world) facts(pr offers.Proposal) (f offers.Facts) {
	w.t.Helper()
	op, _, err := w.Store.Propose(w.ctx, pr, func(got offers.Facts) (offers.Plan, error) {
		f = got
		return decider(pr, answer(gate.Refuse, gate.ReasonTierUnknown))(got)
	})
	w.must(err)
	if f.OperationID != op.ID || f.Now.IsZero() || f.Run.AccountID != pr.AccountID {
		w.t.Fatalf("facts %+v of operation %s", f, op.ID)
	}
	return f
}

// opened sends what is in line and lets the reading time pass.
func (w *world) opened(o offers.Offer) offers.Offer {
	w.t.Helper()
	w.sendAll()
	w.Advance(20 * MinRead)
	w.wantState(o.ID, offers.Open)
	return w.offer(o.ID)
}

func (w *world) wantOffers(p people.Person, want int) {
	w.t.Helper()
	list, err := w.Store.Offers(w.ctx, p.AccountID, offers.Filter{PersonID: p.ID})
	w.must(err)
	if len(list) != want {
		w.t.Fatalf("%d offers, want %d", len(list), want)
	}
}

// result is what a call among many gave.
type result[T any] struct {
	value T
	err   error
}

func (r result[T]) String() string { return fmt.Sprintf("%v %v", r.value, r.err) }
