package combine

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
)

// *calibration.Reader is the one that products pass.
var _ Calibrated = (*calibration.Reader)(nil)

// reader says what it is told to.
type reader struct {
	name  string
	says  classifier.Reading
	err   error
	calib error // what Err returns
	hangs bool  // looks at no context and never answers
	boom  bool
	asked int
	until chan struct{} // ends a reader that hangs
}

func (r *reader) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	r.asked++
	if r.boom {
		panic("a reader's own fault")
	}
	if r.hangs {
		<-r.until
	}
	return r.says, r.err
}
func (r *reader) Fingerprint() string { return r.name }
func (r *reader) Err() error          { return r.calib }

// says is a reading of class c with p(confirm); the rest goes to c, or to
// unclear where c is confirm.
func says(c classifier.Class, confirm float64) classifier.Reading {
	r := classifier.Reading{Class: c}
	if c == classifier.Confirm {
		r.P[classifier.Unclear] = 1 - confirm
	} else {
		r.P[c] = 1 - confirm
	}
	r.P[classifier.Confirm] = confirm
	return r
}

var (
	errUncalibrated = errors.New("no calibration of this reader")
	errDown         = errors.New("down")
)

func yes(t *testing.T) classifier.Input {
	t.Helper()
	label, err := classifier.NewLabel("send email to", "Dana")
	if err != nil {
		t.Fatal(err)
	}
	return classifier.Input{Newest: classifier.NewWords("yes"), Offers: []classifier.Label{label}}
}

func cascade(t *testing.T, local, model *reader) *Cascading {
	t.Helper()
	local.name, model.name = "local", "model"
	c, err := Cascade(local, model)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func agree(t *testing.T, a, b *reader) *Agreeing {
	t.Helper()
	a.name, b.name = "a", "b"
	g, err := Agree(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCascade(t *testing.T) {
	sureYes, likelyYes := says(classifier.Confirm, 0.97), says(classifier.Confirm, 0.7)
	for name, c := range map[string]struct {
		local, model *reader
		asked        int
		class        classifier.Class
		acts         bool
	}{
		"a sure yes of local stays":        {&reader{says: sureYes}, &reader{says: says(classifier.Decline, 0)}, 0, classifier.Confirm, true},
		"a sure decline of local stays":    {&reader{says: says(classifier.Decline, 0.02)}, &reader{says: sureYes}, 0, classifier.Decline, false},
		"a sure modify of local stays":     {&reader{says: says(classifier.Modify, 0.09)}, &reader{says: sureYes}, 0, classifier.Modify, false},
		"a sure unrelated of local stays":  {&reader{says: says(classifier.Unrelated, 0)}, &reader{says: sureYes}, 0, classifier.Unrelated, false},
		"a sure unclear of local stays":    {&reader{says: says(classifier.Unclear, 0.05)}, &reader{says: sureYes}, 0, classifier.Unclear, false},
		"doubt asks: yes":                  {&reader{says: likelyYes}, &reader{says: sureYes}, 1, classifier.Confirm, true},
		"doubt asks: exactly at the edge":  {&reader{says: says(classifier.Unclear, AskFrom)}, &reader{says: sureYes}, 1, classifier.Confirm, true},
		"doubt asks: no":                   {&reader{says: likelyYes}, &reader{says: says(classifier.Decline, 0.01)}, 1, classifier.Decline, false},
		"doubt asks: doubt":                {&reader{says: likelyYes}, &reader{says: says(classifier.Confirm, 0.89)}, 1, classifier.Confirm, false},
		"the model contradicts a decline":  {&reader{says: says(classifier.Decline, 0.3)}, &reader{says: sureYes}, 1, classifier.Confirm, false},
		"the model contradicts a modify":   {&reader{says: says(classifier.Modify, 0.3)}, &reader{says: sureYes}, 1, classifier.Confirm, false},
		"the model fails":                  {&reader{says: likelyYes}, &reader{err: errDown}, 1, classifier.Confirm, false},
		"the model fails and says yes":     {&reader{says: likelyYes}, &reader{says: sureYes, err: errDown}, 1, classifier.Confirm, false},
		"the model panics":                 {&reader{says: likelyYes}, &reader{boom: true}, 1, classifier.Confirm, false},
		"the model is garbage":             {&reader{says: likelyYes}, &reader{says: classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{1, 1}}}, 1, classifier.Confirm, false},
		"the model is not a number":        {&reader{says: likelyYes}, &reader{says: classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{0, math.NaN()}}}, 1, classifier.Confirm, false},
		"local is not calibrated":          {&reader{says: sureYes, calib: errUncalibrated}, &reader{says: says(classifier.Confirm, 0.5)}, 1, classifier.Confirm, false},
		"the model is not calibrated":      {&reader{says: likelyYes}, &reader{says: sureYes, calib: errUncalibrated}, 1, classifier.Confirm, false},
		"neither is calibrated":            {&reader{says: sureYes, calib: errUncalibrated}, &reader{says: sureYes, calib: errUncalibrated}, 1, classifier.Confirm, false},
		"local's p disagrees with its own": {&reader{says: says(classifier.Unclear, 0.95)}, &reader{err: errDown}, 1, classifier.Unclear, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			reader := cascade(t, c.local, c.model)
			v := classifier.Read(t.Context(), reader, yes(t), classifier.Options{})
			if v.Err != nil {
				t.Fatal(v.Err)
			}
			if v.Raw.Class != c.class || v.Confirms(classifier.ActThreshold) != c.acts {
				t.Errorf("class %v, acts %v; want %v, %v", v.Raw.Class, v.Confirms(classifier.ActThreshold), c.class, c.acts)
			}
			if !c.acts && v.Raw.P[classifier.Confirm] >= classifier.ActThreshold {
				t.Errorf("p(confirm) = %v must stay below what code acts on", v.Raw.P[classifier.Confirm])
			}
			if c.model.asked != c.asked {
				t.Errorf("the model was asked %d times, want %d", c.model.asked, c.asked)
			}
		})
	}
}

