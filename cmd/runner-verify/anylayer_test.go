package main

import (
	"testing"

	"github.com/runner-evidence/runner/schemas/layertest"
)

// TestAnyLayer: an optional layer of the table is taken and checked line by line; an
// archive without it, and a table without it, are what they were.
func TestAnyLayer(t *testing.T) {
	a := sample()
	a[layertest.Member] = layertest.Line(runID, 0, "a") + "\n" + layertest.Line(runID, 1, "b") + "\n"
	in := a.digest(t).tar(t)
	if _, r := check(t, in); r.Valid {
		t.Error("a member that no row has is taken")
	}
	layertest.Add(t)
	if code, r := check(t, in); code != 0 {
		t.Error(r.Findings)
	}
	if code, r := check(t, sample().digest(t).tar(t)); code != 0 {
		t.Error(r.Findings)
	}
	a[layertest.Member] = layertest.Line(runID, 1, "a") + "\n" + layertest.Line("run_other", 1, "b") + "\n"
	if _, r := check(t, a.digest(t).tar(t)); len(r.Findings) != 2 {
		t.Error(r.Findings)
	}
}
