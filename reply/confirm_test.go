package reply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// cited is two offers on the screen and a message that names the first.
type cited struct {
	*world
	dana, acme offers.Offer
	message    offers.Received
	words      string
}

const named = "yes send the email to Dana"

func citing(t *testing.T, words, reading string) *cited {
	t.Helper()
	c := &cited{world: newWorld(t), words: words}
	c.dana, c.acme = c.shown(atOnce, labelled("send email to Dana")), c.shown(atOnce, labelled("pay Acme Tools"))
	c.reader.says[strings.ToLower(words)] = reads(t, reading)
	c.message = c.says(words)
	c.wantState(c.dana, offers.Open)
	return c
}

// claim is what an honest main model would ask.
func (c *cited) claim(o offers.Offer) ConfirmRequest {
	c.t.Helper()
	sum, err := offers.ParseHex(o.ArgsSHA256)
	c.must(err)
	return ConfirmRequest{AccountID: people.DefaultAccount, OfferID: o.ID, RunID: c.message.RunID, MessageID: c.message.MessageID, Quote: c.words, ArgsSum: sum}
}

func (c *cited) confirm(r ConfirmRequest) (offers.Win, error) {
	return NewConfirmer(c.store, minRead, new(offers.Wake)).Confirm(c.ctx, r)
}

// refuses demands the error, and that nothing was released.
func (c *cited) refuses(r ConfirmRequest, want error) {
	c.t.Helper()
	_, err := c.confirm(r)
	if !errors.Is(err, want) {
		c.t.Fatalf("error %v, want %v", err, want)
	}
	for _, o := range []offers.Offer{c.dana, c.acme} {
		if c.get(o).State == offers.Consumed && (c.get(o).ClosedBy.MessageID == c.message.MessageID) {
			c.t.Fatal("released")
		}
	}
}

// why demands a refusal by the update itself.
func (c *cited) why(r ConfirmRequest, want offers.Why) {
	c.t.Helper()
	_, err := c.confirm(r)
	var refused *offers.Refusal
	if !errors.As(err, &refused) || refused.Why != want {
		c.t.Fatalf("error %v, want %s", err, want)
	}
}

func TestConfirm(t *testing.T) {
	t.Run("TheOfferThatTheWordsName", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		win, err := c.confirm(c.claim(c.dana))
		c.must(err)
		if win.Repeat || win.Offer.ID != c.dana.ID {
			t.Errorf("win %+v", win)
		}
		c.wantState(c.dana, offers.Consumed)
		c.wantState(c.acme, offers.Open)
		if by := c.get(c.dana).ClosedBy; by.MessageID != c.message.MessageID {
			t.Errorf("closed by %+v", by)
		}
		again, err := c.confirm(c.claim(c.dana))
		c.must(err)
		if !again.Repeat {
			t.Error("a repeat is not known as one")
		}
	})
	t.Run("QuotedInOtherCaseAndSpacing", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		r := c.claim(c.dana)
		r.Quote = "Yes  send the\nEMAIL to dana"
		_, err := c.confirm(r)
		c.must(err)
	})
	t.Run("NotTheOther", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		c.refuses(c.claim(c.acme), offers.ErrNotAYes)
	})
	t.Run("NeitherWhereNoneIsNamed", func(t *testing.T) {
		c := citing(t, "yes", "confirm 0.99")
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
		c.refuses(c.claim(c.acme), offers.ErrNotAYes)
	})
	t.Run("NeitherWhereBothAreNamed", func(t *testing.T) {
		c := citing(t, "yes Dana and Acme", "confirm 0.99")
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
		c.refuses(c.claim(c.acme), offers.ErrNotAYes)
	})
	// Whoever withdraws an offer does not choose what the words name.
	t.Run("NeitherAfterTheOtherWasWithdrawn", func(t *testing.T) {
		c := citing(t, "yes", "confirm 0.99")
		_, err := c.store.Withdraw(c.ctx, c.acme.AccountID, c.acme.ID, offers.Closer{By: offers.ByAgent})
		c.must(err)
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
	})
	t.Run("AHalfSureYes", func(t *testing.T) {
		c := citing(t, named, "confirm 0.6")
		_, err := c.confirm(c.claim(c.dana))
		c.must(err)
	})
}

