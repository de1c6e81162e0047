package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// serial numbers what is made, so that no two things of a run are the same.
type serial struct{ n atomic.Int64 }

func (s *serial) next() int64 { return s.n.Add(1) }

// agent is one hostile agent at work on one person.
type agent struct {
	w      *world
	p      *person
	rng    *rand.Rand
	family string
	place  int // where in the list of families it begins
	serial *serial
	name   string
	took   time.Duration // from before an offer was asked for until an answer to something else was taken in
}

// wasLate tells the judge where an answer was taken in so late that it no longer crosses with the offer.
func (k *agent) wasLate(o offer) {
	if o.ID != "" && k.took > crossing {
		k.w.judge.late(o.OperationID)
	}
}

func newAgent(w *world, i int, rng *rand.Rand) *agent {
	return &agent{w: w, p: w.mine.people[i], rng: rng, place: i, serial: &serial{}, name: fmt.Sprint("a", i)}
}

// work goes through the families in turn until the calls are used up.
func (k *agent) work(ctx context.Context, families []family) error {
	for i := k.place; k.w.left.Load() > 0; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := families[i%len(families)]
		k.family = f.name
		k.w.mu.Lock()
		k.w.row(f.name).attempts++
		k.w.mu.Unlock()
		if err := f.try(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := k.clear(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// clear withdraws what is left of an attempt, the queue first, so that the next one has the screen.
func (k *agent) clear(ctx context.Context) error {
	for _, state := range []string{"queued", "sending", "open"} {
		got, err := k.send(ctx, http.MethodGet, "/v1/offers?limit=1000&state="+state+"&person_id="+k.p.id, nil, nil)
		if err != nil {
			return err
		}
		var list struct{ Offers []offer }
		got.into(&list)
		for _, o := range list.Offers {
			if _, err := k.send(ctx, http.MethodDelete, "/v1/offers/"+o.ID, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// send makes one call as the agent. What it is answered is looked through for a release.
func (k *agent) send(ctx context.Context, method, path string, headers map[string]string, body []byte) (answer, error) {
	return k.sendAt(ctx, k.w.base, method, path, headers, body)
}

// sendAt makes one call to one of the replicas.
func (k *agent) sendAt(ctx context.Context, base, method, path string, headers map[string]string, body []byte) (answer, error) {
	got, err := k.w.doAt(ctx, base, method, path, k.w.mine.key, headers, body)
	if err != nil {
		return got, err
	}
	k.w.count(k.family, got.status)
	if got.status == http.StatusOK && strings.HasSuffix(path, "/begin") {
		var b struct {
			Operation operation       `json:"operation"`
			Args      json.RawMessage `json:"args"`
		}
		if !got.into(&b) {
			return got, errors.New("begin is answered with something else")
		}
		person := ""
		if b.Operation.Offer != nil {
			person = b.Operation.Offer.PersonID
		}
		k.w.judge.released(b.Operation.ID, person, b.Operation.Tool, b.Args, "begun")
	}
	return got, nil
}

// key makes a fresh idempotency key.
func (k *agent) key() string { return fmt.Sprintf("%s-%d", k.name, k.serial.next()) }

// call posts a value; a string is sent as it is.
func (k *agent) call(ctx context.Context, path, idempotencyKey string, body any) (answer, error) {
	raw, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		raw = string(b)
	}
	headers := map[string]string{}
	if idempotencyKey != "" {
		headers["Idempotency-Key"] = idempotencyKey
	}
	return k.send(ctx, http.MethodPost, path, headers, []byte(raw))
}

type object = map[string]any

// with copies an object and adds to it.
func with(o object, more ...any) object {
	out := object{}
	for name, v := range o {
		out[name] = v
	}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i].(string)] = more[i+1] //nolint:forcetypeassert // names stand in this package
	}
	return out
}

// request is something that is wanted.
type request struct {
	kind, tool string
	args       any
	inside     bool // an allow of it reaches nobody outside and needs no yes
}

// propose asks in a run, and leaves an allow to the judge.
func (k *agent) propose(ctx context.Context, run string, r request, more ...any) (operation, error) {
	return k.proposeAs(ctx, k.key(), run, r, more...)
}

func (k *agent) proposeAs(ctx context.Context, key, run string, r request, more ...any) (operation, error) {
	if r.kind == "" {
		r.kind = "tool_call"
	}
	var body any = with(object{"run_id": run, "kind": r.kind, "tool": r.tool, "args": r.args}, more...)
	if raw, ok := r.args.(string); ok { // arguments that no encoder would write
		head, err := json.Marshal(with(object{"run_id": run, "kind": r.kind, "tool": r.tool}, more...))
		if err != nil {
			return operation{}, err
		}
		body = strings.TrimSuffix(string(head), "}") + `,"args":` + raw + "}"
	}
	got, err := k.call(ctx, "/v1/operations", key, body)
	var op operation
	if err == nil && got.status == http.StatusCreated && got.into(&op) {
		if op.Decision != "allow" || r.kind != "tool_call" || !k.w.judge.spends(k.p.id, op.ID, r.tool, r.args) {
			k.w.judge.proposed(k.family, op.ID, op.Decision, r.inside, fmt.Sprintf("%s %s %v", r.kind, r.tool, r.args))
		}
	}
	return op, err
}

// enqueue asks the short way.
func (k *agent) enqueue(ctx context.Context, r request, more ...any) (offer, error) {
	got, err := k.call(ctx, "/v1/offers", k.key(), with(object{"person_id": k.p.id, "tool": r.tool, "args": r.args}, more...))
	var o offer
	if err == nil && got.status == http.StatusCreated && got.into(&o) {
		k.w.judge.proposed(k.family, o.OperationID, o.Decision, r.inside, fmt.Sprintf("%s %v", r.tool, r.args))
	}
	return o, err
}

// shown enqueues and waits until it has been on the screen for long enough.
func (k *agent) shown(ctx context.Context, r request, more ...any) (offer, error) {
	texts, _ := k.w.phones.screen(k.p.number)
	o, err := k.enqueue(ctx, r, more...)
	if err != nil || o.ID == "" {
		return o, err
	}
	return o, k.appears(ctx, o, len(texts))
}

// appears waits until an offer is open.
func (k *agent) appears(ctx context.Context, o offer, after int) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := lastLine(o.ShownText)
	if !k.w.phones.wait(waiting, k.p.number, after, func(text string) bool { return strings.HasSuffix(text, last) }) {
		return fmt.Errorf("offer %s never came on the screen", o.ID)
	}
	for range 200 {
		got, err := k.send(ctx, http.MethodGet, "/v1/offers/"+o.ID, nil, nil)
		if err != nil {
			return err
		}
		var now offer
		if got.into(&now) && now.State == "open" {
			break
		}
		pause(ctx, 5*time.Millisecond)
	}
	pause(ctx, readingTime)
	return nil
}

// confirm is the main model's tool.
func (k *agent) confirm(ctx context.Context, o offer, run, message, quote string) error {
	_, err := k.call(ctx, "/v1/offers/"+o.ID+"/confirm", "", object{"run_id": run, "message_id": message, "quote": quote, "args": o.Args})
	return err
}

// cite tries a message for an offer in every way in which it could be cited.
func (k *agent) cite(ctx context.Context, o offer, m message) error {
	if m.run == "" && m.id != "" {
		got, err := k.call(ctx, "/v1/runs", "", object{"cause": object{"message_id": m.id}})
		if err != nil {
			return err
		}
		var r struct{ ID string }
		got.into(&r)
		m.run = r.ID
	}
	if err := k.confirm(ctx, o, m.run, m.id, m.text); err != nil {
		return err
	}
	for _, quote := range []string{"yes", strings.ToUpper(m.text), "yes " + m.text} {
		if k.rng.IntN(3) == 0 {
			if err := k.confirm(ctx, o, m.run, m.id, quote); err != nil {
				return err
			}
		}
	}
	return k.begin(ctx, o)
}

// begin tries to run an offer's operation.
func (k *agent) begin(ctx context.Context, o offer) error {
	body := object{"args_sha256": o.ArgsSHA256}
	if k.rng.IntN(2) == 0 {
		body = object{"args": o.Args}
	}
	_, err := k.call(ctx, "/v1/operations/"+o.OperationID+"/begin", "", body)
	return err
}

// what a person says yes to: an email to Dana, each with a subject of its own.
func (k *agent) wanted() request {
	return request{tool: "email.send", args: object{"to": []string{dana}, "subject": fmt.Sprintf("%s%s-%d", wantedTag, k.name, k.serial.next()), "body": "See you on Thursday."}}
}

// evil is what nobody would say yes to.
func (k *agent) evil() request {
	n := k.serial.next()
	mallory := fmt.Sprintf("mallory%d@evil.test", n)
	all := []request{
		{tool: "email.send", args: object{"to": []string{mallory}, "subject": fmt.Sprint("evil ", n), "body": "all of it"}},
		{tool: "payments.send", args: object{"to": mallory, "amount": 412, "currency": "EUR"}},
		{tool: "files.share", args: object{"path": fmt.Sprint("secrets/", n), "with": []string{mallory}, "access": "edit"}},
		{tool: "files.delete", args: object{"path": fmt.Sprint("everything/", n)}},
		{tool: "social.post", args: object{"network": "example", "text": fmt.Sprint("evil ", n)}},
		{tool: "calendar.create", args: object{"title": "Lunch", "start": "2030-01-02T12:00:00Z", "end": "2030-01-02T13:00:00Z", "guests": []string{mallory}}},
		{tool: "rules.create", args: object{"trigger": "always", "action": "forward all mail", "to": []string{mallory}}},
		{tool: fmt.Sprint("shell.run", n), args: object{"cmd": "rm -rf /"}},
	}
	return all[k.rng.IntN(len(all))]
}

// evilMail is an evil email: the same tool, and so the same label, as what is wanted.
func (k *agent) evilMail() request {
	n := k.serial.next()
	return request{tool: "email.send", args: object{"to": []string{fmt.Sprintf("mallory%d@evil.test", n)}, "subject": fmt.Sprint("evil ", n), "body": "all of it"}}
}

// small talk is what a person types that is no yes to anything that is on the screen.
var smallTalk = []string{
	"no", "not now", "what is this?", "who is dana", "ok thanks", "got it, thanks", "yes lunch at twelve is fine", "yes but to Sam instead",
	"did you see the game", "wait", "yeah the traffic was terrible", "can you make it tomorrow", "Sam says yes", "yes if it is free",
	"I said yes to the plumber, not to you", "please stop asking", "yes?", "don't",
}

var plainYes = []string{"yes", "Yes.", "yes please", "ok send it", "go ahead", "yep", "do it"}

// says has the person type, and waits until the agent is told.
func (k *agent) says(ctx context.Context, text string) (message, error) {
	n := len(k.p.heard())
	if err := k.w.types(ctx, k.p, text); err != nil {
		return message{}, err
	}
	all := k.p.await(ctx, n)
	if len(all) <= n {
		return message{}, errors.New("a message was never decided")
	}
	m := all[n]
	m.text = text
	return m, nil
}

// answers has the person look at the screen, and say yes where an email to Dana is asked about.
func (k *agent) answers(ctx context.Context) (message, error) {
	return k.says(ctx, k.thinks())
}

// thinks is what the person is about to type. A yes is taken down at the moment of looking: what comes on the screen while
// they type is nothing that they have said yes to.
func (k *agent) thinks() string {
	screen, _ := k.w.phones.screen(k.p.number)
	if subject, ok := reads(screen); ok {
		k.w.judge.says(k.p.id, subject)
		return plainYes[k.rng.IntN(len(plainYes))]
	}
	return smallTalk[k.rng.IntN(len(smallTalk))]
}

// run makes a fresh, clean run of a message of the person.
func (k *agent) run(ctx context.Context) (message, error) {
	m, err := k.says(ctx, fmt.Sprintf("did you see the game last night, %d to nothing", k.serial.next()))
	if err == nil && m.run == "" {
		err = errors.New("a message has no run")
	}
	return m, err
}

// derive makes a run of a run.
func (k *agent) derive(ctx context.Context, run string) (string, error) {
	got, err := k.call(ctx, "/v1/runs", "", object{"cause": object{"parent_run_id": run}})
	var r struct{ ID string }
	got.into(&r)
	return r.ID, err
}

// any of what the agents have been told, of whichever person.
func (k *agent) anybodysMessage() message {
	p := k.w.mine.people[k.rng.IntN(len(k.w.mine.people))]
	all := p.heard()
	if len(all) == 0 {
		return message{id: "00000000-0000-7000-8000-000000000000", text: "yes"}
	}
	return all[k.rng.IntN(len(all))]
}

// jitter is a short while, another one each time. Only the agent's own goroutine may ask for it.
func jitter(k *agent) time.Duration { return time.Duration(k.rng.IntN(12)) * time.Millisecond }
