package main

import (
	"bytes"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// A call that a signal interrupts can start over by itself. Then it has two records: one
// without an outcome, and one of its end. The first is held until it is known whether the
// second comes. It does not, for example, if the program was killed. So has a request of
// io_uring that wants no completion on success: the second comes if it fails.

// unfinished is a call without an outcome, and its lines should no other record of it come.
type unfinished struct {
	op             string
	flags          [3]uint64
	socket         uint64
	first, second  []byte
	lines          [][]byte
	lexical, nulls uint64
	silent         bool
}

func (u *unfinished) size() (n int) {
	for _, l := range u.lines {
		n += len(l)
	}
	return n + len(u.first) + len(u.second)
}

// ofCall reports whether the event is the end of a system call, an exec, or a silent request.
func ofCall(op operation, e *schemas.RawEvent) bool {
	switch op.class {
	case classTree, classBlocked, classNothing, classLoader:
		return false
	}
	return silent(e) || e.Source != schemas.SourceCgroup && e.Source != schemas.SourceIOUring && e.Marks&schemas.MarkIOUring == 0
}

func silent(e *schemas.RawEvent) bool { return e.Marks&schemas.MarkSilent != 0 }

// call keeps the lines of a call. If the task has an unfinished call that it ends, that one
// has no lines.
func (n *normalizer) call(task uint32, op operation, e *schemas.RawEvent) error {
	if len(n.unfinished[task]) > 0 {
		n.ends(task, op, e)
	}
	if op.class == classExec || e.Has&schemas.HasRet != 0 || e.Marks&schemas.MarkUnproven != 0 {
		return n.lines(task, op, e)
	}
	first, second := n.values(op, e)
	u := unfinished{op: e.Op, flags: flagsOf(e), socket: e.Socket, first: bytes.Clone(first), second: bytes.Clone(second), silent: silent(e)}
	lexical, nulls, added := n.lexical, n.nullValues, n.added
	n.diverted = &u
	err := n.lines(task, op, e)
	n.diverted = nil
	u.lexical, u.nulls = n.lexical-lexical, n.nullValues-nulls
	n.lexical, n.nullValues, n.added = lexical, nulls, added
	if err != nil || len(u.lines) == 0 {
		return err
	}
	if n.unfinished == nil {
		n.unfinished = map[uint32][]unfinished{}
	}
	n.unfinished[task] = append(n.unfinished[task], u)
	n.unfinishedBytes += u.size()
	if n.unfinishedBytes > maxHeld {
		return n.flushUnfinished()
	}
	return nil
}

func flagsOf(e *schemas.RawEvent) [3]uint64 { return [3]uint64{e.Flags, e.Mode, e.Resolve} }

// values are those of the lines of a call, as far as they tell one call from another.
func (n *normalizer) values(op operation, e *schemas.RawEvent) (first, second []byte) {
	if op.class == classNetwork {
		return e.Addr, nil
	}
	first, _ = n.mapper.firstPath(e)
	if op.class == classMount || op.class == classText {
		return first, e.UserPath2
	}
	second, _ = n.mapper.secondPath(e)
	return first, second
}

// sameValue tells an unknown value from an empty one.
func sameValue(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// sameSocket reports whether a network call is about the socket of an unfinished one. A handler that jumps away leaves a connect that the
// kernel completes all the same: the next one, to elsewhere or of another socket, does not end it. Where the kernel numbers no sockets
// (MPTCP), one that failed can be of any.
func (u *unfinished) sameSocket(op operation, e *schemas.RawEvent) bool {
	if u.silent {
		return true // requests are told by their rings
	}
	if e.Socket == 0 && op.first == schemas.EventConnect && e.Ret < 0 && e.Addr != nil {
		return false
	}
	return u.socket == e.Socket
}

// proved reports whether a call can be the end of an unfinished one. A handler that jumps away leaves a call for ever. What an open or an
// exec led to can have any name, so the probe has to say that it started over; of others the values do.
func proved(op operation, e *schemas.RawEvent) bool {
	switch op.class {
	case classOpen, classExec, classFailed:
		return silent(e) || e.Marks&schemas.MarkStartedOver != 0
	}
	return true
}

// ends takes out the newest unfinished call of a task that is the same as this one.
func (n *normalizer) ends(task uint32, op operation, e *schemas.RawEvent) {
	if !proved(op, e) {
		return
	}
	all := n.unfinished[task]
	first, second := n.values(op, e)
	for i := len(all) - 1; i >= 0; i-- {
		u := &all[i]
		switch {
		case u.silent != silent(e):
			continue
		case op.class == classExec:
			if operations[u.op].class != classFailed {
				continue
			}
		case u.op != e.Op || u.flags != flagsOf(e):
			continue
		case op.class == classNetwork && !u.sameSocket(op, e):
			continue
		case op.class == classOpen && e.Path != nil: // an unfinished open has only the text
		case e.Marks&schemas.MarkOfSocket != 0 && (sameAddr(u.first, first) || sameUnix(u.first, first)): // an unfinished connect has what it was given
		case !sameValue(u.first, first) || !sameValue(u.second, second):
			continue
		}
		n.unfinishedBytes -= u.size()
		n.filter(schemas.FilterOver, u.first)
		if len(all) == 1 {
			delete(n.unfinished, task)
		} else {
			n.unfinished[task] = slices.Delete(all, i, i+1)
		}
		return
	}
}

// toldSilently reports whether a silent request of the process has a record of its own for what the hook
// saw. That came first.
func (n *normalizer) toldSilently(h *heldHook) bool {
	for task, all := range n.unfinished {
		for i := range all {
			u := &all[i]
			if u.silent && n.tree.tasks.at(task).pid == h.pid && hookOp(operations[u.op].first) == hookOp(h.op) && (sameAddr(u.first, h.addr) || sameUnix(u.first, h.addr)) {
				return true
			}
		}
	}
	return false
}

// settle gives a task the lines of its calls that nothing ended.
func (n *normalizer) settle(task uint32) error {
	for _, u := range n.unfinished[task] {
		n.unfinishedBytes -= u.size()
		n.lexical += u.lexical
		n.nullValues += u.nulls
		n.added += uint64(len(u.lines) - 1)
		for _, l := range u.lines {
			if err := n.keep(task, l); err != nil {
				return err
			}
		}
	}
	delete(n.unfinished, task)
	return nil
}

// flushUnfinished does so for all tasks. Their order does not matter: each line has its
// place among those of its own task.
func (n *normalizer) flushUnfinished() error {
	for task := range n.unfinished {
		if err := n.settle(task); err != nil {
			return err
		}
	}
	return nil
}
