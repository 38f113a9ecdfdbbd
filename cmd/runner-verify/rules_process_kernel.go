package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rule that compares the layer process with the layer kernel: the processes share its lines out in their
// order, and executed what these say.

// kernelTrail is what the layer kernel says about processes. Its lines may be millions and come before those of
// the layer process, so what is kept of them waits on disk: where the process id changes, and what was executed.
type kernelTrail struct {
	seed maphash.Seed
	pid  uint32
	file *os.File // made when there is more than fits into memory
	kept []byte
	r    *bufio.Reader

	next trailMark // the first one that was not taken yet
	more bool
	from uint64 // kernel lines of the processes before
}

// trailMark is one thing that is kept, and the line where it is.
type trailMark struct {
	line uint64
	what uint64 // process id, or the hash of an exec
	exec bool
}

const (
	trailBytes  = 17
	trailMemory = 1 << 20
)

// see takes in a kernel line.
func (t *kernelTrail) see(line uint64, e *schemas.KernelEvent) error {
	if e.PID != t.pid || line == 0 {
		t.pid = e.PID
		if err := t.keep(trailMark{line, uint64(e.PID), false}); err != nil {
			return err
		}
	}
	if e.EventType == schemas.EventExec || e.EventType == schemas.EventScript && len(e.Value) > 0 {
		return t.keep(trailMark{line, t.hash(e.EventType, e.Value), true})
	}
	return nil
}

// hash is that of a line of an exec. One without a value is like one with an empty value.
func (t *kernelTrail) hash(event uint32, value []byte) uint64 {
	if t.seed == (maphash.Seed{}) { // the first one; the layer kernel may have no line
		t.seed = maphash.MakeSeed()
	}
	return maphash.Bytes(t.seed, value)*2 + uint64(event)
}

func (t *kernelTrail) keep(m trailMark) (err error) {
	kind := byte(0)
	if m.exec {
		kind = 1
	}
	t.kept = append(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(t.kept, m.line), m.what), kind)
	if len(t.kept) < trailMemory {
		return nil
	}
	return t.spill()
}

func (t *kernelTrail) spill() (err error) {
	if t.file == nil {
		if t.file, err = tool.Spool(); err != nil {
			return err
		}
	}
	if _, err := t.file.Write(t.kept); err != nil {
		return tool.ScratchError(err)
	}
	t.kept = t.kept[:0]
	return nil
}

// rewind begins the comparison.
func (t *kernelTrail) rewind() error {
	var before io.Reader = io.MultiReader()
	if t.file != nil {
		before = io.NewSectionReader(t.file, 0, 1<<62)
	}
	t.r = bufio.NewReaderSize(io.MultiReader(before, bytes.NewReader(t.kept)), 64<<10)
	return t.advance()
}

func (t *kernelTrail) advance() error {
	var b [trailBytes]byte
	_, err := io.ReadFull(t.r, b[:])
	if t.more = err == nil; !t.more {
		if err == io.EOF {
			return nil
		}
		return tool.ScratchError(err)
	}
	t.next = trailMark{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]), b[16] == 1}
	return nil
}

func (t *kernelTrail) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// processKernelLines compares a process with its lines of the layer kernel. What is wrong is told at the end:
// only then it is known which lines the user had left out.
func (v *verifier) processKernelLines(l *archive.Line, e *schemas.ProcessEvent) {
	p, t := &v.process, &v.process.kernel
	if p.fault != "" || v.err != nil {
		return
	}
	if t.r == nil {
		if v.err = t.rewind(); v.err != nil {
			return
		}
	}
	if all := v.kernelLines(); e.Lines > all || t.from > all-e.Lines {
		v.faultTrail(l, "process %d has %d kernel lines, only %d are left", e.Process, e.Lines, all-t.from)
		return
	}
	end := t.from + e.Lines
	execs := v.stateHashes(e)
	for t.more && t.next.line < end && v.err == nil {
		switch m := t.next; {
		case !m.exec && m.line > t.from:
			v.faultTrail(l, "process %d has kernel lines %d to %d, but another process id begins at %d", e.Process, t.from, end-1, m.line)
			return
		case !m.exec && m.what != uint64(e.Process):
			p.faultPID = true
		case m.exec:
			for len(execs) > 0 && execs[0] != m.what {
				execs = execs[1:]
				p.missing++
			}
			if len(execs) > 0 {
				execs = execs[1:]
			} else if e.StatesOmitted == 0 {
				v.faultTrail(l, "process %d executed what kernel line %d says, but no state has that in its place", e.Process, m.line)
				return
			}
		}
		v.err = t.advance()
	}
	p.missing += uint64(len(execs))
	t.from = end
}

// stateHashes are the hashes of the lines that the layer kernel has of a process's execs.
func (v *verifier) stateHashes(e *schemas.ProcessEvent) (list []uint64) {
	t := &v.process.kernel
	for i := range e.States {
		s := &e.States[i]
		if s.By != schemas.StateExec {
			continue
		}
		list = append(list, t.hash(schemas.EventExec, []byte(s.File)))
		if s.Script != "" {
			list = append(list, t.hash(schemas.EventScript, []byte(s.Script)))
		}
	}
	return list
}

func (v *verifier) faultTrail(l *archive.Line, format string, a ...any) {
	v.process.fault, v.process.at = fmt.Sprintf(format, a...), l.Number
}

// processKernel tells what the comparison found, if both layers are without faults of their own.
func (v *verifier) processKernel() {
	p := &v.process
	if v.err != nil || !v.sound(processLayerName) || !v.sound(kernelLayerName) || v.lineCount(processLayerName) == 0 {
		return
	}
	dropped, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped)
	omitted, _ := v.noteCount(schemas.NoteProcesses, schemas.KeyOmitted)
	switch all := v.kernelLines(); {
	case p.fault != "":
		v.add(ruleProcessKernel, processLayerName, p.at, "%s", p.fault)
	case p.kernel.from < all && omitted == 0:
		v.add(ruleProcessKernel, processLayerName, 0, "the processes have %d kernel lines, the layer kernel has %d", p.kernel.from, all)
	case p.missing > dropped:
		v.add(ruleProcessKernel, processLayerName, 0, "%d programs were executed without a kernel line; --drop left out %d lines", p.missing, dropped)
	case p.faultPID && v.noted(schemas.NotePIDs):
		v.add(ruleProcessKernel, processLayerName, 0, "kernel lines have another number than their process, note %s says that they have the same", schemas.NotePIDs.Code)
	}
}
