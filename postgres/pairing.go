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

var (
	_ people.PairingStore = (*Store)(nil)
	_ people.AccountStore = (*Store)(nil)
	_ offers.PromptLine   = (*Store)(nil)
)

// errAgain ends the transaction of a pending text whose sender is an active person by now, or which is stored by now.
var errAgain = errors.New("look again")

// pendingInsert stores a text of somebody who may decide nothing.
const pendingInsert = `INSERT INTO messages (id, account_id, person_id, number, provider, provider_id, address, our_number, text, raw,
	lossy, quoted, trust, received_at, opt_out, sender_name)
	VALUES ($1, $2, nullif($3, '')::uuid, nullif($4::bigint, 0), $5, $6, $7, $8, $9, $10, $11, $12, 'pending', $13, $14, $15)`

// receivePending takes a text of nobody, or of a suspended person: what is kept of it, what it says of texts in return, and
// whether its sender is sent a code. The counts and the insert are one transaction, under the lock of the receiving
// number, or of the person.
func (s *Store) receivePending(ctx context.Context, in offers.Inbound) (offers.Received, error) {
	var r offers.Received
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		r, err = storePending(ctx, tx, in)
		return err
	})
	if errors.Is(err, errAgain) {
		return s.Receive(ctx, in)
	}
	if err != nil {
		return offers.Received{}, fmt.Errorf("receive: %w", err)
	}
	return r, nil
}

func storePending(ctx context.Context, tx pgx.Tx, in offers.Inbound) (offers.Received, error) {
	r := offers.Received{Lossy: in.Lossy, Earlier: []string{}, Live: []offers.Offer{}}
	var number int64
	var err error
	if r.AccountID, r.PersonID, number, err = lockSender(ctx, tx, in); err != nil {
		return r, err
	}
	var stored bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM messages WHERE provider = $1 AND provider_id = $2)`, in.Provider, in.ProviderID).Scan(&stored); err != nil {
		return r, err
	}
	if stored {
		return r, errAgain
	}
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT cs_now()`).Scan(&now); err != nil {
		return r, err
	}
	flood, err := floodOf(ctx, tx, now, in, r.PersonID)
	if err != nil {
		return r, err
	}
	keeps := flood.Keeps(len(in.Raw) + len(in.Text))
	if err := recordOptOut(ctx, tx, now, in, r.PersonID, keeps); err != nil {
		return r, err
	}
	if !keeps {
		_, err := tx.Exec(ctx, `UPDATE numbers SET dropped = dropped + 1 WHERE our_number = $1`, string(in.OurNumber))
		return r, err
	}
	if r.PersonID != "" {
		if _, err := tx.Exec(ctx, `UPDATE threads SET messages = $2 WHERE person_id = $1`, r.PersonID, number); err != nil {
			return r, err
		}
	}
	raw := in.Raw
	if raw == nil {
		raw = []byte{}
	}
	r.MessageID = offers.NewID()
	if _, err := tx.Exec(ctx, pendingInsert, r.MessageID, r.AccountID, r.PersonID, number, in.Provider, in.ProviderID, string(in.Address),
		string(in.OurNumber), in.Text, raw, in.Lossy, in.Quoted, now, in.OptOut, in.Name); err != nil {
		return r, err
	}
	if r.PersonID == "" {
		r.Prompted, err = promptStranger(ctx, tx, now, in, r.AccountID)
	}
	return r, err
}

