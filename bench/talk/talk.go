package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
)

// strangeWords are in everything that somebody writes who is not paired.
const strangeWords = "zz-not-paired"

// People.

// idles is a person who writes whenever they like, whatever is on the screen.
func (w *world) idles(p *person) {
	f := pick(w, p.phones)
	if f.dead && len(p.phones) == 1 {
		return
	}
	c := chatter
	switch n := w.rng.IntN(100); {
	case n < 25:
		c = yes
	case n < 35:
		c = thanks
	case n < 42:
		c = no
	case n < 48:
		c = question
	case n < 52:
		c = number
	case n < 54 && !f.silent, f.silent && n < 85:
		c = start
	case n < 55:
		c = help
	case n < 56:
		c = stop
	}
	w.write(f, c, nil)
	w.in(w.about(40*time.Second), func() { w.idles(p) })
}

// answers is a person who has read a question.
func (w *world) answers(t *text) {
	f, a := t.phone, t.asks
	if f.dead {
		return
	}
	if w.one(20) { // from the other phone
		f = pick(w, f.person.phones)
	}
	c := chatter
	switch n := w.rng.IntN(1000); {
	case n < 560:
		c = yes
	case n < 640:
		c = no
	case n < 720:
		c = change
	case n < 770:
		c = question
	case n < 820:
		c = thanks
	case n < 850:
		c = named
	case n < 880:
		c = number
	case n < 884:
		c = stop
	}
	switch n := w.rng.IntN(100); {
	case n < 6:
		w.reacts(f, pick(w, f.textsOr(t)))
	case n < 12: // a long text that goes out in two
		w.write(f, yes, nil)
		w.in(w.about(300*time.Millisecond), func() { w.write(f, change, nil) })
	case n < 22:
		w.write(f, c, pick(w, f.textsOr(t)))
	case c == named:
		w.send1(w.compose(f, named, strings.ReplaceAll(pick(w, w.words[named]), "%s", a.name), a.name, nil), 0)
	default:
		w.write(f, c, nil)
	}
	if w.one(12) { // and thinks better of it
		w.in(w.about(4*time.Second), func() { w.write(f, no, nil) })
	}
}

// textsOr are the texts that are on the screen, or the given one.
func (f *phone) textsOr(t *text) []*text {
	out := []*text{t, t, t}
	for _, x := range f.texts[max(0, len(f.texts)-4):] {
		if !x.seen.IsZero() {
			out = append(out, x)
		}
	}
	return out
}

// reacts sends what a phone sends for a tap on a text.
func (w *world) reacts(f *phone, t *text) {
	verb := pick(w, []string{"Liked", "Loved", "Disliked", "Laughed at", "Emphasized", "Questioned"})
	quote, whole := t.whole, true
	if len(t.parts) > 1 {
		quote, whole = pick(w, t.parts), false
	} else if w.one(3) {
		quote, whole = quote[:len(quote)/2], false
	}
	m := w.compose(f, chatter, fmt.Sprintf("%s “%s”", verb, strings.ToValidUTF8(quote, "")), "", nil)
	m.plain = false
	switch {
	case verb == "Disliked":
		m.class = no
	case w.tapbacks && whole && (verb == "Liked" || verb == "Loved"):
		m.class, m.quotes = yes, t
	}
	w.count("reactions")
	w.send1(m, 0)
}

// write composes and sends.
func (w *world) write(f *phone, c class, quotes *text) {
	if f.dead && w.one(2) {
		return
	}
	if c == named {
		c = yes
	}
	m := w.compose(f, c, pick(w, w.words[c]), "", quotes)
	w.send1(m, 0)
	if w.one(25) { // the gateway takes it for two
		again := *m
		w.serial++
		again.sid = w.sid()
		w.count("given another id by the gateway")
		w.send1(&again, w.about(2*time.Second))
	}
}

func (w *world) sid() string {
	w.serial++
	return fmt.Sprintf("SM%08x%08x%016x", w.number, w.serial, w.seed)
}

