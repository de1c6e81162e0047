package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

// house is a database with an owner, a paired person and an agent's key, and a server on it.
type house struct {
	url, key      string
	owner, paired string
}

func furnish(t *testing.T, environ []string) house {
	t.Helper()
	made := func(into any, args ...string) {
		t.Helper()
		code, out, errs := bot(t, environ, "", args...)
		if code != exitOK {
			t.Fatalf("bot %v: %d %s", args, code, errs)
		}
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatal(err)
		}
	}
	var key, owner, paired struct{ ID, Key string }
	made(&key, "keys", "create", "--name", "agent", "--scope", "agent", "--json")
	made(&owner, "people", "add", "--name", "Alex", "--address", "sim:alex", "--as", "owner", "--json")
	made(&paired, "people", "add", "--name", "Kim", "--address", "sim:kim", "--as", "paired", "--json")
	return house{key: key.Key, owner: owner.ID, paired: paired.ID}
}

// serveChild runs a program as `bot serve` with the simulated phone.
func serveChild(t *testing.T, program string, more ...string) house {
	t.Helper()
	env := environ(t, append([]string{"COUNTERSIGN_SIM=1", "COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_MIN_READ=50ms", asProgram + "=1"}, more...)...)
	h := furnish(t, env)
	s, err := startServer(t.Context(), program, env, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	h.url = "http://" + s.addr
	return h
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// asked is what golive has printed.
type asked struct {
	code   int
	lines  []goliveLine
	failed []string
	total  struct{ Asked, Failed int }
	errs   string
}

func (h house) golive(t *testing.T, args ...string) asked {
	t.Helper()
	args = append([]string{"golive", "--url", h.url, "--min-read", "50ms", "--json"}, args...)
	code, out, errs := bot(t, []string{"COUNTERSIGN_KEY=" + h.key}, "", args...)
	return read(t, code, out, errs)
}

func read(t *testing.T, code int, out, errs string) asked {
	t.Helper()
	a := asked{code: code, errs: errs}
	rows := strings.Split(strings.TrimSpace(out), "\n")
	for i, row := range rows {
		if row == "" {
			continue
		}
		if i == len(rows)-1 && !strings.Contains(row, `"question"`) {
			if err := json.Unmarshal([]byte(row), &a.total); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var l goliveLine
		if err := json.Unmarshal([]byte(row), &l); err != nil {
			t.Fatal(err)
		}
		a.lines = append(a.lines, l)
		if !l.Held {
			a.failed = append(a.failed, l.Question+": "+l.Got)
		}
	}
	return a
}

func TestGoliveHolds(t *testing.T) {
	h := serveChild(t, self(t))
	for _, args := range [][]string{{"--sim", "sim:alex", "--for", h.paired}, {"--sim", "sim:alex"}} { // the second time texts may cross
		a := h.golive(t, args...)
		if a.code != exitOK || len(a.failed) > 0 || a.errs != "" || a.total.Asked != len(a.lines) || a.total.Failed != 0 {
			t.Fatalf("exit code %d, %d of %d lines, %v %s", a.code, a.total.Asked, len(a.lines), a.failed, a.errs)
		}
		steps := 0
		for _, l := range a.lines {
			if strings.HasPrefix(l.Question, "staged send: ") {
				steps++
			}
		}
		if steps != 10 || len(a.lines) < 200 {
			t.Errorf("%d lines with %d steps of the staged send", len(a.lines), steps)
		}
	}
	policy, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	a := h.golive(t)
	for _, tool := range policy.Tools() {
		wanted := guarded(tool)
		if found := slices.ContainsFunc(a.lines, func(l goliveLine) bool { return strings.HasPrefix(l.Question, tool.Name+" as ") }); found != wanted {
			t.Errorf("%s is asked about: %v, want %v", tool.Name, found, wanted)
		}
	}
	// And in words.
	code, out, _ := bot(t, nil, "", "golive", "--url", h.url, "--key", h.key)
	if code != exitOK || !strings.Contains(out, "ok   email.send as tool_call clean: ask FLOOR_SEND_OUTSIDE (rule 3)\n") || !regexp.MustCompile(`\n\d+ asked, 0 failed\n$`).MatchString(out) {
		t.Errorf("%d %s", code, out)
	}
}

// mutated builds the program with one marked line of the gate replaced, and one more file in that package.
func mutated(t *testing.T, mark, replace, more string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "gate", "decide.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^.*// mutant: ` + mark + `$`)
	if n := len(line.FindAll(source, -1)); n != 1 {
		t.Fatalf("%d lines are marked %s", n, mark)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "decide.go")
	if err := os.WriteFile(changed, line.ReplaceAllLiteral(source, []byte(replace)), 0o600); err != nil {
		t.Fatal(err)
	}
	added := filepath.Join(dir, "more.go")
	if err := os.WriteFile(added, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed, filepath.Join(root, "gate", "more.go"): added}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "bot")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", list, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// A server whose floor was taken out does not pass: neither where the rules behind it ask all the same, nor where they
// would let things through.
func TestGoliveFailsWithoutTheFloor(t *testing.T) {
	// One program for both: nearly everything imports the gate, and is compiled again with it.
	program := mutated(t, "gate-floor",
		"\tif nothingAsks && floor != \"\" {\n\t\treturn d.with(Allow, \"6\", ReasonReversibleOwnData, \"\")\n\t}\n\tif false {",
		"package gate\n\nimport \"os\"\n\nvar nothingAsks = os.Getenv(\"GATE_WITHOUT\") == \"everything\"\n")
	for _, c := range []struct{ name, without, want string }{
		{"OtherRulesAsk", "floor", "email.send as tool_call clean: ask DEFAULT_ASK (rule 7)"},
		{"NothingAsks", "everything", "payments.send as tool_call clean: allow REVERSIBLE_OWN_DATA (rule 6)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := serveChild(t, program, "GATE_WITHOUT="+c.without).golive(t)
			if a.code != exitNo || !slices.Contains(a.failed, c.want) || a.total.Failed != len(a.failed) {
				t.Errorf("exit code %d, %d failed:\n%s\n%s", a.code, a.total.Failed, strings.Join(a.failed, "\n"), a.errs)
			}
			if !slices.ContainsFunc(a.failed, func(s string) bool { return strings.HasPrefix(s, unknownTool+" as tool_call clean: ") }) {
				t.Error("an unknown tool passes")
			}
		})
	}
}

func TestGoliveFailsWithAnotherPolicy(t *testing.T) {
	a := serveChild(t, self(t)).golive(t, "--policy", "demo.yaml")
	if a.code != exitNo || !slices.Contains(a.failed, "tool seats.hold is served: not there") {
		t.Errorf("%d %v %s", a.code, a.failed, a.errs)
	}
}

// serveInside runs a server in this process, behind a handler of the test's.
func serveInside(t *testing.T, policy string, around func(http.Handler) http.Handler) house {
	t.Helper()
	env := environ(t, "COUNTERSIGN_SIM=1", "COUNTERSIGN_MIN_READ=50ms", "COUNTERSIGN_POLICY="+policy)
	h := furnish(t, env)
	cfg, _, err := load(variables(env), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t.Context(), cfg.DatabaseURL, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(cfg, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inner := a.handler
	a.handler = around(inner)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	h.url = "http://" + l.Addr().String()
	return h
}

func plain(h http.Handler) http.Handler { return h }

// pretending answers some calls with a 200 and a body of its own.
func pretending(when func(r *http.Request, body []byte, answer *httptest.ResponseRecorder) []byte) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if instead := when(r, body, rec); instead != nil {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(instead)
				return
			}
			for name, v := range rec.Header() {
				w.Header()[name] = v
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	}
}

func TestGoliveFailsOnABadRelease(t *testing.T) {
	begins := regexp.MustCompile(`/begin$`)
	lets := func(status int, code string) func(*http.Request, []byte, *httptest.ResponseRecorder) []byte {
		return func(r *http.Request, _ []byte, rec *httptest.ResponseRecorder) []byte {
			if begins.MatchString(r.URL.Path) && rec.Code == status && strings.Contains(rec.Body.String(), code) {
				return []byte(`{"operation":{},"args":{}}`)
			}
			return nil
		}
	}
	for _, c := range []struct {
		name, want string
		when       func(*http.Request, []byte, *httptest.ResponseRecorder) []byte
	}{
		{"BeforeAYes", "staged send: begin before any yes", lets(http.StatusConflict, "not_approved")},
		{"OtherHash", "staged send: begin with another hash", lets(http.StatusUnprocessableEntity, "args_hash_mismatch")},
		{"Twice", "staged send: begin a second time", lets(http.StatusConflict, "already_begun")},
		{"OtherArguments", "staged send: begin with what was shown", lets(http.StatusOK, "")},
		{"NoConfirmCheck", "email.send as tool_call clean with confirmed: true", func(r *http.Request, _ []byte, rec *httptest.ResponseRecorder) []byte {
			if strings.Contains(rec.Body.String(), "MODEL_CONFIRM_PARAMETER") {
				return []byte(`{"decision":"ask","reason":"FLOOR_SEND_OUTSIDE","rule":"3"}`)
			}
			return nil
		}},
		{"SchemaWithAYes", "tool email.send has no confirmation parameter", func(r *http.Request, _ []byte, rec *httptest.ResponseRecorder) []byte {
			if r.URL.Path == "/v1/tools" {
				return bytes.Replace(rec.Body.Bytes(), []byte(`"bcc"`), []byte(`"user_confirmed"`), 1)
			}
			return nil
		}},
		{"TheTaintedRunOfADirectSend", "email.send as tool_call tainted", func(r *http.Request, body []byte, _ *httptest.ResponseRecorder) []byte {
			if r.URL.Path == "/v1/gate/check" && bytes.Contains(body, []byte(`"tool":"email.send"`)) && !bytes.Contains(body, []byte("onfirm")) && !bytes.Contains(body, []byte("pproved")) && !bytes.Contains(body, []byte("CONFIRM")) {
				return []byte(`{"decision":"allow","reason":"DIRECT_SEND","rule":"3"}`)
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := serveInside(t, "", pretending(c.when)).golive(t, "--sim", "sim:alex")
			if a.code != exitNo || !slices.ContainsFunc(a.failed, func(s string) bool { return strings.HasPrefix(s, c.want+":") }) {
				t.Errorf("exit code %d: %v %s", a.code, a.failed, a.errs)
			}
			if c.name == "TheTaintedRunOfADirectSend" && slices.ContainsFunc(a.failed, func(s string) bool { return strings.HasPrefix(s, "email.send as tool_call clean:") }) {
				t.Error("a direct send of a clean run fails")
			}
		})
	}
}

// With --person somebody types, and is told what and when.
func TestGoliveWithAPerson(t *testing.T) {
	h := serveInside(t, "", plain)
	prompts, stderr := io.Pipe()
	phone := agentClient{base: h.url}
	typed := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(prompts)
		n := 0
		for lines.Scan() {
			if !strings.Contains(lines.Text(), "YES") {
				continue
			}
			n++
			timer := time.NewTimer(100 * time.Millisecond) // somebody reads first
			<-timer.C
			got, err := phone.post(t.Context(), "/webhooks/sim/messages", "", map[string]any{"id": fmt.Sprint("typed-", n), "address": "sim:alex", "text": "yes"})
			if err != nil || got.status != http.StatusOK {
				typed <- fmt.Errorf("%d %w", got.status, err)
				return
			}
		}
		if n != 2 {
			typed <- fmt.Errorf("asked for %d messages", n)
		}
		close(typed)
	}()
	var out bytes.Buffer
	code := run(t.Context(), []string{"golive", "--url", h.url, "--key", h.key, "--person", h.owner, "--json"}, nil, strings.NewReader(""), &out, stderr)
	_ = stderr.Close()
	if err := <-typed; err != nil {
		t.Fatal(err)
	}
	if a := read(t, code, out.String(), ""); a.code != exitOK || len(a.failed) > 0 {
		t.Errorf("exit code %d: %v", a.code, a.failed)
	}
}

// Nobody types: it ends when the offer does.
func TestGoliveEndsWithTheOffer(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	err := os.WriteFile(policy, []byte(`version: 1
tools:
  note.send:
    effect: send
    capability: network.send
    recipients: [to]
    expires: 1s
    label: {verb: send a note, to: recipients}
    schema:
      type: object
      required: [to]
      additionalProperties: false
      properties: {to: {type: string}}
    template: [{prefix: To, arg: to}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	h := serveInside(t, policy, plain)
	a := h.golive(t, "--policy", policy, "--person", h.owner)
	if a.code != exitNo || !slices.Equal(a.failed, []string{"staged send: one yes approves it: expired"}) || !strings.Contains(a.errs, "answer it with YES") {
		t.Errorf("exit code %d: %v %s", a.code, a.failed, a.errs)
	}
}

// Something else waits for an answer: nothing is proved, and nothing is left behind.
func TestGoliveNeedsTheScreen(t *testing.T) {
	h := serveInside(t, "", plain)
	agent := agentClient{base: h.url, key: h.key}
	got, err := agent.post(t.Context(), "/v1/offers", "k1", map[string]any{"address": "sim:alex", "tool": "tasks.delete", "args": map[string]any{"task_id": "t1"}})
	if err != nil || got.status != http.StatusCreated {
		t.Fatalf("%d %v", got.status, err)
	}
	a := h.golive(t, "--sim", "sim:alex")
	if a.code != exitNo || !slices.Equal(a.failed, []string{"staged send: it is shown: queued"}) {
		t.Errorf("exit code %d: %v %s", a.code, a.failed, a.errs)
	}
	got, err = agent.get(t.Context(), "/v1/offers?state=withdrawn")
	var list struct{ Offers []offers.Offer }
	if err = errors.Join(err, got.into(&list)); err != nil || len(list.Offers) != 1 || list.Offers[0].Tool != "email.send" {
		t.Errorf("withdrawn: %s %v", got.body, err)
	}
}

func TestGoliveWrongUse(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		errs string
	}{
		{[]string{"--key", "csk_x"}, exitUsage, "--url"},
		{[]string{"--url", "ftp://127.0.0.1", "--key", "csk_x"}, exitUsage, "--url must be"},
		{[]string{"--url", "http://127.0.0.1:9"}, exitUsage, "COUNTERSIGN_KEY"},
		{[]string{"--url", "http://127.0.0.1:9", "--key", "csk_x", "--sim", "sim:alex", "--person", "x"}, exitUsage, "not both"},
		{[]string{"--url", "http://127.0.0.1:9", "--key", "csk_x", "--sim", "sms:+12025550102"}, exitUsage, "--sim must be"},
		{[]string{"--url", "http://127.0.0.1:9", "--key", "csk_x", "--min-read", "0s"}, exitUsage, "--min-read"},
		{[]string{"--url", "http://127.0.0.1:9", "--key", "csk_x", "--policy", "none.yaml"}, exitUsage, "cannot be read"},
		{[]string{"--url", "http://127.0.0.1:9", "--key", "csk_x"}, exitNo, "refused"},
	} {
		if code, out, errs := bot(t, nil, "", append([]string{"golive"}, c.args...)...); code != c.code || !strings.Contains(errs, c.errs) || out != "" {
			t.Errorf("bot golive %v: %d %s %s", c.args, code, out, errs)
		}
	}
	h := serveInside(t, "", plain)
	for key, args := range map[string][]string{"csk_nobody": nil, h.key: {"--for", offers.NewID()}} {
		code, _, errs := bot(t, nil, "", append([]string{"golive", "--url", h.url, "--key", key}, args...)...)
		if code != exitNo || errs == "" {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}

// Calls can be made from whatever a policy's schema may say, the same ones every time, with outsiders in every place of a
// recipient.
func TestGoliveCalls(t *testing.T) {
	policy, err := gate.ParsePolicy("test", []byte(`version: 1
tools:
  odd.send:
    effect: send
    capability: network.send
    recipients: [to, members.address]
    label: {verb: send something odd, to: recipients}
    schema:
      type: object
      required: [to, code, amount, when, kind, list, flag]
      additionalProperties: false
      properties:
        to: {type: string, pattern: "^[+][0-9]{8,15}$"}
        members: {type: array, minItems: 2, items: {type: object, required: [address], additionalProperties: false, properties: {address: {type: string, maxLength: 30}, role: {type: string, enum: [guest, host]}}}}
        code: {type: string, pattern: "^(ab|cd)[x-z]{3}-?[0-9]+$", minLength: 12, maxLength: 14}
        amount: {type: number, exclusiveMinimum: 10, maximum: 11, multipleOf: 0.25}
        count: {type: integer, minimum: 7, maximum: 9}
        when: {type: string, format: date-time}
        kind: {type: string, const: odd}
        list: {type: array, items: {type: string, minLength: 50}}
        flag: {type: boolean}
    template:
      - {prefix: To, arg: to}
      - {prefix: Members, arg: members}
      - {prefix: Code, arg: code}
      - {prefix: Amount, arg: amount}
      - {prefix: Count, arg: count}
      - {prefix: When, arg: when}
      - {prefix: Kind, arg: kind}
      - {prefix: List, arg: list}
      - {prefix: Flag, arg: flag}
`))
	if err != nil {
		t.Fatal(err)
	}
	sample, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*gate.Policy{policy, sample} {
		for _, tool := range p.Tools() {
			first, err := callsOf(tool, p)
			if err != nil {
				t.Errorf("%s: %v", tool.Name, err)
				continue
			}
			again, err := callsOf(tool, p)
			if err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
				t.Errorf("%s: the calls are others the second time", tool.Name)
			}
			if len(tool.Recipients) == 0 {
				continue
			}
			if len(first) != 1+len(tool.Recipients) {
				t.Errorf("%s: %d calls for %d places of recipients", tool.Name, len(first), len(tool.Recipients))
			}
			for i, v := range first {
				seen := map[any]bool{}
				for n, path := range tool.Recipients {
					for _, to := range path.Values(any(v.args)) {
						if s, _ := to.(string); seen[to] || !strings.Contains(s, "outside") && !strings.HasPrefix(s, "+1202555") {
							t.Errorf("%s: recipient %v", v.name, to)
						}
						seen[to] = true
					}
					if (i == 0 || i == n+1) && len(path.Values(any(v.args))) == 0 {
						t.Errorf("%s: no recipient at %s", v.name, path)
					}
				}
			}
		}
	}
	for _, bad := range []string{`{"type":"number","minimum":2,"maximum":1}`, `{"type":"string","pattern":"^a$","minLength":4}`, `{"type":"string","pattern":"("}`} {
		var s schemaNode
		if err := json.Unmarshal([]byte(bad), &s); err != nil {
			t.Fatal(err)
		}
		if v, err := (&maker{}).value(&s, nil); err == nil {
			t.Errorf("%s is met by %v", bad, v)
		}
	}
}
