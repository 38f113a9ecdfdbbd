package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"runner/cmd/internal/tool"
	"runner/schemas"
	"runner/schemas/stream"
)

// TestMain lets the test binary stand in for the tool, where a test measures a
// whole process.
func TestMain(m *testing.M) {
	if os.Getenv("RUNNER_TEST_AS_TOOL") == "1" {
		tool.Main(app())
	}
	os.Exit(m.Run())
}

// TestMemory joins a stream whose surface is several times larger than the set
// in memory, and looks at the peak of the process's resident memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT TESTED: memory over a large stream takes seconds; run without -short")
	}
	const lines, limit = 400000, 64 << 10 // KiB
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "RUNNER_TEST_AS_TOOL=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	go func() {
		defer in.Close()
		manyNames(t, in, lines)
	}()
	r, err := stream.NewReader(bufio.NewReader(out), "out", schemas.StreamJoined)
	must(t, err)
	entries := 0
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		if rec.Schema == schemas.SchemaSurfaceEntry {
			entries++
		}
	}
	must(t, cmd.Wait())
	if entries != lines {
		t.Errorf("%d surface entries, expected %d", entries, lines)
	}
	if rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; rss > limit {
		t.Errorf("peak of %d KiB resident, at most %d", rss, limit)
	}
}

// manyNames writes a stream in which every line has a name of its own.
func manyNames(t *testing.T, w io.Writer, n int) {
	s, err := stream.NewWriter(w, stream.Header{Stream: schemas.StreamNormalized, RunID: testRun, Tool: "runner-normalize", Version: "test"})
	if err != nil {
		t.Error(err)
		return
	}
	s.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: testRun, Type: "run_started", AgentShim: "none", Command: []string{}, EnvKeys: []string{}})
	s.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: testRun, Seq: 1, Type: "run_finished"})
	var line, name []byte
	for i := range n {
		name = fmt.Appendf(name[:0], "/home/user/some/where/below/%x/file%d", uint64(i)*0x9e3779b97f4a7c15, i)
		e := ev(schemas.EventOpenat, "")
		e.Seq, e.Value = uint64(i), name
		line = e.AppendJSON(line[:0], testRun)
		s.WriteRaw(line)
	}
	c, nz := healths(uint64(n), uint64(n))
	s.Write(c)
	s.Write(nz)
	if err := s.Seal(schemas.StatusComplete); err != nil {
		t.Error(err)
	}
}
