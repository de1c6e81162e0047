package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

// each runs fn in the thread of every person that the query names. The query is a hint; fn looks again. A person whose
// transaction fails keeps none of the others back.
func (s *Store) each(ctx context.Context, what, query string, args []any, fn func(th *thread) (int, error)) (int, error) {
	persons, err := all(s.read(ctx), scanString, query, args...)
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
		case err != nil: // mutant: sqlite.sweep.others
			errs = append(errs, fmt.Errorf("%s: person %s: %w", what, id, err))
		default:
			total += n
		}
	}
	return total, errors.Join(errs...)
}

// ago is a moment before the store's clock, in the unit of the tables.
func (s *Store) ago(d time.Duration) int64 { return s.now().Add(-d).UnixMicro() }

// Advance implements [offers.Sweeper].
func (s *Store) Advance(ctx context.Context, personID string) (int, error) {
	n := 0
	err := s.inThread(ctx, fold(personID), func(th *thread) (err error) {
		n, err = th.advanced()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("advance: %w", err)
	}
	return n, nil
}

// advanced starts the next show and returns how many there were.
func (th *thread) advanced() (int, error) {
	before := th.texts
	err := th.advance()
	return int(th.texts - before), err
}

// AdvanceAll implements [offers.Sweeper].
func (s *Store) AdvanceAll(ctx context.Context) (int, error) {
	return s.each(ctx, "advance", `SELECT person_id FROM offers q WHERE state = 'queued'
		AND NOT EXISTS (SELECT 1 FROM offers y WHERE y.person_id = q.person_id AND y.state IN ('sending', 'open'))
		GROUP BY person_id ORDER BY min(created_at) LIMIT 500`, nil,
		(*thread).advanced)
}

// ExpireDue implements [offers.Sweeper].
func (s *Store) ExpireDue(ctx context.Context) (int, error) {
	return s.each(ctx, "expire", `SELECT person_id FROM offers WHERE state IN ('queued', 'sending', 'open') AND expires_at <= ?1
		GROUP BY person_id ORDER BY min(expires_at) LIMIT 500`,
		[]any{s.ago(0)}, func(th *thread) (int, error) {
			due, err := all(th.session, scanString, `SELECT id FROM offers WHERE person_id = ?1 AND state IN ('queued', 'sending', 'open') AND expires_at <= ?2
				ORDER BY created_at, id`, th.personID, th.now.UnixMicro())
			if err != nil {
				return 0, err
			}
			for _, id := range due {
				state := offers.Expired
				if o, err := oneOffer(th.session, offerByID, id); err != nil {
					return 0, err
				} else if o.State == offers.Queued && o.ShownAt == nil {
					state = offers.Lapsed
				}
				if _, _, err := th.closeOffer(id, state, offers.Closer{By: offers.ByClock}); err != nil {
					return 0, err
				}
			}
			return len(due), th.advance()
		})
}

// GiveWayDue implements [offers.Sweeper].
func (s *Store) GiveWayDue(ctx context.Context) (int, error) {
	return s.each(ctx, "give way", `SELECT q.person_id FROM offers q WHERE q.state = 'queued' AND EXISTS (
		SELECT 1 FROM offers o WHERE o.person_id = q.person_id AND o.state IN ('sending', 'open') AND o.state = 'open' AND o.asked_at <= ?1)
		GROUP BY q.person_id ORDER BY min(q.created_at) LIMIT 500`,
		[]any{s.ago(offers.GiveWay)}, func(th *thread) (int, error) {
			gone, err := all(th.session, scanString, `UPDATE offers AS o SET state = 'queued', present = 'queue', left_at = ?2 WHERE o.person_id = ?1 AND o.state IN ('sending', 'open') AND o.state = 'open'
				AND o.ttl_us > ?3 AND o.asked_at <= ?2 - ?4 AND o.expires_at > ?2
				AND EXISTS (SELECT 1 FROM offers q WHERE q.person_id = ?1 AND q.state = 'queued' AND q.expires_at > ?2) RETURNING id`,
				th.personID, th.now.UnixMicro(), offers.OutwardTTL.Microseconds(), offers.GiveWay.Microseconds())
			if err != nil || len(gone) == 0 {
				return 0, err
			}
			return len(gone), th.advance()
		})
}

// nothingSaid holds for an operation x whose person has said nothing before the end of its settling that nobody has decided
// yet: it may be a "wait, no".
const nothingSaid = `NOT EXISTS (SELECT 1 FROM messages m WHERE m.person_id = x.person_id AND m.trust = 'trusted' AND m.decided_at IS NULL
	AND m.received_at < x.settle_until)`

// SettleDue implements [offers.Sweeper].
func (s *Store) SettleDue(ctx context.Context) (int, error) {
	return s.each(ctx, "settle", `SELECT x.person_id FROM operations x WHERE x.state = 'settling' AND x.settle_until <= ?1 AND `+nothingSaid+`
		GROUP BY x.person_id ORDER BY min(x.settle_until) LIMIT 500`,
		[]any{s.ago(0)}, func(th *thread) (int, error) {
			due, err := all(th.session, scanString, `UPDATE operations AS x SET state = 'approved', approved_at = ?2
				WHERE x.person_id = ?1 AND x.state = 'settling' AND x.settle_until <= ?2
				AND `+nothingSaid+` -- mutant: sqlite.settle.undecided
				RETURNING id`, th.personID, th.now.UnixMicro())
			if err != nil {
				return 0, err
			}
			slices.Sort(due)
			for _, id := range due {
				op, err := oneOperation(th.session, th.accountID, id)
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
	return s.each(ctx, "lapse", `SELECT person_id FROM operations WHERE state = 'approved' AND approved_at <= ?1
		GROUP BY person_id ORDER BY min(approved_at) LIMIT 500`,
		[]any{s.ago(offers.BeginWithin)}, func(th *thread) (int, error) {
			due, err := all(th.session, scanString, `UPDATE operations SET state = 'lapsed', closed_at = ?2
				WHERE person_id = ?1 AND state = 'approved' AND approved_at <= ?3 RETURNING id`,
				th.personID, th.now.UnixMicro(), th.now.Add(-offers.BeginWithin).UnixMicro())
			if err != nil {
				return 0, err
			}
			slices.Sort(due)
			for _, id := range due {
				if err := th.lapsed(id); err != nil {
					return 0, err
				}
			}
			return len(due), nil
		})
}

// lapsed does what follows from an approval that this transaction has let lapse.
func (th *thread) lapsed(operationID string) error {
	if _, err := th.exec(`UPDATE offers SET state = 'lapsed' WHERE operation_id = ?1 AND state = 'consumed'`, operationID); err != nil {
		return err
	}
	op, err := oneOperation(th.session, th.accountID, operationID)
	if err != nil {
		return err
	}
	err = th.record(ledger.Closed, operationID, offers.LedgerBody{Operation: operationID, Tool: op.Tool, State: string(op.State), By: offers.ByClock})
	if err != nil {
		return err
	}
	return th.event(offers.OperationClosed, offers.OperationData{Operation: op})
}

// NoticeDue implements [offers.Sweeper].
func (s *Store) NoticeDue(ctx context.Context, notice string, hourly int) (int, error) {
	return s.each(ctx, "notice", `SELECT person_id FROM operations WHERE state = 'approved' AND noticed_at IS NULL AND approved_at <= ?1
		GROUP BY person_id ORDER BY min(approved_at) LIMIT 500`,
		[]any{s.ago(offers.NotPickedUp)}, func(th *thread) (int, error) {
			n, err := th.exec(`UPDATE operations SET noticed_at = ?2 WHERE person_id = ?1 AND state = 'approved' AND noticed_at IS NULL AND approved_at <= ?3`,
				th.personID, th.now.UnixMicro(), th.now.Add(-offers.NotPickedUp).UnixMicro())
			if err != nil || n == 0 {
				return 0, err
			}
			own, err := th.ownTexts()
			if err != nil || own >= hourly {
				return int(n), err
			}
			return int(n), th.say(offers.TextNotice, notice)
		})
}

// ResendDue implements [offers.Sweeper].
func (s *Store) ResendDue(ctx context.Context) (int, error) {
	return s.each(ctx, "resend", `SELECT person_id FROM texts INDEXED BY texts_doubt WHERE state IN ('sending', 'unknown') AND NOT resent AND sending_at <= ?1
		GROUP BY person_id ORDER BY min(sending_at) LIMIT 500`,
		[]any{s.ago(offers.SendTimeout)}, func(th *thread) (int, error) {
			list, err := all(th.session, scanText, `UPDATE texts SET state = 'unknown', ended_at = coalesce(ended_at, ?2), resent = 1
				WHERE person_id = ?1 AND state IN ('sending', 'unknown') AND NOT resent AND sending_at <= ?3
				RETURNING `+textColumns, th.personID, th.now.UnixMicro(), th.now.Add(-offers.SendTimeout).UnixMicro())
			if err != nil {
				return 0, err
			}
			slices.SortFunc(list, func(a, b offers.Text) int { return cmp.Compare(a.Number, b.Number) })
			for _, t := range list {
				if err := th.resend(t); err != nil {
					return 0, err
				}
			}
			return len(list), th.advance()
		})
}

// resend shows an offer once more whose show has an unknown outcome; where the second one is as unknown the offer ends, since
// nobody can say that it is on a screen. Where the last text of an open offer is another one, its question is put again:
// while nobody knows what is on the screen, no yes counts. The offer's whole text, which stood there because a number had
// picked it, is sent a second time and does not count as a question.
func (th *thread) resend(t offers.Text) error {
	if t.OfferID == "" {
		return nil
	}
	if t.Kind != offers.TextShow {
		n, err := th.exec(`UPDATE offers SET reasks = reasks + iif(shown_text = ?6, 0, 1)
			WHERE id = ?1 AND person_id = ?2 AND state = 'open' AND expires_at > ?3
			AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = ?2 AND y.state <> 'rejected' AND y.number > ?5)
			AND iif(shown_text = ?6, -- mutant: sqlite.resend.chosen
			  NOT EXISTS (SELECT 1 FROM (SELECT body, state FROM texts WHERE person_id = ?2 AND state <> 'rejected' AND number < ?5
			    ORDER BY number DESC LIMIT 1) y WHERE y.body = ?6 AND y.state = 'unknown'),
			  reasks < ?4)`,
			t.OfferID, th.personID, th.now.UnixMicro(), offers.MaxReasks, t.Number, t.Body)
		if err != nil || n == 0 {
			return err
		}
		o, err := oneOffer(th.session, offerByID, t.OfferID)
		if err != nil {
			return err
		}
		body := offers.Question(o)
		if t.Body == o.ShownText {
			body = t.Body
		}
		return th.text(offers.TextReask, o.ID, t.Address, t.OurNumber, body)
	}
	// Of the shows since the offer last left the line: it may have been on the screen before, and gone back.
	var shows, newest int64
	err := th.one(`SELECT count(y.id), coalesce(max(y.number), 0) FROM offers o JOIN texts y ON y.person_id = o.person_id AND y.offer_id = o.id AND y.kind = 'show'
		WHERE o.id = ?1 AND o.person_id = ?2 AND o.state = 'sending' AND o.expires_at > ?3
		AND y.number >= (SELECT min(z.number) FROM texts z WHERE z.person_id = ?2 AND z.offer_id = ?1 AND z.kind = 'show' AND z.queued_at = o.sent_at)`,
		[]any{t.OfferID, th.personID, th.now.UnixMicro()}, &shows, &newest)
	switch {
	case err != nil || newest != t.Number:
		return err // it has ended, is open, waits in line again, or has been shown anew since
	case shows == 1:
		return th.text(offers.TextShow, t.OfferID, t.Address, t.OurNumber, t.Body)
	}
	_, _, err = th.closeOffer(t.OfferID, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}) // mutant: sqlite.resend.gives_up
	return err
}
