package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/classifier/corpus"
)

// The same corpus gives the same bytes, and --check says so, or that it does not.
func TestTrainCheck(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for part, pattern := range map[string]string{"train": "train/en-01-*.jsonl", "calibration": "calibration/en.jsonl"} {
		files, err := fs.Glob(corpus.FS, pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%v %v", files, err)
		}
		if err := os.Mkdir(filepath.Join(dir, part), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			b, err := fs.ReadFile(corpus.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, part, path.Base(name)), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := []string{"train", "--corpus", dir, "--out", out}
	if code, said, errs := bot(t, nil, "", args...); code != exitOK || !strings.Contains(said, "acts in    [en]") {
		t.Fatalf("%d %s %s", code, said, errs)
	}
	if code, said, errs := bot(t, nil, "", append(args, "--check")...); code != exitOK || !strings.Contains(said, "same bytes as before: true") {
		t.Errorf("%d %s %s", code, said, errs)
	}
	// One other label in the corpus is another model.
	name := filepath.Join(dir, "train", "en-01-confirm.jsonl")
	b, err := os.ReadFile(name) //nolint:gosec // a file of this test
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(b), `"label":"confirm"`, `"label":"unclear"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said, _ := bot(t, nil, "", append(args, "--check")...); code != exitNo || !strings.Contains(said, "same bytes as before: false") {
		t.Errorf("%d %s", code, said)
	}
}
