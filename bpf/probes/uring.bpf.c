//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* io_uring: a request is kept at submission, where the kernel's own copy of the
 * path is, and recorded at completion, where its result is. Connects and datagrams
 * also pass the cgroup hooks. A separate object, because tracepoints and structures
 * change between kernels. There is one program for each form of a tracepoint; the
 * loader (../uring_linux.go) compares the kernel's with them, and loads those that fit. */
#include "addr.h"
#include "guard.h"
#include "marks.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct open_how {
	u64 flags, mode, resolve;
};

struct io_open {
	s32 dfd;
	u32 file_slot;
	struct open_how how;
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

#define TWO_NAMES(type)                                   \
	struct type##___pointer {                         \
		struct filename *oldpath, *newpath;       \
	};                                                \
	struct type##___delayed {                         \
		struct delayed_filename oldpath, newpath; \
	}
TWO_NAMES(io_rename);
TWO_NAMES(io_link);

struct io_connect {
	void *addr;
	s32 addr_len;
};

struct io_ring_ctx {
	u32 cached_sq_head;
};

struct io_kiocb {
	u8 opcode;
	struct io_ring_ctx *ctx;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
};
#pragma clang attribute pop

/* include/uapi/linux/io_uring.h */
enum {
	OPCODE_CONNECT = 16,
	OPCODE_OPENAT = 18,
	OPCODE_OPENAT2 = 28,
	OPCODE_RENAMEAT = 35,
	OPCODE_UNLINKAT = 36,
	OPCODE_MKDIRAT = 37,
	OPCODE_SYMLINKAT = 38,
	OPCODE_LINKAT = 39,
	OPCODE_FSETXATTR = 41,
	OPCODE_SETXATTR = 42,
	OPCODE_FTRUNCATE = 55,
	OPCODE_BIND = 56,
	OPCODE_LISTEN = 57,
};

struct request {
	u64 flags, mode, resolve;
	u64 cgid;
	s32 dfd, dfd2;
	u32 file_slot;
	u32 tgid, tid;
	u32 op;
	u32 ulen, ulen2;
	u32 marks;
	u32 complete_copy; /* the copy that goes on in the body when it completes */
	u8 upath[UPATH_MAX];
	u8 upath2[UPATH_MAX];
};

/* Requests between submission and completion. A full map is counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct request);
} requests SEC(".maps");

/* Building a request needs more than the stack holds. Each copy has its own. */
#define RING_COPIES 3
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RING_COPIES);
	__type(key, u32);
	__type(value, struct request);
} blank SEC(".maps");

/* Puts a kept path and the directory it starts from. Returns the new offset. */
INLINE u64 put_kept(struct scratch *s, u32 key, u64 off, const u8 *from, u64 n, s32 dfd, u32 *clen)
{
	struct path_pair base;

	if (n > UPATH_MAX - 1)
		n = UPATH_MAX - 1;
	BARRIER(n);
	n &= UPATH_MAX - 1;
	BARRIER(off);
	if (off > BLOB_LAST)
		return off;
	if (bpf_probe_read_kernel(&s->blob[off], n, from))
		s->r.marks |= MARK_UFAULT;
	base_path(n && s->blob[off] == '/', dfd, &base);
	mark_chroot(s, key, off, n);
	off += n;
	*clen = put_path(key, off, base.mnt, base.dentry);
	return off + *clen;
}

INLINE void emit_request(struct request *q, s64 res, u32 marks, u32 slot, u32 of_copy)
{
	u32 key = scratch_key(of_copy, slot == SLOT_URING_SUBMIT ? SCRATCH_SUBMIT : SCRATCH_COMPLETE);
	struct counters *c = counters_of(slot);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	u64 off = 0, file = 0;

	if (!c)
		return;
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return;
	}
	begin(&s->r, q->op, res);
	/* a kernel worker may complete it: the request's own task is the actor */
	s->r.tgid = q->tgid;
	s->r.tid = q->tid;
	s->r.cgid = q->cgid;
	s->r.source = SOURCE_IO_URING;
	s->r.flags = q->flags;
	s->r.mode = q->mode;
	s->r.resolve = q->resolve;
	s->r.marks = marks | q->marks;
	if (q->op == OP_CONNECT) {
		u64 n = q->ulen;

		if (n > ADDR_MAX)
			n = ADDR_MAX;
		BARRIER(n);
		if (bpf_probe_read_kernel(&s->blob[0], ADDR_MAX, q->upath))
			n = 0;
		emit_addr(s, key, n, c);
		return;
	}
	if (q->op <= OP_IO_URING_OPENAT2 && !(marks & MARK_NORET) && res >= 0 && !q->file_slot) {
		file = fd_file(res);
		if (file && file_flags(file) & O_ACCMODE)
			guard_file(file);
		if (!just_opened(file, q->flags)) {
			file = 0;
			s->r.marks |= MARK_FDRACE;
		}
	}
	if (file) {
		off = s->r.clen1 = put_file(key, 0, file);
	} else {
		s->r.marks |= MARK_HAS_U1 | MARK_HAS_BASE1;
		s->r.ulen1 = q->ulen;
		off = put_kept(s, key, 0, q->upath, q->ulen, q->dfd, &s->r.clen1);
		if (q->marks & MARK_HAS_BASE2) {
			s->r.ulen2 = q->ulen2;
			off = put_kept(s, key, off, q->upath2, q->ulen2, q->dfd2, &s->r.clen2);
		}
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		off = BLOB_LAST;
	emit(&s->r, REC_SIZE + off, c);
}

