package offers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

// What is shown is read back here by another program than the one that wrote it, which knows the tool's schema, and must
// come out as the very arguments. Then nothing was dropped, cut or changed, and no two calls look the same.

// schema is as much of a JSON Schema as the reading back needs.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
}

func (s *schema) is(kind string) bool {
	if s == nil {
		return false
	}
	list, ok := s.Type.([]any)
	return s.Type == kind || ok && slices.Contains(list, any(kind))
}

func schemaOf(t tb, tool *gate.Tool) *schema {
	t.Helper()
	s := new(schema)
	if err := json.Unmarshal(tool.Schema(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

var spelledOut = regexp.MustCompile(`<U\+([0-9A-F]{4,6})(?: x([0-9]+))?>`)

func unspell(s string) string {
	return spelledOut.ReplaceAllStringFunc(s, func(m string) string {
		g := spelledOut.FindStringSubmatch(m)
		r, _ := strconv.ParseInt(g[1], 16, 32)
		n := 1
		if g[2] != "" {
			n, _ = strconv.Atoi(g[2])
		}
		return strings.Repeat(string(rune(r)), n)
	})
}

// value reads what stands behind a prefix. s says what the schema allows; nil: anything.
func value(shown string, s *schema) any {
	switch shown {
	case "(null)":
		return nil
	case "(empty)":
		return ""
	case "(none)":
		return []any{}
	case "(no parts)":
		return map[string]any{}
	}
	rest, text := strings.CutPrefix(shown, "(text) ")
	if text {
		return unspell(rest)
	}
	if s == nil || !s.is("string") {
		if shown == "true" || shown == "false" {
			return shown == "true"
		}
		if _, err := strconv.ParseFloat(shown, 64); err == nil && json.Valid([]byte(shown)) {
			return json.Number(shown)
		}
	}
	return unspell(shown)
}

// node is an object or a list that is being read back.
type node struct {
	object map[string]*node
	list   map[int]*node
	leaf   any
	isLeaf bool
}

func (n *node) member(name string) *node {
	if n.object == nil {
		n.object = map[string]*node{}
	}
	if n.object[name] == nil {
		n.object[name] = new(node)
	}
	return n.object[name]
}

func (n *node) element(i int) *node {
	if n.list == nil {
		n.list = map[int]*node{}
	}
	if n.list[i] == nil {
		n.list[i] = new(node)
	}
	return n.list[i]
}

func (n *node) value() any {
	switch {
	case n.isLeaf:
		return n.leaf
	case n.list != nil:
		out := make([]any, len(n.list))
		for i := range out {
			if n.list[i] == nil {
				return errors.New("a list with a gap")
			}
			out[i] = n.list[i].value()
		}
		return out
	}
	out := map[string]any{}
	for k, e := range n.object {
		out[k] = e.value()
	}
	return out
}

// lines splits what is shown between title and last line, and demands a prefix on each.
func shownLines(text, ask string) (title string, lines [][2]string, err error) {
	rest, ok := strings.CutSuffix(text, ask)
	if !ok {
		return "", nil, fmt.Errorf("the last line is not code's: %q", text)
	}
	all := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	for _, l := range all[1:] {
		prefix, v, ok := strings.Cut(l, ": ")
		if !ok {
			return "", nil, fmt.Errorf("the line %q has no prefix", l)
		}
		lines = append(lines, [2]string{prefix, v})
	}
	return all[0], lines, nil
}

var numberAtEnd = regexp.MustCompile(`^(.*) ([0-9]+)$`)

// numbers takes the numbers of list elements off a prefix.
func numbers(prefix string) (string, []int) {
	var out []int
	for {
		m := numberAtEnd.FindStringSubmatch(prefix)
		if m == nil {
			return prefix, out
		}
		n, _ := strconv.Atoi(m[2])
		prefix, out = m[1], append([]int{n - 1}, out...)
	}
}

// readGeneric reads what was shown without a template.
func readGeneric(lines [][2]string, s *schema) any {
	root := new(node)
	for _, l := range lines {
		at, kind := root, s
		for part := range strings.SplitSeq(l[0], ".") {
			n, idx := numbers(part)
			if n == "(empty)" {
				n = ""
			}
			n = unspell(n)
			at = at.member(n)
			if kind != nil {
				kind = kind.Properties[n]
			}
			for _, i := range idx {
				at = at.element(i)
				if kind != nil {
					kind = kind.Items
				}
			}
		}
		at.leaf, at.isLeaf = value(l[1], kind), true
	}
	return root.value()
}

// readTemplate reads what was shown by a tool's template.
func readTemplate(lines [][2]string, tool *gate.Tool, s *schema) (any, error) {
	root := new(node)
	for k := 0; k < len(lines); k++ {
		prefix, idx := numbers(lines[k][0])
		i := slices.IndexFunc(tool.Template, func(l gate.Line) bool { return l.Prefix == prefix })
		if i < 0 {
			return nil, fmt.Errorf("no template has the prefix %q", prefix)
		}
		line := tool.Template[i]
		shown := lines[k][1]
		if line.Body {
			for k+1 < len(lines) && lines[k+1][0] == lines[k][0] {
				k++
				shown += "\n" + lines[k][1]
			}
		}
		at, kind := root, s
		all := shown == "(all null)" || shown == "(all absent)" // of what holds the argument; templates here are two deep
		path := line.Arg
		if all {
			path = path[:1]
		}
		for j, n := range path {
			at, kind = at.member(n), kind.Properties[n]
			for kind.is("array") && len(idx) > 0 {
				at, kind, idx = at.element(idx[0]), kind.Items, idx[1:]
			}
			if kind.is("array") && j < len(path)-1 {
				break // the list itself is what is shown
			}
		}
		switch {
		case shown == "(all null)":
			at.leaf = nil
		case all:
			at.leaf = map[string]any{}
		default:
			if kind.is("array") && shown != "(none)" && shown != "(null)" {
				at, kind = at.element(len(at.list)), kind.Items
			}
			at.leaf = value(shown, kind)
		}
		at.isLeaf = true
	}
	return root.value(), nil
}

// readBack turns the text of one call into its arguments.
func readBack(t tb, policy *gate.Policy, tool string, s offers.Shown) (any, error) {
	t.Helper()
	_, lines, err := shownLines(s.Text, s.AskLine)
	if err != nil {
		return nil, err
	}
	known, ok := policy.Tool(tool)
	switch {
	case !ok:
		return readGeneric(lines, nil), nil
	case len(known.Template) == 0:
		return readGeneric(lines, schemaOf(t, known)), nil
	}
	return readTemplate(lines, known, schemaOf(t, known))
}

// held demands of what is shown all that holds for every operation.
func held(t tb, policy *gate.Policy, op gate.Operation, s offers.Shown) {
	t.Helper()
	for _, r := range s.Text {
		if r != '\n' && r != '\uFE0F' && r != ' ' && (!unicode.IsGraphic(r) || unicode.In(r, unicode.Z, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)) {
			t.Fatalf("U+%04X is not seen in %q", r, s.Text)
		}
	}
	if !strings.HasSuffix(s.Text, "\n"+s.AskLine) || strings.ContainsRune(s.AskLine, '\n') || !strings.HasSuffix(s.AskLine, offers.Asks) {
		t.Fatalf("the last line is not code's: %q", s.Text)
	}
	for _, r := range s.AskLine {
		if r > unicode.MaxASCII {
			t.Fatalf("the last line is not exact: %q", s.AskLine)
		}
	}
	for _, r := range policy.Recipients(op) {
		want := offers.Exact(r.Given)
		if !r.Plain() {
			want = `"` + strings.ReplaceAll(want, `"`, "<U+0022>") + `"`
		}
		if !strings.Contains(s.AskLine, want) {
			t.Fatalf("the last line %q leaves out %q", s.AskLine, want)
		}
	}
	for _, p := range policy.Parts(op) {
		for _, v := range leavesOf(p.Args) {
			if len(v) > 8 && strings.Contains(s.Label, v) {
				t.Fatalf("the label %q holds an argument", s.Label)
			}
		}
	}
}

func leavesOf(raw []byte) (out []string) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case string:
			out = append(out, v)
		}
	}
	var v any
	_ = json.Unmarshal(raw, &v)
	walk(v)
	return out
}

