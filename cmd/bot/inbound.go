package main

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

// inboundOf gives a proven message the form in which it is stored: a button becomes the words that it stands for, and a
// quote the id of the text that it is of. Whatever the words alone do not tell makes them unfit for a decision: a picture,
// other recipients, a quote of a text that we do not know, a button that names no text.
func inboundOf(in webhook.Inbound, sim *channel.Sim) offers.Inbound {
	out := offers.Inbound{
		Provider: in.Provider, ProviderID: in.ProviderSID, Address: in.From, OurNumber: in.To, Text: string(in.Text), Raw: in.Raw,
		Quoted: in.OriginalRepliedMessageSid, OptOut: in.OptOutType,
	}
	if in.Quote != "" && sim != nil {
		out.Quoted = sim.Find(in.From, string(in.Quote))
	}
	button := in.ButtonPayload != "" || in.ButtonText != ""
	if button {
		if words := classifier.FromButton(string(in.ButtonPayload), string(in.ButtonText)).String(); words != "" {
			out.Text = words
		}
	}
	out.Keyword, out.Name = keyword(in.OptOutType, out.Text), people.CleanName(string(in.ProfileName))
	out.Lossy = in.Lossy || in.NumMedia > 0 || len(in.OtherRecipients) > 0 || (button || in.Quote != "") && out.Quoted == ""
	return out
}

// keyword is the provider's own word, or the one that stands alone in the text.
func keyword(provider, text string) people.Keyword {
	switch k := people.Keyword(provider); k {
	case people.KeywordStop, people.KeywordStart, people.KeywordHelp:
		return k
	}
	switch classifier.KeywordOf(classifier.NewWords(text)) {
	case classifier.KeywordStop:
		return people.KeywordStop
	case classifier.KeywordStart:
		return people.KeywordStart
	case classifier.KeywordHelp:
		return people.KeywordHelp
	}
	return ""
}

// reports records status callbacks and wakes who waits for what they open.
type reports struct {
	phones offers.Phones
	wake   *offers.Wake
	log    *slog.Logger
}

// Report implements [webhook.Reports].
func (r reports) Report(ctx context.Context, s offers.StatusReport) error {
	err := r.phones.Report(ctx, s)
	if err == nil {
		r.wake.Signal()
	} else if !errors.Is(err, offers.ErrNotFound) {
		r.log.ErrorContext(ctx, "status callback not recorded", "error", err)
	}
	return err
}

// countWebhooks counts the provider's requests: by door, status and reason, of which there are a fixed few.
func countWebhooks(metrics prometheus.Registerer) func(door string) func(status int, reason string) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_webhook_requests_total", Help: "Requests of the provider, by what came of them.",
	}, []string{"door", "status", "reason"})
	metrics.MustRegister(requests)
	return func(door string) func(int, string) {
		return func(status int, reason string) { requests.WithLabelValues(door, strconv.Itoa(status), reason).Inc() }
	}
}
