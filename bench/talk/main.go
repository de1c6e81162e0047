// Command talk plays generated conversations against the product's real stores and its real path of a reply, and demands
// that nothing is released that the screen and the words do not justify.
//
//	go run ./bench/talk                       100,000 messages on SQLite, half with the built-in reader
//	go run ./bench/talk -postgres URL         on PostgreSQL, in an empty database
//	go run ./bench/talk -seed 7 -only 3 -trace        one world of an earlier run, in full
//
// A world has people with one phone or two, strangers, a carrier, an agent and an owner. The carrier repeats, delays, reorders,
// splits and loses texts, messages and callbacks; the agent puts several offers at once, supersedes, withdraws, begins too
// early, with other arguments and twice, and always tries to confirm what code left open; people answer, say yes to nothing
// in particular, change their mind, react, quote, opt out; processes die with messages and texts in their hands. Time is
// injected: nobody waits.
//
// The model is apart from the product. It knows what was on each screen when, by the words of the texts that reached the
// phone, and what a message means by the list that its words were taken from. A release is justified only if the words
// are a yes, nothing else was live, the offer's question was the newest on that very phone before the words were written,
// no newer message was there, and the offer was neither expired, withdrawn, superseded nor declined. Besides: one release
// per offer and message, the exact arguments at begin, no text to who has opted out, texts in the order of their numbers,
// every stored message decided, no word of a stranger in an event.
//
// What a phone has shown nobody tells a service. It waits from the moment at which the carrier took a text: 1 s, and 15 s where
// another question was there in the minute before. The carrier here keeps within those times. With -beyond P it does not,
// for that share of texts and messages: releases by words that were written before the question was on the screen are
// then counted as blind, apart, and show what those times are worth.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/local"
)

type options struct {
	seed     uint64
	messages int
	world    int
	people   int
	reader   string
	postgres string
	beyond   float64
	workers  int
	only     int
	trace    bool
}

// Readers.
const (
	readerReal     = "real"
	readerScripted = "scripted"
	readerBoth     = "both"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "the seed; 0: a random one, which is printed")
	flag.IntVar(&o.messages, "messages", 100_000, "messages to play")
	flag.IntVar(&o.world, "world", 2_000, "messages of one world, which has a database of its own")
	flag.IntVar(&o.people, "people", 8, "people of a world")
	flag.StringVar(&o.reader, "reader", readerBoth, "real, scripted (knows what the words mean) or both, in turns")
	flag.StringVar(&o.postgres, "postgres", "", "play on this empty database, one world after the other; without it on SQLite")
	flag.Float64Var(&o.beyond, "beyond", 0, "share of texts and messages that take longer than the product waits")
	flag.IntVar(&o.workers, "workers", 2, "worlds at once")
	flag.IntVar(&o.only, "only", -1, "play only the world of that number")
	flag.BoolVar(&o.trace, "trace", false, "print everything that happens")
	flag.Parse()
	if o.seed == 0 {
		o.seed = rand.Uint64() //nolint:gosec // no secret
	}
	res, err := play(ctx, o, os.Stderr)
	if err == nil {
		err = res.print(os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "talk:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be done
	}
}

// result is what happened in all worlds.
type result struct {
	counts map[string]int
	faults []string
	stored int
	took   time.Duration
}

// play plays all worlds.
func play(ctx context.Context, o options, trace io.Writer) (result, error) {
	res := result{counts: map[string]int{}}
	if o.reader != readerReal && o.reader != readerScripted && o.reader != readerBoth {
		return res, fmt.Errorf("-reader: %q is no reader", o.reader)
	}
	inner, err := local.New()
	if err != nil {
		return res, err
	}
	f, err := calibration.Load(local.CalibrationFile())
	if err != nil {
		return res, err
	}
	own := calibration.Calibrated(inner, f, inner)
	if err := own.Err(); err != nil && o.reader != readerScripted {
		return res, fmt.Errorf("the built-in reader acts on nothing: %w", err)
	}
	begun := time.Now()
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(o.workers)
	if o.postgres != "" {
		g.SetLimit(1)
	}
	n := (o.messages + o.world - 1) / o.world
	for i := range n {
		if o.only >= 0 && i != o.only {
			continue
		}
		set := settings{
			seed: o.seed + uint64(i), number: i, messages: min(o.world, o.messages-i*o.world), people: o.people, beyond: o.beyond, //nolint:gosec // small
			real: o.reader == readerReal || o.reader == readerBoth && i%2 == 1, tapbacks: i%4 > 1, limit: []int{1600, 1600, 320}[i%3], listens: i%5 < 2,
		}
		if o.trace {
			set.trace = trace
		}
		g.Go(func() error {
			var reader classifier.Reader = newScripted()
			threshold := classifier.ActThreshold
			if set.real {
				reader, threshold = own, max(f.Threshold, threshold)
			}
			w, err := one(ctx, o, set, reader, threshold)
			if err != nil {
				return fmt.Errorf("world %d: %w", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for k, v := range w.counts {
				res.counts[k] += v
			}
			res.faults = append(res.faults, w.faults...)
			res.stored += w.stored
			return nil
		})
	}
	err = g.Wait()
	res.took = time.Since(begun)
	return res, err
}

// one plays one world.
func one(ctx context.Context, o options, set settings, reader classifier.Reader, threshold float64) (*world, error) {
	c := &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).AddDate(0, 0, set.number)}
	var s store
	var remove func()
	var err error
	if o.postgres != "" {
		s, remove, err = openPostgres(ctx, o.postgres, c)
	} else {
		s, remove, err = openSQLite(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	defer remove()
	if c.set != nil {
		if err := c.set(c.now); err != nil {
			return nil, err
		}
	}
	w, err := newWorld(ctx, set, c, s, reader, threshold)
	if err != nil {
		return nil, err
	}
	w.run()
	return w, ctx.Err()
}

var errFaults = errors.New("something happened that must not")

// print writes the figures; its error says that something was wrong.
func (r result) print(out io.Writer, o options) error {
	on := "SQLite"
	if o.postgres != "" {
		on = "PostgreSQL"
	}
	fmt.Fprintf(out, "seed %d, %d messages on %s, reader %s, beyond %g, %s (%.0f messages a second)\n\n",
		o.seed, r.stored, on, o.reader, o.beyond, r.took.Round(time.Second), float64(r.stored)/r.took.Seconds())
	unjustified, why := 0, map[string]int{}
	for _, f := range r.faults {
		first, _, _ := strings.Cut(f, "\n")
		if strings.Contains(first, "UNJUSTIFIED") {
			unjustified++
			why[first[strings.LastIndex(first, "): ")+3:]]++
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(out, "%9d  %s\n", r.counts[k], k)
	}
	for i, f := range r.faults {
		if i >= 3 { // of the others where, to play that world alone, and what
			f, _, _ = strings.Cut(f, "\n")
		}
		fmt.Fprintf(out, "\n%s\n", f)
	}
	for _, k := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintf(out, "\n%d unjustified: %s", why[k], k)
	}
	blind := 0
	for k, v := range r.counts {
		if strings.HasPrefix(k, "blind: ") {
			blind += v
		}
	}
	fmt.Fprintf(out, "\n%d releases, %d unjustified, %d blind, %d other faults\n", r.counts["releases"]+r.counts["releases that a main model cited"],
		unjustified, blind, len(r.faults)-unjustified)
	if len(r.faults) > 0 {
		return errFaults
	}
	return nil
}
