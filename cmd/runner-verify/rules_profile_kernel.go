package main

import (
	"bytes"
	"math"
	"net/netip"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rules for what a kernel line of this runner can say at all, and for its neighbours.

// maxErrno is the largest number of an error that a call returns.
const maxErrno = 4095

// lineForEvent are what lines of an event type can have; others have nothing of it.
type lineForEvent struct {
	known    bool
	second   uint32 // the event type of the line that follows
	isSecond bool   // it follows such a line
	endpoint bool   // the value is one
	zero     bool   // the calls return 0 or an error
}

// lineForms are by event type; all are below 256.
var lineForms = func() (forms [256]lineForEvent) {
	for _, t := range schemas.EventTypes {
		forms[t.ID].known = true
		forms[t.ID].endpoint = t.Set == schemas.SetNetworkEndpoints
	}
	for _, o := range schemas.Operations {
		if o.Second != 0 && o.Second != schemas.EventScript { // not every program is a script
			forms[o.First].second, forms[o.Second].isSecond = o.Second, true
		}
	}
	for _, id := range [...]uint32{schemas.EventExec, schemas.EventScript, schemas.EventConnect, schemas.EventBind, schemas.EventListen, schemas.EventUnlink,
		schemas.EventRmdir, schemas.EventRenameFrom, schemas.EventRenameTo, schemas.EventLinkFrom, schemas.EventLinkTo, schemas.EventSymlink,
		schemas.EventMkdir, schemas.EventTruncate, schemas.EventChmod, schemas.EventChown, schemas.EventMknod, schemas.EventUmount, schemas.EventPivotRootNew, schemas.EventPivotRootOld} {
		forms[id].zero = true
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
	case returned && (e.ReturnValue < -maxErrno || opened && e.ReturnValue > math.MaxInt32 || f.zero && e.ReturnValue > 0):
		v.faultKernel(l, "return_value %d, which a %s never has", e.ReturnValue, schemas.KindOf(e.EventType))
	case e.EventType == schemas.EventExecFailed && e.Status == schemas.StatusSuccess:
		v.faultKernel(l, "a failed execution with success")
	case e.EventType == schemas.EventConnect && returned && e.ReturnValue == inProgress && e.Status != "":
		v.faultKernel(l, "status is %s of a connect that is pending", e.Status)
	case f.endpoint && !isEndpoint(e.Value):
		v.faultKernel(l, "value %.100q is not an endpoint", e.Value)
	case !f.endpoint && bytes.IndexByte(e.Value, 0) >= 0:
		v.faultKernel(l, "value %.100q has a NUL, which no path has", e.Value)
	}
}

// isEndpoint reports whether a value is written as this runner writes endpoints.
func isEndpoint(value []byte) bool {
	text := string(value)
	if text == "" || strings.HasPrefix(text, "unix:") {
		return true
	}
	a, err := netip.ParseAddrPort(text)
	return err == nil && a.Addr().Zone() == "" && a.String() == text
}

// neighbours is what is kept of the kernel lines to compare each with the one before.
type neighbours struct {
	any       bool
	last      schemas.KernelEvent // without its texts
	nameless  int                 // the first program or file that was opened and has no name
	alone     uint64              // lines of a pair whose other line is missing
	aloneLine int                 // the first of them
	falls     int                 // the first line whose pid is below that of the line before
}

// kernelNeighbours takes in a line. What --drop left out, and whether the numbers are
// canonical, is known only at the end.
func (v *verifier) kernelNeighbours(l *archive.Line, e *schemas.KernelEvent) {
	n := &v.kernel.near
	if e.EventType < uint32(len(lineForms)) && lineForms[e.EventType].isSecond {
		if n.pairs(e) {
			n.last.EventType = 0
		} else {
			n.lonely(l.Number)
		}
	}
	n.endPair(l.Number)
	if n.any && e.PID < n.last.PID && n.falls == 0 {
		n.falls = l.Number
	}
	if done := e.EventType == schemas.EventExec || e.EventType == schemas.EventOpenat && e.Status == schemas.StatusSuccess; done && len(e.Value) == 0 && n.nameless == 0 {
		n.nameless = l.Number
	}
	n.any, n.last = true, schemas.KernelEvent{PID: e.PID, EventType: e.EventType, Has: e.Has, ReturnValue: e.ReturnValue, Status: e.Status, Doubt: e.Doubt}
}

// pairs reports whether a line is the second one of the operation of the line before.
func (n *neighbours) pairs(e *schemas.KernelEvent) bool {
	a := &n.last
	return n.any && a.EventType < uint32(len(lineForms)) && lineForms[a.EventType].second == e.EventType && a.PID == e.PID &&
		a.Has&schemas.KernelHasReturn == e.Has&schemas.KernelHasReturn && a.ReturnValue == e.ReturnValue && a.Status == e.Status && a.Doubt == e.Doubt
}

// endPair notes that the line before was to be followed by another one.
func (n *neighbours) endPair(line int) {
	if n.any && n.last.EventType < uint32(len(lineForms)) && lineForms[n.last.EventType].second != 0 {
		n.lonely(line)
	}
}

func (n *neighbours) lonely(line int) {
	if n.alone++; n.alone == 1 {
		n.aloneLine = line
	}
}

// kernelOrder checks what the lines say of each other.
func (v *verifier) kernelOrder() {
	n := &v.kernel.near
	n.endPair(int(v.kernelLines()))
	n.any = false
	if left, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped); n.alone > left {
		v.add(ruleKernelOrder, bundle.KernelName, n.aloneLine, "%d lines of operations with two lines lack the other one, or it has another outcome; --drop left out %d lines", n.alone, left)
	}
	if n.nameless > 0 && !v.noted(schemas.NoteQuality) {
		v.add(ruleKernelOrder, bundle.KernelName, n.nameless, "no value of what was executed or opened, but no note %s says that names could not be read", schemas.NoteQuality.Code)
	}
	if n.falls > 0 && v.noted(schemas.NotePIDs) {
		v.add(ruleKernelOrder, bundle.KernelName, n.falls, "the number of the process is below that of the line before, note %s says that they are in order", schemas.NotePIDs.Code)
	}
}

