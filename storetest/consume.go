package storetest

import (
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// consumeTests hold each condition of the yes: a plain yes wins, and with one thing changed it does not.
func consumeTests(t *testing.T, open Open) {
	t.Run("AYesReleasesOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "yes")
		w.wantWhy(yes(o, m), "")
		w.wantState(o.ID, offers.Consumed)
		win, err := w.Store.Consume(w.ctx, yes(o, m))
		w.must(err)
		if !win.Repeat {
			t.Fatal("the same message again must find its own win")
		}
		op, err := w.Store.Begin(w.ctx, offers.BeginRequest{AccountID: p.AccountID, OperationID: o.OperationID, ArgsSum: sum(t, o), By: "exec"})
		w.must(err)
		if string(op.Args) != string(o.Args) || op.State != offers.OpRunning {
			t.Fatalf("begun %s with %s, want the shown %s", op.State, op.Args, o.Args)
		}
	})
	t.Run("Invariant05_OtherPerson", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(q, "yes")
		w.wantWhy(yes(o, m), offers.WhyPerson)
		w.wantState(o.ID, offers.Open)
	})
	t.Run("Invariant05_Suspended", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "yes")
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		w.wantWhy(yes(o, m), offers.WhySuspended)
	})
	t.Run("Invariant06_Expired", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.Advance(o.TTL - 21*MinRead)
		m := w.says(p, "yes")
		w.Advance(2 * time.Second)
		w.wantWhy(yes(o, m), offers.WhyExpired)
	})
}

func sum(t *testing.T, o offers.Offer) offers.Digest {
	t.Helper()
	s, err := offers.ParseHex(o.ArgsSHA256)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
