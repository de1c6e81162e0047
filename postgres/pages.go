package postgres

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/offers"
)

// OfferByToken implements [offers.Pages].
func (s *Store) OfferByToken(ctx context.Context, sum offers.Digest) (offers.Offer, error) {
	o, err := oneOffer(ctx, s.pool, `WHERE o.token_sha256 = $1
		AND o.state IN ('queued', 'sending', 'open')                    -- mutant: pages.postgres_state
		AND o.expires_at > cs_now()                                     -- mutant: pages.postgres_expired
		`, sum[:])
	if err != nil {
		return o, fmt.Errorf("offer by token: %w", err)
	}
	return o, nil
}
