package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestInvariant01_GateIsTheOnlyDoor: what is left out refuses, the same facts
// always give the same answer, nothing that went in is changed, and the package
// can reach neither clock nor store nor chance.
func TestInvariant01_GateIsTheOnlyDoor(t *testing.T) {
	t.Run("zero values refuse", func(t *testing.T) {
		if (Decision{}).Answer != Refuse {
			t.Error("the zero decision does not refuse")
		}
		if d := Decide(Operation{}, Turn{}, nil); d.Answer != Refuse {
			t.Errorf("the zero operation is answered %s", d.Answer)
		}
		for _, c := range readCalls(t, sampleCalls) {
			if d := Decide(c.Op.operation(t), Turn{}, policyNamed(t, "sample")); d.Answer != Refuse {
				t.Errorf("%s in the zero turn is answered %s", c.Name, d.Answer)
			}
		}
	})
	t.Run("pure", func(t *testing.T) {
		policy := policyNamed(t, "sample")
		for _, c := range readCalls(t, sampleCalls) {
			op := c.Op.operation(t)
			turn := Turn{
				Now: testNow, Tier: TierOwner, Interactive: true, PersonBound: true, AskingIsApproving: true,
				OwnAddresses: []string{"alex@example.com"}, DirectSend: []string{"dana@example.net"},
				SaidIntent: &Grant{ID: "s1", Tool: op.Tool, ArgsSHA256: op.ArgsSHA256()},
			}
			before := fmt.Sprintf("%s %+v %+v", op.Args, turn, *turn.SaidIntent)
			first := Decide(op, turn, policy)
			for range 20 {
				if again := Decide(op, turn, policy); again != first {
					t.Fatalf("%s: %+v, then %+v", c.Name, first, again)
				}
			}
			if after := fmt.Sprintf("%s %+v %+v", op.Args, turn, *turn.SaidIntent); after != before {
				t.Errorf("%s: the facts were changed:\n%s\n%s", c.Name, before, after)
			}
		}
	})
	t.Run("reaches nothing", func(t *testing.T) {
		names, err := filepath.Glob("*.go")
		if err != nil {
			t.Fatal(err)
		}
		allowed := []string{
			"bytes", "crypto/sha256", "embed", "encoding/hex", "encoding/json", "errors", "fmt", "io", "regexp", "slices",
			"strconv", "strings", "time", "unicode", "github.com/go-json-experiment/json/jsontext",
			"github.com/santhosh-tekuri/jsonschema/v6", "go.yaml.in/yaml/v3", "golang.org/x/text/unicode/norm",
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(allowed, path) {
					t.Errorf("%s imports %s", name, path)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(
						[]string{"Now", "Since", "Until", "After", "Sleep", "NewTimer", "NewTicker"}, call.Sel.Name) {
						t.Errorf("%s calls time.%s", name, call.Sel.Name)
					}
				}
				return true
			})
		}
	})
}

// TestInvariant02_NothingSkipsTheFloor tries every combination of the facts of
// a turn on every call of the sample and of the extra tools. What the floor
// names is allowed by nothing but the two ways.
func TestInvariant02_NothingSkipsTheFloor(t *testing.T) {
	sample, extra := policyNamed(t, "sample"), policyNamed(t, "extra.yaml")
	type try struct {
		policy *Policy
		op     Operation
	}
	var tries []try
	for _, c := range readCalls(t, sampleCalls) {
		op := c.Op.operation(t)
		for _, kind := range Kinds() {
			tries = append(tries, try{sample, Operation{Kind: kind, Tool: op.Tool, Args: op.Args}})
		}
	}
	for _, f := range readDecisionFiles(t) {
		if f.Policy == "extra.yaml" {
			for _, c := range f.Cases {
				tries = append(tries, try{extra, c.Op.operation(t)})
			}
		}
	}
	allowed, through := 0, map[Reason]int{}
	for _, try := range tries {
		for bits := range 1 << 9 {
			on := func(n int) bool { return bits>>n&1 == 1 }
			turn := Turn{
				Now: testNow, Tier: TierOwner, Tainted: on(0), Interactive: on(1), PersonBound: on(2), ShortForm: on(3),
				AskingIsApproving: on(4),
			}
			grant := &Grant{ID: "g", Tool: try.op.Tool, ArgsSHA256: try.op.ArgsSHA256()}
			if on(5) {
				turn.SaidIntent = grant
			}
			if on(6) {
				turn.StandingPermission = grant
			}
			if on(7) {
				turn.DirectSend = []string{"dana@example.net", "@dana"}
			}
			if on(8) {
				turn.OwnAddresses = []string{"alex@example.com"}
			}
			d := Decide(try.op, turn, try.policy)
			if d.Answer != Allow {
				continue
			}
			allowed++
			through[d.Reason]++
			if problem := unexplained(try.op, turn, try.policy); problem != "" {
				t.Errorf("%s %s %s was allowed by %s: %s (%+v)", try.op.Kind, try.op.Tool, try.op.Args, d.Reason, problem, turn)
			}
		}
	}
	// The test is worth nothing if nothing is allowed, or nothing by the two ways.
	if allowed == 0 || through[ReasonDirectSend] == 0 || through[ReasonSaidIntent] == 0 {
		t.Errorf("allowed %d, by reason %v", allowed, through)
	}
}

