package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/classifier"
)

// These say what a main model may and may not add to what code did. The labels are right; "code" rows are sure yeses that
// code acts on by itself.
var cases = []struct {
	text    string
	offers  []string
	label   classifier.Class
	code    bool
	through bool
}{
	{"yes", []string{"send email to Dana"}, classifier.Confirm, true, false},
	{"no", []string{"send email to Dana"}, classifier.Decline, false, false},
	{"yes but cc Sam", []string{"send email to Dana"}, classifier.Modify, false, false},
	{"yes, with the pictures", []string{"send email to Dana"}, classifier.Modify, false, false},
	{"yes and the invoice to Robin", []string{"send email to Dana"}, classifier.Modify, false, false},
	{"what's for dinner", []string{"send email to Dana"}, classifier.Unrelated, false, false},
	{"thanks", []string{"send email to Dana"}, classifier.Unclear, false, false},
	{"is it the old address?", []string{"send email to Dana"}, classifier.Unclear, false, false},
	{"if she asked for it yes", []string{"send email to Dana"}, classifier.Modify, false, false},
	{"Sam says yes", []string{"send email to Dana"}, classifier.Unclear, false, false},
	// Of several open offers code picks none; a model may pick the one that the words name.
	{"yes", []string{"send email to Dana", "delete a file"}, classifier.Unclear, false, false},
	{"yes send the email", []string{"send email to Dana", "delete a file"}, classifier.Confirm, false, true},
	{"yes delete the file", []string{"send email to Dana", "delete a file"}, classifier.Confirm, false, true},
	{"don't delete the file", []string{"send email to Dana", "delete a file"}, classifier.Decline, false, false},
	{"yes send the email but not the file", []string{"send email to Dana", "delete a file"}, classifier.Modify, false, false},
	{"yes send both the email and delete the file", []string{"send email to Dana", "delete a file"}, classifier.Unclear, false, false},
	{"yes", nil, classifier.Unrelated, false, false},
}

func TestWhatAMainModelAdds(t *testing.T) {
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			got, err := measure(t.Context(), readerLocal, []row{{Text: c.text, Offers: c.offers, Label: c.label}})
			if err != nil {
				t.Fatal(err)
			}
			code, through := got.byCode[c.label] == 1, len(got.through[c.label]) == 1
			if code != c.code || through != c.through {
				t.Errorf("code acted: %v, want %v; the model got it through: %v, want %v; stopped by %v", code, c.code, through, c.through, got.stopped)
			}
		})
	}
}

// A reader that says confirm to everything leaves the guards alone, and they hold every row here that is no yes.
func TestGuardsAloneHold(t *testing.T) {
	for _, c := range cases {
		if c.label == classifier.Confirm {
			continue
		}
		got, err := measure(t.Context(), readerAdversary, []row{{Text: c.text, Offers: c.offers, Label: c.label}})
		if err != nil {
			t.Fatal(err)
		}
		if n := got.byCode[c.label] + len(got.through[c.label]); n != 0 {
			t.Errorf("%q to %v got through", c.text, c.offers)
		}
	}
}

func write(t *testing.T, lines ...any) string {
	t.Helper()
	var b bytes.Buffer
	for _, l := range lines {
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", raw)
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type line = map[string]any

func TestCommand(t *testing.T) {
	held := write(t,
		line{"text": "yes", "offers": []string{"send email to Dana"}, "label": "confirm"},
		line{"text": "no", "open_offers": []string{"A: send email to Dana"}, "label": "decline", "why": "it says so", "acts": false})
	wrong := line{"text": "yes", "offers": []string{"send email to Dana"}, "label": "decline", "id": "mislabelled"}
	mislabelled := write(t, wrong)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"held", []string{"-data", held}, 0, "no row labelled decline, modify or unrelated got through"},
		{"through", []string{"-reader", "adversary", "-data", held, "-data", mislabelled}, 1, "1 rows that are no yes got through"},
		{"known", []string{"-reader", "adversary", "-data", mislabelled, "-known", write(t, wrong)}, 0, "(label known to be wrong)"},
		{"no data", nil, 2, "wrong use"},
		{"no file", []string{"-data", filepath.Join(t.TempDir(), "none")}, 2, "no such file"},
		{"no reader", []string{"-data", held, "-reader", "oracle"}, 2, "local or adversary"},
		{"no label", []string{"-data", write(t, line{"text": "yes"})}, 2, "line 1: no label"},
		{"no text", []string{"-data", write(t, line{"label": "confirm"})}, 2, "line 1: no text"},
		{"no rows", []string{"-data", write(t)}, 2, "no rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), c.args, &out, &errs); code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, c.code, c.says, out.String(), errs.String())
			}
		})
	}
}
