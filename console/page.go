// Package console is what a person looks at in a browser.
//
// The page of an offer, [Page], shows the exact arguments of one offer whose bodies are too long for a text message.
// Whoever holds the link can read it, like the text that it stands in; it names nobody, and nothing on it approves
// anything: an answer is a text message and only that.
package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

//go:embed page.html page.css
var files embed.FS

// Limits of one remote address. A token cannot be guessed at any rate; this only keeps a loop from costing much.
const (
	perSecond = 5
	burst     = 30
	addresses = 4096 // that are remembered at once
)

// Page serves the page of an offer at [offers.PagePath] + token.
//
// A token that is unknown, and one whose offer is closed or over, get the same answer. GET changes nothing, since
// scanners and link previews follow links before the person does; there is no other method than GET and HEAD.
type Page struct {
	pages  offers.Pages
	policy *gate.Policy
	now    func() time.Time
	log    *slog.Logger
	html   *template.Template
	css    template.CSS
	csp    string
	limits limits
}

// NewPage makes the handler. The policy is the one that offers are shown by.
func NewPage(pages offers.Pages, policy *gate.Policy, now func() time.Time, log *slog.Logger) (*Page, error) {
	html, err := template.ParseFS(files, "page.html")
	if err != nil {
		return nil, err
	}
	css, err := files.ReadFile("page.css")
	if err != nil {
		return nil, err
	}
	css = bytes.TrimSpace(css)
	sum := sha256.Sum256(css)
	return &Page{
		pages: pages, policy: policy, now: now, log: log, html: html, css: template.CSS(css), //nolint:gosec // our own file
		csp: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}, nil
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.csp)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive, nosnippet")
	if r.Method != http.MethodGet && r.Method != http.MethodHead { // mutant: console-get-only
		h.Set("Allow", "GET, HEAD")
		p.write(w, r, http.StatusMethodNotAllowed, view{Title: "This page takes no answers", Note: "Answer by text message."})
		return
	}
	if !p.limits.allow(remote(r), p.now()) { // mutant: console-limit
		h.Set("Retry-After", "5")
		p.write(w, r, http.StatusTooManyRequests, view{Title: "Too many requests", Note: "Wait a few seconds and load the page again."})
		return
	}
	o, err := p.find(r.Context(), strings.TrimPrefix(r.URL.Path, offers.PagePath))
	switch {
	case errors.Is(err, offers.ErrNotFound):
		p.write(w, r, http.StatusNotFound, view{Title: "Nothing to see here", Note: "There is no such page, or what it showed was answered or is over."})
		return
	case err != nil:
		p.log.ErrorContext(r.Context(), "offer page not read", "error", err)
		p.write(w, r, http.StatusServiceUnavailable, view{Title: "Not now", Note: "The page cannot be read at the moment. Load it again."})
		return
	}
	v, err := p.view(o)
	if err != nil {
		p.log.ErrorContext(r.Context(), "offer page not shown", "offer", o, "error", err)
		p.write(w, r, http.StatusInternalServerError, view{Title: "Not now", Note: "The page cannot be shown. Ask for the offer again."})
		return
	}
	p.write(w, r, http.StatusOK, v)
}

// find looks the sum of a token up. What has not the form of a token is not asked about.
func (p *Page) find(ctx context.Context, token string) (offers.Offer, error) {
	if !offers.IsToken(token) {
		return offers.Offer{}, offers.ErrNotFound
	}
	return p.pages.OfferByToken(ctx, offers.TokenSum(token))
}

// view is what a page says.
type view struct {
	Title string
	Note  string
	Parts []offers.Part
	Does  string // the offer's last line, without its question
	CSS   template.CSS
}

// view shows the stored arguments as they are. Where the policy has changed since and its template would leave one out,
// they are shown by their own names.
func (p *Page) view(o offers.Offer) (view, error) {
	op := gate.Operation{Kind: gate.Kind(o.Kind), Tool: o.Tool, Args: o.Args}
	parts, err := offers.PartsOf(op, p.policy)
	if errors.Is(err, offers.ErrCannotBeShown) {
		parts, err = offers.PartsOf(op, nil)
	}
	if err != nil {
		return view{}, err
	}
	return view{
		Title: "The exact arguments", Parts: parts, Does: strings.TrimSuffix(o.AskLine, offers.Asks),
		Note: "This is all that a yes would release. Answer the text message with YES or NO; nothing on this page approves anything.",
	}, nil
}

func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.CSS = p.css
	var b bytes.Buffer
	if err := p.html.Execute(&b, v); err != nil {
		p.log.ErrorContext(r.Context(), "offer page not written", "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// remote is the address that the connection comes from. Forwarded headers are anybody's word.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// limits remembers how often each address came.
type limits struct {
	mu sync.Mutex
	by map[string]*rate.Limiter
}

func (l *limits) allow(addr string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lim := l.by[addr]
	if lim == nil {
		if len(l.by) >= addresses {
			l.forget(now)
		}
		if l.by == nil {
			l.by = make(map[string]*rate.Limiter)
		}
		lim = rate.NewLimiter(perSecond, burst)
		l.by[addr] = lim
	}
	return lim.AllowN(now, 1)
}

// forget drops the addresses that have been away long enough to be like new, and all of them if none has.
func (l *limits) forget(now time.Time) {
	for addr, lim := range l.by {
		if lim.TokensAt(now) >= burst {
			delete(l.by, addr)
		}
	}
	if len(l.by) >= addresses {
		clear(l.by)
	}
}
