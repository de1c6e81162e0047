package classifier

import (
	"bytes"
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
	if wholeAnswers[s] {
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

// wholeAnswers are small words that are an answer beside a yes, by language.
var wholeAnswers = entrySet(
	"जाए, हूँ, comme prevu, comme convenu, comme dhab, comme dhabitude, comme indique, comme propose, comme dit, tel quel, telle quelle, zoals altijd, zoals voorgesteld, zoals beschreven, die zijn, deze zijn, ze, dat zijn ze, con quello, con quella, e lui, e lei, sono, io, this is it, hin, los, over, retour, en, i anymore, anymore, ab, am, nai, nahi, esse o valor, e esse o valor, would suit, that would suit, you have been, that would be, thats was the request, thats me, im looking forward that, erin, what id like, what we need, that sounds like what we need, that like to, like to that, theyre the same person, is, would, like to, ab, अब, my number, the details are, need it done,it, that, this, it is, that is, this is, thats, its, itd, thatd, thatll, i, we, im, i am, we are, were, theyre, id, ive, wed, i do, we do, do, do i, i would, we would, it does, that does, it would, that would, it would be, that would be, it will, that will, that one, this one, the one, just that, all, all of it, all of that, all of them, all of those, each, both, each detail, every detail, for me, for us, for that, for it, for this, to that, to it, to this, to all, with that, with it, with this, of that, of it, of this, by me, by us, from me, from us, from my side, on my side, with me, with us, like that, like this, like so, so, ahead, forward, anymore, as it is, as is, as discussed, as planned, as stated, as described, as shown, as listed, as you said, as i said, excited, happy, glad, pleased, delighted, request, way, be, and, be so, you, you can, you may, you it, you that, you have my, you have, can be, that can be, it can be, this can be, sounds like, needed, need it, need that, needed that, want it, want that, i want, we want, i want it, i need it, we need it, we need some, i wanted, make it, my, that option, i that option, i will that, sure of it, sure of that, sure about it, sure about that, able, willing, interested, would like that, agreed on, we agreed on that, what i want, what i wanted, what i need, what i said, what i asked for, what you said, on, with this arrangement, out of, the, to, im able, my choice, my pick, my request, my order, this option, that plan, this plan, word for word, in full, right here, complete, ready, at that, would that be, would be, you are, youre, thats how, thats it, let us, let",
	"que, es, eso, esto, ese, esa, este, esta, lo, eso es, es eso, es esto, es esa, es ese, esa es, ese es, esa misma, ese mismo, eso mismo, por mi, por mi parte, de mi parte, por mi lado, para mi, para nosotros, con eso, con esto, asi, va, de, que es, que es eso, en eso, lo es, esta bien asi, que la, que lo, el, la",
	"ca, cela, cest, cest ca, celui la, celle la, pour moi, pour nous, pour ca, pour un an, de ma part, de notre part, on en, avec ca, comme ca, a ca, le, cest cela, pour, c est",
	"das, dat, dit, dies, die, diese, dieses, diesen, den, deze, bin ich, fur mich, fur uns, von mir, von uns, das ist, das ist es, es ist, ist es, das da, dafur, damit, damit bin ich, wie besprochen, wie gesagt, wie abgemacht, wie geplant, wie vereinbart, was ich will, was ich wollte, ist, bin, dat is, dat is het, het is, voor mij, voor ons, van mij, van ons, gij, ge, verstuurd worden, worden, wel, zoals afgesproken, zoals gezegd, zoals gepland, het, daarmee, hiermee, van mij uit",
	"isso, isto, esse, por mim, pra mim, para mim, pra gente, pra nos, da minha parte, com isso, nisso, isso e, e isso, e esse, e essa, ser, o, a, e, essa, assim, que eu, questo, questa, quello, quella, per me, per noi, parte mia, da parte mia, con questo, che, ti, e questo, e quello, ao",
	"aap, hai, है, hain, ye, yeh, ye hai, hu, yahi, wahi, yahi wala, wahi wala, ye wala, यही, वही, यही वाला, ये वाला, ये, यह, यह है, आप, meri taraf se, मेरी तरफ से, taraf se, mere liye, मेरे लिए, isko, ise, इसे, इसको, h, yahi hai, यही है, ji",
	"了, 得, 您, 的, 你, 给, 这样, 这样 了, 這樣, 就 这样, 这个, 那个, 這個, 那個, 这, 帮我, 幫我, 是这, 地, 下, 一下, 把, 这么, 我",
	"それ, それ で, これ, これ で, で, です, だ, ます, と, に, 内容 に, その ように, その内容で, この内容で, その, こと です, それ です, これ です, 方向で, それ は, これ は, 通り, 予定 通り, 予定通り, の, は, ので, から, し, っす, い",
)

func entrySet(lists ...string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for _, e := range entries(list) {
			set[e] = true
		}
	}
	return set
}
