package tiny

import "testing"

func TestOdd(t *testing.T) {
	if Allowed(3) {
		t.Error("3 is odd")
	}
}

func TestLimit(t *testing.T) {
	for name, n := range map[string]int{"at": 8, "over": 10} {
		t.Run(name, func(t *testing.T) {
			if Allowed(n) != (name == "at") {
				t.Errorf("Allowed(%d) is wrong", n)
			}
		})
	}
}

func TestFails(t *testing.T) {
	t.Error("always")
}
