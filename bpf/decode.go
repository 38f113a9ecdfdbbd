package bpf

import (
	"encoding/binary"
	"errors"

	"github.com/runner-evidence/runner/schemas"
)

// The record of record.h, little endian. Offsets are part of the object's build;
// the test compares them with the BTF of the committed objects.
const (
	recSize  = 112
	offLen   = 0
	offOp    = 4
	offSrc   = 6
	offProbe = 7
	offKtime = 8
	offCgid  = 16
	offTgid  = 24
	offTid   = 28
	offCPU   = 32
	offArgs  = 36
	offSeq   = 40
	offRet   = 48
	offFlags = 56
	offResol = 64
	offMode  = 72
	offMarks = 76
	offIMode = 80
	offULen1 = 82
	offULen2 = 84
	offALen  = 86
	offCLen1 = 88
	offCLen2 = 92
	offAux1  = 96
	offAux2  = 104
)

// Marks of record.h. The low ones go to the reader of the stream.
const (
	markUTrunc = 1 << iota
	markUFault
	markPTrunc
	markPFault
	markDeleted
	markUnnamed
	markDisconn
	markDetached
	markFDRace
	markCompat
	markAFault
	markChroot
	markChanged
	markUnproven
	markSilent
	markUnpaired

	markHasPath  = 1 << 16
	markHasBase1 = 1 << 17
	markHasBase2 = 1 << 18
	markHasU1    = 1 << 19
	markHasU2    = 1 << 20
	markNoRet    = 1 << 21
	markEscape   = 1 << 22
	markArgs     = 1 << 23
	markMode     = 1 << 24
	markEintr    = 1 << 25
	markHasPath2 = 1 << 26
	markRing     = 1 << 27
	markSocket   = 1 << 28
	markHooked   = 1 << 29
	markContext  = 1 << 30
	markRoot     = 1 << 31
)

// opNames is indexed by enum op of record.h.
var opNames = [...]string{"", schemas.OpOpen, schemas.OpCreat, schemas.OpOpenat, schemas.OpOpenat2, schemas.OpOpenByHandleAt,
	schemas.OpIOUringOpenat, schemas.OpIOUringOpenat2, schemas.OpTiocgptpeer, schemas.OpExec, schemas.OpExecve, schemas.OpExecveat,
	schemas.OpConnect, schemas.OpSendto, schemas.OpSendmsg, schemas.OpSendmmsg, schemas.OpBind, schemas.OpListen,
	schemas.OpUnlink, schemas.OpRmdir, schemas.OpRename, schemas.OpLink, schemas.OpSymlink, schemas.OpMkdir, schemas.OpTruncate, schemas.OpFtruncate,
	schemas.OpChmod, schemas.OpChown, schemas.OpMknod, schemas.OpMount, schemas.OpUmount, schemas.OpMoveMount, schemas.OpPivotRoot,
	schemas.OpSetxattr, schemas.OpRemovexattr, schemas.OpMountSetattr, schemas.OpOpenTree, schemas.OpFspick, schemas.OpFsconfig, schemas.OpFsmount,
	schemas.OpMqOpen, schemas.OpMqUnlink, schemas.OpBPFObjPin, schemas.OpBPFObjGet, schemas.OpKernelFile,
	schemas.OpIOUringOther, schemas.OpFork, schemas.OpExit, schemas.OpMove, schemas.OpConnectBlocked, schemas.OpFileBlocked, schemas.OpExecCheck, schemas.OpLoader, schemas.OpContext, schemas.OpConnectEnd}

var sourceNames = append([]string{""}, schemas.RawSources[:]...)

const (
	opOpen       = 1
	opLastOpen   = 8
	opExec       = 9
	opExecveat   = 11
	opConnect    = 12
	opListen     = 17
	opRename     = 20
	opUringOther = 45
	opFork       = 46
	opExit       = 47
	opMove       = 48
	opBlocked    = 49
	opFile       = 50
	opExecCheck  = 51
	opLoader     = 52
	opContext    = 53
	opResult     = 54
)

// The kernel's own codes for calls that start over, which no program sees.
const (
	restartFirst = -512
	restartLast  = -516
)

