package gate

import (
	"bytes"
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
		ShortForm: c.ShortForm, OwnAddresses: own, DirectSend: c.DirectSend, AskingIsApproving: c.AskingIsApproving,
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
		if filepath.Base(name) == sampleTable || filepath.Base(name) == sampleCalls {
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
	sampleCalls = "sample_calls.yaml"
)

// sampleCall is one call of a tool of the sample, for the whole table.
type sampleCall struct {
	Name string `yaml:"name"`
	Op   caseOp `yaml:"op"`
}

func readSampleCalls(t testing.TB) []sampleCall {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", sampleCalls))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var calls []sampleCall
	if err := dec.Decode(&calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// TestSampleTable decides every call of the sample for every tier, with and
// without taint, in every kind of run, and compares with the reviewed file.
// `go test ./gate -run TestSampleTable -update` writes it again.
func TestSampleTable(t *testing.T) {
	policy := policyNamed(t, "sample")
	var got strings.Builder
	got.WriteString("# Every call of sample_calls.yaml: tier, taint and run, then answer, rule, reason\n" +
		"# and capability. Written by `go test ./gate -run TestSampleTable -update`; every\n" +
		"# change of a line is a change of what the product does, to be reviewed as such.\n")
	for _, c := range readSampleCalls(t) {
		op := c.Op.operation(t)
		fmt.Fprintf(&got, "\n%s:\n", c.Name)
		for _, tier := range []string{TierOwner, TierPaired, "admin", ""} {
			for _, tainted := range []bool{false, true} {
				for _, run := range []string{"person", "alone", "offer"} {
					turn := caseTurn{Tier: tier, Tainted: tainted, Alone: run == "alone", ShortForm: run == "offer"}.turn(op)
					d := Decide(op, turn, policy)
					taint := "clean"
					if tainted {
						taint = "tainted"
					}
					shown := tier
					if tier == "" {
						shown = "missing"
					}
					fmt.Fprintf(&got, "  %-7s %-7s %-6s: %s %s %s %s\n", shown, taint, run, d.Answer, d.Rule, d.Reason, d.Capability)
				}
			}
		}
	}
	path := filepath.Join("testdata", sampleTable)
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestSampleTableHoldsEveryTool keeps the table whole when a tool is added.
func TestSampleTableHoldsEveryTool(t *testing.T) {
	calls := readSampleCalls(t)
	for _, s := range policyNamed(t, "sample").Schemas() {
		if !slices.ContainsFunc(calls, func(c sampleCall) bool { return c.Op.Tool == s.Name }) {
			t.Errorf("%s has no call in %s", s.Name, sampleCalls)
		}
	}
}
