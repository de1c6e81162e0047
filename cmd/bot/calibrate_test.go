package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/calibration"
	"github.com/countersign/countersign/classifier"
	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/sqlite"
	"github.com/countersign/countersign/storetest"
)

func labelled(t *testing.T, rows ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "replies.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func dataRow(text, offer, label string) string {
	return fmt.Sprintf(`{"text":%q,"earlier":[],"offers":[%q],"label":%q,"lang":"en","tags":["plain"]}`, text, offer, label)
}

// many is a set that shows 0.99: each yes answers an offer of its own.
func many(t *testing.T, yeses int) string {
	t.Helper()
	var rows []string
	for i := range yeses {
		rows = append(rows, dataRow("yes please", fmt.Sprintf("delete %d old files", i+2), "confirm"),
			dataRow("no thanks", fmt.Sprintf("delete %d old files", i+2), "decline"))
	}
	return labelled(t, rows...)
}

func TestCalibrateRefusesASetThatIsTooSmall(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := bot(t, nil, "", "calibrate", "--data", many(t, 20), "--out", dir)
	if code != exitNo || !strings.Contains(errs, "needs 299 of 299") || !strings.Contains(out, "20 of 20") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "calibration.json")); err == nil {
		t.Error("a calibration file although the reader is not blessed")
	}
	for _, name := range []string{"result.json", "report.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if code, _, errs := bot(t, nil, "", "calibrate", "--data", many(t, 20), "--target-precision", "0.8"); code != exitOK {
		t.Errorf("0.8 needs 14: %d %s", code, errs)
	}
}

func TestCalibrateBlessesAndCompares(t *testing.T) {
	dir, set := t.TempDir(), many(t, 310)
	code, out, errs := bot(t, nil, "", "calibrate", "--data", set, "--out", dir)
	if code != exitOK || errs != "" || !strings.Contains(out, "310 of 310") || !strings.Contains(out, "acts in    en") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "calibration.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := calibration.Load(raw); err != nil {
		t.Fatal(err)
	}
	code, out, errs = bot(t, nil, "", "calibrate", "--data", set, "--calibration", filepath.Join(dir, "calibration.json"),
		"--against", filepath.Join(dir, "result.json"))
	if code != exitOK || !strings.Contains(out, "given by the calibration file") || !strings.Contains(out, "only this 0, only the other 0, p 1.0000") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	// A blessed file does not stay where the next run refuses.
	if code, _, _ := bot(t, nil, "", "calibrate", "--data", many(t, 20), "--out", dir); code != exitNo {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "calibration.json")); err == nil {
		t.Error("the calibration of another set stayed")
	}
}

func TestCalibrateListsWrongConfirmsFirst(t *testing.T) {
	rows := []string{dataRow("yes", "send email to Dana", "decline")}
	for i := range 60 {
		rows = append(rows, dataRow("yes", fmt.Sprintf("delete %d old files", i+2), "confirm"), dataRow("no", fmt.Sprintf("delete %d old files", i+2), "decline"))
	}
	set := labelled(t, rows...)
	_, out, _ := bot(t, nil, "", "calibrate", "--data", set)
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "wrong confirm") || !strings.Contains(first, "Dana") {
		t.Errorf("the first line is %q", first)
	}
	_, out, _ = bot(t, nil, "", "calibrate", "--data", set, "--json")
	var res calibration.Result
	if err := json.Unmarshal([]byte(out), &res); err != nil || len(res.Wrong) != 1 || res.Data.Rows != 121 {
		t.Errorf("%v %+v", err, res.Data)
	}
}

func TestCalibrateAdversaryAndOracle(t *testing.T) {
	code, out, _ := bot(t, nil, "", "calibrate", "--adversary", "--data", labelled(t,
		dataRow("yes but cc Sam", "send email to Dana", "modify"), dataRow("what?", "send email to Dana", "unclear")))
	if code != exitOK || !strings.Contains(out, "2 of 2") {
		t.Errorf("%d %s", code, out)
	}
	code, out, _ = bot(t, nil, "", "calibrate", "--adversary", "--data", labelled(t, dataRow("yes", "send email to Dana", "decline")))
	if code != exitNo || !strings.Contains(out, "0 of 1") || !strings.Contains(out, "1 label decline") {
		t.Errorf("guards that hold nothing: %d %s", code, out)
	}
	code, out, _ = bot(t, nil, "", "calibrate", "--oracle", "--json", "--data", labelled(t,
		dataRow("yes", "send email to Dana", "confirm"), dataRow("yes, the tin is leaking", "send email to Dana", "confirm")))
	var h guardFigures
	if err := json.Unmarshal([]byte(out), &h); err != nil || code != exitOK || h.Stopped.Right != 1 || h.Stopped.Of != 2 || h.Kinds["consent"] != 1 {
		t.Errorf("%d %v %s", code, err, out)
	}
}

