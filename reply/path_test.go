package reply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// The whole way of a message: stored, read, guarded, decided, and what is left behind.
func TestPath(t *testing.T) {
	t.Run("Yes", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		r := w.says("Yes")
		w.wantState(o, offers.Consumed)
		w.wantOp(o, offers.OpApproved)
		w.wantNews("offer.opened", "offer.closed", "operation.approved")
		if by := w.get(o).ClosedBy; by.MessageID != r.MessageID || by.Reading != "confirm" || by.P != 0.99 {
			t.Errorf("closed by %+v", by)
		}
		w.wantTexts("show* accepted") // its receipt comes with the result
	})
	t.Run("No", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.says("no")
		w.wantState(o, offers.Declined)
		w.wantNews("offer.opened", "offer.closed", "operation.closed")
		w.wantTexts("show* accepted", "receipt queued")
		if !strings.HasPrefix(w.lastBody(), "Not done") {
			t.Errorf("receipt %q", w.lastBody())
		}
	})
	t.Run("Unrelated", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		r := w.says("hello")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "message.received")
		w.wantTexts("show* accepted")
		if r.RunID == "" || !w.read(r).Decided {
			t.Error("without a run, or undecided")
		}
	})
	t.Run("UnclearWhereNobodyListens", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.says("hm")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/reading")
		w.wantTexts("show* accepted", "reask* queued")
		w.send()
		w.pass(20 * minRead)
		w.says("yes")
		w.wantState(o, offers.Consumed)
	})
	t.Run("UnclearWhereAnAgentListens", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.listens()
		w.says("hm")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/reading")
		w.wantTexts("show* accepted")
		w.pass(offers.ListensFor + time.Second)
		w.says("hm")
		w.wantTexts("show* accepted", "reask* queued") // it is gone
	})
	t.Run("AnEndpointThatAnswersListens", func(t *testing.T) {
		w := newWorld(t)
		w.must(w.store.AddEndpoint(w.ctx, offers.Endpoint{ID: offers.NewID(), AccountID: people.DefaultAccount, URL: "https://agent.example.test/", Secret: offers.NewEndpointSecret()}))
		w.shown()
		d, err := w.store.ClaimDelivery(w.ctx, time.Minute)
		if err != nil || d == nil {
			t.Fatalf("delivery %v %v", d, err)
		}
		w.must(w.store.RecordDelivery(w.ctx, *d, offers.Attempt{Status: 204}, offers.FateDelivered, 0))
		w.says("hm")
		w.wantTexts("show* accepted")
		w.pass(offers.AnswersFor + time.Second)
		w.says("hm")
		w.wantTexts("show* accepted", "reask* queued")
	})
	t.Run("NoOffer", func(t *testing.T) {
		w := newWorld(t)
		w.says("yes")
		w.wantNews("message.received")
		w.wantTexts()
	})
	t.Run("LossyWordsDecideNothing", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.says("yes", lossy)
		w.says("no", lossy)
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/reading", "reply.unresolved/reading")
	})
	t.Run("WithAFailingReader", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.reader.failed = errNoAnswer
		r := w.says("yes")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/reader_failed")
		if !w.read(r).Decided {
			t.Error("undecided")
		}
	})
	t.Run("AgainAndAgain", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		r := w.says("yes")
		w.news()
		for range 3 {
			w.must(w.processor().Process(w.ctx, r)) // as it was read before it was decided
			w.must(w.processor().Process(w.ctx, w.read(r)))
		}
		w.wantNews()
		w.wantState(o, offers.Consumed)
	})
	t.Run("OfAPersonWhoLostTheCapability", func(t *testing.T) {
		w := newWorld(t)
		w.person = w.add(gate.TierPaired)
		o := w.shown()
		w.says("yes")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/tier_lacks")
	})
}

