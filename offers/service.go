package offers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/people"
)

// Service proposes operations: it makes the gate's turn out of a store's facts, and an offer out of an ask.
type Service struct {
	store  Proposer
	policy *gate.Policy
	limit  func(channel string) int
	pages  string
	names  func(address string) string
	log    *slog.Logger
}

// Option changes a service.
type Option func(*Service)

// WithPages gives long bodies a page of their own at base + "/o/" + token, where the console serves it. An empty base
// gives none.
func WithPages(base string) Option { return func(s *Service) { s.pages = base } }

// WithNames gives labels the names of contacts. It must answer at once, and the same at every call.
func WithNames(names func(address string) string) Option { return func(s *Service) { s.names = names } }

// WithLog writes a line for each decision: answer, reason, rule, tier and capability.
func WithLog(log *slog.Logger) Option { return func(s *Service) { s.log = log } }

// NewService makes a service. limit says how many characters go out as one message on a channel.
func NewService(store Proposer, policy *gate.Policy, limit func(channel string) int, options ...Option) *Service {
	s := &Service{store: store, policy: policy, limit: limit, log: slog.New(slog.DiscardHandler)}
	for _, o := range options {
		o(s)
	}
	return s
}

// Request is a proposal as it came in.
type Request struct {
	AccountID string
	Call      string
	Key       string // Idempotency-Key
	BodySum   Digest
	KeyID     string // of the key that the call was made with

	RunID    string // or the short way in:
	PersonID string
	Address  people.Address

	Kind       string
	Tool       string
	Args       []byte // any JSON object
	Supersedes string
	Present    Present
}

// Propose makes the arguments canonical, asks the gate, and stores what follows.
// Errors: ErrArgsInvalid (nothing is stored: there are no bytes to speak of), ErrCannotBeShown, and those of
// [Proposer]. A refusal of the gate is no error: it is an operation that was refused.
func (s *Service) Propose(ctx context.Context, r Request) (op Operation, again bool, err error) {
	args, sum, err := Canonical(r.Args)
	if err != nil {
		return Operation{}, false, err
	}
	p := Proposal{
		AccountID: r.AccountID, Call: r.Call, Key: r.Key, BodySum: r.BodySum, KeyID: r.KeyID,
		RunID: r.RunID, PersonID: r.PersonID, Address: r.Address,
		Kind: r.Kind, Tool: r.Tool, Args: args, ArgsSum: sum, Supersedes: r.Supersedes, Present: r.Present,
	}
	p.Reaches = s.Reaches(gate.Operation{Kind: gate.Kind(p.Kind), Tool: p.Tool, Args: p.Args})
	if p.Present == "" {
		p.Present = PresentQueue
	}
	token := NewToken()
	op, again, err = s.store.Propose(ctx, p, func(f Facts) (Plan, error) { return s.plan(p, f, token) })
	if err == nil && !again {
		s.logged(ctx, op)
	}
	return op, again, err
}

// logged writes the record of a decision: what a denial rests on is seen without a look into the ledger. A tool that the
// policy does not know has a name of somebody else's choice, which stays out of the log.
func (s *Service) logged(ctx context.Context, op Operation) {
	tool := "unknown"
	if _, known := s.policy.Tool(op.Tool); known {
		tool = op.Tool
	}
	s.log.InfoContext(ctx, "decided", "operation_id", op.ID, "run_id", op.RunID, "tool", tool, "decision", op.Decision, "reason", op.Reason,
		"rule", op.Rule, "tier", op.Tier, "capability", op.Capability, "permission_id", op.PermissionID)
}

// Reaches lists every spelling under which a recipient of the operation may be one of the account's own addresses.
func (s *Service) Reaches(op gate.Operation) []string {
	var out []string
	for _, r := range s.policy.Recipients(op) {
		for _, a := range []string{r.Given, r.Address} {
			if a != "" && !strings.ContainsRune(a, 0) && !slices.Contains(out, a) { // no address has one, nor does every database take it
				out = append(out, a)
			}
		}
	}
	return out
}

