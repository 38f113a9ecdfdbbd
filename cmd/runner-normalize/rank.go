package main

// rank puts the tasks into canonical order and returns the head of the process at
// each place. Afterwards live is a task's place, the lists of creations are used
// up, and a head knows its depth, number and parent.
//
// The order is that of the fork tree, so it does not depend on how tasks were
// interleaved: a process, its threads in the order of creation, then the processes
// that these created, each with all its own. So the lines of a process stand
// together, and those of its descendants behind them. The numbers are those of
// that order, from 1.
func (t *tree) rank() []uint32 {
	heads := make([]uint32, 0, t.n)
	var later stack // siblings still to be visited, innermost last
	process, parent := t.roots.first, uint32(0)
	for number := uint32(1); process != 0; number++ {
		head := t.task(process)
		sibling, depth := head.next, uint32(0)
		if parent != 0 {
			depth = t.task(parent).first + 1
		}
		if head.live != 0 {
			t.note(process, lifeLost, 0)
		}
		var children uint32
		heads, children = t.rankThreads(process, heads)
		head.first, head.last, head.next = depth, number, parent
		process, parent = later.descend(children, process, sibling, parent)
	}
	return heads
}

// rankThreads gives places to the threads of one process and returns the list of
// the processes that they created. Lists are relinked in place, because a fork
// tree may be a million deep or wide.
func (t *tree) rankThreads(head uint32, heads []uint32) ([]uint32, uint32) {
	var later stack
	var children task
	t.task(head).next = 0
	for thread := head; thread != 0; {
		p := t.task(thread)
		p.live = uint32(len(heads))
		heads = append(heads, head)
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
		thread, _ = later.descend(threads.first, 0, p.next, 0)
	}
	return heads, children.first
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

// pids replaces the heads by what the lines of their processes get as pid: the
// kernel's, or with canonical the number.
func (t *tree) pids(heads []uint32, canonical bool) {
	for i, head := range heads {
		if canonical {
			heads[i] = t.task(head).last
		} else {
			heads[i] = t.task(head).pid
		}
	}
}
