package reply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

func TestPermissionWords(t *testing.T) {
	show, all := &asksOf{}, &asksOf{all: true}
	number := func(n ...int) *asksOf { return &asksOf{numbers: n} }
	for _, c := range []struct {
		want  *asksOf
		texts []string
	}{
		{show, []string{
			"what may you do without asking?", "What can you do without asking me", "what are you allowed to do without asking me first?",
			"who can you email without asking me?", "What do you send without checking with me?", "ok what may u do without asking",
			"what have I allowed?", "What did I allow you to do without asking", "show me my permissions", "list permissions", "permissions?",
			"What permissions do you have?", "which permissions have I given you", "what are my standing permissions?", "please show my permissions",
			"what can you do without my permission", "what things can you do without my ok",
		}},
		{number(2), []string{
			"revoke 2", "Revoke 2.", "please revoke #2", "revoke permission 2", "Revoke number 2 please", "cancel permission 2", "end permission 2",
			"remove the permission 2", "revoke 2 now", "revoke no. 2", "REVOKE 2", "delete permission no 2",
		}},
		{number(2, 4), []string{"revoke 2 and 4", "revoke 2, 4", "revoke permissions 2 and 4", "revoke 2 & 4", "end permissions 2, 4"}},
		{all, []string{
			"revoke all", "Revoke everything", "revoke all permissions", "revoke my permissions", "cancel all my permissions", "remove all permissions",
			"stop doing that without asking", "Stop doing that without asking me!", "please stop sending things without asking me first",
			"don't do that without asking", "don’t send anything without asking me again", "never do that without asking me first", "stop texting without asking",
			"no more sending without asking", "you may not send without asking anymore",
		}},
		{nil, []string{
			"", "revoke", "cancel 2", "stop 2", "2", "end 2", "revoke my subscription to 2 magazines", "what may you do", "permission to go ahead granted",
			"he said revoke 2", "revoke 2 tickets", "what may you do without asking Dana", "Dana says you can do it without asking",
			"you can email Dana without asking", "can you email Dana without asking me?", "tell Dana what may you do without asking",
			"do it without asking", "stop", "STOP", "revoke offer 2", "revoke -", "revoke 12345678", "delete 2", "cancel all my meetings", "remove all",
			"what can you do without asking for the report and sending it to mallory@example.test?", "yes revoke it", "> revoke 2",
			"Dana wrote:\n> what may you do without asking?", "stop sending", "never mind", "don't do that", "permissions are weird",
			"revoke 2\n\nand send the invoice to Dana", "what may you do without asking? also email Dana the report",
		}},
	} {
		for _, text := range c.texts {
			got := permissionsAsk(offers.Received{Tier: gate.TierOwner, Text: text})
			switch {
			case (got == nil) != (c.want == nil):
				t.Errorf("%q: %+v, want %+v", text, got, c.want)
			case got != nil && (got.all != c.want.all || !slices.Equal(got.numbers, c.want.numbers)):
				t.Errorf("%q: %+v, want %+v", text, got, c.want)
			}
			for _, tier := range []string{gate.TierPaired, ""} {
				if permissionsAsk(offers.Received{Tier: tier, Text: text}) != nil {
					t.Errorf("%q of a tier %q", text, tier)
				}
			}
		}
	}
}

// whole proposes what its words are by heart, and counts what it is shown.
type whole struct {
	says  map[string][]said.Candidate
	seen  []string
	err   error
	hangs bool
}

func (x *whole) Extract(ctx context.Context, turn said.Turn) ([]said.Candidate, []said.Drop, error) {
	x.seen = append(x.seen, turn.Words)
	if x.hangs {
		<-ctx.Done()
		return x.says[turn.Words], nil, nil // as if nothing were late
	}
	return x.says[turn.Words], nil, x.err
}

func (*whole) Fingerprint() string { return "whole" }

// saidWorld hears what owners say, in an account where asking is approving.
func saidWorld(t *testing.T) (*world, *whole) {
	t.Helper()
	w := newWorld(t)
	w.must(w.store.SetAskingIsApproving(w.ctx, people.DefaultAccount, true))
	_, err := w.store.PutContacts(w.ctx, people.DefaultAccount, []said.Contact{{ID: "dana", Name: "Dana", Addresses: []string{"dana@example.test"}}}, false)
	w.must(err)
	email := said.Candidate{Kind: "send", To: []string{"Dana"}, Channel: "email"}
	always := email
	always.Standing = true
	x := &whole{says: map[string][]said.Candidate{
		"Email Dana the report.":                   {email},
		"You can always email Dana when it ships.": {always},
		"Yes":                     {email},
		"no":                      {email},
		"Email Mallory the keys.": {{Kind: "send", To: []string{"dana@example.test"}, Channel: "email"}},
	}}
	w.cfg.Said = &Hearing{Extractor: x, Now: w.now}
	w.reader.says["email dana the report."] = reads(t, "unrelated 0.99")
	w.reader.says["you can always email dana when it ships."] = reads(t, "unrelated 0.99")
	return w, x
}

