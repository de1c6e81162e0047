package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

var _ offers.EndpointStore = (*Store)(nil)

// AddEndpoint implements [offers.EndpointStore]. The place is that of the oldest transaction that still runs: no event
// that commits from now on lies before it, and a few that have just committed may lie behind it and go out too.
func (s *Store) AddEndpoint(ctx context.Context, e offers.Endpoint) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO endpoints (id, account_id, url, secret, created_at, position_xid, position_row)
		VALUES ($1, $2, $3, $4, cs_now(), pg_snapshot_xmin(pg_current_snapshot()), 0)`, e.ID, e.AccountID, e.URL, e.Secret)
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
	list, err := all(ctx, s.pool, func(r pgx.CollectableRow) (offers.Endpoint, error) {
		e := offers.Endpoint{AccountID: accountID}
		err := r.Scan(&e.ID, &e.URL, &e.CreatedAt, &e.DisabledAt, &e.Seq, &e.Attempts, &e.NextTry, &e.LastStatus, &e.LastFailure, &e.AnsweredAt, &e.Dead)
		e.CreatedAt, e.DisabledAt, e.NextTry, e.AnsweredAt = e.CreatedAt.UTC(), utc(e.DisabledAt), utc(e.NextTry), utc(e.AnsweredAt)
		return e, err
	}, `SELECT id, url, created_at, disabled_at, seq, attempts, next_try, last_status, last_failure, answered_at,
			(SELECT count(*) FROM dead_letters l WHERE l.endpoint_id = e.id AND l.dead_at IS NOT NULL)
		FROM endpoints e WHERE account_id = $1 ORDER BY created_at, id`, accountID)
	if err != nil {
		return nil, fmt.Errorf("endpoints: %w", err)
	}
	return list, nil
}

// RemoveEndpoint implements [offers.EndpointStore].
func (s *Store) RemoveEndpoint(ctx context.Context, accountID, id string) error {
	return s.changeOne(ctx, "remove endpoint", `DELETE FROM endpoints WHERE account_id = $1 AND id = $2`, accountID, id)
}

// EnableEndpoint implements [offers.EndpointStore].
func (s *Store) EnableEndpoint(ctx context.Context, accountID, id string) error {
	return s.changeOne(ctx, "enable endpoint", `UPDATE endpoints SET disabled_at = NULL, attempts = 0, next_try = NULL
		WHERE account_id = $1 AND id = $2`, accountID, id)
}

// RetryDead implements [offers.EndpointStore].
func (s *Store) RetryDead(ctx context.Context, accountID, letterID string) error {
	return s.changeOne(ctx, "retry dead letter", `UPDATE dead_letters SET dead_at = NULL, attempts = 0, next_try = cs_now()
		WHERE account_id = $1 AND id = $2`, accountID, letterID)
}

// changeOne runs a statement on an account's row with an id.
func (s *Store) changeOne(ctx context.Context, what, sql, accountID, id string) error {
	tag, err := s.pool.Exec(ctx, sql, accountID, id)
	switch {
	case badID(err) || (err == nil && tag.RowsAffected() == 0):
		return offers.ErrNotFound
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// DeadLetters implements [offers.EndpointStore].
func (s *Store) DeadLetters(ctx context.Context, accountID string) ([]offers.DeadLetter, error) {
	list, err := all(ctx, s.pool, func(r pgx.CollectableRow) (offers.DeadLetter, error) {
		var l offers.DeadLetter
		err := r.Scan(&l.ID, &l.EndpointID, &l.EventID, &l.EventType, &l.Seq, &l.Attempts, &l.LastStatus, &l.LastFailure, &l.DeadAt, &l.NextTry)
		l.DeadAt, l.NextTry = utc(l.DeadAt), utc(l.NextTry)
		return l, err
	}, `SELECT l.id, l.endpoint_id, l.event_id, v.type, l.seq, l.attempts, l.last_status, l.last_failure, l.dead_at, l.next_try
		FROM dead_letters l JOIN events v ON v.row = l.event_row WHERE l.account_id = $1 ORDER BY l.endpoint_id, l.seq`, accountID)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return list, nil
}

// readable is true of an event v that nothing which commits later can come before.
const readable = `v.xid < pg_snapshot_xmin(pg_current_snapshot())`

// ClaimDelivery implements [offers.EndpointStore]. The claim commits in its own statement; what is due is read after
// it, by the position that the claim returned.
func (s *Store) ClaimDelivery(ctx context.Context, lease time.Duration) (*offers.Delivery, error) {
	var d offers.Delivery
	var xid string
	var row int64
	var headDue bool
	err := s.pool.QueryRow(ctx, `UPDATE endpoints SET leased_until = cs_now() + $1::interval, claimed_at = cs_now(), ticket = ticket + 1
		WHERE id = (SELECT e.id FROM endpoints e
			WHERE e.disabled_at IS NULL
			AND (e.leased_until IS NULL OR e.leased_until <= cs_now())
			AND (EXISTS (SELECT 1 FROM dead_letters l WHERE l.endpoint_id = e.id AND l.next_try <= cs_now())
				OR ((e.next_try IS NULL OR e.next_try <= cs_now())
					AND EXISTS (SELECT 1 FROM events v WHERE v.account_id = e.account_id AND (v.xid, v.row) > (e.position_xid, e.position_row)
						AND `+readable+`)))
			ORDER BY e.claimed_at NULLS FIRST, e.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
		RETURNING id, account_id, url, secret, created_at, seq, attempts, position_xid::text, position_row, ticket, next_try IS NULL OR next_try <= cs_now()`, lease).
		Scan(&d.Endpoint.ID, &d.Endpoint.AccountID, &d.Endpoint.URL, &d.Endpoint.Secret, &d.Endpoint.CreatedAt, &d.Endpoint.Seq, &d.Attempts,
			&xid, &row, &d.Ticket, &headDue)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim delivery: %w", err)
	}
	// The claim is made: a caller that gives up now would hold the endpoint up for the whole lease.
	ctx = context.WithoutCancel(ctx)
	found, err := s.dueLetter(ctx, &d)
	if err == nil && !found && headDue {
		found, err = s.dueHead(ctx, &d, xid, row)
	}
	if err != nil || !found {
		_, e := s.pool.Exec(ctx, `UPDATE endpoints SET leased_until = NULL WHERE id = $1 AND ticket = $2`, d.Endpoint.ID, d.Ticket)
		if err = errors.Join(err, e); err != nil {
			err = fmt.Errorf("claim delivery: %w", err)
		}
		return nil, err
	}
	return &d, nil
}

func (s *Store) dueLetter(ctx context.Context, d *offers.Delivery) (bool, error) {
	return s.due(ctx, d, `SELECT l.id::text, l.seq, l.attempts, v.xid::text::bigint, v.row, v.id, v.type, v.at, v.data
		FROM dead_letters l JOIN events v ON v.row = l.event_row
		WHERE l.endpoint_id = $1 AND l.next_try <= cs_now() ORDER BY l.seq LIMIT 1`, d.Endpoint.ID)
}

func (s *Store) dueHead(ctx context.Context, d *offers.Delivery, xid string, row int64) (bool, error) {
	return s.due(ctx, d, `SELECT '', $4::bigint, $5::int, v.xid::text::bigint, v.row, v.id, v.type, v.at, v.data FROM events v
		WHERE v.account_id = $1 AND (v.xid, v.row) > ($2::text::xid8, $3) AND `+readable+`
		ORDER BY v.xid, v.row LIMIT 1`, d.Endpoint.AccountID, xid, row, d.Endpoint.Seq+1, d.Attempts)
}

func (s *Store) due(ctx context.Context, d *offers.Delivery, sql string, args ...any) (bool, error) {
	var xid, row int64
	var data string
	e := offers.Event{AccountID: d.Endpoint.AccountID}
	err := s.pool.QueryRow(ctx, sql, args...).Scan(&d.LetterID, &d.Seq, &d.Attempts, &xid, &row, &e.ID, &e.Type, &e.At, &data)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	e.At, e.Data = e.At.UTC(), []byte(data)
	d.Event, d.Position = e, offers.Position(xid, row)
	return err == nil, err
}

// RenewDelivery implements [offers.EndpointStore].
func (s *Store) RenewDelivery(ctx context.Context, d offers.Delivery, lease time.Duration) error {
	tag, err := s.pool.Exec(ctx, `UPDATE endpoints SET leased_until = cs_now() + $3::interval WHERE id = $1 AND ticket = $2 AND leased_until IS NOT NULL`,
		d.Endpoint.ID, d.Ticket, lease)
	switch {
	case err != nil:
		return fmt.Errorf("renew delivery: %w", err)
	case tag.RowsAffected() == 0:
		return offers.ErrLeaseLost
	}
	return nil
}

// RecordDelivery implements [offers.EndpointStore].
func (s *Store) RecordDelivery(ctx context.Context, d offers.Delivery, a offers.Attempt, fate offers.Fate, retryIn time.Duration) error {
	xid, row, err := offers.ParsePosition(d.Position)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The ticket is the condition of everything that follows.
		tag, err := tx.Exec(ctx, `UPDATE endpoints SET leased_until = NULL, last_status = $3, last_failure = $4,
				answered_at = CASE WHEN $5 THEN cs_now() ELSE answered_at END,
				disabled_at = CASE WHEN $6 THEN cs_now() ELSE disabled_at END
			WHERE id = $1 AND ticket = $2`, d.Endpoint.ID, d.Ticket, a.Status, string(a.Failure), fate == offers.FateDelivered, fate == offers.FateDisabled)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return offers.ErrLeaseLost
		}
		if d.LetterID != "" {
			return recordLetter(ctx, tx, d, a, fate, retryIn)
		}
		return recordHead(ctx, tx, d, a, fate, retryIn, fmt.Sprint(xid), row)
	})
	if err != nil && !errors.Is(err, offers.ErrLeaseLost) {
		err = fmt.Errorf("record delivery: %w", err)
	}
	return err
}

func recordHead(ctx context.Context, tx pgx.Tx, d offers.Delivery, a offers.Attempt, fate offers.Fate, retryIn time.Duration, xid string, row int64) error {
	var b pgx.Batch
	switch fate {
	case offers.FateRetry:
		b.Queue(`UPDATE endpoints SET attempts = $2, next_try = cs_now() + $3::interval WHERE id = $1`, d.Endpoint.ID, d.Attempts+1, retryIn)
	case offers.FateDead:
		b.Queue(`INSERT INTO dead_letters (id, endpoint_id, account_id, event_row, event_id, seq, attempts, last_status, last_failure, dead_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, cs_now())`,
			offers.NewID(), d.Endpoint.ID, d.Endpoint.AccountID, row, d.Event.ID, d.Seq, d.Attempts+1, a.Status, string(a.Failure))
	}
	if fate == offers.FateDelivered || fate == offers.FateDead {
		b.Queue(`UPDATE endpoints SET position_xid = $2::text::xid8, position_row = $3, seq = $4, attempts = 0, next_try = NULL WHERE id = $1`,
			d.Endpoint.ID, xid, row, d.Seq)
	}
	return tx.SendBatch(ctx, &b).Close()
}

func recordLetter(ctx context.Context, tx pgx.Tx, d offers.Delivery, a offers.Attempt, fate offers.Fate, retryIn time.Duration) error {
	if fate == offers.FateDelivered {
		_, err := tx.Exec(ctx, `DELETE FROM dead_letters WHERE id = $1`, d.LetterID)
		return err
	}
	// With FateDisabled it stays due, for when the endpoint is enabled.
	_, err := tx.Exec(ctx, `UPDATE dead_letters SET attempts = $2, last_status = $3, last_failure = $4,
			next_try = CASE WHEN $5 THEN NULL ELSE cs_now() + $6::interval END,
			dead_at = CASE WHEN $5 THEN cs_now() END
		WHERE id = $1`, d.LetterID, d.Attempts+1, a.Status, string(a.Failure), fate == offers.FateDead, retryIn)
	return err
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
