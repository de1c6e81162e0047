package gate

import (
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// testNow is the time of every decision in the files.
var testNow = time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)

// decisionFile is one file of testdata: cases against one policy.
type decisionFile struct {
	Policy string         `yaml:"policy"` // sample, none, or a file of testdata/policies
	Cases  []decisionCase `yaml:"cases"`
}

type decisionCase struct {
	Name string       `yaml:"name"`
	Op   caseOp       `yaml:"op"`
	Turn caseTurn     `yaml:"turn"`
	Want caseDecision `yaml:"want"`
}

// caseOp takes args as YAML, or raw where they are not what JSON can be.
type caseOp struct {
	Kind Kind      `yaml:"kind"`
	Tool string    `yaml:"tool"`
	Args yaml.Node `yaml:"args"`
	Raw  *string   `yaml:"raw"`
}

type caseTurn struct {
	Tier               string     `yaml:"tier"`
	Tainted            bool       `yaml:"tainted"`
	Alone              bool       `yaml:"alone"` // not interactive
	PersonUnbound      bool       `yaml:"person_unbound"`
	ShortForm          bool       `yaml:"short_form"`
	ByService          bool       `yaml:"by_service"`
	Own                []string   `yaml:"own"`
	DirectSend         []string   `yaml:"direct_send"`
	AskingIsApproving  bool       `yaml:"asking_is_approving"`
	SaidIntent         *caseGrant `yaml:"said_intent"`
	StandingPermission *caseGrant `yaml:"standing_permission"`
}

// caseGrant covers the case's own operation but for what it names itself.
type caseGrant struct {
	ID     string         `yaml:"id"`
	Tool   string         `yaml:"tool"`
	OfArgs *string        `yaml:"of_args"` // other arguments that it was matched to
	EndsIn *time.Duration `yaml:"ends_in"`
}

type caseDecision struct {
	Answer     Answer     `yaml:"answer"`
	Reason     Reason     `yaml:"reason"`
	Rule       string     `yaml:"rule"`
	Tier       string     `yaml:"tier"`
	Capability Capability `yaml:"capability"`
	Grant      string     `yaml:"grant"`
}

func (o caseOp) operation(t testing.TB) Operation {
	t.Helper()
	op := Operation{Kind: o.Kind, Tool: o.Tool}
	if o.Raw != nil {
		op.Args = json.RawMessage(*o.Raw)
		return op
	}
	if o.Args.Kind == 0 {
		op.Args = json.RawMessage("{}")
		return op
	}
	op.Args = canonicalYAML(t, &o.Args)
	return op
}

func canonicalYAML(t testing.TB, n *yaml.Node) json.RawMessage {
	t.Helper()
	raw, err := appendJSON(nil, n)
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(raw)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(v)
}

func (c caseTurn) turn(op Operation) Turn {
	own := c.Own
	if own == nil {
		own = []string{"alex@example.com", "+12025550101"}
	}
	return Turn{
		Now: testNow, Tier: c.Tier, Tainted: c.Tainted, Interactive: !c.Alone, PersonBound: !c.PersonUnbound,
		ShortForm: c.ShortForm, ByService: c.ByService, OwnAddresses: own, DirectSend: c.DirectSend, AskingIsApproving: c.AskingIsApproving,
		SaidIntent: c.SaidIntent.grant(op), StandingPermission: c.StandingPermission.grant(op),
	}
}

func (g *caseGrant) grant(op Operation) *Grant {
	if g == nil {
		return nil
	}
	grant := &Grant{ID: g.ID, Tool: op.Tool, ArgsSHA256: op.ArgsSHA256()}
	if g.Tool != "" {
		grant.Tool = g.Tool
	}
	if g.OfArgs != nil {
		grant.ArgsSHA256 = Operation{Args: json.RawMessage(*g.OfArgs)}.ArgsSHA256()
	}
	if g.EndsIn != nil {
		grant.Until = testNow.Add(*g.EndsIn)
	}
	return grant
}

