package storetest

import (
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// scene is a person with two phones whose texts, ends and answers are put at exact times. Each is counted from the newest
// ask of the offer that is answered, which is shown last and asked about on the first phone.
type scene struct {
	*world
	p     people.Person
	o     offers.Offer
	asked time.Time
	names bool
}

func (w *world) scene() *scene {
	return &scene{world: w, p: w.personAt(people.DefaultAccount, gate.TierOwner,
		people.Binding{Address: w.address(), OurNumber: Ours}, people.Binding{Address: w.address(), OurNumber: OursToo})}
}

// put sends what is in line and puts the newest text at that time. Returns the text's id.
func (s *scene) put(at time.Duration) string {
	s.t.Helper()
	s.sendAll()
	x := s.lastText(s.p)
	s.at("texts", x.ID, "sending_at", at)
	return x.ID
}

// at sets a time; what it is counted from is far enough from the real one that nothing else falls among the scene's times.
func (s *scene) at(table, id, column string, d time.Duration) {
	s.Set(table, id, column, s.asked.Add(d))
}

// other shows another offer on the first phone, or on the second one.
func (s *scene) other(at time.Duration, second bool) offers.Offer {
	s.t.Helper()
	pr := now(s.proposal(s.p))
	if second {
		pr.PersonID, pr.Address = "", s.p.Addresses[1].Address
	}
	o := s.propose(pr)
	s.put(at)
	return o
}

// ends ends another offer: by the person's own answer, or not.
func (s *scene) ends(o offers.Offer, at time.Duration, state offers.State, closer any) {
	s.Set("offers", o.ID, "state", string(state))
	s.Set("offers", o.ID, "closed_by", closer)
	s.at("offers", o.ID, "closed_at", at)
}

const (
	byAgent  = `{"by":"agent"}`
	byPerson = `{"message_id":"0190a0b0-0000-7000-8000-000000000000","reading":"decline","p":1}`
)

// old is another offer that was shown then and withdrawn a little later, without a text.
func (s *scene) old(at time.Duration) offers.Offer {
	s.t.Helper()
	o := s.other(at, false)
	s.ends(o, at+time.Second, offers.Withdrawn, byAgent)
	return o
}

// goesBack shows another offer long before, which went back in line.
func (s *scene) goesBack(at time.Duration) {
	s.t.Helper()
	o := s.other(-time.Hour, false)
	s.Set("offers", o.ID, "state", string(offers.Queued))
	s.Set("offers", o.ID, "present", string(offers.PresentQueue))
	s.at("offers", o.ID, "left_at", at)
}

// show shows the offer that is answered.
func (s *scene) show(at time.Duration) {
	s.t.Helper()
	s.o = s.propose(now(s.proposal(s.p)))
	s.put(at)
	s.at("offers", s.o.ID, "shown_at", at)
}

// asks puts its question again.
func (s *scene) asks(at time.Duration) {
	s.t.Helper()
	s.reask(s.p, s.o)
	s.put(at)
}

// said lets the agent say something of its own.
func (s *scene) said(at time.Duration) string {
	s.t.Helper()
	s.agentSays(s.p, "Shall I email your sister a happy birthday?")
	return s.put(at)
}

// yes makes the one that comes so long after the newest ask.
func (s *scene) yes(after time.Duration) offers.ConsumeRequest {
	s.t.Helper()
	s.at("offers", s.o.ID, "asked_at", 0)
	m := s.says(s.p, "yes")
	s.at("messages", m.MessageID, "received_at", after)
	c := yes(s.offer(s.o.ID), m)
	c.Names = s.names
	return c
}

// screenTests: a quick yes may be one to what stood on the screen when it was written, however long that had been there.
func screenTests(w *world) {
	const (
		window = -offers.CrossWindow
		long   = -time.Hour
		tick   = time.Microsecond
		soon   = 2 * MinRead
		after  = offers.CrossFactor * MinRead
	)
	for _, c := range []struct {
		name    string
		crossed bool
		after   time.Duration
		make    func(s *scene)
	}{
		{"NothingElse", false, soon, func(s *scene) { s.show(0) }},
		// An ask that nobody has answered and nothing has covered.
		{"WithdrawnLongAgo", true, soon, func(s *scene) { s.old(long); s.show(0) }},
		{"UntilTheTimeForReadingIsOver", true, after - tick, func(s *scene) { s.old(long); s.show(0) }},
		{"NotAfterIt", false, after, func(s *scene) { s.old(long); s.show(0) }},
		{"NotWhereTheWordsNameTheOffer", false, soon, func(s *scene) { s.names = true; s.old(long); s.show(0) }},
		{"NotWhatNobodyHasSeen", false, soon, func(s *scene) {
			s.Set("texts", s.textAbout(s.old(long)), "state", "rejected")
			s.show(0)
		}},
		{"NotOnAnotherPhone", false, soon, func(s *scene) {
			s.ends(s.other(long, true), long, offers.Withdrawn, byAgent)
			s.show(0)
		}},
		// What covers it: a text that asks, was certainly there, and on this phone.
		{"CoveredByItsOwnQuestion", false, soon, func(s *scene) { s.old(long); s.show(window); s.asks(0) }},
		{"NotYetCovered", true, soon, func(s *scene) { s.old(long); s.show(window + tick); s.asks(0) }},
		{"CoveredByWhatMayNotBeThere", true, soon, func(s *scene) {
			s.old(long)
			s.show(window)
			s.Set("texts", s.textAbout(s.o), "state", "unknown")
			s.asks(0)
		}},
		{"CoveredByWhatAsksNothing", true, soon, func(s *scene) {
			s.old(long)
			s.must(s.Store.Say(s.ctx, s.p.AccountID, s.p.ID, offers.TextReceipt, "Done: something else."))
			s.put(long / 2)
			s.show(0)
		}},
		{"CoveredOnAnotherPhone", true, soon, func(s *scene) {
			s.old(long)
			s.ends(s.other(long/2, true), long/2, offers.Withdrawn, byAgent)
			s.show(0)
		}},
		{"CoveredForAnotherOfOurNumbers", true, soon, func(s *scene) {
			s.old(long)
			s.show(long / 2)
			s.Set("texts", s.textAbout(s.o), "our_number", string(OursToo))
			s.asks(0)
		}},
		// What the person has answered.
		{"AnsweredLongAgo", false, soon, func(s *scene) {
			s.ends(s.other(long, false), window, offers.Declined, byPerson)
			s.show(0)
		}},
		{"AnsweredJustBefore", true, soon, func(s *scene) {
			s.ends(s.other(long, false), window+tick, offers.Declined, byPerson)
			s.show(0)
		}},
		{"AnsweredWhileThisOneWasThere", true, soon, func(s *scene) {
			s.show(window)
			s.ends(s.other(window, false), window, offers.Declined, byPerson)
			s.asks(0)
		}},
		{"AnsweredBeforeThisOneWasThere", false, soon, func(s *scene) {
			s.ends(s.other(long, false), window, offers.Declined, byPerson)
			s.show(window + tick)
			s.asks(0)
		}},
		// What ended within the window, though something covers it.
		{"EndedWithinTheWindow", true, soon, func(s *scene) {
			s.ends(s.other(long, false), window+tick, offers.Withdrawn, byAgent)
			s.show(window)
			s.asks(0)
		}},
		{"EndedBefore", false, soon, func(s *scene) {
			s.ends(s.other(long, false), window, offers.Withdrawn, byAgent)
			s.show(window)
			s.asks(0)
		}},
		{"EndedWithinTheWindowAndTheWordsNameTheOffer", false, soon, func(s *scene) {
			s.names = true
			s.ends(s.other(long, false), window+tick, offers.Withdrawn, byAgent)
			s.show(window)
			s.asks(0)
		}},
		{"WentBackInLineWithinTheWindow", true, soon, func(s *scene) {
			s.goesBack(window + tick)
			s.show(window)
			s.asks(0)
		}},
		{"WentBackInLineBefore", false, soon, func(s *scene) {
			s.goesBack(window)
			s.show(window)
			s.asks(0)
		}},
		// A list asks, too.
		{"AList", true, soon, func(s *scene) {
			a := s.other(long, false)
			s.show(long)
			s.lists(s.p, a, s.o)
			s.put(long)
			s.ends(a, long, offers.Withdrawn, byAgent)
			s.asks(0)
		}},
		// What an agent says is no ask of ours, and is answered all the same.
		{"SaidLongAgo", true, soon, func(s *scene) { s.said(long); s.show(0) }},
		{"SaidLongAgoAndTheWordsNameTheOffer", true, soon, func(s *scene) { s.names = true; s.said(long); s.show(0) }},
		{"SaidUntilTheTimeForReadingIsOver", true, after - tick, func(s *scene) { s.said(long); s.show(0) }},
		{"SaidAndNotAfterIt", false, after, func(s *scene) { s.said(long); s.show(0) }},
		{"SaidAndCovered", false, soon, func(s *scene) { s.said(long); s.show(window); s.asks(0) }},
		{"SaidAndNotYetCovered", true, soon, func(s *scene) { s.said(long); s.show(window + tick); s.asks(0) }},
		{"SaidWithTheQuestion", false, soon, func(s *scene) { s.show(long); s.said(long); s.asks(0) }},
		{"SaidWithTheQuestionOfAnother", true, soon, func(s *scene) {
			s.names = true
			a := s.other(long, false)
			s.said(long)
			s.ends(a, long, offers.Declined, byPerson)
			s.show(0)
		}},
		{"SaidOnAnotherPhone", true, soon, func(s *scene) {
			s.Set("texts", s.said(window+tick), "address", string(s.p.Addresses[1].Address))
			s.show(0)
		}},
		{"SaidOnAnotherPhoneBefore", false, soon, func(s *scene) {
			s.Set("texts", s.said(window), "address", string(s.p.Addresses[1].Address))
			s.show(0)
		}},
		{"SaidForAnotherOfOurNumbersBefore", false, soon, func(s *scene) {
			s.Set("texts", s.said(window), "our_number", string(OursToo))
			s.show(0)
		}},
		{"SaidWhenTheYesCame", true, soon, func(s *scene) { s.said(soon); s.show(0) }},
		{"SaidAfterTheYesCame", false, soon, func(s *scene) { s.said(soon + tick); s.show(0) }},
	} {
		w.run("Invariant09_OnTheScreen_"+c.name, func(w *world) {
			s := w.scene()
			s.asked = time.Now().Truncate(tick).Add(-time.Minute)
			c.make(s)
			if req := s.yes(c.after); c.crossed {
				w.refused(req, offers.WhyCrossed)
			} else {
				w.wins(req)
			}
		})
	}
	w.run("Invariant09_OnTheScreen_CitedAndNotAfterIt", func(w *world) {
		s := w.scene()
		s.asked = time.Now().Truncate(tick).Add(-time.Minute)
		s.old(long)
		s.show(0)
		req := s.yes(after)
		m, err := w.Store.Context(w.ctx, req.MessageID)
		w.must(err)
		w.unresolve(m)
		_, err = w.Store.ConsumeCited(w.ctx, req)
		w.must(err)
	})
}
