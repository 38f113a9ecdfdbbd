package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// tree follows the process records of a kernel stream. It knows which process the
// current lines belong to.
type tree struct {
	runID    string
	byServer map[number][]*session
	byProxy  map[number][]*session
	sessions []*session
	records  uint64
	path     []process // the current process and its ancestors, by depth
	execs    execs
	matched  func(*session) // called when a session's server is found
}

// number is a process id in a pid namespace; 0 is the initial one.
type number struct{ space, pid uint32 }

// process is one process of the path.
type process struct {
	pid, kernelPID uint32
	own            number // in its own pid namespace, as the kernel told it; none in the initial one
	start, end     uint64
	trees          *membership // nil if it is in none
	proxy          bool
	launched       uint64 // start of the last session with decisions whose proxy is below it; 0 for none
}

// membership lists the trees that a process is in, the innermost first. There may be
// several, because a tool server may itself start a proxy.
type membership struct {
	session *session
	outer   *membership
	level   int
}

// has reports whether the process is in the session's tree.
func (m *membership) has(s *session) bool {
	for ; m != nil; m = m.outer {
		if m.session == s {
			return true
		}
	}
	return false
}

// maxLevel bounds how many trees a process can be in. A server that is nested deeper
// counts as not found.
const maxLevel = 64

func newTree(runID string, sessions []*session, matched func(*session)) *tree {
	t := &tree{runID: runID, byServer: map[number][]*session{}, byProxy: map[number][]*session{}, sessions: sessions, matched: matched}
	for _, s := range sessions {
		server, proxy := number{s.space, s.server}, number{s.space, s.proxy}
		t.byServer[server] = append(t.byServer[server], s)
		t.byProxy[proxy] = append(t.byProxy[proxy], s)
	}
	for i, s := range sessions {
		if i == 0 || s.ktime < t.execs.first {
			t.execs.first = s.ktime
		}
	}
	return t
}

// current is the process whose lines follow, nil before the first record.
func (t *tree) current() *process {
	if len(t.path) == 0 {
		return nil
	}
	return &t.path[len(t.path)-1]
}

// enter takes in a process record: its lines follow.
func (t *tree) enter(line []byte) error {
	r, err := t.parse(line)
	if err != nil {
		return err
	}
	depth := int(r.Depth)
	if depth > len(t.path) {
		return fmt.Errorf("process of depth %d below one of depth %d", depth, len(t.path)-1)
	}
	t.records++
	t.leave(depth)
	t.path = t.path[:depth]
	p := process{pid: r.PID, kernelPID: r.KernelPID, own: number{r.PIDNS, r.NSPID}, start: r.StartNS, end: r.EndNS}
	if depth > 0 {
		above := &t.path[depth-1]
		p.trees = above.trees
		t.server(&p, above)
	}
	for _, n := range p.numbers() {
		for _, s := range t.byProxy[n] {
			if !p.lived(s.ktime) {
				continue
			}
			if p.proxy = true; s.made > 0 {
				t.launch(s)
			}
		}
	}
	t.path = append(t.path, p)
	return nil
}

// server checks whether the process is a tool server of any session.
func (t *tree) server(p, above *process) {
	var first *session
	for _, n := range p.numbers() {
		for _, s := range t.byServer[n] {
			if !above.is(number{s.space, s.proxy}) || !p.lived(s.ktime) {
				continue
			}
			if !p.trees.has(s) && !t.join(p, s) {
				continue
			}
			if first == nil {
				first = s
			} else {
				mergeTrees(t.sessions, first, s)
			}
		}
	}
}

// numbers are those that a process has: in the initial pid namespace, and in its own if that is another.
func (p *process) numbers() []number {
	list := [...]number{{pid: p.kernelPID}, p.own}
	if p.own.space == 0 {
		return list[:1]
	}
	return list[:]
}

// is reports whether a process has a number.
func (p *process) is(n number) bool { return slices.Contains(p.numbers(), n) }

// join puts a process into the tree of a session.
func (t *tree) join(p *process, s *session) bool {
	m := &membership{session: s, outer: p.trees}
	if p.trees != nil {
		m.level = p.trees.level + 1
	}
	if m.level >= maxLevel {
		return false
	}
	p.trees = m
	if !s.known {
		s.known = true
		t.matched(s)
	}
	return true
}

// lived reports whether the process existed at a time. A start or an end that was not
// recorded is taken to be outside of the run.
func (p *process) lived(ktime uint64) bool {
	return p.start <= ktime && (p.end == 0 || ktime <= p.end)
}

// parse reads a process record. It has a fast path for the canonical form.
func (t *tree) parse(line []byte) (*schemas.Process, error) {
	p := &schemas.Process{}
	s := scan{rest: line}
	s.text(`{"schema":"` + schemas.SchemaProcess + `","run_id":"`)
	s.text(t.runID)
	s.text(`","pid":`)
	p.PID = uint32(s.uint(math.MaxUint32))
	s.text(`,"kernel_pid":`)
	p.KernelPID = uint32(s.uint(math.MaxUint32))
	s.text(`,"depth":`)
	p.Depth = uint32(s.uint(math.MaxUint32))
	if s.has(`,"start_ns":`) {
		p.StartNS = s.uint(math.MaxUint64)
	}
	if s.has(`,"end_ns":`) {
		p.EndNS = s.uint(math.MaxUint64)
	}
	if s.has(`,"ns_pid":`) {
		p.NSPID = uint32(s.uint(math.MaxUint32))
		s.text(`,"pid_ns":`)
		p.PIDNS = uint32(s.uint(math.MaxUint32))
		s.bad = s.bad || p.NSPID == 0 || p.PIDNS == 0
	}
	s.text(`}`)
	if !s.bad && len(s.rest) == 0 {
		return p, nil
	}
	return schemas.ParseProcess(line)
}
