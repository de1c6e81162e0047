package calibration

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/classifier"
)

// standIns take the places of names, one after another, so that a reply still
// says whether it names the same person as the offer.
var standIns = [...]string{"Ari", "Bela", "Cleo", "Dario", "Edda", "Filip", "Greta", "Hugo", "Imke", "Jaro"}

var (
	mailAddress = regexp.MustCompile(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+`)
	webAddress  = regexp.MustCompile(`(?i)\b(?:https?://|www\.)\S+`)
	someWord    = regexp.MustCompile(`[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*|\p{N}+(?:[.,:/-]\p{N}+)*`)
)

// Mask gives the row with numbers, names and addresses replaced, the same one
// by the same stand-in wherever it stands in the row: 412.00 becomes 111.11 in
// the reply and in the offer. A word counts as a name when an offer or a text
// writes it with a capital and no language's lexicon knows it; wherever it
// stands in lower case then goes too. A name that nothing writes with a capital
// is not found: look through what is to leave the house.
func Mask(r Row) Row {
	m := masker{names: map[string]string{}, numbers: map[string]string{}, mails: map[string]string{}}
	for _, s := range append(append([]string{r.Text}, r.Earlier...), r.Offers...) {
		m.learn(s)
	}
	out := r
	out.Earlier, out.Offers = nil, nil
	for _, o := range r.Offers {
		out.Offers = append(out.Offers, m.mask(o))
	}
	out.Text = m.mask(r.Text)
	for _, e := range r.Earlier {
		out.Earlier = append(out.Earlier, m.mask(e))
	}
	return out
}

type masker struct {
	names, numbers, mails map[string]string
}

// learn collects the names of a text.
func (m *masker) learn(s string) {
	s = webAddress.ReplaceAllString(mailAddress.ReplaceAllString(s, " "), " ")
	for _, w := range someWord.FindAllString(s, -1) {
		r, _ := utf8.DecodeRuneInString(w)
		cased := unicode.IsUpper(r)
		plain := !unicode.IsUpper(r) && !unicode.IsLower(r) // a script without capitals: only digits are masked
		if !cased || plain || classifier.Knows(w) {
			continue
		}
		key := owner(strings.ToLower(w))
		if _, ok := m.names[key]; !ok {
			n := len(m.names)
			m.names[key] = standIns[n%len(standIns)] + strings.Repeat("a", n/len(standIns))
		}
	}
}

func (m *masker) mask(s string) string {
	s = webAddress.ReplaceAllStringFunc(s, func(w string) string {
		if u, err := url.Parse(w); err == nil && u.Scheme != "" {
			return u.Scheme + "://example.com/"
		}
		return "www.example.com"
	})
	var b strings.Builder
	last := 0
	for _, at := range mailAddress.FindAllStringIndex(s, -1) {
		b.WriteString(m.words(s[last:at[0]]))
		b.WriteString(m.mail(s[at[0]:at[1]]))
		last = at[1]
	}
	b.WriteString(m.words(s[last:]))
	return b.String()
}

func (m *masker) mail(w string) string {
	key := strings.ToLower(w)
	if _, ok := m.mails[key]; !ok {
		m.mails[key] = strings.Repeat("x", len(m.mails)+1) + "@example.com"
	}
	return m.mails[key]
}

func (m *masker) words(s string) string {
	return someWord.ReplaceAllStringFunc(s, func(w string) string {
		if r, _ := utf8.DecodeRuneInString(w); unicode.IsNumber(r) {
			return m.number(w)
		}
		key := strings.ToLower(w)
		if name, ok := m.names[key]; ok {
			if w == key {
				return strings.ToLower(name)
			}
			return name
		}
		if base := owner(key); m.names[base] != "" {
			return m.names[base] + w[len(base):]
		}
		return w
	})
}

// owner takes a possessive s off.
func owner(w string) string {
	return strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")
}

// number keeps the length, the marks in it, and which numbers are equal.
func (m *masker) number(w string) string {
	d, ok := m.numbers[digits(w)]
	if !ok {
		d = string(rune('1' + len(m.numbers)%9))
		m.numbers[digits(w)] = d
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsNumber(r) {
			return rune(d[0])
		}
		return r
	}, w)
}

// digits is the number without marks and without a fraction of zeros, so that
// 412 and 412.00 stay equal.
func digits(w string) string {
	whole, frac, _ := strings.Cut(strings.ReplaceAll(w, ",", ""), ".")
	if strings.Trim(frac, "0") != "" {
		whole += "." + frac
	}
	return whole
}
