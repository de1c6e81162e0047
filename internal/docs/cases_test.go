package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// caseIDs are the cases that docs/cases.md must answer.
const caseIDs = `TS-01 TS-03 TS-05 TS-07 TS-09 TS-10 TS-12 TS-14 TS-16 TS-18 TD-01 TD-03 TD-05 TD-06 TD-08 TD-10 OO-01 OO-02 OO-04 OO-06
	RX-01 RX-03 RX-05 RX-07 RX-09 HA-01 HA-02 HA-05 HA-06 HA-08 HA-09 HA-11 HA-12 HA-14 HA-16 PA-01 PA-04 PA-05 UQ-01 UQ-03 UQ-05
	UQ-06 UQ-08 UQ-10 CJ-01 CJ-02 CJ-04 CJ-05 CJ-08 CJ-10 DB-01 DB-03 DB-06 DB-08 DB-09 DB-10 TF-01 TF-03 AR-01 ID-01 ID-03 ID-05
	DS-01 PI-01 PI-03 PV-01 PV-02 PV-05 JN-01 JN-02 CL-01 CL-03`

var (
	caseRow  = regexp.MustCompile(`(?m)^\| ([A-Z]{2}-[0-9]{2}) \| (.+) \| (.+) \| (.+) \|$`)
	caseTest = regexp.MustCompile("`([a-z/]+) (Test\\w+)((?:/[\\w-]+)*)`")
)

// TestCasesNameRealTests fails when a case has no row or no test, or when a row names a test that is not there.
func TestCasesNameRealTests(t *testing.T) {
	rows := map[string]string{}
	for _, m := range caseRow.FindAllStringSubmatch(read(t, "docs/cases.md"), -1) {
		if rows[m[1]] != "" {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = m[4]
	}
	ids := strings.Fields(caseIDs)
	for _, id := range ids {
		tests := caseTest.FindAllStringSubmatch(rows[id], -1)
		if len(tests) == 0 || strings.Count(rows[id], "`") != 2*len(tests) {
			t.Errorf("%s has no row, no test, or a test that cannot be read", id)
		}
		for _, m := range tests {
			if !hasTest(t, m[1], m[2], m[3]) {
				t.Errorf("%s: there is no test %s %s%s", id, m[1], m[2], m[3])
			}
		}
	}
	for id := range rows {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is no case", id)
		}
	}
}

// hasTest looks for a test function and the names of its subtests in the sources of a package. The shared suite runs under
// the stores' TestStore.
func hasTest(t *testing.T, pkg, name, path string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") && pkg != "storetest" {
			continue
		}
		raw, err := os.ReadFile(f) //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
	text := b.String()
	found := strings.Contains(text, "func "+name+"(") || pkg == "storetest" && name == "TestStore"
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		found = found && (part == "" || strings.Contains(text, `"`+part+`"`))
	}
	return found
}
