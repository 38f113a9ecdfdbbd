package main

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/runner-evidence/runner/schemas"
)

// class is how an operation becomes lines.
type class uint8

const (
	classTree    class = iota // fork, exit, move, context: no line
	classOpen                 // path, with flags
	classExec                 // binary, and the script if there is one
	classLoader               // path, of a loader
	classFailed               // an exec that did not happen
	classNetwork              // endpoint
	classBlocked              // endpoint or path, and the rule that refused it
	classPath                 // one path
	classPaths                // two paths: two lines
	classMount                // a path, and a text such as a mount's source: two lines
	classText                 // a text
	classNothing              // a line without a value
)

// operation is one row of the table in schemas/STREAMS.md, "Operations".
type operation struct {
	class  class
	first  uint32 // event id
	second uint32 // event id of the second line
}

var operations = func() map[string]operation {
	m := map[string]operation{}
	for _, o := range schemas.Operations {
		m[o.Name] = operation{classOf(o), o.First, o.Second}
	}
	return m
}()

// classOf is the class of an operation: it follows from the lines that one makes.
func classOf(o schemas.Operation) class {
	switch o.First {
	case 0:
		return classTree
	case schemas.EventOpenat:
		return classOpen
	case schemas.EventExec:
		return classExec
	case schemas.EventLoader:
		return classLoader
	case schemas.EventExecFailed:
		return classFailed
	case schemas.EventIOUringOther:
		return classNothing
	}
	switch {
	case schemas.Refused(o.First):
		return classBlocked
	case schemas.SetOf(o.First) == schemas.SetNetworkEndpoints:
		return classNetwork
	case schemas.HasText(o.First):
		return classText
	case schemas.HasText(o.Second):
		return classMount
	case o.Second != 0:
		return classPaths
	}
	return classPath
}

// mapper turns raw events into kernel lines. Its buffers hold the values of the
// event at hand.
type mapper struct {
	lastOp string // events with the same op often follow each other
	last   operation
	first  []byte
	second []byte
}

func (m *mapper) operation(op string) (operation, error) {
	if op == m.lastOp {
		return m.last, nil
	}
	o, ok := operations[op]
	if !ok {
		return o, fmt.Errorf("unknown op %q", op)
	}
	m.lastOp, m.last = op, o
	return o, nil
}

// firstPath is the path that the event is about: nil when it is not known.
// lexical says that it was joined from its text.
func (m *mapper) firstPath(e *schemas.RawEvent) (path []byte, lexical bool) {
	if e.Path != nil {
		return e.Path, false
	}
	if e.UserPath == nil {
		return nil, false
	}
	m.first = appendLexical(m.first[:0], e.Base, m.fromBase(e), e.Marks&schemas.MarkChroot != 0)
	return m.first, true
}

// fromBase is the text of the first path, as what it means from its base. An open whose caller
// made the base the root of the lookup is like an absolute one there, and without a base it is a path of no root.
func (m *mapper) fromBase(e *schemas.RawEvent) []byte {
	if e.Resolve&schemas.ResolveInRoot == 0 {
		return e.UserPath
	}
	if e.Base == nil {
		return bytes.TrimLeft(e.UserPath, "/")
	}
	m.second = append(append(m.second[:0], '/'), e.UserPath...)
	return m.second
}

func (m *mapper) secondPath(e *schemas.RawEvent) (path []byte, lexical bool) {
	if e.Path2 != nil {
		return e.Path2, false
	}
	if e.UserPath2 == nil {
		return nil, false
	}
	m.second = appendLexical(m.second[:0], e.Base2, e.UserPath2, e.Marks&schemas.MarkChroot != 0)
	return m.second, true
}

// script is the path of the `#!` script that an exec named, nil for a binary.
func (m *mapper) script(e *schemas.RawEvent) []byte {
	if e.Interp == nil || e.UserPath == nil {
		return nil
	}
	m.second = appendLexical(m.second[:0], e.Base, e.UserPath, e.Marks&schemas.MarkChroot != 0)
	return m.second
}

// binary is the program that runs after an exec. Without a resolved path only the
// name that the program gave is known, and for a script that is the interpreter's.
func (m *mapper) binary(e *schemas.RawEvent) (path []byte, lexical bool) {
	if e.Path == nil && e.Interp != nil {
		return e.Interp, true
	}
	return m.firstPath(e)
}

const (
	eFault      = -14
	eInProgress = schemas.ConnectInProgress
)

// outcome fills in what is known about the success of an operation.
func outcome(k *schemas.KernelEvent, e *schemas.RawEvent) {
	if e.Marks&schemas.MarkChanged != 0 {
		k.Doubt = schemas.DoubtChanged
	}
	if e.Marks&schemas.MarkUnproven != 0 {
		k.Status = schemas.StatusUnproven
		return
	}
	if e.Has&schemas.HasRet == 0 {
		return
	}
	k.Has |= schemas.KernelHasReturn
	k.ReturnValue = e.Ret
	switch {
	case e.Marks&schemas.MarkDeferred != 0:
		// Pending, though it returned 0.
	case e.Ret >= 0:
		k.Status = schemas.StatusSuccess
	case e.Ret == eInProgress && e.Op == schemas.OpConnect:
		// Pending: neither a success nor an error yet.
	default:
		k.Status = schemas.StatusError
	}
}

// openFields fills in what only the lines of the open family have.
func openFields(k *schemas.KernelEvent, e *schemas.RawEvent) {
	if e.Has&schemas.HasFlags != 0 {
		k.Has |= schemas.KernelHasFlags
		k.Flags = e.Flags
		k.AccessMode = schemas.AccessMode(e.Flags)
		k.Operations = schemas.OperationsOf(e.Flags)
	}
	if e.Has&schemas.HasMode != 0 {
		k.Has |= schemas.KernelHasMode
		k.Mode = e.Mode
	}
	if e.Has&schemas.HasResolve != 0 && e.Resolve != 0 {
		k.Has |= schemas.KernelHasResolve
		k.Resolve = e.Resolve
	}
}

// renameFields fills in how the two names of a rename are treated, where that is not the usual way.
func renameFields(k *schemas.KernelEvent, e *schemas.RawEvent) {
	if e.Has&schemas.HasFlags != 0 && e.Flags != 0 {
		k.Has |= schemas.KernelHasFlags
		k.Flags = e.Flags
	}
}

// blockedFields fills in what only the line of a refused operation has. Destination and
// port are those of an IP address; a unix name is only in the value,
// and the refusal of a socket, which no later call is checked for, has none.
func blockedFields(k *schemas.KernelEvent, e *schemas.RawEvent) {
	k.Has |= schemas.KernelHasCgroupID
	k.CgroupID = e.CgroupID
	if e.Has&schemas.HasRule != 0 {
		k.Has |= schemas.KernelHasRuleID
		k.RuleID = e.Rule
	}
	if a, err := netip.ParseAddrPort(string(e.Addr)); err == nil {
		k.Has |= schemas.KernelHasPort
		k.Destination, k.Port = a.Addr().AppendTo(nil), a.Port()
	}
}
