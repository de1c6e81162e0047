// Package examples runs the worked agents as what they are: processes that talk to a real server.
package examples

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// patience is how long anything is waited for that must come.
	patience = 20 * time.Second
	// minRead is the server's. A person who is asked twice in a row takes fifteen times that for an answer to count.
	minRead  = 5 * time.Millisecond
	readTime = 40 * minRead
)

// hardArgs are arguments whose canonical form is easy to get wrong: names out of order, and characters that some JSON
// writers escape and others do not.
const hardArgs = `{"to":["sam@example.com"],"subject":"Lease <4711> & \"annex\"","body":"Grüße, 署名 😀\n\\u2028 is no escape here, \u2028 is one.\tC:\\temp </end>"}`

const plainArgs = `{"to":["sam@example.com"],"subject":"Lease","body":"The signed lease is attached."}`

func TestExamples(t *testing.T) {
	watch(t)
	bin := t.TempDir()
	command(t, "..", nil, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(bin, "bot"), "./cmd/bot")
	s := serve(t, filepath.Join(bin, "bot"))
	for _, x := range []struct {
		name  string
		start []string // the command, before the task's file
	}{
		{"go", buildGo(t, bin)},
		{"python", []string{"python3", "-B", absolute(t, "python/agent.py")}},
		{"typescript", buildTypeScript(t)},
	} {
		t.Run(x.name, func(t *testing.T) {
			e := &example{server: s, name: x.name, start: x.start}
			t.Run("yes", e.yes)
			t.Run("webhook", e.webhook)
			t.Run("modify", e.modify)
			t.Run("unclear", e.unclear)
			t.Run("decline", e.decline)
			t.Run("expiry", e.expiry)
			t.Run("refusal", e.refusal)
			t.Run("other arguments under a used key", e.otherArguments)
			t.Run("killed before the answer, and between act and result", e.killedAfterActing)
			t.Run("killed between begin and act", e.killedBeforeActing)
		})
	}
}

// watch opens every folder of the repository. go test repeats an old verdict until something changes that the test has
// opened, and does not see what its children open: the program and the agents.
func watch(t *testing.T) {
	t.Helper()
	must(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name != ".." && strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin" {
			return fs.SkipDir
		}
		return nil
	}))
}

func buildGo(t *testing.T, bin string) []string {
	t.Helper()
	command(t, "..", nil, "go", "build", "-o", filepath.Join(bin, "agent"), "./examples/go")
	return []string{filepath.Join(bin, "agent")}
}

