package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
	"github.com/countersign/countersign/storetest"
)

// asked is a person with one open offer and a yes to it.
type asked struct {
	person people.Person
	offer  offers.Offer
	yes    offers.Received
}

func addPerson(t *testing.T, s *sqlite.Store, n int) people.Person {
	t.Helper()
	p := people.Person{
		ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address(fmt.Sprintf("sms:+120255501%02d", n)), OurNumber: "sms:+12025550199"}},
	}
	must(t, s.AddPerson(t.Context(), p))
	return p
}

func receive(ctx context.Context, s *sqlite.Store, p people.Person, id string) (offers.Received, error) {
	return s.Receive(ctx, offers.Inbound{
		Provider: "twilio", ProviderID: id, Address: p.Addresses[0].Address, OurNumber: p.Addresses[0].OurNumber, Text: "yes", Raw: []byte("yes"),
	})
}

// ask makes n people with an open offer each, and a text from each.
func ask(t *testing.T, s *sqlite.Store, c *clock, n int) []asked {
	t.Helper()
	out := make([]asked, n)
	for i := range out {
		out[i].person = addPerson(t, s, i)
		args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"to":["dana@example.test"],"subject":"n%d"}`, i))
		must(t, err)
		pr := offers.Proposal{
			AccountID: people.DefaultAccount, Call: "POST /v1/offers", Key: fmt.Sprint("key-", i), BodySum: sum,
			PersonID: out[i].person.ID, Kind: string(gate.KindToolCall), Tool: "email.send", Args: args, ArgsSum: sum, Present: offers.PresentQueue,
		}
		op, _, err := s.Propose(t.Context(), pr, func(f offers.Facts) (offers.Plan, error) { return storetest.Ask(f, pr) })
		must(t, err)
		out[i].offer = *op.Offer
		text, err := s.Reserve(t.Context())
		must(t, err)
		must(t, s.Sent(t.Context(), text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: fmt.Sprint("SM-out-", i)}))
	}
	c.advance(20 * storetest.MinRead)
	for i := range out {
		r, err := receive(t.Context(), s, out[i].person, fmt.Sprint("SM-", i))
		must(t, err)
		out[i].yes = r
	}
	return out
}

func (a asked) consume() offers.ConsumeRequest {
	return offers.ConsumeRequest{
		Offer: a.offer, MessageID: a.yes.MessageID, PersonID: a.person.ID, RunID: a.yes.RunID,
		Closer: offers.Closer{MessageID: a.yes.MessageID, Reading: "confirm", P: 0.99}, Reading: offers.ReadingRecord{Class: "confirm", Reader: "test"},
		Tiers: offers.TiersHolding(a.offer.Capability), MinRead: storetest.MinRead,
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func migrated(t *testing.T) (*sqlite.Store, string, *clock) {
	t.Helper()
	path, c := filepath.Join(t.TempDir(), "store.db"), new(clock)
	s := openAt(t, path, c.now)
	_, err := s.Migrate(t.Context())
	must(t, err)
	return s, path, c
}

// DB-01: yeses and other writes from two stores on one file at once. Each waits its turn, none fails, none is lost.
func TestDB01_NoLockReachesTheCaller(t *testing.T) {
	const n = 50
	s, path, c := migrated(t)
	all := ask(t, s, c, n)
	stores := []*sqlite.Store{s, openAt(t, path, c.now)}
	errs := make(chan error, 2*n)
	var wg sync.WaitGroup
	for i, a := range all {
		mine, other := stores[i%2], stores[(i+1)%2]
		wg.Go(func() {
			_, err := mine.Consume(context.Background(), a.consume())
			errs <- err
		})
		wg.Go(func() {
			_, err := receive(context.Background(), other, people.Person{Addresses: []people.Binding{{Address: "sms:+12025550198", OurNumber: "sms:+12025550199"}}},
				fmt.Sprint("SM-stranger-", i))
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	for _, a := range all {
		o, err := s.Offer(t.Context(), people.DefaultAccount, a.offer.ID)
		must(t, err)
		if o.State != offers.Consumed {
			t.Fatalf("offer is %s, want consumed", o.State)
		}
	}
}

// A commit of one store is there for the other's next call, decisions and reads alike.
func TestTwoStoresOnOneFile(t *testing.T) {
	s, path, c := migrated(t)
	second := openAt(t, path, c.now)
	a := ask(t, s, c, 1)[0]
	must(t, second.SetState(t.Context(), people.DefaultAccount, a.person.ID, people.Suspended))
	var r *offers.Refusal
	if _, err := s.Consume(t.Context(), a.consume()); !errors.As(err, &r) || r.Why != offers.WhySuspended {
		t.Fatalf("got %v, want a refusal for the suspended person", err)
	}
	must(t, second.SetState(t.Context(), people.DefaultAccount, a.person.ID, people.Active))
	win, err := second.Consume(t.Context(), a.consume())
	must(t, err)
	op, err := s.Operation(t.Context(), people.DefaultAccount, win.Operation.ID)
	must(t, err)
	if op.State != offers.OpApproved {
		t.Fatalf("the first store reads %s, want approved", op.State)
	}
	if win, err = s.Consume(t.Context(), a.consume()); err != nil || !win.Repeat {
		t.Fatalf("got %+v, %v, want the same message's own win", win, err)
	}
}

// The same yes from both stores at once is one win.
func TestTwoStoresOneWin(t *testing.T) {
	s, path, c := migrated(t)
	stores := []*sqlite.Store{s, openAt(t, path, c.now)}
	a := ask(t, s, c, 1)[0]
	var fresh, repeat atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			win, err := stores[i%2].Consume(context.Background(), a.consume())
			switch {
			case err != nil:
				t.Error(err)
			case win.Repeat:
				repeat.Add(1)
			default:
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 || repeat.Load() != 19 {
		t.Fatalf("%d wins and %d repeats, want 1 and 19", fresh.Load(), repeat.Load())
	}
}

// waiting is a context that counts how often somebody looks whether it has ended.
type waiting struct {
	context.Context
	looks chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	select {
	case w.looks <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// wait returns once the context was looked at so many times. SQLite looks again and again while it waits for a file;
// on the way there four looks are taken.
func (w waiting) wait(t *testing.T, looks int, done <-chan error) {
	t.Helper()
	for range looks {
		select {
		case <-w.looks:
		case err := <-done:
			t.Fatalf("the call did not wait: %v", err)
		}
	}
}

// A lock that is waited for does not buy time: the clock is read when it is there.
func TestClockIsReadAfterTheLock(t *testing.T) {
	path, c := filepath.Join(t.TempDir(), "store.db"), new(clock)
	var held, early atomic.Bool
	s := openAt(t, path, func() time.Time {
		if held.Load() {
			early.Store(true)
		}
		return c.now()
	})
	_, err := s.Migrate(t.Context())
	must(t, err)
	a := ask(t, s, c, 1)[0]

	release := hold(t, path)
	held.Store(true)
	ctx := waiting{Context: t.Context(), looks: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := s.Consume(ctx, a.consume())
		done <- err
	}()
	ctx.wait(t, 6, done)
	c.advance(a.offer.TTL)
	held.Store(false)
	release()
	var r *offers.Refusal
	if err := <-done; !errors.As(err, &r) || r.Why != offers.WhyExpired {
		t.Fatalf("got %v, want a refusal because the offer expired meanwhile", err)
	}
	if early.Load() {
		t.Fatal("the clock was read before the lock was there")
	}
}

// SQLite gives up after a while, since it takes no turns; the store does not.
func TestLockIsWaitedForAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.WithBusyWait(5*time.Millisecond))
	must(t, err)
	defer s.Close() //nolint:errcheck // a test's store
	_, err = s.Migrate(t.Context())
	must(t, err)
	p := addPerson(t, s, 1)
	release := hold(t, path)
	ctx := waiting{Context: t.Context(), looks: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := receive(ctx, s, p, "SM-1")
		done <- err
	}()
	ctx.wait(t, 50, done) // one wait of 5 ms has room for a dozen
	release()
	must(t, <-done)
}

// A caller who gives up gets their own error, not an answer, and leaves nothing behind.
func TestWaitEndsWithTheContext(t *testing.T) {
	s, path, c := migrated(t)
	a := ask(t, s, c, 1)[0]
	release := hold(t, path)
	base, cancel := context.WithCancel(t.Context())
	ctx := waiting{Context: base, looks: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := s.Consume(ctx, a.consume())
		done <- err
	}()
	ctx.wait(t, 6, done)
	cancel()
	err := <-done
	var r *offers.Refusal
	if !errors.Is(err, context.Canceled) || errors.As(err, &r) {
		t.Fatalf("got %v, want the context's error", err)
	}
	release()
	win, err := s.Consume(t.Context(), a.consume())
	must(t, err)
	if win.Repeat {
		t.Fatal("the call that was given up has consumed the offer")
	}
}

// Only the owner of the file reads what people wrote, whatever the umask of the process, in the log of writes as well.
func TestFileIsPrivate(t *testing.T) {
	s, path, _ := migrated(t)
	addPerson(t, s, 1)
	files, err := filepath.Glob(path + "*")
	must(t, err)
	if len(files) != 3 {
		t.Fatalf("files %v, want the database with its -wal and -shm", files)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(f), info.Mode().Perm())
		}
	}
}

// A path is taken as it is: what means something in a URI means nothing here.
func TestPathIsNoURI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory&#%41.db")
	s := openAt(t, path, time.Now)
	_, err := s.Migrate(t.Context())
	must(t, err)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Fatalf("the file at the path is not the database: %v", err)
	}
}

// Several processes start on a new file at once: the schema is made once and each of them goes on.
func TestOpenAndMigrateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var applied atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := sqlite.Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close() //nolint:errcheck // a test's store
			n, err := s.Migrate(context.Background())
			if err != nil {
				t.Error(err)
			}
			applied.Add(int64(n))
			if left, err := s.Pending(context.Background()); err != nil || left != 0 {
				t.Errorf("%d migrations are left, %v", left, err)
			}
		})
	}
	wg.Wait()
	if applied.Load() == 0 {
		t.Fatal("nobody applied a migration")
	}
}

// The yes and everything that follows from it are one transaction.
func TestConsumeWithoutLedgerLeavesNothing(t *testing.T) {
	s, path, c := migrated(t)
	a := ask(t, s, c, 1)[0]
	other := raw(t, path)
	exec(t, other, `ALTER TABLE ledger RENAME TO ledger_gone`)
	if _, err := s.Consume(t.Context(), a.consume()); !errors.Is(err, offers.ErrLedgerUnavailable) {
		t.Fatalf("got %v, want the ledger's error", err)
	}
	exec(t, other, `ALTER TABLE ledger_gone RENAME TO ledger`)
	r, err := s.Context(t.Context(), a.yes.MessageID)
	must(t, err)
	if r.Decided || len(r.Live) != 1 || r.Live[0].State != offers.Open {
		t.Fatalf("decided %v, live %+v: want the message undecided and the offer open", r.Decided, r.Live)
	}
	win, err := s.Consume(t.Context(), a.consume())
	must(t, err)
	if win.Repeat {
		t.Fatal("the first try had consumed the offer")
	}
}

// A position of another database is refused, not read as a place in this one.
func TestForeignPosition(t *testing.T) {
	s, _, _ := migrated(t)
	if _, _, err := s.Events(t.Context(), people.DefaultAccount, offers.Position(7, 7), 10); !errors.Is(err, offers.ErrBadPosition) {
		t.Fatalf("got %v, want a bad position", err)
	}
}

// A write that comes after the end, such as a delivery's that was on its way, is an error and ends nothing else.
func TestClosed(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "closed.db"))
	must(t, err)
	_, err = s.Migrate(t.Context())
	must(t, err)
	must(t, s.Close())
	if err := s.AddAccount(t.Context(), "late"); err == nil {
		t.Error("written after the end")
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("read after the end")
	}
	must(t, s.Close())
}
