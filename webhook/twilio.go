package webhook

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/people"
)

// MaxBody is the largest request body taken, in bytes. Twilio's largest inbound
// form is a few kilobytes.
const MaxBody = 64 << 10

// TwilioConfig is what the Twilio door must know beforehand.
type TwilioConfig struct {
	PublicURL  string   // the full webhook URL as entered at Twilio, without query
	AuthTokens []string // current first; more than one only during a rotation
	AccountSID string   // AC and 32 hex digits
	Numbers    []string // our numbers: "+12025550199" or "whatsapp:+12025550199"
}

// Twilio turns a signed request into an Inbound.
type Twilio struct {
	signature  Signature
	accountSID string
	numbers    map[people.Address]bool
}

// NewTwilio checks cfg. Every field is required.
func NewTwilio(cfg TwilioConfig) (*Twilio, error) {
	signature, err := NewSignature(cfg.PublicURL, cfg.AuthTokens)
	if err != nil {
		return nil, err
	}
	if !sidShape(cfg.AccountSID, "AC") {
		return nil, errors.New("webhook: the account SID must be AC and 32 hex digits")
	}
	if len(cfg.Numbers) == 0 {
		return nil, errors.New("webhook: none of our own numbers is configured")
	}
	numbers := make(map[people.Address]bool, len(cfg.Numbers))
	for i, wire := range cfg.Numbers {
		address, ok := twilioAddress(wire)
		if !ok {
			return nil, fmt.Errorf("webhook: own number %d is not in E.164 form (+ and digits, or whatsapp:+ and digits)", i+1)
		}
		numbers[address] = true
	}
	return &Twilio{signature: signature, accountSID: cfg.AccountSID, numbers: numbers}, nil
}

// Refusal says why a request is not an inbound message. Reason is stable and
// names no part of the request.
type Refusal struct {
	Status int
	Reason string
}

func (r *Refusal) Error() string { return strconv.Itoa(r.Status) + " " + r.Reason }

// Read proves and parses one POST. It reads the body once, and the bytes that it
// proves are the bytes that it parses. On a Refusal the Inbound is empty.
func (t *Twilio) Read(r *http.Request) (Inbound, *Refusal) {
	raw, f, refusal := t.prove(r)
	if refusal != nil {
		return Inbound{}, refusal
	}
	return t.message(raw, f)
}

// prove reads the body of one POST and returns it with its fields, signed for the URL that was configured.
func (t *Twilio) prove(r *http.Request) ([]byte, form, *Refusal) {
	if r.Method != http.MethodPost {
		return nil, nil, &Refusal{http.StatusMethodNotAllowed, "method"}
	}
	if !contentType(r.Header, "application/x-www-form-urlencoded") {
		return nil, nil, &Refusal{http.StatusUnsupportedMediaType, "content_type"}
	}
	if _, ok := oneSignature(r.Header); !ok {
		return nil, nil, &Refusal{http.StatusForbidden, "signature_absent"}
	}
	raw, refusal := readBody(r)
	if refusal != nil {
		return nil, nil, refusal
	}
	f, err := parseForm(raw)
	if err != nil {
		return nil, nil, &Refusal{http.StatusBadRequest, "form"}
	}
	if !t.signature.verify(r.Header, r.RequestURI, f) {
		return nil, nil, &Refusal{http.StatusForbidden, "signature"}
	}
	return raw, f, nil
}

// message gives a proven form its shape. The signed string has no delimiters, so
// a valid signature does not fix where one field ends and the next begins: the
// checks of number, presence and shape below do.
func (t *Twilio) message(raw []byte, f form) (Inbound, *Refusal) {
	bad := func(reason string) (Inbound, *Refusal) {
		return Inbound{}, &Refusal{http.StatusBadRequest, reason}
	}
	if !checkSingle(f) { // mutant: webhook.duplicate-field
		return bad("field_missing_or_repeated")
	}
	sid := f.value("MessageSid")
	if !sidShape(sid, "SM") && !sidShape(sid, "MM") { // mutant: webhook.sid-shape
		return bad("message_sid")
	}
	if f.value("AccountSid") != t.accountSID { // mutant: webhook.account-sid
		return bad("account_sid")
	}
	to, ok := twilioAddress(f.value("To"))
	if !ok || !t.numbers[to] { // mutant: webhook.to
		return bad("to")
	}
	numMedia, ok1 := count(f.value("NumMedia"))
	numSegments, ok2 := count(f.value("NumSegments"))
	if !ok1 || !ok2 {
		return bad("number")
	}
	if s := f.value("OriginalRepliedMessageSid"); s != "" && !sidShape(s, "SM") && !sidShape(s, "MM") {
		return bad("replied_sid")
	}
	from, _ := twilioAddress(f.value("From")) // not ok: empty, which is nobody

	in := Inbound{
		Provider:                  ProviderTwilio,
		ProviderSID:               sid,
		AccountSID:                t.accountSID,
		From:                      from,
		To:                        to,
		Body:                      Bytes(f.value("Body")),
		NumMedia:                  numMedia,
		NumSegments:               numSegments,
		OriginalRepliedMessageSid: f.value("OriginalRepliedMessageSid"),
		Raw:                       Bytes(raw),
	}
	keep := func(value string) Text {
		text, lossy := readable(value)
		in.Lossy = in.Lossy || lossy
		return text
	}
	in.Text = keep(f.value("Body"))
	in.FromRaw = keep(f.value("From"))
	in.OptOutType = string(keep(f.value("OptOutType")))
	in.ButtonPayload = keep(f.value("ButtonPayload"))
	in.ButtonText = keep(f.value("ButtonText"))
	in.ProfileName = keep(f.value("ProfileName"))
	for _, other := range otherRecipients(f) {
		in.OtherRecipients = append(in.OtherRecipients, keep(other))
	}
	return in, nil
}

