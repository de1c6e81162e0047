package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

//go:embed demo.yaml
var demoPolicy []byte

const demoHook = "https://approve.example.test"

// script plays conversations against `bot serve`, which runs as a process of its own: agent's calls over HTTP with a
// key, texts over Twilio's wire with its signature, and looks at what came of each.
type script struct {
	e    *env
	ctx  context.Context //nolint:containedctx // one process, one script
	json bool

	self    string   // this program
	environ []string // of the server, and of commands beside it
	log     io.Writer
	server  *serverProcess
	twilio  *fakeTwilio
	agent   *agentClient
	store   store // beside the server, for what no call shows: ledger, undecided messages, pending messages

	free  []string // numbers that are nobody's yet
	cast  []scriptPerson
	feed  []heard // every event so far
	next  string  // the feed's position
	made  []offers.Offer
	yes   map[string]bool // operations that a yes is to have released
	note  string          // of the step that is played
	steps int
	held  int
}

// scriptPerson is somebody who is asked.
type scriptPerson struct {
	id     string
	number string
}

// heard is an event with its data.
type heard struct {
	offers.Event
	data eventData
}

// script runs the whole of it. Exit 1 unless every step held.
func (c *demoCmd) script(e *env, dir string) error {
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	s := &script{e: e, ctx: ctx, json: c.JSON, log: io.Discard, yes: map[string]bool{}}
	if c.Verbose {
		s.log = e.stderr
	}
	if err := s.setUp(dir, c.DatabaseURL); err != nil {
		return err
	}
	defer s.store.Close() //nolint:errcheck // the process ends
	defer func() { s.server.kill() }()
	s.play()
	if err := e.ctx.Err(); err != nil {
		return err
	}
	return s.verdict()
}

// verdict prints how many steps held. Its answer is no unless all did, and there were some.
func (s *script) verdict() error {
	if s.json {
		if err := s.e.printJSON(map[string]int{"held": s.held, "steps": s.steps}); err != nil {
			return err
		}
	} else {
		s.e.printf("%d of %d steps held\n", s.held, s.steps)
	}
	if s.held != s.steps || s.steps == 0 {
		return noError{}
	}
	return nil
}

// setUp makes database, policy, Twilio's side, server and key.
func (s *script) setUp(dir, databaseURL string) error {
	var err error
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if databaseURL == "" {
		databaseURL = "sqlite:" + filepath.Join(dir, "demo.db")
	}
	if s.store, err = openStore(s.ctx, databaseURL, true); err != nil {
		return err
	}
	if _, err := s.store.Migrate(s.ctx); err != nil {
		return errors.Join(err, s.store.Close())
	}
	err = s.start(dir, databaseURL)
	if err != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

func (s *script) start(dir, databaseURL string) error {
	ours, err := s.cleanNumber()
	if err != nil {
		return err
	}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, demoPolicy, 0o600); err != nil {
		return err
	}
	s.twilio = newFakeTwilio(demoHook+"/webhooks/twilio/messages", ours)
	var lc net.ListenConfig
	l, err := lc.Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	api := &http.Server{Handler: s.twilio, ReadHeaderTimeout: demoPatience}
	go api.Serve(l) //nolint:errcheck // ends with the script
	context.AfterFunc(s.ctx, func() { _ = api.Close() })
	set := map[string]string{
		"COUNTERSIGN_ADDR": "127.0.0.1:0", "COUNTERSIGN_DATABASE_URL": databaseURL, "COUNTERSIGN_PUBLIC_URL": demoHook,
		"COUNTERSIGN_POLICY": policy, "COUNTERSIGN_MIN_READ": demoMinRead.String(),
		"TWILIO_ACCOUNT_SID": s.twilio.account, "TWILIO_AUTH_TOKEN": s.twilio.token, "TWILIO_FROM": ours,
		"TWILIO_API_URL": "http://" + l.Addr().String(),
	}
	s.environ = serverEnviron(s.e.vars, set)
	if s.server, err = startServer(s.ctx, s.self, s.environ, s.log); err != nil {
		return err
	}
	// From now on the same address, also after a restart.
	set["COUNTERSIGN_ADDR"] = s.server.addr
	s.environ = serverEnviron(s.e.vars, set)
	s.agent = &agentClient{base: "http://" + s.server.addr}
	return nil
}

