package api

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/offers"
)

// verified asks the scheme's own library, which is not ours and not in Go. It is installed from its lock file into a
// directory of the test. A machine without npm fails: a signature that nobody else has verified is only our opinion.
func verified(t *testing.T, cases any) []verdict {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.mjs"} {
		raw, err := os.ReadFile(filepath.Join("..", "internal", "standardwebhooks", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
	}
	run := func(stdin []byte, name string, args ...string) []byte {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		var stdout, stderr bytes.Buffer
		c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, bytes.NewReader(stdin), &stdout, &stderr
		if err := c.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
		}
		return stdout.Bytes()
	}
	run(nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--prefer-offline")
	raw, err := json.Marshal(cases)
	must(t, err)
	var out []verdict
	must(t, json.Unmarshal(run(raw, "node", "verify.mjs"), &out))
	return out
}

type verdict struct {
	Payload *offers.Event
	Error   string
}

func TestDeliverWhatTheSchemesOwnLibraryVerifies(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, takes)
	e := o.add(b.URL)
	o.happen(4)
	// The library reads the real clock and takes five minutes to either side.
	for _, ahead := range []time.Duration{0, -6 * time.Minute, 6 * time.Minute, -4 * time.Minute} {
		o.once(o.deliverer(func(c *DeliverConfig) { c.Now = func() time.Time { return time.Now().Add(ahead) } }), true)
	}
	posts, feed := b.got(), o.feed()
	type request struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	as := func(i int, change func(r *request)) request {
		r := request{Secret: e.Secret, Headers: map[string]string{}, Body: string(posts[i].body)}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			r.Headers[name] = posts[i].header.Get(name)
		}
		if change != nil {
			change(&r)
		}
		return r
	}
	const wrong = "No matching signature found"
	cases := []struct {
		name string
		r    request
		want string // empty: it verifies
		of   int
	}{
		{"as it came", as(0, nil), "", 0},
		{"four minutes old", as(3, nil), "", 3},
		{"replayed after six minutes", as(1, nil), "Message timestamp too old", 0},
		{"six minutes ahead", as(2, nil), "Message timestamp too new", 0},
		{"replayed with a new time", as(1, func(r *request) { r.Headers["webhook-timestamp"] = posts[0].header.Get("webhook-timestamp") }), wrong, 0},
		{"another secret", as(0, func(r *request) { r.Secret = offers.NewEndpointSecret() }), wrong, 0},
		{"another body", as(0, func(r *request) { r.Body = strings.Replace(r.Body, "unrelated", "confirm", 1) }), wrong, 0},
		{"another number", as(0, func(r *request) { r.Body = strings.Replace(r.Body, `"seq":1`, `"seq":2`, 1) }), wrong, 0},
		{"another id", as(0, func(r *request) { r.Headers["webhook-id"] = feed[1].ID }), wrong, 0},
		{"the next event's signature", as(0, func(r *request) { r.Headers["webhook-signature"] = posts[3].header.Get("webhook-signature") }), wrong, 0},
		{"no signature", as(0, func(r *request) { delete(r.Headers, "webhook-signature") }), "Missing required headers", 0},
	}
	var requests []request
	for _, c := range cases {
		requests = append(requests, c.r)
	}
	verdicts := verified(t, requests)
	if len(verdicts) != len(cases) {
		t.Fatalf("%d verdicts on %d requests", len(verdicts), len(cases))
	}
	for i, c := range cases {
		v := verdicts[i]
		if v.Error != c.want || (v.Payload != nil) != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, v.Error, c.want)
		}
		if v.Payload != nil && v.Payload.ID != feed[c.of].ID {
			t.Errorf("%s: the library read event %s", c.name, v.Payload.ID)
		}
	}
}
