package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // to empty a seed's log into its file

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/machine"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/sqlite"
)

// countersign is `bot serve` on one store, with an agent.
type countersign struct {
	store, bot, dir, twilioURL string
	pg                         *machine.Postgres

	key        string
	operations []string // of the people, in their order: one open offer each

	addr   string
	server *machine.Process
	agent  *machine.Process
	next   int
	client *http.Client

	ready         atomic.Bool
	ran, reported atomic.Int64
	mu            sync.Mutex
	waits         map[string]chan struct{} // closed when the operation's action has run
}

func (c *countersign) name() string    { return "countersign, " + c.store }
func (c *countersign) version() string { return "" }
func (c *countersign) limit() string   { return limitName(c.store) }
func (c *countersign) others() bool    { return true }
func (c *countersign) moments() []moment {
	return []moment{afterYes, before, past}
}
func (c *countersign) actions() string { return filepath.Join(c.dir, "actions") }
func (c *countersign) orders() string  { return filepath.Join(c.dir, "orders") }

// Seeds: what every start copies.

func (c *countersign) seedFile() string { return filepath.Join(c.dir, "seed.db") }

func (c *countersign) databaseURL(seed bool) string {
	switch {
	case c.store == onPG && seed:
		return c.pg.URL("countersign_seed")
	case c.store == onPG:
		return c.pg.URL("countersign")
	case seed:
		return "sqlite:" + c.seedFile()
	}
	return "sqlite:" + filepath.Join(c.dir, "run.db")
}

// seed gives n people one open, shown offer each, by the calls that a server makes, and makes the agent's key.
func (c *countersign) seed(ctx context.Context, n int) error {
	c.client = newClient()
	if err := os.MkdirAll(c.dir, 0o750); err != nil {
		return err
	}
	workers := 1
	var s crowd.Store
	var err error
	if c.store == onPG {
		workers = 4
		if err := c.pg.Fresh(ctx, "countersign_seed", ""); err != nil {
			return err
		}
		s, err = postgres.Open(ctx, c.databaseURL(true)+"&synchronous_commit=off&pool_max_conns=6")
	} else {
		s, err = sqlite.Open(ctx, c.seedFile())
	}
	if err != nil {
		return err
	}
	if _, err = s.Migrate(ctx); err == nil {
		c.operations, err = crowd.Seed(ctx, s, func(int) string { return people.DefaultAccount }, n, workers)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	out, err := c.command(ctx, "keys", "create", "--name", "bench", "--scope", "agent", "--json")
	var key struct{ Key string }
	if err == nil {
		err = json.Unmarshal(out, &key)
	}
	if c.key = key.Key; err != nil {
		return err
	}
	if c.store == onPG {
		return c.pg.Exec(ctx, "countersign_seed", `VACUUM (ANALYZE)`)
	}
	db, err := sql.Open("sqlite", c.seedFile())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return errors.Join(err, db.Close())
}

func (c *countersign) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.bot, args...) //nolint:gosec // the program under test
	cmd.Env = append(os.Environ(), c.environ(true)...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("bot %s: %w: %.1000s", args[0], err, exit.Stderr)
	}
	return out, err
}

func (c *countersign) environ(seed bool) []string {
	// One agent is all the load.
	return append(crowd.Environ(c.addr, c.databaseURL(seed), c.twilioURL),
		"COUNTERSIGN_RATE_KEY=off", "COUNTERSIGN_RATE_ACCOUNT=off", "COUNTERSIGN_RATE_SENDER=off")
}

func (c *countersign) remove() { _ = os.RemoveAll(c.dir) }

// Runs.

