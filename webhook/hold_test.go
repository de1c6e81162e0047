package webhook

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// answered tells when the answer has gone out, which is before the handler ends.
type answered struct {
	*httptest.ResponseRecorder
	at chan time.Time
}

func (a answered) Flush() { a.ResponseRecorder.Flush(); a.at <- time.Now() }

// The answer goes out when the message is decided, or after a moment; the handler, and with it the connection, ends when it
// is decided, or after hold.
func TestHold(t *testing.T) {
	body := common().encode()
	for name, c := range map[string]struct {
		decidedAfter time.Duration // 0: there is nothing to wait for
		flushed      time.Duration // 0: the answer goes out with the handler's end
		want         time.Duration
	}{
		"nothing to decide": {0, 0, 0},
		"decided at once":   {2 * time.Millisecond, 0, 2 * time.Millisecond},
		"decided soon":      {30 * time.Millisecond, answerWithin, 30 * time.Millisecond},
		"decided late":      {time.Minute, answerWithin, hold},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box := &inbox{}
				if c.decidedAfter > 0 {
					box.decided = make(chan struct{})
					time.AfterFunc(c.decidedAfter, func() { close(box.decided) })
				}
				w := answered{httptest.NewRecorder(), make(chan time.Time, 1)}
				began := time.Now()
				NewTwilioHandler(newTwilio(t, config()), box, Options{}).
					ServeHTTP(w, request{body: body, signature: reference(t, testToken, testURL, body)}.http())
				if got := time.Since(began); got != c.want {
					t.Errorf("the handler ended after %v, want %v", got, c.want)
				}
				if c.flushed > 0 {
					if got := (<-w.at).Sub(began); got != c.flushed {
						t.Errorf("the answer went out after %v", got)
					}
				} else if len(w.at) > 0 {
					t.Error("the answer went out before the end")
				}
				res := w.Result()
				if res.StatusCode != http.StatusOK || w.Body.String() != emptyTwiML || res.ContentLength != int64(len(emptyTwiML)) {
					t.Errorf("answer %d %q, length %d", res.StatusCode, w.Body, res.ContentLength)
				}
			})
		})
	}
}
