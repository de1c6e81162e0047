package main

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/bench/internal/program"
)

// TestTenKills plays a short run; the whole of it is a command.
func TestTenKills(t *testing.T) {
	var out, said strings.Builder
	code := command(t.Context(), []string{"-bot", program.Built(t), "-kills", "10", "-stores", "sqlite", "-people", "4", "-endpoint=false"}, &out, &said)
	if code != 0 || !strings.HasSuffix(out.String(), ": 0, 0, 0, 0\n") {
		t.Fatalf("exit %d\n%s%s", code, out.String(), said.String())
	}
	t.Log(out.String())
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-kills", "0"}, {"-people", "91"}, {"-what"}, {"more"}, {"-stores", "paper", "-bot", "/bin/false"}} {
		var out, said strings.Builder
		if code := command(t.Context(), args, &out, &said); code != 2 {
			t.Errorf("%v: exit %d, want 2", args, code)
		}
	}
}

// TestEachLossCounts: whatever goes wrong is bad.
func TestEachLossCounts(t *testing.T) {
	fine := counts{kills: 1, approvals: 1}
	if fine.bad() {
		t.Fatal("a run in which nothing was lost is bad")
	}
	for _, c := range []counts{{lost: 1}, {lostApprovals: 1}, {double: 1}, {withoutYes: 1}, {faults: []string{"x"}}} {
		if c = c.plus(fine); !c.bad() {
			t.Errorf("not bad: %+v", c)
		}
	}
	if !(counts{kills: 300}).bad() {
		t.Error("a run in which nobody approved anything proves nothing")
	}
}

func TestDelays(t *testing.T) {
	d := delays{1200 * time.Millisecond, 20 * time.Millisecond, 10 * time.Millisecond}
	if got, want := d.String(), "3, median 20 ms, 99 % within 1200 ms, the latest 1200 ms, 1 over 1.1s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (delays)(nil).at(1); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

// TestAfter: what counts is the longest that a server was up without bringing what was due before a kill.
func TestAfter(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var r record
	r.add(outage{killed: at(10), up: at(12)})
	r.add(outage{killed: at(13), up: at(20)})
	for _, c := range []struct{ known, came, want int }{
		{5, 8, 0},   // before any kill
		{11, 12, 0}, // known after the kill
		{5, 13, 1},
		{5, 26, 6}, // a second kill came between: the longer of both waits
		{12, 21, 1},
	} {
		if got := r.after(at(c.known), at(c.came)); got != time.Duration(c.want)*time.Second {
			t.Errorf("known at %d, came at %d: %v, want %d s", c.known, c.came, got, c.want)
		}
	}
}
