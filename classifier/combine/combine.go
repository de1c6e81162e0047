// Package combine makes one reader of two: [Cascade] asks a second reader only
// where the first is not sure, [Agree] acts only where both say confirm.
//
// Both take readers that stand behind their own calibration, as
// *calibration.Reader does, and hold them to it: a confirm at or above
// [classifier.ActThreshold] comes out only if it came in, from a reader whose
// calibration holds. Nothing here adds up, averages or raises.
package combine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/countersign/countersign/classifier"
)

// Calibrated is a reader that knows whether its probabilities have been
// measured: Err is nil if a calibration that is this reader's own is applied to
// what Read returns, and otherwise says why code acts on none of its confirms.
type Calibrated interface {
	classifier.Reader
	Err() error
}

// Errors of this package.
var (
	// ErrReaders says that two readers do not make a combination.
	ErrReaders = errors.New("combine: two different readers are needed")
	// ErrReader says which of two readers failed; the reader's own error, which
	// holds no text, stands behind it.
	ErrReader = errors.New("combine: reader failed")
)

// below is the surest that a confirm may be which code does not act on.
var below = math.Nextafter(classifier.ActThreshold, 0)

// capped keeps p(confirm) below what code acts on.
func capped(r classifier.Reading) classifier.Reading {
	if p := r.P[classifier.Confirm]; p > below {
		r.P[classifier.Confirm] = below
		r.P[classifier.Unclear] += p - below
	}
	return r
}

// confirms says whether code may act on a reading, guards aside.
func confirms(r classifier.Reading) bool {
	return r.Class == classifier.Confirm && r.P[classifier.Confirm] >= classifier.ActThreshold
}

// consult asks one reader. A panic, which would end the process here since no
// caller stands above a goroutine, and probabilities that are none are errors
// like any other; a reader without its calibration is not acted on, and neither
// is a probability of confirm beside another class.
func consult(ctx context.Context, name string, r Calibrated, in classifier.Input) (got classifier.Reading, err error) {
	defer func() {
		if recover() != nil { // mutant: combine.panic
			got, err = classifier.UnclearReading(), fmt.Errorf("%w: %s: %w", ErrReader, name, classifier.ErrReaderPanic)
		}
	}()
	got, err = r.Read(ctx, in)
	switch {
	case err != nil:
		return classifier.UnclearReading(), fmt.Errorf("%w: %s: %w", ErrReader, name, err)
	case !got.Valid(): // mutant: combine.valid
		return classifier.UnclearReading(), fmt.Errorf("%w: %s: %w", ErrReader, name, classifier.ErrReaderGarbage)
	case r.Err() != nil || got.Class != classifier.Confirm: // mutant: combine.calibrated
		return capped(got), nil
	}
	return got, nil
}

// different checks that there are two readers, and not one twice: a reader
// that agrees with itself has said nothing.
func different(a, b Calibrated) error {
	if a == nil || b == nil || a.Fingerprint() == b.Fingerprint() { // mutant: combine.different
		return ErrReaders
	}
	return nil
}

type answer struct {
	reading classifier.Reading
	err     error
}

// start consults a reader and does not wait for it.
func start(ctx context.Context, name string, r Calibrated, in classifier.Input) <-chan answer {
	out := make(chan answer, 1) // buffered: a late answer must not block its goroutine
	go func() {
		reading, err := consult(ctx, name, r, in)
		out <- answer{reading, err}
	}()
	return out
}

// await ends with ctx, whatever the reader does.
func await(ctx context.Context, name string, from <-chan answer) (classifier.Reading, error) {
	select {
	case a := <-from:
		return a.reading, a.err
	case <-ctx.Done():
		return classifier.UnclearReading(), fmt.Errorf("%w: %s: %w", ErrReader, name, ctx.Err())
	}
}
