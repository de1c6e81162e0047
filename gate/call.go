package gate

import (
	"encoding/json"
	"regexp"
)

// call is an operation whose arguments have been read.
type call struct {
	op   Operation
	tool *Tool // nil where the policy does not know the tool
	args map[string]any
}

// misfit says why the arguments do not fit the tool, without their values, or "".
func (c call) misfit() string {
	if c.op.Kind == KindOutboundMessage && isBuiltin(c.op.Kind, c.op.Tool) {
		if text, ok := c.args["text"].(string); !ok || text == "" || len(c.args) != 1 {
			return `a text takes {"text"} with some words in it and nothing else`
		}
		return ""
	}
	if c.tool == nil {
		return ""
	}
	if problem := c.tool.validate(c.args); problem != "" {
		return problem
	}
	if c.tool.Amount != nil {
		if _, ok := c.amount(); !ok { // mutant: gate-amount-plain
			return "the amount is not a plain decimal above zero with a currency"
		}
	}
	return ""
}

// recipients lists whom the call reaches, in the policy's order of paths.
func (c call) recipients() []Recipient {
	if c.tool == nil {
		return nil
	}
	var all []Recipient
	for _, path := range c.tool.Recipients {
		for _, v := range path.Values(c.args) {
			given, _ := v.(string)
			all = append(all, Recipient{Given: given, Address: CanonicalAddress(given)})
		}
	}
	return all
}

// onlyTo says whether the call reaches somebody, and every one of them is
// exactly one plain address of the list.
func (c call) onlyTo(list []string) bool {
	known := make(map[string]bool, len(list))
	for _, s := range list {
		known[CanonicalAddress(s)] = true
	}
	delete(known, "") // an entry that is no plain address opens nothing; mutant: gate-list-plain
	recipients := c.recipients()
	for _, r := range recipients {
		if !known[r.Address] {
			return false
		}
	}
	return len(recipients) > 0
}

// reachesOut says whether the call leaves the account: an invitation without
// guests is only an entry in the person's own calendar.
func (c call) reachesOut() bool {
	if c.tool.Effect == EffectInvite && c.op.Kind != KindBackgroundJob {
		return len(c.recipients()) > 0
	}
	return c.tool.Outward()
}

// reversibleOwnData is the condition of rule 6. A text to nobody but the
// account's own addresses is one that its owner can throw away again.
func (c call) reversibleOwnData(turn Turn) bool {
	if c.tool.Effect == EffectSend {
		return c.onlyTo(turn.OwnAddresses)
	}
	return c.tool.Own && c.tool.Reversible
}

// Amount is what a call pays.
type Amount struct {
	// Value is the decimal as it stands in the arguments.
	Value string
	// Currency is the text of the currency argument.
	Currency string
}

var (
	decimalForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})(\.[0-9]{1,8})?$`)
	zeroForm    = regexp.MustCompile(`^0(\.0*)?$`)
)

func (c call) amount() (Amount, bool) {
	if c.tool == nil || c.tool.Amount == nil {
		return Amount{}, false
	}
	values := c.tool.Amount.Value.Values(c.args)
	currencies := c.tool.Amount.Currency.Values(c.args)
	if len(values) != 1 || len(currencies) != 1 {
		return Amount{}, false
	}
	var a Amount
	switch v := values[0].(type) {
	case json.Number:
		a.Value = v.String()
	case string:
		a.Value = v
	}
	a.Currency, _ = currencies[0].(string)
	plain := decimalForm.MatchString(a.Value) && !zeroForm.MatchString(a.Value)
	return a, plain && a.Currency != ""
}
