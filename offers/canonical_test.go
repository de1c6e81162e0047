package offers_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/countersign/countersign/offers"
)

func canonical(t *testing.T, raw string) string {
	t.Helper()
	got, _, err := offers.Canonical([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return string(got)
}

// refusesJSON demands a refusal that names no value that was sent.
func refusesJSON(t *testing.T, raw string) {
	t.Helper()
	got, sum, err := offers.Canonical([]byte(raw))
	if !errors.Is(err, offers.ErrArgsInvalid) || got != nil || sum != (offers.Digest{}) {
		t.Errorf("%q: got %q, %v; want a refusal", raw, got, err)
		return
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error repeats what was sent: %v", err)
	}
}

func hexed(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCase_CJ01_EscapesAreOneSpelling(t *testing.T) {
	plain := canonical(t, `{"url":"https://x.example.test/?a=1&b=<2>"}`)
	escaped := canonical(t, `{"url":"https://x.example.test/?a=1\u0026b=\u003c2\u003E"}`)
	if plain != escaped || plain != `{"url":"https://x.example.test/?a=1&b=<2>"}` {
		t.Fatalf("%s\n%s", plain, escaped)
	}
}

func TestCase_CJ02_DoubledNames(t *testing.T) {
	for _, raw := range []string{
		`{"amount":10,"amount":9999}`,
		`{"a":{"b":1,"b":1}}`,
		`{"a":[{"b":{"c":null,"c":null}}]}`,
		`{"amount":10,"\u0061mount":9999}`, // the same name in another spelling
		`{"":1,"":2}`,
	} {
		refusesJSON(t, raw)
	}
	// Names that differ are different arguments, also where they differ by case alone: the tool's schema knows which it takes.
	if got := canonical(t, `{"amount":10,"Amount":9999}`); got != `{"Amount":9999,"amount":10}` {
		t.Fatal(got)
	}
}

func TestCase_CJ04_BrokenText(t *testing.T) {
	refusesJSON(t, hexed(t, "7b2261223a225c75646530305c7564383364227d")) // a pair of surrogates the wrong way round
	refusesJSON(t, hexed(t, "7b2261223a22ff227d"))                       // a byte that is no UTF-8
	for _, raw := range []string{
		`{"a":"\ud83d"}`, `{"a":"\ude00"}`, `{"a":"\ud83dx"}`, `{"\ud83d":1}`,
		"{\"a\":\"\xed\xa0\xbd\"}", // a surrogate, encoded
		"{\"a\":\"\xc0\xaf\"}",     // overlong
	} {
		refusesJSON(t, raw)
	}
	genuine := hexed(t, "7b2261223a22efbfbd227d")
	if got := canonical(t, genuine); got != genuine {
		t.Fatalf("%x", got)
	}
	if a, b := canonical(t, `{"a":"\ud83d\ude00"}`), canonical(t, `{"a":"😀"}`); a != b {
		t.Fatalf("%s is not %s", a, b)
	}
}

func TestCase_CJ05_NumbersKeepEveryDigit(t *testing.T) {
	for raw, want := range map[string]string{
		`0`: `0`, `-0`: `0`, `412`: `412`, `412.00`: `412`, `4.12e2`: `412`, `4120e-1`: `412`, `0.1`: `0.1`, `1e2`: `100`, `-0.5`: `-0.5`,
		`9007199254740991`: `9007199254740991`, `9007199254740992`: `9007199254740992`, `1e21`: `1e+21`, `1E-7`: `1e-7`, `0.000001`: `0.000001`,
		`5e-324`: `5e-324`, `1.7976931348623157e308`: `1.7976931348623157e+308`, `0e9`: `0`,
	} {
		got, _, err := offers.Canonical([]byte(`{"n":` + raw + `}`))
		if err != nil || string(got) != `{"n":`+want+`}` {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		`9007199254740993`, `12345678901234567890`, `0.1000000000000000000001`, `1e400`, `-1e400`, `1e-400`, `1e999999999`, `1e-999999999`,
		`3.141592653589793238`, strings.Repeat("9", 500), `0.` + strings.Repeat("0", 500) + `1`, `1e99999999999999999999`,
		`01`, `1.`, `.1`, `+1`, `0x10`, `NaN`, `Infinity`, `-`, `1e`, `--1`,
	} {
		refusesJSON(t, `{"n":`+raw+`}`)
		refusesJSON(t, `{"a":[{"n":`+raw+`}]}`)
	}
	if got := canonical(t, `{"order_id":"9007199254740993"}`); got != `{"order_id":"9007199254740993"}` {
		t.Fatalf("a string is kept as it is: %s", got)
	}
}

func TestCase_CJ08_FormsOfUnicodeAreDifferentValues(t *testing.T) {
	composed, decomposed := "{\"file\":\"r\u00e9sum\u00e9.pdf\"}", "{\"file\":\"re\u0301sume\u0301.pdf\"}"
	a, b := canonical(t, composed), canonical(t, decomposed)
	if a != composed || b != decomposed {
		t.Fatalf("a value was changed: %q, %q", a, b)
	}
}

func TestCase_CJ10_NullAbsentAndEmpty(t *testing.T) {
	seen := map[offers.Digest]string{}
	for _, raw := range []string{`{"to":"a","cc":null}`, `{"to":"a"}`, `{"to":"a","cc":""}`, `{"to":"a","cc":[]}`, `{"to":"a","cc":{}}`, `{"to":"a","cc":[""]}`, `{"to":"a","cc":[null]}`} {
		_, sum, err := offers.Canonical([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[sum]; ok {
			t.Errorf("%s and %s have one hash", raw, other)
		}
		seen[sum] = raw
	}
	for _, raw := range []string{``, ` `, `null`, `[]`, `[{}]`, `"{}"`, `1`, `true`} {
		refusesJSON(t, raw)
	}
}

func TestCanonicalTakesOneObject(t *testing.T) {
	for _, raw := range []string{
		"\ufeff{}", "{}\ufeff", `{} {}`, `{}x`, `{},`, `{}null`, "{}\x00", "{}\v", `{"a":1`, `{"a":1,}`, `{'a':1}`, `{a:1}`, `{"a":1}//`,
		"{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":tru}`, `{"secret":01}`, `{"a":"secret`,
	} {
		refusesJSON(t, raw)
	}
	if got := canonical(t, " \t\r\n{ \"b\" : [ 1 , true ] , \"a\" : null }\r\n "); got != `{"a":null,"b":[1,true]}` {
		t.Fatal(got)
	}
}

func TestCanonicalLimits(t *testing.T) {
	sized := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	canonical(t, sized(offers.MaxArgs))
	refusesJSON(t, sized(offers.MaxArgs+1))
	// The limit is of the value and not of its spelling, up to a point.
	escaped := `{"a":"` + strings.Repeat(`\u3042`, offers.MaxArgs/3-3) + `"}`
	if canonical(t, escaped); len(escaped) < 3*offers.MaxArgs/2 {
		t.Fatal(len(escaped))
	}
	refusesJSON(t, strings.Repeat(" ", 6*offers.MaxArgs)+`{}`)
	nested := func(n int, left, right string) string {
		return `{"a":` + strings.Repeat(left, n-1) + strings.Repeat(right, n-1) + `}`
	}
	canonical(t, nested(offers.MaxDepth, "[", "]"))
	refusesJSON(t, nested(offers.MaxDepth+1, "[", "]"))
	refusesJSON(t, nested(20_000, "[", "]"))
	refusesJSON(t, strings.Repeat(`{"a":`, offers.MaxDepth+1)+`1`+strings.Repeat(`}`, offers.MaxDepth+1))
	if _, _, err := offers.CanonicalWithin([]byte(sized(offers.MaxArgs+1)), 2*offers.MaxArgs); err != nil {
		t.Fatalf("a body is not bound by the limit of arguments: %v", err)
	}
}

// The order of names is that of their UTF-16 code units, which is neither that of bytes nor that of code points.
func TestCanonicalOrder(t *testing.T) {
	got := canonical(t, `{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`)
	want := "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"\u00f6\":7,\"\u20ac\":1,\"\U0001F600\":5,\"\ufb33\":3}"
	if got != want {
		t.Fatalf("%q\n%q", got, want)
	}
}

func TestParseHex(t *testing.T) {
	_, sum, _ := offers.Canonical([]byte(`{}`))
	got, err := offers.ParseHex(offers.Hex(sum))
	if err != nil || got != sum {
		t.Fatal(got, err)
	}
	for _, s := range []string{"", "00", offers.Hex(sum) + "00", strings.Repeat("g", 64), " " + offers.Hex(sum)[1:]} {
		if _, err := offers.ParseHex(s); !errors.Is(err, offers.ErrHashMismatch) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// FuzzCanonical: either a refusal, or bytes that mean the very same and re-encode to themselves. However the value is
// spelled (spaces, escapes, trailing noughts), the bytes are the same.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":412.00,"b":[1e2,-0,0.1,"\u00e9\n<>&"]}`, `{"a":{"b":[null,true,""]}}`, `{"a":9007199254740993}`, `{"a":1,"a":2}`, `{"a":"\ud83d"}`,
		"\ufeff{}", `{"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}`, `{"a":1e-7,"b":1e21,"c":5e-324}`, "{\"a\":\"\xff\"}", `{"a":1} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, sum, err := offers.Canonical(raw)
		if err != nil {
			return
		}
		again, sum2, err := offers.Canonical(got)
		if err != nil || !bytes.Equal(got, again) || sum != sum2 {
			t.Fatalf("%q does not re-encode to itself: %q, %v", got, again, err)
		}
		if !reflect.DeepEqual(rational(t, decoded(t, raw)), rational(t, decoded(t, got))) {
			t.Fatalf("%q became %q", raw, got)
		}
		// The same value with other spaces, every character of every string escaped, names in no order, and noughts behind
		// the numbers; it is longer, so that the limit of arguments does not hold for it.
		other, sum3, err := offers.CanonicalWithin(respell(t, decoded(t, got)), 64*offers.MaxArgs)
		if err != nil || !bytes.Equal(got, other) || sum != sum3 {
			t.Fatalf("another spelling of %q is %q, %v", got, other, err)
		}
	})
}

// decoded is the value with numbers as they are written.
func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q was taken and is no JSON: %v", raw, err)
	}
	return v
}

// fraction is a number without its spelling.
type fraction string

// rational puts fractions in the place of numbers.
func rational(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = rational(t, e)
		}
	case []any:
		for i, e := range v {
			v[i] = rational(t, e)
		}
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			t.Fatalf("%s is no number", v)
		}
		return fraction(r.RatString())
	}
	return v
}

// respell writes a value of [decoded] in another way.
func respell(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	var write func(v any)
	text := func(s string) {
		b.WriteByte('"')
		for _, r := range s {
			const digits = "0123456789ABCDEF"
			for _, u := range utf16.AppendRune(nil, r) {
				b.WriteString(`\u`)
				for shift := 12; shift >= 0; shift -= 4 {
					b.WriteByte(digits[u>>shift&15])
				}
			}
		}
		b.WriteByte('"')
	}
	write = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			b.WriteString("{ ")
			first := true
			for k, e := range v { // in no order
				if !first {
					b.WriteString("\t,\n")
				}
				first = false
				text(k)
				b.WriteString(" : ")
				write(e)
			}
			b.WriteString("\r\n}")
		case []any:
			b.WriteString("[ ")
			for i, e := range v {
				if i > 0 {
					b.WriteString(" ,")
				}
				write(e)
			}
			b.WriteByte(']')
		case json.Number:
			mantissa, exponent, hasExponent := strings.Cut(v.String(), "e")
			if !strings.Contains(mantissa, ".") {
				mantissa += "."
			}
			b.WriteString(mantissa + "00")
			if hasExponent {
				b.WriteString("E" + exponent)
			}
		case string:
			text(v)
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(raw)
		}
	}
	write(v)
	return b.Bytes()
}
