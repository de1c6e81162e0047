package classifier

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Sentences made of the words that slang, courtesies and reasons brought into
// the lexicon, which must not be acted on even by a reader that says yes to all.
func TestWideWordsCarryNoConsent(t *testing.T) {
	for _, c := range []struct{ label, text string }{
		{"send email to Dana", "ja maar"},
		{"book train to Bologna", "sì se c'è il treno"},
		{"book train to Bologna", "sí si hay tren"},
		{"pay for the school trip", "oja"},
		{"send email to Dana", "ok maar"},
		{"send email to Dana", "yes my"},
		{"send email to Dana", "oui et"},
		{"send email to Dana", "haan aur"},
		{"send email to Dana", "yes to him"},
		{"send email to Dana", "ja mit ihr"},
		{"send email to Dana", "sí a ella"},
		{"assign the ticket to Ravi", "yes her"},
		{"invite Tom to lunch", "yes us"},
		{"assign the ticket to Ravi", "yes the ticket to her"},
		{"pay 500.00 to Lee", "yes in euros"},
		{"refund order 12", "yes part"},
		{"book train to Leeds", "yes by bus"},
		{"decline the invitation from Priya", "gladly"},
		{"decline the invitation from Priya", "yes so excited"},
		{"decline the invitation from Priya", "yes looking forward to it"},
		{"turn down the invite from Priya", "accept"},
		{"turn down the invite from Priya", "count me in"},
		{"RSVP no to the wedding", "accept"},
		{"reject the offer from Bill", "good price"},
		{"cancel gym membership", "yes we need it"},
		{"cancel gym membership", "worth it"},
		{"cancel gym membership", "sí lo necesito"},
		{"pay invoice 12 to Acme", "it was approved"},
		{"send report to Priya", "get it checked"},
		{"send email to Dana", "im ok"},
		{"send email to Dana", "done"},
		{"assign issue 12 to Marek", "assign to me"},
		{"assign issue 12 to Marek", "assign it to me"},
		{"assign issue 12 to Marek", "yes assign to us"},
		{"hand over shift to Ola", "hand it over to me"},
		{"renew milk order of 1 litre", "1 लीटर और बढ़ा दो"},
		{"renew milk order of 1 litre", "1 litre aur badha do"},
		{"renew milk order of 1 litre", "haan 1 litre kam kar do"},
		{"renew milk order of 1 litre", "ha badha dena"},
		{"order milk, 1 litre", "1 litre aur mangwa do"},
		{"order 2 tickets", "haan 2 aur mangwa do"},
		{"send email to Dana", "ta"},
		{"send email to Dana", "ta love"},
		{"send email to Dana", "s"},
		{"send email to Dana", "fate voi"},
		{"send email to Dana", "hazlo tú"},
		{"send email to Dana", "mach du mal"},
		{"send email to Dana", "beslis jij maar"},
		{"send email to Dana", "você que sabe"},
		{"send email to Dana", "à toi de voir"},
		{"create poll \"pizza or curry\"", "curry obviously"},
		{"create poll \"pizza or curry\"", "yes pizza"},
		{"cancel dinner at Amber", "andiamo"},
		{"cancel dinner at Amber", "vamos"},
		{"cancel dinner at Amber", "let's go"},
		{"cancel dinner at Amber", "on y va"},
		{"decline the invitation from Rob", "accept it"},
		{"decline the invitation from Rob", "approved"},
		{"decline the invitation from Rob", "acepto"},
		{"send email to Dana", "thankyou"},
		{"send email to Dana", "ok thnx"},
		{"send email to Dana", "thanks for the nudge"},
		{"send email to Dana", "sorry for the delay"},
		{"send email to Dana", "sorry, was in a meeting"},
		{"send email to Dana", "I really appreciate it"},
		{"send email to Dana", "been a long day"},
		{"send email to Dana", "she's been pestering me"},
		{"send email to Dana", "yes sorry for the delay, send it to Lena"},
		{"send email to Dana", "oya send it to Lena"},
		{"send email to Dana", "yeah boi, once she pays"},
		{"send email to Dana", "abeg no"},
		{"send email to Dana", "no wahala"},
		{"send email to Dana", "let mum know"},
		{"send email to Dana", "tell the team"},
		{"send email to Dana", "yes, and my brother"},
		{"send email to Dana", "kindly proceed with Lena"},
		{"send email to Dana", "na"},
		{"turn off the heating", "lights off"},
		{"turn off the heating", "turn everything off"},
		{"turn off the heating", "power on"},
		{"turn on the heating", "lights on"},
		{"pay 40.00 to Sam", "bill him"},
		{"pay 40.00 to Sam", "the figures tally, pay 50"},
		{"pay 40.00 to Sam", "it's payday"},
		{"pay 40.00 to Sam", "just got paid"},
		{"rate driver 4 stars", "five stars"},
		{"extend hotel stay by 2 nights", "one more night"},
		{"extend hotel stay by 2 nights", "another night"},
		{"rent a boat for Sunday", "rent it with a skipper"},
		{"delete the photo of Rex", "I love it"},
		{"cancel gym membership", "I like it now"},
		{"cancel gym membership", "they keep putting the price up"},
		{"cancel gym membership", "keep it, my knee's better"},
		{"return the blue jacket", "doesn't fit"},
		{"return the blue jacket", "swap it, wrong size"},
		{"book a table at Amber", "wrong size"},
		{"book a table at Amber", "it's our anniversary"},
		{"book a table at Amber", "yes if it's within budget"},
		{"book a table at Amber", "my calendar's clear"},
		{"roll back release 3", "everything's on fire"},
		{"set alarm for 6:15", "set it for 6"},
		{"set alarm for 6:15", "yes, 15"},
		{"change reminder to weekly or monthly", "weekly"},
		{"mute the family chat until 8am", "until 9"},
		{"send email to Dana", "sí y mi prima"},
		{"book a table at Amber", "sí, la grande"},
		{"book a table at Amber", "perdón la demora"},
		{"book a table at Amber", "es nuestro aniversario"},
		{"pay 40.00 to Sam", "gracias por recordarme"},
		{"pay 40.00 to Sam", "sí, perdona la demora, pero mañana"},
		{"send email to Dana", "oui et mon frère"},
		{"send email to Dana", "désolé du retard"},
		{"send email to Dana", "merci bcp"},
		{"cancel gym membership", "j'aime bien"},
		{"send email to Dana", "tu peux mais pas à elle"},
		{"send email to Dana", "ja, aber nur an Lena"},
		{"send email to Dana", "schick ihm bitte was anderes"},
		{"buy 2 tickets", "tira"},
		{"send email to Dana", "valeu"},
		{"send email to Dana", "grazie mille"},
		{"delete 3 old emails", "elimina tutto"},
		{"send email to Dana", "bedankt joh"},
		{"turn off the heating", "doe de lichten uit"},
		{"send email to Dana", "haan?"},
		{"send email to Dana", "shukriya bhai"},
		{"send email to Dana", "告诉大家"},
		{"delete 3 old emails", "谢谢"},
		{"turn off the heating", "关灯"},
		{"send email to Dana", "ありがとう"},
		{"set alarm for 6:15", "止めて"},
	} {
		if v := adversary(t, c.text, c.label); v.Confirms(ActThreshold) {
			t.Errorf("%q to %q passes", c.text, c.label)
		}
	}
}

