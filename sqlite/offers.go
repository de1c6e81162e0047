package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

// offerColumns are read from offers o joined with operations x.
const offerColumns = `o.id, o.operation_id, o.account_id, o.person_id, o.run_id, o.root_run_id, o.address, o.our_number, o.state,
	o.present, o.tool, o.capability, x.args, o.args_sha256, o.binding_sha256, o.label, o.shown_text, o.ask_line,
	o.policy_version, o.ttl_us, o.settle_us, coalesce(o.supersedes, ''), o.shown_at, o.expires_at, o.closed_by,
	x.kind, x.reason, x.detail`

const fromOffers = ` FROM offers o JOIN operations x ON x.id = o.operation_id `

const (
	offerByID      = `SELECT ` + offerColumns + fromOffers + `WHERE o.id = ?1`
	offerOfAccount = offerByID + ` AND o.account_id = ?2`
	offerOfPerson  = offerByID + ` AND o.person_id = ?2`
)

func scanOffer(r row) (offers.Offer, error) {
	var o offers.Offer
	var args, sum, binding, closer []byte
	var ttl, settle, expires int64
	var shown *int64
	err := r.Scan(&o.ID, &o.OperationID, &o.AccountID, &o.PersonID, &o.RunID, &o.RootRunID, &o.Address, &o.OurNumber, &o.State,
		&o.Present, &o.Tool, &o.Capability, &args, &sum, &binding, &o.Label, &o.ShownText, &o.AskLine,
		&o.PolicyVersion, &ttl, &settle, &o.Supersedes, &shown, &expires, &closer,
		&o.Kind, &o.Reason, &o.Detail)
	if err != nil {
		return o, err
	}
	o.Args, o.ArgsSHA256 = args, offers.Hex(digest(sum))
	o.BindingSHA256 = digest(binding)
	o.TTL, o.Settle = time.Duration(ttl)*time.Microsecond, time.Duration(settle)*time.Microsecond
	o.ShownAt, o.ExpiresAt = atOrNil(shown), at(expires)
	if closer != nil {
		o.ClosedBy = new(offers.Closer)
		if err := json.Unmarshal(closer, o.ClosedBy); err != nil {
			return o, fmt.Errorf("closed_by: %w", err)
		}
	}
	return o, nil
}

// digest reads a hash of the tables.
func digest(b []byte) (sum offers.Digest) {
	copy(sum[:], b)
	return sum
}

func oneOffer(q session, query string, args ...any) (offers.Offer, error) {
	list, err := all(q, scanOffer, query, args...)
	if err != nil {
		return offers.Offer{}, err
	}
	if len(list) == 0 {
		return offers.Offer{}, offers.ErrNotFound
	}
	return list[0], nil
}

// Offer implements [offers.Store].
func (s *Store) Offer(ctx context.Context, accountID, id string) (offers.Offer, error) {
	o, err := oneOffer(s.read(ctx), offerOfAccount, fold(id), accountID)
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
	list, err := all(s.read(ctx), scanOffer, `SELECT `+offerColumns+fromOffers+`
		WHERE o.account_id = ?1 AND (?2 = '' OR o.person_id = ?2) AND (?3 = '' OR o.state = ?3)
		ORDER BY o.created_at DESC, o.id DESC LIMIT ?4`, accountID, fold(f.PersonID), string(f.State), limit)
	if err != nil {
		return nil, fmt.Errorf("offers: %w", err)
	}
	return list, nil
}

// Operation implements [offers.Store].
func (s *Store) Operation(ctx context.Context, accountID, id string) (offers.Operation, error) {
	op, err := oneOperation(s.read(ctx), accountID, fold(id))
	if err != nil {
		return op, fmt.Errorf("operation: %w", err)
	}
	return op, nil
}

