// Command go is a worked agent. It puts one action to a person, waits for the answer, and does exactly what was
// approved, once, also when it is killed at any point and started again. README.md says how to run it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// task is what the agent has made up its mind to do. Its id must stay the same from one start to the next: the
// Idempotency-Keys are made of it, so that a second start finds the offer of the first.
type task struct {
	ID   string         `json:"id"`
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

// errNotDone is every end but success; the log has said which.
var errNotDone = errors.New("not done")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], log.New(os.Stdout, "", 0)); err != nil {
		if !errors.Is(err, errNotDone) {
			fmt.Fprintln(os.Stderr, err)
		}
		stop()
		os.Exit(1)
	}
}

// run does the work; logs have ids, states and codes in them, and no arguments, texts, addresses or keys.
func run(ctx context.Context, args []string, log *log.Logger) error {
	if len(args) != 1 {
		return errors.New("usage: go run ./examples/go TASK.json")
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	c := &client{base: env("COUNTERSIGN_URL", "http://127.0.0.1:8080"), key: env("COUNTERSIGN_KEY", "")}
	a := agent{
		client: c,
		person: env("COUNTERSIGN_PERSON", ""),
		outbox: outbox{env("AGENT_OUTBOX", "outbox.jsonl")},
		inbox:  newInbox(c, log),
		log:    log,
	}
	if err := json.Unmarshal(raw, &a.task); err != nil || a.task.ID == "" {
		return errors.New("the task file must be a JSON object with id, tool and args")
	}
	if c.key == "" || a.person == "" {
		return errors.New("set COUNTERSIGN_KEY and COUNTERSIGN_PERSON")
	}
	if secret := env("COUNTERSIGN_WEBHOOK_SECRET", ""); secret != "" {
		stop, err := listen(ctx, env("COUNTERSIGN_WEBHOOK_ADDR", "127.0.0.1:8090"), secret, a.inbox.hear, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	return a.work(ctx)
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

type agent struct {
	client *client
	task   task
	person string
	outbox outbox
	inbox  *inbox
	log    *log.Logger
}

// work proposes, waits, and goes by the answer. A person who changes something gets a new offer that replaces the old.
func (a *agent) work(ctx context.Context) error {
	args, supersedes := a.task.Args, ""
	for revision := 1; ; revision++ {
		offer, err := a.client.propose(ctx, proposal{
			key:     fmt.Sprintf("%s-%d", a.task.ID, revision),
			Address: a.person, Tool: a.task.Tool, Args: args, Supersedes: supersedes,
		})
		if p, refused := errors.AsType[*problem](err); refused {
			// 422 is the gate, or the arguments: trying again changes nothing, and there is no way around it.
			a.log.Printf("refused: %s: %s", p.Code, p.Detail)
			return errNotDone
		}
		if err != nil {
			return err
		}
		a.inbox.expect(offer.OperationID)
		a.log.Printf("asked: operation %s", offer.OperationID)
		op, err := a.client.wait(ctx, offer.OperationID)
		if err != nil {
			return err
		}
		a.log.Printf("answer: %s", op.State)
		switch op.State {
		case "approved", "running", "succeeded", "failed":
			return a.carryOut(ctx, op.ID, args)
		case "modified":
			text, err := a.words(ctx, op.Offer.ClosedBy.MessageID)
			if err != nil {
				return err
			}
			next, ok := revise(args, text)
			if !ok {
				a.log.Printf("the change was not understood; nothing was done")
				return errNotDone
			}
			args, supersedes = next, op.Offer.ID
		default: // declined, expired, withdrawn, superseded, undeliverable, lapsed: no yes, so nothing is done
			return errNotDone
		}
	}
}

// carryOut begins, acts and reports. Only the first begin of an operation succeeds, whoever calls it.
func (a *agent) carryOut(ctx context.Context, operation string, args map[string]any) error {
	sum, err := hash(args)
	if err != nil {
		return err
	}
	result := "succeeded"
	released, err := a.client.begin(ctx, operation, sum)
	p, conflict := errors.AsType[*problem](err)
	switch {
	case err == nil:
		if err := a.outbox.send(operation, released); err != nil {
			result = "failed"
		} else {
			a.log.Printf("acted: operation %s", operation)
		}
	case conflict && p.Code == "already_begun" && p.Result.Status != "":
		result = p.Result.Status
		a.log.Printf("closed before: %s", result)
		return verdict(result)
	case conflict && p.Code == "already_begun":
		// An earlier start of this agent died between begin and result. Whether it had acted is for its own outbox to
		// say; if that does not know, the action is reported as failed. It is never done a second time on a guess.
		sent, err := a.outbox.has(operation)
		if err != nil {
			return err
		}
		if !sent {
			result = "failed"
		}
		a.log.Printf("begun before: operation %s", operation)
	case conflict: // not_approved: the approval has lapsed; args_hash_mismatch: these are not the arguments that were shown
		a.log.Printf("refused: %s: %s", p.Code, p.Detail)
		return errNotDone
	default:
		return err
	}
	if err := a.client.result(ctx, operation, result); err != nil {
		return err
	}
	a.log.Printf("result: %s", result)
	return verdict(result)
}

func verdict(result string) error {
	if result == "succeeded" {
		return nil
	}
	return errNotDone
}

// words returns the text of a message: as a webhook brought it, or else from the feed, which has everything.
func (a *agent) words(ctx context.Context, message string) (string, error) {
	if text, ok := a.inbox.text(message); ok {
		return text, nil
	}
	return a.client.text(ctx, message)
}

var carbonCopy = regexp.MustCompile(`(?i)\bcc\s+([a-z]+)`)

// revise works a change into the arguments. This is where a real agent asks its model; the person sees what came of it
// and has the last word again, so that a misunderstanding costs a text and nothing else.
func revise(args map[string]any, text string) (map[string]any, bool) {
	contacts := map[string]string{"dana": "dana@example.com", "sam": "sam@example.com"}
	m := carbonCopy.FindStringSubmatch(text)
	if m == nil || contacts[strings.ToLower(m[1])] == "" {
		return nil, false
	}
	next := map[string]any{"cc": []string{contacts[strings.ToLower(m[1])]}}
	for name, v := range args {
		if name != "cc" {
			next[name] = v
		}
	}
	return next, true
}

// outbox stands for the outside world: the action is a line in a file.
type outbox struct{ file string }

type entry struct {
	Operation string          `json:"operation"`
	Args      json.RawMessage `json:"args"`
}

// send writes the line with the operation's id, which a mail service would take as its own idempotency key.
func (o outbox) send(operation string, args json.RawMessage) error {
	f, err := os.OpenFile(o.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	line, err := json.Marshal(entry{operation, args})
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func (o outbox) has(operation string) (bool, error) {
	raw, err := os.ReadFile(o.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	for line := range strings.Lines(string(raw)) {
		var e entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Operation == operation {
			return true, nil
		}
	}
	return false, nil
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

var httpClient = &http.Client{Timeout: 90 * time.Second} // longer than the longest wait
