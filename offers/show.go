package offers

import (
	"cmp"
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
	Linked  bool   // a long body stands on the page and not in the text
}

// View is how an offer is shown.
type View struct {
	Limit int    // of one message, in UTF-16 units, as a carrier counts
	Most  int    // of a text in several messages; below Limit it is Limit
	Page  string // where the arguments can be read in full, for bodies that are too long for the text; empty: nowhere
	// Names resolves an address to the name of a contact; nil, or an empty answer, is the kind of address instead.
	Names func(address string) string
	// Before is the offer that this one takes the place of, if the person may have seen it.
	Before *gate.Operation
}

// Show renders an operation for its person, from the canonical bytes that are stored, hashed and released.
//
// Every argument has a line of its own, behind a prefix that code wrote; a body of several lines has the prefix on each
// of them, and any other value is on one line. The last line, with the effect, the exact recipients and the amount, is
// code's alone. Values are the very bytes: a quotation mark outside the alphabet of text messages makes the whole text
// cost more, and is never put in another's place. Code's own words stay within that alphabet.
//
// Nothing is dropped or cut. Where the text is longer than one message, bodies, which the policy names, stand on the
// page, the longest first. Without a page, or where the rest is too long even so, several messages are taken; what does
// not fit into those is [ErrCannotBeShown].
func Show(op gate.Operation, policy *gate.Policy, v View) (Shown, error) {
	parts, err := PartsOf(op, policy)
	if err != nil {
		return Shown{}, err
	}
	s := Shown{Label: label(op, policy, v.Names), AskLine: askLine(op, policy)}
	candidates := texts(op, parts, policy, v)
	for _, most := range []int{v.Limit, v.Most} {
		for _, c := range candidates {
			if s.Text = c.text + s.AskLine; utf16Len(s.Text) <= most { // mutant: show-limit
				s.Linked = c.linked
				return s, nil
			}
		}
	}
	return Shown{}, fmt.Errorf("%w: %d characters, and %d go out as one text", ErrCannotBeShown,
		utf16Len(candidates[0].text+s.AskLine), max(v.Limit, v.Most))
}

type candidate struct {
	text   string // but the last line
	linked bool
}

// texts are the ways to show the parts, the fullest first.
func texts(op gate.Operation, parts []Part, policy *gate.Policy, v View) []candidate {
	var out []candidate
	for links := 0; links == 0 || v.Page != "" && links <= len(bodies(parts)); links++ {
		for _, changed := range changes(v.Before, op, parts, policy) {
			out = append(out, candidate{changed + compose(parts, links, v.Page), links > 0})
		}
	}
	return out
}

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

