// Package deploy holds what the container files promise: no engine is needed
// to read them.
package deploy

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// knownEnv are the variables that `bot serve` reads.
var knownEnv = []string{
	"COUNTERSIGN_ADDR", "COUNTERSIGN_CONSOLE_ADDR", "COUNTERSIGN_DATABASE_URL", "COUNTERSIGN_REDIS_URL",
	"COUNTERSIGN_PUBLIC_URL", "COUNTERSIGN_POLICY", "COUNTERSIGN_READER", "COUNTERSIGN_CALIBRATION",
	"COUNTERSIGN_MIN_READ", "COUNTERSIGN_SIM", "COUNTERSIGN_RATE_KEY", "COUNTERSIGN_RATE_ACCOUNT", "COUNTERSIGN_RATE_SENDER",
	"TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_FROM", "TWILIO_NUMBERS", "TWILIO_API_URL",
	"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL",
}

// secretEnv are those that may carry a secret, and so come from a file.
var secretEnv = []string{"COUNTERSIGN_DATABASE_URL", "TWILIO_AUTH_TOKEN", "OPENAI_API_KEY"}

type compose struct {
	Services map[string]service
	Secrets  map[string]struct{ File string }
	Volumes  map[string]any
	Networks map[string]struct{ Internal bool }
}

type service struct {
	Image       string
	Build       string
	Command     []string
	Environment map[string]string
	Secrets     []string
	Ports       []string
	Networks    []string
	Volumes     []string
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct{ Test []string }
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComposeServices(t *testing.T) {
	c := readCompose(t)
	for name, image := range map[string]string{"bot": "countersign", "migrate": "countersign", "postgres": "postgres:", "redis": "redis:"} {
		if !strings.HasPrefix(c.Services[name].Image, image) {
			t.Errorf("service %s has image %q, want %s…", name, c.Services[name].Image, image)
		}
	}
	if len(c.Services) != 4 {
		t.Errorf("%d services, want 4", len(c.Services))
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(c.Services["postgres"].Image, "postgres:"), "-")
	if n, err := strconv.Atoi(major); err != nil || n < 15 {
		t.Errorf("PostgreSQL %s, want 15 or later by number", major)
	}
	if got := c.Services["migrate"].Command; !slices.Equal(got, []string{"migrate", "up"}) {
		t.Errorf("migrate runs %q", got)
	}
	if got := c.Services["bot"].Command; !slices.Equal(got, []string{"serve"}) {
		t.Errorf("bot runs %q", got)
	}
}

func TestComposeStartsInOrder(t *testing.T) {
	c := readCompose(t)
	for _, d := range []struct{ who, waits, condition string }{
		{"bot", "migrate", "service_completed_successfully"},
		{"bot", "redis", "service_healthy"},
		{"migrate", "postgres", "service_healthy"},
	} {
		if got := c.Services[d.who].DependsOn[d.waits].Condition; got != d.condition {
			t.Errorf("%s waits for %s to be %q, want %q", d.who, d.waits, got, d.condition)
		}
		if d.condition == "service_healthy" && len(c.Services[d.waits].Healthcheck.Test) == 0 {
			t.Errorf("%s has no health check to wait for", d.waits)
		}
	}
}

func TestComposeEnvironmentIsKnownAndWithoutSecrets(t *testing.T) {
	c := readCompose(t)
	for _, name := range []string{"bot", "migrate"} {
		s := c.Services[name]
		if len(s.Environment) == 0 {
			t.Errorf("%s has no environment", name)
		}
		for key, value := range s.Environment {
			plain, isFile := strings.CutSuffix(key, "_FILE")
			if !slices.Contains(knownEnv, plain) {
				t.Errorf("%s: %s is no variable of bot", name, key)
			}
			if slices.Contains(secretEnv, plain) != isFile {
				t.Errorf("%s: %s: a secret comes from a file, and nothing else does", name, key)
			}
			if isFile && !slices.Contains(s.Secrets, strings.TrimPrefix(value, "/run/secrets/")) {
				t.Errorf("%s: %s reads %s, which it is not given", name, key, value)
			}
		}
	}
	// Redis is in a network of its own and has no password; one in the URL would be a secret in the open.
	if u, err := url.Parse(c.Services["bot"].Environment["COUNTERSIGN_REDIS_URL"]); err != nil || u.Hostname() != "redis" || u.User != nil {
		t.Errorf("bot finds Redis at %q", c.Services["bot"].Environment["COUNTERSIGN_REDIS_URL"])
	}
	public, internal := c.Services["bot"].Environment["COUNTERSIGN_ADDR"], c.Services["bot"].Environment["COUNTERSIGN_CONSOLE_ADDR"]
	if public != "0.0.0.0:8080" || internal != "0.0.0.0:8081" {
		t.Errorf("bot listens at %q and %q", public, internal)
	}
	for key := range c.Services["postgres"].Environment {
		if key == "POSTGRES_PASSWORD" || key == "POSTGRES_HOST_AUTH_METHOD" {
			t.Errorf("postgres: %s", key)
		}
	}
	ignored := strings.Fields(read(t, ".gitignore"))
	for name, s := range c.Secrets {
		if !strings.HasPrefix(s.File, "./secrets/") {
			t.Errorf("secret %s is in %s", name, s.File)
		}
	}
	for _, f := range []string{"/secrets/", "/.env"} {
		if !slices.Contains(ignored, f) {
			t.Errorf("%s is not ignored by git", f)
		}
	}
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File == "" {
				t.Errorf("%s: secret %s is nowhere", name, secret)
			}
		}
	}
}

