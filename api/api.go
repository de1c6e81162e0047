// Package api is the agent's side: enqueue an offer, wait, begin with the hash of what is about to run, report the
// result, and read the events.
//
// Errors are RFC 9457 problem documents whose code is stable. The description is served at /openapi.json, and as a page
// at /docs.
package api

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
)

// Limits of a call.
const (
	maxBody = 256 << 10
	maxWait = 60 * time.Second
	reread  = time.Second // a waiter reads again this often, woken or not, where nothing else is said
	// lag is after what time a waiter of the feed reads again that began or was woken and found nothing: an event can be
	// read when older transactions have ended too, and no wake-up tells of that. It doubles until it is reread.
	lag = 5 * time.Millisecond
)

// KeyStore finds the key of a call.
type KeyStore interface {
	KeyByHash(ctx context.Context, hash [32]byte) (people.Key, error)
}

// Proposer takes proposals; it is *offers.Service.
type Proposer interface {
	Propose(ctx context.Context, r offers.Request) (op offers.Operation, again bool, err error)
	Check(f offers.Facts, op gate.Operation) gate.Decision
	Reaches(op gate.Operation) []string
	Policy() *gate.Policy
}

// Confirmer judges a main model's confirm; it is *reply.Confirmer.
type Confirmer interface {
	Confirm(ctx context.Context, r reply.ConfirmRequest) (offers.Win, error)
}

// Deps are what the API works with.
type Deps struct {
	Keys     KeyStore
	Store    offers.Store
	Proposer Proposer
	Confirms Confirmer
	Wake     *offers.Wake
	Log      *slog.Logger
	Ready    func(ctx context.Context) error // nil: ready
	Version  string

	Limiter              limit.Limiter // nil: no limits
	KeyRate, AccountRate limit.Rate    // of calls
	BodyTime             time.Duration // in which a body must arrive; 0: limit.BodyTime
	Reread               time.Duration // how often a waiter reads again, woken or not; 0: every second
}

type server struct {
	Deps
	api huma.API
}

// hooked: the framework has one place for its errors in a process, and tests make many servers at once.
var hooked sync.Once

// New makes the handler of every path that the agent's side has. Unknown paths are 404 before anybody is asked for a key.
func New(d Deps) http.Handler {
	hooked.Do(func() { huma.NewErrorWithContext = humaError })
	d.BodyTime, d.Reread = cmp.Or(d.BodyTime, limit.BodyTime), cmp.Or(d.Reread, reread)
	mux := http.NewServeMux()
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Countersign", Version: d.Version,
				Description: "Approvals by text message: enqueue an offer, wait for the person's yes, begin exactly what was shown, once.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"key": {Type: "http", Scheme: "bearer", Description: "csk_…, made by `bot keys create`"},
				},
			},
		},
		OpenAPIPath:   "/openapi",
		Formats:       map[string]huma.Format{"application/json": format(), "json": format()},
		DefaultFormat: "application/json",
	}
	s := &server{Deps: d, api: humago.New(mux, cfg)}
	s.offers()
	s.operations()
	s.events()
	s.runs()
	s.gate()
	s.contacts()
	nullable(s.api.OpenAPI())
	page := docs(s.api.OpenAPI())
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(page)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if d.Ready != nil {
			if err := d.Ready(r.Context()); err != nil {
				d.Log.WarnContext(r.Context(), "not ready", "error", err)
				s.write(w, problem(http.StatusServiceUnavailable, "unavailable", "The database does not answer."))
				return
			}
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		// The mux knows whether it is the path or the method that it does not have.
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", rec.Header().Get("Allow"))
			s.write(w, problem(http.StatusMethodNotAllowed, "method_not_allowed", "This path does not take that method."))
			return
		}
		s.write(w, problem(http.StatusNotFound, "not_found", "There is no such path."))
	})
}

func (s *server) write(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = marshal(w, p)
}

type keyOf struct{}

// key is the key of the call; auth has put it there.
func key(ctx context.Context) people.Key { k, _ := ctx.Value(keyOf{}).(people.Key); return k }

