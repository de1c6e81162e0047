package sqlite

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/people"
)

// Bound implements [people.Book].
func (s *Store) Bound(ctx context.Context, a, ourNumber people.Address) (bound bool, err error) {
	err = s.read(ctx).one(`SELECT EXISTS (SELECT 1 FROM addresses WHERE address = ?1 AND our_number = ?2)`, []any{string(a), string(ourNumber)}, &bound)
	if err != nil {
		return false, fmt.Errorf("bound: %w", err)
	}
	return bound, nil
}
