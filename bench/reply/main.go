// Command reply measures the path of a yes, from the provider's signed webhook to the committed consume, against a
// program that does the least that is durable and free of races: the limit.
//
//	go run ./bench/reply -peers ../peers
//
// The folder of the peers holds the limit's source in gobench/limit; its modes pg2t and sqlite2 do the same two commits.
// The run starts a PostgreSQL of its own (fsync and synchronous_commit on) and the real `bot serve` as a child, on
// PostgreSQL and on SQLite (synchronous FULL). Seeded people with one open, shown offer each, made by the product's own
// calls, are copied for every run; every reply is a yes of another person.
//
// Runs of both sides alternate, in an order that turns with each repetition, behind one client: closed loops over
// keep-alive connections, requests signed beforehand. Client, servers and database share the machine.
//
// What counts is a committed consume. The limit answers after its commit. Countersign answers when the message is stored
// and decides afterwards, so its moment is that of the server's log line "approved", written when the consume has
// returned; the rate goes from the first request to the last of these, and every answered yes must have one, in the
// database too. Latencies go from the sending of the request to the same moment; "ack" is the answer alone.
//
// Statements, round trips and writing transactions of one confirm are counted on PostgreSQL over a fixed number of
// confirms: by pg_stat_statements, by a proxy that reads the protocol, and by transaction ids.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/figures"
	"github.com/countersign/countersign/bench/internal/machine"
)

const (
	limitName = "limit"
	oursName  = "ours"
	onPG      = "postgres"
	onSQLite  = "sqlite"
)

type options struct {
	peers       string
	bot         string
	connections []int
	seconds     float64
	reps        int
	stores      []string
	offers      int
	confirms    int
	text        string
	json        string
	inprocess   bool
	cpuprofile  string
	growth      int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reply:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context) error {
	var o options
	var connections, stores string
	flag.StringVar(&o.peers, "peers", "", "folder of the peers; without it only ours is measured")
	flag.StringVar(&o.bot, "bot", "", "measure this binary instead of building one")
	flag.StringVar(&connections, "connections", "1,8,32,128", "numbers of connections")
	flag.Float64Var(&o.seconds, "seconds", 4, "length of a run; it ends earlier when every offer is consumed")
	flag.IntVar(&o.reps, "reps", 3, "repetitions")
	flag.StringVar(&stores, "stores", onPG+","+onSQLite, "stores")
	flag.IntVar(&o.offers, "offers", 16000, "open offers of a run")
	flag.IntVar(&o.confirms, "confirms", 500, "confirms over which round trips are counted; 0: not counted")
	flag.StringVar(&o.text, "text", "yes please", "the reply")
	flag.StringVar(&o.json, "json", "", "write all runs to this file")
	flag.BoolVar(&o.inprocess, "inprocess", false, "serve in this process, for a profile; figures are not comparable then")
	flag.StringVar(&o.cpuprofile, "cpuprofile", "", "with -inprocess: write a CPU profile of the last run to this file")
	flag.IntVar(&o.growth, "growth", 0, "measure how the path slows down from 10 thousand to a million stored offers, messages and ledger rows, over so many confirms a run")
	flag.Parse()
	var err error
	if o.connections, err = figures.ParseConnections(connections); err != nil {
		return err
	}
	for s := range strings.SplitSeq(stores, ",") {
		if s != onPG && s != onSQLite {
			return fmt.Errorf("-stores: %q is no store", s)
		}
		o.stores = append(o.stores, s)
	}
	dir, err := os.MkdirTemp("", "countersign-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)                      //nolint:errcheck // a directory of ours
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the user postgres must pass through
		return err
	}
	return measure(ctx, dir, o)
}

// contestant is one side on one store.
type contestant struct {
	store, side string
	run         func(ctx context.Context, dir string, p plan) (run, error)
}

