package figures_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/bench/internal/figures"
)

func TestParseConnections(t *testing.T) {
	got, err := figures.ParseConnections("1,8,32")
	if err != nil || !slices.Equal(got, []int{1, 8, 32}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"", "0", "-1", "8,", "many"} {
		if got, err := figures.ParseConnections(wrong); err == nil {
			t.Errorf("%q is %v", wrong, got)
		}
	}
}

func TestMedianAndPercentile(t *testing.T) {
	v := []float64{3, 1, 2, 10}
	if got := figures.Median(v); got != 2.5 || v[0] != 3 {
		t.Errorf("the median of four is %v, and the first of them %v", got, v[0])
	}
	if got := figures.Median(v[:3]); got != 2 {
		t.Errorf("the median of three is %v", got)
	}
	d := []time.Duration{4 * time.Millisecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := figures.Percentile(d, q); got != want {
			t.Errorf("quantile %v is %v ms, want %v", q, got, want)
		}
	}
	if figures.Median(nil) != 0 || figures.Percentile(nil, 0.5) != 0 {
		t.Error("nothing has a median or a percentile")
	}
}

func TestWriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	if err := figures.WriteJSON(path, map[string]int{"runs": 3}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != "{\n  \"runs\": 3\n}\n" {
		t.Errorf("%q, %v", raw, err)
	}
	if err := figures.WriteJSON("", nil); err != nil {
		t.Errorf("without a path: %v", err)
	}
}
