package schemas_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestRecordedRunsUseTheTables: every counter, fact, filter and note of the recorded
// runs is in the tables, and every note of this runner reads and writes as it is.
func TestRecordedRunsUseTheTables(t *testing.T) {
	files, err := filepath.Glob("../testdata/runs/*/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	healths, noted := 0, map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			switch {
			case bytes.HasPrefix(line, []byte(`{"schema":"`+schemas.SchemaStageHealth+`"`)):
				healths++
				checkStage(t, file, line)
			case bytes.HasPrefix(line, []byte(`{"schema":"`+schemas.SchemaHealth+`"`)):
				checkNotes(t, file, line, noted)
			}
		}
	}
	if healths < 50 || len(noted) < 7 {
		t.Errorf("only %d stage healths and the notes %v", healths, noted)
	}
}

func checkStage(t *testing.T, file string, line []byte) {
	t.Helper()
	h, err := schemas.ParseStageHealth(line)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	// Without a capture runner-exec reports instead of runner-capture.
	stages := []string{h.Stage}
	if h.Stage == schemas.StageExec {
		stages = append(stages, schemas.StageCapture)
	}
	for name := range h.Counters {
		if !slices.ContainsFunc(schemas.Counters[:], func(c schemas.Counter) bool {
			return slices.Contains(stages, c.Stage) && (c.Name == name || c.Each != "" && strings.HasPrefix(name, c.Name))
		}) {
			t.Errorf("%s: %s counts %s, which is not in the table", file, h.Stage, name)
		}
	}
	for name := range h.Facts {
		if !slices.ContainsFunc(stages, func(stage string) bool { _, ok := schemas.LookupFact(stage, name); return ok }) {
			t.Errorf("%s: %s reports the fact %s, which is not in the table", file, h.Stage, name)
		}
	}
	for id := range h.Filtered {
		if schemas.FilterReason(id) == "" && !strings.Contains(noise().String(), "`"+id+"`") {
			t.Errorf("%s: %s filters by %s, which is not in the table", file, h.Stage, id)
		}
	}
}

func checkNotes(t *testing.T, file string, line []byte, noted map[string]bool) {
	t.Helper()
	h, err := schemas.ParseHealth(line)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, text := range h.Notes {
		code, _, _ := schemas.CutNote(text)
		n, known := schemas.LookupNote(code)
		if !known {
			t.Errorf("%s: note %q is not in the table", file, text)
			continue
		}
		values, err := n.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again := make([]any, len(values))
		for i, v := range values {
			again[i] = v.Value
			if n.Shape == schemas.NoteOfCounts {
				again[i] = v
			}
		}
		if s := n.Format(again...); s != text {
			t.Errorf("%s: note %q is written as %q", file, text, s)
		}
		noted[code] = true
	}
}
