// Package sqlite keeps everything in one SQLite file.
//
// BEGIN IMMEDIATE is the one lock: it is the first statement of whatever writes, and the clock is read after it. While
// it is held nothing else changes, so that one reading of the clock serves a whole write, and the order of rows is the
// order of commits. Times are integer microseconds since 1970 UTC.
//
// Several processes may use one file, such as commands beside a running server.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/countersign/countersign/internal/queue"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

const (
	// busyWait is how long SQLite itself waits for another process. It looks again every 100 ms and takes no turns, so
	// that beside a busy process one wait may well be lost; the lock is given up after lockWait.
	busyWait = 5 * time.Second
	lockWait = 30 * time.Second
	// logPages is how many pages the log holds, in SQLite's words, before they are copied to where they belong: 8 MiB, twice
	// SQLite's own. Most are written again and again until then, and copied once; of more, whoever commits then would wait
	// longer than it saves.
	logPages = "wal_autocheckpoint(2000)"
	// readers is the number of connections for plain reads, which WAL keeps apart from the writer.
	readers = 4
	// readerCache is what a reading connection keeps of the file, in SQLite's words: 256 KiB. It forgets all of it whenever
	// somebody has committed, so that beside a busy writer SQLite's own 2 MiB for each hold little that is of use.
	readerCache = "cache_size(-256)"
)

// Store is every store of the product on one file.
type Store struct {
	clock func() time.Time
	busy  time.Duration
	dsn   string // of a writing connection

	turn    chan struct{} // holds one token while a transaction of this process runs; waiting here is fair
	waiting queue.Queue[*writer]
	conn    connection // the one that writes
	closed  bool       // under the turn: the driver does not look
	writer  *statements

	readPool *sql.DB
	reader   *statements
}

var (
	_ offers.Store = (*Store)(nil)
	_ people.Store = (*Store)(nil)
)

// errClosed is the error of a write after Close.
var errClosed = errors.New("sqlite: the store is closed")

// Option changes a store that is being opened.
type Option func(*Store)

// WithClock gives the store another clock than the process's.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.clock = now } }

