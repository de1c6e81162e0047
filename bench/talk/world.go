package main

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
)

const ours = people.Address("sms:+12025550100")

// manyFaults end a world: what comes after them says nothing new.
const manyFaults = 5

// settings of one world.
type settings struct {
	seed     uint64
	number   int // of the world, for addresses of its own
	messages int
	people   int
	real     bool // the product's own reader, and not the one that knows the lists
	tapbacks bool // a like confirms
	limit    int  // of one message, in characters
	listens  bool // the agent is known to listen
	beyond   float64
	trace    io.Writer
}

// event is something that happens at a time.
type event struct {
	at  time.Time
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// world is one database with its people, phones, carrier and agent. Everything in it happens in one goroutine, in the
// order of its own clock.
type world struct {
	settings
	ctx   context.Context
	rng   *rand.Rand
	clock *clock
	store store
	log   *slog.Logger

	service    *offers.Service
	processor  *reply.Processor
	confirmer  *reply.Confirmer
	dispatcher *offers.Dispatcher
	ticker     *offers.Clock

	queue     events
	seq       int
	depth     int // of things that happen while a text is with the carrier
	sending   bool
	position  string
	key       people.Key
	words     [classes][]string
	names     map[string]string
	people    []*person
	strangers []*phone
	phones    map[people.Address]*phone
	asks      map[string]*ask // by offer id
	operation map[string]*ask
	tokens    map[string]*ask
	texts     map[string]*text
	sids      map[string]*text
	messages  map[string]*message // by the product's id
	undecided map[string]*message
	serial    int
	stored    int // messages that were acknowledged

	counts map[string]int
	faults []string
	past   []string // the last things that happened, for a fault
}

// fault notes that something happened that must not.
func (w *world) fault(format string, a ...any) {
	what := fmt.Sprintf(format, a...)
	w.faults = append(w.faults, fmt.Sprintf("world %d seed %d at %s: %s\n    %s", w.number, w.seed, w.clock.now.Format(stamp), what, strings.Join(w.past, "\n    ")))
}

// note keeps what happened, to tell when something goes wrong.
func (w *world) note(format string, a ...any) {
	line := w.clock.now.Format(stamp) + " " + fmt.Sprintf(format, a...)
	if w.trace != nil {
		_, _ = fmt.Fprintln(w.trace, line)
	}
	if len(w.past) == 30 {
		w.past = slices.Delete(w.past, 0, 1)
	}
	w.past = append(w.past, line)
}

func (w *world) count(what string) { w.counts[what]++ }

func (w *world) in(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.clock.now.Add(d).Truncate(time.Microsecond), w.seq, do})
}

// until lets everything happen that is due by then.
func (w *world) until(t time.Time) {
	for len(w.queue) > 0 && !w.queue[0].at.After(t) && w.ctx.Err() == nil {
		e := heap.Pop(&w.queue).(event)
		w.to(e.at)
		e.do()
		w.hear()
	}
	w.to(t)
}

func (w *world) to(t time.Time) {
	if !t.After(w.clock.now) {
		return
	}
	w.clock.now = t
	if w.clock.set != nil {
		if err := w.clock.set(t); err != nil {
			w.fault("the clock cannot be set: %v", err)
		}
	}
}

// one in n.
func (w *world) one(n int) bool { return w.rng.IntN(n) == 0 }

// about is a random time with that mean, at most ten times as long.
func (w *world) about(mean time.Duration) time.Duration {
	return time.Duration(min(w.rng.ExpFloat64(), 10) * float64(mean))
}

func pick[T any](w *world, list []T) T { return list[w.rng.IntN(len(list))] }

// watched is the product's store with an eye on what it answers.
type watched struct {
	store
	w *world
}

// Consume implements [offers.Inbox].
func (s watched) Consume(ctx context.Context, c offers.ConsumeRequest) (offers.Win, error) {
	s.w.hear()
	win, err := s.store.Consume(ctx, c)
	s.w.released(c, win, err, false)
	return win, err
}

// ConsumeCited implements [offers.Confirms].
func (s watched) ConsumeCited(ctx context.Context, c offers.ConsumeRequest) (offers.Win, error) {
	s.w.hear()
	win, err := s.store.ConsumeCited(ctx, c)
	s.w.released(c, win, err, true)
	return win, err
}

// Choose implements [offers.Phones].
func (s watched) Choose(ctx context.Context, c offers.ChooseRequest) error {
	err := s.store.Choose(ctx, c)
	if err == nil {
		s.w.chosen(c)
	}
	return err
}

