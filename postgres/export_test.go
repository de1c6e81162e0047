package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Plans are the generic plans of all statements that a connection of an otherwise idle store has prepared, and of those for
// several calls at once, by their text.
func (s *Store) Plans(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for i, sql := range []string{lockAll, s.receive.several, s.late.several} { // which take more than one call
			if _, err := tx.Conn().Prepare(ctx, fmt.Sprint("several", i), sql); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, `SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements`, pgx.QueryExecModeExec)
		if err != nil {
			return err
		}
		type prepared struct {
			Name, Statement string
			Parameters      int
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[prepared])
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_generic_plan`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		for _, p := range all {
			args := ""
			if p.Parameters > 0 {
				args = "(NULL" + strings.Repeat(", NULL", p.Parameters-1) + ")"
			}
			rows, err := tx.Query(ctx, `EXPLAIN (COSTS OFF) EXECUTE `+pgx.Identifier{p.Name}.Sanitize()+args, pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Statement, err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return fmt.Errorf("%s: %w", p.Statement, err)
			}
			out[p.Statement] = strings.Join(lines, "\n")
		}
		return nil
	})
	return out, err
}

// MaxInFlight is how many groups may be under way.
const MaxInFlight = maxInFlight

// GroupSize is how many calls share a transaction at most.
const GroupSize = groupSize

// Hold takes the place of a group that is under way, until Release.
func (s *Store) Hold() { s.inFlight <- struct{}{} }

// Release gives that place back.
func (s *Store) Release() { <-s.inFlight }

// Waiting is how many calls wait for a group.
func (s *Store) Waiting() int { return s.waiting.Len() }

// Together runs a call that has no person. reset is called before each try.
func (s *Store) Together(ctx context.Context, reset func()) error {
	st := newStatement(0, []string{"n int"}, `SELECT call FROM q`)
	return s.together(ctx, &call{statement: &st, args: []any{1}, reset: reset, row: func(pgx.Rows) error { return nil }})
}

// OnlySeveral has every call run the statement for several calls at once.
func (s *Store) OnlySeveral() {
	for _, st := range []*statement{&s.receive, &s.late, &s.yes} {
		st.alone = ""
	}
}
