package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// TestInternalListener: metrics are on it, and nothing of it is on the public one.
func TestInternalListener(t *testing.T) {
	url, a, _ := insideWith(t, io.Discard, func(*config) {})
	get := func(url string) (int, string) {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close() //nolint:errcheck // read to its end
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	res, err := http.Post(url+"/webhooks/sim/messages", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	inner := "http://" + a.internal.Addr().String()
	if status, body := get(inner + "/metrics"); status != http.StatusOK || !strings.Contains(body, `countersign_webhook_requests_total{door="messages",reason="content_type",status="415"} 1`) {
		t.Errorf("metrics: %d %.300s", status, body)
	}
	if status, _ := get(url + "/metrics"); status != http.StatusNotFound {
		t.Errorf("metrics are public: %d", status)
	}
	for _, path := range []string{"/v1/offers", "/o/x", "/webhooks/sim/messages", "/healthz"} {
		if status, _ := get(inner + path); status != http.StatusNotFound {
			t.Errorf("%s is on the internal listener: %d", path, status)
		}
	}
}

// TestConsoleAddr: where the internal listener cannot be is said in a sentence; the default gives way, since a second
// server on a machine is no fault.
func TestConsoleAddr(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // a test's
	at := taken.Addr().String()
	serve := func(more ...string) (int, string) {
		code, _, errs := bot(t, environ(t, append([]string{"COUNTERSIGN_SIM=1"}, more...)...), "", "serve")
		return code, errs
	}
	if code, errs := serve("COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR="+at); code != exitUsage || !strings.Contains(errs, "Nothing can listen at COUNTERSIGN_CONSOLE_ADDR") || !strings.Contains(errs, "off") {
		t.Errorf("a taken port: %d %s", code, errs)
	}
	if code, errs := serve("COUNTERSIGN_ADDR="+at, "COUNTERSIGN_CONSOLE_ADDR="+at); code != exitUsage || !strings.Contains(errs, "are the same") {
		t.Errorf("one address for both: %d %s", code, errs)
	}
	if code, errs := serve("COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_CONSOLE_ADDR=nowhere"); code != exitUsage || !strings.Contains(errs, "COUNTERSIGN_CONSOLE_ADDR") {
		t.Errorf("no address: %d %s", code, errs)
	}
	var log bytes.Buffer
	for i, addr := range []string{defaultConsoleAddr, defaultConsoleAddr} { // the second finds it taken, if the first did not
		l, err := listenInternal(t.Context(), addr, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		defer l.Close() //nolint:errcheck // a test's
	}
	if !strings.Contains(log.String(), "default is taken") {
		t.Errorf("logged %s", &log)
	}
	for _, off := range []string{"", "off"} {
		if l, err := listenInternal(t.Context(), off, slog.New(slog.DiscardHandler)); l != nil || err != nil {
			t.Errorf("%q: %v %v", off, l, err)
		}
	}
	if sameAddr("127.0.0.1:0", "127.0.0.1:0") {
		t.Error("port 0 twice is two ports")
	}
}

// TestSlowBodies: both doors and the API end a body that does not come.
func TestSlowBodies(t *testing.T) {
	url, _, s := insideWith(t, io.Discard, func(c *config) { c.BodyTime = 50 * time.Millisecond })
	secret, hash := people.NewSecret()
	if err := s.AddKey(t.Context(), people.Key{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "agent", Scope: people.ScopeAgent}, hash); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/webhooks/sim/messages", "/v1/offers", "/v1/runs"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nIdempotency-Key: x\r\nContent-Length: 100\r\n\r\n{", path, secret); err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(conn) // the connection ends with the answer
		if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 408 ") || !strings.Contains(string(raw), "timeout") {
			t.Errorf("%s: %v %q", path, err, raw)
		}
		_ = conn.Close()
	}
}

// TestScreen: what arrives on the simulated phone can be read, and does nothing to the terminal.
func TestScreen(t *testing.T) {
	r, w := io.Pipe()
	sim := channel.NewSim(time.Now)
	end := (&env{ctx: t.Context(), stdout: w}).screen(sim)
	sent := sim.Send(t.Context(), offers.Outgoing{From: "sim:countersign", To: "sim:alex", Body: "Not clear\x1b[2J\n\nReply YES or NO."})
	if sent.Outcome != offers.OutcomeAccepted {
		t.Fatal(sent)
	}
	lines := bufio.NewReader(r)
	for _, want := range []string{"  ┌ text to sim:alex\n", "  │ Not clear<U+001B>[2J\n", "  │ \n", "  │ Reply YES or NO.\n"} {
		if got, err := lines.ReadString('\n'); got != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	end()
}
