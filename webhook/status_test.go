package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/offers"
)

const (
	statusURL = "https://approve.example.test/webhooks/twilio/status"
	textID    = "0198c0de-0000-7000-8000-000000000001"
	outSID    = "SMf6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6"
)

// callback is the form of a status callback.
func callback(status string) pairs {
	return pairs{
		{"SmsSid", outSID}, {"SmsStatus", status}, {"MessageStatus", status}, {"To", testFrom}, {"MessageSid", outSID},
		{"AccountSid", testAccount}, {"From", testTo}, {"ApiVersion", "2010-04-01"},
	}
}

// reported is what came through the door, with an answer of its own.
type reported struct {
	list    []offers.StatusReport
	failing error
	counted []string
}

func (r *reported) Report(_ context.Context, s offers.StatusReport) error {
	r.list = append(r.list, s)
	return r.failing
}

func statusConfig() TwilioConfig {
	cfg := config()
	cfg.PublicURL = statusURL
	return cfg
}

func (r *reported) post(t *testing.T, q request) *http.Response {
	t.Helper()
	rec := httptest.NewRecorder()
	NewTwilioStatusHandler(newTwilio(t, statusConfig()), r, Options{Observe: func(_ int, reason string) { r.counted = append(r.counted, reason) }}).
		ServeHTTP(rec, q.http())
	return rec.Result()
}

// signedStatus is a callback as Twilio posts it to the registered address.
func signedStatus(t *testing.T, query string, p pairs) request {
	t.Helper()
	body := p.encode()
	return request{target: "/webhooks/twilio/status" + query, body: body, signature: reference(t, testToken, statusURL+query, body)}
}

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		form  pairs
		want  offers.StatusReport
	}{
		"delivered":        {"?text=" + textID, callback("delivered"), offers.StatusReport{TextID: textID, ProviderID: outSID, Status: "delivered"}},
		"with a code":      {"?text=" + textID, callback("undelivered").and("ErrorCode", "30003"), offers.StatusReport{TextID: textID, ProviderID: outSID, Status: "undelivered", Code: 30003}},
		"a part":           {"?text=" + textID + "&part=2&of=3", callback("sent"), offers.StatusReport{TextID: textID, ProviderID: outSID, Status: "sent", Part: 2, Parts: 3}},
		"no query":         {"", callback("sent"), offers.StatusReport{ProviderID: outSID, Status: "sent"}},
		"only SmsStatus":   {"", callback("queued").without("MessageStatus"), offers.StatusReport{ProviderID: outSID, Status: "queued"}},
		"a word of theirs": {"", callback("partially_delivered"), offers.StatusReport{ProviderID: outSID, Status: "partially_delivered"}},
		"WhatsApp": {"", callback("read").with("From", "whatsapp:"+testTo).with("To", "whatsapp:"+testFrom).and("ChannelPrefix", "whatsapp").
			and("EventType", "READ"), offers.StatusReport{ProviderID: outSID, Status: "read"}},
		"an MMS": {"", callback("delivered").with("MessageSid", "MM22222222222222222222222222222222"),
			offers.StatusReport{ProviderID: "MM22222222222222222222222222222222", Status: "delivered"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reported{}
			res := r.post(t, signedStatus(t, c.query, c.form))
			wantStatus(t, res, http.StatusOK)
			body, err := io.ReadAll(res.Body)
			if err != nil || string(body) != "<Response></Response>" || res.Header.Get("Content-Type") != "text/xml" {
				t.Errorf("%s: %q %v", res.Header.Get("Content-Type"), body, err)
			}
			if d := cmp.Diff([]offers.StatusReport{c.want}, r.list); d != "" {
				t.Errorf("reported (-want +got):\n%s", d)
			}
			if !slices.Equal(r.counted, []string{"reported"}) {
				t.Errorf("counted %q", r.counted)
			}
		})
	}
}

