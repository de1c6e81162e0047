package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	testToken   = "test-token-not-a-secret"
	testURL     = "https://approve.example.test/twilio/inbound"
	testAccount = "AC00000000000000000000000000000000"
	testSID     = "SMa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
	testFrom    = "+15005550101"
	testTo      = "+15005550199"
)

// pairs is a form in order of arrival: name, value, name, value …
type pairs [][2]string

// common is the form that Twilio sends for a plain "yes"; with changes it.
func common() pairs {
	return pairs{
		{"MessageSid", testSID}, {"SmsSid", testSID}, {"SmsMessageSid", testSID},
		{"AccountSid", testAccount}, {"From", testFrom}, {"To", testTo}, {"Body", "yes"},
		{"NumMedia", "0"}, {"NumSegments", "1"}, {"SmsStatus", "received"}, {"ApiVersion", "2010-04-01"},
	}
}

func (p pairs) with(name, value string) pairs {
	out := slices.Clone(p)
	for i := range out {
		if out[i][0] == name {
			out[i][1] = value
			return out
		}
	}
	return append(out, [2]string{name, value})
}

func (p pairs) and(name, value string) pairs {
	return append(slices.Clone(p), [2]string{name, value})
}

func (p pairs) without(name string) pairs {
	return slices.DeleteFunc(slices.Clone(p), func(f [2]string) bool { return f[0] == name })
}

func (p pairs) encode() string {
	parts := make([]string, len(p))
	for i, f := range p {
		parts[i] = url.QueryEscape(f[0]) + "=" + url.QueryEscape(f[1])
	}
	return strings.Join(parts, "&")
}

// reference signs as Twilio documents it, over the standard library's parser:
// a second implementation, so that ours is not its own witness.
func reference(t testing.TB, token, fullURL, body string) string {
	t.Helper()
	values, err := url.ParseQuery(body)
	if err != nil {
		t.Fatalf("reference parser: %v", err)
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	message := fullURL
	for _, name := range names {
		vs := slices.Clone(values[name])
		slices.Sort(vs)
		for _, v := range slices.Compact(vs) {
			message += name + v
		}
	}
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(message))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// inbox is an Intake that remembers for good, by provider id, as a store does.
type inbox struct {
	mu      sync.Mutex
	posts   []Inbound // every call
	rows    map[string]Inbound
	failing error
	decided chan struct{} // what every call returns
}

func (b *inbox) Receive(_ context.Context, in Inbound) (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing != nil {
		return nil, b.failing
	}
	b.posts = append(b.posts, in)
	if b.rows == nil {
		b.rows = map[string]Inbound{}
	}
	if _, seen := b.rows[in.Provider+in.ProviderSID]; !seen {
		b.rows[in.Provider+in.ProviderSID] = in
	}
	return b.decided, nil
}

type request struct {
	method    string
	target    string
	body      string
	header    http.Header
	signature string // set unless header has its own
}

func (q request) http() *http.Request {
	method, target := q.method, q.target
	if method == "" {
		method = http.MethodPost
	}
	if target == "" {
		target = "/twilio/inbound"
	}
	r := httptest.NewRequest(method, target, strings.NewReader(q.body))
	r.Host = "127.0.0.1:8080" // what a process behind a proxy sees
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if q.signature != "" {
		r.Header.Set(SignatureHeader, q.signature)
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	return r
}

func config() TwilioConfig {
	return TwilioConfig{
		PublicURL:  testURL,
		AuthTokens: []string{testToken},
		AccountSID: testAccount,
		Numbers:    []string{testTo, "whatsapp:" + testTo},
	}
}

func newTwilio(t testing.TB, cfg TwilioConfig) *Twilio {
	t.Helper()
	tw, err := NewTwilio(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tw
}

// post sends q through a Twilio door and returns the answer and what was taken.
func post(t testing.TB, cfg TwilioConfig, q request) (*http.Response, *inbox) {
	t.Helper()
	box := &inbox{}
	rec := httptest.NewRecorder()
	NewTwilioHandler(newTwilio(t, cfg), box, Options{}).ServeHTTP(rec, q.http())
	return rec.Result(), box
}

// postSigned posts a form signed for testURL by the reference.
func postSigned(t testing.TB, p pairs) (*http.Response, *inbox) {
	t.Helper()
	body := p.encode()
	return post(t, config(), request{body: body, signature: reference(t, testToken, testURL, body)})
}

func wantStatus(t testing.TB, res *http.Response, want int) {
	t.Helper()
	if res.StatusCode != want {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("status %d (%s), want %d", res.StatusCode, strings.TrimSpace(string(body)), want)
	}
}

// wantTaken wants 200 and one message, which it returns.
func wantTaken(t testing.TB, res *http.Response, box *inbox) Inbound {
	t.Helper()
	wantStatus(t, res, http.StatusOK)
	if len(box.posts) != 1 {
		t.Fatalf("%d messages taken, want 1", len(box.posts))
	}
	return box.posts[0]
}

// wantRefused wants the status and that nothing was taken.
func wantRefused(t testing.TB, res *http.Response, box *inbox, status int) {
	t.Helper()
	wantStatus(t, res, status)
	if len(box.posts) != 0 {
		t.Fatalf("refused with %d, but %d messages taken", status, len(box.posts))
	}
}