// Invariant 8: code acts on a confirm at 0.9 or more, and with exactly one offer open.
func TestInvariant08_SureAndExactlyOne(t *testing.T) {
	t.Run("Sure", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.listens()
		w.says("yeah") // 0.89
		w.wantState(o, offers.Open)
		w.reader.says["yeah"] = reads(t, "confirm 0.9")
		w.says("yeah")
		w.wantState(o, offers.Consumed)
	})
	t.Run("AHigherThresholdOfItsOwn", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Threshold = 0.995
		o := w.shown()
		w.says("yes") // 0.99
		w.wantState(o, offers.Open)
	})
	t.Run("NoneBelow", func(t *testing.T) {
		w := newWorld(t)
		for _, cfg := range []Config{{Threshold: 0.89, MinRead: minRead}, {MinRead: minRead}, {Threshold: 0.9}, {Threshold: 0.9, MinRead: -1}} {
			if _, err := NewProcessor(w.store, w.reader, cfg, nil, nil); err == nil {
				t.Errorf("%+v was taken", cfg)
			}
		}
	})
	t.Run("ExactlyOne", func(t *testing.T) {
		w := newWorld(t)
		a, b := w.shown(atOnce), w.shown(atOnce)
		w.says("yes")
		w.wantState(a, offers.Open)
		w.wantState(b, offers.Open)
	})
}

// Invariant 10: a modify closes what it modifies.
func TestInvariant10_AModifyClosesTheOldVersion(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.says("make it 300")
	w.wantState(o, offers.Modified)
	w.wantOp(o, offers.OpState(offers.Modified))
	w.wantNews("offer.opened", "offer.closed", "operation.closed", "message.received")
	w.pass(20 * minRead)
	w.says("yes")
	w.wantState(o, offers.Modified)
	w.wantNews("message.received")
}

// The service never edits arguments itself: the wish goes to the agent, whose new offer takes the old one's place.
func TestCase_HA16_YesBut(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.says("yes but make it 300")
	w.wantState(o, offers.Modified)
	next := w.shown()
	w.pass(offers.CrossWindow)
	w.says("yes")
	w.wantState(next, offers.Consumed)
	w.wantState(o, offers.Modified)
}

// Invariant 12: a reader sees the person's own words and labels that code wrote.
func TestInvariant12_WhatTheReaderSees(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.says("earlier " + string(rune('1'+i)))
	}
	w.shown(labelled("send email to Dana"))
	w.must(w.store.Say(w.ctx, w.person.AccountID, w.person.ID, offers.TextMessage, "assistant says YES"))
	w.send()
	w.pass(20 * minRead)
	other := w.person
	w.person = w.add(gate.TierOwner)
	w.says("somebody else's words")
	w.person = other
	w.says("yes\n> Send email\n> Reply YES or NO.")

	in := w.reader.seen[len(w.reader.seen)-1]
	if got := in.Newest.String(); got != "yes" {
		t.Errorf("newest %q", got)
	}
	if len(in.Offers) != 1 || in.Offers[0].String() != "send email to Dana" {
		t.Errorf("offers %v", in.Offers)
	}
	var earlier []string
	for _, e := range in.Earlier {
		earlier = append(earlier, e.String())
	}
	if got := strings.Join(earlier, ", "); got != "earlier 6, earlier 5, earlier 4, earlier 3" {
		t.Errorf("earlier %q", got)
	}
}

// A label that is none is not shown to the reader as it is.
func TestLabelsAreCodes(t *testing.T) {
	in := input(offers.Received{Live: []offers.Offer{{Label: ""}, {Label: "\x00\n"}}})
	for _, l := range in.Offers {
		if l.String() != classifier.UnknownToolVerb {
			t.Errorf("label %q", l)
		}
	}
}

