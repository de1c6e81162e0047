package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

const stream = `
{"config": {"db": "file:///tmp/x"}}
{"finding": {"osv": "GO-2", "fixed_version": "v1.2.0", "trace": [{"module": "stdlib"}]}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.3.0", "trace": [{"module": "m", "package": "m/p"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.1.0", "trace": [{"module": "stdlib", "function": "Dial"}, {"module": "ours", "function": "main"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.1.0", "trace": [{"module": "stdlib", "function": "Read"}]}}
`

func TestOnlyCalledCodeCounts(t *testing.T) {
	found, err := called(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0] != (fault{"GO-1", "stdlib", "v1.1.0"}) {
		t.Errorf("found %v", found)
	}
}

func TestSilenceIsNoAllClear(t *testing.T) {
	for _, s := range []string{"", "{}", `{"config": `} {
		if found, err := called(strings.NewReader(s)); err == nil {
			t.Errorf("%q: %v, want an error", s, found)
		}
	}
}

func TestAcceptedUntilItsDay(t *testing.T) {
	found := []fault{{"GO-1", "stdlib", "v1.1.0"}}
	day := func(s string) time.Time {
		d, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		list string
		now  string
		bad  int
	}{
		{"[]", "2026-11-29T00:00:00Z", 1},
		{"[{id: GO-2, until: 2027-01-31, why: w}]", "2026-11-29T00:00:00Z", 1},
		{"[{id: GO-1, until: 2027-01-31, why: w}]", "2027-01-31T23:59:59Z", 0},
		{"[{id: GO-1, until: 2027-01-31, why: w}]", "2027-02-01T00:00:00Z", 1},
	} {
		list, err := readAccepted([]byte(c.list))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if bad := report(found, list, day(c.now), &out); bad != c.bad {
			t.Errorf("%s on %s: %d not accepted, want %d\n%s", c.list, c.now, bad, c.bad, out.String())
		}
	}
}

func TestEntriesNeedADayAndAReason(t *testing.T) {
	for _, s := range []string{
		"[{id: GO-1, why: w}]", "[{id: GO-1, until: soon, why: w}]", "[{id: GO-1, until: 2027-01-31}]",
		"[{until: 2027-01-31, why: w}]", "[{id: GO-1, until: 2027-01-31, why: w, for: ever}]",
	} {
		if list, err := readAccepted([]byte(s)); err == nil {
			t.Errorf("%s: %v, want an error", s, list)
		}
	}
}
