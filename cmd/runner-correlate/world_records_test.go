package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// records writes the records of wrappers, and returns the flag for them.
func (w world) records(t testing.TB) []string {
	t.Helper()
	if w.record == nil {
		return nil
	}
	dir := t.TempDir()
	for _, p := range record.Places {
		lines, there := w.record[p.Stream]
		if !there {
			continue
		}
		testkit.Must(t, os.Mkdir(filepath.Join(dir, p.Dir), 0o755))
		f, err := os.Create(filepath.Join(dir, p.File))
		testkit.Must(t, err)
		out, err := stream.NewWriter(f, stream.Header{Stream: p.Stream, RunID: testRun, Tool: p.Dir, Version: "test"})
		testkit.Must(t, err)
		for _, line := range lines {
			testkit.Must(t, out.Write(line))
		}
		testkit.Must(t, out.Seal(schemas.StatusComplete))
		testkit.Must(t, f.Close())
	}
	return []string{"--record", dir}
}
