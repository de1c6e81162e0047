package offers_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/channel"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
)

var update = flag.Bool("update", false, "write what is shown to testdata/show")

const (
	pageURL  = "https://approve.example.test/o/ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lastLine = " Reply YES or NO."
)

func sample(t testing.TB) *gate.Policy {
	t.Helper()
	p, err := gate.Sample()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// odd is a policy with what the sample has not: lists of objects, objects, choices of types, a schema without a template.
func odd(t testing.TB) *gate.Policy {
	t.Helper()
	p, err := gate.ParsePolicy("odd", []byte(`version: 1
tools:
  shop.order:
    effect: act
    capability: network.send
    label: {verb: place an order}
    schema:
      type: object
      required: [items]
      additionalProperties: false
      properties:
        items:
          type: array
          items:
            type: object
            additionalProperties: false
            properties:
              name: {type: string}
              count: {type: integer}
              tags: {type: array, items: {type: string}}
        place:
          type: object
          additionalProperties: false
          properties:
            street: {type: string}
            city: {type: [string, "null"]}
        note: {type: string}
        gift: {type: boolean}
    template:
      - {prefix: Item, arg: items.name}
      - {prefix: Count, arg: items.count}
      - {prefix: Tag, arg: items.tags}
      - {prefix: Street, arg: place.street}
      - {prefix: City, arg: place.city}
      - {prefix: Note, arg: note, body: true}
      - {prefix: Gift, arg: gift}
  post.twice:
    effect: post
    capability: network.send
    label: {verb: publish a page}
    schema:
      type: object
      additionalProperties: false
      properties:
        title: {type: string}
        intro: {type: string}
        text: {type: string}
    template:
      - {prefix: Title, arg: title}
      - {prefix: Intro, arg: intro, body: true}
      - {prefix: Text, arg: text, body: true}
  lamp.set:
    effect: write
    capability: fs.write
    label: {verb: set the lamp}
    schema:
      type: object
      properties:
        level: {type: number}
`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func call(t testing.TB, tool, args string) gate.Operation {
	t.Helper()
	raw, _, err := offers.Canonical([]byte(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return gate.Operation{Kind: gate.KindToolCall, Tool: tool, Args: raw}
}

func show(t testing.TB, policy *gate.Policy, tool, args string) offers.Shown {
	t.Helper()
	s, err := offers.Show(call(t, tool, args), policy, offers.View{Limit: 1600})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return s
}

// shownCase is a file of testdata/show: what is shown follows from what stands above it.
type shownCase struct {
	name, policy, kind, tool, args string
	before                         string // arguments of the offer that is replaced
	page                           string
	limit                          int
}

func shownCases(t *testing.T) []shownCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/show.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, Policy, Kind, Tool, Args, Before, Page string
		Limit                                        int
	}
	if err := yaml.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	var out []shownCase
	for _, c := range list {
		out = append(out, shownCase{c.Name, c.Policy, c.Kind, c.Tool, c.Args, c.Before, c.Page, c.Limit})
	}
	return out
}

// TestShown compares what a person sees, whole, with testdata/show/*.txt.
func TestShown(t *testing.T) {
	seen := map[string]bool{}
	policies := map[string]*gate.Policy{"": sample(t), "odd": odd(t)}
	for _, c := range shownCases(t) {
		t.Run(c.name, func(t *testing.T) {
			op := call(t, c.tool, c.args)
			if c.kind != "" {
				op.Kind = gate.Kind(c.kind)
			}
			v := offers.View{Limit: 1600, Page: c.page}
			if c.limit > 0 {
				v.Limit = c.limit
			}
			if c.before != "" {
				old := call(t, c.tool, c.before)
				v.Before = &old
			}
			var got string
			s, err := offers.Show(op, policies[c.policy], v)
			if err != nil {
				if !errors.Is(err, offers.ErrCannotBeShown) {
					t.Fatal(err)
				}
				got = "cannot be shown\n"
			} else {
				got = "label: " + s.Label + "\n---\n" + s.Text + "\n"
			}
			path := filepath.Join("testdata", "show", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path) //nolint:gosec // of the test's own data
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
		seen[c.policy+"/"+c.tool] = true
	}
	for _, tool := range policies[""].Tools() {
		if !seen["/"+tool.Name] {
			t.Errorf("no case shows %s", tool.Name)
		}
	}
	if files, _ := filepath.Glob("testdata/show/*.txt"); len(files) != len(shownCases(t)) {
		t.Errorf("%d files for %d cases", len(files), len(shownCases(t)))
	}
}

var _ = []any{json.Valid, fmt.Sprint, maps.Keys[map[string]int], reflect.DeepEqual, regexp.Compile, slices.Max[[]int], strconv.Itoa, strings.Count, unicode.IsLetter, utf16.Encode, norm.NFC, rapid.Check, channel.GSM7, classifier.Confirm}
