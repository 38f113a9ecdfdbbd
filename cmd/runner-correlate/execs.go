package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// maxPending bounds the programs that are kept for processes that may be ancestors of a
// proxy.
const maxPending = 1024

// execs are the programs that processes in no tree executed, other than proxies. What a process
// executed is pending while it is on the path: a proxy may still follow below it. Its program is
// forgiven up to the start of the last session with decisions below it: it had to start that session. Before the
// first session of all, launchers run: their programs are only noted.
type execs struct {
	first   uint64 // start of the first session
	outside firstValues
	before  firstValues
	pending []pendingExec // by depth
	over    int           // depth of the deepest program for which pending had no room, plus 1
}

// pendingExec is a program of a process on the path.
type pendingExec struct {
	depth   int
	program string
	late    uint64 // the last time after the start of the first session; 0 is never
	early   bool   // it was executed before that
}

// executed records a program that the current process executed.
func (t *tree) executed(program []byte, ktime uint64) {
	x, depth := &t.execs, len(t.path)-1
	p := -1
	for i := len(x.pending) - 1; i >= 0 && x.pending[i].depth == depth; i-- {
		if x.pending[i].program == string(program) {
			p = i
			break
		}
	}
	if p < 0 {
		if len(x.pending) == maxPending {
			x.over = max(x.over, depth+1)
			return
		}
		p = len(x.pending)
		x.pending = append(x.pending, pendingExec{depth: depth, program: string(program)})
	}
	if e := &x.pending[p]; ktime < x.first {
		e.early = true
	} else {
		e.late = max(e.late, ktime)
	}
}

// leave ends the processes of the path from a depth on: no further proxy is below them.
func (t *tree) leave(depth int) {
	x := &t.execs
	if x.over > depth {
		x.outside.more, x.over = true, 0
	}
	n := len(x.pending)
	for ; n > 0 && x.pending[n-1].depth >= depth; n-- {
		e := &x.pending[n-1]
		launched := t.path[e.depth].launched
		if e.late > launched {
			x.outside.add([]byte(e.program))
		}
		if e.early && launched == 0 {
			x.before.add([]byte(e.program))
		}
	}
	x.pending = slices.Delete(x.pending, n, len(x.pending))
}

// launch records that the processes of the path are ancestors of the proxy of a session with
// decisions.
func (t *tree) launch(s *session) {
	for i := range t.path {
		t.path[i].launched = max(t.path[i].launched, s.ktime)
	}
}

// addCodes adds what was found, at the end of the stream.
func (t *tree) addCodes(c codes) {
	t.leave(0)
	t.execs.outside.addCodes(c, schemas.AmbiguityExecWithoutCall)
	t.execs.before.addCodes(c, schemas.NoteExecBefore)
}
