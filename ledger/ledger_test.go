package ledger_test

import (
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger"
)

// chain makes three rows that verify.
func chain() []ledger.Row {
	var rows []ledger.Row
	var head ledger.Digest
	at := time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)
	for i, kind := range []ledger.Kind{ledger.Asked, ledger.Consumed, ledger.Begun} {
		r := ledger.Next(head, int64(i+1), at.Add(time.Duration(i)*time.Second), kind, "op", []byte(`{"operation":"op"}`))
		rows, head = append(rows, r), r.Hash
	}
	return rows
}

func seq(rows []ledger.Row, err error) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(ledger.Row{}, err)
		}
	}
}

func TestVerifyTakesAWholeChain(t *testing.T) {
	rows := chain()
	n, head, err := ledger.Verify(seq(rows, nil))
	if err != nil || n != 3 || head != rows[2].Hash {
		t.Fatalf("%d rows, %v", n, err)
	}
	if rows[0].At.Nanosecond()%1000 != 0 {
		t.Fatal("a row's time has more than microseconds, and would not hash the same when it is read back")
	}
}

func TestVerifyFindsWhatWasChanged(t *testing.T) {
	for name, change := range map[string]func([]ledger.Row) []ledger.Row{
		"body":    func(r []ledger.Row) []ledger.Row { r[1].Body = []byte(`{"operation":"other"}`); return r },
		"time":    func(r []ledger.Row) []ledger.Row { r[1].At = r[1].At.Add(time.Microsecond); return r },
		"hash":    func(r []ledger.Row) []ledger.Row { r[2].Hash[0] ^= 1; return r },
		"prev":    func(r []ledger.Row) []ledger.Row { r[1].Prev[0] ^= 1; return r },
		"dropped": func(r []ledger.Row) []ledger.Row { return append(r[:1], r[2]) },
		"put in": func(r []ledger.Row) []ledger.Row {
			return append(r, ledger.Next(ledger.Digest{}, 4, r[2].At, ledger.Result, "op", nil))
		},
		"swapped": func(r []ledger.Row) []ledger.Row { r[0], r[1] = r[1], r[0]; return r },
		"first":   func(r []ledger.Row) []ledger.Row { return r[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := ledger.Verify(seq(change(chain()), nil)); !errors.Is(err, ledger.ErrBroken) {
				t.Fatalf("error %v, want %v", err, ledger.ErrBroken)
			}
		})
	}
}

func TestVerifyPassesAnErrorOn(t *testing.T) {
	down := errors.New("down")
	if n, _, err := ledger.Verify(seq(chain(), down)); !errors.Is(err, down) || n != 3 {
		t.Fatalf("%d rows, error %v", n, err)
	}
}
