package gate

import "testing"

func TestSampleIsSound(t *testing.T) {
	policy, err := Sample()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(policy.Tools()); got < 20 {
		t.Errorf("the sample has %d tools, want at least 20", got)
	}
}