// Reserve implements [offers.Line].
func (s watched) Reserve(ctx context.Context) (*offers.Text, error) {
	t, err := s.store.Reserve(ctx)
	if t != nil {
		s.w.reserved(*t)
	}
	return t, err
}

// Sent implements [offers.Line].
func (s watched) Sent(ctx context.Context, textID string, r offers.SendResult) error {
	err := s.store.Sent(ctx, textID, r)
	if err == nil {
		s.w.answered(textID, r)
	}
	return err
}

// newWorld makes a world on an empty store.
func newWorld(ctx context.Context, set settings, c *clock, s store, reader classifier.Reader, threshold float64) (*world, error) {
	w := &world{
		settings: set, ctx: ctx, clock: c, rng: rand.New(rand.NewPCG(set.seed, 0)), //nolint:gosec // a run can be repeated
		log: slog.New(slog.DiscardHandler), words: words(), names: map[string]string{}, phones: map[people.Address]*phone{},
		asks: map[string]*ask{}, operation: map[string]*ask{}, tokens: map[string]*ask{}, texts: map[string]*text{}, sids: map[string]*text{},
		messages: map[string]*message{}, undecided: map[string]*message{}, counts: map[string]int{},
	}
	w.store = watched{s, w}
	policy, err := policyOf()
	if err != nil {
		return nil, err
	}
	wake := &offers.Wake{}
	w.service = offers.NewService(w.store, policy, func(string) int { return set.limit }, offers.WithNames(func(a string) string { return w.names[a] }))
	cfg := reply.Config{Threshold: threshold, MinRead: minRead, TapbackConfirms: set.tapbacks}
	if w.processor, err = reply.NewProcessor(w.store, reader, cfg, wake, w.log); err != nil {
		return nil, err
	}
	w.confirmer = reply.NewConfirmer(w.store, minRead, wake)
	w.dispatcher = offers.NewDispatcher(w.store, carrier{w}, wake, w.log, 1)
	w.ticker = offers.NewClock(w.store, wake, w.log, 0)
	if _, w.position, err = w.end(); err != nil {
		return nil, err
	}
	_, hash := people.NewSecret()
	w.key = people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "agent", Scope: people.ScopeAgent}
	if err := w.store.AddKey(ctx, w.key, hash); err != nil {
		return nil, err
	}
	for range set.people {
		if err := w.born(); err != nil {
			return nil, err
		}
	}
	for range 2 {
		w.strangers = append(w.strangers, w.phone(nil))
	}
	w.in(0, w.tick)
	w.in(0, w.look)
	w.in(0, w.stranger)
	w.in(time.Second, w.meddle)
	return w, nil
}

// end finds the present end of the event feed.
func (w *world) end() (n int, position string, err error) {
	for {
		list, next, err := w.store.Events(w.ctx, people.DefaultAccount, position, 1000)
		if err != nil || len(list) == 0 {
			return n, next, err
		}
		n, position = n+len(list), next
	}
}

func (w *world) phone(p *person) *phone {
	n := w.number*1000 + len(w.phones)
	f := &phone{address: people.Address(fmt.Sprintf("sms:+120255501%06d", n)), person: p}
	w.phones[f.address] = f
	return f
}

// born makes a person with one number, or two.
func (w *world) born() error {
	p := &person{id: offers.NewID(), active: true, holds: true}
	p.phones = append(p.phones, w.phone(p))
	if w.one(4) {
		p.phones = append(p.phones, w.phone(p))
	}
	bound := people.Person{ID: p.id, AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active}
	for _, f := range p.phones {
		bound.Addresses = append(bound.Addresses, people.Binding{Address: f.address, OurNumber: ours})
	}
	if err := w.store.AddPerson(w.ctx, bound); err != nil {
		return err
	}
	w.people = append(w.people, p)
	w.in(w.about(5*time.Second), func() { w.wants(p) })
	w.in(w.about(20*time.Second), func() { w.idles(p) })
	return nil
}

// run plays until enough messages are stored, and then holds everything to what must be true at the end.
func (w *world) run() {
	for w.stored < w.settings.messages && len(w.faults) < manyFaults && w.ctx.Err() == nil {
		w.until(w.queue[0].at)
	}
	w.finish()
}

// tick is the product's clock: it looks seldom here, since late is never wrong.
func (w *world) tick() {
	if err := w.ticker.Once(w.ctx); err != nil {
		w.fault("the clock's work failed: %v", err)
	}
	w.send()
	d := 500*time.Millisecond + w.about(1500*time.Millisecond)
	if w.one(80) {
		d = w.about(time.Minute) // and now and then for long not at all
	}
	w.in(d, w.tick)
}

