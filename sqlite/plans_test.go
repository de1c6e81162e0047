package sqlite_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/sqlite"
	"github.com/countersign/countersign/storetest"
)

// Every query between a text and what follows from it finds its rows by an index.
func TestPlans_EveryQueryOfThePathUsesAnIndex(t *testing.T) {
	s, ok := storetest.Path(t, open).(*sqlite.Store)
	if !ok {
		t.Fatal("another store")
	}
	plans, err := s.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"INSERT INTO messages", "UPDATE offers AS o SET state = 'consumed'", "SET state = 'running'", "FROM events"} {
		found := false
		for query := range plans {
			found = found || strings.Contains(query, part)
		}
		if !found {
			t.Errorf("no statement with %q was looked at", part)
		}
	}
	// What a query has made itself holds a few rows, and this index what waits.
	few := regexp.MustCompile(`^SCAN (last|x|l|q|json_each VIRTUAL TABLE.*|\(subquery-\d+\)|sqlite_master|CONSTANT ROW)( LEFT-JOIN)?$|^SCAN \d+ CONSTANT ROWS?$|^SCAN t USING INDEX texts_queued$`)
	noScans(t, plans, few)
}

// What is looked for every second is found by an index, of what waits at most.
func TestPlans_EverySweepUsesAnIndex(t *testing.T) {
	s, ok := storetest.Path(t, open).(*sqlite.Store)
	if !ok {
		t.Fatal("another store")
	}
	for _, sweep := range []func(context.Context) (int, error){
		s.AdvanceAll, s.ExpireDue, s.GiveWayDue, s.SettleDue, s.GrantDue, s.LapseDue, s.ResendDue,
		func(ctx context.Context) (int, error) { return s.NoticeDue(ctx, "", 1) },
	} {
		_, err := sweep(t.Context())
		must(t, err)
	}
	plans, err := s.Plans(t.Context())
	must(t, err)
	noScans(t, plans, regexp.MustCompile(`^SCAN (last|x|l|q|json_each VIRTUAL TABLE.*|\(subquery-\d+\)|sqlite_master|CONSTANT ROW)( LEFT-JOIN)?$|^SCAN \d+ CONSTANT ROWS?$|^SCAN \w+ USING (COVERING )?INDEX (texts_queued|offers_queue|operations_permission|operations_settling_person)$`))
}

func noScans(t *testing.T, plans map[string][]string, few *regexp.Regexp) {
	t.Helper()
	for query, plan := range plans {
		for _, step := range plan {
			if strings.HasPrefix(step, "SCAN") && !few.MatchString(step) || strings.Contains(step, "AUTOMATIC") {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
}
