package calibration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/countersign/countersign/classifier"
)

// Languages says whether a reply may be acted on by a reader that has shown
// its bound in the blessed languages alone. The local reader implements it.
type Languages interface {
	Within(in classifier.Input, blessed []string) bool
}

// Options of [Evaluate] and [Run].
type Options struct {
	TargetPrecision float64 // of confirms acted on; 0 means 0.99
	LanguageTarget  float64 // the same for one language's slice; 0 means 0.95

	// Calibration, if set, is applied as a server would apply it, and nothing
	// is fitted: this is how a test part is measured.
	Calibration *File
	// Languages says, with Calibration, which replies are in a blessed language.
	Languages Languages

	// Collect options, for [Run].
	Collect CollectOptions
	// OmitTimes leaves latency and cost out, for results that repeat byte for byte.
	OmitTimes bool
	// OmitTexts leaves the texts of replies out of the lists.
	OmitTexts bool
}

// Errors of a set that cannot bless a reader.
var (
	// ErrTooFew says that even without a mistake the set could not show the
	// target; the message says how many right confirms are needed.
	ErrTooFew = errors.New("calibration: too few right confirms to show the target")
	// ErrNotShown says that there were mistakes, and no threshold shows the target.
	ErrNotShown = errors.New("calibration: the target precision is not shown at any threshold")
)

// ClassFigures are precision and recall of one class, after guards.
type ClassFigures struct {
	Class     classifier.Class `json:"class"`
	Precision Count            `json:"precision"`
	Recall    Count            `json:"recall"`
}

// Point is one threshold of the sweep.
type Point struct {
	Threshold float64 `json:"threshold"`
	Precision Count   `json:"precision"` // of the confirms acted on
	Recall    Count   `json:"recall"`    // of the real yeses
}

// Slice is one language, one tag or one guard.
type Slice struct {
	Name      string `json:"name"`
	Rows      int    `json:"rows"`
	Precision Count  `json:"precision"` // of the confirms acted on
	Recall    Count  `json:"recall"`    // of the real yeses
	Blessed   bool   `json:"blessed,omitempty"`
}

// Case is one row that went wrong.
type Case struct {
	ID     string           `json:"id,omitempty"`
	Key    string           `json:"key"`
	Text   string           `json:"text,omitempty"`
	Offers []string         `json:"offers,omitempty"`
	Label  classifier.Class `json:"label"`
	P      float64          `json:"p"` // of confirm, calibrated, before guards
	Lang   string           `json:"lang,omitempty"`
	Tags   []string         `json:"tags,omitempty"`
	Guards []string         `json:"guards,omitempty"`
}

// Outcome is what became of one row; two runs are compared by it.
type Outcome struct {
	Key   string           `json:"key"`
	Label classifier.Class `json:"label"`
	Class classifier.Class `json:"class"` // after guards
	P     float64          `json:"p"`     // of confirm, after guards
	Acted bool             `json:"acted"`
	OK    bool             `json:"ok"` // the class is a right one
}

// Times are measured, so they differ from run to run.
type Times struct {
	N          int     `json:"n"`
	MedianUS   float64 `json:"median_us"`
	P99US      float64 `json:"p99_us"`
	MaxUS      float64 `json:"max_us"`
	TotalCost  float64 `json:"total_cost,omitempty"`
	CostPerRow float64 `json:"cost_per_row,omitempty"`
}

