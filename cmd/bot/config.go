package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/limit"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

// setting is one value of the configuration, with its names on every way in.
type setting struct {
	key    string // in the config file, and as a flag with - for _
	env    string
	def    string
	secret bool
}

// settings lists them all: defaults, then the file, then the environment, then flags.
func settings() []setting {
	return []setting{
		{key: "addr", env: "COUNTERSIGN_ADDR", def: "127.0.0.1:8080"},
		{key: "console_addr", env: "COUNTERSIGN_CONSOLE_ADDR", def: defaultConsoleAddr},
		{key: "database_url", env: "COUNTERSIGN_DATABASE_URL", def: "sqlite:countersign.db", secret: true},
		{key: "redis_url", env: "COUNTERSIGN_REDIS_URL", secret: true},
		{key: "rate_key", env: "COUNTERSIGN_RATE_KEY", def: "500/s burst 2000"},
		{key: "rate_account", env: "COUNTERSIGN_RATE_ACCOUNT", def: "2000/s burst 8000"},
		{key: "rate_sender", env: "COUNTERSIGN_RATE_SENDER", def: "20/s burst 200"},
		{key: "public_url", env: "COUNTERSIGN_PUBLIC_URL"},
		{key: "policy", env: "COUNTERSIGN_POLICY"},
		{key: "reader", env: "COUNTERSIGN_READER", def: "local"},
		{key: "calibration", env: "COUNTERSIGN_CALIBRATION"},
		{key: "min_read", env: "COUNTERSIGN_MIN_READ", def: "1s"},
		{key: "tapback_confirms", env: "COUNTERSIGN_TAPBACK_CONFIRMS"},
		{key: "said", env: "COUNTERSIGN_SAID", def: saidBuiltIn},
		{key: "time_zone", env: "COUNTERSIGN_TIME_ZONE", def: "UTC"},
		{key: "hourly_texts", env: "COUNTERSIGN_HOURLY_TEXTS", def: strconv.Itoa(offers.HourlyTexts)},
		{key: "idle_days", env: "COUNTERSIGN_IDLE_DAYS", def: "0"},
		{key: "sim", env: "COUNTERSIGN_SIM"},
		{key: "allow_private_endpoints", env: "COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS"},
		{key: "twilio_account_sid", env: "TWILIO_ACCOUNT_SID"},
		{key: "twilio_auth_token", env: "TWILIO_AUTH_TOKEN", secret: true},
		{key: "twilio_from", env: "TWILIO_FROM"},
		{key: "twilio_numbers", env: "TWILIO_NUMBERS"},
		{key: "twilio_api_url", env: "TWILIO_API_URL"},
		{key: "openai_api_key", env: "OPENAI_API_KEY", secret: true},
		{key: "openai_base_url", env: "OPENAI_BASE_URL"},
		{key: "openai_model", env: "OPENAI_MODEL"},
	}
}

// config is what serve runs with.
type config struct {
	Addr        string
	ConsoleAddr string // of the internal listener; empty or off: none
	DatabaseURL string
	RedisURL    string // empty: limits and wake-ups are this process's alone
	// Rates of calls by one key and by all of an account, and of messages from one sender. Zero: no limit.
	RateKey, RateAccount, RateSender limit.Rate
	PublicURL                        string
	Policy                           string
	Reader                           string
	Calibration                      string
	MinRead                          time.Duration
	// TapbackConfirms lets a reaction to the whole text of the only open offer pass for a yes.
	TapbackConfirms bool
	IdleDays        int            // after so many days without a text an address is unbound; 0: never
	Said            string         // who takes permissions from owners' words: builtin, openai or off
	TimeZone        *time.Location // of the people, for times in their words
	HourlyTexts     int            // questions and notices of the service's own to one person within an hour
	Sim             bool
	Twilio          twilioConfig
	OpenAI          map[string]string // by the names of its environment
	// AllowPrivateEndpoints lets events be posted to private networks and the loopback.
	AllowPrivateEndpoints bool

	// No settings: tests set them. Zero is the default of what they are for.
	BodyTime time.Duration // in which a body must arrive
	Reread   time.Duration // how often a long poll reads again unwoken
}

type twilioConfig struct {
	AccountSID string
	AuthToken  string
	From       string
	Numbers    []string
	APIURL     string
}

// configFlags are the flags that every command with a configuration has.
type configFlags struct {
	Config      string `help:"A YAML file with these settings." placeholder:"FILE"`
	DatabaseURL string `help:"sqlite:FILE or postgres://… (COUNTERSIGN_DATABASE_URL)." placeholder:"URL"`
}

