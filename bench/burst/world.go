package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the provider's choice
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/bench/internal/machine"
)

const (
	public  = "https://approve.example.test"
	door    = "/webhooks/twilio/messages"
	ours    = "+12025550100"
	minRead = 20 * time.Millisecond // a second, many times faster
	// crossed is how long after an ask a bare yes is taken for one to the ask before it.
	crossed  = 16 * minRead
	patience = time.Minute
	// secretWords are in every message and every argument, and so must be in no log.
	secretWords = "marzipan"
)

// world is a server, its provider and its people.
type world struct {
	o              options
	environ        []string
	server         *machine.Server
	logFile        string
	log            *os.File
	base, key      string
	account, token string
	api            *httptest.Server
	client         *http.Client
	people         []*person
	serial         atomic.Int64
	texts          map[string]chan string // by number
	mu             sync.Mutex
	total          replies
	failure        error
	quarters       []int // KiB, in the burst
}

// person is somebody with a phone.
type person struct{ number string }

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func newWorld(ctx context.Context, o options, dir string) (*world, error) {
	w := &world{o: o, account: "AC" + randomHex(), token: randomHex(), texts: map[string]chan string{}, logFile: filepath.Join(dir, "serve.log"),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 4 * o.people}}}
	w.api = httptest.NewServer(http.HandlerFunc(w.provider))
	w.environ = append(os.Environ(),
		"COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR=off", "COUNTERSIGN_DATABASE_URL=sqlite:"+filepath.Join(dir, "burst.db"),
		"COUNTERSIGN_PUBLIC_URL="+public, "COUNTERSIGN_MIN_READ="+minRead.String(), "COUNTERSIGN_POLICY=", "COUNTERSIGN_SIM=", "COUNTERSIGN_READER=local", "COUNTERSIGN_REDIS_URL=",
		"TWILIO_ACCOUNT_SID="+w.account, "TWILIO_AUTH_TOKEN="+w.token, "TWILIO_FROM="+ours, "TWILIO_API_URL="+w.api.URL)
	for i := range o.people {
		p := &person{number: fmt.Sprintf("+120255501%02d", i+1)}
		w.people, w.texts[p.number] = append(w.people, p), make(chan string, 64)
	}
	if err := w.setUp(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// setUp makes tables, people and a key, and starts the server.
func (w *world) setUp(ctx context.Context) error {
	var key struct{ Key string }
	if err := w.bot(ctx, &key, "keys", "create", "--name", "burst", "--scope", "agent", "--json"); err != nil {
		return err
	}
	w.key = key.Key
	for _, p := range w.people {
		if err := w.bot(ctx, nil, "people", "add", "--name", "Alex", "--address", "sms:"+p.number, "--as", "owner", "--json"); err != nil {
			return err
		}
	}
	var err error
	if w.log, err = os.Create(w.logFile); err != nil {
		return err
	}
	if w.server, err = machine.Serve(ctx, w.o.bot, w.environ, w.log); err != nil {
		return err
	}
	w.base = "http://" + w.server.Addr
	return nil
}

// bot runs a command; into, if set, takes its JSON.
func (w *world) bot(ctx context.Context, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, w.o.bot, args...) //nolint:gosec // the program under test
	cmd.Env = w.environ
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("bot %s: %w: %.1000s", args[0], err, exit.Stderr)
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(out, into)
}

func (w *world) close() {
	if w.server != nil {
		w.server.Kill()
	}
	if w.log != nil {
		_ = w.log.Close()
	}
	w.api.Close()
}

// private is what must not be in the log.
func (w *world) private() []string {
	out := []string{secretWords, "dana@example.test"}
	for _, p := range w.people {
		out = append(out, strings.TrimPrefix(p.number, "+"))
	}
	return append(out, stranger[1:])
}

// provider takes texts as Twilio's Messages API does.
func (w *world) provider(res http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if err := r.ParseForm(); err != nil || user != w.account || password != w.token {
		res.WriteHeader(http.StatusUnauthorized)
		return
	}
	res.Header().Set("Content-Type", "application/json")
	res.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(res).Encode(map[string]any{"sid": "SM" + randomHex(), "status": "queued"})
	select {
	case w.texts[r.PostForm.Get("To")] <- r.PostForm.Get("Body"):
	default: // nobody waits for it
	}
}

