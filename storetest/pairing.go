package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// nobody is a sender whom nobody knows.
func (w *world) nobody() people.Person {
	w.t.Helper()
	return people.Person{Addresses: []people.Binding{{Address: w.address(), OurNumber: Ours}}}
}

// knocks stores a stranger's text and demands whether it gets a code.
func (w *world) knocks(in offers.Inbound, prompted bool) offers.Received {
	w.t.Helper()
	r := w.receive(in)
	if r.Prompted != prompted || r.Trusted || r.RunID != "" {
		w.t.Fatalf("received %+v, want prompted %v", r, prompted)
	}
	return r
}

// prompt takes the next prompt and has it accepted; there must be one.
func (w *world) prompt() people.Prompt {
	w.t.Helper()
	p, err := w.Store.ReservePrompt(w.ctx)
	w.must(err)
	if p == nil {
		w.t.Fatal("no prompt is queued")
	}
	w.must(w.Store.PromptSent(w.ctx, p.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: "SMp"}))
	return *p
}

func (w *world) noPrompt() {
	w.t.Helper()
	if p, err := w.Store.ReservePrompt(w.ctx); err != nil || p != nil {
		w.t.Fatalf("a prompt goes out: %v, %v", p, err)
	}
}

// code lets a stranger knock and returns the code that they were sent.
func (w *world) code(p people.Person) string {
	w.t.Helper()
	w.knocks(inbound(p, "hi"), true)
	got := w.prompt()
	if got.Address != p.Addresses[0].Address || got.OurNumber != p.Addresses[0].OurNumber {
		w.t.Fatalf("a code for %+v went to %v", p, got)
	}
	return got.Code
}

func approval(code string) people.Approval {
	return people.Approval{AccountID: people.DefaultAccount, Code: code, PersonID: offers.NewID(), Name: "Dana", Tier: gate.TierOwner}
}

func (w *world) folk(account string) []people.Person {
	w.t.Helper()
	list, err := w.Store.People(w.ctx, account)
	w.must(err)
	return list
}

// strangers is the owner's list; there must be so many senders in it.
func (w *world) strangers(n int) []people.Pending {
	w.t.Helper()
	list, _, err := w.Store.Strangers(w.ctx, people.DefaultAccount)
	w.must(err)
	if len(list) != n {
		w.t.Fatalf("%d senders, want %d: %+v", len(list), n, list)
	}
	return list
}

func (w *world) counts() people.PairingCounts {
	w.t.Helper()
	_, d, err := w.Store.Strangers(w.ctx, people.DefaultAccount)
	w.must(err)
	return d
}

// wrong is a code of the right form that nobody was sent.
func wrong(n int) string {
	return "WRNG" + string([]byte{people.CodeAlphabet[n%32], people.CodeAlphabet[n/32%32]}) + "ZZ"
}

// pairingTests hold strangers: what is kept of them, what they are sent, and what only the owner can do about it.
func pairingTests(t *testing.T, open Open) {
	t.Run("Prompt", func(t *testing.T) { promptTests(t, open) })
	t.Run("Approve", func(t *testing.T) { approveTests(t, open) })
	t.Run("Flood", func(t *testing.T) { floodTests(t, open) })
	t.Run("Promote", func(t *testing.T) { promoteTests(t, open) })
	t.Run("Bindings", func(t *testing.T) { bindingTests(t, open) })
}