func TestComposeIsReachableFromThisMachineOnly(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s", name, p)
			}
		}
		for _, n := range s.Networks {
			if _, ok := c.Networks[n]; !ok {
				t.Errorf("%s is on network %s, which is nowhere", name, n)
			}
		}
		if name != "bot" && (len(s.Ports) > 0 || !slices.Equal(s.Networks, []string{"back"})) {
			t.Errorf("%s is on %v and publishes %v", name, s.Networks, s.Ports)
		}
	}
	if !c.Networks["back"].Internal {
		t.Error("the databases' network is not internal")
	}
	if got := c.Services["bot"].Ports; len(got) != 2 {
		t.Errorf("bot publishes %v", got)
	}
	for _, name := range []string{"bot", "migrate"} {
		if s := c.Services[name]; !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s: read_only %v, cap_drop %v", name, s.ReadOnly, s.CapDrop)
		}
	}
}

// instruction is one line of a Dockerfile, continued lines joined.
type instruction struct{ name, args string }

func readDockerfile(t *testing.T) []instruction {
	t.Helper()
	var list []instruction
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		list = append(list, instruction{name, strings.TrimSpace(args)})
	}
	return list
}

// last is the arguments of the last instruction with that name: the one that
// holds for the final stage.
func last(list []instruction, name string) string {
	for _, i := range slices.Backward(list) {
		if i.name == name {
			return i.args
		}
	}
	return ""
}

func TestDockerfileStages(t *testing.T) {
	list := readDockerfile(t)
	var from []string
	for _, i := range list {
		if i.name == "FROM" {
			from = append(from, i.args)
		}
	}
	if len(from) != 2 || !strings.HasSuffix(from[0], " AS build") || !strings.Contains(from[1], "distroless/static") {
		t.Fatalf("stages %q: want a build and a base without a shell", from)
	}
	m := regexp.MustCompile(`^golang:1\.(\d+)\.(\d+)-`).FindStringSubmatch(from[0])
	if m == nil {
		t.Fatalf("%q names no exact version of Go", from[0])
	}
	minor, err1 := strconv.Atoi(m[1])
	patch, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil || minor < 26 || (minor == 26 && patch < 10) {
		t.Errorf("Go 1.%d.%d has known faults in its standard library that 1.26.10 mends", minor, patch)
	}
	static := slices.ContainsFunc(list, func(i instruction) bool {
		return i.name == "RUN" && strings.Contains(i.args, "CGO_ENABLED=0 go build") && strings.HasSuffix(i.args, "./cmd/bot")
	})
	if !static {
		t.Error("the binary is not built without cgo")
	}
}

func TestDockerfileRunsAsNobody(t *testing.T) {
	list := readDockerfile(t)
	uid, _, _ := strings.Cut(last(list, "USER"), ":")
	if n, err := strconv.Atoi(uid); err != nil || n == 0 {
		// A number, so that an orchestrator can see that it is not root.
		t.Errorf("USER %q, want a number that is not root's", last(list, "USER"))
	}
	for name, want := range map[string][]string{"ENTRYPOINT": {"/bot"}, "CMD": {"serve"}} {
		var got []string
		if err := json.Unmarshal([]byte(last(list, name)), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s %s, want %q without a shell", name, last(list, name), want)
		}
	}
	if got := last(list, "EXPOSE"); got != "8080 8081" {
		t.Errorf("EXPOSE %s", got)
	}
}

func TestImageHoldsNoSecrets(t *testing.T) {
	for _, i := range readDockerfile(t) {
		if i.name == "ARG" || i.name == "ENV" || i.name == "ADD" {
			t.Errorf("%s %s: what is set while building stays readable in the image", i.name, i.args)
		}
	}
	ignored := strings.Fields(read(t, ".dockerignore"))
	for _, f := range []string{".git", "secrets", ".env", "*.db"} {
		if !slices.Contains(ignored, f) {
			t.Errorf("%s reaches the build", f)
		}
	}
}
