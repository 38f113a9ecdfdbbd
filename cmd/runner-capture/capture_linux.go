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

	"github.com/cilium/ebpf/ringbuf"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// news is what the goroutines around the ring loop tell it.
type news struct {
	canary  *error // the canary process ended
	control *schemas.Control
	fail    error // the run cannot go on
	empty   bool  // no process is left in the cgroup
	grace   bool  // the survivors' time is over
	signal  os.Signal
}

// phase is where the run stands.
type phase int

const (
	opening  phase = iota // hooks attached, first canary on its way
	running               // the cgroup is being watched
	closing               // the cgroup is empty or given up, second canary on its way
	draining              // hooks detached, the rest of the ring is read
)

// recorder is one capture. Only the ring loop touches it.
type recorder struct {
	opt   options
	env   *tool.Env
	ctx   context.Context
	ses   *bpf.Session
	ev    *events
	lines *lines
	sp    *spool
	sw    *stream.Writer
	news  chan news
	facts map[string]string

	phase    phase
	started  bool
	finished *schemas.Control
	pending  []news
	drains   int

	records  uint64 // read from the ring
	consumed uint64 // bytes of it
	until    uint64 // pending news is acted on from here, when the ring never runs empty
}

// capture is the whole run. On failure nothing is sealed, and a supervised cgroup
// is killed and removed: its processes must not go on unobserved.
func capture(ctx context.Context, env *tool.Env, opt options) (err error) {
	signal.Ignore(syscall.SIGPIPE) // a closed pipe is an error to report, after the clean-up
	if opt.rulesFile != "" {
		if opt.rules, err = readRules(opt.rulesFile); err != nil {
			return err
		}
	}
	if opt.make {
		if err := os.Mkdir(opt.cgroup, 0o755); err != nil {
			return cannot(fmt.Errorf("making the cgroup: %w", err))
		}
		defer os.Remove(opt.cgroup) // where nothing below got so far as to remove it
	}
	if opt.supervised {
		// From here on a failure kills what is in the cgroup.
		if err := cgroup.Killable(opt.cgroup); err != nil {
			return tool.Usagef("--supervised needs a cgroup of its own: %v", err)
		}
		at, held, holdErr := cgroup.Hold(opt.cgroup)
		if holdErr != nil {
			return tool.Fail(tool.ExitCannot, holdErr)
		}
		defer held.Close()
		opt.cgroup = at
		defer func() {
			err = errors.Join(err, cleanUp(opt, err != nil))
		}()
	}
	if !cgroup.IsV2(opt.cgroup) {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("%s is not a directory on a cgroup2 mount", opt.cgroup),
			"list cgroup2 mounts: grep cgroup2 /proc/self/mounts")
	}
	tool.Foreground()
	redundant := opt.redundant == "on" || opt.redundant == "auto" && bpf.NeedsRedundancy()
	t0 := time.Now()
	ses, err := bpf.Attach(bpf.Options{Cgroup: opt.cgroup, RingSize: opt.ringSize, Redundant: redundant, Rules: opt.rules})
	if err != nil {
		return cannot(err)
	}
	defer ses.Close()
	env.Infof("probes attached in %v", time.Since(t0).Round(time.Millisecond))

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sp := newSpool(opt.spoolSize)
	ls := newLines(opt.runID, sp)
	r := &recorder{opt: opt, env: env, ctx: ctx, ses: ses, sp: sp, lines: ls,
		ev: newEvents(opt.runID, ls), news: make(chan news, 16), facts: baseFacts(ses, opt)}
	return r.loop()
}

// cleanUp leaves no process and no cgroup behind.
func cleanUp(opt options, failed bool) error {
	if failed {
		if err := cgroup.Kill(opt.cgroup, 10*time.Second); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("killing what is left in %s: %w", opt.cgroup, err)
		}
	}
	if !opt.remove {
		return nil
	}
	return cgroup.Remove(opt.cgroup)
}

// tell hands news to the ring loop and wakes it, also where a full spool holds it.
func (r *recorder) tell(n news) {
	if n.fail != nil {
		r.sp.fail(n.fail)
	}
	select {
	case r.news <- n:
		r.ses.Ring.Flush()
	case <-r.ctx.Done():
	}
}

