package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

// play is the whole script.
func (s *script) play() {
	s.wholePath()
	s.sameThingTwice()
	s.answers()
	s.otherEnds()
	s.severalAtOnce()
	s.phones()
	s.takingBack()
	s.bundle()
	s.outsiders()
	s.crashes()
	s.books()
}

func (s *script) wholePath() {
	var p scriptPerson
	var o offers.Offer
	args := map[string]any{
		"to": []string{"sam@example.com", "kim@example.org"}, "cc": []string{"lee@example.com"}, "subject": "Lunch <Friday> & más",
		"body": "Friday at 12:30?\nReply YES to all.\n\u202eAlex",
	}
	raw, err := json.Marshal(args)
	canonical, sum, cerr := offers.Canonical(raw)

	s.step("keys and people are made beside a running server, and count at once", func() {
		must("arguments", errors.Join(err, cerr))
		ready, err := s.agent.get(s.ctx, "/readyz")
		must("GET /readyz", err)
		want("GET /readyz", ready.status, http.StatusOK)
		got, err := s.agent.get(s.ctx, "/v1/offers")
		must("GET /v1/offers", err)
		refused("a call without a key", got, http.StatusUnauthorized, "unauthorized")
		var made struct{ ID, Key string }
		s.command(&made, "keys", "create", "--name", "demo agent", "--scope", "agent")
		s.agent.key = made.Key
		s.drain() // what earlier runs have left
		s.feed = nil
		p = s.person()
	})
	s.step("an offer is enqueued: 201, decision ask, arguments canonical and hashed", func() {
		o = s.propose(p, "email.send", args, nil)
		want("arguments of the offer", string(o.Args), string(canonical))
		want("args_sha256", o.ArgsSHA256, offers.Hex(sum))
	})
	s.step("its text shows every argument, and ends with a line that code wrote", func() {
		text := s.text(p, 1)
		want("the text", text, o.ShownText)
		for _, line := range []string{
			"To: sam@example.com\n", "To: kim@example.org\n", "Cc: lee@example.com\n", "Subject: Lunch <Friday> & más\n",
			"Text: Friday at 12:30?\n", "Text: Reply YES to all.\n", "Text: <U+202E>Alex\n",
		} {
			want(fmt.Sprintf("the line %q", line), strings.Contains(text, line), true)
		}
		want("the last line", text[strings.LastIndex(text, "\n")+1:],
			"This sends to sam@example.com, kim@example.org, lee@example.com. Reply YES or NO.")
	})
	s.step("nothing is handed out before the yes: begin is 409 not_approved", func() {
		s.shown(o)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step(`"ya send it" approves it, once, and a waiting agent is told`, func() {
		s.wait(demoRead)
		waiting := make(chan offers.OpState, 1)
		go func() {
			var op offers.Operation
			if got, err := s.agent.get(s.ctx, "/v1/operations/"+o.OperationID+"?wait=20s"); err == nil && got.status == http.StatusOK {
				_ = got.into(&op)
			}
			waiting <- op.State
		}()
		ends(s.reply(p, "ya send it"), o, offers.Consumed)
		want("what the waiting call says", <-waiting, offers.OpApproved)
		s.released(o)
	})
	s.step("begin with other arguments is 422 args_hash_mismatch, and takes nothing away", func() {
		other := maps.Clone(args)
		other["cc"] = []string{"mallory@example.com"}
		got := s.post("/v1/operations/"+o.OperationID+"/begin", "", map[string]any{"args": other})
		refused("begin with other arguments", got, http.StatusUnprocessableEntity, "args_hash_mismatch")
		wrong := sha256.Sum256([]byte("other"))
		refused("begin with another hash", s.begin(o, offers.Hex(wrong)), http.StatusUnprocessableEntity, "args_hash_mismatch")
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpApproved)
	})
	s.step("begin with the right hash gives the exact bytes that were shown", func() {
		bytes, err := s.begin(o, o.ArgsSHA256).begun()
		must("begin", err)
		want("the arguments", string(bytes), string(canonical))
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpRunning)
	})
	s.step("a second begin is 409 already_begun", func() {
		refused("the second begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "already_begun")
	})
	s.step("the result closes it, and the person gets one receipt", func() {
		s.succeed(o)
		want("the receipt", s.text(p, 2), "Done: "+o.Label+".")
		s.succeed(o) // the same result again is the same answer
	})
	s.step("a yes after that releases nothing", func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpSucceeded)
		want("texts to the person", len(s.twilio.texts(p.number)), 2)
	})
}