func (w *world) compose(f *phone, c class, words, name string, quotes *text) *message {
	m := &message{sid: w.sid(), phone: f, words: words, class: c, name: name, composed: w.clock.now, quotes: quotes, plain: quotes == nil}
	if n, err := strconv.Atoi(strings.Trim(words, "#.")); err == nil {
		f.pick(n, w.clock.now)
	} else {
		m.follows = f.following(w.clock.now)
	}
	return m
}

func (w *world) liveOf(p *person) (out []*ask) {
	for _, a := range p.asks {
		if a.live(w.clock.now) {
			out = append(out, a)
		}
	}
	return out
}

// inward is how long a message takes to the product.
func (w *world) inward(m *message) time.Duration {
	switch {
	case w.rng.Float64() < w.beyond:
		return w.about(20 * time.Second)
	case m.class.consents() && !(w.one(3) && m.phone.person != nil && w.protected(m.phone, nil)):
		return time.Duration(w.rng.Int64N(int64(soon)))
	case m.class.consents():
		return time.Duration(w.rng.Int64N(int64(late)))
	case w.one(10):
		return w.about(10 * time.Second)
	}
	return w.about(500 * time.Millisecond)
}

// send1 lets a message travel: it comes once, or more than once.
func (w *world) send1(m *message, more time.Duration) {
	d := min(w.inward(m)+more, max(late, w.inward(m)))
	if m.class.consents() && m.phone.person != nil && !w.protected(m.phone, nil) && w.beyond == 0 {
		d = min(d, soon)
	}
	w.in(d, func() { w.arrive(m) })
	for w.one(15) {
		d += w.about(pick(w, []time.Duration{time.Second, 10 * time.Minute}))
		w.in(d, func() { w.arrive(m) })
	}
}

// arrive is the webhook: the message is stored, or was before.
func (w *world) arrive(m *message) {
	in := offers.Inbound{Provider: "twilio", ProviderID: m.sid, Address: m.phone.address, OurNumber: ours, Text: m.words, Raw: []byte(m.words)}
	if m.quotes != nil && m.plain == (m.quotes == nil) && len(m.quotes.sids) > 0 && !strings.Contains(m.words, "“") {
		in.Quoted = m.quotes.sids[len(m.quotes.sids)-1]
		if in.Quoted == "" {
			in.Lossy = true // the carrier names a text that the product has never heard of
		}
	}
	if m.class == stop && w.one(2) {
		in.OptOut = "STOP"
	}
	if m.id == "" && w.one(60) { // with a picture
		in.Lossy = true
	}
	r, err := w.store.Receive(w.ctx, in)
	switch {
	case err != nil:
		w.fault("receive: %v", err)
		return
	case r.Duplicate:
		w.count("duplicates")
		if m.id == "" {
			w.fault("a new message was taken for a duplicate")
		}
		return
	case r.MessageID == "": // of nobody, or of somebody suspended, and beyond what is kept of those
		w.count("forgotten, of strangers")
		if p := m.phone.person; p != nil && p.active && !m.phone.dead {
			w.fault("a message of somebody who is known was forgotten: %s", m)
		}
		return
	case m.id != "":
		w.fault("a duplicate was stored as a new message: %s", m)
		return
	}
	w.stored++
	m.id, m.received = r.MessageID, w.clock.now
	w.messages[r.MessageID] = m
	w.count("messages: " + m.class.String())
	w.note("received from %s: %s trusted %v lossy %v quoted %v", m.phone.address, m, r.Trusted, in.Lossy, in.Quoted != "")
	if p := m.phone.person; p != nil && !m.phone.dead {
		p.received++
		m.number = p.received
	}
	if in.Lossy {
		m.plain = false
		if m.class.consents() {
			m.class = chatter // what was said besides, nobody can read
		}
	}
	trusted := m.phone.person != nil && m.phone.person.active && !m.phone.dead
	if r.Trusted != trusted {
		w.fault("trusted is %v, want %v", r.Trusted, trusted)
	}
	if !r.Trusted {
		if r.Text != "" || r.RunID != "" {
			w.fault("words or a run of somebody who is not trusted")
		}
		return
	}
	if m.class.consents() && w.one(15) {
		w.in(w.about(60*time.Millisecond), func() { w.races(m.phone.person) })
	}
	switch {
	case w.one(30):
		w.count("decisions lost by a crash") // it is found again
	case w.one(30): // decided by two
		w.in(w.about(500*time.Millisecond), func() { w.decide(r) })
		w.in(w.about(500*time.Millisecond), func() { w.decide(r) })
	default:
		w.in(w.about(150*time.Millisecond), func() { w.decide(r) })
	}
}

