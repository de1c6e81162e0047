package offers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

func standingSend(to ...string) Permission {
	p, err := Commanded("default", "p", said.Intent{Kind: said.KindSend, Channel: said.ChannelEmail, To: to})
	if err != nil {
		panic(err)
	}
	at := time.Unix(1, 0).UTC()
	p.ID, p.GrantedAt, p.GivenAt, p.Number = "d", &at, at, 3
	return p
}

func TestPermissionsNeedAnOwnersRun(t *testing.T) {
	policy, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	once := standingSend("dana@example.test")
	once.ID, once.How, once.Standing, once.MaxCalls, once.Window = "o", Once, false, 1, said.DefaultWindow
	f := Facts{Now: once.GivenAt.Add(time.Minute), Person: people.Person{State: people.Active}, Permissions: []Permission{standingSend("dana@example.test"), once}}
	op := gate.Operation{Kind: gate.KindToolCall, Tool: "email.send", Args: []byte(`{"body":"b","subject":"s","to":["dana@example.test"]}`)}
	for _, tier := range []string{gate.TierPaired, "", "admin"} {
		if got := f.permissionsIn(gate.Turn{Tier: tier}, op, policy); len(got.DirectSend) > 0 || got.SaidIntent != nil || got.StandingPermission != nil {
			t.Errorf("%q: %+v", tier, got)
		}
	}
	got := f.permissionsIn(gate.Turn{Tier: gate.TierOwner}, op, policy)
	if !slices.Equal(got.DirectSend, []string{"dana@example.test"}) || got.SaidIntent == nil || got.SaidIntent.ID != "o" || got.StandingPermission != nil {
		t.Errorf("%+v", got)
	}
	f.Person.State = people.Suspended
	if got := f.permissionsIn(gate.Turn{Tier: gate.TierOwner}, op, policy); len(got.DirectSend) > 0 || got.SaidIntent != nil {
		t.Errorf("suspended: %+v", got)
	}
	f.Person.State = people.Active
	f.Barred = []string{"d", "o"}
	if got := f.permissionsIn(gate.Turn{Tier: gate.TierOwner}, op, policy); len(got.DirectSend) > 0 || got.SaidIntent != nil {
		t.Errorf("barred: %+v", got)
	}
}

// A recipient that no database could be asked for is nobody's own address.
func TestReachesLeavesOutWhatCannotBeAnAddress(t *testing.T) {
	policy, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	op := gate.Operation{Kind: gate.KindToolCall, Tool: "email.send", Args: []byte(`{"body":"b","subject":"s","to":["dana@example.test\u0000","Dana@example.test"]}`)}
	got := NewService(nil, policy, nil).Reaches(op)
	if !slices.Equal(got, []string{"Dana@example.test", "dana@example.test"}) {
		t.Errorf("%q", got)
	}
}

func TestCommanded(t *testing.T) {
	for name, c := range map[string]struct {
		in   said.Intent
		want error
		how  How
	}{
		"a send":             {said.Intent{Kind: said.KindSend, To: []string{"Dana@Example.test"}}, nil, Direct},
		"so many sends":      {said.Intent{Kind: said.KindSend, To: []string{"dana@example.test"}, Count: 2}, nil, Standing},
		"a payment":          {said.Intent{Kind: said.KindPay, To: []string{"dana@example.test"}, AmountMax: "5", Currency: "EUR"}, nil, Standing},
		"a payment, open":    {said.Intent{Kind: said.KindPay, To: []string{"dana@example.test"}}, ErrBadPermission, ""},
		"to nobody":          {said.Intent{Kind: said.KindSend}, ErrBadPermission, ""},
		"to too many":        {said.Intent{Kind: said.KindSend, To: slices.Repeat([]string{"dana@example.test"}, 11)}, ErrBadPermission, ""},
		"too often":          {said.Intent{Kind: said.KindSend, To: []string{"dana@example.test"}, Count: 1001}, ErrBadPermission, ""},
		"to a name":          {said.Intent{Kind: said.KindSend, To: []string{"Dana"}}, ErrBadRecipient, ""},
		"to two in one":      {said.Intent{Kind: said.KindSend, To: []string{"a@example.test,b@example.test"}}, ErrBadRecipient, ""},
		"to a look-alike":    {said.Intent{Kind: said.KindSend, To: []string{"d\u0430na@example.test"}}, ErrBadRecipient, ""},
		"to what is unseen":  {said.Intent{Kind: said.KindSend, To: []string{"dana@example.test\u200b"}}, ErrBadRecipient, ""},
		"to two lines of it": {said.Intent{Kind: said.KindSend, To: []string{"dana@example.test\nb@example.test"}}, ErrBadRecipient, ""},
	} {
		p, err := Commanded("default", "p", c.in)
		if (err == nil) != (c.want == nil) || c.want != nil && !strings.Contains(err.Error(), c.want.Error()) || err == nil && p.How != c.how {
			t.Errorf("%s: %s, %v", name, p.How, err)
		}
	}
}

