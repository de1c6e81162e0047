package calibration

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence of every bound, one-sided.
const Confidence = 0.95

const alpha = 1 - Confidence

// LowerBound is the one-sided 95 % Clopper–Pearson lower bound of a share of
// which right of n were seen. 0 of n, n of 0 and nonsense give 0.
func LowerBound(right, n int) float64 {
	switch {
	case right <= 0 || n <= 0 || right > n:
		return 0
	case right == n:
		return math.Pow(alpha, 1/float64(n))
	}
	return distuv.Beta{Alpha: float64(right), Beta: float64(n-right) + 1}.Quantile(alpha)
}

// NeededRight is how many right answers of as many show target: the least n
// with 0.05^(1/n) ≥ target. 299 for 0.99. It is 0 for a target that needs
// none and [math.MaxInt] for one that no count can show.
func NeededRight(target float64) int {
	switch {
	case !(target > 0):
		return 0
	case target >= 1:
		return math.MaxInt
	}
	n := int(math.Log(alpha) / math.Log(target))
	n = max(n-1, 1)
	for LowerBound(n, n) < target {
		n++
	}
	return n
}

// Count is a share with what it is of: "70 of 70, at least 0.958".
type Count struct {
	Right int     `json:"right"`
	Of    int     `json:"of"`
	Lower float64 `json:"lower"` // one-sided 95 % Clopper–Pearson
}

// NewCount fills in the bound.
func NewCount(right, of int) Count { return Count{right, of, LowerBound(right, of)} }

// Share is right/of; 0 of none.
func (c Count) Share() float64 {
	if c.Of == 0 {
		return 0
	}
	return float64(c.Right) / float64(c.Of)
}

// mcnemar is the exact two-sided test that b and c come from a fair coin.
func mcnemar(b, c int) float64 {
	n := b + c
	if n == 0 {
		return 1
	}
	p := 2 * distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(min(b, c)))
	return math.Min(1, p)
}
