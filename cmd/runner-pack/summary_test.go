package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestProcesses: a process has its lines together, so a number that comes again later is
// another process: the kernel gives numbers again.
func TestProcesses(t *testing.T) {
	for pids, want := range map[string]uint64{"": 0, "7 7 7": 1, "7 8 7": 3, "7 77 7": 3, "0 0": 1, "0 4294967295": 2} {
		const start = `{"schema":"s","run_id":"r"`
		for _, p := range []processes{{}, {start: len(start)}} {
			for pid := range strings.FieldsSeq(pids) {
				p.add(fmt.Appendf(nil, start+`,"seq":17,"pid":%s,"event_type":1}`, pid))
				p.add([]byte(`{"schema":"s"}`))
				p.add([]byte(start + `}`))
				p.add(fmt.Appendf(nil, start+`,"event_type":1,"pid":%s}`, pid))
			}
			if p.n != want {
				t.Errorf("%s: %d processes, expected %d", pids, p.n, want)
			}
		}
	}
}

// TestStateOfEngines: the summary says who worked outside of the cgroup.
func TestStateOfEngines(t *testing.T) {
	r := router{health: &schemas.Health{KernelLayer: schemas.LayerPartial, CgroupCorrelation: schemas.CorrelationClean,
		Notes: []string{schemas.NoteLoss.Format(schemas.NoteValue{Key: schemas.CauseEngines, Value: "docker,podman"})}}}
	if got := r.state(); got != "not complete: docker and podman worked outside of the cgroup" {
		t.Error(got)
	}
}
