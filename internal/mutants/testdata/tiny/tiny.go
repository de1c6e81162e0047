// Package tiny is what the tool is tested on.
package tiny

import _ "embed"

//go:embed limit.txt
var limit string

// Allowed says whether n is small, even and below the embedded limit.
func Allowed(n int) bool {
	if n%2 != 0 {
		return false
	}
	if len(limit) < n { // mutant: the-limit
		return false
	}
	return n >= 0
}
