package offers

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Piece is a stretch of a value as it is shown: as it is, or spelled out by code.
type Piece struct {
	Text    string
	Spelled bool
}

// Spell shows a value on one line for its owner's eyes: nothing in it can hide, reorder or break what stands around it.
func Spell(s string) string { return plainText(spell(s, oneLine)) }

func plainText(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// mode says where a value is shown.
type mode uint8

const (
	oneLine   mode = iota // behind its prefix, on one line
	body                  // may have lines of its own
	asciiOnly             // an address or a name: nothing but ASCII stays as it is
	speech                // an agent's own text: like body, and words in brackets are its own
)

// What is shown as it is; more in a row could push words out of sight, or into the lines around.
const (
	maxSpaces   = 3
	maxNewlines = 3
	maxMarks    = 3 // accents on one letter
)

// spell shows a value so that what is seen is what is there. It spells out, as <U+202E> or <U+0020 x24>, whatever would
// not be seen or would change how the rest is seen: control and format characters (bidi, zero-width), everything that a
// screen may ignore, separators, padding, blank and unassigned characters, marks that strike through, stack up or stand
// alone; the parts of a text that is not in normal form C, where two spellings look alike; and letters of a script that
// has Latin look-alikes in a word with Latin ones. Its own notation is spelled out too, and so is a bracket in front of
// a word, since words in brackets are code's: what is shown reads back as exactly one value.
func spell(s string, how mode) []Piece {
	rs := []rune(s)
	odd := foreign(rs)
	composed := norm.NFC.IsNormalString(s)
	var out []Piece
	var piece strings.Builder
	spelled := false // the piece that is being written
	end := func() {
		if piece.Len() > 0 {
			out = append(out, Piece{piece.String(), spelled})
			piece.Reset()
		}
	}
	add := func(text string, how bool) {
		if how != spelled {
			end()
			spelled = how
		}
		piece.WriteString(text)
	}
	marks := 0
	for i := 0; i < len(rs); {
		r := rs[i]
		n, keep := 1, 0
		switch {
		case r == ' ':
			n = run(rs[i:])
			if i > 0 && i+n < len(rs) { // mutant: show-edge-space
				keep = min(n, maxSpaces)
			}
		case r == '\n' && (how == body || how == speech):
			n = run(rs[i:])
			keep = min(n, maxNewlines)
		default:
			hidden := unseen(rs, i) || // mutant: show-unseen
				odd[i] || how == asciiOnly && r > unicode.MaxASCII || // mutant: show-exact
				!composed && unstable(r) || // mutant: show-composed
				unicode.Is(unicode.M, r) && (marks >= maxMarks || !carries(rs, i) || spelled) // mutant: show-marks
			if !hidden && !(r == '<' && notation(rs[i:])) && !(r == '(' && i == 0 && how != speech && len(rs) > 1 && unicode.IsLetter(rs[1])) { // mutant: show-notation
				keep = 1
				break
			}
			if r != '<' && r != '(' {
				n = run(rs[i:])
			}
		}
		if keep > 0 {
			add(strings.Repeat(string(r), keep), false)
		}
		if n > keep {
			add(escape(r, n-keep), true)
		}
		if unicode.Is(unicode.M, r) {
			marks += n
		} else {
			marks = 0
		}
		i += n
	}
	end()
	return out
}

// run is how often the first character stands there in a row.
func run(rs []rune) int {
	n := 1
	for n < len(rs) && rs[n] == rs[0] {
		n++
	}
	return n
}

// escape is the notation for n of the same character.
func escape(r rune, n int) string {
	if n == 1 {
		return fmt.Sprintf("<U+%04X>", r)
	}
	return fmt.Sprintf("<U+%04X x%d>", r, n)
}

func notation(rs []rune) bool { return len(rs) > 2 && rs[1] == 'U' && rs[2] == '+' }

// unseen says whether the character at i would not be seen, or would change how others are.
func unseen(rs []rune, i int) bool {
	switch r := rs[i]; {
	case r == '\uFE0F': // asks for the coloured form of the symbol before it
		return i == 0 || !unicode.Is(unicode.So, rs[i-1])
	case !unicode.IsGraphic(r), unicode.In(r, unicode.Z, unicode.Cf, unicode.Me, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case r == '\u2800', r == '\U0001D159': // drawn as nothing
		return true
	case unicode.Is(unicode.Mn, r):
		const overlay = 1 // the combining class of strokes through a letter
		return norm.NFC.PropertiesString(string(r)).CCC() == overlay
	}
	return false
}

// carries says whether the character before i can carry the mark at i.
func carries(rs []rune, i int) bool {
	return i > 0 && unicode.In(rs[i-1], unicode.L, unicode.M, unicode.N, unicode.S, unicode.P)
}

// unstable says whether the character is what keeps a text out of normal form C, or may be.
func unstable(r rune) bool {
	s := string(r)
	return !norm.NFC.PropertiesString(s).BoundaryBefore() || !norm.NFC.IsNormalString(s)
}

// lookalikes are the scripts whose letters pass for Latin ones.
func lookalikes() []*unicode.RangeTable {
	return []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu,
		unicode.Deseret, unicode.Georgian, unicode.Glagolitic, unicode.Osage, unicode.Tifinagh, unicode.Old_Italic, unicode.Runic}
}

// foreign marks the letters that stand in a word with letters of another script and may pass for them. Words of one
// script are left alone, whatever it is.
func foreign(rs []rune) []bool {
	odd := make([]bool, len(rs))
	tables := lookalikes()
	script := func(r rune) int {
		switch {
		case r <= unicode.MaxASCII || unicode.Is(unicode.Latin, r):
			return 0
		default:
			for k, t := range tables {
				if unicode.Is(t, r) {
					return k + 1
				}
			}
		}
		return -1
	}
	for i := 0; i < len(rs); {
		j, first, mixed := i, -1, false
		for ; j < len(rs) && (unicode.IsLetter(rs[j]) || unicode.IsMark(rs[j])); j++ {
			k := script(rs[j])
			switch {
			case k < 0 || !unicode.IsLetter(rs[j]):
			case first < 0:
				first = k
			case k != first:
				mixed, first = true, min(first, k)
			}
		}
		for k := i; mixed && k < j; k++ { // mutant: show-mixed-scripts
			s := script(rs[k])
			odd[k] = s >= 0 && s != first && unicode.IsLetter(rs[k])
		}
		i = j + 1
	}
	return odd
}

// Exact shows an address so that no two look the same: whatever is not plain ASCII is spelled out.
func Exact(s string) string { return plainText(spell(s, asciiOnly)) }

// line shows a value that must stay on one line.
func line(s string) string { return plainText(spell(s, oneLine)) }

// name shows an argument's own name. What could end it, or number it, is spelled out.
func name(s string) string {
	if s == "" {
		return emptyText
	}
	var b strings.Builder
	for _, p := range spell(s, asciiOnly) {
		if p.Spelled {
			b.WriteString(p.Text)
			continue
		}
		rs := []rune(p.Text)
		for i, r := range rs {
			digit := i+1 < len(rs) && rs[i+1] >= '0' && rs[i+1] <= '9'
			if r == '.' || r == ':' || r == ' ' && digit {
				b.WriteString(escape(r, 1))
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// quoted shows a text inside a sentence of code's.
func quoted(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, escape('"', 1)) + `"`
}
