package classifier

import (
	"slices"
	"testing"
)

// A yes with a reason beside it, by label.
func TestReasons_StandBesideAYes(t *testing.T) {
	for label, texts := range map[string][]string{
		"send the contract to Ines": {
			"yes, she's been waiting for it since Monday", "yes she keeps asking for it", "yes, my boss is waiting for it", "yep, the client has been chasing me for weeks",
			"yes, about time", "yes before I forget", "sure, so she stops asking", "yes i promised her", "yes, everyone's waiting", "send it, I've read it twice", "she asked for it, so yes",
			"send it please, they owe me since March", "yes, it's due on Friday", "sí, lleva toda la semana esperando", "sí, por favor, no tengo tiempo hoy", "oui, elle attend depuis lundi", "ja, er wartet schon seit Tagen",
			"ja bitte, ich hab heute keine Zeit", "sim, ela está esperando desde ontem", "sì, lo aspettano da giorni", "ja, ze zit erop te wachten", "haan bhej do, woh kab se wait kar rahe", "发吧，她等了好几天了", "送ってください、ずっと待ってます",
		},
		"cancel guitar class on Monday": {
			"cancel it, I'm sick", "yes cancel, my wrist is killing me", "yes, something came up", "cancel please, I'm still sick", "call it off, he has a fever", "yes, we never go", "sí, ya no voy, cancélala",
			"annule, je suis malade", "sag ab, ich bin krank", "cancela, estou doente", "annulla, sono malato", "zeg maar af, ik ben ziek", "cancel it, my ankle swelled up again", "cancel, we're snowbound", "取消吧，我病了", "キャンセルお願い、熱がある",
		},
		"pay 52.30 USD to Clover Cleaners": {
			"yes, I owe them that", "pay them, they did a great job", "yes i owe them", "pay it because my landlady keeps nagging me", "yes, because they have been patient for ages", "yes, it's overdue",
		},
		"turn on the boiler": {"turn it on, I'm freezing", "yes please, it's cold", "sí, ponla, hace frío", "ja, mach an, es ist kalt", "oui allume, on gèle", "sì accendi, fa freddo"},
	} {
		for _, text := range texts {
			if v := adversary(t, text, label); !v.Confirms(ActThreshold) {
				t.Errorf("%q to %q held back by %v: %v", text, label, v.Guards, Unaccounted(Input{Newest: NewWords(text), Offers: labels(t, label)}))
			}
		}
	}
}

