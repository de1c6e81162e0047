package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Sizes of a page of events.
const (
	defaultEvents = 100
	maxEvents     = 1000
)

type eventsQuery struct {
	After string `query:"after" doc:"the position that the last page ended at; empty: from the start"`
	Wait  string `query:"wait" doc:"with nothing new, answer when there is, or after this long: 30s, at most 60s"`
	Limit int    `query:"limit" minimum:"0" maximum:"1000" doc:"default 100"`
}

type eventPage struct {
	Body struct {
		Events []offers.Event `json:"events" doc:"in commit order, without gaps"`
		Next   string         `json:"next" doc:"opaque: the after of the next call"`
	}
}

func (s *server) events() {
	register(s, huma.Operation{
		OperationID: "read-events", Method: http.MethodGet, Path: "/v1/events", Summary: "Read events", Tags: []string{"events"},
	}, agentAndOwner, func(ctx context.Context, q *eventsQuery) (*eventPage, error) {
		wait, err := waitParam(q.Wait)
		if err != nil {
			return nil, err
		}
		limit := q.Limit
		if limit == 0 {
			limit = defaultEvents
		}
		ear := listener{s: s, key: key(ctx)}
		out := &eventPage{}
		err = s.until(ctx, wait, lag, func() (bool, error) {
			if err := ear.mark(ctx); err != nil {
				return false, err
			}
			list, next, err := s.Store.Events(ctx, key(ctx).AccountID, q.After, min(limit, maxEvents))
			if list == nil {
				list = []offers.Event{}
			}
			out.Body.Events, out.Body.Next = list, next
			return len(list) > 0, err
		})
		if err != nil {
			return nil, err
		}
		return out, ear.end(ctx)
	})
}

// listener remembers that an agent listens, from the beginning of a poll to its end: a poll may last as long as the
// mark of one counts.
type listener struct {
	s      *server
	key    people.Key
	marked time.Time // zero: not yet
}

// mark says so where the last time is a while ago.
func (l *listener) mark(ctx context.Context) error {
	if l.key.Scope != people.ScopeAgent { // mutant: api.listener-scope
		return nil // whoever only looks on answers nobody
	}
	if now := time.Now(); l.marked.IsZero() || now.Sub(l.marked) > offers.PollMark {
		l.marked = now
		return l.s.Store.Polled(ctx, l.key.ID)
	}
	return nil
}

// end marks a poll that was seen to its end; who gave it up does not listen any more.
func (l *listener) end(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	l.marked = time.Time{}
	return l.mark(ctx)
}
