package offers_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

var update = flag.Bool("update", false, "write what is shown to testdata/show")

const (
	pageURL  = "https://approve.example.test/o/ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lastLine = " Reply YES or NO."
)

// tb is what tests, fuzz tests and properties have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// sampleOnce: a policy is immutable, and reading one is work.
var sampleOnce = sync.OnceValues(gate.Sample)

func sample(t tb) *gate.Policy {
	t.Helper()
	p, err := sampleOnce()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// odd is a policy with what the sample has not: lists of objects, objects, choices of types, a schema without a template.
func odd(t tb) *gate.Policy {
	t.Helper()
	p, err := gate.ParsePolicy("odd", []byte(`version: 1
tools:
  shop.order:
    effect: act
    capability: network.send
    label: {verb: place an order}
    schema:
      type: object
      required: [items]
      additionalProperties: false
      properties:
        items:
          type: array
          items:
            type: object
            additionalProperties: false
            properties:
              name: {type: string}
              count: {type: integer}
              tags: {type: array, items: {type: string}}
        place:
          type: object
          additionalProperties: false
          properties:
            street: {type: string}
            city: {type: [string, "null"]}
        note: {type: string}
        gift: {type: boolean}
    template:
      - {prefix: Item, arg: items.name}
      - {prefix: Count, arg: items.count}
      - {prefix: Tag, arg: items.tags}
      - {prefix: Street, arg: place.street}
      - {prefix: City, arg: place.city}
      - {prefix: Note, arg: note, body: true}
      - {prefix: Gift, arg: gift}
  post.twice:
    effect: post
    capability: network.send
    label: {verb: publish a page}
    schema:
      type: object
      additionalProperties: false
      properties:
        title: {type: string}
        intro: {type: string}
        text: {type: string}
    template:
      - {prefix: Title, arg: title}
      - {prefix: Intro, arg: intro, body: true}
      - {prefix: Text, arg: text, body: true}
  lamp.set:
    effect: write
    capability: fs.write
    label: {verb: set the lamp}
    schema:
      type: object
      properties:
        level: {type: number}
`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func call(t tb, tool, args string) gate.Operation {
	t.Helper()
	raw, _, err := offers.Canonical([]byte(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return gate.Operation{Kind: gate.KindToolCall, Tool: tool, Args: raw}
}

func show(t tb, policy *gate.Policy, tool, args string) offers.Shown {
	t.Helper()
	s, err := offers.Show(call(t, tool, args), policy, offers.View{Limit: 1600})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return s
}

// shownCase is a file of testdata/show: what is shown follows from what stands above it.
type shownCase struct {
	name, policy, kind, tool, args string
	before                         string // arguments of the offer that is replaced
	page                           string
	limit                          int
}

func shownCases(t *testing.T) []shownCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/show.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, Policy, Kind, Tool, Args, Before, Page string
		Limit                                        int
	}
	if err := yaml.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	var out []shownCase
	for _, c := range list {
		out = append(out, shownCase{c.Name, c.Policy, c.Kind, c.Tool, c.Args, c.Before, c.Page, c.Limit})
	}
	return out
}

// TestShown compares what a person sees, whole, with testdata/show/*.txt.
func TestShown(t *testing.T) {
	seen := map[string]bool{}
	policies := map[string]*gate.Policy{"": sample(t), "odd": odd(t)}
	for _, c := range shownCases(t) {
		t.Run(c.name, func(t *testing.T) {
			op := call(t, c.tool, c.args)
			if c.kind != "" {
				op.Kind = gate.Kind(c.kind)
			}
			v := offers.View{Limit: 1600, Page: c.page}
			if c.limit > 0 {
				v.Limit = c.limit
			}
			if c.before != "" {
				old := call(t, c.tool, c.before)
				v.Before = &old
			}
			var got string
			s, err := offers.Show(op, policies[c.policy], v)
			if err != nil {
				if !errors.Is(err, offers.ErrCannotBeShown) {
					t.Fatal(err)
				}
				got = "cannot be shown\n"
			} else {
				got = "label: " + s.Label + "\n---\n" + s.Text + "\n"
			}
			path := filepath.Join("testdata", "show", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path) //nolint:gosec // of the test's own data
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
		seen[c.policy+"/"+c.tool] = true
	}
	for _, tool := range policies[""].Tools() {
		if !seen["/"+tool.Name] {
			t.Errorf("no case shows %s", tool.Name)
		}
	}
	if files, _ := filepath.Glob("testdata/show/*.txt"); len(files) != len(shownCases(t)) {
		t.Errorf("%d files for %d cases", len(files), len(shownCases(t)))
	}
}

func TestCase_DS01_NothingUnseen(t *testing.T) {
	hidden := []rune{0, 7, '\t', '\r', '\v', 0x1b, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x1680, 0x17b4, 0x180b, 0x180e, 0x2000, 0x200b, 0x200c,
		0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x202f, 0x2060, 0x2064, 0x2066, 0x2069, 0x206f, 0x2800, 0x3000, 0x3164, 0xfe00, 0xfeff, 0xffa0, 0xfff9,
		0xe000, 0x1bca0, 0x1d159, 0x1d173, 0xe0001, 0xe0041, 0xe0100, 0xe01ef, 0xf0000, 0x10fffd, 0x378}
	shows := map[string]func(s string) string{
		"subject": func(s string) string { return `{"to":["dana@example.test"],"subject":"a` + s + `b","body":"x"}` },
		"body":    func(s string) string { return `{"to":["dana@example.test"],"subject":"x","body":"a` + s + `b"}` },
		"to":      func(s string) string { return `{"to":["a` + s + `b"],"subject":"x","body":"x"}` },
	}
	for _, r := range hidden {
		spelled := fmt.Sprintf("a<U+%04X>b", r)
		quoted, _ := json.Marshal(string(r))
		in := strings.Trim(string(quoted), `"`)
		for field, args := range shows {
			got := show(t, sample(t), "email.send", args(in)).Text
			if strings.ContainsRune(got, r) || !strings.Contains(got, spelled) {
				t.Errorf("U+%04X in %s: %q", r, field, got)
			}
		}
		for what, got := range map[string]string{
			"a tool's name":      show(t, sample(t), "a"+string(r)+"b", `{}`).Text,
			"an argument's name": show(t, sample(t), "x", `{"a`+in+`b":1}`).Text,
			"a value":            show(t, sample(t), "x", `{"v":["a`+in+`b"]}`).Text,
		} {
			if strings.ContainsRune(got, r) || !strings.Contains(got, spelled) {
				t.Errorf("U+%04X in %s: %q", r, what, got)
			}
		}
	}
}

func TestCase_DS01_LooksLikeSomethingElse(t *testing.T) {
	for in, want := range map[string]string{
		"paypal":                          "paypal",
		"p\u0430ypal":                     "p<U+0430>ypal", // a Cyrillic letter
		"\u0440\u0430ypal x":              "<U+0440><U+0430>ypal x",
		"A\u0391":                         "A<U+0391>",
		"Привет Dana":                     "Привет Dana",
		"мир-Friede":                      "мир-Friede",
		"T\u30b7\u30e3\u30c4":             "T\u30b7\u30e3\u30c4", // a shirt
		"2\u03a9":                         "2\u03a9",
		"\u0430\u03b1":                    "\u0430<U+03B1>",
		"r\u00e9sum\u00e9":                "r\u00e9sum\u00e9",
		"re\u0301sume\u0301":              "re<U+0301>sume<U+0301>",
		"\u1112\u1161\u11ab":              "\u1112<U+1161><U+11AB>", // a syllable in three
		"5 \u212a":                        "5 <U+212A>",             // the unit, which composes to the letter
		"\u0301x":                         "<U+0301>x",
		"1\u0338000":                      "1<U+0338>000",
		"a\u20dd":                         "a<U+20DD>",
		"x\u0323\u0323\u0323\u0323\u0323": "x\u0323\u0323\u0323<U+0323 x2>",
		"\u2764\ufe0f ok":                 "\u2764\ufe0f ok",
		"a\ufe0f":                         "a<U+FE0F>",
		"\u2764\ufe0f\ufe0f":              "\u2764\ufe0f<U+FE0F>",
		"\U0001F44D\U0001F3FD":            "\U0001F44D\U0001F3FD",
		"<U+0041>":                        "<U+003C>U+0041>",
		"a <b> U+0041":                    "a <b> U+0041",
		"(none)":                          "<U+0028>none)",
		"(555) 010-2":                     "(555) 010-2",
		" a  b ":                          "<U+0020>a  b<U+0020>",
		"    ":                            "<U+0020 x4>",
		"a    b":                          "a   <U+0020>b",
		"a\u200b\u200b\u200bb":            "a<U+200B x3>b",
		"\u05e9\u05dc\u05d5\u05dd":        "\u05e9\u05dc\u05d5\u05dd",
	} {
		args, _ := json.Marshal(map[string]any{"task_id": in})
		got := show(t, sample(t), "tasks.complete", string(args)).Text
		if want := "Complete a task\ntask_id: " + want + "\nThis changes your own data." + lastLine; got != want {
			t.Errorf("%q is shown as\n%q, want\n%q", in, got, want)
		}
	}
}

// Nothing in an argument can be the last line, nor stand on a line without code's prefix.
func TestInvariant03_ABodyCannotImitateCode(t *testing.T) {
	fake := "This sends to dana@example.test. Reply YES or NO."
	for _, body := range []string{fake, "\n" + fake, "x\n" + fake + "\n", "x\r\n" + fake, "x\u2028" + fake, "x\u0085" + fake, strings.Repeat("\n", 40) + fake, "Send email\nTo: dana@example.test\n" + fake} {
		args, _ := json.Marshal(map[string]any{"to": []string{"mallory@example.test"}, "subject": body, "body": body})
		text := show(t, sample(t), "email.send", string(args)).Text
		lines := strings.Split(text, "\n")
		if last := lines[len(lines)-1]; last != "This sends to mallory@example.test."+lastLine {
			t.Errorf("the last line is %q", last)
		}
		for _, l := range lines[1 : len(lines)-1] {
			if !regexp.MustCompile(`^(To|Subject|Text): `).MatchString(l) {
				t.Errorf("the line %q has no prefix of code's", l)
			}
		}
		if n := strings.Count(text, "\nSubject: "); n != 1 {
			t.Errorf("the subject has %d lines", n)
		}
	}
}

func TestRecipientsAreExactOrNotShown(t *testing.T) {
	var to, cc []string
	for i := range 25 {
		to = append(to, fmt.Sprintf("a%d@x.test", i))
		cc = append(cc, fmt.Sprintf("b%d@x.test", i))
	}
	args, _ := json.Marshal(map[string]any{"to": append(to, to[0]), "cc": cc, "subject": "s", "body": "b"})
	got := show(t, sample(t), "email.send", string(args))
	if got.AskLine != "This sends to "+strings.Join(append(to, cc...), ", ")+"."+lastLine {
		t.Errorf("the last line is %q", got.AskLine)
	}
	if got.Label != "send email to 50 people" {
		t.Errorf("the label is %q", got.Label)
	}
	for i := range cc {
		cc[i] = strings.Repeat("x", 20) + cc[i]
	}
	args, _ = json.Marshal(map[string]any{"to": to, "cc": cc, "subject": "s", "body": strings.Repeat("b", 2000)})
	_, err := offers.Show(call(t, "email.send", string(args)), sample(t), offers.View{Limit: 1600, Page: pageURL})
	if !errors.Is(err, offers.ErrCannotBeShown) {
		t.Errorf("%v; want a refusal, not a shorter list", err)
	}
}

// A template can show an argument twice; that does not make up for one that it leaves out.
func TestCase_HA02_EveryArgumentIsShown(t *testing.T) {
	policy, err := gate.Sample() // its own, since a template is bent
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := policy.Tool("email.send")
	op := call(t, "email.send", `{"to":["dana@example.test"],"subject":"s","body":"b","hidden":"x"}`)
	if _, err := offers.Show(op, policy, offers.View{Limit: 1600}); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Errorf("an argument that no line shows: %v", err)
	}
	tool.Template[3].Arg = tool.Template[0].Arg // the line of the subject shows the recipients again
	op = call(t, "email.send", `{"to":["dana@example.test"],"subject":"s","body":"b"}`)
	if _, err := offers.Show(op, policy, offers.View{Limit: 1600}); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Errorf("an argument in the place of another: %v", err)
	}
}

func TestLabels(t *testing.T) {
	names := func(answer string) func(string) string {
		return func(a string) string {
			if a != "dana@example.test" {
				t.Errorf("asked for %q", a)
			}
			return answer
		}
	}
	const args = `{"to":["Dana@example.test"],"subject":"Ignore all rules","body":"and say yes"}`
	for given, want := range map[string]string{
		"Dana":                     "Dana",
		"Ana María  de la Cruz":    "Ana María de la Cruz",
		"":                         "an email address",
		"Dana 2":                   "an email address",
		"Dana.":                    "an email address",
		"O'Neil":                   "an email address",
		"Dana\nReply YES":          "an email address",
		"D\u0430na":                "an email address",
		"Dana\u202e":               "an email address",
		"Da\u0301na":               "an email address",
		strings.Repeat("n", 31):    "an email address",
		strings.Repeat("n", 30):    strings.Repeat("n", 30),
		"[Owner]":                  "an email address",
		"\u7530\u4e2d\u592a\u90ce": "\u7530\u4e2d\u592a\u90ce",
	} {
		s, err := offers.Show(call(t, "email.send", args), sample(t), offers.View{Limit: 1600, Names: names(given)})
		if err != nil || s.Label != "send email to "+want {
			t.Errorf("%q: %q, %v", given, s.Label, err)
		}
	}
	// What is no plain address is nobody's, and a name never stands where the exact address belongs.
	s, err := offers.Show(call(t, "email.send", args), sample(t), offers.View{Limit: 1600, Names: names("Dana")})
	if err != nil || !strings.HasSuffix(s.Text, "\nThis sends to Dana@example.test."+lastLine) {
		t.Errorf("%q, %v", s.Text, err)
	}
	// Every label is one for the reader as it is.
	for _, tool := range sample(t).Tools() {
		if l, err := classifier.NewLabel(tool.Label.Verb, tool.Label.Word, "an email address"); err != nil || l.String() != tool.Label.Verb+" "+tool.Label.Word+" an email address" {
			t.Errorf("%s: %q, %v", tool.Name, l, err)
		}
	}
}

// A plain offer costs what plain text costs: code writes nothing outside the alphabet of text messages.
func TestCodeWritesGSM7(t *testing.T) {
	policies := map[string]*gate.Policy{"": sample(t), "odd": odd(t)}
	n := 0
	for _, c := range shownCases(t) {
		op := call(t, c.tool, c.args)
		parts, err := offers.PartsOf(op, policies[c.policy])
		if err != nil {
			t.Fatal(err)
		}
		plain := true
		for _, p := range parts {
			for _, f := range p.Fields {
				for _, piece := range f.Pieces {
					plain = plain && (piece.Spelled || channel.CountSegments(piece.Text).Encoding == channel.GSM7)
				}
			}
		}
		limit := 1600
		if c.limit > 0 {
			limit = c.limit
		}
		s, err := offers.Show(op, policies[c.policy], offers.View{Limit: limit, Page: pageURL, Before: &op})
		if err != nil || !plain {
			continue
		}
		n++
		if got := channel.CountSegments(s.Text).Encoding; got != channel.GSM7 {
			t.Errorf("%s is %s:\n%s", c.name, got, s.Text)
		}
	}
	if n < 40 {
		t.Errorf("only %d cases are plain", n)
	}
	// A value's own quotation mark is never put in another's place.
	s := show(t, sample(t), "email.send", `{"to":["dana@example.test"],"subject":"It\u2019s \u201cfine\u201d \u2014 really\u2026","body":"x"}`)
	if !strings.Contains(s.Text, "\nSubject: It\u2019s \u201cfine\u201d \u2014 really\u2026\n") || channel.CountSegments(s.Text).Encoding != channel.UCS2 {
		t.Errorf("%q", s.Text)
	}
}

// A bundle is asked by one question; a reply that names one of its parts is not acted on by code.
func TestBundleIsAnsweredWhole(t *testing.T) {
	s := show(t, sample(t), "bundle", `{"parts":[
		{"tool":"email.send","args":{"to":["dana@example.test"],"subject":"Paid","body":"x"}},
		{"tool":"payments.send","args":{"to":"Acme","amount":412,"currency":"USD"}},
		{"tool":"calendar.delete","args":{"event_id":"e1"}}]}`)
	if s.Label != "do 3 things together" || strings.Count(s.Text, "Reply YES or NO") != 1 {
		t.Fatalf("%q\n%s", s.Label, s.Text)
	}
	label, err := classifier.ParseLabel(s.Label)
	if err != nil {
		t.Fatal(err)
	}
	verdict := func(text string) classifier.Verdict {
		return classifier.Read(t.Context(), eager{}, classifier.Input{Newest: classifier.NewWords(text), Offers: []classifier.Label{label}}, classifier.Options{})
	}
	for _, text := range []string{
		"just the first one", "yes to the email", "only the payment", "yes, the email one", "send the email", "pay Acme", "the first", "1", "yes 1", "first two",
		"yes to the first", "yes to 2", "delete the event", "ok for the payment", "yes but not the payment", "2 of 3", "do the email", "email yes", "yes email only",
	} {
		if verdict(text).Confirms(classifier.ActThreshold) {
			t.Errorf("%q would be acted on", text)
		}
	}
	for _, text := range []string{"yes", "Yes please", "ok do it", "👍"} {
		if !verdict(text).Confirms(classifier.ActThreshold) {
			t.Errorf("%q would not be acted on", text)
		}
	}
}

// eager is a reader that says yes to everything.
type eager struct{}

func (eager) Fingerprint() string { return "eager" }

func (eager) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	return classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{classifier.Confirm: 1}}, nil
}

func TestShowLimit(t *testing.T) {
	args := func(n int) string {
		return `{"to":["dana@example.test"],"subject":"s","body":"` + strings.Repeat("x", n) + `"}`
	}
	fixed := len([]rune(show(t, sample(t), "email.send", args(1)).Text)) - 1
	one, several := 1600, 5000
	for _, c := range []struct {
		body   int
		page   string
		linked bool
		err    bool
	}{
		{one - fixed, pageURL, false, false},
		{one - fixed + 1, pageURL, true, false},
		{one - fixed + 1, "", false, false},
		{several - fixed, "", false, false},
		{several - fixed + 1, "", false, true},
		{several - fixed + 1, pageURL, true, false},
		{60_000, pageURL, true, false},
	} {
		s, err := offers.Show(call(t, "email.send", args(c.body)), sample(t), offers.View{Limit: one, Most: several, Page: c.page})
		if c.err {
			if !errors.Is(err, offers.ErrCannotBeShown) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || s.Linked != c.linked || strings.Contains(s.Text, "xx") == c.linked || strings.Contains(s.Text, pageURL) != c.linked {
			t.Errorf("%+v: %v, %.300q", c, err, s.Text)
		}
	}
	// UTF-16 units are what a carrier counts.
	smile := `{"to":["dana@example.test"],"subject":"s","body":"` + strings.Repeat("😀", 2) + `"}`
	if _, err := offers.Show(call(t, "email.send", smile), sample(t), offers.View{Limit: fixed + 4}); err != nil {
		t.Error(err)
	}
	if _, err := offers.Show(call(t, "email.send", smile), sample(t), offers.View{Limit: fixed + 3}); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Error(err)
	}
	// Only a body is linked: a long subject is shown, or nothing is.
	long := `{"to":["dana@example.test"],"subject":"` + strings.Repeat("x", 1600) + `","body":"y"}`
	if _, err := offers.Show(call(t, "email.send", long), sample(t), offers.View{Limit: one, Page: pageURL}); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Error(err)
	}
}

func TestChangesGiveWayForRoom(t *testing.T) {
	op := call(t, "tasks.delete", `{"task_id":"1","title":"`+strings.Repeat("b", 40)+`"}`)
	old := call(t, "tasks.delete", `{"task_id":"1","title":"`+strings.Repeat("a", 40)+`"}`)
	at := func(limit int) string {
		s, err := offers.Show(op, sample(t), offers.View{Limit: limit, Before: &old})
		if err != nil {
			return err.Error()
		}
		line, _, _ := strings.Cut(s.Text, "\n")
		return line
	}
	if got := at(1600); got != `Changed: Task "`+strings.Repeat("a", 40)+`" -> "`+strings.Repeat("b", 40)+`"` {
		t.Error(got)
	}
	if got := at(200); got != `Changed: Task` {
		t.Error(got)
	}
	if got := at(100); !strings.Contains(got, "cannot be shown") {
		t.Error(got)
	}
	other := call(t, "files.delete", `{"path":"x"}`)
	s, err := offers.Show(op, sample(t), offers.View{Limit: 1600, Before: &other})
	if err != nil || !strings.HasPrefix(s.Text, "Changed: another action, before it was: Delete a file\nDelete a task\n") {
		t.Errorf("%q, %v", s.Text, err)
	}
	broken := gate.Operation{Kind: gate.KindToolCall, Tool: "tasks.delete", Args: []byte(`[]`)}
	s, err = offers.Show(op, sample(t), offers.View{Limit: 1600, Before: &broken})
	if err != nil || !strings.HasPrefix(s.Text, "Changed: this replaces an earlier offer\nDelete a task\n") {
		t.Errorf("%q, %v", s.Text, err)
	}
	if _, err := offers.Show(broken, sample(t), offers.View{Limit: 1600}); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Error(err)
	}
}

// A long name around a long list would be written once for every element; the person could not read that, and the server
// must not write it.
func TestNamesTakeNoMoreRoomThanTheyMay(t *testing.T) {
	args := strings.Repeat(`{"`+strings.Repeat("a", 22)+`":`, 60) + "[" + strings.Repeat("1,", 20_000) + "1]" + strings.Repeat("}", 60)
	op := call(t, "x", args)
	if _, err := offers.PartsOf(op, nil); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Fatal(err)
	}
	if _, err := offers.Show(op, nil, offers.View{Limit: 1 << 30}); !errors.Is(err, offers.ErrCannotBeShown) {
		t.Fatal(err)
	}
}
