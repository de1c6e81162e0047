// Command crash kills the server again and again, at moments that nobody can foresee, while an agent, people and a
// provider go on, and then counts what got lost.
//
//	go run ./bench/crash
//	go run ./bench/crash -kills 20 -stores sqlite
//
// The server is the real `bot serve`, a process of its own that SIGKILL ends; on PostgreSQL, which is this run's own
// server, some of the kills end the database as well, by SIGKILL of its postmaster or by an immediate stop. Half of the
// kills come at any time, half within a few milliseconds of a reply. Everybody repeats what was not answered: the agent
// with its idempotency key, the provider with the same MessageSid. The provider now and then takes a text and never
// answers.
//
// Counted, in the database and in what everybody was told:
//
//	lost             replies that were answered 200 and changed no operation and told the agent nothing, or are not there
//	lost approvals   offers that a yes has consumed without the agent being told so, or with a begin or result gone
//	double           operations whose arguments were handed out more than once
//	without a yes    operations begun without a yes that their person typed with that offer on the screen
//
// The last line is these four for all stores; anything but 0, 0, 0, 0 makes exit 1. Besides it says how long after a
// restart an approval came whose reply had been answered, or which had been committed, before the kill: by the feed, and
// by webhook. -within makes exit 1 of more than that by the feed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

const (
	onPG     = "postgres"
	onSQLite = "sqlite"
)

type options struct {
	kills    int
	database int // of the kills on PostgreSQL, how many end the database too
	people   int
	stores   []string
	seed     uint64
	bot      string
	log      string
	keep     bool
	endpoint bool
	within   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the whole program: exit 0, 1 for anything that was lost, 2 for wrong use or a machine that cannot.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	var stores string
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.kills, "kills", 300, "kills on each store")
	flags.IntVar(&o.database, "database-kills", 50, "of those on PostgreSQL, how many end the database as well")
	flags.IntVar(&o.people, "people", 12, "people who are asked at the same time, at most 90")
	flags.StringVar(&stores, "stores", onSQLite+","+onPG, "stores")
	flags.Uint64Var(&o.seed, "seed", 0, "of the moments and the words; 0: another each time")
	flags.StringVar(&o.bot, "bot", "", "kill this binary instead of building one")
	flags.StringVar(&o.log, "log", "", "write what the servers log to this file")
	flags.BoolVar(&o.endpoint, "endpoint", true, "post the agent's events to it as well")
	flags.BoolVar(&o.keep, "keep", false, "keep the databases, and say where")
	flags.DurationVar(&o.within, "within", 0, "exit 1 if an approval comes later than this after a restart; 0: only say so")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	o.stores = strings.Split(stores, ",")
	if o.kills < 1 || o.people < 1 || o.people > 90 || flags.NArg() > 0 {
		_, _ = fmt.Fprintln(stderr, "crash: -kills must be above 0, -people 1 to 90, and there are no arguments")
		return 2
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	_, _ = fmt.Fprintf(stderr, "crash: seed %d\n", o.seed)
	total, err := everything(ctx, o, stdout, stderr)
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "crash:", err)
		return 2
	case total.bad() || o.within > 0 && total.feed.at(1) > o.within:
		return 1
	}
	return 0
}

// everything plays each store in turn and prints what came of it.
func everything(ctx context.Context, o options, stdout, stderr io.Writer) (counts, error) {
	var total counts
	dir, err := os.MkdirTemp("", "countersign-crash")
	if err != nil {
		return total, err
	}
	if o.keep {
		_, _ = fmt.Fprintf(stderr, "crash: everything is in %s\n", dir)
	} else {
		defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the user postgres must pass through
		return total, err
	}
	if o.bot == "" {
		o.bot = filepath.Join(dir, "bot")
		if err := machine.Build(ctx, "", o.bot, "github.com/countersign/countersign/cmd/bot"); err != nil {
			return total, err
		}
	}
	log := io.Discard
	if o.log != "" {
		f, err := os.Create(o.log)
		if err != nil {
			return total, err
		}
		defer f.Close() //nolint:errcheck // a log
		log = f
	}
	for _, store := range o.stores {
		c, err := onStore(ctx, o, store, filepath.Join(dir, store), log, stderr)
		if err != nil {
			return total, fmt.Errorf("%s: %w", store, err)
		}
		_, _ = fmt.Fprintf(stdout, "%-8s  %s\n", store, c)
		total = total.plus(c)
	}
	_, err = fmt.Fprintf(stdout, "lost, lost approvals, double, without a yes: %d, %d, %d, %d\n", total.lost, total.lostApprovals, total.double, total.withoutYes)
	return total, err
}

// onStore plays one store.
func onStore(ctx context.Context, o options, store, dir string, log, stderr io.Writer) (counts, error) {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the user postgres must pass through
		return counts{}, err
	}
	var db database
	switch store {
	case onSQLite:
		db = sqliteFile(filepath.Join(dir, "crash.db"))
	case onPG:
		c, err := startCluster(ctx, filepath.Join(dir, "pg"))
		if err != nil {
			return counts{}, err
		}
		defer c.StopNow() //nolint:errcheck // it is ended either way
		db = c
	default:
		return counts{}, fmt.Errorf("%q is no store", store)
	}
	p, err := newPlay(ctx, o, db, dir, log, stderr)
	if err != nil {
		return counts{}, err
	}
	defer p.close() //nolint:errcheck // it is ended either way
	if err := p.run(ctx); err != nil {
		return counts{}, err
	}
	return p.count(ctx)
}
