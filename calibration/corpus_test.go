package calibration_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/corpus"
)

func rows(t *testing.T, fsys fs.FS) []calibration.Row {
	t.Helper()
	r, err := calibration.ReadFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Nothing that measures was seen in training, nor does the test part repeat
// what the calibrator was fitted on.
func TestPartsHoldNoNearDuplicates(t *testing.T) {
	train, cal, test := rows(t, corpus.Train()), rows(t, corpus.Calibration()), rows(t, corpus.Test())
	for _, c := range []struct {
		name       string
		seen, rows []calibration.Row
	}{{"calibration against train", train, cal}, {"test against train", train, test}, {"test against calibration", cal, test}} {
		s := calibration.CheckSplit(c.seen, c.rows)
		t.Logf("%s: %s; of the %d short yeses %d", c.name, s, s.ShortYes, s.RepeatedYes)
		for _, n := range s.Near {
			t.Errorf("%s: %q is near %q (%.2f)", c.name, c.rows[n.Row].Text, c.seen[n.Train].Text, n.Jaccard)
		}
	}
}

func TestCorpusIsLargeAndLabelled(t *testing.T) {
	all := slices.Concat(rows(t, corpus.Train()), rows(t, corpus.Calibration()), rows(t, corpus.Test()))
	var perClass [classifier.Classes]int
	langs := map[string]int{}
	distinct := map[string]bool{}
	for _, r := range all {
		perClass[r.Label]++
		langs[r.Lang]++
		distinct[r.Key()] = true
		if r.Lang == "" || len(r.Tags) == 0 {
			t.Errorf("%q has no language or no tags", r.Text)
		}
	}
	if len(distinct) < 6000 {
		t.Errorf("%d distinct rows, at least 6,000 are promised", len(distinct))
	}
	for k, n := range perClass {
		if n < 300 {
			t.Errorf("%d rows of class %v", n, classifier.Class(k))
		}
	}
	for _, l := range []string{"en", "es", "fr", "de", "pt", "it", "nl", "hi", "zh", "ja"} {
		if langs[l] < 100 {
			t.Errorf("%d rows in %s", langs[l], l)
		}
	}
}