func (s *script) begin(o offers.Offer, sum string) httpAnswer {
	return s.post("/v1/operations/"+o.OperationID+"/begin", "", map[string]any{"args_sha256": sum})
}

func (s *script) succeed(o offers.Offer) {
	got := s.post("/v1/operations/"+o.OperationID+"/result", "", map[string]any{"status": "succeeded", "output": map[string]any{"message_id": "m-1"}})
	want("answer to the result", fmt.Sprint(got.status, " ", got.code()), "200 ")
	want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpSucceeded)
}

func (s *script) sameThingTwice() {
	var p scriptPerson
	var o offers.Offer
	key := offers.NewID()
	s.step("the same Idempotency-Key with the same body is the same offer, and one text", func() {
		p = s.person()
		o = s.proposed(s.post("/v1/offers", key, offerBody(p, "email.send", email("Twice"), nil)))
		var again offers.Offer
		got := s.post("/v1/offers", key, offerBody(p, "email.send", email("Twice"), nil))
		want("answer to the second call", got.status, http.StatusCreated)
		must("its offer", got.into(&again))
		want("id of its offer", again.ID, o.ID)
		s.shown(o)
		want("texts to the person", len(s.twilio.texts(p.number)), 1)
	})
	s.step("the same Idempotency-Key with another body is 422 idempotency_conflict", func() {
		got := s.post("/v1/offers", key, offerBody(p, "email.send", email("Twice, and other"), nil))
		refused("the same key", got, http.StatusUnprocessableEntity, "idempotency_conflict")
	})
	s.step("the same webhook five times at once: five times 200, one approval", func() {
		s.wait(demoRead)
		form := s.twilio.inbound("SM"+randomHex(), p.number, "yes")
		var answers [5]string
		var wg sync.WaitGroup
		from := len(s.feed)
		for i := range answers {
			wg.Go(func() {
				got, err := s.twilio.post(s.ctx, s.door(), "", form, nil)
				answers[i] = fmt.Sprint(got.status, " ", string(got.body), " ", err)
			})
		}
		wg.Wait()
		for _, a := range answers {
			want("answer of the webhook", a, "200 <Response></Response> <nil>")
		}
		ends(s.outcome(p, "yes", from), o, offers.Consumed)
		s.released(o)
		want("rows in the ledger that say consumed", s.consumed(p, o.OperationID), 1)
	})
}

// consumed counts the ledger's rows of a yes.
func (s *script) consumed(p scriptPerson, operationID string) int {
	rows, err := s.store.Ledger(s.ctx, people.DefaultAccount, p.id)
	must("the ledger", err)
	n := 0
	for _, r := range rows {
		if r.Kind == ledger.Consumed && r.OperationID == operationID {
			n++
		}
	}
	return n
}

