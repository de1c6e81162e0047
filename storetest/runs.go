package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// runTests hold where a run's authority and taint come from, and what is told of an account to the gate.
func runTests(t *testing.T, open Open) {
	start := func(w *world, c offers.StartCause) offers.Run {
		w.t.Helper()
		r, err := w.Store.StartRun(w.ctx, people.DefaultAccount, c)
		w.must(err)
		return r
	}
	derive := func(w *world, r offers.Run) offers.Run {
		w.t.Helper()
		return start(w, offers.StartCause{ParentRunID: r.ID})
	}
	refused := func(w *world, account string, c offers.StartCause, want error) {
		w.t.Helper()
		_, err := w.Store.StartRun(w.ctx, account, c)
		w.wantErr(err, want)
	}
	ofMessage := func(w *world, p people.Person) offers.Run {
		w.t.Helper()
		return start(w, offers.StartCause{MessageID: w.says(p, "email Dana").MessageID})
	}

	t.Run("AMessageHasOneRunForAnHour", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		m := w.says(p, "email Dana")
		r := start(w, offers.StartCause{MessageID: m.MessageID})
		if r.ID != m.RunID || r.PersonID != p.ID || r.Tier != gate.TierOwner || !r.Interactive || r.Tainted || r.RootID != r.ID || r.ParentID != "" ||
			r.Cause != (offers.Cause{MessageID: m.MessageID}) {
			t.Fatalf("run %+v", r)
		}
		w.Advance(offers.RunTTL - time.Second)
		equal(t, "the run again", start(w, offers.StartCause{MessageID: m.MessageID}), r)
		again, err := w.Second().StartRun(w.ctx, p.AccountID, offers.StartCause{MessageID: m.MessageID})
		w.must(err)
		equal(t, "the run of another replica", again, r)
		child := derive(w, r)
		w.Advance(time.Second)
		for _, c := range []offers.StartCause{{MessageID: m.MessageID}, {ParentRunID: r.ID}, {ParentRunID: child.ID}} {
			refused(w, p.AccountID, c, offers.ErrRunExpired)
		}
	})
	t.Run("NobodysMessageHasNone", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		stranger := w.receive(inbound(people.Person{Addresses: []people.Binding{{Address: "sms:+12025550190", OurNumber: Ours}}}, "hi"))
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		suspended := w.says(p, "hi")
		for _, c := range []offers.StartCause{
			{MessageID: stranger.MessageID}, {MessageID: suspended.MessageID}, {MessageID: offers.NewID()}, {MessageID: "nonsense"},
			{ParentRunID: offers.NewID()}, {ParentRunID: "nonsense"}, {},
		} {
			refused(w, p.AccountID, c, offers.ErrNotFound)
		}
	})
	t.Run("RunsAreTheAccounts", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		m := w.says(w.person(gate.TierOwner), "hi")
		for _, c := range []offers.StartCause{{MessageID: m.MessageID}, {ParentRunID: m.RunID}} {
			refused(w, other, c, offers.ErrNotFound)
		}
		_, err := w.Store.Taint(w.ctx, other, m.RunID)
		w.wantErr(err, offers.ErrNotFound)
		if start(w, offers.StartCause{MessageID: m.MessageID}).Tainted {
			t.Fatal("another account has tainted the run")
		}
	})
	t.Run("Invariant18_ADerivedRunIsItsParentsEqualAtMost", func(t *testing.T) {
		w := newWorld(t, open)
		for _, tier := range []string{gate.TierOwner, gate.TierPaired} {
			parent := ofMessage(w, w.person(tier))
			for range 3 {
				w.Advance(10 * time.Minute)
				child := derive(w, parent)
				if child.Tier != tier || child.PersonID != parent.PersonID || child.RootID != parent.RootID || child.ParentID != parent.ID ||
					child.Interactive || child.Tainted || child.ID == parent.ID || child.Cause != (offers.Cause{ParentRunID: parent.ID}) {
					t.Fatalf("derived %+v from %+v", child, parent)
				}
				if !child.ExpiresAt.Equal(parent.ExpiresAt) {
					t.Fatalf("a derived run lives until %s, its parent until %s", child.ExpiresAt, parent.ExpiresAt)
				}
				parent = child
			}
		}
	})
	t.Run("Invariant18_TaintMarksTheWholeRoot", func(t *testing.T) {
		w := newWorld(t, open)
		for _, which := range []string{"root", "child", "grandchild"} {
			p := w.person(gate.TierOwner)
			root := ofMessage(w, p)
			child := derive(w, root)
			family := map[string]offers.Run{"root": root, "child": child, "grandchild": derive(w, child)}
			bystander := ofMessage(w, p)
			r, err := w.Store.Taint(w.ctx, p.AccountID, family[which].ID)
			w.must(err)
			if !r.Tainted || r.ID != family[which].ID {
				t.Fatalf("tainted %+v", r)
			}
			for name, f := range family {
				pr := w.proposal(p)
				pr.RunID, pr.PersonID = f.ID, ""
				if !w.facts(pr).Run.Tainted || !derive(w, f).Tainted {
					t.Errorf("the %s was tainted; the %s, or what derives from it, is clean", which, name)
				}
			}
			if start(w, offers.StartCause{MessageID: bystander.Cause.MessageID}).Tainted {
				t.Errorf("a run of another message is tainted with the %s", which)
			}
		}
	})
	t.Run("NothingUnmarks", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		r := ofMessage(w, p)
		for range 2 {
			_, err := w.Store.Taint(w.ctx, p.AccountID, r.ID)
			w.must(err)
			pr := w.proposal(p)
			pr.RunID, pr.PersonID = r.ID, ""
			w.operate(pr, answer(gate.Allow, gate.ReasonReversibleOwnData))
			w.Advance(time.Minute)
			if !start(w, offers.StartCause{MessageID: r.Cause.MessageID}).Tainted {
				t.Fatal("the taint is gone")
			}
		}
		_, err := w.Store.Taint(w.ctx, p.AccountID, offers.NewID())
		w.wantErr(err, offers.ErrNotFound)
	})
	t.Run("AProposalTaints", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		for _, allowed := range []bool{true, false} {
			r := ofMessage(w, p)
			child := derive(w, r)
			pr := w.proposal(p)
			pr.RunID, pr.PersonID = child.ID, ""
			changes := []change{func(p *offers.Plan) { p.Taints = true }}
			if allowed {
				changes = append(changes, answer(gate.Allow, gate.ReasonReversibleOwnData))
			}
			w.operate(pr, changes...)
			if !start(w, offers.StartCause{MessageID: r.Cause.MessageID}).Tainted || !derive(w, child).Tainted {
				t.Errorf("allowed %v: what a proposal reads does not taint its root", allowed)
			}
		}
	})
	t.Run("TheGateOverRuns", func(t *testing.T) { gateOverRuns(newWorld(t, open), start, derive) })
	t.Run("Schedules", func(t *testing.T) { scheduleTests(newWorld(t, open), start, refused) })
	t.Run("Polled", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		_, hash := people.NewSecret()
		k := people.Key{ID: offers.NewID(), AccountID: p.AccountID, Name: "agent", Scope: people.ScopeAgent}
		w.must(w.Store.AddKey(w.ctx, k, hash))
		listens := func(want bool, when string) {
			t.Helper()
			got, err := w.Store.Listening(w.ctx, p.AccountID, p.ID)
			w.must(err)
			if got != want {
				t.Fatalf("%s: an agent listens: %v, want %v", when, got, want)
			}
		}
		listens(false, "before it ever asked")
		w.must(w.Store.Polled(w.ctx, offers.NewID())) // a key that is not there is nobody's concern
		w.must(w.Store.Polled(w.ctx, k.ID))
		listens(true, "just now")
		w.Advance(offers.PollMark + time.Second)
		w.must(w.Store.Polled(w.ctx, k.ID))
		w.Advance(offers.ListensFor - time.Second)
		listens(true, "within the time")
		w.Advance(time.Second)
		listens(false, "after the time")
		w.must(w.Store.Polled(w.ctx, k.ID))
		w.must(w.Store.RevokeKey(w.ctx, p.AccountID, k.ID))
		listens(false, "with a key that was revoked")
	})
	t.Run("TheOffersOwnKey", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		keys := [2]people.Key{}
		for i := range keys {
			_, hash := people.NewSecret()
			keys[i] = people.Key{ID: offers.NewID(), AccountID: p.AccountID, Name: "agent", Scope: people.ScopeAgent}
			w.must(w.Store.AddKey(w.ctx, keys[i], hash))
		}
		listens := func(want bool, when string) {
			t.Helper()
			got, err := w.Store.Listening(w.ctx, p.AccountID, p.ID)
			w.must(err)
			if got != want {
				t.Fatalf("%s: an agent listens: %v, want %v", when, got, want)
			}
		}
		pr := w.proposal(p)
		pr.KeyID = keys[0].ID
		w.operate(pr)
		w.sendAll()
		w.must(w.Store.Polled(w.ctx, keys[1].ID))
		listens(false, "another's key has read events")
		w.must(w.Store.Polled(w.ctx, keys[0].ID))
		listens(true, "the offer's own key has")
		w.Advance(offers.ListensFor)
		w.must(w.Store.Polled(w.ctx, keys[1].ID))
		listens(false, "its own key has not for a while")
		w.must(w.Store.Polled(w.ctx, keys[0].ID))
		w.must(w.Store.RevokeKey(w.ctx, p.AccountID, keys[0].ID))
		listens(false, "its own key was revoked")
	})
	t.Run("FactsOf", func(t *testing.T) {
		w := newWorld(t, open)
		_, err := w.Store.FactsOf(w.ctx, people.DefaultAccount, "", nil)
		w.wantErr(err, offers.ErrNotFound)
		paired := w.person(gate.TierPaired)
		_, err = w.Store.FactsOf(w.ctx, people.DefaultAccount, "", nil)
		w.wantErr(err, offers.ErrNotFound) // nobody whose authority could be meant
		first, second := w.person(gate.TierOwner), w.person(gate.TierOwner)
		reaches := []string{string(first.Addresses[0].Address), "sms:+12025550198"}
		f, err := w.Store.FactsOf(w.ctx, people.DefaultAccount, "", reaches)
		w.must(err)
		if f.Person.ID != first.ID || f.Person.Tier != gate.TierOwner || !f.Reachable || f.Address != first.Addresses[0].Address || f.Now.IsZero() || f.AskingIsApproving {
			t.Fatalf("facts %+v", f)
		}
		equal(t, "own addresses", f.OwnAddresses, reaches[:1])
		w.must(w.Store.SetState(w.ctx, first.AccountID, first.ID, people.Suspended))
		f, err = w.Store.FactsOf(w.ctx, people.DefaultAccount, "", nil)
		w.must(err)
		if f.Person.ID != second.ID {
			t.Fatal("a suspended owner stands for the account")
		}
		f, err = w.Store.FactsOf(w.ctx, people.DefaultAccount, first.ID, nil)
		w.must(err)
		if f.Reachable {
			t.Fatal("a suspended person can be reached")
		}
		f, err = w.Store.FactsOf(w.ctx, people.DefaultAccount, paired.ID, nil)
		w.must(err)
		if f.Person.Tier != gate.TierPaired {
			t.Fatalf("facts %+v", f)
		}
		w.AddAccount(other)
		for _, id := range []string{paired.ID, offers.NewID(), "nonsense"} {
			_, err = w.Store.FactsOf(w.ctx, other, id, nil)
			w.wantErr(err, offers.ErrNotFound)
		}
		if w.ledger(paired.ID) != nil || w.texts(paired.ID) != nil || w.events(paired.ID) != nil {
			t.Fatal("a question left something behind")
		}
	})
}

