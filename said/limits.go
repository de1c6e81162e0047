package said

import (
	"math/big"
	"slices"
	"strings"
	"time"
)

// channelWords are the words that name a channel.
var channelWords = map[Channel]map[string]bool{
	ChannelEmail:    wordSet("email emails e-mail e-mails mail mails gmail inbox outlook cc bcc emailing"),
	ChannelSlack:    wordSet("slack"),
	ChannelSMS:      wordSet("text texts sms txt texting imessage whatsapp"),
	ChannelCalendar: wordSet("calendar invite invites invitation invitations meeting appointment event schedule reschedule gcal rsvp"),
	ChannelGitHub:   wordSet("github issue issues pr prs repo repository pull"),
	ChannelWeb:      wordSet("web website site online blog page tweet twitter x linkedin facebook instagram mastodon bluesky form portal internet"),
}

// channel is the one of the intent, or the one that its verb names where the
// intent has none. False where the words name none such, or the verbs another.
func (a *analysis) channel(clauses []int, in Intent) (Channel, bool) {
	var own []Channel
	for _, k := range clauses {
		if c := a.clauses[k].verb.channel; c != "" && !slices.Contains(own, c) {
			own = append(own, c)
		}
	}
	if in.Channel == ChannelNone {
		switch {
		case len(own) == 0:
			return ChannelNone, true
		case len(own) == 1 && a.every(clauses, func(k int) bool { return a.clauses[k].verb.channel != "" }):
			return own[0], true // mutant: said.channel-filled
		}
		return ChannelNone, false // by mail to one and by text to another is two asks
	}
	return in.Channel, a.every(clauses, func(k int) bool {
		c := a.clauses[k]
		if c.verb.channel != "" {
			return c.verb.channel == in.Channel || in.Channel == ChannelGitHub && a.named(c, in.Channel)
		}
		return a.named(c, in.Channel)
	})
}

// named says whether the clause has a word for the channel, the verb included, or
// an address of it as a recipient.
func (a *analysis) named(c clause, channel Channel) bool {
	for i := c.from; i < c.to; i++ {
		t := a.toks[i]
		if a.quoted[i] {
			continue
		}
		if channelWords[channel][t.fold] {
			return true
		}
		if t.isAddress() && (channel == ChannelEmail || channel == ChannelSlack || channel == ChannelSMS) && onChannel(sayableAddress(t.text), channel) {
			return true
		}
	}
	return false
}

// contentFrom is where the words of the message begin, as far as it can be seen.
func (a *analysis) contentFrom(c clause) int {
	for i := c.verbEnd; i < c.to; i++ {
		if a.quoted[i] {
			return i
		}
		if !c.verb.content {
			continue
		}
		if i > c.verbEnd && (a.toks[i].fold == "about" || a.toks[i].fold == "re" || a.toks[i].fold == "regarding") {
			return i
		}
		if a.toks[i].text == ":" || clauseMarkers[a.toks[i].fold] && longest(a.toks, i, ongoing) == i && longest(a.toks, i, polite) == i || i > c.verbEnd && infinitive(a.toks, i) {
			return i
		}
	}
	return c.to
}

// regions are the tokens of a clause that speak of the ask and not of what is
// said: those before the verb, and those behind it up to the message. What a
// sentence opens with holds for all its clauses.
func (a *analysis) regions(k int) []bound {
	c := a.clauses[k]
	first := k
	for first > 0 && a.toks[a.clauses[first-1].verbAt].sentence == a.toks[c.verbAt].sentence {
		first--
	}
	start := a.clauses[first].from
	sentence := a.bounds[a.toks[c.verbAt].sentence-a.toks[0].sentence].from
	all := []bound{{c.from, c.verbAt}, {c.verbEnd, a.contentFrom(c)}}
	if first == k {
		all[0].from = sentence
	} else if a.toks[sentence].fold != "always" {
		// "every Monday email Dana and text Kim", but not "you can always text mom, and pay Kim"
		lead := bound{sentence, sentence}
		for i := sentence; i < a.clauses[first].verbAt; i++ {
			if s, ok := spanAt(a.toks, i, a.now); ok && (s.every || s.limit) || longest(a.toks, i, ongoing) > i && a.toks[i].fold != "always" {
				lead.to = a.clauses[first].verbAt
			}
			if longest(a.toks, i, permissions) > i {
				break
			}
			if i >= start && lead.to == sentence && longest(a.toks, i, starters) == i {
				break
			}
		}
		all = append(all, lead)
	}
	return all
}