// unexplained says why an operation that was allowed should not have been, by
// a second reading of the floor that shares no code with the first; "" where
// the floor or one of its two ways explains it.
func unexplained(op Operation, turn Turn, policy *Policy) string {
	if turn.Tier != TierOwner && turn.Tier != TierPaired {
		return "no authority"
	}
	if turn.ShortForm {
		return "the one-call way is never allowed unasked"
	}
	var args map[string]any
	if err := json.Unmarshal(op.Args, &args); err != nil {
		return "no arguments"
	}
	if op.Tool == "bundle" {
		parts, _ := args["parts"].([]any)
		if len(parts) == 0 || len(parts) > 10 {
			return "no bundle"
		}
		turn.SaidIntent = nil // covers one call
		for _, p := range parts {
			part := p.(map[string]any)
			raw, err := json.Marshal(part["args"])
			if err != nil {
				return err.Error()
			}
			tool, _ := part["tool"].(string)
			if problem := unexplained(Operation{Kind: op.Kind, Tool: tool, Args: raw}, turn, policy); problem != "" {
				return "part " + tool + ": " + problem
			}
		}
		return ""
	}
	switch op.Kind {
	case "model_call", "memory_write":
		if op.Tool == "" || op.Tool == "model.call" && op.Kind == "model_call" || op.Tool == "memory.append" && op.Kind == "memory_write" {
			return ""
		}
	case "outbound_message":
		if op.Tool == "" || op.Tool == "message.send" {
			if turn.PersonBound && len(args) == 1 {
				return ""
			}
			return "a text to no bound address"
		}
	}
	tool, ok := policy.Tool(op.Tool)
	if !ok {
		return "an unknown tool"
	}
	if tool.Effect == "delete" {
		return "a deletion"
	}
	said := !turn.Tainted && turn.AskingIsApproving && turn.SaidIntent != nil &&
		turn.SaidIntent.Tool == op.Tool && turn.SaidIntent.ID != "" && turn.SaidIntent.ArgsSHA256 == op.ArgsSHA256()
	var reached []string
	readable := true
	for _, p := range tool.Recipients {
		collect(args, p, &reached, &readable)
	}
	all := func(lists ...[]string) bool {
		if !readable || len(reached) == 0 {
			return false
		}
		for _, r := range reached {
			if !slices.ContainsFunc(slices.Concat(lists...), func(s string) bool { return strings.EqualFold(s, r) && s != "" && !strings.ContainsAny(s, " <>,;") }) {
				return false
			}
		}
		return true
	}
	job := op.Kind == "background_job"
	// What is neither undone nor the person's own needs their words; memory has
	// its own rule.
	inner := tool.Own && tool.Reversible || said || op.Kind == "tool_call" &&
		(tool.Capability == "memory.read" && tool.Effect == "read" || tool.Capability == "memory.source.append" && tool.Effect == "write")
	if slices.Contains([]Effect{"read", "write", "schedule", "invite"}, tool.Effect) && !inner {
		return "not the person's own, or not reversible"
	}
	switch tool.Effect {
	case "pay", "share", "post", "act":
		if !said {
			return "only a said intent opens " + string(tool.Effect)
		}
	case "send":
		own := all(turn.OwnAddresses) && !turn.Tainted && !job
		direct := all(turn.OwnAddresses, turn.DirectSend) && !turn.Tainted && !job
		if !own && !direct && !said {
			return "a send outside"
		}
	case "invite":
		none := len(reached) == 0 && readable && !job
		if !none && !said && (job || turn.Tainted || !all(turn.OwnAddresses)) {
			return "an invitation outside"
		}
	case "schedule":
		if tool.ActsOutward && !said {
			return "a standing rule"
		}
	case "read":
		if tool.ActsOutward && (job || turn.Tainted) && !said {
			return "a look-up that can be seen outside"
		}
	case "write":
	default:
		return "no effect"
	}
	return ""
}

