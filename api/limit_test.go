package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// limited serves a site's store again, with other dependencies than its own.
func (s *site) limited(change func(*api.Deps)) {
	s.t.Helper()
	d := s.deps
	change(&d)
	srv := httptest.NewServer(api.New(d))
	s.t.Cleanup(srv.Close)
	s.url = srv.URL
}

// TestCallsBeyondTheRate: they are told when to come again, nothing of them is done, and others go on.
func TestCallsBeyondTheRate(t *testing.T) {
	s := newSite(t)
	body := fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s}`, s.owner.ID, mailArgs)
	call := func(sc people.Scope) answer { return s.as(sc, "POST", "/v1/offers", body) }
	after := func(a answer) {
		t.Helper()
		n, err := strconv.Atoi(a.problem(http.StatusTooManyRequests, "rate_limited").header.Get("Retry-After"))
		if err != nil || n < 1 || n > 3600 {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
	}
	stored := func() int {
		list, err := s.store.Offers(t.Context(), people.DefaultAccount, offers.Filter{})
		s.must(err)
		return len(list)
	}
	hour := func(burst int) limit.Rate { return limit.Rate{Every: time.Hour, Burst: burst} }
	t.Run("Key", func(t *testing.T) {
		s.limited(func(d *api.Deps) { d.Limiter, d.KeyRate = limit.NewMemory(time.Now), hour(2) })
		before := stored()
		call(people.ScopeAgent).ok(http.StatusCreated)
		call(people.ScopeAgent).ok(http.StatusCreated)
		after(call(people.ScopeAgent))
		after(s.agent("GET", "/v1/offers", ""))
		if n := stored() - before; n != 2 {
			t.Errorf("%d offers were made, want 2", n)
		}
		call(people.ScopeOwner).ok(http.StatusCreated)
		call(people.ScopeExecutor).problem(http.StatusForbidden, "forbidden")
		call(people.ScopeExecutor).problem(http.StatusForbidden, "forbidden")
		after(call(people.ScopeExecutor)) // what is forbidden counts too
	})
	t.Run("Account", func(t *testing.T) {
		s.limited(func(d *api.Deps) { d.Limiter, d.KeyRate, d.AccountRate = limit.NewMemory(time.Now), hour(100), hour(3) })
		call(people.ScopeAgent).ok(http.StatusCreated)
		call(people.ScopeOwner).ok(http.StatusCreated)
		call(people.ScopeAgent).ok(http.StatusCreated)
		after(call(people.ScopeOwner))
		after(call(people.ScopeAgent))
		s.exec(`INSERT INTO accounts (id, created_at) VALUES ('other', 0)`)
		secret, _ := s.key("other", people.ScopeAgent)
		req := s.request("GET", "/v1/offers", "")
		req.Header.Set("Authorization", "Bearer "+secret)
		s.do(req).ok(http.StatusOK)
	})
	t.Run("WhoHasNoKeyCountsForNobody", func(t *testing.T) {
		s.limited(func(d *api.Deps) { d.Limiter, d.AccountRate = limit.NewMemory(time.Now), hour(1) })
		for range 3 {
			s.do(s.request("GET", "/v1/offers", "")).problem(http.StatusUnauthorized, "unauthorized")
		}
		s.agent("GET", "/v1/offers", "").ok(http.StatusOK)
		after(s.agent("GET", "/v1/offers", ""))
	})
}

// TestABodyThatDoesNotCome is answered when its time is over.
func TestABodyThatDoesNotCome(t *testing.T) {
	s := newSite(t)
	s.limited(func(d *api.Deps) { d.BodyTime = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	s.must(err)
	defer conn.Close() //nolint:errcheck // a test's
	_, err = fmt.Fprintf(conn, "POST /v1/offers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nIdempotency-Key: x\r\nContent-Length: 100\r\n\r\n{", s.keys[people.ScopeAgent])
	s.must(err)
	raw, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 408 ") || !strings.Contains(string(raw), `"code":"request_timeout"`) {
		t.Errorf("%v %q", err, raw)
	}
}

// polls counts the marks of who listens.
type polls struct {
	offers.Store
	marks map[string]int
}

func (p polls) Polled(ctx context.Context, keyID string) error {
	p.marks[keyID]++
	return p.Store.Polled(ctx, keyID)
}

// TestWhoListens: an agent's poll counts from its beginning to its end, and nobody else's counts.
func TestWhoListens(t *testing.T) {
	s := newSite(t)
	p := polls{s.store, map[string]int{}}
	s.limited(func(d *api.Deps) { d.Store, d.Reread = p, 10*time.Millisecond })
	s.agent("GET", "/v1/events", "").ok(http.StatusOK)
	if n := p.marks[s.ids[people.ScopeAgent]]; n != 2 {
		t.Errorf("a poll is marked %d times, want at its beginning and its end", n)
	}
	s.agent("GET", "/v1/events?wait=100ms&after="+s.agent("GET", "/v1/events", "").str("next"), "").ok(http.StatusOK)
	if n := p.marks[s.ids[people.ScopeAgent]]; n != 6 {
		t.Errorf("three polls are marked %d times, want 6", n)
	}
	s.as(people.ScopeOwner, "GET", "/v1/events", "").ok(http.StatusOK)
	if n := p.marks[s.ids[people.ScopeOwner]]; n != 0 {
		t.Errorf("an owner's look is marked %d times", n)
	}
}
