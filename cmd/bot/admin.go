package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// adminFlags are those of commands that work beside a running server, on the same database.
type adminFlags struct {
	configFlags
	Account string `help:"The account." default:"default"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (f adminFlags) open(e *env) (store, config, error) {
	cfg, _, err := load(e.vars, f.Config, map[string]string{"database_url": f.DatabaseURL})
	if err != nil {
		return nil, cfg, err
	}
	s, err := openStore(e.ctx, cfg.DatabaseURL, false)
	return s, cfg, err
}

// with runs fn with the store open.
func (f adminFlags) with(e *env, fn func(store, config) error) error {
	s, cfg, err := f.open(e)
	if err != nil {
		return err
	}
	return errors.Join(fn(s, cfg), s.Close())
}

// table prints rows under a head.
func (e *env) table(head string, rows func(line func(cells ...any))) error {
	w := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, c)
		}
		fmt.Fprintln(w)
	})
	return w.Flush()
}

type migrateCmd struct {
	Up     migrateUp     `cmd:"" help:"Apply what is missing."`
	Status migrateStatus `cmd:"" help:"Say how many migrations are missing; exit 1 if there are any."`
}

type migrateUp struct {
	configFlags
	JSON bool `name:"json" help:"Print JSON."`
}

type migrateStatus struct {
	configFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is the command's example.
func (migrateUp) Help() string {
	return "Example:\n  COUNTERSIGN_DATABASE_URL=postgres://… bot migrate up"
}

// Help is the command's example.
func (migrateStatus) Help() string { return "Example:\n  bot migrate status --json" }

// migrations runs fn with the store open, however far its schema is.
func (f configFlags) migrations(e *env, fn func(store) (int, error)) (int, error) {
	cfg, _, err := load(e.vars, f.Config, map[string]string{"database_url": f.DatabaseURL})
	if err != nil {
		return 0, err
	}
	s, err := openStore(e.ctx, cfg.DatabaseURL, true)
	if err != nil {
		return 0, err
	}
	n, err := fn(s)
	return n, errors.Join(err, s.Close())
}

// Run applies what is missing.
func (c *migrateUp) Run(e *env) error {
	n, err := c.migrations(e, func(s store) (int, error) { return s.Migrate(e.ctx) })
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]int{"applied": n})
	}
	e.printf("applied %d\n", n)
	return nil
}

// Run says how many are missing.
func (c *migrateStatus) Run(e *env) error {
	n, err := c.migrations(e, func(s store) (int, error) { return s.Pending(e.ctx) })
	if err != nil {
		return err
	}
	if c.JSON {
		err = e.printJSON(map[string]int{"missing": n})
	} else {
		e.printf("missing %d\n", n)
	}
	if err == nil && n > 0 {
		err = noError{}
	}
	return err
}

type keysCmd struct {
	Create keysCreate `cmd:"" help:"Make a key. Its secret is printed once and kept nowhere."`
	List   keysList   `cmd:"" help:"List keys, without secrets."`
	Revoke keysRevoke `cmd:"" help:"End a key at once."`
}

type keysCreate struct {
	adminFlags
	Name  string `required:"" help:"What the key is for."`
	Scope string `required:"" help:"agent, connector, executor or owner."`
}

type keysList struct{ adminFlags }

type keysRevoke struct {
	adminFlags
	ID string `arg:"" help:"The key's id."`
}

// Help is the command's example.
func (keysCreate) Help() string {
	return "Example:\n  bot keys create --name mailbot --scope agent --json"
}

// Help is the command's example.
func (keysList) Help() string { return "Example:\n  bot keys list --json" }

// Help is the command's example.
func (keysRevoke) Help() string {
	return "Example:\n  bot keys revoke 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"
}

// Run makes a key.
func (c *keysCreate) Run(e *env) error {
	scope, err := people.ParseScope(c.Scope)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, _ config) error {
		secret, hash := people.NewSecret()
		k := people.Key{ID: offers.NewID(), AccountID: c.Account, Name: people.CleanName(c.Name), Scope: scope}
		if err := s.AddKey(e.ctx, k, hash); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": k.ID, "key": secret})
		}
		e.printf("id   %s\nkey  %s\nThis is the only time the key is shown.\n", k.ID, secret)
		return nil
	})
}

// Run lists keys.
func (c *keysList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		keys, err := s.Keys(e.ctx, c.Account)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"keys": orEmpty(keys)})
		}
		return e.table("ID\tNAME\tSCOPE\tSTATE", func(line func(...any)) {
			for _, k := range keys {
				state := "active"
				if k.RevokedAt != nil {
					state = "revoked"
				}
				line(k.ID, k.Name, k.Scope, state)
			}
		})
	})
}

// Run ends a key.
func (c *keysRevoke) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		if err := s.RevokeKey(e.ctx, c.Account, c.ID); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": c.ID, "state": "revoked"})
		}
		e.printf("revoked %s\n", c.ID)
		return nil
	})
}

type offersCmd struct {
	List offersList `cmd:"" help:"List offers, newest first."`
}

type offersList struct {
	adminFlags
	State  string `help:"Only offers in this state."`
	Person string `help:"Only offers to this person." placeholder:"ID"`
	Limit  int    `help:"At most so many." default:"100"`
}

// Help is the command's example.
func (offersList) Help() string { return "Example:\n  bot offers list --state open --json" }

// Run lists offers.
func (c *offersList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.Offers(e.ctx, c.Account, offers.Filter{PersonID: c.Person, State: offers.State(c.State), Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"offers": orEmpty(all)})
		}
		return e.table("ID\tSTATE\tTOOL\tLABEL\tEXPIRES", func(line func(...any)) {
			for _, o := range all {
				line(o.ID, o.State, o.Tool, o.Label, o.ExpiresAt.Format("2006-01-02 15:04:05Z07:00"))
			}
		})
	})
}

// orEmpty lists nothing as [], never as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