// endpoint is a model that confirms everything, and has no log-probabilities.
func endpoint(t *testing.T) (environ []string, asked *int) {
	t.Helper()
	asked = new(int)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		said := `{\"label\":\"confirm\"}`
		if strings.Contains(string(body), `"confidence"`) {
			said = `{\"label\":\"confirm\",\"confidence\":97}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"%s"}}]}`, said)
	}))
	t.Cleanup(srv.Close)
	return []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_MODEL=test"}, asked
}

func TestCalibrateRecordsGoesOnAndReplays(t *testing.T) {
	set := many(t, 3)
	record := filepath.Join(t.TempDir(), "answers.jsonl")
	environ, asked := endpoint(t)
	args := []string{"calibrate", "--reader", "openai", "--data", set, "--record", record, "--price", "0.5"}
	code, out, errs := bot(t, environ, "", args...)
	if code != exitNo || !strings.Contains(out, "cost       0.5000 a reply, 3.00 in all") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	b, err := os.ReadFile(record)
	if err != nil || strings.Count(string(b), "\n") != 6 {
		t.Fatalf("%v %d answers", err, strings.Count(string(b), "\n"))
	}
	// Broken off within the fifth answer.
	at := strings.LastIndex(strings.TrimSuffix(string(b), "\n"), "\n")
	at = strings.LastIndex(string(b[:at]), "\n")
	if err := os.WriteFile(record, b[:at+20], 0o600); err != nil {
		t.Fatal(err)
	}
	before := *asked
	if code, _, errs := bot(t, environ, "", args...); code != exitNo {
		t.Fatalf("%d %s", code, errs)
	}
	if opened := before - 6; *asked-before-opened != 2 {
		t.Errorf("%d rows asked again, want 2", *asked-before-opened)
	}
	before = *asked
	_, out, errs = bot(t, nil, "", "calibrate", "--data", set, "--replay", record)
	if *asked != before || !strings.Contains(out, "reader     openai/") {
		t.Errorf("%s %s", out, errs)
	}
	if code, _, errs := bot(t, nil, "", "calibrate", "--data", many(t, 4), "--replay", record); code != exitUsage || !strings.Contains(errs, "no answer") {
		t.Errorf("answers of another set: %d %s", code, errs)
	}
	if code, _, errs := bot(t, nil, "", "calibrate", "--data", set, "--record", record); code != exitUsage || !strings.Contains(errs, "is of reader") {
		t.Errorf("another reader's record: %d %s", code, errs)
	}
}

