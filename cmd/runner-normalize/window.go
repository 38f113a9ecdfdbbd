package main

import (
	"slices"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// treeWriter writes the records of processes, each when the first line of it or of
// a descendant is: so those without a line get none.
type treeWriter struct {
	tree      *tree
	times     *clock
	canonical bool
	runID     string
	n         uint64   // records written
	current   uint32   // head of the process whose lines are being written
	path      []uint32 // heads of the last record and of its ancestors, by depth
	todo      []uint32
	lives     []livedBy // of the last process that had one, and of its ancestors, by depth
}

type livedBy struct {
	life
	head uint32
}

// life takes in events of a process, before its lines and its descendants.
func (w *treeWriter) life(head uint32, packed []byte) {
	depth := w.tree.task(head).first
	for int(depth) >= len(w.lives) {
		w.lives = append(w.lives, livedBy{})
	}
	w.lives = w.lives[:depth+1]
	l := &w.lives[depth]
	if l.head != head {
		*l = livedBy{head: head}
	}
	for len(packed) > 0 {
		var ktime uint64
		ktime, packed = w.times.unpack(packed)
		l.note(lifeEvent(packed[0]), ktime)
		packed = packed[1:]
	}
}

// pid is what stands in the lines of the process.
func (w *treeWriter) pid(head uint32) uint32 {
	if w.canonical {
		return w.tree.task(head).last
	}
	return w.tree.task(head).pid
}

// enter returns the processes whose records must stand in front of a line of the
// given one, in this order.
func (w *treeWriter) enter(head uint32) []uint32 {
	w.current = head
	w.todo = w.todo[:0]
	for h := head; h != 0; h = w.tree.task(h).next {
		if depth := w.tree.task(h).first; int(depth) < len(w.path) && w.path[depth] == h {
			break
		}
		w.todo = append(w.todo, h)
	}
	slices.Reverse(w.todo)
	for _, h := range w.todo {
		w.path = append(w.path[:w.tree.task(h).first], h)
	}
	return w.todo
}

// record appends the record of one process.
func (w *treeWriter) record(dst []byte, head uint32) []byte {
	w.n++
	p, l := w.tree.task(head), life{}
	if depth := int(p.first); depth < len(w.lives) && w.lives[depth].head == head {
		l = w.lives[depth].life
	}
	dst = append(dst, `{"schema":"`+schemas.SchemaProcess+`","run_id":"`...)
	dst = append(dst, w.runID...)
	dst = append(dst, `","pid":`...)
	dst = strconv.AppendUint(dst, uint64(w.pid(head)), 10)
	dst = append(dst, `,"kernel_pid":`...)
	dst = strconv.AppendUint(dst, uint64(p.pid), 10)
	dst = append(dst, `,"depth":`...)
	dst = strconv.AppendUint(dst, uint64(p.first), 10)
	dst = appendTime(dst, `,"start_ns":`, l.start)
	if !l.lost {
		dst = appendTime(dst, `,"end_ns":`, l.end)
	}
	return append(dst, "}\n"...)
}

func appendTime(dst []byte, key string, ns uint64) []byte {
	if ns == 0 {
		return dst
	}
	return strconv.AppendUint(append(dst, key...), ns, 10)
}
