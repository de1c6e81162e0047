package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// OptOut implements [offers.Phones].
func (s *Store) OptOut(ctx context.Context, o offers.OptOutRequest) error {
	err := s.inThread(ctx, o.PersonID, func(th *thread) error {
		if err := th.decide(ctx, o.MessageID, o.Reading); err != nil {
			return err
		}
		var addr, our string
		err := th.tx.QueryRow(ctx, `SELECT address, our_number FROM messages WHERE id = $1`, o.MessageID).Scan(&addr, &our)
		if err != nil {
			return err
		}
		if err := th.endAll(ctx, o.MessageID); err != nil { // mutant: postgres.stop-permissions
			return err
		}
		return th.optOut(ctx, people.Address(addr), people.Address(our), o.MessageID)
	})
	if err != nil {
		return fmt.Errorf("opt out: %w", err)
	}
	return nil
}

// optOut closes an address for texts; messageID is empty where the carrier said so.
func (th *thread) optOut(ctx context.Context, addr, our people.Address, messageID string) error {
	tag, err := th.tx.Exec(ctx, `UPDATE addresses SET opted_out_at = $4 WHERE address = $1 AND our_number = $2 AND person_id = $3 AND opted_out_at IS NULL`,
		string(addr), string(our), th.personID, th.now)
	if err != nil {
		return err
	}
	if err := th.silence(ctx, addr, our, offers.Withdrawn, offers.Closer{MessageID: messageID, By: offers.ByOptOut(messageID)}); err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return nil // it was closed before, and the agent was told then
	}
	return th.event(offers.PersonOptedOut, offers.OptOutData{PersonID: th.personID, MessageID: messageID})
}

// silence ends what is queued or live at an address: its texts can no longer be sent, or reach nobody.
func (th *thread) silence(ctx context.Context, addr, our people.Address, state offers.State, by offers.Closer) error {
	open, err := ids(ctx, th.tx, `SELECT id::text FROM offers WHERE person_id = $1 AND address = $2 AND our_number = $3
		AND state IN ('queued', 'sending', 'open') ORDER BY created_at, id`, th.personID, string(addr), string(our))
	if err != nil {
		return err
	}
	for _, id := range open {
		if _, _, err := th.closeOffer(ctx, id, state, by); err != nil {
			return err
		}
	}
	_, err = th.tx.Exec(ctx, `UPDATE texts SET state = 'rejected', ended_at = $4 WHERE person_id = $1 AND address = $2 AND our_number = $3 AND state = 'queued'`,
		th.personID, string(addr), string(our), th.now)
	return err
}

// OptIn implements [offers.Phones].
func (s *Store) OptIn(ctx context.Context, p offers.PassRequest) error {
	err := s.inThread(ctx, p.PersonID, func(th *thread) error {
		if err := th.decide(ctx, p.MessageID, p.Reading); err != nil {
			return err
		}
		_, err := th.tx.Exec(ctx, `UPDATE addresses a SET opted_out_at = NULL FROM messages m
			WHERE m.id = $1 AND a.address = m.address AND a.our_number = m.our_number AND a.person_id = $2`, p.MessageID, p.PersonID)
		if err != nil {
			return err
		}
		return th.event(p.Type, p.Data)
	})
	if err != nil {
		return fmt.Errorf("opt in: %w", err)
	}
	return nil
}