// races lets something happen to an offer or its person between a yes and its decision.
func (w *world) races(p *person) {
	for _, a := range p.asks {
		if !a.live(w.clock.now) {
			continue
		}
		w.count("races with a yes")
		switch w.rng.IntN(5) {
		case 0:
			w.suspend(p)
		case 1:
			w.lower(p)
		case 2:
			w.propose(p, a.id)
		default:
			w.withdraw(a)
		}
		return
	}
}

// decide is the product's work on a message, and what follows for the model.
func (w *world) decide(r offers.Received) {
	m := w.messages[r.MessageID]
	if m.phone.dead {
		m.number = 0
	}
	if err := w.processor.Process(w.ctx, r); err != nil {
		w.fault("decide %s: %v", m, err)
		return
	}
	w.hear()
	p := m.phone.person
	switch {
	case m.settled:
		return // it was decided before
	case m.class == stop:
		w.silence(m.phone)
	case m.phone.silent && (m.class == start || optsIn(m.words)):
		m.phone.silent = false
		w.count("opted in")
	case m.class == no && m.plain && !w.real:
		w.takesBack(p, m)
	}
	m.settled = true
	w.send()
}

// optsIn says whether a yes is the one word that brings back somebody who has opted out.
func optsIn(words string) bool { return strings.EqualFold(strings.Trim(words, " \n.!"), "yes") }

// takesBack notes that a no came, and was decided, while a yes settled. One that came before the yes and was overtaken by it
// says nothing any more.
func (w *world) takesBack(p *person, m *message) {
	for _, a := range p.asks {
		until := a.releasedAt.Add(a.tool.settle)
		switch {
		case a.by == nil || a.tool.settle == 0 || a.cancelled || a.by == m:
		case m.received.Before(a.releasedAt):
		case w.clock.now.Before(until):
			a.cancelled = true
			w.count("yeses taken back")
			w.note("taken back: %s", a)
		case m.received.Before(until):
			w.count("nos received while a yes settled, and decided after")
		}
	}
}

func (w *world) stranger() {
	f := pick(w, w.strangers)
	m := w.compose(f, yes, "yes "+strangeWords, "", nil)
	w.send1(m, 0)
	w.in(w.about(40*time.Second), w.stranger)
}

// The agent.

// wants is an agent's work for a person.
func (w *world) wants(p *person) {
	for w.pending(p) < 2 || w.one(12) {
		w.propose(p, "")
		if !w.one(4) {
			break
		}
	}
	w.in(w.about(8*time.Second), func() { w.wants(p) })
}

// pending is how many offers to a person nobody has answered.
func (w *world) pending(p *person) int {
	n := 0
	for _, a := range p.asks {
		if a.ended.IsZero() {
			n++
		}
	}
	return n
}

