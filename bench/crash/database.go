package main

import (
	"context"
	"database/sql"
	"fmt"
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
	_ "modernc.org/sqlite" // the driver that reads the file beside the server
)

// database is where the server keeps everything, read beside it with SQL alone.
type database interface {
	url() string
	// rows reads columns that are all text.
	rows(ctx context.Context, query string) ([][]string, error)
	// crash ends the database as it stands; false: it lives in the server and ends with it. revive brings it back.
	crash(immediate bool) bool
	revive(ctx context.Context) error
}

type sqliteFile string

func (f sqliteFile) url() string                  { return "sqlite:" + string(f) }
func (f sqliteFile) crash(bool) bool              { return false }
func (f sqliteFile) revive(context.Context) error { return nil }

func (f sqliteFile) rows(ctx context.Context, query string) ([][]string, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: string(f)}).EscapedPath()+"?_busy_timeout=10000&_pragma=query_only(ON)")
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for rows.Next() {
		row, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// cluster is a PostgreSQL server of this run's own.
type cluster struct {
	bin, dir string
	owner    *syscall.Credential
}

// Commits are synchronous as in production. fsync is off: a process that is killed takes nothing with it that it has
// handed to the system; only a machine that loses its power would.
const clusterConf = `
listen_addresses=''
max_connections=100
fsync=off
synchronous_commit=on
`

// startCluster starts the newest installed server in a directory; root hands it to the user postgres.
func startCluster(ctx context.Context, dir string) (*cluster, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no PostgreSQL under /usr/lib/postgresql: install it, or play -stores sqlite")
	}
	newest := found[0]
	for _, f := range found[1:] {
		if major(f) > major(newest) {
			newest = f
		}
	}
	c := &cluster{bin: filepath.Dir(newest), dir: dir}
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
		c.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil { //nolint:gosec // 32 bits
			return nil, err
		}
	}
	if err := c.program(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"); err != nil {
		return nil, err
	}
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conf, "%sunix_socket_directories='%s'\n", clusterConf, dir); err != nil {
		return nil, err
	}
	if err := conf.Close(); err != nil {
		return nil, err
	}
	return c, c.revive(ctx)
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) url() string {
	return "postgres:///postgres?" + url.Values{"host": {c.dir}, "user": {"postgres"}}.Encode()
}

func (c *cluster) program(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...) //nolint:gosec // PostgreSQL's own programs
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.owner}
	// To a file: the server inherits it, and a pipe would stay open with it.
	out, err := os.Create(filepath.Join(c.dir, name+".log"))
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

// revive starts the server. Right after a kill its children may still hold the memory that they shared.
func (c *cluster) revive(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := c.program(ctx, "pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "server.log"), "-w", "-t", "60", "-s", "start")
		if err == nil || tries == 100 || ctx.Err() != nil {
			return err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func (c *cluster) crash(immediate bool) bool {
	if immediate {
		return c.program(context.Background(), "pg_ctl", "-D", c.data(), "-m", "immediate", "-s", "-w", "stop") == nil
	}
	raw, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid")) //nolint:gosec // a path of ours
	if err != nil {
		return false
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(line)
	return err == nil && pid > 1 && syscall.Kill(pid, syscall.SIGKILL) == nil
}

func (c *cluster) stop() {
	_ = c.program(context.Background(), "pg_ctl", "-D", c.data(), "-m", "immediate", "-s", "-w", "stop")
}

func (c *cluster) rows(ctx context.Context, query string) ([][]string, error) {
	conn, err := pgx.Connect(ctx, c.url())
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was only read
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]string, error) {
		out := make([]string, len(r.FieldDescriptions()))
		into := make([]any, len(out))
		for i := range out {
			into[i] = &out[i]
		}
		return out, r.Scan(into...)
	})
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
