package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/webhook"
)

// TestRates: each rate is read, and what is no rate is said by its name.
func TestRates(t *testing.T) {
	c, _, err := load(map[string]string{}, "", nil)
	if err != nil || c.RateKey.Off() || c.RateAccount.Off() || c.RateSender.Off() {
		t.Errorf("by default: %+v, %v", c, err)
	}
	c, _, err = load(map[string]string{"COUNTERSIGN_RATE_KEY": "3/m burst 4", "COUNTERSIGN_RATE_ACCOUNT": "off", "COUNTERSIGN_RATE_SENDER": "0"}, "", nil)
	if err != nil || c.RateKey != (limit.Rate{Every: 20 * time.Second, Burst: 4}) || !c.RateAccount.Off() || !c.RateSender.Off() {
		t.Errorf("as set: %+v, %v", c, err)
	}
	for _, name := range []string{"COUNTERSIGN_RATE_KEY", "COUNTERSIGN_RATE_ACCOUNT", "COUNTERSIGN_RATE_SENDER"} {
		for _, v := range []string{"", "many", "5", "-1/s"} {
			if _, _, err := load(map[string]string{name: v}, "", nil); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "50/s") {
				t.Errorf("%s=%q: %v, want what a rate looks like", name, v, err)
			}
		}
	}
}

// fullLimiter lets nothing through.
type fullLimiter struct{ asked []limit.Ask }

func (f *fullLimiter) Take(_ context.Context, asks ...limit.Ask) limit.Verdict {
	f.asked = append(f.asked, asks...)
	return limit.Verdict{RetryAfter: 90 * time.Second}
}

// book is the store's answer to who is bound.
type book struct {
	bound bool
	err   error
}

func (b book) Bound(context.Context, people.Address, people.Address) (bool, error) {
	return b.bound, b.err
}

// TestSendersLoseNothingOfAPersons: beyond the rate only a stranger is turned away, and who is not known to be one is not.
func TestSendersLoseNothingOfAPersons(t *testing.T) {
	const from, to = people.Address("sms:+12025550102"), people.Address("sms:+12025550100")
	for name, c := range map[string]struct {
		in     webhook.Inbound
		book   book
		refuse bool
	}{
		"a person":                   {webhook.Inbound{From: from, To: to}, book{bound: true}, false},
		"a stranger":                 {webhook.Inbound{From: from, To: to}, book{}, true},
		"nobody who could be bound":  {webhook.Inbound{FromRaw: "BANK", To: to}, book{bound: true}, true},
		"the store does not say who": {webhook.Inbound{From: from, To: to}, book{err: errors.New("down")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fullLimiter{}
			s := senders{f, limit.Rate{Every: time.Second, Burst: 1}, c.book, slog.New(slog.DiscardHandler)}
			atOnce, err := s.admit(t.Context(), c.in)
			var over *webhook.Limited
			if errors.As(err, &over) != c.refuse || (err != nil) != c.refuse || atOnce {
				t.Fatalf("at once %v, error %v", atOnce, err)
			}
			if c.refuse && over.RetryAfter != 90 {
				t.Errorf("retry after %d", over.RetryAfter)
			}
			if len(f.asked) != 1 || strings.Contains(f.asked[0].Line, "2025550") || strings.Contains(f.asked[0].Line, "BANK") {
				t.Errorf("asked %+v: one line, without the number", f.asked)
			}
		})
	}
}

// stored is an inbox in which every message is a person's.
type stored struct{ offers.Inbox }

func (stored) Receive(context.Context, offers.Inbound) (offers.Received, error) {
	return offers.Received{MessageID: offers.NewID(), Trusted: true}, nil
}

// TestSendersWait: a person's message within the rate is decided at once, and one beyond it is stored and not queued.
func TestSendersWait(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for want, l := range map[bool]limit.Limiter{true: limit.NewMemory(time.Now), false: &fullLimiter{}} {
		in := intake{inbox: stored{}, runner: reply.NewRunner(stored{}, nil, quiet, 1, 1), log: quiet,
			senders: senders{l, limit.Rate{Every: time.Second, Burst: 1}, book{bound: true}, quiet}}
		decided, err := in.Receive(t.Context(), webhook.Inbound{From: "sms:+12025550102", To: "sms:+12025550100"})
		if err != nil || (decided != nil) != want {
			t.Errorf("queued %v, error %v; want queued %v", decided != nil, err, want)
		}
	}
}

// insideWith is one server inside this process, with settings of the test's.
func insideWith(t *testing.T, log io.Writer, change func(*config)) (url string, a *app, s store) {
	t.Helper()
	cfg, _, err := load(variables(environ(t, "COUNTERSIGN_SIM=1", "COUNTERSIGN_MIN_READ=1ms")), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	change(&cfg)
	if s, err = openStore(t.Context(), cfg.DatabaseURL, false); err != nil {
		t.Fatal(err)
	}
	if a, err = newApp(cfg, s, slog.New(slog.NewJSONHandler(log, nil))); err != nil {
		t.Fatal(err)
	}
	if a.internal, err = listenInternal(t.Context(), "127.0.0.1:0", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
		for _, addr := range []string{l.Addr().String(), a.internal.Addr().String()} {
			if again, err := net.Listen("tcp", addr); err != nil {
				t.Errorf("after its end the server still listens: %v", err)
			} else {
				_ = again.Close()
			}
		}
	})
	return "http://" + l.Addr().String(), a, s
}

// TestAFloodIsStoredAndItsNewestRead: of a person's messages beyond the rate every one is acknowledged and decided, and a
// stranger's are turned away.
func TestAFloodIsStoredAndItsNewestRead(t *testing.T) {
	url, _, s := insideWith(t, io.Discard, func(c *config) { c.RateSender = limit.Rate{Every: time.Hour, Burst: 2} })
	person := people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: "sim:alex", OurNumber: webhook.SimNumber}}}
	if err := s.AddPerson(t.Context(), person); err != nil {
		t.Fatal(err)
	}
	say := func(id, from string) *http.Response {
		res, err := http.Post(url+"/webhooks/sim/messages", "application/json", strings.NewReader(fmt.Sprintf(`{"id":%q,"address":%q,"text":"hm %s"}`, id, from, id)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	for i := range 10 {
		if res := say(fmt.Sprint("a", i), "sim:alex"); res.StatusCode != http.StatusOK {
			t.Fatalf("message %d of a person: %d", i, res.StatusCode)
		}
	}
	for i := range 4 {
		want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[i < 2]
		res := say(fmt.Sprint("b", i), "sim:stranger")
		if res.StatusCode != want || (i < 2) != (res.Header.Get("Retry-After") == "") {
			t.Fatalf("message %d of a stranger: %d, want %d; Retry-After %q", i, res.StatusCode, want, res.Header.Get("Retry-After"))
		}
	}
	events := map[offers.EventType]int{}
	for after, end := "", time.After(time.Minute); events[offers.MessageReceived] < 10; {
		list, next, err := s.Events(t.Context(), people.DefaultAccount, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			events[e.Type]++
		}
		after = next
		select {
		case <-end:
			t.Fatalf("events %v, want one for each of 10 messages", events)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