// buildTypeScript installs from the lock file and compiles in a directory of the test.
func buildTypeScript(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json"} {
		raw, err := os.ReadFile(filepath.Join("typescript", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
	}
	must(t, os.CopyFS(filepath.Join(dir, "src"), os.DirFS("typescript/src")))
	command(t, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--prefer-offline")
	command(t, dir, nil, "npm", "run", "--silent", "build")
	return []string{"node", filepath.Join(dir, "dist", "agent.js")}
}

// example is one of the agents.
type example struct {
	server *server
	name   string
	start  []string
}

// yes: the action runs once, with exactly what was shown, whatever is in the arguments; a second start runs nothing.
func (e *example) yes(t *testing.T) {
	s := e.scene(t, "email.send", hardArgs)
	a := s.run(nil)
	o := s.opened(a)
	if o.Tool != "email.send" || !sameJSON(t, o.Args, []byte(hardArgs)) {
		t.Errorf("the offer is %s %s", o.Tool, o.Args)
	}
	for _, shown := range []string{"sam@example.com", `Lease <4711> & "annex"`, "Grüße, 署名 😀"} {
		if !strings.Contains(o.ShownText, shown) {
			t.Errorf("the person was not shown %q", shown)
		}
	}
	s.acted(0)
	s.answer("ya send it")
	a.ends(0)
	s.acted(1, o)
	s.state(o, "succeeded")
	if got := s.proxy.calls("/begin"); len(got) != 1 || got[0].body.ArgsSHA256 != o.ArgsSHA256 {
		t.Errorf("begun with %+v; the approved hash is %s", got, o.ArgsSHA256)
	}
	again := s.run(nil)
	again.ends(0)
	s.acted(1, o)
	if n := len(s.offers()); n != 1 {
		t.Errorf("two starts made %d offers", n)
	}
}

// webhook: the agent takes what the server signed, once, and nothing else.
func (e *example) webhook(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	r := s.relay()
	a := s.run(r)
	a.says("webhooks: ")
	r.connect(a.word("webhooks: "))
	o := s.opened(a)
	d := r.delivery(func(d delivery) bool { return strings.Contains(string(d.body), o.ID) }, 1)
	if d.status != http.StatusNoContent {
		t.Fatalf("a delivery of the server was answered with %d", d.status)
	}
	var ev struct{ Type, ID string }
	must(t, json.Unmarshal(d.body, &ev))
	if ev.Type != "offer.opened" || ev.ID != d.header.Get("webhook-id") {
		t.Errorf("the delivery was %+v", ev)
	}
	a.says(": offer.opened")

	again := d.header.Clone()
	if got := r.post(again, d.body); got != http.StatusNoContent {
		t.Errorf("the same delivery again was answered with %d", got)
	}
	forged := bytes.Replace(d.body, []byte("offer.opened"), []byte("offer.forged"), 1)
	head := func(change func(http.Header)) http.Header {
		h := d.header.Clone()
		change(h)
		return h
	}
	signed := func(secret []byte, at time.Time, body []byte) http.Header {
		return head(func(h http.Header) {
			h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
			h.Set("webhook-signature", sign(secret, h, body))
		})
	}
	ours, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.secret, "whsec_"))
	must(t, err)
	for _, c := range []struct {
		name   string
		header http.Header
		body   []byte
	}{
		{"another body", d.header, forged},
		{"another id", head(func(h http.Header) { h.Set("webhook-id", "0193") }), d.body},
		{"no signature", head(func(h http.Header) { h.Del("webhook-signature") }), d.body},
		{"no id", head(func(h http.Header) { h.Del("webhook-id") }), d.body},
		{"no time", head(func(h http.Header) { h.Del("webhook-timestamp") }), d.body},
		{"a later time", head(func(h http.Header) { h.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix()+1, 10)) }), d.body},
		{"another version", head(func(h http.Header) {
			h.Set("webhook-signature", strings.Replace(h.Get("webhook-signature"), "v1,", "v2,", 1))
		}), d.body},
		{"another secret", signed([]byte(rand.Text()), time.Now(), forged), forged},
		{"an empty secret", signed(nil, time.Now(), forged), forged},
		{"signed six minutes ago", signed(ours, time.Now().Add(-6*time.Minute), forged), forged},
		{"signed in six minutes", signed(ours, time.Now().Add(6*time.Minute), forged), forged},
	} {
		if got := r.post(c.header, c.body); got != http.StatusUnauthorized {
			t.Errorf("%s: answered with %d", c.name, got)
		}
	}
	// One of two signatures is enough: that is how a secret is changed.
	two := head(func(h http.Header) {
		h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))+" "+h.Get("webhook-signature"))
	})
	if got := r.post(two, d.body); got != http.StatusNoContent {
		t.Errorf("two signatures, one of them good, were answered with %d", got)
	}
	s.answer("yes")
	a.ends(0)
	s.acted(1, o)
	log := a.log()
	if strings.Contains(log, "offer.forged") {
		t.Error("a forged event was taken")
	}
	if n := strings.Count(log, ": offer.opened"); n != 1 {
		t.Errorf("an event that came three times was taken %d times", n)
	}
	if n := strings.Count(log, "delivery refused"); n != 11 {
		t.Errorf("%d deliveries were refused", n)
	}

	// An empty secret would verify what anybody signs.
	for _, secret := range []string{"whsec_", "whsec_c2hvcnQ="} {
		weak := s.start(nil, "COUNTERSIGN_WEBHOOK_SECRET="+secret, "COUNTERSIGN_WEBHOOK_ADDR=127.0.0.1:0")
		if code := weak.wait(); code == 0 || strings.Contains(weak.log(), "webhooks: ") {
			t.Errorf("the secret %q was taken: %d %s", secret, code, weak.log())
		}
	}
}

