package storetest

import (
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// keptAccountTests hold the accounts themselves.
func keptAccountTests(t *testing.T, open Open) {
	w := newWorld(t, open)
	w.must(w.Store.AddAccount(w.ctx, other))
	w.wantErr(w.Store.AddAccount(w.ctx, other), people.ErrIDTaken)
	w.wantErr(w.Store.AddAccount(w.ctx, people.DefaultAccount), people.ErrIDTaken)
	w.must(w.Store.SetAskingIsApproving(w.ctx, other, true))
	w.wantErr(w.Store.SetAskingIsApproving(w.ctx, "nowhere", true), people.ErrNoAccount)
	w.must(w.Store.GiveNumber(w.ctx, other, OursToo))
	w.must(w.Store.GiveNumber(w.ctx, people.DefaultAccount, OursToo)) // it moves
	w.must(w.Store.GiveNumber(w.ctx, other, OursToo))
	w.wantErr(w.Store.GiveNumber(w.ctx, "nowhere", Ours), people.ErrNoAccount)
	list, err := w.Second().Accounts(w.ctx)
	w.must(err)
	byID := map[string]people.Account{}
	for _, a := range list {
		byID[a.ID] = a
	}
	if a := byID[other]; len(list) != 2 || !a.AskingIsApproving || len(a.Numbers) != 1 || a.Numbers[0] != OursToo || a.CreatedAt.IsZero() {
		t.Fatalf("accounts %+v", list)
	}
	if a := byID[people.DefaultAccount]; a.AskingIsApproving || len(a.Numbers) != 0 || a.Numbers == nil {
		t.Fatalf("accounts %+v", list)
	}
	p := w.personAt(other, gate.TierOwner, people.Binding{Address: w.address(), OurNumber: Ours})
	pr := w.proposal(p)
	_, _, err = w.Store.Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
		if !f.AskingIsApproving {
			t.Fatalf("facts %+v", f)
		}
		return Ask(f, pr)
	})
	w.must(err)
}
