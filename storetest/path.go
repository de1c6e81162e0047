package storetest

import (
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Path takes a fresh store through what a reply may lead to: a yes with all that follows, a second and a late one, a no, and
// words that stay unresolved. The store's own test looks at the queries that this took.
func Path(t *testing.T, open Open) Store {
	t.Helper()
	w := newWorld(t, open)
	p := w.person(gate.TierOwner)
	o := w.shown(p)
	w.Advance(20 * MinRead)
	in := inbound(p, "yes")
	r := w.receive(in)
	w.receive(in)
	w.wins(yes(o, r))
	_, err := w.Store.Consume(w.ctx, yes(o, r))
	w.must(err)
	_, err = w.Store.Begin(w.ctx, w.begin(o))
	w.must(err)
	_, err = w.Store.Finish(w.ctx, offers.FinishRequest{AccountID: people.DefaultAccount, OperationID: o.OperationID, Result: offers.Result{Status: "succeeded"}, Receipt: "Sent."})
	w.must(err)
	w.sendAll()

	o = w.shown(p)
	w.Advance(20 * MinRead)
	r = w.says(p, "what?")
	w.must(w.Store.Pass(w.ctx, pass(r)))
	r = w.says(p, "no")
	_, err = w.Store.Context(w.ctx, r.MessageID)
	w.must(err)
	_, err = w.Store.CloseByReply(w.ctx, no(o, r, offers.Declined))
	w.must(err)
	w.refused(yes(o, w.says(p, "yes")), offers.WhyClosed)

	_, err = w.Store.Undecided(w.ctx, time.Second, 100)
	w.must(err)
	_, _, err = w.Store.Events(w.ctx, people.DefaultAccount, "", 100)
	w.must(err)
	return w.Store
}
