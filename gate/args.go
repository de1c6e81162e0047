package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// decodeArgs reads one JSON object, numbers kept as they are written. What has
// two readings (a doubled key, broken UTF-8, a number beyond what a canonical
// form can hold) is an error, never repaired. Errors name no value.
func decodeArgs(raw json.RawMessage) (map[string]any, error) {
	if !jsontext.Value(raw).IsValid() {
		return nil, errors.New("they are not one valid JSON value with distinct keys")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.New("they are not valid JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("they are not a JSON object")
	}
	if !numbersInRange(object) {
		return nil, errors.New("a number is out of range")
	}
	return object, nil
}

// numbersInRange keeps exact arithmetic on the numbers cheap: "1e999999999" is
// ten bytes of JSON and a gigabyte of digits.
func numbersInRange(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if !numbersInRange(e) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !numbersInRange(e) {
				return false
			}
		}
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return false
		}
		if _, exponent, ok := strings.Cut(strings.ToLower(v.String()), "e"); ok {
			n, err := strconv.Atoi(exponent)
			return err == nil && n > -400
		}
	}
	return true
}

// confirmationNames are the parameters by which a model could say yes in the
// person's place, without case and separators.
var confirmationNames = map[string]bool{
	"confirm": true, "confirmed": true, "approve": true, "approved": true,
	"userconfirmed": true, "userapproved": true, "consent": true, "force": true,
	"skipconfirmation": true, "bypass": true,
}

// IsConfirmationName says whether a parameter's name is one of those by which a
// call would claim that it was confirmed, in any case and with any separators:
// user_confirmed, userConfirmed, user-confirmed, USER_CONFIRMED.
func IsConfirmationName(name string) bool {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, norm.NFKC.String(name))
	return confirmationNames[strings.ToLower(letters)]
}

// carriesConfirmation looks for a confirmation parameter at any depth.
func carriesConfirmation(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if IsConfirmationName(name) || carriesConfirmation(e) { // mutant: gate-confirm-depth
				return true
			}
		}
	case []any:
		for _, e := range v {
			if carriesConfirmation(e) {
				return true
			}
		}
	}
	return false
}

// bundleParts reads {parts:[{tool,args}…]} into operations of the bundle's own
// kind, or says what is wrong.
func bundleParts(op Operation, args map[string]any) ([]Operation, string) {
	list, ok := args["parts"].([]any)
	if !ok || len(args) != 1 {
		return nil, `its arguments are {"parts": [{"tool", "args"}, …]} and nothing else`
	}
	if len(list) < 1 || len(list) > MaxBundleParts {
		return nil, fmt.Sprintf("it holds 1 to %d parts", MaxBundleParts)
	}
	parts := make([]Operation, 0, len(list))
	for i, e := range list {
		part, _ := e.(map[string]any)
		tool, hasTool := part["tool"].(string)
		partArgs, hasArgs := part["args"].(map[string]any)
		if !hasTool || !hasArgs || len(part) != 2 || tool == "" {
			return nil, fmt.Sprintf(`part %d is not {"tool", "args"} with an object as args`, i+1)
		}
		if tool == ToolBundle { // mutant: gate-bundle-depth
			return nil, fmt.Sprintf("part %d is itself a bundle", i+1)
		}
		raw, err := canonicalPart(partArgs)
		if err != nil {
			return nil, fmt.Sprintf("part %d cannot be read", i+1)
		}
		parts = append(parts, Operation{Kind: op.Kind, Tool: tool, Args: raw})
	}
	return parts, ""
}

// canonicalPart writes decoded arguments back with sorted keys and without HTML
// escapes. Number texts are kept, so canonical bytes come back as they were.
func canonicalPart(args map[string]any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(args); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.TrimRight(buf.Bytes(), "\n"))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, err
	}
	return json.RawMessage(v), nil
}
