package said

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
)

func contacts() []Contact {
	return []Contact{
		{ID: "c-dana", Name: "Dana Reyes", Addresses: []string{"Dana@Reyes.example", "+12025550111", "@dana", "not an address"}},
		{ID: "c-lee", Name: "Sam Lee", Addresses: []string{"sam.lee@lee.example"}},
		{ID: "c-ortiz", Name: "Sam Ortiz", Addresses: []string{"sam@ortiz.example"}},
		{ID: "c-team", Name: "Design team", Aliases: []string{"crew"}, Addresses: []string{"design@studio.example"}},
		{ID: "c-none", Name: "Nemo", Addresses: nil},
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name    string
		to      []string
		channel Channel
		want    [][]string // nil: not whole
	}{
		{"a name", []string{"Dana"}, ChannelNone, [][]string{{"dana@reyes.example", "sms:+12025550111", "@dana"}}},
		{"a name, another case", []string{"dANA rEYES"}, ChannelEmail, [][]string{{"dana@reyes.example"}}},
		{"by text", []string{"Dana"}, ChannelSMS, [][]string{{"sms:+12025550111"}}},
		{"on slack", []string{"Dana"}, ChannelSlack, [][]string{{"@dana"}}},
		{"an alias with its article", []string{"the crew"}, ChannelNone, [][]string{{"design@studio.example"}}},
		{"an address", []string{"Max@Chen.example"}, ChannelNone, [][]string{{"max@chen.example"}}},
		{"a number as typed", []string{"+1 (202) 555-0142"}, ChannelNone, [][]string{{"sms:+12025550142"}}},
		{"a number without a country", []string{"202 555 0142"}, ChannelNone, nil},
		{"an address of another channel", []string{"max@chen.example"}, ChannelSMS, nil},
		{"two Sams", []string{"Sam"}, ChannelNone, nil},
		{"one of the Sams", []string{"Sam Lee"}, ChannelNone, [][]string{{"sam.lee@lee.example"}}},
		{"nobody", []string{"Alex"}, ChannelNone, nil},
		{"no likeness", []string{"Dan"}, ChannelNone, nil},
		{"letters of another script", []string{"D\u0430na"}, ChannelNone, nil},
		{"no address at all", []string{"Nemo"}, ChannelNone, nil},
		{"no address on the channel", []string{"Sam Lee"}, ChannelSMS, nil},
		{"one of two in doubt", []string{"Dana", "Sam"}, ChannelNone, nil},
		{"an article alone", []string{"the"}, ChannelNone, nil},
		{"no recipient", nil, ChannelNone, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Resolve(Intent{Kind: KindSend, To: c.to, Channel: c.channel}, contacts())
			if r.Whole() != (c.want != nil) {
				t.Fatalf("whole %v, unresolved %v", r.Whole(), r.Unresolved)
			}
			if !r.Whole() && r.Recipients != nil && len(r.Unresolved) > 0 {
				t.Error("half an intent was resolved")
			}
			for i, want := range c.want {
				if !slices.Equal(r.Recipients[i].Addresses, want) {
					t.Errorf("%v, want %v", r.Recipients[i].Addresses, want)
				}
			}
			if _, ok := Grant(r, "p1", "m1", wednesday()); ok != (c.want != nil) {
				t.Errorf("granted %v", ok)
			}
		})
	}
}

func granted(change func(*Granted)) Granted {
	in := Intent{Kind: KindSend, To: []string{"Dana"}, Channel: ChannelEmail, Window: DefaultWindow}
	g, ok := Grant(Resolve(in, contacts()), "p1", "m1", wednesday())
	if !ok {
		panic("the grant of the tests is none")
	}
	g.ID = "g1"
	if change != nil {
		change(&g)
	}
	return g
}

func emailCall(to ...string) Call {
	return Call{Tool: "email.send", ArgsSHA256: "00", Kind: KindSend, Channel: ChannelEmail, Recipients: to}
}

