package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/internal/redistest"
	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

// fleet is two servers on one PostgreSQL.
type fleet struct {
	t    *testing.T
	urls [2]string
	db   store
	key  string
	n    atomic.Int64
}

// newFleet starts it; change makes the settings of both another's.
func newFleet(t *testing.T, redisURL string, change func(*config)) *fleet {
	t.Helper()
	f := &fleet{t: t}
	cfg, _, err := load(map[string]string{
		"COUNTERSIGN_DATABASE_URL": pgtest.New(t), "COUNTERSIGN_SIM": "1", "COUNTERSIGN_MIN_READ": "1ms", "COUNTERSIGN_REDIS_URL": redisURL,
	}, "", nil)
	f.must(err)
	change(&cfg)
	for i := range f.urls {
		s, err := openStore(t.Context(), cfg.DatabaseURL, true)
		f.must(err)
		if i == 0 {
			f.db = s
			_, err := s.Migrate(t.Context())
			f.must(err)
		}
		a, err := newApp(cfg, s, slog.New(slog.DiscardHandler))
		f.must(err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		f.must(err)
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- a.serve(ctx, l) }()
		t.Cleanup(func() {
			stop()
			if err := errors.Join(<-done, s.Close()); err != nil {
				t.Error(err)
			}
		})
		f.urls[i] = "http://" + l.Addr().String()
	}
	secret, hash := people.NewSecret()
	f.must(f.db.AddKey(t.Context(), people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "agent", Scope: people.ScopeAgent}, hash))
	f.key = secret
	return f
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// joined returns when both replicas hear each other.
func (f *fleet) joined(redisURL string) {
	f.t.Helper()
	client, err := newRedis(redisURL)
	f.must(err)
	defer client.Close() //nolint:errcheck // a test's
	f.eventually("both replicas hear each other", func() bool {
		channels, err := client.PubSubChannels(f.t.Context(), "countersign:*").Result()
		f.must(err)
		if len(channels) != 1 {
			return false
		}
		n, err := client.PubSubNumSub(f.t.Context(), channels[0]).Result()
		f.must(err)
		return n[channels[0]] == 2
	})
}

func (f *fleet) eventually(what string, is func() bool) {
	f.t.Helper()
	for end := time.After(time.Minute); !is(); {
		select {
		case <-end:
			f.t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// told is what a call came to.
type told struct {
	status int
	header http.Header
	Code   string
	State  offers.OpState
	ID     string
	Offer  *struct{ ID string }
	Args   json.RawMessage
	// ArgsSHA256 and OperationID are of an offer.
	ArgsSHA256  string `json:"args_sha256"`
	OperationID string `json:"operation_id"`
}

// call asks one of the replicas.
func (f *fleet) call(at int, method, path, body string) told {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.urls[at%2]+path, strings.NewReader(body))
	f.must(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Idempotency-Key", "k"+strconv.FormatInt(f.n.Add(1), 10))
	res, err := http.DefaultClient.Do(req)
	f.must(err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(res.Body)
	f.must(err)
	r := told{status: res.StatusCode, header: res.Header}
	if bytes.HasPrefix(raw, []byte("{")) {
		f.must(json.Unmarshal(raw, &r))
	}
	return r
}

// want demands a status.
func (f *fleet) want(r told, status int, what string) told {
	f.t.Helper()
	if r.status != status {
		f.t.Fatalf("%s: %d %s, want %d", what, r.status, r.Code, status)
	}
	return r
}

// asked makes a person, asks them by one replica and returns when another says that the ask is on their screen.
func (f *fleet) asked(at int) (operation, sum, address string) {
	f.t.Helper()
	n := f.n.Add(1)
	address = fmt.Sprintf("sim:person%d", n)
	f.must(f.db.AddPerson(f.t.Context(), people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address(address), OurNumber: webhook.SimNumber}}}))
	o := f.want(f.call(at, http.MethodPost, "/v1/offers",
		fmt.Sprintf(`{"address":%q,"tool":"email.send","args":{"to":["dana@example.test"],"subject":"Lunch %d","body":"Friday?"}}`, address, n)), http.StatusCreated, "offer")
	f.eventually("the ask is shown", func() bool {
		return f.want(f.call(at+1, http.MethodGet, "/v1/offers/"+o.ID, ""), http.StatusOK, "offer").State == "open"
	})
	<-time.After(5 * time.Millisecond) // above min_read
	return o.OperationID, o.ArgsSHA256, address
}

// says has a person type a word, which comes in at one replica.
func (f *fleet) says(at int, address, text string) {
	f.t.Helper()
	f.want(f.call(at, http.MethodPost, "/webhooks/sim/messages", fmt.Sprintf(`{"id":"m%d","address":%q,"text":%q}`, f.n.Add(1), address, text)), http.StatusOK, "webhook")
}

// released demands that a yes gave the arguments out once, whoever asks where, and ends it.
func (f *fleet) released(at int, operation, sum string) {
	f.t.Helper()
	body := fmt.Sprintf(`{"args_sha256":%q}`, sum)
	if r := f.want(f.call(at, http.MethodPost, "/v1/operations/"+operation+"/begin", body), http.StatusOK, "begin"); len(r.Args) == 0 {
		f.t.Fatal("no arguments were released")
	}
	for i := range 2 {
		if r := f.want(f.call(i, http.MethodPost, "/v1/operations/"+operation+"/begin", body), http.StatusConflict, "second begin"); r.Code != "already_begun" {
			f.t.Fatalf("second begin: %s", r.Code)
		}
	}
	f.want(f.call(at+1, http.MethodPost, "/v1/operations/"+operation+"/result", `{"status":"succeeded"}`), http.StatusOK, "result")
	f.want(f.call(at, http.MethodPost, "/v1/operations/"+operation+"/result", `{"status":"succeeded","output":2}`), http.StatusConflict, "second result")
	if r := f.call(at, http.MethodGet, "/v1/operations/"+operation, ""); r.State != offers.OpSucceeded {
		f.t.Fatalf("at the end the operation is %s", r.State)
	}
}

// TestReplicasWithoutStickySessions: each step of an approval may be at another replica, with Redis and without.
func TestReplicasWithoutStickySessions(t *testing.T) {
	for name, redisURL := range map[string]string{"Redis": redistest.URL(t), "NoRedis": ""} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, redisURL, func(*config) {})
			for i := range 4 {
				op, sum, address := f.asked(i)
				f.says(i+1, address, "yes")
				if r := f.want(f.call(i, http.MethodGet, "/v1/operations/"+op+"?wait=30s", ""), http.StatusOK, "poll"); r.State != offers.OpApproved {
					t.Fatalf("after the yes the operation is %s", r.State)
				}
				f.released(i, op, sum)
			}
		})
	}
}

