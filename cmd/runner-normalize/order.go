package main

// order is the canonical order of all tasks: that of the fork tree, so it does not
// depend on how tasks were interleaved. A process, its threads in the order of creation,
// then the processes that these created, each with all its own. So the lines of a
// process are together, and those of its descendants follow.
type order struct {
	place     []uint32  // of each task, from 0; nil once it is not needed any more
	processes []process // by number - 1
}

// process is one process in canonical order. Its number, from 1, is its place among the
// processes.
type process struct {
	pid    uint32 // the kernel's
	parent uint32 // number of the process that created it; 0 when that was not seen
	end    uint32 // place after that of its last thread
}

func (o *order) process(number uint32) *process { return &o.processes[number-1] }

// rank makes the order, and uses the tree up. It is iterative, because a fork tree may
// be a million deep or wide.
func (t *tree) rank() *order {
	t.noteLost()
	created := t.creations()
	t.origins = nil
	o := &order{place: make([]uint32, t.n+1), processes: make([]process, 0, t.processes)}
	var later stack // siblings still to be visited, innermost last
	places, parent := uint32(0), uint32(0)
	for head := created.first[0]; head != 0; {
		sibling := created.next[head]
		children := created.takeThreads(t, head, func(thread uint32) {
			o.place[thread] = places
			places++
		})
		o.processes = append(o.processes, process{pid: t.tasks.at(head).pid, parent: parent, end: places})
		head, parent = later.descend(children, uint32(len(o.processes)), sibling, parent)
	}
	t.tasks = nil
	return o
}

// noteLost notes which processes have threads that were not seen to end.
func (t *tree) noteLost() {
	for i := uint32(1); i <= t.n; i++ {
		if t.origins.at(i).alive != 0 {
			t.note(i, lifeLost, 0)
		}
	}
}

// creations are lists of tasks. At first there is one for each task, of all that it
// created, in the order of creation; that of task 0 has those whose creation was not seen.
type creations struct {
	first []uint32 // of a task's list
	next  []uint32 // after a task, in the list that it is in
}

func (t *tree) creations() creations {
	c := creations{make([]uint32, t.n+1), make([]uint32, t.n+1)}
	for i := t.n; i > 0; i-- {
		creator := t.origins.at(i).creator
		c.next[i] = c.first[creator]
		c.first[creator] = i
	}
	return c
}

// takeThreads calls visit with the threads of a process, each before those that it
// created, and returns the first of a list of the processes that they created. It
// relinks the lists of these threads in place.
func (c creations) takeThreads(t *tree, head uint32, visit func(thread uint32)) uint32 {
	var later stack
	children := list{next: c.next}
	c.next[head] = 0
	for thread := head; thread != 0; {
		visit(thread)
		threads := list{next: c.next}
		for i := c.first[thread]; i != 0; {
			next := c.next[i]
			if t.tasks.at(i).head == i {
				children.add(i)
			} else {
				threads.add(i)
			}
			i = next
		}
		thread, _ = later.descend(threads.first, 0, c.next[thread], 0)
	}
	return children.first
}

// list is a list of tasks that is being made.
type list struct {
	next        []uint32
	first, last uint32
}

func (l *list) add(task uint32) {
	if l.first == 0 {
		l.first = task
	} else {
		l.next[l.last] = task
	}
	l.last = task
	l.next[task] = 0
}

// stack is the way back up: the sibling to go on with on each level that has one,
// and whose child it is.
type stack []struct{ sibling, parent uint32 }

// descend is the next node of a walk that visits first, then all below it, then
// sibling; and its parent. 0 is the end. at is the node whose first child is first.
func (s *stack) descend(first, at, sibling, parent uint32) (node, above uint32) {
	if first != 0 {
		if sibling != 0 {
			*s = append(*s, struct{ sibling, parent uint32 }{sibling, parent})
		}
		return first, at
	}
	if sibling == 0 && len(*s) > 0 {
		last := len(*s) - 1
		sibling, parent = (*s)[last].sibling, (*s)[last].parent
		*s = (*s)[:last]
	}
	return sibling, parent
}
