package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

// agentKey is the environment variable that holds the agent's key.
const agentKey = "COUNTERSIGN_BENCH_KEY"

// agent is what acts on Countersign's approvals, as a process of its own: it reads the feed from its beginning, begins
// what was approved, runs the action, and posts the result. What somebody has begun before it and never reported, it
// does not run again: nobody knows what came of it, and that is what it reports.
//
// It tells its parent on standard output: "ready", "ran ID" when an action has run, "reported ID" when its result is posted.
type agent struct {
	url, key string
	actions  *os.File // one line each
	orders   string   // a file: where the next action is to end in SIGKILL, and whose
	client   *http.Client
	mu       sync.Mutex // of out
	out      *bufio.Writer
}

func agentCommand(ctx context.Context, args []string) error {
	a := agent{key: os.Getenv(agentKey), client: newClient(), out: bufio.NewWriter(os.Stdout)}
	var actions string
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.StringVar(&a.url, "url", "", "the server")
	flags.StringVar(&actions, "actions", "", "the file of actions")
	flags.StringVar(&a.orders, "orders", "", "the file of orders to die")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if a.actions, err = os.OpenFile(actions, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil { //nolint:gosec // the parent names it
		return err
	}
	return a.run(ctx)
}

// atOnce is how many approvals are under way at most.
const atOnce = 32

func (a *agent) run(ctx context.Context) error {
	slots := make(chan struct{}, atOnce)
	after, wait := "", "0s"
	for ctx.Err() == nil {
		raw, err := a.call(ctx, http.MethodGet, "/v1/events?"+url.Values{"after": {after}, "wait": {wait}, "limit": {"1000"}}.Encode(), nil)
		if err != nil {
			machine.Pause(ctx, 20*time.Millisecond)
			continue
		}
		var page struct {
			Events []struct {
				Type string
				Data struct {
					Operation struct {
						ID         string `json:"id"`
						ArgsSHA256 string `json:"args_sha256"`
					} `json:"operation"`
				} `json:"data"`
			}
			Next string
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return err
		}
		after = page.Next
		for _, e := range page.Events {
			if e.Type == "operation.approved" {
				slots <- struct{}{}
				go func() {
					defer func() { <-slots }()
					if err := a.approved(ctx, e.Data.Operation.ID, e.Data.Operation.ArgsSHA256); err != nil && ctx.Err() == nil {
						fmt.Fprintln(os.Stderr, "agent:", err)
					}
				}()
			}
		}
		if len(page.Events) == 0 && wait == "0s" {
			wait = "10s"
			a.tell("ready")
		}
	}
	return nil
}

// approved begins, acts and reports.
func (a *agent) approved(ctx context.Context, id, sum string) error {
	at, server := a.order()
	if at == afterYes {
		die(server)
	}
	body, err := json.Marshal(map[string]string{"args_sha256": sum})
	if err != nil {
		return err
	}
	_, err = a.call(ctx, http.MethodPost, "/v1/operations/"+id+"/begin", body)
	var no *refused
	if errors.As(err, &no) && no.status == http.StatusConflict {
		var earlier struct {
			Code   string
			Result json.RawMessage
		}
		if err := json.Unmarshal(no.body, &earlier); err != nil {
			return err
		}
		if earlier.Code != "already_begun" || len(earlier.Result) > 0 && string(earlier.Result) != "null" {
			return nil // lapsed, or reported long ago
		}
		_, err = a.call(ctx, http.MethodPost, "/v1/operations/"+id+"/result", []byte(`{"status":"failed"}`))
		return err
	}
	if err != nil {
		return err
	}
	if at == before {
		die(server)
	}
	if _, err := a.actions.WriteString(id + "\n"); err != nil {
		return err
	}
	if at == past {
		die(server)
	}
	a.tell("ran " + id)
	_, err = a.call(ctx, http.MethodPost, "/v1/operations/"+id+"/result", []byte(`{"status":"succeeded"}`))
	a.tell("reported " + id)
	return err
}

// order takes the order to die, if there is one.
func (a *agent) order() (moment, int) {
	raw, err := os.ReadFile(a.orders)
	if err != nil {
		return "", 0
	}
	_ = os.Remove(a.orders)
	at, server, _ := strings.Cut(string(raw), "\n")
	var pid int
	_, _ = fmt.Sscan(server, &pid)
	return moment(at), pid
}

// die kills the server, and this process with it.
func die(server int) {
	if server > 1 {
		_ = syscall.Kill(server, syscall.SIGKILL)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (a *agent) tell(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintln(a.out, line)
	_ = a.out.Flush() // the parent is gone, and will end this process
}

func (a *agent) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	header := http.Header{"Authorization": {"Bearer " + a.key}}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	raw, _, err := call(ctx, a.client, method, a.url+path, header, body)
	return raw, err
}
