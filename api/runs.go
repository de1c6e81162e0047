package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
)

type runRequest struct {
	Cause runCause `json:"cause" doc:"exactly one of its members"`
}

type runCause struct {
	MessageID   string              `json:"message_id,omitempty" doc:"the run of a trusted message, for one hour"`
	ParentRunID string              `json:"parent_run_id,omitempty" doc:"a run derived from another: same tier, taint and root, not interactive"`
	Schedule    *offers.ScheduleRef `json:"schedule,omitempty" doc:"a run of what an approved operation has set up"`
}

type rawInput struct {
	RawBody []byte
}

type runOutput struct {
	Body offers.Run
}

type taintRequest struct {
	Source string `json:"source" doc:"what was read, in a word or two; not kept"`
}

type taintInput struct {
	ID      string `path:"id"`
	RawBody []byte
}

type operationRequest struct {
	RunID      string         `json:"run_id"`
	Kind       string         `json:"kind" enum:"model_call,tool_call,outbound_message,memory_write,background_job"`
	Tool       string         `json:"tool,omitempty"`
	Args       rawObject      `json:"args"`
	Supersedes string         `json:"supersedes,omitempty"`
	Present    offers.Present `json:"present,omitempty" enum:"queue,now"`
}

type confirmRequest struct {
	RunID     string    `json:"run_id" doc:"the cited message's own run"`
	MessageID string    `json:"message_id" doc:"the person's message that says yes"`
	Quote     string    `json:"quote" doc:"the whole of the person's own words in it"`
	Args      rawObject `json:"args" doc:"the offer's arguments"`
}

var agentOnly = []people.Scope{people.ScopeAgent}

func (s *server) runs() {
	register(s, huma.Operation{
		OperationID: "start-run", Method: http.MethodPost, Path: "/v1/runs", DefaultStatus: http.StatusCreated,
		Summary: "Start a run", Tags: []string{"runs"}, RequestBody: described[runRequest](s.api),
		Description: "Authority and taint are derived by the server; a caller names only the cause.",
	}, agentAndOwner, s.startRun)
	register(s, huma.Operation{
		OperationID: "taint-run", Method: http.MethodPost, Path: "/v1/runs/{id}/taint",
		Summary: "Mark a run as tainted", Tags: []string{"runs"}, RequestBody: described[taintRequest](s.api),
		Description: "The run and everything of its root has read what a stranger may have written. Nothing unmarks.",
	}, agentAndOwner, func(ctx context.Context, in *taintInput) (*runOutput, error) {
		var req taintRequest
		if _, err := body(in.RawBody, &req); err != nil {
			return nil, err
		}
		if req.Source == "" || len(req.Source) > 200 {
			return nil, problem(http.StatusBadRequest, "bad_request", "source must say in 1 to 200 bytes what was read.")
		}
		r, err := s.Store.Taint(ctx, key(ctx).AccountID, in.ID)
		return &runOutput{r}, err
	})
	register(s, huma.Operation{
		OperationID: "propose-operation", Method: http.MethodPost, Path: "/v1/operations", DefaultStatus: http.StatusCreated,
		Summary: "Propose an operation", Tags: []string{"operations"}, RequestBody: described[operationRequest](s.api),
		Description: "Allowed, asked or refused. An ask comes with its offer. Needs an Idempotency-Key.",
	}, agentAndOwner, s.propose)
	register(s, huma.Operation{
		OperationID: "confirm-offer", Method: http.MethodPost, Path: "/v1/offers/{id}/confirm",
		Summary: "Confirm by a cited message", Tags: []string{"offers"}, RequestBody: described[confirmRequest](s.api),
		Description: "For a main model: which offer a person's yes was for, where code left it open. The message must be a yes on its own; the quote must be the whole of it.",
	}, agentOnly, s.confirm)
}

func (s *server) startRun(ctx context.Context, in *rawInput) (*runOutput, error) {
	var req runRequest
	if _, err := body(in.RawBody, &req); err != nil {
		return nil, err
	}
	c := req.Cause
	n := 0
	for _, set := range []bool{c.MessageID != "", c.ParentRunID != "", c.Schedule != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return nil, problem(http.StatusBadRequest, "bad_request", "cause must have exactly one of message_id, parent_run_id and schedule.")
	}
	r, err := s.Store.StartRun(ctx, key(ctx).AccountID, offers.StartCause{MessageID: c.MessageID, ParentRunID: c.ParentRunID, Schedule: c.Schedule})
	return &runOutput{r}, err
}

func (s *server) propose(ctx context.Context, in *offerInput) (*operationOutput, error) {
	if in.Key == "" || len(in.Key) > maxKey {
		return nil, problem(http.StatusBadRequest, "idempotency_required", "Send an Idempotency-Key header of 1 to 255 bytes.")
	}
	var req operationRequest
	sum, err := body(in.RawBody, &req)
	if err != nil {
		return nil, err
	}
	switch {
	case req.RunID == "":
		return nil, problem(http.StatusBadRequest, "bad_request", "run_id is missing.")
	case len(req.Args) == 0:
		return nil, problem(http.StatusBadRequest, "bad_request", "args must be a JSON object.")
	case req.Present != "" && req.Present != offers.PresentNow && req.Present != offers.PresentQueue:
		return nil, problem(http.StatusBadRequest, "bad_request", "present must be queue or now.")
	}
	op, _, err := s.Proposer.Propose(ctx, offers.Request{
		AccountID: key(ctx).AccountID, Call: "POST /v1/operations", Key: in.Key, BodySum: sum, KeyID: key(ctx).ID, RunID: req.RunID,
		Kind: req.Kind, Tool: req.Tool, Args: req.Args, Supersedes: req.Supersedes, Present: req.Present,
	})
	if err != nil {
		return nil, err
	}
	s.Wake.Signal()
	if op.State == offers.OpRefused && op.Rule == "1" {
		return nil, refused(op)
	}
	return &operationOutput{op}, nil
}

