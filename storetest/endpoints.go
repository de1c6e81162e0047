package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// RunEndpoints runs the suite of [offers.EndpointStore]. Every test opens a store of its own, which must also be one.
func RunEndpoints(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(w *endpoints)
	}{
		{"InOrderAndNumberedWithoutGaps", endpointsInOrder},
		{"BeginsAtTheFeedsEnd", endpointsBegin},
		{"AnAccountOfItsOwn", endpointsAccount},
		{"AClaimHoldsForItsLease", endpointsLease},
		{"ARenewedClaimHoldsOn", endpointsRenew},
		{"ACrashSendsTheSameAgain", endpointsCrash},
		{"AnOldTicketRecordsNothing", endpointsTicket},
		{"AFailureHoldsUpItsOwnEndpointOnly", endpointsFailure},
		{"DeadLettersAreStoredAndPutBack", endpointsDead},
		{"APutBackLetterHoldsUpNothing", endpointsPutBack},
		{"AnAnswerIsRemembered", endpointsAnswer},
		{"ADisabledEndpointGetsNothingUntilItIsEnabled", endpointsDisabled},
		{"RemovedWithItsLetters", endpointsRemoved},
		{"TheOneThatWaitedLongestIsNext", endpointsFair},
		{"SecretsStayInTheStore", endpointsSecrets},
		{"WhatIsNotThere", endpointsUnknown},
		{"ManyWorkersOneDeliveryAtATime", endpointsWorkers},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &endpoints{world: newWorld(t, open)}
			w.store = w.endpointStore(w.Store)
			w.person = w.world.person(gate.TierOwner)
			test.run(w)
		})
	}
}

// lease is longer than a busy machine may make a test wait between two of its steps.
const lease = 30 * time.Second

type endpoints struct {
	*world
	store  offers.EndpointStore
	person people.Person
	marker people.Person // of an account without endpoints
}

// settle waits until everything that was committed so far can be read: a store may hold events back while an older
// transaction runs, anywhere in the database.
func (w *endpoints) settle() {
	w.t.Helper()
	const account = "marker"
	if w.marker.ID == "" {
		w.AddAccount(account)
		w.marker = w.personAt(account, gate.TierPaired, people.Binding{Address: "sim:settled", OurNumber: "sim:us"})
	}
	r := w.says(w.marker, "marker")
	w.must(w.Store.Pass(w.ctx, pass(r)))
	for {
		list, _, err := w.Store.Events(w.ctx, account, "", 1000)
		w.must(err)
		if n := len(list); n > 0 && w.about(list[n-1]).message == r.MessageID {
			return
		}
		w.pause()
	}
}

func (w *endpoints) endpointStore(s Store) offers.EndpointStore {
	w.t.Helper()
	e, ok := s.(offers.EndpointStore)
	if !ok {
		w.t.Fatal("the store keeps no endpoints")
	}
	return e
}

// add adds an endpoint behind everything that was committed so far.
func (w *endpoints) add(account string) offers.Endpoint {
	w.t.Helper()
	w.settle()
	e := offers.Endpoint{ID: offers.NewID(), AccountID: account, URL: "https://agent.example.test/events", Secret: offers.NewEndpointSecret()}
	w.must(w.store.AddEndpoint(w.ctx, e))
	return e
}

// happen makes n events of the person and returns the messages that they are about.
func (w *endpoints) happen(n int) []string {
	w.t.Helper()
	var out []string
	for i := range n {
		r := w.says(w.person, fmt.Sprint("event ", i))
		w.must(w.Store.Pass(w.ctx, pass(r)))
		out = append(out, r.MessageID)
	}
	return out
}

// claim demands that something is to be delivered, of all that has happened so far.
func (w *endpoints) claim() offers.Delivery {
	w.t.Helper()
	w.settle()
	d, err := w.store.ClaimDelivery(w.ctx, lease)
	w.must(err)
	if d == nil {
		w.t.Fatal("nothing is to be delivered")
	}
	return *d
}