func promptTests(t *testing.T, open Open) {
	t.Run("OnceInAnHour", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		code := w.code(p)
		if again, err := people.ParseCode(code); err != nil || again != code {
			t.Fatalf("code %q: %v", code, err)
		}
		w.noPrompt() // one text, and no second one
		w.Advance(30 * time.Minute)
		w.knocks(inbound(p, "hello?"), false)
		w.noPrompt()
		w.Advance(30*time.Minute + time.Second)
		w.knocks(inbound(p, "hello?"), true)
		if next := w.prompt(); next.Code == code {
			t.Fatal("the old code again")
		}
		if got := w.strangers(1)[0]; len(got.Texts) != 3 || got.Code != people.CodeWaiting || got.Prompt != people.PromptAccepted {
			t.Fatalf("pending %+v", got)
		}
	})
	t.Run("ThreeOfOneReceivingNumber", func(t *testing.T) {
		w := newWorld(t, open)
		var codes []string
		for range people.MaxPendingCodes {
			codes = append(codes, w.code(w.nobody()))
		}
		fourth := w.nobody()
		w.knocks(inbound(fourth, "hi"), false)
		there := w.nobody()
		there.Addresses[0].OurNumber = OursToo
		w.code(there)
		_, err := w.Store.Approve(w.ctx, approval(codes[0]))
		w.must(err)
		w.code(fourth) // a place is free again
		w.knocks(inbound(w.nobody(), "hi"), false)
		w.Advance(people.CodeLife + time.Second)
		w.code(w.nobody())
	})
	for name, c := range map[string]struct {
		in     func(in *offers.Inbound)
		next   bool // whether plain words after it get a code
		listed bool // as one who wants no text
	}{
		"Stop":    {in: func(in *offers.Inbound) { in.Text, in.Keyword = "STOP", people.KeywordStop }, listed: true},
		"Help":    {in: func(in *offers.Inbound) { in.Text, in.Keyword = "HELP", people.KeywordHelp }, next: true},
		"Start":   {in: func(in *offers.Inbound) { in.Text, in.Keyword = "START", people.KeywordStart }, next: true},
		"Picture": {in: func(in *offers.Inbound) { in.Lossy = true }, next: true},
		"Nobody":  {in: func(in *offers.Inbound) { in.Address = "" }, next: true},
	} {
		t.Run("NoneFor"+name, func(t *testing.T) {
			w := newWorld(t, open)
			p := w.nobody()
			in := inbound(p, "hi")
			c.in(&in)
			w.knocks(in, false)
			w.noPrompt()
			if got := w.strangers(1)[0]; got.OptedOut != c.listed || got.Code != people.CodeNone {
				t.Fatalf("pending %+v", got)
			}
			w.Advance(2 * time.Hour)
			w.knocks(inbound(p, "hi"), c.next)
		})
	}
	t.Run("NoneAfterStopUntilStart", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		say := func(k people.Keyword, prompted bool) {
			in := inbound(p, "words")
			in.Keyword = k
			w.knocks(in, prompted)
		}
		say(people.KeywordStop, false)
		w.Advance(24 * time.Hour)
		say("", false)
		say(people.KeywordStart, false)
		say("", true)
		say(people.KeywordStop, false) // before the prompt has left
		w.noPrompt()
	})
	t.Run("NoneToWhoIsBoundMeanwhileOrTooLate", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.nobody(), w.nobody()
		w.knocks(inbound(p, "hi"), true)
		w.personAt(people.DefaultAccount, gate.TierPaired, p.Addresses...)
		w.noPrompt()
		w.knocks(inbound(q, "hi"), true)
		w.Advance(people.CodeLife)
		w.noPrompt()
	})
	t.Run("NoneToSomebodySuspended", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierPaired)
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		w.knocks(inbound(p, "hi"), false)
		if got := w.strangers(1)[0]; got.PersonID != p.ID || len(got.Texts) != 1 {
			t.Fatalf("pending %+v", got)
		}
		stop := inbound(p, "stop")
		stop.Keyword = people.KeywordStop
		w.knocks(stop, false)
		if got := w.strangers(1)[0]; !got.OptedOut {
			t.Fatalf("pending %+v", got)
		}
	})
	t.Run("NeverAgainAfterAnUnknownOutcomeOrACrash", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.nobody(), w.nobody()
		for _, s := range []people.Person{p, q} {
			w.knocks(inbound(s, "hi"), true)
		}
		first, err := w.Store.ReservePrompt(w.ctx)
		w.must(err)
		second, err := w.Second().ReservePrompt(w.ctx)
		w.must(err)
		if first == nil || second == nil || first.ID == second.ID {
			t.Fatalf("prompts %v, %v", first, second)
		}
		w.must(w.Store.PromptSent(w.ctx, first.ID, offers.SendResult{}))
		w.must(w.Store.PromptSent(w.ctx, first.ID, offers.SendResult{Outcome: offers.OutcomeAccepted})) // too late: it is settled
		w.noPrompt()
		w.Advance(10 * time.Minute)
		w.noPrompt()
		var states []people.PromptState
		for _, s := range w.strangers(2) {
			states = append(states, s.Prompt)
		}
		slices.Sort(states)
		equal(t, "states", states, []people.PromptState{people.PromptSending, people.PromptUnknown})
		_, err = w.Store.Approve(w.ctx, approval(first.Code)) // it may have arrived
		w.must(err)
	})
	t.Run("TheCarrierSaysThatNoTextIsWanted", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		w.knocks(inbound(p, "hi"), true)
		got, err := w.Store.ReservePrompt(w.ctx)
		w.must(err)
		w.must(w.Store.PromptSent(w.ctx, got.ID, offers.SendResult{Outcome: offers.OutcomeRejected, Code: offers.CodeOptedOut}))
		w.Advance(2 * time.Hour)
		w.knocks(inbound(p, "hi"), false)
	})
	t.Run("TwentyTextsAtOnceGetOne", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		p := w.nobody()
		prompted := 0
		for _, r := range together(20, func(i int) result[offers.Received] {
			r, err := stores[i%2].Receive(w.ctx, inbound(p, "hi"))
			return result[offers.Received]{r, err}
		}) {
			w.must(r.err)
			if r.value.Prompted {
				prompted++
			}
		}
		if prompted != 1 {
			t.Fatalf("%d prompts", prompted)
		}
	})
	t.Run("TheNumbersAccount", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		w.must(w.Store.GiveNumber(w.ctx, other, OursToo))
		p := w.nobody()
		p.Addresses[0].OurNumber = OursToo
		if r := w.knocks(inbound(p, "hi"), true); r.AccountID != other {
			t.Fatalf("received %+v", r)
		}
		code := w.prompt().Code
		w.strangers(0)
		list, _, err := w.Store.Strangers(w.ctx, other)
		w.must(err)
		if len(list) != 1 {
			t.Fatalf("the account sees %+v", list)
		}
		_, err = w.Store.Approve(w.ctx, approval(code))
		w.wantErr(err, people.ErrNoCode)
		a := approval(code)
		a.AccountID = other
		got, err := w.Store.Approve(w.ctx, a)
		w.must(err)
		if got.AccountID != other || len(w.folk(people.DefaultAccount)) != 0 || len(w.folk(other)) != 1 {
			t.Fatalf("approved %+v", got)
		}
	})
}

