package classifier

import (
	"strings"
)

// headerSet are the names of mail headers in one language, folded, by role:
// from, sent, to, subject.
type headerSet [4][]string

// tapbackForm is one way in which a phone writes a reaction.
type tapbackForm struct {
	kind          TapbackKind
	removed       bool
	before, after string // folded; "{}" is an emoji
}

func (l *lexicon) loadForms() {
	for _, line := range lines("headers") {
		_, list, _ := strings.Cut(line, ":")
		var h headerSet
		for i, role := range strings.SplitN(list, "|", 4) {
			for _, e := range entries(role) {
				h[i] = append(h[i], fold(e))
			}
		}
		l.headers = append(l.headers, h)
	}
	for _, line := range lines("tapbacks") {
		name, form, _ := strings.Cut(line, ":")
		name, removed := strings.CutPrefix(name, "-")
		before, after, _ := strings.Cut(form, "|")
		l.tapbacks = append(l.tapbacks, tapbackForm{
			kind: tapbackKindOf(name), removed: removed,
			before: foldSpaces(fold(before)), after: foldSpaces(fold(after)),
		})
	}
	for _, line := range lines("signatures") {
		l.signatures = append(l.signatures, fold(line))
	}
	for _, line := range lines("autoreplies") {
		l.autoReplies = append(l.autoReplies, fold(line))
	}
}

func foldSpaces(s string) string { return strings.Join(strings.Fields(s), " ") }
