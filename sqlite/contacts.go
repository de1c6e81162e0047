package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// PutContacts implements [offers.Permissions].
func (s *Store) PutContacts(ctx context.Context, accountID string, list []said.Contact, merge bool) (int, error) {
	total := 0
	err := s.write(ctx, func(q session, _ time.Time) error {
		if !merge {
			if _, err := q.exec(`DELETE FROM contacts WHERE account_id = ?1`, accountID); err != nil {
				return err
			}
		}
		for _, c := range list {
			if err := putContact(q, accountID, c); err != nil {
				return err
			}
		}
		err := q.one(`SELECT count(*) FROM contacts WHERE account_id = ?1`, []any{accountID}, &total)
		if err == nil && total > offers.MaxContacts { // mutant: contacts.most
			err = offers.ErrTooManyContacts
		}
		return err
	})
	switch {
	case foreign(err):
		return 0, people.ErrNoAccount
	case err != nil:
		return 0, fmt.Errorf("put contacts: %w", err)
	}
	return total, nil
}

func putContact(q session, accountID string, c said.Contact) error {
	aliases, err := json.Marshal(c.Aliases)
	if err != nil {
		return err
	}
	if _, err := q.exec(`DELETE FROM contacts WHERE account_id = ?1 AND id = ?2`, accountID, c.ID); err != nil {
		return err
	}
	if _, err := q.exec(`INSERT INTO contacts (account_id, id, name, aliases) VALUES (?1, ?2, ?3, ?4)`, accountID, c.ID, c.Name, string(aliases)); err != nil {
		return err
	}
	for i, a := range c.Addresses {
		if _, err := q.exec(`INSERT INTO contact_addresses (account_id, contact_id, place, address) VALUES (?1, ?2, ?3, ?4)`, accountID, c.ID, i, a); err != nil {
			return err
		}
	}
	return nil
}

// Contacts implements [offers.Permissions].
func (s *Store) Contacts(ctx context.Context, accountID string) ([]said.Contact, error) {
	list, err := contactsOf(s.read(ctx), accountID)
	if err != nil {
		return nil, fmt.Errorf("contacts: %w", err)
	}
	return list, nil
}

func contactsOf(q session, accountID string) ([]said.Contact, error) {
	return all(q, func(r row) (said.Contact, error) {
		var c said.Contact
		var aliases, addresses []byte
		err := r.Scan(&c.ID, &c.Name, &aliases, &addresses)
		if err == nil {
			err = json.Unmarshal(aliases, &c.Aliases)
		}
		if err == nil {
			err = json.Unmarshal(addresses, &c.Addresses)
		}
		return c, err
	}, `SELECT c.id, c.name, c.aliases, (SELECT json_group_array(a.address) FROM (SELECT address FROM contact_addresses
		WHERE account_id = c.account_id AND contact_id = c.id ORDER BY place) a)
		FROM contacts c WHERE c.account_id = ?1 ORDER BY c.id`, accountID)
}

// namesOf are the contacts' names of those addresses that exactly one contact has.
func namesOf(q session, accountID, reaches string) (map[string]string, error) {
	type named struct{ address, name string }
	list, err := all(q, func(r row) (n named, err error) { return n, r.Scan(&n.address, &n.name) },
		`SELECT a.address, max(c.name) FROM contact_addresses a JOIN contacts c ON c.account_id = a.account_id AND c.id = a.contact_id
		WHERE a.account_id = ?1 AND a.address IN (SELECT value FROM json_each(?2)) GROUP BY a.address HAVING count(*) = 1`, accountID, reaches)
	out := make(map[string]string, len(list))
	for _, n := range list {
		out[n.address] = n.name
	}
	return out, err
}

// OwnAddresses implements [offers.Permissions].
func (s *Store) OwnAddresses(ctx context.Context, accountID string) ([]string, error) {
	list, err := all(s.read(ctx), scanString, `SELECT address FROM own_addresses WHERE account_id = ?1 ORDER BY address`, accountID)
	if err != nil {
		return nil, fmt.Errorf("own addresses: %w", err)
	}
	return list, nil
}

// AddOwnAddress implements [offers.Permissions].
func (s *Store) AddOwnAddress(ctx context.Context, accountID, address string) (bool, error) {
	n, err := s.change(ctx, `INSERT INTO own_addresses (account_id, address) VALUES (?1, ?2) ON CONFLICT (account_id, address) DO NOTHING`, accountID, address)
	switch {
	case foreign(err):
		return false, people.ErrNoAccount
	case err != nil:
		return false, fmt.Errorf("add own address: %w", err)
	}
	return n > 0, nil
}

// RemoveOwnAddress implements [offers.Permissions].
func (s *Store) RemoveOwnAddress(ctx context.Context, accountID, address string) error {
	n, err := s.change(ctx, `DELETE FROM own_addresses WHERE account_id = ?1 AND address = ?2`, accountID, address)
	if err == nil && n == 0 {
		err = offers.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("remove own address: %w", err)
	}
	return nil
}

// change runs one statement in a transaction of its own.
func (s *Store) change(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = s.write(ctx, func(q session, _ time.Time) (err error) {
		n, err = q.exec(query, args...)
		return err
	})
	return n, err
}
