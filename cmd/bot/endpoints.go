package main

import (
	"errors"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/offers"
)

type endpointsCmd struct {
	Add    endpointsAdd    `cmd:"" help:"Post an account's events to a URL from now on, signed. The secret is printed once."`
	List   endpointsList   `cmd:"" help:"List endpoints and how they are doing, without secrets."`
	Dead   endpointsDead   `cmd:"" help:"List events that an endpoint did not take within the schedule."`
	Retry  endpointsRetry  `cmd:"" help:"Send a dead event again, under its old id and number."`
	Enable endpointsEnable `cmd:"" help:"Let an endpoint that answered 410, or that waits after failures, go on at once where it stood."`
	Remove endpointsRemove `cmd:"" help:"Remove an endpoint with its dead events."`
}

type endpointsAdd struct {
	adminFlags
	URL          string `required:"" help:"Where to post: https://…" placeholder:"URL"`
	AllowPrivate bool   `help:"Take an address of a private network, or http:// on the loopback. The server must be told as well (COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS=1)."`
}

type endpointsList struct{ adminFlags }

type endpointsDead struct{ adminFlags }

type endpointsRetry struct {
	adminFlags
	ID  string `arg:"" optional:"" help:"The dead event's id, as bot endpoints dead lists it."`
	All bool   `help:"All dead events of the account."`
}

type endpointsEnable struct {
	adminFlags
	ID string `arg:"" help:"The endpoint's id."`
}

type endpointsRemove struct {
	adminFlags
	ID string `arg:"" help:"The endpoint's id."`
}

// Help is the command's example.
func (endpointsAdd) Help() string {
	return "Example:\n  bot endpoints add --url https://agent.example.com/countersign --json"
}

// Help is the command's example.
func (endpointsList) Help() string { return "Example:\n  bot endpoints list --json" }

// Help is the command's example.
func (endpointsDead) Help() string { return "Example:\n  bot endpoints dead --json" }

// Help is the command's example.
func (endpointsRetry) Help() string {
	return "Example:\n  bot endpoints retry 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10\n  bot endpoints retry --all"
}

// Help is the command's example.
func (endpointsEnable) Help() string {
	return "Example:\n  bot endpoints enable 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"
}

// Help is the command's example.
func (endpointsRemove) Help() string {
	return "Example:\n  bot endpoints remove 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"
}

// Run adds an endpoint.
func (c *endpointsAdd) Run(e *env) error {
	return c.with(e, func(s store, cfg config) error {
		if _, err := api.ParseEndpointURL(c.URL, c.AllowPrivate || cfg.AllowPrivateEndpoints); err != nil {
			return usage("--url: %v.", err)
		}
		end := offers.Endpoint{ID: offers.NewID(), AccountID: c.Account, URL: c.URL, Secret: offers.NewEndpointSecret()}
		if err := s.AddEndpoint(e.ctx, end); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": end.ID, "secret": end.Secret})
		}
		e.printf("id      %s\nsecret  %s\nThis is the only time the secret is shown.\n", end.ID, end.Secret)
		return nil
	})
}

// Run lists endpoints.
func (c *endpointsList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.Endpoints(e.ctx, c.Account)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"endpoints": orEmpty(all)})
		}
		return e.table("ID\tURL\tSTATE\tSEQ\tDEAD\tANSWERED", func(line func(...any)) {
			for _, x := range all {
				state := "active"
				switch {
				case x.DisabledAt != nil:
					state = "disabled"
				case x.Attempts > 0:
					state = "failing"
				}
				answered := "never"
				if x.AnsweredAt != nil {
					answered = x.AnsweredAt.Format("2006-01-02 15:04:05Z07:00")
				}
				line(x.ID, x.URL, state, x.Seq, x.Dead, answered)
			}
		})
	})
}

// Run lists dead letters.
func (c *endpointsDead) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.DeadLetters(e.ctx, c.Account)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"dead": orEmpty(all)})
		}
		return e.table("ID\tENDPOINT\tSEQ\tTYPE\tSTATUS\tSTATE", func(line func(...any)) {
			for _, x := range all {
				state := "retrying"
				if x.DeadAt != nil {
					state = "dead"
				}
				var status any = x.LastStatus
				if x.LastFailure != "" {
					status = x.LastFailure
				}
				line(x.ID, x.EndpointID, x.Seq, x.EventType, status, state)
			}
		})
	})
}

// Run puts dead letters back.
func (c *endpointsRetry) Run(e *env) error {
	if (c.ID == "") == !c.All {
		return usage("Name one dead event, or say --all.")
	}
	return c.with(e, func(s store, _ config) error {
		put := []string{}
		if c.ID != "" {
			put = append(put, c.ID)
		} else {
			all, err := s.DeadLetters(e.ctx, c.Account)
			if err != nil {
				return err
			}
			for _, x := range all {
				if x.DeadAt != nil {
					put = append(put, x.ID)
				}
			}
		}
		for _, id := range put {
			// With --all, one that was removed meanwhile needs no retry.
			if err := s.RetryDead(e.ctx, c.Account, id); err != nil && (!c.All || !errors.Is(err, offers.ErrNotFound)) {
				return err
			}
		}
		if c.JSON {
			return e.printJSON(map[string]any{"retried": put})
		}
		e.printf("%d put back\n", len(put))
		return nil
	})
}

// Run enables an endpoint.
func (c *endpointsEnable) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		return c.changed(e, c.ID, "enabled", s.EnableEndpoint(e.ctx, c.Account, c.ID))
	})
}

// Run removes an endpoint.
func (c *endpointsRemove) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		return c.changed(e, c.ID, "removed", s.RemoveEndpoint(e.ctx, c.Account, c.ID))
	})
}

// changed says what became of a row, if nothing went wrong.
func (f adminFlags) changed(e *env, id, state string, err error) error {
	switch {
	case err != nil:
		return err
	case f.JSON:
		return e.printJSON(map[string]string{"id": id, "state": state})
	}
	e.printf("%s %s\n", state, id)
	return nil
}
