/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A request of io_uring as it was submitted: what it asks for, whose it is, and where its
 * names start from. It is kept until it completes. */
#ifndef RUNNER_URINGREQUEST_H
#define RUNNER_URINGREQUEST_H

#include "uringtypes.h"
#include "addr.h"

#define BASE_MAX 4096 /* a longer one is looked up again at the completion */

enum state {
	STATE_LATER = 1 << 0, /* it is carried out some time after its submission */
	STATE_TOLD = 1 << 1,  /* its program wants no completion on success: it has its record already */
	STATE_APART = 1 << 3, /* by a worker that can have other directories and descriptors */
	STATE_CANCELLED = 1 << 2, /* it is not carried out */
};

/* The texts and the address of a request: in the kernel's memory or, until it has copied
 * them, in the program's. */
struct asked {
	u64 name, name2;
	u64 addr;
	s64 len;
	u64 user; /* a bool */
};

struct request {
	u64 ring, user_data; /* with its address, these tell it from others */
	u64 flags, mode, resolve;
	u64 cgid;
	u64 since;     /* when it was submitted */
	u64 files, fs; /* of the task that did so */
	struct path_pair from[2]; /* where its names start from */
	s32 dfd[2];
	u32 file_slot;
	u32 tgid, tid;
	u32 op;
	u32 ulen[2];
	u32 clen[2];
	u32 marks;
	u32 state;
	u32 run;	   /* whose it is */
	u32 life;	   /* as life_of gives it */
	u32 complete_copy; /* the copy that goes on in the body when it completes */
	u32 on_file;	   /* it is about the file of a descriptor, and has no path */
	u32 privileged; /* an open: it has rights over the kernel and the runner */
	u32 apart;	   /* times_apart of the task that submitted it */
	struct asked asked; /* only until it is kept; on the stack, a verifier would follow each way that it can be set */
	u8 upath[UPATH_MAX];
	u8 upath2[UPATH_MAX];
	u8 base[BASE_MAX];
	u8 base2[BASE_MAX];
};

#define REQUEST_HEAD __builtin_offsetof(struct request, upath)
_Static_assert(REQUEST_HEAD == sizeof(((struct told *)0)->head), "what is told of a request");

/* Where the texts of a name, and of the place that it starts from, are in a request. */
#define UPATH_AT(second) (REQUEST_HEAD + (second) * UPATH_MAX)
#define BASE_AT(second) (__builtin_offsetof(struct request, base) + (second) * BASE_MAX)
_Static_assert(UPATH_AT(1) == __builtin_offsetof(struct request, upath2) && BASE_AT(1) == __builtin_offsetof(struct request, base2),
	       "the second text is after the first");

/* Requests between submission and completion, by their address. A full map is counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct request);
} requests SEC(".maps");

/* Building a request needs more than the stack holds. Each copy of each program that does
 * so has its own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * SMALL_COPIES);
	__type(key, u32);
	__type(value, struct request);
} blank SEC(".maps");

/* Where a request is recorded. */
enum place { AT_SUBMIT, AT_COMPLETE, AT_FAILED };

INLINE struct request *blank_at(u32 place)
{
	return bpf_map_lookup_elem(&blank, &place);
}

INLINE u32 blank_of(u32 at, u32 of_copy)
{
	return at == AT_FAILED ? SMALL_COPIES + of_copy : of_copy;
}

INLINE u32 slot_of(u32 at)
{
	return at == AT_SUBMIT ? SLOT_URING_SUBMIT : at == AT_COMPLETE ? SLOT_URING_COMPLETE : SLOT_URING_FAILED;
}

INLINE u32 scratch_of(u32 at, u32 of_copy)
{
	return scratch_key(of_copy, at == AT_SUBMIT ? SCRATCH_SUBMIT : at == AT_COMPLETE ? SCRATCH_COMPLETE : SCRATCH_FAILED);
}

INLINE bool is_open(u32 op)
{
	return op == OP_IO_URING_OPENAT || op == OP_IO_URING_OPENAT2;
}

INLINE bool is_socket(u32 op)
{
	return op >= OP_CONNECT && op <= OP_LISTEN;
}

