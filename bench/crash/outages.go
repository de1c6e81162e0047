package main

import (
	"sync"
	"time"
)

// outage is one kill, and the restart after it.
type outage struct{ killed, up time.Time }

// record is what is known of outages, by everybody.
type record struct {
	mu      sync.Mutex
	outages []outage
}

func (r *record) add(o outage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outages = append(r.outages, o)
}

// after is how long something that was known by then had been due when it came: the longest that a server was up without
// bringing it. 0: no kill lay between.
func (r *record) after(known, came time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var longest time.Duration
	for i, o := range r.outages {
		if o.killed.Before(known) || o.up.After(came) {
			continue
		}
		end := came
		if i+1 < len(r.outages) && r.outages[i+1].killed.Before(came) {
			end = r.outages[i+1].killed
		}
		longest = max(longest, end.Sub(o.up))
	}
	return longest
}
