package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

// goliveWords stand in every text of a staged call: whoever reads them on a phone must know what this is.
const goliveWords = "This is a go-live check. Nothing is sent."

// outsider is an address that is nobody's own: the names of RFC 2606 belong to nobody.
func outsider(n int) string { return fmt.Sprintf("outside-%d@example.net", n) }

// variant is one call of a tool.
type variant struct {
	name string
	args map[string]any
}

// callsOf makes calls that fit a tool's schema, the same ones every time: one with every argument, and one for each place
// of a recipient with as little as possible besides, so that none hides behind another. A tool without recipients gets
// one with as little as possible. It fails where no call fits.
func callsOf(t *gate.Tool, policy *gate.Policy) ([]variant, error) {
	var schema schemaNode
	if err := json.Unmarshal(t.Schema(), &schema); err != nil {
		return nil, err
	}
	all := []variant{{t.Name, nil}}
	wanted := []func(path []string) bool{func([]string) bool { return true }}
	for _, r := range t.Recipients {
		all = append(all, variant{t.Name + " with " + r.String() + " alone", nil})
		wanted = append(wanted, func(path []string) bool { return len(path) <= len(r) && slices.Equal(path, r[:len(path)]) })
	}
	if len(t.Recipients) == 0 {
		all = append(all, variant{t.Name + " in short", nil})
		wanted = append(wanted, func([]string) bool { return false })
	}
	for i := range all {
		m := &maker{recipients: t.Recipients, wanted: wanted[i]}
		v, err := m.value(&schema, nil)
		if err != nil {
			return nil, err
		}
		args, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("its schema is of no object")
		}
		if all[i].args = args; !fits(t, policy, args) {
			return nil, errors.New("what was made does not fit")
		}
	}
	return all, nil
}

// fits asks the gate in this program whether the arguments pass its first rule.
func fits(t *gate.Tool, policy *gate.Policy, args map[string]any) bool {
	raw, err := json.Marshal(args)
	if err != nil {
		return false
	}
	canonical, _, err := offers.Canonical(raw)
	if err != nil {
		return false
	}
	op := gate.Operation{Kind: gate.KindToolCall, Tool: t.Name, Args: canonical}
	return gate.Decide(op, gate.Turn{Tier: gate.TierOwner, Interactive: true}, policy).Rule != "1"
}

