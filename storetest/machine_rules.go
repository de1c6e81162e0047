package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// What the machine holds a store to. Nothing here asks the store whether something is allowed: it reads what is there.

// offerMoves are all the ways in which an offer may go.
var offerMoves = map[offers.State][]offers.State{
	offers.Queued:   {offers.Sending, offers.Expired, offers.Lapsed, offers.Withdrawn, offers.Superseded, offers.Undeliverable},
	offers.Sending:  {offers.Open, offers.Queued, offers.Expired, offers.Withdrawn, offers.Superseded, offers.Undeliverable},
	offers.Open:     {offers.Consumed, offers.Declined, offers.Modified, offers.Queued, offers.Expired, offers.Withdrawn, offers.Superseded, offers.Undeliverable},
	offers.Consumed: {offers.Lapsed},
}

// opMoves are all the ways in which an operation may go. An asked one follows its offer, which is looked at besides.
var opMoves = map[offers.OpState][]offers.OpState{
	offers.OpAsked: {
		offers.OpSettling, offers.OpApproved, offers.OpState(offers.Declined), offers.OpState(offers.Modified), offers.OpState(offers.Expired),
		offers.OpState(offers.Lapsed),
		offers.OpState(offers.Withdrawn), offers.OpState(offers.Superseded), offers.OpState(offers.Undeliverable),
	},
	offers.OpAllowed:  {offers.OpRunning},
	offers.OpSettling: {offers.OpApproved, offers.OpState(offers.Declined)},
	offers.OpApproved: {offers.OpRunning, offers.OpState(offers.Lapsed)},
	offers.OpRunning:  {offers.OpSucceeded, offers.OpFailed},
}

var textMoves = map[offers.TextState][]offers.TextState{
	offers.TextQueued:   {offers.TextSending, offers.TextRejected},
	offers.TextSending:  {offers.TextAccepted, offers.TextRejected, offers.TextUnknown},
	offers.TextUnknown:  {offers.TextAccepted, offers.TextRejected},
	offers.TextAccepted: {offers.TextRejected}, // it did not arrive after all
}

// picture is what a store holds of the machine's account.
type picture struct {
	offers  []offers.Offer // oldest first
	ops     map[string]offers.OpState
	opOwner map[string]string
	texts   map[string][]offers.Text
	rows    map[string][]ledger.Row
}

func (p picture) offer(id string) offers.Offer {
	for _, o := range p.offers {
		if o.ID == id {
			return o
		}
	}
	return offers.Offer{}
}

func (p picture) text(id string) offers.Text {
	for _, list := range p.texts {
		for _, x := range list {
			if x.ID == id {
				return x
			}
		}
	}
	return offers.Text{}
}

func (m *machine) list() []offers.Offer {
	list, err := m.Store.Offers(m.ctx, m.account, offers.Filter{Limit: 1000})
	m.must(err)
	slices.Reverse(list)
	return list
}

func (m *machine) picture() picture {
	p := picture{
		offers: m.list(), ops: map[string]offers.OpState{}, opOwner: map[string]string{},
		texts: map[string][]offers.Text{}, rows: map[string][]ledger.Row{},
	}
	for _, id := range m.ops {
		if s, ok := m.was.ops[id]; ok && s.Final() {
			p.ops[id], p.opOwner[id] = s, m.was.opOwner[id] // looked at again in the end
			continue
		}
		op, err := m.Store.Operation(m.ctx, m.account, id)
		m.must(err)
		p.ops[id], p.opOwner[id] = op.State, op.PersonID
	}
	for _, who := range m.people {
		var err error
		p.texts[who.id], err = m.Store.Texts(m.ctx, m.account, who.id)
		m.must(err)
		p.rows[who.id], err = m.Store.Ledger(m.ctx, m.account, who.id)
		m.must(err)
	}
	return p
}

// look compares the store with how it was before the step.
func (m *machine) look() {
	is, at := m.picture(), span{m.clock, m.Now()}
	m.clock = at.to
	m.reached["step"]++
	m.step++
	if m.may.none {
		unchanged(m, "offers", m.was.offers, is.offers)
		unchanged(m, "texts", m.was.texts, is.texts)
		unchanged(m, "ledger", m.was.rows, is.rows)
	}
	m.lookAtTexts(is, at)
	m.lookAtOffers(is, at)
	m.lookAtOperations(is, at)
	m.lookAtLedger(is)
	m.lookAtFeed()
	m.was = is
}

