package openai

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/classifier"
)

// PromptVersion names the prompt files. A change of their text is a new
// version with new files: what was measured with the old is not true of it.
const PromptVersion = "v1"

//go:embed prompt-v1.txt
var prompt string

//go:embed verbal-v1.txt
var verbalPrompt string

const (
	// temperature is zero in practice. The library leaves 0 itself out, and a
	// server then takes its own default; much less makes some divide by nothing.
	temperature = 1e-6
	// topLogprobs covers the five words and their pieces.
	topLogprobs = 10
	// maxTokens of an answer, which has about ten.
	maxTokens = 64
	// maxReasoningTokens leaves room for the tokens that a reasoning model
	// counts but does not show; the deadline ends it sooner.
	maxReasoningTokens = 1024
	// maxText is the most that one message may be, in bytes.
	maxText = 8 << 10
)

// ErrInput says that a message is too long to be a text message.
var ErrInput = errors.New("openai: message too long")

// Reader asks a model. It is safe for concurrent use.
type Reader struct {
	client   *api.Client
	cfg      Config
	mode     Mode
	plain    bool // the model takes no temperature and no log-probabilities
	deadline time.Duration
}

var _ classifier.Reader = (*Reader)(nil)

// New is a reader for the endpoint. It calls nobody. It fails with [ErrConfig]
// on a configuration that cannot work, such as [Logprobs] for a model that is
// known to refuse them.
func New(cfg Config) (*Reader, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	r := &Reader{cfg: cfg, mode: cfg.Mode, deadline: cfg.Deadline}
	if r.deadline <= 0 || r.deadline > classifier.ReadDeadline { // mutant: openai.deadline-cap
		r.deadline = classifier.ReadDeadline
	}
	// The library knows which models refuse what; asking it keeps that list in
	// one place.
	known := api.NewReasoningValidator()
	r.plain = known.Validate(r.request(Logprobs, nil)) != nil
	switch {
	case r.mode == Logprobs && r.plain:
		return nil, fmt.Errorf("%w: model %s gives no log-probabilities; use mode %s", ErrConfig, cfg.Model, Verbal)
	case r.mode == Auto && r.plain:
		r.mode = Verbal
	case r.mode == Auto:
		r.mode = Logprobs
	}
	if known.Validate(r.request(r.mode, nil)) != nil {
		return nil, fmt.Errorf("%w: model %s cannot be asked this way", ErrConfig, cfg.Model)
	}
	client := api.DefaultConfig(cfg.APIKey)
	client.BaseURL = cfg.BaseURL
	client.HTTPClient = newDoer(cfg.HTTPClient)
	r.client = api.NewClientWithConfig(client)
	return r, nil
}

// Open is [New], except that with mode [Auto] the server is asked one fixed
// question to see whether it gives log-probabilities; if not, the reader is
// [Verbal]. It takes at most two deadlines. When the server gives no usable
// answer in either mode, Open returns the reader that New makes together with
// the error: it can serve, and confirms only what its mode allows.
func Open(ctx context.Context, cfg Config) (*Reader, error) {
	r, err := New(cfg)
	if err != nil || cfg.Mode != Auto || r.plain {
		return r, err
	}
	_, err = r.ask(ctx, Logprobs, sample())
	if err == nil {
		return r, nil
	}
	if status := (*StatusError)(nil); !errors.Is(err, errNoLogprobs) && !(errors.As(err, &status) && status.unsupported()) {
		return r, err
	}
	if _, err := r.ask(ctx, Verbal, sample()); err != nil {
		return r, err
	}
	r.mode = Verbal
	return r, nil
}

// sample is the question of [Open]; it holds nobody's words.
func sample() classifier.Input {
	label, err := classifier.NewLabel("send email to", "Dana")
	if err != nil {
		label = classifier.UnknownToolLabel()
	}
	return classifier.Input{Newest: classifier.NewWords("yes"), Offers: []classifier.Label{label}}
}

// Mode is where this reader's probabilities come from.
func (r *Reader) Mode() Mode { return r.mode }

const kindName = "openai"

// Fingerprint is kind, prompt version with the hash of all that the model is
// told, mode, and model, such as "openai/v1-5f0c1e22/logprobs/small-model".
func (r *Reader) Fingerprint() string {
	return fmt.Sprintf("%s/%s-%s/%s/%s", kindName, PromptVersion, promptHash(r.mode), r.mode, r.cfg.Model)
}

func promptHash(m Mode) string {
	h := sha256.Sum256([]byte(instructions(m) + "\x00" + string(schema(m))))
	return hex.EncodeToString(h[:4])
}

// ModeOf is the mode in a fingerprint of this package's: give it the one in a
// calibration file to make the reader that the file is of.
func ModeOf(fingerprint string) (Mode, bool) {
	parts := strings.SplitN(fingerprint, "/", 4)
	if len(parts) != 4 || parts[0] != kindName {
		return Auto, false
	}
	switch m := Mode(parts[2]); m {
	case Logprobs, Verbal:
		return m, true
	}
	return Auto, false
}

