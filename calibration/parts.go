package calibration

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// ReadFS reads the rows of every *.jsonl file at the top of fsys, in the
// order of their names. It fails with [ErrData] naming file and line.
func ReadFS(fsys fs.FS) ([]Row, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".jsonl") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	var rows []Row
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrData, err)
		}
		more, err := ReadData(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, more...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: no rows", ErrData)
	}
	return rows, nil
}
