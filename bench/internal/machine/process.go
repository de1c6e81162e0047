// Package machine is what measurements need of the machine: processes that are started and ended, the memory and the
// processor time that they take, and a PostgreSQL server of a run's own.
package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Command says what to start.
type Command struct {
	Path string
	Args []string
	Dir  string   // empty: this process's
	Env  []string // besides this process's own
	Log  string   // the file that its output is added to
	Out  *os.File // not nil: its standard output instead
}

// Process is a child.
type Process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// Start starts a child, in a process group of its own: an interrupt at the terminal reaches this process only, which
// then ends its children in order.
func Start(c Command) (*Process, error) {
	f, err := os.OpenFile(c.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()                                                                             //nolint:errcheck // the child has its own
	p := &Process{cmd: exec.Command(c.Path, c.Args...), log: c.Log, ended: make(chan struct{})} //nolint:gosec,noctx // programs of the caller's, ended by Stop
	p.cmd.Dir, p.cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	if c.Out != nil {
		p.cmd.Stdout = c.Out
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

// Log is the file that the child's output is added to.
func (p *Process) Log() string { return p.log }

// PID of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the child has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop asks the child to end, and ends it where it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(15 * time.Second):
		p.Kill()
	}
}

// Kill is the end that nothing can prepare for.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Until waits until ready is true, and fails when the child ends before, or after a minute.
func (p *Process) Until(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !ready() {
		select {
		case <-p.ended:
			said, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), said[max(0, len(said)-2000):])
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", filepath.Base(p.cmd.Path), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Listening waits until somebody answers at an address.
func (p *Process) Listening(ctx context.Context, addr string) error {
	return p.Until(ctx, func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		return err == nil && conn.Close() == nil
	})
}

// Peak is the child's largest resident memory so far, in bytes; 0 where the system does not say.
func (p *Process) Peak() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	var kb int64
	_, _ = fmt.Sscan(rest, &kb)
	return kb << 10
}

// Pause waits, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// FreeAddr is an address of this machine at which nobody listens.
func FreeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Build builds a package of a module into a file, as releases are built: nothing that measures one is linked to a C library.
func Build(ctx context.Context, dir, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg) //nolint:gosec // a build of the caller's
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %.2000s", pkg, err, said)
	}
	return nil
}

// Meter tells what a measurement takes of the machine, and what others take meanwhile: where that is much, times are worth
// little, and processor time is what remains to be compared.
type Meter struct {
	pids       []int
	at         time.Time
	busy, self float64
	ours       []float64
}

// NewMeter begins. Ours are this process, alone, and the given ones with their children: a postmaster counts for its
// backends.
func NewMeter(pids ...int) Meter {
	m := Meter{pids: pids, at: time.Now(), busy: busy(), self: used(os.Getpid())}
	for _, p := range pids {
		m.ours = append(m.ours, used(p))
	}
	return m
}

// Read gives the processor seconds that each of the given processes has taken since, and the number of cores that others
// have used.
func (m Meter) Read() (cpu []float64, foreign float64) {
	wall := time.Since(m.at).Seconds()
	others := busy() - m.busy - (used(os.Getpid()) - m.self)
	for i, p := range m.pids {
		cpu = append(cpu, used(p)-m.ours[i])
		others -= cpu[i]
	}
	return cpu, max(0, others/wall)
}

const ticksPerSecond = 100 // of Linux's user interface, on every platform that Go knows

// busy are the seconds that all processors have worked.
func busy() float64 {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	var total float64
	for i, f := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // name, idle, waiting, guests (counted as user)
			continue
		}
		v, _ := strconv.ParseFloat(f, 64)
		total += v
	}
	return total / ticksPerSecond
}

// used is a process's processor time with its children's, those that have ended too. This process counts alone.
func used(process int) float64 {
	self := process == os.Getpid()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var total float64
	for _, name := range stats {
		raw, err := os.ReadFile(name) //nolint:gosec // a path of /proc
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		_, rest, _ := strings.Cut(string(raw), ") ")
		f := strings.Fields(rest)
		if len(f) < 15 {
			continue
		}
		parent, _ := strconv.Atoi(f[1])
		if pid != process && (self || parent != process) {
			continue
		}
		last := 13 // user and system
		if pid == process && !self {
			last = 15 // and those of children that have ended
		}
		for _, v := range f[11:last] {
			t, _ := strconv.ParseFloat(v, 64)
			total += t
		}
	}
	return total / ticksPerSecond
}

// CopyFile copies a file, onto the disk.
func CopyFile(to, from string) error {
	raw, err := os.ReadFile(from) //nolint:gosec // a path of the caller's
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = out.Write(raw)
	return errors.Join(err, out.Sync(), out.Close())
}
