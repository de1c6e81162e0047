package channel

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

const (
	account = "AC00000000000000000000000000000000"
	token   = "notasecret1token"
	service = "MG00000000000000000000000000000001"
	ours    = "+12025550199"
	theirs  = people.Address("sms:+12025550102")
	madeSID = "SM0123456789abcdef0123456789abcdef"
)

var (
	text     = offers.Outgoing{From: "sms:" + ours, To: theirs, Body: "Send “Q3 numbers”?\nYES or NO"}
	unknown  = offers.SendResult{}
	accepted = offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: madeSID}
)

func same(a, b offers.SendResult) bool { return reflect.DeepEqual(a, b) }

func rejected(code int) offers.SendResult {
	return offers.SendResult{Outcome: offers.OutcomeRejected, Code: code}
}

// api imitates the Messages API: each request takes the next of the answers.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	forms   []url.Values
	paths   []string
	auth    []string
}

func newAPI(t *testing.T, answers ...http.HandlerFunc) *api {
	t.Helper()
	a := &api{answers: answers}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(raw))
	user, password, _ := r.BasicAuth()
	a.mu.Lock()
	n := len(a.forms)
	a.forms = append(a.forms, form)
	a.paths = append(a.paths, r.Method+" "+r.URL.Path)
	a.auth = append(a.auth, user+":"+password)
	a.mu.Unlock()
	if n >= len(a.answers) {
		http.Error(w, "no more answers", http.StatusTeapot)
		return
	}
	a.answers[n](w, r)
}

func (a *api) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.forms)
}

func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func failure(status, code int, header ...string) http.HandlerFunc {
	return answer(status, `{"code":`+strconv.Itoa(code)+`,"message":"about +12025550102: Send “Q3 numbers”?","more_info":"https://www.twilio.com/docs/errors","status":`+strconv.Itoa(status)+`}`, header...)
}

func created(state, errorCode string) string {
	return `{"sid":"` + madeSID + `","account_sid":"` + account + `","status":"` + state + `","error_code":` + errorCode +
		`,"body":"…","num_segments":"1","num_media":"0","direction":"outbound-api","from":"` + ours + `","to":"+12025550102",` +
		`"date_created":"Sun, 29 Nov 2026 10:00:00 +0000","price":null,"uri":"/2010-04-01/Accounts/x/Messages/y.json","subresource_uris":{"media":"z"}}`
}

var ok = answer(http.StatusCreated, created("queued", "null"))

// clock is a Wait that takes no time and notes how long it was to take.
type clock struct{ waits []time.Duration }

func (c *clock) wait(ctx context.Context, d time.Duration) error {
	c.waits = append(c.waits, d)
	return ctx.Err()
}

