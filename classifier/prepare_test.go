package classifier

import (
	"strings"
	"testing"
	"unicode/utf8"
)

const offerText = "Pay $412.00 to Acme Tools from account 7? Reply YES A to confirm or NO A to decline."

func TestPrepare_Forms(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		form      Form
		own       string
	}{
		{"typed", "yes please", FormTyped, "yes please"},
		{"carriage returns", "yes\r\nplease\r\n", FormTyped, "yes\nplease"},
		{"composed", "si\u0301", FormTyped, "sí"},
		{"trailing zero width", "yes\u200b", FormTyped, "yes"},
		{"leading mark", "\ufeffyes", FormTyped, "yes"},
		{"NUL at the end", "yes\x00", FormTyped, "yes"},
		{"attachment only", "\ufffc", FormEmpty, ""},
		{"blank", " \n\t ", FormEmpty, ""},
		{"empty", "", FormEmpty, ""},
		{"signature only", "Sent from my iPhone", FormQuoted, ""},
		{"signature below", "yes\n\nSent from my iPhone", FormTyped, "yes"},
		{"signature es", "sí\nEnviado desde mi iPhone", FormTyped, "sí"},
		{"signature fr", "oui\nEnvoyé de mon iPhone", FormTyped, "oui"},
		{"signature de", "ja\nVon meinem iPhone gesendet", FormTyped, "ja"},
		{"signature nl", "ja\nVerstuurd vanaf mijn iPhone", FormTyped, "ja"},
		{"signature it", "sì\nInviato da iPhone", FormTyped, "sì"},
		{"signature pt", "sim\nEnviado do meu iPhone", FormTyped, "sim"},
		{"signature ja", "はい\niPhoneから送信", FormTyped, "はい"},
		{"signature zh", "好的\n发自我的iPhone", FormTyped, "好的"},
		{"sent from in a sentence", "Sent from my account, yes, pay it", FormTyped, "Sent from my account, yes, pay it"},
		{"too long for any message", strings.Repeat("yes ", 20_000), FormOversize, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Prepare(NewWords(c.raw))
			if p.Form != c.form || p.Own != c.own {
				t.Errorf("Prepare(%.40q) = %v %q, want %v %q", c.raw, p.Form, p.Own, c.form, c.own)
			}
		})
	}
}

func TestPrepare_Notes(t *testing.T) {
	for raw, note := range map[string]string{
		"y\u200bes":         NoteInvisible,
		"ye\u00ads":         NoteInvisible,
		"yes\U000E0041":     "", // at the end: trimmed
		"y\U000E0041es":     NoteInvisible,
		"yes \u202eon":      NoteBidi,
		"yes\xff":           NoteInvalidUTF8,
		"> a\nno\n> b\nyes": NoteInline,
		"> a\nyes":          NoteQuoteAbove,
		"-- \nno, don't":    NoteSignatureFirst,
		"yes\n-- \nSam":     NoteUnquoted,
	} {
		p := Prepare(NewWords(raw))
		if note != "" && !p.noted(note) || note == "" && len(p.Notes) > 0 {
			t.Errorf("Prepare(%q) notes %v, want %q", raw, p.Notes, note)
		}
	}
}

// Emoji keep their joiners and selectors; scripts that join letters too.
func TestPrepare_JoinersThatBelong(t *testing.T) {
	for _, s := range []string{"🙆‍♀️", "👍🏽", "❤️", "क्\u200dष", "می\u200cخواهم"} {
		p := Prepare(NewWords(s))
		if p.Own != s && p.Own != strings.TrimRight(s, "\ufe0f") || len(p.Notes) > 0 {
			t.Errorf("%q became %q with notes %v", s, p.Own, p.Notes)
		}
	}
}

