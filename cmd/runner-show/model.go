package main

import (
	"cmp"
	"fmt"
	"path"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of what is kept. What is beyond them is counted.
const (
	maxNames     = 1 << 19  // distinct names
	maxNameBytes = 48 << 20 // of all names
	maxEntries   = 1 << 20  // names of groups of processes
	maxProcesses = 1 << 16
	maxShownExec = 8 // programs of one process, in order
)

// model is the run as the screens show it: the whole, and process by process. Every view that
// folds is made from it.
type model struct {
	names     map[string]uint32
	list      []string
	bytes     int
	entries   int
	together  bool
	all       summary
	processes []*process
	byPID     map[uint32]*process
	rest      *process // those beyond maxProcesses
	left      int      // how many these are
	filtered  uint64   // values that were left out as noise
	recorded  uint64   // processes of the layer process: also those without a line of the kernel layer
	wrapped   wrapped
	last      *process // of the last act
	layered   bool     // processes are of the layer process
}

// process is one process, with what it did.
type process struct {
	summary
	index    int // in the order of the record
	pid      uint32
	programs []string // that it executed, in order
	more     int      // programs beyond these
	executed bool     // an exec was taken: the programs are those

	number uint32 // in the layer process; its programs are then of the layer, ready to be shown
	first  string // program, without its folders
	depth  int    // below the first one
	above  int    // the nearest process above that is in the model; -1 is none, or not known
}

// summary is what acts add up to.
type summary struct {
	acts    uint64
	groups  [acts.Groups]fold // what was done, or whose outcome is not known
	refused fold
	failed  map[string]*fold // by the name of the error
	doubts  uint64
	pending uint64
	unsure  uint64 // acts that are unproven
}

// fold is a set of names with the number of acts on each.
type fold struct {
	times map[uint32]uint32
	acts  uint64
	lost  uint64 // acts on names beyond the bounds
}

// atLeast comes before the number of names, if there were more than are kept.
func (f *fold) atLeast() string {
	if f.lost > 0 {
		return "at least "
	}
	return ""
}

func newModel(together bool) *model {
	return &model{names: map[string]uint32{}, together: together, byPID: map[uint32]*process{}}
}

// name gives a name its number; false is beyond the bounds.
func (m *model) name(s string) (uint32, bool) {
	n, ok := m.names[s]
	if ok {
		return n, true
	}
	if len(m.list) >= maxNames || m.bytes+len(s) > maxNameBytes {
		return 0, false
	}
	n = uint32(len(m.list))
	m.names[s], m.list, m.bytes = n, append(m.list, s), m.bytes+len(s)
	return n, true
}

func (m *model) add(f *fold, name string) {
	f.acts++
	n, ok := m.name(name)
	if ok {
		if f.times == nil {
			f.times = map[uint32]uint32{}
		}
		if f.times[n] == 0 {
			if m.entries >= maxEntries {
				f.lost++
				return
			}
			m.entries++
		}
		f.times[n]++
		return
	}
	f.lost++
}

// take adds an act.
func (m *model) take(a *acts.Act) {
	p := m.process(a)
	m.last = p
	switch name := a.Process.Executable; {
	case p.number > 0: // the layer has its programs
	case a.EventType != 0 && a.Group == acts.Executed && a.Outcome == schemas.ActDone && a.Op != schemas.OpLoader:
		name = a.Path
		if a.Script != "" {
			name = a.Script
		}
		p.ran(name)
		p.executed = true
	case !p.executed && name != "" && (len(p.programs) == 0 || p.programs[len(p.programs)-1] != name):
		p.ran(name) // the filter took no exec: the program is the one that acted
	}
	m.sum(&m.all, a)
	m.sum(&p.summary, a)
}

// ran notes a program of the process.
func (p *process) ran(name string) {
	if len(p.programs) == maxShownExec {
		p.more++
		return
	}
	p.programs = append(p.programs, name)
}

func (m *model) sum(s *summary, a *acts.Act) {
	s.acts++
	if a.InDoubt {
		s.doubts++
	}
	switch a.Outcome {
	case schemas.ActRefused:
		m.add(&s.refused, valueOf(a))
		return
	case schemas.ActFailed:
		name := a.Error
		if name == "" {
			name = "unnamed error"
		}
		if s.failed == nil {
			s.failed = map[string]*fold{}
		}
		if s.failed[name] == nil {
			s.failed[name] = new(fold)
		}
		m.add(s.failed[name], valueOf(a))
		return
	case schemas.ActUnproven:
		s.unsure++
		return
	case schemas.ActPending:
		s.pending++
	}
	m.add(&s.groups[a.Group], shownValue(a))
}

// shownValue is the name under which an act is folded: the one that it made, if it made one.
func shownValue(a *acts.Act) string {
	switch {
	case a.Op == schemas.OpRename || a.Op == schemas.OpLink:
		if a.NewPath != "" {
			return a.NewPath
		}
	case a.Group == acts.Executed && a.Script != "":
		return a.Script
	case a.Value() == "":
		return valueOf(a)
	case a.Transport != "":
		return a.Endpoint + " (" + a.Transport + ")"
	case a.Outcome == schemas.ActPending:
		return a.Endpoint + " (" + schemas.ActPending + ")"
	case a.Group == acts.Other:
		return a.Op + " " + a.Value()
	}
	return a.Value()
}

// valueOf is what an act is about or, where the record has no name of it, what it can be.
func valueOf(a *acts.Act) string {
	v := a.Value()
	switch {
	case v != "":
	case a.Op == schemas.OpConnect:
		return "(another family, or a disconnect)"
	case a.Net():
		return "(another family: netlink, packet …)"
	case a.Group != acts.Other:
		return "(" + a.Op + " of a name that was not read)"
	default:
		return a.Op
	}
	return v
}

// end takes how many lines a member has.
func (m *model) end(of archive.Member) {
	switch of.Name {
	case schemas.MemberFiltered:
		m.filtered = of.Lines
	case schemas.MemberProcess:
		m.recorded = of.Lines
	}
}

// size says how many kernel events there are, in how many of the processes of the run. runner-pack's line has all of these.
// With a filter the processes are those that it leaves.
func (m *model) size(rec *verdict.Record, f *filter) string {
	n := uint64(len(m.processes) + m.left)
	words := counted(rec.KernelEvents, "kernel event") + " in "
	switch {
	case !f.empty():
		return words + counted(n, "process") + " shown"
	case m.recorded > n:
		return words + fmt.Sprintf("%d of ", n) + counted(m.recorded, "process")
	}
	return words + counted(n, "process")
}

// process finds the process of an act. Where the lines of a process are together, another
// number is another process.
func (m *model) process(a *acts.Act) *process {
	pid, number := a.Process.PID, a.Process.Number
	together := m.together || number > 0
	if n := len(m.processes); together && n > 0 && m.processes[n-1].pid == pid && m.processes[n-1].number == number && m.rest == nil {
		return m.processes[n-1]
	}
	if p := m.byPID[pid]; !together && p != nil {
		return p
	}
	if len(m.processes) == maxProcesses {
		if m.rest == nil {
			m.rest = new(process)
		}
		if !together || m.rest.pid != pid || m.rest.number != number {
			m.left++
		}
		m.rest.pid, m.rest.number, m.rest.index = pid, number, maxProcesses+m.left-1
		return m.rest
	}
	p := &process{pid: pid, number: number, index: len(m.processes), above: -1}
	m.processes = append(m.processes, p)
	switch {
	case number > 0:
		m.place(p, a.Layer)
	case !together:
		m.byPID[pid] = p
	}
	return p
}

// place takes what the layer process has of a process: what is above it, and its states.
func (m *model) place(p *process, layer *acts.Processes) {
	m.layered = true
	if p.above = layer.Above(); p.above >= 0 {
		p.depth = m.processes[p.above].depth + 1
	}
	layer.Show(p.index)
	for _, item := range history(layer) {
		if n, ok := m.name(item); ok && len(p.programs) < maxShownExec {
			p.programs = append(p.programs, m.list[n])
		} else {
			p.more++
		}
	}
	for i := range layer.Now.States {
		if s := &layer.Now.States[i]; s.By == schemas.StateExec {
			p.first = path.Base(cmp.Or(s.Script, s.File, schemas.UnknownRoot))
			return
		}
	}
}