// Result is everything that a labelled set shows of a reader.
type Result struct {
	// Wrong confirms at or above [classifier.ActThreshold] come first: they
	// are what the product exists to prevent.
	Wrong []Case `json:"wrong_confirms"`

	Fingerprint string  `json:"fingerprint"`
	Data        Data    `json:"data"`
	Target      float64 `json:"target_precision"`
	LangTarget  float64 `json:"language_target"`
	Refused     string  `json:"refused,omitempty"` // why the set blesses nothing
	refusal     error

	Threshold float64 `json:"threshold"`
	Precision Count   `json:"precision"` // of the confirms acted on at the threshold
	Recall    Count   `json:"recall"`    // of the real yeses
	Stopped   Count   `json:"stopped"`   // of the rows that are no yes, not acted on

	Choice    Calibrator `json:"calibrator"`
	Why       string     `json:"why"`
	Fitted    []Fitted   `json:"fitted,omitempty"`
	Languages []string   `json:"languages"` // blessed

	ECE       float64 `json:"ece"`        // of p(confirm), calibrated, before guards
	ECERaw    float64 `json:"ece_raw"`    // of p(confirm) as the reader said it
	ECEGuards float64 `json:"ece_guards"` // of p(confirm) after guards, which only lower
	Brier     float64 `json:"brier"`
	LogLoss   float64 `json:"log_loss"`
	Bins      []Bin   `json:"reliability"`
	BinsRaw   []Bin   `json:"reliability_raw"`

	Classes   []ClassFigures                              `json:"classes"`
	Confusion [classifier.Classes][classifier.Classes]int `json:"confusion"` // [label][reading after guards]
	Sweep     []Point                                     `json:"sweep"`
	PR        []Point                                     `json:"precision_recall"`

	ByLanguage []Slice `json:"by_language"`
	ByTag      []Slice `json:"by_tag"`
	HeldBy     []Slice `json:"held_by_guard"` // Rows: how often it objected; Recall: yeses it held
	Missed     []Case  `json:"missed"`        // real yeses that fell through
	Failed     int     `json:"failed"`        // rows without a reading

	Outcomes []Outcome `json:"outcomes"`
	Times    *Times    `json:"times,omitempty"`
}

// Data names a labelled set.
type Data struct {
	SHA256 string `json:"sha256"`
	Rows   int    `json:"rows"`
	Yes    int    `json:"yes"`
}

// Run collects the reader's answers and evaluates them.
func Run(ctx context.Context, reader classifier.Reader, rows []Row, o Options) (Result, error) {
	answers, err := Collect(ctx, reader, rows, o.Collect)
	if err != nil {
		return Result{}, err
	}
	return Evaluate(ctx, rows, answers, o)
}

// read is one row with all that is known of it.
type read struct {
	row     Row
	answer  Answer
	raw     classifier.Reading
	cal     classifier.Reading // calibrated
	after   classifier.Reading // calibrated, after guards
	guards  []string           // that object to a confirm here, whatever the reader said
	in      classifier.Input
	blocked bool // by guards or by language
	yes     bool // the label is confirm
	right   bool // confirm would be right
}

// acted says whether code would act at the threshold.
func (r read) acted(threshold float64) bool {
	return !r.blocked && r.cal.Class == classifier.Confirm && r.cal.P[classifier.Confirm] >= threshold
}

