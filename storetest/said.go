package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// permitted is a world with a service over the sample policy, an owner and contacts. Asking is approving in it.
type permitted struct {
	*world
	service *offers.Service
	owner   people.Person
}

func newPermitted(t *testing.T, open Open) *permitted {
	t.Helper()
	w := newWorld(t, open)
	w.must(w.Store.SetAskingIsApproving(w.ctx, people.DefaultAccount, true))
	policy, err := gate.Sample()
	w.must(err)
	p := &permitted{world: w, service: offers.NewService(w.Store, policy, func(string) int { return 1600 }), owner: w.person(gate.TierOwner)}
	p.contacts("dana@example.test")
	return p
}

// contacts makes Dana somebody with those addresses, beside two Sams.
func (w *permitted) contacts(dana ...string) {
	w.t.Helper()
	_, err := w.Store.PutContacts(w.ctx, people.DefaultAccount, []said.Contact{
		{ID: "dana", Name: "Dana", Addresses: dana}, {ID: "s1", Name: "Sam Lee", Addresses: []string{"sam@example.test"}},
		{ID: "s2", Name: "Sam Ray", Addresses: []string{"ray@example.test"}},
	}, false)
	w.must(err)
}

func once(to ...string) said.Intent {
	return said.Intent{Kind: said.KindSend, Channel: said.ChannelEmail, To: to, Window: said.DefaultWindow}
}

func standing(to ...string) said.Intent {
	return said.Intent{Kind: said.KindSend, Channel: said.ChannelEmail, To: to, Standing: true}
}

// asks has a person say something that asks for this.
func (w *permitted) asks(p people.Person, intents ...said.Intent) offers.Received {
	w.t.Helper()
	m := w.says(p, "email Dana the report")
	w.asksBy(m, intents...)
	return m
}

func (w *permitted) asksBy(m offers.Received, intents ...said.Intent) {
	w.t.Helper()
	req := pass(m)
	req.Asked = intents
	w.must(w.Store.Pass(w.ctx, req))
}

func (w *permitted) has(p people.Person) []offers.Permission {
	w.t.Helper()
	list, err := w.Store.PermissionsOf(w.ctx, p.AccountID, p.ID)
	w.must(err)
	return list
}

func (w *permitted) only(p people.Person) offers.Permission {
	w.t.Helper()
	list := w.has(p)
	if len(list) != 1 {
		w.t.Fatalf("%d permissions, want one: %+v", len(list), list)
	}
	return list[0]
}

func emailTo(to ...string) string {
	list, _ := json.Marshal(to) // strings
	return fmt.Sprintf(`{"to":%s,"subject":"Report","body":"n%d"}`, list, serial.Add(1))
}

func (w *permitted) request(run, tool, args string) offers.Request {
	n := serial.Add(1)
	return offers.Request{
		AccountID: people.DefaultAccount, Call: "POST /v1/operations", Key: fmt.Sprint("said-", n), BodySum: offers.Digest{byte(n), byte(n >> 8), byte(n >> 16)},
		RunID: run, Kind: string(gate.KindToolCall), Tool: tool, Args: []byte(args),
	}
}

// does proposes in a run.
func (w *permitted) does(run, tool, args string) offers.Operation {
	w.t.Helper()
	op, _, err := w.service.Propose(w.ctx, w.request(run, tool, args))
	w.must(err)
	return op
}

func (w *permitted) emails(run string, to ...string) offers.Operation {
	w.t.Helper()
	return w.does(run, "email.send", emailTo(to...))
}

// fresh is a clean run of a new message.
func (w *permitted) fresh(p people.Person) string {
	w.t.Helper()
	m := w.says(p, "what is new")
	w.must(w.Store.Pass(w.ctx, pass(m)))
	return m.RunID
}

func (w *permitted) allowed(op offers.Operation, reason gate.Reason) {
	w.t.Helper()
	if op.Decision != "allow" || op.Reason != string(reason) || op.State != offers.OpAllowed || op.Offer != nil {
		w.t.Fatalf("%s %s %s, want allow %s", op.Decision, op.Reason, op.State, reason)
	}
}

func (w *permitted) asked(op offers.Operation, reason gate.Reason) {
	w.t.Helper()
	if op.Decision != "ask" || op.Reason != string(reason) || op.Offer == nil {
		w.t.Fatalf("%s %s, want ask %s", op.Decision, op.Reason, reason)
	}
}

func (w *permitted) begins(op offers.Operation) error {
	_, err := w.Store.Begin(w.ctx, offers.BeginRequest{AccountID: op.AccountID, OperationID: op.ID, ArgsSum: sum(w.t, offers.Offer{ArgsSHA256: op.ArgsSHA256}), By: "exec"})
	return err
}

