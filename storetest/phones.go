package storetest

import (
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

// phoneTests hold what carriers and phones do besides carrying words.
func phoneTests(t *testing.T, open Open) {
	t.Run("OptOut", func(t *testing.T) { optOutTests(t, open) })
	t.Run("Report", func(t *testing.T) { reportTests(t, open) })
	t.Run("CancelSettling", func(t *testing.T) { cancelTests(t, open) })
	t.Run("Choose", func(t *testing.T) { chooseTests(t, open) })
	t.Run("EndIsToldToNobody", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		m := w.says(p, "HELP")
		w.must(w.Store.End(w.ctx, m.MessageID, p.ID, pass(m).Reading))
		if !w.decided(m.MessageID) {
			t.Fatal("undecided")
		}
		w.wantState(o.ID, offers.Open)
		w.wantEvents(p, offers.OfferOpened)
		w.wantTexts(p, "1 show* accepted")
		w.already(w.Store.End(w.ctx, m.MessageID, p.ID, pass(m).Reading))
	})
	t.Run("AQuoteNamesItsOffer", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		a := w.propose(w.proposal(p))
		w.accepted(w.reserve(), "SMquoted1")
		w.withdraw(a)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "about nothing"))
		w.accepted(w.reserve(), "SMquoted2")
		for _, c := range []struct {
			who    people.Person
			quoted string
			want   string
		}{{p, "SMquoted1", a.ID}, {p, "SMquoted2", ""}, {p, "SMquoted3", ""}, {p, "", ""}, {q, "SMquoted1", ""}} {
			in := inbound(c.who, "yes")
			in.Quoted = c.quoted
			r := w.receive(in)
			again, err := w.Store.Context(w.ctx, r.MessageID)
			w.must(err)
			for _, got := range []offers.Received{r, again} {
				if got.Quoted != c.quoted || got.QuotedFor != c.want {
					t.Errorf("quote of %q is for %q, want %q", got.Quoted, got.QuotedFor, c.want)
				}
			}
		}
	})
	t.Run("HA08_WhatHasEndedJustBefore", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		longBefore := w.shown(p)
		w.withdraw(longBefore)
		w.Advance(offers.CrossWindow)
		old, gone, unseen := w.shown(p), w.propose(w.proposal(p)), w.propose(w.proposal(p))
		w.withdraw(unseen)
		w.withdraw(old)
		w.sendAll()
		w.Advance(MinRead)
		w.withdraw(gone)
		theirs := w.shown(w.person(gate.TierOwner))
		w.withdraw(theirs)
		o := w.shown(p)
		got, err := w.Store.Ended(w.ctx, o.ID)
		w.must(err)
		equal(t, "ended", ids(got), []string{gone.ID, old.ID})
		w.Advance(offers.CrossWindow)
		w.reask(p, o)
		w.sendAll()
		if got, err = w.Store.Ended(w.ctx, o.ID); err != nil || len(got) != 0 {
			t.Fatalf("a minute later: %v %v", ids(got), err)
		}
	})
	t.Run("QuestionsHaveAnHourlyLimit", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		for range 3 {
			o := w.shown(p)
			for range offers.MaxReasks + 1 {
				req := pass(w.says(p, "hm"))
				req.Type, req.Reask, req.ReaskText, req.Hourly = offers.ReplyUnresolved, o.ID, offers.Question(o), 3
				w.must(w.Store.Pass(w.ctx, req))
				w.sendAll()
			}
			w.withdraw(o)
		}
		asked := func() (n int) {
			for _, x := range w.texts(p.ID) {
				if strings.Contains(x, "reask") {
					n++
				}
			}
			return n
		}
		if n := asked(); n != 3 {
			t.Fatalf("%d questions, want 3", n)
		}
		w.Advance(time.Hour + time.Second)
		w.reask(p, w.shown(p))
		if n := asked(); n != 4 {
			t.Fatalf("%d questions after an hour, want 4", n)
		}
	})
	t.Run("NoticesHaveTheSameLimit", func(t *testing.T) {
		w := newWorld(t, open)
		p, _ := w.approved()
		w.Advance(offers.NotPickedUp)
		n, err := w.Store.NoticeDue(w.ctx, "notice", 0)
		w.must(err)
		if n != 1 {
			t.Fatalf("%d seen to", n)
		}
		w.wantTexts(p, "1 show* accepted") // and it is not made up for later
		w.due("notice", w.notice, 0)
	})
}

