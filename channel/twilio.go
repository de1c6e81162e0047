package channel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/twilio/twilio-go/client"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Codes of an OutcomeRejected that have a meaning here. Where a text is refused
// before it is sent, the code is the one Twilio would have answered.
const (
	// CodeNotSent: no connection to the provider was made, or the caller's
	// context ended before one was. Nothing is wrong with the text; a later send
	// may pass.
	CodeNotSent = 0
	// CodeTooManyRequests: the account's limit was met at each try. Twilio
	// never processes such a request; a later send may pass.
	CodeTooManyRequests = 20429

	CodeOptedOut      = 21610 // the person has opted out with the carrier
	CodeBadTo         = 21211 // not an address of this channel
	CodeBadFrom       = 21212 // not a number of this channel
	CodeBadBody       = 21602 // empty, or not UTF-8
	CodeTooLong       = 21617 // longer than Limit
	CodeMixedChannels = 21910 // sms to whatsapp, or the reverse

	codeUnavailable = 20503 // with 503: overloaded, try again
)

const (
	twilioAPI      = "https://api.twilio.com"
	twilioLimit    = 1600
	attempts       = 3
	firstWait      = 250 * time.Millisecond
	longestWait    = 5 * time.Second
	attemptTimeout = 10 * time.Second
	answerLimit    = 64 << 10
)

// TwilioConfig is what the sender needs. AccountSID, AuthToken and From are
// required.
type TwilioConfig struct {
	AccountSID string
	AuthToken  string
	// From sends what has no From of its own: "+12025550199",
	// "whatsapp:+12025550199", or a messaging service ("MG…"), which then also
	// names the pool for texts that have one.
	From           string
	StatusCallback string // where Twilio reports delivery, without query; empty: nowhere
	BaseURL        string // scheme, host and perhaps a path in front of /2010-04-01; empty: Twilio's own

	Transport http.RoundTripper                                // nil: an own one with time-outs
	Timeout   time.Duration                                    // of one try; 0: 10 s
	Wait      func(ctx context.Context, d time.Duration) error // between tries; nil: the clock, with jitter
	Log       *slog.Logger                                     // outcomes without texts or numbers; nil: none
}

// Twilio sends through the Messages API.
type Twilio struct {
	cfg     TwilioConfig
	base    *url.URL
	service string // MG…, or empty
	from    string // wire form, or empty
}

var _ offers.Sender = (*Twilio)(nil)

// NewTwilio checks cfg. Its errors show no secret.
func NewTwilio(cfg TwilioConfig) (*Twilio, error) {
	t := &Twilio{cfg: cfg}
	if !sid(cfg.AccountSID, "AC") {
		return nil, errors.New("channel: the account SID must be AC and 32 hex digits")
	}
	if cfg.AuthToken == "" || strings.ContainsFunc(cfg.AuthToken, func(r rune) bool { return !alphanumeric(r) }) {
		return nil, errors.New("channel: the auth token must be letters and digits")
	}
	switch {
	case sid(cfg.From, "MG"):
		t.service = cfg.From
	default:
		from, ok := address(cfg.From)
		if !ok {
			return nil, errors.New("channel: from must be a number (+…), whatsapp:+… or a messaging service (MG…)")
		}
		t.from = wire(from)
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = twilioAPI
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || (base.Scheme != "https" && base.Scheme != "http") || base.Host == "" ||
		base.User != nil || strings.ContainsAny(cfg.BaseURL, "?#") {
		return nil, errors.New("channel: the API's base URL must be http(s)://host[:port][/path]")
	}
	t.base = base
	if cfg.Transport == nil {
		t.cfg.Transport = newTransport()
	}
	if cfg.Timeout <= 0 {
		t.cfg.Timeout = attemptTimeout
	}
	if cfg.Wait == nil {
		t.cfg.Wait = wait
	}
	if cfg.Log == nil {
		t.cfg.Log = slog.New(slog.DiscardHandler)
	}
	return t, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   3 * time.Second,
		ResponseHeaderTimeout: attemptTimeout,
	}
}

// Limit is Twilio's longest body, counted here in UTF-16 code units: the
// strictest of the ways in which 1,600 characters can be counted.
func (t *Twilio) Limit() int { return twilioLimit }

