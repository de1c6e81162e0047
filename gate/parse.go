package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// PolicyError is one thing wrong in a policy file.
type PolicyError struct {
	File string
	Line int // from 1
	// Msg names the tool where there is one, what is wrong, and what to do.
	Msg string
}

// Error is "file:line: message".
func (e *PolicyError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// maxPolicyErrors keeps the report of a file that is no policy at all readable.
const maxPolicyErrors = 20

// ParsePolicy reads a policy file (YAML; the package comment describes it). The
// name stands in errors. The error joins one *PolicyError per fault, in the
// order of the file; the policy is nil then.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	p := &parser{file: name}
	policy := p.policy(data)
	if len(p.errs) == 0 {
		return policy, nil
	}
	slices.SortStableFunc(p.errs, func(a, b *PolicyError) int { return a.Line - b.Line })
	if len(p.errs) > maxPolicyErrors {
		p.errs = p.errs[:maxPolicyErrors]
	}
	joined := make([]error, len(p.errs))
	for i, e := range p.errs {
		joined[i] = e
	}
	return nil, errors.Join(joined...)
}

type parser struct {
	file string
	tool string // the tool that is being read, for messages
	errs []*PolicyError
}

func (p *parser) report(n *yaml.Node, format string, a ...any) {
	msg := fmt.Sprintf(format, a...)
	if p.tool != "" {
		msg = "tool " + p.tool + ": " + msg
	}
	p.errs = append(p.errs, &PolicyError{File: p.file, Line: max(n.Line, 1), Msg: msg})
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

func (p *parser) policy(data []byte) *Policy {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		p.report(&doc, "the policy is empty; give it version: 1 and tools:")
		return nil
	}
	if err == nil {
		if err = dec.Decode(&second); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			p.report(&second, "a second document starts here; a policy is one")
			return nil
		}
	}
	if err != nil {
		at, msg := &yaml.Node{Line: 1}, err.Error()
		if m := yamlLine.FindStringSubmatch(msg); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
			msg = m[2]
		}
		p.report(at, "this is no YAML (%s); correct the line", msg)
		return nil
	}
	root := doc.Content[0]
	if !p.sound(root) {
		return nil
	}
	fields := p.fields(root, "the policy", "version", "tools")
	if v := fields["version"]; v == nil || v.Value != "1" {
		p.report(at(v, root), "write version: 1; no other version is known")
	}
	tools := fields["tools"]
	if tools == nil || tools.Kind != yaml.MappingNode || len(tools.Content) == 0 {
		p.report(at(tools, root), "tools: maps at least one tool's name to its entry")
		return nil
	}
	sum := sha256.Sum256(data)
	policy := &Policy{Version: hex.EncodeToString(sum[:]), index: map[string]*Tool{}}
	for i := 0; i+1 < len(tools.Content); i += 2 {
		if t := p.readTool(tools.Content[i], tools.Content[i+1]); t != nil {
			policy.tools = append(policy.tools, t)
			policy.index[t.Name] = t
		}
	}
	return policy
}

// sound refuses what would make a file mean something else than it looks like:
// doubled keys, aliases and merged mappings.
func (p *parser) sound(n *yaml.Node) bool {
	ok := true
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		p.report(n, "anchors and aliases cannot be used; write the value out")
		return false
	}
	seen := map[string]int{}
	for i, e := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch line, doubled := seen[e.Value]; {
			case e.Kind != yaml.ScalarNode || e.Tag == "!!merge":
				p.report(e, "this key is no plain name; write one")
				ok = false
				continue
			case doubled:
				p.report(e, "%q stands here and on line %d; keep one of them", e.Value, line)
				ok = false
			}
			seen[e.Value] = e.Line
		}
		ok = p.sound(e) && ok
	}
	return ok
}

// at is the node to name in an error: n, or the one that should have held it.
func at(n, parent *yaml.Node) *yaml.Node {
	if n != nil {
		return n
	}
	return parent
}

// fields maps a mapping's known keys to their values and reports unknown ones.
func (p *parser) fields(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	all := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		p.report(n, "%s is no mapping; write %s", what, strings.Join(known, ", "))
		return all
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			p.report(key, "%s has no key %q; use %s", what, key.Value, strings.Join(known, ", "))
			continue
		}
		all[key.Value] = n.Content[i+1]
	}
	return all
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