// ErrRecord means that a record does not have the form that the probes write.
var ErrRecord = errors.New("malformed ring record")

// Decoder turns ring records into raw events. It owns the buffers that the
// event's names point into: they are valid until the next call. Not safe for
// concurrent use; runs anywhere.
type Decoder struct {
	// Hooks, if it is set, is the time in which the address hooks were attached. A call that ended at
	// another time did not pass them.
	Hooks *Period
	// FirstSeq, if it is set, is what cpu_seq of a probe's records on a CPU begins with.
	FirstSeq func(probe uint8, cpu uint32) uint64
	buf      []byte
	comps    []int // offsets of length bytes, leaf first
}

// Decoded is what the caller needs to know about a record in addition to the event.
type Decoded struct {
	Escape  bool // fork or move to a cgroup outside the scope
	Lexical bool // its path is known only as text
	// Interrupted: a signal interrupted the call. A record with EINTR follows if the program
	// was told; otherwise the call starts over, with a record of its own.
	Interrupted bool
	// EINTR: not an event, but how the task's last call, if it was interrupted, ended.
	EINTR bool
	// Arguments are the bytes of an exec's arguments, each with a 0 byte after it, as far as they were read;
	// ArgumentBytes is how many there are, 0 if nobody asked for them.
	Arguments     []byte
	ArgumentBytes uint32
}

// Decode fills e from one record.
func (d *Decoder) Decode(b []byte, e *schemas.RawEvent) (Decoded, error) {
	var out Decoded
	if len(b) < recSize {
		return out, ErrRecord
	}
	le := binary.LittleEndian
	op := int(le.Uint16(b[offOp:]))
	src := int(b[offSrc])
	if op == 0 || op >= len(opNames) || src >= len(sourceNames) || int(le.Uint32(b[offLen:])) > len(b) || le.Uint32(b[offLen:]) < recSize {
		return out, ErrRecord
	}
	marks := le.Uint32(b[offMarks:])
	*e = schemas.RawEvent{
		Op: opNames[op], Source: sourceNames[src],
		KtimeNS: le.Uint64(b[offKtime:]), CgroupID: le.Uint64(b[offCgid:]),
		PID: le.Uint32(b[offTgid:]), TID: le.Uint32(b[offTid:]),
		CPU: le.Uint32(b[offCPU:]), CPUSeq: le.Uint64(b[offSeq:]), Probe: b[offProbe], Has: schemas.HasProbe,
		Marks: publicMarks(marks),
	}
	if d.FirstSeq != nil {
		e.CPUSeq -= d.FirstSeq(e.Probe, e.CPU)
	}
	if e.Source == schemas.SourceIOUring && (op < opConnect || op > opListen) && op != opUringOther {
		e.Marks |= schemas.MarkIOUring
		e.Source = ""
	}
	d.buf = d.buf[:0]
	ret := int64(le.Uint64(b[offRet:]))
	switch {
	case marks&markEintr != 0:
		out.EINTR = true
		return out, nil
	case marks&(markNoRet|markUnproven) != 0 || op >= opFork && op < opExecCheck:
	case ret <= restartFirst && ret >= restartLast:
		out.Interrupted = e.Source != schemas.SourceIOUring && e.Marks&schemas.MarkIOUring == 0
	case marks&(markContext|markRoot) != 0: // of these three the call has succeeded
		if op == opExec {
			e.Has |= schemas.HasRet
		}
	default:
		e.Ret = ret
		e.Has |= schemas.HasRet
	}
	if marks&markArgs != 0 {
		e.Has |= schemas.HasFlags
		e.Flags = le.Uint64(b[offFlags:])
		if op <= opLastOpen {
			d.openArgs(b, e)
		}
	} else if marks&markContext != 0 {
		d.context(b, e)
	} else if e.Flags = le.Uint64(b[offFlags:]); op == opRename && e.Flags != 0 {
		e.Has |= schemas.HasFlags
	} else if e.Flags = 0; marks&markMode != 0 {
		e.Has |= schemas.HasMode
		e.Mode = uint64(le.Uint32(b[offMode:]))
	}
	if op == opFork || op == opExec {
		ownNumber(b, e)
	}
	switch {
	case op == opFork || op == opMove:
		ids := le.Uint64(b[offAux1:])
		e.ChildPID, e.ChildTID = uint32(ids>>32), uint32(ids)
		e.Has |= schemas.HasChild
		if out.Escape = marks&markEscape != 0; out.Escape {
			e.Has |= schemas.HasDstCgroup
			e.DstCgroupID = le.Uint64(b[offAux2:])
		}
		_, err := d.root(b[recSize:le.Uint32(b[offLen:])], b, marks, e)
		return out, err
	case op == opContext:
		_, err := d.root(b[recSize:le.Uint32(b[offLen:])], b, marks, e)
		return out, err
	case op == opExit:
		e.Has |= schemas.HasExitCode
		e.ExitCode = int64(le.Uint64(b[offAux2:]))
		return out, nil
	case op == opResult:
		e.Socket = le.Uint64(b[offAux2:])
		e.Has |= schemas.HasSocket
		return out, nil
	case op == opBlocked:
		refused(b, e)
		return out, d.sock(b, e, marks)
	case op == opFile:
		refused(b, e)
	case op >= opConnect && op <= opListen:
		return out, d.sock(b, e, marks)
	}
	rest, err := d.paths(b, e, op, marks)
	if err != nil {
		return out, err
	}
	if op <= opExecveat && le.Uint64(b[offAux2:]) != 0 {
		e.Marks |= schemas.MarkStartedOver
	}
	if op == opExec {
		out.Arguments, out.ArgumentBytes = rest, le.Uint32(b[offArgs:])
		if len(rest) != int(le.Uint16(b[offALen:])) {
			return out, ErrRecord
		}
	}
	if op <= opLastOpen && e.Path != nil {
		e.FileType = FileType(binary.LittleEndian.Uint16(b[offIMode:]))
	}
	out.Lexical = e.UserPath != nil && (e.Path == nil || e.Interp != nil) || e.UserPath2 != nil && e.Path2 == nil && marks&markHasBase2 != 0
	return out, nil
}

