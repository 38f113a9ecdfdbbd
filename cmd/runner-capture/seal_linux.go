package main

import (
	"errors"
	"math"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

func startedLine(runID string, c *schemas.Control) schemas.RunStarted {
	return schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: runID, Type: schemas.TypeRunStarted,
		AgentShim: c.AgentShim, Command: c.Command, EnvKeys: c.EnvKeys}
}

func finishedLine(runID string, c *schemas.Control) schemas.RunFinished {
	f := schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: runID, Seq: 1, Type: schemas.TypeRunFinished}
	if c != nil { // no command was seen to end in a cgroup that existed before
		f.ExitCode, f.Signal = c.ExitCode, c.Signal
		f.Success = c.ExitCode != nil && *c.ExitCode == 0
	}
	return f
}

func baseFacts(ses *bpf.Session, opt options) map[string]string {
	f := map[string]string{
		schemas.FactPlatform: schemas.PlatformLinux, schemas.FactKernelCapture: schemas.CaptureAttached, schemas.FactHooksMissing: "",
		schemas.FactCanaryBefore: schemas.NotRun, schemas.FactCanaryAfter: schemas.NotRun,
		schemas.FactIOUring: ses.IOUring, schemas.FactIOUringForm: ses.IOUringForm, schemas.FactLoaded: ses.Loaded(), schemas.FactUnixHooks: ses.Unix,
		schemas.FactPathObjects: ses.PathObjects, schemas.FactResults: ses.Results,
		schemas.FactRedundant: ses.Redundant, schemas.FactSupervisor: schemas.SupervisorNone, schemas.FactEnd: "",
		schemas.FactPreemption: ses.Preemption.String(),
	}
	if ses.Shares() {
		f[schemas.FactProbes] = schemas.ProbesShared
	}
	f[schemas.FactArguments], f[schemas.FactArgumentsKey] = opt.arguments.Mode, opt.arguments.Key.Fact()
	var own unix.Stat_t
	if unix.Stat("/proc/self/ns/mnt", &own) == nil {
		f[schemas.FactMountNS] = strconv.FormatUint(own.Ino, 10)
	}
	enforcing(f, schemas.EnforcedNetwork, opt.rules)
	enforcing(f, schemas.EnforcedFiles, opt.files)
	if opt.supervised {
		f[schemas.FactSupervisor] = schemas.SupervisorExec
	}
	return f
}

// drained seals the stream when everything that was emitted has been read. A probe
// that was still running on another CPU when its link was closed commits a moment
// later: the ring is read a few times more before the difference is taken for a loss.
func (r *captureRun) drained() (bool, error) {
	st, err := r.ses.Stats()
	if err != nil {
		return false, tool.Fail(tool.ExitIO, err)
	}
	if (st.Emitted != r.ev.n.read || st.Seen != st.Emitted+st.Dropped) && r.drains < 20 {
		r.drains++
		time.Sleep(5 * time.Millisecond)
		return false, r.ses.Ring.Flush()
	}
	return true, r.seal(st)
}

// seal writes how the command ended, the health record and the trailer. The hooks
// are detached and the ring is read to its end: the counters are final.
func (r *captureRun) seal(st bpf.Stats) error {
	if err := r.ev.settleAll(); err != nil {
		return output(err)
	}
	if err := r.ev.insert(r.guard.before(math.MaxUint64)); err != nil {
		return output(err)
	}
	if lost := r.guard.lost(); lost > 0 {
		st.Seen, st.Dropped = st.Seen+lost, st.Dropped+lost
		st.DroppedByOp[schemas.OpFileBlocked] += lost
	}
	if err := r.lines.value(finishedLine(r.opt.runID, r.finished)); err != nil {
		return output(err)
	}
	if err := r.lines.finish(); err != nil {
		return output(err)
	}
	st.MissedExits(r.unended())
	if r.facts[schemas.FactRedundant] == bpf.RedundantOn {
		r.facts[schemas.FactRedundant] = schemas.RedundantOn(st.Lost)
	}
	if found := schemas.FormatInterference(r.ses.Interference(r.consumed)); found != "" {
		r.facts[schemas.FactInterference] = found
	}
	r.ev.n.escapes += possibleEscapes(st, r.ev.n.foreign)
	if found := r.ev.engines.fact(r.ev.n.escapes > 0); found != "" {
		r.facts[schemas.FactEngines] = found
	}
	h, err := r.captureHealth(st)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	status := r.status(st)
	if err := r.sw.Write(h); err != nil {
		return output(err)
	}
	if err := r.sw.Seal(status); err != nil {
		return output(err)
	}
	if err := r.env.Written(); err != nil {
		return output(err)
	}
	r.tellLosses(st)
	r.env.Infof("%d events, %d dropped, status %s", h.Out, st.Dropped, status)
	return nil
}

// tellLosses says what is missing, and what helps. A loss is a warning, so -q does not hide it.
func (r *captureRun) tellLosses(st bpf.Stats) {
	if n := st.Dropped; n > 0 {
		r.env.Warnf("%d events were lost, and the record says so; a larger ring helps: --ring-size %dM", n, max(32, 2*r.opt.ringSize>>20))
	}
	r.ev.engines.tell(r.env, r.ev.n.escapes)
	if r.ev.n.out == 0 {
		r.env.Sayf("nothing was observed; to refuse such a record: runner-verify --require events>0")
	}
}

