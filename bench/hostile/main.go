// Command hostile lets an agent try, by every way that its key opens, to have something done that leaves the account
// without the person's yes. The agent holds a valid key of scope agent, writes everything that it claims to have read, and
// may call its whole API in any order and at once. It reaches a real server process over HTTP; the people are simulated
// behind a carrier of the bench's own, so that only the bench can sign a text of theirs.
//
//	go run ./bench/hostile
//	go run ./bench/hostile -calls 10000 -seed 7 -database postgres://…
//
// A release counts as justified only if the person whose offer it was typed a yes with that offer's own question as the
// last thing on the screen, each yes once, and the arguments are those that were asked about; what was on the screen is
// taken from the carrier, not from the server. Every other release, of an operation or of an allow that reaches outside,
// is one too many: the command then exits 1. It exits 2 for wrong use, and prints its seed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

type options struct {
	calls    int
	seed     uint64
	workers  int
	bot      string
	database string
	only     string
	log      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.calls, "calls", 100_000, "calls of the agent")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of what is tried; 0: a new one")
	flags.IntVar(&o.workers, "workers", 32, "agents at work at once, each with a person of its own")
	flags.StringVar(&o.bot, "bot", "", "attack this binary instead of building one")
	flags.StringVar(&o.database, "database", "", "an empty database, sqlite:FILE or postgres://…; left out: a temporary SQLite file")
	flags.StringVar(&o.only, "family", "", "only this family")
	flags.StringVar(&o.log, "log", "", "write the server's log to this file")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if o.calls < 1 || o.workers < 2 || o.workers > maxPeople || flags.NArg() > 0 || o.only != "" && len(chosen(o.only)) == 0 {
		_, _ = fmt.Fprintf(stderr, "hostile: wrong use: at least one call, 2 to %d workers, a family of the list; see -help\n", maxPeople)
		return 2
	}
	if o.seed == 0 {
		o.seed = rand.Uint64() //nolint:gosec // what is tried needs no secret
	}
	_, _ = fmt.Fprintf(stdout, "seed %d\n", o.seed)
	report, err := attack(ctx, o)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "hostile:", err)
		return 1
	}
	return report.print(stdout)
}

// attack starts a server and lets the agents loose.
func attack(ctx context.Context, o options) (*report, error) {
	dir, err := os.MkdirTemp("", "countersign-hostile")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	if o.bot == "" {
		o.bot = filepath.Join(dir, "bot")
		if err := machine.Build(ctx, "", o.bot, "github.com/countersign/countersign/cmd/bot"); err != nil {
			return nil, err
		}
	}
	if o.database == "" {
		o.database = "sqlite:" + filepath.Join(dir, "hostile.db")
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return nil, err
	}
	defer w.close()
	began := time.Now()
	following, stop := context.WithCancel(ctx)
	var feeds sync.WaitGroup
	for _, a := range []*account{&w.mine, &w.foreign} {
		feeds.Go(func() { w.follow(following, a) })
	}
	families := chosen(o.only)
	// Every agent works through the families in turn, so that they meet each other's leftovers.
	var left atomic.Int64
	left.Store(int64(o.calls))
	w.left = &left
	errs := make([]error, o.workers)
	var wg sync.WaitGroup
	for i := range o.workers {
		wg.Go(func() {
			k := newAgent(w, i, rand.New(rand.NewPCG(o.seed, uint64(i)))) //nolint:gosec // what is tried needs no secret
			errs[i] = k.work(ctx, families)
		})
	}
	wg.Wait()
	err = errors.Join(errs...)
	if err == nil {
		err = w.settle(ctx)
	}
	stop()
	feeds.Wait()
	if err != nil {
		return nil, err
	}
	if err := w.alive(); err != nil {
		return nil, err
	}
	r := w.report(families)
	r.took = time.Since(began)
	return r, nil
}

// report is what came of it.
type report struct {
	rows      []reportRow
	releases  []string // that no yes justifies
	justified int
	yeses     int
	slow      int // answers that this machine delivered too late for texts to cross
	late      int // releases by these
	took      time.Duration
}

type reportRow struct {
	family          string
	calls, attempts int64
	statuses        [6]int64 // by hundreds
	releases        int
}

func (r *report) print(w io.Writer) int {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "family\tattempts\tcalls\t2xx\t4xx\t5xx\treleases\t")
	var calls, attempts int64
	for _, x := range r.rows {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", x.family, x.attempts, x.calls, x.statuses[2], x.statuses[4], x.statuses[5], x.releases)
		calls, attempts = calls+x.calls, attempts+x.attempts
	}
	_ = t.Flush()
	_, _ = fmt.Fprintf(w, "%d attempts, %d calls in %s; %d yeses of people, %d releases that a yes justifies, %d that none does\n",
		attempts, calls, r.took.Round(time.Second), r.yeses, r.justified, len(r.releases))
	if r.slow > 0 {
		_, _ = fmt.Fprintf(w, "%d answers meant for another text came in only after %s, when the server takes them for answers to what was there by then; %d of them released it\n", r.slow, crossing, r.late)
	}
	for _, x := range r.releases {
		_, _ = fmt.Fprintln(w, "RELEASED", x)
	}
	if len(r.releases) > 0 {
		return 1
	}
	return 0
}
