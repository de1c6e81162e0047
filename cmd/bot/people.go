package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

type peopleCmd struct {
	Add      peopleAdd      `cmd:"" help:"Add a person with the address at which they are asked."`
	List     peopleList     `cmd:"" help:"List people."`
	Pending  peoplePending  `cmd:"" help:"List strangers who have texted, and what they wrote."`
	Approve  peopleApprove  `cmd:"" help:"Make a person of the stranger who was sent this code."`
	Promote  peoplePromote  `cmd:"" help:"Make a pending text of somebody who is paired by now evidence of theirs. It approves nothing."`
	Tier     peopleTier     `cmd:"" help:"Change what a person may approve."`
	Suspend  peopleSuspend  `cmd:"" help:"Stop a person at once: no yes counts, also one that is on its way, and no text goes out."`
	Activate peopleActivate `cmd:"" help:"End a suspension."`
	Bind     peopleBind     `cmd:"" help:"Tie one more address to a person."`
	Direct   peopleDirect   `cmd:"" help:"The direct-send list: exact addresses to which sends go without a question."`
	Unbind   peopleUnbind   `cmd:"" help:"Take an address from a person; what is open at it is withdrawn."`
}

type peopleAdd struct {
	adminFlags
	Name      string `required:"" help:"What to call them."`
	Address   string `required:"" help:"sms:+E.164, whatsapp:+E.164 or sim:name." placeholder:"sms:+12025550102"`
	As        string `required:"" help:"owner or paired."`
	OurNumber string `help:"The number of ours that they are asked from; else the account's own, or that of TWILIO_FROM." placeholder:"sms:+12025550100"`
}

type peopleList struct{ adminFlags }

// Help is the command's example.
func (peopleAdd) Help() string {
	return "Example:\n  bot people add --name Alex --address sms:+12025550102 --as owner --json"
}

// Help is the command's example.
func (peopleList) Help() string { return "Example:\n  bot people list --json" }

// Run adds a person.
func (c *peopleAdd) Run(e *env) error {
	addr, err := people.ParseAddress(c.Address)
	if err != nil {
		return err
	}
	if err := checkTier("--as", c.As); err != nil {
		return err
	}
	name, err := cleanName(c.Name)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, cfg config) error {
		our, err := ourOf(e, s, cfg, c.Account, addr, c.OurNumber)
		if err != nil {
			return err
		}
		p := people.Person{ID: offers.NewID(), AccountID: c.Account, Name: name, Tier: c.As, State: people.Active,
			Addresses: []people.Binding{{Address: addr, OurNumber: our}}}
		if err := s.AddPerson(e.ctx, p); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": p.ID})
		}
		e.printf("added %s as %s\n", p.ID, p.Tier)
		return nil
	})
}

// Run lists people.
func (c *peopleList) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, err := s.People(e.ctx, c.Account)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"people": orEmpty(all)})
		}
		return e.table("ID\tNAME\tTIER\tSTATE\tADDRESS\tNOTE", func(line func(...any)) {
			for _, p := range all {
				note := ""
				if n := len(p.Unbound); n > 0 {
					u := p.Unbound[n-1]
					note = fmt.Sprintf("%s unbound %s: %s", u.Address, u.At.Format(time.DateOnly), u.Why)
				}
				if len(p.Addresses) == 0 {
					line(p.ID, offers.Spell(p.Name), p.Tier, p.State, "-", note)
				}
				for _, a := range p.Addresses {
					line(p.ID, offers.Spell(p.Name), p.Tier, p.State, string(a.Address), note)
				}
			}
		})
	})
}

type peoplePending struct{ adminFlags }

type peopleApprove struct {
	adminFlags
	Code []string `arg:"" help:"The code that the stranger tells you; case, spaces and dashes do not matter."`
	As   string   `required:"" help:"owner or paired."`
	Name string   `required:"" help:"What to call them."`
}

type peoplePromote struct {
	adminFlags
	ID string `arg:"" help:"The message's id, from bot people pending."`
}

// Help is the command's example.
func (peoplePending) Help() string { return "Example:\n  bot people pending --json" }

// Help is the command's example.
func (peopleApprove) Help() string {
	return "Example:\n  bot people approve K7M4-Q2ZP --as paired --name Dana"
}

// Help is the command's example.
func (peoplePromote) Help() string {
	return "Example:\n  bot people promote 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"
}

// shownPending is a stranger with a name that looks like what it is.
type shownPending struct {
	people.Pending
	ShownName string `json:"shown_name"` // the name with whatever is not what it looks like spelled out
}

