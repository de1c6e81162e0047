package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/webhook"
)

func TestInboundOf(t *testing.T) {
	const sid = "SM0123456789abcdef0123456789abcdef"
	sim := channel.NewSim(time.Now)
	sim.Send(t.Context(), offers.Outgoing{From: webhook.SimNumber, To: "sim:alex", Body: "Send it?\nYES or NO"})
	shown := sim.Texts("sim:alex")[0].ID
	for name, c := range map[string]struct {
		in   webhook.Inbound
		want offers.Inbound
	}{
		"words": {webhook.Inbound{Text: "yes"}, offers.Inbound{Text: "yes"}},
		"a reply to a text": {webhook.Inbound{Text: "yes", OriginalRepliedMessageSid: sid},
			offers.Inbound{Text: "yes", Quoted: sid}},
		"an opt-out": {webhook.Inbound{Text: "Cancel", OptOutType: "STOP"}, offers.Inbound{Text: "Cancel", OptOut: "STOP", Keyword: people.KeywordStop}},
		"help":       {webhook.Inbound{Text: "help!"}, offers.Inbound{Text: "help!", Keyword: people.KeywordHelp}},
		"a name that plays tricks": {webhook.Inbound{Text: "hi", ProfileName: "Owner \u2066[admin]\u202e\n\u200bok"},
			offers.Inbound{Text: "hi", Name: "Owner adminok"}},
		"a button of ours": {webhook.Inbound{Text: "Freigeben", ButtonText: "Freigeben", ButtonPayload: "confirm", OriginalRepliedMessageSid: sid},
			offers.Inbound{Text: "yes", Quoted: sid}},
		"our other button": {webhook.Inbound{Text: "Lieber nicht", ButtonText: "Lieber nicht", ButtonPayload: "no", OriginalRepliedMessageSid: sid},
			offers.Inbound{Text: "no", Quoted: sid}},
		"a button of somebody else": {webhook.Inbound{Text: "Call me", ButtonText: "Call me", ButtonPayload: "cta_7", OriginalRepliedMessageSid: sid},
			offers.Inbound{Text: "Call me", Quoted: sid}},
		"a button without its text": {webhook.Inbound{Text: "Yes", ButtonPayload: "other", OriginalRepliedMessageSid: sid},
			offers.Inbound{Text: "Yes", Quoted: sid}},
		"a button of no text of ours": {webhook.Inbound{Text: "Yes", ButtonText: "Yes", ButtonPayload: "yes"},
			offers.Inbound{Text: "yes", Lossy: true}},
		"TD-08 a picture": {webhook.Inbound{NumMedia: 1}, offers.Inbound{Lossy: true}},
		"ID-03 a group":   {webhook.Inbound{Text: "yes", OtherRecipients: []webhook.Text{"+12025550103"}}, offers.Inbound{Text: "yes", Lossy: true}},
		"lossy":           {webhook.Inbound{Text: "yes\uFFFD", Lossy: true}, offers.Inbound{Text: "yes\uFFFD", Lossy: true}},
		"the phone quotes": {webhook.Inbound{From: "sim:alex", Text: "yes", Quote: "Send it?\nYES or NO "},
			offers.Inbound{Address: "sim:alex", Text: "yes", Quoted: shown}},
		"the phone quotes another": {webhook.Inbound{From: "sim:alex", Text: "yes", Quote: "Send it?"},
			offers.Inbound{Address: "sim:alex", Text: "yes", Lossy: true}},
		"another's phone quotes": {webhook.Inbound{From: "sim:dana", Text: "yes", Quote: "Send it?\nYES or NO"},
			offers.Inbound{Address: "sim:dana", Text: "yes", Lossy: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, inboundOf(c.in, sim)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if got := inboundOf(webhook.Inbound{Text: "yes", Quote: "x"}, nil); !got.Lossy {
		t.Error("a quote counts where there is no simulated phone")
	}
}

func TestSettingsOfReplies(t *testing.T) {
	c, _, err := load(map[string]string{}, "", nil)
	if err != nil || c.TapbackConfirms || c.HourlyTexts != offers.HourlyTexts {
		t.Errorf("by default: reactions confirm %v, %d texts, %v", c.TapbackConfirms, c.HourlyTexts, err)
	}
	c, _, err = load(map[string]string{"COUNTERSIGN_TAPBACK_CONFIRMS": "1", "COUNTERSIGN_HOURLY_TEXTS": "3"}, "", nil)
	if err != nil || !c.TapbackConfirms || c.HourlyTexts != 3 {
		t.Errorf("as set: reactions confirm %v, %d texts, %v", c.TapbackConfirms, c.HourlyTexts, err)
	}
	for _, bad := range []map[string]string{
		{"COUNTERSIGN_HOURLY_TEXTS": "0"}, {"COUNTERSIGN_HOURLY_TEXTS": "-1"}, {"COUNTERSIGN_HOURLY_TEXTS": "many"}, {"COUNTERSIGN_TAPBACK_CONFIRMS": "yes"},
	} {
		if _, _, err := load(bad, "", nil); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// phones is a store of which only Report is asked.
type phones struct {
	offers.Phones
	err error
}

func (p phones) Report(context.Context, offers.StatusReport) error { return p.err }

func TestReportsWake(t *testing.T) {
	for _, err := range []error{nil, offers.ErrNotFound} {
		wake := new(offers.Wake)
		woken := wake.C()
		if got := (reports{phones{err: err}, wake, slog.New(slog.DiscardHandler)}).Report(t.Context(), offers.StatusReport{}); !errors.Is(got, err) {
			t.Errorf("error %v, want %v", got, err)
		}
		select {
		case <-woken:
			if err != nil {
				t.Error("woken by a text that is not ours")
			}
		default:
			if err == nil {
				t.Error("a text was opened, and nobody was told")
			}
		}
	}
}