// End implements [offers.Phones].
func (s *Store) End(ctx context.Context, messageID, personID string, reading offers.ReadingRecord) error {
	err := s.inThread(ctx, personID, func(th *thread) error { return th.decide(ctx, messageID, reading) })
	if err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

// CancelSettling implements [offers.Phones].
func (s *Store) CancelSettling(ctx context.Context, messageID, personID string, receipt func(offers.Offer) string) (int, error) {
	n := 0
	err := s.inThread(ctx, personID, func(th *thread) error {
		stopped, err := ids(ctx, th.tx, `UPDATE operations SET state = 'declined', closed_at = $2 WHERE person_id = $1 AND state = 'settling'
			AND settle_until > (SELECT received_at FROM messages WHERE id = $3 AND person_id = $1) -- mutant: postgres.cancel.received
			RETURNING id::text`, personID, th.now, messageID)
		if err != nil {
			return err
		}
		for _, id := range stopped {
			op, err := oneOperation(ctx, th.tx, th.accountID, id)
			if err != nil {
				return err
			}
			if err := th.record(ledger.Closed, id, offers.LedgerBody{Operation: id, Tool: op.Tool, State: string(op.State), Message: messageID}); err != nil {
				return err
			}
			if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
				return err
			}
			if err := th.sayOf(ctx, offers.TextReceipt, receipt(*op.Offer), *op.Offer); err != nil {
				return err
			}
		}
		n = len(stopped)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cancel: %w", err)
	}
	return n, nil
}

// Report implements [offers.Phones].
func (s *Store) Report(ctx context.Context, r offers.StatusReport) error {
	if r.Rank() == 0 {
		return nil // a word that is not known proves nothing
	}
	var textID, personID string
	err := s.pool.QueryRow(ctx, `SELECT t.id, t.person_id FROM texts t WHERE t.id = coalesce(
		(SELECT text_id FROM text_parts WHERE provider_id = $1), nullif($2, '')::uuid)`, r.ProviderID, r.TextID).Scan(&textID, &personID)
	if badID(err) {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return fmt.Errorf("report: %w", notFound(err))
	}
	if err := s.inThread(ctx, personID, func(th *thread) error { return th.report(ctx, textID, r) }); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// report records what a callback says of one part. What it says of the text follows from all parts together.
func (th *thread) report(ctx context.Context, textID string, r offers.StatusReport) error {
	tag, err := th.tx.Exec(ctx, `INSERT INTO text_parts (provider_id, text_id, part, delivery, delivery_rank) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (provider_id) DO UPDATE SET delivery = excluded.delivery, delivery_rank = excluded.delivery_rank
		WHERE text_parts.delivery_rank < excluded.delivery_rank`, r.ProviderID, textID, max(r.Part, 1), r.Status, r.Rank())
	if err != nil || tag.RowsAffected() == 0 {
		return err // none: the part has come further already
	}
	rows, err := th.tx.Query(ctx, `UPDATE texts SET delivery = CASE WHEN delivery_rank < $3 THEN $2 ELSE delivery END,
		delivery_rank = greatest(delivery_rank, $3), code = CASE WHEN $4 <> 0 THEN $4 ELSE code END WHERE id = $1 RETURNING `+textColumns,
		textID, r.Status, r.Rank(), r.Code)
	if err != nil {
		return err
	}
	t, err := pgx.CollectExactlyOneRow(rows, scanText)
	if err != nil {
		return err
	}
	switch {
	case r.Lost():
		return th.lost(ctx, t, r.Code)
	case t.State == offers.TextSending || t.State == offers.TextUnknown:
		known, err := all(ctx, th.tx, pgx.RowTo[string], `SELECT min(provider_id) FROM text_parts WHERE text_id = $1 GROUP BY part ORDER BY part`, textID)
		if err != nil || len(known) < max(r.Parts, 1) {
			return err
		}
		return th.settleText(ctx, textID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderIDs: known})
	}
	return nil
}

// lost ends a text that did not reach the phone, whatever was believed before, and what its code says of the number.
func (th *thread) lost(ctx context.Context, t offers.Text, code int) error {
	if _, err := th.tx.Exec(ctx, `UPDATE texts SET state = 'rejected', ended_at = $2 WHERE id = $1`, t.ID, th.now); err != nil {
		return err
	}
	if t.OfferID != "" && t.Kind == offers.TextShow {
		if _, _, err := th.closeOffer(ctx, t.OfferID, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}); err != nil {
			return err
		}
	}
	// What nobody can have seen did not cross with anything.
	if _, err := th.tx.Exec(ctx, `UPDATE offers SET sent_at = NULL WHERE id = nullif($1, '')::uuid
		AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = $2 AND y.offer_id = offers.id AND y.state <> 'rejected')`, t.OfferID, th.personID); err != nil {
		return err
	}
	return th.number(ctx, t, code)
}

// number acts on what a provider's code says of the number that a text went to.
func (th *thread) number(ctx context.Context, t offers.Text, code int) error {
	switch {
	case offers.OptsOut(code):
		if err := th.optOut(ctx, t.Address, t.OurNumber, ""); err != nil {
			return err
		}
	case offers.DeadNumber(code):
		if _, err := th.unbind(ctx, t.Address, t.OurNumber, people.UnboundDead); err != nil {
			return err
		}
	}
	return th.advance(ctx)
}

