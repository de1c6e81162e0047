package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/countersign/countersign/offers"
)

const (
	tryTimeout = 10 * time.Second
	maxHeader  = 16 << 10               // of an answer
	maxAnswer  = 4 << 10                // of a body, read so that the connection can be used again; nobody looks at it
	deliveries = 32                     // at once, to as many endpoints
	lookAgain  = 250 * time.Millisecond // woken or not: other replicas commit as well, and tries and leases become due
	// lease is how long a process that dies holds its endpoints up. One that stands still for so long may have an event
	// sent by another, under the same id and number.
	lease       = 750 * time.Millisecond
	renewals    = 3 // of a lease, until it would be over
	gather      = 20 * time.Millisecond
	idleTimeout = 90 * time.Second
)

// DeliverConfig is what deliveries need besides the store. Fields that are nil or zero get the ordinary value.
type DeliverConfig struct {
	// AllowPrivate lets endpoints be in private networks and on the loopback, there also by http.
	AllowPrivate bool
	// Version goes out as part of the User-Agent.
	Version string
	// AtOnce is the number of endpoints that are served at once.
	AtOnce int
	// Timeout is that of one try, from the look-up of the name to the answer.
	Timeout time.Duration
	// Lease is how long a claim holds that nobody renews.
	Lease time.Duration

	Now    func() time.Time                                                       // of the timestamps that are signed
	Jitter func() float64                                                         // in [0, 1)
	Wait   func(ctx context.Context, woken <-chan struct{}, atMost time.Duration) // until one of them
	Lookup func(ctx context.Context, network, address string) (net.Conn, error)   // dials the name server
	Roots  *x509.CertPool                                                         // whom to trust
}

// Deliverer posts events to the endpoints of agents, signed as the Standard Webhooks scheme has it.
//
// An endpoint has at most one delivery on its way; what holds of the order of its events stands at
// [offers.EndpointStore]. Whatever several of them run, in one process or many, the store's claims keep them apart.
type Deliverer struct {
	store  offers.EndpointStore
	wake   *offers.Wake
	log    *slog.Logger
	config DeliverConfig
	https  *http.Client
	http   *http.Client // to the loopback alone
}

// NewDeliverer makes a deliverer.
func NewDeliverer(store offers.EndpointStore, wake *offers.Wake, log *slog.Logger, c DeliverConfig) *Deliverer {
	if c.AtOnce == 0 {
		c.AtOnce = deliveries
	}
	if c.Timeout == 0 {
		c.Timeout = tryTimeout
	}
	if c.Lease == 0 {
		c.Lease = lease
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Wait == nil {
		c.Wait = waitFor
	}
	return &Deliverer{
		store: store, wake: wake, log: log, config: c,
		https: client(c, func(ip netip.Addr) bool { return mayDial(ip, c.AllowPrivate) }),
		http:  client(c, func(ip netip.Addr) bool { return c.AllowPrivate && ip.IsLoopback() }),
	}
}

// client follows no redirect, uses no proxy and dials only what it may.
func client(c DeliverConfig, may func(netip.Addr) bool) *http.Client {
	d := dialer(may)
	if c.Lookup != nil {
		d.Resolver = &net.Resolver{PreferGo: true, Dial: c.Lookup}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would dial for us, past the guard; mutant: endpoints-proxy
			DialContext:            d.DialContext,
			ForceAttemptHTTP2:      true,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // mutant: endpoints-redirect
	}
}

// Run delivers until ctx ends, and then sees through what is on its way.
func (d *Deliverer) Run(ctx context.Context) {
	slots := make(chan struct{}, d.config.AtOnce) // mutant: endpoints-at-once
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		woken := d.wake.C()
		first := d.claim(ctx)
		if first == nil {
			<-slots
			d.config.Wait(ctx, woken, lookAgain)
			d.config.Wait(ctx, nil, gather) // under load one look serves many events
			if ctx.Err() != nil {
				return
			}
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			for next := first; next != nil; next = d.claim(ctx) {
				d.deliver(ctx, *next)
			}
		})
	}
}

// Once delivers what is next, if there is something. A delivery that was claimed is seen through even when ctx ends.
func (d *Deliverer) Once(ctx context.Context) (bool, error) {
	next, err := d.store.ClaimDelivery(ctx, d.config.Lease)
	if err != nil || next == nil {
		return false, err
	}
	d.deliver(ctx, *next)
	return true, nil
}

