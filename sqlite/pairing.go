package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

var (
	_ people.PairingStore = (*Store)(nil)
	_ people.AccountStore = (*Store)(nil)
	_ offers.PromptLine   = (*Store)(nil)
)

// pendingInsert stores a text of somebody who may decide nothing.
const pendingInsert = `INSERT INTO messages (id, account_id, person_id, number, provider, provider_id, address, our_number, text, raw,
	lossy, quoted, trust, received_at, opt_out, sender_name)
	VALUES (?1, ?2, nullif(?3, ''), nullif(?4, 0), ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'pending', ?13, ?14, ?15)`

// receivePending takes a text of nobody, or of a suspended person: what is kept of it, what it says of texts in return, and
// whether its sender is sent a code. The counts and the insert are one transaction.
func receivePending(q session, now time.Time, in offers.Inbound, who sender) (offers.Received, error) {
	if r, err := received(q, now, contextByProvider, in.Provider, in.ProviderID); !errors.Is(err, sql.ErrNoRows) {
		r.Duplicate = true
		return r, err
	}
	r := offers.Received{AccountID: who.accountID, PersonID: who.personID, Lossy: in.Lossy}
	if who.personID == "" {
		err := q.one(`INSERT INTO numbers (our_number, account_id) VALUES (?1, ?2) ON CONFLICT (our_number) DO UPDATE SET our_number = excluded.our_number
			RETURNING account_id`, []any{string(in.OurNumber), people.DefaultAccount}, &r.AccountID)
		if err != nil {
			return r, err
		}
	}
	flood, err := floodOf(q, now, in, who)
	if err != nil {
		return r, err
	}
	keeps := flood.Keeps(len(in.Raw) + len(in.Text))
	if err := recordOptOut(q, now, in, who, keeps); err != nil {
		return r, err
	}
	if !keeps {
		_, err := q.exec(`UPDATE numbers SET dropped = dropped + 1 WHERE our_number = ?1`, string(in.OurNumber))
		return r, err
	}
	number := int64(0)
	if who.personID != "" {
		number = who.messages + 1
		if _, err := q.exec(`UPDATE threads SET messages = ?2 WHERE person_id = ?1`, who.personID, number); err != nil {
			return r, err
		}
	}
	raw := in.Raw
	if raw == nil {
		raw = []byte{}
	}
	r.MessageID = offers.NewID()
	if _, err := q.exec(pendingInsert, r.MessageID, r.AccountID, r.PersonID, number, in.Provider, in.ProviderID, string(in.Address),
		string(in.OurNumber), in.Text, raw, in.Lossy, in.Quoted, now.UnixMicro(), in.OptOut, in.Name); err != nil {
		return r, err
	}
	if who.personID == "" {
		r.Prompted, err = promptStranger(q, now, in, r.AccountID)
	}
	return r, err
}

// floodOf counts what is kept of the sender, and of all strangers at the receiving number, within the hour before now.
func floodOf(q session, now time.Time, in offers.Inbound, who sender) (f people.Flood, err error) {
	err = q.one(`SELECT coalesce(sum(address = ?2), 0), coalesce(sum(iif(address = ?2, octet_length(raw) + octet_length(text), 0)), 0),
		coalesce(sum(person_id IS NULL), 0), coalesce(sum(iif(person_id IS NULL, octet_length(raw) + octet_length(text), 0)), 0)
		FROM messages WHERE our_number = ?1 AND trust = 'pending' AND received_at > ?3`,
		[]any{string(in.OurNumber), string(in.Address), now.Add(-time.Hour).UnixMicro()},
		&f.SenderTexts, &f.SenderBytes, &f.NumberTexts, &f.NumberBytes)
	if who.personID != "" { // mutant: sqlite.flood-person
		f.NumberTexts, f.NumberBytes = 0, 0 // strangers keep no person out
	}
	return f, err
}

// recordOptOut records a STOP or START of somebody who may decide nothing else. A stranger's beyond what is kept counts only
// where a text of ours has gone there: whoever never got one needs no row to get none.
func recordOptOut(q session, now time.Time, in offers.Inbound, who sender, keeps bool) (err error) {
	addr, our := string(in.Address), string(in.OurNumber)
	switch {
	case who.personID != "" && in.Keyword == people.KeywordStop:
		_, err = q.exec(`UPDATE addresses SET opted_out_at = coalesce(opted_out_at, ?3) WHERE address = ?1 AND our_number = ?2`, addr, our, now.UnixMicro())
	case who.personID != "" || in.Address == "":
	case in.Keyword == people.KeywordStop:
		_, err = q.exec(`INSERT INTO stranger_opt_outs (address, our_number, opted_out_at) SELECT ?1, ?2, ?3
			WHERE ?4 OR EXISTS (SELECT 1 FROM pairings WHERE our_number = ?2 AND address = ?1) ON CONFLICT DO NOTHING`, addr, our, now.UnixMicro(), keeps)
	case in.Keyword == people.KeywordStart:
		_, err = q.exec(`DELETE FROM stranger_opt_outs WHERE address = ?1 AND our_number = ?2`, addr, our)
	}
	return err
}

