package main

import (
	"encoding/binary"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// processArena is how many bytes of states are kept in memory.
const processArena = 1 << 20

// processes is the layer process while the stream is read: the states of each process, in the order in which
// they came. Nil without the layer.
type processes struct {
	contexts
	store   *store          // states, by the head of the process
	current chunked[uint32] // by head: number of its present context
	packed  []byte
	lines   []uint32 // kernel lines that were written, by number of the process, once the order is known

	argv, key string // how arguments were recorded

	written, omitted, cut, unknown uint64
}

func newProcesses() *processes {
	return &processes{contexts: newContexts(), store: newStore(processArena)}
}

// stateKinds are what states come from; a packed state begins with the place in this list.
var stateKinds = [...]string{schemas.StateStart, schemas.StateExec, schemas.StateCall}

const (
	stateStart = iota
	stateExec
	stateCall
)

// add keeps a state of the process of a task.
func (p *processes) add(head uint32, kind byte, e *schemas.RawEvent, file, script []byte) error {
	no := p.number(e)
	for int(head/taskChunk) >= len(p.current) {
		p.current = append(p.current, make([]uint32, taskChunk))
	}
	now := p.current.at(head)
	if kind == stateCall && *now == no { // another thread of the process did the same before, or nothing changed
		return nil
	}
	*now = no
	b := binary.AppendUvarint(append(p.packed[:0], kind), uint64(no))
	var arguments []byte
	if e.Arguments != nil {
		var err error
		if arguments, err = schemas.Marshal(e.Arguments); err != nil {
			return err
		}
	}
	for _, text := range [...][]byte{file, script, arguments} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	p.packed = b
	return p.store.keep(head, b)
}

// state takes the first packed state apart.
func (p *processes) state(packed []byte) (s schemas.ProcessState, size int, rest []byte) {
	s.By = stateKinds[packed[0]]
	no, n := binary.Uvarint(packed[1:])
	packed = packed[1+n:]
	p.describe(&s, uint32(no))
	var arguments string
	for _, text := range [...]*string{&s.File, &s.Script, &arguments} {
		length, n := binary.Uvarint(packed)
		*text = string(packed[n : n+int(length)])
		packed = packed[n+int(length):]
	}
	if arguments != "" {
		s.Arguments, _ = schemas.ParseArguments([]byte(arguments)) // it came from there
	}
	return s, s.Size(), packed
}

// settle takes from the capture's health what the layer as a whole says.
func (p *processes) settle(h *schemas.StageHealth) error {
	p.argv, p.key = h.Facts[schemas.FactArguments], h.Facts[schemas.FactArgumentsKey]
	if !slices.Contains(schemas.ArgvModes[:], p.argv) { // a stream of before, or without a capture
		p.argv = schemas.ArgvNone
	}
	if p.argv == schemas.ArgvNone || p.key == "" {
		p.key = schemas.NoKey
	}
	return p.settleRun(h)
}

// counted notes a kernel line of a process.
func (p *processes) counted(number uint32) {
	if p != nil {
		p.lines[number-1]++
	}
}

// ordered is told the order of all tasks, before any line is written.
func (p *processes) ordered(o *order) error {
	if p == nil {
		return nil
	}
	p.current = nil
	p.lines = make([]uint32, len(o.processes))
	return p.store.rekey(func(head uint32) uint32 { return o.place[head] })
}

// processWriter writes the lines of the layer, one for each process, in canonical order.
type processWriter struct {
	*processes
	w     *stream.Writer
	order *order
	line  schemas.ProcessEvent
	text  int // bytes of the texts of line
	size  int // bytes written
}

// write writes the layer.
func (p *processes) write(w *stream.Writer, runID string, o *order) error {
	if p == nil {
		return nil
	}
	out := &processWriter{processes: p, w: w, order: o}
	out.line = schemas.ProcessEvent{Schema: schemas.SchemaProcessEvent, RunID: runID}
	out.next()
	err := p.store.each(func(place uint32, packed []byte) error {
		for o.process(out.line.Process).end <= place {
			if err := out.end(); err != nil {
				return err
			}
		}
		for len(packed) > 0 {
			var s schemas.ProcessState
			var size int
			s, size, packed = p.state(packed)
			out.add(s, size)
		}
		return nil
	})
	for err == nil && int(out.line.Process) <= len(o.processes) {
		err = out.end()
	}
	return err
}

// next begins the line of the next process.
func (w *processWriter) next() {
	l := &w.line
	*l = schemas.ProcessEvent{Schema: l.Schema, RunID: l.RunID, Seq: uint64(l.Process), Process: l.Process + 1, States: l.States[:0]}
	if l.States == nil {
		l.States = []schemas.ProcessState{}
	}
	if int(l.Process) <= len(w.order.processes) {
		l.Parent, l.Lines = w.order.process(l.Process).parent, uint64(w.lines[l.Process-1])
	}
	w.text = 0
}

// add adds a state to the line, or counts it. After one that was left out there is no other: what is left
// out is one range.
func (w *processWriter) add(s schemas.ProcessState, size int) {
	l := &w.line
	if l.StatesOmitted > 0 || len(l.States) == schemas.MaxProcessStates || w.text+size > schemas.MaxProcessBytes {
		l.StatesOmitted++
		return
	}
	l.States = append(l.States, s)
	w.text += size
}

// end writes the line, or counts the process, and begins the next one.
func (w *processWriter) end() error {
	defer w.next()
	b, err := schemas.Marshal(&w.line)
	if err != nil {
		return err
	}
	if w.omitted > 0 || w.written == schemas.MaxProcesses || w.size+len(b)+1 > schemas.MaxProcessLayer {
		w.omitted++
		return nil
	}
	w.written++
	w.size += len(b) + 1
	w.cut += w.line.StatesOmitted
	for i := range w.line.States {
		if s := &w.line.States[i]; s.UID == nil || s.Root == schemas.UnknownRoot {
			w.unknown++
		}
	}
	return w.w.WriteRaw(b)
}

func (p *processes) close() {
	if p != nil {
		p.store.close()
	}
}