// gateOverRuns asks the real gate with the sample policy over runs of a store.
func gateOverRuns(w *world, start func(*world, offers.StartCause) offers.Run, derive func(*world, offers.Run) offers.Run) {
	policy, err := gate.Sample()
	w.must(err)
	service := offers.NewService(w.Store, policy, func(string) int { return 1600 })
	propose := func(w *world, r offers.Run, tool, args string) offers.Operation {
		w.t.Helper()
		n := serial.Add(1)
		op, _, err := service.Propose(w.ctx, offers.Request{
			AccountID: people.DefaultAccount, Call: "POST /v1/operations", Key: fmt.Sprint("run-", n), BodySum: offers.Digest{byte(n), byte(n >> 8)},
			RunID: r.ID, Kind: string(gate.KindToolCall), Tool: tool, Args: []byte(args),
		})
		w.must(err)
		return op
	}
	wantOp := func(w *world, op offers.Operation, decision string, reason gate.Reason) {
		w.t.Helper()
		if op.Decision != decision || op.Reason != string(reason) {
			w.t.Fatalf("%s is %s %s, want %s %s", op.Tool, op.Decision, op.Reason, decision, reason)
		}
	}
	own := func(p people.Person) string {
		return fmt.Sprintf(`{"to":[%q],"subject":"Note","body":"to myself"}`, p.Addresses[0].Address)
	}
	const outside = `{"to":["dana@example.test"],"subject":"Lunch","body":"Thursday"}`
	begun := func(w *world, p people.Person) offers.Run {
		return start(w, offers.StartCause{MessageID: w.says(p, "look at my mail").MessageID})
	}
	w.run("Invariant18_WhatWasReadCountsFromThenOn", func(w *world) {
		p := w.person(gate.TierOwner)
		r := begun(w, p)
		wantOp(w, propose(w, r, "email.send", own(p)), "allow", gate.ReasonReversibleOwnData)
		wantOp(w, propose(w, r, "lists.read", `{"list":"groceries"}`), "allow", gate.ReasonReversibleOwnData)
		wantOp(w, propose(w, r, "email.send", own(p)), "allow", gate.ReasonReversibleOwnData) // a list of one's own taints nothing
		child := derive(w, r)
		wantOp(w, propose(w, child, "email.read", `{"query":"invoices"}`), "allow", gate.ReasonReversibleOwnData)
		wantOp(w, propose(w, r, "email.send", own(p)), "ask", gate.ReasonTaintedOutward)
	})
	w.run("Invariant18_ADerivedRunAsksNobody", func(w *world) {
		p := w.person(gate.TierOwner)
		r := begun(w, p)
		child := derive(w, r)
		wantOp(w, propose(w, child, "email.send", outside), "refuse", gate.ReasonNoInteractivePath)
		wantOp(w, propose(w, child, "payments.send", `{"to":"Robin","amount":5,"currency":"EUR"}`), "refuse", gate.ReasonNoInteractivePath)
		wantOp(w, propose(w, r, "email.send", outside), "ask", gate.ReasonFloorSendOutside)
	})
	w.run("Invariant18_NeverMoreThanThePersonHasNow", func(w *world) {
		p := w.person(gate.TierOwner)
		r := begun(w, p)
		w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, gate.TierPaired))
		wantOp(w, propose(w, r, "email.send", outside), "refuse", gate.ReasonCapabilityDenied)
		wantOp(w, propose(w, derive(w, r), "email.send", outside), "refuse", gate.ReasonCapabilityDenied)
	})
	w.run("Invariant18_NeverMoreThanTheRunHasHad", func(w *world) {
		p := w.person(gate.TierPaired)
		r := begun(w, p)
		w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, gate.TierOwner))
		wantOp(w, propose(w, r, "email.send", outside), "refuse", gate.ReasonCapabilityDenied)
	})
	w.run("TheServicesOwnText", func(w *world) { sayTests(w) })
}