func sender(t *testing.T, base string, change ...func(*TwilioConfig)) (*Twilio, *clock) {
	t.Helper()
	c := &clock{}
	cfg := TwilioConfig{AccountSID: account, AuthToken: token, From: ours, BaseURL: base, Wait: c.wait}
	for _, f := range change {
		f(&cfg)
	}
	tw, err := NewTwilio(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tw, c
}

func TestTwilioRequest(t *testing.T) {
	a := newAPI(t, ok)
	tw, _ := sender(t, a.URL+"/proxy/", func(c *TwilioConfig) { c.StatusCallback = "https://approve.example.test/webhooks/twilio/status" })
	if got := tw.Send(t.Context(), text); !same(got, accepted) {
		t.Fatalf("%+v", got)
	}
	want := url.Values{
		"From": {ours}, "To": {"+12025550102"}, "Body": {text.Body},
		"StatusCallback": {"https://approve.example.test/webhooks/twilio/status"},
	}
	if got := a.forms[0].Encode(); got != want.Encode() {
		t.Errorf("form %s, want %s", got, want.Encode())
	}
	if got := a.paths[0]; got != "POST /proxy/2010-04-01/Accounts/"+account+"/Messages.json" {
		t.Errorf("request %s", got)
	}
	if a.auth[0] != account+":"+token {
		t.Error("not authenticated as the account")
	}
}

func TestTwilioCallbackNamesTheText(t *testing.T) {
	const at = "https://approve.example.test/webhooks/twilio/status"
	for want, m := range map[string]offers.Outgoing{
		at:                                 {},
		at + "?text=0198-aa":               {TextID: "0198-aa"},
		at + "?text=0198-aa&part=2&of=3":   {TextID: "0198-aa", Part: 2, Parts: 3},
		at + "?text=%26of%3D1&part=1&of=4": {TextID: "&of=1", Part: 1, Parts: 4},
	} {
		a := newAPI(t, ok)
		tw, _ := sender(t, a.URL, func(c *TwilioConfig) { c.StatusCallback = at })
		m.To, m.Body = theirs, "x"
		tw.Send(t.Context(), m)
		if got := a.forms[0].Get("StatusCallback"); got != want {
			t.Errorf("callback %s, want %s", got, want)
		}
	}
}

func TestTwilioFrom(t *testing.T) {
	for name, c := range map[string]struct {
		configured string
		message    offers.Outgoing
		want       url.Values
	}{
		"the number":            {ours, offers.Outgoing{To: theirs, Body: "x"}, url.Values{"From": {ours}}},
		"the message's number":  {ours, offers.Outgoing{From: "sms:+12025550198", To: theirs, Body: "x"}, url.Values{"From": {"+12025550198"}}},
		"a service":             {service, offers.Outgoing{To: theirs, Body: "x"}, url.Values{"MessagingServiceSid": {service}}},
		"a number of a service": {service, text, url.Values{"MessagingServiceSid": {service}, "From": {ours}}},
		"whatsapp": {"whatsapp:" + ours, offers.Outgoing{To: "whatsapp:+12025550102", Body: "x"},
			url.Values{"From": {"whatsapp:" + ours}, "To": {"whatsapp:+12025550102"}}},
		"whatsapp beside sms": {ours, offers.Outgoing{From: "whatsapp:" + ours, To: "whatsapp:+12025550102", Body: "x"},
			url.Values{"From": {"whatsapp:" + ours}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, ok)
			tw, _ := sender(t, a.URL, func(cfg *TwilioConfig) { cfg.From = c.configured })
			if got := tw.Send(t.Context(), c.message); !same(got, accepted) {
				t.Fatalf("%+v", got)
			}
			for _, field := range []string{"From", "MessagingServiceSid"} {
				if got := a.forms[0][field]; !slices.Equal(got, c.want[field]) {
					t.Errorf("%s %q, want %q", field, got, c.want[field])
				}
			}
			if want := c.want["To"]; want != nil && !slices.Equal(a.forms[0]["To"], want) {
				t.Errorf("To %q, want %q", a.forms[0]["To"], want)
			}
		})
	}
}

