package offers_test

import (
	"testing"

	"github.com/countersign/countersign/offers"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A yes wakes who reads events, and not who sends texts; whatever may have put a text in line wakes both.
func TestWake(t *testing.T) {
	var w offers.Wake
	w.Signal() // nobody waits
	events, line := w.C(), w.InLine()
	if closed(events) || closed(line) {
		t.Fatal("a signal from before reached who waits since")
	}
	w.SignalEvents()
	if !closed(events) || closed(line) {
		t.Errorf("after SignalEvents: events woken %v, line woken %v", closed(events), closed(line))
	}
	events = w.C()
	if closed(events) {
		t.Error("one signal woke twice")
	}
	w.Signal()
	if !closed(events) || !closed(line) {
		t.Errorf("after Signal: events woken %v, line woken %v", closed(events), closed(line))
	}
}
