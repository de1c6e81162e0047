package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/countersign/countersign/classifier"
)

// ErrWeights says that a weights file is damaged, of another version, or the
// zero model.
var ErrWeights = errors.New("local: weights cannot be used")

const (
	magic         = "CSRD"
	formatVersion = 1
	kindName      = "local"
	maxHidden     = 64
	maxColumns    = maxHidden + classifier.Classes
	maxLangs      = 15
)

// Model is trained weights, ready to read with. The zero Model reads nothing.
//
// For features f with values v, a row of the table holds per feature first
// the weights of the hidden units, then those of the classes:
//
//	hidden = tanh(bias + Σ v·W[f][:h])
//	logits = outBias + Σ v·W[f][h:] + hidden·out
type Model struct {
	bits   uint
	hidden int
	scale  []float32 // per column, of the int8 table
	table  []byte    // (1<<bits) rows of hidden+Classes int8
	bias   []float32 // hidden
	out    []float32 // hidden × Classes
	outB   []float32 // Classes

	langs     []string // names; index is the bit in the vocabulary
	langBits  uint
	langScale []float32
	langTable []byte // (1<<langBits) rows of len(langs) int8
	langB     []float32

	vocab  map[uint32]uint16
	corpus [sha256.Size]byte // hash of the training files
	inputs [sha256.Size]byte // hash of the features it was trained on
	sum    [sha256.Size]byte // hash of the encoded file
}

// Corpus is the SHA-256, in hex, of the files the model was trained on, as
// [CorpusHash] gives it.
func (m *Model) Corpus() string { return hex.EncodeToString(m.corpus[:]) }

// Languages are the ISO 639-1 codes that training saw, in table order.
func (m *Model) Languages() []string { return append([]string(nil), m.langs...) }

// Encode writes the model: the same model always gives the same bytes.
func (m *Model) Encode() []byte {
	var b bytes.Buffer
	le := binary.LittleEndian
	u32 := func(v int) { _ = binary.Write(&b, le, uint32(v)) }
	f32 := func(vs []float32) {
		u32(len(vs))
		for _, v := range vs {
			u32(int(math.Float32bits(v)))
		}
	}
	b.WriteString(magic)
	u32(formatVersion)
	b.Write(m.corpus[:])
	b.Write(m.inputs[:])
	u32(int(m.bits))
	u32(m.hidden)
	f32(m.scale)
	f32(m.bias)
	f32(m.out)
	f32(m.outB)
	u32(len(m.langs))
	for _, l := range m.langs {
		u32(len(l))
		b.WriteString(l)
	}
	u32(int(m.langBits))
	f32(m.langScale)
	f32(m.langB)
	keys := sortedKeys(m.vocab)
	u32(len(keys))
	for _, k := range keys {
		u32(int(k))
		_ = binary.Write(&b, le, m.vocab[k])
	}
	b.Write(m.table)
	b.Write(m.langTable)
	return b.Bytes()
}

// Decode reads what [Model.Encode] wrote. The model keeps a reference to b.
// It fails with [ErrWeights].
func Decode(b []byte) (*Model, error) {
	d := decoder{b: b}
	if string(d.take(len(magic))) != magic {
		return nil, fmt.Errorf("%w: no weights file", ErrWeights)
	}
	if v := d.u32(); v != formatVersion {
		return nil, fmt.Errorf("%w: format version %d, want %d", ErrWeights, v, formatVersion)
	}
	m := &Model{sum: sha256.Sum256(b)}
	copy(m.corpus[:], d.take(sha256.Size))
	copy(m.inputs[:], d.take(sha256.Size))
	m.bits = uint(d.u32())
	m.hidden = d.u32()
	m.scale, m.bias, m.out, m.outB = d.f32(), d.f32(), d.f32(), d.f32()
	for n := d.u32(); n > 0 && !d.bad && len(m.langs) <= maxLangs; n-- {
		m.langs = append(m.langs, string(d.take(d.u32())))
	}
	m.langBits = uint(d.u32())
	m.langScale, m.langB = d.f32(), d.f32()
	n := d.u32()
	if n > len(d.b)/6 {
		d.bad = true
		n = 0
	}
	m.vocab = make(map[uint32]uint16, n)
	for range n {
		k := uint32(d.u32())
		v := d.take(2)
		if d.bad {
			break
		}
		m.vocab[k] = binary.LittleEndian.Uint16(v)
	}
	if d.bad || m.bits < 8 || m.bits > 24 || m.langBits < 8 || m.langBits > 24 || m.hidden > maxHidden ||
		len(m.langs) == 0 || len(m.langs) > maxLangs || len(m.scale) != m.hidden+classifier.Classes ||
		len(m.bias) != m.hidden || len(m.out) != m.hidden*classifier.Classes || len(m.outB) != classifier.Classes ||
		len(m.langScale) != len(m.langs) || len(m.langB) != len(m.langs) {
		return nil, fmt.Errorf("%w: header does not fit together", ErrWeights)
	}
	m.table = d.take((1 << m.bits) * (m.hidden + classifier.Classes))
	m.langTable = d.take((1 << m.langBits) * len(m.langs))
	if d.bad || len(d.b) != 0 {
		return nil, fmt.Errorf("%w: length is wrong", ErrWeights)
	}
	for _, fs := range [][]float32{m.scale, m.bias, m.out, m.outB, m.langScale, m.langB} {
		for _, f := range fs {
			if f != f || f > math.MaxFloat32 || f < -math.MaxFloat32 {
				return nil, fmt.Errorf("%w: a weight is no number", ErrWeights)
			}
		}
	}
	return m, nil
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad = true
		d.b = nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) u32() int {
	v := d.take(4)
	if d.bad {
		return 0
	}
	return int(binary.LittleEndian.Uint32(v))
}

