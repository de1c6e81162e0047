package sqlite_test

import (
	"reflect"
	"testing"

	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
)

// What the writer reads goes by the rules of database/sql: nothing is cut, and nothing is made of what is not there.
func TestAssign(t *testing.T) {
	n := int64(7)
	for name, c := range map[string]struct {
		value any
		want  any // what is assigned to is of its type
		fails bool
	}{
		"text":                         {value: "a", want: "a"},
		"text as a type of the domain": {value: "active", want: people.Active},
		"bytes as text":                {value: []byte("a"), want: "a"},
		"bytes as a type of text":      {value: []byte("active"), want: people.Active},
		"text as bytes":                {value: "a", want: []byte("a")},
		"bytes":                        {value: []byte("a"), want: []byte("a")},
		"no bytes":                     {value: nil, want: []byte(nil)},
		"number":                       {value: int64(7), want: int64(7)},
		"small number":                 {value: int64(7), want: int8(7)},
		"yes":                          {value: int64(1), want: true},
		"no":                           {value: int64(0), want: false},
		"number that may not be there": {value: int64(7), want: &n},
		"number that is not there":     {value: nil, want: (*int64)(nil)},
		"nothing as text":              {value: nil, want: "", fails: true},
		"nothing as a number":          {value: nil, want: int64(0), fails: true},
		"nothing as no":                {value: nil, want: false, fails: true},
		"neither yes nor no":           {value: int64(2), want: false, fails: true},
		"number that does not fit":     {value: int64(300), want: int8(0), fails: true},
		"text as a number":             {value: "7", want: int64(0), fails: true},
		"fraction as a number":         {value: 7.5, want: int64(0), fails: true},
		"text as words":                {value: "a", want: []string(nil), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := reflect.New(reflect.TypeOf(c.want))
			err := sqlite.Assign(got.Interface(), c.value)
			if (err != nil) != c.fails || !reflect.DeepEqual(got.Elem().Interface(), c.want) {
				t.Errorf("%v, %v; want %v", got.Elem().Interface(), err, c.want)
			}
		})
	}
}