func sign(secret []byte, h http.Header, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// modify: what the person changed goes into a new offer, which shows it and needs its own yes.
func (e *example) modify(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	r := s.relay()
	a := s.run(r)
	a.says("webhooks: ")
	r.connect(a.word("webhooks: "))
	first := s.opened(a)
	s.answer("ok but cc Dana")
	second := s.opened(a)
	want := `{"to":["sam@example.com"],"cc":["dana@example.com"],"subject":"Lease","body":"The signed lease is attached."}`
	if second.ID == first.ID || !sameJSON(t, second.Args, []byte(want)) || !strings.Contains(second.ShownText, "dana@example.com") {
		t.Fatalf("the second offer is %+v", second)
	}
	if got := s.proxy.calls("/v1/offers"); len(got) != 2 || got[1].body.Supersedes != first.ID {
		t.Errorf("the second offer does not replace the first: %+v", got)
	}
	s.acted(0)
	s.state(first, "modified")
	// A start in between comes to the same two offers.
	a.kill()
	r.disconnect()
	a = s.run(nil)
	a.says("answer: modified")
	s.waiting(second)
	s.answer("yes")
	a.ends(0)
	s.acted(1, second)
	s.state(second, "succeeded")
	if n := len(s.offers()); n != 2 {
		t.Errorf("there are %d offers", n)
	}
}

// unclear: the agent asks again, twice at most and once for each event, and acts on nothing but the sure yes.
func (e *example) unclear(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	r := s.relay()
	a := s.run(r)
	a.says("webhooks: ")
	r.connect(a.word("webhooks: "))
	o := s.opened(a)
	for n := 1; n <= 3; n++ {
		s.reply("hmm let me think")
		d := r.delivery(func(d delivery) bool { return strings.Contains(string(d.body), `"type":"reply.unresolved"`) }, n)
		if d.status != http.StatusNoContent {
			t.Errorf("reply.unresolved was answered with %d", d.status)
		}
		if got := r.post(d.header, d.body); got != http.StatusNoContent {
			t.Errorf("the same delivery again was answered with %d", got)
		}
		asked := s.proxy.calls("/v1/operations")
		if len(asked) != min(n, 2) {
			t.Fatalf("after %d unclear answers the agent has asked %d times", n, len(asked))
		}
		// A delivery whose answer was lost comes again, to an agent that may have forgotten it: the key is the event's id.
		if n <= 2 && asked[n-1].key != d.header.Get("webhook-id") {
			t.Errorf("the question to event %s was asked under the key %q", d.header.Get("webhook-id"), asked[n-1].key)
		}
	}
	a.says("asked again: operation ")
	s.state(offer{OperationID: a.word("asked again: operation ")}, "succeeded") // the text is on its way
	s.acted(0)
	s.answer("yes send it")
	a.ends(0)
	s.acted(1, o)
	s.state(o, "succeeded")
}

func (e *example) decline(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	a := s.run(nil)
	o := s.opened(a)
	s.answer("no")
	a.ends(1)
	a.says("answer: declined")
	s.state(o, "declined")
	s.run(nil).ends(1)
	s.acted(0)
}

func (e *example) expiry(t *testing.T) {
	s := e.scene(t, "letter.send", `{"to":"sam@example.com","text":"The lease ends."}`)
	a := s.run(nil)
	o := s.opened(a)
	a.ends(1)
	a.says("answer: expired")
	s.state(o, "expired")
	s.reply("yes")
	s.run(nil).ends(1)
	s.acted(0)
}

// refusal: what the gate refuses is put to nobody and not tried in another way.
func (e *example) refusal(t *testing.T) {
	for _, c := range []struct{ code, args string }{
		{"model_confirm_parameter", `{"to":["sam@example.com"],"subject":"Lease","body":"x","user_confirmed":true}`},
		{"args_invalid", `{"to":["sam@example.com"],"subject":"Lease"}`},
	} {
		s := e.scene(t, "email.send", c.args)
		a := s.run(nil)
		a.ends(1)
		a.says("refused: " + c.code)
		s.acted(0)
		if n := len(s.offers()); n != 0 {
			t.Errorf("%s: %d offers", c.code, n)
		}
		if got := s.proxy.calls("/v1/offers"); len(got) != 1 {
			t.Errorf("%s: asked %d times", c.code, len(got))
		}
	}
}

// otherArguments: a start that would run something else under the key of what was approved gets nowhere.
func (e *example) otherArguments(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	a := s.run(nil)
	o := s.opened(a)
	a.kill()
	s.answer("yes")
	s.state(o, "approved")
	s.write("email.send", strings.Replace(plainArgs, "sam@", "mallory@", 1))
	a = s.run(nil)
	a.ends(1)
	a.says("refused: idempotency_conflict")
	s.acted(0)

	// And where a proxy answers with the offer all the same, the hash is the agent's own: begin refuses it.
	s.proxy.answer("/v1/offers", http.StatusCreated, fmt.Sprintf(`{"id":%q,"operation_id":%q,"args_sha256":%q}`, o.ID, o.OperationID, o.ArgsSHA256))
	a = s.run(nil)
	a.ends(1)
	a.says("refused: args_hash_mismatch")
	s.acted(0)
}

// killedAfterActing: the agent dies three times, and acts once.
func (e *example) killedAfterActing(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	// The server has made the offer; the agent never hears of it.
	held := s.proxy.hold("/v1/offers", true)
	a := s.run(nil)
	s.hears(held)
	a.kill()
	s.proxy.release()
	a = s.run(nil)
	o := s.opened(a)
	if n := len(s.offers()); n != 1 {
		t.Fatalf("the same Idempotency-Key made %d offers", n)
	}
	// It has acted; its result never leaves.
	held = s.proxy.hold("/result", false)
	s.answer("yes")
	s.hears(held)
	s.acted(1, o)
	a.kill()
	s.proxy.release()
	s.state(o, "running")
	a = s.run(nil)
	a.ends(0)
	a.says("begun before: ")
	s.acted(1, o)
	s.state(o, "succeeded")
}

// killedBeforeActing: whoever cannot know whether it has acted does not act again.
func (e *example) killedBeforeActing(t *testing.T) {
	s := e.scene(t, "email.send", plainArgs)
	held := s.proxy.hold("/begin", true)
	a := s.run(nil)
	o := s.opened(a)
	s.answer("yes")
	s.hears(held)
	a.kill()
	s.proxy.release()
	s.state(o, "running")
	a = s.run(nil)
	a.ends(1)
	a.says("begun before: ")
	a.says("result: failed")
	s.acted(0)
	s.state(o, "failed")
}

// scene is one agent, one person and one task.
type scene struct {
	t       *testing.T
	e       *example
	person  string // id
	address string
	task    string // file
	id      string // the task's
	outbox  string
	proxy   *proxy
	agents  []*process
	secrets []string
	after   string // position in the feed
}

func (e *example) scene(t *testing.T, tool, args string) *scene {
	t.Helper()
	dir, id := t.TempDir(), strings.ToLower(rand.Text())
	s := &scene{t: t, e: e, address: "sim:" + id, task: filepath.Join(dir, "task.json"), id: id, outbox: filepath.Join(dir, "outbox.jsonl"),
		proxy: newProxy(t, e.server.url), secrets: []string{e.server.agentKey, "sim:" + id, "sam@example.com", "dana@example.com", "lease is attached"}}
	var added struct{ ID string }
	e.server.bot(t, &added, "people", "add", "--name", "Alex", "--address", s.address, "--as", "owner")
	s.person = added.ID
	s.write(tool, args)
	s.after = s.e.server.end(t)
	t.Cleanup(func() {
		for _, a := range s.agents {
			for _, secret := range s.secrets {
				if strings.Contains(a.log(), secret) {
					t.Errorf("the log has %q in it:\n%s", secret, a.log())
				}
			}
			if t.Failed() {
				t.Logf("an agent's log:\n%s", a.log())
			}
		}
	})
	return s
}

func (s *scene) write(tool, args string) {
	s.t.Helper()
	raw, err := json.Marshal(map[string]any{"id": s.id, "tool": tool, "args": json.RawMessage(args)})
	must(s.t, err)
	must(s.t, os.WriteFile(s.task, raw, 0o600))
}

// run starts the agent, with webhooks where r is given.
func (s *scene) run(r *relay) *process {
	s.t.Helper()
	if r == nil {
		return s.start(nil)
	}
	return s.start(r, "COUNTERSIGN_WEBHOOK_SECRET="+r.secret, "COUNTERSIGN_WEBHOOK_ADDR=127.0.0.1:0")
}

func (s *scene) start(r *relay, environ ...string) *process {
	s.t.Helper()
	if r != nil {
		s.secrets = append(s.secrets, strings.TrimPrefix(r.secret, "whsec_"))
	}
	argv := append(append([]string{}, s.e.start...), s.task)
	environ = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "COUNTERSIGN_URL=" + s.proxy.url,
		"COUNTERSIGN_KEY=" + s.e.server.agentKey, "COUNTERSIGN_PERSON=" + s.address, "AGENT_OUTBOX=" + s.outbox}, environ...)
	a := spawn(s.t, environ, argv...)
	s.agents = append(s.agents, a)
	return a
}

