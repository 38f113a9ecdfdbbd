package schemas

import (
	"errors"
	"fmt"
)

// The layer process is optional: it has each process of the run with its place in the fork tree, what
// it executed, and as whom and where it did so.

// Bounds of the layer. What is above is counted in its note.
const (
	MaxProcesses     = 1 << 20   // lines
	MaxProcessStates = 64        // of one process
	MaxProcessBytes  = 256 << 10 // of the texts of one process
	MaxProcessLayer  = 256 << 20
	MaxNamespaces    = 1 << 12 // mount namespaces with a number of their own
)

// What a state of a process came from.
const (
	StateStart = "start" // its creation
	StateExec  = "exec"  // a program
	StateCall  = "call"  // a call that sets who or where it is
)

// StateKinds are all that a state can come from.
var StateKinds = [...]string{StateStart, StateExec, StateCall}

// UnknownRoot stands for a root directory that could not be read.
const UnknownRoot = "?"

// ProcessEvent is one line of layers/process.ndjson.
type ProcessEvent struct {
	Schema        string         `json:"schema"`
	RunID         string         `json:"run_id"`
	Seq           uint64         `json:"seq"`
	Process       uint32         `json:"process"`         // its number in the walk of the fork tree, from 1
	Parent        uint32         `json:"parent,omitzero"` // 0: nobody in the scope created it
	Lines         uint64         `json:"lines"`           // how many lines of the layer kernel are its
	States        []ProcessState `json:"states"`
	StatesOmitted uint64         `json:"states_omitted,omitzero"`
}

// ProcessState is who and where a process is, and what it runs, from one moment on.
type ProcessState struct {
	By             string  `json:"by"`
	File           string  `json:"file,omitempty"`   // of an exec: the binary, "" if it is not known
	Script         string  `json:"script,omitempty"` // the script that named it by #!
	UID            *uint32 `json:"uid,omitempty"`    // effective, in the initial user namespace; nil: not known
	GID            *uint32 `json:"gid,omitempty"`
	MountNamespace uint32  `json:"mount_namespace,omitzero"` // its number; 0: the run's
	Root           string  `json:"root,omitempty"`           // root directory, if it is another

	Arguments *Arguments `json:"arguments,omitempty"` // of an exec, if they were asked for
}

// ParseProcessEvent parses one line of layers/process.ndjson.
func ParseProcessEvent(line []byte) (*ProcessEvent, error) {
	p := new(ProcessEvent)
	err := decode(line, p)
	if err == nil {
		err = first(head(p.Schema, SchemaProcessEvent, p.RunID), p.check())
	}
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	return p, nil
}

// check checks what a line says on its own. runner-verify compares lines with each other.
func (p *ProcessEvent) check() error {
	if p.Process == 0 {
		return errors.New("process is 0, expected numbers from 1")
	}
	for i := range p.States {
		if err := p.States[i].check(); err != nil {
			return fmt.Errorf("states[%d]: %w", i, err)
		}
	}
	return nil
}

// Size is how many bytes of text a state has, of which a line has at most MaxProcessBytes.
func (s *ProcessState) Size() int {
	n := len(s.File) + len(s.Script) + len(s.Root)
	if a := s.Arguments; a != nil {
		n += len(a.Name)
		for _, text := range a.Argv {
			n += len(text) + 1
		}
		for _, text := range a.Digests {
			n += len(text) + 1
		}
	}
	return n
}

func (s *ProcessState) check() error {
	switch {
	case (s.UID == nil) != (s.GID == nil):
		return errors.New("one of uid and gid is missing")
	case s.UID == nil && (s.MountNamespace > 0 || s.Root != ""):
		return errors.New("mount_namespace or root without uid and gid")
	case s.By != StateExec && (s.File != "" || s.Script != "" || s.Arguments != nil):
		return fmt.Errorf("a file without an exec: by is %.100q", s.By)
	}
	if s.Arguments != nil {
		if err := s.Arguments.Check(); err != nil {
			return fmt.Errorf("arguments: %w", err)
		}
	}
	return oneOf("by", s.By, StateKinds[:]...)
}
