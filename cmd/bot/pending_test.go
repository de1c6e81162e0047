package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

// syncLog is a log that several goroutines write to.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestInvariant13_NoCommandAndNoPageTellsPendingText has strangers and somebody suspended say a word to a real server that
// logs all it can, and looks for it in whatever comes out: texts, calls, pages, metrics, log and every command but the one
// that is for it.
func TestInvariant13_NoCommandAndNoPageTellsPendingText(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "x.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.New(t) },
	} {
		t.Run(name, func(t *testing.T) { pendingIsNowhere(t, url(t)) })
	}
}

func pendingIsNowhere(t *testing.T, databaseURL string) {
	const word = "marzipan"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"COUNTERSIGN_DATABASE_URL=" + databaseURL, "COUNTERSIGN_SIM=1", "COUNTERSIGN_MIN_READ=1ms", "COUNTERSIGN_PUBLIC_URL=https://approve.example.com"}
	cfg, _, err := load(variables(environ), "", nil)
	must(err)
	s, err := openStore(t.Context(), databaseURL, true)
	must(err)
	_, err = s.Migrate(t.Context())
	must(err)
	var log syncLog
	a, err := newApp(cfg, s, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	must(err)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.serve(ctx, l) }()
	base := "http://" + l.Addr().String()
	var told strings.Builder
	call := func(method, path, key, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		must(err)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("Idempotency-Key", offers.NewID())
		}
		resp, err := http.DefaultClient.Do(req)
		must(err)
		defer resp.Body.Close() //nolint:errcheck // read to its end
		raw, err := io.ReadAll(resp.Body)
		must(err)
		told.Write(raw)
		return resp.StatusCode, string(raw)
	}
	says := func(from, words string) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"id": offers.NewID(), "address": from, "text": words})
		must(err)
		if code, answer := call("POST", "/webhooks/sim/messages", "", string(body)); code != http.StatusOK {
			t.Fatalf("%d %s", code, answer)
		}
	}
	command := func(args ...string) string {
		t.Helper()
		code, out, errs := bot(t, environ, "", args...)
		if code != exitOK {
			t.Fatalf("bot %v: %d %s%s", args, code, out, errs)
		}
		return out
	}
	var made struct{ ID, Key string }
	must(json.Unmarshal([]byte(command("keys", "create", "--name", "agent", "--scope", "agent", "--json")), &made))
	key := made.Key
	must(json.Unmarshal([]byte(command("people", "add", "--name", "Alex", "--address", "sim:alex", "--as", "owner", "--json")), &made))
	alex := made.ID
	must(json.Unmarshal([]byte(command("people", "add", "--name", "Kim", "--address", "sim:kim", "--as", "owner", "--json")), &made))
	command("people", "suspend", made.ID)

	says("sim:mallory", "hi, this is "+word)
	says("sim:mallory", word)
	says("sim:kim", "yes "+word)
	says("sim:kim", "STOP "+word)
	texts, err := a.sim.Wait(t.Context(), "sim:mallory", 1)
	must(err)
	code := strings.TrimSuffix(strings.Fields(texts[0].Body[strings.Index(texts[0].Body, "Your code: ")+len("Your code: "):])[0], ".")
	says("sim:mallory", code)
	command("people", "approve", strings.ToLower(code), "--as", "paired", "--name", "Mallory", "--json")
	command("people", "activate", made.ID)
	says("sim:mallory", "hello there")
	says("sim:kim", "hello there")

	status, offer := call("POST", "/v1/offers", key, fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":{"to":["dana@example.com"],"subject":"s","body":%q}}`, alex, strings.Repeat("long words ", 300)))
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, offer)
	}
	var o offers.Offer
	must(json.Unmarshal([]byte(offer), &o))
	shown, err := a.sim.Wait(t.Context(), "sim:alex", 1)
	must(err)
	token := regexp.MustCompile(`/o/[A-Z2-7]{26}`).FindString(shown[0].Body)
	if status, page := call("GET", token, "", ""); token == "" || status != http.StatusOK || !strings.Contains(page, "long words") {
		t.Fatalf("page %q: %d %s", token, status, page)
	}
	// A page of the feed that has what the persons said by now shows that there was something to find.
	for after := ""; !strings.Contains(told.String(), "hello there"); {
		_, page := call("GET", "/v1/events?wait=5s&after="+after, key, "")
		var p struct{ Next string }
		must(json.Unmarshal([]byte(page), &p))
		after = p.Next
	}
	_, doc := call("GET", "/openapi.json", "", "")
	var paths struct{ Paths map[string]map[string]any }
	must(json.Unmarshal([]byte(doc), &paths))
	for path, item := range paths.Paths {
		for _, id := range []string{o.ID, o.OperationID} {
			if item["get"] != nil {
				call("GET", strings.ReplaceAll(path, "{id}", id), key, "")
			}
		}
	}
	rec := httptest.NewRecorder()
	a.metrics.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	told.Write(rec.Body.Bytes())
	for _, words := range commands(t) {
		name := strings.Join(words, " ")
		if slices.Contains([]string{"demo", "serve", "train", "golive", "people pending"}, name) {
			continue
		}
		for _, more := range [][]string{nil, {"--json"}, {"--from-store"}} {
			_, out, errs := bot(t, environ, "", slices.Concat(words, more)...) // some want more, and say so
			told.WriteString(out + errs)
		}
	}
	for _, who := range []people.Address{"sim:alex", "sim:kim", "sim:mallory"} {
		for _, x := range a.sim.Texts(who) {
			told.WriteString(x.Body)
		}
	}
	stop()
	must(<-ended)
	must(s.Close())
	told.WriteString(log.String())
	if !strings.Contains(log.String(), `"msg"`) {
		t.Log("the log is empty")
	}
	if i := strings.Index(strings.ToLower(told.String()), word); i >= 0 {
		t.Errorf("it is told: …%.300s", told.String()[max(0, i-200):])
	}
	for _, more := range [][]string{nil, {"--json"}} {
		if n := strings.Count(command(append([]string{"people", "pending"}, more...)...), word); n != 4 {
			t.Errorf("the owner finds %d of the texts", n)
		}
	}
}