// idle demands that nothing is to be delivered, of all that has happened so far.
func (w *endpoints) idle() {
	w.t.Helper()
	w.settle()
	d, err := w.store.ClaimDelivery(w.ctx, lease)
	w.must(err)
	if d != nil {
		w.t.Fatalf("number %d is to go to %s, want nothing", d.Seq, d.Endpoint.ID)
	}
}

var ok = offers.Attempt{Status: 204}

func (w *endpoints) record(d offers.Delivery, a offers.Attempt) {
	w.t.Helper()
	w.must(w.recorded(d, a))
}

// recorded stores a try as the schedule has it, without jitter.
func (w *endpoints) recorded(d offers.Delivery, a offers.Attempt) error {
	fate, in := a.Judge(d.Attempts, 0.5)
	return w.store.RecordDelivery(w.ctx, d, a, fate, in)
}

// failAll fails a delivery, and each repetition of it, until it is dead, and returns how many tries that were.
func (w *endpoints) failAll(d offers.Delivery, a offers.Attempt) int {
	w.t.Helper()
	for tries := 1; ; tries++ {
		fate, in := a.Judge(d.Attempts, 0.5)
		w.must(w.store.RecordDelivery(w.ctx, d, a, fate, in))
		if fate == offers.FateDead {
			return tries
		}
		w.Advance(in + time.Second)
		next := w.claim()
		if next.Event.ID != d.Event.ID || next.Seq != d.Seq || next.Attempts != d.Attempts+1 {
			w.t.Fatalf("after try %d came %+v, want the same event again", tries, next)
		}
		d = next
	}
}

func (w *endpoints) endpoint(account, id string) offers.Endpoint {
	w.t.Helper()
	list, err := w.store.Endpoints(w.ctx, account)
	w.must(err)
	for _, e := range list {
		if e.ID == id {
			return e
		}
	}
	w.t.Fatalf("endpoint %s is not listed", id)
	return offers.Endpoint{}
}

func (w *endpoints) letters(account string) []offers.DeadLetter {
	w.t.Helper()
	list, err := w.store.DeadLetters(w.ctx, account)
	w.must(err)
	return list
}

func endpointsInOrder(w *endpoints) {
	e := w.add(people.DefaultAccount)
	for i, message := range w.happen(5) {
		d := w.claim()
		if got := w.about(d.Event).message; d.Seq != int64(i+1) || got != message {
			w.t.Fatalf("delivery %d is about %s, want %d about %s", d.Seq, got, i+1, message)
		}
		if d.Endpoint.ID != e.ID || d.Endpoint.URL != e.URL || d.Endpoint.Secret != e.Secret || d.Endpoint.AccountID != e.AccountID {
			w.t.Fatalf("delivery to %+v", d.Endpoint)
		}
		list, _, err := w.Store.Events(w.ctx, e.AccountID, "", 100)
		w.must(err)
		equal(w.t, "event", d.Event, list[i])
		w.record(d, ok)
	}
	w.idle()
}

func endpointsBegin(w *endpoints) {
	w.happen(3)
	w.add(people.DefaultAccount)
	w.idle()
	message := w.happen(1)[0]
	if d := w.claim(); d.Seq != 1 || w.about(d.Event).message != message {
		w.t.Fatalf("number %d is %s", d.Seq, d.Event.ID)
	}
}

func endpointsAccount(w *endpoints) {
	w.AddAccount(other)
	w.add(other)
	own := w.add(people.DefaultAccount)
	w.happen(2)
	for range 2 {
		// The other one has waited longer, but not for this.
		d := w.claim()
		if d.Endpoint.ID != own.ID {
			w.t.Fatalf("event of %s went to an endpoint of %s", d.Event.AccountID, d.Endpoint.AccountID)
		}
		w.record(d, ok)
	}
	w.idle()
	q := w.personAt(other, gate.TierOwner, people.Binding{Address: w.address(), OurNumber: Ours})
	w.must(w.Store.Pass(w.ctx, pass(w.says(q, "hello"))))
	d := w.claim()
	if d.Seq != 1 || w.about(d.Event).person != q.ID || d.Event.AccountID != other {
		w.t.Fatalf("delivery %+v", d)
	}
}

