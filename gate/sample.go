package gate

import (
	_ "embed"
)

//go:embed sample.yaml
var sampleYAML []byte

// Sample parses the policy that is built in. It fails only where the embedded
// file is broken, which a test rules out.
func Sample() (*Policy, error) { return ParsePolicy("sample.yaml", sampleYAML) }
