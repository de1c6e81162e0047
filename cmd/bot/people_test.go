package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/offers"
)

// TestPeopleCommands is the owner's whole way with a stranger who becomes a person, on one database.
func TestPeopleCommands(t *testing.T) {
	db := environ(t, "TWILIO_FROM=+12025550100")
	s, err := openStore(t.Context(), strings.TrimPrefix(db[0], "COUNTERSIGN_DATABASE_URL="), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test's database
	text := func(id, words string) offers.Received {
		t.Helper()
		r, err := s.Receive(t.Context(), offers.Inbound{Provider: "twilio", ProviderID: id, Address: "sms:+12025550109", OurNumber: "sms:+12025550100",
			Text: words, Raw: []byte(words), Name: "Dana"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	kept := text("SM1", "it is me, Dana")
	prompt, err := s.ReservePrompt(t.Context())
	if err != nil || prompt == nil {
		t.Fatalf("%v, %v", prompt, err)
	}
	var person struct{ ID, Address, Tier string }
	spaced := strings.ToLower(prompt.Code[:4]) + " " + prompt.Code[4:] + "."
	for _, c := range []struct {
		name string
		args []string
		code int
		out  string
		errs string
		into any
	}{
		{name: "pending", args: []string{"people", "pending"}, out: "it is me, Dana"},
		{name: "pending as JSON", args: []string{"people", "pending", "--json"}, out: `"code":"waiting"`},
		{name: "too early to promote", args: []string{"people", "promote", kept.MessageID}, code: exitNo, errs: "not paired"},
		{name: "a wrong code", args: []string{"people", "approve", "AAAA-BBBB", "--as", "owner", "--name", "Dana"}, code: exitNo, errs: "no such code"},
		{name: "no code at all", args: []string{"people", "approve", "AAAA-BBB0", "--as", "owner", "--name", "Dana"}, code: exitUsage, errs: "never 0, O, 1 or I"},
		{name: "no tier", args: []string{"people", "approve", prompt.Code, "--as", "admin", "--name", "Dana"}, code: exitUsage, errs: "--as"},
		{name: "no name", args: []string{"people", "approve", prompt.Code, "--as", "owner", "--name", "\u200b"}, code: exitUsage, errs: "--name"},
		{name: "the code", args: append(append([]string{"people", "approve"}, strings.Fields(spaced)...), "--as", "owner", "--name", "Dana", "--json"), out: `"address":"sms:+12025550109"`, into: &person},
		{name: "again", args: []string{"people", "approve", prompt.Code, "--as", "owner", "--name", "Dana"}, code: exitNo, errs: "no such code"},
		{name: "promote", args: []string{"people", "promote", kept.MessageID, "--json"}, out: "person_id"},
	} {
		code, out, errs := bot(t, db, "", c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
			t.Errorf("%s: code %d, wanted %d\n%s%s", c.name, code, c.code, out, errs)
		}
		if strings.Contains(out, prompt.Code) || strings.Contains(errs, prompt.Code) {
			t.Errorf("%s: the code is told", c.name)
		}
		if c.into != nil {
			if err := json.Unmarshal([]byte(out), c.into); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		args []string
		errs string // a warning, where nobody is left
		list string
	}{
		{[]string{"people", "tier", person.ID, "paired"}, "nobody is left", "paired"},
		{[]string{"people", "tier", person.ID, "owner"}, "", "owner"},
		{[]string{"people", "suspend", person.ID}, "nobody is left", "suspended"},
		{[]string{"people", "activate", person.ID}, "", "active"},
		{[]string{"people", "bind", person.ID, "--address", "sms:+12025550108"}, "", "sms:+12025550108"},
		{[]string{"people", "unbind", person.ID, "--address", "sms:+12025550109"}, "", "sms:+12025550109 unbound"},
		{[]string{"people", "unbind", person.ID, "--address", "sms:+12025550108"}, "nobody is left", "sms:+12025550108 unbound"},
	} {
		code, out, errs := bot(t, db, "", c.args...)
		if code != exitOK || (errs == "") != (c.errs == "") || !strings.Contains(errs, c.errs) {
			t.Errorf("bot %v: %d %s%s", c.args, code, out, errs)
		}
		if _, list, _ := bot(t, db, "", "people", "list"); !strings.Contains(list, c.list) || !strings.Contains(list, person.ID) {
			t.Errorf("after %v the list says\n%s", c.args, list)
		}
	}
}

func TestAccountsCommands(t *testing.T) {
	db := environ(t)
	for _, c := range []struct {
		args []string
		code int
		out  string
		errs string
	}{
		{[]string{"accounts", "add", "harbour", "--number", "sms:+12025550199", "--json"}, exitOK, `{"id":"harbour"}`, ""},
		{[]string{"accounts", "add", "harbour"}, exitNo, "", "there is an account"},
		{[]string{"accounts", "add", "Harbour"}, exitUsage, "", "small letters"},
		{[]string{"accounts", "add", "--json"}, exitOK, `{"id":"`, ""},
		{[]string{"accounts", "set", "harbour", "--asking-is-approving", "on"}, exitOK, "harbour", ""},
		{[]string{"accounts", "set", "harbour"}, exitUsage, "", "what to change"},
		{[]string{"accounts", "set", "harbour", "--number", "12025550199"}, exitUsage, "", "not an address"},
		{[]string{"accounts", "set", "nowhere", "--asking-is-approving", "off"}, exitUsage, "", "no such account"},
		{[]string{"accounts", "list", "--json"}, exitOK, `"numbers":["sms:+12025550199"]`, ""},
		{[]string{"accounts", "list"}, exitOK, "harbour", ""},
		{[]string{"people", "add", "--account", "harbour", "--name", "Kim", "--address", "sim:kim", "--as", "owner"}, exitOK, "added", ""},
	} {
		code, out, errs := bot(t, db, "", c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
			t.Errorf("bot %v: %d\n%s%s", c.args, code, out, errs)
		}
	}
}

func TestEveryRunsAStepOnceInThatTime(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	n := 0
	step := every(idleEvery, func() time.Time { return at }, func(context.Context) (int, error) { n++; return n, nil })
	for _, later := range []time.Duration{0, 0, idleEvery - 1, 1} {
		at = at.Add(later)
		if _, err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("run %d times", n)
	}
}

// TestAccountsOwnNumber: people are asked from a number of their own account where it has one, since TWILIO_FROM may be
// another account's.
func TestAccountsOwnNumber(t *testing.T) {
	vars := environ(t, "TWILIO_FROM=+12025550100")
	do := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := bot(t, vars, "", args...)
		if code != want {
			t.Fatalf("%q: %d %s", args, code, errs)
		}
		return out + errs
	}
	add := func(want int, account, address string) string {
		t.Helper()
		return do(want, "people", "add", "--account", account, "--name", "Kim", "--address", address, "--as", "owner")
	}
	do(exitOK, "accounts", "add", "harbour", "--number", "sms:+12025550199")
	add(exitOK, "default", "sms:+12025550102")
	add(exitOK, "harbour", "sms:+12025550103")
	add(exitOK, "harbour", "sim:kim")
	for account, want := range map[string][]string{"default": {"sms:+12025550100"}, "harbour": {"sms:+12025550199", "sim:countersign"}} {
		out := do(exitOK, "people", "list", "--account", account, "--json")
		if strings.Count(out, `"our_number"`) != len(want) {
			t.Errorf("%s: %s", account, out)
		}
		for _, w := range want {
			if !strings.Contains(out, `"our_number":"`+w+`"`) {
				t.Errorf("%s: %s, want %s", account, out, w)
			}
		}
	}
	do(exitOK, "accounts", "set", "harbour", "--number", "sms:+12025550198")
	if out := add(exitUsage, "harbour", "sms:+12025550104"); !strings.Contains(out, "--our-number") {
		t.Error(out)
	}
	do(exitOK, "accounts", "set", "default", "--number", "sms:+12025550197")
	add(exitOK, "default", "sms:+12025550105")
	if out := do(exitOK, "people", "list", "--json"); strings.Contains(out, "+12025550197") {
		t.Errorf("not TWILIO_FROM, which nobody else has: %s", out)
	}
	do(exitOK, "accounts", "set", "harbour", "--number", "sms:+12025550100")
	add(exitOK, "harbour", "sms:+12025550104") // TWILIO_FROM is one of its numbers
}
