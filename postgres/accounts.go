package postgres

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/people"
)

// AddAccount implements [people.AccountStore].
func (s *Store) AddAccount(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO accounts (id, created_at) VALUES ($1, cs_now())`, id)
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
	rows, err := s.pool.Query(ctx, `SELECT a.id, a.asking_is_approving, a.standing_by_text, a.created_at,
		ARRAY(SELECT n.our_number FROM numbers n WHERE n.account_id = a.id ORDER BY 1) FROM accounts a ORDER BY a.created_at, a.id`)
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	defer rows.Close()
	var out []people.Account
	for rows.Next() {
		var a people.Account
		if err := rows.Scan(&a.ID, &a.AskingIsApproving, &a.StandingByText, &a.CreatedAt, &a.Numbers); err != nil {
			return nil, fmt.Errorf("accounts: %w", err)
		}
		out = append(out, a)
	}
	return out, rows.Err()
}

// SetAskingIsApproving implements [people.AccountStore].
func (s *Store) SetAskingIsApproving(ctx context.Context, id string, on bool) error {
	return s.setAccount(ctx, `UPDATE accounts SET asking_is_approving = $2 WHERE id = $1`, id, on)
}

// SetStandingByText implements [people.AccountStore].
func (s *Store) SetStandingByText(ctx context.Context, id, mode string) error {
	return s.setAccount(ctx, `UPDATE accounts SET standing_by_text = $2 WHERE id = $1`, id, mode)
}

// setAccount changes one account.
func (s *Store) setAccount(ctx context.Context, query, id string, value any) error {
	tag, err := s.pool.Exec(ctx, query, id, value)
	if err == nil && tag.RowsAffected() == 0 {
		err = people.ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("set account: %w", err)
	}
	return nil
}

// GiveNumber implements [people.AccountStore].
func (s *Store) GiveNumber(ctx context.Context, id string, our people.Address) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO numbers (our_number, account_id) VALUES ($1, $2) ON CONFLICT (our_number) DO UPDATE SET account_id = excluded.account_id`, string(our), id)
	if foreign(err) {
		return people.ErrNoAccount
	}
	if err != nil {
		return fmt.Errorf("give number: %w", err)
	}
	return nil
}
