package webhook

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func simRequest(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/sim/messages", strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Content-Type", "application/json")
	return r
}

func postSim(r *http.Request) (*http.Response, *inbox) {
	box := &inbox{}
	rec := httptest.NewRecorder()
	NewSimHandler(box, Options{}).ServeHTTP(rec, r)
	return rec.Result(), box
}

const simYes = `{"id":"m1","address":"sim:alex","text":" ya send it ","quote":"Send it?"}`

func TestSimMessage(t *testing.T) {
	res, box := postSim(simRequest(simYes))
	in := wantTaken(t, res, box)
	if in.Provider != "sim" || in.ProviderSID != "m1" || in.From != "sim:alex" || in.To != "sim:countersign" ||
		in.Text != " ya send it " || string(in.Body) != " ya send it " || in.Quote != "Send it?" || in.Lossy ||
		string(in.Raw) != simYes {
		t.Errorf("took %q %q from %q to %q, quote %q", in.ProviderSID, string(in.Text), string(in.From), string(in.To), string(in.Quote))
	}
	res, box = postSim(simRequest(`{"id":"m2","address":"sim:alex","text":"yes\u0000no"}`))
	if in := wantTaken(t, res, box); !in.Lossy || string(in.Body) != "yes\x00no" || in.Text != "yes\uFFFDno" {
		t.Errorf("NUL: lossy %v body %q", in.Lossy, string(in.Body))
	}
	res, box = postSim(simRequest(`{"id":"m3","address":"sim:alex","text":""}`))
	wantTaken(t, res, box)
}

func TestSimRefusesBodies(t *testing.T) {
	for name, body := range map[string]string{
		"empty":            ``,
		"not an object":    `[]`,
		"null":             `null`,
		"two values":       simYes + simYes,
		"duplicate key":    `{"id":"m1","address":"sim:alex","text":"no","text":"yes"}`,
		"duplicate sender": `{"id":"m1","address":"sim:alex","address":"sim:dana","text":"yes"}`,
		"other case":       `{"ID":"m1","address":"sim:alex","text":"yes"}`,
		"unknown key":      `{"id":"m1","address":"sim:alex","text":"yes","to":"sim:dana"}`,
		"lone surrogate":   `{"id":"m1","address":"sim:alex","text":"\ud83d"}`,
		"bad UTF-8":        "{\"id\":\"m1\",\"address\":\"sim:alex\",\"text\":\"\xff\"}",
		"no id":            `{"address":"sim:alex","text":"yes"}`,
		"odd id":           `{"id":"m 1","address":"sim:alex","text":"yes"}`,
		"long id":          `{"id":"` + strings.Repeat("m", 129) + `","address":"sim:alex","text":"yes"}`,
		"no address":       `{"id":"m1","text":"yes"}`,
		"sms":              `{"id":"m1","address":"sms:+12025550102","text":"yes"}`,
		"whatsapp":         `{"id":"m1","address":"whatsapp:+12025550102","text":"yes"}`,
		"bare number":      `{"id":"m1","address":"+12025550102","text":"yes"}`,
		"empty name":       `{"id":"m1","address":"sim:","text":"yes"}`,
		"nested channel":   `{"id":"m1","address":"sim:sms:+12025550102","text":"yes"}`,
		"spaced name":      `{"id":"m1","address":"sim: alex","text":"yes"}`,
		"from ourselves":   `{"id":"m1","address":"sim:countersign","text":"yes"}`,
		"no text":          `{"id":"m1","address":"sim:alex"}`,
		"null text":        `{"id":"m1","address":"sim:alex","text":null}`,
		"text not string":  `{"id":"m1","address":"sim:alex","text":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			res, box := postSim(simRequest(body))
			wantRefused(t, res, box, http.StatusBadRequest)
		})
	}
}

func TestSimTakesOnlyThisMachine(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, change := range map[string]func(*http.Request){
		"other peer":     func(r *http.Request) { r.RemoteAddr = "192.0.2.7:50000" },
		"lan peer":       func(r *http.Request) { r.RemoteAddr = "10.0.0.2:50000" },
		"no peer":        func(r *http.Request) { r.RemoteAddr = "" },
		"named peer":     func(r *http.Request) { r.RemoteAddr = "localhost:50000" },
		"through proxy":  set("X-Forwarded-For", "192.0.2.7"),
		"forwarded":      set("Forwarded", "for=192.0.2.7"),
		"foreign page":   set("Origin", "https://example.test"),
		"cross site":     set("Sec-Fetch-Site", "cross-site"),
		"rebound name":   func(r *http.Request) { r.Host = "rebound.example.test:8080" },
		"rebound number": func(r *http.Request) { r.Host = "192.0.2.7" },
	} {
		t.Run(name, func(t *testing.T) {
			r := simRequest(simYes)
			change(r)
			res, box := postSim(r)
			wantRefused(t, res, box, http.StatusForbidden)
		})
	}
	for name, change := range map[string]func(*http.Request){
		"IPv6":      func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:50000", "[::1]:8080" },
		"mapped":    func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:50000" },
		"localhost": func(r *http.Request) { r.Host = "localhost:8080" },
		"own page":  func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") },
	} {
		t.Run(name, func(t *testing.T) {
			r := simRequest(simYes)
			change(r)
			res, box := postSim(r)
			wantTaken(t, res, box)
		})
	}
}

func TestSimTransportRefusals(t *testing.T) {
	r := simRequest(simYes)
	r.Method = http.MethodGet
	res, box := postSim(r)
	wantRefused(t, res, box, http.StatusMethodNotAllowed)

	r = simRequest(simYes)
	r.Header.Set("Content-Type", "text/plain")
	res, box = postSim(r)
	wantRefused(t, res, box, http.StatusUnsupportedMediaType)

	res, box = postSim(simRequest(`{"id":"m1","address":"sim:alex","text":"` + strings.Repeat("x", MaxBody) + `"}`))
	wantRefused(t, res, box, http.StatusRequestEntityTooLarge)

	box = &inbox{failing: errors.New("down")}
	rec := httptest.NewRecorder()
	NewSimHandler(box, Options{}).ServeHTTP(rec, simRequest(simYes))
	wantRefused(t, rec.Result(), box, http.StatusServiceUnavailable)
}
