package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Pairing. Whoever texts a number of ours and is nobody there gets one text with a code. It says nothing about who they
// are: it ties the human who reads it out to the owner to the phone that got it, and only the owner's command line takes
// it. What is texted to us, a code included, pairs nobody.
const (
	// CodeAlphabet has 32 characters; what looks like another one (0 and O, 1 and I) is not among them.
	CodeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	// CodeLen is the number of characters of a code: 40 random bits.
	CodeLen = 8
	// CodeLife is how long a code can be approved.
	CodeLife = time.Hour
	// PromptEvery is the least time between two prompts to one sender.
	PromptEvery = time.Hour
	// MaxPendingCodes is how many codes of one receiving number can be approved at a time.
	MaxPendingCodes = 3
	// MaxWrongCodes is how many codes that are none an account may try within CodeLife, before every code is refused.
	MaxWrongCodes = 10
)

// What is kept of texts of people who may decide nothing, within any hour. Beyond it a text is acknowledged, counted and
// forgotten.
const (
	SenderTexts = 10       // of one sender to one number of ours
	SenderBytes = 32 << 10 //
	NumberTexts = 60       // of all strangers to one number of ours
	NumberBytes = 96 << 10 //
	// PendingKept is how long the words of a stranger are kept.
	PendingKept = 30 * 24 * time.Hour
)

// Errors of pairing.
var (
	// ErrBadCode cannot be a code, whatever codes there are.
	ErrBadCode = fmt.Errorf("that cannot be a code: codes have %d letters and digits, and never 0, O, 1 or I", CodeLen)
	// ErrNoCode is one answer for a code that never was, is over, or was used: it helps nobody who guesses.
	ErrNoCode = errors.New("no such code can be approved: it is mistyped, older than an hour, or was used")
	// ErrTooManyCodes answers every code, right or wrong, after MaxWrongCodes.
	ErrTooManyCodes = errors.New("too many wrong codes within an hour: none is taken for now")
	// ErrNobody refuses to promote a text whose sender is no active person.
	ErrNobody  = errors.New("the sender is not paired, or not active")
	ErrBadSlug = errors.New("not an account id: want small letters, digits and hyphens, at most 63")
	ErrIDTaken = errors.New("there is an account with that id")
)

// NewCode makes a code. Every character is five random bits, so that no letter comes more often than another.
func NewCode() string {
	var b [CodeLen]byte
	_, _ = rand.Read(b[:]) // it never returns an error
	for i := range b {
		b[i] = CodeAlphabet[int(b[i])%len(CodeAlphabet)] // 256 is a multiple of 32
	}
	return string(b[:])
}

// ParseCode reads a code as an owner types it: in any case, with spaces and dashes anywhere and a dot at the end. No other
// character is repaired: of 0, O, 1 and I nobody can say which one of the alphabet was meant. Errors: ErrBadCode.
func ParseCode(typed string) (string, error) {
	typed = strings.TrimSuffix(strings.TrimRightFunc(typed, unicode.IsSpace), ".")
	var b strings.Builder
	for _, r := range typed {
		switch {
		case unicode.IsSpace(r), unicode.Is(unicode.Pd, r):
			continue
		case 'a' <= r && r <= 'z':
			r -= 'a' - 'A'
		}
		if r > unicode.MaxASCII || !strings.ContainsRune(CodeAlphabet, r) { // mutant: people.code-alphabet
			return "", ErrBadCode
		}
		b.WriteRune(r)
	}
	if b.Len() != CodeLen {
		return "", ErrBadCode
	}
	return b.String(), nil
}

// PromptText is what a stranger gets. It is one message of GSM-7 characters.
func PromptText(code string) string {
	return "This number does not know you yet. Your code: " + code[:CodeLen/2] + "-" + code[CodeLen/2:] +
		". Tell the owner, who has an hour to enter it; texting it back does nothing. STOP ends this."
}

// WelcomeText tells somebody that the owner has approved their code.
func WelcomeText(name string) string {
	return "You are known here now, " + name + ". You will be asked by text. Reply STOP to get none."
}

// Flood is what was kept of strangers within the last hour, read under the lock of the receiving number.
type Flood struct {
	SenderTexts, SenderBytes int // of this sender to this number
	NumberTexts, NumberBytes int // of all strangers to this number
}

// Keeps says whether one more text of that many bytes is kept. The zero value keeps what fits alone.
func (f Flood) Keeps(bytes int) bool {
	return f.SenderTexts < SenderTexts && // mutant: people.flood-sender-texts
		f.SenderBytes+bytes <= SenderBytes && // mutant: people.flood-sender-bytes
		f.NumberTexts < NumberTexts && // mutant: people.flood-number-texts
		f.NumberBytes+bytes <= NumberBytes // mutant: people.flood-number-bytes
}

