package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/machine"
)

const drainTime = time.Minute

// server is a running Countersign: a child, or in this process where a profile is taken.
type server interface {
	stop()
	peak() int64
	pid() int
	logFile() string
}

// starter starts a server on a database at an address.
type starter func(ctx context.Context, dir, databaseURL, addr string) (server, error)

// oursSide is Countersign as it is served.
type oursSide struct {
	start  starter
	pg     *machine.Postgres // nil: SQLite
	seeded string            // SQLite: the file that runs are copied from
	offers int
	wire   *wire // not nil: counts round trips
}

// database prepares a fresh copy and says how the server, and how a reader of the result, opens it.
func (s oursSide) database(ctx context.Context, dir string) (url, driver, dsn string, err error) {
	if s.pg == nil {
		path := filepath.Join(dir, "ours.db")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return "", "", "", err
			}
		}
		return "sqlite:" + path, "sqlite", path, machine.CopyFile(path, s.seeded)
	}
	url = s.pg.URL("ours")
	dsn = url
	if s.wire != nil {
		url = machine.URLAt(s.wire.l.Addr().String(), "ours")
	}
	return url, "pgx", dsn, s.pg.Fresh(ctx, "ours", "ours_seed")
}

// serving runs fn against a fresh server that has been warmed up.
func (s oursSide) serving(ctx context.Context, dir string, p plan, fn func(srv server, target, driver, dsn string, reqs []crowd.Reply) error) error {
	url, driver, dsn, err := s.database(ctx, dir)
	if err != nil {
		return err
	}
	addr, err := machine.FreeAddr(ctx)
	if err != nil {
		return err
	}
	srv, err := s.start(ctx, dir, url, addr)
	if err != nil {
		return err
	}
	defer srv.stop()
	target := "http://" + addr + crowd.HookPath
	reqs := replies(1, s.offers, p.text, crowd.PublicURL+crowd.HookPath)
	samples, err := load(target, reqs[:p.warm], p.connections, time.Minute)
	if err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	if n := drain(ctx, srv.logFile(), len(samples)); n != len(samples) {
		return fmt.Errorf("warm-up: %d of %d yeses were consumed", n, len(samples))
	}
	return fn(srv, target, driver, dsn, reqs)
}

func (s oursSide) run(ctx context.Context, dir string, p plan) (r run, err error) {
	err = s.serving(ctx, dir, p, func(srv server, target, driver, dsn string, reqs []crowd.Reply) error {
		pids := []int{srv.pid()}
		if s.pg != nil {
			pids = append(pids, s.pg.PID())
		}
		m := machine.NewMeter(pids...)
		samples, err := load(target, reqs[p.warm:], p.connections, p.duration)
		if err != nil {
			r.Failure = err.Error()
		}
		answered := 0
		for _, smp := range samples {
			if smp.ok {
				answered++
			}
		}
		drain(ctx, srv.logFile(), p.warm+answered)
		cpu, foreign := m.Read()
		r.Foreign, r.Peak = foreign, srv.peak()
		committed, err := commits(ctx, driver, dsn, srv.logFile(), p.warm+1, len(samples))
		if err != nil {
			return err
		}
		r.measure(samples, committed, cpu)
		return nil
	})
	return r, err
}

// cost counts what n confirms on one connection take of the database, less what an idle server takes in the same time.
func (s oursSide) cost(ctx context.Context, dir string, p plan, n int) (perConfirm [3]float64, err error) {
	p.connections = 1
	err = s.serving(ctx, dir, p, func(srv server, target, _, _ string, reqs []crowd.Reply) error {
		before, err := countersOf(ctx, s.pg, "ours", s.wire)
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := load(target, reqs[p.warm:p.warm+n], 1, time.Minute); err != nil {
			return err
		}
		if got := drain(ctx, srv.logFile(), p.warm+n); got != p.warm+n {
			return fmt.Errorf("%d of %d yeses were consumed", got, p.warm+n)
		}
		took := time.Since(began)
		after, err := countersOf(ctx, s.pg, "ours", s.wire)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(took):
		}
		idle, err := countersOf(ctx, s.pg, "ours", s.wire)
		if err != nil {
			return err
		}
		used, rest := after.minus(before), idle.minus(after)
		for i, v := range []int64{used.statements - rest.statements, used.trips - rest.trips, used.writes - rest.writes} {
			perConfirm[i] = float64(v) / float64(n)
		}
		return nil
	})
	return perConfirm, err
}