func unchanged[T any](m *machine, what string, was, is T) {
	if !reflect.DeepEqual(was, is) {
		m.t.Fatalf("%s changed where nothing changes it (-was +is):\n%s", what, cmp.Diff(was, is))
	}
}

func (m *machine) lookAtOffers(is picture, at span) {
	used := map[string]string{}
	for _, o := range is.offers {
		mine := m.offers[o.ID]
		if mine == nil {
			m.t.Fatalf("an offer that nobody proposed: %+v", o)
		}
		was := m.was.offer(o.ID)
		if was.ID == "" {
			was = o
			was.State = offers.Queued
			m.reached[string(offers.Queued)]++
		}
		if was.State != o.State {
			m.offerMoved(mine, was, o, at)
		}
		same := was
		same.State, same.ShownAt, same.ExpiresAt, same.ClosedBy, same.Present = o.State, o.ShownAt, o.ExpiresAt, o.ClosedBy, o.Present
		unchanged(m, "what was shown", same, o)
		if o.Taken() { // one message, one offer
			if id := o.ClosedBy.MessageID; id == "" || used[id] != "" {
				m.t.Fatalf("message %q consumed %s and %s", id, used[id], o.ID)
			}
			used[o.ClosedBy.MessageID] = o.ID
		}
	}
	if len(is.offers) < len(m.was.offers) {
		m.t.Fatalf("%d offers of %d are there", len(is.offers), len(m.was.offers))
	}
}

func (m *machine) offerMoved(mine *offer, was, o offers.Offer, at span) {
	b := m.owner(o.PersonID).at(o.Address, o.OurNumber)
	byItself := was.State == offers.Queued && (o.State == offers.Sending || o.State == offers.Undeliverable && (b == nil || b.closed || b.gone))
	switch {
	case !slices.Contains(offerMoves[was.State], o.State):
		m.t.Fatalf("an offer went from %s to %s\n%s", was.State, o.State, m)
	case !byItself && (m.may.offer == nil || !m.may.offer(was, o.State)):
		m.t.Fatalf("this step does not take an offer from %s to %s\n%s", was.State, o.State, m)
	}
	m.reached[string(o.State)]++
	switch o.State {
	case offers.Sending:
		mine.tried, mine.sent = true, at
		if o.Present == offers.PresentQueue {
			for _, y := range m.list() {
				if y.PersonID == o.PersonID && y.ID != o.ID && (y.State == offers.Sending || y.State == offers.Open) {
					m.t.Fatalf("an offer of the queue is shown while another is %s\n%s", y.State, m)
				}
			}
		}
	case offers.Open:
		mine.opened++
		if mine.opened == 1 {
			mine.first = at
		}
	case offers.Consumed:
		mine.approved = at
	}
	if was.State == offers.Sending || was.State == offers.Open || o.State.Closed() && o.State != offers.Lapsed {
		if o.State != offers.Open {
			mine.left = at
		}
	}
}

func (m *machine) lookAtOperations(is picture, at span) {
	for id, s := range is.ops {
		was, known := m.was.ops[id]
		if known && was != s {
			m.opMoved(id, was, s, at)
		}
	}
	for _, o := range is.offers {
		s := is.ops[o.OperationID]
		ok := s == offers.OpState(o.State)
		switch o.State {
		case offers.Queued, offers.Sending, offers.Open:
			ok = s == offers.OpAsked
		case offers.Consumed:
			ok = slices.Contains([]offers.OpState{offers.OpSettling, offers.OpApproved, offers.OpRunning, offers.OpSucceeded, offers.OpFailed, offers.OpState(offers.Declined)}, s)
		}
		if !ok {
			m.t.Fatalf("the offer is %s and its operation %s", o.State, s)
		}
	}
}

