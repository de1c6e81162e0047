package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child that serves something.
type process struct {
	cmd   *exec.Cmd
	log   *os.File // standard error
	ended chan struct{}
}

// start runs a program; what it writes to standard error goes to a file.
func start(logFile string, env []string, program string, args ...string) (*process, error) {
	f, err := os.Create(logFile) //nolint:gosec // a path of ours
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), log: f, ended: make(chan struct{})} //nolint:gosec,noctx // programs of ours, ended by stop
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = f
	// A group of its own: an interrupt at the terminal reaches this process only, which then ends its children in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

// listening waits until something answers at an address.
func (p *process) listening(addr string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			deadline = time.Time{}
		case <-time.After(20 * time.Millisecond):
		}
	}
	said, err := os.ReadFile(p.log.Name())
	return errors.Join(fmt.Errorf("%s does not listen: %.2000s", filepath.Base(p.cmd.Path), said), err)
}

// stop asks the program to end and waits until it has.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	_ = p.log.Close()
}

// peak is the largest resident memory so far, in bytes; 0 where the system does not say.
func (p *process) peak() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(fields[0], 10, 64)
	return kb << 10
}

// freeAddr is an address of this machine at which nobody listens.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// meter tells what a measurement took of the machine, and what others took meanwhile: where that is much, times are
// worth little, and processor time per confirm is what remains to be compared.
type meter struct {
	pids        []int
	at          time.Time
	busy, bench float64
	ours        []float64
}

// newMeter begins. Processes are ours with their children: a postmaster counts for its backends.
func newMeter(pids ...int) meter {
	m := meter{pids: pids, at: time.Now()}
	m.busy, m.bench = busySeconds(), cpuSeconds(os.Getpid())
	for _, p := range pids {
		m.ours = append(m.ours, cpuSeconds(p))
	}
	return m
}

// read gives the processor seconds of each process, and the number of cores that others have used.
func (m meter) read() (cpu []float64, foreign float64) {
	wall := time.Since(m.at).Seconds()
	others := busySeconds() - m.busy - (cpuSeconds(os.Getpid()) - m.bench)
	for i, p := range m.pids {
		cpu = append(cpu, cpuSeconds(p)-m.ours[i])
		others -= cpu[i]
	}
	return cpu, max(0, others/wall)
}

const ticksPerSecond = 100 // of Linux's user interface, on every platform that Go knows

func busySeconds() float64 {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	var total float64
	for i, f := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // name, idle, iowait, guests (counted in user)
			continue
		}
		v, _ := strconv.ParseFloat(f, 64)
		total += v
	}
	return total / ticksPerSecond
}

// cpuSeconds is a process's with its children's, those that have ended too. This process counts alone.
func cpuSeconds(process int) float64 {
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

// copyTree copies the files of a folder.
func copyTree(to, from string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// goBuild builds a package into a file.
func goBuild(dir, out, pkg string) error {
	cmd := exec.Command("go", "build", "-o", out, pkg) //nolint:gosec,noctx // a build of ours
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %.2000s", pkg, err, said)
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