// standing says whether the clause has an ongoing cue.
func (a *analysis) standing(k int) bool {
	c := a.clauses[k]
	for n, r := range a.regions(k) {
		for i := r.from; i < r.to; i++ {
			if a.quoted[i] {
				continue
			}
			prev := ""
			if i > 0 {
				prev = a.toks[i-1].fold
			}
			if n := longest(a.toks, i, polite); n > i {
				i = n - 1 // "whenever you have a minute"
				continue
			}
			if longest(a.toks, i, ongoing) > i && prev != "as" && prev != "like" && prev != "that" {
				return true
			}
			s, ok := spanAt(a.toks, i, a.now)
			if ok && s.every {
				return true
			}
			// An end says that it goes on where it stands before the verb, or behind
			// something that may be done.
			if ok && s.limit && (c.permission || n != 1 && s.from < c.verbAt) {
				return true
			}
		}
	}
	return false
}

// money is an amount in the words.
type money struct {
	from, to   int
	value      *big.Rat
	currencies []string // that the words at it name; nil for a bare number
}

func currencySign(s string) string {
	switch s {
	case "$":
		return "USD"
	case "€":
		return "EUR"
	case "£":
		return "GBP"
	case "¥":
		return "JPY"
	case "₹":
		return "INR"
	}
	return ""
}

var currencyNames = map[string]string{"usd": "USD", "dollar": "USD", "dollars": "USD", "buck": "USD", "bucks": "USD", "eur": "EUR", "euro": "EUR", "euros": "EUR",
	"gbp": "GBP", "pound": "GBP", "pounds": "GBP", "quid": "GBP", "yen": "JPY", "jpy": "JPY", "rupee": "INR", "rupees": "INR", "inr": "INR",
	"chf": "CHF", "franc": "CHF", "francs": "CHF", "cad": "CAD", "aud": "AUD", "nzd": "NZD", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "pln": "PLN", "czk": "CZK",
	"zloty": "PLN", "mxn": "MXN", "brl": "BRL", "sgd": "SGD", "hkd": "HKD", "ils": "ILS", "zar": "ZAR", "krw": "KRW", "cny": "CNY", "rmb": "CNY", "pesos": "MXN", "try": "TRY"}

// amounts are what the clause and, where it stands first, the words before its
// verb name as money. Where one has a currency, bare numbers are something else.
func (a *analysis) amounts(c clause) []money {
	from := c.from
	if b := a.bounds[a.toks[c.verbAt].sentence-a.toks[0].sentence]; !slices.ContainsFunc(a.clauses, func(o clause) bool { return o.verbAt < c.verbAt && o.verbAt >= b.from }) {
		from = b.from
	}
	var marked, bare []money
	for i := from; i < c.to; i++ {
		if a.quoted[i] {
			continue
		}
		m, ok := a.moneyAt(i, c.to)
		if !ok {
			if s, is := spanAt(a.toks, i, a.now); is && s.to > i {
				i = s.to - 1
			}
			continue
		}
		if m.currencies != nil {
			marked = append(marked, m)
		} else if s, is := spanAt(a.toks, i, a.now); !is && !a.counted(m) && i >= c.verbEnd && s.to == 0 {
			bare = append(bare, m)
		}
		i = m.to - 1
	}
	if len(marked) > 0 {
		return marked
	}
	return bare
}

// counted: the number is of calls, or of an hour.
func (a *analysis) counted(m money) bool {
	if m.to >= len(a.toks) {
		return false
	}
	w := a.toks[m.to].fold
	return countNouns[w] || w == "am" || w == "pm" || w == "%" || timeUnits[w] || w == "st" || w == "nd" || w == "rd" || w == "th"
}

func (a *analysis) moneyAt(i, end int) (money, bool) {
	m := money{from: i}
	j := i
	sign := currencySign(a.toks[j].text)
	if sign != "" {
		j++
	}
	named := ""
	if name, ok := currencyNames[a.toks[j%len(a.toks)].fold]; ok && sign == "" && len(a.toks[j].fold) == 3 && j+1 < end && a.toks[j].fold != "try" {
		named = name // "EUR 40"
		j++
	}
	if j >= end {
		return m, false
	}
	value, ok := wordsDecimal(a.toks[j].text)
	if ok {
		j++
	} else if n, to, is := number(a.toks, j); is && sign == "" && named == "" && to < end && currencyNames[a.toks[to].fold] != "" && !digits(a.toks[j].text) {
		value, j = new(big.Rat).SetInt64(int64(n)), to // "twenty dollars"
	} else {
		return m, false
	}
	if j < end && a.toks[j].fold == "k" && a.toks[j].start == a.toks[j-1].end {
		value = new(big.Rat).Mul(value, big.NewRat(1000, 1))
		j++
	}
	if j < end {
		if s := currencySign(a.toks[j].text); s != "" && sign == "" && a.toks[j].start == a.toks[j-1].end {
			sign = s // "40€"
			j++
		}
	}
	if j < end {
		if name, ok := currencyNames[a.toks[j].fold]; ok && a.toks[j].fold != "try" {
			named = name
			j++
		}
	}
	switch {
	case named != "": // "$40 CAD" is Canadian
		m.currencies = []string{named}
	case sign != "":
		m.currencies = []string{sign}
	}
	m.to, m.value = j, value
	return m, true
}