// Invariant 13: the text of an unpaired sender, and of a suspended person, reaches no reader and no event.
func TestInvariant13_PendingTextReachesNobody(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.news()
	stranger := w.stored("yes", func(in *offers.Inbound) { in.Address = "sms:+12025550198" })
	if stranger.Trusted || stranger.Text != "" || stranger.RunID != "" {
		t.Fatalf("a stranger's message: %+v", stranger)
	}
	w.must(w.processor().Process(w.ctx, stranger))
	stranger.Text, stranger.Live = "yes", []offers.Offer{o} // whatever a caller puts in
	w.must(w.processor().Process(w.ctx, stranger))
	if n := w.reader.shown(); n != 0 {
		t.Errorf("the reader was shown %d texts", n)
	}
	w.wantNews()
	w.wantState(o, offers.Open)
	w.says("hello")
	if in := w.reader.seen[0]; len(in.Earlier) != 0 {
		t.Errorf("%d earlier texts", len(in.Earlier))
	}
}

// Invariant 16: a reader that fails, is slow or talks nonsense has read "unclear".
func TestInvariant16_AReaderThatFails(t *testing.T) {
	for name, answer := range map[string]func(*script){
		"fails": func(s *script) { s.failed = errNoAnswer },
		"nonsense": func(s *script) {
			s.says["yes"] = classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{1, 1, 1, 1, 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.shown()
			answer(w.reader)
			w.says("yes")
			w.wantState(o, offers.Open)
			w.wantNews("offer.opened", "reply.unresolved/reader_failed")
		})
	}
	t.Run("no ledger, no release", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.breaks(`ALTER TABLE ledger RENAME TO ledger_gone`)
		r := w.stored("yes")
		if err := w.processor().Process(w.ctx, r); err == nil {
			t.Error("decided without a ledger")
		}
		w.wantState(o, offers.Open)
		if w.read(r).Decided {
			t.Error("decided")
		}
		w.breaks(`ALTER TABLE ledger_gone RENAME TO ledger`)
		w.must(w.processor().Process(w.ctx, w.read(r)))
		w.wantState(o, offers.Consumed)
	})
}

func TestCase_OO01_AYesThatCarriersTakeForStart(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.says("Yes", optOutType("START"))
	w.wantState(o, offers.Consumed)

	w = newWorld(t)
	w.says("Yes", optOutType("START"))
	w.wantNews("message.received")
}

func TestCase_OO02_CancelOptsOut(t *testing.T) {
	w := newWorld(t)
	o, next := w.shown(), w.offer()
	w.news()
	w.says("Cancel", optOutType("STOP"))
	w.wantState(o, offers.Withdrawn)
	w.wantState(next, offers.Withdrawn)
	w.wantNews("offer.closed", "operation.closed", "offer.closed", "operation.closed", "person.opted_out")
	w.wantTexts("show* accepted")
	if w.reader.shown() > 1 {
		t.Error("read more than once")
	}
	// Nothing is said, and what is proposed from now on is put to nobody.
	w.must(w.store.Say(w.ctx, w.person.AccountID, w.person.ID, offers.TextNotice, "notice"))
	later := w.offer()
	w.send()
	w.wantTexts("show* accepted")
	w.wantState(later, offers.Undeliverable)
}

// The send is refused for the opt-out that we did not know of.
func TestCase_OO04_RefusedWith21610(t *testing.T) {
	w := newWorld(t)
	w.carrier.answers = []offers.SendResult{{Outcome: offers.OutcomeRejected, Code: offers.CodeOptedOut}}
	o := w.shown()
	w.wantNews("offer.closed", "operation.closed", "person.opted_out")
	if got := w.get(o); !got.State.Closed() || got.State == offers.Consumed {
		t.Fatalf("offer is %s", got.State)
	}
	w.says("yes")
	if w.get(o).State == offers.Consumed {
		t.Fatal("an offer that nobody has seen was approved")
	}
	later := w.shown() // it was an opt-in: texts go out again
	w.wantState(later, offers.Open)
}

