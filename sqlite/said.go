package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
)

const permissionColumns = `id, account_id, person_id, number, how, granted, coalesce(budget, 0), used, used_at, valid_until,
	coalesce(message_id, ''), coalesce(operation_id, ''), created_at, granted_at, revoked_at, revoked_by`

// livePermissions are granted and neither revoked nor expired; whether one is used up is for its spending to say.
const livePermissions = `SELECT ` + permissionColumns + ` FROM permissions WHERE person_id = ?1
	AND granted_at IS NOT NULL                                      -- mutant: permissions.granted
	AND revoked_at IS NULL                                          -- mutant: permissions.revoked
	AND (valid_until IS NULL OR valid_until > ?2)                   -- mutant: permissions.until
	ORDER BY number DESC LIMIT 500`

func scanPermission(r row) (offers.Permission, error) {
	var p offers.Permission
	var id, person, message string
	var granted []byte
	var budget, used int
	var usedAt, until, grantedAt, revokedAt *int64
	var created int64
	err := r.Scan(&id, &p.AccountID, &person, &p.Number, &p.How, &granted, &budget, &used, &usedAt, &until,
		&message, &p.OperationID, &created, &grantedAt, &revokedAt, &p.RevokedBy)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(granted, &p.Granted); err != nil {
		return p, fmt.Errorf("permission: %w", err)
	}
	// What has a column is taken from there.
	p.ID, p.PersonID, p.MessageID, p.MaxCalls, p.Used, p.EndsAt = id, person, message, budget, used, atOrZero(until)
	p.UsedAt, p.GrantedAt, p.RevokedAt, p.CreatedAt = atOrNil(usedAt), atOrNil(grantedAt), atOrNil(revokedAt), at(created)
	p.Revoked = p.RevokedAt != nil
	return p, nil
}

func (th *thread) permissions() ([]offers.Permission, error) {
	return all(th.session, scanPermission, livePermissions, th.personID, th.now.UnixMicro())
}

// spend takes one call from a permission. It holds every condition under which the person's word still counts; false: it
// does not.
func (th *thread) spend(id string, served []string) (bool, error) {
	names, err := json.Marshal(served)
	if err != nil {
		return false, err
	}
	n, err := th.exec(`UPDATE permissions SET used = used + 1, used_at = ?3,
		granted = iif(json_array_length(?4) > 0, json_set(granted, '$.served', json(?4)), granted) WHERE id = ?1
		AND person_id = ?2                                              -- mutant: spend.person
		AND granted_at IS NOT NULL                                      -- mutant: spend.granted
		AND revoked_at IS NULL                                          -- mutant: spend.revoked
		AND (budget IS NULL OR used < budget)                           -- mutant: spend.budget
		AND (valid_until IS NULL OR valid_until > ?3)                   -- mutant: spend.until
		`, fold(id), th.personID, th.now.UnixMicro(), string(names))
	return n == 1, err
}

func (th *thread) nextPermission(number *int) error {
	return th.one(`SELECT coalesce(max(number), 0) + 1 FROM permissions WHERE person_id = ?1`, []any{th.personID}, number)
}

// addPermission stores a permission under the person's next number.
func (th *thread) addPermission(p offers.Permission) (offers.Permission, error) {
	if err := th.nextPermission(&p.Number); err != nil {
		return p, err
	}
	return p, th.insertPermission(&p)
}

func (th *thread) insertPermission(p *offers.Permission) error {
	p.ID, p.AccountID, p.PersonID, p.CreatedAt = offers.NewID(), th.accountID, th.personID, th.now
	if p.GivenAt.IsZero() {
		p.GivenAt = th.now
	}
	granted, err := json.Marshal(p.Granted)
	if err != nil {
		return err
	}
	_, err = th.exec(`INSERT INTO permissions (id, account_id, person_id, number, how, granted, budget, valid_until, message_id, operation_id, created_at, granted_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, 0), ?8, nullif(?9, ''), nullif(?10, ''), ?11, ?12)`,
		p.ID, th.accountID, th.personID, p.Number, string(p.How), string(granted), p.MaxCalls, microsOrNil(p.EndsAt), p.MessageID, p.OperationID,
		th.now.UnixMicro(), microsOf(p.GrantedAt))
	return err
}

