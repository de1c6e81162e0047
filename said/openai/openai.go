// Package openai extracts intents by any endpoint that speaks OpenAI's chat
// completions. The model sees the person's unquoted words and their local time,
// and nothing else: no history, no tool, no contact, no name of an account. What
// it answers is a proposal that said.Validate checks word by word.
//
// A failure of any sort (no connection, a late or broken answer, a refusal) is an
// error, and so no intents. Nothing is tried twice.
package openai

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	endpoint "github.com/countersign/countersign/classifier/openai"
	"github.com/countersign/countersign/said"
)

// PromptVersion names the prompt file. A change of its text is a new version with
// a new file: what was measured with the old is not true of it.
const PromptVersion = "v1"

//go:embed prompt-v1.txt
var prompt string

//go:embed schema-v1.json
var schema []byte

const (
	// Deadline of one extraction.
	Deadline = 10 * time.Second
	// maxTokens of an answer: ten intents of some sixty.
	maxTokens = 1024
)

// ErrWords says that there were no words, or more than a text can have.
var ErrWords = errors.New("said: no words that could be shown to a model")

// Extractor asks a model. It is safe for concurrent use.
type Extractor struct{ asker *endpoint.Asker }

var _ said.Extractor = (*Extractor)(nil)

// New calls nobody. A deadline of 0, or above Deadline, means Deadline. It fails
// with the endpoint package's ErrConfig.
func New(cfg endpoint.Config, deadline time.Duration) (*Extractor, error) {
	if deadline <= 0 || deadline > Deadline {
		deadline = Deadline
	}
	asker, err := endpoint.NewAsker(cfg, deadline)
	if err != nil {
		return nil, err
	}
	return &Extractor{asker: asker}, nil
}

// Fingerprint is kind, prompt version with the hash of all that the model is
// told, and model.
func (x *Extractor) Fingerprint() string {
	h := sha256.Sum256([]byte(prompt + "\x00" + string(schema)))
	return fmt.Sprintf("openai/%s-%s/%s", PromptVersion, hex.EncodeToString(h[:4]), x.asker.Model())
}

// Extract asks once. Its errors hold no words and no key.
func (x *Extractor) Extract(ctx context.Context, turn said.Turn) ([]said.Candidate, []said.Drop, error) {
	if turn.Words == "" || len(turn.Words) > said.MaxTextBytes {
		return nil, nil, ErrWords
	}
	user, err := message(turn)
	if err != nil {
		return nil, nil, err
	}
	answer, err := x.asker.Ask(ctx, endpoint.Question{System: prompt, User: user, Name: "intents", Schema: schema, MaxTokens: maxTokens})
	if err != nil {
		return nil, nil, err
	}
	candidates, drops := said.ParseCandidates(answer)
	return candidates, drops, nil
}

// message is a JSON object, in which no text can end its own string.
func message(turn said.Turn) (string, error) {
	local := turn.Local()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		LocalTime string `json:"local_time"`
		Weekday   string `json:"weekday"`
		Words     string `json:"words"`
	}{local.Format("2006-01-02T15:04"), local.Weekday().String(), turn.Words})
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}