// Evaluate runs the guards over recorded answers and counts. Without
// [Options.Calibration] it fits a calibrator and a threshold and says, in the
// result, whether the set blesses the reader ([Result.File]). It fails with
// [ErrAnswers] when a row has no answer, with [ErrData] on rows that are no
// input, and with [ErrMismatch] when the calibration is of another reader.
func Evaluate(ctx context.Context, rows []Row, answers Answers, o Options) (Result, error) {
	if o.TargetPrecision == 0 {
		o.TargetPrecision = 0.99
	}
	if o.LanguageTarget == 0 {
		o.LanguageTarget = 0.95
	}
	reads, fingerprint, err := gather(ctx, rows, answers)
	if err != nil {
		return Result{}, err
	}
	res := Result{
		Fingerprint: fingerprint, Target: o.TargetPrecision, LangTarget: o.LanguageTarget,
		Data:  Data{SHA256: DataHash(rows), Rows: len(rows)},
		Wrong: []Case{}, Missed: []Case{}, Languages: []string{},
	}
	for _, r := range reads {
		if r.yes {
			res.Data.Yes++
		}
		if r.answer.Failed != "" {
			res.Failed++
		}
	}
	if o.Calibration != nil {
		if err := o.Calibration.Verify(fingerprint); err != nil {
			return Result{}, err
		}
		res.Choice, res.Why = o.Calibration.Calibrator, "given by the calibration file"
		res.Threshold = o.Calibration.Threshold
		res.Languages = slices.Clone(o.Calibration.Languages)
	} else {
		best, all, why := choose(observations(reads))
		res.Choice, res.Fitted, res.Why = best.Calibrator, all, why
	}
	for i := range reads {
		r := &reads[i]
		r.cal = res.Choice.Apply(r.raw)
		r.after = classifier.Read(ctx, fixed{reading: r.cal}, r.in, classifier.Options{}).Reading
		if o.Calibration != nil && o.Languages != nil && !r.blocked {
			own := r.in
			own.Newest = classifier.NewWords(classifier.Prepare(own.Newest).Own)
			if !o.Languages.Within(own, res.Languages) {
				r.blocked = true
				r.guards = append(slices.Clone(r.guards), "language")
				r.after = capped(r.after)
			}
		}
	}
	if o.Calibration == nil {
		res.Threshold, res.refusal = pickThreshold(reads, o.TargetPrecision)
	} else if c := countAt(reads, res.Threshold); c.Lower < o.TargetPrecision {
		res.refusal = refusal(c, o.TargetPrecision)
	}
	if res.refusal != nil {
		res.Refused = res.refusal.Error()
	}
	res.count(reads, o)
	return res, nil
}