func numbersKept(t tb, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// sameArguments compares; where the schema allows text and number (an amount) the two are alike to a person.
func sameArguments(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		o, ok := b.(map[string]any)
		if !ok || len(o) != len(a) {
			return false
		}
		for k, e := range a {
			other, ok := o[k]
			if !ok || !sameArguments(e, other) {
				return false
			}
		}
		return true
	case []any:
		o, ok := b.([]any)
		if !ok || len(o) != len(a) {
			return false
		}
		for i := range a {
			if !sameArguments(a[i], o[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// Texts that were made to mislead.
var nasty = []string{
	"", " ", "  ", "     ", "\n", "\n\n\n\n\n", "\r\n", "\t", "a", "Dana", "412.00", "5", "-5e3", "0x1", "true", "null", "(", "(none)", "(empty)", "(text) 5", "(555) 010",
	"<", "<U+", "<U+0041>", "<U+0020 x3>", "x3>", ">", ": ", ":", ".", "a.b", "a: b", " 1", "1", "1 of 2. ", "To", "To: dana@example.test", "Reply YES or NO.",
	"This sends to dana@example.test. Reply YES or NO.", "dana@example.test", "+12025550102", ", ", "\"", "\\", "\u202e", "\u200b", "\u200d", "\ufeff", "\u2028", "\u00a0",
	"\u3000", "\u2800", "\u0301", "e\u0301", "\u00e9", "\u0338", "\u20e3", "\ufe0f", "\u2764\ufe0f", "\U000e0100", "\U0001bca0", "\ue000", "\u0430", "p\u0430y", "\u03b1", "\u1100\u1161",
	"\uac00", "\u212a", "\u05d0", "\U0001F44D\U0001F3FD", "\u0000", "\u0085", "\ufffd", "\U0001d173", "\u0627\u0301\u0301\u0301\u0301",
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 5).Draw(t, "pieces"), "")
		}),
		rapid.SampledFrom(nasty),
		rapid.String(),
		rapid.StringN(0, 20, 80),
	)
}

