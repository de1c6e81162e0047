package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/figures"
	"github.com/countersign/countersign/bench/internal/machine"
)

// What is stored already, in two sizes: the path is measured on both in turn.
const (
	fewStored  = 10_000
	manyStored = 1_000_000
)

// stored adds n offers, messages and ledger rows that are done with, and the runs and operations that they belong to, to
// the seeded people in turn. Numbers go backwards from zero: what the people have goes on from there. %[1]d is the first
// row, %[2]d the last, %[3]d the number of people.
const (
	storedPeople = `CREATE TABLE stored_people AS SELECT row_number() OVER (ORDER BY person_id) - 1 AS n, person_id, account_id FROM threads`

	// The rows belong together as they are made: looking each up again would take most of the time.
	storedPostgres = `SET session_replication_role = replica;
	CREATE TABLE stored AS SELECT g, p.person_id, p.account_id, -(g / %[3]d) AS number, (lpad(to_hex(g), 8, '0') || '-0000-7000-8000-000000000001')::uuid AS run, (lpad(to_hex(g), 8, '0') || '-0000-7000-8000-000000000002')::uuid AS operation,
	  (lpad(to_hex(g), 8, '0') || '-0000-7000-8000-000000000003')::uuid AS offer, (lpad(to_hex(g), 8, '0') || '-0000-7000-8000-000000000004')::uuid AS message, now() - interval '30 days' + g * interval '1 second' AS at
	  FROM generate_series(%[1]d, %[2]d) g JOIN stored_people p ON p.n = g %% %[3]d;
	INSERT INTO runs (id, account_id, person_id, tier, cause, root_id, tainted, interactive, created_at)
	  SELECT run, account_id, person_id, 'owner', '{}', run, false, true, at FROM stored;
	INSERT INTO operations (id, account_id, run_id, person_id, kind, tool, args, args_sha256, decision, reason, rule, detail, tier, capability, state, created_at, closed_at)
	  SELECT operation, account_id, run, person_id, 'tool_call', 'email.delete', '{"message_id":"message-1"}', sha256('x'), 'ask', 'FLOOR_DELETE', '3', '', 'owner', 'process.exec', 'expired', at, at FROM stored;
	INSERT INTO offers (id, account_id, operation_id, person_id, run_id, root_run_id, address, our_number, state, present, tool, capability, args_sha256, binding_sha256,
	    label, shown_text, ask_line, policy_version, ttl_us, settle_us, created_at, sent_at, shown_at, asked_at, expires_at, closed_at, closed_by)
	  SELECT offer, account_id, operation, person_id, run, run, 'sms:+12025550101', 'sms:+12025550100', 'expired', 'queue', 'email.delete', 'process.exec', sha256('x'), sha256('y'),
	    'delete email', 'Delete an email. Reply YES or NO', 'Reply YES or NO', '1', 1, 0, at, at, at, at, at, at, '{"by":"clock"}' FROM stored;
	INSERT INTO messages (id, account_id, person_id, number, provider, provider_id, address, our_number, text, raw, lossy, trust, run_id, received_at, decided_at, reading)
	  SELECT message, account_id, person_id, number, 'twilio', 'SMstored' || g, 'sms:+12025550101', 'sms:+12025550100', 'what is this about?', repeat('x', 300)::bytea, false, 'trusted', run, at, at, '{}' FROM stored;
	INSERT INTO ledger (account_id, person_id, number, at, kind, operation_id, body, prev, hash)
	  SELECT account_id, person_id, number, at, 'closed', operation, repeat('x', 200)::bytea, sha256('x'), sha256('y') FROM stored;
	DROP TABLE stored`

	storedSQLite = `CREATE TABLE stored AS WITH RECURSIVE s(g) AS (VALUES (%[1]d) UNION ALL SELECT g + 1 FROM s WHERE g < %[2]d)
	  SELECT g, p.person_id, p.account_id, -(g / %[3]d) AS number, printf('%%08x-0000-7000-8000-000000000001', g) AS run, printf('%%08x-0000-7000-8000-000000000002', g) AS operation,
	  printf('%%08x-0000-7000-8000-000000000003', g) AS offer, printf('%%08x-0000-7000-8000-000000000004', g) AS message, 1700000000000000 + g * 1000000 AS at
	  FROM s JOIN stored_people p ON p.n = g %% %[3]d;
	INSERT INTO runs (id, account_id, person_id, tier, cause, root_id, tainted, interactive, created_at)
	  SELECT run, account_id, person_id, 'owner', '{}', run, 0, 1, at FROM stored;
	INSERT INTO operations (id, account_id, run_id, person_id, kind, tool, args, args_sha256, decision, reason, rule, detail, tier, capability, state, created_at, closed_at)
	  SELECT operation, account_id, run, person_id, 'tool_call', 'email.delete', '{"message_id":"message-1"}', zeroblob(32), 'ask', 'FLOOR_DELETE', '3', '', 'owner', 'process.exec', 'expired', at, at FROM stored;
	INSERT INTO offers (id, account_id, operation_id, person_id, run_id, root_run_id, address, our_number, state, present, tool, capability, args_sha256, binding_sha256,
	    label, shown_text, ask_line, policy_version, ttl_us, settle_us, created_at, sent_at, shown_at, asked_at, expires_at, closed_at, closed_by)
	  SELECT offer, account_id, operation, person_id, run, run, 'sms:+12025550101', 'sms:+12025550100', 'expired', 'queue', 'email.delete', 'process.exec', zeroblob(32), zeroblob(32),
	    'delete email', 'Delete an email. Reply YES or NO', 'Reply YES or NO', '1', 1, 0, at, at, at, at, at, at, '{"by":"clock"}' FROM stored;
	INSERT INTO messages (id, account_id, person_id, number, provider, provider_id, address, our_number, text, raw, lossy, trust, run_id, received_at, decided_at, reading)
	  SELECT message, account_id, person_id, number, 'twilio', 'SMstored' || g, 'sms:+12025550101', 'sms:+12025550100', 'what is this about?', zeroblob(300), 0, 'trusted', run, at, at, '{}' FROM stored;
	INSERT INTO ledger (account_id, person_id, number, at, kind, operation_id, body, prev, hash)
	  SELECT account_id, person_id, number, at, 'closed', operation, zeroblob(200), zeroblob(32), zeroblob(32) FROM stored;
	DROP TABLE stored`
)

