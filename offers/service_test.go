package offers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

// desk is the service over a real store.
type desk struct {
	t       *testing.T
	store   *sqlite.Store
	policy  *gate.Policy
	service *offers.Service
	owner   people.Person
	ahead   atomic.Int64
	n       int
}

func newDesk(t *testing.T, options ...offers.Option) *desk {
	t.Helper()
	d := &desk{t: t, policy: sample(t)}
	var err error
	d.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "desk.db"), sqlite.WithClock(func() time.Time {
		return time.Now().Add(time.Duration(d.ahead.Load()))
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.store.Close() })
	if _, err := d.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.service = offers.NewService(d.store, d.policy, func(string) int { return 1600 }, options...)
	d.owner = d.person(gate.TierOwner)
	return d
}

func (d *desk) person(tier string) people.Person {
	d.t.Helper()
	d.n++
	p := people.Person{
		ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: tier, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address(fmt.Sprintf("sms:+120255501%02d", d.n)), OurNumber: "sms:+12025550100"}},
	}
	if err := d.store.AddPerson(d.t.Context(), p); err != nil {
		d.t.Fatal(err)
	}
	return p
}

// says stores a text of a person and returns its run.
func (d *desk) says(p people.Person, text string) string {
	d.t.Helper()
	d.n++
	r, err := d.store.Receive(d.t.Context(), offers.Inbound{
		Provider: "twilio", ProviderID: fmt.Sprintf("SM%032d", d.n), Address: p.Addresses[0].Address, OurNumber: p.Addresses[0].OurNumber, Text: text, Raw: []byte(text),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return r.RunID
}

// Every decision is logged with what it rests on, once, and without a word of anybody.
func TestDecisionsAreLogged(t *testing.T) {
	var out bytes.Buffer
	d := newDesk(t, offers.WithLog(slog.New(slog.NewJSONHandler(&out, nil))))
	paired := d.person(gate.TierPaired)
	type line struct{ Decision, Reason, Rule, Tier, Capability, Tool string }
	for _, c := range []struct {
		run, tool, args string
		want            line
	}{
		{d.says(d.owner, "hi"), "email.send", `{"to":["dana@example.test"],"subject":"secret words","body":"b"}`,
			line{"ask", "FLOOR_SEND_OUTSIDE", "3", "owner", "network.send", "email.send"}},
		{d.says(paired, "hi"), "email.send", `{"to":["dana@example.test"],"subject":"secret words","body":"b"}`,
			line{"refuse", "AUTHORITY_CAPABILITY_DENIED", "2", "paired", "network.send", "email.send"}},
		{d.says(paired, "hi"), "secret.words", `{}`, line{"refuse", "AUTHORITY_CAPABILITY_DENIED", "2", "paired", "process.exec", "unknown"}},
		{d.says(d.owner, "hi"), "lists.read", `{"list":"secret words"}`, line{"allow", "REVERSIBLE_OWN_DATA", "6", "owner", "fs.read", "lists.read"}},
	} {
		out.Reset()
		r := d.request(c.run, c.tool, c.args)
		for range 2 { // the second is a repeat
			if _, _, err := d.service.Propose(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		var got line
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if got != c.want || strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "secret") || strings.Contains(out.String(), "dana") {
			t.Errorf("%+v, want %+v: %s", got, c.want, out.String())
		}
	}
}

// request is a call inside a run; without one it is the short way in, to the owner.
func (d *desk) request(runID, tool, args string) offers.Request {
	d.n++
	r := offers.Request{
		AccountID: people.DefaultAccount, Call: "POST /v1/operations", Key: fmt.Sprint("key-", d.n), RunID: runID,
		Kind: string(gate.KindToolCall), Tool: tool, Args: []byte(args),
	}
	if runID == "" {
		r.PersonID, r.Call = d.owner.ID, "POST /v1/offers"
	}
	return r
}

func (d *desk) propose(r offers.Request) offers.Operation {
	d.t.Helper()
	op, again, err := d.service.Propose(d.t.Context(), r)
	if err != nil || again {
		d.t.Fatalf("%v, again %v", err, again)
	}
	return op
}

func (d *desk) kinds(p people.Person) string {
	d.t.Helper()
	rows, err := d.store.Ledger(d.t.Context(), p.AccountID, p.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, string(r.Kind))
	}
	return strings.Join(out, " ")
}

// sendAll shows whatever is in line, with every text accepted.
func (d *desk) sendAll() (bodies []string) {
	d.t.Helper()
	for {
		text, err := d.store.Reserve(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		if text == nil {
			return bodies
		}
		bodies = append(bodies, text.Body)
		if err := d.store.Sent(d.t.Context(), text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: text.ID}); err != nil {
			d.t.Fatal(err)
		}
	}
}

const mail = `{"to":["dana@example.test"],"subject":"Lunch","body":"Friday?"}`

func TestServiceAllowAskRefuse(t *testing.T) {
	d := newDesk(t)
	run := d.says(d.owner, "hello")
	paired := d.person(gate.TierPaired)
	for _, c := range []struct {
		name      string
		who       people.Person
		run       string
		tool      string
		args      string
		state     offers.OpState
		reason    gate.Reason
		ledgerRow ledger.Kind
	}{
		{"allow", d.owner, run, "tasks.add", `{"title":"Milk"}`, offers.OpAllowed, gate.ReasonReversibleOwnData, ledger.Allowed},
		{"ask", d.owner, run, "email.send", mail, offers.OpAsked, gate.ReasonFloorSendOutside, ledger.Asked},
		{"ask for an unknown tool", d.owner, run, "drone.launch", `{"site":"roof"}`, offers.OpAsked, gate.ReasonFloorUnknownTool, ledger.Asked},
		{"refuse what the model confirmed itself", d.owner, run, "email.send", `{"to":["dana@example.test"],"subject":"x","body":"y","confirmed":true}`, offers.OpRefused, gate.ReasonModelConfirmParameter, ledger.Refused},
		{"refuse what does not fit", d.owner, run, "email.send", `{"to":["dana@example.test"]}`, offers.OpRefused, gate.ReasonArgsInvalid, ledger.Refused},
		{"refuse who may not", paired, d.says(paired, "hello"), "email.send", mail, offers.OpRefused, gate.ReasonCapabilityDenied, ledger.Refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := d.kinds(c.who)
			op := d.propose(d.request(c.run, c.tool, c.args))
			if op.State != c.state || op.Reason != string(c.reason) || op.Decision != map[offers.OpState]string{offers.OpAllowed: "allow", offers.OpAsked: "ask", offers.OpRefused: "refuse"}[c.state] {
				t.Fatalf("%s %s %s, want %s %s", op.State, op.Decision, op.Reason, c.state, c.reason)
			}
			if got, want := d.kinds(c.who), strings.TrimSpace(was+" "+string(c.ledgerRow)); got != want {
				t.Errorf("ledger %q, want %q", got, want)
			}
			if (op.Offer != nil) != (c.state == offers.OpAsked) {
				t.Fatalf("offer %+v", op.Offer)
			}
			if op.Offer == nil {
				return
			}
			canonical, sum, _ := offers.Canonical([]byte(c.args))
			if string(op.Offer.Args) != string(canonical) || op.Offer.ArgsSHA256 != offers.Hex(sum) || op.ArgsSHA256 != offers.Hex(sum) {
				t.Errorf("arguments %s with hash %s", op.Offer.Args, op.Offer.ArgsSHA256)
			}
			shown, err := offers.Show(gate.Operation{Kind: gate.KindToolCall, Tool: c.tool, Args: canonical}, d.policy, offers.View{Limit: 1600})
			if err != nil || op.Offer.ShownText != shown.Text || op.Offer.Label != shown.Label || op.Offer.AskLine != shown.AskLine {
				t.Errorf("%v: shown is %q", err, op.Offer.ShownText)
			}
		})
	}
}

// By the short way in nothing is allowed unasked.
func TestServiceShortWayAlwaysAsks(t *testing.T) {
	d := newDesk(t)
	op := d.propose(d.request("", "tasks.add", `{"title":"Milk"}`))
	if op.State != offers.OpAsked || op.Reason != string(gate.ReasonShortFormAsks) || op.Offer == nil {
		t.Fatalf("%+v", op)
	}
}

func TestServiceStoresNothingThatItCannotShow(t *testing.T) {
	long := `{"to":["dana@example.test"],"subject":"` + strings.Repeat("s", 900) + `","body":"` + strings.Repeat("b", 20_000) + `"}`
	for name, c := range map[string]struct {
		args string
		want error
	}{
		"too long":     {long, offers.ErrCannotBeShown},
		"not one JSON": {`{"to":1,"to":2}`, offers.ErrArgsInvalid},
		"lost digits":  {`{"to":9007199254740993}`, offers.ErrArgsInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := d.request("", "email.send", c.args)
			if _, _, err := d.service.Propose(t.Context(), r); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			list, err := d.store.Offers(t.Context(), people.DefaultAccount, offers.Filter{})
			if err != nil || len(list) != 0 || d.kinds(d.owner) != "" || len(d.sendAll()) != 0 {
				t.Fatalf("%v: something was stored: %v, ledger %q", err, list, d.kinds(d.owner))
			}
			r.Args = []byte(mail) // the key is still new
			d.propose(r)
		})
	}
}

