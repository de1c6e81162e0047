// Package pgtest hands each test a PostgreSQL database of its own.
//
// The server is the one that COUNTERSIGN_TEST_POSTGRES names: the URL of a
// database whose user may create databases. scripts/test starts such a server
// and sets the variable. Without it, the test process starts a private server
// from the binaries that it finds (Debian's /usr/lib/postgresql/*/bin, or
// initdb on the PATH); that server listens on a unix socket in a directory
// that only its user can enter, and ends with the process that started it,
// however that process ends. A machine without either fails the test: a store
// that was not tested must not look like one that passed.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Env names the variable that holds the URL of the server to use.
const Env = "COUNTERSIGN_TEST_POSTGRES"

const (
	// prefix marks every database that this package makes, so that leftovers
	// can be told from anything else on a server that lives longer than a run.
	prefix = "cs_test_"
	// staleAfter is far beyond the longest test run: what is older was left
	// by a process that was killed.
	staleAfter = 6 * time.Hour
	// adminTimeout bounds one administrative statement.
	adminTimeout = time.Minute
)

// A process has one server and one template per name; both are made when
// the first test asks.
var (
	server = sync.OnceValues(findServer)

	templatesMu sync.Mutex
	templates   = map[string]*template{}
)

type template struct {
	once sync.Once
	name string
	err  error
}

// New creates an empty database for t and returns its URL. The database is
// dropped, with whatever is still connected to it, when t ends.
func New(t testing.TB) string {
	t.Helper()
	return fresh(t, serverURL(t), "template0")
}

// Template returns the URL of a new database that holds what migrate made.
// migrate runs once per process and name, on a database that is copied for
// each later call; copying costs a small part of migrating. migrate must
// close its connections before it returns. The database is dropped when t
// ends.
func Template(t testing.TB, name string, migrate func(url string) error) string {
	t.Helper()
	admin := serverURL(t)

	templatesMu.Lock()
	tpl := templates[name]
	if tpl == nil {
		tpl = &template{}
		templates[name] = tpl
	}
	templatesMu.Unlock()

	tpl.once.Do(func() { tpl.name, tpl.err = makeTemplate(admin, migrate) })
	if tpl.err != nil {
		t.Fatalf("pgtest: template %q: %v", name, tpl.err)
	}
	return fresh(t, admin, tpl.name)
}

func serverURL(t testing.TB) string {
	t.Helper()
	src, err := server()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return src.url
}

// findServer finds or starts the server that this process uses.
func findServer() (source, error) {
	src := source{url: os.Getenv(Env)}
	if src.url == "" {
		var err error
		if src, err = startPrivate(); err != nil {
			return source{}, err
		}
	}
	if err := sweep(src.url, time.Now()); err != nil {
		return source{}, err
	}
	return src, nil
}

// makeTemplate creates a database, lets migrate fill it and closes it to
// connections, because a database that somebody is connected to cannot be
// copied.
func makeTemplate(admin string, migrate func(url string) error) (string, error) {
	name := newName(time.Now())
	if err := create(admin, name, "template0"); err != nil {
		return "", err
	}
	dbURL, err := withDatabase(admin, name)
	if err != nil {
		return "", err
	}
	if err := migrate(dbURL); err != nil {
		return "", errors.Join(fmt.Errorf("migrate: %w", err), drop(admin, name))
	}
	return name, exec(admin,
		"ALTER DATABASE "+quote(name)+" ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'",
	)
}

func fresh(t testing.TB, admin, from string) string {
	t.Helper()
	name := newName(time.Now())
	dbURL, err := withDatabase(admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := create(admin, name, from); err != nil {
		t.Fatalf("pgtest: create database: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(admin, name); err != nil {
			t.Errorf("pgtest: drop database: %v", err)
		}
	})
	return dbURL
}

func create(admin, name, from string) error {
	return exec(admin, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(from))
}

func drop(admin, name string) error {
	return exec(admin, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
}

// sweep drops what earlier processes could not.
func sweep(admin string, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", prefix)
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	for _, name := range names {
		if !stale(name, now) {
			continue
		}
		// Two processes may sweep at once; IF EXISTS covers the usual case, and
		// the loser of a tie has nothing left to do.
		_ = drop(admin, name)
	}
	return nil
}

// stale says whether name is one of ours and older than any run.
func stale(name string, now time.Time) bool {
	made, ok := madeAt(name)
	return ok && now.Sub(made) > staleAfter
}

// newName is prefix, the second in which the database was made, and a random
// part: the age of a leftover can be read from its name.
func newName(now time.Time) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + strconv.FormatInt(now.Unix(), 10) + "_" + hex.EncodeToString(b[:])
}

func madeAt(name string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return time.Time{}, false
	}
	seconds, _, ok := strings.Cut(rest, "_")
	if !ok {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}

func exec(admin string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// withDatabase is the server's URL with another database in its path.
func withDatabase(admin, name string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// The URL may carry a password, so the message does not carry the URL.
		return "", fmt.Errorf("%s is not a postgres:// URL", Env)
	}
	u.Path = "/" + name
	return u.String(), nil
}
