package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// What a group runs at once holds every condition as well.
func TestStoreInGroups(t *testing.T) {
	storetest.RunPath(t, func(t *testing.T) storetest.Env {
		env := open(t)
		s, ok := env.Store.(*postgres.Store)
		if !ok {
			t.Fatal("another store")
		}
		s.OnlySeveral()
		return env
	})
}

func TestMachine(t *testing.T) { storetest.RunMachine(t, open, 20) }

func TestEndpoints(t *testing.T) { storetest.RunEndpoints(t, open) }

// open makes a database of its own whose clock a test can move: the schema reads time through one function, and the
// test's version adds an offset from a table.
func open(t *testing.T) storetest.Env {
	t.Helper()
	url := pgtest.Template(t, "store", func(url string) error {
		ctx := context.Background()
		s, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		defer s.Close() //nolint:errcheck // a test's pool
		if _, err := s.Migrate(ctx); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx) //nolint:errcheck // a test's connection
		_, err = conn.Exec(ctx, `CREATE TABLE test_clock (ahead interval NOT NULL); INSERT INTO test_clock VALUES ('0');
			CREATE OR REPLACE FUNCTION cs_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp() + ahead FROM test_clock'`)
		return err
	})
	ctx := context.Background()
	second := func() storetest.Store {
		s, err := postgres.Open(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	conn := func() *pgx.Conn {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(ctx) })
		return c
	}
	admin := conn()
	exec := func(sql string, args ...any) {
		if _, err := admin.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	one := func(into any, sql string, args ...any) {
		if err := admin.QueryRow(ctx, sql, args...).Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	return storetest.Env{
		Store:       second(),
		Second:      second,
		Advance:     func(d time.Duration) { exec(`UPDATE test_clock SET ahead = ahead + $1::interval`, d) },
		BreakLedger: func() { exec(`ALTER TABLE ledger RENAME TO ledger_gone`) },
		Now: func() (now time.Time) {
			one(&now, `SELECT cs_now()`)
			return now.UTC()
		},
		RepairLedger: func() { exec(`ALTER TABLE ledger_gone RENAME TO ledger`) },
		Waiting: func() (n int) {
			one(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
			return n
		},
		AddAccount: func(id string) { exec(`INSERT INTO accounts (id) VALUES ($1)`, id) },
		Set: func(table, id, column string, value any) {
			exec(`UPDATE `+pgx.Identifier{table}.Sanitize()+` SET `+pgx.Identifier{column}.Sanitize()+` = $1 WHERE id = $2`, value, id)
		},
		Raw: func(messageID string) (raw []byte) {
			one(&raw, `SELECT raw FROM messages WHERE id = $1`, messageID)
			return raw
		},
		HoldLock: func(personID string) func() {
			c := conn()
			tx, err := c.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(ctx, `SELECT 1 FROM threads WHERE person_id = $1 FOR NO KEY UPDATE`, personID); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := tx.Commit(ctx); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}
