package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Propose implements [offers.Proposer].
func (s *Store) Propose(ctx context.Context, p offers.Proposal, decide func(offers.Facts) (offers.Plan, error)) (op offers.Operation, again bool, err error) {
	opID := offers.NewID()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The insert waits for a concurrent duplicate, and then finds its row.
		tag, err := tx.Exec(ctx, `INSERT INTO idempotency (account_id, call, key, body_sha256, operation_id) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (account_id, call, key) DO NOTHING`, p.AccountID, p.Call, p.Key, p.BodySum[:], opID)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			again = true
			return tx.QueryRow(ctx, `SELECT operation_id FROM idempotency WHERE account_id = $1 AND call = $2 AND key = $3 AND body_sha256 = $4`,
				p.AccountID, p.Call, p.Key, p.BodySum[:]).Scan(&opID)
		}
		return s.propose(ctx, tx, opID, p, decide)
	})
	switch {
	case again && errors.Is(err, pgx.ErrNoRows):
		return op, false, offers.ErrIdempotencyConflict
	case err != nil:
		return op, false, fmt.Errorf("propose: %w", err)
	}
	op, err = s.Operation(ctx, p.AccountID, opID)
	return op, again, err
}

func (s *Store) propose(ctx context.Context, tx pgx.Tx, opID string, p offers.Proposal, decide func(offers.Facts) (offers.Plan, error)) error {
	personID, err := proposer(ctx, tx, p)
	if err != nil {
		return err
	}
	th, err := lock(ctx, tx, personID)
	if err != nil {
		return err
	}
	if th.accountID != p.AccountID {
		return offers.ErrNotFound
	}
	var run *offers.Run
	if p.RunID != "" { // under the lock: its taint may have come while this waited
		r, err := oneRun(ctx, tx, `WHERE r.id = $1`, p.RunID)
		if err != nil {
			return err
		}
		if !th.now.Before(r.ExpiresAt) {
			return offers.ErrRunExpired
		}
		run = &r
	}
	f := offers.Facts{Now: th.now, OperationID: opID}
	if err := th.facts(ctx, &f, p.Address, p.Reaches); err != nil {
		return err
	}
	if run == nil {
		if run, err = th.newRun(ctx, f.Person.Tier); err != nil {
			return err
		}
	}
	f.Run = *run
	if p.Supersedes != "" {
		old, err := oneOffer(ctx, tx, `WHERE o.id = $1 AND o.person_id = $2`, p.Supersedes, personID)
		if err != nil {
			return err
		}
		f.Superseded = &old
	}
	plan, err := offers.PlanOf(f, decide, func(id string, served []string) (bool, error) { return th.spend(ctx, id, served) })
	if err != nil {
		return err
	}
	if err := th.store(ctx, p, f, plan); err != nil {
		return err
	}
	return th.flush(ctx)
}

// newRun makes the run of a proposal that came the short way: it carries the person's tier and counts as tainted.
func (th *thread) newRun(ctx context.Context, tier string) (*offers.Run, error) {
	run := &offers.Run{
		ID: offers.NewID(), PersonID: th.personID, Tier: tier, Interactive: true, Tainted: true,
		Cause: offers.Cause{Offer: true}, AccountID: th.accountID, CreatedAt: th.now,
	}
	run.RootID = run.ID
	_, err := th.tx.Exec(ctx, `INSERT INTO runs (id, account_id, person_id, tier, cause, root_id, tainted, interactive, created_at)
		VALUES ($1, $2, $3, $4, $5, $1, true, true, $6)`, run.ID, th.accountID, th.personID, run.Tier, run.Cause, th.now)
	return run, err
}