func payGrant(change func(*Granted)) Granted {
	return granted(func(g *Granted) {
		g.Kind, g.Channel, g.AmountMax, g.Currency = KindPay, ChannelNone, "40", "USD"
		if change != nil {
			change(g)
		}
	})
}

func TestMatch(t *testing.T) {
	const dana = "dana@reyes.example"
	payCall := func(amount, currency string) Call {
		return Call{Tool: "payments.send", Kind: KindPay, Channel: ChannelNone, Recipients: []string{dana}, Amount: amount, Currency: currency}
	}
	standing := func(g *Granted) {
		g.Standing, g.MaxCalls, g.EndsAt, g.Window = true, 0, time.Time{}, 0
	}
	later := func(d time.Duration) time.Time { return wednesday().Add(d) }
	for _, c := range []struct {
		name string
		g    Granted
		call Call
		now  time.Time
		want bool
	}{
		{"the call that was asked for", granted(nil), emailCall(dana), later(time.Minute), true},
		{"somebody else", granted(nil), emailCall("mallory@evil.example"), later(time.Minute), false},
		{"somebody else too", granted(nil), emailCall(dana, "mallory@evil.example"), later(time.Minute), false},
		{"a recipient that is no plain address", granted(nil), emailCall(dana, ""), later(time.Minute), false},
		{"nobody", granted(nil), emailCall(), later(time.Minute), false},
		{"another channel", granted(nil), Call{Kind: KindSend, Channel: ChannelSMS, Recipients: []string{dana}}, later(time.Minute), false},
		{"no channel named", granted(func(g *Granted) { g.Channel = ChannelNone }), emailCall(dana), later(time.Minute), true},
		{"an address of hers that was not pinned", granted(nil), emailCall("sms:+12025550111"), later(time.Minute), false},
		{"another kind", granted(nil), Call{Kind: KindPost, Channel: ChannelEmail, Recipients: []string{dana}}, later(time.Minute), false},
		{"no kind", granted(func(g *Granted) { g.Kind = "" }), Call{Channel: ChannelEmail, Recipients: []string{dana}}, later(time.Minute), false},
		{"revoked", granted(func(g *Granted) { g.Revoked = true }), emailCall(dana), later(time.Minute), false},
		{"used up", granted(func(g *Granted) { g.Used = 1 }), emailCall(dana), later(time.Minute), false},
		{"one of two left", granted(func(g *Granted) { g.MaxCalls, g.Used = 2, 1 }), emailCall(dana), later(time.Minute), true},
		{"her again, of two who were named", granted(func(g *Granted) { g.MaxCalls, g.Used, g.Served = 2, 1, []string{"Dana"} }), emailCall(dana), later(time.Minute), false},
		{"her, after the other", granted(func(g *Granted) { g.MaxCalls, g.Used, g.Served = 2, 1, []string{"Sam"} }), emailCall(dana), later(time.Minute), true},
		{"a one-off without a bound", granted(func(g *Granted) { g.MaxCalls = 0 }), emailCall(dana), later(time.Minute), false},
		{"a count below nothing", granted(func(g *Granted) { g.Used = -1 }), emailCall(dana), later(time.Minute), false},
		{"a standing one that has a count, without its bound", granted(func(g *Granted) { standing(g); g.Count = 3 }), emailCall(dana), later(time.Minute), false},
		{"before it was given", granted(nil), emailCall(dana), later(-Early - time.Second), false},
		{"by a clock that is behind", granted(nil), emailCall(dana), later(-Early), true},
		{"at the end of its window", granted(nil), emailCall(dana), later(DefaultWindow - time.Second), true},
		{"after its window", granted(nil), emailCall(dana), later(DefaultWindow), false},
		{"after its window, whatever the row says", granted(func(g *Granted) { g.EndsAt = time.Time{} }), emailCall(dana), later(DefaultWindow), false},
		{"before its own time", granted(func(g *Granted) { g.At = later(5 * time.Hour); g.EndsAt = g.Ends(g.GivenAt) }), emailCall(dana), later(time.Hour), false},
		{"at its own time", granted(func(g *Granted) { g.At = later(5 * time.Hour); g.EndsAt = g.Ends(g.GivenAt) }), emailCall(dana), later(5 * time.Hour), true},
		{"a standing one, long after", granted(standing), emailCall(dana), later(1000 * time.Hour), true},
		{"a standing one after its end", granted(func(g *Granted) { standing(g); g.Until = later(time.Hour) }), emailCall(dana), later(time.Hour), false},
		{"never given", granted(func(g *Granted) { g.GivenAt = time.Time{} }), emailCall(dana), later(0), false},
		{"no id", granted(func(g *Granted) { g.ID = "" }), emailCall(dana), later(0), false},
		{"a name without addresses", granted(func(g *Granted) { g.Recipients[0].Addresses = nil }), emailCall(dana), later(0), false},
		{"a name that was not resolved", granted(func(g *Granted) { g.To = append(g.To, "Sam") }), emailCall(dana), later(0), false},
		{"a payment", payGrant(nil), payCall("40", "USD"), later(0), true},
		{"less", payGrant(nil), payCall("39.99", "usd"), later(0), true},
		{"a cent more", payGrant(nil), payCall("40.01", "USD"), later(0), false},
		{"another currency", payGrant(nil), payCall("40", "EUR"), later(0), false},
		{"no currency named", payGrant(func(g *Granted) { g.Currency = "" }), payCall("40", ""), later(0), false},
		{"no amount named", payGrant(func(g *Granted) { g.AmountMax = "" }), payCall("40", "USD"), later(0), false},
		{"a payment of nothing", payGrant(nil), payCall("0", "USD"), later(0), false},
		{"a payment without an amount", payGrant(nil), payCall("", ""), later(0), false},
		{"an amount in no plain decimals", payGrant(nil), payCall("4e1", "USD"), later(0), false},
		{"a send that carries money", granted(nil), Call{Kind: KindSend, Channel: ChannelEmail, Recipients: []string{dana}, Amount: "5", Currency: "USD"}, later(0), false},
		{"an act of no channel by another", granted(func(g *Granted) { g.Kind, g.Channel = KindActOut, ChannelNone }), Call{Kind: KindActOut, Channel: ChannelCalendar, Recipients: []string{dana}}, later(0), false},
		{"an act of its channel", granted(func(g *Granted) { g.Kind, g.Channel = KindActOut, ChannelNone }), Call{Kind: KindActOut, Channel: ChannelNone, Recipients: []string{dana}}, later(0), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Match([]Granted{c.g}, c.call, c.now); (got != nil) != c.want {
				t.Errorf("%v, want %v", got != nil, c.want)
			}
		})
	}
	if Match(nil, emailCall(dana), wednesday()) != nil || Match([]Granted{granted(nil)}, Call{}, wednesday()) != nil {
		t.Error("nothing matched something")
	}
}