// sayTests hold message.send: an allowed text of an agent to its own person.
func sayTests(w *world) {
	send := func(w *world, m offers.Received, text string) (offers.Operation, error) {
		pr := w.proposal(people.Person{AccountID: people.DefaultAccount})
		pr.RunID, pr.PersonID, pr.Kind, pr.Tool, pr.Call = m.RunID, "", string(gate.KindOutboundMessage), gate.ToolMessageSend, "POST /v1/operations"
		op, _, err := w.Store.Propose(w.ctx, pr, decider(pr, answer(gate.Allow, gate.ReasonReplyAllowed), func(p *offers.Plan) { p.Say = text }))
		return op, err
	}
	textOf := func(w *world, op offers.Operation) offers.Text {
		w.t.Helper()
		var res struct {
			Status string
			Output struct {
				TextID string `json:"text_id"`
			}
		}
		w.must(json.Unmarshal(op.Result, &res))
		list, err := w.Store.Texts(w.ctx, op.AccountID, op.PersonID)
		w.must(err)
		i := slices.IndexFunc(list, func(x offers.Text) bool { return x.ID == res.Output.TextID })
		if op.State != offers.OpSucceeded || res.Status != "succeeded" || i < 0 {
			w.t.Fatalf("operation %s with result %s of %d texts", op.State, op.Result, len(list))
		}
		return list[i]
	}
	w.run("IsSentAndHasSucceeded", func(w *world) {
		p := w.person(gate.TierOwner)
		m := w.says(p, "where is it")
		op, err := send(w, m, "On its way.")
		w.must(err)
		if x := textOf(w, op); x.Body != "On its way." || x.Kind != offers.TextMessage || x.State != offers.TextQueued || x.OfferID != "" || x.Address != p.Addresses[0].Address {
			w.t.Fatalf("text %+v", x)
		}
		w.wantLedger(p, ledger.Allowed, ledger.Result)
		closed := slices.ContainsFunc(w.feed(), func(e seen) bool {
			var d offers.OperationData
			return e.Type == offers.OperationClosed && json.Unmarshal(e.Data, &d) == nil && d.Operation.ID == op.ID && d.Operation.State == offers.OpSucceeded
		})
		if !closed {
			w.t.Fatal("no event says that the text is in line")
		}
		_, err = w.Store.Begin(w.ctx, offers.BeginRequest{AccountID: p.AccountID, OperationID: op.ID, ArgsSum: sum(w.t, offers.Offer{ArgsSHA256: op.ArgsSHA256}), By: "exec"})
		w.wantErr(err, offers.ErrAlreadyBegun)
		w.sendAll()
	})
	// Whatever an agent says while an offer is open, the last thing on the screen is the offer's question.
	w.run("Invariant09_EndsWithTheOpenQuestion", func(w *world) {
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "who is Dana")
		w.must(w.Store.Pass(w.ctx, pass(m)))
		op, err := send(w, m, "Your sister.")
		w.must(err)
		x := textOf(w, op)
		if x.OfferID != o.ID || x.Body != offers.WithQuestion("Your sister.", o) || !strings.HasSuffix(x.Body, o.AskLine) {
			w.t.Fatalf("text %+v", x)
		}
		w.sendAll()
		w.refused(yes(w.offer(o.ID), w.says(p, "yes")), offers.WhyTooSoon) // the text has begun the reading time anew
		w.Advance(20 * MinRead)
		w.wins(yes(w.offer(o.ID), w.says(p, "yes")))
	})
	w.run("NobodyToTell", func(w *world) {
		p := w.person(gate.TierOwner)
		m := w.says(p, "STOP")
		w.must(w.Store.OptOut(w.ctx, offers.OptOutRequest{MessageID: m.MessageID, PersonID: p.ID, Reading: pass(m).Reading}))
		rows := len(w.rows(p.ID))
		_, err := send(w, m, "On its way.")
		w.wantErr(err, offers.ErrNoAddress)
		w.wantTexts(p)
		if n := len(w.rows(p.ID)); n != rows {
			w.t.Fatalf("%d rows in the ledger, %d before", n, rows)
		}
	})
}

