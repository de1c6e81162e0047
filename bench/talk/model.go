package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// The model: what was on each screen and when, and what each message meant to its writer. It is fed by what the bench
// itself does to phones, carriers and agents, by the product's events and the answers of its calls, and never by its
// tables. It knows which offer a text asks about by the text's own words alone.

// person is one human.
type person struct {
	id       string
	phones   []*phone
	active   bool
	holds    bool // the tier holds what the tools need
	received int  // messages so far
	reserved int64
	asks     []*ask // everything that was proposed to them
}

// phone is one address.
type phone struct {
	address people.Address
	person  *person // nil: a stranger's
	silent  bool    // opted out, as far as the product has been told
	since   time.Time
	dead    bool
	texts   []*text // in the order in which they were sent
	picked  *ask    // by a number, from a list that was on this screen
	pickAt  time.Time
}

// ask is one offer, as its agent and its person know it.
type ask struct {
	id, operation string
	token         string // the recipient, which no other offer has
	name          string // the recipient's name
	tool          tool
	args          []byte
	sum           offers.Digest
	person        *person
	phone         *phone
	made          time.Time
	sentAt        time.Time // the first text about it was handed to the carrier
	acceptedAt    time.Time // of the newest text about it
	expires       time.Time // counted from the first time it was opened; zero until then
	waiting       bool      // put back in the queue
	ended         time.Time
	state         offers.State // once ended
	by            *message     // whose yes released it
	releasedAt    time.Time
	cancelled     bool
	begun         bool
}

// text is one text of ours, which may have gone out in parts.
type text struct {
	id       string
	number   int64
	phone    *phone
	reserved time.Time
	parts    []string
	sids     []string
	shown    []bool
	asks     *ask      // by its last line; nil: nothing
	taken    bool      // the product has been told that the carrier has it
	whole    string    // as it reads when every part is there
	seen     time.Time // when all of it was on the screen; zero: not yet
	list     []*ask    // what it numbers, where it asks which one is meant; nil: nobody can tell
}

// message is one text of a person.
type message struct {
	sid      string
	id       string // the product's
	phone    *phone
	words    string
	class    class
	name     string // for named
	composed time.Time
	received time.Time
	number   int
	quotes   *text // what it answers, where the phone says so
	plain    bool  // neither quoted, nor a reaction, nor with a picture
	used     *ask  // what it has released
	follows  *ask  // what its writer has picked by a number just before
	settled  bool  // the product has decided it
}

// live says whether the offer may be approved for all that its agent and the clock know.
func (a *ask) live(now time.Time) bool {
	return a.ended.IsZero() && !a.waiting && !a.sentAt.IsZero() && (a.expires.IsZero() || now.Before(a.expires))
}

// recent says whether the offer's question can be read on a screen and was live until that long ago.
func (a *ask) recent(now time.Time, d time.Duration) bool {
	if !a.phone.sees(a) {
		return false
	}
	switch {
	case !a.ended.IsZero():
		return a.ended.After(now.Add(-d))
	case !a.expires.IsZero() && !a.waiting:
		return a.expires.After(now.Add(-d))
	}
	return !a.waiting
}

func (p *phone) sees(a *ask) bool {
	return slices.ContainsFunc(p.texts, func(t *text) bool { return t.asks == a && !t.seen.IsZero() })
}

// asked is the newest question that was on the screen at that time, by the order in which texts were sent.
func (p *phone) asked(at time.Time) *ask {
	for _, t := range slices.Backward(p.texts) {
		if t.asks != nil && !t.seen.IsZero() && !t.seen.After(at) {
			return t.asks
		}
	}
	return nil
}

// saw says whether the offer's question was on the screen before that time.
func (p *phone) saw(a *ask, at time.Time) bool {
	return slices.ContainsFunc(p.texts, func(t *text) bool { return t.asks == a && !t.seen.IsZero() && !t.seen.After(at) })
}

// lists reads a text that asks which of several offers is meant: by its labels, of which each names one contact.
func lists(whole string, live []*ask) (out []*ask) {
	for i, line := range strings.Split(whole, "\n") {
		if i == 0 {
			if !strings.HasPrefix(line, "Which one?") {
				return nil
			}
			continue
		}
		var is *ask
		for _, a := range live {
			if strings.HasSuffix(line, " to "+a.name) {
				if is != nil {
					is = nil // two of one name: the number tells nobody which
					break
				}
				is = a
			}
		}
		out = append(out, is)
	}
	return out
}

