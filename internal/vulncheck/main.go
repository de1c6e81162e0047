// Command vulncheck runs govulncheck on this module, without any network
// beyond the module proxy, and compares what it finds with a dated list of
// what is known and accepted for now.
//
//	go run ./internal/vulncheck [-accepted tools/govulncheck/accepted.yaml]
//
// The database is the one that the module golang.org/x/vulndb carries at the
// version that tools/govulncheck/go.mod pins; raise it with
//
//	go get -modfile=tools/govulncheck/go.mod golang.org/x/vulndb@latest
//
// The exit code is 1 if code that this module calls has a fault that is not
// on the list, or whose entry has run out; 2 if nothing could be said.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const modfile = "-modfile=tools/govulncheck/go.mod"

// accepted is one entry of the list.
type accepted struct {
	ID string `yaml:"id"`
	// Until is the last day (UTC) on which the entry counts, as 2006-01-02.
	Until string `yaml:"until"`
	Why   string `yaml:"why"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], time.Now(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, now time.Time, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("vulncheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("accepted", "tools/govulncheck/accepted.yaml", "the dated list")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	faults, err := check(ctx, *path, now, stdout)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "vulncheck: %v\n", err)
		return 2
	}
	if faults > 0 {
		return 1
	}
	return 0
}

func check(ctx context.Context, path string, now time.Time, w io.Writer) (faults int, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	list, err := readAccepted(raw)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	tmp, err := os.MkdirTemp("", "vulncheck")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	module, err := output(ctx, "list", modfile, "-m", "-f", "{{.Dir}}", "golang.org/x/vulndb")
	if err != nil {
		return 0, err
	}
	if _, err := output(ctx, "tool", modfile, "indexdb", "-out", tmp, "-vulns", filepath.Join(strings.TrimSpace(string(module)), "data", "osv")); err != nil {
		return 0, err
	}
	stream, err := output(ctx, "tool", modfile, "govulncheck", "-format", "json", "-db", "file://"+tmp, "./...")
	if err != nil {
		return 0, err
	}
	found, err := called(bytes.NewReader(stream))
	if err != nil {
		return 0, err
	}
	return report(found, list, now, w), nil
}

func output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

func readAccepted(raw []byte) ([]accepted, error) {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	var list []accepted
	if err := dec.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, a := range list {
		if _, err := time.Parse(time.DateOnly, a.Until); err != nil || a.ID == "" || a.Why == "" {
			return nil, fmt.Errorf("%q needs an id, a day in until, and a why", a.ID)
		}
	}
	return list, nil
}

// fault is a vulnerability in code that this module calls.
type fault struct{ id, module, fixed string }

// called reads govulncheck's JSON stream and returns, by id, the faults whose
// code is reached. A stream without govulncheck's own configuration message is
// an error: an empty one must not look clean.
func called(r io.Reader) ([]fault, error) {
	var (
		dec  = json.NewDecoder(r)
		byID = map[string]fault{}
		sure bool
	)
	for {
		var msg struct {
			Config  *struct{ DB string }
			Finding *struct {
				OSV          string
				FixedVersion string `json:"fixed_version"`
				Trace        []struct{ Module, Function string }
			}
		}
		err := dec.Decode(&msg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("govulncheck's output: %w", err)
		}
		sure = sure || msg.Config != nil
		// Findings come for modules, packages and symbols; only the last kind
		// names a function.
		if f := msg.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			byID[f.OSV] = fault{f.OSV, f.Trace[0].Module, f.FixedVersion}
		}
	}
	if !sure {
		return nil, errors.New("govulncheck said nothing")
	}
	faults := make([]fault, 0, len(byID))
	for _, f := range byID {
		faults = append(faults, f)
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.id, b.id) })
	return faults, nil
}

// report prints every fault and returns how many of them are not accepted on
// the day of now.
func report(found []fault, list []accepted, now time.Time, w io.Writer) int {
	today := now.UTC().Format(time.DateOnly)
	bad := 0
	for _, f := range found {
		i := slices.IndexFunc(list, func(a accepted) bool { return a.ID == f.id })
		switch {
		case i < 0:
			bad++
			_, _ = fmt.Fprintf(w, "FAULT    %s in %s, fixed in %s\n", f.id, f.module, f.fixed)
		case list[i].Until < today:
			bad++
			_, _ = fmt.Fprintf(w, "RUN OUT  %s in %s, fixed in %s: accepted until %s\n", f.id, f.module, f.fixed, list[i].Until)
		default:
			_, _ = fmt.Fprintf(w, "accepted %s in %s, fixed in %s: until %s, %s\n", f.id, f.module, f.fixed, list[i].Until, list[i].Why)
		}
	}
	_, _ = fmt.Fprintf(w, "%d faults in code that is called, %d not accepted\n", len(found), bad)
	return bad
}
