// Package openai reads replies by any endpoint that speaks OpenAI's chat
// completions: a hosted model or a local server.
//
// The model is asked for one of five words under a strict JSON schema, at a
// temperature that is zero in practice, with the reply and the labels as a JSON
// object in a message of their own. Only the exact word is an answer; whatever
// else comes back is an error, and so unclear.
//
// What the model says of its sureness is taken in one of two ways:
//
//   - [Logprobs]: from the log-probabilities at the place where the label's
//     word begins. What the server does not account for counts as unclear, so
//     that a list cut short can only lower a confirm.
//   - [Verbal]: from a number that the model writes beside the label, through a
//     fixed map that ends below [classifier.ActThreshold]. Such a confirm is
//     acted on only after a calibration has shown what the number is worth.
//
// The mode is fixed when the reader is made and stands in its fingerprint,
// since a calibration of the one says nothing of the other. A Logprobs reader
// that is given no usable log-probabilities does not change over: it reads a
// confirm as unclear, with no probability of confirm for a calibrator to lift.
// [Open] asks the server once which mode it can serve; [ModeOf] takes the mode
// from the fingerprint in a calibration file.
//
// Nothing is tried twice: the person waits, and a reading that failed asks
// them again. No error and no log line holds a message's text, an answer's
// text or the key.
package openai
