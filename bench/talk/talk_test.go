package main

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/offers"
)

// TestConversations plays some of what the command plays by the hundred thousand.
func TestConversations(t *testing.T) {
	fresh := rand.Uint64() //nolint:gosec // no secret; it is printed
	for _, test := range []struct {
		name     string
		seed     uint64
		messages int
		postgres bool
	}{
		{"sqlite", 20260301, 1600, false},
		{"sqlite with a new seed", fresh, 1400, false},
		{"postgres", 20260301, 300, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := options{seed: test.seed, messages: test.messages, world: 200, people: 6, reader: readerBoth, workers: 2, only: -1}
			if test.postgres {
				o.postgres = pgtest.New(t)
			}
			res, err := play(t.Context(), o, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("seed %d: %d messages, %d releases, %v", test.seed, res.stored, res.counts["releases"], res.took)
			for _, f := range res.faults {
				t.Errorf("seed %d: %s", test.seed, f)
			}
			if res.stored < test.messages || res.counts["releases"] < test.messages/60 {
				t.Errorf("%d messages and %d releases: too few to say anything", res.stored, res.counts["releases"])
			}
		})
	}
}

// TestJudge holds the model to what it must not justify: one wrong thing each in a release that is right otherwise.
func TestJudge(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 3, 2, 9, 0, s, 0, time.UTC) }
	type scene struct {
		p    *person
		a, b *ask
		m    *message
	}
	fair := func() scene {
		p := &person{active: true, holds: true, received: 1}
		f := &phone{person: p}
		p.phones = []*phone{f, {person: p}}
		a := &ask{person: p, phone: f, name: "Dana", sentAt: at(0), acceptedAt: at(0), expires: at(600)}
		b := &ask{person: p, phone: f, name: "Omar", sentAt: at(-100), acceptedAt: at(-100), ended: at(-90), state: offers.Withdrawn}
		p.asks = []*ask{b, a}
		f.texts = []*text{{asks: b, seen: at(-99)}, {asks: a, seen: at(1)}}
		return scene{p, a, b, &message{phone: f, class: yes, composed: at(5), received: at(6), number: 1}}
	}
	if why, _ := judge(fair().a, fair().m, false, at(7)); why == "" {
		t.Error("two scenes are one") // pointers of different scenes: somebody else's message
	}
	for _, test := range []struct {
		name  string
		spoil func(s scene)
		want  string
		blind bool
	}{
		{"right", func(scene) {}, "", false},
		{"no yes", func(s scene) { s.m.class = thanks }, "the words are no yes", false},
		{"another's", func(s scene) { s.m.phone = &phone{person: &person{}} }, "somebody else", false},
		{"another phone", func(s scene) { s.m.phone = s.p.phones[1] }, "another phone", false},
		{"suspended", func(s scene) { s.p.active = false }, "suspended", false},
		{"tier", func(s scene) { s.p.holds = false }, "tier", false},
		{"opted out", func(s scene) { s.m.phone.silent = true }, "opted out", false},
		{"twice", func(s scene) { s.a.by = &message{} }, "released before", false},
		{"message used", func(s scene) { s.m.used = s.b }, "another offer", false},
		{"withdrawn", func(s scene) { s.a.ended = at(6) }, "ended", false},
		{"queued", func(s scene) { s.a.waiting = true }, "queue", false},
		{"expired", func(s scene) { s.a.expires = at(7) }, "expired", false},
		{"newer message", func(s scene) { s.p.received = 2 }, "newer", false},
		{"another live", func(s scene) { s.b.ended = time.Time{} }, "another offer is live", false},
		{"answers another text", func(s scene) { s.m.quotes = s.m.phone.texts[0] }, "another text", false},
		{"too soon", func(s scene) { s.m.received = at(0).Add(minRead - 1) }, "before it can have been read", false},
		{"not on the screen", func(s scene) { s.m.composed = at(0) }, "before the question was on the screen", true},
		{"crossed", func(s scene) { s.m.composed = at(0); s.b.ended = at(-50) }, "before the question was on the screen", false},
		{"another on the screen", func(s scene) { s.m.phone.texts = append(s.m.phone.texts, &text{asks: s.b, seen: at(4)}) }, "another question", true},
		{"names another", func(s scene) { s.m.class, s.m.name = named, "Omar" }, "name another", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := fair()
			test.spoil(s)
			why, blind := judge(s.a, s.m, false, at(7))
			if (why == "") != (test.want == "") || !strings.Contains(why, test.want) || blind != test.blind {
				t.Errorf("%q blind %v, want %q blind %v", why, blind, test.want, test.blind)
			}
		})
	}
}

// TestQuestioned: what a text asks about is what its last line names, with its parts put together.
func TestQuestioned(t *testing.T) {
	for whole, want := range map[string]string{
		"Send email\nTo: to-0-1@example.com\nThis sends to to-0-2@example.com. Reply YES or NO.":             "to-0-2@example.com",
		"Changed: To to-0-1@example.com -> to-0-2@example.com\nThis sends to to-0-2@example.com. Reply YES.": "to-0-2@example.com",
		"Done: send email to Dana.":              "",
		"to-0-1@example.com":                     "",
		"Shall I book the table? Reply YES.":     "",
		"Which one?\n1: send email to Dana":      "",
		"send to to-0-3@example.com? Reply YES.": "to-0-3@example.com",
	} {
		if got := questioned(whole); got != want {
			t.Errorf("%q asks about %q, want %q", whole, got, want)
		}
	}
	if got := join([]string{"(1/3) a", "(2/3) b c", "(3/3, same line)  d"}); got != "a\nb c d" {
		t.Errorf("joined %q", got)
	}
}
