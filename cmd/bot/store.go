package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/sqlite"
)

// store is one database with everything in it.
type store interface {
	offers.Store
	offers.EndpointStore
	offers.PromptLine
	people.Store
	people.Book
	Migrate(ctx context.Context) (int, error)
	Pending(ctx context.Context) (int, error)
	Ping(ctx context.Context) error
	Close() error
}

// openStore is the only place that picks a backend. An embedded database is brought up to date on the way; PostgreSQL is
// not: several servers share it, and `bot migrate up` says when.
func openStore(ctx context.Context, databaseURL string, migrating bool) (store, error) {
	var s store
	var err error
	switch {
	case strings.HasPrefix(databaseURL, "sqlite:"):
		s, err = sqlite.Open(ctx, strings.TrimPrefix(databaseURL, "sqlite:"))
		if err == nil {
			_, err = s.Migrate(ctx)
		}
		migrating = true
	case strings.HasPrefix(databaseURL, "postgres://"), strings.HasPrefix(databaseURL, "postgresql://"):
		s, err = postgres.Open(ctx, databaseURL)
	default:
		return nil, usage("COUNTERSIGN_DATABASE_URL must begin with sqlite: or postgres://.")
	}
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if migrating {
		return s, nil
	}
	missing, err := s.Pending(ctx)
	if err == nil && missing > 0 {
		err = usage("The database lacks %d migrations: run bot migrate up.", missing)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}
