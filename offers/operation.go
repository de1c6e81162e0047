package offers

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
)

// TiersHolding lists the tiers that hold a capability. Consume and begin compare the person's tier, as it is then,
// with this list inside their update.
func TiersHolding(capability string) []string {
	var out []string
	for _, t := range []string{gate.TierOwner, gate.TierPaired} {
		if gate.DecideCapability(t, gate.Capability(capability)).Answer == gate.Allow {
			out = append(out, t)
		}
	}
	return out
}

// OperationRow makes the operation that a plan is stored as.
func OperationRow(p Proposal, f Facts, plan Plan) Operation {
	d := plan.Decision
	state := OpRefused
	switch d.Answer {
	case gate.Allow:
		state = OpAllowed
	case gate.Ask:
		state = OpAsked
	}
	return Operation{
		ID: f.OperationID, RunID: f.Run.ID, Kind: p.Kind, Tool: p.Tool, Decision: d.Answer.String(), Reason: string(d.Reason),
		Detail: d.Detail, State: state, ArgsSHA256: Hex(p.ArgsSum), AccountID: p.AccountID, PersonID: f.Person.ID, Args: p.Args,
		Rule: d.Rule, Tier: d.Tier, Capability: string(d.Capability), PermissionID: d.Grant,
	}
}

// Permitted says whether the operation was allowed by a permission of the person's. Such an allow is their approval, given
// beforehand: it lapses as a yes does when nobody begins in time.
func (o Operation) Permitted() bool {
	return o.State == OpAllowed && (o.Reason == string(gate.ReasonSaidIntent) || o.Reason == string(gate.ReasonDirectSend) || o.PermissionID != "")
}

// DecisionRecord is the ledger row of a decision.
func DecisionRecord(op Operation) (ledger.Kind, LedgerBody) {
	kind := ledger.Refused
	switch op.State {
	case OpAllowed:
		kind = ledger.Allowed
	case OpAsked:
		kind = ledger.Asked
	}
	return kind, LedgerBody{
		Operation: op.ID, Tool: op.Tool, ArgsSHA256: op.ArgsSHA256, Decision: op.Decision, Reason: op.Reason, Rule: op.Rule,
		Tier: op.Tier, Capability: op.Capability, Permission: op.PermissionID,
	}
}

// WhyNotBegun explains, after the fact, why no row began.
func (o Operation) WhyNotBegun(sum Digest) error {
	switch {
	case o.State == OpRunning || o.State == OpSucceeded || o.State == OpFailed:
		return ErrAlreadyBegun
	case o.ArgsSHA256 != Hex(sum):
		return ErrHashMismatch
	}
	return ErrNotApproved
}

// WhyNotFinished explains why no row was closed; nil: this very result is there already.
func (o Operation) WhyNotFinished(r Result) error {
	if o.State != OpSucceeded && o.State != OpFailed {
		return ErrNotBegun
	}
	var had Result
	if err := json.Unmarshal(o.Result, &had); err != nil {
		return fmt.Errorf("stored result: %w", err)
	}
	if had.Status != r.Status || !sameJSON(had.Output, r.Output) {
		return ErrAlreadyBegun
	}
	return nil
}

// sameJSON compares values, not bytes: a database may keep names in another order and write numbers otherwise.
func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Encode renders the result for the store, with the hash that the ledger keeps of it.
func (r Result) Encode() (raw []byte, sum string, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what the executor wrote is kept as it wrote it
	if err := enc.Encode(r); err != nil {
		return nil, "", fmt.Errorf("result: %w", err)
	}
	raw = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return raw, Hex(sha256.Sum256(raw)), nil
}

// TextState is what a text becomes by a provider's answer.
func (r SendResult) TextState() TextState {
	switch r.Outcome {
	case OutcomeAccepted:
		return TextAccepted
	case OutcomeRejected:
		return TextRejected
	}
	return TextUnknown
}

// ErrBadPosition says that an event position was not one that a store gave out.
var ErrBadPosition = errors.New("not a position of the event feed")

// Position renders a place in the event feed. Callers treat it as opaque.
func Position(transaction, row int64) string {
	return strconv.FormatInt(transaction, 36) + "." + strconv.FormatInt(row, 36)
}

// ParsePosition reads a position; the empty one is the start. Errors: ErrBadPosition.
func ParsePosition(s string) (transaction, row int64, err error) {
	if s == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(s, ".")
	transaction, err1 := strconv.ParseInt(a, 36, 64)
	row, err2 := strconv.ParseInt(b, 36, 64)
	if !ok || err1 != nil || err2 != nil || transaction < 0 || row < 0 {
		return 0, 0, ErrBadPosition
	}
	return transaction, row, nil
}

// WithQuestion ends a text with the question of the one open offer, so that the last thing on the screen is what a
// yes would answer.
func WithQuestion(body string, o Offer) string {
	return body + "\n\nStill open: " + o.Label + "\n" + o.AskLine
}
