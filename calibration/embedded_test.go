package calibration_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/corpus"
	"github.com/countersign/countersign/classifier/local"
)

// The calibration that ships in the binary is what the calibration part of
// the corpus gives for the weights that ship in the binary.
func TestShippedCalibrationIsOfTheShippedWeights(t *testing.T) {
	reader, err := local.New()
	if err != nil {
		t.Fatal(err)
	}
	file, err := calibration.Load(local.CalibrationFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := calibration.Calibrated(reader, file, reader).Err(); err != nil {
		t.Fatal(err)
	}
	res, err := calibration.Run(context.Background(), reader, rows(t, corpus.Calibration()), calibration.Options{OmitTimes: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := res.File()
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, local.CalibrationFile()) {
		t.Error("calibrating again gives another file: corpus, guards or weights changed, make it again")
	}
}

// read evaluates a part with the reader and the calibration that the program embeds.
func read(t *testing.T, part []calibration.Row) (calibration.Result, calibration.File, *local.Reader) {
	t.Helper()
	reader, err := local.New()
	if err != nil {
		t.Fatal(err)
	}
	file, err := calibration.Load(local.CalibrationFile())
	if err != nil {
		t.Fatal(err)
	}
	res, err := calibration.Run(context.Background(), reader, part, calibration.Options{Calibration: &file, Languages: reader, OmitTimes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d right (≥ %.4f); %d of %d yeses acted on (%.1f %%); ECE %.4f", res.Precision.Right, res.Precision.Of, res.Precision.Lower,
		res.Recall.Right, res.Recall.Of, 100*res.Recall.Share(), res.ECE)
	return res, file, reader
}

// What is promised of the reader, on a part that neither weights nor p were fitted to.
func TestOnTheTestPart(t *testing.T) {
	part := rows(t, corpus.Test())
	res, file, reader := read(t, part)
	// bench/reader fails on a single wrong confirm and lists it; here the bound
	// guards against a reader that got worse.
	for _, w := range res.Wrong {
		t.Logf("wrong confirm %.3f: %v %q to %q", w.P, w.Label, w.Text, w.Offers)
	}
	if res.Precision.Lower < 0.98 {
		t.Errorf("%d of %d right shows only %.4f", res.Precision.Right, res.Precision.Of, res.Precision.Lower)
	}
	if res.ECE > 0.02 {
		t.Errorf("ECE of p(confirm) %.4f, at most 0.02 is promised", res.ECE)
	}
	// What a server does and what the evaluation counts must be the same thing.
	live := calibration.Calibrated(reader, file, reader)
	for i, r := range part {
		in, err := r.Input()
		if err != nil {
			t.Fatal(err)
		}
		if acts := classifier.Read(context.Background(), live, in, classifier.Options{}).Confirms(file.Threshold); acts != res.Outcomes[i].Acted {
			t.Errorf("%q: live %v, counted %v", r.Text, acts, res.Outcomes[i].Acted)
		}
	}
}

// The part that was written last, and blind: code may ask after any of its yeses, and acts on nothing else.
func TestOnTheBlindPart(t *testing.T) {
	res, _, _ := read(t, rows(t, os.DirFS("../classifier/corpus/blind")))
	for _, w := range res.Wrong {
		t.Errorf("wrong confirm %.3f: %v %q to %q", w.P, w.Label, w.Text, w.Offers)
	}
	if res.Precision.Right < 600 {
		t.Errorf("%d right confirms are too few to show anything", res.Precision.Right)
	}
}
