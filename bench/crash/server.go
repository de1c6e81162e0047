package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// server is `bot serve` as a process of its own, so that it can really be killed.
type server struct {
	addr string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	last string        // its last words, after done
}

// startServer runs the program and returns when it listens.
func startServer(ctx context.Context, bot string, environ []string, log io.Writer) (*server, error) {
	s := &server{cmd: exec.CommandContext(ctx, bot, "serve"), done: make(chan struct{})} //nolint:gosec // the program under test
	s.cmd.Env, s.cmd.WaitDelay = environ, time.Second
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	go func() {
		defer close(s.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			_, _ = fmt.Fprintln(log, lines.Text())
			var l struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "listening" {
				listening <- l.Addr
			}
			s.last = lines.Text()
		}
		_ = s.cmd.Wait() // it was killed
	}()
	select {
	case s.addr = <-listening:
		return s, nil
	case <-s.done:
		return nil, fmt.Errorf("the server did not start: %s", s.last)
	case <-ctx.Done():
		s.kill()
		return nil, ctx.Err()
	}
}

// kill is the end that nothing can prepare for.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// outage is one kill, and the restart after it.
type outage struct{ killed, up time.Time }

// record is what is known of outages, by everybody.
type record struct {
	mu      sync.Mutex
	outages []outage
}

func (r *record) add(o outage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outages = append(r.outages, o)
}

// after is how long something that was known by then had been due when it came: the longest that a server was up without
// bringing it. 0: no kill lay between.
func (r *record) after(known, came time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var longest time.Duration
	for i, o := range r.outages {
		if o.killed.Before(known) || o.up.After(came) {
			continue
		}
		end := came
		if i+1 < len(r.outages) && r.outages[i+1].killed.Before(came) {
			end = r.outages[i+1].killed
		}
		longest = max(longest, end.Sub(o.up))
	}
	return longest
}
