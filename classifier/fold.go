package classifier

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// fold brings a text to the form that the lexicon is compared in: lower case,
// full-width forms narrowed, Latin accents and Devanagari nuktas dropped,
// apostrophes inside words dropped ("that's" is "thats"), every dash a hyphen.
// Line breaks stay.
func fold(s string) string {
	if isPlainASCII(s) {
		return foldASCII(s)
	}
	if strings.ContainsFunc(s, hasWidth) {
		s = width.Fold.String(s)
	}
	s = norm.NFD.String(s)
	var b strings.Builder
	b.Grow(len(s))
	latin := false // whether the base of a combining mark is Latin
	prevWord := false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r >= 0x0300 && r <= 0x036F:
			if !latin {
				b.WriteRune(r)
			}
			continue
		case r == 0x093C: // nukta
			continue
		case isApostrophe(r):
			next, _ := utf8.DecodeRuneInString(s[i:])
			if !prevWord || !unicode.IsLetter(next) {
				b.WriteByte(' ')
				prevWord = false
			}
			continue
		case r == 'ß':
			b.WriteString("ss")
			continue
		case r == 'æ' || r == 'Æ':
			b.WriteString("ae")
			continue
		case r == 'œ' || r == 'Œ':
			b.WriteString("oe")
			continue
		case r == 'ø' || r == 'Ø':
			b.WriteByte('o')
			continue
		case r == 'ł' || r == 'Ł':
			b.WriteByte('l')
			continue
		case r == 'ı':
			b.WriteByte('i')
			continue
		case unicode.Is(unicode.Pd, r):
			r = '-'
		}
		latin = unicode.Is(unicode.Latin, r)
		prevWord = unicode.IsLetter(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return norm.NFC.String(b.String())
}

// hasWidth says whether r may be a full-width or half-width form of another.
func hasWidth(r rune) bool { return r == 0x3000 || r >= 0xFF00 && r <= 0xFFEF }

func isApostrophe(r rune) bool {
	switch r {
	case '\'', '’', '‘', 'ʼ', '`', '´', '＇', '′':
		return true
	}
	return false
}

func isPlainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func foldASCII(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == '\'' || r == '`' || 'A' <= r && r <= 'Z' }) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c == '\'' || c == '`' {
			if i > 0 && i+1 < len(s) && isASCIILetter(s[i-1]) && isASCIILetter(s[i+1]) {
				continue
			}
			c = ' '
		}
		b.WriteByte(c)
	}
	return b.String()
}