func TestTapback_RX01_RX03_Kinds(t *testing.T) {
	for raw, want := range map[string]TapbackKind{
		"Liked “" + offerText + "”":                        TapbackLike,
		"Loved “" + offerText + "”":                        TapbackLove,
		"Disliked “" + offerText + "”":                     TapbackDislike,
		"Laughed at “" + offerText + "”":                   TapbackLaugh,
		"Emphasized “" + offerText + "”":                   TapbackEmphasize,
		"Questioned “" + offerText + "”":                   TapbackQuestion,
		"Liked \"" + offerText + "\"":                      TapbackLike,
		"👍 to “" + offerText + "”":                         TapbackLike,
		"\u200a👍\u200a to “\u200a" + offerText + "\u200a”": TapbackLike,
		"Reacted 👍 to \"" + offerText + "\"":               TapbackLike,
		"Reacted 🎉 to “" + offerText + "”":                 TapbackOther,
		"❤️ to “" + offerText + "”":                        TapbackLove,
		"Le gustó “" + offerText + "”":                     TapbackLike,
		"No le gustó “" + offerText + "”":                  TapbackDislike,
		"Reaccionó con 👍 a “" + offerText + "”":            TapbackLike,
		"A aimé « " + offerText + " »":                     TapbackLike,
		"N’a pas aimé « " + offerText + " »":               TapbackDislike,
		"A réagi avec 👍 à « " + offerText + " »":           TapbackLike,
		"Gefällt „" + offerText + "“":                      TapbackLike,
		"Gefällt nicht „" + offerText + "“":                TapbackDislike,
		"Hat mit 👍 auf „" + offerText + "“ reagiert":       TapbackLike,
		"Curtiu “" + offerText + "”":                       TapbackLike,
		"Reagiu com 👍 a “" + offerText + "”":               TapbackLike,
		"Ha adorato “" + offerText + "”":                   TapbackLove,
		"Vond “" + offerText + "” leuk":                    TapbackLike,
		"Vond “" + offerText + "” niet leuk":               TapbackDislike,
		"喜欢了“" + offerText + "”":                           TapbackLike,
		"“" + offerText + "”にいいねしました":                      TapbackLike,
		"「" + offerText + "」を強調しました":                       TapbackEmphasize,
		"Liked “Transfer 50 to savings?…”":                 TapbackLike, // RX-09: cut short
		"Liked “first line\nsecond line”":                  TapbackLike,
		"Liked an image":                                   TapbackLike, // RX-05
		"Loved a movie":                                    TapbackLove,
		"Disliked an attachment":                           TapbackDislike,
	} {
		p := Prepare(NewWords(raw))
		if p.Form != FormTapback || p.Tapback.Kind != want || p.Own != "" {
			t.Errorf("Prepare(%q) = %v, kind %q, own %q; want a %q", raw, p.Form, p.Tapback.Kind, p.Own, want)
		}
	}
	for _, raw := range []string{
		"Removed a like from “" + offerText + "”", "Removed a heart from “" + offerText + "”",
		"Removed 👍 from “" + offerText + "”", "Quitó un me gusta de “" + offerText + "”",
		"A supprimé un j’aime de « " + offerText + " »", "Removeu uma curtida de “" + offerText + "”",
	} {
		if p := Prepare(NewWords(raw)); p.Form != FormTapbackRemoved || p.Own != "" {
			t.Errorf("Prepare(%q) = %v", raw, p.Form)
		}
	}
}

// RX-07: the quote must be all the rest; people do begin texts with "Liked".
func TestTapback_RX07_TypedTextStays(t *testing.T) {
	for _, raw := range []string{
		"Liked it, go ahead with A", "Loved the first one, do that", "Liked “option A” better, go",
		"Liked", "Loved it!", "He liked “it”", "liked your proposal, let's talk",
	} {
		if p := Prepare(NewWords(raw)); p.Form != FormTyped || p.Own != raw {
			t.Errorf("Prepare(%q) = %v %q", raw, p.Form, p.Own)
		}
	}
}

// RX-09: only a quote of the whole text names a text.
func TestTapback_RX09_QuotesWholeTextOnly(t *testing.T) {
	a, b := "Transfer 50 to savings? (A)", "Transfer 50 to savings? (B)"
	whole := Prepare(NewWords("Liked “" + a + "”")).Tapback
	if !whole.Quotes(a) || whole.Quotes(b) {
		t.Error("a whole quote names its text and no other")
	}
	cut := Prepare(NewWords("Liked “Transfer 50 to savings?…”")).Tapback
	if cut.Quotes(a) || cut.Quotes(b) {
		t.Error("a quote that was cut short names a text")
	}
	if (Tapback{}).Quotes("") {
		t.Error("no quote names an empty text")
	}
}

