package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

func sdkEvents(text string) []byte {
	var b strings.Builder
	n := 0
	for _, l := range strings.Split(text, "\n") {
		f := strings.Fields(l)
		if len(f) == 0 {
			continue
		}
		kind, rest := map[string]string{"started": "tool_call_started", "completed": "tool_call_completed", "finished": "run_finished", "failed": "run_failed"}[f[0]], ""
		switch {
		case kind == "":
			b.WriteString(l + "\n")
			continue
		case len(f) >= 3:
			rest = fmt.Sprintf(`,"tool_call_id":%q,"tool":%q`, f[1], f[2])
			if len(f) > 3 { // the digest of its arguments
				rest += fmt.Sprintf(`,"arguments_digest":"sha256:%s"`, strings.Repeat(f[3][1:], 64))
			}
		}
		fmt.Fprintf(&b, `{"schema":"assay.runner.sdk_event.v0","run_id":%q,"seq":%d,"event_type":%q,"source":"openai-agents","sdk_name":"@openai/agents","sdk_version":"1"%s}`+"\n", testRun, n, kind, rest)
		n++
	}
	return []byte(b.String())
}
