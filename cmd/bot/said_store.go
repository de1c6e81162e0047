package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/said"
)

type saidList struct {
	adminFlags
	Person string `help:"Only this person's." placeholder:"ID"`
	Live   bool   `help:"Only what counts now."`
}

type saidRevoke struct {
	adminFlags
	ID string `arg:"" help:"The permission's id."`
}

type saidGrant struct {
	adminFlags
	Person    string   `required:"" help:"The owner whose runs it is for." placeholder:"ID"`
	Kind      string   `help:"send, post, pay, act_out or change." default:"send" enum:"send,post,pay,act_out,change"`
	Channel   string   `help:"email, slack, sms, calendar, github, web or none." default:"none" enum:"email,slack,sms,calendar,github,web,none"`
	To        []string `required:"" help:"Exact addresses, as they stand in a call." placeholder:"ADDRESS"`
	AmountMax string   `help:"The most that may be paid each time; pay needs it." placeholder:"200"`
	Currency  string   `help:"Of the amount, such as EUR." placeholder:"EUR"`
	Count     int      `help:"How many calls; left out: no limit."`
	Until     string   `help:"When it ends, RFC 3339 or a day, which counts whole; left out: when it is revoked." placeholder:"2026-12-31"`
}

// Help is the command's example.
func (saidList) Help() string { return "Example:\n  bot said list --live --json" }

// Help is the command's example.
func (saidRevoke) Help() string {
	return "Example:\n  bot said revoke " + somebody
}

// Help is the command's example.
func (saidGrant) Help() string {
	return `Example:
  bot said grant --person 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10 --kind pay --to bakery@example.com --amount-max 200 --currency EUR --count 12

A send without a count goes to the direct-send list. Everything else counts only where the account has asking_is_approving.`
}

// Run lists permissions.
func (c *saidList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.PermissionsOf(e.ctx, c.Account, c.Person)
		if err != nil {
			return err
		}
		if c.Live {
			now := time.Now()
			all = slices.DeleteFunc(all, func(p offers.Permission) bool { return !p.Live(now) })
		}
		if c.JSON {
			return e.printJSON(map[string]any{"intents": orEmpty(all)})
		}
		return e.table("ID\tNO\tPERSON\tHOW\tWHAT\tUSED\tSTATE", func(line func(...any)) {
			for _, p := range all {
				used := fmt.Sprint(p.Used)
				if p.MaxCalls > 0 {
					used += fmt.Sprintf(" of %d", p.MaxCalls)
				}
				line(p.ID, p.Number, p.PersonID, p.How, offers.DescribePermission(p), used, stateOf(p, time.Now()))
			}
		})
	})
}

// stateOf says in a word how a permission stands.
func stateOf(p offers.Permission, now time.Time) string {
	switch {
	case p.Revoked:
		return "revoked"
	case p.GrantedAt == nil:
		return "not granted"
	case !p.EndsAt.IsZero() && !now.Before(p.EndsAt):
		return "expired"
	case !p.Live(now):
		return "used up"
	}
	return "live"
}

// Run ends a permission.
func (c *saidRevoke) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		p, err := s.Revoke(e.ctx, c.Account, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": p.ID, "state": "revoked"})
		}
		e.printf("revoked %s: %s\n", p.ID, offers.DescribePermission(p))
		return nil
	})
}

// Run grants a permission.
func (c *saidGrant) Run(e *env) error {
	until, err := untilOf(c.Until)
	if err != nil {
		return err
	}
	p, err := offers.Commanded(c.Account, c.Person, said.Intent{
		Kind: said.Kind(c.Kind), Channel: said.Channel(c.Channel), To: c.To, AmountMax: c.AmountMax, Currency: strings.ToUpper(c.Currency),
		Count: c.Count, Until: until,
	})
	if err != nil {
		return usage("%v.", err)
	}
	return c.with(e, func(s store, _ config) error {
		p, err := s.Grant(e.ctx, p)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"id": p.ID, "number": p.Number, "how": p.How})
		}
		e.printf("granted %s: %s\n", p.ID, offers.DescribePermission(p))
		return nil
	})
}

// untilOf reads an end: a time, or a day, which counts whole in UTC.
func untilOf(v string) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, v); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return t, usage("--until must be a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z.")
	}
	return t.UTC(), nil
}

// peopleDirect is the direct-send list.
type peopleDirect struct {
	Add    directAdd    `cmd:"" help:"Let sends to an address go without a question."`
	List   directList   `cmd:"" help:"List the addresses to which sends go without a question."`
	Remove directRemove `cmd:"" help:"Ask again before a send to an address."`
}

type directAdd struct {
	adminFlags
	Person  string `required:"" help:"The owner whose runs may send there." placeholder:"ID"`
	Address string `required:"" help:"The exact address." placeholder:"dana@example.com"`
	Until   string `help:"When it ends, RFC 3339 or a day; left out: when it is removed." placeholder:"2026-12-31"`
}

type directList struct {
	adminFlags
	Person string `help:"Only this person's." placeholder:"ID"`
}

type directRemove struct {
	adminFlags
	Person  string `required:"" help:"The person." placeholder:"ID"`
	Address string `required:"" help:"The exact address." placeholder:"dana@example.com"`
}

// Help is the command's example.
func (directAdd) Help() string {
	return "Example:\n  bot people direct add --person 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10 --address dana@example.com"
}

// Help is the command's example.
func (directList) Help() string { return "Example:\n  bot people direct list --json" }