// scheduleTests hold runs of what an approved operation has set up.
func scheduleTests(w *world, start func(*world, offers.StartCause) offers.Run, refused func(*world, string, offers.StartCause, error)) {
	named := func(p people.Person, name string) offers.StartCause {
		return offers.StartCause{Schedule: &offers.ScheduleRef{PersonID: p.ID, Name: name}}
	}
	// setUp has an operation approved, begun and finished. An empty run is the short way in, which counts as tainted.
	setUp := func(w *world, p people.Person, run, status, name string) {
		w.t.Helper()
		pr := w.proposal(p)
		if run != "" {
			pr.RunID, pr.PersonID = run, ""
		}
		o := w.opened(w.propose(pr, func(d *offers.Plan) { d.Decision.Capability = gate.CapReply }))
		w.wins(yes(o, w.says(p, "yes")))
		_, err := w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
		refused(w, p.AccountID, named(p, name), offers.ErrNotFound) // not before it is done
		_, err = w.Store.Finish(w.ctx, offers.FinishRequest{AccountID: p.AccountID, OperationID: o.OperationID, Result: offers.Result{Status: status}, SetsUp: name})
		w.must(err)
		w.sendAll()
		w.Advance(time.Minute)
	}
	for _, tier := range []string{gate.TierOwner, gate.TierPaired} {
		for _, tainted := range []bool{false, true} {
			w.run(fmt.Sprintf("Invariant18_TheCreatorsTierAndTaint/%s/%v", tier, tainted), func(w *world) {
				p := w.person(tier)
				run := ""
				if !tainted {
					run = w.says(p, "every night").RunID
				}
				setUp(w, p, run, "succeeded", "nightly")
				w.must(w.Store.SetTier(w.ctx, p.AccountID, p.ID, gate.TierOwner)) // what they became later adds nothing
				r := start(w, named(p, "nightly"))
				if r.Tier != tier || r.Tainted != tainted || r.PersonID != p.ID || r.RootID != r.ID || !r.Interactive ||
					r.Cause.Schedule == nil || *r.Cause.Schedule != (offers.ScheduleRef{PersonID: p.ID, Name: "nightly"}) {
					w.t.Fatalf("run %+v", r)
				}
				if again := start(w, named(p, "nightly")); again.ID == r.ID {
					w.t.Fatal("two turns of a schedule are one run")
				}
				w.Advance(offers.RunTTL)
				refused(w, p.AccountID, offers.StartCause{ParentRunID: r.ID}, offers.ErrRunExpired)
			})
		}
	}
	w.run("AFailureSetsUpNothing", func(w *world) {
		p := w.person(gate.TierOwner)
		setUp(w, p, "", "failed", "nightly")
		refused(w, p.AccountID, named(p, "nightly"), offers.ErrNotFound)
	})
	w.run("OfThisPersonAndAccountOnly", func(w *world) {
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		setUp(w, p, "", "succeeded", "weekly")
		w.AddAccount(other)
		for _, c := range []offers.StartCause{named(q, "weekly"), named(p, "Weekly"), named(p, ""), named(people.Person{ID: "nonsense"}, "weekly"), named(people.Person{}, "weekly")} {
			refused(w, p.AccountID, c, offers.ErrNotFound)
		}
		refused(w, other, named(p, "weekly"), offers.ErrNotFound)
	})
	w.run("Invariant18_SetUpAgainItStaysTainted", func(w *world) {
		p := w.person(gate.TierOwner)
		for i, run := range []string{"", w.says(p, "and again").RunID} {
			pr := w.proposal(p)
			if run != "" {
				pr.RunID, pr.PersonID = run, ""
			}
			o := w.opened(w.propose(pr))
			w.wins(yes(o, w.says(p, "yes")))
			_, err := w.Store.Begin(w.ctx, w.begin(o))
			w.must(err)
			_, err = w.Store.Finish(w.ctx, offers.FinishRequest{AccountID: p.AccountID, OperationID: o.OperationID, Result: offers.Result{Status: "succeeded"}, SetsUp: "daily"})
			w.must(err)
			w.sendAll()
			w.Advance(time.Minute)
			if !start(w, named(p, "daily")).Tainted {
				w.t.Fatalf("set up for the %d. time, it is clean", i+1)
			}
		}
	})
}

