package calibration

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/countersign/countersign/classifier"
)

// Kinds of calibrators, from the simplest.
const (
	None        = "none"        // p as the reader said it
	Temperature = "temperature" // all logits divided by T
	Platt       = "platt"       // logit of p(confirm) to A·x + B
	Isotonic    = "isotonic"    // p(confirm) by a non-decreasing step function
)

var kinds = []string{None, Temperature, Platt, Isotonic}

// ErrCalibrator says that a calibrator's parameters make no sense.
var ErrCalibrator = errors.New("calibration: calibrator is not usable")

// Calibrator corrects a reader's probabilities. The zero value is unusable;
// [Calibrator.Apply] with it never leaves a confirm that code would act on.
type Calibrator struct {
	Kind string  `json:"kind"`
	T    float64 `json:"t,omitempty"`
	A    float64 `json:"a,omitempty"`
	B    float64 `json:"b,omitempty"`
	// X are the upper ends of steps in raw p(confirm), ascending; Y what each means.
	X []float64 `json:"x,omitempty"`
	Y []float64 `json:"y,omitempty"`
}

// Check fails with [ErrCalibrator] on parameters that are missing, not
// numbers, or make a less sure reading surer than a surer one.
func (c Calibrator) Check() error {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch c.Kind {
	case None:
		return nil
	case Temperature:
		if finite(c.T) && c.T > 0 {
			return nil
		}
	case Platt:
		if finite(c.A) && finite(c.B) && c.A > 0 {
			return nil
		}
	case Isotonic:
		ok := len(c.X) > 0 && len(c.X) == len(c.Y) && sort.Float64sAreSorted(c.X) && sort.Float64sAreSorted(c.Y)
		for i := range c.X {
			ok = ok && i < len(c.Y) && finite(c.X[i]) && c.Y[i] >= 0 && c.Y[i] <= 1
		}
		if ok {
			return nil
		}
	}
	return fmt.Errorf("%w: %q", ErrCalibrator, c.Kind)
}

// eps keeps logits finite.
const eps = 1e-7