// The neighbours of a reason: what looks like one and changes, asks, refuses,
// reports, waits or answers somebody else.
func TestReasons_NeighboursAreHeld(t *testing.T) {
	for label, texts := range map[string][]string{
		"send the contract to Ines": {
			// a no, or somebody else's words
			"yes because I said no", "yes, he told me not to", "yes because she said don't", "yes since they declined", "yes, she told me it's fine", "yes because he says so",
			"yes, she said send it", "she was like omg yes send it", "ok because my lawyer would not like it", "send it because no one answers", "yes, she never asked for it", "yes, she hates it",
			// a question, or none of ours
			"yes since you asked, what is it", "yes because why not", "yes, she's asking what it costs", "yes, she is waiting, is it signed", "yes since when", "yes so what", "because you asked", "yes, she wants to know if it is final",
			// it has happened, or did not
			"yes it was sent already", "yes, she already has it", "yes she already got it", "yes I already sent it", "yes, I have already done it", "je l'ai déjà envoyé", "sí, ya lo mandé", "ja, hab ich schon geschickt", "sim, já mandei", "sì, l'ho già mandato", "我已经发了",
			// a change
			"yes I'm waiting for the new one", "yes so that she gets the old one", "yes, she's waiting for the signed one", "yes she needs the other one", "yes, she needs it in French", "yes, he needs it too", "yes, she needs two", "send it, she wants the short version",
			"send it, Bob is waiting", "send it, she goes by Kate now", "send it, he moved to Leeds", "send it, she prefers paper", "send it, she uses another address", "send it because Kim asked me", "yes because it's for Kim", "send it, I fixed the typo", "send it, I changed page two", "send it, the attachment is missing", "send it, the link is dead", "send it, she speaks French", "send it, Ines is in Paris", "send it, I have doubts", "send it, her email is broken", "yes, because I was drunk",
			"send it, my assistant needs a copy as well", "send it, my assistant is reading it too", "send it, my brother wants one", "send it, she should get both", "send it, she likes the blue one", "send it, she would love the long one", "yes because she wants it red", "sí, que sea mañana", "sí, que venga también Ana", "sí, está esperando el otro",
			"oui, elle attend l'autre", "ja, er wartet auf die neue", "sim, ela espera o outro", "sì, aspetta l'altro", "ja, ze wacht op de andere",
			// a time, a condition, a wait
			"yes, she's waiting for Friday", "yes, she needs it on Friday", "send it before Friday", "yes before she leaves", "send it, she is back tomorrow", "yes because if not she calls", "yes, if she's waiting", "yes once she asks", "yes, she's waiting until Monday", "yes, I'm waiting for you", "yes wait, she's asking", "sí... espera", "sì... aspetta", "oui, attends", "oui on oublie", "ja, vergeet het",
			// an acknowledgement with chatter, and another topic
			"ok, she's waiting", "thanks, she's been waiting for it", "great, she'll love it", "yes i'm still waiting", "yes I'm busy", "yes, she's sick", "yes we're home", "yes it's raining", "yes he's fine now", "yes the kids are asleep", "yes she passed the exam", "yes he barks all night", "she's been waiting for it", "because she's waiting", "it's about time",
			"yes I love that song", "yes we won the match", "yes the cat is fine", "yes i slept well", "ok my wife is in labor", "yes mom i'm eating",
		},
		"delete 14 old files": {"yes, I need it", "yes, we need them badly", "yes, she needs them", "delete them, she needs it", "yes, my team needs them", "yes, I owe him those", "yes, she loves them"},
		"order burgers from Patty Shack": {
			"order it, we're vegan", "order it, my daughter is allergic", "order it, I'm allergic to nuts", "order it, we have five guests", "yes please, it is just me eating", "order them, my husband is joining us as well", "order it, my son prefers cheese", "order it, we are seven", "order it, we're on a budget", "order it, my mother hates onions", "order it, we have coupons", "do it, I'm being sarcastic", "do it, I'm lying", "go ahead, it's illegal", "do it, I'm being forced", "order them, he needs a large one",
			"pídelo, mi hija es alérgica", "commande, je suis végétarien", "bestell, ich bin Vegetarier", "pede, minha filha é alérgica", "ordina, mia figlia è allergica", "bestel maar, ik ben vegetarisch",
		},
		"book a table for 2 at Nopa": {"book it, my mother is coming too", "book it, she uses a wheelchair", "book it, we are three", "yes because there are four of us", "book it, we have a dog", "book it, my name is Lena now", "book it, it should be outside"},
		"play Blue Train":            {"play it in the kitchen", "play it on my speaker", "yes, cast it to the bedroom", "play it quietly", "put it on the kitchen speaker, she's waiting there"},
	} {
		for _, text := range texts {
			if v := adversary(t, text, label); v.Confirms(ActThreshold) {
				t.Errorf("%q to %q acts: %v", text, label, Explain(Input{Newest: NewWords(text), Offers: labels(t, label)}))
			}
		}
	}
}

// A reason is one item of its own kind; what is beside it stays.
func TestReasons_AreOneItem(t *testing.T) {
	in := Input{Newest: NewWords("yes please, my boss is waiting for it"), Offers: labels(t, "send email to Dana")}
	want := []TokenDetail{{"yes", "assent", true}, {"please", "courtesy", true}, {"my boss is waiting for it", "reason", true}}
	if got := Explain(in); !slices.Equal(got, want) {
		t.Errorf("Explain = %v", got)
	}
}

// Of three reasons none is accounted for: so much talk is a reason to ask.
func TestReasons_AtMostTwo(t *testing.T) {
	two, three := "yes send it, she's waiting, it's overdue", "yes send it, she's waiting, it's overdue, he's worried"
	if v := adversary(t, two, "send email to Dana"); !v.Confirms(ActThreshold) {
		t.Errorf("%q: %v", two, v.Guards)
	}
	if v := adversary(t, three, "send email to Dana"); v.Confirms(ActThreshold) {
		t.Errorf("%q acts", three)
	}
}

