package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
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
	if _, r := check(t, in); r.Valid {
		t.Error("a layer without its note is taken")
	}
	health := a[bundle.HealthName]
	last := strings.LastIndex(health, `]`)
	noted := func(count string) []byte {
		a[bundle.HealthName] = health[:last] + `,"sensor: ` + layertest.Counter + `=` + count + `"` + health[last:]
		return a.digest(t).tar(t)
	}
	if _, r := check(t, noted("3")); r.Valid {
		t.Error("a note with another count is taken")
	}
	in = noted("2")
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

// TestAnyLog: the variable of any layer's log goes with that of the run's id.
func TestAnyLog(t *testing.T) {
	layertest.Add(t)
	for _, c := range []struct {
		keys   []string
		faults int
	}{
		{[]string{schemas.EnvRunID, layertest.Env}, 0}, {nil, 0},
		{[]string{layertest.Env}, 1}, {[]string{schemas.EnvRunID}, 1}, {[]string{schemas.EnvRunID, "OTHER_LOG"}, 2},
	} {
		v := newVerifier()
		v.environment(&archive.Line{Member: bundle.EventsName}, &schemas.RunStarted{AgentShim: schemas.ShimNone, EnvKeys: c.keys})
		if v.total != c.faults {
			t.Errorf("%q: %d faults, expected %d", c.keys, v.total, c.faults)
		}
		v.close()
	}
}
