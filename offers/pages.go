package offers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
)

// PagePath is where an offer's page is, before its token.
const PagePath = "/o/"

// Pages finds the offer behind a page.
type Pages interface {
	// OfferByToken returns the offer whose token has this sum, while it is queued, sending or open and its time is not
	// over. Errors: ErrNotFound.
	OfferByToken(ctx context.Context, sum Digest) (Offer, error)
}

// NewToken makes the token of an offer's page: 26 letters and digits that hold at least 128 random bits. Only its sum
// is looked up; the token itself stands in the text that the person got.
func NewToken() string { return rand.Text() }

// TokenSum is what a store keeps of a token.
func TokenSum(token string) Digest { return sha256.Sum256([]byte(token)) }

const tokenLen = 26

// IsToken says whether a text has the form of a token.
func IsToken(s string) bool {
	return len(s) == tokenLen && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// TokenBytes is the sum for a store; nil: there is none.
func (d *Draft) TokenBytes() []byte {
	if d.TokenSum == nil {
		return nil
	}
	return d.TokenSum[:]
}
