package reply

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/said"
)

// HearWithin is how long an extractor may take. What comes later was not said.
const HearWithin = 2 * time.Second

// Hearing takes permissions from what owners type.
type Hearing struct {
	Extractor said.Extractor
	Now       func() time.Time
	Zone      *time.Location // of the people; nil: UTC
	Within    time.Duration  // 0: HearWithin
}

// hear takes from a message what its person asks for. Only an owner's typed words that go to the agent are looked at:
// never a reply that code has acted on or may have, an overtaken message, a mutilated one, a machine's or a reaction. An
// extractor that fails or is slow has heard nothing.
func (p *Processor) hear(ctx context.Context, r offers.Received, v classifier.Verdict, out outcome) []said.Intent {
	if p.cfg.Said == nil || !hearable(r, v, out) {
		return nil
	}
	h := *p.cfg.Said
	if h.Within == 0 {
		h.Within = HearWithin
	}
	ctx, cancel := context.WithTimeout(ctx, h.Within)
	defer cancel()
	type heard struct {
		said.Heard
		err error
	}
	done := make(chan heard, 1) // an extractor that does not look at its context holds up nobody
	go func() {
		got, err := said.Hear(ctx, h.Extractor, r.Text, h.Now(), h.Zone)
		done <- heard{got, err}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			p.log.WarnContext(ctx, "extractor did not answer", "message", r, "extractor", h.Extractor.Fingerprint(), "error", got.err)
			return nil
		}
		for _, d := range got.Drops {
			p.log.InfoContext(ctx, "said nothing", "message_id", r.MessageID, "reason", d)
		}
		return got.Intents
	case <-ctx.Done():
		p.log.WarnContext(ctx, "extractor was too slow", "message", r, "extractor", h.Extractor.Fingerprint())
		return nil
	}
}

// hearable is pure.
func hearable(r offers.Received, v classifier.Verdict, out outcome) bool {
	switch {
	case r.Tier != gate.TierOwner: // mutant: hear.owner
		return false
	case out.action != pass || out.event != offers.MessageReceived: // mutant: hear.passed
		return false
	case r.Overtaken: // mutant: hear.overtaken
		return false
	case r.Lossy: // mutant: hear.lossy
		return false
	}
	return v.Prepared.Form == classifier.FormTyped // mutant: hear.form
}

// takesBackAsk says whether a message may take back what the person asked for a moment before. To be wrong costs a question.
func takesBackAsk(r offers.Received, v classifier.Verdict) bool {
	unread := r.Overtaken && v.Reading == (classifier.Reading{})
	return unread || v.Err != nil || v.Reading.Class == classifier.Decline || v.Reading.P[classifier.Decline] >= DeclineAt
}

// asksOf is what a message wants of the person's permissions: to see them, or to end some. nil: nothing.
type asksOf struct {
	all     bool
	numbers []int
}

// ends says whether a permission is one of those that are to end.
func (a *asksOf) ends(p offers.Permission) bool { return a.all || slices.Contains(a.numbers, p.Number) }

// shows: it ends none.
func (a *asksOf) shows() bool { return !a.all && len(a.numbers) == 0 }

const (
	lead  = `^(?:(?:please|pls|ok|okay|hey|hi|and|so|actually) )*`
	trail = `(?: (?:please|pls|thanks|thank you|now|again|anymore|any more|from now on))*$`
	// doings stand for whatever the agent does.
	doings = `(?:do|doing|send|sending|email|emailing|text|texting|message|messaging|write|writing|pay|paying|post|posting|share|sharing|act|acting)`
	// unasked is how people say that nobody asks them.
	unasked = `without (?:(?:asking|checking|checking with|confirming|confirming with|my (?:ok|okay|approval|permission|say so|yes|confirmation))(?: with)?(?: me)?(?: first)?)`
)

