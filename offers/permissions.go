package offers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// Errors of [Permissions].
var (
	ErrTooManyContacts = errors.New("too many contacts")
	ErrBadRecipient    = errors.New("not exactly one plain address")
	ErrBadPermission   = errors.New("not a permission that could be granted")
)

// MaxContacts is how many contacts an account may have.
const MaxContacts = 10_000

// How is the way in which a permission counts.
type How string

// The ways. Direct is an entry of the direct-send list: it counts in every account, and for sends alone. The others count
// where the account lets asking be approving.
const (
	Once     How = "once"     // the calls that one message asked for
	Standing How = "standing" // what goes on
	Direct   How = "direct"   // sends to these addresses
)

// What an account does with a standing permission that is asked for by text.
const (
	StandingAsk    = "ask"    // it is an offer that needs its own yes
	StandingDirect = "direct" // the text is enough
)

// Who revokes.
const (
	RevokedByText  = "text"  // the person's own words
	RevokedByOwner = "owner" // a command
	RevokedByTaken = "taken_back"
)

// Permission is what a person lets happen without a question. Its JSON is what the commands print.
type Permission struct {
	said.Granted
	Number      int        `json:"number"` // by which the person names it
	How         How        `json:"how"`
	OperationID string     `json:"operation_id,omitempty"` // the offer by which it was asked for
	CreatedAt   time.Time  `json:"created_at"`
	GrantedAt   *time.Time `json:"granted_at"` // null: its offer was not approved
	UsedAt      *time.Time `json:"used_at,omitempty"`
	RevokedAt   *time.Time `json:"revoked_at,omitempty"`
	RevokedBy   string     `json:"revoked_by,omitempty"`
	AccountID   string     `json:"account_id"`
}

