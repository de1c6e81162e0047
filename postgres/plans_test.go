package postgres_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/postgres"
	"github.com/countersign/countersign/storetest"
)

// Every query between a text and what follows from it finds its rows by an index, though the tables are all but empty: a
// connection keeps the plans that it makes then.
func TestPlans_EveryQueryOfThePathUsesAnIndex(t *testing.T) {
	s, ok := storetest.Path(t, open).(*postgres.Store)
	if !ok {
		t.Fatal("another store")
	}
	plans, err := s.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"INSERT INTO messages", "UPDATE offers o SET state = 'consumed'", "UPDATE operations x SET state = 'running'", "FROM events"} {
		if !anyHas(plans, part) {
			t.Errorf("no statement with %q was looked at", part)
		}
	}
	queue := regexp.MustCompile(` using (messages_undecided|texts_queued|texts_sending) `) // holds what waits, and nothing that is done
	for query, plan := range plans {
		lines := strings.Split(plan, "\n")
		for i, l := range lines {
			switch {
			case strings.Contains(query, "FROM events") && strings.Contains(l, "Sort"):
				t.Errorf("the feed is put in order anew each time:\n%s", plan)
			case strings.Contains(l, "Seq Scan"):
				t.Errorf("%s reads a table whole:\n%s", query, plan)
			case strings.Contains(l, "Index Scan using") || strings.Contains(l, "Index Only Scan using"):
				if (i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond")) && !queue.MatchString(l) {
					t.Errorf("%s reads an index whole:\n%s", query, plan)
				}
			}
		}
	}
}

func anyHas(plans map[string]string, part string) bool {
	for query := range plans {
		if strings.Contains(query, part) {
			return true
		}
	}
	return false
}
