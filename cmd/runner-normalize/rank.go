package main

// rank puts the tasks into canonical order and returns the pid to write for each
// place. Afterwards live is a task's place, and the lists of creations are used up.
//
// The order is that of the fork tree, so it does not depend on how tasks were
// interleaved: a process, its threads in the order of creation, then the processes
// that these created, each with all its own. With canonical the pids are the
// processes' numbers in that order, from 1.
func (t *tree) rank(canonical bool) []uint32 {
	pids := make([]uint32, 0, t.n)
	var later stack // siblings still to be visited, innermost last
	process := t.roots.first
	for number := uint32(1); process != 0; number++ {
		sibling := t.task(process).next
		pid := t.task(process).pid
		if canonical {
			pid = number
		}
		var children uint32
		pids, children = t.rankThreads(process, pid, pids)
		process = later.descend(children, sibling)
	}
	return pids
}

// rankThreads gives places to the threads of one process and returns the list of
// the processes that they created. Lists are relinked in place, because a fork
// tree may be a million deep or wide.
func (t *tree) rankThreads(head, pid uint32, pids []uint32) ([]uint32, uint32) {
	var later stack
	var children task
	t.task(head).next = 0
	for thread := head; thread != 0; {
		p := t.task(thread)
		p.live = uint32(len(pids))
		pids = append(pids, pid)
		var threads task
		for c := p.first; c != 0; {
			k := t.task(c)
			next := k.next
			k.next = 0
			if k.head == c {
				t.hang(&children, c)
			} else {
				t.hang(&threads, c)
			}
			c = next
		}
		thread = later.descend(threads.first, p.next)
	}
	return pids, children.first
}

// stack is the way back up: the sibling to go on with on each level that has one.
type stack []uint32

// descend is the next node of a walk that visits first, then all below it, then
// sibling. 0 is the end.
func (s *stack) descend(first, sibling uint32) uint32 {
	if first != 0 {
		if sibling != 0 {
			*s = append(*s, sibling)
		}
		return first
	}
	if sibling == 0 && len(*s) > 0 {
		last := len(*s) - 1
		sibling, *s = (*s)[last], (*s)[:last]
	}
	return sibling
}
