package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/sqlite"
)

const minRead = time.Second

// site is the agent's side over a real store, with a person and a key of every scope.
type site struct {
	t      *testing.T
	path   string
	store  *sqlite.Store
	url    string
	wake   *offers.Wake // the server's own; whoever decides beside it does not ring it
	keys   map[people.Scope]string
	ids    map[people.Scope]string
	owner  people.Person
	ahead  atomic.Int64
	n      atomic.Int64
	broken atomic.Bool // readyz
	deps   api.Deps
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, path: filepath.Join(t.TempDir(), "api.db"), wake: &offers.Wake{}, keys: map[people.Scope]string{}, ids: map[people.Scope]string{}}
	var err error
	s.store, err = sqlite.Open(t.Context(), s.path, sqlite.WithClock(func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }))
	s.must(err)
	t.Cleanup(func() { _ = s.store.Close() })
	_, err = s.store.Migrate(t.Context())
	s.must(err)
	policy, err := gate.Sample()
	s.must(err)
	service := offers.NewService(s.store, policy, func(string) int { return 1600 }, offers.WithPages("https://approve.example.test"))
	s.deps = api.Deps{
		Keys: s.store, Store: s.store, Proposer: service, Confirms: reply.NewConfirmer(s.store, minRead, s.wake), Wake: s.wake,
		Log: slog.New(slog.DiscardHandler), Version: "test", Ready: func(context.Context) error {
			if s.broken.Load() {
				return errors.New("down")
			}
			return nil
		},
	}
	srv := httptest.NewServer(api.New(s.deps))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	for _, sc := range scopes {
		s.keys[sc], s.ids[sc] = s.key(people.DefaultAccount, sc)
	}
	s.owner = s.person(people.DefaultAccount, gate.TierOwner)
	return s
}

var scopes = []people.Scope{people.ScopeAgent, people.ScopeConnector, people.ScopeExecutor, people.ScopeOwner}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) key(account string, sc people.Scope) (secret, id string) {
	s.t.Helper()
	secret, hash := people.NewSecret()
	k := people.Key{ID: offers.NewID(), AccountID: account, Name: string(sc), Scope: sc}
	s.must(s.store.AddKey(s.t.Context(), k, hash))
	return secret, k.ID
}

func (s *site) person(account, tier string) people.Person {
	s.t.Helper()
	p := people.Person{
		ID: offers.NewID(), AccountID: account, Name: "Alex", Tier: tier, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address(fmt.Sprintf("sms:+120255501%02d", s.n.Add(1)%100)), OurNumber: "sms:+12025550100"}},
	}
	s.must(s.store.AddPerson(s.t.Context(), p))
	return p
}

// exec changes the database behind the store's back.
func (s *site) exec(query string) {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path+"?_pragma=busy_timeout(5000)")
	s.must(err)
	defer db.Close() //nolint:errcheck // a test's connection
	_, err = db.ExecContext(s.t.Context(), query)
	s.must(err)
}

// answer is what came back.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	raw    []byte
	body   map[string]any
}

func (a answer) str(path ...string) string {
	a.t.Helper()
	var v any = a.body
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			a.t.Fatalf("no %v in %s", path, a.raw)
		}
		v = m[p]
	}
	out, _ := v.(string)
	return out
}

