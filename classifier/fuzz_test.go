package classifier

import (
	"slices"
	"strings"
	"testing"
)

// A reaction never yields words of the person, quotes nothing but a stretch of
// what came in, and confirms nothing.
func FuzzTapback(f *testing.F) {
	for _, s := range []string{
		"Liked “" + offerText + "”", "Liked \"yes\"", "Loved an image", "Emphasized “yes", "👍 to “yes”", "Reacted 👍 to “send it”", "Removed a like from “yes”",
		"Liked “option A” better, go", "Liked it, go ahead", "A ajouté un j’aime à « oui »", "Le gustó “sí”", "Hat „ja“ mit „Gefällt mir“ markiert", "Curtiu “sim”", "对“好”表示赞",
		"“”", "”“", "\"", "Liked “a\nb”", "👍👍👍 to “”", "Liked “\xff”", "\u200bLiked “yes”", strings.Repeat("“", 2_000), "Liked “" + strings.Repeat("y", 5_000) + "”",
	} {
		f.Add(s)
	}
	offers := labels(f, payAcme)
	f.Fuzz(func(t *testing.T, s string) {
		p := Prepare(NewWords(s))
		if p.Form != FormTapback && p.Form != FormTapbackRemoved {
			if p.Tapback != (Tapback{}) {
				t.Errorf("%q is %v and has a reaction %+v", s, p.Form, p.Tapback)
			}
			return
		}
		if p.Own != "" {
			t.Errorf("%q: own words %q", s, p.Own)
		}
		if text, _ := clean(s); !strings.Contains(text, p.Tapback.Quote) {
			t.Errorf("%q quotes %q", s, p.Tapback.Quote)
		}
		if p.Tapback.Kind == TapbackNone {
			t.Errorf("%q is a reaction of no kind", s)
		}
		for c := range Class(Classes) {
			if got, _ := runGuards(mustSay(c), p, offers); got.Class == Confirm || got.P[Confirm] > 0 && c == Confirm {
				t.Errorf("%q confirms", s)
			}
		}
		if v := adversary(t, s, payAcme); v.Confirms(ActThreshold) {
			t.Errorf("%q acts", s)
		}
	})
}

// Unquoting takes whole lines out and adds none: quoted ones, signatures, and
// one stretch that runs to the end from a header, a forward mark or a signature
// mark. Every other line stays, in its order.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{
		"yes", "> a\nyes", "yes\n> a\n> b", "> a\nno\n> b\nyes", "yes\n\nOn Tue, 4 Mar 2025 at 10:02, Bot wrote:\n> Send it?", "ok\n-- \nSam", "-- \nyes", "Sent from my iPhone", "yes\nSent from my iPhone\nno",
		"no\nFrom: a@b.c\nTo: d\nSubject: e\n\nyes", "---- Forwarded message ----\nyes", "Fwd: yes", "Am 4. März 2025 schrieb Bot:\n> ja?", "Le 4 mars, Bot a écrit :\nok", "＞ はい\nいいえ", "yes\n\n\n>\n", "\n\n", ">", "--", "—\nno",
		strings.Repeat("> \n", 290), "From:\nTo:\nSubject:\nyes", "yes\r\n> no", "yes > no",
	} {
		f.Add(s)
	}
	l := words()
	f.Fuzz(func(t *testing.T, raw string) {
		s, _ := clean(raw)
		if len(s) > maxRawBytes || strings.Count(s, "\n") > maxLines {
			return
		}
		own, notes := l.unquote(s, foldLine(s))
		in, out := strings.Split(s, "\n"), strings.Split(own, "\n")
		if own == "" {
			out = nil
		}
		cut := false // a line went for no reason of its own: all after it must go
		for _, line := range in {
			trimmed := strings.TrimSpace(line)
			if len(out) > 0 && (line == out[0] || trimmed == strings.TrimSpace(out[0])) {
				if cut && trimmed != "" {
					t.Fatalf("%q: %q stands after the cut", s, line)
				}
				out = out[1:]
				continue
			}
			if trimmed == "" || strings.HasPrefix(trimmed, ">") || strings.HasPrefix(trimmed, "＞") || isSignatureMark(line) || l.isSignature(trimmed, foldLine(trimmed)) {
				continue
			}
			cut = true
		}
		if len(out) > 0 {
			t.Errorf("%q: %q was added", s, out)
		}
		if own != s && len(notes) == 0 && strings.TrimSpace(s) != own {
			t.Errorf("%q became %q without a note", s, own)
		}
		if again, _ := l.unquote(own, foldLine(own)); !slices.Equal(strings.Fields(again), strings.Fields(own)) && !strings.Contains(own, "\n") {
			t.Errorf("%q: one line %q was unquoted to %q only the second time", s, own, again)
		}
	})
}