// The binding is over everything that a yes depends on: another value of any of it gives another sum.
func TestInvariant03_BindingCoversAll(t *testing.T) {
	base := offers.Binding{AccountID: "a", OperationID: "o", PersonID: "p", Tool: "t", ArgsSHA256: "h", ShownSHA256: "s", PolicyVersion: "v"}
	was, err := base.Sum()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := base.Sum(); again != was {
		t.Fatal("the sum changes by itself")
	}
	for name, change := range map[string]func(*offers.Binding){
		"account": func(b *offers.Binding) { b.AccountID = "x" }, "operation": func(b *offers.Binding) { b.OperationID = "x" },
		"person": func(b *offers.Binding) { b.PersonID = "x" }, "tool": func(b *offers.Binding) { b.Tool = "x" },
		"arguments": func(b *offers.Binding) { b.ArgsSHA256 = "x" }, "shown text": func(b *offers.Binding) { b.ShownSHA256 = "x" },
		"policy": func(b *offers.Binding) { b.PolicyVersion = "x" },
		"shift":  func(b *offers.Binding) { b.AccountID, b.OperationID = "ao", "" },
	} {
		b := base
		change(&b)
		if got, err := b.Sum(); err != nil || got == was {
			t.Errorf("another %s has the same sum (%v)", name, err)
		}
	}

	// What the service stores is that sum over what it stores beside it.
	d := newDesk(t)
	op := d.propose(d.request("", "email.send", mail))
	o := op.Offer
	want, err := offers.Binding{
		AccountID: o.AccountID, OperationID: o.OperationID, PersonID: o.PersonID, Tool: o.Tool, ArgsSHA256: o.ArgsSHA256,
		ShownSHA256: offers.Hex(offers.TokenSum(o.ShownText)), PolicyVersion: d.policy.Version,
	}.Sum()
	if err != nil || o.BindingSHA256 != want || o.PolicyVersion != d.policy.Version {
		t.Fatalf("%v: binding %x, want %x", err, o.BindingSHA256, want)
	}
}