// What the same words leave a yes, and how often or until when in the label's
// own words and in no others.
func TestWideWordsBesideAYes(t *testing.T) {
	for _, c := range []struct{ label, passes, held string }{
		{"change password reminder to weekly", "weekly is good", "monthly is good"},
		{"change password reminder to weekly or monthly", "yes", "weekly is good"},
		{"mute the family chat until 8am", "yes, until 8", "yes, until tuesday"},
		{"set alarm for 6:15", "yes wake me up", "yes tell me"},
		{"send email to Dana", "yes, sorry for the delay", "sorry for the delay"},
		{"send email to Dana", "do the needful", "the needful"},
		{"pay 40.00 to Sam", "the numbers add up, pay it", "the numbers"},
		{"cancel gym membership", "yes cancel, sick of it", "sick of it"},
		{"send email to Dana", "oui, désolé du retard", "désolé du retard"},
		{"send email to Dana", "sí, perdón la demora", "perdón la demora"},
		{"delete 3 old emails", "va bene, elimina", "elimina tutto"},
		{"roll back release 3", "roll it back, everything's on fire", "everything's on fire"},
		{"turn off the heating", "ok mach aus", "ok mach an"},
		{"turn on the heating", "prima doe maar aan", "prima doe maar uit"},
		{"summarize the report", "ja vat maar samen", "ja vertaal maar"},
		{"order dog food 12 kg", "ja hondenvoer", "ja kattenvoer"},
		{"pay water bill 41.20 EUR", "ja wasserrechnung zahlen", "ja telefonrechnung zahlen"},
		{"call in sick for tomorrow", "ja meld me maar ziek", "ja meld me maar af"},
		{"remove Jan from the group", "ja haal eruit", "ja jan erbij"},
		{"add milk to the shopping list", "ja zet erbij", "ja melk eraf"},
	} {
		if v := adversary(t, c.passes, c.label); !v.Confirms(ActThreshold) {
			t.Errorf("%q to %q is held back by %v", c.passes, c.label, v.Guards)
		}
		if v := adversary(t, c.held, c.label); v.Confirms(ActThreshold) {
			t.Errorf("%q to %q passes", c.held, c.label)
		}
	}
}

// What says in its own language that something was seen, is wanted otherwise or not at all, says so in every other.
func TestNoEntryPassesThatIsNoYes(t *testing.T) {
	lowers := []kind{kindAck, kindNegation, kindStop, kindHedge, kindCondition, kindChange, kindQuestion, kindThird, kindIdiom}
	lists := newBuilder(os.DirFS("lexicon"))
	for _, lang := range languages {
		var in kind
		for _, s := range lists.sections(lang) {
			if in = kind(slices.Index(kindNames[:], s.section)); !slices.Contains(lowers, in) { //nolint:gosec // an index of a small array
				continue
			}
			for _, e := range s.entries {
				if l := words(); len(strings.Fields(e)) == 1 && l.verbs.at(e) != 0 {
					continue // is also what the action is called
				}
				if v := adversary(t, e, "send email to Dana"); v.Confirms(ActThreshold) {
					t.Errorf("%s, %s: %q passes", lang, in, e)
				}
			}
		}
	}
}