// Contacts that are edited after the grant widen nothing: the addresses were pinned.
func TestEditedContactsWidenNothing(t *testing.T) {
	g := granted(nil)
	list := contacts()
	list[0].Addresses = append(list[0].Addresses, "mallory@evil.example")
	if Match([]Granted{g}, emailCall("mallory@evil.example"), wednesday()) != nil {
		t.Error("an address that was added later is covered")
	}
}

// Of several that match the narrowest is spent, whatever their order.
func TestMatchPicksTheNarrowest(t *testing.T) {
	with := func(id string, change func(*Granted)) Granted {
		return granted(func(g *Granted) {
			g.ID = id
			if change != nil {
				change(g)
			}
		})
	}
	standing := with("standing", func(g *Granted) { g.Standing, g.MaxCalls, g.EndsAt = true, 0, time.Time{} })
	open := with("any-channel", func(g *Granted) { g.Channel = ChannelNone })
	wide := with("two-addresses", func(g *Granted) {
		g.To = append(g.To, "Max")
		g.Recipients = append(slices.Clone(g.Recipients), Recipient{Said: "Max", Addresses: []string{"max@chen.example"}})
	})
	old := with("b-older", func(g *Granted) { g.GivenAt = g.GivenAt.Add(-time.Minute); g.EndsAt = g.Ends(g.GivenAt) })
	twin := with("c-same", nil)
	plain := with("a-plain", nil)
	all := []Granted{standing, open, wide, twin, plain, old}
	want := []string{"b-older", "a-plain", "c-same", "two-addresses", "any-channel", "standing"}
	for _, id := range want {
		for range all { // any order
			all = append(all[1:], all[0])
			if got := Match(all, emailCall("dana@reyes.example"), wednesday()); got == nil || got.ID != id {
				t.Fatalf("%+v, want %s", got, id)
			}
		}
		all = slices.DeleteFunc(all, func(g Granted) bool { return g.ID == id })
	}
	small := payGrant(func(g *Granted) { g.ID, g.AmountMax = "small", "20" })
	large := payGrant(func(g *Granted) { g.ID = "large" })
	call := Call{Kind: KindPay, Channel: ChannelNone, Recipients: []string{"dana@reyes.example"}, Amount: "15", Currency: "USD"}
	if got := Match([]Granted{large, small}, call, wednesday()); got == nil || got.ID != "small" {
		t.Errorf("%+v", got)
	}
}

