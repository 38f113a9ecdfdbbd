/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which syscalls are recorded, and where their arguments stand. One table per
 * way of calling: the native one and, on x86-64, int 0x80. */
#ifndef RUNNER_TABLE_H
#define RUNNER_TABLE_H

#include "record.h"

enum class {
	CLASS_NONE,
	CLASS_OPEN,	 /* returns a descriptor */
	CLASS_EXEC,	 /* only its failures come here */
	CLASS_PATH,	 /* one or two paths, or a descriptor */
	CLASS_SOCK,
	CLASS_UNMAPPED,	 /* recorded natively, not decoded for 32-bit callers: counted */
};

/* Argument numbers 0 to 5; CWD is the constant AT_FDCWD, NO is absent. */
enum { CWD = 6, NO = 7 };

struct desc {
	u8 op, class, dfd1, path1, dfd2, path2, flags, mode;
};

#define D(op, class, dfd1, path1, dfd2, path2, flags, mode) { OP_##op, CLASS_##class, dfd1, path1, dfd2, path2, flags, mode }
#define NCALLS 512

#if defined(__TARGET_ARCH_x86)
static const struct desc native[NCALLS] = {
	[2] = D(OPEN, OPEN, CWD, 0, NO, NO, 1, 2),
	[85] = D(CREAT, OPEN, CWD, 0, NO, NO, NO, 1),
	[257] = D(OPENAT, OPEN, 0, 1, NO, NO, 2, 3),
	[437] = D(OPENAT2, OPEN, 0, 1, NO, NO, 2, NO),
	[304] = D(OPEN_BY_HANDLE_AT, OPEN, NO, NO, NO, NO, 2, NO),
	[59] = D(EXECVE, EXEC, CWD, 0, NO, NO, NO, NO),
	[322] = D(EXECVEAT, EXEC, 0, 1, NO, NO, 4, NO),
	[42] = D(CONNECT, SOCK, NO, NO, NO, NO, NO, NO),
	[44] = D(SENDTO, SOCK, NO, NO, NO, NO, NO, NO),
	[46] = D(SENDMSG, SOCK, NO, NO, NO, NO, NO, NO),
	[307] = D(SENDMMSG, SOCK, NO, NO, NO, NO, NO, NO),
	[49] = D(BIND, SOCK, NO, NO, NO, NO, NO, NO),
	[50] = D(LISTEN, SOCK, NO, NO, NO, NO, NO, NO),
	[87] = D(UNLINK, PATH, CWD, 0, NO, NO, NO, NO),
	[263] = D(UNLINK, PATH, 0, 1, NO, NO, 2, NO),
	[84] = D(RMDIR, PATH, CWD, 0, NO, NO, NO, NO),
	[82] = D(RENAME, PATH, CWD, 0, CWD, 1, NO, NO),
	[264] = D(RENAME, PATH, 0, 1, 2, 3, NO, NO),
	[316] = D(RENAME, PATH, 0, 1, 2, 3, 4, NO),
	[86] = D(LINK, PATH, CWD, 0, CWD, 1, NO, NO),
	[265] = D(LINK, PATH, 0, 1, 2, 3, 4, NO),
	[88] = D(SYMLINK, PATH, CWD, 1, NO, 0, NO, NO),
	[266] = D(SYMLINK, PATH, 1, 2, NO, 0, NO, NO),
	[83] = D(MKDIR, PATH, CWD, 0, NO, NO, NO, 1),
	[258] = D(MKDIR, PATH, 0, 1, NO, NO, NO, 2),
	[76] = D(TRUNCATE, PATH, CWD, 0, NO, NO, NO, NO),
	[77] = D(FTRUNCATE, PATH, 0, NO, NO, NO, NO, NO),
	[90] = D(CHMOD, PATH, CWD, 0, NO, NO, NO, 1),
	[91] = D(CHMOD, PATH, 0, NO, NO, NO, NO, 1),
	[268] = D(CHMOD, PATH, 0, 1, NO, NO, NO, 2),
	[452] = D(CHMOD, PATH, 0, 1, NO, NO, 3, 2),
	[92] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),
	[94] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),
	[93] = D(CHOWN, PATH, 0, NO, NO, NO, NO, NO),
	[260] = D(CHOWN, PATH, 0, 1, NO, NO, 4, NO),
	[133] = D(MKNOD, PATH, CWD, 0, NO, NO, NO, 1),
	[259] = D(MKNOD, PATH, 0, 1, NO, NO, NO, 2),
	[165] = D(MOUNT, PATH, CWD, 1, NO, 0, 3, NO),
	[166] = D(UMOUNT, PATH, CWD, 0, NO, NO, 1, NO),
	[429] = D(MOVE_MOUNT, PATH, 0, 1, 2, 3, 4, NO),
	[155] = D(PIVOT_ROOT, PATH, CWD, 0, CWD, 1, NO, NO),
};

