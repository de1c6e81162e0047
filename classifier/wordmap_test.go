package classifier

import (
	"strconv"
	"testing"
)

// A map that is closed says of every word what it said before, and knows no other, in whichever slots the words stand.
func TestWordMap(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 7, 64, 3000} {
		m := newWordMap[uint16](size)
		want := map[string]uint16{}
		for i := range size {
			w := strconv.Itoa(i * i)
			m.open[w], want[w] = uint16(i%9), uint16(i%9)
		}
		m.close()
		if m.open != nil {
			t.Fatal("a closed map keeps what it was filled from")
		}
		for w, v := range want {
			if got, ok := m.get(w); !ok || got != v || m.at(w) != v {
				t.Errorf("%d words: %q is %d, %v, want %d", size, w, got, ok, v)
			}
		}
		for i := range 3 * size {
			w := strconv.Itoa(i)
			if _, there := want[w]; there {
				continue
			}
			if got, ok := m.get(w); ok || got != 0 {
				t.Errorf("%d words: %q is %d, and was never put there", size, w, got)
			}
		}
		if _, ok := m.get(""); ok {
			t.Error("the empty word is there")
		}
	}
}

// What a table cannot hold is refused when the lexicon is read, not read as something else.
func TestWordMap_Misfits(t *testing.T) {
	long := string(make([]byte, 256))
	for _, w := range []string{"", long} {
		m := newWordMap[uint16](1)
		m.open[w] = 1
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a word of %d bytes was taken", len(w))
				}
			}()
			m.close()
		}()
	}
}
