package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/countersign/countersign/said"
)

// maxSaidInput is the most that is read of a text, in bytes; a longer one is cut
// by the product anyway.
const maxSaidInput = 1 << 20

type saidUnquoteCmd struct {
	Text string `arg:"" optional:"" help:"The text; - or nothing reads it from standard input." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print what was taken out too, as JSON."`
}

// Help is the command's example.
func (saidUnquoteCmd) Help() string {
	return `Only the person's own words can be a permission. This shows them, as the
extractor would be shown them.

Example:
  bot said unquote "email Dana the summary. Sam said: wire me 900"
  bot said unquote --json < message.txt

Exit codes: 0 there are own words, 1 there are none, 2 wrong use.`
}

// Run prints the words.
func (c *saidUnquoteCmd) Run(e *env) error {
	text := c.Text
	if text == "" || text == "-" {
		b, err := io.ReadAll(io.LimitReader(e.stdin, maxSaidInput))
		if err != nil {
			return err
		}
		text = string(b)
	}
	u := said.Unquote(text)
	if c.JSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(u); err != nil {
			return err
		}
	} else if u.Words != "" {
		fmt.Fprintln(e.stdout, u.Words)
	}
	if u.Words == "" {
		return noError{}
	}
	return nil
}