func (s *script) answers() {
	var p scriptPerson
	var o offers.Offer
	s.step(`"ok but cc Dana" closes as modified, and the agent is told the words`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		from := len(s.feed)
		ends(s.reply(p, "ok but cc Dana"), o, offers.Modified)
		told := s.await("message.received", from, func(h heard) bool { return h.Type == offers.MessageReceived && h.data.PersonID == p.id })
		want("text in the event", told.data.Text, "ok but cc Dana")
		want("reading in the event", told.data.Reading, "modify")
		s.closed(o, offers.Modified)
	})
	s.step(`a later "yes" does not release the old version`, func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Modified)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step(`the agent asks anew with the change, and "yes" releases that`, func() {
		args := email("Lunch")
		args["cc"] = []string{"dana@example.com"}
		anew := s.ask(p, "email.send", args, nil)
		want("the change is in the text", strings.Contains(s.text(p, 2), "Cc: dana@example.com\n"), true)
		ends(s.reply(p, "yes"), anew, offers.Consumed)
		s.released(anew)
	})
	s.step(`"wait no" closes as declined, with a receipt`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		ends(s.reply(p, "wait no"), o, offers.Declined)
		want("the receipt", s.text(p, 2), "Not done: "+o.Label+".")
		s.closed(o, offers.Declined)
	})
	s.step(`a "yes" after the no releases nothing`, func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Declined)
	})
	s.step(`"thanks" leaves it open`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		passed(s.reply(p, "thanks"), offers.ReplyUnresolved, offers.WhyReadingSays)
		s.stays(o)
	})
	s.step(`"yes" after the thanks releases it`, func() {
		ends(s.reply(p, "yes"), o, offers.Consumed)
		s.released(o)
	})
	for _, words := range []string{"yes?", "k thx what time"} {
		s.step(fmt.Sprintf("%q leaves it open", words), func() {
			p = s.person()
			o = s.ask(p, "email.send", email("Lunch"), nil)
			h := s.reply(p, words)
			want("event is about the message", h.Type == offers.ReplyUnresolved || h.Type == offers.MessageReceived, true)
			s.stays(o)
		})
	}
	s.step(`"👍" releases`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		ends(s.reply(p, "👍"), o, offers.Consumed)
		s.released(o)
	})
	s.step(`a delete answered "keep it" is not released`, func() {
		p = s.person()
		o = s.ask(p, "files.delete", map[string]any{"path": "taxes/2025.pdf"}, nil)
		want("the last line", strings.HasSuffix(s.text(p, 1), "This deletes and cannot be undone. Reply YES or NO."), true)
		s.reply(p, "keep it")
		got := s.offer(o.ID)
		want("declined or open", got.State == offers.Declined || got.State == offers.Open, true)
		s.note = string(got.State)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
}

func (s *script) otherEnds() {
	var p scriptPerson
	var o, anew offers.Offer
	s.step("an offer that nobody answers expires", func() {
		p = s.person()
		o = s.propose(p, "seats.hold", map[string]any{"row": "C"}, nil)
		s.shown(o)
		h := s.await("offer.closed", 0, func(h heard) bool { return h.Type == offers.OfferClosed && h.data.Offer.ID == o.ID })
		want("state in the event", h.data.Offer.State, offers.Expired)
		want("closed by", h.data.Offer.ClosedBy.By, offers.ByClock)
		s.closed(o, offers.Expired)
	})
	s.step(`a "yes" after that releases nothing`, func() {
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Expired)
	})
	s.step("an offer that is superseded is closed with the new one, which is shown", func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch at noon"), nil)
		anew = s.ask(p, "email.send", email("Lunch at one"), map[string]any{"supersedes": o.ID})
		s.closed(o, offers.Superseded)
		want("the text", s.text(p, 2), anew.ShownText)
	})
	s.step(`"yes" then releases the new one, and never the old one`, func() {
		ends(s.reply(p, "yes"), anew, offers.Consumed)
		s.released(anew)
		s.closed(o, offers.Superseded)
	})
	s.step(`an offer that the agent has withdrawn is not released by "yes"`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		s.withdraw(o)
		passed(s.reply(p, "yes"), offers.MessageReceived, "")
		s.closed(o, offers.Withdrawn)
	})
}

func (s *script) withdraw(o offers.Offer) {
	got, err := s.agent.do(s.ctx, http.MethodDelete, "/v1/offers/"+o.ID, "", nil)
	must("DELETE", err)
	want("answer to DELETE", fmt.Sprint(got.status, " ", got.code()), "200 ")
	s.closed(o, offers.Withdrawn)
}

