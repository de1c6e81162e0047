package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSignatureHeader(t *testing.T) {
	body := common().encode()
	good := reference(t, testToken, testURL, body)
	for name, values := range map[string][]string{
		"absent":         nil,
		"empty":          {""},
		"doubled":        {good, good},
		"good and bad":   {good, "x"},
		"empty and good": {"", good},
		"joined":         {good + "," + good},
		"spaced":         {" " + good},
		"unpadded":       {strings.TrimRight(good, "=")},
		"url alphabet":   {strings.NewReplacer("+", "-", "/", "_").Replace(reference(t, testToken, testURL+"x", body))},
		"other key":      {reference(t, "another-token", testURL, body)},
		"empty key":      {reference(t, "", testURL, body)},
		"url alone":      {sign(testToken, testURL)},
	} {
		t.Run(name, func(t *testing.T) {
			res, box := post(t, config(), request{body: body, header: http.Header{SignatureHeader: values}})
			wantRefused(t, res, box, http.StatusForbidden)
		})
	}
	res, box := post(t, config(), request{body: body, header: http.Header{SignatureHeader: {good}}})
	wantTaken(t, res, box)
}

func TestSignatureCoversEveryParameter(t *testing.T) {
	body := common().encode()
	good := reference(t, testToken, testURL, body)
	for _, f := range common() {
		res, box := post(t, config(), request{body: common().with(f[0], f[1]+"0").encode(), signature: good})
		wantRefused(t, res, box, http.StatusForbidden)
		res, box = post(t, config(), request{body: common().without(f[0]).encode(), signature: good})
		wantRefused(t, res, box, http.StatusForbidden)
	}
	res, box := post(t, config(), request{body: common().and("X", "1").encode(), signature: good})
	wantRefused(t, res, box, http.StatusForbidden)
}

func TestSignatureDefaultPorts(t *testing.T) {
	body := common().encode()
	for configured, accepted := range map[string][]string{
		"https://a.test/w":        {"https://a.test/w", "https://a.test:443/w"},
		"https://a.test:443/w":    {"https://a.test/w", "https://a.test:443/w"},
		"http://a.test/w":         {"http://a.test/w", "http://a.test:80/w"},
		"http://a.test:80/w":      {"http://a.test/w", "http://a.test:80/w"},
		"https://[2001:db8::1]/w": {"https://[2001:db8::1]/w", "https://[2001:db8::1]:443/w"},
		"https://[2001:db8::1]:8443/w": {
			"https://[2001:db8::1]/w", "https://[2001:db8::1]:8443/w",
		},
	} {
		cfg := config()
		cfg.PublicURL = configured
		for _, u := range accepted {
			res, box := post(t, cfg, request{target: "/w", body: body, signature: reference(t, testToken, u, body)})
			wantTaken(t, res, box)
		}
		for _, u := range []string{"https://a.test:80/w", "http://a.test:443/w", "https://a.test:8443/w", "https://b.test/w"} {
			res, box := post(t, cfg, request{target: "/w", body: body, signature: reference(t, testToken, u, body)})
			wantRefused(t, res, box, http.StatusForbidden)
		}
	}
}

func TestZeroSignatureAcceptsNothing(t *testing.T) {
	f := form{{"Body", "yes"}}
	for _, given := range []string{sign("", f.signed()), sign("", ""), ""} {
		if (Signature{}).verify(http.Header{SignatureHeader: {given}}, "/", f) {
			t.Error("the zero Signature accepted a request")
		}
	}
}

