package classifier

import (
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Form is what kind of text came in. The zero value has no words of the person.
type Form uint8

const (
	// FormEmpty has nothing to read: blank, or a picture alone.
	FormEmpty Form = iota
	// FormTyped has words of the person's own; only it is read.
	FormTyped
	// FormTapback is a reaction that the phone wrote down as a text.
	FormTapback
	// FormTapbackRemoved takes a reaction back.
	FormTapbackRemoved
	// FormQuoted holds only words of others: quoted, forwarded, a signature.
	FormQuoted
	// FormAutoReply was most likely written by a machine.
	FormAutoReply
	// FormOversize is longer than any text message can be.
	FormOversize
)

var formNames = [...]string{"empty", "typed", "tapback", "removed tapback", "quoted", "auto-reply", "oversize"}

// String is the name of the form, for example "typed".
func (f Form) String() string {
	if int(f) < len(formNames) {
		return formNames[f]
	}
	return formNames[FormEmpty]
}

// TapbackKind is which reaction it was.
type TapbackKind uint8

// The reactions; TapbackOther is a sticker or an emoji without a kind of its own.
const (
	TapbackNone TapbackKind = iota
	TapbackLike
	TapbackLove
	TapbackDislike
	TapbackLaugh
	TapbackEmphasize
	TapbackQuestion
	TapbackOther
)

var tapbackNames = [...]string{"", "like", "love", "dislike", "laugh", "emphasize", "question", "emoji"}

// String is the name of the reaction, for example "like"; empty for none.
func (k TapbackKind) String() string {
	if int(k) < len(tapbackNames) {
		return tapbackNames[k]
	}
	return ""
}

func tapbackKindOf(name string) TapbackKind {
	for i, n := range tapbackNames {
		if n == name && i > 0 {
			return TapbackKind(i)
		}
	}
	return TapbackOther
}

// Tapback is a reaction and what it was a reaction to, in the words of the text
// that it quotes: never the words of the person.
type Tapback struct {
	Kind  TapbackKind
	Quote string // without its marks; empty where the phone names an image only
}

// Quotes says whether the reaction quotes the whole of a text that we sent:
// equal up to spacing and the shape of quotes, not cut short. A quote with an
// ellipsis that the text does not have names no text.
func (t Tapback) Quotes(shown string) bool {
	return t.Quote != "" && sameText(t.Quote, shown)
}

func sameText(a, b string) bool {
	clean := func(s string) string {
		return foldSpaces(strings.Map(func(r rune) rune {
			switch {
			case isInvisible(r):
				return -1
			case isApostrophe(r):
				return '\''
			case isQuoteMark(r):
				return '"'
			case unicode.IsSpace(r):
				return ' '
			}
			return r
		}, norm.NFC.String(s)))
	}
	return clean(a) == clean(b)
}

// Notes of [Prepared].
const (
	NoteInvalidUTF8    = "invalid-utf8"    // bytes that are no text were replaced
	NoteInvisible      = "invisible"       // characters that cannot be seen stood inside the words
	NoteBidi           = "bidi"            // direction controls
	NoteUnquoted       = "unquoted"        // something was taken out as not the person's
	NoteInline         = "inline-answers"  // own words stand between quoted lines
	NoteQuoteAbove     = "quote-above"     // own words stand below a quoted line
	NoteSignatureFirst = "signature-first" // own words stand below a signature mark
	NoteCut            = "cut"             // too long to be looked at
)

// Prepared is what one inbound text was taken for.
type Prepared struct {
	Form    Form
	Own     string  // the person's own words: NFC, without quotes, signatures, reactions; empty unless Form is typed or auto-reply
	Tapback Tapback // for the two tapback forms
	Notes   []string
}

// LogValue shows the form and the sizes, never the words.
func (p Prepared) LogValue() slog.Value {
	return slog.GroupValue(slog.String("form", p.Form.String()),
		slog.Int("own_bytes", len(p.Own)), slog.Any("notes", p.Notes))
}

func (p Prepared) noted(note string) bool {
	for _, n := range p.Notes {
		if n == note {
			return true
		}
	}
	return false
}

// Limits of what is looked at. A text message has 1,600 characters at most;
// WhatsApp allows 4,096.
const (
	maxRawBytes = 16 << 10
	maxLines    = 300
)

// Prepare takes a text apart in one pass: bytes to NFC, carrier noise and
// characters that cannot be seen out, reactions and machine answers
// recognised, quotes and signatures cut off. It never fails; a text that it
// cannot make sense of keeps more words, not fewer, because a word left over
// can only make the answer less clear.
func Prepare(w Words) Prepared {
	s, notes := clean(w.raw)
	if len(s) > maxRawBytes {
		return Prepared{Form: FormOversize, Notes: append(notes, NoteCut)}
	}
	if strings.TrimSpace(s) == "" {
		return Prepared{Form: FormEmpty, Notes: notes}
	}
	l, folded := words(), ""
	if len(s) <= autoReplyBytes {
		folded = foldSpaces(fold(s)) // once, for all the lists that it is compared with
	}
	if t, removed, ok := l.tapback(s, folded); ok {
		p := Prepared{Form: FormTapback, Tapback: t, Notes: notes}
		if removed {
			p.Form = FormTapbackRemoved
		}
		return p
	}
	if strings.Count(s, "\n") > maxLines {
		return Prepared{Form: FormOversize, Notes: append(notes, NoteCut)}
	}
	own, unquoted := l.unquote(s, folded)
	if own != s || folded == "" {
		folded = foldSpaces(fold(own[:min(len(own), autoReplyBytes)]))
	}
	p := Prepared{Form: FormTyped, Own: own, Notes: append(notes, unquoted...)}
	switch {
	case own == "":
		p.Form = FormQuoted
	case l.autoReply(folded):
		p.Form = FormAutoReply
	}
	return p
}

// clean makes valid NFC text of the bytes, drops what carriers and phones put
// there unseen, and notes what matters for trust. Invisible characters at the
// ends of the text are harmless and go without a note.
func clean(raw string) (string, []string) {
	var notes []string
	if len(raw) > maxRawBytes {
		return raw, nil
	}
	if isPlainASCII(raw) {
		if !strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' && r != '\n' }) {
			return strings.TrimSpace(raw), nil
		}
	}
	if !utf8.ValidString(raw) {
		raw = strings.ToValidUTF8(raw, "\uFFFD")
		notes = append(notes, NoteInvalidUTF8)
	}
	raw = norm.NFC.String(raw)
	raw = strings.TrimFunc(raw, func(r rune) bool {
		return unicode.IsSpace(r) || isInvisible(r) && !isBidi(r) && r != 0xFE0F || r == 0xFFFC || r == 0
	})
	var b strings.Builder
	b.Grow(len(raw))
	var prev rune
	invisible, bidi := false, false
	for i, r := range raw {
		switch {
		case r == '\r':
			if strings.HasPrefix(raw[i+1:], "\n") {
				continue
			}
			r = '\n'
		case r == 0x2028 || r == 0x2029 || r == 0x0B || r == 0x0C || r == 0x85:
			r = '\n'
		case r == 0xFFFC: // stands for an attachment
			r = ' '
		case isBidi(r):
			bidi = true
			continue
		case r == 0x200D || r == 0xFE0F || r == 0xFE0E:
			// Part of an emoji, or of a script that joins letters; between
			// other letters it hides something.
			if unicode.IsLetter(prev) && !joinsLetters(prev) {
				invisible = true
				continue
			}
		case r == 0x200C && joinsLetters(prev):
		case isInvisible(r), r < ' ' && r != '\n' && r != '\t', r == 0x7F:
			// A space around it is where phones leave one; inside a word it hides.
			next, _ := utf8.DecodeRuneInString(raw[i+utf8.RuneLen(r):])
			if (unicode.IsLetter(prev) || unicode.IsDigit(prev)) && (unicode.IsLetter(next) || unicode.IsDigit(next) || isInvisible(next)) || r >= 0xE0000 {
				invisible = true
			}
			continue
		}
		b.WriteRune(r)
		prev = r
	}
	if invisible {
		notes = append(notes, NoteInvisible)
	}
	if bidi {
		notes = append(notes, NoteBidi)
	}
	return strings.TrimSpace(b.String()), notes
}

