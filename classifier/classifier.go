// Package classifier reads one texted reply to an offer: does the person say
// yes to exactly what was offered, and how sure is that?
//
// A [Reader] (a model) proposes a [Reading]; guards, which are plain code, may
// lower it to unclear and can do nothing else. [Read] is the one way to get a
// [Verdict]: it prepares the text, keeps the reader to its deadline, checks the
// shape of the answer and runs every guard.
//
//	in := classifier.Input{
//		Newest: classifier.NewWords("yes please"),
//		Offers: []classifier.Label{label},
//	}
//	v := classifier.Read(ctx, reader, in, classifier.Options{})
//	if v.Confirms(classifier.ActThreshold) { … }
//
// What reaches a reader is fixed by types: the person's own words ([Words])
// and labels that code wrote ([Label]). Assistant text, tool results and
// argument free text have no way in.
package classifier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Class says what a reply is. The zero value is Unclear, so that whatever was
// forgotten, failed or never set asks again.
type Class uint8

// The classes. Their order is the order of [Reading.P] and must not change:
// calibration files and weights are written by it.
const (
	// Unclear is hedged, ambiguous, a question, or anything code cannot trust.
	Unclear Class = iota
	// Confirm is an unconditional yes to exactly the proposed action.
	Confirm
	// Decline is no, cancel, stop, not now.
	Decline
	// Modify is a yes-but or a change of what was proposed.
	Modify
	// Unrelated is not about the offer.
	Unrelated

	// Classes is how many there are.
	Classes = 5
)

// Sentinel errors.
var (
	ErrClass     = errors.New("classifier: not a class")
	ErrLabel     = errors.New("classifier: not a label")
	ErrThreshold = errors.New("classifier: threshold below the floor of 0.9")
)

var classNames = [Classes]string{"unclear", "confirm", "decline", "modify", "unrelated"}

// String is the wire name, for example "confirm"; "unclear" for a value that is no class.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return classNames[Unclear]
}

// ParseClass accepts the five wire names, byte for byte: no case folding, no
// trimming, no prefix match. A model that answers "CONFIRM " or "yes" has not
// answered. The class that comes with an error is Unclear.
func ParseClass(s string) (Class, error) {
	for i, n := range classNames {
		if s == n {
			return Class(i), nil
		}
	}
	return Unclear, ErrClass
}

// MarshalText implements [encoding.TextMarshaler].
func (c Class) MarshalText() ([]byte, error) {
	if int(c) >= Classes {
		return nil, ErrClass
	}
	return []byte(classNames[c]), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]; it follows [ParseClass]
// and leaves Unclear behind when it fails.
func (c *Class) UnmarshalText(b []byte) error {
	v, err := ParseClass(string(b))
	*c = v
	return err
}

// Words are the person's own words of one inbound message, as the provider
// gave them. Its one maker is [NewWords].
type Words struct{ raw string }

// NewWords takes the text of one inbound message of the person whose offer it
// may answer. Give it nothing else: this is the door that invariant 12 names.
func NewWords(raw string) Words { return Words{raw: raw} }

// String is the text as received.
func (w Words) String() string { return w.raw }

// LogValue keeps the text out of logs; only its length in bytes is shown.
func (w Words) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("bytes", len(w.raw)))
}

// Limits of a label: it names an action, it does not tell a story.
const (
	maxLabelRunes = 200
	maxVerbRunes  = 40
)

// UnknownToolVerb names an action whose tool has no wording of its own.
const UnknownToolVerb = "run a tool"

// Label is what code calls an open offer, such as "send email to Dana": the
// verb of the tool's entry in the policy and short, cleaned values. The zero
// Label reads like [UnknownToolLabel].
type Label struct{ text string }

// NewLabel builds a label from a verb phrase ("send email to") and short
// objects ("Dana"), joined by single spaces. Letters (with marks), digits and
// - . , : @ + / ' & # % $ € £ ¥ ( ) are kept, anything else becomes a space, so
// that no line break, quote, bracket or invisible character can carry an
// instruction into a reader. A tag in square brackets in front ("[run] merge PR
// 12") keeps round ones: the action stands behind it. It fails with [ErrLabel] when the verb is empty
// or longer than 40 characters after cleaning, or the label longer than 200.
func NewLabel(verb string, object ...string) (Label, error) {
	v := cleanLabel(verb)
	if !strings.ContainsFunc(v, unicode.IsLetter) || utf8.RuneCountInString(v) > maxVerbRunes {
		return Label{}, ErrLabel
	}
	parts := []string{v}
	for _, o := range object {
		if o = cleanLabel(o); o != "" {
			parts = append(parts, o)
		}
	}
	return checkedLabel(strings.Join(parts, " "))
}

// UnknownToolLabel names the offer of a tool that has no wording.
func UnknownToolLabel() Label { return Label{text: UnknownToolVerb} }

// ParseLabel reads a whole label from a data file, cleaned and limited as
// [NewLabel] does it.
func ParseLabel(s string) (Label, error) {
	s = cleanLabel(s)
	if !strings.ContainsFunc(s, unicode.IsLetter) {
		return Label{}, ErrLabel
	}
	return checkedLabel(s)
}

