package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/bench/internal/program"
)

// TestBurst plays a small one with the real server.
func TestBurst(t *testing.T) {
	var out, said strings.Builder
	code := command(t.Context(), []string{"-bot", program.Built(t), "-requests", "1500", "-people", "4", "-connections", "8", "-baseline", "1s"}, &out, &said)
	if code != 0 || !strings.Contains(out.String(), ", 0 with something private") {
		t.Fatalf("exit %d\n%s%s", code, out.String(), said.String())
	}
	t.Log(out.String())
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-requests", "0"}, {"-people", "91"}, {"-baseline", "0s"}, {"-what"}, {"more"}, {"-bot", "/bin/false"}} {
		var out, said strings.Builder
		if code := command(t.Context(), args, &out, &said); code != 2 {
			t.Errorf("%v: exit %d, want 2", args, code)
		}
	}
}

// TestEachFaultCounts: whatever does not hold makes exit 1.
func TestEachFaultCounts(t *testing.T) {
	fine := func() result {
		r := replies{said: 2, answered: 2, approved: 2, answers: []time.Duration{1}, approvals: []time.Duration{1}}
		return result{alone: r, beside: r, before: 1024, peak: 2048}
	}
	o := options{flat: 1}
	if f := fine().faults(o); len(f) != 0 {
		t.Fatalf("faults where there are none: %q", f)
	}
	for name, spoil := range map[string]func(*result){
		"not answered": func(r *result) { r.beside.answered = 1 },
		"not approved": func(r *result) { r.beside.approved = 1 },
		"nothing said": func(r *result) { r.beside = replies{} },
		"memory":       func(r *result) { r.peak = 2049 },
		"private":      func(r *result) { r.private = 1 },
		"taken":        func(r *result) { r.unexpected = []string{"forged was answered with 200"} },
	} {
		r := fine()
		spoil(&r)
		if len(r.faults(o)) != 1 {
			t.Errorf("%s: faults %q, want one", name, r.faults(o))
		}
	}
}

func TestGrep(t *testing.T) {
	f := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(f, []byte("one\n+12025550199 said\nmarzipan 2025550199\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, found, err := grep(f, []string{"12025550199", "marzipan"}); lines != 3 || found != 2 || err != nil {
		t.Errorf("%d lines, %d found, %v", lines, found, err)
	}
}
