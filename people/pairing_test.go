package people_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/people"
)

func TestCase_PA05_CodesAsTyped(t *testing.T) {
	for _, typed := range []string{
		"K7M4Q2ZP", "k7m4q2zp", "K7M4-Q2ZP", " K7M4 Q2ZP ", "K7M4Q2ZP.", "k7m4\u2013q2zp. ", "K 7 M 4 Q 2 Z P", "\tK7M4\u00a0Q2ZP\n", "K7M4\u2011Q2ZP",
	} {
		if got, err := people.ParseCode(typed); err != nil || got != "K7M4Q2ZP" {
			t.Errorf("%q: %q, %v", typed, got, err)
		}
	}
	for _, typed := range []string{
		"", "K7M4Q2Z", "K7M4Q2ZPP", "K7M4Q2Z0", "K7M4Q2ZO", "K7M4Q2Z1", "K7M4Q2ZI", "k7m4q2zo", "K7M4Q2Z\u0420", "\uff2b7M4Q2ZP", "K7M4.Q2ZP", "K7M4Q2ZP..", "K7M4Q2Z\u200bP",
		"K7M4_Q2ZP", "\"K7M4Q2ZP\"", strings.Repeat("A", 1000),
	} {
		if got, err := people.ParseCode(typed); !errors.Is(err, people.ErrBadCode) {
			t.Errorf("%q was taken for %q", typed, got)
		}
	}
}

// Every character of the alphabet is as likely as any other, at every place: 256 is a multiple of its length.
func TestCodesAreOfTheAlphabet(t *testing.T) {
	if len(people.CodeAlphabet) != 32 || strings.ContainsAny(people.CodeAlphabet, "01OI") {
		t.Fatalf("alphabet %q", people.CodeAlphabet)
	}
	const n = 4000
	seen := map[string]bool{}
	counts := map[rune]int{}
	for range n {
		c := people.NewCode()
		if got, err := people.ParseCode(c); err != nil || got != c || seen[c] {
			t.Fatalf("code %q: %v", c, err)
		}
		seen[c] = true
		for _, r := range c {
			counts[r]++
		}
	}
	// 1,000 of each are expected, with a deviation of about 31.
	for _, r := range people.CodeAlphabet {
		if counts[r] < 750 || counts[r] > 1250 {
			t.Errorf("%c comes %d times", r, counts[r])
		}
	}
}

func TestPromptIsOnePlainText(t *testing.T) {
	text := people.PromptText("K7M4Q2ZP")
	if len(text) > 160 || !strings.Contains(text, "K7M4-Q2ZP") || strings.ContainsFunc(text, func(r rune) bool { return r > 126 || r < 32 || strings.ContainsRune("`^{}\\[]~|", r) }) {
		t.Errorf("%d characters: %s", len(text), text)
	}
	// A stranger reads it as such: nothing in it says whose number this is, or that codes can be texted.
	for _, word := range []string{"STOP", "hour"} {
		if !strings.Contains(text, word) {
			t.Errorf("no %s in %s", word, text)
		}
	}
}