// bodies are the fields that may be linked, as part and field numbers, the longest first.
func bodies(parts []Part) [][2]int {
	var out [][2]int
	for i, p := range parts {
		for j, f := range p.Fields {
			if f.Body {
				out = append(out, [2]int{i, j})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b [2]int) int {
		return cmp.Compare(parts[b[0]].Fields[b[1]].runes, parts[a[0]].Fields[a[1]].runes)
	})
	return out
}

// compose writes all parts, with so many of the longest bodies on the page.
func compose(parts []Part, links int, page string) string {
	linked := bodies(parts)[:links]
	var b strings.Builder
	for i, p := range parts {
		b.WriteString(p.Number + p.Title + "\n")
		for j, f := range p.Fields {
			if slices.Contains(linked, [2]int{i, j}) {
				fmt.Fprintf(&b, "%s: %s characters, all of it at %s\n", f.Prefix, thousands(f.runes), page)
				continue
			}
			for l := range strings.SplitSeq(f.text(), "\n") {
				b.WriteString(f.Prefix + ": " + l + "\n") // mutant: show-prefix
			}
		}
	}
	return b.String()
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func title(call gate.Operation, policy *gate.Policy) string {
	tool, ok := policy.Tool(call.Tool)
	if !ok {
		return "Run a tool that is not in the policy: " + Exact(call.Tool)
	}
	verb := line(tool.Label.Verb)
	if call.Kind == gate.KindBackgroundJob {
		return "Set up to run by itself: " + verb
	}
	return strings.ToUpper(verb[:1]) + verb[1:]
}

// UnknownToolLabel is what the reader is told of a tool that the policy does not know.
const UnknownToolLabel = "an unknown tool"

// label names the offer for the reader: words of the policy, and of one recipient the contact's name or the kind of
// address; of several their number. Nothing of the arguments is in it.
func label(op gate.Operation, policy *gate.Policy, names func(string) string) string {
	if op.Tool == gate.ToolBundle {
		parts := policy.Parts(op)
		if len(parts) == 1 {
			return label(parts[0], policy, names)
		}
		return fmt.Sprintf("do %d things together", len(parts))
	}
	tool, ok := policy.Tool(op.Tool)
	if !ok {
		return UnknownToolLabel
	}
	verb := tool.Label.Verb
	if op.Kind == gate.KindBackgroundJob {
		verb = "set up to " + verb
	}
	to := addresses(op, policy)
	switch {
	case !tool.Label.Recipients || len(to) == 0:
		return verb
	case len(to) == 1:
		return verb + " " + tool.Label.Word + " " + calls(to[0], names)
	}
	return fmt.Sprintf("%s %s %d people", verb, tool.Label.Word, len(to))
}

// maxName is the longest name of a contact in a label, in characters.
const maxName = 30

// calls is what a label calls one recipient.
func calls(r gate.Recipient, names func(string) string) string {
	if names != nil && r.Plain() {
		if n := contactName(names(r.Address)); n != "" {
			return n
		}
	}
	switch {
	case strings.HasPrefix(r.Address, "sms:"), strings.HasPrefix(r.Address, "whatsapp:"):
		return "a phone number"
	case strings.Contains(r.Given, "@") && !strings.HasPrefix(r.Given, "@"):
		return "an email address"
	}
	return "somebody"
}

// contactName takes a name that is letters and single spaces, of one script, and not too long; anything else is none.
func contactName(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	s = strings.Join(strings.Fields(s), " ")
	rs := []rune(s)
	plain := len(rs) <= maxName && norm.NFC.IsNormalString(s) && plainText(spell(s, oneLine)) == s &&
		strings.ContainsFunc(s, unicode.IsLetter) &&
		!slices.ContainsFunc(rs, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != ' ' })
	if !plain { // mutant: show-label-letters
		return ""
	}
	return s
}

// addresses are the recipients, each once.
func addresses(op gate.Operation, policy *gate.Policy) []gate.Recipient {
	var out []gate.Recipient
	for _, r := range policy.Recipients(op) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// Asks is how the last line of every offer ends.
const Asks = " Reply YES or NO."

// askLine is the last line of every offer: what happens, to whom exactly, and the question. Of a bundle it says what
// each part does, the gravest first, and asks once.
func askLine(op gate.Operation, policy *gate.Policy) string {
	type said struct {
		grave int
		words string
	}
	var all []said
	for _, part := range policy.Parts(op) {
		grave, words := effect(part, policy)
		if s := (said{grave, words}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.grave, b.grave) })
	var b strings.Builder
	for i, s := range all {
		if i > 0 && s.grave == leastGrave {
			continue // it only looks something up, and the rest does more
		}
		b.WriteString(s.words + " ")
	}
	return strings.TrimSuffix(b.String(), " ") + Asks
}

// leastGrave is where looking something up stands among the effects.
const leastGrave = 100

// effect says in a sentence what a call does, and how grave that is; 0 is gravest.
func effect(call gate.Operation, policy *gate.Policy) (grave int, words string) {
	tool, ok := policy.Tool(call.Tool)
	if !ok {
		return 0, "This runs a tool that nobody has described."
	}
	whom := whom(call, policy)
	to := cmp.Or(whom, "nobody named")
	switch tool.Effect {
	case gate.EffectDelete:
		grave, words = 1, "This deletes and cannot be undone"
	case gate.EffectPay:
		grave, words = 2, "This pays "+to
		if a, ok := policy.Amount(call); ok {
			words = "This pays " + Exact(a.Value) + " " + Exact(a.Currency) + " to " + to
		}
	case gate.EffectShare:
		grave, words = 3, "This gives access to "+to
	case gate.EffectPost:
		grave, words = 4, "This is published"
	case gate.EffectSend:
		grave, words = 5, "This sends to "+to
	case gate.EffectInvite:
		grave, words = 6, "This invites "+whom
		if whom == "" {
			words = "This changes the calendar"
		}
	case gate.EffectAct:
		grave, words = 7, "This acts outside your account"
	case gate.EffectSchedule:
		grave, words = 8, "This sets up something that runs by itself"
		if tool.ActsOutward {
			words = "This sets up something that acts outside your account by itself"
		}
	case gate.EffectRead:
		grave, words = leastGrave, "This only looks something up"
	default:
		grave, words = 9, "This changes your own data"
	}
	switch tool.Effect {
	case gate.EffectPay, gate.EffectShare, gate.EffectSend, gate.EffectInvite:
	default:
		if whom != "" {
			words += " and reaches " + whom
		}
	}
	if call.Kind == gate.KindBackgroundJob {
		words += ", by itself, later or again"
	}
	return grave, words + "."
}

// whom lists the exact recipients of a call. What is not exactly one plain address stands in quotation marks, so that
// no comma or full stop in it can pass for code's.
func whom(call gate.Operation, policy *gate.Policy) string {
	var out []string
	for _, r := range addresses(call, policy) {
		s := Exact(r.Given)
		if !r.Plain() { // mutant: show-quoted-recipient
			s = quoted(s)
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}
