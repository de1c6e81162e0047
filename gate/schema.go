package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// validate says where the arguments leave the tool's schema, by path and
// keyword alone: a value that was sent is never in it.
func (t *Tool) validate(args map[string]any) string {
	err := t.compiled.Validate(args)
	if err == nil {
		return ""
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "they cannot be checked"
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	keyword := strings.Join(invalid.ErrorKind.KeywordPath(), "/")
	return fmt.Sprintf("%s breaks %q of its schema", printablePath(invalid.InstanceLocation), keyword)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// printablePath writes the path of an argument; a name that the caller made up
// is not repeated to the model.
func printablePath(location []string) string {
	if len(location) == 0 {
		return "the object"
	}
	names := make([]string, len(location))
	for i, name := range location {
		names[i] = name
		if !plainName.MatchString(name) {
			names[i] = "…"
		}
	}
	return strings.Join(names, ".")
}

// schemaKeywords is the closed part of JSON Schema that a tool may use. What
// chooses between shapes ($ref, anyOf, if, patternProperties …) is left out:
// code must see every argument that can occur in order to show it.
var schemaKeywords = []string{
	"$schema", "$comment", "title", "description", "default", "examples",
	"type", "enum", "const", "format", "pattern", "minLength", "maxLength",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"items", "minItems", "maxItems", "uniqueItems",
	"properties", "required", "additionalProperties", "minProperties", "maxProperties",
}

// recipientNames are argument names that hold recipients in every tool that
// reaches out, whatever its policy says.
var recipientNames = map[string]bool{
	"to": true, "cc": true, "bcc": true, "recipient": true, "recipients": true, "guest": true,
	"guests": true, "attendee": true, "attendees": true, "invitee": true, "invitees": true,
}

// schemaReader turns a schema's YAML into JSON and checks that code can see all of it.
type schemaReader struct {
	report func(n *yaml.Node, format string, a ...any)
	// closed: no argument may occur that the schema does not name. It holds for
	// whatever reaches out or deletes, and wherever a template claims to show all.
	closed bool

	leaves []Path          // arguments with no properties of their own
	types  map[string]leaf // by path
}

// leaf is what a path of the schema leads to.
type leaf struct {
	node   *yaml.Node
	types  []string
	list   bool // an array stands on the way
	object bool
}

// read checks one level of the schema that describes the value at path.
func (r *schemaReader) read(n *yaml.Node, path Path, list bool) {
	if n.Kind != yaml.MappingNode {
		r.report(n, "the schema of %s is no mapping; write {type: …}", pathOrObject(path))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(schemaKeywords, key.Value) {
			r.report(key, "schema keyword %q cannot be used here; use type, properties, items and plain limits, and make two tools where there are two shapes", key.Value)
		}
	}
	types := r.typesOf(n)
	if len(types) == 0 && r.closed {
		r.report(n, "%s has no type; a tool that acts outward, deletes or has a template says the type of every argument", pathOrObject(path))
	}
	properties := field(n, "properties")
	object := properties != nil || slices.Contains(types, "object")
	if object {
		r.readObject(n, properties, path, list)
	}
	items := field(n, "items")
	switch {
	case items != nil:
		r.read(items, path, true)
		return
	case slices.Contains(types, "array") && r.closed:
		r.report(n, "%s is an array without items; say what it holds", pathOrObject(path))
	}
	if len(path) == 0 {
		return
	}
	r.types[path.String()] = leaf{node: n, types: types, list: list, object: object}
	if properties == nil {
		r.leaves = append(r.leaves, path)
	}
}

func (r *schemaReader) readObject(n, properties *yaml.Node, path Path, list bool) {
	extra := field(n, "additionalProperties")
	if extra != nil && extra.Tag != "!!bool" {
		r.report(extra, "additionalProperties is true or false here; name the arguments instead")
	}
	if r.closed && (extra == nil || extra.Value != "false") { // mutant: gate-closed-schema
		r.report(n, "%s allows arguments that nobody would see; add additionalProperties: false", pathOrObject(path))
	}
	if required := field(n, "required"); required != nil {
		for _, e := range required.Content {
			if field(properties, e.Value) == nil {
				r.report(e, "required argument %q is not among the properties; add or remove it", e.Value)
			}
		}
	}
	if properties == nil {
		return
	}
	if properties.Kind != yaml.MappingNode {
		r.report(properties, "properties is no mapping of names to schemas")
		return
	}
	for i := 0; i+1 < len(properties.Content); i += 2 {
		name, value := properties.Content[i], properties.Content[i+1]
		if !plainName.MatchString(name.Value) || strings.Contains(name.Value, ".") {
			r.report(name, "argument name %q is not plain; use letters, digits, _ and -", name.Value)
		}
		r.read(value, append(slices.Clone(path), name.Value), list)
	}
}

// noConfirmations refuses every key, in properties as in defaults and examples,
// by which a model would learn that it can say yes.
func (r *schemaReader) noConfirmations(n *yaml.Node) {
	for i, e := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && IsConfirmationName(e.Value) { // mutant: gate-schema-confirm
			r.report(e, "%q would let a model say yes for the person; remove it", e.Value)
		}
		r.noConfirmations(e)
	}
}

func (r *schemaReader) typesOf(n *yaml.Node) []string {
	t := field(n, "type")
	if t == nil {
		return nil
	}
	if t.Kind == yaml.ScalarNode {
		return []string{t.Value}
	}
	var types []string
	for _, e := range t.Content {
		types = append(types, e.Value)
	}
	return types
}

func pathOrObject(p Path) string {
	if len(p) == 0 {
		return "the schema"
	}
	return fmt.Sprintf("argument %q", p.String())
}

// compileSchema makes a validator that loads nothing from anywhere.
func compileSchema(doc json.RawMessage) (*jsonschema.Schema, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	const url = "tool:schema"
	if err := c.AddResource(url, v); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a tool's schema stands whole in the policy")
}

// field finds a key of a mapping node; nil where it is not there.
func field(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// appendJSON writes a YAML node as JSON, in the order of the file.
func appendJSON(b []byte, n *yaml.Node) ([]byte, error) {
	var err error
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, n.Content[i].Value)
			b = append(b, ':')
			if b, err = appendJSON(b, n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, e := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	switch n.Tag {
	case "!!str", "!!timestamp":
		return appendString(b, n.Value), nil
	case "!!null":
		return append(b, "null"...), nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	scalar, err := json.Marshal(v)
	return append(b, scalar...), err
}

func appendString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return append(b, `""`...)
	}
	return append(b, quoted...)
}
