package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	api "github.com/sashabaranov/go-openai"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
)

func TestVerbal(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		class  classifier.Class
		p      float64 // of the class
	}{
		"a sure yes":     {`{"label":"confirm","confidence":100}`, classifier.Confirm, 0.85},
		"a usual yes":    {`{"label":"confirm","confidence":95}`, classifier.Confirm, 0.70},
		"a doubtful yes": {`{"label":"confirm","confidence":80}`, classifier.Unclear, 0.50},
		"between":        {`{"confidence":85,"label":"confirm"}`, classifier.Confirm, 0.55},
		"no idea":        {`{"label":"confirm","confidence":0}`, classifier.Unclear, 1},
		"a no":           {`{"label":"decline","confidence":100}`, classifier.Decline, 0.85},
		"unclear":        {`{"label":"unclear","confidence":30}`, classifier.Unclear, 1},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			e := serve(t, says(completion(c.answer, nil)))
			cfg := e.config()
			cfg.Mode = Verbal
			got, err := open(t, cfg).Read(t.Context(), input(t, "yes"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Class != c.class || math.Abs(got.P[c.class]-c.p) > 1e-9 || !got.Valid() {
				t.Errorf("%+v, want %v at %v", got, c.class, c.p)
			}
			body := e.last.Load().body
			if body["logprobs"] != nil || body["temperature"] == nil {
				t.Errorf("%v", body)
			}
			if _, text := e.last.Load().message(t, 0); text != prompt+verbalPrompt {
				t.Error("the prompt does not ask for a confidence")
			}
		})
	}
	for _, bad := range []string{
		`{"label":"confirm"}`, `{"confidence":100}`, `{"label":"confirm","confidence":101}`, `{"label":"confirm","confidence":-1}`,
		`{"label":"confirm","confidence":0.99}`, `{"label":"confirm","confidence":1e2}`, `{"label":"confirm","confidence":"100"}`,
		`{"label":"confirm","confidence":null}`, `{"label":"confirm","confidence":99999999999999999999}`,
		`{"label":"confirm","confidence":100,"why":"x"}`, `{"label":"Confirm","confidence":100}`, `{"label":"confirm","confidence":1,"confidence":100}`,
	} {
		e := serve(t, says(completion(bad, nil)))
		cfg := e.config()
		cfg.Mode = Verbal
		if _, err := open(t, cfg).Read(t.Context(), input(t, "yes")); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v, want ErrAnswer", bad, err)
		}
	}
}

// A number that a model writes about itself is no ground to act, whatever it is.
func TestNoWordOfTheModelsOwnReachesTheThreshold(t *testing.T) {
	before := -1.0
	for percent := range 101 {
		p := verbal(classifier.Confirm, percent).P[classifier.Confirm]
		if p >= classifier.ActThreshold {
			t.Errorf("%d %% counts as %v", percent, p)
		}
		if p > float64(percent)/100 {
			t.Errorf("%d %% counts as more, %v", percent, p)
		}
		if p <= before {
			t.Errorf("%d %% counts as %v, no more than one less: a calibration could not tell them apart", percent, p)
		}
		before = p
	}
}

func TestTheModeIsFixedWhenTheReaderIsMade(t *testing.T) {
	for model, want := range map[string]Mode{
		testModel: Logprobs, "gpt-4o-mini": Logprobs, "o1": Verbal, "o3-mini": Verbal, "o4-mini": Verbal, "gpt-5": Verbal, "gpt-5-nano": Verbal,
		api.GPT6Astra: Verbal,
	} {
		t.Run(model, func(t *testing.T) {
			e := serve(t, says(completion(`{"label":"decline","confidence":97}`, nil)))
			cfg := e.config()
			cfg.Model = model
			r := open(t, cfg)
			if r.Mode() != want {
				t.Fatalf("mode %s, want %s", r.Mode(), want)
			}
			if want == Logprobs {
				return
			}
			if got, err := r.Read(t.Context(), input(t, "no")); err != nil || got.Class != classifier.Decline {
				t.Fatalf("%+v, %v: the library or the reader refuses the model", got, err)
			}
			body := e.last.Load().body
			for _, refused := range []string{"temperature", "logprobs", "top_logprobs", "max_tokens"} {
				if body[refused] != nil {
					t.Errorf("%s is %v: such a model refuses it", refused, body[refused])
				}
			}
			if body["max_completion_tokens"] == nil {
				t.Error("nothing bounds the answer")
			}
			cfg.Mode = Logprobs
			if _, err := New(cfg); !errors.Is(err, ErrConfig) {
				t.Errorf("%v, want ErrConfig for a model that gives no log-probabilities", err)
			}
		})
	}
}

