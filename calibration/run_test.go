package calibration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/classifier"
)

// scripted is a real reader of a toy kind: it looks a text up.
type scripted struct {
	print string
	say   map[string]classifier.Reading
	asked *int
}

func (s scripted) Read(_ context.Context, in classifier.Input) (classifier.Reading, error) {
	if s.asked != nil {
		*s.asked++
	}
	r, ok := s.say[in.Newest.String()]
	if !ok {
		return classifier.Reading{}, errors.New("no such text")
	}
	return r, nil
}
func (s scripted) Fingerprint() string { return s.print }

func says(c classifier.Class, p float64) classifier.Reading {
	r := classifier.Reading{Class: c}
	r.P[c] = p
	other := classifier.Unclear
	if c == classifier.Unclear {
		other = classifier.Decline
	}
	r.P[other] += 1 - p
	return r
}

// set makes n yeses and n noes with distinct earlier messages, so that every
// row is a question of its own.
func set(n int, lang string) []Row {
	var rows []Row
	for i := range n {
		e := []string{fmt.Sprintf("note %d", i)}
		rows = append(rows,
			Row{Text: "yes", Earlier: e, Offers: []string{"send email to Dana"}, Label: classifier.Confirm, Lang: lang, Tags: []string{"plain"}},
			Row{Text: "no", Earlier: e, Offers: []string{"send email to Dana"}, Label: classifier.Decline, Lang: lang, Tags: []string{"negation"}})
	}
	return rows
}

func toy() scripted {
	return scripted{print: "toy/1", say: map[string]classifier.Reading{
		"yes": says(classifier.Confirm, 0.97), "no": says(classifier.Decline, 0.96),
		"yep": says(classifier.Confirm, 0.93),
	}}
}