func approveTests(t *testing.T, open Open) {
	t.Run("MakesAPersonWhoseYesCounts", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		a := approval(w.code(p))
		a.Welcome = "You are known here now."
		got, err := w.Store.Approve(w.ctx, a)
		w.must(err)
		w.wantEvents(got, offers.PersonPaired)
		w.wantTexts(got, "1 notice queued")
		list := w.folk(people.DefaultAccount)
		i := slices.IndexFunc(list, func(x people.Person) bool { return x.ID == got.ID })
		if i < 0 || list[i].Name != "Dana" || list[i].Tier != gate.TierOwner || list[i].State != people.Active || !slices.Equal(list[i].Addresses, p.Addresses) {
			t.Fatalf("people %+v", list)
		}
		w.sendAll()
		o := w.shown(got)
		w.wins(yes(o, w.says(got, "yes")))
		_, err = w.Store.Approve(w.ctx, approval(a.Code)) // used
		w.wantErr(err, people.ErrNoCode)
		if got := w.strangers(1)[0]; got.Code != people.CodeOver || got.PersonID == "" {
			t.Fatalf("pending %+v", got)
		}
	})
	t.Run("WhoWantsNoTextsGetsNone", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		a := approval(w.code(p))
		a.Welcome = "Hello."
		stop := inbound(p, "stop")
		stop.Keyword = people.KeywordStop
		w.knocks(stop, false)
		got, err := w.Store.Approve(w.ctx, a)
		w.must(err)
		w.wantTexts(got)
		if r := w.says(got, "hi"); !r.Trusted || !r.OptedOut {
			t.Fatalf("received %+v", r)
		}
		// And after the end of the binding, too.
		w.must(w.Store.Unbind(w.ctx, got.AccountID, got.ID, p.Addresses[0]))
		w.Advance(2 * time.Hour)
		w.knocks(inbound(p, "hi"), false)
	})
	// The code names the phone that it was sent to, whoever types it where.
	t.Run("Invariant14_ACodeTextedBackDoesNothing", func(t *testing.T) {
		w := newWorld(t, open)
		owner, p := w.person(gate.TierOwner), w.nobody()
		code := w.code(p)
		n := len(w.folk(people.DefaultAccount))
		for _, from := range []people.Person{p, w.nobody(), owner} {
			for _, text := range []string{code, "approve " + code, "bot people approve " + code + " --as owner"} {
				if r := w.says(from, text); r.Trusted != (from.ID == owner.ID) {
					t.Fatalf("received %+v", r)
				}
			}
		}
		if got := len(w.folk(people.DefaultAccount)); got != n {
			t.Fatalf("%d people, want %d", got, n)
		}
		_, err := w.Store.Approve(w.ctx, approval(code))
		w.must(err)
	})
	t.Run("Over", func(t *testing.T) {
		w := newWorld(t, open)
		code := w.code(w.nobody())
		w.Advance(people.CodeLife)
		_, err := w.Store.Approve(w.ctx, approval(code))
		w.wantErr(err, people.ErrNoCode)
	})
	t.Run("PA01_WrongCodesAreCounted", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		code := w.code(w.nobody())
		for i := range people.MaxWrongCodes {
			_, err := w.Store.Approve(w.ctx, approval(wrong(i)))
			w.wantErr(err, people.ErrNoCode)
		}
		if got := w.counts().WrongCodes; got != people.MaxWrongCodes {
			t.Fatalf("%d wrong codes are told", got)
		}
		for _, c := range []string{code, wrong(99)} {
			_, err := w.Second().Approve(w.ctx, approval(c))
			w.wantErr(err, people.ErrTooManyCodes)
		}
		elsewhere := approval(wrong(1))
		elsewhere.AccountID = other
		_, err := w.Store.Approve(w.ctx, elsewhere)
		w.wantErr(err, people.ErrNoCode)
		w.Advance(people.CodeLife)
		_, err = w.Store.Approve(w.ctx, approval(w.code(w.nobody())))
		w.must(err)
		nowhere := approval(wrong(1))
		nowhere.AccountID = "nowhere"
		_, err = w.Store.Approve(w.ctx, nowhere)
		w.wantErr(err, people.ErrNoAccount)
	})
	t.Run("PA01_AThousandGuessesAtOnce", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		whys := map[error]int{}
		for _, err := range together(60, func(i int) error {
			_, err := stores[i%2].Approve(w.ctx, approval(wrong(i)))
			return err
		}) {
			whys[err]++
		}
		if whys[people.ErrNoCode] != people.MaxWrongCodes || whys[people.ErrTooManyCodes] != 60-people.MaxWrongCodes {
			t.Fatalf("answers %v", whys)
		}
	})
	t.Run("PA04_BothOrNone", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		code := w.code(p)
		there := w.personAt(people.DefaultAccount, gate.TierPaired, p.Addresses...)
		_, err := w.Store.Approve(w.ctx, approval(code)) // fails at the address, after everything else
		w.wantErr(err, people.ErrAddressTaken)
		if n := len(w.folk(people.DefaultAccount)); n != 1 {
			t.Fatalf("%d people", n)
		}
		w.must(w.Store.Unbind(w.ctx, there.AccountID, there.ID, p.Addresses[0]))
		_, err = w.Store.Approve(w.ctx, approval(code)) // the same code
		w.must(err)
	})
	t.Run("TwentyAtOnceMakeOnePerson", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		for range 5 {
			before := len(w.folk(people.DefaultAccount))
			p := w.nobody()
			code := w.code(p)
			won := 0
			for _, err := range together(20, func(i int) error {
				_, err := stores[i%2].Approve(w.ctx, approval(code))
				return err
			}) {
				switch {
				case err == nil:
					won++
				case !errors.Is(err, people.ErrNoCode) && !errors.Is(err, people.ErrTooManyCodes):
					t.Fatal(err)
				}
			}
			if got := len(w.folk(people.DefaultAccount)) - before; won != 1 || got != 1 {
				t.Fatalf("%d won, %d people", won, got)
			}
			w.Advance(people.CodeLife) // the others were counted
		}
	})
}

