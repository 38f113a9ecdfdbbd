package main

import "github.com/runner-evidence/runner/schemas"

// holdHook keeps what the address hook saw until it is known whether the call
// itself reports it too.
func (n *normalizer) holdHook(task uint32, op operation, e *schemas.RawEvent) error {
	// The hook runs before the call has an outcome.
	e.Has &^= schemas.HasRet
	n.hooks.hold(task, e.PID, op.first, e.Addr, n.pack(op.first, e, e.Addr))
	if n.hooks.bytes > maxHeld {
		return n.flushHeld()
	}
	if len(n.hooks.held[task]) > maxHeldOfTask {
		oldest := n.hooks.take(task, 0)
		if oldest.op == schemas.EventConnect && n.hooks.match(task, oldest.op, oldest.addr) >= 0 {
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
	i := n.hooks.match(task, op.first, e.Addr)
	if i < 0 && addressLost(op, e) {
		if i = n.hooks.newest(task, op.first); i >= 0 {
			e.Addr = n.hooks.held[task][i].addr
		}
	}
	if i >= 0 {
		n.filterReported(n.hooks.take(task, i))
	}
	return nil
}

// addressLost reports whether a call had an address that its own record does not have: its
// memory could not be read any more, or it names no family, which a send takes for IPv4.
func addressLost(op operation, e *schemas.RawEvent) bool {
	switch {
	case e.Addr != nil || op.first == schemas.EventSendmmsg:
		return false
	case e.Marks&schemas.MarkAddrFault != 0:
		return e.Has&schemas.HasRet == 0 || e.Ret != eFault // the kernel could read it
	}
	return hookOp(op.first) == schemas.EventSendmsg && e.Has&schemas.HasFamily != 0 && e.Family == 0
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

// addHeld turns held records of a task into lines, except those that a rule denied.
func (n *normalizer) addHeld(task uint32, held []heldHook) error {
	for _, h := range held {
		if h.denied {
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
