package offers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/gate"
)

// Words of code for values that are no text.
const (
	nullText  = "(null)"
	emptyText = "(empty)"
	noneText  = "(none)"     // a list without elements
	hollow    = "(no parts)" // an object without members
	allNull   = "(all null)" // what holds the argument of the line, and others, is null
	allAbsent = "(all absent)"
	textText  = "(text) " // a text that reads like a number or like true, where nothing else tells them apart
)

// Part is one call of an operation as it is shown.
type Part struct {
	Number string // "1 of 3. ", of a bundle of several
	Title  string
	Fields []Field
}

// Field is one argument as it is shown.
type Field struct {
	Prefix string  // written by code; stands before each line of the value
	Pieces []Piece // of the value; newlines in them are lines
	Body   bool    // free text that may be linked where it is long

	at    string // JSON pointer of the value
	runes int    // length of a text
}

func (f Field) text() string { return plainText(f.Pieces) }

// PartsOf shows every argument of an operation by the policy's templates. A template that would leave an argument out is
// ErrCannotBeShown; with a policy that is nil, arguments are shown by their own names.
func PartsOf(op gate.Operation, policy *gate.Policy) ([]Part, error) {
	calls := policy.Parts(op)
	if len(calls) == 0 {
		return nil, fmt.Errorf("%w: the arguments cannot be read", ErrCannotBeShown)
	}
	parts := make([]Part, 0, len(calls))
	for i, call := range calls {
		fields, err := fieldsOf(call, policy)
		if err != nil {
			return nil, err
		}
		p := Part{Title: title(call, policy), Fields: fields}
		if len(calls) > 1 {
			p.Number = fmt.Sprintf("%d of %d. ", i+1, len(calls))
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func fieldsOf(call gate.Operation, policy *gate.Policy) ([]Field, error) {
	args, err := decode(call.Args)
	if err != nil {
		return nil, fmt.Errorf("%w: the arguments cannot be read", ErrCannotBeShown)
	}
	tool, known := policy.Tool(call.Tool)
	all := walk{numbered: true}
	if known {
		all.typed = tool.Args()
	}
	all.value("", "", nil, args)
	if all.size > maxPrefixes { // mutant: show-prefixes
		return nil, fmt.Errorf("%w: the names of the arguments take too much room", ErrCannotBeShown)
	}
	if !known || len(tool.Template) == 0 {
		return all.fields, nil
	}
	shown := walk{typed: all.typed}
	for _, l := range tool.Template {
		shown.body, shown.arg = l.Body, l.Arg
		shown.along(line(l.Prefix), "", l.Arg, args)
	}
	// The template was checked when the policy was read; this holds it to that for these very arguments.
	missing := make(map[string]bool, len(all.fields))
	for _, f := range all.fields {
		missing[f.at] = true
	}
	for _, f := range shown.fields {
		delete(missing, f.at)
	}
	if len(missing) > 0 { // mutant: show-every-argument
		return nil, fmt.Errorf("%w: the template leaves out %d of %d values", ErrCannotBeShown, len(missing), len(all.fields))
	}
	return shown.fields, nil
}

// maxPrefixes bounds the work: a long name around a long list would be written once for every element.
const maxPrefixes = 1 << 20

// walk collects fields.
type walk struct {
	fields   []Field
	size     int         // bytes of all prefixes
	numbered bool        // number every element of a list; else only those that have parts of their own
	typed    []gate.Path // arguments of which a schema says whether they are text
	arg      gate.Path   // of the template's line
	body     bool
}

// along follows a template's path. Elements of a list of objects are numbered, so that what belongs together stays together.
func (w *walk) along(prefix, at string, path gate.Path, v any) {
	if len(path) == 0 {
		w.value(prefix, at, w.arg, v)
		return
	}
	whole := func(s string) { w.fields = append(w.fields, Field{Prefix: prefix, Pieces: []Piece{{Text: s}}, at: at}) }
	switch v := v.(type) {
	case nil:
		whole(allNull)
	case map[string]any:
		next, ok := v[path[0]]
		switch {
		case ok:
			w.along(prefix, pointer(at, path[0]), path[1:], next)
		case len(v) == 0 && at != "":
			whole(allAbsent)
		}
	case []any:
		for i, e := range v {
			w.along(fmt.Sprintf("%s %d", prefix, i+1), pointer(at, strconv.Itoa(i)), path, e)
		}
		if len(v) == 0 {
			whole(noneText)
		}
	}
}

// value shows everything in v, names in order. path leads to v, lists left out.
func (w *walk) value(prefix, at string, path gate.Path, v any) {
	if w.size > maxPrefixes {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			p := name(k)
			if prefix != "" {
				p = prefix + "." + p
			}
			w.value(p, pointer(at, k), append(slices.Clip(path), k), v[k])
		}
		if len(v) > 0 || at == "" {
			return
		}
	case []any:
		for i, e := range v {
			p := prefix
			if w.numbered || nested(e) {
				p = fmt.Sprintf("%s %d", prefix, i+1)
			}
			w.value(p, pointer(at, strconv.Itoa(i)), path, e)
		}
		if len(v) > 0 {
			return
		}
	}
	w.leaf(prefix, at, path, v)
}

func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func (w *walk) leaf(prefix, at string, path gate.Path, v any) {
	f := Field{Prefix: prefix, at: at}
	code := func(s string) { f.Pieces = []Piece{{Text: s}} }
	switch v := v.(type) {
	case nil:
		code(nullText)
	case bool:
		code(strconv.FormatBool(v))
	case json.Number:
		code(v.String())
	case map[string]any:
		code(hollow)
	case []any:
		code(noneText)
	case string:
		how := oneLine
		if w.body {
			how = body // mutant: show-body-lines
		}
		f.Body, f.runes = w.body, len([]rune(v))
		f.Pieces = spell(v, how)
		switch {
		case v == "":
			code(emptyText)
		case literal(v) && !slices.ContainsFunc(w.typed, func(p gate.Path) bool { return slices.Equal(p, path) }): // mutant: show-text-or-number
			f.Pieces = append([]Piece{{Text: textText}}, f.Pieces...)
		}
	}
	w.fields = append(w.fields, f)
	w.size += len(prefix) + len(at)
}

// literal says whether a text reads like another kind of value.
func literal(s string) bool {
	number := s[0] == '-' || s[0] >= '0' && s[0] <= '9'
	return s == "true" || s == "false" || number && json.Valid([]byte(s))
}

func pointer(at, name string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// decode reads canonical arguments with numbers as they are written.
func decode(args []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v map[string]any
	err := dec.Decode(&v)
	return v, err
}
