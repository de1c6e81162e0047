package storetest

import "testing"

// Run runs the whole suite. Every test opens a store of its own.
func Run(t *testing.T, open Open) {
	t.Run("Consume", func(t *testing.T) { consumeTests(t, open) })
}
