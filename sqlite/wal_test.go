package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	codes "modernc.org/sqlite/lib"

	"github.com/countersign/countersign/sqlite"
)

// logged opens a file as the store's writer does, with so little memory for pages that a transaction writes them before its
// end, and as anybody else does.
func logged(t *testing.T) (ours, other *sql.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	s, err := sqlite.Open(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	open := func(dsn string) *sql.Conn {
		db, err := sql.Open("sqlite", dsn)
		must(t, err)
		c, err := db.Conn(t.Context())
		must(t, err)
		t.Cleanup(func() {
			must(t, c.Close())
			must(t, db.Close())
		})
		return c
	}
	ours, other = open(s.DSN()), open("file:"+path)
	run(t, ours, `PRAGMA cache_size = 20`)
	run(t, ours, `CREATE TABLE t (n INTEGER PRIMARY KEY, v BLOB NOT NULL)`)
	run(t, ours, `PRAGMA wal_checkpoint(TRUNCATE)`) // what an undone transaction reads again is not in the log
	return ours, other
}

func run(t *testing.T, c *sql.Conn, query string) {
	t.Helper()
	_, err := c.ExecContext(t.Context(), query)
	must(t, err)
}

func want(t *testing.T, c *sql.Conn, query, want string) {
	t.Helper()
	var got string
	must(t, c.QueryRowContext(t.Context(), query).Scan(&got))
	if got != want {
		t.Errorf("%s: %s, want %s", query, got, want)
	}
}

const thousand = `WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 1000) `

// A transaction whose pages do not fit into memory writes some of them twice, reads them back, and is larger than the
// buffer.
func TestWAL_MorePagesThanFit(t *testing.T) {
	ours, other := logged(t)
	run(t, ours, `BEGIN IMMEDIATE`)
	run(t, ours, `INSERT INTO t `+thousand+`SELECT n, zeroblob(1000) FROM n`)
	run(t, ours, `UPDATE t SET v = CAST(printf('%0900d', n) AS BLOB)`)
	want(t, ours, `SELECT sum(CAST(CAST(v AS TEXT) AS INTEGER)) FROM t`, "500500")
	want(t, other, `SELECT count(*) FROM t`, "0")
	for n := 1; n < 1000; n += 100 { // a page each, all of which fit
		run(t, ours, fmt.Sprintf(`UPDATE t SET v = CAST(printf('%%0900d', n) AS BLOB) WHERE n = %d`, n))
	}
	run(t, ours, `COMMIT`)
	want(t, other, `SELECT sum(CAST(CAST(v AS TEXT) AS INTEGER)) FROM t`, "500500")
	run(t, other, `PRAGMA wal_checkpoint(TRUNCATE)`)
	want(t, other, `PRAGMA integrity_check`, "ok")
	want(t, ours, `SELECT count(*) FROM t`, "1000")
}

// The buffer is flushed where SQLite syncs, which it does at every commit only if it is told to.
func TestWAL_CommitsAreSynced(t *testing.T) {
	ours, _ := logged(t)
	want(t, ours, `PRAGMA synchronous`, "2")
}

// Pages of a transaction that was undone stand where others write theirs.
func TestWAL_WhatWasUndoneDestroysNothing(t *testing.T) {
	ours, other := logged(t)
	run(t, ours, `BEGIN IMMEDIATE`)
	run(t, ours, `INSERT INTO t `+thousand+`SELECT n, zeroblob(1000) FROM n WHERE n <= 150`)
	run(t, ours, `ROLLBACK`)
	run(t, other, `INSERT INTO t VALUES (1, 'theirs')`)
	run(t, ours, `INSERT INTO t VALUES (2, 'ours')`)
	for _, c := range []*sql.Conn{ours, other} {
		run(t, c, `PRAGMA shrink_memory`)
		want(t, c, `SELECT group_concat(n || CAST(v AS TEXT)) FROM t`, "1theirs,2ours")
		want(t, c, `PRAGMA integrity_check`, "ok")
	}
}

// What could not be written is not synced, and whoever flushed is told.
func TestWAL_FullDisk(t *testing.T) {
	for _, did := range []string{"sync", "read", "cut", "size", "close", "write"} {
		if rc := sqlite.OnFullDisk(did); rc != codes.SQLITE_FULL {
			t.Errorf("%s: %d, want %d", did, rc, codes.SQLITE_FULL)
		}
	}
}

// rawly opens a file by SQLite's own calls, with a table of a hundred rows, and as anybody else does.
func rawly(t *testing.T) (ours *sqlite.Raw, other *sql.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	ours, err := sqlite.OpenRaw(path)
	must(t, err)
	db, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	other, err = db.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() {
		must(t, other.Close())
		must(t, db.Close())
		must(t, ours.Close())
	})
	for _, query := range []string{
		`PRAGMA journal_mode = WAL`, `PRAGMA synchronous = FULL`, `PRAGMA cache_size = 10`,
		`CREATE TABLE t (n INTEGER PRIMARY KEY, v BLOB NOT NULL, u INTEGER UNIQUE)`,
		`INSERT INTO t ` + thousand + `SELECT n, zeroblob(2000), n FROM n WHERE n <= 100`,
		`PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		must(t, ours.Exec(query))
	}
	return ours, other
}

// A statement that finds the disk full may be undone alone, whereas the pages that could not be written are of those before
// it. Its transaction is not committed, even where there is space again.
func TestWAL_WhatIsLostIsNotCommitted(t *testing.T) {
	ours, other := rawly(t)
	must(t, ours.Exec(`BEGIN IMMEDIATE; UPDATE t SET v = randomblob(2000) WHERE n <= 50; SAVEPOINT writer`))
	free, err := ours.FillDisk(true)
	must(t, err)
	full := sqlite.RawError(codes.SQLITE_FULL)
	if err := ours.Exec(`UPDATE t SET u = -u - (SELECT length(v) FROM t o WHERE o.n = t.n + 1) WHERE n <= 50`); !errors.Is(err, full) {
		t.Fatalf("a full disk: %v, want %v", err, full)
	}
	free()
	must(t, ours.Exec(`ROLLBACK TO writer; RELEASE writer`))
	if err := ours.Exec(`COMMIT`); !errors.Is(err, full) {
		t.Errorf("commit: %v, want %v", err, full)
	}
	_ = ours.Exec(`ROLLBACK`) // where the commit has not
	must(t, ours.Exec(`UPDATE t SET v = 'there is space' WHERE n = 1`))
	want(t, other, `PRAGMA integrity_check`, "ok")
	want(t, other, `SELECT count(*) || ' ' || group_concat(v) FROM t WHERE v <> zeroblob(2000)`, "1 there is space")
}

// SQLite does not sync a copy that is not of the whole log, since somebody still reads there, and tells everybody of it.
func TestWAL_CopyThatTheDiskDidNotTake(t *testing.T) {
	ours, other := rawly(t)
	must(t, ours.Exec(`UPDATE t SET v = randomblob(2000) WHERE n = 50`))
	run(t, other, `BEGIN`)
	want(t, other, `SELECT count(*) FROM t WHERE v <> zeroblob(2000)`, "1")
	must(t, ours.Exec(`UPDATE t SET u = NULL WHERE n = 1`))
	free, err := ours.FillDisk(false)
	must(t, err)
	full := sqlite.RawError(codes.SQLITE_FULL)
	if err := ours.Exec(`PRAGMA wal_checkpoint(PASSIVE)`); !errors.Is(err, full) {
		t.Errorf("copy: %v, want %v", err, full)
	}
	free()
	run(t, other, `COMMIT`)
	must(t, ours.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`))
	run(t, other, `PRAGMA shrink_memory`)
	want(t, other, `PRAGMA integrity_check`, "ok")
	want(t, other, `SELECT count(*) FROM t WHERE v <> zeroblob(2000)`, "1")
}
