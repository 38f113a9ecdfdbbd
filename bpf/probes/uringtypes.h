/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The fields of io_uring's types that the probes read, and its ABI. */
#ifndef RUNNER_URINGTYPES_H
#define RUNNER_URINGTYPES_H

#include "types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct open_how {
	u64 flags, mode, resolve;
};

struct io_open {
	s32 dfd;
	u32 file_slot;
	struct open_how how;
};

struct io_close {
	s32 fd;
	u32 file_slot;
};

struct io_unlink {
	s32 dfd;
	s32 flags;
};

struct io_mkdir {
	s32 dfd;
	u16 mode;
};

struct io_rename {
	s32 old_dfd, new_dfd;
	s32 flags;
};

struct io_link { /* symlinks too: the old path is the target's text */
	s32 old_dfd, new_dfd;
};

/* The names in these: pointers, or since Linux 7.0 structs that hold the pointer. */
struct delayed_filename {
	struct filename *__incomplete_filename;
};

#define ONE_NAME(type)                            \
	struct type##___pointer {                 \
		struct filename *filename;        \
	};                                        \
	struct type##___delayed {                 \
		struct delayed_filename filename; \
	}
ONE_NAME(io_open);
ONE_NAME(io_unlink);
ONE_NAME(io_mkdir);
ONE_NAME(io_xattr);

#define TWO_NAMES(type)                                   \
	struct type##___pointer {                         \
		struct filename *oldpath, *newpath;       \
	};                                                \
	struct type##___delayed {                         \
		struct delayed_filename oldpath, newpath; \
	}
TWO_NAMES(io_rename);
TWO_NAMES(io_link);

struct xattr_name {
	char name[256];
};

struct kernel_xattr_ctx {
	struct xattr_name *kname;
};

struct io_xattr { /* Linux 5.19 */
	struct kernel_xattr_ctx ctx;
};

struct io_connect {
	void *addr;
	s32 addr_len;
};

struct io_bind___later { /* Linux 6.11: by then, addresses are copied before a request is submitted */
	s32 addr_len;
};

struct msghdr {
	void *msg_name;
	s32 msg_namelen;
};

struct __kernel_sockaddr_storage {
	u16 ss_family;
};

struct io_async_msghdr {
	struct msghdr msg;
	struct __kernel_sockaddr_storage addr;
};

struct io_sr_msg___message {
	void *umsg;
	u32 msg_flags;
};

struct io_sr_msg___before { /* until Linux 6.13: the address that a send is given */
	u16 addr_len;
	void *addr;
};

struct io_wq_work_node {
	struct io_wq_work_node *next;
};

struct io_wq_work_list {
	struct io_wq_work_node *last;
};

struct io_submit_link {
	struct io_kiocb *head;
};

struct io_submit_state {
	struct io_wq_work_list compl_reqs; /* done, but not yet told to the program */
	struct io_submit_link link;	   /* requests that each are carried out after the one before */
};

struct io_ring_ctx {
	u32 cached_sq_head;
	struct xarray personalities; /* ids and rights that its requests can have, of those who registered them */
	struct io_submit_state submit_state;
};

struct io_cqe {
	u64 user_data;
	s32 res;
	s32 fd;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u32 flags; /* the low bits are those of the submission */
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	struct io_wq_work_node comp_list;
	void *async_data;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
};
#pragma clang attribute pop

/* include/uapi/linux/io_uring.h */
enum {
	OPCODE_SENDMSG = 9,
	OPCODE_CONNECT = 16,
	OPCODE_OPENAT = 18,
	OPCODE_CLOSE = 19,
	OPCODE_SEND = 26,
	OPCODE_OPENAT2 = 28,
	OPCODE_RENAMEAT = 35,
	OPCODE_UNLINKAT = 36,
	OPCODE_MKDIRAT = 37,
	OPCODE_SYMLINKAT = 38,
	OPCODE_LINKAT = 39,
	OPCODE_FSETXATTR = 41,
	OPCODE_SETXATTR = 42,
	OPCODE_SEND_ZC = 47,
	OPCODE_SENDMSG_ZC = 48,
	OPCODE_FTRUNCATE = 55,
	OPCODE_BIND = 56,
	OPCODE_LISTEN = 57,
	OPCODE_LAST = 64, /* Linux 7.3 has none above */

	ENTRY_FIXED_FILE = 1 << 0,
	ENTRY_LINKS = 1 << 2 | 1 << 3,
	ENTRY_ASYNC = 1 << 4, /* also of one that waits for those before it */
	ENTRY_SILENT = 1 << 6, /* no completion on success */
};

struct user_entry {
	u8 opcode, flags;
	u16 ioprio;
	s32 fd;
	u64 addr2;
	u64 addr;
	u32 len;
	u32 op_flags;
	u64 user_data;
	u16 buf_index, personality;
	u16 addr_len, pad;
	u64 addr3;
};

#endif