func endpointsLease(w *endpoints) {
	w.add(people.DefaultAccount)
	w.happen(2)
	first := w.claim()
	w.Advance(lease - time.Second)
	w.idle()
	for _, s := range []Store{w.Store, w.Second()} {
		d, err := w.endpointStore(s).ClaimDelivery(w.ctx, lease)
		w.must(err)
		if d != nil {
			w.t.Fatal("an endpoint was claimed twice")
		}
	}
	w.record(first, ok)
	if d := w.claim(); d.Seq != 2 {
		w.t.Fatalf("after the first came number %d", d.Seq)
	}
}

func endpointsRenew(w *endpoints) {
	w.add(people.DefaultAccount)
	w.happen(2)
	first := w.claim()
	w.Advance(lease / 2)
	w.must(w.store.RenewDelivery(w.ctx, first, lease))
	w.Advance(lease * 3 / 4)
	w.idle()
	w.Advance(lease / 2)
	again := w.claim()
	w.wantErr(w.store.RenewDelivery(w.ctx, first, lease), offers.ErrLeaseLost)
	w.record(again, ok)
	w.wantErr(w.store.RenewDelivery(w.ctx, again, lease), offers.ErrLeaseLost) // nothing is held any more
	if d := w.claim(); d.Seq != 2 {
		w.t.Fatalf("after the first came number %d", d.Seq)
	}
}

func endpointsCrash(w *endpoints) {
	w.add(people.DefaultAccount)
	w.happen(2)
	first := w.claim()
	w.Advance(lease + time.Second)
	w.store = w.endpointStore(w.Second())
	again := w.claim()
	if again.Event.ID != first.Event.ID || again.Seq != first.Seq || again.Ticket == first.Ticket {
		w.t.Fatalf("after a crash came %+v, want the same event under the same number", again)
	}
	w.record(again, ok)
	if d := w.claim(); d.Seq != 2 {
		w.t.Fatalf("after it came number %d", d.Seq)
	}
}

func endpointsTicket(w *endpoints) {
	e := w.add(people.DefaultAccount)
	w.happen(2)
	old := w.claim()
	w.Advance(lease + time.Second)
	next := w.claim()
	was := w.endpoint(e.AccountID, e.ID)
	for _, a := range []offers.Attempt{ok, {Status: 500}, {Status: 410}} {
		w.wantErr(w.recorded(old, a), offers.ErrLeaseLost)
	}
	w.wantErr(w.store.RecordDelivery(w.ctx, old, offers.Attempt{Status: 500}, offers.FateDead, 0), offers.ErrLeaseLost)
	equal(w.t, "endpoint", w.endpoint(e.AccountID, e.ID), was)
	if got := w.letters(e.AccountID); len(got) != 0 {
		w.t.Fatalf("letters %+v", got)
	}
	w.idle()
	w.record(next, ok)
	// A record is good for once.
	w.record(w.claim(), ok)
	w.wantErr(w.recorded(next, ok), offers.ErrLeaseLost)
}

func endpointsFailure(w *endpoints) {
	bad, good := w.add(people.DefaultAccount), w.add(people.DefaultAccount)
	messages := w.happen(3)
	var got []string
	tries := 0
	for len(got) < len(messages) {
		d := w.claim()
		if d.Endpoint.ID == bad.ID {
			if d.Seq != 1 {
				w.t.Fatalf("number %d went out before the first one was done with", d.Seq)
			}
			w.record(d, offers.Attempt{Failure: offers.FailedTimeout})
			tries++
			continue
		}
		got = append(got, w.about(d.Event).message)
		w.record(d, ok)
	}
	equal(w.t, "what the other endpoint got", got, messages)
	if tries != 1 {
		w.t.Fatalf("%d tries without time passing", tries)
	}
	e := w.endpoint(bad.AccountID, bad.ID)
	if e.Seq != 0 || e.Attempts != 1 || e.NextTry == nil || e.LastFailure != offers.FailedTimeout || e.AnsweredAt != nil {
		w.t.Fatalf("the failing endpoint is %+v", e)
	}
	if e := w.endpoint(good.AccountID, good.ID); e.Seq != 3 || e.LastStatus != 204 {
		w.t.Fatalf("the good endpoint is %+v", e)
	}
	w.Advance(6 * time.Second)
	for i := range messages {
		d := w.claim()
		if d.Endpoint.ID != bad.ID || d.Seq != int64(i+1) || w.about(d.Event).message != messages[i] {
			w.t.Fatalf("delivery %d to %s", d.Seq, d.Endpoint.ID)
		}
		w.record(d, ok)
	}
}

