package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// contactTests hold whom words may name, and what an account calls its own.
func contactTests(t *testing.T, open Open) {
	dana := said.Contact{ID: "b", Name: "Dana Bauer", Aliases: []string{"Dani"}, Addresses: []string{"dana@example.test", "sms:+12025550111"}}
	sam := said.Contact{ID: "a", Name: "Sam", Aliases: []string{}, Addresses: []string{}}
	put := func(w *world, account string, merge bool, list ...said.Contact) {
		w.t.Helper()
		n, err := w.Store.PutContacts(w.ctx, account, list, merge)
		w.must(err)
		got, err := w.Second().Contacts(w.ctx, account)
		w.must(err)
		if n != len(got) {
			w.t.Fatalf("%d contacts, of which %d are there", n, len(got))
		}
	}
	want := func(w *world, account string, list ...said.Contact) {
		w.t.Helper()
		got, err := w.Store.Contacts(w.ctx, account)
		w.must(err)
		equal(w.t, "contacts", got, append([]said.Contact{}, list...))
	}
	t.Run("ReplaceAndMerge", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		want(w, people.DefaultAccount)
		put(w, people.DefaultAccount, false, dana, sam)
		want(w, people.DefaultAccount, sam, dana)
		edited := said.Contact{ID: "b", Name: "Dana", Aliases: []string{}, Addresses: []string{"dana@example.net"}}
		put(w, people.DefaultAccount, true, edited)
		want(w, people.DefaultAccount, sam, edited)
		put(w, other, false, dana)
		put(w, people.DefaultAccount, false)
		want(w, people.DefaultAccount)
		want(w, other, dana)
		_, err := w.Store.PutContacts(w.ctx, "nobody", []said.Contact{sam}, false)
		w.wantErr(err, people.ErrNoAccount)
	})
	t.Run("NoMoreThanAnAccountMayHave", func(t *testing.T) {
		w := newWorld(t, open)
		put(w, people.DefaultAccount, false, sam)
		many := make([]said.Contact, offers.MaxContacts)
		for i := range many {
			many[i] = said.Contact{ID: fmt.Sprint("c", i), Name: "N"}
		}
		_, err := w.Store.PutContacts(w.ctx, people.DefaultAccount, many, true)
		w.wantErr(err, offers.ErrTooManyContacts)
		want(w, people.DefaultAccount, sam)
	})
	t.Run("LabelsHaveTheNameThatExactlyOneContactGives", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		p := w.person(gate.TierOwner)
		put(w, other, false, said.Contact{ID: "x", Name: "Mallory", Addresses: []string{"dana@example.test"}})
		put(w, people.DefaultAccount, false, dana, said.Contact{ID: "s1", Name: "Sam Lee", Addresses: []string{"sam@example.test"}},
			said.Contact{ID: "s2", Name: "Sam Ray", Addresses: []string{"sam@example.test"}})
		pr := w.proposal(p)
		pr.Reaches = []string{"dana@example.test", "sam@example.test", "nobody@example.test"}
		equal(t, "names", w.facts(pr).Names, map[string]string{"dana@example.test": "Dana Bauer"})
		f, err := w.Store.FactsOf(w.ctx, people.DefaultAccount, p.ID, pr.Reaches)
		w.must(err)
		equal(t, "names", f.Names, map[string]string{"dana@example.test": "Dana Bauer"})
	})
	t.Run("OwnAddresses", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		add := func(account, address string, want bool) {
			t.Helper()
			added, err := w.Store.AddOwnAddress(w.ctx, account, address)
			w.must(err)
			if added != want {
				t.Fatalf("%s is added: %v", address, added)
			}
		}
		add(people.DefaultAccount, "me@example.test", true)
		add(people.DefaultAccount, "me@example.test", false)
		add(people.DefaultAccount, "also@example.test", true)
		add(other, "them@example.test", true)
		list, err := w.Store.OwnAddresses(w.ctx, people.DefaultAccount)
		w.must(err)
		equal(t, "own", list, []string{"also@example.test", "me@example.test"})
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		pr.Reaches = []string{"me@example.test", "them@example.test", "also@example.test"}
		equal(t, "own", w.facts(pr).OwnAddresses, []string{"also@example.test", "me@example.test"})
		w.must(w.Store.RemoveOwnAddress(w.ctx, people.DefaultAccount, "also@example.test"))
		for _, a := range []string{"also@example.test", "them@example.test"} {
			w.wantErr(w.Store.RemoveOwnAddress(w.ctx, people.DefaultAccount, a), offers.ErrNotFound)
		}
		pr = w.proposal(p)
		pr.Reaches = []string{"me@example.test", "also@example.test"}
		equal(t, "own", w.facts(pr).OwnAddresses, []string{"me@example.test"})
		if _, err := w.Store.AddOwnAddress(w.ctx, "nobody", "me@example.test"); !errors.Is(err, people.ErrNoAccount) {
			t.Fatal(err)
		}
	})
}
