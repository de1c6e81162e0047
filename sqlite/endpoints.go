package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

var _ offers.EndpointStore = (*Store)(nil)

// AddEndpoint implements [offers.EndpointStore].
func (s *Store) AddEndpoint(ctx context.Context, e offers.Endpoint) error {
	err := s.write(ctx, func(q session, now time.Time) error {
		_, err := q.exec(`INSERT INTO endpoints (id, account_id, url, secret, created_at, position_row)
			VALUES (?1, ?2, ?3, ?4, ?5, (SELECT coalesce(max(row), 0) FROM events))`,
			fold(e.ID), e.AccountID, e.URL, e.Secret, now.UnixMicro())
		return err
	})
	switch {
	case foreign(err):
		return people.ErrNoAccount
	case err != nil:
		return fmt.Errorf("add endpoint: %w", err)
	}
	return nil
}

// Endpoints implements [offers.EndpointStore].
func (s *Store) Endpoints(ctx context.Context, accountID string) ([]offers.Endpoint, error) {
	list, err := all(s.read(ctx), func(r row) (offers.Endpoint, error) {
		e := offers.Endpoint{AccountID: accountID}
		var created int64
		var disabled, next, answered *int64
		err := r.Scan(&e.ID, &e.URL, &created, &disabled, &e.Seq, &e.Attempts, &next, &e.LastStatus, &e.LastFailure, &answered, &e.Dead)
		e.CreatedAt, e.DisabledAt, e.NextTry, e.AnsweredAt = at(created), atOrNil(disabled), atOrNil(next), atOrNil(answered)
		return e, err
	}, `SELECT id, url, created_at, disabled_at, seq, attempts, next_try, last_status, last_failure, answered_at,
			(SELECT count(*) FROM dead_letters l WHERE l.endpoint_id = e.id AND l.dead_at IS NOT NULL)
		FROM endpoints e WHERE account_id = ?1 ORDER BY created_at, id`, accountID)
	if err != nil {
		return nil, fmt.Errorf("endpoints: %w", err)
	}
	return list, nil
}

// RemoveEndpoint implements [offers.EndpointStore].
func (s *Store) RemoveEndpoint(ctx context.Context, accountID, id string) error {
	return s.changeOne(ctx, "remove endpoint", func(q session, _ time.Time) (int64, error) {
		return q.exec(`DELETE FROM endpoints WHERE account_id = ?1 AND id = ?2`, accountID, fold(id))
	})
}

// EnableEndpoint implements [offers.EndpointStore].
func (s *Store) EnableEndpoint(ctx context.Context, accountID, id string) error {
	return s.changeOne(ctx, "enable endpoint", func(q session, _ time.Time) (int64, error) {
		return q.exec(`UPDATE endpoints SET disabled_at = NULL, attempts = 0, next_try = NULL WHERE account_id = ?1 AND id = ?2`,
			accountID, fold(id))
	})
}

// RetryDead implements [offers.EndpointStore].
func (s *Store) RetryDead(ctx context.Context, accountID, letterID string) error {
	return s.changeOne(ctx, "retry dead letter", func(q session, now time.Time) (int64, error) {
		return q.exec(`UPDATE dead_letters SET dead_at = NULL, attempts = 0, next_try = ?3 WHERE account_id = ?1 AND id = ?2`,
			accountID, fold(letterID), now.UnixMicro())
	})
}

