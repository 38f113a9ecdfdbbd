package schemas

import (
	"slices"
	"strconv"
)

// Event ids of kernel lines. The ids below 200 are defined by the v0 contract. Those from
// 200 on are additions of this runner, for events that the contract does not name.
const (
	EventOpenat         = 1   // file opened, by any call of the open family
	EventConnect        = 2   // connect
	EventExec           = 4   // a program started: the binary that runs
	EventSendto         = 6   // datagram with a destination, by sendto
	EventSendmsg        = 7   // datagram with a destination, by sendmsg
	EventFileBlocked    = 10  // file access refused by a policy
	EventConnectBlocked = 20  // connection refused by a policy
	EventScript         = 200 // a program started by #!: the script
	EventExecFailed     = 201 // exec that failed
	EventSendmmsg       = 202 // one message of sendmmsg
	EventBind           = 203 // local address taken
	EventListen         = 204 // local address opened for connections
	EventExecCheck      = 205 // asked whether a file could be executed
	EventLoader         = 206 // a program's loader, which the kernel mapped and started
	EventUnlink         = 211 // name removed
	EventRmdir          = 212 // directory removed
	EventRenameFrom     = 213 // renamed: the old name
	EventRenameTo       = 214 // renamed: the new name
	EventLinkFrom       = 215 // hard link: the existing name
	EventLinkTo         = 216 // hard link: the new name
	EventSymlink        = 217 // symbolic link: the link itself
	EventMkdir          = 219 // directory made
	EventTruncate       = 220 // length set, by name or descriptor
	EventChmod          = 221 // mode set, by name or descriptor
	EventChown          = 222 // owner set, by name or descriptor
	EventMknod          = 223 // node made
	EventMount          = 224 // mounted: the mount point
	EventMountSource    = 225 // mounted: the source text as given
	EventUmount         = 226 // unmounted: the mount point
	EventMoveMountFrom  = 227 // mount moved: from
	EventMoveMountTo    = 228 // mount moved: to
	EventPivotRootNew   = 229 // pivot_root: the new root
	EventPivotRootOld   = 230 // pivot_root: where the old root went
	EventSetxattr       = 231 // extended attribute set, such as an access control list: the file
	EventXattrName      = 232 // extended attribute set or removed: its name as given
	EventRemovexattr    = 233 // extended attribute removed: the file
	EventMountSetattr   = 234 // attributes of a mount set: a place in it
	EventOpenTree       = 235 // mount opened or copied, to be moved: a place in it
	EventFspick         = 236 // file system opened to be reconfigured: a place in it
	EventFsconfig       = 237 // file system made or reconfigured: its type
	EventFsmount        = 238 // file system given a mount, to be moved to a place: its source
	EventMqOpen         = 239 // message queue opened: its name as given
	EventIOUringOther   = 240 // io_uring operation that is not decoded
	EventMqUnlink       = 241 // message queue removed: its name as given
	EventBPFObjPin      = 242 // BPF object given a name
	EventBPFObjGet      = 243 // BPF object opened by its name
	EventKernelFile     = 244 // file that the kernel was told to use or to leave: accounting, swap
)

// verbSend is the verb of every datagram.
const verbSend = "send"

// ValueOfText is the value of an event that is a text and not always a path.
const ValueOfText = "text"

// EventType is one event type of kernel lines.
type EventType struct {
	ID    uint32
	Name  string // kind in the contract; "" is event_ID
	Other string // kind that only other implementations write: the published line schema lacks it
	Verb  string // in kernel_effects; "" is the access mode, else the kind
	Set   int    // set of the surface that the value feeds
	Value string // what the value is
	What  string
}