func TestStatusRefusals(t *testing.T) {
	good := callback("delivered")
	signed := signedStatus(t, "?text="+textID, good)
	changed := func(f func(*request)) request { q := signed; f(&q); return q }
	for name, c := range map[string]struct {
		q      request
		status int
		reason string
	}{
		"GET":                     {changed(func(q *request) { q.method = http.MethodGet }), http.StatusMethodNotAllowed, "method"},
		"JSON":                    {changed(func(q *request) { q.header = http.Header{"Content-Type": {"application/json"}} }), http.StatusUnsupportedMediaType, "content_type"},
		"too large":               {changed(func(q *request) { q.body += "&Pad=" + strings.Repeat("x", MaxBody) }), http.StatusRequestEntityTooLarge, "body_size"},
		"no signature":            {changed(func(q *request) { q.signature = "" }), http.StatusForbidden, "signature_absent"},
		"another query":           {changed(func(q *request) { q.target = strings.ReplaceAll(q.target, "0001", "0002") }), http.StatusForbidden, "signature"},
		"the query gone":          {changed(func(q *request) { q.target = "/webhooks/twilio/status" }), http.StatusForbidden, "signature"},
		"signed for the messages": {changed(func(q *request) { q.signature = reference(t, testToken, testURL+"?text="+textID, q.body) }), http.StatusForbidden, "signature"},
		"another token":           {changed(func(q *request) { q.signature = reference(t, "other", statusURL+"?text="+textID, q.body) }), http.StatusForbidden, "signature"},
		"no status":               {signedStatus(t, "", good.without("MessageStatus").without("SmsStatus")), http.StatusBadRequest, "message_status"},
		"two statuses":            {signedStatus(t, "", good.with("SmsStatus", "failed")), http.StatusBadRequest, "two_statuses"},
		"a status twice":          {signedStatus(t, "", good.and("MessageStatus", "failed")), http.StatusBadRequest, "field_missing_or_repeated"},
		"a code twice":            {signedStatus(t, "", good.and("ErrorCode", "1").and("ErrorCode", "2")), http.StatusBadRequest, "field_missing_or_repeated"},
		"no word":                 {signedStatus(t, "", callback("DELIVERED!")), http.StatusBadRequest, "message_status"},
		"no sid":                  {signedStatus(t, "", good.without("MessageSid")), http.StatusBadRequest, "field_missing_or_repeated"},
		"two sids":                {signedStatus(t, "", good.and("MessageSid", outSID)), http.StatusBadRequest, "field_missing_or_repeated"},
		"a sid of another shape":  {signedStatus(t, "", good.with("MessageSid", "SMf6")), http.StatusBadRequest, "message_sid"},
		"another account":         {signedStatus(t, "", good.with("AccountSid", "AC11111111111111111111111111111111")), http.StatusBadRequest, "account_sid"},
		"no number for a code":    {signedStatus(t, "", good.and("ErrorCode", "3000x")), http.StatusBadRequest, "error_code"},
		"a text that is no id":    {signedStatus(t, "?text=1", good), http.StatusBadRequest, "query"},
		"two texts":               {signedStatus(t, "?text="+textID+"&text="+textID, good), http.StatusBadRequest, "query"},
		"a part beyond the last":  {signedStatus(t, "?text="+textID+"&part=4&of=3", good), http.StatusBadRequest, "query"},
		"a part of none":          {signedStatus(t, "?text="+textID+"&part=1", good), http.StatusBadRequest, "query"},
		"a message":               {signedStatus(t, "", common()), http.StatusBadRequest, "a_message"},
		"a message's status":      {signedStatus(t, "", callback("received")), http.StatusBadRequest, "a_message"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reported{}
			res := r.post(t, c.q)
			wantStatus(t, res, c.status)
			if len(r.list) != 0 || !slices.Equal(r.counted, []string{c.reason}) {
				t.Errorf("%d reports, counted %q, want %q", len(r.list), r.counted, c.reason)
			}
			if allow := res.Header.Get("Allow"); (c.status == http.StatusMethodNotAllowed) != (allow == http.MethodPost) {
				t.Errorf("Allow %q", allow)
			}
		})
	}
}

// A text that is not ours is no reason to try again; a store that does not answer is.
func TestStatusAnswersOfTheStore(t *testing.T) {
	r := &reported{failing: errors.Join(errors.New("report"), offers.ErrNotFound)}
	wantStatus(t, r.post(t, signedStatus(t, "", callback("sent"))), http.StatusOK)
	if !slices.Equal(r.counted, []string{"unknown_text"}) {
		t.Errorf("counted %q", r.counted)
	}
	r = &reported{failing: errors.New("down")}
	wantStatus(t, r.post(t, signedStatus(t, "", callback("sent"))), http.StatusServiceUnavailable)
	if !slices.Equal(r.counted, []string{"not_stored"}) {
		t.Errorf("counted %q", r.counted)
	}
}

// Callbacks and replies have doors of their own: what one takes the other refuses, whatever it is signed for.
func TestCase_TD03_TwoDoors(t *testing.T) {
	status, message := callback("delivered").encode(), common().encode()
	res, box := post(t, config(), request{body: status, signature: reference(t, testToken, testURL, status)})
	wantRefused(t, res, box, http.StatusBadRequest)
	r := &reported{}
	wantStatus(t, r.post(t, request{target: "/webhooks/twilio/status", body: message, signature: reference(t, testToken, statusURL, message)}), http.StatusBadRequest)
	if len(r.list) != 0 {
		t.Error("a message was taken for a status")
	}
}
