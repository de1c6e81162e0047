package classifier

import "testing"

// A yes beside small words that are no answer is none, and beside those that are one it is.
func TestFragments(t *testing.T) {
	for _, c := range []struct{ label, held, passes string }{
		{"send email to Dana", "yes the person", "yes that one"},
		{"send email to Dana", "yes shall", "yes i would"},
		{"send email to Dana", "yes they are", "yes it is"},
		{"send email to Dana", "yes we have", "yes we do"},
		{"send email to Dana", "yes there", "yes to that"},
		{"send email to Dana", "yes done", "yes please"},
		{"send email to Dana", "yes it's made", "yes that's what i wanted"},
		{"send email to Dana", "yes my sis", "yes my queen"},
		{"send email to Dana", "sí el bueno", "sí"},
		{"send email to Dana", "yes the good ones", "yes that one is good"},
		{"send email to Dana", "yes those", "yes this"},
		{"delete 14 files", "yes they", "yes those"},
		{"send email to Dana", "yes her, send it", "yes, send it to her"},
		{"send email to Dana", "sí están", "sí eso"},
		{"send email to Dana", "sí la buena", "sí, por mi parte"},
		{"send email to Dana", "oui tu", "oui pour moi"},
		{"send email to Dana", "ok meine Freunde", "ok"},
		{"send email to Dana", "ja zurück", "ja sicher"},
		{"send email to Dana", "ja wir haben", "ja das"},
		{"send email to Dana", "sim você", "sim isso"},
		{"send email to Dana", "sì la mia", "sì quello"},
		{"send email to Dana", "sì tuo", "sì, sono sicuro"},
		{"send email to Dana", "ja de persoon", "ja dat"},
		{"send email to Dana", "haan unka", "haan yahi hai"},
		{"send email to Dana", "haan ho raha hai", "haan"},
		{"send email to Dana", "हाँ राशि", "हाँ यही"},
		{"send email to Dana", "好，那边", "好的"},
		{"send email to Dana", "はい、件名", "はい、それで"},
	} {
		if v := adversary(t, c.held, c.label); v.Confirms(ActThreshold) {
			t.Errorf("%q to %q passes", c.held, c.label)
		}
		if v := adversary(t, c.passes, c.label); !v.Confirms(ActThreshold) {
			t.Errorf("%q to %q is held back by %v", c.passes, c.label, v.Guards)
		}
	}
}

// Who does it themselves, or has it done already, does not ask us to.
func TestGuard_SelfInEveryLanguage(t *testing.T) {
	for _, c := range []struct{ label, held, free string }{
		{payAcme, "yes i do it", "yes do it"},
		{payAcme, "i'd do it", "i'd like you to do it"},
		{payAcme, "let me do it", "let's do it"},
		{payAcme, "i'll take it from here", "i'll take it"},
		{payAcme, "je fonce", "fonce"},
		{payAcme, "c'est moi qui paie", "paie"},
		{payAcme, "payé", "paye"},
		{payAcme, "oui payé", "oui payé le"},
		{payAcme, "pagué", "paga"},
		{payAcme, "sigo yo, hazlo yo", "hazlo"},
		{"send email to Dana", "lo envío", "envíalo"},
		{payAcme, "ich leg los", "leg los"},
		{payAcme, "kann ich machen", "kannst du machen"},
		{payAcme, "sie kann das machen", "mach das"},
		{payAcme, "fallo noi", "fallo"},
		{payAcme, "ik regel het", "regel het"},
		{payAcme, "ga ik doen", "doen"},
	} {
		objects(t, "self", c.label, c.held, c.free)
	}
}

// To get, join or go on is the opposite of what gives a thing up.
func TestGuard_KeepWhatIsObtained(t *testing.T) {
	objects(t, "keep", "delete 14 old files", "grab it", "bin it")
	objects(t, "keep", "cancel gym membership", "count me in", "yes cancel it")
	objects(t, "keep", "cancel gym membership", "me apunto", "cancélalo")
	objects(t, "keep", "delete 14 old files", "je suis preneur", "supprime")
	objects(t, "keep", "cancel gym membership", "doorgaan", "zeg maar op")
	objects(t, "keep", "delete 14 old files", "i'll take it", "i'll take it, delete them")
}

// Somebody else's yes, a condition without an if, and what sounds like a yes to a thing that would go.
func TestAttack_ThirdPersonsConditionsAndOpposites(t *testing.T) {
	objects(t, "third-person", payAcme, "they agreed", "agreed")
	objects(t, "third-person", payAcme, "they're fine with it", "i'm fine with it")
	objects(t, "third-person", "send email to Dana", "Dana is fine with it", "fine with me")
	objects(t, "condition", payAcme, "should it be ready, yes", "it's ready, yes")
	objects(t, "condition", payAcme, "yes given it's right", "yes it's right")
	objects(t, "consent", payAcme, "works for her", "works for me")
	objects(t, "idiom", payAcme, "hau ab", "hau rein")
	objects(t, "keep", "cancel flight BA 287", "yes so excited", "yes so so")
	objects(t, "keep", "return the boots to Zalando", "i want it", "return it")
	objects(t, "keep", "turn off the heating", "carry on", "yes turn it off")
	objects(t, "keep", "cancel flight BA 287", "i'm in", "cancel it")
}
