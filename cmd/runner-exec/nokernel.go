package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// rawStream is the raw stream of a run that no one watched: the two run events
// and a health record that says so. Every counter of runner-capture is there,
// as 0, so that the stages behind need no special case.
type rawStream struct {
	opt   Options
	w     *os.File
	owned bool // w is a pipe of ours, to be closed at the end
	s     *stream.Writer
}

var captureCounters = [...]string{
	"canary", "compat_unmapped", "decode_errors", "dropped", "emitted", "escapes", "foreign",
	"inherited_fds", "io_uring_unmapped", "lexical", "path_fault", "path_truncated", "read",
	"recursion_misses", "scratch_missing", "seen", "spooled_bytes", "survivors_killed",
	"user_fault", "user_truncated",
}

func (r *rawStream) open() (err error) {
	r.s, err = stream.NewWriter(r.w, stream.Header{Stream: schemas.StreamRaw, RunID: r.opt.RunID,
		Tool: "runner-exec", Version: tool.Version()})
	return r.wrap(err)
}

func (r *rawStream) started(o Options) error {
	r.s.Write(o.runStarted())
	return r.wrap(r.s.Flush())
}

func (r *rawStream) finished(e child.Ending) error {
	defer r.abandon()
	r.s.Write(runFinished(r.opt.RunID, e))
	r.s.Write(r.health())
	// Nobody observed the kernel layer: that is a hole, so never complete.
	return r.wrap(r.s.Seal(schemas.StatusPartial))
}

func (r *rawStream) abandon() {
	if r.owned {
		r.w.Close()
	}
}

func (r *rawStream) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("writing the raw stream: %w", err)
	}
	return nil
}

func (r *rawStream) health() schemas.StageHealth {
	counters := map[string]uint64{}
	for _, name := range captureCounters {
		counters[name] = 0
	}
	capture := "unsupported"
	if runtime.GOOS == "linux" {
		capture = "not_requested"
	}
	return schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: r.opt.RunID, Stage: "runner-exec",
		Filtered: map[string]uint64{}, Counters: counters, Notes: []string{},
		Facts: map[string]string{
			"canary_after": "not_run", "canary_before": "not_run", "end": "not_run", "hooks_missing": "",
			"io_uring": "not_run", "kernel_capture": capture, "platform": platform(runtime.GOOS),
			"redundant": "off", "supervisor": "exec", "unix_hooks": "not_run",
		}}
}

// platform is the contract's name for a Go operating system.
func platform(goos string) string {
	if goos == "darwin" {
		return "macos"
	}
	return goos
}
