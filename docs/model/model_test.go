// Package model_test checks the model of an offer's life with spin, and that its words are the code's.
package model_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/offers"
)

const model = "offer.pml"

// verify explores the model with these definitions and returns what the verifier said: every state of it, or only those
// that are depth steps from the start.
func verify(t *testing.T, optimize string, depth int, defines ...string) string {
	t.Helper()
	source, err := filepath.Abs(model)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s (Debian's packages spin and gcc): %v\n%s", name, err, out)
		}
		return string(out)
	}
	run("spin", append(append([]string{"-a"}, defines...), source)...)
	run(compiler(), optimize, "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=4000", "-o", "pan", "pan.c")
	return run(filepath.Join(dir, "pan"), "-m"+strconv.Itoa(depth))
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

var (
	violated    = regexp.MustCompile(`assertion violated .*`)
	errorsFound = regexp.MustCompile(`errors: (\d+)`)
	unreached   = regexp.MustCompile(`(?m)^\tstate \d+|^\t\S+:(\d+), state \d+, "(.*)"$`)
)

// TestEveryInterleaving: with the lock, no order of events breaks an assertion or gets stuck, and nothing that the model
// can do is never done.
func TestEveryInterleaving(t *testing.T) {
	out := verify(t, "-O2", 100_000)
	found := errorsFound.FindStringSubmatch(out)
	if found == nil || found[1] != "0" || strings.Contains(out, "search not completed") || strings.Contains(out, "too small") {
		t.Fatalf("the model does not hold, or was not searched to its end:\n%s", out)
	}
	for _, u := range unreached.FindAllStringSubmatch(out, -1) {
		if u[2] != "-end-" {
			t.Errorf("line %s of the model is never reached: %s", u[1], u[2])
		}
	}
}

// TestEachMistakeIsFound: without the lock, or without a condition of the yes, an assertion breaks. The number is the
// assertion's, or the condition's.
func TestEachMistakeIsFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		depth int // in so many steps it goes wrong, or fewer: the search ends there
		why   string
	}{
		{"-DNOLOCK -DONLY=4", 16, "m+1)==messages"},
		{"-DNOLOCK -DONLY=5", 16, "about[l]==o"},
		{"-DNOLOCK -DONLY=7", 16, "state[(1-o)]"},
		{"-DNOLOCK -DONLY=8", 20, "g_used[m]==0"},
		{"-DWITHOUT=1", 16, "state[o]=="},
		{"-DWITHOUT=2", 16, "over[o]"},
		{"-DWITHOUT=3", 16, "g_screen"},
		{"-DWITHOUT=4", 16, "m+1)==messages"},
		{"-DWITHOUT=5", 20, "about[l]==o"},
		{"-DWITHOUT=6", 16, "text[l]=="},
		{"-DWITHOUT=7", 16, "state[(1-o)]"},
		{"-DWITHOUT=8", 20, "g_used[m]==0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := verify(t, "-O0", c.depth, strings.Fields(c.name)...)
			if said := violated.FindString(out); !strings.Contains(said, c.why) {
				t.Fatalf("%q was found, want an assertion about %s:\n%s", said, c.why, out)
			}
		})
	}
}

// TestWords: the model's states are the code's.
func TestWords(t *testing.T) {
	raw, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	in := func(kind string) []string {
		m := regexp.MustCompile(`mtype:` + kind + ` = \{([^}]*)\}`).FindSubmatch(raw)
		if m == nil {
			t.Fatalf("the model has no mtype %s", kind)
		}
		var words []string
		for w := range strings.SplitSeq(string(bytes.Join(bytes.Fields(m[1]), nil)), ",") {
			if w != "none" && w != "unused" { // what is not there yet
				words = append(words, w)
			}
		}
		slices.Sort(words)
		return words
	}
	if got, want := in("offer"), constants(t, "State"); !slices.Equal(got, want) {
		t.Errorf("offers are %v in the model and %v in the code", got, want)
	}
	texts := map[string]offers.TextState{
		"waiting": offers.TextQueued, "away": offers.TextSending, "accepted": offers.TextAccepted, "rejected": offers.TextRejected, "unknown": offers.TextUnknown,
	}
	if got, want := in("text"), slices.Sorted(maps.Keys(texts)); !slices.Equal(got, want) {
		t.Errorf("texts are %v in the model, want %v", got, want)
	}
	var code []string
	for _, s := range texts {
		code = append(code, string(s))
	}
	slices.Sort(code)
	if want := constants(t, "TextState"); !slices.Equal(code, want) {
		t.Errorf("the model knows the texts' states %v, the code has %v", code, want)
	}
	ops := []offers.OpState{offers.OpApproved, offers.OpAsked, offers.OpRunning}
	for i, w := range in("op") {
		if w != string(ops[i]) {
			t.Errorf("an operation is %s in the model, want %s", w, ops[i])
		}
	}
}

// constants reads the values of a type's constants in the source of the package offers, sorted.
func constants(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob("../../offers/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(errors.Join(err, errors.New("no source of offers")))
	}
	var out []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != name {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					s, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, s)
				}
			}
			return true
		})
	}
	slices.Sort(out)
	return out
}
