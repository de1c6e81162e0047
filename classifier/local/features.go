package local

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign/countersign/classifier"
)

// Limits keep one reading cheap whatever is sent: a text is read up to its
// first maxTokens tokens, and longer ones say so by a feature.
const (
	maxTokens     = 96
	maxTokenBytes = 48
	maxTextBytes  = 4096
)

// kind of a token.
type kind uint8

const (
	word   kind = iota // letters, possibly with digits inside
	number             // begins with a digit
	emoji              // one symbol rune, skin tone and variation stripped
	ideo               // one Han, Hiragana or Katakana rune
	mark               // ? ! or a sentence break
)

// token is a piece of text. hash identifies its normal form, stem a crude
// stem of it; start and end index scanner.buf.
type token struct {
	kind       kind
	start, end int
	hash, stem uint64
	stretched  bool // a letter was repeated three times or more
	upper      bool // began with an upper-case letter
	clause     bool // the first after a comma, dash or bracket
	accented   bool // lost a diacritic; accent holds the hash with it
	accent     uint64
}

// scanner turns text into tokens without allocating once it is warm.
type scanner struct {
	buf    []byte
	tokens []token
}

func (s *scanner) reset() { s.buf, s.tokens = s.buf[:0], s.tokens[:0] }

func (s *scanner) text(t token) string { return string(s.buf[t.start:t.end]) }

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashBytes(b []byte) uint64 {
	h := uint64(fnvOffset)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return mix(h)
}

func hashString(s string) uint64 {
	h := uint64(fnvOffset)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return mix(h)
}

// mix spreads a hash over all 64 bits (the finaliser of SplitMix64).
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

func isIdeo(r rune) bool {
	return r >= 0x3041 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー')
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// fold gives the base letter of a Latin letter with a diacritic.
func fold(r rune) rune {
	if r < 0xC0 || r > 0x24F && (r < 0x1E00 || r > 0x1EFF) {
		return r
	}
	switch r {
	case 'ß', 'æ', 'œ', 'ø', 'đ', 'ł':
		return r
	}
	var b [utf8.UTFMax]byte
	n := utf8.EncodeRune(b[:], r)
	d := norm.NFD.Properties(b[:n]).Decomposition()
	if len(d) == 0 {
		return r
	}
	base, _ := utf8.DecodeRune(d)
	return base
}

func ignorable(r rune) bool {
	return r >= 0x1F3FB && r <= 0x1F3FF || // skin tones
		r >= 0xFE00 && r <= 0xFE0F || // variation selectors
		r >= 0x200B && r <= 0x200F || r == 0x2060 || r == 0xFEFF || r == 0xAD
}

// scan appends the tokens of text. Letters are lower-cased, diacritics of
// Latin letters folded, apostrophes inside words dropped, letters stretched
// to three or more cut to one.
func (s *scanner) scan(text string) {
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes]
	}
	if !ascii(text) {
		text = norm.NFC.String(text)
	}
	in := false // inside a word or number
	var cur token
	var accent uint64
	var prev rune
	run := 0
	pause, done := false, len(s.tokens) // a comma was seen after so many tokens
	flush := func() {
		if in {
			cur.end = len(s.buf)
			s.finish(&cur, accent)
			in = false
		}
	}
	for i, r := range text {
		if len(s.tokens) >= maxTokens {
			break
		}
		switch {
		case r == ' ':
			flush()
		case ignorable(r):
		case isIdeo(r):
			flush()
			start := len(s.buf)
			s.buf = utf8.AppendRune(s.buf, r)
			h := hashBytes(s.buf[start:])
			s.tokens = append(s.tokens, token{kind: ideo, start: start, end: len(s.buf), hash: h, stem: h})
		case inWord(r):
			if !in {
				in = true
				cur = token{kind: word, start: len(s.buf), upper: unicode.IsUpper(r)}
				if unicode.IsDigit(r) {
					cur.kind = number
				}
				accent, prev, run = fnvOffset, 0, 0
			}
			l := unicode.ToLower(r)
			f := fold(l)
			if f != l {
				cur.accented = true
			}
			if f == prev && cur.kind == word {
				run++
			} else {
				prev, run = f, 1
			}
			if run == 3 {
				// cut the stretch to a single letter
				cur.stretched = true
				s.buf = s.buf[:len(s.buf)-utf8.RuneLen(f)]
			}
			if run < 3 && len(s.buf)-cur.start < maxTokenBytes {
				s.buf = utf8.AppendRune(s.buf, f)
				accent = (accent ^ uint64(l)) * fnvPrime
			}
		case (r == '\'' || r == '’' || r == 'ʼ' || r == '`') && in:
		case (r == '.' || r == ':' || r == ',' || r == '/') && in && cur.kind == number && digitAfter(text, i+utf8.RuneLen(r)):
			if len(s.buf)-cur.start < maxTokenBytes {
				s.buf = append(s.buf, byte(r))
			}
		case r == '?' || r == '？' || r == '¿' || r == '؟':
			flush()
			s.mark('?')
		case r == '!' || r == '！' || r == '¡':
			flush()
			s.mark('!')
		case r == '…' || r == '.' && i+1 < len(text) && text[i+1] == '.':
			flush()
			s.mark('~') // trailing off is no full stop
		case r == '.' || r == '。' || r == ';' || r == '\n' || r == '।':
			if n := len(s.tokens); !in && n > 0 && s.tokens[n-1].hash == hTrail {
				continue // the last dot of three
			}
			flush()
			s.mark('.')
		case unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) || r == '♥' || r == '☑' || r >= 0x1F000:
			flush()
			start := len(s.buf)
			s.buf = utf8.AppendRune(s.buf, r)
			h := hashBytes(s.buf[start:])
			s.tokens = append(s.tokens, token{kind: emoji, start: start, end: len(s.buf), hash: h, stem: h})
		case r == ',' || r == '，' || r == '、' || r == '–' || r == '—' || r == '(' || r == ':':
			flush()
			pause = true
		default:
			flush()
		}
		if n := len(s.tokens); pause && n > done {
			s.tokens[done].clause = true
			pause = false
		}
		if !pause {
			done = len(s.tokens)
		}
	}
	flush()
	if pause && len(s.tokens) > done {
		s.tokens[done].clause = true
	}
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func digitAfter(s string, i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }

