package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// maxPending bounds the programs that are remembered of processes that may turn
// out to be ancestors of a proxy.
const maxPending = 1024

// execs are the programs that were executed without a tool call. A program of a
// process on the path is pending: a proxy may still come below it.
type execs struct {
	found   []string // sorted, the first ones of all
	more    bool
	pending map[string]int // program → deepest place on the path
	deepest int            // of pending ones
	over    int            // depth of the deepest one that found no room, plus 1
	clean   int            // so many processes of the path are known to have a proxy below
}

// add notes a program that the process at a depth executed.
func (x *execs) add(depth int, program []byte) {
	if depth < x.clean {
		return
	}
	if _, ok := slices.BinarySearchFunc(x.found, program, func(a string, b []byte) int { return strings.Compare(a, string(b)) }); ok {
		return
	}
	if d, ok := x.pending[string(program)]; ok && d >= depth {
		return
	} else if !ok && len(x.pending) == maxPending {
		x.over = max(x.over, depth+1)
		return
	}
	if x.pending == nil {
		x.pending = map[string]int{}
	}
	x.pending[string(program)] = depth
	x.deepest = max(x.deepest, depth)
}

// leave ends the processes from a depth on: no proxy came below them.
func (x *execs) leave(depth int) {
	x.clean = min(x.clean, depth)
	if x.over > depth {
		x.more, x.over = true, 0
	}
	if len(x.pending) == 0 || x.deepest < depth {
		return
	}
	x.deepest = 0
	for program, at := range x.pending {
		if at < depth {
			x.deepest = max(x.deepest, at)
			continue
		}
		delete(x.pending, program)
		x.commit(program)
	}
}

func (x *execs) commit(program string) {
	i, ok := slices.BinarySearch(x.found, program)
	if ok {
		return
	}
	x.found = slices.Insert(x.found, i, program)
	if len(x.found) > schemas.MaxExecWithoutCall {
		x.found, x.more = x.found[:schemas.MaxExecWithoutCall], true
	}
}

// forgive drops what is pending: the whole path are ancestors of a proxy.
func (x *execs) forgive(depth int) {
	clear(x.pending)
	x.over, x.clean = 0, depth
}

// codes adds what was found, at the end of the stream.
func (x *execs) codes(c codes) {
	x.leave(0)
	for _, program := range x.found {
		c.of(schemas.AmbiguityExecWithoutCall, program)
	}
	if x.more {
		c.of(schemas.AmbiguityExecWithoutCall, schemas.ExecWithoutCallMore)
	}
}
