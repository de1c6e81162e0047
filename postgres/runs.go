package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

// runColumns are read from runs r. A run without an end of its own ends an hour after it was made.
const runColumns = `r.id, r.account_id, r.person_id, r.tier, r.interactive, r.tainted, r.cause, coalesce(r.parent_id::text, ''), r.root_id, r.created_at,
	coalesce(r.expires_at, r.created_at + interval '1 hour')`

func scanRun(row pgx.CollectableRow) (offers.Run, error) {
	var r offers.Run
	err := row.Scan(&r.ID, &r.AccountID, &r.PersonID, &r.Tier, &r.Interactive, &r.Tainted, &r.Cause, &r.ParentID, &r.RootID, &r.CreatedAt, &r.ExpiresAt)
	r.CreatedAt, r.ExpiresAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC()
	return r, err
}

func oneRun(ctx context.Context, q querier, where string, args ...any) (offers.Run, error) {
	rows, err := q.Query(ctx, `SELECT `+runColumns+` FROM runs r `+where, args...)
	if err != nil {
		return offers.Run{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanRun)
	if badID(err) {
		err = pgx.ErrNoRows
	}
	return r, notFound(err)
}

// StartRun implements [offers.Runs].
func (s *Store) StartRun(ctx context.Context, accountID string, cause offers.StartCause) (offers.Run, error) {
	var r offers.Run
	personID, err := s.starter(ctx, accountID, cause)
	if err == nil {
		err = s.inThread(ctx, personID, func(th *thread) (err error) {
			r, err = th.start(ctx, cause)
			if err == nil && !th.now.Before(r.ExpiresAt) {
				err = offers.ErrRunExpired
			}
			return err
		})
	}
	if err != nil {
		return offers.Run{}, fmt.Errorf("start run: %w", err)
	}
	return r, nil
}

// starter names the person whose lock is needed.
func (s *Store) starter(ctx context.Context, accountID string, cause offers.StartCause) (personID string, err error) {
	switch {
	case cause.MessageID != "":
		err = s.pool.QueryRow(ctx, `SELECT person_id FROM runs WHERE message_id = $1 AND account_id = $2`, cause.MessageID, accountID).Scan(&personID)
	case cause.ParentRunID != "":
		err = s.pool.QueryRow(ctx, `SELECT person_id FROM runs WHERE id = $1 AND account_id = $2`, cause.ParentRunID, accountID).Scan(&personID)
	case cause.Schedule != nil:
		err = s.pool.QueryRow(ctx, `SELECT person_id FROM schedules WHERE account_id = $1 AND person_id = $2 AND name = $3`,
			accountID, cause.Schedule.PersonID, cause.Schedule.Name).Scan(&personID)
	default:
		err = pgx.ErrNoRows
	}
	if badID(err) {
		err = pgx.ErrNoRows
	}
	return personID, notFound(err)
}

func (th *thread) start(ctx context.Context, cause offers.StartCause) (offers.Run, error) {
	if cause.MessageID != "" {
		return oneRun(ctx, th.tx, `WHERE r.message_id = $1`, cause.MessageID)
	}
	r := offers.Run{ID: offers.NewID(), AccountID: th.accountID, PersonID: th.personID, CreatedAt: th.now}
	if cause.ParentRunID != "" {
		parent, err := oneRun(ctx, th.tx, `WHERE r.id = $1`, cause.ParentRunID)
		if err != nil {
			return r, err
		}
		r.Tier, r.Tainted, r.RootID, r.ParentID, r.ExpiresAt = parent.Tier, parent.Tainted, parent.RootID, parent.ID, parent.ExpiresAt
		r.Cause = offers.Cause{ParentRunID: parent.ID}
	} else {
		err := th.tx.QueryRow(ctx, `SELECT tier, tainted FROM schedules WHERE account_id = $1 AND person_id = $2 AND name = $3`,
			th.accountID, th.personID, cause.Schedule.Name).Scan(&r.Tier, &r.Tainted)
		if err != nil {
			return r, notFound(err)
		}
		r.RootID, r.Interactive, r.ExpiresAt = r.ID, true, th.now.Add(offers.RunTTL)
		r.Cause = offers.Cause{Schedule: cause.Schedule}
	}
	_, err := th.tx.Exec(ctx, `INSERT INTO runs (id, account_id, person_id, tier, cause, parent_id, root_id, tainted, interactive, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, nullif($6, '')::uuid, $7, $8, $9, $10, $11)`,
		r.ID, r.AccountID, r.PersonID, r.Tier, r.Cause, r.ParentID, r.RootID, r.Tainted, r.Interactive, r.CreatedAt, r.ExpiresAt)
	return r, err
}

// taint marks a run with everything that shares its root: what one has read, the others may be told.
func (th *thread) taint(ctx context.Context, rootID string) error {
	_, err := th.tx.Exec(ctx, `UPDATE runs SET tainted = true WHERE root_id = $1 AND NOT tainted`, rootID)
	return err
}

// Taint implements [offers.Runs].
func (s *Store) Taint(ctx context.Context, accountID, runID string) (offers.Run, error) {
	r, err := oneRun(ctx, s.pool, `WHERE r.id = $1 AND r.account_id = $2`, runID, accountID)
	if err == nil {
		err = s.inThread(ctx, r.PersonID, func(th *thread) error { return th.taint(ctx, r.RootID) })
	}
	if err != nil {
		return offers.Run{}, fmt.Errorf("taint: %w", err)
	}
	r.Tainted = true
	return r, nil
}

// FactsOf implements [offers.Runs].
func (s *Store) FactsOf(ctx context.Context, accountID, personID string, reaches []string) (offers.Facts, error) {
	var f offers.Facts
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		th := &thread{tx: tx, accountID: accountID}
		err := tx.QueryRow(ctx, `SELECT p.id, cs_now() FROM people p WHERE p.account_id = $1 AND ($2 = '' AND p.tier = 'owner' AND p.state = 'active'
			AND EXISTS (SELECT 1 FROM addresses a WHERE a.person_id = p.id) OR p.id = nullif($2, '')::uuid) ORDER BY p.created_at, p.id LIMIT 1`,
			accountID, personID).Scan(&th.personID, &f.Now)
		if err != nil {
			return err
		}
		return th.facts(ctx, &f, "", reaches)
	})
	if badID(err) {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return offers.Facts{}, fmt.Errorf("facts: %w", notFound(err))
	}
	return f, nil
}

