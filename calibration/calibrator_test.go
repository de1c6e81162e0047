package calibration

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/classifier"
)

// sharp makes observations of a reader whose logits are k times too large.
func sharp(k float64, n int) []observation {
	var obs []observation
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		truth := (float64(i%97) + 0.5) / 97
		yes := rnd.Float64() < truth
		o := observation{fold: i % folds}
		o.p[classifier.Confirm] = sigmoid(k * logit(truth))
		o.p[classifier.Decline] = 1 - o.p[classifier.Confirm]
		o.class = classifier.Decline
		if yes {
			o.class = classifier.Confirm
		}
		obs = append(obs, o)
	}
	return obs
}

func TestCalibratorsUndoOverconfidence(t *testing.T) {
	obs := sharp(3, 4000)
	best, all, why := choose(obs)
	if len(all) != 4 || why == "" {
		t.Fatalf("%d kinds tried, why %q", len(all), why)
	}
	if all[0].ECE < 0.1 || best.ECE > 0.03 {
		t.Errorf("ECE %v before, %v after %s", all[0].ECE, best.ECE, best.Calibrator.Kind)
	}
	if c := all[1].Calibrator; math.Abs(c.T-3) > 0.3 {
		t.Errorf("T = %v, want about 3", c.T)
	}
	if c := all[2].Calibrator; math.Abs(c.A-1.0/3) > 0.05 {
		t.Errorf("A = %v, want about 1/3", c.A)
	}
}

func TestHonestReaderIsLeftAlone(t *testing.T) {
	best, _, why := choose(sharp(1, 4000))
	if best.Calibrator.Kind != None || !strings.Contains(why, "none") {
		t.Errorf("chose %s: %s", best.Calibrator.Kind, why)
	}
}

func TestApplyKeepsOrderAndSums(t *testing.T) {
	obs := sharp(2, 500)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		c := fit(kind, obs)
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		two := func(q float64) classifier.Reading {
			r := classifier.Reading{}
			r.P[classifier.Confirm], r.P[classifier.Modify] = q, 1-q
			return c.Apply(r)
		}
		a := rapid.Float64Range(0, 1).Draw(t, "a")
		b := rapid.Float64Range(a, 1).Draw(t, "b")
		x, y := two(a), two(b)
		if !x.Valid() || !y.Valid() {
			t.Fatalf("%+v %+v", x, y)
		}
		if x.P[classifier.Confirm] > y.P[classifier.Confirm]+1e-12 {
			t.Fatalf("%s: %v → %v but %v → %v", kind, a, x.P[classifier.Confirm], b, y.P[classifier.Confirm])
		}
	})
}

func TestTieIsNoConfirm(t *testing.T) {
	r := classifier.Reading{}
	r.P[classifier.Confirm], r.P[classifier.Decline] = 0.5, 0.5
	if got := (Calibrator{Kind: None}).Apply(r); got.Class != classifier.Decline {
		t.Errorf("a tie read as %v", got.Class)
	}
}

func TestZeroCalibratorNeverConfirms(t *testing.T) {
	r := classifier.Reading{Class: classifier.Confirm}
	r.P[classifier.Confirm] = 1
	if got := (Calibrator{}).Apply(r); got.Class == classifier.Confirm || got.P[classifier.Confirm] != 0 {
		t.Errorf("%+v", got)
	}
}
