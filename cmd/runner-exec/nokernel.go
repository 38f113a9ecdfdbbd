package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// rawStream is the raw stream of a run without runner-capture: the two run events
// and a health record which says that there was no capture. It has every counter of
// runner-capture, as 0, so that the later stages need no special case.
type rawStream struct {
	opt   Options
	w     *os.File
	owned bool // w is our own pipe, which is closed at the end
	s     *stream.Writer
	clock schemas.RunClock // at run_started, in a run with times
}

func (r *rawStream) open() (err error) {
	r.s, err = stream.NewWriter(r.w, stream.Header{Stream: schemas.StreamRaw, RunID: r.opt.RunID,
		Tool: schemas.StageExec, Version: tool.Version(), Checksum: r.opt.checksum()})
	return r.wrap(err)
}

func (r *rawStream) started(o Options) error {
	if o.Times {
		r.clock = clock.Both()
	}
	r.s.Write(o.runStarted())
	return r.wrap(r.s.Flush())
}

func (r *rawStream) finished(e child.Ending) error {
	defer r.abandon()
	r.s.Write(runFinished(r.opt.RunID, e))
	r.s.Write(r.health())
	// Nothing observed the kernel layer, so the record is never complete.
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
	counters, facts := map[string]uint64{}, map[string]string{}
	for _, name := range schemas.CountersOf(schemas.StageCapture, "") {
		counters[name] = 0
	}
	for _, f := range schemas.FactsOf(schemas.StageCapture, "") {
		facts[f.Name] = schemas.NotRun
	}
	facts[schemas.FactHooksMissing] = ""
	facts[schemas.FactKernelCapture] = schemas.CaptureUnsupported
	if runtime.GOOS == schemas.PlatformLinux {
		facts[schemas.FactKernelCapture] = schemas.CaptureNotRequested
	}
	facts[schemas.FactPlatform] = platform(runtime.GOOS)
	facts[schemas.FactRedundant] = schemas.RedundantOff
	facts[schemas.FactSupervisor] = schemas.SupervisorExec
	if names := r.opt.Confine.InForce(); len(names) > 0 {
		facts[schemas.FactConfined] = schemas.JoinConfined(names)
	}
	if r.opt.Times {
		facts[schemas.FactRunClock] = schemas.RunSpan{RunClock: r.clock, FinishedNS: clock.Monotonic() - r.clock.MonotonicNS}.String()
	}
	return schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: r.opt.RunID, Stage: schemas.StageExec,
		Filtered: map[string]uint64{}, Counters: counters, Facts: facts, Notes: []string{}}
}

// platform is the contract's name for a Go operating system.
func platform(goos string) string {
	if goos == "darwin" {
		return "macos"
	}
	return goos
}