// accepted records that the provider has taken a text under that id.
func (w *world) accepted(x offers.Text, id string) {
	w.t.Helper()
	w.must(w.Store.Sent(w.ctx, x.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: id}))
}

// already demands the refusal of a message that was decided before.
func (w *world) already(err error) {
	w.t.Helper()
	got, err := why(err)
	w.must(err)
	if got != offers.WhyDecided {
		w.t.Fatalf("refused with %q, want %q", got, offers.WhyDecided)
	}
}

func (w *world) optOut(p people.Person) offers.Received {
	w.t.Helper()
	m := w.says(p, "STOP")
	w.must(w.Store.OptOut(w.ctx, offers.OptOutRequest{MessageID: m.MessageID, PersonID: p.ID, Reading: pass(m).Reading}))
	return m
}

func optOutTests(t *testing.T, open Open) {
	t.Run("ClosesTheAddress", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		o, next := w.shown(p), w.propose(w.proposal(p))
		theirs := w.shown(q)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "in line"))
		m := w.optOut(p)
		w.wantState(o.ID, offers.Withdrawn)
		w.wantState(next.ID, offers.Withdrawn)
		w.wantOp(o.OperationID, offers.OpState(offers.Withdrawn))
		equal(t, "closer", w.offer(o.ID).ClosedBy, &offers.Closer{MessageID: m.MessageID})
		w.wantState(theirs.ID, offers.Open)
		w.wantTexts(p, "1 show* accepted", "2 notice* rejected")
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed, offers.OfferClosed, offers.OperationClosed, offers.PersonOptedOut)
		w.wantLedger(p, ledger.Asked, ledger.Asked, ledger.Closed, ledger.Closed)

		// Nothing goes out from now on.
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
		later := w.propose(w.proposal(p))
		w.wantState(later.ID, offers.Undeliverable)
		if x, err := w.Store.Reserve(w.ctx); err != nil || x != nil {
			t.Fatalf("reserved %+v, %v", x, err)
		}
		if r := w.says(p, "hello"); !r.OptedOut || !r.Trusted {
			t.Fatalf("message of somebody who is opted out: %+v", r)
		}
	})
	t.Run("OnceAndToldOnce", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		m := w.optOut(p)
		w.already(w.Store.OptOut(w.ctx, offers.OptOutRequest{MessageID: m.MessageID, PersonID: p.ID, Reading: pass(m).Reading}))
		w.optOut(p)
		w.wantEvents(p, offers.PersonOptedOut)
	})
	t.Run("AnotherAddressStaysOpen", func(t *testing.T) {
		w := newWorld(t, open)
		first, second := w.address(), w.address()
		p := w.personAt(people.DefaultAccount, gate.TierOwner, people.Binding{Address: first, OurNumber: Ours}, people.Binding{Address: second, OurNumber: Ours})
		m := w.says(p, "STOP")
		w.must(w.Store.OptOut(w.ctx, offers.OptOutRequest{MessageID: m.MessageID, PersonID: p.ID, Reading: pass(m).Reading}))
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
		if x := w.reserve(); x.Address != second {
			t.Fatalf("went to the address that opted out: %+v", x.Address)
		}
	})
	t.Run("InAgain", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.optOut(p)
		m := w.says(p, "START")
		w.must(w.Store.OptIn(w.ctx, pass(m)))
		w.already(w.Store.OptIn(w.ctx, pass(m)))
		if r := w.says(p, "hello"); r.OptedOut {
			t.Fatal("still opted out")
		}
		w.wantState(w.shown(p).ID, offers.Open)
		w.wantEvents(p, offers.PersonOptedOut, offers.MessageReceived, offers.OfferOpened)
	})
	t.Run("TheCarrierSaysSo", func(t *testing.T) {
		for name, tells := range map[string]func(w *world, x offers.Text){
			"refused": func(w *world, x offers.Text) {
				w.must(w.Store.Sent(w.ctx, x.ID, offers.SendResult{Outcome: offers.OutcomeRejected, Code: offers.CodeOptedOut}))
			},
			"in parts": func(w *world, x offers.Text) {
				w.must(w.Store.Sent(w.ctx, x.ID, offers.SendResult{ProviderIDs: []string{"SMpart", ""}, Partial: true, Code: offers.CodeOptedOut}))
			},
			"by status": func(w *world, x offers.Text) {
				w.accepted(x, "SMoptout")
				w.must(w.Store.Report(w.ctx, offers.StatusReport{ProviderID: "SMoptout", Status: "undelivered", Code: offers.CodeOptedOut}))
			},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, open)
				p := w.person(gate.TierOwner)
				o := w.propose(w.proposal(p))
				tells(w, w.reserve())
				if s := w.offer(o.ID).State; s != offers.Undeliverable && s != offers.Withdrawn {
					t.Fatalf("offer is %s", s)
				}
				list := w.events(p.ID)
				if list[len(list)-1] != offers.PersonOptedOut {
					t.Fatalf("events %v", list)
				}
				if r := w.says(p, "hello"); !r.OptedOut {
					t.Fatal("not opted out")
				}
			})
		}
	})
}