// refused sets what only refusals have.
func refused(b []byte, e *schemas.RawEvent) {
	rule := binary.LittleEndian.Uint64(b[offAux1:])
	e.Rule, e.Hook = uint32(rule), hookOf(uint32(rule>>32))
	e.Has |= schemas.HasRule
}

// openArgs sets mode and resolve. Without a flag that creates a file, the kernel ignores
// the mode, and the register can have any value.
func (d *Decoder) openArgs(b []byte, e *schemas.RawEvent) {
	e.Has |= schemas.HasMode
	if e.Flags&schemas.OpenCreates != 0 {
		e.Mode = uint64(binary.LittleEndian.Uint32(b[offMode:]))
	}
	if r := binary.LittleEndian.Uint64(b[offResol:]); r != 0 {
		e.Has |= schemas.HasResolve
		e.Resolve = r
	}
}

func publicMarks(m uint32) schemas.Marks {
	if m&0xffff == 0 {
		return 0
	}
	var out schemas.Marks
	for _, x := range [...]struct {
		bit  uint32
		mark schemas.Marks
	}{
		{markUTrunc, schemas.MarkUserTruncated}, {markUFault, schemas.MarkUserFault},
		{markPTrunc, schemas.MarkPathTruncated}, {markPFault, schemas.MarkPathFault},
		{markDeleted, schemas.MarkDeleted}, {markUnnamed, schemas.MarkUnnamed},
		{markDisconn, schemas.MarkDisconnected}, {markDetached, schemas.MarkDetached},
		{markFDRace, schemas.MarkFDRace}, {markCompat, schemas.MarkCompat32},
		{markAFault, schemas.MarkAddrFault}, {markChroot, schemas.MarkChroot},
		{markChanged, schemas.MarkChanged}, {markUnproven, schemas.MarkUnproven},
		{markSilent, schemas.MarkSilent}, {markUnpaired, schemas.MarkUnpaired},
	} {
		if m&x.bit != 0 {
			out |= x.mark
		}
	}
	return out
}

