package main

import (
	"context"
	"database/sql"
	"net/url"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver that reads the file beside the server

	"github.com/countersign/countersign/bench/internal/machine"
)

// database is where the server keeps everything, read beside it with SQL alone.
type database interface {
	url() string
	// rows reads columns that are all text.
	rows(ctx context.Context, query string) ([][]string, error)
	// crash ends the database as it stands; false: it lives in the server and ends with it. revive brings it back.
	crash(immediate bool) bool
	revive(ctx context.Context) error
}

type sqliteFile string

func (f sqliteFile) url() string                  { return "sqlite:" + string(f) }
func (f sqliteFile) crash(bool) bool              { return false }
func (f sqliteFile) revive(context.Context) error { return nil }

func (f sqliteFile) rows(ctx context.Context, query string) ([][]string, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: string(f)}).EscapedPath()+"?_busy_timeout=10000&_pragma=query_only(ON)")
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for rows.Next() {
		row, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// cluster is a PostgreSQL server of this run's own.
type cluster struct{ *machine.Postgres }

// Commits are synchronous as in production. fsync is off: a process that is killed takes nothing with it that it has
// handed to the system; only a machine that loses its power would.
const clusterConf = `
max_connections=100
shared_buffers=128MB
checkpoint_timeout=5min
fsync=off
`

func startCluster(ctx context.Context, dir string) (cluster, error) {
	p, err := machine.StartPostgres(ctx, dir, clusterConf)
	return cluster{p}, err
}

func (c cluster) url() string                      { return c.URL("postgres") }
func (c cluster) revive(ctx context.Context) error { return c.Resume(ctx) }

func (c cluster) crash(immediate bool) bool {
	if immediate {
		return c.StopNow() == nil
	}
	return c.Kill() == nil
}

func (c cluster) rows(ctx context.Context, query string) ([][]string, error) {
	conn, err := pgx.Connect(ctx, c.url())
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was only read
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]string, error) {
		out := make([]string, len(r.FieldDescriptions()))
		into := make([]any, len(out))
		for i := range out {
			into[i] = &out[i]
		}
		return out, r.Scan(into...)
	})
}
