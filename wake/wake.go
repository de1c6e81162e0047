// Package wake carries wake-ups between the replicas on one database, so that a yes that comes in at one of them ends a
// long poll at another at once.
//
// A wake-up is a hint and carries nothing: whoever is woken reads the rows again, and reads them on a timer too. With
// Redis down, slow or emptied everything still happens, up to a second later.
package wake

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/offers"
)

const (
	// deadline bounds one call of Redis. Nobody waits for it but the relay itself.
	deadline = time.Second
	// silence is how long nothing may be heard before the connection is asked whether it is alive.
	silence = 5 * time.Second
	// pause is between two tries to get a connection back.
	pause = 500 * time.Millisecond
)

// What a wake-up says behind the name of who sent it.
const (
	events = "e" // rows that agents read
	inLine = "l" // those, and texts in line
)

// Relay joins the waiters of this process with those of the others that use its channel.
//
// All accounts of a database share the channel, as they share the waiters in a process: what a replica signals while one
// wake-up is on its way goes out together as the next, so that their number is bounded by the way to Redis and not by
// the number of commits.
type Relay struct {
	client  *redis.Client
	channel string
	wake    *offers.Wake
	log     *slog.Logger
	name    string // of this process: its own wake-ups come back to it

	deadline, silence, pause time.Duration

	due  chan struct{} // something is to be said
	line atomic.Bool   // and texts are in line
}

// New makes a relay and has wake forward to it. client must heed the deadline of a call.
func New(client *redis.Client, channel string, wake *offers.Wake, log *slog.Logger) *Relay {
	r := &Relay{client: client, channel: channel, wake: wake, log: log, name: offers.NewID(), due: make(chan struct{}, 1),
		deadline: deadline, silence: silence, pause: pause}
	wake.Forward(r.forward)
	return r
}

func (r *Relay) forward(line bool) {
	if line {
		r.line.Store(true)
	}
	select {
	case r.due <- struct{}{}:
	default: // what is to be said has not been said yet, and will be after this
	}
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { r.say(ctx) })
	both.Go(func() { r.hear(ctx) })
	both.Wait()
}

// say publishes what was signalled here. What cannot be published is dropped: the others read on their timers.
func (r *Relay) say(ctx context.Context) {
	out := outage{log: r.log, lost: "wake-ups of other replicas are not sent: they read on their timers", back: "wake-ups are sent again"}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.due:
		}
		kind := events
		if r.line.Swap(false) {
			kind = inLine
		}
		within, cancel := context.WithTimeout(ctx, r.deadline)
		err := r.client.Publish(within, r.channel, r.name+kind).Err()
		cancel()
		out.note(ctx, err)
	}
}

// hear rings for whatever another process has said, and once with each new connection, since something may have been
// said before it.
func (r *Relay) hear(ctx context.Context) {
	out := outage{log: r.log, lost: "wake-ups of other replicas are not heard: this one reads on its timer", back: "wake-ups are heard again"}
	for ctx.Err() == nil {
		out.note(ctx, r.listen(ctx, func() { out.note(ctx, nil) }))
		t := time.NewTimer(r.pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// listen hears one connection to its end, which is always an error.
func (r *Relay) listen(ctx context.Context, joined func()) error {
	sub := r.client.Subscribe(ctx)
	defer sub.Close() //nolint:errcheck // it is given up
	// A read waits for its time-out and not for ctx.
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	within, cancel := context.WithTimeout(ctx, r.deadline)
	err := sub.Subscribe(within, r.channel)
	cancel()
	if err != nil {
		return err
	}
	asked := true // Redis owes the answer to Subscribe
	for {
		wait := r.silence
		if asked {
			wait = r.deadline
		}
		m, err := sub.ReceiveTimeout(ctx, wait)
		if late := net.Error(nil); errors.As(err, &late) && late.Timeout() && !asked && ctx.Err() == nil {
			within, cancel := context.WithTimeout(ctx, r.deadline)
			err = sub.Ping(within)
			cancel()
			if err == nil {
				asked = true
				continue
			}
		}
		if err != nil {
			return err
		}
		asked = false
		switch m := m.(type) {
		case *redis.Subscription: // also where the client has made the connection anew
			joined()
			r.wake.Ring(true)
		case *redis.Message:
			if m.Payload != r.name+events && m.Payload != r.name+inLine { // mutant: wake.own
				r.wake.Ring(m.Payload[max(0, len(m.Payload)-len(events)):] != events)
			}
		}
	}
}

// outage says once that something stopped and once that it goes on.
type outage struct {
	log        *slog.Logger
	lost, back string
	since      time.Time
}

func (o *outage) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // the end of this process
	case err != nil && o.since.IsZero():
		o.since = time.Now()
		o.log.WarnContext(ctx, "Redis does not answer: "+o.lost, "error", err)
	case err == nil && !o.since.IsZero():
		o.log.InfoContext(ctx, o.back, "after", time.Since(o.since).String())
		o.since = time.Time{}
	}
}
