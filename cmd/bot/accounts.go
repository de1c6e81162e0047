package main

import (
	"strings"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

type accountsCmd struct {
	Add  accountsAdd  `cmd:"" help:"Make an account."`
	List accountsList `cmd:"" help:"List accounts."`
	Set  accountsSet  `cmd:"" help:"Change an account."`
}

// accountFlags are those of commands about accounts themselves.
type accountFlags struct {
	configFlags
	JSON bool `name:"json" help:"Print JSON."`
}

func (f accountFlags) with(e *env, fn func(store, config) error) error {
	return adminFlags{configFlags: f.configFlags}.with(e, fn)
}

type accountsAdd struct {
	accountFlags
	ID                string   `arg:"" optional:"" help:"Small letters, digits and hyphens; a UUID if left out."`
	AskingIsApproving string   `help:"on: a call that the person has asked for in their own words needs no yes of theirs." enum:"on,off" default:"off"`
	Number            []string `help:"A number of ours whose strangers are this account's." placeholder:"sms:+12025550100"`
}

type accountsList struct{ accountFlags }

type accountsSet struct {
	accountFlags
	ID                string   `arg:"" help:"The account."`
	AskingIsApproving string   `help:"on or off." enum:"on,off," default:""`
	StandingByText    string   `help:"What becomes of a standing permission that the owner asks for by text. ask: an offer that needs its own yes; direct: the text is enough." enum:"ask,direct," default:""`
	Number            []string `help:"A number of ours whose strangers are this account's from now on." placeholder:"sms:+12025550100"`
}

// Help is the command's example.
func (accountsAdd) Help() string {
	return "Example:\n  bot accounts add harbour --number sms:+12025550100 --json"
}

// Help is the command's example.
func (accountsList) Help() string { return "Example:\n  bot accounts list --json" }

// Help is the command's example.
func (accountsSet) Help() string {
	return "Example:\n  bot accounts set harbour --asking-is-approving on"
}

// numbers reads numbers of ours.
func numbers(given []string) ([]people.Address, error) {
	var out []people.Address
	for _, n := range given {
		a, err := people.ParseAddress(n)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Run makes an account.
func (c *accountsAdd) Run(e *env) error {
	id := c.ID
	if id == "" {
		id = offers.NewID()
	}
	id, err := people.ParseAccountID(id)
	if err != nil {
		return err
	}
	given, err := numbers(c.Number)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, _ config) error {
		if err := s.AddAccount(e.ctx, id); err != nil {
			return err
		}
		if err := change(e, s, id, c.AskingIsApproving, given); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": id})
		}
		e.printf("added %s\n", id)
		return nil
	})
}

func change(e *env, s store, id, asking string, given []people.Address) error {
	if asking != "" {
		if err := s.SetAskingIsApproving(e.ctx, id, asking == "on"); err != nil {
			return err
		}
	}
	for _, n := range given {
		if err := s.GiveNumber(e.ctx, id, n); err != nil {
			return err
		}
	}
	return nil
}

// Run lists accounts.
func (c *accountsList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.Accounts(e.ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"accounts": orEmpty(all)})
		}
		return e.table("ID\tASKING IS APPROVING\tSTANDING BY TEXT\tNUMBERS", func(line func(...any)) {
			for _, a := range all {
				var list []string
				for _, n := range a.Numbers {
					list = append(list, string(n))
				}
				line(a.ID, onOff(a.AskingIsApproving), a.StandingByText, strings.Join(list, " "))
			}
		})
	})
}

// Run changes an account.
func (c *accountsSet) Run(e *env) error {
	given, err := numbers(c.Number)
	if err != nil {
		return err
	}
	if c.AskingIsApproving == "" && c.StandingByText == "" && len(given) == 0 {
		return usage("Say what to change: --asking-is-approving on or off, --standing-by-text ask or direct, or --number.")
	}
	return c.with(e, func(s store, _ config) error {
		if err := change(e, s, c.ID, c.AskingIsApproving, given); err != nil {
			return err
		}
		if c.StandingByText != "" {
			if err := s.SetStandingByText(e.ctx, c.ID, c.StandingByText); err != nil {
				return err
			}
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": c.ID})
		}
		e.printf("changed %s\n", c.ID)
		return nil
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