// What an answer means, and how often was asked.
func TestTwilioOutcome(t *testing.T) {
	busy := failure(429, 20429)
	for name, c := range map[string]struct {
		answers  []http.HandlerFunc
		want     offers.SendResult
		requests int
	}{
		"created":                   {[]http.HandlerFunc{ok}, accepted, 1},
		"200":                       {[]http.HandlerFunc{answer(200, created("accepted", "null"))}, accepted, 1},
		"created but failed":        {[]http.HandlerFunc{answer(201, created("failed", "30007"))}, rejected(30007), 1},
		"created, failed, no code":  {[]http.HandlerFunc{answer(201, created("failed", "null"))}, offers.SendResult{ProviderID: madeSID}, 1},
		"opted out":                 {[]http.HandlerFunc{failure(400, 21610)}, rejected(21610), 1},
		"bad number":                {[]http.HandlerFunc{failure(400, 21211)}, rejected(21211), 1},
		"not mobile":                {[]http.HandlerFunc{failure(400, 21614)}, rejected(21614), 1},
		"filtered":                  {[]http.HandlerFunc{failure(403, 30007)}, rejected(30007), 1},
		"wrong token":               {[]http.HandlerFunc{failure(401, 20003)}, rejected(20003), 1},
		"busy, then in":             {[]http.HandlerFunc{busy, ok}, accepted, 2},
		"busy without a body":       {[]http.HandlerFunc{answer(429, ""), ok}, accepted, 2},
		"busy for long":             {[]http.HandlerFunc{busy, busy, busy, ok}, rejected(20429), 3},
		"busy for an hour":          {[]http.HandlerFunc{failure(429, 20429, "Retry-After", "3600"), ok}, rejected(20429), 1},
		"busy, then opted out":      {[]http.HandlerFunc{busy, failure(400, 21610)}, rejected(21610), 2},
		"busy, then in doubt":       {[]http.HandlerFunc{busy, failure(500, 20500), ok}, unknown, 2},
		"overloaded, then in":       {[]http.HandlerFunc{failure(503, 20503), ok}, accepted, 2},
		"overloaded for long":       {[]http.HandlerFunc{failure(503, 20503), failure(503, 20503), failure(503, 20503), ok}, unknown, 3},
		"503 of somebody else":      {[]http.HandlerFunc{answer(503, "<html>down"), ok}, unknown, 1},
		"503 with another code":     {[]http.HandlerFunc{failure(503, 20500), ok}, unknown, 1},
		"500":                       {[]http.HandlerFunc{failure(500, 20500), ok}, unknown, 1},
		"500 without a body":        {[]http.HandlerFunc{answer(500, ""), ok}, unknown, 1},
		"502":                       {[]http.HandlerFunc{answer(502, "<html>bad gateway"), ok}, unknown, 1},
		"504":                       {[]http.HandlerFunc{answer(504, "{}"), ok}, unknown, 1},
		"408":                       {[]http.HandlerFunc{failure(408, 20408), ok}, unknown, 1},
		"400 of somebody else":      {[]http.HandlerFunc{answer(400, "<html>no"), ok}, unknown, 1},
		"404 without a code":        {[]http.HandlerFunc{answer(404, "{}"), ok}, unknown, 1},
		"200 that is no JSON":       {[]http.HandlerFunc{answer(200, "<html>welcome"), ok}, unknown, 1},
		"200 that is empty":         {[]http.HandlerFunc{answer(200, ""), ok}, unknown, 1},
		"200 without sid":           {[]http.HandlerFunc{answer(200, `{"status":"queued"}`), ok}, unknown, 1},
		"200 with an odd sid":       {[]http.HandlerFunc{answer(200, `{"sid":"SM1","status":"queued"}`), ok}, unknown, 1},
		"200 of another resource":   {[]http.HandlerFunc{answer(200, `{"sid":"CA0123456789abcdef0123456789abcdef"}`), ok}, unknown, 1},
		"200 without end":           {[]http.HandlerFunc{answer(200, `{"body":"`+strings.Repeat("x", answerLimit)+`","sid":"`+madeSID+`"}`), ok}, unknown, 1},
		"redirect":                  {[]http.HandlerFunc{answer(307, created("queued", "null"), "Location", "/elsewhere"), ok}, unknown, 1},
		"redirect that sees other":  {[]http.HandlerFunc{answer(303, "", "Location", "/elsewhere"), ok}, unknown, 1},
		"rejected with a v1 answer": {[]http.HandlerFunc{answer(400, `{"code":21610,"message":"m","httpStatusCode":400}`)}, rejected(21610), 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, c.answers...)
			tw, _ := sender(t, a.URL)
			if got := tw.Send(t.Context(), text); !same(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if got := a.requests(); got != c.requests {
				t.Errorf("%d requests, want %d", got, c.requests)
			}
		})
	}
}

func TestTwilioBackOff(t *testing.T) {
	a := newAPI(t, failure(429, 20429), failure(429, 20429, "Retry-After", "2"), ok)
	tw, c := sender(t, a.URL)
	if got := tw.Send(t.Context(), text); !same(got, accepted) {
		t.Fatalf("%+v", got)
	}
	if want := []time.Duration{250 * time.Millisecond, 2 * time.Second}; !slices.Equal(c.waits, want) {
		t.Errorf("waited %v, want %v", c.waits, want)
	}
}

// While it waits, nothing is in doubt: the text is not in.
func TestTwilioContextEndsInTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := newAPI(t, failure(429, 20429), ok)
	tw, _ := sender(t, a.URL, func(cfg *TwilioConfig) {
		cfg.Wait = func(ctx context.Context, _ time.Duration) error {
			cancel()
			return wait(ctx, time.Hour)
		}
	})
	if got := tw.Send(ctx, text); !same(got, rejected(20429)) {
		t.Errorf("%+v", got)
	}
	if a.requests() != 1 {
		t.Errorf("%d requests", a.requests())
	}
}

func TestTwilioConnectionCut(t *testing.T) {
	hangUp := func(first string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = rw.WriteString(first)
			_ = rw.Flush()
			_ = conn.Close()
		}
	}
	for name, first := range map[string]string{
		"before the answer": "",
		"in the headers":    "HTTP/1.1 201 Created\r\nContent-Ty",
		"in the body":       "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n" + created("queued", "null")[:120],
		"in an error":       "HTTP/1.1 400 Bad Request\r\nContent-Length: 900\r\n\r\n{\"code\":21610,",
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, hangUp(first), ok)
			tw, _ := sender(t, a.URL)
			if got := tw.Send(t.Context(), text); !same(got, unknown) {
				t.Errorf("%+v, want unknown", got)
			}
			if a.requests() != 1 {
				t.Errorf("%d requests: a text in doubt was sent again", a.requests())
			}
		})
	}
}

// The answer does not come before the caller gives up.
func TestTwilioCallerGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := newAPI(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}, ok)
	tw, _ := sender(t, a.URL)
	if got := tw.Send(ctx, text); !same(got, unknown) {
		t.Errorf("%+v, want unknown", got)
	}
	if a.requests() != 1 {
		t.Errorf("%d requests", a.requests())
	}
}

