package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Effect is what a tool does to the world: the closed list that the floor is
// written in.
type Effect string

// The effects.
const (
	EffectRead     Effect = "read"     // looks something up
	EffectWrite    Effect = "write"    // makes or changes something inside the account
	EffectSend     Effect = "send"     // carries words to recipients
	EffectPost     Effect = "post"     // publishes
	EffectPay      Effect = "pay"      // moves money
	EffectShare    Effect = "share"    // gives others access
	EffectDelete   Effect = "delete"   // removes for good
	EffectInvite   Effect = "invite"   // puts an event in a calendar, with or without guests
	EffectSchedule Effect = "schedule" // sets up something that runs later or again
	EffectAct      Effect = "act"      // does anything else outside the account
)

func effects() []Effect {
	return []Effect{EffectRead, EffectWrite, EffectSend, EffectPost, EffectPay, EffectShare,
		EffectDelete, EffectInvite, EffectSchedule, EffectAct}
}

// Path leads to an argument: property names, outermost first. Arrays on the way
// are walked through, so guests.email is the email of every guest.
type Path []string

// String joins the names with dots.
func (p Path) String() string { return strings.Join(p, ".") }

// Values collects what stands at the path, in order: v is
// what encoding/json decodes into an any.
func (p Path) Values(v any) []any {
	if list, ok := v.([]any); ok {
		var all []any
		for _, e := range list {
			all = append(all, p.Values(e)...)
		}
		return all
	}
	if len(p) == 0 {
		return []any{v}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	next, ok := object[p[0]]
	if !ok {
		return nil
	}
	return p[1:].Values(next)
}

// AmountPaths says where a paying tool's arguments hold the amount.
type AmountPaths struct {
	Value    Path // a number or a decimal string
	Currency Path // a string
}

// Label is what code needs to name a call of the tool in a few words.
type Label struct {
	// Verb says what is done: "send email".
	Verb string
	// Recipients: the names of the recipients follow, after Word ("to", "with").
	Recipients bool
	Word       string
}

// Line is one line of the text by which a call is shown.
type Line struct {
	// Prefix is written by code before the value: "Subject".
	Prefix string
	// Arg is the argument that is shown.
	Arg Path
	// Body marks the free text that may be linked where it is long.
	Body bool
}

// SaidAs is how a person's typed request speaks of the tool.
type SaidAs struct {
	Kind    string // send, post, pay, act_out, change
	Channel string // email, slack, sms, calendar, github, web, none
}

// Tool is one entry of the policy.
type Tool struct {
	Name        string
	Description string
	Effect      Effect
	Capability  Capability
	// ActsOutward is the policy's outward flag: on a schedule, what it sets up
	// acts outside the account; on a read, the looking up itself can be seen there.
	ActsOutward bool
	Recipients  []Path
	Amount      *AmountPaths
	Label       Label
	Template    []Line
	// ReadsUntrusted: the result may hold a stranger's words.
	ReadsUntrusted bool
	// Preview: shown to the person first unless a standing permission covers it.
	Preview bool
	// Own: touches only the person's own data. Reversible: can be undone.
	Own        bool
	Reversible bool
	// Settle is how long a yes can still be taken back.
	Settle time.Duration
	// Expires is how long an offer of this tool lives after it was first shown.
	Expires time.Duration
	Said    *SaidAs

	schema     json.RawMessage
	compiled   *jsonschema.Schema
	properties []Path
}

// Schema is the JSON Schema of the arguments as the model sees it.
func (t *Tool) Schema() json.RawMessage { return slices.Clone(t.schema) }

// Args lists the paths of all arguments that the schema knows, leaves only, in
// the order of the policy file.
func (t *Tool) Args() []Path { return slices.Clone(t.properties) }

// Outward says whether calls of the tool can reach outside the account.
func (t *Tool) Outward() bool {
	switch t.Effect {
	case EffectSend, EffectPost, EffectPay, EffectShare, EffectInvite, EffectAct:
		return true
	}
	return t.ActsOutward
}

// Life of an offer after it was first shown.
const (
	// OutwardExpires is the default and the most for what leaves the account.
	OutwardExpires = 10 * time.Minute
	// InwardExpires is the default and the most for everything else.
	InwardExpires = 24 * time.Hour
	// MaxSettle is the longest time in which a yes can be taken back.
	MaxSettle = 5 * time.Minute
)

// Policy is what an account's tools are and do. It is immutable; a nil policy
// knows no tool.
type Policy struct {
	// Version is the lower-case hex SHA-256 of the file's bytes.
	Version string

	tools []*Tool
	index map[string]*Tool
}

// Tool finds a tool by its exact name; nil and false where there is none.
func (p *Policy) Tool(name string) (*Tool, bool) {
	if p == nil {
		return nil, false
	}
	t, ok := p.index[name]
	return t, ok
}

// Tools lists the tools in the order of the file.
func (p *Policy) Tools() []*Tool {
	if p == nil {
		return nil
	}
	return slices.Clone(p.tools)
}

// ToolSchema is a tool as it is described to a model.
type ToolSchema struct {
	Name        string          `json:"name"`
	Kind        Kind            `json:"kind"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
}

// Schemas lists every tool for a model, those of the policy in its order and
// then the built-in ones. None has a confirmation parameter: ParsePolicy
// refuses a schema that names one.
func (p *Policy) Schemas() []ToolSchema {
	var all []ToolSchema
	for _, t := range p.Tools() {
		all = append(all, ToolSchema{Name: t.Name, Kind: KindToolCall, Description: t.Description, Schema: t.Schema()})
	}
	return append(all,
		ToolSchema{
			Name: ToolMessageSend, Kind: KindOutboundMessage,
			Description: "Text the person whose run this is.",
			Schema:      json.RawMessage(`{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string","minLength":1}}}`),
		},
		ToolSchema{
			Name: ToolBundle, Kind: KindToolCall,
			Description: "Put several calls to the person under one yes.",
			Schema:      json.RawMessage(`{"type":"object","required":["parts"],"additionalProperties":false,"properties":{"parts":{"type":"array","minItems":1,"maxItems":10,"items":{"type":"object","required":["tool","args"],"additionalProperties":false,"properties":{"tool":{"type":"string"},"args":{"type":"object"}}}}}}`),
		})
}