func endpointsDead(w *endpoints) {
	e := w.add(people.DefaultAccount)
	w.happen(2)
	first := w.claim()
	if tries := w.failAll(first, offers.Attempt{Status: 503}); tries != 6 {
		w.t.Fatalf("dead after %d tries, want 6", tries)
	}
	list := w.letters(e.AccountID)
	if len(list) != 1 {
		w.t.Fatalf("letters %+v", list)
	}
	l := list[0]
	if l.EndpointID != e.ID || l.EventID != first.Event.ID || l.EventType != first.Event.Type || l.Seq != 1 || l.Attempts != 6 ||
		l.LastStatus != 503 || l.DeadAt == nil || l.NextTry != nil {
		w.t.Fatalf("letter %+v", l)
	}
	if got := w.endpoint(e.AccountID, e.ID); got.Dead != 1 || got.Seq != 1 || got.Attempts != 0 || got.NextTry != nil {
		w.t.Fatalf("endpoint %+v", got)
	}
	second := w.claim()
	if second.Seq != 2 || second.Attempts != 0 {
		w.t.Fatalf("after the dead one came %+v", second)
	}
	w.record(second, ok)
	w.idle()

	w.must(w.store.RetryDead(w.ctx, e.AccountID, l.ID))
	again := w.claim()
	if again.Event.ID != first.Event.ID || again.Seq != 1 || again.Attempts != 0 || again.LetterID != l.ID {
		w.t.Fatalf("the letter came back as %+v", again)
	}
	equal(w.t, "event", again.Event, first.Event)
	// The whole schedule once more, and dead again.
	if tries := w.failAll(again, offers.Attempt{Status: 500}); tries != 6 {
		w.t.Fatalf("dead again after %d tries, want 6", tries)
	}
	list = w.letters(e.AccountID)
	if len(list) != 1 || list[0].DeadAt == nil || list[0].LastStatus != 500 || list[0].ID != l.ID {
		w.t.Fatalf("letters %+v", list)
	}
	w.idle()
	w.must(w.store.RetryDead(w.ctx, e.AccountID, l.ID))
	w.record(w.claim(), ok)
	if list := w.letters(e.AccountID); len(list) != 0 {
		w.t.Fatalf("letters %+v after delivery", list)
	}
	w.idle()
}

func endpointsPutBack(w *endpoints) {
	e := w.add(people.DefaultAccount)
	w.happen(1)
	w.failAll(w.claim(), offers.Attempt{Status: 500})
	l := w.letters(e.AccountID)[0]
	w.must(w.store.RetryDead(w.ctx, e.AccountID, l.ID))
	w.record(w.claim(), offers.Attempt{Status: 500})
	if got := w.letters(e.AccountID)[0]; got.DeadAt != nil || got.NextTry == nil || got.Attempts != 1 {
		w.t.Fatalf("letter %+v", got)
	}
	w.happen(1)
	d := w.claim()
	if d.LetterID != "" || d.Seq != 2 {
		w.t.Fatalf("a letter that waits for its next try held up the feed: %+v", d)
	}
	w.record(d, ok)
	w.Advance(6 * time.Second)
	if d := w.claim(); d.LetterID != l.ID || d.Seq != 1 || d.Attempts != 1 {
		w.t.Fatalf("delivery %+v, want the letter", d)
	}
}

