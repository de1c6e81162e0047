package offers

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Wake tells waiters that something was committed. It is a hint: a waiter reads the rows again, and also on a timer.
// Who sends texts waits apart, so that a yes, which puts no text in line, costs no look at the line.
type Wake struct {
	mu      sync.Mutex
	c       chan struct{}
	inLine  chan struct{}
	forward func(inLine bool)
}

// C returns a channel that is closed by the next signal of either kind. Take it before reading rows.
func (w *Wake) C() <-chan struct{} { return w.take(&w.c) }

// InLine returns a channel that is closed by the next Signal. Take it before looking at the line.
func (w *Wake) InLine() <-chan struct{} { return w.take(&w.inLine) }

// Signal wakes everybody who waits now.
func (w *Wake) Signal() { w.Ring(true); w.tell(true) }

// SignalEvents wakes everybody but those who send texts: what was committed put none in line.
func (w *Wake) SignalEvents() { w.Ring(false); w.tell(false) }

// Forward has f told of every later signal of this process, to pass it on to other processes on the same database.
// inLine is false for SignalEvents. f must not wait for anything. Call it before the first signal.
func (w *Wake) Forward(f func(inLine bool)) { w.forward = f }

// Ring wakes who waits in this process and is not forwarded: another process has said it.
func (w *Wake) Ring(inLine bool) {
	if inLine {
		w.signal(&w.c, &w.inLine)
		return
	}
	w.signal(&w.c)
}

func (w *Wake) tell(inLine bool) {
	if w.forward != nil {
		w.forward(inLine)
	}
}

func (w *Wake) take(c *chan struct{}) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

func (w *Wake) signal(cs ...*chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range cs {
		if *c != nil {
			close(*c)
			*c = nil
		}
	}
}

// Dispatcher sends the texts in line.
type Dispatcher struct {
	line    Line
	sender  Sender
	wake    *Wake
	log     *slog.Logger
	workers int
}

// NewDispatcher makes a dispatcher that sends up to workers texts at once, to different people.
func NewDispatcher(line Line, sender Sender, wake *Wake, log *slog.Logger, workers int) *Dispatcher {
	return &Dispatcher{line: line, sender: sender, wake: wake, log: log, workers: workers}
}

// Run sends until ctx ends, and then finishes the texts that are on their way.
func (d *Dispatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range d.workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				woken := d.wake.InLine()
				if d.drain(ctx) {
					continue
				}
				wait(ctx, woken, time.Second)
			}
		})
	}
	wg.Wait()
}

// drain sends what is in line; false: it is empty, or the store does not answer.
func (d *Dispatcher) drain(ctx context.Context) bool {
	sent, err := d.Once(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.ErrorContext(ctx, "texts cannot be sent", "error", err)
	}
	return sent
}

// Once sends the next text, if there is one. A text that was reserved is seen through even when ctx ends: what the
// provider answers must be recorded.
func (d *Dispatcher) Once(ctx context.Context) (bool, error) {
	t, err := d.line.Reserve(ctx)
	if err != nil || t == nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, sendWithin)
	res := d.send(limited, t)
	cancel()
	if err := d.line.Sent(ctx, t.ID, res); err != nil {
		return false, err
	}
	if res.Outcome != OutcomeAccepted {
		d.log.WarnContext(ctx, "text not accepted", "text", t, "outcome", string(res.TextState()), "code", res.Code)
	}
	d.wake.Signal()
	return true, nil
}

// sendWithin bounds a text with all of its parts. It ends before the text is taken up again as one whose sender has died.
const sendWithin = SendTimeout - 5*time.Second

// share is the time that a part has of what is left for it and those behind it: one that hangs does not take the others'.
func share(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(left)) //nolint:forbidigo // how long a send may take decides nothing // mutant: send.share
}

// send hands a text over, in parts where one message does not hold it. It is accepted when every part is. A refusal ends
// it: of the first part nobody has seen anything, of a later one the text is partial. A part whose outcome is not known
// keeps the others going: callbacks may still prove them all.
func (d *Dispatcher) send(ctx context.Context, t *Text) SendResult {
	bodies, ok := Split(t.Body, d.sender.Limit())
	if !ok {
		return SendResult{Outcome: OutcomeRejected, Code: CodeTooLong}
	}
	out := Outgoing{TextID: t.ID, From: t.OurNumber, To: t.Address}
	if len(bodies) == 1 {
		out.Body = bodies[0]
		return d.sender.Send(ctx, out)
	}
	whole := SendResult{Outcome: OutcomeAccepted, ProviderIDs: make([]string, len(bodies))}
	for i, body := range bodies {
		out.Body, out.Part, out.Parts = body, i+1, len(bodies)
		part, cancel := share(ctx, len(bodies)-i)
		res := d.sender.Send(part, out)
		cancel()
		whole.ProviderIDs[i] = res.ProviderID
		switch {
		case res.Outcome == OutcomeAccepted:
		case res.Outcome == OutcomeUnknown:
			whole.Outcome = OutcomeUnknown
		case i == 0:
			return res
		default:
			whole.Outcome, whole.Partial, whole.Code = OutcomeUnknown, true, res.Code
			return whole
		}
	}
	return whole
}

// Clock runs what time brings.
type Clock struct {
	store  Sweeper
	wake   *Wake
	log    *slog.Logger
	hourly int
	more   []func(context.Context) (int, error)
}

// NewClock makes a clock. hourly is how many questions and notices of the service's own one person gets in an hour;
// 0: HourlyTexts. What is more to be done comes last.
func NewClock(store Sweeper, wake *Wake, log *slog.Logger, hourly int, more ...func(context.Context) (int, error)) *Clock {
	if hourly == 0 {
		hourly = HourlyTexts
	}
	return &Clock{store: store, wake: wake, log: log, hourly: hourly, more: more}
}

// Run looks at the time until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.Once(ctx); err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "the clock's work failed", "error", err)
		}
		wait(ctx, nil, ticker)
	}
}

// Once does everything that is due, in an order in which each step sees what the one before it made. A step that fails
// keeps none of the others back.
func (c *Clock) Once(ctx context.Context) error {
	total := 0
	var errs []error
	for _, step := range append([]func(context.Context) (int, error){
		c.store.ExpireDue, c.store.GiveWayDue, c.store.LapseDue, c.store.SettleDue, c.store.GrantDue, c.store.ResendDue, c.store.AdvanceAll,
		func(ctx context.Context) (int, error) { return c.store.NoticeDue(ctx, PickedUpNotice, c.hourly) },
	}, c.more...) {
		n, err := step(ctx)
		total += n
		errs = append(errs, err)
	}
	if total > 0 {
		c.wake.Signal()
	}
	return errors.Join(errs...)
}

func wait(ctx context.Context, woken <-chan struct{}, atMost time.Duration) {
	t := time.NewTimer(atMost)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-t.C:
	}
}