// loop reads the ring and follows the news, in turn, in one goroutine.
func (r *recorder) loop() error {
	if err := r.begin(); err != nil {
		return err
	}
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(sigs)
	go func() {
		for {
			select {
			case s := <-sigs:
				r.tell(news{signal: s})
			case <-r.ctx.Done():
				return
			}
		}
	}()
	var rec ringbuf.Record
	wait := bpf.Wait(r.opt.ringSize)
	r.ses.Ring.SetDeadline(time.Now().Add(wait))
	for {
		switch err := r.ses.Ring.ReadInto(&rec); {
		case err == nil:
			if err := r.ev.record(rec.RawSample); err != nil {
				return output(err)
			}
			if err := r.busy(len(rec.RawSample)); err != nil {
				return err
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrFlushed):
		default:
			return tool.Fail(tool.ExitIO, fmt.Errorf("reading the ring: %w", err))
		}
		// The ring has just been read to its end.
		if r.phase == draining {
			done, err := r.drained()
			if done || err != nil {
				return err
			}
			continue
		}
		if r.sw != nil {
			if err := r.lines.flush(); err != nil {
				return output(err)
			}
		}
		if err := r.follow(); err != nil {
			return err
		}
		r.ses.Ring.SetDeadline(time.Now().Add(wait))
	}
}

// busy follows the news while records keep coming: a program that fills the ring
// faster than it can be read must not keep the end of its supervisor, or of its
// time, from being noticed. What was in the ring when the news came is read first.
func (r *recorder) busy(size int) error {
	r.consumed += uint64(size+ringHeader+7) &^ 7
	if r.records++; r.records%1024 == 0 && len(r.pending) == 0 && r.phase != draining {
		r.collect()
		r.until = r.consumed + uint64(r.ses.Ring.AvailableBytes())
	}
	if len(r.pending) == 0 || r.until == 0 || r.consumed < r.until {
		return nil
	}
	return r.actAll()
}

// ringHeader is what the ring keeps in front of each record (BPF_RINGBUF_HDR_SZ).
const ringHeader = 8

// follow acts on the news that came before the ring was last read to its end.
func (r *recorder) follow() error {
	if err := r.actAll(); err != nil {
		return err
	}
	if r.collect(); len(r.pending) > 0 {
		r.ses.Ring.Flush() // once more to the end, then act
	}
	return nil
}

// collect takes what has been told.
func (r *recorder) collect() {
	for {
		select {
		case n := <-r.news:
			r.pending = append(r.pending, n)
		default:
			return
		}
	}
}

func (r *recorder) actAll() error {
	now := r.pending
	r.pending, r.until = nil, 0
	for _, n := range now {
		if err := r.act(n); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the first canary and, supervised, listens to runner-exec.
func (r *recorder) begin() error {
	r.startCanary("before")
	if r.opt.supervised {
		go func() {
			err := readControl(r.env.Stdin, func(c schemas.Control) { r.tell(news{control: &c}) })
			if err != nil {
				r.tell(news{fail: err})
			}
		}()
		return nil
	}
	tids, err := cgroup.Threads(r.opt.cgroup)
	if err != nil {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("listing the tasks of the cgroup: %w", err))
	}
	for _, t := range tids {
		r.ev.tasks[uint32(t)] = struct{}{}
	}
	return nil
}

func (r *recorder) startCanary(which string) {
	marker := canaryPath(r.opt.runID, which)
	r.ev.hold(marker)
	go func() {
		err := runCanary(r.ctx, r.opt.cgroup, marker)
		r.tell(news{canary: &err})
	}()
}

// act follows one piece of news. Everything that the kernel reported before it
// has been read.
func (r *recorder) act(n news) error {
	switch {
	case n.fail != nil:
		return tool.Fail(tool.ExitIO, n.fail)
	case n.canary != nil:
		return r.canaryEnded(*n.canary)
	case n.control != nil:
		return r.controlled(n.control)
	case n.empty && r.phase == running:
		return r.close(schemas.EndEmpty)
	case n.grace && r.phase == running:
		return r.killSurvivors()
	case n.signal != nil && r.phase == running:
		if r.opt.supervised {
			return tool.Failf(tool.ExitIO, "stopped by %v before the command ended", n.signal)
		}
		return r.close(schemas.EndSignal)
	case n.signal != nil && r.phase == opening:
		return tool.Failf(tool.ExitIO, "stopped by %v before the hooks were ready", n.signal)
	}
	return nil
}

func (r *recorder) canaryEnded(err error) error {
	if err != nil {
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
			return tool.Failf(tool.ExitCannot, "the hooks are attached but report nothing: the canary's open did not come through")
		}
	}
	return r.ready()
}

