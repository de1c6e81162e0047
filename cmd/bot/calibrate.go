package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/classifier/local"
	"github.com/countersign/countersign/classifier/openai"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
)

// leastStopped is the share of what is no yes that guards must stop when a reader says yes to everything.
const leastStopped = 0.95

type calibrateCmd struct {
	Data            []string `help:"Labelled replies, one JSON object a line; repeat it for several files." placeholder:"FILE"`
	TargetPrecision float64  `help:"What share of the confirms acted on must be shown to be right, as a one-sided 95 % bound." default:"0.99" placeholder:"0.99"`
	Reader          string   `help:"local or openai. The two of cascade and agree are calibrated one by one." default:"local" enum:"local,openai" placeholder:"local"`
	Calibration     string   `help:"Fit nothing: measure with this calibration file, as a server would use it." placeholder:"FILE"`
	Record          string   `help:"Write the reader's answers there; a run that was broken off goes on where it stopped." placeholder:"FILE" xor:"from"`
	Replay          string   `help:"Take the answers from there and ask no reader." placeholder:"FILE" xor:"from"`
	Adversary       bool     `help:"What do guards alone hold when a reader says confirm, 1.0, to everything?" xor:"from"`
	Oracle          bool     `help:"What do guards hold back of a reader that is always right?" xor:"from"`
	Against         string   `help:"The result.json of another run over the same rows, for a paired test." placeholder:"FILE"`
	Out             string   `help:"A folder for calibration.json, report.html and result.json." placeholder:"DIR"`
	Workers         int      `help:"Rows asked at the same time." default:"1" placeholder:"N"`
	Price           float64  `help:"What one answer costs, for the figures." placeholder:"AMOUNT"`
	JSON            bool     `name:"json" help:"Print the result as JSON."`

	FromStore   bool          `help:"Export replies that fell through as data lines for labelling, numbers and names masked. Needs the database."`
	DatabaseURL string        `name:"database-url" help:"sqlite:FILE or postgres://… (COUNTERSIGN_DATABASE_URL)." placeholder:"URL"`
	Since       time.Duration `help:"With --from-store: how far back." default:"720h" placeholder:"720h"`
	Limit       int           `help:"With --from-store: how many at most." default:"1000" placeholder:"N"`
	Account     string        `help:"With --from-store: whose replies." default:"default" placeholder:"ACCOUNT"`
}

// Help is the command's example.
func (calibrateCmd) Help() string {
	return `p means something only against labelled replies. A data line:
  {"text":"ya send it","earlier":[],"offers":["send email to Dana"],"label":"confirm","lang":"en"}

Code acts in the languages only whose own rows show enough: those without "lang" bless none.

Example:
  bot calibrate --data replies.jsonl --out calibrated
  bot calibrate --data replies.jsonl --reader openai --record answers.jsonl --out calibrated
  bot calibrate --data replies.jsonl --replay answers.jsonl --against last/result.json
  bot calibrate --data replies.jsonl --adversary
  bot calibrate --from-store --since 168h > to-label.jsonl

Exit codes: 0 the reader is blessed, 1 it is not, 2 wrong use.`
}

// Run calibrates, or measures, or exports.
func (c *calibrateCmd) Run(e *env) error {
	if c.FromStore {
		return c.export(e)
	}
	if len(c.Data) == 0 {
		return usage("Give labelled replies with --data, or export some with --from-store.")
	}
	if !(c.TargetPrecision > 0) || c.TargetPrecision >= 1 {
		return usage("--target-precision is a share above 0 and below 1, such as 0.99.")
	}
	if c.Workers < 1 || c.Workers > 64 {
		return usage("--workers is a number from 1 to 64.")
	}
	rows, err := c.rows()
	if err != nil {
		return err
	}
	if c.Adversary {
		return c.hostile(e, rows)
	}
	if c.Oracle {
		return c.honest(e, rows)
	}
	res, err := c.evaluate(e, rows)
	if err != nil {
		return err
	}
	if err := c.compare(e, res); err != nil {
		return err
	}
	if err := c.write(res); err != nil {
		return err
	}
	if c.JSON {
		b, err := res.JSON()
		if err != nil {
			return err
		}
		if _, err := e.stdout.Write(b); err != nil {
			return err
		}
	} else {
		printResult(e, res)
	}
	if res.Refused != "" {
		fmt.Fprintf(e.stderr, "bot: the reader is not blessed: %s\n", strings.TrimPrefix(res.Refused, "calibration: "))
		return noError{}
	}
	return nil
}

