/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Keeps what a request of io_uring asks for, and where its names start from. */
#ifndef RUNNER_URINGKEEP_H
#define RUNNER_URINGKEEP_H

#include "changes.h"
#include "uringrequest.h"

INLINE u32 keep_name(u8 *to, u64 name, bool user, u32 *marks)
{
	s64 n = user ? bpf_probe_read_user_str(to, UPATH_MAX, (void *)name) : bpf_probe_read_kernel_str(to, UPATH_MAX, (void *)name);

	if (n > 0)
		return n - 1;
	if (n < 0)
		*marks |= MARK_UFAULT;
	to[0] = 0;
	return 0;
}

/* Keeps the directory that a name starts from. */
INLINE u32 keep_base(u8 *to, bool absolute, s32 dfd, struct path_pair *from, u32 *marks, u32 key)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	u64 n;

	base_path(absolute, dfd, from);
	if (!s || starts_nowhere(from, absolute, dfd))
		return 0;
	s->r.marks = 0;
	n = put_path(key, 0, from->mnt, from->dentry);
	*marks |= s->r.marks;
	if (n > BASE_MAX)
		return BASE_MAX + 1;
	BARRIER(n);
	if (n > BASE_MAX || bpf_probe_read_kernel(to, n, s->blob))
		return 0;
	return n;
}

INLINE void keep_address(struct request *q, struct asked *a, u32 key)
{
	u64 len = a->len < 0 ? 0 : a->len;
	s64 bad;

	if (len > ADDR_MAX)
		len = ADDR_MAX;
	BARRIER(len);
	len &= 255;
	if (!len || len > ADDR_MAX)
		return;
	bad = a->user ? bpf_probe_read_user(q->upath, len, (void *)a->addr) : bpf_probe_read_kernel(q->upath, len, (void *)a->addr);
	if (bad) {
		q->marks |= MARK_AFAULT;
		return;
	}
	q->ulen = len;
	if (len > 2 && q->upath[0] == 1 && !q->upath[1] && q->upath[2]) { /* a unix path */
		q->marks |= MARK_HAS_BASE1;
		q->clen = keep_base(q->base, q->upath[2] == '/', AT_FDCWD, &q->from, &q->marks, key);
	}
}

INLINE void keep_names(struct request *q, struct asked *a, u32 key)
{
	bool absolute;

	if (is_socket(q->op)) {
		if (q->op != OP_LISTEN)
			keep_address(q, a, key);
		return;
	}
	if (q->op == OP_SETXATTR)
		q->ulen2 = keep_name(q->upath2, a->name2, a->user, &q->marks);
	if (q->on_file || q->op == OP_IO_URING_OTHER)
		return;
	q->marks |= MARK_HAS_U1 | MARK_HAS_BASE1;
	q->ulen = keep_name(q->upath, a->name, a->user, &q->marks);
	q->clen = keep_base(q->base, q->upath[0] == '/', q->dfd, &q->from, &q->marks, key);
	absolute = q->upath[0] != '.';
	if (q->marks & MARK_HAS_BASE2) {
		q->ulen2 = keep_name(q->upath2, a->name2, a->user, &q->marks);
		q->clen2 = keep_base(q->base2, q->upath2[0] == '/', q->dfd2, &q->from2, &q->marks, key);
		absolute = absolute && q->upath2[0] != '.';
	}
	if (!absolute && in_chroot(key))
		q->marks |= MARK_CHROOT;
}

/* Begins a request of the present task. Without memory for it, it is lost, and counted. */
INLINE struct request *begin_request(u32 at, u32 of_copy, struct counters *c)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 place = blank_of(at, of_copy);
	struct request *q = bpf_map_lookup_elem(&blank, &place);

	if (!q) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return NULL;
	}
	__builtin_memset(q, 0, __builtin_offsetof(struct request, upath));
	q->tgid = id >> 32;
	q->tid = (u32)id;
	q->run = run_of_counters(c);
	q->life = life_of(q->run);
	q->cgid = bpf_get_current_cgroup_id();
	q->since = bpf_ktime_get_ns();
	q->files = descriptors();
	q->fs = POINTER(task_struct, bpf_get_current_task(), fs);
	return q;
}

#endif
