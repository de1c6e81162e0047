package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

const permissionColumns = `id, account_id, person_id, number, how, granted, coalesce(budget, 0), used, used_at, valid_until,
	coalesce(message_id::text, ''), coalesce(operation_id::text, ''), created_at, granted_at, revoked_at, revoked_by`

// livePermissions are granted and neither revoked nor expired; whether one is used up is for its spending to say.
const livePermissions = `SELECT ` + permissionColumns + ` FROM permissions WHERE person_id = $1
	AND granted_at IS NOT NULL                                      -- mutant: permissions.granted
	AND revoked_at IS NULL                                          -- mutant: permissions.revoked
	AND (valid_until IS NULL OR valid_until > cs_now())             -- mutant: permissions.until
	ORDER BY number DESC LIMIT 500`

func scanPermission(row pgx.CollectableRow) (offers.Permission, error) {
	var p offers.Permission
	var id, person, message string
	var granted []byte
	var budget, used int
	var until *time.Time
	err := row.Scan(&id, &p.AccountID, &person, &p.Number, &p.How, &granted, &budget, &used, &p.UsedAt, &until,
		&message, &p.OperationID, &p.CreatedAt, &p.GrantedAt, &p.RevokedAt, &p.RevokedBy)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(granted, &p.Granted); err != nil {
		return p, fmt.Errorf("permission: %w", err)
	}
	// What has a column is taken from there.
	p.ID, p.PersonID, p.MessageID, p.MaxCalls, p.Used, p.EndsAt = id, person, message, budget, used, deref(until).UTC()
	for _, t := range []*time.Time{p.UsedAt, p.GrantedAt, p.RevokedAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
	p.CreatedAt, p.Revoked = p.CreatedAt.UTC(), p.RevokedAt != nil
	return p, nil
}

func permissions(ctx context.Context, q querier, query string, args ...any) ([]offers.Permission, error) {
	return all(ctx, q, scanPermission, query, args...)
}

// spend takes one call from a permission. It holds every condition under which the person's word still counts; false: it
// does not.
func (th *thread) spend(ctx context.Context, id string, served []string) (bool, error) {
	tag, err := th.tx.Exec(ctx, `UPDATE permissions SET used = used + 1, used_at = cs_now(),
		granted = CASE WHEN cardinality($3::text[]) > 0 THEN jsonb_set(granted, '{served}', to_jsonb($3::text[])) ELSE granted END WHERE id = $1
		AND person_id = $2                                              -- mutant: spend.person
		AND granted_at IS NOT NULL                                      -- mutant: spend.granted
		AND revoked_at IS NULL                                          -- mutant: spend.revoked
		AND (budget IS NULL OR used < budget)                           -- mutant: spend.budget
		AND (valid_until IS NULL OR valid_until > cs_now())             -- mutant: spend.until
		`, id, th.personID, served)
	return tag.RowsAffected() == 1, err
}

func (th *thread) nextPermission(ctx context.Context, number *int) error {
	return th.tx.QueryRow(ctx, `SELECT coalesce(max(number), 0) + 1 FROM permissions WHERE person_id = $1`, th.personID).Scan(number)
}

// addPermission stores a permission under the person's next number.
func (th *thread) addPermission(ctx context.Context, p offers.Permission) (offers.Permission, error) {
	if err := th.nextPermission(ctx, &p.Number); err != nil {
		return p, err
	}
	return p, th.insertPermission(ctx, &p)
}

func (th *thread) insertPermission(ctx context.Context, p *offers.Permission) error {
	p.ID, p.AccountID, p.PersonID, p.CreatedAt = offers.NewID(), th.accountID, th.personID, th.now.UTC()
	if p.GivenAt.IsZero() {
		p.GivenAt = p.CreatedAt
	}
	granted, err := json.Marshal(p.Granted)
	if err != nil {
		return err
	}
	var until *time.Time
	if !p.EndsAt.IsZero() {
		until = &p.EndsAt
	}
	_, err = th.tx.Exec(ctx, `INSERT INTO permissions (id, account_id, person_id, number, how, granted, budget, valid_until, message_id, operation_id, created_at, granted_at)
		VALUES ($1, $2, $3, $4, $5, $6, nullif($7, 0), $8, nullif($9, '')::uuid, nullif($10, '')::uuid, $11, $12)`,
		p.ID, th.accountID, th.personID, p.Number, string(p.How), granted, p.MaxCalls, until, p.MessageID, p.OperationID, th.now, p.GrantedAt)
	return err
}

// ground reads what a message's words are turned into permissions on; no row: they are no words that permit anything.
const ground = `SELECT a.asking_is_approving, a.standing_by_text
	FROM people p JOIN accounts a ON a.id = p.account_id JOIN messages m ON m.person_id = p.id
	WHERE p.id = $1 AND m.id = $2
	AND p.state = 'active'                                          -- mutant: ground.active
	AND p.tier = 'owner'                                            -- mutant: ground.owner
	AND m.trust = 'trusted'                                         -- mutant: ground.trusted
	AND NOT m.lossy                                                 -- mutant: ground.lossy
	AND m.number = (SELECT messages FROM threads WHERE person_id = $1) -- mutant: ground.newest
	`

// takeBack ends the one-offs that were asked for before a message.
func (th *thread) takeBack(ctx context.Context, messageID string) error {
	_, err := th.tx.Exec(ctx, `UPDATE permissions SET revoked_at = $2, revoked_by = $3 WHERE person_id = $1 AND how = 'once' AND revoked_at IS NULL
			AND (SELECT number FROM messages WHERE id = message_id) < (SELECT number FROM messages WHERE id = $4) -- mutant: taken.earlier
			`, th.personID, th.now, offers.RevokedByTaken, messageID)
	return err
}

// endAll ends every permission of somebody who wants no text any more: there is no way left to tell or to ask them.
func (th *thread) endAll(ctx context.Context, messageID string) error {
	live, err := ids(ctx, th.tx, `SELECT id::text FROM permissions WHERE person_id = $1 AND revoked_at IS NULL`, th.personID)
	if err == nil && len(live) > 0 {
		_, err = th.revoke(ctx, live, offers.RevokedByText, offers.Closer{MessageID: messageID})
	}
	return err
}

// ended ends the permissions that a message's words end, and says so.
func (th *thread) ended(ctx context.Context, messageID string, ends func(offers.Permission) bool) error {
	if ends == nil {
		return nil
	}
	list, err := permissions(ctx, th.tx, `SELECT `+permissionColumns+` FROM permissions WHERE person_id = $1 AND revoked_at IS NULL
		AND (valid_until IS NULL OR valid_until > $2) ORDER BY number`, th.personID, th.now)
	if err != nil {
		return err
	}
	st := offers.PermissionState{Now: th.now.UTC()}
	which := st.Sort(list, ends)
	if len(which) == 0 {
		return nil
	}
	if _, err := th.revoke(ctx, which, offers.RevokedByText, offers.Closer{MessageID: messageID}); err != nil {
		return err
	}
	if err := th.say(ctx, offers.TextReceipt, offers.EndedReceipt(st.Ended)); err != nil {
		return err
	}
	return th.advance(ctx)
}

// asked turns what a message asks for into permissions, and into the offers of those that need a yes of their own.
func (th *thread) asked(ctx context.Context, p offers.PassRequest) error {
	if p.TakesBack {
		if err := th.takeBack(ctx, p.MessageID); err != nil {
			return err
		}
	}
	if err := th.ended(ctx, p.MessageID, p.Ends); err != nil {
		return err
	}
	if len(p.Asked) == 0 {
		return nil
	}
	g := offers.Ground{Now: th.now.UTC(), PersonID: th.personID, MessageID: p.MessageID}
	err := th.tx.QueryRow(ctx, ground, th.personID, p.MessageID).Scan(&g.AskingIsApproving, &g.StandingByText)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		g.Contacts, err = contactsOf(ctx, th.tx, th.accountID)
	}
	if err != nil {
		return err
	}
	for _, perm := range offers.Permit(g, p.Asked) {
		if perm.GrantedAt != nil {
			_, err = th.addPermission(ctx, perm)
		} else {
			err = th.askPermission(ctx, perm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// askPermission puts a permission to the person who has asked for it, in a run of the service's own.
func (th *thread) askPermission(ctx context.Context, perm offers.Permission) error {
	f := offers.Facts{Now: th.now, OperationID: offers.NewID()}
	if err := th.facts(ctx, &f, "", nil); err != nil {
		return err
	}
	run, err := th.newRun(ctx, f.Person.Tier)
	if err != nil {
		return err
	}
	f.Run = *run
	if err := th.nextPermission(ctx, &perm.Number); err != nil {
		return err
	}
	pr, plan, ok, err := offers.PermissionOffer(f, perm)
	if err != nil || !ok {
		return err
	}
	if err := th.store(ctx, pr, f, plan); err != nil {
		return err
	}
	perm.OperationID = f.OperationID
	return th.insertPermission(ctx, &perm)
}

// GrantDue implements [offers.Sweeper].
func (s *Store) GrantDue(ctx context.Context) (int, error) {
	return s.each(ctx, "grant", `SELECT DISTINCT person_id::text FROM operations WHERE state = 'approved' AND tool = 'permission.grant' AND approved_at <= $1 LIMIT 500`, 0,
		func(th *thread) (int, error) {
			due, err := ids(ctx, th.tx, `UPDATE operations SET state = 'running', begun_at = cs_now(), begun_by = 'countersign'
				WHERE person_id = $1 AND state = 'approved' AND tool = 'permission.grant'
				AND approved_at + $2::interval > cs_now()                       -- mutant: grant.deadline
				RETURNING id::text`, th.personID, offers.BeginWithin)
			if err != nil {
				return 0, err
			}
			for _, id := range due {
				if err := th.grant(ctx, id); err != nil {
					return 0, err
				}
			}
			return len(due), nil
		})
}

// grant gives the permission whose offer was approved: begun and done in the one transaction.
func (th *thread) grant(ctx context.Context, operationID string) error {
	op, err := oneOperation(ctx, th.tx, th.accountID, operationID)
	if err != nil {
		return err
	}
	if err := th.record(ledger.Begun, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, ArgsSHA256: op.ArgsSHA256, By: op.BegunBy}); err != nil {
		return err
	}
	list, err := permissions(ctx, th.tx, `UPDATE permissions AS g SET granted_at = CASE WHEN true
		AND revoked_at IS NULL                                          -- mutant: grant.revoked
		AND EXISTS (SELECT 1 FROM people p WHERE p.id = g.person_id
		AND p.state = 'active'                                          -- mutant: grant.active
		AND p.tier = 'owner'                                            -- mutant: grant.owner
		) THEN cs_now() END WHERE operation_id = $1 RETURNING `+permissionColumns, operationID)
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("%d permissions of one offer", len(list))
	}
	res := offers.GrantResult(list[0], th.now.UTC())
	raw, sum, err := res.Encode()
	if err != nil {
		return err
	}
	if _, err := th.tx.Exec(ctx, `UPDATE operations SET state = $2, result = $3, closed_at = $4 WHERE id = $1`, op.ID, res.Status, string(raw), th.now); err != nil {
		return err
	}
	op.State, op.Result = offers.OpState(res.Status), raw
	if err := th.record(ledger.Result, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, State: string(op.State), ResultSum: sum}); err != nil {
		return err
	}
	if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
		return err
	}
	return th.say(ctx, offers.TextReceipt, offers.PermissionReceipt(list[0]))
}

