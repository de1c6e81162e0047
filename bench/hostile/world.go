package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/countersign/countersign/offers"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

const (
	maxPeople = 40
	minRead   = 60 * time.Millisecond
	// crossing is how long after an ask the server takes a bare yes for one that may have been meant for what was there
	// before; readingTime is enough for it to count.
	crossing    = offers.CrossFactor * minRead
	readingTime = crossing + minRead
	patience    = 20 * time.Second
)

// world is a server with its accounts, people and carrier.
type world struct {
	base    string
	twin    string // another replica on the same database
	bot     func(into any, args ...string) error
	paired  *person // somebody who may have things looked up, and nothing else
	contact string  // the connector's key, which no agent holds
	phones  *carrier
	api     *httptest.Server // the carrier's
	servers []*exec.Cmd
	ended   []chan struct{}
	log     io.WriteCloser
	client  *http.Client
	judge   *judge
	mine    account // whose key the agent holds
	foreign account // that the agent knows by ids alone
	left    *atomic.Int64

	mu    sync.Mutex
	stats map[string]*reportRow
	last  url.Values // the newest form that was really signed
	sig   string
}

// account is one of two.
type account struct {
	key    string
	people []*person
	mu     sync.Mutex
	at     string // in the feed
}

// person is a human with a phone.
type person struct {
	id, number string

	mu       sync.Mutex
	messages []message
	changed  chan struct{}
}

// message is one that the agent was told of.
type message struct {
	id, run, text string
}

func newWorld(ctx context.Context, o options) (w *world, err error) {
	w = &world{phones: newCarrier(token()), judge: newJudge(), stats: map[string]*reportRow{}, log: discard{}}
	w.api = httptest.NewServer(w.phones)
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * o.workers}, Timeout: time.Minute}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if o.log != "" {
		if w.log, err = os.Create(o.log); err != nil { //nolint:gosec // the caller names the file
			return w, err
		}
	}
	env := append(os.Environ(), "COUNTERSIGN_DATABASE_URL="+o.database, "COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_RATE_KEY=off", "COUNTERSIGN_RATE_ACCOUNT=off", "COUNTERSIGN_PUBLIC_URL="+publicURL,
		"COUNTERSIGN_MIN_READ="+minRead.String(), "COUNTERSIGN_CONSOLE_ADDR=off", "COUNTERSIGN_SAID=builtin", "COUNTERSIGN_SIM=", "COUNTERSIGN_POLICY=", "COUNTERSIGN_READER=local",
		"TWILIO_ACCOUNT_SID="+accountSID, "TWILIO_AUTH_TOKEN="+w.phones.token, "TWILIO_FROM="+ourNumber, "TWILIO_API_URL="+w.api.URL)
	bot := func(into any, args ...string) error {
		cmd := exec.CommandContext(ctx, o.bot, args...) //nolint:gosec // a binary of ours
		cmd.Env = env
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("bot %s: %w: %s", args[0], err, errs.String())
		}
		return json.Unmarshal(out, into)
	}
	w.bot = bot
	if err := bot(&struct{}{}, "migrate", "up", "--json"); err != nil {
		return w, err
	}
	// What people ask for in their own words is approved by it: the harder account to attack.
	if err := bot(&struct{}{}, "accounts", "set", "default", "--asking-is-approving", "on", "--json"); err != nil {
		return w, err
	}
	var made struct{ ID, Key string }
	if err := addAccount(ctx, o.database, foreignAccount); err != nil {
		return w, err
	}
	number := 101
	for name, a := range map[string]*account{"default": &w.mine, foreignAccount: &w.foreign} {
		if err := bot(&made, "keys", "create", "--name", "agent", "--scope", "agent", "--account", name, "--json"); err != nil {
			return w, err
		}
		a.key = made.Key
		people := o.workers
		if a == &w.foreign {
			people = 1
		}
		for range people {
			p := &person{number: fmt.Sprintf("+12025550%d", number), changed: make(chan struct{})}
			number++
			if err := bot(&made, "people", "add", "--name", "Alex", "--address", "sms:"+p.number, "--as", "owner", "--account", name, "--json"); err != nil {
				return w, err
			}
			p.id = made.ID
			a.people = append(a.people, p)
		}
	}
	if err := bot(&made, "people", "add", "--name", "Robin", "--address", fmt.Sprintf("sms:+12025550%d", number), "--as", "paired", "--json"); err != nil {
		return w, err
	}
	w.paired = &person{id: made.ID, number: fmt.Sprintf("+12025550%d", number), changed: make(chan struct{})}
	w.mine.people = append(w.mine.people, w.paired)
	if err := bot(&made, "keys", "create", "--name", "contacts", "--scope", "connector", "--json"); err != nil {
		return w, err
	}
	w.contact = made.Key
	for _, base := range []*string{&w.base, &w.twin} {
		if *base, err = w.serve(ctx, o.bot, env); err != nil {
			return w, err
		}
	}
	return w, w.puts(ctx, "dana", "Dana", dana)
}

