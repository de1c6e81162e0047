package channel

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// How many texts a Sim keeps at least: enough for any conversation, little enough for a
// server that runs for months.
const (
	simKeptPerAddress = 1_000
	simKeptInAll      = 10_000
)

// SimText is one text on a simulated phone.
type SimText struct {
	ID   string // the provider's id
	From people.Address
	To   people.Address
	Body string
	At   time.Time
}

// LogValue keeps the words out of logs.
func (x SimText) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", x.ID), slog.Int("bytes", len(x.Body)))
}

// Sim is the outbound side of the simulated phone: an inbox in memory for each
// sim: address. It is safe for concurrent use.
type Sim struct {
	now func() time.Time

	mu      sync.Mutex
	inboxes map[people.Address]*simInbox
	all     []SimText // in order of arrival, at least the latest simKeptInAll
	dropped int       // how many stood before all[0]
	changed chan struct{}
}

type simInbox struct {
	texts []SimText // at least the latest simKeptPerAddress
	total int       // ever
}

var _ offers.Sender = (*Sim)(nil)

// NewSim returns a phone without texts; now stamps them.
func NewSim(now func() time.Time) *Sim {
	return &Sim{now: now, inboxes: map[people.Address]*simInbox{}, changed: make(chan struct{})}
}

// Limit is the same as Twilio's, so that what can be shown on the simulated
// phone can be shown on a real one.
func (s *Sim) Limit() int { return twilioLimit }

// Send puts m into the inbox of its address. It takes what Twilio would take,
// for sim: addresses only.
func (s *Sim) Send(ctx context.Context, m offers.Outgoing) offers.SendResult {
	rejected := func(code int) offers.SendResult {
		return offers.SendResult{Outcome: offers.OutcomeRejected, Code: code}
	}
	to, err := people.ParseAddress(string(m.To))
	switch {
	case ctx.Err() != nil:
		return rejected(CodeNotSent)
	case err != nil || to.Channel() != "sim":
		return rejected(CodeBadTo)
	case !carriable(m.Body):
		return rejected(CodeBadBody)
	case utf16Len(m.Body) > twilioLimit:
		return rejected(CodeTooLong)
	}
	text := SimText{ID: "sim-" + rand.Text(), From: m.From, To: to, Body: m.Body, At: s.now()}

	s.mu.Lock()
	defer s.mu.Unlock()
	box := s.inboxes[to]
	if box == nil {
		box = &simInbox{}
		s.inboxes[to] = box
	}
	box.total++
	box.texts = append(box.texts, text)
	box.texts, _ = trim(box.texts, simKeptPerAddress)
	s.all = append(s.all, text)
	var over int
	s.all, over = trim(s.all, simKeptInAll)
	s.dropped += over
	close(s.changed)
	s.changed = make(chan struct{})
	return offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: text.ID}
}

// trim drops the oldest texts down to keep, but only when twice as many have
// gathered: moving the rest at each send would make sending slow for ever.
func trim(texts []SimText, keep int) (rest []SimText, over int) {
	if len(texts) < 2*keep {
		return texts, 0
	}
	over = len(texts) - keep
	return slices.Delete(texts, 0, over), over
}

// Texts returns the inbox of an address, oldest first.
func (s *Sim) Texts(address people.Address) []SimText {
	texts, _, _ := s.look(address)
	return texts
}

// Find returns the provider's id of the newest text at an address with that body, spaces around it aside: what a reply on
// the simulated phone quotes is the text itself. Empty: there is none, or it is no longer kept.
func (s *Sim) Find(address people.Address, body string) string {
	texts := s.Texts(address)
	for _, t := range slices.Backward(texts) {
		if strings.TrimSpace(t.Body) == strings.TrimSpace(body) {
			return t.ID
		}
	}
	return ""
}

// Wait returns the inbox of an address as soon as n texts have ever come in, or
// the context's error and what is there by then.
func (s *Sim) Wait(ctx context.Context, address people.Address, n int) ([]SimText, error) {
	for {
		texts, total, changed := s.look(address)
		if total >= n {
			return texts, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return texts, ctx.Err()
		}
	}
}

func (s *Sim) look(address people.Address) (texts []SimText, total int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if box := s.inboxes[address]; box != nil {
		texts, total = slices.Clone(box.texts), box.total
	}
	return texts, total, s.changed
}

// Follow yields every text to any address that comes in after the call, in
// order, until the context ends or the loop is left. A slow loop holds nobody
// up; one that falls more than the kept texts behind misses the oldest.
func (s *Sim) Follow(ctx context.Context) iter.Seq[SimText] {
	s.mu.Lock()
	next := s.dropped + len(s.all)
	s.mu.Unlock()
	return func(yield func(SimText) bool) {
		for ctx.Err() == nil {
			s.mu.Lock()
			next = max(next, s.dropped)
			news, changed := slices.Clone(s.all[next-s.dropped:]), s.changed
			s.mu.Unlock()
			for _, text := range news {
				next++
				if !yield(text) {
					return
				}
			}
			if len(news) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