func TestCase_OO06_HelpIsTheCarriers(t *testing.T) {
	for _, in := range []struct{ words, provider string }{{"INFO", "HELP"}, {"help", ""}} {
		w := newWorld(t)
		o := w.shown()
		w.news()
		r := w.says(in.words, optOutType(in.provider))
		w.wantState(o, offers.Open)
		w.wantNews()
		w.wantTexts("show* accepted")
		if !w.read(r).Decided {
			t.Error("undecided")
		}
	}
}

// START, UNSTOP and YES of somebody who is opted out bring them back, and confirm nothing.
func TestOptInConfirmsNothing(t *testing.T) {
	for _, words := range []string{"START", "yes", "Unstop"} {
		t.Run(words, func(t *testing.T) {
			w := newWorld(t)
			w.says("STOP")
			w.news()
			// An offer that was live through all of it, as if the store had been wrong about it.
			w.breaks(`UPDATE addresses SET opted_out_at = NULL`)
			o := w.shown()
			w.breaks(`UPDATE addresses SET opted_out_at = 1`)
			w.news()
			w.says(words)
			w.wantState(o, offers.Open)
			w.wantNews("message.received")
			if r := w.stored("hello"); r.OptedOut {
				t.Error("still opted out")
			}
		})
	}
}

// One yes twice, as two messages, with another offer shown in between.
func TestCase_TD05_TheSameYesTwice(t *testing.T) {
	w := newWorld(t)
	a := w.shown()
	w.says("yes")
	w.wantState(a, offers.Consumed)
	b := w.offer()
	w.send()
	w.pass(2 * time.Second)
	w.says("yes")
	w.wantState(b, offers.Open)
	w.wantNews("offer.opened", "offer.closed", "operation.approved", "offer.opened", "reply.unresolved/texts_crossed")
	// The service asks again, whoever listens, and a yes to that is one to it.
	w.wantTexts("show* accepted", "show* accepted", "reask* queued")
	w.send()
	w.pass(15 * time.Second)
	w.says("yes")
	w.wantState(b, offers.Consumed)
}

func TestCase_TD06_TwoOnTheScreen(t *testing.T) {
	w := newWorld(t)
	a := w.shown(atOnce, labelled("send email to Dana"))
	b := w.shown(atOnce, labelled("pay Acme Tools"))
	w.news()
	w.says("yes")
	w.wantState(a, offers.Open)
	w.wantState(b, offers.Open)
	w.wantNews("reply.unresolved/several_open")
	if q := w.lastBody(); !strings.Contains(q, "1: send email to Dana") || !strings.Contains(q, "2: pay Acme Tools") {
		t.Errorf("question %q", q)
	}
	w.send()
	w.pass(20 * minRead)
	w.says("yes") // to the list is a yes to none
	w.wantState(a, offers.Open)
	w.wantState(b, offers.Open)

	// A number picks; the yes that follows is a yes to it.
	w.send()
	w.says("2")
	w.wantState(a, offers.Queued)
	w.send()
	w.pass(20 * minRead)
	w.says("yes")
	w.wantState(b, offers.Consumed)
	w.wantState(a, offers.Queued)
}

// Where an agent listens that could have made a list of its own, a number is its to understand.
func TestCase_TD06_ANumberWhereAnAgentListens(t *testing.T) {
	w := newWorld(t)
	a := w.shown(atOnce, labelled("send email to Dana"))
	b := w.shown(atOnce, labelled("pay Acme Tools"))
	w.says("yes")
	w.send()
	w.pass(2 * minRead)
	w.listens()
	w.news()
	w.says("2")
	w.wantState(a, offers.Open)
	w.wantState(b, offers.Open)
	w.wantNews("reply.unresolved/several_open")
}