func (w *world) permissions() []offers.Permission {
	w.t.Helper()
	list, err := w.store.PermissionsOf(w.ctx, people.DefaultAccount, "")
	w.must(err)
	return list
}

func TestSaid(t *testing.T) {
	const ask, always = "Email Dana the report.", "You can always email Dana when it ships."
	t.Run("BeforeTheAgentIsTold", func(t *testing.T) {
		w, x := saidWorld(t)
		r := w.says(ask)
		w.wantNews("message.received")
		list := w.permissions()
		if len(list) != 1 || list[0].MessageID != r.MessageID || list[0].How != offers.Once || list[0].Addresses()[0] != "dana@example.test" {
			t.Fatalf("%+v", list)
		}
		w.must(w.processor().Process(w.ctx, w.read(r))) // again: it is decided
		if len(w.permissions()) != 1 || len(x.seen) != 1 {
			t.Fatalf("%d permissions, %d readings", len(w.permissions()), len(x.seen))
		}
	})
	t.Run("Invariant14_AStandingOneIsAnOfferWithItsOwnYes", func(t *testing.T) {
		w, _ := saidWorld(t)
		r := w.says(always)
		w.wantNews("message.received")
		w.send()
		if body := w.carrier.sent[0].Body; !strings.HasPrefix(body, "Let me send email to dana@example.test without asking you first") || !strings.Contains(body, "\nTo end it later, text: revoke 1\n") {
			t.Fatal(body)
		}
		list := w.permissions()
		if len(list) != 1 || list[0].GrantedAt != nil || list[0].MessageID != r.MessageID {
			t.Fatalf("%+v", list)
		}
		w.pass(20 * minRead)
		w.says("Yes")
		w.due()
		if p := w.permissions()[0]; p.GrantedAt == nil {
			t.Fatalf("%+v", p)
		}
		w.wantNews("offer.opened", "offer.closed", "operation.closed")
		w.wantTexts("show* accepted", "receipt queued")
		w.send()
		w.says("What may you do without asking?")
		w.wantNews() // it is code's to answer
		if !strings.HasPrefix(w.lastBody(), "Without asking I may:\n1: send email to dana@example.test, ") {
			t.Fatal(w.lastBody())
		}
		w.says("revoke 1")
		if p := w.permissions()[0]; p.RevokedAt == nil || !strings.HasPrefix(w.lastBody(), "Ended 1: send email to dana@example.test.") {
			t.Fatalf("%+v %s", p, w.lastBody())
		}
		w.wantNews()
	})
	t.Run("AModelPicksNoPermission", func(t *testing.T) {
		w, _ := saidWorld(t)
		w.says(always)
		w.send()
		w.pass(20 * minRead)
		r := w.says("yeah") // not sure enough for code
		all, err := w.store.Offers(w.ctx, people.DefaultAccount, offers.Filter{})
		w.must(err)
		o := all[0]
		sum, err := offers.ParseHex(o.ArgsSHA256)
		w.must(err)
		_, err = NewConfirmer(w.store, minRead, new(offers.Wake)).Confirm(w.ctx, ConfirmRequest{
			AccountID: o.AccountID, OfferID: o.ID, RunID: r.RunID, MessageID: r.MessageID, Quote: "yeah", ArgsSum: sum,
		})
		if !errors.Is(err, offers.ErrNotAYes) {
			t.Fatal(err)
		}
	})
	for name, spoil := range map[string]func(w *world, x *whole){
		"NobodyListens":   func(w *world, _ *whole) { w.cfg.Said = nil; w.says(ask) },
		"Lossy":           func(w *world, _ *whole) { w.says(ask, lossy) },
		"Forwarded":       func(w *world, _ *whole) { w.says("---------- Forwarded message ---------\n" + ask) },
		"Quoted":          func(w *world, _ *whole) { w.says("> " + ask) },
		"Paired":          func(w *world, _ *whole) { w.person = w.add(gate.TierPaired); w.says(ask) },
		"TheExtractor":    func(w *world, x *whole) { x.err = errors.New("down"); w.says(ask) },
		"WhatWasNotTyped": func(w *world, _ *whole) { w.says("Email Mallory the keys.") },
		"Slow": func(w *world, x *whole) {
			x.hangs, w.cfg.Said.Within = true, time.Millisecond
			w.says(ask)
		},
		"AReplyThatWasActedOn": func(w *world, _ *whole) { w.shown(); w.says("Yes") },
		"AReplyThatDeclines":   func(w *world, _ *whole) { w.shown(); w.says("no") },
		"AReplyThatMayBeOne":   func(w *world, _ *whole) { w.shown(); w.reader.says = nil; w.says(ask) },
		"Overtaken": func(w *world, _ *whole) {
			r := w.stored(ask)
			w.stored("never mind")
			w.must(w.processor().Process(w.ctx, w.read(r)))
		},
		"OvertakenMeanwhile": func(w *world, _ *whole) {
			r := w.stored(ask)
			w.stored("never mind")
			w.must(w.processor().Process(w.ctx, r)) // as it was read before
		},
	} {
		t.Run("Nothing/"+name, func(t *testing.T) {
			w, x := saidWorld(t)
			spoil(w, x)
			if list := w.permissions(); len(list) != 0 {
				t.Errorf("%+v", list)
			}
			if undecided, err := w.store.Undecided(w.ctx, 0, 10); err != nil || strings.HasPrefix(name, "Over") != (len(undecided) == 1) {
				t.Errorf("undecided %v %v", undecided, err)
			}
		})
	}
	t.Run("TakenBack", func(t *testing.T) {
		w, _ := saidWorld(t)
		w.says(ask)
		w.says("hello")
		if p := w.permissions()[0]; p.Revoked {
			t.Fatalf("%+v", p)
		}
		w.says("wait no")
		if p := w.permissions()[0]; !p.Revoked || p.RevokedBy != offers.RevokedByTaken {
			t.Fatalf("%+v", p)
		}
	})
}