// lockSender takes the lock of a suspended person, or of the receiving number where the sender is a stranger, and names the
// account, the person (empty for a stranger) and the number of the person's next message. errAgain: the person is active.
func lockSender(ctx context.Context, tx pgx.Tx, in offers.Inbound) (accountID, personID string, number int64, err error) {
	err = tx.QueryRow(ctx, `SELECT t.person_id FROM addresses a JOIN threads t ON t.person_id = a.person_id
		WHERE a.address = $1 AND a.our_number = $2 FOR NO KEY UPDATE OF t`, string(in.Address), string(in.OurNumber)).Scan(&personID)
	if errors.Is(err, pgx.ErrNoRows) {
		err = tx.QueryRow(ctx, `INSERT INTO numbers (our_number, account_id) VALUES ($1, $2)
			ON CONFLICT (our_number) DO UPDATE SET our_number = excluded.our_number RETURNING account_id`,
			string(in.OurNumber), people.DefaultAccount).Scan(&accountID)
		return accountID, "", 0, err
	}
	if err != nil {
		return "", "", 0, err
	}
	var state people.State
	err = tx.QueryRow(ctx, `SELECT t.account_id, t.messages + 1, p.state FROM threads t JOIN people p ON p.id = t.person_id WHERE t.person_id = $1`, personID).
		Scan(&accountID, &number, &state)
	if err == nil && state == people.Active {
		err = errAgain
	}
	return accountID, personID, number, err
}

// floodOf counts what is kept of the sender, and of all strangers at the receiving number, within the hour before now.
func floodOf(ctx context.Context, tx pgx.Tx, now time.Time, in offers.Inbound, personID string) (f people.Flood, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE address = $2), coalesce(sum(octet_length(raw) + octet_length(text)) FILTER (WHERE address = $2), 0),
		count(*) FILTER (WHERE person_id IS NULL), coalesce(sum(octet_length(raw) + octet_length(text)) FILTER (WHERE person_id IS NULL), 0)
		FROM messages WHERE our_number = $1 AND trust = 'pending' AND received_at > $3::timestamptz - interval '1 hour'`,
		string(in.OurNumber), string(in.Address), now).Scan(&f.SenderTexts, &f.SenderBytes, &f.NumberTexts, &f.NumberBytes)
	if personID != "" { // mutant: postgres.flood-person
		f.NumberTexts, f.NumberBytes = 0, 0 // strangers keep no person out
	}
	return f, err
}

// recordOptOut records a STOP or START of somebody who may decide nothing else. A stranger's beyond what is kept counts only
// where a text of ours has gone there: whoever never got one needs no row to get none.
func recordOptOut(ctx context.Context, tx pgx.Tx, now time.Time, in offers.Inbound, personID string, keeps bool) (err error) {
	addr, our := string(in.Address), string(in.OurNumber)
	switch {
	case personID != "" && in.Keyword == people.KeywordStop:
		_, err = tx.Exec(ctx, `UPDATE addresses SET opted_out_at = coalesce(opted_out_at, $3::timestamptz) WHERE address = $1 AND our_number = $2`, addr, our, now)
	case personID != "" || in.Address == "":
	case in.Keyword == people.KeywordStop:
		_, err = tx.Exec(ctx, `INSERT INTO stranger_opt_outs (address, our_number, opted_out_at) SELECT $1::text, $2::text, $3::timestamptz
			WHERE $4::boolean OR EXISTS (SELECT 1 FROM pairings WHERE our_number = $2 AND address = $1) ON CONFLICT DO NOTHING`, addr, our, now, keeps)
	case in.Keyword == people.KeywordStart:
		_, err = tx.Exec(ctx, `DELETE FROM stranger_opt_outs WHERE address = $1 AND our_number = $2`, addr, our)
	}
	return err
}

// promptStranger gives a stranger a code, if one is due.
func promptStranger(ctx context.Context, tx pgx.Tx, now time.Time, in offers.Inbound, accountID string) (bool, error) {
	k := people.PromptFacts{Address: in.Address, Keyword: in.Keyword, Plain: !in.Lossy}
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM stranger_opt_outs WHERE address = $1 AND our_number = $2),
		EXISTS (SELECT 1 FROM pairings WHERE our_number = $2 AND address = $1 AND created_at > $3),
		(SELECT count(*) FROM pairings WHERE our_number = $2 AND created_at > $3 AND used_at IS NULL AND expires_at > $4)`,
		string(in.Address), string(in.OurNumber), now.Add(-people.PromptEvery), now).Scan(&k.OptedOut, &k.Prompted, &k.Pending)
	if err != nil || !k.Prompts() {
		return false, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO pairings (id, account_id, address, our_number, code, created_at, expires_at, prompt) VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued')`,
		offers.NewID(), accountID, string(in.Address), string(in.OurNumber), people.NewCode(), now, now.Add(people.CodeLife))
	return err == nil, err
}