// joinsLetters says whether the script of r uses joiners inside words.
func joinsLetters(r rune) bool {
	return r >= 0x0900 && r <= 0x0DFF || unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Khmer, unicode.Myanmar)
}

func isBidi(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// isInvisible says whether r leaves no mark on a screen, spaces aside.
func isInvisible(r rune) bool {
	if r < 0xAD {
		return false
	}
	switch {
	case r == 0xAD, r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5,
		r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x2060 && r <= 0x2064,
		r >= 0x206A && r <= 0x206F, r == 0x3164, r >= 0xFE00 && r <= 0xFE0F, r == 0xFEFF, r == 0xFFA0,
		r >= 0xFFF0 && r <= 0xFFFB, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return isBidi(r)
}

func isQuoteMark(r rune) bool {
	switch r {
	case '"', '“', '”', '„', '‟', '«', '»', '「', '」', '『', '』', '＂', '‹', '›':
		return true
	}
	return false
}

// tapback recognises a reaction. The text before (and after) the quote must be
// one of the known forms and the quote must be all the rest: "Liked “a” better,
// go" and "Liked it, go ahead" are what somebody typed.
func (l *lexicon) tapback(s, folded string) (t Tapback, removed, ok bool) {
	if strings.ContainsRune(s, '\n') && !strings.ContainsFunc(s, isQuoteMark) {
		return t, false, false
	}
	before, quote, after, quoted := cutQuote(s)
	if !quoted {
		return l.imageTapback(s, folded)
	}
	b, bEmoji := emojiForm(before)
	a, aEmoji := emojiForm(after)
	for _, f := range l.tapbacks {
		if f.before == b && f.after == a {
			k := f.kind
			if k == TapbackOther {
				k = tapbackOfEmoji(bEmoji + aEmoji)
			}
			return Tapback{Kind: k, Quote: quote}, f.removed, true
		}
	}
	return t, false, false
}

// cutQuote takes out what stands between the first and the last quote mark.
// Text may stand after the quote only without another word of a sentence: the
// caller compares it with known endings.
func cutQuote(s string) (before, quote, after string, ok bool) {
	i := strings.IndexFunc(s, isQuoteMark)
	if i < 0 {
		return "", "", "", false
	}
	j := strings.LastIndexFunc(s, isQuoteMark)
	_, n := utf8.DecodeRuneInString(s[i:])
	if j == i { // the closing mark was cut off with the text
		return s[:i], strings.TrimSpace(s[i+n:]), "", true
	}
	_, m := utf8.DecodeRuneInString(s[j:])
	return s[:i], strings.TrimSpace(s[i+n : j]), strings.TrimRight(s[j+m:], " ."), true
}

// emojiForm folds the words around a quote and puts {} for the emoji in them.
func emojiForm(s string) (form, emoji string) {
	if len(s) > 80 {
		return "\x00", ""
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case isEmojiMark(r) || isInvisible(r):
		case r >= 0x2190 && r <= 0x2BFF || r >= 0x1F000 && r <= 0x1FAFF:
			if emoji == "" {
				b.WriteString(" {} ")
			}
			emoji += string(r)
		case isQuoteMark(r) || r == ':':
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return foldSpaces(fold(b.String())), emoji
}

func tapbackOfEmoji(e string) TapbackKind {
	r, _ := utf8.DecodeRuneInString(e)
	switch r {
	case '👍', '👌', '✅':
		return TapbackLike
	case '❤', '♥', '😍', '🥰', '💙', '💚', '💛', '🧡', '💜', '🖤', '🤍':
		return TapbackLove
	case '👎', '❌':
		return TapbackDislike
	case '😂', '🤣', '😆':
		return TapbackLaugh
	case '‼', '❗':
		return TapbackEmphasize
	case '❓', '❔':
		return TapbackQuestion
	}
	return TapbackOther
}

// imageTapback recognises reactions that name no text: "Liked an image".
func (l *lexicon) imageTapback(s, folded string) (Tapback, bool, bool) {
	if len(s) > 80 {
		return Tapback{}, false, false
	}
	f := strings.TrimRight(folded, " .")
	for _, thing := range imageWords {
		rest, ok := strings.CutSuffix(f, thing)
		if !ok {
			continue
		}
		form, emoji := emojiForm(rest)
		for _, t := range l.tapbacks {
			if t.after == "" && t.before == form {
				k := t.kind
				if k == TapbackOther {
					k = tapbackOfEmoji(emoji)
				}
				return Tapback{Kind: k}, t.removed, true
			}
		}
	}
	return Tapback{}, false, false
}

// imageWords are what phones call a message without text, folded, as they stand behind a word.
var imageWords = []string{
	" an image", " a photo", " a picture", " a video", " a movie", " an attachment", " a message", " an audio message",
	" a voice message", " a sticker", " a gif", " a link", " a location", " a contact", " a file", " images", " photos",
	" una imagen", " una foto", " un video", " un mensaje", " un archivo adjunto", " une image", " une photo", " une video",
	" un message", " une piece jointe", " ein bild", " ein foto", " ein video", " eine nachricht", " einen anhang",
	" uma imagem", " uma foto", " um video", " uma mensagem", " um anexo", " unimmagine", " un immagine", " un messaggio",
	" un allegato", " een afbeelding", " een foto", " een bericht", " een bijlage", " 一张图片", " 图片", " 画像", " 写真",
}

// autoReplyBytes is how much of a text is searched for the words of a machine:
// they come first, and a longer text confirms nothing anyhow.
const autoReplyBytes = 512

func (l *lexicon) autoReply(folded string) bool {
	for _, a := range l.autoReplies {
		if strings.Contains(folded, a) {
			return true
		}
	}
	return false
}

// Keyword is a word that carriers act on by themselves.
type Keyword uint8

const (
	// KeywordNone is an ordinary text.
	KeywordNone Keyword = iota
	// KeywordStop opts out: STOP, STOPALL, UNSUBSCRIBE, CANCEL, END, QUIT, REVOKE, OPTOUT.
	KeywordStop
	// KeywordStart opts in again: START, UNSTOP. YES does so too, but only for
	// somebody who is opted out; see [OptsIn].
	KeywordStart
	// KeywordHelp asks who this is: HELP, INFO.
	KeywordHelp
)

// KeywordOf recognises a carrier keyword: the word alone, in any case, with
// nothing around it but spaces, invisible characters and a final . or !.
func KeywordOf(w Words) Keyword {
	switch keywordText(w.raw) {
	case "STOP", "STOPALL", "STOP ALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT", "OPT-OUT", "OPT OUT":
		return KeywordStop
	case "START", "UNSTOP":
		return KeywordStart
	case "HELP", "INFO":
		return KeywordHelp
	}
	return KeywordNone
}

// OptsIn says whether the text brings back somebody who is opted out: START,
// UNSTOP or YES. For everybody else they are ordinary replies.
func OptsIn(w Words) bool {
	return KeywordOf(w) == KeywordStart || keywordText(w.raw) == "YES"
}

func keywordText(raw string) string {
	if len(raw) > 64 {
		return ""
	}
	s := strings.Map(func(r rune) rune {
		if isInvisible(r) || r == 0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(raw, ""))
	return strings.ToUpper(strings.Trim(s, " \t\r\n.!\"'“”"))
}

// FromButton gives the words of a tapped button. A payload of ours ("confirm",
// "yes", "decline", "no") becomes the word that it stands for, so that the same
// reader and guards decide; any other payload counts as the text on the button.
func FromButton(payload, text string) Words {
	switch strings.ToLower(strings.TrimSpace(payload)) {
	case "yes", "confirm", "approve":
		return NewWords("yes")
	case "no", "decline", "deny":
		return NewWords("no")
	}
	return NewWords(text)
}
