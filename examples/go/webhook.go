package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tolerance is how far a delivery's time may be off. Within it a repeated delivery is known by its id.
const tolerance = 5 * time.Minute

// verify checks a delivery as Standard Webhooks has it: an HMAC-SHA-256 over id, time and the very bytes of the body.
// A header may carry several signatures, from a secret that is being changed for another.
func verify(secret []byte, h http.Header, body []byte, now time.Time) error {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" {
		return errors.New("headers are missing")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errors.New("too old or too new")
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	want := mac.Sum(nil)
	for _, signature := range strings.Fields(h.Get("webhook-signature")) {
		version, encoded, _ := strings.Cut(signature, ",")
		got, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil && version == "v1" && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("no signature fits")
}

// key reads a secret. An empty one would sign what anybody can sign.
func key(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	k, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(k) < 24 {
		return nil, errors.New("COUNTERSIGN_WEBHOOK_SECRET must be the whsec_… that bot endpoints add printed")
	}
	return k, nil
}

// listen serves the endpoint until stop is called.
func listen(ctx context.Context, addr, secret string, in *inbox, out io.Writer) (stop func(), err error) {
	k, err := key(secret)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: endpoint(k, in, out), ReadTimeout: 10 * time.Second}
	go s.Serve(l) //nolint:errcheck // it ends with Close
	fmt.Fprintf(out, "webhooks: http://%s/\n", l.Addr())
	return func() { _ = s.Close() }, nil
}

// endpoint takes deliveries. Nothing of a body is looked at before its signature has been checked, and 204 is said only
// when the event has been taken: anything else brings it again.
func endpoint(secret []byte, in *inbox, out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := verify(secret, r.Header, body, time.Now()); err != nil {
			fmt.Fprintln(out, "delivery refused:", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var e event
		if err := json.Unmarshal(body, &e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		in.take(e)
		w.WriteHeader(http.StatusNoContent)
	})
}

// inbox keeps what webhooks brought. An agent with a database keeps it there.
type inbox struct {
	mu    sync.Mutex
	seen  map[string]bool   // by the event's id
	texts map[string]string // by the message's id
	out   io.Writer
}

func newInbox(out io.Writer) *inbox {
	return &inbox{seen: map[string]bool{}, texts: map[string]string{}, out: out}
}

// take notes an event, once however often it is delivered.
func (i *inbox) take(e event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen[e.ID] {
		return
	}
	i.seen[e.ID] = true
	if e.Type == "message.received" {
		i.texts[e.Data.MessageID] = e.Data.Text
	}
	fmt.Fprintf(i.out, "event %d: %s\n", e.Seq, e.Type)
}

func (i *inbox) text(message string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, ok := i.texts[message]
	return text, ok
}
