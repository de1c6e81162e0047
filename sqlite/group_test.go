package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

var (
	errOwn      = errors.New("own") // of a writer
	errPanicked = errors.New("panicked")
	errAbsent   = errors.New("the goroutine ended")
)

type (
	execFn  = func(query string, args ...any) error
	countFn = func(query string, args ...any) (int, error)
)

// group is a store whose writers share commits.
type group struct {
	s     *sqlite.Store
	other *sql.Conn // sees what is committed
	// A connection that reads twice at once reads both times what stood when the first began.
	one *sync.Mutex
}

func newGroup(t *testing.T) (group, string) {
	t.Helper()
	s, path, _ := migrated(t)
	return group{s, raw(t, path), new(sync.Mutex)}, path
}

// run lets n writers wait for the file at the same time. fn is called with each writer's number, in some order; the errors
// are in the order of the numbers.
func (g group) run(t *testing.T, path string, n int, fn func(i int, exec execFn, count countFn) error) []error {
	t.Helper()
	release := hold(t, path)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = errAbsent
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("%w: %v", errPanicked, p)
				}
			}()
			errs[i] = g.s.Write(t.Context(), func(exec execFn, count countFn) error { return fn(i, exec, count) })
			if errs[i] == nil && g.stored(t, i) != 1 {
				t.Errorf("writer %d has its answer, and nothing is committed", i)
			}
		})
	}
	for g.s.InLine() < n {
		runtime.Gosched()
	}
	release()
	wg.Wait()
	return errs
}

// mark is the row that writer i makes.
func mark(i int, exec execFn) error {
	return exec(`INSERT INTO own_addresses (account_id, address) VALUES (?1, ?2)`, people.DefaultAccount, fmt.Sprint("w", i))
}

const marks = `SELECT count(*) FROM own_addresses`

func (g group) stored(t *testing.T, i int) int {
	t.Helper()
	n, err := g.committed(marks+` WHERE address = ?`, fmt.Sprint("w", i))
	if err != nil {
		t.Error(err)
	}
	return n
}

// committed is what a count says to somebody outside.
func (g group) committed(query string, args ...any) (n int, err error) {
	g.one.Lock()
	defer g.one.Unlock()
	err = g.other.QueryRowContext(context.Background(), query, args...).Scan(&n)
	return n, err
}

// usable fails the test where an ordinary write does not work afterwards.
func (g group) usable(t *testing.T) {
	t.Helper()
	must(t, g.s.Write(t.Context(), func(exec execFn, _ countFn) error { return mark(1000, exec) }))
	if g.stored(t, 1000) != 1 {
		t.Fatal("a write after the group is not stored")
	}
}

// What a writer did is undone with its error, and nothing else is. The others have seen one another before the commit.
func TestGroup_AnErrorUndoesItsOwnAlone(t *testing.T) {
	const n = 5
	g, path := newGroup(t)
	most := 0
	errs := g.run(t, path, n, func(i int, exec execFn, count countFn) error {
		if err := mark(i, exec); err != nil {
			return err
		}
		seen, err := count(marks)
		most = max(most, seen)
		if i == 2 {
			return errOwn
		}
		return err
	})
	if most < n-1 {
		t.Fatalf("a writer saw %d rows at most: they did not share a transaction", most)
	}
	for i, err := range errs {
		if i == 2 {
			if !errors.Is(err, errOwn) || g.stored(t, i) != 0 {
				t.Fatalf("the failing writer got %v and has %d rows, want its own error and none", err, g.stored(t, i))
			}
			continue
		}
		must(t, err)
	}
	g.usable(t)
}

// Nobody has an answer, and nobody else sees a row, while the group runs.
func TestGroup_NoAnswerBeforeTheCommit(t *testing.T) {
	const n = 6
	g, path := newGroup(t)
	for i, err := range g.run(t, path, n, func(i int, exec execFn, _ countFn) error {
		for j := range n {
			if g.stored(t, j) != 0 {
				t.Errorf("the row of writer %d is out while writer %d runs", j, i)
			}
		}
		return mark(i, exec)
	}) {
		if err != nil {
			t.Fatalf("writer %d: %v", i, err)
		}
	}
}

// A commit that fails is an error for everybody, also for those who had an error or an answer of their own.
func TestGroup_AFailedCommitFailsAll(t *testing.T) {
	const n = 5
	g, path := newGroup(t)
	for i, err := range g.run(t, path, n, func(i int, exec execFn, _ countFn) error {
		switch i {
		case 1:
			return errOwn
		case 3: // a reference to nothing that is looked at when the transaction commits
			if err := exec(`PRAGMA defer_foreign_keys = ON`); err != nil {
				return err
			}
			return exec(`INSERT INTO own_addresses (account_id, address) VALUES ('nobody', 'w3')`)
		}
		return mark(i, exec)
	}) {
		if err == nil || errors.Is(err, errOwn) {
			t.Errorf("writer %d got %v, want the commit's error", i, err)
		}
		if g.stored(t, i) != 0 {
			t.Errorf("a row of writer %d is stored", i)
		}
	}
	g.usable(t)
}

