package gate

import "slices"

// The tiers a person can have. Somebody who is not paired has no tier at all.
const (
	TierOwner  = "owner"
	TierPaired = "paired"
)

// Capability is one thing that a tier may hold. Every tool and every kind of
// operation needs exactly one; a job needs the one of its tool besides.
type Capability string

// The closed list of capabilities.
const (
	CapReply                Capability = "reply"
	CapMemoryRead           Capability = "memory.read"
	CapMemorySourceAppend   Capability = "memory.source.append"
	CapMemoryTrustedPromote Capability = "memory.trusted.promote"
	CapScheduleCreate       Capability = "schedule.create"
	CapScheduleManage       Capability = "schedule.manage"
	CapFSRead               Capability = "fs.read"
	CapFSWrite              Capability = "fs.write"
	CapProcessExec          Capability = "process.exec"
	CapNetworkSend          Capability = "network.send"
	CapApprovalRequest      Capability = "approval.request"
	CapRuntimeControl       Capability = "runtime.control"
)

// capabilitiesOf is the whole authority table: a tier that is no key here, or
// is missing, holds nothing.
var capabilitiesOf = map[string][]Capability{
	TierOwner: {
		CapReply, CapMemoryRead, CapMemorySourceAppend, CapMemoryTrustedPromote,
		CapScheduleCreate, CapScheduleManage, CapFSRead, CapFSWrite, CapProcessExec,
		CapNetworkSend, CapApprovalRequest, CapRuntimeControl,
	},
	TierPaired: {CapReply, CapMemoryRead, CapMemorySourceAppend},
}

// Capabilities lists what the owner tier holds, which is every capability there is.
func Capabilities() []Capability { return slices.Clone(capabilitiesOf[TierOwner]) }

// DecideCapability says whether a tier holds a capability. The answer is Allow
// with an empty reason, or Refuse with one of the AUTHORITY_ reasons.
func DecideCapability(tier string, capability Capability) Decision {
	d := Decision{Rule: "2", Tier: tier, Capability: capability}
	held, known := capabilitiesOf[tier]
	switch {
	case tier == "": // mutant: gate-tier-missing
		d.Reason = ReasonTierMissing
		d.Detail = "This run carries no authority, so nothing in it may run."
	case !known: // mutant: gate-tier-unknown
		d.Reason = ReasonTierUnknown
		d.Detail = "This run carries an authority that is not known here, so nothing in it may run."
	case !slices.Contains(held, capability): // mutant: gate-capability-held
		d.Reason = ReasonCapabilityDenied
		d.Detail = "The person behind this run may not have " + string(capability) + " used for them."
	default:
		d.Answer = Allow
	}
	return d
}

// CapabilityFor names the one capability that stands in the decision record of
// an operation. A tool's own capability counts wherever the tool is not one of
// the kind's built-in names, so that a kind never widens what a tool may do; a
// name that no policy classifies counts as executable code. A job is the
// exception: it is schedule.create, and its tool's capability is needed too.
func CapabilityFor(op Operation, policy *Policy) Capability {
	return capabilitiesNeeded(op, policy)[0]
}

// capabilitiesNeeded is every capability that the run's tier must hold, the one
// of the record first.
func capabilitiesNeeded(op Operation, policy *Policy) []Capability {
	byTool := CapProcessExec
	if tool, ok := policy.Tool(op.Tool); ok {
		byTool = tool.Capability
	}
	if op.Tool == ToolPermissionGrant {
		return []Capability{CapApprovalRequest}
	}
	byKind, ok := kindCapability[op.Kind]
	switch {
	case !ok: // a tool call
		return []Capability{byTool}
	case op.Kind == KindBackgroundJob:
		return []Capability{byKind, byTool}
	case isBuiltin(op.Kind, op.Tool):
		return []Capability{byKind}
	default:
		return []Capability{byTool, byKind} // mutant: gate-kind-lends-nothing
	}
}

var kindCapability = map[Kind]Capability{
	KindModelCall:       CapReply,
	KindOutboundMessage: CapReply,
	KindMemoryWrite:     CapMemorySourceAppend,
	KindBackgroundJob:   CapScheduleCreate,
}
