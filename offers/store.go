package offers

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// Store keeps runs, operations, offers, texts, messages, events and the ledger.
//
// The thread row of a person is the one lock. Every method that changes what a decision reads takes it first, in the
// order thread, operation, offer, texts, and reads the clock only after it holds it. The store's clock is the only
// one: the database's on PostgreSQL, the process's on SQLite. No transaction stays open during a call to a provider
// or a reader. A driver's error comes back wrapped; it never reads as an answer.
type Store interface {
	Proposer
	Inbox
	Line
	Sweeper
	Runs
	Confirms
	Phones
	Pages
	Permissions

	// Operation returns one operation with its offer. Errors: ErrNotFound.
	Operation(ctx context.Context, accountID, id string) (Operation, error)
	// Offer returns one offer. Errors: ErrNotFound.
	Offer(ctx context.Context, accountID, id string) (Offer, error)
	// Offers lists an account's offers, newest first.
	Offers(ctx context.Context, accountID string, f Filter) ([]Offer, error)
	// Withdraw ends an offer that no yes has reached. Errors: ErrNotFound; ErrOfferClosed with the offer as it is.
	Withdraw(ctx context.Context, accountID, id string, by Closer) (Offer, error)

	// Begin hands out the exact arguments, once: the operation is approved or allowed, the deadline has not passed,
	// the hash is the one that was shown, and the person is active with a tier that still holds the capability.
	// Errors: ErrNotFound; ErrHashMismatch; ErrAlreadyBegun and ErrNotApproved, both with the operation as it is.
	Begin(ctx context.Context, b BeginRequest) (Operation, error)
	// Finish closes a running operation with its result and, for an approved one, puts the receipt in line.
	// The same result again gets the same answer.
	// Errors: ErrNotFound; ErrNotBegun and ErrAlreadyBegun (another result is there), both with the operation.
	Finish(ctx context.Context, f FinishRequest) (Operation, error)

	// Events returns up to limit events of an account in commit order after the position, and the next position.
	// The empty position is the start. Nothing that commits later can come before a position that was returned.
	// Errors: ErrBadPosition.
	Events(ctx context.Context, accountID, after string, limit int) (events []Event, next string, err error)

	// Ledger returns a person's rows in order.
	Ledger(ctx context.Context, accountID, personID string) ([]ledger.Row, error)
}

// Proposer turns a proposal into an operation.
type Proposer interface {
	// Propose makes run (for the short way in), operation, offer, ledger row, event and idempotency key in one
	// transaction. It collects the facts under the person's lock and asks decide, which is pure, once; and again, with
	// the permission barred, where the answer rests on one that cannot be spent. An error of decide goes out as it is and
	// stores nothing. A key that was used before gets the earlier operation,
	// with again = true; a concurrent duplicate waits for the first. If an old offer is to be superseded it is closed
	// in the same transaction.
	// Errors: ErrNotFound (person, run or superseded offer), ErrNoAddress, ErrRunExpired, ErrIdempotencyConflict,
	// ErrOfferClosed (the superseded offer), ErrLedgerUnavailable.
	Propose(ctx context.Context, p Proposal, decide func(Facts) (Plan, error)) (op Operation, again bool, err error)
}

// Proposal is what came in over HTTP, already canonical.
type Proposal struct {
	AccountID string
	Call      string // which call the key belongs to, such as "POST /v1/offers"
	Key       string // Idempotency-Key
	BodySum   Digest // of the whole body's canonical form
	KeyID     string // of the key that the call was made with; empty: none

	// Exactly one of RunID, PersonID and Address is set. The last two are the short way in: a new run is made.
	RunID    string
	PersonID string
	Address  people.Address

	Kind       string
	Tool       string
	Args       []byte // canonical, see Canonical
	ArgsSum    Digest
	Supersedes string
	Present    Present
	Reaches    []string // every spelling of every recipient under which it may be one of the account's own addresses
}

// Facts are what the gate's turn and the shown text are made of, read under the person's lock.
type Facts struct {
	Now               time.Time
	OperationID       string
	Run               Run
	Person            people.Person
	Reachable         bool           // active, with a bound address
	Address           people.Address // where an ask would be shown
	OurNumber         people.Address
	OwnAddresses      []string // those of Reaches that are the account's: bound ones and those of its own list
	AskingIsApproving bool
	Permissions       []Permission      // the person's, granted and neither revoked nor expired
	Barred            []string          // ids of permissions that could not be spent
	Names             map[string]string // of Reaches those that exactly one contact has, by that contact's name
	Superseded        *Offer
}

