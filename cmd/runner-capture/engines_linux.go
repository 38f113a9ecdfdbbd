package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// maxEngineNames bounds the names of sockets that are remembered.
const maxEngineNames = 256

// engines are the container engines that the scope's programs used.
type engines struct {
	ran   []*schemas.Engine          // whose programs were executed, each once and in this order
	asked map[string]*schemas.Engine // by the name of the socket
	bound map[string]bool            // sockets that the scope made itself: what listens there is in it
	crowd map[*schemas.Engine]bool   // asked through sockets whose names had no room
}

func newEngines() engines {
	return engines{asked: map[string]*schemas.Engine{}, bound: map[string]bool{}, crowd: map[*schemas.Engine]bool{}}
}

// executed notes a program.
func (n *engines) executed(e *schemas.RawEvent) {
	if engine := schemas.EngineOfProgram(string(e.Path)); engine != nil && !slices.Contains(n.ran, engine) {
		n.ran = append(n.ran, engine)
	}
}

// endpoint notes a connect, or a bind, that was done.
func (n *engines) endpoint(e *schemas.RawEvent) {
	if e.Has&schemas.HasRet == 0 || e.Ret != 0 || len(e.Addr) == 0 {
		return
	}
	engine := schemas.EngineOfSocket(string(e.Addr))
	switch room := len(n.asked)+len(n.bound) < maxEngineNames; {
	case engine == nil:
	case e.Op == schemas.OpBind && room:
		n.bound[string(e.Addr)] = true
	case e.Op == schemas.OpConnect && room:
		n.asked[string(e.Addr)] = engine
	case e.Op == schemas.OpConnect && n.asked[string(e.Addr)] == nil:
		n.crowd[engine] = true
	}
}

// outside are the engines whose daemons outside of the scope were asked.
func (n *engines) outside() (list []*schemas.Engine) {
	for i := range schemas.Engines {
		e := &schemas.Engines[i]
		asked := n.crowd[e]
		for socket, of := range n.asked {
			asked = asked || of == e && !n.bound[socket]
		}
		if asked {
			list = append(list, e)
		}
	}
	return list
}

// fact is the fact engines: those that were asked and, if tasks left, those that can have
// moved them.
func (n *engines) fact(left bool) string {
	outside := n.outside()
	var names []string
	for i := range schemas.Engines {
		e := &schemas.Engines[i]
		if slices.Contains(outside, e) || left && slices.Contains(n.ran, e) {
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, " ")
}

// tell says what the record lacks because of engines, and what to type.
func (n *engines) tell(env *tool.Env, left uint64) {
	switch {
	case left == 1:
		env.Warnf("a task left the cgroup, or may have: what it did after that is not in the record%s", n.hint())
	case left > 1:
		env.Warnf("%d tasks left the cgroup, or may have: what they did after that is not in the record%s", left, n.hint())
	}
	for _, e := range n.outside() {
		env.Warnf("%s was asked through its socket: what it did for that is outside of the cgroup and not in the record; %s", e.Name, e.Do)
	}
}

// hint is what keeps containers in the scope, by the engine that was called first.
func (n *engines) hint() string {
	if len(n.ran) == 0 {
		return ""
	}
	return "; " + n.ran[0].Name + " moves its containers, " + n.ran[0].Do
}