func oneOperation(q session, accountID, id string) (offers.Operation, error) {
	op := offers.Operation{AccountID: accountID}
	var args, sum, result []byte
	var begun *int64
	var offerID string
	err := q.one(`SELECT x.id, x.run_id, x.person_id, x.kind, x.tool, x.args, x.args_sha256, x.decision, x.reason,
		x.rule, x.detail, x.tier, x.capability, x.state, x.begun_at, x.begun_by, x.result, coalesce(o.id, ''), coalesce(x.permission_id, '')
		FROM operations x LEFT JOIN offers o ON o.operation_id = x.id WHERE x.id = ?1 AND x.account_id = ?2`, []any{id, accountID},
		&op.ID, &op.RunID, &op.PersonID, &op.Kind, &op.Tool, &args, &sum, &op.Decision, &op.Reason,
		&op.Rule, &op.Detail, &op.Tier, &op.Capability, &op.State, &begun, &op.BegunBy, &result, &offerID, &op.PermissionID)
	if err != nil {
		return op, notFound(err)
	}
	op.Args, op.ArgsSHA256, op.Result, op.BegunAt = args, offers.Hex(digest(sum)), result, atOrNil(begun)
	if offerID != "" {
		o, err := oneOffer(q, offerByID, offerID)
		if err != nil {
			return op, err
		}
		op.Offer = &o
	}
	return op, nil
}

// consume is the yes. It holds every condition; ledger row, events, operation, message and the thread's head follow
// from the row that it returns, and from nothing else.
const consume = consumeHead + `
    AND m.decided_at IS NULL                                        -- mutant: consume.message_undecided
    AND last.offer_id = o.id                                        -- mutant: consume.last_text
    AND last.state = 'accepted'                                     -- mutant: consume.last_accepted
    AND NOT ` + otherLive + ` -- mutant: consume.only_one` + consumeTail

// consumeCited is the yes that a main model cites: what code may leave open (which offer, and whether its question was
// the last thing on the screen) is replaced by what a model must not bring along (another run, taint), and by words that
// name the offer where a bare yes could have been to another.
const consumeCited = consumeHead + `
    AND m.decided_at IS NOT NULL                                    -- mutant: cited.decided
    AND r.id = ?14                                                  -- mutant: cited.own_run
    AND NOT r.tainted                                               -- mutant: cited.untainted
    AND NOT ` + messageUsed + ` -- mutant: cited.unused
    AND (?12 OR NOT ` + beside + `) -- mutant: cited.named
    AND (?12 OR NOT ` + askedOther + `) -- mutant: cited.asked_last
    AND NOT ` + spokenSince + ` -- mutant: cited.spoken` + consumeTail

// What follows are conditions of a yes that [snapshot] reads too, so that a refusal is explained by what refused it. They are
// about the offer o, the message m, and the person and the offer of the request.
const (
	// otherLive: another offer of the person is live.
	otherLive = `EXISTS (SELECT 1 FROM offers y WHERE y.person_id = ?1 AND y.state IN ('sending', 'open') AND y.id <> ?3)`
	// messageUsed: the message has approved an offer.
	messageUsed = `EXISTS (SELECT 1 FROM offers y WHERE y.consumed_by = m.id)`
	// beside: when the message came, another offer was on the screen as well, or was put there or asked about after o was.
	beside = `EXISTS (SELECT 1 FROM offers y WHERE y.person_id = ?1 AND y.id <> ?3 AND y.sent_at <= m.received_at
      AND (coalesce(coalesce(y.closed_at, y.left_at) > m.received_at, true) OR y.sent_at > o.asked_at OR y.asked_at > o.asked_at))`
	// askedOther: the last ask before the message was for another offer, or nobody knows that it arrived.
	askedOther = `EXISTS (SELECT 1 FROM (SELECT x.offer_id, x.state FROM texts x WHERE x.person_id = ?1 AND x.offer_id IS NOT NULL
      AND x.state <> 'rejected' AND x.sending_at <= m.received_at ORDER BY x.number DESC LIMIT 1) l WHERE l.offer_id <> o.id OR l.state <> 'accepted')`
	// spokenSince: between the last text about o and the message the agent has said something else.
	spokenSince = `EXISTS (SELECT 1 FROM texts x WHERE x.person_id = ?1 AND x.kind = 'message' AND coalesce(x.offer_id <> o.id, true)
      AND x.sending_at <= m.received_at AND x.number > (SELECT max(a.number) FROM texts a WHERE a.offer_id = o.id AND a.state <> 'rejected'))`
)