func TestNewTwilioRefusesBadConfiguration(t *testing.T) {
	for name, change := range map[string]func(*TwilioConfig){
		"no token":           func(c *TwilioConfig) { c.AuthTokens = nil },
		"empty token":        func(c *TwilioConfig) { c.AuthTokens = []string{""} },
		"second token empty": func(c *TwilioConfig) { c.AuthTokens = []string{testToken, ""} },
		"token with newline": func(c *TwilioConfig) { c.AuthTokens = []string{testToken + "\n"} },
		"no url":             func(c *TwilioConfig) { c.PublicURL = "" },
		"no scheme":          func(c *TwilioConfig) { c.PublicURL = "approve.example.test/w" },
		"other scheme":       func(c *TwilioConfig) { c.PublicURL = "ftp://approve.example.test/w" },
		"no path":            func(c *TwilioConfig) { c.PublicURL = "https://approve.example.test" },
		"no host":            func(c *TwilioConfig) { c.PublicURL = "https:///w" },
		"empty port":         func(c *TwilioConfig) { c.PublicURL = "https://approve.example.test:/w" },
		"query":              func(c *TwilioConfig) { c.PublicURL += "?a=1" },
		"fragment":           func(c *TwilioConfig) { c.PublicURL += "#a" },
		"user":               func(c *TwilioConfig) { c.PublicURL = "https://u:p@approve.example.test/w" },
		"upper scheme":       func(c *TwilioConfig) { c.PublicURL = "HTTPS://approve.example.test/w" },
		"no account":         func(c *TwilioConfig) { c.AccountSID = "" },
		"odd account":        func(c *TwilioConfig) { c.AccountSID = "AC0" },
		"no number":          func(c *TwilioConfig) { c.Numbers = nil },
		"number spelled":     func(c *TwilioConfig) { c.Numbers = []string{"+1 500 555 0199"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			change(&cfg)
			tw, err := NewTwilio(cfg)
			if err == nil || tw != nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), testToken) || strings.Contains(err.Error(), "555") {
				t.Errorf("the error shows a token or number: %v", err)
			}
		})
	}
}

func TestTransportRefusals(t *testing.T) {
	body := common().encode()
	good := reference(t, testToken, testURL, body)
	for name, c := range map[string]struct {
		request
		status int
	}{
		"get":                 {request{method: http.MethodGet, signature: good}, 405},
		"head":                {request{method: http.MethodHead, signature: good}, 405},
		"put":                 {request{method: http.MethodPut, body: body, signature: good}, 405},
		"no type":             {request{body: body, signature: good, header: http.Header{"Content-Type": nil}}, 415},
		"text":                {request{body: body, signature: good, header: http.Header{"Content-Type": {"text/plain"}}}, 415},
		"multipart":           {request{body: body, signature: good, header: http.Header{"Content-Type": {"multipart/form-data; boundary=a"}}}, 415},
		"two types":           {request{body: body, signature: good, header: http.Header{"Content-Type": {"application/x-www-form-urlencoded", "application/json"}}}, 415},
		"other charset":       {request{body: body, signature: good, header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=iso-8859-1"}}}, 415},
		"compressed":          {request{body: body, signature: good, header: http.Header{"Content-Encoding": {"gzip"}}}, 415},
		"too large":           {request{body: body + "&X=" + strings.Repeat("x", MaxBody), signature: good}, 413},
		"bad escape":          {request{body: body + "&X=%zz", signature: good}, 400},
		"cut escape":          {request{body: body + "&X=%4", signature: good}, 400},
		"no equals":           {request{body: body + "&X", signature: good}, 400},
		"no name":             {request{body: body + "&=x", signature: good}, 400},
		"empty piece":         {request{body: body + "&", signature: good}, 400},
		"semicolon":           {request{body: body + ";X=1", signature: good}, 400},
		"raw non-ASCII":       {request{body: body + "&X=\xc3\xa9", signature: good}, 400},
		"raw NUL":             {request{body: body + "&X=\x00", signature: good}, 400},
		"raw line end":        {request{body: body + "\r\n", signature: good}, 400},
		"empty, unsigned":     {request{}, 403},
		"empty, signed":       {request{signature: sign(testToken, testURL)}, 400},
		"large, unsigned":     {request{body: strings.Repeat("x", MaxBody+1)}, 403},
		"parameters in query": {request{target: "/twilio/inbound?" + body, signature: sign(testToken, testURL+"?"+body)}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			res, box := post(t, config(), c.request)
			wantRefused(t, res, box, c.status)
			if allow := res.Header.Get("Allow"); (c.status == 405) != (allow == http.MethodPost) {
				t.Errorf("Allow is %q", allow)
			}
		})
	}

	res, box := post(t, config(), request{body: body, signature: good, header: http.Header{"Content-Type": {"Application/X-WWW-Form-URLEncoded; charset=UTF-8"}}})
	wantTaken(t, res, box)
}

func TestBodyOfExactlyTheLimitIsTaken(t *testing.T) {
	body := common().encode() + "&X="
	body += strings.Repeat("x", MaxBody-len(body))
	res, box := post(t, config(), request{body: body, signature: reference(t, testToken, testURL, body)})
	wantTaken(t, res, box)
}

func TestBodyThatBreaksOff(t *testing.T) {
	box := &inbox{}
	rec := httptest.NewRecorder()
	r := request{signature: "x"}.http()
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(common().encode()), broken{}))
	NewTwilioHandler(newTwilio(t, config()), box, Options{}).ServeHTTP(rec, r)
	wantRefused(t, rec.Result(), box, http.StatusBadRequest)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Every one of these is truly signed.
