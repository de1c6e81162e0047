package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GroupSize is how many writers share one commit at most.
const GroupSize = groupSize

// WithBusyWait shortens one wait of SQLite for another process; how long the lock is waited for stays as it is.
func WithBusyWait(d time.Duration) Option { return func(s *Store) { s.busy = d } }

// Write runs fn as the store's own writes are run.
func (s *Store) Write(ctx context.Context, fn func(exec func(query string, args ...any) error, count func(query string, args ...any) (int, error)) error) error {
	return s.write(ctx, func(q session, _ time.Time) error {
		return fn(func(query string, args ...any) error {
			_, err := q.exec(query, args...)
			return err
		}, func(query string, args ...any) (n int, err error) {
			err = q.one(query, args, &n)
			return n, err
		})
	})
}

// InLine says how many writers wait.
func (s *Store) InLine() int {
	return s.line.Len()
}

// Plans are the plans of all statements that the store has prepared, by their text.
func (s *Store) Plans(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	for _, by := range []*statements{s.reader, s.writer} {
		by.mu.Lock()
		queries := slices.Collect(maps.Keys(by.by))
		by.mu.Unlock()
		for _, query := range queries {
			var args []any // one for each number
			for i := 1; strings.Contains(query, "?"+strconv.Itoa(i)); i++ {
				args = append(args, nil)
			}
			lines, err := all(s.read(ctx), func(r row) (line string, err error) {
				var id, parent, unused int
				err = r.Scan(&id, &parent, &unused, &line)
				return line, err
			}, `EXPLAIN QUERY PLAN `+query, args...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			out[query] = lines
		}
	}
	return out, nil
}
