package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// statusRun is a run of testdata/statuses: "run NAME", for a dishonest one with ": CODE" after it, then the
// parts of a world, each below a line "kernel", "policy" or "sdk".
type statusRun struct {
	name, code string
	world
}

func statusRuns(t *testing.T, file string) (list []statusRun) {
	t.Helper()
	var part *string
	for line := range strings.Lines(string(testkit.Read(t, filepath.Join("../../testdata/statuses", file)))) {
		line = strings.TrimRight(line, "\n")
		rest, isRun := strings.CutPrefix(line, "run ")
		n := len(list)
		switch {
		case strings.HasPrefix(line, "#") || line == "":
		case isRun:
			name, code, _ := strings.Cut(rest, ": ")
			list = append(list, statusRun{name: name, code: code})
			part = nil
		case n == 0:
			t.Fatalf("%s: %s", file, line)
		case line == "kernel":
			part = &list[n-1].kernel
		case line == "policy":
			part = &list[n-1].policy
		case line == "sdk":
			part = &list[n-1].sdk
		case part == nil:
			t.Fatalf("%s: %s is in no part of %s", file, line, list[n-1].name)
		default:
			*part += line + "\n"
		}
	}
	if len(list) < 20 {
		t.Fatalf("%s has %d runs, expected 20", file, len(list))
	}
	return list
}

// TestStatuses: no ordinary run reads partial, and no dishonest one clean.
func TestStatuses(t *testing.T) {
	for _, r := range statusRuns(t, "ordinary.txt") {
		t.Run(r.name, func(t *testing.T) {
			if j := r.run(t); j.report.Status != "clean" || len(j.report.Ambiguities) > 0 {
				t.Errorf("%s: %q", j.report.Status, j.report.Ambiguities)
			}
		})
	}
	for _, r := range statusRuns(t, "dishonest.txt") {
		t.Run(r.name, func(t *testing.T) {
			if j := r.run(t); j.report.Status == "clean" || r.code == "" || !slices.Contains(j.report.Ambiguities, r.code) {
				t.Errorf("%s: %q, expected %s", j.report.Status, j.report.Ambiguities, r.code)
			}
		})
	}
}