func (c *countersign) start(ctx context.Context) (err error) {
	if c.store == onPG {
		err = c.pg.Fresh(ctx, "countersign", "countersign_seed")
	} else {
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.Remove(filepath.Join(c.dir, "run.db"+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		err = machine.CopyFile(filepath.Join(c.dir, "run.db"), c.seedFile())
	}
	if err != nil {
		return err
	}
	if c.addr, err = machine.FreeAddr(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(c.actions(), nil, 0o600); err != nil {
		return err
	}
	c.next, c.waits = 0, map[string]chan struct{}{}
	return c.up(ctx)
}

// up starts the server and the agent.
func (c *countersign) up(ctx context.Context) error {
	var err error
	c.server, err = machine.Start(machine.Command{Path: c.bot, Args: []string{"serve"}, Env: c.environ(false), Log: filepath.Join(c.dir, "serve.log")})
	if err != nil {
		return err
	}
	if err := c.server.Listening(ctx, c.addr); err != nil {
		c.server.Kill()
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	c.ready.Store(false)
	c.ran.Store(0)
	c.reported.Store(0)
	c.agent, err = machine.Start(machine.Command{
		Path: self, Args: []string{"agent", "-url", "http://" + c.addr, "-actions", c.actions(), "-orders", c.orders()},
		Env: []string{agentKey + "=" + c.key}, Log: filepath.Join(c.dir, "agent.log"), Out: theirs,
	})
	_ = theirs.Close() // the child has its own
	if err != nil {
		c.server.Kill()
		return errors.Join(err, ours.Close())
	}
	go c.hear(ours)
	if err := c.agent.Until(ctx, c.ready.Load); err != nil {
		c.stop()
		return err
	}
	return nil
}

// hear notes what the agent tells, until it has ended.
func (c *countersign) hear(from *os.File) {
	defer from.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		word, id, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "ready":
			c.ready.Store(true)
		case "ran":
			c.ran.Add(1)
			c.mu.Lock()
			if w := c.waits[id]; w != nil {
				close(w)
				delete(c.waits, id)
			}
			c.mu.Unlock()
		case "reported":
			c.reported.Add(1)
		}
	}
}

// answered is how long an approval may take until its action runs.
const answered = 20 * time.Second

func (c *countersign) propose(_ context.Context, n int) ([]approval, error) {
	n = min(n, len(c.operations)-c.next)
	if n == 0 {
		return nil, errors.New("nobody has an open offer any more: more -people, or fewer -seconds")
	}
	out := make([]approval, n)
	for i := range out {
		id := c.operations[c.next]
		c.next++
		person := c.next
		first := crowd.NewReply(person, 0, yes, crowd.PublicURL+crowd.HookPath)
		post := func(ctx context.Context, r crowd.Reply) error {
			_, _, err := call(ctx, c.client, http.MethodPost, "http://"+c.addr+crowd.HookPath, r.Header, r.Body)
			return err
		}
		out[i] = approval{
			id: id,
			decide: func(ctx context.Context) error {
				done := make(chan struct{})
				c.mu.Lock()
				c.waits[id] = done
				c.mu.Unlock()
				if err := post(ctx, first); err != nil {
					return err
				}
				t := time.NewTimer(answered)
				defer t.Stop()
				select {
				case <-done:
					return nil
				case <-t.C:
					return errors.New("the action did not run")
				case <-ctx.Done():
					return ctx.Err()
				}
			},
			again: func(ctx context.Context, another int) error {
				if another == 0 {
					return post(ctx, first)
				}
				return post(ctx, crowd.NewReply(person, another, yes, crowd.PublicURL+crowd.HookPath))
			},
		}
	}
	return out, nil
}

func (c *countersign) drain(ctx context.Context) error {
	return c.agent.Until(ctx, func() bool { return c.reported.Load() == c.ran.Load() })
}

func (c *countersign) processes() []*machine.Process { return []*machine.Process{c.server, c.agent} }

func (c *countersign) stop() {
	c.agent.Stop()
	c.server.Stop()
}

// kill implements [killable].
func (c *countersign) kill(ctx context.Context, at moment, a approval) error {
	if err := os.WriteFile(c.orders(), fmt.Appendf(nil, "%s\n%d", at, c.server.PID()), 0o600); err != nil {
		return err
	}
	if err := a.again(ctx, 0); err != nil {
		return err
	}
	for _, p := range c.processes() {
		select {
		case <-p.Ended():
		case <-time.After(answered):
			return errors.New("nothing was killed")
		}
	}
	if err := c.up(ctx); err != nil {
		return err
	}
	machine.Pause(ctx, 3*time.Second)
	return nil
}