// changeOne demands that a statement changes a row.
func (s *Store) changeOne(ctx context.Context, what string, change func(q session, now time.Time) (int64, error)) error {
	var n int64
	err := s.write(ctx, func(q session, now time.Time) (err error) {
		n, err = change(q, now)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case n == 0:
		return offers.ErrNotFound
	}
	return nil
}

// DeadLetters implements [offers.EndpointStore].
func (s *Store) DeadLetters(ctx context.Context, accountID string) ([]offers.DeadLetter, error) {
	list, err := all(s.read(ctx), func(r row) (offers.DeadLetter, error) {
		var l offers.DeadLetter
		var dead, next *int64
		err := r.Scan(&l.ID, &l.EndpointID, &l.EventID, &l.EventType, &l.Seq, &l.Attempts, &l.LastStatus, &l.LastFailure, &dead, &next)
		l.DeadAt, l.NextTry = atOrNil(dead), atOrNil(next)
		return l, err
	}, `SELECT l.id, l.endpoint_id, l.event_id, v.type, l.seq, l.attempts, l.last_status, l.last_failure, l.dead_at, l.next_try
		FROM dead_letters l JOIN events v ON v.row = l.event_row WHERE l.account_id = ?1 ORDER BY l.endpoint_id, l.seq`, accountID)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return list, nil
}

// waiting finds the endpoint that is to be claimed at the time ?1.
const waiting = `SELECT e.id FROM endpoints e
	WHERE e.disabled_at IS NULL
	AND (e.leased_until IS NULL OR e.leased_until <= ?1)
	AND (EXISTS (SELECT 1 FROM dead_letters l WHERE l.endpoint_id = e.id AND l.next_try <= ?1)
		OR ((e.next_try IS NULL OR e.next_try <= ?1)
			AND EXISTS (SELECT 1 FROM events v WHERE v.account_id = e.account_id AND v.row > e.position_row)))
	ORDER BY e.claimed_at NULLS FIRST, e.id LIMIT 1`

// ClaimDelivery implements [offers.EndpointStore]. It looks before it takes the lock: mostly there is nothing.
func (s *Store) ClaimDelivery(ctx context.Context, lease time.Duration) (*offers.Delivery, error) {
	var d offers.Delivery
	err := s.read(ctx).one(waiting, []any{s.now().UnixMicro()}, &d.Endpoint.ID)
	if err == nil {
		err = s.write(ctx, func(q session, now time.Time) error { return claim(q, now, lease, &d) })
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("claim delivery: %w", err)
	}
	return &d, nil
}

// claim fills the delivery. sql.ErrNoRows: there is none.
func claim(q session, now time.Time, lease time.Duration, d *offers.Delivery) error {
	e := &d.Endpoint
	us := now.UnixMicro()
	if err := q.one(waiting, []any{us}, &e.ID); err != nil {
		return err
	}
	var position, created int64
	err := q.one(`UPDATE endpoints SET leased_until = ?2, claimed_at = ?3, ticket = ticket + 1 WHERE id = ?1
		RETURNING account_id, url, secret, created_at, seq, attempts, position_row, ticket`, []any{e.ID, now.Add(lease).UnixMicro(), us},
		&e.AccountID, &e.URL, &e.Secret, &created, &e.Seq, &d.Attempts, &position, &d.Ticket)
	if err != nil {
		return err
	}
	e.CreatedAt = at(created)
	err = due(q, d, `SELECT l.id, l.seq, l.attempts, v.row, v.id, v.type, v.at, v.data FROM dead_letters l JOIN events v ON v.row = l.event_row
		WHERE l.endpoint_id = ?1 AND l.next_try <= ?2 ORDER BY l.seq LIMIT 1`, e.ID, us)
	if errors.Is(err, sql.ErrNoRows) {
		// The endpoint was found, so the event behind its place is due.
		err = due(q, d, `SELECT '', ?3, ?4, row, id, type, at, data FROM events WHERE account_id = ?1 AND row > ?2 ORDER BY row LIMIT 1`,
			e.AccountID, position, e.Seq+1, d.Attempts)
	}
	return err
}

func due(q session, d *offers.Delivery, query string, args ...any) error {
	var number, us int64
	var data string
	v := offers.Event{AccountID: d.Endpoint.AccountID}
	err := q.one(query, args, &d.LetterID, &d.Seq, &d.Attempts, &number, &v.ID, &v.Type, &us, &data)
	v.At, v.Data = at(us), []byte(data)
	d.Event, d.Position = v, offers.Position(0, number)
	return err
}

// RenewDelivery implements [offers.EndpointStore].
func (s *Store) RenewDelivery(ctx context.Context, d offers.Delivery, lease time.Duration) error {
	var n int64
	err := s.write(ctx, func(q session, now time.Time) (err error) {
		n, err = q.exec(`UPDATE endpoints SET leased_until = ?3 WHERE id = ?1 AND ticket = ?2 AND leased_until IS NOT NULL`,
			d.Endpoint.ID, d.Ticket, now.Add(lease).UnixMicro())
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("renew delivery: %w", err)
	case n == 0:
		return offers.ErrLeaseLost
	}
	return nil
}

// RecordDelivery implements [offers.EndpointStore].
func (s *Store) RecordDelivery(ctx context.Context, d offers.Delivery, a offers.Attempt, fate offers.Fate, retryIn time.Duration) error {
	_, number, err := offers.ParsePosition(d.Position)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(q session, now time.Time) error {
		// The ticket is the condition of everything that follows.
		n, err := q.exec(`UPDATE endpoints SET leased_until = NULL, last_status = ?3, last_failure = ?4,
				answered_at = CASE WHEN ?5 THEN ?7 ELSE answered_at END,
				disabled_at = CASE WHEN ?6 THEN ?7 ELSE disabled_at END
			WHERE id = ?1 AND ticket = ?2`, d.Endpoint.ID, d.Ticket, a.Status, string(a.Failure), fate == offers.FateDelivered, fate == offers.FateDisabled,
			now.UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return offers.ErrLeaseLost
		}
		if d.LetterID != "" {
			return recordLetter(q, now, d, a, fate, retryIn)
		}
		return recordHead(q, now, d, a, fate, retryIn, number)
	})
	if err != nil && !errors.Is(err, offers.ErrLeaseLost) {
		err = fmt.Errorf("record delivery: %w", err)
	}
	return err
}

func recordHead(q session, now time.Time, d offers.Delivery, a offers.Attempt, fate offers.Fate, retryIn time.Duration, number int64) error {
	var err error
	switch fate {
	case offers.FateRetry:
		_, err = q.exec(`UPDATE endpoints SET attempts = ?2, next_try = ?3 WHERE id = ?1`, d.Endpoint.ID, d.Attempts+1, now.Add(retryIn).UnixMicro())
	case offers.FateDead:
		_, err = q.exec(`INSERT INTO dead_letters (id, endpoint_id, account_id, event_row, event_id, seq, attempts, last_status, last_failure, dead_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
			offers.NewID(), d.Endpoint.ID, d.Endpoint.AccountID, number, d.Event.ID, d.Seq, d.Attempts+1, a.Status, string(a.Failure), now.UnixMicro())
	}
	if err == nil && (fate == offers.FateDelivered || fate == offers.FateDead) {
		_, err = q.exec(`UPDATE endpoints SET position_row = ?2, seq = ?3, attempts = 0, next_try = NULL WHERE id = ?1`, d.Endpoint.ID, number, d.Seq)
	}
	return err
}

func recordLetter(q session, now time.Time, d offers.Delivery, a offers.Attempt, fate offers.Fate, retryIn time.Duration) error {
	if fate == offers.FateDelivered {
		_, err := q.exec(`DELETE FROM dead_letters WHERE id = ?1`, d.LetterID)
		return err
	}
	// With FateDisabled it stays due, for when the endpoint is enabled.
	_, err := q.exec(`UPDATE dead_letters SET attempts = ?2, last_status = ?3, last_failure = ?4,
			next_try = CASE WHEN ?5 THEN NULL ELSE ?6 END,
			dead_at = CASE WHEN ?5 THEN ?7 END
		WHERE id = ?1`, d.LetterID, d.Attempts+1, a.Status, string(a.Failure), fate == offers.FateDead, now.Add(retryIn).UnixMicro(), now.UnixMicro())
	return err
}