// serverEnviron is this process's environment without any setting of a server, and then set.
func serverEnviron(vars, set map[string]string) []string {
	out := maps.Clone(vars)
	for _, v := range settings() {
		delete(out, v.env)
		delete(out, v.env+"_FILE")
	}
	maps.Copy(out, set)
	var list []string
	for k, v := range out {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

// The demo's numbers: half of those that are set aside for examples are ours, half are people's.
const (
	demoNumbers = 100
	demoOurs    = 50
)

func demoNumber(i int) string { return fmt.Sprintf("+120255501%02d", i) }

// cleanNumber picks a number of ours that nobody writes to yet, so that a database can be played in again. It refuses a
// database with other people in it: their texts would end here.
func (s *script) cleanNumber() (string, error) {
	ours, theirs := map[people.Address]bool{}, map[people.Address]bool{}
	for i := range demoNumbers {
		if i < demoOurs {
			ours[people.Address("sms:"+demoNumber(i))] = true
			continue
		}
		theirs[people.Address("sms:"+demoNumber(i))] = true
		s.free = append(s.free, demoNumber(i))
	}
	all, err := s.store.People(s.ctx, people.DefaultAccount)
	if err != nil {
		return "", err
	}
	for _, p := range all {
		for _, b := range p.Addresses {
			if !strings.HasPrefix(p.Name, demoName) || !theirs[b.Address] {
				return "", usage("That database has people in it, and the demo would take their texts. Name an empty one.")
			}
			delete(ours, b.OurNumber)
		}
	}
	for i := range demoOurs {
		if ours[people.Address("sms:"+demoNumber(i))] {
			return demoNumber(i), nil
		}
	}
	return "", usage("The demo has been played in that database as often as it has numbers. Name an empty one.")
}

// demoName begins the name of everybody in the script.
const demoName = "Demo "

// notHeld is why a step did not hold.
type notHeld struct {
	what, wanted, got string
}

func (n *notHeld) Error() string {
	return fmt.Sprintf("%s: wanted %s, there was %s", n.what, n.wanted, n.got)
}

// want ends the step unless got is wanted. Like a test's Fatal it does not return then; step recovers it.
func want[T comparable](what string, got, wanted T) {
	if got != wanted {
		panic(&notHeld{what, fmt.Sprintf("%v", wanted), fmt.Sprintf("%v", got)})
	}
}

// must ends the step on an error.
func must(what string, err error) {
	if err != nil {
		panic(&notHeld{what, "no error", err.Error()})
	}
}

// step plays one step and prints a line about it.
func (s *script) step(name string, play func()) {
	if s.ctx.Err() != nil {
		return
	}
	s.steps++
	s.note = ""
	err := held(play)
	if err == nil {
		s.held++
	}
	if s.json {
		line := map[string]any{"step": s.steps, "name": name, "held": err == nil}
		if err != nil {
			line["what"], line["wanted"], line["got"] = err.what, err.wanted, err.got
		}
		if s.note != "" {
			line["note"] = s.note
		}
		_ = s.e.printJSON(line)
		return
	}
	word, tail := "ok  ", ""
	if s.note != "" {
		tail = " (" + s.note + ")"
	}
	if err != nil {
		word, tail = "FAIL", ": "+err.Error()
	}
	s.e.printf("%s %02d %s%s\n", word, s.steps, name, tail)
}

func held(play func()) (err *notHeld) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		var ok bool
		if err, ok = r.(*notHeld); !ok {
			panic(r)
		}
	}()
	play()
	return nil
}

// wait takes the time that a person needs to read.
func (s *script) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// command runs a command of this program beside the server, and reads its JSON.
func (s *script) command(v any, args ...string) {
	var out, errs bytes.Buffer
	code := run(s.ctx, append(args, "--json"), s.environ, strings.NewReader(""), &out, &errs)
	if code != exitOK {
		panic(&notHeld{"bot " + strings.Join(args, " "), "exit code 0", fmt.Sprintf("%d, %s", code, strings.TrimSpace(errs.String()))})
	}
	must("its JSON", json.Unmarshal(out.Bytes(), v))
}

// person adds somebody to ask.
func (s *script) person() scriptPerson {
	want("a free number", len(s.free) > 0, true)
	p := scriptPerson{number: s.free[0]}
	s.free = s.free[1:]
	var made struct{ ID string }
	s.command(&made, "people", "add", "--name", demoName+p.number[len(p.number)-2:], "--address", "sms:"+p.number, "--as", "owner")
	p.id = made.ID
	s.cast = append(s.cast, p)
	return p
}

// post calls the API and wants an answer.
func (s *script) post(path, key string, body any) httpAnswer {
	got, err := s.agent.post(s.ctx, path, key, body)
	must("POST "+path, err)
	return got
}

func (s *script) get(path string, v any) {
	got, err := s.agent.get(s.ctx, path)
	must("GET "+path, err)
	want("status of GET "+path, got.status, http.StatusOK)
	must("GET "+path, got.into(v))
}

func (s *script) operation(id, wait string) offers.Operation {
	var op offers.Operation
	s.get("/v1/operations/"+id+"?wait="+wait, &op)
	return op
}

func (s *script) offer(id string) offers.Offer {
	var o offers.Offer
	s.get("/v1/offers/"+id, &o)
	return o
}

