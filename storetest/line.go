package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// lineTests hold the way of texts out.
func lineTests(t *testing.T, open Open) {
	t.Run("OnePerPersonAtATimeInOrder", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.person(gate.TierOwner), w.person(gate.TierOwner)
		for _, body := range []string{"one", "two"} {
			w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, body))
		}
		w.must(w.Store.Say(w.ctx, q.AccountID, q.ID, offers.TextNotice, "other"))
		first := w.reserve()
		if first.PersonID != p.ID || first.Number != 1 || first.Body != "one" || first.Address != p.Addresses[0].Address || first.OurNumber != Ours {
			t.Fatalf("first text %+v", first)
		}
		if x := w.reserve(); x.PersonID != q.ID {
			t.Fatalf("while the first is on its way, %+v", x)
		}
		if x, err := w.Second().Reserve(w.ctx); err != nil || x != nil {
			t.Fatalf("with everybody's text on its way, %+v %v", x, err)
		}
		w.sent(first, offers.OutcomeAccepted)
		if x := w.reserve(); x.PersonID != p.ID || x.Number != 2 || x.Body != "two" {
			t.Fatalf("second text %+v", x)
		}
		w.wantTexts(p, "1 notice accepted", "2 notice sending")
	})
	t.Run("ReservedOnceByManyWorkers", func(t *testing.T) {
		w := newWorld(t, open)
		for range 10 {
			p := w.person(gate.TierOwner)
			for range 3 {
				w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
			}
		}
		stores := []Store{w.Store, w.Second()}
		got := together(8, func(i int) result[[]string] {
			var r result[[]string]
			for {
				x, err := stores[i%2].Reserve(w.ctx)
				if err != nil || x == nil {
					r.err = err
					return r
				}
				r.value = append(r.value, x.ID)
				if err := stores[i%2].Sent(w.ctx, x.ID, offers.SendResult{Outcome: offers.OutcomeAccepted}); err != nil {
					r.err = err
					return r
				}
			}
		})
		var all []string
		for _, r := range got {
			w.must(r.err)
			all = append(all, r.value...)
		}
		// A worker that finds every line busy goes home; what it left is there for the next.
		for {
			x, err := w.Store.Reserve(w.ctx)
			w.must(err)
			if x == nil {
				break
			}
			all = append(all, x.ID)
			w.sent(*x, offers.OutcomeAccepted)
		}
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != 30 || len(all) != 30 {
			t.Fatalf("%d texts reserved, %d different, want 30", len(all), n)
		}
	})
	t.Run("AcceptedOpensTheOffer", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.Advance(time.Hour) // time in line is not time on the screen
		w.sendAll()
		got := w.offer(o.ID)
		if got.State != offers.Open || got.ShownAt == nil || !got.ExpiresAt.Equal(got.ShownAt.Add(o.TTL)) || !got.ShownAt.After(o.ExpiresAt) {
			t.Fatalf("offer %+v", got)
		}
		w.wantEvents(p, offers.OfferOpened)
	})
	t.Run("RejectedIsUndeliverable", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o, next := w.propose(w.proposal(p)), w.propose(w.proposal(p))
		w.sent(w.reserve(), offers.OutcomeRejected)
		w.wantState(o.ID, offers.Undeliverable)
		w.wantOp(o.OperationID, offers.OpState(offers.Undeliverable))
		equal(t, "closer", w.offer(o.ID).ClosedBy, &offers.Closer{By: offers.ByCarrier})
		w.wantState(next.ID, offers.Sending)
		w.wantEvents(p, offers.OfferClosed, offers.OperationClosed)
		list, err := w.Store.Texts(w.ctx, p.AccountID, p.ID)
		w.must(err)
		if list[0].State != offers.TextRejected || list[0].Code != 30007 {
			t.Fatalf("text %+v", list[0])
		}
	})
	t.Run("ARejectedQuestionClosesNothing", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.reask(p, o)
		w.sent(w.reserve(), offers.OutcomeRejected)
		w.wantState(o.ID, offers.Open)
		w.wins(yes(o, w.says(p, "yes"))) // the last text that anybody saw is its show
	})
	t.Run("NothingTurnsBackFromItsOutcome", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		x := w.reserve()
		w.sent(x, offers.OutcomeAccepted)
		for _, out := range []offers.Outcome{offers.OutcomeRejected, offers.OutcomeUnknown} {
			w.must(w.Store.Sent(w.ctx, x.ID, offers.SendResult{Outcome: out}))
		}
		w.wantState(o.ID, offers.Open)
		w.wantTexts(p, "1 show* accepted")
		w.wantErr(w.Store.Sent(w.ctx, offers.NewID(), offers.SendResult{Outcome: offers.OutcomeAccepted}), offers.ErrNotFound)
	})
	t.Run("UnknownIsSentOnceMoreUnderANewNumber", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.sent(w.reserve(), offers.OutcomeUnknown)
		w.wantState(o.ID, offers.Sending)
		w.due("resend", w.Store.ResendDue, 0)
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 1)
		w.due("resend", w.Store.ResendDue, 0)
		w.wantTexts(p, "1 show* unknown", "2 show* queued")
		x := w.reserve()
		if x.Number != 2 || x.Body != o.ShownText {
			t.Fatalf("again: %+v", x)
		}
		w.sent(x, offers.OutcomeUnknown)
		w.Advance(offers.SendTimeout)
		next := w.propose(w.proposal(p))
		w.due("resend", w.Store.ResendDue, 1)
		w.wantTexts(p, "1 show* unknown", "2 show* unknown", "3 show* queued") // not a third time: the next one's turn has come
		w.wantState(o.ID, offers.Undeliverable)
		equal(t, "closer", w.offer(o.ID).ClosedBy, &offers.Closer{By: offers.ByCarrier})
		w.sent(x, offers.OutcomeAccepted) // a proof comes too late
		w.wantState(o.ID, offers.Undeliverable)
		w.sendAll()
		w.Advance(2 * MinRead)
		w.refused(yes(w.offer(next.ID), w.says(p, "yes")), offers.WhyCrossed) // it may have been on the screen
	})
	t.Run("OneThatGaveWayIsSentOnceMoreToo", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p, patient)
		w.Advance(offers.GiveWay)
		next := w.propose(w.proposal(p), patient)
		w.due("give way", w.Store.GiveWayDue, 1)
		w.sendAll()
		w.withdraw(next)
		for range 2 { // its turn again, and again nobody knows
			w.wantState(o.ID, offers.Sending)
			w.sent(w.reserve(), offers.OutcomeUnknown)
			w.Advance(offers.SendTimeout)
			w.due("resend", w.Store.ResendDue, 1)
		}
		w.wantTexts(p, "1 show* accepted", "2 show* accepted", "3 show* unknown", "4 show* unknown")
		w.wantState(o.ID, offers.Undeliverable)
	})
	t.Run("AnOldDoubtDoesNotRepeatANewShow", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		a, b := w.propose(now(w.proposal(p))), w.propose(now(w.proposal(p)))
		w.sent(w.reserve(), offers.OutcomeUnknown)
		w.sendAll()
		w.choose(p, b)
		w.withdraw(b)
		w.wantState(a.ID, offers.Sending) // shown anew, while the doubt about the first text is not over
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 1)
		w.wantTexts(p, "1 show* unknown", "2 show* accepted", "3 reask accepted", "4 reask* rejected", "5 show* queued")
	})
	t.Run("WhatANumberPickedIsSentOnceMoreWhole", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.propose(now(w.proposal(p)))
		b := w.propose(now(w.proposal(p)))
		w.sendAll()
		for range offers.MaxReasks { // and the list does not count against it
			w.reask(p, b)
			w.sendAll()
		}
		w.choose(p, b)
		for range 2 {
			x := w.reserve()
			if x.OfferID != b.ID || x.Body != b.ShownText {
				t.Fatalf("shown again: %+v", x)
			}
			w.sent(x, offers.OutcomeUnknown)
			w.refused(yes(w.offer(b.ID), w.says(p, "yes")), offers.WhyUnconfirmed)
			w.Advance(offers.SendTimeout)
			w.due("resend", w.Store.ResendDue, 1)
		}
		if x, err := w.Store.Reserve(w.ctx); err != nil || x != nil {
			t.Fatalf("a third time: %+v %v", x, err)
		}
	})
	t.Run("TheSecondShowOpens", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.sent(w.reserve(), offers.OutcomeUnknown)
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 1)
		w.wins(yes(w.opened(o), w.says(p, "yes")))
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationApproved)
	})
	t.Run("AQuestionInDoubtIsPutAgain", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextReceipt, "Done: something else."))
		w.sent(w.reserve(), offers.OutcomeUnknown)
		w.refused(yes(o, w.says(p, "yes")), offers.WhyUnconfirmed)
		for n := range offers.MaxReasks {
			w.Advance(offers.SendTimeout)
			w.due("resend", w.Store.ResendDue, 1)
			x := w.reserve()
			if x.Kind != offers.TextReask || x.OfferID != o.ID || x.Body != offers.Question(o) {
				t.Fatalf("question %+v", x)
			}
			if n == 0 {
				w.sent(x, offers.OutcomeUnknown)
			} else {
				w.sent(x, offers.OutcomeAccepted)
			}
		}
		w.Advance(20 * MinRead)
		w.wins(yes(o, w.says(p, "yes")))
	})
	t.Run("AndNotForEver", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.reask(p, o)
		for range 5 {
			if x, err := w.Store.Reserve(w.ctx); err != nil {
				t.Fatal(err)
			} else if x != nil {
				w.sent(*x, offers.OutcomeUnknown)
			}
			w.Advance(offers.SendTimeout)
			_, err := w.Store.ResendDue(w.ctx)
			w.must(err)
		}
		w.wantTexts(p, "1 show* accepted", "2 reask* unknown", "3 reask* unknown")
	})
	t.Run("ATextThatIsNotTheLastIsNotRepeated", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.shown(p)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextReceipt, "one"))
		w.sent(w.reserve(), offers.OutcomeUnknown)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextReceipt, "two"))
		w.sent(w.reserve(), offers.OutcomeAccepted)
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 1)
		w.wantTexts(p, "1 show* accepted", "2 receipt* unknown", "3 receipt* accepted")
	})
	t.Run("UnknownThatIsProvedAccepted", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		x := w.reserve()
		w.sent(x, offers.OutcomeUnknown)
		w.sent(x, offers.OutcomeAccepted)
		w.wantState(o.ID, offers.Open)
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 0)
		w.wantTexts(p, "1 show* accepted")
	})
	t.Run("CrashBetweenReserveAndSent", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		lost := w.reserve()
		if x, err := w.Store.Reserve(w.ctx); err != nil || x != nil {
			t.Fatalf("behind a text on its way, %+v %v", x, err)
		}
		w.Advance(offers.SendTimeout)
		w.due("resend", w.Store.ResendDue, 1)
		w.wantTexts(p, "1 show* unknown", "2 show* queued")
		w.sent(lost, offers.OutcomeAccepted) // its process lives after all
		w.wantState(o.ID, offers.Open)
		w.sendAll()
		w.wantTexts(p, "1 show* accepted", "2 show* accepted")
		w.wantEvents(p, offers.OfferOpened)
	})
	t.Run("AReceiptCarriesTheOpenQuestion", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextReceipt, "Done: something else."))
		x := w.reserve()
		if x.OfferID != o.ID || !strings.HasPrefix(x.Body, "Done: something else.") || !strings.HasSuffix(x.Body, o.AskLine) {
			t.Fatalf("receipt %+v", x)
		}
		w.sent(x, offers.OutcomeAccepted)
		w.Advance(2 * MinRead)
		early := yes(o, w.says(p, "yes"))
		early.MinRead = time.Minute
		w.refused(early, offers.WhyTooSoon) // the reading time counts from that text
		w.Advance(time.Minute)
		late := yes(o, w.says(p, "yes"))
		late.MinRead = time.Minute
		w.wins(late)
	})
	t.Run("AReceiptGoesWhereItsOfferWas", func(t *testing.T) {
		for name, ends := range map[string]func(w *world, o offers.Offer, in offers.Inbound){
			"done": func(w *world, o offers.Offer, in offers.Inbound) {
				w.wins(yes(o, w.receive(in)))
				_, err := w.Store.Begin(w.ctx, w.begin(o))
				w.must(err)
				_, err = w.Store.Finish(w.ctx, offers.FinishRequest{AccountID: o.AccountID, OperationID: o.OperationID, Result: offers.Result{Status: "succeeded"}, Receipt: "Done."})
				w.must(err)
			},
			"declined": func(w *world, o offers.Offer, in offers.Inbound) {
				req := no(o, w.receive(in), offers.Declined)
				req.Receipt = "Not done."
				_, err := w.Store.CloseByReply(w.ctx, req)
				w.must(err)
			},
			"taken back": func(w *world, o offers.Offer, in offers.Inbound) {
				w.wins(yes(o, w.receive(in)))
				m := w.says(people.Person{Addresses: []people.Binding{{Address: in.Address, OurNumber: in.OurNumber}}}, "wait no")
				_, err := w.Store.CancelSettling(w.ctx, m.MessageID, m.PersonID, offers.CancelledReceipt)
				w.must(err)
			},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, open)
				first, second := people.Binding{Address: w.address(), OurNumber: Ours}, people.Binding{Address: w.address(), OurNumber: OursToo}
				p := w.personAt(people.DefaultAccount, gate.TierOwner, first, second)
				pr := w.proposal(p)
				pr.PersonID, pr.Address = "", second.Address
				o := w.propose(pr, func(plan *offers.Plan) {
					if name == "taken back" {
						settling(plan)
					}
				})
				w.sendAll()
				w.Advance(20 * MinRead)
				in := inbound(p, "yes")
				in.Address, in.OurNumber = second.Address, second.OurNumber
				ends(w, w.offer(o.ID), in)
				if x := w.lastText(p); x.Kind != offers.TextReceipt || x.Address != second.Address || x.OurNumber != second.OurNumber {
					t.Fatalf("receipt %+v", x)
				}
			})
		}
	})
	t.Run("ATextBesideTwoOffersIsAboutNone", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.propose(now(w.proposal(p)))
		w.propose(now(w.proposal(p)))
		w.sendAll()
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
		if x := w.reserve(); x.OfferID != "" || x.Body != "notice" {
			t.Fatalf("notice %+v", x)
		}
	})
	t.Run("ATextWithoutAnOffer", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
		if x := w.reserve(); x.OfferID != "" || x.Body != "notice" || x.Address != p.Addresses[0].Address {
			t.Fatalf("notice %+v", x)
		}
	})
	t.Run("NobodyToTell", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.personAt(people.DefaultAccount, gate.TierOwner)
		w.must(w.Store.Say(w.ctx, p.AccountID, p.ID, offers.TextNotice, "notice"))
		w.wantTexts(p)
		w.wantErr(w.Store.Say(w.ctx, p.AccountID, offers.NewID(), offers.TextNotice, "notice"), offers.ErrNotFound)
	})
	t.Run("AShowThatComesTooLateOpensNothing", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		x := w.reserve()
		w.withdraw(o)
		w.sent(x, offers.OutcomeAccepted)
		w.wantState(o.ID, offers.Withdrawn)
		if w.offer(o.ID).ShownAt != nil {
			t.Fatal("shown after its end")
		}
	})
}
