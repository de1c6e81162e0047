package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// OptOut implements [offers.Phones].
func (s *Store) OptOut(ctx context.Context, o offers.OptOutRequest) error {
	err := s.inThread(ctx, o.PersonID, func(th *thread) error {
		if err := th.decide(o.MessageID, o.Reading); err != nil {
			return err
		}
		var addr, our people.Address
		if err := th.one(`SELECT address, our_number FROM messages WHERE id = ?1`, []any{o.MessageID}, &addr, &our); err != nil {
			return err
		}
		if err := th.endAll(o.MessageID); err != nil { // mutant: sqlite.stop-permissions
			return err
		}
		return th.optOut(addr, our, o.MessageID)
	})
	if err != nil {
		return fmt.Errorf("opt out: %w", err)
	}
	return nil
}

// optOut closes an address for texts; messageID is empty where the carrier said so.
func (th *thread) optOut(addr, our people.Address, messageID string) error {
	n, err := th.exec(`UPDATE addresses SET opted_out_at = ?4 WHERE address = ?1 AND our_number = ?2 AND person_id = ?3 AND opted_out_at IS NULL`,
		string(addr), string(our), th.personID, th.now.UnixMicro())
	if err != nil {
		return err
	}
	if err := th.silence(addr, our, offers.Withdrawn, offers.Closer{MessageID: messageID, By: offers.ByOptOut(messageID)}); err != nil {
		return err
	}
	if n == 0 {
		return nil // it was closed before, and the agent was told then
	}
	return th.event(offers.PersonOptedOut, offers.OptOutData{PersonID: th.personID, MessageID: messageID})
}

// silence ends what is queued or live at an address: its texts can no longer be sent, or reach nobody.
func (th *thread) silence(addr, our people.Address, state offers.State, by offers.Closer) error {
	open, err := all(th.session, scanString, `SELECT id FROM offers WHERE person_id = ?1 AND address = ?2 AND our_number = ?3
		AND state IN ('queued', 'sending', 'open') ORDER BY created_at, id`, th.personID, string(addr), string(our))
	if err != nil {
		return err
	}
	for _, id := range open {
		if _, _, err := th.closeOffer(id, state, by); err != nil {
			return err
		}
	}
	_, err = th.exec(`UPDATE texts SET state = 'rejected', ended_at = ?4 WHERE person_id = ?1 AND address = ?2 AND our_number = ?3 AND state = 'queued'`,
		th.personID, string(addr), string(our), th.now.UnixMicro())
	return err
}

