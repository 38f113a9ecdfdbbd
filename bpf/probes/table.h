/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which system calls are recorded, and where their arguments are. One table for
 * each way of calling: the native one and that of 32-bit programs. */
#ifndef RUNNER_TABLE_H
#define RUNNER_TABLE_H

#include "guard.h"
#include "sysnum.h"

enum class {
	CLASS_NONE,
	CLASS_OPEN,	 /* returns a descriptor */
	CLASS_EXEC,	 /* only its failures come here */
	CLASS_PATH,	 /* one or two paths, or a descriptor */
	CLASS_SOCK,
	CLASS_GUARD,	 /* not recorded: guard.h looks at it */
	CLASS_FORK,	 /* recorded by on_fork; its end only shows whether that ran */
	CLASS_UNMAPPED,	 /* recorded natively, not decoded for 32-bit callers: counted */
	CLASS_SPECIAL,	 /* special.h */
	CLASS_RECEIVE,	 /* not recorded: counts the descriptors that messages bring (received.h) */
	CLASS_CHANGE,	 /* not recorded: changes what other threads' calls are given (changes.h) */
	CLASS_CONTEXT,	 /* changes who and where the task is (context.h) */
};

/* Argument numbers 0 to 5; CWD is the constant AT_FDCWD, NO is absent. */
enum { CWD = 6, NO = 7 };

struct desc {
	u8 op, class, dfd1, path1, dfd2, path2, flags, mode;
};

#define D(op, class, dfd1, path1, dfd2, path2, flags, mode) { OP_##op, CLASS_##class, dfd1, path1, dfd2, path2, flags, mode }
#define G(what) { GUARD_##what, CLASS_GUARD, NO, NO, NO, NO, NO, NO }
#define S(op) D(op, SPECIAL, NO, NO, NO, NO, NO, NO)
/* What such a call changes: the descriptor in its first or second argument, any descriptor, or the root or the working
 * directory. */
enum { CHANGES_FIRST = 1, CHANGES_SECOND, CHANGES_ALL, CHANGES_START };
#define C(what) { CHANGES_##what, CLASS_CHANGE, NO, NO, NO, NO, NO, NO }
#define X D(CONTEXT, CONTEXT, NO, NO, NO, NO, NO, NO)
/* Such a call that changes where names start, for all who share that. */
#define MOVES { OP_CONTEXT, CLASS_CONTEXT, NO, NO, NO, NO, NO, 1 }
/* One whose task can have other directories or descriptors than its rings' workers from then on. */
#define APART { OP_CONTEXT, CLASS_CONTEXT, NO, NO, NO, NO, 1, 1 }
#define CLOSE_RANGE_UNSHARE 2 /* include/uapi/linux/close_range.h: like APART */
#define R { 1, CLASS_RECEIVE, NO, NO, NO, NO, NO, NO }
#define NCALLS 512

