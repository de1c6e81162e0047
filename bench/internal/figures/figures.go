// Package figures is what the benches share between their flags and their reports.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseConnections reads the flag -connections: numbers from 1, separated by commas.
func ParseConnections(flag string) ([]int, error) {
	var out []int
	for c := range strings.SplitSeq(flag, ",") {
		n, err := strconv.Atoi(c)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-connections: %q is no number of connections", c)
		}
		out = append(out, n)
	}
	return out, nil
}

// Percentile is the nearest-rank quantile q (0 to 1) of d in milliseconds; 0 of nothing. It leaves d as it is.
func Percentile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return float64(d[min(len(d)-1, int(q*float64(len(d))))]) / float64(time.Millisecond)
}

// Median is the middle of v, or the mean of the two in the middle; 0 of nothing. It leaves v as it is.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// WriteJSON writes a report for its owner to read, indented. An empty path writes nothing.
func WriteJSON(path string, report any) error {
	if path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}
