package said

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/classifier"
)

// Unquoted is what is left of a text.
type Unquoted struct {
	Words string `json:"words"` // the person's own; empty where nothing is surely theirs
	Form  string `json:"form"`  // what the text was taken for, as classifier.Form says it
	Cut   bool   `json:"cut"`   // the text was longer than MaxTextBytes
	// Removed names what was taken out, without its words; nil for nothing.
	Removed []string `json:"removed,omitempty"`
}

// What Removed can hold besides the notes of classifier.Prepared.
const (
	removedFence      = "fenced-block"
	removedCode       = "code-span"
	removedIntroduced = "introduced-paste"
	removedReported   = "reported-speech"
	removedTranscript = "transcript"
	removedLongQuote  = "long-quote"
	removedLetter     = "letter"
	removedWrapped    = "wrapped-quote"
	removedHidden     = "hidden-characters"
	removedBelowSign  = "below-signature"
)

// Unquote cuts a text to its first MaxTextBytes and takes out what the person
// pasted or quoted: what classifier.Prepare takes out (marked lines, reply and
// forward heads of mail programs in their languages, signatures, reactions,
// machine answers), and beyond it fenced blocks, pasted transcripts, whatever a
// line introduces as a paste, what somebody is reported to have said, and long
// quotations. Where the reader of replies keeps what is in doubt, since a word
// too many only makes an answer less clear, a permission goes the other way:
// taking text out can only take permissions out.
func Unquote(text string) Unquoted {
	u := Unquoted{}
	text, u.Cut = cut(text)
	text, wrapped := dropWrapped(text)
	text, fenced := dropFences(text)
	p := classifier.Prepare(classifier.NewWords(text))
	u.Form = p.Form.String()
	u.Removed = slices.Clone(p.Notes)
	mark := func(happened bool, what string) {
		if happened {
			u.Removed = append(u.Removed, what)
		}
	}
	mark(wrapped, removedWrapped)
	mark(fenced, removedFence)
	if p.Form != classifier.FormTyped { // mutant: said.form
		return u
	}
	for _, n := range p.Notes {
		switch n {
		case classifier.NoteInvisible, classifier.NoteBidi, classifier.NoteInvalidUTF8: // mutant: said.hidden
			mark(true, removedHidden)
			return u
		case classifier.NoteSignatureFirst: // mutant: said.signature-first
			mark(true, removedBelowSign)
			return u
		}
	}
	words := p.Own
	for _, step := range []struct {
		take func(string) (string, bool)
		what string
	}{
		{dropLetter, removedLetter},
		{dropLongQuotes, removedLongQuote},
		{dropTranscript, removedTranscript},
		{dropIntroduced, removedIntroduced},
		{dropPointedAt, removedIntroduced},
		{dropBelowColon, removedIntroduced},
		{dropReported, removedReported},
		{dropCode, removedCode},
	} {
		var took bool
		words, took = step.take(words)
		mark(took, step.what)
	}
	u.Words = strings.TrimSpace(words)
	return u
}

// cut keeps whole words only: half a name is another name.
func cut(text string) (string, bool) {
	if len(text) <= MaxTextBytes {
		return text, false
	}
	n := MaxTextBytes
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if r, _ := utf8.DecodeRuneInString(text[n:]); unicode.IsSpace(r) {
		return text[:n], true
	}
	i := strings.LastIndexFunc(text[:n], unicode.IsSpace)
	return text[:max(i, 0)], true // mutant: said.cut-word
}

// wrappedAt is the length from which mail programs wrap the lines of a quote.
const wrappedAt = 60