// microsOrNil writes a time that may be none.
func microsOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func microsOf(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

// ground reads what a message's words are turned into permissions on; false: they are no words that permit anything.
const ground = `SELECT a.asking_is_approving, a.standing_by_text
	FROM people p JOIN accounts a ON a.id = p.account_id JOIN messages m ON m.person_id = p.id JOIN threads t ON t.person_id = p.id
	WHERE p.id = ?1 AND m.id = ?2
	AND p.state = 'active'                                          -- mutant: ground.active
	AND p.tier = 'owner'                                            -- mutant: ground.owner
	AND m.trust = 'trusted'                                         -- mutant: ground.trusted
	AND NOT m.lossy                                                 -- mutant: ground.lossy
	AND m.number = t.messages                                       -- mutant: ground.newest
	`

// takeBack ends the one-offs that were asked for before a message.
func (th *thread) takeBack(messageID string) error {
	_, err := th.exec(`UPDATE permissions SET revoked_at = ?2, revoked_by = ?3 WHERE person_id = ?1 AND how = 'once' AND revoked_at IS NULL
			AND (SELECT number FROM messages WHERE id = message_id) < (SELECT number FROM messages WHERE id = ?4) -- mutant: taken.earlier
			`, th.personID, th.now.UnixMicro(), offers.RevokedByTaken, messageID)
	return err
}

// endAll ends every permission of somebody who wants no text any more: there is no way left to tell or to ask them.
func (th *thread) endAll(messageID string) error {
	ids, err := all(th.session, scanString, `SELECT id FROM permissions WHERE person_id = ?1 AND revoked_at IS NULL`, th.personID)
	if err == nil && len(ids) > 0 {
		_, err = th.revoke(ids, offers.RevokedByText, offers.Closer{MessageID: messageID})
	}
	return err
}

// ended ends the permissions that a message's words end, and says so.
func (th *thread) ended(messageID string, ends func(offers.Permission) bool) error {
	if ends == nil {
		return nil
	}
	list, err := all(th.session, scanPermission, `SELECT `+permissionColumns+` FROM permissions WHERE person_id = ?1 AND revoked_at IS NULL
		AND (valid_until IS NULL OR valid_until > ?2) ORDER BY number`, th.personID, th.now.UnixMicro())
	if err != nil {
		return err
	}
	st := offers.PermissionState{Now: th.now}
	which := st.Sort(list, ends)
	if len(which) == 0 {
		return nil
	}
	if _, err := th.revoke(which, offers.RevokedByText, offers.Closer{MessageID: messageID}); err != nil {
		return err
	}
	if err := th.say(offers.TextReceipt, offers.EndedReceipt(st.Ended)); err != nil {
		return err
	}
	return th.advance()
}

// asked turns what a message asks for into permissions, and into the offers of those that need a yes of their own.
func (th *thread) asked(p offers.PassRequest) error {
	if p.TakesBack {
		if err := th.takeBack(p.MessageID); err != nil {
			return err
		}
	}
	if err := th.ended(p.MessageID, p.Ends); err != nil {
		return err
	}
	if len(p.Asked) == 0 {
		return nil
	}
	g := offers.Ground{Now: th.now, PersonID: th.personID, MessageID: p.MessageID}
	err := th.one(ground, []any{th.personID, p.MessageID}, &g.AskingIsApproving, &g.StandingByText)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		g.Contacts, err = contactsOf(th.session, th.accountID)
	}
	if err != nil {
		return err
	}
	for _, perm := range offers.Permit(g, p.Asked) {
		if perm.GrantedAt != nil {
			_, err = th.addPermission(perm)
		} else {
			err = th.askPermission(perm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// askPermission puts a permission to the person who has asked for it, in a run of the service's own.
func (th *thread) askPermission(perm offers.Permission) error {
	f := offers.Facts{Now: th.now, OperationID: offers.NewID()}
	if err := th.facts(&f, "", nil); err != nil {
		return err
	}
	run, err := th.newRun(f.Person.Tier)
	if err != nil {
		return err
	}
	f.Run = *run
	if err := th.nextPermission(&perm.Number); err != nil {
		return err
	}
	pr, plan, ok, err := offers.PermissionOffer(f, perm)
	if err != nil || !ok {
		return err
	}
	if err := th.store(pr, f, plan); err != nil {
		return err
	}
	perm.OperationID = f.OperationID
	return th.insertPermission(&perm)
}

// GrantDue implements [offers.Sweeper].
func (s *Store) GrantDue(ctx context.Context) (int, error) {
	return s.each(ctx, "grant", `SELECT DISTINCT person_id FROM operations WHERE state = 'approved' AND tool = 'permission.grant' LIMIT 500`, nil,
		func(th *thread) (int, error) {
			due, err := all(th.session, scanString, `UPDATE operations SET state = 'running', begun_at = ?2, begun_by = 'countersign'
				WHERE person_id = ?1 AND state = 'approved' AND tool = 'permission.grant'
				AND approved_at + ?3 > ?2                                       -- mutant: grant.deadline
				RETURNING id`, th.personID, th.now.UnixMicro(), offers.BeginWithin.Microseconds())
			if err != nil {
				return 0, err
			}
			for _, id := range due {
				if err := th.grant(id); err != nil {
					return 0, err
				}
			}
			return len(due), nil
		})
}

// grant gives the permission whose offer was approved: begun and done in the one transaction.
func (th *thread) grant(operationID string) error {
	op, err := oneOperation(th.session, th.accountID, operationID)
	if err != nil {
		return err
	}
	if err := th.record(ledger.Begun, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, ArgsSHA256: op.ArgsSHA256, By: op.BegunBy}); err != nil {
		return err
	}
	list, err := all(th.session, scanPermission, `UPDATE permissions AS g SET granted_at = iif(
		revoked_at IS NULL                                              -- mutant: grant.revoked
		AND EXISTS (SELECT 1 FROM people p WHERE p.id = g.person_id
		AND p.state = 'active'                                          -- mutant: grant.active
		AND p.tier = 'owner'                                            -- mutant: grant.owner
		), ?2, NULL) WHERE operation_id = ?1 RETURNING `+permissionColumns, operationID, th.now.UnixMicro())
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("%d permissions of one offer", len(list))
	}
	res := offers.GrantResult(list[0], th.now)
	raw, sum, err := res.Encode()
	if err != nil {
		return err
	}
	if _, err := th.exec(`UPDATE operations SET state = ?2, result = ?3, closed_at = ?4 WHERE id = ?1`, op.ID, res.Status, string(raw), th.now.UnixMicro()); err != nil {
		return err
	}
	op.State, op.Result = offers.OpState(res.Status), raw
	if err := th.record(ledger.Result, op.ID, offers.LedgerBody{Operation: op.ID, Tool: op.Tool, State: string(op.State), ResultSum: sum}); err != nil {
		return err
	}
	if err := th.event(offers.OperationClosed, offers.OperationData{Operation: op}); err != nil {
		return err
	}
	return th.say(offers.TextReceipt, offers.PermissionReceipt(list[0]))
}

// PermissionsOf implements [offers.Permissions].
func (s *Store) PermissionsOf(ctx context.Context, accountID, personID string) ([]offers.Permission, error) {
	list, err := all(s.read(ctx), scanPermission, `SELECT `+permissionColumns+` FROM permissions WHERE account_id = ?1 AND (?2 = '' OR person_id = ?2)
		ORDER BY person_id, number`, accountID, fold(personID))
	if err != nil {
		return nil, fmt.Errorf("permissions: %w", err)
	}
	return list, nil
}

// Grant implements [offers.Permissions].
func (s *Store) Grant(ctx context.Context, p offers.Permission) (offers.Permission, error) {
	err := s.inThread(ctx, fold(p.PersonID), func(th *thread) error {
		var owner bool
		if err := th.one(`SELECT tier = 'owner' FROM people WHERE id = ?1`, []any{th.personID}, &owner); err != nil {
			return notFound(err)
		}
		if th.accountID != p.AccountID || !owner { // mutant: grant.command
			return offers.ErrNotFound
		}
		p.GrantedAt, p.MessageID, p.OperationID = &th.now, "", ""
		var err error
		p, err = th.addPermission(p)
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
	err := s.read(ctx).one(`SELECT person_id FROM permissions WHERE id = ?1 AND account_id = ?2`, []any{fold(id), accountID}, &personID)
	if err == nil {
		err = s.inThread(ctx, personID, func(th *thread) error {
			list, err := th.revoke([]string{fold(id)}, offers.RevokedByOwner, offers.Closer{By: offers.ByOwner})
			if err != nil {
				return err
			}
			p = list[0]
			return th.advance()
		})
	}
	if err != nil {
		return p, fmt.Errorf("revoke: %w", notFound(err))
	}
	return p, nil
}

// revoke ends permissions of the person; those that have ended stay as they are. The offer of one that waits for its yes
// ends with it: there is nothing left to say yes to.
func (th *thread) revoke(ids []string, by string, closer offers.Closer) ([]offers.Permission, error) {
	raw, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	list, err := all(th.session, scanPermission, `UPDATE permissions SET revoked_by = iif(revoked_at IS NULL, ?3, revoked_by), revoked_at = coalesce(revoked_at, ?4)
		WHERE person_id = ?1 AND id IN (SELECT value FROM json_each(?2)) RETURNING `+permissionColumns, th.personID, string(raw), by, th.now.UnixMicro())
	if err != nil {
		return nil, err
	}
	waiting, err := all(th.session, scanString, `SELECT o.id FROM permissions g JOIN offers o ON o.operation_id = g.operation_id
		WHERE g.person_id = ?1 AND g.id IN (SELECT value FROM json_each(?2)) AND o.state IN ('queued', 'sending', 'open')`, th.personID, string(raw))
	if err != nil {
		return nil, err
	}
	for _, id := range waiting { // mutant: sqlite.revoke-offer
		if _, _, err := th.closeOffer(id, offers.Withdrawn, closer); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// AnswerPermissions implements [offers.Permissions].
func (s *Store) AnswerPermissions(ctx context.Context, a offers.PermissionsAnswer) error {
	err := s.inThread(ctx, a.PersonID, func(th *thread) error {
		if err := th.decide(a.MessageID, a.Reading); err != nil {
			return err
		}
		st := offers.PermissionState{Now: th.now}
		if err := th.one(`SELECT asking_is_approving FROM accounts WHERE id = ?1`, []any{th.accountID}, &st.AskingIsApproving); err != nil {
			return err
		}
		list, err := all(th.session, scanPermission, `SELECT `+permissionColumns+` FROM permissions WHERE person_id = ?1 AND revoked_at IS NULL
			AND (valid_until IS NULL OR valid_until > ?2) ORDER BY number`, th.personID, th.now.UnixMicro())
		if err != nil {
			return err
		}
		ids := st.Sort(list, a.Ends)
		if len(ids) > 0 {
			if _, err := th.revoke(ids, offers.RevokedByText, offers.Closer{MessageID: a.MessageID}); err != nil {
				return err
			}
			if err := th.say(offers.TextReceipt, a.Say(st)); err != nil {
				return err
			}
			return th.advance()
		}
		own, err := th.ownTexts()
		if err != nil || own >= a.HourlyLimit() { // mutant: answer.hourly
			return err
		}
		return th.say(offers.TextNotice, a.Say(st))
	})
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}
