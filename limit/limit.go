// Package limit keeps callers and senders within a rate, and slow bodies within a time.
//
// A rate is kept by GCRA: of each line (a key, an account, a sender) one number is stored, the time at which everything
// that was let through would have been due, one after the other. Two limiters keep such lines: [Memory] for one process,
// and [Redis] for all replicas together, which falls back to a Memory of its own while Redis does not answer. A limit is
// about load and never about authority: nothing that a limiter says, forgets or gets wrong can approve anything.
package limit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is so many a time, with so many at once. The zero value is no limit.
type Rate struct {
	Every time.Duration // between two of them, in whole microseconds
	Burst int           // at once, after a rest
}

// Off reports that there is no limit.
func (r Rate) Off() bool { return r.Every <= 0 || r.Burst <= 0 }

// String is what Parse reads.
func (r Rate) String() string {
	if r.Off() {
		return "off"
	}
	for _, u := range units {
		if n := (u.per + r.Every/2) / r.Every; n >= 1 && u.per/n == r.Every {
			return fmt.Sprintf("%d/%s burst %d", n, u.name, r.Burst)
		}
	}
	return fmt.Sprintf("1 each %s burst %d", r.Every, r.Burst)
}

var units = []struct {
	name string
	per  time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

// most bounds both numbers of a rate: a line's time is counted in microseconds.
const most = 1_000_000

// Parse reads a rate: "50/s", "600/m burst 20", "10/h", or "off" or "0" for none. Without a burst it is the count.
func Parse(s string) (Rate, error) {
	words := strings.Fields(s)
	if len(words) == 1 && (words[0] == "off" || words[0] == "0") {
		return Rate{}, nil
	}
	if len(words) != 1 && (len(words) != 3 || words[1] != "burst") {
		return Rate{}, errRate
	}
	count, unit, _ := strings.Cut(words[0], "/")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > most {
		return Rate{}, errRate
	}
	r := Rate{Burst: n}
	if len(words) == 3 {
		if r.Burst, err = strconv.Atoi(words[2]); err != nil || r.Burst < 1 || r.Burst > most {
			return Rate{}, errRate
		}
	}
	for _, u := range units {
		if u.name == unit {
			r.Every = (u.per / time.Duration(n)).Truncate(time.Microsecond)
			return r, nil
		}
	}
	return Rate{}, errRate
}

var errRate = fmt.Errorf("want a rate such as 50/s, 600/m burst 20 or off, with numbers from 1 to %d", most)

// Ask is one line that is to be kept within a rate.
type Ask struct {
	Line string // for example "key:ID"
	Rate Rate
}

// Verdict is a limiter's answer. The zero value refuses.
type Verdict struct {
	Allowed    bool
	RetryAfter time.Duration // with Allowed false: until it would be let through
}

// Seconds is RetryAfter as the header of that name has it: whole seconds, at least 1.
func (v Verdict) Seconds() int { return max(1, int((v.RetryAfter+time.Second-1)/time.Second)) }

// Limiter keeps lines within their rates.
type Limiter interface {
	// Take lets one more through in every line, or in none: what is refused costs nothing. It always answers, and within
	// a deadline of its own.
	Take(ctx context.Context, asks ...Ask) Verdict
}

// next is GCRA: due is when everything that was let through would have been due, and now the time, both in microseconds.
// wait above zero refuses and leaves due as it is. A due that no rate of this kind can reach (the clock was set back, or
// the rate was another) counts as the furthest that one can.
func (r Rate) next(due, now int64) (then int64, wait time.Duration) {
	every, reach := r.Every.Microseconds(), r.Every.Microseconds()*int64(r.Burst)
	then = min(max(due, now), now+reach) + every
	if over := then - reach - now; over > 0 { // mutant: limit.gcra
		return due, time.Duration(over) * time.Microsecond
	}
	return then, 0
}
