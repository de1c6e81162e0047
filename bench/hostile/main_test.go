package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/countersign/countersign/internal/pgtest"
)

// program is the server under attack, built once, without what only a debugger reads.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "countersign-hostile-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bot")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/countersign/countersign/cmd/bot").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func build(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(path, err)
	}
	return path
}

// broken builds a server with marked lines of one file replaced.
func broken(t *testing.T, file string, marks map[string]string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for mark, replace := range marks {
		line := regexp.MustCompile(`(?m)^.*-- mutant: ` + regexp.QuoteMeta(mark) + `\b`)
		if n := len(line.FindAll(source, -1)); n != 1 {
			t.Fatalf("%d lines are marked %s", n, mark)
		}
		source = line.ReplaceAllLiteral(source, []byte(replace))
	}
	dir := t.TempDir()
	changed, list, bot := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "bot")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{changed: source, list: overlay} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", list, "-o", bot, "github.com/countersign/countersign/cmd/bot").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bot
}

// figures reads the line that sums up.
func figures(t *testing.T, out string) (calls, yeses, justified, releases int) {
	t.Helper()
	m := regexp.MustCompile(`(\d+) attempts, (\d+) calls in \S+; (\d+) yeses of people, (\d+) releases that a yes justifies, (\d+) that none does`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no figures:\n%s", out)
	}
	n := make([]int, len(m))
	for i, s := range m[1:] {
		v, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		n[i] = v
	}
	return n[1], n[2], n[3], n[4]
}

func TestNothingIsReleasedWithoutAYes(t *testing.T) {
	for name, database := range map[string]func() []string{
		"SQLite":     func() []string { return []string{"-calls", "2000"} },
		"PostgreSQL": func() []string { return []string{"-calls", "2000", "-database", pgtest.New(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"-bot", build(t), "-workers", "20"}, database()...), &out, &errs)
			t.Log(out.String())
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errs.String())
			}
			calls, yeses, justified, releases := figures(t, out.String())
			if calls < 2000 || releases != 0 {
				t.Errorf("%d calls, %d releases", calls, releases)
			}
			if yeses < 5 || justified < 3 || justified > yeses {
				t.Errorf("%d yeses and %d releases that they justify: nothing was alive, or too much", yeses, justified)
			}
			for _, f := range families() {
				if !strings.Contains(out.String(), " "+f.name+" ") {
					t.Errorf("%s was not tried", f.name)
				}
			}
			if !strings.HasPrefix(out.String(), "seed ") {
				t.Error("no seed")
			}
		})
	}
}

// The bench notices what it is there to notice.
func TestABrokenServerIsFoundOut(t *testing.T) {
	for _, c := range []struct {
		family string
		marks  map[string]string
	}{
		{"withdraw-and-cite", map[string]string{"cited.named": "    AND (?12 OR true)", "cited.asked_last": "    AND (?12 OR true)"}},
		{"imitation", map[string]string{"cited.spoken": "    AND true"}},
		{"answered-elsewhere", map[string]string{"sqlite.crossed.said": "    AND (false"}},
		{"permissions", map[string]string{"begin.permission": "    AND true"}},
	} {
		t.Run(c.family, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"-bot", broken(t, "sqlite/offers.go", c.marks), "-workers", "20", "-calls", "500", "-seed", "1", "-family", c.family}, &out, &errs)
			if code != 1 || !strings.Contains(out.String(), "RELEASED by "+c.family) {
				t.Errorf("exit code %d:\n%s%s", code, out.String(), errs.String())
			}
		})
	}
}

