package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// asProgram makes the test binary be the program, so that the script's server is a real process of the code under test.
const asProgram = "BOT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(exitNo) // the test that started it is gone
		}()
		code := run(ctx, os.Args[1:], os.Environ(), strings.NewReader(""), os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// scripted plays the script and returns its lines.
func scripted(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	var out, errs bytes.Buffer
	environ := append(os.Environ(), asProgram+"=1", "COUNTERSIGN_SIM=1", "COUNTERSIGN_DATABASE_URL=nonsense") // neither is the demo's
	code := run(t.Context(), append([]string{"demo", "--script", "--json"}, args...), environ, strings.NewReader(""), &out, &errs)
	var lines []map[string]any
	for dec := json.NewDecoder(&out); dec.More(); {
		var l map[string]any
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l["held"] == false {
			t.Errorf("step %v %v: %v: wanted %v, there was %v", l["step"], l["name"], l["what"], l["wanted"], l["got"])
		}
		lines = append(lines, l)
	}
	if code != exitOK {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if errs.Len() > 0 {
		t.Errorf("a log without --verbose: %s", errs.String())
	}
	return lines
}

func TestDemoScript(t *testing.T) {
	for name, database := range map[string]func(*testing.T) []string{
		"SQLite":     func(*testing.T) []string { return nil },
		"PostgreSQL": func(t *testing.T) []string { return []string{"--database-url", pgtest.New(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			lines := scripted(t, database(t)...)
			if len(lines) == 0 {
				t.Fatal("nothing was played")
			}
			last := lines[len(lines)-1]
			if n := float64(len(lines) - 1); n < 40 || last["held"] != n || last["steps"] != n {
				t.Errorf("%d steps, and the last line is %v", len(lines)-1, last)
			}
		})
	}
}

func TestDemoScriptPlaysAgainInTheSameDatabase(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "again.db")
	for range 2 {
		scripted(t, "--database-url", url)
	}
}

func TestDemoScriptRefusesADatabaseWithPeople(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "used.db")
	s, err := openStore(t.Context(), url, true)
	if err != nil {
		t.Fatal(err)
	}
	err = s.AddPerson(t.Context(), people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: "sms:+12025550177", OurNumber: "sms:+12025550100"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := bot(t, nil, "", "demo", "--script", "--database-url", url)
	if code != exitUsage || !strings.Contains(errs, "has people in it") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

func TestDemoScriptSaysWhatDidNotHold(t *testing.T) {
	var out bytes.Buffer
	s := &script{e: &env{stdout: &out}, ctx: t.Context()}
	s.step("first", func() { want("answer", 1, 1); s.note = "noted" })
	s.step("second", func() { want("answer", "no", "yes"); t.Error("went on behind what did not hold") })
	s.step("third", func() { must("call", io.ErrUnexpectedEOF) })
	err := s.verdict()
	const lines = `ok   01 first (noted)
FAIL 02 second: answer: wanted yes, there was no
FAIL 03 third: call: wanted no error, there was unexpected EOF
1 of 3 steps held
`
	if out.String() != lines {
		t.Errorf("printed\n%s", out.String())
	}
	if !errors.As(err, new(noError)) {
		t.Errorf("the verdict is %v", err)
	}
	if !errors.As((&script{e: &env{stdout: io.Discard}}).verdict(), new(noError)) {
		t.Error("nothing was played, and the answer is not no")
	}
	func() {
		defer func() {
			if recover() != "ours" {
				t.Error("a fault of the script was taken for a step that did not hold")
			}
		}()
		s.step("fourth", func() { panic("ours") })
	}()
}

func TestDemoScriptEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"demo", "--script"}, append(os.Environ(), asProgram+"=1"), strings.NewReader(""), &out, &errs)
	if code == exitOK || strings.Contains(out.String(), "steps held") {
		t.Errorf("%d %s", code, out.String())
	}
}

// The fake refuses what Twilio would refuse, so that the script cannot hold with a server that sends nonsense.
func TestFakeTwilioAgainstTheRealSender(t *testing.T) {
	fake := newFakeTwilio("https://approve.example.test/x", "+12025550100")
	srv := httptest.NewServer(fake)
	defer srv.Close()
	send := func(change func(*channel.TwilioConfig), m offers.Outgoing) offers.SendResult {
		cfg := channel.TwilioConfig{AccountSID: fake.account, AuthToken: fake.token, From: fake.number, BaseURL: srv.URL}
		if change != nil {
			change(&cfg)
		}
		s, err := channel.NewTwilio(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s.Send(t.Context(), m)
	}
	m := offers.Outgoing{From: "sms:+12025550100", To: "sms:+12025550177", Body: "Send it? <&> 👍"}
	got := send(nil, m)
	texts := fake.texts("+12025550177")
	if got.Outcome != offers.OutcomeAccepted || len(texts) != 1 || texts[0].sid != got.ProviderID || texts[0].body != m.Body || texts[0].from != fake.number {
		t.Errorf("%+v %+v", got, texts)
	}
	if got := send(func(c *channel.TwilioConfig) { c.AuthToken = "other" }, m); got.Outcome != offers.OutcomeRejected || got.Code != 20003 {
		t.Errorf("with another token: %+v", got)
	}
	if got := send(nil, offers.Outgoing{From: "sms:+12025550101", To: m.To, Body: "x"}); got.Outcome != offers.OutcomeRejected || got.Code != 21606 {
		t.Errorf("from another number: %+v", got)
	}
	res, err := http.Get(srv.URL + "/2010-04-01/Accounts/" + fake.account + "/Calls.json")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("another path: %d", res.StatusCode)
	}
	if n := len(fake.texts("+12025550177")); n != 1 {
		t.Errorf("%d texts were kept", n)
	}
}

func TestDemoTalk(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		has, hasNot []string
	}{
		{"yes", "ya send it\n", []string{"would now run email.send", "  │ Done: send email to an email address."}, nil},
		{"change, then yes", "ok but cc Dana\nyes\n",
			[]string{"modified", `  │ Cc: dana@example.com`, `"cc":["dana@example.com"]`, "Done: send email to 2 people."}, nil},
		{"no", "wait no\n", []string{"declined", "  │ Not done: send email to an email address.", "wants calendar.create"}, []string{"would now run"}},
		{"thanks", "thanks\n/quit\nyes\n", []string{"no sure answer"}, []string{"would now run", "Done:"}},
		{"nothing", "\n", []string{"  │ This sends to sam@example.com. Reply YES or NO."}, []string{"would now run"}},
		{"all errands", "yes\nyes\nyes\n", []string{"would now run files.delete", "That was all."}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := bot(t, nil, c.typed, "demo")
			if code != exitOK || errs != "" {
				t.Fatalf("exit code %d, %s", code, errs)
			}
			for _, w := range c.has {
				if !strings.Contains(out, w) {
					t.Errorf("no %q", w)
				}
			}
			for _, w := range c.hasNot {
				if strings.Contains(out, w) {
					t.Errorf("there is %q", w)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
	code, out, _ := bot(t, nil, "yes\n", "demo", "--json")
	for line := range strings.Lines(out) {
		var l struct{ Who, Text string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Who == "" || l.Text == "" {
			t.Errorf("no JSON line: %s", line)
		}
	}
	if code != exitOK || !strings.Contains(out, `"who":"phone"`) {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errs := bot(t, nil, "yes\n", "demo", "--verbose"); code != exitOK || !strings.Contains(errs, `"msg":"approved"`) {
		t.Errorf("--verbose printed no log: %d %q", code, errs)
	}
}