func collect(v any, p []string, to *[]string, readable *bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collect(e, p, to, readable)
		}
	case map[string]any:
		if len(p) == 0 {
			*readable = false
		} else if next, ok := v[p[0]]; ok {
			collect(next, p[1:], to, readable)
		}
	case string:
		*to = append(*to, v)
	default:
		*readable = false
	}
}

// confirmationForms is every name of the list in every form.
func confirmationForms() []string {
	var forms []string
	for _, name := range []string{
		"confirm", "confirmed", "approve", "approved", "user_confirmed", "user_approved", "consent", "force",
		"skip_confirmation", "bypass",
	} {
		words := strings.Split(name, "_")
		camel := words[0]
		for _, w := range words[1:] {
			camel += strings.ToUpper(w[:1]) + w[1:]
		}
		forms = append(forms, name, strings.ToUpper(name), camel, strings.ToUpper(camel[:1])+camel[1:],
			strings.Join(words, "-"), strings.ToUpper(strings.Join(words, "-")), strings.Join(words, ""),
			strings.Join(words, " "), strings.Join(words, "."), "_"+name, name+"\u200b", strings.ToUpper(name[:1])+name[1:])
	}
	return forms
}

// TestInvariant15_ConfirmationArgumentsAreRefused: on every kind, at every depth.
func TestInvariant15_ConfirmationArgumentsAreRefused(t *testing.T) {
	policy := policyNamed(t, "sample")
	turn := Turn{
		Now: testNow, Tier: TierOwner, Interactive: true, PersonBound: true, AskingIsApproving: true,
		OwnAddresses: []string{"alex@example.com"}, DirectSend: []string{"dana@example.net"},
	}
	for _, form := range confirmationForms() {
		key, err := json.Marshal(form)
		if err != nil {
			t.Fatal(err)
		}
		for _, shape := range []string{
			`{%s:true}`, `{%s:false}`, `{%s:null}`, `{"a":{%s:1}}`, `{"a":[[{"b":{%s:"yes"}}]]}`,
			`{"parts":[{"tool":"tasks.add","args":{"title":"a",%s:true}}]}`,
		} {
			args := json.RawMessage(fmt.Sprintf(shape, key))
			for _, tool := range []string{"email.send", "tasks.add", "drone.launch", ToolBundle, ToolMessageSend, ToolModelCall, ""} {
				for _, kind := range Kinds() {
					d := Decide(Operation{Kind: kind, Tool: tool, Args: args}, turn, policy)
					if d.Answer != Refuse || d.Reason != ReasonModelConfirmParameter || d.Rule != "1" {
						t.Errorf("%s %s %s: %+v", kind, tool, args, d)
					}
				}
			}
		}
	}
	for _, name := range []string{"confirmation", "confirmed_at", "approver", "enforce", "forced", "consents", "title", ""} {
		if IsConfirmationName(name) {
			t.Errorf("%q is none of the listed names", name)
		}
	}
}

