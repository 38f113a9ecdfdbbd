package main

import (
	"bytes"
	"math"
	"net/netip"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rules for what a kernel line of this runner can say at all, and for its neighbours.

// lineForEvent are what lines of an event type can have; others have nothing of it.
type lineForEvent struct {
	known    bool
	second   uint32 // the event type of the line that follows
	isSecond bool   // it follows such a line
	endpoint bool   // the value is one
	path     bool   // the value is the path of a file
	zero     bool   // the calls return 0 or an error
	opens    bool   // the calls return a descriptor or an error
	ran      bool   // it is there only if the call ran and succeeded
}

// lineForms are by event type; all are below 256.
var lineForms = func() (forms [256]lineForEvent) {
	for _, t := range schemas.EventTypes {
		forms[t.ID].known = true
		forms[t.ID].endpoint = t.Set == schemas.SetNetworkEndpoints
		// The path of a program that a script names is that text as it is.
		forms[t.ID].path = t.Set == schemas.SetFilesystemPaths || t.Set == schemas.SetProcessExecs && t.ID != schemas.EventExec
	}
	for _, o := range schemas.Operations {
		if o.Second != 0 && o.Second != schemas.EventScript { // not every program is a script
			forms[o.First].second, forms[o.Second].isSecond = o.Second, true
		}
	}
	for _, id := range [...]uint32{schemas.EventExec, schemas.EventScript, schemas.EventConnect, schemas.EventBind, schemas.EventListen, schemas.EventUnlink,
		schemas.EventRmdir, schemas.EventRenameFrom, schemas.EventRenameTo, schemas.EventLinkFrom, schemas.EventLinkTo, schemas.EventSymlink,
		schemas.EventMkdir, schemas.EventTruncate, schemas.EventChmod, schemas.EventChown, schemas.EventMknod, schemas.EventUmount, schemas.EventPivotRootNew, schemas.EventPivotRootOld,
		schemas.EventExecCheck, schemas.EventLoader, schemas.EventMount, schemas.EventMountSource, schemas.EventMoveMountFrom, schemas.EventMoveMountTo,
		schemas.EventMqUnlink, schemas.EventBPFObjPin, schemas.EventKernelFile} {
		forms[id].zero = true
	}
	for _, id := range [...]uint32{schemas.EventOpenat, schemas.EventMountSetattr, schemas.EventOpenTree, schemas.EventFspick, schemas.EventFsmount, schemas.EventMqOpen, schemas.EventBPFObjGet} {
		forms[id].opens = true
	}
	for _, id := range [...]uint32{schemas.EventExec, schemas.EventScript, schemas.EventLoader} {
		forms[id].ran = true
	}
	return forms
}()

// kernelCan checks what a line can say, whatever happened.
func (v *verifier) kernelCan(l *archive.Line, e *schemas.KernelEvent) {
	const open, blocked = schemas.KernelHasFlags | schemas.KernelHasMode | schemas.KernelHasResolve, schemas.KernelHasCgroupID | schemas.KernelHasRuleID
	var f lineForEvent
	if e.EventType < uint32(len(lineForms)) {
		f = lineForms[e.EventType]
	}
	renamed := e.EventType == schemas.EventRenameFrom || e.EventType == schemas.EventRenameTo
	opened, has, returned := e.EventType == schemas.EventOpenat, e.Has, e.Has&schemas.KernelHasReturn != 0
	if renamed {
		has &^= schemas.KernelHasFlags
	}
	switch {
	case !f.known:
		v.faultKernel(l, "event_type %d, which this runner never writes", e.EventType)
	case e.PID == 0:
		v.faultKernel(l, "pid is 0, which is no process")
	case !opened && (has&open != 0 || e.AccessMode != "" || e.Operations != 0):
		v.faultKernel(l, "keys of an open on a %s line", schemas.KindOf(e.EventType))
	case !schemas.Refused(e.EventType) && has&blocked != 0, e.EventType != schemas.EventConnectBlocked && (e.Destination != nil || has&schemas.KernelHasPort != 0):
		v.faultKernel(l, "keys of a refused operation on a %s line", schemas.KindOf(e.EventType))
	case returned && (e.ReturnValue < -schemas.MaxErrno || f.opens && e.ReturnValue > math.MaxInt32 || f.zero && e.ReturnValue > 0):
		v.faultKernel(l, "return_value %d, which a %s never has", e.ReturnValue, schemas.KindOf(e.EventType))
	case e.EventType == schemas.EventExecFailed && e.Status == schemas.StatusSuccess:
		v.faultKernel(l, "a failed execution with success")
	case e.Pending() && e.Status != "":
		v.faultKernel(l, "status is %s of a connect that is pending", e.Status)
	case f.ran && e.Status != "" && e.Status != schemas.StatusSuccess:
		v.faultKernel(l, "status is %s of a program that was started", e.Status)
	case e.EventType == schemas.EventIOUringOther && e.Value != nil:
		v.faultKernel(l, "a value of an operation that is not decoded")
	case f.path && !isPath(e.Value):
		v.faultKernel(l, "value %.100q is not a path as one is written: it has a component without a name", e.Value)
	case f.endpoint && !v.kernel.endpoints.has(e.Value):
		v.faultKernel(l, "value %.100q is not an endpoint", e.Value)
	case !f.endpoint && bytes.IndexByte(e.Value, 0) >= 0:
		v.faultKernel(l, "value %.100q has a NUL, which no path has", e.Value)
	}
}

// endpointSet has endpoints that were found to be written well: the lines that a small archive has room
// for are mostly about a few.
type endpointSet map[string]struct{}

// has reports whether a value is written as this runner writes endpoints.
func (s *endpointSet) has(value []byte) bool {
	if len(value) > maxEndpoint {
		return isEndpoint(value)
	}
	if _, known := (*s)[string(value)]; known {
		return true
	}
	if !isEndpoint(value) {
		return false
	}
	if *s == nil {
		*s = endpointSet{}
	}
	if len(*s) < maxWords {
		(*s)[string(value)] = struct{}{}
	}
	return true
}

// maxEndpoint is the length of the longest endpoint.
const maxEndpoint = len("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535")

// isEndpoint reports whether a value is written as this runner writes endpoints.
func isEndpoint(value []byte) bool {
	if len(value) == 0 || bytes.HasPrefix(value, []byte("unix:")) {
		return true
	}
	var again [maxEndpoint]byte
	a, err := netip.ParseAddrPort(string(value))
	return err == nil && a.Addr().Zone() == "" && bytes.Equal(a.AppendTo(again[:0]), value)
}

// isPath reports whether no component of an absolute path is empty or a dot. What is not absolute
// can be any name, such as that of a memfd.
func isPath(value []byte) bool {
	if len(value) < 2 || value[0] != '/' {
		return true
	}
	return value[len(value)-1] != '/' && !bytes.Contains(value, []byte("//")) && !bytes.Contains(value, []byte("/./")) && !bytes.HasSuffix(value, []byte("/."))
}

// resultCan checks that a result is one that the platform can give.
func (v *verifier) resultCan() {
	const maxCode, maxSignal, maxOther = 255, 64, math.MaxUint32
	s, f := v.events.started, v.events.finished
	linux := v.health.Platform == schemas.PlatformLinux
	if c := f.ExitCode; c != nil && (*c < 0 || *c > maxOther || linux && *c > maxCode) {
		v.add(ruleEventsResult, bundle.EventsName, 2, "exit_code is %d, expected 0 to %d", *c, maxCode)
	}
	if s := f.Signal; s != nil && (*s < 1 || *s > maxSignal) {
		v.add(ruleEventsResult, bundle.EventsName, 2, "signal is %d, expected 1 to %d", *s, maxSignal)
	}
	if len(s.Command) == 0 && (f.ExitCode != nil || f.Signal != nil) {
		v.add(ruleEventsResult, bundle.EventsName, 2, "a result without a command: nobody waited for one")
	}
	if dropped, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped); len(s.Command) > 0 && f.Success && dropped == 0 &&
		v.health.KernelLayer == schemas.LayerComplete && v.kernel.near.records.programs == 0 {
		v.add(ruleEventsResult, bundle.EventsName, 2, "success, but in a complete kernel layer no program was executed")
	}
}