func TestOpenAsksTheServerForItsMode(t *testing.T) {
	wantsLogprobs := func(r *endpoint) bool { return r.last.Load().body["logprobs"] == true }
	var e *endpoint
	none := func(w http.ResponseWriter, _ *http.Request) {
		if wantsLogprobs(e) {
			writeJSON(w, completion(`{"label":"confirm"}`, nil))
			return
		}
		writeJSON(w, completion(`{"label":"confirm","confidence":99}`, nil))
	}
	refuses := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if wantsLogprobs(e) {
				w.WriteHeader(code)
				return
			}
			none(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		mode   Mode
		asked  int32
		fails  bool
	}{
		"gives them":             {says(sureYes()), Logprobs, 1, false},
		"leaves them out":        {none, Verbal, 2, false},
		"refuses the parameter":  {refuses(400), Verbal, 2, false},
		"cannot process it":      {refuses(422), Verbal, 2, false},
		"is not to be had":       {refuses(503), Logprobs, 1, true},
		"knows not the key":      {refuses(401), Logprobs, 1, true},
		"refuses everything":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, Logprobs, 2, true},
		"answers with something": {says(completion("hello", nil)), Logprobs, 1, true},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			e = serve(t, c.answer)
			r, err := Open(t.Context(), e.config())
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			if r == nil || r.Mode() != c.mode {
				t.Errorf("%v, want mode %s", r, c.mode)
			}
			if e.asked.Load() != c.asked {
				t.Errorf("asked %d times, want %d", e.asked.Load(), c.asked)
			}
		})
	}
	t.Run("is_not_asked_about_a_given_mode", func(t *testing.T) {
		e = serve(t, says(sureYes()))
		cfg := e.config()
		cfg.Mode = Verbal
		if r, err := Open(t.Context(), cfg); err != nil || r.Mode() != Verbal || e.asked.Load() != 0 {
			t.Errorf("%v, %v, asked %d times", r, err, e.asked.Load())
		}
	})
	t.Run("needs_a_configuration", func(t *testing.T) {
		if _, err := Open(t.Context(), Config{}); !errors.Is(err, ErrConfig) {
			t.Errorf("%v, want ErrConfig", err)
		}
	})
}

// english is the language check of a server with English blessed.
type english struct{}

func (english) Within(classifier.Input, []string) bool { return true }

// A calibration of log-probabilities must not meet verbal numbers: neither by
// the fingerprint nor through a server that stops giving log-probabilities.
func TestACalibrationHoldsForItsModeAlone(t *testing.T) {
	lifts := calibration.File{
		Version: 1, Threshold: 0.9, TargetPrecision: 0.9, Confidence: 0.95, LanguageTarget: 0.9, Languages: []string{"en"},
		Precision:  calibration.Count{Right: 100, Of: 100},
		ByLanguage: []calibration.Slice{{Name: "en", Precision: calibration.Count{Right: 100, Of: 100}}},
		// As a fit gives it where every answer above a half was right.
		Calibrator: calibration.Calibrator{Kind: calibration.Isotonic, X: []float64{0.01, 1}, Y: []float64{0, 1}},
	}
	e := serve(t, says(completion(`{"label":"confirm"}`, nil)))
	r := open(t, e.config())
	lifts.Fingerprint = r.Fingerprint()
	behind := calibration.Calibrated(r, lifts, english{})
	if behind.Err() != nil {
		t.Fatal(behind.Err())
	}
	if v := classifier.Read(t.Context(), behind, input(t, "yes"), classifier.Options{}); v.Confirms(classifier.ActThreshold) || v.Reading.P[classifier.Confirm] > 0 {
		t.Errorf("%+v: lifted what has no probability", v.Reading)
	}

	cfg := e.config()
	cfg.Mode = Verbal
	e = serve(t, says(completion(`{"label":"confirm","confidence":100}`, nil)))
	cfg.BaseURL = e.URL
	behind = calibration.Calibrated(open(t, cfg), lifts, english{})
	if !errors.Is(behind.Err(), calibration.ErrMismatch) {
		t.Errorf("%v, want ErrMismatch", behind.Err())
	}
	if v := classifier.Read(t.Context(), behind, input(t, "yes"), classifier.Options{}); v.Confirms(classifier.ActThreshold) {
		t.Errorf("%+v", v.Reading)
	}
	// With a calibration of its own it acts.
	lifts.Fingerprint = behind.Fingerprint()
	behind = calibration.Calibrated(open(t, cfg), lifts, english{})
	if v := classifier.Read(t.Context(), behind, input(t, "yes"), classifier.Options{}); !v.Confirms(classifier.ActThreshold) {
		t.Errorf("%+v, %v: a calibrated verbal reader cannot act", v.Reading, behind.Err())
	}
}

