package reply

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

const (
	ours    = people.Address("sms:+12025550100")
	minRead = time.Second
)

// script is a reader that knows some answers by heart, and counts what it is shown.
type script struct {
	mu     sync.Mutex
	says   map[string]classifier.Reading // by the person's own words in small letters
	failed error
	seen   []classifier.Input
}

func (s *script) Read(_ context.Context, in classifier.Input) (classifier.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, in)
	if s.failed != nil {
		return classifier.Reading{}, s.failed
	}
	if r, ok := s.says[strings.ToLower(in.Newest.String())]; ok {
		return r, nil
	}
	return classifier.UnclearReading(), nil
}

func (s *script) Fingerprint() string { return "script" }

func (s *script) shown() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// carrier takes texts and answers as it is told; without an answer it accepts.
type carrier struct {
	sent    []offers.Outgoing
	answers []offers.SendResult
}

func (c *carrier) Send(_ context.Context, m offers.Outgoing) offers.SendResult {
	c.sent = append(c.sent, m)
	if len(c.answers) > 0 {
		res := c.answers[0]
		c.answers = c.answers[1:]
		return res
	}
	return offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: sid(len(c.sent))}
}

func (c *carrier) Limit() int { return 320 }

// sid is the provider's id of the n-th text, from 1.
func sid(n int) string { return fmt.Sprintf("SM%032x", n) }

// world is a store in a directory of its own, a clock that only tests move, a carrier and the processor between them.
type world struct {
	t       *testing.T
	ctx     context.Context
	store   *sqlite.Store
	path    string
	ahead   *atomic.Int64
	reader  *script
	carrier *carrier
	cfg     Config
	person  people.Person
	at      string // position in the feed
	serial  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "store.db"), ahead: new(atomic.Int64), carrier: &carrier{},
		cfg: Config{Threshold: classifier.ActThreshold, MinRead: minRead}}
	w.reader = &script{says: map[string]classifier.Reading{}}
	for words, reading := range map[string]string{
		"yes": "confirm 0.99", "y": "confirm 0.97", "no": "decline 0.95", "wait no": "decline 0.9", "make it 300": "modify 0.9",
		"yes but make it 300": "modify 0.8", "hello": "unrelated 0.9", "yeah": "confirm 0.89", "yes! see you at 8": "unrelated 0.8",
	} {
		w.reader.says[words] = reads(t, reading)
	}
	w.store = w.open()
	if _, err := w.store.Migrate(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.person = w.add(gate.TierOwner)
	return w
}

func (w *world) open() *sqlite.Store {
	w.t.Helper()
	s, err := sqlite.Open(w.ctx, w.path, sqlite.WithClock(w.now))
	w.must(err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) now() time.Time {
	return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(w.ahead.Load()))
}

func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(tier string) people.Person {
	w.t.Helper()
	w.serial++
	p := people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: tier, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address(fmt.Sprintf("sms:+12025550%03d", 100+w.serial)), OurNumber: ours}}}
	w.must(w.store.AddPerson(w.ctx, p))
	return p
}

func (w *world) processor() *Processor {
	w.t.Helper()
	p, err := NewProcessor(w.store, w.reader, w.cfg, new(offers.Wake), discard())
	w.must(err)
	return p
}

// draft changes how an offer is made.
type draft func(*offers.Proposal, *offers.Plan)

func labelled(label string) draft {
	return func(_ *offers.Proposal, p *offers.Plan) {
		p.Offer.Label, p.Offer.ShownText = label, strings.ToUpper(label[:1])+label[1:]+"\n"+p.Offer.AskLine
	}
}

func settling(_ *offers.Proposal, p *offers.Plan) { p.Offer.Settle = 30 * time.Second }

func atOnce(pr *offers.Proposal, _ *offers.Plan) { pr.Present = offers.PresentNow }

func superseding(o offers.Offer) draft {
	return func(pr *offers.Proposal, _ *offers.Plan) { pr.Supersedes = o.ID }
}

// offer proposes; nothing is sent yet.
func (w *world) offer(changes ...draft) offers.Offer { return w.offerTo(w.person, changes...) }

