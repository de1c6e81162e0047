package main

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
)

// carrier takes the product's texts: it answers, or not; it shows them on phones, late, in another order, or not at all;
// and it reports what became of them, in any order, more than once, or never.
type carrier struct{ w *world }

// Limit implements [offers.Sender].
func (c carrier) Limit() int { return c.w.limit }

// Send implements [offers.Sender].
func (c carrier) Send(_ context.Context, m offers.Outgoing) offers.SendResult { return c.w.carry(m) }

// reserved notes a text that is about to be sent.
func (w *world) reserved(t offers.Text) {
	f := w.phones[t.Address]
	if f == nil && w.clock.set != nil {
		return // of an earlier world in the same database
	}
	if f == nil || f.person == nil {
		w.fault("a text to nobody's address")
		return
	}
	if t.Number <= f.person.reserved {
		w.fault("text %d of a person is sent after text %d", t.Number, f.person.reserved)
	}
	f.person.reserved = t.Number
	w.texts[t.ID] = &text{id: t.ID, number: t.Number, phone: f, reserved: w.clock.now}
}

// The carrier's times. A text reaches the screen soon, and a message the product: the two together take less than the
// time that a person needs to read. Only where another question is on the screen, or was a moment ago, do they take longer:
// that is where people answer what they see, and where the product waits longer for that reason. Beyond both no service
// can know what was on a screen; see the command's comment.
const (
	soon  = 400 * time.Millisecond
	late  = 6 * time.Second
	since = 40 * time.Second
)

// outward is how long a text takes to the screen.
func (w *world) outward(t *text) time.Duration {
	switch {
	case w.rng.Float64() < w.beyond:
		return w.about(20 * time.Second)
	case t.whole != "" && t.asks == nil, t.asks != nil && w.one(3) && w.protected(t.phone, t.asks):
		return time.Duration(w.rng.Int64N(int64(late)))
	}
	return time.Duration(w.rng.Int64N(int64(soon)))
}

// protected says whether another question than that offer's is on the screen, or was a moment ago.
func (w *world) protected(f *phone, except *ask) bool {
	for _, a := range f.person.asks {
		if a != except && a.recent(w.clock.now, since) {
			return true
		}
	}
	return false
}

func (w *world) carry(m offers.Outgoing) offers.SendResult {
	t := w.texts[m.TextID]
	if t == nil && w.phones[m.To] == nil && w.clock.set != nil {
		return offers.SendResult{Outcome: offers.OutcomeRejected, Code: 30007}
	}
	if t == nil {
		w.fault("a text that was not reserved")
		return offers.SendResult{}
	}
	of, part := max(m.Parts, 1), max(m.Part, 1)
	if part == 1 {
		if f := t.phone; f.silent && f.since.Before(t.reserved) {
			w.fault("a text to an address that has opted out: %q", m.Body)
		}
		t.parts, t.shown, t.sids = make([]string, of), make([]bool, of), make([]string, of)
		t.phone.texts = append(t.phone.texts, t)
		w.count("texts")
		if of > 1 {
			w.count("texts in parts")
		}
	}
	t.parts[part-1] = m.Body
	if part == of {
		t.whole = join(t.parts)
		t.list = lists(t.whole, w.liveOf(t.phone.person))
		if t.asks = w.tokens[questioned(t.whole)]; t.asks != nil {
			t.asks.waiting = false
			if t.asks.sentAt.IsZero() {
				t.asks.sentAt = w.clock.now
			}
		}
	}
	w.serial++
	sid := fmt.Sprintf("SM%08x%08x%016x", w.number, w.serial, w.seed)
	w.note("text %d part %d/%d to %s: %q", t.number, part, of, m.To, m.Body)

	// Things happen while the text is with the carrier: a callback, or a reply, before the answer to the request.
	if w.depth == 0 && w.one(10) {
		w.depth++
		defer func() { w.depth-- }()
	} else if w.depth > 0 || !w.one(10) {
		// Nothing happens meanwhile, but no call takes no time.
		res := w.fate(t, part, of, sid, 0)
		w.to(w.clock.now.Add(time.Duration(1+w.rng.IntN(5)) * time.Millisecond))
		return res
	}
	took := time.Millisecond + w.about(300*time.Millisecond)
	res := w.fate(t, part, of, sid, took)
	w.until(w.clock.now.Add(took))
	return res
}

