package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// TestEveryCallWithAnotherAccountsIDs makes every call that the description names with a key of one account and the ids of
// another. A call that is new has no case here, and the test says so.
func TestEveryCallWithAnotherAccountsIDs(t *testing.T) {
	s := newSite(t)
	const words = "secretmarker"
	asked := s.agent("POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":{"to":["dana@example.test"],"subject":%q,"body":"x"}}`, s.owner.ID, words)).ok(201)
	s.sendAll()
	said := s.unresolved(words+" yes", nearlyYes())
	approved := s.agent("POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","present":"now","args":{"to":["dana@example.test"],"subject":%q,"body":"y"}}`, s.owner.ID, words)).ok(201)
	s.sendAll()
	s.as(people.ScopeConnector, "PUT", "/v1/contacts", `{"contacts":[{"id":"c1","name":"Secretmarker","addresses":["dana@example.test"]}]}`).ok(200)
	s.agent("GET", "/v1/events?limit=1000", "").ok(200)

	s.must(s.store.AddAccount(t.Context(), "other"))
	mine := map[people.Scope]string{}
	for _, sc := range scopes {
		mine[sc], _ = s.key("other", sc)
	}
	mate := s.person("other", gate.TierOwner)
	message, err := s.store.Receive(t.Context(), offers.Inbound{Provider: "twilio", ProviderID: "SMother", Address: mate.Addresses[0].Address, OurNumber: mate.Addresses[0].OurNumber, Text: "yes", Raw: []byte("yes")})
	s.must(err)

	type try struct {
		path, body string
		status     int
	}
	id, op, otherOp := asked.str("id"), asked.str("operation_id"), approved.str("operation_id")
	hash := fmt.Sprintf(`{"args_sha256":%q}`, asked.str("args_sha256"))
	args := fmt.Sprintf(`{"to":["dana@example.test"],"subject":%q,"body":"x"}`, words)
	cases := map[string][]try{
		"POST /v1/runs": {
			{"/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, said.MessageID), 404},
			{"/v1/runs", fmt.Sprintf(`{"cause":{"parent_run_id":%q}}`, said.RunID), 404},
			{"/v1/runs", fmt.Sprintf(`{"cause":{"schedule":{"person_id":%q,"name":"nightly"}}}`, s.owner.ID), 404},
		},
		"POST /v1/runs/{id}/taint": {{"/v1/runs/" + said.RunID + "/taint", `{"source":"mail"}`, 404}},
		"POST /v1/operations": {
			{"/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"email.send","args":%s}`, said.RunID, args), 404},
			{"/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"email.send","args":%s,"supersedes":%q}`, message.RunID, args, id), 404},
		},
		"POST /v1/offers": {
			{"/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s}`, s.owner.ID, mailArgs), 404},
			{"/v1/offers", fmt.Sprintf(`{"address":%q,"tool":"email.send","args":%s}`, string(s.owner.Addresses[0].Address), mailArgs), 404},
			{"/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s,"supersedes":%q}`, mate.ID, mailArgs, id), 404},
		},
		"GET /v1/offers":                 {{"/v1/offers", "", 200}, {"/v1/offers?person_id=" + s.owner.ID, "", 200}},
		"GET /v1/offers/{id}":            {{"/v1/offers/" + id, "", 404}},
		"DELETE /v1/offers/{id}":         {{"/v1/offers/" + id, "", 404}},
		"POST /v1/offers/{id}/confirm":   {{"/v1/offers/" + id + "/confirm", confirmBody(said, words+" yes", args), 404}, {"/v1/offers/" + id + "/confirm", confirmBody(message, "yes", args), 404}},
		"GET /v1/operations/{id}":        {{"/v1/operations/" + op, "", 404}, {"/v1/operations/" + otherOp + "?wait=1ms", "", 404}},
		"POST /v1/operations/{id}/begin": {{"/v1/operations/" + op + "/begin", hash, 404}, {"/v1/operations/" + otherOp + "/begin", hash, 404}},
		"POST /v1/operations/{id}/result": {
			{"/v1/operations/" + op + "/result", `{"status":"succeeded"}`, 404},
		},
		"POST /v1/gate/check": {{"/v1/gate/check", fmt.Sprintf(`{"tool":"email.send","args":%s,"person_id":%q}`, mailArgs, s.owner.ID), 404}},
		"GET /v1/events":      {{"/v1/events", "", 200}},
		"GET /v1/contacts":    {{"/v1/contacts", "", 200}},
		"PUT /v1/contacts":    {{"/v1/contacts", `{"contacts":[]}`, 200}},
		// They name nothing of an account.
		"GET /v1/tools": {{"/v1/tools", "", 200}},
	}
	before := []string{state(s, id), state(s, approved.str("id")), string(s.as(people.ScopeConnector, "GET", "/v1/contacts", "").raw)}
	news := string(s.agent("GET", "/v1/events?limit=1000", "").ok(200).raw)
	doc := s.do(s.request("GET", "/openapi.json", "")).ok(200)
	paths, _ := doc.body["paths"].(map[string]any)
	seen := map[string]bool{}
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method := range methods {
			call := strings.ToUpper(method) + " " + path
			seen[call] = true
			if len(cases[call]) == 0 {
				t.Errorf("%s has no case: write down what it answers to another account's ids", call)
			}
		}
	}
	for call, tries := range cases {
		if !seen[call] {
			t.Errorf("there is no call %s any more", call)
			continue
		}
		t.Run(call, func(t *testing.T) {
			method, _, _ := strings.Cut(call, " ")
			for _, x := range tries {
				allowed := 0
				for _, sc := range scopes {
					req := s.request(method, x.path, x.body)
					req.Header.Set("Authorization", "Bearer "+mine[sc])
					req.Header.Set("Idempotency-Key", fmt.Sprint("other-", s.n.Add(1)))
					a := s.do(req)
					if low := strings.ToLower(string(a.raw)); strings.Contains(low, words) || strings.Contains(low, "dana@") || strings.Contains(low, string(s.owner.Addresses[0].Address)) {
						t.Errorf("%s %s tells another account's words: %s", sc, x.path, a.raw)
					}
					if a.status == http.StatusForbidden {
						continue // not for keys of this scope
					}
					allowed++
					if a.status != x.status {
						t.Errorf("%s %s %s: %d %s, want %d", sc, x.path, x.body, a.status, a.raw, x.status)
					}
				}
				if allowed == 0 {
					t.Errorf("no key may call %s", x.path)
				}
			}
		})
	}
	after := []string{state(s, id), state(s, approved.str("id")), string(s.as(people.ScopeConnector, "GET", "/v1/contacts", "").raw)}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("another account's calls changed\n%s\nto\n%s", before[i], after[i])
		}
	}
	if got := string(s.agent("GET", "/v1/events?limit=1000", "").ok(200).raw); got != news {
		t.Errorf("another account's calls made events:\n%s", got)
	}
}

// state is an offer with its operation.
func state(s *site, offerID string) string {
	s.t.Helper()
	o := s.agent("GET", "/v1/offers/"+offerID, "").ok(200)
	return string(o.raw) + string(s.agent("GET", "/v1/operations/"+o.str("operation_id"), "").ok(200).raw)
}
