package queue_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/internal/queue"
)

func TestQueue_IsFirstInFirstOut(t *testing.T) {
	var q queue.Queue[int]
	for i := range 4 {
		q.Push(i)
	}
	if got := q.Pop(3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("the first three are %v", got)
	}
	q.Push(4)
	if got := q.Pop(10); !slices.Equal(got, []int{3, 4}) || q.Len() != 0 {
		t.Errorf("the rest is %v, and %d wait", got, q.Len())
	}
	if got := q.Pop(10); len(got) != 0 {
		t.Errorf("an empty queue gave %v", got)
	}
}

func TestQueue_AnItemIsRemovedOrPoppedNeverBoth(t *testing.T) {
	var q queue.Queue[int]
	for i := range 3 {
		q.Push(i)
	}
	if !q.Remove(1) || q.Remove(1) {
		t.Error("1 is removed once")
	}
	if got := q.Pop(2); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("the first two are %v", got)
	}
	if q.Remove(2) {
		t.Error("2 was popped and removed")
	}
}
