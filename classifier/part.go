package classifier

import "strings"

// namesAPart says whether the words name some of what the label lists, and not the rest: "yes invite Ana" to "invite Ana, Ben
// and Cleo" is no yes to Ben.
func (a *analysis) namesAPart() bool {
	l := words()
	for i := range a.label.tokens {
		members := a.label.membersAround(l, i)
		named := 0
		for _, m := range members {
			if a.names(l, m) {
				named++
			}
		}
		if named > 0 && named < len(members) { // mutant: guard.part
			return true
		}
	}
	return false
}

// names says whether the reply has one of the words, or calls the thing by another.
func (a *analysis) names(l *lexicon, member []token) bool {
	for k := range member {
		thing, name := l.nouns.at(member[k].text), l.same[member[k].text]
		for i := range a.tokens {
			if w := a.tokens[i].text; w == member[k].text || name != "" && l.same[w] == name || thing.meets(l.nouns.at(w)) && !a.label.has(w) {
				return true
			}
		}
	}
	return false
}

// membersAround gives what an "and" at i of the label joins, a few words each: the last word before a list, what stands
// between its commas, and the word behind the "and". Nothing where one of them is no name of a thing or person.
func (f *labelFacts) membersAround(l *lexicon, i int) (members [][]token) {
	const longest = 2 // words between two commas of a list

	// A name of several words is no list: "Restaurant And Lounge".
	if i == 0 || i+1 >= len(f.tokens) || f.tokens[i].text != "and" || strings.Contains(f.text, " And ") {
		return nil
	}
	members = [][]token{f.tokens[i+1 : i+2]}
	to := i
	for from := to - 1; from > 0; from-- {
		if !f.tokens[from].comma && !f.tokens[from].start {
			if to-from >= longest {
				break
			}
			continue
		}
		members = append(members, f.tokens[from:to])
		to = from
	}
	from := to - 1
	if from > 1 && !f.tokens[from].comma && isNaming(l, &f.tokens[from-1]) {
		from-- // "Ana Lopez and Ben"
	}
	members = append(members, f.tokens[from:to])
	for _, m := range members {
		for k := range m {
			if !isNaming(l, &m[k]) {
				return nil
			}
		}
	}
	return members
}

// isNaming says whether a word of a label may name a thing or a person.
func isNaming(l *lexicon, t *token) bool {
	e := l.tables[0].words.at(t.text)
	return t.kind == wordToken && (isMonth(t.text) || e.kind == kindUnknown && e.verbs == 0)
}
