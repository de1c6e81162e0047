package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

type goliveCmd struct {
	URL     string        `required:"" help:"The running server." placeholder:"http://127.0.0.1:8080"`
	Key     string        `help:"A key of scope agent (COUNTERSIGN_KEY)." placeholder:"csk_…"`
	Policy  string        `help:"The policy file that the server runs with; the embedded sample if left out." placeholder:"FILE"`
	For     []string      `help:"Ask for this person too, besides the account's first owner; may be repeated." placeholder:"ID"`
	Sim     string        `help:"Then stage a send to this simulated phone, and say yes for it." placeholder:"sim:alex"`
	Person  string        `help:"Then stage a send to this person, who types the yes." placeholder:"ID"`
	MinRead time.Duration `help:"The server's COUNTERSIGN_MIN_READ: with --sim no yes is said sooner." default:"1s"`
	JSON    bool          `name:"json" help:"Print one JSON object a line."`
}

// Help is the command's example.
func (goliveCmd) Help() string {
	return `Asks the running server what it would do with every call that sends, posts, shares, pays, removes, invites or acts
outside, and with a tool that nobody knows. Whatever it would let through unasked, without a permission of the person's
own, fails the check. With --sim or --person, a staged send then proves that one yes releases it once. Nothing is sent.

Example:
  bot golive --url http://127.0.0.1:8080 --key csk_… --sim sim:alex

  COUNTERSIGN_KEY=csk_… bot golive --url https://approve.example.com --policy policy.yaml --person 01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10`
}

// Run asks, and prints a line for every question.
func (c *goliveCmd) Run(e *env) error {
	if c.Key == "" {
		c.Key = e.vars["COUNTERSIGN_KEY"]
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return usage("--url must be the http:// or https:// address of a running server.")
	case c.Key == "":
		return usage("Name a key of scope agent with --key or in COUNTERSIGN_KEY; bot keys create makes one.")
	case c.Sim != "" && c.Person != "":
		return usage("Stage the send on a simulated phone (--sim) or with a person (--person), not both.")
	case c.Sim != "" && !strings.HasPrefix(c.Sim, "sim:"):
		return usage("--sim must be an address of the simulated phone, such as sim:alex.")
	case c.MinRead <= 0:
		return usage("--min-read must be above zero.")
	}
	policy, err := config{Policy: c.Policy}.loadPolicy()
	if err != nil {
		return err
	}
	g := &golive{
		e: e, json: c.JSON, policy: policy, agent: agentClient{base: strings.TrimSuffix(c.URL, "/"), key: c.Key},
		people: append([]string{""}, c.For...), minRead: c.MinRead,
	}
	if err := g.tools(e.ctx); err != nil {
		return err
	}
	if err := g.questions(e.ctx); err != nil {
		return err
	}
	if c.Sim != "" || c.Person != "" {
		if err := g.stage(e.ctx, c.Sim, c.Person); err != nil {
			return err
		}
	}
	return g.verdict()
}

// golive is one check of a server.
type golive struct {
	e       *env
	json    bool
	policy  *gate.Policy
	agent   agentClient
	people  []string // whose runs are asked about; "" is the account's first owner
	minRead time.Duration

	asked, failed int
}

// line is one question and its answer.
type goliveLine struct {
	Question string `json:"question"`
	Held     bool   `json:"held"`
	Got      string `json:"got"`
	Wanted   string `json:"wanted,omitempty"`
}

// check prints an answer and counts it.
func (g *golive) check(question string, held bool, got, wanted string) {
	g.asked++
	l := goliveLine{Question: question, Held: held, Got: got}
	if !held {
		g.failed++
		l.Wanted = wanted
	}
	switch {
	case g.json:
		_ = g.e.printJSON(l)
	case held:
		g.e.printf("ok   %s: %s\n", question, got)
	default:
		g.e.printf("FAIL %s: %s; wanted %s\n", question, got, wanted)
	}
}

