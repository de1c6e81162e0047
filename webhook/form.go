package webhook

import (
	"errors"
	"slices"
	"strings"
)

var errForm = errors.New("not a strict application/x-www-form-urlencoded body")

// field is one name=value of a form, decoded.
type field struct{ name, value string }

// form holds the fields of a body in the order of arrival.
type form []field

// parseForm decodes an application/x-www-form-urlencoded body and refuses what
// two parsers could read in two ways: a piece without "=", an empty name or
// piece, a bad escape, a raw ";", space, control or non-ASCII byte. Decoded
// bytes are kept as they are, valid UTF-8 or not.
func parseForm(body []byte) (form, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var fields form
	for piece := range strings.SplitSeq(string(body), "&") {
		name, value, found := strings.Cut(piece, "=")
		if !found || name == "" {
			return nil, errForm
		}
		n, err := unescape(name)
		if err != nil {
			return nil, err
		}
		v, err := unescape(value)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{n, v})
	}
	return fields, nil
}

func unescape(s string) (string, error) {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			out.WriteByte(' ')
		case c == '%':
			if i+2 >= len(s) {
				return "", errForm
			}
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if !ok1 || !ok2 {
				return "", errForm
			}
			out.WriteByte(hi<<4 | lo)
			i += 2
		case c <= ' ' || c >= 0x7f || c == ';':
			return "", errForm
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), nil
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// signed is the part of Twilio's signed string that comes from the form: names
// sorted as bytes, and for each name its distinct values, sorted, each written
// as name and value with nothing between.
func (f form) signed() string {
	sorted := slices.Clone(f)
	slices.SortFunc(sorted, func(a, b field) int {
		// By name alone, then by value: a joined key would put To+"whatsapp:…"
		// behind ToCity+"…".
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	var out strings.Builder
	for _, p := range slices.Compact(sorted) {
		out.WriteString(p.name)
		out.WriteString(p.value)
	}
	return out.String()
}

// values returns every value of name in the order of arrival.
func (f form) values(name string) []string {
	var all []string
	for _, p := range f {
		if p.name == name {
			all = append(all, p.value)
		}
	}
	return all
}

// value returns the value of a name that checkSingle has shown to be there at
// most once; empty if absent.
func (f form) value(name string) string {
	for _, p := range f {
		if p.name == name {
			return p.value
		}
	}
	return ""
}
