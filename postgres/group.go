package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// groupSize is how many calls share one transaction at most.
	groupSize = 32
	// maxInFlight is how many groups are under way at once: while one waits for the disk, another works.
	maxInFlight = 2
	// groupTimeout is how long a group may take. A database that does not answer for so long has left its outcome open.
	groupTimeout = 10 * time.Second
)

// errAborted is the error of a call whose group ended without an answer.
var errAborted = errors.New("postgres: another call of the same transaction did not return")

// call is a message to be stored or an offer to be consumed, while it waits for its group, and its answer.
type call struct {
	ctx       context.Context
	statement *statement
	args      []any                // those that all calls of the statement share, then a value for each of its columns
	reset     func()               // before each try: forgets what an earlier one has found out
	row       func(pgx.Rows) error // takes a row of the answer
	person    string               // whose thread is to be locked: by id,
	address   string               // or by the address that it is reached at
	our       string
	err       error
	done      chan struct{} // closed once err is final
}

// together runs a call's statements under the lock of its person, in one transaction with those of other calls that wait at
// the same time: they share the lock's statement, the round trip and the commit. An error of one call's statements fails
// nobody but that call.
func (s *Store) together(ctx context.Context, c *call) error {
	c.ctx, c.done = ctx, make(chan struct{})
	s.waiting.Push(c)
	select {
	case s.inFlight <- struct{}{}:
		s.lead(c)
	case <-c.done:
	case <-ctx.Done():
		if s.waiting.Remove(c) { // mutant: postgres.group-leave
			return ctx.Err()
		}
	}
	<-c.done
	return c.err
}

// lead runs groups until c has its answer. The caller holds a place in flight, which is given back.
func (s *Store) lead(c *call) {
	defer func() { <-s.inFlight }()
	for {
		select {
		case <-c.done:
			return
		default:
		}
		group := s.waiting.Pop(groupSize)
		if len(group) == 0 {
			return // another leader has c
		}
		s.answer(group)
	}
}

// answer runs a group and tells each of its calls how that went.
func (s *Store) answer(group []*call) {
	answered := 0
	defer func() { // a call that panics does so in the leader's goroutine: the others must not wait for ever
		for _, c := range group[answered:] { // mutant: postgres.group-panic
			c.err = errAborted
			close(c.done)
		}
	}()
	err := s.transaction(group)
	alone := len(group) > 1 && failedStatement(err) // mutant: postgres.group-alone
	for _, c := range group {
		c.err = err
		if alone { // one call is to blame, and the database has undone all of them: each is tried by itself
			c.err = s.transaction([]*call{c})
		}
		answered++
		close(c.done)
	}
}

// transaction runs the calls' statements as one pipeline, which is one transaction: first the locks of all their people, in
// one order for every server, then the statements.
func (s *Store) transaction(group []*call) error {
	ctx := group[0].ctx
	if len(group) > 1 { // a caller that gives up does not end the transaction of the others
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), groupTimeout)
		defer cancel()
	}
	for _, c := range group {
		c.reset()
	}
	var b pgx.Batch
	queueLocks(&b, group)
	for len(group) > 0 {
		var now []*call
		now, group = distinct(group)
		for _, st := range []*statement{&s.receive, &s.late} { // a message first: it may take back what a yes before it was
			now = st.queueSeveral(&b, now)
		}
		for _, c := range now {
			c.statement.queue(&b, []*call{c})
		}
	}
	return s.pool.SendBatch(ctx, &b).Close()
}

// distinct splits a group so that no two calls of first are of the same person, as far as that is known: a statement does not
// see what it does itself. Where one person's addresses hide behind two calls, their numbers clash, and each is tried alone.
func distinct(group []*call) (first, rest []*call) {
	seen := make(map[string]bool, len(group))
	for _, c := range group {
		key := c.person + "\x00" + c.address + "\x00" + c.our
		if seen[key] { // mutant: postgres.group-distinct
			rest = append(rest, c)
			continue
		}
		seen[key] = true
		first = append(first, c)
	}
	return first, rest
}

