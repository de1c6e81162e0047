package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tiny runs the tool on testdata/tiny with a list and returns its exit code
// and what it printed.
func tiny(t *testing.T, list string, args ...string) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "list.yaml")
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := run(t.Context(), append([]string{"-dir", "testdata/tiny", "-file", file}, args...), &out, &out)
	return code, out.String()
}

const (
	oddGone = `
- name: odd-passes
  file: tiny.go
  find: "n%2 != 0"
  replace: "false"
  package: .
  test: TestOdd
  why: odd numbers pass
`
	limitGone = `
- name: the-limit
  file: tiny.go
  replace: "	if false {"
  package: .
  test: TestLimit/over
  why: nothing is too large
`
	embeddedLimit = `
- name: embedded
  file: limit.txt
  find: abcdefgh
  replace: abcdefghij
  package: .
  test: TestLimit
  why: the limit is another one
`
	survivor = `
- name: negative
  file: tiny.go
  find: n >= 0
  replace: "true"
  package: .
  test: TestOdd|TestLimit
  why: no test has a negative number
`
	noBuild = `
- name: no-build
  file: tiny.go
  find: n >= 0
  replace: n >= "0"
  package: .
  test: TestOdd
  why: a string is no number
`
	failsAnyway = `
- name: fails-anyway
  file: tiny.go
  find: n >= 0
  replace: "true"
  package: .
  test: TestFails
  why: a test that always fails proves nothing
`
	noSuchTest = `
- name: no-such-test
  file: tiny.go
  find: n >= 0
  replace: "true"
  package: .
  test: TestNobody
  why: nobody looks
`
	foundTwice = `
- name: found-twice
  file: tiny.go
  find: return false
  replace: return true
  package: .
  test: TestOdd
  why: which one was meant
`
	foundNever = `
- name: found-never
  file: tiny.go
  find: return maybe
  replace: return true
  package: .
  test: TestOdd
  why: the source has moved on
`
)

func TestVerdicts(t *testing.T) {
	before, err := os.ReadFile("testdata/tiny/tiny.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, list string
		code       int
		want       []string // regular expressions, each of one line
	}{
		{"caught", oddGone + limitGone + embeddedLimit, 0, []string{
			`^caught .* odd-passes .* TestOdd$`, `^caught .* the-limit .* TestLimit/over$`, `^caught .* embedded .* TestLimit$`,
			`^3 mutants, 3 caught$`,
		}},
		{"survives", oddGone + survivor, 1, []string{
			`^SURVIVED .* negative `, `why it matters: no test has a negative number$`, `^2 mutants, 1 caught$`,
		}},
		{"does not build", noBuild, 1, []string{`^BROKEN .* no-build `, `the mutant does not build:$`, `^1 mutants, 0 caught$`}},
		{"fails without it", failsAnyway, 1, []string{`^BROKEN .* fails-anyway `, `the test fails without the mutant:$`}},
		{"no such test", noSuchTest, 1, []string{`^BROKEN .* no-such-test `, `no test of that name ran and passed:$`}},
		{"text twice", foundTwice, 1, []string{`^BROKEN .* found-twice `, `contains the text to find 2 times$`}},
		{"text nowhere", foundNever, 1, []string{`^BROKEN .* found-never `, `does not contain the text to find$`}},
		{"nothing to do", "# a comment\n", 0, []string{`^0 mutants, 0 caught$`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out := tiny(t, c.list)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.want {
				if !regexp.MustCompile("(?m)" + want).MatchString(out) {
					t.Errorf("no line matches %s", want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
	after, err := os.ReadFile("testdata/tiny/tiny.go")
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the source was touched (%v)", err)
	}
}

func TestSelection(t *testing.T) {
	code, out := tiny(t, oddGone+survivor, "-run", "^odd-")
	if code != 0 || !strings.Contains(out, "1 mutants, 1 caught (of 2 in the list)\n") {
		t.Errorf("-run: exit code %d\n%s", code, out)
	}
	if code, out := tiny(t, oddGone, "-run", "oops"); code != 2 {
		t.Errorf("a pattern that matches nothing: exit code %d\n%s", code, out)
	}
}

func TestBadLists(t *testing.T) {
	for _, c := range []struct{ name, list, want string }{
		{"unknown field", oddGone + "  tests: TestOdd\n", "field tests not found"},
		{"a name twice", oddGone + oddGone, `a second "odd-passes"`},
		{"no test", "- {name: a, file: b, find: c, package: d, why: e}", "no test"},
		{"no why", "- {name: a, file: b, find: c, package: d, test: e}", "no why"},
		{"no change", "- {name: a, file: b, find: c, replace: c, package: d, test: e, why: f}", "the same"},
		{"bad pattern", "- {name: a, file: b, find: c, package: d, test: 'e(', why: f}", "missing closing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out := tiny(t, c.list)
			if code != 2 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want 2 and %q:\n%s", code, c.want, out)
			}
		})
	}
}

func TestMarkedLine(t *testing.T) {
	m := mutant{Name: "a", File: "f.sql", Replace: "  true"}
	for _, c := range []struct{ source, want string }{
		{"x\n  y = 1 -- mutant: a\nz\n", "x\n  true\nz\n"},
		{"y -- mutant: a", "  true"},
		{"y -- mutant: ab\n", ""},
		{"y -- mutant: a\nz -- mutant: a\n", ""},
	} {
		got, err := m.apply([]byte(c.source))
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("apply(%q) = %q, %v, want %q", c.source, got, err, c.want)
		}
	}
}

func TestSampleIsSpread(t *testing.T) {
	list := make([]mutant, 10)
	for i := range list {
		list[i].Name = string(rune('a' + i))
	}
	for n, want := range map[int]string{0: "abcdefghij", 1: "a", 3: "adg", 5: "acegi", 10: "abcdefghij", 11: "abcdefghij"} {
		var got []string
		for _, m := range sample(list, n) {
			got = append(got, m.Name)
		}
		if !slices.Equal(got, strings.Split(want, "")) {
			t.Errorf("sample of %d: %v, want %s", n, got, want)
		}
	}
}

// TestOutcomeOfOtherFailures holds that only the named test's failure counts.
func TestOutcomeOfOtherFailures(t *testing.T) {
	m := mutant{Test: "TestA/sub"}
	for _, c := range []struct {
		name, lines string
		want        kind
	}{
		{"another test failed", `{"Action":"fail","Test":"TestB"}`, broken},
		{"only the parent failed", `{"Action":"fail","Test":"TestA"}`, broken},
		{"the named one", `{"Action":"fail","Test":"TestA/sub"}`, caughtIt},
		{"a name that starts alike", `{"Action":"fail","Test":"TestA/subway"}`, broken},
		{"timed out", `{"Action":"fail"}`, broken},
		{"nothing compiled", `{"Action":"fail","FailedBuild":"tiny"}`, broken},
		{"setup", `{"Action":"output","Output":"FAIL\ttiny [setup failed]\n"}`, broken},
	} {
		if got := judgeRun(readOutcome([]byte(c.lines+"\n")), m); got.kind != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.kind, c.want)
		}
	}
}

// A change of a line that a mistake stands in shows at once, not when the sample comes to it.
func TestEveryMistakeStandsInItsFile(t *testing.T) {
	list, err := load("mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		source, err := os.ReadFile(filepath.Join("..", "..", m.File))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.apply(source); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
