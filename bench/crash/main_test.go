package main

import (
	"strings"
	"testing"
)

// TestTenKills plays a short run; the whole of it is a command.
func TestTenKills(t *testing.T) {
	var out, said strings.Builder
	code := command(t.Context(), []string{"-kills", "10", "-stores", "sqlite", "-people", "4", "-endpoint=false"}, &out, &said)
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
