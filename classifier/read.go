package classifier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Why a reader's answer was not used; see [Verdict.Err].
var (
	ErrReaderSlow    = errors.New("classifier: reader did not answer in time")
	ErrReaderGarbage = errors.New("classifier: reader's probabilities are not a distribution")
	ErrReaderPanic   = errors.New("classifier: reader panicked")
)

// Read prepares the newest message, asks the reader within its deadline and
// runs every guard. It always gives a verdict: a reader that fails, is slow,
// panics or answers garbage has read "unclear".
//
// The reader is given the person's own words (quotes, signatures and
// reactions taken out) and at most [MaxEarlier] earlier messages; a text
// without own words is not shown to it at all.
func Read(ctx context.Context, r Reader, in Input, o Options) Verdict {
	v := Verdict{Prepared: Prepare(in.Newest), Raw: UnclearReading()}
	p := newParse(v.Prepared, in.Offers)
	if v.Prepared.Own != "" {
		v.Raw, v.Err = ask(context.WithValue(ctx, parseKey{}, p), r, readerInput(in, v.Prepared), o)
	}
	v.Reading, v.Guards = p.guard(v.Raw)
	return v
}

// parse is a text that is taken apart once, at the first wish: by a reader
// that looks at the pieces, or by the guards.
type parse struct {
	prepared Prepared
	offers   []Label
	analysis func() *analysis
}

type parseKey struct{}

func newParse(p Prepared, offers []Label) *parse {
	return &parse{prepared: p, offers: offers, analysis: sync.OnceValue(func() *analysis { return analyse(p, offers) })}
}

// of says whether the parse is of this very input.
func (s *parse) of(in Input) bool {
	return s != nil && s.prepared.Own == in.Newest.raw && slices.Equal(s.offers, in.Offers)
}

func readerInput(in Input, p Prepared) Input {
	in.Newest = NewWords(p.Own)
	if len(in.Earlier) > MaxEarlier {
		in.Earlier = in.Earlier[:MaxEarlier]
	}
	return in
}

type answer struct {
	reading Reading
	err     error
}

// ask gives the reader's answer if it can be used.
func ask(ctx context.Context, r Reader, in Input, o Options) (Reading, error) {
	if c, ok := r.(Computing); ok && c.Computes() {
		if ctx.Err() != nil {
			return UnclearReading(), ErrReaderSlow
		}
		return call(ctx, r, in).checked()
	}
	return askWithin(ctx, r, in, o)
}

// call asks a reader, which may panic.
func call(ctx context.Context, r Reader, in Input) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: ErrReaderPanic}
		}
	}()
	reading, err := r.Read(ctx, in)
	return answer{reading, err}
}

// checked is the answer, or why it cannot be used.
func (a answer) checked() (Reading, error) {
	switch {
	case a.err != nil:
		return UnclearReading(), fmt.Errorf("classifier: reader failed: %w", a.err)
	case !a.reading.Valid():
		return UnclearReading(), ErrReaderGarbage
	}
	return a.reading, nil
}

// askWithin holds a reader to its deadline twice: by the context, and by a timer
// for readers that do not look at it.
func askWithin(ctx context.Context, r Reader, in Input, o Options) (Reading, error) {
	d := o.Deadline
	if d <= 0 || d > ReadDeadline {
		d = ReadDeadline
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	timer := time.NewTimer(d)
	defer timer.Stop()

	done := make(chan answer, 1) // buffered: a late answer must not block its goroutine
	go func() { done <- call(ctx, r, in) }()

	select {
	case a := <-done:
		return a.checked()
	case <-ctx.Done():
		return UnclearReading(), ErrReaderSlow
	case <-timer.C:
		return UnclearReading(), ErrReaderSlow
	}
}
