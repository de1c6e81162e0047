package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// groupSize is how many calls share one transaction at most.
	groupSize = 32
	// lanes is how many groups are under way at once: while one waits for the disk, another works.
	lanes = 2
	// atMost is how long a group may take. A database that does not answer for so long has left its outcome open.
	atMost = 10 * time.Second
)

// errAborted is the error of a call whose group ended without an answer.
var errAborted = errors.New("postgres: another call of the same transaction did not return")

// call is a message to be stored or an offer to be consumed, while it waits for its group, and its answer.
type call struct {
	ctx     context.Context
	queue   func(b *pgx.Batch) // queues the statements of one try; what an earlier try has found out is forgotten
	person  string             // whose thread is to be locked: by id,
	address string             // or by the address that it is reached at
	our     string
	err     error
	done    chan struct{} // closed once err is final
}

// together runs a call's statements under the lock of its person, in one transaction with those of other calls that wait at
// the same time: they share the lock's statement, the round trip and the commit. An error of one call's statements fails
// nobody but that call.
func (s *Store) together(ctx context.Context, c *call) error {
	c.ctx, c.done = ctx, make(chan struct{})
	s.line.Join(c)
	select {
	case s.lanes <- struct{}{}:
		s.lead(c)
	case <-c.done:
	case <-ctx.Done():
		if s.line.Leave(c) { // mutant: postgres.group-leave
			return ctx.Err()
		}
	}
	<-c.done
	return c.err
}

// lead runs groups until c has its answer. The caller holds a lane, which is given back.
func (s *Store) lead(c *call) {
	defer func() { <-s.lanes }()
	for {
		select {
		case <-c.done:
			return
		default:
		}
		group := s.line.Next(groupSize)
		if len(group) == 0 {
			return // another leader has c
		}
		s.answer(group)
	}
}

// answer runs a group and tells each of its calls how that went.
func (s *Store) answer(group []*call) {
	answered := 0
	defer func() { // where one of them panics, the leader's goroutine is the one that does; nobody else waits for ever
		for _, c := range group[answered:] { // mutant: postgres.group-panic
			c.err = errAborted
			close(c.done)
		}
	}()
	err := s.transaction(group)
	alone := len(group) > 1 && failedStatement(err) // mutant: postgres.group-alone
	for _, c := range group {
		c.err = err
		if alone { // one of them is to blame, and everything is undone
			c.err = s.transaction([]*call{c})
		}
		answered++
		close(c.done)
	}
}

// transaction runs the calls' statements as one pipeline, which is one transaction: first the locks of all their people, in
// one order for every server, then theirs in turn.
func (s *Store) transaction(group []*call) error {
	ctx := group[0].ctx
	if len(group) > 1 { // who gives up takes it from nobody else
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), atMost)
		defer cancel()
	}
	var b pgx.Batch
	people, addresses, ours := make([]string, 0, len(group)), make([]string, 0, len(group)), make([]string, 0, len(group))
	for _, c := range group {
		if c.person != "" {
			people = append(people, c.person)
		} else {
			addresses, ours = append(addresses, c.address), append(ours, c.our)
		}
	}
	b.Queue(lockAll, people, addresses, ours).Exec(discard)
	for _, c := range group {
		c.queue(&b)
	}
	return s.pool.SendBatch(ctx, &b).Close()
}

// lockAll takes the locks of people by their ids and by their addresses. The order of the ids is the same for everybody who
// takes more than one, so that nobody waits in a circle.
const lockAll = `SELECT 1 FROM threads t WHERE t.person_id = ANY (ARRAY(
    SELECT unnest($1::uuid[])
    UNION SELECT a.person_id FROM unnest($2::text[], $3::text[]) AS n (address, our_number) JOIN addresses a ON a.address = n.address AND a.our_number = n.our_number))
  ORDER BY t.person_id FOR NO KEY UPDATE OF t`

// failedStatement says whether the database has refused a statement, and so has undone the transaction. A connection that
// is gone says nothing of what was committed.
func failedStatement(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity == "ERROR"
}
