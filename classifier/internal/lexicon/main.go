// Command lexicon makes the file that is embedded in package classifier,
// lexicon/words.bin, from the lists beside it. Run it after a change of a list:
//
//	go generate ./classifier
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/classifier"
)

func main() {
	if err := run("lexicon"); err != nil {
		fmt.Fprintln(os.Stderr, "lexicon:", err)
		os.Exit(1)
	}
}

// run reads and writes the folder of the lists, which go generate names from that of the package.
func run(dir string) error {
	b, err := classifier.BuildLexicon(os.DirFS(dir))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "words.bin"), b, 0o644)
}