func gather(ctx context.Context, rows []Row, answers Answers) ([]read, string, error) {
	fingerprint := ""
	reads := make([]read, 0, len(rows))
	for i, row := range rows {
		a, ok := answers[row.Key()]
		if !ok {
			return nil, "", fmt.Errorf("%w: row %d has no answer", ErrAnswers, i+1)
		}
		if fingerprint == "" {
			fingerprint = a.Fingerprint
		}
		if a.Fingerprint != fingerprint {
			return nil, "", fmt.Errorf("%w: answers of two readers", ErrAnswers)
		}
		in, err := row.Input()
		if err != nil {
			return nil, "", fmt.Errorf("%w: row %d: %w", ErrData, i+1, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		// Guards look at confirms alone, and calibration may make one: ask them
		// about a sure confirm.
		v := classifier.Read(ctx, Adversary(), in, classifier.Options{})
		reads = append(reads, read{
			row: row, answer: a, raw: a.reading(), in: in, guards: v.Guards,
			blocked: v.Reading.Class != classifier.Confirm,
			yes:     row.Label == classifier.Confirm, right: row.Allows(classifier.Confirm),
		})
	}
	return reads, fingerprint, nil
}

// observations are what a calibrator is fitted on: readings before guards,
// of rows where confirm is plainly right or plainly wrong.
func observations(reads []read) []observation {
	var out []observation
	for _, r := range reads {
		if r.answer.Failed != "" || r.right != r.yes {
			continue
		}
		fold, _ := strconv.ParseUint(r.answer.Key[:min(8, len(r.answer.Key))], 16, 32)
		out = append(out, observation{p: r.raw.P, class: r.row.Label, fold: int(fold % folds)})
	}
	return out
}

func countAt(reads []read, threshold float64) Count {
	right, n := 0, 0
	for _, r := range reads {
		if r.acted(threshold) {
			n++
			if r.right {
				right++
			}
		}
	}
	return NewCount(right, n)
}

func refusal(c Count, target float64) error {
	need := NeededRight(target)
	if c.Right == c.Of && c.Of < need {
		return fmt.Errorf("%w: %d of %d are right, which shows %.4f; %.4g needs %d of %d", ErrTooFew, c.Right, c.Of, c.Lower, target, need, need)
	}
	return fmt.Errorf("%w: %d of %d are right, which shows %.4f, not %.4g", ErrNotShown, c.Right, c.Of, c.Lower, target)
}

// pickThreshold takes the lowest threshold at or above 0.9 whose bound meets
// the target. Where none does, it is 1 with the refusal.
func pickThreshold(reads []read, target float64) (float64, error) {
	candidates := []float64{classifier.ActThreshold}
	for _, r := range reads {
		if p := r.cal.P[classifier.Confirm]; p > classifier.ActThreshold && !r.right && r.acted(p) {
			// Just above a mistake is where precision jumps.
			if up := math.Ceil(p*1e4+1e-9) / 1e4; up <= 1 {
				candidates = append(candidates, up)
			}
		}
	}
	sort.Float64s(candidates)
	for _, t := range slices.Compact(candidates) {
		if countAt(reads, t).Lower >= target {
			return t, nil
		}
	}
	return 1, refusal(countAt(reads, classifier.ActThreshold), target)
}

func (res *Result) count(reads []read, o Options) {
	t := res.Threshold
	if res.refusal != nil && o.Calibration == nil {
		t = classifier.ActThreshold // the figures are still of interest
	}
	var ps, raws, guarded, ys []float64
	var perClass [classifier.Classes]struct{ said, right, label, found int }
	stopped, no := 0, 0
	for _, r := range reads {
		y := 0.0
		if r.yes {
			y = 1
		}
		g := r.after
		if r.right == r.yes {
			ps = append(ps, r.cal.P[classifier.Confirm])
			raws = append(raws, r.raw.P[classifier.Confirm])
			guarded = append(guarded, g.P[classifier.Confirm])
			ys = append(ys, y)
			res.LogLoss += logLoss(r.cal.P[classifier.Confirm], y)
		}
		res.Confusion[r.row.Label][g.Class]++
		ok := r.row.Allows(g.Class)
		perClass[g.Class].said++
		perClass[r.row.Label].label++
		if ok {
			perClass[g.Class].right++
		}
		if g.Class == r.row.Label {
			perClass[g.Class].found++
		}
		acted := r.acted(t)
		if !r.right {
			no++
			if !acted {
				stopped++
			}
		}
		res.Outcomes = append(res.Outcomes, Outcome{Key: r.answer.Key, Label: r.row.Label, Class: g.Class,
			P: round(g.P[classifier.Confirm], 9), Acted: acted, OK: ok})
		c := Case{ID: r.row.ID, Key: r.answer.Key, Label: r.row.Label, P: round(r.cal.P[classifier.Confirm], 6),
			Lang: r.row.Lang, Tags: r.row.Tags, Guards: r.guards}
		if !o.OmitTexts {
			c.Text, c.Offers = r.row.Text, r.row.Offers
		}
		switch {
		case !r.right && r.acted(classifier.ActThreshold):
			res.Wrong = append(res.Wrong, c)
		case r.yes && !acted:
			res.Missed = append(res.Missed, c)
		}
	}
	bySure := func(a, b Case) int {
		switch {
		case a.P > b.P:
			return -1
		case a.P < b.P:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(res.Wrong, bySure)
	slices.SortStableFunc(res.Missed, bySure)
	res.Precision, res.Recall = figures(reads, t)
	res.Stopped = NewCount(stopped, no)
	res.Bins, res.BinsRaw = reliability(ps, ys), reliability(raws, ys)
	res.ECE = round(ece(res.Bins, len(ps)), 6)
	res.ECERaw = round(ece(res.BinsRaw, len(ps)), 6)
	res.ECEGuards = round(ece(reliability(guarded, ys), len(ps)), 6)
	res.Brier = round(brier(ps, ys), 6)
	res.LogLoss = round(res.LogLoss/math.Max(1, float64(len(ps))), 6)
	for k := range classifier.Classes {
		p := perClass[k]
		res.Classes = append(res.Classes, ClassFigures{Class: classifier.Class(k),
			Precision: NewCount(p.right, p.said), Recall: NewCount(p.found, p.label)})
	}
	for i := range 50 {
		res.Sweep = append(res.Sweep, point(reads, round(0.5+float64(i)/100, 2)))
	}
	res.Sweep = append(res.Sweep, point(reads, 0.995), point(reads, 0.999))
	for i := range 20 {
		res.PR = append(res.PR, point(reads, round(float64(i)/40, 3)))
	}
	res.PR = append(res.PR, res.Sweep...)
	res.slices(reads, t, o)
	if !o.OmitTimes {
		res.Times = times(reads)
	}
}

func figures(reads []read, t float64) (precision, recall Count) {
	yes, acted := 0, 0
	for _, r := range reads {
		if r.yes {
			yes++
			if r.acted(t) {
				acted++
			}
		}
	}
	return countAt(reads, t), NewCount(acted, yes)
}

func point(reads []read, t float64) Point {
	p, r := figures(reads, t)
	return Point{Threshold: t, Precision: p, Recall: r}
}

func (res *Result) slices(reads []read, t float64, o Options) {
	group := func(keys func(read) []string) []Slice {
		m := map[string][]read{}
		for _, r := range reads {
			for _, k := range keys(r) {
				m[k] = append(m[k], r)
			}
		}
		names := make([]string, 0, len(m))
		for k := range m {
			names = append(names, k)
		}
		slices.Sort(names)
		out := []Slice{}
		for _, n := range names {
			p, r := figures(m[n], t)
			out = append(out, Slice{Name: n, Rows: len(m[n]), Precision: p, Recall: r})
		}
		return out
	}
	res.ByLanguage = group(func(r read) []string {
		if r.row.Lang == "" {
			return nil
		}
		base, _, _ := strings.Cut(r.row.Lang, "-") // "hi-Latn" is Hindi
		return []string{base}
	})
	res.ByTag = group(func(r read) []string {
		tags := slices.Clone(r.row.Tags)
		slices.Sort(tags)
		return slices.Compact(tags)
	})
	res.HeldBy = group(func(r read) []string { return r.guards })
	for i := range res.HeldBy {
		h := &res.HeldBy[i]
		// Of a guard it matters how many real yeses it held, not what it let through.
		h.Precision, h.Recall = Count{}, Count{Right: h.Recall.Of, Of: res.Data.Yes}
	}
	for i := range res.ByLanguage {
		s := &res.ByLanguage[i]
		if o.Calibration != nil {
			s.Blessed = slices.Contains(res.Languages, s.Name)
			continue
		}
		if s.Blessed = res.refusal == nil && s.Precision.Lower >= o.LanguageTarget; s.Blessed {
			res.Languages = append(res.Languages, s.Name)
		}
	}
}

func times(reads []read) *Times {
	t := &Times{}
	var ns []int64
	for _, r := range reads {
		if r.answer.Nanos > 0 {
			ns = append(ns, r.answer.Nanos)
		}
		t.TotalCost += r.answer.Cost
	}
	if len(ns) == 0 {
		return nil
	}
	slices.Sort(ns)
	us := func(i int) float64 { return float64(ns[min(i, len(ns)-1)]) / 1000 }
	t.N, t.MedianUS, t.P99US, t.MaxUS = len(ns), us(len(ns)/2), us(len(ns)*99/100), us(len(ns)-1)
	t.CostPerRow = t.TotalCost / float64(len(reads))
	return t
}

// File is the calibration that this result blesses. It fails with [ErrTooFew]
// or [ErrNotShown] where the set does not show the target.
func (res Result) File() (File, error) {
	if res.refusal != nil {
		return File{}, res.refusal
	}
	f := File{
		Version: fileVersion, Fingerprint: res.Fingerprint, Calibrator: res.Choice, Why: res.Why,
		Threshold: res.Threshold, TargetPrecision: res.Target, LanguageTarget: res.LangTarget, Confidence: Confidence,
		LanguageNeeded: NeededRight(res.LangTarget),
		Languages:      slices.Clone(res.Languages), Data: res.Data, Precision: res.Precision, Recall: res.Recall,
		ByLanguage: slices.Clone(res.ByLanguage),
	}
	return f, f.check()
}
