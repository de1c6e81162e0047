package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// together runs n calls that start at the same moment.
func together[T any](n int, call func(i int) T) []T {
	out := make([]T, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return out
}

// aside runs call and returns when it waits for a lock, as the n-th that does; where the store cannot tell, at once.
func (w *world) aside(n int, call func() error) (done <-chan error) {
	w.t.Helper()
	c := make(chan error, 1)
	go func() { c <- call() }()
	for w.Waiting != nil && w.Waiting() < n {
		if len(c) > 0 {
			w.t.Fatalf("the call went by the lock: %v", <-c)
		}
		w.pause()
	}
	return c
}

// rival is what races with a yes.
type rival struct {
	name string
	do   func(ctx context.Context, s Store, p people.Person, o offers.Offer, pr offers.Proposal) error
	why  offers.Why // of the yes, where the rival came first
	late error      // of the rival, where the yes came first
}

var rivals = []rival{
	{"Withdraw", func(ctx context.Context, s Store, _ people.Person, o offers.Offer, _ offers.Proposal) error {
		_, err := s.Withdraw(ctx, o.AccountID, o.ID, offers.Closer{By: offers.ByAgent})
		return err
	}, offers.WhyClosed, offers.ErrOfferClosed},
	{"Supersede", func(ctx context.Context, s Store, _ people.Person, o offers.Offer, pr offers.Proposal) error {
		pr.Supersedes = o.ID
		_, _, err := s.Propose(ctx, pr, decider(pr))
		return err
	}, offers.WhyClosed, offers.ErrOfferClosed},
	{"SecondOfferShownNow", func(ctx context.Context, s Store, _ people.Person, _ offers.Offer, pr offers.Proposal) error {
		pr.Present = offers.PresentNow
		_, _, err := s.Propose(ctx, pr, decider(pr))
		return err
	}, offers.WhySeveral, nil},
	{"NewerMessage", func(ctx context.Context, s Store, p people.Person, _ offers.Offer, _ offers.Proposal) error {
		_, err := s.Receive(ctx, inbound(p, "wait no"))
		return err
	}, offers.WhyNewer, nil},
	{"Suspension", func(ctx context.Context, s Store, p people.Person, _ offers.Offer, _ offers.Proposal) error {
		return s.SetState(ctx, p.AccountID, p.ID, people.Suspended)
	}, offers.WhySuspended, nil},
	{"TierChange", func(ctx context.Context, s Store, p people.Person, _ offers.Offer, _ offers.Proposal) error {
		return s.SetTier(ctx, p.AccountID, p.ID, gate.TierPaired)
	}, offers.WhyTier, nil},
	{"AnotherText", func(ctx context.Context, s Store, p people.Person, _ offers.Offer, _ offers.Proposal) error {
		return s.Say(ctx, p.AccountID, p.ID, offers.TextNotice, "By the way")
	}, offers.WhyUnconfirmed, nil},
}

// rounds is how often each race is run.
const rounds = 40

func raceTests(t *testing.T, open Open) {
	t.Run("Invariant04_FiftyProcessorsOfOneMessage", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range 10 {
			p, o, m := w.plain()
			wins := 0
			for _, r := range together(50, func(i int) result[offers.Win] {
				win, err := stores[i%2].Consume(w.ctx, yes(o, m))
				return result[offers.Win]{win, err}
			}) {
				w.must(r.err)
				if r.value.Operation.ID != o.OperationID || r.value.Operation.State != offers.OpApproved {
					t.Fatalf("win %+v", r.value)
				}
				if !r.value.Repeat {
					wins++
				}
			}
			if wins != 1 {
				t.Fatalf("%d wins of 50, want 1 and 49 that find it", wins)
			}
			w.wantReleasedOnce(p)
		}
	})
	t.Run("Invariant04_FiftyMessages", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range 10 {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			whys := map[offers.Why]int{}
			for _, r := range together(50, func(i int) error {
				m, err := stores[i%2].Receive(w.ctx, inbound(p, "yes"))
				if err != nil {
					return err
				}
				_, err = stores[i%2].Consume(w.ctx, yes(o, m))
				return err
			}) {
				got, err := why(r)
				w.must(err)
				whys[got]++
			}
			if whys[""] != 1 || whys[offers.WhyConsumed]+whys[offers.WhyNewer] != 49 {
				t.Fatalf("50 messages: %v; want 1 win and 49 refusals that say consumed or newer", whys)
			}
			w.wantReleasedOnce(p)
		}
	})
	t.Run("TD01_TwoReplicasOneMessage", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range rounds {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			in := inbound(p, "yes")
			got := together(4, func(i int) result[offers.Received] {
				s := stores[i%2]
				r, err := s.Receive(w.ctx, in)
				if err == nil {
					_, err = s.Consume(w.ctx, yes(o, r))
				}
				return result[offers.Received]{r, err}
			})
			firsts := 0
			for _, r := range got {
				w.must(r.err)
				if !r.value.Duplicate {
					firsts++
				}
				if r.value.MessageID != got[0].value.MessageID || r.value.RunID != got[0].value.RunID {
					t.Fatalf("one message became %s and %s", r.value.MessageID, got[0].value.MessageID)
				}
			}
			if firsts != 1 {
				t.Fatalf("%d of 4 stored it, want 1", firsts)
			}
			w.wantReleasedOnce(p)
			if e := w.says(p, "hello").Earlier; len(e) != 1 {
				t.Fatalf("one message is kept as %q", e)
			}
		}
	})
	for _, r := range rivals {
		t.Run("YesAgainst"+r.name, func(t *testing.T) { raceAgainst(t, open, r) })
	}
	t.Run("Invariant06_ExpiryWhileTheYesWaits", func(t *testing.T) {
		w := newWorld(t, open)
		for range rounds / 4 {
			p, o, m := w.plain()
			was := w.trace(o)
			release := w.HoldLock(p.ID)
			done := w.aside(1, func() error { return consume(w.ctx, w.Store, o, m) })
			w.Advance(o.TTL)
			release()
			if got, err := why(<-done); got != offers.WhyExpired || err != nil {
				t.Fatalf("expiry passed while the yes waited: %q, %v", got, err)
			}
			equal(t, "a refusal left something behind", w.trace(o), was)
		}
	})
	t.Run("AYesAndANoOfOneMessage", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range rounds {
			p, o, m := w.plain()
			got := together(2, func(i int) error {
				if i == 0 {
					return consume(w.ctx, stores[0], o, m)
				}
				_, err := stores[1].CloseByReply(w.ctx, no(o, m, offers.Declined))
				return err
			})
			yes, err1 := why(got[0])
			no, err2 := why(got[1])
			w.must(errors.Join(err1, err2))
			switch {
			case yes == "" && no == offers.WhyDecided:
				w.wantReleasedOnce(p)
			case yes == offers.WhyClosed && no == "":
				w.wantState(o.ID, offers.Declined)
				w.wantLedger(p, ledger.Asked, ledger.Closed)
			default:
				t.Fatalf("yes %q, no %q", yes, no)
			}
		}
	})
	// A yes for A is in flight while B comes up beside it. The ledger says which came first.
	t.Run("ShowAgainstYes", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		const repetitions = 400
		won, refused, wrong := 0, 0, 0
		for range repetitions {
			p, a, m := w.plain()
			pr := now(w.proposal(p))
			got := together(2, func(i int) error {
				if i == 0 {
					return consume(w.ctx, stores[0], a, m)
				}
				_, _, err := stores[1].Propose(w.ctx, pr, decider(pr))
				return err
			})
			w.must(got[1])
			reason, err := why(got[0])
			w.must(err)
			rows, state := w.ledger(p.ID), w.offer(a.ID).State
			switch {
			case reason == "" && state == offers.Consumed && slices.Equal(rows, []ledger.Kind{ledger.Asked, ledger.Consumed, ledger.Asked}):
				won++
			case reason == offers.WhySeveral && state == offers.Open && slices.Equal(rows, []ledger.Kind{ledger.Asked, ledger.Asked}):
				refused++
			default:
				wrong++
			}
		}
		t.Logf("show against yes: %d repetitions, %d the yes first, %d the show first, %d wrong", repetitions, won, refused, wrong)
		if wrong != 0 {
			t.Fatalf("%d of %d wrong", wrong, repetitions)
		}
	})
	t.Run("BeginFiftyTimes", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range 5 {
			p, o := w.approved()
			b := w.begin(o)
			begun := 0
			for _, r := range together(50, func(i int) result[offers.Operation] {
				req := b
				req.By = fmt.Sprint("exec-", i)
				op, err := stores[i%2].Begin(w.ctx, req)
				return result[offers.Operation]{op, err}
			}) {
				switch {
				case r.err == nil:
					begun++
					if string(r.value.Args) != string(o.Args) {
						t.Fatalf("begun with %s", r.value.Args)
					}
				case !errors.Is(r.err, offers.ErrAlreadyBegun):
					t.Fatal(r.err)
				}
			}
			if begun != 1 {
				t.Fatalf("%d of 50 began, want 1", begun)
			}
			w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Begun)
		}
	})
	t.Run("BeginAgainstLapse", func(t *testing.T) {
		w := newWorld(t, open)
		second := w.Second()
		for range rounds {
			p, o := w.approved()
			b := w.begin(o)
			done := make(chan error, 1)
			go func() {
				_, err := second.Begin(w.ctx, b)
				done <- err
			}()
			w.Advance(offers.BeginWithin)
			lapsed, err := w.Store.LapseDue(w.ctx)
			w.must(err)
			switch err := <-done; {
			case err == nil && lapsed == 0:
				w.wantOp(o.OperationID, offers.OpRunning)
				w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Begun)
			case errors.Is(err, offers.ErrNotApproved) && lapsed == 1:
				w.wantOp(o.OperationID, offers.OpState(offers.Lapsed))
				w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Closed)
			default:
				t.Fatalf("begin %v, %d lapsed", err, lapsed)
			}
		}
	})
	t.Run("JN02_TwoReplicasOneChain", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		stores := []Store{w.Store, w.Second()}
		const each = 200
		prs := make([]offers.Proposal, 2*each)
		for i := range prs {
			prs[i] = w.proposal(p)
		}
		for _, err := range together(2, func(i int) error {
			for _, pr := range prs[i*each : (i+1)*each] {
				if _, _, err := stores[i].Propose(w.ctx, pr, decider(pr, answer(gate.Refuse, gate.ReasonTierUnknown))); err != nil {
					return err
				}
			}
			return nil
		}) {
			w.must(err)
		}
		if n := len(w.rows(p.ID)); n != 2*each {
			t.Fatalf("%d rows, want %d", n, 2*each)
		}
	})
}

