package offers

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/gate"
)

// Runs are the turns of an agent's work. Authority and taint are derived here and nowhere taken from a caller.
type Runs interface {
	// StartRun returns a trusted message's own run, made with the message, for one hour; derives a run from another,
	// with the same tier, taint, root and end, not interactive; or makes one for a schedule with its creator's tier and
	// taint, for one hour.
	// Errors: ErrNotFound, ErrRunExpired.
	StartRun(ctx context.Context, accountID string, cause StartCause) (Run, error)
	// Taint marks every run of the same root. Nothing unmarks. Errors: ErrNotFound.
	Taint(ctx context.Context, accountID, runID string) (Run, error)
	// FactsOf reads what the gate would be told of a person, and stores nothing. An empty id is the account's first
	// active owner with an address. Errors: ErrNotFound.
	FactsOf(ctx context.Context, accountID, personID string, reaches []string) (Facts, error)
	// Polled remembers that a key's holder has read the event feed; it may drop calls within PollMark of each other.
	Polled(ctx context.Context, keyID string) error
}

// PollMark is how exactly it is known when an agent last read events.
const PollMark = 10 * time.Second

// StartCause says which run is wanted; exactly one way is set.
type StartCause struct {
	MessageID   string
	ParentRunID string
	Schedule    *ScheduleRef
}

// ScheduleRef names what an approved operation has set up.
type ScheduleRef struct {
	PersonID string `json:"person_id"`
	Name     string `json:"name"`
}

// Errors of a confirm by the main model; see [Store.ConsumeCited].
var (
	ErrSelfConfirm = errors.New("a run cannot confirm what it proposed, nor act on a message that is not its own")
	ErrQuote       = errors.New("the quote is not the whole of the person's own words")
	ErrMessageUsed = errors.New("the message has approved something else")
	ErrNotAYes     = errors.New("the message's reading is no yes to this offer")
)

// Cited is a message that a main model cites, with what was stored of its reading.
type Cited struct {
	Received
	Reading    ReadingRecord
	RunTainted bool
	Used       bool    // it has approved an offer
	Screen     []Offer // that the person may have meant: live now, or live within ScreenWindow before the message; oldest first
}

// ScreenWindow is how long before a message an offer may have been on the screen for the person's words to name it.
const ScreenWindow = 24 * time.Hour

// Confirms is the way of a yes that code left to the main model.
type Confirms interface {
	// CitedMessage loads a message of the account and every live offer of its person. Errors: ErrNotFound.
	CitedMessage(ctx context.Context, accountID, messageID string) (Cited, error)
	// ConsumeCited is Consume for a message that was decided as unresolved: every condition but *the only open offer*
	// and *the last text*, and besides them that the run is the message's own and not tainted. Words that do not name
	// the offer approve it only if no other was on the screen when they came, nor had been asked after it: a bare yes is
	// to what was asked last, whatever has been withdrawn since. And no text of the agent's own stood between the offer's
	// newest question and the message: it could be what was answered.
	// Errors: *Refusal.
	ConsumeCited(ctx context.Context, c ConsumeRequest) (Win, error)
}

// SetsUp names the schedule that an operation sets up when it has succeeded, or "".
func SetsUp(op Operation, policy *gate.Policy) string {
	tool, ok := policy.Tool(op.Tool)
	if op.Kind != string(gate.KindBackgroundJob) && (!ok || tool.Effect != gate.EffectSchedule) {
		return ""
	}
	args, err := decode(op.Args)
	if err == nil {
		if name, ok := args["name"].(string); ok && name != "" && len(name) <= 200 {
			return name
		}
	}
	return op.ID
}