func (s *server) confirm(ctx context.Context, in *beginInput) (*oneOffer, error) {
	var req confirmRequest
	if _, err := body(in.RawBody, &req); err != nil {
		return nil, err
	}
	if req.RunID == "" || req.MessageID == "" || req.Quote == "" || len(req.Args) == 0 {
		return nil, problem(http.StatusBadRequest, "bad_request", "Send run_id, message_id, quote and args.")
	}
	_, sum, err := offers.Canonical(req.Args)
	if err != nil {
		return nil, err
	}
	win, err := s.Confirms.Confirm(ctx, reply.ConfirmRequest{
		AccountID: key(ctx).AccountID, OfferID: in.ID, RunID: req.RunID, MessageID: req.MessageID, Quote: req.Quote, ArgsSum: sum,
	})
	if err != nil {
		return nil, err
	}
	return &oneOffer{win.Offer}, nil
}

type checkRequest struct {
	Tool        string    `json:"tool"`
	Args        rawObject `json:"args"`
	Kind        string    `json:"kind,omitempty" doc:"default tool_call"`
	PersonID    string    `json:"person_id,omitempty" doc:"whose run it would be; left out: the account's first owner"`
	Tainted     bool      `json:"tainted,omitempty"`
	Interactive *bool     `json:"interactive,omitempty" doc:"default true"`
}

type checkOutput struct {
	Body struct {
		Decision   string `json:"decision"`
		Reason     string `json:"reason"`
		Rule       string `json:"rule"`
		Tier       string `json:"tier"`
		Capability string `json:"capability"`
		Detail     string `json:"detail"`
		Grant      string `json:"grant,omitempty" doc:"the permission of the person that an allow rests on"`
	}
}

type toolsQuery struct {
	Format string `query:"format" enum:"openai,mcp" doc:"left out: name, kind, description and schema"`
}

type toolsOutput struct {
	Body struct {
		Tools []any `json:"tools"`
	}
}

func (s *server) gate() {
	register(s, huma.Operation{
		OperationID: "check-gate", Method: http.MethodPost, Path: "/v1/gate/check", Summary: "What would the gate say", Tags: []string{"gate"},
		RequestBody: described[checkRequest](s.api), Description: "A dry decision; nothing is stored.",
	}, agentAndOwner, s.check)
	register(s, huma.Operation{
		OperationID: "list-tools", Method: http.MethodGet, Path: "/v1/tools", Summary: "Tools for a model", Tags: []string{"gate"},
		Description: "Schemas without any confirmation parameter: a model cannot say yes.",
	}, agentAndOwner, func(_ context.Context, q *toolsQuery) (*toolsOutput, error) {
		out := &toolsOutput{}
		out.Body.Tools = toolList(s.Proposer.Policy().Schemas(), q.Format)
		return out, nil
	})
}

func (s *server) check(ctx context.Context, in *rawInput) (*checkOutput, error) {
	var req checkRequest
	if _, err := body(in.RawBody, &req); err != nil {
		return nil, err
	}
	if len(req.Args) == 0 {
		return nil, problem(http.StatusBadRequest, "bad_request", "args must be a JSON object.")
	}
	args, _, err := offers.Canonical(req.Args)
	if err != nil {
		return nil, err
	}
	kind := gate.Kind(req.Kind)
	if kind == "" {
		kind = gate.KindToolCall
	}
	call := gate.Operation{Kind: kind, Tool: req.Tool, Args: args}
	f, err := s.Store.FactsOf(ctx, key(ctx).AccountID, req.PersonID, s.Proposer.Reaches(call))
	if err != nil {
		return nil, err
	}
	f.Run = offers.Run{Tier: f.Person.Tier, Tainted: req.Tainted, Interactive: req.Interactive == nil || *req.Interactive}
	d := s.Proposer.Check(f, call)
	out := &checkOutput{}
	b := &out.Body
	b.Decision, b.Reason, b.Rule, b.Tier, b.Capability, b.Detail, b.Grant = d.Answer.String(), string(d.Reason), d.Rule, d.Tier, string(d.Capability), d.Detail, d.Grant
	return out, nil
}

// toolList renders tools as model providers take them. A function's name there has no dots.
func toolList(all []gate.ToolSchema, format string) []any {
	out := make([]any, 0, len(all))
	for _, t := range all {
		switch format {
		case "openai":
			out = append(out, map[string]any{"type": "function", "function": map[string]any{
				"name": undotted(t.Name), "description": t.Description, "parameters": t.Schema,
			}})
		case "mcp":
			out = append(out, map[string]any{"name": t.Name, "description": t.Description, "inputSchema": t.Schema})
		default:
			out = append(out, t)
		}
	}
	return out
}

// undotted writes a name in the characters that function names may have; message.send becomes message__send.
func undotted(name string) string {
	out := make([]byte, 0, len(name)+2)
	for i := range len(name) {
		if name[i] == '.' {
			out = append(out, '_', '_')
			continue
		}
		out = append(out, name[i])
	}
	return string(out)
}
