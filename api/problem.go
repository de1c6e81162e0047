package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// Problem is an RFC 9457 problem document with a stable code. Members beyond the first five come with some codes only.
type Problem struct {
	Type   string `json:"type" doc:"about:blank: the code says what it is"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code" doc:"stable; clients switch on this"`
	Detail string `json:"detail" doc:"one sentence; never a value that was sent"`

	Decision    string     `json:"decision,omitempty" doc:"refuse, when the gate refused"`
	Reason      string     `json:"reason,omitempty" doc:"the gate's reason code, or why a confirm was refused"`
	OperationID string     `json:"operation_id,omitempty" doc:"the stored operation that was refused"`
	State       string     `json:"state,omitempty" doc:"of the offer or operation, on a conflict"`
	BegunAt     *time.Time `json:"begun_at,omitempty"`
	BegunBy     string     `json:"begun_by,omitempty"`
	Result      rawJSON    `json:"result,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Code }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType makes errors problem documents.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func problem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// rateLimited is the answer to a call beyond its rate; Retry-After comes with it. Nothing of the call was done.
func rateLimited() *Problem {
	return problem(http.StatusTooManyRequests, "rate_limited", "This key or its account makes more calls than it may. Try again after Retry-After seconds.")
}

// known maps the errors of the domain. Whatever is not here is ours to mend: 500, logged, without its text.
func known(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var r *offers.Refusal
	if errors.As(err, &r) {
		return refusal(r)
	}
	for _, k := range []struct {
		err    error
		status int
		code   string
		detail string
	}{
		{offers.ErrLedgerUnavailable, http.StatusServiceUnavailable, "ledger_unavailable", "The ledger cannot be written, so nothing is done. Try again."},
		{offers.ErrNotFound, http.StatusNotFound, "not_found", "There is nothing with that id in this account."},
		{people.ErrNotFound, http.StatusNotFound, "not_found", "There is nothing with that id in this account."},
		{offers.ErrNoAddress, http.StatusNotFound, "not_found", "No person of this account is bound to that address."},
		{offers.ErrRunExpired, http.StatusConflict, "run_expired", "The run is over: a message's run takes operations for one hour."},
		{offers.ErrIdempotencyConflict, http.StatusUnprocessableEntity, "idempotency_conflict", "This Idempotency-Key was used with another body."},
		{offers.ErrOfferClosed, http.StatusConflict, "offer_closed", "The offer is closed."},
		{offers.ErrCannotBeShown, http.StatusUnprocessableEntity, "offer_cannot_be_shown", "The arguments do not fit into one text in full, so they cannot be approved."},
		{offers.ErrHashMismatch, http.StatusUnprocessableEntity, "args_hash_mismatch", "These are not the arguments that were shown."},
		{offers.ErrAlreadyBegun, http.StatusConflict, "already_begun", "The operation was begun before; see begun_at, begun_by and result."},
		{offers.ErrNotApproved, http.StatusConflict, "not_approved", "The operation is not approved, or its approval has lapsed."},
		{offers.ErrNotBegun, http.StatusConflict, "not_begun", "The operation was not begun, so it has no result."},
		{offers.ErrArgsInvalid, http.StatusBadRequest, "invalid_json", "The body is not one JSON object that can be kept exactly: no doubled names, valid UTF-8, numbers that lose no digits."},
		{offers.ErrSelfConfirm, http.StatusForbidden, "self_confirm", "A run confirms only by its own message, and only untainted."},
		{offers.ErrQuote, http.StatusUnprocessableEntity, "quote_not_in_message", "The quote must be the whole of the person's own words in the cited message."},
		{offers.ErrMessageUsed, http.StatusConflict, "message_used", "The cited message has approved another offer."},
		{offers.ErrNotAYes, http.StatusUnprocessableEntity, "not_a_yes", "The cited message was not read as a yes to this offer."},
		{offers.ErrBadPosition, http.StatusBadRequest, "bad_request", "after is not a position that this feed gave out."},
		{people.ErrBadAddress, http.StatusBadRequest, "bad_request", "address must be sms:+E.164, whatsapp:+E.164 or sim:name."},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "unavailable", "This took too long. Try again."},
	} {
		if errors.Is(err, k.err) {
			return problem(k.status, k.code, k.detail)
		}
	}
	return nil
}

// refusal is what the conditional update says of a confirm.
func refusal(r *offers.Refusal) *Problem {
	p := problem(http.StatusConflict, "not_approved", "The offer cannot be approved by this message.")
	switch r.Why {
	case offers.WhyConsumed, offers.WhyClosed, offers.WhyExpired:
		p = problem(http.StatusConflict, "offer_closed", "The offer is closed.")
	case offers.WhySameRun:
		p = problem(http.StatusForbidden, "self_confirm", "The run that proposed an offer cannot confirm it.")
	case offers.WhyDecided:
		p = problem(http.StatusConflict, "message_used", "The cited message has decided something else.")
	}
	p.Reason = string(r.Why)
	return p
}

// conflict adds what the operation says of itself to a refusal about it.
func conflict(p *Problem, op offers.Operation) *Problem {
	p.State, p.BegunAt, p.BegunBy, p.Result = string(op.State), op.BegunAt, op.BegunBy, rawJSON(op.Result)
	return p
}

// humaError is what the framework's own refusals become. Its messages quote what was sent; ours do not.
func humaError(_ huma.Context, status int, _ string, errs ...error) huma.StatusError {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	var where []string
	for _, err := range errs {
		var d *huma.ErrorDetail
		if errors.As(err, &d) && d.Location != "" {
			where = append(where, d.Location)
		}
	}
	detail := http.StatusText(status)
	if len(where) > 0 {
		detail = "Not valid: " + strings.Join(where, ", ") + "."
	}
	return problem(status, codeOf(status), detail)
}

func codeOf(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not_found"
	case http.StatusMethodNotAllowed:
		return "method_not_allowed"
	case http.StatusRequestEntityTooLarge:
		return "body_too_large"
	case http.StatusUnsupportedMediaType:
		return "unsupported_media_type"
	case http.StatusNotAcceptable:
		return "not_acceptable"
	case http.StatusRequestTimeout:
		return "request_timeout"
	}
	if status >= http.StatusInternalServerError {
		return "internal"
	}
	return "bad_request"
}