func (s *scanner) mark(c byte) {
	if n := len(s.tokens); n > 0 && s.tokens[n-1].kind == mark && s.buf[s.tokens[n-1].start] == c {
		return // "..." and "???" are one mark
	}
	start := len(s.buf)
	s.buf = append(s.buf, c)
	h := hashBytes(s.buf[start:])
	s.tokens = append(s.tokens, token{kind: mark, start: start, end: len(s.buf), hash: h, stem: h})
}

func (s *scanner) finish(t *token, accent uint64) {
	b := s.buf[t.start:t.end]
	t.hash = hashBytes(b)
	t.stem = hashBytes(stem(b))
	if t.accented {
		t.accent = mix(accent)
	}
	s.tokens = append(s.tokens, *t)
}

// stem cuts the commonest English endings, so that "sending" and "emails"
// meet "send" and "email". It need only be the same on both sides.
func stem(b []byte) []byte {
	cut := func(suffix string, least int) bool {
		if len(b)-len(suffix) >= least && string(b[len(b)-len(suffix):]) == suffix {
			b = b[:len(b)-len(suffix)]
			return true
		}
		return false
	}
	switch {
	case cut("ing", 3), cut("ed", 3):
		if n := len(b); n > 3 && b[n-1] == b[n-2] && b[n-1] != 'l' && b[n-1] != 's' {
			b = b[:n-1] // cancel-l-ing stays, book-ing, plan-n-ed
		}
	case cut("ies", 3), cut("es", 3), cut("s", 3):
	}
	cut("e", 3)
	return b
}

// family of actions: verbs that people use for one another. "book a table"
// is answered "yes reserve it". The list is of English labels, since code
// writes labels in English, and of the verbs that other languages' replies
// echo them with.
type family uint8

const (
	famNone family = iota
	famSend
	famPay
	famDelete
	famCancel
	famBook
	famBuy
	famMove
	famShare
	famPost
	famPlay
	famInvite
	famAdd
	famRent
	famCall
	famArchive
	famSign
	famOpen
	famOff
)

