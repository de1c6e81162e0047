package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier/corpus"
	"github.com/countersign/countersign/classifier/local"
)

type trainCmd struct {
	Out    string `help:"The folder for weights.bin and calibration.json." default:"classifier/local" placeholder:"DIR"`
	Corpus string `help:"A corpus with the parts train and calibration; the embedded one if left out." placeholder:"DIR"`
	Check  bool   `help:"Write nothing: compare with the files that are there, byte for byte; exit 1 if they differ."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Help is the command's example.
func (trainCmd) Help() string {
	return `The same corpus gives the same bytes, every time and on every machine.

Example:
  bot train --check`
}

// trained says what came of a training.
type trained struct {
	Fingerprint string            `json:"fingerprint"`
	Bytes       int               `json:"bytes"`
	Threshold   float64           `json:"threshold"`
	Precision   calibration.Count `json:"precision"`
	Recall      calibration.Count `json:"recall"`
	Languages   []string          `json:"languages"`
	Same        *bool             `json:"same,omitempty"`
}

// Run trains on one part and calibrates on another, which no training sees.
func (c *trainCmd) Run(e *env) error {
	train, held, err := c.parts()
	if err != nil {
		return err
	}
	weights, err := local.TrainFromFS(e.ctx, train, local.Options{})
	if err != nil {
		return err
	}
	model, err := local.Decode(weights)
	if err != nil {
		return err
	}
	reader, err := local.NewReader(model)
	if err != nil {
		return err
	}
	rows, err := calibration.ReadFS(held)
	if err != nil {
		return err
	}
	res, err := calibration.Run(e.ctx, reader, rows, calibration.Options{Languages: reader, OmitTimes: true, OmitTexts: true})
	if err != nil {
		return err
	}
	f, err := res.File()
	if err != nil {
		return err
	}
	file, err := f.Encode()
	if err != nil {
		return err
	}
	out := trained{
		Fingerprint: reader.Fingerprint(), Bytes: len(weights), Threshold: f.Threshold, Precision: f.Precision, Recall: f.Recall, Languages: f.Languages,
	}
	made := map[string][]byte{"weights.bin": weights, "calibration.json": file}
	if c.Check {
		same, err := c.same(made)
		if err != nil {
			return err
		}
		out.Same = &same
	} else if err := c.write(made); err != nil {
		return err
	}
	if err := c.print(e, out); err != nil {
		return err
	}
	if out.Same != nil && !*out.Same {
		return noError{}
	}
	return nil
}

func (c *trainCmd) parts() (train, held fs.FS, err error) {
	if c.Corpus != "" {
		return os.DirFS(filepath.Join(c.Corpus, "train")), os.DirFS(filepath.Join(c.Corpus, "calibration")), nil
	}
	return corpus.Train(), corpus.Calibration(), nil
}

func (c *trainCmd) same(made map[string][]byte) (bool, error) {
	for name, b := range made {
		had, err := os.ReadFile(filepath.Join(c.Out, name)) //nolint:gosec // the operator names the folder
		if err != nil {
			return false, err
		}
		if !bytes.Equal(had, b) {
			return false, nil
		}
	}
	return true, nil
}

func (c *trainCmd) write(made map[string][]byte) error {
	for name, b := range made {
		if err := os.WriteFile(filepath.Join(c.Out, name), b, 0o644); err != nil { //nolint:gosec // a file of the repository
			return fmt.Errorf("train: %w", err)
		}
	}
	return nil
}

func (c *trainCmd) print(e *env, out trained) error {
	if c.JSON {
		return e.printJSON(out)
	}
	e.printf("reader     %s\nweights    %d bytes\nthreshold  %.3f\nprecision  %d of %d acted on were right (one-sided 95 %% bound %.4f)\nrecall     %d of %d yeses acted on\nacts in    %v\n",
		out.Fingerprint, out.Bytes, out.Threshold, out.Precision.Right, out.Precision.Of, out.Precision.Lower, out.Recall.Right, out.Recall.Of, out.Languages)
	if out.Same != nil {
		e.printf("same bytes as before: %v\n", *out.Same)
	}
	return nil
}
