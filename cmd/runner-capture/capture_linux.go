package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// phase is how far the run is.
type phase int

const (
	opening  phase = iota // hooks attached, first canary on its way
	running               // the cgroup is being watched
	closing               // the cgroup is empty or given up, second canary on its way
	draining              // hooks detached, the rest of the ring is read
)

// captureRun is one capture. Only the ring loop touches it.
type captureRun struct {
	opt      options
	env      *tool.Env
	ctx      context.Context
	ses      *bpf.Session
	ev       *events
	lines    *lines
	sp       *spool
	sw       *stream.Writer
	messages chan message
	facts    map[string]string
	guard    *fileGuard // nil without file rules
	closer   *closer    // nil without one

	phase    phase
	started  bool
	finished *schemas.Control
	clock    *schemas.RunClock // when the command was started, in a run with times
	pending  []message
	drains   int

	records  uint64 // read from the ring
	consumed uint64 // bytes of it
	until    uint64 // pending messages are acted on from here, if the ring never runs empty
}

// capture is one capture. If nobody reads the stream any more, a supervised one ends as any
// stage does whose reader has gone: by SIGPIPE, without a word. runner-exec knows why the
// reader has gone, and says it.
func capture(ctx context.Context, env *tool.Env, opt options) error {
	signal.Ignore(syscall.SIGPIPE) // the clean-up comes first
	debug.SetGCPercent(unsettled)
	err := observe(ctx, env, opt)
	if opt.supervised && errors.As(err, new(*unreadError)) {
		tool.EndUnread()
	}
	return err
}

// observe is the whole run. On failure nothing is sealed, and a supervised cgroup
// is killed and removed: its processes must not run on unobserved.
func observe(ctx context.Context, env *tool.Env, opt options) (reason error) {
	var err error
	if opt.rules, err = readRules(opt.rulesFile, schemas.ParseNetworkRules); err != nil {
		return err
	}
	if opt.files, err = readRules(opt.filesFile, schemas.ParseFileRules); err != nil {
		return err
	}
	if opt.make {
		if err := os.Mkdir(opt.cgroup, 0o755); err != nil {
			return cannot(fmt.Errorf("making the cgroup: %w", err))
		}
		defer os.Remove(opt.cgroup) // for an error before the clean-up below is set up
	}
	if opt.probes == schemas.ProbesAuto && cgroup.InsideRun(opt.cgroup) {
		opt.probes = schemas.ProbesOwn // to look at those that are shared would make every run that shares them incomplete
	}
	early := bpf.StartRing(opt.ringSize)
	defer early.Close()
	var guard *fileGuard
	var last *closer
	if opt.supervised {
		release, c, err := takeCgroup(&opt)
		if err != nil {
			return err
		}
		last = c
		defer func() {
			reason = release(reason)
			guard.close() // not before: what waits for an answer then goes on
		}()
	}
	if !cgroup.IsV2(opt.cgroup) {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("%s is not a directory on a cgroup2 mount", opt.cgroup),
			"list cgroup2 mounts: grep cgroup2 /proc/self/mounts")
	}
	if !opt.supervised {
		watch, err := cgroup.Watch(opt.cgroup)
		if err != nil {
			return tool.Fail(tool.ExitCannot, err)
		}
		defer watch.Close()
	}
	tool.Foreground()
	copies := map[string]bpf.Copies{"auto": bpf.CopiesAuto, "off": bpf.CopiesOff, "on": bpf.CopiesOn}[opt.redundant]
	t0 := time.Now()
	noLSM, err := lookAtFiles(opt)
	if err != nil {
		return err
	}
	ses, noLSM, err := attachWithFiles(bpf.Options{Cgroup: opt.cgroup, RingSize: opt.ringSize, Early: early, Supervised: opt.supervised, Copies: copies,
		Without: bpf.ParseParts(opt.without), Probes: bpf.ParseProbes(opt.probes), Rules: opt.rules, Arguments: opt.arguments.Mode != schemas.ArgvNone}, opt, noLSM)
	if err != nil {
		return cannot(err)
	}
	defer ses.Close()
	env.Infof("probes attached in %v", time.Since(t0).Round(time.Millisecond))

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sp := newSpool(opt.spoolSize)
	ls := newLines(opt.runID, sp)
	r := &captureRun{opt: opt, env: env, ctx: ctx, ses: ses, sp: sp, lines: ls,
		ev: newEvents(opt.runID, ls), messages: make(chan message, 16), facts: baseFacts(ses, opt)}
	r.ev.dec.FirstSeq = ses.FirstSeq
	r.ev.dec.Hooks, r.ev.arguments = &ses.Hooks, opt.arguments
	if opt.files != nil {
		guard, err = chooseFiles(opt, noLSM, func(err error) { r.post(message{fail: err}) })
		if err != nil {
			return err
		}
	}
	r.guard, r.ev.guard, r.closer = guard, guard, last
	if r.guard != nil {
		r.facts[schemas.FactFileMechanism] = r.guard.mechanism
	}
	return r.loop()
}

