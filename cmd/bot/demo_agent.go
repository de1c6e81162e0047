package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/countersign/countersign/offers"
)

// agentClient is an agent's side of the API, with nothing but HTTP.
type agentClient struct {
	base string
	key  string
}

// httpAnswer is a status and a body.
type httpAnswer struct {
	status int
	body   []byte
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// do makes one call. An error means that there was no whole answer.
func (a *agentClient) do(ctx context.Context, method, path, idempotencyKey string, body []byte) (httpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return httpAnswer{}, err
	}
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	return roundTrip(req)
}

func roundTrip(req *http.Request) (httpAnswer, error) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return httpAnswer{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return httpAnswer{res.StatusCode, raw}, err
}

func (a *agentClient) post(ctx context.Context, path, idempotencyKey string, body any) (httpAnswer, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return httpAnswer{}, err
	}
	return a.do(ctx, http.MethodPost, path, idempotencyKey, b.Bytes())
}

func (a *agentClient) get(ctx context.Context, path string) (httpAnswer, error) {
	return a.do(ctx, http.MethodGet, path, "", nil)
}

// eventPage is an answer of the feed.
type eventPage struct {
	Events []offers.Event `json:"events"`
	Next   string         `json:"next"`
}

func (a *agentClient) events(ctx context.Context, after, wait string) (eventPage, error) {
	got, err := a.get(ctx, "/v1/events?"+url.Values{"after": {after}, "wait": {wait}, "limit": {"1000"}}.Encode())
	if err != nil {
		return eventPage{}, err
	}
	if got.status != http.StatusOK {
		return eventPage{}, fmt.Errorf("events: %d %s", got.status, got.code())
	}
	var page eventPage
	return page, got.into(&page)
}

func (r httpAnswer) into(v any) error { return json.Unmarshal(r.body, v) }

// code is a problem's stable code; empty: the answer is no problem document.
func (r httpAnswer) code() string {
	var p struct {
		Code string `json:"code"`
	}
	if r.into(&p) != nil {
		return ""
	}
	return p.Code
}

// begun returns the arguments that a begin handed out, byte for byte.
func (r httpAnswer) begun() ([]byte, error) {
	if r.status != http.StatusOK {
		return nil, fmt.Errorf("begin was refused: %d %s", r.status, r.code())
	}
	var b struct {
		Args json.RawMessage `json:"args"`
	}
	return b.Args, r.into(&b)
}

// eventData is the data of every type of event: what is not of the type is empty.
type eventData struct {
	offers.ReplyData
	Offer     *offers.Offer     `json:"offer"`
	Operation *offers.Operation `json:"operation"`
}

func dataOf(ev offers.Event) (eventData, error) {
	var d eventData
	if err := json.Unmarshal(ev.Data, &d); err != nil {
		return d, fmt.Errorf("event %s: %w", ev.Type, err)
	}
	switch ev.Type {
	case offers.OfferOpened, offers.OfferClosed:
		if d.Offer == nil {
			return d, fmt.Errorf("event %s has no offer", ev.Type)
		}
	case offers.OperationApproved, offers.OperationClosed:
		if d.Operation == nil {
			return d, fmt.Errorf("event %s has no operation", ev.Type)
		}
	}
	return d, nil
}