// Read asks the model once, within the deadline. It fails with [ErrAnswer],
// [ErrBody], [ErrTransport], [ErrInput], a [*StatusError] or the context's
// error; none of them holds text or key.
func (r *Reader) Read(ctx context.Context, in classifier.Input) (classifier.Reading, error) {
	got, err := r.ask(ctx, r.mode, in)
	if errors.Is(err, errNoLogprobs) {
		// The reading is usable, short of a confirm.
		r.cfg.Log.WarnContext(ctx, "the reader's endpoint gave no usable log-probabilities; no confirm can come of it",
			"model", r.cfg.Model)
		return got, nil
	}
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "the reader's endpoint gave no usable answer", "model", r.cfg.Model, "error", err)
		return classifier.UnclearReading(), err
	}
	return got, nil
}

// ask is one question. With errNoLogprobs it returns the reading that is left
// without them.
func (r *Reader) ask(ctx context.Context, mode Mode, in classifier.Input) (classifier.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, r.deadline) // mutant: openai.deadline
	defer cancel()
	data, err := message(in)
	if err != nil {
		return classifier.UnclearReading(), err
	}
	res, err := r.client.CreateChatCompletion(ctx, r.request(mode, data))
	if err == nil {
		err = ctx.Err() // mutant: openai.late
	}
	if err != nil {
		return classifier.UnclearReading(), scrubbed(ctx, err)
	}
	choice, err := pick(res)
	if err != nil {
		return classifier.UnclearReading(), err
	}
	answer, err := parse(choice.Message.Content, mode)
	if err != nil {
		return classifier.UnclearReading(), err
	}
	if mode == Verbal {
		return verbal(answer.class, answer.confidence), nil
	}
	p, err := fromLogprobs(choice.Message.Content, answer.at, choice.LogProbs)
	if err != nil {
		return withoutLogprobs(answer.class), err
	}
	return reading(answer.class, p), nil
}

// request is the whole of what the model is given. data is the one part that
// differs from call to call, and stands in a message of its own.
func (r *Reader) request(mode Mode, data []byte) api.ChatCompletionRequest {
	req := api.ChatCompletionRequest{
		Model: r.cfg.Model,
		Messages: []api.ChatCompletionMessage{
			{Role: api.ChatMessageRoleSystem, Content: instructions(mode)},
			{Role: api.ChatMessageRoleUser, Content: string(data)},
		},
		ResponseFormat: &api.ChatCompletionResponseFormat{
			Type:       api.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &api.ChatCompletionResponseFormatJSONSchema{Name: "reading", Schema: schema(mode), Strict: true},
		},
	}
	if mode == Verbal && r.plain {
		req.MaxCompletionTokens = maxReasoningTokens
		req.ReasoningEffort = api.ReasoningEffortLow
		return req
	}
	req.Temperature = temperature // mutant: openai.temperature
	req.MaxTokens = maxTokens     //nolint:staticcheck // SA1019: the newer name is unknown to many servers, and the models that refuse this one are plain
	if mode == Logprobs {
		req.LogProbs, req.TopLogProbs = true, topLogprobs
	}
	return req
}

func instructions(mode Mode) string {
	if mode == Verbal {
		return prompt + verbalPrompt
	}
	return prompt
}

// schema is the JSON schema of an answer.
func schema(mode Mode) json.RawMessage {
	const label = `"label":{"type":"string","enum":["unclear","confirm","decline","modify","unrelated"]}`
	if mode == Verbal {
		return json.RawMessage(`{"type":"object","properties":{` + label +
			`,"confidence":{"type":"integer"}},"required":["label","confidence"],"additionalProperties":false}`)
	}
	return json.RawMessage(`{"type":"object","properties":{` + label + `},"required":["label"],"additionalProperties":false}`)
}

// message is the input as the prompt describes it: a JSON object, in which no
// text can end its own string.
func message(in classifier.Input) ([]byte, error) {
	data := struct {
		Offers  []string `json:"offers"`
		Earlier []string `json:"earlier"`
		Reply   string   `json:"reply"`
	}{Offers: []string{}, Earlier: []string{}, Reply: in.Newest.String()}
	tooLong := len(data.Reply) > maxText
	for _, l := range in.Offers {
		data.Offers = append(data.Offers, l.String())
	}
	for i, w := range in.Earlier {
		if i == classifier.MaxEarlier {
			break
		}
		tooLong = tooLong || len(w.String()) > maxText
		data.Earlier = append(data.Earlier, w.String())
	}
	if tooLong {
		return nil, ErrInput
	}
	slices.Reverse(data.Earlier) // oldest first, as a conversation is read
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return nil, ErrInput
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// scrubbed is an error of the call with nothing in it that came from outside:
// the library's errors repeat bodies, and those of net/http repeat URLs.
func scrubbed(ctx context.Context, err error) error {
	status := (*StatusError)(nil)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("openai: %w", ctx.Err())
	case errors.As(err, &status):
		return status
	case errors.Is(err, ErrBody):
		return ErrBody
	case errors.Is(err, api.ErrChatCompletionInvalidModel):
		return fmt.Errorf("%w: the model does not chat", ErrConfig)
	}
	var field *json.UnmarshalTypeError
	var name *net.DNSError
	var dial *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &field):
		return fmt.Errorf("%w: not a completion", ErrBody)
	case errors.As(err, &name):
		return fmt.Errorf("%w: name not found", ErrTransport)
	case errors.As(err, &cert):
		return fmt.Errorf("%w: certificate", ErrTransport)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("%w: no connection", ErrTransport)
	}
	return ErrTransport // mutant: openai.scrub
}
