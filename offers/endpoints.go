package offers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// Endpoint is a URL of an agent's backend to which an account's events are posted, signed.
//
// Its secret is stored as it is, because each event is signed with it: whoever reads the database can sign events in
// our name, which can tell an agent things that did not happen but releases nothing, since only begin hands out
// arguments. JSON and logs leave the secret out, and logs leave out the URL, whose query may hold one.
type Endpoint struct {
	ID          string     `json:"id"`
	URL         string     `json:"url"`
	CreatedAt   time.Time  `json:"created_at"`
	DisabledAt  *time.Time `json:"disabled_at,omitempty"` // it said 410; nothing is sent until it is enabled
	Seq         int64      `json:"seq"`                   // events done with, delivered or dead
	Attempts    int        `json:"attempts,omitempty"`    // failed tries of the event that is next
	NextTry     *time.Time `json:"next_try,omitempty"`
	LastStatus  int        `json:"last_status,omitempty"`
	LastFailure Failure    `json:"last_failure,omitempty"`
	AnsweredAt  *time.Time `json:"answered_at,omitempty"` // the last 2xx
	Dead        int        `json:"dead"`                  // letters that are dead

	AccountID string `json:"-"`
	Secret    string `json:"-"`
}

// LogValue keeps the secret and the URL out of logs.
func (e Endpoint) LogValue() slog.Value { return slog.GroupValue(slog.String("id", e.ID)) }

// Delivery is one event on its way to one endpoint, claimed for the time of a lease.
type Delivery struct {
	Endpoint Endpoint
	Event    Event
	Seq      int64  // 1, 2, 3 … for each endpoint; the same for every try of an event
	Attempts int    // failed tries before this one
	Position string // the event's place in the feed
	LetterID string // of the dead letter that is tried again; empty: the event is the feed's next
	Ticket   int64  // proof of the claim
}

// LogValue says what is needed to find the delivery again.
func (d Delivery) LogValue() slog.Value {
	return slog.GroupValue(slog.String("endpoint", d.Endpoint.ID), slog.String("event", d.Event.ID), slog.Int64("seq", d.Seq))
}

// DeadLetter is an event that an endpoint did not take within the schedule.
type DeadLetter struct {
	ID          string     `json:"id"`
	EndpointID  string     `json:"endpoint_id"`
	EventID     string     `json:"event_id"`
	EventType   EventType  `json:"event_type"`
	Seq         int64      `json:"seq"`
	Attempts    int        `json:"attempts"`
	LastStatus  int        `json:"last_status,omitempty"`
	LastFailure Failure    `json:"last_failure,omitempty"`
	DeadAt      *time.Time `json:"dead_at,omitempty"`  // nil: it is being tried again
	NextTry     *time.Time `json:"next_try,omitempty"` // with DeadAt nil
}

// Failure says why no answer came. The zero value: one did.
type Failure string

// Failures.
const (
	FailedSecret     Failure = "bad_secret"      // the stored secret cannot sign
	FailedAddress    Failure = "address_refused" // the URL, or an address that its name has, is one that may not be called
	FailedName       Failure = "dns"             // the name has no address
	FailedTimeout    Failure = "timeout"         //
	FailedTLS        Failure = "tls"             // no TLS there, or no certificate that we trust
	FailedConnection Failure = "connection"      // refused, reset, or not HTTP
)

// Attempt is what came of one try.
type Attempt struct {
	Status  int // 0: no answer came
	Failure Failure
}

// gone is the HTTP status of an endpoint that wants nothing any more.
const gone = 410

// Fate is what follows from a try.
type Fate int

// Fates. The zero value loses nothing.
const (
	FateRetry     Fate = iota // the same event again, later
	FateDelivered             // the next event
	FateDead                  // the next event; this one can be put back by hand
	FateDisabled              // nothing more for this endpoint; this event stays the next
)

// retryAfter is the schedule: how long after the first, second … failed try the next one comes. With the last of them
// failed as well, the event is dead. Together they are 73 minutes, which is what one event that an endpoint cannot
// digest may hold up the events behind it; an endpoint that is down for longer loses one event to the dead letters for
// every such time, and gets the rest in order when it is back.
var retryAfter = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

