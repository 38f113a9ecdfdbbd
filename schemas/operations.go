package schemas

// Operation is one operation of raw events, and the kernel lines that one makes.
type Operation struct {
	Name   string
	Calls  string // the system calls or tracepoints that report it; "" is the call of that name
	First  uint32 // event type of the line; 0 is no line
	Second uint32 // event type of the second line; 0 is none
}

// Operations.
const (
	OpOpen           = "open"
	OpCreat          = "creat"
	OpOpenat         = "openat"
	OpOpenat2        = "openat2"
	OpOpenByHandleAt = "open_by_handle_at"
	OpIOUringOpenat  = "io_uring_openat"
	OpIOUringOpenat2 = "io_uring_openat2"
	OpTiocgptpeer    = "tiocgptpeer"
	OpExec           = "exec"
	OpLoader         = "loader"
	OpExecve         = "execve"
	OpExecveat       = "execveat"
	OpExecCheck      = "exec_check"
	OpConnect        = "connect"
	OpSendto         = "sendto"
	OpSendmsg        = "sendmsg"
	OpSendmmsg       = "sendmmsg"
	OpBind           = "bind"
	OpListen         = "listen"
	OpConnectBlocked = "connect_blocked"
	OpFileBlocked    = "file_blocked"
	OpUnlink         = "unlink"
	OpRmdir          = "rmdir"
	OpRename         = "rename"
	OpLink           = "link"
	OpSymlink        = "symlink"
	OpMkdir          = "mkdir"
	OpTruncate       = "truncate"
	OpFtruncate      = "ftruncate"
	OpChmod          = "chmod"
	OpChown          = "chown"
	OpMknod          = "mknod"
	OpMount          = "mount"
	OpUmount         = "umount"
	OpMoveMount      = "move_mount"
	OpPivotRoot      = "pivot_root"
	OpSetxattr       = "setxattr"
	OpRemovexattr    = "removexattr"
	OpMountSetattr   = "mount_setattr"
	OpOpenTree       = "open_tree"
	OpFspick         = "fspick"
	OpFsconfig       = "fsconfig"
	OpFsmount        = "fsmount"
	OpMqOpen         = "mq_open"
	OpMqUnlink       = "mq_unlink"
	OpBPFObjPin      = "bpf_obj_pin"
	OpBPFObjGet      = "bpf_obj_get"
	OpKernelFile     = "kernel_file"
	OpIOUringOther   = "io_uring_other"
	OpFork           = "fork"
	OpExit           = "exit"
	OpMove           = "move"
	OpContext        = "context"
	OpConnectEnd     = "connect_end"
)

// Operations are all operations, in the order of the specification.
var Operations = [...]Operation{
	{OpOpen, "", EventOpenat, 0},
	{OpCreat, "", EventOpenat, 0},
	{OpOpenat, "", EventOpenat, 0},
	{OpOpenat2, "", EventOpenat, 0},
	{OpOpenByHandleAt, "", EventOpenat, 0},
	{OpIOUringOpenat, "an io_uring openat", EventOpenat, 0},
	{OpIOUringOpenat2, "an io_uring openat2", EventOpenat, 0},
	{OpTiocgptpeer, "ioctl with TIOCGPTPEER, successful ones only: the second end of a terminal", EventOpenat, 0},
	{OpExec, "sched_process_exec", EventExec, EventScript},
	{OpLoader, "sched_process_exec, of a program that names a loader (PT_INTERP); right after its exec", EventLoader, 0},
	{OpExecve, "execve, failed ones only", EventExecFailed, 0},
	{OpExecveat, "execveat, failed ones only", EventExecFailed, 0},
	{OpExecCheck, "execveat with AT_EXECVE_CHECK: it only asks whether the file could be executed", EventExecCheck, 0},
	{OpConnect, "connect; also by io_uring, and by the address hook", EventConnect, 0},
	{OpSendto, "", EventSendto, 0},
	{OpSendmsg, "sendmsg; also by the address hook, of any datagram", EventSendmsg, 0},
	{OpSendmmsg, "sendmmsg, one record for each message", EventSendmmsg, 0},
	{OpBind, "", EventBind, 0},
	{OpListen, "", EventListen, 0},
	{OpConnectBlocked, "none: what network rules refused, reported from inside the call, which has its own record", EventConnectBlocked, 0},
	{OpFileBlocked, "none: what file rules refused, reported when it was refused; the call has its own record", EventFileBlocked, 0},
	{OpUnlink, "unlink, unlinkat", EventUnlink, 0},
	{OpRmdir, "rmdir, unlinkat with AT_REMOVEDIR", EventRmdir, 0},
	{OpRename, "rename, renameat, renameat2", EventRenameFrom, EventRenameTo},
	{OpLink, "link, linkat", EventLinkFrom, EventLinkTo},
	{OpSymlink, "symlink, symlinkat", EventSymlink, 0},
	{OpMkdir, "mkdir, mkdirat", EventMkdir, 0},
	{OpTruncate, "", EventTruncate, 0},
	{OpFtruncate, "", EventTruncate, 0},
	{OpChmod, "chmod, fchmod, fchmodat, fchmodat2", EventChmod, 0},
	{OpChown, "chown, lchown, fchown, fchownat", EventChown, 0},
	{OpMknod, "mknod, mknodat", EventMknod, 0},
	{OpMount, "", EventMount, EventMountSource},
	{OpUmount, "umount2", EventUmount, 0},
	{OpMoveMount, "", EventMoveMountFrom, EventMoveMountTo},
	{OpPivotRoot, "", EventPivotRootNew, EventPivotRootOld},
	{OpSetxattr, "setxattr, lsetxattr, fsetxattr, setxattrat", EventSetxattr, EventXattrName},
	{OpRemovexattr, "removexattr, lremovexattr, fremovexattr, removexattrat", EventRemovexattr, EventXattrName},
	{OpMountSetattr, "mount_setattr; open_tree_attr with attributes", EventMountSetattr, 0},
	{OpOpenTree, "open_tree; open_tree_attr without attributes", EventOpenTree, 0},
	{OpFspick, "", EventFspick, 0},
	{OpFsconfig, "fsconfig that makes or reconfigures a file system", EventFsconfig, 0},
	{OpFsmount, "", EventFsmount, 0},
	{OpMqOpen, "", EventMqOpen, 0},
	{OpMqUnlink, "", EventMqUnlink, 0},
	{OpBPFObjPin, "bpf with BPF_OBJ_PIN", EventBPFObjPin, 0},
	{OpBPFObjGet, "bpf with BPF_OBJ_GET", EventBPFObjGet, 0},
	{OpKernelFile, "acct with a path, swapon, swapoff", EventKernelFile, 0},
	{OpIOUringOther, "an io_uring operation that these probes do not know; `flags` is its opcode", EventIOUringOther, 0},
	{OpFork, "sched_process_fork", 0, 0},
	{OpExit, "sched_process_exit", 0, 0},
	{OpMove, "cgroup_attach_task", 0, 0},
	{OpContext, "chroot, unshare, setns, setuid, setgid, setreuid, setregid, setresuid, setresgid, if they succeed: the context after the call", 0, 0},
	{OpConnectEnd, "none: how a TCP connect ended that had not when its call did, reported by the kernel for the socket, in no task", 0, 0},
}

// RawOps are the names of all operations.
var RawOps = func() (names [len(Operations)]string) {
	for i := range Operations {
		names[i] = Operations[i].Name
	}
	return names
}()
