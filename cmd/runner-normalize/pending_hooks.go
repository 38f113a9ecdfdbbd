package main

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// The address hook of a cgroup runs inside a network call, before the call returns. So a
// connect is recorded twice: by the hook, and, with its outcome, by the call. The hook's
// record is held until the call's record comes: the next one of its task or, of a request of
// io_uring, one that any task completes later. What is held when the task ends was
// seen only by the hook.

// maxHeld bounds what is held, in bytes. What is held longest is mostly a blocked
// connect, one a thread.
const maxHeld = 4 << 20

// maxHeldOfTask is as many as requests of io_uring are observed at once.
const maxHeldOfTask = 1024

// heldHook is one hook record that waits for its call's record.
type heldHook struct {
	pid     uint32
	op      uint32 // event id
	socket  uint64 // 0 is not known
	addr    []byte
	packed  []byte // its line, should no call report it
	in      hookIn
	left    uint64   // when the sendmmsg ended whose records it is held beyond, 0 is none
	attempt *attempt // of a connect, nil if its end cannot be told
	denied  bool     // a rule stopped it, and the line of that says all that this one would
}

// hookIn is what a hook ran in.
type hookIn uint8

const (
	inCall    hookIn = iota // a system call that has a record of the same
	inRequest               // a request of io_uring
	inOther                 // a system call that has none
)

func inOf(m schemas.Marks) hookIn {
	switch {
	case m&schemas.MarkIOUring != 0:
		return inRequest
	case m&schemas.MarkUnpaired != 0:
		return inOther
	}
	return inCall
}

// pendingHooks is what is held, by task.
type pendingHooks struct {
	held  map[uint32][]heldHook
	bytes int
}

func (p *pendingHooks) empty() bool { return len(p.held) == 0 }

func (p *pendingHooks) hold(task, op uint32, e *schemas.RawEvent, packed []byte, a *attempt) {
	if p.held == nil {
		p.held = make(map[uint32][]heldHook)
	}
	h := heldHook{pid: e.PID, op: op, socket: e.Socket, addr: bytes.Clone(e.Addr), packed: bytes.Clone(packed), in: inOf(e.Marks), attempt: a}
	p.held[task] = append(p.held[task], h)
	p.bytes += len(h.addr) + len(h.packed)
}

// markDenied notes that a rule stopped what a task's hook record reports.
func (p *pendingHooks) markDenied(task uint32, hook string, addr []byte) {
	op, ok := map[string]uint32{schemas.HookConnect: schemas.EventConnect, schemas.HookSend: schemas.EventSendmsg}[hook]
	if !ok {
		return
	}
	all := p.held[task]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].op == op && sameAddr(addr, all[i].addr) {
			all[i].denied = true
			return
		}
	}
}

// takeAll gives back what is held of a task.
func (p *pendingHooks) takeAll(task uint32) []heldHook {
	all := p.held[task]
	for _, h := range all {
		p.bytes -= len(h.addr) + len(h.packed)
	}
	delete(p.held, task)
	return all
}

// takeCalls gives back what is held of a task's system calls.
func (p *pendingHooks) takeCalls(task uint32) []heldHook {
	return p.takeIf(task, func(h *heldHook) bool { return h.in != inRequest })
}

// leave notes what is held beyond a record of a sendmmsg: it is of this call, whose records all have the
// time of its end, and of no later one.
func (p *pendingHooks) leave(task uint32, at uint64) {
	for i := range p.held[task] {
		if h := &p.held[task][i]; h.left == 0 {
			h.left = at
		}
	}
}

// takeLeft gives back what a sendmmsg left that has ended before the call of this time.
func (p *pendingHooks) takeLeft(task uint32, at uint64) []heldHook {
	return p.takeIf(task, func(h *heldHook) bool { return h.in != inRequest && h.left != 0 && h.left != at })
}

func (p *pendingHooks) takeIf(task uint32, is func(h *heldHook) bool) (calls []heldHook) {
	for i := 0; i < len(p.held[task]); {
		if !is(&p.held[task][i]) {
			i++
			continue
		}
		calls = append(calls, p.take(task, i))
	}
	return calls
}

// take gives back one held record of a task.
func (p *pendingHooks) take(task uint32, i int) heldHook {
	all := p.held[task]
	h := all[i]
	p.bytes -= len(h.addr) + len(h.packed)
	if len(all) == 1 {
		delete(p.held, task)
	} else {
		p.held[task] = slices.Delete(all, i, i+1)
	}
	return h
}

