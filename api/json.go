package api

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/offers"
)

// rawJSON goes out as it is.
type rawJSON stdjson.RawMessage

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return stdjson.RawMessage(r).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler: any JSON value, as it came.
func (r *rawJSON) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// Schema implements huma.SchemaProvider: any JSON value.
func (rawJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

var problemType = reflect.TypeFor[Problem]()

// marshal writes JSON without touching what is in it: arguments go out byte for byte as they were hashed.
func marshal(w io.Writer, v any) error {
	enc := stdjson.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func format() huma.Format {
	return huma.Format{Marshal: marshal, Unmarshal: strict}
}

// strict reads a body of ours: exact member names, none doubled, none unknown, valid UTF-8.
func strict(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(false),
		jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
}

// body reads a JSON object and hashes its canonical form. Errors say where, never what.
func body(raw []byte, v any) (offers.Digest, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return offers.Digest{}, problem(http.StatusBadRequest, "bad_request", "Send a JSON object.")
	}
	_, sum, err := offers.CanonicalWithin(raw, maxBody) // arguments in it have a limit of their own
	if err != nil {
		return sum, err
	}
	if err := strict(raw, v); err != nil {
		return sum, problem(http.StatusBadRequest, "bad_request", "The body has a member that is not known, or of the wrong type"+at(err)+".")
	}
	return sum, nil
}

// at names the member that an error is about. A name that the sender made up is not repeated.
func at(err error) string {
	ptr := pointer(err)
	if ptr == "" || strings.Count(ptr, "/") > 1 {
		return ""
	}
	return ": " + ptr[:min(len(ptr), 40)]
}

func pointer(err error) string {
	if e, ok := err.(*json.SemanticError); ok { //nolint:errorlint // returned bare
		return string(e.JSONPointer)
	}
	return ""
}

// described documents a body that is read by hand.
func described[T any](api huma.API) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: huma.SchemaFromType(api.OpenAPI().Components.Schemas, reflect.TypeFor[T]())},
	}}
}