func logit(p float64) float64 {
	p = math.Min(1-eps, math.Max(eps, p))
	return math.Log(p / (1 - p))
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Apply gives the corrected reading: probabilities that sum to 1 and the most
// probable class, where a tie never goes to confirm.
func (c Calibrator) Apply(r classifier.Reading) classifier.Reading {
	switch c.Kind {
	case None:
	case Temperature:
		var z [classifier.Classes]float64
		top := math.Inf(-1)
		for k, p := range r.P {
			z[k] = math.Log(math.Max(p, 1e-12)) / c.T
			top = math.Max(top, z[k])
		}
		sum := 0.0
		for k := range z {
			z[k] = math.Exp(z[k] - top)
			sum += z[k]
		}
		for k := range z {
			r.P[k] = z[k] / sum
		}
	default:
		r.P = withConfirm(r.P, c.confirm(r.P[classifier.Confirm]))
	}
	r.Class = classifier.Unclear
	for k, p := range r.P {
		if p > r.P[r.Class] && classifier.Class(k) != classifier.Confirm {
			r.Class = classifier.Class(k)
		}
	}
	if r.P[classifier.Confirm] > r.P[r.Class] {
		r.Class = classifier.Confirm
	}
	return r
}

func (c Calibrator) confirm(p float64) float64 {
	switch c.Kind {
	case Platt:
		return sigmoid(c.A*logit(p) + c.B)
	case Isotonic:
		if len(c.X) == 0 || len(c.Y) != len(c.X) {
			return 0
		}
		i := sort.SearchFloat64s(c.X, p)
		return c.Y[min(i, len(c.Y)-1)]
	}
	return 0 // unknown kind: nothing is sure
}

// withConfirm sets p(confirm) and scales the others to the rest.
func withConfirm(p [classifier.Classes]float64, q float64) [classifier.Classes]float64 {
	rest := 0.0
	for k := range p {
		if classifier.Class(k) != classifier.Confirm {
			rest += p[k]
		}
	}
	for k := range p {
		switch {
		case classifier.Class(k) == classifier.Confirm:
			p[k] = q
		case rest > 0:
			p[k] *= (1 - q) / rest
		case classifier.Class(k) == classifier.Unclear:
			p[k] = 1 - q
		}
	}
	return p
}

// observation is a raw distribution with the truth.
type observation struct {
	p     [classifier.Classes]float64
	class classifier.Class
	fold  int
}

func (o observation) yes() float64 {
	if o.class == classifier.Confirm {
		return 1
	}
	return 0
}

// fit finds the parameters of one kind. It is deterministic.
func fit(kind string, obs []observation) Calibrator {
	c := Calibrator{Kind: kind}
	switch kind {
	case Temperature:
		// Golden-section search of the log loss over all five classes in ln T.
		loss := func(lt float64) float64 {
			c := Calibrator{Kind: Temperature, T: math.Exp(lt)}
			sum := 0.0
			for _, o := range obs {
				sum -= math.Log(math.Max(eps, c.Apply(classifier.Reading{P: o.p}).P[o.class]))
			}
			return sum
		}
		lo, hi := math.Log(0.2), math.Log(10)
		g := (math.Sqrt(5) - 1) / 2
		a, b := hi-g*(hi-lo), lo+g*(hi-lo)
		fa, fb := loss(a), loss(b)
		for range 40 {
			if fa < fb {
				hi, b, fb = b, a, fa
				a = hi - g*(hi-lo)
				fa = loss(a)
			} else {
				lo, a, fa = a, b, fb
				b = lo + g*(hi-lo)
				fb = loss(b)
			}
		}
		c.T = round(math.Exp((lo+hi)/2), 6)
	case Platt:
		c.A, c.B = fitPlatt(obs)
	case Isotonic:
		c.X, c.Y = fitIsotonic(obs)
	}
	return c
}

// fitPlatt is Newton's method on the logistic loss with Platt's smoothed
// targets and a little ridge that pulls towards the identity.
func fitPlatt(obs []observation) (a, b float64) {
	pos, neg := 0.0, 0.0
	for _, o := range obs {
		pos += o.yes()
		neg += 1 - o.yes()
	}
	hi, lo := (pos+1)/(pos+2), 1/(neg+2)
	a, b = 1, 0
	const ridge = 1e-3
	for range 60 {
		ga, gb := ridge*(a-1), ridge*b
		haa, hab, hbb := ridge, 0.0, ridge
		for _, o := range obs {
			x := logit(o.p[classifier.Confirm])
			t := lo
			if o.class == classifier.Confirm {
				t = hi
			}
			p := sigmoid(a*x + b)
			d, w := p-t, math.Max(p*(1-p), 1e-9)
			ga += d * x
			gb += d
			haa += w * x * x
			hab += w * x
			hbb += w
		}
		det := haa*hbb - hab*hab
		if math.Abs(det) < 1e-12 {
			break
		}
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		// Damped, so that separable data does not run away.
		s := math.Min(1, 1/math.Max(math.Abs(da), math.Abs(db)))
		a, b = a-s*da, b-s*db
		if math.Abs(da)+math.Abs(db) < 1e-9 {
			break
		}
	}
	if !(a > 0.05) {
		a = 0.05
	}
	return round(a, 6), round(b, 6)
}

// fitIsotonic pools adjacent violators; each block's share is pulled a little
// inwards, since a block of n yeses does not show certainty.
func fitIsotonic(obs []observation) (xs, ys []float64) {
	type block struct{ yes, n, hi float64 }
	sorted := slices.Clone(obs)
	slices.SortStableFunc(sorted, func(a, b observation) int {
		switch x, y := a.p[classifier.Confirm], b.p[classifier.Confirm]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	var blocks []block
	for _, o := range sorted {
		p := o.p[classifier.Confirm]
		if n := len(blocks); n > 0 && blocks[n-1].hi == p {
			blocks[n-1].yes += o.yes()
			blocks[n-1].n++
		} else {
			blocks = append(blocks, block{o.yes(), 1, p})
		}
		for n := len(blocks); n > 1 && blocks[n-2].yes*blocks[n-1].n >= blocks[n-1].yes*blocks[n-2].n; n = len(blocks) {
			blocks[n-2].yes += blocks[n-1].yes
			blocks[n-2].n += blocks[n-1].n
			blocks[n-2].hi = blocks[n-1].hi
			blocks = blocks[:n-1]
		}
	}
	last := 0.0
	for _, b := range blocks {
		y := round((b.yes+0.5)/(b.n+1), 6)
		last = math.Max(last, y)
		xs, ys = append(xs, round(b.hi, 9)), append(ys, last)
	}
	return xs, ys
}

func round(v float64, digits int) float64 {
	s := math.Pow10(digits)
	return math.Round(v*s) / s
}

// Fitted is what cross-validation found of one kind.
type Fitted struct {
	Calibrator Calibrator `json:"calibrator"` // fitted on all rows
	LogLoss    float64    `json:"log_loss"`   // of p(confirm), on rows it was not fitted on
	StdErr     float64    `json:"std_err"`    // of the log loss
	Brier      float64    `json:"brier"`
	ECE        float64    `json:"ece"`
}

const folds = 5

// choose fits every kind, scores each on held-out folds, and takes the best
// log loss; a simpler kind within half a standard error of the difference wins.
func choose(obs []observation) (best Fitted, all []Fitted, why string) {
	losses := make([][]float64, len(kinds))
	for i, kind := range kinds {
		var ps, ys []float64
		losses[i] = make([]float64, 0, len(obs))
		for f := range folds {
			var train, held []observation
			for _, o := range obs {
				if o.fold == f {
					held = append(held, o)
				} else {
					train = append(train, o)
				}
			}
			c := fit(kind, train)
			for _, o := range held {
				p := c.Apply(classifier.Reading{P: o.p}).P[classifier.Confirm]
				ps, ys = append(ps, p), append(ys, o.yes())
				losses[i] = append(losses[i], logLoss(p, o.yes()))
			}
		}
		m, se := meanErr(losses[i])
		bins := reliability(ps, ys)
		all = append(all, Fitted{Calibrator: fit(kind, obs), LogLoss: round(m, 6), StdErr: round(se, 6),
			Brier: round(brier(ps, ys), 6), ECE: round(ece(bins, len(ps)), 6)})
	}
	least := 0
	for i := range all {
		if all[i].LogLoss < all[least].LogLoss {
			least = i
		}
	}
	for i := range all {
		diff := make([]float64, len(losses[i]))
		for j := range diff {
			diff[j] = losses[i][j] - losses[least][j]
		}
		m, se := meanErr(diff)
		if i == least {
			why = fmt.Sprintf("%s: lowest held-out log loss of p(confirm) over %d folds, %.4f", kinds[i], folds, all[i].LogLoss)
			return all[i], all, why
		}
		if m <= se/2 {
			why = fmt.Sprintf("%s: held-out log loss %.4f is within half a standard error of the best (%s, %.4f), and it is simpler",
				kinds[i], all[i].LogLoss, kinds[least], all[least].LogLoss)
			return all[i], all, why
		}
	}
	return all[least], all, why
}

func meanErr(v []float64) (mean, stderr float64) {
	if len(v) == 0 {
		return 0, 0
	}
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		stderr += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(stderr) / float64(len(v))
}

func logLoss(p, y float64) float64 {
	p = math.Min(1-1e-6, math.Max(1e-6, p))
	return -y*math.Log(p) - (1-y)*math.Log(1-p)
}

func brier(ps, ys []float64) float64 {
	sum := 0.0
	for i := range ps {
		sum += (ps[i] - ys[i]) * (ps[i] - ys[i])
	}
	return sum / math.Max(1, float64(len(ps)))
}

// Bin is one tenth of the reliability diagram of p(confirm).
type Bin struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"n"`
	Mean float64 `json:"mean"` // mean p in the bin
	Yes  int     `json:"yes"`  // real yeses in the bin
}

const binCount = 10

func reliability(ps, ys []float64) []Bin {
	bins := make([]Bin, binCount)
	for i := range bins {
		bins[i].Low, bins[i].High = float64(i)/binCount, float64(i+1)/binCount
	}
	for i, p := range ps {
		b := &bins[min(binCount-1, int(p*binCount))]
		b.N++
		b.Mean += p
		b.Yes += int(ys[i])
	}
	for i := range bins {
		if bins[i].N > 0 {
			bins[i].Mean = round(bins[i].Mean/float64(bins[i].N), 9)
		}
	}
	return bins
}

// ece is the expected calibration error: how far, on average over rows, a
// bin's mean p is from its share of yeses.
func ece(bins []Bin, n int) float64 {
	sum := 0.0
	for _, b := range bins {
		if b.N > 0 {
			sum += math.Abs(b.Mean*float64(b.N) - float64(b.Yes))
		}
	}
	return sum / math.Max(1, float64(n))
}