func checkedLabel(s string) (Label, error) {
	if utf8.RuneCountInString(s) > maxLabelRunes {
		return Label{}, fmt.Errorf("%w: longer than %d characters", ErrLabel, maxLabelRunes)
	}
	return Label{text: s}, nil
}

// String is the label's text.
func (l Label) String() string {
	if l.text == "" {
		return UnknownToolVerb
	}
	return l.text
}

// LogValue keeps names and amounts out of logs.
func (l Label) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("bytes", len(l.text)))
}

func cleanLabel(s string) string {
	if tag, rest, found := strings.Cut(strings.TrimSpace(s), "]"); found && strings.HasPrefix(tag, "[") && strings.ContainsFunc(rest, unicode.IsLetter) {
		s = "(" + tag[1:] + ")" + rest
	}
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case r == utf8.RuneError:
			space = true
			continue
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mn, r), unicode.Is(unicode.Mc, r):
		case strings.ContainsRune("-.,:@+/'’&#%$€£¥₹()_", r):
		default:
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// MaxEarlier is how many earlier messages of the person a reader may see.
const MaxEarlier = 4

// Input is everything that a reader sees. Its fields are of the two opaque
// types alone; a test holds that.
type Input struct {
	Newest  Words   // the message to read
	Earlier []Words // of the same person, newest first; beyond [MaxEarlier] they are cut
	Offers  []Label // every open offer of that person
}

// LogValue shows sizes, never texts.
func (in Input) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("newest", in.Newest),
		slog.Int("earlier", len(in.Earlier)), slog.Int("offers", len(in.Offers)))
}

// Reading is a class with a probability for each class, indexed by [Class].
// The zero value reads as unclear.
type Reading struct {
	Class Class
	P     [Classes]float64
}

// UnclearReading is the reading of whatever could not be read.
func UnclearReading() Reading { return Reading{Class: Unclear, P: [Classes]float64{Unclear: 1}} }

// sumTolerance allows for probabilities that were rounded to two digits.
const sumTolerance = 0.02

// Valid says whether the class exists, every probability is a number in [0,1]
// and they sum to 1 within 0.02. The class need not be the most probable one:
// a reader may have its own rule, but see [Verdict.Confirms].
func (r Reading) Valid() bool {
	if int(r.Class) >= Classes {
		return false
	}
	sum := 0.0
	for _, p := range r.P {
		// Written so that NaN, for which every comparison is false, fails.
		if !(p >= 0 && p <= 1) {
			return false
		}
		sum += p
	}
	return math.Abs(sum-1) <= sumTolerance
}

// lowered is the only change a guard can make: the class becomes Unclear and
// its probability of confirm goes to unclear.
func (r Reading) lowered() Reading {
	r.P[Unclear] += r.P[Confirm]
	r.P[Confirm] = 0
	r.Class = Unclear
	return r
}

// Reader turns an input into a reading. Fingerprint names kind, model, prompt
// version and weights: a calibration holds for one fingerprint only. Read
// should end when ctx does; whatever it returns late is dropped. Errors are
// never shown to a person and must hold no message text.
type Reader interface {
	Read(ctx context.Context, in Input) (Reading, error)
	Fingerprint() string
}

// Computing is a reader that may wait for nothing: where Computes is true it is
// done in microseconds whatever it reads, and [Read] asks it in place. Handing
// such a question to a goroutine and its answer back takes longer than the answer.
type Computing interface {
	Reader
	Computes() bool
}

// ReadDeadline is how long a reader may take.
const ReadDeadline = 2 * time.Second

// ActThreshold is the least probability of confirm at which code acts.
const ActThreshold = 0.9

// NewThreshold checks a configured threshold: it fails with [ErrThreshold]
// below [ActThreshold], above 1 and on NaN. The value that comes with an error
// is 1.
func NewThreshold(p float64) (float64, error) {
	if !(p >= ActThreshold && p <= 1) {
		return 1, ErrThreshold
	}
	return p, nil
}

// Options of [Read]. The zero value is the production setting.
type Options struct {
	// Deadline for the reader; 0 or anything above [ReadDeadline] means [ReadDeadline].
	Deadline time.Duration
}

// Verdict is a reading after the guards, with what led to it.
type Verdict struct {
	Reading  Reading  // after guards: what code may act on
	Raw      Reading  // what the reader said; unclear if it failed
	Guards   []string // names of the guards that lowered Raw, in their order; all that object are named
	Prepared Prepared // what the text was taken for
	Err      error    // why the reader's answer was not used; nil if it was
}

// LogValue shows the decision, never the words it was about.
func (v Verdict) LogValue() slog.Value {
	return slog.GroupValue(slog.String("class", v.Reading.Class.String()), slog.Float64("p", v.Reading.P[v.Reading.Class%Classes]),
		slog.String("raw", v.Raw.Class.String()), slog.Any("guards", v.Guards), slog.Any("prepared", v.Prepared), slog.Any("err", v.Err))
}

// Confirms says whether code may act on this verdict: the class is confirm and
// its probability at least the threshold. A threshold below [ActThreshold]
// counts as ActThreshold; NaN never confirms.
func (v Verdict) Confirms(threshold float64) bool {
	return v.Reading.Class == Confirm &&
		v.Reading.P[Confirm] >= ActThreshold &&
		v.Reading.P[Confirm] >= threshold
}
