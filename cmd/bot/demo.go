package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

type demoCmd struct {
	Script      bool   `help:"Play whole conversations against a real server process and check every step; exit 1 if one does not hold."`
	DatabaseURL string `help:"With --script: play in this empty database instead of a temporary SQLite file." placeholder:"URL"`
	JSON        bool   `name:"json" help:"Print one JSON object a line."`
	Verbose     bool   `help:"Show the server's log on standard error."`
}

// Help is the command's example.
func (demoCmd) Help() string {
	return `Without --script, lines on standard input are the replies of a simulated phone.

Example:
  bot demo

  printf 'ok but cc Dana\nya send it\n' | bot demo

  bot demo --script --json`
}

// Run plays the demo. It takes nothing from the environment: what is set there belongs to a real server.
func (c *demoCmd) Run(e *env) error {
	if c.DatabaseURL != "" && !c.Script {
		return usage("--database-url goes with --script; without it the demo keeps everything in a temporary folder.")
	}
	dir, err := os.MkdirTemp("", "countersign-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if c.Script {
		return c.script(e, dir)
	}
	log := slog.New(slog.DiscardHandler)
	if c.Verbose {
		log = e.log
	}
	return c.talk(e, dir, log)
}

const (
	demoPerson = people.Address("sim:alex")
	// demoMinRead is short, so that lines from a pipe need not wait for long; demoRead after an ask a yes counts even
	// where another ask was on the screen before.
	demoMinRead = 20 * time.Millisecond
	demoRead    = (offers.CrossFactor + 3) * demoMinRead
	// demoPatience is how long anything is waited for that must come.
	demoPatience = 20 * time.Second
)

// talk runs everything in this process: database, server on a free port, agent and phone.
func (c *demoCmd) talk(e *env, dir string, log *slog.Logger) error {
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	cfg := config{DatabaseURL: "sqlite:" + filepath.Join(dir, "demo.db"), Sim: true, MinRead: demoMinRead}
	s, err := openStore(ctx, cfg.DatabaseURL, false)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // a temporary database
	a, err := newApp(cfg, s, log)
	if err != nil {
		return err
	}
	person := people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: demoPerson, OurNumber: webhook.SimNumber}}}
	if err := s.AddPerson(ctx, person); err != nil {
		return err
	}
	secret, hash := people.NewSecret()
	key := people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "demo agent", Scope: people.ScopeAgent}
	if err := s.AddKey(ctx, key, hash); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	texts := a.sim.Follow(ctx)
	go func() { served <- a.serve(ctx, l) }()

	base := "http://" + l.Addr().String()
	t := talk{
		e: e, json: c.JSON, typed: isTerminal(e.stdin), base: base, agent: &agentClient{base: base, key: secret}, person: person.ID,
		texts: make(chan channel.SimText), events: make(chan offers.Event), lines: make(chan string), ids: offers.NewID,
	}
	go func() {
		for x := range texts {
			select {
			case t.texts <- x:
			case <-ctx.Done():
			}
		}
	}()
	go t.follow(ctx)
	go t.read(ctx, e.stdin)
	err = t.run(ctx)
	stop()
	if e.ctx.Err() != nil {
		err = nil // the person has had enough
	}
	return errors.Join(err, <-served)
}

// talk is one conversation: a single loop that hears the phone, the feed of events and the person's lines.
type talk struct {
	e      *env
	json   bool
	typed  bool // lines come from a terminal, which shows them itself
	base   string
	agent  *agentClient
	person string
	ids    func() string

	texts  chan channel.SimText
	events chan offers.Event
	lines  chan string // closed at the end of input

	next    int // of the errands
	offer   offers.Offer
	asking  bool             // the question is on the screen, and a line may answer it
	ending  string           // the receipt that ends the errand; empty: none is due
	since   []string         // texts since something was last asked of anybody
	asked   <-chan time.Time // when it can have been read
	overdue <-chan time.Time // ends the wait for something that must come
}

// errand is something that the sample agent wants to do.
type errand struct {
	tool string
	args map[string]any
}

var errNoErrand = errors.New("no errand is left")