// refused wants a problem document.
func refused(what string, got httpAnswer, status int, code string) {
	want("answer to "+what, fmt.Sprint(got.status, " ", got.code()), fmt.Sprint(status, " ", code))
}

// email is a mail to somebody outside.
func email(subject string) map[string]any {
	return map[string]any{"to": []string{"sam@example.com"}, "subject": subject, "body": "Friday at 12:30?\nAlex"}
}

// propose enqueues an offer to a person; more is merged into the body.
func (s *script) propose(p scriptPerson, tool string, args map[string]any, more map[string]any) offers.Offer {
	return s.proposed(s.post("/v1/offers", offers.NewID(), offerBody(p, tool, args, more)))
}

func offerBody(p scriptPerson, tool string, args, more map[string]any) map[string]any {
	body := map[string]any{"person_id": p.id, "tool": tool, "args": args}
	maps.Copy(body, more)
	return body
}

// proposed reads the answer to an offer that must be asked.
func (s *script) proposed(got httpAnswer) offers.Offer {
	want("answer to POST /v1/offers", fmt.Sprint(got.status, " ", got.code()), "201 ")
	var o struct {
		offers.Offer
		Decision string `json:"decision"`
	}
	must("the offer", got.into(&o))
	want("decision", o.Decision, "ask")
	s.made = append(s.made, o.Offer)
	return o.Offer
}

// ask proposes and waits until the person has had the time to read it.
func (s *script) ask(p scriptPerson, tool string, args map[string]any, more map[string]any) offers.Offer {
	o := s.propose(p, tool, args, more)
	s.shown(o)
	s.wait(demoRead)
	return o
}

// shown waits for the event that the provider has taken the text.
func (s *script) shown(o offers.Offer) {
	s.await("offer.opened", 0, func(h heard) bool { return h.Type == offers.OfferOpened && h.data.Offer.ID == o.ID })
}

// patience is how long something that must come is waited for: less once a step has not held, so that a script that
// goes wrong ends soon.
func (s *script) patience() time.Duration {
	if s.held < s.steps-1 {
		return demoPatience / 10
	}
	return demoPatience
}

// text waits for the n-th text to a person.
func (s *script) text(p scriptPerson, n int) string {
	ctx, cancel := context.WithTimeout(s.ctx, s.patience())
	defer cancel()
	got := s.twilio.wait(ctx, p.number, n)
	if len(got) < n {
		panic(&notHeld{"texts to the person", fmt.Sprint(n), fmt.Sprint(len(got))})
	}
	return got[n-1].body
}

// pull reads on in the feed.
func (s *script) pull(wait time.Duration) (int, error) {
	page, err := s.agent.events(s.ctx, s.next, wait.String())
	if err != nil {
		return 0, err
	}
	for _, ev := range page.Events {
		d, err := dataOf(ev)
		if err != nil {
			return 0, err
		}
		s.feed = append(s.feed, heard{ev, d})
	}
	s.next = page.Next
	return len(page.Events), nil
}

// await returns the first event from a place in the feed on that matches.
func (s *script) await(what string, from int, match func(heard) bool) heard {
	patience := s.patience()
	end := time.Now().Add(patience)
	for {
		for ; from < len(s.feed); from++ {
			if match(s.feed[from]) {
				return s.feed[from]
			}
		}
		if !time.Now().Before(end) || s.ctx.Err() != nil {
			panic(&notHeld{"event " + what, "it within " + patience.String(), "none"})
		}
		_, err := s.pull(time.Second)
		must("GET /v1/events", err)
	}
}

// door is where Twilio's posts arrive.
func (s *script) door() string { return s.agent.base + "/webhooks/twilio/messages" }

// deliver posts a text of a number and wants it acknowledged.
func (s *script) deliver(sid, number, words string) {
	got, err := s.twilio.post(s.ctx, s.door(), "", s.twilio.inbound(sid, number, words), nil)
	must("the webhook", err)
	want("answer of the webhook", fmt.Sprint(got.status, " ", string(got.body)), "200 <Response></Response>")
}

// reply is a person's text and what came of it: the event about the message, or the one that it closed an offer.
func (s *script) reply(p scriptPerson, words string) heard {
	from := len(s.feed)
	s.deliver("SM"+randomHex(), p.number, words)
	return s.outcome(p, words, from)
}

func (s *script) outcome(p scriptPerson, words string, from int) heard {
	return s.await(fmt.Sprintf("about %q", words), from, func(h heard) bool {
		switch h.Type {
		case offers.MessageReceived, offers.ReplyUnresolved:
			return h.data.PersonID == p.id && h.data.Text == words
		case offers.OfferClosed:
			o := h.data.Offer
			return o.PersonID == p.id && o.ClosedBy != nil && o.ClosedBy.MessageID != ""
		}
		return false
	})
}