// citedTests hold the yes that a main model cites: a plain one wins; with one thing changed it does not, and leaves nothing.
func citedTests(t *testing.T, open Open) {
	t.Run("ACitedYesReleasesOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p, o, m := w.unresolved()
		c := yes(o, m)
		win, err := w.Store.ConsumeCited(w.ctx, c)
		w.must(err)
		if win.Repeat || win.Operation.State != offers.OpApproved || string(win.Operation.Args) != string(o.Args) {
			t.Fatalf("win %+v", win)
		}
		w.wantState(o.ID, offers.Consumed)
		w.wantLedger(p, ledger.Asked, ledger.Consumed)
		w.wantEvents(p, offers.OfferOpened, offers.ReplyUnresolved, offers.OfferClosed, offers.OperationApproved)
		was := w.trace(o)
		for _, s := range []Store{w.Store, w.Second()} {
			again, err := s.ConsumeCited(w.ctx, c)
			w.must(err)
			if !again.Repeat || again.Operation.ID != win.Operation.ID {
				t.Fatalf("again: %+v", again)
			}
		}
		equal(t, "a repeat left something behind", w.trace(o), was)
		cited, err := w.Store.CitedMessage(w.ctx, p.AccountID, m.MessageID)
		w.must(err)
		if !cited.Used {
			t.Fatal("a message that has approved an offer is not used")
		}
		_, err = w.Store.Begin(w.ctx, w.begin(o))
		w.must(err)
	})
	t.Run("CitedMessage", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		gone := w.shown(p)
		w.withdraw(gone)
		w.Advance(offers.ScreenWindow)
		before, o := w.shown(p), w.propose(now(w.proposal(p)))
		w.sendAll()
		w.Advance(20 * MinRead)
		m := w.says(p, "yes the email")
		w.unresolve(m)
		w.withdraw(before)
		later := w.propose(w.proposal(p)) // queued: seen by nobody
		c, err := w.Store.CitedMessage(w.ctx, p.AccountID, m.MessageID)
		w.must(err)
		if c.MessageID != m.MessageID || c.RunID != m.RunID || c.Text != "yes the email" || !c.Decided || c.Used || c.RunTainted || c.Reading.Class != "unclear" || c.Reading.RawP != 0.7 {
			t.Fatalf("cited %+v, reading %+v", c.Received, c.Reading)
		}
		ids := func(list []offers.Offer) (out []string) {
			for _, o := range list {
				out = append(out, o.ID)
			}
			return out
		}
		equal(t, "live offers", ids(c.Live), []string{o.ID})
		// What an agent withdraws stays on the screen, and in what the words may have meant.
		equal(t, "offers on the screen", ids(c.Screen), []string{before.ID, o.ID})
		if later.State != offers.Queued {
			t.Fatalf("the later offer is %s", later.State)
		}
		w.must1(w.Store.Taint(w.ctx, p.AccountID, m.RunID))
		c, err = w.Store.CitedMessage(w.ctx, p.AccountID, m.MessageID)
		w.must(err)
		if !c.RunTainted {
			t.Fatal("a tainted run looks clean")
		}
		w.AddAccount(other)
		_, err = w.Store.CitedMessage(w.ctx, other, m.MessageID)
		w.wantErr(err, offers.ErrNotFound)
		stranger := w.receive(inbound(people.Person{Addresses: []people.Binding{{Address: "sms:+12025550190", OurNumber: Ours}}}, "yes"))
		for _, id := range []string{stranger.MessageID, offers.NewID(), "nonsense"} {
			_, err = w.Store.CitedMessage(w.ctx, p.AccountID, id)
			w.wantErr(err, offers.ErrNotFound)
		}
	})

	w := newWorld(t, open)
	for _, c := range conditions() {
		switch c.mutant {
		case "consume.message_undecided", "consume.last_text", "consume.last_accepted", "consume.only_one":
			continue // those that a cited yes does not have
		}
		w.run("Shared/"+c.name, func(w *world) {
			req := c.make(w)
			m, err := w.Store.Context(w.ctx, req.MessageID)
			w.must(err)
			w.unresolve(m)
			w.citedRefused(req, c.why)
			w.sendAll()
		})
	}
	for _, c := range citedConditions() {
		w.run(c.name, func(w *world) {
			w.citedRefused(c.make(w), c.why)
			w.sendAll()
		})
	}
	for name, make := range map[string]func(w *world) offers.ConsumeRequest{
		"TheLastTextIsAboutNothing": func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.propose(w.proposal(p))
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "By the way, do you still use the old laptop?"))
			w.sendAll()
			w.Advance(20 * MinRead)
			return w.cited(w.offer(o.ID), w.says(p, "yes"))
		},
		"TheLastTextIsStillOnItsWay": func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextReceipt, "Done: something else."))
			return w.cited(o, w.says(p, "yes"))
		},
		"AnotherCameUpAfterTheMessage": func(w *world) offers.ConsumeRequest {
			p, o, m := w.plain()
			w.Advance(MinRead)
			w.propose(now(w.proposal(p)))
			w.sendAll()
			return w.cited(o, m)
		},
		"TheAgentSaidSomethingThatEndsWithItsQuestion": func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			w.agentSays(p, "Dana is your sister.")
			return w.cited(w.offer(o.ID), w.says(p, "yes"))
		},
		"TheAgentSaidSomethingBeforeItWasAsked": func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			w.agentSays(p, "One moment.")
			return w.cited(w.shown(p), w.says(p, "yes"))
		},
		"TheAgentSaidSomethingAfterTheMessage": func(w *world) offers.ConsumeRequest {
			p, a, _ := w.two()
			m := w.says(p, "yes, the email")
			w.Advance(MinRead)
			w.agentSays(p, "One moment.")
			return naming(w.cited(a, m))
		},
		"TheWordsNameOneOfSeveral": func(w *world) offers.ConsumeRequest {
			p, a, _ := w.two()
			return naming(w.cited(a, w.says(p, "yes, the email")))
		},
		"TheWordsNameItWhereTextsCross": func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			w.withdraw(w.shown(p))
			return naming(crossing(w.shown(p), w.decided1(w.says(p, "yes, the email"))))
		},
		"AnOlderOneWasGoneBeforeTheMessage": func(w *world) offers.ConsumeRequest {
			p, a, b := w.two()
			w.withdraw(a)
			w.Advance(offers.CrossWindow)
			w.reask(p, b)
			w.sendAll()
			w.Advance(20 * MinRead)
			return w.cited(w.offer(b.ID), w.says(p, "yes"))
		},
	} {
		w.run("Wins/"+name, func(w *world) {
			c := make(w)
			win, err := w.Store.ConsumeCited(w.ctx, c)
			w.must(err)
			if win.Repeat {
				w.t.Fatal("a first win says that it is a repeat")
			}
			w.wantState(c.Offer.ID, offers.Consumed)
			w.sendAll()
		})
	}
	citedRaces(t, open)
}