// Help is the command's example.
func (directRemove) Help() string {
	return "Example:\n  bot people direct remove --person 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10 --address dana@example.com"
}

// Run adds an address.
func (c *directAdd) Run(e *env) error {
	until, err := untilOf(c.Until)
	if err != nil {
		return err
	}
	p, err := offers.Commanded(c.Account, c.Person, said.Intent{Kind: said.KindSend, Channel: said.ChannelNone, To: []string{c.Address}, Until: until})
	if err != nil {
		return usage("%v.", err)
	}
	return c.with(e, func(s store, _ config) error {
		had, err := directOf(e, s, c.Account, c.Person)
		if err != nil {
			return err
		}
		address := p.Addresses()[0]
		for _, d := range had {
			if d.Address == address && until.IsZero() && d.Until == nil {
				return printDirect(e, c.JSON, d, "was there already")
			}
		}
		p, err := s.Grant(e.ctx, p)
		if err != nil {
			return err
		}
		return printDirect(e, c.JSON, direct{ID: p.ID, Number: p.Number, PersonID: p.PersonID, Address: address, Until: endOf(p)}, "added")
	})
}

func printDirect(e *env, asJSON bool, d direct, what string) error {
	if asJSON {
		return e.printJSON(d)
	}
	e.printf("%s %s\n", d.Address, what)
	return nil
}

// direct is one address of the list.
type direct struct {
	ID       string     `json:"id"`
	Number   int        `json:"number"`
	PersonID string     `json:"person_id"`
	Address  string     `json:"address"`
	Until    *time.Time `json:"until"`
}

func endOf(p offers.Permission) *time.Time {
	if p.EndsAt.IsZero() {
		return nil
	}
	return &p.EndsAt
}

func directOf(e *env, s store, account, person string) ([]direct, error) {
	all, err := s.PermissionsOf(e.ctx, account, person)
	if err != nil {
		return nil, err
	}
	var out []direct
	for _, p := range all {
		if p.How != offers.Direct || !p.Live(time.Now()) {
			continue
		}
		for _, a := range p.Addresses() {
			out = append(out, direct{ID: p.ID, Number: p.Number, PersonID: p.PersonID, Address: a, Until: endOf(p)})
		}
	}
	return out, nil
}

// Run lists addresses.
func (c *directList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := directOf(e, s, c.Account, c.Person)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"direct": orEmpty(all)})
		}
		return e.table("PERSON\tADDRESS\tUNTIL\tID", func(line func(...any)) {
			for _, d := range all {
				until := "it is removed"
				if d.Until != nil {
					until = d.Until.Format(time.RFC3339)
				}
				line(d.PersonID, d.Address, until, d.ID)
			}
		})
	})
}

// Run removes an address, with every entry that holds it.
func (c *directRemove) Run(e *env) error {
	address, err := plainAddress(c.Address)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, _ config) error {
		all, err := directOf(e, s, c.Account, c.Person)
		if err != nil {
			return err
		}
		n := 0
		for _, d := range all {
			if d.Address != address || !strings.EqualFold(d.PersonID, c.Person) {
				continue
			}
			if _, err := s.Revoke(e.ctx, c.Account, d.ID); err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return offers.ErrNotFound
		}
		if c.JSON {
			return e.printJSON(map[string]string{"address": address, "state": "removed"})
		}
		e.printf("%s removed\n", address)
		return nil
	})
}

// plainAddress is the canonical form of an address.
func plainAddress(given string) (string, error) {
	address := gate.CanonicalAddress(given)
	if address == "" {
		return "", usage("--address must be exactly one plain address.")
	}
	return address, nil
}

// ownCmd is the account's own addresses.
type ownCmd struct {
	Add    ownAdd    `cmd:"" help:"Add an address of the account's own: sends to it reach nobody else."`
	List   ownList   `cmd:"" help:"List the account's own addresses, beside those that its people are bound to."`
	Remove ownRemove `cmd:"" help:"Take an address off the list."`
}

type ownAdd struct {
	adminFlags
	Address string `required:"" help:"The exact address." placeholder:"me@example.com"`
}

type ownList struct{ adminFlags }

type ownRemove struct {
	adminFlags
	Address string `required:"" help:"The exact address." placeholder:"me@example.com"`
}

// Help is the command's example.
func (ownAdd) Help() string { return "Example:\n  bot own add --address me@example.com" }

// Help is the command's example.
func (ownList) Help() string { return "Example:\n  bot own list --json" }

// Help is the command's example.
func (ownRemove) Help() string { return "Example:\n  bot own remove --address me@example.com" }

// Run adds an address.
func (c *ownAdd) Run(e *env) error {
	address, err := plainAddress(c.Address)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, _ config) error {
		added, err := s.AddOwnAddress(e.ctx, c.Account, address)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"address": address, "added": added})
		}
		e.printf("%s is the account's own\n", address)
		return nil
	})
}

// Run lists addresses.
func (c *ownList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.OwnAddresses(e.ctx, c.Account)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"addresses": orEmpty(all)})
		}
		for _, a := range all {
			e.printf("%s\n", a)
		}
		return nil
	})
}

// Run removes an address.
func (c *ownRemove) Run(e *env) error {
	address, err := plainAddress(c.Address)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, _ config) error {
		if err := s.RemoveOwnAddress(e.ctx, c.Account, address); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"address": address, "state": "removed"})
		}
		e.printf("%s removed\n", address)
		return nil
	})
}