// Plan is what is to be stored. Offer is set if, and only if, the decision is to ask.
type Plan struct {
	Decision gate.Decision
	Offer    *Draft
	Served   []string // whom the decision's permission has served with this call, by the names that were said
	Taints   bool     // from now on the run and all of its root have read what a stranger may have written
	Say      string   // an allowed text to the run's own person: the service sends it and the operation has succeeded
}

// Draft is the part of an offer that code composed.
type Draft struct {
	Label         string
	ShownText     string
	AskLine       string
	BindingSum    Digest
	PolicyVersion string
	TTL           time.Duration // from shown to expired
	Settle        time.Duration
	TokenSum      *Digest // of the page's token, where the text has one
}

// Filter narrows a list of offers. Empty fields do not narrow; Limit 0 means 100.
type Filter struct {
	PersonID string
	State    State
	Limit    int
}

// BeginRequest is an executor's claim to run an operation.
type BeginRequest struct {
	AccountID   string
	OperationID string
	ArgsSum     Digest
	By          string // the key's id
}

// FinishRequest closes a running operation.
type FinishRequest struct {
	AccountID   string
	OperationID string
	Result      Result // At is the store's to set
	Receipt     string // the text to the person; empty: none
	SetsUp      string // name of the schedule that a success sets up; empty: none
}

// Inbox is the way of one inbound message to one outcome.
type Inbox interface {
	// Receive stores a message and makes its run, once for ever per provider id. Address and our number name the
	// person; a message of nobody, or of a suspended person, is stored as pending: no run, no context, no event. Beyond
	// what is kept of such senders within an hour it is counted and forgotten: no MessageID comes back. A stranger may be
	// given a code, in the same transaction; see people.PromptFacts.
	// A message that was there already comes back with Duplicate set and nothing else changed.
	Receive(ctx context.Context, in Inbound) (Received, error)
	// Context loads what a decision about a stored message needs. Errors: ErrNotFound.
	Context(ctx context.Context, messageID string) (Received, error)
	// Listening says whether an agent that could ask the person itself is there: a moment ago each key with an offer live
	// here has read events, or an endpoint of the account has answered.
	Listening(ctx context.Context, accountID, personID string) (bool, error)
	// Undecided lists trusted messages that nobody has decided, received before the age, oldest first.
	Undecided(ctx context.Context, age time.Duration, limit int) ([]string, error)

	// Consume is the one conditional update that turns an open offer into an approved operation. Every condition
	// stands in its WHERE. A refusal comes back as a *Refusal that says why; the message is then still undecided.
	// The same message again finds its own win, with Repeat set.
	Consume(ctx context.Context, c ConsumeRequest) (Win, error)
	// CloseByReply ends the open offer as declined or modified, under the conditions of Consume that make the
	// answer one to this offer (person, address, newest message, last text, only open offer).
	// Errors: *Refusal.
	CloseByReply(ctx context.Context, c CloseRequest) (Offer, error)
	// Pass records a message as decided without touching an offer, with one event: message.received or
	// reply.unresolved. Reask names an offer whose question is put to the person again; it is dropped when that
	// offer is closed meanwhile, when it was asked again MaxReasks times, or over the hourly limit.
	Pass(ctx context.Context, p PassRequest) error
}

// Inbound is one message as the provider gave it.
type Inbound struct {
	Provider   string // twilio or sim
	ProviderID string // MessageSid
	Address    people.Address
	OurNumber  people.Address
	Text       string // valid UTF-8
	Raw        []byte // the very bytes that came, for the record
	Lossy      bool   // Text is not all of what was sent
	Quoted     string // provider id of the text of ours that it answers, if the platform says so
	OptOut     string // the provider's own word: STOP, START or HELP; empty: none

	// What only matters of a sender who is nobody.
	Keyword people.Keyword // the word that stands alone in the text, or OptOut
	Name    string         // what the sender calls itself, cleaned: never identity
}

// LogValue keeps the text and the numbers out of logs.
func (in Inbound) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", in.Provider), slog.String("provider_id", in.ProviderID),
		slog.Int("bytes", len(in.Raw)))
}

// Received is a stored message and the context of a decision about it.
type Received struct {
	MessageID string
	AccountID string
	PersonID  string // empty: nobody's
	RunID     string
	Tier      string
	Trusted   bool
	Lossy     bool
	Duplicate bool
	Decided   bool
	Overtaken bool // a newer message of the person is there
	Text      string
	Earlier   []string // the same person's earlier messages of the last 24 h, newest first, at most 4
	Live      []Offer  // open and sending offers of the person, oldest first
	Quoted    string   // provider id of the text that it answers; empty: none
	QuotedFor string   // the offer that text was about; empty: none of ours, or about none
	OptOut    string   // the provider's own word: STOP, START or HELP
	OptedOut  bool     // no text goes to its address
	Settling  int      // yeses of the person that settle
	Listening bool     // as Inbox.Listening says, once it was asked; a yes goes without
	Prompted  bool     // a code goes out to the sender, who is nobody
}