func TestCascadeIsUnclearWhenLocalFails(t *testing.T) {
	for name, local := range map[string]*reader{
		"error":   {err: errDown},
		"panic":   {boom: true},
		"garbage": {says: classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{2}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cascade(t, local, &reader{says: says(classifier.Confirm, 1)}).Read(t.Context(), yes(t))
			if !errors.Is(err, ErrReader) || got != classifier.UnclearReading() {
				t.Errorf("%+v, %v; want unclear and ErrReader", got, err)
			}
		})
	}
}

// A model that takes all the time must not take local's reading with it.
func TestCascadeKeepsTimeForLocalsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &reader{hangs: true, until: make(chan struct{}), says: says(classifier.Confirm, 1)}
		defer close(model.until)
		v := classifier.Read(t.Context(), cascade(t, &reader{says: says(classifier.Confirm, 0.6)}, model), yes(t), classifier.Options{})
		if v.Err != nil || v.Raw != says(classifier.Confirm, 0.6) {
			t.Errorf("%+v, %v; want local's reading", v.Raw, v.Err)
		}
	})
}

func TestCascadeEndsWithoutACallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &reader{hangs: true, until: make(chan struct{})}
		defer close(model.until)
		began := time.Now()
		if _, err := cascade(t, &reader{says: says(classifier.Confirm, 0.6)}, model).Read(context.Background(), yes(t)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > classifier.ReadDeadline { // the bubble's clock
			t.Errorf("took %v", took)
		}
	})
}

