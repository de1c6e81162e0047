// Package reply turns one inbound message into exactly one outcome.
//
// The message and the context of its decision come from the store in one read. A reader and its guards type the words;
// [decide], which is pure, picks what is to happen; one store call makes it so. No outcome but the store's conditional
// update releases anything.
package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/offers"
)

// Least probabilities for ending an offer without a release. Being wrong here costs a new offer, not an effect.
const (
	DeclineAt = 0.5
	ModifyAt  = 0.5
)

// Config of a [Processor].
type Config struct {
	Threshold float64       // for confirm; at least classifier.ActThreshold
	MinRead   time.Duration // from the newest ask to the earliest yes
	// TapbackConfirms lets a like or a heart pass for a yes where it quotes the whole text of the only open offer. Every
	// other condition of a yes stands.
	TapbackConfirms bool
	HourlyTexts     int // questions and notices of the service's own to one person within an hour; 0: offers.HourlyTexts
	// Drift counts what becomes of replies to offers; nil: nothing does.
	Drift *Drift
	// Said takes permissions from owners' words; nil: nobody's words are one.
	Said *Hearing
}

// Inbox is what a [Processor] works with.
type Inbox interface {
	offers.Inbox
	offers.Phones
	AnswerPermissions(ctx context.Context, a offers.PermissionsAnswer) error
}

// Processor decides messages.
type Processor struct {
	inbox  Inbox
	reader classifier.Reader
	cfg    Config
	wake   *offers.Wake
	log    *slog.Logger
}

// NewProcessor makes a processor. Errors: classifier.ErrThreshold for a threshold under the floor.
func NewProcessor(inbox Inbox, reader classifier.Reader, cfg Config, wake *offers.Wake, log *slog.Logger) (*Processor, error) {
	if _, err := classifier.NewThreshold(cfg.Threshold); err != nil {
		return nil, fmt.Errorf("reply: %w", err)
	}
	if cfg.MinRead <= 0 {
		return nil, errors.New("reply: min_read must be above zero")
	}
	return &Processor{inbox: inbox, reader: reader, cfg: cfg, wake: wake, log: log}, nil
}

// Process decides a stored message. It is safe to call again, by anybody, at any time: a message that was decided
// stays as it is. An error means that nothing was decided; the message is found again by [Runner].
func (p *Processor) Process(ctx context.Context, r offers.Received) error {
	if !r.Trusted || r.Decided {
		return nil
	}
	var v classifier.Verdict // of an overtaken message nothing is read, unless it may take a yes back
	if !r.Overtaken || mayTakeBack(r) {
		v = tapped(r, classifier.Read(ctx, p.reader, input(r), classifier.Options{}), p.cfg.TapbackConfirms)
	}
	if v.Err != nil {
		p.log.WarnContext(ctx, "reader did not answer", "message", r, "error", v.Err)
	}
	out := decide(r, v, p.cfg.Threshold)
	if out.action == choose { // mutant: reply.choose-listening
		var err error
		if r.Listening, err = p.inbox.Listening(ctx, r.AccountID, r.PersonID); err != nil {
			return fmt.Errorf("message %s: %w", r.MessageID, err)
		}
		out = decide(r, v, p.cfg.Threshold)
	}
	rec := record(v, p.reader.Fingerprint())
	if reaction(v) {
		rec.Reader = "tapback" // no model has read it
	}
	quiet, err := p.act(ctx, r, out, v, rec)
	if err != nil {
		return fmt.Errorf("message %s: %w", r.MessageID, err)
	}
	if len(r.Live) > 0 && !r.Overtaken {
		p.cfg.Drift.Observe(v.Reading.Class, out.action == confirm && quiet)
	}
	if quiet {
		p.wake.SignalEvents()
	} else {
		p.wake.Signal()
	}
	return nil
}

// input is what a reader may see: the person's own words, and labels that code wrote.
func input(r offers.Received) classifier.Input {
	in := classifier.Input{Newest: classifier.NewWords(r.Text)}
	for _, e := range r.Earlier {
		in.Earlier = append(in.Earlier, classifier.NewWords(e))
	}
	for _, o := range r.Live {
		label, err := classifier.ParseLabel(o.Label)
		if err != nil {
			label = classifier.UnknownToolLabel()
		}
		in.Offers = append(in.Offers, label)
	}
	return in
}

// action is what is to be tried. The zero value passes the message on and touches no offer.
type action uint8

