package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// cluster is a PostgreSQL server of this run's own.
type cluster struct {
	bin, dir, addr string
	owner          *syscall.Credential
}

// Durable as in production, and no checkpoint inside a run.
const clusterConf = `
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
shared_preload_libraries='pg_stat_statements'
pg_stat_statements.track=top
`

// startCluster starts the newest installed server in a directory; root hands it to the user postgres.
func startCluster(dir string) (*cluster, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no PostgreSQL under /usr/lib/postgresql: install it, or measure with -stores sqlite")
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
	if c.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := c.run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(c.addr)
	conf, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conf, "%sport=%s\nunix_socket_directories='%s'\n", clusterConf, port, dir); err != nil {
		return nil, err
	}
	if err := conf.Close(); err != nil {
		return nil, err
	}
	return c, c.run("pg_ctl", "-D", data, "-l", filepath.Join(dir, "server.log"), "-w", "-t", "60", "-s", "start")
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func (c *cluster) run(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, program), args...) //nolint:gosec,noctx // PostgreSQL's own programs
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.owner}
	// To a file: the server inherits it, and a pipe would stay open with it.
	out, err := os.Create(filepath.Join(c.dir, program+".log"))
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // a log
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %.2000s", program, err, said)
	}
	return nil
}

func (c *cluster) stop() {
	_ = c.run("pg_ctl", "-D", filepath.Join(c.dir, "data"), "-m", "fast", "-s", "-w", "stop")
}

// pid is the postmaster's.
func (c *cluster) pid() int {
	raw, _ := os.ReadFile(filepath.Join(c.dir, "data", "postmaster.pid")) //nolint:gosec // a path of ours
	line, _, _ := strings.Cut(string(raw), "\n")
	n, _ := strconv.Atoi(line)
	return n
}

func (c *cluster) url(database string) string { return urlAt(c.addr, database) }

func urlAt(addr, database string) string {
	return "postgres://postgres@" + addr + "/" + database + "?sslmode=disable"
}

// exec runs statements in a database, each as its own transaction.
func (c *cluster) exec(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, c.url(database))
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

// fresh makes a database as a copy of another, on disk before anything is measured.
func (c *cluster) fresh(ctx context.Context, name, from string) error {
	return c.exec(ctx, "postgres", `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`, `CREATE DATABASE `+name+` TEMPLATE `+from, `CHECKPOINT`)
}

// counters of work in a database.
type counters struct {
	statements int64 // executed, those of transaction control left out
	writes     int64 // transactions that wrote: reading ones get no id
	trips      int64 // waits for the server
}

func (a counters) minus(b counters) counters {
	return counters{a.statements - b.statements, a.writes - b.writes, a.trips - b.trips}
}

func (c *cluster) counters(ctx context.Context, database string, w *wire) (counters, error) {
	var n counters
	conn, err := pgx.Connect(ctx, c.url(database))
	if err != nil {
		return n, err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was only read
	err = conn.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
		WHERE query !~* '^\s*(begin|commit|rollback)' AND query !~ 'pg_stat_statements'`).Scan(&n.statements, &n.writes)
	n.trips = w.trips.Load()
	return n, err
}

// wire passes connections on to a server and counts round trips: messages after which a client waits for the server.
type wire struct {
	l     net.Listener
	to    string
	trips atomic.Int64
	wg    sync.WaitGroup
}

func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by close
	if err != nil {
		return nil, err
	}
	w := &wire{l: l, to: to}
	w.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.pass(conn) })
		}
	})
	return w, nil
}

func (w *wire) close() { _ = w.l.Close(); w.wg.Wait() }

func (w *wire) pass(client net.Conn) {
	defer client.Close()                 //nolint:errcheck // it is over
	server, err := net.Dial("tcp", w.to) //nolint:noctx // a server of ours
	if err != nil {
		return
	}
	w.wg.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
	_ = w.count(server, client)
	_ = server.Close()
}

// count copies a client's messages: a length and a start-up packet, then a type, a length and a body each. A simple
// query (Q) and a sync (S) are what the client waits after.
func (w *wire) count(server io.Writer, client io.Reader) error {
	header := make([]byte, 5)
	head, at := header[:4], 0
	for {
		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}
		if at > 0 && (head[0] == 'Q' || head[0] == 'S') {
			w.trips.Add(1)
		}
		if _, err := server.Write(head); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		if _, err := io.CopyN(server, client, n); err != nil {
			return err
		}
		head, at = header, at+1
	}
}
