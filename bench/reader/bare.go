package main

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/countersign/countersign/classifier"
)

// bare is the yardstick for time: hashed words, word pairs and letter 3- and
// 4-grams of the lower-cased text into 2^18 weights per class, summed, soft
// maximum. Its weights are random: what it says does not matter here.
type bare struct {
	weights [][classifier.Classes]float32
	feats   []uint32
}

const bareBits = 18

func newBare() *bare {
	b := &bare{weights: make([][classifier.Classes]float32, 1<<bareBits), feats: make([]uint32, 0, 512)}
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range b.weights {
		for k := range b.weights[i] {
			b.weights[i][k] = float32(rnd.NormFloat64() * 0.1)
		}
	}
	return b
}

func (b *bare) predict(text string) (p [classifier.Classes]float32) {
	const offset, prime, mask = 2166136261, 16777619, 1<<bareBits - 1
	s := strings.ToLower(text)
	b.feats = b.feats[:0]
	last := uint32(0)
	for w := range strings.FieldsSeq(s) {
		h := uint32(offset)
		for i := range len(w) {
			h = (h ^ uint32(w[i])) * prime
		}
		b.feats = append(b.feats, h&mask, (h*31+last)&mask)
		last = h
	}
	for n := 3; n <= 4; n++ {
		for i := 0; i+n <= len(s); i++ {
			h := uint32(offset + n)
			for j := range n {
				h = (h ^ uint32(s[i+j])) * prime
			}
			b.feats = append(b.feats, h&mask)
		}
	}
	for _, f := range b.feats {
		for k, v := range &b.weights[f] {
			p[k] += v
		}
	}
	sum := float32(0)
	for k := range p {
		p[k] = float32(math.Exp(float64(p[k])))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}