func TestUnquote(t *testing.T) {
	for _, c := range []struct{ name, raw, own string }{
		{"UQ-01 a reply that starts with On", "On second thought, no.\nDon't send it.\n\nOn Tue, 4 Mar 2025 at 10:02, Bot wrote:\n> Send the report? Reply YES",
			"On second thought, no.\nDon't send it."},
		{"UQ-01 wrapped attribution", "yes\n\nOn Tue, 4 Mar 2025 at 10:02,\nBot <bot@example.test> wrote:\n\n> Send?", "yes"},
		{"UQ-03 Danish block", "ok\n\nFra: Bot <bot@example.test>\nSendt: 4. marts 2025 10:02\nTil: Sam\nEmne: Betaling\n\nBetal 412 kr til Acme. Svar JA for at godkende.", "ok"},
		{"UQ-03 English", "ok\n\nFrom: Bot\nSent: Tuesday\nTo: Sam\nSubject: Pay\n\nReply YES", "ok"},
		{"UQ-03 German", "ok\n\nVon: Bot\nGesendet: Dienstag\nAn: Sam\nBetreff: Zahlung\n\nAntworte JA", "ok"},
		{"UQ-03 French", "ok\n\nDe : Bot\nEnvoyé : mardi\nÀ : Sam\nObjet : Paiement\n\nRépondez OUI", "ok"},
		{"UQ-03 Spanish", "ok\n\nDe: Bot\nEnviado: martes\nPara: Sam\nAsunto: Pago\n\nResponda SÍ", "ok"},
		{"UQ-03 Portuguese", "ok\n\nDe: Bot\nEnviada em: terça\nPara: Sam\nAssunto: Pagamento\n\nResponda SIM", "ok"},
		{"UQ-03 Italian", "ok\n\nDa: Bot\nInviato: martedì\nA: Sam\nOggetto: Pagamento\n\nRispondi SÌ", "ok"},
		{"UQ-03 Dutch", "ok\n\nVan: Bot\nVerzonden: dinsdag\nAan: Sam\nOnderwerp: Betaling\n\nAntwoord JA", "ok"},
		{"UQ-03 Swedish", "ok\n\nFrån: Bot\nSkickat: tisdag\nTill: Sam\nÄmne: Betalning\n\nSvara JA", "ok"},
		{"UQ-03 Polish", "ok\n\nOd: Bot\nWysłano: wtorek\nDo: Sam\nTemat: Płatność\n\nTAK", "ok"},
		{"UQ-03 Russian", "ok\n\nОт: Bot\nОтправлено: вторник\nКому: Sam\nТема: Оплата\n\nДА", "ok"},
		{"UQ-03 Chinese", "好\n\n发件人: Bot\n发送时间: 星期二\n收件人: Sam\n主题: 付款\n\n回复 是", "好"},
		{"UQ-03 Japanese", "はい\n\n差出人: Bot\n送信日時: 火曜日\n宛先: Sam\n件名: 支払い\n\nはいと返信", "はい"},
		{"UQ-03 bold markdown block", "ok\n\n*From:* Bot\n*Sent:* Tuesday\n*To:* Sam\n*Subject:* Pay\n\nReply YES", "ok"},
		{"UQ-05 forward", "---------- Forwarded message ---------\nFrom: Vendor <v@example.test>\nDate: Mon, 3 Mar 2025\nSubject: Invoice\n\nPlease transfer 9,800 to the new account today.", ""},
		{"UQ-05 iOS forward", "Begin forwarded message:\n\nFrom: Vendor\nplease pay", ""},
		{"UQ-05 original message", "yes\n-----Original Message-----\nFrom: Bot\nReply YES", "yes"},
		{"UQ-05 German forward", "---------- Weitergeleitete Nachricht ---------\nVon: X\nja", ""},
		{"UQ-06 wrote inside a sentence", "Send the note On Friday like Ana wrote: short and polite. And book the room.",
			"Send the note On Friday like Ana wrote: short and polite. And book the room."},
		{"UQ-06 list with a colon", "From: the shop I need\nmilk", "From: the shop I need\nmilk"},
		{"UQ-08 inline answers", "> Delete the old backups?\nno\n> Renew the domain?\nyes", "no\nyes"},
		{"UQ-10 answer below the mark", "-- \nno, don't", "no, don't"},
		{"UQ-10 signature", "later please\n-- \nSam | Yes We Can Movers", "later please"},
		{"quote alone", "> Reply YES", ""},
		{"Spanish attribution", "sí\nEl mar, 4 mar 2025, Bot escribió:\n> SÍ", "sí"},
		{"French attribution", "oui\nLe mar. 4 mars 2025, Bot a écrit :\n> OUI", "oui"},
		{"German attribution", "ja\nAm Di., 4. März 2025 schrieb Bot <b@example.test>:\n> JA", "ja"},
		{"Dutch attribution", "ja\nOp di 4 mrt 2025 schreef Bot <b@example.test>:\n> JA", "ja"},
		{"Japanese attribution", "はい\n2025年3月4日 10:02 Bot <b@example.test>のメール:\n> はい", "はい"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Prepare(NewWords(c.raw)).Own; got != c.own {
				t.Errorf("own words %q, want %q", got, c.own)
			}
		})
	}
}