func measure(ctx context.Context, dir string, o options) error {
	twilio := httptest.NewServer(http.HandlerFunc(crowd.Accept))
	defer twilio.Close()
	begin := insideStarter(o.cpuprofile, twilio.URL)
	if !o.inprocess {
		if o.bot == "" {
			o.bot = filepath.Join(dir, "bot")
			if err := machine.Build(ctx, "", o.bot, "github.com/countersign/countersign/cmd/bot"); err != nil {
				return err
			}
		}
		begin = childStarter(o.bot, twilio.URL)
	}
	limit := ""
	if o.peers != "" {
		var err error
		if limit, err = crowd.BuildLimit(ctx, dir, o.peers); err != nil {
			return err
		}
	}
	var all []contestant
	var pg *machine.Postgres
	var counted oursSide
	if slices.Contains(o.stores, onPG) {
		conf := counting
		if o.growth > 0 {
			conf += resident
		}
		var err error
		if pg, err = machine.StartPostgres(ctx, filepath.Join(dir, "pg"), conf); err != nil {
			return err
		}
		defer pg.Stop()
		note("seeding %d people on PostgreSQL", o.offers)
		if err := seedPostgres(ctx, pg, "ours_seed", o.offers); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		counted = oursSide{start: begin, pg: pg, offers: o.offers}
		all = append(all, contestant{onPG, oursName, counted.run})
	}
	if o.growth > 0 {
		return growth(ctx, dir, o, begin, pg, o.growth)
	}
	if slices.Contains(o.stores, onSQLite) {
		note("seeding %d people on SQLite", o.offers)
		seeded, remove, err := seedSQLite(ctx, o.offers)
		if remove != nil {
			defer remove()
		}
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		all = append(all, contestant{onSQLite, oursName, oursSide{start: begin, seeded: seeded, offers: o.offers}.run})
	}
	if limit != "" {
		for i := len(all) - 1; i >= 0; i-- { // each before ours on its store
			on := pg
			if all[i].store == onSQLite {
				on = nil
			}
			l, err := crowd.NewLimit(ctx, limit, on, o.offers)
			if err != nil {
				return err
			}
			all = slices.Insert(all, i, contestant{all[i].store, limitName, limitSide{Limit: l, pg: on, offers: o.offers}.run})
		}
	}
	runs, err := interleave(ctx, dir, o, all)
	if err != nil {
		return err
	}
	report := report{Runs: runs, Lines: compare(runs)}
	if err := printLines(os.Stdout, report.Lines); err != nil {
		return err
	}
	if pg != nil && o.confirms > 0 {
		if counted.wire, err = newWire(pg.Addr()); err != nil {
			return err
		}
		got, err := counted.cost(ctx, dir, plan{text: o.text, warm: min(500, o.offers/4)}, o.confirms)
		counted.wire.close()
		if err != nil {
			return fmt.Errorf("cost of a confirm: %w", err)
		}
		report.Statements, report.RoundTrips, report.Commits = got[0], got[1], got[2]
		fmt.Printf("a confirm on PostgreSQL: %.2f statements, %.2f round trips, %.2f writing transactions\n", got[0], got[1], got[2])
	}
	if err := figures.WriteJSON(o.json, report); err != nil {
		return err
	}
	for _, l := range report.Lines {
		if l.Errors > 0 || l.NotConsumed > 0 {
			return errors.New("some yeses were not consumed")
		}
	}
	return nil
}

// report is what -json writes.
type report struct {
	Lines      []line  `json:"lines"`
	Statements float64 `json:"statements_per_confirm"`
	RoundTrips float64 `json:"round_trips_per_confirm"`
	Commits    float64 `json:"commits_per_confirm"`
	Runs       []run   `json:"runs"`
}

// interleave runs all contestants at each number of connections, in an order that turns with each repetition.
func interleave(ctx context.Context, dir string, o options, all []contestant) ([]run, error) {
	var runs []run
	for rep := range o.reps {
		for _, c := range o.connections {
			for _, who := range all {
				p := plan{connections: c, duration: time.Duration(o.seconds * float64(time.Second)), text: o.text, warm: min(40*c+200, o.offers/4)}
				r, err := who.run(ctx, dir, p)
				if err != nil {
					return nil, fmt.Errorf("%s on %s: %w", who.side, who.store, err)
				}
				r.Store, r.Side, r.Connections, r.Repetition = who.store, who.side, c, rep
				note("%-8s %-5s %3d connections: %6.0f/s p50 %.2f p99 %.2f ms, ack p50 %.2f ms, CPU %.2f ms (database %.2f), %d of %d errors, %d not consumed, peak %d MiB, foreign %.2f %s",
					r.Store, r.Side, c, r.Rate, r.P50, r.P99, r.AckP50, r.CPU, r.DatabaseCPU, r.Errors, r.Requests, r.NotConsumed, r.Peak>>20, r.Foreign, r.Failure)
				runs = append(runs, r)
			}
			slices.Reverse(all)
		}
	}
	return runs, nil
}

func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
