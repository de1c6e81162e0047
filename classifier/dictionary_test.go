package classifier

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// built is the lexicon as the lists make it, open and as a file.
func built(tb testing.TB) (*builder, *lexicon) {
	tb.Helper()
	b := newBuilder(os.DirFS("lexicon"))
	b.load()
	if b.err != nil {
		tb.Fatal(b.err)
	}
	file, err := b.encode()
	if err != nil {
		tb.Fatal(err)
	}
	l, err := openLexicon(string(file))
	if err != nil {
		tb.Fatal(err)
	}
	return b, l
}

// The file that is embedded is the one that the lists make, however often.
func TestLexicon_IsWhatItsListsMake(t *testing.T) {
	for range 2 {
		file, err := BuildLexicon(os.DirFS("lexicon"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, []byte(lexiconFile)) {
			t.Fatal("a list was changed since: run go generate ./classifier")
		}
	}
}

// The file says of every word what the lists say of it, and of any other nothing.
func TestLexicon_SaysWhatItsListsSay(t *testing.T) {
	b, l := built(t)
	all := b.words()
	if len(all) < 40_000 {
		t.Fatalf("only %d words", len(all))
	}
	for _, w := range all {
		holds(t, b, l, w)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		w := all[rnd.IntN(len(all))]
		i := rnd.IntN(len(w))
		holds(t, b, l, w[:i]+string(rune('a'+rnd.IntN(26)))+w[i:])
		holds(t, b, l, w[:i])
	}
	actions := map[string]uint64{}
	for i := range b.tables {
		for first, ps := range b.tables[i].phrases {
			for _, p := range ps {
				actions[first+" "+strings.Join(p.rest, " ")] |= p.verbs
			}
		}
	}
	for key, verbs := range actions {
		ws := strings.Fields(key)
		if got := l.verbs.of(ws[0], ws[1], ws[2:]...); got != verbs {
			t.Errorf("%q is of the families %b, want %b", key, got, verbs)
		}
		if got := l.verbs.of(ws[0], ws[1], append(ws[2:], "go")...); got != actions[key+" go"] {
			t.Errorf("%q and go is of the families %b", key, got)
		}
	}
	if l.cjk.max != b.cjk.max || !slices.Equal(slices.Sorted(maps.Keys(l.families)), sorted(slices.Clone(b.families))) {
		t.Error("the families of verbs differ")
	}
	for i, name := range b.families {
		if l.families[name] != i {
			t.Errorf("%s is %d, not %d", name, l.families[name], i)
		}
	}
	if !maps.Equal(l.verbNoun, b.verbNoun) || !maps.Equal(l.numbers, b.numbers) || !maps.Equal(l.same, b.same) || l.anyTopic != b.anyTopic || l.bits != b.allFamilyBits() {
		t.Error("the small maps differ")
	}
	typo, nearStop := b.typos()
	if !slices.Equal(l.typo, typo) || !slices.Equal(l.nearStop, nearStop) || !slices.Equal(l.swapped, b.swapped()) ||
		!slices.Equal(l.signatures, b.signatures) || !slices.Equal(l.autoReplies, b.autoReplies) || !slices.Equal(l.answers, sorted(slices.Clone(b.answers))) || !slices.Equal(l.tapbacks, b.tapbacks) ||
		!slices.EqualFunc(l.headers, b.headers, func(a, b headerSet) bool {
			return slices.EqualFunc(a[:], b[:], slices.Equal[[]string])
		}) {
		t.Error("the lists differ")
	}
	mended := map[string]uint64{}
	for i := range l.actions.n {
		mended[l.actions.word(i)] = l.actions.verbs(i)
		if i > 0 && l.actions.word(i-1) >= l.actions.word(i) {
			t.Errorf("%q stands after %q", l.actions.word(i), l.actions.word(i-1))
		}
	}
	if !maps.Equal(mended, b.actions()) {
		t.Error("the actions differ")
	}
}

// holds compares what the file and the lists say of one word.
func holds(t *testing.T, b *builder, l *lexicon, w string) {
	t.Helper()
	want := b.word(w)
	got := word{
		known: l.known.at(w), own: l.own.at(w), cjk: l.cjk.has(w), function: l.small(w),
		remarks: l.remarks.at(w), topics: l.topics.at(w), verbs: l.verbs.at(w), nouns: l.nouns.at(w), special: l.special.at(w),
	}
	for i := range l.tables {
		got.entries[i] = l.tables[i].words.at(w)
		phrasesAre(t, l, w, uint8(i), b.tables[i].phrases[w])       //nolint:gosec // a language
		phrasesAre(t, l, w, groupReasons+uint8(i), b.reasons[i][w]) //nolint:gosec // a language
	}
	if got != want {
		t.Errorf("%q is %+v, want %+v", w, got, want)
	}
}

// phrasesAre compares the phrases of one first word: of each second one they are the same, in the same order.
func phrasesAre(t *testing.T, l *lexicon, first string, group uint8, want []phrase) {
	t.Helper()
	var g phraseGroup
	if at := l.file.find(first); at != 0 {
		g = l.file.group(at, group)
	}
	bySecond := map[int][]phrase{}
	for _, p := range want {
		second := 0
		if len(p.rest) > 0 {
			second = l.file.find(p.rest[0])
		}
		bySecond[second] = append(bySecond[second], p)
	}
	if len(g.seconds) != secondSize*len(bySecond) {
		t.Errorf("%q goes on with %d words, want %d", first, len(g.seconds)/secondSize, len(bySecond))
	}
	for second, want := range bySecond {
		got := phrases{d: l.file, left: g.with(second)}
		for _, p := range want {
			if !got.next() {
				t.Fatalf("%q has fewer phrases than %d", first, len(want))
			}
			var rest []string
			if got.more() > 0 {
				rest = append(rest, l.file.word(second))
			}
			for k := 1; k < got.more(); k++ {
				rest = append(rest, got.word(k-1))
			}
			what := max(uint8(p.kind), uint8(p.part))
			if !slices.Equal(rest, p.rest) || got.what() != what || l.file.bits(got.verbs()) != p.verbs {
				t.Errorf("%q goes on with %q, %d, want %+v", first, rest, got.what(), p)
			}
		}
		if got.next() {
			t.Errorf("%q has more phrases than %d", first, len(want))
		}
	}
}

// A phrase stands where all its words do, in one sentence, a reason's without a comma.
func TestPhrases_Stand(t *testing.T) {
	l := words()
	for text, want := range map[string]int{
		"cause otherwise": 2, "cause otherwise it": 2, "cause, otherwise": 1, "cause. otherwise": 1, "cause other": 1, "cause": 1, "zork": 0,
	} {
		toks, _ := tokenize(nil, text, maxTokens, l.cjk)
		if got := l.reasons[0].of(reasonWhy, toks, 0, len(toks)); got != want {
			t.Errorf("%q opens with %d words of why, want %d", text, got, want)
		}
	}
	for text, want := range map[string]int{"go ahead": 2, "go, ahead": 2, "go. ahead": 1, "go": 1, "zork ahead": 0} {
		toks, _ := tokenize(nil, text, maxTokens, l.cjk)
		if _, got := l.tables[0].match(toks, 0); got != want {
			t.Errorf("%q begins with an entry of %d words, want %d", text, got, want)
		}
	}
}

// A file that is not whole, or of another format, is not read.
func TestLexicon_DamagedFile(t *testing.T) {
	for name, file := range map[string]string{
		"empty":           "",
		"short":           lexiconFile[:headerSize-1],
		"cut":             lexiconFile[:len(lexiconFile)-1],
		"longer":          lexiconFile + "x",
		"another file":    "CSRD" + lexiconFile[4:],
		"another version": lexiconFile[:headerVersion] + "\x63" + lexiconFile[headerVersion+1:],
		"a changed slot":  lexiconFile[:headerSize+400] + "\xff\xff" + lexiconFile[headerSize+402:],
		"a changed end":   lexiconFile[:len(lexiconFile)-1] + "\xff",
	} {
		if _, err := openLexicon(file); !errors.Is(err, errLexicon) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mistake in a list stops the building, and is named with its list and line.
func TestBuildLexicon_Mistakes(t *testing.T) {
	families := ""
	for i := range 65 {
		families += fmt.Sprintf("[f%d]\nen: go\n", i)
	}
	for _, c := range []struct{ list, first, want string }{
		{"en", "yes", "lexicon/en.txt:1: stands before the first section"},
		{"en", "[assnet]\nyes", "lexicon/en.txt:2: there is no kind \"assnet\""},
		{"common", "# a comment\n\n[unaccounted]\nyes", "lexicon/common.txt:4: there is no kind \"unaccounted\""},
		{"en", "[assent]\n" + strings.Repeat("x", maxWord+1), "lexicon/en.txt:2: \"xxx"},
		{"verbs", "[send]\nxx: go", "lexicon/verbs.txt:2: there is no language \"xx\""},
		{"verbs", "[send]\ngo", "lexicon/verbs.txt:2: there is no language \"\""},
		{"verbs", families, "lexicon/verbs.txt:130: there are more than 64 families"},
		{"things", "a thing: @fly", "lexicon/things.txt:1: there is no family of verbs \"fly\""},
		{"nouns", strings.Repeat("a: b\n", maxGroups+1), "groups of things"},
		{"reasons", "[whole]\nxx: it is so", "lexicon/reasons.txt:2: there is no part of a reason \"whole\", or no language \"xx\""},
		{"reasons", "[wohle]\nen: it is so", "lexicon/reasons.txt:2: there is no part of a reason \"wohle\""},
		{"comments", "[nuon]\nen: dog", "lexicon/comments.txt:2: there is no section \"nuon\""},
		{"comments", "[noun]\nen: hot dog", "lexicon/comments.txt:2: \"hot dog\" is of several words"},
		{"comments", "[noun]\nxx: dog", "lexicon/comments.txt:2: there is no language \"xx\""},
		{"topics", strings.Repeat("a: b | c\n", topicShift+1), "lexicon/topics.txt:33: there are more than 32 topics"},
	} {
		files := fstest.MapFS{}
		if err := fs.WalkDir(os.DirFS("lexicon"), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join("lexicon", path))
			if path == c.list+".txt" {
				text = append([]byte(c.first+"\n"), text...)
			}
			files[path] = &fstest.MapFile{Data: text}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := BuildLexicon(files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.list, err, c.want)
		}
	}
	if _, err := BuildLexicon(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no lists: %v", err)
	}
}
