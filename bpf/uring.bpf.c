//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* io_uring: a request is kept at submission, where the kernel's own copy of the
 * path is, and told at completion, where its result is. Connects and datagrams
 * pass the cgroup hooks instead. An object of its own: its structures change
 * between kernels (io_uring_submit_req: Linux 6.3; io_uring_complete's present
 * form: 6.12), and the loader compares them before it chooses this one. */
#include "walk.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct open_how {
	u64 flags, mode, resolve;
};

struct io_open {
	s32 dfd;
	u32 file_slot;
	struct filename *filename;
	struct open_how how;
};

struct io_kiocb {
	u8 opcode;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
};
#pragma clang attribute pop

enum { OPCODE_OPENAT = 18, OPCODE_OPENAT2 = 28 };

struct request {
	u64 flags, mode, resolve;
	u64 cgid;
	s32 dfd;
	u32 file_slot;
	u32 tgid, tid;
	u32 opcode;
	u32 ulen;
	u32 marks;
	u32 pad;
	u8 upath[UPATH_MAX];
};

/* Requests between submission and completion. A full map is counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct request);
} requests SEC(".maps");

/* Building a request needs more than the stack holds. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request);
} blank SEC(".maps");

/* Operations on paths that this object does not decode, by opcode. */
INLINE bool names_a_path(u8 opcode)
{
	switch (opcode) {
	case 35: /* RENAMEAT */
	case 36: /* UNLINKAT */
	case 37: /* MKDIRAT */
	case 38: /* SYMLINKAT */
	case 39: /* LINKAT */
	case 42: /* SETXATTR */
	case 55: /* FTRUNCATE */
	case 56: /* BIND */
	case 57: /* LISTEN */
		return true;
	}
	return false;
}

INLINE void tell(struct request *q, s64 res, u32 marks, u32 slot)
{
	u32 key = (slot == SLOT_URING_SUBMIT ? SCRATCH_SUBMIT : SCRATCH_COMPLETE) * ncpus + bpf_get_smp_processor_id();
	struct counters *c = counters_of(slot);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct path_pair base;
	u64 off = 0, n;

	if (!c)
		return;
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return;
	}
	begin(&s->r, q->opcode == OPCODE_OPENAT ? OP_IO_URING_OPENAT : OP_IO_URING_OPENAT2, 0, res);
	/* a kernel worker may complete it: the request's own task is the actor */
	s->r.tgid = q->tgid;
	s->r.tid = q->tid;
	s->r.cgid = q->cgid;
	s->r.source = SOURCE_IO_URING;
	s->r.flags = q->flags;
	s->r.mode = q->mode;
	s->r.resolve = q->resolve;
	s->r.marks = marks | MARK_ARGS | q->marks;
	if (!(marks & MARK_NORET) && res >= 0 && !q->file_slot) {
		off = s->r.clen1 = put_file(key, 0, fd_file(res));
	} else {
		s->r.marks |= MARK_HAS_U1 | MARK_HAS_BASE1;
		n = q->ulen;
		if (n > UPATH_MAX - 1)
			n = UPATH_MAX - 1;
		BARRIER(n);
		n &= UPATH_MAX - 1;
		if (bpf_probe_read_kernel(&s->blob[0], n, q->upath))
			s->r.marks |= MARK_UFAULT;
		s->r.ulen1 = n;
		base_path(n && s->blob[0] == '/', q->dfd, &base);
		s->r.clen1 = put_path(key, n, base.mnt, base.dentry);
		off = n + s->r.clen1;
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		off = BLOB_LAST;
	emit(&s->r, REC_SIZE + off, c);
}

SEC("tp_btf/io_uring_submit_req")
int on_submit(u64 *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx[0];
	u64 id = bpf_get_current_pid_tgid(), key = (u64)req;
	struct counters *c = counters_of(SLOT_URING_SUBMIT);
	struct io_open *open = (void *)req; /* the command area is the request's first member */
	struct filename *name = NULL;
	struct request *q;
	const char *text = NULL;
	u8 opcode = req->opcode;
	u32 zero = 0;
	s64 n;

	if (!c || bpf_current_task_under_cgroup(&scope, 0) != 1)
		return 0;
	if (opcode != OPCODE_OPENAT && opcode != OPCODE_OPENAT2) {
		if (names_a_path(opcode)) {
			struct rec r;

			begin(&r, OP_IO_URING_OTHER, 0, 0);
			r.flags = opcode;
			r.marks = MARK_NORET | MARK_ARGS;
			r.source = SOURCE_IO_URING;
			__sync_fetch_and_add(&c->io_uring_unmapped, 1);
			emit(&r, sizeof(r), c);
		}
		return 0;
	}
	/* A request that was told to stay silent on success never completes in view:
	 * its memory comes back with the next one. */
	q = bpf_map_lookup_elem(&requests, &key);
	if (q)
		tell(q, 0, MARK_NORET, SLOT_URING_SUBMIT);
	q = bpf_map_lookup_elem(&blank, &zero);
	if (!q)
		return 0;
	q->marks = 0;
	q->tgid = id >> 32;
	q->tid = (u32)id;
	q->cgid = bpf_get_current_cgroup_id();
	q->opcode = opcode;
	READ(q->dfd, open, dfd);
	READ(q->file_slot, open, file_slot);
	READ(q->flags, open, how.flags);
	READ(q->mode, open, how.mode);
	READ(q->resolve, open, how.resolve);
	READ(name, open, filename);
	READ(text, name, name);
	n = bpf_probe_read_kernel_str(q->upath, UPATH_MAX, text);
	if (n <= 0) {
		q->marks |= MARK_UFAULT;
		n = 1;
	}
	q->ulen = n - 1;
	if (bpf_map_update_elem(&requests, &key, q, 0))
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int on_complete(u64 *ctx)
{
	u64 key = ctx[1];
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)ctx[2];
	struct request *q = bpf_map_lookup_elem(&requests, &key);

	if (!q)
		return 0;
	tell(q, cqe->res, 0, SLOT_URING_COMPLETE);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
