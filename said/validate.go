package said

import "time"

// Validate checks one candidate against the person's own words. It returns the
// intent only where there is no drop.
func Validate(words string, c Candidate, now time.Time, loc *time.Location) (Intent, []Drop) {
	return Intent{}, []Drop{{Candidate: c, Reason: DropNotAsked}}
}
