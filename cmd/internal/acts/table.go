package acts

import "github.com/runner-evidence/runner/schemas"

// Group is the heading under which people look for an act.
type Group uint8

// Groups, in the order in which they are shown.
const (
	Executed Group = iota
	Wrote
	Created
	Renamed
	Removed
	Changed
	Reached
	Listened
	Bound
	Read
	Other
	Groups = int(Other) + 1
)

// Words name the groups on a screen, what is in them, and what one of it is called.
var Words = [Groups]struct{ Group, Thing string }{
	Executed: {"executed", "program"},
	Wrote:    {"wrote", "file"},
	Created:  {"created", "name"},
	Renamed:  {"renamed", "name"},
	Removed:  {"removed", "name"},
	Changed:  {"changed", "file"},
	Read:     {"read", "file"},
	Reached:  {"reached", "peer"},
	Listened: {"listened", "address"},
	Bound:    {"bound", "address"},
	Other:    {"other", "object"},
}

// Names of what a value of an act is.
const (
	keyPath     = "path"
	keyEndpoint = "endpoint"
	keyName     = "name"

	keyNew    = "new_path"
	keyScript = "script"
	keySource = "source"
	keyOld    = "old_path"
	keyAttr   = "attribute"
)

// Names of operations that the table of raw operations has under several names.
const (
	opOpen    = schemas.OpOpen
	opExec    = schemas.OpExec
	opUnknown = "unknown"
)

// form says what the kernel lines of one event type are. Second is the type of the line that
// belongs to it and comes right after it; 0 is none.
type form struct {
	first, second uint32
	op            string
	key, key2     string // what the values of the lines are
	group         Group
	write         bool // it changes files or names; of opens, their access mode says so
}

var table = [...]form{
	{first: schemas.EventOpenat, op: opOpen, key: keyPath, group: Read},
	{first: schemas.EventExec, second: schemas.EventScript, op: opExec, key: keyPath, key2: keyScript, group: Executed},
	{first: schemas.EventLoader, op: schemas.OpLoader, key: keyPath, group: Executed},
	{first: schemas.EventExecFailed, op: opExec, key: keyPath, group: Executed},
	{first: schemas.EventExecCheck, op: schemas.OpExecCheck, key: keyPath, group: Other},
	{first: schemas.EventConnect, op: schemas.OpConnect, key: keyEndpoint, group: Reached},
	{first: schemas.EventSendto, op: schemas.OpSendto, key: keyEndpoint, group: Reached},
	{first: schemas.EventSendmsg, op: schemas.OpSendmsg, key: keyEndpoint, group: Reached},
	{first: schemas.EventSendmmsg, op: schemas.OpSendmmsg, key: keyEndpoint, group: Reached},
	{first: schemas.EventBind, op: schemas.OpBind, key: keyEndpoint, group: Bound},
	{first: schemas.EventListen, op: schemas.OpListen, key: keyEndpoint, group: Listened},
	{first: schemas.EventConnectBlocked, op: schemas.OpConnectBlocked, key: keyEndpoint, group: Reached},
	{first: schemas.EventFileBlocked, op: schemas.OpFileBlocked, key: keyPath, group: Other},
	{first: schemas.EventUnlink, op: schemas.OpUnlink, key: keyPath, group: Removed, write: true},
	{first: schemas.EventRmdir, op: schemas.OpRmdir, key: keyPath, group: Removed, write: true},
	{first: schemas.EventRenameFrom, second: schemas.EventRenameTo, op: schemas.OpRename, key: keyPath, key2: keyNew, group: Renamed, write: true},
	{first: schemas.EventLinkFrom, second: schemas.EventLinkTo, op: schemas.OpLink, key: keyPath, key2: keyNew, group: Created, write: true},
	{first: schemas.EventSymlink, op: schemas.OpSymlink, key: keyPath, group: Created, write: true},
	{first: schemas.EventMkdir, op: schemas.OpMkdir, key: keyPath, group: Created, write: true},
	{first: schemas.EventMknod, op: schemas.OpMknod, key: keyPath, group: Created, write: true},
	{first: schemas.EventTruncate, op: schemas.OpTruncate, key: keyPath, group: Wrote, write: true},
	{first: schemas.EventChmod, op: schemas.OpChmod, key: keyPath, group: Changed, write: true},
	{first: schemas.EventChown, op: schemas.OpChown, key: keyPath, group: Changed, write: true},
	{first: schemas.EventSetxattr, second: schemas.EventXattrName, op: schemas.OpSetxattr, key: keyPath, key2: keyAttr, group: Changed, write: true},
	{first: schemas.EventRemovexattr, second: schemas.EventXattrName, op: schemas.OpRemovexattr, key: keyPath, key2: keyAttr, group: Changed, write: true},
	{first: schemas.EventMount, second: schemas.EventMountSource, op: schemas.OpMount, key: keyPath, key2: keySource, group: Other},
	{first: schemas.EventUmount, op: schemas.OpUmount, key: keyPath, group: Other},
	{first: schemas.EventMoveMountFrom, second: schemas.EventMoveMountTo, op: schemas.OpMoveMount, key: keyPath, key2: keyNew, group: Other},
	{first: schemas.EventPivotRootNew, second: schemas.EventPivotRootOld, op: schemas.OpPivotRoot, key: keyPath, key2: keyOld, group: Other},
	{first: schemas.EventMountSetattr, op: schemas.OpMountSetattr, key: keyPath, group: Other},
	{first: schemas.EventOpenTree, op: schemas.OpOpenTree, key: keyPath, group: Other},
	{first: schemas.EventFspick, op: schemas.OpFspick, key: keyPath, group: Other},
	{first: schemas.EventFsconfig, op: schemas.OpFsconfig, key: keyName, group: Other},
	{first: schemas.EventFsmount, op: schemas.OpFsmount, key: keyName, group: Other},
	{first: schemas.EventMqOpen, op: schemas.OpMqOpen, key: keyName, group: Other},
	{first: schemas.EventMqUnlink, op: schemas.OpMqUnlink, key: keyName, group: Removed},
	{first: schemas.EventBPFObjPin, op: schemas.OpBPFObjPin, key: keyPath, group: Created, write: true},
	{first: schemas.EventBPFObjGet, op: schemas.OpBPFObjGet, key: keyPath, group: Other},
	{first: schemas.EventKernelFile, op: schemas.OpKernelFile, key: keyPath, group: Other, write: true},
	{first: schemas.EventIOUringOther, op: schemas.OpIOUringOther, key: keyName, group: Other},
}

// forms by the type of the first line, and of a second line that is alone.
var firsts, seconds = func() (first, second map[uint32]*form) {
	first, second = map[uint32]*form{}, map[uint32]*form{}
	for i := range table {
		first[table[i].first] = &table[i]
		if s := table[i].second; s != 0 {
			second[s] = &table[i]
		}
	}
	return first, second
}()

// unknown is the form of an event type of another implementation.
var unknown = form{op: opUnknown, key: keyName, group: Other}