// citedConditions are what a cited yes needs beyond an uncited one, each missing alone.
func citedConditions() []condition {
	return []condition{
		{"NobodyHasDecidedTheMessage", "cited.decided", offers.WhyDecided, func(w *world) offers.ConsumeRequest {
			_, o, m := w.plain()
			return yes(o, m)
		}},
		{"Invariant07_ADerivedRun", "cited.own_run", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			_, o, m := w.unresolved()
			r, err := w.Store.StartRun(w.ctx, o.AccountID, offers.StartCause{ParentRunID: m.RunID})
			w.must(err)
			return inRun(yes(o, m), r.ID)
		}},
		{"Invariant07_TheRunOfAnotherMessage", "cited.own_run", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.shown(p)
			before := w.says(p, "hm")
			return inRun(w.cited(o, w.says(p, "yes")), before.RunID)
		}},
		{"Invariant07_TheRunThatProposed", "cited.own_run", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			_, o, m := w.unresolved()
			return inRun(yes(o, m), o.RunID)
		}},
		{"Invariant07_ADerivedRunOfTheMessageProposed", "consume.root_run", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			m := w.says(p, "email Dana for me, yes")
			r, err := w.Store.StartRun(w.ctx, p.AccountID, offers.StartCause{ParentRunID: m.RunID})
			w.must(err)
			pr := w.proposal(p)
			pr.RunID, pr.PersonID = r.ID, ""
			o := w.propose(pr)
			w.sendAll()
			return everEarly(w.cited(w.offer(o.ID), m))
		}},
		{"Invariant18_TheRunIsTainted", "cited.untainted", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			_, o, m := w.unresolved()
			w.must1(w.Store.Taint(w.ctx, o.AccountID, m.RunID))
			return yes(o, m)
		}},
		{"Invariant18_ADerivedRunWasTainted", "cited.untainted", offers.WhySameRun, func(w *world) offers.ConsumeRequest {
			_, o, m := w.unresolved()
			r, err := w.Store.StartRun(w.ctx, o.AccountID, offers.StartCause{ParentRunID: m.RunID})
			w.must(err)
			w.must1(w.Store.Taint(w.ctx, o.AccountID, r.ID))
			return yes(o, m)
		}},
		{"Invariant11_TheMessageHasApprovedAnother", "cited.unused", offers.WhyDecided, func(w *world) offers.ConsumeRequest {
			p, a, b := w.two()
			m := w.says(p, "yes")
			w.unresolve(m)
			_, err := w.Store.ConsumeCited(w.ctx, naming(yes(a, m)))
			w.must(err)
			return naming(yes(b, m))
		}},
		{"Invariant09_ABareYesToTheNewerOfTwo", "cited.named", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p, _, b := w.two()
			return w.cited(b, w.says(p, "yes"))
		}},
		{"Invariant09_ABareYesToTheOlderOfTwo", "cited.named", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p, a, _ := w.two()
			return w.cited(a, w.says(p, "yes"))
		}},
		// What an agent says while several offers are open ends with no question of theirs …
		{"Invariant09_TheAgentHasSaidSomethingSince", "cited.spoken", offers.WhyLastText, func(w *world) offers.ConsumeRequest {
			p, a, _ := w.two()
			w.agentSays(p, "Shall I email your sister a happy birthday?")
			return naming(w.cited(a, w.says(p, "yes, the email")))
		}},
		// … and neither does what it says before the offer is open.
		{"Invariant09_TheAgentSaidSomethingBehindTheAsk", "cited.spoken", offers.WhyLastText, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			o := w.propose(w.proposal(p))
			w.agentSays(p, "Lunch at twelve?")
			return w.cited(w.offer(o.ID), w.says(p, "yes"))
		}},
		// Whoever proposes can withdraw: it must not choose afterwards what a yes was for …
		{"Invariant09_TheOtherWasWithdrawnAfterTheMessage", "cited.named", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p, a, b := w.two()
			c := w.cited(a, w.says(p, "yes"))
			w.withdraw(b)
			return c
		}},
		// … nor before it: no text says that what was asked last is gone.
		{"Invariant09_TheNewerWasWithdrawnBeforeTheMessage", "cited.named", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p, a, b := w.two()
			w.withdraw(b)
			w.Advance(2 * offers.CrossWindow)
			return w.cited(a, w.says(p, "yes"))
		}},
		{"Invariant09_TheOtherWasAskedAgainAndWithdrawn", "cited.named", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p, a, b := w.two()
			w.reask(p, a)
			w.sendAll()
			w.Advance(20 * MinRead)
			w.withdraw(a)
			w.Advance(2 * offers.CrossWindow)
			return w.cited(w.offer(b.ID), w.says(p, "yes"))
		}},
		// What was asked last goes by the order of the texts: a callback that proves an older one late does not move it.
		{"Invariant09_AnOlderAskWasProvedLate", "cited.asked_last", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p := w.person(gate.TierOwner)
			a := w.shown(p)
			w.reask(p, a)
			older := w.reserve()
			w.sent(older, offers.OutcomeUnknown)
			b := w.propose(now(w.proposal(p)))
			w.sendAll()
			w.Advance(MinRead)
			w.must(w.Store.Report(w.ctx, offers.StatusReport{TextID: older.ID, ProviderID: fmt.Sprintf("SM%032x", serial.Add(1)), Status: "delivered"}))
			w.withdraw(b)
			w.Advance(2 * offers.CrossWindow)
			return w.cited(w.offer(a.ID), w.says(p, "yes"))
		}},
		{"Invariant09_WhetherItWasAskedLastIsNotKnown", "cited.asked_last", offers.WhySeveral, func(w *world) offers.ConsumeRequest {
			p, o, _ := w.unresolved()
			w.reask(p, o)
			w.sent(w.reserve(), offers.OutcomeUnknown)
			w.Advance(20 * MinRead)
			return w.cited(o, w.says(p, "yes"))
		}},
	}
}

