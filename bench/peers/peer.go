package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

// peer is a Node program of the folder.
type peer struct {
	title    string
	home     string // under the folder
	program  string
	packages []string // whose versions are told; the first is the peer's
	env      []string
	restate  bool          // needs a Restate server beside it
	recovers time.Duration // how long to wait for what it does by itself after a restart

	folder, dir string
	pg          *machine.Postgres
	addr        string
	proc, side  *machine.Process
	batch       atomic.Int64
	client      *http.Client
}

// peers lists those that there may be.
func peers() []*peer {
	return []*peer{
		{title: "langgraph", home: "peers", program: "langgraph.mjs", packages: []string{"@langchain/langgraph", "@langchain/langgraph-checkpoint-postgres"}, recovers: 2 * time.Second},
		{
			title: "langgraph-sync", home: "peers", program: "langgraph.mjs", packages: []string{"@langchain/langgraph", "@langchain/langgraph-checkpoint-postgres"},
			env: []string{"DURABILITY=sync"}, recovers: 2 * time.Second,
		},
		{title: "openai", home: "peers", program: "openai.mjs", packages: []string{"@openai/agents"}, recovers: 2 * time.Second},
		{title: "dbos", home: "peers", program: "dbos.mjs", packages: []string{"@dbos-inc/dbos-sdk"}, recovers: 8 * time.Second},
		{title: "restate", home: "restate", program: "restate.mjs", packages: []string{"@restatedev/restate-server", "@restatedev/restate-sdk"}, restate: true, recovers: 12 * time.Second},
	}
}

func (p *peer) name() string      { return p.title }
func (p *peer) limit() string     { return limitName(onPG) }
func (p *peer) others() bool      { return false }
func (p *peer) moments() []moment { return []moment{before, past} }
func (p *peer) actions() string   { return filepath.Join(p.dir, "actions") }
func (p *peer) orders() string    { return filepath.Join(p.dir, "orders") }

// there says whether the program and its packages are in the folder.
func (p *peer) there() bool {
	_, err := os.Stat(filepath.Join(p.folder, p.home, p.program))
	return err == nil && p.version() != ""
}

func (p *peer) version() string {
	var out []string
	for _, name := range p.packages {
		raw, err := os.ReadFile(filepath.Join(p.folder, p.home, "node_modules", filepath.FromSlash(name), "package.json"))
		var x struct{ Version string }
		if err != nil || json.Unmarshal(raw, &x) != nil {
			return ""
		}
		out = append(out, name+" "+x.Version)
	}
	return strings.Join(out, ", ")
}

func (p *peer) start(ctx context.Context) error {
	p.client = newClient()
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(p.actions(), nil, 0o600); err != nil {
		return err
	}
	if err := p.pg.Fresh(ctx, "peers", ""); err != nil {
		return err
	}
	if p.restate {
		if err := p.startRestate(ctx); err != nil {
			return err
		}
	}
	return p.up(ctx)
}

// up starts the program.
func (p *peer) up(ctx context.Context) error {
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	if p.addr, err = machine.FreeAddr(ctx); err != nil {
		return err
	}
	_, port, _ := strings.Cut(p.addr, ":")
	p.proc, err = machine.Start(machine.Command{
		Path: node, Args: []string{p.program}, Dir: filepath.Join(p.folder, p.home), Log: filepath.Join(p.dir, "log"),
		Env: append([]string{"PG=" + p.pg.URL("peers"), "PORT=" + port, "ACTION_LOG=" + p.actions(), "KILL_FILE=" + p.orders(), "DECIDE_TIMEOUT_MS=5000"}, p.env...),
	})
	if err != nil {
		return err
	}
	err = p.proc.Until(ctx, func() bool { _, err := p.call(ctx, http.MethodGet, "/stats", nil); return err == nil })
	if err == nil && p.restate {
		err = p.register(ctx)
	}
	if err != nil {
		p.stop()
	}
	return err
}

// The program's own: where it listens for its server, and where it finds it.
const (
	restateServes  = "http://127.0.0.1:19080"
	restateIngress = "127.0.0.1:18095"
)

