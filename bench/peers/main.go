// Command peers puts Countersign beside other ways to let a person approve what an agent is about to do: the same closed
// loop, the same action, the same kills, on the same machine.
//
//	go run ./bench/peers -peers ../peers
//	go run ./bench/peers -peers ../peers -who countersign,dbos -parts rate -json dbos.json
//	go run ./bench/peers -table dbos.json,langgraph.json
//
// The folder of the peers holds, in peers/ and restate/, a Node program for each of them with its packages installed, and
// in gobench/limit the least hand-written server that is durable and free of races. A program takes POST /propose (so
// many approvals begin to wait), POST /decide (a person's yes; answered when the action has run), GET /drain (when
// everything that was resumed has finished) and GET /stats. The action is one line that is appended to a file, so that it
// can be counted whatever was killed.
//
// Countersign is the real `bot serve`, its person a signed webhook of the provider, and its agent a process of this
// command that reads the event feed, begins, appends the line and posts the result. It also does what the others leave to
// somebody else: it proves the signature, reads the reply, and texts a receipt.
//
// Three parts. rate: approvals per second from the first decision until everything has finished, at several numbers of
// connections, each side after the other in an order that turns with each repetition; only the ratio to the limit of the
// same run says much. race: how often the action ran when one decision was posted fifty times at once. kill: how often it
// ran after SIGKILL just before it and just past it, first with the restart alone and then with the decision posted again.
package main

import (
	"context"
	"encoding/json"
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
	onPG     = "postgres"
	onSQLite = "sqlite"

	partRate = "rate"
	partRace = "race"
	partKill = "kill"
)

type options struct {
	peers       string
	bot         string
	who         []string // beginnings of names; empty: all
	parts       []string
	connections []int
	seconds     float64
	reps        int
	trials      int
	people      int
	json        string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "agent" {
		return agentCommand(ctx, args[1:])
	}
	var o options
	var who, parts, connections, tables string
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.StringVar(&o.peers, "peers", "", "folder of the peers; without it only Countersign is measured, without a limit")
	flags.StringVar(&o.bot, "bot", "", "measure this binary instead of building one")
	flags.StringVar(&who, "who", "", "beginnings of the names of those to measure, separated by commas; the limit is always measured with part rate")
	flags.StringVar(&parts, "parts", strings.Join([]string{partRate, partRace, partKill}, ","), "what to measure")
	flags.StringVar(&connections, "connections", "1,8,32", "numbers of connections")
	flags.Float64Var(&o.seconds, "seconds", 2, "about how long a run of part rate takes")
	flags.IntVar(&o.reps, "reps", 3, "repetitions of part rate")
	flags.IntVar(&o.trials, "trials", 5, "kills of each kind")
	flags.IntVar(&o.people, "people", 6000, "people with an open offer on each of Countersign's stores")
	flags.StringVar(&o.json, "json", "", "write everything to this file")
	flags.StringVar(&tables, "table", "", "measure nothing; make one table of these files, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if tables != "" {
		return printTables(strings.Split(tables, ","))
	}
	if who != "" {
		o.who = strings.Split(who, ",")
	}
	for p := range strings.SplitSeq(parts, ",") {
		if p != partRate && p != partRace && p != partKill {
			return fmt.Errorf("-parts: %q is none of rate, race and kill", p)
		}
		o.parts = append(o.parts, p)
	}
	var err error
	if o.connections, err = figures.ParseConnections(connections); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "countersign-peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)                      //nolint:errcheck // a directory of ours
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the user postgres must pass through
		return err
	}
	r, err := measure(ctx, dir, o)
	if err != nil {
		return err
	}
	if err := figures.WriteJSON(o.json, r); err != nil {
		return err
	}
	fmt.Print(markdown(rows(r)))
	return nil
}

func printTables(files []string) error {
	var all []row
	for _, f := range files {
		raw, err := os.ReadFile(f) //nolint:gosec // the caller names it
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal(raw, &r); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		all = merge(all, rows(r))
	}
	fmt.Print(markdown(all))
	return nil
}

// side is one of those that are compared. Its methods are called one at a time.
type side interface {
	name() string
	version() string
	limit() string // the name of the limit that it is held against; its own for a limit
	start(ctx context.Context) error
	// propose lets up to n approvals wait for a yes.
	propose(ctx context.Context, n int) ([]approval, error)
	// drain waits until everything that was approved has finished.
	drain(ctx context.Context) error
	processes() []*machine.Process
	stop()
}

