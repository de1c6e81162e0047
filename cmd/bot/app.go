package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/console"
	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/wake"
	"github.com/countersign/countersign/webhook"
)

const (
	workers      = 8
	places       = 1024
	drainTimeout = 20 * time.Second
)

// Where Twilio posts; what it signs begins with the public URL before them.
const (
	messagesPath = "/webhooks/twilio/messages"
	statusPath   = "/webhooks/twilio/status"
)

// app is a server, wired. Everything that it is made of is visible here.
type app struct {
	handler    http.Handler // for agents and the provider
	metrics    http.Handler // for the internal listener
	internal   net.Listener // nil: none
	redis      io.Closer    // nil: none
	relay      *wake.Relay  // nil: this process wakes nobody else
	runner     *reply.Runner
	dispatcher *offers.Dispatcher
	prompter   *offers.Prompter
	clock      *offers.Clock
	deliverer  *api.Deliverer
	sim        *channel.Sim // nil: no simulated phone
	log        *slog.Logger
}

func newApp(c config, s store, log *slog.Logger) (*app, error) {
	policy, err := c.loadPolicy()
	if err != nil {
		return nil, err
	}
	reader, threshold, err := newReader(c, log)
	if err != nil {
		return nil, err
	}
	bell := &offers.Wake{}
	a := &app{log: log}
	var limiter limit.Limiter = limit.NewMemory(time.Now)
	if c.RedisURL != "" {
		client, err := newRedis(c.RedisURL)
		if err != nil {
			return nil, err
		}
		prefix := redisPrefix(c.DatabaseURL)
		limiter = limit.NewRedis(client, prefix, time.Now, log)
		a.redis, a.relay = client, wake.New(client, prefix+"wake", bell, log)
	}
	drift := reply.NewDrift(reply.DriftWindow, reply.DriftUnclear)
	metrics := prometheus.NewRegistry()
	if err := metrics.Register(drift); err != nil {
		return nil, err
	}
	hearing, err := newHearing(c)
	if err != nil {
		return nil, err
	}
	processor, err := reply.NewProcessor(s, reader, reply.Config{
		Threshold: threshold, MinRead: c.MinRead, TapbackConfirms: c.TapbackConfirms, HourlyTexts: c.HourlyTexts, Drift: drift,
		Said: hearing,
	}, bell, log)
	if err != nil {
		return nil, err
	}
	a.runner = reply.NewRunner(s, processor.Process, log, workers, places)
	in := intake{inbox: s, runner: a.runner, log: log, senders: senders{limiter, c.RateSender, s, log}}

	asked := countWebhooks(metrics)
	inner := http.NewServeMux()
	inner.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	a.metrics = inner
	mux := http.NewServeMux()
	var sender offers.Sender
	if c.Sim {
		a.sim = channel.NewSim(time.Now)
		sender, in.sim = a.sim, a.sim
		mux.Handle("/webhooks/sim/messages", webhook.NewSimHandler(in, webhook.Options{Log: log, Observe: asked("messages")}))
	} else {
		incoming := webhook.TwilioConfig{
			PublicURL: c.PublicURL + messagesPath, AuthTokens: []string{c.Twilio.AuthToken},
			AccountSID: c.Twilio.AccountSID, Numbers: c.Twilio.Numbers,
		}
		messages, err := webhook.NewTwilio(incoming)
		if err != nil {
			return nil, usage("Twilio's settings do not hold: %v", err)
		}
		incoming.PublicURL = c.PublicURL + statusPath
		status, err := webhook.NewTwilio(incoming)
		if err != nil {
			return nil, usage("Twilio's settings do not hold: %v", err)
		}
		sender, err = channel.NewTwilio(channel.TwilioConfig{
			AccountSID: c.Twilio.AccountSID, AuthToken: c.Twilio.AuthToken, From: c.Twilio.From, BaseURL: c.Twilio.APIURL,
			StatusCallback: incoming.PublicURL, Log: log,
		})
		if err != nil {
			return nil, usage("Twilio's settings do not hold: %v", err)
		}
		mux.Handle(messagesPath, webhook.NewTwilioHandler(messages, in, webhook.Options{Log: log, Observe: asked("messages")}))
		mux.Handle(statusPath, webhook.NewTwilioStatusHandler(status, reports{s, bell, log}, webhook.Options{Log: log, Observe: asked("status")}))
	}
	service := offers.NewService(s, policy, func(string) int { return sender.Limit() }, offers.WithPages(c.PublicURL), offers.WithLog(log))
	page, err := console.NewPage(s, policy, time.Now, log)
	if err != nil {
		return nil, err
	}
	mux.Handle(offers.PagePath, page)
	a.dispatcher = offers.NewDispatcher(s, sender, bell, log, workers)
	a.prompter = offers.NewPrompter(s, sender, bell, log)
	a.clock = offers.NewClock(s, bell, log, c.HourlyTexts, sweeps(s, c.IdleDays, time.Now, log)...)
	a.deliverer = api.NewDeliverer(s, bell, log, api.DeliverConfig{AllowPrivate: c.AllowPrivateEndpoints, Version: version})
	mux.Handle("/", api.New(api.Deps{Keys: s, Store: s, Proposer: service,
		Confirms: reply.NewConfirmer(s, c.MinRead, bell), Wake: bell, Log: log, Ready: s.Ping, Version: version,
		Limiter: limiter, KeyRate: c.RateKey, AccountRate: c.RateAccount, BodyTime: c.BodyTime, Reread: c.Reread}))
	a.handler = limit.Bodies(mux, c.BodyTime)
	return a, nil
}

