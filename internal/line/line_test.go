package line_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/internal/line"
)

func TestLine(t *testing.T) {
	var l line.Line[int]
	for i := range 5 {
		l.Join(i)
	}
	if !l.Leave(1) || l.Leave(1) {
		t.Error("1 leaves once")
	}
	if got := l.Next(2); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("the first two are %v", got)
	}
	if l.Leave(2) {
		t.Error("2 was taken")
	}
	l.Join(5)
	if got := l.Next(10); !slices.Equal(got, []int{3, 4, 5}) || l.Len() != 0 {
		t.Errorf("the rest is %v, and %d wait", got, l.Len())
	}
	if got := l.Next(10); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}
