package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// approved makes an offer that was consumed.
func (w *world) approved(changes ...change) (people.Person, offers.Offer) {
	w.t.Helper()
	p := w.person(gate.TierOwner)
	o := w.shown(p, changes...)
	w.wins(yes(o, w.says(p, "yes")))
	return p, o
}

// allowed makes an operation that the gate allowed unasked.
func (w *world) allowed() (people.Person, offers.Operation) {
	w.t.Helper()
	p := w.person(gate.TierOwner)
	return p, w.operate(w.proposal(p), answer(gate.Allow, gate.ReasonReplyAllowed))
}

// beginTests hold the second check.
func beginTests(t *testing.T, open Open) {
	t.Run("HandsOutTheShownBytesOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved()
		op, err := w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
		if op.State != offers.OpRunning || op.BegunBy != "exec" || op.BegunAt == nil || string(op.Args) != string(o.Args) {
			t.Fatalf("begun %+v", op)
		}
		if _, got, err := offers.Canonical(op.Args); err != nil || got != sum(t, o) {
			t.Fatal("the bytes handed out do not hash to what was shown")
		}
		w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Begun)
		again, err := w.Second().Begin(w.ctx, w.begin(o))
		w.wantErr(err, offers.ErrAlreadyBegun)
		equal(t, "the operation as it is", again, op)
		w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Begun)
	})
	t.Run("AnAllowedOperationBeginsUnasked", func(t *testing.T) {
		w := newWorld(t, open)
		p, op := w.allowed()
		if op.State != offers.OpAllowed || op.Offer != nil {
			t.Fatalf("operation %+v", op)
		}
		s, err := offers.ParseHex(op.ArgsSHA256)
		w.must(err)
		_, err = w.Store.Begin(w.ctx, offers.BeginRequest{AccountID: p.AccountID, OperationID: op.ID, ArgsSum: s, By: "exec"})
		w.must(err)
		w.wantOp(op.ID, offers.OpRunning)
		w.wantLedger(p, ledger.Allowed, ledger.Begun)
		w.wantEvents(p)
	})

	type refusal struct {
		name, mutant string
		want         error
		make         func(w *world) (people.Person, offers.BeginRequest)
	}
	list := []refusal{
		{"Invariant03_OtherArguments", "begin.args", offers.ErrHashMismatch, func(w *world) (people.Person, offers.BeginRequest) {
			p, o := w.approved()
			b := w.begin(o)
			b.ArgsSum[0] ^= 1
			return p, b
		}},
		{"Invariant01_NobodySaidYes", "begin.state", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p := w.person(gate.TierOwner)
			return p, w.begin(w.shown(p))
		}},
		{"Invariant01_TheGateRefused", "begin.state", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p := w.person(gate.TierOwner)
			pr := w.proposal(p)
			op := w.operate(pr, answer(gate.Refuse, gate.ReasonCapabilityDenied))
			if op.State != offers.OpRefused {
				w.t.Fatalf("operation is %s", op.State)
			}
			return p, offers.BeginRequest{AccountID: p.AccountID, OperationID: op.ID, ArgsSum: pr.ArgsSum, By: "exec"}
		}},
		{"Invariant01_StillSettling", "begin.state", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p, o := w.approved(settling)
			return p, w.begin(o)
		}},
		{"Invariant06_NotPickedUpInTime", "begin.deadline", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p, o := w.approved()
			w.Advance(offers.BeginWithin) // and no clock has come by to say that it lapsed
			return p, w.begin(o)
		}},
		{"Invariant05_Suspended", "begin.active", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p, o := w.approved()
			w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
			return p, w.begin(o)
		}},
		{"Invariant05_TierTakenAway", "begin.tier", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p, o := w.approved()
			w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, gate.TierPaired))
			return p, w.begin(o)
		}},
		{"Invariant18_UnknownTier", "begin.tier", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p, op := w.allowed()
			s, err := offers.ParseHex(op.ArgsSHA256)
			w.must(err)
			w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, ""))
			return p, offers.BeginRequest{AccountID: p.AccountID, OperationID: op.ID, ArgsSum: s, By: "exec"}
		}},
	}
	for _, e := range endings {
		if e.state == offers.Consumed {
			continue
		}
		list = append(list, refusal{"Invariant01_Ended_" + string(e.state), "begin.state", offers.ErrNotApproved, func(w *world) (people.Person, offers.BeginRequest) {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			e.end(w, p, o)
			return p, w.begin(o)
		}})
	}
	w := newWorld(t, open)
	for _, r := range list {
		w.run(r.name, func(w *world) {
			p, b := r.make(w)
			op, rows := w.operation(b.OperationID), w.ledger(p.ID)
			got, err := w.Store.Begin(w.ctx, b)
			w.wantErr(err, r.want)
			equal(w.t, "the operation as it is", got, op)
			equal(w.t, "ledger", w.ledger(p.ID), rows)
			if got.BegunAt != nil || got.BegunBy != "" {
				w.t.Fatalf("begun: %+v", got)
			}
		})
	}
}

