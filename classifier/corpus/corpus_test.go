package corpus_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign/countersign/classifier/corpus"
)

type row struct {
	Text    string   `json:"text"`
	Earlier []string `json:"earlier"`
	Offers  []string `json:"offers"`
	Label   string   `json:"label"`
	Lang    string   `json:"lang"`
	AlsoOK  []string `json:"also_ok"`
	Tags    []string `json:"tags"`
	at      string
}

func rows(t *testing.T, part string) []row {
	t.Helper()
	files, err := fs.Glob(corpus.FS, path.Join(part, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", part, len(files), err)
	}
	var out []row
	for _, name := range files {
		b, err := fs.ReadFile(corpus.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(bytes.NewReader(b))
		for sc.Scan() {
			dec := json.NewDecoder(bytes.NewReader(sc.Bytes()))
			dec.DisallowUnknownFields()
			r := row{at: name}
			if err := dec.Decode(&r); err != nil {
				t.Fatalf("%s: %q: %v", name, sc.Text(), err)
			}
			out = append(out, r)
		}
		if err := sc.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

func fold(s string) string { return strings.Trim(strings.ToLower(s), " .!?…。！？¡¿") }

func (r row) key() string {
	return strings.ToLower(r.Lang + "\x00" + r.Text + "\x00" + strings.Join(r.Offers, "\x00"))
}

// A row that does not fit would be a reading nobody can check, so shape is fixed here once.
func TestEveryRowFitsTheCard(t *testing.T) {
	labels := []string{"confirm", "decline", "modify", "unrelated", "unclear"}
	langs := []string{"en", "es", "fr", "de", "pt", "it", "nl", "hi", "hi-Latn", "zh", "ja"}
	for _, part := range []string{"train", "calibration", "test"} {
		seen := map[string]string{}
		for _, r := range rows(t, part) {
			switch {
			case r.Text == "" || !utf8.ValidString(r.Text):
				t.Errorf("%s: text %q", r.at, r.Text)
			case r.Earlier == nil || len(r.Earlier) > 4:
				t.Errorf("%s: %q has %d earlier messages, or none given", r.at, r.Text, len(r.Earlier))
			case len(r.Offers) == 0 || slices.Contains(r.Offers, ""):
				t.Errorf("%s: %q answers no offer", r.at, r.Text)
			case !slices.Contains(labels, r.Label):
				t.Errorf("%s: %q is labelled %q", r.at, r.Text, r.Label)
			case !slices.Contains(langs, r.Lang):
				t.Errorf("%s: %q is in language %q", r.at, r.Text, r.Lang)
			}
			if was, ok := seen[r.key()]; ok {
				t.Errorf("%s: %q to %q is in %s already", r.at, r.Text, r.Offers, was)
			}
			seen[r.key()] = r.at
		}
	}
}

// A sentence that weights were fitted on says nothing about replies that nobody has read yet. Very
// short ones are let through: there is one way to write "yes".
func TestNoSentenceIsInTwoParts(t *testing.T) {
	least := func(lang string) int {
		if lang == "en" {
			return 3
		}
		return 5 // the smaller languages share short set phrases ("cancel mat karo")
	}
	train := map[string]string{}
	for _, r := range rows(t, "train") {
		if f := fold(r.Text); len(strings.Fields(f)) >= least(r.Lang) {
			train[f] = r.at
		}
	}
	for _, part := range []string{"calibration", "test"} {
		for _, r := range rows(t, part) {
			if at, ok := train[fold(r.Text)]; ok {
				t.Errorf("%q is in %s and in %s", r.Text, at, r.at)
			}
		}
	}
}

// A bare yes to two open offers names neither; a row that says otherwise would teach the reader to guess.
func TestABareYesToTwoOffersIsNeverConfirm(t *testing.T) {
	bare := []string{"yes", "y", "ok", "yep", "sure", "yup", "go", "do it", "go ahead", "yes please", "👍", "both", "sí", "ja", "oui", "sim", "si", "haan", "はい", "好"}
	for _, part := range []string{"train", "calibration", "test"} {
		for _, r := range rows(t, part) {
			if len(r.Offers) > 1 && r.Label == "confirm" && slices.Contains(bare, fold(r.Text)) {
				t.Errorf("%s: %q to %d offers is labelled confirm", r.at, r.Text, len(r.Offers))
			}
		}
	}
}
