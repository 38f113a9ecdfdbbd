package schemas

// MaxPID is one more than the largest number of a task that Linux gives (PID_MAX_LIMIT, 64 bit).
const MaxPID = 1 << 22

// KernelEvent is one line of layers/kernel.ndjson: assay.runner.kernel_event.v0.
//
// Value is the text as it is in the document (nil is null). Has says which optional
// numbers are present.
type KernelEvent struct {
	Seq       uint64
	PID       uint32
	EventType uint32
	Kind      string // "" is written as KindOf(EventType)
	Value     []byte

	Has         KernelHas
	CgroupID    uint64 // KernelHasCgroupID
	Destination []byte // network_destination; nil is absent
	Port        uint16 // KernelHasPort: network_port
	RuleID      uint32 // KernelHasRuleID
	Flags       uint64 // KernelHasFlags
	Mode        uint64 // KernelHasMode
	Resolve     uint64 // KernelHasResolve; at least 1
	ReturnValue int64  // KernelHasReturn
	AccessMode  string // "" is absent
	Operations  OperationFlags
	Status      string // "" is absent; needs KernelHasReturn, or is StatusUnproven
	Doubt       string // "" is absent
	// ConnectResult is how a connect ended that had not when its call did: 0 or the number of an error, below 0.
	ConnectResult int64 // KernelHasConnectResult
}

// KernelHas says which optional numbers a kernel line carries.
type KernelHas uint16

// The optional numbers of a kernel line.
const (
	KernelHasCgroupID KernelHas = 1 << iota
	KernelHasPort
	KernelHasRuleID
	KernelHasFlags
	KernelHasMode
	KernelHasResolve
	KernelHasReturn
	KernelHasConnectResult
)

// OperationFlags are the hints that operation_flags lists.
type OperationFlags uint8

// The hints, in the order in which they are written.
const (
	OperationCreate OperationFlags = 1 << iota
	OperationTruncate
	OperationAppend
	OperationExclusive
)

var (
	operationNames = [...]string{"create", "truncate", "append", "exclusive"}
	operationBits  = [...]uint64{OpenCreate, OpenTruncate, OpenAppend, OpenExclusive}
)

// Statuses of an operation: its outcome, or that nothing shows that it was done.
const (
	StatusSuccess  = "success"
	StatusError    = "error"
	StatusUnproven = "unproven"
)

// MaxErrno is the largest number of an error that a call returns.
const MaxErrno = 4095

// ConnectInProgress is EINPROGRESS as a connect returns it: neither success nor error yet.
const ConnectInProgress = -115

// Pending reports whether a line is of a connect that had not ended when its call did. One that waits for the first data
// (TCP_FASTOPEN_CONNECT) returns 0, and has no status.
func (e *KernelEvent) Pending() bool {
	return e.EventType == EventConnect && e.Has&KernelHasReturn != 0 && (e.ReturnValue == ConnectInProgress || e.ReturnValue == 0 && e.Status == "")
}

// DoubtChanged says that what the call was given could have changed under it: the value need
// not be what the kernel used.
const DoubtChanged = "changed"

// AccessModes are the values of access_mode, indexed by flags & O_ACCMODE.
var AccessModes = [...]string{"read", "write", "read_write", "unknown"}

// AccessMode is the access that open flags ask for.
func AccessMode(flags uint64) string { return AccessModes[flags&OpenAccess] }

// OperationsOf are the hints in open flags (Linux's generic O_ values).
func OperationsOf(flags uint64) (o OperationFlags) {
	for i, bit := range operationBits {
		if flags&bit != 0 {
			o |= 1 << i
		}
	}
	return o
}

// AppendOperationFlags appends the array of hints: `[]` when there are none.
func AppendOperationFlags(dst []byte, o OperationFlags) []byte {
	dst = append(dst, '[')
	sep := `"`
	for i, name := range operationNames {
		if o&(1<<i) != 0 {
			dst = append(append(append(dst, sep...), name...), '"')
			sep = `,"`
		}
	}
	return append(dst, ']')
}

// Names are the hints as operation_flags lists them.
func (o OperationFlags) Names() (list []string) {
	for i, name := range operationNames {
		if o&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}
