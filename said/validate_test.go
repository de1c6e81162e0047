package said

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// noon is a Wednesday in a zone that is not UTC.
var zoneNY = time.FixedZone("EST", -5*3600)

func wednesday() time.Time { return time.Date(2026, 3, 4, 10, 15, 0, 0, zoneNY) }

func send(to ...string) Candidate { return Candidate{Kind: "send", To: to} }

func pay(amount, currency string, to ...string) Candidate {
	return Candidate{Kind: "pay", To: to, AmountMax: amount, Currency: currency}
}

func with(c Candidate, change func(*Candidate)) Candidate {
	change(&c)
	return c
}

func reasonsOf(words string, c Candidate) []Reason {
	_, drops := Validate(words, c, wednesday(), zoneNY)
	var all []Reason
	for _, d := range drops {
		all = append(all, d.Reason)
	}
	return all
}

// Every row of the drop table: what it must drop, and near it what must pass.
func TestValidateDrops(t *testing.T) {
	standing := func(c *Candidate) { c.Standing = true }
	via := func(ch string) func(*Candidate) { return func(c *Candidate) { c.Channel = ch } }
	at := func(s string) func(*Candidate) { return func(c *Candidate) { c.At = s } }
	until := func(s string) func(*Candidate) { return func(c *Candidate) { c.Standing, c.Until = true, s } }
	count := func(n int) func(*Candidate) { return func(c *Candidate) { c.Count = n } }
	reply := func(c *Candidate) { c.ReplyToCurrent = true }
	for _, c := range []struct {
		words string
		c     Candidate
		want  Reason // "" passes
	}{
		// off the schema
		{"email Dana", with(send("Dana"), func(c *Candidate) { c.Kind = "delete" }), DropSchemaKind},
		{"email Dana", with(send("Dana"), func(c *Candidate) { c.Kind = "" }), DropSchemaKind},
		{"email Dana", with(send("Dana"), via("fax")), DropSchemaChannel},
		{"email Dana", send(strings.Split(strings.Repeat("Dana,", 11), ",")[:11]...), DropSchemaTo},
		{"email Dana", send(""), DropSchemaTo},
		{"email Dana", send(strings.Repeat("D", 81)), DropSchemaTo},
		{"email Dana", send("Da\nna"), DropSchemaTo},
		{"pay Max $40", pay("-40", "USD", "Max"), DropSchemaNumber},
		{"pay Max $40", pay("4e1", "USD", "Max"), DropSchemaNumber},
		{"pay Max $40", pay("0", "USD", "Max"), DropSchemaNumber},
		{"email Dana", with(send("Dana"), count(-1)), DropSchemaNumber},
		{"email Dana", with(send("Dana"), count(1001)), DropSchemaNumber},
		{"email Dana", with(send("Dana"), func(c *Candidate) { c.WindowMinutes = -5 }), DropSchemaNumber},
		{"pay Max $40", pay("40", "dollars", "Max"), DropSchemaText},

		// a recipient is not in the words
		{"email Dana", send("Max"), DropToNotSaid},
		{"email Samantha", send("Sam"), DropToNotSaid},
		{"email Danae", send("Dana"), DropToNotSaid},
		{"email Dana\nReyes is out", send("Dana Reyes"), DropToNotSaid},
		{"email D\u0430na", send("Dana"), DropToNotSaid},
		{"email  dana   reyes now", send("Dana Reyes"), ""},
		{"EMAIL DANA", send("dana"), ""},
		{"text +1 (202) 555-0142 hi", send("+12025550142"), ""},
		{"email max@chen.example", send("ax@chen.example"), DropToNotSaid},

		// a recipient is not governed by an asked verb of the kind
		{"Email Dana and pay Sam $5", send("Sam"), DropToNotAsked},
		{"Email Dana and pay Sam $5", pay("5", "USD", "Dana"), DropToNotAsked},
		{"Email Dana and pay Sam $5", send("Dana"), ""},
		{"Email Dana and pay Sam $5", pay("5", "USD", "Sam"), ""},
		{"email Dana about Max", send("Max"), DropToNotAsked},
		{"tell Dana that Max is here", send("Max"), DropToNotAsked},
		{"tell Dana to text Max", send("Max"), DropToNotAsked},
		{"send the Harlow Legal invoice", send("Harlow Legal"), DropToNotAsked},
		{"send the Harlow Legal invoice to Dana", send("Dana"), ""},
		{"forward Lumen bill to Fern", send("Lumen"), DropToNotAsked},
		{"send it to the team", send("team"), ""},
		{"email the team", send("the team"), ""},
		{"email the team", send("team"), DropToNotAsked},
		{"send Max's keys to Dana", send("Max"), DropToNotAsked},
		{"reply to Priya's email", send("Priya"), ""},
		{"text Sam Lee", send("Sam"), DropToNotAsked},
		{"text Sam Lee", send("Lee"), DropToNotAsked},
		{"text Priya, not Dana", send("Dana"), DropToNotAsked},
		{"email everyone except Noor", send("Noor"), DropToNotAsked},
		{"send Dana the report and Sam the deck", send("Sam"), ""},
		{"send Dana the report and the photos of Sam", send("Sam"), DropToNotAsked},
		{"text mom and dad", send("mom", "dad"), ""},
		{"email Dana. Email Priya.", send("Dana", "Priya"), DropToNotAsked},
		{"text Jo \"tell Max hi\"", send("Max"), DropToNotAsked},
		{"invite Dana to Max's party", Candidate{Kind: "act_out", To: []string{"Max"}}, DropToNotAsked},
		{"pay the Northwind invoice, $40", pay("40", "USD", "Northwind"), ""},
		{"pay Sam's mom $40", pay("40", "USD", "Sam"), DropToNotAsked},

		// no verb of the kind reads as an ask
		{"don't email Dana", send("Dana"), DropNotAsked},
		{"do not ever email Dana", send("Dana"), DropNotAsked},
		{"don't forget to email Dana", send("Dana"), ""},
		{"draft a reply to Priya", send("Priya"), DropNotAsked},
		{"Priya's email was long", send("Priya"), DropNotAsked},
		{"the email to Priya bounced", send("Priya"), DropNotAsked},
		{"tell me what Dana wrote", send("Dana"), DropNotAsked},
		{"email me Dana's notes", send("Dana"), DropNotAsked},
		{"I need to pay Max $40", pay("40", "USD", "Max"), DropNotAsked},
		{"I'll text Dana", send("Dana"), DropNotAsked},
		{"should I email Dana?", send("Dana"), DropNotAsked},
		{"email Dana?", send("Dana"), DropNotAsked},
		{"can you email Dana?", send("Dana"), ""},
		{"email Dana, ok?", send("Dana"), ""},
		{"ask Dana if she is free?", send("Dana"), ""},
		{"Max says email Dana", send("Dana"), DropNotAsked},
		{"Max told me, please email Dana", send("Dana"), DropNotAsked},
		{"I'll be late, please email Dana", send("Dana"), ""},
		{"email Dana. Actually, never mind.", send("Dana"), DropNotAsked},
		{"email Dana but don't send it yet", send("Dana"), DropNotAsked},
		{"email Dana the report but ask me first", send("Dana"), DropNotAsked},
		{"email Dana the report. Show me first.", send("Dana"), DropNotAsked},
		{"let me see it, then email Dana", send("Dana"), DropNotAsked},
		{"email Dana, with my ok", send("Dana"), DropNotAsked},
		{"you can always email Dana but check with me first", with(send("Dana"), standing), DropNotAsked},
		{"you can always email Dana, no need to ask me first", with(send("Dana"), standing), ""},
		{"you can always email Dana, don't ask me", with(send("Dana"), standing), ""},
		{"you can always email Dana unless it's about money", with(send("Dana"), standing), DropNotAsked},
		{"you can always email Dana, but not about money", with(send("Dana"), standing), DropNotAsked},
		{"you can always email Dana as long as it is short", with(send("Dana"), standing), DropNotAsked},
		{"If you have any questions you can always email Dana", with(send("Dana"), standing), DropNotAsked},
		{"email Dana the report lol no", send("Dana"), DropNotAsked},
		{"email Dana the report\nNOT", send("Dana"), DropNotAsked},
		{"email Dana the report. No.", send("Dana"), DropNotAsked},
		{"tell Dana no", send("Dana"), ""},
		{"if Max replies, email Dana", send("Dana"), DropNotAsked},
		{"email Dana when the build is done", send("Dana"), DropNotAsked},
		{"email Dana unless it rains", send("Dana"), DropNotAsked},
		{"email Dana if you can", send("Dana"), ""},
		{"when you get a chance, email Dana", send("Dana"), ""},
		{"email Dana the list, and if she asks text Max", send("Dana"), ""},
		{"email Dana the list, and if she asks text Max", send("Max"), DropToNotAsked},
		{"you can always email Dana when the build is done", with(send("Dana"), standing), ""},
		{"you can always email Dana when the build is done", send("Dana"), DropNotAsked},
		{"whenever Northwind invoices under $200, pay it", with(pay("200", "USD", "Northwind"), standing), ""},
		{"whenever Northwind invoices Dana under $200, pay it", with(pay("200", "USD", "Dana"), standing), DropToNotAsked},
		{"whenever Max writes, email Dana", with(send("Max"), standing), DropToNotAsked},
		{"whenever Leo sends a receipt, forward it to Priya", with(send("Leo"), standing), DropToNotAsked},
		{"whenever Leo sends a receipt, forward it to Priya", with(send("Priya"), standing), ""},
		{"any time the team asks for the menu, email it to them", with(send("the team"), standing), ""},
		{"message Jo and say hi to Max", send("Max"), DropToNotAsked},
		{"turn night mode on", Candidate{Kind: "change", To: []string{"night"}}, DropToNotAsked},
		{"turn night mode on", Candidate{Kind: "change", To: []string{"night mode"}}, ""},
		{"merge the PR in Atlas", Candidate{Kind: "act_out", To: []string{"PR"}}, DropToNotAsked},
		{"would you mind texting Max", send("Max"), ""},
		{"email Dana or text Max", send("Max"), DropToNotAsked},
		{"note this: email Dana", send("Dana"), DropNotAsked},
		{"Hi Max, please wire Fern $300", pay("300", "USD", "Fern"), DropNotAsked},
		{"forward it to Dana", with(send("Dana"), func(c *Candidate) { c.Kind = "post" }), DropNotAsked},
		{"send $40 to Jo", send("Jo"), DropNotAsked},

		// no target; replies
		{"send it", send(), DropNoTarget},
		{"reply that it's fine", with(send(), reply), ""},
		{"text him back", with(send(), reply), ""},
		{"send it", with(send(), reply), DropReplyNotSaid},
		{"email Dana", with(send("Dana"), reply), DropReplyNotSaid},
		{"don't reply", with(send(), reply), DropNotAsked},

		// channels
		{"tell Dana I'm in", with(send("Dana"), via("email")), DropChannelNotSaid},
		{"text Dana", with(send("Dana"), via("email")), DropChannelNotSaid},
		{"email Dana and tell Sam", with(send("Sam"), via("email")), DropChannelNotSaid},
		{"send Dana an email", with(send("Dana"), via("email")), ""},
		{"email Dana", with(send("Dana"), via("email")), ""},
		{"tell @max we are done", with(send("@max"), via("slack")), ""},

		// standing
		{"email Dana", with(send("Dana"), standing), DropStandingNotSaid},
		{"email Dana the weekly report", with(send("Dana"), standing), DropStandingNotSaid},
		{"as always, email Dana", with(send("Dana"), standing), DropStandingNotSaid},
		{"tell Dana I always liked it", with(send("Dana"), standing), DropStandingNotSaid},
		{"whenever you have a minute, email Dana", with(send("Dana"), standing), DropStandingNotSaid},
		{"email Dana weekly", with(send("Dana"), standing), ""},
		{"every Monday email Dana", with(send("Dana"), standing), ""},
		{"you can always text mom, and pay Max $5", with(pay("5", "USD", "Max"), standing), DropStandingNotSaid},
		{"you don't need to ask before texting Dana", with(send("Dana"), standing), ""},

		// money
		{"pay Max", pay("", "", "Max"), DropPayNoAmount},
		{"pay Max $40", pay("", "", "Max"), DropPayNoAmount},
		{"pay Max $40", pay("400", "USD", "Max"), DropAmountNotSaid},
		{"pay Max $40", pay("4", "USD", "Max"), DropAmountNotSaid},
		{"pay Max $40", pay("40", "EUR", "Max"), DropCurrencyNotSaid},
		{"pay Max 40", pay("40", "USD", "Max"), DropCurrencyNotSaid},
		{"pay Max $40 CAD", pay("40", "USD", "Max"), DropCurrencyNotSaid},
		{"pay Max $40 CAD", pay("40", "CAD", "Max"), ""},
		{"pay Max 40", pay("40", "", "Max"), ""},
		{"pay Max $1,250.00", pay("1250", "USD", "Max"), ""},
		{"pay Max 84,20 euros", pay("84.2", "EUR", "Max"), ""},
		{"pay Max $1.2k", pay("1200", "USD", "Max"), ""},
		{"pay Max twenty dollars", pay("20", "USD", "Max"), ""},
		{"pay Sam $40 and Priya $60", pay("60", "USD", "Sam"), DropAmountNotSaid},
		{"pay Sam $40 and Priya $60", pay("60", "USD", "Priya"), ""},
		{"pay $40 to Sam and $60 to Priya", pay("60", "USD", "Sam"), DropAmountNotSaid},
		{"pay $40 to Sam and $60 to Priya", pay("40", "USD", "Sam"), ""},
		{"the bill is $300. Pay Max $40", pay("300", "USD", "Max"), DropAmountNotSaid},

		// counts
		{"text Dana", with(send("Dana"), count(5)), DropCountNotSaid},
		{"text Dana 5 times", with(send("Dana"), count(5)), ""},
		{"you can always text Dana, up to 5 times", with(send("Dana"), standing), DropCountNotSaid},

		// times
		{"email Dana tomorrow", with(send("Dana"), at("soon")), DropWhenUnparsed},
		{"email Dana tomorrow", with(send("Dana"), at("2027-04-20T09:00")), DropWhenTooFar},
		{"email Dana today", with(send("Dana"), at("2026-03-04T09:00")), DropWhenPast},
		{"email Dana today", with(send("Dana"), at("2026-03-04T09:20")), ""},
		{"email Dana", with(send("Dana"), at("2026-03-05T09:00")), DropWhenNotSaid},
		{"email Dana tomorrow at 9", with(send("Dana"), at("2026-03-09T09:00")), DropWhenNotSaid},
		{"email Dana tomorrow at 9", with(send("Dana"), at("2026-03-05T09:00")), ""},
		{"email Dana tomorrow at 9", with(send("Dana"), at("2026-03-05T14:00:00Z")), ""},
		{"tomorrow at 9 email Dana", send("Dana"), DropWhenNotSaid},
		{"in two hours email Dana", with(send("Dana"), at("2026-03-04T12:15")), ""},
		{"until Friday you can email Dana", with(send("Dana"), until("whenever")), DropUntilUnparsed},
		{"until Friday you can email Dana", with(send("Dana"), until("2027-04-20")), DropUntilTooFar},
		{"until Friday you can email Dana", with(send("Dana"), until("2026-03-01")), DropUntilPast},
		{"until Friday you can email Dana", with(send("Dana"), until("2026-03-20")), DropUntilNotSaid},
		{"until Friday you can email Dana", with(send("Dana"), standing), DropUntilNotSaid},
		{"until Friday you can email Dana", with(send("Dana"), until("2026-03-06")), ""},
		{"for the next two weeks you can email Dana", with(send("Dana"), until("2026-03-18")), ""},
		{"until the fair ends you can email Dana", with(send("Dana"), standing), DropUntilNotSaid},
	} {
		t.Run(c.words, func(t *testing.T) {
			got := reasonsOf(c.words, c.c)
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
				t.Errorf("%+v: dropped for %v, want %q", c.c, got, c.want)
			}
		})
	}
}