// OptIn implements [offers.Phones].
func (s *Store) OptIn(ctx context.Context, p offers.PassRequest) error {
	err := s.inThread(ctx, p.PersonID, func(th *thread) error {
		if err := th.decide(p.MessageID, p.Reading); err != nil {
			return err
		}
		_, err := th.exec(`UPDATE addresses SET opted_out_at = NULL WHERE person_id = ?2
			AND (address, our_number) = (SELECT address, our_number FROM messages WHERE id = ?1)`, p.MessageID, p.PersonID)
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
	if err := s.inThread(ctx, personID, func(th *thread) error { return th.decide(messageID, reading) }); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

// CancelSettling implements [offers.Phones].
func (s *Store) CancelSettling(ctx context.Context, messageID, personID string, receipt func(offers.Offer) string) (int, error) {
	n := 0
	err := s.inThread(ctx, personID, func(th *thread) error {
		stopped, err := all(th.session, scanString, `UPDATE operations SET state = 'declined', closed_at = ?2 WHERE person_id = ?1 AND state = 'settling'
			AND settle_until > (SELECT received_at FROM messages WHERE id = ?3 AND person_id = ?1) -- mutant: sqlite.cancel.received
			RETURNING id`, personID, th.now.UnixMicro(), messageID)
		if err != nil {
			return err
		}
		for _, id := range stopped {
			op, err := oneOperation(th.session, th.accountID, id)
			if err != nil {
				return err
			}
			if err := th.record(ledger.Closed, id, offers.LedgerBody{Operation: id, Tool: op.Tool, State: string(op.State), Message: messageID}); err != nil {
				return err
			}
			if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
				return err
			}
			if err := th.sayOf(offers.TextReceipt, receipt(*op.Offer), *op.Offer); err != nil {
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
	err := s.read(ctx).one(`SELECT t.id, t.person_id FROM texts t WHERE t.id = coalesce((SELECT text_id FROM text_parts WHERE provider_id = ?1), ?2)`,
		[]any{r.ProviderID, fold(r.TextID)}, &textID, &personID)
	if err != nil {
		return fmt.Errorf("report: %w", notFound(err))
	}
	if err := s.inThread(ctx, personID, func(th *thread) error { return th.report(textID, r) }); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// report records what a callback says of one part. What it says of the text follows from all parts together.
func (th *thread) report(textID string, r offers.StatusReport) error {
	n, err := th.exec(`INSERT INTO text_parts (provider_id, text_id, part, delivery, delivery_rank) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (provider_id) DO UPDATE SET delivery = excluded.delivery, delivery_rank = excluded.delivery_rank
		WHERE text_parts.delivery_rank < excluded.delivery_rank`, r.ProviderID, textID, max(r.Part, 1), r.Status, r.Rank())
	if err != nil || n == 0 {
		return err // none: the part has come further already
	}
	list, err := all(th.session, scanText, `UPDATE texts SET delivery = iif(delivery_rank < ?3, ?2, delivery), delivery_rank = max(delivery_rank, ?3),
		code = iif(?4 <> 0, ?4, code) WHERE id = ?1 RETURNING `+textColumns, textID, r.Status, r.Rank(), r.Code)
	if err != nil || len(list) == 0 {
		return err
	}
	t := list[0]
	switch {
	case r.Lost():
		return th.lost(t, r.Code)
	case t.State == offers.TextSending || t.State == offers.TextUnknown:
		known, err := all(th.session, scanString, `SELECT min(provider_id) FROM text_parts WHERE text_id = ?1 GROUP BY part ORDER BY part`, textID)
		if err != nil || len(known) < max(r.Parts, 1) {
			return err
		}
		return th.settleText(textID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderIDs: known})
	}
	return nil
}

// lost ends a text that did not reach the phone, whatever was believed before, and what its code says of the number.
func (th *thread) lost(t offers.Text, code int) error {
	if _, err := th.exec(`UPDATE texts SET state = 'rejected', ended_at = ?2 WHERE id = ?1`, t.ID, th.now.UnixMicro()); err != nil {
		return err
	}
	if t.OfferID != "" && t.Kind == offers.TextShow {
		if _, _, err := th.closeOffer(t.OfferID, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}); err != nil {
			return err
		}
	}
	// What nobody can have seen did not cross with anything.
	if _, err := th.exec(`UPDATE offers SET sent_at = NULL WHERE id = ?1
		AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = ?2 AND y.offer_id = offers.id AND y.state <> 'rejected')`, t.OfferID, th.personID); err != nil {
		return err
	}
	return th.number(t, code)
}

// number acts on what a provider's code says of the number that a text went to.
func (th *thread) number(t offers.Text, code int) error {
	switch {
	case offers.OptsOut(code):
		if err := th.optOut(t.Address, t.OurNumber, ""); err != nil {
			return err
		}
	case offers.DeadNumber(code):
		if _, err := th.unbind(t.Address, t.OurNumber, people.UnboundDead); err != nil {
			return err
		}
	}
	return th.advance()
}

// Choose implements [offers.Phones].
func (s *Store) Choose(ctx context.Context, c offers.ChooseRequest) error {
	err := s.inThread(ctx, c.PersonID, func(th *thread) error {
		if err := th.decide(c.MessageID, c.Reading); err != nil {
			return err
		}
		if err := th.event(offers.MessageReceived, c.Data); err != nil {
			return err
		}
		picked, err := th.picked(c)
		if err != nil {
			return err
		}
		o, err := oneOffer(th.session, chosen, picked, c.PersonID, th.now.UnixMicro())
		if errors.Is(err, offers.ErrNotFound) {
			return nil // it is closed by now: there is nothing to show again
		}
		if err != nil {
			return err
		}
		if _, err := th.exec(`UPDATE offers SET state = 'queued', present = 'queue', left_at = ?3
			WHERE person_id = ?1 AND state IN ('sending', 'open') AND id <> ?2`, c.PersonID, o.ID, th.now.UnixMicro()); err != nil {
			return err
		}
		if _, err := th.exec(`UPDATE texts SET state = 'rejected', ended_at = ?3 WHERE person_id = ?1 AND state = 'queued'
			AND offer_id IS NOT ?2 AND (offer_id IS NOT NULL OR kind = 'reask')`,
			c.PersonID, o.ID, th.now.UnixMicro()); err != nil {
			return err
		}
		return th.text(offers.TextReask, o.ID, o.Address, o.OurNumber, o.ShownText)
	})
	if err != nil {
		return fmt.Errorf("choose: %w", err)
	}
	return nil
}

// shownList finds what a number answers: the list that was read before the message came, and behind which nothing was texted
// but the same list again. Where another list had been sent before in which the number stood for another offer, the answer may have crossed with this one.
const shownList = `SELECT l.lists FROM texts l, messages m, threads t
  WHERE l.person_id = ?1 AND m.id = ?2 AND m.person_id = ?1 AND t.person_id = ?1 AND l.lists IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = ?1 AND y.number > l.number AND y.state <> 'rejected' AND y.lists IS NOT l.lists) -- mutant: sqlite.choose.last_text
    AND l.state = 'accepted'                                        -- mutant: sqlite.choose.accepted
    AND l.address = m.address AND l.our_number = m.our_number       -- mutant: sqlite.choose.address
    AND m.number = t.messages                                       -- mutant: sqlite.choose.newest
    AND (m.quoted = '' OR EXISTS (SELECT 1 FROM text_parts q WHERE q.provider_id = m.quoted AND q.text_id = l.id)) -- mutant: sqlite.choose.quoted
    AND m.received_at >= l.ended_at + ?3                            -- mutant: sqlite.choose.min_read
    AND (m.received_at >= l.ended_at + ?4 OR NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = ?1 AND y.lists IS NOT NULL AND y.state <> 'rejected' AND y.sending_at > l.ended_at - ?5 AND json_extract(y.lists, ?6) <> json_extract(l.lists, ?6))) -- mutant: sqlite.choose.crossed
  ORDER BY l.number LIMIT 1`

// picked is the offer that a number stands for. Errors: *offers.Refusal.
func (th *thread) picked(c offers.ChooseRequest) (string, error) {
	found, err := all(th.session, scanString, shownList, c.PersonID, c.MessageID, c.MinRead.Microseconds(),
		(offers.CrossFactor * c.MinRead).Microseconds(), offers.OutwardTTL.Microseconds(), fmt.Sprintf("$[%d]", c.Number-1))
	if err != nil {
		return "", err
	}
	live, err := all(th.session, scanString, `SELECT id FROM offers WHERE person_id = ?1 AND state IN ('sending', 'open') ORDER BY created_at, id`, c.PersonID)
	if err != nil {
		return "", err
	}
	var list []string
	if len(found) == 1 {
		if err := json.Unmarshal([]byte(found[0]), &list); err != nil {
			return "", fmt.Errorf("list: %w", err)
		}
	}
	return offers.Picked(list, live, c.Number)
}

const chosen = `SELECT ` + offerColumns + fromOffers + `WHERE o.id = ?1 AND o.person_id = ?2 AND o.state = 'open' AND o.expires_at > ?3`

// Ended implements [offers.Phones].
func (s *Store) Ended(ctx context.Context, offerID string) ([]offers.Offer, error) {
	list, err := all(s.read(ctx), scanOffer, `SELECT `+offerColumns+fromOffers+`JOIN offers n ON n.person_id = o.person_id AND n.id <> o.id
		WHERE n.id = ?1 AND o.sent_at IS NOT NULL AND o.closed_at > n.asked_at - ?2 -- mutant: sqlite.ended.window
		ORDER BY o.closed_at DESC, o.id DESC LIMIT 10`, fold(offerID), offers.CrossWindow.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("ended: %w", err)
	}
	return list, nil
}
