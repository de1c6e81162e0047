package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// offerRequest is the body of POST /v1/offers.
type offerRequest struct {
	PersonID   string         `json:"person_id,omitempty" doc:"who is asked; or address"`
	Address    string         `json:"address,omitempty" doc:"sms:+E.164, whatsapp:+E.164 or sim:name of who is asked" example:"sms:+12025550102"`
	Tool       string         `json:"tool" doc:"what is to be run" example:"email.send"`
	Args       rawObject      `json:"args" doc:"the exact arguments: shown, hashed and released as they are"`
	Present    offers.Present `json:"present,omitempty" enum:"queue,now" doc:"queue (default): one offer at a time; now: at once, and no yes is acted on while two are open"`
	Supersedes string         `json:"supersedes,omitempty" doc:"id of an offer to the same person that this one replaces"`
}

// offerAnswer is an offer with the gate's decision about it.
type offerAnswer struct {
	offers.Offer
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

type offerInput struct {
	Key     string `header:"Idempotency-Key" doc:"required; the same key with the same body gets the earlier answer"`
	RawBody []byte
}

type offerOutput struct {
	Body offerAnswer
}

type oneOffer struct {
	Body offers.Offer
}

type offerList struct {
	Body struct {
		Offers []offers.Offer `json:"offers" doc:"newest first"`
	}
}

type offerQuery struct {
	PersonID string `query:"person_id"`
	State    string `query:"state" doc:"one state of an offer"`
	Limit    int    `query:"limit" minimum:"0" maximum:"1000" doc:"default 100"`
}

type byID struct {
	ID string `path:"id"`
}

var (
	agentAndOwner = []people.Scope{people.ScopeAgent, people.ScopeOwner}
	readers       = []people.Scope{people.ScopeAgent, people.ScopeOwner, people.ScopeExecutor}
	runners       = []people.Scope{people.ScopeAgent, people.ScopeExecutor}
)

func (s *server) offers() {
	register(s, huma.Operation{
		OperationID: "enqueue-offer", Method: http.MethodPost, Path: "/v1/offers", DefaultStatus: http.StatusCreated,
		Summary: "Enqueue an offer", Tags: []string{"offers"}, RequestBody: described[offerRequest](s.api),
		Description: "Puts exact arguments to a person by text. The gate may refuse (422), and never allows unasked. Needs an Idempotency-Key.",
	}, agentAndOwner, s.enqueue)
	register(s, huma.Operation{
		OperationID: "list-offers", Method: http.MethodGet, Path: "/v1/offers", Summary: "List offers", Tags: []string{"offers"},
	}, agentAndOwner, func(ctx context.Context, q *offerQuery) (*offerList, error) {
		list, err := s.Store.Offers(ctx, key(ctx).AccountID, offers.Filter{PersonID: q.PersonID, State: offers.State(q.State), Limit: q.Limit})
		if err != nil {
			return nil, err
		}
		out := &offerList{}
		out.Body.Offers = list
		if list == nil {
			out.Body.Offers = []offers.Offer{}
		}
		return out, nil
	})
	register(s, huma.Operation{
		OperationID: "get-offer", Method: http.MethodGet, Path: "/v1/offers/{id}", Summary: "One offer", Tags: []string{"offers"},
	}, agentAndOwner, func(ctx context.Context, in *byID) (*oneOffer, error) {
		o, err := s.Store.Offer(ctx, key(ctx).AccountID, in.ID)
		return &oneOffer{o}, err
	})
	register(s, huma.Operation{
		OperationID: "withdraw-offer", Method: http.MethodDelete, Path: "/v1/offers/{id}", Summary: "Withdraw an offer", Tags: []string{"offers"},
		Description: "409 offer_closed once a yes, a no or the clock was faster.",
	}, agentAndOwner, func(ctx context.Context, in *byID) (*oneOffer, error) {
		by := offers.ByAgent
		if key(ctx).Scope == people.ScopeOwner {
			by = offers.ByOwner
		}
		o, err := s.Store.Withdraw(ctx, key(ctx).AccountID, in.ID, offers.Closer{By: by})
		if p := known(err); p != nil && p.Code == "offer_closed" {
			p.State = string(o.State)
			return nil, p
		}
		if err != nil {
			return nil, err
		}
		s.Wake.Signal()
		return &oneOffer{o}, nil
	})
}

// maxKey bounds what is kept for ever.
const maxKey = 255

func (s *server) enqueue(ctx context.Context, in *offerInput) (*offerOutput, error) {
	if in.Key == "" || len(in.Key) > maxKey {
		return nil, problem(http.StatusBadRequest, "idempotency_required", "Send an Idempotency-Key header of 1 to 255 bytes.")
	}
	var req offerRequest
	sum, err := body(in.RawBody, &req)
	if err != nil {
		return nil, err
	}
	switch {
	case req.Tool == "":
		return nil, problem(http.StatusBadRequest, "bad_request", "tool is missing.")
	case len(req.Args) == 0:
		return nil, problem(http.StatusBadRequest, "bad_request", "args must be a JSON object.")
	case (req.PersonID == "") == (req.Address == ""):
		return nil, problem(http.StatusBadRequest, "bad_request", "Name the person by person_id or by address, not both.")
	case req.Present != "" && req.Present != offers.PresentNow && req.Present != offers.PresentQueue:
		return nil, problem(http.StatusBadRequest, "bad_request", "present must be queue or now.")
	}
	var addr people.Address
	if req.Address != "" {
		if addr, err = people.ParseAddress(req.Address); err != nil {
			return nil, err
		}
	}
	op, _, err := s.Proposer.Propose(ctx, offers.Request{
		AccountID: key(ctx).AccountID, Call: "POST /v1/offers", Key: in.Key, BodySum: sum, KeyID: key(ctx).ID, PersonID: req.PersonID, Address: addr,
		Kind: string(gate.KindToolCall), Tool: req.Tool, Args: req.Args, Supersedes: req.Supersedes, Present: req.Present,
	})
	if err != nil {
		return nil, err
	}
	s.Wake.Signal()
	if op.Offer == nil {
		return nil, refused(op)
	}
	return &offerOutput{offerAnswer{*op.Offer, op.Decision, op.Reason}}, nil
}

// refused is the problem for an operation that the gate refused.
func refused(op offers.Operation) *Problem {
	p := problem(http.StatusUnprocessableEntity, strings.ToLower(op.Reason), op.Detail)
	p.Decision, p.Reason, p.OperationID = op.Decision, op.Reason, op.ID
	return p
}
