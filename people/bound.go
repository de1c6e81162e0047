package people

import "context"

// Book says which senders are somebody's.
type Book interface {
	// Bound reports whether an address is a person's, of any account and whatever their state, at a number of ours.
	Bound(ctx context.Context, a, ourNumber Address) (bool, error)
}