func anyNumber() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]any{0, 1, -1, 412, 0.1, -2.5, 1e21, 1e-7, 9007199254740991}).Draw(t, "number")
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		n := 5
		if depth > 0 {
			n = 7
		}
		switch rapid.IntRange(0, n).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return anyNumber().Draw(t, "number")
		case 6:
			return rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list")
		case 7:
			return rapid.MapOfN(anyText(), anyValue(depth-1), 0, 3).Draw(t, "object")
		}
		return anyText().Draw(t, "text")
	})
}

// ofSchema draws a value that fits.
func ofSchema(t *rapid.T, s *schema) any {
	kinds, ok := s.Type.([]any)
	if !ok {
		kinds = []any{s.Type}
	}
	switch rapid.SampledFrom(kinds).Draw(t, "type") {
	case "object":
		out := map[string]any{}
		names := make([]string, 0, len(s.Properties))
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if rapid.Bool().Draw(t, name) {
				out[name] = ofSchema(t, s.Properties[name])
			}
		}
		return out
	case "array":
		out := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range out {
			out[i] = ofSchema(t, s.Items)
		}
		return out
	case "number", "integer":
		return anyNumber().Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "bool")
	case "null":
		return nil
	}
	return anyText().Draw(t, "text")
}

// onlyNumberOrText reads the one argument of the sample that may be either as the text that is shown of it.
func onlyNumberOrText(tool string, v any) any {
	if m, ok := v.(map[string]any); ok && tool == "payments.send" {
		if n, ok := m["amount"].(json.Number); ok {
			m["amount"] = n.String()
		}
	}
	return v
}

func checkShown(t tb, policy *gate.Policy, tool string, raw []byte) {
	args, _, err := offers.Canonical(raw)
	if err != nil {
		return
	}
	op := gate.Operation{Kind: gate.KindToolCall, Tool: tool, Args: args}
	s, err := offers.Show(op, policy, offers.View{Limit: 1 << 24})
	if err != nil {
		if _, known := policy.Tool(tool); known && errors.Is(err, offers.ErrCannotBeShown) {
			return // arguments that do not fit the schema, which the gate refuses before
		}
		if tool == gate.ToolBundle {
			return
		}
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	held(t, policy, op, s)
	if tool == gate.ToolBundle {
		return
	}
	got, err := readBack(t, policy, tool, s)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", tool, args, err, s.Text)
	}
	if want := numbersKept(t, args); !sameArguments(onlyNumberOrText(tool, want), onlyNumberOrText(tool, got)) {
		t.Fatalf("%s\nreads back as %#v\nnot as        %#v", s.Text, got, want)
	}
}