// Addresses are those that were pinned, each once.
func (p Permission) Addresses() []string {
	var out []string
	for _, r := range p.Recipients {
		for _, a := range r.Addresses {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// Live says whether the permission can cover a call at that time, as far as it is not a matter of which call.
func (p Permission) Live(now time.Time) bool {
	return p.GrantedAt != nil && p.RevokedAt == nil && (p.EndsAt.IsZero() || now.Before(p.EndsAt)) &&
		(p.MaxCalls == 0 || p.Used < p.MaxCalls)
}

// Permissions keeps whom a person may name and what they let happen without a question.
type Permissions interface {
	// PutContacts replaces an account's contacts by the list, or, with merge, those of the same ids alone. It returns how
	// many there are then. Errors: ErrTooManyContacts.
	PutContacts(ctx context.Context, accountID string, list []said.Contact, merge bool) (int, error)
	// Contacts lists an account's contacts by id.
	Contacts(ctx context.Context, accountID string) ([]said.Contact, error)

	// OwnAddresses lists the account's own addresses beside those that its people are bound to.
	OwnAddresses(ctx context.Context, accountID string) ([]string, error)
	// AddOwnAddress adds a canonical address; false: it was there. Errors: people.ErrNoAccount.
	AddOwnAddress(ctx context.Context, accountID, address string) (bool, error)
	// RemoveOwnAddress takes one away. Errors: ErrNotFound.
	RemoveOwnAddress(ctx context.Context, accountID, address string) error

	// PermissionsOf lists an account's permissions, revoked and expired ones too, by person and number. An empty person
	// is everybody.
	PermissionsOf(ctx context.Context, accountID, personID string) ([]Permission, error)
	// Grant stores a permission by the owner's command; id, number and times are the store's to set.
	// Errors: ErrNotFound (no such person who is an owner).
	Grant(ctx context.Context, p Permission) (Permission, error)
	// Revoke ends a permission; one that has ended stays as it is. Errors: ErrNotFound.
	Revoke(ctx context.Context, accountID, id string) (Permission, error)
	// AnswerPermissions decides a message that asks what is permitted, or ends some of it, and puts the answer in line.
	// Errors: *Refusal (decided before).
	AnswerPermissions(ctx context.Context, a PermissionsAnswer) error
}

// PermissionsAnswer is the service's answer to a message about permissions.
type PermissionsAnswer struct {
	MessageID string
	PersonID  string
	Reading   ReadingRecord
	Hourly    int                   // as in PassRequest; an answer that ended something is a receipt, and comes always
	Ends      func(Permission) bool // which of the live ones end; nil: none
	Say       func(PermissionState) string
}

// HourlyLimit is as in [PassRequest].
func (a PermissionsAnswer) HourlyLimit() int { return PassRequest{Hourly: a.Hourly}.HourlyLimit() }

// PermissionState is what an answer is made of.
type PermissionState struct {
	Now               time.Time
	AskingIsApproving bool
	Live              []Permission // by number; without those that have just ended
	Ended             []Permission // by this very message
}

// Sort fills in the live permissions and those that end, out of all that are neither revoked nor expired, and returns the
// ids of what ends. One whose offer still waits for its yes ends too, so that the yes finds nothing.
func (s *PermissionState) Sort(list []Permission, ends func(Permission) bool) (ids []string) {
	for _, p := range list {
		switch {
		case ends != nil && ends(p):
			s.Ended = append(s.Ended, p)
			ids = append(ids, p.ID)
		case p.Live(s.Now):
			s.Live = append(s.Live, p)
		}
	}
	return ids
}

// Ground is what a person's words are turned into permissions on, read under the lock.
type Ground struct {
	Now               time.Time
	PersonID          string
	MessageID         string
	AskingIsApproving bool
	StandingByText    string
	Contacts          []said.Contact
}

// Permit makes the permissions of what a message asks for. Names become exact addresses here and now. What is not granted
// yet needs an offer of its own. An intent with a recipient in doubt becomes nothing, and so does one that would count for
// nothing in this account.
func Permit(g Ground, intents []said.Intent) []Permission {
	var out []Permission
	for _, in := range intents {
		granted, ok := said.Grant(said.Resolve(in, g.Contacts), g.PersonID, g.MessageID, g.Now)
		if !ok {
			continue
		}
		p := Permission{Granted: granted, How: howOf(in), CreatedAt: g.Now}
		if p.How != Direct && !g.AskingIsApproving { // mutant: permit.asking
			continue
		}
		if p.How == Once || g.StandingByText == StandingDirect { // mutant: permit.standing
			p.GrantedAt = &g.Now
		}
		out = append(out, p)
	}
	return out
}

// howOf: a standing send without a number of calls is an entry of the direct-send list.
func howOf(in said.Intent) How {
	switch {
	case !in.Standing:
		return Once
	case in.Kind == said.KindSend && in.Count == 0 && in.AmountMax == "":
		return Direct
	}
	return Standing
}

// Commanded makes a permission that the owner grants by a command: to exact addresses, without end unless one is named.
// Errors: ErrBadRecipient, ErrBadPermission.
func Commanded(accountID, personID string, in said.Intent) (Permission, error) {
	in.Standing = true
	p := Permission{AccountID: accountID, How: howOf(in), Granted: said.Granted{PersonID: personID, Intent: in, MaxCalls: in.Budget(), EndsAt: in.Until}}
	for _, s := range in.To {
		a := gate.CanonicalAddress(s)
		if a == "" {
			return Permission{}, fmt.Errorf("%w: %q", ErrBadRecipient, s)
		}
		p.Recipients = append(p.Recipients, said.Recipient{Said: s, Addresses: []string{a}})
	}
	switch {
	case len(in.To) == 0 || len(in.To) > said.MaxTo:
		return Permission{}, fmt.Errorf("%w: it needs 1 to %d recipients", ErrBadPermission, said.MaxTo)
	case in.Kind == said.KindPay && (in.AmountMax == "" || in.Currency == ""):
		return Permission{}, fmt.Errorf("%w: to pay needs the most that may be paid, and a currency", ErrBadPermission)
	case in.Count < 0 || in.Count > said.MaxCount:
		return Permission{}, fmt.Errorf("%w: 1 to %d calls", ErrBadPermission, said.MaxCount)
	}
	return p, nil
}

// permissionsIn fills in what the person lets happen without a question. A run without an owner's authority has none of
// it: the words are an owner's, and so must be the run. Nor has a suspended owner.
func (f Facts) permissionsIn(turn gate.Turn, op gate.Operation, policy *gate.Policy) gate.Turn {
	if turn.Tier != gate.TierOwner { // mutant: permissions.owner
		return turn
	}
	if f.Person.State != people.Active { // mutant: permissions.active
		return turn
	}
	var granted, standing []said.Granted
	for _, p := range f.Permissions {
		switch {
		case slices.Contains(f.Barred, p.ID):
		case p.How == Direct:
			turn.DirectSend = append(turn.DirectSend, p.Addresses()...)
		case p.How == Standing:
			standing = append(standing, p.Granted)
			granted = append(granted, p.Granted)
		default:
			granted = append(granted, p.Granted)
		}
	}
	call, ok := said.CallOf(op, policy)
	if !ok || call.Tool != op.Tool {
		return turn
	}
	turn.SaidIntent = grantOf(said.Match(granted, call, f.Now), call)
	turn.StandingPermission = grantOf(said.Match(standing, call, f.Now), call)
	return turn
}

// PlanOf asks decide until its answer rests on no permission that cannot be spent. What it rests on then is spent: spend takes
// one call from a permission of that id, notes whom it has served then, and says false where it does not count any more.
func PlanOf(f Facts, decide func(Facts) (Plan, error), spend func(id string, served []string) (bool, error)) (Plan, error) {
	for {
		plan, err := decide(f)
		id := plan.Decision.Grant
		if err != nil || plan.Decision.Answer != gate.Allow || id == "" {
			return plan, err
		}
		if ok, err := spend(id, plan.Served); ok || err != nil {
			return plan, err
		}
		if len(f.Barred) > len(f.Permissions) {
			return plan, fmt.Errorf("permission %s cannot be spent, and was taken again", id)
		}
		f.Barred = append(f.Barred, id)
	}
}

// servedBy is whom a permission has served once the operation has been covered by it.
func (f Facts) servedBy(id string, op gate.Operation, policy *gate.Policy) []string {
	i := slices.IndexFunc(f.Permissions, func(p Permission) bool { return p.ID == id })
	call, ok := said.CallOf(op, policy)
	if i < 0 || !ok {
		return nil
	}
	return f.Permissions[i].ServedBy(call)
}

func grantOf(g *said.Granted, call said.Call) *gate.Grant {
	if g == nil {
		return nil
	}
	return &gate.Grant{ID: g.ID, Tool: call.Tool, ArgsSHA256: call.ArgsSHA256, Until: g.EndsAt}
}
