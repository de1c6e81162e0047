package limit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/redistest"
)

func rate(t *testing.T, s string) Rate {
	t.Helper()
	r, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Rate{
		"off": {}, "0": {}, " off ": {},
		"50/s":            {20 * time.Millisecond, 50},
		"50/s burst 100":  {20 * time.Millisecond, 100},
		"600/m burst 20":  {100 * time.Millisecond, 20},
		"1/h":             {time.Hour, 1},
		"1000000/s":       {time.Microsecond, 1000000},
		"3/s   burst   1": {333333 * time.Microsecond, 1},
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", in, got, err, want)
		}
		if again, err := Parse(got.String()); in != "3/s   burst   1" && (err != nil || again != got) {
			t.Errorf("%q is written as %q, which is %+v %v", in, got, again, err)
		}
	}
	for _, in := range []string{"", "50", "50/", "/s", "50/d", "-1/s", "0/s", "1.5/s", "1000001/s", "5/s burst", "5/s burst 0", "5/s burst 1000001", "5/s burst 1 1", "5/s Burst 1", "none", "burst 3 5/s"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("%q is %+v", in, got)
		}
	}
}

func TestSeconds(t *testing.T) {
	for in, want := range map[time.Duration]int{0: 1, time.Microsecond: 1, time.Second: 1, time.Second + 1: 2, time.Hour: 3600} {
		if got := (Verdict{RetryAfter: in}).Seconds(); got != want {
			t.Errorf("%v is %d s, want %d", in, got, want)
		}
	}
}

// clock is a time that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(c.ahead.Load()))
}
func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// shelf is one limiter that the suite tests: empty, with its time in the test's hands.
type shelf struct {
	Limiter
	pass  func(time.Duration)
	exact time.Duration // how much of the real time may go by meanwhile
}

func onMemory(*testing.T) shelf {
	c := &clock{}
	return shelf{NewMemory(c.now), c.pass, 0}
}

