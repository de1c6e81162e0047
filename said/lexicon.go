package said

import "strings"

// verb is one verb, or a phrase that works as one, and what an ask with it is.
type verb struct {
	words   []string // base form, folded
	kinds   []Kind   // the first is what it is by itself
	channel Channel  // that the verb itself names; empty for none
	reply   bool
	// person: its plain object is somebody ("email Dana"), else a thing ("send the deck").
	person bool
	// with are the words besides to and cc that may stand before a recipient.
	with []string
	// needs are the words of which one must follow for the phrase to be one: let … know.
	needs []string
	// content: what follows the recipient is a message in words ("tell Dana to come").
	content bool
	// noun are words after which, at the head of a clause, it was a noun after all.
	noun []string
}

var nounTail = []string{"from", "is", "was", "has", "had", "came", "says", "said", "went", "arrived", "bounced", "thread", "address",
	"account", "sent", "got", "below", "above", "attached", "and", "or", "looks", "looked", "seems", "will", "about", "does", "did"}

func v(phrase string, kinds ...Kind) verb {
	return verb{words: strings.Fields(phrase), kinds: kinds}
}

func (e verb) via(c Channel) verb          { e.channel = c; return e }
func (e verb) toPerson() verb              { e.person = true; return e }
func (e verb) saying() verb                { e.content, e.person = true, true; return e }
func (e verb) replying() verb              { e.reply = true; return e }
func (e verb) before(w ...string) verb     { e.with = append(e.with, w...); return e }
func (e verb) needing(w string) verb       { e.needs = strings.Split(w, "|"); return e }
func (e verb) nounBefore(w ...string) verb { e.noun = append(w, nounTail...); return e }
func (e verb) is(k Kind) bool {
	for _, have := range e.kinds {
		if have == k {
			return true
		}
	}
	return false
}