// The other widenings, each beside what it must not let in.
func TestWidenings_AndTheirNeighbours(t *testing.T) {
	for _, c := range []struct{ label, passes, held string }{
		{"turn off the porch light", "switch the porch light off", "switch the porch light on"},
		{"turn off the porch light", "switch the light off please", "switch the heating off please"},
		{"tell Marco the job is his", "please let Marco know", "please let me know"},
		{"tell Marco the job is his", "let him know", "let Kim know"},
		{"announce the closure to the team", "yes let everyone know", "yes everyone knows"},
		{"send the menu to all guests", "yes, everyone", "yes, everyone but Kim"},
		{"send email to Dana", "please", "please?"},
		{"send email to Dana", "please", "please no"},
		{"send email to Dana", "Dana please", "Kim please"},
		{"send email to Dana", "the email please", "the details please"},
		{"move team lunch to Thursday", "Thursday it is", "is it thursday"},
		{"move team lunch to Thursday", "thursday it is", "friday it is"},
		{"set alarm for 6:30", "六点半，对", "七点半，对"},
		{"set alarm for 6:30", "ja, halb sieben", "ja, halb sechs"},
		{"set alarm for 6:30", "sí, a las seis y media", "sí, a las seis y cuarto"},
		{"set alarm for 6:15", "ja, kwart over zes", "ja, kwart voor zes"},
		{"set alarm for 6:15", "sì, alle sei e un quarto", "sì, alle sei e mezza"},
		{"set alarm for 6:30", "yes 6 30", "yes 6 45"},
		{"extend rental by 2 days", "ja, zwei Tage", "ja, drei Tage"},
		{"extend rental by 2 weeks", "yes, two weeks", "yes, this week"},
		{"transfer 120 to Kofi", "make that 120", "make that 100"},
		{"block caller +12025550117", "just block it", "just mute it"},
		{"sign Rosa up for swim club", "register her", "register Kim"},
		{"update shipping address to 12 Elm St", "12 Elm Street is right", "12 Oak Street is right"},
		{"send payslip to the bank", "sí, envía la nómina", "sí, envía la factura"},
		{"send the contract to Ines", "ja, das ist das richtige Dokument, senden", "ja, das ist das falsche Dokument, senden"},
		{"send email to Dana", "okey", "okey thanks"},
		{"send email to Dana", "没问题", "没问题吗"},
		{"send email to Dana", "よろしくお願いします", "お願いしません"},
	} {
		if v := adversary(t, c.passes, c.label); !v.Confirms(ActThreshold) {
			t.Errorf("%q to %q is held back by %v: %v", c.passes, c.label, v.Guards, Explain(Input{Newest: NewWords(c.passes), Offers: labels(t, c.label)}))
		}
		if v := adversary(t, c.held, c.label); v.Confirms(ActThreshold) {
			t.Errorf("%q to %q passes: %v", c.held, c.label, Explain(Input{Newest: NewWords(c.held), Offers: labels(t, c.label)}))
		}
	}
}

// A no that is followed by a yes is unclear, whoever it was for; a yes in
// chatter stays chatter.
func TestGuard_NoAndYes(t *testing.T) {
	objects(t, "no-and-yes", payAcme, "no that was for my sister, yes to the blue ones", "yes to acme")
	for text, want := range map[string]Class{"no not you. yes to pizza": Unclear, "no sorry. yes I'm on my way": Unclear, "she said yes!!": Unrelated, "so they told me no": Unrelated} {
		if got, _ := runGuards(mustSay(Unrelated), Prepare(NewWords(text)), labels(t, payAcme)); got.Class != want {
			t.Errorf("%q: %v, want %v", text, got.Class, want)
		}
	}
	objects(t, "yes-to-another", payAcme, "no wrong person, yes for lunch", "no, yes i am sure")
	if got, _ := runGuards(mustSay(Decline), Prepare(NewWords("no wrong person, yes for lunch")), labels(t, payAcme)); got.Class != Unclear {
		t.Errorf("a no to somebody else is %v", got.Class)
	}
	if got, _ := runGuards(mustSay(Decline), Prepare(NewWords("no yes i'm sure, don't")), labels(t, payAcme)); got.Class != Decline {
		t.Errorf("a no that is sure of itself became %v", got.Class)
	}
}
