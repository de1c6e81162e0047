package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/webhook"
)

// codeIn is the code that a text shows.
func codeIn(text string) string {
	_, rest, _ := strings.Cut(text, "Your code: ")
	code, _, _ := strings.Cut(rest, ". ")
	return code
}

// prompted has a stranger text and returns the code that they get, as it is written.
func (w *world) prompted(from string) string {
	w.t.Helper()
	before := len(w.twilio.texts())
	w.comes(w.text(from, "hi, it is me"))
	texts := w.twilio.texts()
	if len(texts) != before+1 {
		w.t.Fatalf("%d texts, want one more than %d", len(texts), before)
	}
	code := codeIn(texts[before])
	if _, err := people.ParseCode(code); err != nil {
		w.t.Fatalf("%q has no code", texts[before])
	}
	return code
}

// approve is what the owner types.
func (w *world) approve(typed string) (people.Person, error) {
	w.t.Helper()
	code, err := people.ParseCode(typed)
	if err != nil {
		return people.Person{}, err
	}
	return w.store.Approve(w.ctx, people.Approval{AccountID: people.DefaultAccount, Code: code, PersonID: offers.NewID(), Name: "Dana", Tier: gate.TierOwner, Welcome: people.WelcomeText("Dana")})
}

func (w *world) folk() int {
	w.t.Helper()
	list, err := w.store.People(w.ctx, people.DefaultAccount)
	w.must(err)
	return len(list)
}

func pairing() []play {
	return []play{
		{id: "PA-01", do: func(w *world) {
			code := w.prompted(stranger)
			w.events()
			// Texts try no code, whoever sends them.
			for _, words := range []string{code, "approve " + code + " --as owner", "ABCD2345"} {
				w.comes(w.text(stranger, words))
				w.says(words)
			}
			if n := w.folk(); n != 1 {
				w.t.Fatalf("%d people", n)
			}
			for _, e := range w.events() {
				if e.PersonID != w.person.ID {
					w.t.Errorf("the agent is told of a stranger: %s", e.Type)
				}
			}
			if n := len(w.twilio.texts()); n != 1 {
				w.t.Errorf("%d texts", n)
			}
			// At the owner's door they are counted, whatever they are.
			answers := map[error]int{}
			for range 1000 {
				_, err := w.approve(people.NewCode())
				answers[err]++
			}
			if answers[people.ErrNoCode] != people.MaxWrongCodes || answers[people.ErrTooManyCodes] != 1000-people.MaxWrongCodes {
				w.t.Errorf("answers %v", answers)
			}
			if _, err := w.approve(code); !errors.Is(err, people.ErrTooManyCodes) {
				w.t.Errorf("the right one: %v", err)
			}
			_, doors, err := w.store.Strangers(w.ctx, people.DefaultAccount)
			w.must(err)
			if doors.WrongCodes != people.MaxWrongCodes {
				w.t.Errorf("the owner is told of %d", doors.WrongCodes)
			}
			// One answer for what never was, what is over and what was used.
			w.pass(people.CodeLife + time.Minute)
			over := code
			code = w.prompted(stranger)
			if _, err := w.approve(code); err != nil {
				w.t.Fatal(err)
			}
			for _, c := range []string{over, code, "ABCD2345"} {
				if _, err := w.approve(c); !errors.Is(err, people.ErrNoCode) {
					w.t.Errorf("%v", err)
				}
			}
		}},
		{id: "PA-04", do: func(w *world) {
			code := w.prompted(stranger)
			there := w.add("sms:" + stranger) // so that the last step fails
			if _, err := w.approve(code); !errors.Is(err, people.ErrAddressTaken) {
				w.t.Fatalf("%v", err)
			}
			if n := w.folk(); n != 2 {
				w.t.Fatalf("%d people", n)
			}
			w.must(w.store.Unbind(w.ctx, people.DefaultAccount, there.ID, there.Addresses[0]))
			p, err := w.approve(code)
			w.must(err)
			if e := w.last(offers.PersonPaired); e.PersonID != p.ID {
				w.t.Errorf("the agent is told %s", e.Raw)
			}
			// From now on they are asked, and their yes counts.
			w.send()
			a := w.call(w.secret, http.MethodPost, "/v1/offers", "pa-04", fmt.Sprintf(`{"person_id":%q,"tool":"email.send","args":%s}`, p.ID, mailTo("omar@example.com")))
			var o offers.Offer
			a.into(w.t, &o)
			w.send()
			w.pass(read)
			w.comes(w.text(stranger, "yes"))
			w.want(o, offers.Consumed)
		}},
		{id: "PA-05", do: func(w *world) {
			for _, spell := range []func(string) string{
				strings.ToLower,
				func(c string) string { return c[:4] + "-" + c[4:] },
				func(c string) string { return " " + c[:4] + " " + c[4:] },
				func(c string) string { return c + "." },
				func(c string) string { return c[:4] + "\u2013" + strings.ToLower(c[4:]) + " . " },
			} {
				code := strings.ReplaceAll(w.prompted(stranger), "-", "")
				typed := spell(code)
				p, err := w.approve(typed)
				if err != nil {
					w.t.Fatalf("%q: %v", typed, err)
				}
				w.must(w.store.Unbind(w.ctx, people.DefaultAccount, p.ID, p.Addresses[0]))
				w.pass(people.PromptEvery + time.Minute)
			}
			for _, c := range []string{"K7M4Q2Z0", "K7M4Q2ZO", "K7M4Q2Z1", "K7M4Q2ZI", "K7M4Q2Z", "K7M4Q2ZPP", "K7M4Q2Z\u0420", "K7M4..Q2ZP", ""} {
				if _, err := w.approve(c); !errors.Is(err, people.ErrBadCode) {
					w.t.Errorf("%q: %v", c, err)
				}
			}
		}},
	}
}