// TestReplicasWakeEachOther: polls that would read again only after an hour are answered by a yes at the other replica.
func TestReplicasWakeEachOther(t *testing.T) {
	redisURL := redistest.Start(t).URL
	f := newFleet(t, redisURL, func(c *config) { c.Reread = time.Hour })
	f.joined(redisURL)
	for i := range 4 {
		op, sum, address := f.asked(i)
		polls := make(chan told, 2)
		for _, path := range []string{"/v1/operations/" + op + "?wait=60s", ""} {
			go func() {
				if path == "" { // from the feed's end on
					path = "/v1/events?wait=60s&after=" + f.end(i)
				}
				polls <- f.call(i, http.MethodGet, path, "")
			}()
		}
		// A poll has read by when what was asked after it at the same replica has been answered, some times over.
		for range 20 {
			f.call(i, http.MethodGet, "/v1/operations/"+op, "")
		}
		f.says(i+1, address, "yes")
		for range 2 {
			if r := <-polls; r.status != http.StatusOK || r.State != "" && r.State != offers.OpApproved {
				t.Fatalf("a poll at the other replica: %d, %s", r.status, r.State)
			}
		}
		f.released(i+1, op, sum)
	}
}

// end is the position behind all events there are.
func (f *fleet) end(at int) string {
	after := ""
	for {
		req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.urls[at%2]+"/v1/events?after="+after, nil)
		if err != nil {
			return ""
		}
		req.Header.Set("Authorization", "Bearer "+f.key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return ""
		}
		var page struct {
			Events []json.RawMessage
			Next   string
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		_ = res.Body.Close()
		if err != nil || len(page.Events) == 0 {
			return after
		}
		after = page.Next
	}
}

// TestReplicasLoseRedis: stopped, slow or emptied in the middle of it, Redis costs time and nothing else.
func TestReplicasLoseRedis(t *testing.T) {
	for name, lose := range map[string]func(*redistest.Server, *redistest.Proxy){
		"Stopped":            func(s *redistest.Server, _ *redistest.Proxy) { s.Stop() },
		"StoppedAndRestored": func(s *redistest.Server, _ *redistest.Proxy) { s.Stop(); s.Restart() },
		"Slow":               func(_ *redistest.Server, p *redistest.Proxy) { p.Slow(time.Hour) },
		"Emptied": func(s *redistest.Server, _ *redistest.Proxy) {
			if client, err := newRedis(s.URL); err == nil {
				_ = client.FlushAll(context.Background()).Err()
				_ = client.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			p := s.Proxy()
			f := newFleet(t, p.URL, func(*config) {})
			f.joined(s.URL)
			var lost sync.Once
			var done atomic.Int64
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for j := range 2 {
						op, sum, address := f.asked(i)
						if done.Load() >= 4 {
							lost.Do(func() { lose(s, p) })
						}
						polled := make(chan told, 1)
						go func() { polled <- f.call(i+j, http.MethodGet, "/v1/operations/"+op+"?wait=60s", "") }()
						f.says(i+1, address, "yes")
						if r := <-polled; r.State != offers.OpApproved {
							t.Errorf("a poll was answered with %d %s", r.status, r.State)
							return
						}
						f.released(i+j, op, sum)
						done.Add(1)
					}
				})
			}
			wg.Wait()
			lost.Do(func() { t.Error("Redis was never lost") })
		})
	}
}

// TestReplicasShareLimits: what one replica let through counts at the other.
func TestReplicasShareLimits(t *testing.T) {
	f := newFleet(t, redistest.Start(t).URL, func(c *config) {
		c.RateKey, c.RateAccount = limit.Rate{Every: time.Hour, Burst: 4}, limit.Rate{}
	})
	for i := range 4 {
		f.want(f.call(i, http.MethodGet, "/v1/offers", ""), http.StatusOK, "within the rate")
	}
	for i := range 2 {
		r := f.want(f.call(i, http.MethodGet, "/v1/offers", ""), http.StatusTooManyRequests, "beyond the rate")
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); r.Code != "rate_limited" || err != nil || n < 3000 || n > 3600 {
			t.Errorf("%s, Retry-After %q", r.Code, r.header.Get("Retry-After"))
		}
	}
}