// approval waits for a yes.
type approval struct {
	id string // as the action writes it
	// decide posts the yes and returns when the action has run. For a limit, which has no action: when it is committed.
	decide func(ctx context.Context) error
	// again posts the same yes, or for another > 0 another yes of the same person, and waits for no action.
	again func(ctx context.Context, another int) error
}

// killable is a side whose action can be counted, and which can be killed around it.
type killable interface {
	side
	actions() string // the file
	// others says whether one person can say yes in several messages.
	others() bool
	// moments are those at which it can be killed.
	moments() []moment
	// kill lets the action run into a SIGKILL, restarts what was killed, and waits until what comes back by itself has come.
	kill(ctx context.Context, at moment, a approval) error
}

// moment of a SIGKILL.
type moment string

const (
	afterYes moment = "after the yes" // approved, and the agent has not begun
	before   moment = "before"        // just before the action runs
	past     moment = "past"          // just past it, before anybody has recorded that
)

func measure(ctx context.Context, dir string, o options) (report, error) {
	var r report
	twilio := httptest.NewServer(http.HandlerFunc(crowd.Accept))
	defer twilio.Close()
	if o.bot == "" {
		o.bot = filepath.Join(dir, "bot")
		if err := machine.Build(ctx, "", o.bot, "github.com/countersign/countersign/cmd/bot"); err != nil {
			return r, err
		}
	}
	pg, err := machine.StartPostgres(ctx, filepath.Join(dir, "pg"), "")
	if err != nil {
		return r, err
	}
	defer pg.Stop()
	sides, end, err := everybody(ctx, dir, o, pg, twilio.URL)
	defer end()
	if err != nil {
		return r, err
	}
	for _, s := range sides {
		r.Sides = append(r.Sides, about{s.name(), s.version(), s.limit()})
	}
	if slices.Contains(o.parts, partRate) {
		if r.Rates, err = rates(ctx, o, pg, slices.Clone(sides)); err != nil {
			return r, err
		}
	}
	for _, s := range sides {
		k, ok := s.(killable)
		if !ok {
			continue
		}
		if slices.Contains(o.parts, partRace) {
			got, err := races(ctx, k)
			if err != nil {
				return r, fmt.Errorf("%s: race: %w", k.name(), err)
			}
			r.Races = append(r.Races, got...)
		}
		if slices.Contains(o.parts, partKill) {
			got, err := kills(ctx, k, o.trials)
			if err != nil {
				return r, fmt.Errorf("%s: kill: %w", k.name(), err)
			}
			r.Kills = append(r.Kills, got...)
		}
	}
	return r, nil
}

// everybody makes the sides that were asked for, and a function that ends what they share.
func everybody(ctx context.Context, dir string, o options, pg *machine.Postgres, twilioURL string) (sides []side, end func(), err error) {
	end = func() {}
	wanted := func(name string) bool {
		return len(o.who) == 0 || slices.ContainsFunc(o.who, func(w string) bool { return strings.HasPrefix(name, w) })
	}
	stores := map[string]bool{}
	for _, store := range []string{onPG, onSQLite} {
		c := &countersign{store: store, bot: o.bot, dir: filepath.Join(dir, "countersign-"+store), pg: pg, twilioURL: twilioURL}
		if !wanted(c.name()) {
			continue
		}
		note("seeding %d people on %s", o.people, store)
		if err := c.seed(ctx, o.people); err != nil {
			return nil, end, fmt.Errorf("%s: seed: %w", c.name(), err)
		}
		before := end
		end = func() { c.remove(); before() }
		stores[store] = true
		sides = append(sides, c)
	}
	if o.peers == "" {
		return sides, end, nil
	}
	if o.peers, err = filepath.Abs(o.peers); err != nil {
		return nil, end, err
	}
	for _, p := range peers() {
		p.folder, p.dir, p.pg = o.peers, filepath.Join(dir, p.name()), pg
		if wanted(p.name()) && p.there() {
			stores[onPG] = true
			sides = append(sides, p)
		}
	}
	if !slices.Contains(o.parts, partRate) {
		return sides, end, nil
	}
	limits, err := newLimits(ctx, filepath.Join(dir, "limit"), o.peers, pg)
	if err != nil {
		return nil, end, err
	}
	for _, l := range limits {
		if stores[l.store] {
			sides = append(sides, l)
		}
	}
	return sides, end, nil
}

