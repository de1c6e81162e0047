package offers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Phones is what carriers and phones do besides carrying words.
type Phones interface {
	// OptOut decides a message as an opt-out: its address gets no text from now on, queued texts to it are dropped, and
	// every queued or live offer of the person shown there is withdrawn, with one event. Errors: *Refusal (decided before).
	OptOut(ctx context.Context, o OptOutRequest) error
	// OptIn decides a message as Pass does, and lets texts go to its address again. It confirms nothing.
	OptIn(ctx context.Context, p PassRequest) error
	// End decides a message that nobody is told of: the carrier has answered it. Errors: *Refusal (decided before).
	End(ctx context.Context, messageID, personID string, reading ReadingRecord) error
	// CancelSettling takes back every yes of the person that is still settling and was when the message came, however
	// long the message has waited to be decided; each puts a receipt in line. It decides no message, and returns how many
	// there were.
	CancelSettling(ctx context.Context, messageID, personID string, receipt func(Offer) string) (int, error)
	// Choose decides a message that picks one of several live offers by its number: the others wait in the queue again, and
	// the chosen one is shown once more, alone, so that the yes that follows is a yes to it. The number is that of the list
	// that was texted last, was accepted by the provider before the message came, and names those offers that are live now.
	// Errors: *Refusal (decided before; not listed), and then nothing has changed.
	Choose(ctx context.Context, c ChooseRequest) error
	// Ended lists the person's offers that have ended and may still have been on the screen within CrossWindow before the
	// newest ask of this one, newest end first: what a yes that crossed with that ask may have been meant for.
	Ended(ctx context.Context, offerID string) ([]Offer, error)
	// Report records what a status callback says of a text. Callbacks come in any order, more than once, and before the
	// answer to the send. Proof that every part was accepted opens what was unknown; one part that was not delivered
	// makes the text's offer undeliverable; a dead number is unbound. Errors: ErrNotFound (no text of ours).
	Report(ctx context.Context, r StatusReport) error
}

// OptOutRequest is an opt-out by a message.
type OptOutRequest struct {
	MessageID string
	PersonID  string
	Reading   ReadingRecord
}

// ChooseRequest picks an offer by a message.
type ChooseRequest struct {
	MessageID string
	PersonID  string
	Number    int // from 1
	MinRead   time.Duration
	Reading   ReadingRecord
	Data      ReplyData // of the event message.received
}

// PersonOptedOut is told to the agent.
const PersonOptedOut EventType = "person.opted_out"

// OptOutData is the data of person.opted_out.
type OptOutData struct {
	PersonID  string `json:"person_id"`
	MessageID string `json:"message_id,omitempty"` // empty: the carrier said so when a text was sent
}

// StatusReport is one status callback.
type StatusReport struct {
	TextID     string // ours, as it stood in the callback's address; may be empty
	ProviderID string // of the part
	Part       int    // from 1, as it stood there; 0: the only one
	Parts      int    // how many; 0: one
	Status     string // the provider's word
	Code       int    // the provider's error code; 0: none
}

// statusRank orders a provider's words for how far a text has come. A lower one that comes late changes nothing.
func statusRank(status string) int {
	switch status {
	case "accepted", "scheduled", "queued":
		return 1
	case "sending":
		return 2
	case "sent":
		return 3
	case "delivered", "undelivered", "failed", "canceled":
		return 4
	case "read":
		return 5
	}
	return 0
}

// Rank is how far the report says that the text has come; 0: a word that is not known.
func (r StatusReport) Rank() int { return statusRank(r.Status) }

// Proves says whether the report proves that the provider has taken the text.
func (r StatusReport) Proves() bool { return r.Rank() > 0 && !r.Lost() }

// Lost says whether the text did not and will not reach the phone.
func (r StatusReport) Lost() bool {
	return r.Status == "undelivered" || r.Status == "failed" || r.Status == "canceled"
}

// CodeOptedOut says that the person has opted out at the carrier.
const CodeOptedOut = 21610

// DeadNumber says whether nobody, or somebody else, answers at the number: unreachable, unknown, a landline.
func DeadNumber(code int) bool { return slices.Contains([]int{30003, 30005, 30006}, code) }

// OptsOut says whether the provider refuses because the person has opted out.
func OptsOut(code int) bool { return code == CodeOptedOut }

// ByOptOut names who closes an offer by an opt-out: the message itself, or the carrier where there is none.
func ByOptOut(messageID string) string {
	if messageID == "" {
		return ByCarrier
	}
	return ""
}

// CancelledReceipt tells the person that a yes was taken back in time.
func CancelledReceipt(o Offer) string { return "Stopped in time, nothing was done: " + o.Label + "." }

// Picked is the offer that a number stands for in the list that was shown last; live are the offers that are live now, in the
// order in which they would be numbered. Errors: *Refusal, where the list is not theirs any more, or has no such number.
func Picked(list, live []string, number int) (string, error) {
	if number < 1 || number > len(list) || !slices.Equal(list, live) { // mutant: choose.unchanged
		return "", &Refusal{Why: WhyNotListed}
	}
	return list[number-1], nil
}

// NotOpen says of offers that have ended that they have, for a question about another one: by their labels and states, which
// code wrote, and of no more than two. Empty: there are none.
func NotOpen(ended []Offer) string {
	var b strings.Builder
	for _, o := range ended[:min(len(ended), namedEnded)] {
		fmt.Fprintf(&b, "No longer open: %s (%s).\n", o.Label, ending(o.State))
	}
	return b.String()
}

// namedEnded is how many ends one question names.
const namedEnded = 2

func ending(s State) string {
	switch s {
	case Consumed, Lapsed:
		return "approved before"
	case Superseded, Modified:
		return "replaced"
	case Undeliverable:
		return "could not be shown"
	}
	return string(s) // expired, declined, withdrawn
}
