package limit

import (
	"context"
	"sync"
	"time"
)

const (
	// maxLines bounds what a Memory keeps, at about 150 bytes a line. Lines are of keys, accounts and senders that were
	// proven, so that nobody can make many at will; were there more, the line that is due first is forgotten, which gives
	// its owner a new burst and takes nothing from anybody.
	maxLines = 1 << 16
	// sweepEvery is how long lines that are over may stay.
	sweepEvery = time.Minute
	// looked is how many lines are looked at to find one that can be forgotten.
	looked = 8
)

// Memory keeps lines in this process.
type Memory struct {
	now func() time.Time

	mu    sync.Mutex
	due   map[string]int64 // by line, in microseconds
	swept time.Time
	atMax int
}

// NewMemory makes a limiter with a clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, due: map[string]int64{}, atMax: maxLines}
}

// Take implements [Limiter].
func (m *Memory) Take(_ context.Context, asks ...Ask) Verdict {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	us := now.UnixMicro()
	then := make([]int64, len(asks))
	var wait time.Duration
	for i, a := range asks {
		if a.Rate.Off() {
			continue
		}
		var w time.Duration
		then[i], w = a.Rate.next(m.due[a.Line], us)
		wait = max(wait, w)
	}
	if wait > 0 { // mutant: limit.all-or-none
		return Verdict{RetryAfter: wait}
	}
	for i, a := range asks {
		if !a.Rate.Off() {
			m.room(a.Line)
			m.due[a.Line] = then[i]
		}
	}
	return Verdict{Allowed: true}
}

// sweep forgets lines that are over: they are as if they had never been.
func (m *Memory) sweep(now time.Time) {
	if now.Sub(m.swept) < sweepEvery && !now.Before(m.swept) {
		return
	}
	m.swept = now
	us := now.UnixMicro()
	for line, due := range m.due {
		if due <= us { // mutant: limit.expire
			delete(m.due, line)
		}
	}
}

// room makes place for a line that is new: of a few lines the one goes that is due first.
func (m *Memory) room(line string) {
	if _, there := m.due[line]; there || len(m.due) < m.atMax { // mutant: limit.bound
		return
	}
	first, at, n := "", int64(0), 0
	for l, due := range m.due { // in no order
		if n == 0 || due < at {
			first, at = l, due
		}
		if n++; n == looked {
			break
		}
	}
	delete(m.due, first)
}
