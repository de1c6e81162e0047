// Package ledger defines the append-only record of what was decided and what came of it.
//
// Every person has one chain of rows. A row's number is its place in that chain, from 1, without gaps. A row that
// says what is about to happen (an intent) is committed before the effect; a row that says what came of it follows.
// Rows are chained by hash, so that a row that was changed, dropped or put in later is found by [Verify].
package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"
)

// ErrBroken says that a chain does not verify.
var ErrBroken = errors.New("ledger chain broken")

// Kind says what a row records.
type Kind string

// The kinds. Allowed, Asked and Refused are the gate's answer to an operation; Consumed and Begun are intents, written
// before the effect they allow; Result and Closed say what came of it.
const (
	Allowed  Kind = "allowed"
	Asked    Kind = "asked"
	Refused  Kind = "refused"
	Consumed Kind = "consumed"
	Begun    Kind = "begun"
	Result   Kind = "result"
	Closed   Kind = "closed"
)

// Digest is a SHA-256.
type Digest = [sha256.Size]byte

// Row is one entry of a person's chain.
type Row struct {
	AccountID   string
	PersonID    string
	Number      int64 // from 1, without gaps
	At          time.Time
	Kind        Kind
	OperationID string
	Body        []byte // JSON; never message text
	Prev        Digest // the hash of row Number-1; zero for the first
	Hash        Digest
}

// Hash links a row to the one before it: SHA-256(prev ‖ number ‖ at ‖ SHA-256(body)), where number and at
// (microseconds since 1970 UTC) are big-endian 64-bit integers.
func Hash(prev Digest, number int64, at time.Time, body []byte) Digest {
	inner := sha256.Sum256(body)
	buf := make([]byte, 0, len(prev)+16+len(inner))
	buf = append(buf, prev[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(number))         //nolint:gosec // numbers start at 1
	buf = binary.BigEndian.AppendUint64(buf, uint64(at.UnixMicro())) //nolint:gosec // after 1970
	buf = append(buf, inner[:]...)
	return sha256.Sum256(buf)
}

// Next makes the row that follows prev in a chain; number is the new row's.
func Next(prev Digest, number int64, at time.Time, kind Kind, operationID string, body []byte) Row {
	at = at.Truncate(time.Microsecond)
	return Row{
		Number: number, At: at, Kind: kind, OperationID: operationID, Body: body,
		Prev: prev, Hash: Hash(prev, number, at, body),
	}
}

// Verify walks one person's rows in order and returns the number of rows and the chain's head. The error is
// [ErrBroken] with the number of the first row that does not fit, or the error of the sequence.
func Verify(rows iter.Seq2[Row, error]) (count int64, head Digest, err error) {
	for r, err := range rows {
		if err != nil {
			return count, head, err
		}
		switch {
		case r.Number != count+1:
			return count, head, fmt.Errorf("%w: row %d follows row %d", ErrBroken, r.Number, count)
		case r.Prev != head:
			return count, head, fmt.Errorf("%w: row %d does not name the row before it", ErrBroken, r.Number)
		case r.Hash != Hash(head, r.Number, r.At, r.Body):
			return count, head, fmt.Errorf("%w: row %d was changed", ErrBroken, r.Number)
		}
		count, head = r.Number, r.Hash
	}
	return count, head, nil
}