// saidTests hold what a person lets happen without a question: how it comes about, what it covers, and how it ends.
func saidTests(t *testing.T, open Open) {
	t.Run("Invariant02_EachOfSeveralOnce", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, once("Dana", "Sam Lee"))
		w.allowed(w.emails(m.RunID, "dana@example.test"), gate.ReasonSaidIntent)
		w.asked(w.emails(m.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
		w.asked(w.emails(m.RunID, "dana@example.test", "sam@example.test"), gate.ReasonFloorSendOutside)
		w.allowed(w.emails(m.RunID, "sam@example.test"), gate.ReasonSaidIntent)
		w.asked(w.emails(m.RunID, "sam@example.test"), gate.ReasonFloorSendOutside)
		equal(t, "served", w.only(w.owner).Served, []string{"Dana", "Sam Lee"})
	})
	t.Run("AskedOnceDoneOnce", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, once("Dana"))
		p := w.only(w.owner)
		if p.How != offers.Once || p.MessageID != m.MessageID || p.Number != 1 || p.MaxCalls != 1 || p.Used != 0 || p.GrantedAt == nil ||
			!p.EndsAt.Equal(p.GivenAt.Add(said.DefaultWindow)) || p.Revoked || p.PersonID != w.owner.ID || p.AccountID != people.DefaultAccount {
			t.Fatalf("permission %+v", p)
		}
		equal(t, "addresses", p.Addresses(), []string{"dana@example.test"})
		op := w.emails(m.RunID, "dana@example.test")
		w.allowed(op, gate.ReasonSaidIntent)
		if op.PermissionID != p.ID {
			t.Fatalf("spent from %q", op.PermissionID)
		}
		if p = w.only(w.owner); p.Used != 1 || p.UsedAt == nil {
			t.Fatalf("permission %+v", p)
		}
		rows := w.rows(w.owner.ID)
		var body offers.LedgerBody
		w.must(json.Unmarshal(rows[len(rows)-1].Body, &body))
		want := offers.LedgerBody{Operation: op.ID, Tool: "email.send", ArgsSHA256: op.ArgsSHA256, Decision: "allow", Reason: "SAID_INTENT", Rule: "3",
			Tier: gate.TierOwner, Capability: string(gate.CapNetworkSend), Permission: p.ID}
		equal(t, "ledger", body, want)
		w.must(w.begins(op))
		w.asked(w.emails(m.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("Invariant02_BothAtOnceAreBothServed", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, once("Dana", "sam@example.test"))
		w.allowed(w.emails(m.RunID, "dana@example.test", "sam@example.test"), gate.ReasonSaidIntent)
		w.asked(w.emails(m.RunID, "sam@example.test"), gate.ReasonFloorSendOutside)
		w.asked(w.emails(m.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("NobodyInDoubt", func(t *testing.T) {
		w := newPermitted(t, open)
		for _, in := range []said.Intent{once("Sam"), once("Robin"), once("Dana", "Sam"), once(), standing("Sam")} {
			w.asks(w.owner, in)
		}
		if list := w.has(w.owner); len(list) != 0 {
			t.Fatalf("permissions %+v", list)
		}
		w.wantTexts(w.owner)
	})
	t.Run("Invariant02_OnlyWhereAskingIsApproving", func(t *testing.T) {
		w := newPermitted(t, open)
		granted := w.asks(w.owner, once("Dana"))
		w.must(w.Store.SetAskingIsApproving(w.ctx, people.DefaultAccount, false))
		w.asked(w.emails(granted.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
		m := w.asks(w.owner, once("Dana"))
		w.only(w.owner) // the one of before
		w.asked(w.emails(m.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("Invariant02_NeitherTaintedNorTheShortWay", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, once("Dana"))
		r := w.request("", "email.send", emailTo("dana@example.test"))
		r.Call, r.PersonID = callOffer, w.owner.ID
		op, _, err := w.service.Propose(w.ctx, r)
		w.must(err)
		w.asked(op, gate.ReasonFloorSendOutside)
		w.must1(w.Store.Taint(w.ctx, people.DefaultAccount, m.RunID))
		w.asked(w.emails(m.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
		if p := w.only(w.owner); p.Used != 0 {
			t.Fatalf("used %d times", p.Used)
		}
	})
	t.Run("Invariant02_DeletesAndUnknownToolsAlwaysAsk", func(t *testing.T) {
		w := newPermitted(t, open)
		run := w.fresh(w.owner)
		for _, kind := range []said.Kind{said.KindSend, said.KindPost, said.KindActOut, said.KindChange} {
			p, err := offers.Commanded(people.DefaultAccount, w.owner.ID, said.Intent{Kind: kind, Channel: said.ChannelNone, To: []string{"dana@example.test"}})
			w.must(err)
			_, err = w.Store.Grant(w.ctx, p)
			w.must(err)
		}
		w.asked(w.does(run, "contacts.delete", `{"contact_id":"dana@example.test"}`), gate.ReasonFloorDeletes)
		w.asked(w.does(run, "mail.blast", `{"to":["dana@example.test"]}`), gate.ReasonFloorUnknownTool)
		w.asked(w.does(run, "rules.create", `{"trigger":"always","action":"send it all","to":["dana@example.test"]}`), gate.ReasonFloorStandingRule)
	})
	t.Run("Invariant02_AnEditedContactWidensNothing", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, said.Intent{Kind: said.KindSend, Channel: said.ChannelEmail, To: []string{"Dana"}, Count: 5, Window: said.DefaultWindow})
		w.contacts("mallory@example.test", "dana@example.test")
		w.asked(w.emails(m.RunID, "mallory@example.test"), gate.ReasonFloorSendOutside)
		w.asked(w.emails(m.RunID, "dana@example.test", "mallory@example.test"), gate.ReasonFloorSendOutside)
		w.contacts()
		w.allowed(w.emails(m.RunID, "dana@example.test"), gate.ReasonSaidIntent)
	})
	t.Run("Invariant02_ForThatPersonsRunsAlone", func(t *testing.T) {
		w := newPermitted(t, open)
		w.asks(w.owner, said.Intent{Kind: said.KindSend, Channel: said.ChannelEmail, To: []string{"Dana"}, Count: 5, Window: said.DefaultWindow})
		another := w.person(gate.TierOwner)
		w.asked(w.emails(w.fresh(another), "dana@example.test"), gate.ReasonFloorSendOutside)
		child, err := w.Store.StartRun(w.ctx, people.DefaultAccount, offers.StartCause{ParentRunID: w.fresh(w.owner)})
		w.must(err)
		w.allowed(w.emails(child.ID, "dana@example.test"), gate.ReasonSaidIntent)
		w.must(w.Store.SetTier(w.ctx, people.DefaultAccount, w.owner.ID, gate.TierPaired))
		if op := w.emails(child.ID, "dana@example.test"); op.Decision != "refuse" || op.Reason != string(gate.ReasonCapabilityDenied) {
			t.Fatalf("%s %s", op.Decision, op.Reason)
		}
	})
	t.Run("Invariant02_Expired", func(t *testing.T) {
		w := newPermitted(t, open)
		w.asks(w.owner, once("Dana"))
		w.Advance(said.DefaultWindow)
		w.asked(w.emails(w.fresh(w.owner), "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("Invariant02_Revoked", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, said.Intent{Kind: said.KindSend, Channel: said.ChannelEmail, To: []string{"Dana"}, Count: 5, Window: said.DefaultWindow})
		op := w.emails(m.RunID, "dana@example.test")
		w.allowed(op, gate.ReasonSaidIntent)
		w.AddAccount(other)
		p := w.only(w.owner)
		_, err := w.Store.Revoke(w.ctx, other, p.ID)
		w.wantErr(err, offers.ErrNotFound)
		ended, err := w.Second().Revoke(w.ctx, people.DefaultAccount, p.ID)
		w.must(err)
		if !ended.Revoked || ended.RevokedBy != offers.RevokedByOwner {
			t.Fatalf("permission %+v", ended)
		}
		w.asked(w.emails(m.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
		// What was allowed by it and has not begun does not begin any more.
		w.wantErr(w.begins(op), offers.ErrNotApproved)
		again, err := w.Store.Revoke(w.ctx, people.DefaultAccount, strings.ToUpper(p.ID))
		w.must(err)
		equal(t, "revoked again", again, ended)
		for _, id := range []string{offers.NewID(), "nonsense"} {
			_, err := w.Store.Revoke(w.ctx, people.DefaultAccount, id)
			w.wantErr(err, offers.ErrNotFound)
		}
	})
	t.Run("Invariant06_NotPickedUpInTime", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, once("Dana"))
		op := w.emails(m.RunID, "dana@example.test")
		w.allowed(op, gate.ReasonSaidIntent)
		w.Advance(offers.BeginWithin)
		w.wantErr(w.begins(op), offers.ErrNotApproved)
	})
	t.Run("CheckingSpendsNothing", func(t *testing.T) {
		w := newPermitted(t, open)
		w.asks(w.owner, once("Dana"))
		args, _, err := offers.Canonical([]byte(emailTo("dana@example.test")))
		w.must(err)
		for range 3 {
			f, err := w.Store.FactsOf(w.ctx, people.DefaultAccount, w.owner.ID, []string{"dana@example.test"})
			w.must(err)
			f.Run = offers.Run{Tier: gate.TierOwner, Interactive: true}
			d := w.service.Check(f, gate.Operation{Kind: gate.KindToolCall, Tool: "email.send", Args: args})
			if d.Answer != gate.Allow || d.Reason != gate.ReasonSaidIntent || d.Grant != w.only(w.owner).ID {
				t.Fatalf("%+v", d)
			}
		}
		if p := w.only(w.owner); p.Used != 0 {
			t.Fatalf("used %d times", p.Used)
		}
	})
	t.Run("Invariant14_WhoseWordsPermit", func(t *testing.T) {
		w := newPermitted(t, open)
		for name, spoil := range map[string]func(p people.Person, m offers.Received){
			"paired": func(p people.Person, _ offers.Received) {
				w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, gate.TierPaired))
			},
			"suspended": func(p people.Person, _ offers.Received) {
				w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
			},
			"pending":   func(_ people.Person, m offers.Received) { w.Set("messages", m.MessageID, "trust", "pending") },
			"overtaken": func(p people.Person, _ offers.Received) { w.says(p, "never mind") },
			"lossy":     func(people.Person, offers.Received) {},
			"nothing":   func(people.Person, offers.Received) {},
		} {
			p := w.person(gate.TierOwner)
			in := inbound(p, "email Dana the report")
			in.Lossy = name == "lossy"
			m := w.receive(in)
			spoil(p, m)
			w.asksBy(m, once("Dana"), standing("Dana"))
			want := 0
			if name == "nothing" {
				want = 2
			}
			if list := w.has(p); len(list) != want {
				t.Errorf("%s: permissions %+v", name, list)
			}
		}
	})
	t.Run("TakenBack", func(t *testing.T) {
		w := newPermitted(t, open)
		before := w.asks(w.owner, once("Dana"))
		p, err := offers.Commanded(people.DefaultAccount, w.owner.ID, said.Intent{Kind: said.KindPost, To: []string{"#team"}})
		w.must(err)
		_, err = w.Store.Grant(w.ctx, p)
		w.must(err)
		wait := w.says(w.owner, "wait, no")
		w.asks(w.owner, once("Dana")) // decided before it
		req := pass(wait)
		req.TakesBack = true
		w.must(w.Store.Pass(w.ctx, req))
		var ended []bool
		for _, p := range w.has(w.owner) {
			ended = append(ended, p.Revoked)
		}
		equal(t, "ended", ended, []bool{true, false, false})
		w.allowed(w.emails(before.RunID, "dana@example.test"), gate.ReasonSaidIntent)
		w.asked(w.emails(before.RunID, "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("TakenBackByANoToAnOffer", func(t *testing.T) {
		w := newPermitted(t, open)
		m := w.asks(w.owner, once("Dana"))
		op := w.emails(m.RunID, "dana@example.test")
		w.allowed(op, gate.ReasonSaidIntent)
		o := w.shown(w.owner)
		w.Advance(MinRead)
		_, err := w.Store.CloseByReply(w.ctx, no(o, w.says(w.owner, "no, don't"), offers.Declined))
		w.must(err)
		if p := w.only(w.owner); !p.Revoked || p.RevokedBy != offers.RevokedByTaken {
			t.Errorf("permission %+v", p)
		}
		w.wantErr(w.begins(op), offers.ErrNotApproved)
	})
	t.Run("WordsEndWhatTheyName", func(t *testing.T) {
		w := newPermitted(t, open)
		for _, to := range []string{"dana@example.test", "sam@example.test"} {
			p, err := offers.Commanded(people.DefaultAccount, w.owner.ID, standing(to))
			w.must(err)
			_, err = w.Store.Grant(w.ctx, p)
			w.must(err)
		}
		m := w.says(w.owner, "stop emailing Dana")
		req := pass(m)
		req.Ends = func(p offers.Permission) bool { return p.Addresses()[0] == "dana@example.test" }
		w.must(w.Store.Pass(w.ctx, req))
		if list := w.has(w.owner); !list[0].Revoked || list[0].RevokedBy != offers.RevokedByText || list[1].Revoked {
			t.Errorf("%+v", list)
		}
		texts, err := w.Store.Texts(w.ctx, people.DefaultAccount, w.owner.ID)
		w.must(err)
		if texts[0].Kind != offers.TextReceipt || texts[0].Body != "Ended 1: send email to dana@example.test." {
			t.Errorf("%+v", texts[0])
		}
		w.allowed(w.emails(m.RunID, "sam@example.test"), gate.ReasonDirectSend)
		asked := w.emails(m.RunID, "dana@example.test")
		w.asked(asked, gate.ReasonFloorSendOutside)
		// A no to an offer can end one besides.
		w.sendAll()
		w.Advance(20 * MinRead)
		req2 := no(w.offer(asked.Offer.ID), w.says(w.owner, "no, and stop emailing Sam"), offers.Declined)
		req2.Ends = func(p offers.Permission) bool { return p.Addresses()[0] == "sam@example.test" }
		_, err = w.Store.CloseByReply(w.ctx, req2)
		w.must(err)
		w.asked(w.emails(m.RunID, "sam@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("StopEndsAll", func(t *testing.T) {
		w := newPermitted(t, open)
		theirs := w.person(gate.TierOwner)
		w.asks(theirs, once("Dana"))
		m := w.asks(w.owner, once("Dana"))
		op := w.emails(m.RunID, "dana@example.test")
		w.allowed(op, gate.ReasonSaidIntent)
		p, err := offers.Commanded(people.DefaultAccount, w.owner.ID, standing("sam@example.test"))
		w.must(err)
		_, err = w.Store.Grant(w.ctx, p)
		w.must(err)
		direct := w.emails(m.RunID, "sam@example.test")
		w.allowed(direct, gate.ReasonDirectSend)
		w.optOut(w.owner)
		for _, p := range w.has(w.owner) {
			if !p.Revoked || p.RevokedBy != offers.RevokedByText {
				t.Errorf("permission %+v", p)
			}
		}
		for _, op := range []offers.Operation{op, direct} {
			w.wantErr(w.begins(op), offers.ErrNotApproved)
		}
		if w.only(theirs).Revoked {
			t.Error("another person's permission is revoked")
		}
	})
	t.Run("Spending", func(t *testing.T) { spendTests(newPermitted(t, open)) })
	t.Run("Invariant04_TwoReplicasSpendOneOneOff", func(t *testing.T) {
		w := newPermitted(t, open)
		policy, err := gate.Sample()
		w.must(err)
		services := []*offers.Service{w.service, offers.NewService(w.Second(), policy, func(string) int { return 1600 })}
		for range 3 {
			m := w.asks(w.owner, once("Dana"))
			got := together(50, func(i int) result[offers.Operation] {
				op, _, err := services[i%2].Propose(w.ctx, w.request(m.RunID, "email.send", emailTo("dana@example.test")))
				return result[offers.Operation]{op, err}
			})
			n := 0
			for _, r := range got {
				w.must(r.err)
				if r.value.Decision == "allow" {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("one ask has let %d of %d calls happen", n, len(got))
			}
		}
		for _, p := range w.has(w.owner) {
			if p.Used != 1 {
				t.Fatalf("used %d times", p.Used)
			}
		}
	})
	t.Run("Direct", func(t *testing.T) { directTests(t, open) })
	t.Run("Standing", func(t *testing.T) { standingTests(t, open) })
	t.Run("Answers", func(t *testing.T) { answerTests(t, open) })
}

// spendTests hold every condition of the spending itself, under plans that take a permission whatever was read of it.
func spendTests(w *permitted) {
	grant := func(p people.Person) offers.Permission {
		w.t.Helper()
		c, err := offers.Commanded(people.DefaultAccount, p.ID, said.Intent{Kind: said.KindPost, To: []string{"#team"}, Count: 1, Until: w.facts(w.proposal(p)).Now.Add(time.Hour)})
		w.must(err)
		c, err = w.Store.Grant(w.ctx, c)
		w.must(err)
		return c
	}
	// tries proposes with a plan that rests on the permission unless it is barred.
	tries := func(w *world, p people.Person, id string) offers.Operation {
		w.t.Helper()
		pr := w.proposal(p)
		op, _, err := w.Store.Propose(w.ctx, pr, func(f offers.Facts) (offers.Plan, error) {
			plan, err := Ask(f, pr)
			if len(f.Barred) == 0 {
				plan.Offer, plan.Decision.Answer, plan.Decision.Reason, plan.Decision.Grant = nil, gate.Allow, gate.ReasonSaidIntent, id
			} else {
				equal(w.t, "barred", f.Barred, []string{id})
			}
			return plan, err
		})
		w.must(err)
		return op
	}
	for name, spoil := range map[string]func(p people.Person, g offers.Permission){
		"Granted": func(people.Person, offers.Permission) {},
		"Invariant02_Revoked": func(_ people.Person, g offers.Permission) {
			_, err := w.Store.Revoke(w.ctx, people.DefaultAccount, g.ID)
			w.must(err)
		},
		"Invariant02_UsedUp":     func(p people.Person, g offers.Permission) { tries(w.world, p, g.ID) },
		"Invariant02_Expired":    func(people.Person, offers.Permission) { w.Advance(time.Hour) },
		"Invariant02_NotGranted": func(_ people.Person, g offers.Permission) { w.Set("permissions", g.ID, "granted_at", nil) },
		"Invariant02_AnotherPerson": func(_ people.Person, g offers.Permission) {
			w.Set("permissions", g.ID, "person_id", w.person(gate.TierOwner).ID)
		},
	} {
		w.run(name, func(in *world) {
			p := in.person(gate.TierOwner)
			g := grant(p)
			spoil(p, g)
			op := tries(in, p, g.ID)
			if want := map[bool]string{true: "allow", false: "ask"}[name == "Granted"]; op.Decision != want {
				in.t.Fatalf("%s, want %s", op.Decision, want)
			}
			if (op.PermissionID == g.ID) != (name == "Granted") || op.Decision == "ask" && op.PermissionID != "" {
				in.t.Fatalf("spent from %q", op.PermissionID)
			}
		})
	}
	w.run("APlanThatInsists", func(in *world) {
		p := in.person(gate.TierOwner)
		pr := in.proposal(p)
		_, _, err := in.Store.Propose(in.ctx, pr, decider(pr, answer(gate.Allow, gate.ReasonSaidIntent), func(d *offers.Plan) { d.Decision.Grant = offers.NewID() }))
		if err == nil {
			in.t.Fatal("an allow that rests on nothing is stored")
		}
		if rows := in.rows(p.ID); len(rows) != 0 {
			in.t.Fatalf("%d rows in the ledger", len(rows))
		}
	})
}

// directTests hold the direct-send list.
func directTests(t *testing.T, open Open) {
	listed := func(w *permitted, until time.Time, to ...string) offers.Permission {
		w.t.Helper()
		in := standing(to...)
		in.Channel, in.Until = said.ChannelNone, until
		p, err := offers.Commanded(people.DefaultAccount, w.owner.ID, in)
		w.must(err)
		p, err = w.Store.Grant(w.ctx, p)
		w.must(err)
		if p.How != offers.Direct || p.GrantedAt == nil || p.MaxCalls != 0 {
			w.t.Fatalf("permission %+v", p)
		}
		return p
	}
	t.Run("SendsGoInEveryAccount", func(t *testing.T) {
		w := newPermitted(t, open)
		w.must(w.Store.SetAskingIsApproving(w.ctx, people.DefaultAccount, false))
		listed(w, time.Time{}, "dana@example.test", "sam@example.test")
		run := w.fresh(w.owner)
		for range 3 {
			w.allowed(w.emails(run, "dana@example.test", "sam@example.test"), gate.ReasonDirectSend)
		}
		w.asked(w.emails(run, "dana@example.test", "mallory@example.test"), gate.ReasonFloorSendOutside)
		w.asked(w.does(run, "payments.send", `{"to":"dana@example.test","amount":5,"currency":"EUR"}`), gate.ReasonFloorPays)
		w.asked(w.emails(w.fresh(w.person(gate.TierOwner)), "dana@example.test"), gate.ReasonFloorSendOutside)
		op := w.emails(run, "dana@example.test")
		w.must1(w.Store.Taint(w.ctx, people.DefaultAccount, run))
		w.asked(w.emails(run, "dana@example.test"), gate.ReasonFloorSendOutside)
		w.Advance(offers.BeginWithin)
		w.wantErr(w.begins(op), offers.ErrNotApproved)
	})
	t.Run("Invariant02_Revoked", func(t *testing.T) {
		w := newPermitted(t, open)
		p := listed(w, time.Time{}, "dana@example.test")
		op := w.emails(w.fresh(w.owner), "dana@example.test")
		bundle := w.does(w.fresh(w.owner), "bundle", `{"parts":[{"tool":"tasks.add","args":{"title":"a"}},{"tool":"email.send","args":`+emailTo("dana@example.test")+`}]}`)
		for _, op := range []offers.Operation{op, bundle} {
			w.allowed(op, gate.ReasonDirectSend)
		}
		_, err := w.Store.Revoke(w.ctx, people.DefaultAccount, p.ID)
		w.must(err)
		w.asked(w.emails(w.fresh(w.owner), "dana@example.test"), gate.ReasonFloorSendOutside)
		// What was allowed by it and has not begun does not begin any more.
		for _, op := range []offers.Operation{op, bundle} {
			w.wantErr(w.begins(op), offers.ErrNotApproved)
		}
		// What another entry allows from now on does.
		w.Advance(time.Second)
		listed(w, time.Time{}, "sam@example.test")
		op = w.emails(w.fresh(w.owner), "sam@example.test")
		w.allowed(op, gate.ReasonDirectSend)
		w.must(w.begins(op))
	})
	t.Run("Invariant02_Expired", func(t *testing.T) {
		w := newPermitted(t, open)
		until := w.facts(w.proposal(w.owner)).Now.Add(time.Hour)
		listed(w, until, "dana@example.test")
		w.allowed(w.emails(w.fresh(w.owner), "dana@example.test"), gate.ReasonDirectSend)
		w.Advance(time.Hour)
		w.asked(w.emails(w.fresh(w.owner), "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("OnlyAnOwnerOfTheAccountHasOne", func(t *testing.T) {
		w := newPermitted(t, open)
		w.AddAccount(other)
		theirs := w.personAt(other, gate.TierOwner, people.Binding{Address: w.address(), OurNumber: Ours})
		for _, personID := range []string{w.person(gate.TierPaired).ID, theirs.ID, offers.NewID()} {
			p, err := offers.Commanded(people.DefaultAccount, personID, standing("dana@example.test"))
			w.must(err)
			_, err = w.Store.Grant(w.ctx, p)
			w.wantErr(err, offers.ErrNotFound)
		}
	})
}

// standingTests hold what is asked for by text and goes on: it is an offer of its own.
func standingTests(t *testing.T, open Open) {
	// offered has the owner ask for a standing permission, and shows the offer that it becomes.
	offered := func(w *permitted, in said.Intent) offers.Offer {
		w.t.Helper()
		w.asks(w.owner, in)
		list, err := w.Store.Offers(w.ctx, people.DefaultAccount, offers.Filter{PersonID: w.owner.ID, Limit: 1})
		w.must(err)
		if len(list) != 1 || list[0].Tool != gate.ToolPermissionGrant {
			w.t.Fatalf("offers %+v", list)
		}
		return w.opened(list[0])
	}
	says := func(w *permitted, o offers.Offer) { w.t.Helper(); w.wins(yes(w.offer(o.ID), w.says(w.owner, "yes"))) }
	t.Run("Invariant14_NeedsItsOwnYes", func(t *testing.T) {
		w := newPermitted(t, open)
		w.must(w.Store.SetAskingIsApproving(w.ctx, people.DefaultAccount, false)) // the direct-send list counts all the same
		o := offered(w, standing("Dana"))
		p := w.only(w.owner)
		if p.GrantedAt != nil || p.How != offers.Direct || p.OperationID != o.OperationID || p.Number != 1 {
			t.Fatalf("permission %+v", p)
		}
		wantText := "Let me send email to dana@example.test without asking you first, as often as there is reason to, until you end it.\n" +
			"To end it later, text: revoke 1\nFrom now on this lets me send email to dana@example.test without a question. Reply YES or NO."
		if o.ShownText != wantText || o.Label != "allow me to send email to Dana" || !strings.HasSuffix(o.ShownText, o.AskLine) ||
			string(o.Args) != `{"channel":"email","how":"direct","kind":"send","number":1,"to":["dana@example.test"]}` || o.TTL != offers.OutwardTTL {
			t.Fatalf("label %q, args %s, text\n%s", o.Label, o.Args, o.ShownText)
		}
		run := w.fresh(w.owner)
		w.asked(w.emails(run, "dana@example.test"), gate.ReasonFloorSendOutside)
		w.drop()
		says(w, o)
		w.wantOp(o.OperationID, offers.OpApproved)
		w.asked(w.emails(run, "dana@example.test"), gate.ReasonFloorSendOutside) // not before it is granted
		w.drop()
		// It is for nobody to begin but the service.
		w.wantErr(w.begins(w.operation(o.OperationID)), offers.ErrNotApproved)
		before := len(w.rows(w.owner.ID))
		w.due("grant", w.Store.GrantDue, 1)
		w.due("grant", w.Store.GrantDue, 0)
		w.wantOp(o.OperationID, offers.OpSucceeded)
		var kinds []ledger.Kind
		for _, r := range w.rows(w.owner.ID)[before:] {
			kinds = append(kinds, r.Kind)
		}
		equal(t, "ledger", kinds, []ledger.Kind{ledger.Begun, ledger.Result})
		if p := w.only(w.owner); p.GrantedAt == nil || !p.Live(p.GrantedAt.Add(time.Minute)) {
			t.Fatalf("permission %+v", p)
		}
		list, err := w.Store.Texts(w.ctx, people.DefaultAccount, w.owner.ID)
		w.must(err)
		if x := list[len(list)-1]; x.Kind != offers.TextReceipt || x.Body != "Allowed: I send email to dana@example.test without asking, as often as there is reason to, until you end it. To end it, text: revoke 1" {
			t.Fatalf("%s: %s", x.Kind, x.Body)
		}
		for range 2 {
			w.allowed(w.emails(run, "dana@example.test"), gate.ReasonDirectSend)
		}
		for _, e := range w.feed() {
			var d offers.OperationData
			if e.Type == offers.OperationApproved && json.Unmarshal(e.Data, &d) == nil && d.Operation.Tool == gate.ToolPermissionGrant {
				t.Error("an agent is told to begin what is the service's own")
			}
		}
	})
	t.Run("WithItsLimits", func(t *testing.T) {
		w := newPermitted(t, open)
		until := w.facts(w.proposal(w.owner)).Now.Add(48 * time.Hour).Truncate(time.Second)
		w.sendAll()
		in := said.Intent{Kind: said.KindPay, To: []string{"Dana"}, Channel: said.ChannelNone, Standing: true, AmountMax: "200", Currency: "EUR", Count: 2, Until: until}
		o := offered(w, in)
		line, _, _ := strings.Cut(o.ShownText, "\n")
		want := "Let me pay dana@example.test, at most 200 EUR each time without asking you first, 2 times, until " + until.UTC().Format("2 Jan 2006 15:04 UTC") + "."
		if line != want {
			t.Fatalf("%q, want %q", line, want)
		}
		says(w, o)
		w.due("grant", w.Store.GrantDue, 1)
		w.sendAll()
		run := w.fresh(w.owner)
		pay := func(amount string) offers.Operation {
			w.t.Helper()
			return w.does(run, "payments.send", `{"to":"dana@example.test","amount":"`+amount+`","currency":"EUR","note":"n`+fmt.Sprint(serial.Add(1))+`"}`)
		}
		w.asked(pay("200.01"), gate.ReasonFloorPays)
		w.allowed(pay("200"), gate.ReasonSaidIntent)
		w.allowed(pay("12.50"), gate.ReasonSaidIntent)
		w.asked(pay("1"), gate.ReasonFloorPays)
	})
	t.Run("NothingIsAskedThatWouldCountForNothing", func(t *testing.T) {
		w := newPermitted(t, open)
		w.must(w.Store.SetAskingIsApproving(w.ctx, people.DefaultAccount, false))
		w.asks(w.owner, said.Intent{Kind: said.KindPay, To: []string{"Dana"}, Standing: true, AmountMax: "200", Currency: "EUR"})
		w.wantOffers(w.owner, 0)
		if list := w.has(w.owner); len(list) != 0 {
			t.Fatalf("permissions %+v", list)
		}
	})
	t.Run("TheTextIsEnoughWhereTheAccountSaysSo", func(t *testing.T) {
		w := newPermitted(t, open)
		w.must(w.Store.SetStandingByText(w.ctx, people.DefaultAccount, offers.StandingDirect))
		w.wantErr(w.Store.SetStandingByText(w.ctx, "nobody", offers.StandingDirect), people.ErrNoAccount)
		m := w.asks(w.owner, standing("Dana"))
		w.wantOffers(w.owner, 0)
		w.allowed(w.emails(m.RunID, "dana@example.test"), gate.ReasonDirectSend)
	})
	t.Run("Invariant14_NoYesNoPermission", func(t *testing.T) {
		for name, end := range map[string]func(w *permitted, o offers.Offer){
			"Declined": func(w *permitted, o offers.Offer) { w.close(no(o, w.says(w.owner, "no"), offers.Declined)) },
			"Withdrawn": func(w *permitted, o offers.Offer) {
				_, err := w.Store.Withdraw(w.ctx, people.DefaultAccount, o.ID, offers.Closer{By: offers.ByAgent})
				w.must(err)
			},
			"Expired": func(w *permitted, o offers.Offer) {
				w.Advance(offers.OutwardTTL)
				w.due("expire", w.Store.ExpireDue, 1)
			},
			"Superseded": func(w *permitted, o offers.Offer) {
				r := w.request(w.fresh(w.owner), "email.send", emailTo("dana@example.test"))
				r.Supersedes = o.ID
				op, _, err := w.service.Propose(w.ctx, r)
				w.must(err)
				w.asked(op, gate.ReasonFloorSendOutside)
				w.wantState(o.ID, offers.Superseded)
				w.wins(yes(w.opened(*op.Offer), w.says(w.owner, "yes"))) // to what is on the screen by now
			},
			"TheRunThatAsked": func(w *permitted, o offers.Offer) {
				list, err := w.Store.Offers(w.ctx, people.DefaultAccount, offers.Filter{PersonID: w.owner.ID})
				w.must(err)
				if list[0].RootRunID == "" || list[0].RootRunID != list[0].RunID {
					w.t.Fatalf("run %+v", list[0])
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				w := newPermitted(t, open)
				o := offered(w, standing("Dana"))
				end(w, o)
				w.due("grant", w.Store.GrantDue, 0)
				if p := w.only(w.owner); p.GrantedAt != nil {
					t.Fatalf("permission %+v", p)
				}
				w.asked(w.emails(w.fresh(w.owner), "dana@example.test"), gate.ReasonFloorSendOutside)
			})
		}
	})
	t.Run("Invariant14_NotAnyMore", func(t *testing.T) {
		for name, end := range map[string]func(w *permitted, o offers.Offer){
			"Revoked": func(w *permitted, _ offers.Offer) {
				_, err := w.Store.Revoke(w.ctx, people.DefaultAccount, w.only(w.owner).ID)
				w.must(err)
			},
			"Suspended": func(w *permitted, _ offers.Offer) {
				w.must(w.Store.SetState(w.ctx, people.DefaultAccount, w.owner.ID, people.Suspended))
			},
			"NoOwner": func(w *permitted, _ offers.Offer) {
				w.must(w.Store.SetTier(w.ctx, people.DefaultAccount, w.owner.ID, gate.TierPaired))
			},
			"TooLate": func(w *permitted, _ offers.Offer) { w.Advance(offers.BeginWithin) },
		} {
			t.Run(name, func(t *testing.T) {
				w := newPermitted(t, open)
				o := offered(w, standing("Dana"))
				says(w, o)
				end(w, o)
				n, want := 1, offers.OpFailed
				if name == "TooLate" {
					n, want = 0, offers.OpApproved
				}
				w.due("grant", w.Store.GrantDue, n)
				w.wantOp(o.OperationID, want)
				if p := w.only(w.owner); p.GrantedAt != nil {
					t.Fatalf("permission %+v", p)
				}
			})
		}
	})
}

// drop withdraws the newest offer, which a test has made in passing.
func (w *permitted) drop() {
	w.t.Helper()
	list, err := w.Store.Offers(w.ctx, people.DefaultAccount, offers.Filter{PersonID: w.owner.ID, Limit: 1})
	w.must(err)
	_, err = w.Store.Withdraw(w.ctx, people.DefaultAccount, list[0].ID, offers.Closer{By: offers.ByAgent})
	w.must(err)
	w.sendAll()
	w.Advance(20 * MinRead)
}

// answerTests hold what code answers about permissions, and how words end them.
func answerTests(t *testing.T, open Open) {
	answer := func(w *permitted, text string, ends func(offers.Permission) bool) offers.PermissionsAnswer {
		w.t.Helper()
		m := w.says(w.owner, text)
		return offers.PermissionsAnswer{MessageID: m.MessageID, PersonID: w.owner.ID, Reading: pass(m).Reading, Hourly: 3, Ends: ends, Say: offers.PermissionList}
	}
	give := func(w *permitted, a offers.PermissionsAnswer) string {
		w.t.Helper()
		w.must(w.Store.AnswerPermissions(w.ctx, a))
		if !w.decided(a.MessageID) {
			w.t.Fatal("the message is still undecided")
		}
		list, err := w.Store.Texts(w.ctx, people.DefaultAccount, w.owner.ID)
		w.must(err)
		if len(list) == 0 {
			return ""
		}
		return string(list[len(list)-1].Kind) + ": " + list[len(list)-1].Body
	}
	numbered := func(n ...int) func(offers.Permission) bool {
		return func(p offers.Permission) bool {
			for _, i := range n {
				if i == p.Number {
					return true
				}
			}
			return false
		}
	}
	grant := func(w *permitted, in said.Intent) {
		w.t.Helper()
		p, err := offers.Commanded(people.DefaultAccount, w.owner.ID, in)
		w.must(err)
		_, err = w.Store.Grant(w.ctx, p)
		w.must(err)
	}
	const own = "What can be undone and touches only your own data I do without asking."
	t.Run("FromTheTable", func(t *testing.T) {
		w := newPermitted(t, open)
		if got, want := give(w, answer(w, "permissions", nil)), "notice: I send, pay, post and share nothing without asking you. "+own; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		grant(w, standing("dana@example.test"))
		grant(w, said.Intent{Kind: said.KindPost, Channel: said.ChannelSlack, To: []string{"#team"}, Count: 3})
		want := "notice: Without asking I may:\n1: send email to dana@example.test, as often as there is reason to, until you end it\n" +
			"2: publish to #team, 3 times, until you end it\nTo end one, text revoke and its number; to end all, text: revoke all\n" + own
		if got := give(w, answer(w, "permissions", nil)); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		w.must(w.Store.SetAskingIsApproving(w.ctx, people.DefaultAccount, false)) // the second counts for nothing then
		if got := give(w, answer(w, "permissions", nil)); strings.Contains(got, "publish") || !strings.Contains(got, "1: send email") {
			t.Fatal(got)
		}
		// Three answers within the hour were all.
		give(w, answer(w, "permissions", nil))
		if n := len(w.texts(w.owner.ID)); n != 3 {
			t.Fatalf("%d texts", n)
		}
		w.Advance(time.Hour)
		give(w, answer(w, "permissions", nil))
		if n := len(w.texts(w.owner.ID)); n != 4 {
			t.Fatalf("%d texts", n)
		}
	})
	t.Run("EndsByNumber", func(t *testing.T) {
		w := newPermitted(t, open)
		for _, a := range []string{"dana@example.test", "sam@example.test", "ray@example.test"} {
			grant(w, standing(a))
		}
		another := w.person(gate.TierOwner)
		p, err := offers.Commanded(people.DefaultAccount, another.ID, standing("dana@example.test"))
		w.must(err)
		_, err = w.Store.Grant(w.ctx, p)
		w.must(err)
		got := give(w, answer(w, "revoke 1 and 3", numbered(1, 3)))
		if !strings.HasPrefix(got, "receipt: Ended 1: send email to dana@example.test.\nEnded 3: send email to ray@example.test.\nWithout asking I may:\n2: ") {
			t.Fatal(got)
		}
		run := w.fresh(w.owner)
		w.asked(w.emails(run, "dana@example.test"), gate.ReasonFloorSendOutside)
		w.allowed(w.emails(run, "sam@example.test"), gate.ReasonDirectSend)
		if p := w.only(another); p.Revoked {
			t.Fatal("another person's permission has ended")
		}
		if p := w.has(w.owner)[0]; p.RevokedBy != offers.RevokedByText {
			t.Fatalf("permission %+v", p)
		}
		// A number that was given once is never given again.
		grant(w, standing("dana@example.test"))
		if p := w.has(w.owner)[3]; p.Number != 4 {
			t.Fatalf("number %d", p.Number)
		}
		if got := give(w, answer(w, "revoke 1", numbered(1))); !strings.HasPrefix(got, "notice: Without asking I may:\n2: ") {
			t.Fatal(got)
		}
	})
	t.Run("OneThatWaitsForItsYesEndsToo", func(t *testing.T) {
		w := newPermitted(t, open)
		w.asks(w.owner, standing("Dana"))
		w.sendAll()
		w.Advance(20 * MinRead)
		o := w.offerOf(w.only(w.owner))
		next := w.propose(w.proposal(w.owner))
		give(w, answer(w, "revoke 1", numbered(1)))
		list, err := w.Store.Texts(w.ctx, people.DefaultAccount, w.owner.ID)
		w.must(err)
		if receipt := list[len(list)-2]; receipt.Kind != offers.TextReceipt || receipt.OfferID != "" || strings.Contains(receipt.Body, "YES or NO") {
			t.Errorf("%+v asks for a yes to what has ended", receipt)
		}
		w.wantState(o.ID, offers.Withdrawn)
		w.wantOp(o.OperationID, offers.OpState(offers.Withdrawn))
		w.wantState(next.ID, offers.Sending)
		w.due("grant", w.Store.GrantDue, 0)
		w.asked(w.emails(w.fresh(w.owner), "dana@example.test"), gate.ReasonFloorSendOutside)
	})
	t.Run("OnceDecided", func(t *testing.T) {
		w := newPermitted(t, open)
		grant(w, standing("dana@example.test"))
		a := answer(w, "revoke 1", numbered(1))
		w.must(w.Store.Pass(w.ctx, pass(offers.Received{MessageID: a.MessageID, PersonID: a.PersonID})))
		got, err := why(w.Store.AnswerPermissions(w.ctx, a))
		w.must(err)
		if got != offers.WhyDecided || w.only(w.owner).Revoked {
			t.Fatalf("%s, %+v", got, w.only(w.owner))
		}
	})
}

// offerOf is the offer by which a permission was asked for.
func (w *permitted) offerOf(p offers.Permission) offers.Offer {
	w.t.Helper()
	return *w.operation(p.OperationID).Offer
}