func (w *world) propose(p *person, supersedes string) {
	f := pick(w, p.phones)
	if f.dead {
		return
	}
	w.serial++
	a := &ask{token: fmt.Sprintf("to-%d-%d@example.com", w.number, w.serial), name: pick(w, names()), tool: pick(w, tools()), person: p, phone: f, made: w.clock.now}
	w.names[a.token] = a.name
	body := "Hello.\nReply YES or NO."
	if w.one(12) {
		body = strings.Repeat("A line of a long letter, and yet another.\n", 5+w.rng.IntN(60))
	}
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"to":[%q],"subject":"n%d","body":%q}`, a.token, w.serial, body))
	if err != nil {
		w.fault("args: %v", err)
		return
	}
	a.args, a.sum = args, sum
	if supersedes == "" && w.one(8) && len(p.asks) > 0 {
		supersedes = p.asks[len(p.asks)-1-w.rng.IntN(min(len(p.asks), 3))].id
	}
	r := offers.Request{
		AccountID: people.DefaultAccount, Call: "POST /v1/offers", Key: a.token, BodySum: sum, Address: f.address, Kind: string(gate.KindToolCall), Tool: a.tool.name,
		Args: args, Supersedes: supersedes,
	}
	if w.one(10) {
		r.Present = offers.PresentNow
	}
	w.tokens[a.token] = a // its text may be on its way before the call has returned
	op, _, err := w.service.Propose(w.ctx, r)
	old := w.asks[supersedes]
	switch {
	case errors.Is(err, offers.ErrOfferClosed) && old != nil && old.by != nil, errors.Is(err, offers.ErrCannotBeShown):
		w.count("proposals refused")
		return
	case err != nil:
		w.fault("propose: %v", err)
		return
	case op.Offer == nil:
		w.count("proposals that the gate refused")
		return
	}
	a.id, a.operation = op.Offer.ID, op.ID
	w.asks[a.id], w.operation[a.operation] = a, a
	p.asks = append(p.asks, a)
	w.count("offers")
	w.note("proposed %s supersedes %v now %v", a, supersedes != "", r.Present)
	if old != nil && old.ended.IsZero() {
		old.ended, old.state = w.clock.now, offers.Superseded
		w.count("offers superseded")
	}
	w.send()
	if w.one(12) {
		w.in(w.about(10*time.Second), func() { w.withdraw(a) })
	}
	if w.one(6) { // an agent that tries without waiting for anybody
		w.in(w.about(5*time.Second), func() { w.begins(a) })
	}
}

func (w *world) withdraw(a *ask) {
	o, err := w.store.Withdraw(w.ctx, people.DefaultAccount, a.id, offers.Closer{By: offers.ByAgent})
	switch {
	case errors.Is(err, offers.ErrOfferClosed):
		if o.State == offers.Open {
			w.fault("an open offer cannot be withdrawn")
		}
	case err != nil:
		w.fault("withdraw: %v", err)
	default:
		w.note("withdrawn: %s", a)
		if a.by != nil {
			w.fault("an offer was withdrawn that had been released: %s", a)
		}
		a.ended, a.state = w.clock.now, offers.Withdrawn
		w.count("offers withdrawn")
	}
	w.send()
}

// approved is an agent that has heard of a yes.
func (w *world) approved(a *ask) {
	switch {
	case a.by == nil:
		w.fault("approved without a release: %s", a)
	case a.cancelled:
		w.fault("approved although the yes was taken back: %s", a)
	}
	d := w.about(3 * time.Second)
	if w.one(20) {
		d = offers.BeginWithin + w.about(20*time.Second)
	}
	if w.one(40) {
		return // it never begins
	}
	w.in(d, func() { w.begins(a) })
	if w.one(5) {
		w.in(d+w.about(time.Second), func() { w.begins(a) })
	}
}

// begins asks for the arguments, now and then with the hash of others.
func (w *world) begins(a *ask) {
	sum := a.sum
	if w.one(8) {
		sum[0] ^= 1
	}
	op, err := w.store.Begin(w.ctx, offers.BeginRequest{AccountID: people.DefaultAccount, OperationID: a.operation, ArgsSum: sum, By: w.key.ID})
	switch {
	case errors.Is(err, offers.ErrNotApproved), errors.Is(err, offers.ErrAlreadyBegun), errors.Is(err, offers.ErrHashMismatch):
		w.count("begins refused")
		return
	case err != nil:
		w.fault("begin: %v", err)
		return
	}
	w.note("begun: %s", a)
	w.count("begun")
	switch {
	case a.begun:
		w.fault("begun twice: %s", a)
	case a.by == nil:
		w.fault("begun without a release: %s", a)
	case a.cancelled:
		w.fault("begun although the yes was taken back: %s", a)
	case sum != a.sum:
		w.fault("begun with other arguments: %s", a)
	case string(op.Args) != string(a.args):
		w.fault("other arguments came out: %s", a)
	case w.clock.now.Before(a.releasedAt.Add(a.tool.settle)):
		w.fault("begun while the yes settled: %s", a)
	case a.tool.settle == 0 && !w.clock.now.Before(a.releasedAt.Add(offers.BeginWithin)):
		w.fault("begun after its time: %s", a)
	case !a.person.active || !a.person.holds:
		w.fault("begun for somebody who is suspended or does not hold it: %s", a)
	}
	a.begun = true
	w.in(w.about(2*time.Second), func() {
		status := pick(w, []string{"succeeded", "succeeded", "failed"})
		_, err := w.store.Finish(w.ctx, offers.FinishRequest{
			AccountID: people.DefaultAccount, OperationID: a.operation, Receipt: offers.Receipt(*op.Offer, status), Result: offers.Result{Status: status},
		})
		if err != nil {
			w.fault("finish: %v", err)
		}
		w.send()
	})
}

// told is an agent that was passed a message on: it asks anew where the person wants a change, or says something.
func (w *world) told(d offers.ReplyData) {
	m := w.messages[d.MessageID]
	if m == nil {
		return
	}
	if w.listens && w.one(3) {
		if err := w.store.Polled(w.ctx, w.key.ID); err != nil {
			w.fault("polled: %v", err)
		}
	}
	switch {
	case d.Reading == "modify" && w.one(2):
		w.in(w.about(2*time.Second), func() { w.propose(m.phone.person, "") })
	case w.one(6):
		w.in(w.about(2*time.Second), func() { w.says(d) })
	}
}

// says is a text of the agent to its own person, in the run of that person's message.
func (w *world) says(d offers.ReplyData) {
	w.serial++
	say := pick(w, []string{"By the way, do you still use the old laptop?", "Noted.", "Shall I book the table as well? Reply YES.", "I am on it."})
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"text":%q}`, say))
	if err != nil {
		w.fault("args: %v", err)
		return
	}
	op, _, err := w.service.Propose(w.ctx, offers.Request{
		AccountID: people.DefaultAccount, Call: "POST /v1/operations", Key: fmt.Sprint("say-", w.number, "-", w.serial), BodySum: sum, RunID: d.RunID,
		Kind: string(gate.KindOutboundMessage), Tool: gate.ToolMessageSend, Args: args,
	})
	switch {
	case errors.Is(err, offers.ErrRunExpired), errors.Is(err, offers.ErrNoAddress):
	case err != nil:
		w.fault("say: %v", err)
	case op.State == offers.OpRefused:
		w.count("texts of the agent that the gate refused")
	default:
		w.count("texts of the agent")
	}
	w.send()
}