// reply is a text of the person, who has read what came before.
func (s *scene) reply(text string) {
	s.t.Helper()
	<-time.After(readTime)
	body, err := json.Marshal(map[string]string{"id": rand.Text(), "address": s.address, "text": text})
	must(s.t, err)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	status, raw := request(s.t, ctx, http.MethodPost, s.e.server.url+"/webhooks/sim/messages", "", body)
	if status != http.StatusOK {
		s.t.Fatalf("the text was answered with %d %s", status, raw)
	}
}

// late are the reasons why an answer came too early, or the reader was too slow, on a machine that is busy. A person
// then says it again.
var late = []string{"too_soon", "texts_crossed", "not_the_last_text", "last_text_unproven", "reader_failed"}

// answer is a reply that closes the offer.
func (s *scene) answer(text string) {
	s.t.Helper()
	s.after = s.e.server.end(s.t)
	for range 5 {
		s.reply(text)
		kind, d := s.event("offer.closed", "reply.unresolved")
		if kind == "offer.closed" {
			return
		}
		if !slices.Contains(late, d.Why) {
			s.t.Fatalf("the answer %q closed nothing: %s", text, d.Why)
		}
		s.t.Logf("the answer %q is given again: %s", text, d.Why)
	}
	s.t.Fatalf("the answer %q closed nothing", text)
}

