package main

import (
	"net/netip"
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/schemas"
)

// Kernel lines are many: their attributes are appended without a tree. A test compares them with those that the
// table makes of the same lines.

// kernelFields are the indexes of the rules of a kernel line.
type kernelFields struct {
	schema, runID, seq, pid, eventType, kind, value, cgroup, destination, port, rule, flags, mode, resolve, ret, access, operations, status, doubt, result int
}

func newKernelFields(m *member) (k kernelFields) {
	for field, at := range map[string]*int{"schema": &k.schema, "run_id": &k.runID, "seq": &k.seq, "pid": &k.pid, "event_type": &k.eventType, "kind": &k.kind,
		"value": &k.value, "cgroup_id": &k.cgroup, "network_destination": &k.destination, "network_port": &k.port, "rule_id": &k.rule, "flags": &k.flags,
		"mode": &k.mode, "resolve": &k.resolve, "return_value": &k.ret, "access_mode": &k.access, "operation_flags": &k.operations, "status": &k.status,
		"doubt": &k.doubt, "connect_result": &k.result} {
		*at = m.index[field]
	}
	return k
}

// appendKernel appends the attributes of a kernel line, sorted as those of all lines by the field, and then what
// is derived for readers.
func appendKernel(dst []byte, m *member, k *kernelFields, e *schemas.KernelEvent, pid string) []byte {
	c := m.counts
	for _, i := range [...]int{k.schema, k.runID, k.seq, k.pid, k.eventType, k.kind} {
		c[i].mapped++
	}
	text := func(at int, key, value string) {
		if value != "" {
			c[at].mapped++
			dst = append(append(append(dst, `{"key":"`...), key...), `","value":{"stringValue":"`...)
			dst = append(append(dst, value...), `"}},`...)
		}
	}
	number := func(has schemas.KernelHas, at int, key string, n uint64) {
		if e.Has&has == 0 {
			return
		}
		c[at].mapped++
		if int64(n) < 0 {
			dst = otlp.Uint(dst, key, n)
			return
		}
		dst = append(append(append(dst, `{"key":"`...), key...), `","value":{"intValue":"`...)
		dst = append(strconv.AppendUint(dst, n, 10), `"}},`...)
	}
	text(k.access, "runner.access_mode", e.AccessMode)
	number(schemas.KernelHasCgroupID, k.cgroup, "runner.cgroup_id", e.CgroupID)
	if e.Has&schemas.KernelHasConnectResult != 0 {
		c[k.result].mapped++
		dst = otlp.Int(dst, "runner.connect_result", e.ConnectResult)
	}
	text(k.doubt, "runner.doubt", e.Doubt)
	dst = append(dst, `{"key":"runner.event_type","value":{"intValue":"`...)
	dst = append(strconv.AppendUint(dst, uint64(e.EventType), 10), `"}},`...)
	number(schemas.KernelHasFlags, k.flags, "runner.flags", e.Flags)
	number(schemas.KernelHasMode, k.mode, "runner.mode", e.Mode)
	if e.Destination != nil {
		c[k.destination].mapped++
		dst = otlp.AppendEnd(otlp.AppendString(otlp.AppendKey(dst, "runner.network_destination"), e.Destination))
	}
	number(schemas.KernelHasPort, k.port, "runner.network_port", uint64(e.Port))
	if e.Operations != 0 {
		c[k.operations].mapped++
		dst = appendOperations(dst, e.Operations)
	}
	dst = append(append(append(dst, `{"key":"`...), pid...), `","value":{"intValue":"`...)
	dst = append(strconv.AppendUint(dst, uint64(e.PID), 10), `"}},`...)
	number(schemas.KernelHasResolve, k.resolve, "runner.resolve", e.Resolve)
	if e.Has&schemas.KernelHasReturn != 0 {
		c[k.ret].mapped++
		dst = append(dst, `{"key":"runner.return_value","value":{"intValue":"`...)
		dst = append(strconv.AppendInt(dst, e.ReturnValue, 10), `"}},`...)
	}
	number(schemas.KernelHasRuleID, k.rule, "runner.rule_id", uint64(e.RuleID))
	dst = otlp.AppendEnd(otlp.AppendUint(append(dst, `{"key":"runner.seq","value":`...), e.Seq))
	text(k.status, "runner.status", e.Status)
	if e.Value == nil {
		c[k.value].null++
	} else {
		c[k.value].mapped++
		dst = appendKernelValue(dst, e.EventType, e.Value)
	}
	return appendDerived(dst, e)
}

// appendDerived appends what a kernel line says in the words of the specification: what was done, and the error.
func appendDerived(dst []byte, e *schemas.KernelEvent) []byte {
	dst = append(dst, `{"key":"`+attrOperation+`","value":{"stringValue":"`...)
	dst = append(append(dst, schemas.EffectVerb(e)...), `"}},`...)
	if name := schemas.ErrnoName(e.ReturnValue); name != "" && e.Has&schemas.KernelHasReturn != 0 && !e.Pending() {
		dst = otlp.Text(dst, attrError, name)
	}
	return dst
}

func appendOperations(dst []byte, o schemas.OperationFlags) []byte {
	dst = append(dst, `{"key":"runner.operation_flags","value":{"arrayValue":{"values":[`...)
	for _, name := range o.Names() {
		dst = append(otlp.AppendString(dst, []byte(name)), ',')
	}
	return append(otlp.Trim(dst), "]}}},"...)
}

// appendKernelValue appends what a kernel line is about: by its event type a file, a program or an endpoint.
// The bytes of a name are in the record in text form already, which is valid UTF-8 and different for different names.
func appendKernelValue(dst []byte, eventType uint32, value []byte) []byte {
	set := schemas.SetOf(eventType)
	key := attrValue
	switch {
	case set < 0:
	case schemas.SurfaceSets[set] == schemas.SignalProcessExecs:
		key = attrProgram
	case schemas.SurfaceSets[set] == schemas.SignalNetwork:
		if a, err := netip.ParseAddrPort(string(value)); err == nil && a.String() == string(value) {
			dst = otlp.Text(dst, attrAddress, a.Addr().String())
			return otlp.Int(dst, attrPort, int64(a.Port()))
		}
		if _, err := netip.ParseAddr(string(value)); err == nil || len(value) > 5 && string(value[:5]) == "unix:" {
			key = attrAddress
		}
	default:
		key = attrFile
	}
	dst = append(append(append(dst, `{"key":"`...), key...), `","value":`...)
	return otlp.AppendEnd(otlp.AppendString(dst, value))
}
