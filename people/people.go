// Package people defines accounts, the humans in them, the addresses they are known by and the keys of their agents.
package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// DefaultAccount exists in every database from its first migration.
const DefaultAccount = "default"

// Errors of a [Store].
var (
	ErrNotFound     = errors.New("not found")
	ErrAddressTaken = errors.New("address is bound already")
	ErrBadAddress   = errors.New("not an address: want sms:+E.164, whatsapp:+E.164 or sim:name")
	ErrBadScope     = errors.New("not a scope: want agent, connector, executor or owner")
	ErrNoAccount    = errors.New("no such account")
)

// Address is a channel and the platform's stable id: sms:+12025550102, whatsapp:+12025550102, sim:alex.
// It redacts itself in logs.
type Address string

var (
	phone   = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
	simName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// ParseAddress takes only the exact form that a provider sends. It never repairs: two spellings of one number must
// not become one person by accident.
func ParseAddress(s string) (Address, error) {
	channel, id, _ := strings.Cut(s, ":")
	switch channel {
	case "sms", "whatsapp":
		if phone.MatchString(id) {
			return Address(s), nil
		}
	case "sim":
		if simName.MatchString(id) {
			return Address(s), nil
		}
	}
	return "", ErrBadAddress
}

// Channel is the part before the colon.
func (a Address) Channel() string { c, _, _ := strings.Cut(string(a), ":"); return c }

// ID is the part after the colon.
func (a Address) ID() string { _, id, _ := strings.Cut(string(a), ":"); return id }

// LogValue keeps the platform id out of logs.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.Channel() + ":[redacted]") }

// State of a person.
type State string

// States. A suspended person's texts are stored and decide nothing; nothing is released on their yes.
const (
	Active    State = "active"
	Suspended State = "suspended"
)

// Person is a human known by an address.
type Person struct {
	ID        string    `json:"id"`
	AccountID string    `json:"account_id"`
	Name      string    `json:"name"`
	Tier      string    `json:"tier"`
	State     State     `json:"state"`
	Addresses []Binding `json:"addresses"`
	CreatedAt time.Time `json:"created_at"`
	// Unbound is what was bound to the person and is no more, oldest first. Lists have it.
	Unbound []Unbinding `json:"unbound,omitempty"`
}

// Binding ties an address to the number of ours that it writes to. A pair of the two belongs to one person at most,
// across all accounts.
type Binding struct {
	Address   Address `json:"address"`
	OurNumber Address `json:"our_number"`
}

// CleanName prepares a display name: control, format and line-breaking characters, whatever else a screen may not show,
// and the brackets that mark envelopes are dropped, white space is folded, at most 60 characters are kept.
func CleanName(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '[' || r == ']' || unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), r == '\u2800':
		case unicode.IsSpace(r) || unicode.Is(unicode.Z, r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	out := []rune(strings.Join(strings.Fields(b.String()), " "))
	if len(out) > 60 {
		out = out[:60]
	}
	return string(out)
}

// Scope says what a key may call.
type Scope string

// Scopes.
const (
	ScopeAgent     Scope = "agent"
	ScopeConnector Scope = "connector"
	ScopeExecutor  Scope = "executor"
	ScopeOwner     Scope = "owner"
)

// ParseScope takes the four names and nothing else.
func ParseScope(s string) (Scope, error) {
	switch sc := Scope(s); sc {
	case ScopeAgent, ScopeConnector, ScopeExecutor, ScopeOwner:
		return sc, nil
	}
	return "", ErrBadScope
}

// Key is what an agent backend calls with. The secret itself is shown once, when it is made, and stored hashed.
type Key struct {
	ID        string     `json:"id"`
	AccountID string     `json:"account_id"`
	Name      string     `json:"name"`
	Scope     Scope      `json:"scope"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

const secretPrefix = "csk_"

// NewSecret makes a key's secret, 256 random bits behind "csk_", and the hash to store.
func NewSecret() (secret string, hash [sha256.Size]byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never returns an error
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, HashSecret(secret)
}

// HashSecret is how a secret is stored and looked up. The secret has full entropy, so a plain hash suffices.
func HashSecret(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// Store keeps accounts, people, strangers and keys.
type Store interface {
	AccountStore
	PairingStore

	// AddPerson makes a person with one bound address, and the person's thread.
	// Errors: ErrAddressTaken, ErrNoAccount.
	AddPerson(ctx context.Context, p Person) error
	// People lists an account's people in the order they were made.
	People(ctx context.Context, accountID string) ([]Person, error)
	// SetState suspends a person or makes them active again; from its commit on, no yes of a suspended person counts.
	// Errors: ErrNotFound.
	SetState(ctx context.Context, accountID, personID string, s State) error
	// SetTier changes what a person may approve, from its commit on. Errors: ErrNotFound.
	SetTier(ctx context.Context, accountID, personID, tier string) error

	// AddKey stores a key under the hash of its secret. Errors: ErrNoAccount.
	AddKey(ctx context.Context, k Key, hash [sha256.Size]byte) error
	// KeyByHash finds a key that is not revoked. Errors: ErrNotFound.
	KeyByHash(ctx context.Context, hash [sha256.Size]byte) (Key, error)
	// Keys lists an account's keys, revoked ones too, in the order they were made.
	Keys(ctx context.Context, accountID string) ([]Key, error)
	// RevokeKey ends a key at once. Errors: ErrNotFound.
	RevokeKey(ctx context.Context, accountID, keyID string) error
}
