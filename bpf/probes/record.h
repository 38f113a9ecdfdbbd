/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The record that travels through the ring, shared with decode.go. */
#ifndef RUNNER_RECORD_H
#define RUNNER_RECORD_H

#include "helpers.h"

/* Operations. decode.go names them; numbers are private to one build. */
enum op {
	OP_NONE,
	OP_OPEN,
	OP_CREAT,
	OP_OPENAT,
	OP_OPENAT2,
	OP_OPEN_BY_HANDLE_AT,
	OP_IO_URING_OPENAT,
	OP_IO_URING_OPENAT2,
	OP_TIOCGPTPEER,
	OP_EXEC,
	OP_EXECVE,
	OP_EXECVEAT,
	OP_CONNECT,
	OP_SENDTO,
	OP_SENDMSG,
	OP_SENDMMSG,
	OP_BIND,
	OP_LISTEN,
	OP_UNLINK,
	OP_RMDIR,
	OP_RENAME,
	OP_LINK,
	OP_SYMLINK,
	OP_MKDIR,
	OP_TRUNCATE,
	OP_FTRUNCATE,
	OP_CHMOD,
	OP_CHOWN,
	OP_MKNOD,
	OP_MOUNT,
	OP_UMOUNT,
	OP_MOVE_MOUNT,
	OP_PIVOT_ROOT,
	OP_SETXATTR,
	OP_REMOVEXATTR,
	OP_MOUNT_SETATTR,
	OP_OPEN_TREE,
	OP_FSPICK,
	OP_FSCONFIG,
	OP_FSMOUNT,
	OP_MQ_OPEN,
	OP_MQ_UNLINK,
	OP_BPF_OBJ_PIN,
	OP_BPF_OBJ_GET,
	OP_KERNEL_FILE,
	OP_IO_URING_OTHER,
	OP_FORK,
	OP_EXIT,
	OP_MOVE,
	OP_CONNECT_BLOCKED,
	OP_FILE_BLOCKED,
	OP_EXEC_CHECK,
	OP_LOADER,
	OP_CONTEXT,
	OP_CONNECT_END,
	OPS = 64,
};

/* Marks: what the reader must know to trust a path. */
enum mark {
	MARK_UTRUNC = 1 << 0,	  /* user path longer than the buffer */
	MARK_UFAULT = 1 << 1,	  /* user path not readable */
	MARK_PTRUNC = 1 << 2,	  /* resolved path longer than the buffer: the nearest part is kept */
	MARK_PFAULT = 1 << 3,	  /* the file or a dentry could not be read */
	MARK_DELETED = 1 << 4,	  /* the name no longer exists */
	MARK_UNNAMED = 1 << 5,	  /* memfd, pipe, socket, anonymous inode */
	MARK_DISCONN = 1 << 6,	  /* the walk did not reach the mount's root */
	MARK_DETACHED = 1 << 7,	  /* the topmost mount belongs to no namespace, or not to that of the task */
	MARK_FDRACE = 1 << 8,	  /* the descriptor no longer holds the file that the call opened */
	MARK_COMPAT = 1 << 9,	  /* 32-bit caller */
	MARK_AFAULT = 1 << 10,	  /* socket address not readable */
	MARK_CHROOT = 1 << 11,	  /* a leading .. can end at a root that is not the top */
	MARK_CHANGED = 1 << 12,	  /* what the call was given could have changed under it */
	MARK_UNPROVEN = 1 << 13,  /* nothing shows that the call ran */
	MARK_SILENT = 1 << 14,	  /* a request of io_uring that wants no completion on success */
	MARK_UNPAIRED = 1 << 15,  /* the call that the hook ran in has no record of it */
	MARK_HAS_PATH = 1 << 16,  /* comp1 is the resolved object */
	MARK_HAS_BASE1 = 1 << 17, /* comp1 is the directory that upath1 starts from */
	MARK_HAS_BASE2 = 1 << 18, /* comp2 likewise for upath2 */
	MARK_HAS_U1 = 1 << 19,
	MARK_HAS_U2 = 1 << 20,
	MARK_NORET = 1 << 21,	  /* the outcome is not known at this hook */
	MARK_ESCAPE = 1 << 22,	  /* fork or move to a cgroup outside the scope */
	MARK_ARGS = 1 << 23,	  /* flags, mode, resolve are set */
	MARK_MODE = 1 << 24,	  /* mode is set */
	MARK_EINTR = 1 << 25,	  /* only says how the task's last call, of this operation, ended */
	MARK_HAS_PATH2 = 1 << 26, /* comp2 is the resolved object of upath2 */
	MARK_RING = 1 << 27,	  /* the address hook ran for io_uring, not in a system call of the task */
	MARK_SOCKET = 1 << 28,	  /* the address is the socket's own word after the call */
	MARK_HOOKED = 1 << 29,	  /* the kernel shows the address to the hook before it uses it */
	MARK_CONTEXT = 1 << 30,	  /* flags and resolve are the context of the task (context.h) */
	MARK_ROOT = 1U << 31,	  /* after the other names there are ret bytes of its root directory */
};

