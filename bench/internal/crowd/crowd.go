// Package crowd is what measuring many people's yeses takes: a crowd with one open, shown offer each, their signed
// replies, a provider that accepts every text, and the limit, which is the least program that does the same work.
package crowd

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio signs with it
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// The provider's account, the number that the crowd writes to, and where its webhooks arrive.
const (
	AuthToken  = "0123456789abcdef0123456789abcdef" // of no account
	AccountSID = "AC00000000000000000000000000000000"
	OurNumber  = "+12025550100"
	PublicURL  = "https://approve.example.com"
	HookPath   = "/webhooks/twilio/messages"
)

// Number is the address of the n-th person. The limit reads n out of it, in this form.
func Number(n int) string { return fmt.Sprintf("+1555%07d", n) }

// Reply is a text that the provider posts: a form and its header, signed for a URL.
type Reply struct {
	Header http.Header
	Body   []byte
}

// NewReply is a reply of the n-th person, who may send several messages, from 0. The last eight digits of its id at the
// provider are n.
func NewReply(n, message int, words, signedURL string) Reply {
	sid := fmt.Sprintf("SM%024x%08x", message, n)
	form := url.Values{
		"From": {Number(n)}, "To": {OurNumber}, "Body": {words}, "NumMedia": {"0"}, "NumSegments": {"1"}, "AccountSid": {AccountSID},
		"ApiVersion": {"2010-04-01"}, "FromCountry": {"US"}, "ToCountry": {"US"}, "SmsStatus": {"received"},
		"MessageSid": {sid}, "SmsSid": {sid}, "SmsMessageSid": {sid},
	}
	var b strings.Builder
	b.WriteString(signedURL)
	for _, k := range slices.Sorted(maps.Keys(form)) {
		b.WriteString(k + form.Get(k))
	}
	mac := hmac.New(sha1.New, []byte(AuthToken))
	mac.Write([]byte(b.String()))
	return Reply{
		http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "X-Twilio-Signature": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
		}, []byte(form.Encode()),
	}
}

// Accept is a provider that takes every text.
func Accept(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"sid":"SM00000000000000000000000000000000","status":"queued"}`)
}

// Environ is the environment of `bot serve` behind that provider.
func Environ(addr, databaseURL, providerURL string) []string {
	return []string{
		"COUNTERSIGN_ADDR=" + addr, "COUNTERSIGN_DATABASE_URL=" + databaseURL, "COUNTERSIGN_PUBLIC_URL=" + PublicURL,
		"COUNTERSIGN_POLICY=", "COUNTERSIGN_SIM=", "COUNTERSIGN_READER=local",
		"TWILIO_ACCOUNT_SID=" + AccountSID, "TWILIO_AUTH_TOKEN=" + AuthToken, "TWILIO_FROM=" + OurNumber, "TWILIO_API_URL=" + providerURL,
	}
}

// Store is what a crowd needs of the product's stores.
type Store interface {
	offers.Store
	people.Store
	Migrate(ctx context.Context) (int, error)
	Close() error
}

// Seed gives people 1 to n one open, shown offer each, by the calls that a server makes, and returns the operations in
// their order. The accounts are there.
func Seed(ctx context.Context, s Store, account func(n int) string, n, workers int) ([]string, error) {
	policy, err := gate.Sample()
	if err != nil {
		return nil, err
	}
	service := offers.NewService(s, policy, func(string) int { return 1600 })
	operations := make([]string, n)
	var next atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error {
			for gctx.Err() == nil {
				i := int(next.Add(1))
				if i > n {
					return nil
				}
				var err error
				if operations[i-1], err = propose(gctx, s, service, account(i), i); err != nil {
					return err
				}
			}
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for {
		t, err := s.Reserve(ctx)
		if err != nil || t == nil {
			return operations, err
		}
		if err := s.Sent(ctx, t.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: "SM" + t.ID}); err != nil {
			return nil, err
		}
	}
}

// propose adds the n-th person, puts an offer to them, and returns its operation. Deletes never leave the account, so that
// their offers live for a day.
func propose(ctx context.Context, s Store, service *offers.Service, account string, n int) (string, error) {
	p := people.Person{
		ID: offers.NewID(), AccountID: account, Name: fmt.Sprintf("Person %d", n), Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: people.Address("sms:" + Number(n)), OurNumber: "sms:" + OurNumber}},
	}
	if err := s.AddPerson(ctx, p); err != nil {
		return "", err
	}
	op, _, err := service.Propose(ctx, offers.Request{
		AccountID: account, Call: "POST /v1/offers", Key: p.ID, PersonID: p.ID, Kind: string(gate.KindToolCall), Tool: "email.delete",
		Args: fmt.Appendf(nil, `{"message_id":"message-%d","subject":"Minutes of the meeting"}`, n),
	})
	if err == nil && op.State != offers.OpAsked {
		err = fmt.Errorf("the seeded operation is %s (%s)", op.State, op.Reason)
	}
	return op.ID, err
}