// reservePrompt takes the prompt to send next: its text still serves somebody who may get one.
const reservePrompt = `UPDATE pairings SET prompt = 'sending', sent_at = cs_now() WHERE id = (
	SELECT p.id FROM pairings p WHERE p.prompt = 'queued' AND p.used_at IS NULL
	AND p.expires_at > cs_now()                                       -- mutant: postgres.prompt-life
	AND NOT EXISTS (SELECT 1 FROM stranger_opt_outs x WHERE x.address = p.address AND x.our_number = p.our_number) -- mutant: postgres.prompt-wanted
	AND NOT EXISTS (SELECT 1 FROM addresses a WHERE a.address = p.address AND a.our_number = p.our_number)         -- mutant: postgres.prompt-bound
	ORDER BY p.created_at, p.id LIMIT 1 FOR UPDATE SKIP LOCKED)
	RETURNING id, address, our_number, code`

// ReservePrompt implements [offers.PromptLine].
func (s *Store) ReservePrompt(ctx context.Context) (*people.Prompt, error) {
	var p people.Prompt
	err := s.pool.QueryRow(ctx, reservePrompt).Scan(&p.ID, &p.Address, &p.OurNumber, &p.Code)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reserve prompt: %w", err)
	}
	return &p, nil
}

// PromptSent implements [offers.PromptLine].
func (s *Store) PromptSent(ctx context.Context, id string, res offers.SendResult) error {
	var b pgx.Batch
	b.Queue(`UPDATE pairings SET prompt = $2 WHERE id = $1 AND prompt = 'sending'`, id, string(offers.PromptOutcome(res)))
	if offers.OptsOut(res.Code) {
		b.Queue(`INSERT INTO stranger_opt_outs (address, our_number, opted_out_at) SELECT address, our_number, cs_now() FROM pairings WHERE id = $1
			ON CONFLICT DO NOTHING`, id)
	}
	if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("prompt sent: %w", err)
	}
	return nil
}

// Approve implements [people.PairingStore].
func (s *Store) Approve(ctx context.Context, a people.Approval) (people.Person, error) {
	var p people.Person
	var answer error // is stored with the count of wrong codes, unlike an error of the transaction
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		p, answer, err = approve(ctx, tx, a)
		return err
	})
	switch {
	case unique(err):
		return people.Person{}, people.ErrAddressTaken
	case foreign(err):
		return people.Person{}, people.ErrNoAccount
	case err != nil:
		return people.Person{}, fmt.Errorf("approve: %w", err)
	}
	return p, answer
}

func approve(ctx context.Context, tx pgx.Tx, a people.Approval) (p people.Person, answer, err error) {
	var wrong int
	// The row of the count is the lock: whoever tries a code waits for the one who tries another.
	err = tx.QueryRow(ctx, `INSERT INTO code_attempts AS c (account_id, since, wrong) VALUES ($1, cs_now(), 0) ON CONFLICT (account_id) DO UPDATE
		SET wrong = CASE WHEN c.since <= cs_now() - $2::interval THEN 0 ELSE c.wrong END,
		  since = CASE WHEN c.since <= cs_now() - $2::interval THEN cs_now() ELSE c.since END RETURNING wrong`,
		a.AccountID, people.CodeLife).Scan(&wrong)
	if err != nil {
		return p, nil, err
	}
	if wrong >= people.MaxWrongCodes { // mutant: postgres.approve-attempts
		return p, people.ErrTooManyCodes, nil
	}
	p = people.Person{ID: a.PersonID, AccountID: a.AccountID, Name: a.Name, Tier: a.Tier, State: people.Active}
	var b people.Binding
	var pairing string
	err = tx.QueryRow(ctx, `UPDATE pairings SET used_at = cs_now(), code = NULL WHERE code = $2
		AND (account_id = $1)                                           -- mutant: postgres.approve-account
		AND used_at IS NULL
		AND expires_at > cs_now()                                       -- mutant: postgres.approve-expiry
		RETURNING id, address, our_number, used_at`, a.AccountID, a.Code).Scan(&pairing, &b.Address, &b.OurNumber, &p.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, `UPDATE code_attempts SET wrong = wrong + 1 WHERE account_id = $1`, a.AccountID)
		return people.Person{}, people.ErrNoCode, err
	}
	if err != nil {
		return p, nil, err
	}
	p.Addresses = []people.Binding{b}
	if err := insertPerson(ctx, tx, p); err != nil {
		return p, nil, err
	}
	if _, err := tx.Exec(ctx, `UPDATE pairings SET person_id = $2 WHERE id = $1`, pairing, p.ID); err != nil {
		return p, nil, err
	}
	th, err := lock(ctx, tx, p.ID)
	if err != nil {
		return p, nil, err
	}
	if err := th.event(offers.PersonPaired, offers.PairedData{PersonID: p.ID}); err != nil {
		return p, nil, err
	}
	if a.Welcome != "" {
		if err := th.say(ctx, offers.TextNotice, a.Welcome); err != nil {
			return p, nil, err
		}
	}
	return p, nil, th.flush(ctx)
}

