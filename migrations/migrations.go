// Package migrations holds the schema of both stores, in order.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed postgres/*.sql
var postgresFS embed.FS

//go:embed sqlite/*.sql
var sqliteFS embed.FS

// Postgres makes a provider for a PostgreSQL database. Several replicas may migrate at once: a session lock lets one
// at a time through, and each migration is applied once.
func Postgres(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return provider(goose.DialectPostgres, db, postgresFS, "postgres", goose.WithSessionLocker(locker))
}

// SQLite makes a provider for an SQLite database.
func SQLite(db *sql.DB) (*goose.Provider, error) {
	return provider(goose.DialectSQLite3, db, sqliteFS, "sqlite")
}

func provider(d goose.Dialect, db *sql.DB, all fs.FS, dir string, opts ...goose.ProviderOption) (*goose.Provider, error) {
	sub, err := fs.Sub(all, dir)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(d, db, sub, append(opts, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return p, nil
}

// Up applies whatever is missing and returns the number of migrations applied.
func Up(ctx context.Context, p *goose.Provider) (int, error) {
	res, err := p.Up(ctx)
	if err != nil {
		return len(res), fmt.Errorf("migrations: %w", err)
	}
	return len(res), nil
}
