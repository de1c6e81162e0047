package gate

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// FuzzDecide: whatever the arguments, nothing is allowed that the floor and its
// two ways do not explain, and nothing is allowed with a confirmation parameter.
func FuzzDecide(f *testing.F) {
	sample, extra := policyNamed(f, "sample"), policyNamed(f, "extra.yaml")
	for _, file := range readDecisionFiles(f) {
		for i, c := range file.Cases {
			op := c.Op.operation(f)
			f.Add(string(op.Kind), op.Tool, []byte(op.Args), c.Turn.Tier, uint16(i))
		}
	}
	for _, args := range []string{
		`{"to":["alex@example.com","alex@example.com "],"subject":"","body":""}`,
		`{"to":["ALEX@EXAMPLE.COM"],"cc":[null],"subject":"","body":""}`,
		`{"members":[{"address":"alex@example.com"},{"address":["dana@example.net"]}],"text":""}`,
	} {
		f.Add("tool_call", "email.send", []byte(args), "owner", uint16(0xffff))
		f.Add("tool_call", "chat.send", []byte(args), "owner", uint16(0xfff6))
	}
	f.Fuzz(func(t *testing.T, kind, tool string, args []byte, tier string, bits uint16) {
		op := Operation{Kind: Kind(kind), Tool: tool, Args: args}
		turn := turnOf(bits, tier, op)
		for _, policy := range []*Policy{sample, extra, nil} {
			if problem := pastTheFloor(op, turn, policy); problem != "" {
				t.Error(problem)
			}
		}
	})
}

// turnOf makes a turn of sixteen bits.
func turnOf(bits uint16, tier string, op Operation) Turn {
	on := func(n int) bool { return bits>>n&1 == 1 }
	turn := Turn{
		Now: testNow, Tier: tier, Tainted: on(0), Interactive: on(1), PersonBound: on(2), ShortForm: on(3), AskingIsApproving: on(4),
	}
	grant := &Grant{ID: "g", Tool: op.Tool, ArgsSHA256: op.ArgsSHA256()}
	if on(5) {
		turn.SaidIntent = grant
	}
	if on(6) {
		turn.StandingPermission = grant
	}
	if on(7) {
		turn.DirectSend = []string{"dana@example.net", "@dana", "", "not an address"}
	}
	if on(8) {
		turn.OwnAddresses = []string{"alex@example.com", "", "Alex <alex@example.org>"}
	}
	return turn
}

// pastTheFloor decides and says what is wrong with an answer, or "".
func pastTheFloor(op Operation, turn Turn, policy *Policy) string {
	d := Decide(op, turn, policy)
	if d.Reason == "" || d.Rule == "" || d.Detail == "" {
		return fmt.Sprintf("%+v is no whole record", d)
	}
	if d.Answer == Ask && !turn.Interactive {
		return "an ask that reaches nobody"
	}
	if d.Answer != Allow {
		return ""
	}
	var v any
	if err := json.Unmarshal(op.Args, &v); err != nil {
		return "allowed without arguments"
	}
	bad := ""
	walkKeys(v, func(key string) {
		for _, form := range confirmationForms() {
			if key == form {
				bad = "allowed with " + key
			}
		}
	})
	if bad != "" {
		return bad
	}
	if problem := unexplained(op, turn, policy); problem != "" {
		return fmt.Sprintf("%s %s %s was allowed by %s: %s", op.Kind, op.Tool, op.Args, d.Reason, problem)
	}
	return ""
}

// TestNoCallPassesTheFloor draws calls that fit the tools, where a fuzzer of
// bytes seldom gets, and holds them to the same.
func TestNoCallPassesTheFloor(t *testing.T) {
	policies := []*Policy{policyNamed(t, "sample"), policyNamed(t, "extra.yaml")}
	address := rapid.SampledFrom([]string{
		"alex@example.com", "ALEX@example.com", "dana@example.net", "lee@example.net", "@dana", "", "a@x.com, b@y.com",
		"Dana <dana@example.net>", "dana@example.net\u200b", "d\u0430na@example.net", "+12025550102", "sms:+12025550102",
	})
	list := rapid.SliceOfN(address, 0, 3)
	text := rapid.SampledFrom([]string{"a", "confirmed", "2026-03-03T08:00:00Z", "view", "EUR", "5", "YES"})
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(policies).Draw(t, "policy")
		call := func(t *rapid.T) (string, map[string]any) {
			tool := rapid.SampledFrom(policy.Tools()).Draw(t, "tool")
			args := map[string]any{}
			for _, p := range tool.Args() {
				if len(p) > 1 {
					members := []any{}
					for _, a := range list.Draw(t, "members") {
						members = append(members, map[string]any{"address": a})
					}
					args[p[0]] = members
					continue
				}
				if rapid.IntRange(0, 9).Draw(t, "leave out "+p.String()) == 0 {
					continue
				}
				isList := func(name string) bool {
					return name == "to" || name == "cc" || name == "bcc" || name == "guests" || name == "with"
				}
				switch {
				case isList(p[0]) && tool.Effect != EffectPay:
					args[p[0]] = list.Draw(t, p.String())
				case p[0] == "limit" || p[0] == "value":
					args[p[0]] = rapid.IntRange(0, 11).Draw(t, p.String())
				case p[0] == "start" || p[0] == "end" || p[0] == "at":
					args[p[0]] = "2026-03-03T08:00:00Z"
				default:
					args[p[0]] = text.Draw(t, p.String())
				}
			}
			return tool.Name, args
		}
		tool, args := call(t)
		if rapid.IntRange(0, 3).Draw(t, "bundle") == 0 {
			var parts []any
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				part, partArgs := call(t)
				parts = append(parts, map[string]any{"tool": part, "args": partArgs})
			}
			tool, args = ToolBundle, map[string]any{"parts": parts}
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		op := Operation{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Tool: tool, Args: raw}
		tier := rapid.SampledFrom([]string{TierOwner, TierOwner, TierOwner, TierPaired, "", "admin"}).Draw(t, "tier")
		turn := turnOf(rapid.Uint16().Draw(t, "bits"), tier, op)
		if problem := pastTheFloor(op, turn, policy); problem != "" {
			t.Error(problem)
		}
	})
}