// Run lists strangers. What they wrote and call themselves is printed so that it can do nothing to the terminal.
func (c *peoplePending) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		all, counts, err := s.Strangers(e.ctx, c.Account)
		if err != nil {
			return err
		}
		if c.JSON {
			list := []shownPending{}
			for _, p := range all {
				list = append(list, shownPending{p, offers.Spell(p.Name)})
			}
			return e.printJSON(struct {
				Pending []shownPending `json:"pending"`
				people.PairingCounts
			}{list, counts})
		}
		for _, p := range all {
			e.printf("%s to %s, calls itself %q\n", orNobody(p.Address), p.OurNumber, offers.Spell(p.Name))
			e.printf("  code: %s\n", codeState(p))
			for _, t := range p.Texts {
				e.printf("  %s  %s  %q\n", t.ReceivedAt.Format("2006-01-02 15:04:05Z07:00"), t.MessageID, offers.Spell(t.Text))
			}
		}
		if len(all) == 0 {
			e.printf("nobody\n")
		}
		if counts.Dropped > 0 {
			e.printf("%d texts of strangers were over the limits and not kept\n", counts.Dropped)
		}
		if counts.WrongCodes > 0 {
			e.printf("%d wrong codes were tried within the hour, of %d\n", counts.WrongCodes, people.MaxWrongCodes)
		}
		return nil
	})
}

func orNobody(a people.Address) string {
	if a == "" {
		return "a sender who cannot be answered"
	}
	return string(a)
}

func codeState(p people.Pending) string {
	said := p.Code
	if p.ExpiresAt != nil {
		said += " until " + p.ExpiresAt.Format("15:04:05Z07:00")
	}
	if p.Prompt != "" {
		said += ", its text is " + string(p.Prompt)
	}
	if p.OptedOut {
		said += ", wants no texts"
	}
	return said
}

// Run approves a code.
func (c *peopleApprove) Run(e *env) error {
	code, err := people.ParseCode(strings.Join(c.Code, " "))
	if err != nil {
		return err
	}
	if err := checkTier("--as", c.As); err != nil {
		return err
	}
	name, err := cleanName(c.Name)
	if err != nil {
		return err
	}
	return c.with(e, func(s store, _ config) error {
		p, err := s.Approve(e.ctx, people.Approval{AccountID: c.Account, Code: code, PersonID: offers.NewID(), Name: name, Tier: c.As, Welcome: people.WelcomeText(name)})
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"id": p.ID, "address": string(p.Addresses[0].Address), "tier": p.Tier})
		}
		e.printf("%s at %s is %s as %s\n", offers.Spell(p.Name), string(p.Addresses[0].Address), p.ID, p.Tier)
		return nil
	})
}

// cleanName is the name that is kept.
func cleanName(given string) (string, error) {
	name := people.CleanName(given)
	if name == "" {
		return "", usage("--name has no character that can be shown.")
	}
	return name, nil
}

func checkTier(what, tier string) error {
	if tier != gate.TierOwner && tier != gate.TierPaired {
		return usage("%s must be owner or paired.", what)
	}
	return nil
}

// Run promotes a text.
func (c *peoplePromote) Run(e *env) error {
	return c.with(e, func(s store, _ config) error {
		id, err := s.Promote(e.ctx, c.Account, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"message_id": c.ID, "person_id": id})
		}
		e.printf("the text is %s's now; it approves nothing\n", id)
		return nil
	})
}

type peopleTier struct {
	adminFlags
	ID   string `arg:"" help:"The person's id."`
	Tier string `arg:"" help:"owner or paired."`
}

type peopleSuspend struct {
	adminFlags
	ID string `arg:"" help:"The person's id."`
}

type peopleActivate struct {
	adminFlags
	ID string `arg:"" help:"The person's id."`
}

type peopleBind struct {
	adminFlags
	ID        string `arg:"" help:"The person's id."`
	Address   string `required:"" help:"sms:+E.164, whatsapp:+E.164 or sim:name." placeholder:"sms:+12025550102"`
	OurNumber string `help:"The number of ours that they are asked from; else the account's own, or that of TWILIO_FROM." placeholder:"sms:+12025550100"`
}

type peopleUnbind struct {
	adminFlags
	ID        string `arg:"" help:"The person's id."`
	Address   string `required:"" help:"The address." placeholder:"sms:+12025550102"`
	OurNumber string `help:"The number of ours, where the address is bound to several." placeholder:"sms:+12025550100"`
}

const somebody = "01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"

// Help is the command's example.
func (peopleTier) Help() string { return "Example:\n  bot people tier " + somebody + " paired" }

// Help is the command's example.
func (peopleSuspend) Help() string { return "Example:\n  bot people suspend " + somebody }

// Help is the command's example.
func (peopleActivate) Help() string { return "Example:\n  bot people activate " + somebody }

// Help is the command's example.
func (peopleBind) Help() string {
	return "Example:\n  bot people bind " + somebody + " --address sms:+12025550103"
}

// Help is the command's example.
func (peopleUnbind) Help() string {
	return "Example:\n  bot people unbind " + somebody + " --address sms:+12025550102"
}

