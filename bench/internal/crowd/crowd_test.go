package crowd

import "testing"

// Another message of the same person is another message; the same one is the same bytes.
func TestNewReply(t *testing.T) {
	a, again, other := NewReply(7, 0, "yes", "u"), NewReply(7, 0, "yes", "u"), NewReply(7, 1, "yes", "u")
	if string(a.Body) != string(again.Body) || string(a.Body) == string(other.Body) {
		t.Error("ids of messages do not tell them apart")
	}
	if a.Header.Get("X-Twilio-Signature") == other.Header.Get("X-Twilio-Signature") {
		t.Error("two messages have one signature")
	}
}
