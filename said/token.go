package said

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// token is a piece of a text: a word, an address, a number with its sign, or
// one mark of punctuation.
type token struct {
	text       string // as written
	fold       string // NFKC, lower case
	start, end int    // bytes in the text
	sentence   int    // which sentence it is of, from 0
	line       int
}

var tokenForm = regexp.MustCompile(strings.Join([]string{
	`(?:sms:|whatsapp:|sim:)[A-Za-z0-9+_-]+`,
	`[\p{L}\p{N}._%+'=-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`, // mail address
	`https?://[^\s<>"]+`,
	`\+[0-9][0-9 ().-]{5,20}[0-9]`,                          // phone number
	`[@#][\p{L}\p{N}][\p{L}\p{N}_-]*(?:\.[\p{L}\p{N}_-]+)*`, // handle, channel
	`[$€£¥₹]`,
	`[0-9]+(?:,[0-9]{3})+(?:\.[0-9]+)?`,
	`[0-9]{1,2}:[0-9]{2}`,
	`[0-9]+(?:[.,][0-9]+)?`,
	`['’]s\b`,
	`\p{L}[\p{L}\p{M}\p{N}]*(?:['’-][\p{L}\p{M}\p{N}]+)*`,
	`\n`,
	`[^\s]`,
}, "|"))

var possessive = regexp.MustCompile(`['’](?:s|S)$`)

// tokenise splits a text. Spaces go; a line break stays as a token of its own.
func tokenise(s string) []token {
	var all []token
	sentence, line := 0, 0
	add := func(from, to int) {
		text := s[from:to]
		all = append(all, token{text: text, fold: foldWord(text), start: from, end: to, sentence: sentence, line: line})
	}
	spans := tokenForm.FindAllStringIndex(s, -1)
	for i, m := range spans {
		text := s[m[0]:m[1]]
		if text == "\n" {
			add(m[0], m[1])
			sentence++
			line++
			continue
		}
		if p := possessive.FindStringIndex(text); p != nil && p[0] > 0 && !contraction(foldWord(text)) {
			add(m[0], m[0]+p[0])
			add(m[0]+p[0], m[1])
		} else {
			add(m[0], m[1])
		}
		if endsSentence(s, all, text, m[1], i+1 < len(spans)) {
			sentence++
		}
	}
	return all
}

// foldWord is the form in which words are compared.
func foldWord(s string) string {
	return strings.ReplaceAll(strings.ToLower(norm.NFKC.String(s)), "’", "'")
}

// contraction: its 's is a verb, not an owner.
func contraction(w string) bool {
	switch w {
	case "it's", "that's", "what's", "who's", "here's", "there's", "let's", "he's", "she's", "where's", "how's", "when's", "everything's":
		return true
	}
	return false
}

// abbreviations whose dot ends no sentence.
func abbreviation(w string) bool {
	switch w {
	case "dr", "mr", "mrs", "ms", "st", "prof", "jr", "sr", "vs", "approx", "inc", "ltd", "co", "no", "a.m", "p.m", "e.g", "i.e", "etc":
		return true
	}
	return false
}

func endsSentence(s string, all []token, text string, end int, more bool) bool {
	if !more {
		return false
	}
	switch text {
	case "!", "?", ";", "…", "。", "！", "？":
		return true
	case ".":
		next := rune(0)
		for _, r := range s[end:] {
			next = r
			break
		}
		if !unicode.IsSpace(next) {
			return false
		}
		return len(all) < 2 || !abbreviation(all[len(all)-2].fold)
	}
	return false
}

// isWord: a word, an address or a number, no punctuation and no owner's 's.
func (t token) isWord() bool {
	if t.fold == "'s" {
		return false
	}
	return strings.ContainsFunc(t.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// isAddress: something that gate.CanonicalAddress may know.
func (t token) isAddress() bool {
	return strings.ContainsAny(t.text, "@#:+") && len(t.text) > 1 && sayableAddress(t.text) != ""
}

func (t token) capital() bool {
	for _, r := range t.text {
		return unicode.IsUpper(r)
	}
	return false
}

func isArticle(w string) bool { return w == "the" || w == "a" || w == "an" }
