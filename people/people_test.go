package people_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign/countersign/people"
)

func TestParseAddressTakesTheExactFormAlone(t *testing.T) {
	for _, s := range []string{"sms:+12025550102", "whatsapp:+12025550102", "sim:alex", "sim:a.b-c_9"} {
		if a, err := people.ParseAddress(s); err != nil || string(a) != s {
			t.Errorf("%q: %q, %v", s, a, err)
		}
	}
	for _, s := range []string{
		"", "+12025550102", "12025550102", "sms:12025550102", "sms:+1 (202) 555-0102", "sms:+1202555０102", "sms:+02025550102", "sms:+120",
		"sms:+1234567890123456", "SMS:+12025550102", "sms: +12025550102", "sms:+12025550102 ", "mail:a@b.c", "sim:", "sim:Alex", "sim:a b", "sim:" + strings.Repeat("a", 65),
	} {
		if a, err := people.ParseAddress(s); !errors.Is(err, people.ErrBadAddress) {
			t.Errorf("%q was taken for %q", s, a)
		}
	}
}

func TestAddressStaysOutOfLogs(t *testing.T) {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("sent", "to", people.Address("sms:+12025550102"))
	if strings.Contains(b.String(), "5550102") || !strings.Contains(b.String(), "sms:[redacted]") {
		t.Fatal(b.String())
	}
}

func TestCleanName(t *testing.T) {
	for in, want := range map[string]string{
		"Dana":                        "Dana",
		" Dana \n\t Lee ":             "Dana Lee",
		"[owner] Dana":                "owner Dana",
		"Da\u200bna\u202e":            "Dana",
		"Ow\u2066ner\u2069":           "Owner",
		"\u0000\u0007":                "",
		"Da\u115fna\u2800\ufe0f":      "Dana", // a filler, a blank pattern, a selector
		"Zoë Ångström":                "Zoë Ångström",
		strings.Repeat("é", 70) + "x": strings.Repeat("é", 60),
	} {
		if got := people.CleanName(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestScopesAndSecrets(t *testing.T) {
	for _, s := range []string{"agent", "connector", "executor", "owner"} {
		if sc, err := people.ParseScope(s); err != nil || string(sc) != s {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", "Agent", "admin", "agent "} {
		if _, err := people.ParseScope(s); !errors.Is(err, people.ErrBadScope) {
			t.Errorf("%q was taken", s)
		}
	}
	a, hash := people.NewSecret()
	b, _ := people.NewSecret()
	if a == b || !strings.HasPrefix(a, "csk_") || len(a) < 40 || people.HashSecret(a) != hash {
		t.Fatal("secrets must be long, new each time and found by their hash")
	}
}