// auth lets a call through whose key has one of the scopes.
func (s *server) auth(scopes []people.Scope) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		refuse := func(p *Problem) {
			c.SetHeader("Content-Type", p.ContentType(""))
			if p.Status == http.StatusUnauthorized {
				c.SetHeader("WWW-Authenticate", "Bearer")
			}
			c.SetStatus(p.Status)
			_ = marshal(c.BodyWriter(), p)
		}
		secret, ok := strings.CutPrefix(c.Header("Authorization"), "Bearer ")
		if !ok || secret == "" {
			refuse(problem(http.StatusUnauthorized, "unauthorized", "Send Authorization: Bearer csk_…"))
			return
		}
		k, err := s.Keys.KeyByHash(c.Context(), people.HashSecret(secret))
		switch {
		case errors.Is(err, people.ErrNotFound):
			refuse(problem(http.StatusUnauthorized, "unauthorized", "That key is not known, or was revoked."))
			return
		case err != nil:
			s.Log.ErrorContext(c.Context(), "key not looked up", "error", err)
			refuse(problem(http.StatusServiceUnavailable, "unavailable", "The key cannot be looked up now. Try again."))
			return
		}
		if v := s.within(c.Context(), k); !v.Allowed { // mutant: api.limit
			c.SetHeader("Retry-After", strconv.Itoa(v.Seconds()))
			refuse(rateLimited())
			return
		}
		for _, sc := range scopes {
			if k.Scope == sc {
				next(huma.WithValue(c, keyOf{}, k))
				return
			}
		}
		refuse(problem(http.StatusForbidden, "forbidden", "A key of scope "+string(k.Scope)+" may not call this."))
	}
}

// within keeps the calls of a key and of its account within their rates.
func (s *server) within(ctx context.Context, k people.Key) limit.Verdict {
	if s.Limiter == nil {
		return limit.Verdict{Allowed: true}
	}
	return s.Limiter.Take(ctx, limit.Ask{Line: "key:" + k.ID, Rate: s.KeyRate}, limit.Ask{Line: "account:" + k.AccountID, Rate: s.AccountRate})
}

// register adds a call with its scopes. Errors are handled here, once.
func register[I, O any](s *server, op huma.Operation, scopes []people.Scope, call func(context.Context, *I) (*O, error)) {
	op.Security = []map[string][]string{{"key": {}}}
	op.Middlewares = huma.Middlewares{s.auth(scopes)}
	op.MaxBodyBytes, op.BodyReadTimeout = maxBody, s.BodyTime
	op.Responses = responses(s.api, op)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := call(ctx, in)
		if err == nil {
			return out, nil
		}
		if p := known(err); p != nil {
			if p.Status >= http.StatusInternalServerError {
				s.Log.ErrorContext(ctx, "call failed", "call", op.OperationID, "code", p.Code, "error", err)
			}
			return nil, p
		}
		if ctx.Err() != nil {
			return nil, problem(http.StatusServiceUnavailable, "unavailable", "The call was given up.")
		}
		s.Log.ErrorContext(ctx, "call failed", "call", op.OperationID, "error", err)
		return nil, problem(http.StatusInternalServerError, "internal", "Something went wrong here. Nothing was released.")
	})
}

// responses describes the problem documents; huma adds the answer itself.
func responses(api huma.API, op huma.Operation) map[string]*huma.Response {
	schema := huma.SchemaFromType(api.OpenAPI().Components.Schemas, problemType)
	return map[string]*huma.Response{
		"default": {Description: "A problem document with a stable code", Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: schema},
		}},
	}
}

// until calls look whenever something was committed, and on a timer, until it is done or the time is over. From
// the beginning and from each wake-up the timer goes by first, and then by twice as much, up to the ordinary; 0: by the
// ordinary.
func (s *server) until(ctx context.Context, atMost, first time.Duration, look func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	first = min(cmp.Or(first, s.Reread), s.Reread) // mutant: api-lag
	next := first
	t := time.NewTimer(next)
	defer t.Stop()
	for {
		wake := s.Wake.C()
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
			next = first
		case <-t.C:
			next = min(2*next, s.Reread)
		}
		t.Reset(next)
	}
}

// waitParam reads a wait: a duration such as 30s, or a number of seconds.
func waitParam(v string) (time.Duration, error) {
	if v == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		if d, err = time.ParseDuration(v + "s"); err != nil {
			return 0, problem(http.StatusBadRequest, "bad_request", "wait must be a duration such as 30s.")
		}
	}
	if d < 0 {
		return 0, problem(http.StatusBadRequest, "bad_request", "wait must not be negative.")
	}
	return min(d, maxWait), nil
}
