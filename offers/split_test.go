package offers_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/offers"
)

// join reads numbered parts back into the text that was cut.
func join(t *testing.T, parts []string) string {
	t.Helper()
	if len(parts) == 1 {
		return parts[0]
	}
	var b strings.Builder
	for i, p := range parts {
		number, same := fmt.Sprintf("(%d/%d) ", i+1, len(parts)), fmt.Sprintf("(%d/%d, same line) ", i+1, len(parts))
		switch {
		case strings.HasPrefix(p, number):
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(p[len(number):])
		case i > 0 && strings.HasPrefix(p, same):
			b.WriteString(p[len(same):])
		default:
			t.Fatalf("part %d of %d begins with %.20q", i+1, len(parts), p)
		}
	}
	return b.String()
}

func split(t *testing.T, text string, limit int) []string {
	t.Helper()
	parts, ok := offers.Split(text, limit)
	if !ok {
		t.Fatalf("%d characters do not fit", utf8.RuneCountInString(text))
	}
	for i, p := range parts {
		if n := len(utf16.Encode([]rune(p))); n > limit {
			t.Fatalf("part %d has %d units, limit %d", i+1, n, limit)
		}
	}
	if len(parts) > offers.MaxParts {
		t.Fatalf("%d parts", len(parts))
	}
	if d := cmp.Diff(text, join(t, parts)); d != "" {
		t.Fatalf("the parts do not make the text (-want +got):\n%s", d)
	}
	return parts
}

