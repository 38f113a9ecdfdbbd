package main

import (
	"bytes"
	"net/netip"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// inProgress is EINPROGRESS as connect answers it: neither success nor error yet.
const inProgress = -115

// underived says what in a kernel line contradicts the numbers it follows from,
// "" when nothing does. Lines of this runner must also have what it always writes.
func underived(e *schemas.KernelEvent, own bool) string {
	if e.Has&schemas.KernelHasFlags != 0 {
		if want := schemas.AccessMode(e.Flags); e.AccessMode != "" && e.AccessMode != want {
			return "access_mode is " + e.AccessMode + ", the flags say " + want
		}
		want := schemas.OperationsOf(e.Flags)
		if e.EventType == schemas.EventOpenat && e.Operations != want && (own || e.Operations != foreignOperations(e.Flags)) {
			return "operation_flags are " + string(schemas.AppendOperationFlags(nil, e.Operations)) + ", the flags say " + string(schemas.AppendOperationFlags(nil, want))
		}
	}
	if e.Has&schemas.KernelHasReturn != 0 {
		want := schemas.StatusSuccess
		if e.ReturnValue < 0 {
			want = schemas.StatusError
		}
		pending := e.EventType == schemas.EventConnect && e.ReturnValue == inProgress
		switch {
		case e.Status == "" && own && !pending:
			return "status is missing, return_value says " + want
		case e.Status != "" && e.Status != want:
			return "status is " + e.Status + ", return_value says " + want
		}
	}
	if own && e.EventType == schemas.EventOpenat {
		switch {
		case e.Has&schemas.KernelHasFlags == 0 || e.Has&schemas.KernelHasMode == 0 || e.AccessMode == "":
			return "an openat line without flags, mode and access_mode"
		case e.Mode != 0 && e.Flags&schemas.OpenCreates == 0:
			return "mode of an open that can create nothing"
		}
	}
	if own && e.EventType == schemas.EventConnectBlocked {
		return unrefused(e)
	}
	if e.Destination != nil && e.Has&schemas.KernelHasPort != 0 {
		if want := endpoint(e.Destination, e.Port); want != "" && string(e.Value) != want {
			return "value is not network_destination and network_port"
		}
	}
	return ""
}

// unrefused says what a line about a refused network operation lacks.
func unrefused(e *schemas.KernelEvent) string {
	_, err := netip.ParseAddrPort(string(e.Value))
	switch ip, port := err == nil, e.Has&schemas.KernelHasPort != 0; {
	case e.Has&schemas.KernelHasCgroupID == 0:
		return "a connect_blocked line without cgroup_id"
	case e.Has&schemas.KernelHasRuleID == 0:
		return "a connect_blocked line without rule_id"
	case e.Status == schemas.StatusSuccess:
		return "a connect_blocked line that says success"
	case ip != port || ip != (e.Destination != nil):
		return "network_destination and network_port stand beside an IP endpoint alone, and both"
	case ip && endpoint(e.Destination, e.Port) != string(e.Value):
		return "value is not network_destination and network_port"
	}
	return ""
}

// foreignOperations are the hints as another implementation reads the flags: it
// takes 0o400 for exclusive, which is O_NOCTTY.
func foreignOperations(flags uint64) schemas.OperationFlags {
	o := schemas.OperationsOf(flags) &^ schemas.OperationExclusive
	if flags&schemas.OpenNoCTTY != 0 {
		o |= schemas.OperationExclusive
	}
	return o
}

// endpoint is the text of an address and port, "" when the address is none.
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

// isText reports whether v is the escape of some byte string. Only a backslash
// can make it none.
func isText(v []byte) bool {
	if bytes.IndexByte(v, '\\') < 0 {
		return true
	}
	_, err := schemas.Untext(string(v))
	return err == nil
}

func number(n *int) string {
	if n == nil {
		return "null"
	}
	return strconv.Itoa(*n)
}