var families = [...]struct {
	fam   family
	verbs string
}{
	{famSend, "send mail email text forward reply message fwd snd deliver write envia enviar enviala envialo enviarlo manda mandar mandalo mandala envoie envoyer envoyez envoyezle schick schicke senden sende abschicken invia inviare inviala invialo mande mandale verstuur stuur versturen sturen bhej bhejo bhejdo"},
	{famPay, "pay transfer wire settle remit paga pagar pagalo pague paye payer payez zahl zahle bezahl bezahle bezahlen uberweise uberweisen pagare betaal betalen overmaken kar"},
	{famDelete, "delete remove trash erase wipe del clear purge borra borrar borralo elimina eliminar eliminalo apaga apagar supprime supprimer supprimez losch losche loschen cancella elimina verwijder verwijderen hata hatao"},
	{famCancel, "cancel call-off cancela cancelar cancelalo annule annuler annulez stornier storniere stornieren absag absage absagen annulla annullare disdici annuleer annuleren"},
	{famBook, "book reserve schedule set arrange make reservation booking appointment reserva reservar reservala reservalo agenda agendar reserve reserver reservez buch buche buchen reservier reservieren marca marcar prenota prenotare boek boeken reserveer reserveren"},
	{famBuy, "buy order purchase get grab compra comprar compralo pide pedir achete acheter achetez commande commander kauf kaufe kaufen bestell bestelle bestellen compre ordina ordinare compra comprare koop kopen bestel bestellen"},
	{famMove, "move reschedule shift push postpone change bring mueve mover cambia cambiar deplace deplacer decale verschieb verschiebe verschieben muda mudar sposta spostare verplaats verzet verzetten"},
	{famShare, "share give grant comparte compartir partage partager partagez teil teile teilen freigeben compartilha compartilhar condividi condividere deel delen"},
	{famPost, "post publish tweet announce publica publicar publie publier poste posten veroffentlichen pubblica pubblicare plaats plaatsen"},
	{famPlay, "play start watch listen stream put hear begin run resume see pon poner toca reproduce mets lance joue spiel spiele abspielen metti riproduci speel afspelen"},
	{famInvite, "invite invita invitar invite inviter lad einladen ladt convida convidar invitare nodig uitnodigen"},
	{famAdd, "add create put save log note agrega agregar anade ajoute ajouter hinzufug hinzufugen eintragen adiciona adicionar aggiungi aggiungere voeg toevoegen"},
	{famRent, "rent hire lease alquila alquilar loue louer miet mieten aluga alugar noleggia noleggiare huur huren"},
	{famCall, "call ring dial phone llama llamar appelle appeler anruf anrufen ruf liga ligar chiama chiamare bel bellen"},
	{famArchive, "archive file archiva archivar archiver archivier archivieren arquiva arquivar archivia archiveer archiveren"},
	{famSign, "sign submit approve renew subscribe register enroll"},
	{famOpen, "open unlock activate enable turn switch"},
	{famOff, "close lock deactivate disable unsubscribe pause shut"},
}

// functionWords of labels carry nothing that a reply could echo.
const functionWords = "a an the to for at on of with my in from your by and per via is it this that i me you us all as"

var numberWords = [...][2]string{{"one", "1"}, {"two", "2"}, {"three", "3"}, {"four", "4"}, {"five", "5"}, {"six", "6"},
	{"seven", "7"}, {"eight", "8"}, {"nine", "9"}, {"ten", "10"}, {"eleven", "11"}, {"twelve", "12"}}

// lexicon is the fixed word lists in hashed form; made once per reader.
type lexicon struct {
	family   map[uint64]family // by hash and by stem
	function map[uint64]bool
	digit    map[uint64]uint64 // number word → hash of its digits
}

func newLexicon() *lexicon {
	x := &lexicon{family: map[uint64]family{}, function: map[uint64]bool{}, digit: map[uint64]uint64{}}
	for _, f := range families {
		for v := range strings.FieldsSeq(f.verbs) {
			for _, h := range [2]uint64{hashString(v), hashBytes(stem([]byte(v)))} {
				if _, taken := x.family[h]; !taken {
					x.family[h] = f.fam
				}
			}
		}
	}
	for v := range strings.FieldsSeq(functionWords) {
		x.function[hashString(v)] = true
	}
	for _, n := range numberWords {
		x.digit[hashString(n[0])] = hashString(n[1])
	}
	return x
}

