package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/offers"
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
		if err := s.Store.Polled(ctx, key(ctx).ID); err != nil {
			return nil, err
		}
		out := &eventPage{}
		err = s.until(ctx, wait, func() (bool, error) {
			list, next, err := s.Store.Events(ctx, key(ctx).AccountID, q.After, min(limit, maxEvents))
			if list == nil {
				list = []offers.Event{}
			}
			out.Body.Events, out.Body.Next = list, next
			return len(list) > 0, err
		})
		return out, err
	})
}
