// Command reader makes the figures that the README states of reading replies:
// the embedded reader behind its calibration and the guards, over labelled
// sets, with counts, denominators and one-sided 95 % bounds; a hostile reader
// over the same sets; and the time for a reply as a ratio to a bare n-gram
// logistic regression in the same run.
//
//	go run ./bench/reader
//	go run ./bench/reader -data replies.jsonl -data more.jsonl -missed 20
//
// It exits 1 when a confirm at p ≥ 0.9 is wrong that is in no -known list.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/corpus"
	"github.com/countersign/countersign/classifier/local"
)

type paths []string

func (p *paths) String() string     { return strings.Join(*p, ",") }
func (p *paths) Set(s string) error { *p = append(*p, s); return nil }

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "reader:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	fs := flag.NewFlagSet("reader", flag.ContinueOnError)
	var data paths
	fs.Var(&data, "data", "labelled replies, JSONL; may be repeated, each is reported by itself")
	missed := fs.Int("missed", 0, "list so many real yeses that fell through")
	adversary := fs.Bool("adversary", true, "measure what guards alone stop")
	leaks := fs.Int("leaks", 0, "list so many replies that guards alone let through")
	speed := fs.Bool("speed", true, "measure the time for a reply")
	known := fs.String("known", "", "JSONL of rows whose labels are known to be wrong; their confirms do not fail the command")
	reports := fs.String("reports", "", "write an HTML and a JSON report per set into this directory")
	if err := fs.Parse(args); err != nil {
		return err
	}

	start, busy := time.Now(), processorTime()
	reader, err := local.New()
	if err != nil {
		return err
	}
	weights := time.Since(start)
	// The first reading loads the lexicon as well.
	if _, err := reader.Read(ctx, classifier.Input{Newest: classifier.NewWords("yes")}); err != nil {
		return err
	}
	loaded := load{weights: weights, wall: time.Since(start), processor: processorTime() - busy}
	file, err := calibration.Load(local.CalibrationFile())
	if err != nil {
		return err
	}
	live := calibration.Calibrated(reader, file, reader)
	if err := live.Err(); err != nil {
		return err
	}
	excused := map[string]bool{}
	if *known != "" {
		rows, err := read(*known)
		if err != nil {
			return err
		}
		for _, r := range rows {
			excused[r.Key()] = true
		}
	}
	fmt.Fprintf(w, "reader %s\ncalibrated on %d rows (%d yeses): %s, threshold %.4g; code may act in %s\n\n",
		reader.Fingerprint(), file.Data.Rows, file.Data.Yes, file.Calibrator.Kind, file.Threshold, strings.Join(file.Languages, " "))

	type set struct {
		name string
		rows []calibration.Row
	}
	var sets []set
	test, err := calibration.ReadFS(corpus.Test())
	if err != nil {
		return err
	}
	sets = append(sets, set{"own test part", test})
	for _, p := range data {
		rows, err := read(p)
		if err != nil {
			return err
		}
		sets = append(sets, set{filepath.Base(p), rows})
	}

	fmt.Fprintf(w, "%-32s %6s %6s  %-24s %-24s %7s %7s\n", "set", "rows", "yeses", "right of acted on", "yeses acted on", "ECE", "Brier")
	wrong := 0
	for _, s := range sets {
		res, err := calibration.Run(ctx, reader, s.rows, calibration.Options{Calibration: &file, Languages: reader})
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(w, "%-32s %6d %6d  %-24s %-24s %7.4f %7.4f\n", s.name, res.Data.Rows, res.Data.Yes,
			count(res.Precision), fmt.Sprintf("%d of %d (%.1f %%)", res.Recall.Right, res.Recall.Of, 100*res.Recall.Share()), res.ECE, res.Brier)
		for _, c := range res.Wrong {
			note := ""
			if excused[c.Key] {
				note = "  (label known to be wrong)"
			} else {
				wrong++
			}
			fmt.Fprintf(w, "    wrong confirm %.3f  %s  %q  to %q  %s%s\n", c.P, c.Label, c.Text, strings.Join(c.Offers, " | "), c.ID, note)
		}
		for i, c := range res.Missed {
			if i == *missed {
				break
			}
			fmt.Fprintf(w, "    missed %.3f  %q  to %q  %v\n", c.P, c.Text, strings.Join(c.Offers, " | "), c.Guards)
		}
		if *reports != "" {
			if err := write(*reports, s.name, res); err != nil {
				return err
			}
		}
	}

	if *adversary {
		if err := hostile(ctx, w, slices.Concat(func() (all [][]calibration.Row) {
			for _, s := range sets {
				all = append(all, s.rows)
			}
			return
		}()...), *leaks); err != nil {
			return err
		}
	}
	if *speed {
		measure(ctx, w, reader, live, test, loaded)
	}
	if wrong > 0 {
		return fmt.Errorf("%d wrong confirms at p ≥ %v", wrong, classifier.ActThreshold)
	}
	return nil
}

