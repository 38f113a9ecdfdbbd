package schemas

// CallTable are all system calls of x86-64, of 32-bit x86, of arm64 and of 32-bit ARM, all io_uring
// operations, and the ioctls that yield a descriptor or name a file. Tests compare it with the
// kernel's own lists: a call that a new kernel has needs an entry here, and, if it does something
// that the README's list of what is recorded covers, an operation.
var CallTable = [...]CallCoverage{
	{Op: OpOpen, Calls: "open"},
	{Op: OpCreat, Calls: "creat"},
	{Op: OpOpenat, Calls: "openat"},
	{Op: OpOpenat2, Calls: "openat2"},
	{Op: OpOpenByHandleAt, Calls: OpOpenByHandleAt},
	{Op: OpIOUringOpenat, Opcodes: "OPENAT"},
	{Op: OpIOUringOpenat2, Opcodes: "OPENAT2"},
	{Op: OpExecve, Calls: "execve"},
	{Op: OpExecveat, Calls: "execveat"},
	{Op: OpExecCheck, Calls: "execveat"},
	{Op: OpConnect, Calls: "connect", Opcodes: "CONNECT"},
	{Op: OpSendto, Calls: "sendto", Opcodes: "SEND SEND_ZC"},
	{Op: OpSendmsg, Calls: "sendmsg", Opcodes: "SENDMSG SENDMSG_ZC"},
	{Op: OpSendmmsg, Calls: "sendmmsg"},
	{Op: OpBind, Calls: "bind", Opcodes: "BIND"},
	{Op: OpListen, Calls: "listen", Opcodes: "LISTEN"},
	{Op: OpUnlink, Calls: "unlink unlinkat", Opcodes: "UNLINKAT"},
	{Op: OpRmdir, Calls: "rmdir unlinkat", Opcodes: "UNLINKAT"},
	{Op: OpRename, Calls: "rename renameat renameat2", Opcodes: "RENAMEAT"},
	{Op: OpLink, Calls: "link linkat", Opcodes: "LINKAT"},
	{Op: OpSymlink, Calls: "symlink symlinkat", Opcodes: "SYMLINKAT"},
	{Op: OpMkdir, Calls: "mkdir mkdirat", Opcodes: "MKDIRAT"},
	{Op: OpTruncate, Calls: "truncate"},
	{Op: OpFtruncate, Calls: "ftruncate", Opcodes: "FTRUNCATE"},
	{Op: OpChmod, Calls: "chmod fchmod fchmodat fchmodat2"},
	{Op: OpChown, Calls: "chown lchown fchown fchownat"},
	{Op: OpMknod, Calls: "mknod mknodat"},
	{Op: OpMount, Calls: "mount"},
	{Op: OpUmount, Calls: "umount umount2"},
	{Op: OpMoveMount, Calls: OpMoveMount},
	{Op: OpPivotRoot, Calls: OpPivotRoot},
	{Op: OpSetxattr, Calls: "setxattr lsetxattr fsetxattr setxattrat", Opcodes: "SETXATTR FSETXATTR"},
	{Op: OpRemovexattr, Calls: "removexattr lremovexattr fremovexattr removexattrat"},
	{Op: OpOpenTree, Calls: "open_tree open_tree_attr"},
	{Op: OpMountSetattr, Calls: "mount_setattr open_tree_attr"},
	{Op: OpFspick, Calls: "fspick"},
	{Op: OpFsconfig, Calls: "fsconfig"},
	{Op: OpFsmount, Calls: "fsmount"},
	{Op: OpMqOpen, Calls: OpMqOpen},
	{Op: OpMqUnlink, Calls: OpMqUnlink},
	{Op: OpBPFObjPin, Calls: "bpf", Ioctls: "BPF_OBJ_PIN"},
	{Op: OpBPFObjGet, Calls: "bpf", Ioctls: "BPF_OBJ_GET"},
	{Op: OpTiocgptpeer, Calls: "ioctl", Ioctls: "TIOCGPTPEER"},
	{Op: OpKernelFile, Calls: "acct swapon swapoff"},
	{Op: OpFork, Calls: "fork vfork clone clone3"},
	{Op: OpExit, Calls: "exit exit_group"},
	{Op: OpContext, Calls: "chroot unshare setns setuid setgid setreuid setregid setresuid setresgid"},

	{Blind: BlindReceived, Why: "by SCM_RIGHTS, pidfd_getfd, a seccomp listener, the events of fanotify, from ring to ring",
		Calls:   "recvmsg recvmmsg pidfd_getfd fanotify_init",
		Opcodes: "RECVMSG MSG_RING FIXED_FD_INSTALL",
		Ioctls:  "SECCOMP_IOCTL_NOTIF_ADDFD"},
	{Blind: BlindMemory, Why: "of System V, of other processes, and what its users pass each other in it",
		Calls: "shmget shmat shmctl shmdt msgget msgsnd msgrcv msgctl semget semop semtimedop semctl ipc process_vm_readv"},
	{Blind: BlindPeers, Calls: "send"},
	{Blind: BlindAccepted, Calls: "accept accept4 recvfrom recv", Opcodes: "ACCEPT RECV RECV_ZC"},
	{Blind: BlindContents, Why: "also maps of files, allocation of their blocks, lists of directories, messages of queues",
		Calls: "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 preadv64v2 pwritev64v2 sendfile splice tee vmsplice copy_file_range fallocate " +
			"mmap mmap2 mmap_pgoff remap_file_pages io_submit getdents readdir mq_timedsend mq_timedreceive",
		Opcodes: "READV WRITEV READ_FIXED WRITE_FIXED FALLOCATE READ WRITE SPLICE TEE READ_MULTISHOT READV_FIXED WRITEV_FIXED",
		Ioctls:  "FICLONE FICLONERANGE FIDEDUPERANGE BTRFS_IOC_ENCODED_WRITE"},
	{Blind: BlindAttrs, Why: "no name, mode, owner or size",
		Calls:  "utime utimes futimesat utimensat file_setattr",
		Ioctls: "FS_IOC_SETFLAGS FS_IOC_FSSETXATTR FS_IOC_SETVERSION FS_IOC_ENABLE_VERITY FAT_IOCTL_SET_ATTRIBUTES"},
	{Blind: BlindLooks, Why: "whether they are there, what they are, where a process begins to look; without an open",
		Calls: "access faccessat faccessat2 stat lstat fstat newfstatat fstatat64 statx statfs fstatfs ustat readlink readlinkat getcwd chdir fchdir fchroot " +
			"getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat file_getattr name_to_handle_at inotify_add_watch fanotify_mark " +
			"statmount listmount listns landlock_add_rule",
		Opcodes: "STATX GETXATTR FGETXATTR"},
	{Blind: BlindIoctls, Why: "names of subvolumes, files behind devices, in quotas and options of mounts, descriptors of what has no name, peers of SCTP",
		Calls:   "setsockopt quotactl quotactl_fd uselib",
		Opcodes: "URING_CMD URING_CMD128",
		Ioctls: "BTRFS_IOC_SUBVOL_CREATE BTRFS_IOC_SNAP_CREATE BTRFS_IOC_SNAP_DESTROY LOOP_SET_FD LOOP_CONFIGURE LOOP_CHANGE_FD DM_DEV_CREATE DM_TABLE_LOAD " +
			"AUTOFS_DEV_IOCTL_OPENMOUNT NS_GET_USERNS NS_GET_PARENT NS_MNT_GET_NEXT PIDFD_GET_MNT_NAMESPACE KVM_CREATE_VM KVM_CREATE_VCPU KVM_CREATE_DEVICE " +
			"DMA_HEAP_IOCTL_ALLOC DRM_IOCTL_PRIME_HANDLE_TO_FD SIOCGSKNS TUNSETIFF VHOST_SET_VRING_KICK USERFAULTFD_IOC_NEW FS_IOC_OPEN_BY_HANDLE NBD_SET_SOCK " +
			"SCTP_SOCKOPT_CONNECTX SCTP_SOCKOPT_BINDX_ADD"},
	{Blind: BlindOutside, Why: "of programs and of the kernel's helpers, which a request for a key starts",
		Calls: "request_key keyctl add_key"},

	{Why: "counted under `" + CounterCompatUnmapped + "`, as sendmsg and sendmmsg of 32-bit programs and all x32 calls are", Calls: "socketcall"},
	{Why: "no name and no peer; an alarm where they reach the measurement or the kernel",
		Calls: "ptrace process_vm_writev iopl ioperm init_module finit_module kexec_load kexec_file_load"},
	{Why: "make an object without a name",
		Calls: "fsopen pipe pipe2 socket socketpair eventfd eventfd2 epoll_create epoll_create1 timerfd_create signalfd signalfd4 inotify_init inotify_init1 " +
			"memfd_create memfd_secret userfaultfd perf_event_open pidfd_open landlock_create_ruleset io_uring_setup io_setup dup dup2 dup3 fcntl spu_create",
		Opcodes: "SOCKET PIPE"},
	{Why: "no kernel that can be observed has them",
		Calls: "afs_syscall arch_specific_syscall bdflush break create_module epoll_ctl_old epoll_wait_old ftime get_kernel_syms getpmsg gtty idle lock lookup_dcookie mpx nfsservctl " +
			"pciconfig_iobase pciconfig_read pciconfig_write prof profil putpmsg query_module rtas s390_ipc s390_pci_mmio_read s390_pci_mmio_write security spu_run " +
			"stty subpage_prot _sysctl syscall_mask sysfs tuxcall ulimit vserver ni_syscall"},
	{Why: "no file, no name, no peer: of the process itself, its memory, rights and time, of what it has open already, or of the whole machine",
		Calls: "adjtimex alarm arch_prctl brk cachestat capget capset clock_adjtime clock_getres clock_gettime clock_nanosleep clock_settime close close_range " +
			"delete_module epoll_ctl epoll_pwait epoll_pwait2 epoll_wait fadvise64 fadvise64_64 fdatasync flock fsync futex futex_requeue futex_wait futex_waitv futex_wake " +
			"get_mempolicy get_robust_list get_thread_area getcpu getegid geteuid getgid getgroups gethostname getitimer getpeername getpgid getpgrp getpid getppid getpriority " +
			"getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid inotify_rm_watch io_cancel io_destroy io_getevents " +
			"io_pgetevents io_uring_enter io_uring_register ioprio_get ioprio_set kcmp kill landlock_restrict_self llseek lseek lsm_get_self_attr lsm_list_modules " +
			"lsm_set_self_attr madvise map_shadow_stack mbind membarrier migrate_pages mincore mlock mlock2 mlockall modify_ldt move_pages mprotect mq_getsetattr mq_notify mremap " +
			"mseal msync munlock munlockall munmap nanosleep nice pause personality pidfd_send_signal pkey_alloc pkey_free pkey_mprotect poll ppoll prctl prlimit64 " +
			"process_madvise process_mrelease pselect6 readahead reboot restart_syscall rseq rseq_slice_yield rt_sigaction rt_sigpending rt_sigprocmask " +
			"rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr " +
			"sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select " +
			"set_mempolicy set_mempolicy_home_node set_robust_list set_thread_area set_tid_address setdomainname setfsgid setfsuid setgroups sethostname setitimer " +
			"setpgid setpriority setrlimit setsid settimeofday sgetmask shutdown sigaction sigaltstack signal sigpending sigprocmask " +
			"sigreturn sigsuspend ssetmask stime sync sync_file_range sync_file_range2 syncfs sysinfo syslog tgkill time timer_create timer_delete timer_getoverrun " +
			"timer_gettime timer_settime timerfd_gettime timerfd_settime times tkill ugetrlimit umask uname uprobe uretprobe vhangup vm86 vm86old wait4 waitid waitpid",
		Opcodes: "NOP FSYNC POLL_ADD POLL_REMOVE SYNC_FILE_RANGE TIMEOUT TIMEOUT_REMOVE ASYNC_CANCEL LINK_TIMEOUT CLOSE FILES_UPDATE FADVISE MADVISE EPOLL_CTL EPOLL_WAIT " +
			"PROVIDE_BUFFERS REMOVE_BUFFERS SHUTDOWN WAITID FUTEX_WAIT FUTEX_WAKE FUTEX_WAITV NOP128"},
}
