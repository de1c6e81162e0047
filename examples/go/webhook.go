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
	"log"
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

// listen serves the endpoint until stop is called. Each event goes to hear; an error of hear brings it again.
func listen(ctx context.Context, addr, secret string, hear func(context.Context, event) error, log *log.Logger) (stop func(), err error) {
	k, err := key(secret)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: endpoint(k, hear, log), ReadTimeout: 10 * time.Second}
	go s.Serve(l) //nolint:errcheck // it ends with Close
	log.Printf("webhooks: http://%s/", l.Addr())
	return func() { _ = s.Close() }, nil
}

// endpoint takes deliveries. Nothing of a body is looked at before its signature has been checked, and 204 is said only
// when the event has been taken: anything else brings it again.
func endpoint(secret []byte, hear func(context.Context, event) error, log *log.Logger) http.Handler {
	var mu sync.Mutex
	heard := map[string]bool{} // by the event's id; an agent with a database keeps it there
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := verify(secret, r.Header, body, time.Now()); err != nil {
			log.Println("delivery refused:", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var e event
		if err := json.Unmarshal(body, &e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock() // deliveries come one at a time; a repetition waits for the first
		if !heard[e.ID] {
			if err := hear(r.Context(), e); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			heard[e.ID] = true
			log.Printf("event %d: %s", e.Seq, e.Type)
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