/* The name that a field of a request points to. If the kernel has neither form of the
 * field, the object does not load. */
#define NAME(type, req, field)                                                                     \
	POINTER(filename,                                                                          \
		EXISTS(struct type##___delayed, field.__incomplete_filename) ?                     \
			POINTER(type##___delayed, req, field.__incomplete_filename) :              \
			POINTER(type##___pointer, req, field), name)

INLINE void ask_two(struct request *q, u32 op)
{
	q->op = op;
	q->marks = MARK_HAS_U2 | MARK_HAS_BASE2;
}

INLINE bool known_family(u64 addr)
{
	u16 family = word(addr);

	return family == FAMILY_UNIX || family == FAMILY_INET || family == FAMILY_INET6;
}

/* The kernel's copy of the address that a request has at submission, and 0 before Linux 6.11,
 * which copies it later. Of a connect and a bind it is the address itself or, before some stable
 * releases of 2026, a message that begins with an aligned pointer and has the address. */
INLINE u64 kernel_address(u64 req, u32 op)
{
	u64 async = POINTER(io_kiocb, req, async_data), addr = async;

	if (!EXISTS(struct io_bind___later, addr_len) || !async)
		return 0;
	if (op != OP_CONNECT && op != OP_BIND)
		return POINTER(io_async_msghdr, async, msg.msg_name);
	if (!(word(async) & 7))
		addr += OFFSET(struct io_async_msghdr, addr);
	return known_family(addr) ? addr : 0;
}

/* The address of a socket call; 0 for a send without one. */
GLOBAL u32 ask_address(struct request *q, u64 req)
{
	struct io_sr_msg___before *before = (void *)req;
	struct user_msghdr *h;
	struct asked *a;
	u32 flags = 0;
	u16 short_n = 0;
	s32 n = 0;

	if (!q)
		return false;
	a = &q->asked;
	h = (void *)q->base; /* not used yet, and the stack is small */

	a->addr = kernel_address(req, q->op);
	a->user = !a->addr;
	switch (q->op) {
	case OP_CONNECT:
		READ(n, (struct io_connect *)req, addr_len);
		a->len = n;
		if (a->user)
			a->addr = POINTER(io_connect, req, addr);
		return true;
	case OP_BIND:
		if (EXISTS(struct io_bind___later, addr_len))
			READ(n, (struct io_bind___later *)req, addr_len);
		a->len = a->user ? 0 : n; /* the program's own memory is not known any more */
		return true;
	}
	READ(flags, (struct io_sr_msg___message *)req, msg_flags);
	q->mode = flags;
	if (EXISTS(struct io_bind___later, addr_len)) {
		READ(n, (struct io_async_msghdr *)POINTER(io_kiocb, req, async_data), msg.msg_namelen);
		a->len = n;
		return !a->user && n;
	}
	if (q->op == OP_SENDMSG) {
		if (bpf_probe_read_user(h, sizeof(*h), (void *)POINTER(io_sr_msg___message, req, umsg)))
			return false;
		a->addr = h->name;
		a->len = h->namelen;
	} else if (EXISTS(struct io_sr_msg___before, addr_len)) {
		READ(short_n, before, addr_len);
		a->addr = POINTER(io_sr_msg___before, req, addr);
		a->len = short_n;
	}
	return a->addr && a->len;
}

INLINE bool is_send(u32 op)
{
	return op == OP_SENDTO || op == OP_SENDMSG;
}

/* Is a socket one whose packets can hold their own header? That can be switched between a request and the next. */
GLOBAL u32 is_raw(s32 fd)
{
	struct kind k;

	kind_of_file(fd_file(fd), &k);
	return k.sk && is_inet(&k) && k.type == TYPE_RAW;
}

/* Does a request send from such a socket? Of a direct descriptor that is not known before it completes. */
INLINE bool sends_raw(struct request *q)
{
	return is_send(q->op) && !q->file_slot && is_raw(q->dfd[0]);
}

/* Is an operation not known at all? */
INLINE bool not_decoded(u8 opcode)
{
	return opcode > OPCODE_LAST;
}

/* An operation that is not decoded, of a kernel that is newer than these probes, or of none. */
INLINE bool ask_other(struct request *q, u8 opcode)
{
	q->op = OP_IO_URING_OTHER;
	q->flags = opcode;
	q->marks = MARK_ARGS;
	return true;
}

/* The operation on a descriptor that an opcode stands for; OP_NONE is none that is decoded. */
INLINE u32 op_on_file(u8 opcode)
{
	switch (opcode) {
	case OPCODE_FTRUNCATE:
		return OP_FTRUNCATE;
	case OPCODE_FSETXATTR:
		return OP_SETXATTR;
	case OPCODE_LISTEN:
		return OP_LISTEN;
	case OPCODE_CONNECT:
		return OP_CONNECT;
	case OPCODE_BIND:
		return OP_BIND;
	case OPCODE_SEND:
	case OPCODE_SEND_ZC:
		return OP_SENDTO;
	case OPCODE_SENDMSG:
	case OPCODE_SENDMSG_ZC:
		return OP_SENDMSG;
	}
	return OP_NONE;
}

INLINE void ask_attribute(struct request *q, struct asked *a, u64 req)
{
	q->op = OP_SETXATTR;
	q->marks = MARK_HAS_U2;
	if (EXISTS(struct io_xattr, ctx))
		a->name2 = POINTER(io_xattr, req, ctx.kname) + OFFSET(struct xattr_name, name);
}

INLINE bool ask_file(struct request *q, struct asked *a, u64 req, u8 opcode)
{
	u32 flags = 0;

	q->op = op_on_file(opcode);
	if (!q->op)
		return false;
	READ(flags, (struct io_kiocb *)req, flags);
	READ(q->dfd[0], (struct io_kiocb *)req, cqe.fd);
	q->file_slot = flags & ENTRY_FIXED_FILE;
	q->on_file = q->op == OP_FTRUNCATE || q->op == OP_SETXATTR;
	if (q->op == OP_SETXATTR)
		ask_attribute(q, a, req);
	return q->on_file || q->op == OP_LISTEN || ask_address(q, req) || sends_raw(q);
}

/* Has a request of the present task rights over the kernel (has_rights)? It can use those of another one, which the ring keeps. */
INLINE bool is_privileged(u64 ring)
{
	return has_rights() || POINTER(io_ring_ctx, ring, personalities.xa_head);
}

/* What a request asks for; false for an operation that is not decoded. The command area is
 * the request's first member. */
INLINE bool ask(struct request *q, struct asked *a, u64 req, u8 opcode)
{
	u16 mode = 0;

	if (not_decoded(opcode))
		return ask_other(q, opcode);
	switch (opcode) {
	case OPCODE_OPENAT:
	case OPCODE_OPENAT2: {
		struct io_open *o = (void *)req;

		q->op = opcode == OPCODE_OPENAT ? OP_IO_URING_OPENAT : OP_IO_URING_OPENAT2;
		q->marks = MARK_ARGS;
		q->privileged = is_privileged(POINTER(io_kiocb, req, ctx));
		READ(q->dfd[0], o, dfd);
		READ(q->file_slot, o, file_slot);
		READ(q->flags, o, how.flags);
		READ(q->mode, o, how.mode);
		READ(q->resolve, o, how.resolve);
		a->name = NAME(io_open, req, filename);
		return true;
	}
	case OPCODE_UNLINKAT: {
		struct io_unlink *u = (void *)req;
		s32 flags = 0;

		READ(flags, u, flags);
		q->op = flags & AT_REMOVEDIR ? OP_RMDIR : OP_UNLINK;
		READ(q->dfd[0], u, dfd);
		a->name = NAME(io_unlink, req, filename);
		return true;
	}
	case OPCODE_MKDIRAT: {
		struct io_mkdir *m = (void *)req;

		q->op = OP_MKDIR;
		q->marks = MARK_MODE;
		READ(mode, m, mode);
		q->mode = mode;
		READ(q->dfd[0], m, dfd);
		a->name = NAME(io_mkdir, req, filename);
		return true;
	}
	case OPCODE_RENAMEAT: {
		struct io_rename *r = (void *)req;
		u32 flags = 0;

		ask_two(q, OP_RENAME);
		READ(flags, r, flags);
		q->flags = flags;
		READ(q->dfd[0], r, old_dfd);
		READ(q->dfd[1], r, new_dfd);
		a->name = NAME(io_rename, req, oldpath);
		a->name2 = NAME(io_rename, req, newpath);
		return true;
	}
	case OPCODE_LINKAT: {
		struct io_link *l = (void *)req;

		ask_two(q, OP_LINK);
		READ(q->dfd[0], l, old_dfd);
		READ(q->dfd[1], l, new_dfd);
		a->name = NAME(io_link, req, oldpath);
		a->name2 = NAME(io_link, req, newpath);
		return true;
	}
	case OPCODE_SYMLINKAT: {
		struct io_link *l = (void *)req;

		q->op = OP_SYMLINK; /* its second text, the target, is not kept */
		READ(q->dfd[0], l, new_dfd);
		a->name = NAME(io_link, req, newpath);
		return true;
	}
	case OPCODE_SETXATTR:
		ask_attribute(q, a, req);
		q->dfd[0] = AT_FDCWD;
		if (EXISTS(struct io_xattr, ctx))
			a->name = NAME(io_xattr, req, filename);
		return true;
	}
	return ask_file(q, a, req, opcode);
}

/* The same from the submission entry, of a request that the kernel refuses to prepare. */
INLINE bool ask_entry(struct request *q, struct asked *a, struct user_entry *e)
{
	struct user_msghdr *h = (void *)q->base;

	a->user = true;
	a->name = e->addr;
	q->dfd[0] = e->fd;
	q->file_slot = e->addr_len | (u32)e->pad << 16;
	if (not_decoded(e->opcode))
		return ask_other(q, e->opcode);
	switch (e->opcode) {
	case OPCODE_OPENAT:
		q->op = OP_IO_URING_OPENAT;
		q->marks = MARK_ARGS;
		q->flags = e->op_flags;
		q->mode = (u16)e->len;
		return true;
	case OPCODE_OPENAT2:
		q->op = OP_IO_URING_OPENAT2;
		q->marks = MARK_ARGS;
		/* its three fields are in the same order here */
		if (bpf_probe_read_user(&q->flags, sizeof(struct user_open_how), (void *)e->addr2))
			q->marks |= MARK_UFAULT;
		return true;
	case OPCODE_UNLINKAT:
		q->op = e->op_flags & AT_REMOVEDIR ? OP_RMDIR : OP_UNLINK;
		return true;
	case OPCODE_MKDIRAT:
		q->op = OP_MKDIR;
		q->marks = MARK_MODE;
		q->mode = (u16)e->len;
		return true;
	case OPCODE_RENAMEAT:
	case OPCODE_LINKAT:
		ask_two(q, e->opcode == OPCODE_RENAMEAT ? OP_RENAME : OP_LINK);
		q->dfd[1] = e->len;
		if (e->opcode == OPCODE_RENAMEAT)
			q->flags = e->op_flags;
		a->name2 = e->addr2;
		return true;
	case OPCODE_SYMLINKAT:
		q->op = OP_SYMLINK;
		a->name = e->addr2;
		return true;
	case OPCODE_SETXATTR:
		q->op = OP_SETXATTR;
		q->marks = MARK_HAS_U2;
		q->dfd[0] = AT_FDCWD;
		a->name = e->addr3;
		a->name2 = e->addr;
		return true;
	}
	q->op = op_on_file(e->opcode);
	q->file_slot = e->flags & ENTRY_FIXED_FILE;
	q->on_file = q->op == OP_FTRUNCATE || q->op == OP_SETXATTR;
	switch (q->op) {
	case OP_SETXATTR:
		q->marks = MARK_HAS_U2;
		a->name2 = e->addr;
		return true;
	case OP_CONNECT:
	case OP_BIND:
		a->addr = e->addr;
		a->len = (s32)e->addr2;
		return true;
	case OP_SENDTO:
		a->addr = e->addr2;
		a->len = e->addr_len;
		return a->addr && a->len;
	case OP_SENDMSG:
		if (bpf_probe_read_user(h, sizeof(*h), (void *)e->addr))
			return false;
		a->addr = h->name;
		a->len = h->namelen;
		return a->addr && a->len;
	}
	return q->op;
}

#endif
