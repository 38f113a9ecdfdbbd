package schemas

// What a kernel line says about a tool call, in the words of kernel_effects
// (DERIVATION.md, "Bindings"): a verb, a blank, the value.

var effectVerbs = map[uint32]string{
	EventConnect: "connect", EventExec: "exec", EventScript: "exec", EventExecFailed: "exec",
	EventSendto: "send", EventSendmsg: "send", EventSendmmsg: "send", EventBind: "bind", EventListen: "listen",
	EventFileBlocked: "file_blocked", EventConnectBlocked: "connect_blocked",
	EventUnlink: "unlink", EventRmdir: "rmdir", EventRenameFrom: "rename", EventRenameTo: "rename",
	EventLinkFrom: "link", EventLinkTo: "link", EventSymlink: "symlink", EventMkdir: "mkdir",
	EventTruncate: "truncate", EventChmod: "chmod", EventChown: "chown", EventMknod: "mknod",
	EventMount: "mount", EventMountSource: "mount", EventUmount: "umount",
	EventMoveMountFrom: "move_mount", EventMoveMountTo: "move_mount",
	EventPivotRootNew: "pivot_root", EventPivotRootOld: "pivot_root",
}

// EffectFailed stands in front of the verb of an operation that failed. What was
// refused by a rule has a verb that says so.
const EffectFailed = "failed-"

func refused(event uint32) bool { return event == EventFileBlocked || event == EventConnectBlocked }

// AppendEffect appends the effect of a kernel line. A line without a value has
// none, and dst comes back as it was.
func AppendEffect(dst []byte, e *KernelEvent) []byte {
	if len(e.Value) == 0 {
		return dst
	}
	if e.Status == StatusError && !refused(e.EventType) {
		dst = append(dst, EffectFailed...)
	}
	verb := effectVerbs[e.EventType]
	switch {
	case e.EventType == EventOpenat && (e.AccessMode == "" || e.AccessMode == AccessModes[3]):
		verb = "open"
	case e.EventType == EventOpenat:
		verb = e.AccessMode
	case verb == "":
		verb = KindOf(e.EventType)
	}
	return append(append(append(dst, verb...), ' '), e.Value...)
}
