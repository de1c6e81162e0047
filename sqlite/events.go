package sqlite

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/offers"
)

// Events implements [offers.Store]. Rows are numbered under the one lock, so that none can commit behind a position
// that was handed out.
func (s *Store) Events(ctx context.Context, accountID, after string, limit int) ([]offers.Event, string, error) {
	transaction, last, err := offers.ParsePosition(after)
	if err != nil {
		return nil, "", err
	}
	if transaction != 0 {
		return nil, "", offers.ErrBadPosition // another database's
	}
	next := after
	list, err := all(s.read(ctx), func(r row) (offers.Event, error) {
		e := offers.Event{AccountID: accountID}
		var number, us int64
		var data string
		if err := r.Scan(&number, &e.ID, &e.Type, &us, &data); err != nil {
			return e, err
		}
		e.At, e.Data = at(us), []byte(data)
		next = offers.Position(0, number)
		return e, nil
	}, `SELECT row, id, type, at, data FROM events WHERE account_id = ?1 AND row > ?2 ORDER BY row LIMIT ?3`, accountID, last, limit)
	if err != nil {
		return nil, "", fmt.Errorf("events: %w", err)
	}
	return list, next, nil
}