func consume(ctx context.Context, s Store, o offers.Offer, m offers.Received) error {
	_, err := s.Consume(ctx, yes(o, m))
	return err
}

// wantReleasedOnce demands the effects of one release and no more.
func (w *world) wantReleasedOnce(p people.Person) {
	w.t.Helper()
	w.wantLedger(p, ledger.Asked, ledger.Consumed)
	w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationApproved)
}

// raceAgainst lets a yes and its rival go at once, and then each in front of the other in the line for the lock.
func raceAgainst(t *testing.T, open Open, r rival) {
	// check demands that yes and rival fit together. It returns whether the yes won.
	check := func(w *world, p people.Person, o offers.Offer, yesErr, rivalErr error) bool {
		w.t.Helper()
		got, err := why(yesErr)
		w.must(err)
		consumed := 0
		for _, k := range w.ledger(p.ID) {
			if k == ledger.Consumed {
				consumed++
			}
		}
		approved := 0
		for _, e := range w.events(p.ID) {
			if e == offers.OperationApproved {
				approved++
			}
		}
		switch got {
		case "":
			if !errors.Is(rivalErr, r.late) {
				w.t.Fatalf("the yes won, and the rival says %v; want %v", rivalErr, r.late)
			}
			w.wantState(o.ID, offers.Consumed)
			if consumed != 1 || approved != 1 {
				w.t.Fatalf("the yes won with %d ledger rows and %d events", consumed, approved)
			}
			if r.late != nil {
				w.wantOffers(p, 1) // the rival made nothing
			}
			return true
		case r.why:
			w.must(rivalErr)
			if s := w.offer(o.ID).State; s == offers.Consumed || consumed != 0 || approved != 0 || w.operation(o.OperationID).State == offers.OpApproved {
				w.t.Fatalf("the yes was refused, and the offer is %s with %d ledger rows and %d events", s, consumed, approved)
			}
			return false
		}
		w.t.Fatalf("the yes was refused with %q, want %q", got, r.why)
		return false
	}
	w := newWorld(t, open)
	stores := []Store{w.Store, w.Second()}
	w.run("AtOnce", func(w *world) {
		won := 0
		for range rounds {
			p, o, m := w.plain()
			pr := w.proposal(p)
			got := together(2, func(i int) error {
				if i == 0 {
					return consume(w.ctx, stores[0], o, m)
				}
				return r.do(w.ctx, stores[1], p, o, pr)
			})
			if check(w, p, o, got[0], got[1]) {
				won++
			}
		}
		w.t.Logf("the yes came first in %d of %d", won, rounds)
	})
	for _, first := range []string{"YesWaitsFirst", "RivalWaitsFirst"} {
		w.run(first, func(w *world) {
			for range rounds / 8 {
				p, o, m := w.plain()
				pr := w.proposal(p)
				say := func() error { return consume(w.ctx, stores[0], o, m) }
				do := func() error { return r.do(w.ctx, stores[1], p, o, pr) }
				release := w.HoldLock(p.ID)
				var yesErr, rivalErr error
				if first == "YesWaitsFirst" {
					a := w.aside(1, say)
					b := w.aside(2, do)
					release()
					yesErr, rivalErr = <-a, <-b
				} else {
					b := w.aside(1, do)
					a := w.aside(2, say)
					release()
					yesErr, rivalErr = <-a, <-b
				}
				won := check(w, p, o, yesErr, rivalErr)
				if w.Waiting != nil && won != (first == "YesWaitsFirst") {
					w.t.Fatalf("with %s the yes won: %v", first, won)
				}
			}
		})
	}
}