// PermissionsOf implements [offers.Permissions].
func (s *Store) PermissionsOf(ctx context.Context, accountID, personID string) ([]offers.Permission, error) {
	list, err := permissions(ctx, s.pool, `SELECT `+permissionColumns+` FROM permissions WHERE account_id = $1 AND ($2 = '' OR person_id::text = lower($2))
		ORDER BY person_id, number`, accountID, personID)
	if err != nil {
		return nil, fmt.Errorf("permissions: %w", err)
	}
	return list, nil
}

// Grant implements [offers.Permissions].
func (s *Store) Grant(ctx context.Context, p offers.Permission) (offers.Permission, error) {
	err := s.inThread(ctx, p.PersonID, func(th *thread) error {
		var owner bool
		if err := th.tx.QueryRow(ctx, `SELECT tier = 'owner' FROM people WHERE id = $1`, th.personID).Scan(&owner); err != nil {
			return notFound(err)
		}
		if th.accountID != p.AccountID || !owner { // mutant: grant.command
			return offers.ErrNotFound
		}
		now := th.now.UTC()
		p.GrantedAt, p.MessageID, p.OperationID = &now, "", ""
		var err error
		p, err = th.addPermission(ctx, p)
		return err
	})
	if err != nil {
		return p, fmt.Errorf("grant: %w", err)
	}
	return p, nil
}