const (
	pass action = iota
	confirm
	decline
	modify
	optOut // STOP: no text goes there any more
	optIn  // START from somebody who had opted out
	end    // HELP: the carrier has answered
	choose // a number that picks one of several
	tell   // a message about what may be done without asking: code answers it
)

// outcome is the answer of decide.
type outcome struct {
	action action
	event  offers.EventType // for pass, and where the action turns out not to hold
	why    offers.Why
	chosen int     // for choose: the number
	asks   *asksOf // for tell
	cancel bool    // besides: take back every yes that is still settling
}

// decide is the table of what code does with a message and its reading.
func decide(r offers.Received, v classifier.Verdict, threshold float64) outcome {
	words := classifier.NewWords(r.Text)
	keyword := classifier.KeywordOf(words)
	switch {
	case r.OptOut == "STOP" || keyword == classifier.KeywordStop: // mutant: reply.stop
		return outcome{action: optOut, cancel: mayTakeBack(r)}
	case r.OptOut == "HELP" || keyword == classifier.KeywordHelp: // mutant: reply.help
		return outcome{action: end}
	case r.OptedOut && (r.OptOut == "START" || classifier.OptsIn(words)): // mutant: reply.start
		return outcome{action: optIn, event: offers.MessageReceived}
	}
	if asks := permissionsAsk(r); asks != nil {
		return outcome{action: tell, event: offers.MessageReceived, asks: asks}
	}
	out := answer(r, v, threshold)
	if r.Overtaken { // mutant: reply.overtaken
		out = outcome{event: offers.MessageReceived, why: offers.WhyNewer}
	}
	out.cancel = mayTakeBack(r) && takesBack(v) // mutant: reply.cancel
	return out
}

// tapped gives a reaction the reading that it stands for, where it quotes the whole text of the only open offer: a dislike
// is a no, and a like or a heart is a yes if that is configured. Any other reaction stays unclear, and so does one whose
// quote is cut short: the end of a text is what tells two offers apart.
func tapped(r offers.Received, v classifier.Verdict, confirms bool) classifier.Verdict {
	t := v.Prepared.Tapback
	if v.Prepared.Form != classifier.FormTapback || len(r.Live) != 1 || !t.Quotes(r.Live[0].ShownText) { // mutant: reply.tapback_quote
		return v
	}
	class := classifier.Unclear
	switch t.Kind {
	case classifier.TapbackDislike:
		class = classifier.Decline
	case classifier.TapbackLike, classifier.TapbackLove:
		if confirms { // mutant: reply.tapback_confirms
			class = classifier.Confirm
		}
	}
	v.Reading = classifier.Reading{Class: class}
	v.Reading.P[class] = 1
	return v
}

// mayTakeBack says whether there may be a yes to take back: one settles, or an offer was live when the context was read, and
// a message that came later may have approved it since. The store looks again.
func mayTakeBack(r offers.Received) bool { return r.Settling > 0 || len(r.Live) > 0 }

// takesBack says whether a reply that comes while a yes settles may mean "wait, no". Taking back a yes that was meant
// costs a new offer, so less than a sure no suffices: what could not be read counts, and a reaction that is taken away.
func takesBack(v classifier.Verdict) bool {
	switch got := v.Reading; {
	case v.Err != nil: // mutant: reply.cancel_unread
		return true
	case v.Prepared.Form == classifier.FormTapbackRemoved: // mutant: reply.cancel_removed
		return v.Prepared.Tapback.Kind != classifier.TapbackDislike
	case v.Prepared.Form == classifier.FormTapback:
		return v.Prepared.Tapback.Kind == classifier.TapbackDislike
	default:
		return got.Class == classifier.Decline || got.Class == classifier.Modify || got.P[classifier.Decline]+got.P[classifier.Modify] >= DeclineAt
	}
}

