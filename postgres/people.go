package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// AddPerson implements [people.Store].
func (s *Store) AddPerson(ctx context.Context, p people.Person) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return insertPerson(ctx, tx, p)
	})
	switch {
	case unique(err):
		return people.ErrAddressTaken
	case foreign(err):
		return people.ErrNoAccount
	case err != nil:
		return fmt.Errorf("add person: %w", err)
	}
	return nil
}

// People implements [people.Store].
func (s *Store) People(ctx context.Context, accountID string) ([]people.Person, error) {
	lost, err := s.unbindings(ctx, accountID) // first: while rows are open they hold a connection
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	rows, err := s.pool.Query(ctx, `SELECT p.id, p.name, p.tier, p.state, p.created_at, coalesce(a.address, ''), coalesce(a.our_number, '')
		FROM people p LEFT JOIN addresses a ON a.person_id = p.id
		WHERE p.account_id = $1 ORDER BY p.created_at, p.id, a.bound_at`, accountID)
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	defer rows.Close()
	var out []people.Person
	for rows.Next() {
		p := people.Person{AccountID: accountID}
		var b people.Binding
		if err := rows.Scan(&p.ID, &p.Name, &p.Tier, &p.State, &p.CreatedAt, &b.Address, &b.OurNumber); err != nil {
			return nil, fmt.Errorf("people: %w", err)
		}
		if n := len(out); n == 0 || out[n-1].ID != p.ID {
			p.Unbound = lost[p.ID]
			out = append(out, p)
		}
		if b.Address != "" {
			last := &out[len(out)-1]
			last.Addresses = append(last.Addresses, b)
		}
	}
	return out, rows.Err()
}

// SetState implements [people.Store]. It takes the person's lock, so that no decision runs across it.
func (s *Store) SetState(ctx context.Context, accountID, personID string, state people.State) error {
	return s.setPerson(ctx, accountID, personID, `UPDATE people SET state = $3 WHERE id = $1 AND account_id = $2`, string(state))
}

// SetTier implements [people.Store].
func (s *Store) SetTier(ctx context.Context, accountID, personID, tier string) error {
	return s.setPerson(ctx, accountID, personID, `UPDATE people SET tier = $3 WHERE id = $1 AND account_id = $2`, tier)
}

func (s *Store) setPerson(ctx context.Context, accountID, personID, update, value string) error {
	err := s.inThread(ctx, personID, func(th *thread) error {
		tag, err := th.tx.Exec(ctx, update, personID, accountID, value)
		if err == nil && tag.RowsAffected() == 0 {
			err = offers.ErrNotFound
		}
		return err
	})
	return personErr(err)
}

// personErr gives a person's errors the words of package people.
func personErr(err error) error {
	if badID(err) || notFound(err) == offers.ErrNotFound { //nolint:errorlint // notFound returns it bare
		return people.ErrNotFound
	}
	return err
}

// AddKey implements [people.Store].
func (s *Store) AddKey(ctx context.Context, k people.Key, hash [sha256.Size]byte) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO keys (id, account_id, name, scope, hash, created_at) VALUES ($1, $2, $3, $4, $5, cs_now())`,
		k.ID, k.AccountID, k.Name, string(k.Scope), hash[:])
	if foreign(err) {
		return people.ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("add key: %w", err)
	}
	return nil
}

// KeyByHash implements [people.Store].
func (s *Store) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (people.Key, error) {
	var k people.Key
	err := s.pool.QueryRow(ctx, `SELECT id, account_id, name, scope, created_at FROM keys WHERE hash = $1 AND revoked_at IS NULL`, hash[:]).
		Scan(&k.ID, &k.AccountID, &k.Name, &k.Scope, &k.CreatedAt)
	return k, personErr(err)
}

// Keys implements [people.Store].
func (s *Store) Keys(ctx context.Context, accountID string) ([]people.Key, error) {
	list, err := all(ctx, s.pool, func(row pgx.CollectableRow) (people.Key, error) {
		var k people.Key
		err := row.Scan(&k.ID, &k.AccountID, &k.Name, &k.Scope, &k.CreatedAt, &k.RevokedAt)
		return k, err
	}, `SELECT id, account_id, name, scope, created_at, revoked_at FROM keys WHERE account_id = $1 ORDER BY created_at, id`, accountID)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return list, nil
}

// RevokeKey implements [people.Store].
func (s *Store) RevokeKey(ctx context.Context, accountID, keyID string) error {
	tag, err := s.pool.Exec(ctx, `UPDATE keys SET revoked_at = cs_now() WHERE id = $1 AND account_id = $2 AND revoked_at IS NULL`, keyID, accountID)
	if err == nil && tag.RowsAffected() == 0 {
		return people.ErrNotFound
	}
	return personErr(err)
}
