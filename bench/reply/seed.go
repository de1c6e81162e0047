package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/machine"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/sqlite"
)

// perAccount people share an account: a proposal reads its account's addresses.
const perAccount = 20

func account(n int) string { return fmt.Sprintf("bench-%d", n/perAccount) }

// seed brings a store up to date and fills it.
func seed(ctx context.Context, s crowd.Store, n, workers int) error {
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	for i := 0; i <= n; i += perAccount {
		if err := s.AddAccount(ctx, account(i)); err != nil {
			return err
		}
	}
	if _, err := crowd.Seed(ctx, s, account, n, workers); err != nil {
		return err
	}
	machine.Pause(ctx, time.Second) // a yes that comes sooner than one can read, COUNTERSIGN_MIN_READ, approves nothing
	return ctx.Err()
}

// seedPostgres makes a database that runs are copied from.
func seedPostgres(ctx context.Context, pg *machine.Postgres, name string, n int) error {
	if err := pg.Fresh(ctx, name, ""); err != nil {
		return err
	}
	s, err := postgres.Open(ctx, pg.URL(name)+"&synchronous_commit=off&pool_max_conns=6")
	if err != nil {
		return err
	}
	if err := errors.Join(seed(ctx, s, n, 4), s.Close()); err != nil {
		return err
	}
	return pg.Exec(ctx, name, `CREATE EXTENSION pg_stat_statements`, `VACUUM (ANALYZE)`)
}

// seedSQLite makes a file that runs are copied from. It lies in memory where there is such a place: what is measured is
// the copy.
func seedSQLite(ctx context.Context, n int) (path string, remove func(), err error) {
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "countersign-bench")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "seed.db")
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return "", remove, err
	}
	return path, remove, errors.Join(seed(ctx, s, n, 1), s.Close())
}