// A number is one of the list that is on the screen; anything else is asked again.
func TestCase_TD06_ANumberOfNoList(t *testing.T) {
	w := newWorld(t)
	a := w.shown(atOnce, labelled("send email to Dana"))
	b := w.shown(atOnce, labelled("pay Acme Tools"))
	w.news()
	w.says("1")
	w.wantNews("reply.unresolved/not_listed")
	w.wantState(b, offers.Open)
	if q := w.lastBody(); !strings.Contains(q, "1: send email to Dana") {
		t.Fatalf("question %q", q)
	}
	w.send()
	w.pass(2 * minRead)
	c := w.offer(atOnce, labelled("delete files"))
	w.says("1") // of the list before c
	w.wantNews("reply.unresolved/not_listed")
	w.send()
	w.pass(20 * minRead)
	w.says("3")
	for o, want := range map[string]offers.State{a.ID: offers.Queued, b.ID: offers.Queued, c.ID: offers.Open} {
		w.wantState(offers.Offer{ID: o, AccountID: a.AccountID}, want)
	}
}

func TestCase_TD08_APictureWithoutWords(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.says("", lossy)
	w.wantState(o, offers.Open)
	w.wantNews("offer.opened", "reply.unresolved/reading")
	if w.reader.shown() != 0 {
		t.Error("the reader was asked about nothing")
	}
}

func TestCase_HA05_WhichOfTwo(t *testing.T) {
	w := newWorld(t)
	a, b := w.shown(atOnce), w.shown(atOnce)
	w.says("y")
	w.wantState(a, offers.Open)
	w.wantState(b, offers.Open)
}

// DESIGN decides it so: a text that comes after the offer ends with its question, so that the yes is one to it.
func TestCase_HA06_AQuestionInBetweenEndsWithTheOffers(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.must(w.store.Say(w.ctx, w.person.AccountID, w.person.ID, offers.TextMessage, "By the way, do you still use the old laptop?"))
	if !strings.HasSuffix(w.lastBody(), o.AskLine) {
		t.Fatalf("text %q", w.lastBody())
	}
	w.says("yes") // before that text is out
	w.wantState(o, offers.Open)
	w.wantNews("offer.opened", "reply.unresolved/last_text_unproven")
	w.send()
	w.pass(minRead / 2)
	w.says("yes") // faster than it can be read
	w.wantState(o, offers.Open)
	w.send()
	w.pass(20 * minRead)
	w.says("yes")
	w.wantState(o, offers.Consumed)
}

// A late answer to an old text says nothing of the offer that is open now.
func TestCase_HA08_AQuoteDecidesWhichOffer(t *testing.T) {
	for _, words := range []string{"yes", "no", "make it 300"} {
		t.Run(words, func(t *testing.T) {
			w := newWorld(t)
			a := w.shown()
			w.pass(11 * time.Minute)
			w.due()
			w.wantState(a, offers.Expired)
			b := w.shown()
			w.pass(offers.CrossWindow)
			w.news()
			w.says(words, quoting(sid(1)))
			w.wantState(b, offers.Open)
			w.wantNews("reply.unresolved/quotes_another_text")
			w.says(words, quoting("SMffffffffffffffffffffffffffffffff")) // of a text that is not ours
			w.wantState(b, offers.Open)
		})
	}
	t.Run("ItsOwnText", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.says("yes", quoting(sid(1)))
		w.wantState(o, offers.Consumed)
	})
}

// All or nothing: with several open, none.
func TestCase_HA12_YesToOneAndNoToAnother(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.shown(atOnce, labelled("send email to Dana")), w.shown(atOnce, labelled("pay Acme")), w.shown(atOnce, labelled("delete files"))
	w.reader.says["yes to dana but no to acme"] = reads(t, "confirm 0.99")
	w.says("yes to Dana but no to Acme")
	for _, o := range []offers.Offer{a, b, c} {
		w.wantState(o, offers.Open)
	}
}