// fate decides what becomes of a part; the answer comes that much later.
func (w *world) fate(t *text, part, of int, sid string, took time.Duration) offers.SendResult {
	display := func() {
		w.in(took+w.outward(t), func() { w.display(t, part) })
	}
	switch n := w.rng.IntN(100); {
	case n < 3: // refused: nobody sees it
		code := 30007
		if w.one(6) {
			code = offers.CodeOptedOut
		} else if w.one(12) {
			code = 30003
		}
		w.count(fmt.Sprint("texts refused with ", code))
		return offers.SendResult{Outcome: offers.OutcomeRejected, Code: code}
	case n < 9: // no answer that could be read
		w.count("texts without an answer")
		if w.one(3) {
			return offers.SendResult{} // and it never left
		}
		display()
		w.callbacks(t, part, of, sid, took, true)
		return offers.SendResult{}
	case n < 11 && of == 1: // taken, and lost at once, which is reported
		w.count("texts taken and lost")
		w.callbacks(t, part, of, sid, took, false)
	default:
		display()
		w.callbacks(t, part, of, sid, took, true)
	}
	t.sids[part-1] = sid
	w.sids[sid] = t
	return offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: sid}
}

// answered follows what the product has recorded of a text.
func (w *world) answered(textID string, r offers.SendResult) {
	t := w.texts[textID]
	switch {
	case t == nil: // of an earlier world
	case r.Outcome == offers.OutcomeAccepted:
		w.taken(t)
	case r.Outcome == offers.OutcomeRejected || r.Partial:
		w.numberIs(t.phone, r.Code)
	}
}

// taken notes that the product takes a text for accepted from now on.
func (w *world) taken(t *text) {
	if t.asks != nil && !t.taken {
		t.taken = true
		t.asks.acceptedAt = w.clock.now
	}
}

func (w *world) numberIs(f *phone, code int) {
	switch {
	case offers.OptsOut(code):
		w.silence(f)
	case offers.DeadNumber(code):
		if !f.dead {
			f.dead = true
			w.note("dead: %s", f.address)
			w.count("dead numbers")
			if err := w.born(); err != nil { // somebody else takes part from now on
				w.fault("person: %v", err)
			}
		}
	}
}

func (w *world) silence(f *phone) {
	if !f.silent {
		f.silent, f.since = true, w.clock.now
		w.note("silent: %s", f.address)
	}
}

// display puts a part on the screen.
func (w *world) display(t *text, part int) {
	t.shown[part-1] = true
	for _, s := range t.shown {
		if !s {
			return
		}
	}
	t.seen = w.clock.now
	w.note("on the screen of %s: text %d", t.phone.address, t.number)
	if t.asks != nil && !w.one(6) {
		w.in(50*time.Millisecond+w.about(pick(w, []time.Duration{4 * time.Second, 25 * time.Second})), func() { w.answers(t) })
	}
	if len(t.list) > 0 && !w.one(4) {
		w.in(50*time.Millisecond+w.about(5*time.Second), func() {
			if !t.phone.dead {
				w.write(t.phone, number, nil)
			}
		})
	}
}

// callbacks reports a part's way, or some of it.
func (w *world) callbacks(t *text, part, of int, sid string, took time.Duration, reaches bool) {
	report := func(d time.Duration, status string, code int) {
		r := offers.StatusReport{TextID: t.id, ProviderID: sid, Status: status, Code: code}
		if of > 1 {
			r.Part, r.Parts = part, of
		}
		w.in(d, func() { w.report(t, r) })
	}
	if !reaches {
		// The phone shows nothing, and the report of that comes before anybody could have read it.
		code := 30007
		if w.one(8) {
			code = 30005
		}
		report(took+time.Duration(w.rng.Int64N(int64(minRead/2))), "undelivered", code)
		if w.one(2) {
			report(took+w.about(2*time.Second), "sent", 0)
		}
		return
	}
	for _, status := range []string{"queued", "sent", "delivered"} {
		if w.one(4) {
			continue // the callback is lost
		}
		for range 1 + w.rng.IntN(2)*w.rng.IntN(2) {
			report(w.about(2*time.Second), status, 0)
		}
	}
}

func (w *world) report(t *text, r offers.StatusReport) {
	if r.ProviderID != "" && w.sids[r.ProviderID] == nil {
		w.sids[r.ProviderID] = t
		t.sids[max(r.Part, 1)-1] = r.ProviderID
	}
	if err := w.store.Report(w.ctx, r); err != nil {
		w.fault("report: %v", err)
	}
	w.count("callbacks: " + r.Status)
	switch {
	case r.Lost():
		w.numberIs(t.phone, r.Code)
	case !t.taken && t.asks != nil:
		for _, sid := range t.sids {
			if sid == "" {
				return
			}
		}
		w.taken(t)
	}
	w.send()
}
