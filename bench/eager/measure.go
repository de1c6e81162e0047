package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/local"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/sqlite"
)

// Readers.
const (
	readerLocal     = "local"
	readerAdversary = "adversary"
)

var errReader = errors.New("-reader is local or adversary")

const (
	minRead = time.Second
	// enough for a yes to count, and for texts not to cross.
	readingTime = 2 * offers.CrossFactor * minRead
	ourNumber   = people.Address("sim:countersign")
)

// start is when the measurement begins; any time will do.
var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// clock is the store's.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// world is a store with what decides over it.
type world struct {
	store     *sqlite.Store
	clock     *clock
	processor *reply.Processor
	confirmer *reply.Confirmer
	agent     string // the id of the agent's key
	serial    int
}

// newReader makes the reader as a server has it.
func newReader(name string) (classifier.Reader, float64, error) {
	switch name {
	case readerAdversary:
		return nearlySure{}, 1, nil
	case readerLocal:
		inner, err := local.New()
		if err != nil {
			return nil, 0, err
		}
		f, err := calibration.Load(local.CalibrationFile())
		if err != nil {
			return nil, 0, err
		}
		r := calibration.Calibrated(inner, f, inner)
		return r, max(f.Threshold, classifier.ActThreshold), r.Err()
	}
	return nil, 0, errReader
}

// nearlySure says confirm to everything, a little less sure than code needs, so that all is left to the main model.
type nearlySure struct{}

func (nearlySure) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	r := classifier.Reading{Class: classifier.Confirm}
	r.P[classifier.Confirm], r.P[classifier.Unclear] = 0.89, 0.11
	return r, nil
}

func (nearlySure) Fingerprint() string { return readerAdversary }

func open(ctx context.Context, dir, reader string) (*world, error) {
	r, threshold, err := newReader(reader)
	if err != nil {
		return nil, err
	}
	w := &world{clock: &clock{now: start}, agent: offers.NewID()}
	if w.store, err = sqlite.Open(ctx, filepath.Join(dir, "eager.db"), sqlite.WithClock(w.clock.read)); err != nil {
		return nil, err
	}
	if _, err = w.store.Migrate(ctx); err == nil {
		_, hash := people.NewSecret()
		err = w.store.AddKey(ctx, people.Key{ID: w.agent, AccountID: people.DefaultAccount, Name: "eager", Scope: people.ScopeAgent}, hash)
	}
	wake := &offers.Wake{}
	if err == nil {
		w.processor, err = reply.NewProcessor(w.store, r, reply.Config{Threshold: threshold, MinRead: minRead}, wake, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return nil, errors.Join(err, w.store.Close())
	}
	w.confirmer = reply.NewConfirmer(w.store, minRead, wake)
	return w, nil
}

func measure(ctx context.Context, reader string, rows []row) (t *tally, err error) {
	dir, err := os.MkdirTemp("", "countersign-eager")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	w, err := open(ctx, dir, reader)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.store.Close()) }()
	t = &tally{stopped: map[string]int{}}
	for i, r := range rows {
		t.rows[r.Label]++
		if err := w.try(ctx, t, r); err != nil {
			return nil, fmt.Errorf("row %d %s: %w", i+1, r.ID, err)
		}
	}
	return t, nil
}

// try plays one row with a person of its own.
func (w *world) try(ctx context.Context, t *tally, r row) error {
	w.serial++
	p := people.Person{
		ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address(fmt.Sprintf("sim:p%d", w.serial)), OurNumber: ourNumber}},
	}
	if err := w.store.AddPerson(ctx, p); err != nil {
		return err
	}
	// Earlier texts are there before the offers are: nobody's yes to these.
	for i, e := range slices.Backward(r.Earlier) {
		m, err := w.says(ctx, p, fmt.Sprint("e", i), e)
		if err != nil {
			return err
		}
		if err := w.processor.Process(ctx, m); err != nil {
			return err
		}
	}
	for i, label := range r.Offers {
		if err := w.ask(ctx, p, i, label); err != nil {
			return err
		}
	}
	if err := w.sendAll(ctx); err != nil {
		return err
	}
	w.clock.advance(readingTime)
	if err := w.store.Polled(ctx, w.agent); err != nil { // an agent listens: what is not sure is left to it
		return err
	}
	m, err := w.says(ctx, p, "m", r.Text)
	if err != nil {
		return err
	}
	live := m.Live
	if err := w.processor.Process(ctx, m); err != nil {
		return err
	}
	return w.confirm(ctx, t, r, m, live)
}

