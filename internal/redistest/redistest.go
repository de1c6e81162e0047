// Package redistest hands tests a Redis.
//
// URL is the server that COUNTERSIGN_TEST_REDIS names, which scripts/test starts, or a private one. Start is always a
// private one, to be stopped, slowed down or emptied. A private server listens on a unix socket in a directory that only
// its user can enter, and ends with the process that started it, however that process ends. A machine without
// redis-server fails the test: what was not tested must not look like what passed.
package redistest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Env names the variable that holds the URL of the server to use.
const Env = "COUNTERSIGN_TEST_REDIS"

// URL is that of a server that others use too: names in it must be the test's own.
func URL(t testing.TB) string {
	t.Helper()
	if u := os.Getenv(Env); u != "" {
		return u
	}
	return Start(t).URL
}

// Server is a private server.
type Server struct {
	URL  string
	t    testing.TB
	dir  string
	hold io.Closer
	done chan struct{}
}

// supervisor runs a server until its standard input closes; the test process alone holds the other end.
const supervisor = `
redis-server --port 0 --unixsocket "$1/redis.sock" --unixsocketperm 700 --save '' --appendonly no --daemonize no --dir "$1" &
pid=$!
cat >/dev/null
kill -9 $pid 2>/dev/null
`

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "countersign-redis") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, URL: (&url.URL{Scheme: "unix", Path: filepath.Join(dir, "redis.sock")}).String()}
	t.Cleanup(func() {
		s.Stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.Restart()
	return s
}

// Restart starts a server again that was stopped. It is empty.
func (s *Server) Restart() {
	s.t.Helper()
	cmd := osexec.Command("/bin/sh", "-c", supervisor, "sh", s.dir) //nolint:noctx // Stop ends it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.hold, s.done = in, make(chan struct{})
	said := bufio.NewScanner(out)
	var lines []string
	for said.Scan() {
		lines = append(lines, said.Text())
		if strings.Contains(said.Text(), "Ready to accept connections") || strings.Contains(said.Text(), "ready to accept connections") {
			go func() {
				defer close(s.done)
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait()
			}()
			return
		}
	}
	_ = cmd.Wait()
	close(s.done)
	s.t.Fatalf("redis-server did not start; scripts/test installs it:\n%s", strings.Join(lines, "\n"))
}

// Stop ends the server at once; what it knew is gone.
func (s *Server) Stop() {
	_ = s.hold.Close()
	<-s.done
	_ = os.Remove(filepath.Join(s.dir, "redis.sock"))
}

// Proxy stands before a server and can hold back what it says.
type Proxy struct {
	URL string

	mu    sync.Mutex
	delay time.Duration
}

// Slow has every answer that comes from now on arrive so much later.
func (p *Proxy) Slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) wait() <-chan time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.delay == 0 {
		return nil
	}
	return time.After(p.delay)
}

// Proxy puts one before the server.
func (s *Server) Proxy() *Proxy {
	s.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	p := &Proxy{URL: "redis://" + l.Addr().String() + "/0"}
	ended := make(chan struct{})
	var conns sync.WaitGroup
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.carry(client, filepath.Join(s.dir, "redis.sock"), ended) })
		}
	}()
	s.t.Cleanup(func() {
		_ = l.Close()
		close(ended)
		conns.Wait()
	})
	return p
}

// carry joins one connection to the server until either side ends it.
func (p *Proxy) carry(client net.Conn, socket string, ended <-chan struct{}) {
	defer client.Close() //nolint:errcheck // a test's connection
	var d net.Dialer
	server, err := d.DialContext(context.Background(), "unix", socket) // a connection ends with either side
	if err != nil {
		return
	}
	var both sync.WaitGroup
	stop := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(stop); _ = client.Close(); _ = server.Close() }) }
	both.Go(func() { defer end(); _, _ = io.Copy(server, client) })
	both.Go(func() {
		defer end()
		buf := make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if later := p.wait(); later != nil {
				select {
				case <-later:
				case <-stop:
				case <-ended:
				}
			}
			if n > 0 {
				if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	both.Go(func() {
		select {
		case <-ended:
			end()
		case <-stop:
		}
	})
	both.Wait()
}