// claim returns nil when nothing is due, ctx is over, or the store does not answer.
func (d *Deliverer) claim(ctx context.Context) *offers.Delivery {
	if ctx.Err() != nil {
		return nil
	}
	next, err := d.store.ClaimDelivery(ctx, d.config.Lease)
	if err != nil && ctx.Err() == nil {
		d.log.ErrorContext(ctx, "events cannot be claimed", "error", err)
	}
	return next
}

func (d *Deliverer) deliver(ctx context.Context, x offers.Delivery) {
	ctx = context.WithoutCancel(ctx) // mutant: endpoints-seen-through
	release := d.hold(ctx, x)
	a := d.try(ctx, x)
	release()
	fate, in := a.Judge(x.Attempts, d.config.Jitter())
	log := d.log.With("delivery", x, "status", a.Status, "failure", string(a.Failure), "attempt", x.Attempts+1)
	switch fate {
	case offers.FateRetry:
		log.WarnContext(ctx, "event not taken, to be tried again", "in", in.Round(time.Second).String())
	case offers.FateDead:
		log.ErrorContext(ctx, "event not taken, given up")
	case offers.FateDisabled:
		log.WarnContext(ctx, "endpoint is gone and was disabled")
	}
	// What is not recorded goes out again when the lease is over.
	if err := d.store.RecordDelivery(ctx, x, a, fate, in); err != nil {
		log.ErrorContext(ctx, "delivery not recorded", "error", err)
	}
}

// hold renews a claim until it is released. A claim that cannot be renewed may be lost, which the record will tell.
func (d *Deliverer) hold(ctx context.Context, x offers.Delivery) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(d.config.Lease / renewals)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if errors.Is(d.store.RenewDelivery(ctx, x, d.config.Lease), offers.ErrLeaseLost) {
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// try posts an event once.
func (d *Deliverer) try(ctx context.Context, x offers.Delivery) offers.Attempt {
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout) // mutant: endpoints-timeout
	defer cancel()
	u, err := ParseEndpointURL(x.Endpoint.URL, d.config.AllowPrivate)
	if err != nil {
		return offers.Attempt{Failure: offers.FailedAddress}
	}
	headers, payload, err := sign(x, d.config.Now())
	if err != nil {
		return offers.Attempt{Failure: offers.FailedSecret}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(payload))
	if err != nil {
		return offers.Attempt{Failure: offers.FailedAddress}
	}
	req.Header = headers
	req.Header.Set("User-Agent", "Countersign/"+d.config.Version)
	c := d.https
	if u.Scheme == "http" {
		c = d.http
	}
	resp, err := c.Do(req)
	if err != nil {
		return offers.Attempt{Failure: failure(err)}
	}
	defer resp.Body.Close()                           //nolint:errcheck // nobody reads on
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // mutant: endpoints-body
	return offers.Attempt{Status: resp.StatusCode}
}

// sign makes the body of a delivery and its headers. Errors: offers.ErrBadSecret.
func sign(x offers.Delivery, now time.Time) (http.Header, []byte, error) {
	key, err := offers.EndpointKey(x.Endpoint.Secret)
	if err != nil {
		return nil, nil, err
	}
	w, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := marshal(&b, struct {
		offers.Event
		Seq int64 `json:"seq"`
	}{x.Event, x.Seq}); err != nil {
		return nil, nil, err
	}
	payload := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	signature, err := w.Sign(x.Event.ID, now, payload)
	if err != nil {
		return nil, nil, err
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set(standardwebhooks.HeaderWebhookID, x.Event.ID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return h, payload, nil
}

// failure names what went wrong. The error itself would repeat the URL.
func failure(err error) offers.Failure {
	var name *net.DNSError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var timeout net.Error
	switch {
	case errors.Is(err, errAddressRefused):
		return offers.FailedAddress
	case errors.As(err, &timeout) && timeout.Timeout():
		return offers.FailedTimeout
	case errors.As(err, &name):
		return offers.FailedName
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return offers.FailedTLS
	}
	return offers.FailedConnection
}

func waitFor(ctx context.Context, woken <-chan struct{}, atMost time.Duration) {
	t := time.NewTimer(atMost)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-t.C:
	}
}
