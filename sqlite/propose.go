package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Propose implements [offers.Proposer].
func (s *Store) Propose(ctx context.Context, p offers.Proposal, decide func(offers.Facts) (offers.Plan, error)) (op offers.Operation, again bool, err error) {
	p.RunID, p.PersonID, p.Supersedes = fold(p.RunID), fold(p.PersonID), fold(p.Supersedes)
	opID := offers.NewID()
	err = s.write(ctx, func(q session, now time.Time) error {
		n, err := q.exec(`INSERT INTO idempotency (account_id, call, key, body_sha256, operation_id) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT (account_id, call, key) DO NOTHING`, p.AccountID, p.Call, p.Key, p.BodySum[:], opID)
		if err != nil {
			return err
		}
		if n == 0 {
			again = true
			return q.one(`SELECT operation_id FROM idempotency WHERE account_id = ?1 AND call = ?2 AND key = ?3 AND body_sha256 = ?4`,
				[]any{p.AccountID, p.Call, p.Key, p.BodySum[:]}, &opID)
		}
		return propose(q, now, opID, p, decide)
	})
	switch {
	case again && errors.Is(err, sql.ErrNoRows):
		return op, false, offers.ErrIdempotencyConflict
	case err != nil:
		return op, false, fmt.Errorf("propose: %w", err)
	}
	op, err = s.Operation(ctx, p.AccountID, opID)
	return op, again, err
}

func propose(q session, now time.Time, opID string, p offers.Proposal, decide func(offers.Facts) (offers.Plan, error)) error {
	personID, run, err := proposer(q, p)
	if err != nil {
		return err
	}
	th, err := threadOf(q, now, personID)
	if err != nil {
		return err
	}
	if th.accountID != p.AccountID {
		return offers.ErrNotFound
	}
	if run != nil && !now.Before(run.ExpiresAt) {
		return offers.ErrRunExpired
	}
	f := offers.Facts{Now: now, OperationID: opID}
	if err := th.facts(&f, p.Address, p.Reaches); err != nil {
		return err
	}
	if run == nil {
		if run, err = th.newRun(f.Person.Tier); err != nil {
			return err
		}
	}
	f.Run = *run
	if p.Supersedes != "" {
		old, err := oneOffer(q, offerOfPerson, p.Supersedes, personID)
		if err != nil {
			return err
		}
		f.Superseded = &old
	}
	plan, err := offers.PlanOf(f, decide, th.spend)
	if err != nil {
		return err
	}
	if err := th.store(p, f, plan); err != nil {
		return err
	}
	return th.flush()
}

// newRun makes the run of a proposal that came the short way: it carries the person's tier and counts as tainted.
func (th *thread) newRun(tier string) (*offers.Run, error) {
	run := &offers.Run{
		ID: offers.NewID(), PersonID: th.personID, Tier: tier, Interactive: true, Tainted: true,
		Cause: offers.Cause{Offer: true}, AccountID: th.accountID, CreatedAt: th.now,
	}
	run.RootID = run.ID
	cause, err := json.Marshal(run.Cause)
	if err != nil {
		return nil, err
	}
	_, err = th.exec(`INSERT INTO runs (id, account_id, person_id, tier, cause, root_id, tainted, interactive, created_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?1, 1, 1, ?6)`, run.ID, run.AccountID, run.PersonID, run.Tier, string(cause), th.now.UnixMicro())
	return run, err
}

// proposer names the person, and the run where the proposal has one.
func proposer(q session, p offers.Proposal) (personID string, run *offers.Run, err error) {
	switch {
	case p.RunID != "":
		var r offers.Run
		r, err = oneRun(q, runByID, p.RunID, p.AccountID)
		run, personID = &r, r.PersonID
	case p.PersonID != "":
		err = q.one(`SELECT id FROM people WHERE id = ?1 AND account_id = ?2`, []any{p.PersonID, p.AccountID}, &personID)
	default:
		err = q.one(`SELECT person_id FROM addresses WHERE address = ?1 AND account_id = ?2 ORDER BY bound_at, rowid LIMIT 1`,
			[]any{string(p.Address), p.AccountID}, &personID)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil, offers.ErrNoAddress
		}
	}
	return personID, run, notFound(err)
}

// facts reads the rest under the lock. want, if set, is where the ask is to be shown.
func (th *thread) facts(f *offers.Facts, want people.Address, reaches []string) error {
	f.Person = people.Person{ID: th.personID, AccountID: th.accountID}
	err := th.one(`SELECT p.name, p.tier, p.state, a.asking_is_approving FROM people p JOIN accounts a ON a.id = p.account_id WHERE p.id = ?1`,
		[]any{th.personID}, &f.Person.Name, &f.Person.Tier, &f.Person.State, &f.AskingIsApproving)
	if err != nil {
		return err
	}
	err = th.one(`SELECT address, our_number FROM addresses WHERE person_id = ?1 AND (?2 = '' OR address = ?2) ORDER BY bound_at, rowid LIMIT 1`,
		[]any{th.personID, string(want)}, &f.Address, &f.OurNumber)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	list, err := json.Marshal(reaches)
	if err != nil {
		return err
	}
	f.OwnAddresses, err = all(th.session, scanString, `SELECT address FROM own_addresses WHERE account_id = ?1 AND address IN (SELECT value FROM json_each(?2)) UNION
		SELECT address FROM addresses WHERE account_id = ?1 AND address IN (SELECT value FROM json_each(?2)) ORDER BY 1`, th.accountID, string(list))
	if err != nil {
		return err
	}
	if f.Names, err = namesOf(th.session, th.accountID, string(list)); err != nil {
		return err
	}
	f.Reachable = f.Person.State == people.Active && f.Address != ""
	f.Permissions, err = th.permissions()
	return err
}