// grown is a database with so many rows stored before, the server on it, and the people whose yes is still to come. One
// server goes on through all runs, as one does in production: a backend that has just begun pays for each page of a large
// database that it touches first.
type grown struct {
	oursSide
	stored           int
	url, driver, dsn string
	srv              server
	target           string
	next, approved   int // people who have replied, and the approvals in the server's log
}

// serve starts the server in a directory of its own.
func (g *grown) serve(ctx context.Context, dir string) error {
	dir = filepath.Join(dir, fmt.Sprintf("%s_%d", g.driver, g.stored))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	addr, err := machine.FreeAddr(ctx)
	if err != nil {
		return err
	}
	g.target = "http://" + addr + crowd.HookPath
	g.srv, err = g.start(ctx, dir, g.url, addr)
	return err
}

// replies sends the yeses of the next n people and waits until all are consumed.
func (g *grown) replies(ctx context.Context, p plan, n int) ([]sample, error) {
	if g.next+n > g.offers {
		return nil, fmt.Errorf("%d people are too few", g.offers)
	}
	reqs := replies(g.next+1, n, p.text, crowd.PublicURL+crowd.HookPath)
	samples, err := load(g.target, reqs, p.connections, time.Minute)
	if err != nil {
		return nil, err
	}
	g.next, g.approved = g.next+n, g.approved+len(samples)
	if got := drain(ctx, g.srv.logFile(), g.approved); got != g.approved {
		return nil, fmt.Errorf("%d of %d yeses were consumed", got, g.approved)
	}
	return samples, nil
}

func (g *grown) measure(ctx context.Context, p plan, n int) (run, error) {
	r := run{Store: g.driver, Connections: p.connections}
	pids := []int{g.srv.pid()}
	if g.pg != nil {
		pids = append(pids, g.pg.PID())
	}
	first := g.next + 1
	m := machine.NewMeter(pids...)
	samples, err := g.replies(ctx, p, n)
	if err != nil {
		return r, err
	}
	cpu, foreign := m.Read()
	r.Peak = g.srv.peak()
	committed, err := commits(ctx, g.driver, g.dsn, g.srv.logFile(), first, len(samples))
	if err != nil {
		return r, err
	}
	r.measure(samples, committed, cpu)
	r.Foreign = foreign
	if r.NotConsumed > 0 || r.Errors > 0 {
		return r, fmt.Errorf("%d yeses were not consumed, %d not taken", r.NotConsumed, r.Errors)
	}
	return r, nil
}