func TestValidateNarrows(t *testing.T) {
	in, drops := Validate("text Dana hi", send("Dana"), wednesday(), zoneNY)
	if len(drops) > 0 || in.Channel != ChannelSMS {
		t.Errorf("channel %q, want the verb's own", in.Channel)
	}
	if in.Window != DefaultWindow {
		t.Errorf("window %s", in.Window)
	}
	for minutes, want := range map[int]time.Duration{0: DefaultWindow, 1: MinWindow, 60: time.Hour, 100000: MaxWindow} {
		in, _ := Validate("text Dana hi", with(send("Dana"), func(c *Candidate) { c.WindowMinutes = minutes }), wednesday(), zoneNY)
		if in.Window != want {
			t.Errorf("%d minutes: %s, want %s", minutes, in.Window, want)
		}
	}
	in, _ = Validate("until Friday you may text Kim", with(send("Kim"), func(c *Candidate) { c.Standing, c.Until = true, "2026-03-06" }), wednesday(), zoneNY)
	if in.Window != 0 || !in.Until.Equal(time.Date(2026, 3, 6, 23, 59, 59, 0, zoneNY)) {
		t.Errorf("%+v: a day that is an end means its end", in)
	}
}

func TestValidateAllCapsAndTakesNothingTwice(t *testing.T) {
	words, names := "", []string{"Dana", "Max", "Jo", "Kim", "Noor", "Priya", "Fern", "Ben", "Ruth", "Omar", "Ida", "Leo"}
	var many []Candidate
	for _, n := range names {
		words += "Text " + n + ". "
		many = append(many, send(n))
	}
	intents, drops := ValidateAll(words, many, wednesday(), zoneNY)
	if len(intents) != MaxIntents || len(drops) != 2 || drops[0].Reason != DropCap {
		t.Errorf("%d intents, %v", len(intents), drops)
	}
	intents, drops = ValidateAll("text Dana hi", []Candidate{send("Dana"), send("dana"), with(send("Dana"), func(c *Candidate) { c.Channel = "sms" })}, wednesday(), zoneNY)
	if len(intents) != 1 || len(drops) != 2 || drops[0].Reason != DropRepeated {
		t.Errorf("one ask made %d intents: %v", len(intents), drops)
	}
	if intents, _ := ValidateAll("reply that it's fine", []Candidate{with(send(), func(c *Candidate) { c.ReplyToCurrent = true }), with(send(), func(c *Candidate) { c.ReplyToCurrent = true })}, wednesday(), zoneNY); len(intents) != 1 {
		t.Errorf("one reply made %d intents", len(intents))
	}
}

