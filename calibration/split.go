package calibration

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A part of the corpus that measures must not hold what training saw. Short
// answers cannot help it: there are only so many ways to text "yes". So rows
// of fewer than splitWords words may repeat, and are counted; longer ones may
// not come near any row of training.
const (
	splitWords   = 4
	splitJaccard = 0.85 // of the sets of letter 4-grams
	splitGram    = 4
)

// Near is a row that comes too near to one of training.
type Near struct {
	Row     int     // index of the row
	Train   int     // index of the training row
	Jaccard float64 // 1 for the same text
}

// Split is what [CheckSplit] found.
type Split struct {
	Rows        int
	Near        []Near // longer rows too near to training
	Repeated    int    // shorter rows whose folded text training has too
	Short       int    // rows of fewer than four words
	RepeatedYes int    // of Repeated, those labelled confirm
	ShortYes    int
}

// String is one line for reports.
func (s Split) String() string {
	return fmt.Sprintf("%d rows: %d near-duplicates of training among the %d of %d words or more; of the %d shorter ones %d (%.0f %%) have a text that training has too",
		s.Rows, len(s.Near), s.Rows-s.Short, splitWords, s.Short, s.Repeated, 100*NewCount(s.Repeated, s.Short).Share())
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || unicode.Is(unicode.So, r)
}

// length counts words, where a script without spaces counts two letters as one.
func length(fold string) int {
	n, ideo := 0, 0
	for w := range strings.FieldsSeq(fold) {
		n++
		for _, r := range w {
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
				ideo++
			}
		}
	}
	if ideo > 0 {
		return max(n, (ideo+1)/2)
	}
	return n
}

// grams are the distinct letter 4-grams of a folded text, as sorted hashes.
func grams(fold string) []uint32 {
	rs := []rune(" " + fold + " ")
	var out []uint32
	for i := 0; i+splitGram <= len(rs); i++ {
		h := uint32(2166136261)
		for _, r := range rs[i : i+splitGram] {
			h = (h ^ uint32(r)) * 16777619
		}
		out = append(out, h)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckSplit compares rows with those of training, whatever their offers and
// labels.
func CheckSplit(train, rows []Row) Split {
	exact := map[string]int{}
	index := map[uint32][]int32{}
	sizes := make([]int, len(train))
	for i, t := range train {
		f := folded(t.Text)
		if _, ok := exact[f]; !ok {
			exact[f] = i
		}
		if length(f) < splitWords-1 {
			continue // too short to be near anything of four words
		}
		g := grams(f)
		sizes[i] = len(g)
		for _, h := range g {
			index[h] = append(index[h], int32(i))
		}
	}
	s := Split{Rows: len(rows)}
	shared := make([]int, len(train))
	var touched []int32
	for i, r := range rows {
		f := folded(r.Text)
		same, repeated := exact[f]
		if length(f) < splitWords {
			s.Short++
			yes := r.Label.String() == "confirm"
			if yes {
				s.ShortYes++
			}
			if repeated {
				s.Repeated++
				if yes {
					s.RepeatedYes++
				}
			}
			continue
		}
		if repeated {
			s.Near = append(s.Near, Near{i, same, 1})
			continue
		}
		g := grams(f)
		touched = touched[:0]
		for _, h := range g {
			for _, t := range index[h] {
				if shared[t] == 0 {
					touched = append(touched, t)
				}
				shared[t]++
			}
		}
		best := Near{Row: i}
		for _, t := range touched {
			j := float64(shared[t]) / float64(len(g)+sizes[t]-shared[t])
			if j > best.Jaccard || j == best.Jaccard && int(t) < best.Train {
				best.Jaccard, best.Train = j, int(t)
			}
			shared[t] = 0
		}
		if best.Jaccard >= splitJaccard {
			s.Near = append(s.Near, best)
		}
	}
	return s
}

// Prune gives the rows without those that [CheckSplit] finds too near.
func Prune(train, rows []Row) []Row {
	drop := map[int]bool{}
	for _, n := range CheckSplit(train, rows).Near {
		drop[n.Row] = true
	}
	var out []Row
	for i, r := range rows {
		if !drop[i] {
			out = append(out, r)
		}
	}
	return out
}