/* The name that a field of a request points to. If the kernel has neither form of the
 * field, the object does not load. */
#define NAME(type, req, field)                                                \
	(EXISTS(struct type##___delayed, field.__incomplete_filename) ?       \
		 POINTER(type##___delayed, (u64)(req),                        \
			 field.__incomplete_filename) :                       \
		 POINTER(type##___pointer, (u64)(req), field))

INLINE u32 keep_name(u8 *to, u64 name, u32 *marks)
{
	s64 n = bpf_probe_read_kernel_str(to, UPATH_MAX, (void *)POINTER(filename, name, name));

	if (n > 0)
		return n - 1;
	*marks |= MARK_UFAULT;
	return 0;
}

/* Keeps what the request says; false for an operation that is not decoded. */
INLINE bool keep(struct request *q, struct io_kiocb *req, u8 opcode)
{
	/* the command area is the request's first member */
	u64 name = 0, name2 = 0;
	u16 mode = 0;

	q->marks = q->flags = q->mode = q->resolve = q->file_slot = 0;
	switch (opcode) {
	case OPCODE_OPENAT:
	case OPCODE_OPENAT2: {
		struct io_open *o = (void *)req;

		q->op = opcode == OPCODE_OPENAT ? OP_IO_URING_OPENAT : OP_IO_URING_OPENAT2;
		q->marks = MARK_ARGS;
		READ(q->dfd, o, dfd);
		READ(q->file_slot, o, file_slot);
		READ(q->flags, o, how.flags);
		READ(q->mode, o, how.mode);
		READ(q->resolve, o, how.resolve);
		name = NAME(io_open, req, filename);
		break;
	}
	case OPCODE_CONNECT: {
		/* The caller's memory: the address hooks hold the kernel's copy, and a
		 * connect whose two addresses differ becomes two records. */
		struct io_connect *co = (void *)req;
		void *addr = NULL;
		s32 n = 0;
		u64 len;

		if (READ(n, co, addr_len) || READ(addr, co, addr) || n < 2 || n > ADDR_MAX)
			return false; /* the hooks still record it, without an outcome */
		len = n;
		BARRIER(len);
		len &= 255;
		if (len > ADDR_MAX)
			return false;
		q->op = OP_CONNECT;
		q->ulen = len;
		if (bpf_probe_read_user(q->upath, len, addr)) {
			q->ulen = 0;
			q->marks = MARK_AFAULT;
		}
		return true;
	}
	case OPCODE_UNLINKAT: {
		struct io_unlink *u = (void *)req;
		s32 flags = 0;

		READ(flags, u, flags);
		q->op = flags & AT_REMOVEDIR ? OP_RMDIR : OP_UNLINK;
		READ(q->dfd, u, dfd);
		name = NAME(io_unlink, req, filename);
		break;
	}
	case OPCODE_MKDIRAT: {
		struct io_mkdir *m = (void *)req;

		q->op = OP_MKDIR;
		q->marks = MARK_MODE;
		READ(mode, m, mode);
		q->mode = mode;
		READ(q->dfd, m, dfd);
		name = NAME(io_mkdir, req, filename);
		break;
	}
	case OPCODE_RENAMEAT: {
		struct io_rename *r = (void *)req;

		q->op = OP_RENAME;
		q->marks = MARK_HAS_U2 | MARK_HAS_BASE2;
		READ(q->dfd, r, old_dfd);
		READ(q->dfd2, r, new_dfd);
		name = NAME(io_rename, req, oldpath);
		name2 = NAME(io_rename, req, newpath);
		break;
	}
	case OPCODE_LINKAT: {
		struct io_link *l = (void *)req;

		q->op = OP_LINK;
		q->marks = MARK_HAS_U2 | MARK_HAS_BASE2;
		READ(q->dfd, l, old_dfd);
		READ(q->dfd2, l, new_dfd);
		name = NAME(io_link, req, oldpath);
		name2 = NAME(io_link, req, newpath);
		break;
	}
	case OPCODE_SYMLINKAT: {
		struct io_link *l = (void *)req;

		q->op = OP_SYMLINK; /* its second text, the target, is not kept */
		READ(q->dfd, l, new_dfd);
		name = NAME(io_link, req, newpath);
		break;
	}
	default:
		return false;
	}
	q->ulen = keep_name(q->upath, name, &q->marks);
	q->ulen2 = q->marks & MARK_HAS_BASE2 ? keep_name(q->upath2, name2, &q->marks) : 0;
	return true;
}

INLINE bool first_copy(struct io_kiocb *req)
{
	struct io_ring_ctx *ring = NULL;
	u32 head = 0;

	READ(ring, req, ctx);
	READ(head, ring, cached_sq_head);
	return first_at_submit((u64)ring, head);
}

INLINE void submitted(struct io_kiocb *req)
{
	u64 id = bpf_get_current_pid_tgid(), key = (u64)req;
	struct counters *c = counters_of(SLOT_URING_SUBMIT);
	struct request *q;
	u8 opcode = req->opcode;
	u32 of_copy = copied_tasks ? COPY_OF(submit) : 0;

	if (!c)
		return;
	if (opcode == OPCODE_FTRUNCATE || opcode == OPCODE_BIND || opcode == OPCODE_LISTEN || opcode == OPCODE_SETXATTR || opcode == OPCODE_FSETXATTR) {
		struct rec r;

		begin(&r, OP_IO_URING_OTHER, 0);
		r.flags = opcode;
		r.marks = MARK_NORET | MARK_ARGS;
		r.source = SOURCE_IO_URING;
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
		emit(&r, sizeof(r), c);
		return;
	}
	/* A request that wants no completion on success never completes in view: its
	 * memory comes back with the next one. */
	q = bpf_map_lookup_elem(&requests, &key);
	if (q) {
		emit_request(q, 0, MARK_NORET, SLOT_URING_SUBMIT, of_copy);
		bpf_map_delete_elem(&requests, &key);
	}
	q = bpf_map_lookup_elem(&blank, &of_copy);
	if (!q || !keep(q, req, opcode))
		return;
	q->tgid = id >> 32;
	q->tid = (u32)id;
	q->cgid = bpf_get_current_cgroup_id();
	if (bpf_map_update_elem(&requests, &key, q, 0))
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
}

INLINE void completed(u64 key, s64 res)
{
	struct request *q = bpf_map_lookup_elem(&requests, &key);

	if (!q)
		return;
	emit_request(q, res, 0, SLOT_URING_COMPLETE, q->complete_copy);
	bpf_map_delete_elem(&requests, &key);
}

/* A copy that runs later does not find the request any more. */
INLINE bool first_at_completion(u64 key)
{
	struct request *q = bpf_map_lookup_elem(&requests, &key);

	if (q)
		q->complete_copy = copy;
	return q;
}

BODY(submit_body);
BODY(complete_body);

#define SUBMIT(form, tracepoint)                                                          \
	SEC("tp_btf/" tracepoint)                                                         \
	int body_##form(u64 *ctx)                                                         \
	{                                                                                 \
		STACK_OF_TASK(ctx, submit_body);                                          \
		submitted((struct io_kiocb *)ctx[0]);                                     \
		return 0;                                                                 \
	}                                                                                 \
	SEC("tp_btf/" tracepoint)                                                         \
	int on_##form(u64 *ctx)                                                           \
	{                                                                                 \
		if (bpf_current_task_under_cgroup(&scope, 0) != 1)                        \
			return 0;                                                         \
		if (!copied_tasks)                                                        \
			submitted((struct io_kiocb *)ctx[0]);                             \
		else if (first_copy((struct io_kiocb *)ctx[0]))                           \
			go_on(ctx, &submit_body, SLOT_URING_SUBMIT);                      \
		return 0;                                                                 \
	}

#define COMPLETE(form, result)                                                            \
	SEC("tp_btf/io_uring_complete")                                                   \
	int body_##form(u64 *ctx)                                                         \
	{                                                                                 \
		STACK_OF_TASK(ctx, complete_body);                                        \
		completed(ctx[1], result(ctx));                                           \
		return 0;                                                                 \
	}                                                                                 \
	SEC("tp_btf/io_uring_complete")                                                   \
	int on_##form(u64 *ctx)                                                           \
	{                                                                                 \
		if (!copied_tasks)                                                        \
			completed(ctx[1], result(ctx));                                   \
		else if (first_at_completion(ctx[1]))                                     \
			go_on(ctx, &complete_body, SLOT_URING_COMPLETE);                  \
		return 0;                                                                 \
	}

INLINE s64 result_of_cqe(u64 *ctx)
{
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)ctx[2];

	return cqe->res;
}

INLINE s64 result_itself(u64 *ctx)
{
	return (s32)ctx[3];
}

SUBMIT(submit_req, "io_uring_submit_req") /* since Linux 6.3 */
SUBMIT(submit_sqe, "io_uring_submit_sqe") /* its name and form before */
COMPLETE(complete_cqe, result_of_cqe) /* since some release between Linux 6.12 and 6.16 */
COMPLETE(complete_res, result_itself) /* its form before */