func TestParseCandidates(t *testing.T) {
	for _, c := range []struct {
		answer string
		n      int
		drop   Reason
	}{
		{`{"intents":[{"kind":"send","to":["Dana"],"channel":"none","standing":false}]}`, 1, ""},
		{"Sure:\n```json\n{\"intents\":[{\"kind\":\"send\",\"to\":[\"Dana\"]}]}\n```", 1, ""},
		{`[{"kind":"pay","to":["Max"],"amount_max":40.5,"currency":"usd","count":null}]`, 1, ""},
		{`{"intents":[]}`, 0, ""},
		{"", 0, DropSchemaJSON}, {"none", 0, DropSchemaJSON}, {`{"intents":{}}`, 0, DropSchemaJSON}, {`{"intents":[`, 0, DropSchemaJSON},
		{`{"intents":[],"intents":[{"kind":"send"}]}`, 0, DropSchemaJSON},
		{`{"intents":["send"]}`, 0, DropSchemaJSON},
		{`{"intents":[{"kind":7}]}`, 0, DropSchemaKind},
		{`{"intents":[{"kind":"send","channel":1}]}`, 0, DropSchemaChannel},
		{`{"intents":[{"kind":"send","to":"Dana"}]}`, 0, DropSchemaTo},
		{`{"intents":[{"kind":"send","to":["Dana",null]}]}`, 0, DropSchemaTo},
		{`{"intents":[{"kind":"send","to":["Dana",{"x":1}]}]}`, 0, DropSchemaTo},
		{`{"intents":[{"kind":"send","standing":"yes"}]}`, 0, DropSchemaFlag},
		{`{"intents":[{"kind":"send","reply_to_current":1}]}`, 0, DropSchemaFlag},
		{`{"intents":[{"kind":"send","count":"many"}]}`, 0, DropSchemaNumber},
		{`{"intents":[{"kind":"send","count":1.5}]}`, 0, DropSchemaNumber},
		{`{"intents":[{"kind":"pay","amount_max":[4]}]}`, 0, DropSchemaNumber},
		{`{"intents":[{"kind":"send","until":5}]}`, 0, DropSchemaText},
	} {
		got, drops := ParseCandidates(c.answer)
		if len(got) != c.n || c.drop == "" && len(drops) > 0 || c.drop != "" && (len(drops) != 1 || drops[0].Reason != c.drop) {
			t.Errorf("%s: %v, %v", c.answer, got, drops)
		}
	}
}