// store writes the operation, its offer, its ledger row and what they supersede.
func (th *thread) store(p offers.Proposal, f offers.Facts, plan offers.Plan) error {
	d := plan.Decision
	op := offers.OperationRow(p, f, plan)
	_, err := th.exec(`INSERT INTO operations (id, account_id, run_id, person_id, kind, tool, args, args_sha256, decision, reason, rule, detail,
		tier, capability, state, created_at, permission_id, approved_at, key_id)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, nullif(?17, ''), iif(?18, ?16, NULL), nullif(?19, ''))`,
		op.ID, th.accountID, op.RunID, th.personID, op.Kind, op.Tool, p.Args, p.ArgsSum[:], op.Decision, op.Reason, op.Rule, op.Detail,
		op.Tier, op.Capability, string(op.State), th.now.UnixMicro(), fold(op.PermissionID), op.Permitted(), p.KeyID)
	if err != nil {
		return err
	}
	if plan.Taints {
		if err := taint(th.session, f.Run.RootID); err != nil {
			return err
		}
	}
	kind, body := offers.DecisionRecord(op)
	if plan.Offer == nil {
		if err := th.record(kind, op.ID, body); err != nil || plan.Say == "" {
			return err
		}
		return th.sayFor(op, plan.Say)
	}
	if d.Answer != gate.Ask {
		return fmt.Errorf("an offer for the decision %v", d.Answer)
	}
	if f.Superseded != nil {
		if _, ok, err := th.closeOffer(f.Superseded.ID, offers.Superseded, offers.Closer{By: offers.ByAgent}); err != nil {
			return err
		} else if !ok && f.Superseded.Taken() {
			return offers.ErrOfferClosed
		}
	}
	body.Offer = offers.NewID()
	if err := th.insertOffer(body.Offer, p, f, plan); err != nil {
		return err
	}
	if err := th.record(kind, op.ID, body); err != nil {
		return err
	}
	return th.advance()
}

func (th *thread) insertOffer(id string, p offers.Proposal, f offers.Facts, plan offers.Plan) error {
	_, err := th.exec(`INSERT INTO offers (id, account_id, operation_id, person_id, run_id, root_run_id, address, our_number, state, present, tool,
		capability, args_sha256, binding_sha256, label, shown_text, ask_line, policy_version, ttl_us, settle_us, supersedes, created_at, expires_at, token_sha256)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, nullif(?20, ''), ?21, ?22, ?23)`,
		id, th.accountID, f.OperationID, th.personID, f.Run.ID, f.Run.RootID, string(f.Address), string(f.OurNumber), string(p.Present), p.Tool,
		string(plan.Decision.Capability), p.ArgsSum[:], plan.Offer.BindingSum[:], plan.Offer.Label, plan.Offer.ShownText, plan.Offer.AskLine,
		plan.Offer.PolicyVersion, plan.Offer.TTL.Microseconds(), plan.Offer.Settle.Microseconds(), p.Supersedes,
		th.now.UnixMicro(), th.now.Add(offers.QueueWait(plan.Offer.TTL)).UnixMicro(), plan.Offer.TokenBytes())
	return err
}

// advance starts the next show: every queued offer that asked for now, and the oldest queued one if none is live.
// Sending is committed with the text, before any provider is called.
func (th *thread) advance() error {
	if err := th.dropUnreachable(); err != nil {
		return err
	}
	type show struct {
		id, text  string
		addr, our people.Address
		created   int64
	}
	shows, err := all(th.session, func(r row) (show, error) {
		var s show
		err := r.Scan(&s.id, &s.addr, &s.our, &s.text, &s.created)
		return s, err
	}, `UPDATE offers SET state = 'sending', left_at = NULL, sent_at = ?2,
		expires_at = iif(shown_at IS NULL, ?2 + ttl_us, expires_at) WHERE id IN (
		SELECT id FROM offers WHERE person_id = ?1 AND state = 'queued' AND expires_at > ?2 AND present = 'now'
		UNION ALL
		SELECT id FROM (SELECT q.id FROM offers q WHERE q.person_id = ?1 AND q.state = 'queued' AND q.expires_at > ?2
		  AND NOT EXISTS (SELECT 1 FROM offers y WHERE y.person_id = ?1 AND (y.state IN ('sending', 'open') OR (y.state = 'queued' AND y.present = 'now' AND y.expires_at > ?2)))
		  ORDER BY coalesce(q.left_at, q.created_at), q.id LIMIT 1))
		RETURNING id, address, our_number, shown_text, created_at`, th.personID, th.now.UnixMicro())
	if err != nil {
		return err
	}
	slices.SortFunc(shows, func(a, b show) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	for _, s := range shows {
		if err := th.text(offers.TextShow, s.id, s.addr, s.our, s.text); err != nil {
			return err
		}
	}
	return nil
}

// dropUnreachable ends queued offers to an address that takes no texts, or is bound to the person no more.
func (th *thread) dropUnreachable() error {
	lost, err := all(th.session, scanString, `SELECT q.id FROM offers q WHERE q.person_id = ?1 AND q.state = 'queued' AND NOT EXISTS (
		SELECT 1 FROM addresses a WHERE a.address = q.address AND a.our_number = q.our_number AND a.person_id = ?1 AND a.opted_out_at IS NULL)
		ORDER BY q.created_at, q.id`, th.personID)
	if err != nil {
		return err
	}
	for _, id := range lost {
		if _, _, err := th.closeOffer(id, offers.Undeliverable, offers.Closer{By: offers.ByCarrier}); err != nil {
			return err
		}
	}
	return nil
}