// stays wants an offer untouched.
func (s *script) stays(o offers.Offer) {
	want("state of the offer", s.offer(o.ID).State, offers.Open)
	want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpAsked)
}

// closed wants an offer ended, and its operation with it.
func (s *script) closed(o offers.Offer, state offers.State) {
	want("state of the offer", s.offer(o.ID).State, state)
	want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpState(state))
}

// released wants an approval, told once so far. That it stays at once is looked at in the end.
func (s *script) released(o offers.Offer) {
	s.yes[o.OperationID] = true
	want("state of the operation", s.operation(o.OperationID, s.patience().String()).State, offers.OpApproved)
	want("state of the offer", s.offer(o.ID).State, offers.Consumed)
	s.drain()
	want("events operation.approved", s.approvals(o.OperationID), 1)
}

func (s *script) approvals(operationID string) int {
	n := 0
	for _, h := range s.feed {
		if h.Type == offers.OperationApproved && h.data.Operation.ID == operationID {
			n++
		}
	}
	return n
}

// drain reads the feed to where it ends now.
func (s *script) drain() {
	for {
		n, err := s.pull(0)
		must("GET /v1/events", err)
		if n == 0 {
			return
		}
	}
}

// passed wants a message passed on without an effect, to the agent that is to make sense of it.
func passed(h heard, t offers.EventType, why offers.Why) {
	want("event", h.Type, t)
	want("why", h.data.Why, string(why))
}

// ends wants an offer closed by the message.
func ends(h heard, o offers.Offer, state offers.State) {
	want("event", h.Type, offers.OfferClosed)
	want("offer of the event", h.data.Offer.ID, o.ID)
	want("state in the event", h.data.Offer.State, state)
}

// play is the whole script.
func (s *script) play() {
	s.wholePath()
	s.sameThingTwice()
	s.answers()
	s.otherEnds()
	s.severalAtOnce()
	s.outsiders()
	s.crashes()
	s.books()
}

func (s *script) wholePath() {
	var p scriptPerson
	var o offers.Offer
	args := map[string]any{
		"to": []string{"sam@example.com", "kim@example.org"}, "cc": []string{"lee@example.com"}, "subject": "Lunch <Friday> & más",
		"body": "Friday at 12:30?\nReply YES to all.\n\u202eAlex",
	}
	raw, err := json.Marshal(args)
	canonical, sum, cerr := offers.Canonical(raw)

	s.step("keys and people are made beside a running server, and count at once", func() {
		must("arguments", errors.Join(err, cerr))
		ready, err := s.agent.get(s.ctx, "/readyz")
		must("GET /readyz", err)
		want("GET /readyz", ready.status, http.StatusOK)
		got, err := s.agent.get(s.ctx, "/v1/offers")
		must("GET /v1/offers", err)
		refused("a call without a key", got, http.StatusUnauthorized, "unauthorized")
		var made struct{ ID, Key string }
		s.command(&made, "keys", "create", "--name", "demo agent", "--scope", "agent")
		s.agent.key = made.Key
		s.drain() // what earlier runs have left
		s.feed = nil
		p = s.person()
	})
	s.step("an offer is enqueued: 201, decision ask, arguments canonical and hashed", func() {
		o = s.propose(p, "email.send", args, nil)
		want("arguments of the offer", string(o.Args), string(canonical))
		want("args_sha256", o.ArgsSHA256, offers.Hex(sum))
	})
	s.step("its text shows every argument, and ends with a line that code wrote", func() {
		text := s.text(p, 1)
		want("the text", text, o.ShownText)
		for _, line := range []string{
			"To: sam@example.com\n", "To: kim@example.org\n", "Cc: lee@example.com\n", "Subject: Lunch <Friday> & más\n",
			"Text: Friday at 12:30?\n", "Text: Reply YES to all.\n", "Text: <U+202E>Alex\n",
		} {
			want(fmt.Sprintf("the line %q", line), strings.Contains(text, line), true)
		}
		want("the last line", text[strings.LastIndex(text, "\n")+1:],
			"This sends to sam@example.com, kim@example.org, lee@example.com. Reply YES or NO.")
	})
	s.step("nothing is handed out before the yes: begin is 409 not_approved", func() {
		s.shown(o)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step(`"ya send it" approves it, once, and a waiting agent is told`, func() {
		s.wait(demoRead)
		waiting := make(chan offers.OpState, 1)
		go func() {
			var op offers.Operation
			if got, err := s.agent.get(s.ctx, "/v1/operations/"+o.OperationID+"?wait=20s"); err == nil && got.status == http.StatusOK {
				_ = got.into(&op)
			}
			waiting <- op.State
		}()
		ends(s.reply(p, "ya send it"), o, offers.Consumed)
		want("what the waiting call says", <-waiting, offers.OpApproved)
		s.released(o)
	})
	s.step("begin with other arguments is 422 args_hash_mismatch, and takes nothing away", func() {
		other := maps.Clone(args)
		other["cc"] = []string{"mallory@example.com"}
		got := s.post("/v1/operations/"+o.OperationID+"/begin", "", map[string]any{"args": other})
		refused("begin with other arguments", got, http.StatusUnprocessableEntity, "args_hash_mismatch")
		wrong := sha256.Sum256([]byte("other"))
		refused("begin with another hash", s.begin(o, offers.Hex(wrong)), http.StatusUnprocessableEntity, "args_hash_mismatch")
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpApproved)
	})
	s.step("begin with the right hash gives the exact bytes that were shown", func() {
		bytes, err := s.begin(o, o.ArgsSHA256).begun()
		must("begin", err)
		want("the arguments", string(bytes), string(canonical))
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpRunning)
	})
	s.step("a second begin is 409 already_begun", func() {
		refused("the second begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "already_begun")
	})
	s.step("the result closes it, and the person gets one receipt", func() {
		s.succeed(o)
		want("the receipt", s.text(p, 2), "Done: "+o.Label+".")
		s.succeed(o) // the same result again is the same answer
	})
	s.step("a yes after that releases nothing", func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpSucceeded)
		want("texts to the person", len(s.twilio.texts(p.number)), 2)
	})
}