// answer is the part of the table that goes by the reading.
func answer(r offers.Received, v classifier.Verdict, threshold float64) outcome {
	got := v.Reading
	switch {
	case len(r.Live) == 0, got.Class == classifier.Unrelated:
		return outcome{event: offers.MessageReceived}
	case r.Lossy: // mutant: reply.lossy
		return outcome{event: offers.ReplyUnresolved, why: offers.WhyReadingSays}
	case v.Err != nil:
		return outcome{event: offers.ReplyUnresolved, why: offers.WhyReaderFailed}
	case len(r.Live) > 1: // mutant: reply.exactly_one
		if n, ok := picked(r); ok && !r.Listening {
			return outcome{action: choose, chosen: n, event: offers.ReplyUnresolved}
		}
		return outcome{event: offers.ReplyUnresolved, why: offers.WhySeveral}
	case r.Quoted != "" && r.QuotedFor != r.Live[0].ID: // mutant: reply.quoted
		return outcome{event: offers.ReplyUnresolved, why: offers.WhyQuoted}
	case reaction(v) && got.Class == classifier.Unclear:
		return outcome{event: offers.ReplyUnresolved, why: offers.WhyTapback}
	case v.Confirms(threshold): // mutant: reply.threshold
		return outcome{action: confirm, event: offers.ReplyUnresolved}
	case got.Class == classifier.Decline && got.P[classifier.Decline] >= DeclineAt:
		return outcome{action: decline, event: offers.ReplyUnresolved}
	case got.Class == classifier.Modify && got.P[classifier.Modify] >= ModifyAt:
		return outcome{action: modify, event: offers.ReplyUnresolved}
	}
	return outcome{event: offers.ReplyUnresolved, why: offers.WhyReadingSays}
}

func reaction(v classifier.Verdict) bool {
	return v.Prepared.Form == classifier.FormTapback || v.Prepared.Form == classifier.FormTapbackRemoved
}

// picked reads a reply that is nothing but a number. Whether a list was shown that has it, and what it stands for there, is
// for the store to say.
func picked(r offers.Received) (int, bool) {
	own := strings.Trim(classifier.Prepare(classifier.NewWords(r.Text)).Own, " \t\r\n.)#")
	n, err := strconv.Atoi(own)
	return n, err == nil && n >= 1 && n <= len(r.Live)
}

// act makes the outcome so. Where the store refuses, the message goes to the main model with the refusal's reason. quiet
// says that no text came in line with it, as with a yes: its receipt waits for the result.
func (p *Processor) act(ctx context.Context, r offers.Received, out outcome, v classifier.Verdict, rec offers.ReadingRecord) (quiet bool, err error) {
	err = p.try(ctx, r, out, v, rec)
	var refused *offers.Refusal
	switch {
	case decided(err):
		return true, nil
	case errors.As(err, &refused):
		out.why = refused.Why
	case err != nil:
		return false, err
	case out.action != pass:
		return out.action == confirm && !out.cancel, nil
	}
	if err = p.pass(ctx, r, out, v, rec); decided(err) {
		return true, nil
	}
	return false, err
}

// decided says whether the store refused because somebody else has decided the message in the meantime.
func decided(err error) bool {
	var refused *offers.Refusal
	return errors.As(err, &refused) && refused.Why == offers.WhyDecided
}

// pass hands the message to the agent, with the question that the service puts to the person on its own and what the words
// say of permissions.
func (p *Processor) pass(ctx context.Context, r offers.Received, out outcome, v classifier.Verdict, rec offers.ReadingRecord) error {
	req := offers.PassRequest{
		MessageID: r.MessageID, PersonID: r.PersonID, Type: out.event, Reading: rec, Data: data(r, v, out),
	}
	if out.event == offers.ReplyUnresolved { // mutant: reply.pass-listening
		var err error
		if r.Listening, err = p.inbox.Listening(ctx, r.AccountID, r.PersonID); err != nil {
			return err
		}
	}
	req.Reask, req.ReaskText = question(r, v, out)
	if req.Reask != "" && len(r.Live) == 1 {
		ended, err := p.inbox.Ended(ctx, req.Reask)
		if err != nil {
			return err
		}
		req.ReaskText = offers.NotOpen(ended) + req.ReaskText // mutant: reply.ended
	}
	req.Hourly = p.cfg.HourlyTexts
	if len(r.Live) > 1 {
		for _, o := range r.Live {
			req.Listed = append(req.Listed, o.ID)
		}
	}
	req.Asked, req.TakesBack, req.Ends = p.hear(ctx, r, v, out), takesBackAsk(r, v), stopsFor(r)
	return p.inbox.Pass(ctx, req)
}