// do sends a request as it is.
func (s *site) do(req *http.Request) answer {
	s.t.Helper()
	res, err := http.DefaultClient.Do(req)
	s.must(err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	a := answer{t: s.t, status: res.StatusCode, header: res.Header}
	a.raw, err = io.ReadAll(res.Body)
	s.must(err)
	if strings.Contains(res.Header.Get("Content-Type"), "json") {
		s.must(json.Unmarshal(a.raw, &a.body))
	}
	return a
}

func (s *site) request(method, path, body string) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	s.must(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// as makes a call with the key of a scope and a new idempotency key.
func (s *site) as(sc people.Scope, method, path, body string) answer {
	s.t.Helper()
	return s.keyed(sc, fmt.Sprint("key-", s.n.Add(1)), method, path, body)
}

func (s *site) keyed(sc people.Scope, key, method, path, body string) answer {
	s.t.Helper()
	req := s.request(method, path, body)
	req.Header.Set("Authorization", "Bearer "+s.keys[sc])
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return s.do(req)
}

func (s *site) agent(method, path, body string) answer {
	s.t.Helper()
	return s.as(people.ScopeAgent, method, path, body)
}

// ok demands a status.
func (a answer) ok(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%d %s, want %d", a.status, a.raw, status)
	}
	return a
}

// problem demands a problem document with that status and code.
func (a answer) problem(status int, code string) answer {
	a.t.Helper()
	if a.status != status || a.str("code") != code {
		a.t.Fatalf("%d %s, want %d %s", a.status, a.raw, status, code)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		a.t.Errorf("Content-Type %q", ct)
	}
	for _, name := range []string{"type", "title", "detail"} {
		if a.str(name) == "" {
			a.t.Errorf("the problem has no %s: %s", name, a.raw)
		}
	}
	if n, _ := a.body["status"].(float64); int(n) != status {
		a.t.Errorf("the problem says status %v", a.body["status"])
	}
	return a
}

const mailArgs = `{"to":["dana@example.test"],"subject":"Lunch","body":"Friday?"}`

func (s *site) offerBody(tool, args string) string {
	return fmt.Sprintf(`{"person_id":%q,"tool":%q,"args":%s}`, s.owner.ID, tool, args)
}

// enqueue makes an offer to the owner and shows whatever is in line.
func (s *site) enqueue(extra string) answer {
	s.t.Helper()
	a := s.agent("POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s%s}`, s.owner.ID, mailArgs, extra)).ok(http.StatusCreated)
	s.sendAll()
	return a
}

func (s *site) sendAll() {
	s.t.Helper()
	for {
		text, err := s.store.Reserve(s.t.Context())
		s.must(err)
		if text == nil {
			return
		}
		s.must(s.store.Sent(s.t.Context(), text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: text.ID}))
	}
}

func (s *site) receive(text string) offers.Received {
	s.t.Helper()
	s.ahead.Add(int64(30 * minRead))
	r, err := s.store.Receive(s.t.Context(), offers.Inbound{
		Provider: "twilio", ProviderID: fmt.Sprintf("SM%032d", s.n.Add(1)), Address: s.owner.Addresses[0].Address, OurNumber: s.owner.Addresses[0].OurNumber,
		Text: text, Raw: []byte(text),
	})
	s.must(err)
	return r
}

// yes approves an offer by the person's reply.
func (s *site) yes(offerID string) {
	s.t.Helper()
	r := s.receive("yes")
	o, err := s.store.Offer(s.t.Context(), people.DefaultAccount, offerID)
	s.must(err)
	_, err = s.store.Consume(s.t.Context(), offers.ConsumeRequest{
		Offer: o, MessageID: r.MessageID, PersonID: r.PersonID, RunID: r.RunID, MinRead: minRead, Tiers: offers.TiersHolding(o.Capability),
		Closer:  offers.Closer{MessageID: r.MessageID, Reading: "confirm", P: 0.99},
		Reading: offers.ReadingRecord{Class: "confirm", P: map[string]float64{"confirm": 0.99}, Reader: "test"},
	})
	s.must(err)
}

// unresolved stores a reply that code left to the main model.
func (s *site) unresolved(text string, rec offers.ReadingRecord) offers.Received {
	s.t.Helper()
	r := s.receive(text)
	s.must(s.store.Pass(s.t.Context(), offers.PassRequest{
		MessageID: r.MessageID, PersonID: r.PersonID, Type: offers.ReplyUnresolved, Reading: rec,
		Data: offers.ReplyData{RunID: r.RunID, MessageID: r.MessageID, PersonID: r.PersonID, Text: text, Reading: rec.Class},
	}))
	return r
}

func nearlyYes() offers.ReadingRecord {
	return offers.ReadingRecord{Class: "unclear", P: map[string]float64{"unclear": 1}, RawP: 0.95, Guards: []string{"several-offers"}, Reader: "test"}
}

func confirmBody(r offers.Received, quote, args string) string {
	return fmt.Sprintf(`{"run_id":%q,"message_id":%q,"quote":%q,"args":%s}`, r.RunID, r.MessageID, quote, args)
}

func TestOfferFromEnqueueToResult(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	canonical, sum, _ := offers.Canonical([]byte(mailArgs))
	for name, want := range map[string]string{
		"decision": "ask", "reason": "FLOOR_SEND_OUTSIDE", "tool": "email.send", "state": "sending", "person_id": s.owner.ID,
		"args_sha256": offers.Hex(sum), "label": "send email to an email address",
	} {
		if got := a.str(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"id", "operation_id", "state", "args", "shown_text", "expires_at"} {
		if a.body[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{"shown_at", "closed_by"} {
		if v, ok := a.body[name]; !ok || v != nil {
			t.Errorf("%s is %v", name, v)
		}
	}
	id, op := a.str("id"), "/v1/operations/"+a.str("operation_id")
	if got := s.agent("GET", "/v1/offers/"+id, "").ok(200); got.str("state") != "open" || got.str("shown_at") == "" {
		t.Errorf("%s", got.raw)
	}
	list := s.agent("GET", "/v1/offers?person_id="+s.owner.ID+"&state=open", "").ok(200)
	if all, _ := list.body["offers"].([]any); len(all) != 1 {
		t.Errorf("%s", list.raw)
	}
	if none := s.agent("GET", "/v1/offers?state=declined", "").ok(200); string(bytes.TrimSpace(none.raw)) != `{"offers":[]}` {
		t.Errorf("%s", none.raw)
	}
	hash := fmt.Sprintf(`{"args_sha256":%q}`, offers.Hex(sum))
	s.agent("POST", op+"/begin", hash).problem(409, "not_approved")
	s.agent("POST", op+"/result", `{"status":"succeeded"}`).problem(409, "not_begun")
	s.yes(id)
	if got := s.agent("GET", op+"?wait=30s", "").ok(200); got.str("state") != "approved" || got.str("offer", "closed_by", "reading") != "confirm" {
		t.Errorf("%s", got.raw)
	}
	begun := s.as(people.ScopeExecutor, "POST", op+"/begin", hash).ok(200)
	if begun.str("operation", "state") != "running" || begun.str("operation", "begun_by") != s.ids[people.ScopeExecutor] {
		t.Errorf("%s", begun.raw)
	}
	if !bytes.Contains(begun.raw, []byte(`"args":`+string(canonical))) {
		t.Errorf("%s", begun.raw)
	}
	done := s.as(people.ScopeExecutor, "POST", op+"/result", `{"status":"succeeded","output":{"id":"<m1>","n":1.50}}`).ok(200)
	if done.str("state") != "succeeded" || !bytes.Contains(done.raw, []byte(`"output":{"id":"<m1>","n":1.50}`)) {
		t.Errorf("%s", done.raw)
	}
	s.agent("POST", op+"/result", `{"status":"succeeded","output":{"n":1.5,"id":"<m1>"}}`).ok(200) // the same again
	s.agent("POST", op+"/result", `{"status":"failed"}`).problem(409, "already_closed")
	texts, err := s.store.Texts(t.Context(), people.DefaultAccount, s.owner.ID)
	s.must(err)
	if last := texts[len(texts)-1]; last.Body != "Done: send email to an email address." {
		t.Errorf("the receipt is %q", last.Body)
	}
}

func TestOperations(t *testing.T) {
	s := newSite(t)
	run := s.receive("add milk to my tasks").RunID
	body := func(kind, tool, args string) string {
		return fmt.Sprintf(`{"run_id":%q,"kind":%q,"tool":%q,"args":%s}`, run, kind, tool, args)
	}
	a := s.agent("POST", "/v1/operations", body("tool_call", "tasks.add", `{"title":"Milk"}`)).ok(201)
	if a.str("decision") != "allow" || a.str("state") != "allowed" || a.str("reason") != "REVERSIBLE_OWN_DATA" || a.body["offer"] != nil || a.body["result"] != nil {
		t.Errorf("%s", a.raw)
	}
	s.agent("POST", "/v1/operations/"+a.str("id")+"/begin", `{"args":{ "title" : "\u004dilk" }}`).ok(200)
	a = s.agent("POST", "/v1/operations", body("tool_call", "email.send", mailArgs)).ok(201)
	if a.str("decision") != "ask" || a.str("state") != "asked" || a.str("offer", "id") == "" || a.str("offer", "operation_id") != a.str("id") {
		t.Errorf("%s", a.raw)
	}
	a = s.agent("POST", "/v1/operations", body("outbound_message", "message.send", `{"text":"On it."}`)).ok(201)
	if a.str("state") != "succeeded" || a.str("result", "output", "text_id") == "" {
		t.Errorf("%s", a.raw)
	}
	// Rule 1 is a problem from both calls, stored and repeated; any other refusal is an answer from here.
	s.agent("POST", "/v1/operations", body("tool_call", "email.send", `{"to":[]}`)).problem(422, "args_invalid")
	s.agent("POST", "/v1/operations", body("errand", "x", `{}`)).problem(400, "bad_request")
	child := s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"parent_run_id":%q}}`, run)).ok(201)
	a = s.agent("POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"email.send","args":%s}`, child.str("id"), mailArgs)).ok(201)
	if a.str("decision") != "refuse" || a.str("state") != "refused" || a.str("reason") != "NO_INTERACTIVE_PATH" || a.str("detail") == "" {
		t.Errorf("%s", a.raw)
	}
	s.agent("POST", "/v1/operations", `{"kind":"tool_call","tool":"x","args":{}}`).problem(400, "bad_request")
	s.agent("POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"x","args":{}}`, offers.NewID())).problem(404, "not_found")
	s.ahead.Add(int64(offers.RunTTL))
	s.agent("POST", "/v1/operations", body("tool_call", "tasks.add", `{"title":"Milk"}`)).problem(409, "run_expired")
}

func TestRuns(t *testing.T) {
	s := newSite(t)
	m := s.receive("hello")
	run := s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, m.MessageID)).ok(201)
	if run.str("id") != m.RunID || run.str("tier") != "owner" || run.body["interactive"] != true || run.body["tainted"] != false || run.str("cause", "message_id") != m.MessageID {
		t.Errorf("%s", run.raw)
	}
	again := s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, m.MessageID)).ok(201)
	if again.str("id") != m.RunID {
		t.Error("a message has two runs")
	}
	child := s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"parent_run_id":%q}}`, m.RunID)).ok(201)
	if child.body["interactive"] != false || child.str("tier") != "owner" {
		t.Errorf("%s", child.raw)
	}
	if got := s.agent("POST", "/v1/runs/"+child.str("id")+"/taint", `{"source":"a web page"}`).ok(200); got.body["tainted"] != true {
		t.Errorf("%s", got.raw)
	}
	if got := s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, m.MessageID)).ok(201); got.body["tainted"] != true {
		t.Errorf("taint stays with the root: %s", got.raw)
	}
	s.agent("POST", "/v1/runs/"+offers.NewID()+"/taint", `{"source":"x"}`).problem(404, "not_found")
	s.agent("POST", "/v1/runs/"+child.str("id")+"/taint", `{"source":""}`).problem(400, "bad_request")
	s.agent("POST", "/v1/runs/"+child.str("id")+"/taint", `{"source":"x","tainted":false}`).problem(400, "bad_request")
	for _, body := range []string{`{}`, `{"cause":{}}`, fmt.Sprintf(`{"cause":{"message_id":%q,"parent_run_id":%q}}`, m.MessageID, m.RunID), `{"cause":{"tier":"owner"}}`, `{"cause":{"message_id":"x"},"tier":"owner"}`} {
		s.agent("POST", "/v1/runs", body).problem(400, "bad_request")
	}
	s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, offers.NewID())).problem(404, "not_found")
	s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"schedule":{"person_id":%q,"name":"weekly"}}}`, s.owner.ID)).problem(404, "not_found")
}

