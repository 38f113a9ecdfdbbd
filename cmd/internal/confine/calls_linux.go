package confine

import "golang.org/x/sys/unix"

// call is one system call by its numbers. None is -1: an architecture without it.
type call struct{ amd64, i386, arm64, arm int }

// numbers of a call on the two architectures that a kernel serves.
func (c call) numbers(goarch string) (native, compat int) {
	if goarch == "arm64" {
		return c.arm64, c.arm
	}
	return c.amd64, c.i386
}

// observing are calls with which a program attacks its observer and its record, and that
// ordinary programs do not need. Debuggers need ptrace, and do not work.
var observing = []call{
	// The observer's own tools: other BPF programs, its maps, its trampolines.
	{321, 357, 280, 386}, // bpf
	{298, 336, 241, 364}, // perf_event_open
	// Work that the kernel does in its own threads, and that old kernels show badly.
	{425, 425, 425, 425}, // io_uring_setup
	{426, 426, 426, 426}, // io_uring_enter
	{427, 427, 427, 427}, // io_uring_register
	// Other processes: their memory, their descriptors, answers given in the kernel's place.
	{101, 26, 117, 26},   // ptrace
	{310, 347, 270, 376}, // process_vm_readv
	{311, 348, 271, 377}, // process_vm_writev
	{438, 438, 438, 438}, // pidfd_getfd
	// Holding up the kernel or the observer in the middle of an access.
	{323, 374, 282, 388}, // userfaultfd
	{300, 338, 262, 367}, // fanotify_init
	// The kernel itself, and its helpers outside of the cgroup.
	{175, 128, 105, 128}, // init_module
	{313, 350, 273, 379}, // finit_module
	{176, 129, 106, 129}, // delete_module
	{246, 283, 104, 347}, // kexec_load
	{320, -1, 294, 401},  // kexec_file_load
	{169, 88, 142, 88},   // reboot
	{172, 110, -1, -1},   // iopl
	{173, 101, -1, -1},   // ioperm
	{163, 51, 89, 51},    // acct
	{167, 87, 224, 87},   // swapon
	{168, 115, 225, 115}, // swapoff
	{248, 286, 217, 309}, // add_key
	{249, 287, 218, 310}, // request_key
	{250, 288, 219, 311}, // keyctl
	// The clocks that times are told by.
	{164, 79, 170, 79},   // settimeofday
	{227, 264, 112, 262}, // clock_settime
	{-1, 404, -1, 404},   // clock_settime64
	{159, 124, 171, 124}, // adjtimex
	{305, 343, 266, 372}, // clock_adjtime
	{-1, 405, -1, 405},   // clock_adjtime64
	{-1, 25, -1, -1},     // stime
}

// boxing are calls that a program in a box has no use for, and with which it could reach the kernel around it.
var boxing = []call{
	{321, 357, 280, 386}, // bpf
	{425, 425, 425, 425}, // io_uring_setup
	{426, 426, 426, 426}, // io_uring_enter
	{427, 427, 427, 427}, // io_uring_register
	{248, 286, 217, 309}, // add_key
	{249, 287, 218, 310}, // request_key
	{250, 288, 219, 311}, // keyctl
}

// signalling are calls whose first argument is the process that they signal.
var signalling = []call{
	{62, 37, 129, 37},    // kill
	{200, 238, 130, 238}, // tkill
	{234, 270, 131, 268}, // tgkill
	{129, 178, 138, 178}, // rt_sigqueueinfo
	{297, 335, 240, 363}, // rt_tgsigqueueinfo
	{434, 434, 434, 434}, // pidfd_open
}

// placing are calls that give files other names or places: mounts, namespaces, and opens
// past all names.
var placing = []call{
	{165, 21, 40, 21},    // mount
	{-1, 22, -1, -1},     // umount
	{166, 52, 39, 52},    // umount2
	{155, 217, 41, 218},  // pivot_root
	{429, 429, 429, 429}, // move_mount
	{428, 428, 428, 428}, // open_tree
	{467, 467, 467, 467}, // open_tree_attr
	{430, 430, 430, 430}, // fsopen
	{431, 431, 431, 431}, // fsconfig
	{432, 432, 432, 432}, // fsmount
	{433, 433, 433, 433}, // fspick
	{442, 442, 442, 442}, // mount_setattr
	callEnter,
	{304, 342, 265, 371}, // open_by_handle_at
}

// The calls that are refused by their arguments.
var (
	callEnter  = call{308, 346, 268, 375} // setns
	callClone  = call{56, 120, 220, 120}  // clone
	callClone3 = call{435, 435, 435, 435} // clone3
	callShare  = call{272, 310, 97, 337}  // unshare
	callLimit  = call{302, 340, 261, 369} // prlimit64
	callIoctl  = call{16, 54, 29, 54}     // ioctl
)

// newNames are the namespaces in which files, cgroups and rights have other names.
const newNames = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWCGROUP

// callSet is what one filter refuses, with EPERM.
type callSet struct {
	calls  []call
	limits bool // prlimit64 of other processes, with which their descriptors or time can be taken
	init   bool // signals to process 1
	typing bool // ioctls that type into a terminal, whose shell then runs it outside
}
