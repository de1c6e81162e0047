// Package local is the reader that is built in: it needs no network, answers
// in microseconds and reads the same words the same way every time.
//
// A reply becomes features: its words in order with what the offer's label
// says masked ("yes book it" to "book a table" is "yes <verb> it"), letter
// n-grams of the words that are the person's own, and the shape of the text.
// A small network with direct connections turns them into a probability for
// each class. The weights are trained from the corpus in this repository by
// [TrainFromFS] and embedded; the same corpus gives the same bytes.
//
// The probabilities are as trained. What they are worth is measured and
// corrected by package calibration.
package local

import (
	"context"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/countersign/countersign/classifier"
)

// The linker puts a string where nobody can write to it, so that its pages stay the file's.
//
//go:embed weights.bin
var weightsFile string

// embeddedWeights are the bytes of the file itself: they are only read.
func embeddedWeights() []byte { return unsafe.Slice(unsafe.StringData(weightsFile), len(weightsFile)) }

//go:embed calibration.json
var calibrationFile []byte

// CalibrationFile is the calibration that ships with the embedded weights.
func CalibrationFile() []byte { return append([]byte(nil), calibrationFile...) }

// Reader reads replies with one model. It is safe for concurrent use.
type Reader struct {
	model   *Model
	neutral map[uint64]bool
	pool    sync.Pool // *extractor
}

var _ classifier.Computing = (*Reader)(nil)

// New is the reader with the embedded weights. It fails with [ErrWeights]
// when they do not load, which a build with a damaged file would do.
func New() (*Reader, error) {
	m, err := Decode(embeddedWeights())
	if err != nil {
		return nil, err
	}
	return NewReader(m)
}

// NewReader is a reader with the given model. It fails with [ErrWeights] for
// a model that was neither trained nor decoded.
func NewReader(m *Model) (*Reader, error) {
	if m == nil || len(m.table) == 0 || len(m.langTable) == 0 {
		return nil, fmt.Errorf("%w: empty model", ErrWeights)
	}
	lex, known := newLexicon(), newVocabulary(m.vocab)
	r := &Reader{model: m, neutral: neutralSet()}
	r.pool.New = func() any {
		return &extractor{lex: lex, known: known, bits: m.bits}
	}
	return r, nil
}

// Fingerprint names the kind, the format version and the weights.
func (r *Reader) Fingerprint() string {
	if r == nil || r.model == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/sha256:%s", kindName, formatVersion, hex.EncodeToString(r.model.sum[:]))
}

// Computes says that the reader only computes: it reads a limited number of words, and waits for nothing.
func (r *Reader) Computes() bool { return true }

// Corpus is the hash of the files that the weights were trained on.
func (r *Reader) Corpus() string { return r.model.Corpus() }

// Read gives the probabilities of the classes; the class is the most probable
// one. It fails with [ErrWeights] on the zero Reader.
func (r *Reader) Read(ctx context.Context, in classifier.Input) (classifier.Reading, error) {
	if r == nil || r.model == nil {
		return classifier.UnclearReading(), fmt.Errorf("%w: empty model", ErrWeights)
	}
	x := r.pool.Get().(*extractor)
	defer r.pool.Put(x)
	x.bits = r.model.bits
	z := r.model.score(x.extractWith(in, classifier.ExplainRead(ctx, in)))
	var out classifier.Reading
	softmax(z[:], out.P[:])
	for k := range out.P {
		if out.P[k] > out.P[out.Class] {
			out.Class = classifier.Class(k)
		}
	}
	return out, nil
}

func wordsOf(ws []classifier.Words, to []string) []string {
	for _, w := range ws {
		to = append(to, w.String())
	}
	return to
}

func labelsOf(ls []classifier.Label, to []string) []string {
	for _, l := range ls {
		to = append(to, l.String())
	}
	return to
}

func labels(ls []classifier.Label) []string { return labelsOf(ls, nil) }

// Within says whether the reply is in a language of the blessed, or needs
// none. It is what package calibration asks before code may act. A reply all
// of whose words one of these languages accounts for is in it, whatever its
// letters look like; where that is not so either, the answer is no.
func (r *Reader) Within(in classifier.Input, blessed []string) bool {
	if r.Language(in).Within(blessed) {
		return true
	}
	language, ok := classifier.Accounted(in)
	return ok && slices.Contains(blessed, language)
}
