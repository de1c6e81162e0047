package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Kind is what sort of thing an agent wants to do.
type Kind string

// The closed list of kinds.
const (
	KindModelCall       Kind = "model_call"
	KindToolCall        Kind = "tool_call"
	KindOutboundMessage Kind = "outbound_message"
	KindMemoryWrite     Kind = "memory_write"
	KindBackgroundJob   Kind = "background_job"
)

// Kinds lists every kind there is.
func Kinds() []Kind {
	return []Kind{KindModelCall, KindToolCall, KindOutboundMessage, KindMemoryWrite, KindBackgroundJob}
}

// Built-in tools, which no policy file may name.
const (
	// ToolMessageSend is a text to the run's own person, args {text}.
	ToolMessageSend = "message.send"
	// ToolBundle is several calls under one yes, args {parts:[{tool,args}…]}.
	ToolBundle = "bundle"
	// ToolModelCall and ToolMemoryAppend are the names of a model_call and a
	// memory_write; an empty name means the same.
	ToolModelCall    = "model.call"
	ToolMemoryAppend = "memory.append"
	// ToolPermissionGrant is an offer of the service's own: a permission that the
	// person asked for in their own words. No agent can propose it.
	ToolPermissionGrant = "permission.grant"
)

// isBuiltin says whether a tool name is the kind's own: "" or the built-in name.
func isBuiltin(kind Kind, tool string) bool {
	switch kind {
	case KindModelCall:
		return tool == "" || tool == ToolModelCall
	case KindOutboundMessage:
		return tool == "" || tool == ToolMessageSend
	case KindMemoryWrite:
		return tool == "" || tool == ToolMemoryAppend
	}
	return false
}

// Operation is one thing that an agent wants to do.
type Operation struct {
	Kind Kind
	Tool string
	// Args is a JSON object in canonical form, the very bytes that are hashed,
	// shown and released.
	Args json.RawMessage
}

// ArgsSHA256 is the lower-case hex SHA-256 of the argument bytes.
func (op Operation) ArgsSHA256() string {
	sum := sha256.Sum256(op.Args)
	return hex.EncodeToString(sum[:])
}

// Turn is what the server knows of the run that an operation belongs to. Every
// field is a fact that was looked up before; the zero value has no authority.
type Turn struct {
	// Now is the time of the decision.
	Now time.Time
	// Tier is the run's authority: TierOwner, TierPaired, or "" for none.
	Tier string
	// Tainted: the run has read something that a stranger may have written.
	Tainted bool
	// Interactive: an ask in this run can reach a person. False for a derived
	// run, and where no person of the account has a bound address.
	Interactive bool
	// PersonBound: the run's own person has a bound address, so that a reply to
	// them goes where nobody else reads it.
	PersonBound bool
	// ShortForm: the operation came in by the one-call way to make an offer. Its
	// run counts as tainted, and what would be allowed is asked.
	ShortForm bool
	// ByService: the service itself proposes this, out of the person's own words.
	ByService bool
	// OwnAddresses are the account's own: bound ones and those the owner listed.
	OwnAddresses []string
	// DirectSend are the exact addresses to which the person lets sends go
	// without a question.
	DirectSend []string
	// AskingIsApproving is the account's setting that lets SaidIntent count.
	AskingIsApproving bool
	// SaidIntent is what the person asked for in their own words and what was
	// matched to this very call; nil where nothing matches.
	SaidIntent *Grant
	// StandingPermission covers this very call, so that its preview is skipped;
	// nil where none does.
	StandingPermission *Grant
}

// tainted is the taint that the rules go by.
func (t Turn) tainted() bool { return t.Tainted || t.ShortForm }

// Grant is a permission of the person that was matched to one call elsewhere.
// It names that call, so that it can open the way for no other.
type Grant struct {
	// ID is the row that the caller spends together with the ledger intent.
	ID string
	// Tool and ArgsSHA256 (lower-case hex) are the call that was matched.
	Tool       string
	ArgsSHA256 string
	// Until is when the grant ends; the zero time means that it does not.
	Until time.Time
}

