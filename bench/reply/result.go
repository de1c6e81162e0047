package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/countersign/countersign/bench/internal/figures"
)

// plan of one run.
type plan struct {
	connections int
	duration    time.Duration
	text        string // of every reply
	warm        int    // replies before anything is measured
}

// run is what one run came to. Times are from the sending of a request.
type run struct {
	Store       string  `json:"store"`
	Side        string  `json:"side"`
	Connections int     `json:"connections"`
	Repetition  int     `json:"repetition"`
	Requests    int     `json:"requests"`
	Errors      int     `json:"errors"`       // not answered 200
	NotConsumed int     `json:"not_consumed"` // answered 200 and never consumed
	Rate        float64 `json:"consumed_per_second"`
	P50         float64 `json:"p50_ms"` // to the commit of the consume
	P99         float64 `json:"p99_ms"`
	AckP50      float64 `json:"ack_p50_ms"` // to the answer
	AckP99      float64 `json:"ack_p99_ms"`
	Peak        int64   `json:"peak_rss_bytes"`
	CPU         float64 `json:"cpu_ms_per_confirm"`          // of the server and its database
	DatabaseCPU float64 `json:"database_cpu_ms_per_confirm"` // PostgreSQL's part of it
	Foreign     float64 `json:"foreign_cores"`               // used by whatever else ran on the machine
	Failure     string  `json:"failure,omitempty"`
}

// measure counts: consumed offers from the first request until the last commit, which took so many processor seconds
// of the server and, where there is one, of the database.
func (r *run) measure(samples []sample, committed []time.Time, cpu []float64) {
	var first, last time.Time
	var acks, waits []time.Duration
	for i, s := range samples {
		if first.IsZero() || s.sent.Before(first) {
			first = s.sent
		}
		if !s.ok {
			r.Errors++
			continue
		}
		acks = append(acks, s.answered.Sub(s.sent))
		if committed[i].IsZero() {
			r.NotConsumed++
			continue
		}
		// The server's log has the wall clock only, so the monotonic reading must not take part.
		waits = append(waits, committed[i].Round(0).Sub(s.sent.Round(0)))
		if committed[i].After(last) {
			last = committed[i]
		}
	}
	r.Requests = len(samples)
	if len(waits) > 0 {
		r.Rate = float64(len(waits)) / last.Round(0).Sub(first.Round(0)).Seconds()
		for i, c := range cpu {
			ms := 1000 * c / float64(len(waits))
			r.CPU += ms
			if i > 0 {
				r.DatabaseCPU += ms
			}
		}
	}
	r.P50, r.P99 = figures.Percentile(waits, 0.5), figures.Percentile(waits, 0.99)
	r.AckP50, r.AckP99 = figures.Percentile(acks, 0.5), figures.Percentile(acks, 0.99)
}

// line compares both sides at one number of connections. Ratios are medians over the repetitions, each of two runs
// that followed one another.
type line struct {
	Store       string  `json:"store"`
	Connections int     `json:"connections"`
	Limit       float64 `json:"limit_per_second"`
	Ours        float64 `json:"ours_per_second"`
	Ratio       float64 `json:"ratio"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	P50Ratio    float64 `json:"p50_ratio"`
	P99Ratio    float64 `json:"p99_ratio"`
	AckP50      float64 `json:"ack_p50_ms"`
	LimitCPU    float64 `json:"limit_cpu_ms_per_confirm"`
	CPU         float64 `json:"cpu_ms_per_confirm"`
	Peak        int64   `json:"peak_rss_bytes"`
	Errors      int     `json:"errors"`
	NotConsumed int     `json:"not_consumed"`
	Foreign     float64 `json:"foreign_cores"`
}

func compare(runs []run) []line {
	type key struct {
		store       string
		connections int
	}
	var keys []key
	by := map[key]map[string]map[int]run{}
	for _, r := range runs {
		k := key{r.Store, r.Connections}
		if by[k] == nil {
			keys = append(keys, k)
			by[k] = map[string]map[int]run{limitName: {}, oursName: {}}
		}
		by[k][r.Side][r.Repetition] = r
	}
	var out []line
	for _, k := range keys {
		l := line{Store: k.store, Connections: k.connections}
		var limits, ours, ratios, lcpu, cpu, p50, p99, p50r, p99r, ack, foreign []float64
		for _, r := range by[k][limitName] {
			limits, lcpu = append(limits, r.Rate), append(lcpu, r.CPU)
			l.Errors, l.NotConsumed = l.Errors+r.Errors, l.NotConsumed+r.NotConsumed
		}
		for rep, r := range by[k][oursName] {
			ours, p50, p99, ack, foreign = append(ours, r.Rate), append(p50, r.P50), append(p99, r.P99), append(ack, r.AckP50), append(foreign, r.Foreign)
			cpu = append(cpu, r.CPU)
			l.Errors, l.NotConsumed, l.Peak = l.Errors+r.Errors, l.NotConsumed+r.NotConsumed, max(l.Peak, r.Peak)
			if o, ok := by[k][limitName][rep]; ok && o.Rate > 0 {
				ratios, p50r, p99r = append(ratios, r.Rate/o.Rate), append(p50r, r.P50/o.P50), append(p99r, r.P99/o.P99)
			}
		}
		l.Limit, l.Ours, l.Ratio = figures.Median(limits), figures.Median(ours), figures.Median(ratios)
		l.P50, l.P99, l.P50Ratio, l.P99Ratio, l.AckP50, l.Foreign = figures.Median(p50), figures.Median(p99), figures.Median(p50r), figures.Median(p99r), figures.Median(ack), figures.Median(foreign)
		l.LimitCPU, l.CPU = figures.Median(lcpu), figures.Median(cpu)
		out = append(out, l)
	}
	return out
}

func printLines(w io.Writer, lines []line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "store\tconnections\tlimit/s\tours/s\tratio\tp50 ms\tp50 ratio\tp99 ms\tp99 ratio\tack p50 ms\tlimit CPU ms\tCPU ms\tpeak MiB\terrors\tnot consumed\tforeign cores\t")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%d\t%d\t%.2f\t\n", l.Store, l.Connections, l.Limit, l.Ours, l.Ratio,
			l.P50, l.P50Ratio, l.P99, l.P99Ratio, l.AckP50, l.LimitCPU, l.CPU, float64(l.Peak)/(1<<20), l.Errors, l.NotConsumed, l.Foreign)
	}
	return t.Flush()
}