func TestFingerprint(t *testing.T) {
	cfg := Config{Model: "org/model-7b", BaseURL: "http://localhost:8080/v1"}
	logprobs := open(t, cfg)
	cfg.Mode = Verbal
	spoken := open(t, cfg)
	for r, mode := range map[*Reader]Mode{logprobs: Logprobs, spoken: Verbal} {
		want := fmt.Sprintf("openai/%s-%s/%s/org/model-7b", PromptVersion, promptHash(mode), mode)
		if r.Fingerprint() != want {
			t.Errorf("%q, want %q", r.Fingerprint(), want)
		}
		if got, ok := ModeOf(r.Fingerprint()); !ok || got != mode {
			t.Errorf("ModeOf: %q, %v", got, ok)
		}
	}
	for _, other := range []string{"", "local/1/sha256:00", "openai", "openai/v1/logprobs", "openai/v1/other/m", "agree/1(openai/v1/logprobs/m)", "x/openai/logprobs/m"} {
		if got, ok := ModeOf(other); ok || got != Auto {
			t.Errorf("ModeOf(%q) = %q", other, got)
		}
	}
}

// The files of a version do not change: what was measured with them would no
// longer be true. Another text is prompt-v2.txt.
func TestThePromptsOfAVersionDoNotChange(t *testing.T) {
	for name, c := range map[string]struct{ text, sum string }{
		"prompt-v1.txt": {prompt, "9353c5f63ba88e7f26b9ffa82f3f144232d40fb9213423e0d551e089d76d5060"},
		"verbal-v1.txt": {verbalPrompt, "4f502a04409e90accb41d1340ca780e37e35904b710347c2a26ce3e02e92a96d"},
	} {
		h := sha256.Sum256([]byte(c.text))
		if got := hex.EncodeToString(h[:]); got != c.sum {
			t.Errorf("%s has the hash %s, want %s", name, got, c.sum)
		}
	}
}

type fixed struct{ classifier.Reading }

func (f fixed) Read(context.Context, classifier.Input) (classifier.Reading, error) {
	return f.Reading, nil
}
func (fixed) Fingerprint() string { return "fixed" }

// The worked examples are inputs as the model gets them, with the answers that
// the parser takes; and no example teaches a yes that the guards would hold.
func TestThePromptsExamples(t *testing.T) {
	var of [classifier.Classes]int
	lines := strings.Split(prompt, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, `{"offers":`) {
			continue
		}
		var data struct {
			Offers, Earlier []string
			Reply           string
		}
		if err := json.Unmarshal([]byte(line), &data); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		answer, err := parse(lines[i+1], Logprobs)
		if err != nil {
			t.Fatalf("line %d: %v", i+2, err)
		}
		of[answer.class]++
		in := classifier.Input{Newest: classifier.NewWords(data.Reply)}
		for _, s := range data.Offers {
			l, err := classifier.ParseLabel(s)
			if err != nil || l.String() != s {
				t.Errorf("line %d: %q is no label as code writes it", i+1, s)
			}
			in.Offers = append(in.Offers, l)
		}
		for j := len(data.Earlier) - 1; j >= 0; j-- {
			in.Earlier = append(in.Earlier, classifier.NewWords(data.Earlier[j]))
		}
		if sent, err := message(in); err != nil || string(sent) != line {
			t.Errorf("line %d: the model would get %s", i+1, sent)
		}
		yes := fixed{classifier.Reading{Class: classifier.Confirm, P: [classifier.Classes]float64{classifier.Confirm: 1}}}
		v := classifier.Read(t.Context(), yes, in, classifier.Options{})
		if v.Confirms(classifier.ActThreshold) != (answer.class == classifier.Confirm) {
			t.Errorf("line %d: the guards (%v) and the example (%v) differ about %q", i+1, v.Guards, answer.class, data.Reply)
		}
	}
	total := 0
	for k, n := range of {
		total += n
		if n < 2 {
			t.Errorf("%d examples of %v", n, classifier.Class(k))
		}
	}
	if total < 14 {
		t.Errorf("%d examples", total)
	}
}

