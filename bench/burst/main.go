// Command burst posts what an attacker can post, beside what people really send, and says what the people notice of it.
//
//	go run ./bench/burst
//	go run ./bench/burst -requests 5000 -baseline 2s
//
// The server is the real `bot serve` behind a fake provider, with SQLite. First people answer their asks alone, for the
// baseline; then they go on while forged, malformed and oversized webhooks come over many connections as fast as they are
// answered. Every one of those carries numbers and words of its own, which must not stand in the server's log, nor must
// those of the people.
//
// Printed are the server's memory before, at most and after, what the burst was answered with, and for the people's
// replies how many were answered and approved and how long that took. Exit 1: a reply was not answered or approved,
// something of the burst was taken, memory grew by more than -flat, or something private stands in the log.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

type options struct {
	requests    int
	connections int
	people      int
	baseline    time.Duration
	flat        int // MiB
	bot         string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the whole program: exit 0, 1 for a promise that did not hold, 2 for wrong use or a machine that cannot.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("burst", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.requests, "requests", 100_000, "forged, malformed and oversized webhooks")
	flags.IntVar(&o.connections, "connections", 64, "over so many connections")
	flags.IntVar(&o.people, "people", 20, "people who answer meanwhile, at most 90")
	flags.DurationVar(&o.baseline, "baseline", 10*time.Second, "how long they answer alone before")
	flags.IntVar(&o.flat, "flat", 64, "by how many MiB the server's memory may grow in the burst")
	flags.StringVar(&o.bot, "bot", "", "serve with this binary instead of building one")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if o.requests < 1 || o.connections < 1 || o.people < 1 || o.people > 90 || o.baseline <= 0 || flags.NArg() > 0 {
		_, _ = fmt.Fprintln(stderr, "burst: -requests, -connections and -baseline must be above 0, -people 1 to 90, and there are no arguments")
		return 2
	}
	r, err := everything(ctx, o)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "burst:", err)
		return 2
	}
	_, _ = fmt.Fprint(stdout, r)
	if faults := r.faults(o); len(faults) > 0 {
		_, _ = fmt.Fprintln(stderr, "burst: "+strings.Join(faults, "; "))
		return 1
	}
	return 0
}

// result is what came of a run.
type result struct {
	alone, beside     replies
	burst             map[string]int // by kind and answer
	took              time.Duration
	before, peak, end int // KiB
	quarters          []int
	lines             int // of the server's log
	private           int // of those, with something private
	unexpected        []string
}

// replies are what people said and how long it took, in order of size.
type replies struct {
	said, answered, approved int
	answers, approvals       []time.Duration
}

func (r replies) String() string {
	return fmt.Sprintf("%d of %d answered, p50 %s, p99 %s; %d approved, p50 %s, p99 %s", r.answered, r.said, quantile(r.answers, 0.50), quantile(r.answers, 0.99),
		r.approved, quantile(r.approvals, 0.50), quantile(r.approvals, 0.99))
}

// quantile sorts d. Nothing has none: 0.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(10 * time.Microsecond)
}

// String is the report.
func (r result) String() string {
	var b strings.Builder
	total := 0
	kinds := make([]string, 0, len(r.burst))
	for k, n := range r.burst {
		kinds = append(kinds, k)
		total += n
	}
	slices.Sort(kinds)
	fmt.Fprintf(&b, "replies alone      %s\n", r.alone)
	fmt.Fprintf(&b, "replies in burst   %s\n", r.beside)
	fmt.Fprintf(&b, "burst              %d requests in %s, %.0f a second\n", total, r.took.Round(time.Millisecond), float64(total)/r.took.Seconds())
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-34s %d\n", k, r.burst[k])
	}
	fmt.Fprintf(&b, "memory             %.1f MiB before, %.1f MiB at most, %.1f MiB after\n", mib(r.before), mib(r.peak), mib(r.end))
	for _, q := range r.quarters {
		fmt.Fprintf(&b, "  then             %.1f MiB\n", mib(q))
	}
	fmt.Fprintf(&b, "log                %d lines, %d with something private\n", r.lines, r.private)
	return b.String()
}

func mib(kib int) float64 { return float64(kib) / 1024 }

// faults are the promises that did not hold.
func (r result) faults(o options) []string {
	var out []string
	for _, p := range []struct {
		when string
		r    replies
	}{{"alone", r.alone}, {"in the burst", r.beside}} {
		if p.r.said == 0 {
			out = append(out, p.when+" nobody said anything")
		}
		if p.r.answered != p.r.said || p.r.approved != p.r.said {
			out = append(out, fmt.Sprintf("%s %d replies were not answered and %d not approved", p.when, p.r.said-p.r.answered, p.r.said-p.r.approved))
		}
	}
	if grown := mib(r.peak - r.before); grown > float64(o.flat) {
		out = append(out, fmt.Sprintf("memory grew by %.1f MiB", grown))
	}
	if r.private > 0 {
		out = append(out, fmt.Sprintf("%d lines of the log hold something private", r.private))
	}
	return append(out, r.unexpected...)
}

// everything plays a run.
func everything(ctx context.Context, o options) (result, error) {
	dir, err := os.MkdirTemp("", "countersign-burst")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	if o.bot == "" {
		o.bot = filepath.Join(dir, "bot")
		if err := machine.Build(ctx, "", o.bot, "github.com/countersign/countersign/cmd/bot"); err != nil {
			return result{}, err
		}
	}
	w, err := newWorld(ctx, o, dir)
	if err != nil {
		return result{}, err
	}
	defer w.close()
	var r result
	if r.alone, err = w.talk(ctx, func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(o.baseline):
		}
	}); err != nil {
		return r, err
	}
	if r.before, err = w.memory("VmRSS"); err != nil {
		return r, err
	}
	// From here on the kernel keeps the peak anew.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.server.PID()), []byte("5"), 0); err != nil {
		return r, fmt.Errorf("peak of memory: %w", err)
	}
	began := time.Now()
	r.beside, err = w.talk(ctx, func(ctx context.Context) {
		r.burst, r.unexpected = w.burst(ctx)
		r.took, r.quarters = time.Since(began), w.quarters
	})
	if err != nil {
		return r, err
	}
	if r.peak, err = w.memory("VmHWM"); err != nil {
		return r, err
	}
	if r.end, err = w.memory("VmRSS"); err != nil {
		return r, err
	}
	if err := w.server.Stop(); err != nil {
		return r, err
	}
	r.lines, r.private, err = grep(w.logFile, w.private())
	return r, err
}

// grep counts the lines of a file, and those that hold one of the words.
func grep(file string, words []string) (lines, found int, err error) {
	f, err := os.Open(file) //nolint:gosec // a path of ours
	if err != nil {
		return 0, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		lines++
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s.Text(), w) }) {
			found++
		}
	}
	return lines, found, s.Err()
}

// memory reads a figure of the server's from the kernel, in KiB.
func (w *world) memory(name string) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.server.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	return 0, errors.New("the kernel does not say " + name)
}
