package wake

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/redistest"
	"github.com/countersign/countersign/offers"
)

// replica is one process's waiters, joined to the others'.
type replica struct {
	offers.Wake
	relay *Relay
	log   *lines
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text string
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	close(l.more)
	l.more = make(chan struct{})
	return len(p), nil
}

// waits returns when the log holds s so many times.
func (l *lines) waits(t *testing.T, s string, times int) {
	t.Helper()
	for {
		l.mu.Lock()
		n, more := strings.Count(l.text, s), l.more
		l.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("%q is not logged", s)
		}
	}
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text, s)
}

// join starts a replica and returns when it hears the others.
func join(t *testing.T, url string) *replica {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.DialerRetries, o.MaxRetries, o.ContextTimeoutEnabled = 1, -1, true
	client := redis.NewClient(o)
	r := &replica{log: &lines{more: make(chan struct{})}}
	r.relay = New(client, "test:"+t.Name(), &r.Wake, slog.New(slog.NewTextHandler(r.log, nil)))
	r.relay.deadline, r.relay.silence, r.relay.pause = 200*time.Millisecond, 100*time.Millisecond, 10*time.Millisecond
	joined := r.InLine()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); r.relay.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = client.Close()
	})
	woken(t, joined, "by having joined")
	return r
}

func woken(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-t.Context().Done():
		t.Fatalf("not woken %s", what)
	case <-time.After(time.Minute):
		t.Fatalf("not woken %s", what)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAcrossReplicas(t *testing.T) {
	url := redistest.Start(t).URL // a join rings: nothing else may come between
	a, b := join(t, url), join(t, url)

	events, line := b.C(), b.InLine()
	a.SignalEvents()
	woken(t, events, "by an event at the other")
	if closed(line) {
		t.Error("an event woke who sends texts")
	}
	a.Signal()
	woken(t, line, "by a text in line at the other")

	// What a process says comes back to it, and wakes nobody there. Messages keep their order, so that its own has been
	// heard once the other's has.
	line, other := a.InLine(), b.InLine()
	a.Signal()
	again := a.InLine() // before the signal has been to Redis and back
	woken(t, other, "by a text in line at the other")
	woken(t, line, "by its own signal, at once")
	line, events = again, a.C()
	b.SignalEvents()
	woken(t, events, "by an event at the other")
	if closed(line) {
		t.Error("its own signal woke it again")
	}
	if a.log.text != "" || b.log.text != "" {
		t.Errorf("logged: %s%s", a.log.text, b.log.text)
	}
}

// TestAnythingRings: whatever comes over the channel is a hint, also what another version says.
func TestAnythingRings(t *testing.T) {
	url := redistest.Start(t).URL
	a := join(t, url)
	for _, payload := range []string{"", "x", "a later version's", strings.Repeat("l", 1<<16)} {
		line := a.InLine()
		if err := a.relay.client.Publish(t.Context(), a.relay.channel, payload).Err(); err != nil {
			t.Fatal(err)
		}
		woken(t, line, "by something unknown")
	}
}

func TestRedisStopped(t *testing.T) {
	s := redistest.Start(t)
	a, b := join(t, s.URL), join(t, s.URL)
	s.Stop()
	for _, r := range []*replica{a, b} {
		r.log.waits(t, "not heard", 1)
		line := r.InLine()
		for range 1000 { // nobody waits for Redis to say it
			r.Signal()
		}
		if !closed(line) {
			t.Error("without Redis its own waiters are not woken")
		}
		r.log.waits(t, "not sent", 1)
	}
	// With the new connection everybody is woken: something may have been said meanwhile.
	line := a.InLine()
	s.Restart()
	woken(t, line, "by the new connection")
	for _, r := range []*replica{a, b} {
		r.log.waits(t, "heard again", 1)
	}
	line = b.InLine()
	a.Signal()
	woken(t, line, "by the other, after the outage")
	for _, r := range []*replica{a, b} {
		if n := r.log.count("not heard"); n != 1 {
			t.Errorf("said %d times that it hears nothing", n)
		}
		if n := r.log.count("not sent"); n != 1 {
			t.Errorf("said %d times that it sends nothing", n)
		}
	}
}

// TestRedisSilent: a connection over which nothing comes any more is given up and made anew.
func TestRedisSilent(t *testing.T) {
	s := redistest.Start(t)
	p := s.Proxy()
	a, b := join(t, p.URL), join(t, s.URL)
	p.Slow(time.Hour)
	a.log.waits(t, "not heard", 1)
	p.Slow(0)
	a.log.waits(t, "heard again", 1)
	line := a.InLine()
	b.Signal()
	woken(t, line, "by the other, after the silence")
}