// readyLine is what runner-exec waits for.
func (r *captureRun) readyLine() ([]byte, error) {
	ready := schemas.Ready{}
	if r.guard != nil {
		ready = r.guard.ready
	}
	ready.Schema = schemas.SchemaReady
	line, err := schemas.Marshal(ready)
	return append(line, '\n'), err
}

// begin starts the first canary and, supervised, listens to runner-exec.
func (r *captureRun) begin() error {
	if r.opt.supervised {
		r.startCanary("before")
		go func() {
			err := readControl(r.env.Stdin, func(c schemas.Control) { r.post(message{control: &c}) })
			if err != nil {
				r.post(message{fail: err})
			}
		}()
		return nil
	}
	tids, err := cgroup.Threads(r.opt.cgroup) // before the canary is one of them
	if err != nil {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("listing the tasks of the cgroup: %w", err))
	}
	r.ev.found(tids)
	r.startCanary("before")
	return nil
}

func (r *captureRun) startCanary(which string) {
	marker := canaryPath(r.opt.runID, which)
	r.ev.hold(marker)
	go func() {
		end := runCanary(r.opt.cgroup, marker)
		r.post(message{canary: &end})
	}()
}

func (r *captureRun) canaryEnded(end *canaryEnd) error {
	r.ev.dead = end.dead
	if err := end.err; err != nil {
		if r.phase == opening {
			return cannot(err)
		}
		r.env.Warnf("%v", err)
	}
	seen, err := r.ev.release()
	if err != nil {
		return output(err)
	}
	word := map[bool]string{true: schemas.CanarySeen, false: schemas.CanaryMissed}[seen]
	if r.phase == closing {
		r.facts[schemas.FactCanaryAfter] = word
		r.phase = draining
		if err := r.ses.Quiet(); err != nil {
			return tool.Fail(tool.ExitIO, fmt.Errorf("detaching: %w", err))
		}
		return nil
	}
	r.facts[schemas.FactCanaryBefore] = word
	if !seen {
		st, _ := r.ses.Stats()
		if st.Dropped == 0 {
			return tool.Failf(tool.ExitCannot, "the hooks are attached but report nothing: the canary's call did not come through")
		}
	}
	return r.ready()
}

// ready announces that the hooks are attached: header, then ready line.
func (r *captureRun) ready() error {
	if err := r.closer.running(); err != nil {
		return cannot(err)
	}
	var err error
	r.sw, err = r.lines.start(r.env.Stdout, stream.Header{Stream: schemas.StreamRaw, RunID: r.opt.runID,
		Tool: schemas.StageCapture, Version: tool.Version(), Checksum: r.opt.checksum}, func(err error) { r.post(message{fail: writing(err)}) })
	if err != nil {
		return output(err)
	}
	r.phase = running
	time.AfterFunc(settled, settle)
	defer func() { go prepare() }() // after the ready line
	if r.opt.ready >= 0 {
		f := os.NewFile(uintptr(r.opt.ready), "ready")
		line, err := r.readyLine()
		if err == nil {
			_, err = f.Write(line)
		}
		if err != nil {
			return tool.Fail(tool.ExitIO, fmt.Errorf("writing to the ready descriptor: %w", err))
		}
		f.Close()
	}
	if !r.opt.supervised {
		if err := r.lines.value(startedLine(r.opt.runID, &schemas.Control{AgentShim: schemas.ShimNone})); err != nil {
			return output(err)
		}
		if some, err := cgroup.Populated(r.opt.cgroup); err == nil && !some {
			r.env.Sayf("%s is empty: waiting for its first process", schemas.Text(r.opt.cgroup))
		}
		go r.awaitEmpty(true)
	}
	return nil
}