// puts is the connector's: somebody whom people can name.
func (w *world) puts(ctx context.Context, id, name, address string) error {
	body, err := json.Marshal(map[string]any{"merge": true, "contacts": []any{map[string]any{"id": id, "name": name, "addresses": []string{address}}}})
	if err != nil {
		return err
	}
	got, err := w.do(ctx, http.MethodPut, "/v1/contacts", w.contact, nil, body)
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("the connector's contact is answered with %d", got.status)
	}
	return err
}

const foreignAccount = "other"

// addAccount makes an account behind the product's back: no command does.
func addAccount(ctx context.Context, database, id string) error {
	driver, dsn := "pgx", database
	if path, lite := strings.CutPrefix(database, "sqlite:"); lite {
		driver, dsn = "sqlite", path
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO accounts (id) VALUES ('`+id+`')`)
	return errors.Join(err, db.Close())
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func token() string {
	var b strings.Builder
	for range 32 {
		fmt.Fprintf(&b, "%x", rand.IntN(16)) //nolint:gosec // a secret of one run on one machine
	}
	return b.String()
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

// serve starts a server process and returns where it listens.
func (w *world) serve(ctx context.Context, bot string, env []string) (string, error) {
	server, ended := exec.CommandContext(ctx, bot, "serve"), make(chan struct{}) //nolint:gosec // a binary of ours
	server.Env = env
	out, err := server.StderrPipe()
	if err != nil {
		return "", err
	}
	if _, err := server.StdinPipe(); err != nil {
		return "", err
	}
	if err := server.Start(); err != nil {
		return "", err
	}
	w.servers, w.ended = append(w.servers, server), append(w.ended, ended)
	listening := make(chan string, 1)
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			_, _ = fmt.Fprintln(w.log, lines.Text())
			var l struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "listening" {
				listening <- l.Addr
			}
		}
		_ = server.Wait()
	}()
	select {
	case addr := <-listening:
		return "http://" + addr, nil
	case <-ended:
		return "", errors.New("the server did not start")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// alive says whether the server still runs: one that has crashed releases nothing, and proves nothing.
func (w *world) alive() error {
	for _, ended := range w.ended {
		select {
		case <-ended:
			return errors.New("a server has ended during the attack")
		default:
		}
	}
	return nil
}

func (w *world) close() {
	for i, server := range w.servers {
		_ = server.Process.Signal(syscall.SIGTERM)
		<-w.ended[i]
	}
	w.api.Close()
	_ = w.log.Close()
}

// answer is a status and a body.
type answer struct {
	status int
	body   []byte
}

func (a answer) into(v any) bool { return json.Unmarshal(a.body, v) == nil }

// do is one request to the server; key may be empty.
func (w *world) do(ctx context.Context, method, path, key string, headers map[string]string, body []byte) (answer, error) {
	return w.doAt(ctx, w.base, method, path, key, headers, body)
}

// doAt is one request to one of the replicas.
func (w *world) doAt(ctx context.Context, base, method, path, key string, headers map[string]string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range headers {
		req.Header.Set(name, v)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	raw, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	return answer{res.StatusCode, raw}, err
}

// event is one of the feed, with what it may hold.
type event struct {
	Type string `json:"type"`
	Data struct {
		RunID     string     `json:"run_id"`
		MessageID string     `json:"message_id"`
		PersonID  string     `json:"person_id"`
		Text      string     `json:"text"`
		Offer     *offer     `json:"offer"`
		Operation *operation `json:"operation"`
	} `json:"data"`
}

type offer struct {
	ID          string          `json:"id"`
	OperationID string          `json:"operation_id"`
	PersonID    string          `json:"person_id"`
	State       string          `json:"state"`
	Tool        string          `json:"tool"`
	Args        json.RawMessage `json:"args"`
	ArgsSHA256  string          `json:"args_sha256"`
	ShownText   string          `json:"shown_text"`
	Decision    string          `json:"decision"`
	ClosedBy    *struct {
		MessageID string `json:"message_id"`
	} `json:"closed_by"`
}

type operation struct {
	ID         string `json:"id"`
	RunID      string `json:"run_id"`
	Tool       string `json:"tool"`
	Decision   string `json:"decision"`
	State      string `json:"state"`
	ArgsSHA256 string `json:"args_sha256"`
	Offer      *offer `json:"offer"`
}

// read takes the feed's next page: whatever it says was approved is judged.
func (w *world) read(ctx context.Context, a *account, wait string) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	got, err := w.do(ctx, http.MethodGet, "/v1/events?limit=1000&wait="+wait+"&after="+url.QueryEscape(a.at), a.key, nil, nil)
	if err != nil {
		return 0, err
	}
	var page struct {
		Events []event `json:"events"`
		Next   string  `json:"next"`
	}
	if got.status != http.StatusOK || !got.into(&page) {
		return 0, fmt.Errorf("the feed answers %d", got.status)
	}
	a.at = page.Next
	for _, ev := range page.Events {
		d := ev.Data
		if ev.Type == "person.paired" {
			w.judge.accuse("pairing-by-text", "somebody was paired, and no owner did that")
		}
		if d.MessageID != "" {
			a.told(d.PersonID, message{d.MessageID, d.RunID, d.Text})
		}
		if o := d.Offer; o != nil {
			if o.ClosedBy != nil && o.ClosedBy.MessageID != "" {
				a.told(o.PersonID, message{id: o.ClosedBy.MessageID})
			}
			if o.State == "consumed" {
				w.judge.released(o.OperationID, o.PersonID, o.Tool, o.Args, "approved")
			}
		}
		if op := d.Operation; op != nil && ev.Type == "operation.approved" && op.Offer != nil {
			w.judge.released(op.ID, op.Offer.PersonID, op.Tool, op.Offer.Args, "approved")
		}
	}
	return len(page.Events), nil
}

func (a *account) told(personID string, m message) {
	for _, p := range a.people {
		if p.id == personID {
			p.mu.Lock()
			p.messages = append(p.messages, m)
			close(p.changed)
			p.changed = make(chan struct{})
			p.mu.Unlock()
		}
	}
}

// follow reads an account's feed until ctx ends.
func (w *world) follow(ctx context.Context, a *account) {
	for ctx.Err() == nil && a.key != "" {
		if _, err := w.read(ctx, a, "2s"); err != nil {
			pause(ctx, 100*time.Millisecond)
		}
	}
}

// settle reads both feeds to their ends.
func (w *world) settle(ctx context.Context) error {
	for _, a := range []*account{&w.mine, &w.foreign} {
		for quiet := 0; a.key != "" && quiet < 2; {
			n, err := w.read(ctx, a, "1s")
			if err != nil {
				return err
			}
			if quiet++; n > 0 {
				quiet = 0
			}
		}
	}
	return nil
}

// types posts what a person types, signed as the carrier does.
func (w *world) types(ctx context.Context, p *person, text string) error {
	form := w.phones.inbound(p.number, text)
	signature := sign(w.phones.token, publicURL+hookPath, form)
	w.mu.Lock()
	w.last, w.sig = form, signature
	w.mu.Unlock()
	got, err := w.post(ctx, form, signature)
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("a text that is really signed is answered with %d", got.status)
	}
	return err
}

func (w *world) post(ctx context.Context, form url.Values, signature string) (answer, error) {
	headers := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	if signature != "" {
		headers["X-Twilio-Signature"] = signature
	}
	return w.do(ctx, http.MethodPost, hookPath, "", headers, []byte(form.Encode()))
}

// await returns the person's messages once there are more than n, or what is there when the time is over.
func (p *person) await(ctx context.Context, n int) []message {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		p.mu.Lock()
		all, changed := append([]message(nil), p.messages...), p.changed
		p.mu.Unlock()
		if len(all) > n {
			return all
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return all
		}
	}
}

func (p *person) heard() []message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]message(nil), p.messages...)
}

// count notes a call of a family.
func (w *world) count(family string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	row := w.row(family)
	row.calls++
	row.statuses[min(status/100, 5)]++
	w.left.Add(-1)
}

// row is a family's; the lock is held.
func (w *world) row(family string) *reportRow {
	if w.stats[family] == nil {
		w.stats[family] = &reportRow{family: family}
	}
	return w.stats[family]
}

func (w *world) report(families []family) *report {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	r := &report{justified: w.judge.justified, yeses: w.judge.yeses, slow: len(w.judge.slow)}
	released := map[string]int{}
	for _, x := range w.judge.releases {
		if w.judge.slow[x.operation] {
			r.late++
			continue
		}
		released[x.family]++
		r.releases = append(r.releases, fmt.Sprintf("by %s: operation %s %s", x.family, x.operation, x.what))
	}
	for _, f := range families {
		row := *w.row(f.name)
		row.releases = released[f.name]
		r.rows = append(r.rows, row)
	}
	return r
}