func isLetterOrMark(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIILetter(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsMark(r)
}

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// tokenKind is what a token is made of.
type tokenKind uint8

const (
	wordToken tokenKind = iota
	numberToken
	symbolToken // an emoji or a sign that is no harmless punctuation
)

// token is one word, number or symbol of a folded text.
type token struct {
	text    string
	kind    tokenKind
	start   bool // first of a sentence
	comma   bool // a comma, colon or dash stands before it
	fixed   bool // stretched letters or a typo were mended
	ordinal bool // a number with its ordinal ending
}

// maxTokens bounds every later step. A yes has no need of more; see guardOverLong.
const maxTokens = 64

// tokenize splits a folded text. It appends to dst and stops after limit
// tokens; more says whether something was left.
func tokenize(dst []token, s string, limit int, cjk *cjkSet) (toks []token, more bool) {
	start, comma := true, false
	emit := func(t token) bool {
		if len(dst) >= limit {
			more = true
			return false
		}
		t.start, t.comma = start, comma
		start, comma = false, false
		dst = append(dst, t)
		return true
	}
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == ' ':
			i++
		case r == '\n' || r == '.' || r == '!' || r == '?' || r == ';' || r == '。' || r == '！' || r == '？' || r == '¡' || r == '¿' || r == '।' || r == '…' || r == '｡':
			// "e.g. 3.5" never gets here: numbers take their own points.
			start = true
			i += n
		case isSmiley(s, i) > 0:
			k := isSmiley(s, i)
			t := token{text: "🙂", kind: symbolToken}
			if c := s[i+k-1]; c == '(' || c == '/' || c == '|' {
				t.text = "😕"
			}
			if !emit(t) {
				return dst, true
			}
			i += k
		case r == ',' || r == ':' || r == '-' || r == '、' || r == '，' || r == '：' || r == '(' || r == ')' || r == '"' || r == '“' || r == '”' || r == '„' || r == '«' || r == '»' || r == '「' || r == '」' || r == '*' || r == '_' || r == '~' || r == '/' || r == '·' || r == '\'' || r == '’' || r == '‘':
			comma = true
			i += n
		case r == '&':
			if !emit(token{text: "and"}) {
				return dst, true
			}
			i += n
		case isCJK(r):
			j := i
			for j < len(s) {
				q, m := utf8.DecodeRuneInString(s[j:])
				if !isCJK(q) {
					break
				}
				j += m
			}
			for i < j {
				k := cjk.longest(s[i:j])
				if !emit(token{text: s[i : i+k]}) {
					return dst, true
				}
				i += k
			}
		case r >= '0' && r <= '9':
			j := i + 1
			for j < len(s) && (isDigit(s[j]) || (s[j] == '.' || s[j] == ',') && j+1 < len(s) && isDigit(s[j+1])) {
				j++
			}
			t := token{text: canonicalNumber(s[i:j]), kind: numberToken}
			for _, end := range [...]string{"st", "nd", "rd", "th"} {
				if strings.HasPrefix(s[j:], end) && (j+2 == len(s) || !isASCIILetter(s[j+2])) {
					t.ordinal = true
					j += 2
					break
				}
			}
			if !emit(t) {
				return dst, true
			}
			if j+2 < len(s) && s[j] == 'h' && isDigit(s[j+1]) && isDigit(s[j+2]) && (j+3 == len(s) || !isDigit(s[j+3]) && !isASCIILetter(s[j+3])) {
				comma = true // "17h30" is 17:30
				j++
			}
			i = j
		case isLetterOrMark(r):
			j := i + n
			for j < len(s) {
				q, m := rune(s[j]), 1
				if q >= utf8.RuneSelf {
					q, m = utf8.DecodeRuneInString(s[j:])
				}
				if !isLetterOrMark(q) || isCJK(q) || isEmojiMark(q) {
					break
				}
				j += m
			}
			if isEmojiMark(r) && j == i+n {
				i = j
				continue
			}
			if !emit(token{text: s[i:j]}) {
				return dst, true
			}
			i = j
		case unicode.IsSpace(r) || isCurrency(r) || isEmojiMark(r) || isInvisible(r) || unicode.IsControl(r):
			i += n
		default:
			if !emit(token{text: s[i : i+n], kind: symbolToken}) {
				return dst, true
			}
			i += n
		}
	}
	return dst, more
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isSmiley gives the length of a typed smiley that starts at i, or 0.
func isSmiley(s string, i int) int {
	c := s[i]
	if c == '<' && i+1 < len(s) && s[i+1] == '3' {
		return 2
	}
	if c != ':' && c != ';' && c != '=' {
		return 0
	}
	j := i + 1
	if j < len(s) && s[j] == '-' {
		j++
	}
	if j >= len(s) {
		return 0
	}
	switch s[j] {
	case ')', '(', ']', '|':
		return j + 1 - i
	case 'd', 'p', '/':
		if j+1 == len(s) || !isASCIILetter(s[j+1]) && !isDigit(s[j+1]) && s[j+1] != '/' {
			return j + 1 - i
		}
	}
	return 0
}

// isEmojiMark says that r only changes how the emoji before it looks:
// variation selector, skin tone, joiner, gender sign.
func isEmojiMark(r rune) bool {
	return r == 0xFE0F || r == 0xFE0E || r >= 0x1F3FB && r <= 0x1F3FF || r == 0x200D || r == '♀' || r == '♂'
}

func isCurrency(r rune) bool {
	switch r {
	case '$', '€', '£', '¥', '₹':
		return true
	}
	return false
}

func isCJK(r rune) bool {
	return r >= 0x3040 && r <= 0x30FF || r >= 0x3400 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF || r >= 0x31F0 && r <= 0x31FF || r == '々'
}

// canonicalNumber makes 1,150 and 1150.00 and 01150 the same text. A comma
// before exactly two last digits is a decimal one.
func canonicalNumber(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			plain = false
		}
	}
	if !plain {
		b := []byte(s)
		out := b[:0]
		last := strings.LastIndexAny(s, ".,")
		for i, c := range b {
			switch {
			case isDigit(c):
				out = append(out, c)
			case i == last && (c == '.' && len(s)-i != 4 || c == '.' && strings.Count(s, ".") == 1 || len(s)-i == 3):
				out = append(out, '.')
			}
		}
		s = string(out)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
	}
	for len(s) > 1 && s[0] == '0' && isDigit(s[1]) {
		s = s[1:]
	}
	return s
}

// cjkSet finds words in text that is written without spaces.
type cjkSet struct {
	open map[string]bool // while the lexicon is built
	file *dictionary
	max  int // bytes
}

func (c *cjkSet) add(w string) {
	c.open[w] = true
	c.max = max(c.max, len(w))
}

func (c *cjkSet) has(w string) bool {
	if c.open != nil {
		return c.open[w]
	}
	r := c.file.record(w)
	return r != 0 && le16(c.file.file, r+recordIn)&isWordCJK != 0
}

// longest gives the length in bytes of the longest known word at the start of
// s, or of its first character.
func (c *cjkSet) longest(s string) int {
	if c != nil {
		for k := min(len(s), c.max); k > 0; k-- {
			if k < len(s) && !utf8.RuneStart(s[k]) {
				continue
			}
			if c.has(s[:k]) {
				return k
			}
		}
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}
