package crowd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/bench/internal/machine"
)

// limitTables are what the limit expects to find, and one open offer for each of so many people.
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

// Limit is the least hand-written server that stores a signed reply and consumes an offer by it, in two commits and without
// a race: what can be measured at most.
type Limit struct {
	program string
	pg      *machine.Postgres // nil: SQLite
	people  int
}

// BuildLimit builds the limit from its source, in gobench/limit of the peers' folder, into a directory.
func BuildLimit(ctx context.Context, dir, peers string) (program string, err error) {
	source, program := filepath.Join(dir, "gobench"), filepath.Join(dir, "limit")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(peers, "gobench"))); err != nil {
		return "", fmt.Errorf("-peers: %w", err)
	}
	return program, machine.Build(ctx, source, program, "./limit")
}

// NewLimit makes a limit with an open offer each for people 1 to n, on PostgreSQL or, where pg is nil, on SQLite.
func NewLimit(ctx context.Context, program string, pg *machine.Postgres, n int) (Limit, error) {
	l := Limit{program: program, pg: pg, people: n}
	if pg == nil {
		return l, nil
	}
	if err := pg.Fresh(ctx, "least_seed", ""); err != nil {
		return l, err
	}
	return l, pg.Exec(ctx, "least_seed", fmt.Sprintf(limitTables, n), `VACUUM (ANALYZE)`)
}

// Start starts the limit anew, with nothing consumed, and returns when it listens, with the URL that takes replies.
func (l Limit) Start(ctx context.Context, dir string) (*machine.Process, string, error) {
	addr, err := machine.FreeAddr(ctx)
	if err != nil {
		return nil, "", err
	}
	args := []string{"-addr", addr, "-token", AuthToken}
	if l.pg != nil {
		if err := l.pg.Fresh(ctx, "least", "least_seed"); err != nil {
			return nil, "", err
		}
		args = append(args, "-mode", "pg2t", "-dsn", l.pg.URL("least"))
	} else {
		args = append(args, "-mode", "sqlite2", "-sync", "FULL", "-db", filepath.Join(dir, "limit.db"), "-base", "1", "-seed", fmt.Sprint(l.people))
	}
	p, err := machine.Start(machine.Command{Path: l.program, Args: args, Log: filepath.Join(dir, "limit.log")})
	if err != nil {
		return nil, "", err
	}
	if err := p.Listening(ctx, addr); err != nil {
		p.Kill()
		return nil, "", err
	}
	return p, "http://" + addr + "/hook", nil
}
