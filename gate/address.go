package gate

import (
	"regexp"
	"strings"
)

// Recipient is one entry of a call's recipients, as given and as compared.
type Recipient struct {
	// Given is the text of the argument; "" where it was no text at all.
	Given string
	// Address is the form that is compared; "" where Given is not exactly one
	// plain address.
	Address string
}

// Plain says whether the recipient is exactly one plain address.
func (r Recipient) Plain() bool { return r.Address != "" }

// The forms of a plain address. All are ASCII: a letter of another script that
// looks like a Latin one, an invisible character, a display name, a list, a
// source route (user%host@relay) fit none of them.
var (
	emailForm   = regexp.MustCompile(`^[A-Za-z0-9_'+=-]+(\.[A-Za-z0-9_'+=-]+)*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}$`)
	phoneForm   = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
	channelForm = regexp.MustCompile(`^(sms|whatsapp):(\+[1-9][0-9]{6,14})$`)
	simForm     = regexp.MustCompile(`^sim:[A-Za-z0-9][A-Za-z0-9_-]*$`)
	handleForm  = regexp.MustCompile(`^[@#][A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// maxAddressLen is the longest address that SMTP can carry, in bytes.
const maxAddressLen = 254

// CanonicalAddress gives the form in which addresses are compared: lower case,
// a bare phone number as sms:. It is "" for whatever is not exactly one plain
// address: nothing, two of them, a display name, an internationalised domain
// (also in its xn-- form), invisible characters.
func CanonicalAddress(s string) string {
	if len(s) > maxAddressLen { // mutant: gate-address-length
		return ""
	}
	lower := strings.ToLower(s)
	switch {
	case phoneForm.MatchString(s):
		return "sms:" + s
	case channelForm.MatchString(s), simForm.MatchString(s), handleForm.MatchString(s):
		return lower
	case emailForm.MatchString(s):
		_, domain, _ := strings.Cut(lower, "@")
		for _, label := range strings.Split(domain, ".") {
			if strings.HasPrefix(label, "xn--") { // mutant: gate-address-idn
				return ""
			}
		}
		return lower
	}
	return ""
}