// intake makes a proven message durable and hands it to the runner.
type intake struct {
	inbox   offers.Inbox
	senders senders
	runner  *reply.Runner
	sim     *channel.Sim // nil: no simulated phone
	log     *slog.Logger
}

// Receive implements [webhook.Intake].
func (i intake) Receive(ctx context.Context, in webhook.Inbound) (<-chan struct{}, error) {
	atOnce, err := i.senders.admit(ctx, in)
	if err != nil {
		return nil, err
	}
	r, err := i.inbox.Receive(ctx, inboundOf(in, i.sim))
	if err != nil {
		i.log.ErrorContext(ctx, "message not stored", "error", err)
		return nil, err
	}
	if r.Duplicate || !r.Trusted || !atOnce { // what waits is found in the store
		return nil, nil
	}
	return i.runner.Submit(r), nil
}

// serve runs on a listener until ctx ends, and then in order: no new requests, no new work, what was begun is finished.
func (a *app) serve(ctx context.Context, l net.Listener) error {
	server := func(h http.Handler) *http.Server {
		return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
			ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn)}
	}
	srv, inner := server(a.handler), server(limit.Bodies(a.metrics, 0))
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { a.runner.Run(work) })
	wg.Go(func() { a.dispatcher.Run(work) })
	wg.Go(func() { a.prompter.Run(work) })
	wg.Go(func() { a.clock.Run(work) })
	wg.Go(func() { a.deliverer.Run(work) })
	if a.relay != nil {
		wg.Go(func() { a.relay.Run(work) })
	}
	failed := make(chan error, 2)
	go func() { failed <- srv.Serve(l) }()
	if a.internal != nil {
		go func() { failed <- inner.Serve(a.internal) }()
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		drain, cancel := context.WithTimeout(work, drainTimeout)
		defer cancel()
		if err = srv.Shutdown(drain); errors.Is(err, context.DeadlineExceeded) {
			err = srv.Close()
		}
		_ = inner.Shutdown(drain) // what is left of it is closed below
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	err = errors.Join(err, srv.Close(), inner.Close()) // both, whichever of them it was that failed
	stop()
	wg.Wait()
	if a.redis != nil {
		err = errors.Join(err, a.redis.Close())
	}
	return err
}