// dropWrapped takes out the rest of a quoted line that a mail program wrapped
// without repeating the mark.
func dropWrapped(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	kept := make([]string, 0, len(lines))
	took, open := false, false
	for _, line := range lines {
		t := strings.TrimSpace(line)
		quoted := strings.HasPrefix(t, ">") || strings.HasPrefix(t, "＞")
		if open && !quoted && t != "" && startsLower(t) {
			took = true
			open = len(t) >= wrappedAt
			continue
		}
		open = quoted && len(t) >= wrappedAt && !strings.ContainsAny(t[len(t)-1:], ".!?:")
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n"), took
}

func startsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

// dropFences takes out fenced blocks; one that is not closed goes to the end.
func dropFences(text string) (string, bool) {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text, false
	}
	var kept []string
	took, fence := false, ""
	for _, line := range strings.Split(text, "\n") {
		t := strings.TrimSpace(line)
		switch {
		case fence != "":
			if i := strings.Index(t, fence); i >= 0 {
				kept = append(kept, t[i+len(fence):])
				fence = ""
			}
		case strings.Contains(t, "```") || strings.Contains(t, "~~~"):
			i := strings.Index(t, "```")
			if i < 0 {
				i = strings.Index(t, "~~~")
			}
			fence, took = t[i:i+3], true
			kept = append(kept, t[:i])
			if j := strings.Index(t[i+3:], fence); j >= 0 {
				kept[len(kept)-1] += " " + t[i+3+j+3:]
				fence = ""
			}
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n"), took
}

var codeSpan = regexp.MustCompile("`[^`]*`?")

func dropCode(text string) (string, bool) {
	out := codeSpan.ReplaceAllString(text, " ")
	return out, out != text
}

// maxShortQuote is the longest quotation that stays, in letters and spaces: the
// person's own words for what to send.
const maxShortQuote = 80

var quoteMarks = []struct{ open, end string }{{"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}, {"『", "』"}, {`"`, `"`}}

// dropLongQuotes takes out quotations of more than maxShortQuote characters; one
// that is not closed goes to the end of the text.
func dropLongQuotes(text string) (string, bool) {
	took := false
	for _, m := range quoteMarks {
		var b strings.Builder
		rest := text
		for {
			i := strings.Index(rest, m.open)
			if i < 0 {
				break
			}
			inside := rest[i+len(m.open):]
			j := strings.Index(inside, m.end)
			after := ""
			if j >= 0 {
				after = inside[j+len(m.end):]
				inside = inside[:j]
			}
			if utf8.RuneCountInString(inside) > maxShortQuote { // mutant: said.long-quote
				b.WriteString(rest[:i] + " ")
				took = true
			} else if j >= 0 {
				b.WriteString(rest[:i] + m.open + inside + m.end)
			} else {
				b.WriteString(rest[:i] + m.open + inside)
			}
			rest = after
		}
		b.WriteString(rest)
		text = b.String()
	}
	return text, took
}

var (
	// speakerLine is a line of a copied chat: "[10:02] Priya: …", "Priya Shah, 10:02: …", "Priya: …".
	timedSpeaker = regexp.MustCompile(`^\s*(?:[\[(]?\d{1,4}[:./-]\d{1,2}[^\]):]{0,20}(?::\d{2})?(?:\s?[APap][Mm])?[\])]?\s*[-–]?\s*\p{L}[\p{L} .'’]{0,40}:|\p{L}[\p{L} .'’]{0,40}[,(\[ ]+\d{1,2}:\d{2}[^:]{0,6}[)\]]?\s*:)\s`)
	plainSpeaker = regexp.MustCompile(`^\s*(?:<[^>\n]{1,40}>|\p{Lu}[\p{L}.'’]{0,20}(?: \p{Lu}[\p{L}.'’]{0,20})?:)\s+\S`)
	notSpeaker   = regexp.MustCompile(`(?i)^\s*(?:to|subject|todo|note|ps|p\.s\.|re|fyi|task|tasks|first|second|third|also|then|next|reminder|urgent|important|update|question|please|today|tomorrow|morning|evening|monday|tuesday|wednesday|thursday|friday|saturday|sunday):`)
)

// dropTranscript takes out a copied chat from its first line on. One line with a
// name and a colon may be the person's own; two are a chat, one with a time too.
func dropTranscript(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	first, speakers := -1, 0
	for i, line := range lines {
		timed := timedSpeaker.MatchString(line)
		if !timed && (!plainSpeaker.MatchString(line) || notSpeaker.MatchString(line)) {
			continue
		}
		if first < 0 {
			first = i
		}
		if speakers++; timed {
			speakers++
		}
	}
	if speakers < 2 {
		return text, false
	}
	return strings.Join(lines[:first], "\n"), true
}

// introduction is a phrase after which something pasted follows.
var introduction = regexp.MustCompile(`(?i)(?:^|[.!?;,\n(–—-]\s*|\b(?:and|so|but|fyi|ok|hey)\s+)` +
	`(?:` +
	`(?:(?:here|this|that|below|following|attached)(?:['’]s| is| are| was)?|(?:i(?:['’]m| am)? )?(?:just )?(?:pasting|pasted|copying|copied|forwarding|quoting)|(?:i |we )?(?:just )?(?:got|received|found|saw))\b[^:\n]{0,60}` +
	`\b(?:e-?mails?|messages?|texts?|notes?|letters?|invoices?|replys?|replies|response|thread|chat|transcript|log|quote|posts?|tweets?|page|article|snippet|paste|instructions?|wording|content|contents|body|following|below|this|it|they sent|he sent|she sent|wrote|said|from [^:\n]{1,40})\s*:` +
	`|(?:see|from|copied|pasted|quoted|quoting) (?:below|above)\s*(?::|\n|$)` +
	`|(?:he|she|they|it|someone|somebody|the (?:email|e-mail|message|text|note|letter|page|site|invoice|memo|doc|document|post)) (?:just )?(?:wrote|said|says|reads?|sent(?: me)?(?: this)?|writes|replied|goes|emailed|texted|asks|asked)\s*(?:back|this|me|the following|verbatim)?\s*:` +
	`|(?:this|that|it) (?:was|is|came) (?:in|on|from|with) [^:\n]{1,40}:` +
	`|(?:the|their|its|a|an) (?:faq|help page|web ?site|site|page|e-?mail|mail|letter|notice|flyer|newsletter|text|message|sms|post|docs?|footer|banner|ad|spam)\s*:` +
	`|note to self\s*[:,–—-]` +
	`|(?:quote|verbatim|original|fwd|fw|message|email|text) ?:\s` +
	`)`)

// dropIntroduced takes out everything from a phrase on that introduces a paste.
func dropIntroduced(text string) (string, bool) {
	if m := introduction.FindStringIndex(text); m != nil {
		from := m[0]
		if from > 0 || strings.ContainsAny(text[:1], ".!?;,\n(") { // keep the mark that ends the person's own sentence
			_, n := utf8.DecodeRuneInString(text[from:])
			if r, _ := utf8.DecodeRuneInString(text[from:]); !unicode.IsLetter(r) {
				from += n
			}
		}
		return text[:from], true
	}
	return text, false
}

// salutation is a line that greets somebody by name and does nothing else.
var salutation = regexp.MustCompile(`^\s*(?:(?i:dear)\s+\S.{0,60}|(?i:hi|hello|hey|good (?:morning|afternoon|evening))\s+\p{Lu}[\p{L}.'’ -]{0,40})[,:!.]?\s*$`)

// dropLetter takes out everything from a line on that greets somebody by name: it
// was written to them, and pasted.
func dropLetter(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i+1 < len(lines) && salutation.MatchString(line) && strings.TrimSpace(strings.Join(lines[i+1:], "")) != "" {
			return strings.Join(lines[:i], "\n"), true
		}
	}
	return text, false
}

// dropBelowColon takes out the lines below one that ends in a colon, unless they
// are a list: "Forward this to Dana:" is followed by what is forwarded, not by
// another ask.
func dropBelowColon(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		t := strings.TrimRight(line, " \t")
		if !strings.HasSuffix(t, ":") && !strings.HasSuffix(t, "：") {
			continue
		}
		next := ""
		for _, l := range lines[i+1:] {
			if next = strings.TrimSpace(l); next != "" {
				break
			}
		}
		words := strings.Fields(strings.ToLower(strings.Trim(t, ":： ")))
		if next == "" || listItem.MatchString(next) || len(words) > 0 && introduces[words[len(words)-1]] || doThese.MatchString(t) {
			continue
		}
		return strings.Join(lines[:i+1], "\n"), true
	}
	return text, false
}

// pointer is a line that points at what follows it.
var pointer = regexp.MustCompile(`(?i)^\s*(?:fyi\b.*|(?:.*\b)?(?:below|as follows|the following)\b.*|(?:(?:please|pls|hey|lol|omg|haha)[,!]? )*(?:see|look at|look|check out|check|read|get a load of|guess)\s+(?:this|that|what)\b.*|.*\bwhat (?:\S+ ){1,3}(?:wrote|said|sent|texted|says|writes|posted)(?: (?:me|us|back))?|(?:i |we |just |i just )*(?:got|received|found|saw) (?:this|that)\b.*|from (?:the|my|our|their) [^.!?]{1,40})[.!?…]*\s*$`)

// dropPointedAt takes out the lines below one that points at them.
func dropPointedAt(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		rest := strings.TrimSpace(strings.Join(lines[i+1:], "\n"))
		if rest != "" && !listItem.MatchString(rest) && pointer.MatchString(line) {
			return strings.Join(lines[:i+1], "\n"), true
		}
	}
	return text, false
}

// doThese announces the person's own list.
var doThese = regexp.MustCompile(`(?i)^(?:(?:please|pls|can you|could you|hey|ok|also)[, ]+)*(?:do|handle|take care of)\b[^:]{0,40}:$`)

var listItem = regexp.MustCompile(`^(?:[-*•–]|\d{1,2}[.)])\s`)

// reported is "Dana said:", "my boss wrote, "…"", at the head of a clause; "as
// Dana wrote:" is a comparison.
var reported = regexp.MustCompile(`(?i)(^|[.!?;,\n(–—-][ \t]*|\b(?:and|but|so|because|then)[ \t]+)((?:(?:(?:dr|mr|mrs|ms|st)\.|[\p{L}'’-]+)[ \t]+){1,4}?)(said|says|wrote|writes|texted|replied|asked|asks|told me|told us|emailed|messaged|posted|goes|was like)(?:[ \t]+(?:back|me|us|this))?[ \t]*(?::|,?[ \t]*["“«„])[^\n]*`)

var comparison = regexp.MustCompile(`(?i)\b(?:like|as|what|how|the way|whatever)\b`)

// dropReported takes out what somebody is reported to have said, with its
// announcement, to the end of the line.
func dropReported(text string) (string, bool) {
	took := false
	out := reported.ReplaceAllStringFunc(text, func(s string) string {
		m := reported.FindStringSubmatch(s)
		if comparison.MatchString(m[2]) {
			return s
		}
		took = true
		return m[1]
	})
	return out, took
}
