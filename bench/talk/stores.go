package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/sqlite"
)

// store is what the bench needs of the product's stores.
type store interface {
	offers.Store
	people.Store
	Migrate(ctx context.Context) (int, error)
	Close() error
}

// clock is the time of a world. Nobody waits for it: it is moved from one thing that happens to the next.
type clock struct {
	now time.Time
	set func(time.Time) error // tells the store, where that has a clock of its own; may be nil
	// calm waits until the feed shows everything that is committed by now; nil: it always does.
	calm func() error
}

// openSQLite makes a database for one world, in memory where there is such a place.
func openSQLite(ctx context.Context, c *clock) (_ store, remove func(), err error) {
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "countersign-talk")
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlite.Open(ctx, filepath.Join(dir, "talk.db"), sqlite.WithClock(func() time.Time { return c.now }))
	if err == nil {
		_, err = s.Migrate(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() { _ = s.Close(); _ = os.RemoveAll(dir) }, nil
}

// openPostgres takes an empty database, or one that an earlier world has used, and gives it the world's clock: the schema
// reads the time through one function.
func openPostgres(ctx context.Context, url string, c *clock) (_ store, remove func(), err error) {
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	remove = func() { _ = conn.Close(ctx); _ = s.Close() }
	if _, err = s.Migrate(ctx); err == nil {
		_, err = conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS talk_clock (at timestamptz NOT NULL); DELETE FROM talk_clock; INSERT INTO talk_clock VALUES ('2026-01-01');
			CREATE OR REPLACE FUNCTION cs_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM talk_clock'`)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	c.set = func(t time.Time) error {
		_, err := conn.Exec(ctx, `UPDATE talk_clock SET at = $1`, t)
		return err
	}
	// The feed stops at the oldest transaction that runs, in whichever database of the server.
	c.calm = func() error {
		var upTo, oldest int64
		err := conn.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint`).Scan(&upTo, &oldest)
		for err == nil && oldest < upTo {
			err = conn.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM pg_sleep(0.001)`).Scan(&oldest)
		}
		return err
	}
	return s, remove, nil
}

// policyOf makes the tools of the bench. Each names its recipient in its last line, by which whoever looks at a screen
// knows what is asked.
func policyOf() (*gate.Policy, error) {
	var b strings.Builder
	b.WriteString("version: 1\n\ntools:\n")
	for _, t := range tools() {
		fmt.Fprintf(&b, `  %s:
    description: Send an email.
    effect: send
    capability: network.send
    recipients: [to]
    label: {verb: send email, to: recipients}
    settle: %s
    expires: %s
    schema:
      type: object
      required: [to, subject, body]
      additionalProperties: false
      properties:
        to: {type: array, minItems: 1, maxItems: 3, items: {type: string, maxLength: 320}}
        subject: {type: string, maxLength: 998}
        body: {type: string, maxLength: 100000}
    template:
      - {prefix: To, arg: to}
      - {prefix: Subject, arg: subject}
      - {prefix: Text, arg: body, body: true}
`, t.name, t.settle, t.ttl)
	}
	return gate.ParsePolicy("talk.yaml", []byte(b.String()))
}

type tool struct {
	name        string
	settle, ttl time.Duration
}

func tools() []tool {
	return []tool{
		{"mail.send", 0, 10 * time.Minute},
		{"mail.slow", 20 * time.Second, 10 * time.Minute}, // a yes to it can be taken back
		{"mail.brief", 0, 45 * time.Second},               // nobody wants it any more after a while
	}
}
