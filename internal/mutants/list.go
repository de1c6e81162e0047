package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mutant is one deliberate mistake and the test that must notice it.
type mutant struct {
	// Name is unique in the list.
	Name string `yaml:"name"`
	// File is the file to change, relative to the module's root: Go source,
	// or anything that the package embeds.
	File string `yaml:"file"`
	// Find is text that stands exactly once in File. Left out, the change is
	// to the one line that ends in the comment "mutant: Name".
	Find string `yaml:"find"`
	// Replace takes the place of Find, or of the whole marked line.
	Replace string `yaml:"replace"`
	// Package is the test's package: a path such as ./gate.
	Package string `yaml:"package"`
	// Test is a regular expression for the test's whole name; after a slash,
	// for that of its subtest.
	Test string `yaml:"test"`
	// Why says what goes wrong in the world if nobody notices.
	Why string `yaml:"why"`
}

// readList reads and checks a list. It returns every fault that it finds.
func readList(r io.Reader) ([]mutant, error) {
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	var list []mutant
	if err := dec.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var faults []error
	seen := map[string]bool{}
	for i, m := range list {
		if err := m.check(); err != nil {
			faults = append(faults, fmt.Errorf("entry %d (%s): %w", i+1, m.Name, err))
		}
		if seen[m.Name] {
			faults = append(faults, fmt.Errorf("entry %d: a second %q", i+1, m.Name))
		}
		seen[m.Name] = true
	}
	return list, errors.Join(faults...)
}

func (m mutant) check() error {
	for _, f := range []struct{ field, value string }{
		{"name", m.Name}, {"file", m.File}, {"package", m.Package}, {"test", m.Test}, {"why", m.Why},
	} {
		if strings.TrimSpace(f.value) == "" {
			return fmt.Errorf("no %s", f.field)
		}
	}
	if m.Find != "" && m.Find == m.Replace {
		return errors.New("find and replace are the same")
	}
	if _, err := regexp.Compile(m.runPattern()); err != nil {
		return fmt.Errorf("test: %w", err)
	}
	return nil
}

// runPattern is the argument of go test's -run: each element whole.
func (m mutant) runPattern() string {
	parts := strings.Split(m.Test, "/")
	for i, p := range parts {
		parts[i] = "^(?:" + p + ")$"
	}
	return strings.Join(parts, "/")
}

// names says whether test, a name as go test reports it, is one that m names.
func (m mutant) names(test string) bool {
	return regexp.MustCompile("^(?:" + strings.ReplaceAll(m.Test, "/", ")/(?:") + ")$").MatchString(test)
}

// apply returns source with the mistake in it.
func (m mutant) apply(source []byte) ([]byte, error) {
	if m.Find == "" {
		return m.applyToMarkedLine(source)
	}
	switch n := bytes.Count(source, []byte(m.Find)); n {
	case 1:
		return bytes.Replace(source, []byte(m.Find), []byte(m.Replace), 1), nil
	case 0:
		return nil, fmt.Errorf("%s does not contain the text to find", m.File)
	default:
		return nil, fmt.Errorf("%s contains the text to find %d times", m.File, n)
	}
}

func (m mutant) applyToMarkedLine(source []byte) ([]byte, error) {
	marker := regexp.MustCompile(`(?m)^.*\bmutant: ` + regexp.QuoteMeta(m.Name) + `[ \t]*$`)
	found := marker.FindAllIndex(source, -1)
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has %d lines that end in the comment %q", m.File, len(found), "mutant: "+m.Name)
	}
	line := found[0]
	return bytes.Join([][]byte{source[:line[0]], []byte(m.Replace), source[line[1]:]}, nil), nil
}

// sample is n entries spread evenly over list, or all where n is 0 or covers
// them.
func sample(list []mutant, n int) []mutant {
	if n <= 0 || n >= len(list) {
		return list
	}
	picked := make([]mutant, 0, n)
	for i := range n {
		picked = append(picked, list[i*len(list)/n])
	}
	return picked
}
