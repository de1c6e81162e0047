package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/local"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/sqlite"
	"github.com/countersign/countersign/webhook"
)

// inside is the path of a yes in this process, wired as `bot serve` wires it, so that a profile sees it.
type inside struct {
	store   crowd.Store
	log     *os.File
	profile *os.File
	cancel  context.CancelFunc
	srv     *http.Server
	wg      sync.WaitGroup
}

// insideStarter writes a CPU profile of each run, the last one remaining, where profile names a file.
func insideStarter(profile, twilioURL string) starter {
	return func(ctx context.Context, dir, databaseURL, addr string) (server, error) {
		in := &inside{}
		if err := in.start(ctx, filepath.Join(dir, "serve.log"), profile, databaseURL, addr, twilioURL); err != nil {
			return nil, err
		}
		return in, nil
	}
}

func (in *inside) start(ctx context.Context, logFile, profile, databaseURL, addr, twilioURL string) (err error) {
	if in.log, err = os.Create(logFile); err != nil { //nolint:gosec // a path of ours
		return err
	}
	log := slog.New(slog.NewJSONHandler(in.log, nil))
	if path, lite := strings.CutPrefix(databaseURL, "sqlite:"); lite {
		in.store, err = sqlite.Open(ctx, path)
	} else {
		in.store, err = postgres.Open(ctx, databaseURL)
	}
	if err != nil {
		return err
	}
	inner, err := local.New()
	if err != nil {
		return err
	}
	f, err := calibration.Load(local.CalibrationFile())
	if err != nil {
		return err
	}
	wake := &offers.Wake{}
	cfg := reply.Config{Threshold: max(f.Threshold, classifier.ActThreshold), MinRead: time.Second}
	processor, err := reply.NewProcessor(in.store, calibration.Calibrated(inner, f, inner), cfg, wake, log)
	if err != nil {
		return err
	}
	runner := reply.NewRunner(in.store, processor.Process, log, 8, 1024)
	door, err := webhook.NewTwilio(webhook.TwilioConfig{
		PublicURL: crowd.PublicURL + crowd.HookPath, AuthTokens: []string{crowd.AuthToken}, AccountSID: crowd.AccountSID, Numbers: []string{crowd.OurNumber},
	})
	if err != nil {
		return err
	}
	sender, err := channel.NewTwilio(channel.TwilioConfig{AccountSID: crowd.AccountSID, AuthToken: crowd.AuthToken, From: crowd.OurNumber, BaseURL: twilioURL, Log: log})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr) //nolint:noctx // closed by stop
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(crowd.HookPath, webhook.NewTwilioHandler(door, intake{in.store, runner}, webhook.Options{Log: log}))
	in.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ctx, in.cancel = context.WithCancel(ctx)
	in.wg.Go(func() { runner.Run(ctx) })
	in.wg.Go(func() { offers.NewDispatcher(in.store, sender, wake, log, 8).Run(ctx) })
	in.wg.Go(func() { offers.NewClock(in.store, wake, log, offers.HourlyTexts).Run(ctx) })
	in.wg.Go(func() {
		if err := in.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve", "error", err)
		}
	})
	if profile == "" {
		return nil
	}
	if in.profile, err = os.Create(profile); err != nil { //nolint:gosec // the caller names the file
		return err
	}
	return pprof.StartCPUProfile(in.profile)
}

func (in *inside) stop() {
	if in.profile != nil {
		pprof.StopCPUProfile()
		_ = in.profile.Close()
	}
	_ = in.srv.Close()
	in.cancel()
	in.wg.Wait()
	_ = in.store.Close()
	_ = in.log.Close()
}

func (in *inside) peak() int64     { return 0 }
func (in *inside) pid() int        { return os.Getpid() }
func (in *inside) logFile() string { return in.log.Name() }

// intake is what `bot serve` does with a proven message.
type intake struct {
	inbox  offers.Inbox
	runner *reply.Runner
}

// Receive implements [webhook.Intake].
func (i intake) Receive(ctx context.Context, in webhook.Inbound) (<-chan struct{}, error) {
	r, err := i.inbox.Receive(ctx, offers.Inbound{
		Provider: in.Provider, ProviderID: in.ProviderSID, Address: in.From, OurNumber: in.To, Text: string(in.Text), Raw: in.Raw, Lossy: in.Lossy,
	})
	if err != nil || r.Duplicate || !r.Trusted {
		return nil, err
	}
	return i.runner.Submit(r), nil
}
