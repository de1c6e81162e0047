package offers_test

import (
	"slices"
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

// What is signalled here is told to others; what others have said is not sent back to them.
func TestWakeForwards(t *testing.T) {
	var w offers.Wake
	var told []bool
	w.Forward(func(inLine bool) { told = append(told, inLine) })
	w.Signal()
	w.SignalEvents()
	if !slices.Equal(told, []bool{true, false}) {
		t.Fatalf("told %v", told)
	}
	events, line := w.C(), w.InLine()
	w.Ring(false)
	if !closed(events) || closed(line) {
		t.Errorf("after Ring(false): events woken %v, line woken %v", closed(events), closed(line))
	}
	w.Ring(true)
	if !closed(line) {
		t.Error("after Ring(true) the line is not woken")
	}
	if len(told) != 2 {
		t.Errorf("a ring was forwarded: %v", told)
	}
}
