package limit

import (
	"cmp"
	"net/http"
	"time"
)

// BodyTime is how long a body may take where nothing else is said.
const BodyTime = 10 * time.Second

// Bodies gives the body of every request so long to arrive as a whole; 0: BodyTime. A server's ReadTimeout would do so for
// the whole of a request; here a request without a body, such as a long poll, has no deadline, and the server takes it off
// the connection once all of a body has been read. A handler that reads too late a body gets an error that is
// [os.ErrDeadlineExceeded]; what it does not read is not waited for either, and the connection ends with the answer.
func Bodies(next http.Handler, within time.Duration) http.Handler {
	within = cmp.Or(within, BodyTime)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			// What cannot have deadlines is no connection, and needs none.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)) // mutant: limit.body
		}
		next.ServeHTTP(w, r)
	})
}
