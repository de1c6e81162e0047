package classifier

import (
	"strings"
	"testing"
)

// A comment beside a yes, made of everyday words that no phrase of reasons.txt
// holds, in ten languages.
func TestComments_StandBesideAYes(t *testing.T) {
	for label, texts := range map[string][]string{
		"send the contract to Ines": {
			"go ahead, my lawyer looked it over", "send it, the numbers were fine", "approved, our accountant is happy with the figures",
			"send it please, the poor man has waited long enough", "go on then, I have been up all night with the baby", "send it, I look like a scarecrow anyway",
			"发吧，会计看过了", "送って、経理も確認済み",
		},
		"cancel gym membership":           {"yes cancel, my knee is shot", "yes please, it's costing me a fortune", "ja kündigen, ich geh nie hin", "取消吧，从来不去", "解約で、膝が痛くて"},
		"block number 0800 555 0142":      {"yes please they won't leave me alone"},
		"roll back release 12":            {"volta logo, caiu tudo", "快回滚，全挂了", "早く戻して、全部落ちてる"},
		"pay the electrician, 240":        {"pay the man, he's a star"},
		"set bedtime lights for 19:30":    {"half seven is bang on, yes", "7.30 yes"},
		"rebook flight to Rome for 2 May": {"yes rebook me for the second of may"},
		"move review to 10:00":            {"yep moveit", "yes it can be moved"},
		"buy stamps, black":               {"yes, balck"},
	} {
		for _, text := range texts {
			if v := adversary(t, text, label); !v.Confirms(ActThreshold) {
				t.Errorf("%q to %q is held back by %v: %v", text, label, v.Guards, Unaccounted(Input{Newest: NewWords(text), Offers: labels(t, label)}))
			}
		}
	}
}

// The neighbours of a comment: the same words where they hold a doubt, a detail,
// another receiver or time, a wait, a hand-over, or answer somebody else.
func TestComments_NeighboursAreHeld(t *testing.T) {
	for label, texts := range map[string][]string{
		"send the contract to Ines": {
			// it is not settled, or is in somebody else's hands
			"send it, my lawyer is reviewing it", "send it, my lawyer will check it", "send it, my lawyer hasn't agreed", "send it, I haven't read the contract", "send it, I can't find the contract", "yes please, we have it", "send it, she got it",
			"send it, my boss would love to read it", "yes please, it can wait", "yes please, I'll wait", "send it, they objected", "Ines approved it", "Ines confirmed", "sí, mi jefe lo está revisando", "oui, mon chef le vérifie", "ja, mein Chef prüft es", "sim, meu chefe está conferindo", "sì, il mio capo sta controllando",
			"ja, mijn baas controleert het", "haan, boss dekh rahe hain", "发吧，老板在看", "送って、上司が確認します", "enviei", "sim, já enviei",
			// a doubt
			"send it, it's terrible", "send it, the terms are awful", "send it, there's a mistake in it",
			// somebody or something else
			"send it, to my boss", "send it, my mum as well", "tell the boss", "send it, and my boss", "mándalo a mi jefe", "envoie à mon chef", "schick, an meinen Chef", "manda pro meu chefe", "manda, a mia madre", "stuur maar, aan mijn moeder", "boss ko bhej do", "发吧，给老板", "送って、上司に", "send it, she works in the other office now", "send it, she lives in Leeds",
			// a time
			"send it, in two weeks", "send it, she's on holiday until Monday", "send it, for two weeks", "yes please, five times", "mándalo en dos semanas", "schick jede Woche", "毎日送って",
			// a wait, a no
			"sí, espera un poco", "oui, on arrête", "oui, on oublie", "ja, wart", "sim, esquece", "sì, aspetta un attimo", "ja, laat maar", "haan ruko", "好，等着", "うん、待って", "send it, no wait",
			// answers to somebody else
			"yes the baby is asleep", "yes my mum is here", "yes we had dinner", "yes the dog was sick", "yes the car broke down", "yes I'm on my way", "sí, estoy en casa", "oui, je suis malade", "ja, ich bin zu Hause", "sim, estou doente", "sì, sono a casa", "ja, ik ben ziek", "好，我在家", "うん、家にいる",
			"my boss is waiting", "legal has cleared it", "no rush", "yes because that went so well last time", "send it, because that went so well",
		},
		"order burgers from Patty Shack":  {"order it, the kids can't eat onions", "order them, no bread", "yes please, not too hot", "order them, my son is keto", "order it, we have a dog", "pide, mi hijo no come pan", "commande, sans pain", "bestell, mein Sohn isst kein Brot", "ordina, mio figlio non mangia pane", "点吧，孩子不吃面包", "頼んで、パンなしで"},
		"book a table for 2 at Nopa":      {"book it, we have a baby", "book it, my brother is coming", "book it, outside", "book it, by the door", "book it, the kids too", "yes, for my mum and dad"},
		"cancel gym membership":           {"yes I love it there", "yes please, I'm enjoying it", "it's been great", "yes it's great", "delete them, she needs it", "cancel it, it helps me sleep", "gym bahut pasand hai", "我挺喜欢那家的"},
		"pay the electrician, 240":        {"pay him cash", "pay him, the light isn't working", "pay him, he broke my wall", "yes they can pay", "pay him, he worked five hours", "pay the plumber", "pay him, he never finished"},
		"renew car insurance":             {"renew it, I never drive it now"},
		"approve Owen's holiday":          {"he asked for two weeks, give him one", "Owen approved it"},
		"move standup to 10:00":           {"yes and the retro", "yes 10.30", "half ten yes"},
		"sign Lily up for judo":           {"sign her up for karate"},
		"pay for Ida's class trip":        {"ah ja"},
		"rebook flight to Rome for 2 May": {"yes rebook me for the third of may", "the second one"},
		"book haircut with Tomas":         {"yes for my son"},
		"send it to the team":             {"yes it has been sent"},
	} {
		for _, text := range texts {
			if v := adversary(t, text, label); v.Confirms(ActThreshold) {
				t.Errorf("%q to %q acts: %v", text, label, Explain(Input{Newest: NewWords(text), Offers: labels(t, label)}))
			}
		}
	}
}

