package calibration

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/classifier"
)

// ErrData says that a labelled set cannot be read; the message names the line.
var ErrData = errors.New("calibration: data cannot be read")

// Row is one labelled reply.
type Row struct {
	ID      string             `json:"id,omitempty"`
	Text    string             `json:"text"`
	Earlier []string           `json:"earlier"` // of the same person, newest first
	Offers  []string           `json:"offers"`
	Label   classifier.Class   `json:"label"`
	AlsoOK  []classifier.Class `json:"also_ok,omitempty"` // also right
	Lang    string             `json:"lang,omitempty"`
	Tags    []string           `json:"tags,omitempty"`
	// Source and Licence say where a foreign row is from.
	Source  string `json:"source,omitempty"`
	Licence string `json:"licence,omitempty"`
}

// Allows says whether c is a right reading of the row.
func (r Row) Allows(c classifier.Class) bool {
	return r.Label == c || slices.Contains(r.AlsoOK, c)
}

// Input is what a reader is asked. It fails with [classifier.ErrLabel] when an
// offer is no label.
func (r Row) Input() (classifier.Input, error) {
	in := classifier.Input{Newest: classifier.NewWords(r.Text)}
	for _, e := range r.Earlier {
		in.Earlier = append(in.Earlier, classifier.NewWords(e))
	}
	for _, o := range r.Offers {
		l, err := classifier.ParseLabel(o)
		if err != nil {
			return classifier.Input{}, err
		}
		in.Offers = append(in.Offers, l)
	}
	return in, nil
}

// Key identifies what a reader is asked: a hash of text, earlier and offers.
// Rows with the same key have the same answer.
func (r Row) Key() string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d:%s,", len(s), s) }
	part(r.Text)
	for _, e := range r.Earlier {
		part("e" + e)
	}
	for _, o := range r.Offers {
		part("o" + o)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// DataHash is the SHA-256, in hex, over keys and labels of the rows in order.
func DataHash(rows []Row) string {
	h := sha256.New()
	for _, r := range rows {
		fmt.Fprintln(h, r.Key(), r.Label, r.AlsoOK, r.Lang)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ReadData reads data lines, one JSON object each:
//
//	{"text":"ya send it","earlier":["…"],"offers":["send email to Dana"],"label":"confirm"}
//
// with id, lang, tags, also_ok, source and licence as options. It is strict:
// unknown fields, a missing text, label or offer, bytes that are not UTF-8 and
// trailing text fail with [ErrData] and the line's number. Blank lines are
// skipped; an empty set is an error.
func ReadData(r io.Reader) ([]Row, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), 1<<20)
	var rows []Row
	n := 0
	for sc.Scan() {
		n++
		b := bytes.TrimSpace(sc.Bytes())
		if n == 1 {
			b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		}
		if len(b) == 0 {
			continue
		}
		row, err := parseRow(b)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrData, n, err)
		}
		rows = append(rows, row)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrData, n+1, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: no rows", ErrData)
	}
	return rows, nil
}

func parseRow(b []byte) (Row, error) {
	if !utf8.Valid(b) {
		return Row{}, errors.New("not UTF-8")
	}
	var raw struct {
		Row
		Text  *string           `json:"text"`
		Label *classifier.Class `json:"label"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return Row{}, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return Row{}, errors.New("more than one object")
	}
	switch {
	case raw.Text == nil:
		return Row{}, errors.New("no text")
	case raw.Label == nil:
		return Row{}, errors.New("no label")
	case raw.Offers == nil:
		return Row{}, errors.New("no offers")
	}
	row := raw.Row
	row.Text, row.Label = *raw.Text, *raw.Label
	if _, err := row.Input(); err != nil {
		return Row{}, err
	}
	return row, nil
}

// WriteData writes rows as [ReadData] reads them.
func WriteData(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if r.Earlier == nil {
			r.Earlier = []string{}
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// words folds a text for comparing rows: lower case, letters and digits of
// any script, single spaces.
func folded(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !isWordRune(r)
	}), " ")
}
