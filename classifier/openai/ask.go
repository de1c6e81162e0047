package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "github.com/sashabaranov/go-openai"
)

// Question is one question that is no reading, with the form of its answer.
type Question struct {
	System, User string
	Name         string          // of the schema
	Schema       json.RawMessage // JSON Schema of the answer, strict
	MaxTokens    int             // of the answer
}

// Asker puts questions to an endpoint under the rules of this package: the same
// transport, a temperature that is zero in practice, nothing tried twice, and no
// text or key in an error. It is safe for concurrent use.
type Asker struct {
	client   *api.Client
	cfg      Config
	plain    bool
	deadline time.Duration
}

// NewAsker calls nobody. It fails with [ErrConfig] on a configuration that cannot
// work; the deadline of the configuration is not looked at.
func NewAsker(cfg Config, deadline time.Duration) (*Asker, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	if deadline <= 0 {
		return nil, fmt.Errorf("%w: a question needs a deadline", ErrConfig)
	}
	a := &Asker{cfg: cfg, deadline: deadline}
	known := api.NewReasoningValidator()
	a.plain = known.Validate(a.request(Question{MaxTokens: 1})) != nil
	if known.Validate(a.request(Question{MaxTokens: 1})) != nil {
		return nil, fmt.Errorf("%w: model %s cannot be asked this way", ErrConfig, cfg.Model)
	}
	client := api.DefaultConfig(cfg.APIKey)
	client.BaseURL = cfg.BaseURL
	client.HTTPClient = newDoer(cfg.HTTPClient)
	a.client = api.NewClientWithConfig(client)
	return a, nil
}

// Model is the model's name.
func (a *Asker) Model() string { return a.cfg.Model }

// Ask is one question; its answer is the content as the model wrote it. It fails
// with [ErrAnswer], [ErrBody], [ErrTransport], a [*StatusError] or the context's error.
func (a *Asker) Ask(ctx context.Context, q Question) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.deadline) // mutant: openai.ask-deadline
	defer cancel()
	res, err := a.client.CreateChatCompletion(ctx, a.request(q))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", scrubbed(ctx, err)
	}
	choice, err := pick(res)
	if err != nil {
		return "", err
	}
	return choice.Message.Content, nil
}

func (a *Asker) request(q Question) api.ChatCompletionRequest {
	req := api.ChatCompletionRequest{
		Model: a.cfg.Model,
		Messages: []api.ChatCompletionMessage{
			{Role: api.ChatMessageRoleSystem, Content: q.System},
			{Role: api.ChatMessageRoleUser, Content: q.User},
		},
		ResponseFormat: &api.ChatCompletionResponseFormat{
			Type:       api.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &api.ChatCompletionResponseFormatJSONSchema{Name: q.Name, Schema: q.Schema, Strict: true},
		},
	}
	if a.plain {
		req.MaxCompletionTokens = q.MaxTokens + maxReasoningTokens
		req.ReasoningEffort = api.ReasoningEffortLow
		return req
	}
	req.Temperature = temperature
	req.MaxTokens = q.MaxTokens //nolint:staticcheck // SA1019: as in the reader's request
	return req
}