func (x *lexicon) familyOf(t token) family {
	if f := x.family[t.hash]; f != famNone {
		return f
	}
	return x.family[t.stem]
}

// Templates of features. Each feature is a template with the hashes that fill
// it; its number in the weight table is the mixed hash cut to the table.
type template uint64

const (
	tUni template = iota + 1
	tBi
	tTri
	tQuad
	tSkip
	tFirst
	tLast
	tEnds
	tLastSegment
	tChar
	tAccent
	tShape
	tFamily
	tFirstShape
	tEarlier
	tEarlierLast
	tOffers
	tEmoji
	tKind
	tKinds
	tKindWord
	tClause
)

var templateNames = [...]string{tUni: "word", tBi: "words", tTri: "words", tQuad: "words", tSkip: "words apart",
	tFirst: "begins", tLast: "ends", tEnds: "begins…ends", tLastSegment: "last sentence", tChar: "letters",
	tAccent: "accent", tShape: "shape", tFamily: "offer × word", tFirstShape: "begins × shape",
	tEarlier: "earlier", tEarlierLast: "earlier × now", tOffers: "offers", tEmoji: "emoji", tKind: "role", tKinds: "roles", tKindWord: "roles", tClause: "clause"}

// feature is a place in the weight table with its value.
type feature struct {
	idx uint32
	val float32
}

// Placeholder hashes for what is masked.
var (
	hBegin   = hashString("^")
	hEnd     = hashString("$")
	hVerb    = hashString("<verb>")
	hEcho    = hashString("<echo>")
	hUnknown = hashString("<?>")
	hNumber  = hashString("<0>")
	hSame    = hashString("<0=>")
	hBreak   = hashString(".")
	hAsk     = hashString("?")
	hTrail   = hashString("~")
)

// extractor holds the scratch of one reading.
type extractor struct {
	lex   *lexicon
	known *vocabulary // nil while the vocabulary is counted
	bits  uint

	reply, label, past scanner
	seq                []uint64 // masked hashes of the reply's tokens
	names              []string // as seq, for explaining
	out                []feature
	reasons            []string // as out, when explain is set
	explain            bool
	offsets            []int
	roles              []uint64 // of the pieces that say something
	role               []string // of each token
	salt               uint64
	echoes             int // of the last reply
}

func (x *extractor) add(t template, val float32, hs ...uint64) {
	h := uint64(t)*0x9e3779b97f4a7c15 ^ x.salt
	for _, v := range hs {
		h = mix(h ^ v)
	}
	x.out = append(x.out, feature{uint32(h >> (64 - x.bits)), val})
}

func (x *extractor) because(t template, parts ...string) {
	if x.explain {
		x.reasons = append(x.reasons, templateNames[t]+" "+strings.Join(parts, " "))
	}
}

// labelled marks the label's words once per reading.
func (x *extractor) scanLabels(offers []string) family {
	x.label.reset()
	fam := famNone
	for i, o := range offers {
		first := len(x.label.tokens)
		x.label.scan(o)
		if i == 0 && len(x.label.tokens) > first {
			fam = x.lex.familyOf(x.label.tokens[first])
		}
	}
	return fam
}

func (x *extractor) inLabel(t token) bool {
	d := x.lex.digit[t.hash]
	for i := range x.label.tokens {
		l := &x.label.tokens[i]
		if l.kind == mark || x.lex.function[l.hash] {
			continue
		}
		if l.hash == t.hash || t.kind == word && l.stem == t.stem {
			return true
		}
		if d != 0 && (l.hash == d || x.lex.digit[l.hash] == d) {
			return true
		}
		if x.lex.digit[l.hash] == t.hash && t.kind == number {
			return true
		}
	}
	return false
}

// extract gives the features of one reply. The slice is valid until the next
// call.
func (x *extractor) extract(in classifier.Input) []feature {
	return x.extractWith(in, classifier.Explain(in))
}