// Keyword is a carrier's word, as it stands alone in a text or comes beside it.
type Keyword string

// Keywords.
const (
	KeywordStop  Keyword = "STOP"
	KeywordStart Keyword = "START"
	KeywordHelp  Keyword = "HELP"
)

// PromptFacts decide whether a stranger is sent a code. They are read under the lock of the receiving number.
type PromptFacts struct {
	Address  Address // empty: nobody could be answered
	Keyword  Keyword
	Plain    bool // words to us alone, and nothing else
	OptedOut bool // said STOP before, and not START since
	Prompted bool // within PromptEvery
	Pending  int  // codes of the receiving number that can be approved
}

// Prompts says whether a prompt goes out. A text that gets none costs no text of ours.
func (f PromptFacts) Prompts() bool {
	return f.Address != "" && f.Plain && // mutant: people.prompt-plain
		f.Keyword == "" && // mutant: people.prompt-keyword
		!f.OptedOut && // mutant: people.prompt-opted-out
		!f.Prompted && // mutant: people.prompt-hourly
		f.Pending < MaxPendingCodes // mutant: people.prompt-pending
}

// Prompt is one text to a stranger. The code stands in its row as it is: the row is committed before the provider is
// called, and the text is made from it. A hash would guard nothing. Whoever reads the table learns which phone a code was
// sent to, and can do nothing with it: a code names its own phone, not the one who knows it, and it is taken from the
// owner's command line alone, which needs the right to write to these very tables. It is erased when it is used or over.
type Prompt struct {
	ID        string
	Address   Address
	OurNumber Address
	Code      string
}

// LogValue keeps the code and the numbers out of logs.
func (p Prompt) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", p.ID), slog.String("channel", p.Address.Channel()))
}

// PromptState is where a prompt is on its way. Nothing brings one back to queued: it is sent once.
type PromptState string

// States of a prompt.
const (
	PromptQueued   PromptState = "queued"
	PromptSending  PromptState = "sending"
	PromptAccepted PromptState = "accepted"
	PromptRejected PromptState = "rejected"
	PromptUnknown  PromptState = "unknown" // the provider may or may not have taken it
)

// Approval makes a person of whoever was sent a code.
type Approval struct {
	AccountID string
	Code      string // as ParseCode returns it
	PersonID  string // of the new person
	Name      string // cleaned
	Tier      string
	Welcome   string // a text to the new person; empty: none
}

// Pending is a sender whose texts decide nothing, and what is kept of them. It is for the owner alone.
type Pending struct {
	Address   Address       `json:"address"`              // empty: nobody could be answered
	OurNumber Address       `json:"our_number"`           //
	Name      string        `json:"name"`                 // what the sender calls itself, cleaned; never identity
	PersonID  string        `json:"person_id,omitempty"`  // a person who is suspended, or was paired since
	Code      string        `json:"code"`                 // none, waiting or over; the code itself is not told
	ExpiresAt *time.Time    `json:"expires_at,omitempty"` // of a code that waits
	Prompt    PromptState   `json:"prompt,omitempty"`     //
	OptedOut  bool          `json:"opted_out"`            //
	Texts     []PendingText `json:"texts"`                // oldest first
}

// What Pending.Code says.
const (
	CodeNone    = "none"
	CodeWaiting = "waiting"
	CodeOver    = "over"
)

// PendingText is one text that decides nothing, with where it came from. It redacts itself in logs.
type PendingText struct {
	MessageID  string    `json:"message_id"`
	ReceivedAt time.Time `json:"received_at"`
	Provider   string    `json:"provider"`
	ProviderID string    `json:"provider_id"`
	RawSHA256  string    `json:"raw_sha256"` // of the bytes that came, which the message's row holds
	Lossy      bool      `json:"lossy"`
	Text       string    `json:"text"`
}

// LogValue keeps the words out of logs.
func (t PendingText) LogValue() slog.Value {
	return slog.GroupValue(slog.String("message_id", t.MessageID), slog.Int("bytes", len(t.Text)))
}

// PairingCounts is what an account is told of the floods at its numbers, and of wrong codes.
type PairingCounts struct {
	Dropped    int64 `json:"dropped"`     // texts of strangers beyond the limits, ever
	WrongCodes int   `json:"wrong_codes"` // within the hour
}

// Unbound says why an address is a person's no more.
type Unbound string

// Reasons.
const (
	UnboundDead  Unbound = "dead_number" // the carrier says so
	UnboundIdle  Unbound = "idle"        // no text from there for too long
	UnboundOwner Unbound = "owner"
)

// Unbinding is the end of a binding.
type Unbinding struct {
	Binding
	Why Unbound   `json:"why"`
	At  time.Time `json:"at"`
}

