package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/countersign/countersign/offers"
)

const (
	// grace is how long a message that was just stored is left to the process that stored it.
	grace = 2 * time.Second
	// lookEvery is how often messages are looked for that nobody has decided.
	lookEvery = time.Second
	// batch is how many of those are taken at once, besides the ones that failed before.
	batch = 100
	// tryTimeout is how long one try of one message may take. It is beyond every deadline of a reader or a store.
	tryTimeout = 30 * time.Second
	// longestPause is how many looks a message is passed over at most after it failed.
	longestPause = 60
)

// errPanic is the error of a message that made the code panic.
var errPanic = errors.New("reply: panic while deciding a message")

// Runner sees to it that every stored message is decided, whatever crashes. Messages that this process stored come by
// Submit; those of a process that died are found in the store.
type Runner struct {
	inbox   offers.Inbox
	process func(context.Context, offers.Received) error
	log     *slog.Logger
	queue   chan job
	workers int

	mu      sync.Mutex
	failing map[string]failure // messages whose last try failed
}

// failure is how often a message failed in a row, and for how many looks it is still passed over.
type failure struct{ times, pause int }

// NewRunner makes a runner with so many workers, and a queue of so many places for Submit.
func NewRunner(inbox offers.Inbox, process func(context.Context, offers.Received) error, log *slog.Logger, workers, places int) *Runner {
	return &Runner{inbox: inbox, process: process, log: log, queue: make(chan job, places), workers: workers, failing: map[string]failure{}}
}

// job is a message in the queue.
type job struct {
	message offers.Received
	done    chan<- struct{}
}

// Submit hands over a message that is stored, and returns a channel that is closed when this process is through with it.
// It never waits: with no place left the channel is nil, and the message is found in the store.
func (r *Runner) Submit(m offers.Received) <-chan struct{} {
	done := make(chan struct{})
	select {
	case r.queue <- job{m, done}:
		return done
	default:
		return nil
	}
}

// Run decides messages until ctx ends, and then those that were submitted before.
func (r *Runner) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range r.workers {
		wg.Go(func() { r.work(ctx) })
	}
	wg.Go(func() { r.recover(ctx) })
	wg.Wait()
}

func (r *Runner) work(ctx context.Context) {
	for {
		select {
		case j := <-r.queue:
			r.one(ctx, j.message)
			close(j.done)
		case <-ctx.Done():
			select {
			case j := <-r.queue:
				r.one(ctx, j.message)
				close(j.done)
			default:
				return
			}
		}
	}
}

// one decides a message; once begun it is seen through. A message that fails is not retried here: it is still undecided,
// and recover finds it.
func (r *Runner) one(ctx context.Context, m offers.Received) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	err := r.guarded(ctx, m)
	r.note(m.MessageID, err)
	if err != nil {
		r.log.ErrorContext(ctx, "message not decided", "message", m, "error", err)
	}
}

// guarded keeps one message that makes the code panic from ending the process, again after each start.
func (r *Runner) guarded(ctx context.Context, m offers.Received) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("%w: %w", errPanic, p)
		default:
			err = fmt.Errorf("%w: %T", errPanic, p) // the value may hold somebody's words
		}
	}()
	return r.process(ctx, m)
}

// note remembers how a try went: a message that fails again and again is tried ever more seldom, so that it takes neither
// the time of others nor the log.
func (r *Runner) note(id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.failing, id)
		return
	}
	f := r.failing[id]
	f.times++
	f.pause = min(1<<min(f.times-1, 10), longestPause)
	r.failing[id] = f
}

// due picks those of the undecided messages that are to be tried now, and forgets failures of messages that are not among
// them any more: somebody has decided those.
func (r *Runner) due(ids []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	still := make(map[string]failure, len(r.failing))
	var out []string
	for _, id := range ids {
		f, failed := r.failing[id]
		if failed && f.pause > 0 { // mutant: runner.pause
			f.pause--
			still[id] = f
			continue
		}
		if failed {
			still[id] = f
		}
		out = append(out, id)
	}
	r.failing = still
	return out
}

func (r *Runner) failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failing)
}

// recover looks for messages that nobody has decided: after a crash, an error, or with no place in the queue.
func (r *Runner) recover(ctx context.Context) {
	age := time.Duration(0) // at the start there is nobody else to leave them to
	for ctx.Err() == nil {
		r.look(ctx, age)
		age = grace
		t := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// look takes up what has been undecided for that long. The list is as much longer as there are messages that failed
// before: those are the oldest, and would hide all others behind them.
func (r *Runner) look(ctx context.Context, age time.Duration) {
	ids, err := r.inbox.Undecided(ctx, age, batch+r.failures()) // mutant: runner.starve
	if err != nil {
		if ctx.Err() == nil {
			r.log.ErrorContext(ctx, "undecided messages cannot be listed", "error", err)
		}
		return
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, r.workers)
	for _, id := range r.due(ids) {
		if ctx.Err() != nil {
			break
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			m, err := r.inbox.Context(ctx, id)
			if err != nil {
				r.note(id, err)
				r.log.ErrorContext(ctx, "message not loaded", "message_id", id, "error", err)
				return
			}
			r.one(ctx, m)
		})
	}
	wg.Wait()
}
