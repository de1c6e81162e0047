package classifier

import "strings"

// A yes that names more than was offered ("all of them" to one of three), another act on the same thing ("order it" to
// cancelling an order), or the person's own doing ("sending it now") is not a yes to exactly the offer.

// isDoing says whether the label's action is said to go on: "I'm sending it", "sending it now", "estou enviando", 我在发. What
// is said of it ("sending it is fine") or how it stands to something else ("happy with sending it") is another sentence.
func (a *analysis) isDoing() bool {
	lang := languages[a.language]
	for n, it := range a.items {
		if it.kind != kindVerb {
			continue
		}
		switch lang {
		case "zh":
			if it.from > 0 && a.tokens[it.from-1].text == "在" {
				return true
			}
			continue
		case "ja":
			if strings.HasSuffix(a.tokens[it.to-1].text, "て") && it.to < len(a.tokens) && a.tokens[it.to].text == "ます" {
				return true
			}
			continue
		}
		if goesOn(lang, a.tokens[it.from].text) && a.speaksOfOneself(n) && !a.judged(it.to) {
			return true
		}
	}
	return false
}

// goesOn is the form of a verb that says that it is being done. Who is confirming or approving does so by saying it.
func goesOn(lang, w string) bool {
	switch w {
	case "confirming", "approving", "accepting", "agreeing", "confirmando", "aprobando", "aprovando":
		return false
	}
	switch lang {
	case "en":
		stem, ok := strings.CutSuffix(w, "ing")
		return ok && len(w) > 4 && strings.ContainsAny(stem, "aeiouy") // not "bring"
	case "es", "pt", "it":
		return len(w) > 5 && strings.HasSuffix(w, "ndo")
	}
	return false
}

// speaksOfOneself says whether what item n does is done by nobody else than the person: the clause has nothing before it, or
// an answer, "I am" or a small word.
func (a *analysis) speaksOfOneself(n int) bool {
	for ; n > 0 && !a.boundary(n); n-- {
		switch before := a.items[n-1]; before.kind {
		case kindAssent, kindAck, kindFiller, kindApprove:
		case kindFunction:
			switch a.tokens[before.to-1].text {
			case "im", "am", "were", "are", "estoy", "estamos", "estou", "estamos a", "to", "ta", "sto", "stiamo", "just", "now", "already", "lo", "la", "ya", "ja", "gia":
				if a.tokens[before.to-1].text == "to" && a.language == 0 {
					return false
				}
			default:
				return false
			}
		default:
			return false
		}
	}
	return true
}

// judged says whether the clause goes on to say something of what stands before token i.
func (a *analysis) judged(i int) bool {
	for ; i < len(a.tokens) && !a.tokens[i].start && !a.tokens[i].comma; i++ {
		switch a.tokens[i].text {
		case "is", "are", "was", "would", "sounds", "works", "makes", "seems", "feels", "suits", "will", "can", "should":
			return true
		}
	}
	return false
}

// upholds says whether the words take, or make sure of, what would be given up: "yes accept" to a cancel, "confirm the meeting"
// to cancelling it, "yes ship it" to cancelling an order.
func (a *analysis) upholds() bool {
	for n, it := range a.items {
		if it.kind != kindAssent && it.kind != kindGo && it.kind != kindApprove {
			continue
		}
		last := a.tokens[it.to-1].text
		switch w := a.tokens[it.from].text; w {
		case "accept", "acepta", "aceptar", "accepte", "accepter", "akzeptieren", "annehmen", "aceita", "aceitar", "accetta", "accettare", "accepteer", "accepteren", "接受":
			if it.to == it.from+1 || last == "it" || last == "please" {
				return true
			}
		}
		for i := it.from; i < it.to; i++ {
			if a.tokens[i].text == "ship" && a.label.hasAny("order", "delivery", "parcel", "package", "shipment") {
				return true
			}
		}
		if (last == "confirm" || last == "confirmed" || last == "approve") && n+1 < len(a.items) && !a.boundary(n+1) {
			next := a.items[n+1]
			if n+2 < len(a.items) && !a.boundary(n+2) && next.kind == kindFunction && isArticle(a.tokens[next.from].text) {
				next = a.items[n+2]
			}
			if next.kind == kindEcho { // mutant: guard.confirms-thing
				return true
			}
		}
	}
	return false
}

// actsOnThing says whether a word that the label has as a thing is told as an act: "order it" to an offer to cancel an order.
// What the label itself does besides, behind an "and", is no thing.
func (a *analysis) actsOnThing() bool {
	l := words()
	for n, it := range a.items {
		if it.kind != kindEcho {
			continue
		}
		object := it.from + 1
		if object >= len(a.tokens) || a.tokens[object].start || a.tokens[object].comma {
			continue
		}
		switch a.tokens[object].text {
		case "it", "them", "him", "her":
		default:
			continue
		}
		w := a.tokens[it.from].text
		if n > 0 && !a.boundary(n) && !a.items[n-1].kind.agrees() || !a.label.hasThing(w) {
			continue
		}
		if v := l.verbs.at(w) | l.verbs.of(w, a.tokens[object].text); v != 0 && v&a.label.verbs == 0 {
			return true
		}
	}
	return false
}

