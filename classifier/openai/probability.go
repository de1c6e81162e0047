package openai

import (
	"errors"
	"math"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/classifier"
)

// errNoLogprobs says that an answer's log-probabilities are missing, or do not
// fit its text so that their place cannot be found.
var errNoLogprobs = errors.New("openai: no usable log-probabilities")

// slack allows for log-probabilities that were rounded.
const slack = 0.01

// fromLogprobs gives the probability of each class from the tokens of an
// answer whose label begins at byte at of content.
//
// At the token where the label begins, the answer's own token and its listed
// alternatives are counted to the class that they begin ("con", "confirm",
// `confirm"` all begin confirm). Where the answer's own token begins several
// ("un"), its share is divided by the token after it. What is not listed, or
// begins no label, was likely enough to be something else: it counts as
// unclear, and nothing is scaled up to make up for it.
func fromLogprobs(content string, at int, lp *api.LogProbs) ([classifier.Classes]float64, error) {
	var p [classifier.Classes]float64
	if lp == nil {
		return p, errNoLogprobs
	}
	i, start, err := tokenAt(content, at, lp.Content)
	if err != nil {
		return p, err
	}
	// lead is what the token holds before the label, such as the quote.
	lead := content[start:at]
	if i > 0 && start == at && skips(lp.Content[i-1]) {
		return p, errNoLogprobs
	}
	share, prefix := 1.0, ""
	for ; i < len(lp.Content); i++ {
		own := lp.Content[i]
		var open float64 // the share of the own token, if it begins several labels
		listed := 0.0
		for token, q := range candidates(own) {
			if math.IsNaN(q) || q > 1+slack { // mutant: openai.logprob-range
				return p, errNoLogprobs
			}
			q = math.Min(q, 1)
			listed += q
			rest, ok := strings.CutPrefix(token, lead)
			if !ok || rest == "" {
				continue
			}
			switch begins := classesOf(prefix + rest); {
			case len(begins) == 1:
				p[begins[0]] += share * q
			case len(begins) > 1 && token == own.Token:
				open = q
			}
		}
		if listed > 1+slack { // mutant: openai.logprob-sum
			return p, errNoLogprobs
		}
		if open == 0 {
			break
		}
		prefix += strings.TrimPrefix(own.Token, lead)
		share, lead = share*open, ""
	}
	sum := 0.0
	for _, q := range p {
		sum += q
	}
	if sum > 1 { // by rounding alone
		for k := range p {
			p[k] /= sum
		}
		sum = 1
	}
	p[classifier.Unclear] += 1 - sum // mutant: openai.unaccounted
	return p, nil
}

// tokenAt finds the token that holds byte at of content, and where it starts.
// The tokens, joined, must be the content, or a place in the one is no place in
// the other; behind it may come tokens that a server does not write out, such
// as the one that ends an answer.
func tokenAt(content string, at int, tokens []api.LogProb) (index, start int, err error) {
	pos, index := 0, -1
	for i, t := range tokens {
		if pos == len(content) {
			break
		}
		if !strings.HasPrefix(content[pos:], t.Token) { // mutant: openai.tokens-fit
			return 0, 0, errNoLogprobs
		}
		end := pos + len(t.Token)
		if index < 0 && pos <= at && at < end {
			index, start = i, pos
		}
		pos = end
	}
	if index < 0 || pos != len(content) {
		return 0, 0, errNoLogprobs
	}
	return index, start, nil
}

// skips says whether another token in the place of t would have reached into
// the label, with more than a trifle of probability: then what follows t holds
// only for a part of the answers that could have been.
func skips(t api.LogProb) bool {
	const trifle = 0.005
	for token, q := range candidates(t) {
		rest, ok := strings.CutPrefix(token, t.Token)
		if ok && rest != "" && q > trifle && len(classesOf(rest)) > 0 { // mutant: openai.skipped-token
			return true
		}
	}
	return false
}

// candidates are the probabilities of a token and of its alternatives, each
// token once.
func candidates(t api.LogProb) map[string]float64 {
	out := make(map[string]float64, len(t.TopLogProbs)+1)
	for _, a := range t.TopLogProbs {
		out[a.Token] = math.Exp(a.LogProb)
	}
	out[t.Token] = math.Exp(t.LogProb)
	return out
}

// classesOf are the classes whose word s begins, or ends: `confirm"}` is
// confirm as "con" is.
func classesOf(s string) []classifier.Class {
	var out []classifier.Class
	for k := range classifier.Class(classifier.Classes) {
		word := k.String() + `"`
		if strings.HasPrefix(word, s) || strings.HasPrefix(s, word) {
			out = append(out, k)
		}
	}
	return out
}

// reading makes a reading of what the model said and the probabilities. The
// class is the most probable one, a tie never being confirm. A model that says
// another word than confirm, but by its probabilities should rather have said
// confirm, contradicts itself: that answer has no confirm in it.
func reading(word classifier.Class, p [classifier.Classes]float64) classifier.Reading {
	r := classifier.Reading{P: p}
	for k, q := range p {
		if q > p[r.Class] || (q == p[r.Class] && r.Class == classifier.Confirm) {
			r.Class = classifier.Class(k)
		}
	}
	if word != classifier.Confirm && p[classifier.Confirm] >= p[word] { // mutant: openai.contradiction
		return unconfirmed(r)
	}
	return r
}

// unconfirmed gives the probability of confirm to unclear.
func unconfirmed(r classifier.Reading) classifier.Reading {
	r.P[classifier.Unclear] += r.P[classifier.Confirm]
	r.P[classifier.Confirm] = 0
	r.Class = classifier.Unclear
	return r
}

// withoutLogprobs is the reading of a word whose probability is not known. It
// has no probability of confirm at all: a calibration of log-probabilities may
// map anything above zero to a yes.
func withoutLogprobs(word classifier.Class) classifier.Reading {
	if word == classifier.Confirm { // mutant: openai.no-logprobs
		return classifier.UnclearReading()
	}
	return verbal(word, 100)
}

// verbalMap is what a model's own word for its sureness counts for: points
// (percent, probability), straight lines between them. Models say 95 and 100 of
// nearly everything, so the upper end is pulled down most, and all of it ends
// below what code acts on: only a calibration from labelled replies can show
// that such a number means more.
var verbalMap = [...]struct{ percent, p float64 }{
	{0, 0}, {50, 0.30}, {80, 0.50}, {90, 0.60}, {95, 0.70}, {100, 0.85},
}

func verbal(word classifier.Class, percent int) classifier.Reading {
	x, q := float64(percent), 0.0
	for i := 1; i < len(verbalMap); i++ {
		a, b := verbalMap[i-1], verbalMap[i]
		if x >= a.percent && x <= b.percent {
			q = a.p + (b.p-a.p)*(x-a.percent)/(b.percent-a.percent)
		}
	}
	var p [classifier.Classes]float64
	p[word] = q
	p[classifier.Unclear] += 1 - q
	return reading(word, p)
}
