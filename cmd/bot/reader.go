package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/combine"
	"github.com/countersign/countersign/classifier/local"
	"github.com/countersign/countersign/classifier/openai"
)

// Readers that COUNTERSIGN_READER names.
const (
	readerLocal   = "local"
	readerOpenAI  = "openai"
	readerCascade = "cascade"
	readerAgree   = "agree"
)

// fallible is a reader that may say that none of its confirms is acted on.
type fallible interface {
	classifier.Reader
	Err() error
}

// newReader makes the configured reader behind its calibration, and the threshold from which code acts. With a
// calibration that does not fit, the server runs, says so, and acts on no confirm.
func newReader(c config, log *slog.Logger) (classifier.Reader, float64, error) {
	inner, err := local.New()
	if err != nil {
		return nil, 0, fmt.Errorf("built-in reader: %w", err)
	}
	own := local.CalibrationFile()
	if c.Calibration != "" && (c.Reader == readerLocal || c.Reader == "") {
		if own, err = readCalibration(c.Calibration); err != nil {
			return nil, 0, err
		}
	}
	builtIn, threshold := calibrated(inner, own, inner, log)
	var r fallible = builtIn
	if c.Reader != readerLocal && c.Reader != "" {
		model, modelThreshold, err := newModel(c, inner, log)
		if err != nil {
			return nil, 0, err
		}
		switch c.Reader {
		case readerOpenAI:
			r, threshold = model, modelThreshold
		case readerCascade:
			r, err = combine.Cascade(builtIn, model)
			threshold = max(threshold, modelThreshold)
		case readerAgree:
			r, err = combine.Agree(builtIn, model)
			threshold = max(threshold, modelThreshold)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("reader: %w", err)
		}
	}
	if err := r.Err(); err != nil {
		log.Warn("the reader is not calibrated: no confirm is acted on", "error", err)
	}
	return r, threshold, nil
}

// newModel makes the endpoint's reader. Its mode is the one that its calibration was made in.
func newModel(c config, langs calibration.Languages, log *slog.Logger) (*calibration.Reader, float64, error) {
	cfg, ok := openai.FromEnv(c.OpenAI)
	if !ok {
		return nil, 0, usage("COUNTERSIGN_READER=%s needs OPENAI_API_KEY or OPENAI_BASE_URL, and OPENAI_MODEL.", c.Reader)
	}
	var raw []byte
	var err error
	if c.Calibration != "" {
		if raw, err = readCalibration(c.Calibration); err != nil {
			return nil, 0, err
		}
	}
	f, ferr := calibration.Load(raw)
	if ferr == nil {
		cfg.Mode, _ = openai.ModeOf(f.Fingerprint)
	}
	cfg.Log = log
	inner, err := openai.New(cfg)
	if err != nil {
		return nil, 0, usage("The reader's endpoint cannot be used: %v", err)
	}
	r, threshold := calibrated(inner, raw, langs, log)
	return r, threshold, nil
}

func readCalibration(path string) ([]byte, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, usage("COUNTERSIGN_CALIBRATION cannot be read: %v", errors.Unwrap(err))
	}
	return raw, nil
}

func calibrated(inner classifier.Reader, raw []byte, langs calibration.Languages, log *slog.Logger) (*calibration.Reader, float64) {
	f, err := calibration.Load(raw)
	if err != nil {
		log.Warn("the calibration file does not hold", "error", err)
	}
	return calibration.Calibrated(inner, f, langs), max(f.Threshold, classifier.ActThreshold)
}
