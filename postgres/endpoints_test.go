package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
)

// An endpoint's place is a place in the feed. If it moved over an event whose transaction still runs, that event would
// never be posted.
func TestEndpointsWaitForTheOldestTransaction(t *testing.T) {
	ctx := t.Context()
	url := pgtest.New(t)
	s, err := postgres.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	conn := func() *pgx.Conn {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	insert := func(c *pgx.Conn, id string) {
		_, err := c.Exec(ctx, `INSERT INTO events (id, account_id, type, at, data) VALUES ($1, 'default', 'offer.closed', now(), '{}')`, id)
		if err != nil {
			t.Fatal(err)
		}
	}
	claim := func() *offers.Delivery {
		d, err := s.ClaimDelivery(ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	e := offers.Endpoint{ID: offers.NewID(), AccountID: people.DefaultAccount, URL: "https://agent.example.test/", Secret: offers.NewEndpointSecret()}
	if err := s.AddEndpoint(ctx, e); err != nil {
		t.Fatal(err)
	}
	slow, fast := conn(), conn()
	if _, err := slow.Exec(ctx, `BEGIN`); err != nil {
		t.Fatal(err)
	}
	first, second := offers.NewID(), offers.NewID()
	insert(slow, first)
	insert(fast, second)
	if d := claim(); d != nil {
		t.Fatalf("event %s goes out as number %d while one before it is not committed", d.Event.ID, d.Seq)
	}
	if _, err := slow.Exec(ctx, `COMMIT`); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{first, second} {
		d := claim()
		for ; d == nil; d = claim() { // transactions of other databases on the server hold the feed back as well
			timer := time.NewTimer(time.Millisecond)
			select {
			case <-timer.C:
			case <-ctx.Done():
				t.Fatal("the test is over")
			}
		}
		if d.Event.ID != want || d.Seq != int64(i+1) {
			t.Fatalf("number %d is %s, want %s", d.Seq, d.Event.ID, want)
		}
		if err := s.RecordDelivery(ctx, *d, offers.Attempt{Status: 200}, offers.FateDelivered, 0); err != nil {
			t.Fatal(err)
		}
	}
}
