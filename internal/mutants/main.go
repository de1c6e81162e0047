// Command mutants proves that tests notice mistakes. It reads a list of
// deliberate mistakes, puts each into a copy of its file, and demands that
// the test that the list names passes without it and fails with it.
//
//	go run ./internal/mutants [-run regexp] [-j 2] [-sample n] [-file internal/mutants/mutants.yaml]
//
// The source tree is never touched: the copy reaches the compiler through
// go test's -overlay, which also covers embedded files. A mistake that does
// not compile proves nothing and counts as broken, as does a test that does
// not exist. The exit code is 0 if every mutant was caught, 1 if any survived
// or is broken, 2 for wrong use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		only  = flags.String("run", "", "only mutants whose name matches this `regexp`")
		jobs  = flags.Int("j", 2, "how many at once")
		file  = flags.String("file", "internal/mutants/mutants.yaml", "the list")
		dir   = flags.String("dir", ".", "the module's root; the list's files and packages are relative to it")
		count = flags.Int("sample", 0, "try only this many, spread evenly over the list; 0 is all")
	)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	pattern, err := regexp.Compile(*only)
	if err != nil || *jobs < 1 || *count < 0 || flags.NArg() > 0 {
		_, _ = fmt.Fprintln(stderr, "mutants: wrong use; see -help")
		return 2
	}
	all, err := load(*file)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "mutants: %s: %v\n", *file, err)
		return 2
	}
	list := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !pattern.MatchString(m.Name) })
	if len(list) == 0 && *only != "" {
		// A pattern with a typing mistake must not look like success.
		_, _ = fmt.Fprintf(stderr, "mutants: no name matches %q\n", *only)
		return 2
	}
	list = sample(list, *count)

	verdicts, err := judge(ctx, *dir, list, *jobs, stdout)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "mutants: %v\n", err)
		return 1
	}
	caught := 0
	for _, v := range verdicts {
		if v.kind == caughtIt {
			caught++
		}
	}
	note := ""
	if len(list) < len(all) {
		note = fmt.Sprintf(" (of %d in the list)", len(all))
	}
	_, _ = fmt.Fprintf(stdout, "%d mutants, %d caught%s\n", len(list), caught, note)
	if caught < len(list) {
		return 1
	}
	return 0
}

func load(path string) ([]mutant, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readList(f)
}

type kind string

const (
	caughtIt kind = "caught"
	survived kind = "SURVIVED"
	broken   kind = "BROKEN"
)

// verdict is what became of one mutant. detail is empty for one that was
// caught.
type verdict struct {
	kind   kind
	detail string
}

// judge tries every mutant of list, jobs at a time, and prints one line for
// each when it is done. The verdicts are in the order of the list.
func judge(ctx context.Context, dir string, list []mutant, jobs int, w io.Writer) ([]verdict, error) {
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	sound, err := baselines(ctx, dir, list, jobs)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(list))
	lines := make(chan string)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		for l := range lines {
			_, _ = io.WriteString(w, l)
		}
	}()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for i, m := range list {
		g.Go(func() error {
			began := time.Now()
			v, err := try(ctx, dir, filepath.Join(tmp, fmt.Sprint(i)), m, sound[i])
			if err != nil {
				return err
			}
			verdicts[i] = v
			lines <- describe(m, v, time.Since(began))
			return nil
		})
	}
	err = g.Wait()
	close(lines)
	<-printed
	return verdicts, err
}

func describe(m mutant, v verdict, took time.Duration) string {
	line := fmt.Sprintf("%-8s %5.1fs  %-40s %s %s\n", v.kind, took.Seconds(), m.Name, m.Package, m.Test)
	if v.kind == caughtIt {
		return line
	}
	line += "         why it matters: " + strings.TrimSpace(m.Why) + "\n"
	for l := range strings.Lines(tail(v.detail, 20)) {
		line += "         " + strings.TrimRight(l, "\n") + "\n"
	}
	return line
}

// baselines runs the named tests on the unchanged tree, those of one package
// together, and returns for each mutant an empty string, or what is wrong.
func baselines(ctx context.Context, dir string, list []mutant, jobs int) ([]string, error) {
	members := map[string][]int{}
	for i, m := range list {
		members[m.Package] = append(members[m.Package], i)
	}
	wrong := make([]string, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for pkg, indexes := range members {
		g.Go(func() error {
			patterns := map[string]bool{}
			for _, i := range indexes {
				patterns[list[i].runPattern()] = true
			}
			// -run takes alternatives of whole patterns, slashes and all.
			o, err := goTest(ctx, dir, pkg, strings.Join(slices.Sorted(maps.Keys(patterns)), "|"), "")
			if err != nil {
				return err
			}
			for _, i := range indexes {
				wrong[i] = unsound(o, list[i])
			}
			return nil
		})
	}
	return wrong, g.Wait()
}

// unsound says what keeps m's test from being a witness, or nothing.
func unsound(o outcome, m mutant) string {
	switch {
	case o.buildFailed:
		return "the unchanged package does not build:\n" + o.output
	case anyNamed(m, o.failed):
		return "the test fails without the mutant:\n" + o.output
	case !anyNamed(m, o.passed):
		return "no test of that name ran and passed:\n" + o.output
	default:
		return ""
	}
}

func anyNamed(m mutant, tests map[string]bool) bool {
	for t := range tests {
		if m.names(t) {
			return true
		}
	}
	return false
}

// try puts one mutant in and judges what its test says. baseline is what
// unsound said about the test.
func try(ctx context.Context, dir, tmp string, m mutant, baseline string) (verdict, error) {
	if baseline != "" {
		return verdict{broken, baseline}, nil
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return verdict{}, err
	}
	overlay, err := writeOverlay(dir, tmp, m)
	if err != nil {
		// A list that no longer fits its sources is a verdict, not a reason to stop.
		return verdict{broken, err.Error()}, nil //nolint:nilerr // reported in the verdict
	}
	o, err := goTest(ctx, dir, m.Package, m.runPattern(), overlay)
	if err != nil {
		return verdict{}, err
	}
	return judgeRun(o, m), nil
}

func judgeRun(o outcome, m mutant) verdict {
	switch {
	case o.buildFailed:
		return verdict{broken, "the mutant does not build:\n" + o.output}
	case o.exitOK:
		return verdict{survived, "the test passes with the mistake in"}
	case !anyNamed(m, o.failed):
		return verdict{broken, "the run failed, but not in the named test:\n" + o.output}
	default:
		return verdict{kind: caughtIt}
	}
}

// tail is the last n lines of s.
func tail(s string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