// agentSays puts a text of the agent's own in line, as message.send does, and lets it be read.
func (w *world) agentSays(p people.Person, text string) {
	w.t.Helper()
	pr := w.proposal(p)
	w.operate(pr, answer(gate.Allow, gate.ReasonReplyAllowed), func(p *offers.Plan) { p.Say = text })
	w.sendAll()
	w.Advance(20 * MinRead)
}

// two makes two offers that are both on the screen, the second one asked later and long enough ago.
func (w *world) two() (p people.Person, first, second offers.Offer) {
	w.t.Helper()
	p = w.person(gate.TierOwner)
	a := w.shown(p)
	b := w.propose(now(w.proposal(p)))
	w.sendAll()
	w.Advance(20 * MinRead)
	return p, w.offer(a.ID), w.offer(b.ID)
}

// unresolve decides a message as one that code leaves to the main model.
func (w *world) unresolve(m offers.Received) {
	w.t.Helper()
	req := pass(m)
	req.Type, req.Data.Reading = offers.ReplyUnresolved, "unclear"
	req.Reading = offers.ReadingRecord{Class: "unclear", P: map[string]float64{"unclear": 1}, RawP: 0.7, Reader: "test"}
	w.must(w.Store.Pass(w.ctx, req))
}

// decided1 is the message, left to the main model.
func (w *world) decided1(m offers.Received) offers.Received { w.unresolve(m); return m }

// unresolved makes a yes that code has left to the main model and that would win if it is cited.
func (w *world) unresolved() (people.Person, offers.Offer, offers.Received) {
	w.t.Helper()
	p, o, m := w.plain()
	w.unresolve(m)
	return p, o, m
}

// cited makes the request by which a message that code has left alone consumes an offer.
func (w *world) cited(o offers.Offer, m offers.Received) offers.ConsumeRequest {
	w.t.Helper()
	w.unresolve(m)
	return yes(o, m)
}

// naming says that the words name the offer.
func naming(c offers.ConsumeRequest) offers.ConsumeRequest { c.Names = true; return c }

// inRun puts another run in the place of the message's own.
func inRun(c offers.ConsumeRequest, runID string) offers.ConsumeRequest { c.RunID = runID; return c }

// must1 is must for a call whose result is of no matter.
func (w *world) must1(_ offers.Run, err error) { w.t.Helper(); w.must(err) }

