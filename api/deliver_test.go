package api

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

// office is a store with one person, in which events can be made to happen.
// testLease is longer than a busy machine may make a test wait between two of its steps.
const testLease = 30 * time.Second

type office struct {
	t      *testing.T
	path   string
	ahead  atomic.Int64
	store  *sqlite.Store
	wake   *offers.Wake
	log    *bytes.Buffer
	number int
}

var officeAddress = people.Binding{Address: "sim:alex", OurNumber: "sim:us"}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, path: filepath.Join(t.TempDir(), "store.db"), wake: &offers.Wake{}, log: &bytes.Buffer{}}
	o.store = o.open()
	if _, err := o.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, o.store.AddPerson(t.Context(), people.Person{
		ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{officeAddress},
	}))
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens the file once more, as a process that starts would.
func (o *office) open() *sqlite.Store {
	o.t.Helper()
	s, err := sqlite.Open(context.Background(), o.path, sqlite.WithClock(func() time.Time {
		return time.Now().Add(time.Duration(o.ahead.Load()))
	}))
	must(o.t, err)
	o.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (o *office) advance(d time.Duration) { o.ahead.Add(int64(d)) }

// happen makes n events.
func (o *office) happen(n int) {
	o.t.Helper()
	for range n {
		o.number++
		r, err := o.store.Receive(o.t.Context(), offers.Inbound{
			Provider: "sim", ProviderID: fmt.Sprint("m", o.number), Address: officeAddress.Address, OurNumber: officeAddress.OurNumber,
			Text: fmt.Sprintf("<%d> & more", o.number), Raw: []byte("raw"),
		})
		must(o.t, err)
		must(o.t, o.store.Pass(o.t.Context(), offers.PassRequest{
			MessageID: r.MessageID, PersonID: r.PersonID, Type: offers.MessageReceived,
			Data: offers.ReplyData{RunID: r.RunID, MessageID: r.MessageID, PersonID: r.PersonID, Text: r.Text, Reading: "unrelated", P: 0.9},
		}))
	}
	o.wake.Signal()
}

func (o *office) add(url string) offers.Endpoint {
	o.t.Helper()
	e := offers.Endpoint{ID: offers.NewID(), AccountID: people.DefaultAccount, URL: url, Secret: offers.NewEndpointSecret()}
	must(o.t, o.store.AddEndpoint(o.t.Context(), e))
	return e
}

// deliverer makes one that may call the tests' own servers.
func (o *office) deliverer(change ...func(*DeliverConfig)) *Deliverer {
	o.t.Helper()
	return o.delivererOn(o.store, change...)
}

func (o *office) delivererOn(s offers.EndpointStore, change ...func(*DeliverConfig)) *Deliverer {
	o.t.Helper()
	c := DeliverConfig{AllowPrivate: true, Version: "test", Jitter: func() float64 { return 0.5 }, Lease: testLease}
	for _, f := range change {
		f(&c)
	}
	d := NewDeliverer(s, o.wake, slog.New(slog.NewJSONHandler(o.log, nil)), c)
	o.t.Cleanup(d.https.CloseIdleConnections)
	o.t.Cleanup(d.http.CloseIdleConnections)
	return d
}

// once delivers and demands that there was, or was not, something to deliver.
func (o *office) once(d *Deliverer, want bool) {
	o.t.Helper()
	got, err := d.Once(o.t.Context())
	must(o.t, err)
	if got != want {
		o.t.Fatalf("delivered: %v, want %v", got, want)
	}
}

func (o *office) endpoint(id string) offers.Endpoint {
	o.t.Helper()
	list, err := o.store.Endpoints(o.t.Context(), people.DefaultAccount)
	must(o.t, err)
	i := slices.IndexFunc(list, func(e offers.Endpoint) bool { return e.ID == id })
	if i < 0 {
		o.t.Fatal("the endpoint is not listed")
	}
	return list[i]
}

func (o *office) feed() []offers.Event {
	o.t.Helper()
	list, _, err := o.store.Events(o.t.Context(), people.DefaultAccount, "", 1000)
	must(o.t, err)
	return list
}

// post is what a backend got.
type post struct {
	header http.Header
	body   []byte
	seq    int64
	id     string
}

// backend is an agent's server that keeps what it gets.
type backend struct {
	*httptest.Server
	mu    sync.Mutex
	posts []post
}

// newBackend answers each post with what answer makes of its place among all of them, from 1.
func newBackend(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *backend {
	t.Helper()
	b := &backend{}
	b.Server = httptest.NewServer(b.handler(t, answer))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) handler(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var e struct {
			ID  string
			Seq int64
		}
		if err == nil {
			err = json.Unmarshal(raw, &e)
		}
		if err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		b.posts = append(b.posts, post{header: r.Header, body: raw, seq: e.Seq, id: e.ID})
		n := len(b.posts)
		b.mu.Unlock()
		answer(n, w, r)
	})
}

