package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

// senders keeps each sender, who is an address at a number of ours, within a rate, and loses nothing that a person said.
//
// Beyond the rate a stranger's message is not stored and not acknowledged (429). A person's always is both: what the
// provider does with a refusal is up to settings that are not ours, and a refused yes would be a lost one. It only loses
// its place in the queue: it is found in the store some seconds later, by when all but the newest of a flood have been
// overtaken, so that the reader reads one message of it and not all.
type senders struct {
	limiter limit.Limiter
	rate    limit.Rate
	book    people.Book
	log     *slog.Logger
}

// admit says whether a message goes on at once, and an error where it is not to be stored.
func (s senders) admit(ctx context.Context, in webhook.Inbound) (atOnce bool, err error) {
	from := string(in.From)
	if from == "" {
		from = "raw:" + string(in.FromRaw)
	}
	// Not the number itself: Redis is no place for who texts whom.
	sum := sha256.Sum256([]byte(from + " " + string(in.To)))
	v := s.limiter.Take(ctx, limit.Ask{Line: "sender:" + hex.EncodeToString(sum[:12]), Rate: s.rate})
	if v.Allowed {
		return true, nil
	}
	if in.From == "" { // nobody, and matches nobody
		return false, &webhook.Limited{RetryAfter: v.Seconds()}
	}
	bound, err := s.book.Bound(ctx, in.From, in.To)
	if err != nil { // whether it can be stored is the store's to say
		s.log.ErrorContext(ctx, "sender not looked up", "error", err)
		return false, nil
	}
	if !bound { // mutant: senders.known
		return false, &webhook.Limited{RetryAfter: v.Seconds()}
	}
	return false, nil
}
