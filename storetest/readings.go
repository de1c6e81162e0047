package storetest

import (
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

func readingTests(t *testing.T, open Open) {
	fallen := func(w *world, since time.Time, limit int) []offers.FallenReply {
		w.t.Helper()
		s, ok := w.Store.(offers.Readings)
		if !ok {
			w.t.Fatal("the store lists no fallen replies")
		}
		list, err := s.Fallen(w.ctx, people.DefaultAccount, since, 0.9, limit)
		w.must(err)
		return list
	}
	texts := func(list []offers.FallenReply) []string {
		out := []string{}
		for _, f := range list {
			out = append(out, f.Text)
		}
		return out
	}
	var ever time.Time
	t.Run("WhatCodeLeftAloneAndHowItEnded", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.unresolve(w.says(p, "no offer yet"))
		o := w.shown(p)
		first := w.says(p, "hm")
		w.unresolve(first)
		m := w.says(p, "yes, the window seat")
		w.unresolve(m)
		list := fallen(w, ever, 10)
		equal(t, "texts", texts(list), []string{"yes, the window seat", "hm"})
		equal(t, "earlier", list[0].Earlier, []string{"hm", "no offer yet"})
		equal(t, "reading", list[0].Reading, offers.ReadingRecord{Class: "unclear", P: map[string]float64{"unclear": 1}, RawP: 0.7, Reader: "test"})
		equal(t, "offers", list[0].Offers, []offers.FallenOffer{{Label: o.Label, State: offers.Open}})
		if list[0].MessageID != m.MessageID || list[0].ReceivedAt.Before(list[1].ReceivedAt) {
			t.Errorf("not newest first: %v", list)
		}
		c := naming(yes(o, m))
		c.Reading, c.Closer = list[0].Reading, offers.Closer{MessageID: m.MessageID, Reading: "unclear", P: 0.7}
		_, err := w.Store.ConsumeCited(w.ctx, c)
		w.must(err)
		list = fallen(w, ever, 10)
		equal(t, "texts", texts(list), []string{"yes, the window seat", "hm"})
		if got := list[0].Offers; len(got) != 1 || got[0].State != w.offer(o.ID).State || !got[0].Cited {
			t.Errorf("the cited reply ended %+v", got)
		}
		if got := list[1].Offers; len(got) != 1 || got[0].Cited {
			t.Errorf("the other reply ended %+v", got)
		}
	})
	t.Run("NotWhatCodeActedOn", func(t *testing.T) {
		w := newWorld(t, open)
		_, o, m := w.plain()
		w.wins(yes(o, m))
		p := w.person(gate.TierOwner)
		a := w.shown(p)
		w.close(no(a, w.says(p, "no"), offers.Declined))
		w.shown(p)
		w.says(p, "undecided")
		equal(t, "texts", texts(fallen(w, ever, 10)), []string{})
		s := w.Store.(offers.Readings)
		unsure, err := s.Fallen(w.ctx, people.DefaultAccount, ever, 0.999, 10)
		w.must(err)
		equal(t, "texts of a yes less sure than that", texts(unsure), []string{m.Text})
	})
	t.Run("SinceAndLimit", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.shown(p)
		for _, text := range []string{"a", "b", "c"} {
			w.unresolve(w.says(p, text))
			w.Advance(time.Second)
		}
		list := fallen(w, ever, 2)
		equal(t, "texts", texts(list), []string{"c", "b"})
		equal(t, "texts since", texts(fallen(w, list[0].ReceivedAt, 10)), []string{"c"})
		s := w.Store.(offers.Readings)
		other, err := s.Fallen(w.ctx, "another account", ever, 0.9, 10)
		w.must(err)
		equal(t, "of another account", len(other), 0)
	})
}