// tricks are names and words that try to look like something else, or to move what stands around them.
var tricks = []struct {
	name string
	in   string
	says string // what a person makes of it when it is shown on one line
}{
	{"bidi override", "invoice\u202efdp.exe", "invoice<U+202E>fdp.exe"},
	{"bidi isolate", "Owner \u2066verified\u2069", "Owner <U+2066>verified<U+2069>"},
	{"zero width", "pay\u200bpal", "pay<U+200B>pal"},
	{"joiner", "a\u200db", "a<U+200D>b"},
	{"tag characters", "a\U000e0041b", "a<U+E0041>b"},
	{"variation selector", "a\U000e0100b", "a<U+E0100>b"},
	{"filler", "a\u115fb", "a<U+115F>b"},
	{"homoglyph in a word", "p\u0430ypal", "p<U+0430>ypal"},
	{"Greek among Latin", "B\u03bfb", "B<U+03BF>b"},
	{"newline", "Dana\nReply YES", "Dana<U+000A>Reply YES"},
	{"carriage return", "Dana\rKim", "Dana<U+000D>Kim"},
	{"line separator", "Dana\u2028Kim", "Dana<U+2028>Kim"},
	{"escape sequence", "a\x1b[2Jb", "a<U+001B>[2Jb"},
	{"control sequence introducer", "a\u009b2Jb", "a<U+009B>2Jb"},
	{"padding", "ok" + strings.Repeat(" ", 40) + "and more", "ok   <U+0020 x37>and more"},
	{"a name of one script", "\u0414\u0430\u0440\u044c\u044f", "\u0414\u0430\u0440\u044c\u044f"},
	{"a name with accents", "Zo\u00eb", "Zo\u00eb"},
}

