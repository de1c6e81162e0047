package machine

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a server of this run's own.
type Postgres struct {
	bin, dir, addr string
	owner          *syscall.Credential
}

// durable is as in production, with no checkpoint inside a run.
const durable = `
listen_addresses='127.0.0.1'
max_connections=200
shared_buffers=512MB
max_wal_size=8GB
min_wal_size=1GB
checkpoint_timeout=30min
fsync=on
synchronous_commit=on
full_page_writes=on
jit=off
`

// StartPostgres starts the newest installed server in a directory; root hands it to the user postgres. conf is added to
// its configuration, and what it says counts.
func StartPostgres(ctx context.Context, dir, conf string) (*Postgres, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no PostgreSQL under /usr/lib/postgresql: install it")
	}
	newest := found[0]
	for _, f := range found[1:] {
		if major(f) > major(newest) {
			newest = f
		}
	}
	p := &Postgres{bin: filepath.Dir(newest), dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil { //nolint:gosec // 32 bits
			return nil, err
		}
	}
	if p.addr, err = FreeAddr(ctx); err != nil {
		return nil, err
	}
	if err := p.program(ctx, "initdb", "-D", p.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(p.addr)
	f, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(f, "%sport=%s\nunix_socket_directories='%s'\n%s\n", durable, port, dir, conf); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return p, p.Resume(ctx)
}

// Resume starts the server, at first or after it has ended. Right after a kill its children may still hold the memory that
// they shared.
func (p *Postgres) Resume(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := p.program(ctx, "pg_ctl", "-D", p.data(), "-l", filepath.Join(p.dir, "server.log"), "-w", "-t", "60", "-s", "start")
		if err == nil || tries == 100 || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Kill ends the server's first process as nothing can prepare for.
func (p *Postgres) Kill() error {
	pid := p.PID()
	if pid <= 1 {
		return fmt.Errorf("no server is there to be killed")
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// StopNow ends the server without letting it finish anything.
func (p *Postgres) StopNow() error {
	return p.program(context.Background(), "pg_ctl", "-D", p.data(), "-m", "immediate", "-s", "-w", "stop")
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) program(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...) //nolint:gosec // PostgreSQL's own programs
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.owner}
	// To a file: the server inherits it, and a pipe would stay open with it.
	out, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // a log
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %.2000s", name, err, said)
	}
	return nil
}

// Stop ends the server, whatever is still connected.
func (p *Postgres) Stop() {
	_ = p.program(context.Background(), "pg_ctl", "-D", p.data(), "-m", "fast", "-s", "-w", "stop")
}

// PID is the postmaster's.
func (p *Postgres) PID() int {
	raw, _ := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	line, _, _ := strings.Cut(string(raw), "\n")
	n, _ := strconv.Atoi(line)
	return n
}

// Addr is where the server listens.
func (p *Postgres) Addr() string { return p.addr }

// URL of a database.
func (p *Postgres) URL(database string) string { return URLAt(p.addr, database) }

// URLAt is the URL of a database at another address that leads to the server.
func URLAt(addr, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: addr, Path: database, RawQuery: "sslmode=disable"}).String()
}

// Exec runs statements in a database, each as its own transaction.
func (p *Postgres) Exec(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, p.URL(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the statements are done
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
	}
	return nil
}

// Fresh makes a database anew, as a copy of another if one is named, on disk before anything is measured.
func (p *Postgres) Fresh(ctx context.Context, name, from string) error {
	if from == "" {
		from = "template0"
	}
	return p.Exec(ctx, "postgres", `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`, `CREATE DATABASE `+name+` TEMPLATE `+from, `CHECKPOINT`)
}
