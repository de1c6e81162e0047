package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

// offerColumns are read from offers o joined with operations x.
const offerColumns = `o.id, o.operation_id, o.account_id, o.person_id, o.run_id, o.root_run_id, o.address, o.our_number, o.state,
	o.present, o.tool, o.capability, x.args, encode(o.args_sha256, 'hex'), o.binding_sha256, o.label, o.shown_text, o.ask_line,
	o.policy_version, o.ttl_us, o.settle_us, coalesce(o.supersedes::text, ''), o.shown_at, o.expires_at, o.closed_by,
	x.kind, x.reason, x.detail`

const fromOffers = ` FROM offers o JOIN operations x ON x.id = o.operation_id `

// offerRow is offerColumns as they come.
type offerRow struct {
	o                     offers.Offer
	args, binding, closer []byte
	ttl, settle           int64
}

func (r *offerRow) dest() []any {
	o := &r.o
	return []any{&o.ID, &o.OperationID, &o.AccountID, &o.PersonID, &o.RunID, &o.RootRunID, &o.Address, &o.OurNumber, &o.State,
		&o.Present, &o.Tool, &o.Capability, &r.args, &o.ArgsSHA256, &r.binding, &o.Label, &o.ShownText, &o.AskLine,
		&o.PolicyVersion, &r.ttl, &r.settle, &o.Supersedes, &o.ShownAt, &o.ExpiresAt, &r.closer,
		&o.Kind, &o.Reason, &o.Detail}
}

func (r *offerRow) offer() (offers.Offer, error) {
	o := r.o
	o.Args = r.args
	copy(o.BindingSHA256[:], r.binding)
	o.TTL, o.Settle = time.Duration(r.ttl)*time.Microsecond, time.Duration(r.settle)*time.Microsecond
	o.ExpiresAt = o.ExpiresAt.UTC()
	if o.ShownAt != nil {
		*o.ShownAt = o.ShownAt.UTC()
	}
	if r.closer != nil {
		o.ClosedBy = new(offers.Closer)
		if err := json.Unmarshal(r.closer, o.ClosedBy); err != nil {
			return o, fmt.Errorf("closed_by: %w", err)
		}
	}
	return o, nil
}

