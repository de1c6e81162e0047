package postgres

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/people"
)

// Bound implements [people.Book].
func (s *Store) Bound(ctx context.Context, a, ourNumber people.Address) (bound bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM addresses WHERE address = $1 AND our_number = $2)`, string(a), string(ourNumber)).Scan(&bound)
	if err != nil {
		return false, fmt.Errorf("bound: %w", err)
	}
	return bound, nil
}
