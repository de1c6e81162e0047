package offers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign/countersign/gate"
)

// Shown is a rendered offer.
type Shown struct {
	Label   string // what the reader and the person call it
	Text    string // the whole text, as it is sent
	AskLine string // its last line
}

// Show renders an operation for its person, from the canonical bytes that are stored, hashed and released.
//
// Every argument has a line of its own, behind a prefix that code wrote; a value of several lines has the prefix on each
// of them. The last line, with the effect, the exact recipients and the amount, is code's alone. Nothing is dropped or
// cut: a text longer than limit (in UTF-16 units, as a carrier counts) is [ErrCannotBeShown].
func Show(op gate.Operation, policy *gate.Policy, limit int) (Shown, error) {
	var b strings.Builder
	parts := policy.Parts(op)
	if len(parts) == 0 {
		return Shown{}, fmt.Errorf("%w: the arguments cannot be read", ErrCannotBeShown)
	}
	for i, part := range parts {
		if err := showPart(&b, part, policy, i, len(parts)); err != nil {
			return Shown{}, err
		}
	}
	s := Shown{Label: label(op, parts, policy), AskLine: askLine(op, parts, policy)}
	b.WriteString(s.AskLine)
	s.Text = b.String()
	if n := utf16Len(s.Text); n > limit {
		return Shown{}, fmt.Errorf("%w: %d characters, and %d go out as one text", ErrCannotBeShown, n, limit)
	}
	return s, nil
}

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

func showPart(b *strings.Builder, op gate.Operation, policy *gate.Policy, i, of int) error {
	args, err := decode(op.Args)
	if err != nil {
		return fmt.Errorf("%w: the arguments cannot be read", ErrCannotBeShown)
	}
	if of > 1 {
		fmt.Fprintf(b, "%d of %d. ", i+1, of)
	}
	b.WriteString(title(op, policy) + "\n")
	var lines []field
	if tool, ok := policy.Tool(op.Tool); ok && len(tool.Template) > 0 {
		for _, l := range tool.Template {
			lines = append(lines, along(line(l.Prefix), l.Arg, args)...)
		}
	} else {
		lines = everything("", args)
	}
	// The template was checked when the policy was read; counting leaves holds it to that for these very arguments.
	if shown, all := leaves(lines), len(everything("", args)); shown != all {
		return fmt.Errorf("%w: the template shows %d of %d values", ErrCannotBeShown, shown, all)
	}
	for _, f := range lines {
		f.write(b)
	}
	return nil
}

// field is one value behind its prefix.
type field struct {
	prefix string
	value  any
}

func leaves(fs []field) int {
	n := 0
	for _, f := range fs {
		n += len(everything("", f.value))
	}
	return n
}

// along follows a template's path. Elements of a list of objects are numbered, so that what belongs together stays together.
func along(prefix string, path gate.Path, v any) []field {
	if len(path) == 0 {
		return everything(prefix, v)
	}
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[path[0]]
		if !ok {
			return nil
		}
		return along(prefix, path[1:], next)
	case []any:
		var out []field
		for i, e := range v {
			out = append(out, along(fmt.Sprintf("%s %d", prefix, i+1), path, e)...)
		}
		return out
	}
	return []field{{prefix, v}}
}

// everything walks all values, names in order. A list of plain values keeps one prefix; other nesting is spelled out.
func everything(prefix string, v any) []field {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && prefix != "" {
			return []field{{prefix, v}}
		}
		var out []field
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			p := line(name)
			if prefix != "" {
				p = prefix + "." + p
			}
			out = append(out, everything(p, v[name])...)
		}
		return out
	case []any:
		if len(v) == 0 {
			return []field{{prefix, v}}
		}
		var out []field
		for i, e := range v {
			p := prefix
			switch e.(type) {
			case map[string]any, []any:
				p = fmt.Sprintf("%s %d", prefix, i+1)
			}
			out = append(out, everything(p, e)...)
		}
		return out
	}
	return []field{{prefix, v}}
}

func (f field) write(b *strings.Builder) {
	for l := range strings.SplitSeq(f.text(), "\n") {
		b.WriteString(f.prefix + ": " + l + "\n")
	}
}

// text renders one value. Words in round brackets at the start are code's: a string that begins with a bracket has it
// escaped.
func (f field) text() string {
	switch v := f.value.(type) {
	case nil:
		return "(null)"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case []any, map[string]any:
		return "(none)"
	case string:
		if v == "" {
			return "(empty)"
		}
		if strings.HasPrefix(v, "(") {
			return escape('(') + block(v[1:])
		}
		return block(v)
	}
	return "(unreadable)"
}

func title(op gate.Operation, policy *gate.Policy) string {
	tool, ok := policy.Tool(op.Tool)
	if !ok {
		return "Run a tool that is not in the policy: " + line(op.Tool)
	}
	verb := []rune(line(tool.Label.Verb))
	verb[0] = unicode.ToUpper(verb[0])
	return string(verb)
}