func TestGateCheckAndTools(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ body, decision, reason string }{
		{`{"tool":"email.send","args":` + mailArgs + `}`, "ask", "FLOOR_SEND_OUTSIDE"},
		{`{"tool":"tasks.add","args":{"title":"Milk"}}`, "allow", "REVERSIBLE_OWN_DATA"},
		{`{"tool":"drone.launch","args":{}}`, "ask", "FLOOR_UNKNOWN_TOOL"},
		{`{"tool":"drone.launch","args":{"confirmed":true}}`, "refuse", "MODEL_CONFIRM_PARAMETER"},
		{`{"tool":"email.send","args":` + mailArgs + `,"interactive":false}`, "refuse", "NO_INTERACTIVE_PATH"},
		{`{"tool":"calendar.create","args":{"title":"x","start":"2030-05-03T12:30:00Z","end":"2030-05-03T13:30:00Z"},"tainted":true}`, "allow", "REVERSIBLE_OWN_DATA"},
		{`{"kind":"memory_write","tool":"memory.append","args":{"x":1},"person_id":"` + s.owner.ID + `"}`, "allow", "MEMORY_ALLOWED"},
	} {
		a := s.agent("POST", "/v1/gate/check", c.body).ok(200)
		if a.str("decision") != c.decision || a.str("reason") != c.reason || a.str("rule") == "" || a.str("tier") != "owner" || a.str("detail") == "" {
			t.Errorf("%s: %s", c.body, a.raw)
		}
	}
	if list, err := s.store.Offers(t.Context(), people.DefaultAccount, offers.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("a dry decision stored %v, %v", list, err)
	}
	s.agent("POST", "/v1/gate/check", `{"tool":"x","args":{},"person_id":"`+offers.NewID()+`"}`).problem(404, "not_found")
	for _, format := range []string{"", "openai", "mcp"} {
		a := s.agent("GET", "/v1/tools?format="+format, "").ok(200)
		tools, _ := a.body["tools"].([]any)
		if len(tools) < 20 {
			t.Errorf("%q: %d tools", format, len(tools))
		}
		for _, name := range []string{"confirm", "approved", "force", "bypass", "consent"} {
			if bytes.Contains(a.raw, []byte(`"`+name+`"`)) {
				t.Errorf("a schema has %q", name)
			}
		}
	}
}

func TestUnauthorized(t *testing.T) {
	s := newSite(t)
	revoked, id := s.key(people.DefaultAccount, people.ScopeAgent)
	s.must(s.store.RevokeKey(t.Context(), people.DefaultAccount, id))
	unknown, _ := people.NewSecret()
	for name, header := range map[string]string{
		"none": "", "empty": "Bearer ", "another scheme": "Basic " + s.keys[people.ScopeAgent], "bare": s.keys[people.ScopeAgent],
		"unknown": "Bearer " + unknown, "revoked": "Bearer " + revoked, "its hash": "Bearer csk_" + hex.EncodeToString(make([]byte, 32)),
		"more behind it": "Bearer " + s.keys[people.ScopeAgent] + "x", "two": "Bearer " + s.keys[people.ScopeAgent] + " " + s.keys[people.ScopeAgent],
	} {
		req := s.request("GET", "/v1/offers", "")
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		a := s.do(req)
		if a.problem(401, "unauthorized"); a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %v", name, a.header)
		}
		if bytes.Contains(a.raw, []byte("csk_")) && strings.Contains(header, "csk_") && bytes.Contains(a.raw, []byte(strings.TrimPrefix(header, "Bearer "))) {
			t.Errorf("%s: the key is repeated: %s", name, a.raw)
		}
	}
	// A key in the query is nobody's.
	s.do(s.request("GET", "/v1/offers?key="+s.keys[people.ScopeAgent], "")).problem(401, "unauthorized")
}

// TestScopes is the table of who may call what. Who may not is told so before anything is looked at.
func TestScopes(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	id, op := a.str("id"), a.str("operation_id")
	const agent, executor, owner, connector = people.ScopeAgent, people.ScopeExecutor, people.ScopeOwner, people.ScopeConnector
	for _, c := range []struct {
		method, path string
		may          []people.Scope
	}{
		{"POST", "/v1/runs", []people.Scope{agent, owner}},
		{"POST", "/v1/runs/" + offers.NewID() + "/taint", []people.Scope{agent, owner}},
		{"POST", "/v1/operations", []people.Scope{agent, owner}},
		{"POST", "/v1/offers", []people.Scope{agent, owner}},
		{"GET", "/v1/operations/" + op, []people.Scope{agent, owner, executor}},
		{"POST", "/v1/operations/" + op + "/begin", []people.Scope{agent, executor}},
		{"POST", "/v1/operations/" + op + "/result", []people.Scope{agent, executor}},
		{"GET", "/v1/offers", []people.Scope{agent, owner}},
		{"GET", "/v1/offers/" + id, []people.Scope{agent, owner}},
		{"POST", "/v1/offers/" + id + "/confirm", []people.Scope{agent}},
		{"POST", "/v1/gate/check", []people.Scope{agent, owner}},
		{"GET", "/v1/tools", []people.Scope{agent, owner}},
		{"GET", "/v1/events", []people.Scope{agent, owner}},
		{"DELETE", "/v1/offers/" + id, []people.Scope{agent, owner}},
		{"PUT", contactsPath, []people.Scope{connector}},
		{"GET", contactsPath, []people.Scope{connector, owner}},
	} {
		body := ""
		if c.method == "POST" {
			body = `{"nothing":1}`
		}
		for _, sc := range []people.Scope{connector, executor, owner, agent} {
			got := s.as(sc, c.method, c.path, body)
			if slices.Contains(c.may, sc) == (got.status == http.StatusForbidden) {
				t.Errorf("%s %s as %s: %d %s", c.method, c.path, sc, got.status, got.raw)
			}
			if got.status == http.StatusForbidden {
				got.problem(403, "forbidden")
			}
		}
	}
}

