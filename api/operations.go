package api

import (
	"context"
	"net/http"

	stdjson "encoding/json"
	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/offers"
)

// rawObject is a JSON object that is kept as it came.
type rawObject stdjson.RawMessage

// UnmarshalJSON implements json.Unmarshaler; anything but an object is refused.
func (r *rawObject) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return problem(http.StatusBadRequest, "bad_request", "want a JSON object")
	}
	*r = append((*r)[:0], b...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (r rawObject) MarshalJSON() ([]byte, error) { return stdjson.RawMessage(r).MarshalJSON() }

// Schema implements huma.SchemaProvider.
func (rawObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

type operationOutput struct {
	Body offers.Operation
}

type operationQuery struct {
	ID   string `path:"id"`
	Wait string `query:"wait" doc:"answer when the operation is no longer asked or settling, or after this long: 30s, at most 60s"`
}

type beginRequest struct {
	ArgsSHA256 string    `json:"args_sha256,omitempty" doc:"hex SHA-256 of the canonical arguments that are about to run; or args"`
	Args       rawObject `json:"args,omitempty" doc:"the arguments themselves"`
}

type beginInput struct {
	ID      string `path:"id"`
	RawBody []byte
}

type beginOutput struct {
	Body struct {
		Operation offers.Operation `json:"operation"`
		Args      rawObject        `json:"args" doc:"the exact arguments that were shown and approved"`
	}
}

type resultRequest struct {
	Status string  `json:"status" enum:"succeeded,failed"`
	Output rawJSON `json:"output,omitempty" doc:"any JSON, at most 64 KiB; kept, never shown to the person"`
}

func (s *server) operations() {
	register(s, huma.Operation{
		OperationID: "get-operation", Method: http.MethodGet, Path: "/v1/operations/{id}", Summary: "One operation", Tags: []string{"operations"},
		Description: "With wait, answers when a person has decided, or when the time is over.",
	}, readers, s.operation)
	register(s, huma.Operation{
		OperationID: "begin-operation", Method: http.MethodPost, Path: "/v1/operations/{id}/begin", Summary: "Begin, once", Tags: []string{"operations"},
		RequestBody: described[beginRequest](s.api),
		Description: "The first correct begin of an approved or allowed operation gets the exact arguments. Other arguments: 422 args_hash_mismatch. A second begin: 409 already_begun with the earlier result.",
	}, runners, s.begin)
	register(s, huma.Operation{
		OperationID: "report-result", Method: http.MethodPost, Path: "/v1/operations/{id}/result", Summary: "Report the result", Tags: []string{"operations"},
		RequestBody: described[resultRequest](s.api), Description: "Closes a begun operation; the person gets a receipt.",
	}, runners, s.result)
}

func (s *server) operation(ctx context.Context, in *operationQuery) (*operationOutput, error) {
	wait, err := waitParam(in.Wait)
	if err != nil {
		return nil, err
	}
	out := &operationOutput{}
	err = s.until(ctx, wait, 0, func() (bool, error) {
		op, err := s.Store.Operation(ctx, key(ctx).AccountID, in.ID)
		out.Body = op
		return op.State != offers.OpAsked && op.State != offers.OpSettling, err
	})
	return out, err
}

func (s *server) begin(ctx context.Context, in *beginInput) (*beginOutput, error) {
	var req beginRequest
	if _, err := body(in.RawBody, &req); err != nil {
		return nil, err
	}
	if (req.ArgsSHA256 == "") == (len(req.Args) == 0) {
		return nil, problem(http.StatusBadRequest, "bad_request", "Send args_sha256 or args, not both.")
	}
	var sum offers.Digest
	var err error
	if req.ArgsSHA256 != "" {
		sum, err = offers.ParseHex(req.ArgsSHA256)
	} else {
		_, sum, err = offers.Canonical(req.Args)
	}
	if err != nil {
		return nil, err
	}
	op, err := s.Store.Begin(ctx, offers.BeginRequest{AccountID: key(ctx).AccountID, OperationID: in.ID, ArgsSum: sum, By: key(ctx).ID})
	if err != nil {
		if p := known(err); p != nil && p.Status == http.StatusConflict {
			return nil, conflict(p, op)
		}
		return nil, err
	}
	s.Wake.Signal()
	out := &beginOutput{}
	out.Body.Operation, out.Body.Args = op, rawObject(op.Args)
	return out, nil
}

// maxOutput bounds what is kept of a result, in bytes.
const maxOutput = 64 << 10

func (s *server) result(ctx context.Context, in *beginInput) (*operationOutput, error) {
	var req resultRequest
	if _, err := body(in.RawBody, &req); err != nil {
		return nil, err
	}
	if req.Status != string(offers.OpSucceeded) && req.Status != string(offers.OpFailed) {
		return nil, problem(http.StatusBadRequest, "bad_request", "status must be succeeded or failed.")
	}
	if len(req.Output) > maxOutput {
		return nil, problem(http.StatusRequestEntityTooLarge, "body_too_large", "output must be at most 64 KiB.")
	}
	op, err := s.Store.Operation(ctx, key(ctx).AccountID, in.ID)
	if err != nil {
		return nil, err
	}
	receipt := ""
	if op.Offer != nil {
		receipt = offers.Receipt(*op.Offer, req.Status)
	}
	op, err = s.Store.Finish(ctx, offers.FinishRequest{
		AccountID: key(ctx).AccountID, OperationID: in.ID, Receipt: receipt, SetsUp: offers.SetsUp(op, s.Proposer.Policy()),
		Result: offers.Result{Status: req.Status, Output: stdjson.RawMessage(req.Output)},
	})
	if err != nil {
		if p := known(err); p != nil && p.Status == http.StatusConflict {
			if p.Code == "already_begun" {
				p = problem(http.StatusConflict, "already_closed", "Another result is there already.")
			}
			return nil, conflict(p, op)
		}
		return nil, err
	}
	s.Wake.Signal()
	return &operationOutput{op}, nil
}
