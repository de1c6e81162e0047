package sqlite_test

import (
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
	for query, plan := range plans {
		for _, step := range plan {
			if strings.HasPrefix(step, "SCAN") && !few.MatchString(step) {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
}
