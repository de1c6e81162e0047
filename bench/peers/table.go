package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/bench/internal/figures"
)

// report is what -json writes.
type report struct {
	Sides []about  `json:"sides"`
	Rates []rate   `json:"rates,omitempty"`
	Races []race   `json:"races,omitempty"`
	Kills []killed `json:"kills,omitempty"`
}

// about says what a side is.
type about struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Limit   string `json:"limit"` // the name of the limit that it is held against
}

// rate is one run of part rate.
type rate struct {
	Side        string  `json:"side"`
	Connections int     `json:"connections"`
	Repetition  int     `json:"repetition"`
	Approvals   int     `json:"approvals"`
	Errors      int     `json:"errors"`
	FirstError  string  `json:"first_error,omitempty"`
	PerSecond   float64 `json:"per_second"` // until everything had finished
	P50         float64 `json:"p50_ms"`     // from the decision to the action
	P99         float64 `json:"p99_ms"`
	Peaks       []int64 `json:"peak_rss_bytes"` // of each process, the database left out
	Foreign     float64 `json:"foreign_cores"`
}

// race tells how often each of some actions ran whose decision was posted many times at once.
type race struct {
	Side          string `json:"side"`
	OtherMessages bool   `json:"other_messages"` // as many yeses of one person instead of one yes
	Runs          []int  `json:"runs"`
	Errors        int    `json:"errors"` // posts that were not answered 200 to 299
}

// killed tells how often each of some actions ran that a kill lay beside.
type killed struct {
	Side    string `json:"side"`
	At      moment `json:"at"`
	Restart []int  `json:"runs_after_restart"`
	Again   []int  `json:"runs_after_the_same_decision"`
}

// row is one side in the table.
type row struct {
	about
	connections []int
	perSecond   []float64 // by connections, medians of the repetitions
	ratio       []float64 // to the limit, the median of pairs; 0 without one
	p99         []float64
	peaks       []int64 // of each process, the largest
	errors      int
	races       []race
	kills       []killed
}

// rows makes one of each side, in the report's order.
func rows(r report) []row {
	var out []row
	for _, a := range r.Sides {
		w := row{about: a}
		for _, c := range connectionsOf(r) {
			var perSecond, ratio, p99 []float64
			for _, x := range r.Rates {
				if x.Side != a.Name || x.Connections != c {
					continue
				}
				perSecond, p99 = append(perSecond, x.PerSecond), append(p99, x.P99)
				w.peaks, w.errors = larger(w.peaks, x.Peaks), w.errors+x.Errors
				for _, l := range r.Rates {
					if l.Side == a.Limit && l.Connections == c && l.Repetition == x.Repetition && l.PerSecond > 0 {
						ratio = append(ratio, x.PerSecond/l.PerSecond)
					}
				}
			}
			if len(perSecond) > 0 {
				w.connections = append(w.connections, c)
				w.perSecond, w.ratio, w.p99 = append(w.perSecond, figures.Median(perSecond)), append(w.ratio, figures.Median(ratio)), append(w.p99, figures.Median(p99))
			}
		}
		for _, x := range r.Races {
			if x.Side == a.Name {
				w.races = append(w.races, x)
			}
		}
		for _, x := range r.Kills {
			if x.Side == a.Name {
				w.kills = append(w.kills, x)
			}
		}
		out = append(out, w)
	}
	return out
}

// larger takes the larger of both, one by one.
func larger(a, b []int64) []int64 {
	out := slices.Clone(b)
	for i := range min(len(a), len(out)) {
		out[i] = max(a[i], out[i])
	}
	return out
}

func connectionsOf(r report) []int {
	var out []int
	for _, x := range r.Rates {
		if !slices.Contains(out, x.Connections) {
			out = append(out, x.Connections)
		}
	}
	slices.Sort(out)
	return out
}

// merge adds what later rows know and earlier ones of the same name do not: a part that was measured twice counts as it
// was measured first, since each has its own limit.
func merge(to, from []row) []row {
	for _, f := range from {
		i := slices.IndexFunc(to, func(t row) bool { return t.Name == f.Name })
		if i < 0 {
			to = append(to, f)
			continue
		}
		t := &to[i]
		if len(t.perSecond) == 0 {
			t.connections, t.perSecond, t.ratio, t.p99, t.peaks, t.errors = f.connections, f.perSecond, f.ratio, f.p99, f.peaks, f.errors
		}
		if len(t.races) == 0 {
			t.races = f.races
		}
		if len(t.kills) == 0 {
			t.kills = f.kills
		}
	}
	return to
}

const none = "–"

// markdown is the table, with what the sides are below it.
func markdown(all []row) string {
	var b strings.Builder
	header := none
	for _, r := range all {
		if len(r.connections) > 0 {
			header = each(r.connections, func(c int) string { return fmt.Sprint(c) })
		}
	}
	fmt.Fprintf(&b, "| | approvals/s at %s | of the limit | p99, ms | MiB | runs of a yes posted 50× | SIGKILL just before | just past |\n|---|---|---|---|---|---|---|---|\n", header)
	for _, r := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Name,
			each(r.perSecond, func(v float64) string { return fmt.Sprintf("%.0f", v) }),
			each(r.ratio, func(v float64) string { return fmt.Sprintf("%.2f", v) }),
			each(r.p99, func(v float64) string { return fmt.Sprintf("%.0f", v) }),
			mebibytes(r.peaks), raced(r.races), died(r.kills, afterYes, before), died(r.kills, past))
	}
	for _, r := range all {
		if r.Version != "" {
			fmt.Fprintf(&b, "\n%s: %s", r.Name, r.Version)
		}
		if r.errors > 0 {
			fmt.Fprintf(&b, "\n%s: %d approvals failed", r.Name, r.errors)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func each[T any](v []T, text func(T) string) string {
	if len(v) == 0 {
		return none
	}
	out := make([]string, len(v))
	for i, x := range v {
		out[i] = text(x)
	}
	return strings.Join(out, " / ")
}

// mebibytes of each process.
func mebibytes(peaks []int64) string {
	return strings.ReplaceAll(each(peaks, func(v int64) string { return fmt.Sprint((v + 1<<19) >> 20) }), " / ", " + ")
}

// raced tells the runs of one message, then those of as many messages.
func raced(races []race) string {
	return each(races, func(r race) string { return span(r.Runs) })
}

// died tells the runs at some moments: with the restart alone, and with the decision posted again where that differs.
func died(kills []killed, at ...moment) string {
	var out []string
	for _, k := range kills {
		if !slices.Contains(at, k.At) {
			continue
		}
		s := span(k.Restart)
		if again := span(k.Again); again != s {
			s += " → " + again
		}
		out = append(out, s)
	}
	return each(out, func(s string) string { return s })
}

// span of some numbers: one, or the smallest and the largest.
func span(v []int) string {
	switch {
	case len(v) == 0:
		return none
	case slices.Min(v) == slices.Max(v):
		return fmt.Sprint(v[0])
	}
	return fmt.Sprintf("%d to %d", slices.Min(v), slices.Max(v))
}
