package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// seen is an event that was read, and whose it is.
type seen struct {
	offers.Event
	about about
}

// feed reads the default account's event feed to its end. A store may hold events back while an older transaction runs,
// anywhere in the database; so feed first puts in an event of its own and then reads until that one comes. The events
// of its own are left out. What it read before it does not read again.
func (w *world) feed() []seen {
	w.t.Helper()
	m := w.made
	if m.marker.ID == "" {
		m.marker = w.personAt(people.DefaultAccount, gate.TierPaired, people.Binding{Address: "sim:marker", OurNumber: "sim:us"})
	}
	r := w.says(m.marker, "marker")
	w.must(w.Store.Pass(w.ctx, pass(r)))
	for {
		list, next, err := w.Store.Events(w.ctx, people.DefaultAccount, m.at, 1000)
		w.must(err)
		m.at = next
		end := false
		for _, e := range list {
			a := w.about(e)
			end = end || a.message == r.MessageID
			if a.person != m.marker.ID {
				m.seen = append(m.seen, seen{e, a})
			}
		}
		if end {
			return m.seen
		}
		w.pause()
	}
}

// pause lets something else run before a condition is looked at again.
func (w *world) pause() {
	t := time.NewTimer(time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.ctx.Done():
		w.t.Fatal("the test is over")
	}
}

// events lists the types of a person's events, in order.
func (w *world) events(personID string) []offers.EventType {
	w.t.Helper()
	var out []offers.EventType
	for _, e := range w.feed() {
		if e.about.person == personID {
			out = append(out, e.Type)
		}
	}
	return out
}

type about struct{ person, offer, message string }

// about reads whose an event is.
func (w *world) about(e offers.Event) about {
	w.t.Helper()
	var d struct {
		PersonID  string `json:"person_id"`
		MessageID string `json:"message_id"`
		Offer     *offers.Offer
		Operation *offers.Operation
	}
	w.must(json.Unmarshal(e.Data, &d))
	a := about{person: d.PersonID, message: d.MessageID}
	if d.Operation != nil {
		d.Offer = d.Operation.Offer
	}
	if d.Offer != nil {
		a.person, a.offer = d.Offer.PersonID, d.Offer.ID
	}
	return a
}

func eventTests(t *testing.T, open Open) {
	t.Run("InOrderAndInPages", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		var want []string
		for i := range 7 {
			r := w.says(p, fmt.Sprint(i))
			w.must(w.Store.Pass(w.ctx, pass(r)))
			want = append(want, r.MessageID)
		}
		w.feed() // everything up to here can be read
		var got []string
		at := ""
		for {
			list, next, err := w.Store.Events(w.ctx, p.AccountID, at, 2)
			w.must(err)
			if len(list) == 0 {
				if next != at {
					t.Fatalf("with nothing new the position moved from %q to %q", at, next)
				}
				break
			}
			if len(list) > 2 || next == at {
				t.Fatalf("%d events and the position %q after %q", len(list), next, at)
			}
			for _, e := range list {
				if a := w.about(e); a.person == p.ID {
					got = append(got, a.message)
				}
				if e.ID == "" || e.At.IsZero() || e.At.Location() != time.UTC || e.AccountID != p.AccountID {
					t.Fatalf("event %+v", e)
				}
			}
			at = next
		}
		equal(t, "messages in the feed", got, want)
		again, next, err := w.Store.Events(w.ctx, p.AccountID, at, 2)
		w.must(err)
		if len(again) != 0 || next != at {
			t.Fatalf("the end gave %d events and the position %q, want none and %q", len(again), next, at)
		}
	})
	t.Run("ThePositionHoldsAcrossReplicas", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.must(w.Store.Pass(w.ctx, pass(w.says(p, "one"))))
		w.feed()
		first, at, err := w.Store.Events(w.ctx, p.AccountID, "", 1)
		w.must(err)
		rest, _, err := w.Second().Events(w.ctx, p.AccountID, at, 10)
		w.must(err)
		for _, e := range rest {
			if e.ID == first[0].ID {
				t.Fatal("an event came again after its position")
			}
		}
	})
	t.Run("NothingIsThePositionOfNothing", func(t *testing.T) {
		w := newWorld(t, open)
		list, next, err := w.Store.Events(w.ctx, people.DefaultAccount, "", 10)
		w.must(err)
		if len(list) != 0 || next != "" {
			t.Fatalf("%d events, position %q", len(list), next)
		}
	})
	t.Run("PositionsThatNobodyGaveOut", func(t *testing.T) {
		w := newWorld(t, open)
		for _, at := range []string{"x y", "1", "1.", ".1", "-1.2", "1.-2", "1.2.3", "0;DROP TABLE events"} {
			if _, _, err := w.Store.Events(w.ctx, people.DefaultAccount, at, 10); !errors.Is(err, offers.ErrBadPosition) {
				t.Errorf("position %q: %v", at, err)
			}
		}
	})
	t.Run("ArgumentsKeepTheirBytes", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		pr := w.proposal(p)
		var err error
		pr.Args, pr.ArgsSum, err = offers.Canonical([]byte(`{"z":"<b>&","a":"2","body":"x"}`))
		w.must(err)
		o := w.propose(pr)
		w.sendAll()
		for _, e := range w.feed() {
			var d struct {
				Offer struct{ Args json.RawMessage }
			}
			w.must(json.Unmarshal(e.Data, &d))
			equal(t, "arguments in the event", string(d.Offer.Args), string(o.Args))
		}
		w.wantEvents(p, offers.OfferOpened)
	})
}