// approved marks the log's line of an offer that was consumed just then; a message that was decided twice finds its own
// win again, and says repeat.
func approved(line []byte) bool {
	return bytes.Contains(line, []byte(`"msg":"approved"`)) && bytes.Contains(line, []byte(`"repeat":false`))
}

// drain waits until so many approvals stand in the log, or nothing more comes, and says how many there are.
func drain(ctx context.Context, logFile string, want int) int {
	f, err := os.Open(logFile) //nolint:gosec // a path of ours
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := bufio.NewReader(f)
	n := 0
	var line []byte
	for last := time.Now(); n < want && time.Since(last) < drainTime; {
		part, err := r.ReadBytes('\n')
		line = append(line, part...)
		if errors.Is(err, io.EOF) {
			select {
			case <-ctx.Done():
				return n
			case <-time.After(5 * time.Millisecond):
			}
			continue
		}
		if approved(line) {
			n, last = n+1, time.Now()
		}
		line = line[:0]
	}
	return n
}

// approval is the log's line of a consumed offer. It is written when the consume has returned, so that its time is one
// after the commit.
type approval struct {
	Time      time.Time `json:"time"`
	Msg       string    `json:"msg"`
	MessageID string    `json:"message_id"`
}

// commits finds when the yes of each person from first on was committed; the zero time: it was not. What the log says
// must stand in the database.
func commits(ctx context.Context, driver, dsn, logFile string, first, n int) ([]time.Time, error) {
	people, err := consumedBy(ctx, driver, dsn)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(logFile) //nolint:gosec // a path of ours
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	out := make([]time.Time, n)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if !approved(lines.Bytes()) {
			continue
		}
		var a approval
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		i, ok := people[a.MessageID]
		if !ok {
			return nil, fmt.Errorf("the log tells of an approval by message %s that the database does not hold", a.MessageID)
		}
		if i -= first; i >= 0 && i < n {
			out[i] = a.Time
		}
	}
	return out, lines.Err()
}

// consumedBy maps the messages that consumed an offer, with its one ledger row, to the numbers of their people.
func consumedBy(ctx context.Context, driver, dsn string) (map[string]int, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	rows, err := db.QueryContext(ctx, `SELECT m.id, m.provider_id FROM offers o JOIN messages m ON m.id = o.consumed_by
		JOIN ledger l ON l.operation_id = o.operation_id AND l.kind = 'consumed' WHERE o.state = 'consumed'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	out := map[string]int{}
	for rows.Next() {
		var id, sid string
		if err := rows.Scan(&id, &sid); err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(sid[2:], 16, 64)
		if err != nil {
			return nil, err
		}
		out[id] = int(n)
	}
	return out, rows.Err()
}

// child is `bot serve`.
type child struct{ *machine.Process }

func (c child) stop()           { c.Stop() }
func (c child) peak() int64     { return c.Peak() }
func (c child) pid() int        { return c.PID() }
func (c child) logFile() string { return c.Log() }

// childStarter starts a binary as it would be served behind Twilio.
func childStarter(binary, twilioURL string) starter {
	return func(ctx context.Context, dir, databaseURL, addr string) (server, error) {
		log := filepath.Join(dir, "serve.log")
		if err := os.WriteFile(log, nil, 0o600); err != nil { // approvals are counted in it
			return nil, err
		}
		p, err := machine.Start(machine.Command{Path: binary, Args: []string{"serve"}, Env: crowd.Environ(addr, databaseURL, twilioURL), Log: log})
		if err != nil {
			return nil, err
		}
		if err := p.Listening(ctx, addr); err != nil {
			p.Kill()
			return nil, err
		}
		return child{p}, nil
	}
}
