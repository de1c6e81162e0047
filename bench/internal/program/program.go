// Package program builds the server for the tests of what attacks and measures it.
package program

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Built is the server, built as Go's cache holds it already. As a release is built, everything that it is made of would be
// compiled once more, which is most of what such a test takes.
func Built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "github.com/countersign/countersign/cmd/bot") //nolint:gosec // into the test's own directory
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}