func (m *machine) opMoved(id string, was, s offers.OpState, at span) {
	if !slices.Contains(opMoves[was], s) {
		m.t.Fatalf("an operation went from %s to %s\n%s", was, s, m)
	}
	if was != offers.OpAsked && (m.may.op == nil || !m.may.op(id, was, s)) {
		m.t.Fatalf("this step does not take an operation from %s to %s\n%s", was, s, m)
	}
	for _, o := range m.was.offers {
		if o.OperationID != id {
			continue
		}
		mine := m.offers[o.ID]
		switch {
		case was == offers.OpSettling && s == offers.OpApproved:
			end := mine.approved.plus(o.Settle)
			if at.to.Before(end.from) {
				m.t.Fatal("a yes was settled before its time")
			}
			for _, msg := range m.owner(o.PersonID).messages {
				if msg.trusted && !msg.decided && until(msg.at, end) == holds {
					m.t.Fatalf("a yes was settled before a message was decided that came in time\n%s", m)
				}
			}
			mine.approved = at
		case was == offers.OpSettling:
			mine.takenBack = true
		case s == offers.OpState(offers.Lapsed) && at.to.Before(mine.approved.from.Add(offers.BeginWithin)):
			m.t.Fatal("an approval lapsed before its time")
		}
	}
}

func (m *machine) lookAtTexts(is picture, at span) {
	for _, p := range m.people {
		list, was := is.texts[p.id], m.was.texts[p.id]
		if len(list) < len(was) {
			m.t.Fatalf("%d texts of %d are there", len(list), len(was))
		}
		waiting, sending := false, 0
		for i, x := range list {
			if x.Number != int64(i+1) {
				m.t.Fatalf("text %d has number %d", i+1, x.Number)
			}
			if i < len(was) && was[i].State != x.State {
				m.textMoved(was[i], x, at)
			}
			if _, ok := m.gone[x.ID]; !ok && x.State != offers.TextQueued && x.State != offers.TextRejected {
				m.gone[x.ID] = at
			}
			switch x.State {
			case offers.TextQueued:
				waiting = true
				if b := p.at(x.Address, x.OurNumber); b == nil || b.closed || b.gone {
					m.t.Fatalf("a text waits for an address that takes none: %+v", x)
				}
			case offers.TextSending:
				sending++
			}
			if waiting && (x.State == offers.TextSending || x.State == offers.TextAccepted || x.State == offers.TextUnknown) {
				m.t.Fatalf("text %d is %s and has overtaken one that waits\n%s", x.Number, x.State, m)
			}
		}
		if sending > 1 {
			m.t.Fatalf("%d texts are on their way to one person", sending)
		}
	}
}

func (m *machine) textMoved(was, x offers.Text, at span) {
	ofEnded := was.State == offers.TextQueued && x.State == offers.TextRejected && (x.Kind == offers.TextShow || x.Kind == offers.TextReask)
	switch {
	case !slices.Contains(textMoves[was.State], x.State):
		m.t.Fatalf("text %d went from %s to %s", x.Number, was.State, x.State)
	case !ofEnded && (m.may.text == nil || !m.may.text(was, x.State)):
		m.t.Fatalf("this step does not take text %d from %s to %s\n%s", x.Number, was.State, x.State, m)
	}
	if x.State != offers.TextAccepted {
		return
	}
	m.took[x.ID] = at
	if mine := m.texts[x.ID]; !mine.accepted && len(mine.proved) < mine.parts {
		m.t.Fatalf("text %d counts as accepted with %d of %d parts proved", x.Number, len(mine.proved), mine.parts)
	}
	if o := m.was.offer(x.OfferID); o.State == offers.Sending || o.State == offers.Open {
		// Whatever the person has said already came before it, also by a clock that was put back in between.
		if said := m.owner(o.PersonID).messages; len(said) > 0 {
			at = at.notBefore(said[len(said)-1].at)
		}
		m.offers[o.ID].asked, m.offers[o.ID].askedStep = at, m.step
	}
}

// notBefore is the later of two times, as far as they are known.
func (s span) notBefore(other span) span {
	if other.from.After(s.from) {
		s.from = other.from
	}
	if other.to.After(s.to) {
		s.to = other.to
	}
	return s
}

