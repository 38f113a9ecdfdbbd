package main

import "encoding/binary"

// lifeEvent is what can happen to a process.
type lifeEvent byte

const (
	lifeBegan lifeEvent = iota // it was forked
	lifeEnded                  // one of its threads ended
	lifeLost                   // one of its threads was not seen to end
)

// life is when a process was forked and when its last thread ended, on
// CLOCK_MONOTONIC. 0 is unknown.
type life struct {
	start, end uint64
	lost       bool // so the end is not known
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
