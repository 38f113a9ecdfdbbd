package schemas

import "strconv"

// RawEvent is one thing that the kernel reported: runner.raw_event.v0.
//
// Names are in text form (README.md, "Names as text"), not yet JSON-escaped; a nil
// name means that the key is absent. Has says which optional numbers are present.
type RawEvent struct {
	Seq      uint64
	Op       string // one of RawOps
	KtimeNS  uint64 // CLOCK_MONOTONIC
	CgroupID uint64
	PID, TID uint32
	CPU      uint32
	CPUSeq   uint64
	Probe    uint8 // HasProbe: whose records CPUSeq counts

	Has     RawHas
	Ret     int64  // HasRet
	Flags   uint64 // HasFlags
	Mode    uint64 // HasMode
	Resolve uint64 // HasResolve

	Path, UserPath, Base    []byte
	Path2, UserPath2, Base2 []byte
	Interp                  []byte

	OldTID             uint32 // HasOldTID
	ChildPID, ChildTID uint32 // HasChild: both or none
	Family             uint32 // HasFamily
	Addr               []byte
	Source             string // "" is absent
	Socket             uint64 // HasSocket: the kernel's number of the socket
	Rule               uint32 // HasRule: number of the rule that refused
	Hook               string // "" is absent
	ExitCode           int64  // HasExitCode: wait status
	DstCgroupID        uint64 // HasDstCgroup
	FileType           string // "" is absent
	Marks              Marks

	// The context of the task, of a fork that of its child.
	UID, GID uint32 // HasContext: effective, in the initial user namespace
	MountNS  uint32 // HasContext: inode number of the mount namespace
	Root     []byte // the root directory, in that namespace

	// The number that the process, of a fork the child, has in its own pid namespace. Not in the initial one.
	NSPID uint32 // HasNSPID
	PIDNS uint32 // HasNSPID: inode number of that namespace

	Arguments *Arguments // of an exec, if they were asked for
}

// RawHas says which optional numbers a raw event carries.
type RawHas uint16

// The optional numbers of a raw event.
const (
	HasRet RawHas = 1 << iota
	HasFlags
	HasMode
	HasResolve
	HasOldTID
	HasChild
	HasFamily
	HasExitCode
	HasDstCgroup
	HasRule
	HasSocket
	HasProbe
	HasContext
	HasNSPID
)

// What stands before the place of a name in its file system that is no path of the task: the name is in a mount tree that the task's mount
// namespace does not have, or no mount leads to it.
const (
	PrefixDetached    = "detached:"
	PrefixUnreachable = "unreachable:"
)

// Marks are the truth flags of a raw event.
type Marks uint32

// The marks, in their canonical order.
const (
	MarkAddrFault Marks = 1 << iota
	MarkChanged         // what the call was given could have changed under it
	MarkChroot
	MarkCompat32
	MarkDeferred // a connect that is made when the first data are sent
	MarkDeleted
	MarkDetached
	MarkDisconnected
	MarkFDRace
	MarkHooked
	MarkIOUring
	MarkOfSocket
	MarkPathFault
	MarkPathTruncated
	MarkSilent      // a request of io_uring that wants no completion on success
	MarkStartedOver // the call is one that was interrupted, which started over
	MarkUnnamed
	MarkUnpaired // the call that the address hook ran in has no record of it
	MarkUnproven // nothing shows that the call ran
	MarkUserFault
	MarkUserTruncated
)

var markNames = [...]string{
	"addr_fault", "changed", "chroot", "compat32", "deferred", "deleted", "detached", "disconnected", "fd_race",
	"hooked", "io_uring", "of_socket", "path_fault", "path_truncated", "silent", "started_over", "unnamed", "unpaired", "unproven", "user_fault", "user_truncated",
}

// Sources of network events and of refused file operations.
const (
	SourceSyscall  = "syscall"
	SourceCgroup   = "cgroup" // the address hook
	SourceIOUring  = "io_uring"
	SourceLSM      = "lsm"
	SourceFanotify = "fanotify"
	SourceLandlock = "landlock"
)

// FileMechanisms are what can enforce file rules: the sources of refused file operations.
var FileMechanisms = [...]string{SourceLSM, SourceFanotify, SourceLandlock}

// FileMechanismAuto is the choice of the first mechanism that works and can enforce every
// rule.
const FileMechanismAuto = "auto"

// FileMechanismWords are the choices of a mechanism.
func FileMechanismWords() []string { return append([]string{FileMechanismAuto}, FileMechanisms[:]...) }

// RawSources, RawHooks and RawFileTypes are the closed sets of those three keys.
var (
	RawSources   = [...]string{SourceSyscall, SourceCgroup, SourceIOUring, SourceLSM, SourceFanotify, SourceLandlock}
	RawHooks     = [...]string{HookConnect, HookSend, HookBind, HookSocket, HookRead, HookWrite, HookCreate, HookDelete, HookExec, HookMove}
	RawFileTypes = [...]string{"chr", "blk", "fifo", "sock", "anon"}
)