func errands() []errand {
	return []errand{
		{"email.send", map[string]any{
			"to": []string{"sam@example.com"}, "subject": "Lunch on Friday",
			"body": "Hi Sam,\nFriday at 12:30 at the harbour works for me.\nAlex",
		}},
		{"calendar.create", map[string]any{
			"title": "Lunch with Sam", "start": "2027-03-05T12:30:00+01:00", "end": "2027-03-05T13:30:00+01:00", "guests": []string{"sam@example.com"},
		}},
		{"files.delete", map[string]any{"path": "drafts/lunch-old.txt"}},
	}
}

func (t *talk) run(ctx context.Context) error {
	t.say("demo", "Everything runs in this process; nothing leaves this machine.")
	t.say("demo", "You are Alex. An agent has to ask you before it acts. Answer the way you text:")
	t.say("demo", "ya send it · ok but cc Dana · wait no · thanks · yes?    (/quit or Ctrl-D ends)")
	t.say("demo", "The agent's API: "+t.base+"/docs")
	if err := t.propose(ctx, errands()[0]); err != nil {
		return err
	}
	for {
		// A line is taken only when there is something to answer.
		var lines <-chan string
		if t.asking {
			lines = t.lines
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case x := <-t.texts:
			err = t.text(ctx, x)
		case ev := <-t.events:
			err = t.event(ctx, ev)
		case <-t.asked:
			t.asked, t.asking, t.overdue = nil, true, nil
			if t.typed && !t.json {
				t.e.printf("  you   ")
			}
		case <-t.overdue:
			return fmt.Errorf("nothing came for %s", demoPatience)
		case line, more := <-lines:
			if !more || strings.TrimSpace(line) == "/quit" {
				t.say("demo", "The end. What is still open goes away with the temporary database.")
				return nil
			}
			err = t.reply(ctx, line)
		}
		if errors.Is(err, errNoErrand) {
			t.say("demo", "That was all. Every answer is in the ledger of the database that goes away now.")
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// propose enqueues an offer over HTTP, as any agent does.
func (t *talk) propose(ctx context.Context, w errand) error {
	t.say("agent", "wants "+w.tool+": POST /v1/offers")
	got, err := t.agent.post(ctx, "/v1/offers", t.ids(), map[string]any{"address": string(demoPerson), "tool": w.tool, "args": w.args})
	if err != nil {
		return err
	}
	if got.status != 201 {
		return fmt.Errorf("the offer was refused: %d %s", got.status, got.code())
	}
	t.wait()
	return got.into(&t.offer)
}

// wait says that something must come, and that no line is due before it.
func (t *talk) wait() {
	t.asking, t.overdue, t.ending, t.since = false, time.After(demoPatience), "", nil
}

// ended goes on once the receipt is there: it may come before the event about what it is for, or after.
func (t *talk) ended(ctx context.Context) error {
	if t.ending == "" || !slices.Contains(t.since, t.ending) {
		return nil
	}
	return t.goOn(ctx)
}

// text shows the phone's screen.
func (t *talk) text(ctx context.Context, x channel.SimText) error {
	t.say("phone", x.Body)
	t.since = append(t.since, x.Body)
	// A question put again: a line counts once it can have been read.
	if t.asking || t.asked != nil {
		t.asking, t.asked = false, time.After(demoRead)
	}
	return t.ended(ctx)
}

// goOn takes the next errand; errNoErrand: there is none.
func (t *talk) goOn(ctx context.Context) error {
	if t.next++; t.next >= len(errands()) {
		return errNoErrand
	}
	return t.propose(ctx, errands()[t.next])
}

// reply posts a line as the phone does.
func (t *talk) reply(ctx context.Context, line string) error {
	if strings.TrimSpace(line) == "" {
		t.asked = time.After(0)
		return nil
	}
	if !t.typed {
		t.say("you", line)
	}
	phone := agentClient{base: t.base} // without a key
	got, err := phone.post(ctx, "/webhooks/sim/messages", "", map[string]any{"id": t.ids(), "address": string(demoPerson), "text": line})
	if err != nil {
		return err
	}
	if got.status != 200 {
		return fmt.Errorf("the message was not taken: %d", got.status)
	}
	t.wait()
	return nil
}

// event is what the agent does about what it is told.
func (t *talk) event(ctx context.Context, ev offers.Event) error {
	d, err := dataOf(ev)
	if err != nil {
		return err
	}
	switch ev.Type {
	case offers.OfferOpened:
		t.asked = time.After(demoRead)
	case offers.OperationApproved:
		return t.release(ctx, *d.Operation)
	case offers.OfferClosed:
		switch d.Offer.State {
		case offers.Declined:
			t.say("agent", "is told: declined. It drops the matter.")
			t.ending = offers.DeclinedReceipt(t.offer)
			return t.ended(ctx)
		case offers.Expired:
			t.say("agent", "is told: expired. Nothing was released.")
			return t.goOn(ctx)
		}
	case offers.MessageReceived:
		if d.Reading != "modify" {
			t.say("agent", fmt.Sprintf("is told what you wrote (read as %s). The offer stays as it is.", d.Reading))
			t.asked = time.After(demoRead)
			return nil
		}
		return t.amend(ctx, d.Text)
	case offers.ReplyUnresolved:
		t.say("agent", fmt.Sprintf("is told: no sure answer (read as %s, because: %s). The offer stays as it is.", d.Reading, d.Why))
		t.asked = time.After(demoRead)
	}
	return nil
}

// release begins with the hash of what was shown, runs it, and reports.
func (t *talk) release(ctx context.Context, op offers.Operation) error {
	t.say("agent", "is told: approved. POST /v1/operations/…/begin with sha256 "+op.ArgsSHA256[:12]+"…")
	got, err := t.agent.post(ctx, "/v1/operations/"+op.ID+"/begin", "", map[string]any{"args_sha256": op.ArgsSHA256})
	if err != nil {
		return err
	}
	begun, err := got.begun()
	if err != nil {
		return err
	}
	t.say("agent", "would now run "+op.Tool+" "+string(begun))
	got, err = t.agent.post(ctx, "/v1/operations/"+op.ID+"/result", "", map[string]any{"status": "succeeded"})
	if err != nil {
		return err
	}
	if got.status != 200 {
		return fmt.Errorf("the result was not taken: %d %s", got.status, got.code())
	}
	t.wait()
	t.ending = offers.Receipt(t.offer, string(offers.OpSucceeded))
	return nil
}

// amend is the sample agent's whole understanding of a change: "cc NAME". A real one asks its model.
func (t *talk) amend(ctx context.Context, text string) error {
	w := errands()[t.next]
	_, rest, ok := strings.Cut(strings.ToLower(text), "cc ")
	name, _, _ := strings.Cut(rest, " ")
	name = strings.Trim(name, ".,!?")
	if !ok || name == "" || w.tool != "email.send" {
		t.say("agent", "is told: modified, and what you wrote. It would think again; this sample agent goes on.")
		return t.goOn(ctx)
	}
	t.say("agent", "is told: modified, and what you wrote. It asks anew.")
	w.args["cc"] = []string{name + "@example.com"}
	return t.propose(ctx, w)
}

// follow long-polls the events, as an agent does.
func (t *talk) follow(ctx context.Context) {
	after := ""
	for ctx.Err() == nil {
		page, err := t.agent.events(ctx, after, "20s")
		if err != nil {
			return
		}
		for _, ev := range page.Events {
			select {
			case t.events <- ev:
			case <-ctx.Done():
				return
			}
		}
		after = page.Next
	}
}

func (t *talk) read(ctx context.Context, in io.Reader) {
	defer close(t.lines)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		select {
		case t.lines <- lines.Text():
		case <-ctx.Done():
			return
		}
	}
}

// isTerminal says whether somebody types.
func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}

// say prints what somebody said or did.
func (t *talk) say(who, what string) {
	if t.json {
		_ = t.e.printJSON(map[string]string{"who": who, "text": what})
		return
	}
	mark := map[string]string{"phone": "  │ ", "agent": "  agent ", "you": "  you   "}[who]
	if who == "phone" {
		t.e.printf("  ┌ text to Alex\n")
	}
	for line := range strings.SplitSeq(what, "\n") {
		t.e.printf("%s%s\n", mark, line)
	}
}
