package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// inboxTests hold the way of a message in: stored once for ever, with a run and a context for those who have a tier.
func inboxTests(t *testing.T, open Open) {
	t.Run("TrustedGetsARunAndAContext", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierPaired)
		o := w.propose(w.proposal(p))
		in := inbound(p, "ya send it")
		in.Quoted = "SMq"
		r := w.receive(in)
		if r.AccountID != p.AccountID || r.PersonID != p.ID || r.RunID == "" || r.Tier != gate.TierPaired || !r.Trusted ||
			r.Duplicate || r.Decided || r.Overtaken || r.Text != "ya send it" || r.Quoted != "SMq" || len(r.Earlier) != 0 {
			t.Fatalf("received %+v", r)
		}
		equal(t, "live offers", ids(r.Live), []string{o.ID}) // what is on its way counts
		again, err := w.Store.Context(w.ctx, r.MessageID)
		w.must(err)
		equal(t, "context", again, r)
		w.wantEvents(p) // an event comes with the decision
	})
	t.Run("Invariant12_EarlierAreFourOfTheSamePersonWithinADay", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		w.says(p, "yesterday")
		w.Advance(24 * time.Hour)
		for i := range 3 {
			w.says(p, fmt.Sprint(i))
			w.says(q, "somebody else's")
		}
		equal(t, "earlier", w.says(p, "3").Earlier, []string{"2", "1", "0"})
		equal(t, "earlier", w.says(p, "4").Earlier, []string{"3", "2", "1", "0"})
		equal(t, "earlier", w.says(p, "5").Earlier, []string{"4", "3", "2", "1"})
	})
	t.Run("ThePersonsOwnOffersAlone", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		w.shown(q)
		a, b := w.propose(now(w.proposal(p))), w.propose(now(w.proposal(p)))
		w.propose(w.proposal(p)) // queued
		w.sendAll()
		equal(t, "live offers, oldest first", ids(w.says(p, "yes").Live), []string{a.ID, b.ID})
		w.withdraw(a)
		equal(t, "live offers", ids(w.says(p, "yes").Live), []string{b.ID})
	})
	t.Run("Invariant12_Overtaken", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.says(p, "yes")
		b := w.says(p, "wait no")
		for _, c := range []struct {
			m    offers.Received
			want bool
		}{{a, true}, {b, false}} {
			r, err := w.Store.Context(w.ctx, c.m.MessageID)
			w.must(err)
			if r.Overtaken != c.want {
				t.Fatalf("%q overtaken: %v", r.Text, r.Overtaken)
			}
		}
	})
	t.Run("Invariant13_AStrangerIsStoredAndNothingMore", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		was := w.trace(o)
		stranger := people.Person{Addresses: []people.Binding{{Address: "sms:+12025550198", OurNumber: Ours}}}
		in := inbound(stranger, "yes send it")
		r := w.receive(in)
		w.wantNoContext(r)
		if r.PersonID != "" {
			t.Fatalf("a stranger is %s", r.PersonID)
		}
		if got := w.Raw(r.MessageID); string(got) != "yes send it" {
			t.Fatalf("kept %q", got)
		}
		again := w.receive(in)
		if !again.Duplicate || again.MessageID != r.MessageID {
			t.Fatalf("again: %+v", again)
		}
		equal(t, "a stranger's text left something behind", w.trace(o), was)
		w.wantUndecided(0)
	})
	// Somebody's address at another number of ours is nobody's.
	t.Run("Invariant05_AKnownAddressAtANumberItIsNotBoundTo", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		p.Addresses[0].OurNumber = OursToo
		w.wantNoContext(w.says(p, "yes"))
	})
	t.Run("Invariant13_SuspendedIsPending", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.says(p, "before")
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		was := w.trace(o)
		r := w.says(p, "yes")
		w.wantNoContext(r)
		equal(t, "a suspended person's text left something behind", w.trace(o), was)

		// What was said then decides nothing later, and no reader sees it.
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Active))
		_, err := w.Store.Consume(w.ctx, yes(o, offers.Received{MessageID: r.MessageID, PersonID: p.ID}))
		if got, err := why(err); got == "" || err != nil {
			t.Fatalf("consume: %q, %v; want a refusal", got, err)
		}
		w.wantState(o.ID, offers.Open)
		equal(t, "earlier", w.says(p, "hello").Earlier, []string{"before"})
	})
	t.Run("Invariant17_TheSameProviderIDForEver", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		in := inbound(p, "yes")
		first := w.receive(in)
		other := in
		other.Text, other.Raw = "no", []byte("no")
		r := w.receive(other)
		if !r.Duplicate || r.MessageID != first.MessageID || r.RunID != first.RunID || r.Text != "yes" {
			t.Fatalf("again: %+v", r)
		}
		w.wantUndecided(1, first.MessageID)
		next := w.says(p, "next")
		equal(t, "earlier", next.Earlier, []string{"yes"}) // one message, and numbers have no gap
		elsewhere := in
		elsewhere.Provider = "sim"
		if w.receive(elsewhere).Duplicate {
			t.Fatal("another provider's id was taken for the same")
		}
	})
	// A captured request is played again when the cache of a smaller system would have forgotten it.
	t.Run("TS18_ReplayAfterThreeDays", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		in := inbound(p, "yes")
		w.wins(yes(w.shown(p), w.receive(in)))
		w.Advance(72 * time.Hour)
		b := w.shown(p)
		r := w.Second()
		again, err := r.Receive(w.ctx, in)
		w.must(err)
		if !again.Duplicate || !again.Decided {
			t.Fatalf("again: %+v", again)
		}
		w.refused(everEarly(yes(b, again)), offers.WhyDecided)
		w.wantState(b.ID, offers.Open)
	})
	t.Run("Invariant19_WhatWasStoredIsFound", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a := w.says(p, "one")
		w.Advance(time.Minute)
		b := w.says(p, "two")
		replica := w.Second() // the process that stored them is gone
		for _, c := range []struct {
			age   time.Duration
			limit int
			want  []string
		}{
			{0, 10, []string{a.MessageID, b.MessageID}},
			{0, 1, []string{a.MessageID}},
			{30 * time.Second, 10, []string{a.MessageID}},
			{time.Hour, 10, nil},
		} {
			got, err := replica.Undecided(w.ctx, c.age, c.limit)
			w.must(err)
			if !slices.Equal(got, c.want) {
				t.Fatalf("undecided for %s, at most %d: %v, want %v", c.age, c.limit, got, c.want)
			}
		}
		r, err := replica.Context(w.ctx, b.MessageID)
		w.must(err)
		equal(t, "context", r, b)
		w.must(w.Store.Pass(w.ctx, pass(a)))
		w.wantUndecided(1, b.MessageID)
		o := w.shown(p)
		c := w.says(p, "yes")
		w.wins(yes(o, c))
		w.wantUndecided(1, b.MessageID)
	})
	t.Run("DB08_NULIsKeptAsItCame", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		in := inbound(p, "yes\uFFFDno")
		in.Raw, in.Lossy = []byte("yes\x00no"), true
		r := w.receive(in)
		if r.Text != "yes\uFFFDno" || !r.Lossy || string(w.Raw(r.MessageID)) != "yes\x00no" {
			t.Fatalf("text %q lossy %v raw %q", r.Text, r.Lossy, w.Raw(r.MessageID))
		}
	})
	t.Run("DB09_BytesThatAreNoTextAreKept", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		in := inbound(p, "ok\uFFFD\uFFFD")
		in.Raw, in.Lossy = []byte("ok\xED\xA0\xBD\xED\xB1\x8D"), true
		r := w.receive(in)
		if !r.Lossy || string(w.Raw(r.MessageID)) != string(in.Raw) {
			t.Fatalf("lossy %v raw %q", r.Lossy, w.Raw(r.MessageID))
		}
	})
	t.Run("TextsOfEveryKind", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		for _, text := range []string{"", "👍🏽", "'; DROP TABLE offers; --", "yes\r\nno\ttab", "क्\u200dष \u202e \u200b"} {
			if r := w.says(p, text); r.Text != text {
				t.Errorf("%q came back as %q", text, r.Text)
			}
		}
	})
	t.Run("PassTellsOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		m := w.says(p, "thanks")
		w.must(w.Store.Pass(w.ctx, pass(m)))
		w.wantEvents(p, offers.MessageReceived)
		got, err := why(w.Store.Pass(w.ctx, pass(m)))
		w.must(err)
		if got != offers.WhyDecided {
			t.Fatalf("a second pass: %q", got)
		}
		w.wantEvents(p, offers.MessageReceived)
		another := pass(w.says(p, "thanks"))
		another.PersonID = w.person(gate.TierOwner).ID
		if got, _ := why(w.Store.Pass(w.ctx, another)); got != offers.WhyDecided {
			t.Fatalf("another person's message: %q", got)
		}
	})
	t.Run("NoSuchMessage", func(t *testing.T) {
		w := newWorld(t, open)
		_, err := w.Store.Context(w.ctx, offers.NewID())
		w.wantErr(err, offers.ErrNotFound)
	})
	t.Run("AQuestionIsPutAgainTwice", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		for range offers.MaxReasks + 1 {
			w.reask(p, o)
			w.sendAll()
		}
		w.wantTexts(p, "1 show* accepted", "2 reask* accepted", "3 reask* accepted")
		if at := w.offer(o.ID).ExpiresAt; !at.Equal(o.ExpiresAt) {
			t.Fatalf("asking again moved the end from %s to %s", o.ExpiresAt, at)
		}
	})
	t.Run("AQuestionIsNotPutAgainAfterTheEnd", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.withdraw(o)
		w.reask(p, o)
		b := w.shown(p)
		w.Advance(b.TTL)
		w.reask(p, b) // over, though no clock has come by
		w.reask(w.person(gate.TierOwner), b)
		w.wantTexts(p, "1 show* accepted", "2 show* accepted")
	})
	t.Run("TheHourlyLimitOfQuestions", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		for range offers.HourlyTexts - 1 {
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
		}
		o := w.shown(p)
		was := len(w.texts(p.ID))
		w.reask(p, o)
		if n := len(w.texts(p.ID)) - was; n != 1 {
			t.Fatalf("%d questions under the limit, want 1", n)
		}
		w.reask(p, o)
		if n := len(w.texts(p.ID)) - was; n != 1 {
			t.Fatalf("%d questions over the limit, want none", n-1)
		}
		w.sendAll()
		w.withdraw(o)
		w.Advance(time.Hour)
		b := w.shown(p)
		w.reask(p, b)
		if n := len(w.texts(p.ID)) - was; n != 3 {
			t.Fatalf("an hour later %d texts more, want a show and a question", n-1)
		}
	})
}

func ids(list []offers.Offer) (out []string) {
	for _, o := range list {
		out = append(out, o.ID)
	}
	return out
}

// wantNoContext demands that a message is pending: no run, and nothing that a reader or an agent could see.
func (w *world) wantNoContext(r offers.Received) {
	w.t.Helper()
	if r.Trusted || r.RunID != "" || r.Tier != "" || r.Text != "" || r.Quoted != "" || len(r.Earlier) != 0 || len(r.Live) != 0 {
		w.t.Fatalf("pending, and yet: %+v", r)
	}
	again, err := w.Store.Context(w.ctx, r.MessageID)
	w.must(err)
	r.Prompted = false // of a code the message itself knows nothing
	equal(w.t, "context", again, r)
}

func (w *world) wantUndecided(n int, want ...string) {
	w.t.Helper()
	got, err := w.Store.Undecided(w.ctx, 0, 100)
	w.must(err)
	if len(got) != n || len(want) > 0 && !slices.Equal(got, want) {
		w.t.Fatalf("undecided: %v, want %d: %v", got, n, want)
	}
}