// schemaNode is the closed part of JSON Schema that a policy may use.
type schemaNode struct {
	Type             schemaTypes            `json:"type"`
	Enum             []any                  `json:"enum"`
	Const            any                    `json:"const"`
	Format           string                 `json:"format"`
	Pattern          string                 `json:"pattern"`
	MinLength        int                    `json:"minLength"`
	MaxLength        *int                   `json:"maxLength"`
	Minimum          *float64               `json:"minimum"`
	Maximum          *float64               `json:"maximum"`
	ExclusiveMinimum *float64               `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64               `json:"exclusiveMaximum"`
	MultipleOf       float64                `json:"multipleOf"`
	Items            *schemaNode            `json:"items"`
	MinItems         int                    `json:"minItems"`
	Properties       map[string]*schemaNode `json:"properties"`
	Required         []string               `json:"required"`
	MinProperties    int                    `json:"minProperties"`
	MaxProperties    *int                   `json:"maxProperties"`
}

// schemaTypes is one type, or several.
type schemaTypes []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *schemaTypes) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = schemaTypes{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// maker makes one value of a schema. Recipients are outsiders, each another one.
type maker struct {
	recipients []gate.Path
	wanted     func(path []string) bool // whether an argument that may be left out is made
	outsiders  int
	serial     int
}

func (m *maker) isRecipient(path []string) bool {
	return slices.ContainsFunc(m.recipients, func(r gate.Path) bool { return slices.Equal(path, r) })
}

func (m *maker) value(s *schemaNode, path []string) (any, error) {
	if s == nil {
		s = &schemaNode{}
	}
	switch {
	case s.Const != nil:
		return s.Const, nil
	case len(s.Enum) > 0:
		return s.Enum[0], nil
	}
	kind := "string"
	switch {
	case len(s.Type) > 0:
		kind = s.Type[0]
	case s.Properties != nil:
		kind = "object"
	case s.Items != nil:
		kind = "array"
	}
	switch kind {
	case "object":
		return m.object(s, path)
	case "array":
		return m.array(s, path)
	case "number", "integer":
		return s.number(kind == "integer")
	case "boolean":
		return false, nil
	case "null":
		return nil, nil
	}
	return m.text(s, path)
}

func (m *maker) object(s *schemaNode, path []string) (any, error) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	out := map[string]any{}
	put := func(name string) error {
		v, err := m.value(s.Properties[name], append(slices.Clone(path), name))
		out[name] = v
		return err
	}
	// What must be there first, so that a limit on the number drops the rest.
	for _, must := range []bool{true, false} {
		for _, name := range names {
			required := slices.Contains(s.Required, name)
			room := s.MaxProperties == nil || len(out) < *s.MaxProperties
			if must != required || !required && (!room || !m.wanted(append(slices.Clone(path), name)) && len(out) >= s.MinProperties) {
				continue
			}
			if err := put(name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (m *maker) array(s *schemaNode, path []string) (any, error) {
	out := []any{}
	for range max(s.MinItems, 1) {
		v, err := m.value(s.Items, path)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// number is the smallest round one that the limits take, and never zero where that can be helped: nothing is paid with it.
func (s *schemaNode) number(whole bool) (any, error) {
	low, high := math.Inf(-1), math.Inf(1)
	for _, b := range []*float64{s.Minimum, s.ExclusiveMinimum} {
		if b != nil {
			low = max(low, *b)
		}
	}
	for _, b := range []*float64{s.Maximum, s.ExclusiveMaximum} {
		if b != nil {
			high = min(high, *b)
		}
	}
	step := s.MultipleOf
	if step == 0 && whole {
		step = 1
	}
	ok := func(v float64) bool {
		return v >= low && v <= high && (s.ExclusiveMinimum == nil || v > *s.ExclusiveMinimum) && (s.ExclusiveMaximum == nil || v < *s.ExclusiveMaximum) &&
			(step == 0 || math.Abs(v/step-math.Round(v/step)) < 1e-9)
	}
	candidates := []float64{1, low, high, low + 1, high - 1, (low + high) / 2, 0}
	if step > 0 {
		candidates = append(candidates, step, math.Ceil(low/step)*step, math.Ceil(low/step)*step+step, math.Floor(high/step)*step, math.Floor(high/step)*step-step)
	}
	for _, v := range candidates {
		if !math.IsInf(v, 0) && !math.IsNaN(v) && ok(v) {
			return v, nil
		}
	}
	return nil, errors.New("no number lies within its limits")
}

// formats are texts that a format asks for.
var formats = map[string]string{
	"date-time": "2030-01-02T03:04:05Z", "date": "2030-01-02", "time": "03:04:05Z", "duration": "PT1H", "email": "outside@example.net",
	"idn-email": "outside@example.net", "hostname": "example.net", "idn-hostname": "example.net", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.net/", "uri-reference": "https://example.net/", "iri": "https://example.net/", "iri-reference": "https://example.net/",
	"uuid": "01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10", "regex": "x", "json-pointer": "/x", "relative-json-pointer": "0", "uri-template": "https://example.net/",
}

// text picks the first candidate that the schema takes.
func (m *maker) text(s *schemaNode, path []string) (any, error) {
	var candidates []string
	if m.isRecipient(path) {
		m.outsiders++
		candidates = append(candidates, outsider(m.outsiders), fmt.Sprintf("+120255501%02d", 50+m.outsiders%50), fmt.Sprintf("outside-%d", m.outsiders))
	}
	if f, ok := formats[s.Format]; ok {
		candidates = append(candidates, f)
	} else {
		m.serial++
		candidates = append(candidates, goliveWords, fmt.Sprintf("golive-%d", m.serial), "golive", "x")
	}
	var pattern *regexp.Regexp
	if s.Pattern != "" {
		var err error
		if pattern, err = regexp.Compile(s.Pattern); err != nil {
			return nil, fmt.Errorf("its pattern cannot be read: %w", err)
		}
		made, err := matching(s.Pattern, s.MinLength)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, made)
	}
	candidates = append(candidates, strings.Repeat("x", s.MinLength))
	for _, c := range candidates {
		n := utf8.RuneCountInString(c)
		if n >= s.MinLength && (s.MaxLength == nil || n <= *s.MaxLength) && (pattern == nil || pattern.MatchString(c)) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no text was found for %s", strings.Join(path, "."))
}

// matching writes a text that a pattern takes, of at least so many characters where repetitions allow it.
func matching(pattern string, atLeast int) (string, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", fmt.Errorf("its pattern cannot be read: %w", err)
	}
	shortest := ""
	for extra := 0; extra <= atLeast; extra++ {
		var b strings.Builder
		writeMatching(&b, re.Simplify(), extra)
		if extra == 0 {
			shortest = b.String()
		}
		if utf8.RuneCountInString(b.String()) >= atLeast {
			return b.String(), nil
		}
	}
	return shortest, nil
}

// writeMatching writes the first text that an expression takes; extra is how often a repetition without an end is taken
// beyond what it must.
func writeMatching(b *strings.Builder, re *syntax.Regexp, extra int) {
	times := 1
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
		return
	case syntax.OpCharClass:
		b.WriteRune(printable(re.Rune))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune('x')
		return
	case syntax.OpAlternate:
		writeMatching(b, re.Sub[0], extra)
		return
	case syntax.OpStar, syntax.OpQuest:
		times = 0
	case syntax.OpRepeat:
		times = re.Min
	}
	if re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 {
		times += extra
	} else if re.Op == syntax.OpQuest && extra > 0 || re.Op == syntax.OpRepeat && re.Max > 0 {
		times = max(times, min(extra, max(re.Max, 1)))
	}
	for range times {
		for _, sub := range re.Sub {
			writeMatching(b, sub, extra)
		}
	}
}

// printable picks a character of a class that can be seen, if there is one.
func printable(ranges []rune) rune {
	for i := 0; i+1 < len(ranges); i += 2 {
		for _, r := range []rune{'A', 'a', '1', ranges[i]} {
			if r > ' ' && r < 0x7f && r >= ranges[i] && r <= ranges[i+1] {
				return r
			}
		}
	}
	return ranges[0]
}