// consumeHead reads what the conditions are about within an EXISTS: with a FROM of its own, an UPDATE makes tables of what it
// joins before it changes a row.
const consumeHead = `UPDATE offers AS o SET state = 'consumed', closed_at = ?11, closed_by = ?4, consumed_by = ?2
  WHERE o.id = ?3 AND EXISTS (SELECT 1
  FROM threads t, texts last, messages m, runs r, people p, (SELECT ?10 AS cross_window, ?12 AS names) q
  WHERE t.person_id = ?1 AND m.id = ?2 AND r.id = m.run_id AND p.id = t.person_id AND last.person_id = t.person_id
    AND last.number = (SELECT number FROM texts WHERE person_id = ?1 AND state <> 'rejected' ORDER BY number DESC LIMIT 1)
    AND o.person_id = t.person_id                                   -- mutant: consume.person
    AND m.person_id = t.person_id                                   -- mutant: consume.message_person
    AND p.state = 'active'                                          -- mutant: consume.active
    AND p.tier IN (?5, ?13)                                         -- mutant: consume.tier
    AND o.address = m.address                                       -- mutant: consume.address
    AND o.our_number = m.our_number                                 -- mutant: consume.our_number
    AND o.root_run_id <> r.root_id                                  -- mutant: consume.root_run
    AND o.state = 'open'                                            -- mutant: consume.open
    AND o.expires_at > ?11                                          -- mutant: consume.expiry
    AND o.args_sha256 = ?6                                          -- mutant: consume.args
    AND o.binding_sha256 = ?7                                       -- mutant: consume.binding
    AND m.number = t.messages                                       -- mutant: consume.newest
    AND m.received_at >= o.asked_at + ?8                            -- mutant: consume.min_read
    AND (m.received_at >= o.asked_at + ?9 OR NOT (` + elsewhere + `))`

// elsewhere holds where a yes to o that came this early may be an answer to something else: texts cross in the air. Until
// q.cross_window before the newest ask, another offer had not ended. Or something else can be read that was sent since, or stood
// topmost on that phone then, on top of whatever is certain to have been there: another ask, a list, or what the agent has
// said itself. Words that name the offer answer no other ask. What the person has answered by then is answered, if this
// offer was on no screen before.
const elsewhere = `NOT q.names AND EXISTS (SELECT 1 FROM offers y WHERE y.person_id = ?1 AND y.id <> ?3 AND y.sent_at IS NOT NULL AND coalesce(coalesce(y.closed_at, y.left_at) > o.asked_at - q.cross_window, true)) -- mutant: sqlite.crossed.offer
  OR EXISTS (SELECT 1 FROM texts x WHERE x.person_id = ?1
    AND x.sending_at <= m.received_at                               -- mutant: sqlite.crossed.received
    AND x.state <> 'rejected'                                       -- mutant: sqlite.crossed.rejected
    AND x.number >= coalesce((SELECT y.number FROM texts y WHERE y.person_id = ?1
      AND y.sending_at <= o.asked_at - q.cross_window               -- mutant: sqlite.crossed.topmost
      AND y.state = 'accepted'                                      -- mutant: sqlite.crossed.certain
      AND y.address = o.address AND y.our_number = o.our_number     -- mutant: sqlite.crossed.screen
      AND (y.offer_id IS NOT NULL OR y.lists IS NOT NULL OR y.kind = 'message') -- mutant: sqlite.crossed.asks
      ORDER BY y.number DESC LIMIT 1), 0)
    AND (x.sending_at > o.asked_at - q.cross_window OR x.address = o.address AND x.our_number = o.our_number) -- mutant: sqlite.crossed.phone
    AND (x.kind = 'message' AND x.offer_id IS NOT o.id              -- mutant: sqlite.crossed.said
      OR NOT q.names AND (x.offer_id <> o.id OR x.lists IS NOT NULL) -- mutant: sqlite.crossed.ask
      AND NOT (o.shown_at > o.asked_at - q.cross_window AND EXISTS (SELECT 1 FROM offers y WHERE y.id = x.offer_id AND y.closed_by->>'message_id' <> ''))) -- mutant: sqlite.crossed.answered
  )`