// doubt sends an offer's text with an outcome that nobody knows.
func (w *world) doubt(p people.Person) (offers.Offer, offers.Text) {
	w.t.Helper()
	o := w.propose(w.proposal(p))
	x := w.reserve()
	w.sent(x, offers.OutcomeUnknown)
	return o, x
}

func reportTests(t *testing.T, open Open) {
	report := func(w *world, r offers.StatusReport) {
		w.t.Helper()
		w.must(w.Store.Report(w.ctx, r))
	}
	t.Run("TD03_InAnyOrderAndMoreThanOnce", func(t *testing.T) {
		for _, order := range [][]string{{"sent", "delivered", "sent"}, {"delivered", "sent", "queued"}, {"delivered", "delivered"}, {"queued", "sending", "sent", "delivered", "read"}} {
			w := newWorld(t, open)
			p := w.person(gate.TierOwner)
			o := w.propose(w.proposal(p))
			x := w.reserve()
			w.accepted(x, "SMtd03")
			for _, s := range order {
				report(w, offers.StatusReport{TextID: x.ID, ProviderID: "SMtd03", Status: s})
			}
			w.wantState(o.ID, offers.Open)
			w.wantEvents(p, offers.OfferOpened)
			w.wantTexts(p, "1 show* accepted")
		}
	})
	t.Run("TD03_ALateSentBringsNothingBack", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		x := w.reserve()
		w.accepted(x, "SMlate")
		report(w, offers.StatusReport{ProviderID: "SMlate", Status: "undelivered", Code: 30007})
		for _, s := range []string{"sent", "delivered", "queued"} {
			report(w, offers.StatusReport{ProviderID: "SMlate", Status: s})
		}
		w.wantState(o.ID, offers.Undeliverable)
		w.wantTexts(p, "1 show* rejected")
	})
	t.Run("ProvesWhatWasUnknown", func(t *testing.T) {
		for _, status := range []string{"accepted", "queued", "sending", "sent", "delivered", "read"} {
			w := newWorld(t, open)
			p := w.person(gate.TierOwner)
			o, x := w.doubt(p)
			report(w, offers.StatusReport{TextID: x.ID, ProviderID: "SMproof", Status: status})
			w.wantState(o.ID, offers.Open)
			w.Advance(offers.SendTimeout)
			w.due("resend", w.Store.ResendDue, 0)
			w.wins(yes(w.opened(o), w.says(p, "yes")))
			in := inbound(p, "again")
			in.Quoted = "SMproof" // and quotes of it are known
			if r := w.receive(in); r.QuotedFor != o.ID {
				t.Fatalf("quote is for %q", r.QuotedFor)
			}
		}
	})
	t.Run("BeforeTheAnswerToTheSend", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		x := w.reserve() // and the process dies
		report(w, offers.StatusReport{TextID: x.ID, ProviderID: "SMfirst", Status: "sent"})
		w.wantState(o.ID, offers.Open)
		w.sent(x, offers.OutcomeUnknown) // or was just slow, and saw a time-out
		w.wantState(o.ID, offers.Open)
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 0)
		w.wantTexts(p, "1 show* accepted")
	})
	t.Run("AWordThatNobodyKnowsProvesNothing", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o, x := w.doubt(p)
		report(w, offers.StatusReport{TextID: x.ID, ProviderID: "SMwhat", Status: "partially_delivered"})
		w.wantState(o.ID, offers.Sending)
	})
	t.Run("EveryPartOfATextMustBeProved", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		x := w.reserve()
		part := func(n int, id, status string) {
			report(w, offers.StatusReport{TextID: x.ID, ProviderID: id, Part: n, Parts: 3, Status: status})
		}
		part(1, "SMp1", "sent")
		w.wantState(o.ID, offers.Sending)
		w.must(w.Store.Sent(w.ctx, x.ID, offers.SendResult{ProviderIDs: []string{"SMp1", "", "SMp3"}}))
		part(1, "SMp1", "delivered")
		part(1, "SMp1again", "delivered") // one part twice is one part
		w.wantState(o.ID, offers.Sending)
		part(2, "SMp2", "queued")
		w.wantState(o.ID, offers.Open)
		part(3, "SMp3", "undelivered")
		w.wantState(o.ID, offers.Undeliverable)
	})
	t.Run("PartlyRefusedIsUndeliverable", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o, next := w.propose(w.proposal(p)), w.propose(w.proposal(p))
		x := w.reserve()
		w.must(w.Store.Sent(w.ctx, x.ID, offers.SendResult{ProviderIDs: []string{"SMx1", ""}, Partial: true, Code: 30007}))
		w.wantState(o.ID, offers.Undeliverable)
		w.wantState(next.ID, offers.Sending)
		report(w, offers.StatusReport{TextID: x.ID, ProviderID: "SMx1", Part: 1, Parts: 2, Status: "delivered"})
		w.wantState(o.ID, offers.Undeliverable)
	})
	t.Run("LostAfterItsOfferWasOpen", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o, next := w.propose(w.proposal(p)), w.propose(w.proposal(p))
		w.accepted(w.reserve(), "SMlost")
		w.Advance(20 * MinRead)
		report(w, offers.StatusReport{ProviderID: "SMlost", Status: "undelivered", Code: 30007})
		w.wantState(o.ID, offers.Undeliverable)
		equal(t, "closer", w.offer(o.ID).ClosedBy, &offers.Closer{By: offers.ByCarrier})
		w.wantState(next.ID, offers.Sending)
		w.sendAll()
		w.Advance(2 * MinRead)
		w.wins(yes(w.offer(next.ID), w.says(p, "yes"))) // what nobody has seen did not cross with it
	})
	t.Run("LostAfterTheYes", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.accepted(w.reserve(), "SMseen")
		w.wins(yes(w.opened(o), w.says(p, "yes")))
		report(w, offers.StatusReport{ProviderID: "SMseen", Status: "failed", Code: 30008})
		w.wantState(o.ID, offers.Consumed) // the person has answered it
	})
	t.Run("ID01_ADeadNumberIsUnbound", func(t *testing.T) {
		for _, code := range []int{30003, 30005, 30006} {
			w := newWorld(t, open)
			p := w.person(gate.TierOwner)
			o, next := w.propose(w.proposal(p)), w.propose(w.proposal(p))
			w.accepted(w.reserve(), "SMdead")
			report(w, offers.StatusReport{ProviderID: "SMdead", Status: "undelivered", Code: code})
			w.wantState(o.ID, offers.Undeliverable)
			w.wantState(next.ID, offers.Undeliverable)
			if r := w.says(p, "yes?"); r.Trusted || r.Text != "" {
				t.Fatalf("%d: whoever has the number now is believed", code)
			}
		}
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.propose(w.proposal(p))
		w.accepted(w.reserve(), "SMonce")
		report(w, offers.StatusReport{ProviderID: "SMonce", Status: "undelivered", Code: 30008})
		if r := w.says(p, "hello"); !r.Trusted {
			t.Fatal("unbound by a fault of the network")
		}
	})
	t.Run("OfNoTextOfOurs", func(t *testing.T) {
		w := newWorld(t, open)
		for _, r := range []offers.StatusReport{
			{ProviderID: "SMunknown", Status: "sent"}, {TextID: offers.NewID(), ProviderID: "SMunknown", Status: "sent"}, {TextID: "no id", ProviderID: "SMunknown", Status: "sent"},
		} {
			w.wantErr(w.Store.Report(w.ctx, r), offers.ErrNotFound)
		}
	})
}

