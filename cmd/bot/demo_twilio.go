package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // Twilio's choice
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// fakeTwilio is Twilio's side of the wire: it takes texts at the Messages API and posts inbound ones as signed forms.
type fakeTwilio struct {
	account string // AccountSid
	token   string
	number  string // ours, as Twilio writes it
	hook    string // the webhook's public URL, which is what is signed

	mu      sync.Mutex
	sent    []sentText // in order of arrival
	changed chan struct{}
}

// sentText is one text that the server handed over.
type sentText struct {
	sid, to, from, body string
}

func newFakeTwilio(hook, number string) *fakeTwilio {
	return &fakeTwilio{account: "AC" + randomHex(), token: randomHex(), number: number, hook: hook, changed: make(chan struct{})}
}

// randomHex is the 32 digits of a SID or of a token.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ServeHTTP implements POST /2010-04-01/Accounts/{AccountSid}/Messages.json.
func (f *fakeTwilio) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := "/2010-04-01/Accounts/" + f.account + "/Messages"
	user, password, _ := r.BasicAuth()
	switch {
	case r.URL.Path != path+".json" || r.Method != http.MethodPost:
		f.refuse(w, http.StatusNotFound, 20404, "The requested resource was not found")
		return
	case user != f.account || password != f.token:
		f.refuse(w, http.StatusUnauthorized, 20003, "Authenticate")
		return
	}
	if err := r.ParseForm(); err != nil {
		f.refuse(w, http.StatusBadRequest, 20001, "Invalid parameter")
		return
	}
	t := sentText{sid: "SM" + randomHex(), to: r.PostForm.Get("To"), from: r.PostForm.Get("From"), body: r.PostForm.Get("Body")}
	switch {
	case !strings.HasPrefix(t.to, "+"):
		f.refuse(w, http.StatusBadRequest, 21211, "Invalid 'To' Phone Number")
		return
	case t.from != f.number:
		f.refuse(w, http.StatusBadRequest, 21606, "The 'From' phone number provided is not a valid, message-capable phone number")
		return
	case t.body == "":
		f.refuse(w, http.StatusBadRequest, 21602, "Message body is required")
		return
	}
	f.mu.Lock()
	f.sent = append(f.sent, t)
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()

	uri := path + "/" + t.sid
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"sid": t.sid, "account_sid": f.account, "to": t.to, "from": t.from, "body": t.body, "status": "queued",
		"direction": "outbound-api", "api_version": "2010-04-01", "num_segments": "1", "num_media": "0", "price": nil, "price_unit": "USD",
		"error_code": nil, "error_message": nil, "messaging_service_sid": nil, "date_sent": nil,
		"date_created": time.Now().UTC().Format(time.RFC1123Z), "date_updated": time.Now().UTC().Format(time.RFC1123Z),
		"uri": uri + ".json", "subresource_uris": map[string]string{"media": uri + "/Media.json"},
	})
}

func (f *fakeTwilio) refuse(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "message": message, "status": status})
}

// texts are those to a number, oldest first.
func (f *fakeTwilio) texts(to string) []sentText {
	found, _ := f.look(to)
	return found
}

func (f *fakeTwilio) look(to string) ([]sentText, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []sentText
	for _, t := range f.sent {
		if t.to == to {
			found = append(found, t)
		}
	}
	return found, f.changed
}

// wait returns the texts to a number as soon as there are n, or what is there when ctx ends.
func (f *fakeTwilio) wait(ctx context.Context, to string, n int) []sentText {
	for {
		found, changed := f.look(to)
		if len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return found
		}
	}
}

// inbound is the form of one text to our number, with every parameter that a real one has.
func (f *fakeTwilio) inbound(sid, from, body string) url.Values {
	return url.Values{
		"MessageSid": {sid}, "SmsSid": {sid}, "SmsMessageSid": {sid}, "AccountSid": {f.account}, "ApiVersion": {"2010-04-01"},
		"From": {from}, "FromCity": {"WASHINGTON"}, "FromState": {"DC"}, "FromZip": {"20001"}, "FromCountry": {"US"},
		"To": {f.number}, "ToCity": {""}, "ToState": {"DC"}, "ToZip": {""}, "ToCountry": {"US"},
		"Body": {body}, "NumMedia": {"0"}, "NumSegments": {"1"}, "SmsStatus": {"received"},
	}
}

// sign is X-Twilio-Signature: HMAC-SHA1 over the URL and the parameters, sorted, names and values run together.
func (f *fakeTwilio) sign(form url.Values) string {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	mac := hmac.New(sha1.New, []byte(f.token))
	mac.Write([]byte(f.hook))
	for _, name := range names {
		mac.Write([]byte(name + form.Get(name)))
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// post sends a form to the server's door, as Twilio would through whatever stands between. firstByte, if set, is called
// when the answer begins.
func (f *fakeTwilio) post(ctx context.Context, door, signature string, form url.Values, firstByte func()) (httpAnswer, error) {
	if firstByte != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: firstByte})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, door, strings.NewReader(form.Encode()))
	if err != nil {
		return httpAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", "TwilioProxy/1.1")
	req.Header.Set("X-Twilio-Signature", cmp.Or(signature, f.sign(form)))
	return roundTrip(req)
}