// extractWith is extract where the pieces of the reply are known.
func (x *extractor) extractWith(in classifier.Input, details []classifier.TokenDetail) []feature {
	var labels, notes [8]string
	newest, earlier, offers := in.Newest.String(), wordsOf(in.Earlier, notes[:0]), labelsOf(in.Offers, labels[:0])
	x.out, x.reasons = x.out[:0], x.reasons[:0]
	x.seq, x.names = x.seq[:0], x.names[:0]
	// With several offers open a yes is another word: it shares no weight with
	// the yes to one.
	x.salt = 0
	if len(offers) > 1 {
		x.salt = hTrail
	}
	fam := x.scanLabels(offers)
	x.reply.reset()
	x.reply.scan(newest)
	toks := x.reply.tokens
	for len(toks) > 0 && toks[len(toks)-1].kind == mark && toks[len(toks)-1].hash == hBreak {
		toks = toks[:len(toks)-1] // a closing full stop says nothing
	}

	if len(details) > maxTokens {
		details = details[:maxTokens]
	}
	x.align(toks, details)

	// Mask: what the label says, what is a number, what training never saw.
	unknown, echoes, numbers, strange, words, asks, breaks, emojis, stretched, upper := 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
	otherVerb := false
	for i, t := range toks {
		h, name := t.hash, ""
		switch t.kind {
		case word:
			words++
			if t.stretched {
				stretched++
			}
			if t.upper && i > 0 && toks[i-1].kind != mark {
				upper++
			}
			f := x.lex.familyOf(t)
			switch {
			case f != famNone && f == fam || x.role[i] == "action":
				h, name = hVerb, "<verb>"
				echoes++
			case x.role[i] == "echo" || x.inLabel(t):
				h, name = hEcho, "<echo>"
				if f != famNone {
					h, name = hVerb, "<verb>"
				}
				echoes++
			case x.known != nil && !x.known.has(t.hash):
				h, name = hUnknown, "<?>"
				if r := x.role[i]; r != "" && r != "unaccounted" {
					h, name = hashString(r), "["+r+"]" // a word of the lexicon that training never saw
				} else {
					unknown++
				}
			default:
				if f != famNone {
					otherVerb = true
				}
			}
		case number:
			numbers++
			if x.role[i] == "echo" || x.inLabel(t) {
				h, name = hSame, "<0=>"
				echoes++
			} else {
				h, name = hNumber, "<0>"
				strange++
			}
		case emoji:
			emojis++
			words++
		case ideo:
			words++
			switch {
			case x.role[i] == "action":
				h, name = hVerb, "<verb>"
				echoes++
			case x.role[i] == "echo":
				h, name = hEcho, "<echo>"
				echoes++
			case x.known != nil && !x.known.has(t.hash):
				h, name = hUnknown, "<?>"
				unknown++
			}
		case mark:
			if h == hAsk {
				asks++
			} else {
				breaks++
			}
		}
		x.seq = append(x.seq, h)
		if x.explain {
			if name == "" {
				name = x.reply.text(t)
			}
			x.names = append(x.names, name)
		}
	}
	x.echoes = echoes
	seq := x.seq
	name := func(i int) string {
		switch {
		case !x.explain:
			return ""
		case i < 0:
			return "^"
		case i >= len(x.names):
			return "$"
		}
		return x.names[i]
	}
	at := func(i int) uint64 {
		switch {
		case i < 0:
			return hBegin
		case i >= len(seq):
			return hEnd
		}
		return seq[i]
	}
	n := len(seq)

	// Long texts say the same thing many times over: damp them.
	damp := float32(1)
	if n > 12 {
		damp = float32(sqrt(12 / float64(n)))
	}
	for i := range n {
		x.add(tUni, damp, seq[i])
		x.because(tUni, name(i))
		if toks[i].accented {
			x.add(tAccent, damp, toks[i].accent)
			x.because(tAccent, name(i))
		}
	}
	for i := -1; i < n; i++ {
		x.add(tBi, damp, at(i), at(i+1))
		x.because(tBi, name(i), name(i+1))
	}
	for i := -1; i+1 < n; i++ {
		x.add(tTri, damp, at(i), at(i+1), at(i+2))
		x.because(tTri, name(i), name(i+1), name(i+2))
	}
	for i := -1; i+2 < n; i++ {
		x.add(tQuad, damp, at(i), at(i+1), at(i+2), at(i+3))
		x.because(tQuad, name(i), name(i+1), name(i+2), name(i+3))
	}
	for i := 0; i+2 < n; i++ {
		x.add(tSkip, damp*0.7, at(i), at(i+2))
		x.because(tSkip, name(i), "…", name(i+2))
	}
	if n > 0 {
		x.add(tEnds, 1, at(0), at(n-1))
		x.because(tEnds, name(0), "…", name(n-1))
		x.add(tFirst, 1, at(0), at(1), at(2))
		x.because(tFirst, name(0), name(1), name(2))
		x.add(tLast, 1, at(n-3), at(n-2), at(n-1))
		x.because(tLast, name(n-3), name(n-2), name(n-1))
	}
	// The words of the last sentence weigh by themselves: "yes please. Actually wait".
	last := -1
	for i := n - 2; i >= 0; i-- {
		if toks[i].kind == mark {
			last = i
			break
		}
	}
	if last >= 0 {
		for i := last + 1; i < n; i++ {
			x.add(tLastSegment, damp, seq[i])
			x.because(tLastSegment, name(i))
			if i+1 < n {
				x.add(tLastSegment, damp, seq[i], seq[i+1])
				x.because(tLastSegment, name(i), name(i+1))
			}
		}
	}

	// Shape.
	shape := func(what string, v int) {
		x.add(tShape, 1, hashString(what), uint64(v))
		if x.explain {
			x.because(tShape, what, itoa(v))
		}
		if n > 0 {
			x.add(tFirstShape, 0.7, seq[0], hashString(what), uint64(v))
			if x.explain {
				x.because(tFirstShape, name(0), what, itoa(v))
			}
		}
	}
	plain := words - unknown - echoes
	shape("length", bucket(n))
	shape("unknown words", bucket(unknown))
	shape("echoes", min(echoes, 3))
	shape("new numbers", min(strange, 2))
	shape("questions", min(asks, 2))
	shape("breaks", min(breaks, 3))
	shape("known words", bucket(plain))
	if numbers > 0 {
		shape("numbers", min(numbers, 3))
	}
	if emojis > 0 {
		shape("emoji", min(emojis, 2))
	}
	if emojis == words && words > 0 {
		shape("emoji only", 1)
	}
	if upper > 0 {
		shape("names", min(upper, 2))
	}
	if stretched > 0 {
		shape("stretched", 1)
	}
	if otherVerb {
		shape("other action", 1)
	}
	if otherVerb && echoes == 0 {
		shape("other action, no echo", 1)
	}
	if n > 0 && seq[n-1] == hAsk {
		shape("ends with ?", 1)
	}
	if len(toks) >= maxTokens {
		shape("very long", 1)
	}

	// The offer: "keep it" answers a delete otherwise than a booking.
	fh := uint64(fam) + 77
	for i := range n {
		if toks[i].kind == word || toks[i].kind == ideo {
			x.add(tFamily, damp*0.5, fh, seq[i])
			x.because(tFamily, name(i))
		}
	}
	if len(offers) > 1 {
		x.add(tOffers, 1, uint64(min(len(offers), 3)))
		x.because(tOffers, "several")
		if n > 0 {
			x.add(tOffers, 1, uint64(min(len(offers), 3)), at(0), at(1))
			x.because(tOffers, "several", name(0), name(1))
		}
	}

	// Earlier words of the person weigh little.
	for i, e := range earlier {
		if i > 0 {
			break
		}
		x.past.reset()
		x.past.scan(e)
		for j, t := range x.past.tokens {
			if j >= 24 {
				break
			}
			x.add(tEarlier, 0.15, t.hash)
			if x.explain {
				x.because(tEarlier, x.past.text(t))
			}
		}
	}

	x.clauses(toks)
	x.rolesOf(details)
	x.chars(toks)
	return x.out
}

