package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/sqlite"
	"github.com/countersign/countersign/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestMachine(t *testing.T) { storetest.RunMachine(t, open, 40) }

func TestEndpoints(t *testing.T) { storetest.RunEndpoints(t, open) }

// clock is the real one, moved by a test.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// empty is a file in which nothing is but the tables, as the process has made it once.
var empty struct {
	once sync.Once
	file []byte
}

// emptyFile returns it: most of what a test takes would otherwise be the migrations, once more.
func emptyFile(t *testing.T) []byte {
	t.Helper()
	empty.once.Do(func() {
		path := filepath.Join(t.TempDir(), "empty.db")
		s, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil { // which leaves everything in this one file
			t.Fatal(err)
		}
		if empty.file, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	})
	if empty.file == nil {
		t.Fatal("no file with the tables")
	}
	return empty.file
}

// open makes a file of its own for one test.
func open(t *testing.T) storetest.Env {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	c := new(clock)
	second := func() storetest.Store { return openAt(t, path, c.now) }
	if err := os.WriteFile(path, emptyFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	first := openAt(t, path, c.now)
	other := raw(t, path)
	return storetest.Env{
		Store:        first,
		Second:       second,
		Advance:      c.advance,
		Now:          func() time.Time { return c.now().UTC().Truncate(time.Microsecond) },
		BreakLedger:  func() { exec(t, other, `ALTER TABLE ledger RENAME TO ledger_gone`) },
		RepairLedger: func() { exec(t, other, `ALTER TABLE ledger_gone RENAME TO ledger`) },
		HoldLock:     func(string) func() { return hold(t, path) },
		AddAccount:   func(id string) { exec(t, other, `INSERT INTO accounts (id) VALUES (?)`, id) },
		Set: func(table, id, column string, value any) {
			if at, ok := value.(time.Time); ok {
				value = at.UnixMicro()
			}
			exec(t, other, `UPDATE "`+table+`" SET "`+column+`" = ? WHERE id = ?`, value, id)
		},
		Raw: func(messageID string) (raw []byte) {
			if err := other.QueryRowContext(t.Context(), `SELECT raw FROM messages WHERE id = ?`, messageID).Scan(&raw); err != nil {
				t.Fatal(err)
			}
			return raw
		},
	}
}

func openAt(t *testing.T, path string, now func() time.Time) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.WithClock(now))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw opens the file without the store.
func raw(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); _ = db.Close() })
	return conn
}

func exec(t *testing.T, c *sql.Conn, query string, args ...any) {
	t.Helper()
	if _, err := c.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// hold takes the lock of the whole file, as another process would.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	c := raw(t, path)
	exec(t, c, `BEGIN IMMEDIATE`)
	return func() { exec(t, c, `COMMIT`) }
}