// hasThing says whether a word of the label, but its first and one behind an "and", is w.
func (f *labelFacts) hasThing(w string) bool {
	for i := 1; i < len(f.tokens); i++ {
		if f.tokens[i].text == w && f.tokens[i-1].text != "and" {
			return true
		}
	}
	return false
}

// extent is how much a word takes in, of things or people of which there are several.
type extent uint8

const (
	extentNone extent = iota
	extentAll
	extentBoth
)

// extentOf is that of the word at i. A word for everything, "todo", is read where something is to be lost.
func (a *analysis) extentOf(i int) extent {
	switch w := a.tokens[i].text; w {
	case "all", "todos", "todas", "tous", "toutes", "tutti", "tutte", "allemaal", "sab", "sabhi", "sabko", "सब", "सभी", "सबको", "全部", "都", "全員", "すべて", "全て", "みんな", "everyone", "everybody":
		return extentAll
	case "alle", "allen":
		if lang := languages[a.language]; lang == "de" || lang == "nl" {
			return extentAll
		}
	case "both", "ambos", "ambas", "beide", "beiden", "entrambi", "entrambe", "allebei", "दोनों", "両方":
		return extentBoth
	case "dono":
		if languages[a.language] == "hi" {
			return extentBoth
		}
	}
	return extentNone
}

// goesBeyond says whether the words take in more than the label names: "all of them" where it is 3 of 14, or one.
func (a *analysis) goesBeyond() bool {
	part := a.label.isPart()
	if !part && a.label.many() {
		return false
	}
	for i := range a.tokens {
		x := a.extentOf(i)
		if x == extentNone || a.label.has(a.tokens[i].text) || x == extentBoth && (a.label.has("2") || a.label.pairs()) {
			continue
		}
		if it := a.itemAt(i); it.kind == kindAck || it.kind == kindApprove || it.kind == kindReason || it.to > it.from+1 && (it.kind == kindAssent || a.tokens[it.from].text == "let") {
			continue // "all good", "we're all in", "let everyone know"
		}
		if i > 0 && !a.tokens[i].start && !a.tokens[i].comma && isNoObject(a.tokens[i-1].text) {
			continue // "send it all", "we all agree"
		}
		if a.countsOut(i, part) {
			return true
		}
	}
	return false
}

// isNoObject is a word after which "all" takes in no more things.
func isNoObject(w string) bool {
	switch w {
	case "it", "that", "thats", "its", "is", "this", "were", "we", "us", "you", "are", "of", "at", "after", "and", "by", "for", "above", "first", "best", "not", "el", "la", "los", "las", "de", "por", "pour", "di", "für", "fur", "voor", "von", "van":
		return true
	}
	return false
}

// countsOut says whether the "all" at i stands for things: by itself, of "them", or before an action; and before a thing or a
// number where the label names a part of them, unless it is the number of that part.
func (a *analysis) countsOut(i int, part bool) bool {
	if i++; i >= len(a.tokens) || a.tokens[i].start || a.tokens[i].comma {
		return true
	}
	switch a.tokens[i].text {
	case "of":
		if i+1 < len(a.tokens) {
			switch a.tokens[i+1].text {
			case "them", "those", "these", "em":
				return true
			}
		}
		return false
	case "di", "von", "van", "de":
		return true
	case "the":
		return part
	}
	next := a.itemAt(i)
	switch next.kind {
	case kindVerb, kindCourtesy, kindFiller:
		return true
	case kindEcho:
		return part && a.tokens[i].kind == wordToken
	}
	return false
}

// isPart says whether the label takes some of a number of things: "delete 3 of 14 files".
func (f *labelFacts) isPart() bool {
	for i := range f.tokens {
		if f.wholeOf(i) {
			return true
		}
	}
	return false
}

// wholeOf says whether the number at i is that of which the label takes a part.
func (f *labelFacts) wholeOf(i int) bool {
	return i >= 2 && f.tokens[i].kind == numberToken && (f.tokens[i-1].text == "of" || f.tokens[i-1].text == "the" && i >= 3 && f.tokens[i-2].text == "of" && f.tokens[i-3].kind == numberToken) && (f.tokens[i-2].kind == numberToken || f.tokens[i-1].text == "the")
}

// pairs says whether the label names two, joined by one "and".
func (f *labelFacts) pairs() bool {
	n := 0
	for i := range f.tokens {
		if f.tokens[i].text == "and" && i > 0 && i+1 < len(f.tokens) {
			n++
		}
	}
	return n == 1
}

// many says whether the label is of several things or people, or of one that holds several.
func (f *labelFacts) many() bool {
	if f.toAll() || f.has("and") {
		return true
	}
	for i := range f.tokens {
		t := &f.tokens[i]
		if t.kind == numberToken {
			continue
		}
		if w := t.text; i > 0 && len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is") || t.text[0] >= 0x80 {
			return true
		}
		switch t.text {
		case "people", "children", "men", "women", "family", "kids", "history", "trash", "bin", "inbox", "mailbox", "folder", "cart", "basket", "album", "queue", "playlist", "list", "library", "log", "cache", "calendar", "series", "collection", "stock",
			"set", "batch", "bundle", "pack", "laundry", "groceries", "furniture", "food", "stuff", "mail", "post", "junk", "spam", "homework", "money", "balance", "data", "content", "both", "each", "every", "any", "them", "us", "couple", "pair", "dozen", "feet", "teeth", "equipment", "luggage", "rest":
			return true
		}
	}
	return false
}
