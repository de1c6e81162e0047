package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// serverProcess is `bot serve` as a process of its own, so that it can really be killed.
type serverProcess struct {
	addr string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, after done
	last string        // its last words, after done
}

// startServer runs self as a server and returns when it listens. What it logs goes to log. The process ends with ctx.
func startServer(ctx context.Context, self string, environ []string, log io.Writer) (*serverProcess, error) {
	s := &serverProcess{cmd: exec.CommandContext(ctx, self, "serve"), done: make(chan struct{})}
	s.cmd.Env = environ
	s.cmd.WaitDelay = time.Second
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	// A process that watches its standard input sees by its end that its parent is gone.
	if _, err := s.cmd.StdinPipe(); err != nil {
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
			var l struct {
				Msg  string `json:"msg"`
				Addr string `json:"addr"`
			}
			if json.Unmarshal(lines.Bytes(), &l) != nil {
				s.last = lines.Text()
			} else if l.Msg == "listening" {
				listening <- l.Addr
			}
		}
		s.err = s.cmd.Wait()
	}()
	select {
	case s.addr = <-listening:
		return s, nil
	case <-s.done:
		return nil, fmt.Errorf("the server did not start: %w: %s", s.err, s.last)
	case <-ctx.Done():
		s.kill()
		return nil, ctx.Err()
	}
}

// restartServer starts a server again where one was. The address may stay taken for a moment.
func restartServer(ctx context.Context, self string, environ []string, log io.Writer) (*serverProcess, error) {
	ctx2, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	for {
		s, err := startServer(ctx, self, environ, log)
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
		select {
		case <-ctx2.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// kill is the end that nothing can prepare for.
func (s *serverProcess) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// stop asks the server to end in order, and says how it ended.
func (s *serverProcess) stop(ctx context.Context) error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		s.kill()
		return errors.New("it did not end in time")
	}
}
