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

const textColumns = `id, account_id, person_id, number, kind, coalesce(offer_id, ''), address, our_number, body, state, provider_id, code`

func scanText(r row) (offers.Text, error) {
	var t offers.Text
	err := r.Scan(&t.ID, &t.AccountID, &t.PersonID, &t.Number, &t.Kind, &t.OfferID, &t.Address, &t.OurNumber, &t.Body, &t.State, &t.ProviderID, &t.Code)
	return t, err
}

// toActive: to somebody who is suspended no text leaves.
const toActive = ` AND EXISTS (SELECT 1 FROM people p WHERE p.id = t.person_id AND p.state = 'active')` // mutant: sqlite.reserve-active

// Reserve implements [offers.Line].
func (s *Store) Reserve(ctx context.Context) (*offers.Text, error) {
	for {
		// Only a hint, which saves the lock while nothing is queued: what counts is looked at again under it.
		var personID string
		err := s.read(ctx).one(`SELECT t.person_id FROM texts t WHERE t.state = 'queued'`+toActive+`
			AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = t.person_id AND y.state = 'sending')
			ORDER BY t.queued_at LIMIT 1`, nil, &personID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reserve: %w", err)
		}
		t, err := s.reserveFor(ctx, personID)
		if err != nil {
			return nil, fmt.Errorf("reserve: %w", err)
		}
		if t != nil {
			return t, nil
		}
	}
}