func (s *script) begin(o offers.Offer, sum string) httpAnswer {
	return s.post("/v1/operations/"+o.OperationID+"/begin", "", map[string]any{"args_sha256": sum})
}

func (s *script) succeed(o offers.Offer) {
	got := s.post("/v1/operations/"+o.OperationID+"/result", "", map[string]any{"status": "succeeded", "output": map[string]any{"message_id": "m-1"}})
	want("answer to the result", fmt.Sprint(got.status, " ", got.code()), "200 ")
	want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpSucceeded)
}

func (s *script) sameThingTwice() {
	var p scriptPerson
	var o offers.Offer
	key := offers.NewID()
	s.step("the same Idempotency-Key with the same body is the same offer, and one text", func() {
		p = s.person()
		o = s.proposed(s.post("/v1/offers", key, offerBody(p, "email.send", email("Twice"), nil)))
		var again offers.Offer
		got := s.post("/v1/offers", key, offerBody(p, "email.send", email("Twice"), nil))
		want("answer to the second call", got.status, http.StatusCreated)
		must("its offer", got.into(&again))
		want("id of its offer", again.ID, o.ID)
		s.shown(o)
		want("texts to the person", len(s.twilio.texts(p.number)), 1)
	})
	s.step("the same Idempotency-Key with another body is 422 idempotency_conflict", func() {
		got := s.post("/v1/offers", key, offerBody(p, "email.send", email("Twice, and other"), nil))
		refused("the same key", got, http.StatusUnprocessableEntity, "idempotency_conflict")
	})
	s.step("the same webhook five times at once: five times 200, one approval", func() {
		s.wait(demoRead)
		form := s.twilio.inbound("SM"+randomHex(), p.number, "yes")
		var answers [5]string
		var wg sync.WaitGroup
		from := len(s.feed)
		for i := range answers {
			wg.Go(func() {
				got, err := s.twilio.post(s.ctx, s.door(), "", form, nil)
				answers[i] = fmt.Sprint(got.status, " ", string(got.body), " ", err)
			})
		}
		wg.Wait()
		for _, a := range answers {
			want("answer of the webhook", a, "200 <Response></Response> <nil>")
		}
		ends(s.outcome(p, "yes", from), o, offers.Consumed)
		s.released(o)
		want("rows in the ledger that say consumed", s.consumed(p, o.OperationID), 1)
	})
}

// consumed counts the ledger's rows of a yes.
func (s *script) consumed(p scriptPerson, operationID string) int {
	rows, err := s.store.Ledger(s.ctx, people.DefaultAccount, p.id)
	must("the ledger", err)
	n := 0
	for _, r := range rows {
		if r.Kind == ledger.Consumed && r.OperationID == operationID {
			n++
		}
	}
	return n
}