func (b *backend) got() []post {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.posts)
}

func (b *backend) seqs() []int64 {
	var out []int64
	for _, p := range b.got() {
		out = append(out, p.seq)
	}
	return out
}

func takes(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func TestDeliverTheEventAsItIsPolledWithItsSeq(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, takes)
	o.add(b.URL + "/events?a=1")
	o.happen(2)
	d := o.deliverer()
	o.once(d, true)
	o.once(d, true)
	o.once(d, false)
	for i, p := range b.got() {
		e := o.feed()[i]
		var polled bytes.Buffer
		must(t, marshal(&polled, e))
		want := strings.TrimSuffix(polled.String(), "}\n") + fmt.Sprintf(`,"seq":%d}`, i+1)
		equal(t, "body", string(p.body), want)
		if !strings.Contains(want, fmt.Sprintf("<%d> & more", i+1)) {
			t.Fatal("the event is not written as it was")
		}
		for name, want := range map[string]string{"Webhook-Id": e.ID, "Content-Type": "application/json", "User-Agent": "Countersign/test"} {
			equal(t, name, p.header.Values(name), []string{want})
		}
	}
}

func TestDeliverInOrderThroughFailures(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if slices.Contains([]int{1, 2, 4, 7}, n) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	o.add(b.URL)
	o.happen(4)
	d := o.deliverer()
	for len(b.got()) < 8 {
		if done, err := d.Once(t.Context()); err != nil {
			t.Fatal(err)
		} else if !done {
			o.advance(3 * time.Minute)
		}
	}
	o.once(d, false)
	equal(t, "numbers", b.seqs(), []int64{1, 1, 1, 2, 2, 3, 4, 4})
	posts, feed := b.got(), o.feed()
	for _, p := range posts {
		if p.id != feed[p.seq-1].ID || p.header.Get("Webhook-Id") != p.id {
			t.Fatalf("number %d is event %s under the id %s, want %s", p.seq, p.id, p.header.Get("Webhook-Id"), feed[p.seq-1].ID)
		}
	}
}

// The process dies after the backend has taken the event and before that is stored.
func TestDeliverAgainAfterACrash(t *testing.T) {
	o := newOffice(t)
	dying := o.open()
	b := newBackend(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			_ = dying.Close()
		}
	})
	o.add(b.URL)
	o.happen(2)
	o.once(o.delivererOn(dying), true)
	d := o.deliverer()
	o.once(d, false) // as far as anybody knows, it is on its way
	o.advance(testLease + time.Second)
	o.once(d, true)
	o.once(d, true)
	o.once(d, false)
	posts := b.got()
	equal(t, "numbers", b.seqs(), []int64{1, 1, 2})
	if posts[0].header.Get("Webhook-Id") != posts[1].header.Get("Webhook-Id") || !bytes.Equal(posts[0].body, posts[1].body) {
		t.Fatal("the event came again as another one")
	}
}

// renewed tells of every renewal that the store has made.
type renewed struct {
	offers.EndpointStore
	did chan struct{}
}

