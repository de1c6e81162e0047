package limit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// dribble sends a request whose body ends before its length, and returns what is answered.
func dribble(t *testing.T, addr, head, part string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, head+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"+part); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestBodies(t *testing.T) {
	const within = 50 * time.Millisecond
	gone := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	mux.HandleFunc("POST /closed", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
		w.WriteHeader(http.StatusRequestTimeout)
	})
	mux.HandleFunc("POST /unread", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/waits", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select { // far beyond the deadline
		case <-time.After(6 * within):
			gone <- nil
		case <-r.Context().Done():
			gone <- r.Context().Err()
		}
	})
	s := httptest.NewServer(Bodies(mux, within))
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	if res := dribble(t, addr, "POST /read", "abc"); res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that does not come: %d", res.StatusCode)
	}
	// The connection ends with that: what would still come of the body is no request.
	if res := dribble(t, addr, "POST /closed", "abc"); res.StatusCode != http.StatusRequestTimeout || !res.Close {
		t.Errorf("a body that does not come, and was closed: %d, the connection ends: %v", res.StatusCode, res.Close)
	}
	if res := dribble(t, addr, "POST /unread", ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("a body that nobody reads: %d", res.StatusCode)
	}
	// What waits after its body has come, or has none, waits on: the deadline is off the connection.
	for _, body := range []io.Reader{strings.NewReader("all of it"), nil} {
		res, err := http.Post(s.URL+"/waits", "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if err := <-gone; err != nil {
			t.Errorf("a long wait was ended: %v", err)
		}
	}
}