// TestInvariant15_NoModelSeesAConfirmationArgument: no schema that a model gets
// holds one, and a policy with one does not load.
func TestInvariant15_NoModelSeesAConfirmationArgument(t *testing.T) {
	for _, policy := range []*Policy{policyNamed(t, "sample"), policyNamed(t, "extra.yaml"), nil} {
		for _, s := range policy.Schemas() {
			var v any
			if err := json.Unmarshal(s.Schema, &v); err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			walkKeys(v, func(key string) {
				if slices.Contains(confirmationForms(), key) {
					t.Errorf("the schema of %s holds %q", s.Name, key)
				}
			})
		}
	}
	for _, form := range confirmationForms() {
		for _, place := range []string{
			"properties: {%q: {type: boolean}}",
			"properties: {a: {type: object, additionalProperties: false, properties: {%q: {type: boolean}}}}",
			"properties: {a: {type: array, items: {type: object, additionalProperties: false, properties: {%q: {type: boolean}}}}}",
			"properties: {a: {type: object, additionalProperties: false, default: {%q: true}}}",
			"examples: [{%q: true}]",
		} {
			data := "version: 1\ntools:\n  a.b:\n    effect: write\n    capability: fs.write\n    label: {verb: do it}\n" +
				"    schema: {type: object, " + fmt.Sprintf(place, form) + "}\n"
			if _, err := ParsePolicy("p.yaml", []byte(data)); err == nil || !strings.Contains(err.Error(), "p.yaml:7: ") ||
				!strings.Contains(err.Error(), "say yes") {
				t.Errorf("%s with %q: %v", place, form, err)
			}
		}
	}
}

func walkKeys(v any, see func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			see(k)
			walkKeys(e, see)
		}
	case []any:
		for _, e := range v {
			walkKeys(e, see)
		}
	}
}

// TestInvariant18_NoTierNoAuthority: without a known tier everything is
// refused, a reply too, whatever else the turn says.
func TestInvariant18_NoTierNoAuthority(t *testing.T) {
	policy := policyNamed(t, "sample")
	for tier, want := range map[string]Reason{
		"": ReasonTierMissing, "Owner": ReasonTierUnknown, "OWNER": ReasonTierUnknown, " owner": ReasonTierUnknown,
		"admin": ReasonTierUnknown, "pending": ReasonTierUnknown, "unpaired": ReasonTierUnknown, "root": ReasonTierUnknown,
	} {
		for _, c := range readCalls(t, sampleCalls) {
			op := c.Op.operation(t)
			grant := &Grant{ID: "g", Tool: op.Tool, ArgsSHA256: op.ArgsSHA256()}
			turn := Turn{
				Now: testNow, Tier: tier, Interactive: true, PersonBound: true, AskingIsApproving: true,
				OwnAddresses: []string{"alex@example.com"}, DirectSend: []string{"dana@example.net"},
				SaidIntent: grant, StandingPermission: grant,
			}
			if d := Decide(op, turn, policy); d.Answer != Refuse || d.Reason != want || d.Rule != "2" || d.Tier != tier {
				t.Errorf("%q %s: %+v", tier, c.Name, d)
			}
		}
		for _, capability := range Capabilities() {
			if d := DecideCapability(tier, capability); d.Answer != Refuse || d.Reason != want {
				t.Errorf("%q %s: %+v", tier, capability, d)
			}
		}
	}
}

// TestCapabilityTable is the table of tiers, written a second time.
func TestCapabilityTable(t *testing.T) {
	owner := "reply memory.read memory.source.append memory.trusted.promote schedule.create schedule.manage " +
		"fs.read fs.write process.exec network.send approval.request runtime.control"
	paired := "reply memory.read memory.source.append"
	held := map[string][]string{TierOwner: strings.Fields(owner), TierPaired: strings.Fields(paired)}
	for tier, list := range held {
		for _, capability := range append(Capabilities(), "", "fs", "everything") {
			want := Refuse
			if slices.Contains(list, string(capability)) {
				want = Allow
			}
			if d := DecideCapability(tier, capability); d.Answer != want || (want == Allow) != (d.Reason == "") {
				t.Errorf("%s %q: %+v, want %s", tier, capability, d, want)
			}
		}
	}
	if got := len(Capabilities()); got != len(held[TierOwner]) {
		t.Errorf("%d capabilities, want %d", got, len(held[TierOwner]))
	}
	for _, c := range []struct {
		kind Kind
		tool string
		want Capability
	}{
		{KindModelCall, "", CapReply},
		{KindModelCall, "model.call", CapReply},
		{KindOutboundMessage, "message.send", CapReply},
		{KindMemoryWrite, "memory.append", CapMemorySourceAppend},
		{KindBackgroundJob, "email.send", CapScheduleCreate},
		{KindBackgroundJob, "drone.launch", CapScheduleCreate},
		{KindToolCall, "email.send", CapNetworkSend},
		{KindToolCall, "drone.launch", CapProcessExec},
		{KindToolCall, "", CapProcessExec},
		{KindToolCall, ToolBundle, CapProcessExec},
		{KindModelCall, "email.send", CapNetworkSend},
	} {
		if got := CapabilityFor(Operation{Kind: c.kind, Tool: c.tool}, policyNamed(t, "sample")); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.tool, got, c.want)
		}
	}
}