const consumeTail = `
  )
  RETURNING operation_id, settle_us`

// won is the row that consume returns.
type won struct {
	operationID string
	settle      int64
}

func scanWon(r row) (w won, err error) { err = r.Scan(&w.operationID, &w.settle); return w, err }

// errNotConsumed ends a transaction in which no row changed; a later read says why.
var errNotConsumed = errors.New("no offer consumed")

// Consume implements [offers.Inbox].
func (s *Store) Consume(ctx context.Context, c offers.ConsumeRequest) (offers.Win, error) {
	return s.consume(ctx, consume, c)
}

// ConsumeCited implements [offers.Confirms].
func (s *Store) ConsumeCited(ctx context.Context, c offers.ConsumeRequest) (offers.Win, error) {
	return s.consume(ctx, consumeCited, c, fold(c.RunID))
}

func (s *Store) consume(ctx context.Context, query string, c offers.ConsumeRequest, more ...any) (offers.Win, error) {
	op, eff, err := c.Won()
	if err != nil {
		return offers.Win{}, err
	}
	reading, err := json.Marshal(c.Reading)
	if err != nil {
		return offers.Win{}, fmt.Errorf("consume: %w", err)
	}
	if len(c.Tiers) > 2 {
		return offers.Win{}, fmt.Errorf("consume: %d tiers", len(c.Tiers))
	}
	var tiers [2]any // null is nobody's
	for i, t := range c.Tiers {
		tiers[i] = t
	}
	sum, err := offers.ParseHex(c.Offer.ArgsSHA256)
	if err != nil {
		return offers.Win{}, err
	}
	win := offers.Win{Offer: *op.Offer, Operation: op}
	err = s.write(ctx, func(q session, now time.Time) error {
		args := []any{c.PersonID, c.MessageID, c.Offer.ID, string(eff.Closer), tiers[0], sum[:], c.Offer.BindingSHA256[:],
			c.MinRead.Microseconds(), (offers.CrossFactor * c.MinRead).Microseconds(), offers.CrossWindow.Microseconds(), now.UnixMicro(), c.Names, tiers[1]}
		rows, err := all(q, scanWon, query, append(args, more...)...)
		if err != nil {
			return err
		}
		switch len(rows) {
		case 0:
			return errNotConsumed
		case 1:
		default:
			return fmt.Errorf("%d rows for one offer", len(rows))
		}
		th, err := threadOf(q, now, c.PersonID)
		if err != nil {
			return err
		}
		win.Queued, err = th.consumed(rows[0], c.MessageID, eff, reading)
		return err
	})
	switch {
	case errors.Is(err, errNotConsumed):
		return s.explain(ctx, c, len(more) > 0)
	case err != nil:
		return offers.Win{}, fmt.Errorf("consume: %w", err)
	}
	return win, nil
}

// consumed does what follows from an offer that this transaction has consumed, and says whether others are queued.
func (th *thread) consumed(w won, messageID string, eff offers.Effects, reading []byte) (queued bool, err error) {
	r := ledger.Next(th.head, th.rows+1, th.now, ledger.Consumed, w.operationID, eff.Ledger)
	if err := th.append(r); err != nil {
		return false, err
	}
	_, err = th.exec(`UPDATE operations SET state = ?2, approved_at = CASE WHEN ?4 = 0 THEN ?3 END, settle_until = CASE WHEN ?4 > 0 THEN ?3 + ?4 END
		WHERE id = ?1`, w.operationID, string(eff.State), th.now.UnixMicro(), w.settle)
	if err != nil {
		return false, err
	}
	if _, err := th.exec(`UPDATE messages SET decided_at = ?2, reading = ?3 WHERE id = ?1`, messageID, th.now.UnixMicro(), string(reading)); err != nil {
		return false, err
	}
	for _, e := range eff.Events {
		if err := th.newEvent(e); err != nil {
			return false, err
		}
	}
	err = th.one(`UPDATE threads SET ledger = ?2, head = ?3 WHERE person_id = ?1
		RETURNING EXISTS (SELECT 1 FROM offers q WHERE q.person_id = ?1 AND q.state = 'queued')`, []any{th.personID, r.Number, r.Hash[:]}, &queued)
	return queued, err
}

