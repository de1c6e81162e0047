package calibration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/countersign/countersign/classifier"
)

// ErrAnswers says that a file of recorded answers does not belong to this
// reader or these rows.
var ErrAnswers = errors.New("calibration: recorded answers do not fit")

// Answer is what a reader said of one input, before guards.
type Answer struct {
	Key         string                      `json:"key"` // [Row.Key]
	Fingerprint string                      `json:"fingerprint"`
	Class       classifier.Class            `json:"class"`
	P           [classifier.Classes]float64 `json:"p"`
	Failed      string                      `json:"failed,omitempty"` // why there was no reading
	Nanos       int64                       `json:"nanos,omitempty"`
	Cost        float64                     `json:"cost,omitempty"` // in the unit of [Collect]'s Spent
}

// reading is the answer as a reading; a failure reads as unclear.
func (a Answer) reading() classifier.Reading {
	if a.Failed != "" {
		return classifier.UnclearReading()
	}
	return classifier.Reading{Class: a.Class, P: a.P}
}

// Answers holds answers by key.
type Answers map[string]Answer

// ReadAnswers reads recorded answers, one JSON object a line, as
// [WriteAnswer] wrote them. A last line without its end, as a crash leaves
// it, is dropped. It fails with [ErrAnswers] on anything else that cannot be
// read and on answers of another reader. An empty fingerprint takes those of
// any one reader.
func ReadAnswers(r io.Reader, fingerprint string) (Answers, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswers, err)
	}
	out := Answers{}
	for n := 1; ; n++ {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return out, nil
		}
		l := bytes.TrimSpace(b[:i])
		b = b[i+1:]
		if len(l) == 0 {
			continue
		}
		var a Answer
		dec := json.NewDecoder(bytes.NewReader(l))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&a); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrAnswers, n, err)
		}
		if a.Failed == "" && !(classifier.Reading{Class: a.Class, P: a.P}).Valid() {
			return nil, fmt.Errorf("%w: line %d: no distribution", ErrAnswers, n)
		}
		if fingerprint == "" {
			fingerprint = a.Fingerprint
		}
		if a.Fingerprint != fingerprint {
			return nil, fmt.Errorf("%w: line %d is of reader %q, not %q", ErrAnswers, n, a.Fingerprint, fingerprint)
		}
		out[a.Key] = a
	}
}

// WriteAnswer appends one answer as a line.
func WriteAnswer(w io.Writer, a Answer) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	bw := bufio.NewWriter(w)
	bw.Write(b)
	bw.WriteByte('\n')
	return bw.Flush()
}

// CollectOptions of [Collect]. The zero value asks one row after another.
type CollectOptions struct {
	Have     Answers              // answers that are there already: a run that goes on
	Save     func(Answer) error   // called once for each new answer, never concurrently
	Progress func(done, all int)  // called after each answer, never concurrently
	Workers  int                  // rows asked at the same time
	Deadline time.Duration        // for one row; 0 means [classifier.ReadDeadline]
	Now      func() time.Time     // nil means time.Now
	Spent    func() float64       // what the reader has cost so far; only with one worker
	Retry    func(err error) bool // whether a failed row is to be left out rather than recorded as unclear
}

// Collect asks the reader about every distinct input of the rows that has no
// answer yet. Guards are not run here: see [Evaluate]. A row's failure is
// recorded, and reads as unclear; ctx ending or Save failing ends the whole,
// with what was collected so far.
func Collect(ctx context.Context, reader classifier.Reader, rows []Row, o CollectOptions) (Answers, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	out := Answers{}
	var todo []Row
	queued := map[string]bool{}
	for _, r := range rows {
		k := r.Key()
		if a, ok := o.Have[k]; ok {
			out[k] = a
		} else if !queued[k] {
			queued[k] = true
			todo = append(todo, r)
		}
	}
	all := len(out) + len(todo)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Row)
	go func() {
		defer close(next)
		for _, r := range todo {
			select {
			case next <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	fingerprint := reader.Fingerprint()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range max(1, o.Workers) {
		wg.Go(func() {
			for r := range next {
				a, err := askOne(ctx, reader, r, o)
				if ctx.Err() != nil {
					return
				}
				if err != nil && o.Retry != nil && o.Retry(err) {
					continue
				}
				a.Fingerprint = fingerprint
				mu.Lock()
				out[a.Key] = a
				if o.Save != nil {
					if err := o.Save(a); err != nil {
						cancel(err)
					}
				}
				if o.Progress != nil {
					o.Progress(len(out), all)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return out, context.Cause(ctx)
}

// askOne goes through [classifier.Read], so that the deadline, panics and the
// shape of the answer are judged in the one place where they are in production.
func askOne(ctx context.Context, reader classifier.Reader, r Row, o CollectOptions) (Answer, error) {
	a := Answer{Key: r.Key()}
	in, err := r.Input()
	if err != nil {
		a.Failed = err.Error()
		return a, err
	}
	spent := 0.0
	if o.Spent != nil {
		spent = o.Spent()
	}
	t := o.Now()
	v := classifier.Read(ctx, reader, in, classifier.Options{Deadline: o.Deadline})
	a.Nanos = o.Now().Sub(t).Nanoseconds()
	if o.Spent != nil {
		a.Cost = o.Spent() - spent
	}
	a.Class, a.P = v.Raw.Class, v.Raw.P
	if v.Err != nil {
		a.Failed = v.Err.Error()
	}
	return a, v.Err
}

// fixed is a reader that always says the same.
type fixed struct {
	reading     classifier.Reading
	err         error
	fingerprint string
}

func (f fixed) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	return f.reading, f.err
}
func (f fixed) Fingerprint() string { return f.fingerprint }

// Adversary is a hostile reader: it says confirm, 1.0, to everything. What
// still gets through is what the guards alone do not hold.
func Adversary() classifier.Reader {
	r := classifier.Reading{Class: classifier.Confirm}
	r.P[classifier.Confirm] = 1
	return fixed{reading: r, fingerprint: "adversary"}
}

// Oracle are the answers of a reader that is always right and sure. What it
// is not let act on is what the guards wrongly hold back.
func Oracle(rows []Row) Answers {
	out := Answers{}
	for _, r := range rows {
		a := Answer{Key: r.Key(), Fingerprint: "oracle", Class: r.Label}
		a.P[r.Label] = 1
		out[a.Key] = a
	}
	return out
}
