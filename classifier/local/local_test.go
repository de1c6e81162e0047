package local

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/corpus"
)

func input(t testing.TB, text string, offers ...string) classifier.Input {
	t.Helper()
	in := classifier.Input{Newest: classifier.NewWords(text)}
	for _, o := range offers {
		l, err := classifier.ParseLabel(o)
		if err != nil {
			t.Fatal(err)
		}
		in.Offers = append(in.Offers, l)
	}
	return in
}

func embedded(t testing.TB) *Reader {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// some takes every n-th example, so that training is quick.
func some(t testing.TB, n int) []Example {
	t.Helper()
	all, err := ReadCorpus(corpus.Train())
	if err != nil {
		t.Fatal(err)
	}
	var out []Example
	for i := 0; i < len(all); i += n {
		out = append(out, all[i])
	}
	return out
}

var quick = Options{Epochs: 2, Members: 2, Hidden: 4, Bits: 12}

func TestTrainingRepeatsByteForByte(t *testing.T) {
	examples := some(t, 25)
	train := func() []byte {
		m, err := Train(context.Background(), examples, quick)
		if err != nil {
			t.Fatal(err)
		}
		return m.Encode()
	}
	a := train()
	before := runtime.GOMAXPROCS(1)
	b := train()
	runtime.GOMAXPROCS(before)
	if !bytes.Equal(a, b) {
		t.Fatal("the same corpus gave other weights")
	}
	m, err := Decode(a)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Encode(), a) {
		t.Error("decoded weights encode otherwise")
	}
}

