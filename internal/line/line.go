// Package line keeps calls in the order in which they came, until somebody takes several of them to do together.
package line

import "sync"

// Line is the calls that wait, in order. The zero value is empty.
type Line[C comparable] struct {
	mu    sync.Mutex
	calls []C
}

// Join puts a call at the end.
func (l *Line[C]) Join(c C) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// Leave takes a call out. false: somebody has taken it to be done.
func (l *Line[C]) Leave(c C) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.calls {
		if other == c {
			l.calls = append(l.calls[:i], l.calls[i+1:]...)
			return true
		}
	}
	return false
}

// Next takes the first calls out, at most so many.
func (l *Line[C]) Next(most int) []C {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(most, len(l.calls))
	taken := append([]C(nil), l.calls[:n]...)
	rest := append(l.calls[:0], l.calls[n:]...)
	clear(l.calls[len(rest):]) // or what is done would be kept from the collector
	l.calls = rest
	return taken
}

// Len is how many calls wait.
func (l *Line[C]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}
