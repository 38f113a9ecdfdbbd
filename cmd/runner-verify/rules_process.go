package main

import (
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rules for the layer process: the lines are the fork tree in its order, and the note counts them.

const (
	ruleProcessLines  = "process.lines"
	ruleProcessKernel = "process.kernel"
	ruleProcessNote   = "process.note"
)

const processLayerName = schemas.MemberProcess

// processLayer is what the lines add up to.
type processLayer struct {
	path    []uint32 // the last process and its ancestors, the highest first
	spaces  uint32   // the highest number of a mount namespace
	cut     uint64   // states that were left out
	unknown uint64   // states of which it is not known who or where the process was

	arguments, argv, digests uint64 // states with each of these
	marks                    schemas.RedactionMarks

	kernel   kernelTrail
	missing  uint64 // execs that the layer kernel lacks
	fault    string // the first one of the comparison with the layer kernel
	at       int    // its line
	faultPID bool   // a kernel line has another number than its process
}

// processLine checks that the lines are a tree in the order of a walk, and what each says.
func (v *verifier) processLine(l *archive.Line, e *schemas.ProcessEvent) {
	p := &v.process
	if uint64(e.Process) != e.Seq+1 {
		v.faultProcess(l, "process is %d, expected %d: seq and one", e.Process, e.Seq+1)
	}
	for len(p.path) > 0 && p.path[len(p.path)-1] != e.Parent {
		p.path = p.path[:len(p.path)-1]
	}
	if len(p.path) == 0 && e.Parent > 0 {
		v.faultProcess(l, "parent %d is neither the process before it nor one above that: the lines are not a walk of a tree", e.Parent)
	}
	p.path = append(p.path, e.Process)
	size := 0
	for i := range e.States {
		s := &e.States[i]
		size += s.Size()
		v.processState(l, s)
		if first := i == 0 && e.Parent > 0; (s.By == schemas.StateStart) != first {
			v.faultProcess(l, "states[%d] is by %s: the first of a process with a parent is its start, and no other one", i, s.By)
		}
		if s.UID == nil || s.Root == schemas.UnknownRoot {
			p.unknown++
		}
	}
	p.cut += e.StatesOmitted
	switch {
	case e.Parent > 0 && len(e.States) == 0:
		v.faultProcess(l, "no state, but it has a parent: its start is one")
	case len(e.States) > schemas.MaxProcessStates || size > schemas.MaxProcessBytes:
		v.faultProcess(l, "%d states with %d bytes of text, at most %d and %d", len(e.States), size, schemas.MaxProcessStates, schemas.MaxProcessBytes)
	case l.Number == schemas.MaxProcesses+1:
		v.faultProcess(l, "more than %d processes", schemas.MaxProcesses)
	}
}

// processState checks one state.
func (v *verifier) processState(l *archive.Line, s *schemas.ProcessState) {
	p := &v.process
	for _, text := range [...]string{s.File, s.Script, s.Root} {
		if !schemas.IsText([]byte(text)) {
			v.faultProcess(l, "%.200q is not the escape of any byte string", text)
		}
	}
	if a := s.Arguments; a != nil {
		v.processArguments(l, a)
	}
	if s.MountNamespace > min(p.spaces+1, schemas.MaxNamespaces) {
		v.faultProcess(l, "mount_namespace %d, the highest before it is %d, and there are at most %d", s.MountNamespace, p.spaces, schemas.MaxNamespaces)
	}
	p.spaces = max(p.spaces, s.MountNamespace)
}

// processArguments checks what a program was started with.
func (v *verifier) processArguments(l *archive.Line, a *schemas.Arguments) {
	p := &v.process
	if a.Count > 0 {
		p.arguments++
		p.argv += min(uint64(len(a.Argv)), 1)
		p.digests += min(uint64(len(a.Digests)), 1)
	}
	read, whole := uint64(0), len(a.Argv) > 0
	for _, arg := range a.Argv {
		text, err := schemas.Untext(arg)
		read += uint64(len(text)) + 1
		whole = whole && err == nil && !strings.Contains(arg, schemas.RedactionMark)
	}
	if whole && read != a.Bytes-a.Unread {
		v.faultProcess(l, "argv has %d bytes, the numbers say %d", read, a.Bytes-a.Unread)
	}
	for _, text := range a.Texts() {
		if !schemas.IsText([]byte(text)) {
			v.faultProcess(l, "%.200q is not the escape of any byte string", text)
		}
		if err := p.marks.Add(text); err != nil {
			v.faultProcess(l, "%v", err)
		}
	}
	if len(a.Argv) > 0 && !strings.Contains(a.Argv[0], schemas.RedactionMark) {
		if name := a.Argv[0][strings.LastIndexByte(a.Argv[0], '/')+1:]; a.Name != name && len(name) <= schemas.MaxProgramName && !strings.Contains(a.Name, schemas.RedactionMark) {
			v.faultProcess(l, "name is %.100q, the first argument ends with %.100q", a.Name, name)
		}
	}
}

func (v *verifier) faultProcess(l *archive.Line, format string, a ...any) {
	v.add(ruleProcessLines, l.Member, l.Number, format, a...)
}

// processNote checks that the note about processes counts the lines of the layer.
func (v *verifier) processNote() {
	_, there := v.members[processLayerName]
	count := func(key string) uint64 {
		n, _ := v.noteCount(schemas.NoteProcesses, key)
		return n
	}
	noted, p, lines := v.noted(schemas.NoteProcesses), &v.process, v.lineCount(processLayerName)
	switch {
	case there && !noted:
		v.faultHealth(ruleProcessNote, "no note %s, but there is the member %s", schemas.NoteProcesses.Code, processLayerName)
	case there && lines == 0:
		v.faultHealth(ruleProcessNote, "the member %s has no line: then it is left out", processLayerName)
	case noted && (count(schemas.KeyProcesses) != lines || count(schemas.KeyStatesOmitted) != p.cut || count(schemas.KeyUnknown) != p.unknown):
		v.faultHealth(ruleProcessNote, "%s says processes=%d states_omitted=%d unknown=%d, the layer has %d, %d and %d", schemas.NoteProcesses.Code,
			count(schemas.KeyProcesses), count(schemas.KeyStatesOmitted), count(schemas.KeyUnknown), lines, p.cut, p.unknown)
	case noted:
		v.argumentsNote(v.noteFields(schemas.NoteProcesses))
	}
}

// argumentsNote checks that arguments are recorded in the way that the note says.
func (v *verifier) argumentsNote(note map[string]string) {
	p, mode, key := &v.process, note[schemas.KeyArgv], note[schemas.KeyKey] != schemas.NoKey
	var argv, digests uint64
	switch {
	case mode == schemas.ArgvFull:
		argv = p.arguments
	case mode == schemas.ArgvHash && key:
		digests = p.arguments
	}
	if mode == schemas.ArgvNone && p.arguments > 0 || p.argv != argv || p.digests != digests || key && p.marks.Plain > 0 || !key && p.marks.Keyed > 0 {
		v.faultHealth(ruleProcessNote, "%s says argv=%s key=%.100s, the layer has arguments in %d states, %d times as texts and %d times as digests, and %d marks with and %d without a digest",
			schemas.NoteProcesses.Code, mode, note[schemas.KeyKey], p.arguments, p.argv, p.digests, p.marks.Keyed, p.marks.Plain)
	}
}
