package main

import (
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// event puts one raw event into the tree and its lines into the store.
func (n *normalizer) event(e *schemas.RawEvent) error {
	op, err := n.mapper.operation(e.Op)
	if err != nil {
		return n.refuse(err)
	}
	if op.class == classExec && e.Has&schemas.HasOldTID != 0 {
		if err := n.tree.exec(e.PID, e.TID, e.OldTID); err != nil {
			return n.refuse(err)
		}
	}
	task, err := n.tree.at(e.PID, e.TID)
	if err != nil {
		return n.refuse(err)
	}
	if op.class == classNetwork && e.Source == schemas.SourceCgroup {
		return n.holdHook(task, op, e)
	}
	if op.class == classBlocked {
		// Told from inside of the call: what the address hook saw still waits for it.
		n.twins.refuse(task, e.Hook, e.Addr)
		return n.emit(task, op.first, e, e.Addr, false)
	}
	if op.class == classNetwork && e.Source == schemas.SourceIOUring {
		n.settleRing(op, e)
	} else if !n.twins.empty() {
		if err := n.settle(task, op, e); err != nil {
			return err
		}
	}
	switch op.class {
	case classTree:
		return n.treeEvent(task, e)
	case classOpen:
		return n.open(task, op, e)
	case classExec:
		return n.exec(task, op, e)
	case classPaths, classMount:
		return n.twoLines(task, op, e)
	case classNetwork:
		return n.emit(task, op.first, e, e.Addr, false)
	case classNothing:
		return n.emit(task, op.first, e, nil, false)
	case classFailed:
		if e.Has&schemas.HasRet != 0 && e.Ret >= 0 {
			return tool.StreamError(n.in.Errorf("op %s with ret %d, expected failed ones only", e.Op, e.Ret))
		}
	}
	path, lexical := n.mapper.firstPath(e)
	return n.emit(task, op.first, e, path, lexical)
}

func (n *normalizer) refuse(err error) error { return tool.StreamError(n.in.Errorf("%v", err)) }

// filter counts an event that becomes no line.
func (n *normalizer) filter(rule string, value []byte) {
	n.filtered[rule]++
	n.show.filtered(rule, "", value)
}

func (n *normalizer) treeEvent(task uint32, e *schemas.RawEvent) error {
	switch e.Op {
	case "fork":
		if e.Has&schemas.HasChild == 0 {
			return tool.StreamError(n.in.Errorf("fork without child_pid and child_tid"))
		}
		if err := n.tree.fork(task, e.ChildPID, e.ChildTID, e.KtimeNS); err != nil {
			return n.refuse(err)
		}
		n.filter(schemas.FilterFork, n.number(uint64(e.ChildTID)))
	case "exit":
		n.tree.exit(e.TID, e.KtimeNS)
		n.filter(schemas.FilterExit, n.number(uint64(e.TID)))
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
			return nil
		}
	}
	return n.emit(task, op.first, e, path, lexical)
}

func (n *normalizer) exec(task uint32, op operation, e *schemas.RawEvent) error {
	path, lexical := n.mapper.binary(e)
	if err := n.emit(task, op.first, e, path, lexical); err != nil {
		return err
	}
	script := n.mapper.script(e)
	if script == nil {
		return nil
	}
	n.added++
	return n.emit(task, op.second, e, script, true)
}

func (n *normalizer) twoLines(task uint32, op operation, e *schemas.RawEvent) error {
	path, lexical := n.mapper.firstPath(e)
	if err := n.emit(task, op.first, e, path, lexical); err != nil {
		return err
	}
	n.added++
	if op.class == classMount {
		// The source of a mount is a text for the file system, not always a path.
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
	if id == schemas.EventOpenat {
		openFields(k, e)
	}
	if id == schemas.EventConnectBlocked {
		blockedFields(k, e)
	}
	outcome(k, e)
	n.packed = n.packed[:0]
	if n.opt.Windows {
		n.packed = n.clock.pack(n.packed, e.KtimeNS)
	}
	n.packed = n.shapes.pack(n.packed, k)
	return n.packed
}

// holdHook keeps what the address hook saw until it is known whether the call
// itself reports it too.
func (n *normalizer) holdHook(task uint32, op operation, e *schemas.RawEvent) error {
	// The hook runs before the call has an outcome.
	e.Has &^= schemas.HasRet
	n.twins.hold(task, e.PID, op.first, e.Addr, n.pack(op.first, e, e.Addr))
	if n.twins.bytes > maxHeld {
		return n.flushHeld()
	}
	return nil
}

// settle decides about a task's held records when its next record comes.
func (n *normalizer) settle(task uint32, op operation, e *schemas.RawEvent) error {
	held := len(n.twins.held[task])
	if held == 0 {
		return nil
	}
	if op.class == classNetwork {
		if i := n.twins.match(task, op.first, e.Addr); i >= 0 {
			for _, h := range n.twins.take(task, i) {
				if err := n.addHeld(task, h); err != nil {
					return err
				}
			}
			n.filterTwin(n.twins.take(task, 1)[0])
			return nil
		}
		// One message of several may go without an address, and so without a twin.
		if op.first == schemas.EventSendmmsg && e.Addr == nil {
			return nil
		}
	}
	for _, h := range n.twins.take(task, held) {
		if err := n.addHeld(task, h); err != nil {
			return err
		}
	}
	return nil
}

// settleRing finds the twin of a call made through io_uring, which another thread
// of the process may have carried out.
func (n *normalizer) settleRing(op operation, e *schemas.RawEvent) {
	if twin, ok := n.twins.takeOf(e.PID, op.first, e.Addr); ok {
		n.filterTwin(twin)
	}
}

// filterTwin leaves out what another record tells of.
func (n *normalizer) filterTwin(h heldHook) {
	if h.addr == nil {
		n.nullValues--
	}
	n.filter(schemas.FilterTwin, h.addr)
}

func (n *normalizer) addHeld(task uint32, h heldHook) error {
	if h.refused {
		n.filterTwin(h)
		return nil
	}
	n.hookOnly++
	return n.keep(task, h.packed)
}

// flushHeld turns everything held into lines. The order of the tasks does not
// matter: each line has its place within its own.
func (n *normalizer) flushHeld() error {
	for task, all := range n.twins.held {
		for _, h := range n.twins.take(task, len(all)) {
			if err := n.addHeld(task, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// number is a value for people to read.
func (n *normalizer) number(v uint64) []byte {
	if n.show == nil {
		return nil
	}
	return strconv.AppendUint(nil, v, 10)
}