// chains are the rows that an operation may have by its state.
func chains(o offers.Offer, s offers.OpState) []ledger.Kind {
	var head []ledger.Kind
	if o.ID == "" {
		head = []ledger.Kind{ledger.Allowed}
	} else {
		head = []ledger.Kind{ledger.Asked}
		if o.Taken() {
			head = append(head, ledger.Consumed)
		}
	}
	switch s {
	case offers.OpRefused:
		return []ledger.Kind{ledger.Refused}
	case offers.OpAllowed, offers.OpAsked, offers.OpSettling, offers.OpApproved:
		return head
	case offers.OpRunning:
		return append(head, ledger.Begun)
	case offers.OpSucceeded, offers.OpFailed:
		return append(head, ledger.Begun, ledger.Result)
	}
	return append(head, ledger.Closed)
}

func (m *machine) lookAtLedger(is picture) {
	by := map[string][]ledger.Row{}
	for _, p := range m.people {
		rows, was := is.rows[p.id], m.was.rows[p.id]
		n, _, err := ledger.Verify(func(yield func(ledger.Row, error) bool) {
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		})
		if err != nil || int(n) != len(rows) {
			m.t.Fatalf("%d of %d rows verify: %v", n, len(rows), err)
		}
		if len(rows) < len(was) || len(was) > 0 && rows[len(was)-1].Hash != was[len(was)-1].Hash {
			m.t.Fatal("the ledger is not what it was with rows behind")
		}
		for _, r := range rows {
			by[r.OperationID] = append(by[r.OperationID], r)
			if is.opOwner[r.OperationID] != p.id {
				m.t.Fatalf("row %d of %s is about an operation of %q", r.Number, p.id, is.opOwner[r.OperationID])
			}
		}
	}
	of := map[string]offers.Offer{}
	for _, o := range is.offers {
		of[o.OperationID] = o
	}
	for id, s := range is.ops {
		var kinds []ledger.Kind
		for _, r := range by[id] {
			kinds = append(kinds, r.Kind)
			if r.Kind != ledger.Consumed {
				continue
			}
			var body offers.LedgerBody
			if err := json.Unmarshal(r.Body, &body); err != nil || body.Offer != of[id].ID || body.Message != of[id].ClosedBy.MessageID || body.ArgsSHA256 != of[id].ArgsSHA256 {
				m.t.Fatalf("the row of a yes says %s (%v)", r.Body, err)
			}
		}
		if want := chains(of[id], s); !slices.Equal(kinds, want) {
			m.t.Fatalf("an operation that is %s, of an offer that is %q, has rows %v, want %v", s, of[id].State, kinds, want)
		}
	}
}

func (m *machine) lookAtFeed() {
	for {
		list, next, err := m.Store.Events(m.ctx, m.account, m.position, 1000)
		m.must(err)
		m.feed, m.position = append(m.feed, list...), next
		if len(list) < 1000 {
			return
		}
	}
}