// look is the product's search for messages that nobody has decided.
func (w *world) look() {
	ids, err := w.store.Undecided(w.ctx, 2*time.Second, 100)
	if err != nil {
		w.fault("undecided: %v", err)
	}
	for _, id := range ids {
		w.decideStored(id)
	}
	w.in(w.about(8*time.Second), w.look)
}

func (w *world) decideStored(id string) {
	r, err := w.store.Context(w.ctx, id)
	if err != nil {
		w.fault("context: %v", err)
		return
	}
	w.decide(r)
}

// send lets the product send what is in line, soon.
func (w *world) send() {
	if w.sending {
		return
	}
	w.sending = true
	w.in(10*time.Millisecond+w.about(60*time.Millisecond), func() {
		w.sending = false
		for w.ctx.Err() == nil {
			sent, err := w.dispatcher.Once(w.ctx)
			if err != nil {
				w.fault("texts cannot be sent: %v", err)
			}
			if !sent || err != nil {
				return
			}
			w.hear()
		}
	})
}

// meddle is an owner who suspends people, changes tiers, and a process that dies with a text in its hands.
func (w *world) meddle() {
	p := pick(w, w.people)
	switch w.rng.IntN(8) {
	case 0:
		w.suspend(p)
	case 1:
		w.lower(p)
	case 2, 3:
		if t, err := w.store.Reserve(w.ctx); err != nil {
			w.fault("reserve: %v", err)
		} else if t != nil {
			w.count("texts lost by a crash before they were sent")
			w.note("crash with text %d", t.Number)
		}
	}
	w.in(w.about(25*time.Second), w.meddle)
}

// suspend takes a person out for a while.
func (w *world) suspend(p *person) {
	if err := w.store.SetState(w.ctx, people.DefaultAccount, p.id, people.Suspended); err != nil {
		w.fault("suspend: %v", err)
	}
	p.active = false
	w.count("suspended")
	w.note("suspended: %s", p.phones[0].address)
	w.in(w.about(20*time.Second), func() {
		if err := w.store.SetState(w.ctx, people.DefaultAccount, p.id, people.Active); err != nil {
			w.fault("activate: %v", err)
		}
		p.active = true
	})
}

// lower takes what the tools need from a person for a while.
func (w *world) lower(p *person) {
	if err := w.store.SetTier(w.ctx, people.DefaultAccount, p.id, gate.TierPaired); err != nil {
		w.fault("tier: %v", err)
	}
	p.holds = false
	w.count("tier lowered")
	w.in(w.about(20*time.Second), func() {
		if err := w.store.SetTier(w.ctx, people.DefaultAccount, p.id, gate.TierOwner); err != nil {
			w.fault("tier: %v", err)
		}
		p.holds = true
	})
}

// finish ends the world: everything acknowledged is decided, the ledger holds, and what the product says that it has
// released is what the model has seen.
func (w *world) finish() {
	for range 100 {
		ids, err := w.store.Undecided(w.ctx, 0, 1000)
		if err != nil {
			w.fault("undecided: %v", err)
			return
		}
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			w.decideStored(id)
		}
		w.to(w.clock.now.Add(time.Second))
	}
	for id := range w.messages {
		r, err := w.store.Context(w.ctx, id)
		switch {
		case err != nil:
			w.fault("context: %v", err)
		case r.Trusted && !r.Decided:
			w.fault("acknowledged and never decided: %s", w.messages[id])
		}
	}
	w.hear()
	for _, p := range w.people {
		w.audit(p)
	}
}