// resultCan checks that a result is one that the platform can give.
func (v *verifier) resultCan() {
	const maxCode, maxSignal, maxOther = 255, 64, math.MaxUint32
	f := v.events.finished
	linux := v.health.Platform == schemas.PlatformLinux
	if c := f.ExitCode; c != nil && (*c < 0 || *c > maxOther || linux && *c > maxCode) {
		v.add(ruleEventsResult, bundle.EventsName, 2, "exit_code is %d, expected 0 to %d", *c, maxCode)
	}
	if s := f.Signal; s != nil && (*s < 1 || *s > maxSignal) {
		v.add(ruleEventsResult, bundle.EventsName, 2, "signal is %d, expected 1 to %d", *s, maxSignal)
	}
}

// sessionsDiffer checks that decisions have no more policies than there are sessions, each of
// which has one, and that a call that overlaps is not alone.
func (v *verifier) sessionsDiffer() {
	if n := uint64(len(v.policy.policies)); n > v.sessions() {
		v.add(rulePolicyDecision, bundle.PolicyName, 0, "decisions have %d different policy_digests, note %s says sessions=%d", n, schemas.NotePolicy.Code, v.sessions())
	}
	overlaps := v.ambiguities().of[schemas.AmbiguityCallsOverlap]
	for id := range overlaps {
		if timed := v.policy.byID[id]; len(overlaps) == 1 && len(timed) < 2 {
			v.faultCode("%s:%.200q is alone, but two calls overlap each other", schemas.AmbiguityCallsOverlap, id)
		}
	}
}
