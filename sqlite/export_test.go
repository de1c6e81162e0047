package sqlite

import "time"

// WithBusyWait shortens one wait of SQLite for another process; how long the lock is waited for stays as it is.
func WithBusyWait(d time.Duration) Option { return func(s *Store) { s.busy = d } }
