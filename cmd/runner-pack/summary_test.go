package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
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

// TestState: the summary says why a record is not whole, and -q does not hide that.
func TestState(t *testing.T) {
	loss := func(values ...any) string { return schemas.NoteLoss.Format(values...) }
	const head = "runner-pack: "
	for _, c := range []struct {
		layer, cgroup string
		drops         uint64
		note, want    string
		whole         bool
	}{
		{schemas.LayerComplete, schemas.CorrelationClean, 0, "", "nothing was observed", true},
		{schemas.LayerAbsent, schemas.CorrelationPartial, 0, "", "without a kernel layer", true},
		{schemas.LayerPartial, schemas.CorrelationClean, 3, loss(schemas.NoteValue{Key: schemas.CounterDropped, Value: "3"}), "not complete: 3 lost", false},
		{schemas.LayerPartial, schemas.CorrelationClean, 0, loss(schemas.NoteValue{Key: schemas.CauseEngines, Value: "docker,podman"}), "not complete: docker and podman worked outside of the cgroup", false},
		{schemas.LayerPartial, schemas.CorrelationClean, 0, loss(schemas.NoteValue{Key: schemas.CauseInterference, Value: "move"}), "not complete: interference=move", false},
		{schemas.LayerAbsent, schemas.CorrelationFailed, 0, schemas.NoteEscape.Format(uint64(1)), "not complete: a task left the cgroup, or may have: what it did afterwards may be missing, and runner-verify refuses this record", false},
	} {
		r := router{surface: &surfaceWriter{}, report: &schemas.Report{Status: schemas.CorrelationClean}, health: &schemas.Health{KernelLayer: c.layer, CgroupCorrelation: c.cgroup, RingbufDrops: c.drops}}
		if c.note != "" {
			r.health.Notes = []string{c.note}
		}
		if words, whole := r.state(); words != c.want || whole != c.whole {
			t.Errorf("%q, %v, expected %q, %v", words, whole, c.want, c.whole)
		}
		for _, q := range []string{"-q=false", "-q=true"} {
			set := flag.NewFlagSet("", flag.PanicOnError)
			set.Bool("q", false, "")
			testkit.Must(t, set.Parse([]string{q}))
			var said strings.Builder
			r.tell(&tool.Env{Name: "runner-pack", Stderr: &said, Flag: tool.NewFlags(cli.NewContext(nil, set, nil))}, "run.tar.gz")
			want := head + "run.tar.gz: 0 events, 0 processes, 0 endpoints, " + c.want + "\n"
			switch {
			case !c.whole:
				want = strings.Replace(want, head, head+"warning: ", 1)
			case q == "-q=true":
				want = ""
			}
			if said.String() != want {
				t.Errorf("%s: %q, expected %q", q, said.String(), want)
			}
		}
	}
}

// TestSummaryOfDoubt: a record in which something is in doubt does not read complete and nothing else.
func TestSummaryOfDoubt(t *testing.T) {
	r := router{surface: &surfaceWriter{}, parts: &reportWriter{ambiguities: 2, notes: 1}, report: &schemas.Report{Status: schemas.CorrelationFailed},
		health: &schemas.Health{KernelLayer: schemas.LayerComplete, CgroupCorrelation: schemas.CorrelationClean}}
	if line, whole := r.summary(); whole || !strings.HasSuffix(line, ", correlation failed (2 ambiguities: runner-verify --explain)") {
		t.Errorf("%q, %v", line, whole)
	}
}