// insertPerson makes a person with a thread and bound addresses.
func insertPerson(ctx context.Context, tx pgx.Tx, p people.Person) error {
	var b pgx.Batch
	b.Queue(`INSERT INTO people (id, account_id, name, tier, state, created_at) VALUES ($1, $2, $3, $4, $5, cs_now())`,
		p.ID, p.AccountID, p.Name, p.Tier, string(p.State))
	b.Queue(`INSERT INTO threads (person_id, account_id) VALUES ($1, $2)`, p.ID, p.AccountID)
	for _, a := range p.Addresses {
		queueBind(&b, p.AccountID, p.ID, a)
	}
	return tx.SendBatch(ctx, &b).Close()
}

// queueBind ties an address to a person. Whoever wanted no text as a stranger wants none as a person either.
func queueBind(b *pgx.Batch, accountID, personID string, a people.Binding) {
	b.Queue(`INSERT INTO addresses (address, our_number, person_id, account_id, bound_at, opted_out_at) VALUES ($1, $2, $3, $4, cs_now(),
		(SELECT x.opted_out_at FROM stranger_opt_outs x WHERE x.address = $1 AND x.our_number = $2) -- mutant: postgres.bind-opted-out
		)`, string(a.Address), string(a.OurNumber), personID, accountID)
	b.Queue(`DELETE FROM stranger_opt_outs WHERE address = $1 AND our_number = $2`, string(a.Address), string(a.OurNumber))
}