// paths slices the names after the header: upath1, comp1, upath2, comp2, and of an exec the root. It returns what follows.
func (d *Decoder) paths(b []byte, e *schemas.RawEvent, op int, marks uint32) ([]byte, error) {
	le := binary.LittleEndian
	rest := b[recSize:le.Uint32(b[offLen:])]
	cut := func(n int) []byte {
		if n > len(rest) {
			return nil
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	len1, marks1 := pathOf(le.Uint32(b[offCLen1:]), marks)
	len2, marks2 := pathOf(le.Uint32(b[offCLen2:]), marks)
	n := [4]int{int(le.Uint16(b[offULen1:])), len1, int(le.Uint16(b[offULen2:])), len2}
	u1, c1, u2, c2 := cut(n[0]), cut(n[1]), cut(n[2]), cut(n[3])
	if len(u1) != n[0] || len(c1) != n[1] || len(u2) != n[2] || len(c2) != n[3] {
		return nil, ErrRecord
	}
	unread := marks&markUFault != 0 // a text of no bytes may be the one that could not be read
	if marks&markHasU1 != 0 && (len(u1) > 0 || !unread) {
		e.UserPath = d.text(u1)
	}
	if marks&markHasPath != 0 {
		var err error
		if e.Path, err = d.path(c1, b, marks1, e.Flags); err != nil {
			return nil, err
		}
	}
	base1, marksB := c1, marks1
	if op == opExec {
		base1, marksB = c2, marks2
	}
	if marks&markHasBase1 != 0 && marksB&markPFault == 0 {
		var err error
		if e.Base, err = d.dir(base1, marksB); err != nil {
			return nil, err
		}
		if op != opExec && e.Path == nil && len(e.Base) > 1 && len(u1) > 0 && u1[0] == '/' && e.Resolve&schemas.ResolveInRoot == 0 {
			e.Marks |= schemas.MarkChroot
		}
	}
	if op == opExec {
		if old := le.Uint64(b[offAux1:]); uint32(old) != e.TID {
			e.Has |= schemas.HasOldTID
			e.OldTID = uint32(old)
		}
		if marks&markHasU2 != 0 && string(u1) != string(u2) {
			e.Interp = d.text(u2)
		}
		return d.root(rest, b, marks, e)
	}
	if marks&markHasU2 != 0 && (len(u2) > 0 || !unread) {
		e.UserPath2 = d.text(u2)
	}
	if marks&markHasPath2 != 0 {
		var err error
		if e.Path2, err = d.path(c2, b, marks2, e.Flags); err != nil {
			return nil, err
		}
	}
	if marks&markHasBase2 != 0 && marks2&markPFault == 0 {
		var err error
		if e.Base2, err = d.dir(c2, marks2); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// pathOf splits what a record says about one of its paths: its bytes, and in the upper half which of the record's marks
// are not of this path.
func pathOf(clen, marks uint32) (bytes int, own uint32) {
	return int(clen & 0xffff), marks &^ (clen >> 16)
}

// context sets who and where the task is, or of a fork its child.
func (d *Decoder) context(b []byte, e *schemas.RawEvent) {
	ids := binary.LittleEndian.Uint64(b[offFlags:])
	e.UID, e.GID, e.MountNS = uint32(ids>>32), uint32(ids), uint32(binary.LittleEndian.Uint64(b[offResol:]))
	e.Has |= schemas.HasContext
}

// ownNumber sets the number that the process, of a fork the child, has for itself, unless it is in the initial pid namespace.
func ownNumber(b []byte, e *schemas.RawEvent) {
	if n := binary.LittleEndian.Uint32(b[offMode:]); n != 0 {
		e.NSPID, e.PIDNS = n, uint32(binary.LittleEndian.Uint64(b[offResol:])>>32)
		e.Has |= schemas.HasNSPID
	}
}

// root sets the root directory of a context, which is the first of these names, and returns those after it.
func (d *Decoder) root(names, b []byte, marks uint32, e *schemas.RawEvent) (rest []byte, err error) {
	if marks&markRoot == 0 {
		return names, nil
	}
	n := binary.LittleEndian.Uint64(b[offRet:])
	if n > uint64(len(names)) {
		return nil, ErrRecord
	}
	e.Root, err = d.dir(names[:n], 0)
	return names[n:], err
}
