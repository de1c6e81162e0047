package local

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/classifier"
)

// Push is one feature's part in a reading: by how much it moves the logit of
// a class, against the mean of the classes.
type Push struct {
	Feature string  `json:"feature"`
	By      float64 `json:"by"`
}

// ClassPushes are what pushed one class up and down, strongest first.
type ClassPushes struct {
	Class classifier.Class `json:"class"`
	Up    []Push           `json:"up"`
	Down  []Push           `json:"down"`
}

// Explain gives, for each class, the most strongly pushing features of the
// reply, at most n up and n down. A feature's push is what its direct weights
// add, and what it adds through the hidden units at the point where this
// reply puts them (its value times the gradient). The parts of a word, such
// as its letters, are summed under the same name. The result is empty on the
// zero Reader.
func (r *Reader) Explain(in classifier.Input, n int) []ClassPushes {
	if r == nil || r.model == nil {
		return nil
	}
	x := *r.pool.Get().(*extractor) // a copy: reasons are not kept in the pool
	x.explain, x.bits = true, r.model.bits
	fs := x.extract(in)
	m := r.model
	columns := m.hidden + classifier.Classes
	hid := make([]float64, m.hidden)
	for j := range hid {
		sum := float64(m.bias[j])
		for _, f := range fs {
			sum += float64(f.val) * float64(int8(m.table[int(f.idx)*columns+j])) * float64(m.scale[j])
		}
		h := float64(tanh32(float32(sum)))
		hid[j] = 1 - h*h
	}
	by := map[string]*[classifier.Classes]float64{}
	var names []string
	for i, f := range fs {
		row := m.table[int(f.idx)*columns:][:columns]
		var z [classifier.Classes]float64
		mean := 0.0
		for k := range z {
			z[k] = float64(f.val) * float64(int8(row[m.hidden+k])) * float64(m.scale[m.hidden+k])
			for j := range hid {
				z[k] += float64(f.val) * float64(int8(row[j])) * float64(m.scale[j]) * hid[j] * float64(m.out[j*classifier.Classes+k])
			}
			mean += z[k] / classifier.Classes
		}
		name := x.reasons[i]
		if by[name] == nil {
			by[name] = new([classifier.Classes]float64)
			names = append(names, name)
		}
		for k := range z {
			by[name][k] += z[k] - mean
		}
	}
	out := make([]ClassPushes, classifier.Classes)
	for k := range out {
		out[k] = ClassPushes{Class: classifier.Class(k), Up: []Push{}, Down: []Push{}}
		slices.SortStableFunc(names, func(a, b string) int { return -cmp.Compare(by[a][k], by[b][k]) })
		for _, name := range names {
			if p := by[name][k]; p > 0 && len(out[k].Up) < n {
				out[k].Up = append(out[k].Up, Push{name, p})
			}
		}
		for _, name := range slices.Backward(names) {
			if p := by[name][k]; p < 0 && len(out[k].Down) < n {
				out[k].Down = append(out[k].Down, Push{name, p})
			}
		}
	}
	return out
}
