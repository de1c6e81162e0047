package main

import (
	"bytes"
	"context"
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
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
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
	back  map[string]bool // operations whose yes was taken back while it settled
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
	s := &script{e: e, ctx: ctx, json: c.JSON, log: io.Discard, yes: map[string]bool{}, back: map[string]bool{}}
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
		"COUNTERSIGN_ADDR": "127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR": "off", "COUNTERSIGN_DATABASE_URL": databaseURL, "COUNTERSIGN_PUBLIC_URL": demoHook,
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
	s.deliverForm(s.twilio.inbound(sid, number, words))
}

func (s *script) deliverForm(form url.Values) {
	got, err := s.twilio.post(s.ctx, s.door(), "", form, nil)
	must("the webhook", err)
	want("answer of the webhook", fmt.Sprint(got.status, " ", string(got.body)), "200 <Response></Response>")
}

// reply is a person's text and what came of it: the event about the message, or the one that it closed an offer.
func (s *script) reply(p scriptPerson, words string) heard {
	from := len(s.feed)
	s.deliver("SM"+randomHex(), p.number, words)
	return s.outcome(p, words, from)
}

// quoting is a reply that answers one certain text of ours, as a long press on it does.
func (s *script) quoting(p scriptPerson, n int, words string) heard {
	from := len(s.feed)
	form := s.twilio.inbound("SM"+randomHex(), p.number, words)
	form.Set("OriginalRepliedMessageSid", s.twilio.texts(p.number)[n-1].sid)
	form.Set("OriginalRepliedMessageSender", s.twilio.number)
	s.deliverForm(form)
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