// citedRefused is refused for a cited yes.
func (w *world) citedRefused(c offers.ConsumeRequest, want offers.Why) {
	w.t.Helper()
	w.leavesNothing(c.Offer, c.MessageID, want, func() error {
		_, err := w.Store.ConsumeCited(w.ctx, c)
		return err
	})
}

// citedRaces let cited yeses meet each other and everything else that could change an offer.
func citedRaces(t *testing.T, open Open) {
	// once demands one release, and says whether there was one at all.
	once := func(w *world, p people.Person, o offers.Offer) bool {
		w.t.Helper()
		consumed, approved := 0, 0
		for _, k := range w.ledger(p.ID) {
			if k == ledger.Consumed {
				consumed++
			}
		}
		for _, e := range w.events(p.ID) {
			if e == offers.OperationApproved {
				approved++
			}
		}
		if consumed > 1 || consumed != approved || (consumed == 1) != (w.offer(o.ID).State == offers.Consumed) {
			w.t.Fatalf("the offer is %s with %d rows in the ledger and %d events", w.offer(o.ID).State, consumed, approved)
		}
		return consumed == 1
	}
	t.Run("Invariant04_FiftyCitationsOfOneMessage", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range 10 {
			p, o, m := w.unresolved()
			wins := 0
			for _, r := range together(50, func(i int) result[offers.Win] {
				win, err := stores[i%2].ConsumeCited(w.ctx, yes(o, m))
				return result[offers.Win]{win, err}
			}) {
				w.must(r.err)
				if !r.value.Repeat {
					wins++
				}
			}
			if wins != 1 || !once(w, p, o) {
				t.Fatalf("%d wins of 50, want 1 and 49 that find it", wins)
			}
		}
	})
	// One message names two offers, as a model sees it: it approves one.
	t.Run("Invariant11_TwentyFiveCitationsForEachOfTwoOffers", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range 10 {
			p, a, b := w.two()
			m := w.says(p, "yes")
			w.unresolve(m)
			wins := 0
			for _, r := range together(50, func(i int) result[offers.Win] {
				o := a
				if i%4 > 1 {
					o = b
				}
				win, err := stores[i%2].ConsumeCited(w.ctx, naming(yes(o, m)))
				return result[offers.Win]{win, err}
			}) {
				got, err := why(r.err)
				w.must(err)
				if got == "" && !r.value.Repeat {
					wins++
				}
				if got != "" && got != offers.WhyDecided {
					t.Fatalf("refused with %q", got)
				}
			}
			consumed := 0
			for _, o := range []offers.Offer{a, b} {
				if w.offer(o.ID).State == offers.Consumed {
					consumed++
				}
			}
			if wins != 1 || consumed != 1 {
				t.Fatalf("%d wins and %d offers consumed, want 1 and 1", wins, consumed)
			}
		}
	})
	t.Run("Invariant04_FiftyCitationsAgainstAYes", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		byCode := 0
		for range 10 {
			p, o, m := w.unresolved()
			second := inbound(p, "yes")
			whys := map[offers.Why]int{}
			for i, r := range together(51, func(i int) error {
				if i == 50 {
					r, err := stores[0].Receive(w.ctx, second)
					if err == nil {
						_, err = stores[1].Consume(w.ctx, yes(o, r))
					}
					return err
				}
				win, err := stores[i%2].ConsumeCited(w.ctx, yes(o, m))
				if win.Repeat {
					return &offers.Refusal{Why: offers.WhyConsumed}
				}
				return err
			}) {
				got, err := why(r)
				w.must(err)
				whys[got]++
				if got == "" && i == 50 {
					byCode++
				}
			}
			if whys[""] != 1 || whys[""]+whys[offers.WhyConsumed]+whys[offers.WhyNewer] != 51 || !once(w, p, o) {
				t.Fatalf("50 citations and a yes: %v; want 1 win, and refusals that say consumed or newer", whys)
			}
		}
		t.Logf("code won %d of 10", byCode)
	})
	for _, r := range rivals {
		t.Run("CitedAgainst"+r.name, func(t *testing.T) {
			w := newWorld(t, open)
			stores := []Store{w.Store, w.Second()}
			won := 0
			for range rounds / 2 {
				p, o, m := w.unresolved()
				pr := w.proposal(p)
				got := together(2, func(i int) error {
					if i == 0 {
						_, err := stores[0].ConsumeCited(w.ctx, yes(o, m))
						return err
					}
					return r.do(w.ctx, stores[1], p, o, pr)
				})
				reason, err := why(got[0])
				w.must(err)
				released := once(w, p, o)
				switch {
				case reason == "" && released && errors.Is(got[1], r.late):
					won++
				case reason == r.why && !released && got[1] == nil:
				default:
					t.Fatalf("the citation says %q and released: %v; the rival says %v", reason, released, got[1])
				}
				w.sendAll()
			}
			t.Logf("the citation came first in %d of %d", won, rounds/2)
		})
	}
	t.Run("TaintAgainstACitation", func(t *testing.T) {
		w := newWorld(t, open)
		second := w.Second()
		for range rounds / 2 {
			p, o, m := w.unresolved()
			got := together(2, func(i int) error {
				if i == 0 {
					_, err := w.Store.ConsumeCited(w.ctx, yes(o, m))
					return err
				}
				_, err := second.Taint(w.ctx, p.AccountID, m.RunID)
				return err
			})
			w.must(got[1])
			reason, err := why(got[0])
			w.must(err)
			if released := once(w, p, o); released != (reason == "") || !released && reason != offers.WhySameRun {
				t.Fatalf("the citation says %q and released: %v", reason, released)
			}
		}
	})
}
