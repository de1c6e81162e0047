package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// receive numbers the message, stamps it after the lock is held, makes its run, and reads what a decision about it needs,
// with a row for each live offer: it is the person's newest, and undecided. The run's tier is the person's, from the table
// and nowhere else.
func receive() statement {
	return newStatement(0, []string{
		"address text", "our_number text", "message_id uuid", "provider text", "provider_id text", "text text", "raw bytea", "lossy boolean",
		"quoted text", "run_id uuid", "opt_out text",
	}, `,
who AS MATERIALIZED (
  SELECT q.call, q.message_id, t.person_id, t.account_id, t.messages + 1 AS number, p.tier, a.opted_out_at IS NOT NULL AS opted_out
  FROM q JOIN addresses a ON a.address = q.address AND a.our_number = q.our_number
  JOIN threads t ON t.person_id = a.person_id JOIN people p ON p.id = a.person_id
  WHERE p.state = 'active'                                          -- mutant: postgres.receive-active
),
m AS (
  INSERT INTO messages (id, account_id, person_id, number, provider, provider_id, address, our_number, text, raw, lossy, quoted,
    opt_out, trust, run_id, received_at)
  SELECT q.message_id, who.account_id, who.person_id, who.number, q.provider, q.provider_id, q.address, q.our_number, q.text, q.raw,
    q.lossy, q.quoted, q.opt_out, 'trusted', q.run_id, cs_now()
  FROM who JOIN q ON q.call = who.call
  ON CONFLICT (provider, provider_id) DO NOTHING
  RETURNING id, account_id, person_id, number, quoted, trust, run_id, received_at),
r AS (
  INSERT INTO runs (id, account_id, person_id, tier, cause, message_id, root_id, tainted, interactive, created_at)
  SELECT m.run_id, m.account_id, m.person_id, who.tier, jsonb_build_object('message_id', m.id), m.id, m.run_id, false, true, m.received_at
  FROM m JOIN who ON who.message_id = m.id),
u AS (UPDATE threads SET messages = m.number FROM m WHERE threads.person_id = m.person_id)
SELECT who.call, m.account_id, m.person_id, who.tier, who.opted_out,
  `+besideMessage+`,
  o.created_at, `+offerColumns+`
FROM m JOIN who ON who.message_id = m.id
LEFT JOIN (offers o JOIN operations x ON x.id = o.operation_id) ON o.person_id = m.person_id AND o.state IN ('sending', 'open')`)
}

// besideMessage are the columns of what a decision needs beside the message m itself: at most four earlier messages of the
// last 24 hours, and the yeses that settle. What few messages need is asked for by itself: a part of a plan costs its
// setting up, whether it is run or not.
const besideMessage = `ARRAY(SELECT e.text FROM (SELECT e.text, e.number, e.received_at FROM messages e
    WHERE e.person_id = m.person_id AND e.number < m.number AND e.trust = 'trusted' AND m.trust = 'trusted' ORDER BY e.number DESC LIMIT 4) e
    WHERE e.received_at > m.received_at - interval '24 hours' ORDER BY e.number DESC),
  (SELECT count(*) FROM operations s WHERE s.person_id = m.person_id AND s.state = 'settling')`

// quotedFor is the offer that a text of ours was about.
const quotedFor = `SELECT coalesce(t.offer_id::text, '') FROM text_parts q JOIN texts t ON t.id = q.text_id WHERE q.provider_id = $1 AND t.person_id = $2`

const listening = `SELECT EXISTS (SELECT 1 FROM keys k WHERE k.account_id = $1 AND k.revoked_at IS NULL AND k.polled_at > cs_now() - $3::interval)
    AND NOT EXISTS (SELECT 1 FROM offers d JOIN operations y ON y.id = d.operation_id JOIN keys k ON k.id = y.key_id
      WHERE d.person_id = $2 AND d.state IN ('sending', 'open') AND (k.revoked_at IS NOT NULL OR coalesce(k.polled_at <= cs_now() - $3::interval, true))) -- mutant: postgres.own-key
  OR EXISTS (SELECT 1 FROM endpoints e WHERE e.account_id = $1 AND e.disabled_at IS NULL AND e.answered_at > cs_now() - $4::interval)`

