// Package docs holds the repository's documents to its code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources returns the text of every Go file below the repository's root whose name the predicate takes.
func sources(t *testing.T, take func(name string) bool) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || !take(path) {
			return nil
		}
		raw, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		b.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestInvariantsNameRealTests fails when INVARIANTS.md names a test or a protecting mark that is not there.
func TestInvariantsNameRealTests(t *testing.T) {
	doc := read(t, "INVARIANTS.md")
	tests := sources(t, func(n string) bool { return strings.HasSuffix(n, "_test.go") || strings.Contains(n, "storetest") })
	for _, m := range regexp.MustCompile("`((?:Test)?Invariant[0-9]{2}_\\w+)`").FindAllStringSubmatch(doc, -1) {
		if !strings.Contains(tests, m[1]) {
			t.Errorf("no test is called %s", m[1])
		}
	}
	code := sources(t, func(n string) bool { return !strings.HasSuffix(n, "_test.go") })
	for _, m := range regexp.MustCompile("`((?:consume|begin|cited|reply)\\.[a-z_]+|gate-[a-z-]+)`").FindAllStringSubmatch(doc, -1) {
		if strings.HasSuffix(m[1], ".go") {
			continue
		}
		if !strings.Contains(code, "mutant: "+m[1]) {
			t.Errorf("no line is marked %s", m[1])
		}
	}
}
