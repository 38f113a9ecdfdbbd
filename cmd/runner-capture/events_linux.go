package main

import (
	"bytes"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/schemas"
)

// counts are what user space adds to the probes' counters.
type counts struct {
	read, canary, foreign, decodeErrors   uint64
	userFault, userTruncated              uint64
	pathFault, pathTruncated, lexical     uint64
	escapes, survivorsKilled, inheritedFD uint64
	changed, unproven                     uint64
	outcomes                              uint64 // records that only complete another one
	coreDumps, roots, earlier             uint64
	out                                   uint64
}

// events turns ring records into lines. It knows the tasks of the scope, so that
// it can decide whose move out of the cgroup matters.
type events struct {
	runID string
	dec   bpf.Decoder
	out   *lines
	guard *fileGuard // nil without file rules

	arguments arguments.Describer
	n         counts
	seq       uint64

	tasks       scopeTasks
	engines     engines
	interrupted interrupted
	lastTID     uint32
	first       chan struct{} // closed by the first event that is not the canary's

	// While a canary runs, every event waits here: which process is the canary is
	// known only once its one open came through.
	holding   bool
	marker    string
	canaryPID uint32
	sawCanary bool
	usual     map[string]bool // what the first canary did
	dead      []uint64        // ids of the cgroups of canaries that a signal ended
	held      []heldEvent
}

// heldEvent is a decoded event with copies of its names.
type heldEvent struct {
	e   schemas.RawEvent
	dec bpf.Decoded
}

func newEvents(runID string, out *lines) *events {
	return &events{runID: runID, out: out, tasks: newScopeTasks(), engines: newEngines(), first: make(chan struct{})}
}

// record takes one ring record.
func (v *events) record(b []byte) error {
	v.n.read++
	var e schemas.RawEvent
	dec, err := v.dec.Decode(b, &e)
	if err != nil {
		v.n.decodeErrors++
		return nil
	}
	if !v.holding {
		return v.event(&e, dec)
	}
	if e.UserPath != nil && string(e.UserPath) == v.marker {
		v.sawCanary, v.canaryPID = true, e.PID
	}
	v.held = append(v.held, keepEvent(&e, dec))
	return nil
}

// keepEvent copies an event out of the decoder's buffers.
func keepEvent(e *schemas.RawEvent, dec bpf.Decoded) heldEvent {
	h := heldEvent{*e, dec}
	for _, p := range []*[]byte{&h.e.Path, &h.e.UserPath, &h.e.Base, &h.e.Path2, &h.e.UserPath2, &h.e.Base2, &h.e.Interp, &h.e.Addr, &h.e.Root} {
		if *p != nil {
			*p = append([]byte{}, *p...)
		}
	}
	h.dec.Arguments = bytes.Clone(dec.Arguments)
	return h
}

// hold begins a canary whose open will name marker.
func (v *events) hold(marker string) {
	v.holding, v.marker, v.sawCanary, v.canaryPID = true, marker, false, 0
}

// release ends it: the canary's own events are counted and dropped, all others
// are passed on. It reports whether the canary was seen.
func (v *events) release() (bool, error) {
	v.holding = false
	ours := v.sawCanary && v.usualCanary()
	for i := range v.held {
		p := &v.held[i]
		if ours && (p.e.PID == v.canaryPID || v.deadCanary(&p.e)) {
			v.n.canary++
			continue
		}
		if err := v.event(&p.e, p.dec); err != nil {
			return false, err
		}
	}
	v.held, v.dead = nil, nil
	return ours, nil
}

// event writes one event, after what was refused before it, and before what its failure
// says was refused.
func (v *events) event(e *schemas.RawEvent, dec bpf.Decoded) error {
	if err := v.insert(v.guard.before(e.KtimeNS)); err != nil {
		return err
	}
	refused, explained := v.guard.inferred(e)
	if err := v.one(e, dec); err != nil || !explained {
		return err
	}
	v.n.lexical++
	return v.write(&refused)
}

// insert writes events that did not come through the ring.
func (v *events) insert(list []schemas.RawEvent) error {
	for i := range list {
		v.guard.inserted++
		v.marks(list[i].Marks)
		if err := v.write(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// one counts, filters and writes one event of the ring.
func (v *events) one(e *schemas.RawEvent, dec bpf.Decoded) error {
	if e.Op == schemas.OpConnectEnd { // of no task
		return v.write(e)
	}
	if err := v.settle(e, dec.EINTR); err != nil {
		return err
	}
	if dec.EINTR {
		v.n.outcomes++
		return nil
	}
	if e.Op == schemas.OpMove {
		if !v.tasks.has(e.ChildTID, e.ChildPID) {
			v.n.foreign++
			return nil
		}
		v.n.escapes++
	} else if e.TID != v.lastTID {
		v.tasks.add(e.TID, e.PID)
		v.lastTID = e.TID
	}
	switch e.Op {
	case schemas.OpFork:
		v.tasks.add(e.ChildTID, e.ChildPID)
		if dec.Escape {
			v.n.escapes++
		}
	case schemas.OpExit:
		v.tasks.remove(e.TID)
		v.lastTID = 0
		if unix.WaitStatus(e.ExitCode).CoreDump() { // of the thread that made it only
			v.n.coreDumps++
		}
	case schemas.OpExec:
		e.Arguments = v.arguments.Describe(dec.Arguments, dec.ArgumentBytes)
		// of another thread than the first: it has taken over the first one's number
		if e.OldTID != e.TID {
			v.tasks.remove(e.OldTID)
		}
		v.engines.executed(e)
	case schemas.OpConnect, schemas.OpBind:
		v.engines.endpoint(e)
	case schemas.OpPivotRoot:
		if e.Has&schemas.HasRet != 0 && e.Ret == 0 {
			v.n.roots++
		}
	}
	if dec.Lexical {
		v.n.lexical++
	}
	if e.Marks != 0 {
		v.marks(e.Marks)
	}
	if dec.Interrupted {
		v.interrupted.keep(e)
		return nil
	}
	return v.write(e)
}

func (v *events) write(e *schemas.RawEvent) error {
	if v.seq == 0 {
		close(v.first)
	}
	e.Seq = v.seq
	v.seq++
	v.n.out++
	return v.out.event(e)
}

func (v *events) marks(m schemas.Marks) {
	for _, x := range [...]struct {
		mark schemas.Marks
		n    *uint64
	}{
		{schemas.MarkUserFault, &v.n.userFault}, {schemas.MarkAddrFault, &v.n.userFault},
		{schemas.MarkUserTruncated, &v.n.userTruncated},
		{schemas.MarkPathFault, &v.n.pathFault}, {schemas.MarkPathTruncated, &v.n.pathTruncated},
		{schemas.MarkChanged, &v.n.changed}, {schemas.MarkUnproven, &v.n.unproven},
	} {
		if m&x.mark != 0 {
			*x.n++
		}
	}
}