// unbind ends a binding, and what is open at it; false: there is none. That no text is wanted there stays known.
func (th *thread) unbind(ctx context.Context, addr, our people.Address, why people.Unbound) (bool, error) {
	state, by := offers.Unbinds(why)
	if err := th.silence(ctx, addr, our, state, by); err != nil {
		return false, err
	}
	var optedOut *time.Time
	err := th.tx.QueryRow(ctx, `DELETE FROM addresses WHERE address = $1 AND our_number = $2 AND person_id = $3 RETURNING opted_out_at`,
		string(addr), string(our), th.personID).Scan(&optedOut)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if optedOut != nil { // mutant: postgres.unbind-opted-out
		if _, err := th.tx.Exec(ctx, `INSERT INTO stranger_opt_outs (address, our_number, opted_out_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			string(addr), string(our), *optedOut); err != nil {
			return false, err
		}
	}
	if _, err := th.tx.Exec(ctx, `INSERT INTO unbindings (account_id, person_id, address, our_number, why, at) VALUES ($1, $2, $3, $4, $5, $6)`,
		th.accountID, th.personID, string(addr), string(our), string(why), th.now); err != nil {
		return false, err
	}
	return true, th.event(offers.PersonUnbound, offers.UnboundData{PersonID: th.personID, Why: why})
}

// Bind implements [people.PairingStore].
func (s *Store) Bind(ctx context.Context, accountID, personID string, b people.Binding) error {
	err := s.inThread(ctx, personID, func(th *thread) error {
		if th.accountID != accountID {
			return offers.ErrNotFound
		}
		queueBind(&th.batch, accountID, th.personID, b)
		return nil
	})
	if unique(err) {
		return people.ErrAddressTaken
	}
	return personErr(err)
}

// Unbind implements [people.PairingStore].
func (s *Store) Unbind(ctx context.Context, accountID, personID string, b people.Binding) error {
	return personErr(s.inThread(ctx, personID, func(th *thread) error {
		if th.accountID != accountID {
			return offers.ErrNotFound
		}
		done, err := th.unbind(ctx, b.Address, b.OurNumber, people.UnboundOwner)
		if err == nil && !done {
			err = offers.ErrNotFound
		}
		if err != nil {
			return err
		}
		return th.advance(ctx)
	}))
}

// idle finds bindings that are as old as $1 and have had no text from their person since then.
const idle = `FROM addresses a WHERE a.bound_at <= $1 AND coalesce((SELECT m.received_at FROM messages m WHERE m.person_id = a.person_id
	AND m.address = a.address AND m.our_number = a.our_number         -- mutant: postgres.idle-address
	AND m.number IS NOT NULL ORDER BY m.number DESC LIMIT 1), '-infinity') <= $1`

// UnbindIdle implements [people.PairingStore].
func (s *Store) UnbindIdle(ctx context.Context, age time.Duration) (int, error) {
	return s.each(ctx, "unbind idle", `SELECT DISTINCT a.person_id::text `+idle+` LIMIT 100`, age, func(th *thread) (int, error) {
		due, err := all(ctx, th.tx, func(row pgx.CollectableRow) (b people.Binding, err error) {
			return b, row.Scan(&b.Address, &b.OurNumber)
		}, `SELECT a.address, a.our_number `+idle+` AND a.person_id = $2`, th.now.Add(-age), th.personID)
		if err != nil {
			return 0, err
		}
		for _, b := range due {
			if _, err := th.unbind(ctx, b.Address, b.OurNumber, people.UnboundIdle); err != nil {
				return 0, err
			}
		}
		return len(due), th.advance(ctx)
	})
}

// unbindings lists what an account's people have lost, by person, the newest last.
func (s *Store) unbindings(ctx context.Context, accountID string) (map[string][]people.Unbinding, error) {
	rows, err := s.pool.Query(ctx, `SELECT person_id::text, address, our_number, why, at FROM unbindings u WHERE account_id = $1
		AND NOT EXISTS (SELECT 1 FROM addresses a WHERE a.address = u.address AND a.our_number = u.our_number AND a.person_id = u.person_id)
		ORDER BY at, address`, accountID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string][]people.Unbinding{}
	for rows.Next() {
		var person string
		var u people.Unbinding
		if err := rows.Scan(&person, &u.Address, &u.OurNumber, &u.Why, &u.At); err != nil {
			return nil, err
		}
		out[person] = append(out[person], u)
	}
	return out, rows.Err()
}

// Strangers implements [people.PairingStore].
func (s *Store) Strangers(ctx context.Context, accountID string) ([]people.Pending, people.PairingCounts, error) {
	var counts people.PairingCounts
	var list []people.PendingRow
	var codes []people.PendingCode
	var b pgx.Batch
	b.Queue(`SELECT m.id::text, m.address, m.our_number, coalesce(m.person_id, a.person_id)::text, m.sender_name, m.received_at, m.provider, m.provider_id, m.raw, m.lossy, m.text,
		a.opted_out_at IS NOT NULL OR EXISTS (SELECT 1 FROM stranger_opt_outs x WHERE x.address = m.address AND x.our_number = m.our_number)
		FROM messages m LEFT JOIN addresses a ON a.address = m.address AND a.our_number = m.our_number AND a.account_id = m.account_id
		WHERE m.account_id = $1 AND m.trust = 'pending' ORDER BY m.received_at DESC, m.id DESC LIMIT $2`, accountID, people.PendingListed).
		Query(func(rows pgx.Rows) (err error) {
			list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (people.PendingRow, error) {
				var p people.PendingRow
				var person *string
				err := row.Scan(&p.MessageID, &p.Address, &p.OurNumber, &person, &p.Name, &p.ReceivedAt, &p.Provider, &p.ProviderID, &p.Raw, &p.Lossy, &p.Text, &p.OptedOut)
				if person != nil {
					p.PersonID = *person
				}
				return p, err
			})
			return err
		})
	b.Queue(`SELECT address, our_number, expires_at, used_at IS NULL AND expires_at > cs_now(), prompt FROM pairings WHERE account_id = $1 ORDER BY created_at, id`, accountID).
		Query(func(rows pgx.Rows) (err error) {
			codes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (people.PendingCode, error) {
				var c people.PendingCode
				err := row.Scan(&c.Address, &c.OurNumber, &c.ExpiresAt, &c.Waits, &c.Prompt)
				return c, err
			})
			return err
		})
	b.Queue(`SELECT coalesce((SELECT sum(dropped) FROM numbers WHERE account_id = $1), 0)::bigint,
		coalesce((SELECT wrong FROM code_attempts WHERE account_id = $1 AND since > cs_now() - $2::interval), 0)`, accountID, people.CodeLife).
		QueryRow(func(row pgx.Row) error { return row.Scan(&counts.Dropped, &counts.WrongCodes) })
	if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
		return nil, counts, fmt.Errorf("strangers: %w", err)
	}
	return people.GroupPending(list, codes), counts, nil
}

// Promote implements [people.PairingStore].
func (s *Store) Promote(ctx context.Context, accountID, messageID string) (string, error) {
	var personID string
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var person *string
		err := tx.QueryRow(ctx, `SELECT (SELECT a.person_id::text FROM addresses a WHERE a.address = m.address AND a.our_number = m.our_number AND a.account_id = m.account_id)
			FROM messages m WHERE m.id = $1 AND m.account_id = $2 AND m.trust = 'pending'`, messageID, accountID).Scan(&person)
		if errors.Is(err, pgx.ErrNoRows) || badID(err) {
			return people.ErrNotFound
		}
		if err != nil {
			return err
		}
		if person == nil {
			return people.ErrNobody
		}
		th, err := lock(ctx, tx, *person)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `UPDATE messages m SET trust = 'promoted', promoted_at = $3, decided_at = coalesce(m.decided_at, $3), person_id = p.id
			FROM addresses a JOIN people p ON p.id = a.person_id
			WHERE m.id = $1 AND m.trust = 'pending' AND p.id = $2 AND a.address = m.address AND a.our_number = m.our_number AND a.account_id = m.account_id
			  AND p.state = 'active'                                               -- mutant: postgres.promote-active
			  AND (m.person_id IS NULL OR m.person_id = p.id)                      -- mutant: postgres.promote-own
			RETURNING m.person_id::text`, messageID, *person, th.now).Scan(&personID)
		if errors.Is(err, pgx.ErrNoRows) {
			return people.ErrNobody
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("promote: %w", err)
	}
	return personID, nil
}

// ForgetPending implements [people.PairingStore].
func (s *Store) ForgetPending(ctx context.Context) (int, error) {
	var n int64
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`UPDATE messages SET trust = 'forgotten', text = '', raw = '', sender_name = '', quoted = '' WHERE id IN (
			SELECT id FROM messages WHERE trust = 'pending' AND received_at <= cs_now() - $1::interval LIMIT 500)`, []any{people.PendingKept}},
		{`UPDATE pairings SET code = NULL, prompt = CASE WHEN prompt = 'queued' THEN 'rejected' ELSE prompt END WHERE code IS NOT NULL AND expires_at <= cs_now()`, nil},
	} {
		tag, err := s.pool.Exec(ctx, step.sql, step.args...)
		if err != nil {
			return int(n), fmt.Errorf("forget pending: %w", err)
		}
		n += tag.RowsAffected()
	}
	return int(n), nil
}
