// Package cases plays what carriers, phones and tired people do, over the wire: signed posts come in at the real doors,
// texts go out through the real sender to a server that answers like the provider's, agents call the real API, and the
// stores are real ones. Only the clock is the test's.
package cases

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what the provider signs with
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/local"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/sqlite"
	"github.com/countersign/countersign/webhook"
)

const (
	publicURL = "https://approve.example.com"
	inbound   = "/webhooks/twilio/messages"
	callbacks = "/webhooks/twilio/status"
	account   = "AC00000000000000000000000000000000"
	token     = "0123456789abcdef0123456789abcdef" // of nobody
	alex      = "+12025550101"
	sam       = "+12025550102"
	stranger  = "+12025550109"
	ours      = "+12025550100"
	minRead   = time.Second
	// read is long enough that an ask can have been read, and that nothing is in the air any more.
	read = 20 * minRead
	// apart is long enough that an ask that ended has nothing to do with the next one.
	apart = 2 * time.Minute
)

type store interface {
	offers.Store
	people.Store
	offers.PromptLine
	Migrate(ctx context.Context) (int, error)
	Close() error
}

// world is one store with everything that a server has around it.
type world struct {
	t   *testing.T
	ctx context.Context

	store store
	again func() store // another process on the same database
	set   func(time.Time)
	calm  func() // waits until the feed shows everything that is committed by now; nil: it always does
	now   time.Time

	wake       *offers.Wake
	processor  *reply.Processor
	dispatcher *offers.Dispatcher
	prompter   *offers.Prompter
	clock      *offers.Clock
	messages   http.Handler
	status     http.Handler
	api        http.Handler
	twilio     *twilio

	person people.Person // Alex
	key    people.Key
	secret string

	mu       sync.Mutex
	received []offers.Received // in order, decided or not
	undone   []offers.Received
	serial   atomic.Int64
	at       string // position in the feed
	log      bytes.Buffer
}

// setup changes how a world is made.
type setup struct {
	public string
	reader classifier.Reader // nil: the built-in one with its calibration
	cfg    reply.Config
}

type option func(*setup)