func (p *parser) readTool(key, n *yaml.Node) *Tool {
	p.tool = key.Value
	defer func() { p.tool = "" }()
	switch {
	case !toolName.MatchString(key.Value) || len(key.Value) > 64:
		p.report(key, "a tool's name is lower-case words with dots between them, at most 64 characters")
	case slices.Contains([]string{ToolMessageSend, ToolBundle, ToolModelCall, ToolMemoryAppend, ToolPermissionGrant}, key.Value):
		p.report(key, "this name is built in; choose another")
	}
	f := p.fields(n, "the entry", "description", "effect", "outward", "capability", "schema", "recipients", "amount",
		"label", "template", "reads", "preview", "own", "reversible", "settle", "expires", "said")
	t := &Tool{
		Name:           key.Value,
		Description:    p.text(f["description"], 300),
		Effect:         choice(p, f["effect"], key, "effect", effects()),
		Capability:     choice(p, f["capability"], key, "capability", Capabilities()),
		ActsOutward:    p.flag(f["outward"]),
		Preview:        p.flag(f["preview"]),
		Own:            p.flag(f["own"]),
		Reversible:     p.flag(f["reversible"]),
		ReadsUntrusted: p.word(f["reads"], "reads", "untrusted") != "",
	}
	if t.ActsOutward && t.Effect != EffectSchedule && t.Effect != EffectRead {
		p.report(f["outward"], "outward goes with effect schedule or read; use effect act for anything else that leaves the account")
	}
	if !slices.Contains([]Effect{EffectRead, EffectWrite, EffectInvite, EffectSchedule}, t.Effect) { // mutant: gate-own-effects
		for _, claim := range []string{"own", "reversible"} {
			if f[claim] != nil {
				p.report(f[claim], "effect %s cannot be %s; remove the line", t.Effect, claim)
			}
		}
	}
	closed := t.Outward() || t.Effect == EffectDelete || f["template"] != nil
	shape := p.schema(t, closed, f["schema"], key)
	t.Label = p.label(f["label"], key, t.Effect)
	t.Settle = p.duration(f["settle"], "settle", 0, MaxSettle)
	most := InwardExpires
	if t.Outward() {
		most = OutwardExpires
	}
	t.Expires = p.duration(f["expires"], "expires", most, most)
	if t.Expires == 0 {
		p.report(f["expires"], "an offer that lives for no time cannot be answered; leave expires out or give it some minutes")
	}
	t.Said = p.said(f["said"], t.Effect)
	if shape != nil {
		t.Recipients = p.recipients(f["recipients"], key, t, shape)
		t.Amount = p.amount(f["amount"], key, t, shape)
		t.Template = p.template(f["template"], key, t, shape)
		if t.Label.Recipients && len(t.Recipients) == 0 {
			p.report(f["label"], "the label speaks of recipients and the tool has none; remove to: recipients")
		}
	}
	return t
}

func (p *parser) text(n *yaml.Node, most int) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" || len(n.Value) > most {
		p.report(n, "a text of 1 to %d characters belongs here", most)
		return ""
	}
	return n.Value
}

func (p *parser) flag(n *yaml.Node) bool {
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.report(n, "true or false belongs here")
		return false
	}
	var v bool
	if err := n.Decode(&v); err != nil {
		p.report(n, "true or false belongs here")
	}
	return v
}

// word reads one of a few words; "" where the key is not there.
func (p *parser) word(n *yaml.Node, what string, known ...string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(known, n.Value) {
		p.report(n, "%s is not known here; use one of: %s", what, strings.Join(known, ", "))
		return ""
	}
	return n.Value
}

// choice reads one of a closed list that every entry must name.
func choice[T ~string](p *parser, n, entry *yaml.Node, what string, known []T) T {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	if n == nil {
		p.report(entry, "%s is missing; add one of: %s", what, strings.Join(words, ", "))
		return ""
	}
	return T(p.word(n, what, words...))
}