// Run changes a tier.
func (c *peopleTier) Run(e *env) error {
	if err := checkTier("The tier", c.Tier); err != nil {
		return err
	}
	return c.alter(e, c.ID, "tier", c.Tier, func(s store, _ config) error { return s.SetTier(e.ctx, c.Account, c.ID, c.Tier) })
}

// Run suspends a person.
func (c *peopleSuspend) Run(e *env) error {
	return c.alter(e, c.ID, "state", string(people.Suspended), func(s store, _ config) error {
		return s.SetState(e.ctx, c.Account, c.ID, people.Suspended)
	})
}

// Run ends a suspension.
func (c *peopleActivate) Run(e *env) error {
	return c.alter(e, c.ID, "state", string(people.Active), func(s store, _ config) error {
		return s.SetState(e.ctx, c.Account, c.ID, people.Active)
	})
}

// Run binds an address.
func (c *peopleBind) Run(e *env) error {
	addr, err := people.ParseAddress(c.Address)
	if err != nil {
		return err
	}
	return c.alter(e, c.ID, "bound", string(addr), func(s store, cfg config) error {
		our, err := ourOf(e, s, cfg, c.Account, addr, c.OurNumber)
		if err != nil {
			return err
		}
		return s.Bind(e.ctx, c.Account, c.ID, people.Binding{Address: addr, OurNumber: our})
	})
}

// Run unbinds an address.
func (c *peopleUnbind) Run(e *env) error {
	addr, err := people.ParseAddress(c.Address)
	if err != nil {
		return err
	}
	return c.alter(e, c.ID, "unbound", string(addr), func(s store, _ config) error {
		all, err := s.People(e.ctx, c.Account)
		if err != nil {
			return err
		}
		var found []people.Binding
		for _, p := range all {
			for _, b := range p.Addresses {
				if strings.EqualFold(p.ID, c.ID) && b.Address == addr && (c.OurNumber == "" || string(b.OurNumber) == c.OurNumber) {
					found = append(found, b)
				}
			}
		}
		switch len(found) {
		case 0:
			return people.ErrNotFound
		case 1:
			return s.Unbind(e.ctx, c.Account, c.ID, found[0])
		}
		return usage("The address is bound to %d numbers of ours: name one with --our-number.", len(found))
	})
}

// ourOf is the number of ours that was named, or the one that is configured on the address's channel.
func ourOf(e *env, s store, cfg config, account string, addr people.Address, named string) (our people.Address, err error) {
	if named == "" {
		our, err = numberOf(e, s, cfg, account, addr)
	} else {
		our, err = people.ParseAddress(named)
	}
	if err != nil {
		return "", err
	}
	if our.Channel() != addr.Channel() {
		return "", usage("The address and our number must be on one channel.")
	}
	return our, nil
}

// numberOf picks the number of ours that an account's people are asked from. An account with numbers of its own takes one of
// those: at TWILIO_FROM, which may be another's, its people would be strangers to it. TWILIO_FROM is the default account's
// as long as no other has it.
func numberOf(e *env, s store, cfg config, account string, addr people.Address) (people.Address, error) {
	all, err := s.Accounts(e.ctx)
	if err != nil {
		return "", err
	}
	usual, err := cfg.ourNumber(addr)
	var own []people.Address
	taken := false
	for _, a := range all {
		for _, n := range a.Numbers {
			if a.ID == account && n.Channel() == addr.Channel() {
				own = append(own, n)
			}
			taken = taken || a.ID != account && n == usual
		}
	}
	switch {
	case len(own) == 0, err == nil && (slices.Contains(own, usual) || account == people.DefaultAccount && !taken): // mutant: people.own-number
		return usual, err
	case len(own) > 1:
		return "", usage("Account %s has %d numbers on that channel: name one with --our-number.", account, len(own))
	}
	return own[0], nil
}

// alter runs a change of one person, says what it was, and warns where nobody is left who can approve as owner.
func (f adminFlags) alter(e *env, id, what, now string, fn func(store, config) error) error {
	return f.with(e, func(s store, cfg config) error {
		if err := fn(s, cfg); err != nil {
			return err
		}
		all, err := s.People(e.ctx, f.Account)
		if err != nil {
			return err
		}
		if !ownerLeft(all) {
			fmt.Fprintln(e.stderr, "bot: nobody is left who can be asked as an owner; see bot people list.")
		}
		if f.JSON {
			return e.printJSON(map[string]string{"id": id, what: now})
		}
		e.printf("%s %s: %s\n", id, what, now)
		return nil
	})
}

func ownerLeft(all []people.Person) bool {
	for _, p := range all {
		if p.Tier == gate.TierOwner && p.State == people.Active && len(p.Addresses) > 0 {
			return true
		}
	}
	return false
}