// queueLocks takes the locks of the group's people.
func queueLocks(b *pgx.Batch, group []*call) {
	if c := group[0]; len(group) == 1 && c.person != "" {
		b.Queue(lockPerson, c.person).Exec(discard)
		return
	} else if len(group) == 1 {
		b.Queue(lockAddress, c.address, c.our).Exec(discard)
		return
	}
	people, addresses, ours := make([]string, 0, len(group)), make([]string, 0, len(group)), make([]string, 0, len(group))
	for _, c := range group {
		if c.person != "" {
			people = append(people, c.person)
		} else {
			addresses, ours = append(addresses, c.address), append(ours, c.our)
		}
	}
	b.Queue(lockAll, people, addresses, ours).Exec(discard)
}

const (
	lockPerson  = `SELECT 1 FROM threads WHERE person_id = $1 FOR NO KEY UPDATE`
	lockAddress = `SELECT 1 FROM threads t WHERE t.person_id = (SELECT a.person_id FROM addresses a WHERE a.address = $1 AND a.our_number = $2) FOR NO KEY UPDATE`
)

// lockAll takes the locks of people by their ids and by their addresses. The order of the ids is the same for everybody who
// takes more than one, so that nobody waits in a circle.
const lockAll = `SELECT 1 FROM threads t WHERE t.person_id = ANY (ARRAY(
    SELECT unnest($1::text[])::uuid
    UNION SELECT a.person_id FROM unnest($2::text[], $3::text[]) AS n (address, our_number) JOIN addresses a ON a.address = n.address AND a.our_number = n.our_number))
  ORDER BY t.person_id FOR NO KEY UPDATE OF t`

// statement is what calls of one kind run: each alone, or several at once. Both read the calls' arguments from q, and their
// rows begin with the place of the call that they belong to, from 1, which is q.call.
type statement struct {
	shared         int    // how many parameters all calls share; they come first
	alone, several string // no form for one: it takes the other
}

// newStatement makes the two forms of a statement: body goes on behind the CTE q, whose columns are "name type" each. Alone,
// the columns are parameters, which the planner puts in their places; starting a statement costs more than running it for one
// more call.
func newStatement(shared int, columns []string, body string) statement {
	names, values, arrays, casts := make([]string, len(columns)), make([]string, len(columns)), make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		name, kind, _ := strings.Cut(column, " ")
		names[i], casts[i] = name, name
		values[i] = fmt.Sprintf("$%d::%s AS %s", shared+i+1, kind, name)
		if kind == "uuid" { // the driver has no array of ids that are written out
			kind, casts[i] = "text", name+"::uuid"
		}
		arrays[i] = fmt.Sprintf("$%d::%s[]", shared+i+1, kind)
	}
	return statement{
		shared: shared,
		alone:  `WITH q AS NOT MATERIALIZED (SELECT 1::bigint AS call, ` + strings.Join(values, ", ") + `)` + body,
		several: `WITH q AS MATERIALIZED (SELECT call, ` + strings.Join(casts, ", ") + ` FROM unnest(` + strings.Join(arrays, ", ") + `)
  WITH ORDINALITY AS u (` + strings.Join(names, ", ") + `, call))` + body,
	}
}

// queueSeveral queues the statement for those of the calls that run it, and returns the others.
func (st *statement) queueSeveral(b *pgx.Batch, calls []*call) (others []*call) {
	var mine []*call
	for _, c := range calls {
		if c.statement == st {
			mine = append(mine, c)
		} else {
			others = append(others, c)
		}
	}
	if len(mine) > 0 {
		st.queue(b, mine)
	}
	return others
}

// queue queues the statement for calls of different people.
func (st *statement) queue(b *pgx.Batch, calls []*call) {
	if len(calls) == 1 && st.alone != "" {
		b.Queue(st.alone, calls[0].args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := calls[0].row(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
		return
	}
	args := append([]any(nil), calls[0].args...)
	for i := st.shared; i < len(args); i++ {
		column := make([]any, len(calls))
		for n, c := range calls {
			column[n] = c.args[i]
		}
		args[i] = column
	}
	b.Queue(st.several, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var place int
			if err := rows.Scan(append([]any{&place}, make([]any, len(rows.FieldDescriptions())-1)...)...); err != nil {
				return err
			}
			if err := calls[place-1].row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// failedStatement says whether the database has refused a statement, and so has undone the transaction. A connection that
// is gone says nothing of what was committed.
func failedStatement(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity == "ERROR"
}
