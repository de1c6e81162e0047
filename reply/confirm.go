package reply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

// CitedAt is the least probability of confirm, before guards, at which a main model may act on a message that code
// left unclear.
const CitedAt = 0.5

// CitedStore is what a [Confirmer] works with.
type CitedStore interface {
	offers.Confirms
	Offer(ctx context.Context, accountID, id string) (offers.Offer, error)
}

// Confirmer lets a main model pick the offer that a person's yes was for. It never turns anything else into a yes.
type Confirmer struct {
	store   CitedStore
	minRead time.Duration
	wake    *offers.Wake
}

// NewConfirmer makes a confirmer.
func NewConfirmer(store CitedStore, minRead time.Duration, wake *offers.Wake) *Confirmer {
	return &Confirmer{store: store, minRead: minRead, wake: wake}
}

// ConfirmRequest is a main model's claim that a message of the person approves an offer.
type ConfirmRequest struct {
	AccountID string
	OfferID   string
	RunID     string // the cited message's own run
	MessageID string
	Quote     string // the whole of the person's own words
	ArgsSum   offers.Digest
}

// Confirm checks the citation and asks the store for the release.
// Errors: offers.ErrNotFound, ErrSelfConfirm, ErrMessageUsed, ErrOfferClosed, ErrHashMismatch, ErrQuote, ErrNotAYes, and
// *offers.Refusal from the update itself.
func (c *Confirmer) Confirm(ctx context.Context, r ConfirmRequest) (offers.Win, error) {
	o, err := c.store.Offer(ctx, r.AccountID, r.OfferID)
	if err != nil {
		return offers.Win{}, err
	}
	m, err := c.store.CitedMessage(ctx, r.AccountID, r.MessageID)
	if err != nil {
		return offers.Win{}, err
	}
	if o.PersonID != m.PersonID {
		return offers.Win{}, fmt.Errorf("the message is of somebody else: %w", offers.ErrNotFound)
	}
	names := Names(m.Text, o, m.Screen)
	if err := admissible(r, o, m, names); err != nil {
		return offers.Win{}, err
	}
	win, err := c.store.ConsumeCited(ctx, offers.ConsumeRequest{
		Offer: o, MessageID: m.MessageID, PersonID: m.PersonID, RunID: m.RunID, Names: names,
		Closer:  offers.Closer{MessageID: m.MessageID, Reading: m.Reading.Class, P: m.Reading.RawP},
		Reading: m.Reading, Tiers: offers.TiersHolding(o.Capability), MinRead: c.minRead,
	})
	if err != nil {
		return offers.Win{}, err
	}
	c.wake.Signal()
	return win, nil
}

// admissible is pure: it judges the citation by what is stored, and never by what the caller says of it.
func admissible(r ConfirmRequest, o offers.Offer, m offers.Cited, names bool) error {
	own := classifier.Prepare(classifier.NewWords(m.Text)).Own
	switch {
	case !m.Trusted, r.RunID != m.RunID, m.RunTainted: // mutant: confirm.run
		return offers.ErrSelfConfirm
	case m.Used && (o.ClosedBy == nil || o.ClosedBy.MessageID != m.MessageID): // mutant: confirm.used
		return offers.ErrMessageUsed
	case o.State.Closed() && (o.ClosedBy == nil || o.ClosedBy.MessageID != m.MessageID): // mutant: confirm.closed
		return offers.ErrOfferClosed
	case offers.Hex(r.ArgsSum) != o.ArgsSHA256: // mutant: confirm.args
		return offers.ErrHashMismatch
	case fold(own) == "" || fold(r.Quote) != fold(own): // mutant: confirm.quote
		return offers.ErrQuote
	case m.Lossy, !m.Decided, m.Overtaken: // mutant: confirm.decided
		return offers.ErrNotAYes
	case m.Quoted != "" && m.QuotedFor != o.ID: // mutant: confirm.quoted
		return offers.ErrNotAYes
	case !yesEnough(m.Reading): // mutant: confirm.reading
		return offers.ErrNotAYes
	case o.Tool == gate.ToolPermissionGrant: // mutant: confirm.permission
		return offers.ErrNotAYes // what a person lets happen unasked is between them and code
	case !standsAlone(m.Text, o): // mutant: confirm.alone
		return offers.ErrNotAYes
	case (len(m.Live) > 1 || slices.Contains(m.Reading.Guards, classifier.GuardSeveralOffers)) && !names: // mutant: confirm.names
		return offers.ErrNotAYes
	}
	return nil
}

// yesEnough says whether the stored reading is a confirm, or unclear with half the weight on confirm, and nothing that a
// guard saw then speaks against it. Where several offers were open the guards that go by a label are left out: standsAlone
// asks them again, of the offer that the model has picked.
func yesEnough(rec offers.ReadingRecord) bool {
	confirm := rec.Class == classifier.Confirm.String()
	unclear := rec.Class == classifier.Unclear.String() && rec.RawP >= CitedAt
	several := slices.Contains(rec.Guards, classifier.GuardSeveralOffers)
	return (confirm || unclear) && !slices.ContainsFunc(rec.Guards, func(g string) bool {
		return !several || g != classifier.GuardSeveralOffers && !classifier.GuardGoesByLabel(g)
	})
}

// standsAlone says whether no guard objects to the words as a yes to this one offer. The stored reading does not tell: of a
// reading that was not a confirm no guard was asked, and where several offers were open none of them knew which was meant.
// A word that nobody accounts for counts against the yes here as well: a model that reads more into it is how "yes, with
// subtitles" would become a yes to an offer without.
func standsAlone(text string, o offers.Offer) bool {
	label, err := classifier.ParseLabel(o.Label)
	if err != nil {
		label = classifier.UnknownToolLabel()
	}
	in := classifier.Input{Newest: classifier.NewWords(text), Offers: []classifier.Label{label}}
	v := classifier.Read(context.Background(), sayYes{}, in, classifier.Options{})
	return v.Reading.Class == classifier.Confirm
}

// sayYes has every guard asked.
type sayYes struct{}

func (sayYes) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	r := classifier.Reading{Class: classifier.Confirm}
	r.P[classifier.Confirm] = 1
	return r, nil
}

func (sayYes) Fingerprint() string { return "" }

// Names says whether the person's own words name this offer and none of the others that they may have meant: a word of
// its label that the others do not have, and no such word of theirs. Offers that were closed since count too, or whoever
// withdraws one would choose what the words name.
func Names(text string, o offers.Offer, screen []offers.Offer) bool {
	said := wordsOf(classifier.Prepare(classifier.NewWords(text)).Own)
	mine, theirs := wordsOf(o.Label), map[string]bool{}
	for _, l := range screen {
		if l.ID != o.ID {
			for w := range wordsOf(l.Label) {
				theirs[w] = true
			}
		}
	}
	named := false
	for w := range said {
		switch {
		case mine[w] && !theirs[w]:
			named = true
		case theirs[w] && !mine[w]:
			return false
		}
	}
	return named
}

// small words stand in many labels and name none.
func small(w string) bool {
	return slices.Contains([]string{"a", "an", "the", "to", "with", "of", "for", "at", "on", "in", "and", "somebody", "people", "address", "number"}, w)
}

func wordsOf(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		if !small(w) {
			out[w] = true
		}
	}
	return out
}

func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
