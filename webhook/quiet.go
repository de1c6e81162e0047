package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/limit"
)

// Refusals are for anybody to cause, and so is what is written about them: of each reason a few are logged, and then one
// a second that says how many were not. The counter counts them all.
const (
	logEvery = time.Second
	logBurst = 10
)

// quiet is a log of refusals.
type quiet struct {
	log  *slog.Logger
	rate *limit.Memory

	mu      sync.Mutex
	skipped map[string]int // by reason, which are a fixed few
}

func newQuiet(log *slog.Logger) *quiet {
	return &quiet{log: log, rate: limit.NewMemory(time.Now), skipped: map[string]int{}}
}

func (q *quiet) refused(ctx context.Context, what string, r *Refusal) {
	within := q.rate.Take(ctx, limit.Ask{Line: r.Reason, Rate: limit.Rate{Every: logEvery, Burst: logBurst}}).Allowed
	q.mu.Lock()
	if !within { // mutant: webhook.quiet
		q.skipped[r.Reason]++
		q.mu.Unlock()
		return
	}
	n := q.skipped[r.Reason]
	delete(q.skipped, r.Reason)
	q.mu.Unlock()
	q.log.WarnContext(ctx, what, "status", r.Status, "reason", r.Reason, "not_logged", n)
}