func TestSignedButRefused(t *testing.T) {
	other := "SMb1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1"
	for name, p := range map[string]pairs{
		"sid twice":            common().and("MessageSid", other),
		"sid twice, same":      common().and("MessageSid", testSID),
		"account twice":        common().and("AccountSid", "AC11111111111111111111111111111111"),
		"account twice, same":  common().and("AccountSid", testAccount),
		"from twice":           common().and("From", "+15005550102"),
		"from twice, same":     common().and("From", testFrom),
		"to twice":             common().and("To", "+15005550102"),
		"to twice, same":       common().and("To", testTo),
		"body twice":           common().and("Body", "no"),
		"body twice, same":     common().and("Body", "yes"),
		"opt-out twice":        common().and("OptOutType", "STOP").and("OptOutType", "START"),
		"button twice":         common().and("ButtonPayload", "no").and("ButtonPayload", "yes"),
		"no sid":               common().without("MessageSid"),
		"no account":           common().without("AccountSid"),
		"no from":              common().without("From"),
		"no to":                common().without("To"),
		"no body":              common().without("Body"),
		"sid empty":            common().with("MessageSid", ""),
		"sid short":            common().with("MessageSid", testSID[:33]),
		"sid long":             common().with("MessageSid", testSID+"0"),
		"sid upper":            common().with("MessageSid", strings.ToUpper(testSID)),
		"sid of a call":        common().with("MessageSid", "CA"+testSID[2:]),
		"sid with space":       common().with("MessageSid", testSID+" "),
		"sid in lower prefix":  common().with("MessageSid", "sm"+testSID[2:]),
		"sid not hex":          common().with("MessageSid", "SMg1"+testSID[4:]),
		"account foreign":      common().with("AccountSid", "AC11111111111111111111111111111111"),
		"account empty":        common().with("AccountSid", ""),
		"to foreign":           common().with("To", "+15005550100"),
		"to foreign, whatsapp": common().with("To", "whatsapp:+15005550100"),
		"to other spelling":    common().with("To", "15005550199"),
		"to empty":             common().with("To", ""),
		"media not a number":   common().with("NumMedia", "-1"),
		"media huge":           common().with("NumMedia", "1000"),
		"segments spelled":     common().with("NumSegments", "one"),
		"reply to no sid":      common().and("OriginalRepliedMessageSid", "SM1"),
	} {
		t.Run(name, func(t *testing.T) {
			res, box := postSigned(t, p)
			wantRefused(t, res, box, http.StatusBadRequest)
		})
	}
}

