package limit

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// deadline is how long a request waits for Redis at most.
	deadline = 100 * time.Millisecond
	// pause is how long Redis is left alone after it failed: one request then tries it, and the others do not wait.
	pause = time.Second
)

//go:embed gcra.lua
var gcra string

// Redis keeps lines for all replicas, by the clock of the Redis server. While that is stopped, slow or full it limits by a
// Memory, each replica for itself; emptied, it starts every line anew. Either way more may pass than should, for a while,
// and nothing waits longer than a deadline.
type Redis struct {
	client   redis.Scripter
	script   *redis.Script
	prefix   string
	fallback *Memory
	now      func() time.Time
	log      *slog.Logger

	mu      sync.Mutex
	down    time.Time // since when it fails; zero: it answers
	retryAt time.Time
}

// NewRedis makes a limiter whose lines begin with a prefix, which sets the databases of one Redis apart. client must heed
// the deadline of a call. now is the clock of the fallback.
func NewRedis(client redis.Scripter, prefix string, now func() time.Time, log *slog.Logger) *Redis {
	return &Redis{client: client, script: redis.NewScript(gcra), prefix: prefix, fallback: NewMemory(now), now: now, log: log}
}

// Take implements [Limiter].
func (r *Redis) Take(ctx context.Context, asks ...Ask) Verdict {
	keys, args := make([]string, 0, len(asks)), make([]any, 0, 2*len(asks))
	for _, a := range asks {
		if !a.Rate.Off() {
			keys = append(keys, r.prefix+a.Line)
			args = append(args, a.Rate.Every.Microseconds(), a.Rate.Burst)
		}
	}
	if len(keys) == 0 {
		return Verdict{Allowed: true}
	}
	if !r.mayTry() {
		return r.fallback.Take(ctx, asks...)
	}
	within, cancel := context.WithTimeout(ctx, deadline)
	wait, err := r.script.Run(within, r.client, keys, args...).Int64()
	cancel()
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return r.fallback.Take(context.WithoutCancel(ctx), asks...) // the caller gave up; that says nothing of Redis
	}
	r.note(ctx, err)
	switch {
	case err != nil: // mutant: limit.fallback
		return r.fallback.Take(ctx, asks...)
	case wait > 0:
		return Verdict{RetryAfter: time.Duration(wait) * time.Microsecond}
	}
	return Verdict{Allowed: true}
}

// mayTry reports whether Redis is to be asked: while it fails, by one request in each pause.
func (r *Redis) mayTry() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down.IsZero() {
		return true
	}
	now := r.now()
	if now.Before(r.retryAt) { // mutant: limit.pause
		return false
	}
	r.retryAt = now.Add(pause)
	return true
}

// note remembers how Redis answered, and says so once at each end of an outage.
func (r *Redis) note(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	switch {
	case err != nil && r.down.IsZero(): // mutant: limit.log-once
		r.down, r.retryAt = now, now.Add(pause)
		r.log.WarnContext(ctx, "Redis does not answer: each replica limits for itself until it does", "error", err)
	case err == nil && !r.down.IsZero():
		r.log.InfoContext(ctx, "Redis answers again", "after", now.Sub(r.down).String())
		r.down = time.Time{}
	}
}