var (
	showWords = regexp.MustCompile(lead + `(?:` +
		`(?:what|which things|what things|who|whom|what all) (?:may|can|could|do|are|will|would|does) (?:you|u|the agent|it) (?:allowed to |able to |free to )?` + doings + `(?: to| things| stuff| anything)? ` + unasked +
		`|what (?:are you|r u) (?:allowed|permitted|able|free) to ` + doings + ` ` + unasked +
		`|what (?:have i|did i|do i) (?:allowed|allow|approved|approve|permitted|permit|let|preapproved)(?: you)?(?: to)?(?: do)?(?: ` + unasked + `)?` +
		`|(?:show|list|see|tell|give)(?: me)?(?: all)?(?: of)? (?:my|your|the|all)(?: standing)? permissions` +
		`|(?:what|which) (?:are (?:my|your|the)(?: standing)? permissions|permissions (?:do you have|have i given(?: you)?|did i give(?: you)?|are there))` +
		`|(?:my |list |show |your )?permissions` +
		`)` + trail)
	endNumbers = regexp.MustCompile(lead + `(?:revoke|(?:end|remove|cancel|drop|delete|undo|stop|withdraw|revoke)(?: the)?(?: standing)? permissions?)((?: (?:permission|permissions|number|numbers|no|nr|and))*(?: (?:and )?[0-9]{1,6})+)` + trail)
	endAll     = regexp.MustCompile(lead + `(?:` +
		`revoke (?:all|everything|all of (?:it|them)|them all|(?:all )?(?:of )?(?:my|your|the)(?: standing)? permissions)(?: permissions)?` +
		`|(?:end|remove|cancel|drop|delete|undo|withdraw) (?:all|all (?:of )?(?:my|your|the)|my|your|the)(?: standing)? permissions` +
		`|(?:stop|quit|dont|do not|never|no more|you may not|you cant|you can not|you cannot)(?: you)? ` + doings + `(?: that| this| it| those| anything| things| stuff)? ` + unasked +
		`)` + trail)
	digits = regexp.MustCompile(`[0-9]+`)
)

// longestAsk is how long a message about permissions may be, in bytes: nobody needs more, and whoever writes more says
// more than that.
const longestAsk = 160

// permissionsAsk reads a message that is about the person's permissions and nothing else. Its words are code's to know: a
// model neither reads it nor answers it. nil: it is not one.
func permissionsAsk(r offers.Received) *asksOf {
	if r.Tier != gate.TierOwner || len(r.Text) > longestAsk { // mutant: ask.owner
		return nil
	}
	prepared := classifier.Prepare(classifier.NewWords(r.Text))
	if prepared.Form != classifier.FormTyped {
		return nil
	}
	words := plainWords(prepared.Own)
	switch {
	case showWords.MatchString(words):
		return &asksOf{}
	case endAll.MatchString(words):
		return &asksOf{all: true}
	}
	m := endNumbers.FindStringSubmatch(words)
	if m == nil {
		return nil
	}
	a := &asksOf{}
	for _, d := range digits.FindAllString(m[1], -1) {
		if n, err := strconv.Atoi(d); err == nil {
			a.numbers = append(a.numbers, n)
		}
	}
	return a
}

// stopWords is how people say that something is not to be done any more; what follows says for whom.
var stopWords = regexp.MustCompile(`^(?:(?:please|pls|ok|okay|hey|hi|and|so|actually|no|nope|nah|wait|just) )*(?:(?:stop|quit|dont|do not|never|no more|no longer|you (?:may|can|should|must) (?:not|no longer)|you (?:cant|cannot|shouldnt|mustnt)|i (?:dont|do not) want you)(?: to| you| ever)? ` +
	doings + `|no more (?:emails?|mails?|texts?|messages?|payments?|posts?)) (.+)$`)

// everybody stands for whoever is written to.
var everybody = regexp.MustCompile(`\b(?:them|him|her|anyone|anybody|everyone|everybody|people)\b`)

// stopsFor says which permissions a message ends that tells the agent to stop: those of everyone it names. To be wrong costs
// a question. nil: none.
func stopsFor(r offers.Received) func(offers.Permission) bool {
	if r.Tier != gate.TierOwner { // mutant: stops.owner
		return nil
	}
	prepared := classifier.Prepare(classifier.NewWords(r.Text))
	if prepared.Form != classifier.FormTyped {
		return nil
	}
	m := stopWords.FindStringSubmatch(plainWords(prepared.Own))
	if m == nil {
		return nil
	}
	rest := " " + m[1] + " "
	return func(p offers.Permission) bool {
		named := false
		for _, to := range p.Recipients {
			for _, name := range append([]string{to.Said}, to.Addresses...) {
				words := plainWords(name)
				named = named || words != "" && strings.Contains(rest, " "+words+" ") // mutant: stops.named
			}
		}
		return named || everybody.MatchString(rest)
	}
}

// plainWords are the words in small letters with single spaces, without punctuation; an apostrophe joins.
func plainWords(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\'' || r == '’':
			return -1
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return ' '
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// answerTo makes the service's answer to such a message.
func answerTo(r offers.Received, a *asksOf, rec offers.ReadingRecord, hourly int) offers.PermissionsAnswer {
	out := offers.PermissionsAnswer{MessageID: r.MessageID, PersonID: r.PersonID, Reading: rec, Hourly: hourly, Say: offers.PermissionList}
	if !a.shows() {
		out.Ends = a.ends
	}
	return out
}
