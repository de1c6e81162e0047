package classifier

import "strings"

// currencies is a set of currencies.
type currencies uint16

const (
	usd currencies = 1 << iota
	cad
	aud
	nzd
	sgd
	hkd
	mxn
	brl
	eur
	gbp
	chf
	inr
	jpy
	cny
)

// currencyNames are the currencies that a name of same.txt may mean.
var currencyNames = map[string]currencies{
	"dollar": usd | cad | aud | nzd | sgd | hkd,
	"usd":    usd, "cad": cad, "aud": aud, "nzd": nzd, "sgd": sgd, "hkd": hkd, "mxn": mxn, "brl": brl,
	"eur": eur, "gbp": gbp, "chf": chf, "inr": inr, "jpy": jpy, "cny": cny,
}

// currencySigns are the currencies that a sign may mean.
var currencySigns = map[rune]currencies{
	'$': usd | cad | aud | nzd | sgd | hkd | mxn | brl,
	'€': eur, '£': gbp, '₹': inr, '¥': jpy | cny,
}

// currencyAt gives what the word may name.
func (l *lexicon) currencyAt(w string) currencies {
	if name := l.same[w]; len(name) == len("usd") || name == "dollar" {
		return currencyNames[name]
	}
	return 0
}

// currencies are all that the label may name.
func (f *labelFacts) currencies(l *lexicon) (c currencies) {
	for i := range f.tokens {
		c |= l.currencyAt(f.tokens[i].text)
	}
	for _, r := range f.text {
		c |= currencySigns[r]
	}
	return c
}

// mayMean says whether the word names a currency that the label may name.
func (f *labelFacts) mayMean(l *lexicon, w string) bool {
	c := l.currencyAt(w)
	return c != 0 && c&f.currencies(l) != 0
}

// otherCurrency says whether the words name a currency that the label does not: "yes €74" to 74 dollars, "yes in euros". A
// sign beside a number without any is how people write money.
func (a *analysis) otherCurrency() bool {
	l := words()
	for i := range a.tokens {
		if w := a.tokens[i].text; l.currencyAt(w) != 0 && !a.label.mayMean(l, w) { // mutant: guards.currency
			return true
		}
	}
	if !strings.ContainsAny(a.own, "$€£¥₹") {
		return false
	}
	label := a.label.currencies(l)
	for _, r := range a.own {
		if c := currencySigns[r]; c != 0 && label != 0 && c&label == 0 { // mutant: guards.currency-sign
			return true
		}
	}
	return false
}
