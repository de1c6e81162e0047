package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client is the agent's side of the HTTP API.
type client struct{ base, key string }

// problem is a refusal: an RFC 9457 document. Code is what to switch on.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Result struct {
		Status string `json:"status"`
	} `json:"result"` // with already_begun: what was reported, if anything was
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

type offer struct {
	ID          string `json:"id"`
	OperationID string `json:"operation_id"`
	ClosedBy    struct {
		MessageID string `json:"message_id"`
	} `json:"closed_by"`
}

type operation struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Offer *offer `json:"offer"`
}

type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Seq  int64  `json:"seq"` // in webhooks only
	Data struct {
		RunID     string  `json:"run_id"`
		MessageID string  `json:"message_id"`
		Text      string  `json:"text"`
		Offers    []offer `json:"offers"` // with reply.unresolved: those that are open
	} `json:"data"`
}

type proposal struct {
	key        string
	Address    string         `json:"address"`
	Tool       string         `json:"tool"`
	Args       map[string]any `json:"args"`
	Supersedes string         `json:"supersedes,omitempty"`
}

// propose asks for an offer. With the same key and the same body it gets the earlier one.
func (c *client) propose(ctx context.Context, p proposal) (o offer, err error) {
	return o, c.call(ctx, http.MethodPost, "/v1/offers", p.key, p, &o)
}

// wait returns once the operation is decided. Each call hangs until then, or for half a minute.
func (c *client) wait(ctx context.Context, id string) (op operation, err error) {
	for {
		op = operation{}
		err = c.call(ctx, http.MethodGet, "/v1/operations/"+url.PathEscape(id)+"?wait=30s", "", nil, &op)
		// settling is a yes that the person can still take back.
		if err != nil || op.State != "asked" && op.State != "settling" {
			return op, err
		}
	}
}

// begin names what is about to run and gets the exact approved arguments, once.
func (c *client) begin(ctx context.Context, id, argsSHA256 string) (json.RawMessage, error) {
	var begun struct {
		Args json.RawMessage `json:"args"`
	}
	err := c.call(ctx, http.MethodPost, "/v1/operations/"+url.PathEscape(id)+"/begin", "", map[string]string{"args_sha256": argsSHA256}, &begun)
	return begun.Args, err
}

// result closes the operation; the person gets a receipt.
func (c *client) result(ctx context.Context, id, status string) error {
	body := map[string]any{"status": status, "output": map[string]any{}}
	return c.call(ctx, http.MethodPost, "/v1/operations/"+url.PathEscape(id)+"/result", "", body, nil)
}

// send texts the person whose message started the run. It needs no yes: it is an answer.
func (c *client) send(ctx context.Context, key, run, text string) (op operation, err error) {
	body := map[string]any{"run_id": run, "kind": "outbound_message", "tool": "message.send", "args": map[string]string{"text": text}}
	return op, c.call(ctx, http.MethodPost, "/v1/operations", key, body, &op)
}

// text finds a message of the person in the feed. An agent that lives longer keeps next, and reads on from there.
func (c *client) text(ctx context.Context, message string) (string, error) {
	after := ""
	for {
		var page struct {
			Events []event `json:"events"`
			Next   string  `json:"next"`
		}
		query := url.Values{"after": {after}, "wait": {"10s"}}
		if err := c.call(ctx, http.MethodGet, "/v1/events?"+query.Encode(), "", nil, &page); err != nil {
			return "", err
		}
		for _, e := range page.Events {
			if e.Type == "message.received" && e.Data.MessageID == message {
				return e.Data.Text, nil
			}
		}
		if len(page.Events) == 0 {
			return "", errors.New("the feed does not have the message")
		}
		after = page.Next
	}
}

// call makes one call and repeats it when the network or the server fails. That is safe everywhere: an offer by its
// Idempotency-Key, a begin and a result because a second one is told of the first. Errors: *problem, or the network's.
func (c *client) call(ctx context.Context, method, path, idempotencyKey string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = encode(in); err != nil {
			return err
		}
	}
	for try := 0; ; try++ {
		err := c.once(ctx, method, path, idempotencyKey, body, out)
		if p, ok := errors.AsType[*problem](err); err == nil || ok && p.Status < 500 && p.Status != http.StatusTooManyRequests {
			return err
		}
		if ctx.Err() != nil || try == 5 {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond<<try); err != nil {
			return err
		}
	}
}

func (c *client) once(ctx context.Context, method, path, idempotencyKey string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	raw, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		p := &problem{}
		_ = json.Unmarshal(raw, p) // whatever else answered with an error is a problem without a code
		p.Status = res.StatusCode
		return p
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// hash is the SHA-256 of the arguments' canonical form, in hexadecimal.
func hash(args map[string]any) (string, error) {
	canonical, err := encode(args)
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), err
}

// lineSeparators undoes two escapes that encoding/json writes and RFC 8785 does not. A doubled backslash is passed over
// first, so that what only looks like an escape stays.
var lineSeparators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// encode writes JSON as RFC 8785 has it, for maps whose keys are ASCII: sorted keys, no space, nothing escaped that
// need not be. Where your keys are wilder take a library, or send begin the args themselves instead of their hash.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(lineSeparators.Replace(strings.TrimSuffix(b.String(), "\n"))), nil
}
