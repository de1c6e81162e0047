// Package said takes permissions from what a person typed: "email Dana the
// report", "you can always text Sam when a build is done", "pay Northwind $400".
//
// A request is taken as an approval only where the account lets asking be
// approving, and only in the person's own words: a text is cut to 2 KB, what was
// pasted or quoted is taken out ([Unquote]), an [Extractor] proposes candidates,
// and code checks each against the words ([Validate]), pins names to exact
// addresses ([Resolve]) and compares a call with what was granted ([Match]). An
// extractor can leave an ask out; it can add nothing that the words do not hold.
//
// All but the extractors is pure: time, words and contacts arrive as arguments.
// Whatever is in doubt is dropped with a reason, and a call that nothing matches
// is put to the person as if nothing had been said.
package said

import (
	"log/slog"
	"time"
)

// Kind is what a person asks for. The zero value is no kind.
type Kind string

// The closed list of kinds.
const (
	KindSend   Kind = "send"    // words to recipients
	KindPost   Kind = "post"    // something published
	KindPay    Kind = "pay"     // money
	KindActOut Kind = "act_out" // anything else outside the account: an invitation, a share, a booking
	KindChange Kind = "change"  // a setting
)

func (k Kind) known() bool {
	switch k {
	case KindSend, KindPost, KindPay, KindActOut, KindChange:
		return true
	}
	return false
}

// Channel is the means that was named; ChannelNone where none was.
type Channel string

// The closed list of channels.
const (
	ChannelNone     Channel = "none"
	ChannelEmail    Channel = "email"
	ChannelSlack    Channel = "slack"
	ChannelSMS      Channel = "sms"
	ChannelCalendar Channel = "calendar"
	ChannelGitHub   Channel = "github"
	ChannelWeb      Channel = "web"
)

func (c Channel) known() bool {
	switch c {
	case ChannelNone, ChannelEmail, ChannelSlack, ChannelSMS, ChannelCalendar, ChannelGitHub, ChannelWeb:
		return true
	}
	return false
}

// Limits.
const (
	MaxTextBytes = 2 << 10 // of a text that is looked at
	MaxIntents   = 10      // of one text
	MaxTo        = 10      // recipients of one intent
	MaxToRunes   = 80      // of one recipient
	MaxCount     = 1000    // calls that one intent can cover

	MinWindow     = 5 * time.Minute
	MaxWindow     = 24 * time.Hour
	DefaultWindow = 2 * time.Hour
	// Early is how long before its time a one-off already counts: clocks differ.
	Early = 10 * time.Minute
	// MaxAhead is how far in the future a time may be, MaxPast how far gone by.
	MaxAhead = 400 * 24 * time.Hour
	MaxPast  = time.Hour
)

// Candidate is what an extractor proposes. Nothing in it is believed.
type Candidate struct {
	Kind     string   `json:"kind"`
	To       []string `json:"to"`      // the person's words for each recipient
	Channel  string   `json:"channel"` // "" is none
	Standing bool     `json:"standing"`
	// AmountMax is a plain decimal such as 400 or 84.20; "" for none.
	AmountMax string `json:"amount_max"`
	Currency  string `json:"currency"` // ISO 4217, upper case; "" for none
	Count     int    `json:"count"`    // how many calls; 0 where the person gave no number
	// At and Until are RFC 3339, or local to the person without an offset
	// (2026-03-04T09:00); Until may be a day (2026-03-04) and then means its end.
	At             string `json:"at"`
	Until          string `json:"until"`
	WindowMinutes  int    `json:"window_minutes"` // 0 is the default
	ReplyToCurrent bool   `json:"reply_to_current"`
}

// Intent is a candidate that the words bear out. It is no permission yet: its
// recipients are still words.
type Intent struct {
	Kind           Kind          `json:"kind"`
	To             []string      `json:"to,omitempty"` // as said
	Channel        Channel       `json:"channel"`
	Standing       bool          `json:"standing"`
	AmountMax      string        `json:"amount_max,omitempty"` // plain decimal
	Currency       string        `json:"currency,omitempty"`   // ISO 4217
	Count          int           `json:"count,omitempty"`
	At             time.Time     `json:"at,omitzero"`
	Until          time.Time     `json:"until,omitzero"`
	Window         time.Duration `json:"window,omitempty"` // of a one-off, from At or from when it was given
	ReplyToCurrent bool          `json:"reply_to_current,omitempty"`
}

// Ends is when the intent, given at that time, stops to cover anything; the zero
// time for a standing one without an end.
func (in Intent) Ends(given time.Time) time.Time {
	if in.Standing {
		return in.Until
	}
	start := given
	if !in.At.IsZero() {
		start = in.At
	}
	end := start.Add(min(max(in.Window, MinWindow), MaxWindow))
	if !in.Until.IsZero() && in.Until.Before(end) {
		end = in.Until
	}
	return end
}

// Budget is how many calls the intent covers: the count, else one per named
// recipient for a one-off; 0 for a standing one without a count, which has no end
// but its time.
func (in Intent) Budget() int {
	switch {
	case in.Count > 0:
		return in.Count
	case in.Standing:
		return 0
	}
	return max(len(in.To), 1)
}

