package main

import (
	"encoding/binary"

	"github.com/runner-evidence/runner/schemas"
)

// lifeEvent is what can happen to a process.
type lifeEvent byte

const (
	lifeBegan  lifeEvent = iota // it was forked
	lifeEnded                   // one of its threads ended
	lifeLost                    // one of its threads was not seen to end
	lifeNumber                  // the kernel told its number in its own pid namespace, which follows
)

// life is when a process was forked and when its last thread ended, on
// CLOCK_MONOTONIC, and its number in its own pid namespace. 0 is unknown.
type life struct {
	start, end uint64
	lost       bool // so the end is not known
	own        ownNumber
	doubtful   bool // so that number is not known
}

// ownNumber is a process id in a pid namespace below the initial one.
type ownNumber struct{ pid, ns uint32 }

func (n ownNumber) pack(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(n.pid)), uint64(n.ns))
}

func (n *ownNumber) unpack(packed []byte) (rest []byte) {
	for _, v := range [...]*uint32{&n.pid, &n.ns} {
		x, size := binary.Uvarint(packed)
		*v, packed = uint32(x), packed[size:]
	}
	return packed
}

// number notes what the kernel told. A process keeps its number as long as it lives: two mean that the end of one process and the
// beginning of another were not seen, and nobody knows whose is which.
func (l *life) number(n ownNumber) {
	if l.own != n && l.own != (ownNumber{}) {
		l.doubtful = true
	}
	l.own = n
}

// note adds one event. The last thread to end, on the clock and not by its
// place in the stream, ends the process.
func (l *life) note(what lifeEvent, ktime uint64) {
	switch what {
	case lifeBegan:
		l.start = ktime
	case lifeEnded:
		l.end = max(l.end, ktime)
	default:
		l.lost = true
	}
}

// With windows the store keeps two things of a task, or of its place: the events of
// the process that it represents, which are written first, and its lines.
func windowKey(of uint32, life bool) uint32 {
	if life {
		return 2 * of
	}
	return 2*of + 1
}

func isLife(key uint32) bool { return key%2 == 0 }

// noteLife keeps an event of a process. An error stays until the next raw event.
func (n *normalizer) noteLife(head uint32, what lifeEvent, ktime uint64) {
	packed := append(n.clock.pack(nil, ktime), byte(what))
	if err := n.store.keep(windowKey(head, true), packed); err != nil {
		n.lifeErr = err
	}
}

// noteNumber keeps what an event tells of the number of a process.
func (n *normalizer) noteNumber(head uint32, e *schemas.RawEvent) {
	if !n.opt.Windows || e.Has&schemas.HasNSPID == 0 || e.NSPID == 0 || e.PIDNS == 0 {
		return
	}
	packed := ownNumber{e.NSPID, e.PIDNS}.pack(append(n.clock.pack(nil, e.KtimeNS), byte(lifeNumber)))
	if err := n.store.keep(windowKey(head, true), packed); err != nil {
		n.lifeErr = err
	}
}

// clock packs times: as the distance from the first one, which is short.
type clock struct {
	zero uint64
	set  bool
}

func (c *clock) pack(dst []byte, ktime uint64) []byte {
	if !c.set {
		c.zero, c.set = ktime, true
	}
	return binary.AppendVarint(dst, int64(ktime-c.zero))
}

func (c *clock) unpack(packed []byte) (ktime uint64, rest []byte) {
	d, n := binary.Varint(packed)
	return c.zero + uint64(d), packed[n:]
}
