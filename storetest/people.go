package storetest

import (
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// peopleTests hold people, addresses and keys.
func peopleTests(t *testing.T, open Open) {
	t.Run("InTheOrderTheyWereMade", func(t *testing.T) {
		w := newWorld(t, open)
		a := w.personAt(people.DefaultAccount, gate.TierOwner, people.Binding{Address: "sim:z", OurNumber: Ours}, people.Binding{Address: "whatsapp:+12025550102", OurNumber: "whatsapp:+12025550100"})
		b := w.personAt(people.DefaultAccount, gate.TierPaired, people.Binding{Address: "sim:a", OurNumber: Ours})
		c := w.personAt(people.DefaultAccount, gate.TierPaired)
		w.must(w.Store.SetState(w.ctx, b.AccountID, b.ID, people.Suspended))
		w.must(w.Store.SetTier(w.ctx, c.AccountID, c.ID, gate.TierOwner))
		b.State, c.Tier = people.Suspended, gate.TierOwner
		got, err := w.Second().People(w.ctx, people.DefaultAccount)
		w.must(err)
		if len(got) != 3 {
			t.Fatalf("%d people", len(got))
		}
		for i, want := range []people.Person{a, b, c} {
			if got[i].CreatedAt.IsZero() {
				t.Fatal("made at no time")
			}
			want.CreatedAt = got[i].CreatedAt
			equal(t, "person", got[i], want)
		}
	})
	t.Run("Invariant05_AnAddressIsOnePersonsAcrossAccounts", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		p := w.person(gate.TierOwner)
		for _, account := range []string{people.DefaultAccount, other} {
			taken := people.Person{
				ID: offers.NewID(), AccountID: account, Name: "Dana", Tier: gate.TierOwner, State: people.Active,
				Addresses: []people.Binding{{Address: "sim:free", OurNumber: Ours}, p.Addresses[0]},
			}
			w.wantErr(w.Store.AddPerson(w.ctx, taken), people.ErrAddressTaken)
		}
		list, err := w.Store.People(w.ctx, people.DefaultAccount)
		w.must(err)
		if len(list) != 1 {
			t.Fatalf("%d people, want the one who was there", len(list))
		}
		w.personAt(other, gate.TierOwner, people.Binding{Address: "sim:free", OurNumber: Ours}) // nothing was kept of those
		w.personAt(other, gate.TierOwner, people.Binding{Address: p.Addresses[0].Address, OurNumber: OursToo})
	})
	t.Run("Bound", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		here, there := w.person(gate.TierPaired), w.personAt(other, gate.TierOwner, people.Binding{Address: w.address(), OurNumber: OursToo})
		w.must(w.Store.SetState(w.ctx, here.AccountID, here.ID, people.Suspended))
		for _, c := range []struct {
			a, ours people.Address
			want    bool
		}{
			{here.Addresses[0].Address, Ours, true}, // suspended or not
			{there.Addresses[0].Address, OursToo, true},
			{here.Addresses[0].Address, OursToo, false},
			{there.Addresses[0].Address, Ours, false},
			{w.address(), Ours, false},
			{"", Ours, false},
		} {
			got, err := w.Store.Bound(w.ctx, c.a, c.ours)
			w.must(err)
			if got != c.want {
				t.Errorf("%s at %s is bound: %v, want %v", c.a, c.ours, got, c.want)
			}
		}
	})
	t.Run("NotThere", func(t *testing.T) {
		w := newWorld(t, open)
		p := people.Person{ID: offers.NewID(), AccountID: "nowhere", Tier: gate.TierOwner, State: people.Active}
		w.wantErr(w.Store.AddPerson(w.ctx, p), people.ErrNoAccount)
		_, hash := people.NewSecret()
		w.wantErr(w.Store.AddKey(w.ctx, people.Key{ID: offers.NewID(), AccountID: "nowhere", Scope: people.ScopeAgent}, hash), people.ErrNoAccount)
		for _, id := range []string{offers.NewID(), "dana"} {
			w.wantErr(w.Store.SetState(w.ctx, people.DefaultAccount, id, people.Suspended), people.ErrNotFound)
			w.wantErr(w.Store.SetTier(w.ctx, people.DefaultAccount, id, gate.TierOwner), people.ErrNotFound)
			w.wantErr(w.Store.RevokeKey(w.ctx, people.DefaultAccount, id), people.ErrNotFound)
		}
	})
	t.Run("Keys", func(t *testing.T) {
		w := newWorld(t, open)
		second := w.Second()
		scopes := []people.Scope{people.ScopeOwner, people.ScopeAgent, people.ScopeExecutor, people.ScopeConnector}
		var made []people.Key
		var hashes [][32]byte
		for _, s := range scopes {
			_, hash := people.NewSecret()
			k := people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "key " + string(s), Scope: s}
			w.must(w.Store.AddKey(w.ctx, k, hash))
			got, err := second.KeyByHash(w.ctx, hash)
			w.must(err)
			if got.CreatedAt.IsZero() || got.RevokedAt != nil {
				t.Fatalf("key %+v", got)
			}
			k.CreatedAt = got.CreatedAt
			equal(t, "key", got, k)
			made, hashes = append(made, k), append(hashes, hash)
		}
		w.must(w.Store.RevokeKey(w.ctx, people.DefaultAccount, made[1].ID))
		_, err := second.KeyByHash(w.ctx, hashes[1]) // at once, everywhere
		w.wantErr(err, people.ErrNotFound)
		w.wantErr(w.Store.RevokeKey(w.ctx, people.DefaultAccount, made[1].ID), people.ErrNotFound)
		_, unknown := people.NewSecret()
		_, err = w.Store.KeyByHash(w.ctx, unknown)
		w.wantErr(err, people.ErrNotFound)
		list, err := w.Store.Keys(w.ctx, people.DefaultAccount)
		w.must(err)
		if len(list) != len(made) {
			t.Fatalf("%d keys", len(list))
		}
		for i, k := range list {
			if (k.RevokedAt != nil) != (i == 1) {
				t.Fatalf("key %d revoked at %v", i, k.RevokedAt)
			}
			k.RevokedAt = nil
			equal(t, "key", k, made[i])
		}
	})
}

