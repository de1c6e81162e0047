package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/bench/internal/machine"
)

// limitTables are what the limit program expects to find, and one open offer for each of so many people.
const limitTables = `CREATE TABLE offers (id bigint PRIMARY KEY, person text NOT NULL, run text NOT NULL, action text NOT NULL, args jsonb NOT NULL,
  args_hash bytea NOT NULL, created_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, consumed_at timestamptz, consumed_by bigint);
CREATE TABLE messages (id bigserial PRIMARY KEY, provider_sid text NOT NULL, person text NOT NULL, body text NOT NULL, class text,
  received_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE ledger (id bigserial PRIMARY KEY, offer_id bigint NOT NULL, message_id bigint NOT NULL, person text NOT NULL, kind text NOT NULL,
  args_hash bytea NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX ON messages (provider_sid);
CREATE UNIQUE INDEX ON ledger (offer_id);
CREATE INDEX ON offers (person) WHERE consumed_at IS NULL;
INSERT INTO offers SELECT 900000000000 + g, '+1555' || lpad(g::text, 7, '0'), 'run-' || g, 'delete', '{"message_id":"m"}',
  sha256(('args' || g)::bytea), now(), now() + interval '6 hours' FROM generate_series(1, %d) g`

// limitPeople have an open offer with each limit.
const limitPeople = 16000

// limit is the least hand-written server that stores a signed reply and consumes an offer by it, in two commits without a
// race. It runs no action and has no agent: nothing that waits for an approval can be faster.
type limit struct {
	store   string
	program string
	dir     string
	pg      *machine.Postgres
	proc    *machine.Process
	url     string
	next    int
	client  *http.Client
}

func newLimits(ctx context.Context, dir, folder string, pg *machine.Postgres) ([]*limit, error) {
	source, program := filepath.Join(dir, "gobench"), filepath.Join(dir, "limit")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	if err := os.CopyFS(source, os.DirFS(filepath.Join(folder, "gobench"))); err != nil {
		return nil, fmt.Errorf("-peers: %w", err)
	}
	if err := machine.Build(ctx, source, program, "./limit"); err != nil {
		return nil, err
	}
	err := pg.Fresh(ctx, "least_seed", "")
	if err == nil {
		err = pg.Exec(ctx, "least_seed", fmt.Sprintf(limitTables, limitPeople), `VACUUM (ANALYZE)`)
	}
	var out []*limit
	for _, store := range []string{onPG, onSQLite} {
		out = append(out, &limit{store: store, program: program, dir: dir, pg: pg, client: newClient()})
	}
	return out, err
}

func limitName(store string) string { return "limit, " + store }

func (l *limit) name() string    { return limitName(l.store) }
func (l *limit) limit() string   { return l.name() }
func (l *limit) version() string { return "" }

func (l *limit) start(ctx context.Context) error {
	addr, err := machine.FreeAddr(ctx)
	if err != nil {
		return err
	}
	args := []string{"-addr", addr, "-token", authToken}
	if l.store == onPG {
		if err := l.pg.Fresh(ctx, "least", "least_seed"); err != nil {
			return err
		}
		args = append(args, "-mode", "pg2t", "-dsn", l.pg.URL("least"))
	} else {
		args = append(args, "-mode", "sqlite2", "-sync", "FULL", "-db", filepath.Join(l.dir, "limit.db"), "-base", "1", "-seed", fmt.Sprint(limitPeople))
	}
	l.url, l.next = "http://"+addr+"/hook", 0
	if l.proc, err = machine.Start(machine.Command{Path: l.program, Args: args, Log: filepath.Join(l.dir, "limit.log")}); err != nil {
		return err
	}
	if err := l.proc.Listening(ctx, addr); err != nil {
		l.proc.Kill()
		return err
	}
	return nil
}

func (l *limit) propose(_ context.Context, n int) ([]approval, error) {
	n = min(n, limitPeople-l.next)
	out := make([]approval, n)
	for i := range out {
		l.next++
		yes := newText(l.next, 0, l.url)
		out[i].decide = func(ctx context.Context) error {
			_, header, err := call(ctx, l.client, http.MethodPost, l.url, yes.header, yes.body)
			if err == nil && header.Get("X-Not-Consumed") != "" {
				err = errors.New("nothing was consumed")
			}
			return err
		}
	}
	return out, nil
}

func (l *limit) drain(context.Context) error   { return nil } // it has answered after the commit
func (l *limit) processes() []*machine.Process { return []*machine.Process{l.proc} }
func (l *limit) stop()                         { l.proc.Stop() }
