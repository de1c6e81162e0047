package main

import (
	"bytes"
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

// TestRedisURL: a URL that is none ends the start with a sentence that says what to do and repeats nothing of it, and
// one is never printed whole.
func TestRedisURL(t *testing.T) {
	for _, bad := range []string{"localhost:6379", "http://u:hunter2@localhost", "redis://u:hunter2@localhost:port/0", "redis://u:hunter2@h/x"} {
		code, _, errs := bot(t, environ(t, "COUNTERSIGN_SIM=1", "COUNTERSIGN_CONSOLE_ADDR=off", "COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_REDIS_URL="+bad), "", "serve")
		if code != exitUsage || !strings.Contains(errs, "COUNTERSIGN_REDIS_URL must be redis://") || strings.Contains(errs, "hunter2") {
			t.Errorf("%q: %d %s", bad, code, errs)
		}
	}
	_, out, _ := bot(t, environ(t, "COUNTERSIGN_REDIS_URL=redis://u:hunter2@redis:6379/0"), "", "serve", "--print-config")
	if strings.Contains(out, "hunter2") || !strings.Contains(out, `redis_url: "redis://[redacted]@redis:6379/0"`) {
		t.Errorf("printed as %s", out)
	}
}

// TestRedisPrefix: replicas that name one database alike share a prefix, whatever their password; other databases have
// another.
func TestRedisPrefix(t *testing.T) {
	one := redisPrefix("postgres://a:b@db:5432/countersign")
	if strings.Contains(one, "db") || one != redisPrefix("postgres://c:d@db:5432/countersign?sslmode=disable") {
		t.Error("a user or an option makes another database")
	}
	seen := map[string]string{}
	for _, u := range []string{
		"postgres://a:b@db:5432/countersign", "postgres://a:b@db:5432/other", "postgres://a:b@db2:5432/countersign", "postgres://a:b@db:5433/countersign",
		"postgres:///countersign?host=/run/a", "postgres:///countersign?host=/run/b", "sqlite:a.db", "sqlite:b.db",
	} {
		p := redisPrefix(u)
		if seen[p] != "" {
			t.Errorf("%s and %s share a prefix", u, seen[p])
		}
		seen[p] = u
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

// TestInternalListener: metrics are on it, and nothing of it is on the public one.
func TestInternalListener(t *testing.T) {
	url, a, _ := insideWith(t, io.Discard, func(*config) {})
	get := func(url string) (int, string) {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close() //nolint:errcheck // read to its end
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	res, err := http.Post(url+"/webhooks/sim/messages", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	inner := "http://" + a.internal.Addr().String()
	if status, body := get(inner + "/metrics"); status != http.StatusOK || !strings.Contains(body, `countersign_webhook_requests_total{door="messages",reason="content_type",status="415"} 1`) {
		t.Errorf("metrics: %d %.300s", status, body)
	}
	if status, _ := get(url + "/metrics"); status != http.StatusNotFound {
		t.Errorf("metrics are public: %d", status)
	}
	for _, path := range []string{"/v1/offers", "/o/x", "/webhooks/sim/messages", "/healthz"} {
		if status, _ := get(inner + path); status != http.StatusNotFound {
			t.Errorf("%s is on the internal listener: %d", path, status)
		}
	}
}

// TestConsoleAddr: where the internal listener cannot be is said in a sentence; the default gives way, since a second
// server on a machine is no fault.
func TestConsoleAddr(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // a test's
	at := taken.Addr().String()
	serve := func(more ...string) (int, string) {
		code, _, errs := bot(t, environ(t, append([]string{"COUNTERSIGN_SIM=1"}, more...)...), "", "serve")
		return code, errs
	}
	if code, errs := serve("COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR="+at); code != exitUsage || !strings.Contains(errs, "Nothing can listen at COUNTERSIGN_CONSOLE_ADDR") || !strings.Contains(errs, "off") {
		t.Errorf("a taken port: %d %s", code, errs)
	}
	if code, errs := serve("COUNTERSIGN_ADDR="+at, "COUNTERSIGN_CONSOLE_ADDR="+at); code != exitUsage || !strings.Contains(errs, "are the same") {
		t.Errorf("one address for both: %d %s", code, errs)
	}
	if code, errs := serve("COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR=nowhere"); code != exitUsage || !strings.Contains(errs, "COUNTERSIGN_CONSOLE_ADDR") {
		t.Errorf("no address: %d %s", code, errs)
	}
	var log bytes.Buffer
	for i, addr := range []string{defaultConsoleAddr, defaultConsoleAddr} { // the second finds it taken, if the first did not
		l, err := listenInternal(t.Context(), addr, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		defer l.Close() //nolint:errcheck // a test's
	}
	if !strings.Contains(log.String(), "default is taken") {
		t.Errorf("logged %s", &log)
	}
	for _, off := range []string{"", "off"} {
		if l, err := listenInternal(t.Context(), off, slog.New(slog.DiscardHandler)); l != nil || err != nil {
			t.Errorf("%q: %v %v", off, l, err)
		}
	}
	if sameAddr("127.0.0.1:0", "127.0.0.1:0") {
		t.Error("port 0 twice is two ports")
	}
}

// TestSlowBodies: both doors and the API end a body that does not come.
func TestSlowBodies(t *testing.T) {
	url, _, s := insideWith(t, io.Discard, func(c *config) { c.BodyTime = 50 * time.Millisecond })
	secret, hash := people.NewSecret()
	if err := s.AddKey(t.Context(), people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "agent", Scope: people.ScopeAgent}, hash); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/webhooks/sim/messages", "/v1/offers", "/v1/runs"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nIdempotency-Key: x\r\nContent-Length: 100\r\n\r\n{", path, secret); err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(conn) // the connection ends with the answer
		if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 408 ") || !strings.Contains(string(raw), "timeout") {
			t.Errorf("%s: %v %q", path, err, raw)
		}
		_ = conn.Close()
	}
}
