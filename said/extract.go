package said

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Turn is all that an extractor is shown of a text.
type Turn struct {
	Words string // unquoted
	Now   time.Time
	Loc   *time.Location // the person's zone; nil is UTC
}

// Local is the person's time.
func (t Turn) Local() time.Time { return t.Now.In(zone(t.Loc)) }

func zone(loc *time.Location) *time.Location {
	if loc == nil {
		return time.UTC
	}
	return loc
}

// Extractor proposes what a person may have asked for. Its answer is a proposal
// only; an error means that nothing was proposed. [BuiltIn] reads the plain
// forms, package said/openai asks a model.
type Extractor interface {
	Extract(ctx context.Context, turn Turn) (candidates []Candidate, drops []Drop, err error)
	// Fingerprint names the extractor and the version of its rules or prompt.
	Fingerprint() string
}

// Heard is what came of one text.
type Heard struct {
	Unquoted Unquoted
	Intents  []Intent
	Drops    []Drop
}

// Hear takes intents from a text of the person's own: cut, unquote, extract,
// validate. With an error there are no intents. Never pass it what an agent, a
// tool or a connector wrote.
func Hear(ctx context.Context, x Extractor, text string, now time.Time, loc *time.Location) (Heard, error) {
	h := Heard{Unquoted: Unquote(text)}
	if h.Unquoted.Words == "" {
		return h, nil
	}
	if h.Unquoted.Cut && maybeTakenBack(text) { // mutant: said.cut-taken-back
		return h, nil
	}
	candidates, drops, err := x.Extract(ctx, Turn{Words: h.Unquoted.Words, Now: now, Loc: loc})
	if err != nil {
		return h, err
	}
	h.Drops = drops
	intents, more := ValidateAll(h.Unquoted.Words, candidates, now, loc)
	h.Intents, h.Drops = intents, append(h.Drops, more...)
	return h, nil
}

// maybeTakenBack says whether what a text has beyond the cut holds a word that could take back or limit what stands before it.
func maybeTakenBack(text string) bool {
	head, _ := cut(text)
	return slices.ContainsFunc(tokenise(text[len(head):]), func(t token) bool { return takingBack[t.fold] || bareNo[t.fold] })
}

// ValidateAll validates each candidate; those beyond the first MaxIntents are
// dropped unread.
func ValidateAll(words string, candidates []Candidate, now time.Time, loc *time.Location) ([]Intent, []Drop) {
	return validateAll(analyse(words, now, loc), candidates, loc)
}

func validateAll(a *analysis, candidates []Candidate, loc *time.Location) (intents []Intent, drops []Drop) {
	type ask struct {
		kind   Kind
		to     string
		clause int
	}
	heard := make(map[ask]bool)
	for i, c := range candidates {
		if i >= MaxIntents { // mutant: said.cap
			drops = append(drops, Drop{Candidate: c, Reason: DropCap})
			continue
		}
		v, bad := check(a, c, loc)
		var asks []ask
		for _, to := range append([]string{""}, v.intent.To...) {
			if to == "" && len(v.intent.To) > 0 || len(bad) > 0 {
				continue
			}
			for _, k := range v.clauses {
				key := ask{v.intent.Kind, strings.Join(nameWords(to), " "), k}
				if heard[key] { // mutant: said.repeated
					bad = []Reason{DropRepeated}
				}
				asks = append(asks, key)
			}
		}
		if len(bad) > 0 {
			drops = append(drops, dropsOf(c, bad)...)
			continue
		}
		for _, key := range asks {
			heard[key] = true
		}
		intents = append(intents, v.intent)
	}
	return intents, drops
}