// Account is one owner's world.
type Account struct {
	ID                string    `json:"id"`
	AskingIsApproving bool      `json:"asking_is_approving"`
	StandingByText    string    `json:"standing_by_text"` // ask or direct
	Numbers           []Address `json:"numbers"`          // of ours, whose strangers are this account's
	CreatedAt         time.Time `json:"created_at"`
}

var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// ParseAccountID takes a slug; a UUID is one. Errors: ErrBadSlug.
func ParseAccountID(s string) (string, error) {
	if !slug.MatchString(s) {
		return "", ErrBadSlug
	}
	return s, nil
}

// AccountStore keeps accounts.
type AccountStore interface {
	// AddAccount makes an account. Errors: ErrIDTaken.
	AddAccount(ctx context.Context, id string) error
	// Accounts lists all of them in the order they were made.
	Accounts(ctx context.Context) ([]Account, error)
	// SetAskingIsApproving changes whether a call that the person has asked for needs no yes. Errors: ErrNoAccount.
	SetAskingIsApproving(ctx context.Context, id string, on bool) error
	// SetStandingByText says what becomes of a standing permission that is asked for by text. Errors: ErrNoAccount.
	SetStandingByText(ctx context.Context, id, mode string) error
	// GiveNumber makes the strangers who write to a number of ours this account's, from now on. Errors: ErrNoAccount.
	GiveNumber(ctx context.Context, id string, our Address) error
}

// PairingStore keeps strangers, codes and what the owner does about them. No method is reached by anything that came in
// over a channel.
type PairingStore interface {
	// Approve turns a code into a person with a bound address and a thread, uses the code up and tells the agent, in one
	// transaction. A code that is none is counted. Errors: ErrNoCode, ErrTooManyCodes, ErrAddressTaken, ErrNoAccount;
	// after the last two the code can be used again.
	Approve(ctx context.Context, a Approval) (Person, error)
	// Strangers lists senders whose texts decide nothing, the one who wrote last first.
	Strangers(ctx context.Context, accountID string) ([]Pending, PairingCounts, error)
	// Promote makes a pending text evidence of the active person who has its address now. It stays decided: no offer can
	// ever be approved by it, no reader sees it and it has no run. It returns the person's id. Errors: ErrNotFound (no
	// such pending text), ErrNobody.
	Promote(ctx context.Context, accountID, messageID string) (personID string, err error)

	// Bind ties one more address to a person. Errors: ErrNotFound, ErrAddressTaken.
	Bind(ctx context.Context, accountID, personID string, b Binding) error
	// Unbind ends a binding; what is open at it is withdrawn. Errors: ErrNotFound.
	Unbind(ctx context.Context, accountID, personID string, b Binding) error
	// UnbindIdle ends bindings that have had no text from the person for that long, as if the number were dead, and
	// returns how many. A person whose bindings cannot be ended keeps nobody else's; the error names each of them.
	UnbindIdle(ctx context.Context, idle time.Duration) (int, error)
	// ForgetPending erases what strangers wrote longer than PendingKept ago, and codes that are over. It returns how many
	// rows it changed.
	ForgetPending(ctx context.Context) (int, error)
}

// PendingListed is how many texts Strangers looks at.
const PendingListed = 1000

// PendingRow is one text, as a store finds it.
type PendingRow struct {
	PendingText
	Address   Address
	OurNumber Address
	PersonID  string
	Name      string
	Raw       []byte
	OptedOut  bool
}

// PendingCode is one code, as a store finds it.
type PendingCode struct {
	Address   Address
	OurNumber Address
	ExpiresAt time.Time
	Waits     bool
	Prompt    PromptState
}

// GroupPending makes the owner's list of texts, newest first, and codes, oldest first.
func GroupPending(texts []PendingRow, codes []PendingCode) []Pending {
	out := []Pending{}
	at := map[Binding]int{}
	for _, t := range texts {
		b := Binding{t.Address, t.OurNumber}
		i, known := at[b]
		if !known {
			i = len(out)
			at[b] = i
			out = append(out, Pending{Address: t.Address, OurNumber: t.OurNumber, Name: t.Name, PersonID: t.PersonID, OptedOut: t.OptedOut, Code: CodeNone})
		}
		sum := sha256.Sum256(t.Raw)
		t.RawSHA256 = hex.EncodeToString(sum[:])
		out[i].Texts = append(out[i].Texts, t.PendingText)
	}
	for i := range out {
		slices.Reverse(out[i].Texts)
	}
	for _, c := range codes {
		i, known := at[Binding{c.Address, c.OurNumber}]
		if !known {
			continue
		}
		out[i].Code, out[i].ExpiresAt, out[i].Prompt = CodeOver, nil, c.Prompt
		if c.Waits {
			out[i].Code, out[i].ExpiresAt = CodeWaiting, &c.ExpiresAt
		}
	}
	return out
}