// TestDetailsEchoNoArgument: the sentence to the model holds nothing that came
// in as an argument, neither values nor names that the schema does not know.
func TestDetailsEchoNoArgument(t *testing.T) {
	const marker = "zebra-7731"
	policy := policyNamed(t, "sample")
	turn := Turn{Now: testNow, Tier: TierOwner, Interactive: true}
	for _, args := range []string{
		`{"to":"zebra-7731","subject":"a","body":"b"}`,
		`{"to":["a@example.com"],"subject":"a","body":"b","zebra-7731":1}`,
		`{"to":[{"zebra-7731":"zebra-7731"}],"subject":"a","body":"b"}`,
		`{"to":["dana@example.net"],"subject":"zebra-7731","body":"zebra-7731"}`,
		`{"amount":"zebra-7731","currency":"zebra-7731","to":"zebra-7731"}`,
		`{"at":"zebra-7731","text":"zebra-7731"}`,
		`{"path":"a","with":["a@example.com"],"access":"zebra-7731"}`,
		`{"parts":[{"tool":"zebra-7731","args":{}},{"tool":"email.send","args":{"to":"zebra-7731"}}]}`,
		`{"zebra-7731":{"force":"zebra-7731"}}`,
		`"zebra-7731"`, `{"zebra-7731"`, `{"zebra-7731":1,"zebra-7731":2}`, `{"a":1e99999,"b":"zebra-7731"}`,
	} {
		for _, tool := range []string{"email.send", "payments.send", "reminder.create", "files.share", ToolBundle, "drone.launch", ToolMessageSend} {
			for _, kind := range Kinds() {
				d := Decide(Operation{Kind: kind, Tool: tool, Args: json.RawMessage(args)}, turn, policy)
				if strings.Contains(d.Detail, marker) || d.Detail == "" {
					t.Errorf("%s %s: %q", tool, args, d.Detail)
				}
			}
		}
	}
}