func TestNotFound(t *testing.T) {
	s := newSite(t)
	mine := s.enqueue("")
	m := s.receive("hello")
	s.exec(`INSERT INTO accounts (id) VALUES ('other')`)
	s.keys["other"], _ = s.key("other", people.ScopeAgent)
	stranger := s.person("other", gate.TierOwner)
	hash := `{"args_sha256":"` + mine.str("args_sha256") + `"}`
	check := func(sc people.Scope, id, op, person, run, message, address string) {
		t.Helper()
		s.as(sc, "GET", "/v1/offers/"+id, "").problem(404, "not_found")
		s.as(sc, "DELETE", "/v1/offers/"+id, "").problem(404, "not_found")
		s.as(sc, "GET", "/v1/operations/"+op, "").problem(404, "not_found")
		s.as(sc, "GET", "/v1/operations/"+op+"?wait=1s", "").problem(404, "not_found")
		s.as(sc, "POST", "/v1/operations/"+op+"/begin", hash).problem(404, "not_found")
		s.as(sc, "POST", "/v1/operations/"+op+"/result", `{"status":"succeeded"}`).problem(404, "not_found")
		s.as(sc, "POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s}`, person, mailArgs)).problem(404, "not_found")
		s.as(sc, "POST", "/v1/offers", fmt.Sprintf(`{"address":%q,"tool":"email.send","args":%s}`, address, mailArgs)).problem(404, "not_found")
		s.as(sc, "POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"email.send","args":%s}`, run, mailArgs)).problem(404, "not_found")
		s.as(sc, "POST", "/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, message)).problem(404, "not_found")
		s.as(sc, "POST", "/v1/runs", fmt.Sprintf(`{"cause":{"parent_run_id":%q}}`, run)).problem(404, "not_found")
		s.as(sc, "POST", "/v1/runs/"+run+"/taint", `{"source":"x"}`).problem(404, "not_found")
		s.as(sc, "POST", "/v1/offers/"+id+"/confirm", confirmBody(offers.Received{RunID: run, MessageID: message}, "yes", mailArgs)).problem(404, "not_found")
		s.as(sc, "POST", "/v1/gate/check", fmt.Sprintf(`{"tool":"x","args":{},"person_id":%q}`, person)).problem(404, "not_found")
	}
	for _, id := range []string{offers.NewID(), "x", "%00", "'%20OR%201=1"} {
		plain := strings.NewReplacer("%00", "", "%20", " ").Replace(id)
		if plain == "" {
			plain = "-"
		}
		check(people.ScopeAgent, id, id, plain, plain, plain, "sim:nobody")
	}
	check("other", mine.str("id"), mine.str("operation_id"), s.owner.ID, m.RunID, m.MessageID, string(s.owner.Addresses[0].Address))
	// A new offer cannot take the place of another account's, nor of another person's.
	s.as("other", "POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s,"supersedes":%q}`, stranger.ID, mailArgs, mine.str("id"))).problem(404, "not_found")
	another := s.person(people.DefaultAccount, gate.TierOwner)
	s.agent("POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s,"supersedes":%q}`, another.ID, mailArgs, mine.str("id"))).problem(404, "not_found")
	for _, path := range []string{"/v1/offers", "/v1/events"} {
		if got := s.as("other", "GET", path, "").ok(200); bytes.Contains(got.raw, []byte(mine.str("id"))) {
			t.Errorf("%s shows another account's offer", path)
		}
	}
	if got := s.agent("GET", "/v1/offers/"+mine.str("id"), "").ok(200); got.str("state") != "open" {
		t.Errorf("%s", got.raw)
	}
}

func TestPathsAndMethods(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nothing", "/v2/offers", "/v1/offers/x/y", "/webhooks/twilio/messages", "/webhooks/sim/messages", "/o/x", "/metrics", "/v1/offersx", "/admin"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			s.do(s.request(method, path, "")).problem(404, "not_found") // without a key: nobody is asked for one
		}
	}
	for path, allow := range map[string]string{
		"/v1/offers": "GET, HEAD, POST", "/v1/events": "GET, HEAD", "/v1/operations": "POST", "/v1/offers/x/confirm": "POST", "/v1/operations/x": "GET, HEAD",
	} {
		a := s.do(s.request("PUT", path, "{}"))
		if a.problem(405, "method_not_allowed"); a.header.Get("Allow") != allow {
			t.Errorf("%s: Allow %q, want %q", path, a.header.Get("Allow"), allow)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := s.do(s.request("GET", path, "")).ok(200); string(a.raw) != "ok\n" {
			t.Errorf("%s: %q", path, a.raw)
		}
	}
	s.broken.Store(true)
	s.do(s.request("GET", "/readyz", "")).problem(503, "unavailable")
	s.do(s.request("GET", "/healthz", "")).ok(200)
}

func TestIdempotencyKeys(t *testing.T) {
	s := newSite(t)
	run := s.receive("hello").RunID
	for path, body := range map[string]string{
		"/v1/offers":     s.offerBody("email.send", mailArgs),
		"/v1/operations": fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"email.send","args":%s}`, run, mailArgs),
	} {
		t.Run("Invariant17"+path, func(t *testing.T) {
			s.keyed(people.ScopeAgent, "", "POST", path, body).problem(400, "idempotency_required")
			s.keyed(people.ScopeAgent, strings.Repeat("k", 256), "POST", path, body).problem(400, "idempotency_required")
			key := "the same for both calls"
			first := s.keyed(people.ScopeAgent, key, "POST", path, body).ok(201)
			// The same content is the same JSON, however it is written, from whichever key of the account.
			again := s.keyed(people.ScopeOwner, key, "POST", path, strings.ReplaceAll(strings.ReplaceAll(body, `":`, `" : `), "Lunch", `\u004cunch`)).ok(201)
			if again.str("id") != first.str("id") {
				t.Errorf("%s\n%s", first.raw, again.raw)
			}
			for _, other := range []string{
				strings.Replace(body, "Lunch", "Dinner", 1), strings.Replace(body, `"args"`, `"present":"queue","args"`, 1),
			} {
				s.keyed(people.ScopeAgent, key, "POST", path, other).problem(422, "idempotency_conflict")
			}
			// Many at once are one.
			var wg sync.WaitGroup
			ids := make([]string, 16)
			for i := range ids {
				wg.Go(func() { ids[i] = s.keyed(people.ScopeAgent, key+" at once", "POST", path, body).str("id") })
			}
			wg.Wait()
			if len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 1 || ids[0] == "" || ids[0] == first.str("id") {
				t.Errorf("%v", ids)
			}
			// A refusal by rule 1 is stored and repeated; what failed before a decision is not.
			bad := strings.Replace(body, mailArgs, `{"to":["dana@example.test"],"approved":true}`, 1)
			one := s.keyed(people.ScopeAgent, "bad", "POST", path, bad).problem(422, "model_confirm_parameter")
			two := s.keyed(people.ScopeAgent, "bad", "POST", path, bad).problem(422, "model_confirm_parameter")
			if one.str("operation_id") == "" || one.str("operation_id") != two.str("operation_id") || one.str("decision") != "refuse" {
				t.Errorf("%s\n%s", one.raw, two.raw)
			}
			s.keyed(people.ScopeAgent, "bad", "POST", path, body).problem(422, "idempotency_conflict")
			s.keyed(people.ScopeAgent, "early", "POST", path, `{"tool":`).problem(400, "bad_request")
			s.keyed(people.ScopeAgent, "early", "POST", path, body).ok(201)
		})
	}
}

func TestCase_HA14_TheAgentCannotSayYes(t *testing.T) {
	s := newSite(t)
	body := s.offerBody("email.send", mailArgs)
	for _, extra := range []string{`"confirmed":true`, `"approved_by":"owner"`, `"state":"approved"`, `"decision":{"message_id":"SMfake","quote":"yes"}`, `"tier":"owner"`, `"account_id":"other"`, `"expires_at":"2040-01-01T00:00:00Z"`} {
		s.agent("POST", "/v1/offers", "{"+extra+","+body[1:]).problem(400, "bad_request")
	}
	for _, args := range []string{
		`{"to":["dana@example.test"],"subject":"x","body":"y","confirmed":true}`, `{"to":["dana@example.test"],"user-Approved":{"x":1}}`,
		`{"a":[{"b":{"SKIP_CONFIRMATION":false}}]}`,
	} {
		for _, tool := range []string{"email.send", "drone.launch"} {
			a := s.agent("POST", "/v1/offers", s.offerBody(tool, args)).problem(422, "model_confirm_parameter")
			if a.str("reason") != "MODEL_CONFIRM_PARAMETER" || a.str("decision") != "refuse" {
				t.Errorf("%s", a.raw)
			}
		}
	}
	s.agent("POST", "/v1/offers", s.offerBody("email.send", `{"to":"dana@example.test"}`)).problem(422, "args_invalid")
	// Its key opens no inbound path.
	s.agent("POST", "/webhooks/twilio/messages", `{}`).problem(404, "not_found")
	if list := s.agent("GET", "/v1/offers", "").ok(200); string(bytes.TrimSpace(list.raw)) != `{"offers":[]}` {
		t.Errorf("%s", list.raw)
	}
}

func TestCase_CJ02_DoubledNames(t *testing.T) {
	s := newSite(t)
	body := s.offerBody("email.send", mailArgs)
	for _, bad := range []string{
		strings.Replace(body, `"tool":`, `"tool":"files.delete","tool":`, 1),
		strings.Replace(body, `"tool":`, `"TOOL":"files.delete","tool":`, 1),
		strings.Replace(body, `"args":`, `"ARGS":{"to":["mallory@example.test"]},"args":`, 1),
		strings.Replace(body, `"args":`, `"Args":`, 1),
		strings.Replace(body, `"subject":`, `"subject":"x","subject":`, 1),
		strings.Replace(body, `"to":`, `"deep":{"a":1,"a":2},"to":`, 1),
		strings.Replace(body, `"to":`, `"\u0074o":["mallory@example.test"],"to":`, 1),
	} {
		if a := s.agent("POST", "/v1/offers", bad); a.status != 400 || a.str("code") != "invalid_json" && a.str("code") != "bad_request" {
			t.Errorf("%s: %d %s", bad, a.status, a.raw)
		}
	}
}

func TestCase_CJ04_BrokenText(t *testing.T) {
	s := newSite(t)
	for _, v := range []string{`"\ude00\ud83d"`, "\"\xff\"", `"\ud83d"`, "\"\xed\xa0\xbd\""} {
		if a := s.agent("POST", "/v1/offers", s.offerBody("x", `{"a":`+v+`}`)); a.status != 400 {
			t.Errorf("%s: %d %s", v, a.status, a.raw)
		}
	}
	a := s.agent("POST", "/v1/offers", s.offerBody("x", "{\"a\":\"\ufffd\"}")).ok(201)
	if !bytes.Contains(a.raw, []byte("\"args\":{\"a\":\"\ufffd\"}")) {
		t.Errorf("%s", a.raw)
	}
	for _, body := range []string{"", " ", "null", "[]", `""`, "{}{}", "\ufeff" + s.offerBody("x", "{}"), s.offerBody("x", "{}") + "x", s.offerBody("x", `{"n":1e400}`), s.offerBody("x", `{"n":9007199254740993}`)} {
		if a := s.agent("POST", "/v1/offers", body); a.status != 400 {
			t.Errorf("%q: %d %s", body, a.status, a.raw)
		}
	}
}

func TestCase_CJ10_NullAbsentAndEmpty(t *testing.T) {
	s := newSite(t)
	sums := map[string]string{}
	for _, args := range []string{`{"to":"a","cc":null}`, `{"to":"a"}`, `{"to":"a","cc":""}`, `{"to":"a","cc":[]}`, `{"to":"a","cc":{}}`} {
		a := s.agent("POST", "/v1/offers", s.offerBody("mail", args)).ok(201)
		if other, ok := sums[a.str("args_sha256")]; ok {
			t.Errorf("%s and %s have one hash", args, other)
		}
		sums[a.str("args_sha256")] = args
		canonical, _, _ := offers.Canonical([]byte(args))
		if !bytes.Contains(a.raw, []byte(`"args":`+string(canonical)+`,`)) {
			t.Errorf("%s came back as %s", args, a.raw)
		}
	}
	for _, args := range []string{`null`, `[]`, `""`, `1`, `true`, `[{}]`} {
		s.agent("POST", "/v1/offers", s.offerBody("mail", args)).problem(400, "bad_request")
		s.agent("POST", "/v1/gate/check", `{"tool":"mail","args":`+args+`}`).problem(400, "bad_request")
	}
	s.agent("POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"tool":"mail"}`, s.owner.ID)).problem(400, "bad_request")
}

// Arguments come back byte for byte as they were hashed, on every way out.
func TestInvariant03_ArgumentsAreTheirBytes(t *testing.T) {
	s := newSite(t)
	args := `{"z":"<a href=\"x?a=1&b=2\">\u2028\u0007é😀</a>","n":412.00,"m":1e2,"a":{"b":[null,true,"\/"]}}`
	canonical, sum, err := offers.Canonical([]byte(args))
	s.must(err)
	if sum != sha256.Sum256(canonical) {
		t.Fatal("the hash is not that of the bytes")
	}
	a := s.agent("POST", "/v1/offers", s.offerBody("x", args)).ok(201)
	s.sendAll()
	op := "/v1/operations/" + a.str("operation_id")
	s.yes(a.str("id"))
	want := []byte(`"args":` + string(canonical))
	for name, got := range map[string]answer{
		"enqueue": a, "offer": s.agent("GET", "/v1/offers/"+a.str("id"), ""), "list": s.agent("GET", "/v1/offers", ""),
		"operation": s.agent("GET", op, ""), "events": s.agent("GET", "/v1/events", ""),
		"begin": s.agent("POST", op+"/begin", `{"args":`+args+`}`),
	} {
		if got.status >= 300 || !bytes.Contains(got.raw, want) {
			t.Errorf("%s: %d %s\nhas no %s", name, got.status, got.raw, want)
		}
	}
}

// What is released are the stored arguments; a claim with others is refused and changes nothing.
func TestCase_HA01_BeginTakesOnlyWhatWasShown(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	op := "/v1/operations/" + a.str("operation_id")
	s.yes(a.str("id"))
	other := strings.Replace(mailArgs, "dana@", "mallory@", 1)
	for _, body := range []string{`{"args":` + other + `}`, `{"args":{}}`, `{"args_sha256":"` + strings.Repeat("0", 64) + `"}`, `{"args_sha256":"x"}`, `{"args_sha256":"` + strings.ToUpper(a.str("args_sha256")) + `0"}`} {
		s.agent("POST", op+"/begin", body).problem(422, "args_hash_mismatch")
	}
	for _, body := range []string{`{}`, `{"args":` + mailArgs + `,"args_sha256":"` + a.str("args_sha256") + `"}`, `{"args":null}`} {
		s.agent("POST", op+"/begin", body).problem(400, "bad_request")
	}
	if got := s.agent("GET", op, "").ok(200); got.str("state") != "approved" {
		t.Fatalf("%s", got.raw)
	}
	s.agent("POST", op+"/begin", `{"args":`+mailArgs+`}`).ok(200)
}

func TestCase_HA11_ASecondBeginIsToldOfTheFirst(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	op := "/v1/operations/" + a.str("operation_id")
	hash := `{"args_sha256":"` + a.str("args_sha256") + `"}`
	s.yes(a.str("id"))
	first := s.agent("POST", op+"/begin", hash).ok(200)
	for _, sc := range []people.Scope{people.ScopeAgent, people.ScopeExecutor} {
		got := s.as(sc, "POST", op+"/begin", hash).problem(409, "already_begun")
		if got.str("begun_by") != s.ids[people.ScopeAgent] || got.str("begun_at") != first.str("operation", "begun_at") || got.str("state") != "running" || got.body["result"] != nil {
			t.Errorf("%s", got.raw)
		}
		if bytes.Contains(got.raw, []byte("dana@")) {
			t.Errorf("the arguments went out twice: %s", got.raw)
		}
	}
	s.agent("POST", op+"/result", `{"status":"failed","output":"no such server"}`).ok(200)
	got := s.as(people.ScopeExecutor, "POST", op+"/begin", hash).problem(409, "already_begun")
	if got.str("begun_at") != first.str("operation", "begun_at") || got.str("state") != "failed" || got.str("result", "status") != "failed" || got.str("result", "output") != "no such server" {
		t.Errorf("%s", got.raw)
	}
}

func TestOfferClosed(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	if got := s.agent("DELETE", "/v1/offers/"+a.str("id"), "").ok(200); got.str("state") != "withdrawn" || got.str("closed_by", "by") != "agent" {
		t.Errorf("%s", got.raw)
	}
	if got := s.agent("DELETE", "/v1/offers/"+a.str("id"), "").problem(409, "offer_closed"); got.str("state") != "withdrawn" {
		t.Errorf("%s", got.raw)
	}
	b := s.enqueue("")
	if got := s.as(people.ScopeOwner, "DELETE", "/v1/offers/"+b.str("id"), "").ok(200); got.str("closed_by", "by") != "owner" {
		t.Errorf("%s", got.raw)
	}
	c := s.enqueue("")
	s.yes(c.str("id"))
	if got := s.agent("DELETE", "/v1/offers/"+c.str("id"), "").problem(409, "offer_closed"); got.str("state") != "consumed" {
		t.Errorf("%s", got.raw)
	}
	body := fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s,"supersedes":%q}`, s.owner.ID, mailArgs, c.str("id"))
	s.agent("POST", "/v1/offers", body).problem(409, "offer_closed")
	d := s.enqueue("")
	e := s.enqueue(fmt.Sprintf(`,"supersedes":%q`, d.str("id")))
	if got := s.agent("GET", "/v1/offers/"+d.str("id"), "").ok(200); got.str("state") != "superseded" {
		t.Errorf("%s", got.raw)
	}
	if !strings.HasPrefix(e.str("shown_text"), "Changed: nothing") {
		t.Errorf("%s", e.raw)
	}
}

func TestCannotBeShown(t *testing.T) {
	s := newSite(t)
	long := strings.Repeat("x", 900)
	args := fmt.Sprintf(`{"a":%q,"b":%q,"c":%q,"d":%q,"e":%q,"f":%q,"g":%q,"h":%q}`, long, long, long, long, long, long, long, long)
	a := s.agent("POST", "/v1/offers", s.offerBody("x", args)).problem(422, "offer_cannot_be_shown")
	if bytes.Contains(a.raw, []byte("xxx")) {
		t.Errorf("%s", a.raw)
	}
	// A long body stands on its page.
	body := strings.Repeat("<&>\u2029 ", 3000)
	quoted, _ := json.Marshal(body)
	a = s.agent("POST", "/v1/offers", s.offerBody("email.send", `{"to":["dana@example.test"],"subject":"s","body":`+string(quoted)+`}`)).ok(201)
	if !regexp.MustCompile(`\nText: 15,000 characters, all of it at https://approve\.example\.test/o/[A-Z2-7]{26}\n`).MatchString(a.str("shown_text")) {
		t.Errorf("%q", a.str("shown_text"))
	}
}

func TestBodyLimits(t *testing.T) {
	s := newSite(t)
	sized := func(n int) string {
		const around = len(`{"to":["dana@example.test"],"subject":"s","body":""}`)
		return `{"to":["dana@example.test"],"subject":"s","body":"` + strings.Repeat("x", n-around) + `"}`
	}
	s.agent("POST", "/v1/offers", s.offerBody("email.send", sized(offers.MaxArgs))).ok(201)
	s.agent("POST", "/v1/offers", s.offerBody("email.send", sized(offers.MaxArgs+1))).problem(400, "invalid_json")
	s.agent("POST", "/v1/offers", s.offerBody("email.send", sized(300<<10))).problem(413, "body_too_large")
	s.agent("POST", "/v1/offers", s.offerBody("x", strings.Repeat(`{"a":`, 100)+"1"+strings.Repeat("}", 100))).problem(400, "invalid_json")
	run := s.receive("hello").RunID
	op := s.agent("POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"tasks.add","args":{"title":"Milk"}}`, run)).ok(201)
	s.agent("POST", "/v1/operations/"+op.str("id")+"/begin", `{"args":{"title":"Milk"}}`).ok(200)
	s.agent("POST", "/v1/operations/"+op.str("id")+"/result", `{"status":"succeeded","output":"`+strings.Repeat("x", 64<<10)+`"}`).problem(413, "body_too_large")
	s.agent("POST", "/v1/operations/"+op.str("id")+"/result", `{"status":"done"}`).problem(400, "bad_request")
	s.agent("POST", "/v1/operations/"+op.str("id")+"/result", `{"status":"succeeded","output":"`+strings.Repeat("x", 64<<10-2)+`"}`).ok(200)
}

func TestConfirm(t *testing.T) {
	s := newSite(t)
	path := func(a answer) string { return "/v1/offers/" + a.str("id") + "/confirm" }
	two := func() (mail, pay answer) {
		mail = s.enqueue("")
		pay = s.agent("POST", "/v1/offers", fmt.Sprintf(`{"person_id":%q,"present":"now","tool":"payments.send","args":{"to":"Acme","amount":412,"currency":"USD"}}`, s.owner.ID)).ok(201)
		s.sendAll()
		return mail, pay
	}
	mail, pay := two()
	r := s.unresolved("yes to the email", nearlyYes())

	s.agent("POST", path(mail), confirmBody(r, "yes", mailArgs)).problem(422, "quote_not_in_message")
	s.agent("POST", path(mail), confirmBody(r, "yes to the email and the payment", mailArgs)).problem(422, "quote_not_in_message")
	s.agent("POST", path(mail), confirmBody(r, "yes to the email", `{}`)).problem(422, "args_hash_mismatch")
	s.agent("POST", path(pay), confirmBody(r, "yes to the email", `{"to":"Acme","amount":412,"currency":"USD"}`)).problem(422, "not_a_yes")
	other := s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"parent_run_id":%q}}`, r.RunID)).ok(201)
	s.agent("POST", path(mail), confirmBody(offers.Received{RunID: other.str("id"), MessageID: r.MessageID}, "yes to the email", mailArgs)).problem(403, "self_confirm")
	s.agent("POST", path(mail), `{"run_id":"x"}`).problem(400, "bad_request")
	s.agent("POST", path(mail), strings.Replace(confirmBody(r, "yes to the email", mailArgs), "{", `{"p":1,`, 1)).problem(400, "bad_request")

	won := s.agent("POST", path(mail), confirmBody(r, " Yes  to the EMAIL ", mailArgs)).ok(200)
	if won.str("state") != "consumed" || won.str("closed_by", "message_id") != r.MessageID {
		t.Errorf("%s", won.raw)
	}
	s.agent("POST", path(mail), confirmBody(r, "yes to the email", mailArgs)).ok(200) // the same again finds its own win
	s.agent("POST", path(pay), confirmBody(r, "yes to the email", `{"to":"Acme","amount":412,"currency":"USD"}`)).problem(409, "message_used")
	if got := s.agent("GET", "/v1/operations/"+pay.str("operation_id"), "").ok(200); got.str("state") != "asked" {
		t.Errorf("%s", got.raw)
	}
	r = s.unresolved("yes to the email", nearlyYes())
	s.agent("POST", path(mail), confirmBody(r, "yes to the email", mailArgs)).problem(409, "offer_closed")

	// A tainted run, and a reply that is no yes.
	s.agent("DELETE", "/v1/offers/"+pay.str("id"), "").ok(200)
	mail = s.enqueue("")
	r = s.unresolved("hm, send the email?", offers.ReadingRecord{Class: "unclear", RawP: 0.9, Guards: []string{"question"}, Reader: "test"})
	s.agent("POST", path(mail), confirmBody(r, "hm, send the email?", mailArgs)).problem(422, "not_a_yes")
	r = s.unresolved("yes to the email", nearlyYes())
	s.agent("POST", "/v1/runs/"+r.RunID+"/taint", `{"source":"mail"}`).ok(200)
	s.agent("POST", path(mail), confirmBody(r, "yes to the email", mailArgs)).problem(403, "self_confirm")

	// The run that proposed an offer, and any of its root, cannot confirm it.
	r = s.receive("mail dana")
	own := s.agent("POST", "/v1/operations", fmt.Sprintf(`{"run_id":%q,"kind":"tool_call","tool":"email.send","args":%s,"present":"now"}`, r.RunID, mailArgs)).ok(201)
	s.sendAll()
	s.must(s.store.Pass(t.Context(), offers.PassRequest{MessageID: r.MessageID, PersonID: r.PersonID, Type: offers.ReplyUnresolved, Reading: offers.ReadingRecord{Class: "confirm", RawP: 1, Reader: "test"},
		Data: offers.ReplyData{RunID: r.RunID, MessageID: r.MessageID, PersonID: r.PersonID, Text: "mail dana"}}))
	got := s.agent("POST", "/v1/offers/"+own.str("offer", "id")+"/confirm", confirmBody(r, "mail dana", mailArgs))
	if got.status == 200 || s.agent("GET", "/v1/operations/"+own.str("id"), "").str("state") != "asked" {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

// A waiter reads the row again on a timer, so that a wake-up that never comes costs a second and no answer.
func TestCase_DB06_AWaiterReadsAgain(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	waited := make(chan answer, 2)
	after := s.agent("GET", "/v1/events", "").ok(200).str("next")
	go func() { waited <- s.agent("GET", "/v1/operations/"+a.str("operation_id")+"?wait=50", "") }()
	go func() { waited <- s.agent("GET", "/v1/events?wait=50s&after="+after, "") }()
	s.yes(a.str("id")) // straight in the store: nobody is woken
	for range 2 {
		got := <-waited
		got.ok(200)
		if _, isOp := got.body["state"]; isOp && got.str("state") != "approved" {
			t.Errorf("%s", got.raw)
		}
		if list, isEvents := got.body["events"].([]any); isEvents && len(list) == 0 {
			t.Errorf("%s", got.raw)
		}
	}
	for _, wait := range []string{"x", "-1s", "1x"} {
		s.agent("GET", "/v1/operations/"+a.str("operation_id")+"?wait="+wait, "").problem(400, "bad_request")
		s.agent("GET", "/v1/events?wait="+wait, "").problem(400, "bad_request")
	}
	// Without a decision the answer comes when the time is over, as things are.
	b := s.enqueue("")
	if got := s.agent("GET", "/v1/operations/"+b.str("operation_id")+"?wait=10ms", "").ok(200); got.str("state") != "asked" {
		t.Errorf("%s", got.raw)
	}
}

func TestEventsAreReadInPages(t *testing.T) {
	s := newSite(t)
	a := s.enqueue("")
	s.yes(a.str("id"))
	all := s.agent("GET", "/v1/events", "").ok(200)
	whole, _ := all.body["events"].([]any)
	var types []string
	for _, e := range whole {
		e, _ := e.(map[string]any)
		types = append(types, fmt.Sprint(e["type"]))
		for _, name := range []string{"id", "type", "at", "account_id", "data"} {
			if e[name] == nil {
				t.Errorf("an event without %s: %v", name, e)
			}
		}
	}
	if got, want := strings.Join(types, " "), "offer.opened offer.closed operation.approved"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	var paged []any
	after := ""
	for range len(whole) + 1 {
		page := s.agent("GET", "/v1/events?limit=1&after="+after, "").ok(200)
		list, _ := page.body["events"].([]any)
		paged = append(paged, list...)
		if len(list) == 0 && page.str("next") != after {
			t.Errorf("an empty page moves from %q to %q", after, page.str("next"))
		}
		after = page.str("next")
	}
	if fmt.Sprint(paged) != fmt.Sprint(whole) || after != all.str("next") {
		t.Errorf("in pages:\n%v\nat once:\n%v", paged, whole)
	}
	for _, bad := range []string{"after=x", "after=1", "after=-1.0", "limit=-1", "limit=1001", "limit=x"} {
		s.agent("GET", "/v1/events?"+bad, "").problem(400, "bad_request")
	}
	s.agent("GET", "/v1/events?limit=1000", "").ok(200)
}

func TestInvariant16_LedgerDown(t *testing.T) {
	s := newSite(t)
	s.exec(`ALTER TABLE ledger RENAME TO ledger_gone`)
	s.keyed(people.ScopeAgent, "k", "POST", "/v1/offers", s.offerBody("email.send", mailArgs)).problem(503, "ledger_unavailable")
	s.exec(`ALTER TABLE ledger_gone RENAME TO ledger`)
	s.keyed(people.ScopeAgent, "k", "POST", "/v1/offers", s.offerBody("email.send", mailArgs)).ok(201)
}

func TestBadRequests(t *testing.T) {
	s := newSite(t)
	for _, body := range []string{
		`{}`,
		fmt.Sprintf(`{"person_id":%q,"args":{}}`, s.owner.ID),
		`{"tool":"x","args":{}}`,
		fmt.Sprintf(`{"person_id":%q,"address":"sms:+12025550102","tool":"x","args":{}}`, s.owner.ID),
		fmt.Sprintf(`{"person_id":%q,"tool":"x","args":{},"present":"later"}`, s.owner.ID),
		fmt.Sprintf(`{"person_id":%q,"tool":7,"args":{}}`, s.owner.ID),
		`{"address":"+12025550102","tool":"x","args":{}}`,
		`{"address":"sms:+1 202 555 0102","tool":"x","args":{}}`,
		`{"address":"secret","tool":"x","args":{}}`,
		fmt.Sprintf(`{"person_id":%q,"tool":"x","args":{},"secret":1}`, s.owner.ID),
	} {
		a := s.agent("POST", "/v1/offers", body).problem(400, "bad_request")
		if strings.Contains(a.str("detail"), "+12025550102") {
			t.Errorf("what was sent is repeated: %s", a.raw)
		}
	}
	s.agent("POST", "/v1/offers", fmt.Sprintf(`{"address":%q,"tool":"x","args":{}}`, s.owner.Addresses[0].Address)).ok(201)
	s.agent("GET", "/v1/offers?limit=x", "").problem(400, "bad_request")
}

// TestDescription holds /openapi.json to being a description of OpenAPI 3.1 that is whole in itself, and the page at /docs
// to needing nothing from anywhere.
func TestDescription(t *testing.T) {
	s := newSite(t)
	a := s.do(s.request("GET", "/openapi.json", "")).ok(200)
	if v := a.str("openapi"); !strings.HasPrefix(v, "3.1.") {
		t.Errorf("openapi is %q", v)
	}
	if a.str("info", "title") == "" || a.str("info", "version") == "" {
		t.Errorf("info %v", a.body["info"])
	}
	paths, _ := a.body["paths"].(map[string]any)
	ids := map[string]bool{}
	for _, want := range []string{
		"POST /v1/runs", "POST /v1/runs/{id}/taint", "POST /v1/operations", "POST /v1/offers", "GET /v1/operations/{id}", "POST /v1/operations/{id}/begin",
		"POST /v1/operations/{id}/result", "GET /v1/offers", "GET /v1/offers/{id}", "DELETE /v1/offers/{id}", "POST /v1/offers/{id}/confirm", "POST /v1/gate/check",
		"GET /v1/tools", "GET /v1/events", "PUT /v1/contacts", "GET /v1/contacts",
	} {
		method, path, _ := strings.Cut(want, " ")
		item, _ := paths[path].(map[string]any)
		call, _ := item[strings.ToLower(method)].(map[string]any)
		if call == nil {
			t.Errorf("%s is not described", want)
			continue
		}
		id, _ := call["operationId"].(string)
		if id == "" || ids[id] {
			t.Errorf("%s has the operationId %q", want, id)
		}
		ids[id] = true
		responses, _ := call["responses"].(map[string]any)
		if responses["default"] == nil || len(responses) < 2 || call["summary"] == nil || call["security"] == nil {
			t.Errorf("%s: responses %v, security %v", want, responses, call["security"])
		}
		if method == "POST" && call["requestBody"] == nil {
			t.Errorf("%s has no body", want)
		}
		named := map[string]bool{}
		params, _ := call["parameters"].([]any)
		for _, p := range params {
			p, _ := p.(map[string]any)
			if p["in"] == "path" {
				named[fmt.Sprint(p["name"])] = true
				if p["required"] != true {
					t.Errorf("%s: %v is not required", want, p["name"])
				}
			}
			if p["schema"] == nil {
				t.Errorf("%s: %v has no schema", want, p["name"])
			}
		}
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
			if !named[m[1]] {
				t.Errorf("%s does not describe {%s}", want, m[1])
			}
		}
	}
	// Every reference leads somewhere, and every schema is one.
	for _, m := range regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllSubmatch(a.raw, -1) {
		name, ok := strings.CutPrefix(string(m[1]), "#/components/schemas/")
		components, _ := a.body["components"].(map[string]any)
		schemas, _ := components["schemas"].(map[string]any)
		if !ok || schemas[name] == nil {
			t.Errorf("%s leads nowhere", m[1])
		}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.raw))
	s.must(err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	s.must(c.AddResource("mem:openapi", doc))
	components, _ := a.body["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for name := range schemas {
		if _, err := c.Compile("mem:openapi#/components/schemas/" + name); err != nil {
			t.Errorf("%s is no schema: %v", name, err)
		}
	}
	if len(schemas) < 5 {
		t.Errorf("%d schemas", len(schemas))
	}

	page := s.do(s.request("GET", "/docs", "")).ok(200)
	if !strings.HasPrefix(page.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v", page.header)
	}
	for _, m := range regexp.MustCompile(`(?i)(?:src|href|action|url)\s*[=(]\s*["']?([^"'\s>)]*)`).FindAllSubmatch(page.raw, -1) {
		if string(m[1]) != "/openapi.json" {
			t.Errorf("the page leads to %s", m[1])
		}
	}
	if bytes.Contains(page.raw, []byte("<script")) {
		t.Error("the page has a script")
	}
	for path := range paths {
		if !bytes.Contains(page.raw, []byte(path)) {
			t.Errorf("the page leaves out %s", path)
		}
	}
}

// What an answer holds fits the schema that describes it.
func TestAnswersFitTheirDescription(t *testing.T) {
	s := newSite(t)
	spec := s.do(s.request("GET", "/openapi.json", "")).ok(200)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.raw))
	s.must(err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	s.must(c.AddResource("mem:openapi", doc))
	fits := func(a answer, method, path string) {
		t.Helper()
		pointer := "mem:openapi#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + strings.ToLower(method) + "/responses/" + fmt.Sprint(a.status) + "/content/application~1json/schema"
		schema, err := c.Compile(pointer)
		if err != nil {
			t.Errorf("%s %s %d: %v", method, path, a.status, err)
			return
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.raw))
		s.must(err)
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s %s: %v\n%s", method, path, err, a.raw)
		}
	}
	a := s.enqueue("")
	fits(a, "POST", "/v1/offers")
	fits(s.agent("GET", "/v1/offers", ""), "GET", "/v1/offers")
	fits(s.agent("GET", "/v1/offers/"+a.str("id"), ""), "GET", "/v1/offers/{id}")
	fits(s.agent("GET", "/v1/operations/"+a.str("operation_id"), ""), "GET", "/v1/operations/{id}")
	s.yes(a.str("id"))
	fits(s.agent("GET", "/v1/events", ""), "GET", "/v1/events")
	fits(s.agent("POST", "/v1/operations/"+a.str("operation_id")+"/begin", `{"args":`+mailArgs+`}`), "POST", "/v1/operations/{id}/begin")
	fits(s.agent("POST", "/v1/operations/"+a.str("operation_id")+"/result", `{"status":"succeeded"}`), "POST", "/v1/operations/{id}/result")
	fits(s.agent("POST", "/v1/gate/check", `{"tool":"x","args":{}}`), "POST", "/v1/gate/check")
	fits(s.agent("GET", "/v1/tools", ""), "GET", "/v1/tools")
	m := s.receive("hello")
	fits(s.agent("POST", "/v1/runs", fmt.Sprintf(`{"cause":{"message_id":%q}}`, m.MessageID)), "POST", "/v1/runs")
}
