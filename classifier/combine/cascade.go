package combine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/classifier"
)

// AskFrom is the least probability of confirm, in the local reader's reading,
// from which [Cascade] asks the model. Below it the local reader's word stands,
// whatever it is: no yes is in sight that a second reader could find.
const AskFrom = 0.1

// Cascading is what [Cascade] makes.
type Cascading struct{ local, model Calibrated }

var _ Calibrated = (*Cascading)(nil)

// Cascade reads with local and, only where local is not sure, with model.
//
//	p(confirm) of local     is read by
//	below 0.1 ([AskFrom])   local: a decline, modify, unrelated or unclear stays
//	from 0.1, below 0.9     model
//	confirm at 0.9 or more  local, whose calibration holds
//
// The model's reading stands, with two limits. Where local reads decline or
// modify, the model's confirm is not acted on: they contradict each other.
// Where the model fails, local's reading stands, which is no confirm that code
// acts on. It fails with [ErrReaders] unless given two different readers, and
// its Read with [ErrReader] when local fails.
func Cascade(local, model Calibrated) (*Cascading, error) {
	if err := different(local, model); err != nil {
		return nil, err
	}
	return &Cascading{local: local, model: model}, nil
}

// Read implements [classifier.Reader].
func (c *Cascading) Read(ctx context.Context, in classifier.Input) (classifier.Reading, error) {
	first, err := consult(ctx, "local", c.local, in)
	if err != nil {
		return classifier.UnclearReading(), err
	}
	if confirms(first) || first.P[classifier.Confirm] < AskFrom { // mutant: combine.ask-window
		return first, nil
	}
	within, cancel := reserving(ctx)
	defer cancel()
	second, err := await(within, "model", start(within, "model", c.model, in))
	if err != nil {
		// The reason is dropped: an error would make a reading that local has
		// made unclear, and a failing model logs its failures itself.
		return capped(first), nil
	}
	if first.Class == classifier.Decline || first.Class == classifier.Modify { // mutant: combine.contradiction
		return capped(second), nil
	}
	return second, nil
}

// reserve is kept of the caller's time, so that local's reading still counts
// when the model takes too long.
const reserve = 100 * time.Millisecond

func reserving(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, end.Add(-reserve)) // mutant: combine.reserve
	}
	return context.WithTimeout(ctx, classifier.ReadDeadline-reserve)
}

// Err is nil if at least one of the two may be acted on: each is held to its
// own calibration.
func (c *Cascading) Err() error {
	if c.local.Err() == nil || c.model.Err() == nil {
		return nil
	}
	return errors.Join(c.local.Err(), c.model.Err())
}

// Fingerprint names both readers and the window.
func (c *Cascading) Fingerprint() string {
	return fmt.Sprintf("cascade/1/%g-%g(%s;%s)", AskFrom, classifier.ActThreshold, c.local.Fingerprint(), c.model.Fingerprint())
}
