package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/bench/internal/figures"
)

func sample() report {
	return report{
		Sides: []about{{"a", "pkg 1.2", "limit"}, {"limit", "", "limit"}},
		Rates: []rate{
			{Side: "a", Connections: 8, Repetition: 0, PerSecond: 50, P99: 4, Peaks: []int64{3 << 20, 1 << 20}},
			{Side: "a", Connections: 8, Repetition: 1, PerSecond: 30, P99: 8, Peaks: []int64{2 << 20, 5 << 20}, Errors: 1},
			{Side: "a", Connections: 1, Repetition: 0, PerSecond: 10, P99: 2},
			{Side: "limit", Connections: 8, Repetition: 0, PerSecond: 100},
			{Side: "limit", Connections: 8, Repetition: 1, PerSecond: 50},
			{Side: "limit", Connections: 1, Repetition: 0, PerSecond: 40},
		},
		Races: []race{{Side: "a", Runs: []int{1, 1}}, {Side: "a", OtherMessages: true, Runs: []int{1, 3}}},
		Kills: []killed{
			{Side: "a", At: afterYes, Restart: []int{1, 1}, Again: []int{1, 1}},
			{Side: "a", At: before, Restart: []int{0, 0}, Again: []int{0, 0}},
			{Side: "a", At: past, Restart: []int{1, 1}, Again: []int{2, 2}},
		},
	}
}

// Ratios are of the pairs of one repetition: 50 of 100 and 30 of 50, not 40 of 75.
func TestTable(t *testing.T) {
	got := markdown(rows(sample()))
	for _, want := range []string{
		"| | approvals/s at 1 / 8 |",
		"| a | 10 / 40 | 0.25 / 0.55 | 2 / 6 | 3 + 5 | 1 / 1 to 3 | 1 / 0 | 1 → 2 |",
		"| limit | 40 / 75 | 1.00 / 1.00 | 0 / 0 | – | – | – | – |",
		"\na: pkg 1.2", "\na: 1 approvals failed",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// What was measured in pieces keeps the ratios of its own piece.
func TestMerge(t *testing.T) {
	rated, raced := sample(), sample()
	rated.Races, rated.Kills = nil, nil
	raced.Rates = nil
	other := report{
		Sides: []about{{"b", "", "limit"}, {"limit", "", "limit"}},
		Rates: []rate{{Side: "b", Connections: 1, PerSecond: 5}, {Side: "limit", Connections: 1, PerSecond: 10}},
	}
	got := markdown(merge(merge(merge(nil, rows(rated)), rows(raced)), rows(other)))
	for _, want := range []string{"| a | 10 / 40 | 0.25 / 0.55 | 2 / 6 | 3 + 5 | 1 / 1 to 3 | 1 / 0 | 1 → 2 |", "| b | 5 | 0.50 |", "| limit | 40 / 75 |"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "actions")
	if err := os.WriteFile(file, []byte("x-1\nx-10\nx-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := count(file, []approval{{id: "x-1"}, {id: "x-2"}, {id: "x-10"}})
	if err != nil || len(got) != 3 || got[0] != 2 || got[1] != 0 || got[2] != 1 {
		t.Errorf("%v %v, want 2, 0 and 1", got, err)
	}
}

func TestApprovals(t *testing.T) {
	for _, c := range []struct {
		perSecond   float64
		connections int
		want        int
	}{{100, 1, 80}, {100, 8, 200}, {100, 32, 240}, {1, 8, 50}, {1e6, 8, 4000}} {
		if got := approvals(c.perSecond, c.connections, 2); got != c.want {
			t.Errorf("%v/s at %d: %d, want %d", c.perSecond, c.connections, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	d := []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	if figures.Percentile(d, 0.5) != 2 || figures.Percentile(d, 0.99) != 3 || figures.Percentile(nil, 0.5) != 0 {
		t.Errorf("%v %v", figures.Percentile(d, 0.5), figures.Percentile(d, 0.99))
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-parts", "all"}, {"-connections", "0"}, {"-what"}, {"-table", "/nowhere"}} {
		if command(t.Context(), args) == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