// The signed string has no delimiters: a sender who texts "NOFrom+1…" and one
// who texts "NO" from +1… sign alike.
func TestDelimiterTrap(t *testing.T) {
	genuine := common().with("Body", "NO")
	body := genuine.encode()
	good := reference(t, testToken, testURL, body)

	// AccountSid, ApiVersion, Body, From, … : Body swallows From.
	merged := genuine.without("From").with("Body", "NOFrom"+testFrom)
	if reference(t, testToken, testURL, merged.encode()) != good {
		t.Fatal("the trap is not set: the two bodies sign differently")
	}
	res, box := post(t, config(), request{body: merged.encode(), signature: good})
	wantRefused(t, res, box, http.StatusBadRequest)

	// ApiVersion gives its tail away as another Body, before ours.
	split := common().with("ApiVersion", "2010-04-01").with("Body", "xBodyyes")
	again := common().with("Body", "x").and("Body", "yes")
	sig := reference(t, testToken, testURL, split.encode())
	if reference(t, testToken, testURL, again.encode()) != sig {
		t.Fatal("the trap is not set: the two bodies sign differently")
	}
	res, box = post(t, config(), request{body: again.encode(), signature: sig})
	wantRefused(t, res, box, http.StatusBadRequest)

	// From swallows the names behind it and is no number any more.
	swallowed := genuine.without("MessageSid").with("From", testFrom+"MessageSid"+testSID)
	if reference(t, testToken, testURL, swallowed.encode()) != good {
		t.Fatal("the trap is not set: the two bodies sign differently")
	}
	res, box = post(t, config(), request{body: swallowed.encode(), signature: good})
	wantRefused(t, res, box, http.StatusBadRequest)
}

func TestInboundFields(t *testing.T) {
	p := common().with("From", "whatsapp:+15005550101").with("To", "whatsapp:"+testTo).
		with("NumMedia", "2").with("NumSegments", "3").
		and("OptOutType", "STOP").and("ButtonPayload", "send").and("ButtonText", "Send it").
		and("OriginalRepliedMessageSid", "SMb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2").and("ProfileName", "Dana [owner]")
	res, box := postSigned(t, p)
	in := wantTaken(t, res, box)
	got := []any{
		in.Provider, in.ProviderSID, in.AccountSID, string(in.From), string(in.FromRaw), string(in.To),
		string(in.Body), string(in.Text), in.Lossy, in.NumMedia, in.NumSegments, in.OptOutType,
		string(in.ButtonPayload), string(in.ButtonText), in.OriginalRepliedMessageSid, string(in.ProfileName),
		len(in.OtherRecipients), string(in.Raw) == p.encode(),
	}
	want := []any{
		"twilio", testSID, testAccount, "whatsapp:+15005550101", "whatsapp:+15005550101", "whatsapp:" + testTo,
		"yes", "yes", false, 2, 3, "STOP",
		"send", "Send it", "SMb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2", "Dana [owner]",
		0, true,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("field %d is %v, want %v", i, got[i], want[i])
		}
	}

	// Loss anywhere in what may be read marks the message.
	for _, name := range []string{"ButtonPayload", "ButtonText", "ProfileName", "OtherRecipients0"} {
		res, box := postSigned(t, common().and(name, "a\x00\xff"))
		if in := wantTaken(t, res, box); !in.Lossy {
			t.Errorf("bad bytes in %s did not mark the message", name)
		}
	}
}

func TestNotStoredIsNotAcknowledged(t *testing.T) {
	body := common().encode()
	box := &inbox{failing: errors.New("row (+15005550101, 'yes') not written")}
	var logged bytes.Buffer
	rec := httptest.NewRecorder()
	NewTwilioHandler(newTwilio(t, config()), box, Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}).
		ServeHTTP(rec, request{body: body, signature: reference(t, testToken, testURL, body)}.http())
	wantRefused(t, rec.Result(), box, http.StatusServiceUnavailable)
	if strings.Contains(rec.Body.String(), "Response") {
		t.Error("a failed store was answered with TwiML")
	}
	wantNoWords(t, logged.String()+rec.Body.String())
	if !strings.Contains(logged.String(), testSID) {
		t.Error("the log does not name the message")
	}
}