func floodTests(t *testing.T, open Open) {
	t.Run("OfOneSender", func(t *testing.T) {
		w := newWorld(t, open)
		p, q := w.nobody(), w.nobody()
		var last offers.Received
		for i := range people.SenderTexts {
			last = w.knocks(inbound(p, fmt.Sprint(i)), i == 0)
		}
		in := inbound(p, "one more")
		for range 3 { // also when the provider tries again
			if r := w.knocks(in, false); r.MessageID != "" || r.Duplicate {
				t.Fatalf("received %+v", r)
			}
		}
		again := w.receive(offers.Inbound{Provider: "twilio", ProviderID: in.ProviderID, Address: q.Addresses[0].Address, OurNumber: Ours, Text: "x", Raw: []byte("x")})
		if again.Duplicate {
			t.Fatal("a text that was not kept is known")
		}
		list := w.strangers(2)
		if n := len(list[1].Texts); n != people.SenderTexts || list[1].Texts[n-1].MessageID != last.MessageID {
			t.Fatalf("kept %+v", list[1])
		}
		if d := w.counts(); d.Dropped != 3 {
			t.Fatalf("counts %+v", d)
		}
		w.Advance(time.Hour + time.Second)
		if r := w.receive(inbound(p, "an hour later")); r.MessageID == "" {
			t.Fatal("the hour is over, and nothing is kept")
		}
	})
	t.Run("InBytes", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		half := strings.Repeat("x", people.SenderBytes/4) // the words and the raw bytes count
		w.knocks(inbound(p, half), true)
		w.knocks(inbound(p, half), false)
		if r := w.receive(inbound(p, "x")); r.MessageID != "" {
			t.Fatalf("kept %+v", r)
		}
		for range people.NumberBytes/people.SenderBytes - 1 {
			q := w.nobody()
			w.receive(inbound(q, half))
			w.receive(inbound(q, half))
		}
		if r := w.receive(inbound(w.nobody(), "x")); r.MessageID != "" || r.Prompted {
			t.Fatalf("kept %+v", r)
		}
	})
	t.Run("OfManySenders", func(t *testing.T) {
		w := newWorld(t, open)
		owner := w.person(gate.TierOwner)
		kept := 0
		for range people.NumberTexts + 10 {
			if r := w.receive(inbound(w.nobody(), "hi")); r.MessageID != "" {
				kept++
			}
		}
		if kept != people.NumberTexts {
			t.Fatalf("kept %d", kept)
		}
		if r := w.says(owner, "yes"); !r.Trusted {
			t.Fatal("strangers keep a person out")
		}
		w.must(w.Store.SetState(w.ctx, owner.AccountID, owner.ID, people.Suspended))
		if r := w.says(owner, "hm"); r.MessageID == "" {
			t.Fatal("strangers keep out what somebody suspended writes")
		}
		there := w.nobody()
		there.Addresses[0].OurNumber = OursToo
		w.knocks(inbound(there, "hi"), true)
		// A stranger who was sent a text is heard even now; one who was not needs no row.
		prompted := w.prompt()
		for _, a := range []people.Address{prompted.Address, w.address()} {
			in := inbound(people.Person{Addresses: []people.Binding{{Address: a, OurNumber: prompted.OurNumber}}}, "stop")
			in.Keyword = people.KeywordStop
			w.receive(in)
		}
		w.Advance(2 * time.Hour)
		w.knocks(inbound(people.Person{Addresses: []people.Binding{{Address: prompted.Address, OurNumber: prompted.OurNumber}}}, "hi"), false)
	})
	t.Run("AtOnce", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		p := w.nobody()
		kept := 0
		for _, r := range together(40, func(i int) result[offers.Received] {
			r, err := stores[i%2].Receive(w.ctx, inbound(p, "hi"))
			return result[offers.Received]{r, err}
		}) {
			w.must(r.err)
			if r.value.MessageID != "" {
				kept++
			}
		}
		if kept != people.SenderTexts {
			t.Fatalf("kept %d", kept)
		}
	})
	t.Run("TheSameTextTenTimesAtOnceIsOne", func(t *testing.T) {
		w := newWorld(t, open)
		stores := []Store{w.Store, w.Second()}
		in := inbound(w.nobody(), "hi")
		first := 0
		for _, r := range together(10, func(i int) result[offers.Received] {
			r, err := stores[i%2].Receive(w.ctx, in)
			return result[offers.Received]{r, err}
		}) {
			w.must(r.err)
			if !r.value.Duplicate {
				first++
			}
		}
		if first != 1 || len(w.strangers(1)[0].Texts) != 1 {
			t.Fatalf("%d times the first", first)
		}
	})
	t.Run("IsForgotten", func(t *testing.T) {
		w := newWorld(t, open)
		in := inbound(w.nobody(), "old words")
		in.Name = "Old name"
		r := w.knocks(in, true)
		w.due("forgetting", w.Store.ForgetPending, 0)
		w.Advance(people.PendingKept + time.Minute)
		fresh := w.nobody()
		w.knocks(inbound(fresh, "fresh words"), true)
		w.due("forgetting", w.Store.ForgetPending, 2) // the text, and its code
		if got := w.strangers(1)[0]; got.Address != fresh.Addresses[0].Address {
			t.Fatalf("pending %+v", got)
		}
		if raw := w.Raw(r.MessageID); len(raw) != 0 {
			t.Fatalf("kept %q", raw)
		}
		if again := w.receive(in); !again.Duplicate || again.Text != "" {
			t.Fatalf("a forgotten text came anew: %+v", again)
		}
	})
}