// lookBack compares the whole feed with everything that was seen to happen, and what was left out on the way.
func (m *machine) lookBack() {
	m.feedToItsEnd()
	var again []string
	for at := ""; ; {
		list, next, err := m.Store.Events(m.ctx, m.account, at, 7)
		m.must(err)
		for _, e := range list {
			again = append(again, e.ID)
		}
		if at = next; len(list) < 7 {
			break
		}
	}
	type key struct {
		kind offers.EventType
		id   string
	}
	count, place, once := map[key]int{}, map[key]int{}, map[string]bool{}
	var ids []string
	for i, e := range m.feed {
		var d struct {
			MessageID string `json:"message_id"`
			Offer     *struct{ ID string }
			Operation *struct{ ID string }
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			m.t.Fatal(err)
		}
		k := key{e.Type, d.MessageID}
		switch {
		case d.Operation != nil:
			k.id = d.Operation.ID
		case d.Offer != nil:
			k.id = d.Offer.ID
		}
		if k.kind == offers.ReplyUnresolved {
			k.kind = offers.MessageReceived
		}
		if once[e.ID] {
			m.t.Fatalf("event %d came twice", i)
		}
		once[e.ID] = true
		count[k]++
		place[k] = i + 1
		ids = append(ids, e.ID)
	}
	if !slices.Equal(ids, again) {
		m.t.Fatalf("the feed has %d events by pages of seven, and %d as it came", len(again), len(ids))
	}
	want := func(kind offers.EventType, id string, n int) {
		if got := count[key{kind, id}]; got != n {
			m.t.Fatalf("%d events %s of %s, want %d", got, kind, id, n)
		}
	}
	for _, o := range m.was.offers {
		mine := m.offers[o.ID]
		want(offers.OfferOpened, o.ID, mine.opened)
		want(offers.OfferClosed, o.ID, number(o.State.Closed()))
		op, err := m.Store.Operation(m.ctx, m.account, o.OperationID)
		m.must(err)
		if op.State != m.was.ops[op.ID] {
			m.t.Fatalf("an operation that was %s is %s", m.was.ops[op.ID], op.State)
		}
		want(offers.OperationApproved, op.ID, number(o.Taken() && op.State != offers.OpSettling && !mine.takenBack))
		want(offers.OperationClosed, op.ID, number(op.State.Final()))
		if o.State.Closed() && place[key{offers.OfferClosed, o.ID}] < place[key{offers.OfferOpened, o.ID}] {
			m.t.Fatal("an offer was opened after it was closed")
		}
		if op.State.Final() && place[key{offers.OperationClosed, op.ID}] < place[key{offers.OperationApproved, op.ID}] {
			m.t.Fatal("an operation was approved after it was closed")
		}
	}
	for _, msg := range m.messages {
		want(offers.MessageReceived, msg.id, m.told[msg.id])
		c, err := m.Store.Context(m.ctx, msg.id)
		m.must(err)
		if c.Decided != msg.decided {
			m.t.Fatalf("a message is decided: %v, want %v", c.Decided, msg.decided)
		}
	}
}