// proposer names the person whose lock is needed.
func proposer(ctx context.Context, tx pgx.Tx, p offers.Proposal) (personID string, err error) {
	switch {
	case p.RunID != "":
		err = tx.QueryRow(ctx, `SELECT person_id FROM runs WHERE id = $1 AND account_id = $2`, p.RunID, p.AccountID).Scan(&personID)
	case p.PersonID != "":
		err = tx.QueryRow(ctx, `SELECT id FROM people WHERE id = $1 AND account_id = $2`, p.PersonID, p.AccountID).Scan(&personID)
	default:
		err = tx.QueryRow(ctx, `SELECT person_id FROM addresses WHERE address = $1 AND account_id = $2 ORDER BY bound_at LIMIT 1`,
			string(p.Address), p.AccountID).Scan(&personID)
		if errors.Is(err, pgx.ErrNoRows) {
			return "", offers.ErrNoAddress
		}
	}
	if badID(err) {
		err = pgx.ErrNoRows
	}
	return personID, notFound(err)
}

// facts reads the rest under the lock. want, if set, is where the ask is to be shown.
func (th *thread) facts(ctx context.Context, f *offers.Facts, want people.Address, reaches []string) error {
	f.Person = people.Person{ID: th.personID, AccountID: th.accountID}
	var b pgx.Batch
	b.Queue(`SELECT name, tier, state FROM people WHERE id = $1`, th.personID).QueryRow(func(row pgx.Row) error {
		return row.Scan(&f.Person.Name, &f.Person.Tier, &f.Person.State)
	})
	b.Queue(`SELECT address, our_number FROM addresses WHERE person_id = $1 AND ($2 = '' OR address = $2) ORDER BY bound_at, address LIMIT 1`,
		th.personID, string(want)).Query(func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&f.Address, &f.OurNumber); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	b.Queue(`SELECT address FROM own_addresses WHERE account_id = $1 AND address = ANY($2) UNION
		SELECT address FROM addresses WHERE account_id = $1 AND address = ANY($2) ORDER BY 1`, th.accountID, reaches).Query(func(rows pgx.Rows) (err error) {
		f.OwnAddresses, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	b.Queue(`SELECT asking_is_approving FROM accounts WHERE id = $1`, th.accountID).QueryRow(func(row pgx.Row) error {
		return row.Scan(&f.AskingIsApproving)
	})
	f.Names = map[string]string{}
	b.Queue(namesOf, th.accountID, reaches).Query(func(rows pgx.Rows) error {
		var address, name string
		_, err := pgx.ForEachRow(rows, []any{&address, &name}, func() error { f.Names[address] = name; return nil })
		return err
	})
	b.Queue(livePermissions, th.personID).Query(func(rows pgx.Rows) (err error) {
		f.Permissions, err = pgx.CollectRows(rows, scanPermission)
		return err
	})
	if err := th.tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	f.Reachable = f.Person.State == people.Active && f.Address != ""
	return nil
}

// store writes the operation, its offer, its ledger row and what they supersede; what it queues is for flush to write.
func (th *thread) store(ctx context.Context, p offers.Proposal, f offers.Facts, plan offers.Plan) error {
	d := plan.Decision
	row := offers.OperationRow(p, f, plan)
	_, err := th.tx.Exec(ctx, `INSERT INTO operations (id, account_id, run_id, person_id, kind, tool, args, args_sha256, decision, reason, rule, detail,
		tier, capability, state, created_at, permission_id, approved_at, key_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, nullif($17, '')::uuid, CASE WHEN $18 THEN $16::timestamptz END, nullif($19, '')::uuid)`,
		row.ID, th.accountID, row.RunID, th.personID, row.Kind, row.Tool, p.Args, p.ArgsSum[:], row.Decision, row.Reason, row.Rule, row.Detail,
		row.Tier, row.Capability, string(row.State), th.now, row.PermissionID, row.Permitted(), p.KeyID)
	if err != nil {
		return err
	}
	if plan.Taints {
		if err := th.taint(ctx, f.Run.RootID); err != nil {
			return err
		}
	}
	kind, body := offers.DecisionRecord(row)
	if plan.Offer == nil {
		if err := th.record(kind, row.ID, body); err != nil {
			return err
		}
		if plan.Say != "" {
			return th.sayFor(ctx, row, plan.Say)
		}
		return nil
	}
	if d.Answer != gate.Ask {
		return fmt.Errorf("an offer for the decision %v", d.Answer)
	}
	if f.Superseded != nil {
		if _, ok, err := th.closeOffer(ctx, f.Superseded.ID, offers.Superseded, offers.Closer{By: offers.ByAgent}); err != nil {
			return err
		} else if !ok && f.Superseded.Taken() {
			return offers.ErrOfferClosed
		}
	}
	if err := th.insertOffer(ctx, p, f, plan, &body); err != nil {
		return err
	}
	if err := th.record(kind, row.ID, body); err != nil {
		return err
	}
	return th.advance(ctx)
}

func (th *thread) insertOffer(ctx context.Context, p offers.Proposal, f offers.Facts, plan offers.Plan, body *offers.LedgerBody) error {
	body.Offer = offers.NewID()
	_, err := th.tx.Exec(ctx, `INSERT INTO offers (id, account_id, operation_id, person_id, run_id, root_run_id, address, our_number, state, present, tool,
		capability, args_sha256, binding_sha256, label, shown_text, ask_line, policy_version, ttl_us, settle_us, supersedes, created_at, expires_at, token_sha256)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, nullif($20, '')::uuid, $21, $22, $23)`,
		body.Offer, th.accountID, f.OperationID, th.personID, f.Run.ID, f.Run.RootID, string(f.Address), string(f.OurNumber), string(p.Present), p.Tool,
		string(plan.Decision.Capability), p.ArgsSum[:], plan.Offer.BindingSum[:], plan.Offer.Label, plan.Offer.ShownText, plan.Offer.AskLine,
		plan.Offer.PolicyVersion, plan.Offer.TTL.Microseconds(), plan.Offer.Settle.Microseconds(), p.Supersedes, th.now, th.now.Add(offers.QueueWait(plan.Offer.TTL)), plan.Offer.TokenBytes())
	return err
}

// advance starts the next show: every queued offer that asked for now, and the oldest queued one if none is live.
// Sending is committed with the text, before any provider is called.
func (th *thread) advance(ctx context.Context) error {
	if err := th.dropUnreachable(ctx); err != nil {
		return err
	}
	rows, err := th.tx.Query(ctx, `UPDATE offers SET state = 'sending', left_at = NULL, sent_at = $2,
		expires_at = CASE WHEN shown_at IS NULL THEN $2::timestamptz + ttl_us * interval '1 microsecond' ELSE expires_at END WHERE id IN (
		SELECT id FROM offers WHERE person_id = $1 AND state = 'queued' AND expires_at > $2 AND present = 'now'
		UNION ALL
		(SELECT q.id FROM offers q WHERE q.person_id = $1 AND q.state = 'queued' AND q.expires_at > $2
		  AND NOT EXISTS (SELECT 1 FROM offers y WHERE y.person_id = $1 AND (y.state IN ('sending', 'open') OR (y.state = 'queued' AND y.present = 'now' AND y.expires_at > $2)))
		  ORDER BY coalesce(q.left_at, q.created_at), q.id LIMIT 1))
		RETURNING id, address, our_number, shown_text, created_at`, th.personID, th.now)
	if err != nil {
		return err
	}
	type show struct {
		id, addr, our, text string
		at                  time.Time
	}
	shows, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (show, error) {
		var s show
		err := row.Scan(&s.id, &s.addr, &s.our, &s.text, &s.at)
		return s, err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(shows, func(a, b show) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	for _, s := range shows {
		th.text(offers.TextShow, s.id, people.Address(s.addr), people.Address(s.our), s.text)
	}
	return nil
}

// dropUnreachable ends queued offers to an address that takes no texts, or is bound to the person no more.
func (th *thread) dropUnreachable(ctx context.Context) error {
	lost, err := ids(ctx, th.tx, `SELECT q.id::text FROM offers q WHERE q.person_id = $1 AND q.state = 'queued' AND NOT EXISTS (
		SELECT 1 FROM addresses a WHERE a.address = q.address AND a.our_number = q.our_number AND a.person_id = $1 AND a.opted_out_at IS NULL)
		ORDER BY q.created_at, q.id`, th.personID)
	if err != nil {
		return err
	}
	for _, id := range lost {
		if _, _, err := th.closeOffer(ctx, id, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}); err != nil {
			return err
		}
	}
	return nil
}