// wordsDecimal reads a number as people type it: 1,250.00 and 84,20.
func wordsDecimal(s string) (*big.Rat, bool) {
	if i := strings.LastIndexByte(s, ','); i >= 0 && len(s)-i-1 != 3 && !strings.Contains(s, ".") {
		s = s[:i] + "." + s[i+1:]
	}
	return decimal(strings.ReplaceAll(s, ",", ""))
}

// money checks amount and currency against those that the person wrote for the
// recipients.
func (a *analysis) money(clauses []int, in Intent) []Reason {
	if in.AmountMax == "" {
		var bad []Reason
		if in.Kind == KindPay { // mutant: said.pay-amount
			bad = append(bad, DropPayNoAmount)
		}
		if in.Currency != "" && in.Kind != KindPay {
			bad = append(bad, DropCurrencyNotSaid)
		}
		return bad
	}
	want, _ := decimal(in.AmountMax)
	amountSaid, currencySaid := true, true
	for _, k := range clauses {
		c := a.clauses[k]
		all := a.amounts(c)
		for _, to := range append([]string{""}, in.To...) {
			if to == "" && len(in.To) > 0 {
				continue
			}
			m, ok := a.amountFor(all, c, to)
			if !ok || m.value.Cmp(want) != 0 { // mutant: said.amount-said
				amountSaid = false
				continue
			}
			if in.Currency != "" && !slices.Contains(m.currencies, in.Currency) { // mutant: said.currency-said
				currencySaid = false
			}
		}
	}
	var bad []Reason
	if !amountSaid {
		bad = append(bad, DropAmountNotSaid)
	}
	if !currencySaid {
		bad = append(bad, DropCurrencyNotSaid)
	}
	return bad
}

// amountFor is the amount that belongs to a recipient: the only one there is, or
// of several the nearest on the side where the clause has them.
func (a *analysis) amountFor(all []money, c clause, to string) (money, bool) {
	if len(all) == 0 {
		return money{}, false
	}
	if len(all) == 1 {
		return all[0], true
	}
	var at *bound
	first := len(a.toks)
	for _, p := range a.places(to) {
		if p.from >= c.from && p.to <= c.to {
			at = &bound{p.from, p.to}
			break
		}
	}
	if at == nil {
		return money{}, false
	}
	for i := c.verbEnd; i < c.to; i++ { // does a recipient or an amount come first?
		if currencySign(a.toks[i].text) != "" || digits(a.toks[i].text) {
			first = i
			break
		}
		if a.toks[i].isWord() {
			break
		}
	}
	amountFirst := first == all[0].from
	best, found := money{}, false
	for _, m := range all {
		switch {
		case amountFirst && m.to <= at.from:
			best, found = m, true
		case !amountFirst && m.from >= at.to && !found:
			best, found = m, true
		}
	}
	return best, found
}

var countNouns = wordSet("times time x messages message texts emails reminders payments calls posts replies invites")

// counted numbers of calls, as the clause has them; nil for none.
func (a *analysis) countsIn(k int) []int {
	c := a.clauses[k]
	var all []int
	for _, r := range a.regions(k) {
		end := r.to
		if r.from == c.verbEnd { // "text Kim 3 times": a count may stand behind the message
			end = c.to
		}
		for i := r.from; i < end; i++ {
			if a.quoted[i] {
				continue
			}
			if a.toks[i].fold == "twice" {
				all = append(all, 2)
				continue
			}
			if i > 0 && isArticle(a.toks[i-1].fold) {
				continue // "the two reminders" are two things
			}
			if n, to, ok := number(a.toks, i); ok && to < end && countNouns[a.toks[to].fold] && a.toks[i].fold != "a" && a.toks[i].fold != "an" && (n > 1 || digits(a.toks[i].text)) {
				all = append(all, n)
			}
		}
	}
	return all
}