// align gives each token the role of the piece of the reply that it is in; ""
// where the two ways of cutting the text do not meet.
func (x *extractor) align(toks []token, details []classifier.TokenDetail) {
	x.role = append(x.role[:0], make([]string, len(toks))...)
	i := 0
	for _, d := range details {
		// A piece may be several words, and a word several tokens (Han, Kana).
		for w := range strings.FieldsSeq(d.Text) {
			for ahead := 0; ahead < 4 && i+ahead < len(toks); ahead++ {
				j, rest := i+ahead, w
				for j < len(toks) && rest != "" {
					t := x.reply.buf[toks[j].start:toks[j].end]
					if len(t) == 0 || len(t) > len(rest) || rest[:len(t)] != string(t) {
						break
					}
					rest = rest[len(t):]
					x.role[j] = d.As
					j++
				}
				if rest == "" {
					i = j
					break
				}
				for k := i + ahead; k < j; k++ {
					x.role[k] = ""
				}
			}
		}
	}
}

// clauses adds how the parts between commas, stops and joining words begin:
// "yes, he moved" gives a reason and "yes, make it two" gives a change.
func (x *extractor) clauses(toks []token) {
	n, start := 0, 0
	first := [3]uint64{hBegin, hBegin, hBegin}
	firstName := ""
	emit := func(from, to int) {
		if from >= to {
			return
		}
		place := uint64(min(n, 2))
		a, b := x.seq[from], hEnd
		if from+1 < to {
			b = x.seq[from+1]
		}
		name, next := "", "$"
		if x.explain {
			name = x.names[from]
			if from+1 < to {
				next = x.names[from+1]
			}
		}
		x.add(tClause, 1, place, a)
		x.because(tClause, name)
		x.add(tClause, 1, place, a, b)
		x.because(tClause, name, next)
		unknown, echo := 0, 0
		for _, h := range x.seq[from:to] {
			switch h {
			case hUnknown:
				unknown++
			case hVerb, hEcho, hSame:
				echo++
			}
		}
		x.add(tClause, 1, place, uint64(min(unknown, 2)), uint64(min(echo, 2)), uint64(min(to-from, 4)))
		x.because(tClause, name, "and how much is new")
		x.add(tClause, 1, place, a, uint64(min(unknown, 2)), uint64(min(echo, 2)))
		x.because(tClause, name, "and what is new")
		if n > 0 {
			x.add(tClause, 1, first[0], hBreak, a)
			x.because(tClause, firstName, "…", name)
			x.add(tClause, 1, first[0], hBreak, a, b)
			x.because(tClause, firstName, "…", name, next)
		} else {
			first[0], firstName = a, name
		}
		n++
	}
	for i := range toks {
		switch {
		case toks[i].kind == mark:
			emit(start, i)
			start = i + 1
		case toks[i].clause && i > start:
			emit(start, i)
			start = i
		}
	}
	emit(start, len(toks))
	x.add(tClause, 1, hEnd, uint64(min(n, 4)))
	if x.explain {
		x.because(tClause, "number", itoa(n))
	}
}

