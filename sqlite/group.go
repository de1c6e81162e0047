package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// groupSize is how many writers share one commit at most: whoever comes next waits for these and no longer.
const groupSize = 32

// errAborted is the error of a write whose group was rolled back because another of its writers did not return.
var errAborted = errors.New("sqlite: another write of the same commit did not return")

// writer is a call that waits for the lock, and its answer.
type writer struct {
	ctx  context.Context
	fn   func(q session, now time.Time) error
	err  error         // of fn while the group runs, then the call's
	done chan struct{} // closed once err is final: after the commit, or when there will be none

	panicked  bool // fn did, with this value
	recovered any
}

// write runs fn under the lock, with the clock as it was read after the lock was there, and returns after the commit.
// Errors of fn go out as they are, and nothing of fn is stored. Writers that wait at the same time share a transaction
// and its commit: each runs in a savepoint of its own, sees what those before it did, and is undone alone. Where the
// commit fails it fails for all of them.
func (s *Store) write(ctx context.Context, fn func(q session, now time.Time) error) error {
	w := &writer{ctx: ctx, fn: fn, done: make(chan struct{})}
	s.waiting.Push(w)
	select {
	case s.turn <- struct{}{}:
		s.lead(w)
	case <-w.done:
	case <-ctx.Done():
		if s.waiting.Remove(w) { // mutant: sqlite.group-leave
			return ctx.Err()
		}
	}
	<-w.done
	if w.panicked {
		panic(w.recovered)
	}
	return w.err
}

// lead runs groups until w has its answer. The caller holds the turn, which is given back.
func (s *Store) lead(w *writer) {
	defer func() { <-s.turn }()
	for {
		select {
		case <-w.done:
			return
		default:
		}
		// The lock first: who comes while it is waited for comes along.
		if err := s.begin(w.ctx); err != nil {
			if s.waiting.Remove(w) {
				w.err = err
				close(w.done)
			}
			return
		}
		s.run(s.waiting.Pop(groupSize))
	}
}

// run answers a group inside the transaction that has begun, and ends that.
func (s *Store) run(group []*writer) {
	// What holds the lock runs to its end: a commit that was cut off would leave its outcome open.
	q := session{ctx: context.Background(), by: s.writer}
	failure, committed := errAborted, false // as it stays where a function ends its goroutine
	defer func() {
		if !committed {
			s.rollback(q)
		}
		for _, w := range group {
			if failure != nil { // mutant: sqlite.group-failure
				w.err = failure // what it has found out may be what was rolled back
			}
			close(w.done)
		}
	}()
	if failure = s.callEach(q, group); failure != nil {
		return
	}
	if _, err := q.exec(`COMMIT`); err != nil {
		failure = fmt.Errorf("commit: %w", err)
		return
	}
	committed = true
}

// callEach calls the functions of a group one after the other. An error fails the whole group: a lone writer's own, since there is nobody
// to be spared, or one of the savepoints.
func (s *Store) callEach(q session, group []*writer) error {
	for _, w := range group {
		if len(group) == 1 {
			w.call(s)
			return w.err
		}
		if _, err := q.exec(`SAVEPOINT writer`); err != nil {
			return fmt.Errorf("savepoint: %w", err)
		}
		w.call(s)
		if w.panicked { // mutant: sqlite.group-panic
			return errAborted
		}
		if w.err != nil { // mutant: sqlite.group-undo
			if _, err := q.exec(`ROLLBACK TO writer`); err != nil {
				return fmt.Errorf("savepoint: %w", err)
			}
		}
		if _, err := q.exec(`RELEASE writer`); err != nil {
			return fmt.Errorf("savepoint: %w", err)
		}
	}
	return nil
}

// call runs the writer's function. A panic is kept for the goroutine that it belongs to.
func (w *writer) call(s *Store) {
	defer func() {
		if w.recovered = recover(); w.recovered != nil {
			w.panicked, w.err = true, errAborted
		}
	}()
	w.err = w.fn(session{ctx: context.WithoutCancel(w.ctx), by: s.writer}, s.now())
}
