package offers

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/said"
)

// permissionTTL is how long the offer of a permission lives: what it lets happen leaves the account.
const permissionTTL = OutwardTTL

// longestPermission is how long its text may be, in UTF-16 units: it is to be read whole.
const longestPermission = 900

// permissionArgs are the permission in full, as they are hashed. Every one of them is in the text.
type permissionArgs struct {
	How       How          `json:"how"`
	Kind      said.Kind    `json:"kind"`
	Channel   said.Channel `json:"channel"`
	To        []string     `json:"to"`
	AmountMax string       `json:"amount_max,omitempty"`
	Currency  string       `json:"currency,omitempty"`
	Count     int          `json:"count,omitempty"`
	Until     string       `json:"until,omitempty"`
	Number    int          `json:"number"`
}

// PermissionOffer makes what is put to the person who asked for a permission: its own yes is needed, under every rule that
// holds for an offer. Facts have the run and the operation's id, the permission its number; false: it cannot be asked.
func PermissionOffer(f Facts, p Permission) (Proposal, Plan, bool, error) {
	a := permissionArgs{How: p.How, Kind: p.Kind, Channel: p.Channel, To: p.Addresses(), AmountMax: p.AmountMax, Currency: p.Currency, Count: p.Count, Number: p.Number}
	if !p.EndsAt.IsZero() {
		a.Until = p.EndsAt.UTC().Format(time.RFC3339)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return Proposal{}, Plan{}, false, err
	}
	args, sum, err := Canonical(raw)
	if err != nil {
		return Proposal{}, Plan{}, false, err
	}
	pr := Proposal{
		AccountID: f.Person.AccountID, PersonID: f.Person.ID, Kind: string(gate.KindToolCall), Tool: gate.ToolPermissionGrant,
		Args: args, ArgsSum: sum, Present: PresentQueue,
	}
	turn := f.Turn()
	turn.ByService = true
	plan := Plan{Decision: gate.Decide(gate.Operation{Kind: gate.KindToolCall, Tool: pr.Tool, Args: args}, turn, nil)}
	what := DescribePermission(p)
	ask := "From now on this lets me " + what + " without a question." + Asks
	text := "Let me " + what + " without asking you first, " + whenOf(p) + ".\nTo end it later, text: revoke " + fmt.Sprint(p.Number) + "\n" + ask
	if plan.Decision.Answer != gate.Ask || utf16Len(text) > longestPermission {
		return pr, plan, false, nil
	}
	plan.Offer = &Draft{Label: permissionLabel(p), ShownText: text, AskLine: ask, TTL: permissionTTL}
	plan.Offer.BindingSum, err = Binding{
		AccountID: pr.AccountID, OperationID: f.OperationID, PersonID: pr.PersonID, Tool: pr.Tool, ArgsSHA256: Hex(sum), ShownSHA256: Hex(shownSum(text)),
	}.Sum()
	return pr, plan, err == nil, err
}

// verbOf says what a permission lets happen, in the words of code.
func verbOf(p Permission) string {
	switch p.Kind {
	case said.KindSend:
		switch p.Channel {
		case said.ChannelEmail:
			return "send email"
		case said.ChannelSMS:
			return "send texts"
		case said.ChannelSlack:
			return "send Slack messages"
		}
		return "send messages"
	case said.KindPost:
		return "publish"
	case said.KindPay:
		return "pay"
	case said.KindChange:
		return "change settings of"
	}
	return "act outside your account for"
}

// DescribePermission says in one line what a permission lets happen, with the exact addresses.
func DescribePermission(p Permission) string {
	var to []string
	for _, a := range p.Addresses() {
		to = append(to, Exact(a))
	}
	s := verbOf(p) + " " + toWord(p) + strings.Join(to, ", ")
	if p.Channel == said.ChannelCalendar || p.Channel == said.ChannelGitHub || p.Channel == said.ChannelWeb {
		s += " by " + string(p.Channel)
	}
	if p.AmountMax != "" {
		s += ", at most " + Exact(p.AmountMax) + " " + Exact(p.Currency) + " each time"
	}
	return s
}

