package calibration

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/countersign/countersign/classifier"
)

type english struct{}

func (english) Within(in classifier.Input, blessed []string) bool {
	return in.Newest.String() != "ja" && slices.Contains(blessed, "en")
}

func blessed(t *testing.T) File {
	t.Helper()
	f, err := run(t, set(300, "en"), Options{}).File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func yesTo(t *testing.T, r classifier.Reader, text string) float64 {
	t.Helper()
	got, err := r.Read(context.Background(), classifier.Input{Newest: classifier.NewWords(text)})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Valid() {
		t.Fatalf("%+v is no distribution", got)
	}
	return got.P[classifier.Confirm]
}

func TestFileRoundTrip(t *testing.T) {
	f := blessed(t)
	b, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	g, err := Load(b)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := g.Encode()
	if string(b) != string(c) {
		t.Error("the file does not come back the same")
	}
}

func TestCalibratedActsOnlyWithItsOwnFile(t *testing.T) {
	f := blessed(t)
	if p := yesTo(t, Calibrated(toy(), f, english{}), "yes"); p < classifier.ActThreshold {
		t.Fatalf("p(confirm) = %v: a blessed reader cannot act", p)
	}
	other := toy()
	other.print = "toy/2"
	r := Calibrated(other, f, english{})
	if !errors.Is(r.Err(), ErrMismatch) {
		t.Errorf("Err() = %v", r.Err())
	}
	if p := yesTo(t, r, "yes"); p >= classifier.ActThreshold {
		t.Errorf("p(confirm) = %v with another reader's calibration", p)
	}
	if p := yesTo(t, Calibrated(toy(), File{}, english{}), "yes"); p >= classifier.ActThreshold {
		t.Errorf("p(confirm) = %v with no calibration", p)
	}
	if p := yesTo(t, Calibrated(toy(), f, nil), "yes"); p >= classifier.ActThreshold {
		t.Errorf("p(confirm) = %v with no language detection", p)
	}
}

func TestCalibratedKeepsToBlessedLanguages(t *testing.T) {
	reader := toy()
	reader.say["ja"] = says(classifier.Confirm, 0.99)
	r := Calibrated(reader, blessed(t), english{})
	if p := yesTo(t, r, "ja"); p >= classifier.ActThreshold {
		t.Errorf("p(confirm) = %v in a language that is not blessed", p)
	}
}

func TestCalibratedKeepsToItsThreshold(t *testing.T) {
	f := blessed(t)
	f.Calibrator, f.Threshold = Calibrator{Kind: None}, 0.95
	r := Calibrated(toy(), f, english{})
	if p := yesTo(t, r, "yep"); p >= classifier.ActThreshold {
		t.Errorf("0.93 is under the file's threshold, yet p(confirm) = %v", p)
	}
	if p := yesTo(t, r, "yes"); p != 0.97 {
		t.Errorf("p(confirm) = %v, want 0.97", p)
	}
}

func TestCalibratedPassesErrorsOn(t *testing.T) {
	got, err := Calibrated(toy(), blessed(t), english{}).Read(context.Background(), classifier.Input{Newest: classifier.NewWords("?")})
	if err == nil || got.Class != classifier.Unclear {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, spoil := range map[string]func(m map[string]any){
		"low threshold":  func(m map[string]any) { m["threshold"] = 0.89 },
		"no threshold":   func(m map[string]any) { delete(m, "threshold") },
		"no fingerprint": func(m map[string]any) { m["fingerprint"] = "" },
		"version":        func(m map[string]any) { m["version"] = 2 },
		"unknown field":  func(m map[string]any) { m["treshold"] = 0.9 },
		"no calibrator":  func(m map[string]any) { delete(m, "calibrator") },
		"falling isotonic": func(m map[string]any) {
			m["calibrator"] = map[string]any{"kind": "isotonic", "x": []float64{0.1, 0.9}, "y": []float64{0.9, 0.1}}
		},
		"negative platt":    func(m map[string]any) { m["calibrator"] = map[string]any{"kind": "platt", "a": -1} },
		"claimed precision": func(m map[string]any) { m["precision"] = map[string]any{"right": 70, "of": 70, "lower": 0.999} },
		"no target":         func(m map[string]any) { m["target_precision"] = 0 },
		"foreign language":  func(m map[string]any) { m["languages"] = []string{"en", "fi"} },
	} {
		b, err := blessed(t).Encode()
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		spoil(m)
		b, _ = json.Marshal(m)
		if _, err := Load(b); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	for _, s := range []string{"", "{}", "null", "[]"} {
		if _, err := Load([]byte(s)); err == nil {
			t.Errorf("%q loaded", s)
		}
	}
}
