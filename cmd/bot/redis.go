package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// noLog drops what the Redis client says of its own accord: who uses it says once that Redis is gone, in our form.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

// hushed: the client has one place for its log in a process, and tests make many apps at once.
var hushed sync.Once

// newRedis makes a client that gives up in time: each call has a deadline, and none is tried twice. It connects to
// nothing yet.
func newRedis(u string) (*redis.Client, error) {
	o, err := redis.ParseURL(u)
	if err != nil { // whose text may hold the password
		return nil, usage("COUNTERSIGN_REDIS_URL must be redis://HOST:PORT/DB, rediss://… or unix://PATH; leave it empty where one server is alone.")
	}
	hushed.Do(func() { redis.SetLogger(noLog{}) })
	o.DialerRetries, o.MaxRetries, o.ContextTimeoutEnabled = 1, -1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// redisPrefix is what everything of one database begins with in Redis, so that a Redis may serve several databases: the
// same for every replica that names the database alike, and without its password.
func redisPrefix(databaseURL string) string {
	place := databaseURL
	if path, ok := strings.CutPrefix(databaseURL, "sqlite:"); ok {
		if abs, err := filepath.Abs(path); err == nil {
			place = abs
		}
	} else if u, err := url.Parse(databaseURL); err == nil {
		q := u.Query()
		place = u.Host + u.Path + "?" + url.Values{"host": q["host"], "port": q["port"], "dbname": q["dbname"]}.Encode()
	}
	sum := sha256.Sum256([]byte(place))
	return "countersign:" + hex.EncodeToString(sum[:8]) + ":"
}