// counts checks the number of calls: it must be in the words, and a standing
// permission must not leave out one that is.
func (a *analysis) counts(clauses []int, in Intent) []Reason {
	for _, k := range clauses {
		said := a.countsIn(k)
		if in.Count == 0 && in.Standing && len(said) > 0 { // mutant: said.count-left-out
			return []Reason{DropCountNotSaid}
		}
		if in.Count > 1 && !slices.Contains(said, in.Count) { // mutant: said.count-said
			return []Reason{DropCountNotSaid}
		}
	}
	return nil
}

// near is how far a candidate's time may be from the one that the words name: a
// bare hour has two readings, a day has many.
const near = 13 * time.Hour

// when checks the times and puts them into the intent.
func (a *analysis) when(clauses []int, c Candidate, loc *time.Location, in *Intent) []Reason {
	var bad []Reason
	points, limits, unread := a.timesOf(clauses)
	if c.At != "" {
		t, ok := parseTime(c.At, loc, false)
		switch {
		case !ok: // mutant: said.when-unparsed
			bad = append(bad, DropWhenUnparsed)
		case t.Sub(a.now) > MaxAhead: // mutant: said.when-far
			bad = append(bad, DropWhenTooFar)
		case a.now.Sub(t) > MaxPast: // mutant: said.when-past
			bad = append(bad, DropWhenPast)
		case !a.timeSaid(t, points, clauses): // mutant: said.when-said
			bad = append(bad, DropWhenNotSaid)
		default:
			in.At = t
		}
	} else if !in.Standing {
		for _, k := range clauses {
			for _, s := range a.clauses[k].times {
				if !s.every && !s.limit && !s.t.IsZero() && !s.day && s.t.Sub(a.now) > Early { // mutant: said.when-left-out
					bad = append(bad, DropWhenNotSaid)
				}
			}
		}
	}
	if c.Until != "" {
		t, ok := parseTime(c.Until, loc, true)
		switch {
		case !ok: // mutant: said.until-unparsed
			bad = append(bad, DropUntilUnparsed)
		case t.Sub(a.now) > MaxAhead: // mutant: said.until-far
			bad = append(bad, DropUntilTooFar)
		case a.now.Sub(t) > MaxPast: // mutant: said.until-past
			bad = append(bad, DropUntilPast)
		case in.Standing && len(limits) > 0 && t.After(latest(limits)): // mutant: said.until-said
			bad = append(bad, DropUntilNotSaid)
		default:
			in.Until = t
		}
	} else if in.Standing && (len(limits) > 0 || unread) { // mutant: said.until-left-out
		bad = append(bad, DropUntilNotSaid)
	}
	return bad
}

func latest(all []time.Time) time.Time {
	last := all[0]
	for _, t := range all {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// timesOf are the points and the ends in what speaks of the ask; unread says that
// there is an end which code could not read.
func (a *analysis) timesOf(clauses []int) (points, limits []time.Time, unread bool) {
	for _, k := range clauses {
		for _, r := range a.regions(k) {
			for i := r.from; i < r.to; i++ {
				s, ok := spanAt(a.toks, i, a.now)
				if !ok || a.quoted[i] {
					continue
				}
				switch {
				case s.limit && s.t.IsZero():
					unread = true
				case s.limit:
					// A weekday that is today may be today's or the next.
					limits = append(limits, s.t)
				case !s.every:
					points = append(points, s.t)
				}
				i = s.to - 1
			}
		}
	}
	return points, limits, unread
}

// timeSaid: the time is near one that the words name; where they name one that
// code cannot read, there must at least be something that can be a time.
func (a *analysis) timeSaid(t time.Time, points []time.Time, clauses []int) bool {
	for _, p := range points {
		if d := t.Sub(p); d < near && d > -near {
			return true
		}
	}
	for _, k := range clauses {
		c := a.clauses[k]
		for i := c.from; i < c.to; i++ {
			if s, ok := spanAt(a.toks, i, a.now); ok && !s.t.IsZero() && !s.every {
				if d := t.Sub(s.t); d < near && d > -near {
					return true
				}
				i = s.to - 1
				continue
			}
			if vagueTimes[a.toks[i].fold] && len(points) == 0 {
				return t.Sub(a.now) < 14*24*time.Hour
			}
		}
	}
	return false
}

var vagueTimes = wordSet("lunch dinner breakfast eod cob eow later soon work school bed bedtime weekend evening morning afternoon night week noon")