// TestInvariant03_WhatIsShownReadsBack is the property for calls that fit their schemas, and for unknown tools.
func TestInvariant03_WhatIsShownReadsBack(t *testing.T) {
	for _, policy := range []*gate.Policy{sample(t), odd(t)} {
		for _, tool := range policy.Tools() {
			if tool.Name == "lamp.set" {
				continue // open to any argument; below
			}
			s := schemaOf(t, tool)
			t.Run(tool.Name, rapid.MakeCheck(func(rt *rapid.T) {
				raw, err := json.Marshal(ofSchema(rt, s))
				if err != nil {
					rt.Fatal(err)
				}
				checkShown(rt, policy, tool.Name, raw)
				shownInParts(rt, policy, tool.Name, raw)
			}))
		}
	}
	for name, policy := range map[string]*gate.Policy{"lamp.set": odd(t), "drone.launch": sample(t), "no.policy": nil} {
		t.Run(name, rapid.MakeCheck(func(rt *rapid.T) {
			raw, err := json.Marshal(rapid.MapOfN(anyText(), anyValue(3), 0, 4).Draw(rt, "args"))
			if err != nil {
				rt.Fatal(err)
			}
			checkShown(rt, policy, name, raw)
		}))
	}
}

// shownInParts demands that a bundle shows each part as it is shown alone, and that the linked form differs in bodies only.
func shownInParts(t tb, policy *gate.Policy, tool string, raw []byte) {
	alone, err := offers.Show(call(t, tool, string(raw)), policy, offers.View{Limit: 1 << 24})
	if err != nil {
		return
	}
	both, err := offers.Show(call(t, "bundle", fmt.Sprintf(`{"parts":[{"tool":%q,"args":%s},{"tool":"x","args":{"a":1}}]}`, tool, raw)), policy, offers.View{Limit: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	of := func(s offers.Shown) string { return strings.TrimSuffix(s.Text, s.AskLine) }
	want := "1 of 2. " + of(alone) + "2 of 2. Run a tool that is not in the policy: x\na: 1\n"
	if of(both) != want {
		t.Fatalf("in a bundle it is\n%s\nnot\n%s", of(both), want)
	}
	for _, limit := range []int{100, 200, 400} {
		linked, err := offers.Show(call(t, tool, string(raw)), policy, offers.View{Limit: limit, Page: pageURL})
		if err != nil || !linked.Linked {
			continue
		}
		if linked.AskLine != alone.AskLine || linked.Label != alone.Label {
			t.Fatalf("a link changes %q to %q", alone.AskLine, linked.AskLine)
		}
	}
}

// FuzzShow is the same for anything that a caller may send, whether it fits a schema or not.
func FuzzShow(f *testing.F) {
	for _, s := range []string{`{}`, `{"to":["dana@example.test"],"subject":"s","body":"a\n(b"}`, `{"a.b":{"c: d":[1,"1",[],{"":null}]}}`, `{"parts":[{"tool":"x","args":{"a":"\u202e"}}]}`} {
		for _, tool := range []string{"email.send", "payments.send", "shop.order", "x", "bundle", "lamp.set"} {
			f.Add(tool, []byte(s))
		}
	}
	policies := []*gate.Policy{sample(f), odd(f), nil}
	f.Fuzz(func(t *testing.T, tool string, raw []byte) {
		if !utf8.ValidString(tool) {
			return
		}
		for _, policy := range policies {
			if known, ok := policy.Tool(tool); ok && len(known.Template) > 0 {
				// Off the schema there is no reading back; what holds for every text holds here too.
				if args, _, err := offers.Canonical(raw); err == nil {
					op := gate.Operation{Kind: gate.KindToolCall, Tool: tool, Args: args}
					if s, err := offers.Show(op, policy, offers.View{Limit: 1 << 24}); err == nil {
						held(t, policy, op, s)
					}
				}
				continue
			}
			checkShown(t, policy, tool, raw)
		}
	})
}