func (w *world) audit(p *person) {
	rows, err := w.store.Ledger(w.ctx, people.DefaultAccount, p.id)
	if err != nil {
		w.fault("ledger: %v", err)
		return
	}
	consumed := 0
	n, _, err := ledger.Verify(func(yield func(ledger.Row, error) bool) {
		for _, r := range rows {
			if r.Kind == ledger.Consumed {
				consumed++
			}
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil || int(n) != len(rows) {
		w.fault("the ledger does not hold: %d rows of %d, %v", n, len(rows), err)
	}
	released := 0
	for _, a := range p.asks {
		if a.by != nil {
			released++
		}
	}
	if consumed != released {
		w.fault("the ledger has %d releases, the model saw %d", consumed, released)
	}
	list, err := w.store.Texts(w.ctx, people.DefaultAccount, p.id)
	if err != nil {
		w.fault("texts: %v", err)
	}
	for i, t := range list {
		if t.Number != int64(i+1) {
			w.fault("text %d has the number %d", i+1, t.Number)
		}
	}
}

// released is called with every answer of the product to a yes.
func (w *world) released(c offers.ConsumeRequest, win offers.Win, err error, cited bool) {
	var refused *offers.Refusal
	switch {
	case errors.As(err, &refused):
		if cited {
			w.count("cited yes refused: " + string(refused.Why))
		} else {
			w.count("yes refused: " + string(refused.Why))
		}
		w.note("yes refused: %s", refused.Why)
		return
	case err != nil:
		w.fault("consume: %v", err)
		return
	}
	a, m := w.asks[win.Offer.ID], w.messages[c.MessageID]
	if a == nil || m == nil {
		w.fault("a release of something that the model does not know")
		return
	}
	if win.Repeat {
		w.count("own win found again")
		if a.by != m {
			w.fault("a win that was another message's: %s by %s", a, m)
		}
		return
	}
	w.note("RELEASED %s by %s", a, m)
	why, blind := judge(a, m, cited, w.clock.now)
	switch {
	case why != "" && blind && w.beyond > 0:
		w.count("blind: " + why)
	case why != "":
		w.fault("UNJUSTIFIED release (blind %v, cited %v): %s\n    %s\n    %s", blind, cited, why, a, m)
	}
	if cited {
		w.count("releases that a main model cited")
	} else {
		w.count("releases")
	}
	a.by, m.used, a.releasedAt = m, a, w.clock.now
	a.ended, a.state = w.clock.now, offers.Consumed
}

// chosen follows a number that picked one of several offers.
func (w *world) chosen(c offers.ChooseRequest) {
	m := w.messages[c.MessageID]
	w.count("numbers that chose")
	for _, a := range m.phone.person.asks {
		o, err := w.store.Offer(w.ctx, people.DefaultAccount, a.id)
		if err != nil {
			w.fault("offer: %v", err)
			return
		}
		if a.ended.IsZero() && o.State == offers.Queued && !a.sentAt.IsZero() {
			a.waiting = true
			w.note("back in the queue: %s", a)
		}
	}
}

// hear reads the events, as the agent does, and tells the model what they say of offers' ends.
func (w *world) hear() {
	if w.clock.calm != nil {
		if err := w.clock.calm(); err != nil {
			w.fault("events: %v", err)
			return
		}
	}
	for {
		list, next, err := w.store.Events(w.ctx, people.DefaultAccount, w.position, 200)
		if err != nil {
			w.fault("events: %v", err)
			return
		}
		w.position = next
		for _, e := range list {
			w.heard(e)
		}
		if len(list) < 200 {
			return
		}
	}
}

func (w *world) heard(e offers.Event) {
	if strings.Contains(string(e.Data), strangeWords) {
		w.fault("an event has the words of somebody who is not paired: %s", e.Type)
	}
	var d struct {
		offers.ReplyData
		Offer     *offers.Offer
		Operation *offers.Operation
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		w.fault("event %s: %v", e.Type, err)
		return
	}
	switch e.Type {
	case offers.OfferOpened:
		if a := w.asks[d.Offer.ID]; a != nil {
			if a.expires.IsZero() { // nothing makes it live longer, shown again or not
				a.expires = e.At.Add(a.tool.ttl)
			}
			if !d.Offer.ExpiresAt.Equal(a.expires) {
				w.fault("opened at %s for %s, expires at %s", e.At, a.tool.ttl, d.Offer.ExpiresAt)
			}
		}
	case offers.OfferClosed:
		if a := w.asks[d.Offer.ID]; a != nil && a.ended.IsZero() && d.Offer.State != offers.Consumed {
			a.ended, a.state = e.At, d.Offer.State
			w.count("offers " + string(d.Offer.State))
			w.note("%s: %s", d.Offer.State, a)
		}
	case offers.OperationApproved:
		if a := w.operation[d.Operation.ID]; a != nil {
			w.approved(a)
		}
	case offers.MessageReceived:
		w.count("passed on: " + d.Reading)
		w.told(d.ReplyData)
	case offers.ReplyUnresolved:
		w.count("unresolved: " + d.Why)
		w.note("unresolved: %s, %s %.2f", d.Why, d.Reading, d.P)
		w.unresolved(d.ReplyData)
	case offers.PersonOptedOut:
		w.count("opted out")
	}
}
