// Package corpus holds the labelled replies that the built-in reader is made
// from and measured with: a part to train on, one to calibrate on, and one to
// test with that nothing is ever fitted to. README.md is its data card.
//
// Each file is JSON lines; one line is one reply:
//
//	{"text":"ya send it","earlier":["…"],"offers":["send email to Dana"],"label":"confirm","lang":"en","tags":["slang"]}
//
// A part must never be read for another part's purpose: p fitted on replies
// that the weights have seen promises more than it keeps.
package corpus

import (
	"embed"
	"io/fs"
)

// FS holds the three parts as folders: train, calibration, test.
//
//go:embed train/*.jsonl calibration/*.jsonl test/*.jsonl
var FS embed.FS

// Train is the part that weights are trained on: *.jsonl at its top.
func Train() fs.FS { return part("train") }

// Calibration is the part that the calibrator, the threshold and the
// languages in which code may act come from.
func Calibration() fs.FS { return part("calibration") }

// Test is the part that figures are reported on.
func Test() fs.FS { return part("test") }

func part(name string) fs.FS {
	sub, err := fs.Sub(FS, name)
	if err != nil {
		panic(err) // the names above are valid paths
	}
	return sub
}
