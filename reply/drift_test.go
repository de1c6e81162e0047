package reply_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/reply"
)

func TestDriftForgetsWhatIsOld(t *testing.T) {
	d := reply.NewDrift(4, 0.5)
	for range 4 {
		d.Observe(classifier.Confirm, true)
	}
	if n, acted, unclear, alarm := d.Shares(); n != 4 || acted != 1 || unclear != 0 || alarm {
		t.Fatalf("%d %v %v %v", n, acted, unclear, alarm)
	}
	for range 2 {
		d.Observe(classifier.Unclear, false)
	}
	if n, acted, unclear, alarm := d.Shares(); n != 4 || acted != 0.5 || unclear != 0.5 || alarm {
		t.Fatalf("at the threshold: %d %v %v %v", n, acted, unclear, alarm)
	}
	d.Observe(classifier.Unclear, false)
	if _, acted, unclear, alarm := d.Shares(); acted != 0.25 || unclear != 0.75 || !alarm {
		t.Fatalf("above it: %v %v %v", acted, unclear, alarm)
	}
}

func TestDriftSaysNothingOfAHandful(t *testing.T) {
	d := reply.NewDrift(0, 0)
	for range 99 {
		d.Observe(classifier.Unclear, false)
	}
	if _, _, unclear, alarm := d.Shares(); unclear != 1 || alarm {
		t.Fatalf("99 replies: %v %v", unclear, alarm)
	}
	d.Observe(classifier.Unclear, false)
	if _, _, _, alarm := d.Shares(); !alarm {
		t.Fatal("no alarm at 100")
	}
	var none *reply.Drift
	none.Observe(classifier.Confirm, true)
	if n, _, _, _ := none.Shares(); n != 0 {
		t.Fatal("nothing counted something")
	}
}

func TestDriftInMetrics(t *testing.T) {
	d := reply.NewDrift(4, 0.5)
	d.Observe(classifier.Confirm, true)
	d.Observe(classifier.Unclear, false)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(d)
	want := `
# HELP countersign_reader_acted_share Share of the last replies that code released an operation on.
# TYPE countersign_reader_acted_share gauge
countersign_reader_acted_share 0.5
# HELP countersign_reader_drift_alarm 1 when the share of unclear replies is above its threshold.
# TYPE countersign_reader_drift_alarm gauge
countersign_reader_drift_alarm 0
# HELP countersign_reader_unclear_share Share of the last replies that stayed unclear.
# TYPE countersign_reader_unclear_share gauge
countersign_reader_unclear_share 0.5
# HELP countersign_reader_window_replies Replies to offers that the shares are of.
# TYPE countersign_reader_window_replies gauge
countersign_reader_window_replies 2
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Fatal(err)
	}
}
