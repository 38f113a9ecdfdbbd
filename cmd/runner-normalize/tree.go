package main

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// maxID is one more than the largest id of a task.
const maxID = schemas.MaxPID

const (
	idPage    = 1 << 10
	taskChunk = 1 << 12
)

// task is one thread, from its creation to its end. Tasks are numbered from 1 in the
// order of their creation, and referred to by that number; 0 is none.
type task struct {
	pid  uint32 // the kernel's process id
	head uint32 // task that represents the process: its first known thread
}

// origin is what more a tree must know of a task while it grows.
type origin struct {
	creator uint32 // task that created it; 0 when that was not seen
	alive   uint32 // of a head: how many threads of the process were not seen to end
}

// id is what a thread or process id of the kernel means at the moment. After the end of
// its task it can be given to another one.
type id struct {
	task uint32 // live task with that thread id
	head uint32 // head of the newest process with that process id
}

// tree is all tasks of a stream, and who created them. It is kept in chunks because
// there may be a million tasks and memory is bounded.
type tree struct {
	tasks     chunked[task]
	origins   chunked[origin]
	n         uint32 // tasks so far
	ids       [maxID / idPage]*[idPage]id
	processes uint64
	orphans   uint64 // tasks whose creation was not seen

	// life, when it is set, gets what becomes of the process of that head.
	life func(head uint32, what lifeEvent, ktime uint64)
}

// chunked has one T for each task. It grows without copying.
type chunked[T any] [][]T

func (c chunked[T]) at(task uint32) *T { return &c[task/taskChunk][task%taskChunk] }

func (c *chunked[T]) set(task uint32, v T) {
	if int(task/taskChunk) == len(*c) {
		*c = append(*c, make([]T, taskChunk))
	}
	*c.at(task) = v
}

func (t *tree) id(n uint32) *id {
	page := t.ids[n/idPage]
	if page == nil {
		page = new([idPage]id)
		t.ids[n/idPage] = page
	}
	return &page[n%idPage]
}

// add makes a task of process pid with thread id tid. head 0 makes it a process.
func (t *tree) add(pid, tid, head, creator uint32) uint32 {
	if old := t.close(tid); old != 0 {
		t.note(old, lifeLost, 0)
	}
	t.n++
	i := t.n
	if head == 0 {
		head = i
		t.processes++
		t.id(pid).head = i
	}
	t.tasks.set(i, task{pid: pid, head: head})
	t.origins.set(i, origin{creator: creator})
	t.origins.at(head).alive++
	t.id(tid).task = i
	return i
}

// close ends the live task of tid, if there is one, and returns its process.
func (t *tree) close(tid uint32) uint32 {
	e := t.id(tid)
	if e.task == 0 {
		return 0
	}
	head := t.tasks.at(e.task).head
	t.origins.at(head).alive--
	e.task = 0
	return head
}

// exit notes that the task of tid ended.
func (t *tree) exit(tid uint32, ktime uint64) {
	if head := t.close(tid); head != 0 {
		t.note(head, lifeEnded, ktime)
	}
}

func (t *tree) note(head uint32, what lifeEvent, ktime uint64) {
	if t.life != nil {
		t.life(head, what, ktime)
	}
}

// at is the live task with this thread id. A task whose creation was not seen becomes
// a thread of its process, created by the first one, or, where no live process has
// that id, a process without creator.
func (t *tree) at(pid, tid uint32) (uint32, error) {
	if pid >= maxID || tid >= maxID {
		return 0, fmt.Errorf("pid %d, tid %d: expected less than %d", pid, tid, maxID)
	}
	if i := t.id(tid).task; i != 0 && t.tasks.at(i).pid == pid {
		return i, nil
	}
	t.orphans++
	head := t.id(pid).head
	if head != 0 && t.origins.at(head).alive == 0 {
		head = 0
	}
	return t.add(pid, tid, head, head), nil
}

// fork notes that parent created a thread or a process.
func (t *tree) fork(parent, pid, tid uint32, ktime uint64) error {
	if pid >= maxID || tid >= maxID {
		return fmt.Errorf("child_pid %d, child_tid %d: expected less than %d", pid, tid, maxID)
	}
	head := uint32(0)
	if p := t.tasks.at(parent); p.pid == pid {
		head = p.head
	}
	i := t.add(pid, tid, head, parent)
	if head == 0 {
		t.note(i, lifeBegan, ktime)
	}
	return nil
}

// exec notes that the thread old took over the thread id tid of its process's
// leader, as a thread that is not the leader does when it calls exec.
func (t *tree) exec(pid, tid, old uint32) error {
	if pid >= maxID || tid >= maxID || old >= maxID {
		return fmt.Errorf("pid %d, tid %d, old_tid %d: expected less than %d", pid, tid, old, maxID)
	}
	i := t.id(old).task
	if i == 0 || old == tid || t.tasks.at(i).pid != pid {
		return nil
	}
	t.id(old).task = 0
	t.close(tid)
	t.id(tid).task = i
	return nil
}

// stopGrowing gives back what only a growing tree needs, except the origins.
func (t *tree) stopGrowing() { clear(t.ids[:]) }
