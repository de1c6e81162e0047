package classifier

import (
	"context"
	"slices"
	"testing"
)

func TestInflections(t *testing.T) {
	for _, c := range []struct {
		lang, verb string
		has, lacks []string
	}{
		{"es", "pagar", []string{"pagar", "paga", "pague", "paguen"}, []string{"pago", "pagado"}},
		{"es", "imprimir", []string{"imprime", "imprima"}, []string{"imprimi"}},
		{"pt", "marcar", []string{"marca", "marque"}, []string{"marquei"}},
		{"it", "pagare", []string{"paga", "paghi"}, []string{"pagato"}},
		{"it", "spedire", []string{"spedisci", "spedisca"}, []string{"spedito"}},
		{"fr", "envoyer", []string{"envoyez", "envoyons"}, []string{"envoyait"}},
		{"de", "bezahlen", []string{"bezahl", "bezahle"}, []string{"bezahlt"}},
		{"nl", "kopen", []string{"koop"}, []string{"kocht"}},
		{"nl", "pakken", []string{"pak"}, nil},
		{"nl", "schrijven", []string{"schrijf"}, nil},
	} {
		got := inflections(c.lang, c.verb)
		for _, w := range c.has {
			if !slices.Contains(got, w) {
				t.Errorf("%s %s: no %q in %v", c.lang, c.verb, w, got)
			}
		}
		for _, w := range c.lacks {
			if slices.Contains(got, w) {
				t.Errorf("%s %s: %q says that it has happened", c.lang, c.verb, w)
			}
		}
	}
}

// Each pair: what the label accounts for, and its near neighbour that it does not.
func TestWhatALabelAccountsFor(t *testing.T) {
	for _, c := range []struct{ label, passes, held string }{
		// the same thing in another language, and another thing
		{"order a phone charger", "oui commande le chargeur", "oui commande le casque"},
		{"cancel lunch with Priya", "sí, cancela el almuerzo", "sí, cancela la cena"},
		{"call the plumber at 4pm", "ja ruf den klempner an", "ja ruf den elektriker an"},
		// the general name for the special one, not the other way round
		{"rent a hatchback in Sydney", "I like that car, rent it", "I like that suv, rent it"},
		{"rent a car in Sydney", "yes rent the car", "yes rent the hatchback"},
		// numbers in words
		{"pay 74.00 USD to City Power", "yes seventy four", "yes seventy five"},
		{"print 20 flyers", "好,印二十份", "好,印三十份"},
		{"order 25 chairs", "ja, fünfundzwanzig", "ja, sechsundzwanzig"},
		// times in words
		{"book a table at Amber at 16:30", "half past four works", "half past five works"},
		{"book massage for Saturday 16:00", "4 on saturday works", "5 on saturday works"},
		// slips of the thumb
		{"delete 14 old files", "yes delte them", "yes dilate them"},
		// English in other languages
		{"invite Yusuf to the retro", "yeah, invite ihn bitte", "yeah, invite ihn morgen"},
		// names in other letters
		{"share the class notes with Meera", "मीरा को भेज दो", "अंजलि को भेज दो"},
		{"send the estimate to Tanaka-san", "はい、田中さんに送ってください", "はい、鈴木さんに送ってください"},
		// a Dutch particle, and a but
		{"cancel the Wednesday lunch with Fatima", "zeg de lunch maar af", "ja, maar zeg af"},
		// a verb that names a family means that family alone
		{"send email to Dana", "yes mail it", "yes pay it"},
		{"send email to Dana", "yes, tell her", "yes, book her"},
		// an action inside the name of another
		{"rent a cello for Minh", "rent it", "rent to own"},
		{"rent a boat for Sunday", "rent the boat", "rent is going up"},
		// one of several
		{"get event tickets for Marrow Hall", "yes get me the tickets", "yes get me one event ticket"},
		{"buy ticket to Ghent", "yes, one ticket", "yes, two tickets"},
		// today is now where nothing else was said
		{"send the mail to Dana", "yes send it today", "yes send it tomorrow"},
		{"book a table at Amber", "yes book it", "yes book it today"},
	} {
		if v := adversary(t, c.passes, c.label); !v.Confirms(ActThreshold) {
			t.Errorf("%q to %q is held back by %v: %v", c.passes, c.label, v.Guards, Unaccounted(Input{Newest: NewWords(c.passes), Offers: labels(t, c.label)}))
		}
		if v := adversary(t, c.held, c.label); v.Confirms(ActThreshold) {
			t.Errorf("%q to %q passes", c.held, c.label)
		}
	}
}

func TestAccountedNamesTheLanguage(t *testing.T) {
	for text, want := range map[string]string{"oui vas-y": "fr", "yes send it": "en", "ja, schick ab": "de", "hmm zork": "", "what?": ""} {
		got, ok := Accounted(Input{Newest: NewWords(text), Offers: labels(t, "send email to Dana")})
		if got != want || ok != (want != "") {
			t.Errorf("%q is in %q, %v", text, got, ok)
		}
	}
}

// What a reader inside Read sees of the text is what it would see outside.
func TestExplainReadIsExplain(t *testing.T) {
	in := Input{Newest: NewWords("yes please send it"), Offers: labels(t, "send email to Dana")}
	other := Input{Newest: NewWords("no"), Offers: in.Offers}
	asked := false
	v := Read(t.Context(), readerFunc(func(ctx context.Context, got Input) (Reading, error) {
		asked = true
		if !slices.Equal(ExplainRead(ctx, got), Explain(in)) {
			t.Error("the shared pieces differ")
		}
		if !slices.Equal(ExplainRead(ctx, other), Explain(other)) {
			t.Error("another input was given the pieces of this one")
		}
		return mustSay(Confirm), nil
	}), in, Options{})
	if !asked || !v.Confirms(ActThreshold) {
		t.Errorf("asked %v, %+v", asked, v)
	}
}

func TestKnows(t *testing.T) {
	for _, w := range []string{"yes", "Friday", "invoice", "zwanzig", "好"} {
		if !Knows(w) {
			t.Errorf("%q is unknown", w)
		}
	}
	for _, w := range []string{"Quillon", "Zyta"} {
		if Knows(w) {
			t.Errorf("%q is known", w)
		}
	}
}

// A name instead of the label's is a change, also where it is one slip from a word of assent or of the action.
func TestANameIsNoSlip(t *testing.T) {
	for _, text := range []string{"Greta yes", "yes to Greta", "the Emil one, yes", "yes Emil"} {
		v := Read(t.Context(), fixedReader{Reading{Class: Confirm, P: [Classes]float64{Confirm: 1}}}, Input{Newest: NewWords(text), Offers: labels(t, "send email to Dana")}, Options{})
		if v.Confirms(ActThreshold) {
			t.Errorf("%q confirms", text)
		}
	}
}

type fixedReader struct{ r Reading }

func (f fixedReader) Read(context.Context, Input) (Reading, error) { return f.r, nil }
func (fixedReader) Fingerprint() string                            { return "fixed" }

// An entry that is not folded, since it is taken to be folded already, is split as any other would be.
func TestPlainEntriesAreFolded(t *testing.T) {
	for r := rune(' '); r < 0xA000; r++ {
		if e := "a" + string(r); isPlainWords(e) {
			if toks, _ := tokenize(nil, fold(e), maxTokens, words().cjk); fold(e) != e || len(toks) != 1 {
				t.Errorf("%U counts as folded", r)
			}
		}
	}
}
