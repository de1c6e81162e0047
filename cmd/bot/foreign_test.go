package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// noAccount are the commands that name no account: they touch no database, or all of it.
var noAccount = []string{
	"demo", "serve", "migrate up", "migrate status", "accounts add", "accounts list", "accounts set", "classify", "golive", "train", "version",
	"said unquote", "said eval",
}

// TestEveryCommandWithAnotherAccountsIDs runs every command that there is in one account with the ids of another. A command
// that is new has no case here, and the test says so.
func TestEveryCommandWithAnotherAccountsIDs(t *testing.T) {
	db := environ(t, "TWILIO_FROM=+12025550100")
	s, err := openStore(t.Context(), strings.TrimPrefix(db[0], "COUNTERSIGN_DATABASE_URL="), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test's database
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const theirs, their = "sms:+12025550177", "sms:+12025550100"
	person := people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Secretmarker", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: theirs, OurNumber: their}}}
	must(s.AddPerson(t.Context(), person))
	_, hash := people.NewSecret()
	key := people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "secretmarker", Scope: people.ScopeAgent}
	must(s.AddKey(t.Context(), key, hash))
	for _, from := range []people.Address{"sms:+12025550178", theirs} {
		_, err := s.Receive(t.Context(), offers.Inbound{Provider: "twilio", ProviderID: "SM" + string(from), Address: from, OurNumber: their, Text: "secretmarker", Raw: []byte("secretmarker")})
		must(err)
	}
	prompt, err := s.ReservePrompt(t.Context())
	must(err)
	strangers, _, err := s.Strangers(t.Context(), people.DefaultAccount)
	must(err)
	pending := strangers[0].Texts[0].MessageID
	code, out, errs := bot(t, db, "", "endpoints", "add", "--url", "https://secretmarker.example.com/x", "--json")
	if code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	_, endpoint, _ := strings.Cut(out, `"id":"`)
	endpoint, _, _ = strings.Cut(endpoint, `"`)
	if code, _, errs := bot(t, db, "", "accounts", "add", "other"); code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}

	cases := map[string]struct {
		args []string
		code int
	}{
		"keys create":          {[]string{"--name", "mine", "--scope", "agent"}, exitOK},
		"keys list":            {nil, exitOK},
		"keys revoke":          {[]string{key.ID}, exitNo},
		"people add":           {[]string{"--name", "Kim", "--address", theirs, "--as", "owner"}, exitNo},
		"people list":          {nil, exitOK},
		"people pending":       {nil, exitOK},
		"people approve":       {[]string{prompt.Code, "--as", "owner", "--name", "Kim"}, exitNo},
		"people promote":       {[]string{pending}, exitNo},
		"people tier":          {[]string{person.ID, "paired"}, exitNo},
		"people suspend":       {[]string{person.ID}, exitNo},
		"people activate":      {[]string{person.ID}, exitNo},
		"people bind":          {[]string{person.ID, "--address", "sms:+12025550179"}, exitNo},
		"people unbind":        {[]string{person.ID, "--address", theirs}, exitNo},
		"people direct add":    {[]string{"--person", person.ID, "--address", "dana@example.com"}, exitNo},
		"people direct list":   {nil, exitOK},
		"people direct remove": {[]string{"--person", person.ID, "--address", "dana@example.com"}, exitNo},
		"own add":              {[]string{"--address", "me@example.com"}, exitOK},
		"own list":             {nil, exitOK},
		"own remove":           {[]string{"--address", "nobody@example.com"}, exitNo},
		"offers list":          {[]string{"--person", person.ID}, exitOK},
		"endpoints add":        {[]string{"--url", "https://mine.example.com/x"}, exitOK},
		"endpoints list":       {nil, exitOK},
		"endpoints dead":       {nil, exitOK},
		"endpoints retry":      {[]string{endpoint}, exitNo},
		"endpoints enable":     {[]string{endpoint}, exitNo},
		"endpoints remove":     {[]string{endpoint}, exitNo},
		"said list":            {nil, exitOK},
		"said revoke":          {[]string{offers.NewID()}, exitNo},
		"said grant":           {[]string{"--person", person.ID, "--to", "dana@example.com"}, exitNo},
		"calibrate":            {[]string{"--from-store"}, exitOK},
	}
	was := everything(t, db)
	for _, words := range commands(t) {
		name := strings.Join(words, " ")
		c, known := cases[name]
		switch {
		case slices.Contains(noAccount, name):
			continue
		case !known:
			t.Errorf("bot %s has no case: write down what it answers to another account's ids", name)
			continue
		}
		for _, json := range []bool{false, true} {
			args := slices.Concat(words, c.args, []string{"--account", "other"})
			if json {
				args = append(args, "--json")
			}
			code, out, errs := bot(t, db, "", args...)
			if code != c.code {
				t.Errorf("bot %s: code %d, want %d\n%s%s", strings.Join(args, " "), code, c.code, out, errs)
			}
			if low := strings.ToLower(out + errs); strings.Contains(low, "secretmarker") || strings.Contains(low, "12025550178") {
				t.Errorf("bot %s tells another account's words:\n%s%s", strings.Join(args, " "), out, errs)
			}
		}
	}
	if now := everything(t, db); now != was {
		t.Errorf("another account's commands changed\n%s\nto\n%s", was, now)
	}
}

// everything is what the default account's lists say.
func everything(t *testing.T, db []string) string {
	t.Helper()
	var b strings.Builder
	for _, words := range []string{"keys list", "people list", "people pending", "offers list", "endpoints list"} {
		code, out, errs := bot(t, db, "", append(strings.Fields(words), "--json")...)
		if code != exitOK {
			t.Fatalf("%s: %d %s", words, code, errs)
		}
		b.WriteString(out)
	}
	return b.String()
}
