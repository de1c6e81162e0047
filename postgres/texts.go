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

// toActive: to somebody who is suspended no text leaves.
const toActive = ` AND EXISTS (SELECT 1 FROM people p WHERE p.id = t.person_id AND p.state = 'active')` // mutant: postgres.reserve-active

// Reserve implements [offers.Line].
func (s *Store) Reserve(ctx context.Context) (*offers.Text, error) {
	for {
		// Only a hint: what counts is looked at again under the person's lock.
		var personID string
		err := s.pool.QueryRow(ctx, `SELECT t.person_id FROM texts t WHERE t.state = 'queued'`+toActive+`
			AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = t.person_id AND y.state = 'sending')
			ORDER BY t.queued_at LIMIT 1`).Scan(&personID)
		if errors.Is(err, pgx.ErrNoRows) {
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
		list, err := all(ctx, th.tx, scanText, `UPDATE texts SET state = 'sending', sending_at = $2
			WHERE id = (SELECT t.id FROM texts t WHERE t.person_id = $1 AND t.state = 'queued'`+toActive+` ORDER BY t.number LIMIT 1)
			AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = $1 AND y.state = 'sending')
			RETURNING `+textColumns, personID, th.now)
		if err == nil && len(list) == 1 {
			t = &list[0]
		}
		return err
	})
	return t, err
}

const textColumns = `id, account_id, person_id, number, kind, coalesce(offer_id::text, ''), address, our_number, body, state, provider_id, code`

func scanText(row pgx.CollectableRow) (offers.Text, error) {
	var t offers.Text
	err := row.Scan(&t.ID, &t.AccountID, &t.PersonID, &t.Number, &t.Kind, &t.OfferID, &t.Address, &t.OurNumber, &t.Body, &t.State, &t.ProviderID, &t.Code)
	return t, err
}

// Sent implements [offers.Line].
func (s *Store) Sent(ctx context.Context, textID string, res offers.SendResult) error {
	var personID string
	if err := s.pool.QueryRow(ctx, `SELECT person_id FROM texts WHERE id = $1`, textID).Scan(&personID); err != nil {
		return fmt.Errorf("sent: %w", notFound(err))
	}
	if err := s.inThread(ctx, personID, func(th *thread) error { return th.settleText(ctx, textID, res) }); err != nil {
		return fmt.Errorf("sent: %w", err)
	}
	return nil
}

// settleText records what is known of a text by now. A text that was given up as unknown may still be proved accepted;
// nothing turns back from accepted or rejected.
func (th *thread) settleText(ctx context.Context, textID string, res offers.SendResult) error {
	for i, id := range res.IDs() {
		if id == "" {
			continue
		}
		if _, err := th.tx.Exec(ctx, `INSERT INTO text_parts (provider_id, text_id, part) VALUES ($1, $2, $3) ON CONFLICT (provider_id) DO NOTHING`,
			id, textID, i+1); err != nil {
			return err
		}
	}
	rows, err := th.tx.Query(ctx, `UPDATE texts SET state = $2, provider_id = $3, code = $4, ended_at = $5
		WHERE id = $1 AND state IN ('sending', 'unknown') RETURNING `+textColumns,
		textID, string(res.TextState()), res.FirstID(), res.Code, th.now)
	if err != nil {
		return err
	}
	t, err := pgx.CollectExactlyOneRow(rows, scanText)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // a callback was faster
	}
	if err != nil {
		return err
	}
	switch {
	case t.State == offers.TextAccepted && t.OfferID != "":
		return th.accepted(ctx, t)
	case t.State == offers.TextRejected:
		return th.lost(ctx, t, res.Code)
	case res.Partial && t.Kind == offers.TextShow:
		// Some parts went out and the rest did not: nobody can say what was on the screen, so nothing may be confirmed.
		if _, _, err := th.closeOffer(ctx, t.OfferID, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}); err != nil {
			return err
		}
		return th.number(ctx, t, res.Code)
	}
	return nil
}

