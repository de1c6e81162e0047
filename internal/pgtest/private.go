package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// errNoServer tells what to do where there is nothing to start.
var errNoServer = errors.New("no PostgreSQL: set " + Env + " to the URL of a server whose user may create databases, " +
	"or run scripts/test, which installs and starts one")

// supervisor starts a cluster, says so on its standard output, waits until its
// standard input closes and then removes everything. The test process holds
// the other end of that input and nobody else does, so that the server ends
// with the process also when that is killed.
//
// fsync is off because no test survives a crash of the machine; everything that
// decides what a transaction sees or when it is committed stays as in production.
const supervisor = `
bin=$1 dir=$2
"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 -N >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log"; rm -rf "$dir"; exit 1; }
"$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 -s -o "-c listen_addresses= -k $dir -c fsync=off -c max_connections=300" start >/dev/null 2>&1 || { cat "$dir/server.log"; rm -rf "$dir"; exit 1; }
echo ready
cat >/dev/null
"$bin/pg_ctl" -D "$dir/data" -m immediate -s stop >/dev/null 2>&1
rm -rf "$dir"
`

// source is the server that a process uses.
type source struct {
	// url is that of a database from which others can be made.
	url string
	// hold is the pipe that keeps a private server alive: were it collected,
	// its file would close and the server end. Nil for a server elsewhere.
	hold io.Closer
}

// startPrivate starts a server for this process alone.
func startPrivate() (source, error) {
	bin, err := binaries()
	if err != nil {
		return source{}, err
	}
	owner, err := serverUser()
	if err != nil {
		return source{}, err
	}
	dir, err := os.MkdirTemp("", "countersign-pg")
	if err != nil {
		return source{}, fmt.Errorf("directory of the private server: %w", err)
	}
	cmd := osexec.Command("/bin/sh", "-c", supervisor, "sh", bin, dir) //nolint:noctx // it lives as long as the process, not as long as a call
	cmd.Dir = dir
	// A group of its own: an interrupt at the terminal reaches the test process
	// only, whose end then closes the pipe.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if owner != nil {
		cmd.SysProcAttr.Credential = owner
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			return source{}, fmt.Errorf("directory of the private server: %w", err)
		}
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return source{}, fmt.Errorf("private server: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return source{}, fmt.Errorf("private server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return source{}, fmt.Errorf("private server: %w", err)
	}
	said := bufio.NewScanner(out)
	var lines []string
	for said.Scan() {
		if said.Text() == "ready" {
			return source{"postgres:///postgres?" + url.Values{"host": {dir}, "user": {"postgres"}}.Encode(), hold}, nil
		}
		lines = append(lines, said.Text())
	}
	_ = cmd.Wait()
	return source{}, fmt.Errorf("private server did not start:\n%s", strings.Join(lines, "\n"))
}

// binaries is the directory of the newest installed server.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })
		return filepath.Dir(newest), nil
	}
	// initdb needs its sibling postgres: follow links to where both are.
	onPath, err := osexec.LookPath("initdb")
	if err != nil {
		return "", errNoServer
	}
	onPath, err = filepath.EvalSymlinks(onPath)
	if err != nil {
		return "", errNoServer
	}
	return filepath.Dir(onPath), nil
}

// major is 15 for /usr/lib/postgresql/15/bin/initdb, and 0 where there is no
// number.
func major(path string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return 0
	}
	return n
}

// serverUser is whom the server runs as: nil for the user of this process,
// and the postgres user where that is root, whom PostgreSQL refuses.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, errNoServer
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("uid of postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("gid of postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
