package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/offers"
)

var _ offers.Readings = (*Store)(nil)

// fallen takes what code acted on to be a message that closed an offer and was read as a sure yes, or closed it without a
// release: what the main model cites was no sure yes to code, and is cited for a release alone.
const fallen = `SELECT m.id, m.text, m.reading, m.received_at,
  ARRAY(SELECT e.text FROM (SELECT e.text, e.number, e.received_at FROM messages e
    WHERE e.person_id = m.person_id AND e.number < m.number AND e.trust = 'trusted' ORDER BY e.number DESC LIMIT 4) e
    WHERE e.received_at > m.received_at - interval '24 hours' ORDER BY e.number DESC),
  l.seen
FROM messages m CROSS JOIN LATERAL (
  SELECT jsonb_agg(jsonb_build_object('label', o.label, 'state', o.state, 'cited', coalesce(o.closed_by->>'message_id' = m.id::text, false))
    ORDER BY o.created_at, o.id) AS seen
  FROM offers o WHERE o.person_id = m.person_id AND o.sent_at <= m.received_at
    AND (o.closed_at IS NULL OR o.closed_at >= m.received_at)) l
WHERE m.account_id = $1 AND m.decided_at >= $2 AND m.trust = 'trusted' AND m.reading IS NOT NULL AND m.opt_out = '' AND l.seen IS NOT NULL
  AND NOT EXISTS (SELECT FROM offers c WHERE c.person_id = m.person_id AND c.closed_by->>'message_id' = m.id::text
    AND (c.state IN ('declined', 'modified') OR m.reading->>'class' = 'confirm' AND (m.reading->'p'->>'confirm')::float8 >= $3))
ORDER BY m.decided_at DESC, m.id LIMIT $4`

// Fallen implements [offers.Readings].
func (s *Store) Fallen(ctx context.Context, accountID string, since time.Time, sure float64, limit int) ([]offers.FallenReply, error) {
	list, err := all(ctx, s.pool, func(r pgx.CollectableRow) (f offers.FallenReply, err error) {
		var reading, seen []byte
		if err = r.Scan(&f.MessageID, &f.Text, &reading, &f.ReceivedAt, &f.Earlier, &seen); err != nil {
			return f, err
		}
		if err = json.Unmarshal(reading, &f.Reading); err != nil {
			return f, err
		}
		return f, json.Unmarshal(seen, &f.Offers)
	}, fallen, accountID, since, sure, limit)
	if err != nil {
		return nil, fmt.Errorf("fallen: %w", err)
	}
	return list, nil
}