func run(t *testing.T, rows []Row, o Options) Result {
	t.Helper()
	o.OmitTimes = true
	res, err := Run(context.Background(), toy(), rows, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestBlessing(t *testing.T) {
	res := run(t, append(set(300, "en"), set(20, "nl")...), Options{})
	if res.Precision.Right != 320 || res.Precision.Of != 320 || res.Recall.Share() != 1 || len(res.Wrong) != 0 {
		t.Fatalf("precision %+v, recall %+v, wrong %v", res.Precision, res.Recall, res.Wrong)
	}
	f, err := res.File()
	if err != nil {
		t.Fatal(err)
	}
	if f.Threshold != 0.9 {
		t.Errorf("threshold %v, want the lowest allowed, 0.9", f.Threshold)
	}
	if strings.Join(f.Languages, " ") != "en" {
		t.Errorf("languages %v: 20 right Dutch confirms show no bound of 0.95", f.Languages)
	}
}

func TestTooFewIsRefused(t *testing.T) {
	res := run(t, set(298, "en"), Options{TargetPrecision: 0.99})
	_, err := res.File()
	if !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "299") {
		t.Fatalf("298 of 298 blessed, or without the number that is needed: %v", err)
	}
	if res.Refused == "" || len(res.Languages) != 0 {
		t.Fatalf("refused %q, languages %v", res.Refused, res.Languages)
	}
}

func TestMistakesRaiseTheThresholdOrRefuse(t *testing.T) {
	rows := set(400, "en")
	wrong := Row{Text: "yep", Earlier: []string{"x"}, Offers: []string{"send email to Dana"}, Label: classifier.Modify, Lang: "en"}
	for i := range 6 {
		w := wrong
		w.Earlier = []string{fmt.Sprint(i)}
		rows = append(rows, w)
	}
	res := run(t, rows, Options{})
	// Whatever the calibrator made of 0.93 and 0.97: every confirm acted on is right.
	if res.refusal != nil || res.Precision.Right != res.Precision.Of {
		t.Fatalf("threshold %v, precision %+v, refusal %v", res.Threshold, res.Precision, res.refusal)
	}
	// The same mistake with the same p as the yeses cannot be told apart.
	for i := range rows {
		if rows[i].Text == "yep" {
			rows[i].Text = "yes"
		}
	}
	res = run(t, rows, Options{TargetPrecision: 0.995})
	if _, err := res.File(); !errors.Is(err, ErrNotShown) {
		t.Fatalf("blessed with %d wrong confirms: %v", len(res.Wrong), err)
	}
	if len(res.Wrong) != 6 {
		t.Errorf("%d wrong confirms listed, want 6", len(res.Wrong))
	}
}

func TestRepeatsByteForByte(t *testing.T) {
	rows := append(set(300, "en"), set(80, "de")...)
	a, b := run(t, rows, Options{}), run(t, rows, Options{Collect: CollectOptions{Workers: 4}})
	for name, f := range map[string]func(Result) ([]byte, error){"json": Result.JSON, "html": Result.HTML} {
		x, err := f(a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := f(b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	html, _ := a.HTML()
	if n := bytes.Count(html, []byte("<svg")); n != 3 {
		t.Errorf("%d plots in the report, want 3", n)
	}
}

func TestReportEscapesTexts(t *testing.T) {
	rows := append(set(3, "en"), Row{Text: `<script>alert(1)</script>`, Earlier: []string{}, Offers: []string{"send email to Dana"}, Label: classifier.Confirm})
	res := run(t, rows, Options{})
	html, err := res.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(html, []byte("<script>")) {
		t.Error("a reply's markup reached the page")
	}
	if !bytes.Contains(html, []byte("&lt;script&gt;")) {
		t.Error("the missed yes is not listed")
	}
}

func TestFailuresReadAsUnclear(t *testing.T) {
	rows := append(set(3, "en"), Row{Text: "sure", Earlier: []string{}, Offers: []string{"send email to Dana"}, Label: classifier.Confirm})
	res := run(t, rows, Options{})
	if res.Failed != 1 {
		t.Fatalf("%d failed, want 1", res.Failed)
	}
	last := res.Outcomes[len(res.Outcomes)-1]
	if last.Acted || last.Class != classifier.Unclear {
		t.Errorf("a failed reading was acted on: %+v", last)
	}
}

func TestResumeAsksOnlyTheRest(t *testing.T) {
	rows := set(10, "en")
	var file bytes.Buffer
	n, stop := 0, errors.New("disk full")
	_, err := Collect(context.Background(), toy(), rows, CollectOptions{Save: func(a Answer) error {
		if n++; n > 7 {
			return stop
		}
		return WriteAnswer(&file, a)
	}})
	if !errors.Is(err, stop) {
		t.Fatalf("a failing save went unnoticed: %v", err)
	}
	file.WriteString(`{"key":"torn`) // what a crash leaves
	have, err := ReadAnswers(&file, "toy/1")
	if err != nil || len(have) != 7 {
		t.Fatalf("%d answers, %v", len(have), err)
	}
	asked, seen := 0, 0
	reader := toy()
	reader.asked = &asked
	all, err := Collect(context.Background(), reader, rows, CollectOptions{Have: have, Progress: func(done, of int) {
		if seen++; of != 20 || done != 7+seen {
			t.Errorf("progress %d of %d", done, of)
		}
	}})
	if err != nil || len(all) != 20 || asked != 13 {
		t.Fatalf("asked %d, have %d: %v", asked, len(all), err)
	}
	for k, a := range have {
		if all[k] != a {
			t.Error("a recorded answer was replaced")
		}
	}
}

func TestAnswersOfAnotherReaderAreRefused(t *testing.T) {
	var b bytes.Buffer
	if err := WriteAnswer(&b, Answer{Key: "k", Fingerprint: "other/1", P: [5]float64{1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAnswers(bytes.NewReader(b.Bytes()), "toy/1"); !errors.Is(err, ErrAnswers) {
		t.Errorf("taken: %v", err)
	}
	if _, err := ReadAnswers(strings.NewReader(`{"key":"k","fingerprint":"toy/1","class":"confirm","p":[0,7,0,0,0]}`+"\n"), ""); !errors.Is(err, ErrAnswers) {
		t.Errorf("a p of 7 taken: %v", err)
	}
	rows := set(2, "en")
	if _, err := Evaluate(context.Background(), rows, Answers{}, Options{}); !errors.Is(err, ErrAnswers) {
		t.Errorf("rows without answers evaluated: %v", err)
	}
}

func TestReplayGivesTheSameResult(t *testing.T) {
	rows := set(300, "en")
	var file bytes.Buffer
	live, err := Run(context.Background(), toy(), rows, Options{OmitTimes: true, Collect: CollectOptions{Save: func(a Answer) error { return WriteAnswer(&file, a) }}})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := ReadAnswers(&file, "")
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := Evaluate(context.Background(), rows, answers, Options{OmitTimes: true})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := live.JSON()
	b, _ := replayed.JSON()
	if !bytes.Equal(a, b) {
		t.Error("the replay differs from the run")
	}
}

func TestOracleAndAdversary(t *testing.T) {
	rows := set(300, "en")
	res, err := Evaluate(context.Background(), rows, Oracle(rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Recall.Right != res.Data.Yes || len(res.Wrong) != 0 {
		t.Errorf("oracle: recall %+v, wrong %d", res.Recall, len(res.Wrong))
	}
	adv, err := Collect(context.Background(), Adversary(), rows, CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range adv {
		if a.Class != classifier.Confirm || a.P[classifier.Confirm] != 1 {
			t.Fatalf("the adversary said %+v", a)
		}
	}
}

func TestCompare(t *testing.T) {
	rows := set(20, "en")
	a := run(t, rows, Options{})
	b, err := Evaluate(context.Background(), rows, Oracle(rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		b.Outcomes[2*i].Acted = false // six yeses missed
	}
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if c.Yeses.OnlyA != 6 || c.Yeses.OnlyB != 0 || math.Abs(c.Yeses.P-2.0/64) > 1e-9 {
		t.Errorf("yeses %+v", c.Yeses)
	}
	if c.Noes.Both != 20 || c.Noes.P != 1 {
		t.Errorf("noes %+v", c.Noes)
	}
	other := run(t, set(21, "en"), Options{})
	if _, err := Compare(a, other); !errors.Is(err, ErrAnswers) {
		t.Errorf("different sets compared: %v", err)
	}
}

func TestTimesAndCost(t *testing.T) {
	rows := set(5, "en")
	clock, spent := time.Unix(0, 0), 0.0
	res, err := Run(context.Background(), toy(), rows, Options{Collect: CollectOptions{
		Now:   func() time.Time { clock = clock.Add(3 * time.Microsecond); return clock },
		Spent: func() float64 { spent += 0.5; return spent },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Times == nil || res.Times.N != 10 || res.Times.MedianUS != 3 || res.Times.TotalCost != 5 || res.Times.CostPerRow != 0.5 {
		t.Errorf("%+v", res.Times)
	}
}