/* arch/x86/entry/syscalls/syscall_32.tbl; sendmsg, sendmmsg and socketcall have
 * other structures there. */
static const struct desc compat[NCALLS] = {
	[5] = D(OPEN, OPEN, CWD, 0, NO, NO, 1, 2),
	[8] = D(CREAT, OPEN, CWD, 0, NO, NO, NO, 1),
	[295] = D(OPENAT, OPEN, 0, 1, NO, NO, 2, 3),
	[437] = D(OPENAT2, OPEN, 0, 1, NO, NO, 2, NO),
	[342] = D(OPEN_BY_HANDLE_AT, OPEN, NO, NO, NO, NO, 2, NO),
	[11] = D(EXECVE, EXEC, CWD, 0, NO, NO, NO, NO),
	[358] = D(EXECVEAT, EXEC, 0, 1, NO, NO, 4, NO),
	[362] = D(CONNECT, SOCK, NO, NO, NO, NO, NO, NO),
	[369] = D(SENDTO, SOCK, NO, NO, NO, NO, NO, NO),
	[361] = D(BIND, SOCK, NO, NO, NO, NO, NO, NO),
	[363] = D(LISTEN, SOCK, NO, NO, NO, NO, NO, NO),
	[370] = D(SENDMSG, UNMAPPED, NO, NO, NO, NO, NO, NO),
	[345] = D(SENDMMSG, UNMAPPED, NO, NO, NO, NO, NO, NO),
	[102] = D(CONNECT, UNMAPPED, NO, NO, NO, NO, NO, NO),
	[10] = D(UNLINK, PATH, CWD, 0, NO, NO, NO, NO),
	[301] = D(UNLINK, PATH, 0, 1, NO, NO, 2, NO),
	[40] = D(RMDIR, PATH, CWD, 0, NO, NO, NO, NO),
	[38] = D(RENAME, PATH, CWD, 0, CWD, 1, NO, NO),
	[302] = D(RENAME, PATH, 0, 1, 2, 3, NO, NO),
	[353] = D(RENAME, PATH, 0, 1, 2, 3, 4, NO),
	[9] = D(LINK, PATH, CWD, 0, CWD, 1, NO, NO),
	[303] = D(LINK, PATH, 0, 1, 2, 3, 4, NO),
	[83] = D(SYMLINK, PATH, CWD, 1, NO, 0, NO, NO),
	[304] = D(SYMLINK, PATH, 1, 2, NO, 0, NO, NO),
	[39] = D(MKDIR, PATH, CWD, 0, NO, NO, NO, 1),
	[296] = D(MKDIR, PATH, 0, 1, NO, NO, NO, 2),
	[92] = D(TRUNCATE, PATH, CWD, 0, NO, NO, NO, NO),
	[193] = D(TRUNCATE, PATH, CWD, 0, NO, NO, NO, NO),
	[93] = D(FTRUNCATE, PATH, 0, NO, NO, NO, NO, NO),
	[194] = D(FTRUNCATE, PATH, 0, NO, NO, NO, NO, NO),
	[15] = D(CHMOD, PATH, CWD, 0, NO, NO, NO, 1),
	[94] = D(CHMOD, PATH, 0, NO, NO, NO, NO, 1),
	[306] = D(CHMOD, PATH, 0, 1, NO, NO, NO, 2),
	[452] = D(CHMOD, PATH, 0, 1, NO, NO, 3, 2),
	[182] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),
	[212] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),
	[16] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),
	[198] = D(CHOWN, PATH, CWD, 0, NO, NO, NO, NO),
	[95] = D(CHOWN, PATH, 0, NO, NO, NO, NO, NO),
	[207] = D(CHOWN, PATH, 0, NO, NO, NO, NO, NO),
	[298] = D(CHOWN, PATH, 0, 1, NO, NO, 4, NO),
	[14] = D(MKNOD, PATH, CWD, 0, NO, NO, NO, 1),
	[297] = D(MKNOD, PATH, 0, 1, NO, NO, NO, 2),
	[21] = D(MOUNT, PATH, CWD, 1, NO, 0, 3, NO),
	[22] = D(UMOUNT, PATH, CWD, 0, NO, NO, NO, NO),
	[52] = D(UMOUNT, PATH, CWD, 0, NO, NO, 1, NO),
	[429] = D(MOVE_MOUNT, PATH, 0, 1, 2, 3, 4, NO),
	[217] = D(PIVOT_ROOT, PATH, CWD, 0, CWD, 1, NO, NO),
};
#elif defined(__TARGET_ARCH_arm64)
/* The generic table: the old path calls without a directory do not exist. */
static const struct desc native[NCALLS] = {
	[56] = D(OPENAT, OPEN, 0, 1, NO, NO, 2, 3),
	[437] = D(OPENAT2, OPEN, 0, 1, NO, NO, 2, NO),
	[265] = D(OPEN_BY_HANDLE_AT, OPEN, NO, NO, NO, NO, 2, NO),
	[221] = D(EXECVE, EXEC, CWD, 0, NO, NO, NO, NO),
	[281] = D(EXECVEAT, EXEC, 0, 1, NO, NO, 4, NO),
	[203] = D(CONNECT, SOCK, NO, NO, NO, NO, NO, NO),
	[206] = D(SENDTO, SOCK, NO, NO, NO, NO, NO, NO),
	[211] = D(SENDMSG, SOCK, NO, NO, NO, NO, NO, NO),
	[269] = D(SENDMMSG, SOCK, NO, NO, NO, NO, NO, NO),
	[200] = D(BIND, SOCK, NO, NO, NO, NO, NO, NO),
	[201] = D(LISTEN, SOCK, NO, NO, NO, NO, NO, NO),
	[35] = D(UNLINK, PATH, 0, 1, NO, NO, 2, NO),
	[38] = D(RENAME, PATH, 0, 1, 2, 3, NO, NO),
	[276] = D(RENAME, PATH, 0, 1, 2, 3, 4, NO),
	[37] = D(LINK, PATH, 0, 1, 2, 3, 4, NO),
	[36] = D(SYMLINK, PATH, 1, 2, NO, 0, NO, NO),
	[34] = D(MKDIR, PATH, 0, 1, NO, NO, NO, 2),
	[45] = D(TRUNCATE, PATH, CWD, 0, NO, NO, NO, NO),
	[46] = D(FTRUNCATE, PATH, 0, NO, NO, NO, NO, NO),
	[52] = D(CHMOD, PATH, 0, NO, NO, NO, NO, 1),
	[53] = D(CHMOD, PATH, 0, 1, NO, NO, NO, 2),
	[452] = D(CHMOD, PATH, 0, 1, NO, NO, 3, 2),
	[55] = D(CHOWN, PATH, 0, NO, NO, NO, NO, NO),
	[54] = D(CHOWN, PATH, 0, 1, NO, NO, 4, NO),
	[33] = D(MKNOD, PATH, 0, 1, NO, NO, NO, 2),
	[40] = D(MOUNT, PATH, CWD, 1, NO, 0, 3, NO),
	[39] = D(UMOUNT, PATH, CWD, 0, NO, NO, 1, NO),
	[429] = D(MOVE_MOUNT, PATH, 0, 1, 2, 3, 4, NO),
	[41] = D(PIVOT_ROOT, PATH, CWD, 0, CWD, 1, NO, NO),
};
#endif

#endif
