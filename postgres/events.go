package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/offers"
)

// Events implements [offers.Store]. The order is (transaction, row), and a reader stops below the oldest transaction
// that is still running: whatever commits later lies behind the position that was handed out.
func (s *Store) Events(ctx context.Context, accountID, after string, limit int) ([]offers.Event, string, error) {
	xid, row, err := offers.ParsePosition(after)
	if err != nil {
		return nil, "", err
	}
	// The order is the columns', not that of the number that xid is read as: the index has it.
	rows, err := s.pool.Query(ctx, `SELECT xid::text::bigint, row, id, type, at, data FROM events
		WHERE account_id = $1 AND (xid, row) > ($2::text::xid8, $3) AND xid < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY events.xid, events.row LIMIT $4`, accountID, fmt.Sprint(xid), row, limit)
	if err != nil {
		return nil, "", fmt.Errorf("events: %w", err)
	}
	next := after
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (offers.Event, error) {
		e := offers.Event{AccountID: accountID}
		var xid, row int64
		var data string
		if err := r.Scan(&xid, &row, &e.ID, &e.Type, &e.At, &data); err != nil {
			return e, err
		}
		e.At, e.Data = e.At.UTC(), []byte(data)
		next = offers.Position(xid, row)
		return e, nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("events: %w", err)
	}
	return list, next, nil
}
