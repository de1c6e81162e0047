package offers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// Limits of an argument object.
const (
	MaxArgs  = 64 << 10 // bytes of the canonical form
	MaxDepth = 64       // objects and arrays within each other
)

// ErrArgsInvalid is the error of [Canonical].
var ErrArgsInvalid = errors.New("arguments are not one JSON object that can be kept exactly")

// Canonical returns the RFC 8785 (JCS) form of one JSON object and its SHA-256. These bytes are what is shown,
// hashed, stored and released.
//
// It refuses, and never repairs, whatever two readers could take differently: duplicate names at any depth, invalid
// UTF-8, lone surrogates, a byte order mark, anything behind the object, and numbers that the form could not carry
// exactly (412.00 and 412 are the same number, as are -0 and 0; 9007199254740993 and 1e400 are refused). Strings are
// kept code point by code point: two Unicode forms of one word are two values. The error is [ErrArgsInvalid] with the
// place, without the value.
func Canonical(raw []byte) (canonical []byte, sum [sha256.Size]byte, err error) {
	return CanonicalWithin(raw, MaxArgs)
}

// longestSpelling is how much longer than its canonical form a value may come in: many writers spell every letter that is
// not ASCII as an escape of six bytes.
const longestSpelling = 6

// CanonicalWithin is [Canonical] for what holds arguments, such as the body of a call, with a limit in bytes of its own.
func CanonicalWithin(raw []byte, limit int) (canonical []byte, sum [sha256.Size]byte, err error) {
	tooLong := fmt.Errorf("%w: longer than %d bytes", ErrArgsInvalid, limit)
	if len(raw) > longestSpelling*limit {
		return nil, sum, tooLong
	}
	if err := exact(raw); err != nil {
		return nil, sum, err
	}
	canonical, err = jcs.Transform(raw)
	if err != nil {
		return nil, sum, fmt.Errorf("%w: not canonical JSON", ErrArgsInvalid)
	}
	if len(canonical) > limit { // mutant: canonical-size
		return nil, sum, tooLong
	}
	return canonical, sha256.Sum256(canonical), nil
}

// exact walks the tokens: jsontext refuses duplicate names, bad UTF-8 and lone surrogates; numbers are checked here.
func exact(raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw),
		jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	if dec.PeekKind() != '{' {
		return fmt.Errorf("%w: want a JSON object", ErrArgsInvalid)
	}
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("%w: at byte %d", ErrArgsInvalid, dec.InputOffset())
		}
		if dec.StackDepth() > MaxDepth { // mutant: canonical-depth
			return fmt.Errorf("%w: nested deeper than %d", ErrArgsInvalid, MaxDepth)
		}
		if tok.Kind() == '0' && !keepsValue(tok.String()) { // mutant: canonical-digits
			return fmt.Errorf("%w: the number at %s would lose digits; send it as a string", ErrArgsInvalid, dec.StackPointer())
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if dec.PeekKind() != 0 || len(bytes.TrimLeft(raw[dec.InputOffset():], " \t\r\n")) != 0 {
		return fmt.Errorf("%w: more than one value", ErrArgsInvalid)
	}
	return nil
}

// maxExponent bounds the work of comparing: no double has a larger decimal exponent.
const maxExponent = 400

// keepsValue says whether the JSON number means the same after it has been a double, which is what JCS writes.
func keepsValue(num string) bool {
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || len(num) > maxExponent {
		return false
	}
	if mantissa, exp, ok := bytes.Cut(bytes.ToLower([]byte(num)), []byte("e")); ok {
		n, err := strconv.Atoi(string(exp))
		if err != nil || n > maxExponent || n < -maxExponent || len(mantissa) > maxExponent {
			return false
		}
	}
	want, ok := new(big.Rat).SetString(num)
	if !ok {
		return false
	}
	// The shortest decimal that reads back as f is what JCS writes; the number is kept when that decimal equals it.
	got, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && want.Cmp(got) == 0
}

// Hex is how hashes travel: lower-case hexadecimal.
func Hex(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }

// ParseHex reads a hash that travelled.
func ParseHex(s string) (sum [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(sum) {
		return sum, fmt.Errorf("%w: want 64 hexadecimal digits", ErrHashMismatch)
	}
	copy(sum[:], b)
	return sum, nil
}

// Binding ties an offer to everything that a yes to it depends on.
type Binding struct {
	AccountID     string `json:"account_id"`
	OperationID   string `json:"operation_id"`
	PersonID      string `json:"person_id"`
	Tool          string `json:"tool"`
	ArgsSHA256    string `json:"args_sha256"`
	ShownSHA256   string `json:"shown_sha256"`
	PolicyVersion string `json:"policy_version"`
}

// Sum is the SHA-256 of the binding's canonical JSON.
func (b Binding) Sum() ([sha256.Size]byte, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	_, sum, err := Canonical(raw)
	return sum, err
}

func shownSum(text string) Digest { return sha256.Sum256([]byte(text)) }