func (w *world) offerTo(p people.Person, changes ...draft) offers.Offer {
	w.t.Helper()
	w.serial++
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"to":["dana@example.test"],"subject":"n%d","body":"hello"}`, w.serial))
	w.must(err)
	pr := offers.Proposal{
		AccountID: p.AccountID, Call: "POST /v1/offers", Key: fmt.Sprint("key-", w.serial), BodySum: sum, PersonID: p.ID,
		Kind: string(gate.KindToolCall), Tool: "email.send", Args: args, ArgsSum: sum, Present: offers.PresentQueue,
	}
	plan := func() offers.Plan {
		d := &offers.Draft{Label: "send email to Dana", AskLine: "This sends to dana@example.test. Reply YES or NO.", TTL: 10 * time.Minute}
		d.ShownText = fmt.Sprintf("Send email\nTo: dana@example.test\nSubject: n%d\n%s", w.serial, d.AskLine)
		return offers.Plan{Decision: gate.Decision{Answer: gate.Ask, Reason: gate.ReasonFloorSendOutside, Rule: "3", Tier: p.Tier, Capability: gate.CapNetworkSend}, Offer: d}
	}
	scratch := plan()
	for _, c := range changes {
		c(&pr, &scratch)
	}
	op, _, err := w.store.Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
		out := plan()
		for _, c := range changes {
			c(&offers.Proposal{}, &out)
		}
		sum, err := offers.Binding{AccountID: p.AccountID, OperationID: f.OperationID, PersonID: p.ID, Tool: pr.Tool, ArgsSHA256: offers.Hex(pr.ArgsSum)}.Sum()
		out.Offer.BindingSum = sum
		return out, err
	})
	w.must(err)
	return *op.Offer
}

// send hands every text in line to the carrier.
func (w *world) send() {
	w.t.Helper()
	d := offers.NewDispatcher(w.store, w.carrier, new(offers.Wake), discard(), 1)
	for {
		sent, err := d.Once(w.ctx)
		w.must(err)
		if !sent {
			return
		}
	}
}

// shown proposes, sends, and lets the time pass in which no yes counts.
func (w *world) shown(changes ...draft) offers.Offer {
	w.t.Helper()
	o := w.offer(changes...)
	w.send()
	w.pass(20 * minRead)
	return w.get(o)
}

func (w *world) get(o offers.Offer) offers.Offer {
	w.t.Helper()
	o, err := w.store.Offer(w.ctx, o.AccountID, o.ID)
	w.must(err)
	return o
}

// message makes an inbound text of the person.
func (w *world) message(text string) offers.Inbound {
	w.serial++
	return offers.Inbound{Provider: "twilio", ProviderID: fmt.Sprintf("SMin%028x", w.serial), Address: w.person.Addresses[0].Address,
		OurNumber: ours, Text: text, Raw: []byte(text)}
}

// stored stores a text without deciding it.
func (w *world) stored(text string, changes ...func(*offers.Inbound)) offers.Received {
	w.t.Helper()
	in := w.message(text)
	for _, c := range changes {
		c(&in)
	}
	r, err := w.store.Receive(w.ctx, in)
	w.must(err)
	return r
}

// says stores a text and has it decided.
func (w *world) says(text string, changes ...func(*offers.Inbound)) offers.Received {
	w.t.Helper()
	r := w.stored(text, changes...)
	w.must(w.processor().Process(w.ctx, r))
	return r
}

func quoting(providerID string) func(*offers.Inbound) {
	return func(in *offers.Inbound) { in.Quoted = providerID }
}

func lossy(in *offers.Inbound) { in.Lossy = true }

func optOutType(s string) func(*offers.Inbound) { return func(in *offers.Inbound) { in.OptOut = s } }

func (w *world) wantState(o offers.Offer, want offers.State) {
	w.t.Helper()
	if got := w.get(o).State; got != want {
		w.t.Fatalf("offer is %s, want %s", got, want)
	}
}

func (w *world) wantOp(o offers.Offer, want offers.OpState) {
	w.t.Helper()
	op, err := w.store.Operation(w.ctx, o.AccountID, o.OperationID)
	w.must(err)
	if op.State != want {
		w.t.Fatalf("operation is %s, want %s", op.State, want)
	}
}

// news returns the events since the last call, each as its type, and for a reply its reason behind a slash.
func (w *world) news() []string {
	w.t.Helper()
	list, next, err := w.store.Events(w.ctx, people.DefaultAccount, w.at, 1000)
	w.must(err)
	w.at = next
	var out []string
	for _, e := range list {
		var d offers.ReplyData
		w.must(json.Unmarshal(e.Data, &d))
		out = append(out, strings.Join(slices.DeleteFunc([]string{string(e.Type), d.Why}, func(s string) bool { return s == "" }), "/"))
	}
	return out
}

func (w *world) wantNews(want ...string) {
	w.t.Helper()
	if got := w.news(); !slices.Equal(got, want) {
		w.t.Fatalf("events\n%q, want\n%q", got, want)
	}
}

// texts lists what is and was in line as "kind state", with a star where a text is about an offer.
func (w *world) texts() []string {
	w.t.Helper()
	list, err := w.store.Texts(w.ctx, w.person.AccountID, w.person.ID)
	w.must(err)
	var out []string
	for _, x := range list {
		about := ""
		if x.OfferID != "" {
			about = "*"
		}
		out = append(out, string(x.Kind)+about+" "+string(x.State))
	}
	return out
}

func (w *world) wantTexts(want ...string) {
	w.t.Helper()
	if got := w.texts(); !slices.Equal(got, want) {
		w.t.Fatalf("texts %q, want %q", got, want)
	}
}

func (w *world) lastBody() string {
	w.t.Helper()
	list, err := w.store.Texts(w.ctx, w.person.AccountID, w.person.ID)
	w.must(err)
	if len(list) == 0 {
		w.t.Fatal("no text")
	}
	return slices.MaxFunc(list, func(a, b offers.Text) int { return cmp.Compare(a.Number, b.Number) }).Body
}

// listens has an agent read events just now.
func (w *world) listens() {
	w.t.Helper()
	id := offers.NewID()
	_, hash := people.NewSecret()
	w.must(w.store.AddKey(w.ctx, people.Key{ID: id, AccountID: people.DefaultAccount, Name: "agent", Scope: people.ScopeAgent}, hash))
	w.must(w.store.Polled(w.ctx, id))
}

func (w *world) read(r offers.Received) offers.Received {
	w.t.Helper()
	got, err := w.store.Context(w.ctx, r.MessageID)
	w.must(err)
	return got
}

// breaks changes the file behind the store's back.
func (w *world) breaks(query string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.path+"?_pragma=busy_timeout(5000)")
	w.must(err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(w.ctx, query)
	w.must(err)
}

// due does what time has brought.
func (w *world) due() {
	w.t.Helper()
	w.must(offers.NewClock(w.store, new(offers.Wake), discard(), 0).Once(w.ctx))
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// runs runs a runner until something holds.
func (w *world) runs(r *Runner, holds func() bool) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.ctx, 30*time.Second)
	defer stop()
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	for !holds() {
		if ctx.Err() != nil {
			w.t.Fatal("it never did")
		}
		runtime.Gosched()
	}
	stop()
	<-ended
}