// Send hands m to Twilio and says what became of it. It tries again, at most
// twice and after a wait, where the text certainly or by Twilio's own word did
// not get in: no connection, 429, and 503 with Twilio's code for overload.
func (t *Twilio) Send(ctx context.Context, m offers.Outgoing) offers.SendResult {
	params, code := t.params(m)
	if params == nil {
		return t.ended(ctx, 0, 0, offers.SendResult{Outcome: offers.OutcomeRejected, Code: code})
	}
	pause := firstWait
	for try := 1; ; try++ {
		seen := t.attempt(ctx, params)
		result, again := judge(seen)
		if !again || try == attempts || seen.retryAfter > longestWait {
			return t.ended(ctx, try, seen.status, result)
		}
		if t.cfg.Wait(ctx, max(pause, seen.retryAfter)) != nil {
			return t.ended(ctx, try, seen.status, result)
		}
		pause *= 4
	}
}

// params are the request's fields, or nil and why the text is not sent.
func (t *Twilio) params(m offers.Outgoing) (*openapi.CreateMessageParams, int) {
	to, ok := address(wire(m.To))
	if !ok || to != m.To {
		return nil, CodeBadTo
	}
	p := &openapi.CreateMessageParams{}
	p.SetTo(wire(to)).SetBody(m.Body)
	from := t.from
	if m.From != "" {
		own, ok := address(wire(m.From))
		if !ok || own != m.From {
			return nil, CodeBadFrom
		}
		from = wire(own)
	}
	if from != "" {
		if strings.HasPrefix(from, "whatsapp:") != (to.Channel() == "whatsapp") {
			return nil, CodeMixedChannels
		}
		p.SetFrom(from)
	}
	if t.service != "" {
		p.SetMessagingServiceSid(t.service)
	}
	if t.cfg.StatusCallback != "" {
		p.SetStatusCallback(t.cfg.StatusCallback + callbackQuery(m))
	}
	if !carriable(m.Body) { // mutant: channel.carriable
		return nil, CodeBadBody
	}
	if utf16Len(m.Body) > twilioLimit { // mutant: channel.too-long
		return nil, CodeTooLong
	}
	return p, 0
}

// callbackQuery has a callback name the text, and which part of it this is: it may come before the answer to the send,
// or where that answer was lost.
func callbackQuery(m offers.Outgoing) string {
	switch {
	case m.TextID == "":
		return ""
	case m.Parts > 1:
		return fmt.Sprintf("?text=%s&part=%d&of=%d", url.QueryEscape(m.TextID), m.Part, m.Parts)
	}
	return "?text=" + url.QueryEscape(m.TextID)
}

// seen is what one try showed.
type seen struct {
	connected  bool // a connection was had, so that something may have been written
	status     int  // HTTP status, 0 without an answer
	retryAfter time.Duration
	apiCode    int                      // of Twilio's error body, 0 without one
	untrusted  bool                     // the server showed a certificate that does not hold
	message    *openapi.ApiV2010Message // of a success that could be read
}

