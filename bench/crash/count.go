package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// counts are what a run found.
type counts struct {
	kills, databases                        int
	replies, approvals, begins              int
	lost, lostApprovals, double, withoutYes int
	feed, hook                              delays // of the approvals that a kill lay before
	faults                                  []string
}

func (c counts) bad() bool {
	return c.lost+c.lostApprovals+c.double+c.withoutYes > 0 || len(c.faults) > 0 || c.approvals == 0
}

func (c counts) plus(d counts) counts {
	return counts{
		c.kills + d.kills, c.databases + d.databases, c.replies + d.replies, c.approvals + d.approvals, c.begins + d.begins,
		c.lost + d.lost, c.lostApprovals + d.lostApprovals, c.double + d.double, c.withoutYes + d.withoutYes,
		append(c.feed, d.feed...), append(c.hook, d.hook...), append(c.faults, d.faults...),
	}
}

func (c counts) String() string {
	out := fmt.Sprintf("%d kills, %d of them of the database too; %d replies answered, %d lost; %d approvals, %d lost; %d begun, %d twice, %d without a yes; "+
		"approvals that a kill lay before, after the restart: by the feed %s, by webhook %s",
		c.kills, c.databases, c.replies, c.lost, c.approvals, c.lostApprovals, c.begins, c.double, c.withoutYes, c.feed, c.hook)
	if len(c.faults) > 0 {
		out += fmt.Sprintf("; %d faults, the first: %s", len(c.faults), c.faults[0])
	}
	return out
}

// count compares what everybody was told with what the database holds.
func (p *play) count(ctx context.Context) (counts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := counts{kills: p.killed.servers, databases: p.killed.databases, faults: p.faults}
	messages, err := p.messages(ctx)
	if err != nil {
		return c, err
	}
	by := map[string]*said{} // by message
	for _, s := range p.said {
		m, there := messages[s.sid]
		by[m.id] = s
		if s.answered.IsZero() {
			continue
		}
		c.replies++
		if !there || !m.told {
			c.lost++
		}
	}
	ops, err := p.operations(ctx)
	if err != nil {
		return c, err
	}
	for id, op := range ops {
		if op.consumed != "" {
			c.approvals++
			reply := by[op.consumed]
			if gone := p.told["feed"][id].IsZero() || p.begun[id] > 0 && op.begun == 0 || p.ended[id] && op.state != "succeeded" || op.consumed != "" && op.rows != 1; gone {
				c.lostApprovals++
			}
			if reply != nil {
				p.waited(&c, id, reply, op.approved)
			}
		}
		if op.begun > 0 {
			c.begins++
		}
		if op.begun > 1 || p.begun[id] > 1 {
			c.double++
		}
		if op.begun > 0 || p.begun[id] > 0 {
			reply := by[op.consumed]
			if reply == nil || !reply.yes || "sms:"+reply.number != op.address || !reply.screen[op.mark] {
				c.withoutYes++
			}
		}
	}
	for id := range p.begun { // handed out, and not there at all
		if _, there := ops[id]; !there {
			c.withoutYes++
		}
	}
	return c, nil
}

// waited notes how long after a restart an approval came that was due before the kill: its reply had been answered, or it
// had been committed.
func (p *play) waited(c *counts, id string, reply *said, committed time.Time) {
	known := committed
	if !reply.answered.IsZero() && reply.answered.Before(known) {
		known = reply.answered
	}
	if d := p.record.after(known, p.told["feed"][id]); d > 0 {
		c.feed = append(c.feed, d)
	}
	if came := p.told["webhook"][id]; !came.IsZero() {
		if d := p.record.after(known, came); d > 0 {
			c.hook = append(c.hook, d)
		}
	}
}

// soon is within which an approval is to come after a restart.
const soon = 1100 * time.Millisecond

// delays are from the moment when the restarted server listens.
type delays []time.Duration

