package reply

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/classifier"
)

// Limits of drift. Fewer replies than driftLeast are no ground for an alarm: the share of a handful says nothing.
const (
	DriftWindow  = 500  // replies that the shares are of
	DriftUnclear = 0.40 // a share of unclear replies above it raises the alarm
	driftLeast   = 100
)

// Drift counts what became of the last replies to offers: when people, offers or a model change, the share that stays
// unclear moves before anything else does. The nil Drift counts nothing. It is safe for concurrent use.
type Drift struct {
	mu      sync.Mutex
	ring    []seen
	next    int
	n       int
	acted   int
	unclear int
	alarm   float64
	descs   [4]*prometheus.Desc
}

type seen struct{ acted, unclear bool }

// NewDrift keeps the last window replies, and raises its alarm above a share of unclear ones. Both fall back to
// [DriftWindow] and [DriftUnclear] where they make no sense.
func NewDrift(window int, alarm float64) *Drift {
	if window < 1 {
		window = DriftWindow
	}
	if !(alarm > 0) || alarm >= 1 {
		alarm = DriftUnclear
	}
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("countersign_reader_"+name, help, nil, nil)
	}
	return &Drift{ring: make([]seen, window), alarm: alarm, descs: [4]*prometheus.Desc{
		gauge("window_replies", "Replies to offers that the shares are of."),
		gauge("acted_share", "Share of the last replies that code released an operation on."),
		gauge("unclear_share", "Share of the last replies that stayed unclear."),
		gauge("drift_alarm", "1 when the share of unclear replies is above its threshold."),
	}}
}

// Observe counts a reply to an offer: how it was read, and whether code released anything on it.
func (d *Drift) Observe(class classifier.Class, acted bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == len(d.ring) {
		d.count(d.ring[d.next], -1)
	} else {
		d.n++
	}
	s := seen{acted: acted, unclear: class == classifier.Unclear}
	d.ring[d.next] = s
	d.count(s, 1)
	d.next = (d.next + 1) % len(d.ring)
}

func (d *Drift) count(s seen, by int) {
	if s.acted {
		d.acted += by
	}
	if s.unclear {
		d.unclear += by
	}
}

// Shares gives how many replies were counted, the shares that were acted on and unclear, and whether to look into it.
func (d *Drift) Shares() (n int, acted, unclear float64, alarm bool) {
	if d == nil {
		return 0, 0, 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == 0 {
		return 0, 0, 0, false
	}
	acted, unclear = float64(d.acted)/float64(d.n), float64(d.unclear)/float64(d.n)
	return d.n, acted, unclear, d.n >= min(driftLeast, len(d.ring)) && unclear > d.alarm
}

// Describe implements [prometheus.Collector].
func (d *Drift) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range d.descs {
		to <- desc
	}
}

// Collect implements [prometheus.Collector].
func (d *Drift) Collect(to chan<- prometheus.Metric) {
	n, acted, unclear, alarm := d.Shares()
	on := 0.0
	if alarm {
		on = 1
	}
	for i, v := range [...]float64{float64(n), acted, unclear, on} {
		to <- prometheus.MustNewConstMetric(d.descs[i], prometheus.GaugeValue, v)
	}
}
