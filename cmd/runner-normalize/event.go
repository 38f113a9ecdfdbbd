package main

import (
	"bytes"
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// event puts one raw event into the tree and its lines into the store.
func (n *normalizer) event(e *schemas.RawEvent) error {
	op, err := n.mapper.operation(e.Op)
	if err != nil {
		return n.invalid(err)
	}
	if e.Op == schemas.OpConnectEnd { // of no task
		n.connects.ended(e)
		n.filter(schemas.FilterResult, n.number(e.Socket))
		return nil
	}
	n.attempt = nil
	if op.class == classExec && e.Has&schemas.HasOldTID != 0 {
		if err := n.tree.exec(e.PID, e.TID, e.OldTID); err != nil {
			return n.invalid(err)
		}
	}
	task, err := n.tree.at(e.PID, e.TID)
	if err != nil {
		return n.invalid(err)
	}
	if op.class == classNetwork && e.Source == schemas.SourceCgroup {
		return n.holdHook(task, op, e)
	}
	if op.class == classBlocked {
		return n.blocked(task, op, e)
	}
	if op.class == classNetwork && e.Source == schemas.SourceIOUring {
		n.resolveRing(task, op, e)
	} else if !n.hooks.empty() {
		if err := n.resolvePending(task, op, e); err != nil {
			return err
		}
	}
	if op.class == classTree {
		return n.treeEvent(task, e)
	}
	if ignored(e) {
		n.filter(schemas.FilterPeer, e.Addr)
		return nil
	}
	if ofCall(op, e) {
		return n.call(task, op, e)
	}
	return n.lines(task, op, e)
}

// lines makes the lines of an event.
func (n *normalizer) lines(task uint32, op operation, e *schemas.RawEvent) error {
	switch op.class {
	case classOpen:
		return n.open(task, op, e)
	case classExec:
		return n.exec(task, op, e)
	case classLoader:
		return n.loader(task, op, e)
	case classPaths, classMount:
		return n.twoLines(task, op, e)
	case classNetwork:
		return n.emit(task, op.first, e, e.Addr, false)
	case classNothing:
		return n.emit(task, op.first, e, nil, false)
	case classText:
		return n.emit(task, op.first, e, e.UserPath2, false)
	case classFailed:
		if e.Has&schemas.HasRet != 0 && e.Ret >= 0 {
			return tool.StreamError(n.in.Errorf("op %s with ret %d, expected failed ones only", e.Op, e.Ret))
		}
	}
	path, lexical := n.mapper.firstPath(e)
	return n.emit(task, op.first, e, path, lexical)
}

// blocked keeps a refusal. It is recorded before the call ends: what the address hook saw of
// that call still waits for its end.
func (n *normalizer) blocked(task uint32, op operation, e *schemas.RawEvent) error {
	if op.first == schemas.EventFileBlocked {
		path, lexical := n.mapper.firstPath(e)
		return n.emit(task, op.first, e, path, lexical)
	}
	n.hooks.markDenied(task, e.Hook, e.Addr)
	return n.emit(task, op.first, e, e.Addr, false)
}

// invalid refuses the input at the present line.
func (n *normalizer) invalid(err error) error { return tool.StreamError(n.in.Errorf("%v", err)) }

// filter counts an event that becomes no line.
func (n *normalizer) filter(rule string, value []byte) {
	n.filtered[rule]++
	n.show.filtered(rule, "", value)
}

func (n *normalizer) treeEvent(task uint32, e *schemas.RawEvent) error {
	switch e.Op {
	case schemas.OpFork:
		if e.Has&schemas.HasChild == 0 {
			return tool.StreamError(n.in.Errorf("fork without child_pid and child_tid"))
		}
		if err := n.tree.fork(task, e.ChildPID, e.ChildTID, e.KtimeNS); err != nil {
			return n.invalid(err)
		}
		n.filter(schemas.FilterFork, n.number(uint64(e.ChildTID)))
		child := n.tree.n
		if n.tree.tasks.at(child).head != child {
			return nil
		}
		n.noteNumber(child, e)
		if n.procs != nil {
			return n.procs.add(child, stateStart, e, nil, nil)
		}
	case schemas.OpExit:
		if err := n.settle(task); err != nil {
			return err
		}
		n.tree.exit(e.TID, e.KtimeNS)
		n.filter(schemas.FilterExit, n.number(uint64(e.TID)))
	case schemas.OpContext:
		n.filter(schemas.FilterContext, n.number(uint64(e.TID)))
		if n.procs != nil {
			return n.procs.add(n.tree.tasks.at(task).head, stateCall, e, nil, nil)
		}
	default:
		n.filter(schemas.FilterMove, n.number(e.DstCgroupID))
	}
	return nil
}

func (n *normalizer) open(task uint32, op operation, e *schemas.RawEvent) error {
	path, lexical := n.mapper.firstPath(e)
	if !evidence(e, path, lexical) {
		if i := n.noise.Find(path, e.PID); i >= 0 {
			n.byRule[i]++
			if n.show != nil {
				n.show.filtered(n.noise.ID(i), n.noise.Reason(i), path)
			}
			return n.left.add(i, path)
		}
	}
	return n.emit(task, op.first, e, path, lexical)
}

func (n *normalizer) exec(task uint32, op operation, e *schemas.RawEvent) error {
	n.noteNumber(n.tree.tasks.at(task).head, e)
	path, lexical := n.mapper.binary(e)
	if err := n.emit(task, op.first, e, path, lexical); err != nil {
		return err
	}
	script := n.mapper.script(e)
	if n.procs != nil {
		if err := n.procs.add(n.tree.tasks.at(task).head, stateExec, e, path, script); err != nil {
			return err
		}
	}
	if script == nil {
		return nil
	}
	n.added++
	return n.emit(task, op.second, e, script, true)
}

// loader is a line unless the loader is one of the system, and there is noise at all.
func (n *normalizer) loader(task uint32, op operation, e *schemas.RawEvent) error {
	if e.Marks&doubtful == 0 && n.noise.Len() > 0 {
		for _, dir := range schemas.SystemLoaders {
			if bytes.HasPrefix(e.Path, []byte(dir)) {
				n.filter(schemas.FilterLoad, e.Path)
				return n.left.add(loaderRule, e.Path)
			}
		}
	}
	return n.emit(task, op.first, e, e.Path, false)
}

func (n *normalizer) twoLines(task uint32, op operation, e *schemas.RawEvent) error {
	path, lexical := n.mapper.firstPath(e)
	if err := n.emit(task, op.first, e, path, lexical); err != nil {
		return err
	}
	n.added++
	if op.class == classMount {
		// The source of a mount is a text for the file system, the name of an attribute too: no path.
		return n.emit(task, op.second, e, e.UserPath2, false)
	}
	path, lexical = n.mapper.secondPath(e)
	return n.emit(task, op.second, e, path, lexical)
}

// emit keeps one kernel line.
func (n *normalizer) emit(task, id uint32, e *schemas.RawEvent, value []byte, lexical bool) error {
	if lexical {
		n.lexical++
	}
	return n.keep(task, n.pack(id, e, value))
}

func (n *normalizer) keep(task uint32, packed []byte) error {
	if n.diverted != nil {
		n.diverted.lines = append(n.diverted.lines, bytes.Clone(packed))
		return nil
	}
	if n.opt.Windows {
		task = windowKey(task, false)
	}
	n.store.lines++
	return n.store.keep(task, packed)
}

// pack is what of a line is known before the order is.
func (n *normalizer) pack(id uint32, e *schemas.RawEvent, value []byte) []byte {
	k := &n.kernel
	*k = schemas.KernelEvent{EventType: id, Value: value}
	if value == nil {
		n.nullValues++
	}
	switch id {
	case schemas.EventOpenat:
		openFields(k, e)
	case schemas.EventRenameFrom, schemas.EventRenameTo:
		renameFields(k, e)
	}
	if schemas.Refused(id) {
		blockedFields(k, e)
	}
	outcome(k, e)
	n.packed = n.packed[:0]
	if n.opt.Windows {
		n.packed = n.clock.pack(n.packed, e.KtimeNS)
	}
	if n.attempt != nil && id == schemas.EventConnect {
		if at, ok := n.connects.number(n.attempt); ok {
			n.packed = n.shapes.packPending(n.packed, k, at)
			return n.packed
		}
	}
	n.packed = n.shapes.pack(n.packed, k)
	return n.packed
}

// number is a value for people to read.
func (n *normalizer) number(v uint64) []byte {
	if n.show == nil {
		return nil
	}
	return strconv.AppendUint(nil, v, 10)
}
