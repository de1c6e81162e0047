package combine

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/classifier"
)

// Agreeing is what [Agree] makes.
type Agreeing struct{ a, b Calibrated }

var _ Calibrated = (*Agreeing)(nil)

// Agree reads with both at once and confirms only where both do, at
// [classifier.ActThreshold] or above; p(confirm) is then the lower of the two.
// In all other cases the less confirming reading of the two stands. It fails
// with [ErrReaders] unless given two different readers, and its Read with
// [ErrReader], and so unclear, when either fails.
func Agree(a, b Calibrated) (*Agreeing, error) {
	if err := different(a, b); err != nil {
		return nil, err
	}
	return &Agreeing{a: a, b: b}, nil
}

// Read implements [classifier.Reader]. It ends with ctx even where a reader
// does not.
func (g *Agreeing) Read(ctx context.Context, in classifier.Input) (classifier.Reading, error) {
	first, second := start(ctx, "first", g.a, in), start(ctx, "second", g.b, in)
	a, errA := await(ctx, "first", first)
	b, errB := await(ctx, "second", second)
	if err := errors.Join(errA, errB); err != nil { // mutant: combine.both-answer
		return classifier.UnclearReading(), err
	}
	return lesser(a, b), nil
}

// lesser is the less confirming of two readings: one that is no confirm before
// one that code does not act on, before one that it may; then the one with less
// p(confirm), a tie going to a. Its p(confirm) is the lower of both.
func lesser(a, b classifier.Reading) classifier.Reading {
	low := min(a.P[classifier.Confirm], b.P[classifier.Confirm])
	if ra, rb := rank(a), rank(b); rb < ra || (rb == ra && b.P[classifier.Confirm] == low) { // mutant: combine.agree
		a = b
	}
	a.P[classifier.Unclear] += a.P[classifier.Confirm] - low
	a.P[classifier.Confirm] = low // mutant: combine.minimum
	return a
}

func rank(r classifier.Reading) int {
	switch {
	case confirms(r):
		return 2
	case r.Class == classifier.Confirm:
		return 1
	}
	return 0
}

// Err says why no confirm is acted on, if either reader's may not be.
func (g *Agreeing) Err() error { return errors.Join(g.a.Err(), g.b.Err()) }

// Fingerprint names both readers.
func (g *Agreeing) Fingerprint() string {
	return fmt.Sprintf("agree/1(%s;%s)", g.a.Fingerprint(), g.b.Fingerprint())
}