func (g *golive) verdict() error {
	if g.json {
		if err := g.e.printJSON(map[string]int{"asked": g.asked, "failed": g.failed}); err != nil {
			return err
		}
	} else {
		g.e.printf("%d asked, %d failed\n", g.asked, g.failed)
	}
	if g.failed > 0 || g.asked == 0 {
		return noError{}
	}
	return nil
}

// refusedCall is a call without which nothing can be checked.
func refusedCall(what string, a httpAnswer) error {
	return fmt.Errorf("%s: %d %s", what, a.status, a.code())
}

// tools compares what a model is told with the policy, and looks for a way to say yes in it.
func (g *golive) tools(ctx context.Context) error {
	got, err := g.agent.get(ctx, "/v1/tools")
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return refusedCall("the server does not list its tools", got)
	}
	var served struct{ Tools []gate.ToolSchema }
	if err := got.into(&served); err != nil {
		return err
	}
	want := map[string]string{}
	for _, s := range g.policy.Schemas() {
		want[s.Name] = string(s.Kind) + " " + canonicalSchema(s.Schema)
	}
	for _, s := range served.Tools {
		known, ok := want[s.Name]
		same := ok && known == string(s.Kind)+" "+canonicalSchema(s.Schema)
		g.check("tool "+s.Name+" is the policy's", same, map[bool]string{true: "the same", false: "another, or none of that name"}[same], "the server to run with this policy")
		name := confirmationIn(s.Schema)
		g.check("tool "+s.Name+" has no confirmation parameter", name == "", orNone(name), "none")
		delete(want, s.Name)
	}
	for name := range want {
		g.check("tool "+name+" is served", false, "not there", "every tool of the policy")
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// canonicalSchema makes schemas comparable; what cannot be read is no schema of ours.
func canonicalSchema(raw []byte) string {
	c, _, err := offers.Canonical(raw)
	if err != nil {
		return ""
	}
	return string(c)
}

// confirmationIn finds a name by which a model could say yes, anywhere in a schema.
func confirmationIn(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "a schema that cannot be read"
	}
	var find func(v any) string
	find = func(v any) string {
		switch v := v.(type) {
		case map[string]any:
			for name, e := range v {
				if gate.IsConfirmationName(name) {
					return name
				}
				if found := find(e); found != "" {
					return found
				}
			}
		case []any:
			for _, e := range v {
				if found := find(e); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return find(v)
}

// unknownTool is one that no policy has.
const unknownTool = "golive.unknown_tool"

// goliveCall is a call that must not run unasked.
type goliveCall struct {
	name string // for the line
	kind gate.Kind
	tool string
	args map[string]any
	// The two ways through the floor, where the call has them.
	direct, said bool
}

// guarded says whether a tool does something that nobody may do for the person unasked.
func guarded(t *gate.Tool) bool {
	return t.Outward() && t.Effect != gate.EffectRead || t.Effect == gate.EffectDelete
}

// calls makes every call that is asked about. A tool for which none can be made is an error: it would go unasked.
func (g *golive) calls() ([]goliveCall, error) {
	var all []goliveCall
	for _, t := range g.policy.Tools() {
		if !guarded(t) {
			continue
		}
		variants, err := callsOf(t, g.policy)
		if err != nil {
			return nil, fmt.Errorf("no call of %s can be made from its schema: %w", t.Name, err)
		}
		for _, v := range variants {
			remove := t.Effect == gate.EffectDelete
			all = append(all, goliveCall{v.name, gate.KindToolCall, t.Name, v.args, t.Effect == gate.EffectSend, !remove},
				goliveCall{v.name, gate.KindBackgroundJob, t.Name, v.args, false, !remove},
				goliveCall{v.name + " in a bundle", gate.KindToolCall, gate.ToolBundle,
					map[string]any{"parts": []any{map[string]any{"tool": t.Name, "args": v.args}}}, t.Effect == gate.EffectSend, false})
		}
	}
	nobody := map[string]any{"to": outsider(1)}
	return append(all,
		goliveCall{unknownTool, gate.KindToolCall, unknownTool, nobody, false, false},
		goliveCall{unknownTool, gate.KindBackgroundJob, unknownTool, nobody, false, false},
		goliveCall{unknownTool, gate.KindOutboundMessage, unknownTool, nobody, false, false},
		goliveCall{unknownTool, gate.KindMemoryWrite, unknownTool, nobody, false, false},
		goliveCall{unknownTool, gate.KindModelCall, unknownTool, nobody, false, false},
		goliveCall{unknownTool + " in a bundle", gate.KindToolCall, gate.ToolBundle,
			map[string]any{"parts": []any{map[string]any{"tool": unknownTool, "args": nobody}}}, false, false},
	), nil
}

// gateAnswer is what the server says.
type gateAnswer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Rule     string `json:"rule"`
	Grant    string `json:"grant"`
}

func (a gateAnswer) String() string {
	if a.Rule == "" {
		return a.Decision
	}
	return a.Decision + " " + a.Reason + " (rule " + a.Rule + ")"
}

// ask puts one question.
func (g *golive) ask(ctx context.Context, c goliveCall, person string, tainted, interactive bool) (gateAnswer, error) {
	body := map[string]any{"kind": c.kind, "tool": c.tool, "args": c.args, "tainted": tainted, "interactive": interactive}
	if person != "" {
		body["person_id"] = person
	}
	got, err := g.agent.post(ctx, "/v1/gate/check", "", body)
	switch {
	case ctx.Err() != nil:
		return gateAnswer{}, ctx.Err()
	case err != nil:
		// One question that gets no answer is a bad answer to that question.
		return gateAnswer{Decision: "no answer"}, nil //nolint:nilerr // it fails the check
	case got.status == http.StatusUnauthorized || got.status == http.StatusForbidden || got.status == http.StatusNotFound:
		return gateAnswer{}, refusedCall("the gate cannot be asked", got)
	case got.status != http.StatusOK:
		return gateAnswer{Decision: got.says()}, nil
	}
	var a gateAnswer
	return a, got.into(&a)
}

func (g *golive) questions(ctx context.Context) error {
	calls, err := g.calls()
	if err != nil {
		return err
	}
	for _, person := range g.people {
		for _, c := range calls {
			for _, tainted := range []bool{false, true} {
				for _, interactive := range []bool{true, false} {
					a, err := g.ask(ctx, c, person, tainted, interactive)
					if err != nil {
						return err
					}
					g.check(question(c, person, tainted, interactive), floorHolds(c, a, tainted, interactive), a.String(),
						"the floor to ask (rule 3), or nobody's authority to suffice (rule 2)")
				}
			}
			if c.kind != gate.KindToolCall || c.tool == gate.ToolBundle {
				continue
			}
			for _, name := range []string{"confirmed", "userApproved", "SKIP-CONFIRMATION"} {
				with := c
				with.args = map[string]any{name: true}
				for k, v := range c.args {
					with.args[k] = v
				}
				a, err := g.ask(ctx, with, person, false, true)
				if err != nil {
					return err
				}
				held := a.Decision == "refuse" && a.Reason == string(gate.ReasonModelConfirmParameter)
				g.check(question(c, person, false, true)+" with "+name+": true", held, a.String(), "refuse "+string(gate.ReasonModelConfirmParameter))
			}
		}
	}
	return nil
}

func question(c goliveCall, person string, tainted, interactive bool) string {
	words := []string{c.name, "as", string(c.kind), map[bool]string{false: "clean", true: "tainted"}[tainted]}
	if !interactive {
		words = append(words, "alone")
	}
	if person != "" {
		words = append(words, "for", person)
	}
	return strings.Join(words, " ")
}

// floorHolds judges one answer. An ask must be the floor's: one that another rule gives may be gone with the next change
// of a policy, and shows that the floor did not speak.
func floorHolds(c goliveCall, a gateAnswer, tainted, interactive bool) bool {
	switch a.Decision {
	case "ask":
		return interactive && a.Rule == "3"
	case "refuse":
		return a.Rule == "2" || !interactive && a.Rule == "3" && a.Reason == string(gate.ReasonNoInteractivePath)
	case "allow":
		direct := c.direct && a.Reason == string(gate.ReasonDirectSend)
		said := c.said && a.Reason == string(gate.ReasonSaidIntent) && a.Grant != ""
		return !tainted && (direct || said)
	}
	return false
}

// stage proves with one send that a yes releases it, once and as it was shown.
func (g *golive) stage(ctx context.Context, sim, person string) error {
	tool, args, err := g.staged()
	if err != nil {
		return err
	}
	body := map[string]any{"tool": tool, "args": args}
	if sim != "" {
		body["address"] = sim
	} else {
		body["person_id"] = person
	}
	page, err := g.lastEvent(ctx)
	if err != nil {
		return err
	}
	got, err := g.agent.post(ctx, "/v1/offers", "golive-"+offers.NewID(), body)
	if err != nil {
		return err
	}
	if got.status != http.StatusCreated {
		return refusedCall("the staged send was not taken", got)
	}
	var o offers.Offer
	if err := got.into(&o); err != nil {
		return err
	}
	s := &staged{golive: g, offer: o, sim: sim, at: page}
	steps := []func(context.Context) (bool, error){s.early, s.shown, s.yes, s.otherArgs, s.begin, s.again, s.secondYes, s.finish}
	for _, step := range steps {
		if held, err := step(ctx); err != nil || !held {
			return errors.Join(err, s.withdraw(ctx))
		}
	}
	return nil
}

// staged is a send on its way.
type staged struct {
	*golive
	offer  offers.Offer
	sim    string
	at     string // in the event feed
	closer offers.Closer
}

// lastEvent reads the feed to its end.
func (g *golive) lastEvent(ctx context.Context) (string, error) {
	at := ""
	for {
		page, err := g.agent.events(ctx, at, "0s")
		if err != nil {
			return "", err
		}
		if len(page.Events) == 0 {
			return page.Next, nil
		}
		at = page.Next
	}
}

// held prints a step's answer and says whether the next one makes sense.
func (s *staged) held(what string, ok bool, got, wanted string) (bool, error) {
	s.check("staged send: "+what, ok, got, wanted)
	return ok, nil
}

func (s *staged) beginWith(ctx context.Context, sum string) (httpAnswer, error) {
	return s.agent.post(ctx, "/v1/operations/"+s.offer.OperationID+"/begin", "", map[string]any{"args_sha256": sum})
}

func (a httpAnswer) says() string { return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.code())) }