// load merges the sources and checks what came of them. Errors are usage errors: each says what to do.
func load(vars map[string]string, path string, flags map[string]string) (config, *koanf.Koanf, error) {
	k := koanf.New(".")
	defaults, environment := map[string]any{}, map[string]any{}
	for _, s := range settings() {
		defaults[s.key] = s.def
		if v, ok := vars[s.env]; ok {
			environment[s.key] = v
		}
		if from := vars[s.env+"_FILE"]; from != "" {
			if _, both := environment[s.key]; both {
				return config{}, nil, usage("%s and %s_FILE are both set; set one.", s.env, s.env)
			}
			raw, err := os.ReadFile(from) //nolint:gosec // the operator names the file
			if err != nil {
				return config{}, nil, usage("%s_FILE cannot be read: %v", s.env, errors.Unwrap(err))
			}
			environment[s.key] = strings.TrimSpace(string(raw))
		}
	}
	given := map[string]any{}
	for key, v := range flags {
		if v != "" {
			given[key] = v
		}
	}
	if err := k.Load(confmap.Provider(defaults, "."), nil); err != nil {
		return config{}, nil, err
	}
	if path != "" {
		if err := loadFile(k, path); err != nil {
			return config{}, nil, err
		}
	}
	for _, m := range []map[string]any{environment, given} {
		if err := k.Load(confmap.Provider(m, "."), nil); err != nil {
			return config{}, nil, err
		}
	}
	c, err := build(k)
	return c, k, err
}

func loadFile(k *koanf.Koanf, path string) error {
	f := koanf.New(".")
	if err := f.Load(file.Provider(path), yaml.Parser()); err != nil {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		return usage("The config file %s cannot be read: %v", path, err)
	}
	for _, key := range f.Keys() {
		known := false
		for _, s := range settings() {
			known = known || s.key == key
		}
		if !known {
			return usage("The config file %s has a setting that does not exist: %s", path, key)
		}
	}
	return k.Merge(f)
}

func build(k *koanf.Koanf) (config, error) {
	c := config{
		Addr: k.String("addr"), ConsoleAddr: k.String("console_addr"), DatabaseURL: k.String("database_url"), RedisURL: k.String("redis_url"),
		PublicURL: strings.TrimSuffix(k.String("public_url"), "/"), Policy: k.String("policy"), Reader: k.String("reader"), Calibration: k.String("calibration"),
		Twilio: twilioConfig{
			AccountSID: k.String("twilio_account_sid"), AuthToken: k.String("twilio_auth_token"), From: k.String("twilio_from"),
			APIURL: k.String("twilio_api_url"),
		},
	}
	for n := range strings.SplitSeq(k.String("twilio_numbers"), ",") {
		if n = strings.TrimSpace(n); n != "" {
			c.Twilio.Numbers = append(c.Twilio.Numbers, n)
		}
	}
	if from := c.Twilio.From; strings.Contains(from, "+") {
		c.Twilio.Numbers = append(c.Twilio.Numbers, from)
	}
	var err error
	if c.Sim, err = boolean(k, "sim", "COUNTERSIGN_SIM"); err != nil {
		return c, err
	}
	if c.AllowPrivateEndpoints, err = boolean(k, "allow_private_endpoints", "COUNTERSIGN_ALLOW_PRIVATE_ENDPOINTS"); err != nil {
		return c, err
	}
	if c.TapbackConfirms, err = boolean(k, "tapback_confirms", "COUNTERSIGN_TAPBACK_CONFIRMS"); err != nil {
		return c, err
	}
	switch c.Said = k.String("said"); c.Said {
	case saidBuiltIn, saidOpenAI, saidOff:
	default:
		return c, usage("COUNTERSIGN_SAID must be builtin, openai or off.")
	}
	if c.TimeZone, err = time.LoadLocation(k.String("time_zone")); err != nil {
		return c, usage("COUNTERSIGN_TIME_ZONE must be the name of a time zone, such as Europe/Berlin.")
	}
	if c.HourlyTexts, err = strconv.Atoi(k.String("hourly_texts")); err != nil || c.HourlyTexts < 1 {
		return c, usage("COUNTERSIGN_HOURLY_TEXTS must be a whole number of at least 1, such as 20.")
	}
	if c.IdleDays, err = strconv.Atoi(k.String("idle_days")); err != nil || c.IdleDays < 0 || c.IdleDays > maxIdleDays {
		return c, usage("COUNTERSIGN_IDLE_DAYS must be a whole number of days, such as 90; 0 is never.")
	}
	if c.MinRead, err = time.ParseDuration(k.String("min_read")); err != nil || c.MinRead <= 0 {
		return c, usage("COUNTERSIGN_MIN_READ must be a duration above zero, such as 1s.")
	}
	for _, r := range []struct {
		key, env string
		into     *limit.Rate
	}{
		{"rate_key", "COUNTERSIGN_RATE_KEY", &c.RateKey}, {"rate_account", "COUNTERSIGN_RATE_ACCOUNT", &c.RateAccount},
		{"rate_sender", "COUNTERSIGN_RATE_SENDER", &c.RateSender},
	} {
		if *r.into, err = limit.Parse(k.String(r.key)); err != nil {
			return c, usage("%s cannot be read: %v.", r.env, err)
		}
	}
	c.OpenAI = map[string]string{}
	for _, s := range settings() {
		if v := k.String(s.key); v != "" && strings.HasPrefix(s.env, "OPENAI_") {
			c.OpenAI[s.env] = v
		}
	}
	switch c.Reader {
	case readerLocal, readerOpenAI, readerCascade, readerAgree:
	default:
		return c, usage("COUNTERSIGN_READER must be local, openai, cascade or agree.")
	}
	return c, nil
}