// feedToItsEnd puts in an event of its own and reads until it comes: a store may hold events back while an older
// transaction runs, anywhere in the database.
func (m *machine) feedToItsEnd() {
	b := people.Binding{Address: people.Address("sim:" + offers.NewID()), OurNumber: Ours}
	p := people.Person{ID: offers.NewID(), AccountID: m.account, Name: "Marker", Tier: gate.TierPaired, State: people.Active, Addresses: []people.Binding{b}}
	m.must(m.Store.AddPerson(m.ctx, p))
	r, err := m.Store.Receive(m.ctx, inbound(p, "marker"))
	m.must(err)
	m.must(m.Store.Pass(m.ctx, pass(r)))
	m.told[r.MessageID] = 1
	for {
		m.lookAtFeed()
		if n := len(m.feed); n > 0 && slices.ContainsFunc(m.feed[n-1:], func(e offers.Event) bool {
			var d offers.ReplyData
			return json.Unmarshal(e.Data, &d) == nil && d.MessageID == r.MessageID
		}) {
			return
		}
		t := time.NewTimer(time.Millisecond)
		<-t.C
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// certainty of a condition, since the machine sees the store's clock only around each call.
type certainty uint8

const (
	maybe certainty = iota
	holds
	fails
)

func certain(b bool) certainty {
	if b {
		return holds
	}
	return fails
}

// notBefore says whether a is at or after b.
func notBefore(a, b span) certainty {
	switch {
	case !a.from.Before(b.to):
		return holds
	case a.to.Before(b.from):
		return fails
	}
	return maybe
}

func not(a certainty) certainty {
	switch a {
	case holds:
		return fails
	case fails:
		return holds
	}
	return maybe
}

// both says whether two things are so.
func both(a, b certainty) certainty {
	switch {
	case a == fails || b == fails:
		return fails
	case a == holds && b == holds:
		return holds
	}
	return maybe
}

// until says whether all of during is before the end, or none of it.
func until(during, end span) certainty {
	switch {
	case during.to.Before(end.from):
		return holds
	case !during.from.Before(end.to):
		return fails
	}
	return maybe
}

// heldTo is one condition of a call, with the reasons by which a store says that it does not hold.
type heldTo struct {
	what string
	is   certainty
	whys []offers.Why
}

type conditionList []heldTo

// won: nothing that certainly fails was passed over.
func (c conditionList) won(m *machine) {
	for _, x := range c {
		if x.is == fails {
			m.t.Fatalf("it went through, although not: %s\n%s", x.what, m)
		}
	}
}

// refused: something may have failed, and what the store says is not certainly untrue.
func (c conditionList) refused(m *machine, said offers.Why) {
	all, excused, named := true, false, false
	for _, x := range c {
		all = all && x.is == holds
		if slices.Contains(x.whys, said) {
			named = true
			excused = excused || x.is != holds
		}
	}
	if all {
		m.t.Fatalf("it was refused (%s), although everything holds\n%s", said, m)
	}
	if named && !excused {
		m.t.Fatalf("it was refused with %q, which is not so\n%s", said, m)
	}
}

// answers are the conditions under which a message is an answer to an offer at all.
func (m *machine) answers(o offers.Offer, msg *message, during span) conditionList {
	end := span{o.ExpiresAt, o.ExpiresAt}
	newest := msg.person.messages[len(msg.person.messages)-1] == msg
	return conditionList{
		{"the offer is this person's", certain(o.PersonID == msg.person.id), []offers.Why{offers.WhyPerson}},
		{"at this address", certain(o.Address == msg.in.Address && o.OurNumber == msg.in.OurNumber), []offers.Why{offers.WhyAddress}},
		{"the offer is open", certain(o.State == offers.Open), []offers.Why{offers.WhyConsumed, offers.WhyClosed, offers.WhyNotShown}},
		{"its time is not over", until(during, end), []offers.Why{offers.WhyExpired}},
		{"the message is the newest", certain(newest), []offers.Why{offers.WhyNewer}},
	}
}

// last is the last text that a person may have seen; one without an id where there is none.
func (m *machine) last(personID string) (x offers.Text) {
	for _, t := range m.was.texts[personID] {
		if t.State != offers.TextRejected {
			x = t
		}
	}
	return x
}

// doubts counts the shows of an offer of which nobody knows whether they arrived.
func (m *machine) doubts(o offers.Offer) (n int) {
	for _, x := range m.was.texts[o.PersonID] {
		if x.OfferID == o.ID && x.Kind == offers.TextShow && (x.State == offers.TextUnknown || x.State == offers.TextSending) {
			n++
		}
	}
	return n
}

// choosing are the conditions under which a number picks: it is one of the list that is the last text of all, was there long
// enough, and names what is live now.
func (m *machine) choosing(msg *message, n int) conditionList {
	last := m.last(msg.person.id)
	list := m.lists[last.ID]
	for _, x := range slices.Backward(m.was.texts[msg.person.id]) { // the same list again takes nothing away
		if x.State == offers.TextRejected {
			continue
		}
		if !slices.Equal(m.lists[x.ID], list) {
			break
		}
		if x.State == offers.TextAccepted && x.Address == msg.in.Address && x.OurNumber == msg.in.OurNumber {
			last = x
		}
	}
	took := m.took[last.ID]
	uncrossed := holds
	for _, x := range m.was.texts[msg.person.id] {
		if other := m.lists[x.ID]; n <= len(other) && n <= len(list) && other[n-1] != list[n-1] && x.State != offers.TextRejected &&
			notBefore(msg.at, took.plus(offers.CrossFactor*MinRead)) != holds {
			uncrossed = maybe
			if before := m.took[x.ID]; x.State == offers.TextAccepted && before.from.After(took.to.Add(-offers.OutwardTTL/2)) && notBefore(msg.at, took.plus(offers.CrossFactor*MinRead)) == fails {
				uncrossed = fails
			}
		}
	}
	listed := []offers.Why{offers.WhyNotListed}
	quotes := holds
	if msg.in.Quoted != "" {
		quotes = maybe
	}
	return conditionList{
		{"the message is undecided", certain(!msg.decided), []offers.Why{offers.WhyDecided}},
		{"the last text is a list that has the number", certain(n <= len(list)), listed},
		{"it is there", certain(last.State == offers.TextAccepted), listed},
		{"on this phone", certain(last.Address == msg.in.Address && last.OurNumber == msg.in.OurNumber), listed},
		{"it names what is live", certain(slices.Equal(list, ids(m.live(msg.person.id)))), listed},
		{"the message is the newest", certain(msg.person.messages[len(msg.person.messages)-1] == msg), listed},
		{"it was there long enough", notBefore(msg.at, took.plus(MinRead)), listed},
		{"no lists crossed", uncrossed, listed},
		{"it answers no other text", quotes, listed},
	}
}

func (m *machine) only(o offers.Offer, msg *message) certainty {
	others := slices.DeleteFunc(m.live(msg.person.id), func(y offers.Offer) bool { return y.ID == o.ID })
	return certain(len(others) == 0)
}

func (m *machine) closing(o offers.Offer, msg *message, during span) conditionList {
	return append(m.answers(o, msg, during),
		heldTo{"the message is undecided", certain(!msg.decided), []offers.Why{offers.WhyDecided}},
		heldTo{"the last text is about it", certain(m.last(msg.person.id).OfferID == o.ID), []offers.Why{offers.WhyLastText}},
		heldTo{"it is the only one", m.only(o, msg), []offers.Why{offers.WhySeveral}},
	)
}

// consuming are the conditions of a yes, in the design's words.
func (m *machine) consuming(req offers.ConsumeRequest, o offers.Offer, msg *message, during span, cited bool) conditionList {
	mine := m.offers[o.ID]
	c := append(m.answers(o, msg, during),
		heldTo{"its life since it was first shown is not over", until(during, mine.first.plus(o.TTL)), nil},
		heldTo{"the arguments are those that were shown", certain(req.Offer.ArgsSHA256 == o.ArgsSHA256 && req.Offer.BindingSHA256 == o.BindingSHA256), []offers.Why{offers.WhyHash}},
		heldTo{"the person is active", certain(msg.person.state == people.Active), []offers.Why{offers.WhySuspended}},
		heldTo{"the message was trusted", certain(msg.trusted), nil},
		heldTo{"the tier holds the capability", certain(slices.Contains(offers.TiersHolding(o.Capability), msg.person.tier)), []offers.Why{offers.WhyTier}},
		heldTo{"the run is not of the offer's root, nor tainted", certain(msg.run != mine.root && (!cited || !msg.tainted && req.RunID == msg.run)), []offers.Why{offers.WhySameRun}},
		heldTo{"shown long enough before", readingTime(mine, msg), []offers.Why{offers.WhyTooSoon}},
		heldTo{"no texts crossed", m.notCrossed(req, o, msg), []offers.Why{offers.WhyCrossed}},
	)
	if cited {
		return append(c,
			heldTo{"the message was decided, and approved nothing", certain(msg.decided && msg.used == ""), []offers.Why{offers.WhyDecided}},
			heldTo{"no other was on the screen", m.unrivalled(req, o, msg), []offers.Why{offers.WhySeveral}},
		)
	}
	last := m.last(msg.person.id)
	return append(c,
		heldTo{"the message is undecided", certain(!msg.decided), []offers.Why{offers.WhyDecided}},
		heldTo{"the last text is about it", certain(last.OfferID == o.ID), []offers.Why{offers.WhyLastText}},
		heldTo{"the last text was accepted", certain(last.State == offers.TextAccepted), []offers.Why{offers.WhyUnconfirmed}},
		heldTo{"it is the only one", m.only(o, msg), []offers.Why{offers.WhySeveral}},
	)
}

func readingTime(o *offer, msg *message) certainty {
	if o.asked.from.IsZero() || msg.step < o.askedStep { // whatever a clock says that was put back in between
		return fails
	}
	return notBefore(msg.at, o.asked.plus(MinRead))
}

// seen says whether a text about an offer has certainly been on the screen.
func (m *machine) seen(o offers.Offer) bool {
	return slices.ContainsFunc(m.was.texts[o.PersonID], func(x offers.Text) bool { return x.OfferID == o.ID && x.State == offers.TextAccepted })
}

// notCrossed: a quick yes is not taken where something else was on the screen that it may answer.
func (m *machine) notCrossed(req offers.ConsumeRequest, o offers.Offer, msg *message) certainty {
	mine := m.offers[o.ID]
	late := notBefore(msg.at, mine.asked.plus(offers.CrossFactor*MinRead))
	window := mine.asked.plus(-offers.CrossWindow)
	all := holds
	cross := func(is certainty) {
		switch {
		case is == fails || late == holds:
		case is == holds && late == fails:
			all = fails
		case all == holds:
			all = maybe
		}
	}
	texts := m.was.texts[msg.person.id]
	for i, x := range texts {
		cross(both(m.elsewhere(req, o, x, window), m.onScreen(o, msg, texts[i:], window)))
	}
	for _, y := range m.was.offers {
		other := m.offers[y.ID]
		if req.Names || y.ID == o.ID || y.PersonID != msg.person.id || !other.tried {
			continue
		}
		there := holds
		if y.State != offers.Sending && y.State != offers.Open {
			there = not(notBefore(window, other.left))
		}
		if !m.seen(y) {
			there = both(there, maybe)
		}
		cross(there)
	}
	return all
}

// elsewhere: a text that asks about something else, or in which an agent may have done so, and that nobody has answered.
func (m *machine) elsewhere(req offers.ConsumeRequest, o offers.Offer, x offers.Text, window span) certainty {
	switch {
	case x.Kind == offers.TextMessage && x.OfferID != o.ID:
		return holds
	case req.Names || m.lists[x.ID] == nil && (x.OfferID == "" || x.OfferID == o.ID):
		return fails
	case x.OfferID != "":
		if by := m.was.offer(x.OfferID).ClosedBy; by != nil && by.MessageID != "" {
			return notBefore(window, m.offers[o.ID].first) // else it was answered before this offer was there
		}
	}
	return holds
}

// onScreen: the first of the texts may have been read on the offer's phone from the window's start on, or came later on
// whatever phone. What was sent before the window is covered by what certainly came after it.
func (m *machine) onScreen(o offers.Offer, msg *message, texts []offers.Text, window span) certainty {
	x := texts[0]
	left, ok := m.gone[x.ID]
	if !ok || x.State == offers.TextRejected {
		return fails
	}
	here := func(t offers.Text) bool { return t.Address == o.Address && t.OurNumber == o.OurNumber }
	is := notBefore(msg.at, left)
	if !here(x) {
		is = both(is, not(notBefore(window, left)))
	}
	for _, y := range texts[1:] {
		if asks := y.OfferID != "" || m.lists[y.ID] != nil || y.Kind == offers.TextMessage; asks && here(y) && y.State == offers.TextAccepted {
			is = both(is, not(notBefore(window, m.gone[y.ID])))
		}
	}
	return is
}

// unrivalled: words that name no offer are cited for one only where no other was on the screen when they came.
func (m *machine) unrivalled(req offers.ConsumeRequest, o offers.Offer, msg *message) certainty {
	if req.Names {
		return m.unspoken(msg)
	}
	for _, id := range msg.rivals {
		// A store tells what was on the screen by the clock: one that was put back makes it forget.
		if id != o.ID && m.seen(m.was.offer(id)) && !m.offers[id].sent.to.After(msg.at.from) {
			return fails
		}
	}
	for _, y := range m.was.offers {
		if y.ID != o.ID && y.PersonID == msg.person.id && m.offers[y.ID].tried {
			return maybe
		}
	}
	for _, x := range m.was.texts[msg.person.id] { // one that may have asked something else meanwhile
		if x.OfferID != "" && x.State != offers.TextAccepted && x.State != offers.TextRejected {
			return maybe
		}
	}
	return m.unspoken(msg)
}

// unspoken: where the agent has said something of its own, the words may answer that.
func (m *machine) unspoken(msg *message) certainty {
	if slices.ContainsFunc(m.was.texts[msg.person.id], func(x offers.Text) bool { return x.Kind == offers.TextMessage }) {
		return maybe
	}
	return holds
}

// beginning are the conditions of a begin.
func (m *machine) beginning(op offers.Operation, right bool, during span) conditionList {
	p := m.owner(op.PersonID)
	inTime := holds
	if op.Offer != nil {
		inTime = until(during, m.offers[op.Offer.ID].approved.plus(offers.BeginWithin))
	}
	return conditionList{
		{what: "the operation is approved or allowed", is: certain(op.State == offers.OpApproved || op.State == offers.OpAllowed)},
		{what: "the arguments are the same", is: certain(right)},
		{what: "its time is not over", is: inTime},
		{what: "the person is active", is: certain(p.state == people.Active)},
		{what: "the tier holds the capability", is: certain(slices.Contains(offers.TiersHolding(op.Capability), p.tier))},
	}
}
