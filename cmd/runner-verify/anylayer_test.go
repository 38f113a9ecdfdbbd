package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
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
	report, err := schemas.ParseReport([]byte(layered()[bundle.ReportName]))
	if err != nil {
		t.Fatal(err)
	}
	codes := append(report.Ambiguities, layertest.Name+"_log_empty", layertest.Name+"_log_invalid:2:bad_field", layertest.Name+"_log_truncated", layertest.Name+"_log_lost")
	a = withCodes(t, codes)
	a[layertest.Member] = layertest.Line(runID, 0, "a") + "\n" + layertest.Line(runID, 1, "b") + "\n"
	_, r := check(t, a.digest(t).tar(t))
	for _, want := range []string{"the sensor layer is there", "2 lines before it", "no such log was collected", `unknown ambiguity code "sensor_log_lost"`} {
		if !strings.Contains(fmt.Sprint(r.Findings), want) {
			t.Errorf("no finding says %s: %v", want, r.Findings)
		}
	}
}
