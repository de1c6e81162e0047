package classifier

import "strings"

// inflections gives the forms in which somebody tells another to do a thing,
// or names doing it, of a regular verb: infinitive, imperatives, first person
// plural, gerund. Past forms and "I do it" are left out: they say that it has
// happened, or who does it; so is German -t, which is both ("bezahlt"). The verb
// comes folded, by its infinitive.
func inflections(lang, verb string) []string {
	out := []string{verb}
	add := func(stem string, endings ...string) {
		for _, e := range endings {
			out = append(out, stem+e)
		}
	}
	cut := func(ending string) (string, bool) { return strings.CutSuffix(verb, ending) }
	switch lang {
	case "es":
		if s, ok := cut("ar"); ok {
			add(s, "a", "ando")
			add(soft(s, "c", "qu", "g", "gu", "z", "c"), "e", "en", "emos")
		} else if s, ok := cut("er"); ok {
			add(s, "e", "iendo")
			add(s, "a", "an", "amos")
		} else if s, ok := cut("ir"); ok {
			add(s, "e", "iendo")
			add(s, "a", "an", "amos")
		}
	case "pt":
		if s, ok := cut("ar"); ok {
			add(s, "a", "ando", "as")
			add(soft(s, "c", "qu", "g", "gu"), "e", "em", "emos")
		} else if s, ok := cut("er"); ok {
			add(s, "e", "endo", "a", "am", "amos")
		} else if s, ok := cut("ir"); ok {
			add(s, "e", "indo", "a", "am", "amos")
		}
	case "it":
		if s, ok := cut("iare"); ok {
			add(s, "ia", "i", "iamo", "iate", "iando", "ino")
		} else if s, ok := cut("are"); ok {
			add(s, "a", "ate", "ando")
			add(soft(s, "c", "ch", "g", "gh"), "i", "iamo", "ino")
		} else if s, ok := cut("ere"); ok {
			add(s, "i", "a", "ete", "iamo", "endo")
		} else if s, ok := cut("ire"); ok {
			add(s, "i", "a", "ite", "iamo", "endo", "isci", "isca")
		}
	case "fr":
		if s, ok := cut("er"); ok {
			add(s, "e", "es", "ez", "ons", "ant")
		} else if s, ok := cut("ir"); ok {
			add(s, "is", "issez", "issons")
		} else if s, ok := cut("re"); ok {
			add(s, "s", "ez", "ons")
		}
	case "de":
		if s, ok := cut("en"); ok {
			add(s, "", "e")
		} else if s, ok := cut("ern"); ok {
			add(s, "er", "ere", "re")
		} else if s, ok := cut("n"); ok {
			add(s, "", "e")
		}
	case "nl":
		if s, ok := cut("en"); ok {
			for _, stem := range dutchStems(s) {
				add(stem, "", "t")
			}
		}
	}
	return out
}

// soft spells the last consonant of a stem as it is before e and i.
func soft(stem string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if s, ok := strings.CutSuffix(stem, pairs[i]); ok {
			return s + pairs[i+1]
		}
	}
	return stem
}

// dutchStems gives the stem of a Dutch verb as it is spelt at the end of a
// word: one consonant for two ("pakken", pak), two vowels for one in an open
// syllable ("kopen", koop), f and s for v and z ("schrijven", schrijf).
func dutchStems(s string) []string {
	n := len(s)
	if n < 3 {
		return []string{s}
	}
	if s[n-1] == s[n-2] {
		return []string{s[:n-1]}
	}
	end := s[n-1]
	switch end {
	case 'v':
		end = 'f'
	case 'z':
		end = 's'
	}
	base := s[:n-1] + string(end)
	const vowels = "aeiou"
	v := s[n-2]
	if strings.IndexByte(vowels, v) >= 0 && v != 'i' && strings.IndexByte(vowels+"j", s[n-3]) < 0 {
		return []string{s[:n-1] + string(v) + string(end), base} // "kopen", and "regelen"
	}
	return []string{base}
}

// praise gives the other forms of an adjective, by gender and number, from the
// one that the lexicon has.
func praise(lang, w string) []string {
	if strings.HasSuffix(w, "mente") {
		return nil
	}
	stem := w[:len(w)-1]
	switch lang {
	case "es", "pt":
		if w[len(w)-1] == 'o' {
			return []string{stem + "a", stem + "os", stem + "as"}
		}
	case "it":
		if w[len(w)-1] == 'o' {
			return []string{stem + "a", stem + "i", stem + "e"}
		}
	case "fr":
		if c := w[len(w)-1]; c == 't' || c == 'd' || c == 'l' {
			return []string{w + "e", w + "s", w + "es"}
		}
	case "de":
		if c := w[len(w)-1]; c != 'e' && c != 's' && c != 'n' {
			return []string{w + "e", w + "en", w + "er", w + "es"}
		}
	case "nl":
		if c := w[len(w)-1]; c != 'e' && c != 's' && c != 'n' {
			return []string{w + "e"}
		}
	}
	return nil
}