// awaitEmpty waits for the cgroup to become empty. A cgroup that was there before may
// not have its first process yet: then it waits for that one, or for an event that
// says that it has come and gone.
func (r *captureRun) awaitEmpty(first bool) {
	err := error(nil)
	if first {
		ctx, stopWaiting := context.WithCancel(r.ctx)
		go func() {
			defer stopWaiting()
			select {
			case <-r.ev.first:
			case <-ctx.Done():
			}
		}()
		err = cgroup.Wait(ctx, r.opt.cgroup, true)
		stopWaiting()
		if r.ctx.Err() == nil && errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	if err == nil {
		err = cgroup.Wait(r.ctx, r.opt.cgroup, false)
	}
	if err != nil {
		r.post(message{fail: fmt.Errorf("watching the cgroup: %w", err)})
		return
	}
	r.post(message{empty: true})
}

func (r *captureRun) controlled(c *schemas.Control) error {
	switch c.Op {
	case schemas.ControlStarted:
		if c.Clock != nil {
			if _, err := runSpan(*c.Clock, c.Clock.MonotonicNS); err != nil {
				return tool.Fail(tool.ExitIO, err)
			}
		}
		if err := schemas.CheckConfined(c.Confined); err != nil {
			return tool.Fail(tool.ExitIO, fmt.Errorf("control line: %w", err))
		}
		if len(c.Confined) > 0 {
			r.facts[schemas.FactConfined] = schemas.JoinConfined(c.Confined)
		}
		r.ev.n.inheritedFD = c.InheritedFDs
		r.started, r.clock = true, c.Clock
		if err := r.lines.value(startedLine(r.opt.runID, c)); err != nil {
			return output(err)
		}
	case schemas.ControlFinished:
		if !r.started {
			return tool.Failf(tool.ExitIO, "control line finished before started")
		}
		r.finished = c
		if r.clock != nil {
			span, err := runSpan(*r.clock, c.MonotonicNS)
			if err != nil {
				return tool.Fail(tool.ExitIO, err)
			}
			r.facts[schemas.FactRunClock] = span.String()
		}
		go r.awaitEmpty(false)
		if grace := r.opt.grace; grace >= 0 {
			time.AfterFunc(grace, func() { r.post(message{grace: true}) })
			if grace > tellAfter {
				time.AfterFunc(tellAfter, func() { r.post(message{waiting: true}) })
			}
		}
	default:
		return tool.Failf(tool.ExitIO, "control operation %q is not known", c.Op)
	}
	return nil
}

// tellAfter is how long a wait for survivors may last without a word.
const tellAfter = time.Second

// tellWaiting says what the run waits for.
func (r *captureRun) tellWaiting() {
	if pids, err := cgroup.Processes(r.opt.cgroup); err == nil && len(pids) > 0 {
		r.env.Sayf("the command has ended: waiting up to %v for %d of its processes (--grace), then killing them", r.opt.grace, len(pids))
	}
}

// killSurvivors ends what outlived the command by more than the grace time. It is
// observed to its end, and counted.
func (r *captureRun) killSurvivors() error {
	pids, err := cgroup.Processes(r.opt.cgroup)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	if len(pids) == 0 {
		return nil // the message that it is empty is on its way
	}
	r.env.Sayf("killing %d of the command's processes, which still ran %v after its end (--grace)", len(pids), r.opt.grace)
	r.ev.n.survivorsKilled += uint64(len(pids))
	r.facts[schemas.FactEnd] = schemas.EndKilled
	go func() {
		if err := cgroup.Kill(r.opt.cgroup, time.Minute); err != nil {
			r.post(message{fail: fmt.Errorf("killing survivors: %w", err)})
		}
	}()
	return nil
}

func (r *captureRun) close(endedBy string) error {
	if r.facts[schemas.FactEnd] == "" {
		r.facts[schemas.FactEnd] = endedBy
	}
	r.phase = closing
	if r.opt.supervised {
		cgroup.Thaw(r.opt.cgroup) // a process left frozen would hold up the canary too
	}
	r.startCanary("after")
	return nil
}

func output(err error) error { return tool.Fail(tool.ExitIO, writing(err)) }

func writing(err error) error {
	said := fmt.Errorf("writing the stream: %w", err)
	if errors.Is(err, syscall.EPIPE) {
		return &unreadError{said}
	}
	return said
}

// unreadError: the reader of the stream has gone.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// settled is how long after the start memory is given back. To collect it takes processor time, at the highest priority,
// while the measured program starts: a program that runs for less than that has none of it.
const settled = time.Second

// unsettled is how the collector runs until then: attaching takes much memory for a moment, and to look for what is free in it
// takes time.
const unsettled = 100

// settle gives back what attaching left: tens of megabytes of garbage. From here on little is allocated.
func settle() {
	debug.SetGCPercent(25)
	debug.FreeOSMemory()
}