func TestCallOf(t *testing.T) {
	policy, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	op := func(kind gate.Kind, tool, args string) gate.Operation {
		return gate.Operation{Kind: kind, Tool: tool, Args: json.RawMessage(args)}
	}
	mail := op(gate.KindToolCall, "email.send", `{"bcc":["x@y.example"],"body":"b","subject":"s","to":["Dana@Reyes.example"]}`)
	c, ok := CallOf(mail, policy)
	if !ok || c.Kind != KindSend || c.Channel != ChannelEmail || !slices.Equal(c.Recipients, []string{"dana@reyes.example", "x@y.example"}) || c.ArgsSHA256 != mail.ArgsSHA256() {
		t.Errorf("%+v, %v", c, ok)
	}
	c, ok = CallOf(op(gate.KindToolCall, "payments.send", `{"amount":40,"currency":"USD","to":"dana@reyes.example"}`), policy)
	if !ok || c.Kind != KindPay || c.Amount != "40" || c.Currency != "USD" {
		t.Errorf("%+v, %v", c, ok)
	}
	c, ok = CallOf(op(gate.KindToolCall, "email.send", `{"body":"b","subject":"s","to":["Dana <dana@reyes.example>"]}`), policy)
	if !ok || !slices.Equal(c.Recipients, []string{""}) {
		t.Errorf("%+v, %v", c, ok)
	}
	for name, o := range map[string]gate.Operation{
		"an unknown tool":      op(gate.KindToolCall, "rockets.launch", `{}`),
		"a tool not mapped":    op(gate.KindToolCall, "tasks.add", `{"title":"x"}`),
		"a deletion":           op(gate.KindToolCall, "email.delete", `{"message_id":"1"}`),
		"a standing rule":      op(gate.KindToolCall, "rules.create", `{"action":"a","to":["dana@reyes.example"],"trigger":"t"}`),
		"a job":                op(gate.KindBackgroundJob, "email.send", string(mail.Args)),
		"a bundle":             op(gate.KindToolCall, gate.ToolBundle, `{"parts":[{"args":`+string(mail.Args)+`,"tool":"email.send"}]}`),
		"an amount in no form": op(gate.KindToolCall, "payments.send", `{"amount":"lots","currency":"USD","to":"dana@reyes.example"}`),
	} {
		if c, ok := CallOf(o, policy); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if _, ok := CallOf(mail, nil); ok {
		t.Error("no policy, and yet a call")
	}
}