// covers says whether the grant is for this operation at this time. It is
// false on every doubt.
func (g *Grant) covers(op Operation, now time.Time) bool {
	if g == nil {
		return false
	}
	sameCall := g.Tool == op.Tool && g.ArgsSHA256 == op.ArgsSHA256() // mutant: gate-grant-call
	inTime := g.Until.IsZero() || now.Before(g.Until)                // mutant: gate-grant-time
	return g.ID != "" && sameCall && inTime                          // mutant: gate-grant-id
}

// Answer is what the gate says. The zero value refuses.
type Answer uint8

// The answers, strictest first.
const (
	Refuse Answer = iota
	Ask
	Allow
)

// String is "refuse", "ask" or "allow".
func (a Answer) String() string {
	switch a {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "refuse"
}

// MarshalText writes the word of String.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the word of String and fails on any other.
func (a *Answer) UnmarshalText(text []byte) error {
	for _, known := range []Answer{Refuse, Ask, Allow} {
		if string(text) == known.String() {
			*a = known
			return nil
		}
	}
	*a = Refuse
	return fmt.Errorf("gate: %q is no answer: use refuse, ask or allow", text)
}

// Decision is the gate's answer and all that a record of it needs.
type Decision struct {
	Answer Answer
	Reason Reason
	// Rule is the row of the table that decided: "1", "2", "2b", "3" … "7".
	Rule       string
	Tier       string
	Capability Capability
	// Grant is the id of the said intent or standing permission that the answer
	// rests on. The caller spends it in the transaction of the ledger intent,
	// and asks where it cannot be spent.
	Grant string
	// Detail tells the model why in one sentence. It never holds an argument's value.
	Detail string
}

func (d Decision) with(answer Answer, rule string, reason Reason, detail string) Decision {
	d.Answer, d.Rule, d.Reason, d.Detail = answer, rule, reason, detail
	return d
}

// Decide answers whether an operation may run: Allow, Ask a person, or Refuse.
// It is pure, and the only place where that is decided. The rules are tried in
// the order of the package comment; the first that speaks decides.
//
// A nil policy knows no tool.
func Decide(op Operation, turn Turn, policy *Policy) Decision {
	d := decideRules(op, turn, policy)
	if d.Answer == Allow && turn.ShortForm { // mutant: gate-short-form
		d = d.with(Ask, "7", ReasonShortFormAsks, "A call that comes in as an offer is always put to the person.")
		d.Grant = ""
	}
	if d.Answer == Ask && !turn.Interactive { // mutant: gate-no-interactive-path
		d = d.with(Refuse, d.Rule, ReasonNoInteractivePath,
			"This needs a person's yes ("+string(d.Reason)+") and this run can reach nobody to ask.")
	}
	return d
}

func decideRules(op Operation, turn Turn, policy *Policy) Decision {
	d := Decision{Tier: turn.Tier, Capability: CapabilityFor(op, policy)}

	// Rule 1: what is asked for must be readable, and the model cannot say yes.
	args, err := decodeArgs(op.Args)
	if err != nil { // mutant: gate-args-object
		return d.with(Refuse, "1", ReasonArgsInvalid, "The arguments cannot be read: "+err.Error()+".")
	}
	if carriesConfirmation(args) { // mutant: gate-confirm-parameter
		return d.with(Refuse, "1", ReasonModelConfirmParameter,
			"A call cannot say that it was confirmed: leave the parameter out, the person is asked.")
	}
	if !slices.Contains(Kinds(), op.Kind) { // mutant: gate-kind-known
		return d.with(Refuse, "1", ReasonKindUnknown, "There is no such kind of operation.")
	}
	if op.Tool == ToolPermissionGrant && !turn.ByService { // mutant: gate-permission-reserved
		return d.with(Refuse, "1", ReasonPermissionReserved, "Only the person's own words can ask for a permission, never an agent.")
	}
	if op.Tool == ToolBundle {
		return decideBundle(op, args, turn, policy)
	}
	tool, _ := policy.Tool(op.Tool)
	c := call{op: op, tool: tool, args: args}
	if problem := c.misfit(); problem != "" { // mutant: gate-schema-fit
		return d.with(Refuse, "1", ReasonArgsInvalid, "The arguments do not fit the tool: "+problem+".")
	}

	// Rule 2: the run's person must hold what the call needs.
	for _, capability := range capabilitiesNeeded(op, policy) {
		if held := DecideCapability(turn.Tier, capability); held.Answer != Allow { // mutant: gate-authority
			return held
		}
	}

	// Rule 2b: what reaches nobody but the run's own person.
	if reason := withinReach(c, turn); reason != "" {
		return d.with(Allow, "2b", reason, "This stays with the run's own person.")
	}

	// Rule 3: the floor, and the two ways through it.
	floor, way := floorReason(c, turn), wayThrough(c, turn)
	if floor != "" && way.reason == "" { // mutant: gate-floor
		return d.with(Ask, "3", floor, floorDetail[floor])
	}

	// Rule 4: a stranger's words may be behind this call.
	if turn.tainted() && c.reachesOut() { // mutant: gate-taint
		return d.with(Ask, "4", ReasonTaintedOutward,
			"This run has read what others wrote, so anything that leaves the account is put to the person.")
	}

	// Rule 5: the policy wants this tool shown first.
	previewed := turn.StandingPermission.covers(op, turn.Now)
	if c.tool.Preview && !previewed { // mutant: gate-preview
		return d.with(Ask, "5", ReasonPolicyPreview, "The policy has this tool shown to the person first.")
	}
	if c.tool.Preview {
		d.Grant = turn.StandingPermission.ID
	}

	// Rule 6, and what the person opened in rule 3.
	if floor == "" && c.reversibleOwnData(turn) { // mutant: gate-reversible-own-data
		return d.with(Allow, "6", ReasonReversibleOwnData, "This can be undone and touches only the person's own data.")
	}
	if way.reason != "" {
		d = d.with(Allow, "3", way.reason, "The person allowed this themselves.")
		if way.grant != "" {
			d.Grant = way.grant
		}
		return d
	}

	// Rule 7.
	d.Grant = ""
	return d.with(Ask, "7", ReasonDefaultAsk, "Nothing lets this run without a person's yes.")
}

// withinReach is rule 2b: the reason to allow, or "".
func withinReach(c call, turn Turn) Reason {
	builtin := isBuiltin(c.op.Kind, c.op.Tool) // mutant: gate-builtin-name
	switch {
	case builtin && c.op.Kind == KindModelCall:
		return ReasonModelCallAllowed
	case builtin && c.op.Kind == KindMemoryWrite:
		return ReasonMemoryAllowed
	case builtin && c.op.Kind == KindOutboundMessage && turn.PersonBound: // mutant: gate-reply-bound
		return ReasonReplyAllowed
	}
	if c.tool == nil || c.op.Kind != KindToolCall {
		return ""
	}
	// The effect counts besides the capability: a policy that files a send under
	// memory.read must not open a door beside the floor.
	reads := c.tool.Capability == CapMemoryRead && c.tool.Effect == EffectRead
	appends := c.tool.Capability == CapMemorySourceAppend && c.tool.Effect == EffectWrite
	if (reads || appends) && !c.tool.Outward() { // mutant: gate-memory-effect
		return ReasonMemoryAllowed
	}
	return ""
}

// floorReason is rule 3 without its ways through: the reason to ask, or "".
func floorReason(c call, turn Turn) Reason {
	if isBuiltin(c.op.Kind, c.op.Tool) && c.op.Kind == KindOutboundMessage {
		return ReasonFloorSendOutside // a reply with no bound address to go to
	}
	if c.op.Tool == ToolPermissionGrant {
		return ReasonFloorStandingRule
	}
	if c.tool == nil { // mutant: gate-floor-unknown
		return ReasonFloorUnknownTool
	}
	if c.op.Kind == KindBackgroundJob && c.tool.Effect != EffectDelete && c.tool.Outward() { // mutant: gate-floor-job
		return ReasonFloorStandingRule
	}
	switch c.tool.Effect {
	case EffectDelete: // mutant: gate-floor-deletes
		return ReasonFloorDeletes
	case EffectPay: // mutant: gate-floor-pays
		return ReasonFloorPays
	case EffectShare: // mutant: gate-floor-shares
		return ReasonFloorShares
	case EffectPost: // mutant: gate-floor-posts
		return ReasonFloorPosts
	case EffectAct: // mutant: gate-floor-acts
		return ReasonFloorActsOutside
	case EffectSchedule:
		if c.tool.ActsOutward { // mutant: gate-floor-standing-rule
			return ReasonFloorStandingRule
		}
	case EffectSend:
		if !c.onlyTo(turn.OwnAddresses) { // mutant: gate-floor-sends
			return ReasonFloorSendOutside
		}
	case EffectInvite:
		if len(c.recipients()) > 0 && !c.onlyTo(turn.OwnAddresses) { // mutant: gate-floor-invites
			return ReasonFloorInvitesOutside
		}
	}
	return ""
}

// opening is a way through the floor; the zero value is none.
type opening struct {
	reason Reason
	grant  string
}

// wayThrough is the two exceptions that the floor itself names, both the
// person's own.
func wayThrough(c call, turn Turn) opening {
	if turn.tainted() { // mutant: gate-way-tainted
		return opening{}
	}
	if c.tool == nil || c.tool.Effect == EffectDelete { // mutant: gate-way-never
		return opening{}
	}
	isSend := c.tool.Effect == EffectSend && c.op.Kind != KindBackgroundJob // mutant: gate-way-direct-is-send
	if isSend && len(turn.DirectSend) > 0 &&
		c.onlyTo(slices.Concat(turn.DirectSend, turn.OwnAddresses)) { // mutant: gate-way-direct-recipients
		return opening{reason: ReasonDirectSend}
	}
	if turn.AskingIsApproving && turn.SaidIntent.covers(c.op, turn.Now) { // mutant: gate-way-said
		return opening{reason: ReasonSaidIntent, grant: turn.SaidIntent.ID}
	}
	return opening{}
}

var floorDetail = map[Reason]string{
	ReasonFloorUnknownTool:    "This tool is not in the policy, so every call of it is put to the person.",
	ReasonFloorDeletes:        "This deletes, and every deletion is put to the person.",
	ReasonFloorStandingRule:   "This would go on acting outside the account, so it is put to the person.",
	ReasonFloorPays:           "This pays, and every payment is put to the person.",
	ReasonFloorShares:         "This shares something, which is put to the person.",
	ReasonFloorPosts:          "This publishes something, which is put to the person.",
	ReasonFloorActsOutside:    "This acts outside the account, so it is put to the person.",
	ReasonFloorSendOutside:    "This goes to somebody outside the person's own addresses, so it is put to the person.",
	ReasonFloorInvitesOutside: "This invites somebody from outside, so it is put to the person.",
}

// MaxBundleParts is how many calls one bundle may hold.
const MaxBundleParts = 10

// decideBundle decides every part as if it stood alone and answers with the
// strictest, the earliest among equals; what the direct-send list lets through
// speaks for all that is allowed. A said intent or a standing permission
// covers one call, so neither counts inside a bundle.
func decideBundle(op Operation, args map[string]any, turn Turn, policy *Policy) Decision {
	parts, problem := bundleParts(op, args)
	if problem != "" {
		d := Decision{Tier: turn.Tier, Capability: CapabilityFor(op, policy)}
		return d.with(Refuse, "1", ReasonArgsInvalid, "The bundle cannot be read: "+problem+".")
	}
	turn.SaidIntent, turn.StandingPermission = nil, nil // mutant: gate-bundle-grants
	strictest := Decision{}
	for i, part := range parts {
		d := decideRules(part, turn, policy)
		d.Detail = fmt.Sprintf("Part %d of the bundle: %s", i+1, d.Detail)
		if i == 0 || d.Answer < strictest.Answer { // mutant: gate-bundle-strictest
			strictest = d
		}
		if d.Answer == strictest.Answer && d.Reason == ReasonDirectSend { // mutant: gate-bundle-direct
			strictest = d // the person's own word, which they can take back before it begins
		}
	}
	return strictest
}
