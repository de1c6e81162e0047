package offers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/people"
)

// The yes.
//
// An offer is consumed by one UPDATE whose WHERE holds every condition; postgres/offers.go and sqlite/offers.go each
// write it out. This file holds what the two share: what a win leaves behind, and why there was none. Nothing here
// decides: [Snapshot.Why] reads facts after the fact, and at worst it explains badly.

// Effects are the rows that a win leaves behind, made before the update so that its statement can carry them.
type Effects struct {
	State  OpState // of the operation: settling or approved
	Ledger []byte  // body of the ledger row
	Closer []byte
	Events []NewEvent
}

// NewEvent is an event that has no place in the order yet.
type NewEvent struct {
	ID   string
	Type EventType
	Data []byte
}

// MakeEvent renders an event's data.
func MakeEvent(t EventType, data any) (NewEvent, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // arguments stay the bytes that were hashed
	if err := enc.Encode(data); err != nil {
		return NewEvent{}, fmt.Errorf("event %s: %w", t, err)
	}
	return NewEvent{ID: NewID(), Type: t, Data: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, nil
}

// Won makes the effects of consuming the offer, and the operation and offer as they are then.
func (c ConsumeRequest) Won() (Operation, Effects, error) {
	o := c.Offer
	o.State, o.ClosedBy = Consumed, &c.Closer
	state := OpApproved
	if o.Settle > 0 {
		state = OpSettling
	}
	op := o.Asked(state)
	eff := Effects{State: state}
	var err error
	if eff.Closer, err = json.Marshal(c.Closer); err != nil {
		return op, eff, fmt.Errorf("consume: %w", err)
	}
	eff.Ledger, err = json.Marshal(LedgerBody{
		Operation: o.OperationID, Offer: o.ID, Tool: o.Tool, ArgsSHA256: o.ArgsSHA256, Message: c.MessageID,
		Reading: c.Closer.Reading, P: c.Closer.P, Reader: c.Reading.Reader,
	})
	if err != nil {
		return op, eff, fmt.Errorf("consume: %w", err)
	}
	closed, err := MakeEvent(OfferClosed, OfferData{Offer: o})
	if err != nil {
		return op, eff, err
	}
	eff.Events = append(eff.Events, closed)
	if state == OpApproved && o.Tool != gate.ToolPermissionGrant { // that one is the service's own to carry out
		approved, err := MakeEvent(OperationApproved, OperationData{Operation: op})
		if err != nil {
			return op, eff, err
		}
		eff.Events = append(eff.Events, approved)
	}
	return op, eff, nil
}

// LedgerBody is the body of a ledger row: ids, hashes and codes, never words of a person or an argument.
type LedgerBody struct {
	Operation  string  `json:"operation"`
	Offer      string  `json:"offer,omitempty"`
	Tool       string  `json:"tool,omitempty"`
	ArgsSHA256 string  `json:"args_sha256,omitempty"`
	Decision   string  `json:"decision,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Rule       string  `json:"rule,omitempty"`
	Tier       string  `json:"tier,omitempty"`
	Capability string  `json:"capability,omitempty"`
	State      string  `json:"state,omitempty"`
	Message    string  `json:"message,omitempty"`
	Reading    string  `json:"reading,omitempty"`
	P          float64 `json:"p,omitempty"`
	Reader     string  `json:"reader,omitempty"`
	By         string  `json:"by,omitempty"`
	ResultSum  string  `json:"result_sha256,omitempty"`
	Permission string  `json:"permission,omitempty"` // that an allow was spent from
}

// Snapshot is what a store read after an update had changed no row.
type Snapshot struct {
	Now time.Time

	OfferFound  bool
	PersonID    string
	State       State
	ConsumedBy  string
	Address     people.Address
	OurNumber   people.Address
	ArgsSHA256  string
	Binding     Digest
	RootRunID   string
	ExpiresAt   time.Time
	AskedAt     time.Time // zero: never accepted
	PersonState people.State
	Tier        string

	MessageFound     bool
	MessagePersonID  string
	MessageAddress   people.Address
	MessageOurNumber people.Address
	MessageDecided   bool
	MessageNumber    int64
	MessageRootRunID string
	ReceivedAt       time.Time

	Newest        int64 // number of the person's newest message
	LastTextOffer string
	LastTextState TextState
	OtherLive     bool
	Elsewhere     bool // so early a yes in these words may answer something else that was on the screen

	Cited      bool   // it is the yes that a main model cites
	RunID      string // the message's own run
	RunTainted bool
	Used       bool // the message has approved an offer
	Rival      bool // another offer was on the screen when the message came, or was asked after this one
	Spoken     bool // the agent said something after this offer was last asked, and before the message
}

// Why names the first condition that does not hold. A request without tiers asks for none: a no needs no capability.
func (s Snapshot) Why(c ConsumeRequest) Why {
	holds := c.Tiers == nil
	for _, t := range c.Tiers {
		holds = holds || t == s.Tier
	}
	switch {
	case !s.OfferFound:
		return WhyGone
	case !s.MessageFound || s.MessagePersonID != c.PersonID, s.Cited && s.Used:
		return WhyDecided
	case s.PersonID != c.PersonID:
		return WhyPerson
	case s.PersonState != people.Active:
		return WhySuspended
	case !holds:
		return WhyTier
	case s.Address != s.MessageAddress || s.OurNumber != s.MessageOurNumber:
		return WhyAddress
	case s.RootRunID == s.MessageRootRunID, s.Cited && (s.RunID != c.RunID || s.RunTainted):
		return WhySameRun
	case s.State == Consumed || s.State == Lapsed:
		return WhyConsumed
	case s.State.Closed():
		return WhyClosed
	case s.State != Open:
		return WhyNotShown
	case s.MessageDecided != s.Cited:
		return WhyDecided
	case !s.ExpiresAt.After(s.Now):
		return WhyExpired
	case s.ArgsSHA256 != c.Offer.ArgsSHA256 || s.Binding != c.Offer.BindingSHA256:
		return WhyHash
	case s.MessageNumber != s.Newest:
		return WhyNewer
	case s.OtherLive && !s.Cited, s.Cited && s.Rival && !c.Names:
		return WhySeveral
	case s.LastTextOffer != c.Offer.ID && !s.Cited, s.Cited && s.Spoken:
		return WhyLastText
	case s.LastTextState != TextAccepted && !s.Cited:
		return WhyUnconfirmed
	case s.ReceivedAt.Before(s.AskedAt.Add(c.MinRead)):
		return WhyTooSoon
	case s.Elsewhere && s.ReceivedAt.Before(s.AskedAt.Add(CrossFactor*c.MinRead)):
		return WhyCrossed
	}
	return WhyUnexplained
}
