package said

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
)

// Call is what matching needs to know of an operation. The zero value is
// matched by nothing.
type Call struct {
	Tool       string
	ArgsSHA256 string // lower-case hex
	Kind       Kind
	Channel    Channel
	Recipients []string // canonical addresses; "" for one that is not exactly one plain address
	Amount     string   // plain decimal; empty where the call pays nothing
	Currency   string
}

// CallOf reads an operation by the policy's mapping. False for whatever no typed
// request can cover: a tool that is not known or not mapped, one that deletes or
// sets up something lasting (its arguments say what will be done in words that
// nothing here can compare), a bundle, and any kind but a tool call.
func CallOf(op gate.Operation, policy *gate.Policy) (Call, bool) {
	tool, ok := policy.Tool(op.Tool)
	if !ok || tool.Said == nil || op.Kind != gate.KindToolCall { // mutant: said.call-mapped
		return Call{}, false
	}
	if tool.Effect == gate.EffectDelete || tool.Effect == gate.EffectSchedule { // mutant: said.call-lasting
		return Call{}, false
	}
	c := Call{Tool: op.Tool, ArgsSHA256: op.ArgsSHA256(), Kind: Kind(tool.Said.Kind), Channel: Channel(tool.Said.Channel)}
	if !c.Kind.known() || !c.Channel.known() {
		return Call{}, false
	}
	for _, r := range policy.Recipients(op) {
		c.Recipients = append(c.Recipients, r.Address)
	}
	if amount, ok := policy.Amount(op); ok {
		c.Amount, c.Currency = amount.Value, amount.Currency
	} else if tool.Amount != nil || c.Kind == KindPay { // mutant: said.call-amount
		return Call{}, false
	}
	return c, true
}

// Match is the grant that covers the call at that time, the narrowest if several
// do; nil if none does. It looks at nothing but its arguments and says nil on
// every doubt. Whoever spends the grant does so by a conditional update: what is
// matched here may have been used up since it was read.
func Match(granted []Granted, call Call, now time.Time) *Granted {
	var best *Granted
	for i := range granted {
		if g := &granted[i]; covers(g, call, now) && (best == nil || narrower(g, best) < 0) {
			best = g
		}
	}
	return best
}

func covers(g *Granted, call Call, now time.Time) bool {
	if g.Revoked || g.ID == "" || g.PersonID == "" { // mutant: said.revoked
		return false
	}
	if !g.Kind.known() || g.Kind != call.Kind { // mutant: said.kind
		return false
	}
	return channelCovers(g.Intent, call.Channel) && inTime(g, now) && inBudget(g) &&
		recipientsCovered(g, call.Recipients) && !servedAgain(g, call) && amountCovered(g.Intent, call)
}

// ServedBy is Served once the call has been covered. A standing permission, and
// one for a number of calls, keeps no account of whom it reached.
func (g *Granted) ServedBy(call Call) []string {
	if g.Standing || g.Count > 0 || len(g.Recipients) != len(g.To) {
		return nil
	}
	served := slices.Clone(g.Served)
	for i, r := range g.Recipients {
		if !slices.Contains(served, g.To[i]) && reaches(r, call.Recipients) {
			served = append(served, g.To[i])
		}
	}
	return served
}

func servedAgain(g *Granted, call Call) bool {
	if g.Standing || g.Count > 0 {
		return false
	}
	for i, r := range g.Recipients {
		if slices.Contains(g.Served, g.To[i]) && reaches(r, call.Recipients) { // mutant: said.served
			return true
		}
	}
	return false
}

func reaches(r Recipient, recipients []string) bool {
	return slices.ContainsFunc(recipients, func(a string) bool { return slices.Contains(r.Addresses, a) })
}

// channelCovers: a channel that was named is the only one. To send or to pay
// means the same by any means; what an act or a change is hangs on its channel, so
// that a share covers no invitation.
func channelCovers(in Intent, channel Channel) bool {
	if in.Channel != ChannelNone || in.Kind == KindActOut || in.Kind == KindChange { // mutant: said.channel
		return in.Channel == channel
	}
	return true
}

func inTime(g *Granted, now time.Time) bool {
	if g.GivenAt.IsZero() || now.Before(g.GivenAt.Add(-Early)) { // mutant: said.given
		return false
	}
	if !g.At.IsZero() && now.Before(g.At.Add(-Early)) { // mutant: said.not-before
		return false
	}
	for _, end := range [...]time.Time{g.EndsAt, g.Ends(g.GivenAt)} { // mutant: said.ends
		if !end.IsZero() && !now.Before(end) {
			return false
		}
	}
	return true
}

// inBudget: a one-off without a bound is a row that nobody should have stored.
func inBudget(g *Granted) bool {
	if g.MaxCalls == 0 {
		return g.Standing && g.Count == 0 && g.Used >= 0 // mutant: said.unbounded
	}
	return g.Used >= 0 && g.Used < g.MaxCalls // mutant: said.budget
}

// recipientsCovered: everyone whom the call reaches is one of the addresses that
// were pinned when the permission was given. Contacts that were edited since
// change nothing, and a call that reaches nobody is not what was asked for.
func recipientsCovered(g *Granted, recipients []string) bool {
	if len(recipients) == 0 || len(g.Recipients) == 0 || len(g.Recipients) != len(g.To) { // mutant: said.no-recipients
		return false
	}
	pinned := make(map[string]bool)
	for _, r := range g.Recipients {
		if len(r.Addresses) == 0 {
			return false
		}
		for _, a := range r.Addresses {
			pinned[a] = true
		}
	}
	delete(pinned, "")
	for _, a := range recipients {
		if !pinned[a] { // mutant: said.recipient
			return false
		}
	}
	return true
}

func amountCovered(in Intent, call Call) bool {
	if call.Amount == "" && call.Currency == "" && in.Kind != KindPay {
		return true
	}
	if in.AmountMax == "" || in.Currency == "" || !strings.EqualFold(in.Currency, call.Currency) { // mutant: said.currency
		return false
	}
	most, ok := decimal(in.AmountMax)
	if !ok {
		return false
	}
	asked, ok := decimal(call.Amount)
	return ok && asked.Sign() > 0 && asked.Cmp(most) <= 0 // mutant: said.amount
}

// decimal reads a plain decimal; what is none, or too long to be an amount, is false.
func decimal(s string) (*big.Rat, bool) {
	if s == "" || len(s) > 24 || strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// narrower orders grants that cover the same call, the one to spend first: a
// one-off before a standing one, a named channel before none, fewer addresses,
// a smaller amount, an earlier end, then the older and the id.
func narrower(a, b *Granted) int {
	return cmp.Or(
		boolFirst(!a.Standing, !b.Standing),
		boolFirst(a.Channel != ChannelNone, b.Channel != ChannelNone),
		cmp.Compare(addressCount(a), addressCount(b)),
		compareAmount(a.AmountMax, b.AmountMax),
		compareEnd(a.EndsAt, b.EndsAt),
		a.GivenAt.Compare(b.GivenAt),
		strings.Compare(a.ID, b.ID),
	)
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func addressCount(g *Granted) int {
	var all []string
	for _, r := range g.Recipients {
		all = append(all, r.Addresses...)
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}

func compareAmount(a, b string) int {
	x, okA := decimal(a)
	y, okB := decimal(b)
	if !okA || !okB {
		return boolFirst(okA, okB)
	}
	return x.Cmp(y)
}

func compareEnd(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return boolFirst(!a.IsZero(), !b.IsZero())
	}
	return a.Compare(b)
}