// verbs are the asks that are known. A verb that is not here is no ask: an
// extractor that proposes one anyway is not believed.
var verbs = []verb{
	v("email", KindSend).via(ChannelEmail).saying().nounBefore(),
	v("e-mail", KindSend).via(ChannelEmail).saying().nounBefore(),
	v("mail", KindSend).via(ChannelEmail).saying().nounBefore(),
	v("cc", KindSend).via(ChannelEmail).toPerson(),
	v("bcc", KindSend).via(ChannelEmail).toPerson(),
	v("text back", KindSend).via(ChannelSMS).saying().replying(),
	v("text", KindSend).via(ChannelSMS).saying().nounBefore("me's"),
	v("txt", KindSend).via(ChannelSMS).saying().nounBefore(),
	v("sms", KindSend).via(ChannelSMS).saying().nounBefore(),
	v("slack", KindSend).via(ChannelSlack).saying().nounBefore(),
	v("message", KindSend).saying().nounBefore(),
	v("msg", KindSend).saying().nounBefore(),
	v("dm", KindSend).saying().nounBefore(),
	v("ping", KindSend).saying(),
	v("whatsapp", KindSend).saying(),
	v("tell", KindSend).saying(),
	v("ask", KindSend).saying(),
	v("remind", KindSend).saying(),
	v("notify", KindSend).saying(),
	v("inform", KindSend).saying(),
	v("warn", KindSend).saying(),
	v("thank", KindSend).toPerson(),
	v("contact", KindSend).toPerson().nounBefore(),
	v("congratulate", KindSend).toPerson(),
	v("wish", KindSend).saying(),
	v("let", KindSend).saying().needing("know"),
	v("give", KindSend).saying().needing("heads|call|shout|ring"),
	v("loop in", KindSend).toPerson(),
	v("loop", KindSend).toPerson().needing("in"),
	v("copy in", KindSend).toPerson(),
	v("reach out to", KindSend).toPerson(),
	v("follow up with", KindSend).toPerson().before("with"),
	v("check in with", KindSend).toPerson().before("with"),
	v("get back to", KindSend).saying().replying(),
	v("write back", KindSend).saying().replying(),
	v("write", KindSend).saying(),
	v("reply", KindSend).saying().replying().nounBefore(),
	v("respond", KindSend).saying().replying(),
	v("answer", KindSend).saying().replying().nounBefore("key"),
	v("send", KindSend, KindPay, KindActOut),
	v("forward", KindSend),
	v("fwd", KindSend),
	v("shoot", KindSend).toPerson(),
	v("drop", KindSend).toPerson().needing("line|note|message|email|text"),
	v("fire off", KindSend),
	v("resend", KindSend),
	v("relay", KindSend),
	v("nudge", KindSend).saying(),
	v("chase", KindSend).toPerson(),
	v("say", KindSend),
	v("confirm", KindSend).before("with"),
	v("apologize", KindSend),
	v("apologise", KindSend),
	v("update", KindSend, KindChange).toPerson().nounBefore(),

	v("post", KindPost).before("on", "in", "at", "into").nounBefore(),
	v("publish", KindPost).before("on", "in", "at"),
	v("tweet", KindPost).via(ChannelWeb).before("on", "at").nounBefore(),
	v("announce", KindPost).before("on", "in"),

	v("pay", KindPay).toPerson().before("from").nounBefore("day", "slip", "stub", "rise", "raise", "period", "attention"),
	v("auto-pay", KindPay).toPerson(),
	v("autopay", KindPay).toPerson(),
	v("wire", KindPay).toPerson().nounBefore("transfer"),
	v("transfer", KindPay).toPerson().nounBefore(),
	v("venmo", KindPay).toPerson().nounBefore(),
	v("zelle", KindPay).toPerson().nounBefore(),
	v("paypal", KindPay).toPerson().nounBefore(),
	v("reimburse", KindPay).toPerson(),
	v("refund", KindPay).toPerson().nounBefore(),
	v("tip", KindPay).toPerson().nounBefore("for", "of"),
	v("donate", KindPay),
	v("top up", KindPay).toPerson(),
	v("settle", KindPay).toPerson().before("with"),

	v("put", KindActOut, KindPost).before("with", "on", "in"),
	v("invite", KindActOut).toPerson().nounBefore(),
	v("share", KindActOut, KindPost).before("with", "on", "in").nounBefore(),
	v("set up", KindActOut).before("with", "for"),
	v("schedule", KindActOut).before("with", "for").nounBefore(),
	v("reschedule", KindActOut).before("with"),
	v("book", KindActOut).before("at", "with", "for").nounBefore("club", "report"),
	v("reserve", KindActOut).before("at", "with"),
	v("order", KindActOut).before("from", "at").nounBefore(),
	v("cancel", KindActOut).before("with", "at"),
	v("move", KindActOut).before("with"),
	v("add", KindActOut).toPerson(),
	v("sign up", KindActOut).before("for", "at", "with"),
	v("register", KindActOut).before("at", "with", "for"),
	v("submit", KindActOut),
	v("call", KindActOut).toPerson().nounBefore("with"),
	v("rsvp", KindActOut).before("for"),
	v("file", KindActOut).before("on", "in", "at", "with").nounBefore(),
	v("open", KindActOut).before("on", "in", "at"),
	v("close", KindActOut).before("on", "in", "at"),
	v("comment", KindPost, KindSend).before("on"),
	v("merge", KindActOut).before("in", "into", "on"),
	v("assign", KindActOut).toPerson(),
	v("accept", KindActOut).before("from"),
	v("decline", KindActOut).before("from"),
	v("renew", KindActOut).before("with", "at"),
	v("request", KindActOut).before("from", "at").nounBefore(),
	v("create", KindActOut).before("in", "on", "with", "at"),
	v("subscribe", KindActOut),
	v("unsubscribe", KindActOut).before("from"),
	v("apply", KindActOut).before("at", "for", "with"),
	v("buy", KindActOut).before("from", "at"),

	v("turn on", KindChange).before("for", "in", "on"),
	v("turn off", KindChange).before("for", "in", "on"),
	v("turn up", KindChange),
	v("turn down", KindChange),
	v("turn", KindChange),
	v("switch", KindChange).before("on", "off"),
	v("change", KindChange).before("in", "on").nounBefore(),
	v("set", KindChange).before("in", "on"),
	v("enable", KindChange).before("on", "in", "for"),
	v("disable", KindChange).before("on", "in", "for"),
	v("rename", KindChange),
	v("mute", KindChange),
	v("unmute", KindChange),
	v("raise", KindChange).nounBefore(),
	v("lower", KindChange),
	v("increase", KindChange),
	v("decrease", KindChange),
	v("pause", KindChange),
	v("resume", KindChange),
	v("lock", KindChange),
	v("unlock", KindChange),
	v("remove", KindChange).before("from"),
	v("block", KindChange).before("on", "in"),
	v("unblock", KindChange).before("on", "in"),

	// No kind: asks for nothing that goes out, and ends what the verb before governs.
	v("draft"), v("compose"), v("prepare"), v("write up"), v("write down"), v("summarize"), v("summarise"), v("read"),
	v("show"), v("find"), v("look"), v("check"), v("search"), v("hold off"), v("stop"), v("save"), v("get"),
}

