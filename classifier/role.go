package classifier

// role is what a number is of, by the words beside it.
type role int

const (
	anyRole   role = iota
	hourRole       // "8am", "um acht", "8時"
	theseRole      // "las ocho": eight o'clock, or the eight
	hoursRole      // "8 horas": an hour of the day, or so many
	headsRole      // "3 people", "三位"
	dayRole        // "March 3", "3 de marzo"
)

// roleAt gives the role of the number at i. A thing behind it says what it counts, whatever stands before it: "las 3 facturas".
func roleAt(l *lexicon, toks []token, i int, thing bool) role {
	if i+1 < len(toks) && !toks[i+1].start && !toks[i+1].comma {
		next := toks[i+1].text
		switch {
		case isHourWord(next):
			return hourRole
		case l.same[next] == "hour", next == "h":
			return hoursRole
		case isHeadsWord(next):
			return headsRole
		case next == "of" || next == "de" || next == "di":
			if i+2 < len(toks) && isMonth(l.same[toks[i+2].text]) {
				return dayRole
			}
		case next == "may" && i+2 < len(toks) && !toks[i+2].start && !toks[i+2].comma: // "room 31 may borrow it"
		case isMonth(l.same[next]):
			return dayRole
		}
	}
	if i == 0 || toks[i].start || thing {
		return anyRole
	}
	switch before := toks[i-1].text; before {
	case "um", "om", "dalle":
		return hourRole
	case "las", "as", "das", "alle":
		return theseRole
	default:
		if isMonth(l.same[before]) {
			return dayRole
		}
	}
	return anyRole
}

// mayBe says whether the number at j of the label may be of that role: a day of a month is neither an hour nor a count of
// heads, and a number that nothing makes a time is no hour.
func (f *labelFacts) mayBe(l *lexicon, j int, r role) bool {
	own := roleAt(l, f.tokens, j, false)
	switch r {
	case hourRole:
		return own == hourRole || f.inClock(j) || own == anyRole && f.endsAt(l, j) && !f.hasClock() // mutant: guards.role-hour
	case theseRole:
		return own != dayRole // mutant: guards.role-these
	case hoursRole:
		return own == hourRole || own == hoursRole || f.inClock(j) // mutant: guards.role-hours
	case headsRole:
		return own != dayRole && own != hourRole && !f.inClock(j) // mutant: guards.role-heads
	case dayRole:
		return own == dayRole // mutant: guards.role-day
	}
	return true
}

// endsAt says whether nothing that the number at j could count stands behind it: "move the meeting to 11".
func (f *labelFacts) endsAt(l *lexicon, j int) bool {
	return j+1 >= len(f.tokens) || f.tokens[j+1].comma || l.tables[0].words.at(f.tokens[j+1].text).kind == kindFunction
}

// inClock says whether the number at j is a part of a time of day.
func (f *labelFacts) inClock(j int) bool {
	for k := max(0, j-1); k <= j; k++ {
		if _, _, n := clock(f.tokens, k); k+n > j {
			return true
		}
	}
	return false
}

func isHourWord(w string) bool {
	switch w {
	case "am", "pm", "oclock", "uhr", "baje", "बजे", "点", "點", "点钟", "點鐘", "時":
		return true
	}
	return false
}

func isHeadsWord(w string) bool {
	switch w {
	case "people", "persons", "person", "guests", "pax", "personen", "personnes", "personas", "persone", "pessoas", "mensen", "leute", "leuten",
		"log", "logon", "लोग", "लोगों", "人", "位", "名", "名様":
		return true
	}
	return false
}
