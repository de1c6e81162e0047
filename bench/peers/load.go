package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/bench/internal/figures"
)

// approvals is how many make a run of about so many seconds, where eight connections had such a rate.
func approvals(perSecond float64, connections int, seconds float64) int {
	share := 1.2
	switch {
	case connections < 8:
		share = 0.4
	case connections < 32:
		share = 1
	}
	return min(max(int(share*perSecond*seconds), 50), 4000)
}

// loop decides n approvals over so many connections, each in a closed loop: the next decision is posted when the action of
// the one before has run. An error: more than a tenth of them failed.
func loop(ctx context.Context, s side, n, connections int) (rate, error) {
	list, err := s.propose(ctx, n)
	if err != nil {
		return rate{}, fmt.Errorf("propose: %w", err)
	}
	var next atomic.Int64
	var mu sync.Mutex
	r := rate{Side: s.name(), Connections: connections, Approvals: len(list)}
	var waits []time.Duration
	began := time.Now()
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				at := time.Now()
				err := list[i].decide(ctx)
				took := time.Since(at)
				mu.Lock()
				if err != nil {
					if r.Errors++; r.FirstError == "" {
						r.FirstError = err.Error()
					}
				} else {
					waits = append(waits, took)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := s.drain(ctx); err != nil {
		return r, fmt.Errorf("drain: %w", err)
	}
	r.PerSecond = float64(len(waits)) / time.Since(began).Seconds()
	r.P50, r.P99 = figures.Percentile(waits, 0.5), figures.Percentile(waits, 0.99)
	if r.Errors*10 > len(list) {
		return r, fmt.Errorf("%d of %d approvals failed, the first: %s", r.Errors, len(list), r.FirstError)
	}
	return r, ctx.Err()
}

// storm posts one decision many times at once, and says how many of the posts failed.
func storm(ctx context.Context, a approval, times int, others bool) int {
	var failed atomic.Int64
	ready := make(chan struct{})
	var wg sync.WaitGroup
	for i := range times {
		another := 0
		if others {
			another = i + 1
		}
		wg.Go(func() {
			<-ready
			if a.again(ctx, another) != nil {
				failed.Add(1)
			}
		})
	}
	close(ready)
	wg.Wait()
	return int(failed.Load())
}

// newClient keeps as many connections open as a run has.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}
}

// call posts a body, or gets with none, and returns an answer of 200 to 299.
func call(ctx context.Context, c *http.Client, method, target string, header http.Header, body []byte) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = &refused{resp.StatusCode, raw}
	}
	return raw, resp.Header, err
}

// refused is an answer that is none of 200 to 299.
type refused struct {
	status int
	body   []byte
}

func (r *refused) Error() string { return fmt.Sprintf("%d %.200s", r.status, r.body) }

// yes is what people say.
const yes = "yes please"