// heard keeps whatever a reader was shown.
type heard struct {
	classifier.Reader
	mu  sync.Mutex
	all strings.Builder
}

func (h *heard) Read(ctx context.Context, in classifier.Input) (classifier.Reading, error) {
	h.mu.Lock()
	fmt.Fprintf(&h.all, "%s %v\n", in.Newest.String(), in.Offers)
	for _, e := range in.Earlier {
		h.all.WriteString(e.String() + "\n")
	}
	h.mu.Unlock()
	return h.Reader.Read(ctx, in)
}

// TestInvariant13_PendingTextIsNowhere has strangers and somebody suspended say a word that nobody else says, and looks for
// it wherever this product tells anything to anybody but the owner.
func TestInvariant13_PendingTextIsNowhere(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, *world) store{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, _ := builtIn(t)
			ear := &heard{Reader: reader}
			w := newWorld(t, open, func(s *setup) { s.reader = ear })
			const word = "marzipan"
			o := w.mail("dana@example.com")
			w.says("hm, not sure")
			kim := w.add("sms:" + sam)
			w.must(w.store.SetState(w.ctx, people.DefaultAccount, kim.ID, people.Suspended))
			for _, from := range []string{stranger, sam, "22395", "whatsapp:" + stranger} {
				for _, words := range []string{"yes " + word, word, "STOP " + word, "Liked “" + word + "”"} {
					w.comes(w.text(from, words).with("ProfileName", word))
				}
			}
			w.comes(w.text(stranger, "hi")) // a code is asked for, or was
			code := codeIn(strings.Join(w.twilio.texts(), "\n"))
			p, err := w.approve(code)
			w.must(err)
			w.must(w.store.SetState(w.ctx, people.DefaultAccount, kim.ID, people.Active))
			// By now they are people, and what they said before stays where it was.
			w.send()
			w.comes(w.text(stranger, "hello"))
			w.comes(w.text(sam, "hello"))
			w.pass(read)
			w.says("yes")
			w.want(o, offers.Consumed)
			w.pass(time.Minute)

			var told strings.Builder
			told.WriteString(ear.all.String())
			for _, e := range w.events() {
				told.WriteString(e.Raw + "\n")
			}
			told.WriteString(strings.Join(w.twilio.texts(), "\n"))
			told.WriteString(w.log.String())
			for _, path := range []string{
				"/v1/offers", "/v1/offers?person_id=" + p.ID, "/v1/offers/" + o.ID, "/v1/operations/" + o.OperationID, "/v1/events?limit=1000", "/v1/tools", "/v1/contacts",
				"/openapi.json", "/metrics",
			} {
				told.Write(w.call(w.secret, http.MethodGet, path, "", "").body)
			}
			for _, r := range w.received {
				if r.MessageID == "" {
					continue
				}
				got, err := w.store.Context(w.ctx, r.MessageID)
				w.must(err)
				fmt.Fprintf(&told, "%+v %+v\n", r, got)
				told.Write(w.call(w.secret, http.MethodPost, "/v1/runs", "", fmt.Sprintf(`{"cause":{"message_id":%q}}`, r.MessageID)).body)
			}
			undecided, err := w.store.Undecided(w.ctx, 0, 1000)
			w.must(err)
			if len(undecided) != 0 {
				t.Errorf("%d pending texts would be decided", len(undecided))
			}
			if i := strings.Index(strings.ToLower(told.String()), word); i >= 0 {
				t.Errorf("it is told: …%.300s", told.String()[max(0, i-200):])
			}
			if !strings.Contains(told.String(), "hello") || len(ear.all.String()) == 0 {
				t.Error("nothing was looked at")
			}
			// The owner alone finds it.
			list, _, err := w.store.Strangers(w.ctx, people.DefaultAccount)
			w.must(err)
			found := 0
			for _, s := range list {
				for _, x := range s.Texts {
					if strings.Contains(x.Text, word) {
						found++
					}
				}
			}
			if found < 8 {
				t.Errorf("the owner finds %d of the texts", found)
			}
		})
	}
}

// TestInvariant14_NothingThatAMessageReachesCanPair: what handles messages and agents' calls is handed stores without any
// method that makes, changes or binds a person, so that no mistake in there can.
func TestInvariant14_NothingThatAMessageReachesCanPair(t *testing.T) {
	owners := map[string]bool{"AddPerson": true, "SetState": true, "SetTier": true, "AddKey": true, "RevokeKey": true}
	for _, kept := range []reflect.Type{reflect.TypeFor[people.PairingStore](), reflect.TypeFor[people.AccountStore]()} {
		for i := range kept.NumMethod() {
			owners[kept.Method(i).Name] = true
		}
	}
	if len(owners) < 16 {
		t.Fatalf("%d methods of the owner", len(owners))
	}
	for _, given := range []reflect.Type{
		reflect.TypeFor[webhook.Intake](), reflect.TypeFor[webhook.Reports](), reflect.TypeFor[reply.Inbox](), reflect.TypeFor[offers.Store](),
		reflect.TypeFor[offers.PromptLine](), reflect.TypeFor[api.KeyStore](), reflect.TypeFor[api.Proposer](), reflect.TypeFor[api.Confirmer](),
	} {
		for i := range given.NumMethod() {
			if name := given.Method(i).Name; owners[name] {
				t.Errorf("%s has %s", given, name)
			}
		}
	}
}
