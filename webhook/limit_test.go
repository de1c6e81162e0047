package webhook

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign/countersign/limit"
)

// A message that its sender's rate keeps out was not stored, and its answer says so and when to come again.
func TestLimitedIsNotAcknowledged(t *testing.T) {
	body := common().encode()
	var log bytes.Buffer
	box := &inbox{failing: fmt.Errorf("intake: %w", &Limited{RetryAfter: 7})}
	rec := httptest.NewRecorder()
	var seen []string
	NewTwilioHandler(newTwilio(t, config()), box, Options{Log: slog.New(slog.NewJSONHandler(&log, nil)), Observe: func(status int, reason string) {
		seen = append(seen, fmt.Sprint(status, reason))
	}}).ServeHTTP(rec, request{body: body, signature: reference(t, testToken, testURL, body)}.http())
	if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") != "7" || strings.TrimSpace(rec.Body.String()) != "rate_limited" {
		t.Errorf("%d, Retry-After %q, %q", rec.Code, rec.Header().Get("Retry-After"), rec.Body)
	}
	if len(seen) != 1 || seen[0] != "429rate_limited" {
		t.Errorf("counted %q", seen)
	}
	if strings.Contains(log.String(), testFrom) {
		t.Errorf("the log names the sender: %s", &log)
	}
}

// TestSlowBody: a body that dribbles is answered when its time is over, and nothing of it is taken.
func TestSlowBody(t *testing.T) {
	for name, door := range map[string]func(Intake) http.Handler{
		"messages": func(i Intake) http.Handler { return NewTwilioHandler(newTwilio(t, config()), i, Options{}) },
		"sim":      func(i Intake) http.Handler { return NewSimHandler(i, Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			box := &inbox{}
			srv := httptest.NewServer(limit.Bodies(door(box), 50*time.Millisecond))
			defer srv.Close()
			conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // a test's
			ct := "application/x-www-form-urlencoded"
			if name == "sim" {
				ct = "application/json"
			}
			head := "POST /twilio/inbound HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + ct + "\r\nContent-Length: 1000\r\nX-Twilio-Signature: x\r\n\r\n"
			if _, err := io.WriteString(conn, head); err != nil {
				t.Fatal(err)
			}
			answer := make(chan string, 1)
			go func() {
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					answer <- err.Error()
					return
				}
				raw, _ := io.ReadAll(res.Body)
				answer <- res.Status + " " + strings.TrimSpace(string(raw)) + fmt.Sprint(" ends ", res.Close)
			}()
			for tick := time.NewTicker(5 * time.Millisecond); ; {
				select {
				case <-tick.C: // ever another byte, and never all of them
					_, _ = io.WriteString(conn, "a")
					continue
				case raw := <-answer:
					if raw != "408 Request Timeout body_timeout ends true" {
						t.Errorf("answered %q", raw)
					}
				}
				tick.Stop()
				break
			}
			if len(box.posts) != 0 {
				t.Error("something was taken")
			}
		})
	}
}

// TestRefusalsFillNoLog: what anybody can cause is logged a few times, then once a second with how many were left out.
func TestRefusalsFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := NewTwilioHandler(newTwilio(t, config()), &inbox{}, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		forged := func(n int) {
			for range n {
				h.ServeHTTP(httptest.NewRecorder(), request{body: "Body=x", signature: "x"}.http())
			}
		}
		forged(1000)
		if n := strings.Count(log.String(), "\n"); n != logBurst {
			t.Errorf("%d lines about 1000 refusals, want %d", n, logBurst)
		}
		h.ServeHTTP(httptest.NewRecorder(), request{body: "Body=x"}.http()) // another reason
		if !strings.Contains(log.String(), "signature_absent") {
			t.Error("one reason hides another")
		}
		<-time.After(logEvery) // by the bubble's clock
		log.Reset()
		forged(2)
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "not_logged=990") {
			t.Errorf("after a second: %q", got)
		}
	})
}
