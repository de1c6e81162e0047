package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/countersign/countersign/offers"
)

// command runs the program with this environment and no other.
func command(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, environ, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// decode reads a command's JSON answer.
func decode(t *testing.T, raw string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}

func TestEndpointsCommands(t *testing.T) {
	environ := []string{"COUNTERSIGN_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "bot.db")}
	do := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := command(t, environ, append([]string{"endpoints"}, args...)...)
		if code != want {
			t.Fatalf("endpoints %s: exit %d, want %d: %s%s", strings.Join(args, " "), code, want, out, errs)
		}
		if strings.Contains(out+errs, "hush") && args[0] != "list" {
			t.Errorf("endpoints %s repeats the URL: %s%s", args[0], out, errs)
		}
		return out
	}
	var made struct{ ID, Secret string }
	decode(t, do(exitOK, "add", "--url", "https://agent.example.com/events?token=hush", "--json"), &made)
	if _, err := offers.EndpointKey(made.Secret); err != nil || made.ID == "" {
		t.Fatalf("id %q, secret: %v", made.ID, err)
	}
	var listed struct{ Endpoints []map[string]any }
	out := do(exitOK, "list", "--json")
	decode(t, out, &listed)
	if len(listed.Endpoints) != 1 || listed.Endpoints[0]["id"] != made.ID || listed.Endpoints[0]["url"] != "https://agent.example.com/events?token=hush" {
		t.Fatalf("listed %v", listed)
	}
	if out += do(exitOK, "list"); strings.Contains(out, "whsec_") {
		t.Fatal("the secret is shown again")
	}
	for _, url := range []string{"http://agent.example.com/", "https://u:hush@agent.example.com/", "https://10.0.0.1/", "http://127.0.0.1:1/", "hush"} {
		do(exitUsage, "add", "--url", url)
	}
	do(exitUsage, "add")
	do(exitUsage, "add", "--url", "https://agent.example.com/", "--account", "nobody")
	do(exitUsage, "add", "--url", "https://169.254.169.254/", "--allow-private")
	do(exitOK, "add", "--url", "http://127.0.0.1:9/", "--allow-private")
	environ = append(environ, "COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS=1")
	do(exitOK, "add", "--url", "https://10.0.0.1/")

	if got := do(exitOK, "dead", "--json"); got != "{\"dead\":[]}\n" {
		t.Fatalf("dead: %s", got)
	}
	if got := do(exitOK, "retry", "--all", "--json"); got != "{\"retried\":[]}\n" {
		t.Fatalf("retried: %s", got)
	}
	do(exitUsage, "retry")
	do(exitUsage, "retry", offers.NewID(), "--all")
	do(exitNo, "retry", offers.NewID())
	do(exitNo, "enable", offers.NewID())
	do(exitNo, "remove", offers.NewID())
	do(exitNo, "remove", made.ID, "--account", "other")
	do(exitOK, "enable", made.ID)
	do(exitOK, "remove", made.ID)
	do(exitNo, "remove", made.ID)
	decode(t, do(exitOK, "list", "--json"), &listed)
	if len(listed.Endpoints) != 2 {
		t.Fatalf("after removal %v", listed)
	}
}

// A server posts what happens to the endpoint that was added by a command beside it.
func TestServePostsEventsToEndpoints(t *testing.T) {
	got := make(chan string, 16)
	var hook *standardwebhooks.Webhook
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = hook.Verify(raw, r.Header)
		}
		if err != nil {
			t.Error(err)
		}
		got <- string(raw)
	}))
	t.Cleanup(backend.Close)
	environ := []string{
		"COUNTERSIGN_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "bot.db"), "COUNTERSIGN_SIM=1", "COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS=1",
	}
	for _, args := range [][]string{
		{"people", "add", "--name", "Alex", "--address", "sim:alex", "--as", "owner"},
		{"endpoints", "add", "--url", backend.URL, "--json"},
	} {
		code, out, errs := command(t, environ, args...)
		if code != exitOK {
			t.Fatalf("%v: %s%s", args, out, errs)
		}
		if args[0] == "endpoints" {
			var made struct{ Secret string }
			decode(t, out, &made)
			var err error
			if hook, err = standardwebhooks.NewWebhook(made.Secret); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg, _, err := load(variables(environ), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t.Context(), cfg.DatabaseURL, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(cfg, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.serve(ctx, l) }()
	body := `{"id":"m1","address":"sim:alex","text":"what is new?"}`
	resp, err := http.Post("http://"+l.Addr().String()+"/webhooks/sim/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("message: %s", resp.Status)
	}
	var e struct {
		offers.Event
		Seq int64
	}
	decode(t, <-got, &e)
	if e.Seq != 1 || (e.Type != offers.MessageReceived && e.Type != offers.ReplyUnresolved) || !strings.Contains(string(e.Data), "what is new?") || time.Since(e.At) > time.Hour {
		t.Fatalf("event %+v", e)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