// boolean reads a setting that is on or off.
func boolean(k *koanf.Koanf, key, env string) (bool, error) {
	switch v := k.String(key); v {
	case "1", "true":
		return true, nil
	case "", "0", "false":
		return false, nil
	default:
		return false, usage("%s must be 1 or 0, not %q.", env, v)
	}
}

// checkServe refuses what must not be served.
func (c config) checkServe() error {
	t := c.Twilio
	some := t.AccountSID != "" || t.AuthToken != "" || t.From != ""
	all := t.AccountSID != "" && t.AuthToken != "" && t.From != ""
	switch {
	case sameAddr(c.Addr, c.ConsoleAddr):
		return usage("COUNTERSIGN_ADDR and COUNTERSIGN_CONSOLE_ADDR are the same: agents and the provider must not reach what the second serves. Set another, or off.")
	case some && !all:
		return usage("Twilio needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_FROM together; set what is missing, or none of them.")
	case all && c.Sim:
		return usage("The simulated phone and Twilio do not go together: anybody on this machine could say yes. Unset COUNTERSIGN_SIM or the TWILIO_ variables.")
	case !all && !c.Sim:
		return usage("There is no way to text anybody: set the TWILIO_ variables, or COUNTERSIGN_SIM=1 for the simulated phone.")
	}
	if all {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
			return usage("COUNTERSIGN_PUBLIC_URL must be the https:// address at which Twilio reaches this server: signatures are checked against it.")
		}
		if len(t.Numbers) == 0 {
			return usage("TWILIO_FROM is a messaging service: name its numbers in TWILIO_NUMBERS, separated by commas.")
		}
	}
	return nil
}

// loadPolicy reads the policy file, or takes the embedded sample.
func (c config) loadPolicy() (*gate.Policy, error) {
	if c.Policy == "" {
		return gate.Sample()
	}
	raw, err := os.ReadFile(c.Policy)
	if err != nil {
		return nil, usage("COUNTERSIGN_POLICY cannot be read: %v", errors.Unwrap(err))
	}
	p, err := gate.ParsePolicy(c.Policy, raw)
	if err != nil {
		return nil, usage("The policy does not hold: %v", err)
	}
	return p, nil
}

// ourNumber picks the number of ours on an address's channel.
func (c config) ourNumber(addr people.Address) (people.Address, error) {
	if addr.Channel() == "sim" {
		return webhook.SimNumber, nil
	}
	for _, n := range c.Twilio.Numbers {
		if !strings.Contains(n, ":") {
			n = "sms:" + n
		}
		if a, err := people.ParseAddress(n); err == nil && a.Channel() == addr.Channel() {
			return a, nil
		}
	}
	return "", usage("No number of ours is known on that channel: set TWILIO_FROM or TWILIO_NUMBERS, or name it with --our-number.")
}

// redacted renders the configuration without its secrets.
func redacted(k *koanf.Koanf) string {
	var b strings.Builder
	for _, s := range settings() {
		v := k.String(s.key)
		if s.secret && v != "" {
			v = hide(v)
		}
		fmt.Fprintf(&b, "%s: %q\n", s.key, v)
	}
	return b.String()
}

// hide keeps what is no secret of a URL, and nothing of anything else.
func hide(v string) string {
	if strings.HasPrefix(v, "sqlite:") {
		return v
	}
	if u, err := url.Parse(v); err == nil && u.Host != "" {
		return u.Scheme + "://[redacted]@" + u.Host + u.Path
	}
	return "[redacted]"
}
