package calibration

import (
	"fmt"

	"github.com/countersign/countersign/classifier"
)

// Comparison is two runs over the same rows. Each pair of counts is of rows
// on which the runs differ; P is the exact two-sided McNemar test.
type Comparison struct {
	A         string `json:"a"` // fingerprints
	B         string `json:"b"`
	Rows      int    `json:"rows"`
	Decisions Paired `json:"decisions"` // acted on a yes, or not acted on what is none
	Yeses     Paired `json:"yeses"`     // of the real yeses, acted on
	Noes      Paired `json:"noes"`      // of the rest, not acted on
	Classes   Paired `json:"classes"`   // the class is right
}

// Paired counts rows that only one of the two got right.
type Paired struct {
	OnlyA int     `json:"only_a"`
	OnlyB int     `json:"only_b"`
	Both  int     `json:"both"`
	None  int     `json:"none"`
	P     float64 `json:"p"`
}

func (p *Paired) add(a, b bool) {
	switch {
	case a && b:
		p.Both++
	case a:
		p.OnlyA++
	case b:
		p.OnlyB++
	default:
		p.None++
	}
}

// Compare pairs two results row by row. It fails with [ErrAnswers] when they
// are not of the same labelled set.
func Compare(a, b Result) (Comparison, error) {
	c := Comparison{A: a.Fingerprint, B: b.Fingerprint, Rows: len(a.Outcomes)}
	if a.Data.SHA256 != b.Data.SHA256 || len(a.Outcomes) != len(b.Outcomes) || len(a.Outcomes) == 0 {
		return Comparison{}, fmt.Errorf("%w: the two runs are not of the same rows", ErrAnswers)
	}
	for i, x := range a.Outcomes {
		y := b.Outcomes[i]
		if x.Key != y.Key || x.Label != y.Label {
			return Comparison{}, fmt.Errorf("%w: row %d differs", ErrAnswers, i+1)
		}
		yes := x.Label == classifier.Confirm
		c.Decisions.add(x.Acted == yes, y.Acted == yes)
		if yes {
			c.Yeses.add(x.Acted, y.Acted)
		} else {
			c.Noes.add(!x.Acted, !y.Acted)
		}
		c.Classes.add(x.OK, y.OK)
	}
	for _, p := range []*Paired{&c.Decisions, &c.Yeses, &c.Noes, &c.Classes} {
		p.P = round(mcnemar(p.OnlyA, p.OnlyB), 9)
	}
	return c, nil
}
