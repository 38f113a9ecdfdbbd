package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// scopeTasks are the live threads that were seen in the scope, and how many each process
// has: a process whose first thread has ended is still there, under that thread's number.
type scopeTasks struct {
	process map[uint32]uint32 // by thread
	threads map[uint32]int    // by process
}

func newScopeTasks() scopeTasks {
	return scopeTasks{process: map[uint32]uint32{}, threads: map[uint32]int{}}
}

func (s *scopeTasks) add(tid, pid uint32) {
	if old, there := s.process[tid]; there {
		if old == pid {
			return
		}
		s.remove(tid)
	}
	s.process[tid] = pid
	s.threads[pid]++
}

func (s *scopeTasks) remove(tid uint32) {
	pid, there := s.process[tid]
	if !there {
		return
	}
	delete(s.process, tid)
	if s.threads[pid]--; s.threads[pid] == 0 {
		delete(s.threads, pid)
	}
}

// has reports whether the thread, or any of the process, is in the scope.
func (s *scopeTasks) has(tid, pid uint32) bool {
	_, there := s.process[tid]
	return there || s.threads[pid] > 0
}

// found notes the threads that were in the cgroup before the capture began, and what their processes have open.
func (v *events) found(tids []int) {
	for _, t := range tids {
		pid := processOf(t)
		if v.tasks.threads[pid] == 0 {
			v.n.earlier++
			v.n.inheritedFD += descriptors(pid)
		}
		v.tasks.add(uint32(t), pid)
	}
}

// descriptors is how many descriptors above 2 a process has; 0 if it has ended.
func descriptors(pid uint32) (n uint64) {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			n++
		}
	}
	return n
}

// processOf is the process of a thread.
func processOf(tid int) uint32 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if pid, err := strconv.ParseUint(strings.TrimSpace(v), 10, 32); err == nil {
				return uint32(pid)
			}
		}
	}
	return uint32(tid) // it has ended, or is its own process
}