/* The calls that every architecture has. */
#define EVERYWHERE(A)                                                        \
	[A##_OPENAT] = D(OPENAT, OPEN, 0, 1, NO, NO, 2, 3),                  \
	[A##_OPENAT2] = D(OPENAT2, OPEN, 0, 1, NO, NO, 2, NO),               \
	[A##_OPEN_BY_HANDLE_AT] = D(OPEN_BY_HANDLE_AT, OPEN, NO, NO, NO, NO, 2, NO), \
	[A##_CLONE] = D(FORK, FORK, NO, NO, NO, NO, NO, NO),                 \
	[A##_CLONE3] = D(FORK, FORK, NO, NO, NO, NO, NO, NO),                \
	[A##_EXECVE] = D(EXECVE, EXEC, CWD, 0, NO, NO, NO, NO),              \
	[A##_EXECVEAT] = D(EXECVEAT, EXEC, 0, 1, NO, NO, 4, NO),             \
	[A##_CONNECT] = D(CONNECT, SOCK, NO, NO, NO, NO, NO, NO),            \
	[A##_SENDTO] = D(SENDTO, SOCK, NO, NO, NO, NO, NO, NO),              \
	[A##_BIND] = D(BIND, SOCK, NO, NO, NO, NO, NO, NO),                  \
	[A##_LISTEN] = D(LISTEN, SOCK, NO, NO, NO, NO, NO, NO),              \
	[A##_UNLINKAT] = D(UNLINK, PATH, 0, 1, NO, NO, 2, NO),               \
	[A##_RENAMEAT] = D(RENAME, PATH, 0, 1, 2, 3, NO, NO),                \
	[A##_RENAMEAT2] = D(RENAME, PATH, 0, 1, 2, 3, 4, NO),                \
	[A##_LINKAT] = D(LINK, PATH, 0, 1, 2, 3, 4, NO),                     \
	[A##_SYMLINKAT] = D(SYMLINK, PATH, 1, 2, NO, 0, NO, NO),             \
	[A##_MKDIRAT] = D(MKDIR, PATH, 0, 1, NO, NO, NO, 2),                 \
	[A##_TRUNCATE] = D(TRUNCATE, PATH, CWD, 0, NO, NO, NO, NO),          \
	[A##_FTRUNCATE] = D(FTRUNCATE, PATH, 0, NO, NO, NO, NO, NO),         \
	[A##_FCHMOD] = D(CHMOD, PATH, 0, NO, NO, NO, NO, 1),                 \
	[A##_FCHMODAT] = D(CHMOD, PATH, 0, 1, NO, NO, NO, 2),                \
	[A##_FCHMODAT2] = D(CHMOD, PATH, 0, 1, NO, NO, 3, 2),                \
	[A##_FCHOWN] = D(CHOWN, PATH, 0, NO, NO, NO, NO, NO),                \
	[A##_FCHOWNAT] = D(CHOWN, PATH, 0, 1, NO, NO, 4, NO),                \
	[A##_MKNODAT] = D(MKNOD, PATH, 0, 1, NO, NO, NO, 2),                 \
	[A##_MOUNT] = D(MOUNT, PATH, CWD, 1, NO, 0, 3, NO),                  \
	[A##_UMOUNT2] = D(UMOUNT, PATH, CWD, 0, NO, NO, 1, NO),              \
	[A##_MOVE_MOUNT] = D(MOVE_MOUNT, PATH, 0, 1, 2, 3, 4, NO),           \
	[A##_PIVOT_ROOT] = D(PIVOT_ROOT, PATH, CWD, 0, CWD, 1, NO, NO),      \
	[A##_SETXATTR] = D(SETXATTR, PATH, CWD, 0, NO, 1, NO, NO),           \
	[A##_LSETXATTR] = D(SETXATTR, PATH, CWD, 0, NO, 1, NO, NO),          \
	[A##_FSETXATTR] = D(SETXATTR, PATH, 0, NO, NO, 1, NO, NO),           \
	[A##_SETXATTRAT] = D(SETXATTR, PATH, 0, 1, NO, 3, 2, NO),            \
	[A##_REMOVEXATTR] = D(REMOVEXATTR, PATH, CWD, 0, NO, 1, NO, NO),     \
	[A##_LREMOVEXATTR] = D(REMOVEXATTR, PATH, CWD, 0, NO, 1, NO, NO),    \
	[A##_FREMOVEXATTR] = D(REMOVEXATTR, PATH, 0, NO, NO, 1, NO, NO),     \
	[A##_REMOVEXATTRAT] = D(REMOVEXATTR, PATH, 0, 1, NO, 3, 2, NO),      \
	[A##_MOUNT_SETATTR] = D(MOUNT_SETATTR, PATH, 0, 1, NO, NO, 2, NO),   \
	[A##_OPEN_TREE] = D(OPEN_TREE, PATH, 0, 1, NO, NO, 2, NO),           \
	[A##_OPEN_TREE_ATTR] = D(OPEN_TREE, PATH, 0, 1, NO, NO, 2, 3),       \
	[A##_FSPICK] = D(FSPICK, PATH, 0, 1, NO, NO, 2, NO),                 \
	[A##_FSCONFIG] = S(FSCONFIG),                                        \
	[A##_FSMOUNT] = S(FSMOUNT),                                          \
	[A##_MQ_OPEN] = S(MQ_OPEN),                                          \
	[A##_MQ_UNLINK] = S(MQ_UNLINK),                                      \
	[A##_ACCT] = S(KERNEL_FILE),                                         \
	[A##_SWAPON] = S(KERNEL_FILE),                                       \
	[A##_SWAPOFF] = S(KERNEL_FILE),                                      \
	[A##_IOCTL] = S(TIOCGPTPEER),                                        \
	[A##_BPF] = S(BPF_OBJ_PIN),                                          \
	[A##_CLOSE] = C(FIRST),                                              \
	[A##_DUP3] = C(SECOND),                                              \
	[A##_CLOSE_RANGE] = C(ALL),                                          \
	[A##_CHDIR] = C(START),                                              \
	[A##_FCHDIR] = C(START),                                             \
	[A##_CHROOT] = MOVES,                                                \
	[A##_UNSHARE] = APART,                                                 \
	[A##_SETNS] = APART,                                                   \
	[A##_SETUID] = X,                                                    \
	[A##_SETGID] = X,                                                    \
	[A##_SETREUID] = X,                                                  \
	[A##_SETREGID] = X,                                                  \
	[A##_SETRESUID] = X,                                                 \
	[A##_SETRESGID] = X,                                                 \
	[A##_IO_URING_SETUP] = G(RING),                                      \
	[A##_IO_URING_ENTER] = G(RING),                                      \
	[A##_PTRACE] = G(PTRACE),                                            \
	[A##_FANOTIFY_INIT] = G(FANOTIFY),                                   \
	[A##_IO_SETUP] = G(MEMORY),                                          \
	[A##_USERFAULTFD] = G(MEMORY),                                       \
	[A##_PROCESS_VM_WRITEV] = G(WRITEV),                                 \
	[A##_PIDFD_GETFD] = G(GETFD),                                        \
	[A##_INIT_MODULE] = G(KERNEL),                                       \
	[A##_FINIT_MODULE] = G(KERNEL),                                      \
	[A##_KEXEC_LOAD] = G(KERNEL)

/* Path calls without a directory argument, and others that newer architectures lack. */
#define OLD_CALLS(A)                                                         \
	[A##_OPEN] = D(OPEN, OPEN, CWD, 0, NO, NO, 1, 2),                    \
	[A##_CREAT] = D(CREAT, OPEN, CWD, 0, NO, NO, NO, 1),                 \
	[A##_FORK] = D(FORK, FORK, NO, NO, NO, NO, NO, NO),                  \
	[A##_VFORK] = D(FORK, FORK, NO, NO, NO, NO, NO, NO),                 \
	[A##_UNLINK] = D(UNLINK, PATH, CWD, 0, NO, NO, NO, NO),              \
	[A##_RMDIR] = D(RMDIR, PATH, CWD, 0, NO, NO, NO, NO),                \
	[A##_RENAME] = D(RENAME, PATH, CWD, 0, CWD, 1, NO, NO),              \
	[A##_LINK] = D(LINK, PATH, CWD, 0, CWD, 1, NO, NO),                  \
	[A##_SYMLINK] = D(SYMLINK, PATH, CWD, 1, NO, 0, NO, NO),             \
	[A##_MKDIR] = D(MKDIR, PATH, CWD, 0, NO, NO, NO, 1),                 \
	[A##_CHMOD] = D(CHMOD, PATH, CWD, 0, NO, NO, NO, 1),                 \
	[A##_CHOWN] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),                \
	[A##_LCHOWN] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),               \
	[A##_MKNOD] = D(MKNOD, PATH, CWD, 0, NO, NO, NO, 1),                 \
	[A##_DUP2] = C(SECOND)

/* Further calls of 32-bit programs. Their structures of sendmsg and sendmmsg differ. */
#define CALLS_OF_32_BITS(A)                                                  \
	[A##_CHOWN32] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),              \
	[A##_SETUID32] = X,                                                  \
	[A##_SETGID32] = X,                                                  \
	[A##_SETREUID32] = X,                                                \
	[A##_SETREGID32] = X,                                                \
	[A##_SETRESUID32] = X,                                               \
	[A##_SETRESGID32] = X,                                               \
	[A##_LCHOWN32] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),             \
	[A##_FCHOWN32] = D(CHOWN, PATH, 0, NO, NO, NO, NO, NO),              \
	[A##_TRUNCATE64] = D(TRUNCATE, PATH, CWD, 0, NO, NO, NO, NO),        \
	[A##_FTRUNCATE64] = D(FTRUNCATE, PATH, 0, NO, NO, NO, NO, NO),       \
	[A##_RECVMSG] = R,                                                   \
	[A##_RECVMMSG] = R,                                                  \
	[A##_RECVMMSG_TIME64] = R,                                           \
	[A##_SENDMSG] = D(SENDMSG, UNMAPPED, NO, NO, NO, NO, NO, NO),        \
	[A##_SENDMMSG] = D(SENDMMSG, UNMAPPED, NO, NO, NO, NO, NO, NO)

#define CALLS_OF_64_BITS(A)                                                  \
	[A##_SENDMSG] = D(SENDMSG, SOCK, NO, NO, NO, NO, NO, NO),            \
	[A##_SENDMMSG] = D(SENDMMSG, SOCK, NO, NO, NO, NO, NO, NO),          \
	[A##_RECVMSG] = R,                                                   \
	[A##_RECVMMSG] = R,                                                  \
	[A##_KEXEC_FILE_LOAD] = G(KERNEL)

/* Both are in one array, native calls first: a verifier follows what is done with a row of each of two arrays twice. */
enum { NATIVE, COMPAT };

static const struct desc calls[2][NCALLS] = {
#if defined(__TARGET_ARCH_x86)
	[NATIVE] = {
		EVERYWHERE(X86_64),
		OLD_CALLS(X86_64),
		CALLS_OF_64_BITS(X86_64),
		[X86_64_IOPL] = G(KERNEL),
		[X86_64_IOPERM] = G(KERNEL),
	},
	[COMPAT] = {
		EVERYWHERE(I386),
		OLD_CALLS(I386),
		CALLS_OF_32_BITS(I386),
		[I386_SOCKETCALL] = D(CONNECT, UNMAPPED, NO, NO, NO, NO, NO, NO),
		[I386_UMOUNT] = D(UMOUNT, PATH, CWD, 0, NO, NO, NO, NO),
		[I386_IOPL] = G(KERNEL),
		[I386_IOPERM] = G(KERNEL),
	},
#elif defined(__TARGET_ARCH_arm64)
	[NATIVE] = {
		EVERYWHERE(ARM64),
		CALLS_OF_64_BITS(ARM64),
	},
	[COMPAT] = {
		EVERYWHERE(ARM),
		OLD_CALLS(ARM),
		CALLS_OF_32_BITS(ARM),
		[ARM_KEXEC_FILE_LOAD] = G(KERNEL),
	},
#endif
};

/* Does a call of CLASS_CHANGE do it at once? */
INLINE bool is_at_once(const struct desc *d)
{
	return d->class == CLASS_CHANGE && d->op == CHANGES_FIRST;
}

/* Does a call change what others have, at any time until it ends? */
INLINE bool changes_later(const struct desc *d)
{
	return (d->class == CLASS_CHANGE && d->op != CHANGES_FIRST) || (d->class == CLASS_CONTEXT && d->mode != NO);
}

#endif
