package calibration_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/calibration"
)

func TestMaskKeepsWhatIsEqual(t *testing.T) {
	for _, c := range []struct {
		text, offer, wantText, wantOffer string
	}{
		{"yes, 412 to acme", "pay 412.00 to Acme", "yes, 111 to ari", "pay 111.11 to Ari"},
		{"make it 300", "pay 412.00 to Acme", "make it 222", "pay 111.11 to Ari"},
		{"Yes send it to Quillon instead", "send email to Zyta", "Yes send it to Ari instead", "send email to Bela"},
		{"call me at +1 202 555 0102", "call Zyta", "call me at +1 222 333 4444", "call Ari"},
		{"it's zyta@corp.example, see https://corp.example/a?b=1", "send email to Zyta", "it's x@example.com, see https://example.com/", "send email to Ari"},
		{"Zyta's fine with Friday", "send email to Zyta", "Ari's fine with Friday", "send email to Ari"},
		{"是的", "send email to Zyta", "是的", "send email to Ari"},
	} {
		got := calibration.Mask(calibration.Row{Text: c.text, Earlier: []string{c.text}, Offers: []string{c.offer}})
		if got.Text != c.wantText || !slices.Equal(got.Offers, []string{c.wantOffer}) || !slices.Equal(got.Earlier, []string{c.wantText}) {
			t.Errorf("%q to %q became %q to %q", c.text, c.offer, got.Text, got.Offers)
		}
	}
}