// at is the delay that the given share of all stayed within; 0 of none.
func (d delays) at(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(d))[min(len(d)-1, int(share*float64(len(d))))]
}

func (d delays) String() string {
	slow := 0
	for _, x := range d {
		if x > soon {
			slow++
		}
	}
	return fmt.Sprintf("%d, median %d ms, 99 %% within %d ms, the latest %d ms, %d over %v",
		len(d), d.at(0.5).Milliseconds(), d.at(0.99).Milliseconds(), d.at(1).Milliseconds(), slow, soon)
}

type message struct {
	id   string
	told bool // the agent was told of it, or it changed an operation
}

// messages reads what became of each, by the provider's id.
func (p *play) messages(ctx context.Context) (map[string]message, error) {
	rows, err := p.db.rows(ctx, `SELECT m.provider_id, CAST(m.id AS TEXT), CASE WHEN m.decided_at IS NULL THEN '' ELSE 'decided' END FROM messages m`)
	if err != nil {
		return nil, err
	}
	outcome := map[string]bool{}
	closers, err := p.db.rows(ctx, `SELECT CAST(closed_by AS TEXT) FROM offers WHERE closed_by IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	events, err := p.db.rows(ctx, `SELECT CAST(data AS TEXT) FROM events WHERE type IN ('message.received', 'reply.unresolved')`)
	if err != nil {
		return nil, err
	}
	for _, r := range append(closers, events...) {
		var x struct {
			MessageID string `json:"message_id"`
		}
		if err := json.Unmarshal([]byte(r[0]), &x); err != nil {
			return nil, err
		}
		outcome[x.MessageID] = true
	}
	out := map[string]message{}
	for _, r := range rows {
		out[r[0]] = message{r[1], r[2] == "decided" && outcome[r[1]]}
	}
	return out, nil
}

type operation struct {
	state, consumed, address, mark string
	rows, begun                    int // of the ledger
	approved                       time.Time
}

// operations reads every operation that was asked.
func (p *play) operations(ctx context.Context) (map[string]operation, error) {
	rows, err := p.db.rows(ctx, `SELECT CAST(x.id AS TEXT), x.state, coalesce(CAST(o.consumed_by AS TEXT), ''), o.address, o.shown_text,
		CAST((SELECT count(*) FROM ledger l WHERE l.operation_id = x.id AND l.kind = 'consumed') AS TEXT),
		CAST((SELECT count(*) FROM ledger l WHERE l.operation_id = x.id AND l.kind = 'begun') AS TEXT) FROM operations x JOIN offers o ON o.operation_id = x.id`)
	if err != nil {
		return nil, err
	}
	out := map[string]operation{}
	for _, r := range rows {
		op := operation{state: r[1], consumed: r[2], address: r[3], mark: marks.FindString(r[4])}
		if _, err := fmt.Sscan(strings.Join(r[5:], " "), &op.rows, &op.begun); err != nil {
			return nil, err
		}
		out[r[0]] = op
	}
	events, err := p.db.rows(ctx, `SELECT CAST(data AS TEXT), CAST(at AS TEXT) FROM events WHERE type = 'operation.approved'`)
	if err != nil {
		return nil, err
	}
	for _, r := range events {
		var d struct {
			Operation struct{ ID string } `json:"operation"`
		}
		if err := json.Unmarshal([]byte(r[0]), &d); err != nil {
			return nil, err
		}
		op := out[d.Operation.ID]
		if op.approved, err = moment(r[1]); err != nil {
			return nil, err
		}
		out[d.Operation.ID] = op
	}
	return out, nil
}

// moment reads a time as either store writes it: microseconds since 1970, or PostgreSQL's text.
func moment(s string) (time.Time, error) {
	var us int64
	if !strings.Contains(s, "-") {
		_, err := fmt.Sscan(s, &us)
		return time.UnixMicro(us), err
	}
	return time.Parse("2006-01-02 15:04:05.999999-07", s)
}