const restateConfig = `
node-name = "bench"
base-dir = %q
listen-mode = "tcp"
bind-ip = "127.0.0.1"
bind-port = %s
disable-telemetry = true
[ingress]
bind-address = %q
[admin]
bind-address = %q
disable-web-ui = true
`

func (p *peer) startRestate(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(p.folder, p.home, "node_modules", "@restatedev", "restate-server-*", "bin", "restate-server"))
	if err != nil || len(found) == 0 {
		return errors.New("no restate-server beside the program")
	}
	own, err := machine.FreeAddr(ctx)
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(own, ":")
	config := filepath.Join(p.dir, "restate.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, restateConfig, filepath.Join(p.dir, "restate"), port, restateIngress, restateAdmin), 0o600); err != nil {
		return err
	}
	if p.side, err = machine.Start(machine.Command{Path: found[0], Args: []string{"--no-logo", "--config-file", config}, Dir: p.dir, Log: filepath.Join(p.dir, "restate.log")}); err != nil {
		return err
	}
	healthy := func() bool {
		for _, u := range []string{"http://" + restateAdmin + "/health", "http://" + restateIngress + "/restate/health"} {
			if _, _, err := call(ctx, p.client, http.MethodGet, u, nil, nil); err != nil {
				return false
			}
		}
		return true
	}
	if err := p.side.Until(ctx, healthy); err != nil {
		p.side.Kill()
		return err
	}
	return nil
}

const restateAdmin = "127.0.0.1:19070"

// register tells the server where the program is.
func (p *peer) register(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"uri":%q,"force":true}`, restateServes)
	return p.proc.Until(ctx, func() bool {
		_, _, err := call(ctx, p.client, http.MethodPost, "http://"+restateAdmin+"/deployments", http.Header{"Content-Type": {"application/json"}}, body)
		return err == nil
	})
}

func (p *peer) call(ctx context.Context, method, path string, body any) (http.Header, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	_, header, err := call(ctx, p.client, method, "http://"+p.addr+path, http.Header{"Content-Type": {"application/json"}}, raw)
	return header, err
}

func (p *peer) propose(ctx context.Context, n int) ([]approval, error) {
	prefix := fmt.Sprintf("batch%d-", p.batch.Add(1))
	if _, err := p.call(ctx, http.MethodPost, "/propose", map[string]any{"prefix": prefix, "base": 1, "n": n}); err != nil {
		return nil, err
	}
	out := make([]approval, n)
	for i := range out {
		id := fmt.Sprint(prefix, i+1)
		out[i] = approval{
			id: id,
			decide: func(ctx context.Context) error {
				header, err := p.call(ctx, http.MethodPost, "/decide", map[string]string{"id": id})
				if err == nil && header.Get("X-Not-Consumed") != "" {
					err = errors.New("the action did not run")
				}
				return err
			},
			again: func(ctx context.Context, _ int) error {
				_, err := p.call(ctx, http.MethodPost, "/decide", map[string]string{"id": id})
				return err
			},
		}
	}
	return out, nil
}

func (p *peer) drain(ctx context.Context) error {
	_, err := p.call(ctx, http.MethodGet, "/drain", nil)
	return err
}

func (p *peer) processes() []*machine.Process {
	if p.side != nil {
		return []*machine.Process{p.proc, p.side}
	}
	return []*machine.Process{p.proc}
}

func (p *peer) stop() {
	p.proc.Stop()
	if p.side != nil {
		p.side.Stop()
		p.side = nil
	}
}

// kill implements [killable].
func (p *peer) kill(ctx context.Context, at moment, a approval) error {
	order := map[moment]string{before: "before", past: "after"}[at]
	if err := os.WriteFile(p.orders(), []byte(order), 0o600); err != nil {
		return err
	}
	_ = a.again(ctx, 0) // it dies while it answers
	select {
	case <-p.proc.Ended():
	case <-time.After(answered):
		return errors.New("nothing was killed")
	}
	if err := p.up(ctx); err != nil {
		return err
	}
	want := map[moment]int{before: 1, past: 2}[at]
	for until := time.Now().Add(p.recovers); time.Now().Before(until); machine.Pause(ctx, 100*time.Millisecond) {
		if runs, err := count(p.actions(), []approval{a}); err != nil || runs[0] >= want {
			return err
		}
	}
	return nil
}
