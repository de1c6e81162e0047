package webhook

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// SignatureHeader carries Twilio's HMAC.
const SignatureHeader = "X-Twilio-Signature"

// Signature checks X-Twilio-Signature against the URL that Twilio was told to
// call. The zero value accepts nothing.
//
// The URL is configuration, not something rebuilt from the request: behind a
// proxy the process sees another scheme, host and port than Twilio called, and
// forwarded headers are written by whoever sends the request. Of the request
// only the query is taken, its bytes as they arrived.
type Signature struct {
	urls   []string // accepted spellings: as configured, and with or without its port
	tokens []string
}

// NewSignature returns the check for the webhook at publicURL (scheme, host,
// optional port and path, as entered in Twilio's console, without query) and
// tokens, each an auth token of the configured account: more than one only
// while a token is being rotated. An empty list or an empty token is an error,
// since a signature under an empty key can be made by anybody.
func NewSignature(publicURL string, tokens []string) (Signature, error) {
	urls, err := spellings(publicURL)
	if err != nil {
		return Signature{}, err
	}
	if len(tokens) == 0 {
		return Signature{}, errors.New("webhook: no auth token")
	}
	for i, token := range tokens {
		if token == "" { // mutant: webhook.token-empty
			return Signature{}, fmt.Errorf("webhook: auth token %d is empty", i+1)
		}
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return Signature{}, fmt.Errorf("webhook: auth token %d holds a space, line end or other odd character", i+1)
		}
	}
	return Signature{urls: urls, tokens: slices.Clone(tokens)}, nil
}

// spellings returns raw and its one variant: without the port if it has one,
// else with the scheme's default port. Twilio's back ends differ in whether they
// sign the port; they do not differ in anything else.
func spellings(raw string) ([]string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("webhook: the public URL does not parse")
	}
	defaultPort := map[string]string{"https": "443", "http": "80"}[u.Scheme]
	switch {
	case defaultPort == "":
		return nil, errors.New("webhook: the public URL must begin with https:// or http://")
	case u.Hostname() == "" || !strings.HasPrefix(u.Path, "/"):
		return nil, errors.New("webhook: the public URL needs a host and a path")
	case u.User != nil || strings.ContainsAny(raw, "?#"):
		return nil, errors.New("webhook: the public URL must have no user, query or fragment")
	}
	rest, found := strings.CutPrefix(raw, u.Scheme+"://"+u.Host)
	if !found || strings.HasSuffix(u.Host, ":") {
		return nil, errors.New("webhook: write the public URL in its plain form, scheme and host first")
	}
	if port := u.Port(); port != "" {
		return []string{raw, u.Scheme + "://" + strings.TrimSuffix(u.Host, ":"+port) + rest}, nil
	}
	return []string{raw, u.Scheme + "://" + u.Host + ":" + defaultPort + rest}, nil
}

// verify reports whether header holds exactly one signature, and that one is of
// requestURI's query and every field of f, by one of the tokens. No token is
// chosen by what the request says.
func (s Signature) verify(header http.Header, requestURI string, f form) bool {
	given, ok := oneSignature(header)
	if !ok {
		return false
	}
	query := ""
	if i := strings.IndexByte(requestURI, '?'); i >= 0 {
		query = requestURI[i:]
	}
	params := f.signed()
	valid := false
	for _, token := range s.tokens {
		for _, u := range s.urls {
			want := sign(token, u+query+params)
			if hmac.Equal([]byte(want), []byte(given)) { // mutant: webhook.signature-compare
				valid = true
			}
		}
	}
	return valid
}

// oneSignature returns the header's value if there is exactly one and it is not
// empty. Two headers are two claims, and choosing between them is not ours.
func oneSignature(header http.Header) (string, bool) {
	all := header.Values(SignatureHeader)
	if len(all) != 1 || all[0] == "" { // mutant: webhook.signature-one-header
		return "", false
	}
	return all[0], true
}

// sign is base64(HMAC-SHA1(token, message)), Twilio's choice of algorithm.
func sign(token, message string) string {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(message))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
