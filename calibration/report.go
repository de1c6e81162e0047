package calibration

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"github.com/countersign/countersign/classifier"
)

//go:embed report.html
var reportHTML string

// JSON is the result, indented. Without times the same rows and answers give
// the same bytes.
func (res Result) JSON() ([]byte, error) { return encode(res) }

// HTML is the result as one self-contained page with its plots.
func (res Result) HTML() ([]byte, error) {
	t, err := template.New("report").Funcs(template.FuncMap{
		"pct": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
		"f4":  func(v float64) string { return fmt.Sprintf("%.4f", v) },
		"count": func(c Count) string {
			if c.Of == 0 {
				return "none"
			}
			return fmt.Sprintf("%d of %d (≥ %.4f)", c.Right, c.Of, c.Lower)
		},
		"class": func(i int) string { return classifier.Class(i).String() },
	}).Parse(reportHTML)
	if err != nil {
		return nil, err
	}
	page := struct {
		Result
		Plots []template.HTML
	}{Result: res}
	for _, draw := range []func() ([]byte, error){res.ReliabilityPlot, res.PRPlot, res.SweepPlot} {
		b, err := draw()
		if err != nil {
			return nil, err
		}
		// Our own drawing: it holds numbers and fixed titles, no text of a row.
		page.Plots = append(page.Plots, template.HTML(b)) //nolint:gosec // see above
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
