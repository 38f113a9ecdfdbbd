package main

import "github.com/runner-evidence/runner/schemas"

// treeWriter makes the records of processes, each when the first line of it or of a
// descendant is written: so those without a line get none.
type treeWriter struct {
	order   *order
	times   *clock
	path    []ancestor // the process of the present line, after its ancestors
	last    uint32     // number of that process
	written int        // how many of path have their record
	n       uint64     // records written
}

// ancestor is one process on the path.
type ancestor struct {
	number uint32
	life   life
}

// enter makes path that of the process with this number. Numbers come in ascending
// order, so each process is on the path once.
func (w *treeWriter) enter(number uint32) {
	for w.last < number {
		w.last++
		parent := w.order.process(w.last).parent
		up := len(w.path)
		for up > 0 && w.path[up-1].number != parent {
			up--
		}
		w.path = append(w.path[:up], ancestor{number: w.last})
		w.written = min(w.written, up)
	}
}

// life adds events of a process, before its lines and its descendants.
func (w *treeWriter) life(number uint32, events []byte) {
	w.enter(number)
	for len(events) > 0 {
		var ktime uint64
		ktime, events = w.times.unpack(events)
		life, what := &w.path[len(w.path)-1].life, lifeEvent(events[0])
		events = events[1:]
		if what == lifeNumber {
			var own ownNumber
			events = own.unpack(events)
			life.number(own)
			continue
		}
		life.note(what, ktime)
	}
}

// next is the next record that must be written before a line of the present process,
// and the number of its process; 0 when there is none.
func (w *treeWriter) next() (number uint32, record schemas.Process) {
	if w.written == len(w.path) {
		return 0, record
	}
	a := &w.path[w.written]
	record = schemas.Process{
		Schema: schemas.SchemaProcess, KernelPID: w.order.process(a.number).pid,
		Depth: uint32(w.written), StartNS: a.life.start,
	}
	if !a.life.lost {
		record.EndNS = a.life.end
	}
	if !a.life.doubtful {
		record.NSPID, record.PIDNS = a.life.own.pid, a.life.own.ns
	}
	w.written++
	w.n++
	return a.number, record
}