// A plain "yes" is not enough beside a comment, whatever that is about: "yes, I'm freezing" does not turn the heating off.
func TestComments_APlainYesIsNotEnough(t *testing.T) {
	for label, texts := range map[string][]string{
		"send the contract to Ines": {
			"yes, our solicitor looked it over", "sí, ya lo revisó la contadora", "oui, la compta a vérifié", "ja, die Buchhaltung hat drübergeschaut", "sim, a contadora já conferiu",
			"sì, la commercialista ha controllato", "ja, de boekhouder heeft ernaar gekeken",
		},
		"report Ava absent from school": {"yes she can't stop coughing", "yes her throat is really sore", "ja, ze heeft de hele nacht gehoest"},
		"block number 0800 555 0142":    {"yes it's driving me up the wall", "yes he's lovely"},
		"turn off the heating":          {"yes I'm freezing", "yes the baby is cold", "yes it's baltic"},
		"cancel the plumber":            {"yes it's still leaking", "yes the pipe burst"},
		"deploy the release":            {"yes the build failed", "yes prod is down", "yes it broke checkout"},
		"pay the invoice from Acme":     {"yes they did a terrible job", "yes it's a joke", "yes he did a lovely job"},
		"order cat litter, 2 bags":      {"yes we're nearly out"},
		"invite Marcus to the party":    {"yes he's worked so hard", "of course, he's been a star"},
	} {
		for _, text := range texts {
			if v := adversary(t, text, label); v.Confirms(ActThreshold) {
				t.Errorf("%q to %q acts", text, label)
			}
		}
	}
}

// Words of no list are few in a comment, and never names.
func TestComments_FewStrangeWords(t *testing.T) {
	const label = "send email to Dana"
	for text, want := range map[string]bool{
		"send it, my dog chewed the zorbel":                                                  true,
		"send it, my dog chewed the zorbel and smashed the quantrix":                         true,
		"send it, my dog chewed the zorbel quantrix flombard":                                false,
		"send it, my dog ate Zorbel's lunch":                                                 false,
		"send it, my dog chewed the zorbel quantrix and my cat smashed the flombard pilkets": false,
		"yes my dog chewed the zorbel":                                                       false,
	} {
		if v := adversary(t, text, label); v.Confirms(ActThreshold) != want {
			t.Errorf("%q: acts = %v (%v)", text, !want, Unaccounted(Input{Newest: NewWords(text), Offers: labels(t, label)}))
		}
	}
}

// The longest comment that is still read costs no more than a few looks at each
// of its words, and none makes the guards panic.
func TestComments_AnyCutIsSafe(t *testing.T) {
	for _, text := range []string{
		"send it, my mum and the poor dog have been up all night since grandad died and she can't stop coughing",
		"sí, mi pobre hermana no ha dormido en toda la noche", "ja, die Arme hat die ganze Nacht nur gehustet", "发吧，我妈等了三个月了一直在催", "送って、うちの犬が一晩中吠えてて眠れない",
	} {
		words := strings.Fields(text)
		for i := range words {
			for _, cut := range []string{strings.Join(words[:i], " "), strings.Join(words[i:], " ")} {
				adversary(t, cut, "send the contract to Ines")
			}
		}
		for i := range text {
			adversary(t, strings.ToValidUTF8(text[:i], ""), "cancel gym membership")
		}
	}
}