// What the person reads of a permission: no name of a contact, in whatever characters, gets into it but as plain letters.
func TestWhatIsShownOfAPermission(t *testing.T) {
	f := Facts{Address: "sms:+12025550101", Reachable: true}
	f.Person.ID, f.Person.AccountID, f.Person.Tier = "p", "default", gate.TierOwner
	f.Run = Run{Tier: gate.TierOwner, Interactive: true, Cause: Cause{Offer: true}}
	for said1, label := range map[string]string{
		"Dana":                               "allow me to send email to Dana",
		"D\u0430na":                          "allow me to send email to one address", // a letter of another script
		"Dana\u202e":                         "allow me to send email to one address",
		"Da\u200bna":                         "allow me to send email to one address",
		"Dana\nThis pays nothing. Reply YES": "allow me to send email to one address",
		"nobody. Yes means no":               "allow me to send email to one address",
		strings.Repeat("x", 31):              "allow me to send email to one address",
		"yes":                                "allow me to send email to yes",
		"dana@example.test":                  "allow me to send email to one address",
		"\u2066Dana\u2069":                   "allow me to send email to one address",
		"Dana\ufe0f":                         "allow me to send email to one address",
		"\u202eanaD":                         "allow me to send email to one address",
		"Dana\u00ad Bauer":                   "allow me to send email to one address",
		"Dana [owner]":                       "allow me to send email to one address",
		"Dana Bauer":                         "allow me to send email to Dana Bauer",
	} {
		p := standingSend("dana@example.test")
		p.Recipients[0].Said = said1
		_, plan, ok, err := PermissionOffer(f, p)
		if err != nil || !ok {
			t.Fatalf("%q: %v %v", said1, ok, err)
		}
		const text = "Let me send email to dana@example.test without asking you first, as often as there is reason to, until you end it.\n" +
			"To end it later, text: revoke 3\nFrom now on this lets me send email to dana@example.test without a question. Reply YES or NO."
		if plan.Offer.ShownText != text || plan.Offer.Label != label {
			t.Errorf("%q: label %q\n%s", said1, plan.Offer.Label, plan.Offer.ShownText)
		}
	}
	// What is too long to be read whole is not asked.
	p := standingSend(slices.Repeat([]string{strings.Repeat("x", 200) + "@example.test"}, 5)...)
	for i := range p.Recipients {
		p.Recipients[i].Addresses = []string{strings.Repeat("x", 200) + string(rune('a'+i)) + "@example.test"}
	}
	if _, _, ok, err := PermissionOffer(f, p); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	// Nor is anything of somebody who may have none, or cannot be reached.
	for name, spoil := range map[string]func(*Facts){
		"paired":      func(f *Facts) { f.Person.Tier, f.Run.Tier = gate.TierPaired, gate.TierPaired },
		"unreachable": func(f *Facts) { f.Reachable = false },
	} {
		f := f
		if spoil(&f); f.Reachable || f.Person.Tier != gate.TierOwner {
			if _, _, ok, err := PermissionOffer(f, standingSend("dana@example.test")); ok || err != nil {
				t.Errorf("%s: %v %v", name, ok, err)
			}
		}
	}
}

func TestPermissionListIsBounded(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	s := PermissionState{Now: at}
	for i := range 100 {
		p := standingSend("dana@example.test")
		p.Number = i + 1
		s.Live = append(s.Live, p)
	}
	text := PermissionList(s)
	if n := len(text); n > 1500 || !strings.Contains(text, "\nAnd ") || !strings.Contains(text, "more. To end one") {
		t.Errorf("%d characters: %s", n, text)
	}
	s.Ended, s.Live = s.Live, nil
	if text := PermissionList(s); len(text) > 1500 || !strings.HasPrefix(text, "Ended, and more beside it:\n") {
		t.Errorf("%d characters: %s", len(text), text)
	}
}
