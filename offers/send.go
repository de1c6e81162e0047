package offers

import (
	"context"
	"log/slog"

	"github.com/countersign/countersign/people"
)

// Sender hands one text to a provider.
type Sender interface {
	// Send never panics and always answers, at the latest when ctx ends; whatever leaves doubt about the provider having
	// taken the text is OutcomeUnknown.
	Send(ctx context.Context, m Outgoing) SendResult
	// Limit is the longest body in characters that goes out as one message.
	Limit() int
}

// Outgoing is one message for a provider: a text, or one of its parts.
type Outgoing struct {
	TextID string // ours; callbacks name it
	Part   int    // from 1, where the text goes out as several
	Parts  int    // how many; 0: one
	From   people.Address
	To     people.Address
	Body   string
}

// LogValue keeps the body and the numbers out of logs.
func (m Outgoing) LogValue() slog.Value {
	return slog.GroupValue(slog.String("channel", m.To.Channel()), slog.Int("bytes", len(m.Body)))
}

// Outcome of a send. The zero value is unknown.
type Outcome uint8

// Outcomes.
const (
	OutcomeUnknown  Outcome = iota // a time-out, a cut connection, an answer that cannot be read
	OutcomeAccepted                // the provider has it
	OutcomeRejected                // the provider refused it: nobody has seen it
)

// SendResult is a provider's answer.
type SendResult struct {
	Outcome     Outcome
	ProviderID  string   // of the only part
	ProviderIDs []string // of all parts in order, where there are several; empty: not known
	Partial     bool     // unknown, since some parts went out, or may have, and others certainly did not
	Code        int      // the provider's error code, when rejected or partial
}

// IDs are the provider's ids of all parts in order; empty: not known.
func (r SendResult) IDs() []string {
	if len(r.ProviderIDs) == 0 && r.ProviderID != "" {
		return []string{r.ProviderID}
	}
	return r.ProviderIDs
}

// FirstID is what the text's own row keeps.
func (r SendResult) FirstID() string {
	for _, id := range r.IDs() {
		if id != "" {
			return id
		}
	}
	return ""
}
