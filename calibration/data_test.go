package calibration

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/countersign/countersign/classifier"
)

const good = `{"text":"ya send it","earlier":["hm"],"offers":["send email to Dana"],"label":"confirm"}`

func TestReadData(t *testing.T) {
	rows, err := ReadData(strings.NewReader("\ufeff" + good + "\n\n" +
		`{"id":"7","text":"yes b","earlier":[],"offers":["pay 3 to Al","delete 4 files"],"label":"unclear","also_ok":["modify"],"lang":"en","tags":["multi-offer"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Text != "ya send it" || rows[0].Label != classifier.Confirm || !rows[1].Allows(classifier.Modify) || rows[1].Allows(classifier.Confirm) {
		t.Fatalf("%+v", rows)
	}
	var b bytes.Buffer
	if err := WriteData(&b, rows); err != nil {
		t.Fatal(err)
	}
	again, err := ReadData(&b)
	if err != nil || DataHash(again) != DataHash(rows) {
		t.Errorf("rows do not come back the same: %v", err)
	}
	if rows[0].Key() == rows[1].Key() {
		t.Error("two rows, one key")
	}
}

func TestReadDataRefuses(t *testing.T) {
	for name, l := range map[string]string{
		"no text":       `{"offers":["send email to Dana"],"label":"confirm"}`,
		"no label":      `{"text":"yes","offers":["send email to Dana"]}`,
		"no offers":     `{"text":"yes","label":"confirm"}`,
		"bad label":     `{"text":"yes","offers":["send email to Dana"],"label":"Confirm"}`,
		"empty offer":   `{"text":"yes","offers":[""],"label":"confirm"}`,
		"unknown field": `{"text":"yes","offers":["send email to Dana"],"label":"confirm","lable":"x"}`,
		"two objects":   good + good,
		"not UTF-8":     "{\"text\":\"y\xff\",\"offers\":[\"send email to Dana\"],\"label\":\"confirm\"}",
		"no JSON":       "yes",
	} {
		_, err := ReadData(strings.NewReader(good + "\n" + l))
		if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadData(strings.NewReader("\n")); !errors.Is(err, ErrData) {
		t.Errorf("empty set: %v", err)
	}
}

func TestCheckSplit(t *testing.T) {
	row := func(s string) Row { return Row{Text: s, Offers: []string{"send email to Dana"}} }
	train := []Row{row("yes"), row("Please go ahead and send the email now"), row("no")}
	rows := []Row{
		row("Yes!"), // short: allowed, counted
		row("nah"),
		row("please go ahead, and SEND the email now."), // the same text
		row("Please go ahead and send the e-mail now!"), // near
		row("would you mind sending that one tomorrow"),
	}
	s := CheckSplit(train, rows)
	if len(s.Near) != 1 && len(s.Near) != 2 || s.Near[0].Row != 2 || s.Near[0].Jaccard != 1 {
		t.Fatalf("%+v", s.Near)
	}
	if s.Short != 2 || s.Repeated != 1 {
		t.Errorf("short %d, repeated %d", s.Short, s.Repeated)
	}
	left := Prune(train, rows)
	if again := CheckSplit(train, left); len(again.Near) != 0 || len(left) != len(rows)-len(s.Near) {
		t.Errorf("after pruning %d rows with %+v", len(left), again.Near)
	}
}