// Polled implements [offers.Runs].
func (s *Store) Polled(ctx context.Context, keyID string) error {
	_, err := s.pool.Exec(ctx, `UPDATE keys SET polled_at = cs_now() WHERE id = $1 AND (polled_at IS NULL OR polled_at < cs_now() - $2::interval)`,
		keyID, offers.PollMark)
	if err != nil {
		return fmt.Errorf("polled: %w", err)
	}
	return nil
}

// CitedMessage implements [offers.Confirms].
func (s *Store) CitedMessage(ctx context.Context, accountID, messageID string) (offers.Cited, error) {
	var c offers.Cited
	var reading []byte
	err := s.pool.QueryRow(ctx, `SELECT m.reading, coalesce(r.tainted, true), EXISTS (SELECT 1 FROM offers o WHERE o.consumed_by = m.id)
		FROM messages m LEFT JOIN runs r ON r.id = m.run_id WHERE m.id = $1 AND m.account_id = $2 AND m.person_id IS NOT NULL`, messageID, accountID).
		Scan(&reading, &c.RunTainted, &c.Used)
	if badID(err) || errors.Is(err, pgx.ErrNoRows) {
		return c, fmt.Errorf("cited message: %w", offers.ErrNotFound)
	}
	if err == nil && reading != nil {
		err = json.Unmarshal(reading, &c.Reading)
	}
	if err == nil {
		c.Received, err = s.Context(ctx, messageID)
	}
	if err == nil {
		c.Screen, err = s.screen(ctx, messageID)
	}
	if err != nil {
		return c, fmt.Errorf("cited message: %w", err)
	}
	return c, nil
}

// onScreen reads what a person may have meant by a message.
const onScreen = `SELECT ` + offerColumns + fromOffers + `JOIN messages m ON m.person_id = o.person_id WHERE m.id = $1
	AND (o.state IN ('sending', 'open') OR o.sent_at <= m.received_at AND coalesce(coalesce(o.closed_at, o.left_at) > m.received_at - $2::interval, true))
	ORDER BY o.created_at, o.id`

func (s *Store) screen(ctx context.Context, messageID string) ([]offers.Offer, error) {
	return all(ctx, s.pool, scanOffer, onScreen, messageID, offers.ScreenWindow)
}

// setUp remembers what an operation has set up to run later, with the authority and taint of its run.
func (th *thread) setUp(ctx context.Context, op offers.Operation, name string) error {
	_, err := th.tx.Exec(ctx, `INSERT INTO schedules (account_id, person_id, name, operation_id, tier, tainted, created_at)
		SELECT $1, $2, $3, $4, r.tier, r.tainted, $5 FROM runs r WHERE r.id = $6
		ON CONFLICT (account_id, person_id, name) DO UPDATE SET operation_id = excluded.operation_id, tier = excluded.tier,
		tainted = schedules.tainted OR excluded.tainted, created_at = excluded.created_at`,
		th.accountID, th.personID, name, op.ID, th.now, op.RunID)
	return err
}

// sayFor puts an allowed text in line and closes its operation with the text's id.
func (th *thread) sayFor(ctx context.Context, op offers.Operation, body string) error {
	before := th.texts
	if err := th.say(ctx, offers.TextMessage, body); err != nil {
		return err
	}
	if th.texts == before {
		return offers.ErrNoAddress
	}
	out, err := json.Marshal(map[string]string{"text_id": th.lastText})
	if err != nil {
		return err
	}
	raw, sum, err := offers.Result{Status: string(offers.OpSucceeded), Output: out, At: th.now.UTC()}.Encode()
	if err != nil {
		return err
	}
	op.State, op.Result = offers.OpSucceeded, raw
	if _, err := th.tx.Exec(ctx, `UPDATE operations SET state = $2, result = $3, closed_at = $4 WHERE id = $1`, op.ID, string(op.State), string(raw), th.now); err != nil {
		return err
	}
	if err := th.record(ledger.Result, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, State: string(op.State), ResultSum: sum}); err != nil {
		return err
	}
	return th.event(offers.OperationClosed, offers.OperationData{Operation: op})
}