func cancelTests(t *testing.T, open Open) {
	cancel := func(w *world, m offers.Received) int {
		w.t.Helper()
		n, err := w.Store.CancelSettling(w.ctx, m.MessageID, m.PersonID, offers.CancelledReceipt)
		w.must(err)
		return n
	}
	t.Run("InTime", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved(settling)
		q, other := w.approved(settling)
		m := w.says(p, "wait no")
		if m.Settling != 1 {
			t.Fatalf("%d settle", m.Settling)
		}
		if n := cancel(w, m); n != 1 {
			t.Fatalf("%d taken back", n)
		}
		if w.decided(m.MessageID) {
			t.Fatal("it decided its message")
		}
		w.wantOp(o.OperationID, offers.OpState(offers.Declined))
		w.wantOp(other.OperationID, offers.OpSettling)
		w.wantTexts(p, "1 show* accepted", "2 receipt queued")
		w.wantTexts(q, "1 show* accepted")
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed)
		w.wantLedger(p, ledger.Asked, ledger.Consumed, ledger.Closed)
		w.Advance(time.Minute)
		w.due("settle", w.Store.SettleDue, 1) // the other's
		w.wantOp(o.OperationID, offers.OpState(offers.Declined))
		_, err := w.Store.Begin(w.ctx, w.begin(o))
		w.wantErr(err, offers.ErrNotApproved)
	})
	t.Run("SaidInTimeAndDecidedLate", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved(settling)
		m := w.says(p, "wait no")
		w.Advance(time.Minute)
		if n := cancel(w, m); n != 1 {
			t.Fatalf("%d taken back", n)
		}
		w.wantOp(o.OperationID, offers.OpState(offers.Declined))
	})
	t.Run("ByAMessageOfSomebodyElse", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved(settling)
		m := w.says(w.person(gate.TierOwner), "wait no")
		m.PersonID = p.ID
		if n := cancel(w, m); n != 0 {
			t.Fatalf("%d taken back", n)
		}
		w.wantOp(o.OperationID, offers.OpSettling)
	})
	t.Run("TooLate", func(t *testing.T) {
		w := newWorld(t, open)
		p, o := w.approved(settling)
		w.Advance(30 * time.Second)
		m := w.says(p, "wait no") // before the clock has come by
		if n := cancel(w, m); n != 0 {
			t.Fatalf("%d taken back", n)
		}
		w.due("settle", w.Store.SettleDue, 1)
		w.wantOp(o.OperationID, offers.OpApproved)
	})
}

