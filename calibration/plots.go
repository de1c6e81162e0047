package calibration

import (
	"bytes"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/countersign/countersign/classifier"
)

var (
	blue = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	red  = color.RGBA{R: 0xb0, G: 0x2a, B: 0x2a, A: 0xff}
	grey = color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
)

// ReliabilityPlot is the reliability diagram of p(confirm) as SVG: calibrated
// against as the reader said it.
func (res Result) ReliabilityPlot() ([]byte, error) {
	p := newPlot("Reliability of p(confirm)", "p(confirm)", "share of real yeses")
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	if err := line(p, plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}, grey, "", true); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		bins []Bin
		c    color.Color
		name string
	}{{res.BinsRaw, grey, "as read"}, {res.Bins, blue, "calibrated"}} {
		var xy plotter.XYs
		for _, b := range s.bins {
			if b.N > 0 {
				xy = append(xy, plotter.XY{X: b.Mean, Y: float64(b.Yes) / float64(b.N)})
			}
		}
		if err := line(p, xy, s.c, s.name, false); err != nil {
			return nil, err
		}
	}
	p.Legend.Left, p.Legend.Top = true, true
	return svg(p)
}

// PRPlot is precision over recall as SVG, after guards, with the operating point.
func (res Result) PRPlot() ([]byte, error) {
	p := newPlot("Confirms acted on: precision over recall", "share of real yeses acted on", "precision")
	var xy plotter.XYs
	least := 1.0
	for _, pt := range res.PR {
		if pt.Precision.Of > 0 {
			xy = append(xy, plotter.XY{X: pt.Recall.Share(), Y: pt.Precision.Share()})
			least = min(least, pt.Precision.Share())
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, min(0.95, least), 1.001
	if err := line(p, xy, blue, "", false); err != nil {
		return nil, err
	}
	if res.Precision.Of > 0 {
		at, err := plotter.NewScatter(plotter.XYs{{X: res.Recall.Share(), Y: res.Precision.Share()}})
		if err != nil {
			return nil, err
		}
		at.GlyphStyle = draw.GlyphStyle{Color: red, Radius: vg.Points(5), Shape: draw.RingGlyph{}}
		p.Add(at)
		p.Legend.Add("operating point", at)
		p.Legend.Left = true
	}
	return svg(p)
}

// SweepPlot is precision and its lower bound over the threshold as SVG.
func (res Result) SweepPlot() ([]byte, error) {
	p := newPlot("Threshold sweep", "threshold of p(confirm)", "")
	var share, lower, recall plotter.XYs
	least := 1.0
	for _, pt := range res.Sweep {
		recall = append(recall, plotter.XY{X: pt.Threshold, Y: pt.Recall.Share()})
		if pt.Precision.Of > 0 {
			share = append(share, plotter.XY{X: pt.Threshold, Y: pt.Precision.Share()})
			lower = append(lower, plotter.XY{X: pt.Threshold, Y: pt.Precision.Lower})
			least = min(least, pt.Precision.Lower, pt.Recall.Share())
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0.5, 1, min(0.8, least), 1.001
	for _, l := range []struct {
		xy     plotter.XYs
		c      color.Color
		name   string
		dashed bool
	}{{share, blue, "precision", false}, {lower, blue, "95 % lower bound", true}, {recall, grey, "yeses acted on", false},
		{plotter.XYs{{X: classifier.ActThreshold, Y: p.Y.Min}, {X: classifier.ActThreshold, Y: 1}}, red, "least threshold", true}} {
		if err := line(p, l.xy, l.c, l.name, l.dashed); err != nil {
			return nil, err
		}
	}
	p.Legend.Left = true
	return svg(p)
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Add(plotter.NewGrid())
	return p
}

func line(p *plot.Plot, xy plotter.XYs, c color.Color, name string, dashed bool) error {
	if len(xy) == 0 {
		return nil
	}
	l, err := plotter.NewLine(xy)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(1.5)
	if dashed {
		l.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
	return nil
}

// svg draws without the XML header, so that it can stand inside a page.
func svg(p *plot.Plot) ([]byte, error) {
	c := vgsvg.New(11*vg.Centimeter, 9*vg.Centimeter)
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	s := b.String()
	if i := strings.Index(s, "<svg"); i > 0 {
		s = s[i:]
	}
	return []byte(s), nil
}
