// Package queue keeps calls in the order in which they came, until somebody takes several of them to do together.
package queue

import (
	"slices"
	"sync"
)

// Queue is a first-in, first-out queue for many goroutines. The zero value is empty.
type Queue[T comparable] struct {
	mu    sync.Mutex
	items []T
}

// Push puts an item at the end.
func (q *Queue[T]) Push(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, item)
}

// Remove takes an item out wherever it stands; false: it is not there, since somebody has popped it.
func (q *Queue[T]) Remove(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.items, item)
	if i < 0 {
		return false
	}
	q.items = slices.Delete(q.items, i, i+1)
	return true
}

// Pop takes the first items out, at most so many; none where the queue is empty.
func (q *Queue[T]) Pop(most int) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most, len(q.items))
	taken := slices.Clone(q.items[:n])
	q.items = slices.Delete(q.items, 0, n)
	return taken
}

// Len is how many items wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}