func recordOf(d Decision) caseDecision {
	return caseDecision{Answer: d.Answer, Reason: d.Reason, Rule: d.Rule, Tier: d.Tier, Capability: d.Capability, Grant: d.Grant}
}

func readDecisionFiles(t testing.TB) map[string]decisionFile {
	t.Helper()
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no decision files: %v", err)
	}
	files := map[string]decisionFile{}
	for _, name := range names {
		if generated(filepath.Base(name)) {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		dec.KnownFields(true)
		var f decisionFile
		if err := dec.Decode(&f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files[filepath.Base(name)] = f
	}
	return files
}

func policyNamed(t testing.TB, name string) *Policy {
	t.Helper()
	var (
		policy *Policy
		err    error
	)
	switch name {
	case "none":
		return nil
	case "sample":
		policy, err = Sample()
	default:
		path := filepath.Join("testdata", "policies", name)
		var data []byte
		if data, err = os.ReadFile(path); err == nil {
			policy, err = ParsePolicy(path, data)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestDecisions gives every case of the files its wanted record.
func TestDecisions(t *testing.T) {
	for name, f := range readDecisionFiles(t) {
		policy := policyNamed(t, f.Policy)
		for _, c := range f.Cases {
			t.Run(strings.TrimSuffix(name, ".yaml")+"/"+c.Name, func(t *testing.T) {
				op := c.Op.operation(t)
				d := Decide(op, c.Turn.turn(op), policy)
				if diff := cmp.Diff(c.Want, recordOf(d)); diff != "" {
					t.Errorf("decision (-want +got):\n%s\ndetail: %s", diff, d.Detail)
				}
				if d.Detail == "" {
					t.Error("no sentence says why")
				}
			})
		}
	}
}

// TestEveryReasonIsDecidedAndDocumented: each code stands in a decision file
// and once in the table of the package comment, with the right answer and rule.
func TestEveryReasonIsDecidedAndDocumented(t *testing.T) {
	decided := map[Reason]bool{}
	rules := map[string]bool{}
	for _, f := range readDecisionFiles(t) {
		for _, c := range f.Cases {
			decided[c.Want.Reason] = true
			rules[c.Want.Rule] = true
		}
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := declaredReasons(t)
	if len(reasons) < 20 {
		t.Fatalf("found only %d reasons in reason.go", len(reasons))
	}
	for _, r := range reasons {
		if !decided[r] {
			t.Errorf("%s is in no decision file", r)
		}
		if n := strings.Count(string(doc), "\n//\t"+string(r)+" "); n != 1 {
			t.Errorf("%s stands %d times in the table of doc.go, want once", r, n)
		}
	}
	for _, rule := range []string{"1", "2", "2b", "3", "4", "5", "6", "7"} {
		if !rules[rule] {
			t.Errorf("no case is decided by rule %s", rule)
		}
	}
}

// declaredReasons reads the constants of reason.go, so that none can be left out.
func declaredReasons(t testing.TB) []Reason {
	t.Helper()
	file, err := goparser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				reasons = append(reasons, Reason(s))
			}
		}
		return true
	})
	return reasons
}

const (
	sampleTable = "sample_table.yaml"
	extraTable  = "extra_table.yaml"
	sampleCalls = "sample_calls.yaml"
	extraCalls  = "extra_calls.yaml"
	permissions = "permission_table.yaml"
)

// generated says whether a file of testdata holds a table, or the calls of one.
func generated(name string) bool {
	return slices.Contains([]string{sampleTable, extraTable, sampleCalls, extraCalls, permissions}, name)
}

// tables are the policies that are decided whole, each with its calls and the reviewed answers.
var tables = []struct{ policy, calls, file string }{
	{"sample", sampleCalls, sampleTable},
	{"extra.yaml", extraCalls, extraTable},
}

// tableCall is one call of a tool, for a whole table.
type tableCall struct {
	Name string `yaml:"name"`
	Op   caseOp `yaml:"op"`
}

func readCalls(t testing.TB, name string) []tableCall {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var calls []tableCall
	if err := dec.Decode(&calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// place is one column of a table: whose run it is, and of what sort.
type place struct {
	tier    string
	tainted bool
	run     string
}

// places are every tier, with and without taint, in every kind of run.
func places() []place {
	var all []place
	for _, tier := range []string{TierOwner, TierPaired, "admin", ""} {
		for _, tainted := range []bool{false, true} {
			for _, run := range []string{"person", "alone", "offer"} {
				all = append(all, place{tier, tainted, run})
			}
		}
	}
	return all
}

func (p place) turn() caseTurn {
	return caseTurn{Tier: p.tier, Tainted: p.tainted, Alone: p.run == "alone", ShortForm: p.run == "offer"}
}

func (p place) String() string {
	taint, tier := "clean", p.tier
	if p.tainted {
		taint = "tainted"
	}
	if tier == "" {
		tier = "missing"
	}
	return fmt.Sprintf("%-7s %-7s %-6s", tier, taint, p.run)
}

// permission is what a person may have given besides: each alone, for the very call or for another.
type permission struct {
	name string
	give func(turn *Turn, op Operation, policy *Policy)
}

func permissionKinds() []permission {
	matched := func(op Operation) *Grant { return &Grant{ID: "g1", Tool: op.Tool, ArgsSHA256: op.ArgsSHA256()} }
	return []permission{
		{"direct send to every recipient", func(turn *Turn, op Operation, policy *Policy) {
			for _, r := range policy.Recipients(op) {
				turn.DirectSend = append(turn.DirectSend, r.Given)
			}
		}},
		{"direct send to somebody else", func(turn *Turn, _ Operation, _ *Policy) { turn.DirectSend = []string{"robin@example.net"} }},
		{"said intent, asking is approving", func(turn *Turn, op Operation, _ *Policy) {
			turn.SaidIntent, turn.AskingIsApproving = matched(op), true
		}},
		{"said intent, asking is not approving", func(turn *Turn, op Operation, _ *Policy) { turn.SaidIntent = matched(op) }},
		{"said intent for other arguments", func(turn *Turn, op Operation, _ *Policy) {
			op.Args = json.RawMessage(`{}`)
			turn.SaidIntent, turn.AskingIsApproving = matched(op), true
		}},
		{"said intent that has ended", func(turn *Turn, op Operation, _ *Policy) {
			turn.SaidIntent, turn.AskingIsApproving = matched(op), true
			turn.SaidIntent.Until = turn.Now
		}},
		{"standing permission", func(turn *Turn, op Operation, _ *Policy) { turn.StandingPermission = matched(op) }},
		{"standing permission for other arguments", func(turn *Turn, op Operation, _ *Policy) {
			op.Args = json.RawMessage(`{}`)
			turn.StandingPermission = matched(op)
		}},
		{"all of them", func(turn *Turn, op Operation, policy *Policy) {
			for _, r := range policy.Recipients(op) {
				turn.DirectSend = append(turn.DirectSend, r.Given)
			}
			turn.SaidIntent, turn.AskingIsApproving, turn.StandingPermission = matched(op), true, matched(op)
		}},
	}
}

// compareTable compares with the reviewed file, or with -update writes it.
func compareTable(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestSampleTable decides every call of the tables for every tier, with and
// without taint, in every kind of run, and compares with the reviewed files.
// `go test ./gate -run Table -update` writes them again.
func TestSampleTable(t *testing.T) {
	for _, table := range tables {
		policy := policyNamed(t, table.policy)
		var got strings.Builder
		fmt.Fprintf(&got, "# Every call of %s: tier, taint and run, then answer, rule, reason\n"+
			"# and capability. Written by `go test ./gate -run Table -update`; every change of\n"+
			"# a line is a change of what the product does, to be reviewed as such.\n", table.calls)
		for _, c := range readCalls(t, table.calls) {
			op := c.Op.operation(t)
			fmt.Fprintf(&got, "\n%s:\n", c.Name)
			for _, p := range places() {
				d := Decide(op, p.turn().turn(op), policy)
				fmt.Fprintf(&got, "  %s: %s %s %s %s\n", p, d.Answer, d.Rule, d.Reason, d.Capability)
			}
		}
		compareTable(t, table.file, got.String())
	}
}

// TestPermissionTable decides all of that again under every permission, and
// writes down where a permission changes the answer. Where no line stands it
// changes nothing, which is compared as well.
func TestPermissionTable(t *testing.T) {
	var got strings.Builder
	got.WriteString("# Where a permission of the person changes an answer of sample_table.yaml or\n" +
		"# extra_table.yaml: tier, taint and run, then answer, rule, reason and what is spent.\n" +
		"# Every call was decided under every permission in every place; what has no line here\n" +
		"# stays as it is there. Written by `go test ./gate -run Table -update`.\n")
	decided := 0
	for _, table := range tables {
		policy := policyNamed(t, table.policy)
		for _, c := range readCalls(t, table.calls) {
			op := c.Op.operation(t)
			title := fmt.Sprintf("\n%s of %s:\n", c.Name, table.policy)
			for _, perm := range permissionKinds() {
				head := "  " + perm.name + ":\n"
				for _, p := range places() {
					turn := p.turn().turn(op)
					before := Decide(op, turn, policy)
					perm.give(&turn, op, policy)
					d := Decide(op, turn, policy)
					decided++
					if recordOf(d) == recordOf(before) {
						continue
					}
					fmt.Fprintf(&got, "%s%s    %s: %s %s %s %s\n", title, head, p, d.Answer, d.Rule, d.Reason, stdcmp.Or(d.Grant, "-"))
					title, head = "", ""
				}
			}
		}
	}
	fmt.Fprintf(&got, "\n# %d decisions.\n", decided)
	compareTable(t, permissions, got.String())
}

// TestTablesHitEveryRule: no rule and no reason is decided by single cases alone.
func TestTablesHitEveryRule(t *testing.T) {
	rules, reasons := map[string]bool{}, map[Reason]bool{}
	for _, table := range tables {
		policy := policyNamed(t, table.policy)
		for _, c := range readCalls(t, table.calls) {
			op := c.Op.operation(t)
			for _, p := range places() {
				for _, perm := range append([]permission{{"none", func(*Turn, Operation, *Policy) {}}}, permissionKinds()...) {
					turn := p.turn().turn(op)
					perm.give(&turn, op, policy)
					d := Decide(op, turn, policy)
					rules[d.Rule], reasons[d.Reason] = true, true
				}
			}
		}
	}
	for _, rule := range []string{"1", "2", "2b", "3", "4", "5", "6", "7"} {
		if !rules[rule] {
			t.Errorf("no call of a table is decided by rule %s", rule)
		}
	}
	for _, r := range declaredReasons(t) {
		if !reasons[r] {
			t.Errorf("no call of a table is decided for %s", r)
		}
	}
}

// TestTablesHoldEveryTool keeps the tables whole when a tool is added.
func TestTablesHoldEveryTool(t *testing.T) {
	for _, table := range tables {
		calls := readCalls(t, table.calls)
		for _, tool := range policyNamed(t, table.policy).Tools() {
			if !slices.ContainsFunc(calls, func(c tableCall) bool { return c.Op.Tool == tool.Name }) {
				t.Errorf("%s has no call in %s", tool.Name, table.calls)
			}
		}
	}
	calls := readCalls(t, sampleCalls)
	for _, s := range policyNamed(t, "sample").Schemas() {
		if !slices.ContainsFunc(calls, func(c tableCall) bool { return c.Op.Tool == s.Name }) {
			t.Errorf("%s has no call in %s", s.Name, sampleCalls)
		}
	}
}