// snapshot reads what offers.Snapshot.Why explains a refusal from.
const snapshot = `SELECT o.id IS NOT NULL, coalesce(o.person_id, ''), coalesce(o.state, ''), coalesce(o.consumed_by, ''),
  coalesce(o.address, ''), coalesce(o.our_number, ''), o.args_sha256, o.binding_sha256,
  coalesce(o.root_run_id, ''), o.expires_at, o.asked_at, p.state, p.tier,
  m.id IS NOT NULL, coalesce(m.person_id, ''), coalesce(m.address, ''), coalesce(m.our_number, ''), m.decided_at IS NOT NULL,
  coalesce(m.number, 0), coalesce(r.root_id, ''), m.received_at,
  t.messages, coalesce(last.offer_id, ''), coalesce(last.state, ''),
  ` + otherLive + `,
  coalesce(r.id, ''), coalesce(r.tainted, 1), ` + messageUsed + `,
  ` + beside + ` OR ` + askedOther + `,
  ` + spokenSince + `,
  ` + elsewhere + `
FROM threads t JOIN people p ON p.id = t.person_id LEFT JOIN offers o ON o.id = ?3 LEFT JOIN messages m ON m.id = ?2
LEFT JOIN runs r ON r.id = m.run_id JOIN (SELECT ?4 AS cross_window, ?5 AS names) q
LEFT JOIN (SELECT offer_id, state FROM texts WHERE person_id = ?1 AND state <> 'rejected' ORDER BY number DESC LIMIT 1) last ON true
WHERE t.person_id = ?1`

// explain says why no row changed, or finds this same message's own win.
func (s *Store) explain(ctx context.Context, c offers.ConsumeRequest, cited bool) (offers.Win, error) {
	sn := offers.Snapshot{Now: s.now(), Cited: cited}
	var sum, binding []byte
	var expires, asked, received *int64
	q := s.read(ctx)
	err := q.one(snapshot, []any{c.PersonID, c.MessageID, c.Offer.ID, offers.CrossWindow.Microseconds(), c.Names}, &sn.OfferFound, &sn.PersonID,
		&sn.State, &sn.ConsumedBy, &sn.Address, &sn.OurNumber, &sum, &binding, &sn.RootRunID, &expires, &asked,
		&sn.PersonState, &sn.Tier, &sn.MessageFound, &sn.MessagePersonID, &sn.MessageAddress, &sn.MessageOurNumber, &sn.MessageDecided,
		&sn.MessageNumber, &sn.MessageRootRunID, &received, &sn.Newest, &sn.LastTextOffer, &sn.LastTextState, &sn.OtherLive,
		&sn.RunID, &sn.RunTainted, &sn.Used, &sn.Rival, &sn.Spoken, &sn.Elsewhere)
	if err != nil {
		return offers.Win{}, fmt.Errorf("consume: explain: %w", notFound(err))
	}
	sn.ArgsSHA256, sn.Binding = offers.Hex(digest(sum)), digest(binding)
	sn.ExpiresAt, sn.AskedAt, sn.ReceivedAt = atOrZero(expires), atOrZero(asked), atOrZero(received)
	if sn.ConsumedBy == c.MessageID {
		op, err := oneOperation(q, c.Offer.AccountID, c.Offer.OperationID)
		if err != nil {
			return offers.Win{}, fmt.Errorf("consume: own win: %w", err)
		}
		return offers.Win{Offer: *op.Offer, Operation: op, Repeat: true}, nil
	}
	return offers.Win{}, &offers.Refusal{Why: sn.Why(c)}
}

