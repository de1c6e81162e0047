package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign/countersign/people"
)

// A proxy ends TLS: the process sees http://127.0.0.1:8080.
func TestCase_TS01_SignedURLIsTheConfiguredOne(t *testing.T) {
	res, box := post(t, config(), request{body: common().encode(), signature: "dji1effjm4xCwJHoUiM2j4hh8ZM="})
	if in := wantTaken(t, res, box); in.Text != "yes" || in.From != "sms:"+testFrom || in.To != "sms:"+testTo {
		t.Errorf("took %q from %q to %q", string(in.Text), string(in.From), string(in.To))
	}

	// The URL as rebuilt from the socket, and from forwarded headers, counts for nothing.
	body := common().encode()
	for _, seen := range []string{"http://127.0.0.1:8080/twilio/inbound", "http://approve.example.test/twilio/inbound"} {
		res, box := post(t, config(), request{
			body: body, signature: reference(t, testToken, seen, body),
			header: http.Header{"X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"127.0.0.1:8080"}},
		})
		wantRefused(t, res, box, http.StatusForbidden)
	}
}

func TestCase_TS03_WithAndWithoutPort(t *testing.T) {
	cfg := config()
	cfg.PublicURL = "https://approve.example.test:8443/twilio/inbound"
	body := common().encode()
	for _, signature := range []string{"dji1effjm4xCwJHoUiM2j4hh8ZM=", "cVcBTxO4oxMI7o351ByEw3A3YGk="} {
		res, box := post(t, cfg, request{body: body, signature: signature})
		wantTaken(t, res, box)
	}
	for _, other := range []string{
		"https://approve.example.test:443/twilio/inbound",
		"https://approve.example.test:8444/twilio/inbound",
		"http://approve.example.test:8443/twilio/inbound",
		"https://approve.example.test:8443/twilio/inbound/",
		"https://approve.example.test:8443/twilio/inbound?",
		"https://approve.example.test:8443/Twilio/inbound",
		"https://APPROVE.example.test:8443/twilio/inbound",
		"https://www.approve.example.test:8443/twilio/inbound",
		"https://approve.example.test:8443/twilio/inbound#a",
	} {
		res, box := post(t, cfg, request{body: body, signature: reference(t, testToken, other, body)})
		wantRefused(t, res, box, http.StatusForbidden)
	}
}

// This case's form is no whole message: the signature holds, its shape does not.
func TestCase_TS05_SortedByNameOnly(t *testing.T) {
	p := pairs{
		{"Reason", "Participant left"}, {"ReasonConferenceEnded", "participant-with-end"},
		{"Body", "yes"}, {"MessageSid", "SMb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2"},
	}
	f, err := parseForm([]byte(p.encode()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSignature(testURL, []string{testToken})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{SignatureHeader: {"SbVbEsrXAVTAzECVuJY64hnJgdA="}}
	if !s.verify(header, "/twilio/inbound", f) {
		t.Error("signature over names sorted alone was refused")
	}

	// And as a whole message, with To beside ToCity.
	res, box := postSigned(t, common().with("To", "whatsapp:"+testTo).and("ToCity", "SPRINGFIELD").and("FromCity", "AUSTIN"))
	if in := wantTaken(t, res, box); in.To != "whatsapp:"+testTo {
		t.Errorf("To is %q", string(in.To))
	}
}

func TestCase_TS07_RepeatedParameter(t *testing.T) {
	p := common().with("Body", "group yes").
		and("MessagingBinding.Address", "+15005550155").
		and("MessagingBinding.Address", "+15005550133").
		and("MessagingBinding.Address", "+15005550155")
	res, box := post(t, config(), request{body: p.encode(), signature: "RxrIAnGBwDVaoIPNlv+Z5m9ORok="})
	in := wantTaken(t, res, box)
	if len(in.OtherRecipients) != 2 {
		t.Errorf("%d other recipients, want the 2 distinct addresses of the group", len(in.OtherRecipients))
	}
}

func TestCase_TS09_OuterSpacesKept(t *testing.T) {
	p := common().with("Body", "  yes \n")
	res, box := post(t, config(), request{body: p.encode(), signature: "badOsZzrEtxVI0NVEc/zXCocS28="})
	if in := wantTaken(t, res, box); string(in.Body) != "  yes \n" || in.Text != "  yes \n" || in.Lossy {
		t.Errorf("body %q text %q lossy %v", string(in.Body), string(in.Text), in.Lossy)
	}
}

func TestCase_TS10_RawQueryBytes(t *testing.T) {
	const target = "/twilio/inbound?z=1&a=2&note=it's+ok%21"
	const signature = "yOpXyEEvKZROhI8hOH/w5+WX67M="
	res, box := post(t, config(), request{target: target, body: common().encode(), signature: signature})
	wantTaken(t, res, box)

	for _, other := range []string{
		"/twilio/inbound?a=2&note=it's+ok%21&z=1",
		"/twilio/inbound?z=1&a=2&note=it%27s+ok%21",
		"/twilio/inbound?z=1&a=2&note=it's%20ok%21",
		"/twilio/inbound?z=1&a=2&note=it's+ok!",
		"/twilio/inbound",
	} {
		res, box := post(t, config(), request{target: other, body: common().encode(), signature: signature})
		wantRefused(t, res, box, http.StatusForbidden)
	}
}

func TestCase_TS12_JSONBodyIsNotSigned(t *testing.T) {
	for _, body := range []string{
		`{"MessageSid":"SMc3","Body":"yes, and raise the limit"}`,
		`{"MessageSid":"SMc3","Body":"yes"}`, // the genuine one: JSON is not supported at all
	} {
		for _, target := range []string{
			"/twilio/inbound?bodySHA256=d6b4914c7ca5a9d1649517a1dd6e863051d17bff63b839d1381c60ceba96f900",
			"/twilio/inbound",
		} {
			res, box := post(t, config(), request{
				target: target, body: body, signature: "7cvTpqPPTm9K6h7jR47gXhymUik=",
				header: http.Header{"Content-Type": {"application/json"}},
			})
			wantRefused(t, res, box, http.StatusUnsupportedMediaType)
		}
	}
	// The same bytes called a form: no field of a message is in them.
	res, box := post(t, config(), request{
		target: "/twilio/inbound?bodySHA256=d6b4914c7ca5a9d1649517a1dd6e863051d17bff63b839d1381c60ceba96f900",
		body:   `{"MessageSid":"SMc3","Body":"yes"}`, signature: "7cvTpqPPTm9K6h7jR47gXhymUik=",
	})
	wantRefused(t, res, box, http.StatusBadRequest)
}

func TestCase_TS14_UnknownParametersAreSigned(t *testing.T) {
	p := common().and("BrandNewParam", "v1").and("ChannelMetadata", `{"type":"rcs"}`)
	const signature = "Y9bhnJ9kPk7HaliyKgKdVHlGACI="
	res, box := post(t, config(), request{body: p.encode(), signature: signature})
	wantTaken(t, res, box)

	res, box = post(t, config(), request{body: p.with("BrandNewParam", "v2").encode(), signature: signature})
	wantRefused(t, res, box, http.StatusForbidden)
	res, box = post(t, config(), request{body: p.without("BrandNewParam").encode(), signature: signature})
	wantRefused(t, res, box, http.StatusForbidden)
}

func TestCase_TS16_OtherTokenIsRefusedAndCounted(t *testing.T) {
	var counted []string
	box := &inbox{}
	door := NewTwilioHandler(newTwilio(t, config()), box, Options{Observe: func(status int, reason string) {
		counted = append(counted, http.StatusText(status)+" "+reason)
	}})
	rec := httptest.NewRecorder()
	door.ServeHTTP(rec, request{body: common().encode(), signature: "OIcTduZikggyxgHXlkV2WwAHmHI="}.http())
	wantRefused(t, rec.Result(), box, http.StatusForbidden)
	if len(counted) != 1 || counted[0] != "Forbidden signature" {
		t.Errorf("counted %q", counted)
	}

	// A signature of ours does not let in another account's message.
	foreign := common().with("AccountSid", "AC11111111111111111111111111111111")
	res, box2 := postSigned(t, foreign)
	wantRefused(t, res, box2, http.StatusBadRequest)

	// A token listed for a rotation is taken; which one is never the request's choice.
	cfg := config()
	cfg.AuthTokens = []string{"the-next-token", testToken}
	for _, token := range cfg.AuthTokens {
		body := common().encode()
		res, box := post(t, cfg, request{body: body, signature: reference(t, token, testURL, body)})
		wantTaken(t, res, box)
	}
}

// A signature has no time in it. What stops a replay is the stored id: the door
// keeps no cache of its own, and gives the same id to the Intake every time.
func TestCase_TS18_ReplayHasTheSameIdentity(t *testing.T) {
	box := &inbox{}
	door := NewTwilioHandler(newTwilio(t, config()), box, Options{})
	for range 2 {
		rec := httptest.NewRecorder()
		door.ServeHTTP(rec, request{body: common().encode(), signature: "dji1effjm4xCwJHoUiM2j4hh8ZM="}.http())
		wantStatus(t, rec.Result(), http.StatusOK)
		if rec.Body.String() != "<Response></Response>" {
			t.Errorf("answer %q", rec.Body)
		}
	}
	if len(box.posts) != 2 || len(box.rows) != 1 {
		t.Errorf("%d posts made %d rows, want 2 and 1", len(box.posts), len(box.rows))
	}
}

// A status callback posted to the message endpoint is no message.
func TestCase_TD03_StatusPostIsNotAMessage(t *testing.T) {
	for _, status := range []string{"sent", "delivered"} {
		res, box := postSigned(t, pairs{
			{"MessageSid", "SMf6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6"}, {"MessageStatus", status},
			{"AccountSid", testAccount}, {"From", testTo}, {"To", testFrom},
		})
		wantRefused(t, res, box, http.StatusBadRequest)
	}
}

func TestCase_TD08_EmptyBodyWithMedia(t *testing.T) {
	p := common().with("MessageSid", "MM22222222222222222222222222222222").with("Body", "").with("NumMedia", "1").
		and("MediaContentType0", "audio/amr").and("MediaUrl0", "https://api.example.test/media/1")
	res, box := postSigned(t, p)
	in := wantTaken(t, res, box)
	if in.Text != "" || in.NumMedia != 1 || in.ProviderSID != "MM22222222222222222222222222222222" {
		t.Errorf("text %q, %d media, sid %s", string(in.Text), in.NumMedia, in.ProviderSID)
	}
}

func TestCase_TD10_AnswerIsEmptyTwiML(t *testing.T) {
	res, box := postSigned(t, common().with("MessageSid", "SM24242424242424242424242424242424").with("Body", "hello <&"))
	wantTaken(t, res, box)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Content-Type") != "text/xml" || string(body) != "<Response></Response>" {
		t.Errorf("%s: %q", res.Header.Get("Content-Type"), body)
	}
}

// rawSigned posts a case's raw body, completed by what Twilio always sends.
func rawSigned(t *testing.T, formBody string) Inbound {
	t.Helper()
	body := formBody + "&AccountSid=" + testAccount + "&To=%2B15005550199"
	res, box := post(t, config(), request{body: body, signature: reference(t, testToken, testURL, body)})
	return wantTaken(t, res, box)
}

func TestCase_DB08_NULIsKeptAndMarked(t *testing.T) {
	in := rawSigned(t, "MessageSid=SM30303030303030303030303030303030&From=%2B15005550101&Body=yes%00no")
	if string(in.Body) != "yes\x00no" || in.Text != "yes\uFFFDno" || !in.Lossy {
		t.Errorf("body %q text %q lossy %v", string(in.Body), string(in.Text), in.Lossy)
	}
	if !strings.Contains(string(in.Raw), "Body=yes%00no") {
		t.Errorf("the signed bytes were not kept: %q", string(in.Raw))
	}
}

func TestCase_DB09_LoneSurrogatesAreKeptAndMarked(t *testing.T) {
	in := rawSigned(t, "MessageSid=SM31313131313131313131313131313131&From=%2B15005550101&Body=ok%ED%A0%BD%ED%B1%8D")
	if string(in.Body) != "ok\xED\xA0\xBD\xED\xB1\x8D" || !in.Lossy {
		t.Errorf("body %q lossy %v", string(in.Body), in.Lossy)
	}
	if in.Text != "ok\uFFFD" {
		t.Errorf("text %q, want valid UTF-8 that shows the loss", string(in.Text))
	}
}

func TestCase_ID03_OtherRecipientsAreSeen(t *testing.T) {
	res, box := postSigned(t, common().with("Body", "yes! see you at 8").and("OtherRecipients0", "+15005550177"))
	in := wantTaken(t, res, box)
	if len(in.OtherRecipients) != 1 || in.OtherRecipients[0] != "+15005550177" {
		t.Errorf("%d other recipients, want the one given", len(in.OtherRecipients))
	}

	// One to one: no such sign, also where the binding names only us two.
	res, box = postSigned(t, common().and("MessagingBinding.Address", testFrom))
	if in := wantTaken(t, res, box); len(in.OtherRecipients) != 0 {
		t.Errorf("%d other recipients in a text to us alone", len(in.OtherRecipients))
	}
}

func TestCase_ID05_OnlyTheExactFormIsAnAddress(t *testing.T) {
	for from, want := range map[string]people.Address{
		"+15005550101":            "sms:+15005550101",
		"whatsapp:+15005550101":   "whatsapp:+15005550101", // another address than sms:, never folded into it
		"15005550101":             "",
		"+1 (500) 555-0101":       "",
		"22395":                   "",
		"ACME":                    "",
		"+1500555\uff10101":       "",
		"":                        "",
		"+266696687":              "", // ANONYMOUS
		" +15005550101":           "",
		"+15005550101\n":          "",
		"+15005550101;ext=1":      "",
		"WhatsApp:+15005550101":   "",
		"whatsapp:15005550101":    "",
		"sms:+15005550101":        "",
		"whatsapp:sms:+150055501": "",
		"+05005550101":            "",
		"+1500555010112345":       "",
	} {
		res, box := postSigned(t, common().with("From", from))
		in := wantTaken(t, res, box)
		if in.From != want {
			t.Errorf("From %q became %q, want %q", from, string(in.From), string(want))
		}
		if string(in.FromRaw) != from {
			t.Errorf("From %q is kept as %q", from, string(in.FromRaw))
		}
	}
}