func TestAgree(t *testing.T) {
	sureYes := says(classifier.Confirm, 0.97)
	for name, c := range map[string]struct {
		a, b  *reader
		class classifier.Class
		p     float64 // of confirm
		acts  bool
	}{
		"both":                    {&reader{says: sureYes}, &reader{says: says(classifier.Confirm, 0.92)}, classifier.Confirm, 0.92, true},
		"both, the other way":     {&reader{says: says(classifier.Confirm, 0.9)}, &reader{says: sureYes}, classifier.Confirm, 0.9, true},
		"one is just below":       {&reader{says: sureYes}, &reader{says: says(classifier.Confirm, 0.899)}, classifier.Confirm, 0.899, false},
		"one declines":            {&reader{says: sureYes}, &reader{says: says(classifier.Decline, 0.1)}, classifier.Decline, 0.1, false},
		"the other declines":      {&reader{says: says(classifier.Decline, 0.1)}, &reader{says: sureYes}, classifier.Decline, 0.1, false},
		"one changes it":          {&reader{says: says(classifier.Modify, 0.4)}, &reader{says: sureYes}, classifier.Modify, 0.4, false},
		"no confirm goes first":   {&reader{says: says(classifier.Confirm, 0.55)}, &reader{says: says(classifier.Decline, 0.6)}, classifier.Decline, 0.55, false},
		"class and p fall apart":  {&reader{says: says(classifier.Decline, 0.99)}, &reader{says: sureYes}, classifier.Decline, below, false},
		"both decline":            {&reader{says: says(classifier.Decline, 0.2)}, &reader{says: says(classifier.Decline, 0.1)}, classifier.Decline, 0.1, false},
		"one has no calibration":  {&reader{says: sureYes, calib: errUncalibrated}, &reader{says: sureYes}, classifier.Confirm, below, false},
		"both have no calibraton": {&reader{says: sureYes, calib: errUncalibrated}, &reader{says: sureYes, calib: errUncalibrated}, classifier.Confirm, below, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			v := classifier.Read(t.Context(), agree(t, c.a, c.b), yes(t), classifier.Options{})
			if v.Err != nil {
				t.Fatal(v.Err)
			}
			if v.Raw.Class != c.class || v.Raw.P[classifier.Confirm] != c.p || v.Confirms(classifier.ActThreshold) != c.acts {
				t.Errorf("%+v, acts %v; want %v, p %v, acts %v", v.Raw, v.Confirms(classifier.ActThreshold), c.class, c.p, c.acts)
			}
		})
	}
}

func TestAgreeIsUnclearWhenEitherFails(t *testing.T) {
	good := func() *reader { return &reader{says: says(classifier.Confirm, 1)} }
	for name, bad := range map[string]*reader{
		"error":         {err: errDown, says: says(classifier.Confirm, 1)},
		"panic":         {boom: true},
		"garbage":       {says: classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{0, 1, 1}}},
		"not a number":  {says: classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{0, math.NaN()}}},
		"unknown class": {says: classifier.Reading{Class: 9, P: [classifier.Classes]float64{0, 1}}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for _, pair := range [...][2]*reader{{good(), bad}, {bad, good()}} {
				got, err := agree(t, pair[0], pair[1]).Read(t.Context(), yes(t))
				if !errors.Is(err, ErrReader) || got != classifier.UnclearReading() {
					t.Errorf("%+v, %v; want unclear and ErrReader", got, err)
				}
			}
		})
	}
}

// Both at once: two readers of 1.5 s each are within 2 s; a reader that looks
// at no context does not hold up an Agree that should end.
func TestAgreeAsksBothAtOnceAndEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := Agree(slow{"a", 1500 * time.Millisecond}, slow{"b", 1500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if v := classifier.Read(t.Context(), g, yes(t), classifier.Options{}); !v.Confirms(classifier.ActThreshold) {
			t.Errorf("%+v, %v: the readers were asked one after the other", v.Raw, v.Err)
		}
		stuck := &reader{hangs: true, until: make(chan struct{})}
		defer close(stuck.until)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := agree(t, stuck, &reader{says: says(classifier.Confirm, 1)}).Read(ctx, yes(t)); !errors.Is(err, context.DeadlineExceeded) || got != classifier.UnclearReading() {
			t.Errorf("%+v, %v; want unclear at the deadline", got, err)
		}
	})
}

type slow struct {
	name string
	for_ time.Duration
}

func (s slow) Read(ctx context.Context, _ classifier.Input) (classifier.Reading, error) {
	select {
	case <-time.After(s.for_):
		return says(classifier.Confirm, 0.99), nil
	case <-ctx.Done():
		return classifier.UnclearReading(), ctx.Err()
	}
}
func (s slow) Fingerprint() string { return s.name }
func (s slow) Err() error          { return nil }

func TestTwoDifferentReadersAreNeeded(t *testing.T) {
	a, b := &reader{name: "a"}, &reader{name: "b"}
	for name, pair := range map[string][2]Calibrated{
		"the same twice": {a, a}, "the same name": {a, &reader{name: "a"}}, "no first": {nil, b}, "no second": {a, nil},
	} {
		if _, err := Agree(pair[0], pair[1]); !errors.Is(err, ErrReaders) {
			t.Errorf("agree, %s: %v", name, err)
		}
		if _, err := Cascade(pair[0], pair[1]); !errors.Is(err, ErrReaders) {
			t.Errorf("cascade, %s: %v", name, err)
		}
	}
}

