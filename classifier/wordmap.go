package classifier

import (
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
)

// wordMap is a map of words that is filled once and then only read. The lexicon has some 70,000 words in such maps: as maps
// of Go's they take three times the memory, and the collector follows a pointer for each word, each time.
type wordMap[V comparable] struct {
	open map[string]V // until close

	seed   maphash.Seed
	keys   string // all words, one behind the other
	slots  []wordSlot
	values []V // each value once
}

// wordSlot is a word's place: where it stands in the keys, a piece of its hash, and its value's index. n is 0 in a free one.
type wordSlot struct {
	at    uint32
	n     uint8
	hash  uint8
	value uint16
}

func newWordMap[V comparable](size int) wordMap[V] {
	return wordMap[V]{open: make(map[string]V, size)}
}

// at is the value of a word; the zero value of one that is not there.
func (m *wordMap[V]) at(w string) V {
	v, _ := m.get(w)
	return v
}

func (m *wordMap[V]) get(w string) (v V, ok bool) {
	if m.open != nil {
		v, ok = m.open[w]
		return v, ok
	}
	if w == "" {
		return v, false
	}
	h := maphash.String(m.seed, w)
	for i := m.first(h); m.slots[i].n > 0; i = m.next(i) {
		s := &m.slots[i]
		if s.hash == uint8(h) && int(s.n) == len(w) && m.keys[s.at:int(s.at)+len(w)] == w { //nolint:gosec // a piece of the hash
			return m.values[s.value], true
		}
	}
	return v, false
}

// first is the slot in which a word of that hash stands unless it is taken, and next the one to look at then.
func (m *wordMap[V]) first(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(len(m.slots)))
	return int(hi) //nolint:gosec // below the number of slots
}

func (m *wordMap[V]) next(i int) int {
	if i++; i < len(m.slots) {
		return i
	}
	return 0
}

// close ends the filling. Words are of the lexicon, so that one that is empty or longer than 255 bytes is a build mistake,
// as are more than 65,536 different values.
func (m *wordMap[V]) close() {
	open := m.open
	*m = wordMap[V]{seed: maphash.MakeSeed(), slots: make([]wordSlot, 2*len(open)+1)} // half of them free, at least one
	index := map[V]uint16{}
	var keys strings.Builder
	for w, v := range open {
		if w == "" || len(w) > math.MaxUint8 {
			panic("classifier: the lexicon has a word of no use: " + w)
		}
		k, there := index[v]
		if !there {
			if len(m.values) > math.MaxUint16 {
				panic("classifier: the lexicon has too many different values")
			}
			k = uint16(len(m.values)) //nolint:gosec // checked above
			index[v], m.values = k, append(m.values, v)
		}
		h := maphash.String(m.seed, w)
		i := m.first(h)
		for m.slots[i].n > 0 {
			i = m.next(i)
		}
		m.slots[i] = wordSlot{at: uint32(keys.Len()), n: uint8(len(w)), hash: uint8(h), value: k} //nolint:gosec // of words, which are short
		keys.WriteString(w)
	}
	m.keys = keys.String()
}