func scanOffer(row pgx.CollectableRow) (offers.Offer, error) {
	var r offerRow
	if err := row.Scan(r.dest()...); err != nil {
		return r.o, err
	}
	return r.offer()
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func oneOffer(ctx context.Context, q querier, where string, args ...any) (offers.Offer, error) {
	rows, err := q.Query(ctx, `SELECT `+offerColumns+fromOffers+where, args...)
	if err != nil {
		return offers.Offer{}, err
	}
	o, err := pgx.CollectExactlyOneRow(rows, scanOffer)
	if badID(err) {
		err = pgx.ErrNoRows
	}
	return o, notFound(err)
}

// Offer implements [offers.Store].
func (s *Store) Offer(ctx context.Context, accountID, id string) (offers.Offer, error) {
	o, err := oneOffer(ctx, s.pool, `WHERE o.id = $1 AND o.account_id = $2`, id, accountID)
	if err != nil {
		return o, fmt.Errorf("offer: %w", err)
	}
	return o, nil
}

// Offers implements [offers.Store].
func (s *Store) Offers(ctx context.Context, accountID string, f offers.Filter) ([]offers.Offer, error) {
	limit := f.Limit
	if limit == 0 {
		limit = 100
	}
	list, err := all(ctx, s.pool, scanOffer, `SELECT `+offerColumns+fromOffers+`
		WHERE o.account_id = $1 AND ($2 = '' OR o.person_id = nullif($2, '')::uuid) AND ($3 = '' OR o.state = $3)
		ORDER BY o.created_at DESC, o.id DESC LIMIT $4`, accountID, f.PersonID, string(f.State), limit)
	if badID(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("offers: %w", err)
	}
	return list, nil
}

// Operation implements [offers.Store].
func (s *Store) Operation(ctx context.Context, accountID, id string) (offers.Operation, error) {
	op, err := oneOperation(ctx, s.pool, accountID, id)
	if err != nil {
		return op, fmt.Errorf("operation: %w", err)
	}
	return op, nil
}

// oneOperation reads an operation and its offer in one round trip.
func oneOperation(ctx context.Context, q querier, accountID, id string) (offers.Operation, error) {
	op := offers.Operation{AccountID: accountID}
	var b pgx.Batch
	b.Queue(`SELECT x.id, x.run_id, x.person_id, x.kind, x.tool, x.args, encode(x.args_sha256, 'hex'), x.decision, x.reason,
		x.rule, x.detail, x.tier, x.capability, x.state, x.begun_at, x.begun_by, x.result, coalesce(x.permission_id::text, '')
		FROM operations x WHERE x.id = $1 AND x.account_id = $2`, id, accountID).QueryRow(func(row pgx.Row) error {
		var args, result []byte
		err := row.Scan(&op.ID, &op.RunID, &op.PersonID, &op.Kind, &op.Tool, &args, &op.ArgsSHA256, &op.Decision, &op.Reason,
			&op.Rule, &op.Detail, &op.Tier, &op.Capability, &op.State, &op.BegunAt, &op.BegunBy, &result, &op.PermissionID)
		op.Args, op.Result = args, result
		if op.BegunAt != nil {
			*op.BegunAt = op.BegunAt.UTC()
		}
		return err
	})
	b.Queue(`SELECT `+offerColumns+fromOffers+`WHERE o.operation_id = $1 AND o.account_id = $2`, id, accountID).Query(func(rows pgx.Rows) error {
		o, err := pgx.CollectExactlyOneRow(rows, scanOffer)
		switch {
		case errors.Is(err, pgx.ErrNoRows): // it was never asked about
			return nil
		case err != nil:
			return err
		}
		op.Offer = &o
		return nil
	})
	return op, notFound(q.SendBatch(ctx, &b).Close())
}

// The yes. Its UPDATE of offers holds every condition; ledger row, events, operation, message and the thread's head follow
// from the row that it returns, and from nothing else.
//
// consume is the one that code finds; late is it where the yes came so long after the ask that nothing else on the screen
// matters, which most do.
const (
	consume = consumeHead + bare + crossed + consumeTail
	late    = consumeHead + bare + `
    AND m.received_at >= o.asked_at + q.cross_within                -- mutant: consume.late` + consumeTail
)

const crossed = `
    AND (m.received_at >= o.asked_at + q.cross_within OR NOT (` + elsewhere + `))`

const bare = `
    AND m.decided_at IS NULL                                        -- mutant: consume.message_undecided
    AND last.offer_id = o.id                                        -- mutant: consume.last_text
    AND last.state = 'accepted'                                     -- mutant: consume.last_accepted
    AND NOT ` + otherLive + ` -- mutant: consume.only_one`

// consumeCited is the yes that a main model cites: what code may leave open (which offer, and whether its question was
// the last thing on the screen) is replaced by what a model must not bring along (another run, taint), and by words that
// name the offer where a bare yes could have been to another.
const consumeCited = consumeHead + crossed + `
    AND m.decided_at IS NOT NULL                                    -- mutant: cited.decided
    AND r.id = q.run_id                                             -- mutant: cited.own_run
    AND NOT r.tainted                                               -- mutant: cited.untainted
    AND NOT ` + messageUsed + ` -- mutant: cited.unused
    AND (q.names OR NOT ` + beside + `) -- mutant: cited.named
    AND (q.names OR NOT ` + askedOther + `) -- mutant: cited.asked_last
    AND NOT ` + spokenSince + ` -- mutant: cited.spoken` + consumeTail

// What follows are conditions of a yes that [snapshot] reads too, so that a refusal is explained by what refused it. They are
// about the offer o, the message m, and the person and the offer of the request.
const (
	// otherLive: another offer of the person is live.
	otherLive = `EXISTS (SELECT 1 FROM offers y WHERE y.person_id = q.person_id AND y.state IN ('sending', 'open') AND y.id <> q.offer_id)`
	// messageUsed: the message has approved an offer.
	messageUsed = `EXISTS (SELECT 1 FROM offers y WHERE y.consumed_by = m.id)`
	// beside: when the message came, another offer was on the screen as well, or was put there or asked about after o was.
	beside = `EXISTS (SELECT 1 FROM offers y WHERE y.person_id = q.person_id AND y.id <> q.offer_id AND y.sent_at <= m.received_at
      AND (coalesce(coalesce(y.closed_at, y.left_at) > m.received_at, true) OR y.sent_at > o.asked_at OR y.asked_at > o.asked_at))`
	// askedOther: the last ask before the message was for another offer, or nobody knows that it arrived.
	askedOther = `EXISTS (SELECT 1 FROM (SELECT x.offer_id, x.state FROM texts x WHERE x.person_id = q.person_id AND x.offer_id IS NOT NULL
      AND x.state <> 'rejected' AND x.sending_at <= m.received_at ORDER BY x.number DESC LIMIT 1) l WHERE l.offer_id <> o.id OR l.state <> 'accepted')`
	// spokenSince: between the last text about o and the message the agent has said something else.
	spokenSince = `EXISTS (SELECT 1 FROM texts x WHERE x.person_id = q.person_id AND x.kind = 'message' AND coalesce(x.offer_id <> o.id, true)
      AND x.sending_at <= m.received_at AND x.number > (SELECT max(a.number) FROM texts a WHERE a.offer_id = o.id AND a.state <> 'rejected'))`
)

// yes makes the statement of a yes.
func yes(body string) statement {
	return newStatement(0, []string{
		"person_id uuid", "message_id uuid", "offer_id uuid", "closer jsonb", "tiers text", "args_sha256 bytea", "binding_sha256 bytea",
		"min_read interval", "cross_within interval", "cross_window interval", "names boolean", "run_id uuid",
		"ledger bytea", "state text", "reading jsonb", "event1 uuid", "type1 text", "data1 text", "event2 uuid", "type2 text", "data2 text",
	}, body)
}

const consumeHead = `,
c AS (
  UPDATE offers o SET state = 'consumed', closed_at = cs_now(), closed_by = q.closer, consumed_by = m.id
  FROM q JOIN threads t ON t.person_id = q.person_id
    CROSS JOIN LATERAL (SELECT b.id, b.person_id, b.run_id, b.address, b.our_number, b.number, b.received_at, b.decided_at
      FROM messages b WHERE b.id = q.message_id OFFSET 0) m -- by its id whatever the planner thinks of the table
    JOIN runs r ON r.id = m.run_id JOIN people p ON p.id = t.person_id
    CROSS JOIN LATERAL (SELECT x.offer_id, x.state FROM texts x WHERE x.person_id = t.person_id AND x.state <> 'rejected' ORDER BY x.number DESC LIMIT 1) last
  WHERE o.id = q.offer_id
    AND o.person_id = t.person_id                                   -- mutant: consume.person
    AND m.person_id = t.person_id                                   -- mutant: consume.message_person
    AND p.state = 'active'                                          -- mutant: consume.active
    AND p.tier = ANY(string_to_array(q.tiers, ','))                 -- mutant: consume.tier
    AND o.address = m.address                                       -- mutant: consume.address
    AND o.our_number = m.our_number                                 -- mutant: consume.our_number
    AND o.root_run_id <> r.root_id                                  -- mutant: consume.root_run
    AND o.state = 'open'                                            -- mutant: consume.open
    AND o.expires_at > cs_now()                                     -- mutant: consume.expiry
    AND o.args_sha256 = q.args_sha256                               -- mutant: consume.args
    AND o.binding_sha256 = q.binding_sha256                         -- mutant: consume.binding
    AND m.number = t.messages                                       -- mutant: consume.newest
    AND m.received_at >= o.asked_at + q.min_read                    -- mutant: consume.min_read`

// elsewhere holds where a yes to o that came this early may be an answer to something else: texts cross in the air. Until
// q.cross_window before the newest ask, another offer had not ended. Or something else can be read that was sent since, or stood
// topmost on that phone then, on top of whatever is certain to have been there: another ask, a list, or what the agent has
// said itself. Words that name the offer answer no other ask. What the person has answered by then is answered, if this
// offer was on no screen before.
const elsewhere = `NOT q.names AND EXISTS (SELECT 1 FROM offers y WHERE y.person_id = q.person_id AND y.id <> q.offer_id AND y.sent_at IS NOT NULL AND coalesce(coalesce(y.closed_at, y.left_at) > o.asked_at - q.cross_window, true)) -- mutant: postgres.crossed.offer
  OR EXISTS (SELECT 1 FROM texts x WHERE x.person_id = q.person_id
    AND x.sending_at <= m.received_at                               -- mutant: postgres.crossed.received
    AND x.state <> 'rejected'                                       -- mutant: postgres.crossed.rejected
    AND x.number >= coalesce((SELECT y.number FROM texts y WHERE y.person_id = q.person_id
      AND y.sending_at <= o.asked_at - q.cross_window               -- mutant: postgres.crossed.topmost
      AND y.state = 'accepted'                                      -- mutant: postgres.crossed.certain
      AND y.address = o.address AND y.our_number = o.our_number     -- mutant: postgres.crossed.screen
      AND (y.offer_id IS NOT NULL OR y.lists IS NOT NULL OR y.kind = 'message') -- mutant: postgres.crossed.asks
      ORDER BY y.number DESC LIMIT 1), 0)
    AND (x.sending_at > o.asked_at - q.cross_window OR x.address = o.address AND x.our_number = o.our_number) -- mutant: postgres.crossed.phone
    AND (x.kind = 'message' AND x.offer_id IS DISTINCT FROM o.id    -- mutant: postgres.crossed.said
      OR NOT q.names AND (x.offer_id <> o.id OR x.lists IS NOT NULL) -- mutant: postgres.crossed.ask
      AND NOT (o.shown_at > o.asked_at - q.cross_window AND EXISTS (SELECT 1 FROM offers y WHERE y.id = x.offer_id AND y.closed_by->>'message_id' <> ''))) -- mutant: postgres.crossed.answered
  )`

const consumeTail = `
  RETURNING q.call, q.message_id, q.ledger, q.state, q.reading, q.event1, q.type1, q.data1, q.event2, q.type2, q.data2,
    o.person_id, o.operation_id, o.account_id, o.closed_at, o.settle_us, t.ledger + 1 AS number, t.head),
l AS (
  INSERT INTO ledger (account_id, person_id, number, at, kind, operation_id, body, prev, hash)
  SELECT c.account_id, c.person_id, c.number, c.closed_at, 'consumed', c.operation_id, c.ledger, c.head,
    sha256(c.head || int8send(c.number) || int8send((extract(epoch FROM c.closed_at) * 1000000)::bigint) || sha256(c.ledger))
  FROM c RETURNING person_id, number, hash),
h AS (UPDATE threads SET ledger = l.number, head = l.hash FROM l WHERE threads.person_id = l.person_id),
x AS (
  UPDATE operations SET state = c.state, approved_at = CASE WHEN c.settle_us = 0 THEN c.closed_at END,
    settle_until = CASE WHEN c.settle_us > 0 THEN c.closed_at + c.settle_us * interval '1 microsecond' END
  FROM c WHERE operations.id = c.operation_id),
d AS (UPDATE messages SET decided_at = c.closed_at, reading = c.reading FROM c
  WHERE messages.id = c.message_id AND messages.id = ANY (ARRAY(SELECT q.message_id FROM q))),
e AS (
  INSERT INTO events (id, account_id, type, at, data)
  SELECT n.id, c.account_id, n.type, c.closed_at, n.data
  FROM c CROSS JOIN LATERAL (VALUES (c.event1, c.type1, c.data1), (c.event2, c.type2, c.data2)) AS n (id, type, data) WHERE n.id IS NOT NULL)
SELECT c.call, EXISTS (SELECT 1 FROM offers w WHERE w.person_id = c.person_id AND w.state = 'queued') FROM c`

// Consume implements [offers.Inbox].
func (s *Store) Consume(ctx context.Context, c offers.ConsumeRequest) (offers.Win, error) {
	return s.consume(ctx, false, c, &s.late, &s.yes)
}

// ConsumeCited implements [offers.Confirms].
func (s *Store) ConsumeCited(ctx context.Context, c offers.ConsumeRequest) (offers.Win, error) {
	return s.consume(ctx, true, c, &s.cited)
}

// consume tries statements in turn, each of which decides by itself.
func (s *Store) consume(ctx context.Context, cited bool, c offers.ConsumeRequest, statements ...*statement) (offers.Win, error) {
	op, eff, err := c.Won()
	if err != nil {
		return offers.Win{}, err
	}
	args, err := yesArgs(c, eff)
	if err != nil {
		return offers.Win{}, fmt.Errorf("consume: %w", err)
	}
	for _, st := range statements {
		var won []bool
		err := s.together(ctx, &call{
			statement: st, person: c.PersonID, args: args,
			reset: func() { won = nil },
			row: func(rows pgx.Rows) error {
				var queued bool
				err := rows.Scan(nil, &queued)
				won = append(won, queued)
				return err
			},
		})
		if err != nil {
			if aboutLedger(err) {
				err = fmt.Errorf("%w: %w", offers.ErrLedgerUnavailable, err)
			}
			return offers.Win{}, fmt.Errorf("consume: %w", err)
		}
		switch len(won) {
		case 0:
		case 1:
			return offers.Win{Offer: *op.Offer, Operation: op, Queued: won[0]}, nil
		default:
			return offers.Win{}, fmt.Errorf("consume: %d rows for one offer", len(won))
		}
	}
	return s.explain(ctx, c, cited)
}

// yesArgs are the columns of a yes.
func yesArgs(c offers.ConsumeRequest, eff offers.Effects) ([]any, error) {
	reading, err := json.Marshal(c.Reading)
	if err != nil {
		return nil, err
	}
	sum, err := offers.ParseHex(c.Offer.ArgsSHA256)
	if err != nil {
		return nil, err
	}
	var run any
	if c.RunID != "" {
		run = c.RunID
	}
	args := []any{c.PersonID, c.MessageID, c.Offer.ID, string(eff.Closer), strings.Join(c.Tiers, ","), sum[:], c.Offer.BindingSHA256[:],
		c.MinRead, offers.CrossFactor * c.MinRead, offers.CrossWindow, c.Names, run, eff.Ledger, string(eff.State), string(reading)}
	for i := range places {
		if i < len(eff.Events) {
			e := eff.Events[i]
			args = append(args, e.ID, string(e.Type), string(e.Data))
		} else {
			args = append(args, nil, nil, nil)
		}
	}
	if len(eff.Events) > places {
		return nil, fmt.Errorf("%d events, and places for %d", len(eff.Events), places)
	}
	return args, nil
}

// places is how many events a yes has at most.
const places = 2

// snapshot reads what offers.Snapshot.Why explains a refusal from.
const snapshot = `SELECT cs_now(), o.id IS NOT NULL, coalesce(o.person_id::text, ''), coalesce(o.state, ''), coalesce(o.consumed_by::text, ''),
  coalesce(o.address, ''), coalesce(o.our_number, ''), coalesce(encode(o.args_sha256, 'hex'), ''), coalesce(o.binding_sha256, ''),
  coalesce(o.root_run_id::text, ''), o.expires_at, o.asked_at, p.state, p.tier,
  m.id IS NOT NULL, coalesce(m.person_id::text, ''), coalesce(m.address, ''), coalesce(m.our_number, ''), m.decided_at IS NOT NULL,
  coalesce(m.number, 0), coalesce(r.root_id::text, ''), m.received_at,
  t.messages, coalesce(last.offer_id::text, ''), coalesce(last.state, ''),
  ` + otherLive + `,
  coalesce(r.id::text, ''), coalesce(r.tainted, true), ` + messageUsed + `,
  ` + beside + ` OR ` + askedOther + `,
  ` + spokenSince + `,
  ` + elsewhere + `
FROM threads t JOIN people p ON p.id = t.person_id LEFT JOIN offers o ON o.id = $3 LEFT JOIN messages m ON m.id = $2
LEFT JOIN runs r ON r.id = m.run_id CROSS JOIN (SELECT $1::uuid AS person_id, $3::uuid AS offer_id, $4::interval AS cross_window, $5::boolean AS names) q
LEFT JOIN LATERAL (SELECT offer_id, state FROM texts WHERE person_id = t.person_id AND state <> 'rejected' ORDER BY number DESC LIMIT 1) last ON true
WHERE t.person_id = $1`

// explain says why no row changed, or finds this same message's own win.
func (s *Store) explain(ctx context.Context, c offers.ConsumeRequest, cited bool) (offers.Win, error) {
	sn := offers.Snapshot{Cited: cited}
	var binding []byte
	var expires, asked, received *time.Time
	err := s.pool.QueryRow(ctx, snapshot, c.PersonID, c.MessageID, c.Offer.ID, offers.CrossWindow, c.Names).Scan(&sn.Now, &sn.OfferFound, &sn.PersonID,
		&sn.State, &sn.ConsumedBy, &sn.Address, &sn.OurNumber, &sn.ArgsSHA256, &binding, &sn.RootRunID, &expires, &asked,
		&sn.PersonState, &sn.Tier, &sn.MessageFound, &sn.MessagePersonID, &sn.MessageAddress, &sn.MessageOurNumber, &sn.MessageDecided,
		&sn.MessageNumber, &sn.MessageRootRunID, &received, &sn.Newest, &sn.LastTextOffer, &sn.LastTextState, &sn.OtherLive,
		&sn.RunID, &sn.RunTainted, &sn.Used, &sn.Rival, &sn.Spoken, &sn.Elsewhere)
	if err != nil {
		return offers.Win{}, fmt.Errorf("consume: explain: %w", notFound(err))
	}
	copy(sn.Binding[:], binding)
	sn.ExpiresAt, sn.AskedAt, sn.ReceivedAt = deref(expires), deref(asked), deref(received)
	if sn.ConsumedBy == c.MessageID {
		op, err := oneOperation(ctx, s.pool, c.Offer.AccountID, c.Offer.OperationID)
		if err != nil {
			return offers.Win{}, fmt.Errorf("consume: own win: %w", err)
		}
		return offers.Win{Offer: *op.Offer, Operation: op, Repeat: true}, nil
	}
	return offers.Win{}, &offers.Refusal{Why: sn.Why(c)}
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// closeByReply ends an offer on a no or a change: cautious about whose answer it is and to what, but not about how sure a yes is.
const closeByReply = `UPDATE offers o SET state = $4, closed_at = $5, closed_by = $6
  FROM messages m
  WHERE o.id = $3 AND m.id = $2 AND o.person_id = $1 AND m.person_id = $1
    AND o.state = 'open' AND o.expires_at > cs_now()
    AND o.address = m.address AND o.our_number = m.our_number
    AND m.number = (SELECT messages FROM threads WHERE person_id = $1)
    AND o.id = (SELECT offer_id FROM texts WHERE person_id = $1 AND state <> 'rejected' ORDER BY number DESC LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM offers y WHERE y.person_id = $1 AND y.state IN ('sending', 'open') AND y.id <> $3)`

// CloseByReply implements [offers.Inbox].
func (s *Store) CloseByReply(ctx context.Context, c offers.CloseRequest) (offers.Offer, error) {
	var o offers.Offer
	err := s.inThread(ctx, c.PersonID, func(th *thread) error {
		if err := th.decide(ctx, c.MessageID, c.Reading); err != nil {
			return err
		}
		closer, err := json.Marshal(c.Closer)
		if err != nil {
			return err
		}
		tag, err := th.tx.Exec(ctx, closeByReply, c.PersonID, c.MessageID, c.Offer.ID, string(c.State), th.now, closer)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errNotClosed
		}
		if o, err = th.closed(ctx, c.Offer.ID, c.State, offers.LedgerBody{Message: c.MessageID, Reading: c.Closer.Reading, P: c.Closer.P}); err != nil {
			return err
		}
		if c.State == offers.Declined { // mutant: postgres.decline-takes-back
			if err := th.takeBack(ctx, c.MessageID); err != nil {
				return err
			}
		}
		if err := th.ended(ctx, c.MessageID, c.Ends); err != nil {
			return err
		}
		if c.Tell != nil {
			if err := th.event(offers.MessageReceived, *c.Tell); err != nil {
				return err
			}
		}
		if c.Receipt != "" {
			if err := th.sayOf(ctx, offers.TextReceipt, c.Receipt, o); err != nil {
				return err
			}
		}
		return th.advance(ctx)
	})
	if errors.Is(err, errNotClosed) {
		_, err = s.explain(ctx, offers.ConsumeRequest{Offer: c.Offer, MessageID: c.MessageID, PersonID: c.PersonID}, false)
		if err == nil { // meanwhile this very message has approved it
			err = &offers.Refusal{Why: offers.WhyDecided}
		}
	}
	if err != nil {
		return o, fmt.Errorf("close by reply: %w", err)
	}
	return o, nil
}

var errNotClosed = errors.New("no row")

// closed does what follows from an offer row that this transaction has just closed: operation, ledger, events.
func (th *thread) closed(ctx context.Context, offerID string, state offers.State, body offers.LedgerBody) (offers.Offer, error) {
	o, err := oneOffer(ctx, th.tx, `WHERE o.id = $1`, offerID)
	if err != nil {
		return o, err
	}
	if _, err := th.tx.Exec(ctx, `UPDATE operations SET state = $2, closed_at = $3 WHERE id = $1`, o.OperationID, string(state), th.now); err != nil {
		return o, err
	}
	// A show that never left has nothing to say any more.
	if _, err := th.tx.Exec(ctx, `UPDATE texts SET state = 'rejected', ended_at = $2 WHERE person_id = $3 AND offer_id = $1 AND state = 'queued' AND kind IN ('show', 'reask')`,
		offerID, th.now, th.personID); err != nil {
		return o, err
	}
	body.Operation, body.Offer, body.Tool, body.ArgsSHA256, body.State = o.OperationID, o.ID, o.Tool, o.ArgsSHA256, string(state)
	if o.ClosedBy != nil {
		body.By = o.ClosedBy.By
	}
	if err := th.record(ledger.Closed, o.OperationID, body); err != nil {
		return o, err
	}
	if err := th.event(offers.OfferClosed, offers.OfferData{Offer: o}); err != nil {
		return o, err
	}
	return o, th.event(offers.OperationClosed, offers.OperationData{Operation: o.Asked(offers.OpState(state))})
}

// closeOffer ends a queued, sending or open offer of the locked person; false: it is closed already.
func (th *thread) closeOffer(ctx context.Context, offerID string, state offers.State, by offers.Closer) (offers.Offer, bool, error) {
	closer, err := json.Marshal(by)
	if err != nil {
		return offers.Offer{}, false, err
	}
	tag, err := th.tx.Exec(ctx, `UPDATE offers SET state = $3, closed_at = $4, closed_by = $5
		WHERE id = $1 AND person_id = $2 AND state IN ('queued', 'sending', 'open')`, offerID, th.personID, string(state), th.now, closer)
	if err != nil || tag.RowsAffected() == 0 {
		return offers.Offer{}, false, err
	}
	o, err := th.closed(ctx, offerID, state, offers.LedgerBody{})
	return o, true, err
}

// Withdraw implements [offers.Store].
func (s *Store) Withdraw(ctx context.Context, accountID, id string, by offers.Closer) (offers.Offer, error) {
	o, err := s.Offer(ctx, accountID, id)
	if err != nil {
		return o, err
	}
	err = s.inThread(ctx, o.PersonID, func(th *thread) error {
		got, ok, err := th.closeOffer(ctx, id, offers.Withdrawn, by)
		if err != nil {
			return err
		}
		if !ok {
			return offers.ErrOfferClosed
		}
		o = got
		return th.advance(ctx)
	})
	if errors.Is(err, offers.ErrOfferClosed) {
		if o, err = s.Offer(ctx, accountID, id); err == nil {
			err = offers.ErrOfferClosed
		}
	}
	if err != nil {
		return o, fmt.Errorf("withdraw: %w", err)
	}
	return o, nil
}

// begin is the second check. Cancel, lapse and begin are conditional updates of this one row.
const begin = `UPDATE operations x SET state = 'running', begun_at = $4, begun_by = $5
  FROM people p
  WHERE x.id = $1 AND x.person_id = $2 AND p.id = x.person_id
    AND x.args_sha256 = $3                                                    -- mutant: begin.args
    AND (x.state = 'allowed' OR x.state = 'approved')                         -- mutant: begin.state
    AND (x.approved_at IS NULL OR x.approved_at + $6::interval > cs_now())    -- mutant: begin.deadline
    AND x.tool <> 'permission.grant'                                          -- mutant: begin.service
    AND NOT EXISTS (SELECT 1 FROM permissions g WHERE g.id = x.permission_id AND g.revoked_at IS NOT NULL) -- mutant: begin.permission
    AND NOT (x.reason = 'DIRECT_SEND' AND EXISTS (SELECT 1 FROM permissions g WHERE g.account_id = x.account_id AND g.person_id = x.person_id
      AND g.how = 'direct' AND g.revoked_at >= x.created_at))                 -- mutant: begin.direct
    AND p.state = 'active'                                                    -- mutant: begin.active
    AND p.tier = ANY($7)                                                      -- mutant: begin.tier`

// Begin implements [offers.Store].
func (s *Store) Begin(ctx context.Context, b offers.BeginRequest) (offers.Operation, error) {
	op, err := s.Operation(ctx, b.AccountID, b.OperationID)
	if err != nil {
		return op, err
	}
	err = s.inThread(ctx, op.PersonID, func(th *thread) error {
		tag, err := th.tx.Exec(ctx, begin, op.ID, op.PersonID, b.ArgsSum[:], th.now, b.By, offers.BeginWithin, offers.TiersHolding(op.Capability))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errNotClosed
		}
		return th.record(ledger.Begun, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, ArgsSHA256: op.ArgsSHA256, By: b.By})
	})
	if err != nil && !errors.Is(err, errNotClosed) {
		return op, fmt.Errorf("begin: %w", err)
	}
	refused := err != nil
	if op, err = s.Operation(ctx, b.AccountID, b.OperationID); err != nil {
		return op, err
	}
	if refused {
		return op, fmt.Errorf("begin: %w", op.WhyNotBegun(b.ArgsSum))
	}
	return op, nil
}