// Each sign that a claim is wrong, alone.
func TestConfirmRefuses(t *testing.T) {
	t.Run("a reading that is no yes", func(t *testing.T) {
		for _, reading := range []string{"decline 0.9", "modify 0.9", "unrelated 0.9", "unclear 0.9"} {
			c := citing(t, named, reading)
			c.refuses(c.claim(c.dana), offers.ErrNotAYes)
		}
	})
	t.Run("a guard that objected", func(t *testing.T) {
		for _, words := range []string{"yes but wait, Dana", "don't email Dana", "email Dana?", "if she agrees email Dana", "she said yes email Dana"} {
			c := citing(t, words, "confirm 0.99")
			c.refuses(c.claim(c.dana), offers.ErrNotAYes)
		}
	})
	t.Run("words that say more than yes", func(t *testing.T) {
		c := citing(t, "yes email Dana with subtitles", "confirm 0.99")
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
	})
	t.Run("other arguments", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		r := c.claim(c.dana)
		r.ArgsSum = c.claim(c.acme).ArgsSum
		c.refuses(r, offers.ErrHashMismatch)
	})
	t.Run("another run", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		derived, err := c.store.StartRun(c.ctx, people.DefaultAccount, offers.StartCause{ParentRunID: c.message.RunID})
		c.must(err)
		for _, run := range []string{c.dana.RunID, derived.ID, "", offers.NewID()} {
			r := c.claim(c.dana)
			r.RunID = run
			c.refuses(r, offers.ErrSelfConfirm)
		}
	})
	t.Run("a run that read what a stranger wrote", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		_, err := c.store.Taint(c.ctx, people.DefaultAccount, c.message.RunID)
		c.must(err)
		c.refuses(c.claim(c.dana), offers.ErrSelfConfirm)
	})
	t.Run("a message that has approved another", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		_, err := c.confirm(c.claim(c.dana))
		c.must(err)
		if _, err := c.confirm(c.claim(c.acme)); !errors.Is(err, offers.ErrMessageUsed) {
			t.Errorf("error %v", err)
		}
		c.wantState(c.acme, offers.Open)
	})
	t.Run("an offer that is closed", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		_, err := c.store.Withdraw(c.ctx, c.dana.AccountID, c.dana.ID, offers.Closer{By: offers.ByAgent})
		c.must(err)
		c.refuses(c.claim(c.dana), offers.ErrOfferClosed)
	})
	t.Run("an offer that ran out", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		c.pass(11 * time.Minute)
		c.why(c.claim(c.dana), offers.WhyExpired)
	})
	t.Run("a message that is not the newest", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		c.says("hello")
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
	})
	t.Run("a message that nobody has decided", func(t *testing.T) {
		c := citing(t, "hm", "unclear 0.9")
		c.message, c.words = c.stored(named), named
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
	})
	t.Run("a message of which not all is here", func(t *testing.T) {
		c := citing(t, "hm", "unclear 0.9")
		c.reader.says[strings.ToLower(named)] = reads(t, "confirm 0.99")
		c.message, c.words = c.says(named, lossy), named
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
	})
	t.Run("HA-08 a message that answers another text", func(t *testing.T) {
		c := citing(t, "hm", "unclear 0.9")
		c.reader.says[strings.ToLower(named)] = reads(t, "confirm 0.99")
		c.message, c.words = c.says(named, quoting(sid(2))), named // the text of the other offer
		c.refuses(c.claim(c.dana), offers.ErrNotAYes)
	})
	t.Run("a reaction", func(t *testing.T) {
		c := citing(t, "hm", "unclear 0.9")
		c.words = "Liked “" + c.dana.ShownText + "”"
		c.message = c.says(c.words)
		for _, quote := range []string{c.words, "", c.dana.ShownText} {
			r := c.claim(c.dana)
			r.Quote = quote
			c.refuses(r, offers.ErrQuote)
		}
	})
}