// UnknownToolLabel is what the reader is told of a tool that the policy does not know.
const UnknownToolLabel = "an unknown tool"

// label names the offer for the reader: words of the policy and the kind or number of addresses, nothing of the arguments.
func label(op gate.Operation, parts []gate.Operation, policy *gate.Policy) string {
	if op.Tool == gate.ToolBundle {
		return fmt.Sprintf("do %d things together", len(parts))
	}
	tool, ok := policy.Tool(op.Tool)
	if !ok {
		return UnknownToolLabel
	}
	if !tool.Label.Recipients {
		return tool.Label.Verb
	}
	word := tool.Label.Word
	if word == "" {
		word = "to"
	}
	switch to := policy.Recipients(op); len(to) {
	case 0:
		return tool.Label.Verb
	case 1:
		return tool.Label.Verb + " " + word + " " + addressKind(to[0].Given)
	default:
		return fmt.Sprintf("%s %s %d people", tool.Label.Verb, word, len(to))
	}
}

func addressKind(a string) string {
	switch {
	case strings.Contains(a, "@"):
		return "an email address"
	case strings.HasPrefix(a, "+"):
		return "a phone number"
	}
	return "somebody"
}

// askLine is the last line of every offer: what happens, to whom exactly, and the question.
func askLine(op gate.Operation, parts []gate.Operation, policy *gate.Policy) string {
	var said []string
	for _, part := range parts {
		if s := effect(part, policy); !slices.Contains(said, s) {
			said = append(said, s)
		}
	}
	return strings.Join(said, " ") + " Reply YES or NO."
}

func effect(op gate.Operation, policy *gate.Policy) string {
	tool, ok := policy.Tool(op.Tool)
	if !ok {
		return "This runs a tool that nobody has described."
	}
	var to []string
	for _, r := range policy.Recipients(op) {
		to = append(to, Exact(r.Given))
	}
	whom := strings.Join(to, ", ")
	switch tool.Effect {
	case gate.EffectSend:
		return "This sends to " + orNobody(whom) + "."
	case gate.EffectPay:
		if amount, ok := policy.Amount(op); ok {
			return "This pays " + line(amount.Value) + " " + line(amount.Currency) + " to " + orNobody(whom) + "."
		}
		return "This pays " + orNobody(whom) + "."
	case gate.EffectShare:
		return "This gives access to " + orNobody(whom) + "."
	case gate.EffectInvite:
		if whom == "" {
			return "This changes the calendar."
		}
		return "This invites " + whom + "."
	case gate.EffectPost:
		return "This is published."
	case gate.EffectDelete:
		return "This deletes and cannot be undone."
	case gate.EffectSchedule:
		return "This sets up something that runs by itself."
	case gate.EffectAct:
		return "This acts outside your account."
	case gate.EffectRead:
		return "This only looks something up."
	}
	return "This changes your own data."
}

func orNobody(whom string) string {
	if whom == "" {
		return "nobody named"
	}
	return whom
}

// Exact shows an address so that no two look the same: whatever is not plain ASCII is spelled out.
func Exact(s string) string {
	var b strings.Builder
	for _, r := range line(s) {
		if r > unicode.MaxASCII {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// line neutralises a value that must stay on one line.
func line(s string) string { return neutral(s, false) }

// block neutralises a value that may have lines of its own.
func block(s string) string { return neutral(s, true) }

// spaces is how many in a row are shown as they are; more could push words out of sight.
const spaces = 3

// neutral spells out what would not be seen or would change how the rest is seen: control and format characters (bidi,
// zero-width), separators, unassigned and private ones, padding, and the marks of a text that is not in normal form C,
// where two spellings look alike. Its own notation is spelled out too, so that what is shown reads back as exactly one value.
func neutral(s string, multiline bool) string {
	composed := norm.NFC.IsNormalString(s)
	var b strings.Builder
	run := 0
	for i, r := range s {
		if r == ' ' {
			run++
			if run > spaces {
				b.WriteString(escape(r))
				continue
			}
			b.WriteByte(' ')
			continue
		}
		run = 0
		switch {
		case r == '\n' && multiline:
			b.WriteByte('\n')
		case r == '<' && strings.HasPrefix(s[i:], "<U+"):
			b.WriteString(escape(r))
		case !unicode.IsGraphic(r), unicode.Is(unicode.Z, r), unicode.Is(unicode.Cf, r),
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r) && r != '\uFE0F',
			!composed && unicode.Is(unicode.M, r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func escape(r rune) string { return fmt.Sprintf("<U+%04X>", r) }

// decode reads canonical arguments with numbers as they are written.
func decode(args []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v map[string]any
	err := dec.Decode(&v)
	return v, err
}