func read(path string) ([]calibration.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	rows, err := calibration.ReadData(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}

func count(c calibration.Count) string {
	return fmt.Sprintf("%d of %d (≥ %.4f)", c.Right, c.Of, c.Lower)
}

func write(dir, name string, res calibration.Result) error {
	name = filepath.Join(dir, strings.ReplaceAll(strings.TrimSuffix(name, ".jsonl"), " ", "-"))
	for ext, f := range map[string]func() ([]byte, error){".html": res.HTML, ".json": res.JSON} {
		b, err := f()
		if err != nil {
			return err
		}
		if err := os.WriteFile(name+ext, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// hostile asks the guards alone: the reader says confirm, 1.0, to everything.
func hostile(ctx context.Context, w io.Writer, rows []calibration.Row, list int) error {
	no, through := 0, 0
	kinds := map[string]int{}
	var texts []string
	for _, r := range rows {
		if r.Allows(classifier.Confirm) {
			continue
		}
		in, err := r.Input()
		if err != nil {
			return err
		}
		no++
		if classifier.Read(ctx, calibration.Adversary(), in, classifier.Options{}).Confirms(classifier.ActThreshold) {
			through++
			for _, t := range append([]string{"label " + r.Label.String()}, r.Tags...) {
				kinds[t]++
			}
			texts = append(texts, fmt.Sprintf("%s  %q  to %q  %s", r.Label, r.Text, strings.Join(r.Offers, " | "), r.ID))
		}
	}
	stopped := calibration.NewCount(no-through, no)
	fmt.Fprintf(w, "\nadversary (confirm, 1.0, to all): guards alone stop %s = %.2f %% of the replies that are no yes; %d get through\n",
		count(stopped), 100*stopped.Share(), through)
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int {
		if kinds[a] != kinds[b] {
			return kinds[b] - kinds[a]
		}
		return strings.Compare(a, b)
	})
	for _, k := range names {
		fmt.Fprintf(w, "    %4d %s\n", kinds[k], k)
	}
	for i, t := range texts {
		if i == list {
			break
		}
		fmt.Fprintf(w, "    through: %s\n", t)
	}
	return nil
}

// measure times single replies on one thread, the reader and the bare model
// in turn over the same replies, so that a busy machine slows both.
func measure(ctx context.Context, w io.Writer, reader classifier.Reader, live classifier.Reader, rows []calibration.Row, loaded load) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ins []classifier.Input
	var texts []string
	for _, r := range rows {
		if in, err := r.Input(); err == nil {
			ins, texts = append(ins, in), append(texts, r.Text)
		}
	}
	bare := newBare()
	var bareNS, readNS, fullNS []int64
	for round := range 4 {
		for i, in := range ins {
			t0 := time.Now()
			bare.predict(texts[i])
			t1 := time.Now()
			_, _ = reader.Read(ctx, in)
			t2 := time.Now()
			classifier.Read(ctx, live, in, classifier.Options{})
			t3 := time.Now()
			if round > 0 { // the first round warms up
				bareNS = append(bareNS, t1.Sub(t0).Nanoseconds())
				readNS = append(readNS, t2.Sub(t1).Nanoseconds())
				fullNS = append(fullNS, t3.Sub(t2).Nanoseconds())
			}
		}
	}
	// Allocations of the reader alone.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, in := range ins {
		_, _ = reader.Read(ctx, in)
	}
	runtime.ReadMemStats(&after)
	med := func(ns []int64) float64 { slices.Sort(ns); return float64(ns[len(ns)/2]) / 1000 }
	b, r, f := med(bareNS), med(readNS), med(fullNS)
	fmt.Fprintf(w, "\ntime for a reply, median of %d: reader %.1f µs, with preparation, calibration and guards %.1f µs; bare n-gram regression %.2f µs: ratios %.1f and %.1f\n",
		len(readNS), r, f, b, r/b, f/b)
	fmt.Fprintf(w, "reader: %.1f allocations, %.0f bytes a reply; weights loaded in %.1f ms, with the guards' lexicon %.1f (%.1f ms of processor time)\n",
		float64(after.Mallocs-before.Mallocs)/float64(len(ins)), float64(after.TotalAlloc-before.TotalAlloc)/float64(len(ins)),
		float64(loaded.weights.Microseconds())/1000, float64(loaded.wall.Microseconds())/1000, float64(loaded.processor.Microseconds())/1000)
}

// load is how long the reader took to be ready, its weights alone and with what the guards need; a busy machine makes the
// wall time longer.
type load struct{ weights, wall, processor time.Duration }

// processorTime is what this process has had of the processors so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
