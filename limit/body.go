package limit

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// BodyTime is how long a body may take where nothing else is said.
const BodyTime = 10 * time.Second

// Bodies gives the body of every request so long to arrive as a whole. A server's ReadTimeout would do so too, but it
// would also end long polls, whose connections are read all the while to see whether the caller has gone. A handler that
// reads too late a body gets an error that is [os.ErrDeadlineExceeded]; what it does not read is not waited for either.
func Bodies(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			// What cannot have deadlines is no connection, and needs none.
			if rc.SetReadDeadline(time.Now().Add(within)) == nil { // mutant: limit.body
				// A copy: by its own the server sees what was left unread, and ends the connection after the answer.
				r = r.WithContext(r.Context()) // mutant: limit.body-copy
				r.Body = &body{r.Body, rc}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// body takes the deadline off the connection when all of it has arrived.
type body struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) { // mutant: limit.body-over
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