// pick notes the number that somebody answers the newest list on the screen with.
func (p *phone) pick(n int, at time.Time) {
	p.picked = nil
	for _, t := range slices.Backward(p.texts) {
		if len(t.list) > 0 && !t.seen.IsZero() && !t.seen.After(at) {
			if n >= 1 && n <= len(t.list) {
				p.picked, p.pickAt = t.list[n-1], at
			}
			return
		}
	}
}

// following is what was picked just before that time; nil where another offer's question came up in between.
func (p *phone) following(at time.Time) *ask {
	for _, t := range p.texts {
		if t.asks != nil && t.asks != p.picked && t.seen.After(p.pickAt) && !t.seen.After(at) {
			return nil
		}
	}
	return p.picked
}

var (
	partNumber = regexp.MustCompile(`^\(\d/\d(, same line)?\) `)
	recipient  = regexp.MustCompile(`to-\d+-\d+@example\.com`)
)

// join puts parts together as a reader does: a new line, or the same.
func join(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	var b strings.Builder
	for i, p := range parts {
		m := partNumber.FindStringSubmatch(p)
		if m == nil {
			return strings.Join(parts, "\n")
		}
		if i > 0 && m[1] == "" {
			b.WriteByte('\n')
		}
		b.WriteString(p[len(m[0]):])
	}
	return b.String()
}

// questioned finds what a text asks about: its last line ends with the question and names the recipient.
func questioned(whole string) (token string) {
	last := whole[strings.LastIndexByte(whole, '\n')+1:]
	if !strings.Contains(last, "YES") {
		return ""
	}
	return recipient.FindString(last)
}

// minRead is the product's, from the newest ask to the earliest yes; and how far a bare yes is held back where texts may
// have crossed.
const (
	minRead = time.Second
	crossed = offers.CrossFactor * minRead
)

// judge says why the screen and the words do not justify a release; empty: they do. cited says that a main model picked
// the offer. blind says that nothing but the phone itself could have told: the carrier took longer than the times for
// which the product waits.
func judge(a *ask, m *message, cited bool, now time.Time) (why string, blind bool) {
	p := a.person
	switch {
	case m.phone.person != p:
		return "a message of somebody else", false
	case m.phone != a.phone:
		return "answered from another phone than the one that was asked", false
	case !p.active:
		return "the person is suspended", false
	case !p.holds:
		return "the person's tier does not hold the capability", false
	case m.phone.silent:
		return "the address has opted out", false
	case m.phone.dead:
		return "the number is dead", false
	case a.by != nil && a.by != m:
		return "released before, by another message", false
	case m.used != nil && m.used != a:
		return "the message has released another offer", false
	case !a.ended.IsZero():
		return "the offer had ended: " + string(a.state), false
	case a.waiting:
		return "the offer is in the queue", false
	case a.sentAt.IsZero():
		return "the offer was never sent", false
	case !a.expires.IsZero() && !now.Before(a.expires):
		return "the offer had expired", false
	case m.number != p.received:
		return "a newer message is there", false
	case !m.class.consents():
		return "the words are no yes but: " + m.class.String(), false
	case m.class == named && m.name != a.name:
		return "the words name another offer", false
	}
	others := slices.ContainsFunc(p.asks, func(b *ask) bool { return b != a && b.live(now) })
	switch {
	case others && (!cited || m.class != named):
		return "another offer is live", false
	case m.quotes != nil && m.quotes.asks != a:
		return "the message answers another text", false
	case m.received.Before(a.acceptedAt.Add(minRead)):
		return "received before it can have been read", false
	}
	// What the screen showed when the words were written.
	switch {
	case !m.phone.saw(a, m.composed):
		why = "written before the question was on the screen"
	case m.class != named && m.quotes == nil && m.follows != a && m.phone.asked(m.composed) != a:
		why = "another question was the newest on the screen"
	default:
		return "", false
	}
	before := slices.ContainsFunc(p.asks, func(b *ask) bool { return b != a && b.recent(a.acceptedAt, offers.CrossWindow) })
	return why, !before || !m.received.Before(a.acceptedAt.Add(crossed))
}

func (m *message) String() string {
	return fmt.Sprintf("%q (%s) written %s received %s", m.words, m.class, m.composed.Format(stamp), m.received.Format(stamp))
}

func (a *ask) String() string {
	return fmt.Sprintf("%s to %s made %s sent %s accepted %s", a.tool.name, a.token, a.made.Format(stamp), a.sentAt.Format(stamp), a.acceptedAt.Format(stamp))
}

const stamp = "15:04:05.000"
