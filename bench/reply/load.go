package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/bench/internal/crowd"
)

// replies are one reply each of the people first … first+n-1, signed for a URL.
func replies(first, n int, text, signedURL string) []crowd.Reply {
	out := make([]crowd.Reply, n)
	for i := range out {
		out[i] = crowd.NewReply(first+i, 0, text, signedURL)
	}
	return out
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
func load(target string, reqs []crowd.Reply, connections int, d time.Duration) ([]sample, error) {
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

func post(client *http.Client, target string, r crowd.Reply, s *sample) error {
	req, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(r.Body)) //nolint:noctx // the client has a time-out
	if err != nil {
		return err
	}
	req.Header = r.Header
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