// onRedis lets time pass by moving every line into the past.
func onRedis(t *testing.T) shelf {
	client := dial(t, redistest.URL(t))
	prefix := "test:" + strings.ReplaceAll(t.Name(), "/", ":") + fmt.Sprint(time.Now().UnixNano()) + ":"
	var log bytes.Buffer
	t.Cleanup(func() {
		if log.Len() > 0 {
			t.Errorf("Redis was not what answered: %s", &log)
		}
	})
	l := NewRedis(client, prefix, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
	return shelf{l, func(d time.Duration) {
		keys, err := client.Keys(t.Context(), prefix+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if err := client.DecrBy(t.Context(), k, d.Microseconds()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}, time.Minute}
}

// dial makes a client as the program's own.
func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.DialerRetries, o.MaxRetries, o.ContextTimeoutEnabled = 1, -1, true
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestLimiter is the suite that both limiters pass.
func TestLimiter(t *testing.T) {
	for name, open := range map[string]func(*testing.T) shelf{"Memory": onMemory, "Redis": onRedis} {
		t.Run(name, func(t *testing.T) { suite(t, open) })
	}
}

func suite(t *testing.T, open func(*testing.T) shelf) {
	take := func(t *testing.T, s shelf, want bool, asks ...Ask) Verdict {
		t.Helper()
		v := s.Take(t.Context(), asks...)
		if v.Allowed != want {
			t.Fatalf("%+v: %+v, want allowed %v", asks, v, want)
		}
		return v
	}
	t.Run("ABurstAndThenTheRate", func(t *testing.T) {
		s, a := open(t), Ask{"key:1", rate(t, "60/h burst 3")}
		for range 3 {
			take(t, s, true, a)
		}
		v := take(t, s, false, a)
		if v.RetryAfter > time.Minute || v.RetryAfter < time.Minute-s.exact || v.RetryAfter <= 0 {
			t.Fatalf("retry after %v, want %v", v.RetryAfter, time.Minute)
		}
		s.pass(v.RetryAfter - s.exact/2 - time.Microsecond)
		if s.exact == 0 {
			take(t, s, false, a)
		}
		s.pass(s.exact/2 + time.Microsecond)
		take(t, s, true, a)
		take(t, s, false, a)
		s.pass(24 * time.Hour) // a rest is worth one burst, however long
		for range 3 {
			take(t, s, true, a)
		}
		take(t, s, false, a)
	})
	t.Run("LinesAreApart", func(t *testing.T) {
		s, r := open(t), rate(t, "1/h")
		take(t, s, true, Ask{"key:1", r})
		take(t, s, false, Ask{"key:1", r})
		take(t, s, true, Ask{"key:2", r})
		take(t, s, true, Ask{"account:1", r})
	})
	t.Run("AllOrNone", func(t *testing.T) {
		s := open(t)
		key, account := Ask{"key:1", rate(t, "1/h burst 5")}, Ask{"account:1", rate(t, "2/h burst 2")}
		take(t, s, true, key, account)
		take(t, s, true, key, account)
		for range 10 { // the account is over: the key pays nothing
			v := take(t, s, false, key, account)
			if v.RetryAfter > 30*time.Minute || v.RetryAfter < 29*time.Minute {
				t.Fatalf("retry after %v, want that of the account", v.RetryAfter)
			}
		}
		for range 3 {
			take(t, s, true, key)
		}
		v := take(t, s, false, account, key) // the longest wait counts
		if v.RetryAfter < 59*time.Minute {
			t.Fatalf("retry after %v, want that of the key", v.RetryAfter)
		}
	})
	t.Run("Off", func(t *testing.T) {
		s := open(t)
		for range 100 {
			take(t, s, true, Ask{Line: "key:1"})
			take(t, s, true)
		}
		take(t, s, true, Ask{Line: "key:1"}, Ask{"key:2", rate(t, "1/h")})
		take(t, s, false, Ask{Line: "key:1"}, Ask{"key:2", rate(t, "1/h")})
	})
	t.Run("ManyAtOnce", func(t *testing.T) {
		s, a := open(t), Ask{"key:1", rate(t, "1/h burst 30")}
		var passed atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 10 {
					if s.Take(t.Context(), a).Allowed {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := passed.Load(); n != 30 {
			t.Errorf("%d passed, want 30", n)
		}
	})
	t.Run("AClockThatIsSetBackLocksNobodyOut", func(t *testing.T) {
		s, a := open(t), Ask{"key:1", rate(t, "60/h burst 2")}
		take(t, s, true, a)
		s.pass(-100 * time.Hour)
		if v := take(t, s, false, a); v.RetryAfter > time.Minute {
			t.Fatalf("retry after %v, want at most %v", v.RetryAfter, time.Minute)
		}
	})
	t.Run("AnotherRate", func(t *testing.T) {
		s := open(t)
		for range 50 {
			take(t, s, true, Ask{"key:1", rate(t, "1/h burst 50")})
		}
		if v := take(t, s, false, Ask{"key:1", rate(t, "60/h burst 1")}); v.RetryAfter > time.Minute {
			t.Fatalf("retry after %v of the rate before", v.RetryAfter)
		}
	})
}

// TestMemoryForgets: what is over goes, and there is a bound to what is not.
func TestMemoryForgets(t *testing.T) {
	c := &clock{}
	m := NewMemory(c.now)
	r := rate(t, "1/s burst 1")
	for i := range 1000 {
		m.Take(t.Context(), Ask{fmt.Sprint("sender:", i), r})
	}
	c.pass(sweepEvery)
	m.Take(t.Context(), Ask{"sender:new", r})
	if len(m.due) != 1 {
		t.Errorf("%d lines are kept, want 1", len(m.due))
	}
	m.atMax = 100
	for i := range 1000 {
		m.Take(t.Context(), Ask{fmt.Sprint("sender:", i), rate(t, "1/h burst 2")})
	}
	if len(m.due) != 100 {
		t.Errorf("%d lines are kept, want the bound, 100", len(m.due))
	}
	c.pass(-time.Hour) // nor does a clock that is set back keep them for ever
	m.Take(t.Context(), Ask{"sender:new", r})
	c.pass(sweepEvery)
	c.pass(24 * time.Hour)
	m.Take(t.Context(), Ask{"sender:new", r})
	if len(m.due) != 1 {
		t.Errorf("%d lines are kept after a day, want 1", len(m.due))
	}
}

// TestRedisIsShared: replicas count together, and lines that are over leave Redis by themselves.
func TestRedisIsShared(t *testing.T) {
	url := redistest.Start(t).URL
	client := dial(t, url)
	ask := Ask{"key:1", rate(t, "60/h burst 2")}
	quiet := slog.New(slog.DiscardHandler)
	a, b := NewRedis(client, "one:", time.Now, quiet), NewRedis(dial(t, url), "one:", time.Now, quiet)
	other := NewRedis(client, "two:", time.Now, quiet)
	for i, l := range []*Redis{a, b} {
		if !l.Take(t.Context(), ask).Allowed {
			t.Fatalf("%d was refused", i)
		}
	}
	if a.Take(t.Context(), ask).Allowed || b.Take(t.Context(), ask).Allowed {
		t.Error("two replicas let three through")
	}
	if !other.Take(t.Context(), ask).Allowed {
		t.Error("another database's line was counted")
	}
	ttl, err := client.PTTL(t.Context(), "one:key:1").Result()
	if err != nil || ttl <= time.Minute || ttl > 2*time.Minute {
		t.Errorf("the line leaves after %v (%v), want two minutes", ttl, err)
	}
}

// outages is a limiter before a Redis of its own, with a clock for the pauses.
type outages struct {
	*Redis
	t     *testing.T
	clock *clock
	log   *bytes.Buffer
}

func newOutages(t *testing.T, url string) outages {
	o := outages{t: t, clock: &clock{}, log: &bytes.Buffer{}}
	o.Redis = NewRedis(dial(t, url), "test:", o.clock.now, slog.New(slog.NewTextHandler(o.log, nil)))
	return o
}

// passes counts how many of n are let through.
func (o outages) passes(n int, a Ask) (passed int) {
	for range n {
		if o.Take(o.t.Context(), a).Allowed {
			passed++
		}
	}
	return passed
}

func (o outages) logged(want ...string) {
	o.t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.log.String(), "\n"), "\n")
	if len(lines) != len(want) {
		o.t.Fatalf("%d lines are logged, want %d:\n%s", len(lines), len(want), o.log)
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			o.t.Errorf("line %d is %q, want %q", i, lines[i], w)
		}
	}
}

const gone, back = "does not answer", "answers again"

func TestRedisStopped(t *testing.T) {
	s := redistest.Start(t)
	o, a := newOutages(t, s.URL), Ask{"key:1", rate(t, "60/h burst 5")}
	if n := o.passes(10, a); n != 5 {
		t.Fatalf("%d passed, want 5", n)
	}
	s.Stop()
	if n := o.passes(10, a); n != 5 { // a replica for itself begins anew, and still limits
		t.Fatalf("%d passed without Redis, want 5", n)
	}
	for range 3 { // tried again after each pause, and not said again
		o.clock.pass(pause)
		o.passes(2, a)
	}
	o.logged(gone)
	s.Restart() // empty
	if n := o.passes(1, a); n != 0 {
		t.Error("Redis was asked again before the pause was over")
	}
	o.clock.pass(pause)
	if n := o.passes(10, a); n != 5 {
		t.Errorf("%d passed when Redis was back and empty, want 5", n)
	}
	o.logged(gone, back)
	s.Stop()
	o.passes(1, a)
	o.logged(gone, back, gone)
}

func TestRedisSlow(t *testing.T) {
	p := redistest.Start(t).Proxy()
	o, a := newOutages(t, p.URL), Ask{"key:1", rate(t, "60/h burst 5")}
	o.passes(1, a)
	p.Slow(time.Hour) // an answer, which would never come
	if n := o.passes(10, a); n != 5 {
		t.Fatalf("%d passed, want 5", n)
	}
	o.logged(gone)
	p.Slow(0)
	o.clock.pass(pause)
	if n := o.passes(10, a); n < 1 || n > 4 { // what was asked late may have been counted
		t.Errorf("%d passed, want what Redis had left", n)
	}
	o.logged(gone, back)
}

func TestRedisEmptied(t *testing.T) {
	s := redistest.Start(t)
	o, a := newOutages(t, s.URL), Ask{"key:1", rate(t, "60/h burst 5")}
	o.passes(10, a)
	client := dial(t, s.URL)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if n := o.passes(10, a); n != 5 {
		t.Errorf("%d passed, want a new burst of 5", n)
	}
	if o.log.Len() > 0 {
		t.Errorf("that is no outage: %s", o.log)
	}
}

// TestRedisOfNoUse: what is kept in Redis under our name, and is no number, keeps nobody out for ever.
func TestRedisOfNoUse(t *testing.T) {
	s := redistest.Start(t)
	o, a := newOutages(t, s.URL), Ask{"key:1", rate(t, "60/h burst 5")}
	if err := dial(t, s.URL).Set(t.Context(), "test:key:1", "junk", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := o.passes(10, a); n != 5 {
		t.Errorf("%d passed, want 5", n)
	}
}

// TestRedisCallerGone: a caller who gives up is no outage.
func TestRedisCallerGone(t *testing.T) {
	o := newOutages(t, redistest.Start(t).URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Take(ctx, Ask{"key:1", rate(t, "1/h")})
	if o.log.Len() > 0 {
		t.Errorf("logged: %s", o.log)
	}
}

// asked is a Redis that remembers how long it was given.
type asked struct {
	redis.Scripter
	within time.Duration
}

func (a *asked) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	if end, ok := ctx.Deadline(); ok {
		a.within = time.Until(end)
	}
	return redis.NewCmdResult(int64(0), nil)
}

// TestRedisHasADeadline: no request waits for Redis longer than that, whatever else its client would do.
func TestRedisHasADeadline(t *testing.T) {
	a := &asked{}
	if !NewRedis(a, "", time.Now, slog.New(slog.DiscardHandler)).Take(t.Context(), Ask{"key:1", rate(t, "1/h")}).Allowed {
		t.Error("refused")
	}
	if a.within <= 0 || a.within > 100*time.Millisecond {
		t.Errorf("Redis was given %v, want 100ms at most", a.within)
	}
}