// newWorld makes a world on a fresh store. Alex is an owner with one number.
func newWorld(t *testing.T, open func(*testing.T, *world) store, options ...option) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), wake: &offers.Wake{}}
	set := setup{public: publicURL, cfg: reply.Config{Threshold: classifier.ActThreshold, MinRead: minRead}}
	for _, o := range options {
		o(&set)
	}
	w.store = open(t, w)
	log := slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if set.reader == nil {
		set.reader, set.cfg.Threshold = builtIn(t)
	}
	policy, err := gate.Sample()
	w.must(err)
	w.processor, err = reply.NewProcessor(w.store, set.reader, set.cfg, w.wake, log)
	w.must(err)
	doors := webhook.TwilioConfig{PublicURL: set.public + inbound, AuthTokens: []string{token}, AccountSID: account, Numbers: []string{ours, "whatsapp:" + ours}}
	door, err := webhook.NewTwilio(doors)
	w.must(err)
	w.messages = webhook.NewTwilioHandler(door, w, webhook.Options{Log: log})
	doors.PublicURL = set.public + callbacks
	door, err = webhook.NewTwilio(doors)
	w.must(err)
	w.status = webhook.NewTwilioStatusHandler(door, w.store, webhook.Options{Log: log})
	w.twilio = newTwilio(t)
	sender, err := channel.NewTwilio(channel.TwilioConfig{
		AccountSID: account, AuthToken: token, From: ours, BaseURL: w.twilio.URL, StatusCallback: set.public + callbacks,
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	w.must(err)
	w.dispatcher = offers.NewDispatcher(w.store, sender, w.wake, log, 1)
	w.prompter = offers.NewPrompter(w.store, sender, w.wake, log)
	w.clock = offers.NewClock(w.store, w.wake, log, 0, w.store.ForgetPending)
	w.api = api.New(api.Deps{
		Keys: w.store, Store: w.store, Proposer: offers.NewService(w.store, policy, func(string) int { return sender.Limit() }),
		Confirms: reply.NewConfirmer(w.store, minRead, w.wake), Wake: w.wake, Log: log, Version: "test",
	})
	w.person = w.add("sms:" + alex)
	w.key, w.secret = w.newKey()
	return w
}

// builtIn is the product's own reader, and the threshold that its calibration sets. It is made once for all.
var builtIn = func() func(t *testing.T) (classifier.Reader, float64) {
	made := sync.OnceValues(func() (*calibration.Reader, error) {
		inner, err := local.New()
		if err != nil {
			return nil, err
		}
		f, err := calibration.Load(local.CalibrationFile())
		if err != nil {
			return nil, err
		}
		r := calibration.Calibrated(inner, f, inner)
		return r, r.Err()
	})
	return func(t *testing.T) (classifier.Reader, float64) {
		t.Helper()
		r, err := made()
		if err != nil {
			t.Fatal(err)
		}
		f, err := calibration.Load(local.CalibrationFile())
		if err != nil {
			t.Fatal(err)
		}
		return r, max(f.Threshold, classifier.ActThreshold)
	}
}()

func onSQLite(t *testing.T, w *world) store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cases.db")
	var now atomic.Int64
	w.set = func(at time.Time) { now.Store(at.UnixMicro()) }
	w.set(w.now)
	w.again = func() store {
		s, err := sqlite.Open(t.Context(), path, sqlite.WithClock(func() time.Time { return time.UnixMicro(now.Load()) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := w.again()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// onPostgres makes a database whose schema reads a time that the test sets.
func onPostgres(t *testing.T, w *world) store {
	t.Helper()
	dbURL := pgtest.Template(t, "cases", func(dbURL string) error {
		ctx := context.Background()
		s, err := postgres.Open(ctx, dbURL)
		if err != nil {
			return err
		}
		defer s.Close() //nolint:errcheck // a test's pool
		if _, err := s.Migrate(ctx); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, dbURL)
		if err != nil {
			return err
		}
		defer conn.Close(ctx) //nolint:errcheck // a test's connection
		_, err = conn.Exec(ctx, `CREATE TABLE test_clock (at timestamptz NOT NULL); INSERT INTO test_clock VALUES (now());
			CREATE OR REPLACE FUNCTION cs_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM test_clock'`)
		return err
	})
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dbURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	w.set = func(at time.Time) {
		if _, err := conn.Exec(ctx, `UPDATE test_clock SET at = $1`, at); err != nil {
			t.Fatal(err)
		}
	}
	w.set(w.now)
	// The feed stops at the oldest transaction that runs, in whichever database of the server.
	w.calm = func() {
		var upTo, oldest int64
		if err := conn.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`).Scan(&upTo); err != nil {
			t.Fatal(err)
		}
		for oldest < upTo {
			if err := conn.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM pg_sleep(0.002)`).Scan(&oldest); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.again = func() store {
		s, err := postgres.Open(ctx, dbURL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return w.again()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// add makes an active owner with these addresses.
func (w *world) add(addresses ...people.Address) people.Person {
	w.t.Helper()
	p := people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active}
	for _, a := range addresses {
		our := people.Address("sms:" + ours)
		if a.Channel() == "whatsapp" {
			our = "whatsapp:" + ours
		}
		p.Addresses = append(p.Addresses, people.Binding{Address: a, OurNumber: our})
	}
	w.must(w.store.AddPerson(w.ctx, p))
	return p
}

func (w *world) newKey() (people.Key, string) {
	w.t.Helper()
	secret, hash := people.NewSecret()
	k := people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "agent", Scope: people.ScopeAgent}
	w.must(w.store.AddKey(w.ctx, k, hash))
	return k, secret
}

// pass lets time go by, with what it brings and what is then sent.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	w.set(w.now)
	w.must(w.clock.Once(w.ctx))
	w.send()
}

// send sends what is in line.
func (w *world) send() {
	w.t.Helper()
	for _, next := range []func(context.Context) (bool, error){w.dispatcher.Once, w.prompter.Once} {
		for {
			sent, err := next(w.ctx)
			w.must(err)
			if !sent {
				break
			}
		}
	}
}

// Receive implements [webhook.Intake]: it stores as a server does, and leaves the decision to the test.
func (w *world) Receive(ctx context.Context, in webhook.Inbound) (<-chan struct{}, error) {
	r, err := w.store.Receive(ctx, asServed(in))
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.Duplicate {
		w.received = append(w.received, r)
		w.undone = append(w.undone, r)
	}
	return nil, nil
}

// asServed is what a server makes of a proven message before it stores it.
func asServed(in webhook.Inbound) offers.Inbound {
	out := offers.Inbound{
		Provider: in.Provider, ProviderID: in.ProviderSID, Address: in.From, OurNumber: in.To, Text: string(in.Text), Raw: in.Raw,
		Quoted: in.OriginalRepliedMessageSid, OptOut: in.OptOutType, Name: people.CleanName(string(in.ProfileName)),
	}
	switch k := classifier.KeywordOf(classifier.NewWords(out.Text)); {
	case in.OptOutType != "":
		out.Keyword = people.Keyword(in.OptOutType)
	case k == classifier.KeywordStop:
		out.Keyword = people.KeywordStop
	case k == classifier.KeywordStart:
		out.Keyword = people.KeywordStart
	case k == classifier.KeywordHelp:
		out.Keyword = people.KeywordHelp
	}
	button := in.ButtonPayload != "" || in.ButtonText != ""
	if button {
		if words := classifier.FromButton(string(in.ButtonPayload), string(in.ButtonText)).String(); words != "" {
			out.Text = words
		}
	}
	out.Lossy = in.Lossy || in.NumMedia > 0 || len(in.OtherRecipients) > 0 || button && out.Quoted == ""
	return out
}

// decide decides what was stored, and sends what follows.
func (w *world) decide() {
	w.t.Helper()
	w.mu.Lock()
	list := w.undone
	w.undone = nil
	w.mu.Unlock()
	for _, r := range list {
		w.must(w.processor.Process(w.ctx, r))
	}
	w.send()
}

// form is a post's fields in order: name, value, name, value …
type form []string

func (f form) encode() string {
	var parts []string
	for i := 0; i+1 < len(f); i += 2 {
		parts = append(parts, url.QueryEscape(f[i])+"="+url.QueryEscape(f[i+1]))
	}
	return strings.Join(parts, "&")
}

// with sets a field.
func (f form) with(name, value string) form {
	out := slices.Clone(f)
	for i := 0; i+1 < len(out); i += 2 {
		if out[i] == name {
			out[i+1] = value
			return out
		}
	}
	return append(out, name, value)
}

// text is the form of a text from a number, under an id of its own.
func (w *world) text(from, body string) form {
	sid := w.sid("SM")
	return form{
		"MessageSid", sid, "SmsSid", sid, "SmsMessageSid", sid, "AccountSid", account, "From", from, "To", ours, "Body", body, "NumMedia", "0",
		"NumSegments", "1", "SmsStatus", "received", "ApiVersion", "2010-04-01",
	}
}

func (w *world) sid(prefix string) string {
	return fmt.Sprintf("%s%032x", prefix, 0xabc000+w.serial.Add(1))
}

// sign signs as the provider documents it: the URL, then every name and value, sorted by name, a repeated value once.
func sign(key, fullURL, body string) string {
	values, err := url.ParseQuery(body)
	if err != nil {
		return ""
	}
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	slices.Sort(names)
	signed := fullURL
	for _, n := range names {
		list := slices.Clone(values[n])
		slices.Sort(list)
		for _, v := range slices.Compact(list) {
			signed += n + v
		}
	}
	mac := hmac.New(sha1.New, []byte(key))
	mac.Write([]byte(signed))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// post is one request of the provider, or of somebody who says so.
type post struct {
	target    string // path and query; empty: the messages' door
	body      string
	signature string // empty: the right one for the public URL
	kind      string // content type; empty: a form
	url       string // that is signed; empty: the public one
}

func (w *world) post(p post) *http.Response {
	w.t.Helper()
	if p.target == "" {
		p.target = inbound
	}
	if p.url == "" {
		p.url = publicURL + p.target
	}
	if p.signature == "" {
		p.signature = sign(token, p.url, p.body)
	}
	if p.kind == "" {
		p.kind = "application/x-www-form-urlencoded"
	}
	r := httptest.NewRequest(http.MethodPost, p.target, strings.NewReader(p.body))
	r.Host = "127.0.0.1:8080" // what a process behind a proxy sees
	r.Header.Set("Content-Type", p.kind)
	r.Header.Set("X-Twilio-Signature", p.signature)
	rec := httptest.NewRecorder()
	door := w.messages
	if strings.HasPrefix(p.target, callbacks) {
		door = w.status
	}
	door.ServeHTTP(rec, r)
	return rec.Result()
}

// comes posts a message that must be acknowledged, and decides it.
func (w *world) comes(f form) *http.Response {
	w.t.Helper()
	res := w.post(post{body: f.encode()})
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("not acknowledged: %d", res.StatusCode)
	}
	w.decide()
	return res
}

// says is a plain text of Alex.
func (w *world) says(words string) { w.t.Helper(); w.comes(w.text(alex, words)) }

// answer is what the API answered.
type answer struct {
	status int
	body   []byte
}

func (a answer) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(a.body, &p)
	return p.Code
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%d: %v", a.status, err)
	}
}

// call calls the API with a key; idem is the Idempotency-Key, where there is to be one.
func (w *world) call(secret, method, path, idem, body string) answer {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(w.ctx)
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	if idem != "" {
		r.Header.Set("Idempotency-Key", idem)
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return answer{rec.Code, rec.Body.Bytes()}
}

// propose enqueues an offer to Alex.
func (w *world) propose(tool, args string, more ...string) answer {
	w.t.Helper()
	body := fmt.Sprintf(`{"address":"sms:%s","tool":%q,"args":%s%s}`, alex, tool, args, strings.Join(more, ""))
	return w.call(w.secret, http.MethodPost, "/v1/offers", fmt.Sprint("k", w.serial.Add(1)), body)
}

// offered enqueues an offer that must be taken, and sends it.
func (w *world) offered(tool, args string, more ...string) offers.Offer {
	w.t.Helper()
	a := w.propose(tool, args, more...)
	if a.status != http.StatusCreated {
		w.t.Fatalf("offer: %d %s", a.status, a.body)
	}
	var o offers.Offer
	a.into(w.t, &o)
	w.send()
	return w.offer(o)
}

// mail offers an email, shown and long enough on the screen to be answered.
func (w *world) mail(to string, more ...string) offers.Offer {
	w.t.Helper()
	o := w.offered("email.send", mailTo(to), more...)
	w.pass(read)
	return w.offer(o)
}

func mailTo(to string) string {
	return fmt.Sprintf(`{"to":[%q],"subject":"Lunch","body":"At noon?"}`, to)
}

const now = `,"present":"now"`

func (w *world) offer(o offers.Offer) offers.Offer {
	w.t.Helper()
	got, err := w.store.Offer(w.ctx, people.DefaultAccount, o.ID)
	w.must(err)
	return got
}

func (w *world) want(o offers.Offer, want offers.State) {
	w.t.Helper()
	if got := w.offer(o).State; got != want {
		w.t.Fatalf("the offer is %s, want %s", got, want)
	}
}

// open demands that nothing was released, nor the offer closed.
func (w *world) open(list ...offers.Offer) {
	w.t.Helper()
	for _, o := range list {
		w.want(o, offers.Open)
	}
}

// releases counts what the ledger says was ever released to a person.
func (w *world) releases(p people.Person) int {
	w.t.Helper()
	rows, err := w.store.Ledger(w.ctx, people.DefaultAccount, p.ID)
	w.must(err)
	n, _, err := ledger.Verify(func(yield func(ledger.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	})
	w.must(err)
	if int(n) != len(rows) {
		w.t.Fatalf("%d rows of %d hold", n, len(rows))
	}
	count := 0
	for _, r := range rows {
		if r.Kind == ledger.Consumed {
			count++
		}
	}
	return count
}

// event is one event with the data that the tests look at.
type event struct {
	Type offers.EventType
	Raw  string
	offers.ReplyData
	Offer     *offers.Offer
	Operation *offers.Operation
}

// events reads what is new in the feed.
func (w *world) events() []event {
	w.t.Helper()
	if w.calm != nil {
		w.calm()
	}
	list, next, err := w.store.Events(w.ctx, people.DefaultAccount, w.at, 1000)
	w.must(err)
	w.at = next
	var out []event
	for _, e := range list {
		x := event{Type: e.Type, Raw: string(e.Data)}
		w.must(json.Unmarshal(e.Data, &x))
		out = append(out, x)
	}
	return out
}

// last is the newest event of a type; there must be one.
func (w *world) last(kind offers.EventType) event {
	w.t.Helper()
	for _, e := range slices.Backward(w.events()) {
		if e.Type == kind {
			return e
		}
	}
	w.t.Fatalf("no event %s", kind)
	return event{}
}

// whys are the reasons of the new events reply.unresolved.
func (w *world) whys() []string {
	w.t.Helper()
	var out []string
	for _, e := range w.events() {
		if e.Type == offers.ReplyUnresolved {
			out = append(out, e.Why)
		}
	}
	return out
}

// clear ends an offer and lets its time pass, so that the next one stands alone.
func (w *world) clear(list ...offers.Offer) {
	w.t.Helper()
	for _, o := range list {
		if _, err := w.store.Withdraw(w.ctx, people.DefaultAccount, o.ID, offers.Closer{By: offers.ByAgent}); err != nil && !errors.Is(err, offers.ErrOfferClosed) {
			w.t.Fatal(err)
		}
	}
	w.pass(apart)
}

// twilio answers as the provider's API for messages does.
type twilio struct {
	*httptest.Server
	mu     sync.Mutex
	sent   []url.Values
	sids   []string
	answer func(n int, f url.Values) (status int, body string) // for the n-th request from 1; empty: accepted
}

func newTwilio(t *testing.T) *twilio {
	t.Helper()
	tw := &twilio{}
	tw.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		f, err2 := url.ParseQuery(string(raw))
		user, pass, _ := r.BasicAuth()
		if err != nil || err2 != nil || user != account || pass != token || r.URL.Path != "/2010-04-01/Accounts/"+account+"/Messages.json" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		tw.mu.Lock()
		defer tw.mu.Unlock()
		n := len(tw.sent) + 1
		sid := fmt.Sprintf("SM%032x", n)
		status, body := http.StatusCreated, fmt.Sprintf(`{"sid":%q,"status":"queued"}`, sid)
		if tw.answer != nil {
			if s, b := tw.answer(n, f); s != 0 {
				status, body = s, b
			}
		}
		tw.sent, tw.sids = append(tw.sent, f), append(tw.sids, sid)
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}))
	t.Cleanup(tw.Close)
	return tw
}

// refuses is the answer of an error with a code.
func refuses(code int) func(int, url.Values) (int, string) {
	return func(int, url.Values) (int, string) {
		return http.StatusBadRequest, fmt.Sprintf(`{"code":%d,"message":"refused","status":400}`, code)
	}
}

// texts are all bodies that were handed to the provider.
func (tw *twilio) texts() []string {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	var out []string
	for _, f := range tw.sent {
		out = append(out, f.Get("Body"))
	}
	return out
}

// newest is the last text and its id.
func (tw *twilio) newest() (body, sid string) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	if len(tw.sent) == 0 {
		return "", ""
	}
	return tw.sent[len(tw.sent)-1].Get("Body"), tw.sids[len(tw.sids)-1]
}

// callback is where the n-th text's callbacks go, from 1: path and query.
func (tw *twilio) callback(n int) string {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	return strings.TrimPrefix(tw.sent[n-1].Get("StatusCallback"), publicURL)
}

// report posts a status callback for the n-th text.
func (w *world) report(n int, status, code string) {
	w.t.Helper()
	f := form{"MessageSid", fmt.Sprintf("SM%032x", n), "AccountSid", account, "From", ours, "To", alex, "MessageStatus", status}
	if code != "" {
		f = append(f, "ErrorCode", code)
	}
	if res := w.post(post{target: w.twilio.callback(n), body: f.encode()}); res.StatusCode != http.StatusOK {
		w.t.Fatalf("callback: %d", res.StatusCode)
	}
	w.send()
}
