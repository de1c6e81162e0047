package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
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

// senders keeps each sender, who is an address at a number of ours, within a rate, and loses nothing that a person said.
//
// Beyond the rate a stranger's message is not stored and not acknowledged (429). A person's always is both: what the
// provider does with a refusal is up to settings that are not ours, and a refused yes would be a lost one. It only loses
// its place in the queue: it is found in the store some seconds later, by when all but the newest of a flood have been
// overtaken, so that the reader reads one message of it and not all.
type senders struct {
	limiter limit.Limiter
	rate    limit.Rate
	book    people.Book
	log     *slog.Logger
}

// admit says whether a message goes on at once, and an error where it is not to be stored.
func (s senders) admit(ctx context.Context, in webhook.Inbound) (atOnce bool, err error) {
	from := string(in.From)
	if from == "" {
		from = "raw:" + string(in.FromRaw)
	}
	// Not the number itself: Redis is no place for who texts whom.
	sum := sha256.Sum256([]byte(from + " " + string(in.To)))
	v := s.limiter.Take(ctx, limit.Ask{Line: "sender:" + hex.EncodeToString(sum[:12]), Rate: s.rate})
	if v.Allowed {
		return true, nil
	}
	if in.From == "" { // nobody, and matches nobody
		return false, &webhook.Limited{RetryAfter: v.Seconds()}
	}
	bound, err := s.book.Bound(ctx, in.From, in.To)
	if err != nil { // whether it can be stored is the store's to say
		s.log.ErrorContext(ctx, "sender not looked up", "error", err)
		return false, nil
	}
	if !bound { // mutant: senders.known
		return false, &webhook.Limited{RetryAfter: v.Seconds()}
	}
	return false, nil
}

// countWebhooks counts the provider's requests: by door, status and reason, of which there are a fixed few.
func countWebhooks(metrics prometheus.Registerer) func(door string) func(status int, reason string) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_webhook_requests_total", Help: "Requests of the provider, by what came of them.",
	}, []string{"door", "status", "reason"})
	metrics.MustRegister(requests)
	return func(door string) func(int, string) {
		return func(status int, reason string) { requests.WithLabelValues(door, strconv.Itoa(status), reason).Inc() }
	}
}

// defaultConsoleAddr is where the internal listener is where nothing is set.
const defaultConsoleAddr = "127.0.0.1:8081"

// listenInternal opens the listener for what is not for agents or the provider. nil: there is to be none. A second server
// on one machine that names no address of its own takes a free one, and says so.
func listenInternal(ctx context.Context, addr string, log *slog.Logger) (net.Listener, error) {
	if addr == "" || addr == "off" {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) && addr == defaultConsoleAddr {
		log.WarnContext(ctx, "COUNTERSIGN_CONSOLE_ADDR is not set and its default is taken: metrics are at another port this time", "taken", addr)
		l, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, usage("Nothing can listen at COUNTERSIGN_CONSOLE_ADDR: %v. Set it to a free HOST:PORT that only you reach, or to off.", err)
	}
	log.InfoContext(ctx, "internal listener", "addr", l.Addr().String())
	return l, nil
}

// sameAddr reports two settings that ask for one port.
func sameAddr(a, b string) bool {
	_, port, err := net.SplitHostPort(a)
	return err == nil && a == b && port != "0"
}

// bodyTime is how long the body of a request may take.
func (c config) bodyTime() time.Duration {
	if c.BodyTime > 0 {
		return c.BodyTime
	}
	return limit.BodyTime
}