// lists has a message decided by the question which of these is meant, and the answer sent.
func (w *world) lists(p people.Person, of ...offers.Offer) {
	w.t.Helper()
	req := pass(w.says(p, "yes"))
	req.Type, req.ReaskText, req.Listed = offers.ReplyUnresolved, offers.WhichOne(of), ids(of)
	for _, o := range of {
		if w.offer(o.ID).State == offers.Open {
			req.Reask = o.ID
			break
		}
	}
	w.must(w.Store.Pass(w.ctx, req))
	w.sendAll()
}

// picks makes the request by which a message picks from a list.
func picks(m offers.Received, n int) offers.ChooseRequest {
	return offers.ChooseRequest{MessageID: m.MessageID, PersonID: m.PersonID, Number: n, MinRead: MinRead, Reading: pass(m).Reading, Data: pass(m).Data}
}

// choose has the person asked which of their live offers is meant, and their number taken.
func (w *world) choose(p people.Person, o offers.Offer) {
	w.t.Helper()
	live := w.says(p, "yes").Live
	w.lists(p, live...)
	w.Advance(20 * MinRead)
	n := slices.Index(ids(live), o.ID) + 1
	w.must(w.Store.Choose(w.ctx, picks(w.says(p, fmt.Sprint(n)), n)))
}

// pair is a person with two offers that are both on the screen, oldest first.
func (w *world) pair() (p people.Person, a, b offers.Offer) {
	w.t.Helper()
	p = w.person(gate.TierOwner)
	a, b = w.propose(now(w.proposal(p))), w.propose(now(w.proposal(p)))
	w.sendAll()
	return p, w.offer(a.ID), w.offer(b.ID)
}

// notPicked demands that a number picks nothing, and leaves everything as it was.
func (w *world) notPicked(m offers.Received, n int, beside offers.Offer) {
	w.t.Helper()
	w.leavesNothing(beside, m.MessageID, offers.WhyNotListed, func() error { return w.Store.Choose(w.ctx, picks(m, n)) })
}

