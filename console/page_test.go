package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/console"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

const base = "https://approve.example.test"

// world is a store with one person, whose offers have pages.
type world struct {
	t       *testing.T
	store   *sqlite.Store
	service *offers.Service
	page    http.Handler
	policy  *gate.Policy
	person  people.Person
	ahead   atomic.Int64
	keys    int
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "page.db"), sqlite.WithClock(w.now)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	if _, err := w.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.policy, err = gate.Sample(); err != nil {
		t.Fatal(err)
	}
	w.person = people.Person{
		ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alexandra", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: "sms:+12025550102", OurNumber: "sms:+12025550100"}},
	}
	if err := w.store.AddPerson(t.Context(), w.person); err != nil {
		t.Fatal(err)
	}
	w.service = offers.NewService(w.store, w.policy, func(string) int { return 1600 }, offers.WithPages(base))
	w.page = w.handler(w.store, w.policy)
	return w
}

func (w *world) handler(pages offers.Pages, policy *gate.Policy) http.Handler {
	w.t.Helper()
	p, err := console.NewPage(pages, policy, w.now, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// offer proposes an email whose body is long, and shows it.
func (w *world) offer(body string) offers.Offer {
	w.t.Helper()
	w.keys++
	args, err := json.Marshal(map[string]any{"to": []string{"dana@example.test"}, "subject": "Report <b>7</b>", "body": body})
	if err != nil {
		w.t.Fatal(err)
	}
	op, _, err := w.service.Propose(w.t.Context(), offers.Request{
		AccountID: w.person.AccountID, Call: "POST /v1/offers", Key: fmt.Sprint(w.keys), PersonID: w.person.ID, Kind: "tool_call", Tool: "email.send", Args: args,
	})
	if err != nil || op.Offer == nil {
		w.t.Fatalf("%+v, %v", op, err)
	}
	for {
		text, err := w.store.Reserve(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if text == nil {
			break
		}
		if err := w.store.Sent(w.t.Context(), text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: text.ID}); err != nil {
			w.t.Fatal(err)
		}
	}
	o, err := w.store.Offer(w.t.Context(), w.person.AccountID, op.Offer.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

var link = regexp.MustCompile(`https://approve\.example\.test(/o/[A-Z2-7]{26})\n`)

// path takes the page's path out of the shown text.
func (w *world) path(o offers.Offer) string {
	w.t.Helper()
	m := link.FindStringSubmatch(o.ShownText)
	if m == nil {
		w.t.Fatalf("no link in %q", o.ShownText)
	}
	return m[1]
}

func (w *world) do(method, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	w.page.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	return rec
}

func long() string {
	return strings.Repeat("Line one.\n\nSecond & <script>alert(1)</script> \u202eevil\u200b ...\n", 40)
}

func TestPageShowsTheExactArguments(t *testing.T) {
	w := newWorld(t)
	o := w.offer(long())
	rec := w.do(http.MethodGet, w.path(o))
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatal(rec.Code, rec.Header())
	}
	page := rec.Body.String()
	// What the page shows reads back, with its marks undone, as the arguments that a yes would release.
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)<dt>(.*?)</dt>\n<dd>(.*?)</dd>`).FindAllStringSubmatch(page, -1) {
		v := regexp.MustCompile(`</?mark>`).ReplaceAllString(m[2], "")
		v = html.UnescapeString(v)
		for _, c := range []string{"\u202e", "\u200b"} {
			v = strings.ReplaceAll(v, fmt.Sprintf("<U+%04X>", []rune(c)[0]), c)
		}
		got[html.UnescapeString(m[1])] = strings.ReplaceAll(v, "<U+000A>", "\n")
	}
	want := map[string]string{"To": "dana@example.test", "Subject": "Report <b>7</b>", "Text": long()}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d arguments, want %d", len(got), len(want))
	}
	for _, s := range []string{"<mark>&lt;U&#43;202E&gt;</mark>", "This sends to dana@example.test.", "Send email"} {
		if !strings.Contains(page, s) {
			t.Errorf("the page has no %q", s)
		}
	}
	// Nobody is named, nothing can be pressed, nothing is loaded.
	for _, s := range []string{w.person.Name, w.person.ID, "12025550102", o.ID, o.OperationID, "<script", "<form", "<button", "<a ", "<img", "<link", "http:", "https:", "src=", "href=", "\u202e", "\u200b"} {
		if strings.Contains(page, s) {
			t.Errorf("the page has %q", s)
		}
	}
}

func TestPageHeaders(t *testing.T) {
	w := newWorld(t)
	path := w.path(w.offer(long()))
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, path, 200}, {http.MethodHead, path, 200}, {http.MethodGet, "/o/none", 404}, {http.MethodPost, path, 405},
	} {
		rec := w.do(c.method, c.path)
		if rec.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, rec.Code, c.want)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"X-Robots-Tag": "noindex, nofollow, noarchive, nosnippet", "X-Frame-Options": "DENY",
		} {
			if got := rec.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.path, name, got, want)
			}
		}
		if csp := rec.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") || strings.Contains(csp, "unsafe") {
			t.Errorf("Content-Security-Policy: %q", csp)
		}
		if rec.Header().Get("Set-Cookie") != "" {
			t.Error("a cookie is set")
		}
	}
}

func TestPageTakesNoAnswers(t *testing.T) {
	w := newWorld(t)
	o := w.offer(long())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, "CONFIRM"} {
		rec := w.do(method, w.path(o))
		if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, rec.Code, rec.Header().Get("Allow"))
		}
	}
	// Scanners and previews follow links: looking changes nothing at all.
	before := w.everything(o)
	for range 5 {
		w.do(http.MethodGet, w.path(o))
		w.do(http.MethodHead, w.path(o))
	}
	if after := w.everything(o); after != before {
		t.Errorf("looking changed something:\n%s\n%s", before, after)
	}
}

// everything is what could change by a look.
func (w *world) everything(o offers.Offer) string {
	w.t.Helper()
	ctx := w.t.Context()
	op, err1 := w.store.Operation(ctx, o.AccountID, o.OperationID)
	events, next, err2 := w.store.Events(ctx, o.AccountID, "", 100)
	texts, err3 := w.store.Texts(ctx, o.AccountID, o.PersonID)
	rows, err4 := w.store.Ledger(ctx, o.AccountID, o.PersonID)
	raw, err5 := json.Marshal([]any{op, events, next, texts, rows})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

func TestPageIsGoneWithItsOffer(t *testing.T) {
	w := newWorld(t)
	o := w.offer(long())
	if _, err := w.store.Withdraw(t.Context(), o.AccountID, o.ID, offers.Closer{By: offers.ByAgent}); err != nil {
		t.Fatal(err)
	}
	over := w.offer(long())
	w.ahead.Add(int64(over.TTL + time.Second))
	want := w.do(http.MethodGet, "/o/"+offers.NewToken())
	if want.Code != http.StatusNotFound {
		t.Fatal(want.Code)
	}
	for name, path := range map[string]string{
		"withdrawn": w.path(o), "over": w.path(over), "none": "/o/", "short": w.path(o)[:20], "long": w.path(o) + "A", "lower case": strings.ToLower(w.path(o)),
		"below": w.path(o) + "/x", "a query": "/o/?token=" + w.path(o)[3:],
	} {
		rec := w.do(http.MethodGet, path)
		if rec.Code != want.Code || rec.Body.String() != want.Body.String() || fmt.Sprint(rec.Header()) != fmt.Sprint(want.Header()) {
			t.Errorf("%s differs from an unknown one: %d %s", name, rec.Code, rec.Body)
		}
	}
}

// A template that no longer fits drops nothing: the arguments are shown by their own names.
func TestPageWithAnotherPolicy(t *testing.T) {
	w := newWorld(t)
	o := w.offer(long())
	other, err := gate.ParsePolicy("other", []byte(`version: 1
tools:
  email.send:
    effect: post
    capability: network.send
    label: {verb: send email}
    schema: {type: object, additionalProperties: false, properties: {subject: {type: string}}}
    template: [{prefix: Subject, arg: subject}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []*gate.Policy{other, nil} {
		w.page = w.handler(w.store, policy)
		rec := w.do(http.MethodGet, w.path(o))
		for _, s := range []string{"<dt>body</dt>", "<dt>subject</dt>", "<dt>to 1</dt>", "Second &amp;"} {
			if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), s) {
				t.Errorf("%d, no %q", rec.Code, s)
			}
		}
	}
}

type broken struct{ asked int }

func (b *broken) OfferByToken(context.Context, offers.Digest) (offers.Offer, error) {
	b.asked++
	return offers.Offer{}, io.ErrUnexpectedEOF
}

func TestPageWhenTheStoreFails(t *testing.T) {
	w := newWorld(t)
	b := new(broken)
	w.page = w.handler(b, w.policy)
	rec := w.do(http.MethodGet, "/o/"+offers.NewToken())
	if rec.Code != http.StatusServiceUnavailable || strings.Contains(rec.Body.String(), "EOF") {
		t.Fatal(rec.Code, rec.Body)
	}
	if w.do(http.MethodGet, "/o/x"); b.asked != 1 {
		t.Fatalf("asked %d times: what has not the form of a token is not looked up", b.asked)
	}
}

func TestPageLimits(t *testing.T) {
	w := newWorld(t)
	w.page = w.handler(new(broken), w.policy)
	from := func(addr string) int {
		rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/o/x", nil)
		req.RemoteAddr = addr
		req.Header.Set("X-Forwarded-For", offers.NewID()) // anybody's word
		w.page.ServeHTTP(rec, req)
		if rec.Code == http.StatusTooManyRequests && rec.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		return rec.Code
	}
	at := time.Now()
	w.page = func() http.Handler {
		p, err := console.NewPage(new(broken), w.policy, func() time.Time { return at }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}()
	n := 0
	for n < 100 && from(fmt.Sprintf("192.0.2.1:%d", 1000+n)) == http.StatusNotFound {
		n++
	}
	if n != 30 {
		t.Fatalf("%d at once, want 30", n)
	}
	if from("192.0.2.2:1000") != http.StatusNotFound {
		t.Fatal("one address counts against another")
	}
	at = at.Add(time.Second)
	n = 0
	for n < 100 && from("192.0.2.1:1") == http.StatusNotFound {
		n++
	}
	if n != 5 {
		t.Fatalf("%d a second, want 5", n)
	}
	// However many addresses come, what is remembered of them has an end.
	for i := range 10_000 {
		if from(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&255)) != http.StatusNotFound {
			t.Fatal("a new address is limited")
		}
	}
}
