package main

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// starter is a thread that was allowed to execute a file.
type starter struct {
	file uint64 // its inode number
	task int    // the thread's directory in /proc, which no later thread of its number has
}

// manyStarters is when those are dropped that were killed before their second question.
const manyStarters = 64

// begin keeps that a thread may execute a file.
func (l *listener) begin(thread int32, file uint64) {
	task, err := unix.Open("/proc/"+strconv.Itoa(int(thread)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it has ended
	}
	if len(l.starting) >= manyStarters {
		for other, s := range l.starting {
			if !s.lives() {
				l.drop(other)
			}
		}
	}
	l.starting[thread] = starter{file, task}
}

// second reports whether a question is the second of an execution. It forgets the first.
func (l *listener) second(thread int32, file uint64) bool {
	s, ok := l.starting[thread]
	if !ok {
		return false
	}
	defer l.drop(thread)
	return s.file == file && s.lives()
}

func (l *listener) drop(thread int32) {
	unix.Close(l.starting[thread].task)
	delete(l.starting, thread)
}

func (s starter) lives() bool {
	return unix.Faccessat(s.task, "stat", unix.F_OK, 0) == nil
}
