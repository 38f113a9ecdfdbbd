package schemas

import (
	"errors"
	"fmt"
)

// The parsers in this file are for records that are only in pipes: those with which the
// stages pass on windows, logs and the report.

// ParseProcess parses one process record of a kernel.normalized stream.
func ParseProcess(line []byte) (*Process, error) {
	p := new(Process)
	err := decode(line, p)
	if err == nil {
		err = pipeHead(p.Schema, SchemaProcess, p.RunID)
	}
	if err == nil && (p.NSPID == 0) != (p.PIDNS == 0) {
		err = errors.New("one of ns_pid and pid_ns is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	return p, nil
}

// ParseLogLine parses one record of a collected log. Untext gives the bytes that
// were written.
func ParseLogLine(line []byte) (*LogLine, error) {
	l := new(LogLine)
	err := decode(line, l)
	if err == nil {
		err = pipeHead(l.Schema, SchemaLogLine, l.RunID)
	}
	if err == nil {
		if _, err = Untext(l.Line); err != nil {
			err = fmt.Errorf("line is not a text: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("log line: %w", err)
	}
	return l, nil
}

// ParseBinding parses one binding on its way to the report.
func ParseBinding(line []byte) (*BindingEntry, error) {
	e := new(BindingEntry)
	err := decode(line, e)
	if err == nil {
		err = first(pipeHead(e.Schema, SchemaBinding, e.RunID), e.Binding.check())
	}
	if err != nil {
		return nil, fmt.Errorf("binding: %w", err)
	}
	return e, nil
}

// ParseAmbiguity parses one ambiguity on its way to the report. Its code is one
// of the table Ambiguities.
func ParseAmbiguity(line []byte) (*AmbiguityEntry, error) {
	e := new(AmbiguityEntry)
	err := decode(line, e)
	if err == nil {
		err = pipeHead(e.Schema, SchemaAmbiguity, e.RunID)
	}
	if err == nil {
		_, err = ParseCode(e.Code)
	}
	if err != nil {
		return nil, fmt.Errorf("ambiguity: %w", err)
	}
	return e, nil
}

// Whose kernel lines a binding counts.
const (
	ScopeToolServer = "tool_server" // the process tree of the session's server
	ScopeRun        = "run"         // all processes but those of known trees
)

// Markers of windows.
const (
	WindowRunStarted   = TypeRunStarted
	WindowRunFinished  = TypeRunFinished
	WindowCallStarted  = "tool_call_started:"  // and the call's id
	WindowCallFinished = "tool_call_finished:" // and the call's id
)

// RunWindow is the whole run.
var RunWindow = Window{Start: WindowRunStarted, End: WindowRunFinished}

// CallWindow is the window of one tool call.
func CallWindow(id string) Window {
	return Window{Start: WindowCallStarted + id, End: WindowCallFinished + id}
}

// Limits of kernel_effects.
const (
	MaxEffects      = 32      // of one binding
	MaxEffectBytes  = 4 << 10 // of the effects of one binding, added up
	MaxEffectsTotal = 1 << 20 // bytes of the effects of one report, added up
)

// check checks the keys that only this runner writes.
func (b *Binding) check() error {
	if b.KernelScope != "" {
		if err := oneOf("kernel_scope", b.KernelScope, ScopeToolServer, ScopeRun); err != nil {
			return err
		}
	}
	if len(b.KernelEffects) > MaxEffects {
		return fmt.Errorf("kernel_effects has %d entries, at most %d", len(b.KernelEffects), MaxEffects)
	}
	for i, e := range b.KernelEffects {
		if e == "" {
			return fmt.Errorf("key kernel_effects[%d] is empty", i)
		}
		if i > 0 && b.KernelEffects[i-1] >= e {
			return fmt.Errorf("kernel_effects is not sorted and unique at %.100q", e)
		}
	}
	if (b.Join == "") != (b.SDKCallID == "") || b.Join != "" && b.Join != JoinDigest {
		return fmt.Errorf("join is %.100q, expected %s together with sdk_tool_call_id, or neither", b.Join, JoinDigest)
	}
	return nil
}
