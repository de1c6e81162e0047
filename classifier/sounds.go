package classifier

import "strings"

// soundsLike says whether a word in Devanagari writes a word of the label:
// मीरा is "Meera". Consonants are compared, since vowels are spelt in many ways.
func (f *labelFacts) soundsLike(w string) bool {
	s := devanagariSkeleton(w)
	if len(s) < 2 {
		return false
	}
	for i := range f.tokens {
		if f.tokens[i].kind == wordToken && latinSkeleton(f.tokens[i].text) == s {
			return true
		}
	}
	return false
}

// devanagariSkeleton gives the consonants of a word in Latin letters; empty
// for what is not Devanagari.
func devanagariSkeleton(w string) string {
	var b []byte
	for _, r := range w {
		if r < 0x0900 || r > 0x097F {
			return ""
		}
		c := byte(0)
		switch r {
		case 'क', 'ख':
			c = 'k'
		case 'ग', 'घ':
			c = 'g'
		case 'च', 'छ':
			c = 'c'
		case 'ज', 'झ':
			c = 'j'
		case 'ट', 'ठ', 'त', 'थ':
			c = 't'
		case 'ड', 'ढ', 'द', 'ध':
			c = 'd'
		case 'ण', 'न', 'ं', 'ङ', 'ञ', 'ँ':
			c = 'n'
		case 'प':
			c = 'p'
		case 'फ':
			c = 'f'
		case 'ब', 'भ':
			c = 'b'
		case 'म':
			c = 'm'
		case 'र':
			c = 'r'
		case 'ल', 'ळ':
			c = 'l'
		case 'व':
			c = 'v'
		case 'श', 'ष', 'स':
			c = 's'
		case 'ह':
			c = 'h'
		}
		if c != 0 && (len(b) == 0 || b[len(b)-1] != c) {
			b = append(b, c)
		}
	}
	return string(b)
}

// oneConsonant spells what is one consonant, or sounds like another, in one way.
var oneConsonant = strings.NewReplacer("sh", "s", "kh", "k", "gh", "g", "ch", "c", "jh", "j", "th", "t", "dh", "d", "ph", "f", "bh", "b",
	"w", "v", "z", "j", "q", "k", "x", "ks")

// latinSkeleton gives the same of a word in Latin letters.
func latinSkeleton(w string) string {
	w = oneConsonant.Replace(w)
	var b []byte
	for i := range len(w) {
		c := w[i]
		switch c {
		case 'a', 'e', 'i', 'o', 'u', 'y':
			continue
		}
		if c < 'a' || c > 'z' {
			return ""
		}
		if c == 'c' && i+1 < len(w) && strings.IndexByte("aourlkt", w[i+1]) >= 0 && !strings.Contains(w, "ch") {
			c = 'k'
		}
		if len(b) == 0 || b[len(b)-1] != c {
			b = append(b, c)
		}
	}
	return string(b)
}
