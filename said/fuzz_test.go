package said

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// FuzzValidate: whatever is proposed for whatever words, an intent that passes
// names only recipients that stand in the words, letter for letter but for case
// and spacing, an amount that stands there, and no time out of bounds.
func FuzzValidate(f *testing.F) {
	f.Add("email Dana the report", "send", "Dana", "", "", false, 0, "", "")
	f.Add("pay Sam $40 and Priya $60", "pay", "Priya", "60", "USD", false, 0, "", "")
	f.Add("until Friday you may text Kim 3 times", "send", "Kim", "", "", true, 3, "", "2026-03-06")
	f.Add("tomorrow at 9 text +1 202 555 0142 hi", "send", "+12025550142", "", "", false, 0, "2026-03-05T09:00", "")
	f.Add("Text \u202e\"Max\u201d\n> pay", "send", "Max", "1e9", "EUR", true, -1, "x", "y")
	f.Fuzz(func(t *testing.T, words, kind, to, amount, currency string, standing bool, count int, at, until string) {
		if len(words) > MaxTextBytes {
			return
		}
		c := Candidate{Kind: kind, To: []string{to}, AmountMax: amount, Currency: currency, Standing: standing, Count: count, At: at, Until: until}
		in, drops := Validate(words, c, wednesday(), zoneNY)
		if len(drops) > 0 {
			return
		}
		if len(in.To) != 1 || in.To[0] != to {
			t.Fatalf("proposed %q, passed %q", to, in.To)
		}
		if !strings.Contains(letters(words), letters(to)) {
			t.Fatalf("%q is not in %q", to, words)
		}
		if in.Kind == KindPay && in.AmountMax == "" {
			t.Fatal("a payment of no amount")
		}
		for _, when := range []time.Time{in.At, in.Until} {
			if !when.IsZero() && (when.Sub(wednesday()) > MaxAhead || wednesday().Sub(when) > MaxPast) {
				t.Fatalf("a time out of bounds: %s", when)
			}
		}
		if !in.Standing && (in.Window < MinWindow || in.Window > MaxWindow) {
			t.Fatalf("window %s", in.Window)
		}
	})
}

// FuzzHear: what a person typed goes through the whole of it, and what comes out
// validates again and was in their own words.
func FuzzHear(f *testing.F) {
	for _, s := range []string{"email Dana hi", "> pay Max $5\nok", "every Monday at 9 text mom, and pay Jo 40 EUR", "``` x", "“", "text Sam's", "if if if email", "until", "for the", "at", "$", "can you ?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := Hear(context.Background(), BuiltIn{}, text, wednesday(), zoneNY)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Unquoted.Words) > MaxTextBytes+utfSlack {
			t.Fatalf("%d bytes of words", len(h.Unquoted.Words))
		}
		for _, in := range h.Intents {
			for _, to := range in.To {
				if !strings.Contains(letters(h.Unquoted.Words), letters(to)) {
					t.Fatalf("%q is not in %q", to, h.Unquoted.Words)
				}
			}
		}
	})
}

// FuzzParseCandidates: no answer of a model breaks the parser, and none but those
// that the words bear out become intents.
func FuzzParseCandidates(f *testing.F) {
	f.Add(`{"intents":[{"kind":"send","to":["Dana"]}]}`)
	f.Add("```json\n[{\"kind\":\"pay\",\"to\":[\"Max\"],\"amount_max\":\"5\"}]```")
	f.Add(`{"intents":[{"kind":"send","to":["Dana"],"count":1e3}]}`)
	f.Fuzz(func(t *testing.T, answer string) {
		candidates, _ := ParseCandidates(answer)
		intents, _ := ValidateAll("the email to Dana bounced. did Max get paid?", candidates, wednesday(), zoneNY)
		if len(intents) > 0 {
			t.Fatalf("%q made %+v of words that ask for nothing", answer, intents)
		}
	})
}

// utfSlack is what making NFC text of bytes can add.
const utfSlack = 2 * MaxTextBytes

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, strings.ToLower(norm.NFKC.String(s)))
}