// LogValue shows the shape of an intent, never whom or how much.
func (in Intent) LogValue() slog.Value {
	return slog.GroupValue(slog.String("kind", string(in.Kind)), slog.String("channel", string(in.Channel)),
		slog.Bool("standing", in.Standing), slog.Int("to", len(in.To)))
}

// Contact is somebody, or something, whom the person can name. Contacts come in
// through their own scope of the API, never the agent's.
type Contact struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases,omitempty"`
	Addresses []string `json:"addresses"`
}

// Recipient is one recipient of an intent with what the words stood for when the
// permission was given.
type Recipient struct {
	Said      string   `json:"said"`
	ContactID string   `json:"contact_id,omitempty"` // empty where an address was said
	Addresses []string `json:"addresses"`            // canonical, as gate.CanonicalAddress
}

// Granted is a resolved intent as it is stored.
type Granted struct {
	ID        string `json:"id"`
	PersonID  string `json:"person_id"`
	MessageID string `json:"message_id"` // the message whose words it was taken from
	Intent
	Recipients []Recipient `json:"recipients"` // one for each of To, in its order
	// MaxCalls is Budget at granting, 0 for no bound (standing only); Used counts
	// the calls that it has covered.
	MaxCalls int `json:"max_calls"`
	Used     int `json:"used"`
	// Served are those of To whom a call of a one-off has reached: "pay Ann and Bob
	// 20" is no word for paying Ann twice.
	Served  []string  `json:"served,omitempty"`
	Revoked bool      `json:"revoked"`
	GivenAt time.Time `json:"given_at"`
	// EndsAt is Ends at granting; zero for a standing one without an end.
	EndsAt time.Time `json:"ends_at,omitzero"`
}

// LogValue shows the ids and the shape, never whom or how much.
func (g Granted) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", g.ID), slog.String("message_id", g.MessageID), slog.Any("intent", g.Intent))
}

// Grant makes the row to store of an intent that was resolved whole; false where
// it was not, so that nothing with a recipient in doubt is ever stored. The
// caller gives it an id.
func Grant(r Resolved, personID, messageID string, given time.Time) (Granted, bool) {
	if !r.Whole() || personID == "" || messageID == "" || given.IsZero() {
		return Granted{}, false
	}
	return Granted{PersonID: personID, MessageID: messageID, Intent: r.Intent, Recipients: r.Recipients,
		MaxCalls: r.Intent.Budget(), GivenAt: given, EndsAt: r.Intent.Ends(given)}, true
}

// Reason is why a candidate, or a part of a text, was dropped.
type Reason string

// The closed list of reasons.
const (
	// Off the schema: what an extractor answered is not a candidate.
	DropSchemaJSON    Reason = "schema_json"    // no JSON, or not a list of intents
	DropSchemaKind    Reason = "schema_kind"    // not one of the kinds
	DropSchemaChannel Reason = "schema_channel" // not one of the channels
	DropSchemaTo      Reason = "schema_to"      // not at most ten short strings
	DropSchemaFlag    Reason = "schema_flag"    // a flag that is no boolean
	DropSchemaNumber  Reason = "schema_number"  // a number that is none, or not sane
	DropSchemaText    Reason = "schema_text"    // a time or currency that is no short string

	DropToNotSaid       Reason = "to_not_said"       // a recipient is not in the words
	DropToNotAsked      Reason = "to_not_asked"      // a recipient is not governed by an asked verb of the kind
	DropNotAsked        Reason = "not_asked"         // no verb of the kind reads as an ask
	DropNoTarget        Reason = "no_target"         // nobody named, and no reply
	DropReplyNotSaid    Reason = "reply_not_said"    // a reply without a reply verb
	DropChannelNotSaid  Reason = "channel_not_said"  // no word for the channel
	DropStandingNotSaid Reason = "standing_not_said" // standing without an ongoing cue
	DropPayNoAmount     Reason = "pay_no_amount"     // a payment without an amount
	DropAmountNotSaid   Reason = "amount_not_said"   // an amount that the person did not write for it
	DropCurrencyNotSaid Reason = "currency_not_said" // a currency that they did not name
	DropCountNotSaid    Reason = "count_not_said"    // a number of calls that they did not write, or one left out
	DropWhenUnparsed    Reason = "when_unparsed"     // a time that does not parse
	DropWhenTooFar      Reason = "when_too_far"      // over 400 days ahead
	DropWhenPast        Reason = "when_past"         // over an hour past
	DropWhenNotSaid     Reason = "when_not_said"     // another time than the words have
	DropUntilUnparsed   Reason = "until_unparsed"
	DropUntilTooFar     Reason = "until_too_far"
	DropUntilPast       Reason = "until_past"
	DropUntilNotSaid    Reason = "until_not_said" // a later end than the words have, or one left out
	DropRepeated        Reason = "repeated"       // the same ask a second time: it was said once
	DropCap             Reason = "cap"            // more than ten intents
)

// Drop is a candidate that was dropped, and one reason of maybe several.
type Drop struct {
	Candidate Candidate `json:"candidate"`
	Reason    Reason    `json:"reason"`
}

// LogValue shows the reason, never the words.
func (d Drop) LogValue() slog.Value { return slog.StringValue(string(d.Reason)) }
