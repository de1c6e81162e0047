package reply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign/countersign/offers"
)

// box is an inbox that holds ids of undecided messages, oldest first, until they are decided.
type box struct {
	offers.Inbox
	mu        sync.Mutex
	undecided []string
	tries     map[string]int
	bad       func(id string) error // what comes of a try
	broken    error
}

func newBox(n int) *box {
	b := &box{tries: map[string]int{}, bad: func(string) error { return nil }}
	for i := range n {
		b.undecided = append(b.undecided, fmt.Sprintf("m%03d", i))
	}
	return b
}

func (b *box) Undecided(_ context.Context, _ time.Duration, limit int) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.undecided[:min(limit, len(b.undecided))]), b.broken
}

func (b *box) Context(_ context.Context, id string) (offers.Received, error) {
	return offers.Received{MessageID: id, Trusted: true}, nil
}

func (b *box) process(_ context.Context, m offers.Received) error {
	b.mu.Lock()
	b.tries[m.MessageID]++
	err := b.bad(m.MessageID)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.undecided = slices.DeleteFunc(b.undecided, func(id string) bool { return id == m.MessageID })
	return nil
}

func (b *box) left() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.undecided) }

func (b *box) tried(id string) int { b.mu.Lock(); defer b.mu.Unlock(); return b.tries[id] }

// during makes and runs a runner on a clock of its own for so long.
func during(t *testing.T, d time.Duration, runner func() *Runner) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := runner()
		ctx, stop := context.WithTimeout(t.Context(), d)
		defer stop()
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		<-done
	})
}

func TestRunnerLosesNothingWithNoPlaceLeft(t *testing.T) {
	b := newBox(50)
	during(t, 5*time.Second, func() *Runner {
		r := NewRunner(b, b.process, discard(), 1, 1)
		for _, id := range b.undecided {
			r.Submit(offers.Received{MessageID: id, Trusted: true})
		}
		return r
	})
	if n := b.left(); n != 0 {
		t.Errorf("%d messages lost", n)
	}
}

func TestRunnerTriesAgain(t *testing.T) {
	b := newBox(1)
	b.bad = func(id string) error {
		if b.tries[id] < 3 {
			return errNoAnswer
		}
		return nil
	}
	during(t, 20*time.Second, func() *Runner { return NewRunner(b, b.process, discard(), 1, 1) })
	if b.left() != 0 {
		t.Errorf("undecided after %d tries", b.tried("m000"))
	}
}

// A message that cannot be decided is tried ever more seldom, and hides no other behind it, however many there are.
func TestRunnerPoison(t *testing.T) {
	for name, fails := range map[string]func() error{
		"error": func() error { return errNoAnswer },
		"panic": func() error { panic("of a message") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(3*batch + 10)
			poison := func(id string) bool { return id < fmt.Sprintf("m%03d", 3*batch) }
			during(t, 10*time.Second, func() *Runner {
				return NewRunner(b, func(ctx context.Context, m offers.Received) error {
					if poison(m.MessageID) {
						return fails()
					}
					return b.process(ctx, m)
				}, discard(), 4, 1)
			})
			if n := b.left(); n != 3*batch {
				t.Errorf("%d messages are left, want the %d that cannot be decided", n, 3*batch)
			}
		})
	}
	t.Run("seldom", func(t *testing.T) {
		b := newBox(1)
		b.bad = func(string) error { return errNoAnswer }
		during(t, time.Hour, func() *Runner { return NewRunner(b, b.process, discard(), 1, 1) })
		if n := b.tried("m000"); n < 30 || n > 90 {
			t.Errorf("%d tries within an hour", n)
		}
	})
	t.Run("decided by somebody else", func(t *testing.T) {
		r := NewRunner(newBox(0), nil, discard(), 1, 1)
		r.note("gone", errNoAnswer)
		r.note("here", errNoAnswer)
		if got := r.due([]string{"here"}); len(got) != 0 || r.failures() != 1 {
			t.Errorf("due %q, %d remembered", got, r.failures())
		}
		r.note("here", nil)
		if r.failures() != 0 {
			t.Error("a message that was decided is remembered as failing")
		}
	})
}

func TestRunnerListThatFails(t *testing.T) {
	b := newBox(1)
	b.broken = errNoAnswer
	during(t, 10*time.Second, func() *Runner {
		time.AfterFunc(5*time.Second, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.broken = nil
		})
		return NewRunner(b, b.process, discard(), 1, 1)
	})
	if b.left() != 0 {
		t.Error("the list was never asked for again")
	}
}

// What was submitted before the end is seen through.
func TestRunnerDrains(t *testing.T) {
	b := newBox(20)
	r := NewRunner(b, b.process, discard(), 2, 100)
	for _, id := range b.undecided {
		r.Submit(offers.Received{MessageID: id, Trusted: true})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r.Run(ctx)
	if n := b.left(); n != 0 {
		t.Errorf("%d left at the end", n)
	}
}

func TestRunnerSubmit(t *testing.T) {
	b := newBox(0)
	r := NewRunner(b, b.process, discard(), 1, 1)
	first, second := r.Submit(offers.Received{MessageID: "a"}), r.Submit(offers.Received{MessageID: "b"})
	if first == nil || second != nil {
		t.Fatalf("with one place: %v %v", first, second)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r.Run(ctx)
	select {
	case <-first:
	default:
		t.Error("not told that it was decided")
	}
}

// A panic's value may hold somebody's words: they do not come out.
func TestRunnerPanicIsRedacted(t *testing.T) {
	r := NewRunner(newBox(0), func(context.Context, offers.Received) error { panic("the person's words") }, discard(), 1, 1)
	err := r.guarded(t.Context(), offers.Received{})
	if !errors.Is(err, errPanic) || strings.Contains(err.Error(), "words") {
		t.Errorf("error %v", err)
	}
}
