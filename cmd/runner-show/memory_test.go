package main

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// A million lines, each with a name of its own, of many processes: what is kept is bounded, what
// is beyond the bounds is counted, and the screen is drawn.
func TestMillionLines(t *testing.T) {
	m := newModel(true)
	r := acts.Reader{Together: true, Take: func(a *acts.Act) error { m.take(a); return nil }}
	const lines = 1_000_000
	for i := range uint64(lines) {
		e := &schemas.KernelEvent{Seq: i, PID: uint32(i/10 + 1), EventType: schemas.EventUnlink, Has: schemas.KernelHasReturn, Status: schemas.StatusSuccess,
			Value: fmt.Appendf(nil, "/tmp/some/folder/%d/of/many/with/a/long/name/%d", i%1000, i)}
		testkit.Must(t, r.Line(&archive.Line{RunID: "run_01", Event: e}))
	}
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	removed := &m.all.groups[acts.Removed]
	if kept := uint64(len(removed.times)); removed.acts != lines || kept+removed.lost != lines || kept > maxNames {
		t.Errorf("%d acts, %d names, %d beyond the bounds", removed.acts, kept, removed.lost)
	}
	const most = 400 << 20
	if mem.HeapAlloc > most {
		t.Errorf("%d MiB are kept", mem.HeapAlloc>>20)
	}
	t.Logf("%d MiB", mem.HeapAlloc>>20)
	s := screen{printer: printer{w: io.Discard, width: 80}, m: m, opt: Options{Top: defaultTop}, rep: &verdict.Report{Record: &verdict.Record{}}}
	s.print()
}