// The answer does not come within the time of a try.
func TestTwilioTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
		defer transport.CloseIdleConnections()
		go func() { _, _ = io.Copy(io.Discard, far) }() // reads all, says nothing
		tw, c := sender(t, "http://api.example.test", func(cfg *TwilioConfig) { cfg.Transport = transport })
		began := time.Now()
		if got := tw.Send(t.Context(), text); !same(got, unknown) {
			t.Errorf("%+v, want unknown", got)
		}
		if took := time.Since(began); took != attemptTimeout || len(c.waits) != 0 {
			t.Errorf("took %v with %d waits, want %v and none", took, len(c.waits), attemptTimeout)
		}
	})
}

// No connection: nothing was written, so that a further try repeats nothing.
func TestTwilioNoConnection(t *testing.T) {
	dial := func(fail int, then net.Addr) (*http.Transport, *int) {
		dials := 0
		return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if dials++; dials <= fail {
				return nil, errors.New("connection refused")
			}
			return (&net.Dialer{}).DialContext(ctx, network, then.String())
		}}, &dials
	}
	a := newAPI(t, ok)
	transport, dials := dial(2, a.Listener.Addr())
	defer transport.CloseIdleConnections()
	tw, c := sender(t, a.URL, func(cfg *TwilioConfig) { cfg.Transport = transport })
	if got := tw.Send(t.Context(), text); !same(got, accepted) || *dials != 3 || len(c.waits) != 2 {
		t.Errorf("%+v after %d dials and %d waits", got, *dials, len(c.waits))
	}

	transport, dials = dial(99, nil)
	tw, _ = sender(t, a.URL, func(cfg *TwilioConfig) { cfg.Transport = transport })
	if got := tw.Send(t.Context(), text); !same(got, rejected(CodeNotSent)) || *dials != 3 {
		t.Errorf("%+v after %d dials, want not sent after 3", got, *dials)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := a.requests()
	tw, _ = sender(t, a.URL)
	if got := tw.Send(ended, text); !same(got, rejected(CodeNotSent)) || a.requests() != before {
		t.Errorf("%+v under a context that had ended", got)
	}
}

// Should the library repeat a request by itself, as it does for other services,
// the second does not leave.
func TestTwilioOneRequestInOneTry(t *testing.T) {
	a := newAPI(t, ok, ok)
	base, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &flight{ctx: t.Context(), base: base, next: http.DefaultTransport}
	for try := range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, twilioAPI+"/x", strings.NewReader("Body=x"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := f.RoundTrip(r)
		if (err == nil) != (try == 0) {
			t.Errorf("request %d: %v", try+1, err)
		}
		if err == nil {
			_ = res.Body.Close()
		}
	}
	if a.requests() != 1 {
		t.Errorf("%d requests", a.requests())
	}
}

// A certificate that does not hold will not hold in a second either, and the
// token is not shown to its owner.
func TestTwilioUntrustedServer(t *testing.T) {
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	tw, c := sender(t, server.URL)
	if got := tw.Send(t.Context(), text); !same(got, rejected(CodeNotSent)) || asked != 0 || len(c.waits) != 0 {
		t.Errorf("%+v, %d requests, %d waits", got, asked, len(c.waits))
	}
}

// What cannot arrive as it was written is not sent at all.
func TestTwilioRefusesBeforeSending(t *testing.T) {
	for name, c := range map[string]struct {
		message offers.Outgoing
		code    int
	}{
		"no address":         {offers.Outgoing{Body: "x"}, CodeBadTo},
		"bare number":        {offers.Outgoing{To: "+12025550102", Body: "x"}, CodeBadTo},
		"other spelling":     {offers.Outgoing{To: "sms:12025550102", Body: "x"}, CodeBadTo},
		"simulated phone":    {offers.Outgoing{To: "sim:alex", Body: "x"}, CodeBadTo},
		"from simulated":     {offers.Outgoing{From: "sim:countersign", To: theirs, Body: "x"}, CodeBadFrom},
		"from bare number":   {offers.Outgoing{From: ours, To: theirs, Body: "x"}, CodeBadFrom},
		"whatsapp from sms":  {offers.Outgoing{To: "whatsapp:+12025550102", Body: "x"}, CodeMixedChannels},
		"sms from whatsapp":  {offers.Outgoing{From: "whatsapp:" + ours, To: theirs, Body: "x"}, CodeMixedChannels},
		"empty":              {offers.Outgoing{To: theirs}, CodeBadBody},
		"blank":              {offers.Outgoing{To: theirs, Body: " \n"}, CodeBadBody},
		"not UTF-8":          {offers.Outgoing{To: theirs, Body: "ok\xff"}, CodeBadBody},
		"NUL":                {offers.Outgoing{To: theirs, Body: "yes\x00no"}, CodeBadBody},
		"too long":           {offers.Outgoing{To: theirs, Body: strings.Repeat("x", 1601)}, CodeTooLong},
		"too long in UTF-16": {offers.Outgoing{To: theirs, Body: strings.Repeat("👍", 801)}, CodeTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, ok)
			tw, _ := sender(t, a.URL)
			if got := tw.Send(t.Context(), c.message); !same(got, rejected(c.code)) || a.requests() != 0 {
				t.Errorf("%+v after %d requests, want %d after none", got, a.requests(), c.code)
			}
		})
	}
}

