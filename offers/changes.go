package offers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/gate"
)

// shortChange is the longest change, old and new value together in characters, that is written out.
const shortChange = 100

// changes is what stands above an offer that takes the place of another: what is different, with short values written
// out, and for want of room by name alone. Without an earlier offer it is nothing, once.
func changes(before *gate.Operation, op gate.Operation, parts []Part, policy *gate.Policy) []string {
	if before == nil {
		return []string{""}
	}
	old, err := PartsOf(*before, policy)
	switch {
	case err != nil:
		return []string{"Changed: this replaces an earlier offer\n"}
	case before.Tool != op.Tool || before.Kind != op.Kind:
		return []string{"Changed: another action, before it was: " + firstTitle(old) + "\n"}
	}
	was, is := grouped(old), grouped(parts)
	full, short := difference(was, is, true), difference(was, is, false)
	if full == short {
		return []string{full}
	}
	return []string{full, short}
}

func firstTitle(parts []Part) string {
	if len(parts) > 1 {
		return fmt.Sprintf("%d things together", len(parts))
	}
	return parts[0].Title
}

// group is all values behind one prefix.
type group struct {
	prefix string
	values []string
}

func grouped(parts []Part) []group {
	var out []group
	put := func(prefix, value string) {
		i := slices.IndexFunc(out, func(g group) bool { return g.prefix == prefix })
		if i < 0 {
			i, out = len(out), append(out, group{prefix: prefix})
		}
		out[i].values = append(out[i].values, value)
	}
	for i, p := range parts {
		number := ""
		if len(parts) > 1 {
			number = fmt.Sprintf("Part %d", i+1)
			put(number, p.Title)
			number += " "
		}
		for _, f := range p.Fields {
			put(number+f.Prefix, f.text())
		}
	}
	return out
}

// difference has a line for each prefix whose values are not the same.
func difference(was, is []group, values bool) string {
	old := make(map[string][]string, len(was))
	for _, g := range was {
		old[g.prefix] = g.values
	}
	var b strings.Builder
	say := func(format string, a ...any) { b.WriteString("Changed: " + fmt.Sprintf(format, a...) + "\n") }
	for _, g := range is {
		before, had := old[g.prefix]
		delete(old, g.prefix)
		switch {
		case !had:
			say("%s added", g.prefix)
		case slices.Equal(before, g.values):
		case values && short(before, g.values):
			say("%s %s -> %s", g.prefix, list(before), list(g.values))
		default:
			say("%s", g.prefix)
		}
	}
	for _, prefix := range inOrder(was, old) {
		if values && short(old[prefix], nil) {
			say("%s removed, was %s", prefix, list(old[prefix]))
		} else {
			say("%s removed", prefix)
		}
	}
	if b.Len() == 0 {
		say("nothing, it is asked again")
	}
	return b.String()
}

// inOrder lists the prefixes that are left in the order in which they were shown.
func inOrder(was []group, left map[string][]string) []string {
	out := slices.Collect(maps.Keys(left))
	at := func(prefix string) int {
		return slices.IndexFunc(was, func(g group) bool { return g.prefix == prefix })
	}
	slices.SortFunc(out, func(a, b string) int { return at(a) - at(b) })
	return out
}

func short(a, b []string) bool {
	n := 0
	for _, v := range slices.Concat(a, b) {
		if strings.Contains(v, "\n") {
			return false
		}
		n += utf8.RuneCountInString(v)
	}
	return n <= shortChange
}

func list(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoted(v)
	}
	return strings.Join(out, ", ")
}
