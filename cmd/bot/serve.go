package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/offers"
)

type serveCmd struct {
	configFlags
	Addr                  string `help:"Where to listen (COUNTERSIGN_ADDR)." placeholder:"HOST:PORT"`
	ConsoleAddr           string `help:"Where to listen for what only the owner may reach, such as /metrics (COUNTERSIGN_CONSOLE_ADDR); off: nowhere." placeholder:"HOST:PORT"`
	RedisURL              string `name:"redis-url" help:"Redis for limits and wake-ups that replicas share (COUNTERSIGN_REDIS_URL)." placeholder:"URL"`
	RateKey               string `help:"Calls by one key (COUNTERSIGN_RATE_KEY), such as 500/s burst 2000, or off." placeholder:"RATE"`
	RateAccount           string `help:"Calls by all keys of an account (COUNTERSIGN_RATE_ACCOUNT)." placeholder:"RATE"`
	RateSender            string `help:"Messages from one sender (COUNTERSIGN_RATE_SENDER)." placeholder:"RATE"`
	PublicURL             string `help:"The https:// address at which Twilio reaches this server (COUNTERSIGN_PUBLIC_URL)." placeholder:"URL"`
	Policy                string `help:"The policy file (COUNTERSIGN_POLICY); the embedded sample if left out." placeholder:"FILE"`
	Reader                string `help:"local, openai, cascade or agree (COUNTERSIGN_READER)." placeholder:"local"`
	Calibration           string `help:"The reader's calibration file (COUNTERSIGN_CALIBRATION)." placeholder:"FILE"`
	MinRead               string `help:"From the newest ask to the earliest yes (COUNTERSIGN_MIN_READ)." placeholder:"1s"`
	TapbackConfirms       bool   `help:"A like or heart that quotes the whole text of the only open offer passes for a yes (COUNTERSIGN_TAPBACK_CONFIRMS)."`
	Said                  string `help:"Who takes permissions from what owners type: builtin, openai or off (COUNTERSIGN_SAID)." placeholder:"builtin"`
	TimeZone              string `help:"The people's time zone, for times in what they type (COUNTERSIGN_TIME_ZONE)." placeholder:"UTC"`
	HourlyTexts           string `help:"Questions and notices of the service's own to one person within an hour (COUNTERSIGN_HOURLY_TEXTS)." placeholder:"20"`
	IdleDays              string `help:"Unbind an address after so many days without a text from it; 0 is never (COUNTERSIGN_IDLE_DAYS)." placeholder:"0"`
	Sim                   bool   `help:"The simulated phone instead of Twilio; what arrives there is printed (COUNTERSIGN_SIM)."`
	AllowPrivateEndpoints bool   `help:"Post events to private networks and the loopback too (COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS)."`
	PrintConfig           bool   `help:"Print the settings, secrets hidden, and stop."`

	TwilioAccountSid string `help:"TWILIO_ACCOUNT_SID." placeholder:"AC…"`
	TwilioFrom       string `help:"TWILIO_FROM: a number, whatsapp:+… or a messaging service." placeholder:"+…"`
	TwilioNumbers    string `help:"TWILIO_NUMBERS: our numbers, separated by commas." placeholder:"+…,+…"`
	OpenaiBaseUrl    string `help:"OPENAI_BASE_URL: an OpenAI-compatible endpoint." placeholder:"URL"`
	OpenaiModel      string `help:"OPENAI_MODEL: the model's name." placeholder:"NAME"`
	TwilioApiUrl     string `help:"TWILIO_API_URL: another base of Twilio's API." placeholder:"URL"`
}

// Help is the command's example.
func (serveCmd) Help() string {
	return `Example:
  COUNTERSIGN_SIM=1 bot serve

  TWILIO_ACCOUNT_SID=AC… TWILIO_AUTH_TOKEN_FILE=/run/secrets/twilio TWILIO_FROM=+12025550100 \
  COUNTERSIGN_PUBLIC_URL=https://approve.example.com bot serve`
}

// Run serves until the process is told to stop.
func (c *serveCmd) Run(e *env) error {
	flags := map[string]string{
		"addr": c.Addr, "console_addr": c.ConsoleAddr, "database_url": c.DatabaseURL, "redis_url": c.RedisURL,
		"rate_key": c.RateKey, "rate_account": c.RateAccount, "rate_sender": c.RateSender,
		"public_url": c.PublicURL, "policy": c.Policy, "reader": c.Reader, "calibration": c.Calibration, "min_read": c.MinRead,
		"said": c.Said, "time_zone": c.TimeZone, "hourly_texts": c.HourlyTexts, "idle_days": c.IdleDays,
		"twilio_account_sid": c.TwilioAccountSid, "twilio_from": c.TwilioFrom, "twilio_numbers": c.TwilioNumbers, "twilio_api_url": c.TwilioApiUrl,
		"openai_base_url": c.OpenaiBaseUrl, "openai_model": c.OpenaiModel,
	}
	if c.TapbackConfirms {
		flags["tapback_confirms"] = "1"
	}
	if c.Sim {
		flags["sim"] = "1"
	}
	if c.AllowPrivateEndpoints {
		flags["allow_private_endpoints"] = "1"
	}
	cfg, k, err := load(e.vars, c.Config, flags)
	if err != nil {
		return err
	}
	if c.PrintConfig {
		e.printf("%s", redacted(k))
		return nil
	}
	if err := cfg.checkServe(); err != nil {
		return err
	}
	s, err := openStore(e.ctx, cfg.DatabaseURL, false)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the process ends
	a, err := newApp(cfg, s, e.log)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(e.ctx, "tcp", cfg.Addr)
	if err != nil {
		return usage("Nothing can listen at COUNTERSIGN_ADDR: %v. Set it to a free HOST:PORT.", err)
	}
	if a.internal, err = listenInternal(e.ctx, cfg.ConsoleAddr, e.log); err != nil {
		return errors.Join(err, l.Close())
	}
	settle(e.log)
	if a.sim != nil {
		defer e.screen(a.sim)()
	}
	e.log.Info("listening", "addr", l.Addr().String(), "sim", cfg.Sim)
	return a.serve(e.ctx, l)
}

// screen prints what arrives on the simulated phone, which has no other screen, until the end that it returns is called. It is
// standard output, not the log, which holds no words. What an agent wrote can do nothing to the terminal.
func (e *env) screen(sim *channel.Sim) (end func()) {
	ctx, cancel := context.WithCancel(e.ctx)
	texts := sim.Follow(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for x := range texts {
			e.printf("  ┌ text to %s\n", string(x.To))
			for line := range strings.Lines(x.Body) {
				e.printf("  │ %s\n", offers.Spell(strings.TrimRight(line, "\n")))
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// settle reads what the first message would wait for, and gives back what only the start has needed.
func settle(log *slog.Logger) {
	release := func() {
		if err := releaseStart(); err != nil {
			log.Warn("pages of the start are kept", "error", err)
		}
	}
	release() // before what comes next is added to them
	classifier.Load()
	debug.FreeOSMemory()
	release()
}
