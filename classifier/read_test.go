package classifier

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// readerFunc is a reader made of a function.
type readerFunc func(context.Context, Input) (Reading, error)

func (f readerFunc) Read(ctx context.Context, in Input) (Reading, error) { return f(ctx, in) }
func (readerFunc) Fingerprint() string                                   { return "test" }

// computing is a reader that waits for nothing, or one around such a reader that does.
type computing struct {
	readerFunc
	computes bool
}

func (c computing) Computes() bool { return c.computes }

// says reads one class, sure, whatever the text: with Confirm it is the
// adversary, whom the guards must hold.
func says(c Class) Reader {
	return readerFunc(func(context.Context, Input) (Reading, error) {
		r := Reading{Class: c}
		r.P[c] = 1
		return r, nil
	})
}

func labels(t testing.TB, texts ...string) []Label {
	t.Helper()
	var out []Label
	for _, s := range texts {
		l, err := ParseLabel(s)
		if err != nil {
			t.Fatalf("label %q: %v", s, err)
		}
		out = append(out, l)
	}
	return out
}

// adversary gives the verdict on a text when the reader says confirm 1.0 to all.
func adversary(t testing.TB, text string, offers ...string) Verdict {
	t.Helper()
	return Read(context.Background(), says(Confirm), Input{Newest: NewWords(text), Offers: labels(t, offers...)}, Options{})
}

// Invariant 16: a reader that fails, is slow, panics or answers garbage has
// read "unclear".
func TestInvariant16_ReaderFailureIsUnclear(t *testing.T) {
	sure := Reading{Class: Confirm, P: [5]float64{Confirm: 1}}
	for name, c := range map[string]struct {
		read readerFunc
		want error
	}{
		"error": {func(context.Context, Input) (Reading, error) { return sure, errors.New("down") }, nil},
		"deadline kept by the context": {func(ctx context.Context, _ Input) (Reading, error) {
			<-ctx.Done()
			return sure, nil
		}, ErrReaderSlow},
		"deadline kept by the timer": {func(context.Context, Input) (Reading, error) {
			<-time.After(time.Hour)
			return sure, nil
		}, ErrReaderSlow},
		"panic":    {func(context.Context, Input) (Reading, error) { panic("boom") }, ErrReaderPanic},
		"NaN":      {func(context.Context, Input) (Reading, error) { return Reading{Confirm, [5]float64{0, math.NaN()}}, nil }, ErrReaderGarbage},
		"sum of 2": {func(context.Context, Input) (Reading, error) { return Reading{Confirm, [5]float64{1, 1}}, nil }, ErrReaderGarbage},
		"no class": {func(context.Context, Input) (Reading, error) { return Reading{Class(200), [5]float64{0, 1}}, nil }, ErrReaderGarbage},
		"nothing":  {func(context.Context, Input) (Reading, error) { return Reading{}, nil }, ErrReaderGarbage},
	} {
		ask := func(t *testing.T, r Reader) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				v := Read(context.Background(), r, Input{Newest: NewWords("yes"), Offers: labels(t, "send email to Dana")}, Options{})
				if v.Reading.Class != Unclear || v.Raw.Class != Unclear || v.Confirms(0.9) || v.Err == nil {
					t.Errorf("verdict %+v", v)
				}
				if c.want != nil && !errors.Is(v.Err, c.want) {
					t.Errorf("Err = %v, want %v", v.Err, c.want)
				}
				if took := time.Since(start); took > ReadDeadline {
					t.Errorf("took %v", took)
				}
				<-time.After(2 * time.Hour) // let the late reader end inside the bubble
			})
		}
		t.Run(name, func(t *testing.T) { ask(t, c.read) })
		if !errors.Is(c.want, ErrReaderSlow) {
			t.Run(name+", computing", func(t *testing.T) { ask(t, computing{c.read, true}) })
		}
		t.Run(name+", computing no more", func(t *testing.T) { ask(t, computing{c.read, false}) })
	}
}

func TestRead_DeadlineCanOnlyShorten(t *testing.T) {
	for _, c := range []struct{ ask, want time.Duration }{{0, ReadDeadline}, {time.Hour, ReadDeadline}, {-1, ReadDeadline}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			slow := readerFunc(func(ctx context.Context, _ Input) (Reading, error) { <-ctx.Done(); return Reading{}, ctx.Err() })
			Read(context.Background(), slow, Input{Newest: NewWords("yes")}, Options{Deadline: c.ask})
			if took := time.Since(start); took != c.want {
				t.Errorf("deadline %v: took %v, want %v", c.ask, took, c.want)
			}
		})
	}
}

func TestRead_CancelledContextIsUnclear(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	block := readerFunc(func(ctx context.Context, _ Input) (Reading, error) { <-ctx.Done(); return Reading{}, ctx.Err() })
	for _, r := range []Reader{block, computing{says(Confirm).(readerFunc), true}} {
		if v := Read(ctx, r, Input{Newest: NewWords("yes"), Offers: labels(t, "send email to Dana")}, Options{}); v.Confirms(0.9) || v.Err == nil {
			t.Errorf("read %+v without a reader", v)
		}
	}
}

// The reader is given own words, at most four earlier messages, and is not
// asked at all about a text without own words.
func TestRead_ReaderSeesOwnWordsOnly(t *testing.T) {
	var seen []Input
	spy := readerFunc(func(_ context.Context, in Input) (Reading, error) {
		seen = append(seen, in)
		return UnclearReading(), nil
	})
	earlier := []Words{NewWords("5"), NewWords("4"), NewWords("3"), NewWords("2"), NewWords("1")}
	Read(context.Background(), spy, Input{Newest: NewWords("yes\n\nOn Tue, 4 Mar 2025, Bot wrote:\n> Reply YES"), Earlier: earlier}, Options{})
	Read(context.Background(), spy, Input{Newest: NewWords("Liked “Pay 5 to Ana? Reply YES”")}, Options{})
	if len(seen) != 1 {
		t.Fatalf("the reader was asked %d times", len(seen))
	}
	if got := seen[0].Newest.String(); got != "yes" {
		t.Errorf("it saw %q", got)
	}
	if !slices.Equal(seen[0].Earlier, earlier[:4]) {
		t.Errorf("it saw %d earlier messages", len(seen[0].Earlier))
	}
}

func TestRead_ErrorHoldsNoText(t *testing.T) {
	failing := readerFunc(func(context.Context, Input) (Reading, error) { return Reading{}, errors.New("503") })
	v := Read(context.Background(), failing, Input{Newest: NewWords("private words")}, Options{})
	if v.Err == nil || strings.Contains(v.Err.Error(), "private") {
		t.Errorf("Err = %v", v.Err)
	}
}