// Whatever tokens and numbers a server makes up, a reading is one, and confirm
// has no more than what begins the word confirm was listed with.
func TestProperty_LogprobsNeverMakeAConfirm(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"confirm", "con", "c", "", `confirm"`, `confirm"}`, "confirmed", "decline", "de", "modify", "un", "u", "unclear", "unrelated", "related", "yes", `"`, "\x00", "é"})
	logprob := rapid.OneOf(rapid.Float64Range(-12, 0), rapid.SampledFrom([]float64{0, -9999, 0.005, 3, math.Inf(-1), math.Inf(1), math.NaN()}))
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]classifier.Class{0, 1, 2, 3, 4}).Draw(t, "word")
		text := `{"label":"` + word.String() + `"}`
		var lp api.LogProbs
		for pos := 0; pos < len(text); {
			n := min(rapid.SampledFrom([]int{1, 2, 3, 7, 9, 10, 20}).Draw(t, "length"), len(text)-pos)
			own := api.LogProb{Token: text[pos : pos+n], LogProb: logprob.Draw(t, "own")}
			if rapid.Bool().Draw(t, "likely") {
				own.LogProb = -0.01
			}
			for range rapid.IntRange(0, 3).Draw(t, "alternatives") {
				own.TopLogProbs = append(own.TopLogProbs, api.TopLogProbs{Token: pieces.Draw(t, "token"), LogProb: logprob.Draw(t, "logprob")})
			}
			lp.Content = append(lp.Content, own)
			pos += n
		}
		said, err := parse(text, Logprobs)
		if err != nil || said.class != word {
			t.Fatal(said, err)
		}
		p, err := fromLogprobs(text, said.at, &lp)
		if err != nil {
			return
		}
		r := reading(word, p)
		if !r.Valid() {
			t.Fatalf("%+v is no distribution", r)
		}
		if word != classifier.Confirm && r.Class == classifier.Confirm {
			t.Fatalf("%+v confirms what the model called %v", r, word)
		}
		i, _, err := tokenAt(text, said.at, lp.Content)
		if err != nil {
			t.Fatal(err)
		}
		most := 0.0
		for token, q := range candidates(lp.Content[i]) {
			if strings.Contains(token, "c") {
				most += q
			}
		}
		if word == classifier.Confirm && r.P[classifier.Confirm] > most+1e-9 {
			t.Fatalf("p(confirm) %v of at most %v", r.P[classifier.Confirm], most)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"label":"confirm"}`, `{"label":"Confirm"}`, `{"label":"confirm","confidence":5}`, "confirm", `{"label":"\u0063onfirm"}`} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, spoken bool) {
		mode := Logprobs
		if spoken {
			mode = Verbal
		}
		said, err := parse(s, mode)
		if err != nil {
			if said.class != classifier.Unclear {
				t.Fatal("a class beside an error")
			}
			return
		}
		word := said.class.String()
		if !strings.HasPrefix(s[said.at:], word+`"`) || s[said.at-1] != '"' {
			t.Fatalf("%q: the label is not at %d", s, said.at)
		}
		if strings.Count(s, `"label"`) != 1 || !json.Valid([]byte(s)) {
			t.Fatalf("%q is an answer", s)
		}
	})
}
