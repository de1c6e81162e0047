package openai

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	api "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/classifier"
)

// ErrAnswer says that the model did not answer with one of the five words in
// the form that was asked for. Its texts are fixed: none quotes the answer.
var ErrAnswer = errors.New("openai: no answer")

func noAnswer(why string) error { return fmt.Errorf("%w: %s", ErrAnswer, why) }

// said is an answer in the exact form.
type said struct {
	class      classifier.Class
	confidence int // percent; Verbal only
	at         int // offset of the label's first letter in the content
}

// pick gives the one choice of a response that ended as an answer does. Every
// way in which a model may say something other than its answer is an error:
// a refusal, a call of a tool, a cut or filtered text, a second choice.
func pick(res api.ChatCompletionResponse) (api.ChatCompletionChoice, error) {
	if len(res.Choices) != 1 { // mutant: openai.one-choice
		return api.ChatCompletionChoice{}, noAnswer("not exactly one choice")
	}
	c := res.Choices[0]
	m := c.Message
	switch {
	case c.FinishReason != api.FinishReasonStop: // mutant: openai.finish
		return c, noAnswer("not finished")
	case m.Refusal != "": // mutant: openai.refusal
		return c, noAnswer("refused")
	case len(m.ToolCalls) > 0 || m.FunctionCall != nil: // mutant: openai.tool-call
		return c, noAnswer("a tool call")
	case m.Role != "" && m.Role != api.ChatMessageRoleAssistant: // mutant: openai.role
		return c, noAnswer("not the assistant's message")
	case m.Content == "" || m.MultiContent != nil:
		return c, noAnswer("no text")
	}
	return c, nil
}

// parse reads the content in the form of the mode: one JSON object with exactly
// the asked fields, and for the label exactly the bytes of one of the five.
func parse(content string, mode Mode) (said, error) {
	var out said
	label, confidence := false, false
	dec := jsontext.NewDecoder(strings.NewReader(content))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return said{}, noAnswer("not an object")
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil { // a name that stands twice, among others
			return said{}, noAnswer("not an object")
		}
		field := name.String() // the token is gone after the next read
		v, err := dec.ReadValue()
		if err != nil {
			return said{}, noAnswer("not an object")
		}
		switch {
		case field == "label":
			word, ok := unquote(string(v))
			if !ok {
				return said{}, noAnswer("the label is no plain string")
			}
			if out.class, err = classifier.ParseClass(word); err != nil { // mutant: openai.exact-label
				return said{}, noAnswer("not one of the five labels")
			}
			label, out.at = true, int(dec.InputOffset())-len(word)-1
		case field == "confidence" && mode == Verbal:
			n, err := strconv.Atoi(string(v))
			if err != nil || n < 0 || n > 100 { // mutant: openai.confidence-range
				return said{}, noAnswer("the confidence is no whole number from 0 to 100")
			}
			confidence, out.confidence = true, n
		default: // mutant: openai.extra-field
			return said{}, noAnswer("a field that was not asked for")
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return said{}, noAnswer("not an object")
	}
	if _, err := dec.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder returns it bare, and anything else is wrong
		return said{}, noAnswer("text after the object")
	}
	if !label || confidence != (mode == Verbal) { // mutant: openai.missing-field
		return said{}, noAnswer("a field is missing")
	}
	return out, nil
}

// unquote takes the quotes off a JSON string that has no escapes: a label that
// is spelt another way is not the label.
func unquote(v string) (string, bool) {
	if len(v) < 2 || v[0] != '"' || strings.Contains(v, `\`) {
		return "", false
	}
	return v[1 : len(v)-1], true
}
