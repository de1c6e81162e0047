package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

// behind is a store whose feed lags behind what was committed, as PostgreSQL's does while an older transaction runs.
type behind struct {
	*sqlite.Store
	hidden atomic.Int32 // reads that do not see the newest yet
	read   chan struct{}
}

func (b *behind) Events(ctx context.Context, account, after string, limit int) ([]offers.Event, string, error) {
	list, next, err := b.Store.Events(ctx, account, after, limit)
	if b.hidden.Add(-1) >= 0 {
		list, next = nil, after
	}
	select {
	case b.read <- struct{}{}:
	default:
	}
	return list, next, err
}

// A poll that was woken too early looks again soon, though no other wake-up comes and its timer is an hour away.
func TestEventsThatLagBehindTheWakeUp(t *testing.T) {
	s := newSite(t)
	b := &behind{Store: s.store, read: make(chan struct{}, 1)}
	srv := httptest.NewServer(api.New(api.Deps{
		Keys: s.store, Store: b, Wake: s.wake, Log: slog.New(slog.DiscardHandler), Version: "test", Reread: time.Hour,
	}))
	defer srv.Close()
	type page struct {
		Events []json.RawMessage `json:"events"`
	}
	got := make(chan page, 1)
	go func() {
		var p page
		defer func() { got <- p }()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/events?wait=20s", nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+s.keys[people.ScopeAgent])
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close() //nolint:errcheck // read to its end
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
			t.Error(err)
		}
	}()
	<-b.read // it waits, or is about to
	b.hidden.Store(3)
	r, err := s.store.Receive(t.Context(), offers.Inbound{
		Provider: "sim", ProviderID: "m1", Address: s.owner.Addresses[0].Address, OurNumber: s.owner.Addresses[0].OurNumber, Text: "hello",
	})
	s.must(err)
	s.must(s.store.Pass(t.Context(), offers.PassRequest{
		MessageID: r.MessageID, PersonID: r.PersonID, Type: offers.MessageReceived, Reading: offers.ReadingRecord{Class: "unrelated", RawP: 1, Reader: "test"},
	}))
	s.wake.Signal()
	if p := <-got; len(p.Events) == 0 {
		t.Fatal("the poll ended without the event")
	}
}
