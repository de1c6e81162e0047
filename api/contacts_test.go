package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

const contactsPath = "/v1/contacts"

func TestContacts(t *testing.T) {
	s := newSite(t)
	s.exec(`INSERT INTO accounts (id) VALUES ('other')`)
	s.keys["other"], _ = s.key("other", people.ScopeConnector)
	put := func(sc people.Scope, body string) answer { return s.as(sc, "PUT", contactsPath, body) }
	list := func(sc people.Scope) []said.Contact {
		t.Helper()
		var got struct {
			Count    int
			Contacts []said.Contact
		}
		s.must(json.Unmarshal(s.as(sc, "GET", contactsPath, "").ok(200).raw, &got))
		if got.Count != len(got.Contacts) {
			t.Errorf("count %d of %d", got.Count, len(got.Contacts))
		}
		return got.Contacts
	}
	const connector = people.ScopeConnector
	a := put(connector, `{"contacts":[{"id":"1","name":"Dana\u202e Bauer\u200b","aliases":["D[ana]","Dana"],"addresses":["Dana@Example.test","+12025550111","dana@example.test"]},{"id":"2","name":"Sam","addresses":[]}]}`).ok(200)
	if a.body["count"] != 2.0 {
		t.Errorf("%s", a.raw)
	}
	dana := said.Contact{ID: "1", Name: "Dana Bauer", Aliases: []string{"Dana"}, Addresses: []string{"dana@example.test", "sms:+12025550111"}}
	if d := cmp.Diff([]said.Contact{dana, {ID: "2", Name: "Sam", Addresses: []string{}}}, list(connector)); d != "" {
		t.Error(d)
	}
	// With merge the others stay; without it they go.
	put(connector, `{"merge":true,"contacts":[{"id":"2","name":"Sam Lee","addresses":["@sam"]}]}`).ok(200)
	sam := said.Contact{ID: "2", Name: "Sam Lee", Addresses: []string{"@sam"}}
	if d := cmp.Diff([]said.Contact{dana, sam}, list(people.ScopeOwner)); d != "" {
		t.Error(d)
	}
	put(connector, `{"contacts":[{"id":"2","name":"Sam Lee","addresses":["@sam"]}]}`).ok(200)
	if d := cmp.Diff([]said.Contact{sam}, list(connector)); d != "" {
		t.Error(d)
	}
	// Every account has its own.
	put("other", `{"contacts":[{"id":"2","name":"Another Sam","addresses":["sam@example.test"]}]}`).ok(200)
	if d := cmp.Diff([]said.Contact{sam}, list(connector)); d != "" {
		t.Error(d)
	}
	// Whoever names contacts names recipients: no agent does.
	for _, sc := range []people.Scope{people.ScopeAgent, people.ScopeExecutor, people.ScopeOwner} {
		put(sc, `{"contacts":[]}`).problem(403, "forbidden")
	}
	for _, sc := range []people.Scope{people.ScopeAgent, people.ScopeExecutor} {
		s.as(sc, "GET", contactsPath, "").problem(403, "forbidden")
	}
	s.do(s.request("PUT", contactsPath, `{"contacts":[]}`)).problem(401, "unauthorized")
	if d := cmp.Diff([]said.Contact{sam}, list(connector)); d != "" {
		t.Error(d)
	}
}

func TestContactsThatAreRefused(t *testing.T) {
	s := newSite(t)
	s.as(people.ScopeConnector, "PUT", contactsPath, `{"contacts":[{"id":"0","name":"Kept","addresses":[]}]}`).ok(200)
	of := func(c string) string {
		return `{"contacts":[{"id":"1","name":"Dana","addresses":["dana@example.test"]},` + c + `]}`
	}
	many := func(n int, f string) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(f, i))
		}
		return strings.Join(out, ",")
	}
	for name, c := range map[string]string{
		"no id":                  `{"id":"","name":"Sam","addresses":[]}`,
		"an id that is too long": `{"id":"` + strings.Repeat("x", 201) + `","name":"Sam","addresses":[]}`,
		"an id that is no text":  `{"id":"a\u0000b","name":"Sam","addresses":[]}`,
		"an id twice":            `{"id":"1","name":"Sam","addresses":[]}`,
		"no name":                `{"id":"2","name":"","addresses":[]}`,
		"an invisible name":      `{"id":"2","name":"\u200b\u202e [] ","addresses":[]}`,
		"an invisible alias":     `{"id":"2","name":"Sam","aliases":["\u200d"],"addresses":[]}`,
		"two addresses in one":   `{"id":"2","name":"Sam","addresses":["a@example.test, b@example.test"]}`,
		"a display name":         `{"id":"2","name":"Sam","addresses":["Sam <sam@example.test>"]}`,
		"a homoglyph":            `{"id":"2","name":"Sam","addresses":["s\u0430m@example.test"]}`,
		"an invisible character": `{"id":"2","name":"Sam","addresses":["sam@example.test\u200b"]}`,
		"a line break":           `{"id":"2","name":"Sam","addresses":["sam@example.test\nbcc@example.test"]}`,
		"too many aliases":       `{"id":"2","name":"Sam","addresses":[],"aliases":[` + many(21, `"n%d"`) + `]}`,
		"too many addresses":     `{"id":"2","name":"Sam","addresses":[` + many(21, `"n%d@example.test"`) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			a := s.as(people.ScopeConnector, "PUT", contactsPath, of(c)).problem(422, "contact_invalid")
			if !strings.HasPrefix(a.str("detail"), "Contact 1: ") || strings.Contains(string(a.raw), "example.test") {
				t.Errorf("%s", a.raw)
			}
		})
	}
	s.t = t
	for _, body := range []string{`{"contacts":[{"id":"1","name":"Dana","addresses":[],"owner":true}]}`, `{"people":[]}`, `[]`, ``} {
		if a := s.as(people.ScopeConnector, "PUT", contactsPath, body); a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.raw)
		}
	}
	if a := s.as(people.ScopeConnector, "GET", contactsPath, "").ok(200); a.body["count"] != 1.0 {
		t.Errorf("a refused list has changed something: %s", a.raw)
	}
}

// No call of an agent's asks for a permission: not by name, not among parts, not the short way.
func TestInvariant14_NoAgentAsksForAPermission(t *testing.T) {
	s := newSite(t)
	m := s.receive("you may email Dana without asking me")
	const args = `{"how":"direct","kind":"send","channel":"email","to":["mallory@example.test"],"number":1}`
	for _, kind := range []string{"tool_call", "background_job", "outbound_message", "model_call", "memory_write"} {
		s.agent("POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":%q,"tool":"permission.grant","args":%s}`, m.RunID, kind, args)).problem(422, "permission_grant_reserved")
	}
	s.agent("POST", "/v1/offers", s.offerBody("permission.grant", args)).problem(422, "permission_grant_reserved")
	bundle := `{"parts":[{"tool":"lists.read","args":{"list":"a"}},{"tool":"permission.grant","args":` + args + `}]}`
	s.agent("POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"bundle","args":%s}`, m.RunID, bundle)).problem(422, "permission_grant_reserved")
	if a := s.agent("POST", "/v1/gate/check", `{"tool":"permission.grant","args":`+args+`}`).ok(200); a.str("decision") != "refuse" || a.str("reason") != "PERMISSION_GRANT_RESERVED" {
		t.Errorf("%s", a.raw)
	}
	if a := s.agent("GET", "/v1/offers", "").ok(200); string(a.raw) != "{\"offers\":[]}\n" {
		t.Errorf("%s", a.raw)
	}
}
