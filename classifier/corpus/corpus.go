// Package corpus holds the labelled replies that the local reader is trained, calibrated and tested on.
//
// Each file is JSON lines; one line is one reply:
//
//	{"text":"ya send it","earlier":["…"],"offers":["send email to Dana"],"label":"confirm","lang":"en","tags":["slang"]}
//
// README.md in this folder is the data card: the rules behind the labels, the counts and the limits.
package corpus

import "embed"

// FS holds one folder per part, with files <lang>-<name>.jsonl in it. train is for fitting weights only.
//
//go:embed train/*.jsonl
var FS embed.FS
