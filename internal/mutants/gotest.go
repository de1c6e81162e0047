package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// outcome is what one run of go test showed.
type outcome struct {
	// passed and failed are the names of tests, subtests included.
	passed, failed map[string]bool
	// buildFailed says that no test ran because something did not compile.
	buildFailed bool
	// exitOK is go test's own verdict.
	exitOK bool
	// output is what a person would have read.
	output string
}

// event is the part of a test2json line that the tool reads.
type event struct {
	Action, Test, Output, FailedBuild string
}

// goTest runs the tests of pkg that match run, in the module at dir. A
// non-empty overlay is the JSON file that replaces sources. The error says
// that there was no run to judge.
func goTest(ctx context.Context, dir, pkg, run, overlay string) (outcome, error) {
	// Nobody reads debug tables here, and they cost the linker time. A mutant
	// that hangs ends at the time-out without a failed test and so is broken: it
	// says nothing about what the test asserts.
	args := []string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-s -w", "-timeout=5m", "-run", run}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return outcome{}, fmt.Errorf("go test: %w", err)
	}
	o := readOutcome(stdout)
	o.exitOK = err == nil
	o.output += stderr.String()
	return o, nil
}

// readOutcome reads the lines of go test -json. A line that is not JSON is
// output.
func readOutcome(stdout []byte) outcome {
	o := outcome{passed: map[string]bool{}, failed: map[string]bool{}}
	var text strings.Builder
	for line := range bytes.Lines(stdout) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			text.Write(line)
			continue
		}
		switch {
		case e.Action == "build-fail" || e.FailedBuild != "":
			o.buildFailed = true
		case e.Action == "pass" && e.Test != "":
			o.passed[e.Test] = true
		case e.Action == "fail" && e.Test != "":
			o.failed[e.Test] = true
		}
		// An import that cannot be resolved is a setup failure, which has no
		// event of its own.
		if strings.Contains(e.Output, "[setup failed]") || strings.Contains(e.Output, "[build failed]") {
			o.buildFailed = true
		}
		text.WriteString(e.Output)
	}
	o.output = text.String()
	return o
}

// writeOverlay writes the changed file and the JSON that names it into tmp,
// and returns the path of the latter. The source tree is not touched.
func writeOverlay(dir, tmp string, m mutant) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, m.File))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	changed, err := m.apply(source)
	if err != nil {
		return "", err
	}
	changedPath := filepath.Join(tmp, filepath.Base(path))
	if err := os.WriteFile(changedPath, changed, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changedPath}})
	if err != nil {
		return "", err
	}
	overlayPath := filepath.Join(tmp, "overlay.json")
	return overlayPath, os.WriteFile(overlayPath, overlay, 0o600)
}