// sign is X-Twilio-Signature.
func (w *world) sign(form url.Values) string {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	mac := hmac.New(sha1.New, []byte(w.token))
	mac.Write([]byte(public + door))
	for _, name := range names {
		mac.Write([]byte(name + form.Get(name)))
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (w *world) form(from, body string) url.Values {
	sid := "SM" + randomHex()
	return url.Values{
		"MessageSid": {sid}, "SmsSid": {sid}, "SmsMessageSid": {sid}, "AccountSid": {w.account}, "ApiVersion": {"2010-04-01"},
		"From": {from}, "To": {ours}, "Body": {body}, "NumMedia": {"0"}, "NumSegments": {"1"}, "SmsStatus": {"received"},
	}
}

// talk has everybody answer asks until during has ended, and the answers that were begun by then come in.
func (w *world) talk(ctx context.Context, during func(context.Context)) (replies, error) {
	w.total = replies{}
	until, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, p := range w.people {
		wg.Go(func() {
			for until.Err() == nil {
				if err := w.once(ctx, p); err != nil {
					w.mu.Lock()
					w.failure = errors.Join(w.failure, err)
					w.mu.Unlock()
					return
				}
			}
		})
	}
	during(ctx)
	stop()
	wg.Wait()
	return w.total, errors.Join(w.failure, ctx.Err())
}

// once asks a person one thing, who says yes. What the server does not answer, or does not approve, is counted; an error
// is of something else.
func (w *world) once(ctx context.Context, p *person) error {
	mark := fmt.Sprintf("mark-%d-", w.serial.Add(1))
	var offer struct {
		ID          string
		OperationID string `json:"operation_id"`
		ArgsSHA256  string `json:"args_sha256"`
	}
	args := fmt.Sprintf(`{"to":["dana@example.test"],"subject":%q,"body":"The %s is in the oven."}`, mark, secretWords)
	if err := w.call(ctx, http.MethodPost, "/v1/offers", fmt.Sprintf(`{"address":"sms:%s","tool":"email.send","args":%s}`, p.number, args), &offer); err != nil {
		return err
	}
	for late := time.After(patience); ; {
		select {
		case text := <-w.texts[p.number]:
			if !strings.Contains(text, mark) {
				continue
			}
		case <-late:
			return errors.New("an ask was never shown")
		case <-ctx.Done():
			return ctx.Err()
		}
		break
	}
	// The text is on the phone a moment before the provider's answer has reached the server, and a busy server notes it
	// late; a person, whose second is not as short as this one, never sees that.
	var shown struct{ State string }
	for shown.State != "open" {
		select {
		case <-time.After(minRead / 2): // an agent that asks without a pause meets its key's rate
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.call(ctx, http.MethodGet, "/v1/offers/"+offer.ID, "", &shown); err != nil {
			return err
		}
	}
	select { // the person reads
	case <-time.After(crossed + 2*minRead):
	case <-ctx.Done():
		return ctx.Err()
	}
	form := w.form(p.number, "yes")
	began := time.Now()
	status, err := w.post(ctx, w.client, door, "application/x-www-form-urlencoded", w.sign(form), strings.NewReader(form.Encode()))
	answer := time.Since(began)
	answered := err == nil && status == http.StatusOK
	approved := false
	var approval time.Duration
	if answered {
		var op struct{ State string }
		if err := w.call(ctx, http.MethodGet, "/v1/operations/"+offer.OperationID+"?wait=30s", "", &op); err != nil {
			return err
		}
		approval, approved = time.Since(began), op.State == "approved"
	}
	if approved { // or the person would be told after a minute that nobody has picked it up
		if err := w.call(ctx, http.MethodPost, "/v1/operations/"+offer.OperationID+"/begin", fmt.Sprintf(`{"args_sha256":%q}`, offer.ArgsSHA256), nil); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total.said++
	if answered {
		w.total.answered++
		w.total.answers = append(w.total.answers, answer)
	}
	if approved {
		w.total.approved++
		w.total.approvals = append(w.total.approvals, approval)
	}
	return nil
}

// call is one of the agent's.
func (w *world) call(ctx context.Context, method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", randomHex())
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %d %.200s", method, path, res.StatusCode, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// post sends something to a door of the provider's.
func (w *world) post(ctx context.Context, client *http.Client, path, contentType, signature string, body io.Reader) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", contentType)
	if signature != "" {
		req.Header.Set("X-Twilio-Signature", signature)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// stranger is whom the burst pretends to come from.
const stranger = "+12025550199"

// attack is one kind of request that must not be taken, and how it is answered.
type attack struct {
	name string
	want int
	send func(w *world, ctx context.Context, c *http.Client, n int) (int, error)
}

// huge is beyond what a door takes.
var huge = bytes.Repeat([]byte("Body="+secretWords+"&"), 1<<20/16)

func attacks() []attack {
	const form = "application/x-www-form-urlencoded"
	signed := func(contentType string, body func(w *world, n int) (string, string)) func(*world, context.Context, *http.Client, int) (int, error) {
		return func(w *world, ctx context.Context, c *http.Client, n int) (int, error) {
			b, s := body(w, n)
			return w.post(ctx, c, door, contentType, s, strings.NewReader(b))
		}
	}
	return []attack{
		{"forged: another key", http.StatusForbidden, signed(form, func(w *world, n int) (string, string) {
			p := w.people[n%len(w.people)]
			return w.form(p.number, "yes "+secretWords).Encode(), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(n)}, sha1.Size))
		})},
		{"forged: another message's", http.StatusForbidden, signed(form, func(w *world, _ int) (string, string) {
			return w.form(stranger, "yes "+secretWords).Encode(), w.sign(w.form(stranger, "no"))
		})},
		{"forged: no signature", http.StatusForbidden, signed(form, func(w *world, _ int) (string, string) {
			return w.form(stranger, secretWords).Encode(), ""
		})},
		{"forged: status of a text", http.StatusForbidden, func(w *world, ctx context.Context, c *http.Client, _ int) (int, error) {
			f := url.Values{"MessageSid": {"SM" + randomHex()}, "AccountSid": {w.account}, "MessageStatus": {"delivered"}, "To": {stranger}}
			return w.post(ctx, c, "/webhooks/twilio/status?text="+secretWords, form, w.sign(f), strings.NewReader(f.Encode()))
		}},
		{"malformed: no form", http.StatusBadRequest, signed(form, func(*world, int) (string, string) {
			return "From=" + stranger + "&%zz" + secretWords, "x"
		})},
		{"malformed: JSON", http.StatusUnsupportedMediaType, signed("application/json", func(*world, int) (string, string) {
			return `{"From":"` + stranger + `","Body":"` + secretWords + `"}`, "x"
		})},
		{"malformed: signed, fields missing", http.StatusBadRequest, signed(form, func(w *world, _ int) (string, string) {
			f := url.Values{"From": {stranger}, "Body": {secretWords}}
			return f.Encode(), w.sign(f)
		})},
		{"oversized", http.StatusRequestEntityTooLarge, func(w *world, ctx context.Context, c *http.Client, _ int) (int, error) {
			return w.post(ctx, c, door, form, "x", bytes.NewReader(huge))
		}},
		{"oversized, of no length", http.StatusRequestEntityTooLarge, func(w *world, ctx context.Context, c *http.Client, _ int) (int, error) {
			return w.post(ctx, c, door, form, "x", io.MultiReader(bytes.NewReader(huge[:100<<10])))
		}},
	}
}

// burst posts all of it, and says what was answered how often, and what should not have been.
func (w *world) burst(ctx context.Context) (answers map[string]int, unexpected []string) {
	kinds := attacks()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: w.o.connections, MaxConnsPerHost: w.o.connections}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var mu sync.Mutex
	answers = map[string]int{}
	var wg sync.WaitGroup
	for range w.o.connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= w.o.requests {
					return
				}
				if quarter := w.o.requests / 4; quarter > 0 && n%quarter == 0 && n > 0 {
					kib, err := w.memory("VmRSS")
					mu.Lock()
					if err == nil {
						w.quarters = append(w.quarters, kib)
					}
					mu.Unlock()
				}
				a := kinds[n%len(kinds)]
				status, err := a.send(w, ctx, client, n)
				said := fmt.Sprint(status)
				if err != nil {
					said = "cut off" // the server does not wait for all of what is too large
				}
				mu.Lock()
				answers[a.name+": "+said]++
				if status != a.want && (err == nil || a.want != http.StatusRequestEntityTooLarge) && len(unexpected) < 10 {
					unexpected = append(unexpected, fmt.Sprintf("%s was answered with %s", a.name, said))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return answers, unexpected
}
