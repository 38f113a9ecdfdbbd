package main

import (
	"fmt"
	"os"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// rawStream writes a stream of n events: eight processes take turns, a tenth of the
// opens fail, a tenth load a library, and nearly all others open different files.
func rawStream(path string, n int) error { return rawEvents(path, n, schemas.ChecksumSHA256, typical) }

// rawEvents writes a stream of n events.
func rawEvents(path string, n int, checksum string, event func(i int) schemas.RawEvent) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	const run = "bench"
	w, err := stream.NewWriter(f, stream.Header{Stream: schemas.StreamRaw, RunID: run, Tool: "bench", Version: "v0", Checksum: checksum})
	if err != nil {
		return err
	}
	if err := w.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: run, Type: "run_started", AgentShim: "none",
		Command: []string{"make"}, EnvKeys: []string{}}); err != nil {
		return err
	}
	var line []byte
	for i := range n {
		e := event(i)
		line = e.AppendJSON(line[:0], run)
		if err := w.WriteRaw(line); err != nil {
			return err
		}
	}
	zero := 0
	if err := w.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: run, Seq: 1, Type: "run_finished", ExitCode: &zero, Success: true}); err != nil {
		return err
	}
	if err := w.Write(captureHealth(run, uint64(n))); err != nil {
		return err
	}
	return w.Seal(schemas.StatusComplete)
}

const processes, names = 8, 20_000

// typical is event i.
func typical(i int) schemas.RawEvent {
	e := schemas.RawEvent{Seq: uint64(i), KtimeNS: 4_473_330_889_664 + uint64(i)*2113, CgroupID: 14655,
		PID: 17404, TID: 17404, CPU: uint32(i % 2), CPUSeq: uint64(i / 2), Has: schemas.HasRet}
	if i < processes {
		e.Op, e.Has = "fork", schemas.HasChild
		e.ChildPID, e.ChildTID = 17405+uint32(i), 17405+uint32(i)
		return e
	}
	if i == processes {
		e.Op, e.PID, e.TID, e.Path, e.Has = "exec", 17405, 17405, []byte("/usr/bin/make"), 0
		return e
	}
	e.Op, e.PID = "openat", 17405+uint32(i/7%processes)
	e.TID, e.Has, e.Flags = e.PID, e.Has|schemas.HasFlags|schemas.HasMode, 0o2000000
	switch i % 10 {
	case 0:
		e.Ret = -2
		e.UserPath = fmt.Appendf(nil, "module_%d/missing_%d.go", i%13, i%997)
		e.Base = []byte("/home/user/src/project")
	case 1:
		e.Ret, e.Path = 3, []byte("/usr/lib/x86_64-linux-gnu/libc.so.6")
	default:
		e.Ret = 3 + int64(i%5)
		e.Path = fmt.Appendf(nil, "/home/user/src/project/module_%d/internal/package_%d/source_file_%d.go", i%13, i%97, i%names)
	}
	return e
}

// captureHealth is the health of a capture that lost nothing.
func captureHealth(run string, n uint64) schemas.StageHealth {
	h := schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: run, Stage: "runner-capture", In: n, Out: n,
		Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Notes: []string{},
		Facts: map[string]string{"platform": "linux", "kernel_capture": "attached", "canary_before": "seen", "canary_after": "seen",
			"hooks_missing": "", "io_uring": "attached", "unix_hooks": "attached", "redundant": "off", "supervisor": "exec", "end": "empty"}}
	for _, name := range []string{"dropped", "canary", "foreign", "decode_errors", "scratch_missing", "recursion_misses",
		"compat_unmapped", "io_uring_unmapped", "user_fault", "user_truncated", "path_fault", "path_truncated", "lexical",
		"escapes", "survivors_killed", "spooled_bytes", "inherited_fds"} {
		h.Counters[name] = 0
	}
	for _, name := range []string{"seen", "emitted", "read"} {
		h.Counters[name] = n
	}
	return h
}
