package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
)

// A poller that has read an event never finds out about one that was written earlier and committed later. So the feed
// stops in front of the oldest transaction that still runs.
func TestEvents_NothingCommitsBehindAPositionThatWasGivenOut(t *testing.T) {
	ctx := t.Context()
	url := pgtest.New(t)
	s := openStore(t, url)
	if _, err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	slow, err := connect(t, url).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fast := connect(t, url)
	read := func(after string) (ids []string, next string) {
		t.Helper()
		list, next, err := s.Events(ctx, people.DefaultAccount, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		return ids, next
	}

	early, between, late := offers.NewID(), offers.NewID(), offers.NewID()
	insertEvent(t, slow, early)
	insertEvent(t, fast, between)
	if got, next := read(""); len(got) != 0 || next != "" {
		t.Fatalf("while an older transaction runs: events %v, position %q", got, next)
	}
	insertEvent(t, slow, late) // later than the other one, and yet in front of it: its transaction is older
	if got, _ := read(""); len(got) != 0 {
		t.Fatalf("while an older transaction runs: events %v", got)
	}
	if err := slow.Commit(ctx); err != nil {
		t.Fatal(err)
	}

	// Transactions of other databases on the server hold the feed back as well, though never for ever.
	want := []string{early, late, between}
	var got []string
	at := ""
	for tick := time.NewTicker(time.Millisecond); len(got) < len(want); <-tick.C {
		var more []string
		more, at = read(at)
		got = append(got, more...)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d is %s, want %s", i, got[i], want[i])
		}
	}
}

func TestMigrate_ManyReplicasAtOnce(t *testing.T) {
	ctx := t.Context()
	url := pgtest.New(t)
	stores := []*postgres.Store{openStore(t, url), openStore(t, url), openStore(t, url), openStore(t, url)}
	missing, err := stores[0].Pending(ctx)
	if err != nil || missing == 0 {
		t.Fatalf("%d migrations missing in an empty database, %v", missing, err)
	}
	applied, errs := make([]int, len(stores)), make([]error, len(stores))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() { applied[i], errs[i] = s.Migrate(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range applied {
		total += n
	}
	if total != missing {
		t.Fatalf("%v migrations applied by four replicas, want %d in all", applied, missing)
	}
	if n, err := stores[1].Pending(ctx); err != nil || n != 0 {
		t.Fatalf("%d migrations still missing, %v", n, err)
	}
}

func TestOpen_AnErrorDoesNotQuoteThePassword(t *testing.T) {
	for _, url := range []string{"postgres://bot:hunter2@%zz/x", "postgres://bot:hunter2@localhost/x?pool_max_conns=many"} {
		s, err := postgres.Open(t.Context(), url)
		if err == nil {
			_ = s.Close()
			t.Fatalf("opened")
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("the error quotes the password: %v", err)
		}
	}
}

func openStore(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// insertEvent writes an event as a store's transaction would.
func insertEvent(t *testing.T, on interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, id string) {
	t.Helper()
	var row int64
	err := on.QueryRow(t.Context(), `INSERT INTO events (id, account_id, type, at, data) VALUES ($1, 'default', 'message.received', now(), '{}') RETURNING row`, id).Scan(&row)
	if err != nil {
		t.Fatal(err)
	}
}
