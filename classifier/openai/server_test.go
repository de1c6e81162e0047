package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign/countersign/classifier"
)

const (
	testKey   = "key-of-the-tests-8c1f"
	testModel = "small-model"
	secret    = "yes and the gate code is quux-4411" // must stand in no error and no log line
)

// endpoint is a server that speaks chat completions, as far as a handler says.
type endpoint struct {
	*httptest.Server
	asked atomic.Int32
	last  atomic.Pointer[request]
}

// request is what a server sees of a call.
type request struct {
	path, auth string
	body       map[string]any
}

func (r *request) message(t *testing.T, i int) (role, content string) {
	t.Helper()
	m, ok := r.body["messages"].([]any)[i].(map[string]any)
	if !ok {
		t.Fatal("no such message")
	}
	return m["role"].(string), m["content"].(string)
}

func serve(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen := &request{path: r.Method + " " + r.URL.Path, auth: r.Header.Get("Authorization")}
		if err := json.Unmarshal(raw, &seen.body); err != nil {
			t.Error(err)
		}
		e.last.Store(seen)
		answer(w, r)
	}))
	e.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) config() Config {
	return Config{BaseURL: e.URL + "/v1", APIKey: testKey, Model: testModel}
}

func open(t *testing.T, cfg Config) *Reader {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func input(t *testing.T, text string) classifier.Input {
	t.Helper()
	label, err := classifier.NewLabel("send email to", "Dana")
	if err != nil {
		t.Fatal(err)
	}
	return classifier.Input{Newest: classifier.NewWords(text), Offers: []classifier.Label{label}}
}

// tok is a token with its probability and its alternatives, as pairs of text
// and probability.
type tok struct {
	text string
	p    float64
	alt  []any
}

func sure(texts ...string) []tok {
	var out []tok
	for _, s := range texts {
		out = append(out, tok{text: s, p: 1})
	}
	return out
}

// labelled is the tokens of {"label":"…"} with the given ones for the word.
func labelled(word ...tok) []tok {
	out := sure(`{"`, `label`, `":"`)
	return append(append(out, word...), sure(`"}`)...)
}

// completion is a whole answer. Without tokens it has no log-probabilities.
func completion(content string, tokens []tok, change ...func(choice map[string]any)) map[string]any {
	choice := map[string]any{
		"index": 0, "finish_reason": "stop",
		"message": map[string]any{"role": "assistant", "content": content},
	}
	if tokens != nil {
		var list []any
		for _, k := range tokens {
			top := []any{map[string]any{"token": k.text, "logprob": math.Log(k.p)}}
			for i := 0; i+1 < len(k.alt); i += 2 {
				top = append(top, map[string]any{"token": k.alt[i], "logprob": math.Log(k.alt[i+1].(float64))})
			}
			list = append(list, map[string]any{"token": k.text, "logprob": math.Log(k.p), "top_logprobs": top})
		}
		choice["logprobs"] = map[string]any{"content": list}
	}
	for _, f := range change {
		f(choice)
	}
	return map[string]any{"id": "c", "object": "chat.completion", "model": testModel, "choices": []any{choice}}
}

// content joins the tokens.
func content(tokens []tok) string {
	var b strings.Builder
	for _, k := range tokens {
		b.WriteString(k.text)
	}
	return b.String()
}

func says(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, v) }
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

func sureYes() map[string]any {
	t := labelled(tok{text: "confirm", p: 0.99, alt: []any{"decline", 0.005}})
	return completion(content(t), t)
}

// logged collects log lines.
func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}

// pipes is a network inside the process, so that a test's bubble has its own
// clock: connections are net.Pipe.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
