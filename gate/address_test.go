package gate

import (
	"strings"
	"testing"
)

// TestCanonicalAddress: what is exactly one plain address, and the form in
// which it is compared. Everything else is "", and so reaches nobody unasked.
func TestCanonicalAddress(t *testing.T) {
	for given, want := range map[string]string{
		"dana@example.net":           "dana@example.net",
		"Dana.Lee+x@Example.NET":     "dana.lee+x@example.net",
		"o'neil_1=2@a-b.example.net": "o'neil_1=2@a-b.example.net",
		"+12025550102":               "sms:+12025550102",
		"sms:+12025550102":           "sms:+12025550102",
		"whatsapp:+12025550102":      "whatsapp:+12025550102",
		"sim:alex":                   "sim:alex",
		"@Dana":                      "@dana",
		"#general":                   "#general",

		"":                                 "",
		" ":                                "",
		"dana":                             "",
		"dana@":                            "",
		"@example@net":                     "",
		"dana@localhost":                   "",
		"dana@example.net.":                "",
		"dana@.example.net":                "",
		"dana@-example.net":                "",
		".dana@example.net":                "",
		"da..na@example.net":               "",
		"dana@[192.0.2.1]":                 "",
		"dana@192.0.2.1":                   "",
		"dana@example.net\n":               "",
		"dana@example.net,lee@example.net": "",
		"dana@example.net lee@example.net": "",
		"Dana <dana@example.net>":          "",
		"mailto:dana@example.net":          "",
		"dana@xn--exmple-4uf.com":          "",
		"dana@mail.XN--exmple-4uf.com":     "",
		"d\u0430na@example.net":            "",
		"dana@ex\u0430mple.net":            "",
		"dana\u200b@example.net":           "",
		"\ufeffdana@example.net":           "",
		"dana@example.net\u202e":           "",
		"\u212Aim@example.net":             "", // the Kelvin sign lowers to k
		"lee%example.net@example.com":      "",
		"example.net!lee@example.com":      "",
		"12025550102":                      "",
		"+1 202 555 0102":                  "",
		"+1202555010\u0662":                "",
		"+0202555010":                      "",
		"+1202555010212345678":             "",
		"+12025550102;ext=5":               "",
		"fax:+12025550102":                 "",
		"sms:12025550102":                  "",
		"SMS:+12025550102":                 "",
		"sim:":                             "",
		"sim:alex,sim:dana":                "",
		"@":                                "",
		"@dana @lee":                       "",
		"dana@" + strings.Repeat("a", 250) + ".net": "",
	} {
		if got := CanonicalAddress(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
		if again := CanonicalAddress(want); again != want {
			t.Errorf("%q is compared as %q", want, again)
		}
	}
}