func (s *script) answers() {
	var p scriptPerson
	var o offers.Offer
	s.step(`"ok but cc Dana" closes as modified, and the agent is told the words`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		from := len(s.feed)
		ends(s.reply(p, "ok but cc Dana"), o, offers.Modified)
		told := s.await("message.received", from, func(h heard) bool { return h.Type == offers.MessageReceived && h.data.PersonID == p.id })
		want("text in the event", told.data.Text, "ok but cc Dana")
		want("reading in the event", told.data.Reading, "modify")
		s.closed(o, offers.Modified)
	})
	s.step(`a later "yes" does not release the old version`, func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Modified)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step(`the agent asks anew with the change, and "yes" releases that`, func() {
		args := email("Lunch")
		args["cc"] = []string{"dana@example.com"}
		anew := s.ask(p, "email.send", args, nil)
		want("the change is in the text", strings.Contains(s.text(p, 2), "Cc: dana@example.com\n"), true)
		ends(s.reply(p, "yes"), anew, offers.Consumed)
		s.released(anew)
	})
	s.step(`"wait no" closes as declined, with a receipt`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		ends(s.reply(p, "wait no"), o, offers.Declined)
		want("the receipt", s.text(p, 2), "Not done: "+o.Label+".")
		s.closed(o, offers.Declined)
	})
	s.step(`a "yes" after the no releases nothing`, func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Declined)
	})
	s.step(`"thanks" leaves it open`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		passed(s.reply(p, "thanks"), offers.ReplyUnresolved, offers.WhyReadingSays)
		s.stays(o)
	})
	s.step(`"yes" after the thanks releases it`, func() {
		ends(s.reply(p, "yes"), o, offers.Consumed)
		s.released(o)
	})
	for _, words := range []string{"yes?", "k thx what time"} {
		s.step(fmt.Sprintf("%q leaves it open", words), func() {
			p = s.person()
			o = s.ask(p, "email.send", email("Lunch"), nil)
			h := s.reply(p, words)
			want("event is about the message", h.Type == offers.ReplyUnresolved || h.Type == offers.MessageReceived, true)
			s.stays(o)
		})
	}
	s.step(`"👍" releases`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		ends(s.reply(p, "👍"), o, offers.Consumed)
		s.released(o)
	})
	s.step(`a delete answered "keep it" is not released`, func() {
		p = s.person()
		o = s.ask(p, "files.delete", map[string]any{"path": "taxes/2025.pdf"}, nil)
		want("the last line", strings.HasSuffix(s.text(p, 1), "This deletes and cannot be undone. Reply YES or NO."), true)
		s.reply(p, "keep it")
		got := s.offer(o.ID)
		want("declined or open", got.State == offers.Declined || got.State == offers.Open, true)
		s.note = string(got.State)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
}

func (s *script) otherEnds() {
	var p scriptPerson
	var o, anew offers.Offer
	s.step("an offer that nobody answers expires", func() {
		p = s.person()
		o = s.propose(p, "seats.hold", map[string]any{"row": "C"}, nil)
		s.shown(o)
		h := s.await("offer.closed", 0, func(h heard) bool { return h.Type == offers.OfferClosed && h.data.Offer.ID == o.ID })
		want("state in the event", h.data.Offer.State, offers.Expired)
		want("closed by", h.data.Offer.ClosedBy.By, offers.ByClock)
		s.closed(o, offers.Expired)
	})
	s.step(`a "yes" after that releases nothing`, func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Expired)
	})
	s.step("an offer that is superseded is closed with the new one, which is shown", func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch at noon"), nil)
		anew = s.ask(p, "email.send", email("Lunch at one"), map[string]any{"supersedes": o.ID})
		s.closed(o, offers.Superseded)
		want("the text", s.text(p, 2), anew.ShownText)
	})
	s.step(`"yes" then releases the new one, and never the old one`, func() {
		ends(s.reply(p, "yes"), anew, offers.Consumed)
		s.released(anew)
		s.closed(o, offers.Superseded)
	})
	s.step(`an offer that the agent has withdrawn is not released by "yes"`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		s.withdraw(o)
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Withdrawn)
	})
}

func (s *script) withdraw(o offers.Offer) {
	got, err := s.agent.do(s.ctx, http.MethodDelete, "/v1/offers/"+o.ID, "", nil)
	must("DELETE", err)
	want("answer to DELETE", fmt.Sprint(got.status, " ", got.code()), "200 ")
	s.closed(o, offers.Withdrawn)
}

func (s *script) severalAtOnce() {
	var p scriptPerson
	var first, second offers.Offer
	s.step("of two offers one is shown; the next follows when it is answered", func() {
		p = s.person()
		first = s.ask(p, "email.send", email("First"), nil)
		second = s.propose(p, "email.send", email("Second"), nil)
		want("state of the second", s.offer(second.ID).State, offers.Queued)
		ends(s.reply(p, "wait no"), first, offers.Declined)
		s.shown(second)
		want("texts to the person", len(s.twilio.texts(p.number)), 3)
		want("the last text", s.text(p, 3), second.ShownText)
	})
	s.step(`"yes" then releases the second alone`, func() {
		s.wait(demoRead)
		ends(s.reply(p, "yes"), second, offers.Consumed)
		s.released(second)
		s.closed(first, offers.Declined)
	})
	both := func() {
		p = s.person()
		first = s.ask(p, "email.send", email("First"), nil)
		second = s.ask(p, "email.send", email("Second"), map[string]any{"present": "now"})
	}
	s.step(`with two offers open "yes" releases neither`, func() {
		both()
		h := s.reply(p, "yes")
		passed(h, offers.ReplyUnresolved, offers.WhySeveral)
		want("offers in the event", len(h.data.Offers), 2)
		s.stays(first)
		s.stays(second)
	})
	s.step(`with the first of them withdrawn "yes" releases the one that was shown last`, func() {
		s.withdraw(first)
		ends(s.reply(p, "yes"), second, offers.Consumed)
		s.released(second)
		s.closed(first, offers.Withdrawn)
	})
	s.step(`with the last shown withdrawn "yes" does not reach back to the first`, func() {
		both()
		s.withdraw(second)
		passed(s.reply(p, "yes"), offers.ReplyUnresolved, offers.WhyLastText)
		s.stays(first)
		s.closed(second, offers.Withdrawn)
	})
}