func TestFingerprintsAndErrsNameBoth(t *testing.T) {
	a, b := &reader{name: "local/1"}, &reader{name: "openai/v1/logprobs/m"}
	c, _ := Cascade(a, b)
	g, _ := Agree(a, b)
	if got, want := c.Fingerprint(), "cascade/1/0.1-0.9(local/1;openai/v1/logprobs/m)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := g.Fingerprint(), "agree/1(local/1;openai/v1/logprobs/m)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if c.Err() != nil || g.Err() != nil {
		t.Error("both are calibrated")
	}
	b.calib = errUncalibrated
	if c.Err() != nil {
		t.Error("local alone may still confirm")
	}
	if !errors.Is(g.Err(), errUncalibrated) {
		t.Error("agree can confirm nothing with one reader uncalibrated")
	}
	a.calib = errUncalibrated
	if !errors.Is(c.Err(), errUncalibrated) {
		t.Error("neither may confirm")
	}
}

// anyReader draws a reader of any behaviour.
func anyReader(t *rapid.T, name string) *reader {
	r := &reader{name: name, says: anyReading(t, name)}
	// From a list, since numbers are drawn small more often than not.
	switch rapid.SampledFrom([]string{"", "", "", "", "", "", "fails", "uncalibrated", "uncalibrated", "panics"}).Draw(t, name+" fault") {
	case "fails":
		r.err = errDown
	case "uncalibrated":
		r.calib = errUncalibrated
	case "panics":
		r.boom = true
	}
	return r
}

func anyReading(t *rapid.T, name string) classifier.Reading {
	r := classifier.Reading{Class: classifier.Class(rapid.IntRange(0, classifier.Classes).Draw(t, name+" class"))}
	if rapid.Bool().Draw(t, name+" often confirms") {
		r.Class = classifier.Confirm
	}
	confirm := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64Range(0.88, 0.92), rapid.SampledFrom([]float64{0, 0.05, 0.1, 0.4, 0.7, below, 0.9, 0.95, 1, math.NaN()})).Draw(t, name+" p")
	r.P[classifier.Confirm] = confirm
	r.P[rapid.SampledFrom([]classifier.Class{classifier.Unclear, classifier.Decline, classifier.Modify}).Draw(t, name+" rest")] += 1 - confirm
	return r
}

// may says whether the reader by itself, its calibration and its own reading
// give a confirm that code may act on.
func (r *reader) may() bool {
	return r.err == nil && r.calib == nil && !r.boom && r.says.Valid() && confirms(r.says)
}

func TestProperty_AgreeNeverConfirmsUnlessBothDo(t *testing.T) {
	in := yes(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyReader(t, "a"), anyReader(t, "b")
		g, err := Agree(a, b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Read(context.Background(), in)
		if !got.Valid() {
			t.Fatalf("%+v is no reading", got)
		}
		both := a.may() && b.may()
		if confirms(got) != both || (got.P[classifier.Confirm] >= classifier.ActThreshold) != both {
			t.Fatalf("%+v (%v) of %+v and %+v", got, err, a, b)
		}
		if err == nil && got.P[classifier.Confirm] > min(a.says.P[classifier.Confirm], b.says.P[classifier.Confirm]) {
			t.Fatalf("p(confirm) was raised: %+v of %+v and %+v", got, a, b)
		}
	})
}

func TestProperty_CascadeConfirmsOnlyWhatACalibratedReaderConfirmed(t *testing.T) {
	in := yes(t)
	rapid.Check(t, func(t *rapid.T) {
		local, model := anyReader(t, "local"), anyReader(t, "model")
		c, err := Cascade(local, model)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(context.Background(), in)
		if !got.Valid() {
			t.Fatalf("%+v is no reading", got)
		}
		if got.P[classifier.Confirm] < classifier.ActThreshold {
			return
		}
		byLocal := local.may() && got == local.says
		byModel := model.may() && got == model.says && model.asked == 1 &&
			local.says.Class != classifier.Decline && local.says.Class != classifier.Modify
		if err != nil || !confirms(got) || !(byLocal || byModel) {
			t.Fatalf("%+v (%v) of %+v and %+v", got, err, local, model)
		}
	})
}
