package webhook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/countersign/countersign/offers"
)

// Reports takes what a provider says of a text that we sent.
type Reports interface {
	// Report makes r durable. Errors: offers.ErrNotFound for a text that is not ours; on any other the provider is told
	// 503 and tries again.
	Report(ctx context.Context, r offers.StatusReport) error
}

// statusDoor is read, report, answer.
type statusDoor struct {
	twilio  *Twilio
	reports Reports
	log     *slog.Logger
	quiet   *quiet
	observe func(int, string)
}

// NewTwilioStatusHandler serves POST /webhooks/twilio/status, where Twilio tells how far a text of ours has come. t is
// made for that URL: what is signed for the messages' URL does not hold here, nor the reverse. The query
// ?text=ID&part=N&of=N, which the text was registered with, is part of the signed URL.
//
//	200 text/xml  recorded, or of a text that is not ours (counted as "unknown_text")
//	400           malformed, not for our account, or a message
//	403           signature absent, doubled or wrong
//	405           not POST
//	408           the body did not arrive in time
//	413           over MaxBody
//	415           not a form
//	503           could not be recorded; Twilio tries again
//
// Nothing that comes in here is ever read as a reply.
func NewTwilioStatusHandler(t *Twilio, reports Reports, o Options) http.Handler {
	d := &statusDoor{twilio: t, reports: reports, log: o.Log, observe: o.Observe}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.observe == nil {
		d.observe = func(int, string) {}
	}
	d.quiet = newQuiet(d.log)
	return d
}

func (d *statusDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	report, refusal := d.twilio.ReadStatus(r)
	if refusal != nil {
		if refusal.Status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		d.quiet.refused(r.Context(), "status callback refused", refusal)
		d.refuse(w, refusal)
		return
	}
	reason := "reported"
	switch err := d.reports.Report(r.Context(), report); {
	case errors.Is(err, offers.ErrNotFound):
		// Another sender on the account, or a text that was deleted: nothing to do, and nothing that a repeat would mend.
		reason = "unknown_text"
	case err != nil:
		d.log.ErrorContext(r.Context(), "status callback not recorded", "sid", report.ProviderID)
		d.refuse(w, &Refusal{http.StatusServiceUnavailable, "not_stored"})
		return
	}
	d.observe(http.StatusOK, reason)
	w.Header().Set("Content-Type", "text/xml")
	_, _ = io.WriteString(w, emptyTwiML)
}

func (d *statusDoor) refuse(w http.ResponseWriter, r *Refusal) {
	d.observe(r.Status, r.Reason)
	http.Error(w, r.Reason, r.Status)
}

// ReadStatus proves and parses one status callback, as Read does a message.
func (t *Twilio) ReadStatus(r *http.Request) (offers.StatusReport, *Refusal) {
	_, f, refusal := t.prove(r)
	if refusal != nil {
		return offers.StatusReport{}, refusal
	}
	bad := func(reason string) (offers.StatusReport, *Refusal) {
		return offers.StatusReport{}, &Refusal{http.StatusBadRequest, reason}
	}
	for _, name := range []string{"MessageSid", "AccountSid"} {
		if len(f.values(name)) != 1 { // mutant: webhook.status-fields
			return bad("field_missing_or_repeated")
		}
	}
	for _, name := range []string{"MessageStatus", "SmsStatus", "ErrorCode"} {
		if len(f.values(name)) > 1 { // mutant: webhook.status-repeated
			return bad("field_missing_or_repeated")
		}
	}
	report := offers.StatusReport{ProviderID: f.value("MessageSid"), Status: f.value("MessageStatus")}
	switch legacy := f.value("SmsStatus"); {
	case report.Status == "":
		report.Status = legacy
	case legacy != "" && legacy != report.Status:
		return bad("two_statuses")
	}
	switch {
	case len(f.values("Body")) > 0, report.Status == "received", report.Status == "receiving": // mutant: webhook.status-message
		return bad("a_message")
	case !statusWord(report.Status):
		return bad("message_status")
	case !sidShape(report.ProviderID, "SM") && !sidShape(report.ProviderID, "MM"): // mutant: webhook.status-sid
		return bad("message_sid")
	case f.value("AccountSid") != t.accountSID: // mutant: webhook.status-account
		return bad("account_sid")
	}
	code, ok := number(f.value("ErrorCode"), 6)
	if !ok {
		return bad("error_code")
	}
	report.Code = code
	return registered(report, r.URL.RawQuery)
}

// registered adds what the text's own callback address says of it: which text, and which part of how many.
func registered(report offers.StatusReport, rawQuery string) (offers.StatusReport, *Refusal) {
	bad := &Refusal{http.StatusBadRequest, "query"}
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return offers.StatusReport{}, bad
	}
	for _, name := range []string{"text", "part", "of"} {
		if len(q[name]) > 1 {
			return offers.StatusReport{}, bad
		}
	}
	report.TextID = q.Get("text")
	part, ok1 := number(q.Get("part"), 1)
	parts, ok2 := number(q.Get("of"), 1)
	if !idShape(report.TextID) || !ok1 || !ok2 || part > parts {
		return offers.StatusReport{}, bad
	}
	report.Part, report.Parts = part, parts
	return report, nil
}

// statusWord reports a word of small letters, as all of Twilio's are; which of them mean something is not decided here.
func statusWord(s string) bool {
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' && r != '-' })
}

// idShape reports an id of ours, or none.
func idShape(s string) bool {
	return s == "" || len(s) == 36 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '-'
	})
}