type offer struct {
	ID          string          `json:"id"`
	OperationID string          `json:"operation_id"`
	PersonID    string          `json:"person_id"`
	State       string          `json:"state"`
	Tool        string          `json:"tool"`
	Args        json.RawMessage `json:"args"`
	ArgsSHA256  string          `json:"args_sha256"`
	ShownText   string          `json:"shown_text"`
}

type operation struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// opened waits for the person's next offer to be on the screen, and for the agent to have heard of it.
func (s *scene) opened(a *process) offer {
	s.t.Helper()
	_, d := s.event("offer.opened")
	o := d.Offer
	a.says("asked: operation " + o.OperationID)
	return o
}

type data struct {
	Offer    offer  `json:"offer"`
	PersonID string `json:"person_id"`
	Why      string `json:"why"`
}

// event waits for the next event about the person that is of one of the types.
func (s *scene) event(kinds ...string) (kind string, d data) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		var page struct {
			Events []struct {
				Type string
				Data data
			}
			Next string
		}
		s.e.server.get(s.t, ctx, "/v1/events?limit=1&wait=20s&after="+url.QueryEscape(s.after), &page)
		s.after = page.Next
		for _, ev := range page.Events {
			if slices.Contains(kinds, ev.Type) && (ev.Data.Offer.PersonID == s.person || ev.Data.PersonID == s.person) {
				return ev.Type, ev.Data
			}
		}
	}
}

