package reply

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/offers"
)

const (
	// grace is how long a message that was just stored is left to the process that stored it.
	grace = 2 * time.Second
	// look is how often messages are looked for that nobody has decided.
	look = time.Second
	// batch is how many of those are taken at once.
	batch = 100
)

// Runner sees to it that every stored message is decided, whatever crashes. Messages that this process stored come by
// Submit; those of a process that died are found in the store.
type Runner struct {
	inbox   offers.Inbox
	process func(context.Context, offers.Received) error
	log     *slog.Logger
	queue   chan job
	workers int
}

// NewRunner makes a runner with so many workers and so many places to wait.
func NewRunner(inbox offers.Inbox, process func(context.Context, offers.Received) error, log *slog.Logger, workers, places int) *Runner {
	return &Runner{inbox: inbox, process: process, log: log, queue: make(chan job, places), workers: workers}
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

// one decides a message; once begun it is seen through.
func (r *Runner) one(ctx context.Context, m offers.Received) {
	if err := r.process(context.WithoutCancel(ctx), m); err != nil {
		// Not retried here: the message is still undecided, and recover finds it.
		r.log.ErrorContext(ctx, "message not decided", "message", m, "error", err)
	}
}

// recover looks for messages that nobody has decided: after a crash, an error, or with no place in the queue.
func (r *Runner) recover(ctx context.Context) {
	age := time.Duration(0) // at the start there is nobody else to leave them to
	for ctx.Err() == nil {
		ids, err := r.inbox.Undecided(ctx, age, batch)
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "undecided messages cannot be listed", "error", err)
		}
		age = grace
		for _, id := range ids {
			m, err := r.inbox.Context(ctx, id)
			if err != nil {
				r.log.ErrorContext(ctx, "message not loaded", "message_id", id, "error", err)
				continue
			}
			r.one(ctx, m)
		}
		t := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}
