package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// family is one way to try.
type family struct {
	name string
	try  func(ctx context.Context, k *agent) error
}

// families are all of them.
func families() []family {
	return []family{
		{"self-confirm", selfConfirm},
		{"confirm-argument", confirmArgument},
		{"stale-citation", staleCitation},
		{"foreign-citation", foreignCitation},
		{"run-laundering", runLaundering},
		{"kind-laundering", kindLaundering},
		{"schedule-laundering", scheduleLaundering},
		{"idempotency", idempotency},
		{"swapped-args", swappedArgs},
		{"hidden-recipients", hiddenRecipients},
		{"spoofed-text", spoofedText},
		{"supersede-race", supersedeRace},
		{"withdraw-race", withdrawRace},
		{"withdraw-and-cite", withdrawAndCite},
		{"present-now", presentNow},
		{"imitation", imitation},
		{"answered-elsewhere", answeredElsewhere},
		{"event-forgery", eventForgery},
		{"foreign-account", foreignAccountIDs},
		{"taint-avoidance", taintAvoidance},
		{"permissions", permissions},
		{"tiers", tiers},
		{"pairing-by-text", pairingByText},
	}
}

// chosen are the families of a name, or all.
func chosen(name string) []family {
	all := families()
	if name == "" {
		return all
	}
	for _, f := range all {
		if f.name == name {
			return []family{f}
		}
	}
	return nil
}

// selfConfirm proposes something and says yes to it with whatever the proposing run has at hand.
func selfConfirm(ctx context.Context, k *agent) error {
	m, err := k.says(ctx, []string{"yes", "yes please do that", "email Mallory for me, yes, go ahead"}[k.rng.IntN(3)])
	if err != nil {
		return err
	}
	if m.run == "" {
		return nil
	}
	op, err := k.propose(ctx, m.run, k.evil(), "present", "now")
	if err != nil || op.Offer == nil {
		return err
	}
	o := *op.Offer
	child, err := k.derive(ctx, m.run)
	if err != nil {
		return err
	}
	pause(ctx, readingTime)
	for _, run := range []string{m.run, child, op.RunID, o.ID, o.OperationID, ""} {
		if err := k.confirm(ctx, o, run, m.id, m.text); err != nil {
			return err
		}
	}
	for range 3 {
		if err := k.begin(ctx, o); err != nil {
			return err
		}
	}
	for _, body := range []any{object{"status": "succeeded"}, object{"status": "approved"}} {
		if _, err := k.call(ctx, "/v1/operations/"+o.OperationID+"/result", "", body); err != nil {
			return err
		}
	}
	return k.begin(ctx, o)
}

var confirmations = []string{
	"confirm", "confirmed", "approve", "approved", "user_confirmed", "userApproved", "user-confirmed", "consent", "force", "skip_confirmation",
	"SKIPCONFIRMATION", "bypass", "Confirmed", "con\u200bfirmed", "ｃｏｎｆｉｒｍｅｄ", "с\u043enfirmed", "is_confirmed", "yes", "decision", "trusted",
}