// promptStranger gives a stranger a code, if one is due.
func promptStranger(q session, now time.Time, in offers.Inbound, accountID string) (bool, error) {
	k := people.PromptFacts{Address: in.Address, Keyword: in.Keyword, Plain: !in.Lossy}
	err := q.one(`SELECT EXISTS (SELECT 1 FROM stranger_opt_outs WHERE address = ?1 AND our_number = ?2),
		EXISTS (SELECT 1 FROM pairings WHERE our_number = ?2 AND address = ?1 AND created_at > ?3),
		(SELECT count(*) FROM pairings WHERE our_number = ?2 AND created_at > ?3 AND used_at IS NULL AND expires_at > ?4)`,
		[]any{string(in.Address), string(in.OurNumber), now.Add(-people.PromptEvery).UnixMicro(), now.UnixMicro()}, &k.OptedOut, &k.Prompted, &k.Pending)
	if err != nil || !k.Prompts() {
		return false, err
	}
	_, err = q.exec(`INSERT INTO pairings (id, account_id, address, our_number, code, created_at, expires_at, prompt) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued')`,
		offers.NewID(), accountID, string(in.Address), string(in.OurNumber), people.NewCode(), now.UnixMicro(), now.Add(people.CodeLife).UnixMicro())
	return err == nil, err
}

// promptable finds the prompt to send next: its text still serves somebody who may get one.
const promptable = `SELECT p.id FROM pairings p WHERE p.prompt = 'queued' AND p.used_at IS NULL
	AND p.expires_at > ?1                                             -- mutant: sqlite.prompt-life
	AND NOT EXISTS (SELECT 1 FROM stranger_opt_outs x WHERE x.address = p.address AND x.our_number = p.our_number) -- mutant: sqlite.prompt-wanted
	AND NOT EXISTS (SELECT 1 FROM addresses a WHERE a.address = p.address AND a.our_number = p.our_number)         -- mutant: sqlite.prompt-bound
	ORDER BY p.created_at, p.id LIMIT 1`

// ReservePrompt implements [offers.PromptLine].
func (s *Store) ReservePrompt(ctx context.Context) (*people.Prompt, error) {
	var id string
	err := s.read(ctx).one(promptable, []any{s.now().UnixMicro()}, &id) // a hint, which saves the lock
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reserve prompt: %w", err)
	}
	var p people.Prompt
	err = s.write(ctx, func(q session, now time.Time) error {
		return q.one(`UPDATE pairings SET prompt = 'sending', sent_at = ?1 WHERE id = (`+promptable+`)
			RETURNING id, address, our_number, code`, []any{now.UnixMicro()}, &p.ID, &p.Address, &p.OurNumber, &p.Code)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil // another process was faster
	}
	if err != nil {
		return nil, fmt.Errorf("reserve prompt: %w", err)
	}
	return &p, nil
}