// rolesOf adds what each piece of the reply is to the offer by the lexicon
// that the guards use: assent, echo, negation, unaccounted and so on. A word
// that training never saw still has a role.
func (x *extractor) rolesOf(details []classifier.TokenDetail) {
	x.roles = x.roles[:0]
	unaccounted, cues, consent := 0, 0, false
	for i := range details {
		d := &details[i]
		if !d.Accounted {
			if d.As == "unaccounted" {
				unaccounted++
			} else {
				cues++
			}
		}
		switch d.As {
		case "assent", "approve", "go", "action":
			consent = true
		case "function", "filler":
			continue // between the roles that say something
		}
		x.roles = append(x.roles, hashString(d.As))
	}
	// roles skips what details holds; for explaining, find the name again.
	name := func(i int) string {
		if !x.explain {
			return ""
		}
		if i < 0 {
			return "^"
		}
		for j := range details {
			if details[j].As == "function" || details[j].As == "filler" {
				continue
			}
			if i == 0 {
				return "[" + details[j].As + "]"
			}
			i--
		}
		return "$"
	}
	n := len(x.roles)
	at := func(i int) uint64 {
		switch {
		case i < 0:
			return hBegin
		case i >= n:
			return hEnd
		}
		return x.roles[i]
	}
	damp := float32(1)
	if n > 8 {
		damp = float32(sqrt(8 / float64(n)))
	}
	for i := -1; i < n; i++ {
		if i >= 0 {
			x.add(tKind, damp, x.roles[i])
			x.because(tKind, name(i))
			x.add(tKind, damp, at(i), hBreak, at(i+2))
			x.because(tKind, name(i), "…", name(i+2))
		}
		x.add(tKinds, damp, at(i), at(i+1))
		x.because(tKinds, name(i), name(i+1))
		x.add(tKinds, damp, at(i), at(i+1), at(i+2))
		x.because(tKinds, name(i), name(i+1), name(i+2))
	}
	count := func(what string, v int) {
		x.add(tKindWord, 1, hashString(what), uint64(v))
		if x.explain {
			x.because(tKindWord, what, itoa(v))
		}
		if len(x.seq) > 0 {
			x.add(tKindWord, 0.7, hashString(what), uint64(v), x.seq[0])
			if x.explain {
				x.because(tKindWord, what, itoa(v), "after", x.names[0])
			}
		}
	}
	count("unaccounted", min(unaccounted, 4))
	count("cues", min(cues, 3))
	says := 0
	if consent {
		says = 1
	}
	count("consents", says)
	if consent && unaccounted == 0 && cues == 0 {
		count("all accounted", 1)
		// What the guards would let through is a yes more often than its words alone
		// tell: the weight may grow six times as fast as that of a word.
		x.add(tKindWord, 6, hashString("accounted"))
		x.because(tKindWord, "all accounted")
	}
}