// Arguments are not cut to fit: the longest text arrives whole, a longer one not
// at all.
func TestCase_TF03_NothingIsCut(t *testing.T) {
	tail := " and delete the archive"
	a := newAPI(t, ok)
	tw, _ := sender(t, a.URL)
	whole := strings.Repeat("x", tw.Limit()-len(tail)) + tail
	if got := tw.Send(t.Context(), offers.Outgoing{To: theirs, Body: whole}); !same(got, accepted) {
		t.Fatalf("%+v", got)
	}
	if a.forms[0].Get("Body") != whole {
		t.Error("the body on the wire is not the body that was given")
	}
	longer := "to: ops@example.test\nbody: " + strings.Repeat("x", 1600) + tail
	if got := tw.Send(t.Context(), offers.Outgoing{To: theirs, Body: longer}); !same(got, rejected(CodeTooLong)) || a.requests() != 1 {
		t.Errorf("%+v after %d requests", got, a.requests())
	}
	sim := NewSim(time.Now)
	if got := sim.Send(t.Context(), offers.Outgoing{To: "sim:alex", Body: longer}); !same(got, rejected(CodeTooLong)) || len(sim.Texts("sim:alex")) != 0 {
		t.Errorf("simulated phone: %+v", got)
	}
}

func TestTwilioLogsNoWords(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, h := range []http.HandlerFunc{ok, failure(400, 21610), failure(500, 20500), answer(200, "<html>"+text.Body)} {
		a := newAPI(t, h)
		tw, _ := sender(t, a.URL, func(cfg *TwilioConfig) { cfg.Log = log })
		tw.Send(t.Context(), text)
	}
	log.Info("x", "message", text, "simulated", SimText{ID: "1", To: theirs, Body: text.Body})
	for _, secret := range []string{"5550102", "5550199", "Q3", token} {
		if strings.Contains(logged.String(), secret) {
			t.Errorf("the log shows %q", secret)
		}
	}
	for _, outcome := range []string{"accepted", "rejected", "unknown", "21610"} {
		if !strings.Contains(logged.String(), outcome) {
			t.Errorf("the log does not say %q", outcome)
		}
	}
}

func TestNewTwilioRefusesBadConfiguration(t *testing.T) {
	for name, change := range map[string]func(*TwilioConfig){
		"no account":       func(c *TwilioConfig) { c.AccountSID = "" },
		"account is a key": func(c *TwilioConfig) { c.AccountSID = "SK00000000000000000000000000000000" },
		"no token":         func(c *TwilioConfig) { c.AuthToken = "" },
		"token with space": func(c *TwilioConfig) { c.AuthToken = token + "\n" },
		"no from":          func(c *TwilioConfig) { c.From = "" },
		"from a name":      func(c *TwilioConfig) { c.From = "ACME" },
		"from simulated":   func(c *TwilioConfig) { c.From = "sim:countersign" },
		"odd service":      func(c *TwilioConfig) { c.From = "MG1" },
		"base without http": func(c *TwilioConfig) {
			c.BaseURL = "api.example.test"
		},
		"base with user":  func(c *TwilioConfig) { c.BaseURL = "https://u:p@api.example.test" },
		"base with query": func(c *TwilioConfig) { c.BaseURL = "https://api.example.test/?a=" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := TwilioConfig{AccountSID: account, AuthToken: token, From: ours}
			change(&cfg)
			tw, err := NewTwilio(cfg)
			if err == nil || tw != nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
	tw, err := NewTwilio(TwilioConfig{AccountSID: account, AuthToken: token, From: ours})
	if err != nil || tw.base.String() != "https://api.twilio.com" {
		t.Errorf("defaults: %v", err)
	}
}