// accepted opens the offer that a show has brought to the screen, and moves the newest ask of an open one. Its life
// counts from the first time that it was shown: one that waited in the queue again has no new one.
func (th *thread) accepted(ctx context.Context, t offers.Text) error {
	// A message that is there already came before this, also where the clock has been put back since.
	if _, err := th.tx.Exec(ctx, `UPDATE offers SET asked_at = greatest($2::timestamptz, (SELECT received_at FROM messages WHERE person_id = $3 AND number = $4))
		WHERE id = $1 AND state IN ('sending', 'open')`, t.OfferID, th.now, th.personID, th.messages); err != nil {
		return err
	}
	tag, err := th.tx.Exec(ctx, `UPDATE offers SET state = 'open', shown_at = coalesce(shown_at, $2::timestamptz), expires_at = coalesce(shown_at, $2::timestamptz) + ttl_us * interval '1 microsecond'
		WHERE id = $1 AND state = 'sending'`, t.OfferID, th.now)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	o, err := oneOffer(ctx, th.tx, `WHERE o.id = $1`, t.OfferID)
	if err != nil {
		return err
	}
	return th.event(offers.OfferOpened, offers.OfferData{Offer: o})
}

// Say implements [offers.Line].
func (s *Store) Say(ctx context.Context, accountID, personID string, kind offers.TextKind, body string) error {
	err := s.inThread(ctx, personID, func(th *thread) error {
		if th.accountID != accountID {
			return offers.ErrNotFound
		}
		return th.say(ctx, kind, body)
	})
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	return nil
}

// ownTexts counts the questions and notices that the service has put in line for the person on its own within the hour.
func (th *thread) ownTexts(ctx context.Context) (n int, err error) {
	err = th.tx.QueryRow(ctx, `SELECT count(*) FROM texts WHERE person_id = $1 AND kind IN ('reask', 'notice') AND queued_at > $2`,
		th.personID, th.now.Add(-time.Hour)).Scan(&n)
	return n, err
}

// say puts a text in line that is about no offer of its own, and goes to the person's first address.
func (th *thread) say(ctx context.Context, kind offers.TextKind, body string) error {
	return th.sayAt(ctx, kind, body, "", "")
}

// sayOf is say of something that became of an offer: it goes where the offer was shown, from the number that showed it.
func (th *thread) sayOf(ctx context.Context, kind offers.TextKind, body string, o offers.Offer) error {
	return th.sayAt(ctx, kind, body, o.Address, o.OurNumber)
}

// sayAt puts a text in line for an address, or the first where that takes none any more. While exactly one offer is live and
// open, the text goes to where that is, ends with its question and is then about it: the last thing on the screen stays the
// question.
func (th *thread) sayAt(ctx context.Context, kind offers.TextKind, body string, at, from people.Address) error {
	live, err := all(ctx, th.tx, scanOffer, `SELECT `+offerColumns+fromOffers+`WHERE o.person_id = $1 AND o.state IN ('sending', 'open')`, th.personID)
	if err != nil {
		return err
	}
	if len(live) == 1 && live[0].State == offers.Open {
		o := live[0]
		th.text(kind, o.ID, o.Address, o.OurNumber, offers.WithQuestion(body, o))
		return nil
	}
	var addr, our string
	err = th.tx.QueryRow(ctx, `SELECT address, our_number FROM addresses WHERE person_id = $1 AND opted_out_at IS NULL
		ORDER BY address = $2 AND our_number = $3 DESC, bound_at, address LIMIT 1`, th.personID, string(at), string(from)).Scan(&addr, &our) // mutant: postgres.say.at
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // nobody to tell
	}
	if err != nil {
		return err
	}
	th.text(kind, "", people.Address(addr), people.Address(our), body)
	return nil
}

// Texts implements [offers.Line].
func (s *Store) Texts(ctx context.Context, accountID, personID string) ([]offers.Text, error) {
	list, err := all(ctx, s.pool, scanText, `SELECT `+textColumns+` FROM texts WHERE person_id = $1 AND account_id = $2 ORDER BY number`, personID, accountID)
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	return list, nil
}
