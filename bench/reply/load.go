package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio signs with it
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	authToken  = "0123456789abcdef0123456789abcdef" // of no account
	accountSID = "AC00000000000000000000000000000000"
	ourNumber  = "+12025550100"
	// personNumber is the address of the n-th person. The limit programs read n out of it, in this form.
	personNumber = "+1555%07d"
)

// sid is the provider's id of the n-th person's reply.
func sid(n int) string { return fmt.Sprintf("SM%032x", n) }

// request is a signed form, ready to be sent.
type request struct {
	body      []byte
	signature string
}

// requests builds one reply each of the people first … first+n-1, signed for a URL.
func requests(first, n int, text, signedURL string) []request {
	out := make([]request, n)
	for i := range out {
		p := first + i
		out[i] = newRequest(url.Values{
			"From": {fmt.Sprintf(personNumber, p)}, "To": {ourNumber}, "Body": {text}, "NumMedia": {"0"}, "NumSegments": {"1"},
			"AccountSid": {accountSID}, "ApiVersion": {"2010-04-01"}, "FromCountry": {"US"}, "ToCountry": {"US"}, "SmsStatus": {"received"},
			"MessageSid": {sid(p)}, "SmsSid": {sid(p)}, "SmsMessageSid": {sid(p)},
		}, signedURL)
	}
	return out
}

func newRequest(form url.Values, signedURL string) request {
	var b strings.Builder
	b.WriteString(signedURL)
	for _, k := range slices.Sorted(maps.Keys(form)) {
		b.WriteString(k + form.Get(k))
	}
	mac := hmac.New(sha1.New, []byte(authToken))
	mac.Write([]byte(b.String()))
	return request{[]byte(form.Encode()), base64.StdEncoding.EncodeToString(mac.Sum(nil))}
}

// sample is one request: when it was sent, when its answer had come, and what the answer was.
type sample struct {
	sent, answered time.Time
	ok             bool // 200
	unconsumed     bool // the limit's answer says that nothing was consumed
}

// load posts requests over so many connections, each in a closed loop: the next request goes out when the answer to the
// one before has come. It stops after the duration, or with the requests. The samples are in the order of the requests;
// those of requests that were not sent are left out.
func load(target string, reqs []request, connections int, d time.Duration) ([]sample, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	samples := make([]sample, len(reqs))
	var next atomic.Int64
	var failure atomic.Pointer[string]
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for time.Now().Before(end) {
				i := int(next.Add(1)) - 1
				if i >= len(reqs) {
					return
				}
				if err := post(client, target, reqs[i], &samples[i]); err != nil {
					s := err.Error()
					failure.CompareAndSwap(nil, &s)
				}
			}
		})
	}
	wg.Wait()
	samples = samples[:min(int(next.Load()), len(reqs))]
	for len(samples) > 0 && samples[len(samples)-1].sent.IsZero() {
		samples = samples[:len(samples)-1]
	}
	if f := failure.Load(); f != nil {
		return samples, fmt.Errorf("first of the failures: %s", *f)
	}
	return samples, nil
}

func post(client *http.Client, target string, r request, s *sample) error {
	req, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(r.body)) //nolint:noctx // the client has a time-out
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Twilio-Signature", r.signature)
	s.sent = time.Now()
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	s.answered = time.Now()
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	s.ok = err == nil && res.StatusCode == http.StatusOK
	s.unconsumed = res.Header.Get("X-Not-Consumed") != ""
	if err == nil && !s.ok {
		err = fmt.Errorf("%d %.200s", res.StatusCode, body)
	}
	return err
}
