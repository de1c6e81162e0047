package main

import (
	"strings"
	"testing"
)

// TestRedisURL: a URL that is none ends the start with a sentence that says what to do and repeats nothing of it, and
// one is never printed whole.
func TestRedisURL(t *testing.T) {
	for _, bad := range []string{"localhost:6379", "http://u:hunter2@localhost", "redis://u:hunter2@localhost:port/0", "redis://u:hunter2@h/x"} {
		code, _, errs := bot(t, environ(t, "COUNTERSIGN_SIM=1", "COUNTERSIGN_CONSOLE_ADDR=off", "COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_REDIS_URL="+bad), "", "serve")
		if code != exitUsage || !strings.Contains(errs, "COUNTERSIGN_REDIS_URL must be redis://") || strings.Contains(errs, "hunter2") {
			t.Errorf("%q: %d %s", bad, code, errs)
		}
	}
	_, out, _ := bot(t, environ(t, "COUNTERSIGN_REDIS_URL=redis://u:hunter2@redis:6379/0"), "", "serve", "--print-config")
	if strings.Contains(out, "hunter2") || !strings.Contains(out, `redis_url: "redis://[redacted]@redis:6379/0"`) {
		t.Errorf("printed as %s", out)
	}
}

// TestRedisPrefix: replicas that name one database alike share a prefix, whatever their password; other databases have
// another.
func TestRedisPrefix(t *testing.T) {
	one := redisPrefix("postgres://a:b@db:5432/countersign")
	if strings.Contains(one, "db") || one != redisPrefix("postgres://c:d@db:5432/countersign?sslmode=disable") {
		t.Error("a user or an option makes another database")
	}
	seen := map[string]string{}
	for _, u := range []string{
		"postgres://a:b@db:5432/countersign", "postgres://a:b@db:5432/other", "postgres://a:b@db2:5432/countersign", "postgres://a:b@db:5433/countersign",
		"postgres:///countersign?host=/run/a", "postgres:///countersign?host=/run/b", "sqlite:a.db", "sqlite:b.db",
	} {
		p := redisPrefix(u)
		if seen[p] != "" {
			t.Errorf("%s and %s share a prefix", u, seen[p])
		}
		seen[p] = u
	}
}