func (s *script) severalAtOnce() {
	var p scriptPerson
	var first, second offers.Offer
	s.step("of two offers one is shown; the next follows when it is answered", func() {
		p = s.person()
		first = s.ask(p, "email.send", email("First"), nil)
		second = s.propose(p, "email.send", email("Second"), nil)
		want("state of the second", s.offer(second.ID).State, offers.Queued)
		ends(s.reply(p, "wait no"), first, offers.Declined)
		s.shown(second)
		want("texts to the person", len(s.twilio.texts(p.number)), 3)
		want("the last text", s.text(p, 3), second.ShownText)
	})
	s.step(`"yes" then releases the second alone`, func() {
		s.wait(demoRead)
		ends(s.reply(p, "yes"), second, offers.Consumed)
		s.released(second)
		s.closed(first, offers.Declined)
	})
	both := func() {
		p = s.person()
		first = s.ask(p, "email.send", email("First"), nil)
		second = s.ask(p, "email.send", email("Second"), map[string]any{"present": "now"})
	}
	s.step(`with two offers open "yes" releases neither`, func() {
		both()
		h := s.reply(p, "yes")
		passed(h, offers.ReplyUnresolved, offers.WhySeveral)
		want("offers in the event", len(h.data.Offers), 2)
		s.stays(first)
		s.stays(second)
	})
	s.step(`with the first of them withdrawn "yes" releases the one that was shown last`, func() {
		s.withdraw(first)
		ends(s.reply(p, "yes"), second, offers.Consumed)
		s.released(second)
		s.closed(first, offers.Withdrawn)
	})
	s.step(`with the last shown withdrawn "yes" does not reach back to the first`, func() {
		both()
		s.withdraw(second)
		passed(s.reply(p, "yes"), offers.ReplyUnresolved, offers.WhyLastText)
		s.stays(first)
		s.closed(second, offers.Withdrawn)
	})
}

// phones is what phones and carriers send besides words.
func (s *script) phones() {
	var p scriptPerson
	var o, next offers.Offer
	s.step("a tapback on the offer confirms nothing: the quoted words are ours", func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		passed(s.reply(p, "Liked “"+s.text(p, 1)+"”"), offers.ReplyUnresolved, offers.WhyTapback)
		s.stays(o)
	})
	s.step(`a typed "yes" after it releases`, func() {
		ends(s.reply(p, "yes"), o, offers.Consumed)
		s.released(o)
	})
	s.step(`a "yes" that answers an older text does not release what is open now`, func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Old"), nil)
		s.withdraw(o)
		next = s.ask(p, "email.send", email("New"), nil)
		s.wait(demoRead)
		passed(s.quoting(p, 1, "yes"), offers.ReplyUnresolved, offers.WhyQuoted)
		s.stays(next)
		s.closed(o, offers.Withdrawn)
	})
	s.step(`a "yes" that answers the open offer's own text releases it`, func() {
		ends(s.quoting(p, 2, "yes"), next, offers.Consumed)
		s.released(next)
		s.closed(o, offers.Withdrawn)
	})
	s.step("STOP withdraws what is open, tells the agent, and gets no answer", func() {
		p = s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		from := len(s.feed)
		s.deliver("SM"+randomHex(), p.number, "STOP")
		told := s.await("person.opted_out", from, func(h heard) bool { return h.Type == offers.PersonOptedOut && h.data.PersonID == p.id })
		want("text of the message in the event", told.data.Text, "")
		s.closed(o, offers.Withdrawn)
		want("texts to the person", len(s.twilio.texts(p.number)), 1)
	})
	s.step("an offer to somebody who has opted out is undeliverable, and no text goes", func() {
		o = s.propose(p, "email.send", email("Lunch again"), nil)
		s.closed(o, offers.Undeliverable)
		want("texts to the person", len(s.twilio.texts(p.number)), 1)
	})
	s.step("START lets texts go there again, and confirms nothing", func() {
		passed(s.reply(p, "START"), offers.MessageReceived, "")
		s.closed(o, offers.Undeliverable)
		next = s.ask(p, "email.send", email("Lunch after all"), nil)
		ends(s.reply(p, "yes"), next, offers.Consumed)
		s.released(next)
	})
}

