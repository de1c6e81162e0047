package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// bot runs the program with this environment and no other, and these lines on standard input.
func bot(t *testing.T, environ []string, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, environ, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// commands lists every command that does something, as words.
func commands(t *testing.T) [][]string {
	t.Helper()
	var c cli
	parser, err := kong.New(&c, kong.Name("bot"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, leaf := range parser.Model.Leaves(true) {
		var words []string
		for n := leaf; n != nil && n.Type != kong.ApplicationNode; n = n.Parent {
			words = append(words, n.Name)
		}
		slices.Reverse(words)
		all = append(all, words)
	}
	if len(all) < 12 {
		t.Fatalf("only %d commands: %v", len(all), all)
	}
	return all
}

func TestEveryCommandHasHelpExampleAndJSON(t *testing.T) {
	for _, words := range commands(t) {
		name := strings.Join(words, " ")
		if name == "version" {
			continue // one line about the program
		}
		t.Run(name, func(t *testing.T) {
			code, out, errs := bot(t, nil, "", append(slices.Clone(words), "--help")...)
			if code != exitOK || errs != "" || !strings.Contains(out, "Usage: bot "+name) {
				t.Fatalf("%d %s %s", code, out, errs)
			}
			if !regexp.MustCompile(`Example:\s+(\S.*)?bot ` + words[0]).MatchString(strings.ReplaceAll(out, "\n", " ")) {
				t.Errorf("no example:\n%s", out)
			}
			// What serve says is its log, which is JSON already.
			if name != "serve" && !strings.Contains(out, "--json") {
				t.Errorf("no --json:\n%s", out)
			}
			if code, out, errs := bot(t, nil, "", append(slices.Clone(words), "--no-such-flag")...); code != exitUsage || out != "" || !strings.Contains(errs, "--help") {
				t.Errorf("a wrong flag: %d %q %q", code, out, errs)
			}
		})
	}
	for _, args := range [][]string{nil, {"--help"}} {
		if code, out, _ := bot(t, nil, "", args...); code != exitOK || !strings.Contains(out, "Usage: bot") {
			t.Errorf("bot %v: %d %s", args, code, out)
		}
	}
	if code, _, errs := bot(t, nil, "", "no-such-command"); code != exitUsage || errs == "" {
		t.Errorf("an unknown command: %d %s", code, errs)
	}
}

// environ names an empty database of the test's own.
func environ(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"COUNTERSIGN_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "test.db")}, more...)
}

func TestExitCodes(t *testing.T) {
	db := environ(t, "TWILIO_FROM=+12025550100")
	var key, person struct{ ID, Key string }
	for _, c := range []struct {
		name  string
		args  []string
		stdin string
		code  int
		out   string // in standard output
		errs  string // in standard error
		into  any
	}{
		{name: "migrate", args: []string{"migrate", "up", "--json"}, out: `"applied"`},
		{name: "nothing is missing", args: []string{"migrate", "status", "--json"}, out: `{"missing":0}`},
		{name: "no keys yet", args: []string{"keys", "list", "--json"}, out: `{"keys":[]}`},
		{name: "a key", args: []string{"keys", "create", "--name", "mailbot", "--scope", "agent", "--json"}, out: `"key":"csk_`, into: &key},
		{name: "a key without a name", args: []string{"keys", "create", "--scope", "agent"}, code: exitUsage, errs: "--name"},
		{name: "no such scope", args: []string{"keys", "create", "--name", "x", "--scope", "root"}, code: exitUsage, errs: "scope"},
		{name: "no such account", args: []string{"keys", "create", "--name", "x", "--scope", "agent", "--account", "nobody"}, code: exitUsage, errs: "account"},
		{name: "keys as a table", args: []string{"keys", "list"}, out: "mailbot"},
		{name: "a person", args: []string{"people", "add", "--name", "Alex", "--address", "sms:+12025550102", "--as", "owner", "--json"}, out: `"id"`, into: &person},
		{name: "the same address again", args: []string{"people", "add", "--name", "Kim", "--address", "sms:+12025550102", "--as", "owner"}, code: exitNo, errs: "bound already"},
		{name: "another spelling", args: []string{"people", "add", "--name", "Kim", "--address", "sms:12025550103", "--as", "owner"}, code: exitUsage, errs: "address"},
		{name: "no such tier", args: []string{"people", "add", "--name", "Kim", "--address", "sms:+12025550103", "--as", "admin"}, code: exitUsage, errs: "--as"},
		{name: "a name of nothing", args: []string{"people", "add", "--name", "\u200b[]", "--address", "sms:+12025550103", "--as", "owner"}, code: exitUsage, errs: "--name"},
		{name: "no number of ours there", args: []string{"people", "add", "--name", "Kim", "--address", "whatsapp:+12025550103", "--as", "owner"}, code: exitUsage, errs: "--our-number"},
		{name: "two channels", args: []string{"people", "add", "--name", "Kim", "--address", "whatsapp:+12025550103", "--as", "owner", "--our-number", "sms:+12025550100"}, code: exitUsage, errs: "one channel"},
		{name: "people", args: []string{"people", "list", "--json"}, out: `"sms:+12025550102"`},
		{name: "people as a table", args: []string{"people", "list"}, out: "Alex"},
		{name: "no offers yet", args: []string{"offers", "list", "--json"}, out: `{"offers":[]}`},
		{name: "offers as a table", args: []string{"offers", "list"}, out: "ID"},
		{name: "a reply", args: []string{"classify", "wait no", "--offer", "send email to Dana", "--json"}, out: `"label":"decline"`},
		{name: "replies in order", args: []string{"classify", "--jsonl"}, stdin: "{\"text\":\"ya send it\",\"offers\":[\"send email to Dana\"]}\n\n{\"text\":\"wait no\",\"offers\":[\"send email to Dana\"]}\n", out: `"acts":true`},
		{name: "no reply", args: []string{"classify"}, code: exitUsage, errs: "--jsonl"},
		{name: "no data line", args: []string{"classify", "--jsonl"}, stdin: "yes\n", code: exitUsage, errs: "Line 1"},
		{name: "a label without a letter", args: []string{"classify", "yes", "--offer", "42"}, code: exitUsage, errs: "label"},
		{name: "version", args: []string{"version"}, out: version},
		{name: "a database that is none", args: []string{"keys", "list", "--database-url", "mysql://x"}, code: exitUsage, errs: "sqlite:"},
		{name: "a database for a demo without a script", args: []string{"demo", "--database-url", "sqlite:x.db"}, code: exitUsage, errs: "--script"},
	} {
		code, out, errs := bot(t, db, c.stdin, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) || (code == exitOK) != (errs == "") {
			t.Errorf("%s: bot %s: code %d, wanted %d\n%s%s", c.name, strings.Join(c.args, " "), code, c.code, out, errs)
		}
		if c.into != nil {
			if err := json.Unmarshal([]byte(out), c.into); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	if code, out, _ := bot(t, db, "", "keys", "list"); code != exitOK || strings.Contains(out, key.Key) {
		t.Error("a secret is listed")
	}
	if code, out, _ := bot(t, db, "", "keys", "revoke", key.ID, "--json"); code != exitOK || !strings.Contains(out, "revoked") {
		t.Errorf("revoke: %d %s", code, out)
	}
	if code, out, _ := bot(t, db, "", "keys", "list"); code != exitOK || !strings.Contains(out, "revoked") {
		t.Errorf("the revoked key: %d %s", code, out)
	}
	if code, _, errs := bot(t, db, "", "keys", "revoke", person.ID); code != exitNo || !strings.Contains(errs, "not found") {
		t.Errorf("a key that is none: %d %s", code, errs)
	}
}

// printed is what serve would run with.
func printed(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	code, out, errs := bot(t, environ, "", append([]string{"serve", "--print-config"}, args...)...)
	if code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	return out
}

func TestConfigPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bot.yaml")
	if err := os.WriteFile(file, []byte("min_read: 3s\naddr: 127.0.0.1:3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "addr")
	if err := os.WriteFile(secret, []byte("127.0.0.1:5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		want    []string
	}{
		{"defaults", nil, nil, []string{`min_read: "1s"`, `addr: "127.0.0.1:8080"`, `database_url: "sqlite:countersign.db"`, `reader: "local"`}},
		{"file over defaults", nil, []string{"--config", file}, []string{`min_read: "3s"`, `addr: "127.0.0.1:3"`, `reader: "local"`}},
		{"environment over file", []string{"COUNTERSIGN_MIN_READ=4s"}, []string{"--config", file}, []string{`min_read: "4s"`, `addr: "127.0.0.1:3"`}},
		{"flag over environment", []string{"COUNTERSIGN_MIN_READ=4s"}, []string{"--config", file, "--min-read", "6s"}, []string{`min_read: "6s"`, `addr: "127.0.0.1:3"`}},
		{"a file for a value", []string{"COUNTERSIGN_ADDR_FILE=" + secret}, []string{"--config", file}, []string{`addr: "127.0.0.1:5"`}},
		{"the simulated phone", nil, []string{"--sim"}, []string{`sim: "1"`}},
	} {
		out := printed(t, c.environ, c.args...)
		for _, w := range c.want {
			if !strings.Contains(out, w+"\n") {
				t.Errorf("%s: no %s in\n%s", c.name, w, out)
			}
		}
	}
}

func TestPrintConfigHidesSecrets(t *testing.T) {
	const token, password = "0123456789abcdef0123456789abcdef", "hunter2hunter2"
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, environ := range [][]string{
		{"TWILIO_AUTH_TOKEN=" + token, "COUNTERSIGN_DATABASE_URL=postgres://bot:" + password + "@db.example.test/countersign?sslpassword=" + password},
		{"TWILIO_AUTH_TOKEN_FILE=" + file, "COUNTERSIGN_DATABASE_URL=postgresql://db.example.test/countersign?user=bot&password=" + password},
		{"TWILIO_AUTH_TOKEN=" + token, "COUNTERSIGN_DATABASE_URL=host=db.example.test password=" + password},
	} {
		out := printed(t, environ)
		if strings.Contains(out, token) || strings.Contains(out, password) {
			t.Errorf("a secret is printed:\n%s", out)
		}
		if !strings.Contains(out, `twilio_auth_token: "[redacted]"`) || !strings.Contains(out, "[redacted]") {
			t.Errorf("it does not say that they are there:\n%s", out)
		}
	}
}

func TestMisconfigurationsAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	twilio := func(more ...string) []string {
		return append([]string{"TWILIO_ACCOUNT_SID=AC00000000000000000000000000000000", "TWILIO_AUTH_TOKEN=0123456789abcdef0123456789abcdef",
			"TWILIO_FROM=+12025550100", "COUNTERSIGN_PUBLIC_URL=https://approve.example.test"}, more...)
	}
	sim := []string{"COUNTERSIGN_SIM=1"}
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		want    string
	}{
		{"no way to text anybody", nil, nil, "COUNTERSIGN_SIM=1"},
		{"half of Twilio", []string{"TWILIO_FROM=+12025550100"}, nil, "TWILIO_AUTH_TOKEN"},
		{"Twilio and the simulated phone", twilio("COUNTERSIGN_SIM=1"), nil, "do not go together"},
		{"Twilio without a public URL", twilio("COUNTERSIGN_PUBLIC_URL="), nil, "COUNTERSIGN_PUBLIC_URL"},
		{"a public URL in the clear", twilio("COUNTERSIGN_PUBLIC_URL=http://approve.example.test"), nil, "https://"},
		{"a public URL with a query", twilio("COUNTERSIGN_PUBLIC_URL=https://approve.example.test/?a=b"), nil, "https://"},
		{"a messaging service without numbers", twilio("TWILIO_FROM=MG00000000000000000000000000000000"), nil, "TWILIO_NUMBERS"},
		{"an account that is none", twilio("TWILIO_ACCOUNT_SID=AC1"), nil, "account SID"},
		{"an API that is no URL", twilio("TWILIO_API_URL=approve.example.test"), nil, "base URL"},
		{"a sim that is neither", []string{"COUNTERSIGN_SIM=yes"}, nil, "1 or 0"},
		{"no time to read", sim, []string{"--min-read", "0s"}, "above zero"},
		{"a time that is none", sim, []string{"--min-read", "soon"}, "duration"},
		{"another reader", sim, []string{"--reader", "oracle"}, "local"},
		{"no such database", []string{"COUNTERSIGN_SIM=1", "COUNTERSIGN_DATABASE_URL=mysql://x"}, nil, "sqlite:"},
		{"no such policy", sim, []string{"--policy", filepath.Join(dir, "none.yaml")}, "COUNTERSIGN_POLICY"},
		{"a policy with a mistake", sim, []string{"--policy", write("policy.yaml", "version: 1\ntools:\n  a.b:\n    effect: fly\n")}, "policy.yaml"},
		{"no such calibration", sim, []string{"--calibration", filepath.Join(dir, "none.json")}, "COUNTERSIGN_CALIBRATION"},
		{"an address that is none", sim, []string{"--addr", "nowhere"}, "COUNTERSIGN_ADDR"},
		{"no such config", sim, []string{"--config", filepath.Join(dir, "none.yaml")}, "cannot be read"},
		{"a setting that does not exist", sim, []string{"--config", write("bot.yaml", "min_raed: 1s\n")}, "min_raed"},
		{"a value twice", []string{"COUNTERSIGN_SIM=1", "COUNTERSIGN_ADDR=127.0.0.1:1", "COUNTERSIGN_ADDR_FILE=" + write("addr", "x")}, nil, "COUNTERSIGN_ADDR_FILE"},
		{"no such file for a value", []string{"COUNTERSIGN_SIM=1", "COUNTERSIGN_ADDR_FILE=" + filepath.Join(dir, "none")}, nil, "COUNTERSIGN_ADDR_FILE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
			environ := c.environ
			if !slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "COUNTERSIGN_DATABASE_URL=") }) {
				environ = append(slices.Clone(environ), "COUNTERSIGN_DATABASE_URL="+db)
			}
			code, out, errs := bot(t, environ, "", append([]string{"serve"}, c.args...)...)
			if code != exitUsage || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("code %d\n%s%s", code, out, errs)
			}
			if strings.Contains(errs, "0123456789abcdef0123456789abcdef") {
				t.Error("the token is printed")
			}
		})
	}
}