// After several asks the question that is put again says what is over, so that nobody takes it for the other one.
func TestCase_HA08_TheQuestionSaysWhatHasEnded(t *testing.T) {
	w := newWorld(t)
	a := w.shown(labelled("send email to Dana"))
	w.offer(labelled("pay Acme Tools"))
	w.pass(a.ExpiresAt.Sub(w.now()))
	w.due()
	w.wantState(a, offers.Expired)
	b := w.shown(labelled("delete files"))
	w.news()
	w.says("hm")
	if q := w.lastBody(); q != "No longer open: send email to Dana (expired).\nTo be sure: delete files?\n"+b.AskLine {
		t.Errorf("question %q", q)
	}
}

func TestCase_ID03_AGroup(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	w.says("yes! see you at 8", lossy) // which is what other recipients make of a message
	w.says("yes", lossy)
	w.says("yes! see you at 8")
	w.wantState(o, offers.Open)
}

func TestCase_AR01_TwoMachines(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	for range 20 {
		w.says("Auto-reply: I'm busy right now, will get back to you. OK!")
		w.send()
		w.pass(time.Minute / 2)
	}
	w.wantState(o, offers.Open)
	if n := len(w.carrier.sent); n != 1 {
		t.Errorf("%d texts to a machine that says it is one", n)
	}
	// One that does not say so gets two questions an offer, and no more than so many in an hour.
	w = newWorld(t)
	w.cfg.HourlyTexts = 3
	for range 6 {
		w.shown()
		for range 5 {
			w.says("I am not able to talk")
			w.send()
			w.pass(time.Second)
		}
		w.pass(3 * time.Minute)
		w.breaks(`UPDATE offers SET state = 'expired' WHERE state = 'open'`)
	}
	asked := 0
	for _, m := range w.carrier.sent {
		if strings.HasPrefix(m.Body, "To be sure") {
			asked++
		}
	}
	if asked != 3 {
		t.Errorf("%d questions in an hour, want 3", asked)
	}
	w.pass(time.Hour)
	w.shown()
	w.says("I am not able to talk")
	w.send()
	if last := w.carrier.sent[len(w.carrier.sent)-1]; !strings.HasPrefix(last.Body, "To be sure") {
		t.Error("silent in the next hour as well")
	}
}

func TestReasks(t *testing.T) {
	w := newWorld(t)
	w.shown()
	for range 5 {
		w.says("hm")
		w.send()
		w.pass(time.Second)
	}
	w.wantTexts("show* accepted", "reask* accepted", "reask* accepted") // MaxReasks
}

// A text that crosses: another ask was on the screen just before, so the yes may have been meant for that.
func TestTextsThatCross(t *testing.T) {
	for name, close := range map[string]func(w *world, old offers.Offer){
		"withdrawn": func(w *world, old offers.Offer) {
			_, err := w.store.Withdraw(w.ctx, old.AccountID, old.ID, offers.Closer{By: offers.ByAgent})
			w.must(err)
			w.offer()
		},
		"superseded": func(w *world, old offers.Offer) { w.offer(superseding(old)) },
		"declined":   func(w *world, old offers.Offer) { w.says("no"); w.offer() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := w.shown()
			w.listens()
			close(w, old)
			w.send()
			list, err := w.store.Offers(w.ctx, people.DefaultAccount, offers.Filter{State: offers.Open})
			if err != nil || len(list) != 1 {
				t.Fatalf("%d open, %v", len(list), err)
			}
			o := list[0]
			w.pass(5 * time.Second)
			w.news()
			w.says("yes")
			w.wantState(o, offers.Open)
			w.wantNews("reply.unresolved/texts_crossed")
			if !strings.Contains(w.lastBody(), "\nTo be sure") {
				t.Fatalf("not asked again though an agent listens: %q", w.lastBody())
			}
			w.send()
			w.pass(15 * time.Second)
			w.says("yes")
			w.wantState(o, offers.Consumed)
		})
	}
}