// confirm is the main model: it tries every offer that was open.
func (w *world) confirm(ctx context.Context, t *tally, r row, m offers.Received, live []offers.Offer) error {
	c, err := w.store.CitedMessage(ctx, m.AccountID, m.MessageID)
	if err != nil {
		return err
	}
	if c.Used {
		t.byCode[r.Label]++
		return nil
	}
	stop := "no offer"
	for _, o := range live {
		sum, err := offers.ParseHex(o.ArgsSHA256)
		if err != nil {
			return err
		}
		_, err = w.confirmer.Confirm(ctx, reply.ConfirmRequest{
			AccountID: m.AccountID, OfferID: o.ID, RunID: m.RunID, MessageID: m.MessageID,
			Quote: classifier.Prepare(classifier.NewWords(m.Text)).Own, ArgsSum: sum,
		})
		if err == nil {
			t.through[r.Label] = append(t.through[r.Label], passed{row: r, guards: c.Reading.Guards, class: c.Reading.Class, p: c.Reading.RawP})
			return nil
		}
		if stop = reason(err, c.Reading); stop == "" {
			return err
		}
	}
	if r.Label == classifier.Confirm {
		t.stopped[stop]++
	}
	return nil
}

// reason says what stood in the model's way; "" is no refusal at all.
func reason(err error, rec offers.ReadingRecord) string {
	var refused *offers.Refusal
	switch {
	case errors.Is(err, offers.ErrNotAYes) && len(rec.Guards) > 0:
		return "guards " + strings.Join(rec.Guards, "+")
	case errors.Is(err, offers.ErrNotAYes):
		return "read as " + rec.Class
	case errors.As(err, &refused):
		return string(refused.Why)
	case errors.Is(err, offers.ErrOfferClosed):
		return "closed by " + rec.Class
	case errors.Is(err, offers.ErrQuote):
		return "no words"
	}
	return ""
}

func (w *world) says(ctx context.Context, p people.Person, kind, text string) (offers.Received, error) {
	return w.store.Receive(ctx, offers.Inbound{
		Provider: "sim", ProviderID: fmt.Sprintf("%s-%d", kind, w.serial), Address: p.Addresses[0].Address, OurNumber: ourNumber, Text: text, Raw: []byte(text),
	})
}

// ask opens an offer with a row's label; the gate's answer and the shown text are of no matter here.
func (w *world) ask(ctx context.Context, p people.Person, i int, label string) error {
	args, sum, err := offers.Canonical(fmt.Appendf(nil, `{"row":%d,"offer":%d}`, w.serial, i))
	if err != nil {
		return err
	}
	pr := offers.Proposal{
		AccountID: p.AccountID, Call: "POST /v1/offers", Key: fmt.Sprintf("%d-%d", w.serial, i), BodySum: sum, PersonID: p.ID,
		Kind: string(gate.KindToolCall), Tool: "row", Args: args, ArgsSum: sum, Present: offers.PresentNow,
	}
	_, _, err = w.store.Propose(ctx, pr, func(f offers.Facts) (offers.Plan, error) {
		d := &offers.Draft{Label: label, ShownText: label + "\nReply YES or NO.", AskLine: "Reply YES or NO.", TTL: gate.OutwardExpires}
		var err error
		d.BindingSum, err = offers.Binding{AccountID: pr.AccountID, OperationID: f.OperationID, PersonID: p.ID, Tool: pr.Tool, ArgsSHA256: offers.Hex(sum)}.Sum()
		return offers.Plan{Offer: d, Decision: gate.Decision{
			Answer: gate.Ask, Reason: gate.ReasonFloorUnknownTool, Rule: "3", Tier: gate.TierOwner, Capability: gate.CapProcessExec,
		}}, err
	})
	return err
}

// sendAll lets the carrier take whatever is in line.
func (w *world) sendAll(ctx context.Context) error {
	for {
		text, err := w.store.Reserve(ctx)
		if err != nil || text == nil {
			return err
		}
		if err := w.store.Sent(ctx, text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: text.ID}); err != nil {
			return err
		}
	}
}
