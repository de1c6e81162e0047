package said

import _ "embed"

//go:embed corpus/turns.json
var corpus []byte

// Corpus is the project's own set of turns.
func Corpus() (Set, error) { return ReadSet(corpus) }
