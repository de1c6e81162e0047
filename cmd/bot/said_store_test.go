package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// saidWorld is a database with an owner in it.
func saidWorld(t *testing.T) (environ []string, ownerID string) {
	t.Helper()
	environ = []string{"COUNTERSIGN_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "said.db")}
	var made struct{ ID string }
	saidJSON(t, environ, &made, "people", "add", "--name", "Alex", "--address", "sim:alex", "--as", "owner", "--json")
	return environ, made.ID
}

func saidJSON(t *testing.T, environ []string, into any, args ...string) {
	t.Helper()
	code, out, errs := bot(t, environ, "", args...)
	if code != exitOK {
		t.Fatalf("bot %s: %d %s", strings.Join(args, " "), code, errs)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func saidFails(t *testing.T, environ []string, want int, args ...string) {
	t.Helper()
	if code, out, errs := bot(t, environ, "", args...); code != want || errs == "" {
		t.Errorf("bot %s: %d %s %s, want %d", strings.Join(args, " "), code, out, errs, want)
	}
}

type saidIntent struct {
	ID, PersonID, How, Kind string
	Number, MaxCalls        int
	Revoked                 bool
	Recipients              []struct{ Addresses []string }
}

func saidIntents(t *testing.T, environ []string, more ...string) []saidIntent {
	t.Helper()
	var list struct {
		Intents []saidIntent
	}
	saidJSON(t, environ, &list, append([]string{"said", "list", "--json"}, more...)...)
	return list.Intents
}

func TestSaidGrantListRevoke(t *testing.T) {
	environ, owner := saidWorld(t)
	if list := saidIntents(t, environ); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	var pay struct {
		ID, How string
		Number  int
	}
	saidJSON(t, environ, &pay, "said", "grant", "--person", owner, "--kind", "pay", "--to", "bakery@example.com", "--amount-max", "200", "--currency", "eur", "--count", "2", "--until", "2099-12-31", "--json")
	if pay.How != "standing" || pay.Number != 1 {
		t.Errorf("%+v", pay)
	}
	list := saidIntents(t, environ, "--live", "--person", owner)
	if len(list) != 1 || list[0].ID != pay.ID || list[0].Kind != "pay" || list[0].Revoked || list[0].Recipients[0].Addresses[0] != "bakery@example.com" {
		t.Fatalf("%+v", list)
	}
	code, out, _ := bot(t, environ, "", "said", "list")
	if code != exitOK || !strings.Contains(out, "pay bakery@example.com, at most 200 EUR each time") || !strings.Contains(out, "0 of 2") || !strings.Contains(out, "live") {
		t.Errorf("%d %s", code, out)
	}
	var ended struct{ ID, State string }
	saidJSON(t, environ, &ended, "said", "revoke", pay.ID, "--json")
	if ended.ID != pay.ID || ended.State != "revoked" {
		t.Errorf("%+v", ended)
	}
	if list := saidIntents(t, environ); len(list) != 1 || !list[0].Revoked {
		t.Errorf("%+v", list)
	}
	if list := saidIntents(t, environ, "--live"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	const nobody = "01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"
	saidFails(t, environ, exitNo, "said", "revoke", nobody)
	saidFails(t, environ, exitNo, "said", "grant", "--person", nobody, "--to", "dana@example.com")
	saidFails(t, environ, exitUsage, "said", "grant", "--person", owner, "--kind", "pay", "--to", "bakery@example.com")
	saidFails(t, environ, exitUsage, "said", "grant", "--person", owner, "--to", "Dana <dana@example.com>")
	saidFails(t, environ, exitUsage, "said", "grant", "--person", owner, "--to", "dana@example.com", "--until", "Friday")
	saidFails(t, environ, exitUsage, "said", "grant", "--person", owner, "--to", "dana@example.com", "--count", "-1")
	saidFails(t, environ, exitUsage, "said", "grant", "--person", owner, "--kind", "delete", "--to", "dana@example.com")
}

func TestDirectSendList(t *testing.T) {
	environ, owner := saidWorld(t)
	var d direct
	saidJSON(t, environ, &d, "people", "direct", "add", "--person", owner, "--address", "Dana@Example.com", "--json")
	if d.Address != "dana@example.com" || d.PersonID != owner || d.Number != 1 || d.Until != nil {
		t.Errorf("%+v", d)
	}
	saidJSON(t, environ, &d, "people", "direct", "add", "--person", owner, "--address", "dana@example.com", "--json") // it is there
	var list struct{ Direct []direct }
	saidJSON(t, environ, &list, "people", "direct", "list", "--json")
	if len(list.Direct) != 1 || list.Direct[0].ID != d.ID {
		t.Fatalf("%+v", list)
	}
	saidFails(t, environ, exitNo, "people", "direct", "remove", "--person", owner, "--address", "sam@example.com")
	saidFails(t, environ, exitUsage, "people", "direct", "add", "--person", owner, "--address", "a@example.com,b@example.com")
	if code, _, errs := bot(t, environ, "", "people", "direct", "remove", "--person", owner, "--address", "dana@example.com"); code != exitOK {
		t.Fatal(errs)
	}
	saidJSON(t, environ, &list, "people", "direct", "list", "--json")
	if len(list.Direct) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestOwnAddresses(t *testing.T) {
	environ, _ := saidWorld(t)
	var added struct {
		Address string
		Added   bool
	}
	saidJSON(t, environ, &added, "own", "add", "--address", "Me@Example.com", "--json")
	if added.Address != "me@example.com" || !added.Added {
		t.Errorf("%+v", added)
	}
	saidJSON(t, environ, &added, "own", "add", "--address", "me@example.com", "--json")
	if added.Added {
		t.Errorf("%+v", added)
	}
	var list struct{ Addresses []string }
	saidJSON(t, environ, &list, "own", "list", "--json")
	if len(list.Addresses) != 1 || list.Addresses[0] != "me@example.com" {
		t.Errorf("%+v", list)
	}
	saidFails(t, environ, exitUsage, "own", "add", "--address", "me")
	saidFails(t, environ, exitUsage, "own", "add", "--address", "me@example.com", "--account", "nobody")
	saidJSON(t, environ, &struct{}{}, "own", "remove", "--address", "me@example.com", "--json")
	saidFails(t, environ, exitNo, "own", "remove", "--address", "me@example.com")
}

func TestStandingByText(t *testing.T) {
	environ, _ := saidWorld(t)
	by := func() string {
		t.Helper()
		var list struct {
			Accounts []struct {
				StandingByText string `json:"standing_by_text"`
			}
		}
		saidJSON(t, environ, &list, "accounts", "list", "--json")
		return list.Accounts[0].StandingByText
	}
	if got := by(); got != "ask" {
		t.Errorf("%q", got)
	}
	saidJSON(t, environ, &struct{}{}, "accounts", "set", "default", "--standing-by-text", "direct", "--json")
	if got := by(); got != "direct" {
		t.Errorf("%q", got)
	}
	saidFails(t, environ, exitUsage, "accounts", "set", "default", "--standing-by-text", "never")
}
