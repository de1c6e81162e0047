package reply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/offers"
)

var errNoAnswer = errors.New("no answer")

// fixed is a reader that says one thing, or fails.
type fixed struct {
	reading classifier.Reading
	err     error
}

func (f fixed) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	return f.reading, f.err
}
func (fixed) Fingerprint() string { return "fixed" }

// reads makes a reading out of "confirm 0.99"; the rest goes to unclear, or to unrelated where that is the class itself.
func reads(t *testing.T, s string) classifier.Reading {
	t.Helper()
	name, number, _ := strings.Cut(s, " ")
	class, err := classifier.ParseClass(name)
	p, err2 := strconv.ParseFloat(number, 64)
	if err != nil || err2 != nil {
		t.Fatalf("reading %q: %v %v", s, err, err2)
	}
	r := classifier.Reading{Class: class}
	rest := classifier.Unclear
	if class == classifier.Unclear {
		rest = classifier.Unrelated
	}
	r.P[class] += p
	r.P[rest] += 1 - p
	return r
}

// decideCase is one row of decide.yaml.
type decideCase struct {
	Name            string
	Words           string
	Reading         string
	Failed          bool
	Open            int
	Lossy           bool
	Overtaken       bool
	OptedOut        bool `yaml:"opted_out"`
	Listening       bool
	Settling        int
	Provider        string // OptOutType
	Quoted          string // first: of the first offer; other: of one that is not open; none: of no offer
	TapbackConfirms bool   `yaml:"tapback_confirms"`
	Want            string
}

func (c decideCase) received() offers.Received {
	r := offers.Received{
		Trusted: true, Text: c.Words, Lossy: c.Lossy, Overtaken: c.Overtaken, OptedOut: c.OptedOut, Listening: c.Listening,
		Settling: c.Settling, OptOut: c.Provider,
	}
	for i := range c.Open {
		r.Live = append(r.Live, offers.Offer{
			ID: fmt.Sprint("offer-", i+1), State: offers.Open, Label: "send email to an email address",
			ShownText: fmt.Sprintf("Send %d?\nReply YES or NO.", i+1),
		})
	}
	switch c.Quoted {
	case "first":
		r.Quoted, r.QuotedFor = "SM1", "offer-1"
	case "other":
		r.Quoted, r.QuotedFor = "SM1", "offer-9"
	case "none":
		r.Quoted = "SM1"
	}
	return r
}

func (c decideCase) run(t *testing.T) {
	t.Helper()
	reader := fixed{reading: classifier.UnclearReading()}
	if c.Reading != "" {
		reader.reading = reads(t, c.Reading)
	}
	if c.Failed {
		reader.err = errNoAnswer
	}
	r := c.received()
	v := tapped(r, classifier.Read(t.Context(), reader, input(r), classifier.Options{}), c.TapbackConfirms)
	if got := decide(r, v, classifier.ActThreshold).String(); got != c.Want {
		t.Errorf("%q, read as %s, guards %v: %s, want %s", c.Words, c.Reading, v.Guards, got, c.Want)
	}
}

func (o outcome) String() string {
	names := map[action]string{confirm: "confirm", decline: "decline", modify: "modify", optOut: "opt out", optIn: "opt in", end: "end"}
	s := names[o.action]
	switch {
	case o.action == choose:
		s = fmt.Sprint("choose ", o.chosen)
	case o.action != pass:
	case o.event == offers.MessageReceived:
		s = strings.TrimSpace("received " + string(o.why))
	case o.event == offers.ReplyUnresolved:
		s = string(o.why)
	}
	if o.cancel {
		s += " + cancel"
	}
	return s
}

func TestDecide(t *testing.T) {
	raw, err := os.ReadFile("testdata/decide.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Matrix []struct {
			decideCase `yaml:",inline"`
			ByOpen     map[string][]string `yaml:"open_0_1_2"`
		}
		Cases []decideCase
	}
	dec := yaml.NewDecoder(strings.NewReader(string(raw)))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, m := range file.Matrix {
		t.Run(m.Name, func(t *testing.T) {
			for row, wants := range m.ByOpen {
				if len(wants) != 3 {
					t.Fatalf("%q has %d columns", row, len(wants))
				}
				for open, want := range wants {
					c := m.decideCase
					c.Open, c.Want = open, want
					if c.Words, c.Failed = strings.CutSuffix(row, " failed"); !c.Failed {
						at := strings.LastIndex(row, " is ")
						c.Words, c.Reading = row[:at], row[at+len(" is "):]
					}
					t.Run(fmt.Sprintf("%s, %d open", row, open), c.run)
				}
			}
		})
	}
	for _, c := range file.Cases {
		t.Run(strings.TrimSpace(c.Name+" "+c.Words), c.run)
	}
}

// The zero outcome touches nothing.
func TestZeroOutcome(t *testing.T) {
	var o outcome
	if o.action != pass || o.cancel {
		t.Errorf("%+v", o)
	}
}
