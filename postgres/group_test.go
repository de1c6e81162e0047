package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/gate"
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
	for range postgres.MaxInFlight {
		c.s.Hold()
	}
	return func() {
		for range postgres.MaxInFlight {
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

// newOffered is a crowd in which each has an open offer that was shown to them, and their yes, which is stored.
func newOffered(t *testing.T, n int) (c crowd, yeses []offers.ConsumeRequest) {
	t.Helper()
	c = newCrowd(t, n)
	policy, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	service := offers.NewService(c.s, policy, func(string) int { return 1600 })
	ids, err := c.s.People(t.Context(), people.DefaultAccount)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range ids {
		_, _, err := service.Propose(t.Context(), offers.Request{
			AccountID: people.DefaultAccount, Call: "POST /v1/offers", Key: p.ID, PersonID: p.ID, Kind: string(gate.KindToolCall), Tool: "email.delete",
			Args: fmt.Appendf(nil, `{"message_id":"message-%d","subject":"Minutes of the meeting"}`, i),
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := c.s.Reserve(t.Context())
		if err != nil || text == nil {
			t.Fatal(text, err)
		}
		if err := c.s.Sent(t.Context(), text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: "SM" + text.ID}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		r, err := c.receive(t.Context(), i)
		if err != nil || len(r.Live) != 1 {
			t.Fatalf("%d offers are live: %v", len(r.Live), err)
		}
		yeses = append(yeses, offers.ConsumeRequest{
			Offer: r.Live[0], MessageID: r.MessageID, PersonID: r.PersonID, RunID: r.RunID, Closer: offers.Closer{MessageID: r.MessageID},
			Tiers: offers.TiersHolding(r.Live[0].Capability), MinRead: time.Microsecond,
		})
	}
	return c, yeses
}

// atOnce runs n calls that wait for a group together, in order.
func (c crowd) atOnce(n int, call func(i int)) {
	release := c.hold()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
		c.wait(i + 1)
	}
	release()
	wg.Wait()
}

// Every yes of a group is judged for itself, and leaves what belongs to it.
func TestGroup_YesesAreTheirOwn(t *testing.T) {
	const n, bad = 6, 2
	c, yeses := newOffered(t, n)
	yeses[bad].Offer.BindingSHA256[0]++
	wins, errs := make([]offers.Win, n), make([]error, n)
	c.atOnce(n, func(i int) { wins[i], errs[i] = c.s.Consume(t.Context(), yeses[i]) })
	for i, y := range yeses {
		if i == bad {
			if refused := (*offers.Refusal)(nil); !errors.As(errs[i], &refused) || refused.Why != offers.WhyHash {
				t.Errorf("another binding: %v", errs[i])
			}
			continue
		}
		if errs[i] != nil || wins[i].Offer.ID != y.Offer.ID {
			t.Errorf("yes %d won offer %s of %s: %v", i, wins[i].Offer.ID, y.Offer.ID, errs[i])
		}
	}
	if got := c.count(t, `SELECT count(DISTINCT xmin::text) FROM ledger WHERE kind = 'consumed'`); got != 1 {
		t.Errorf("%d transactions, want 1", got)
	}
	got := c.count(t, `SELECT count(*) FROM offers o JOIN operations x ON x.id = o.operation_id JOIN messages m ON m.id = o.consumed_by
		JOIN ledger l ON l.operation_id = x.id AND l.kind = 'consumed' JOIN threads t ON t.person_id = o.person_id
		WHERE o.state = 'consumed' AND x.state IN ('approved', 'settling') AND m.person_id = o.person_id AND m.decided_at = o.closed_at
		AND l.person_id = o.person_id AND l.hash = t.head AND l.number = t.ledger AND convert_from(l.body, 'UTF8')::jsonb->>'offer' = o.id::text
		AND o.closed_by->>'message_id' = m.id::text`)
	if got != n-1 {
		t.Errorf("%d offers are consumed with all that follows, want %d", got, n-1)
	}
	if got := c.count(t, `SELECT count(*) FROM offers WHERE state = 'open'`); got != 1 {
		t.Errorf("%d offers are open, want 1", got)
	}
	got = c.count(t, `SELECT count(*) FROM offers o JOIN events a ON a.type = 'offer.closed' AND a.data::jsonb->'offer'->>'id' = o.id::text
		JOIN events b ON b.type = 'operation.approved' AND b.data::jsonb->'operation'->>'id' = o.operation_id::text AND b.row > a.row`)
	if got != n-1 {
		t.Errorf("%d offers have their two events in order, want %d", got, n-1)
	}
}

// Two texts of one person at once are numbered one after the other, and share the group's transaction all the same.
func TestGroup_TextsOfOnePerson(t *testing.T) {
	const n = 3
	c := newCrowd(t, n)
	errs := make([]error, 2*n)
	c.atOnce(2*n, func(i int) {
		_, errs[i] = c.s.Receive(t.Context(), offers.Inbound{
			Provider: "sim", ProviderID: fmt.Sprint("SM", i), Address: address(i % n), OurNumber: ours, Text: "yes", Raw: []byte("yes"),
		})
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := c.count(t, `SELECT count(*) FROM messages m JOIN threads t ON t.person_id = m.person_id WHERE t.messages = 2 AND m.number IN (1, 2)`); got != 2*n {
		t.Errorf("%d of %d messages are numbered in turn", got, 2*n)
	}
	if got := c.count(t, `SELECT count(DISTINCT xmin::text) FROM messages`); got != 1 {
		t.Errorf("%d transactions, want 1", got)
	}
}

// Where they come from two addresses only the database knows that they are one person's.
func TestGroup_TextsOfOnePersonFromTwoAddresses(t *testing.T) {
	c := newCrowd(t, 2)
	c.exec(t, `UPDATE addresses SET person_id = (SELECT min(person_id::text)::uuid FROM addresses)`)
	if err := errors.Join(c.together(t, 2)...); err != nil {
		t.Fatal(err)
	}
	if got := c.count(t, `SELECT count(DISTINCT m.number) FROM messages m JOIN threads t ON t.person_id = m.person_id WHERE t.messages = 2`); got != 2 {
		t.Errorf("%d numbers, want 2", got)
	}
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

// Calls that wait for somebody else's transaction go by what that has left behind, alone and together.
func TestGroup_TakesTheLocksFirst(t *testing.T) {
	for name, n := range map[string]int{"alone": 1, "together": 3} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, n)
			errs := make([]error, n)
			c.behind(t, `UPDATE threads SET messages = 5`, n, func(i int) { _, errs[i] = c.receive(t.Context(), i) })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if got := c.count(t, `SELECT count(*) FROM messages WHERE number = 6`); got != n {
				t.Errorf("%d messages have number 6, want %d", got, n)
			}
		})
		t.Run(name+", yeses", func(t *testing.T) {
			c, yeses := newOffered(t, n)
			errs := make([]error, n)
			c.behind(t, `WITH t AS (UPDATE threads SET texts = texts) UPDATE texts SET state = 'unknown'`, n,
				func(i int) { _, errs[i] = c.s.Consume(t.Context(), yeses[i]) })
			for i, err := range errs {
				if refused := (*offers.Refusal)(nil); !errors.As(err, &refused) || refused.Why != offers.WhyUnconfirmed {
					t.Errorf("yes %d: %v", i, err)
				}
			}
		})
	}
}

// behind runs a statement and holds what it has locked until n calls of one group wait for it.
func (c crowd) behind(t *testing.T, sql string, n int, call func(i int)) {
	t.Helper()
	held, err := connect(t, c.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.atOnce(n, call)
	}()
	for c.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		runtime.Gosched()
	}
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
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
			err := c.s.Together(t.Context(), func() {
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