// EventTypes are all event types, by id. Lines of other ids are valid: their kind is
// event_ID, and their values feed no set.
var EventTypes = [...]EventType{
	{EventOpenat, OpOpenat, "", "", SetFilesystemPaths, "path", "file opened, by any call of the open family"},
	{EventConnect, OpConnect, "", OpConnect, SetNetworkEndpoints, "endpoint", "connect"},
	{EventExec, OpExec, "", OpExec, SetProcessExecs, "path of the binary", "program started"},
	{EventSendto, "", OpSendto, verbSend, SetNetworkEndpoints, "endpoint", "datagram with a destination, by sendto"},
	{EventSendmsg, "", OpSendmsg, verbSend, SetNetworkEndpoints, "endpoint", "datagram with a destination, by sendmsg"},
	{EventFileBlocked, OpFileBlocked, "", OpFileBlocked, SetFilesystemPaths, "path", "file access refused by a policy"},
	{EventConnectBlocked, OpConnectBlocked, "", OpConnectBlocked, SetNetworkEndpoints, "endpoint", "network operation refused by a policy"},
	{EventScript, "", "", OpExec, SetProcessExecs, "path of the script", "program started by `#!`"},
	{EventExecFailed, "", "", OpExec, SetFilesystemPaths, "path", "exec that failed"},
	{EventSendmmsg, "", "", verbSend, SetNetworkEndpoints, "endpoint", "one message of sendmmsg"},
	{EventBind, "", "", OpBind, SetNetworkEndpoints, "endpoint", "bind"},
	{EventListen, "", "", OpListen, SetNetworkEndpoints, "endpoint", "listen"},
	{EventExecCheck, "", "", OpExecCheck, SetFilesystemPaths, "path", "asked whether a file could be executed (AT_EXECVE_CHECK); nothing was"},
	{EventLoader, "", "", OpExec, SetProcessExecs, "path", "loader of a program (PT_INTERP), if it is not one of the system"},
	{EventUnlink, "", "", OpUnlink, SetFilesystemPaths, "path", "name removed"},
	{EventRmdir, "", "", OpRmdir, SetFilesystemPaths, "path", "directory removed"},
	{EventRenameFrom, "", "", OpRename, SetFilesystemPaths, "path", "renamed: the old name"},
	{EventRenameTo, "", "", OpRename, SetFilesystemPaths, "path", "renamed: the new name"},
	{EventLinkFrom, "", "", OpLink, SetFilesystemPaths, "path", "hard link: the existing name"},
	{EventLinkTo, "", "", OpLink, SetFilesystemPaths, "path", "hard link: the new name"},
	{EventSymlink, "", "", OpSymlink, SetFilesystemPaths, "path of the link", "symbolic link made"},
	{EventMkdir, "", "", OpMkdir, SetFilesystemPaths, "path", "directory made"},
	{EventTruncate, "", "", OpTruncate, SetFilesystemPaths, "path", "length set, by name or descriptor"},
	{EventChmod, "", "", OpChmod, SetFilesystemPaths, "path", "mode set, by name or descriptor"},
	{EventChown, "", "", OpChown, SetFilesystemPaths, "path", "owner set, by name or descriptor"},
	{EventMknod, "", "", OpMknod, SetFilesystemPaths, "path", "node made"},
	{EventMount, "", "", OpMount, SetFilesystemPaths, "mount point", "mounted"},
	{EventMountSource, "", "", OpMount, SetNone, ValueOfText, "mounted: the source as given"},
	{EventUmount, "", "", OpUmount, SetFilesystemPaths, "mount point", "unmounted"},
	{EventMoveMountFrom, "", "", OpMoveMount, SetFilesystemPaths, "path", "mount moved: from"},
	{EventMoveMountTo, "", "", OpMoveMount, SetFilesystemPaths, "path", "mount moved: to"},
	{EventPivotRootNew, "", "", OpPivotRoot, SetFilesystemPaths, "path", "pivot_root: the new root"},
	{EventPivotRootOld, "", "", OpPivotRoot, SetFilesystemPaths, "path", "pivot_root: where the old root went"},
	{EventSetxattr, "", "", OpSetxattr, SetFilesystemPaths, "path", "extended attribute set, such as an access control list"},
	{EventXattrName, "", "", "xattr", SetNone, ValueOfText, "extended attribute set or removed: its name as given"},
	{EventRemovexattr, "", "", OpRemovexattr, SetFilesystemPaths, "path", "extended attribute removed"},
	{EventMountSetattr, "", "", OpMountSetattr, SetFilesystemPaths, "path", "attributes of a mount set"},
	{EventOpenTree, "", "", OpOpenTree, SetFilesystemPaths, "path", "mount opened or copied, to be moved"},
	{EventFspick, "", "", OpFspick, SetFilesystemPaths, "path", "file system opened to be reconfigured"},
	{EventFsconfig, "", "", OpFsconfig, SetNone, ValueOfText, "file system made or reconfigured: its type"},
	{EventFsmount, "", "", OpFsmount, SetNone, ValueOfText, "file system given a mount, to be moved to a place: its source"},
	{EventMqOpen, "", "", OpMqOpen, SetNone, ValueOfText, "message queue opened: its name as given"},
	{EventIOUringOther, "", "", "", SetNone, "null", "io_uring operation that is not decoded"},
	{EventMqUnlink, "", "", OpMqUnlink, SetNone, ValueOfText, "message queue removed: its name as given"},
	{EventBPFObjPin, "", "", OpBPFObjPin, SetFilesystemPaths, "path", "BPF object given a name"},
	{EventBPFObjGet, "", "", OpBPFObjGet, SetFilesystemPaths, "path", "BPF object opened by its name"},
	{EventKernelFile, "", "", OpKernelFile, SetFilesystemPaths, "path", "file that the kernel was told to use or to leave: accounting, swap"},
}

// EventTypes by id, for lookups that are done for every line. A kind without a name of its own is empty: KindOf knows it.
var kinds, otherKinds, effectVerbs, eventSets = func() (kind, other, verb [256]string, set [256]int8) {
	for id := range set {
		set[id] = SetNone
	}
	for i := range EventTypes {
		t := &EventTypes[i]
		kind[t.ID], other[t.ID], verb[t.ID], set[t.ID] = t.Name, t.Other, t.Verb, int8(t.Set)
	}
	return kind, other, verb, set
}()

// HasText reports whether the value of an event is a text as the program or the kernel gave it.
func HasText(eventType uint32) bool {
	i := slices.IndexFunc(EventTypes[:], func(t EventType) bool { return t.ID == eventType })
	return i >= 0 && EventTypes[i].Value == ValueOfText
}

// KindOf is the kind that the runner writes for an event id.
func KindOf(eventType uint32) string {
	if eventType < uint32(len(kinds)) && kinds[eventType] != "" {
		return kinds[eventType]
	}
	return "event_" + strconv.FormatUint(uint64(eventType), 10)
}

// Indexes into SurfaceSets.
const (
	SetNone             = -1
	SetFilesystemPaths  = 0
	SetNetworkEndpoints = 1
	SetProcessExecs     = 2
	SetMCPTools         = 3
	SetPolicyDecisions  = 4
)

// SetOf is the index in SurfaceSets of the set that an event's value feeds, and
// SetNone when it feeds none. Null and empty values feed no set.
func SetOf(eventType uint32) int {
	if eventType < uint32(len(eventSets)) {
		return int(eventSets[eventType])
	}
	return SetNone
}