// takeOf gives back one held record that a request of io_uring made in any task of a process:
// one of the task that acts, or of the first that was seen.
func (p *pendingHooks) takeOf(task, pid, op uint32, addr []byte) (heldHook, bool) {
	from, at := uint32(0), -1
	for t, all := range p.held {
		if i := p.match(t, op, addr, inRequest); i >= 0 && all[i].pid == pid && (at < 0 || t == task || from != task && t < from) {
			from, at = t, i
		}
	}
	if at < 0 {
		return heldHook{}, false
	}
	return p.take(from, at), true
}

// match is the place, among the task's held records of what ran in the same, of the first one with the address of a
// record; -1 when there is none. An equal address is preferred to one that only starts from another directory.
func (p *pendingHooks) match(task uint32, op uint32, addr []byte, in hookIn) int {
	for _, same := range []func(call, hook []byte) bool{sameAddr, sameUnix} {
		for i, h := range p.held[task] {
			if h.in == in && hookOp(op) == hookOp(h.op) && same(addr, h.addr) {
				return i
			}
		}
	}
	return -1
}

// inCall is the place of the record that the hook made inside of a system call, or -1. Of all that
// is held of the task's calls, it is the last. A sendmmsg has one for each message;
// where the first one names no address, the hook takes all for such.
func (p *pendingHooks) twin(task uint32, op operation, e *schemas.RawEvent) int {
	if op.first == schemas.EventSendmmsg {
		i := p.match(task, op.first, e.Addr, inCall)
		if i < 0 && e.Marks&schemas.MarkHooked != 0 {
			if i = p.match(task, op.first, e.Addr, inOther); i >= 0 && p.held[task][i].socket != e.Socket {
				i = -1
			}
		}
		return i
	}
	all := p.held[task]
	for i := len(all) - 1; i >= 0; i-- {
		h := &all[i]
		if h.in == inCall && hookOp(h.op) == hookOp(op.first) {
			if hookOp(h.op) == schemas.EventSendmsg && h.socket != 0 && h.socket != e.Socket && (e.Socket != 0 || e.Marks&schemas.MarkChanged == 0) {
				return -1 // left by a call whose end nobody saw: a hook gives each socket a number
			}
			return i
		}
	}
	return -1
}

// sameUnix compares unix paths where the hook, which has neither working directory
// nor process root, has the name as the program gave it.
func sameUnix(call, hook []byte) bool {
	name, ok := bytes.CutPrefix(hook, []byte("unix:"))
	place, isUnix := bytes.CutPrefix(call, []byte("unix:"))
	for _, prefix := range []string{schemas.PrefixDetached, schemas.PrefixUnreachable} {
		place = bytes.TrimPrefix(place, []byte(prefix))
	}
	if !ok || !isUnix || !bytes.HasPrefix(place, slash) || len(name) == 0 || name[0] == '@' {
		return false
	}
	end := appendLexical(nil, nil, name, false)
	if name[0] != '/' { // what comes before the last component depends on the directory
		last := end[bytes.LastIndexByte(end, '/')+1:]
		if len(last) == 0 || string(last) == ".." {
			return true
		}
		end = append(slices.Clone(slash), last...)
	}
	return bytes.HasSuffix(call, end)
}

// hookOp is the hook that a network operation passes: all ways of sending pass one.
func hookOp(op uint32) uint32 {
	if op == schemas.EventSendto || op == schemas.EventSendmmsg {
		return schemas.EventSendmsg
	}
	return op
}

// sameAddr compares the address that a call was given with one of the hook. An IPv4 address that
// a program spells as an IPv6 one reaches the hook of the other family, and for no address in
// particular the hook has the one of this machine that it stands for.
func sameAddr(call, hook []byte) bool {
	if len(call) == 0 || len(hook) == 0 {
		return false
	}
	if bytes.Equal(call, hook) {
		return true
	}
	x, errX := netip.ParseAddrPort(string(call))
	y, errY := netip.ParseAddrPort(string(hook))
	return errX == nil && errY == nil && x.Port() == y.Port() && (x.Addr().Unmap() == y.Addr().Unmap() || x.Addr().Unmap().IsUnspecified())
}
