package main

import (
	"testing"
	"time"
)

// The rate counts commits from the first request to the last commit; an answer without a commit is no consume.
func TestMeasure(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	samples := []sample{
		{sent: at(1000), answered: at(1002), ok: true},
		{sent: at(1001), answered: at(1003), ok: true},
		{sent: at(1002), answered: at(1004), ok: true}, // acknowledged, never consumed
		{sent: at(1003), answered: at(1005)},           // refused
	}
	var r run
	r.measure(samples, []time.Time{at(1500), at(2000), {}, {}}, []float64{0.5, 1.5})
	want := run{
		Requests: 4, Errors: 1, NotConsumed: 1, Rate: 2, P50: 999, P99: 999, AckP50: 2, AckP99: 2, CPU: 1000, DatabaseCPU: 750,
	}
	if r != want {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
}

// Ratios are of runs that followed one another, not of medians of different moments.
func TestCompare(t *testing.T) {
	lines := compare([]run{
		{Store: onPG, Side: limitName, Connections: 8, Repetition: 0, Rate: 1000, P50: 1, P99: 2},
		{Store: onPG, Side: oursName, Connections: 8, Repetition: 0, Rate: 600, P50: 2, P99: 3, Peak: 5},
		{Store: onPG, Side: limitName, Connections: 8, Repetition: 1, Rate: 100, P50: 10, P99: 20, Errors: 1},
		{Store: onPG, Side: oursName, Connections: 8, Repetition: 1, Rate: 80, P50: 15, P99: 20, Peak: 4, NotConsumed: 2},
	})
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	l := lines[0]
	if l.Ratio != 0.7 || l.P50Ratio != 1.75 || l.P99Ratio != 1.25 || l.Peak != 5 || l.Errors != 1 || l.NotConsumed != 2 || l.Limit != 550 {
		t.Errorf("got %+v", l)
	}
}

// The log's line of a repeated decision is not another consume.
func TestApproved(t *testing.T) {
	for line, want := range map[string]bool{
		`{"level":"INFO","msg":"approved","message_id":"m","repeat":false}`:            true,
		`{"level":"INFO","msg":"approved","message_id":"m","repeat":true}`:             false,
		`{"level":"WARN","msg":"message not decided","message_id":"m","repeat":false}`: false,
	} {
		if got := approved([]byte(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
