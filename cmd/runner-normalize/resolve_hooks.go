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
	return nil
}

// resolvePending decides about a task's held records when its next record comes.
func (n *normalizer) resolvePending(task uint32, op operation, e *schemas.RawEvent) error {
	held := len(n.hooks.held[task])
	if held == 0 {
		return nil
	}
	if op.class == classNetwork {
		if i := n.hooks.match(task, op.first, e.Addr); i >= 0 {
			if err := n.addHeld(task, n.hooks.take(task, i)); err != nil {
				return err
			}
			n.filterReported(n.hooks.take(task, 1)[0])
			return nil
		}
		// One message of several may have no address, and then no hook record.
		if op.first == schemas.EventSendmmsg && e.Addr == nil {
			return nil
		}
	}
	return n.addHeld(task, n.hooks.take(task, held))
}

// resolveRing finds the hook record of a call made through io_uring, which another
// thread of the process may have carried out.
func (n *normalizer) resolveRing(task uint32, op operation, e *schemas.RawEvent) {
	if h, ok := n.hooks.takeOf(task, e.PID, op.first, e.Addr); ok {
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
	for task, all := range n.hooks.held {
		if err := n.addHeld(task, n.hooks.take(task, len(all))); err != nil {
			return err
		}
	}
	return nil
}