// The embedded weights were made from the embedded corpus by this code: after
// a change of corpus, features or lexicon, `bot train` has to run again.
func TestEmbeddedWeightsAreNotStale(t *testing.T) {
	r := embedded(t)
	want, err := CorpusHash(corpus.Train())
	if err != nil {
		t.Fatal(err)
	}
	if r.Corpus() != want {
		t.Errorf("weights are of corpus %s, this is %s: train again", r.Corpus(), want)
	}
	rows, _, err := r.model.inputRows(some(t, 1), Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if inputsHash(rows) != r.model.inputs {
		t.Error("features of the corpus are no longer those of training (code or lexicon changed): train again")
	}
	if n := len(weightsFile); n > 8<<20 {
		t.Errorf("weights of %d bytes, at most 8 MiB are allowed", n)
	}
}

func TestReads(t *testing.T) {
	r := embedded(t)
	for _, c := range []struct {
		text, offer string
		want        classifier.Class
	}{
		{"ya send it", "send email to Dana", classifier.Confirm},
		{"yes", "send email to Dana", classifier.Confirm},
		{"Yes.", "pay 412.00 USD to Acme Tools", classifier.Confirm},
		{"yes do it", "delete 14 files", classifier.Confirm},
		{"👍🏽", "cancel lunch with Priya", classifier.Confirm},
		{"yes cancel it", "cancel lunch with Priya", classifier.Confirm},
		{"wait no", "send email to Dana", classifier.Decline},
		{"keep it", "delete 14 files", classifier.Decline},
		{"ok but cc Sam", "send email to Dana", classifier.Modify},
		{"thanks", "send email to Dana", classifier.Unclear},
		{"yes?", "send email to Dana", classifier.Unclear},
	} {
		got, err := r.Read(context.Background(), input(t, c.text, c.offer))
		if err != nil {
			t.Fatal(err)
		}
		if got.Class != c.want {
			t.Errorf("%q to %q reads as %v (%.2f), want %v", c.text, c.offer, got.Class, got.P, c.want)
		}
	}
}

func TestZeroReaderNeverConfirms(t *testing.T) {
	for name, r := range map[string]*Reader{"nil": nil, "zero": {}} {
		got, err := r.Read(context.Background(), input(t, "yes", "send email to Dana"))
		if !errors.Is(err, ErrWeights) || got.Class != classifier.Unclear || got.P[classifier.Confirm] != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if r.Fingerprint() != "" {
			t.Errorf("%s has a fingerprint, which a calibration could match", name)
		}
	}
	if _, err := NewReader(&Model{}); !errors.Is(err, ErrWeights) {
		t.Errorf("the zero model makes a reader: %v", err)
	}
}

func TestDamagedWeightsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"magic":     func(b []byte) []byte { b[0]++; return b },
		"version":   func(b []byte) []byte { b[4]++; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"longer":    func(b []byte) []byte { return append(b, 0) },
		"bits":      func(b []byte) []byte { b[72] = 3; return b },
		"header":    func(b []byte) []byte { return b[:100] },
		"no number": func(b []byte) []byte { copy(b[84:], []byte{0, 0, 0xc0, 0x7f}); return b },
	} {
		if _, err := Decode(spoil([]byte(weightsFile))); !errors.Is(err, ErrWeights) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFingerprintNamesTheWeights(t *testing.T) {
	r := embedded(t)
	if !strings.HasPrefix(r.Fingerprint(), "local/1/sha256:") {
		t.Error(r.Fingerprint())
	}
	m, err := Train(context.Background(), some(t, 50), quick)
	if err != nil {
		t.Fatal(err)
	}
	m, err = Decode(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewReader(m)
	if err != nil {
		t.Fatal(err)
	}
	if other.Fingerprint() == r.Fingerprint() {
		t.Error("two models, one fingerprint")
	}
}

func TestExplainNamesWhatPushed(t *testing.T) {
	r := embedded(t)
	pushes := r.Explain(input(t, "yes", "send email to Dana"), 8)
	if len(pushes) != classifier.Classes {
		t.Fatalf("%d classes explained", len(pushes))
	}
	up := pushes[classifier.Confirm].Up
	found := false
	for i, p := range up {
		found = found || strings.Contains(p.Feature, "yes") || strings.Contains(p.Feature, "[assent]")
		if p.By <= 0 || i > 0 && p.By > up[i-1].By {
			t.Errorf("pushes are not in order: %+v", up)
		}
	}
	if !found {
		t.Errorf("nothing of %+v names the yes", up)
	}
	if got := r.Explain(input(t, "yes", "send email to Dana"), 8); got[1].Up[0] != up[0] {
		t.Error("the explanation does not repeat")
	}
}

func TestReadsTheSameAtOnce(t *testing.T) {
	r := embedded(t)
	texts := []string{"yes", "no", "yes but cc Sam and Lee please", "ok?", "ja graag", "はい", "👍", strings.Repeat("yes and ", 500)}
	want := map[string]classifier.Reading{}
	for _, s := range texts {
		want[s], _ = r.Read(context.Background(), input(t, s, "send email to Dana"))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				s := texts[i%len(texts)]
				if got, _ := r.Read(context.Background(), input(t, s, "send email to Dana")); got != want[s] {
					t.Errorf("%q read otherwise at the same time as others", s[:min(len(s), 20)])
				}
			}
		})
	}
	wg.Wait()
}

func TestLanguage(t *testing.T) {
	r := embedded(t)
	all := r.model.Languages()
	for _, c := range []struct {
		text    string
		neutral bool
		in      string // the only language blessed
		within  bool
	}{
		{"👍", true, "", true},
		{"ok", true, "", true},
		{"Y", true, "", true},
		{"yes please go ahead", false, "en", true},
		{"yes please go ahead", false, "es", false},
		{"sí, envíalo por favor", false, "es", true},
		{"sí, envíalo por favor", false, "en", false},
		{"ja bitte abschicken", false, "de", true},
		{"はい、送ってください", false, "ja", true},
		{"好的,发吧", false, "zh", true},
		{"हाँ भेज दो", false, "hi", true},
		{"zsömlét vágyom ebédkor", false, "en", false}, // a language that training never saw
	} {
		in := input(t, c.text, "send email to Dana")
		l := r.Language(in)
		if l.Neutral != c.neutral || r.Within(in, []string{c.in}) != c.within {
			t.Errorf("%q: %+v, within %q: %v", c.text, l, c.in, !c.within)
		}
	}
	if (Language{}).Within(all) {
		t.Error("a reply of no known language is within the known ones")
	}
}