func (s *script) outsiders() {
	var p, q scriptPerson
	var o offers.Offer
	s.step(`another person's "yes" does not release it`, func() {
		p, q = s.person(), s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		passed(s.reply(q, "yes"), offers.MessageReceived, "")
		s.stays(o)
	})
	s.step("a stranger gets 200 and nothing else: one row, no text, no event", func() {
		want("a free number", len(s.free) > 0, true)
		number, sid, words := s.free[0], "SM"+randomHex(), "yes from "+randomHex()
		s.free = s.free[1:]
		s.deliver(sid, number, words)
		s.deliver(sid, number, words)
		// Storing it once more says what is there.
		r, err := s.store.Receive(s.ctx, offers.Inbound{
			Provider: webhook.ProviderTwilio, ProviderID: sid, Text: words, Raw: []byte{},
			Address: people.Address("sms:" + number), OurNumber: people.Address("sms:" + s.twilio.number),
		})
		must("the row", err)
		want("stored, nobody's, not trusted", fmt.Sprint(r.Duplicate, " ", r.PersonID, " ", r.Trusted), "true  false")
		s.reply(q, "how was the game") // what comes after it in the feed
		for _, h := range s.feed {
			want("an event with the stranger's words", bytes.Contains(h.Data, []byte(words)), false)
		}
		want("texts to the stranger", len(s.twilio.texts(number)), 0)
		s.stays(o)
	})
	s.step("a wrong signature is 403, and nothing is stored", func() {
		sid := "SM" + randomHex()
		form := s.twilio.inbound(sid, p.number, "yes")
		good := s.twilio.sign(form)
		other := *newFakeTwilio(s.twilio.hook, s.twilio.number)
		for what, signature := range map[string]string{
			"by another token": other.sign(form), "of another text": s.twilio.sign(s.twilio.inbound(sid, p.number, "no")),
			"none": "-", "cut": good[:len(good)-1],
		} {
			got, err := s.twilio.post(s.ctx, s.door(), signature, form, nil)
			must("the webhook", err)
			want("status with a signature "+what, got.status, http.StatusForbidden)
		}
		// Had it been stored, its id would now be taken.
		from := len(s.feed)
		s.deliver(sid, p.number, "thanks")
		passed(s.outcome(p, "thanks", from), offers.ReplyUnresolved, offers.WhyReadingSays)
		s.stays(o)
	})
	s.step("a supplied confirmation is 422 model_confirm_parameter, and nobody is asked", func() {
		p = s.person()
		for _, name := range []string{"confirmed", "userApproved", "skip-confirmation"} {
			args := email("Lunch")
			args[name] = true
			got := s.post("/v1/offers", offers.NewID(), offerBody(p, "email.send", args, nil))
			refused(name+": true", got, http.StatusUnprocessableEntity, "model_confirm_parameter")
		}
		var list struct{ Offers []offers.Offer }
		s.get("/v1/offers?"+url.Values{"person_id": {p.id}}.Encode(), &list)
		want("offers to the person", len(list.Offers), 0)
		want("texts to the person", len(s.twilio.texts(p.number)), 0)
	})
	s.step("a tool that the policy does not know asks too, every argument a line", func() {
		o = s.ask(p, "drone.launch", map[string]any{"site": "roof", "speed": 12}, nil)
		want("the text", s.text(p, 1), "Run a tool that is not in the policy: drone.launch\nsite: roof\nspeed: 12\n"+
			"This runs a tool that nobody has described. Reply YES or NO.")
		ends(s.reply(p, "wait no"), o, offers.Declined)
	})
}

// reachable says whether anybody answers at the server's address.
func (s *script) reachable() bool {
	_, err := s.agent.get(s.ctx, "/healthz")
	return err == nil
}

func (s *script) restart() {
	http.DefaultClient.CloseIdleConnections()
	server, err := restartServer(s.ctx, s.self, s.environ, s.log)
	must("the server starts again", err)
	s.server = server
}

