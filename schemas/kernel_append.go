package schemas

import "strconv"

// A kernel line is written in parts: head, operation, value, details, end. The head has
// seq and pid. runner-normalize can thus store the later parts before it knows the line's
// place. Between details and end a line of kernel.normalized can have its time.

// AppendJSON appends the event's line, without LF, in canonical form.
func (e *KernelEvent) AppendJSON(dst []byte, runID string) []byte {
	dst = AppendKernelHead(dst, runID, e.Seq, e.PID)
	dst = e.AppendOperation(dst)
	dst = AppendValue(dst, e.Value)
	dst = e.AppendDetails(dst)
	return append(dst, KernelEnd...)
}

const (
	// KernelEnd ends every kernel line.
	KernelEnd = "}"
	// MaxKernelTime is the most that AppendKernelTime appends, in bytes.
	MaxKernelTime = len(timeKey) + len("18446744073709551615")
)

// AppendKernelHead appends the first part of a kernel line: all keys up to pid.
func AppendKernelHead(dst []byte, runID string, seq uint64, pid uint32) []byte {
	return AppendKernelPID(strconv.AppendUint(AppendKernelStart(dst, runID), seq, 10), pid)
}

// AppendKernelStart appends what each kernel line of a run begins with, up to the number after the key seq.
func AppendKernelStart(dst []byte, runID string) []byte {
	dst = append(dst, `{"schema":"`+SchemaKernelEvent+`","run_id":"`...)
	dst = append(dst, runID...)
	return append(dst, `","seq":`...)
}

// AppendKernelPID appends the key pid, which is the next one.
func AppendKernelPID(dst []byte, pid uint32) []byte {
	return strconv.AppendUint(append(dst, pidKey...), uint64(pid), 10)
}

// AppendOperation appends the second part of a line: event_type, kind and the key of the
// value.
func (e *KernelEvent) AppendOperation(dst []byte) []byte {
	dst = append(dst, `,"event_type":`...)
	dst = strconv.AppendUint(dst, uint64(e.EventType), 10)
	dst = append(dst, `,"kind":"`...)
	if e.Kind != "" {
		dst = append(dst, e.Kind...)
	} else {
		dst = append(dst, KindOf(e.EventType)...)
	}
	return append(dst, `","value":`...)
}

// AppendValue appends the third part of a line: its value. nil is null.
func AppendValue(dst, value []byte) []byte {
	if value == nil {
		return append(dst, `null`...)
	}
	return AppendQuote(dst, value)
}

// AppendDetails appends the fourth part of a line: all optional keys.
func (e *KernelEvent) AppendDetails(dst []byte) []byte {
	dst = appendUint(dst, e.Has&KernelHasCgroupID != 0, `,"cgroup_id":`, e.CgroupID)
	dst = appendName(dst, `,"network_destination":`, e.Destination)
	dst = appendUint(dst, e.Has&KernelHasPort != 0, `,"network_port":`, uint64(e.Port))
	dst = appendUint(dst, e.Has&KernelHasRuleID != 0, `,"rule_id":`, uint64(e.RuleID))
	dst = appendUint(dst, e.Has&KernelHasFlags != 0, `,"flags":`, e.Flags)
	dst = appendUint(dst, e.Has&KernelHasMode != 0, `,"mode":`, e.Mode)
	dst = appendUint(dst, e.Has&KernelHasResolve != 0, `,"resolve":`, e.Resolve)
	if e.Has&KernelHasReturn != 0 {
		dst = append(dst, `,"return_value":`...)
		dst = strconv.AppendInt(dst, e.ReturnValue, 10)
	}
	dst = appendWord(dst, `,"access_mode":"`, e.AccessMode)
	if e.Operations != 0 {
		dst = AppendOperationFlags(append(dst, `,"operation_flags":`...), e.Operations)
	}
	dst = appendWord(dst, `,"status":"`, e.Status)
	dst = appendWord(dst, `,"doubt":"`, e.Doubt)
	if e.Has&KernelHasConnectResult != 0 {
		dst = AppendConnectResult(dst, e.ConnectResult)
	}
	return dst
}

// AppendConnectResult appends the last of the optional keys.
func AppendConnectResult(dst []byte, result int64) []byte {
	return strconv.AppendInt(append(dst, connectResultKey...), result, 10)
}

// AppendKernelTime appends the time of a line of kernel.normalized, which is its last key.
func AppendKernelTime(dst []byte, ns uint64) []byte {
	return strconv.AppendUint(append(dst, timeKey...), ns, 10)
}

// AppendJSON appends the record, without LF, as Marshal writes it.
func (p *Process) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"schema":"`...)
	dst = append(dst, p.Schema...)
	dst = append(dst, `","run_id":"`...)
	dst = append(dst, p.RunID...)
	dst = append(dst, `","pid":`...)
	dst = strconv.AppendUint(dst, uint64(p.PID), 10)
	dst = append(dst, `,"kernel_pid":`...)
	dst = strconv.AppendUint(dst, uint64(p.KernelPID), 10)
	dst = append(dst, `,"depth":`...)
	dst = strconv.AppendUint(dst, uint64(p.Depth), 10)
	dst = appendUint(dst, p.StartNS != 0, `,"start_ns":`, p.StartNS)
	dst = appendUint(dst, p.EndNS != 0, `,"end_ns":`, p.EndNS)
	dst = appendUint(dst, p.NSPID != 0, `,"ns_pid":`, uint64(p.NSPID))
	dst = appendUint(dst, p.PIDNS != 0, `,"pid_ns":`, uint64(p.PIDNS))
	return append(dst, '}')
}