// Choose implements [offers.Phones].
func (s *Store) Choose(ctx context.Context, c offers.ChooseRequest) error {
	err := s.inThread(ctx, c.PersonID, func(th *thread) error {
		if err := th.decide(ctx, c.MessageID, c.Reading); err != nil {
			return err
		}
		if err := th.event(offers.MessageReceived, c.Data); err != nil {
			return err
		}
		picked, err := th.picked(ctx, c)
		if err != nil {
			return err
		}
		o, err := oneOffer(ctx, th.tx, `WHERE o.id = $1 AND o.person_id = $2 AND o.state = 'open' AND o.expires_at > cs_now()`, picked, c.PersonID)
		if errors.Is(err, offers.ErrNotFound) {
			return nil // it is closed by now: there is nothing to show again
		}
		if err != nil {
			return err
		}
		if _, err := th.tx.Exec(ctx, `UPDATE offers SET state = 'queued', present = 'queue', left_at = $3
			WHERE person_id = $1 AND state IN ('sending', 'open') AND id <> $2`, c.PersonID, o.ID, th.now); err != nil {
			return err
		}
		if _, err := th.tx.Exec(ctx, `UPDATE texts SET state = 'rejected', ended_at = $3 WHERE person_id = $1 AND state = 'queued'
			AND offer_id IS DISTINCT FROM $2 AND (offer_id IS NOT NULL OR kind = 'reask')`,
			c.PersonID, o.ID, th.now); err != nil {
			return err
		}
		th.text(offers.TextReask, o.ID, o.Address, o.OurNumber, o.ShownText)
		return nil
	})
	if err != nil {
		return fmt.Errorf("choose: %w", err)
	}
	return nil
}

// shownList finds what a number answers: the list that was read before the message came, and behind which nothing was texted
// but the same list again. Where another list had been sent before in which the number stood for another offer, the answer may have crossed with this one.
const shownList = `SELECT l.lists::text[] FROM texts l, messages m, threads t
  WHERE l.person_id = $1 AND m.id = $2 AND m.person_id = $1 AND t.person_id = $1 AND l.lists IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = $1 AND y.number > l.number AND y.state <> 'rejected' AND y.lists IS DISTINCT FROM l.lists) -- mutant: postgres.choose.last_text
    AND l.state = 'accepted'                                                  -- mutant: postgres.choose.accepted
    AND l.address = m.address AND l.our_number = m.our_number                 -- mutant: postgres.choose.address
    AND m.number = t.messages                                                 -- mutant: postgres.choose.newest
    AND (m.quoted = '' OR EXISTS (SELECT 1 FROM text_parts q WHERE q.provider_id = m.quoted AND q.text_id = l.id)) -- mutant: postgres.choose.quoted
    AND m.received_at >= l.ended_at + $3::interval                            -- mutant: postgres.choose.min_read
    AND (m.received_at >= l.ended_at + $4::interval OR NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = $1 AND y.lists IS NOT NULL AND y.state <> 'rejected' AND y.sending_at > l.ended_at - $5::interval AND y.lists[$6::int] <> l.lists[$6::int])) -- mutant: postgres.choose.crossed
  ORDER BY l.number LIMIT 1`

// picked is the offer that a number stands for. Errors: *offers.Refusal.
func (th *thread) picked(ctx context.Context, c offers.ChooseRequest) (string, error) {
	var list []string
	err := th.tx.QueryRow(ctx, shownList, c.PersonID, c.MessageID, c.MinRead, offers.CrossFactor*c.MinRead, offers.OutwardTTL, c.Number).Scan(&list)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", err
	}
	live, err := all(ctx, th.tx, pgx.RowTo[string], `SELECT id::text FROM offers WHERE person_id = $1 AND state IN ('sending', 'open') ORDER BY created_at, id`, c.PersonID)
	if err != nil {
		return "", err
	}
	return offers.Picked(list, live, c.Number)
}

// Ended implements [offers.Phones].
func (s *Store) Ended(ctx context.Context, offerID string) ([]offers.Offer, error) {
	list, err := all(ctx, s.pool, scanOffer, `SELECT `+offerColumns+fromOffers+`JOIN offers n ON n.person_id = o.person_id AND n.id <> o.id
		WHERE n.id = $1 AND o.sent_at IS NOT NULL AND o.closed_at > n.asked_at - $2::interval -- mutant: postgres.ended.window
		ORDER BY o.closed_at DESC, o.id DESC LIMIT 10`, offerID, offers.CrossWindow)
	if err != nil {
		return nil, fmt.Errorf("ended: %w", err)
	}
	return list, nil
}
