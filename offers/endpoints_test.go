package offers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/offers"
)

func TestJudgeADelivery(t *testing.T) {
	for _, c := range []struct {
		name   string
		a      offers.Attempt
		failed int
		fate   offers.Fate
		in     time.Duration
	}{
		{"200", offers.Attempt{Status: 200}, 0, offers.FateDelivered, 0},
		{"204 after failures", offers.Attempt{Status: 204}, 5, offers.FateDelivered, 0},
		{"299", offers.Attempt{Status: 299}, 0, offers.FateDelivered, 0},
		{"no answer is no success", offers.Attempt{Status: 200, Failure: offers.FailedTimeout}, 0, offers.FateRetry, 5 * time.Second},
		{"nothing at all", offers.Attempt{}, 0, offers.FateRetry, 5 * time.Second},
		{"101", offers.Attempt{Status: 101}, 0, offers.FateRetry, 5 * time.Second},
		{"302", offers.Attempt{Status: 302}, 0, offers.FateRetry, 5 * time.Second},
		{"400", offers.Attempt{Status: 400}, 1, offers.FateRetry, 30 * time.Second},
		{"500", offers.Attempt{Status: 500}, 2, offers.FateRetry, 2 * time.Minute},
		{"429", offers.Attempt{Status: 429}, 3, offers.FateRetry, 10 * time.Minute},
		{"time-out", offers.Attempt{Failure: offers.FailedTimeout}, 4, offers.FateRetry, time.Hour},
		{"the schedule is over", offers.Attempt{Status: 500}, 5, offers.FateDead, 0},
		{"and long over", offers.Attempt{Failure: offers.FailedName}, 50, offers.FateDead, 0},
		{"410", offers.Attempt{Status: 410}, 0, offers.FateDisabled, 0},
		{"410 at the end", offers.Attempt{Status: 410}, 5, offers.FateDisabled, 0},
	} {
		if fate, in := c.a.Judge(c.failed, 0.5); fate != c.fate || in != c.in {
			t.Errorf("%s: %v in %s, want %v in %s", c.name, fate, in, c.fate, c.in)
		}
	}
	for _, j := range []struct {
		jitter float64
		in     time.Duration
	}{{0, 8 * time.Minute}, {0.25, 9 * time.Minute}, {0.75, 11 * time.Minute}} {
		if _, in := (offers.Attempt{Status: 500}).Judge(3, j.jitter); in.Round(time.Millisecond) != j.in {
			t.Errorf("jitter %g: in %s, want %s", j.jitter, in, j.in)
		}
	}
}

func TestEndpointSecrets(t *testing.T) {
	a, b := offers.NewEndpointSecret(), offers.NewEndpointSecret()
	if a == b {
		t.Fatal("two secrets are the same")
	}
	key, err := offers.EndpointKey(a)
	if err != nil || len(key) != 32 || !strings.HasPrefix(a, "whsec_") {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	for _, s := range []string{
		"", "whsec_", "whsec_AAAA", strings.TrimPrefix(a, "whsec_"), "whsec_" + strings.Repeat("A", 28), "whsec_" + strings.Repeat("A", 100), a + "!", "whsec_ " + a[6:],
	} {
		if _, err := offers.EndpointKey(s); !errors.Is(err, offers.ErrBadSecret) {
			t.Errorf("a secret of %d characters: %v", len(s), err)
		}
	}
}

func TestEndpointsKeepTheirSecretsOutOfJSONAndLogs(t *testing.T) {
	e := offers.Endpoint{ID: "e1", URL: "https://agent.example.test/?token=hush", Secret: offers.NewEndpointSecret()}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "whsec_") {
		t.Error("JSON has the secret")
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "endpoint", e, "delivery", offers.Delivery{Endpoint: e})
	if got := log.String(); strings.Contains(got, "whsec_") || strings.Contains(got, "hush") || !strings.Contains(got, "e1") {
		t.Error("the log has", got)
	}
}
