package main

import (
	"net/netip"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rules of the v0 contract for single lines. They hold for every archive,
// except where a function's name begins with contract: that one is for archives of
// other implementations, and the profile has a stricter one in its place.

func (v *verifier) eventResult(l *archive.Line, f *schemas.RunFinished) {
	if f.ExitCode != nil && f.Signal != nil {
		v.add(ruleEventsResult, l.Member, l.Number, "both exit_code %d and signal %d", *f.ExitCode, *f.Signal)
	}
	if zero := f.ExitCode != nil && *f.ExitCode == 0; f.Success != zero {
		v.add(ruleEventsResult, l.Member, l.Number, "success is %t, but exit_code is %s", f.Success, number(f.ExitCode))
	}
}

func number(n *int) string {
	if n == nil {
		return "null"
	}
	return strconv.Itoa(*n)
}

// kernelNumbers checks what a kernel line says twice: as numbers and in words.
func (v *verifier) kernelNumbers(l *archive.Line, e *schemas.KernelEvent) {
	if e.Has&schemas.KernelHasFlags != 0 {
		if want := schemas.AccessMode(e.Flags); e.AccessMode != "" && e.AccessMode != want {
			v.faultKernel(l, "access_mode is %s, the flags say %s", e.AccessMode, want)
		}
	}
	if e.Has&schemas.KernelHasReturn != 0 {
		if want := statusOf(e); e.Status != "" && e.Status != want {
			v.faultKernel(l, "status is %s, return_value says %s", e.Status, want)
		}
	}
	if e.Destination != nil && e.Has&schemas.KernelHasPort != 0 {
		if want := endpoint(e.Destination, e.Port); want != "" && string(e.Value) != want {
			v.faultKernel(l, "value is not network_destination and network_port")
		}
	}
}

func (v *verifier) faultKernel(l *archive.Line, format string, a ...any) {
	v.add(ruleKernelDerived, l.Member, l.Number, format, a...)
}

// statusOf is the status that goes with a return value.
func statusOf(e *schemas.KernelEvent) string {
	if e.ReturnValue < 0 {
		return schemas.StatusError
	}
	return schemas.StatusSuccess
}

// endpoint is the text of an address and port, "" when the address is not one.
func endpoint(destination []byte, port uint16) string {
	a, err := netip.ParseAddr(string(destination))
	if err != nil {
		return ""
	}
	if a.Is4() {
		return a.String() + ":" + strconv.Itoa(int(port))
	}
	return "[" + a.String() + "]:" + strconv.Itoa(int(port))
}

// contractOperations compares the operation flags with the open flags. Another
// implementation reads one flag differently, so both readings are right.
func (v *verifier) contractOperations(l *archive.Line, e *schemas.KernelEvent) {
	if e.Has&schemas.KernelHasFlags != 0 && e.EventType == schemas.EventOpenat && e.Operations != foreignOperations(e.Flags) {
		v.operations(l, e)
	}
}

// operations compares the operation flags with the open flags.
func (v *verifier) operations(l *archive.Line, e *schemas.KernelEvent) {
	want := schemas.OperationsOf(e.Flags)
	if e.Has&schemas.KernelHasFlags != 0 && e.EventType == schemas.EventOpenat && e.Operations != want {
		v.faultKernel(l, "operation_flags are %s, the flags say %s",
			schemas.AppendOperationFlags(nil, e.Operations), schemas.AppendOperationFlags(nil, want))
	}
}

// foreignOperations are the hints as another implementation reads the flags: it
// takes O_NOCTTY for O_EXCL.
func foreignOperations(flags uint64) schemas.OperationFlags {
	o := schemas.OperationsOf(flags) &^ schemas.OperationExclusive
	if flags&schemas.OpenNoCTTY != 0 {
		o |= schemas.OperationExclusive
	}
	return o
}

// contractKeys refuses keys that the v0 contract does not know.
func (v *verifier) contractKeys(l *archive.Line, e *schemas.PolicyEvent) {
	if e.ToolCallIDSource != "" || e.Outcome != "" || e.ReasonCode != "" || e.RuleID != "" || e.PolicyDigest != "" || e.Attempt > 0 || len(e.Targets) > 0 || e.TargetsCut || e.WouldDeny != "" || e.ArgumentsDigest != "" {
		v.add(archive.RuleLineSchema, l.Member, l.Number, "keys that only lines of this runner have")
	}
}

// contractSDKKeys does the same for the SDK layer.
func (v *verifier) contractSDKKeys(l *archive.Line, e *schemas.SDKEvent) {
	if e.ArgumentsDigest != "" {
		v.add(archive.RuleLineSchema, l.Member, l.Number, "keys that only lines of this runner have")
	}
}