func (s *Store) reserveFor(ctx context.Context, personID string) (*offers.Text, error) {
	var t *offers.Text
	err := s.inThread(ctx, personID, func(th *thread) error {
		list, err := all(th.session, scanText, `UPDATE texts SET state = 'sending', sending_at = ?2
			WHERE id = (SELECT t.id FROM texts t WHERE t.person_id = ?1 AND t.state = 'queued'`+toActive+` ORDER BY t.number LIMIT 1)
			AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = ?1 AND y.state = 'sending')
			RETURNING `+textColumns, personID, th.now.UnixMicro())
		if err == nil && len(list) == 1 {
			t = &list[0]
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Sent implements [offers.Line].
func (s *Store) Sent(ctx context.Context, textID string, res offers.SendResult) error {
	textID = fold(textID)
	var personID string
	if err := s.read(ctx).one(`SELECT person_id FROM texts WHERE id = ?1`, []any{textID}, &personID); err != nil {
		return fmt.Errorf("sent: %w", notFound(err))
	}
	if err := s.inThread(ctx, personID, func(th *thread) error { return th.settleText(textID, res) }); err != nil {
		return fmt.Errorf("sent: %w", err)
	}
	return nil
}

// settleText records what is known of a text by now. A text that was given up as unknown may still be proved accepted;
// nothing turns back from accepted or rejected.
func (th *thread) settleText(textID string, res offers.SendResult) error {
	for i, id := range res.IDs() {
		if id == "" {
			continue
		}
		if _, err := th.exec(`INSERT INTO text_parts (provider_id, text_id, part) VALUES (?1, ?2, ?3) ON CONFLICT (provider_id) DO NOTHING`,
			id, textID, i+1); err != nil {
			return err
		}
	}
	list, err := all(th.session, scanText, `UPDATE texts SET state = ?2, provider_id = ?3, code = ?4, ended_at = ?5
		WHERE id = ?1 AND state IN ('sending', 'unknown') RETURNING `+textColumns,
		textID, string(res.TextState()), res.FirstID(), res.Code, th.now.UnixMicro())
	if err != nil || len(list) == 0 {
		return err // none: a callback was faster
	}
	t := list[0]
	switch {
	case t.State == offers.TextAccepted && t.OfferID != "":
		return th.accepted(t)
	case t.State == offers.TextRejected:
		return th.lost(t, res.Code)
	case res.Partial && t.Kind == offers.TextShow:
		// Some parts went out and the rest did not: nobody can say what was on the screen, so nothing may be confirmed.
		if _, _, err := th.closeOffer(t.OfferID, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}); err != nil {
			return err
		}
		return th.number(t, res.Code)
	}
	return nil
}

// accepted opens the offer that a show has brought to the screen, and moves the newest ask of an open one. Its life
// counts from the first time that it was shown: one that waited in the queue again has no new one.
func (th *thread) accepted(t offers.Text) error {
	// A message that is there already came before this, also where the clock has been put back since.
	if _, err := th.exec(`UPDATE offers SET asked_at = max(?2, coalesce((SELECT received_at FROM messages WHERE person_id = ?3 AND number = ?4), 0))
		WHERE id = ?1 AND state IN ('sending', 'open')`, t.OfferID, th.now.UnixMicro(), th.personID, th.messages); err != nil {
		return err
	}
	n, err := th.exec(`UPDATE offers SET state = 'open', shown_at = coalesce(shown_at, ?2), expires_at = coalesce(shown_at, ?2) + ttl_us
		WHERE id = ?1 AND state = 'sending'`,
		t.OfferID, th.now.UnixMicro())
	if err != nil || n == 0 {
		return err
	}
	o, err := oneOffer(th.session, offerByID, t.OfferID)
	if err != nil {
		return err
	}
	return th.event(offers.OfferOpened, offers.OfferData{Offer: o})
}

// Say implements [offers.Line].
func (s *Store) Say(ctx context.Context, accountID, personID string, kind offers.TextKind, body string) error {
	err := s.inThread(ctx, fold(personID), func(th *thread) error {
		if th.accountID != accountID {
			return offers.ErrNotFound
		}
		return th.say(kind, body)
	})
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	return nil
}

// ownTexts counts the questions and notices that the service has put in line for the person on its own within the hour.
func (th *thread) ownTexts() (n int, err error) {
	err = th.one(`SELECT count(*) FROM texts WHERE person_id = ?1 AND kind IN ('reask', 'notice') AND queued_at > ?2`,
		[]any{th.personID, th.now.Add(-time.Hour).UnixMicro()}, &n)
	return n, err
}

// say puts a text in line that is about no offer of its own, and goes to the person's first address.
func (th *thread) say(kind offers.TextKind, body string) error { return th.sayAt(kind, body, "", "") }

// sayOf is say of something that became of an offer: it goes where the offer was shown, from the number that showed it.
func (th *thread) sayOf(kind offers.TextKind, body string, o offers.Offer) error {
	return th.sayAt(kind, body, o.Address, o.OurNumber)
}

// sayAt puts a text in line for an address, or the first where that takes none any more. While exactly one offer is live and
// open, the text goes to where that is, ends with its question and is then about it: the last thing on the screen stays the
// question.
func (th *thread) sayAt(kind offers.TextKind, body string, at, from people.Address) error {
	live, err := all(th.session, scanOffer, liveOffers, th.personID)
	if err != nil {
		return err
	}
	if len(live) == 1 && live[0].State == offers.Open {
		o := live[0]
		return th.text(kind, o.ID, o.Address, o.OurNumber, offers.WithQuestion(body, o))
	}
	var addr, our people.Address
	err = th.one(`SELECT address, our_number FROM addresses WHERE person_id = ?1 AND opted_out_at IS NULL
		ORDER BY address = ?2 AND our_number = ?3 DESC, bound_at, rowid LIMIT 1`, []any{th.personID, string(at), string(from)}, &addr, &our) // mutant: sqlite.say.at
	if errors.Is(err, sql.ErrNoRows) {
		return nil // nobody to tell
	}
	if err != nil {
		return err
	}
	return th.text(kind, "", addr, our, body)
}

// Texts implements [offers.Line].
func (s *Store) Texts(ctx context.Context, accountID, personID string) ([]offers.Text, error) {
	list, err := all(s.read(ctx), scanText, `SELECT `+textColumns+` FROM texts WHERE person_id = ?1 AND account_id = ?2 ORDER BY number`,
		fold(personID), accountID)
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	return list, nil
}