// verbAt is the verb whose base form stands at token i; the longest wins.
func verbAt(toks []token, i int) (verb, int, bool) {
	best, n := verb{}, 0
	for _, e := range verbs {
		if len(e.words) > n && hasWords(toks, i, e.words) {
			best, n = e, len(e.words)
		}
	}
	return best, i + n, n > 0
}

// inflected is the verb of which a word is another form than the base.
func inflected(w string) (verb, bool) {
	for _, e := range verbs {
		if len(e.words) != 1 || len(e.kinds) == 0 {
			continue
		}
		for _, form := range forms(e.words[0]) {
			if w == form {
				return e, true
			}
		}
	}
	return verb{}, false
}

// gerunds are the forms in -ing.
func gerundOf(w string) (verb, bool) {
	if !strings.HasSuffix(w, "ing") {
		return verb{}, false
	}
	return inflected(w)
}

func forms(base string) []string {
	switch base {
	case "send":
		return []string{"sends", "sent", "sending"}
	case "tell":
		return []string{"tells", "told", "telling"}
	case "write":
		return []string{"writes", "wrote", "written", "writing"}
	case "give":
		return []string{"gives", "gave", "given", "giving"}
	case "pay":
		return []string{"pays", "paid", "payed", "paying"}
	case "shoot":
		return []string{"shoots", "shot", "shooting"}
	case "set", "let":
		return []string{base + "s", base + "ting"}
	case "reply", "notify":
		stem := strings.TrimSuffix(base, "y")
		return []string{stem + "ies", stem + "ied", base + "ing"}
	}
	stem := strings.TrimSuffix(base, "e")
	all := []string{base + "s", base + "es", stem + "ed", stem + "ing"}
	last := base[len(base)-1:]
	return append(all, base+last+"ed", base+last+"ing", base+"d") // ccing, pinged, tipped; a form too many is harmless
}

// commonVerbs are base forms that often open what a message tells somebody to do.
var commonVerbs = wordSet(`be call come bring pick buy get go do make take leave wait start stop check review meet
	join sign confirm fix clean cook drive walk feed water lock open close print finish try keep look find see read grab put help
	turn move cancel order book pay send text email tell ask reply forward post share give hand drop return stay work eat sleep
	watch play run let write update invite add remove delete ship prepare`)

// planWords show that a clause before an ask states a plan or a wish, whose list
// the ask may go on with ("I need to call the bank, email Dana").
var planWords = wordSet(`will 'll i'll we'll he'll she'll they'll you'll should would could can might may must need needs have
	going gonna wanna gotta want plan planning plans hope hoping try trying let's lets think wondering whether if when unless maybe perhaps wish
	supposed meant decided intend i'd he'd she'd we'd they'd you'd`)

