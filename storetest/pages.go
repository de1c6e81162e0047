package storetest

import (
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

func pageTests(t *testing.T, open Open) {
	withPage := func(token string) change {
		return func(p *offers.Plan) { sum := offers.TokenSum(token); p.Offer.TokenSum = &sum }
	}
	t.Run("WhileTheOfferLives", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		first := w.propose(w.proposal(p)) // without a page
		token := offers.NewToken()
		o := w.propose(w.proposal(p), withPage(token))
		w.wantPage(token, o.ID) // queued
		w.withdraw(first)
		w.wantState(o.ID, offers.Sending)
		w.wantPage(token, o.ID)
		w.sendAll()
		w.wantState(o.ID, offers.Open)
		w.wantPage(token, o.ID)
		got, err := w.Second().OfferByToken(w.ctx, offers.TokenSum(token))
		w.must(err)
		equal(t, "the offer behind the page", got, w.offer(o.ID))

		for _, other := range []string{"", offers.NewToken(), token[1:], token + "A"} {
			w.wantPage(other, "")
		}
		w.wantPageOf(offers.Digest{}, "") // offers without a page are behind none
	})
	t.Run("NoLonger", func(t *testing.T) {
		for _, e := range endings {
			t.Run(string(e.state), func(t *testing.T) {
				w := newWorld(t, open)
				p := w.person(gate.TierOwner)
				token := offers.NewToken()
				o := w.shown(p, withPage(token))
				w.wantPage(token, o.ID)
				e.end(w, p, o)
				w.wantPage(token, "")
			})
		}
	})
	t.Run("ExpiryNeedsNoSweep", func(t *testing.T) {
		w := newWorld(t, open)
		token := offers.NewToken()
		o := w.shown(w.person(gate.TierOwner), withPage(token))
		w.Advance(o.ExpiresAt.Sub(*o.ShownAt) + time.Second)
		w.wantState(o.ID, offers.Open)
		w.wantPage(token, "")
	})
	t.Run("OneTokenOneOffer", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		token := offers.NewToken()
		o := w.propose(w.proposal(p), withPage(token))
		pr := w.proposal(p)
		if _, _, err := w.Store.Propose(w.ctx, pr, decider(pr, withPage(token))); err == nil {
			t.Fatal("two offers are behind one page")
		}
		w.wantPage(token, o.ID)
		w.wantOffers(p, 1)
	})
}

// wantPage demands that the token leads to that offer; "" is to none.
func (w *world) wantPage(token, id string) {
	w.t.Helper()
	w.wantPageOf(offers.TokenSum(token), id)
}

func (w *world) wantPageOf(sum offers.Digest, id string) {
	w.t.Helper()
	o, err := w.Store.OfferByToken(w.ctx, sum)
	if id == "" {
		w.wantErr(err, offers.ErrNotFound)
		return
	}
	w.must(err)
	if o.ID != id {
		w.t.Fatalf("the page shows offer %s, want %s", o.ID, id)
	}
}
