package channel

import (
	"strings"
	"unicode/utf16"

	"github.com/rivo/uniseg"
)

// Encoding is how a text goes over the air.
type Encoding string

// Encodings. One character outside GSM7's alphabet puts the whole text in UCS2.
const (
	GSM7 Encoding = "GSM-7"
	UCS2 Encoding = "UCS-2"
)

// Segments is what a text costs.
type Segments struct {
	Encoding Encoding
	// Units of the whole text: septets in GSM-7, where the extension table takes
	// two each; UTF-16 code units in UCS-2.
	Units int
	// Sizes are the units in each segment, without its header. A text of one
	// segment holds 160 or 70, a longer one 153 or 67 in each.
	Sizes []int
}

// Count is how many segments are billed and sent. An empty text is one.
func (s Segments) Count() int { return len(s.Sizes) }

// CountSegments measures text as it is, without Twilio's smart encoding. What
// the eye sees as one character (an extension character, a surrogate pair, an
// emoji with its modifiers) is not parted between segments if one can hold it.
func CountSegments(text string) Segments {
	s := Segments{Encoding: GSM7}
	single, multi := 160, 153
	var pieces []int // units that stay together
	for _, r := range text {
		n := gsm7Septets(r)
		if n == 0 {
			s.Encoding, single, multi = UCS2, 70, 67
			pieces = ucs2Pieces(text, multi)
			break
		}
		pieces = append(pieces, n)
	}
	for _, n := range pieces {
		s.Units += n
	}
	if s.Units <= single {
		s.Sizes = []int{s.Units}
		return s
	}
	size := 0
	for _, n := range pieces {
		if size+n > multi {
			s.Sizes = append(s.Sizes, size)
			size = 0
		}
		size += n
	}
	s.Sizes = append(s.Sizes, size)
	return s
}

// ucs2Pieces are the sizes of text's grapheme clusters in UTF-16 code units; a
// cluster larger than most is given by code points.
func ucs2Pieces(text string, most int) []int {
	var pieces []int
	state := -1
	for len(text) > 0 {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		if n := utf16Len(cluster); cluster != "\r\n" && n <= most {
			pieces = append(pieces, n)
			continue
		}
		for _, r := range cluster {
			pieces = append(pieces, utf16.RuneLen(r))
		}
	}
	return pieces
}

// utf16Len is the length of text in UTF-16 code units. A byte that is not UTF-8
// counts as U+FFFD.
func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// The characters of GSM 03.38's default alphabet and of its extension table,
// without the escape itself.
const (
	gsm7Basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ" +
		" !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§" +
		"¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsm7Extension = "\f^{}\\[~]|€"
)

// gsm7Septets is 1 for the basic alphabet, 2 for the extension table, 0 for
// what GSM-7 cannot carry.
func gsm7Septets(r rune) int {
	switch {
	case r < 0x80 && (r >= 'a' && r <= 'z' || r == ' '):
		return 1 // nearly every character of nearly every text
	case strings.ContainsRune(gsm7Basic, r):
		return 1
	case strings.ContainsRune(gsm7Extension, r):
		return 2
	}
	return 0
}