func TestCalibrateFromStore(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	s, err := sqlite.Open(t.Context(), strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	fell(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := bot(t, []string{"COUNTERSIGN_DATABASE_URL=" + url}, "", "calibrate", "--from-store")
	if code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	rows, err := calibration.ReadData(strings.NewReader(out))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v %s", err, out)
	}
	r := rows[0]
	if r.Text != "ari owes me 111, send it" || r.Offers[0] != "send email to Ari" || r.Label != classifier.Unclear ||
		strings.Join(r.Tags, " ") != "to-label guard:consent ended:open" {
		t.Errorf("%+v", r)
	}
	if code, out, _ := bot(t, []string{"COUNTERSIGN_DATABASE_URL=" + url}, "", "calibrate", "--from-store", "--account", "other"); code != exitOK || out != "" {
		t.Errorf("another account: %d %q", code, out)
	}
}

// fell leaves one reply in the store that code left alone.
func fell(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx := t.Context()
	p := people.Person{ID: offers.NewID(), AccountID: people.DefaultAccount, Name: "Alex", Tier: gate.TierOwner, State: people.Active,
		Addresses: []people.Binding{{Address: "sim:alex", OurNumber: storetest.Ours}}}
	if err := s.AddPerson(ctx, p); err != nil {
		t.Fatal(err)
	}
	args, sum, err := offers.Canonical([]byte(`{"to":["dana@example.test"]}`))
	if err != nil {
		t.Fatal(err)
	}
	pr := offers.Proposal{AccountID: p.AccountID, Call: "offer", Key: "k", BodySum: sum, PersonID: p.ID,
		Kind: string(gate.KindToolCall), Tool: "email.send", Args: args, ArgsSum: sum, Present: offers.PresentQueue}
	if _, _, err := s.Propose(ctx, pr, func(f offers.Facts) (offers.Plan, error) { return storetest.Ask(f, pr) }); err != nil {
		t.Fatal(err)
	}
	text, err := s.Reserve(ctx)
	if err != nil || text == nil {
		t.Fatal(err, text)
	}
	if err := s.Sent(ctx, text.ID, offers.SendResult{Outcome: offers.OutcomeAccepted, ProviderID: "SM1"}); err != nil {
		t.Fatal(err)
	}
	m, err := s.Receive(ctx, offers.Inbound{Provider: "sim", ProviderID: "1", Address: "sim:alex", OurNumber: storetest.Ours,
		Text: "dana owes me 412, send it", Raw: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Pass(ctx, offers.PassRequest{MessageID: m.MessageID, PersonID: p.ID, Type: offers.ReplyUnresolved,
		Data:    offers.ReplyData{RunID: m.RunID, MessageID: m.MessageID, PersonID: p.ID, Text: m.Text, Reading: "unclear", P: 1},
		Reading: offers.ReadingRecord{Class: "unclear", P: map[string]float64{"unclear": 1}, Guards: []string{"consent"}, Reader: "test"}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCalibrateWrongUse(t *testing.T) {
	good := many(t, 1)
	for name, args := range map[string][]string{
		"no data":            {},
		"no such file":       {"--data", "none.jsonl"},
		"no data lines":      {"--data", labelled(t, `{"text":"yes"}`)},
		"no share":           {"--data", good, "--target-precision", "1"},
		"two sources":        {"--data", good, "--adversary", "--oracle"},
		"no endpoint":        {"--data", good, "--reader", "openai"},
		"no such reader":     {"--data", good, "--reader", "cascade"},
		"no result":          {"--data", good, "--target-precision", "0.5", "--against", good},
		"store without one":  {"--from-store"},
		"store and data":     {"--from-store", "--data", good},
		"no calibration":     {"--data", good, "--calibration", good},
		"no workers":         {"--data", good, "--workers", "0"},
		"nothing to replay":  {"--data", good, "--replay", "none.jsonl"},
		"nowhere to record":  {"--data", good, "--record", filepath.Join(good, "x")},
		"a folder in a file": {"--data", good, "--target-precision", "0.01", "--out", filepath.Join(good, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, errs := bot(t, nil, "", append([]string{"calibrate"}, args...)...); code != exitUsage || errs == "" {
				t.Errorf("%d %s", code, errs)
			}
		})
	}
}

func TestProgressIsDrawnForSlowReadersAlone(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	p := &progress{w: &b, now: func() time.Time { return now }}
	for i := range 10 {
		p.show(i+1, 10)
	}
	p.end()
	if b.Len() != 0 {
		t.Fatalf("a fast reader got a bar: %q", b.String())
	}
	for i := range 10 {
		now = now.Add(time.Second)
		p.show(i+1, 10)
	}
	p.end()
	if !strings.Contains(b.String(), "5 of 10, 5s left") || !strings.HasSuffix(b.String(), "10 of 10, 0s left \n") {
		t.Errorf("%q", b.String())
	}
}

// TestCalibrateWithoutLanguages: a file that acts in no language blocks what it was made to let through, which is said.
func TestCalibrateWithoutLanguages(t *testing.T) {
	raw, err := os.ReadFile(many(t, 20))
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(t.TempDir(), "plain.jsonl")
	if err := os.WriteFile(set, bytes.ReplaceAll(raw, []byte(`,"lang":"en"`), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := bot(t, nil, "", "calibrate", "--data", set, "--target-precision", "0.8")
	if code != exitOK || !strings.Contains(out, `acts in    no language: one takes 59 right confirms of as many in rows with its "lang"`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