// contextOf is everything that a decision about a message that was stored before needs: the message, its person's tier
// and what is beside it. Of a pending message no word comes back.
const contextOf = `SELECT m.id, m.account_id, coalesce(m.person_id::text, ''), coalesce(m.run_id::text, ''), m.trust = 'trusted', m.lossy,
  m.decided_at IS NOT NULL,
  CASE WHEN m.trust = 'trusted' THEN m.text ELSE '' END,
  CASE WHEN m.trust = 'trusted' THEN m.quoted ELSE '' END, coalesce(r.tier, ''),
  coalesce((SELECT t.messages > m.number FROM threads t WHERE t.person_id = m.person_id), false),
  m.opt_out, coalesce((SELECT a.opted_out_at IS NOT NULL FROM addresses a WHERE a.address = m.address AND a.our_number = m.our_number), false),
  ` + besideMessage + `
FROM messages m LEFT JOIN runs r ON r.id = m.run_id WHERE m.provider = $1 AND m.provider_id = $2`

// liveOffers is the other half of the context, in the same round trip.
const liveOffers = `SELECT ` + offerColumns + ` FROM messages m JOIN offers o ON o.person_id = m.person_id AND o.state IN ('sending', 'open')
	JOIN operations x ON x.id = o.operation_id
	WHERE m.provider = $1 AND m.provider_id = $2 AND m.trust = 'trusted' ORDER BY o.created_at, o.id`

// Receive implements [offers.Inbox]: the lock, then insert and context in one statement. It is one pipeline, one
// transaction and one round trip. Only of a message that was stored before is the context read once more.
func (s *Store) Receive(ctx context.Context, in offers.Inbound) (offers.Received, error) {
	fresh := offers.Received{MessageID: offers.NewID(), RunID: offers.NewID(), Trusted: true, Lossy: in.Lossy, OptOut: in.OptOut, Text: in.Text, Quoted: in.Quoted}
	var got receiving
	err := s.together(ctx, &call{
		statement: &s.receive, address: string(in.Address), our: string(in.OurNumber),
		args: []any{
			string(in.Address), string(in.OurNumber), fresh.MessageID, in.Provider, in.ProviderID,
			in.Text, in.Raw, in.Lossy, in.Quoted, fresh.RunID, in.OptOut,
		},
		reset: func() { got = receiving{r: fresh} }, row: got.row,
	})
	inserted, r := got.live != nil, got.received()
	switch {
	case err != nil:
	case inserted:
		err = s.quoted(ctx, &r)
	default:
		r, err = s.stored(ctx, in.Provider, in.ProviderID)
		r.Duplicate = true
	}
	if errors.Is(err, offers.ErrNotFound) {
		return s.receivePending(ctx, in) // stored neither now nor before: its sender may decide nothing
	}
	if err != nil {
		return offers.Received{}, fmt.Errorf("receive: %w", err)
	}
	return r, nil
}

// receiving is a message while its rows come.
type receiving struct {
	r    offers.Received
	live []liveOffer // nil: nothing was inserted
}

// liveOffer is an offer, and what offers are ordered by.
type liveOffer struct {
	created time.Time
	o       offers.Offer
}

// row takes a row of the statement receive.
func (g *receiving) row(rows pgx.Rows) error {
	r := &g.r
	if g.live == nil {
		g.live = []liveOffer{}
	}
	var created *time.Time
	var live offerRow
	dest := []any{nil, &r.AccountID, &r.PersonID, &r.Tier, &r.OptedOut, &r.Earlier, &r.Settling, &created}
	offer := live.dest()
	none := rows.RawValues()[len(dest)] == nil
	if none {
		offer = make([]any, len(offer)) // which skips them
	}
	if err := rows.Scan(append(dest, offer...)...); err != nil || none {
		return err
	}
	o, err := live.offer()
	g.live = append(g.live, liveOffer{deref(created), o})
	return err
}

// received is the message with its offers, the oldest first.
func (g *receiving) received() offers.Received {
	slices.SortFunc(g.live, func(a, b liveOffer) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.o.ID, b.o.ID)) })
	g.r.Live = make([]offers.Offer, len(g.live))
	for i, l := range g.live {
		g.r.Live[i] = l.o
	}
	return g.r
}

// Context implements [offers.Inbox].
func (s *Store) Context(ctx context.Context, messageID string) (offers.Received, error) {
	var provider, id string
	err := s.pool.QueryRow(ctx, `SELECT provider, provider_id FROM messages WHERE id = $1`, messageID).Scan(&provider, &id)
	if err != nil {
		return offers.Received{}, fmt.Errorf("context: %w", notFound(err))
	}
	r, err := s.stored(ctx, provider, id)
	if err != nil {
		return offers.Received{}, fmt.Errorf("context: %w", err)
	}
	return r, nil
}