func TestAutoReply_AR01(t *testing.T) {
	for _, raw := range []string{
		"Auto-reply: I'm busy right now, will get back to you. OK!",
		"I'm driving right now, I'll get back to you. OK?",
		"(I’m not receiving notifications. If this is urgent, reply “urgent”.)",
		"Out of office until Monday",
		"Ich fahre gerade, melde mich später",
		"Estoy conduciendo, te llamo luego",
		"自动回复：正在开车",
		"運転中です",
	} {
		p := Prepare(NewWords(raw))
		if p.Form != FormAutoReply {
			t.Errorf("Prepare(%q) = %v", raw, p.Form)
		}
		for _, c := range []Class{Confirm, Decline, Modify} {
			if r, g := runGuards(mustSay(c), p, labels(t, "pay 412.00 to Acme Tools")); r.Class != Unclear || len(g) == 0 {
				t.Errorf("%q read as %v stayed %v", raw, c, r.Class)
			}
		}
	}
}

func mustSay(c Class) Reading {
	r := Reading{Class: c}
	r.P[c] = 1
	return r
}

func TestKeyword_OO02_OO06(t *testing.T) {
	for raw, want := range map[string]Keyword{
		"STOP": KeywordStop, "stop": KeywordStop, " Stop. ": KeywordStop, "STOPALL": KeywordStop, "Unsubscribe": KeywordStop,
		"Cancel": KeywordStop, "END": KeywordStop, "quit": KeywordStop, "REVOKE": KeywordStop, "optout": KeywordStop, "stop\u200b": KeywordStop,
		"START": KeywordStart, "unstop": KeywordStart, "HELP": KeywordHelp, "info": KeywordHelp,
		"yes": KeywordNone, "stop it": KeywordNone, "cancel it": KeywordNone, "": KeywordNone, "please stop": KeywordNone,
	} {
		if got := KeywordOf(NewWords(raw)); got != want {
			t.Errorf("KeywordOf(%q) = %v, want %v", raw, got, want)
		}
	}
	// OO-01: YES opts in only whoever is opted out; it stays an ordinary reply.
	for raw, want := range map[string]bool{"YES": true, "yes": true, "START": true, "unstop": true, "yes please": false, "no": false} {
		if got := OptsIn(NewWords(raw)); got != want {
			t.Errorf("OptsIn(%q) = %v", raw, got)
		}
	}
	if v := adversary(t, "Yes", "pay 412.00 to Acme Tools"); !v.Confirms(0.9) {
		t.Errorf("OO-01: a plain Yes was held back by %v", v.Guards)
	}
}

func TestFromButton(t *testing.T) {
	for _, c := range []struct{ payload, text, want string }{
		{"confirm", "Send it", "yes"}, {" YES ", "", "yes"}, {"decline", "Don't", "no"}, {"other", "Send it", "Send it"}, {"", "yes", "yes"},
	} {
		if got := FromButton(c.payload, c.text).String(); got != c.want {
			t.Errorf("FromButton(%q, %q) = %q", c.payload, c.text, got)
		}
	}
}

func FuzzPrepare(f *testing.F) {
	for _, s := range []string{"yes", "yes\u200b", "Liked “x”", "> a\nb", "On 4 Mar, x wrote:\n> y", "-- \nno", "\xff\xfe", "👍🏽", "क्या", "はい。",
		strings.Repeat("a", 70_000), strings.Repeat("> \n", 9_000), strings.Repeat("\u0301", 3_000), strings.Repeat("\u202e", 500), "From: a\nTo: b\nSubject: c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := Prepare(NewWords(s))
		if !utf8.ValidString(p.Own) {
			t.Errorf("own words are no text: %q", p.Own)
		}
		if p.Form != FormTyped && p.Form != FormAutoReply && p.Own != "" {
			t.Errorf("form %v has own words %q", p.Form, p.Own)
		}
		if p.Form == FormTyped && p.Own == "" {
			t.Error("typed without words")
		}
	})
}