// Open opens a file, or makes it for its owner's eyes only. path is a path of the file system and never a URI. Migrate
// is not called.
func Open(ctx context.Context, path string, opts ...Option) (*Store, error) {
	path, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s := &Store{clock: time.Now, busy: busyWait, turn: make(chan struct{}, 1)}
	for _, o := range opts {
		o(s)
	}
	if err := registerWALVFS(); err != nil {
		return nil, err
	}
	// A commit writes over what the log held before: its bytes and its size are all that must be on the disk, and not the
	// time of the file. Where there is no such call the other is made.
	if _, err := driver.Fdatasync(true); err != nil && !errors.Is(err, driver.ErrFdatasyncUnavailable) {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s.dsn = dsn(path, s.busy, url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", logPages}, "_txlock": {"immediate"}, "vfs": {walVFS}})
	if s.conn, err = connect(ctx, s.dsn); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s.writer = directly(s.conn)
	if s.readPool, err = sql.Open("sqlite", dsn(path, s.busy, url.Values{"_pragma": {"query_only(ON)", readerCache}})); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: %w", err), s.conn.Close())
	}
	s.readPool.SetMaxOpenConns(readers)
	s.readPool.SetMaxIdleConns(readers)
	s.reader = pool(s.readPool)
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect opens one connection without a pool around it.
func connect(ctx context.Context, dsn string) (connection, error) {
	c, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ours, ok := conn.(connection)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connections take no context"), conn.Close())
	}
	return ours, nil
}

// create makes the file before SQLite would, which asks for wider permissions; the files beside it inherit them.
func create(path string) (string, error) {
	if path == "" {
		return "", errors.New("no path")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(abs, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return "", err
	}
	return abs, f.Close()
}

// dsn names the file with what every connection is to have set, since a pragma that is run later reaches only one.
func dsn(path string, wait time.Duration, q url.Values) string {
	q.Set("_busy_timeout", strconv.FormatInt(wait.Milliseconds(), 10))
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// Close waits for the transaction that runs and closes the file.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.reader.close(), s.readPool.Close(), s.writer.close(), s.conn.Close())
}

// Ping says whether the file can be read.
func (s *Store) Ping(ctx context.Context) error {
	var tables int
	if err := s.read(ctx).one(`SELECT count(*) FROM sqlite_schema`, nil, &tables); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// Migrate applies what is missing and returns how many migrations that were. Processes may call it at the same time.
func (s *Store) Migrate(ctx context.Context) (int, error) {
	applied := 0
	for {
		missing, err := s.Pending(ctx)
		if err != nil || missing == 0 {
			return applied, err
		}
		n, err := s.migrate(ctx)
		applied += n
		if err == nil {
			return applied, nil
		}
		// Each migration is a transaction: whoever comes second fails on what the first has made, and looks again.
		if left, e := s.Pending(ctx); e != nil || left >= missing {
			return applied, err
		}
	}
}

func (s *Store) migrate(ctx context.Context) (int, error) {
	db, err := sql.Open("sqlite", s.dsn)
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	defer db.Close() //nolint:errcheck // what counts is what the migrations said
	p, err := migrations.SQLite(db)
	if err != nil {
		return 0, err
	}
	return migrations.Up(ctx, p)
}

// Pending says how many migrations are missing.
func (s *Store) Pending(ctx context.Context) (int, error) {
	db, err := sql.Open("sqlite", s.dsn)
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	defer db.Close() //nolint:errcheck // nothing is written
	p, err := migrations.SQLite(db)
	if err != nil {
		return 0, err
	}
	current, target, err := p.GetVersions(ctx)
	return int(target - current), err
}

// session runs statements: on the readers, each with what is committed by then, or on the writer inside a transaction.
type session struct {
	ctx context.Context
	by  *statements
}

func (s *Store) read(ctx context.Context) session { return session{ctx: ctx, by: s.reader} }

// exec runs a statement and returns the number of rows that it changed.
func (q session) exec(query string, args ...any) (int64, error) {
	st, err := q.by.get(q.ctx, query)
	if err != nil {
		return 0, err
	}
	return st.exec(q.ctx, args)
}

// one scans the first row. No row: sql.ErrNoRows.
func (q session) one(query string, args []any, dest ...any) (err error) {
	st, err := q.by.get(q.ctx, query)
	if err != nil {
		return err
	}
	list, err := st.query(q.ctx, args)
	if err != nil {
		return err
	}
	defer closing(list, &err)
	if !list.Next() {
		if err := list.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return list.Scan(dest...)
}

// closing ends rows. That says again what has gone wrong before.
func closing(list rows, err *error) {
	if closed := list.Close(); *err == nil {
		*err = closed
	}
}

// all collects every row.
func all[T any](q session, scan func(row) (T, error), query string, args ...any) (out []T, err error) {
	st, err := q.by.get(q.ctx, query)
	if err != nil {
		return nil, err
	}
	list, err := st.query(q.ctx, args)
	if err != nil {
		return nil, err
	}
	defer closing(list, &err)
	out = []T{}
	for list.Next() {
		v, err := scan(list)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, list.Err()
}

func scanString(r row) (s string, err error) { err = r.Scan(&s); return s, err }

// begin takes the lock. It gives up when the context ends, or when others have held the file for lockWait.
func (s *Store) begin(ctx context.Context) error {
	if s.closed { // mutant: sqlite.closed
		return errClosed
	}
	q := session{ctx: ctx, by: s.writer}
	for waited := s.busy; ; waited += s.busy {
		_, err := q.exec(`BEGIN IMMEDIATE`)
		if err == nil {
			return nil
		}
		// A context that ended while BEGIN returned may have left a transaction behind.
		s.rollback(session{ctx: context.WithoutCancel(ctx), by: s.writer})
		if !busy(err) || waited >= lockWait {
			return fmt.Errorf("begin: %w", err)
		}
	}
}

// rollback ends the transaction, if there is one: some failures have ended it already, and say so here.
func (s *Store) rollback(q session) { _, _ = q.exec(`ROLLBACK`) }

// now is the clock in the unit of the tables.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// thread is a person's thread row inside a transaction, and what is to be written with it.
type thread struct {
	session
	now       time.Time
	personID  string
	accountID string
	messages  int64
	texts     int64
	rows      int64
	head      offers.Digest
	lastText  string // id of the text that was put in line last
}

// inThread runs fn with the person's thread, writes its row and commits. Errors of fn go out as they are.
// offers.ErrNotFound: there is no such person.
func (s *Store) inThread(ctx context.Context, personID string, fn func(th *thread) error) error {
	return s.write(ctx, func(q session, now time.Time) error {
		th, err := threadOf(q, now, personID)
		if err != nil {
			return err
		}
		if err := fn(th); err != nil {
			return err
		}
		return th.flush()
	})
}

// threadOf reads a person's thread under the lock.
func threadOf(q session, now time.Time, personID string) (*thread, error) {
	th := &thread{session: q, now: now, personID: personID}
	var head []byte
	err := q.one(`SELECT account_id, messages, texts, ledger, head FROM threads WHERE person_id = ?1`, []any{personID},
		&th.accountID, &th.messages, &th.texts, &th.rows, &head)
	copy(th.head[:], head)
	return th, notFound(err)
}

// record appends a ledger row.
func (th *thread) record(kind ledger.Kind, operationID string, body offers.LedgerBody) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ledger body: %w", err)
	}
	r := ledger.Next(th.head, th.rows+1, th.now, kind, operationID, raw)
	if err := th.append(r); err != nil {
		return err
	}
	th.rows, th.head = r.Number, r.Hash
	return nil
}

// append writes a ledger row. Errors: offers.ErrLedgerUnavailable.
func (th *thread) append(r ledger.Row) error {
	_, err := th.exec(`INSERT INTO ledger (account_id, person_id, number, at, kind, operation_id, body, prev, hash)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`,
		th.accountID, th.personID, r.Number, r.At.UnixMicro(), string(r.Kind), r.OperationID, r.Body, r.Prev[:], r.Hash[:])
	if err != nil {
		return fmt.Errorf("%w: %w", offers.ErrLedgerUnavailable, err)
	}
	return nil
}

// event puts an event behind all others.
func (th *thread) event(t offers.EventType, data any) error {
	e, err := offers.MakeEvent(t, data)
	if err != nil {
		return err
	}
	return th.newEvent(e)
}

func (th *thread) newEvent(e offers.NewEvent) error {
	_, err := th.exec(`INSERT INTO events (id, account_id, type, at, data) VALUES (?1, ?2, ?3, ?4, ?5)`,
		e.ID, th.accountID, string(e.Type), th.now.UnixMicro(), string(e.Data))
	return err
}

// text puts a text in the person's line.
func (th *thread) text(kind offers.TextKind, offerID string, addr, our people.Address, body string) error {
	th.texts++
	th.lastText = offers.NewID()
	_, err := th.exec(`INSERT INTO texts (id, account_id, person_id, number, kind, offer_id, address, our_number, body, state, queued_at)
		VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, ''), ?7, ?8, ?9, 'queued', ?10)`,
		th.lastText, th.accountID, th.personID, th.texts, string(kind), offerID, string(addr), string(our), body, th.now.UnixMicro())
	return err
}

// flush writes the thread row.
func (th *thread) flush() error {
	_, err := th.exec(`UPDATE threads SET messages = ?2, texts = ?3, ledger = ?4, head = ?5 WHERE person_id = ?1`,
		th.personID, th.messages, th.texts, th.rows, th.head[:])
	return err
}

// fold writes an id as the tables hold it: a UUID may come in capitals.
func fold(id string) string { return strings.ToLower(id) }

// at reads a time of the tables.
func at(us int64) time.Time { return time.UnixMicro(us).UTC() }

// atOrNil reads a time that may not be there.
func atOrNil(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	t := at(*us)
	return &t
}

// atOrZero reads a time that may not be there.
func atOrZero(us *int64) time.Time {
	if us == nil {
		return time.Time{}
	}
	return at(*us)
}

// notFound turns the driver's word for an empty result into ours.
func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return offers.ErrNotFound
	}
	return err
}

// code is SQLite's extended result code of an error; 0: it is not one of SQLite.
func code(err error) int {
	var e *driver.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code()
}

// busy says whether another connection held the file: nothing was done.
func busy(err error) bool { return code(err)&0xff == codes.SQLITE_BUSY }

func unique(err error) bool {
	c := code(err)
	return c == codes.SQLITE_CONSTRAINT_UNIQUE || c == codes.SQLITE_CONSTRAINT_PRIMARYKEY
}

func foreign(err error) bool { return code(err) == codes.SQLITE_CONSTRAINT_FOREIGNKEY }