// state waits until the operation of an offer is decided, and looks how.
func (s *scene) state(o offer, want string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var op operation
	s.e.server.get(s.t, ctx, "/v1/operations/"+o.OperationID+"?wait=20s", &op)
	if op.State != want {
		s.t.Errorf("the operation is %s, want %s", op.State, want)
	}
}

// waiting checks that an offer is still open.
func (s *scene) waiting(o offer) {
	s.t.Helper()
	for _, got := range s.offers() {
		if got.ID == o.ID && got.State != "open" {
			s.t.Errorf("the offer is %s", got.State)
		}
	}
}

func (s *scene) offers() []offer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var list struct{ Offers []offer }
	s.e.server.get(s.t, ctx, "/v1/offers?person_id="+s.person, &list)
	return list.Offers
}

// acted checks what the action has done to the world: n lines, and the one line has the arguments of the offer.
func (s *scene) acted(n int, of ...offer) {
	s.t.Helper()
	raw, err := os.ReadFile(s.outbox)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(raw) == 0 {
		lines = nil
	}
	if len(lines) != n {
		s.t.Fatalf("the action ran %d times, want %d", len(lines), n)
	}
	for i, o := range of {
		var did struct {
			Operation string
			Args      json.RawMessage
		}
		must(s.t, json.Unmarshal([]byte(lines[i]), &did))
		if did.Operation != o.OperationID || !sameJSON(s.t, did.Args, o.Args) {
			s.t.Errorf("done was %s, approved was %s", lines[i], o.Args)
		}
	}
}

// hears waits for a call to be held.
func (s *scene) hears(held <-chan struct{}) {
	s.t.Helper()
	select {
	case <-held:
	case <-time.After(patience):
		s.t.Fatal("the agent did not call")
	}
}

// proxy stands between an agent and the server, and can hold a call for as long as it takes to kill the agent.
type proxy struct {
	url string

	mu      sync.Mutex
	seen    []call
	suffix  string // of what is held
	passOn  bool   // before it is held
	held    chan struct{}
	let     chan struct{}
	instead map[string]canned
}

// call is what an agent sent.
type call struct {
	path, key string
	body      struct {
		ArgsSHA256 string `json:"args_sha256"`
		Supersedes string
	}
}

type canned struct {
	status int
	body   string
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	must(t, err)
	p := &proxy{instead: map[string]canned{}}
	to := httputil.NewSingleHostReverseProxy(u)
	to.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) } // the agent was killed
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		c := call{path: r.URL.Path, key: r.Header.Get("Idempotency-Key")}
		_ = json.Unmarshal(body, &c.body) // where there is none, nothing is in it
		p.mu.Lock()
		p.seen = append(p.seen, c)
		instead, canned := p.instead[r.URL.Path]
		hold := p.held != nil && strings.HasSuffix(r.URL.Path, p.suffix)
		passOn, held, let := p.passOn, p.held, p.let
		if hold {
			p.held = nil
		}
		p.mu.Unlock()
		switch {
		case canned:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(instead.status)
			_, _ = io.WriteString(w, instead.body)
		case hold:
			if passOn {
				to.ServeHTTP(httptest.NewRecorder(), r.WithContext(t.Context()))
			}
			close(held)
			<-let
		default:
			to.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		p.release()
		srv.CloseClientConnections()
		srv.Close()
	})
	p.url = srv.URL
	return p
}

