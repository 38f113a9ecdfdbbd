package schemas

import "strconv"

// Event ids of kernel lines. The ids below 200 are the v0 contract's own; those
// from 200 on are this runner's, for what the contract has no name for.
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
	EventIOUringOther   = 240 // io_uring operation that is not decoded
)

// The names that the contract gives to ids. sendto and sendmsg are names that
// only other implementations write: the published line schema lacks them.
var kindNames = map[uint32]string{
	EventOpenat: "openat", EventConnect: "connect", EventExec: "exec",
	EventFileBlocked: "file_blocked", EventConnectBlocked: "connect_blocked",
}

var foreignKinds = map[uint32]string{EventSendto: "sendto", EventSendmsg: "sendmsg"}

var kinds = func() (t [256]string) {
	for i := range t {
		t[i] = "event_" + strconv.Itoa(i)
	}
	for id, name := range kindNames {
		t[id] = name
	}
	return t
}()

// KindOf is the kind that the runner writes for an event id.
func KindOf(eventType uint32) string {
	if eventType < uint32(len(kinds)) {
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
	switch eventType {
	case EventExec, EventScript:
		return SetProcessExecs
	case EventConnect, EventSendto, EventSendmsg, EventConnectBlocked, EventSendmmsg, EventBind, EventListen:
		return SetNetworkEndpoints
	case EventMountSource:
		return SetNone
	case EventOpenat, EventFileBlocked, EventExecFailed:
		return SetFilesystemPaths
	}
	if EventUnlink <= eventType && eventType <= EventPivotRootOld && eventType != 218 {
		return SetFilesystemPaths
	}
	return SetNone
}
