package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio's choice
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	publicURL  = "https://approve.example.com"
	hookPath   = "/webhooks/twilio/messages"
	accountSID = "AC00000000000000000000000000000001"
	ourNumber  = "+12025550100"
)

// carrier is Twilio's side: it takes texts and keeps what is on every screen, and signs what people type.
type carrier struct {
	token  string
	serial atomic.Int64

	mu      sync.Mutex
	screens map[string][]string // by number, oldest first
	changed chan struct{}
}

func newCarrier(token string) *carrier {
	return &carrier{token: token, screens: map[string][]string{}, changed: make(chan struct{})}
}

// ServeHTTP takes a text.
func (c *carrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || !strings.HasSuffix(r.URL.Path, "/Messages.json") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	to, body := r.PostForm.Get("To"), r.PostForm.Get("Body")
	c.mu.Lock()
	c.screens[to] = append(c.screens[to], body)
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"sid": fmt.Sprintf("SM%032x", c.serial.Add(1)), "status": "queued"})
}

// screen is what a number has been sent, and what tells of more.
func (c *carrier) screen(number string) ([]string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.screens[number]), c.changed
}

// wait returns the screen once it has something after the first n texts for which found is true, or when ctx ends.
func (c *carrier) wait(ctx context.Context, number string, n int, found func(text string) bool) bool {
	for {
		texts, changed := c.screen(number)
		if slices.ContainsFunc(texts[min(n, len(texts)):], found) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// inbound is the form of a text that somebody typed.
func (c *carrier) inbound(from, text string) url.Values {
	sid := fmt.Sprintf("SM%032x", c.serial.Add(1))
	return url.Values{
		"MessageSid": {sid}, "SmsSid": {sid}, "SmsMessageSid": {sid}, "AccountSid": {accountSID}, "ApiVersion": {"2010-04-01"},
		"From": {from}, "To": {ourNumber}, "Body": {text}, "NumMedia": {"0"}, "NumSegments": {"1"}, "SmsStatus": {"received"},
	}
}

// sign is X-Twilio-Signature under a token.
func sign(token, address string, form url.Values) string {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(address))
	for _, name := range names {
		mac.Write([]byte(name + form.Get(name)))
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
