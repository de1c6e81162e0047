package webhook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/people"
)

// Names of the providers, as stored beside each message.
const (
	ProviderTwilio = "twilio"
	ProviderSim    = "sim"
)

// Intake makes an inbound message durable.
type Intake interface {
	// Receive stores in and returns nil only when it is committed, or was
	// committed before under the same (Provider, ProviderSID). It does no reader
	// work: the provider waits for the answer. On any error the provider is told
	// 503 and tries again; a *Limited is 429. in may come from an unknown sender
	// (From == "").
	//
	// decided, if not nil, is closed when the message has been worked on. The answer waits for it, but for some
	// milliseconds; the connection's next request does for longer.
	Receive(ctx context.Context, in Inbound) (decided <-chan struct{}, err error)
}

// Limited says that a message was not stored because its sender, who is nobody's
// person, sends more than a stranger may.
type Limited struct{ RetryAfter int } // whole seconds, at least 1

func (l *Limited) Error() string { return "more messages than a stranger may send" }

// Inbound is one text as a provider gave it, its origin proven.
type Inbound struct {
	Provider    string // ProviderTwilio or ProviderSim
	ProviderSID string // the provider's id of this message, unique per provider for ever
	AccountSID  string // Twilio: our own AccountSid; sim: empty

	// From is the sender's exact address, or empty when the provider gave none
	// that could be answered: a short code, a name, a withheld number, another
	// spelling of a number. Empty is nobody and must match nobody.
	From    people.Address
	FromRaw Text           // what the provider called the sender, for the record only
	To      people.Address // our own number at which it arrived

	Body  Bytes // the text's exact bytes, outer spaces kept
	Text  Text  // the same as valid UTF-8 without NUL
	Lossy bool  // Text, or another text field, is not what was sent: never a decision

	NumMedia    int
	NumSegments int

	OptOutType                string // STOP, START, HELP or empty
	ButtonPayload             Text
	ButtonText                Text
	OriginalRepliedMessageSid string // the text that was answered, where the channel says so
	Quote                     Text   // sim: the quoted text that was answered or reacted to

	// OtherRecipients holds every sign that others were addressed as well. Not
	// empty: a group text, so the words were not said to us alone.
	OtherRecipients []Text

	ProfileName Text // display name chosen by the sender: evidence, never identity

	Raw Bytes // the request body that was signed (sim: the JSON), unchanged
}

// LogValue keeps a message out of logs; what remains finds its row.
func (in Inbound) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("provider", in.Provider),
		slog.String("sid", in.ProviderSID),
		slog.Int("body_bytes", len(in.Body)),
		slog.Bool("lossy", in.Lossy),
	)
}

// Format prints the same for every verb, so that %v and %+v show no words.
func (in Inbound) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "inbound "+in.Provider+" "+in.ProviderSID)
}

// Text is a person's words. string(t) is the words; printing or logging a Text
// shows its length only.
type Text string

// String shows the length in bytes only; string(t) converts.
func (t Text) String() string { return fmt.Sprintf("[%d bytes]", len(t)) }

// GoString is String, for %#v.
func (t Text) GoString() string { return t.String() }

// LogValue is String, for slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Bytes is a person's words before any decoding; it redacts like Text.
type Bytes []byte

// String shows the length only.
func (b Bytes) String() string { return fmt.Sprintf("[%d bytes]", len(b)) }

// Format shows the length only, for every verb.
func (b Bytes) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, b.String()) }

// LogValue shows the length only.
func (b Bytes) LogValue() slog.Value { return slog.StringValue(b.String()) }

// readable gives s a form that every store can hold: invalid UTF-8 and NUL
// become U+FFFD, one for each run of bad bytes and for each NUL. Nothing is cut,
// so "yes\x00no" never becomes "yes". lossy reports that something was replaced.
func readable(s string) (text Text, lossy bool) {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return Text(s), false
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return Text(strings.ReplaceAll(s, "\x00", "\uFFFD")), true
}
