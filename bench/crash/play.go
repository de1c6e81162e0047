package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

// marks are in the subject of every offer, so that a text on a phone tells which one it is about.
var marks = regexp.MustCompile(`mark-[0-9]+-[0-9]+`)

const (
	publicURL = "https://approve.example.test"
	ours      = "+12025550100"
	minRead   = 40 * time.Millisecond // a second, many times faster
	// persists is how long the provider posts a reply again that was not answered: Twilio does for 15 s at most, which is
	// also how long a quick yes counts as crossed with another ask. A reply that came later than that would be taken for
	// one to whatever is on the screen by then.
	persists = 13 * minRead
	patience = time.Minute // for everything to come to rest in the end
)

// play is one store's run.
type play struct {
	o        options
	db       database
	environ  []string
	log      io.Writer
	stderr   io.Writer
	base     string
	key      string
	client   *http.Client
	provider *provider
	phones   []*phone
	record   record
	sides    []*httptest.Server

	mu     sync.Mutex
	rng    *rand.Rand
	faults []string
	killed struct{ servers, databases int }
	said   []*said
	begun  map[string]int                  // operation → how often its arguments were handed out
	ended  map[string]bool                 // operations whose result was taken
	told   map[string]map[string]time.Time // "feed" or "webhook" → operation → when its approval came
	posts  chan struct{}                   // a reply is about to be posted
	work   sync.WaitGroup                  // everything in the background
	end    func()                          // of everything in the background
	ctx    context.Context                 //nolint:containedctx // ends with the play
}

type event struct {
	ID   string    `json:"id"`
	Type string    `json:"type"`
	At   time.Time `json:"at"`
	Data struct {
		Operation *struct{ ID string } `json:"operation"`
	} `json:"data"`
}

func newPlay(ctx context.Context, o options, db database, dir string, log, stderr io.Writer) (*play, error) {
	p := &play{
		o: o, db: db, log: log, stderr: stderr, rng: rand.New(rand.NewPCG(o.seed, 1)), //nolint:gosec // a test's dice
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
		begun:  map[string]int{}, ended: map[string]bool{},
		told: map[string]map[string]time.Time{"feed": {}, "webhook": {}}, posts: make(chan struct{}, 1),
	}
	p.ctx, p.end = context.WithCancel(ctx)
	p.provider = &provider{account: "AC" + randomHex(), token: randomHex(), number: ours, public: publicURL, play: p, phone: p.delivered}
	api, hook := httptest.NewServer(p.provider), httptest.NewServer(http.HandlerFunc(p.hook))
	p.sides = []*httptest.Server{api, hook}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.base = "http://" + addr
	p.environ = append(os.Environ(),
		"COUNTERSIGN_ADDR="+addr, "COUNTERSIGN_DATABASE_URL="+db.url(), "COUNTERSIGN_PUBLIC_URL="+publicURL, "COUNTERSIGN_MIN_READ="+minRead.String(),
		"COUNTERSIGN_HOURLY_TEXTS=1000000", "COUNTERSIGN_RATE_KEY=off", "COUNTERSIGN_RATE_ACCOUNT=off", "COUNTERSIGN_RATE_SENDER=off", "COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS=1", "COUNTERSIGN_POLICY=", "COUNTERSIGN_SIM=", "COUNTERSIGN_READER=local",
		"TWILIO_ACCOUNT_SID="+p.provider.account, "TWILIO_AUTH_TOKEN="+p.provider.token, "TWILIO_FROM="+ours, "TWILIO_API_URL="+api.URL)
	if err := p.setUp(ctx, hook.URL); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// setUp makes tables, people, a key and an endpoint.
func (p *play) setUp(ctx context.Context, hook string) error {
	if _, err := p.bot(ctx, "migrate", "up"); err != nil {
		return err
	}
	var key struct{ Key string }
	out, err := p.bot(ctx, "keys", "create", "--name", "crash", "--scope", "agent", "--json")
	if err == nil {
		err = json.Unmarshal(out, &key)
	}
	if err != nil {
		return err
	}
	p.key = key.Key
	if p.o.endpoint {
		if _, err := p.bot(ctx, "endpoints", "add", "--url", hook, "--allow-private", "--json"); err != nil {
			return err
		}
	}
	for i := range p.o.people {
		x := &phone{number: number(i), asks: make(chan string, 64), screen: map[string]bool{}}
		if _, err := p.bot(ctx, "people", "add", "--name", "Alex", "--address", "sms:"+x.number, "--as", "owner", "--json"); err != nil {
			return err
		}
		p.phones = append(p.phones, x)
	}
	return nil
}

// number is the i-th of the people's.
func number(i int) string { return fmt.Sprintf("+120255501%02d", i+1) }

func (p *play) bot(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.o.bot, args...) //nolint:gosec // the program under test
	cmd.Env = p.environ
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("bot %s: %w: %.1000s", args[0], err, exit.Stderr)
	}
	return out, err
}