// closeByReply ends an offer on a no or a change: cautious about whose answer it is and to what, but not about how sure a yes is.
const closeByReply = `UPDATE offers AS o SET state = ?4, closed_at = ?5, closed_by = ?6
  FROM messages m
  WHERE o.id = ?3 AND m.id = ?2 AND o.person_id = ?1 AND m.person_id = ?1
    AND o.state = 'open' AND o.expires_at > ?5
    AND o.address = m.address AND o.our_number = m.our_number
    AND m.number = (SELECT messages FROM threads WHERE person_id = ?1)
    AND o.id = (SELECT offer_id FROM texts WHERE person_id = ?1 AND state <> 'rejected' ORDER BY number DESC LIMIT 1)
    AND NOT ` + otherLive

// CloseByReply implements [offers.Inbox].
func (s *Store) CloseByReply(ctx context.Context, c offers.CloseRequest) (offers.Offer, error) {
	var o offers.Offer
	err := s.inThread(ctx, c.PersonID, func(th *thread) error {
		if err := th.decide(c.MessageID, c.Reading); err != nil {
			return err
		}
		closer, err := json.Marshal(c.Closer)
		if err != nil {
			return err
		}
		n, err := th.exec(closeByReply, c.PersonID, c.MessageID, c.Offer.ID, string(c.State), th.now.UnixMicro(), string(closer))
		if err != nil {
			return err
		}
		if n == 0 {
			return errNotClosed
		}
		if o, err = th.closed(c.Offer.ID, c.State, offers.LedgerBody{Message: c.MessageID, Reading: c.Closer.Reading, P: c.Closer.P}); err != nil {
			return err
		}
		if c.State == offers.Declined { // mutant: sqlite.decline-takes-back
			if err := th.takeBack(c.MessageID); err != nil {
				return err
			}
		}
		if err := th.ended(c.MessageID, c.Ends); err != nil {
			return err
		}
		if c.Tell != nil {
			if err := th.event(offers.MessageReceived, *c.Tell); err != nil {
				return err
			}
		}
		if c.Receipt != "" {
			if err := th.sayOf(offers.TextReceipt, c.Receipt, o); err != nil {
				return err
			}
		}
		return th.advance()
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

// errNotClosed ends a transaction in which no row changed.
var errNotClosed = errors.New("no row")

// closed does what follows from an offer row that this transaction has just closed: operation, ledger, events.
func (th *thread) closed(offerID string, state offers.State, body offers.LedgerBody) (offers.Offer, error) {
	o, err := oneOffer(th.session, offerByID, offerID)
	if err != nil {
		return o, err
	}
	if _, err := th.exec(`UPDATE operations SET state = ?2, closed_at = ?3 WHERE id = ?1`, o.OperationID, string(state), th.now.UnixMicro()); err != nil {
		return o, err
	}
	// A show that never left has nothing to say any more.
	if _, err := th.exec(`UPDATE texts SET state = 'rejected', ended_at = ?2 WHERE person_id = ?3 AND offer_id = ?1 AND state = 'queued' AND kind IN ('show', 'reask')`,
		offerID, th.now.UnixMicro(), th.personID); err != nil {
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

// closeOffer ends a queued, sending or open offer of the person; false: it is closed already.
func (th *thread) closeOffer(offerID string, state offers.State, by offers.Closer) (offers.Offer, bool, error) {
	closer, err := json.Marshal(by)
	if err != nil {
		return offers.Offer{}, false, err
	}
	n, err := th.exec(`UPDATE offers SET state = ?3, closed_at = ?4, closed_by = ?5
		WHERE id = ?1 AND person_id = ?2 AND state IN ('queued', 'sending', 'open')`, offerID, th.personID, string(state), th.now.UnixMicro(), string(closer))
	if err != nil || n == 0 {
		return offers.Offer{}, false, err
	}
	o, err := th.closed(offerID, state, offers.LedgerBody{})
	return o, true, err
}

// Withdraw implements [offers.Store].
func (s *Store) Withdraw(ctx context.Context, accountID, id string, by offers.Closer) (offers.Offer, error) {
	o, err := s.Offer(ctx, accountID, id)
	if err != nil {
		return o, err
	}
	err = s.inThread(ctx, o.PersonID, func(th *thread) error {
		got, ok, err := th.closeOffer(o.ID, offers.Withdrawn, by)
		if err != nil {
			return err
		}
		if !ok {
			return offers.ErrOfferClosed
		}
		o = got
		return th.advance()
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
const begin = `UPDATE operations AS x SET state = 'running', begun_at = ?4, begun_by = ?5
  FROM people p
  WHERE x.id = ?1 AND x.person_id = ?2 AND p.id = x.person_id
    AND x.args_sha256 = ?3                                          -- mutant: begin.args
    AND (x.state = 'allowed' OR x.state = 'approved')               -- mutant: begin.state
    AND (x.approved_at IS NULL OR x.approved_at + ?6 > ?4)          -- mutant: begin.deadline
    AND x.tool <> 'permission.grant'                                -- mutant: begin.service
    AND NOT EXISTS (SELECT 1 FROM permissions g WHERE g.id = x.permission_id AND g.revoked_at IS NOT NULL) -- mutant: begin.permission
    AND NOT (x.reason = 'DIRECT_SEND' AND EXISTS (SELECT 1 FROM permissions g WHERE g.account_id = x.account_id AND g.person_id = x.person_id
      AND g.how = 'direct' AND g.revoked_at >= x.created_at))       -- mutant: begin.direct
    AND p.state = 'active'                                          -- mutant: begin.active
    AND p.tier IN (SELECT value FROM json_each(?7))                 -- mutant: begin.tier`

// Begin implements [offers.Store].
func (s *Store) Begin(ctx context.Context, b offers.BeginRequest) (offers.Operation, error) {
	op, err := s.Operation(ctx, b.AccountID, b.OperationID)
	if err != nil {
		return op, err
	}
	tiers, err := json.Marshal(offers.TiersHolding(op.Capability))
	if err != nil {
		return op, fmt.Errorf("begin: %w", err)
	}
	err = s.inThread(ctx, op.PersonID, func(th *thread) error {
		n, err := th.exec(begin, op.ID, op.PersonID, b.ArgsSum[:], th.now.UnixMicro(), b.By, offers.BeginWithin.Microseconds(), string(tiers))
		if err != nil {
			return err
		}
		if n == 0 {
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
		f.Result.At = th.now
		raw, sum, err := f.Result.Encode()
		if err != nil {
			return err
		}
		n, err := th.exec(`UPDATE operations SET state = ?2, result = ?3, closed_at = ?4 WHERE id = ?1 AND state = 'running'`,
			op.ID, f.Result.Status, string(raw), th.now.UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return errNotClosed
		}
		if op, err = oneOperation(th.session, f.AccountID, op.ID); err != nil {
			return err
		}
		if err := th.record(ledger.Result, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, State: string(op.State), ResultSum: sum}); err != nil {
			return err
		}
		if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
			return err
		}
		if f.SetsUp != "" && op.State == offers.OpSucceeded {
			if err := th.setUp(op, f.SetsUp); err != nil {
				return err
			}
		}
		if op.Offer == nil || f.Receipt == "" {
			return nil
		}
		return th.sayOf(offers.TextReceipt, f.Receipt, *op.Offer)
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
	list, err := all(s.read(ctx), func(r row) (ledger.Row, error) {
		l := ledger.Row{AccountID: accountID}
		var us int64
		var prev, hash []byte
		err := r.Scan(&l.PersonID, &l.Number, &us, &l.Kind, &l.OperationID, &l.Body, &prev, &hash)
		l.At, l.Prev, l.Hash = at(us), digest(prev), digest(hash)
		return l, err
	}, `SELECT person_id, number, at, kind, operation_id, body, prev, hash FROM ledger
		WHERE person_id = ?1 AND account_id = ?2 ORDER BY number`, fold(personID), accountID)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return list, nil
}
