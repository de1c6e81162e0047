package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// sender is whom an address and our number name.
type sender struct {
	personID  string // empty: nobody
	accountID string
	messages  int64
	tier      string
	state     people.State
}

func senderOf(q session, in offers.Inbound) (sender, error) {
	var who sender
	err := q.one(`SELECT t.person_id, t.account_id, t.messages, p.tier, p.state
		FROM addresses a JOIN threads t ON t.person_id = a.person_id JOIN people p ON p.id = a.person_id
		WHERE a.address = ?1 AND a.our_number = ?2`, []any{string(in.Address), string(in.OurNumber)},
		&who.personID, &who.accountID, &who.messages, &who.tier, &who.state)
	if errors.Is(err, sql.ErrNoRows) {
		return sender{accountID: people.DefaultAccount}, nil
	}
	return who, err
}

// receiveInsert numbers the message and stamps it with the clock as it is under the lock.
const receiveInsert = `INSERT INTO messages (id, account_id, person_id, number, provider, provider_id, address, our_number, text, raw,
	lossy, quoted, trust, run_id, received_at, opt_out)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'trusted', ?13, ?14, ?15)
	ON CONFLICT (provider, provider_id) DO NOTHING`

// Receive implements [offers.Inbox]: number, insert, run and context are one transaction.
func (s *Store) Receive(ctx context.Context, in offers.Inbound) (offers.Received, error) {
	var r offers.Received
	err := s.write(ctx, func(q session, now time.Time) (err error) {
		r, err = receive(q, now, in)
		return err
	})
	if err != nil {
		return offers.Received{}, fmt.Errorf("receive: %w", err)
	}
	return r, nil
}

func receive(q session, now time.Time, in offers.Inbound) (offers.Received, error) {
	who, err := senderOf(q, in)
	if err != nil {
		return offers.Received{}, err
	}
	if who.state != people.Active { // mutant: sqlite.receive-active
		return receivePending(q, now, in, who)
	}
	r := offers.Received{
		MessageID: offers.NewID(), AccountID: who.accountID, PersonID: who.personID, Lossy: in.Lossy, Trusted: true,
		RunID: offers.NewID(), Tier: who.tier, Text: in.Text, Quoted: in.Quoted,
	}
	number := who.messages + 1
	raw := in.Raw
	if raw == nil {
		raw = []byte{}
	}
	n, err := q.exec(receiveInsert, r.MessageID, r.AccountID, r.PersonID, number, in.Provider, in.ProviderID,
		string(in.Address), string(in.OurNumber), in.Text, raw, in.Lossy, in.Quoted, r.RunID, now.UnixMicro(), in.OptOut)
	if err != nil {
		return r, err
	}
	if n == 0 {
		r, err = received(q, now, contextByProvider, in.Provider, in.ProviderID)
		r.Duplicate = true
		return r, err
	}
	if _, err := q.exec(`UPDATE threads SET messages = ?2 WHERE person_id = ?1`, r.PersonID, number); err != nil {
		return r, err
	}
	// The run's tier is the person's, from the table and nowhere else.
	cause, err := json.Marshal(offers.Cause{MessageID: r.MessageID})
	if err != nil {
		return r, err
	}
	_, err = q.exec(`INSERT INTO runs (id, account_id, person_id, tier, cause, message_id, root_id, tainted, interactive, created_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?1, 0, 1, ?7)`, r.RunID, r.AccountID, r.PersonID, r.Tier, string(cause), r.MessageID, now.UnixMicro())
	if err != nil {
		return r, err
	}
	return r, surroundings(q, &r, number, now, now)
}

// contextColumns are what is known of a stored message itself. Of a pending one no word comes back.
const contextColumns = `SELECT m.id, m.account_id, coalesce(m.person_id, ''), coalesce(m.run_id, ''), m.trust = 'trusted', m.lossy,
	m.decided_at IS NOT NULL, iif(m.trust = 'trusted', m.text, ''), iif(m.trust = 'trusted', m.quoted, ''), coalesce(r.tier, ''), coalesce(m.number, 0), m.received_at,
	coalesce((SELECT t.messages > m.number FROM threads t WHERE t.person_id = m.person_id), 0)
	FROM messages m LEFT JOIN runs r ON r.id = m.run_id WHERE `

const (
	contextByProvider = contextColumns + `m.provider = ?1 AND m.provider_id = ?2`
	contextByID       = contextColumns + `m.id = ?1`
)

// Context implements [offers.Inbox].
func (s *Store) Context(ctx context.Context, messageID string) (offers.Received, error) {
	r, err := received(s.read(ctx), s.now(), contextByID, fold(messageID))
	if err != nil {
		return offers.Received{}, fmt.Errorf("context: %w", notFound(err))
	}
	return r, nil
}

// received loads a message that was stored before, with its context.
func received(q session, now time.Time, query string, args ...any) (offers.Received, error) {
	var r offers.Received
	var number, us int64
	err := q.one(query, args, &r.MessageID, &r.AccountID, &r.PersonID, &r.RunID, &r.Trusted, &r.Lossy, &r.Decided, &r.Text, &r.Quoted,
		&r.Tier, &number, &us, &r.Overtaken)
	if err != nil || !r.Trusted {
		return r, err
	}
	return r, surroundings(q, &r, number, at(us), now)
}

// earlier takes the four before it looks at their age: a long history is not walked through.
const earlier = `SELECT text FROM (SELECT text, number, received_at FROM messages
	WHERE person_id = ?1 AND number < ?2 AND trust = 'trusted' ORDER BY number DESC LIMIT 4)
	WHERE received_at > ?3 ORDER BY number DESC`

const liveOffers = `SELECT ` + offerColumns + fromOffers + `WHERE o.person_id = ?1 AND o.state IN ('sending', 'open') ORDER BY o.created_at, o.id`