// LogValue keeps texts out of logs.
func (r Received) LogValue() slog.Value {
	return slog.GroupValue(slog.String("message_id", r.MessageID), slog.Int("live", len(r.Live)))
}

// ReadingRecord is what is stored of a reading.
type ReadingRecord struct {
	Class  string             `json:"class"` // after guards
	P      map[string]float64 `json:"p"`
	RawP   float64            `json:"raw_p"` // of confirm, before guards
	Guards []string           `json:"guards,omitempty"`
	Reader string             `json:"reader"` // fingerprint
}

// ConsumeRequest asks to turn an open offer into an approved operation.
type ConsumeRequest struct {
	Offer     Offer // as it was read; its id, hash and binding must still hold
	MessageID string
	PersonID  string
	RunID     string // the message's own run
	Closer    Closer
	Reading   ReadingRecord
	Tiers     []string // that hold the offer's capability
	Names     bool     // the words name this offer and no other, so that texts which cross leave no doubt
	MinRead   time.Duration
}

// Win is an offer consumed.
type Win struct {
	Offer     Offer
	Operation Operation
	Repeat    bool // the same message had won before
	Queued    bool // the person has queued offers: call Advance
}

// CloseRequest asks to end an offer by a reply.
type CloseRequest struct {
	Offer     Offer
	MessageID string
	PersonID  string
	State     State // Declined or Modified
	Closer    Closer
	Reading   ReadingRecord
	Receipt   string                // the text to the person; empty: none
	Tell      *ReplyData            // message.received to the agent, with a modify
	Ends      func(Permission) bool // as in [PassRequest]
}

// PassRequest records a message as decided.
type PassRequest struct {
	MessageID string
	PersonID  string
	Type      EventType // MessageReceived or ReplyUnresolved
	Data      ReplyData
	Reading   ReadingRecord
	Reask     string // offer id
	ReaskText string
	Hourly    int // questions and notices of the service's own to one person within an hour; 0: HourlyTexts
	// Listed are the offers that the text numbers, in the order of their numbers: it counts for the named one, a yes to it is
	// a yes to none, and a number is one of these or nothing. A list that is new is sent even where the named offer was
	// asked about MaxReasks times. Empty: the text is no list.
	Listed []string
	// Asked is what the message asks for in the person's own words. It becomes permissions in the same transaction, where
	// the person is an active owner and the message the newest of theirs.
	Asked []said.Intent
	// Ends are the permissions that the message's words end, beside what else it says; nil: none. A receipt names them.
	Ends func(Permission) bool
	// TakesBack ends what the person's earlier messages asked for once: what has not begun does not begin.
	TakesBack bool
}

// HourlyLimit is how many questions and notices of the service's own the person may have had within the hour before this.
func (p PassRequest) HourlyLimit() int {
	if p.Hourly == 0 {
		return HourlyTexts
	}
	return p.Hourly
}

// Refusal says why an offer was not consumed. It explains; it never grants.
type Refusal struct {
	Why Why
}

func (r *Refusal) Error() string { return "not consumed: " + string(r.Why) }

// Why is the stable code of a refusal, in the order in which conditions are looked at.
type Why string

// Refusals of Consume and CloseByReply.
const (
	WhyGone         Why = "offer_unknown"
	WhyDecided      Why = "message_decided"     // this message has decided something else, or is not the person's
	WhySuspended    Why = "person_not_active"   //
	WhyTier         Why = "tier_lacks"          // the tier does not hold the tool's capability
	WhyPerson       Why = "other_person"        //
	WhyAddress      Why = "other_address"       // not the address at which it was shown, or not our number that sent it
	WhySameRun      Why = "same_run"            // the message's run has the root of the run that proposed
	WhyConsumed     Why = "consumed"            //
	WhyClosed       Why = "closed"              // declined, withdrawn, superseded …
	WhyNotShown     Why = "not_shown"           // queued or sending
	WhyExpired      Why = "expired"             //
	WhyHash         Why = "other_arguments"     //
	WhyNewer        Why = "newer_message"       //
	WhySeveral      Why = "several_open"        //
	WhyLastText     Why = "not_the_last_text"   //
	WhyUnconfirmed  Why = "last_text_unproven"  // its outcome is unknown
	WhyTooSoon      Why = "too_soon"            // within min_read of the newest ask
	WhyCrossed      Why = "texts_crossed"       // another ask was on the screen just before
	WhyQuoted       Why = "quotes_another_text" // the reply answers another text than this offer's
	WhyNotListed    Why = "not_listed"          // the number stands in no list that was shown last and still holds
	WhyUnexplained  Why = "unexplained"         // every condition holds by now: something changed in between
	WhyTapback      Why = "tapback"             // not the store's: a reaction, which by itself confirms nothing
	WhyReadingSays  Why = "reading"             // not the store's: the reading itself was not a sure yes
	WhyReaderFailed Why = "reader_failed"
)

