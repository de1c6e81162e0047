package said

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/gate"
)

// Resolved is an intent with what its recipients stand for.
type Resolved struct {
	Intent     Intent
	Recipients []Recipient // nil unless every one was resolved
	// Unresolved are the recipients that no contact or more than one answers to,
	// or that have no address on the channel. One is enough for the whole intent
	// to match nothing.
	Unresolved []string
}

// Whole says whether there is somebody, and every one is known exactly.
func (r Resolved) Whole() bool {
	if len(r.Unresolved) > 0 || len(r.Recipients) == 0 || len(r.Recipients) != len(r.Intent.To) {
		return false
	}
	return !slices.ContainsFunc(r.Recipients, func(p Recipient) bool { return len(p.Addresses) == 0 })
}

// Resolve pins recipients to exact addresses. An address stands for itself. A
// name stands for the contact that has it as whole words of its name or of an
// alias, if exactly one has: no likeness, no guess which Sam. A reply without a
// named recipient stays unresolved, since a text reports no open message.
func Resolve(in Intent, contacts []Contact) Resolved {
	r := Resolved{Intent: in}
	var all []Recipient
	for _, said := range in.To {
		p, ok := resolveOne(said, in.Channel, contacts)
		if !ok {
			r.Unresolved = append(r.Unresolved, said)
			continue
		}
		all = append(all, p)
	}
	if len(r.Unresolved) == 0 {
		r.Recipients = all
	}
	return r
}

func resolveOne(said string, channel Channel, contacts []Contact) (Recipient, bool) {
	if a := sayableAddress(said); a != "" {
		if !onChannel(a, channel) { // mutant: said.address-channel
			return Recipient{}, false
		}
		return Recipient{Said: said, Addresses: []string{a}}, true
	}
	name := nameWords(said)
	if len(name) == 0 {
		return Recipient{}, false
	}
	var found []Contact
	for _, c := range contacts {
		if answersTo(c, name) {
			found = append(found, c)
		}
	}
	if len(found) != 1 { // mutant: said.one-contact
		return Recipient{}, false
	}
	p := Recipient{Said: said, ContactID: found[0].ID}
	for _, raw := range found[0].Addresses {
		if a := gate.CanonicalAddress(raw); a != "" && onChannel(a, channel) && !slices.Contains(p.Addresses, a) {
			p.Addresses = append(p.Addresses, a)
		}
	}
	return p, len(p.Addresses) > 0
}

// answersTo says whether the words stand together in the contact's name or in
// one of its aliases.
func answersTo(c Contact, name []string) bool {
	for _, n := range append([]string{c.Name}, c.Aliases...) {
		if containsRun(nameWords(n), name) {
			return true
		}
	}
	return false
}

// nameWords are the folded words of a name without a leading article.
func nameWords(s string) []string {
	var all []string
	for _, t := range tokenise(s) {
		if t.isWord() {
			all = append(all, t.fold)
		}
	}
	if len(all) > 1 && isArticle(all[0]) {
		all = all[1:]
	}
	return all
}

func containsRun(all, run []string) bool {
	for i := 0; i+len(run) <= len(all); i++ {
		if slices.Equal(all[i:i+len(run)], run) {
			return true
		}
	}
	return false
}

// sayableAddress is the canonical form of an address as people type it: a phone
// number may have spaces, dashes and brackets after its plus. "" for anything
// else; a number without a country is no address, since the country would be a guess.
func sayableAddress(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "+") {
		s = strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "").Replace(s)
	}
	return gate.CanonicalAddress(s)
}

// onChannel says whether an address is one of the channel's. Invitations go by
// mail, and a channel without addresses of its own takes any.
func onChannel(address string, channel Channel) bool {
	handle := strings.HasPrefix(address, "@") || strings.HasPrefix(address, "#")
	phone := strings.HasPrefix(address, "sms:") || strings.HasPrefix(address, "whatsapp:") || strings.HasPrefix(address, "sim:")
	switch channel {
	case ChannelEmail:
		return !handle && !phone
	case ChannelSlack:
		return handle
	case ChannelSMS:
		return phone
	}
	return true
}