// The Intake works under the request's context: a provider that hangs up ends it.
func TestIntakeGetsTheRequestContext(t *testing.T) {
	type key struct{}
	body := common().encode()
	r := request{body: body, signature: reference(t, testToken, testURL, body)}.http()
	var got any
	NewTwilioHandler(newTwilio(t, config()), intakeFunc(func(ctx context.Context, _ Inbound) error {
		got = ctx.Value(key{})
		return nil
	}), Options{}).ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), key{}, "mine")))
	if got != "mine" {
		t.Errorf("context value %v", got)
	}
}

type intakeFunc func(context.Context, Inbound) error

func (f intakeFunc) Receive(ctx context.Context, in Inbound) (<-chan struct{}, error) {
	return nil, f(ctx, in)
}

func wantNoWords(t *testing.T, printed string) {
	t.Helper()
	for _, secret := range []string{"5550101", "5550199", "secret words", "Dana", "'yes'"} {
		if strings.Contains(printed, secret) {
			t.Errorf("printed %q: shows %q", printed, secret)
		}
	}
}

func TestNothingPrivateIsPrinted(t *testing.T) {
	res, box := postSigned(t, common().with("Body", "secret words").and("ProfileName", "Dana").and("OtherRecipients0", testTo))
	in := wantTaken(t, res, box)
	var logged bytes.Buffer
	for _, log := range []*slog.Logger{
		slog.New(slog.NewTextHandler(&logged, nil)),
		slog.New(slog.NewJSONHandler(&logged, nil)),
	} {
		log.Info("x", "in", in, "from", in.From, "to", in.To, "text", in.Text, "body", in.Body, "raw", in.Raw, "name", in.ProfileName)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&logged, verb+verb+verb+verb, in, in.Text, in.Body, in.Raw)
		fmt.Fprintf(&logged, verb, []any{in, in.OtherRecipients, &in})
	}
	wantNoWords(t, logged.String())
}

// FuzzTwilioForm: nothing unsigned is read; and what is read is what was signed.
func FuzzTwilioForm(f *testing.F) {
	f.Add(common().encode(), "")
	f.Add(common().encode(), "dji1effjm4xCwJHoUiM2j4hh8ZM=")
	f.Add(common().and("Body", "no").encode(), "x")
	f.Add("Body=%00%ff&&=;+", "x")
	f.Add(common().with("From", "ACME").and("OtherRecipients0", "\xff").encode(), "x")
	tw, err := NewTwilio(config())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body, signature string) {
		parsed, err := parseForm([]byte(body))
		truth := ""
		if err == nil {
			truth = reference(t, testToken, testURL, body)
		}
		if in, refusal := tw.Read(request{body: body, header: http.Header{SignatureHeader: {signature}}}.http()); refusal == nil && signature != truth {
			t.Fatalf("unsigned body read as %s", in.ProviderSID)
		} else if refusal != nil && in.ProviderSID+string(in.Body)+string(in.From) != "" {
			t.Fatal("a refused request left words behind")
		}
		if err != nil {
			return
		}
		again := make(pairs, len(parsed))
		for i, p := range parsed {
			again[i] = [2]string{p.name, p.value}
		}
		if reference(t, testToken, testURL, again.encode()) != truth || sign(testToken, testURL+parsed.signed()) != truth {
			t.Fatal("the body does not re-serialise to the same signed string")
		}
		in, refusal := tw.Read(request{body: body, header: http.Header{SignatureHeader: {truth}}}.http())
		if refusal != nil {
			if refusal.Status == http.StatusForbidden {
				t.Fatal("a truly signed body was called unsigned")
			}
			return
		}
		if string(in.Raw) != body || in.AccountSID != testAccount || string(in.Body) != parsed.value("Body") {
			t.Fatal("what was read is not what was signed")
		}
		if strings.ContainsRune(string(in.Text), 0) || (!in.Lossy && string(in.Text) != string(in.Body)) {
			t.Fatal("Text is not what Lossy says of it")
		}
	})
}