func chooseTests(t *testing.T, open Open) {
	t.Run("TheOthersWait", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		w.lists(p, a, b)
		w.Advance(MinRead)
		m := w.says(p, "2")
		w.must(w.Store.Choose(w.ctx, picks(m, 2)))
		w.already(w.Store.Choose(w.ctx, picks(m, 1)))
		w.wantState(a.ID, offers.Queued)
		w.wantState(b.ID, offers.Open)
		w.wantTexts(p, "1 show* accepted", "2 show* accepted", "3 reask accepted", "4 reask* queued")
		x := w.reserve()
		if x.OfferID != b.ID || x.Body != b.ShownText {
			t.Fatalf("shown again: %+v", x)
		}
		w.accepted(x, "SMagain")
		w.Advance(20 * MinRead)
		w.refused(yes(a, w.says(p, "yes")), offers.WhyNotShown)
		win := w.wins(yes(w.offer(b.ID), w.says(p, "yes")))
		if !win.Queued {
			t.Fatal("the other was forgotten")
		}
		w.due("advance", w.Store.AdvanceAll, 1)
		w.wantState(a.ID, offers.Sending)
	})
	// A yes may overtake the number that was written before it, or be overtaken: nobody knows which question it answers.
	t.Run("AYesRightAfterMayAnswerTheList", func(t *testing.T) {
		w := newWorld(t, open)
		p, _, b := w.pair()
		w.choose(p, b)
		w.sendAll()
		w.Advance(2 * MinRead)
		w.refused(yes(w.offer(b.ID), w.says(p, "yes")), offers.WhyCrossed)
		w.Advance(offers.CrossFactor * MinRead)
		w.wins(yes(w.offer(b.ID), w.says(p, "yes")))
	})
	t.Run("ALifeGoesOnInTheQueue", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		w.choose(p, b)
		w.sendAll()
		w.Advance(a.TTL / 2)
		w.withdraw(b)
		w.sendAll()
		again := w.offer(a.ID)
		if again.State != offers.Open || !again.ShownAt.Equal(*a.ShownAt) || !again.ExpiresAt.Equal(a.ExpiresAt) {
			t.Fatalf("shown again it is %s, shown at %v, ends at %v; want open, %v, %v", again.State, again.ShownAt, again.ExpiresAt, a.ShownAt, a.ExpiresAt)
		}
		w.Advance(a.TTL / 2)
		w.refused(yes(again, w.says(p, "yes")), offers.WhyExpired)
	})
	// A number is one of the list that was shown last, and still holds; without it, a number is just words.
	for _, c := range []struct {
		name string
		then func(w *world, p people.Person, a, b offers.Offer) offers.Received
	}{
		{"WithoutAList", func(w *world, p people.Person, _, _ offers.Offer) offers.Received {
			w.Advance(20 * MinRead)
			return w.says(p, "1")
		}},
		{"AfterAnotherText", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextMessage, "Seats 1 to 4 are free. How many?"))
			w.Advance(20 * MinRead)
			return w.says(p, "1")
		}},
		{"OneEndedSince", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.Advance(20 * MinRead)
			w.withdraw(b)
			return w.says(p, "1")
		}},
		{"OneMoreSince", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			x := w.propose(now(w.proposal(p)))
			w.Set("texts", w.lastText(p).ID, "state", "rejected") // so that the list is the last text for all that
			w.wantState(x.ID, offers.Sending)
			w.Advance(20 * MinRead)
			return w.says(p, "1")
		}},
		{"OfWhichNobodyKnowsWhetherItIsThere", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.Set("texts", w.lastText(p).ID, "state", "unknown")
			w.Advance(20 * MinRead)
			return w.says(p, "1")
		}},
		{"FasterThanItCanBeRead", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.Advance(MinRead / 2)
			return w.says(p, "1")
		}},
		{"WithANewerMessage", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.Advance(20 * MinRead)
			m := w.says(p, "1")
			w.says(p, "no, 2")
			return m
		}},
		{"QuotingAnotherText", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.Advance(20 * MinRead)
			in := inbound(p, "1")
			in.Quoted = "SMof another text"
			return w.receive(in)
		}},
		{"ThatStoodForAnotherJustBefore", func(w *world, p people.Person, a, b offers.Offer) offers.Received {
			w.lists(p, a, b)
			w.withdraw(a)
			c := w.propose(now(w.proposal(p)))
			w.sendAll()
			w.lists(p, b, c)
			w.Advance(2 * MinRead)
			return w.says(p, "1")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, open)
			p, a, b := w.pair()
			w.notPicked(c.then(w, p, a, b), 1, a)
		})
	}
	t.Run("OfAnotherAddress", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.personAt(people.DefaultAccount, gate.TierOwner, people.Binding{Address: w.address(), OurNumber: Ours}, people.Binding{Address: w.address(), OurNumber: Ours})
		a, b := w.propose(now(w.proposal(p))), w.propose(now(w.proposal(p)))
		w.sendAll()
		w.lists(p, a, b)
		w.Advance(20 * MinRead)
		in := inbound(p, "1")
		in.Address = p.Addresses[1].Address
		w.notPicked(w.receive(in), 1, a)
	})
	t.Run("BeyondTheList", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		w.lists(p, a, b)
		w.Advance(20 * MinRead)
		m := w.says(p, "3")
		for _, n := range []int{3, 0, -1} {
			w.notPicked(m, n, a)
		}
	})
	t.Run("AListThatHasChangedIsReadFirst", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		w.lists(p, a, b)
		c := w.propose(now(w.proposal(p)))
		w.sendAll()
		w.lists(p, a, b, c)
		w.Advance(2 * MinRead)
		w.must(w.Store.Choose(w.ctx, picks(w.says(p, "2"), 2))) // which stands for the same in both
		w.wantState(b.ID, offers.Open)
		w.wantState(c.ID, offers.Queued)

		w = newWorld(t, open)
		p, a, b = w.pair()
		w.lists(p, a, b)
		w.withdraw(a)
		w.propose(now(w.proposal(p)))
		w.sendAll()
		w.choose(p, b)
		w.wantState(b.ID, offers.Open)
	})
	t.Run("TheSameListAgainTakesNothingAway", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		w.lists(p, a, b)
		w.Advance(2 * MinRead)
		w.lists(p, a, b) // at a yes to it, and right behind that comes the number
		w.must(w.Store.Choose(w.ctx, picks(w.says(p, "2"), 2)))
		w.wantState(b.ID, offers.Open)
		w.wantState(a.ID, offers.Queued)
	})
	t.Run("ItAnswersTheListByItsQuote", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		req := pass(w.says(p, "yes"))
		req.Type, req.Reask, req.ReaskText, req.Listed = offers.ReplyUnresolved, a.ID, offers.WhichOne([]offers.Offer{a, b}), ids([]offers.Offer{a, b})
		w.must(w.Store.Pass(w.ctx, req))
		w.accepted(w.reserve(), "SMlist")
		w.Advance(2 * MinRead)
		in := inbound(p, "2")
		in.Quoted = "SMlist"
		w.must(w.Store.Choose(w.ctx, picks(w.receive(in), 2)))
		w.wantState(b.ID, offers.Open)
	})
	t.Run("ANewListIsSentHoweverOftenWasAsked", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		for range offers.MaxReasks + 1 {
			w.lists(p, a, b)
		}
		c := w.propose(now(w.proposal(p)))
		w.sendAll()
		w.lists(p, a, b, c)
		w.lists(p, a, b, c)
		w.wantTexts(p, "1 show* accepted", "2 show* accepted", "3 reask accepted", "4 reask accepted", "5 show* accepted", "6 reask accepted")
	})
	t.Run("OneWhoseTimeIsOver", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		w.lists(p, a, b)
		w.Advance(b.TTL)
		m := w.says(p, "2")
		w.must(w.Store.Choose(w.ctx, picks(m, 2))) // and no clock has come by
		w.wantState(a.ID, offers.Open)
		w.wantTexts(p, "1 show* accepted", "2 show* accepted", "3 reask accepted")
		if !w.decided(m.MessageID) {
			t.Fatal("undecided")
		}
	})
	t.Run("OneOfAnother", func(t *testing.T) {
		w := newWorld(t, open)
		p, a, b := w.pair()
		q := w.person(gate.TierOwner)
		w.lists(p, a, b)
		w.Advance(2 * MinRead)
		m := w.says(q, "1")
		w.notPicked(m, 1, a)
		m.PersonID = p.ID
		w.already(w.Store.Choose(w.ctx, picks(m, 1)))
	})
}

// lastText is the newest text to a person.
func (w *world) lastText(p people.Person) offers.Text {
	w.t.Helper()
	list, err := w.Store.Texts(w.ctx, p.AccountID, p.ID)
	w.must(err)
	return list[len(list)-1]
}