// hold holds the next call of a path with that ending: its answer where passOn says so, else the call itself. The
// channel closes when it has come.
func (p *proxy) hold(suffix string, passOn bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suffix, p.passOn, p.held, p.let = suffix, passOn, make(chan struct{}), make(chan struct{})
	return p.held
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.let != nil {
		close(p.let)
	}
	p.held, p.let = nil, nil
}

func (p *proxy) answer(path string, status int, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.instead[path] = canned{status, body}
}

// calls returns what came to paths with that ending.
func (p *proxy) calls(suffix string) (got []call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.seen {
		if strings.HasSuffix(c.path, suffix) {
			got = append(got, c)
		}
	}
	return got
}

// relay is the endpoint that the server knows; it passes deliveries on to the agent as they are.
type relay struct {
	t      *testing.T
	secret string

	mu     sync.Mutex
	target string
	got    []delivery
	change chan struct{} // closed when a delivery came or a target was set
}

type delivery struct {
	header http.Header
	body   []byte
	status int
}

func (s *scene) relay() *relay {
	s.t.Helper()
	r := &relay{t: s.t, change: make(chan struct{})}
	srv := httptest.NewServer(r)
	var added struct{ ID, Secret string }
	s.e.server.bot(s.t, &added, "endpoints", "add", "--allow-private", "--url", srv.URL)
	r.secret = added.Secret
	s.t.Cleanup(func() {
		r.disconnect()
		srv.Close()
		s.e.server.bot(s.t, nil, "endpoints", "remove", added.ID)
	})
	return r
}

// ServeHTTP passes a delivery on. Until there is an agent it waits for one.
func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	for r.target == "" {
		c := r.change
		r.mu.Unlock()
		select {
		case <-c:
		case <-req.Context().Done():
			return
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
	status := r.post(req.Header, body)
	r.mu.Lock()
	r.got = append(r.got, delivery{req.Header.Clone(), body, status})
	r.changed()
	r.mu.Unlock()
	w.WriteHeader(status)
}

// changed is called with the lock held.
func (r *relay) changed() {
	close(r.change)
	r.change = make(chan struct{})
}

func (r *relay) connect(target string) { r.set(target) }

// disconnect lets deliveries go nowhere.
func (r *relay) disconnect() { r.set("-") }

func (r *relay) set(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	r.changed()
}

// post sends a delivery to the agent and returns the status. An agent that is gone is an endpoint that is down.
func (r *relay) post(h http.Header, body []byte) int {
	r.mu.Lock()
	target := r.target
	r.mu.Unlock()
	if target == "-" {
		return http.StatusServiceUnavailable
	}
	req, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return http.StatusInternalServerError
	}
	for _, name := range []string{"Content-Type", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		if v := h.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return http.StatusServiceUnavailable
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// delivery waits for the nth delivery that fits.
func (r *relay) delivery(fits func(delivery) bool, n int) delivery {
	r.t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		left := n
		for _, d := range r.got {
			if fits(d) {
				left--
			}
			if left == 0 {
				r.mu.Unlock()
				return d
			}
		}
		c := r.change
		r.mu.Unlock()
		select {
		case <-c:
		case <-late:
			r.t.Fatal("no delivery came")
		}
	}
}

// process is a child whose output is kept.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	out    bytes.Buffer
	change chan struct{}
}

// Write implements io.Writer for what the child prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(b)
	close(p.change)
	p.change = make(chan struct{})
	return len(b), nil
}

