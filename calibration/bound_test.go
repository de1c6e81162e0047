package calibration

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func TestLowerBound(t *testing.T) {
	for _, c := range []struct {
		right, of int
		want      float64
	}{
		{0, 0, 0}, {0, 10, 0}, {11, 10, 0}, {-1, 5, 0},
		{70, 70, 0.95811},   // all of seventy right is no proof of 0.96
		{299, 299, 0.99003}, // the least that shows 0.99
		{298, 299, 0.98423},
		{600, 600, 0.99502},
		{9, 10, 0.60584},
		{1, 2, 0.02532},
	} {
		if got := LowerBound(c.right, c.of); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("LowerBound(%d, %d) = %.5f, want %.5f", c.right, c.of, got, c.want)
		}
	}
}

// The bound is the p at which seeing so many or more has a chance of 5 %.
func TestLowerBoundIsClopperPearson(t *testing.T) {
	for n := 1; n < 400; n += 7 {
		for right := 1; right <= n; right += 1 + n/9 {
			p := LowerBound(right, n)
			tail := 1 - distuv.Binomial{N: float64(n), P: p}.CDF(float64(right-1))
			if math.Abs(tail-0.05) > 1e-6 {
				t.Fatalf("%d of %d: bound %.6f has tail %.6f", right, n, p, tail)
			}
		}
	}
}

func TestNeededRight(t *testing.T) {
	for target, want := range map[float64]int{0.99: 299, 0.995: 598, 0.95: 59, 0.9: 29, 0.5: 5, 0: 0, 1: math.MaxInt} {
		if got := NeededRight(target); got != want {
			t.Errorf("NeededRight(%v) = %d, want %d", target, got, want)
		}
	}
	for _, target := range []float64{0.9, 0.97, 0.99, 0.999} {
		n := NeededRight(target)
		if LowerBound(n, n) < target || LowerBound(n-1, n-1) >= target {
			t.Errorf("NeededRight(%v) = %d is not the least", target, n)
		}
	}
}

func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		b, c int
		want float64
	}{{0, 0, 1}, {5, 5, 1}, {0, 5, 0.0625}, {0, 10, 2.0 / 1024}, {1, 9, 22.0 / 1024}} {
		if got := mcnemar(c.b, c.c); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("mcnemar(%d, %d) = %v, want %v", c.b, c.c, got, c.want)
		}
	}
}
