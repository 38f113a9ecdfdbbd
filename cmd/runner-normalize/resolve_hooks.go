package main

import "github.com/runner-evidence/runner/schemas"

// holdHook keeps what the address hook saw until it is known whether the call
// itself reports it too.
func (n *normalizer) holdHook(task uint32, op operation, e *schemas.RawEvent) error {
	// The hook runs before the call has an outcome.
	e.Has &^= schemas.HasRet
	n.hooks.hold(task, op.first, e, n.pack(op.first, e, e.Addr), n.connects.begin(e))
	if n.hooks.bytes > maxHeld {
		return n.flushHeld()
	}
	if len(n.hooks.held[task]) > maxHeldOfTask {
		oldest := n.hooks.take(task, 0)
		if oldest.op == schemas.EventConnect && n.hooks.match(task, oldest.op, oldest.addr, oldest.in) >= 0 {
			n.filterReported(oldest) // one request of io_uring, tried again
			return nil
		}
		return n.addHeld(task, []heldHook{oldest})
	}
	return nil
}

// resolvePending decides about a task's held records when its next record comes. A system
// call's record follows that of its hook. What is held for longer came through io_uring,
// whose record follows when the request completes, if it does.
func (n *normalizer) resolvePending(task uint32, op operation, e *schemas.RawEvent) error {
	if len(n.hooks.held[task]) == 0 {
		return nil
	}
	if e.Op == schemas.OpExit {
		return n.addHeld(task, n.hooks.takeAll(task))
	}
	if op.class != classNetwork {
		return nil
	}
	if err := n.addHeld(task, n.hooks.takeLeft(task, e.KtimeNS)); err != nil {
		return err
	}
	if i := n.hooks.twin(task, op, e); i >= 0 && passedHook(op, e) {
		h := n.hooks.take(task, i)
		n.attempt = n.connects.returned(e, &h)
		kernelsCopy(e, h)
		n.filterReported(h)
		e.Marks &^= schemas.MarkHooked
	}
	if op.first == schemas.EventSendmmsg {
		n.hooks.leave(task, e.KtimeNS)
		return nil // what is left may be of its next messages
	}
	return n.addHeld(task, n.hooks.takeCalls(task))
}

// passedHook reports whether a call can have come to the hook: not if its address could not be
// read, nor a connect that ended a connection.
func passedHook(op operation, e *schemas.RawEvent) bool {
	switch {
	case e.Addr != nil:
		return true
	case e.Marks&schemas.MarkAddrFault != 0:
		return e.Has&schemas.HasRet == 0 || e.Ret != eFault
	}
	return op.first != schemas.EventConnect || e.Has&schemas.HasFamily == 0 && e.Marks&schemas.MarkOfSocket == 0
}

// kernelsCopy gives a call the address that the hook saw, if its own is only what the program's memory
// held at its end, or what another socket says that has taken the descriptor.
func kernelsCopy(e *schemas.RawEvent, h heldHook) {
	if e.Marks&schemas.MarkOfSocket != 0 {
		if h.socket == 0 || e.Socket == 0 || h.socket == e.Socket {
			return
		}
		e.Marks &^= schemas.MarkOfSocket
	} else if sameAddr(e.Addr, h.addr) || sameUnix(e.Addr, h.addr) {
		return
	}
	if h.addr != nil {
		e.Addr = h.addr
	}
}

// ignored reports whether the kernel did not use the address of a send that succeeded: it would have
// shown it to the hook.
func ignored(e *schemas.RawEvent) bool {
	return e.Marks&schemas.MarkHooked != 0 && e.Marks&schemas.MarkUnproven == 0 && e.Has&schemas.HasRet != 0 && e.Ret >= 0
}

// resolveRing finds the hook records of a request of io_uring, which another thread of the
// process may have carried out. The kernel tries a request again that has to wait, and each
// try passes the hook. Other requests to the same address have records of their own.
func (n *normalizer) resolveRing(task uint32, op operation, e *schemas.RawEvent) {
	for {
		h, ok := n.hooks.takeOf(task, e.PID, op.first, e.Addr)
		if !ok {
			return
		}
		n.filterReported(h)
	}
}

// filterReported leaves out what another record reports.
func (n *normalizer) filterReported(h heldHook) {
	if h.addr == nil {
		n.nullValues--
	}
	n.filter(schemas.FilterTwin, h.addr)
}

// addHeld turns held records of a task into lines, except those that a rule denied, and those
// of silent requests.
func (n *normalizer) addHeld(task uint32, held []heldHook) error {
	for _, h := range held {
		if h.denied || n.toldSilently(&h) {
			n.filterReported(h)
			continue
		}
		n.hookOnly++
		if err := n.keep(task, h.packed); err != nil {
			return err
		}
	}
	return nil
}

// flushHeld turns everything held into lines. The order of the tasks does not
// matter: each line has its place among those of its own task.
func (n *normalizer) flushHeld() error {
	for task := range n.hooks.held {
		if err := n.addHeld(task, n.hooks.takeAll(task)); err != nil {
			return err
		}
	}
	return nil
}