// The quote is the whole of the person's own words, and there are some.
func TestCase_PV01_QuotesInPieces(t *testing.T) {
	c := citing(t, "please do not send the report today", "confirm 0.99")
	for _, quote := range []string{"do ... send the report", "do … send the report", "send the report", "please do … today", "please do send the report today"} {
		r := c.claim(c.dana)
		r.Quote = quote
		c.refuses(r, offers.ErrQuote)
	}
	c.refuses(c.claim(c.dana), offers.ErrNotAYes) // nor is the whole a yes
}

func TestCase_PV02_EmptyAndTinyQuotes(t *testing.T) {
	c := citing(t, named, "confirm 0.99")
	for _, quote := range []string{"", " ", "e", "\u200b", "y", "yes", "yes send the email to Dana today"} {
		r := c.claim(c.dana)
		r.Quote = quote
		c.refuses(r, offers.ErrQuote)
	}
}

func TestCase_PV05_RealMessagesOfAnotherRelation(t *testing.T) {
	t.Run("another person's", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		mine := c.person
		c.person = c.add(gate.TierOwner)
		c.message = c.says(named)
		c.person = mine
		c.refuses(c.claim(c.dana), offers.ErrNotFound)
	})
	t.Run("another account's", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		r := c.claim(c.dana)
		r.AccountID = "other"
		c.refuses(r, offers.ErrNotFound)
	})
	t.Run("a stranger's", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		c.message = c.stored(named, func(in *offers.Inbound) { in.Address = "sms:+12025550198" })
		c.refuses(c.claim(c.dana), offers.ErrNotFound)
	})
	t.Run("our own text", func(t *testing.T) {
		c := citing(t, named, "confirm 0.99")
		for _, id := range []string{sid(1), c.carrier.sent[0].TextID} {
			r := c.claim(c.dana)
			r.MessageID, r.Quote = id, "Reply YES"
			c.refuses(r, offers.ErrNotFound)
		}
	})
	t.Run("a picture", func(t *testing.T) {
		c := citing(t, "hm", "unclear 0.9")
		c.message, c.words = c.says("", lossy), "yes"
		c.refuses(c.claim(c.dana), offers.ErrQuote)
		c.words = ""
		c.refuses(c.claim(c.dana), offers.ErrQuote)
	})
	t.Run("the quoted part alone", func(t *testing.T) {
		c := citing(t, "hm", "unclear 0.9")
		c.message = c.says("thanks\n\nOn Monday, Alex wrote:\n> " + named)
		c.words = named
		c.refuses(c.claim(c.dana), offers.ErrQuote)
	})
}

func TestCase_PI01_AMadeUpMessage(t *testing.T) {
	c := citing(t, named, "confirm 0.99")
	for _, id := range []string{"SM50505050505050505050505050505050", offers.NewID(), ""} {
		r := c.claim(c.dana)
		r.MessageID, r.Quote = id, "ok, send it"
		c.refuses(r, offers.ErrNotFound)
	}
	r := c.claim(c.dana)
	r.OfferID = offers.NewID()
	c.refuses(r, offers.ErrNotFound)
}

func TestNames(t *testing.T) {
	dana, acme := offers.Offer{ID: "1", Label: "send email to Dana"}, offers.Offer{ID: "2", Label: "send money to Acme"}
	for words, want := range map[string]bool{
		"yes email dana": true, "email": true, "DANA!": true, "yes": false, "send": false, "yes to acme": false,
		"dana and acme": false, "money": false, "to": false, "": false, "> dana\nyes": false,
	} {
		if got := Names(words, dana, []offers.Offer{dana, acme}); got != want {
			t.Errorf("%q names the first: %v", words, got)
		}
	}
	if Names("send", dana, []offers.Offer{dana}) != true {
		t.Error("a word that no other offer has names none")
	}
}