// attempt makes exactly one request.
func (t *Twilio) attempt(ctx context.Context, params *openapi.CreateMessageParams) seen {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	f := &flight{ctx: ctx, base: t.base, next: t.cfg.Transport}
	// The library takes neither a context nor a base URL, so each try has its own
	// client around the shared transport. The handler is built by hand because
	// its constructor reads the environment.
	c := &client.Client{
		Credentials: client.NewCredentials(t.cfg.AccountSID, t.cfg.AuthToken),
		HTTPClient: &http.Client{
			Transport:     f,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	c.SetAccountSid(t.cfg.AccountSID)
	message, err := openapi.NewApiService(&client.RequestHandler{Client: c}).CreateMessage(params)

	s := seen{connected: f.connected.Load(), status: f.status, retryAfter: f.retryAfter}
	var apiErr *client.TwilioRestError
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
		s.message = message
	case errors.As(err, &apiErr):
		s.apiCode = apiErr.Code
	case errors.As(err, &certificate):
		s.untrusted = true
	}
	return s
}

// judge says what one try means for the text, and whether another is allowed.
// Pure; everything that it does not know is unknown and final.
func judge(s seen) (result offers.SendResult, again bool) {
	rejected := func(code int) offers.SendResult {
		return offers.SendResult{Outcome: offers.OutcomeRejected, Code: code}
	}
	switch {
	case s.status == 0 && !s.connected: // mutant: channel.not-connected
		return rejected(CodeNotSent), !s.untrusted
	case s.status == http.StatusTooManyRequests:
		return rejected(CodeTooManyRequests), true
	case s.status == http.StatusServiceUnavailable && s.apiCode == codeUnavailable: // mutant: channel.unavailable-code
		// Asked to come again, but not told that the text is not in.
		return offers.SendResult{}, true
	case s.status == http.StatusRequestTimeout:
		return offers.SendResult{}, false
	case s.status >= 400 && s.status < 500 && s.apiCode > 0: // mutant: channel.api-code
		return rejected(s.apiCode), false
	case s.status >= 200 && s.status < 300 && s.message != nil: // mutant: channel.redirect
		id := value(s.message.Sid)
		if !sid(id, "SM") && !sid(id, "MM") { // mutant: channel.sid-shape
			return offers.SendResult{}, false
		}
		switch value(s.message.Status) {
		case "failed", "undelivered", "canceled":
			if s.message.ErrorCode != nil && *s.message.ErrorCode > 0 {
				return rejected(*s.message.ErrorCode), false
			}
			return offers.SendResult{ProviderID: id}, false
		}
		return offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: id}, false
	}
	return offers.SendResult{}, false
}

// ended logs how a send ended, without the text, the numbers or the provider's
// sentence about them.
func (t *Twilio) ended(ctx context.Context, tries, status int, r offers.SendResult) offers.SendResult {
	level, outcome := slog.LevelWarn, "unknown"
	switch r.Outcome {
	case offers.OutcomeAccepted:
		level, outcome = slog.LevelDebug, "accepted"
	case offers.OutcomeRejected:
		outcome = "rejected"
	}
	t.cfg.Log.Log(ctx, level, "text sent", "provider", "twilio", "outcome", outcome,
		"status", status, "code", r.Code, "tries", tries, "provider_id", r.ProviderID)
	return r
}

// flight is the transport of one try: it gives the request its context and its
// host, lets exactly one pass, and notes what happened.
type flight struct {
	ctx  context.Context // kept, since the library has no way to pass one
	base *url.URL
	next http.RoundTripper

	used       bool
	connected  atomic.Bool // set by the transport's own goroutines
	status     int
	retryAfter time.Duration
}

var errSecondRequest = errors.New("channel: a second request in one try")

func (f *flight) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.used { // mutant: channel.one-request
		// The library repeats some requests by itself; a text is not repeated.
		return nil, errSecondRequest
	}
	f.used = true
	ctx := httptrace.WithClientTrace(f.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { f.connected.Store(true) },
	})
	r = r.Clone(ctx)
	r.URL.Scheme, r.URL.Host, r.Host = f.base.Scheme, f.base.Host, ""
	r.URL.Path, r.URL.RawPath = strings.TrimSuffix(f.base.Path, "/")+r.URL.Path, ""
	res, err := f.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	f.status = res.StatusCode
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		f.retryAfter = time.Duration(min(seconds, 3600)) * time.Second
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, answerLimit), res.Body}
	return res, nil
}

// wait is the clock's Wait: d and up to half as much again, so that senders that
// were refused together do not come back together.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wire is Twilio's form of an address: whatsapp:+… as it is, sms:+… without its
// channel.
func wire(a people.Address) string { return strings.TrimPrefix(string(a), "sms:") }

// address reads Twilio's form of a number.
func address(wire string) (people.Address, bool) {
	if strings.HasPrefix(wire, "+") {
		wire = "sms:" + wire
	}
	a, err := people.ParseAddress(wire)
	return a, err == nil && (a.Channel() == "sms" || a.Channel() == "whatsapp")
}

// sid reports prefix and 32 lower-case hex digits.
func sid(s, prefix string) bool {
	rest, found := strings.CutPrefix(s, prefix)
	return found && len(rest) == 32 && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// carriable reports a body that arrives as it was written. Providers repair or
// cut what they cannot carry, and then what is on the screen is not what was to
// be shown.
func carriable(body string) bool {
	return strings.TrimSpace(body) != "" && utf8.ValidString(body) && !strings.ContainsRune(body, 0)
}

func alphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