// Finish implements [offers.Store].
func (s *Store) Finish(ctx context.Context, f offers.FinishRequest) (offers.Operation, error) {
	op, err := s.Operation(ctx, f.AccountID, f.OperationID)
	if err != nil {
		return op, err
	}
	err = s.inThread(ctx, op.PersonID, func(th *thread) error {
		f.Result.At = th.now.UTC()
		raw, sum, err := f.Result.Encode()
		if err != nil {
			return err
		}
		tag, err := th.tx.Exec(ctx, `UPDATE operations SET state = $2, result = $3, closed_at = $4 WHERE id = $1 AND state = 'running'`,
			op.ID, f.Result.Status, string(raw), th.now)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errNotClosed
		}
		if op, err = oneOperation(ctx, th.tx, f.AccountID, f.OperationID); err != nil {
			return err
		}
		if err := th.record(ledger.Result, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, State: string(op.State), ResultSum: sum}); err != nil {
			return err
		}
		if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
			return err
		}
		if f.SetsUp != "" && op.State == offers.OpSucceeded {
			if err := th.setUp(ctx, op, f.SetsUp); err != nil {
				return err
			}
		}
		if op.Offer == nil || f.Receipt == "" {
			return nil
		}
		return th.sayOf(ctx, offers.TextReceipt, f.Receipt, *op.Offer)
	})
	if err != nil && !errors.Is(err, errNotClosed) {
		return op, fmt.Errorf("finish: %w", err)
	}
	if err == nil {
		return op, nil
	}
	if op, err = s.Operation(ctx, f.AccountID, f.OperationID); err != nil {
		return op, err
	}
	if err := op.WhyNotFinished(f.Result); err != nil {
		return op, fmt.Errorf("finish: %w", err)
	}
	return op, nil
}

// Ledger implements [offers.Store].
func (s *Store) Ledger(ctx context.Context, accountID, personID string) ([]ledger.Row, error) {
	list, err := all(ctx, s.pool, func(row pgx.CollectableRow) (ledger.Row, error) {
		r := ledger.Row{AccountID: accountID, PersonID: personID}
		var prev, hash []byte
		err := row.Scan(&r.Number, &r.At, &r.Kind, &r.OperationID, &r.Body, &prev, &hash)
		copy(r.Prev[:], prev)
		copy(r.Hash[:], hash)
		return r, err
	}, `SELECT number, at, kind, operation_id, body, prev, hash FROM ledger
		WHERE person_id = $1 AND account_id = $2 ORDER BY number`, personID, accountID)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return list, nil
}
