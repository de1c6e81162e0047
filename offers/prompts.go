package offers

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/people"
)

// Events about people.
const (
	// PersonPaired tells that the owner has approved a code; the person can be asked from now on.
	PersonPaired EventType = "person.paired"
	// PersonUnbound tells that an address is a person's no more: what was open at it has ended.
	PersonUnbound EventType = "person.unbound"
)

// PairedData is the data of person.paired.
type PairedData struct {
	PersonID string `json:"person_id"`
}

// UnboundData is the data of person.unbound.
type UnboundData struct {
	PersonID string         `json:"person_id"`
	Why      people.Unbound `json:"why"`
}

// Unbinds says how what is open at an address ends when the address is a person's no more.
func Unbinds(why people.Unbound) (State, Closer) {
	switch why {
	case people.UnboundOwner:
		return Withdrawn, Closer{By: ByOwner}
	case people.UnboundIdle:
		return Undeliverable, Closer{By: ByClock}
	}
	return Undeliverable, Closer{By: ByCarrier}
}

// PromptLine is the way out of the one text that a stranger gets. It is a line of its own, since texts hang on a person's
// thread and a stranger has none.
type PromptLine interface {
	// ReservePrompt takes the oldest queued prompt whose code is not over and whose sender has neither opted out nor been
	// bound since, as sending, and commits that before it returns. nil: there is none.
	ReservePrompt(ctx context.Context) (*people.Prompt, error)
	// PromptSent records the provider's answer. Whatever it is, the prompt is not sent again.
	PromptSent(ctx context.Context, id string, res SendResult) error
}

// Prompter sends prompts.
type Prompter struct {
	line   PromptLine
	sender Sender
	wake   *Wake
	log    *slog.Logger
}

// NewPrompter makes a prompter.
func NewPrompter(line PromptLine, sender Sender, wake *Wake, log *slog.Logger) *Prompter {
	return &Prompter{line: line, sender: sender, wake: wake, log: log}
}

// Run sends until ctx ends, and then finishes the prompt that is on its way.
func (p *Prompter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		woken := p.wake.InLine()
		sent, err := p.Once(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.ErrorContext(ctx, "prompts cannot be sent", "error", err)
		}
		if !sent {
			wait(ctx, woken, time.Second)
		}
	}
}

// Once sends the next prompt, if there is one. A crash after the reservation leaves it sending for ever: a stranger whose
// prompt got lost texts again in an hour, while one who is sent two would be told two codes.
func (p *Prompter) Once(ctx context.Context) (bool, error) {
	next, err := p.line.ReservePrompt(ctx)
	if err != nil || next == nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx)
	res := p.sender.Send(ctx, Outgoing{TextID: next.ID, From: next.OurNumber, To: next.Address, Body: people.PromptText(next.Code)})
	if err := p.line.PromptSent(ctx, next.ID, res); err != nil {
		return false, err
	}
	if res.Outcome != OutcomeAccepted {
		p.log.WarnContext(ctx, "prompt not accepted", "prompt", *next, "outcome", string(PromptOutcome(res)), "code", res.Code)
	}
	return true, nil
}

// PromptOutcome is what a prompt's row keeps of a provider's answer.
func PromptOutcome(res SendResult) people.PromptState {
	switch res.Outcome {
	case OutcomeAccepted:
		return people.PromptAccepted
	case OutcomeRejected:
		return people.PromptRejected
	}
	return people.PromptUnknown
}