// rates runs all sides at each number of connections, in an order that turns with each repetition.
func rates(ctx context.Context, o options, pg *machine.Postgres, sides []side) ([]rate, error) {
	var out []rate
	for rep := range o.reps {
		for _, s := range sides {
			got, err := ratesOf(ctx, o, pg, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			for _, r := range got {
				r.Repetition = rep
				note("%-22s %2d connections: %6.1f/s p50 %.2f p99 %.2f ms, %d errors of %d, peak %s MiB, foreign %.2f cores %s",
					r.Side, r.Connections, r.PerSecond, r.P50, r.P99, r.Errors, r.Approvals, mebibytes(r.Peaks), r.Foreign, r.FirstError)
				out = append(out, r)
			}
		}
		slices.Reverse(sides)
	}
	return out, nil
}

// warm is how many approvals are decided before anything is measured.
const warm = 100

func ratesOf(ctx context.Context, o options, pg *machine.Postgres, s side) ([]rate, error) {
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	defer s.stop()
	warmed, err := loop(ctx, s, warm, 8)
	if err != nil {
		return nil, err
	}
	var out []rate
	for _, c := range o.connections {
		pids := []int{pg.PID()}
		for _, p := range s.processes() {
			pids = append(pids, p.PID())
		}
		m := machine.NewMeter(pids...)
		r, err := loop(ctx, s, approvals(warmed.PerSecond, c, o.seconds), c)
		if err != nil {
			return nil, err
		}
		_, r.Foreign = m.Read()
		for _, p := range s.processes() {
			r.Peaks = append(r.Peaks, p.Peak())
		}
		out = append(out, r)
	}
	return out, nil
}

// races posts the decisions of ten approvals fifty times at once each.
func races(ctx context.Context, k killable) ([]race, error) {
	const approvals, times = 10, 50
	if err := k.start(ctx); err != nil {
		return nil, err
	}
	defer k.stop()
	var out []race
	for _, others := range []bool{false, true} {
		if others && !k.others() {
			continue
		}
		list, err := k.propose(ctx, approvals)
		if err != nil {
			return nil, err
		}
		r := race{Side: k.name(), OtherMessages: others}
		for _, a := range list {
			r.Errors += storm(ctx, a, times, others)
		}
		machine.Pause(ctx, 4*time.Second) // for whatever comes late
		if r.Runs, err = count(k.actions(), list); err != nil {
			return nil, err
		}
		note("%-22s 50 times at once (other messages: %v): %v runs, %d errors", r.Side, others, r.Runs, r.Errors)
		out = append(out, r)
	}
	return out, nil
}

// kills kills a side at each of its moments, and posts the decision again after it has come back.
func kills(ctx context.Context, k killable, trials int) ([]killed, error) {
	if err := k.start(ctx); err != nil {
		return nil, err
	}
	defer k.stop()
	var out []killed
	for _, at := range k.moments() {
		r := killed{Side: k.name(), At: at}
		for range trials {
			list, err := k.propose(ctx, 1)
			if err != nil {
				return nil, err
			}
			if err := k.kill(ctx, at, list[0]); err != nil {
				return nil, err
			}
			runs, err := count(k.actions(), list)
			if err != nil {
				return nil, err
			}
			r.Restart = append(r.Restart, runs[0])
			_ = list[0].again(ctx, 0) // what counts is what runs
			machine.Pause(ctx, time.Second)
			if runs, err = count(k.actions(), list); err != nil {
				return nil, err
			}
			r.Again = append(r.Again, runs[0])
		}
		note("%-22s SIGKILL %s: %v runs after the restart, %v after the same decision", r.Side, at, r.Restart, r.Again)
		out = append(out, r)
	}
	return out, nil
}

// count tells how often each action has run.
func count(file string, list []approval) ([]int, error) {
	raw, err := os.ReadFile(file) //nolint:gosec // a path of ours
	if err != nil {
		return nil, err
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		runs[strings.TrimSpace(line)]++
	}
	out := make([]int, len(list))
	for i, a := range list {
		out[i] = runs[a.id]
	}
	return out, nil
}

func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