// Judge says what follows from a try that had failed failed tries before it, and for FateRetry in which time. jitter
// is in [0, 1) and spreads the time by a fifth to either side, so that endpoints that failed together do not come
// back together.
func (a Attempt) Judge(failed int, jitter float64) (Fate, time.Duration) {
	switch {
	case a.Failure == "" && a.Status >= 200 && a.Status <= 299: // mutant: endpoints-2xx
		return FateDelivered, 0
	case a.Failure == "" && a.Status == gone: // mutant: endpoints-410
		return FateDisabled, 0
	case failed >= len(retryAfter): // mutant: endpoints-dead-after
		return FateDead, 0
	}
	return FateRetry, time.Duration(float64(retryAfter[failed]) * (0.8 + 0.4*jitter)) // mutant: endpoints-jitter
}

// ErrLeaseLost says that another worker has claimed the endpoint since: the try is not recorded.
var ErrLeaseLost = errors.New("the lease of the delivery is over")

// EndpointStore keeps endpoints, and which event each of them gets next.
//
// Every event that commits after an endpoint was added goes to it in the feed's order, numbered without gaps, at least
// once. One at a time: an event that fails holds up those behind it, of its endpoint alone, until it is delivered or
// dead. A dead letter that is put back goes out under its old number, between the others, and holds up nothing.
//
// A claim is a lease with a ticket, renewed for as long as the try lasts. Where a process dies between sending and
// recording, the lease ends and the same event goes out again with the same id and seq; where it only stood still, its
// ticket is too old to record anything.
type EndpointStore interface {
	// AddEndpoint stores an endpoint, which begins at the feed's end. Errors: people.ErrNoAccount.
	AddEndpoint(ctx context.Context, e Endpoint) error
	// Endpoints lists an account's endpoints, oldest first, without secrets.
	Endpoints(ctx context.Context, accountID string) ([]Endpoint, error)
	// RemoveEndpoint deletes an endpoint with its dead letters. Errors: ErrNotFound.
	RemoveEndpoint(ctx context.Context, accountID, id string) error
	// EnableEndpoint lets an endpoint go on where it stood, at once. Errors: ErrNotFound.
	EnableEndpoint(ctx context.Context, accountID, id string) error

	// DeadLetters lists an account's letters, by endpoint and number.
	DeadLetters(ctx context.Context, accountID string) ([]DeadLetter, error)
	// RetryDead puts a letter back, with the whole schedule before it. Errors: ErrNotFound.
	RetryDead(ctx context.Context, accountID, letterID string) error

	// ClaimDelivery claims, for the time of the lease, the endpoint that has waited longest among those that are
	// enabled, not claimed and have something due, and returns what is to be sent. nil: there is none.
	ClaimDelivery(ctx context.Context, lease time.Duration) (*Delivery, error)
	// RenewDelivery lets a claim hold for the time of the lease from now on. Errors: ErrLeaseLost.
	RenewDelivery(ctx context.Context, d Delivery, lease time.Duration) error
	// RecordDelivery stores what came of a try and ends the claim. retryIn counts with FateRetry.
	// Errors: ErrLeaseLost.
	RecordDelivery(ctx context.Context, d Delivery, a Attempt, fate Fate, retryIn time.Duration) error
}

const secretPrefix = "whsec_"

// Sizes of an endpoint's secret, in bytes, as the scheme has them.
const (
	newSecret = 32
	minSecret = 24
	maxSecret = 64
)

// NewEndpointSecret makes a secret: whsec_ and 32 random bytes in base64.
func NewEndpointSecret() string {
	var b [newSecret]byte
	_, _ = rand.Read(b[:]) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// ErrBadSecret says that a secret cannot sign.
var ErrBadSecret = errors.New("not an endpoint secret: want whsec_ and 24 to 64 bytes in base64")

// EndpointKey reads the bytes of a secret. An empty one would sign what anybody can sign. Errors: ErrBadSecret.
func EndpointKey(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret { // mutant: endpoints-empty-secret
		return nil, ErrBadSecret
	}
	return key, nil
}