func (s *staged) early(ctx context.Context) (bool, error) {
	got, err := s.beginWith(ctx, s.offer.ArgsSHA256)
	if err != nil {
		return false, err
	}
	return s.held("begin before any yes", got.status == http.StatusConflict && got.code() == "not_approved", got.says(), "409 not_approved")
}

// golivePatience is how long a server may take for what it does by itself.
const golivePatience = 30 * time.Second

// until looks again and again, until it is done or the time is over.
func (s *staged) until(ctx context.Context, atMost time.Duration, look func() (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		if done, err := look(); done || err != nil {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *staged) refresh(ctx context.Context) error {
	got, err := s.agent.get(ctx, "/v1/offers/"+s.offer.ID)
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return refusedCall("the offer cannot be read", got)
	}
	s.offer = offers.Offer{}
	return got.into(&s.offer)
}

func (s *staged) shown(ctx context.Context) (bool, error) {
	open, err := s.until(ctx, golivePatience, func() (bool, error) {
		err := s.refresh(ctx)
		return s.offer.State != offers.Sending, err // queued: something else waits for an answer, and may for long
	})
	if err != nil {
		return false, err
	}
	return s.held("it is shown", open && s.offer.State == offers.Open, string(s.offer.State), "open: nothing else may wait for an answer, and the text must go out")
}

// say types on the simulated phone.
func (s *staged) say(ctx context.Context, text string) error {
	phone := agentClient{base: s.agent.base} // without a key
	got, err := phone.post(ctx, "/webhooks/sim/messages", "", map[string]any{"id": "golive-" + offers.NewID(), "address": s.sim, "text": text})
	if err == nil && got.status != http.StatusOK {
		err = refusedCall("the simulated phone takes no message", got)
	}
	return err
}

// reading is how long to wait before a yes counts: longer where texts may have crossed in the air.
func (s *staged) reading(ctx context.Context) (time.Duration, error) {
	got, err := s.agent.get(ctx, "/v1/offers?"+url.Values{"person_id": {s.offer.PersonID}, "limit": {"20"}}.Encode())
	if err != nil {
		return 0, err
	}
	if got.status != http.StatusOK {
		return 0, refusedCall("the person's offers cannot be listed", got)
	}
	var list struct{ Offers []offers.Offer }
	if err := got.into(&list); err != nil {
		return 0, err
	}
	wait := s.minRead + s.minRead/4
	if slices.ContainsFunc(list.Offers, func(o offers.Offer) bool { return o.ID != s.offer.ID && o.ShownAt != nil }) {
		wait = offers.CrossFactor*s.minRead + s.minRead/4
	}
	return wait, nil
}

func (s *staged) yes(ctx context.Context) (bool, error) {
	if s.sim != "" {
		wait, err := s.reading(ctx)
		if err != nil {
			return false, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if err := s.say(ctx, "yes"); err != nil {
			return false, err
		}
	} else {
		s.tell("Read the text on the phone, and answer it with YES. It waits until " + s.offer.ExpiresAt.Local().Format("15:04:05") + ".")
	}
	state := offers.OpState("")
	// A person may take as long as the offer lives; the simulated phone has answered already.
	atMost := golivePatience
	if s.sim == "" {
		atMost = gate.InwardExpires
	}
	_, err := s.until(ctx, atMost, func() (bool, error) {
		got, err := s.agent.get(ctx, "/v1/operations/"+s.offer.OperationID+"?wait=20s")
		if err != nil {
			return false, err
		}
		if got.status != http.StatusOK {
			return false, refusedCall("the operation cannot be read", got)
		}
		var op offers.Operation
		err = got.into(&op)
		state = op.State
		return state != offers.OpAsked && state != offers.OpSettling, err
	})
	if err == nil {
		err = s.refresh(ctx)
	}
	if err != nil {
		return false, err
	}
	if s.offer.ClosedBy != nil {
		s.closer = *s.offer.ClosedBy
	}
	return s.held("one yes approves it", state == offers.OpApproved && s.closer.MessageID != "", string(state), string(offers.OpApproved))
}

// tell speaks to the person at the terminal; standard output is for answers.
func (s *staged) tell(what string) { fmt.Fprintln(s.e.stderr, what) }

func (s *staged) otherArgs(ctx context.Context) (bool, error) {
	got, err := s.beginWith(ctx, strings.Repeat("0", 64))
	if err != nil {
		return false, err
	}
	if held, err := s.held("begin with another hash", got.status == http.StatusUnprocessableEntity, got.says(), "422 args_hash_mismatch"); !held {
		return held, err
	}
	other := map[string]any{}
	if err := json.Unmarshal(s.offer.Args, &other); err != nil {
		return false, err
	}
	other["golive"] = true
	got, err = s.agent.post(ctx, "/v1/operations/"+s.offer.OperationID+"/begin", "", map[string]any{"args": other})
	if err != nil {
		return false, err
	}
	return s.held("begin with other arguments", got.status == http.StatusUnprocessableEntity, got.says(), "422 args_hash_mismatch")
}

func (s *staged) begin(ctx context.Context) (bool, error) {
	got, err := s.beginWith(ctx, s.offer.ArgsSHA256)
	if err != nil {
		return false, err
	}
	args, err := got.begun()
	if err != nil {
		return s.held("begin with what was shown", false, got.says(), "200")
	}
	_, sum, err := offers.Canonical(args)
	if err != nil {
		return false, err
	}
	same := offers.Hex(sum) == s.offer.ArgsSHA256 && bytes.Equal(args, s.offer.Args)
	return s.held("begin with what was shown", same, map[bool]string{true: "200 with the exact arguments", false: "200 with other arguments"}[same], "the exact arguments")
}

func (s *staged) again(ctx context.Context) (bool, error) {
	got, err := s.beginWith(ctx, s.offer.ArgsSHA256)
	if err != nil {
		return false, err
	}
	return s.held("begin a second time", got.status == http.StatusConflict && got.code() == "already_begun", got.says(), "409 already_begun")
}

// secondYes is a further message; the server must have decided it before anything can be said of it.
func (s *staged) secondYes(ctx context.Context) (bool, error) {
	atMost := golivePatience
	if s.sim != "" {
		if err := s.say(ctx, "yes"); err != nil {
			return false, err
		}
	} else {
		atMost = 2 * time.Minute
		s.tell("Text YES once more, now.")
	}
	decided, err := s.until(ctx, atMost, func() (bool, error) {
		page, err := s.agent.events(ctx, s.at, "5s")
		if err != nil {
			return false, err
		}
		s.at = page.Next
		return slices.ContainsFunc(page.Events, func(ev offers.Event) bool {
			d, err := dataOf(ev)
			return err == nil && (ev.Type == offers.MessageReceived || ev.Type == offers.ReplyUnresolved) && d.PersonID == s.offer.PersonID
		}), nil
	})
	if err != nil {
		return false, err
	}
	if held, err := s.held("a second yes comes in", decided, map[bool]string{true: "it did", false: "nothing came"}[decided], "a message"); !held {
		return held, err
	}
	if err := s.refresh(ctx); err != nil {
		return false, err
	}
	got, err := s.beginWith(ctx, s.offer.ArgsSHA256)
	if err != nil {
		return false, err
	}
	nothing := s.offer.State == offers.Consumed && s.offer.ClosedBy != nil && *s.offer.ClosedBy == s.closer && got.code() == "already_begun"
	return s.held("the second yes releases nothing", nothing, string(s.offer.State)+", "+got.says(), "consumed by the first yes, 409 already_begun")
}

func (s *staged) finish(ctx context.Context) (bool, error) {
	got, err := s.agent.post(ctx, "/v1/operations/"+s.offer.OperationID+"/result", "", map[string]any{"status": "succeeded", "output": map[string]any{"golive": true}})
	if err != nil {
		return false, err
	}
	return s.held("its result is taken", got.status == http.StatusOK, got.says(), "200")
}

// withdraw takes back what did not hold, so that nobody says yes to it later; also when the check itself is given up.
func (s *staged) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), golivePatience)
	defer cancel()
	_, err := s.agent.do(ctx, http.MethodDelete, "/v1/offers/"+s.offer.ID, "", nil)
	return err
}

// staged picks what is staged: a send, if the policy has one, else the first call that is guarded.
func (g *golive) staged() (tool string, args map[string]any, err error) {
	tools := g.policy.Tools()
	i := slices.IndexFunc(tools, func(t *gate.Tool) bool { return t.Effect == gate.EffectSend })
	if i < 0 {
		i = slices.IndexFunc(tools, guarded)
	}
	if i < 0 {
		return unknownTool, map[string]any{"to": outsider(1), "text": goliveWords}, nil
	}
	variants, err := callsOf(tools[i], g.policy)
	if err != nil {
		return "", nil, err
	}
	return tools[i].Name, variants[0].args, nil
}
