// Command embed makes the two files that are embedded in package local:
// weights.bin from the training part of the corpus and calibration.json from
// its calibration part. Run it after a change of the corpus, of the features
// or of the lexicon, from the root of the repository:
//
//	go run ./classifier/local/internal/embed
//
// It writes nothing when the calibration part does not bless the weights.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier/corpus"
	"github.com/countersign/countersign/classifier/local"
)

func main() {
	if err := run(context.Background(), filepath.Join("classifier", "local")); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	weights, err := local.TrainFromFS(ctx, corpus.Train(), local.Options{
		Progress: func(epoch, epochs int, loss float64) {
			fmt.Printf("\repoch %2d of %d, loss %.4f ", epoch, epochs, loss)
		},
	})
	fmt.Println()
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
	rows, err := calibration.ReadFS(corpus.Calibration())
	if err != nil {
		return err
	}
	res, err := calibration.Run(ctx, reader, rows, calibration.Options{OmitTimes: true})
	if err != nil {
		return err
	}
	file, err := res.File()
	if err != nil {
		return err
	}
	b, err := file.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "weights.bin"), weights, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "calibration.json"), b, 0o644); err != nil {
		return err
	}
	fmt.Printf("%d bytes of weights, %s\n%s\nthreshold %.4g: %d of %d right (≥ %.4f), %.1f %% of yeses acted on, in %s\n", len(weights), reader.Fingerprint(),
		res.Why, file.Threshold, file.Precision.Right, file.Precision.Of, file.Precision.Lower, 100*file.Recall.Share(), strings.Join(file.Languages, " "))
	return nil
}