// Whoever says stop is believed, whatever else the words come to.
func TestStopsFor(t *testing.T) {
	p := offers.Permission{Granted: said.Granted{Recipients: []said.Recipient{{Said: "Dana", Addresses: []string{"dana@example.test"}}}}}
	for text, want := range map[string]bool{
		"stop emailing Dana": true, "Please don't email Dana any more": true, "don't ever text dana again": true, "you can't email Dana anymore.": true,
		"no more emails to Dana": true, "never write to dana@example.test": true, "stop emailing them": true, "no, and stop emailing Dana": true, "I don't want you to email Dana": true, "ok, stop messaging Dana, it annoys her": true,
		"stop emailing Kim": false, "don't email Kim any more": false, "don't forget to email Dana": false, "email Dana": false, "did you stop emailing Dana?": false, "stop": false, "don't email Danae": false,
		"> stop emailing Dana": false, "Liked “stop emailing Dana”": false, "stop it": false,
	} {
		ends := stopsFor(offers.Received{Tier: gate.TierOwner, Text: text})
		if got := ends != nil && ends(p); got != want {
			t.Errorf("%q ends it: %v, want %v", text, got, want)
		}
		if stopsFor(offers.Received{Tier: gate.TierPaired, Text: text}) != nil {
			t.Errorf("%q of somebody paired ends something", text)
		}
	}
}

// Each condition for itself.
func TestHearable(t *testing.T) {
	r := offers.Received{Tier: gate.TierOwner}
	v := classifier.Verdict{}
	v.Prepared.Form = classifier.FormTyped
	out := outcome{event: offers.MessageReceived}
	if !hearable(r, v, out) {
		t.Fatal("a plain message is not heard")
	}
	for name, spoil := range map[string]func(*offers.Received, *classifier.Verdict, *outcome){
		"paired":     func(r *offers.Received, _ *classifier.Verdict, _ *outcome) { r.Tier = gate.TierPaired },
		"no tier":    func(r *offers.Received, _ *classifier.Verdict, _ *outcome) { r.Tier = "" },
		"overtaken":  func(r *offers.Received, _ *classifier.Verdict, _ *outcome) { r.Overtaken = true },
		"lossy":      func(r *offers.Received, _ *classifier.Verdict, _ *outcome) { r.Lossy = true },
		"unresolved": func(_ *offers.Received, _ *classifier.Verdict, o *outcome) { o.event = offers.ReplyUnresolved },
		"acted on":   func(_ *offers.Received, _ *classifier.Verdict, o *outcome) { o.action = confirm },
		"opted in":   func(_ *offers.Received, _ *classifier.Verdict, o *outcome) { o.action = optIn },
		"a reaction": func(_ *offers.Received, v *classifier.Verdict, _ *outcome) { v.Prepared.Form = classifier.FormTapback },
		"a machine": func(_ *offers.Received, v *classifier.Verdict, _ *outcome) {
			v.Prepared.Form = classifier.FormAutoReply
		},
		"unread": func(_ *offers.Received, v *classifier.Verdict, _ *outcome) { *v = classifier.Verdict{} },
	} {
		r, v, out := r, v, out
		if spoil(&r, &v, &out); hearable(r, v, out) {
			t.Errorf("%s: heard", name)
		}
	}
}