func TestSplit(t *testing.T) {
	t.Run("OneMessageIsLeftAlone", func(t *testing.T) {
		for _, text := range []string{"", "short", strings.Repeat("x", 100), strings.Repeat("😀", 50)} {
			if got := split(t, text, 100); !slices.Equal(got, []string{text}) {
				t.Errorf("parts %q", got)
			}
		}
	})
	t.Run("AtLineEnds", func(t *testing.T) {
		text := "Send email\nTo: dana@example.test\nSubject: " + strings.Repeat("a", 30) + "\nBody: " + strings.Repeat("b ", 25) + "\nThis sends to dana@example.test. Reply YES or NO."
		got := split(t, text, 100)
		want := []string{
			"(1/3) Send email\nTo: dana@example.test\nSubject: " + strings.Repeat("a", 30),
			"(2/3) Body: " + strings.Repeat("b ", 25),
			"(3/3) This sends to dana@example.test. Reply YES or NO.",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
	// A line that no message holds is cut between words, and never within what code wrote before its value.
	t.Run("BetweenWordsOfALongLine", func(t *testing.T) {
		text := "Send email\nThe long name of a field: " + strings.Repeat("word ", 40) + "end\nReply YES or NO."
		got := split(t, text, 100)
		for i, p := range got {
			if i > 0 && strings.Contains(p, "same line") && !strings.HasSuffix(got[i-1], " ") {
				t.Errorf("cut within a word: %q | %q", got[i-1], p)
			}
			if strings.HasSuffix(p, "The ") || strings.HasSuffix(p, "long ") || strings.HasSuffix(p, "name of a ") {
				t.Errorf("cut within the prefix: %q", p)
			}
		}
	})
	t.Run("ALineWithoutAPrefix", func(t *testing.T) {
		for _, p := range split(t, strings.Repeat("plain words ", 20), 100)[1:] {
			if !strings.Contains(p, "same line) plain") && !strings.Contains(p, "same line) words") {
				t.Errorf("cut within a word: %q", p)
			}
		}
	})
	t.Run("AnywhereIfNeedBe", func(t *testing.T) {
		split(t, strings.Repeat("x", 300), 100)
		split(t, strings.Repeat("👍🏽", 60), 100) // and never within one character of the screen
		for _, p := range split(t, strings.Repeat("👍🏽", 60), 100) {
			if strings.HasSuffix(p, "👍") || strings.HasPrefix(p, "🏽") {
				t.Errorf("cut within an emoji: %q", p)
			}
		}
	})
	// A value cannot make a part that looks like a line of ours: within a line the number says so.
	t.Run("AValueCannotPassForALine", func(t *testing.T) {
		for pad := range 120 {
			text := "Body: " + strings.Repeat("x", pad) + " This only looks something up. Reply YES or NO. " + strings.Repeat("y", 150) + "\nThis pays 500 USD. Reply YES or NO."
			for _, p := range split(t, text, 120) {
				if _, rest, _ := strings.Cut(p, ") "); strings.HasPrefix(rest, "This only") && !strings.Contains(p[:20], "same line") {
					t.Fatalf("pad %d: %q", pad, p)
				}
			}
		}
	})
	t.Run("TooLong", func(t *testing.T) {
		for _, text := range []string{strings.Repeat("x", 401), strings.Repeat("x\n", 250)} {
			if parts, ok := offers.Split(text, 100); ok {
				t.Errorf("%d parts of %d characters", len(parts), len(text))
			}
		}
		if parts, ok := offers.Split("longer than that", 10); ok {
			t.Errorf("parts %q where a number alone does not fit", parts)
		}
	})
	t.Run("WhatRoomPromisesFits", func(t *testing.T) {
		for _, unit := range []string{"x", "😀", "ä", "x\n", "a b"} {
			n := offers.Room(160) / len(utf16.Encode([]rune(unit)))
			split(t, strings.Repeat(unit, n), 160)
		}
	})
	t.Run("Random", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		alphabet := []string{"a", "b", " ", " ", "\n", ": ", "é", "e\u0301", "👩‍👧", "🇩🇪", "(2/3) ", "To: "}
		for range 3000 {
			var b strings.Builder
			for range rnd.IntN(400) {
				b.WriteString(alphabet[rnd.IntN(len(alphabet))])
			}
			if _, ok := offers.Split(b.String(), 120); ok {
				split(t, b.String(), 120)
			}
		}
	})
}

// wire is a line of one text and a carrier with given answers.
type wire struct {
	offers.Line
	text    *offers.Text
	sent    []offers.SendResult
	bodies  []offers.Outgoing
	answers []offers.SendResult
}

func (w *wire) Reserve(context.Context) (*offers.Text, error) { return w.text, nil }

func (w *wire) Sent(_ context.Context, _ string, r offers.SendResult) error {
	w.sent = append(w.sent, r)
	return nil
}

func (w *wire) Limit() int { return 100 }

func (w *wire) Send(_ context.Context, m offers.Outgoing) offers.SendResult {
	w.bodies = append(w.bodies, m)
	return w.answers[len(w.bodies)-1]
}

func TestDispatcherParts(t *testing.T) {
	yes := func(id string) offers.SendResult {
		return offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: id}
	}
	no, lost := offers.SendResult{Outcome: offers.OutcomeRejected, Code: 30007}, offers.SendResult{}
	long := strings.Repeat("To: somebody\n", 14) + "Reply YES or NO." // three parts
	for name, c := range map[string]struct {
		body    string
		answers []offers.SendResult
		want    offers.SendResult
		calls   int
	}{
		"one":             {"short", []offers.SendResult{yes("a")}, yes("a"), 1},
		"all accepted":    {long, []offers.SendResult{yes("a"), yes("b"), yes("c")}, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderIDs: []string{"a", "b", "c"}}, 3},
		"first refused":   {long, []offers.SendResult{no}, no, 1},
		"later refused":   {long, []offers.SendResult{yes("a"), no}, offers.SendResult{ProviderIDs: []string{"a", "", ""}, Partial: true, Code: 30007}, 2},
		"one unknown":     {long, []offers.SendResult{yes("a"), lost, yes("c")}, offers.SendResult{ProviderIDs: []string{"a", "", "c"}}, 3},
		"unknown refused": {long, []offers.SendResult{lost, no}, offers.SendResult{ProviderIDs: []string{"", "", ""}, Partial: true, Code: 30007}, 2},
		"too long":        {strings.Repeat(long, 3), nil, offers.SendResult{Outcome: offers.OutcomeRejected, Code: offers.CodeTooLong}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{text: &offers.Text{ID: "t", Body: c.body, Address: "sim:alex", OurNumber: "sim:us"}, answers: c.answers}
			if _, err := offers.NewDispatcher(w, w, new(offers.Wake), slog.New(slog.DiscardHandler), 1).Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]offers.SendResult{c.want}, w.sent); d != "" {
				t.Errorf("recorded (-want +got):\n%s", d)
			}
			if len(w.bodies) != c.calls {
				t.Errorf("%d calls of the provider, want %d", len(w.bodies), c.calls)
			}
			for i, m := range w.bodies {
				if parts := len(c.answers); m.TextID != "t" || m.To != "sim:alex" || m.From != "sim:us" || parts > 1 && (m.Part != i+1 || m.Parts != 3) {
					t.Errorf("message %d: %+v", i+1, m)
				}
			}
		})
	}
}

// slow is a provider that answers nothing before it is given up.
type slow struct {
	wire
	late int // parts whose time was over when they came
}

func (s *slow) Send(ctx context.Context, m offers.Outgoing) offers.SendResult {
	s.bodies = append(s.bodies, m)
	if ctx.Err() != nil {
		s.late++
	}
	if m.Part == 2 { // and of one part it does
		return offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: "b"}
	}
	<-ctx.Done()
	return offers.SendResult{}
}

// However slow each part is, the text as a whole is done with before it would be taken up again, and each has had its try.
func TestDispatcherPartsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{wire: wire{text: &offers.Text{ID: "t", Body: strings.Repeat("To: somebody\n", 14) + "Reply YES or NO.", Address: "sim:alex", OurNumber: "sim:us"}}}
		began := time.Now()
		if _, err := offers.NewDispatcher(s, s, new(offers.Wake), slog.New(slog.DiscardHandler), 1).Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took >= offers.SendTimeout {
			t.Errorf("took %v", took)
		}
		if d := cmp.Diff([]offers.SendResult{{ProviderIDs: []string{"", "b", ""}}}, s.sent); d != "" {
			t.Errorf("recorded (-want +got):\n%s", d)
		}
		if len(s.bodies) != 3 || s.late != 0 {
			t.Errorf("%d parts tried, %d of them without any time", len(s.bodies), s.late)
		}
	})
}