func spawn(t *testing.T, environ []string, argv ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{}), change: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environ, p, p
	must(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its code is in ProcessState
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits for words in the output.
func (p *process) says(words string) {
	p.t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		there, c := strings.Contains(p.out.String(), words), p.change
		p.mu.Unlock()
		if there {
			return
		}
		select {
		case <-c:
		case <-p.done:
			if !strings.Contains(p.log(), words) {
				p.t.Fatalf("it ended without saying %q:\n%s", words, p.log())
			}
		case <-late:
			p.t.Fatalf("it did not say %q:\n%s", words, p.log())
		}
	}
}

// word returns the rest of a line behind a prefix.
func (p *process) word(prefix string) string {
	_, rest, _ := strings.Cut(p.log(), prefix)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("it did not end:\n%s", p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) ends(code int) {
	p.t.Helper()
	if got := p.wait(); got != code {
		p.t.Fatalf("it ended with %d, want %d:\n%s", got, code, p.log())
	}
}

// server is a real `bot serve`.
type server struct {
	path     string
	url      string
	environ  []string
	agentKey string
	ownerKey string
}

// A tool whose offers do not live for long, so that one can be seen to expire.
const shortLived = `
  letter.send:
    description: Send a letter.
    effect: send
    capability: network.send
    recipients: [to]
    label: {verb: send a letter, to: recipients}
    expires: 700ms
    schema:
      type: object
      required: [to, text]
      additionalProperties: false
      properties:
        to: {type: string, maxLength: 320}
        text: {type: string, maxLength: 1000}
    template:
      - {prefix: To, arg: to}
      - {prefix: Text, arg: text, body: true}
`

func serve(t *testing.T, bot string) *server {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	raw, err := os.ReadFile("../gate/sample.yaml")
	must(t, err)
	must(t, os.WriteFile(policy, append(raw, shortLived...), 0o600))
	s := &server{path: bot, environ: []string{"PATH=" + os.Getenv("PATH"), "COUNTERSIGN_DATABASE_URL=sqlite:" + filepath.Join(dir, "test.db"),
		"COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR=127.0.0.1:0", "COUNTERSIGN_MIN_READ=" + minRead.String(),
		"COUNTERSIGN_POLICY=" + policy, "COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS=1"}}
	child := spawn(t, s.environ, bot, "serve", "--sim")
	child.says(`"msg":"listening"`)
	for line := range strings.Lines(child.log()) {
		var l struct{ Msg, Addr string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" {
			s.url = "http://" + l.Addr
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", child.log())
		}
	})
	var k struct{ Key string }
	s.bot(t, &k, "keys", "create", "--name", "agent", "--scope", "agent")
	s.agentKey = k.Key
	s.bot(t, &k, "keys", "create", "--name", "observer", "--scope", "owner")
	s.ownerKey = k.Key
	return s
}

// bot runs another command beside the server.
func (s *server) bot(t *testing.T, out any, args ...string) {
	t.Helper()
	raw := command(t, ".", s.environ, s.path, append(args, "--json")...)
	if out != nil {
		must(t, json.Unmarshal(raw, out))
	}
}

// end is the position behind the last event.
func (s *server) end(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	after := ""
	for {
		var page struct {
			Events []json.RawMessage
			Next   string
		}
		s.get(t, ctx, "/v1/events?limit=1000&after="+url.QueryEscape(after), &page)
		after = page.Next
		if len(page.Events) == 0 {
			return after
		}
	}
}

func (s *server) get(t *testing.T, ctx context.Context, path string, out any) {
	t.Helper()
	status, raw := request(t, ctx, http.MethodGet, s.url+path, s.ownerKey, nil)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, raw)
	}
	must(t, json.Unmarshal(raw, out))
}

func request(t *testing.T, ctx context.Context, method, url, key string, body []byte) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, raw
}

// command runs something to its end and returns what it printed.
func command(t *testing.T, dir string, environ []string, name string, args ...string) []byte {
	t.Helper()
	// A test's own context is over when its clean-up runs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, environ, &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	must(t, err)
	return abs
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	must(t, json.Unmarshal(a, &x))
	must(t, json.Unmarshal(b, &y))
	return reflect.DeepEqual(x, y)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