// reportWords show that a clause tells of what somebody else says or wants.
var reportWords = wordSet(`said says say asked asks ask told tells telling thinks suggested suggests wants wanted agreed promised wrote writes writing
	according per reads claims claimed insists insisted demands demanded orders ordered requests requested texted emailed messaged replied
	mentioned recommends recommended advises advised begs begged states stated instructs instructed announced posted shouted quote quoting`)

func wordSet(s string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

func phrases(list ...string) [][]string {
	all := make([][]string, len(list))
	for i, p := range list {
		all[i] = strings.Fields(p)
	}
	return all
}

// polite are phrases that say nothing but that it is an ask, or soften one. They
// look like conditions and are none.
var polite = phrases("if you can", "if you could", "if possible", "if it's possible", "if you get a chance", "if you get the chance", "if you get a minute",
	"if you get a sec", "if you have a chance", "if you have time", "if you have a minute", "if you have a moment", "if you have a sec", "if you have a second",
	"if you don't mind", "if you dont mind", "if you please", "when you can", "when you get a chance", "when you get the chance", "when you get a minute",
	"when you get a moment", "when you get a sec", "when you get a second", "when you get time", "when you have a chance", "when you have a minute",
	"when you have a moment", "when you have a sec", "when you have a second", "when you have time", "whenever you can", "whenever you get a chance",
	"whenever you get a minute", "whenever you have a minute", "whenever you have a moment", "whenever you have a sec", "whenever you have time",
	"once you get a chance", "once you can")

// starters stand before an imperative and leave it one.
var starters = phrases("please", "pls", "plz", "hey", "hi", "hello", "hola", "ok", "okay", "k", "so", "and", "then", "also", "now", "just", "kindly", "yes", "yep", "yeah",
	"yup", "sure", "thanks", "thx", "great", "cool", "perfect", "alright", "right", "actually", "btw", "fyi", "on second thought", "one more thing", "quick one", "real quick", "first", "second", "next", "finally", "lastly",
	"plus", "oh", "um", "well", "quick", "quickly", "asap", "immediately", "definitely", "but", "morning", "good morning", "immediately",
	"make sure to", "make sure you", "make sure that you", "be sure to", "remember to", "don't forget to", "dont forget to", "do not forget to",
	"quick favor", "quick favour", "do me a favor and", "do me a favour and")

// commands are starters that are an ask by themselves, whatever the clause before said.
var commands = phrases("please", "pls", "plz", "kindly", "go ahead and", "i want you to", "i need you to", "i'd like you to", "id like you to", "i would like you to",
	"make sure to", "make sure you", "be sure to", "don't forget to", "dont forget to", "do not forget to")

// requests are questions by form that ask for the thing itself.
var requests = phrases("can you", "could you", "would you", "will you", "can u", "could u", "would u", "will u", "can you please", "could you please", "would you please", "will you please")

// mindings are requests whose verb is in -ing.
var mindings = phrases("would you mind", "do you mind", "would u mind")

// permissions open what may be done rather than what must.
var permissions = phrases("you can", "you may", "u can", "you could always", "you're allowed to", "you are allowed to", "you have my permission to", "you have permission to",
	"you have my ok to", "feel free to", "it's ok to", "it's okay to", "it's fine to", "its ok to", "its fine to", "i'm ok with you", "you don't have to ask to")

// unasked open what may be done without a question; the verb after them may be in -ing.
var withoutQuestion = phrases("you don't need to ask before", "you dont need to ask before", "you don't have to ask before", "you do not need to ask before",
	"you don't need to ask me before", "you don't have to ask me before", "no need to ask before", "no need to ask me before", "no need to check before",
	"no need to check with me before", "you don't need to check with me before", "you don't have to check with me before", "you needn't ask before", "don't ask before", "don't ask me before",
	"no need to ask before you", "no need to ask me before you", "you don't need to ask before you", "you don't have to ask before you")

// negations before a verb turn the ask round.
var negations = phrases("don't", "dont", "do not", "never", "not", "no need to", "don't ever", "please don't", "you don't have to", "you don't need to", "you can't", "you cannot", "you may not")

// retractions at the head of a clause take back what was asked before it.
var retractions = phrases("never mind", "nevermind", "scratch that", "forget it", "forget that", "actually don't", "actually no", "actually not", "on second thought don't",
	"wait don't", "no wait", "wait no", "don't do it", "don't do that", "dont do it", "not yet", "hold off", "don't send it", "dont send it", "do not send it", "don't send that",
	"don't send anything", "don't pay it", "don't pay that", "don't post it", "just kidding", "jk", "kidding", "cancel that", "ignore that", "undo that", "not sure", "idk", "or not", "no don't", "leave it")

// takingBack are words that may turn round what was said long before.
var takingBack = wordSet("don't dont doesn't never mind nevermind wait stop cancel ignore forget scratch hold undo actually unless except only kidding jk ask check first before instead")

// reservations say that the person wants to see or hear of it first.
var reservations = phrases("ask me", "ask first", "ask before", "asking me first", "check with me", "check in with me", "check first", "checking with me first", "confirm with me", "confirm first",
	"clear it with me", "clear it first", "run it by me", "run it past me", "run that by me", "run them by me", "show me first", "show it to me", "show me it", "show me before", "show me what",
	"show me the draft", "show me a draft", "let me see", "let me check", "let me look", "let me read", "let me approve", "let me review", "let me confirm", "let me know before", "tell me before",
	"tell me first", "warn me", "wait for me", "wait for my", "my approval first", "my ok first", "my okay first", "with my ok", "with my okay", "with my approval", "with my permission", "need my ok",
	"needs my ok", "need my approval", "needs my approval", "after my ok", "after my approval", "not without")

// boilerplate is written to customers, and was copied.
var boilerplate = phrases("need help", "need assistance", "any questions", "have questions", "have a question", "thanks for your order", "thank you for your order", "thank you for shopping",
	"thanks for shopping", "thank you for your purchase", "thanks for your purchase")

// exceptions limit what may go on in a way that no code can hold a call against.
var exceptions = phrases("unless", "except", "excluding", "apart from", "other than", "only if", "only when", "but not", "as long as", "so long as", "provided", "providing")

// ongoing are the cues of a standing permission; those with a unit are in everyAt.
var ongoing = phrases("always", "whenever", "every time", "each time", "any time", "anytime", "from now on", "from today on", "from here on", "going forward", "in future", "in the future",
	"without asking", "without asking me", "without checking", "without checking with me", "no need to ask", "don't need to ask", "dont need to ask", "don't have to ask", "needn't ask", "don't ask before", "don't ask me before", "no need to check", "don't need to check", "don't have to check",
	"as often as", "as needed", "as usual from", "on a regular basis", "permission to", "allowed to", "regularly")

// conditions make what they govern hang on something.
var conditions = phrases("if", "unless", "when", "whenever", "once", "as soon as", "as long as", "in case", "assuming", "provided", "providing", "depending", "supposing",
	"every time", "each time", "any time", "anytime", "wait until", "wait till", "wait for", "only if", "except if", "should the", "should he", "should she", "should they", "should it", "after", "before", "until", "till")

func hasWords(toks []token, i int, words []string) bool {
	if i+len(words) > len(toks) {
		return false
	}
	for k, w := range words {
		if toks[i+k].fold != w || toks[i+k].sentence != toks[i].sentence {
			return false
		}
	}
	return true
}

// longest is the end of the longest phrase of the list that stands at i, or i.
func longest(toks []token, i int, list [][]string) int {
	n := 0
	for _, p := range list {
		if len(p) > n && hasWords(toks, i, p) {
			n = len(p)
		}
	}
	return i + n
}
