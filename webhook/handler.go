package webhook

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// emptyTwiML answers Twilio without a text to anybody.
const emptyTwiML = "<Response></Response>"

const (
	// answerWithin is how long the answer waits for the message to be decided. Most are within a millisecond or two, and a
	// provider that sends the next message when the last one is answered then has it read at once.
	answerWithin = 10 * time.Millisecond
	// hold is how long a connection takes no further request while the message of the last one is undecided. The answer has
	// gone out by then: only who sends faster than messages are decided is slowed down, and his messages wait with him and
	// not in a queue.
	hold = 250 * time.Millisecond
)

// Options are what both handlers share. The zero value logs and counts nothing.
type Options struct {
	Log     *slog.Logger                    // refusals, without any part of the message
	Observe func(status int, reason string) // called once per request, for counters; reason "stored" with 200
}

// reader proves and parses one request.
type reader func(*http.Request) (Inbound, *Refusal)

// door is read, store, answer: one order for both providers.
type door struct {
	read    reader
	intake  Intake
	log     *slog.Logger
	quiet   *quiet
	observe func(int, string)
}

func newDoor(read reader, intake Intake, o Options) http.Handler {
	d := &door{read: read, intake: intake, log: o.Log, observe: o.Observe}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.observe == nil {
		d.observe = func(int, string) {}
	}
	d.quiet = newQuiet(d.log)
	return d
}

// NewTwilioHandler serves POST /webhooks/twilio/messages:
//
//	200 text/xml  stored, or stored before
//	400           malformed, or not for our account or number
//	403           signature absent, doubled or wrong
//	405           not POST
//	408           the body did not arrive in time
//	413           over MaxBody
//	415           not a form (JSON is not supported: its body is not signed)
//	429           from a stranger, beyond the rate: not stored
//	503           could not be stored; Twilio tries again
func NewTwilioHandler(t *Twilio, intake Intake, o Options) http.Handler {
	return newDoor(t.Read, intake, o)
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, refusal := d.read(r)
	if refusal != nil {
		if refusal.Status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		d.quiet.refused(r.Context(), "inbound message refused", refusal)
		d.refuse(w, refusal.Status, refusal.Reason)
		return
	}
	decided, err := d.intake.Receive(r.Context(), in)
	if over := (*Limited)(nil); errors.As(err, &over) {
		d.quiet.refused(r.Context(), "inbound message refused", &Refusal{http.StatusTooManyRequests, "rate_limited"})
		w.Header().Set("Retry-After", strconv.Itoa(over.RetryAfter))
		d.refuse(w, http.StatusTooManyRequests, "rate_limited")
		return
	}
	if err != nil {
		// Not stored is not acknowledged. The error is the store's and is logged
		// there; its text may quote a row, so it is not repeated here.
		d.log.ErrorContext(r.Context(), "inbound message not stored", "message", in)
		d.refuse(w, http.StatusServiceUnavailable, "not_stored")
		return
	}
	d.observe(http.StatusOK, "stored")
	late := decided != nil && !within(r, decided, answerWithin)
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(emptyTwiML))) // or the answer would end with the handler
	_, _ = io.WriteString(w, emptyTwiML)
	if late && http.NewResponseController(w).Flush() == nil {
		within(r, decided, hold-answerWithin)
	}
}

// within waits for a message to be decided, and says whether it was by then.
func within(r *http.Request, decided <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-decided:
		return true
	case <-t.C:
	case <-r.Context().Done():
	}
	return false
}

func (d *door) refuse(w http.ResponseWriter, status int, reason string) {
	d.observe(status, reason)
	http.Error(w, reason, status)
}