func TestJudge(t *testing.T) {
	const w = `{"body":"x","subject":"wanted 1","to":["dana@example.test"]}`
	t.Run("AYesJustifiesOneRelease", func(t *testing.T) {
		j := newJudge()
		j.says("p", "wanted 1")
		j.released("a", "p", "email.send", []byte(w), "begun")
		j.released("a", "p", "email.send", []byte(w), "begun") // the same one again
		if j.justified != 1 || len(j.releases) != 0 {
			t.Errorf("%d justified, %v", j.justified, j.releases)
		}
		j.released("b", "p", "email.send", []byte(w), "begun")
		if len(j.releases) != 1 {
			t.Error("a second release on one yes")
		}
	})
	for name, c := range map[string]struct{ person, tool, args string }{
		"another person":    {"q", "email.send", w},
		"another tool":      {"p", "payments.send", w},
		"another subject":   {"p", "email.send", `{"subject":"wanted 2","to":["dana@example.test"]}`},
		"another recipient": {"p", "email.send", `{"subject":"wanted 1","to":["mallory@evil.test"]}`},
		"two recipients":    {"p", "email.send", `{"subject":"wanted 1","to":["dana@example.test","mallory@evil.test"]}`},
		"a hidden one":      {"p", "email.send", `{"subject":"wanted 1","to":["dana@example.test"],"bcc":["mallory@evil.test"]}`},
		"no arguments":      {"p", "email.send", ``},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge()
			j.says("p", "wanted 1")
			j.released("a", c.person, c.tool, []byte(c.args), "begun")
			if len(j.releases) != 1 || j.justified != 0 {
				t.Errorf("%d justified, %v", j.justified, j.releases)
			}
		})
	}
	t.Run("AnAskJustifiesOneAllow", func(t *testing.T) {
		to := func(more ...any) object {
			return with(object{"to": []string{dana}, "subject": "report 1", "body": "x"}, more...)
		}
		j := newJudge()
		if j.spends("p", "early", "email.send", to()) {
			t.Error("spent before anything was asked for")
		}
		j.asks("p")
		for name, no := range map[string]bool{
			"another person":    j.spends("q", "a", "email.send", to()),
			"another tool":      j.spends("p", "a", "payments.send", to()),
			"another recipient": j.spends("p", "a", "email.send", to("to", []string{"mallory@evil.test"})),
			"a hidden one":      j.spends("p", "a", "email.send", to("bcc", []string{dana})),
		} {
			if no {
				t.Error(name)
			}
		}
		if !j.spends("p", "a", "email.send", to()) || j.spends("p", "a", "email.send", to()) || j.spends("p", "b", "email.send", to()) {
			t.Error("not exactly once")
		}
		j.asks("p")
		if j.takesBack("p"); j.spends("p", "c", "email.send", to()) {
			t.Error("spent what was taken back")
		}
	})
	t.Run("AnAllow", func(t *testing.T) {
		j := newJudge()
		j.proposed("f", "in", "allow", true, "")
		j.proposed("f", "ask", "ask", false, "")
		j.released("in", "p", "email.send", []byte(`{}`), "begun")
		if len(j.releases) != 0 {
			t.Errorf("%v", j.releases)
		}
		j.proposed("f", "out", "allow", false, "")
		j.proposed("f", "out", "allow", false, "")
		if len(j.releases) != 1 || j.releases[0].family != "f" || j.releases[0].operation != "out" {
			t.Errorf("%v", j.releases)
		}
	})
}

func TestWhatAPersonReads(t *testing.T) {
	show := "Send email\nTo: dana@example.test\nSubject: wanted 1\nText: x\n" + danasLine
	for _, c := range []struct {
		name, subject string
		screen        []string
	}{
		{"an email to Dana", "wanted 1", []string{show}},
		{"its question again", "wanted 1", []string{show, "To be sure: send email?\n" + danasLine}},
		{"something else since", "", []string{show, "This pays 412 EUR to Mallory. Reply YES or NO."}},
		{"something else before", "wanted 1", []string{"This pays 412 EUR to Mallory. Reply YES or NO.", show}},
		{"a text behind it", "", []string{show, "Done."}},
		{"two recipients", "", []string{strings.Replace(show, "test. Reply", "test, m@evil.test. Reply", 1)}},
		{"nothing", "", nil},
	} {
		if got, ok := reads(c.screen); got != c.subject || ok != (c.subject != "") {
			t.Errorf("%s: read %q", c.name, got)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-calls", "0"}, {"-workers", "1"}, {"-workers", "500"}, {"-family", "none"}, {"more"}, {"-no-such-flag"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || out.Len() > 0 {
			t.Errorf("%v: exit code %d, %s", args, code, out.String())
		}
	}
}
