package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/local"
)

type classifyCmd struct {
	JSONL       bool     `name:"jsonl" help:"Read data lines on standard input and print one JSON object a line, in order."`
	JSON        bool     `name:"json" help:"Print JSON."`
	Explain     bool     `help:"Say what pushed the reading up and down, and which words nothing accounts for."`
	Offer       []string `help:"The label of an open offer; repeat it for several." placeholder:"LABEL"`
	Calibration string   `help:"The reader's calibration file (COUNTERSIGN_CALIBRATION)." placeholder:"FILE"`
	Text        string   `arg:"" optional:"" help:"The reply."`
}

// Help is the command's example.
func (classifyCmd) Help() string {
	return `Example:
  bot classify "ya send it" --offer "send email to Dana" --explain

  echo '{"text":"ya send it","offers":["send email to Dana"]}' | bot classify --jsonl`
}

// classified is one answer. Acts says whether code would consume if the offer were open and everything else in order.
type classified struct {
	Label   classifier.Class   `json:"label"`
	P       map[string]float64 `json:"p"`
	Guards  []string           `json:"guards"`
	Acts    bool               `json:"acts"`
	Explain *explained         `json:"explain,omitempty"`
}

type explained struct {
	Form        string              `json:"form"`
	Own         string              `json:"own_words"`
	Unaccounted []string            `json:"unaccounted"`
	Pushes      []local.ClassPushes `json:"pushes"`
}

// dataLine is a line of the input. Label, id and the like may be there; they are not looked at.
type dataLine struct {
	Text    *string  `json:"text"`
	Earlier []string `json:"earlier"`
	Offers  []string `json:"offers"`
}

// Run reads replies. It needs no database.
func (c *classifyCmd) Run(e *env) error {
	path := c.Calibration
	if path == "" {
		path = e.vars["COUNTERSIGN_CALIBRATION"]
	}
	reader, threshold, err := newReader(config{Calibration: path, Reader: readerLocal}, e.log)
	if err != nil {
		return err
	}
	inner, err := local.New()
	if err != nil {
		return err
	}
	one := func(l dataLine) (classified, error) {
		return c.one(e, reader, inner, threshold, l)
	}
	if c.JSONL {
		return lines(e, one)
	}
	if c.Text == "" {
		return usage("Give the reply as an argument, or data lines with --jsonl on standard input.")
	}
	got, err := one(dataLine{Text: &c.Text, Offers: c.Offer})
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(got)
	}
	got.print(e)
	return nil
}

func (c *classifyCmd) one(e *env, reader classifier.Reader, inner *local.Reader, threshold float64, l dataLine) (classified, error) {
	in := classifier.Input{Newest: classifier.NewWords(*l.Text)}
	for _, w := range l.Earlier {
		in.Earlier = append(in.Earlier, classifier.NewWords(w))
	}
	for _, o := range l.Offers {
		label, err := classifier.ParseLabel(o)
		if err != nil {
			return classified{}, usage("An offer's label is not one: %v", err)
		}
		in.Offers = append(in.Offers, label)
	}
	v := classifier.Read(e.ctx, reader, in, classifier.Options{})
	got := classified{
		Label: v.Reading.Class, P: make(map[string]float64, classifier.Classes), Guards: v.Guards,
		Acts: len(in.Offers) == 1 && v.Confirms(threshold),
	}
	if got.Guards == nil {
		got.Guards = []string{}
	}
	for i, p := range v.Reading.P {
		got.P[classifier.Class(i).String()] = p //nolint:gosec // an index of a small array
	}
	if c.Explain {
		got.Explain = &explained{
			Form: v.Prepared.Form.String(), Own: v.Prepared.Own, Unaccounted: classifier.Unaccounted(in), Pushes: inner.Explain(in, 5),
		}
	}
	return got, nil
}

// lines answers every line in order, or names the first that is none.
func lines(e *env, one func(dataLine) (classified, error)) error {
	in := bufio.NewReaderSize(e.stdin, 1<<16)
	out := bufio.NewWriter(e.stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for n := 1; ; n++ {
		raw, err := in.ReadBytes('\n')
		if len(strings.TrimSpace(string(raw))) > 0 {
			var l dataLine
			if jerr := json.Unmarshal(raw, &l); jerr != nil || l.Text == nil {
				return errors.Join(out.Flush(), usage("Line %d is no data line: want {\"text\":…,\"offers\":[…]}.", n))
			}
			got, oerr := one(l)
			if oerr != nil {
				return errors.Join(out.Flush(), usage("Line %d: %v", n, oerr))
			}
			if err := enc.Encode(got); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return errors.Join(out.Flush(), fmt.Errorf("standard input: %w", err))
		}
	}
}

func (c classified) print(e *env) {
	acts := "code would not act on it"
	if c.Acts {
		acts = "code would act on it"
	}
	e.printf("%s  p(confirm) %.3f  %s\n", c.Label, c.P["confirm"], acts)
	if len(c.Guards) > 0 {
		e.printf("held back by: %s\n", strings.Join(c.Guards, ", "))
	}
	if c.Explain == nil {
		return
	}
	e.printf("read as: %s, own words %q\n", c.Explain.Form, c.Explain.Own)
	if len(c.Explain.Unaccounted) > 0 {
		e.printf("not accounted for: %s\n", strings.Join(c.Explain.Unaccounted, ", "))
	}
	for _, p := range c.Explain.Pushes {
		e.printf("%s\n", p.Class)
		for _, u := range p.Up {
			e.printf("  %+6.2f  %s\n", u.By, u.Feature)
		}
		for _, d := range p.Down {
			e.printf("  %+6.2f  %s\n", d.By, d.Feature)
		}
	}
}