func (c *calibrateCmd) rows() ([]calibration.Row, error) {
	var rows []calibration.Row
	for _, path := range c.Data {
		f, err := os.Open(path) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, usage("--data cannot be read: %v", err)
		}
		more, err := calibration.ReadData(f)
		_ = f.Close()
		if err != nil {
			return nil, usage("%s: %v", path, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// evaluate gets the answers, from a reader or a file, and evaluates them.
func (c *calibrateCmd) evaluate(e *env, rows []calibration.Row) (calibration.Result, error) {
	builtIn, err := local.New()
	if err != nil {
		return calibration.Result{}, err
	}
	o := calibration.Options{TargetPrecision: c.TargetPrecision, Languages: builtIn}
	if c.Calibration != "" {
		raw, err := os.ReadFile(c.Calibration)
		if err != nil {
			return calibration.Result{}, usage("--calibration cannot be read: %v", err)
		}
		f, err := calibration.Load(raw)
		if err != nil {
			return calibration.Result{}, usage("%s: %v", c.Calibration, err)
		}
		o.Calibration = &f
	}
	var answers calibration.Answers
	if c.Replay != "" {
		if answers, err = readAnswers(c.Replay, ""); err != nil {
			return calibration.Result{}, err
		}
	} else if answers, err = c.ask(e, builtIn, rows); err != nil {
		return calibration.Result{}, err
	}
	res, err := calibration.Evaluate(e.ctx, rows, answers, o)
	if errors.Is(err, calibration.ErrAnswers) || errors.Is(err, calibration.ErrMismatch) {
		return res, usage("%v", err)
	}
	return res, err
}

// ask collects the reader's answers, and records them on the way.
func (c *calibrateCmd) ask(e *env, builtIn classifier.Reader, rows []calibration.Row) (calibration.Answers, error) {
	reader := builtIn
	if c.Reader == readerOpenAI {
		cfg, ok := openai.FromEnv(e.vars)
		if !ok {
			return nil, usage("--reader openai needs OPENAI_API_KEY or OPENAI_BASE_URL, and OPENAI_MODEL.")
		}
		r, err := openai.Open(e.ctx, cfg)
		if err != nil {
			return nil, fmt.Errorf("the reader's endpoint cannot be used: %w", err)
		}
		reader = r
	}
	bar := &progress{w: e.stderr, now: time.Now}
	o := calibration.CollectOptions{Workers: c.Workers, Progress: bar.show}
	if c.Record != "" {
		f, have, err := openRecord(c.Record, reader.Fingerprint())
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // every answer was synced
		o.Have = have
		o.Save = func(a calibration.Answer) error {
			a.Cost = c.Price
			if err := calibration.WriteAnswer(f, a); err != nil {
				return err
			}
			return f.Sync()
		}
	}
	answers, err := calibration.Collect(e.ctx, reader, rows, o)
	bar.end()
	if c.Price > 0 {
		for k, a := range answers {
			a.Cost = c.Price
			answers[k] = a
		}
	}
	return answers, err
}

// openRecord opens a file of answers to be added to. A last line that a crash left without its end is cut off.
func openRecord(path, fingerprint string) (*os.File, calibration.Answers, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, nil, usage("--record cannot be written: %v", err)
	}
	b, err := io.ReadAll(f)
	if err == nil {
		whole := int64(bytes.LastIndexByte(b, '\n') + 1)
		if err = f.Truncate(whole); err == nil {
			_, err = f.Seek(whole, io.SeekStart)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	have, err := calibration.ReadAnswers(bytes.NewReader(b), fingerprint)
	if err != nil {
		_ = f.Close()
		return nil, nil, usage("%s: %v", path, err)
	}
	return f, have, nil
}

func readAnswers(path, fingerprint string) (calibration.Answers, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, usage("--replay cannot be read: %v", err)
	}
	defer f.Close() //nolint:errcheck // read only
	a, err := calibration.ReadAnswers(f, fingerprint)
	if err != nil {
		return nil, usage("%s: %v", path, err)
	}
	return a, nil
}

func (c *calibrateCmd) compare(e *env, res calibration.Result) error {
	if c.Against == "" {
		return nil
	}
	raw, err := os.ReadFile(c.Against)
	if err != nil {
		return usage("--against cannot be read: %v", err)
	}
	var other calibration.Result
	if err := json.Unmarshal(raw, &other); err != nil {
		return usage("%s is no result.json: %v", c.Against, err)
	}
	cmp, err := calibration.Compare(res, other)
	if err != nil {
		return usage("%v", err)
	}
	if c.JSON {
		return e.printJSON(cmp)
	}
	e.printf("against %s, %d rows, exact McNemar test:\n", cmp.B, cmp.Rows)
	for _, p := range []struct {
		what string
		calibration.Paired
	}{{"yeses acted on", cmp.Yeses}, {"others left alone", cmp.Noes}, {"class right", cmp.Classes}} {
		e.printf("  %-18s only this %d, only the other %d, p %.4f\n", p.what, p.OnlyA, p.OnlyB, p.P)
	}
	return nil
}

// write leaves out calibration.json where the reader is not blessed, and takes away the one of an earlier run.
func (c *calibrateCmd) write(res calibration.Result) error {
	if c.Out == "" {
		return nil
	}
	if err := os.MkdirAll(c.Out, 0o750); err != nil {
		return usage("--out cannot be made: %v", err)
	}
	made := map[string]func() ([]byte, error){"result.json": res.JSON, "report.html": res.HTML}
	if c.Calibration == "" {
		f, err := res.File()
		switch {
		case err == nil:
			made["calibration.json"] = f.Encode
		case !errors.Is(err, calibration.ErrTooFew) && !errors.Is(err, calibration.ErrNotShown):
			return err
		default:
			if err := os.Remove(filepath.Join(c.Out, "calibration.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	for name, make := range made {
		b, err := make()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.Out, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func share(c calibration.Count) string {
	if c.Of == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %d (%.1f %%, one-sided 95 %% bound %.4f)", c.Right, c.Of, 100*c.Share(), c.Lower)
}

func printResult(e *env, res calibration.Result) {
	for _, w := range res.Wrong {
		e.printf("wrong confirm %.3f  %s  %q  to %s\n", w.P, w.Label, w.Text, quoted(w.Offers))
	}
	e.printf("reader     %s\nrows       %d, %d yeses, %d without a reading\n", res.Fingerprint, res.Data.Rows, res.Data.Yes, res.Failed)
	e.printf("calibrator %s\nthreshold  %.4g\nprecision  %s of the confirms acted on\nrecall     %s of the yeses acted on\nstopped    %s of the rest not acted on\n",
		res.Why, res.Threshold, share(res.Precision), share(res.Recall), share(res.Stopped))
	in := strings.Join(res.Languages, " ")
	if in == "" {
		in = fmt.Sprintf("no language: one takes %d right confirms of as many in rows with its \"lang\"", calibration.NeededRight(res.LangTarget))
	}
	e.printf("ECE        %.4f of p(confirm), %.4f as read; Brier %.4f\nacts in    %s\n", res.ECE, res.ECERaw, res.Brier, in)
	for _, f := range res.Classes {
		e.printf("class      %-10s precision %d of %d, recall %d of %d\n", f.Class, f.Precision.Right, f.Precision.Of, f.Recall.Right, f.Recall.Of)
	}
	for _, s := range slices.Concat(res.ByLanguage, res.ByTag) {
		e.printf("slice      %-16s %d rows, precision %d of %d (≥ %.4f), recall %d of %d\n",
			s.Name, s.Rows, s.Precision.Right, s.Precision.Of, s.Precision.Lower, s.Recall.Right, s.Recall.Of)
	}
	if t := res.Times; t != nil {
		e.printf("latency    median %.1f ms, 99 %% %.1f ms, most %.1f ms\n", t.MedianUS/1000, t.P99US/1000, t.MaxUS/1000)
		if t.TotalCost > 0 {
			e.printf("cost       %.4f a reply, %.2f in all\n", t.CostPerRow, t.TotalCost)
		}
	}
}

func quoted(ss []string) string {
	q := make([]string, len(ss))
	for i, s := range ss {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, " | ")
}

// guardFigures is what came of guards alone.
type guardFigures struct {
	Stopped calibration.Count  `json:"stopped"`
	Kinds   map[string]int     `json:"kinds"`
	Cases   []calibration.Case `json:"cases"`
}

func (h *guardFigures) add(r calibration.Row, guards []string) {
	h.Cases = append(h.Cases, calibration.Case{ID: r.ID, Key: r.Key(), Text: r.Text, Offers: r.Offers, Label: r.Label, Lang: r.Lang, Tags: r.Tags, Guards: guards})
}

func (h *guardFigures) print(e *env, c *calibrateCmd, what string) error {
	if c.JSON {
		return e.printJSON(h)
	}
	e.printf("%s: %s\n", what, share(h.Stopped))
	var kinds []string
	for k := range h.Kinds {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if h.Kinds[a] != h.Kinds[b] {
			return h.Kinds[b] - h.Kinds[a]
		}
		return strings.Compare(a, b)
	})
	for _, k := range kinds {
		e.printf("  %5d %s\n", h.Kinds[k], k)
	}
	for _, k := range h.Cases {
		e.printf("  %s  %q  to %s  %s\n", k.Label, k.Text, quoted(k.Offers), strings.Join(k.Guards, " "))
	}
	return nil
}

// hostile counts what gets through when the reader says confirm, 1.0, to everything; exit 1 where guards stop too little.
func (c *calibrateCmd) hostile(e *env, rows []calibration.Row) error {
	h := guardFigures{Kinds: map[string]int{}, Cases: []calibration.Case{}}
	none, through := 0, 0
	for _, r := range rows {
		if r.Allows(classifier.Confirm) {
			continue
		}
		none++
		in, err := r.Input()
		if err != nil {
			return err
		}
		if !classifier.Read(e.ctx, calibration.Adversary(), in, classifier.Options{}).Confirms(classifier.ActThreshold) {
			continue
		}
		through++
		h.add(r, nil)
		for _, k := range append([]string{"label " + r.Label.String()}, r.Tags...) {
			h.Kinds[k]++
		}
	}
	h.Stopped = calibration.NewCount(none-through, none)
	if err := h.print(e, c, "of the replies that are no yes guards alone stop"); err != nil {
		return err
	}
	if none > 0 && h.Stopped.Share() < leastStopped {
		return noError{}
	}
	return nil
}

// honest counts the real yeses that guards hold back, and by which.
func (c *calibrateCmd) honest(e *env, rows []calibration.Row) error {
	res, err := calibration.Evaluate(e.ctx, rows, calibration.Oracle(rows), calibration.Options{})
	if err != nil {
		return err
	}
	h := guardFigures{Kinds: map[string]int{}, Cases: res.Missed}
	for _, m := range res.Missed {
		for _, g := range m.Guards {
			h.Kinds[g]++
		}
	}
	h.Stopped = calibration.NewCount(len(res.Missed), res.Data.Yes)
	return h.print(e, c, "of the real yeses guards hold back")
}

// export writes replies that fell through as data lines. The label is what the reader said: whoever labels puts the right
// one there; the tags say how it ended.
func (c *calibrateCmd) export(e *env) error {
	if c.Limit < 1 || c.Since <= 0 || len(c.Data) > 0 {
		return usage("--from-store takes --since, --limit and --account, and no --data.")
	}
	url := c.DatabaseURL
	if url == "" {
		url = e.vars["COUNTERSIGN_DATABASE_URL"]
	}
	if url == "" {
		return usage("--from-store needs COUNTERSIGN_DATABASE_URL.")
	}
	s, err := openStore(e.ctx, url, false)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // read only
	readings, ok := s.(offers.Readings)
	if !ok {
		return usage("This database lists no replies that fell through.")
	}
	account := c.Account
	if account == "" {
		account = people.DefaultAccount
	}
	list, err := readings.Fallen(e.ctx, account, time.Now().Add(-c.Since), classifier.ActThreshold, c.Limit)
	if err != nil {
		return err
	}
	var rows []calibration.Row
	for _, f := range list {
		rows = append(rows, calibration.Mask(toLabel(f)))
	}
	return calibration.WriteData(e.stdout, rows)
}

func toLabel(f offers.FallenReply) calibration.Row {
	r := calibration.Row{Text: f.Text, Earlier: f.Earlier, Tags: []string{"to-label"}}
	if err := r.Label.UnmarshalText([]byte(f.Reading.Class)); err != nil {
		r.Label = classifier.Unclear
	}
	for _, g := range f.Reading.Guards {
		r.Tags = append(r.Tags, "guard:"+g)
	}
	for _, o := range f.Offers {
		r.Offers = append(r.Offers, o.Label)
		end := "ended:" + string(o.State)
		if o.Cited {
			end += "-by-this"
		}
		r.Tags = append(r.Tags, end)
	}
	return r
}

// progress draws a bar for a reader that takes its time.
type progress struct {
	w     io.Writer
	now   func() time.Time
	began time.Time
	drawn time.Time
}

const barWidth = 30

func (p *progress) show(done, all int) {
	t := p.now()
	if p.began.IsZero() {
		p.began, p.drawn = t, t
	}
	if t.Sub(p.began) < time.Second || t.Sub(p.drawn) < 200*time.Millisecond && done < all {
		return
	}
	p.drawn = t
	left := time.Duration(float64(t.Sub(p.began)) / float64(max(done, 1)) * float64(all-done)).Round(time.Second)
	full := barWidth * done / max(all, 1)
	fmt.Fprintf(p.w, "\r[%s%s] %d of %d, %s left ", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done, all, left)
}

func (p *progress) end() {
	if p.drawn.After(p.began) {
		fmt.Fprintln(p.w)
	}
}