// "wait no" while a yes settles takes it back; so does whatever may mean that.
func TestTakingBackAYesThatSettles(t *testing.T) {
	back := map[string]func(w *world){
		"no":               func(w *world) { w.says("wait no") },
		"a change":         func(w *world) { w.says("make it 300") },
		"unreadable":       func(w *world) { w.reader.failed = errNoAnswer; w.says("wait") },
		"reaction removed": func(w *world) { w.says("Removed a like from “Send email”") },
		"disliked":         func(w *world) { w.says("Disliked “Send email”") },
		"opting out":       func(w *world) { w.says("STOP") },
		"overtaken": func(w *world) {
			first := w.stored("wait no")
			w.says("hello")
			w.must(w.processor().Process(w.ctx, w.read(first)))
		},
		"decided after the time is over": func(w *world) {
			r := w.stored("wait no")
			w.pass(time.Minute)
			w.due() // which leaves alone what somebody has spoken about
			w.must(w.processor().Process(w.ctx, r))
		},
	}
	for name, says := range back {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.shown(settling)
			w.says("yes")
			w.wantOp(o, offers.OpSettling)
			w.news()
			says(w)
			w.wantOp(o, offers.OpState(offers.Declined))
			if got := w.news(); !slices.Contains(got, "operation.closed") {
				t.Errorf("events %q", got)
			}
			w.pass(time.Minute)
			w.due()
			w.wantOp(o, offers.OpState(offers.Declined))
			rows, err := w.store.Ledger(w.ctx, w.person.AccountID, w.person.ID)
			w.must(err)
			if last := rows[len(rows)-1]; last.Kind != ledger.Closed || !strings.Contains(string(last.Body), "declined") {
				t.Errorf("last ledger row %s %s", last.Kind, last.Body)
			}
		})
	}
	// A carrier may turn "yes" and "wait no" around, and reading takes time: the no is looked at though the yes is newer, and
	// though nothing had been approved when the no was read.
	for name, late := range map[string]func(w *world, no offers.Received) offers.Received{
		"read before the yes":            func(_ *world, no offers.Received) offers.Received { return no },
		"as it was read before the yes":  func(_ *world, no offers.Received) offers.Received { no.Overtaken = true; return no },
		"read after the yes had its way": func(w *world, no offers.Received) offers.Received { return w.read(no) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.shown(settling)
			no := w.stored("wait no")
			w.says("yes")
			w.wantOp(o, offers.OpSettling)
			w.must(w.processor().Process(w.ctx, late(w, no)))
			w.wantOp(o, offers.OpState(offers.Declined))
		})
	}
	stays := map[string]func(w *world){
		"thanks":           func(w *world) { w.says("thanks") },
		"hello":            func(w *world) { w.says("hello") },
		"yes again":        func(w *world) { w.says("yes") },
		"help":             func(w *world) { w.says("HELP") },
		"liked":            func(w *world) { w.says("Liked “Send email”") },
		"a no that is old": func(w *world) { w.pass(time.Minute); w.due(); w.says("wait no") },
	}
	for name, says := range stays {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.shown(settling)
			w.says("yes")
			says(w)
			w.pass(time.Minute)
			w.due()
			w.wantOp(o, offers.OpApproved)
		})
	}
	t.Run("the receipt says so", func(t *testing.T) {
		w := newWorld(t)
		w.shown(settling)
		w.says("yes")
		w.says("wait no")
		if !strings.HasPrefix(w.lastBody(), "Stopped in time") {
			t.Errorf("receipt %q", w.lastBody())
		}
	})
}