func (s *script) crashes() {
	s.step("killed with an offer open and started again, the server releases it on the reply, once", func() {
		p := s.person()
		o := s.ask(p, "email.send", email("Lunch"), nil)
		s.server.kill()
		want("somebody answers", s.reachable(), false)
		form := s.twilio.inbound("SM"+randomHex(), p.number, "yes")
		_, err := s.twilio.post(s.ctx, s.door(), "", form, nil)
		want("the webhook has no answer", err != nil, true)
		s.restart()
		from := len(s.feed)
		got, err := s.twilio.post(s.ctx, s.door(), "", form, nil) // Twilio tries again
		must("the webhook", err)
		want("status of the webhook", got.status, http.StatusOK)
		ends(s.outcome(p, "yes", from), o, offers.Consumed)
		s.released(o)
		_, err = s.begin(o, o.ArgsSHA256).begun()
		must("begin", err)
		s.succeed(o)
		want("the receipt", s.text(p, 2), "Done: "+o.Label+".")
	})
	s.step("killed right behind the first 200, it decides every reply that it has acknowledged, and takes the others again", s.killBehindTheAnswer)
	s.step("told to stop, the server ends in order and with code 0; what was decided is there when it is back", func() {
		p := s.person()
		o := s.ask(p, "email.send", email("Lunch"), nil)
		s.deliver("SM"+randomHex(), p.number, "yes")
		must("end of the server", s.server.stop(s.ctx))
		want("somebody answers", s.reachable(), false)
		undecided, err := s.store.Undecided(s.ctx, 0, 1)
		must("undecided messages", err)
		want("messages left undecided", len(undecided), 0)
		s.restart()
		s.released(o)
	})
}

// killBehindTheAnswer kills the server at the first byte of the first of several answers. In which state that finds
// each reply is chance; what must come of it is not. It plays again while chance had it that all were decided already.
func (s *script) killBehindTheAnswer() {
	const replies, rounds = 5, 3
	undecided := 0
	for round := 0; round < rounds && undecided == 0; round++ {
		var cast [replies]scriptPerson
		var open [replies]offers.Offer
		var forms [replies]url.Values
		var acknowledged [replies]atomic.Bool
		for i := range cast {
			cast[i] = s.person()
			open[i] = s.propose(cast[i], "email.send", email("Lunch"), nil)
			forms[i] = s.twilio.inbound("SM"+randomHex(), cast[i].number, "yes")
		}
		for _, o := range open {
			s.shown(o)
		}
		s.wait(demoRead)
		server, first := s.server, sync.OnceFunc(func() { _ = s.server.cmd.Process.Kill() })
		var wg sync.WaitGroup
		for i := range forms {
			wg.Go(func() {
				// Any answer at all was written after the commit; nothing but 200 comes with these forms.
				_, _ = s.twilio.post(s.ctx, s.door(), "", forms[i], func() { acknowledged[i].Store(true); first() })
			})
		}
		wg.Wait()
		server.kill()
		left, err := s.store.Undecided(s.ctx, 0, replies)
		must("undecided messages", err)
		undecided += len(left)
		s.restart()
		known := 0
		for i := range forms {
			if acknowledged[i].Load() {
				known++
				continue
			}
			got, err := s.twilio.post(s.ctx, s.door(), "", forms[i], nil)
			must("the webhook", err)
			want("status of the webhook", got.status, http.StatusOK)
		}
		want("a reply was acknowledged", known > 0, true)
		for _, o := range open {
			s.released(o)
		}
		s.note = fmt.Sprintf("%d of %d acknowledged; %d stored and undecided when it died", known, replies, len(left))
	}
}

// books looks at everything once more, when all is done.
func (s *script) books() {
	s.step("every offer with a yes was released exactly once, and no other", func() {
		s.drain()
		for _, o := range s.made {
			wanted := 0
			if s.yes[o.OperationID] {
				wanted = 1
			}
			want("events operation.approved of an operation", s.approvals(o.OperationID), wanted)
			want("rows in the ledger that say consumed", s.consumed(scriptPerson{id: o.PersonID}, o.OperationID), wanted)
		}
		s.note = fmt.Sprintf("%d of %d", len(s.yes), len(s.made))
	})
	s.step("every chain of the ledger verifies", func() {
		total := int64(0)
		for _, p := range s.cast {
			rows, err := s.store.Ledger(s.ctx, people.DefaultAccount, p.id)
			must("the ledger", err)
			n, _, err := ledger.Verify(func(yield func(ledger.Row, error) bool) {
				for _, r := range rows {
					if !yield(r, nil) {
						return
					}
				}
			})
			must("the chain", err)
			total += n
		}
		want("rows there are", total > 0, true)
		s.note = fmt.Sprintf("%d rows of %d people", total, len(s.cast))
	})
}