// question is what the service puts to the person on its own: the one offer's question again where texts crossed in the
// air, since the yes may have been meant for what was on the screen before; and, where no agent listens that could ask,
// for every reply that stays unresolved. A machine that answers by itself is asked nothing.
func question(r offers.Received, v classifier.Verdict, out outcome) (offerID, text string) {
	crossed := out.why == offers.WhyCrossed || out.why == offers.WhyTooSoon
	switch {
	case v.Prepared.Form == classifier.FormAutoReply: // mutant: reply.machine
		return "", ""
	case out.event != offers.ReplyUnresolved || len(r.Live) == 0 || r.Listening && !crossed:
		return "", ""
	case len(r.Live) == 1:
		return r.Live[0].ID, offers.Question(r.Live[0])
	}
	asked := r.Live[0]
	for _, o := range r.Live {
		if o.State == offers.Open { // the list counts as a question about one that can be asked about
			asked = o
			break
		}
	}
	return asked.ID, offers.WhichOne(r.Live)
}

func (p *Processor) try(ctx context.Context, r offers.Received, out outcome, v classifier.Verdict, rec offers.ReadingRecord) error {
	if out.cancel {
		if _, err := p.inbox.CancelSettling(ctx, r.MessageID, r.PersonID, offers.CancelledReceipt); err != nil {
			return err
		}
	}
	switch out.action {
	case pass:
		return nil
	case optOut:
		return p.inbox.OptOut(ctx, offers.OptOutRequest{MessageID: r.MessageID, PersonID: r.PersonID, Reading: rec})
	case optIn:
		return p.inbox.OptIn(ctx, offers.PassRequest{MessageID: r.MessageID, PersonID: r.PersonID, Type: out.event, Reading: rec, Data: data(r, v, out)})
	case end:
		return p.inbox.End(ctx, r.MessageID, r.PersonID, rec)
	case tell:
		return p.inbox.AnswerPermissions(ctx, answerTo(r, out.asks, rec, p.cfg.HourlyTexts))
	case choose:
		return p.inbox.Choose(ctx, offers.ChooseRequest{
			MessageID: r.MessageID, PersonID: r.PersonID, Number: out.chosen, MinRead: p.cfg.MinRead, Reading: rec, Data: data(r, v, outcome{}),
		})
	}
	o := r.Live[0]
	closer := offers.Closer{MessageID: r.MessageID, Reading: v.Reading.Class.String(), P: v.Reading.P[v.Reading.Class]}
	switch out.action {
	case confirm:
		win, err := p.inbox.Consume(ctx, offers.ConsumeRequest{
			Offer: o, MessageID: r.MessageID, PersonID: r.PersonID, RunID: r.RunID, Closer: closer, Reading: rec,
			Tiers: offers.TiersHolding(o.Capability), MinRead: p.cfg.MinRead,
		})
		if err != nil {
			return err
		}
		p.log.InfoContext(ctx, "approved", "offer", win.Offer, "message_id", r.MessageID, "repeat", win.Repeat)
		return nil
	case decline:
		_, err := p.inbox.CloseByReply(ctx, offers.CloseRequest{
			Offer: o, MessageID: r.MessageID, PersonID: r.PersonID, State: offers.Declined, Closer: closer, Reading: rec,
			Receipt: offers.DeclinedReceipt(o), Ends: stopsFor(r),
		})
		return err
	case modify:
		tell := data(r, v, outcome{})
		_, err := p.inbox.CloseByReply(ctx, offers.CloseRequest{
			Offer: o, MessageID: r.MessageID, PersonID: r.PersonID, State: offers.Modified, Closer: closer, Reading: rec, Tell: &tell, Ends: stopsFor(r),
		})
		return err
	}
	return nil
}

func data(r offers.Received, v classifier.Verdict, out outcome) offers.ReplyData {
	d := offers.ReplyData{
		RunID: r.RunID, MessageID: r.MessageID, PersonID: r.PersonID, Text: r.Text,
		Reading: v.Reading.Class.String(), P: v.Reading.P[v.Reading.Class], Why: string(out.why),
	}
	if out.event == offers.ReplyUnresolved {
		d.Offers = r.Live
	}
	return d
}

func record(v classifier.Verdict, fingerprint string) offers.ReadingRecord {
	rec := offers.ReadingRecord{Class: v.Reading.Class.String(), P: make(map[string]float64, classifier.Classes), RawP: v.Raw.P[classifier.Confirm], Guards: v.Guards, Reader: fingerprint}
	for c, p := range v.Reading.P {
		rec.P[classifier.Class(c).String()] = p //nolint:gosec // an index of a small array
	}
	return rec
}
