// Package acts turns the kernel lines of an archive into acts: what people and programs ask
// for. An act is one operation. It has a name, both paths of a rename, an outcome in words,
// and the process that did it. It says nothing that the lines do not say.
package acts

import (
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Process is the process of an act, as far as the record knows it.
type Process struct {
	PID uint32 `json:"pid"`
	// Executable is the program that the process had executed last. It is "" before its first
	// exec: then it ran the program of its parent.
	Executable string `json:"executable,omitempty"`
	Script     string `json:"script,omitempty"` // that the executable was started for

	// The rest is of the layer process.
	Number         uint32             `json:"number,omitzero"` // in the walk of the fork tree, from 1; 0: not in the layer
	Parent         *Parent            `json:"parent,omitempty"`
	UID            *uint32            `json:"uid,omitempty"`
	GID            *uint32            `json:"gid,omitempty"`
	MountNamespace uint32             `json:"mount_namespace,omitzero"`
	Root           string             `json:"root,omitempty"`
	Args           *schemas.Arguments `json:"args,omitempty"`
	Unsure         []string           `json:"unsure,omitempty"` // which of these the record does not tell at this line
}

// Parent is the process that created another one.
type Parent struct {
	Number uint32 `json:"number"`
	PID    uint32 `json:"pid,omitzero"` // 0: it has no kernel line
	// Executable is the program that it executed, and Script what that was started for, if it executed
	// one program.
	Executable string `json:"executable,omitempty"`
	Script     string `json:"script,omitempty"`
}

// Act is one operation: runner.act.v0. Names are in text form.
type Act struct {
	Schema      string   `json:"schema"`
	RunID       string   `json:"run_id"`
	Seq         uint64   `json:"seq"` // of its first kernel line
	Op          string   `json:"op"`
	EventType   uint32   `json:"event_type"`
	Path        string   `json:"path,omitempty"`
	NewPath     string   `json:"new_path,omitempty"`
	OldPath     string   `json:"old_path,omitempty"`
	Script      string   `json:"script,omitempty"`
	Source      string   `json:"source,omitempty"`
	Attribute   string   `json:"attribute,omitempty"`
	Name        string   `json:"name,omitempty"`
	Endpoint    string   `json:"endpoint,omitempty"`
	Family      string   `json:"family,omitempty"`
	Direction   string   `json:"direction,omitempty"`
	Transport   string   `json:"transport,omitempty"`
	Read        bool     `json:"read"`
	Write       bool     `json:"write"`
	Flags       []string `json:"flags,omitempty"`
	Outcome     string   `json:"outcome"`
	Error       string   `json:"error,omitempty"`
	ReturnValue *int64   `json:"return_value,omitempty"`
	Rule        *uint32  `json:"rule,omitempty"`
	RuleID      string   `json:"rule_id,omitempty"`
	InDoubt     bool     `json:"in_doubt,omitzero"`
	Process     Process  `json:"process"`
	ToolCalls   []string `json:"tool_calls,omitempty"`

	Group Group      `json:"-"`
	Layer *Processes `json:"-"` // where the layer process is; nil if the record has none
}

// Value is what the act is about: a path, an endpoint or a name; of a rename, the old one.
func (a *Act) Value() string {
	for _, v := range []string{a.Path, a.Endpoint, a.Name} {
		if v != "" {
			return v
		}
	}
	return a.NewPath + a.OldPath + a.Script + a.Source + a.Attribute
}

// Net reports whether the act is about an endpoint.
func (a *Act) Net() bool { return a.Group == Reached || a.Group == Listened || a.Group == Bound }

// set stores a value under the name that the table has for it.
func (a *Act) set(key, value string) {
	to := &a.Name
	switch key {
	case keyPath:
		to = &a.Path
	case keyNew:
		to = &a.NewPath
	case keyOld:
		to = &a.OldPath
	case keyScript:
		to = &a.Script
	case keySource:
		to = &a.Source
	case keyAttr:
		to = &a.Attribute
	case keyEndpoint:
		to = &a.Endpoint
	}
	*to = value
}

// outcome says in words how a line's call ended.
func outcome(e *schemas.KernelEvent) string {
	switch {
	case schemas.Refused(e.EventType):
		return schemas.ActRefused
	case e.Status == schemas.StatusUnproven:
		return schemas.ActUnproven
	case e.Pending():
		return pendingOutcome(e)
	case e.Status == schemas.StatusError:
		return schemas.ActFailed
	case e.Status == schemas.StatusSuccess:
		return schemas.ActDone
	}
	return schemas.ActUnknown
}

// pendingOutcome is how a connect ended that had not when its call did.
func pendingOutcome(e *schemas.KernelEvent) string {
	switch {
	case e.Has&schemas.KernelHasConnectResult == 0:
		return schemas.ActPending
	case e.ConnectResult < 0:
		return schemas.ActFailed
	}
	return schemas.ActDone
}

// errorOf is the return value or, of a connect that ended later, its result.
func errorOf(e *schemas.KernelEvent) int64 {
	if e.Has&schemas.KernelHasConnectResult != 0 {
		return e.ConnectResult
	}
	return e.ReturnValue
}

// network fills in what an endpoint says.
func (a *Act) network() {
	switch {
	case a.Endpoint == "":
	case strings.HasPrefix(a.Endpoint, "unix:"):
		a.Family = schemas.EndpointUnix
	case strings.HasPrefix(a.Endpoint, "["):
		a.Family = schemas.EndpointIPv6
	default:
		a.Family = schemas.EndpointIPv4
	}
	a.Direction = schemas.DirectionOut
	if a.Group != Reached {
		a.Direction = schemas.DirectionLocal
	}
	switch a.EventType {
	case schemas.EventSendto, schemas.EventSendmsg, schemas.EventSendmmsg:
		a.Transport = schemas.TransportDatagram
	case schemas.EventListen:
		a.Transport = schemas.TransportStream
	}
}

// open fills in what the flags of an open say. That it created a file is only known of an
// exclusive one. With O_PATH it gives no right to read or to write and creates nothing, whatever the other flags are, of which the
// access mode of the line is one.
func (a *Act) open(e *schemas.KernelEvent) {
	if e.Has&schemas.KernelHasFlags != 0 && e.Flags&schemas.OpenPath != 0 {
		a.Group = Other
		return
	}
	a.Read = e.AccessMode == schemas.AccessModes[0] || e.AccessMode == schemas.AccessModes[2]
	a.Write = e.AccessMode == schemas.AccessModes[1] || e.AccessMode == schemas.AccessModes[2] || e.Operations != 0 && e.Operations != schemas.OperationExclusive
	const exclusive = schemas.OperationCreate | schemas.OperationExclusive
	switch {
	case e.Operations&exclusive == exclusive:
		a.Group = Created
	case a.Write:
		a.Group = Wrote
	case !a.Read:
		a.Group = Other
	}
	for _, f := range operationFlags {
		if e.Operations&f.flag != 0 {
			a.Flags = append(a.Flags, f.name)
		}
	}
}

var operationFlags = []struct {
	flag schemas.OperationFlags
	name string
}{{schemas.OperationCreate, "create"}, {schemas.OperationTruncate, "truncate"}, {schemas.OperationAppend, "append"}, {schemas.OperationExclusive, "exclusive"}}
