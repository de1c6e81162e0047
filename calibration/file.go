package calibration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/countersign/countersign/classifier"
)

const fileVersion = 1

// Errors of calibration files.
var (
	ErrFile     = errors.New("calibration: file cannot be used")
	ErrMismatch = errors.New("calibration: file is of another reader")
)

// File is what code needs to act on a reader's word. It holds for the reader
// with that fingerprint and no other. The zero File matches none.
type File struct {
	Version     int        `json:"version"`
	Fingerprint string     `json:"fingerprint"`
	Calibrator  Calibrator `json:"calibrator"`
	Why         string     `json:"why"`
	Threshold   float64    `json:"threshold"` // of calibrated p(confirm); at least 0.9

	TargetPrecision float64 `json:"target_precision"`
	LanguageTarget  float64 `json:"language_target"`
	Confidence      float64 `json:"confidence"`
	// Languages in which code may act: those whose own slice shows
	// LanguageTarget as a one-sided bound of Confidence. LanguageNeeded is how
	// many right confirms of as many show it: 59 for 0.95.
	LanguageNeeded int      `json:"language_needed"`
	Languages      []string `json:"languages"`

	Data       Data    `json:"data"`
	Precision  Count   `json:"precision"`
	Recall     Count   `json:"recall"`
	ByLanguage []Slice `json:"by_language"`
}

// Load reads a calibration file. It fails with [ErrFile] on anything that is
// not exactly one, a threshold below 0.9, and counts that do not show the
// target that the file claims.
func Load(b []byte) (File, error) {
	var f File
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return File{}, fmt.Errorf("%w: more than one object", ErrFile)
	}
	if err := f.check(); err != nil {
		return File{}, err
	}
	return f, nil
}

func (f File) check() error {
	if f.Version != fileVersion {
		return fmt.Errorf("%w: version %d, want %d", ErrFile, f.Version, fileVersion)
	}
	if f.Fingerprint == "" {
		return fmt.Errorf("%w: no fingerprint", ErrFile)
	}
	if _, err := classifier.NewThreshold(f.Threshold); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	if err := f.Calibrator.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	// The bound is computed again: a file cannot claim what its counts do not show.
	if !(f.TargetPrecision > 0) || LowerBound(f.Precision.Right, f.Precision.Of) < f.TargetPrecision {
		return fmt.Errorf("%w: %d of %d do not show %v", ErrFile, f.Precision.Right, f.Precision.Of, f.TargetPrecision)
	}
	for _, l := range f.Languages {
		i := slices.IndexFunc(f.ByLanguage, func(s Slice) bool { return s.Name == l })
		if i < 0 || !(f.LanguageTarget > 0) || LowerBound(f.ByLanguage[i].Precision.Right, f.ByLanguage[i].Precision.Of) < f.LanguageTarget {
			return fmt.Errorf("%w: language %q does not show its bound", ErrFile, l)
		}
	}
	return nil
}

// Encode writes the file, indented, ending in a line break.
func (f File) Encode() ([]byte, error) { return encode(f) }

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Verify fails with [ErrMismatch] unless the file is of the reader with this
// fingerprint.
func (f File) Verify(fingerprint string) error {
	if f.Fingerprint == "" || f.Fingerprint != fingerprint {
		return fmt.Errorf("%w: made for %q, this is %q", ErrMismatch, f.Fingerprint, fingerprint)
	}
	return nil
}

// below is the surest that a confirm may be which code does not act on.
var below = math.Nextafter(classifier.ActThreshold, 0)

// Reader is a reader behind its calibration.
type Reader struct {
	inner classifier.Reader
	file  File
	langs Languages
	err   error
}

var _ classifier.Reader = (*Reader)(nil)

// Calibrated puts the calibration between a reader and the code that acts. Its
// probabilities are the corrected ones. A confirm stays below 0.9, so that
// code does not act on it but a main model may, in four cases: the file does
// not check or is of another reader; p is below the file's threshold; the
// reply's language is not among the blessed; langs is nil.
func Calibrated(inner classifier.Reader, f File, langs Languages) *Reader {
	err := f.check()
	if err == nil {
		err = f.Verify(inner.Fingerprint())
	}
	if err == nil && langs == nil {
		err = fmt.Errorf("%w: no language detection", ErrFile)
	}
	return &Reader{inner: inner, file: f, langs: langs, err: err}
}

// Err says why this reader's confirms are never acted on; nil if they can be.
// A server logs it when it starts.
func (r *Reader) Err() error { return r.err }

// Fingerprint is the inner reader's.
func (r *Reader) Fingerprint() string { return r.inner.Fingerprint() }

// Computes says whether the inner reader does.
func (r *Reader) Computes() bool {
	c, ok := r.inner.(classifier.Computing)
	return ok && c.Computes()
}

// Read asks the inner reader and corrects its answer. Its errors are the
// inner reader's.
func (r *Reader) Read(ctx context.Context, in classifier.Input) (classifier.Reading, error) {
	got, err := r.inner.Read(ctx, in)
	if err != nil {
		return classifier.UnclearReading(), err
	}
	if r.err != nil {
		return capped(got), nil
	}
	if !got.Valid() {
		return got, nil // judged, with everything else, by classifier.Read
	}
	got = r.file.Calibrator.Apply(got)
	if got.P[classifier.Confirm] < classifier.ActThreshold {
		return got, nil
	}
	if got.P[classifier.Confirm] < r.file.Threshold || !r.langs.Within(in, r.file.Languages) {
		got = capped(got)
	}
	return got, nil
}

// capped keeps p(confirm) below what code acts on.
func capped(r classifier.Reading) classifier.Reading {
	if p := r.P[classifier.Confirm]; p > below {
		r.P[classifier.Confirm] = below
		r.P[classifier.Unclear] += p - below
	}
	return r
}