func (r renewed) RenewDelivery(ctx context.Context, d offers.Delivery, lease time.Duration) error {
	err := r.EndpointStore.RenewDelivery(ctx, d, testLease)
	select {
	case r.did <- struct{}{}:
	case <-ctx.Done():
	}
	return err
}

// However long a backend takes, nobody else takes its event over while the process lives.
func TestDeliverHoldsOnWhileItTries(t *testing.T) {
	o := newOffice(t)
	r := renewed{o.store, make(chan struct{})}
	second := o.delivererOn(o.open())
	b := newBackend(t, func(n int, _ http.ResponseWriter, req *http.Request) {
		for range 3 {
			o.advance(testLease / 2)
			for range 2 { // the first may have been under way
				select {
				case <-r.did:
				case <-req.Context().Done():
					t.Error("nobody renews the claim")
					return
				}
			}
			if again, err := second.Once(context.WithoutCancel(req.Context())); again || err != nil {
				t.Errorf("sent by another as well: %v %v", again, err)
			}
		}
	})
	o.add(b.URL)
	o.happen(1)
	o.once(o.delivererOn(r, func(c *DeliverConfig) { c.Lease = 3 * time.Millisecond }), true)
	equal(t, "numbers", b.seqs(), []int64{1})
}

// A process that stood still beyond its lease must not count what another has taken over.
func TestDeliverLateDoesNotSkip(t *testing.T) {
	o := newOffice(t)
	var second *Deliverer
	b := newBackend(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			o.advance(testLease + time.Second)
			if _, err := second.Once(context.WithoutCancel(r.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	second = o.delivererOn(o.open())
	o.add(b.URL)
	o.happen(2)
	d := o.deliverer()
	o.once(d, true)
	o.once(d, true)
	o.once(d, false)
	equal(t, "numbers", b.seqs(), []int64{1, 1, 2})
}

func TestDeliverWithManyWorkersOneAtATime(t *testing.T) {
	o := newOffice(t)
	const total = 12
	var backends []*backend
	all := make(chan struct{}, 3)
	for range 3 {
		var busy atomic.Int32
		b := newBackend(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if busy.Add(1) != 1 {
				t.Error("two deliveries at once to one endpoint")
			}
			if n == 2 {
				w.WriteHeader(http.StatusBadGateway)
			}
			busy.Add(-1)
			if n == total+1 {
				all <- struct{}{}
			}
		})
		o.add(b.URL)
		backends = append(backends, b)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		d := o.delivererOn(o.open())
		wg.Go(func() { d.Run(ctx) })
	}
	o.happen(total)
	for settled := false; !settled; {
		settled = true
		for _, b := range backends {
			settled = settled && len(b.got()) >= 2
		}
		pause(t)
	}
	o.advance(10 * time.Second) // over the wait after the failure
	for range backends {
		<-all
	}
	stop()
	wg.Wait()
	for _, b := range backends {
		equal(t, "numbers", b.seqs(), []int64{1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	}
}

// pause lets something else run before a condition is looked at again.
func pause(t *testing.T) {
	waitFor(t.Context(), nil, time.Millisecond)
	if t.Context().Err() != nil {
		t.Fatal("the test is over")
	}
}

func TestDeliverDeadLetterAndRetry(t *testing.T) {
	o := newOffice(t)
	bad := true
	b := newBackend(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if bad {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e := o.add(b.URL)
	o.happen(1)
	d := o.deliverer()
	for range 6 {
		o.once(d, true)
		o.once(d, false)
		o.advance(2 * time.Hour)
	}
	o.once(d, false)
	letters, err := o.store.DeadLetters(t.Context(), people.DefaultAccount)
	must(t, err)
	if len(letters) != 1 || letters[0].Attempts != 6 || letters[0].LastStatus != 500 {
		t.Fatalf("letters %+v", letters)
	}
	bad = false
	o.happen(1)
	o.once(d, true)
	must(t, o.store.RetryDead(t.Context(), people.DefaultAccount, letters[0].ID))
	o.once(d, true)
	o.once(d, false)
	equal(t, "numbers", b.seqs(), []int64{1, 1, 1, 1, 1, 1, 2, 1})
	if got := o.endpoint(e.ID); got.Dead != 0 || got.Seq != 2 {
		t.Fatalf("endpoint %+v", got)
	}
}

func TestDeliverToAGoneEndpointNoMore(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	e := o.add(b.URL)
	o.happen(2)
	d := o.deliverer()
	o.once(d, true)
	o.advance(48 * time.Hour)
	o.once(d, false)
	if got := o.endpoint(e.ID); got.DisabledAt == nil || got.LastStatus != http.StatusGone {
		t.Fatalf("endpoint %+v", got)
	}
}

func TestDeliverFollowsNoRedirect(t *testing.T) {
	o := newOffice(t)
	elsewhere := newBackend(t, takes)
	for _, status := range []int{301, 302, 303, 307, 308} {
		b := newBackend(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		e := o.add(b.URL)
		o.happen(1)
		o.once(o.deliverer(), true)
		if got := o.endpoint(e.ID); got.LastStatus != status || got.Attempts != 1 || got.AnsweredAt != nil {
			t.Errorf("%d: %+v", status, got)
		}
		must(t, o.store.RemoveEndpoint(t.Context(), e.AccountID, e.ID))
	}
	if n := len(elsewhere.got()); n != 0 {
		t.Fatalf("%d redirects were followed", n)
	}
}

func TestDeliverReadsLittleOfAnAnswer(t *testing.T) {
	o := newOffice(t)
	swallowed := make(chan bool, 1)
	b := newBackend(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 64 { // far beyond what sockets hold
			if _, err := w.Write(chunk); err != nil {
				swallowed <- false
				return
			}
		}
		swallowed <- true
	})
	e := o.add(b.URL)
	o.happen(1)
	o.once(o.deliverer(), true)
	if <-swallowed {
		t.Error("a body of 64 MB was read")
	}
	if got := o.endpoint(e.ID); got.Seq != 1 {
		t.Errorf("the answer did not count: %+v", got)
	}

	o = newOffice(t)
	b = newBackend(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("x", 256<<10))
	})
	e = o.add(b.URL)
	o.happen(1)
	o.once(o.deliverer(), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedConnection {
		t.Errorf("a header of 256 KB was read: %+v", got)
	}
}

// One endpoint hangs: the others get everything, and it is given up after the time-out.
func TestDeliverPastASlowEndpoint(t *testing.T) {
	o := newOffice(t)
	asked, release := make(chan struct{}), make(chan struct{})
	slow := newBackend(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 1 {
			close(asked)
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	o.add(slow.URL)
	all := make(chan struct{})
	quick := newBackend(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n == 5 {
			close(all)
		}
	})
	o.add(quick.URL)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	d := o.deliverer(func(c *DeliverConfig) { c.AtOnce = 2 })
	go func() { d.Run(ctx); close(ended) }()
	o.happen(5)
	<-asked
	<-all
	equal(t, "what the slow one got", slow.seqs(), []int64{1})
	stop()
	close(release)
	<-ended
	equal(t, "what the slow one got", slow.seqs(), []int64{1})
	// What was on its way when Run was told to end was seen through.
	list, err := o.store.Endpoints(t.Context(), people.DefaultAccount)
	must(t, err)
	if list[0].Seq != 1 || list[1].Seq != 5 {
		t.Fatalf("endpoints %+v", list)
	}
}

func TestDeliverGivesUpAfterTheTimeout(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, func(_ int, _ http.ResponseWriter, r *http.Request) { waitFor(r.Context(), nil, 5*time.Second) })
	e := o.add(b.URL)
	o.happen(1)
	o.once(o.deliverer(func(c *DeliverConfig) { c.Timeout = 50 * time.Millisecond }), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedTimeout || got.Attempts != 1 {
		t.Fatalf("endpoint %+v", got)
	}
}

// No more deliveries at once than configured, whatever is due.
func TestDeliverNoMoreAtOnceThanConfigured(t *testing.T) {
	o := newOffice(t)
	const atOnce, endpoints = 2, 6
	var busy, most, served atomic.Int32
	release, done := make(chan struct{}), make(chan struct{})
	for range endpoints {
		b := newBackend(t, func(int, http.ResponseWriter, *http.Request) {
			n := busy.Add(1)
			for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
			<-release
			busy.Add(-1)
			if served.Add(1) == endpoints {
				close(done)
			}
		})
		o.add(b.URL)
	}
	o.happen(1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	d := o.deliverer(func(c *DeliverConfig) { c.AtOnce = atOnce })
	go func() { d.Run(ctx); close(ended) }()
	for busy.Load() < atOnce {
		pause(t)
	}
	for range 100 { // for one more to come
		pause(t)
	}
	for range endpoints {
		release <- struct{}{}
	}
	<-done
	stop()
	<-ended
	if most.Load() != atOnce {
		t.Fatalf("%d deliveries at once, want %d", most.Load(), atOnce)
	}
}

// Without a wake-up, as after a commit by another replica, the timer finds what is there.
func TestDeliverWithoutAWakeUp(t *testing.T) {
	o := newOffice(t)
	got := make(chan struct{})
	b := newBackend(t, func(int, http.ResponseWriter, *http.Request) { close(got) })
	o.add(b.URL)
	waits := make(chan time.Duration)
	d := o.deliverer(func(c *DeliverConfig) {
		c.Wait = func(ctx context.Context, _ <-chan struct{}, atMost time.Duration) {
			select {
			case waits <- atMost:
			case <-ctx.Done():
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	if atMost := <-waits; atMost > time.Second {
		t.Fatalf("it would look again after %s only", atMost)
	}
	o.wake = &offers.Wake{} // nobody listens to this one
	o.happen(1)
	<-waits
	<-got
	stop()
	<-ended
}

func TestDeliverByTLSOnlyToWhomWeTrust(t *testing.T) {
	o := newOffice(t)
	b := &backend{}
	b.Server = httptest.NewTLSServer(b.handler(t, takes))
	t.Cleanup(b.Close)
	b.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	e := o.add(b.URL)
	o.happen(1)
	o.once(o.deliverer(), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedTLS || len(b.got()) != 0 {
		t.Fatalf("endpoint %+v", got)
	}
	o.advance(time.Minute)
	roots := x509.NewCertPool()
	roots.AddCert(b.Certificate())
	o.once(o.deliverer(func(c *DeliverConfig) { c.Roots = roots }), true)
	if got := o.endpoint(e.ID); got.Seq != 1 {
		t.Fatalf("endpoint %+v", got)
	}
}

func TestDeliverSignsNothingWithoutASecret(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, takes)
	for _, secret := range []string{"", "whsec_", "whsec_c2hvcnQ="} {
		e := offers.Endpoint{ID: offers.NewID(), AccountID: people.DefaultAccount, URL: b.URL, Secret: secret}
		must(t, o.store.AddEndpoint(t.Context(), e))
		o.happen(1)
		o.once(o.deliverer(), true)
		if got := o.endpoint(e.ID); got.LastFailure != offers.FailedSecret || got.Seq != 0 {
			t.Fatalf("endpoint %+v", got)
		}
		must(t, o.store.RemoveEndpoint(t.Context(), e.AccountID, e.ID))
	}
	if n := len(b.got()); n != 0 {
		t.Fatalf("%d events went out", n)
	}
}

func TestDeliverKeepsURLsSecretsAndTextsOutOfLogs(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, takes)
	e := o.add(b.URL + "/?token=hush")
	b.Close()
	o.happen(1)
	o.once(o.deliverer(), true)
	log := o.log.String()
	for _, secret := range []string{"hush", e.Secret, "127.0.0.1", "more", "sim:"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q: %s", secret, log)
		}
	}
	if !strings.Contains(log, e.ID) || !strings.Contains(log, string(offers.FailedConnection)) {
		t.Errorf("the log does not say what failed: %s", log)
	}
}
