package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// maxPending bounds the programs that are kept for processes that may be ancestors of a
// proxy.
const maxPending = 1024

// execs are the programs that were executed without a tool call. A program of a
// process on the path is pending, because a proxy may still follow below that process.
type execs struct {
	found   []string // sorted, the first MaxExecWithoutCall of all
	more    bool
	pending map[string]int // program → deepest place on the path
	deepest int            // of the pending programs
	over    int            // depth of the deepest program for which pending had no room, plus 1
	clean   int            // this many processes of the path are known to have a proxy below
}

// add records a program that the process at a depth executed.
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

// leave ends the processes from a depth on. There was no proxy below them.
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

// commit adds a program to those found.
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

// dropPending drops the pending programs: all processes of the path are ancestors of a
// proxy.
func (x *execs) dropPending(depth int) {
	clear(x.pending)
	x.over, x.clean = 0, depth
}

// addCodes adds what was found, at the end of the stream.
func (x *execs) addCodes(c codes) {
	x.leave(0)
	for _, program := range x.found {
		c.addFor(schemas.AmbiguityExecWithoutCall, program)
	}
	if x.more {
		c.addFor(schemas.AmbiguityExecWithoutCall, schemas.ExecWithoutCallMore)
	}
}
