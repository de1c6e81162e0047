package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/countersign/countersign/classifier"
)

// row is one labelled reply. A set says offers or open_offers; what else stands in a line is of no matter here.
type row struct {
	ID      string
	Text    string
	Earlier []string // newest first
	Offers  []string // labels
	Label   classifier.Class
}

// key identifies what is asked.
func (r row) key() string { return strings.Join(append([]string{r.Text}, r.Offers...), "\x00") }

func parse(line []byte) (row, error) {
	var raw struct {
		ID         string            `json:"id"`
		Text       *string           `json:"text"`
		Earlier    []string          `json:"earlier"`
		Offers     []string          `json:"offers"`
		OpenOffers []string          `json:"open_offers"`
		Label      *classifier.Class `json:"label"`
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return row{}, err
	}
	switch {
	case raw.Text == nil:
		return row{}, errors.New("no text")
	case raw.Label == nil:
		return row{}, errors.New("no label")
	}
	return row{ID: raw.ID, Text: *raw.Text, Earlier: raw.Earlier, Offers: append(raw.Offers, raw.OpenOffers...), Label: *raw.Label}, nil
}

func load(path string) ([]row, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 0, 64<<10), 1<<20)
	var rows []row
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		r, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		rows = append(rows, r)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no rows", path)
	}
	return rows, nil
}

// counts writes what was counted, most first.
func counts(m map[string]int) string {
	if len(m) == 0 {
		return "nothing"
	}
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s %d", n, m[n]))
	}
	return strings.Join(parts, ", ")
}
