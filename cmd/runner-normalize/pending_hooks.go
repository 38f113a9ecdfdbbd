package main

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// The address hook of a cgroup fires inside of a network call, before the call
// returns: connect twice, once by the hook and once, with its outcome, by the
// call. The hook's record is held until its task's next record shows which it is:
// a twin, or something that only the hook saw, like a connect through io_uring.

// maxHeld bounds what is held, in bytes. What is held longest is mostly a blocked
// connect, one a thread.
const maxHeld = 4 << 20

// heldHook is one hook record that waits for its twin.
type heldHook struct {
	pid    uint32
	op     uint32 // event id
	addr   []byte
	packed []byte // its line, should it turn out to have none
	// refused: a rule stopped it, whose own line says all that this one would.
	refused bool
}

// twins is what is held, by task.
type twins struct {
	held  map[uint32][]heldHook
	bytes int
}

func (t *twins) empty() bool { return len(t.held) == 0 }

func (t *twins) hold(task, pid, op uint32, addr, packed []byte) {
	if t.held == nil {
		t.held = make(map[uint32][]heldHook)
	}
	h := heldHook{pid: pid, op: op, addr: bytes.Clone(addr), packed: bytes.Clone(packed)}
	t.held[task] = append(t.held[task], h)
	t.bytes += len(h.addr) + len(h.packed)
}

// refuse notes that a rule stopped what a task's hook record tells of.
func (t *twins) refuse(task uint32, hook string, addr []byte) {
	op, ok := map[string]uint32{"connect": schemas.EventConnect, "send": schemas.EventSendmsg}[hook]
	if !ok {
		return
	}
	all := t.held[task]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].op == op && bytes.Equal(all[i].addr, addr) {
			all[i].refused = true
			return
		}
	}
}

// take gives back the first n of a task's held records.
func (t *twins) take(task uint32, n int) []heldHook {
	all := t.held[task]
	out := all[:n]
	for _, h := range out {
		t.bytes -= len(h.addr) + len(h.packed)
	}
	if n == len(all) {
		delete(t.held, task)
	} else {
		t.held[task] = all[n:]
	}
	return out
}

// takeOf gives back one held record of any task of a process.
func (t *twins) takeOf(pid, op uint32, addr []byte) (heldHook, bool) {
	for task, all := range t.held {
		i := t.match(task, op, addr)
		if i < 0 || all[i].pid != pid {
			continue
		}
		h := all[i]
		t.bytes -= len(h.addr) + len(h.packed)
		if len(all) == 1 {
			delete(t.held, task)
		} else {
			t.held[task] = slices.Delete(all, i, i+1)
		}
		return h, true
	}
	return heldHook{}, false
}

// match is the place among the task's held records of the twin of a call's
// record, -1 when there is none. An equal address goes before one that is only
// told from another directory.
func (t *twins) match(task uint32, op uint32, addr []byte) int {
	for _, same := range []func(call, hook []byte) bool{sameAddr, sameUnix} {
		for i, h := range t.held[task] {
			if hookOp(op) == hookOp(h.op) && same(addr, h.addr) {
				return i
			}
		}
	}
	return -1
}

// sameUnix compares unix paths where the hook, which has neither working directory
// nor process root, tells the name as it was given.
func sameUnix(call, hook []byte) bool {
	name, ok := bytes.CutPrefix(hook, []byte("unix:"))
	if !ok || !bytes.HasPrefix(call, []byte("unix:/")) || len(name) == 0 || name[0] == '@' {
		return false
	}
	if name[0] != '/' {
		name = name[bytes.LastIndexByte(name, '/')+1:]
	}
	return bytes.HasSuffix(call, name)
}

// hookOp is the hook that a network operation passes: all ways of sending pass one.
func hookOp(op uint32) uint32 {
	if op == schemas.EventSendto || op == schemas.EventSendmmsg {
		return schemas.EventSendmsg
	}
	return op
}

// sameAddr compares two endpoints. An IPv4 address that a program spells as an
// IPv6 one reaches the hook of the other family.
func sameAddr(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if bytes.Equal(a, b) {
		return true
	}
	if (a[0] == '[') == (b[0] == '[') {
		return false
	}
	x, errX := netip.ParseAddrPort(string(a))
	y, errY := netip.ParseAddrPort(string(b))
	return errX == nil && errY == nil && x.Port() == y.Port() && x.Addr().Unmap() == y.Addr().Unmap()
}
