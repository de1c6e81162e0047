package webhook

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/people"
)

// SimNumber is our own number on the simulated phone, as +12025550199 would be
// on Twilio.
const SimNumber people.Address = "sim:countersign"

// NewSimHandler serves POST /webhooks/sim/messages, the simulated phone:
//
//	{"id":"m1","address":"sim:alex","text":"ya send it","quote":"…"}
//
// id is unique per text and dedupes like a provider's; quote, if given, is the
// text that was answered. It takes sim: addresses from this machine only, and
// answers as [NewTwilioHandler] does, with 403 for every other peer.
func NewSimHandler(intake Intake, o Options) http.Handler {
	return newDoor(readSim, intake, o)
}

// simMessage is the body; unknown, repeated and differently cased names are
// errors.
type simMessage struct {
	ID      string  `json:"id"`
	Address string  `json:"address"`
	Text    *string `json:"text"`
	Quote   string  `json:"quote"`
}

func readSim(r *http.Request) (Inbound, *Refusal) {
	if r.Method != http.MethodPost {
		return Inbound{}, &Refusal{http.StatusMethodNotAllowed, "method"}
	}
	if !fromThisMachine(r) { // mutant: webhook.sim-loopback
		return Inbound{}, &Refusal{http.StatusForbidden, "peer"}
	}
	if !contentType(r.Header, "application/json") {
		return Inbound{}, &Refusal{http.StatusUnsupportedMediaType, "content_type"}
	}
	raw, refusal := readBody(r)
	if refusal != nil {
		return Inbound{}, refusal
	}
	var m simMessage
	// The package's defaults refuse duplicate names, invalid UTF-8, lone
	// surrogates and names in another case.
	if err := json.Unmarshal(raw, &m, json.RejectUnknownMembers(true)); err != nil {
		return Inbound{}, &Refusal{http.StatusBadRequest, "json"}
	}
	if !simID(m.ID) {
		return Inbound{}, &Refusal{http.StatusBadRequest, "id"}
	}
	from, err := people.ParseAddress(m.Address)
	if err != nil || from.Channel() != "sim" || from == SimNumber { // mutant: webhook.sim-address
		return Inbound{}, &Refusal{http.StatusBadRequest, "address"}
	}
	if m.Text == nil {
		return Inbound{}, &Refusal{http.StatusBadRequest, "text"}
	}
	text, lossyText := readable(*m.Text)
	quote, lossyQuote := readable(m.Quote)
	return Inbound{
		Provider:    ProviderSim,
		ProviderSID: m.ID,
		From:        from,
		FromRaw:     Text(from),
		To:          SimNumber,
		Body:        Bytes(*m.Text),
		Text:        text,
		Lossy:       lossyText || lossyQuote,
		Quote:       quote,
		NumSegments: 1,
		Raw:         Bytes(raw),
	}, nil
}

// fromThisMachine reports a loopback peer that speaks for itself: no proxy's
// forwarding header, and neither a page of another site nor one that reached us
// under a foreign host name (DNS rebinding).
func fromThisMachine(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return false
	}
	return http.NewCrossOriginProtection().Check(r) == nil
}

// simID reports 1 to 128 ASCII letters, digits, dots, underscores or hyphens.
func simID(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
