package machine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Server is `bot serve` as a child, so that it can really be killed. It listens where it says itself.
type Server struct {
	Addr  string
	cmd   *exec.Cmd
	ended chan struct{}
	last  string // its last words, once it has ended
}

// Serve starts a server with an environment, copies what it logs, and returns when it listens. The end of ctx kills it.
func Serve(ctx context.Context, bot string, environ []string, log io.Writer) (*Server, error) {
	s := &Server{cmd: exec.CommandContext(ctx, bot, "serve"), ended: make(chan struct{})} //nolint:gosec // the program under test
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
		defer close(s.ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			_, _ = fmt.Fprintln(log, lines.Text())
			var l struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "listening" {
				listening <- l.Addr
			}
			s.last = lines.Text()
		}
		_ = s.cmd.Wait() // how it ended is seen by what it logged
	}()
	select {
	case s.Addr = <-listening:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server did not start: %.2000s", s.last)
	case <-ctx.Done():
		s.Kill()
		return nil, ctx.Err()
	}
}

// PID of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill is the end that nothing can prepare for.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Stop lets the server end in order. An error: it did not, within a minute.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(time.Minute):
		return errors.New("the server did not end")
	}
}