// surroundings adds the person's earlier messages of the last 24 hours and the live offers.
func surroundings(q session, r *offers.Received, number int64, receivedAt, now time.Time) (err error) {
	if r.Earlier, err = all(q, scanString, earlier, r.PersonID, number, receivedAt.Add(-24*time.Hour).UnixMicro()); err != nil {
		return err
	}
	if r.Live, err = all(q, scanOffer, liveOffers, r.PersonID); err != nil {
		return err
	}
	return q.one(around, []any{r.MessageID}, &r.OptOut, &r.OptedOut, &r.QuotedFor, &r.Settling)
}

// Listening implements [offers.Inbox].
func (s *Store) Listening(ctx context.Context, accountID, personID string) (yes bool, err error) {
	now := s.now()
	if err := s.read(ctx).one(listening, []any{accountID, personID, now.Add(-offers.ListensFor).UnixMicro(), now.Add(-offers.AnswersFor).UnixMicro()}, &yes); err != nil {
		return false, fmt.Errorf("listening: %w", err)
	}
	return yes, nil
}

const listening = `SELECT EXISTS (SELECT 1 FROM keys k WHERE k.account_id = ?1 AND k.revoked_at IS NULL AND k.polled_at > ?3)
	AND NOT EXISTS (SELECT 1 FROM offers d JOIN operations y ON y.id = d.operation_id JOIN keys k ON k.id = y.key_id
	  WHERE d.person_id = ?2 AND d.state IN ('sending', 'open') AND (k.revoked_at IS NOT NULL OR coalesce(k.polled_at <= ?3, 1))) -- mutant: sqlite.own-key
	OR EXISTS (SELECT 1 FROM endpoints e WHERE e.account_id = ?1 AND e.disabled_at IS NULL AND e.answered_at > ?4)`

// around is what else a decision looks at: opt-outs, the text that is answered, yeses that still settle.
const around = `SELECT m.opt_out, coalesce((SELECT a.opted_out_at IS NOT NULL FROM addresses a WHERE a.address = m.address AND a.our_number = m.our_number), 0),
	CASE WHEN m.quoted = '' THEN '' ELSE coalesce((SELECT t.offer_id FROM text_parts q JOIN texts t ON t.id = q.text_id
	  WHERE q.provider_id = m.quoted AND t.person_id = m.person_id), '') END,
	(SELECT count(*) FROM operations s WHERE s.person_id = m.person_id AND s.state = 'settling')
	FROM messages m WHERE m.id = ?1`

// Undecided implements [offers.Inbox].
func (s *Store) Undecided(ctx context.Context, age time.Duration, limit int) ([]string, error) {
	list, err := all(s.read(ctx), scanString, `SELECT id FROM messages WHERE decided_at IS NULL AND trust = 'trusted'
		AND received_at <= ?1 ORDER BY received_at, id LIMIT ?2`, s.now().Add(-age).UnixMicro(), limit)
	if err != nil {
		return nil, fmt.Errorf("undecided: %w", err)
	}
	return list, nil
}

// decide marks a message as decided. *offers.Refusal: it was decided before, or is not the person's.
func (th *thread) decide(messageID string, reading offers.ReadingRecord) error {
	raw, err := json.Marshal(reading)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	n, err := th.exec(`UPDATE messages SET decided_at = ?3, reading = ?4 WHERE id = ?1 AND person_id = ?2 AND decided_at IS NULL`,
		messageID, th.personID, th.now.UnixMicro(), string(raw))
	if err == nil && n == 0 {
		err = &offers.Refusal{Why: offers.WhyDecided}
	}
	return err
}

// Pass implements [offers.Inbox].
func (s *Store) Pass(ctx context.Context, p offers.PassRequest) error {
	err := s.inThread(ctx, p.PersonID, func(th *thread) error {
		if err := th.decide(p.MessageID, p.Reading); err != nil {
			return err
		}
		if err := th.event(p.Type, p.Data); err != nil {
			return err
		}
		if err := th.asked(p); err != nil {
			return err
		}
		if p.Reask == "" {
			return nil
		}
		return th.reask(p)
	})
	if err != nil {
		return fmt.Errorf("pass: %w", err)
	}
	return nil
}

// reask puts an offer's question in line again while that still makes sense.
func (th *thread) reask(p offers.PassRequest) error {
	var addr, our people.Address
	lists, err := listed(p.Listed)
	if err != nil {
		return err
	}
	err = th.one(`UPDATE offers SET reasks = reasks + 1
		WHERE id = ?1 AND person_id = ?2 AND state = 'open' AND expires_at > ?3
		AND (reasks < ?4 OR ?7 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = ?2 AND y.lists = ?7 AND y.state <> 'rejected')) -- mutant: sqlite.reask.limit
		AND (SELECT count(*) FROM texts t WHERE t.person_id = ?2 AND t.kind IN ('reask', 'notice') AND t.queued_at > ?5) < ?6
		RETURNING address, our_number`,
		[]any{p.Reask, th.personID, th.now.UnixMicro(), offers.MaxReasks, th.now.Add(-time.Hour).UnixMicro(), p.HourlyLimit(), lists}, &addr, &our)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if lists == nil {
		return th.text(offers.TextReask, p.Reask, addr, our, p.ReaskText)
	}
	if err := th.text(offers.TextReask, "", addr, our, p.ReaskText); err != nil {
		return err
	}
	_, err = th.exec(`UPDATE texts SET lists = ?2 WHERE id = ?1`, th.lastText, lists)
	return err
}

// listed writes a list as the tables hold it; nil: it is none.
func listed(ids []string) (any, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(ids)
	return string(raw), err
}
