package classifier

import (
	"strings"
	"unicode/utf8"
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

func (b *builder) loadForms() {
	for _, at := range b.lines("headers") {
		_, list, _ := strings.Cut(at.text, ":")
		var h headerSet
		for i, role := range strings.SplitN(list, "|", len(h)) {
			for _, e := range entries(role) {
				h[i] = append(h[i], fold(e))
			}
		}
		b.headers = append(b.headers, h)
	}
	for _, at := range b.lines("tapbacks") {
		name, form, _ := strings.Cut(at.text, ":")
		name, removed := strings.CutPrefix(name, "-")
		before, after, _ := strings.Cut(form, "|")
		b.tapbacks = append(b.tapbacks, tapbackForm{
			kind: tapbackKindOf(name), removed: removed,
			before: foldSpaces(fold(before)), after: foldSpaces(fold(after)),
		})
	}
	for _, at := range b.lines("signatures") {
		b.signatures = append(b.signatures, fold(at.text))
	}
	for _, at := range b.lines("autoreplies") {
		b.autoReplies = append(b.autoReplies, fold(at.text))
	}
}

func (l *lexicon) readForms(r *reader) {
	l.headers = make([]headerSet, r.number())
	for i := range l.headers {
		for role := range l.headers[i] {
			l.headers[i][role] = r.texts()
		}
	}
	l.tapbacks = make([]tapbackForm, r.number())
	for i := range l.tapbacks {
		l.tapbacks[i] = tapbackForm{kind: TapbackKind(r.number()), removed: r.number() != 0, before: r.text(), after: r.text()}
	}
	l.signatures, l.autoReplies, l.answers = r.texts(), r.texts(), r.texts()
}

// foldSpaces puts one space between words, and none around them.
func foldSpaces(s string) string {
	space := true // before the first word
	for i := range len(s) {
		switch c := s[i]; {
		case c >= utf8.RuneSelf, c < ' ', c == ' ' && space:
			return strings.Join(strings.Fields(s), " ")
		default:
			space = c == ' '
		}
	}
	return strings.TrimSuffix(s, " ")
}