// A lone writer's failed commit is its error too.
func TestGroup_AFailedCommitOfOne(t *testing.T) {
	g, _ := newGroup(t)
	err := g.s.Write(t.Context(), func(exec execFn, _ countFn) error {
		if err := exec(`PRAGMA defer_foreign_keys = ON`); err != nil {
			return err
		}
		return exec(`INSERT INTO own_addresses (account_id, address) VALUES ('nobody', 'w3')`)
	})
	if err == nil || g.stored(t, 3) != 0 {
		t.Fatalf("got %v and %d rows, want an error and none", err, g.stored(t, 3))
	}
	g.usable(t)
}

// A panic reaches its own caller. What it left behind is not known to be whole, so that nothing of the group is stored.
func TestGroup_APanicIsItsCallersAndNothingIsStored(t *testing.T) {
	const n = 4
	g, path := newGroup(t)
	for i, err := range g.run(t, path, n, func(i int, exec execFn, _ countFn) error {
		if err := mark(i, exec); err != nil {
			return err
		}
		if i == 2 {
			panic("oh")
		}
		return nil
	}) {
		if err == nil || errors.Is(err, errPanicked) != (i == 2) {
			t.Errorf("writer %d got %v", i, err)
		}
		if g.stored(t, i) != 0 {
			t.Errorf("a row of writer %d is stored", i)
		}
	}
	g.usable(t)
}

// A function that ends its goroutine ends it in the middle of the group, and leaves no lock behind.
func TestGroup_AGoroutineThatEnds(t *testing.T) {
	const n = 4
	g, path := newGroup(t)
	for i, err := range g.run(t, path, n, func(i int, exec execFn, _ countFn) error {
		if err := mark(i, exec); err != nil {
			return err
		}
		if i == 2 {
			runtime.Goexit()
		}
		return nil
	}) {
		if err == nil {
			t.Errorf("writer %d has no error", i)
		}
		if g.stored(t, i) != 0 {
			t.Errorf("a row of writer %d is stored", i)
		}
	}
	g.usable(t)
}

// Nobody waits for more than a group of others that came before.
func TestGroup_IsBounded(t *testing.T) {
	const n = 2*sqlite.GroupSize + 5
	g, path := newGroup(t)
	most := 0
	for i, err := range g.run(t, path, n, func(i int, exec execFn, count countFn) error {
		if err := mark(i, exec); err != nil {
			return err
		}
		inside, err := count(marks)
		if err != nil {
			return err
		}
		committed, err := g.committed(marks)
		if err != nil {
			return err
		}
		most = max(most, inside-committed)
		return nil
	}) {
		if err != nil {
			t.Fatalf("writer %d: %v", i, err)
		}
	}
	if most != sqlite.GroupSize {
		t.Fatalf("a commit took %d writers, want %d of %d", most, sqlite.GroupSize, n)
	}
}

// Who gives up while it waits is not run. That it was to lead the others does not hold them up.
func TestGroup_WhoGivesUpIsNotRun(t *testing.T) {
	g, path := newGroup(t)
	release := hold(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, 3)
	write := func(ctx context.Context, i int) {
		before := g.s.InLine()
		go func() {
			answers <- answer{i, g.s.Write(ctx, func(exec execFn, _ countFn) error { return mark(i, exec) })}
		}()
		for g.s.InLine() == before {
			runtime.Gosched()
		}
	}
	write(ctx, 0) // leads
	write(ctx, 1)
	write(t.Context(), 2)
	cancel()
	for range 2 {
		if a := <-answers; a.i == 2 || !errors.Is(a.err, context.Canceled) {
			t.Fatalf("writer %d got %v, want the context's error for the two who gave up", a.i, a.err)
		}
	}
	release()
	if a := <-answers; a.err != nil {
		t.Fatal(a.err)
	}
	for i, want := range []int{0, 0, 1} {
		if got := g.stored(t, i); got != want {
			t.Errorf("writer %d has %d rows, want %d", i, got, want)
		}
	}
}

// Once it runs a write is seen through, and its caller gets its answer and not the context's.
func TestGroup_WhatRunsIsSeenThrough(t *testing.T) {
	g, path := newGroup(t)
	for i := range 30 {
		release := hold(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		lead, follow := make(chan error, 1), make(chan error, 1)
		go func() {
			lead <- g.s.Write(t.Context(), func(exec execFn, _ countFn) error {
				cancel()
				for range 100 {
					runtime.Gosched()
				}
				return mark(2*i, exec)
			})
		}()
		for g.s.InLine() < 1 {
			runtime.Gosched()
		}
		go func() {
			follow <- g.s.Write(ctx, func(exec execFn, _ countFn) error { return mark(2*i+1, exec) })
		}()
		for g.s.InLine() < 2 {
			runtime.Gosched()
		}
		release()
		must(t, <-lead)
		must(t, <-follow)
		if g.stored(t, 2*i+1) != 1 {
			t.Fatal("the write is not stored")
		}
	}
}
