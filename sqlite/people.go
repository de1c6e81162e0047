package sqlite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// AddPerson implements [people.Store].
func (s *Store) AddPerson(ctx context.Context, p people.Person) error {
	err := s.write(ctx, func(q session, now time.Time) error {
		return insertPerson(q, now, p)
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
	rows, err := all(s.read(ctx), func(r row) (people.Person, error) {
		p := people.Person{AccountID: accountID}
		var b people.Binding
		var created int64
		err := r.Scan(&p.ID, &p.Name, &p.Tier, &p.State, &created, &b.Address, &b.OurNumber)
		p.CreatedAt = at(created)
		if b.Address != "" {
			p.Addresses = []people.Binding{b}
		}
		return p, err
	}, `SELECT p.id, p.name, p.tier, p.state, p.created_at, coalesce(a.address, ''), coalesce(a.our_number, '')
		FROM people p LEFT JOIN addresses a ON a.person_id = p.id
		WHERE p.account_id = ?1 ORDER BY p.created_at, p.id, a.bound_at, a.rowid`, accountID)
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	lost, err := s.unbindings(ctx, accountID)
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	var out []people.Person
	for _, p := range rows {
		if n := len(out); n > 0 && out[n-1].ID == p.ID {
			out[n-1].Addresses = append(out[n-1].Addresses, p.Addresses...)
			continue
		}
		p.Unbound = lost[p.ID]
		out = append(out, p)
	}
	return out, nil
}

// SetState implements [people.Store].
func (s *Store) SetState(ctx context.Context, accountID, personID string, state people.State) error {
	return s.setPerson(ctx, accountID, personID, `UPDATE people SET state = ?3 WHERE id = ?1 AND account_id = ?2`, string(state))
}

// SetTier implements [people.Store].
func (s *Store) SetTier(ctx context.Context, accountID, personID, tier string) error {
	return s.setPerson(ctx, accountID, personID, `UPDATE people SET tier = ?3 WHERE id = ?1 AND account_id = ?2`, tier)
}

func (s *Store) setPerson(ctx context.Context, accountID, personID, update, value string) error {
	return s.write(ctx, func(q session, _ time.Time) error {
		n, err := q.exec(update, fold(personID), accountID, value)
		if err == nil && n == 0 {
			err = people.ErrNotFound
		}
		return err
	})
}

// AddKey implements [people.Store].
func (s *Store) AddKey(ctx context.Context, k people.Key, hash [sha256.Size]byte) error {
	err := s.write(ctx, func(q session, now time.Time) error {
		_, err := q.exec(`INSERT INTO keys (id, account_id, name, scope, hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
			fold(k.ID), k.AccountID, k.Name, string(k.Scope), hash[:], now.UnixMicro())
		return err
	})
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
	var created int64
	err := s.read(ctx).one(`SELECT id, account_id, name, scope, created_at FROM keys WHERE hash = ?1 AND revoked_at IS NULL`, []any{hash[:]},
		&k.ID, &k.AccountID, &k.Name, &k.Scope, &created)
	if errors.Is(notFound(err), offers.ErrNotFound) {
		err = people.ErrNotFound
	}
	if err != nil {
		return people.Key{}, err
	}
	k.CreatedAt = at(created)
	return k, nil
}

// Keys implements [people.Store].
func (s *Store) Keys(ctx context.Context, accountID string) ([]people.Key, error) {
	list, err := all(s.read(ctx), func(r row) (people.Key, error) {
		var k people.Key
		var created int64
		var revoked *int64
		err := r.Scan(&k.ID, &k.AccountID, &k.Name, &k.Scope, &created, &revoked)
		k.CreatedAt, k.RevokedAt = at(created), atOrNil(revoked)
		return k, err
	}, `SELECT id, account_id, name, scope, created_at, revoked_at FROM keys WHERE account_id = ?1 ORDER BY created_at, id`, accountID)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return list, nil
}

// RevokeKey implements [people.Store].
func (s *Store) RevokeKey(ctx context.Context, accountID, keyID string) error {
	return s.write(ctx, func(q session, now time.Time) error {
		n, err := q.exec(`UPDATE keys SET revoked_at = ?3 WHERE id = ?1 AND account_id = ?2 AND revoked_at IS NULL`,
			fold(keyID), accountID, now.UnixMicro())
		if err == nil && n == 0 {
			err = people.ErrNotFound
		}
		return err
	})
}
