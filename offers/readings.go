package offers

import (
	"context"
	"time"
)

// Readings finds replies that code left alone, so that people can label them and a reader can be calibrated on them.
type Readings interface {
	// Fallen lists an account's replies that were decided since then, at most limit of them, newest first: those that came
	// while an offer was before the person and that code, which acts on a confirm of p at least sure, neither released nor
	// closed anything on. Opt-outs are left out.
	// The texts are the persons' own words: they must not reach a log.
	Fallen(ctx context.Context, accountID string, since time.Time, sure float64, limit int) ([]FallenReply, error)
}

// FallenReply is a reply that fell through to the main model.
type FallenReply struct {
	MessageID  string
	Text       string
	Earlier    []string // of the same person within a day, newest first, at most four
	Reading    ReadingRecord
	ReceivedAt time.Time
	Offers     []FallenOffer // that were before the person when it came, oldest first
}

// FallenOffer is how one of those offers stands now.
type FallenOffer struct {
	Label string `json:"label"`
	State State  `json:"state"`
	Cited bool   `json:"cited"` // the main model ended it on this very reply
}
