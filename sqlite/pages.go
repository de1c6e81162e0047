package sqlite

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/offers"
)

// OfferByToken implements [offers.Pages].
func (s *Store) OfferByToken(ctx context.Context, sum offers.Digest) (offers.Offer, error) {
	o, err := oneOffer(s.read(ctx), `SELECT `+offerColumns+fromOffers+`WHERE o.token_sha256 = ?1
		AND o.state IN ('queued', 'sending', 'open')                    -- mutant: pages.sqlite_state
		AND o.expires_at > ?2                                           -- mutant: pages.sqlite_expired
		`, sum[:], s.clock().UnixMicro())
	if err != nil {
		return o, fmt.Errorf("offer by token: %w", err)
	}
	return o, nil
}
