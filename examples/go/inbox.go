package main

import (
	"context"
	"log"
	"sync"
)

// maxQuestions bounds how often the person is asked again about one offer, so that two machines never talk all night.
const maxQuestions = 2

// inbox is what webhooks told the agent. An agent with a database keeps it there.
type inbox struct {
	client *client
	log    *log.Logger

	mu        sync.Mutex
	texts     map[string]string // by the message's id
	questions map[string]int    // that are left, by the operation's id
}

func newInbox(c *client, log *log.Logger) *inbox {
	return &inbox{client: c, log: log, texts: map[string]string{}, questions: map[string]int{}}
}

// expect says that answers about an operation are this agent's business: an endpoint gets the events of all agents.
func (i *inbox) expect(operation string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.questions[operation] = maxQuestions
}

// hear takes an event, whose signature was checked.
func (i *inbox) hear(ctx context.Context, e event) error {
	switch e.Type {
	case "message.received":
		i.mu.Lock()
		defer i.mu.Unlock()
		i.texts[e.Data.MessageID] = e.Data.Text
	case "reply.unresolved":
		// The text was neither a sure yes nor a no, and the offer is still open. The question goes out in the message's
		// own run; the server puts the offer's last line below it. The event's id as the key: one event, one question.
		if !i.mayAsk(e.Data.Offers) {
			return nil
		}
		op, err := i.client.send(ctx, e.ID, e.Data.RunID, "I am not sure what you want.")
		if err != nil {
			return err
		}
		i.log.Printf("asked again: operation %s", op.ID)
	}
	return nil
}

func (i *inbox) mayAsk(open []offer) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, o := range open {
		if i.questions[o.OperationID] > 0 {
			i.questions[o.OperationID]--
			return true
		}
	}
	return false
}

func (i *inbox) text(message string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, ok := i.texts[message]
	return text, ok
}