// TestCase_DS01_WhatTheOwnerSees shows every trick as a stranger's name and words in the owner's list, as arguments, as a
// tool's name in the text that the person gets, and looks for anything that would not be seen, or move what is.
func TestCase_DS01_WhatTheOwnerSees(t *testing.T) {
	for _, trick := range tricks {
		t.Run(trick.name, func(t *testing.T) {
			if got := offers.Spell(trick.in); got != trick.says {
				t.Errorf("spelled %q, want %q", got, trick.says)
			}
			db := environ(t)
			s, err := openStore(t.Context(), strings.TrimPrefix(db[0], "COUNTERSIGN_DATABASE_URL="), false)
			if err != nil {
				t.Fatal(err)
			}
			sim := channel.NewSim(nil)
			in := inboundOf(webhook.Inbound{Provider: webhook.ProviderTwilio, ProviderSID: "SM1", From: "sms:+12025550109", To: "sms:+12025550100",
				Text: webhook.Text(trick.in), ProfileName: webhook.Text(trick.in), Raw: webhook.Bytes(trick.in)}, sim)
			if strings.ContainsFunc(in.Name, unseen) || strings.ContainsAny(in.Name, "[]\n\r") {
				t.Errorf("the name is kept as %q", in.Name)
			}
			if _, err := s.Receive(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			code, table, errs := bot(t, db, "", "people", "pending")
			if code != exitOK || !strings.Contains(table, trick.says) {
				t.Errorf("%d %s%s", code, table, errs)
			}
			code, doc, errs := bot(t, db, "", "people", "pending", "--json")
			if code != exitOK {
				t.Fatalf("%d %s", code, errs)
			}
			for _, out := range []string{table, doc} {
				for line := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
					if strings.ContainsFunc(line, unseen) {
						t.Errorf("printed %q", line)
					}
				}
			}
			var list struct {
				Pending []struct {
					ShownName string `json:"shown_name"`
					Texts     []people.PendingText
				}
			}
			if err := json.Unmarshal([]byte(doc), &list); err != nil {
				t.Fatal(err)
			}
			if got := list.Pending[0].Texts[0].Text; got != trick.in {
				t.Errorf("the evidence is %q", got)
			}
			if strings.ContainsFunc(list.Pending[0].ShownName, unseen) {
				t.Errorf("the name is %q", list.Pending[0].ShownName)
			}
			shown := shownFor(t, "files.label", map[string]any{"name": trick.in}, "")
			if !strings.Contains(shown.Text, trick.says) {
				t.Errorf("an argument is shown as %q", shown.Text)
			}
			other := shownFor(t, trick.in, map[string]any{"name": "x"}, "")
			mail := shownFor(t, "email.send", map[string]any{"to": []string{"dana@example.com"}, "subject": trick.in, "body": "x"}, trick.in)
			for _, text := range []string{shown.Text, other.Text, mail.Text, shown.Label, other.Label, mail.Label} {
				if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unseen(r) }) {
					t.Errorf("shown %q", text)
				}
			}
			// A name with letters of two scripts in a word names nobody: the label is of letters that are what they look like.
			if strings.Contains(trick.says, "<U+") && strings.ContainsFunc(mail.Label, func(r rune) bool { return unicode.In(r, unicode.Cyrillic, unicode.Greek) }) {
				t.Errorf("the label is %q", mail.Label)
			}
		})
	}
}

// unseen says whether a character is not plainly seen.
func unseen(r rune) bool {
	return r != ' ' && (!unicode.IsGraphic(r) || unicode.In(r, unicode.Z, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}

// shownFor is what a person is shown of a call, where every recipient is a contact of that name; empty: of none.
func shownFor(t *testing.T, tool string, args any, contact string) offers.Shown {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	canonical, _, err := offers.Canonical(raw)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := offers.Show(gate.Operation{Kind: gate.KindToolCall, Tool: tool, Args: canonical}, policy,
		offers.View{Limit: 1600, Most: 6400, Names: func(string) string { return contact }})
	if err != nil {
		t.Fatal(err)
	}
	return shown
}