func promoteTests(t *testing.T, open Open) {
	t.Run("IsEvidenceAndNoReply", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.nobody()
		code := w.code(p)
		said := w.knocks(inbound(p, "yes send it"), false)
		_, err := w.Store.Promote(w.ctx, people.DefaultAccount, said.MessageID)
		w.wantErr(err, people.ErrNobody)
		got, err := w.Store.Approve(w.ctx, approval(code))
		w.must(err)
		o := w.shown(got)
		was := w.trace(o)
		id, err := w.Store.Promote(w.ctx, people.DefaultAccount, said.MessageID)
		w.must(err)
		if id != got.ID {
			t.Fatalf("promoted to %s", id)
		}
		equal(t, "a promoted text left something behind", w.trace(o), was)
		w.wantUndecided(0)
		r, err := w.Store.Context(w.ctx, said.MessageID)
		w.must(err)
		if r.Trusted || r.RunID != "" || r.Text != "" || !r.Decided || r.PersonID != got.ID {
			t.Fatalf("context %+v", r)
		}
		w.refused(yes(o, offers.Received{MessageID: said.MessageID, PersonID: got.ID, RunID: offers.NewID()}), offers.WhyDecided)
		if next := w.says(got, "hello"); len(next.Earlier) != 0 {
			t.Fatalf("earlier %v", next.Earlier)
		}
		_, err = w.Store.Promote(w.ctx, people.DefaultAccount, said.MessageID) // it is pending no more
		w.wantErr(err, people.ErrNotFound)
		if got := w.strangers(1)[0]; len(got.Texts) != 1 {
			t.Fatalf("pending %+v", got)
		}
	})
	t.Run("OfSomebodySuspended", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		said := w.says(p, "what I said")
		_, err := w.Store.Promote(w.ctx, p.AccountID, said.MessageID)
		w.wantErr(err, people.ErrNobody)
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Active))
		// Somebody else who has the address by now did not say it.
		w.must(w.Store.Unbind(w.ctx, p.AccountID, p.ID, p.Addresses[0]))
		q := w.personAt(people.DefaultAccount, gate.TierOwner, p.Addresses[0])
		_, err = w.Store.Promote(w.ctx, p.AccountID, said.MessageID)
		w.wantErr(err, people.ErrNobody)
		w.must(w.Store.Unbind(w.ctx, q.AccountID, q.ID, p.Addresses[0]))
		w.must(w.Store.Bind(w.ctx, p.AccountID, p.ID, p.Addresses[0]))
		_, err = w.Store.Promote(w.ctx, p.AccountID, said.MessageID)
		w.must(err)
	})
	t.Run("NotThere", func(t *testing.T) {
		w := newWorld(t, open)
		w.AddAccount(other)
		p := w.person(gate.TierOwner)
		trusted := w.says(p, "yes")
		stranger := w.knocks(inbound(w.nobody(), "hi"), true)
		for account, ids := range map[string][]string{
			people.DefaultAccount: {trusted.MessageID, offers.NewID(), "dana"},
			other:                 {stranger.MessageID, trusted.MessageID},
		} {
			for _, id := range ids {
				_, err := w.Store.Promote(w.ctx, account, id)
				w.wantErr(err, people.ErrNotFound)
			}
		}
	})
}

