package offers

import (
	"fmt"
	"unicode"
	"unicode/utf16"
)

// MaxParts is how many messages one text may go out as.
const MaxParts = 4

// CodeTooLong is the provider's code for a text that does not fit.
const CodeTooLong = 21617

// numberRoom is kept free in each of several parts for its number, in the longer of the two forms.
const numberRoom = len("(4/4, same line) ")

// Room is how long a text may be, in UTF-16 units, to be sure to go out: parts are cut at most one unit before their end.
func Room(limit int) int { return MaxParts * (limit - numberRoom - 1) }

// Split cuts a text into the bodies of at most [MaxParts] messages, each within limit UTF-16 units; false: it does not
// fit. A text that fits into one is left as it is. Several are numbered: "(2/3) " begins a new line of the text, and
// "(2/3, same line) " goes on within one, so that nothing inside a value can pass for a line of its own. Cuts are made
// at line ends; only where no number of parts allows that, between words behind the line's prefix; then between any words;
// and only where even that does not do, anywhere.
func Split(text string, limit int) ([]string, bool) {
	if units([]rune(text)) <= limit {
		return []string{text}, true
	}
	for _, where := range []cutAt{atLineEnd, behindPrefix, atWord, anywhere} {
		for n := 2; n <= MaxParts; n++ {
			if pieces, ok := cut([]rune(text), limit-numberRoom, n, where); ok {
				return number(pieces), true
			}
		}
	}
	return nil, false
}

// cutAt says how coarse a cut may be; each allows what the ones before it allow.
type cutAt uint8

const (
	atLineEnd cutAt = iota
	behindPrefix
	atWord
	anywhere
)

// piece is one part without its number.
type piece struct {
	body     string
	sameLine bool // it goes on in the line of the piece before it
}

func number(pieces []piece) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		form := "(%d/%d) %s"
		if p.sameLine {
			form = "(%d/%d, same line) %s"
		}
		out[i] = fmt.Sprintf(form, i+1, len(pieces), p.body)
	}
	return out
}

// cut makes at most n pieces of at most room units each, every one as long as it may be.
func cut(rest []rune, room, n int, where cutAt) ([]piece, bool) {
	if room < 2 {
		return nil, false
	}
	var out []piece
	sameLine := false
	for left := n; ; left-- {
		if units(rest) <= room {
			return append(out, piece{string(rest), sameLine}), true
		}
		if left == 1 {
			return nil, false
		}
		// Whatever is left behind the cut must still fit into the pieces after it.
		end, lineEnd := lastCut(rest, sameLine, units(rest)-(left-1)*(room-1), room, where)
		if end == 0 {
			return nil, false
		}
		out = append(out, piece{string(rest[:end]), sameLine})
		sameLine = !lineEnd
		if lineEnd {
			end++ // the line end itself stands between the two
		}
		rest = rest[end:]
	}
}

// lastCut finds the best place to cut between least and most units from the start: the last of the coarsest kind.
// inLine says that rest begins within a line. 0: there is none.
func lastCut(rest []rune, inLine bool, least, most int, where cutAt) (end int, lineEnd bool) {
	var last [anywhere + 1]int // of each kind
	value := 0                 // where the value begins in the line at hand
	if !inLine {
		value = valueOf(rest, 0)
	}
	at := 0
	for i, r := range rest {
		if at > most {
			break
		}
		if at >= least && i > 0 {
			switch {
			case r == '\n':
				last[atLineEnd] = i
			case rest[i-1] == ' ' && i >= value:
				last[behindPrefix] = i
			case rest[i-1] == ' ':
				last[atWord] = i
			case !together(rest[i-1], r):
				last[anywhere] = i
			}
		}
		if r == '\n' {
			value = valueOf(rest, i+1)
		}
		at += utf16.RuneLen(r)
	}
	for kind := atLineEnd; kind <= where; kind++ {
		if last[kind] > 0 {
			return last[kind], kind == atLineEnd
		}
	}
	return 0, false
}

// valueOf finds where the value begins in the line that begins at start: behind the prefix that code wrote, or at once.
func valueOf(rs []rune, start int) int {
	for i := start; i+1 < len(rs) && rs[i] != '\n'; i++ {
		if rs[i] == ':' && rs[i+1] == ' ' {
			return i + 2
		}
	}
	return start
}

// together says whether a cut between two characters would show others: it would take a mark from its letter, or an emoji
// apart, or make the next piece begin with the line end of this one.
func together(a, b rune) bool {
	flags := a >= 0x1F1E6 && a <= 0x1F1FF && b >= 0x1F1E6 && b <= 0x1F1FF
	return flags || a == '\n' || unicode.Is(unicode.M, b) || a == 0x200D || b == 0x200D || b >= 0x1F3FB && b <= 0x1F3FF
}

func units(rs []rune) int {
	n := 0
	for _, r := range rs {
		n += utf16.RuneLen(r)
	}
	return n
}