func toWord(p Permission) string {
	if p.Kind == said.KindSend || p.Kind == said.KindPost {
		return "to "
	}
	return ""
}

// whenOf says how often and until when.
func whenOf(p Permission) string {
	often := "as often as there is reason to"
	if p.MaxCalls > 0 {
		often = fmt.Sprintf("%d times", p.MaxCalls)
		if p.MaxCalls == 1 {
			often = "once"
		}
	}
	if p.EndsAt.IsZero() {
		return often + ", until you end it"
	}
	return often + ", until " + p.EndsAt.UTC().Format("2 Jan 2006 15:04 UTC")
}

// permissionLabel is what the reader is told; no address is in it.
func permissionLabel(p Permission) string {
	s := "allow me to " + verbOf(p)
	if len(p.Recipients) == 1 {
		if n := contactName(p.Recipients[0].Said); n != "" {
			return s + " " + toWord(p) + n
		}
		return s + " " + toWord(p) + "one address"
	}
	return fmt.Sprintf("%s %s%d people", s, toWord(p), len(p.Recipients))
}

// GrantResult is the result of the operation that granted the permission.
func GrantResult(p Permission, at time.Time) Result {
	status, output := OpSucceeded, map[string]any{"permission_id": p.ID, "number": p.Number}
	if p.GrantedAt == nil {
		status, output = OpFailed, map[string]any{"error": "revoked before it was granted, or the person may not have it any more"}
	}
	raw, _ := json.Marshal(output) // strings and a number
	return Result{Status: string(status), Output: raw, At: at}
}

// PermissionReceipt tells the person how the grant went.
func PermissionReceipt(p Permission) string {
	if p.GrantedAt == nil {
		return "Not allowed: it was ended, or may not be had any more, before your yes."
	}
	return "Allowed: I " + DescribePermission(p) + " without asking, " + whenOf(p) + ". To end it, text: revoke " + fmt.Sprint(p.Number)
}

// longestList is how long an answer about permissions may be, in UTF-16 units.
const longestList = 900

// PermissionList answers what may happen without a question, from the table alone.
func PermissionList(s PermissionState) string {
	return endedLines(s) + liveLines(s)
}

// EndedReceipt names what a person's words have ended.
func EndedReceipt(ended []Permission) string {
	return strings.TrimSuffix(endedLines(PermissionState{Ended: ended}), "\n")
}

func endedLines(s PermissionState) string {
	var b strings.Builder
	for _, p := range s.Ended {
		if utf16Len(b.String()) > longestList {
			return "Ended, and more beside it:\n" + b.String()
		}
		fmt.Fprintf(&b, "Ended %d: %s.\n", p.Number, DescribePermission(p))
	}
	return b.String()
}

func liveLines(s PermissionState) string {
	var b strings.Builder
	n := 0
	for _, p := range s.Live {
		if p.How != Direct && !s.AskingIsApproving {
			continue // it counts for nothing now
		}
		if n++; utf16Len(b.String()) > longestList {
			continue
		}
		left := whenOf(p)
		if p.Used > 0 && p.MaxCalls > 0 {
			left += fmt.Sprintf(", %d used", p.Used)
		}
		fmt.Fprintf(&b, "%d: %s, %s\n", p.Number, DescribePermission(p), left)
	}
	own := "What can be undone and touches only your own data I do without asking."
	if n == 0 {
		return "I send, pay, post and share nothing without asking you. " + own
	}
	shown := strings.Count(b.String(), "\n")
	head := "Without asking I may:\n"
	tail := "To end one, text revoke and its number; to end all, text: revoke all"
	if shown < n {
		tail = fmt.Sprintf("And %d more. ", n-shown) + tail
	}
	return head + b.String() + tail + "\n" + own
}