func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (p *play) close() error {
	p.end()
	p.work.Wait()
	for _, s := range p.sides {
		s.CloseClientConnections()
		s.Close()
	}
	return nil
}

func (p *play) background(f func(ctx context.Context)) { p.work.Go(func() { f(p.ctx) }) }

// fault notes what must not happen and is none of the four counts: it makes the run worthless.
func (p *play) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *play) between(a, b time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return a + time.Duration(p.rng.Int64N(int64(b-a)))
}

// chance is true once in n times.
func (p *play) chance(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(n) == 0
}

type reply struct {
	status int // 0: no whole answer came
	body   []byte
}

func (r reply) into(v any) error { return json.Unmarshal(r.body, v) }

func (r reply) code() string {
	var x struct{ Code string }
	_ = r.into(&x)
	return x.Code
}

func (p *play) call(ctx context.Context, method, path string, headers map[string]string, body []byte) reply {
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(body))
	if err != nil {
		return reply{}
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return reply{}
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	raw, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return reply{}
	}
	return reply{res.StatusCode, raw}
}

// agent calls as the agent does, again until there is an answer that is not the server's trouble.
func (p *play) agent(ctx context.Context, method, path, idempotencyKey string, body any) (reply, bool) {
	raw, err := json.Marshal(body)
	if err != nil {
		return reply{}, false
	}
	headers := map[string]string{"Authorization": "Bearer " + p.key}
	if body != nil {
		headers["Content-Type"] = "application/json"
	} else {
		raw = nil
	}
	if idempotencyKey != "" {
		headers["Idempotency-Key"] = idempotencyKey
	}
	for ctx.Err() == nil {
		if a := p.call(ctx, method, path, headers, raw); a.status != 0 && a.status < 500 {
			return a, true
		}
		machine.Pause(ctx, p.between(5*time.Millisecond, 40*time.Millisecond))
	}
	return reply{}, false
}

// The person.

// delivered brings a text to a phone.
func (p *play) delivered(to, body string) {
	at := slices.IndexFunc(p.phones, func(x *phone) bool { return x.number == to })
	if at < 0 {
		p.fault("a text to somebody else")
		return
	}
	x := p.phones[at]
	x.seen(body)
	if marks.MatchString(body) || strings.Contains(body, "To be sure") {
		select {
		case x.asks <- body:
		default:
		}
	}
}

var yeses = []string{"yes", "ya send it", "Yes", "yes do it", "yes please"}

// answers lets a person answer what comes to the phone.
func (p *play) answers(ctx context.Context, x *phone) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.asks:
		}
		machine.Pause(ctx, p.between(12*minRead, 25*minRead))
		switch {
		case p.chance(10):
			p.says(x, "no", false)
		case p.chance(15):
			p.says(x, "ok but cc Sam", false)
		case p.chance(10):
			p.says(x, "thanks", false)
			machine.Pause(ctx, p.between(minRead, 16*minRead))
			p.says(x, "yes", true)
		default:
			p.says(x, yeses[int(p.between(0, time.Duration(len(yeses))))], true)
		}
	}
}