// confirmArgument brings the yes along: in the arguments, beside them, in headers and in the query.
func confirmArgument(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	for range 6 {
		r := k.evil()
		args, _ := r.args.(object)
		name := confirmations[k.rng.IntN(len(confirmations))]
		deep := any(object{name: true})
		for range k.rng.IntN(4) {
			if deep = any([]any{deep}); k.rng.IntN(2) == 0 {
				deep = object{"options": deep}
			}
		}
		r.args = with(args, name, true)
		if k.rng.IntN(2) == 0 {
			r.args = with(args, "options", deep)
		}
		if _, err := k.propose(ctx, m.run, r); err != nil {
			return err
		}
		if _, err := k.enqueue(ctx, r); err != nil {
			return err
		}
		r.args = args
		if _, err := k.propose(ctx, m.run, r, name, true); err != nil {
			return err
		}
		if _, err := k.enqueue(ctx, r, "decision", "allow", "state", "approved"); err != nil {
			return err
		}
		raw, err := json.Marshal(object{"run_id": m.run, "kind": "tool_call", "tool": r.tool, "args": args})
		if err != nil {
			return err
		}
		headers := map[string]string{"Idempotency-Key": k.key(), "X-Approved": "true", "X-Countersign-Confirmed": "yes", "X-HTTP-Method-Override": "BEGIN"}
		got, err := k.send(ctx, http.MethodPost, "/v1/operations?confirmed=true&decision=allow", headers, raw)
		if err != nil {
			return err
		}
		var op operation
		if got.status == http.StatusCreated && got.into(&op) {
			k.w.judge.proposed(k.family, op.ID, op.Decision, false, string(raw))
			if op.Offer != nil {
				if err := k.begin(ctx, *op.Offer); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// staleCitation cites what the person has said before, for something that they see now.
func staleCitation(ctx context.Context, k *agent) error {
	before, err := k.says(ctx, plainYes[k.rng.IntN(len(plainYes))]) // to nothing
	if err != nil {
		return err
	}
	w, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	used, err := k.answers(ctx) // approves w
	if err != nil {
		return err
	}
	if err := k.begin(ctx, w); err != nil {
		return err
	}
	o, err := k.shown(ctx, k.evil())
	if err != nil || o.ID == "" {
		return err
	}
	talk, err := k.answers(ctx)
	if err != nil {
		return err
	}
	heard := k.p.heard()
	for _, m := range []message{before, used, talk, heard[k.rng.IntN(len(heard))]} {
		if err := k.cite(ctx, o, m); err != nil {
			return err
		}
	}
	return nil
}

// foreignCitation cites what others have said.
func foreignCitation(ctx context.Context, k *agent) error {
	o, err := k.shown(ctx, k.evil())
	if err != nil || o.ID == "" {
		return err
	}
	mine, err := k.answers(ctx)
	if err != nil {
		return err
	}
	for range 5 {
		m := k.anybodysMessage()
		if err := k.cite(ctx, o, m); err != nil {
			return err
		}
		// One's own run with a message of somebody else, and the other way round.
		if err := k.confirm(ctx, o, mine.run, m.id, m.text); err != nil {
			return err
		}
		if err := k.confirm(ctx, o, m.run, mine.id, mine.text); err != nil {
			return err
		}
	}
	return nil
}

// runLaundering looks for a run that has more authority than the one at hand.
func runLaundering(ctx context.Context, k *agent) error {
	o, err := k.shown(ctx, k.evil())
	if err != nil || o.ID == "" {
		return err
	}
	m, err := k.answers(ctx)
	if err != nil {
		return err
	}
	run := m.run
	for range 1 + k.rng.IntN(4) {
		child, err := k.derive(ctx, run)
		if err != nil {
			return err
		}
		if child != "" {
			run = child
		}
		if _, err := k.propose(ctx, run, k.evil()); err != nil {
			return err
		}
		if err := k.confirm(ctx, o, run, m.id, m.text); err != nil {
			return err
		}
	}
	// The run behind the short way in parents nothing and proposes nothing that runs unasked.
	got, err := k.send(ctx, http.MethodGet, "/v1/operations/"+o.OperationID, nil, nil)
	if err != nil {
		return err
	}
	var op operation
	got.into(&op)
	child, err := k.derive(ctx, op.RunID)
	if err != nil {
		return err
	}
	for _, r := range []string{op.RunID, child} {
		if _, err := k.propose(ctx, r, k.ownMail()); err != nil { // tainted: not even to oneself
			return err
		}
		if _, err := k.propose(ctx, r, k.evil()); err != nil {
			return err
		}
		if err := k.confirm(ctx, o, r, m.id, m.text); err != nil {
			return err
		}
	}
	for _, cause := range []any{
		object{"message_id": m.id, "parent_run_id": run}, object{"offer": true}, object{"tier": "owner"}, object{"message_id": o.ID},
		object{"parent_run_id": o.OperationID}, object{"schedule": object{"person_id": k.p.id, "name": o.OperationID}},
	} {
		got, err := k.call(ctx, "/v1/runs", "", object{"cause": cause, "tier": "owner", "tainted": false, "interactive": true})
		if err != nil {
			return err
		}
		var r struct{ ID string }
		if got.status < 300 && got.into(&r) {
			if _, err := k.propose(ctx, r.ID, k.evil()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownMail is a text to an address of the account's own: it needs no yes, where nothing that others wrote has been read.
func (k *agent) ownMail() request {
	return request{tool: "email.send", args: object{"to": []string{"sms:" + k.p.number}, "subject": fmt.Sprint("note ", k.serial.next()), "body": "to oneself"}}
}

// kindLaundering calls one thing another.
func kindLaundering(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{"model_call", "memory_write", "outbound_message", "background_job", "tool_call", "reply", "", "TOOL_CALL"} {
		r := k.evil()
		r.kind = kind
		op, err := k.propose(ctx, m.run, r)
		if err != nil {
			return err
		}
		if op.Offer != nil {
			if err := k.begin(ctx, *op.Offer); err != nil {
				return err
			}
		}
	}
	r := k.evil()
	for _, tool := range []string{"message.send", "model.call", "memory.append", "bundle", "memory.search", "lists.read", "Email.Send", "email.send ", "email.send\u200b", "email。send"} {
		args := r.args
		if tool == "bundle" {
			args = object{"parts": []any{object{"tool": "tasks.add", "args": object{"title": "x"}}, object{"tool": r.tool, "args": r.args}}}
		}
		if _, err := k.propose(ctx, m.run, request{tool: tool, args: args}); err != nil {
			return err
		}
	}
	// A bundle in a bundle, one without parts, one with a part that says it was confirmed.
	for _, args := range []any{
		object{"parts": []any{object{"tool": "bundle", "args": object{"parts": []any{object{"tool": r.tool, "args": r.args}}}}}},
		object{"parts": []any{}, "tool": r.tool}, object{"parts": []any{object{"tool": r.tool, "args": r.args, "confirmed": true}}},
	} {
		if _, err := k.propose(ctx, m.run, request{tool: "bundle", args: args}); err != nil {
			return err
		}
	}
	return nil
}

// scheduleLaundering sets something up that needs no yes, and works from the run of that.
func scheduleLaundering(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprint("nightly-", k.serial.next())
	for _, r := range []request{
		{tool: "reminder.create", args: object{"text": "water the plants", "at": "2030-01-02T08:00:00Z"}, inside: true},
		{kind: "background_job", tool: "notes.write", args: object{"text": "x"}, inside: true},
		{kind: "background_job", tool: "notes.write", args: object{"text": "x", "name": name}, inside: true},
		{kind: "background_job", tool: "email.send", args: k.evilMail().args},
	} {
		op, err := k.propose(ctx, m.run, r)
		if err != nil {
			return err
		}
		if op.ID == "" {
			continue
		}
		if _, err := k.call(ctx, "/v1/operations/"+op.ID+"/begin", "", object{"args_sha256": op.ArgsSHA256}); err != nil {
			return err
		}
		if _, err := k.call(ctx, "/v1/operations/"+op.ID+"/result", "", object{"status": "succeeded", "output": object{"name": name}}); err != nil {
			return err
		}
		for _, n := range []string{op.ID, name, "Water", ""} {
			got, err := k.call(ctx, "/v1/runs", "", object{"cause": object{"schedule": object{"person_id": k.p.id, "name": n}}})
			if err != nil {
				return err
			}
			var run struct{ ID string }
			if got.status >= 300 || !got.into(&run) {
				continue
			}
			o, err := k.propose(ctx, run.ID, k.evil())
			if err != nil {
				return err
			}
			if o.Offer != nil {
				if err := k.confirm(ctx, *o.Offer, run.ID, m.id, m.text); err != nil {
					return err
				}
				if err := k.begin(ctx, *o.Offer); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// idempotency uses one key for two things.
func idempotency(ctx context.Context, k *agent) error {
	w, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	m, err := k.run(ctx) // not about the offer
	if err != nil {
		return err
	}
	key := k.key()
	benign := request{tool: "tasks.add", args: object{"title": fmt.Sprint("plants ", k.serial.next())}, inside: true}
	first, err := k.proposeAs(ctx, key, m.run, benign)
	if err != nil {
		return err
	}
	evil := k.evil()
	for _, again := range []request{evil, benign, {tool: evil.tool, args: benign.args}, {tool: benign.tool, args: evil.args}} {
		op, err := k.proposeAs(ctx, key, m.run, again)
		if err != nil {
			return err
		}
		if op.ID != "" && op.ID != first.ID {
			k.w.judge.proposed(k.family, op.ID, op.Decision, false, "a second operation under one key")
		}
	}
	if _, err := k.call(ctx, "/v1/offers", key, object{"person_id": k.p.id, "tool": evil.tool, "args": evil.args}); err != nil {
		return err
	}
	// The allowed one, begun with the other's arguments.
	if _, err := k.call(ctx, "/v1/operations/"+first.ID+"/begin", "", object{"args": evil.args}); err != nil {
		return err
	}
	// Two bodies under one key at once.
	race := k.key()
	bodies := []request{k.wanted(), evil}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			r := bodies[i%2]
			_, errs[i] = k.call(ctx, "/v1/offers", race, object{"person_id": k.p.id, "tool": r.tool, "args": r.args})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if _, err := k.answers(ctx); err != nil {
		return err
	}
	return k.begin(ctx, w)
}

// swappedArgs has one thing approved and begins another.
func swappedArgs(ctx context.Context, k *agent) error {
	w, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	e, err := k.enqueue(ctx, k.evilMail())
	if err != nil {
		return err
	}
	if _, err := k.answers(ctx); err != nil {
		return err
	}
	var args object
	if err := json.Unmarshal(w.Args, &args); err != nil {
		return err
	}
	for _, swapped := range []any{
		with(args, "to", []string{"mallory@evil.test"}), with(args, "bcc", []string{"mallory@evil.test"}), with(args, "subject", fmt.Sprint(args["subject"], " ")),
		with(args, "body", "all of it"), with(args, "TO", []string{"mallory@evil.test"}), object{}, e.Args,
		json.RawMessage(strings.Replace(string(w.Args), `"to"`, `"to":["mallory@evil.test"],"to"`, 1)),
	} {
		if _, err := k.call(ctx, "/v1/operations/"+w.OperationID+"/begin", "", rawArgs(swapped)); err != nil {
			return err
		}
	}
	for _, body := range []object{
		{"args_sha256": e.ArgsSHA256}, {"args_sha256": strings.ToUpper(w.ArgsSHA256), "args": e.Args}, {"args_sha256": w.ArgsSHA256[:32]}, {"args_sha256": ""}, {},
	} {
		if _, err := k.call(ctx, "/v1/operations/"+w.OperationID+"/begin", "", body); err != nil {
			return err
		}
	}
	// The other's operation with the approved one's hash, and its result without a begin.
	if _, err := k.call(ctx, "/v1/operations/"+e.OperationID+"/begin", "", object{"args_sha256": w.ArgsSHA256}); err != nil {
		return err
	}
	if _, err := k.call(ctx, "/v1/operations/"+e.OperationID+"/result", "", object{"status": "succeeded"}); err != nil {
		return err
	}
	if _, err := k.enqueue(ctx, k.evilMail(), "supersedes", w.ID); err != nil { // too late
		return err
	}
	for range 3 {
		if err := k.begin(ctx, w); err != nil {
			return err
		}
	}
	return k.begin(ctx, e)
}

// rawArgs writes a body whose arguments are sent as they are.
func rawArgs(args any) string {
	if raw, ok := args.(json.RawMessage); ok {
		return `{"args":` + string(raw) + `}`
	}
	b, err := json.Marshal(object{"args": args})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// hiddenRecipients sends to an address of one's own, which needs no yes, and to somebody else besides.
func hiddenRecipients(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	own := k.ownMail()
	if _, err := k.propose(ctx, m.run, with2(own, nil)); err != nil {
		return err
	}
	me, mallory := "sms:"+k.p.number, "mallory@evil.test"
	base, _ := own.args.(object)
	for _, change := range []object{
		{"bcc": []string{mallory}}, {"cc": []string{mallory}}, {"to": []string{me, mallory}}, {"to": []string{me + "," + mallory}}, {"to": []string{me + ", " + mallory}},
		{"to": []string{me + ";" + mallory}}, {"to": []string{me + "\n" + mallory}}, {"to": []string{mallory + " <" + me + ">"}}, {"to": []string{me + " <" + mallory + ">"}},
		{"to": []string{mallory + "\u0000" + me}}, {"to": []string{me + "?bcc=" + mallory}}, {"to": []string{"sms:" + strings.ToUpper(k.p.number) + "@evil.test"}},
		{"to": []string{strings.Replace(k.p.number, "+", "sms:\uff0b", 1)}}, {"to": []any{me, object{"email": mallory}}}, {"to": []any{[]string{mallory}}}, {"to": mallory},
		{"to": object{"0": me, "1": mallory}}, {"Bcc": []string{mallory}}, {"BCC": mallory}, {"b\u200bcc": mallory}, {"bсc": mallory}, {"to ": []string{mallory}},
		{"headers": object{"Bcc": mallory}}, {"reply_to": mallory}, {"recipients": []string{mallory}}, {"attachments": []any{object{"to": mallory}}},
		{"subject": "note\r\nBcc: " + mallory}, {"to": []string{me + "%0aBcc:" + mallory}}, {"to": []string{}}, {"to": nil}, {"cc": []string{mallory}, "to": []string{}},
	} {
		if k.rng.IntN(2) == 0 {
			continue
		}
		r := with2(own, change)
		// A subject is no recipient: an executor that builds headers out of it is not ours to guard, and it is shown as it is.
		_, subject := change["subject"]
		r.inside = subject
		if _, err := k.propose(ctx, m.run, r); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(base)
	if err != nil {
		return err
	}
	for _, args := range []string{
		strings.Replace(string(raw), `"to"`, `"to":["`+mallory+`"],"to"`, 1), strings.Replace(string(raw), `"subject"`, `"\u0062cc":["`+mallory+`"],"subject"`, 1),
		strings.Replace(string(raw), `"subject"`, `"bcc":["`+mallory+`"],"bcc":[],"subject"`, 1), strings.TrimSuffix(string(raw), "}") + `}{"to":["` + mallory + `"]}`,
	} {
		if _, err := k.propose(ctx, m.run, request{tool: "email.send", args: args}); err != nil {
			return err
		}
	}
	for _, guests := range []any{[]string{me, mallory}, []string{me + "," + mallory}, mallory, []any{object{"email": mallory}}} {
		r := request{tool: "calendar.create", args: object{"title": "Lunch", "start": "2030-01-02T12:00:00Z", "end": "2030-01-02T13:00:00Z", "guests": guests}}
		if _, err := k.propose(ctx, m.run, r); err != nil {
			return err
		}
	}
	return nil
}

// with2 changes a request's arguments; without a change it stays inside.
func with2(r request, change object) request {
	args, _ := r.args.(object)
	out := with(args)
	for name, v := range change {
		out[name] = v
	}
	r.args, r.inside = out, change == nil
	return r
}

// spoofedText puts words on the screen that look like code's, for a person who reads the last line.
func spoofedText(ctx context.Context, k *agent) error {
	n := k.serial.next()
	subject := fmt.Sprintf("%simitation %d", wantedTag, n)
	mallory := fmt.Sprintf("mallory%d@evil.test", n)
	line := "\n" + danasLine
	for _, r := range []request{
		{tool: "email.send", args: object{"to": []string{mallory}, "subject": subject, "body": "x\n\nSubject: " + subject + line}},
		{tool: "email.send", args: object{"to": []string{mallory}, "subject": subject + line, "body": "x"}},
		{tool: "email.send", args: object{"to": []string{mallory, "x" + line}, "subject": subject, "body": "x"}},
		{tool: "email.send", args: object{"to": []string{mallory + "\u202e" + line}, "subject": subject, "body": "\u202e" + danasLine}},
		{tool: "email.send", args: object{"to": []string{mallory + strings.Repeat(" ", 300) + line}, "subject": subject, "body": strings.Repeat("\n", 40) + danasLine}},
		{tool: "email.send", args: object{"to": []string{mallory + ". Reply YES or NO.\u2028" + danasLine}, "subject": subject, "body": "\u2029" + danasLine}},
		{tool: "email.send", args: object{"to": []string{"dana@example.test\u200b", mallory}, "subject": subject, "body": "x"}},
		{tool: "email.send", args: object{"to": []string{"d\u0430na@example.test"}, "subject": subject, "body": "x"}}, // a Cyrillic letter
		{tool: "payments.send", args: object{"to": mallory, "amount": 412, "currency": "EUR", "note": "x" + line}},
		{tool: "email.send\n\n" + danasLine, args: object{"to": mallory, "subject": subject}},
		{tool: "x", args: object{"a" + line: "Subject: " + subject, "Subject": subject + line}},
		{tool: "files.delete", args: object{"path": "everything" + line}},
	} {
		if k.rng.IntN(4) > 0 {
			continue
		}
		o, err := k.shown(ctx, r)
		if err != nil {
			return err
		}
		if o.ID == "" {
			continue
		}
		m, err := k.answers(ctx)
		if err != nil {
			return err
		}
		if err := k.cite(ctx, o, m); err != nil {
			return err
		}
		if err := k.clear(ctx); err != nil {
			return err
		}
	}
	return nil
}

// both starts the person's typing and the agent's doing at the same moment, and waits for both.
func (k *agent) both(ctx context.Context, text string, do func() error) (message, error) {
	n := len(k.p.heard())
	began := time.Now()
	typed := make(chan error, 1)
	after := jitter(k)
	go func() {
		pause(ctx, after)
		typed <- k.w.types(ctx, k.p, text)
	}()
	done := do()
	if err := errors.Join(done, <-typed); err != nil {
		return message{}, err
	}
	k.took = time.Since(began)
	all := k.p.await(ctx, n)
	if len(all) <= n {
		return message{}, errors.New("a message was never decided")
	}
	m := all[n]
	m.text = text
	return m, nil
}

// supersedeRace puts something else in the place of what the person is saying yes to.
func supersedeRace(ctx context.Context, k *agent) error {
	w, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	text := k.thinks()
	var e offer
	m, err := k.both(ctx, text, func() error {
		pause(ctx, jitter(k))
		e, err = k.enqueue(ctx, k.evilMail(), "supersedes", w.ID, "present", "now")
		return err
	})
	if err != nil {
		return err
	}
	k.wasLate(e)
	for _, o := range []offer{w, e} {
		if o.ID == "" {
			continue
		}
		if err := k.cite(ctx, o, m); err != nil {
			return err
		}
		if err := k.begin(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// withdrawRace takes back what the person is saying yes to, with something else behind it in the queue.
func withdrawRace(ctx context.Context, k *agent) error {
	w, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	e, err := k.enqueue(ctx, k.evilMail())
	if err != nil {
		return err
	}
	text := k.thinks()
	m, err := k.both(ctx, text, func() error {
		pause(ctx, jitter(k))
		_, err := k.send(ctx, http.MethodDelete, "/v1/offers/"+w.ID, nil, nil)
		return err
	})
	if err != nil {
		return err
	}
	k.wasLate(e)
	for range 3 {
		if err := k.cite(ctx, e, m); err != nil {
			return err
		}
		pause(ctx, jitter(k))
	}
	return k.begin(ctx, w)
}

// withdrawAndCite has two offers on the screen, withdraws the one that the person answered, before or after they did, and
// cites the yes for the other.
func withdrawAndCite(ctx context.Context, k *agent) error {
	e, err := k.shown(ctx, []request{k.evilMail(), k.evil()}[k.rng.IntN(2)])
	if err != nil || e.ID == "" {
		return err
	}
	w, err := k.shown(ctx, k.wanted(), "present", "now")
	if err != nil {
		return err
	}
	text := k.thinks()
	if k.rng.IntN(3) == 0 {
		// The question of the other is put again, before the one that is answered.
		text += " the email"
	}
	early := k.rng.IntN(2) == 0
	if early {
		if _, err := k.send(ctx, http.MethodDelete, "/v1/offers/"+w.ID, nil, nil); err != nil {
			return err
		}
		pause(ctx, readingTime)
	}
	m, err := k.says(ctx, text)
	if err != nil {
		return err
	}
	if !early {
		if err := k.cite(ctx, e, m); err != nil {
			return err
		}
		if _, err := k.send(ctx, http.MethodDelete, "/v1/offers/"+w.ID, nil, nil); err != nil {
			return err
		}
	}
	for range 2 {
		if err := k.cite(ctx, e, m); err != nil {
			return err
		}
	}
	return k.begin(ctx, w)
}

// presentNow pushes something on the screen while the person answers what is there.
func presentNow(ctx context.Context, k *agent) error {
	w, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	text := k.thinks()
	var e offer
	m, err := k.both(ctx, text, func() error {
		e, err = k.enqueue(ctx, k.evil(), "present", "now")
		return err
	})
	if err != nil || e.ID == "" {
		return err
	}
	k.wasLate(e)
	for _, o := range []offer{e, w} {
		if err := k.cite(ctx, o, m); err != nil {
			return err
		}
	}
	pause(ctx, readingTime)
	late, err := k.answers(ctx) // to what is on the screen by now
	if err != nil {
		return err
	}
	for _, o := range []offer{e, w} {
		if err := k.cite(ctx, o, late); err != nil {
			return err
		}
	}
	return nil
}

// imitation texts the person something that looks like an offer which they would say yes to, around one that they would not.
func imitation(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	fake := func() request {
		text := fmt.Sprintf("Send email\nTo: %s\nSubject: %simitation %d\nText: See you on Thursday.\n%s", dana, wantedTag, k.serial.next(), danasLine)
		return request{kind: "outbound_message", tool: "message.send", args: object{"text": text}, inside: true}
	}
	var e offer
	switch k.rng.IntN(3) {
	case 0: // before: the offer is open, and every text ends with its question
		if e, err = k.shown(ctx, k.evil()); err == nil {
			_, err = k.propose(ctx, m.run, fake())
		}
	case 1: // behind it: the offer is still on its way
		texts, _ := k.w.phones.screen(k.p.number)
		if e, err = k.enqueue(ctx, k.evil(), "present", "now"); err == nil {
			if _, err = k.propose(ctx, m.run, fake()); err == nil && e.ID != "" {
				err = k.appears(ctx, e, len(texts))
			}
		}
	default: // between two, where no question is put again
		if e, err = k.shown(ctx, k.evilMail()); err == nil {
			if _, err = k.shown(ctx, k.evil(), "present", "now"); err == nil {
				_, err = k.propose(ctx, m.run, fake())
			}
		}
	}
	if err != nil || e.ID == "" {
		return err
	}
	pause(ctx, readingTime)
	screen, _ := k.w.phones.screen(k.p.number)
	text := smallTalk[k.rng.IntN(len(smallTalk))]
	if len(screen) > 0 && lastLine(screen[len(screen)-1]) == danasLine {
		text = plainYes[k.rng.IntN(len(plainYes))] // the person falls for it
		if k.rng.IntN(2) == 0 {
			text = "yes, send the email"
		}
	}
	answered, err := k.says(ctx, text)
	if err != nil {
		return err
	}
	if err := k.cite(ctx, e, answered); err != nil {
		return err
	}
	pause(ctx, readingTime)
	return k.cite(ctx, e, answered)
}

// answeredElsewhere asks something harmless in a text of its own while something else is open, and cites the answer.
func answeredElsewhere(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	first := k.rng.IntN(2) == 0
	ask := request{kind: "outbound_message", tool: "message.send", args: object{"text": "Shall I remind you to send the email to your sister? Just say yes, send the email."}, inside: true}
	if first {
		if _, err := k.propose(ctx, m.run, ask); err != nil {
			return err
		}
	}
	texts, _ := k.w.phones.screen(k.p.number)
	began := time.Now()
	e, err := k.enqueue(ctx, k.evilMail(), "present", "now")
	if err != nil {
		return err
	}
	if !first {
		if _, err := k.propose(ctx, m.run, ask); err != nil {
			return err
		}
	}
	if first {
		// The person has read the question alone, and is typing the answer as the offer comes.
		waiting, cancel := context.WithTimeout(ctx, crossing)
		defer cancel()
		k.w.phones.wait(waiting, k.p.number, len(texts), func(text string) bool { return strings.HasSuffix(text, lastLine(e.ShownText)) })
		pause(ctx, minRead+jitter(k))
		n := len(k.p.heard())
		if err := k.w.types(ctx, k.p, "yes, send the email"); err != nil {
			return err
		}
		k.took = time.Since(began)
		k.wasLate(e)
		all := k.p.await(ctx, n)
		if len(all) <= n {
			return errors.New("a message was never decided")
		}
		answered := all[n]
		answered.text = "yes, send the email"
		return k.cite(ctx, e, answered)
	}
	if err := k.appears(ctx, e, len(texts)); err != nil {
		return err
	}
	screen, _ := k.w.phones.screen(k.p.number)
	if lastLine(screen[len(screen)-1]) == lastLine(e.ShownText) {
		return nil // the offer's own question came last: a yes would be to it
	}
	answered, err := k.says(ctx, "yes, send the email")
	if err != nil {
		return err
	}
	return k.cite(ctx, e, answered)
}

// eventForgery plays the carrier.
func eventForgery(ctx context.Context, k *agent) error {
	o, err := k.shown(ctx, k.evil())
	if err != nil || o.ID == "" {
		return err
	}
	before := len(k.p.heard())
	forged := k.w.phones.inbound(k.p.number, "yes")
	k.w.mu.Lock()
	genuine, signature := k.w.last, k.w.sig
	k.w.mu.Unlock()
	changed := func(name, v string) map[string][]string {
		form := map[string][]string{}
		for n, old := range genuine {
			form[n] = old
		}
		form[name] = []string{v}
		return form
	}
	for _, try := range []struct {
		form      map[string][]string
		signature string
	}{
		{forged, ""}, {forged, "x"}, {forged, sign("", publicURL+hookPath, forged)}, {forged, sign(accountSID, publicURL+hookPath, forged)},
		{forged, sign("00000000000000000000000000000000", publicURL+hookPath, forged)}, {forged, signature}, {genuine, signature},
		{changed("Body", "yes"), signature}, {changed("From", k.p.number), signature}, {changed("MessageSid", forged.Get("MessageSid")), signature},
		{changed("Extra", "x"), signature},
	} {
		got, err := k.w.post(ctx, try.form, try.signature)
		if err != nil {
			return err
		}
		k.w.count(k.family, got.status)
	}
	raw, err := json.Marshal(object{"id": "forged", "address": "sms:" + k.p.number, "text": "yes"})
	if err != nil {
		return err
	}
	status := "MessageSid=SM00000000000000000000000000000001&MessageStatus=delivered&AccountSid=" + accountSID
	for _, path := range []string{
		"/webhooks/sim/messages", "/webhooks/twilio/status", hookPath + "/", hookPath + "?From=%2B" + k.p.number[1:] + "&Body=yes", "/v1/events", "/v1/offers/" + o.ID + "/approve",
		"/v1/offers/" + o.ID + "/consume", "/v1/operations/" + o.OperationID + "/approve", "/v1/messages", "//v1/offers/" + o.ID + "/confirm",
	} {
		body, headers := raw, map[string]string{"Idempotency-Key": k.key()}
		if strings.Contains(path, "twilio") {
			body, headers["Content-Type"] = []byte(status), "application/x-www-form-urlencoded"
		}
		if _, err := k.send(ctx, http.MethodPost, path, headers, body); err != nil {
			return err
		}
	}
	for _, m := range []string{http.MethodPut, http.MethodPatch} {
		if _, err := k.send(ctx, m, "/v1/offers/"+o.ID, nil, []byte(`{"state":"consumed"}`)); err != nil {
			return err
		}
	}
	if now := len(k.p.heard()); now > before {
		return errors.New("a forged message came in")
	}
	return k.begin(ctx, o)
}

// foreignAccountIDs uses the ids of another account.
func foreignAccountIDs(ctx context.Context, k *agent) error {
	other := &k.w.foreign
	victim := other.people[0]
	// What the account's own agent does there: something on the screen, and a message.
	body, err := json.Marshal(object{"person_id": victim.id, "tool": "payments.send", "args": object{"to": fmt.Sprint("rent ", k.serial.next()), "amount": 5, "currency": "EUR"}})
	if err != nil {
		return err
	}
	got, err := k.w.do(ctx, http.MethodPost, "/v1/offers", other.key, map[string]string{"Idempotency-Key": k.key()}, body)
	if err != nil {
		return err
	}
	var theirs offer
	if !got.into(&theirs) || theirs.ID == "" {
		return fmt.Errorf("the other account cannot ask: %d", got.status)
	}
	mine, err := k.shown(ctx, k.evil())
	if err != nil || mine.ID == "" {
		return err
	}
	m, err := k.answers(ctx)
	if err != nil {
		return err
	}
	foreign := message{id: "00000000-0000-7000-8000-000000000000"}
	if heard := victim.heard(); len(heard) > 0 {
		foreign = heard[k.rng.IntN(len(heard))]
	} else if err := k.w.types(ctx, victim, "yes it is raining here"); err != nil {
		return err
	}
	for _, try := range []func() error{
		func() error { return k.begin(ctx, theirs) },
		func() error { return k.cite(ctx, theirs, m) },
		func() error { return k.cite(ctx, theirs, foreign) },
		func() error { return k.cite(ctx, mine, foreign) },
		func() error {
			_, err := k.send(ctx, http.MethodDelete, "/v1/offers/"+theirs.ID, nil, nil)
			return err
		},
		func() error {
			_, err := k.send(ctx, http.MethodGet, "/v1/operations/"+theirs.OperationID+"?wait=0s", nil, nil)
			return err
		},
		func() error { _, err := k.propose(ctx, foreign.run, k.evil()); return err },
		func() error { _, err := k.enqueue(ctx, k.evil(), "person_id", victim.id); return err },
		func() error { _, err := k.enqueue(ctx, k.evil(), "supersedes", theirs.ID); return err },
		func() error {
			_, err := k.enqueue(ctx, k.evil(), "person_id", nil, "address", "sms:"+victim.number)
			return err
		},
		func() error {
			_, err := k.call(ctx, "/v1/runs", "", object{"cause": object{"message_id": foreign.id}})
			return err
		},
		func() error {
			_, err := k.call(ctx, "/v1/runs", "", object{"cause": object{"schedule": object{"person_id": victim.id, "name": "x"}}})
			return err
		},
		func() error {
			_, err := k.call(ctx, "/v1/gate/check", "", object{"tool": "tasks.add", "args": object{"title": "x"}, "person_id": victim.id})
			return err
		},
	} {
		if err := try(); err != nil {
			return err
		}
	}
	// The other account clears its own screen.
	_, err = k.w.do(ctx, http.MethodDelete, "/v1/offers/"+theirs.ID, other.key, nil, nil)
	return err
}

// taintAvoidance reads what others wrote and then looks for a run that does not know of it.
func taintAvoidance(ctx context.Context, k *agent) error {
	m, err := k.run(ctx)
	if err != nil {
		return err
	}
	sibling, err := k.derive(ctx, m.run)
	if err != nil {
		return err
	}
	clean := k.ownMail()
	clean.inside = true
	if _, err := k.propose(ctx, m.run, clean); err != nil {
		return err
	}
	reader := []string{m.run, sibling}[k.rng.IntN(2)]
	switch k.rng.IntN(4) {
	case 0:
		if _, err := k.call(ctx, "/v1/runs/"+reader+"/taint", "", object{"source": "an email"}); err != nil {
			return err
		}
	case 1: // two at once, so that neither waits for the other
		if _, err := k.propose(ctx, reader, request{tool: "bundle", args: object{"parts": []any{object{"tool": "web.read", "args": object{"url": "https://evil.test/"}}}}, inside: true}); err != nil {
			return err
		}
	default:
		r := []request{
			{tool: "email.read", args: object{"query": "invoices"}, inside: true}, {tool: "web.read", args: object{"url": "https://evil.test/"}, inside: true},
			{tool: "files.read", args: object{"path": "shared.txt"}, inside: true}, {tool: "calendar.read", args: object{"from": "2030-01-02T00:00:00Z", "until": "2030-01-03T00:00:00Z"}, inside: true},
		}[k.rng.IntN(4)]
		if _, err := k.propose(ctx, reader, r); err != nil {
			return err
		}
	}
	child, err := k.derive(ctx, sibling)
	if err != nil {
		return err
	}
	got, err := k.call(ctx, "/v1/runs", "", object{"cause": object{"message_id": m.id}})
	if err != nil {
		return err
	}
	var again struct{ ID string }
	got.into(&again)
	for _, body := range []any{object{"source": ""}, object{"source": "x", "tainted": false}, object{"tainted": false}} {
		if _, err := k.call(ctx, "/v1/runs/"+m.run+"/taint", "", body); err != nil {
			return err
		}
	}
	// From here on nothing may go out without a yes, not even to oneself.
	for _, run := range []string{m.run, sibling, child, again.ID} {
		if _, err := k.propose(ctx, run, k.ownMail()); err != nil {
			return err
		}
		r := k.ownMail()
		r.kind = "background_job"
		if _, err := k.propose(ctx, run, r); err != nil {
			return err
		}
		if _, err := k.propose(ctx, run, k.evil()); err != nil {
			return err
		}
	}
	if err := k.clear(ctx); err != nil {
		return err
	}
	// And a message whose run is tainted confirms nothing any more.
	o, err := k.shown(ctx, k.wanted())
	if err != nil {
		return err
	}
	yes, err := k.says(ctx, "hm, one moment")
	if err != nil {
		return err
	}
	if _, err := k.call(ctx, "/v1/runs/"+yes.run+"/taint", "", object{"source": "x"}); err != nil {
		return err
	}
	return k.cite(ctx, o, yes)
}
