package classifier

import (
	"bytes"
	"slices"
	"strings"
)

// People break off, point at something, or answer what nobody asked: "yes my", "ja zurück", "sí están". All of the words are
// known and none of them says no, so that a clause without an action, a request or an approval counts as a yes only where
// the small words beside the yes are a whole answer.

// fragment says whether some clause of the text is a yes beside small words that are no answer, or small words alone.
func (a *analysis) fragment() bool {
	told := a.any(kindVerb) || a.any(kindGo)
	for from := 0; from < len(a.items); {
		to := from + 1
		for to < len(a.items) && !a.boundary(to) {
			to++
		}
		if a.breaksOff(from, to, told) {
			return true
		}
		from = to
	}
	return false
}

// breaksOff says whether the items from up to to are such a clause.
func (a *analysis) breaksOff(from, to int, told bool) bool {
	var buf [96]byte
	rest := buf[:0]
	add := func(it item) {
		if len(rest) > 0 {
			rest = append(rest, ' ')
		}
		rest = append(rest, a.text(it)...)
	}
	done, agreed := false, false
	for n, it := range a.items[from:to] {
		switch it.kind {
		case kindFunction:
			add(it)
		case kindFiller:
			if w := a.tokens[it.from].text; it.to == it.from+1 && isDirection(w) {
				add(it)
			} else if n > 0 && a.items[from+n-1].kind == kindFunction && a.calledBy(a.tokens[it.from-1].text, w) {
				return true // "les filles", "mi hermana"
			}
		case kindAck:
			done = done || a.tokens[it.to-1].text == "done"
		case kindAssent:
			agreed = true
		case kindCourtesy:
		case kindApprove:
			return !told && n > 0 && it.to == it.from+1 && a.items[from+n-1].kind == kindFunction && isThe(a.tokens[it.from-1].text) && (from+n+1 == to || strings.HasPrefix(a.tokens[it.to].text, "one")) // "la buena", "the best one"
		default:
			return false
		}
	}
	last := a.items[to-1]
	switch {
	case last.kind == kindAssent && !everyday(a.text(last)) && to > from+1:
		return false // "sono sicuro", "ik ben het eens"
	case len(rest) == 0:
		return done && agreed && !told
	case told && (!agreed || bytes.IndexByte(rest, ' ') >= 0):
		return false
	}
	return !a.wholeAnswer(string(rest))
}

// isThe is an article that nothing but a thing or a person follows.
func isThe(w string) bool {
	switch w {
	case "the", "el", "la", "los", "las", "le", "les", "il", "o", "os", "die", "der", "den", "de", "het":
		return true
	}
	return false
}

// calledBy says whether the word is somebody spoken of, and not to, for what stands before it.
func (a *analysis) calledBy(before, w string) bool {
	if isArticle(before) {
		switch w {
		case "filles", "gars", "amis", "jungs", "madels", "leute", "chicas", "chicos", "meninas", "ragazzi", "ragazze", "jongens", "meiden":
			return true
		}
		return false
	}
	if !isPossessive(before) {
		return false
	}
	switch w {
	case "sis", "sister", "bro", "brother", "pal", "mate", "hermana", "hermano", "hijo", "hija", "frere", "soeur", "bruder", "schwester", "freunde", "irmao", "irma", "fratello", "sorella", "broer", "zus", "vriend", "vrienden", "vriendin",
		"kumpel", "chef", "chefin", "kollege", "patron", "patronne", "jefe", "jefa", "chefe", "capo", "baas", "bazin", "doc", "dokter", "docteur", "doctor", "doctora", "dottore", "mann", "frau", "kids", "lad", "lass", "boy", "girl", "team", "gang", "squad", "crew":
		return true
	}
	return false
}

// isDirection is a word that German and Dutch verbs come with, and that without one says where to; and a place that is pointed
// at.
func isDirection(w string) bool {
	switch w {
	case "hin", "rein", "raus", "rum", "rueber", "ruber", "runter", "hoch", "zuruck", "fest", "ab", "auf", "aus", "an", "zu", "ein", "mit", "frei", "durch",
		"binnen", "weg", "op", "af", "uit", "aan", "in", "door", "over", "om", "toe", "terug", "mee", "bij", "erop", "erbij", "erin", "eruit", "langs", "samen", "heen", "fort", "across",
		"there", "here", "dort", "hier", "daar", "ahi", "alli", "aqui", "ici", "qui":
		return true
	}
	return false
}

// wholeAnswer says whether small words beside a yes are an answer: "it is", "that one", "for me".
func (a *analysis) wholeAnswer(s string) bool {
	switch s {
	case "those", "these", "esos", "esas", "estos", "estas", "esses", "essas", "questi", "quelli", "quelle", "ceux la", "celles la":
		return a.hasCount() || a.label.several(words())
	}
	if _, is := slices.BinarySearch(words().answers, s); is {
		return true
	}
	for _, is := range [...]string{"that is ", "thats ", "its ", "it is ", "this is ", "that was ", "cest ", "e il ", "e la ", "e lo ", "e un ", "e una "} {
		if of, ok := strings.CutPrefix(s, is); ok {
			return !happened(of)
		}
	}
	return !strings.Contains(s, "rah") && (strings.HasSuffix(s, " hai") || strings.HasSuffix(s, " है") && !strings.Contains(s, "रह"))
}

// happened says whether small words say that something was done, or where it went.
func happened(s string) bool {
	for w := range strings.FieldsSeq(s) {
		switch w {
		case "made", "given", "taken", "completed", "complete", "finalized", "finish", "gone", "going", "got", "gotten", "arranged", "arrange", "on", "in", "up", "out", "over", "with", "fait", "been", "being", "at", "all", "for", "by", "to", "from":
			return true
		}
	}
	return false
}
