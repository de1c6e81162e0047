package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

// runColumns are read from runs r. A run without an end of its own ends an hour after it was made.
const runColumns = `SELECT r.id, r.account_id, r.person_id, r.tier, r.interactive, r.tainted, r.cause, coalesce(r.parent_id, ''), r.root_id, r.created_at,
	coalesce(r.expires_at, r.created_at + 3600000000) FROM runs r WHERE `

const (
	runByID      = runColumns + `r.id = ?1 AND r.account_id = ?2`
	runByMessage = runColumns + `r.message_id = ?1 AND r.account_id = ?2`
)

func oneRun(q session, query string, args ...any) (offers.Run, error) {
	var r offers.Run
	var cause []byte
	var created, expires int64
	err := q.one(query, args, &r.ID, &r.AccountID, &r.PersonID, &r.Tier, &r.Interactive, &r.Tainted, &cause, &r.ParentID, &r.RootID, &created, &expires)
	if err == nil {
		err = json.Unmarshal(cause, &r.Cause)
	}
	r.CreatedAt, r.ExpiresAt = at(created), at(expires)
	return r, notFound(err)
}

// StartRun implements [offers.Runs].
func (s *Store) StartRun(ctx context.Context, accountID string, cause offers.StartCause) (offers.Run, error) {
	var r offers.Run
	err := s.write(ctx, func(q session, now time.Time) (err error) {
		r, err = start(q, now, accountID, cause)
		if err == nil && !now.Before(r.ExpiresAt) {
			err = offers.ErrRunExpired
		}
		return err
	})
	if err != nil {
		return offers.Run{}, fmt.Errorf("start run: %w", err)
	}
	return r, nil
}

func start(q session, now time.Time, accountID string, cause offers.StartCause) (offers.Run, error) {
	if cause.MessageID != "" {
		return oneRun(q, runByMessage, fold(cause.MessageID), accountID)
	}
	r := offers.Run{ID: offers.NewID(), AccountID: accountID, CreatedAt: now}
	switch {
	case cause.ParentRunID != "":
		parent, err := oneRun(q, runByID, fold(cause.ParentRunID), accountID)
		if err != nil {
			return r, err
		}
		r.PersonID, r.Tier, r.Tainted, r.RootID, r.ParentID, r.ExpiresAt = parent.PersonID, parent.Tier, parent.Tainted, parent.RootID, parent.ID, parent.ExpiresAt
		r.Cause = offers.Cause{ParentRunID: parent.ID}
	case cause.Schedule != nil:
		err := q.one(`SELECT person_id, tier, tainted FROM schedules WHERE account_id = ?1 AND person_id = ?2 AND name = ?3`,
			[]any{accountID, fold(cause.Schedule.PersonID), cause.Schedule.Name}, &r.PersonID, &r.Tier, &r.Tainted)
		if err != nil {
			return r, notFound(err)
		}
		r.RootID, r.Interactive, r.ExpiresAt = r.ID, true, now.Add(offers.RunTTL)
		r.Cause = offers.Cause{Schedule: cause.Schedule}
	default:
		return r, offers.ErrNotFound
	}
	raw, err := json.Marshal(r.Cause)
	if err != nil {
		return r, err
	}
	_, err = q.exec(`INSERT INTO runs (id, account_id, person_id, tier, cause, parent_id, root_id, tainted, interactive, created_at, expires_at)
		VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, ''), ?7, ?8, ?9, ?10, ?11)`,
		r.ID, r.AccountID, r.PersonID, r.Tier, string(raw), r.ParentID, r.RootID, r.Tainted, r.Interactive, now.UnixMicro(), r.ExpiresAt.UnixMicro())
	return r, err
}

// taint marks a run with everything that shares its root: what one has read, the others may be told.
func taint(q session, rootID string) error {
	_, err := q.exec(`UPDATE runs SET tainted = 1 WHERE root_id = ?1 AND NOT tainted`, rootID)
	return err
}

// Taint implements [offers.Runs].
func (s *Store) Taint(ctx context.Context, accountID, runID string) (offers.Run, error) {
	var r offers.Run
	err := s.write(ctx, func(q session, _ time.Time) (err error) {
		if r, err = oneRun(q, runByID, fold(runID), accountID); err != nil {
			return err
		}
		return taint(q, r.RootID)
	})
	if err != nil {
		return offers.Run{}, fmt.Errorf("taint: %w", err)
	}
	r.Tainted = true
	return r, nil
}