// PromptSent implements [offers.PromptLine].
func (s *Store) PromptSent(ctx context.Context, id string, res offers.SendResult) error {
	err := s.write(ctx, func(q session, now time.Time) error {
		if _, err := q.exec(`UPDATE pairings SET prompt = ?2 WHERE id = ?1 AND prompt = 'sending'`, fold(id), string(offers.PromptOutcome(res))); err != nil {
			return err
		}
		if !offers.OptsOut(res.Code) {
			return nil
		}
		_, err := q.exec(`INSERT INTO stranger_opt_outs (address, our_number, opted_out_at) SELECT address, our_number, ?2 FROM pairings WHERE id = ?1
			ON CONFLICT DO NOTHING`, fold(id), now.UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("prompt sent: %w", err)
	}
	return nil
}

// Approve implements [people.PairingStore].
func (s *Store) Approve(ctx context.Context, a people.Approval) (people.Person, error) {
	var p people.Person
	var answer error // is stored with the count of wrong codes, unlike an error of the transaction
	err := s.write(ctx, func(q session, now time.Time) (err error) {
		p, answer, err = approve(q, now, a)
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

func approve(q session, now time.Time, a people.Approval) (p people.Person, answer, err error) {
	var wrong int
	since := now.Add(-people.CodeLife).UnixMicro()
	err = q.one(`INSERT INTO code_attempts (account_id, since, wrong) VALUES (?1, ?2, 0) ON CONFLICT (account_id) DO UPDATE
		SET wrong = iif(since <= ?3, 0, wrong), since = iif(since <= ?3, excluded.since, since) RETURNING wrong`,
		[]any{a.AccountID, now.UnixMicro(), since}, &wrong)
	if err != nil {
		return p, nil, err
	}
	if wrong >= people.MaxWrongCodes { // mutant: sqlite.approve-attempts
		return p, people.ErrTooManyCodes, nil
	}
	p = people.Person{ID: fold(a.PersonID), AccountID: a.AccountID, Name: a.Name, Tier: a.Tier, State: people.Active, CreatedAt: now}
	var b people.Binding
	err = q.one(`UPDATE pairings SET used_at = ?3, code = NULL WHERE code = ?2
		AND account_id = ?1                                             -- mutant: sqlite.approve-account
		AND used_at IS NULL
		AND expires_at > ?3                                             -- mutant: sqlite.approve-expiry
		RETURNING address, our_number`, []any{a.AccountID, a.Code, now.UnixMicro()}, &b.Address, &b.OurNumber)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = q.exec(`UPDATE code_attempts SET wrong = wrong + 1 WHERE account_id = ?1`, a.AccountID)
		return people.Person{}, people.ErrNoCode, err
	}
	if err != nil {
		return p, nil, err
	}
	p.Addresses = []people.Binding{b}
	if err := insertPerson(q, now, p); err != nil {
		return p, nil, err
	}
	if _, err := q.exec(`UPDATE pairings SET person_id = ?1 WHERE used_at = ?2 AND address = ?3 AND our_number = ?4`, p.ID, now.UnixMicro(), string(b.Address), string(b.OurNumber)); err != nil {
		return p, nil, err
	}
	th, err := threadOf(q, now, p.ID)
	if err != nil {
		return p, nil, err
	}
	if err := th.event(offers.PersonPaired, offers.PairedData{PersonID: p.ID}); err != nil {
		return p, nil, err
	}
	if a.Welcome != "" {
		if err := th.say(offers.TextNotice, a.Welcome); err != nil {
			return p, nil, err
		}
	}
	return p, nil, th.flush()
}

// insertPerson makes a person with a thread and bound addresses.
func insertPerson(q session, now time.Time, p people.Person) error {
	_, err := q.exec(`INSERT INTO people (id, account_id, name, tier, state, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
		fold(p.ID), p.AccountID, p.Name, p.Tier, string(p.State), now.UnixMicro())
	if err != nil {
		return err
	}
	if _, err := q.exec(`INSERT INTO threads (person_id, account_id) VALUES (?1, ?2)`, fold(p.ID), p.AccountID); err != nil {
		return err
	}
	for _, b := range p.Addresses {
		if err := bind(q, now, p.AccountID, fold(p.ID), b); err != nil {
			return err
		}
	}
	return nil
}

// bind ties an address to a person. Whoever wanted no text as a stranger wants none as a person either.
func bind(q session, now time.Time, accountID, personID string, b people.Binding) error {
	_, err := q.exec(`INSERT INTO addresses (address, our_number, person_id, account_id, bound_at, opted_out_at) VALUES (?1, ?2, ?3, ?4, ?5,
		(SELECT x.opted_out_at FROM stranger_opt_outs x WHERE x.address = ?1 AND x.our_number = ?2) -- mutant: sqlite.bind-opted-out
		)`,
		string(b.Address), string(b.OurNumber), personID, accountID, now.UnixMicro())
	if err != nil {
		return err
	}
	_, err = q.exec(`DELETE FROM stranger_opt_outs WHERE address = ?1 AND our_number = ?2`, string(b.Address), string(b.OurNumber))
	return err
}

// unbind ends a binding, and what is open at it; false: there is none. That no text is wanted there stays known.
func (th *thread) unbind(addr, our people.Address, why people.Unbound) (bool, error) {
	state, by := offers.Unbinds(why)
	if err := th.silence(addr, our, state, by); err != nil {
		return false, err
	}
	var optedOut *int64
	err := th.one(`DELETE FROM addresses WHERE address = ?1 AND our_number = ?2 AND person_id = ?3 RETURNING opted_out_at`,
		[]any{string(addr), string(our), th.personID}, &optedOut)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if optedOut != nil { // mutant: sqlite.unbind-opted-out
		if _, err := th.exec(`INSERT INTO stranger_opt_outs (address, our_number, opted_out_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`,
			string(addr), string(our), *optedOut); err != nil {
			return false, err
		}
	}
	if _, err := th.exec(`INSERT INTO unbindings (account_id, person_id, address, our_number, why, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
		th.accountID, th.personID, string(addr), string(our), string(why), th.now.UnixMicro()); err != nil {
		return false, err
	}
	return true, th.event(offers.PersonUnbound, offers.UnboundData{PersonID: th.personID, Why: why})
}

// Bind implements [people.PairingStore].
func (s *Store) Bind(ctx context.Context, accountID, personID string, b people.Binding) error {
	err := s.inThread(ctx, fold(personID), func(th *thread) error {
		if th.accountID != accountID {
			return offers.ErrNotFound
		}
		return bind(th.session, th.now, accountID, th.personID, b)
	})
	if unique(err) {
		return people.ErrAddressTaken
	}
	return personErr(err, "bind")
}

// Unbind implements [people.PairingStore].
func (s *Store) Unbind(ctx context.Context, accountID, personID string, b people.Binding) error {
	return personErr(s.inThread(ctx, fold(personID), func(th *thread) error {
		if th.accountID != accountID {
			return offers.ErrNotFound
		}
		done, err := th.unbind(b.Address, b.OurNumber, people.UnboundOwner)
		if err == nil && !done {
			err = offers.ErrNotFound
		}
		if err != nil {
			return err
		}
		return th.advance()
	}), "unbind")
}

// personErr gives a person's errors the words of package people.
func personErr(err error, what string) error {
	switch {
	case errors.Is(err, offers.ErrNotFound):
		return people.ErrNotFound
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// idle finds bindings that are as old as ?1 and have had no text from their person since then.
const idle = `FROM addresses a WHERE a.bound_at <= ?1 AND coalesce((SELECT m.received_at FROM messages m WHERE m.person_id = a.person_id
	AND m.address = a.address AND m.our_number = a.our_number         -- mutant: sqlite.idle-address
	AND m.number IS NOT NULL ORDER BY m.number DESC LIMIT 1), 0) <= ?1`

// UnbindIdle implements [people.PairingStore].
func (s *Store) UnbindIdle(ctx context.Context, age time.Duration) (int, error) {
	return s.each(ctx, "unbind idle", `SELECT DISTINCT a.person_id `+idle+` LIMIT 100`, []any{s.ago(age)}, func(th *thread) (int, error) {
		due, err := all(th.session, func(r row) (b people.Binding, err error) { return b, r.Scan(&b.Address, &b.OurNumber) },
			`SELECT a.address, a.our_number `+idle+` AND a.person_id = ?2`, th.now.Add(-age).UnixMicro(), th.personID)
		if err != nil {
			return 0, err
		}
		for _, b := range due {
			if _, err := th.unbind(b.Address, b.OurNumber, people.UnboundIdle); err != nil {
				return 0, err
			}
		}
		return len(due), th.advance()
	})
}

// unbindings lists what an account's people have lost, by person, the newest last.
func (s *Store) unbindings(ctx context.Context, accountID string) (map[string][]people.Unbinding, error) {
	type of struct {
		person string
		u      people.Unbinding
	}
	list, err := all(s.read(ctx), func(r row) (of, error) {
		var x of
		var us int64
		err := r.Scan(&x.person, &x.u.Address, &x.u.OurNumber, &x.u.Why, &us)
		x.u.At = at(us)
		return x, err
	}, `SELECT person_id, address, our_number, why, at FROM unbindings u WHERE account_id = ?1
		AND NOT EXISTS (SELECT 1 FROM addresses a WHERE a.address = u.address AND a.our_number = u.our_number AND a.person_id = u.person_id)
		ORDER BY at, rowid`, accountID)
	out := map[string][]people.Unbinding{}
	for _, x := range list {
		out[x.person] = append(out[x.person], x.u)
	}
	return out, err
}

// Strangers implements [people.PairingStore].
func (s *Store) Strangers(ctx context.Context, accountID string) ([]people.Pending, people.PairingCounts, error) {
	var counts people.PairingCounts
	q := s.read(ctx)
	list, err := all(q, func(r row) (people.PendingRow, error) {
		var p people.PendingRow
		var us int64
		err := r.Scan(&p.MessageID, &p.Address, &p.OurNumber, &p.PersonID, &p.Name, &us, &p.Provider, &p.ProviderID, &p.Raw, &p.Lossy, &p.Text, &p.OptedOut)
		p.ReceivedAt = at(us)
		return p, err
	}, `SELECT m.id, m.address, m.our_number, coalesce(m.person_id, a.person_id, ''), m.sender_name, m.received_at, m.provider, m.provider_id, m.raw, m.lossy, m.text,
		a.opted_out_at IS NOT NULL OR EXISTS (SELECT 1 FROM stranger_opt_outs x WHERE x.address = m.address AND x.our_number = m.our_number)
		FROM messages m LEFT JOIN addresses a ON a.address = m.address AND a.our_number = m.our_number AND a.account_id = m.account_id
		WHERE m.account_id = ?1 AND m.trust = 'pending' ORDER BY m.received_at DESC, m.id DESC LIMIT ?2`, accountID, people.PendingListed)
	if err != nil {
		return nil, counts, fmt.Errorf("strangers: %w", err)
	}
	codes, err := all(q, func(r row) (people.PendingCode, error) {
		var c people.PendingCode
		var us int64
		err := r.Scan(&c.Address, &c.OurNumber, &us, &c.Waits, &c.Prompt)
		c.ExpiresAt = at(us)
		return c, err
	}, `SELECT address, our_number, expires_at, used_at IS NULL AND expires_at > ?2, prompt FROM pairings WHERE account_id = ?1 ORDER BY created_at, id`,
		accountID, s.now().UnixMicro())
	if err != nil {
		return nil, counts, fmt.Errorf("strangers: %w", err)
	}
	err = q.one(`SELECT coalesce((SELECT sum(dropped) FROM numbers WHERE account_id = ?1), 0),
		coalesce((SELECT wrong FROM code_attempts WHERE account_id = ?1 AND since > ?2), 0)`,
		[]any{accountID, s.now().Add(-people.CodeLife).UnixMicro()}, &counts.Dropped, &counts.WrongCodes)
	if err != nil {
		return nil, counts, fmt.Errorf("strangers: %w", err)
	}
	return people.GroupPending(list, codes), counts, nil
}

// Promote implements [people.PairingStore].
func (s *Store) Promote(ctx context.Context, accountID, messageID string) (string, error) {
	var personID string
	err := s.write(ctx, func(q session, now time.Time) error {
		var addr, our string
		err := q.one(`SELECT address, our_number FROM messages WHERE id = ?1 AND account_id = ?2 AND trust = 'pending'`, []any{fold(messageID), accountID}, &addr, &our)
		if errors.Is(err, sql.ErrNoRows) {
			return people.ErrNotFound
		}
		if err != nil {
			return err
		}
		err = q.one(`UPDATE messages SET trust = 'promoted', promoted_at = ?2, decided_at = coalesce(decided_at, ?2), person_id = p.id
			FROM addresses a JOIN people p ON p.id = a.person_id
			WHERE messages.id = ?1 AND a.address = ?3 AND a.our_number = ?4 AND a.account_id = messages.account_id
			  AND p.state = 'active'                                                   -- mutant: sqlite.promote-active
			  AND (messages.person_id IS NULL OR messages.person_id = p.id)            -- mutant: sqlite.promote-own
			RETURNING messages.person_id`,
			[]any{fold(messageID), now.UnixMicro(), addr, our}, &personID)
		if errors.Is(err, sql.ErrNoRows) {
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
	old := s.now().Add(-people.PendingKept).UnixMicro()
	var due bool
	err := s.read(ctx).one(`SELECT EXISTS (SELECT 1 FROM messages WHERE trust = 'pending' AND received_at <= ?1)
		OR EXISTS (SELECT 1 FROM pairings WHERE code IS NOT NULL AND expires_at <= ?2)`, []any{old, s.now().UnixMicro()}, &due)
	if err != nil || !due {
		return 0, err
	}
	n := int64(0)
	err = s.write(ctx, func(q session, now time.Time) error {
		texts, err := q.exec(`UPDATE messages SET trust = 'forgotten', text = '', raw = x'', sender_name = '', quoted = '' WHERE id IN (
			SELECT id FROM messages WHERE trust = 'pending' AND received_at <= ?1 LIMIT 500)`, now.Add(-people.PendingKept).UnixMicro())
		if err != nil {
			return err
		}
		codes, err := q.exec(`UPDATE pairings SET code = NULL, prompt = iif(prompt = 'queued', 'rejected', prompt) WHERE code IS NOT NULL AND expires_at <= ?1`, now.UnixMicro())
		n = texts + codes
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget pending: %w", err)
	}
	return int(n), nil
}
