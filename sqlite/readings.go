package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
)

var _ offers.Readings = (*Store)(nil)

// fallen takes what code acted on to be a message that closed an offer and was read as a sure yes, or closed it without a
// release: what the main model cites was no sure yes to code, and is cited for a release alone.
const fallen = `SELECT m.id, m.text, m.reading, m.received_at, m.person_id, m.number
FROM messages m
WHERE m.account_id = ?1 AND m.decided_at >= ?2 AND m.trust = 'trusted' AND m.reading IS NOT NULL AND m.opt_out = ''
  AND EXISTS (SELECT 1 FROM offers o WHERE o.person_id = m.person_id AND o.sent_at <= m.received_at
    AND (o.closed_at IS NULL OR o.closed_at >= m.received_at))
  AND NOT EXISTS (SELECT 1 FROM offers c WHERE c.person_id = m.person_id AND c.closed_by->>'message_id' = m.id
    AND (c.state IN ('declined', 'modified') OR m.reading->>'class' = 'confirm' AND m.reading->>'$.p.confirm' >= ?3))
ORDER BY m.decided_at DESC, m.id LIMIT ?4`

const fallenOffers = `SELECT label, state, coalesce(closed_by->>'message_id' = ?1, 0) FROM offers
	WHERE person_id = ?2 AND sent_at <= ?3 AND (closed_at IS NULL OR closed_at >= ?3) ORDER BY created_at, id`

// Fallen implements [offers.Readings].
func (s *Store) Fallen(ctx context.Context, accountID string, since time.Time, sure float64, limit int) ([]offers.FallenReply, error) {
	list, err := s.fallen(s.read(ctx), accountID, since, sure, limit)
	if err != nil {
		return nil, fmt.Errorf("fallen: %w", err)
	}
	return list, nil
}

func (s *Store) fallen(q session, accountID string, since time.Time, sure float64, limit int) ([]offers.FallenReply, error) {
	type found struct {
		offers.FallenReply
		personID string
		number   int64
	}
	list, err := all(q, func(r row) (f found, err error) {
		var reading []byte
		var at int64
		if err = r.Scan(&f.MessageID, &f.Text, &reading, &at, &f.personID, &f.number); err != nil {
			return f, err
		}
		f.ReceivedAt = time.UnixMicro(at).UTC()
		return f, json.Unmarshal(reading, &f.Reading)
	}, fallen, accountID, since.UnixMicro(), sure, limit)
	if err != nil {
		return nil, err
	}
	out := make([]offers.FallenReply, len(list))
	for i, f := range list {
		at := f.ReceivedAt.UnixMicro()
		if f.Earlier, err = all(q, scanString, earlier, f.personID, f.number, f.ReceivedAt.Add(-24*time.Hour).UnixMicro()); err != nil {
			return nil, err
		}
		f.Offers, err = all(q, func(r row) (o offers.FallenOffer, err error) {
			err = r.Scan(&o.Label, &o.State, &o.Cited)
			return o, err
		}, fallenOffers, f.MessageID, f.personID, at)
		if err != nil {
			return nil, err
		}
		out[i] = f.FallenReply
	}
	return out, nil
}
