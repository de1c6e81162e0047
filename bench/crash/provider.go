package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the provider's choice
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

// provider is the other side of the texts: it takes them at the Messages API, brings them to phones, posts callbacks and
// replies as signed forms, and posts again whatever was not answered.
type provider struct {
	account, token, number string
	public                 string // the public URL of the server, which is what is signed

	play  *play
	phone func(to, body string)
}

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ServeHTTP implements POST /2010-04-01/Accounts/{AccountSid}/Messages.json.
func (f *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if err := r.ParseForm(); err != nil || user != f.account || password != f.token || r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code":20003,"message":"Authenticate","status":401}`))
		return
	}
	sid, form := "SM"+randomHex(), r.PostForm
	f.phone(form.Get("To"), form.Get("Body"))
	if callback := form.Get("StatusCallback"); callback != "" {
		f.play.background(func(ctx context.Context) { f.calls(ctx, callback, sid) })
	}
	if f.play.chance(30) { // it was taken, and nobody hears of it
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"sid": sid, "account_sid": f.account, "to": form.Get("To"), "from": form.Get("From"), "body": form.Get("Body"), "status": "queued",
		"direction": "outbound-api", "api_version": "2010-04-01", "num_segments": "1", "num_media": "0",
	})
}

// calls back how far a text has come.
func (f *provider) calls(ctx context.Context, callback, sid string) {
	for _, status := range []string{"sent", "delivered"} {
		machine.Pause(ctx, f.play.between(10*time.Millisecond, 60*time.Millisecond))
		f.post(ctx, callback, url.Values{"MessageSid": {sid}, "SmsSid": {sid}, "AccountSid": {f.account}, "MessageStatus": {status}, "ApiVersion": {"2010-04-01"}, "From": {f.number}})
	}
}

// inbound posts a text from a phone until it is answered 200.
func (f *provider) inbound(ctx context.Context, sid, from, body string) bool {
	return f.post(ctx, f.public+"/webhooks/twilio/messages", url.Values{
		"MessageSid": {sid}, "SmsSid": {sid}, "SmsMessageSid": {sid}, "AccountSid": {f.account}, "ApiVersion": {"2010-04-01"},
		"From": {from}, "To": {f.number}, "Body": {body}, "NumMedia": {"0"}, "NumSegments": {"1"}, "SmsStatus": {"received"},
	})
}

// post signs a form for its public URL and posts it to the server's door until it is answered 200; false: ctx ended.
func (f *provider) post(ctx context.Context, public string, form url.Values) bool {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	mac := hmac.New(sha1.New, []byte(f.token))
	mac.Write([]byte(public))
	for _, name := range names {
		mac.Write([]byte(name + form.Get(name)))
	}
	headers := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
	path := strings.TrimPrefix(public, f.public)
	for ctx.Err() == nil {
		a := f.play.call(ctx, http.MethodPost, path, headers, []byte(form.Encode()))
		if a.status == http.StatusOK {
			return true
		}
		if a.status >= 400 && a.status < 500 {
			f.play.fault("the provider was refused: %d", a.status)
			return false
		}
		machine.Pause(ctx, f.play.between(10*time.Millisecond, 60*time.Millisecond))
	}
	return false
}

// said is one reply that a person has typed.
type said struct {
	sid, number, text string
	yes               bool
	typed, answered   time.Time       // answered: zero if it never was
	given             bool            // answered, or given up
	screen            map[string]bool // marks of the offers that had been on the phone before
}

// phone is one person with a phone.
type phone struct {
	number string
	asks   chan string // texts that want an answer

	mu     sync.Mutex
	screen map[string]bool
}

// seen notes a text and returns what had been on the screen by then.
func (p *phone) seen(body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, mark := range marks.FindAllString(body, -1) {
		p.screen[mark] = true
	}
}

func (p *phone) shown() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]bool, len(p.screen))
	for k := range p.screen {
		out[k] = true
	}
	return out
}