func endpointsAnswer(w *endpoints) {
	e := w.add(people.DefaultAccount)
	w.happen(2)
	w.record(w.claim(), offers.Attempt{Status: 500})
	if got := w.endpoint(e.AccountID, e.ID); got.AnsweredAt != nil {
		w.t.Fatalf("a failure counts as an answer at %s", got.AnsweredAt)
	}
	w.Advance(6 * time.Second)
	w.record(w.claim(), ok)
	first := w.endpoint(e.AccountID, e.ID).AnsweredAt
	if first == nil || first.Sub(e.CreatedAt) < 0 {
		w.t.Fatalf("answered at %v", first)
	}
	w.Advance(time.Minute)
	w.record(w.claim(), ok)
	if second := w.endpoint(e.AccountID, e.ID).AnsweredAt; second.Sub(*first) < time.Minute {
		w.t.Fatalf("answered at %s and a minute later at %s", first, second)
	}
}

func endpointsDisabled(w *endpoints) {
	e := w.add(people.DefaultAccount)
	w.happen(2)
	first := w.claim()
	w.record(first, offers.Attempt{Status: 410})
	if got := w.endpoint(e.AccountID, e.ID); got.DisabledAt == nil || got.Seq != 0 {
		w.t.Fatalf("endpoint %+v", got)
	}
	w.Advance(longAgo)
	w.idle()
	w.must(w.store.EnableEndpoint(w.ctx, e.AccountID, e.ID))
	again := w.claim()
	if again.Event.ID != first.Event.ID || again.Seq != 1 || again.Attempts != 0 {
		w.t.Fatalf("enabled, it got %+v", again)
	}
	if got := w.endpoint(e.AccountID, e.ID); got.DisabledAt != nil {
		w.t.Fatalf("endpoint %+v", got)
	}
	w.failAll(again, offers.Attempt{Status: 500})
	w.record(w.claim(), ok)
	l := w.letters(e.AccountID)[0]
	w.must(w.store.RetryDead(w.ctx, e.AccountID, l.ID))
	w.record(w.claim(), offers.Attempt{Status: 410})
	if got := w.endpoint(e.AccountID, e.ID); got.DisabledAt == nil {
		w.t.Fatal("a letter's 410 did not disable the endpoint")
	}
	w.idle()
	w.must(w.store.EnableEndpoint(w.ctx, e.AccountID, e.ID))
	if d := w.claim(); d.LetterID != l.ID {
		w.t.Fatalf("enabled, it got %+v, want the letter", d)
	}
}

func endpointsRemoved(w *endpoints) {
	e := w.add(people.DefaultAccount)
	w.happen(2)
	w.failAll(w.claim(), offers.Attempt{Status: 500})
	d := w.claim()
	w.must(w.store.RemoveEndpoint(w.ctx, e.AccountID, e.ID))
	w.wantErr(w.recorded(d, ok), offers.ErrLeaseLost)
	if list := w.letters(e.AccountID); len(list) != 0 {
		w.t.Fatalf("letters %+v of nobody", list)
	}
	list, err := w.store.Endpoints(w.ctx, e.AccountID)
	w.must(err)
	if len(list) != 0 {
		w.t.Fatalf("endpoints %+v", list)
	}
	w.idle()
	w.wantErr(w.store.RemoveEndpoint(w.ctx, e.AccountID, e.ID), offers.ErrNotFound)
}

func endpointsFair(w *endpoints) {
	a, b := w.add(people.DefaultAccount), w.add(people.DefaultAccount)
	w.happen(4)
	var got []string
	for range 8 {
		d := w.claim()
		got = append(got, d.Endpoint.ID)
		w.record(d, ok)
		w.Advance(time.Millisecond)
	}
	count := map[string]int{}
	for i, id := range got {
		if count[id]++; i > 0 && id == got[i-1] {
			w.t.Fatalf("one endpoint came twice in a row: %v", got)
		}
	}
	if count[a.ID] != 4 || count[b.ID] != 4 {
		w.t.Fatalf("deliveries %v", count)
	}
}