// AppendJSON appends the event's line, without LF, in canonical form.
func (e *RawEvent) AppendJSON(dst []byte, runID string) []byte {
	dst = append(dst, `{"schema":"`+SchemaRawEvent+`","run_id":"`...)
	dst = append(dst, runID...)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `,"op":"`...)
	dst = append(dst, e.Op...)
	dst = append(dst, `","ktime_ns":`...)
	dst = strconv.AppendUint(dst, e.KtimeNS, 10)
	dst = append(dst, `,"cgroup_id":`...)
	dst = strconv.AppendUint(dst, e.CgroupID, 10)
	dst = append(dst, `,"pid":`...)
	dst = strconv.AppendUint(dst, uint64(e.PID), 10)
	dst = append(dst, `,"tid":`...)
	dst = strconv.AppendUint(dst, uint64(e.TID), 10)
	dst = append(dst, `,"cpu":`...)
	dst = strconv.AppendUint(dst, uint64(e.CPU), 10)
	dst = append(dst, `,"cpu_seq":`...)
	dst = strconv.AppendUint(dst, e.CPUSeq, 10)
	dst = appendUint(dst, e.Has&HasProbe != 0, `,"probe":`, uint64(e.Probe))
	if e.Has&HasRet != 0 {
		dst = append(dst, `,"ret":`...)
		dst = strconv.AppendInt(dst, e.Ret, 10)
	}
	dst = appendUint(dst, e.Has&HasFlags != 0, `,"flags":`, e.Flags)
	dst = appendUint(dst, e.Has&HasMode != 0, `,"mode":`, e.Mode)
	dst = appendUint(dst, e.Has&HasResolve != 0, `,"resolve":`, e.Resolve)
	dst = appendName(dst, `,"path":`, e.Path)
	dst = appendName(dst, `,"user_path":`, e.UserPath)
	dst = appendName(dst, `,"base":`, e.Base)
	dst = appendName(dst, `,"path2":`, e.Path2)
	dst = appendName(dst, `,"user_path2":`, e.UserPath2)
	dst = appendName(dst, `,"base2":`, e.Base2)
	dst = appendName(dst, `,"interp":`, e.Interp)
	dst = appendUint(dst, e.Has&HasOldTID != 0, `,"old_tid":`, uint64(e.OldTID))
	dst = appendUint(dst, e.Has&HasChild != 0, `,"child_pid":`, uint64(e.ChildPID))
	dst = appendUint(dst, e.Has&HasChild != 0, `,"child_tid":`, uint64(e.ChildTID))
	dst = appendUint(dst, e.Has&HasFamily != 0, `,"family":`, uint64(e.Family))
	dst = appendName(dst, `,"addr":`, e.Addr)
	dst = appendUint(dst, e.Has&HasSocket != 0, `,"socket":`, e.Socket)
	dst = appendWord(dst, `,"source":"`, e.Source)
	dst = appendUint(dst, e.Has&HasRule != 0, `,"rule":`, uint64(e.Rule))
	dst = appendWord(dst, `,"hook":"`, e.Hook)
	if e.Has&HasExitCode != 0 {
		dst = append(dst, `,"exit_code":`...)
		dst = strconv.AppendInt(dst, e.ExitCode, 10)
	}
	dst = appendUint(dst, e.Has&HasDstCgroup != 0, `,"dst_cgroup_id":`, e.DstCgroupID)
	dst = appendWord(dst, `,"file_type":"`, e.FileType)
	if e.Has&HasContext != 0 {
		dst = strconv.AppendUint(append(dst, `,"uid":`...), uint64(e.UID), 10)
		dst = strconv.AppendUint(append(dst, `,"gid":`...), uint64(e.GID), 10)
		dst = strconv.AppendUint(append(dst, `,"mount_ns":`...), uint64(e.MountNS), 10)
	}
	dst = appendName(dst, `,"root":`, e.Root)
	dst = appendUint(dst, e.Has&HasNSPID != 0, `,"ns_pid":`, uint64(e.NSPID))
	dst = appendUint(dst, e.Has&HasNSPID != 0, `,"pid_ns":`, uint64(e.PIDNS))
	if e.Arguments != nil {
		b, err := Marshal(e.Arguments)
		if err != nil {
			panic("schemas: " + err.Error()) // texts are valid UTF-8
		}
		dst = append(append(dst, `,"arguments":`...), b...)
	}
	if e.Marks != 0 {
		dst = append(dst, `,"marks":[`...)
		sep := `"`
		for i, name := range markNames {
			if e.Marks&(1<<i) != 0 {
				dst = append(append(append(dst, sep...), name...), '"')
				sep = `,"`
			}
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendUint(dst []byte, has bool, key string, v uint64) []byte {
	if !has {
		return dst
	}
	return strconv.AppendUint(append(dst, key...), v, 10)
}

func appendName(dst []byte, key string, v []byte) []byte {
	if v == nil {
		return dst
	}
	return AppendQuote(append(dst, key...), v)
}

// appendWord appends a word that needs no escape; key ends with the quote.
func appendWord(dst []byte, key, v string) []byte {
	if v == "" {
		return dst
	}
	return append(append(append(dst, key...), v...), '"')
}