func TestServiceLifeAndSettle(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		tool, args  string
		ttl, settle time.Duration
	}{
		{"email.send", mail, 10 * time.Minute, 0},
		{"payments.send", `{"to":"Acme","amount":412,"currency":"USD"}`, 10 * time.Minute, 5 * time.Second},
		{"files.delete", `{"path":"old.pdf"}`, 24 * time.Hour, 0},
		{"drone.launch", `{}`, 10 * time.Minute, 0},
		{"bundle", `{"parts":[{"tool":"files.delete","args":{"path":"old.pdf"}},{"tool":"payments.send","args":{"to":"Acme","amount":1,"currency":"USD"}}]}`, 10 * time.Minute, 5 * time.Second},
	} {
		o := d.propose(d.request("", c.tool, c.args)).Offer
		if o == nil || o.TTL != c.ttl || o.Settle != c.settle {
			t.Errorf("%s: %+v", c.tool, o)
		}
	}
}

// A run that was allowed to read what strangers write is tainted from then on, and so is every run of its root.
func TestServiceTaint(t *testing.T) {
	d := newDesk(t)
	run := d.says(d.owner, "read my mail")
	child, err := d.store.StartRun(t.Context(), people.DefaultAccount, offers.StartCause{ParentRunID: run})
	if err != nil || child.Tainted {
		t.Fatal(child, err)
	}
	d.propose(d.request(run, "tasks.add", `{"title":"Milk"}`))
	if r := d.run(run); r.Tainted {
		t.Fatal("tainted by what reads nothing")
	}
	refused := d.propose(d.request(run, "email.read", `{"limit":1000}`))
	if refused.State != offers.OpRefused || d.run(run).Tainted {
		t.Fatalf("%s: tainted by what was refused", refused.State)
	}
	if op := d.propose(d.request(run, "email.read", `{"query":"lunch"}`)); op.State != offers.OpAllowed {
		t.Fatal(op.State)
	}
	if !d.run(run).Tainted {
		t.Fatal("the run is not tainted")
	}
	next, err := d.store.StartRun(t.Context(), people.DefaultAccount, offers.StartCause{ParentRunID: child.ID})
	if err != nil || !next.Tainted {
		t.Fatal("a run of the same root is not tainted", err)
	}
	other := d.says(d.owner, "and another thing")
	if d.run(other).Tainted {
		t.Fatal("another message's run is tainted")
	}
}