// checkSingle reports whether the fields that identify a message are there
// exactly once, and the others that are read at most once. Of a repeated field
// one reader takes the first value and another the last, equal or not.
func checkSingle(f form) bool {
	for _, name := range []string{"MessageSid", "AccountSid", "From", "To", "Body"} {
		if len(f.values(name)) != 1 {
			return false
		}
	}
	for _, name := range []string{
		"NumMedia", "NumSegments", "OptOutType", "ButtonPayload", "ButtonText",
		"OriginalRepliedMessageSid", "ProfileName",
	} {
		if len(f.values(name)) > 1 {
			return false
		}
	}
	return true
}

// otherRecipients returns what shows that somebody else was addressed too: any
// OtherRecipients field, and group bindings other than sender and us.
func otherRecipients(f form) []string {
	var others []string
	for _, p := range f {
		group := strings.HasPrefix(p.name, "OtherRecipients")
		binding := p.name == "MessagingBinding.Address" && p.value != f.value("From") && p.value != f.value("To")
		if (group || binding) && !slices.Contains(others, p.value) {
			others = append(others, p.value)
		}
	}
	return others
}

// twilioAddress takes "+12025550102" or "whatsapp:+12025550102", in exactly
// that form. Another spelling of the same number is not the same sender: to
// fold spellings is to join senders.
func twilioAddress(wire string) (people.Address, bool) {
	if strings.HasPrefix(wire, "+") {
		wire = "sms:" + wire
	} else if !strings.HasPrefix(wire, "whatsapp:") {
		return "", false
	}
	address, err := people.ParseAddress(wire)
	if err != nil || withheld(address.ID()) { // mutant: webhook.withheld
		return "", false
	}
	return address, true
}

// withheld reports the numbers that Twilio writes for callers without one; they
// spell ANONYMOUS, RESTRICTED, BLOCKED, UNKNOWN and UNAVAILABLE on a keypad and
// stand for many people each.
func withheld(number string) bool {
	switch number {
	case "+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253":
		return true
	}
	return false
}

// sidShape reports prefix and 32 lower-case hex digits.
func sidShape(s, prefix string) bool {
	rest, found := strings.CutPrefix(s, prefix)
	if !found || len(rest) != 32 {
		return false
	}
	for _, c := range []byte(rest) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// count reads a number of parts: one to three digits, or nothing for none.
func count(s string) (int, bool) { return number(s, 3) }

// number reads at most so many decimal digits; nothing is 0.
func number(s string, digits int) (int, bool) {
	if len(s) > digits {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// contentType reports whether the request says once that its body is want in
// UTF-8, without a further encoding.
func contentType(header http.Header, want string) bool {
	types := header.Values("Content-Type")
	if len(types) != 1 || header.Get("Content-Encoding") != "" {
		return false
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != want {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// readBody reads at most MaxBody bytes: 413 beyond, 408 if the server's time for it is over, 400 if it breaks off.
func readBody(r *http.Request) ([]byte, *Refusal) {
	if r.ContentLength > MaxBody {
		return nil, &Refusal{http.StatusRequestEntityTooLarge, "body_size"} // nothing is kept of what is not to be read
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case len(raw) > MaxBody:
		return nil, &Refusal{http.StatusRequestEntityTooLarge, "body_size"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Refusal{http.StatusRequestTimeout, "body_timeout"}
	case err != nil:
		return nil, &Refusal{http.StatusBadRequest, "body_broken"}
	}
	return raw, nil
}