func (p *parser) duration(n *yaml.Node, what string, otherwise, most time.Duration) time.Duration {
	if n == nil {
		return otherwise
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > most {
		p.report(n, "%s is a duration like 30s or 5m, at most %s for this tool", what, most)
		return otherwise
	}
	return d
}

func (p *parser) schema(t *Tool, closed bool, n, entry *yaml.Node) *schemaReader {
	if n == nil {
		p.report(entry, "schema is missing; add the JSON Schema of the arguments")
		return nil
	}
	if types := field(n, "type"); types == nil || types.Value != "object" {
		p.report(n, "the schema is not one of an object; start it with type: object")
		return nil
	}
	r := &schemaReader{report: p.report, closed: closed, types: map[string]leaf{}}
	before := len(p.errs)
	r.noConfirmations(n)
	r.read(n, nil, false)
	if len(p.errs) > before {
		return nil
	}
	doc, err := appendJSON(nil, n)
	if err == nil {
		t.compiled, err = compileSchema(doc)
	}
	if err != nil {
		p.report(n, "the schema is no JSON Schema (%s); correct it", oneLine(err))
		return nil
	}
	t.schema, t.properties = doc, r.leaves
	return r
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// path reads an argument path that must be in the schema.
func (p *parser) path(n *yaml.Node, shape *schemaReader) (Path, leaf, bool) {
	found, ok := shape.types[n.Value]
	if n.Kind != yaml.ScalarNode || !ok {
		p.report(n, "%q is no argument of the schema; name one that is", n.Value)
		return nil, leaf{}, false
	}
	return strings.Split(n.Value, "."), found, true
}

func (p *parser) recipients(n, entry *yaml.Node, t *Tool, shape *schemaReader) []Path {
	var paths []Path
	if n != nil && n.Kind != yaml.SequenceNode {
		p.report(n, "recipients is a list of argument paths, like [to, cc]")
		return nil
	}
	if n != nil {
		for _, e := range n.Content {
			path, found, ok := p.path(e, shape)
			if ok && !slices.Equal(found.types, []string{"string"}) {
				p.report(e, "recipients at %q are no strings; make them strings or lists of strings", e.Value)
			}
			paths = append(paths, path)
		}
	}
	needed := slices.Contains([]Effect{EffectSend, EffectPay, EffectShare, EffectInvite}, t.Effect)
	if needed && len(paths) == 0 { // mutant: gate-recipients-needed
		p.report(at(n, entry), "effect %s reaches somebody; name the arguments that say whom in recipients", t.Effect)
	}
	if !t.Outward() {
		return paths
	}
	for _, l := range shape.leaves {
		hidden := recipientNames[strings.ToLower(l[len(l)-1])] && !slices.ContainsFunc(paths, func(q Path) bool { return slices.Equal(q, l) })
		if hidden { // mutant: gate-recipients-hidden
			p.report(shape.types[l.String()].node, "argument %q names somebody who is reached; add it to recipients", l.String())
		}
	}
	return paths
}

func (p *parser) amount(n, entry *yaml.Node, t *Tool, shape *schemaReader) *AmountPaths {
	if n == nil {
		if t.Effect == EffectPay {
			p.report(entry, "effect pay needs amount: {value: …, currency: …} with the arguments that hold them")
		}
		return nil
	}
	f := p.fields(n, "amount", "value", "currency")
	if f["value"] == nil || f["currency"] == nil {
		p.report(n, "amount names two arguments, value and currency; add the missing one")
		return nil
	}
	value, valueLeaf, ok1 := p.path(f["value"], shape)
	currency, currencyLeaf, ok2 := p.path(f["currency"], shape)
	if !ok1 || !ok2 {
		return nil
	}
	numeric := func(t string) bool { return t == "number" || t == "integer" || t == "string" }
	if len(valueLeaf.types) == 0 || valueLeaf.list || slices.ContainsFunc(valueLeaf.types, func(t string) bool { return !numeric(t) }) {
		p.report(f["value"], "the amount is one number or decimal string; change its type in the schema")
	}
	if !slices.Equal(currencyLeaf.types, []string{"string"}) || currencyLeaf.list {
		p.report(f["currency"], "the currency is one string; change its type in the schema")
	}
	return &AmountPaths{Value: value, Currency: currency}
}

var (
	verbForm   = regexp.MustCompile(`^[a-z]+( [a-z]+){0,5}$`)
	prefixForm = regexp.MustCompile(`^[A-Z][A-Za-z]*( [A-Za-z]+){0,3}$`)
)

func (p *parser) label(n, entry *yaml.Node, effect Effect) Label {
	if n == nil {
		p.report(entry, `label is missing; add label: {verb: "send email", to: recipients}`)
		return Label{}
	}
	f := p.fields(n, "label", "verb", "to", "word")
	l := Label{Verb: p.text(f["verb"], 40), Word: "to", Recipients: p.word(f["to"], "to", "recipients") != ""}
	if !verbForm.MatchString(l.Verb) {
		p.report(at(f["verb"], n), "verb is one to six lower-case words, like send email")
	}
	if w := f["word"]; w != nil {
		l.Word = p.word(w, "word", "to", "with", "for", "from", "by")
	}
	if effect == EffectSend && !l.Recipients {
		p.report(n, "the label of a send says to whom; add to: recipients")
	}
	return l
}

// template reads the lines and checks that together they show every argument.
func (p *parser) template(n, entry *yaml.Node, t *Tool, shape *schemaReader) []Line {
	if n == nil {
		if t.Outward() || t.Effect == EffectDelete {
			p.report(entry, "template is missing; add a line {prefix, arg} for every argument")
		}
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.report(n, "template is a list of lines, each {prefix: Subject, arg: subject}")
		return nil
	}
	var lines []Line
	prefixes := map[string]bool{}
	for _, e := range n.Content {
		f := p.fields(e, "a line", "prefix", "arg", "body")
		if f["prefix"] == nil || f["arg"] == nil {
			p.report(e, "a line has a prefix and an arg; add the missing one")
			continue
		}
		line := Line{Prefix: p.text(f["prefix"], 24), Body: p.flag(f["body"])}
		if !prefixForm.MatchString(line.Prefix) || prefixes[line.Prefix] {
			p.report(f["prefix"], "a prefix is one to four words with a capital first, and each line has its own")
		}
		prefixes[line.Prefix] = true
		path, found, ok := p.path(f["arg"], shape)
		if !ok {
			continue
		}
		line.Arg = path
		if line.Body {
			free := slices.Equal(found.types, []string{"string"}) && !found.list
			if !free || coversAny(t.Recipients, path) || t.Amount != nil && coversAny([]Path{t.Amount.Value, t.Amount.Currency}, path) {
				p.report(f["body"], "only one free text can be a body; recipients, amounts and lists are always shown in the text itself")
			}
		}
		lines = append(lines, line)
	}
	for _, l := range shape.leaves {
		shown := slices.ContainsFunc(lines, func(line Line) bool {
			return len(line.Arg) <= len(l) && slices.Equal(line.Arg, l[:len(line.Arg)])
		})
		if !shown { // mutant: gate-template-shows-all
			p.report(n, "argument %q is not shown; add a line for it", l.String())
		}
	}
	return lines
}

func coversAny(paths []Path, path Path) bool {
	return slices.ContainsFunc(paths, func(q Path) bool { return slices.Equal(q, path) })
}

func (p *parser) said(n *yaml.Node, effect Effect) *SaidAs {
	if n == nil {
		return nil
	}
	f := p.fields(n, "said", "kind", "channel")
	if f["kind"] == nil || f["channel"] == nil {
		p.report(n, "said has a kind and a channel; add the missing one")
		return nil
	}
	s := &SaidAs{
		Kind:    p.word(f["kind"], "kind", "send", "post", "pay", "act_out", "change"),
		Channel: p.word(f["channel"], "channel", "email", "slack", "sms", "calendar", "github", "web", "none"),
	}
	// What was asked for as one thing must not open another.
	only := map[Effect]string{EffectSend: "send", EffectPost: "post", EffectPay: "pay"}
	switch kind, bound := only[effect]; {
	case effect == EffectDelete:
		p.report(n, "a deletion is always asked; remove said")
	case bound && s.Kind != kind:
		p.report(f["kind"], "effect %s is said as kind %s; change one of them", effect, kind)
	case !bound && (s.Kind == "send" || s.Kind == "post" || s.Kind == "pay"):
		p.report(f["kind"], "effect %s is not said as kind %s; use act_out or change", effect, s.Kind)
	}
	return s
}