/* Of these a record says what is wrong with one of its paths. Where it has two, clen1 and clen2 have in their upper half those that are not true
 * of this one: what is wrong with one path is not wrong with the other. */
#define PATH_MARKS (MARK_PTRUNC | MARK_PFAULT | MARK_DISCONN)
#define NOT_OF_PATH 16
#define OF_BASE 16 /* a request keeps the marks of a base there (uringkeep.h) */

INLINE u32 not_of_path(u32 marks)
{
	return (~marks & PATH_MARKS) << NOT_OF_PATH;
}

enum source { SOURCE_NONE, SOURCE_SYSCALL, SOURCE_CGROUP, SOURCE_IO_URING, SOURCE_LSM };

/* What rules refused, in the order of schemas.RawHooks. */
enum {
	HOOK_CONNECT = 1 << 0,
	HOOK_SEND = 1 << 1,
	HOOK_BIND = 1 << 2,
	HOOK_SOCKET = 1 << 3,
	HOOK_READ = 1 << 4,
	HOOK_WRITE = 1 << 5,
	HOOK_CREATE = 1 << 6,
	HOOK_DELETE = 1 << 7,
	HOOK_EXEC = 1 << 8,
	HOOK_MOVE = 1 << 9,
};

#define REC_SIZE 112
#define UPATH_MAX 4096
#define COMP_MAX 16384
_Static_assert(COMP_MAX < 1 << NOT_OF_PATH, "a path's length and what is not true of it are in one number");
#define ADDR_MAX 128
#define ARGS_MAX 8192

/* Little endian, 8-byte aligned. After it, without gaps: the socket address, upath1,
 * comp1, upath2, comp2; of an exec then the root and alen bytes of arguments. Each comp is a list of components, leaf first, each after a
 * byte with its length; a detached tree has an empty one at its top. */
struct rec {
	u32 len;
	u16 op;
	u8 source;
	u8 probe; /* enum slot: whose records seq counts */
	u64 ktime;
	u64 cgid;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u32 args; /* exec: bytes of all arguments, if they were to be read */
	u64 seq;
	s64 ret;
	u64 flags;
	u64 resolve; /* of a context: the mount namespace; fork, exec: pid namespace << 32 | that */
	u32 mode;    /* fork, exec: the number in that pid namespace; 0 in the initial one */
	u32 marks;
	u16 i_mode;
	u16 ulen1;
	u16 ulen2;
	u16 alen;
	u32 clen1;
	u32 clen2;
	u64 aux1; /* exec: old tid; fork: child tgid << 32 | child tid; move: moved tgid << 32 | tid; blocked: hook << 32 | rule; connect: 1 if it is made with the first data */
	u64 aux2; /* fork, move: destination cgroup; exit: wait status; socket calls and connect_end: the socket's cookie; open, exec: 1 if it is one that was interrupted and started over */
};

/* After the first path of a record, before the second one. Returns the marks of the first. */
INLINE u32 begin_second(struct rec *r)
{
	u32 first = r->marks & PATH_MARKS;

	r->marks &= ~(u32)PATH_MARKS;
	return first;
}

/* After the second one. From here on the upper halves of clen1 and clen2 are set. */
INLINE void end_second(struct rec *r, u32 first)
{
	r->clen1 |= not_of_path(first);
	r->clen2 |= not_of_path(r->marks);
	r->marks |= first;
}

_Static_assert(sizeof(struct rec) == REC_SIZE, "record header size");

/* Counters, one slot for each program, so that no two programs change the same one. */
struct counters {
	u64 seen;
	u64 emitted;
	u64 dropped;
	u64 scratch_missing;
	u64 compat_unmapped;
	u64 io_uring_unmapped;
	u64 missed;	  /* events of a probe with copies that no copy saw */
	u64 rings;  /* calls that make and use io_uring */
	u64 foreign; /* network calls of tasks outside, on sockets of the scope */
	u64 shared_arguments; /* calls whose structure or address in memory others could change and change back */
	u64 received;	      /* descriptors that came from other processes */
#ifdef SHARED
	u64 run; /* whose counters these are (run.h) */
#endif
};

/* How many copies of a probe there are where tasks are preempted in probes, and of one that is short or rare. bpf/redundant_linux.go
 * says why. */
#define PROBE_COPIES 6
#define SMALL_COPIES 3

/* Scratch records per CPU. From SCRATCH_ENTER on they are of probes with few copies. */
enum scratch_index { SCRATCH_EXIT, SCRATCH_EXEC, SCRATCH_FORK, SCRATCH_ENTER, SCRATCH_SUBMIT, SCRATCH_COMPLETE, SCRATCH_FAILED, SCRATCHES };

enum slot { SLOT_EXIT, SLOT_EXEC, SLOT_FORK, SLOT_TASK_EXIT, SLOT_MOVE, SLOT_SOCK, SLOT_URING_SUBMIT, SLOT_URING_COMPLETE, SLOT_ENTER, SLOT_RULES, SLOT_FILES, SLOT_DELIVER, SLOT_URING_FAILED, SLOT_RESULT, SLOTS = 16 };

#endif