// says types one reply. Whoever gets no answer to it in time types another.
func (p *play) says(x *phone, text string, yes bool) {
	s := &said{sid: "SM" + randomHex(), number: x.number, text: text, yes: yes, typed: time.Now(), screen: x.shown()}
	p.mu.Lock()
	p.said = append(p.said, s)
	p.mu.Unlock()
	select {
	case p.posts <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(p.ctx, persists)
	defer cancel()
	answered := p.provider.inbound(ctx, s.sid, x.number, text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.given = true; answered {
		s.answered = time.Now()
	}
}

// The agent.

// proposes keeps one person busy until ctx ends; what is under way then is brought to its end.
func (p *play) proposes(ctx context.Context, i int, x *phone) {
	for n := 1; ctx.Err() == nil && p.ctx.Err() == nil; n++ {
		mark := fmt.Sprintf("mark-%d-%d", i, n)
		got, ok := p.agent(p.ctx, http.MethodPost, "/v1/offers", mark, map[string]any{
			"address": "sms:" + x.number, "tool": "email.send",
			"args": map[string]any{"to": []string{"dana@example.test"}, "subject": mark, "body": "See you on Friday."},
		})
		var o struct {
			ID          string `json:"id"`
			OperationID string `json:"operation_id"`
			ArgsSHA256  string `json:"args_sha256"`
		}
		if !ok {
			return
		}
		if got.status != http.StatusCreated || got.into(&o) != nil {
			p.fault("an offer was refused: %d %s", got.status, got.code())
			return
		}
		if p.chance(20) {
			p.withdraw(o.ID) // unless a yes was faster
		}
		p.follows(o.ID, o.OperationID, o.ArgsSHA256)
	}
}

func (p *play) withdraw(id string) {
	if got, ok := p.agent(p.ctx, http.MethodDelete, "/v1/offers/"+id, "", nil); ok && got.status != http.StatusOK && got.code() != "offer_closed" {
		p.fault("an offer cannot be withdrawn: %d %s", got.status, got.code())
	}
}

// follows an operation to its end. Where no answer comes the agent takes its offer back.
func (p *play) follows(offerID, id, sum string) {
	for since := time.Now(); ; {
		got, ok := p.agent(p.ctx, http.MethodGet, "/v1/operations/"+id+"?wait=1s", "", nil)
		var op struct{ State string }
		if !ok {
			return
		}
		if got.status != http.StatusOK || got.into(&op) != nil {
			p.fault("an operation is not there: %d %s", got.status, got.code())
			return
		}
		switch op.State {
		case "approved":
			p.runs(id, sum)
			return
		case "asked", "settling":
			if time.Since(since) > 3*time.Second {
				p.withdraw(offerID)
				since = time.Now()
			}
		default:
			return
		}
	}
}

// runs begins an operation from two sides at once, and reports its result.
func (p *play) runs(id, sum string) {
	var sides sync.WaitGroup
	for range 2 {
		sides.Go(func() {
			got, ok := p.agent(p.ctx, http.MethodPost, "/v1/operations/"+id+"/begin", "", map[string]string{"args_sha256": sum})
			switch {
			case !ok:
			case got.status == http.StatusOK:
				p.mu.Lock()
				p.begun[id]++
				p.mu.Unlock()
			case got.code() != "already_begun":
				p.fault("an approved operation cannot be begun: %d %s", got.status, got.code())
			}
		})
	}
	sides.Wait()
	got, ok := p.agent(p.ctx, http.MethodPost, "/v1/operations/"+id+"/result", "", map[string]string{"status": "succeeded"})
	if ok && got.status == http.StatusOK {
		p.mu.Lock()
		p.ended[id] = true
		p.mu.Unlock()
	} else if ok {
		p.fault("a result is not taken: %d %s", got.status, got.code())
	}
}

// listens reads the feed, and goes on where it was after every outage.
func (p *play) listens(ctx context.Context) {
	after := ""
	for ctx.Err() == nil {
		got := p.call(ctx, http.MethodGet, "/v1/events?"+url.Values{"after": {after}, "wait": {"5s"}, "limit": {"1000"}}.Encode(),
			map[string]string{"Authorization": "Bearer " + p.key}, nil)
		var page struct {
			Events []event
			Next   string
		}
		if got.status != http.StatusOK || got.into(&page) != nil {
			machine.Pause(ctx, 10*time.Millisecond)
			continue
		}
		after = page.Next
		for _, e := range page.Events {
			p.hears("feed", e)
		}
	}
}

// hook is the agent's endpoint.
func (p *play) hook(w http.ResponseWriter, r *http.Request) {
	var e event
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&e); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.hears("webhook", e)
	w.WriteHeader(http.StatusNoContent)
}

func (p *play) hears(by string, e event) {
	if e.Type != "operation.approved" || e.Data.Operation == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.told[by][e.Data.Operation.ID]; !again {
		p.told[by][e.Data.Operation.ID] = time.Now()
	}
}

// run kills the server as often as it is to be killed, and then lets everything come to rest.
func (p *play) run(ctx context.Context) error {
	s, err := machine.Serve(ctx, p.o.bot, p.environ, p.log)
	if err != nil {
		return err
	}
	defer func() { s.Kill() }()
	busy, rest := context.WithCancel(ctx)
	defer rest()
	p.background(p.listens)
	var agents sync.WaitGroup
	for i, x := range p.phones {
		p.background(func(ctx context.Context) { p.answers(ctx, x) })
		agents.Go(func() { p.proposes(busy, i, x) })
	}
	for n := range p.o.kills {
		p.moment(ctx)
		if s, err = p.kill(ctx, s, n); err != nil {
			return err
		}
		if (n+1)%50 == 0 {
			_, _ = fmt.Fprintf(p.stderr, "crash: %d kills\n", n+1)
		}
	}
	rest()
	agents.Wait()
	return p.settle(ctx)
}

// moment waits for when to kill: at any time, or right around a reply.
func (p *play) moment(ctx context.Context) {
	if p.chance(2) {
		machine.Pause(ctx, p.between(0, 700*time.Millisecond))
		return
	}
	select {
	case <-p.posts: // an old one
	default:
	}
	t := time.NewTimer(1500 * time.Millisecond)
	defer t.Stop()
	select {
	case <-p.posts:
		machine.Pause(ctx, p.between(0, 25*time.Millisecond))
	case <-t.C:
	case <-ctx.Done():
	}
}

// kill ends the server, now and then with its database, and starts what was ended.
func (p *play) kill(ctx context.Context, s *machine.Server, n int) (*machine.Server, error) {
	// Spread evenly over the kills.
	both := p.o.database > 0 && (n+1)*p.o.database/p.o.kills > n*p.o.database/p.o.kills
	o := outage{killed: time.Now()}
	p.killed.servers++
	if both && p.db.crash(p.chance(2)) {
		p.killed.databases++
		machine.Pause(ctx, p.between(0, 300*time.Millisecond))
		if p.chance(2) { // the server sees its database come back
			if err := p.db.revive(ctx); err != nil {
				return s, err
			}
			p.record.add(outage{o.killed, time.Now()})
			machine.Pause(ctx, p.between(0, 500*time.Millisecond))
			o.killed = time.Now()
			s.Kill()
		} else {
			s.Kill()
			if err := p.db.revive(ctx); err != nil {
				return s, err
			}
		}
	} else {
		s.Kill()
	}
	again, err := machine.Serve(ctx, p.o.bot, p.environ, p.log)
	if err != nil {
		return s, err
	}
	o.up = time.Now()
	p.record.add(o)
	return again, nil
}

// settle waits until every reply is answered and decided, and no text is under way.
func (p *play) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		open, err := p.db.rows(ctx, `SELECT CAST((SELECT count(*) FROM messages WHERE decided_at IS NULL) + (SELECT count(*) FROM texts WHERE state = 'queued')
			+ (SELECT count(*) FROM offers WHERE state IN ('queued', 'sending', 'open')) AS TEXT)`)
		if err == nil && open[0][0] == "0" && p.allAnswered() && p.allTold() {
			return nil
		}
		machine.Pause(ctx, 100*time.Millisecond)
	}
	return nil // what is not there by now is counted as lost
}

func (p *play) allAnswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		if !s.given {
			return false
		}
	}
	return true
}

func (p *play) allTold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.begun {
		if p.told["feed"][id].IsZero() || p.o.endpoint && p.told["webhook"][id].IsZero() {
			return false
		}
	}
	return true
}