// unresolved is a main model that always tries to confirm, whatever the words.
func (w *world) unresolved(d offers.ReplyData) {
	if w.listens && w.one(2) {
		if err := w.store.Polled(w.ctx, w.key.ID); err != nil {
			w.fault("polled: %v", err)
		}
	}
	m := w.messages[d.MessageID]
	if m == nil {
		return
	}
	if d.Why == string(offers.WhySeveral) && w.one(2) {
		id := pick(w, d.Offers).ID
		w.in(w.about(2*time.Second), func() { w.withdraw(w.asks[id]) })
	}
	if w.one(2) {
		return
	}
	w.in(w.about(time.Second), func() {
		for _, i := range w.rng.Perm(len(m.phone.person.asks)) {
			a := m.phone.person.asks[i]
			if !a.live(w.clock.now) && !w.one(50) {
				continue
			}
			_, err := w.confirmer.Confirm(w.ctx, reply.ConfirmRequest{
				AccountID: people.DefaultAccount, OfferID: a.id, RunID: d.RunID, MessageID: d.MessageID, Quote: strings.TrimSpace(d.Text), ArgsSum: a.sum,
			})
			w.count("confirms that a main model tried")
			var refused *offers.Refusal
			known := errors.As(err, &refused)
			for _, e := range []error{nil, offers.ErrNotFound, offers.ErrSelfConfirm, offers.ErrMessageUsed, offers.ErrOfferClosed, offers.ErrHashMismatch, offers.ErrQuote, offers.ErrNotAYes} {
				known = known || errors.Is(err, e)
			}
			if !known {
				w.fault("confirm: %v", err)
			}
		}
		w.send()
	})
}