// FactsOf implements [offers.Runs].
func (s *Store) FactsOf(ctx context.Context, accountID, personID string, reaches []string) (offers.Facts, error) {
	f := offers.Facts{Now: s.now()}
	th := &thread{session: s.read(ctx), now: f.Now, accountID: accountID}
	err := th.one(`SELECT p.id FROM people p WHERE p.account_id = ?1 AND (?2 = '' AND p.tier = 'owner' AND p.state = 'active'
		AND EXISTS (SELECT 1 FROM addresses a WHERE a.person_id = p.id) OR p.id = ?2) ORDER BY p.created_at, p.id LIMIT 1`,
		[]any{accountID, fold(personID)}, &th.personID)
	if err == nil {
		err = th.facts(&f, "", reaches)
	}
	if err != nil {
		return offers.Facts{}, fmt.Errorf("facts: %w", notFound(err))
	}
	return f, nil
}

// Polled implements [offers.Runs].
func (s *Store) Polled(ctx context.Context, keyID string) error {
	// Most calls have nothing to write: they do not ask for the lock.
	var due bool
	now := s.now()
	mark := now.Add(-offers.PollMark).UnixMicro()
	err := s.read(ctx).one(`SELECT polled_at IS NULL OR polled_at < ?2 FROM keys WHERE id = ?1`, []any{keyID, mark}, &due)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !due {
		return nil
	}
	if err == nil {
		err = s.write(ctx, func(q session, now time.Time) error {
			_, err := q.exec(`UPDATE keys SET polled_at = ?2 WHERE id = ?1`, keyID, now.UnixMicro())
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("polled: %w", err)
	}
	return nil
}

// CitedMessage implements [offers.Confirms].
func (s *Store) CitedMessage(ctx context.Context, accountID, messageID string) (offers.Cited, error) {
	var c offers.Cited
	var reading []byte
	err := s.read(ctx).one(`SELECT m.reading, coalesce(r.tainted, 1), EXISTS (SELECT 1 FROM offers o WHERE o.consumed_by = m.id)
		FROM messages m LEFT JOIN runs r ON r.id = m.run_id WHERE m.id = ?1 AND m.account_id = ?2 AND m.person_id IS NOT NULL`,
		[]any{fold(messageID), accountID}, &reading, &c.RunTainted, &c.Used)
	if err == nil && reading != nil {
		err = json.Unmarshal(reading, &c.Reading)
	}
	if err == nil {
		c.Received, err = s.Context(ctx, messageID)
	}
	if err == nil {
		c.Screen, err = all(s.read(ctx), scanOffer, onScreen, fold(messageID), offers.ScreenWindow.Microseconds())
	}
	if err != nil {
		return c, fmt.Errorf("cited message: %w", notFound(err))
	}
	return c, nil
}

// onScreen reads what a person may have meant by a message.
const onScreen = `SELECT ` + offerColumns + fromOffers + `JOIN messages m ON m.person_id = o.person_id WHERE m.id = ?1
	AND (o.state IN ('sending', 'open') OR o.sent_at <= m.received_at AND coalesce(coalesce(o.closed_at, o.left_at) > m.received_at - ?2, true))
	ORDER BY o.created_at, o.id`

// setUp remembers what an operation has set up to run later, with the authority and taint of its run.
func (th *thread) setUp(op offers.Operation, name string) error {
	_, err := th.exec(`INSERT INTO schedules (account_id, person_id, name, operation_id, tier, tainted, created_at)
		SELECT ?1, ?2, ?3, ?4, r.tier, r.tainted, ?5 FROM runs r WHERE r.id = ?6
		ON CONFLICT (account_id, person_id, name) DO UPDATE SET operation_id = excluded.operation_id, tier = excluded.tier,
		tainted = max(schedules.tainted, excluded.tainted), created_at = excluded.created_at`,
		th.accountID, th.personID, name, op.ID, th.now.UnixMicro(), op.RunID)
	return err
}

// sayFor puts an allowed text in line and closes its operation with the text's id.
func (th *thread) sayFor(op offers.Operation, body string) error {
	before := th.texts
	if err := th.say(offers.TextMessage, body); err != nil {
		return err
	}
	if th.texts == before {
		return offers.ErrNoAddress
	}
	out, err := json.Marshal(map[string]string{"text_id": th.lastText})
	if err != nil {
		return err
	}
	raw, sum, err := offers.Result{Status: string(offers.OpSucceeded), Output: out, At: th.now}.Encode()
	if err != nil {
		return err
	}
	op.State, op.Result = offers.OpSucceeded, raw
	if _, err := th.exec(`UPDATE operations SET state = ?2, result = ?3, closed_at = ?4 WHERE id = ?1`, op.ID, string(op.State), string(raw), th.now.UnixMicro()); err != nil {
		return err
	}
	if err := th.record(ledger.Result, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, State: string(op.State), ResultSum: sum}); err != nil {
		return err
	}
	return th.event(offers.OperationClosed, offers.OperationData{Operation: op})
}
