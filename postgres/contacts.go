package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// PutContacts implements [offers.Permissions].
func (s *Store) PutContacts(ctx context.Context, accountID string, list []said.Contact, merge bool) (int, error) {
	total := 0
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The account's row stands for its contacts: two writers of one list come one after the other.
		tag, err := tx.Exec(ctx, `SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE`, accountID)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return people.ErrNoAccount
		}
		ids := make([]string, 0, len(list))
		var b pgx.Batch
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		b.Queue(`DELETE FROM contacts WHERE account_id = $1 AND (NOT $3 OR id = ANY($2))`, accountID, ids, merge)
		for _, c := range list {
			b.Queue(`INSERT INTO contacts (account_id, id, name, aliases) VALUES ($1, $2, $3, $4)`, accountID, c.ID, c.Name, orNone(c.Aliases))
			b.Queue(`INSERT INTO contact_addresses (account_id, contact_id, place, address)
				SELECT $1, $2, n, a FROM unnest($3::text[]) WITH ORDINALITY AS u (a, n)`, accountID, c.ID, orNone(c.Addresses))
		}
		b.Queue(`SELECT count(*) FROM contacts WHERE account_id = $1`, accountID).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if total > offers.MaxContacts { // mutant: contacts.most
			return offers.ErrTooManyContacts
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("put contacts: %w", err)
	}
	return total, nil
}

// orNone writes nothing as an empty array, never as null.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Contacts implements [offers.Permissions].
func (s *Store) Contacts(ctx context.Context, accountID string) ([]said.Contact, error) {
	list, err := contactsOf(ctx, s.pool, accountID)
	if err != nil {
		return nil, fmt.Errorf("contacts: %w", err)
	}
	return list, nil
}

func contactsOf(ctx context.Context, q querier, accountID string) ([]said.Contact, error) {
	return all(ctx, q, func(row pgx.CollectableRow) (said.Contact, error) {
		var c said.Contact
		err := row.Scan(&c.ID, &c.Name, &c.Aliases, &c.Addresses)
		return c, err
	}, `SELECT c.id, c.name, c.aliases, ARRAY(SELECT a.address FROM contact_addresses a
		WHERE a.account_id = c.account_id AND a.contact_id = c.id ORDER BY a.place)
		FROM contacts c WHERE c.account_id = $1 ORDER BY c.id COLLATE "C"`, accountID)
}

// namesOf are the contacts' names of those addresses that exactly one contact has.
const namesOf = `SELECT a.address, max(c.name) FROM contact_addresses a JOIN contacts c ON c.account_id = a.account_id AND c.id = a.contact_id
	WHERE a.account_id = $1 AND a.address = ANY($2) GROUP BY a.address HAVING count(*) = 1`

// OwnAddresses implements [offers.Permissions].
func (s *Store) OwnAddresses(ctx context.Context, accountID string) ([]string, error) {
	list, err := all(ctx, s.pool, pgx.RowTo[string], `SELECT address FROM own_addresses WHERE account_id = $1 ORDER BY address COLLATE "C"`, accountID)
	if err != nil {
		return nil, fmt.Errorf("own addresses: %w", err)
	}
	return list, nil
}

// AddOwnAddress implements [offers.Permissions].
func (s *Store) AddOwnAddress(ctx context.Context, accountID, address string) (bool, error) {
	tag, err := s.pool.Exec(ctx, `INSERT INTO own_addresses (account_id, address) VALUES ($1, $2) ON CONFLICT (account_id, address) DO NOTHING`, accountID, address)
	switch {
	case foreign(err):
		return false, people.ErrNoAccount
	case err != nil:
		return false, fmt.Errorf("add own address: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// RemoveOwnAddress implements [offers.Permissions].
func (s *Store) RemoveOwnAddress(ctx context.Context, accountID, address string) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM own_addresses WHERE account_id = $1 AND address = $2`, accountID, address)
	if err == nil && tag.RowsAffected() == 0 {
		err = offers.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("remove own address: %w", err)
	}
	return nil
}
