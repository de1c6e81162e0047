// Package offers holds what is put to a person and what becomes of it.
//
// An offer is an operation that must be asked: its exact canonical arguments, their hash, whose it is, what was
// shown and when it ends. Its life is
//
//	queued → sending → open → consumed │ declined │ modified │ expired │ withdrawn │ superseded │ undeliverable
//	                                consumed → lapsed (nothing began in time)
//
// Only [Store.Consume] turns an open offer into an approved operation, and only [Store.Begin] hands the arguments
// out. Both are one conditional update, and both stores are held to the same suite.
package offers

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/people"
)

// Digest is a SHA-256.
type Digest = [sha256.Size]byte

// Errors of this package and of a [Store]. Each is one stable code at the HTTP edge.
var (
	ErrNotFound            = errors.New("not found")
	ErrRunExpired          = errors.New("the run is over")
	ErrIdempotencyConflict = errors.New("the key was used with other content")
	ErrOfferClosed         = errors.New("the offer is closed")
	ErrCannotBeShown       = errors.New("the offer cannot be shown in full")
	ErrNotApproved         = errors.New("not approved")
	ErrAlreadyBegun        = errors.New("begun already")
	ErrNotBegun            = errors.New("not begun")
	ErrHashMismatch        = errors.New("not the arguments that were shown")
	ErrLedgerUnavailable   = errors.New("the ledger cannot be written")
	ErrNoAddress           = errors.New("no person is bound to that address")
)

// How long things last.
const (
	OutwardTTL  = 10 * time.Minute // the most that an offer lives, once shown, whose effect leaves the account
	OutwardWait = 5 * time.Minute  // such an offer lapses when it has queued for this long
	InwardWait  = 24 * time.Hour   // … and any other
	GiveWay     = 10 * time.Minute // an open offer that lives longer than outward ones gives way to the queue, unanswered for this long
	BeginWithin = 10 * time.Minute // from approved to begun, or it lapses
	RunTTL      = time.Hour        // a message's run takes operations this long
	SendTimeout = 30 * time.Second // a text that is still sending, or unknown, after this is taken up again
	NotPickedUp = 60 * time.Second // from approved to the one notice that nothing began
	CrossWindow = 60 * time.Second // another ask on the screen this long before makes a quick bare yes unclear
	CrossFactor = 15               // … within this many min_read of the newest ask
)

// How often the service speaks on its own.
const (
	HourlyTexts = 20 // questions and notices to one person within an hour
	MaxReasks   = 2  // times that one offer's question is put again

	ListensFor = 60 * time.Second // since an agent last read events
	AnswersFor = 10 * time.Second // since an agent's endpoint last answered 2xx
)

// State of an offer.
type State string

// States of an offer. Sending counts as open for everything but consuming.
const (
	Queued        State = "queued"
	Sending       State = "sending"
	Open          State = "open"
	Consumed      State = "consumed"
	Declined      State = "declined"
	Modified      State = "modified"
	Expired       State = "expired"
	Withdrawn     State = "withdrawn"
	Superseded    State = "superseded"
	Undeliverable State = "undeliverable"
	Lapsed        State = "lapsed"
)

// Closed says whether no yes can reach the offer any more.
func (s State) Closed() bool { return s != Queued && s != Sending && s != Open }

// Taken says whether a yes has reached the offer. Such an offer cannot be superseded; one that ended otherwise can, and
// the new one says what changed. Lapsed without a message is an offer that has waited too long in the queue.
func (o Offer) Taken() bool {
	return o.State == Consumed || o.State == Lapsed && o.ClosedBy != nil && o.ClosedBy.MessageID != ""
}

// QueueWait is how long an offer of that life waits in the queue before it lapses unseen.
func QueueWait(ttl time.Duration) time.Duration {
	if ttl <= OutwardTTL {
		return OutwardWait
	}
	return InwardWait
}

// OpState is the state of an operation.
type OpState string

// States of an operation. An asked operation follows its offer; the words of an offer's other ends serve here too.
const (
	OpAllowed   OpState = "allowed"
	OpAsked     OpState = "asked"
	OpRefused   OpState = "refused"
	OpSettling  OpState = "settling"
	OpApproved  OpState = "approved"
	OpRunning   OpState = "running"
	OpSucceeded OpState = "succeeded"
	OpFailed    OpState = "failed"
)

// Final says whether nothing can change the operation any more.
func (s OpState) Final() bool {
	switch s {
	case OpAllowed, OpAsked, OpSettling, OpApproved, OpRunning:
		return false
	}
	return true
}

// Present says when an offer is shown.
type Present string

// One offer at a time is shown to a person, unless the agent asks for it now.
const (
	PresentQueue Present = "queue"
	PresentNow   Present = "now"
)

// Closer says what ended an offer: a message with its reading, or the clock, the agent, the owner or the carrier.
type Closer struct {
	MessageID string  `json:"message_id,omitempty"`
	Reading   string  `json:"reading,omitempty"`
	P         float64 `json:"p,omitempty"`
	By        string  `json:"by,omitempty"`
}

// Who closes without a message.
const (
	ByClock   = "clock"
	ByAgent   = "agent"
	ByOwner   = "owner"
	ByCarrier = "carrier"
)