// accountTests: nothing of one account is there for another.
func accountTests(t *testing.T, open Open) {
	w := newWorld(t, open)
	w.AddAccount(other)
	p, o := w.approved()
	shown := w.shown(w.person(gate.TierOwner))
	running := w.running()
	message := w.says(p, "hello")
	_, hash := people.NewSecret()
	key := people.Key{ID: offers.NewID(), AccountID: p.AccountID, Name: "k", Scope: people.ScopeAgent}
	w.must(w.Store.AddKey(w.ctx, key, hash))
	q := w.personAt(other, gate.TierOwner, people.Binding{Address: "sim:q", OurNumber: Ours})
	was := []trace{w.trace(o), w.trace(shown), w.trace(running)}

	propose := func(set func(*offers.Proposal)) error {
		pr := w.proposal(q)
		set(&pr)
		_, _, err := w.Store.Propose(w.ctx, pr, decider(pr))
		return err
	}
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"Offer":             {second(w.Store.Offer(w.ctx, other, o.ID)), offers.ErrNotFound},
		"Operation":         {second(w.Store.Operation(w.ctx, other, o.OperationID)), offers.ErrNotFound},
		"Withdraw":          {second(w.Store.Withdraw(w.ctx, other, shown.ID, offers.Closer{By: offers.ByAgent})), offers.ErrNotFound},
		"Begin":             {second(w.Store.Begin(w.ctx, offers.BeginRequest{AccountID: other, OperationID: o.OperationID, ArgsSum: sum(t, o), By: "x"})), offers.ErrNotFound},
		"Finish":            {second(w.Store.Finish(w.ctx, offers.FinishRequest{AccountID: other, OperationID: running.OperationID, Result: offers.Result{Status: "succeeded"}})), offers.ErrNotFound},
		"Say":               {w.Store.Say(w.ctx, other, p.ID, offers.TextNotice, "hi"), offers.ErrNotFound},
		"SetState":          {w.Store.SetState(w.ctx, other, p.ID, people.Suspended), people.ErrNotFound},
		"SetTier":           {w.Store.SetTier(w.ctx, other, p.ID, gate.TierPaired), people.ErrNotFound},
		"RevokeKey":         {w.Store.RevokeKey(w.ctx, other, key.ID), people.ErrNotFound},
		"ProposeToPerson":   {propose(func(pr *offers.Proposal) { pr.PersonID = p.ID }), offers.ErrNotFound},
		"ProposeToAddress":  {propose(func(pr *offers.Proposal) { pr.PersonID, pr.Address = "", p.Addresses[0].Address }), offers.ErrNoAddress},
		"ProposeInRun":      {propose(func(pr *offers.Proposal) { pr.PersonID, pr.RunID = "", message.RunID }), offers.ErrNotFound},
		"ProposeSuperseded": {propose(func(pr *offers.Proposal) { pr.Supersedes = shown.ID }), offers.ErrNotFound},
	} {
		w.run(name, func(w *world) { w.wantErr(c.err, c.want) })
	}
	w.run("NothingChanged", func(w *world) {
		equal(w.t, "another account's call left something behind", []trace{w.trace(o), w.trace(shown), w.trace(running)}, was)
		list, err := w.Store.People(w.ctx, p.AccountID)
		w.must(err)
		for _, x := range list {
			if x.ID == p.ID && (x.State != people.Active || x.Tier != gate.TierOwner) {
				w.t.Fatalf("person %+v", x)
			}
		}
		_, err = w.Store.KeyByHash(w.ctx, hash)
		w.must(err)
	})
	w.run("Lists", func(w *world) {
		all, err := w.Store.Offers(w.ctx, other, offers.Filter{})
		w.must(err)
		named, err := w.Store.Offers(w.ctx, other, offers.Filter{PersonID: p.ID})
		w.must(err)
		texts, err := w.Store.Texts(w.ctx, other, p.ID)
		w.must(err)
		rows, err := w.Store.Ledger(w.ctx, other, p.ID)
		w.must(err)
		keys, err := w.Store.Keys(w.ctx, other)
		w.must(err)
		folk, err := w.Store.People(w.ctx, other)
		w.must(err)
		w.feed() // everything so far can be read
		events, next, err := w.Store.Events(w.ctx, other, "", 100)
		w.must(err)
		if n := len(all) + len(named) + len(texts) + len(rows) + len(keys) + len(events); n != 0 || next != "" {
			w.t.Fatalf("another account sees %d rows, and the position %q", n, next)
		}
		if len(folk) != 1 || folk[0].ID != q.ID {
			w.t.Fatalf("another account has the people %+v", folk)
		}
	})
	w.run("KeysOfProposalsAreTheAccounts", func(w *world) {
		a, b := w.proposal(p), w.proposal(q)
		b.Key, b.Call = a.Key, a.Call
		w.operate(a, answer(gate.Refuse, gate.ReasonTierUnknown))
		w.operate(b, answer(gate.Refuse, gate.ReasonTierUnknown))
	})
	w.run("AMessageIsTheAccountsOfItsPerson", func(w *world) {
		if r := w.says(q, "hello"); r.AccountID != other || r.PersonID != q.ID {
			w.t.Fatalf("received %+v", r)
		}
	})
}

// running makes an offer whose operation has begun.
func (w *world) running() offers.Offer {
	w.t.Helper()
	p, o := w.approved()
	_, err := w.Store.Begin(w.ctx, w.begin(o))
	w.must(err)
	w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Begun)
	return o
}

func second[T any](_ T, err error) error { return err }
