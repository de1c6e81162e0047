package channel

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The expected numbers come from Twilio's own calculator; testdata/segments.mjs
// says how.
func TestCountSegments(t *testing.T) {
	raw, err := os.ReadFile("testdata/segments.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Oracle string
		Cases  []struct {
			Text     string
			Encoding Encoding
			Units    int
			Sizes    []int
		}
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) < 300 || !strings.Contains(golden.Oracle, "1.3.0") {
		t.Fatalf("%d cases from %q", len(golden.Cases), golden.Oracle)
	}
	for _, c := range golden.Cases {
		got := CountSegments(c.Text)
		if got.Encoding != c.Encoding || got.Units != c.Units || !slices.Equal(got.Sizes, c.Sizes) {
			t.Errorf("%.40q (%d runes): %s %d %v, want %s %d %v", c.Text, utf8.RuneCountInString(c.Text),
				got.Encoding, got.Units, got.Sizes, c.Encoding, c.Units, c.Sizes)
		}
	}
}

// What the calculator does not fix: a cluster larger than a segment, and bytes
// that are not UTF-8.
func TestCountSegmentsOfOddTexts(t *testing.T) {
	long := CountSegments("e" + strings.Repeat("\u0301", 99))
	if want := []int{67, 33}; long.Encoding != UCS2 || !slices.Equal(long.Sizes, want) {
		t.Errorf("a cluster of 100 units: %v, want %v", long.Sizes, want)
	}
	if bad := CountSegments("ok\xff"); bad.Encoding != UCS2 || bad.Units != 3 || bad.Count() != 1 {
		t.Errorf("a bad byte: %+v", bad)
	}
}

func FuzzCountSegments(f *testing.F) {
	f.Add("a👍🏽€")
	f.Add(strings.Repeat("’👩‍👩‍👧‍👦", 30))
	f.Fuzz(func(t *testing.T, text string) {
		s := CountSegments(text)
		single, multi := 160, 153
		if s.Encoding == UCS2 {
			single, multi = 70, 67
		}
		sum := 0
		for i, n := range s.Sizes {
			sum += n
			if n > multi && (len(s.Sizes) > 1 || n > single) {
				t.Fatalf("segment %d holds %d of %s", i, n, s.Encoding)
			}
			if n == 0 && text != "" {
				t.Fatalf("segment %d is empty", i)
			}
		}
		if sum != s.Units || (s.Encoding == UCS2 && sum != utf16Len(text)) || s.Count() < 1 {
			t.Fatalf("units %d in %v", s.Units, s.Sizes)
		}
	})
}