func TestFloodKeeps(t *testing.T) {
	full := people.Flood{SenderTexts: people.SenderTexts - 1, SenderBytes: people.SenderBytes - 10, NumberTexts: people.NumberTexts - 1, NumberBytes: people.NumberBytes - 10}
	for name, c := range map[string]struct {
		change func(f *people.Flood)
		bytes  int
		want   bool
	}{
		"nothing yet":            {func(f *people.Flood) { *f = people.Flood{} }, 100, true},
		"the last that fits":     {func(*people.Flood) {}, 10, true},
		"too long for a sender":  {func(f *people.Flood) { f.NumberBytes = 0 }, 11, false},
		"too long for a number":  {func(f *people.Flood) { f.SenderBytes = 0 }, 11, false},
		"too many of a sender":   {func(f *people.Flood) { f.SenderTexts++ }, 1, false},
		"too many to the number": {func(f *people.Flood) { f.NumberTexts++ }, 1, false},
		"alone too long":         {func(f *people.Flood) { *f = people.Flood{} }, people.SenderBytes + 1, false},
	} {
		f := full
		c.change(&f)
		if got := f.Keeps(c.bytes); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestKnockPrompts(t *testing.T) {
	plain := people.PromptFacts{Address: "sms:+12025550109", Plain: true, Pending: people.MaxPendingCodes - 1}
	if !plain.Prompts() || (people.PromptFacts{}).Prompts() {
		t.Fatal("plain words of a stranger get a code, and nothing does not")
	}
	for name, change := range map[string]func(k *people.PromptFacts){
		"nobody":             func(k *people.PromptFacts) { k.Address = "" },
		"a picture, a group": func(k *people.PromptFacts) { k.Plain = false },
		"stop":               func(k *people.PromptFacts) { k.Keyword = people.KeywordStop },
		"start":              func(k *people.PromptFacts) { k.Keyword = people.KeywordStart },
		"help":               func(k *people.PromptFacts) { k.Keyword = people.KeywordHelp },
		"opted out":          func(k *people.PromptFacts) { k.OptedOut = true },
		"within the hour":    func(k *people.PromptFacts) { k.Prompted = true },
		"three are pending":  func(k *people.PromptFacts) { k.Pending++ },
	} {
		k := plain
		change(&k)
		if k.Prompts() {
			t.Errorf("%s gets a text", name)
		}
	}
}

func TestAccountIDs(t *testing.T) {
	for _, s := range []string{"harbour", "a", "2-b", "01937d3e-7b1a-7c31-9a6e-0d7f4a3f2b10"} {
		if got, err := people.ParseAccountID(s); err != nil || got != s {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", "-a", "Harbour", "a b", "a/b", "a_b", "\u0430", strings.Repeat("a", 64)} {
		if _, err := people.ParseAccountID(s); !errors.Is(err, people.ErrBadSlug) {
			t.Errorf("%q was taken", s)
		}
	}
}

func TestGroupPending(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	row := func(from people.Address, id string) people.PendingRow {
		return people.PendingRow{PendingText: people.PendingText{MessageID: id, Text: id}, Address: from, OurNumber: "sim:us", Raw: []byte(id)}
	}
	got := people.GroupPending(
		[]people.PendingRow{row("sim:b", "4"), row("sim:a", "3"), row("sim:b", "2"), row("", "1")},
		[]people.PendingCode{
			{Address: "sim:a", OurNumber: "sim:us", ExpiresAt: at, Prompt: people.PromptAccepted},
			{Address: "sim:b", OurNumber: "sim:us", ExpiresAt: at, Prompt: people.PromptAccepted},
			{Address: "sim:b", OurNumber: "sim:us", ExpiresAt: at.Add(time.Hour), Waits: true, Prompt: people.PromptUnknown},
			{Address: "sim:c", OurNumber: "sim:us", Waits: true},
		})
	if len(got) != 3 || got[0].Address != "sim:b" || got[1].Address != "sim:a" || got[2].Address != "" {
		t.Fatalf("%+v", got)
	}
	b := got[0]
	if len(b.Texts) != 2 || b.Texts[0].MessageID != "2" || b.Code != people.CodeWaiting || b.Prompt != people.PromptUnknown || b.ExpiresAt == nil || !b.ExpiresAt.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v", b)
	}
	if got[1].Code != people.CodeOver || got[1].ExpiresAt != nil || got[2].Code != people.CodeNone || len(b.Texts[0].RawSHA256) != 64 {
		t.Errorf("%+v", got)
	}
	if empty := people.GroupPending(nil, nil); empty == nil || len(empty) != 0 {
		t.Error("nobody is not an empty list")
	}
}

func TestCodesAndWordsStayOutOfLogs(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log.Debug("x", "prompt", people.Prompt{ID: "id", Address: "sms:+12025550109", OurNumber: "sms:+12025550100", Code: "K7M4Q2ZP"}, "text", people.PendingText{MessageID: "m", Text: "words"})
	for _, s := range []string{"5550109", "5550100", "K7M4", "words"} {
		if strings.Contains(b.String(), s) {
			t.Errorf("%s is in %s", s, b.String())
		}
	}
	if !slices.Contains(strings.Fields(b.String()), "prompt.id=id") {
		t.Error(b.String())
	}
}