// TestAnswerText: an answer is written and read as its word, and what is no
// answer reads as a refusal.
func TestAnswerText(t *testing.T) {
	for _, a := range []Answer{Refuse, Ask, Allow} {
		text, err := a.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		back := Allow
		if err := back.UnmarshalText(text); err != nil || back != a {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	wrong := Allow
	if err := wrong.UnmarshalText([]byte("yes")); err == nil || wrong != Refuse {
		t.Errorf("%q read as %s, %v", "yes", wrong, err)
	}
	if Answer(9).String() != "refuse" {
		t.Error("an answer out of range is no refusal")
	}
}

// TestPolicyReads is what the other packages ask a policy about an operation.
func TestPolicyReads(t *testing.T) {
	policy, extra := policyNamed(t, "sample"), policyNamed(t, "extra.yaml")
	tool := func(name, args string) Operation {
		return Operation{Kind: KindToolCall, Tool: name, Args: json.RawMessage(args)}
	}
	mail := `{"bcc":["x"],"body":"b","cc":["Lee@Example.net"],"subject":"a","to":["dana@example.net","+12025550102"]}`
	pay := `{"amount":412.5,"currency":"EUR","to":"dana@example.net"}`
	bundle := `{"parts":[{"args":` + mail + `,"tool":"email.send"},{"args":` + pay + `,"tool":"payments.send"}]}`
	own := `{"parts":[{"args":{"title":"a"},"tool":"tasks.add"}]}`

	wantMail := []Recipient{{"dana@example.net", "dana@example.net"}, {"+12025550102", "sms:+12025550102"}, {"Lee@Example.net", "lee@example.net"}, {"x", ""}}
	if got := policy.Recipients(tool("email.send", mail)); !reflect.DeepEqual(got, wantMail) {
		t.Errorf("recipients: %+v", got)
	}
	if got := policy.Recipients(tool(ToolBundle, bundle)); len(got) != 5 || got[4].Address != "dana@example.net" || got[3].Plain() {
		t.Errorf("recipients of a bundle: %+v", got)
	}
	if got, ok := policy.Amount(tool("payments.send", pay)); !ok || got != (Amount{"412.5", "EUR"}) {
		t.Errorf("amount: %+v %v", got, ok)
	}
	for _, op := range []Operation{tool(ToolBundle, `{"parts":[{"args":`+pay+`,"tool":"payments.send"}]}`), tool("email.send", mail), tool("payments.send", `{`)} {
		if got, ok := policy.Amount(op); ok {
			t.Errorf("amount of %s: %+v", op.Tool, got)
		}
	}
	for _, c := range []struct {
		policy    *Policy
		op        Operation
		outward   bool
		untrusted bool
		expires   time.Duration
		settle    time.Duration
	}{
		{policy, tool("email.send", mail), true, false, 10 * time.Minute, 0},
		{policy, tool("payments.send", pay), true, false, 10 * time.Minute, 5 * time.Second},
		{policy, tool("tasks.add", `{"title":"a"}`), false, false, 24 * time.Hour, 0},
		{policy, tool("email.read", `{}`), false, true, 24 * time.Hour, 0},
		{policy, tool("rules.create", `{}`), true, false, 10 * time.Minute, 0},
		{policy, tool("drone.launch", `{}`), true, true, 10 * time.Minute, 0},
		{policy, tool(ToolBundle, bundle), true, false, 10 * time.Minute, 5 * time.Second},
		{policy, tool(ToolBundle, own), false, false, 24 * time.Hour, 0},
		{policy, tool(ToolBundle, `{"parts":[]}`), true, true, 10 * time.Minute, 0},
		{policy, tool("tasks.add", `[]`), true, true, 10 * time.Minute, 0},
		{policy, Operation{Kind: KindModelCall, Args: json.RawMessage(`{}`)}, true, false, 10 * time.Minute, 0},
		{extra, tool("settings.change", `{}`), false, false, time.Hour, 10 * time.Second},
		{nil, tool("tasks.add", `{"title":"a"}`), true, true, 10 * time.Minute, 0},
	} {
		if got := c.policy.Outward(c.op); got != c.outward {
			t.Errorf("%s %s: outward %v", c.op.Tool, c.op.Args, got)
		}
		if got := c.policy.ReadsUntrusted(c.op); got != c.untrusted {
			t.Errorf("%s %s: reads untrusted %v", c.op.Tool, c.op.Args, got)
		}
		if got := c.policy.Expires(c.op); got != c.expires {
			t.Errorf("%s %s: expires %v", c.op.Tool, c.op.Args, got)
		}
		if got := c.policy.Settle(c.op); got != c.settle {
			t.Errorf("%s %s: settle %v", c.op.Tool, c.op.Args, got)
		}
	}
	parts := policy.Parts(tool(ToolBundle, bundle))
	if len(parts) != 2 || !bytes.Equal(parts[0].Args, []byte(mail)) || !bytes.Equal(parts[1].Args, []byte(pay)) {
		t.Errorf("the parts are not the bytes that went in: %s", parts)
	}
	schemas := policy.Schemas()
	if len(schemas) != len(policy.Tools())+2 || schemas[0].Name != "email.send" || schemas[len(schemas)-1].Name != ToolBundle {
		t.Errorf("schemas: %d", len(schemas))
	}
	send, _ := policy.Tool("email.send")
	send.Schema()[0] = 'x'
	if again, _ := policy.Tool("email.send"); again.Schema()[0] != '{' {
		t.Error("a caller can change a schema")
	}
}