func endpointsSecrets(w *endpoints) {
	e := w.add(people.DefaultAccount)
	got := w.endpoint(e.AccountID, e.ID)
	if got.Secret != "" {
		w.t.Fatal("a list shows secrets")
	}
	if got.URL != e.URL || got.CreatedAt.IsZero() || got.CreatedAt.Location() != time.UTC || got.AccountID != e.AccountID {
		w.t.Fatalf("endpoint %+v", got)
	}
}

func endpointsUnknown(w *endpoints) {
	w.AddAccount(other)
	e := w.add(people.DefaultAccount)
	w.happen(1)
	w.failAll(w.claim(), offers.Attempt{Status: 500})
	l := w.letters(e.AccountID)[0]
	err := w.store.AddEndpoint(w.ctx, offers.Endpoint{ID: offers.NewID(), AccountID: "nobody", URL: e.URL, Secret: e.Secret})
	w.wantErr(err, people.ErrNoAccount)
	for _, x := range []struct{ account, endpoint, letter string }{
		{people.DefaultAccount, offers.NewID(), offers.NewID()},
		{people.DefaultAccount, "x", "x"},
		{other, e.ID, l.ID},
	} {
		w.wantErr(w.store.RemoveEndpoint(w.ctx, x.account, x.endpoint), offers.ErrNotFound)
		w.wantErr(w.store.EnableEndpoint(w.ctx, x.account, x.endpoint), offers.ErrNotFound)
		w.wantErr(w.store.RetryDead(w.ctx, x.account, x.letter), offers.ErrNotFound)
	}
	if list := w.letters(other); len(list) != 0 {
		w.t.Fatalf("another account sees %+v", list)
	}
	list, err := w.store.Endpoints(w.ctx, other)
	w.must(err)
	if len(list) != 0 {
		w.t.Fatalf("another account sees %+v", list)
	}
}

// endpointsWorkers lets four workers of two replicas deliver, some of it in vain, while events come in.
func endpointsWorkers(w *endpoints) {
	const total, workers = 24, 4
	ids := []string{w.add(people.DefaultAccount).ID, w.add(people.DefaultAccount).ID, w.add(people.DefaultAccount).ID}
	var mu sync.Mutex
	busy, next, got := map[string]bool{}, map[string]int64{}, map[string][]string{}
	left := len(ids) * total
	took := func(d *offers.Delivery) {
		mu.Lock()
		defer mu.Unlock()
		if busy[d.Endpoint.ID] {
			w.t.Errorf("two deliveries at once to %s", d.Endpoint.ID)
		}
		busy[d.Endpoint.ID] = true
		if d.Seq != next[d.Endpoint.ID]+1 {
			w.t.Errorf("number %d after %d", d.Seq, next[d.Endpoint.ID])
		}
	}
	gave := func(d *offers.Delivery, fate offers.Fate) {
		mu.Lock()
		defer mu.Unlock()
		busy[d.Endpoint.ID] = false
		if fate == offers.FateDelivered {
			next[d.Endpoint.ID] = d.Seq
			got[d.Endpoint.ID] = append(got[d.Endpoint.ID], w.about(d.Event).message)
			left--
		}
	}
	done := func() bool { mu.Lock(); defer mu.Unlock(); return left <= 0 }
	replicas := []offers.EndpointStore{w.store, w.endpointStore(w.Second())}
	var wg sync.WaitGroup
	for i := range workers {
		s := replicas[i%len(replicas)]
		wg.Go(func() {
			for tries := 0; !done() && w.ctx.Err() == nil && !w.t.Failed(); tries++ {
				d, err := s.ClaimDelivery(w.ctx, lease)
				if err != nil {
					w.t.Error(err)
					return
				}
				if d == nil {
					w.pause()
					continue
				}
				took(d)
				a, fate := ok, offers.FateDelivered
				if tries%5 == 4 {
					a, fate = offers.Attempt{Status: 500}, offers.FateRetry
				}
				gave(d, fate) // before the record, which lets the next one in
				if err := s.RecordDelivery(w.ctx, *d, a, fate, 0); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	want := w.happen(total)
	wg.Wait()
	for _, id := range ids {
		equal(w.t, "messages", got[id], want)
	}
}
