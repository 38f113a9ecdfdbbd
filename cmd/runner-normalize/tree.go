package main

import "fmt"

// maxID is one more than the largest pid that Linux gives (PID_MAX_LIMIT, 64 bit).
const maxID = 1 << 22

const (
	idPage    = 1 << 10
	taskChunk = 1 << 12
)

// task is one thread from its creation to its end. A number is used again after
// that, and names another task then. Tasks are referred to by index; 0 is none.
type task struct {
	pid         uint32 // the kernel's process id; the canonical number after rank
	head        uint32 // task that stands for the process: its first known thread
	first, last uint32 // threads and processes that it created, in order; head: depth and number after rank
	next        uint32 // next one created by the same task; head: the parent's head after rank
	live        uint32 // head only: threads not seen to end; every task's place after rank
}

// id is what a number means at the moment.
type id struct {
	task uint32 // live task of that tid
	head uint32 // head of the newest process of that pid
}

// tree is every task of a stream and who created it. It is kept in small pages
// because there may be a million tasks and memory is bounded.
type tree struct {
	chunks    [][]task
	n         uint32 // tasks made; indexes are 1 to n
	ids       [maxID / idPage]*[idPage]id
	roots     task // only first and last: processes whose creation was not seen
	processes uint64
	orphans   uint64 // tasks whose creation was not seen

	// life, when it is set, is told what becomes of the process of that head.
	life func(head uint32, what lifeEvent, ktime uint64)
}

func (t *tree) task(i uint32) *task { return &t.chunks[i/taskChunk][i%taskChunk] }

func (t *tree) id(n uint32) *id {
	page := t.ids[n/idPage]
	if page == nil {
		page = new([idPage]id)
		t.ids[n/idPage] = page
	}
	return &page[n%idPage]
}

// add makes a task of process pid with thread id tid. head 0 makes it a process.
func (t *tree) add(pid, tid, head uint32) uint32 {
	if old := t.close(tid); old != 0 {
		t.note(old, lifeLost, 0)
	}
	t.n++
	i := t.n
	if int(i/taskChunk) == len(t.chunks) {
		t.chunks = append(t.chunks, make([]task, taskChunk))
	}
	if head == 0 {
		head = i
		t.processes++
		t.id(pid).head = i
	}
	*t.task(i) = task{pid: pid, head: head}
	t.task(head).live++
	t.id(tid).task = i
	return i
}

// close ends the live task of tid, if there is one, and returns its process.
func (t *tree) close(tid uint32) uint32 {
	e := t.id(tid)
	if e.task == 0 {
		return 0
	}
	head := t.task(e.task).head
	t.task(head).live--
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

// hang appends child to the creations of parent.
func (t *tree) hang(parent *task, child uint32) {
	if parent.first == 0 {
		parent.first = child
	} else {
		t.task(parent.last).next = child
	}
	parent.last = child
}

// at is the live task with this thread id. A task that was never seen to be
// created becomes a thread of its process, or a root when that is unknown too.
func (t *tree) at(pid, tid uint32) (uint32, error) {
	if pid >= maxID || tid >= maxID {
		return 0, fmt.Errorf("pid %d, tid %d: expected less than %d", pid, tid, maxID)
	}
	if i := t.id(tid).task; i != 0 && t.task(i).pid == pid {
		return i, nil
	}
	t.orphans++
	head := t.id(pid).head
	if head != 0 && t.task(head).live == 0 {
		head = 0
	}
	i := t.add(pid, tid, head)
	if head == 0 {
		t.hang(&t.roots, i)
	} else {
		t.hang(t.task(head), i)
	}
	return i, nil
}

// fork notes that parent created a thread or a process.
func (t *tree) fork(parent, pid, tid uint32, ktime uint64) error {
	if pid >= maxID || tid >= maxID {
		return fmt.Errorf("child_pid %d, child_tid %d: expected less than %d", pid, tid, maxID)
	}
	head := uint32(0)
	if p := t.task(parent); p.pid == pid {
		head = p.head
	}
	i := t.add(pid, tid, head)
	if head == 0 {
		t.note(i, lifeBegan, ktime)
	}
	t.hang(t.task(parent), i)
	return nil
}

// exec notes that the thread old took over the thread id tid of its process's
// leader, as a thread that is not the leader does when it calls exec.
func (t *tree) exec(pid, tid, old uint32) error {
	if pid >= maxID || tid >= maxID || old >= maxID {
		return fmt.Errorf("pid %d, tid %d, old_tid %d: expected less than %d", pid, tid, old, maxID)
	}
	i := t.id(old).task
	if i == 0 || old == tid || t.task(i).pid != pid {
		return nil
	}
	t.id(old).task = 0
	t.close(tid)
	t.id(tid).task = i
	return nil
}

// release gives back the memory once every task's place is known elsewhere.
func (t *tree) release() { t.chunks = nil }

// forget gives back what only a growing tree needs.
func (t *tree) forget() { clear(t.ids[:]) }