func TestCorpusErrorsNameTheLine(t *testing.T) {
	if _, err := Train(context.Background(), nil, Options{}); !errors.Is(err, ErrCorpus) {
		t.Errorf("trained on nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Train(ctx, some(t, 200), quick); !errors.Is(err, context.Canceled) {
		t.Errorf("training did not end with its context: %v", err)
	}
}

// Own arithmetic, so that weights are the same on every processor.
func TestExpAndTanh(t *testing.T) {
	for x := -40.0; x < 40; x += 0.37 {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-12*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
		if got, want := float64(tanh32(float32(x))), math.Tanh(float64(float32(x))); math.Abs(got-want) > 1e-6 {
			t.Errorf("tanh(%v) = %v, want %v", x, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"yes", "no?", "\xff\xfe", "y\u0301e\u200bs", strings.Repeat("a", 70000), "\u202eyes", "한국어", "👍🏽👍🏽", "10:30.5,", "...", "…"} {
		f.Add(s, "send email to Dana", "earlier")
	}
	r := embedded(f)
	f.Fuzz(func(t *testing.T, text, offer, earlier string) {
		in := classifier.Input{Newest: classifier.NewWords(text), Earlier: []classifier.Words{classifier.NewWords(earlier)}}
		if l, err := classifier.ParseLabel(offer); err == nil {
			in.Offers = append(in.Offers, l)
		}
		got, err := r.Read(context.Background(), in)
		if err != nil || !got.Valid() {
			t.Fatalf("%+v, %v", got, err)
		}
		r.Language(in)
	})
}

// What is added up as whole numbers is what the formula of Model gives, also where one value has more rows than fit, and
// where there are more values than sums.
func TestScoreIsTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		hidden, features int
		values           int // different ones
	}{{0, 30, 3}, {4, 40, 2}, {32, 140, 9}, {32, 2000, 2}, {64, 600, 40}, {maxHidden, 1, 1}, {3, 0, 1}} {
		columns := c.hidden + classifier.Classes
		random := func(n int) []float32 {
			out := make([]float32, n)
			for i := range out {
				out[i] = rng.Float32() - 0.5
			}
			return out
		}
		m := &Model{bits: 8, hidden: c.hidden, scale: random(columns), bias: random(c.hidden), out: random(c.hidden * classifier.Classes),
			outB: random(classifier.Classes), table: make([]byte, columns<<8)}
		for i := range m.table {
			m.table[i] = byte(rng.Uint32())
		}
		m.table[0], m.table[1] = 0x80, 0x7f
		fs, sum := make([]feature, c.features), make([]float64, columns)
		for i := range fs {
			fs[i] = feature{rng.Uint32N(1 << 8), float32(1+rng.IntN(c.values)) / 8}
			for j := range sum {
				sum[j] += float64(fs[i].val) * float64(int8(m.table[int(fs[i].idx)*columns+j]))
			}
		}
		got := m.score(fs)
		for k := range got {
			want := float64(m.outB[k]) + sum[c.hidden+k]*float64(m.scale[c.hidden+k])
			for j := range c.hidden {
				want += math.Tanh(sum[j]*float64(m.scale[j])+float64(m.bias[j])) * float64(m.out[j*classifier.Classes+k])
			}
			if math.Abs(got[k]-want) > 1e-3*(1+math.Abs(want)) {
				t.Errorf("%+v: class %d: %v, want %v", c, k, got[k], want)
			}
		}
	}
}

func benchmarkInputs(b *testing.B) []classifier.Input {
	b.Helper()
	var ins []classifier.Input
	for _, s := range []string{"yes please go ahead with it", "no don't do that, wait until monday", "ok but move it to 3pm", "what is this about again?",
		"sure sounds good to me thx", "stop", "y", "yes", "go ahead and book the earlier flight", "not now, ask me tomorrow morning"} {
		ins = append(ins, input(b, s, "move dentist to Friday 10am"))
	}
	return ins
}

// The whole path of a reply: preparation, the reader and the guards.
func BenchmarkReply(b *testing.B) {
	r, ins := embedded(b), benchmarkInputs(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if v := classifier.Read(context.Background(), r, ins[i%len(ins)], classifier.Options{}); v.Err != nil {
			b.Fatal(v.Err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	r, ins := embedded(b), benchmarkInputs(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := r.Read(context.Background(), ins[i%len(ins)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(); err != nil {
			b.Fatal(err)
		}
	}
}