// Reactions on the whole way.
func TestReactions(t *testing.T) {
	t.Run("RX-01 a like asks for a typed answer", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.says("Liked “" + o.ShownText + "”")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/tapback")
		w.wantTexts("show* accepted", "reask* queued")
		if w.reader.shown() != 0 {
			t.Error("our own words were shown to the reader as the person's")
		}
	})
	t.Run("a like confirms where that is set", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.TapbackConfirms = true
		o := w.shown()
		w.says("Liked “" + o.ShownText + "”")
		w.wantState(o, offers.Consumed)
	})
	t.Run("under every other condition of a yes", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.TapbackConfirms = true
		o := w.offer()
		w.send()
		w.pass(minRead / 2)
		w.says("Liked “" + o.ShownText + "”")
		w.wantState(o, offers.Open)
		w.wantNews("offer.opened", "reply.unresolved/too_soon")
	})
	t.Run("RX-03 a dislike declines", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown()
		w.says("Disliked “" + o.ShownText + "”")
		w.wantState(o, offers.Declined)
	})
	t.Run("of an older offer's text", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.TapbackConfirms = true
		a := w.shown()
		w.says("no")
		w.send()
		b := w.shown()
		w.pass(offers.CrossWindow)
		w.says("Liked “" + a.ShownText + "”")
		w.says("Disliked “" + a.ShownText + "”")
		w.wantState(b, offers.Open)
	})
}

// Invariant 19: a message that was acknowledged is processed, whatever crashes after.
func TestInvariant19_AnAcknowledgedMessageIsProcessed(t *testing.T) {
	w := newWorld(t)
	o := w.shown()
	r := w.stored("yes") // and the process dies
	ids, err := w.open().Undecided(w.ctx, 0, 10)
	if err != nil || len(ids) != 1 || ids[0] != r.MessageID {
		t.Fatalf("undecided %v %v", ids, err)
	}
	w.runs(NewRunner(w.store, w.processor().Process, discard(), 2, 8), func() bool { return w.read(r).Decided })
	w.wantState(o, offers.Consumed)
}

// A person's reply to the parts of a long text: every part is a text of ours.
func TestPartsOfALongText(t *testing.T) {
	long := func(_ *offers.Proposal, p *offers.Plan) {
		p.Offer.ShownText = "Send email\n" + strings.Repeat("Body: "+strings.Repeat("word ", 20)+"\n", 5) + p.Offer.AskLine
	}
	t.Run("all accepted", func(t *testing.T) {
		w := newWorld(t)
		o := w.shown(long)
		if n := len(w.carrier.sent); n != 2 && n != 3 {
			t.Fatalf("%d messages", n)
		}
		w.says("yes", quoting(sid(2)))
		w.wantState(o, offers.Consumed)
	})
	t.Run("one refused", func(t *testing.T) {
		w := newWorld(t)
		w.carrier.answers = []offers.SendResult{{Outcome: offers.OutcomeAccepted, ProviderID: sid(1)}, {Outcome: offers.OutcomeRejected, Code: 30007}}
		o := w.shown(long)
		w.wantState(o, offers.Undeliverable)
		w.says("yes")
		w.wantState(o, offers.Undeliverable)
	})
	t.Run("one unknown, then proved", func(t *testing.T) {
		w := newWorld(t)
		w.carrier.answers = []offers.SendResult{{Outcome: offers.OutcomeAccepted, ProviderID: sid(1)}, {}}
		o := w.shown(long)
		parts := w.carrier.sent[0].Parts
		w.wantState(o, offers.Sending)
		w.says("yes")
		w.wantState(o, offers.Sending)
		w.must(w.store.Report(w.ctx, offers.StatusReport{TextID: w.carrier.sent[0].TextID, ProviderID: sid(1), Part: 1, Parts: parts, Status: "delivered"}))
		w.wantState(o, offers.Sending) // of the second part nothing is known yet
		w.must(w.store.Report(w.ctx, offers.StatusReport{TextID: w.carrier.sent[0].TextID, ProviderID: sid(90), Part: 2, Parts: parts, Status: "sent"}))
		w.wantState(o, offers.Open)
		w.pass(20 * minRead)
		w.says("yes")
		w.wantState(o, offers.Consumed)
	})
}