// Line is the way of texts out: one first-in-first-out line per person.
type Line interface {
	// Reserve takes the first queued text of some person who has none on its way, as sending, and commits that before
	// it returns. nil: there is none.
	Reserve(ctx context.Context) (*Text, error)
	// Sent records the provider's answer. Accepted opens the offer that the text shows, and starts its clock;
	// rejected makes that offer undeliverable; unknown leaves it sending.
	Sent(ctx context.Context, textID string, o SendResult) error
	// Say puts a text that is about no offer in a person's line. While exactly one offer is open, its question is
	// repeated at the end of the same text.
	Say(ctx context.Context, accountID, personID string, kind TextKind, body string) error
	// Texts lists a person's texts by number.
	Texts(ctx context.Context, accountID, personID string) ([]Text, error)
}

// TextKind says what a text is for.
type TextKind string

// Kinds of text. Show, Reask are about an offer; the others carry a re-ask at their end while one is open.
const (
	TextShow    TextKind = "show"
	TextReask   TextKind = "reask"
	TextReceipt TextKind = "receipt"
	TextMessage TextKind = "message" // of the agent, to its own person
	TextNotice  TextKind = "notice"
)

// TextState is where a text is on its way.
type TextState string

// States of a text. Unknown: the provider may or may not have taken it; it counts as seen and makes nothing
// confirmable.
const (
	TextQueued   TextState = "queued"
	TextSending  TextState = "sending"
	TextAccepted TextState = "accepted"
	TextRejected TextState = "rejected"
	TextUnknown  TextState = "unknown"
)

// Text is one outbound text, a numbered row in its person's line.
type Text struct {
	ID         string
	AccountID  string
	PersonID   string
	Number     int64
	Kind       TextKind
	OfferID    string // what it is about; empty: nothing
	Address    people.Address
	OurNumber  people.Address
	Body       string
	State      TextState
	ProviderID string
	Code       int // the provider's error code
}

// LogValue keeps the body and the numbers out of logs.
func (t Text) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", t.ID), slog.Int64("number", t.Number), slog.String("kind", string(t.Kind)),
		slog.String("state", string(t.State)))
}

// Sweeper does what time brings. Each method works one person at a time and returns how many rows it changed; a
// method that is never called leaves things later, never wrong.
type Sweeper interface {
	// Advance shows the person's oldest queued offer if none is live.
	Advance(ctx context.Context, personID string) (int, error)
	// AdvanceAll does the same for everybody who has a queued offer and none live.
	AdvanceAll(ctx context.Context) (int, error)
	// ExpireDue ends offers whose time is over: as lapsed those that were never shown, as expired all others.
	ExpireDue(ctx context.Context) (int, error)
	// GiveWayDue puts an open offer that lives longer than an outward one back in line, behind the others, when it has
	// gone unanswered for GiveWay and somebody else's turn is due; its life goes on meanwhile.
	GiveWayDue(ctx context.Context) (int, error)
	// SettleDue approves operations whose settling time is over. One waits as long as a message of its person is undecided
	// that came before that: it may take the yes back.
	SettleDue(ctx context.Context) (int, error)
	// GrantDue gives the permissions whose offers were approved, and tells their people.
	GrantDue(ctx context.Context) (int, error)
	// LapseDue ends approved operations that nobody began in time.
	LapseDue(ctx context.Context) (int, error)
	// NoticeDue puts one notice in line for approvals that nobody picked up within NotPickedUp; none to a person who has
	// had that many questions and notices within the hour.
	NoticeDue(ctx context.Context, notice string, hourly int) (int, error)
	// ResendDue takes texts that are sending since SendTimeout as unknown, and shows an offer whose text is unknown
	// since then once more under a new number. Where the last text of an open offer is another one that is unknown, its
	// question is put again, within MaxReasks.
	ResendDue(ctx context.Context) (int, error)
}
