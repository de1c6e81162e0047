// Command eager measures what a main model could get through that always tries to confirm. For each labelled reply the
// row's offers are opened, the reply comes in as the person's text, and code decides it as a server would. Where no yes
// was acted on, the model calls confirm for every open offer, with the right citation, the right quote and the right
// arguments: nothing that could be wrong with the call itself stops it, only what was stored of the reading.
//
//	go run ./bench/eager -data replies.jsonl -data more.jsonl
//	go run ./bench/eager -data replies.jsonl -reader adversary
//
// With -reader adversary the reader says confirm to everything, so that guards alone hold the model back; the figures
// then show what rests on the reader.
//
// It exits 1 when the model gets a row through that is labelled decline, modify or unrelated and in no -known list, and
// 2 for wrong use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/countersign/countersign/classifier"
)

type paths []string

func (p *paths) String() string     { return strings.Join(*p, ",") }
func (p *paths) Set(s string) error { *p = append(*p, s); return nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("eager", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var data paths
	flags.Var(&data, "data", "labelled replies, JSONL; may be repeated, each is reported by itself")
	reader := flags.String("reader", readerLocal, "local, or adversary: one that says confirm to everything")
	list := flags.Int("list", 20, "list so many of the rows of a label that the model gets through")
	known := flags.String("known", "", "JSONL of rows whose labels are known to be wrong; they do not fail the command")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if len(data) == 0 || flags.NArg() > 0 || *list < 0 {
		_, _ = fmt.Fprintln(stderr, "eager: wrong use; name labelled replies with -data, see -help")
		return 2
	}
	excused := map[string]bool{}
	if *known != "" {
		rows, err := load(*known)
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "eager:", err)
			return 2
		}
		for _, r := range rows {
			excused[r.key()] = true
		}
	}
	bad := 0
	for _, path := range data {
		rows, err := load(path)
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "eager:", err)
			return 2
		}
		t, err := measure(ctx, *reader, rows)
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "eager:", err)
			if errors.Is(err, errReader) {
				return 2
			}
			return 1
		}
		bad += t.print(stdout, filepath.Base(path), *list, excused)
	}
	if bad > 0 {
		_, _ = fmt.Fprintf(stdout, "%d rows that are no yes got through\n", bad)
		return 1
	}
	_, _ = fmt.Fprintln(stdout, "no row labelled decline, modify or unrelated got through")
	return 0
}

// tally is what became of the rows of one set.
type tally struct {
	rows    [classifier.Classes]int
	byCode  [classifier.Classes]int // code acted on a confirm
	through [classifier.Classes][]passed
	stopped map[string]int // why the model was refused, over the rows labelled confirm
}

// passed is a row that the model got through.
type passed struct {
	row    row
	guards []string
	class  string
	p      float64
}

// never are the labels of rows that no model may get through.
func never(c classifier.Class) bool {
	return c == classifier.Decline || c == classifier.Modify || c == classifier.Unrelated
}

// print writes the figures, and returns how many rows got through that must not.
func (t *tally) print(w io.Writer, name string, list int, excused map[string]bool) int {
	bad := 0
	_, _ = fmt.Fprintf(w, "%s\n  %-10s %6s %14s %16s\n", name, "label", "rows", "code acted on", "model got through")
	for c := range classifier.Class(classifier.Classes) {
		_, _ = fmt.Fprintf(w, "  %-10s %6d %14d %16d\n", c, t.rows[c], t.byCode[c], len(t.through[c]))
	}
	_, _ = fmt.Fprintf(w, "  of %d yeses that code left open the model recovers %d; the others stop at %s\n",
		t.rows[classifier.Confirm]-t.byCode[classifier.Confirm], len(t.through[classifier.Confirm]), counts(t.stopped))
	for c := range classifier.Class(classifier.Classes) {
		if c == classifier.Confirm {
			continue
		}
		for i, p := range t.through[c] {
			note := ""
			if excused[p.row.key()] {
				note = "  (label known to be wrong)"
			} else if never(c) {
				bad++
			}
			if i < list {
				_, _ = fmt.Fprintf(w, "    %s got through: %q to %q, read %s %.2f, guards %v  %s%s\n", c, p.row.Text, strings.Join(p.row.Offers, " | "), p.class, p.p, p.guards, p.row.ID, note)
			}
		}
	}
	return bad
}
