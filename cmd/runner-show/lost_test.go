package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Where more names are in a record than are kept, a process can have none of them. Each screen says how many operations that are.
func TestNamesThatAreTooMany(t *testing.T) {
	const lost = "2 operations on more names"
	act := func(path string, pid uint32) *acts.Act {
		return &acts.Act{Group: acts.Read, Op: schemas.OpOpen, Read: true, Path: path, Outcome: schemas.ActDone, Process: acts.Process{PID: pid}}
	}
	for _, kept := range []int{0, 1, 2, 5} {
		m := newModel(true)
		for i := range kept {
			m.take(act("/kept/"+strings.Repeat("x", i), 1))
		}
		m.bytes = maxNameBytes
		for pid := range uint32(3) {
			for _, outcome := range []string{schemas.ActDone, schemas.ActFailed, schemas.ActRefused} {
				for _, name := range []string{"/lost/1", "/lost/2"} {
					a := act(name, pid+1)
					if a.Outcome = outcome; outcome == schemas.ActFailed {
						a.Error = "ENOENT"
					}
					m.take(a)
				}
			}
		}
		rep := &verdict.Report{Archive: "run.tar.gz", Record: &verdict.Record{Command: []string{"true"}, KernelLayer: schemas.LayerComplete, CgroupCorrelation: schemas.CorrelationClean}}
		for _, view := range []string{"", viewTree} {
			for _, o := range []Options{{Top: 100}, {Top: 1, Width: 40}, {Top: 1, Width: 1}, {Top: 100, Width: 80}, {Top: 100, Width: 2000}} {
				var b bytes.Buffer
				o.View = view
				s := screen{printer: printer{w: &b, width: o.Width}, m: m, opt: o, rep: rep}
				s.print()
				if o.Width == 0 && (strings.Count(b.String(), lost) != 3*3 || strings.Contains(b.String(), "at least 0 times")) {
					t.Errorf("view %q with %d names:\n%s", view, kept, &b)
				}
			}
		}
		c := &collector{model: m}
		for _, g := range c.groups(&m.processes[2].summary, 10) {
			if !strings.Contains(g.More, lost) || len(g.Rows) > 0 {
				t.Errorf("on the page: %+v", g)
			}
		}
	}
}

// A name fits into any room there is.
func TestShorten(t *testing.T) {
	for n := range 12 {
		name := strings.Repeat("n", n)
		for limit := 1; limit < 12; limit++ {
			if got := shorten(name, limit); columns(got) > limit || n <= limit && got != name {
				t.Errorf("%q in %d columns: %q", name, limit, got)
			}
		}
	}
}