func (d *desk) run(id string) offers.Run {
	d.t.Helper()
	op := d.propose(d.request(id, "tasks.add", `{"title":"Look"}`))
	if op.State != offers.OpAllowed {
		d.t.Fatalf("%s %s", op.State, op.Reason)
	}
	child, err := d.store.StartRun(d.t.Context(), people.DefaultAccount, offers.StartCause{ParentRunID: id})
	if err != nil {
		d.t.Fatal(err)
	}
	return child
}

// A text to the run's own person goes out by the service, marked by nothing but what it says, and the operation is done.
func TestServiceSendsToItsOwnPerson(t *testing.T) {
	d := newDesk(t)
	run := d.says(d.owner, "hello")
	r := d.request(run, gate.ToolMessageSend, `{"text":"On it.\n(soon)\u202e"}`)
	r.Kind = string(gate.KindOutboundMessage)
	op := d.propose(r)
	if op.State != offers.OpSucceeded || op.Offer != nil {
		t.Fatalf("%+v", op)
	}
	var result struct {
		Output struct {
			TextID string `json:"text_id"`
		}
	}
	if err := json.Unmarshal(op.Result, &result); err != nil || result.Output.TextID == "" {
		t.Fatalf("%s, %v", op.Result, err)
	}
	if got := d.sendAll(); len(got) != 1 || got[0] != "On it.\n(soon)<U+202E>" {
		t.Fatalf("%q", got)
	}

	// While an offer is open its question stands at the end, whatever the text says.
	asked := d.propose(d.request("", "email.send", mail))
	d.sendAll()
	r = d.request(run, gate.ToolMessageSend, `{"text":"This sends to lee@example.test. Reply YES or NO."}`)
	r.Kind = string(gate.KindOutboundMessage)
	d.propose(r)
	if got := d.sendAll(); len(got) != 1 || !strings.HasSuffix(got[0], "\n"+asked.Offer.AskLine) {
		t.Fatalf("%q", got)
	}

	r = d.request(run, gate.ToolMessageSend, `{"text":"`+strings.Repeat("x", 10_000)+`"}`)
	r.Kind = string(gate.KindOutboundMessage)
	if _, _, err := d.service.Propose(t.Context(), r); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Fatal(err)
	}
	r = d.request(run, gate.ToolMessageSend, `{}`)
	r.Kind = string(gate.KindOutboundMessage)
	if op := d.propose(r); op.State != offers.OpRefused {
		t.Fatal(op.State)
	}
}

// Nothing is said to who is suspended, or has no address any more: it would lie there for nobody, or for whoever comes next.
func TestServiceSaysNothingToWhoIsGone(t *testing.T) {
	d := newDesk(t)
	run := d.says(d.owner, "hello")
	if err := d.store.SetState(t.Context(), people.DefaultAccount, d.owner.ID, people.Suspended); err != nil {
		t.Fatal(err)
	}
	r := d.request(run, gate.ToolMessageSend, `{"text":"On it."}`)
	r.Kind = string(gate.KindOutboundMessage)
	if op := d.propose(r); op.State != offers.OpRefused {
		t.Fatalf("%s (%s)", op.State, op.Reason)
	}
	if got := d.sendAll(); len(got) != 0 {
		t.Fatalf("sent %q", got)
	}
}

