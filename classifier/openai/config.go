package openai

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// DefaultBaseURL is the endpoint where none is configured.
const DefaultBaseURL = "https://api.openai.com/v1"

// ErrConfig says that a reader cannot be made from this configuration. Its
// text never holds the key.
var ErrConfig = errors.New("openai: configuration")

// Mode is where a reader's probabilities come from.
type Mode string

const (
	// Auto is Logprobs, or Verbal for models that are known to refuse
	// log-probabilities. [Open] asks the server instead.
	Auto Mode = ""
	// Logprobs reads the log-probabilities of the label's tokens.
	Logprobs Mode = "logprobs"
	// Verbal reads a number that the model writes.
	Verbal Mode = "verbal"
)

// Config is what a reader needs. It prints and logs without the key.
type Config struct {
	BaseURL string // http or https, up to and without /chat/completions; empty: [DefaultBaseURL]
	APIKey  string // empty for a local server that wants none
	Model   string
	Mode    Mode

	// Deadline for one reading; 0 or above [classifier.ReadDeadline] means that.
	Deadline time.Duration
	// HTTPClient is copied, and the copy follows no redirects; nil: one of its own.
	HTTPClient *http.Client
	// Log gets a line for an answer that could not be used; nil: none.
	Log *slog.Logger
}

// FromEnv takes OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL. It says
// whether there is enough of them to call a model: its name, and a key or an
// endpoint other than the default one, which does not answer without.
func FromEnv(env map[string]string) (Config, bool) {
	c := Config{
		BaseURL: strings.TrimSpace(env["OPENAI_BASE_URL"]),
		APIKey:  strings.TrimSpace(env["OPENAI_API_KEY"]),
		Model:   strings.TrimSpace(env["OPENAI_MODEL"]),
	}
	return c, c.Model != "" && (c.APIKey != "" || c.BaseURL != "")
}

// String shows all but the key.
func (c Config) String() string {
	key := "none"
	if c.APIKey != "" {
		key = "set"
	}
	return fmt.Sprintf("openai reader: model %q, mode %q, key %s", c.Model, c.Mode, key)
}

// GoString is String, so that %#v shows no key either.
func (c Config) GoString() string { return c.String() }

// LogValue shows all but the key.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String("model", c.Model), slog.String("mode", string(c.Mode)),
		slog.Bool("key", c.APIKey != ""))
}

// checked fills in what was left out and fails with [ErrConfig] on what cannot
// work. A base URL must not carry a name, a password or a query: they would
// stand in the errors of whatever handles the URL.
func (c Config) checked() (Config, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return c, fmt.Errorf("%w: the base URL does not parse", ErrConfig)
	}
	if u.Scheme != "http" && u.Scheme != "https" { // mutant: openai.scheme
		return c, fmt.Errorf("%w: the base URL must be http or https", ErrConfig)
	}
	if u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return c, fmt.Errorf("%w: the base URL must be a host and a path, with no name, query or fragment", ErrConfig)
	}
	if c.Model == "" || len(c.Model) > 200 || strings.ContainsFunc(c.Model, notPlain) {
		return c, fmt.Errorf("%w: the model needs a name without spaces", ErrConfig)
	}
	if strings.ContainsFunc(c.APIKey, notPlain) {
		return c, fmt.Errorf("%w: the key has a character that no key has", ErrConfig)
	}
	switch c.Mode {
	case Auto, Logprobs, Verbal:
	default:
		return c, fmt.Errorf("%w: the mode must be %s or %s", ErrConfig, Logprobs, Verbal)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func notPlain(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