func bindingTests(t *testing.T, open Open) {
	t.Run("OneMore", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		b := people.Binding{Address: w.address(), OurNumber: OursToo}
		w.must(w.Store.Bind(w.ctx, p.AccountID, p.ID, b))
		if r := w.says(people.Person{Addresses: []people.Binding{b}}, "hi"); r.PersonID != p.ID || !r.Trusted {
			t.Fatalf("received %+v", r)
		}
		q := w.person(gate.TierOwner)
		w.wantErr(w.Store.Bind(w.ctx, q.AccountID, q.ID, b), people.ErrAddressTaken)
		w.AddAccount(other)
		free := people.Binding{Address: w.address(), OurNumber: Ours}
		w.wantErr(w.Store.Bind(w.ctx, other, p.ID, free), people.ErrNotFound)
		w.wantErr(w.Store.Bind(w.ctx, p.AccountID, offers.NewID(), free), people.ErrNotFound)
		w.wantErr(w.Store.Unbind(w.ctx, other, p.ID, b), people.ErrNotFound)
		w.wantErr(w.Store.Unbind(w.ctx, p.AccountID, p.ID, free), people.ErrNotFound)
		w.wantErr(w.Store.Unbind(w.ctx, q.AccountID, q.ID, b), people.ErrNotFound)
	})
	t.Run("TheOwnerTakesOne", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.shown(p)
		w.must(w.Store.Unbind(w.ctx, p.AccountID, p.ID, p.Addresses[0]))
		w.wantState(o.ID, offers.Withdrawn)
		w.wantEvents(p, offers.OfferOpened, offers.OfferClosed, offers.OperationClosed, offers.PersonUnbound)
		w.wantNoContext(w.says(p, "yes"))
		got := w.folk(people.DefaultAccount)[0]
		if len(got.Addresses) != 0 || len(got.Unbound) != 1 || got.Unbound[0].Why != people.UnboundOwner || got.Unbound[0].Binding != p.Addresses[0] {
			t.Fatalf("person %+v", got)
		}
		w.must(w.Store.Bind(w.ctx, p.AccountID, p.ID, p.Addresses[0]))
		if got := w.folk(people.DefaultAccount)[0]; len(got.Addresses) != 1 || len(got.Unbound) != 0 {
			t.Fatalf("person %+v", got)
		}
	})
	t.Run("ID01_AnIdleOneIsUnbound", func(t *testing.T) {
		w := newWorld(t, open)
		const idle = 90 * 24 * time.Hour
		quiet, talks := w.person(gate.TierOwner), w.person(gate.TierOwner)
		two := w.personAt(people.DefaultAccount, gate.TierOwner, people.Binding{Address: w.address(), OurNumber: Ours}, people.Binding{Address: w.address(), OurNumber: OursToo})
		unbind := func(want int) {
			t.Helper()
			n, err := w.Store.UnbindIdle(w.ctx, idle)
			w.must(err)
			if n != want {
				t.Fatalf("%d unbound, want %d", n, want)
			}
		}
		w.says(quiet, "hi")
		w.says(two, "hi")
		w.Advance(idle - time.Hour)
		late := w.person(gate.TierOwner)
		w.says(talks, "still here")
		w.says(people.Person{Addresses: two.Addresses[1:]}, "from my other phone")
		o := w.propose(w.proposal(quiet))
		unbind(0)
		w.Advance(2 * time.Hour)
		unbind(2)
		unbind(0)
		w.wantState(o.ID, offers.Undeliverable)
		for _, p := range w.folk(people.DefaultAccount) {
			want := map[string]int{quiet.ID: 0, talks.ID: 1, two.ID: 1, late.ID: 1}
			if n, known := want[p.ID]; known && (len(p.Addresses) != n || len(p.Unbound) == 1 && p.Unbound[0].Why != people.UnboundIdle) {
				t.Fatalf("person %+v", p)
			}
		}
		if r := w.says(quiet, "yes?"); r.Trusted || !r.Prompted {
			t.Fatalf("received %+v", r)
		}
	})
	t.Run("OnePersonsFaultKeepsNobodyElsesIdleAddress", func(t *testing.T) {
		w := newWorld(t, open)
		const idle = 90 * 24 * time.Hour
		asked, quiet := w.shown(w.person(gate.TierOwner)), w.person(gate.TierOwner)
		w.Advance(idle)
		w.BreakLedger() // which the end of an offer needs, and the end of an address alone does not
		n, err := w.Store.UnbindIdle(w.ctx, idle)
		w.RepairLedger()
		if n != 1 || !errors.Is(err, offers.ErrLedgerUnavailable) || !strings.Contains(err.Error(), asked.PersonID) {
			t.Fatalf("%d unbound, %v", n, err)
		}
		for _, p := range w.folk(people.DefaultAccount) {
			want := map[string]int{asked.PersonID: 1, quiet.ID: 0}
			if n, known := want[p.ID]; known && len(p.Addresses) != n {
				t.Errorf("person %s has %d addresses, want %d", p.ID, len(p.Addresses), n)
			}
		}
	})
	t.Run("SuspendedGetsNoText", func(t *testing.T) {
		w := newWorld(t, open)
		p := w.person(gate.TierOwner)
		o := w.propose(w.proposal(p))
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Suspended))
		if n := w.sendAll(); n != 0 {
			t.Fatalf("%d texts left", n)
		}
		w.must(w.Store.SetState(w.ctx, p.AccountID, p.ID, people.Active))
		w.sendAll()
		w.wantState(o.ID, offers.Open)
	})
}