// chars adds letter n-grams of the words that carry the person's own choice:
// not of echoes, names or numbers. Misspellings are read by them.
func (x *extractor) chars(toks []token) {
	first := len(x.out)
	for i, t := range toks {
		if t.kind != word || x.seq[i] == hVerb || x.seq[i] == hEcho {
			continue
		}
		// ^word$ with rune boundaries
		x.offsets = x.offsets[:0]
		b := x.reply.buf[t.start:t.end]
		for j := 0; j < len(b); {
			x.offsets = append(x.offsets, j)
			_, w := utf8.DecodeRune(b[j:])
			j += w
		}
		x.offsets = append(x.offsets, len(b))
		runes := len(x.offsets) - 1
		for size := 2; size <= 5; size++ {
			for j := -1; j+size <= runes+1; j++ {
				from, to := max(j, 0), min(j+size, runes)
				h := hashBytes(b[x.offsets[from]:x.offsets[to]])
				edge := uint64(0)
				if j < 0 {
					edge |= 1
				}
				if j+size > runes {
					edge |= 2
				}
				x.add(tChar, 1, h, edge, uint64(size))
				if x.explain {
					g := string(b[x.offsets[from]:x.offsets[to]])
					if edge&1 != 0 {
						g = "^" + g
					}
					if edge&2 != 0 {
						g += "$"
					}
					x.because(tChar, g)
				}
			}
		}
	}
	if n := len(x.out) - first; n > 0 {
		v := float32(1.5 / sqrt(float64(n)))
		for i := first; i < len(x.out); i++ {
			x.out[i].val = v
		}
	}
}

func bucket(n int) int {
	switch {
	case n <= 5:
		return n
	case n <= 7:
		return 6
	case n <= 11:
		return 7
	case n <= 18:
		return 8
	}
	return 9
}

func itoa(v int) string {
	if v < 10 {
		return string(rune('0' + v))
	}
	return "9+"
}

// vocabulary is the set of words that training saw often enough, each with
// the languages it was seen in.
type vocabulary struct {
	keys  []uint32 // open addressing, 0 is empty
	langs []uint16
	mask  uint32
}

func newVocabulary(words map[uint32]uint16) *vocabulary {
	size := uint32(16)
	for size < uint32(len(words))*3 {
		size <<= 1
	}
	v := &vocabulary{keys: make([]uint32, size), langs: make([]uint16, size), mask: size - 1}
	keys := make([]uint32, 0, len(words))
	for k := range words {
		keys = append(keys, k)
	}
	slices.Sort(keys) // the table must not depend on map order
	for _, k := range keys {
		i := k & v.mask
		for v.keys[i] != 0 {
			i = (i + 1) & v.mask
		}
		v.keys[i], v.langs[i] = k, words[k]
	}
	return v
}

// wordKey is what the vocabulary keeps of a word; never 0.
func wordKey(h uint64) uint32 { return uint32(h>>32) | 1 }

func (v *vocabulary) has(h uint64) bool { return v.lookup(h)&knownWord != 0 }

// lookup gives the languages of a word as a bit set, with knownWord where
// enough rows held it; 0 for a word that training never saw.
func (v *vocabulary) lookup(h uint64) uint16 {
	k := wordKey(h)
	for i := k & v.mask; v.keys[i] != 0; i = (i + 1) & v.mask {
		if v.keys[i] == k {
			return v.langs[i]
		}
	}
	return 0
}
