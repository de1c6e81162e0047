package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/people"
)

// AddAccount implements [people.AccountStore].
func (s *Store) AddAccount(ctx context.Context, id string) error {
	err := s.write(ctx, func(q session, now time.Time) error {
		_, err := q.exec(`INSERT INTO accounts (id, created_at) VALUES (?1, ?2)`, id, now.UnixMicro())
		return err
	})
	if unique(err) {
		return people.ErrIDTaken
	}
	if err != nil {
		return fmt.Errorf("add account: %w", err)
	}
	return nil
}

// Accounts implements [people.AccountStore].
func (s *Store) Accounts(ctx context.Context) ([]people.Account, error) {
	rows, err := all(s.read(ctx), func(r row) (people.Account, error) {
		a := people.Account{Numbers: []people.Address{}}
		var us int64
		var our string
		err := r.Scan(&a.ID, &a.AskingIsApproving, &a.StandingByText, &us, &our)
		if a.CreatedAt = at(us); our != "" {
			a.Numbers = append(a.Numbers, people.Address(our))
		}
		return a, err
	}, `SELECT a.id, a.asking_is_approving, a.standing_by_text, a.created_at, coalesce(n.our_number, '') FROM accounts a LEFT JOIN numbers n ON n.account_id = a.id
		ORDER BY a.created_at, a.id, n.our_number`)
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	var out []people.Account
	for _, a := range rows {
		if n := len(out); n > 0 && out[n-1].ID == a.ID {
			out[n-1].Numbers = append(out[n-1].Numbers, a.Numbers...)
			continue
		}
		out = append(out, a)
	}
	return out, nil
}

// SetAskingIsApproving implements [people.AccountStore].
func (s *Store) SetAskingIsApproving(ctx context.Context, id string, on bool) error {
	return s.setAccount(ctx, `UPDATE accounts SET asking_is_approving = ?2 WHERE id = ?1`, id, on)
}

// SetStandingByText implements [people.AccountStore].
func (s *Store) SetStandingByText(ctx context.Context, id, mode string) error {
	return s.setAccount(ctx, `UPDATE accounts SET standing_by_text = ?2 WHERE id = ?1`, id, mode)
}

// setAccount changes one account.
func (s *Store) setAccount(ctx context.Context, query, id string, value any) error {
	n, err := s.change(ctx, query, id, value)
	if err == nil && n == 0 {
		err = people.ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("set account: %w", err)
	}
	return nil
}

// GiveNumber implements [people.AccountStore].
func (s *Store) GiveNumber(ctx context.Context, id string, our people.Address) error {
	_, err := s.change(ctx, `INSERT INTO numbers (our_number, account_id) VALUES (?1, ?2) ON CONFLICT (our_number) DO UPDATE SET account_id = excluded.account_id`, string(our), id)
	if foreign(err) {
		return people.ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("give number: %w", err)
	}
	return nil
}