func (d *decoder) f32() []float32 {
	n := d.u32()
	if n > maxColumns*classifier.Classes {
		d.bad = true
		return nil
	}
	vs := make([]float32, n)
	for i := range vs {
		vs[i] = math.Float32frombits(uint32(d.u32()))
	}
	return vs
}

// quantise turns rows of float32 into int8 with one scale per column.
func quantise(rows []float32, columns int) (table []byte, scale []float32) {
	scale = make([]float32, columns)
	for i, v := range rows {
		if v < 0 {
			v = -v
		}
		scale[i%columns] = max(scale[i%columns], v)
	}
	for c := range scale {
		scale[c] /= 127
	}
	table = make([]byte, len(rows))
	for i, v := range rows {
		if s := scale[i%columns]; s > 0 {
			q := float64(v) / float64(s)
			table[i] = byte(int8(math.RoundToEven(q)))
		}
	}
	return table, scale
}

// score gives the logits of the classes. Rows of features with one value, and there are few values, are added up as
// whole numbers before they are multiplied.
func (m *Model) score(fs []feature) (z [classifier.Classes]float64) {
	columns := m.hidden + classifier.Classes
	var acc [maxColumns]float32
	a := acc[:columns]
	var sums [12]rowSum
	used, g := 0, 0
	for _, f := range fs {
		if used == 0 || sums[g].value != f.val || sums[g].rows == maxRows {
			for g = 0; g < used && (sums[g].value != f.val || sums[g].rows == maxRows); g++ {
			}
			if g == len(sums) {
				for i := range sums {
					sums[i].addTo(a)
				}
				used, g = 0, 0
			}
			if g == used {
				sums[g], used = rowSum{value: f.val}, used+1
			}
		}
		sums[g].add(m.table[int(f.idx)*columns:][:columns])
	}
	for i := range sums[:used] {
		sums[i].addTo(a)
	}
	for k := range z {
		z[k] = float64(m.outB[k]) + float64(a[m.hidden+k])*float64(m.scale[m.hidden+k])
	}
	for j := range m.hidden {
		h := float64(tanh32(a[j]*m.scale[j] + m.bias[j]))
		for k := range z {
			z[k] += h * float64(m.out[j*classifier.Classes+k])
		}
	}
	return z
}

// rowSum is the sum of rows of int8 whose features have one value: eight columns at a time, each in 16 bits of a word, where it
// stands 128 higher for each row, so that it is no negative number.
type rowSum struct {
	value float32
	rows  int
	even  [maxColumns / 8]uint64 // of columns 0, 2, 4 and 6 of each eight
	odd   [maxColumns / 8]uint64
	rest  [7]int32 // columns behind the last eight
}

// maxRows is how many rows 16 bits have room for.
const maxRows = math.MaxUint16 / math.MaxUint8

func (s *rowSum) add(row []byte) {
	const signs, lanes = 0x8080808080808080, 0x00ff00ff00ff00ff
	s.rows++
	i := 0
	for ; len(row) >= 8; row = row[8:] {
		w := binary.LittleEndian.Uint64(row) ^ signs
		s.even[i] += w & lanes
		s.odd[i] += w >> 8 & lanes
		i++
	}
	for k, b := range row {
		s.rest[k] += int32(int8(b)) //nolint:gosec // a weight is a signed byte
	}
}

// addTo adds the sum, times the value, to a.
func (s *rowSum) addTo(a []float32) {
	i := 0
	for ; len(a) >= 8; a = a[8:] {
		for k := range 8 {
			w := s.even[i]
			if k%2 == 1 {
				w = s.odd[i]
			}
			a[k] += float32(s.value * float32(int(w>>(k/2*16)&0xffff)-128*s.rows))
		}
		i++
	}
	for k := range a {
		a[k] += float32(s.value * float32(s.rest[k]))
	}
}

func softmax(z []float64, p []float64) {
	top := z[0]
	for _, v := range z[1:] {
		top = max(top, v)
	}
	sum := 0.0
	for k, v := range z {
		p[k] = exp(v - top)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
}

// exp and tanh32 are our own, since the standard library's differ in the last
// bit between processors and weights must be the same bytes everywhere. The
// conversions around products keep a compiler from fusing them.
func exp(x float64) float64 {
	if x < -700 {
		return 0
	}
	if x > 700 {
		x = 700
	}
	const ln2 = 0.6931471805599453
	k := math.Floor(float64(x/ln2) + 0.5)
	r := x - float64(k*ln2)
	// Taylor, |r| ≤ 0.35: error below 1e-13.
	s, t := 1.0, 1.0
	for i := 1; i <= 12; i++ {
		t = float64(t*r) / float64(i)
		s += t
	}
	return math.Ldexp(s, int(k))
}

func tanh32(x float32) float32 {
	if x > 9 {
		return 1
	}
	if x < -9 {
		return -1
	}
	e := exp(2 * float64(x))
	return float32((e - 1) / (e + 1))
}

func sqrt(x float64) float64 { return math.Sqrt(x) } // exact by IEEE 754, the same everywhere
