package acts

import (
	"iter"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// maxPathNames bounds the names that are kept of the processes above one.
const maxPathNames = 16 << 20

// Processes go along the layer process while the kernel lines come: which process a line is of, and who
// and where that was. It keeps that process and those above it.
type Processes struct {
	Now *schemas.ProcessEvent // of the last line; nil if the layer has none
	UID uint32                // of the run: of the first state that has one
	GID uint32

	next     func() (*schemas.ProcessEvent, error, bool)
	stop     func()
	over     bool // the layer has no more processes
	user     bool // UID and GID are known
	dropped  bool // execs can lack their kernel lines
	path     []above
	kept     int    // bytes of names in path
	end      uint64 // the first kernel line after those of Now
	state    int    // of the last exec that a line is of; -1 before the first one
	script   string // of that state, until its line came
	entering bool   // the next line is the first one of Now
}

// above is a process that others can be below: the last one of path is Now.
type above struct {
	Parent
	shown int // its place in a view; -1 is none
}

// NewProcesses begins with the first process of the layer. The notes are of the record.
func NewProcesses(layer iter.Seq2[*schemas.ProcessEvent, error], notes []string) *Processes {
	p := &Processes{}
	p.next, p.stop = iter.Pull2(layer)
	for _, note := range notes {
		if v, err := schemas.NoteDrop.Parse(note); err == nil {
			n, _ := v.Count(schemas.KeyDropped)
			p.dropped = p.dropped || n > 0
		}
	}
	return p
}

// Close ends the reading of the layer.
func (p *Processes) Close() { p.stop() }

// owns reports whether a line is of the process of the line before.
func (p *Processes) owns(seq uint64) bool { return p.Now == nil || seq < p.end }

// enter goes to the process of a kernel line. The lines come in their order.
func (p *Processes) enter(seq uint64) error {
	for !p.over && seq >= p.end {
		e, err, more := p.next()
		switch {
		case err != nil:
			return err
		case !more:
			p.over, p.Now = true, nil
		default:
			p.begin(e)
		}
	}
	return nil
}

func (p *Processes) begin(e *schemas.ProcessEvent) {
	for n := len(p.path); n > 0 && p.path[n-1].Number != e.Parent; n-- {
		p.kept -= len(p.path[n-1].Executable) + len(p.path[n-1].Script)
		p.path = p.path[:n-1]
	}
	one := above{Parent: Parent{Number: e.Process}, shown: -1}
	execs := 0
	for i := range e.States {
		s := &e.States[i]
		if s.By == schemas.StateExec {
			execs++
			one.Executable, one.Script = s.File, s.Script
		}
		if !p.user && s.UID != nil {
			p.user, p.UID, p.GID = true, *s.UID, *s.GID
		}
	}
	size := len(one.Executable) + len(one.Script)
	if execs != 1 || e.StatesOmitted > 0 || p.kept+size > maxPathNames {
		one.Executable, one.Script, size = "", "", 0
	}
	p.path, p.kept = append(p.path, one), p.kept+size
	p.Now, p.end, p.state, p.script, p.entering = e, p.end+e.Lines, -1, "", true
}

// see takes in a line of the process, and reports whether another state can hold from there on.
func (p *Processes) see(e *schemas.KernelEvent) bool {
	if p.Now == nil {
		return false
	}
	changed := p.entering
	if p.entering {
		p.entering = false
		p.path[len(p.path)-1].PID = e.PID
	}
	switch {
	case e.EventType == schemas.EventExec:
		p.advance(func(s *schemas.ProcessState) bool { return s.File == string(e.Value) })
	case e.EventType != schemas.EventScript || len(e.Value) == 0:
		return changed
	case p.script == string(e.Value):
		p.script = ""
		return changed
	default:
		p.advance(func(s *schemas.ProcessState) bool { return s.Script == string(e.Value) })
		p.script = ""
	}
	return true
}

// advance goes to the next exec that is the one of a line.
func (p *Processes) advance(is func(*schemas.ProcessState) bool) {
	states := p.Now.States
	for p.state++; p.state < len(states); p.state++ {
		if s := &states[p.state]; s.By == schemas.StateExec && is(s) {
			p.script = s.Script
			return
		}
	}
	p.state = len(states) // it is one of those that there was no room for
}

// mayHold are the states that can hold at the line, and whether it can be one that is not in the record.
func (p *Processes) mayHold() (states []schemas.ProcessState, other bool) {
	all := p.Now.States
	from := max(p.state, 0)
	if from >= len(all) {
		return nil, true
	}
	to := len(all)
	if next := slices.IndexFunc(all[p.state+1:], func(s schemas.ProcessState) bool { return s.By == schemas.StateExec }); next >= 0 && !p.dropped {
		to = p.state + 1 + next
	}
	other = p.state < 0 && all[0].By != schemas.StateStart || to == len(all) && p.Now.StatesOmitted > 0
	return all[from:to], other
}

// describe says of a process what the layer has at the line.
func (p *Processes) describe(to *Process) {
	to.Number = p.Now.Process
	if n := len(p.path); n > 1 {
		parent := p.path[n-2].Parent
		to.Parent = &parent
	}
	states, other := p.mayHold()
	to.UID, to.GID, to.MountNamespace, to.Root, to.Args, to.Unsure = nil, nil, 0, "", nil, nil
	sure := func(key string, same func(a, b *schemas.ProcessState) bool) bool {
		ok := !other && len(states) > 0 && !slices.ContainsFunc(states, func(s schemas.ProcessState) bool { return s.UID == nil || !same(&s, &states[0]) })
		if !ok {
			to.Unsure = append(to.Unsure, key)
		}
		return ok
	}
	if sure(schemas.ActUID, func(a, b *schemas.ProcessState) bool { return *a.UID == *b.UID }) {
		to.UID = states[0].UID
	}
	if sure(schemas.ActGID, func(a, b *schemas.ProcessState) bool { return *a.GID == *b.GID }) {
		to.GID = states[0].GID
	}
	if sure(schemas.ActNamespace, func(a, b *schemas.ProcessState) bool { return a.MountNamespace == b.MountNamespace }) {
		to.MountNamespace = states[0].MountNamespace
	}
	if sure(schemas.ActRoot, func(a, b *schemas.ProcessState) bool { return a.Root == b.Root }) {
		to.Root = states[0].Root
	}
	p.arguments(to, states, other)
}

// arguments are those of the one program that can run at the line.
func (p *Processes) arguments(to *Process, states []schemas.ProcessState, other bool) {
	var list []*schemas.Arguments
	begins := 0
	for i := range states {
		if states[i].By == schemas.StateExec {
			begins++
			if a := states[i].Arguments; a != nil {
				list = append(list, a)
			}
		} else if i == 0 {
			begins++ // the program of its parent
		}
	}
	switch {
	case begins == 1 && !(other && p.dropped) && p.state < len(p.Now.States):
		if len(list) == 1 {
			to.Args = list[0]
		}
	case len(list) > 0 || p.state >= len(p.Now.States):
		to.Unsure = append(to.Unsure, schemas.ActArgs)
	}
}

// Above is the place in a view of the nearest process above that has one; -1 is none.
func (p *Processes) Above() int {
	for i := len(p.path) - 2; i >= 0; i-- {
		if p.path[i].shown >= 0 {
			return p.path[i].shown
		}
	}
	return -1
}

// Show gives the process its place in a view.
func (p *Processes) Show(place int) { p.path[len(p.path)-1].shown = place }