// ready tells the world that the hooks are attached: header, then ready line.
func (r *recorder) ready() error {
	var err error
	r.sw, err = r.lines.start(r.env.Stdout, stream.Header{Stream: schemas.StreamRaw, RunID: r.opt.runID,
		Tool: schemas.StageCapture, Version: tool.Version()}, func(err error) { r.tell(news{fail: fmt.Errorf("writing the stream: %w", err)}) })
	if err != nil {
		return output(err)
	}
	r.phase = running
	// Attaching left tens of megabytes behind; from here on little is allocated.
	debug.SetGCPercent(25)
	go debug.FreeOSMemory()
	if r.opt.ready >= 0 {
		f := os.NewFile(uintptr(r.opt.ready), "ready")
		if _, err := f.WriteString("ready\n"); err != nil {
			return tool.Fail(tool.ExitIO, fmt.Errorf("writing to the ready descriptor: %w", err))
		}
		f.Close()
	}
	if !r.opt.supervised {
		if err := r.lines.value(startedLine(r.opt.runID, &schemas.Control{AgentShim: schemas.ShimNone})); err != nil {
			return output(err)
		}
		go r.watch(true)
	}
	return nil
}

// watch waits for the cgroup to become empty. A cgroup that was there before may
// not have its first process yet: then it waits for that one, or for an event that
// says it has come and gone.
func (r *recorder) watch(first bool) {
	err := error(nil)
	if first {
		ctx, cancel := context.WithCancel(r.ctx)
		go func() {
			defer cancel()
			select {
			case <-r.ev.first:
			case <-ctx.Done():
			}
		}()
		err = cgroup.Wait(ctx, r.opt.cgroup, true)
		cancel()
		if r.ctx.Err() == nil && errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	if err == nil {
		err = cgroup.Wait(r.ctx, r.opt.cgroup, false)
	}
	if err != nil {
		r.tell(news{fail: fmt.Errorf("watching the cgroup: %w", err)})
		return
	}
	r.tell(news{empty: true})
}

func (r *recorder) controlled(c *schemas.Control) error {
	switch c.Op {
	case "started":
		r.ev.n.inheritedFD = c.InheritedFDs
		r.started = true
		if err := r.lines.value(startedLine(r.opt.runID, c)); err != nil {
			return output(err)
		}
	case "finished":
		if !r.started {
			return tool.Failf(tool.ExitIO, "control line finished before started")
		}
		r.finished = c
		go r.watch(false)
		if grace := r.opt.grace; grace >= 0 {
			time.AfterFunc(grace, func() { r.tell(news{grace: true}) })
		}
	default:
		return tool.Failf(tool.ExitIO, "control operation %q is not known", c.Op)
	}
	return nil
}

// killSurvivors ends what outlived the command by more than the grace time. It is
// observed to its end, and counted.
func (r *recorder) killSurvivors() error {
	pids, err := cgroup.Processes(r.opt.cgroup)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	if len(pids) == 0 {
		return nil // the news that it is empty is on its way
	}
	r.ev.n.survivorsKilled += uint64(len(pids))
	r.facts[schemas.FactEnd] = schemas.EndKilled
	go func() {
		if err := cgroup.Kill(r.opt.cgroup, time.Minute); err != nil {
			r.tell(news{fail: fmt.Errorf("killing survivors: %w", err)})
		}
	}()
	return nil
}

func (r *recorder) close(end string) error {
	if r.facts[schemas.FactEnd] == "" {
		r.facts[schemas.FactEnd] = end
	}
	r.phase = closing
	if r.opt.supervised {
		cgroup.Thaw(r.opt.cgroup) // what is left frozen would hold the canary too
	}
	r.startCanary("after")
	return nil
}

func output(err error) error {
	return tool.Fail(tool.ExitIO, fmt.Errorf("writing the stream: %w", err))
}
