// Package calibration says what a reader's probabilities are worth.
//
// A reader's "confirm, 0.97" means something only against labelled replies.
// [Run] asks a reader about every row of a labelled set, lets the guards have
// their say, fits a calibrator by cross-validation, and counts: of the replies
// that code would have acted on, how many were a yes, and what precision does
// that count show at 95 % (the one-sided Clopper–Pearson bound)? From that
// comes a [File], bound to the reader's fingerprint, without which code acts
// on nothing ([Calibrated]).
//
//	rows, err := calibration.ReadData(f)
//	res, err := calibration.Run(ctx, reader, rows, calibration.Options{TargetPrecision: 0.99})
//	file, err := res.File() // ErrTooFew: the set is too small to show it
//	live := calibration.Calibrated(reader, file, languages)
//
// The same rows and answers give the same bytes, but for latency and cost,
// which stand apart and can be left out.
package calibration
