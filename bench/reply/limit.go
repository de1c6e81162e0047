package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
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

// limitSide is the least program that does the same work durably: the limit that ours is held against.
type limitSide struct {
	program string
	cluster *cluster // nil: SQLite
	offers  int
}

func (s limitSide) run(ctx context.Context, dir string, p plan) (run, error) {
	addr, err := freeAddr()
	if err != nil {
		return run{}, err
	}
	args := []string{"-addr", addr, "-token", authToken}
	var pids []int
	if s.cluster != nil {
		if err := s.cluster.fresh(ctx, "least", "least_seed"); err != nil {
			return run{}, err
		}
		args = append(args, "-mode", "pg2t", "-dsn", s.cluster.url("least"))
		pids = append(pids, s.cluster.pid())
	} else {
		args = append(args, "-mode", "sqlite2", "-sync", "FULL", "-db", filepath.Join(dir, "limit.db"), "-base", "1", "-seed", fmt.Sprint(s.offers))
	}
	proc, err := start(filepath.Join(dir, "limit.log"), nil, s.program, args...)
	if err != nil {
		return run{}, err
	}
	defer proc.stop()
	if err := proc.listening(addr); err != nil {
		return run{}, err
	}
	target := "http://" + addr + "/hook"
	reqs := requests(1, s.offers, p.text, target)
	if _, err := load(target, reqs[:p.warm], p.connections, time.Minute); err != nil {
		return run{}, fmt.Errorf("warm-up: %w", err)
	}
	m := newMeter(append([]int{proc.cmd.Process.Pid}, pids...)...)
	samples, err := load(target, reqs[p.warm:], p.connections, p.duration)
	r := run{Peak: proc.peak()}
	cpu, foreign := m.read()
	if err != nil {
		r.Failure = err.Error()
	}
	// Its answer comes after the commit of the consume.
	committed := make([]time.Time, len(samples))
	for i, smp := range samples {
		if smp.ok && !smp.unconsumed {
			committed[i] = smp.answered
		}
	}
	r.measure(samples, committed, cpu)
	r.Foreign = foreign
	return r, nil
}
