package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBody is the most that an answer may be, in bytes. One with the
// log-probabilities of a dozen tokens has some ten thousand.
const maxBody = 256 << 10

// StatusError is an HTTP status other than 200. The body, which may repeat the
// message, is not kept.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("openai: the endpoint answered %d", e.Code) }

// unsupported says whether the endpoint may have refused a parameter rather
// than the call.
func (e *StatusError) unsupported() bool {
	return e.Code == http.StatusBadRequest || e.Code == http.StatusUnprocessableEntity
}

// Errors of an answer that did not come through.
var (
	// ErrTransport is a connection that failed or broke.
	ErrTransport = errors.New("openai: the endpoint was not reached or broke off")
	// ErrBody is a body that is no JSON object of a sensible size.
	ErrBody = errors.New("openai: the endpoint's answer is not JSON")
)

// doer stands between go-openai and the network. It lets one kind of answer
// through: status 200, JSON by its header and by its bytes, of bounded size. So
// the library never sees a body that it would put into an error, takes no
// redirect for an answer, and decodes nothing that has two readings.
type doer struct{ client *http.Client }

func newDoer(given *http.Client) doer {
	own := http.Client{}
	if given != nil {
		own = *given
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own.Transport = t.Clone()
	}
	// The request carries the key and the person's words: it goes to the
	// configured host and nowhere else.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // mutant: openai.redirect
	return doer{client: &own}
}

// Do implements the library's HTTPDoer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()               //nolint:errcheck // read to its end or given up; there is nothing to lose
	if res.StatusCode != http.StatusOK { // mutant: openai.status
		return nil, &StatusError{Code: res.StatusCode}
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" { // mutant: openai.content-type
		return nil, fmt.Errorf("%w: content type", ErrBody)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody { // mutant: openai.body-size
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrBody, maxBody)
	}
	// Stricter than the library's decoder: one value, no name twice, valid UTF-8.
	if !jsontext.Value(body).IsValid() { // mutant: openai.body-json
		return nil, ErrBody
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}
