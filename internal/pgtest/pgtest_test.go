package pgtest

import (
	"errors"
	"os"
	osexec "os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func databases(t *testing.T, admin string) map[string]bool {
	t.Helper()
	conn := connect(t, admin)
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), "SELECT datname FROM pg_database")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set
}

func TestNewIsEmptyAndGoesWithItsTest(t *testing.T) {
	admin := serverURL(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		conn := connect(t, New(t))
		name = conn.Config().Database
		var tables int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
			t.Fatal(err)
		}
		if tables != 0 {
			t.Errorf("a new database has %d tables", tables)
		}
		// The connection is left open: the drop must not wait for it.
	})
	if name == "" || databases(t, admin)[name] {
		t.Errorf("database %q outlived its test", name)
	}
}

func TestTemplateMigratesOnceAndCopiesAreApart(t *testing.T) {
	name := newName(time.Now()) // a name of its own, also under -count
	var migrated atomic.Int32
	migrate := func(url string) error {
		migrated.Add(1)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return err
		}
		// Not closed on purpose: a careless migrate must not block the copies.
		_, err = conn.Exec(t.Context(), "CREATE TABLE things (n int)")
		return err
	}
	t.Run("group", func(t *testing.T) {
		for range 6 {
			t.Run("copy", func(t *testing.T) {
				t.Parallel()
				conn := connect(t, Template(t, name, migrate))
				defer func() { _ = conn.Close(t.Context()) }()
				if _, err := conn.Exec(t.Context(), "INSERT INTO things VALUES (1)"); err != nil {
					t.Fatal(err)
				}
				var n int
				if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM things").Scan(&n); err != nil {
					t.Fatal(err)
				}
				if n != 1 {
					t.Errorf("a copy holds %d rows, want its own 1", n)
				}
			})
		}
	})
	if n := migrated.Load(); n != 1 {
		t.Errorf("migrate ran %d times", n)
	}
}

func TestCommitSettingsAreThoseOfProduction(t *testing.T) {
	conn := connect(t, New(t))
	defer func() { _ = conn.Close(t.Context()) }()
	var commit, isolation string
	if err := conn.QueryRow(t.Context(),
		"SELECT current_setting('synchronous_commit'), current_setting('default_transaction_isolation')").Scan(&commit, &isolation); err != nil {
		t.Fatal(err)
	}
	if commit != "on" || isolation != "read committed" {
		t.Errorf("synchronous_commit %s, default_transaction_isolation %s", commit, isolation)
	}
}

func TestStaleNames(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		name string
		want bool
	}{
		{newName(now), false},
		{newName(now.Add(-staleAfter)), false},
		{newName(now.Add(-staleAfter - time.Second)), true},
		{"postgres", false},
		{"cs_test_", false},
		{"cs_test_x_y", false},
		{"cs_test_1", false},
	} {
		if got := stale(c.name, now); got != c.want {
			t.Errorf("stale(%q) = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWithDatabase(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"postgres://u:p@127.0.0.1:5432/postgres?sslmode=disable", "postgres://u:p@127.0.0.1:5432/x?sslmode=disable"},
		{"postgres:///postgres?host=%2Ftmp%2Fa&user=u", "postgres:///x?host=%2Ftmp%2Fa&user=u"},
	} {
		got, err := withDatabase(c.in, "x")
		if err != nil || got != c.want {
			t.Errorf("withDatabase(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	if _, err := withDatabase("mysql://u:hunter2@h/db", "x"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a foreign URL: %v; want an error without the password", err)
	}
}

// childEnv makes this test binary the process that starts a private server
// and then dies without any clean-up.
const childEnv = "PGTEST_CHILD"

func TestPrivateServerEndsWithItsProcess(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		src, err := startPrivate()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString("url " + src.url + "\n"); err != nil {
			t.Fatal(err)
		}
		os.Exit(3)
	}
	if _, err := binaries(); errors.Is(err, errNoServer) {
		t.Logf("only a server elsewhere: %v", err)
		return
	}
	child := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPrivateServerEndsWithItsProcess$")
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.Output()
	var exit *osexec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("child: %v\n%s", err, out)
	}
	_, url, ok := strings.Cut(strings.TrimSpace(string(out)), "url ")
	if !ok {
		t.Fatalf("child said %q", out)
	}
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	// The supervisor needs a moment after the child's end; go test's own
	// time-out bounds the wait.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(config.Host); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
}
