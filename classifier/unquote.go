package classifier

import (
	"strings"
	"unicode"
)

// unquote takes out what the person did not write: lines marked with ">",
// everything from a mail header, an "On … wrote:" line or a forward mark on,
// signatures and the lines of mail programs. When in doubt it keeps. Folded is
// the text as [foldLine] makes it.
func (l *lexicon) unquote(s, folded string) (own string, notes []string) {
	if !strings.ContainsAny(s, "\n>") && !strings.HasPrefix(s, "--") && !l.looksLikeMail(s, folded) {
		return s, nil
	}
	in := strings.Split(s, "\n")
	var kept []string
	segments, inQuote, seenQuote := 0, false, false
	cut := false
	signatureFirst, quoteAbove := false, false
	for i := 0; i < len(in); i++ {
		line := strings.TrimSpace(in[i])
		if strings.HasPrefix(line, ">") || strings.HasPrefix(line, "＞") {
			inQuote, seenQuote = true, true
			continue
		}
		folded := foldLine(line)
		if line != "" && (isForwardMark(line, folded) || isOnWrote(in, i) || l.isHeaderBlock(in, i)) {
			cut = true
			break
		}
		if isSignatureMark(in[i]) {
			if len(nonBlank(kept)) > 0 {
				cut = true
				break
			}
			signatureFirst = true
			continue
		}
		if l.isSignature(line, folded) {
			cut = true
			continue
		}
		if line != "" && inQuote && segments == 0 {
			quoteAbove = true
		}
		if line != "" && (inQuote || segments == 0) {
			segments++
			inQuote = false
		}
		kept = append(kept, in[i])
	}
	if seenQuote || cut {
		notes = append(notes, NoteUnquoted)
	}
	if seenQuote && segments > 1 {
		notes = append(notes, NoteInline)
	}
	if quoteAbove {
		notes = append(notes, NoteQuoteAbove)
	}
	if signatureFirst {
		notes = append(notes, NoteSignatureFirst)
	}
	return strings.TrimSpace(strings.Join(kept, "\n")), notes
}

func nonBlank(lines []string) []string {
	var out []string
	for _, s := range lines {
		if strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	return out
}

// looksLikeMail says whether a text of one line may hold something to cut.
func (l *lexicon) looksLikeMail(s, folded string) bool {
	return l.isSignature(s, folded) || isForwardMark(s, folded) || isOnWrote([]string{s}, 0)
}

// The longest line that a mail program writes as a signature, and above somebody else's message.
const (
	maxSignatureBytes   = 90
	maxForwardMarkBytes = 120
)

// foldLine is a line as the lists have it; empty for one that is too long for them.
func foldLine(line string) string {
	if len(line) > max(maxSignatureBytes, maxForwardMarkBytes) {
		return ""
	}
	return foldSpaces(fold(line))
}

// isSignatureMark is "-- " alone on its line, with or without its space.
func isSignatureMark(line string) bool {
	t := strings.TrimRight(line, " \t")
	return t == "--" || t == "—"
}

func (l *lexicon) isSignature(line, folded string) bool {
	if line == "" || len(line) > maxSignatureBytes {
		return false
	}
	f := strings.TrimLeft(folded, "-—_ ")
	for _, sig := range l.signatures {
		if strings.HasPrefix(f, sig) && (sig[len(sig)-1] >= 0x80 || len(f) == len(sig) || f[len(sig)] == ' ') {
			// "Sent from my account, yes" is a sentence: a signature has no
			// comma and few words.
			return !strings.ContainsAny(f, ",;!?") && len(strings.Fields(f)) <= 8
		}
	}
	return false
}

// forwardWords are what stands between dashes, or alone on a line, above a
// forwarded or earlier message; folded.
var forwardWords = []string{
	"forwarded message", "original message", "begin forwarded message", "forwarded by", "original appointment",
	"mensaje reenviado", "mensaje original", "inicio del mensaje reenviado",
	"message transfere", "message original", "message dorigine", "debut du message reexpedie", "debut du message transfere",
	"weitergeleitete nachricht", "ursprungliche nachricht", "originalnachricht", "anfang der weitergeleiteten nachricht", "urspr nachricht",
	"mensagem encaminhada", "mensagem original", "inicio da mensagem encaminhada",
	"messaggio inoltrato", "messaggio originale", "inizio messaggio inoltrato",
	"doorgestuurd bericht", "oorspronkelijk bericht", "begin doorgestuurd bericht", "origineel bericht",
	"videresendt besked", "oprindelig meddelelse", "vidarebefordrat meddelande", "ursprungligt meddelande", "videresendt melding", "opprinnelig melding",
	"przekazana wiadomosc", "wiadomosc oryginalna", "пересылаемое сообщение", "исходное сообщение", "forwardovana zprava", "puvodni zprava",
	"अग्रेषित संदेश", "मूल संदेश", "转发邮件", "转发的邮件", "原始邮件", "邮件原件", "轉寄郵件", "原始郵件", "轉寄訊息",
	"転送メッセージ", "転送されたメッセージ", "元のメッセージ", "以下は転送",
}

// isForwardMark recognises a line that opens somebody else's message.
func isForwardMark(line, folded string) bool {
	if len(line) > maxForwardMarkBytes {
		return false
	}
	dashes := strings.HasPrefix(line, "---") || strings.HasPrefix(line, "___") || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "***") || strings.HasPrefix(line, "———")
	f := foldSpaces(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '=' || r == '*' || r == '.' {
			return ' '
		}
		return r
	}, folded))
	if f == "" {
		// A rule of underscores or dashes divides; what is below is kept unless
		// it is a header block, which is seen there.
		return false
	}
	for _, w := range forwardWords {
		if rest, ok := strings.CutPrefix(f, w); ok && (dashes || rest == "" || rest == ":") {
			return true
		}
	}
	for _, fw := range [...]string{"fwd: ", "fw: "} {
		if strings.HasPrefix(f, fw) {
			return true
		}
	}
	return false
}

