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

// The answer goes out at once; the handler, and with it the connection, ends when the message is decided, or after hold.
func TestHold(t *testing.T) {
	body := common().encode()
	for name, c := range map[string]struct {
		decidedAfter time.Duration // 0: there is nothing to wait for
		want         time.Duration
	}{
		"nothing to decide": {0, 0},
		"decided soon":      {30 * time.Millisecond, 30 * time.Millisecond},
		"decided late":      {time.Minute, hold},
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
				if c.decidedAfter > 0 {
					if got := (<-w.at).Sub(began); got != 0 {
						t.Errorf("the answer went out after %v", got)
					}
				}
				res := w.Result()
				if res.StatusCode != http.StatusOK || w.Body.String() != emptyTwiML || res.ContentLength != int64(len(emptyTwiML)) {
					t.Errorf("answer %d %q, length %d", res.StatusCode, w.Body, res.ContentLength)
				}
			})
		})
	}
}
