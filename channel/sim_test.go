package channel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

func toAlex(body string) offers.Outgoing {
	return offers.Outgoing{From: "sim:countersign", To: "sim:alex", Body: body}
}

func TestSimInbox(t *testing.T) {
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	s := NewSim(func() time.Time { return at })
	first, second := s.Send(t.Context(), toAlex(" Send it? ")), s.Send(t.Context(), toAlex("Sent."))
	if first.Outcome != offers.OutcomeAccepted || first.ProviderID == "" || first.ProviderID == second.ProviderID {
		t.Fatalf("%+v %+v", first, second)
	}
	texts := s.Texts("sim:alex")
	if len(texts) != 2 || texts[0] != (SimText{ID: first.ProviderID, From: "sim:countersign", To: "sim:alex", Body: " Send it? ", At: at}) || texts[1].Body != "Sent." {
		t.Errorf("inbox %v", texts)
	}
	texts[0].Body = "changed"
	if s.Texts("sim:alex")[0].Body != " Send it? " || len(s.Texts("sim:dana")) != 0 {
		t.Error("an inbox was changed from outside, or shown to somebody else")
	}
}

func TestSimRefuses(t *testing.T) {
	s := NewSim(time.Now)
	for _, m := range []offers.Outgoing{
		{To: theirs, Body: "x"}, {To: "", Body: "x"}, {To: "sim:", Body: "x"}, {To: "sim:alex"}, {To: "sim:alex", Body: "\xff"},
	} {
		if got := s.Send(t.Context(), m); got.Outcome != offers.OutcomeRejected || got.Code == CodeNotSent {
			t.Errorf("%q: %+v", string(m.To), got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.Send(ended, toAlex("x")); !same(got, rejected(CodeNotSent)) {
		t.Errorf("%+v", got)
	}
	if len(s.Texts("sim:alex")) != 0 {
		t.Error("a refused text came in")
	}
}

func TestSimWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSim(time.Now)
		got := make(chan int)
		go func() {
			texts, err := s.Wait(t.Context(), "sim:alex", 2)
			if err != nil {
				t.Error(err)
			}
			got <- len(texts)
		}()
		s.Send(t.Context(), toAlex("1"))
		s.Send(t.Context(), offers.Outgoing{To: "sim:dana", Body: "not for alex"})
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("one text was taken for two")
		default:
		}
		s.Send(t.Context(), toAlex("2"))
		if n := <-got; n != 2 {
			t.Errorf("%d texts", n)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if texts, err := s.Wait(ctx, "sim:alex", 3); !errors.Is(err, context.DeadlineExceeded) || len(texts) != 2 {
			t.Errorf("%d texts, %v", len(texts), err)
		}
	})
}

func TestSimFollow(t *testing.T) {
	s := NewSim(time.Now)
	s.Send(t.Context(), toAlex("before"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	follow := s.Follow(ctx)

	// More than are kept for a reader, so that a slow one is not a problem.
	var senders sync.WaitGroup
	for i := range 4 {
		senders.Go(func() {
			for n := range 100 {
				s.Send(ctx, offers.Outgoing{To: people.Address("sim:p" + strconv.Itoa(i)), Body: strconv.Itoa(n)})
			}
		})
	}
	next := map[people.Address]int{}
	seen := 0
	for x := range follow {
		if x.Body != strconv.Itoa(next[x.To]) {
			t.Fatalf("%s: got %s, want %d", string(x.To), x.Body, next[x.To])
		}
		next[x.To]++
		if seen++; seen == 400 {
			cancel() // ends the loop by itself
		}
	}
	senders.Wait()
	if seen != 400 {
		t.Errorf("followed %d texts, want 400", seen)
	}
	for range s.Follow(ctx) {
		t.Error("followed under a context that had ended")
	}
}

func TestSimForgetsTheOldest(t *testing.T) {
	s := NewSim(time.Now)
	follow := s.Follow(t.Context())
	const sent = 2*simKeptInAll + 5
	for i := range sent {
		s.Send(t.Context(), toAlex(strconv.Itoa(i)))
	}
	texts, err := s.Wait(t.Context(), "sim:alex", sent)
	if err != nil || len(texts) < simKeptPerAddress || len(texts) >= 2*simKeptPerAddress || texts[len(texts)-1].Body != strconv.Itoa(sent-1) {
		t.Errorf("%d texts kept, %v", len(texts), err)
	}
	last := -1
	for x := range follow {
		var n int
		if _, err := fmt.Sscan(x.Body, &n); err != nil || n <= last {
			t.Fatalf("%q after %d", x.Body, last)
		}
		if last = n; n == sent-1 {
			break
		}
	}
}

func TestSimFind(t *testing.T) {
	s := NewSim(time.Now)
	for _, body := range []string{"one", "two", "one"} {
		s.Send(t.Context(), toAlex(body))
	}
	texts := s.Texts("sim:alex")
	for body, want := range map[string]string{"one": texts[2].ID, " two\n": texts[1].ID, "tw": "", "": ""} {
		if got := s.Find("sim:alex", body); got != want {
			t.Errorf("%q is %q, want %q", body, got, want)
		}
	}
	if got := s.Find("sim:dana", "one"); got != "" {
		t.Errorf("another phone's text %q", got)
	}
}
