package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // for accounts, which no store makes

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/sqlite"
)

// perAccount people share an account: a proposal reads its account's addresses.
const perAccount = 20

// store is what the bench needs of the product's stores.
type store interface {
	offers.Store
	people.Store
	Migrate(ctx context.Context) (int, error)
	Close() error
}

// seed gives n people one open offer each, by the calls that a server makes. Deletes never leave the account, so that
// their offers live for a day.
func seed(ctx context.Context, s store, account func(n int) string, n, workers int) error {
	policy, err := gate.Sample()
	if err != nil {
		return err
	}
	service := offers.NewService(s, policy, func(string) int { return 1600 })
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error {
			for gctx.Err() == nil {
				i := int(next.Add(1))
				if i > n {
					return nil
				}
				if err := propose(gctx, s, service, account(i), i); err != nil {
					return err
				}
			}
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for {
		t, err := s.Reserve(ctx)
		if err != nil || t == nil {
			return err
		}
		if err := s.Sent(ctx, t.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: "SM" + t.ID}); err != nil {
			return err
		}
	}
}

func propose(ctx context.Context, s store, service *offers.Service, account string, n int) error {
	p := people.Person{
		ID: offers.NewID(), AccountID: account, Name: fmt.Sprintf("Person %d", n), Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address("sms:" + fmt.Sprintf(personNumber, n)), OurNumber: "sms:" + ourNumber}},
	}
	if err := s.AddPerson(ctx, p); err != nil {
		return err
	}
	op, _, err := service.Propose(ctx, offers.Request{
		AccountID: account, Call: "POST /v1/offers", Key: p.ID, PersonID: p.ID, Kind: string(gate.KindToolCall), Tool: "email.delete",
		Args: fmt.Appendf(nil, `{"message_id":"message-%d","subject":"Minutes of the meeting"}`, n),
	})
	if err == nil && op.State != offers.OpAsked {
		err = fmt.Errorf("the seeded operation is %s (%s)", op.State, op.Reason)
	}
	return err
}

func account(n int) string { return fmt.Sprintf("bench-%d", n/perAccount) }

// seedPostgres makes a database that runs are copied from.
func (c *cluster) seed(ctx context.Context, name string, n int) error {
	if err := c.exec(ctx, "postgres", `CREATE DATABASE `+name); err != nil {
		return err
	}
	s, err := postgres.Open(ctx, c.url(name)+"&synchronous_commit=off&pool_max_conns=6")
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // what counts is what the seeding said
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	err = c.exec(ctx, name, fmt.Sprintf(`INSERT INTO accounts (id) SELECT 'bench-' || g FROM generate_series(0, %d) g`, n/perAccount))
	if err != nil {
		return err
	}
	if err := seed(ctx, s, account, n, 4); err != nil {
		return err
	}
	return c.exec(ctx, name, `CREATE EXTENSION pg_stat_statements`, `VACUUM (ANALYZE)`)
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
	path = dir + "/seed.db"
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return "", remove, err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	if _, err := s.Migrate(ctx); err != nil {
		return "", remove, err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return "", remove, err
	}
	defer db.Close() //nolint:errcheck // the statement is done
	for i := 0; i <= n/perAccount; i++ {
		if _, err := db.ExecContext(ctx, `INSERT INTO accounts (id, created_at) VALUES (?1, 0)`, fmt.Sprintf("bench-%d", i)); err != nil {
			return "", remove, err
		}
	}
	return path, remove, seed(ctx, s, account, n, 1)
}