// Parts are the calls that an operation consists of: those of a bundle in
// order, else the operation alone. Nil where the arguments cannot be read.
func (p *Policy) Parts(op Operation) []Operation {
	args, err := decodeArgs(op.Args)
	if err != nil {
		return nil
	}
	if op.Tool != ToolBundle {
		return []Operation{op}
	}
	parts, _ := bundleParts(op, args)
	return parts
}

// calls reads an operation's parts.
func (p *Policy) calls(op Operation) []call {
	var all []call
	for _, part := range p.Parts(op) {
		args, err := decodeArgs(part.Args)
		if err != nil {
			continue
		}
		tool, _ := p.Tool(part.Tool)
		all = append(all, call{op: part, tool: tool, args: args})
	}
	return all
}

// Recipients lists everyone that an operation reaches, of all parts of a bundle.
func (p *Policy) Recipients(op Operation) []Recipient {
	var all []Recipient
	for _, c := range p.calls(op) {
		all = append(all, c.recipients()...)
	}
	return all
}

// Amount is what a single call pays; false where it pays nothing, where the
// amount cannot be read, and for a bundle.
func (p *Policy) Amount(op Operation) (Amount, bool) {
	calls := p.calls(op)
	if len(calls) != 1 || op.Tool == ToolBundle {
		return Amount{}, false
	}
	return calls[0].amount()
}

// everyCall says whether the operation can be read, all its tools are known,
// and the condition holds for each.
func (p *Policy) everyCall(op Operation, holds func(*Tool) bool) bool {
	calls := p.calls(op)
	for _, c := range calls {
		if c.tool == nil || !holds(c.tool) {
			return false
		}
	}
	return len(calls) > 0
}

// Outward says whether an operation can reach outside the account. What cannot
// be read, and a tool that is not known, counts as outward.
func (p *Policy) Outward(op Operation) bool {
	return !p.everyCall(op, func(t *Tool) bool { return !t.Outward() })
}

// ReadsUntrusted says whether a run that is allowed the operation is tainted
// from then on. The result of a tool that is not known counts as untrusted; the
// built-in kinds read nothing that a stranger wrote.
func (p *Policy) ReadsUntrusted(op Operation) bool {
	if isBuiltin(op.Kind, op.Tool) {
		return false
	}
	return !p.everyCall(op, func(t *Tool) bool { return !t.ReadsUntrusted })
}

// Expires is how long an offer of the operation lives after it was first shown:
// the shortest of its parts, and OutwardExpires for a tool that is not known.
func (p *Policy) Expires(op Operation) time.Duration {
	shortest := OutwardExpires
	for i, c := range p.calls(op) {
		life := OutwardExpires
		if c.tool != nil {
			life = c.tool.Expires
		}
		if i == 0 || life < shortest {
			shortest = life
		}
	}
	return shortest
}

// Settle is how long a yes to the operation can be taken back: the longest of
// its parts.
func (p *Policy) Settle(op Operation) time.Duration {
	var longest time.Duration
	for _, c := range p.calls(op) {
		if c.tool != nil {
			longest = max(longest, c.tool.Settle)
		}
	}
	return longest
}