// possibleEscapes are the moves out of the scope that drops and misses leave in doubt. A
// move that has no record can have been one of the run's tasks, and so can one of a task
// that no fork or exec named, when some of those have no record. What cannot be ruled out
// is an escape: the record must not say that all of the command is in it.
func possibleEscapes(st bpf.Stats, foreign uint64) uint64 {
	none := func(op string) uint64 { return st.DroppedByOp[op] + st.Missed[op] }
	n := none(schemas.OpMove)
	if none(schemas.OpFork)+none(schemas.OpExec) > 0 {
		n += foreign
	}
	return n
}

// unended is how many tasks were not seen to end, although the cgroup is empty.
func (r *captureRun) unended() uint64 {
	if r.facts[schemas.FactEnd] == schemas.EndSignal {
		return 0
	}
	return uint64(len(r.ev.tasks.process))
}

// captureHealth is the stage health, with all counters.
func (r *captureRun) captureHealth(st bpf.Stats) (*schemas.StageHealth, error) {
	n := &r.ev.n
	h := &schemas.StageHealth{
		Schema: schemas.SchemaStageHealth, RunID: r.opt.runID, Stage: schemas.StageCapture,
		In: n.out, Out: n.out, Filtered: map[string]uint64{}, Facts: r.facts, Notes: []string{},
		Counters: map[string]uint64{
			schemas.CounterSeen: st.Seen, schemas.CounterEmitted: st.Emitted, schemas.CounterDropped: st.Dropped, schemas.CounterRead: n.read,
			schemas.CounterCanary: n.canary, schemas.CounterForeign: n.foreign, schemas.CounterDecodeErrors: n.decodeErrors,
			schemas.CounterScratchMissing: st.ScratchMissing, schemas.CounterRecursionMisses: st.RecursionMisses,
			schemas.CounterCompatUnmapped: st.CompatUnmapped, schemas.CounterIOUringUnmapped: st.IOUringUnmapped,
			schemas.CounterUserFault: n.userFault, schemas.CounterUserTruncated: n.userTruncated,
			schemas.CounterPathFault: n.pathFault, schemas.CounterPathTruncated: n.pathTruncated, schemas.CounterLexical: n.lexical,
			schemas.CounterEscapes: n.escapes, schemas.CounterSurvivorsKilled: n.survivorsKilled,
			schemas.CounterSpooledBytes: r.sp.Spooled, schemas.CounterInheritedFDs: n.inheritedFD, schemas.CounterCoveredMisses: st.CoveredMisses,
		},
	}
	for name, n := range map[string]uint64{schemas.CounterOutcomes: n.outcomes, schemas.CounterChanged: n.changed, schemas.CounterUnproven: n.unproven,
		schemas.CounterForeignSockets: st.Foreign, schemas.CounterCoreDumps: n.coreDumps, schemas.CounterRoots: n.roots, schemas.CounterEarlier: n.earlier,
		schemas.CounterSharedArguments: st.SharedArguments, schemas.CounterReceived: st.Received} {
		if n > 0 {
			h.Counters[name] = n
		}
	}
	for probe, n := range st.Missed {
		h.Counters[schemas.CounterMissed+probe] = n
	}
	for op, n := range st.DroppedByOp {
		h.Counters[schemas.CounterDroppedByOp+op] = n
	}
	blocked, err := r.ses.Blocked()
	refusals(h.Counters, schemas.EnforcedNetwork, r.opt.rules, blocked)
	return h, errors.Join(err, r.fileCounters(h.Counters))
}

// fileCounters adds what is counted under file rules.
func (r *captureRun) fileCounters(counters map[string]uint64) error {
	if r.guard == nil {
		return nil
	}
	files, err := r.ses.FileBlocked()
	refusals(counters, schemas.EnforcedFiles, r.opt.files, r.guard.refused(files))
	counters[schemas.CounterFileInserted] = r.guard.inserted
	unresolved, unresolvedErr := r.ses.FileUnresolved()
	for name, n := range map[string]uint64{schemas.CounterFileRulesAuto: r.opt.files.Automatic(), schemas.CounterFileUnresolved: unresolved} {
		if n > 0 {
			counters[name] = n
		}
	}
	return errors.Join(err, unresolvedErr)
}

// status is complete if nothing was lost and both canaries were seen.
func (r *captureRun) status(st bpf.Stats) schemas.Status {
	n := &r.ev.n
	if st.Dropped+st.ScratchMissing+st.RecursionMisses+st.CompatUnmapped+st.IOUringUnmapped+st.Lost+n.decodeErrors+n.escapes > 0 ||
		st.Seen != st.Emitted+st.Dropped || st.Emitted != n.read ||
		r.facts[schemas.FactInterference]+r.facts[schemas.FactEngines] != "" ||
		r.facts[schemas.FactCanaryBefore] != schemas.CanarySeen || r.facts[schemas.FactCanaryAfter] != schemas.CanarySeen {
		return schemas.StatusPartial
	}
	return schemas.StatusComplete
}
