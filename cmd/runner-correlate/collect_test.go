package main

import (
	"bytes"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// collect makes a collected log from a plain one, as runner-exec does.
func collect(t testing.TB, name string, log []byte, h logHealth) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: name, RunID: testRun, Tool: "runner-exec", Version: "test"})
	testkit.Must(t, err)
	n := uint64(0)
	for line := range bytes.Lines(log) {
		testkit.Must(t, w.Write(schemas.LogLine{Schema: schemas.SchemaLogLine, RunID: testRun, Seq: n, Line: schemas.Text(string(bytes.TrimSuffix(line, []byte("\n"))))}))
		n++
	}
	s := schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: testRun, Stage: "runner-exec", In: n, Out: n, Filtered: map[string]uint64{}, Notes: []string{},
		Counters: map[string]uint64{"bytes": uint64(len(log)), "lines": n, "dropped_bytes": 0, "after_end_bytes": 0},
		Facts:    map[string]string{"unterminated": "no", "replaced": "no", "writers_at_end": "none", "stopped": ""}}
	for k, v := range h.counters {
		s.Counters[k] = v
	}
	for k, v := range h.facts {
		s.Facts[k] = v
	}
	testkit.Must(t, w.Write(s))
	if h.status == "" {
		h.status = schemas.StatusComplete
	}
	testkit.Must(t, w.Seal(h.status))
	return b.Bytes()
}
