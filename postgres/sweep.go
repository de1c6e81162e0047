package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

// each runs fn under the lock of every person that the query names. The query is a hint; fn looks again. Its $1 is the
// time by the database's clock, less ago: as a value, and not as a call, so that the planner takes the index. A person
// whose transaction fails keeps none of the others back.
func (s *Store) each(ctx context.Context, what, query string, ago time.Duration, fn func(th *thread) (int, error)) (int, error) {
	var due time.Time
	if err := s.pool.QueryRow(ctx, `SELECT cs_now() - $1::interval`, ago).Scan(&due); err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	persons, err := all(ctx, s.pool, pgx.RowTo[string], query, due)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	total := 0
	var errs []error
	for _, id := range persons {
		n := 0
		err := s.inThread(ctx, id, func(th *thread) (err error) {
			n, err = fn(th)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return total, fmt.Errorf("%s: %w", what, errors.Join(append(errs, err)...))
		case err != nil: // mutant: postgres.sweep.others
			errs = append(errs, fmt.Errorf("%s: person %s: %w", what, id, err))
		default:
			total += n
		}
	}
	return total, errors.Join(errs...)
}

func ids(ctx context.Context, tx session, query string, args ...any) ([]string, error) {
	list, err := all(ctx, tx, pgx.RowTo[string], query, args...)
	slices.Sort(list) // ids are in the order of time
	return list, err
}

// Advance implements [offers.Sweeper].
func (s *Store) Advance(ctx context.Context, personID string) (int, error) {
	n := 0
	err := s.inThread(ctx, personID, func(th *thread) error {
		before := th.texts
		err := th.advance(ctx)
		n = int(th.texts - before)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("advance: %w", err)
	}
	return n, nil
}

// AdvanceAll implements [offers.Sweeper].
func (s *Store) AdvanceAll(ctx context.Context) (int, error) {
	return s.each(ctx, "advance", `SELECT DISTINCT person_id FROM (SELECT person_id::text FROM offers q WHERE state = 'queued' AND created_at <= $1
		AND NOT EXISTS (SELECT 1 FROM offers y WHERE y.person_id = q.person_id AND y.state IN ('sending', 'open')) ORDER BY created_at LIMIT 500) due`, 0,
		func(th *thread) (int, error) {
			before := th.texts
			err := th.advance(ctx)
			return int(th.texts - before), err
		})
}

// ExpireDue implements [offers.Sweeper].
func (s *Store) ExpireDue(ctx context.Context) (int, error) {
	return s.each(ctx, "expire", `SELECT DISTINCT person_id FROM (SELECT person_id::text FROM offers WHERE state IN ('queued', 'sending', 'open') AND expires_at <= $1 ORDER BY expires_at LIMIT 500) due`, 0,
		func(th *thread) (int, error) {
			due, err := ids(ctx, th.tx, `SELECT id::text FROM offers WHERE person_id = $1 AND state IN ('queued', 'sending', 'open') AND expires_at <= $2
				ORDER BY created_at, id`, th.personID, th.now)
			if err != nil {
				return 0, err
			}
			for _, id := range due {
				state := offers.Expired
				if o, err := oneOffer(ctx, th.tx, `WHERE o.id = $1`, id); err != nil {
					return 0, err
				} else if o.State == offers.Queued && o.ShownAt == nil {
					state = offers.Lapsed
				}
				if _, _, err := th.closeOffer(ctx, id, state, offers.Closer{By: offers.ByClock}); err != nil {
					return 0, err
				}
			}
			return len(due), th.advance(ctx)
		})
}

// GiveWayDue implements [offers.Sweeper].
func (s *Store) GiveWayDue(ctx context.Context) (int, error) {
	return s.each(ctx, "give way", `SELECT DISTINCT person_id FROM (SELECT q.person_id::text FROM offers q WHERE q.state = 'queued' AND EXISTS (
		SELECT 1 FROM offers o WHERE o.person_id = q.person_id AND o.state = 'open' AND o.asked_at <= $1) ORDER BY q.created_at LIMIT 500) due`, offers.GiveWay,
		func(th *thread) (int, error) {
			gone, err := ids(ctx, th.tx, `UPDATE offers o SET state = 'queued', present = 'queue', left_at = $2 WHERE o.person_id = $1 AND o.state = 'open'
				AND o.ttl_us > $3 AND o.asked_at <= $2::timestamptz - $4::interval AND o.expires_at > $2
				AND EXISTS (SELECT 1 FROM offers q WHERE q.person_id = $1 AND q.state = 'queued' AND q.expires_at > $2) RETURNING o.id::text`,
				th.personID, th.now, offers.OutwardTTL.Microseconds(), offers.GiveWay)
			if err != nil || len(gone) == 0 {
				return 0, err
			}
			return len(gone), th.advance(ctx)
		})
}

// nothingSaid holds for an operation x whose person has said nothing before the end of its settling that nobody has decided
// yet: it may be a "wait, no".
const nothingSaid = `NOT EXISTS (SELECT 1 FROM messages m WHERE m.person_id = x.person_id AND m.trust = 'trusted' AND m.decided_at IS NULL
	AND m.received_at < x.settle_until)`

// SettleDue implements [offers.Sweeper].
func (s *Store) SettleDue(ctx context.Context) (int, error) {
	return s.each(ctx, "settle", `SELECT DISTINCT person_id FROM (SELECT x.person_id::text FROM operations x WHERE x.state = 'settling' AND x.settle_until <= $1 AND `+nothingSaid+`
		ORDER BY x.settle_until LIMIT 500) due`, 0,
		func(th *thread) (int, error) {
			due, err := ids(ctx, th.tx, `UPDATE operations x SET state = 'approved', approved_at = $2::timestamptz
				WHERE x.person_id = $1 AND x.state = 'settling' AND x.settle_until <= $2::timestamptz
				AND `+nothingSaid+` -- mutant: postgres.settle.undecided
				RETURNING x.id::text`, th.personID, th.now)
			if err != nil {
				return 0, err
			}
			for _, id := range due {
				op, err := oneOperation(ctx, th.tx, th.accountID, id)
				if err != nil {
					return 0, err
				}
				if err := th.event(offers.OperationApproved, offers.OperationData{Operation: op}); err != nil {
					return 0, err
				}
			}
			return len(due), nil
		})
}

// LapseDue implements [offers.Sweeper].
func (s *Store) LapseDue(ctx context.Context) (int, error) {
	return s.each(ctx, "lapse", `SELECT DISTINCT person_id FROM (SELECT person_id::text FROM operations WHERE state = 'approved' AND approved_at <= $1 ORDER BY approved_at LIMIT 500) due`,
		offers.BeginWithin, func(th *thread) (int, error) {
			due, err := ids(ctx, th.tx, `UPDATE operations SET state = 'lapsed', closed_at = $2::timestamptz WHERE person_id = $1 AND state = 'approved'
				AND approved_at <= $2::timestamptz - $3::interval RETURNING id::text`, th.personID, th.now, offers.BeginWithin)
			if err != nil {
				return 0, err
			}
			for _, id := range due {
				if _, err := th.tx.Exec(ctx, `UPDATE offers SET state = 'lapsed' WHERE operation_id = $1 AND state = 'consumed'`, id); err != nil {
					return 0, err
				}
				op, err := oneOperation(ctx, th.tx, th.accountID, id)
				if err != nil {
					return 0, err
				}
				if err := th.record(ledger.Closed, id, offers.LedgerBody{Operation: id, Tool: op.Tool, State: string(op.State), By: offers.ByClock}); err != nil {
					return 0, err
				}
				if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
					return 0, err
				}
			}
			return len(due), nil
		})
}

// NoticeDue implements [offers.Sweeper].
func (s *Store) NoticeDue(ctx context.Context, notice string, hourly int) (int, error) {
	return s.each(ctx, "notice", `SELECT DISTINCT person_id FROM (SELECT person_id::text FROM operations WHERE state = 'approved' AND noticed_at IS NULL
		AND approved_at <= $1 ORDER BY approved_at LIMIT 500) due`, offers.NotPickedUp, func(th *thread) (int, error) {
		due, err := ids(ctx, th.tx, `UPDATE operations SET noticed_at = $2::timestamptz WHERE person_id = $1 AND state = 'approved' AND noticed_at IS NULL
			AND approved_at <= $2::timestamptz - $3::interval RETURNING id::text`, th.personID, th.now, offers.NotPickedUp)
		if err != nil || len(due) == 0 {
			return 0, err
		}
		own, err := th.ownTexts(ctx)
		if err != nil || own >= hourly {
			return len(due), err
		}
		return len(due), th.say(ctx, offers.TextNotice, notice)
	})
}

// ResendDue implements [offers.Sweeper].
func (s *Store) ResendDue(ctx context.Context) (int, error) {
	return s.each(ctx, "resend", `SELECT DISTINCT person_id FROM (SELECT person_id::text FROM texts WHERE state IN ('sending', 'unknown') AND NOT resent
		AND sending_at <= $1 ORDER BY sending_at LIMIT 500) due`, offers.SendTimeout, func(th *thread) (int, error) {
		list, err := all(ctx, th.tx, scanText, `UPDATE texts SET state = 'unknown', ended_at = coalesce(ended_at, $2::timestamptz), resent = true
			WHERE person_id = $1 AND state IN ('sending', 'unknown') AND NOT resent AND sending_at <= $2::timestamptz - $3::interval
			RETURNING `+textColumns, th.personID, th.now, offers.SendTimeout)
		if err != nil {
			return 0, err
		}
		slices.SortFunc(list, func(a, b offers.Text) int { return cmp.Compare(a.Number, b.Number) })
		for _, t := range list {
			if err := th.resend(ctx, t); err != nil {
				return 0, err
			}
		}
		return len(list), th.advance(ctx)
	})
}

// resend shows an offer once more whose show has an unknown outcome; where the second one is as unknown the offer ends, since
// nobody can say that it is on a screen. Where the last text of an open offer is another one, its question is put again:
// while nobody knows what is on the screen, no yes counts. The offer's whole text, which stood there because a number had
// picked it, is sent a second time and does not count as a question.
func (th *thread) resend(ctx context.Context, t offers.Text) error {
	if t.OfferID == "" {
		return nil
	}
	if t.Kind != offers.TextShow {
		tag, err := th.tx.Exec(ctx, `UPDATE offers SET reasks = reasks + CASE WHEN shown_text = $6 THEN 0 ELSE 1 END
			WHERE id = $1 AND person_id = $2 AND state = 'open' AND expires_at > $3
			AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = $2 AND y.state <> 'rejected' AND y.number > $5)
			AND CASE WHEN shown_text = $6 THEN -- mutant: postgres.resend.chosen
			  NOT EXISTS (SELECT 1 FROM (SELECT body, state FROM texts WHERE person_id = $2 AND state <> 'rejected' AND number < $5
			    ORDER BY number DESC LIMIT 1) y WHERE y.body = $6 AND y.state = 'unknown')
			  ELSE reasks < $4 END`,
			t.OfferID, th.personID, th.now, offers.MaxReasks, t.Number, t.Body)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		o, err := oneOffer(ctx, th.tx, `WHERE o.id = $1`, t.OfferID)
		if err != nil {
			return err
		}
		body := offers.Question(o)
		if t.Body == o.ShownText {
			body = t.Body
		}
		th.text(offers.TextReask, o.ID, t.Address, t.OurNumber, body)
		return nil
	}
	// Of the shows since the offer last left the line: it may have been on the screen before, and gone back.
	var shows, newest int64
	err := th.tx.QueryRow(ctx, `SELECT count(y.id), coalesce(max(y.number), 0) FROM offers o JOIN texts y ON y.person_id = o.person_id AND y.offer_id = o.id AND y.kind = 'show'
		WHERE o.id = $1 AND o.person_id = $2 AND o.state = 'sending' AND o.expires_at > $3
		AND y.number >= (SELECT min(z.number) FROM texts z WHERE z.person_id = $2 AND z.offer_id = $1 AND z.kind = 'show' AND z.queued_at = o.sent_at)`,
		t.OfferID, th.personID, th.now).Scan(&shows, &newest)
	switch {
	case err != nil || newest != t.Number:
		return err // it has ended, is open, waits in line again, or has been shown anew since
	case shows == 1:
		th.text(offers.TextShow, t.OfferID, t.Address, t.OurNumber, t.Body)
		return nil
	}
	_, _, err = th.closeOffer(ctx, t.OfferID, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}) // mutant: postgres.resend.gives_up
	return err
}