// settling makes the yes settle for half a minute.
func settling(p *offers.Plan) { p.Offer.Settle = 30 * time.Second }

func finishTests(t *testing.T, open Open) {
	running := func(w *world) (people.Person, offers.Offer) {
		p, o := w.approved()
		_, err := w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
		return p, o
	}
	result := func(o offers.Offer, status, output string) offers.FinishRequest {
		return offers.FinishRequest{
			AccountID: o.AccountID, OperationID: o.OperationID,
			Result: offers.Result{Status: status, Output: json.RawMessage(output)}, Receipt: offers.Receipt(o, status),
		}
	}
	for _, status := range []string{"succeeded", "failed"} {
		t.Run(status, func(t *testing.T) {
			w := newWorld(t, open)
			p, o := running(w)
			op, err := w.Store.Finish(w.ctx, result(o, status, `{"id":"7"}`))
			w.must(err)
			var r offers.Result
			w.must(json.Unmarshal(op.Result, &r))
			if string(op.State) != status || r.Status != status || r.At.IsZero() {
				t.Fatalf("finished as %s with %s", op.State, op.Result)
			}
			w.wantOp(o.OperationID, offers.OpState(status))
			w.wantState(o.ID, offers.Consumed)
			w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Begun, ledger.Result)
			w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationApproved, offers.OperationClosed)
			w.wantTexts(p, "1 show* accepted", "2 receipt queued")
			if text := w.reserve(); text.Body != offers.Receipt(o, status) || text.Address != o.Address || text.OurNumber != o.OurNumber {
				t.Fatalf("receipt %+v", text)
			}
			_, err = w.Store.Begin(w.ctx, w.begin(o))
			w.wantErr(err, offers.ErrAlreadyBegun)
		})
	}
	t.Run("TheSameResultAgain", func(t *testing.T) {
		w := newWorld(t, open)
		_, o := running(w)
		// In no order that a database would give them, and a number that it might write otherwise.
		f := result(o, "succeeded", `{"b":[1.50,1e2],"id":"7","a":null}`)
		first, err := w.Store.Finish(w.ctx, f)
		w.must(err)
		was := w.trace(o)
		w.Advance(time.Minute)
		again, err := w.Second().Finish(w.ctx, f)
		w.must(err)
		equal(t, "the result again", again, first)
		equal(t, "a repeat left something behind", w.trace(o), was)
	})
	t.Run("AnotherResult", func(t *testing.T) {
		w := newWorld(t, open)
		_, o := running(w)
		first, err := w.Store.Finish(w.ctx, result(o, "succeeded", `{"id":"7"}`))
		w.must(err)
		was := w.trace(o)
		for _, f := range []offers.FinishRequest{result(o, "failed", `{"id":"7"}`), result(o, "succeeded", `{"id":"8"}`), result(o, "succeeded", ``)} {
			got, err := w.Store.Finish(w.ctx, f)
			w.wantErr(err, offers.ErrAlreadyBegun)
			equal(t, "the operation as it is", got, first)
		}
		equal(t, "another result left something behind", w.trace(o), was)
	})
	t.Run("NotBegun", func(t *testing.T) {
		w := newWorld(t, open)
		_, o := w.approved()
		was := w.trace(o)
		_, err := w.Store.Finish(w.ctx, result(o, "succeeded", ``))
		w.wantErr(err, offers.ErrNotBegun)
		equal(t, "a result of nothing left something behind", w.trace(o), was)
	})
	t.Run("AnAllowedOperationNeedsNoReceipt", func(t *testing.T) {
		w := newWorld(t, open)
		p, op := w.allowed()
		s, err := offers.ParseHex(op.ArgsSHA256)
		w.must(err)
		_, err = w.Store.Begin(w.ctx, offers.BeginRequest{AccountID: p.AccountID, OperationID: op.ID, ArgsSum: s, By: "exec"})
		w.must(err)
		_, err = w.Store.Finish(w.ctx, offers.FinishRequest{
			AccountID: p.AccountID, OperationID: op.ID, Result: offers.Result{Status: "succeeded"}, Receipt: "Done.",
		})
		w.must(err)
		w.wantOp(op.ID, offers.OpSucceeded)
		w.wantTexts(p)
	})
}