// The lower of the run's tier and the person's decides, and one that nobody knows is the lowest.
func TestTurnTier(t *testing.T) {
	for _, c := range []struct{ run, now, want string }{
		{gate.TierOwner, gate.TierOwner, gate.TierOwner}, {gate.TierOwner, gate.TierPaired, gate.TierPaired},
		{gate.TierPaired, gate.TierOwner, gate.TierPaired}, {gate.TierPaired, gate.TierPaired, gate.TierPaired},
		{gate.TierOwner, "admin", "admin"}, {gate.TierPaired, "admin", "admin"}, {gate.TierPaired, "", ""},
		{"admin", gate.TierOwner, "admin"}, {"", gate.TierOwner, ""},
	} {
		f := offers.Facts{Run: offers.Run{Tier: c.run}, Person: people.Person{Tier: c.now}}
		if got := f.Turn().Tier; got != c.want {
			t.Errorf("a run of %q, a person who is %q: %q, want %q", c.run, c.now, got, c.want)
		}
	}
}

// A new offer in the place of one that the person has seen begins with what is different; in the place of one that
// nobody has seen it does not.
func TestServiceShowsChanges(t *testing.T) {
	d := newDesk(t)
	first := d.propose(d.request("", "payments.send", `{"to":"Acme","amount":412,"currency":"USD"}`))
	d.sendAll()
	waiting := d.propose(d.request("", "files.delete", `{"path":"a.pdf"}`)) // behind the first, unseen
	r := d.request("", "files.delete", `{"path":"b.pdf"}`)
	r.Supersedes = waiting.Offer.ID
	if op := d.propose(r); !strings.HasPrefix(op.Offer.ShownText, "Delete a file\n") {
		t.Errorf("%q", op.Offer.ShownText)
	}
	r = d.request("", "payments.send", `{"to":"Acme","amount":400,"currency":"USD"}`)
	r.Supersedes = first.Offer.ID
	op := d.propose(r)
	want := "Changed: Amount \"412\" -> \"400\"\nSend a payment\nPay: Acme\nAmount: 400\nCurrency: USD\nThis pays 400 USD to \"Acme\". Reply YES or NO."
	if op.Offer.ShownText != want {
		t.Errorf("%q", op.Offer.ShownText)
	}
}

func TestServicePages(t *testing.T) {
	const base = "https://approve.example.test"
	d := newDesk(t, offers.WithPages(base))
	args := `{"to":["dana@example.test"],"subject":"Report","body":"` + strings.Repeat("0123456789", 200) + `"}`
	op := d.propose(d.request("", "email.send", args))
	m := regexp.MustCompile(`\nText: 2,000 characters, all of it at https://approve\.example\.test/o/([A-Z2-7]{26})\n`).FindStringSubmatch(op.Offer.ShownText)
	if m == nil || !offers.IsToken(m[1]) {
		t.Fatalf("%q", op.Offer.ShownText)
	}
	o, err := d.store.OfferByToken(t.Context(), offers.TokenSum(m[1]))
	if err != nil || o.ID != op.Offer.ID || !strings.Contains(string(o.Args), strings.Repeat("0123456789", 200)) {
		t.Fatal(o, err)
	}
	// The same key again is the same page; a short body has none.
	r := d.request("", "email.send", args)
	first := d.propose(r)
	again, repeated, err := d.service.Propose(t.Context(), r)
	if err != nil || !repeated || again.Offer.ShownText != first.Offer.ShownText || first.Offer.ShownText == op.Offer.ShownText {
		t.Fatalf("%v %v", repeated, err)
	}
	if op := d.propose(d.request("", "email.send", mail)); strings.Contains(op.Offer.ShownText, base) {
		t.Fatalf("%q", op.Offer.ShownText)
	}
	// Without a page the text goes out in several messages.
	d = newDesk(t)
	if op := d.propose(d.request("", "email.send", args)); !strings.Contains(op.Offer.ShownText, strings.Repeat("0123456789", 200)) {
		t.Fatalf("%q", op.Offer.ShownText)
	}
}

func TestServiceNames(t *testing.T) {
	d := newDesk(t, offers.WithNames(func(a string) string { return map[string]string{"dana@example.test": "Dana"}[a] }))
	if o := d.propose(d.request("", "email.send", mail)).Offer; o.Label != "send email to Dana" {
		t.Fatal(o.Label)
	}
}

// Nothing but a token has the form of one.
func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token := offers.NewToken()
		if !offers.IsToken(token) || seen[token] {
			t.Fatal(token)
		}
		seen[token] = true
	}
	good := offers.NewToken()
	for _, s := range []string{"", good[1:], good + "A", strings.ToLower(good), good[:25] + "1", good[:25] + "/", good[:24] + "é"} {
		if offers.IsToken(s) {
			t.Errorf("%q has the form of a token", s)
		}
	}
}