// stored loads a message that was stored before, with its context.
func (s *Store) stored(ctx context.Context, provider, id string) (r offers.Received, err error) {
	var b pgx.Batch
	b.Queue(contextOf, provider, id).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&r.MessageID, &r.AccountID, &r.PersonID, &r.RunID, &r.Trusted, &r.Lossy, &r.Decided, &r.Text, &r.Quoted,
			&r.Tier, &r.Overtaken, &r.OptOut, &r.OptedOut, &r.Earlier, &r.Settling)
		return notFound(err)
	})
	b.Queue(liveOffers, provider, id).Query(func(rows pgx.Rows) (err error) {
		r.Live, err = pgx.CollectRows(rows, scanOffer)
		return err
	})
	if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
		return r, err
	}
	return r, s.quoted(ctx, &r)
}

// quoted finds what the text that a message answers was about.
func (s *Store) quoted(ctx context.Context, r *offers.Received) error {
	if r.Quoted == "" {
		return nil
	}
	err := s.pool.QueryRow(ctx, quotedFor, r.Quoted, r.PersonID).Scan(&r.QuotedFor)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// Listening implements [offers.Inbox].
func (s *Store) Listening(ctx context.Context, accountID, personID string) (yes bool, err error) {
	if err := s.pool.QueryRow(ctx, listening, accountID, personID, offers.ListensFor, offers.AnswersFor).Scan(&yes); err != nil {
		return false, fmt.Errorf("listening: %w", err)
	}
	return yes, nil
}

func discard(pgconn.CommandTag) error { return nil }

// Undecided implements [offers.Inbox].
func (s *Store) Undecided(ctx context.Context, age time.Duration, limit int) ([]string, error) {
	list, err := all(ctx, s.pool, pgx.RowTo[string], `SELECT id::text FROM messages WHERE decided_at IS NULL AND trust = 'trusted'
		AND received_at <= cs_now() - $1::interval ORDER BY received_at, id LIMIT $2`, age, limit)
	if err != nil {
		return nil, fmt.Errorf("undecided: %w", err)
	}
	return list, nil
}

// decide marks a message as decided inside a transaction. *offers.Refusal: it was decided before, or is not the person's.
func (th *thread) decide(ctx context.Context, messageID string, reading offers.ReadingRecord) error {
	raw, err := json.Marshal(reading)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	tag, err := th.tx.Exec(ctx, `UPDATE messages SET decided_at = $3, reading = $4 WHERE id = $1 AND person_id = $2 AND decided_at IS NULL`,
		messageID, th.personID, th.now, raw)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return &offers.Refusal{Why: offers.WhyDecided}
	}
	return nil
}

// Pass implements [offers.Inbox].
func (s *Store) Pass(ctx context.Context, p offers.PassRequest) error {
	err := s.inThread(ctx, p.PersonID, func(th *thread) error {
		if err := th.decide(ctx, p.MessageID, p.Reading); err != nil {
			return err
		}
		if err := th.event(p.Type, p.Data); err != nil {
			return err
		}
		if err := th.asked(ctx, p); err != nil {
			return err
		}
		if p.Reask == "" {
			return nil
		}
		return th.reask(ctx, p)
	})
	if err != nil {
		return fmt.Errorf("pass: %w", err)
	}
	return nil
}

// reask puts an offer's question in line again while that still makes sense.
func (th *thread) reask(ctx context.Context, p offers.PassRequest) error {
	var addr, our string
	err := th.tx.QueryRow(ctx, `UPDATE offers SET reasks = reasks + 1
		WHERE id = $1 AND person_id = $2 AND state = 'open' AND expires_at > cs_now()
		AND (reasks < $3 OR $5::uuid[] IS NOT NULL AND NOT EXISTS (SELECT 1 FROM texts y WHERE y.person_id = $2 AND y.lists = $5 AND y.state <> 'rejected')) -- mutant: postgres.reask.limit
		AND (SELECT count(*) FROM texts t WHERE t.person_id = $2 AND t.kind IN ('reask', 'notice')
		  AND t.queued_at > cs_now() - interval '1 hour') < $4
		RETURNING address, our_number`, p.Reask, th.personID, offers.MaxReasks, p.HourlyLimit(), p.Listed).Scan(&addr, &our)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(p.Listed) == 0 {
		th.text(offers.TextReask, p.Reask, people.Address(addr), people.Address(our), p.ReaskText)
		return nil
	}
	th.text(offers.TextReask, "", people.Address(addr), people.Address(our), p.ReaskText)
	th.batch.Queue(`UPDATE texts SET lists = $2 WHERE id = $1`, th.lastText, p.Listed)
	return nil
}