// takingBack is "wait no" while a yes settles.
func (s *script) takingBack() {
	var p scriptPerson
	var o offers.Offer
	s.step("a yes to a tool that settles is not released at once", func() {
		p = s.person()
		o = s.ask(p, "posts.publish", map[string]any{"text": "We are open on Sunday"}, nil)
		ends(s.reply(p, "yes"), o, offers.Consumed)
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpSettling)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step(`"wait no" takes it back, with a receipt`, func() {
		from := len(s.feed)
		s.deliver("SM"+randomHex(), p.number, "wait no")
		s.await("operation.closed", from, func(h heard) bool { return h.Type == offers.OperationClosed && h.data.Operation.ID == o.OperationID })
		s.back[o.OperationID] = true
		want("state of the operation", s.operation(o.OperationID, "0s").State, offers.OpState(offers.Declined))
		want("the receipt", s.text(p, 2), offers.CancelledReceipt(o))
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step("left alone it is released when it has settled", func() {
		p = s.person()
		o = s.ask(p, "posts.publish", map[string]any{"text": "We are closed on Monday"}, nil)
		ends(s.reply(p, "yes"), o, offers.Consumed)
		s.released(o)
	})
}

// bundle is several calls under one yes.
func (s *script) bundle() {
	var p scriptPerson
	var o offers.Offer
	parts := map[string]any{"parts": []any{
		map[string]any{"tool": "email.send", "args": email("The old plan is gone")},
		map[string]any{"tool": "files.delete", "args": map[string]any{"path": "plans/old.pdf"}},
	}}
	s.step("a bundle is shown whole, as one offer", func() {
		p = s.person()
		o = s.ask(p, "bundle", parts, nil)
		text := s.text(p, 1)
		for _, line := range []string{"Subject: The old plan is gone\n", "File: plans/old.pdf\n"} {
			want(fmt.Sprintf("the line %q", line), strings.Contains(text, line), true)
		}
		want("it ends with the question", strings.HasSuffix(text, " Reply YES or NO."), true)
	})
	s.step("a reply that names a part releases nothing", func() {
		s.reply(p, "just the email")
		want("closed by a yes", s.offer(o.ID).State == offers.Consumed, false)
		refused("begin", s.begin(o, o.ArgsSHA256), http.StatusConflict, "not_approved")
	})
	s.step("one yes releases all of it, once", func() {
		p = s.person()
		o = s.ask(p, "bundle", parts, nil)
		ends(s.reply(p, "yes"), o, offers.Consumed)
		s.released(o)
		raw, err := s.begin(o, o.ArgsSHA256).begun()
		must("begin", err)
		want("the arguments", string(raw), string(o.Args))
	})
}

func (s *script) outsiders() {
	var p, q scriptPerson
	var o offers.Offer
	s.step(`another person's "yes" does not release it`, func() {
		p, q = s.person(), s.person()
		o = s.ask(p, "email.send", email("Lunch"), nil)
		passed(s.reply(q, "yes"), offers.MessageReceived, "")
		s.stays(o)
	})
	var code string
	stranger := scriptPerson{}
	s.step("a stranger gets 200 and one text with a code: one row, no event", func() {
		want("a free number", len(s.free) > 0, true)
		number, sid, words := s.free[0], "SM"+randomHex(), "yes from "+randomHex()
		stranger.number, s.free = number, s.free[1:]
		s.deliver(sid, number, words)
		s.deliver(sid, number, words)
		// Storing it once more says what is there.
		r, err := s.store.Receive(s.ctx, offers.Inbound{
			Provider: webhook.ProviderTwilio, ProviderID: sid, Text: words, Raw: []byte{},
			Address: people.Address("sms:" + number), OurNumber: people.Address("sms:" + s.twilio.number),
		})
		must("the row", err)
		want("stored, nobody's, not trusted", fmt.Sprint(r.Duplicate, " ", r.PersonID, " ", r.Trusted), "true  false")
		_, code, _ = strings.Cut(s.text(stranger, 1), "Your code: ")
		code, _, _ = strings.Cut(code, ". ")
		s.reply(q, "how was the game") // what comes after it in the feed
		for _, h := range s.feed {
			want("an event with the stranger's words", bytes.Contains(h.Data, []byte(words)), false)
		}
		want("texts to the stranger", len(s.twilio.texts(number)), 1)
		s.stays(o)
	})
	s.step("texted back the code does nothing; from the owner it makes a person, whose yes counts", func() {
		from := len(s.feed)
		s.deliver("SM"+randomHex(), stranger.number, code)
		s.reply(q, "code "+code+" --as owner")
		var made struct{ ID string }
		s.command(&made, "people", "approve", strings.ToLower(code), "--as", "owner", "--name", demoName+stranger.number[len(stranger.number)-2:])
		stranger.id = made.ID
		s.cast = append(s.cast, stranger)
		s.await("person.paired", from, func(h heard) bool { return h.Type == offers.PersonPaired && h.data.PersonID == made.ID })
		s.text(stranger, 2) // that they are known now
		mine := s.ask(stranger, "email.send", email("Lunch"), nil)
		ends(s.reply(stranger, "yes"), mine, offers.Consumed)
		s.released(mine)
		s.stays(o)
	})
	s.step("a wrong signature is 403, and nothing is stored", func() {
		sid := "SM" + randomHex()
		form := s.twilio.inbound(sid, p.number, "yes")
		good := s.twilio.sign(form)
		other := *newFakeTwilio(s.twilio.hook, s.twilio.number)
		for what, signature := range map[string]string{
			"by another token": other.sign(form), "of another text": s.twilio.sign(s.twilio.inbound(sid, p.number, "no")),
			"none": "-", "cut": good[:len(good)-1],
		} {
			got, err := s.twilio.post(s.ctx, s.door(), signature, form, nil)
			must("the webhook", err)
			want("status with a signature "+what, got.status, http.StatusForbidden)
		}
		// Had it been stored, its id would now be taken.
		from := len(s.feed)
		s.deliver(sid, p.number, "thanks")
		passed(s.outcome(p, "thanks", from), offers.ReplyUnresolved, offers.WhyReadingSays)
		s.stays(o)
	})
	s.step("a supplied confirmation is 422 model_confirm_parameter, and nobody is asked", func() {
		p = s.person()
		for _, name := range []string{"confirmed", "userApproved", "skip-confirmation"} {
			args := email("Lunch")
			args[name] = true
			got := s.post("/v1/offers", offers.NewID(), offerBody(p, "email.send", args, nil))
			refused(name+": true", got, http.StatusUnprocessableEntity, "model_confirm_parameter")
		}
		var list struct{ Offers []offers.Offer }
		s.get("/v1/offers?"+url.Values{"person_id": {p.id}}.Encode(), &list)
		want("offers to the person", len(list.Offers), 0)
		want("texts to the person", len(s.twilio.texts(p.number)), 0)
	})
	s.step("a tool that the policy does not know asks too, every argument a line", func() {
		o = s.ask(p, "drone.launch", map[string]any{"site": "roof", "speed": 12}, nil)
		want("the text", s.text(p, 1), "Run a tool that is not in the policy: drone.launch\nsite: roof\nspeed: 12\n"+
			"This runs a tool that nobody has described. Reply YES or NO.")
		ends(s.reply(p, "wait no"), o, offers.Declined)
	})
}

// reachable says whether anybody answers at the server's address.
func (s *script) reachable() bool {
	_, err := s.agent.get(s.ctx, "/healthz")
	return err == nil
}

func (s *script) restart() {
	http.DefaultClient.CloseIdleConnections()
	server, err := restartServer(s.ctx, s.self, s.environ, s.log)
	must("the server starts again", err)
	s.server = server
}

func (s *script) crashes() {
	s.step("killed with an offer open and started again, the server releases it on the reply, once", func() {
		p := s.person()
		o := s.ask(p, "email.send", email("Lunch"), nil)
		s.server.kill()
		want("somebody answers", s.reachable(), false)
		form := s.twilio.inbound("SM"+randomHex(), p.number, "yes")
		_, err := s.twilio.post(s.ctx, s.door(), "", form, nil)
		want("the webhook has no answer", err != nil, true)
		s.restart()
		from := len(s.feed)
		got, err := s.twilio.post(s.ctx, s.door(), "", form, nil) // Twilio tries again
		must("the webhook", err)
		want("status of the webhook", got.status, http.StatusOK)
		ends(s.outcome(p, "yes", from), o, offers.Consumed)
		s.released(o)
		_, err = s.begin(o, o.ArgsSHA256).begun()
		must("begin", err)
		s.succeed(o)
		want("the receipt", s.text(p, 2), "Done: "+o.Label+".")
	})
	s.step("killed right behind the first 200, it decides every reply that it has acknowledged, and takes the others again", s.killBehindTheAnswer)
	s.step("told to stop, the server ends in order and with code 0; what was decided is there when it is back", func() {
		p := s.person()
		o := s.ask(p, "email.send", email("Lunch"), nil)
		s.deliver("SM"+randomHex(), p.number, "yes")
		must("end of the server", s.server.stop(s.ctx))
		want("somebody answers", s.reachable(), false)
		undecided, err := s.store.Undecided(s.ctx, 0, 1)
		must("undecided messages", err)
		want("messages left undecided", len(undecided), 0)
		s.restart()
		s.released(o)
	})
}

// killBehindTheAnswer kills the server at the first byte of the first of several answers. In which state that finds
// each reply is chance; what must come of it is not. It plays again while chance had it that all were decided already.
func (s *script) killBehindTheAnswer() {
	const replies, rounds = 5, 3
	undecided := 0
	for round := 0; round < rounds && undecided == 0; round++ {
		var cast [replies]scriptPerson
		var open [replies]offers.Offer
		var forms [replies]url.Values
		var acknowledged [replies]atomic.Bool
		for i := range cast {
			cast[i] = s.person()
			open[i] = s.propose(cast[i], "email.send", email("Lunch"), nil)
			forms[i] = s.twilio.inbound("SM"+randomHex(), cast[i].number, "yes")
		}
		for _, o := range open {
			s.shown(o)
		}
		s.wait(demoRead)
		server, first := s.server, sync.OnceFunc(func() { _ = s.server.cmd.Process.Kill() })
		var wg sync.WaitGroup
		for i := range forms {
			wg.Go(func() {
				// Any answer at all was written after the commit; nothing but 200 comes with these forms.
				_, _ = s.twilio.post(s.ctx, s.door(), "", forms[i], func() { acknowledged[i].Store(true); first() })
			})
		}
		wg.Wait()
		server.kill()
		left, err := s.store.Undecided(s.ctx, 0, replies)
		must("undecided messages", err)
		undecided += len(left)
		s.restart()
		known := 0
		for i := range forms {
			if acknowledged[i].Load() {
				known++
				continue
			}
			got, err := s.twilio.post(s.ctx, s.door(), "", forms[i], nil)
			must("the webhook", err)
			want("status of the webhook", got.status, http.StatusOK)
		}
		want("a reply was acknowledged", known > 0, true)
		for _, o := range open {
			s.released(o)
		}
		s.note = fmt.Sprintf("%d of %d acknowledged; %d stored and undecided when it died", known, replies, len(left))
	}
}

// books looks at everything once more, when all is done.
func (s *script) books() {
	s.step("every offer with a yes was released exactly once, and no other", func() {
		s.drain()
		for _, o := range s.made {
			released, taken := 0, 0
			if s.yes[o.OperationID] {
				released, taken = 1, 1
			}
			if s.back[o.OperationID] {
				taken = 1
			}
			want("events operation.approved of an operation", s.approvals(o.OperationID), released)
			want("rows in the ledger that say consumed", s.consumed(scriptPerson{id: o.PersonID}, o.OperationID), taken)
		}
		s.note = fmt.Sprintf("%d of %d", len(s.yes), len(s.made))
	})
	s.step("every chain of the ledger verifies", func() {
		total := int64(0)
		for _, p := range s.cast {
			rows, err := s.store.Ledger(s.ctx, people.DefaultAccount, p.id)
			must("the ledger", err)
			n, _, err := ledger.Verify(func(yield func(ledger.Row, error) bool) {
				for _, r := range rows {
					if !yield(r, nil) {
						return
					}
				}
			})
			must("the chain", err)
			total += n
		}
		want("rows there are", total > 0, true)
		s.note = fmt.Sprintf("%d rows of %d people", total, len(s.cast))
	})
}
