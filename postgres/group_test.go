package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
)

const ours = people.Address("sms:+12025550100")

// crowd is a store, and people with an address each.
type crowd struct {
	s     *postgres.Store
	other *pgx.Conn // sees what is committed
	url   string
}

func newCrowd(t *testing.T, n int) crowd {
	t.Helper()
	url := pgtest.New(t)
	c := crowd{openStore(t, url), connect(t, url), url}
	if _, err := c.s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		err := c.s.AddPerson(t.Context(), people.Person{
			ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: "owner", State: people.Active,
			Addresses: []people.Binding{{Address: address(i), OurNumber: ours}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func address(i int) people.Address { return people.Address(fmt.Sprintf("sim:alex%d", i)) }

// receive stores a text of person i.
func (c crowd) receive(ctx context.Context, i int) (offers.Received, error) {
	return c.s.Receive(ctx, offers.Inbound{
		Provider: "sim", ProviderID: fmt.Sprint("SM", i), Address: address(i), OurNumber: ours, Text: "yes", Raw: []byte("yes"),
	})
}

// hold keeps every call waiting, until the function that it returns is called.
func (c crowd) hold() (release func()) {
	for range postgres.Lanes {
		c.s.Hold()
	}
	return func() {
		for range postgres.Lanes {
			c.s.Release()
		}
	}
}

// wait returns when n calls wait.
func (c crowd) wait(n int) {
	for c.s.Waiting() != n {
		runtime.Gosched()
	}
}

// together has texts of the first n people wait at the same time. The errors are in the order of the people.
func (c crowd) together(t *testing.T, n int) []error {
	t.Helper()
	release := c.hold()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = c.receive(t.Context(), i) })
	}
	c.wait(n)
	release()
	wg.Wait()
	return errs
}

func (c crowd) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := c.other.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func (c crowd) count(t *testing.T, sql string) (n int) {
	t.Helper()
	if err := c.other.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGroup_CallsThatWaitShareATransaction(t *testing.T) {
	const n = 10
	c := newCrowd(t, n)
	for i, err := range c.together(t, n) {
		if err != nil {
			t.Errorf("person %d: %v", i, err)
		}
	}
	if got := c.count(t, `SELECT count(*) FROM messages`); got != n {
		t.Errorf("%d of %d messages are stored", got, n)
	}
	if got := c.count(t, `SELECT count(DISTINCT xmin::text) FROM messages`); got != 1 {
		t.Errorf("%d transactions, want 1", got)
	}
}

func TestGroup_IsBounded(t *testing.T) {
	const n = postgres.GroupSize + 3
	c := newCrowd(t, n)
	if err := errors.Join(c.together(t, n)...); err != nil {
		t.Fatal(err)
	}
	if got := c.count(t, `SELECT max(n) FROM (SELECT count(*) AS n FROM messages GROUP BY xmin::text) g`); got > postgres.GroupSize {
		t.Errorf("%d messages in one transaction, want at most %d", got, postgres.GroupSize)
	}
}

func TestGroup_AnErrorIsItsCallersAlone(t *testing.T) {
	const n = 8
	c := newCrowd(t, n)
	c.exec(t, `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken'; END $$;
		CREATE TRIGGER broken BEFORE INSERT ON messages FOR EACH ROW WHEN (NEW.provider_id = 'SM3') EXECUTE FUNCTION broken()`)
	for i, err := range c.together(t, n) {
		if (err != nil) != (i == 3) {
			t.Errorf("person %d: %v", i, err)
		}
	}
	if got := c.count(t, `SELECT count(*) FROM messages m JOIN threads t ON t.person_id = m.person_id WHERE t.messages = m.number AND m.number = 1`); got != n-1 {
		t.Errorf("%d messages are stored, want %d", got, n-1)
	}
}

// A connection that went away in the middle says nothing of what is committed: nobody is told otherwise, and nothing is
// done a second time.
func TestGroup_ALostConnectionIsNotTriedAgain(t *testing.T) {
	const n = 4
	c := newCrowd(t, n)
	c.exec(t, `CREATE SEQUENCE tries;
		CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('tries'), pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
		CREATE TRIGGER cut BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION cut()`)
	for i, err := range c.together(t, n) {
		if err == nil {
			t.Errorf("person %d was told that the message is stored", i)
		}
	}
	if got := c.count(t, `SELECT last_value FROM tries`); got != 1 {
		t.Errorf("%d tries, want 1", got)
	}
	if got := c.count(t, `SELECT count(*) FROM messages`); got != 0 {
		t.Errorf("%d messages are stored", got)
	}
	c.exec(t, `DROP TRIGGER cut ON messages`)
	for i, err := range c.together(t, n) {
		if err != nil {
			t.Errorf("afterwards, person %d: %v", i, err)
		}
	}
}

func TestGroup_WhoGivesUpIsNotRun(t *testing.T) {
	t.Run("leave", func(t *testing.T) {
		c := newCrowd(t, 2)
		release := c.hold()
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := c.receive(ctx, 0)
			gone <- err
		}()
		c.wait(1)
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up was told %v", err)
		}
		release()
		if _, err := c.receive(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := c.count(t, `SELECT count(*) FROM messages WHERE provider_id = 'SM0'`); got != 0 {
			t.Error("a message that was given up is stored")
		}
	})
	// A group is not one caller's: who gives up while it runs does not take it from the others.
	t.Run("run", func(t *testing.T) {
		const n = 3
		c := newCrowd(t, n)
		held, err := connect(t, c.url).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := held.Exec(t.Context(), `SELECT 1 FROM threads FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		release := c.hold()
		ctx, cancel := context.WithCancel(t.Context())
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { _, errs[i] = c.receive(ctx, i) })
			c.wait(i + 1)
		}
		release()
		c.wait(0)
		cancel()
		if err := held.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		stored := c.count(t, `SELECT count(*) FROM messages`)
		for i, err := range errs {
			if err != nil {
				t.Errorf("person %d: %v", i, err)
			}
		}
		if stored != n {
			t.Errorf("%d messages are stored, want %d", stored, n)
		}
	})
}

// A call that waits for somebody else's transaction goes by what that has left behind.
func TestGroup_TakesTheLocksFirst(t *testing.T) {
	c := newCrowd(t, 1)
	held, err := connect(t, c.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `UPDATE threads SET messages = 5`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.receive(t.Context(), 0)
		done <- err
	}()
	for c.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		runtime.Gosched()
	}
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := c.count(t, `SELECT number FROM messages`); got != 6 {
		t.Errorf("the message has number %d, want 6", got)
	}
}

// A call that panics takes its leader along, and nobody else is kept waiting for an answer that does not come.
func TestGroup_APanicKeepsNobodyWaiting(t *testing.T) {
	const n = 4
	c := newCrowd(t, n)
	release := c.hold()
	var failed, returned atomic.Int64
	panicked := make(chan struct{})
	for i := range n {
		go func() {
			defer func() {
				if recover() != nil {
					close(panicked)
				}
				returned.Add(1)
			}()
			err := c.s.Together(t.Context(), func(*pgx.Batch) {
				if i == 1 {
					panic("a mistake")
				}
			})
			if err != nil {
				failed.Add(1)
			}
		}()
		c.wait(i + 1)
	}
	release()
	<-panicked // by then the others have their answers
	for range 1_000_000 {
		if returned.Load() == n {
			break
		}
		runtime.Gosched()
	}
	if returned.Load() != n || failed.Load() != n-1 {
		t.Fatalf("%d of %d calls returned, %d with an error, want all and %d", returned.Load(), n, failed.Load(), n-1)
	}
	for i, err := range c.together(t, n) {
		if err != nil {
			t.Errorf("afterwards, person %d: %v", i, err)
		}
	}
}