// Offer is one ask. Its JSON is the contract's offer object.
type Offer struct {
	ID          string          `json:"id"`
	OperationID string          `json:"operation_id"`
	PersonID    string          `json:"person_id"`
	State       State           `json:"state"`
	Tool        string          `json:"tool"`
	Args        json.RawMessage `json:"args"` // canonical
	ArgsSHA256  string          `json:"args_sha256"`
	Label       string          `json:"label"`
	ShownText   string          `json:"shown_text"`
	ShownAt     *time.Time      `json:"shown_at"` // when the provider had first accepted it
	ExpiresAt   time.Time       `json:"expires_at"`
	ClosedBy    *Closer         `json:"closed_by"`

	AccountID     string         `json:"-"`
	RunID         string         `json:"-"`
	Kind          string         `json:"-"` // of its operation, like Reason and Detail
	Reason        string         `json:"-"`
	Detail        string         `json:"-"`
	RootRunID     string         `json:"-"`
	Address       people.Address `json:"-"` // where it is shown
	OurNumber     people.Address `json:"-"` // the number that shows it
	Capability    string         `json:"-"`
	AskLine       string         `json:"-"` // the code-written last line, to repeat it behind other texts
	BindingSHA256 Digest         `json:"-"`
	PolicyVersion string         `json:"-"`
	Settle        time.Duration  `json:"-"`
	TTL           time.Duration  `json:"-"`
	Present       Present        `json:"-"`
	Supersedes    string         `json:"-"`
}

// Asked rebuilds the operation that the offer stands for, in the given state and with the offer in it.
func (o Offer) Asked(state OpState) Operation {
	return Operation{
		ID: o.OperationID, RunID: o.RunID, Kind: o.Kind, Tool: o.Tool, Decision: "ask", Reason: o.Reason, Detail: o.Detail,
		State: state, ArgsSHA256: o.ArgsSHA256, Offer: &o, AccountID: o.AccountID, PersonID: o.PersonID, Args: o.Args,
		Capability: o.Capability,
	}
}

// LogValue keeps arguments and shown text out of logs.
func (o Offer) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", o.ID), slog.String("state", string(o.State)), slog.String("tool", o.Tool))
}

// Operation is one thing that the agent wants to do. Its JSON is the contract's operation object.
type Operation struct {
	ID         string          `json:"id"`
	RunID      string          `json:"run_id"`
	Kind       string          `json:"kind"`
	Tool       string          `json:"tool"`
	Decision   string          `json:"decision"`
	Reason     string          `json:"reason"`
	Detail     string          `json:"detail,omitempty"` // one sentence for the model
	State      OpState         `json:"state"`
	ArgsSHA256 string          `json:"args_sha256"`
	Offer      *Offer          `json:"offer"`
	Result     json.RawMessage `json:"result"`
	BegunAt    *time.Time      `json:"begun_at,omitempty"`
	BegunBy    string          `json:"begun_by,omitempty"`

	AccountID  string          `json:"-"`
	PersonID   string          `json:"-"`
	Args       json.RawMessage `json:"-"` // canonical
	Rule       string          `json:"-"`
	Tier       string          `json:"-"`
	Capability string          `json:"-"`

	PermissionID string `json:"-"` // that its allow was spent from
}

// LogValue keeps arguments out of logs.
func (o Operation) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", o.ID), slog.String("state", string(o.State)), slog.String("tool", o.Tool),
		slog.String("decision", o.Decision), slog.String("reason", o.Reason), slog.String("rule", o.Rule),
		slog.String("tier", o.Tier), slog.String("capability", o.Capability))
}

// Result is what an executor reports.
type Result struct {
	Status string          `json:"status"` // succeeded or failed
	Output json.RawMessage `json:"output,omitempty"`
	At     time.Time       `json:"at"`
}

// Run is one turn of the agent's work.
type Run struct {
	ID          string    `json:"id"`
	PersonID    string    `json:"person_id"`
	Tier        string    `json:"tier"`
	Interactive bool      `json:"interactive"`
	Tainted     bool      `json:"tainted"`
	Cause       Cause     `json:"cause"`
	AccountID   string    `json:"-"`
	ParentID    string    `json:"-"`
	RootID      string    `json:"-"`
	CreatedAt   time.Time `json:"-"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// Cause says why a run started. Exactly one field is set; a run behind POST /v1/offers has Offer.
type Cause struct {
	MessageID   string       `json:"message_id,omitempty"`
	ParentRunID string       `json:"parent_run_id,omitempty"`
	Schedule    *ScheduleRef `json:"schedule,omitempty"`
	Offer       bool         `json:"offer,omitempty"`
}

// EventType names what an agent is told.
type EventType string

// Event types.
const (
	MessageReceived   EventType = "message.received"
	ReplyUnresolved   EventType = "reply.unresolved"
	OfferOpened       EventType = "offer.opened"
	OfferClosed       EventType = "offer.closed"
	OperationApproved EventType = "operation.approved"
	OperationClosed   EventType = "operation.closed"
)

// Event is one thing that an agent is told, in commit order.
type Event struct {
	ID        string          `json:"id"`
	Type      EventType       `json:"type"`
	At        time.Time       `json:"at"`
	AccountID string          `json:"account_id"`
	Data      json.RawMessage `json:"data"`
}

// ReplyData is the data of message.received and, with Why and Offers, of reply.unresolved.
type ReplyData struct {
	RunID     string  `json:"run_id"`
	MessageID string  `json:"message_id"`
	PersonID  string  `json:"person_id"`
	Text      string  `json:"text"`
	Reading   string  `json:"reading"`
	P         float64 `json:"p"`
	Why       string  `json:"why,omitempty"`
	Offers    []Offer `json:"offers,omitempty"`
}

// OfferData is the data of offer.opened and offer.closed.
type OfferData struct {
	Offer Offer `json:"offer"`
}

// OperationData is the data of operation.approved and operation.closed.
type OperationData struct {
	Operation Operation `json:"operation"`
}

// NewID makes a UUIDv7.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
