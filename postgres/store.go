// Package postgres keeps everything in PostgreSQL 15 or later.
//
// The thread row of a person is the one lock, taken in a statement of its own: a statement that waits for a row
// re-reads that row alone, while its counts and NOT EXISTS keep the snapshot from before the wait.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/countersign/countersign/internal/queue"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Store is every store of the product on one database.
type Store struct {
	pool     *pgxpool.Pool
	waiting  queue.Queue[*call]
	inFlight chan struct{} // holds one for every group that is under way

	receive, late, yes, cited statement
}

var (
	_ offers.Store = (*Store)(nil)
	_ people.Store = (*Store)(nil)
)

// maxConns is how many connections a server takes where its URL does not say. A yes waits for the disk twice, and
// commits that wait together share one write.
const maxConns = 16

// Open connects. url is a postgres:// URL; pool settings may stand in its query (pool_max_conns=32). Migrate is not
// called: `bot migrate up` does that.
func Open(ctx context.Context, url string) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("postgres: the database URL does not parse") // the error would quote the password
	}
	if !strings.Contains(url, "pool_max_conns=") {
		cfg.MaxConns = maxConns
	}
	for name, value := range planning() {
		if _, said := cfg.ConnConfig.RuntimeParams[name]; !said {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &Store{
		pool: pool, inFlight: make(chan struct{}, maxInFlight),
		receive: receive(), late: yes(late), yes: yes(consume), cited: yes(consumeCited),
	}, nil
}

// planning are settings of every connection, where the URL does not say otherwise. A connection keeps the plan of a
// statement, and one that was made while a table was small would read all of it for as long as the connection lives;
// every query has an index, so no plan does. With sequential scans priced out, those that remain (a list of everything)
// would look costly enough to be compiled first. No plan depends on a parameter's value either: without the last setting the
// lock of a group would be planned each time, for the number of its people.
func planning() map[string]string {
	return map[string]string{"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}
}

// Close waits for connections in use and closes the pool.
func (s *Store) Close() error { s.pool.Close(); return nil }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// Migrate applies what is missing and returns how many migrations that were. Replicas may call it at the same time.
func (s *Store) Migrate(ctx context.Context) (int, error) {
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close() //nolint:errcheck // it closes no connection of the pool
	p, err := migrations.Postgres(db)
	if err != nil {
		return 0, err
	}
	return migrations.Up(ctx, p)
}

// Pending says how many migrations are missing.
func (s *Store) Pending(ctx context.Context) (int, error) {
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close() //nolint:errcheck // it closes no connection of the pool
	p, err := migrations.Postgres(db)
	if err != nil {
		return 0, err
	}
	current, target, err := p.GetVersions(ctx)
	return int(target - current), err
}

// thread is a person's locked thread row inside a transaction, and what is to be written with it.
type thread struct {
	tx        session
	now       time.Time
	personID  string
	accountID string
	messages  int64
	texts     int64
	rows      int64
	head      offers.Digest
	lastText  string // id of the text that was put in line last
	ledger    []ledger.Row
	batch     pgx.Batch
}

// inThread runs fn with the person's thread row locked, writes what it queued and commits. Errors of fn go out as
// they are. offers.ErrNotFound: there is no such person.
//
// The transaction begins in the round trip of the lock and ends in that of the writes.
func (s *Store) inThread(ctx context.Context, personID string, fn func(th *thread) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	defer func() {
		if conn.Conn().PgConn().TxStatus() != 'I' { // where that cannot be said, Release closes the connection
			_, _ = conn.Exec(ctx, "rollback")
		}
	}()
	th, err := lock(ctx, conn, personID, "begin")
	if err != nil {
		return err
	}
	if err := fn(th); err != nil {
		return err
	}
	return th.flush(ctx, "commit")
}

// session is what a transaction is spoken over: the driver's own, or a connection.
type session interface {
	querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// all collects every row of a query.
func all[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// lock takes the thread row, after the statements before, and then, in its own statement, reads the clock.
func lock(ctx context.Context, tx session, personID string, before ...string) (*thread, error) {
	th := &thread{tx: tx, personID: personID}
	var b pgx.Batch
	for _, s := range before {
		b.Queue(s)
	}
	b.Queue(`SELECT account_id, messages, texts, ledger, head FROM threads WHERE person_id = $1 FOR NO KEY UPDATE`, personID).
		QueryRow(func(row pgx.Row) error {
			var head []byte
			err := row.Scan(&th.accountID, &th.messages, &th.texts, &th.rows, &head)
			copy(th.head[:], head)
			return notFound(err)
		})
	b.Queue(`SELECT cs_now()`).QueryRow(func(row pgx.Row) error { return row.Scan(&th.now) })
	return th, notFound(tx.SendBatch(ctx, &b).Close())
}

// record appends a ledger row.
func (th *thread) record(kind ledger.Kind, operationID string, body offers.LedgerBody) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ledger body: %w", err)
	}
	th.rows++
	row := ledger.Next(th.head, th.rows, th.now, kind, operationID, raw)
	th.head = row.Hash
	th.ledger = append(th.ledger, row)
	return nil
}

// event queues an event.
func (th *thread) event(t offers.EventType, data any) error {
	e, err := offers.MakeEvent(t, data)
	if err != nil {
		return err
	}
	th.batch.Queue(`INSERT INTO events (id, account_id, type, at, data) VALUES ($1, $2, $3, $4, $5)`,
		e.ID, th.accountID, string(e.Type), th.now, string(e.Data))
	return nil
}

// text puts a text in the person's line.
func (th *thread) text(kind offers.TextKind, offerID string, addr, our people.Address, body string) {
	th.texts++
	th.lastText = offers.NewID()
	th.batch.Queue(`INSERT INTO texts (id, account_id, person_id, number, kind, offer_id, address, our_number, body, state, queued_at)
		VALUES ($1, $2, $3, $4, $5, nullif($6, '')::uuid, $7, $8, $9, 'queued', $10)`,
		th.lastText, th.accountID, th.personID, th.texts, string(kind), offerID, string(addr), string(our), body, th.now)
}

// flush writes ledger rows first, so that a failure there is known for what it is, then everything that was queued, and
// runs the statements after.
func (th *thread) flush(ctx context.Context, after ...string) error {
	var all pgx.Batch
	written := 0
	for _, r := range th.ledger {
		all.Queue(`INSERT INTO ledger (account_id, person_id, number, at, kind, operation_id, body, prev, hash)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			th.accountID, th.personID, r.Number, r.At, string(r.Kind), r.OperationID, r.Body, r.Prev[:], r.Hash[:]).
			Exec(func(pgconn.CommandTag) error { written++; return nil })
	}
	all.QueuedQueries = append(all.QueuedQueries, th.batch.QueuedQueries...)
	all.Queue(`UPDATE threads SET messages = $2, texts = $3, ledger = $4, head = $5 WHERE person_id = $1`,
		th.personID, th.messages, th.texts, th.rows, th.head[:])
	for _, s := range after {
		all.Queue(s)
	}
	err := th.tx.SendBatch(ctx, &all).Close()
	if err != nil && written < len(th.ledger) {
		err = fmt.Errorf("%w: %w", offers.ErrLedgerUnavailable, err)
	}
	return err
}

// notFound turns the driver's word for an empty result into ours.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) || badID(err) {
		return offers.ErrNotFound
	}
	return err
}

// badID says whether the database could not even read an id: nothing is stored under it.
func badID(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22P02"
}

func unique(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}

func foreign(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23503"
}

// aboutLedger says whether it was the ledger that a statement of many parts could not write.
func aboutLedger(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.TableName == "ledger" || strings.Contains(pg.Message, `"ledger"`))
}