// growth measures the path with few and with many rows stored, in turn, n confirms a run.
func growth(ctx context.Context, dir string, o options, begin starter, pg *machine.Postgres, n int) error {
	for _, store := range o.stores {
		var sizes []*grown
		for _, stored := range []int{fewStored, manyStored} {
			note("%s: storing %d offers, messages and ledger rows", store, stored)
			g := &grown{oursSide: oursSide{start: begin, offers: o.offers}, stored: stored}
			var err error
			if store == onPG {
				err = g.onPostgres(ctx, pg)
			} else {
				err = g.onSQLite(ctx, dir)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", store, err)
			}
			if err := g.serve(ctx, dir); err != nil {
				return fmt.Errorf("%s with %d stored: %w", store, g.stored, err)
			}
			defer g.srv.stop()
			sizes = append(sizes, g)
		}
		for _, c := range o.connections {
			var rate, cpu [2][]float64
			p := plan{connections: c, text: o.text}
			for _, g := range sizes {
				if _, err := g.replies(ctx, p, max(n/2, 100+10*c)); err != nil {
					return fmt.Errorf("%s with %d stored: warm-up: %w", store, g.stored, err)
				}
			}
			for range o.reps {
				var pair [2]run
				for _, g := range sizes {
					r, err := g.measure(ctx, p, n)
					if err != nil {
						return fmt.Errorf("%s with %d stored: %w", store, g.stored, err)
					}
					note("%-8s %7d stored, %d connections: %5.0f/s p50 %.2f p99 %.2f ms, CPU %.2f ms, foreign %.2f", store, g.stored, c, r.Rate, r.P50, r.P99, r.CPU, r.Foreign)
					pair[g.index()] = r
				}
				for i, r := range pair {
					rate[i], cpu[i] = append(rate[i], r.Rate), append(cpu[i], r.CPU)
				}
				slices.Reverse(sizes)
			}
			fmt.Printf("%s, %d connections: %d stored %.0f/s (CPU %.2f ms), %d stored %.0f/s (CPU %.2f ms): %+.0f %% rate, %+.0f %% CPU\n", store, c,
				fewStored, figures.Median(rate[0]), figures.Median(cpu[0]), manyStored, figures.Median(rate[1]), figures.Median(cpu[1]),
				100*(figures.Median(rate[1])/figures.Median(rate[0])-1), 100*(figures.Median(cpu[1])/figures.Median(cpu[0])-1))
		}
	}
	return nil
}

// index is the size's place in a pair.
func (g *grown) index() int {
	if g.stored == fewStored {
		return 0
	}
	return 1
}

// resident is the PostgreSQL of a database that lies in memory in both sizes, so that what grows is the work.
const resident = `shared_buffers=4GB
`

func (g *grown) onPostgres(ctx context.Context, pg *machine.Postgres) error {
	name := fmt.Sprintf("stored_%d", g.stored)
	g.pg, g.url, g.driver, g.dsn = pg, pg.URL(name), "pgx", pg.URL(name)
	if err := pg.Fresh(ctx, name, "ours_seed"); err != nil {
		return err
	}
	if err := pg.Exec(ctx, name, storedPeople, `CREATE INDEX ON stored_people (n)`, fmt.Sprintf(storedPostgres, 1, g.stored, g.offers)); err != nil {
		return err
	}
	return pg.Exec(ctx, name, `VACUUM (ANALYZE)`, `CREATE EXTENSION pg_prewarm`, `SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i')`, `CHECKPOINT`)
}

func (g *grown) onSQLite(ctx context.Context, dir string) (err error) {
	seeded, remove, err := seedSQLite(ctx, g.offers)
	if remove != nil {
		defer remove()
	}
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("stored_%d.db", g.stored))
	g.url, g.driver, g.dsn = "sqlite:"+path, "sqlite", path
	if err := machine.CopyFile(path, seeded); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, s := range []string{`PRAGMA synchronous = OFF`, `PRAGMA cache_size = -400000`, storedPeople, `CREATE INDEX stored_people_n ON stored_people (n)`,
		fmt.Sprintf("BEGIN; "+storedSQLite+"; COMMIT", 1, g.stored, g.offers), `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