// wroteForms are how mail programs announce a quote: the line starts with the
// first and ends with the second; folded.
var wroteForms = [...][2]string{
	{"on ", "wrote:"}, {"el ", "escribio:"}, {"el ", "escribio :"}, {"le ", "a ecrit :"}, {"le ", "a ecrit:"},
	{"am ", "schrieb:"}, {"am ", "folgendes:"}, {"em ", "escreveu:"}, {"a ", "escreveu:"}, {"no dia ", "escreveu:"},
	{"il ", "ha scritto:"}, {"il giorno ", "ha scritto:"}, {"op ", "schreef:"}, {"op ", "het volgende geschreven:"},
	{"den ", "skrev:"}, {"den ", "skrev"}, {"w dniu ", "napisal:"}, {"w dniu ", "napisala:"}, {"dne ", "napsal:"},
	{"on ", "kirjoitti:"}, {"", "написал:"}, {"", "пишет:"}, {"", "ने लिखा:"}, {"在", "写道:"}, {"于", "写道:"}, {"", "写道:"}, {"", "寫道:"},
	{"", "のメール:"}, {"", "書きました:"}, {"", "yazdi:"},
}

// wroteNameForms are those in which the name comes last: "Am 4. März schrieb Bot:".
var wroteNameForms = [...][2]string{{"am ", " schrieb "}, {"op ", " schreef "}, {"den ", " skrev "}}

// isOnWrote recognises "On Tue, 4 Mar 2025, Bot wrote:", which programs wrap
// over up to three lines. It must start a line, end one, hold a digit (a date)
// and have no blank line inside: "On Friday like Ana wrote: short" is a sentence.
func isOnWrote(in []string, i int) bool {
	length := 0
	for k := 0; k < 3 && i+k < len(in); k++ {
		line := strings.TrimSpace(in[i+k])
		if line == "" || length+len(line) > 300 {
			return false
		}
		length += 1 + len(line)
		if !strings.HasSuffix(line, ":") && !strings.HasSuffix(line, "：") && !strings.HasSuffix(line, "skrev") {
			continue
		}
		f := foldSpaces(fold(strings.Join(in[i:i+k+1], " ")))
		if !strings.ContainsFunc(f, unicode.IsDigit) && !strings.Contains(f, "@") {
			return false
		}
		for _, w := range wroteForms {
			if w[0] == "" && k > 0 {
				continue // without an opening word only its own line can be it
			}
			if strings.HasPrefix(f, w[0]) && strings.HasSuffix(f, w[1]) {
				return true
			}
		}
		for _, w := range wroteNameForms {
			if strings.HasPrefix(f, w[0]) && strings.Contains(f, w[1]) {
				return true
			}
		}
		return false
	}
	return false
}

// isHeaderBlock recognises the head of a quoted mail: a From line, and within
// the next five lines two of Sent, To and Subject, in one language.
func (l *lexicon) isHeaderBlock(in []string, i int) bool {
	name, ok := headerName(in[i])
	if !ok {
		return false
	}
	for _, h := range l.headers {
		if !oneOf(name, h[0]) {
			continue
		}
		var seen [4]bool
		for k := i + 1; k < len(in) && k <= i+5; k++ {
			n, ok := headerName(in[k])
			if !ok {
				continue
			}
			for role := 1; role < 4; role++ {
				if oneOf(n, h[role]) {
					seen[role] = true
				}
			}
		}
		n := 0
		for _, s := range seen {
			if s {
				n++
			}
		}
		if n >= 2 || n == 1 && strings.ContainsRune(in[i], '@') {
			return true
		}
	}
	return false
}

func headerName(line string) (string, bool) {
	line = strings.Trim(line, " *_\t")
	if len(line) > 300 {
		return "", false
	}
	j := strings.IndexAny(line, ":：")
	if j <= 0 || j > 40 {
		return "", false
	}
	return foldSpaces(fold(strings.Trim(line[:j], " *_"))), true
}

func oneOf(s string, list []string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