// Revoke implements [offers.Permissions].
func (s *Store) Revoke(ctx context.Context, accountID, id string) (offers.Permission, error) {
	var p offers.Permission
	var personID string
	err := s.pool.QueryRow(ctx, `SELECT person_id FROM permissions WHERE id = $1 AND account_id = $2`, id, accountID).Scan(&personID)
	if err == nil {
		err = s.inThread(ctx, personID, func(th *thread) error {
			list, err := th.revoke(ctx, []string{id}, offers.RevokedByOwner, offers.Closer{By: offers.ByOwner})
			if err != nil {
				return err
			}
			p = list[0]
			return th.advance(ctx)
		})
	}
	if err != nil {
		return p, fmt.Errorf("revoke: %w", notFound(err))
	}
	return p, nil
}

// revoke ends permissions of the person; those that have ended stay as they are. The offer of one that waits for its yes
// ends with it: there is nothing left to say yes to.
func (th *thread) revoke(ctx context.Context, which []string, by string, closer offers.Closer) ([]offers.Permission, error) {
	list, err := permissions(ctx, th.tx, `UPDATE permissions SET revoked_by = CASE WHEN revoked_at IS NULL THEN $3 ELSE revoked_by END, revoked_at = coalesce(revoked_at, $4)
		WHERE person_id = $1 AND id = ANY($2::uuid[]) RETURNING `+permissionColumns, th.personID, which, by, th.now)
	if err != nil {
		return nil, err
	}
	waiting, err := ids(ctx, th.tx, `SELECT o.id::text FROM permissions g JOIN offers o ON o.operation_id = g.operation_id
		WHERE g.person_id = $1 AND g.id = ANY($2::uuid[]) AND o.state IN ('queued', 'sending', 'open')`, th.personID, which)
	if err != nil {
		return nil, err
	}
	for _, id := range waiting { // mutant: postgres.revoke-offer
		if _, _, err := th.closeOffer(ctx, id, offers.Withdrawn, closer); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// AnswerPermissions implements [offers.Permissions].
func (s *Store) AnswerPermissions(ctx context.Context, a offers.PermissionsAnswer) error {
	err := s.inThread(ctx, a.PersonID, func(th *thread) error {
		if err := th.decide(ctx, a.MessageID, a.Reading); err != nil {
			return err
		}
		st := offers.PermissionState{Now: th.now.UTC()}
		if err := th.tx.QueryRow(ctx, `SELECT asking_is_approving FROM accounts WHERE id = $1`, th.accountID).Scan(&st.AskingIsApproving); err != nil {
			return err
		}
		list, err := permissions(ctx, th.tx, `SELECT `+permissionColumns+` FROM permissions WHERE person_id = $1 AND revoked_at IS NULL
			AND (valid_until IS NULL OR valid_until > $2) ORDER BY number`, th.personID, th.now)
		if err != nil {
			return err
		}
		ends := st.Sort(list, a.Ends)
		if len(ends) > 0 {
			if _, err := th.revoke(ctx, ends, offers.RevokedByText, offers.Closer{MessageID: a.MessageID}); err != nil {
				return err
			}
			if err := th.say(ctx, offers.TextReceipt, a.Say(st)); err != nil {
				return err
			}
			return th.advance(ctx)
		}
		own, err := th.ownTexts(ctx)
		if err != nil || own >= a.HourlyLimit() { // mutant: answer.hourly
			return err
		}
		return th.say(ctx, offers.TextNotice, a.Say(st))
	})
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}