// plan is pure: facts and the token of a page in, plan out.
func (s *Service) plan(p Proposal, f Facts, token string) (Plan, error) {
	op := gate.Operation{Kind: gate.Kind(p.Kind), Tool: p.Tool, Args: p.Args}
	plan := Plan{Decision: gate.Decide(op, f.permissionsIn(f.Turn(), op, s.policy), s.policy)}
	plan.Served = f.servedBy(plan.Decision.Grant, op, s.policy)
	plan.Taints = plan.Decision.Answer != gate.Refuse && s.policy.ReadsUntrusted(op)
	if plan.Decision.Answer == gate.Allow && op.Kind == gate.KindOutboundMessage {
		return s.say(plan, f, p)
	}
	if plan.Decision.Answer != gate.Ask {
		return plan, nil
	}
	limit := s.limit(f.Address.Channel())
	view := View{Limit: limit, Most: Room(limit), Names: s.named(f), Before: f.before()}
	if s.pages != "" {
		view.Page = s.pages + PagePath + token
	}
	shown, err := Show(op, s.policy, view)
	if err != nil {
		return plan, err
	}
	version := ""
	if s.policy != nil {
		version = s.policy.Version
	}
	d := &Draft{
		Label: shown.Label, ShownText: shown.Text, AskLine: shown.AskLine, PolicyVersion: version,
		TTL: s.policy.Expires(op), Settle: s.policy.Settle(op),
	}
	if shown.Linked {
		sum := TokenSum(token)
		d.TokenSum = &sum
	}
	d.BindingSum, err = Binding{
		AccountID: p.AccountID, OperationID: f.OperationID, PersonID: f.Person.ID, Tool: p.Tool, ArgsSHA256: Hex(p.ArgsSum),
		ShownSHA256: Hex(shownSum(shown.Text)), PolicyVersion: version,
	}.Sum()
	if err != nil {
		return plan, fmt.Errorf("binding: %w", err)
	}
	plan.Offer = d
	return plan, nil
}

// named is what labels call recipients: the service's own names, or else the account's contacts.
func (s *Service) named(f Facts) func(string) string {
	if s.names != nil {
		return s.names
	}
	return func(address string) string { return f.Names[address] }
}

// before is the offer that is to be superseded, where the person may have seen it.
func (f Facts) before() *gate.Operation {
	o := f.Superseded
	if o == nil || o.ShownAt == nil && o.State != Sending && o.State != Open {
		return nil
	}
	return &gate.Operation{Kind: gate.Kind(o.Kind), Tool: o.Tool, Args: o.Args}
}

// say renders an agent's text to its own person. It is marked as the agent's, so that it cannot pass for an offer.
func (s *Service) say(plan Plan, f Facts, p Proposal) (Plan, error) {
	args, err := decode(p.Args)
	text, ok := args["text"].(string)
	if err != nil || !ok {
		return plan, fmt.Errorf("%w: want text", ErrArgsInvalid)
	}
	plan.Say = plainText(spell(text, speech))
	if n := utf16Len(plan.Say); n > Room(s.limit(f.Address.Channel()))-questionRoom {
		return plan, fmt.Errorf("%w: %d characters", ErrCannotBeShown, n)
	}
	return plan, nil
}

// questionRoom is kept free in an agent's text for the question of an open offer at its end.
const questionRoom = 600

// Check answers what the gate would say, and stores nothing.
func (s *Service) Check(f Facts, op gate.Operation) gate.Decision {
	return gate.Decide(op, f.permissionsIn(f.Turn(), op, s.policy), s.policy)
}

// Policy is what the service decides by.
func (s *Service) Policy() *gate.Policy { return s.policy }

// tier is the run's authority, and never more than the person has now: what is lower decides, and a tier that nobody knows
// is lower than any.
func (f Facts) tier() string {
	switch run, now := f.Run.Tier, f.Person.Tier; {
	case run == gate.TierPaired && now == gate.TierOwner: // mutant: turn.tier_raised
		return run
	case run == gate.TierOwner || run == gate.TierPaired: // mutant: turn.tier_now
		return now
	default:
		return run
	}
}

// Turn is what the gate is told of the run.
func (f Facts) Turn() gate.Turn {
	return gate.Turn{
		Now: f.Now, Tier: f.tier(), Tainted: f.Run.Tainted, Interactive: f.Run.Interactive && f.Reachable,
		PersonBound: f.Reachable, ShortForm: f.Run.Cause.Offer, OwnAddresses: f.OwnAddresses,
		AskingIsApproving: f.AskingIsApproving,
	}
}

// Outcome texts. They name what was offered by its label; arguments stand in the offer itself.

// Receipt tells the person how an approved operation ended.
func Receipt(o Offer, status string) string {
	if status == string(OpSucceeded) {
		return "Done: " + o.Label + "."
	}
	return "Failed: " + o.Label + ". It was approved and begun; what came of it is not certain."
}

// DeclinedReceipt tells the person that nothing happens.
func DeclinedReceipt(o Offer) string { return "Not done: " + o.Label + "." }

// PickedUpNotice tells the person that their yes was taken and nothing began yet.
const PickedUpNotice = "Approved, not picked up yet. Nothing has run."

// Question puts an open offer's question again.
func Question(o Offer) string { return "To be sure: " + o.Label + "?\n" + o.AskLine }

// WhichOne lists several open offers by number. It is about none of them: a yes to it approves nothing.
func WhichOne(live []Offer) string {
	var b strings.Builder
	b.WriteString("Which one? Reply with its number, and it is shown again.")
	for i, o := range live {
		fmt.Fprintf(&b, "\n%d: %s", i+1, o.Label)
	}
	return b.String()
}

// ticker is how often time is looked at.
const ticker = 250 * time.Millisecond
