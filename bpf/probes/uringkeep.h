/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Keeps what a request of io_uring asks for, and where its names start from. */
#ifndef RUNNER_URINGKEEP_H
#define RUNNER_URINGKEEP_H

#include "changes.h"
#include "uringrequest.h"

/* Finds out what a request asks for; 0 for an operation that is not decoded. */
GLOBAL u32 ask_request(struct request *q, u64 req, u32 opcode)
{
	return q && ask(q, &q->asked, req, opcode);
}

/* The same from the submission entry, which is where the second base will be. */
GLOBAL u32 ask_refused(struct request *q)
{
	return q && ask_entry(q, &q->asked, (void *)q->base2);
}

/* Keeps a name or a text. */
GLOBAL u32 keep_text(struct request *q, u32 second)
{
	u64 from;
	u8 *to;
	s64 n;

	if (!q)
		return 0;
	second &= 1;
	to = q->upath + second * UPATH_MAX;
	from = second ? q->asked.name2 : q->asked.name;
	if (q->asked.user)
		n = bpf_probe_read_user_str(to, UPATH_MAX, (void *)from);
	else
		n = bpf_probe_read_kernel_str(to, UPATH_MAX, (void *)from);
	q->ulen[second] = n > 0 ? n - 1 : 0;
	if (n < 0)
		q->marks |= MARK_UFAULT;
	if (n <= 0)
		to[0] = 0;
	return 0;
}

/* Keeps the directory that a name starts from. */
GLOBAL u32 keep_base(struct request *q, struct scratch *s, u32 absolute, s32 dfd, u32 second)
{
	struct path_pair *from;
	u32 wrong;
	u64 n;

	if (!q)
		return 0;
	second &= 1;
	from = &q->from[second];
	q->clen[second] = 0;
	base_path(absolute, dfd, from);
	if (!s || starts_nowhere(from, absolute, dfd))
		return 0;
	s->r.marks = 0;
	n = put_path(s, 0, from->mnt, from->dentry);
	q->marks |= s->r.marks & ~(u32)PATH_MARKS;
	wrong = (s->r.marks & PATH_MARKS) << OF_BASE; /* with this path, not with the other one of the request */
	q->clen[second] = wrong;
	BARRIER(n);
	if (n > BASE_MAX)
		q->clen[second] = wrong | (BASE_MAX + 1);
	else if (!bpf_probe_read_kernel(q->base + second * BASE_MAX, n, s->blob))
		q->clen[second] = wrong | n;
	return 0;
}

/* Keeps the address of a socket call. */
GLOBAL u32 keep_address(struct request *q, struct scratch *s)
{
	u64 len;
	s64 bad;

	if (!q)
		return 0;
	len = q->asked.len;
	if ((s64)len <= 0)
		return 0;
	if (len > ADDR_MAX)
		len = ADDR_MAX;
	BARRIER(len);
	len &= 255;
	if (!len || len > ADDR_MAX)
		return 0;
	if (q->asked.user)
		bad = bpf_probe_read_user(q->upath, len, (void *)q->asked.addr);
	else
		bad = bpf_probe_read_kernel(q->upath, len, (void *)q->asked.addr);
	if (bad) {
		q->marks |= MARK_AFAULT;
		return 0;
	}
	q->ulen[0] = len;
	if (len > 2 && q->upath[0] == 1 && !q->upath[1] && q->upath[2]) { /* a unix path */
		q->marks |= MARK_HAS_BASE1;
		keep_base(q, s, q->upath[2] == '/', AT_FDCWD, 0);
	}
	return 0;
}

/* Keeps what the request names. */
GLOBAL u32 keep_names(struct request *q, struct scratch *s)
{
	bool relative;

	if (!q)
		return 0;
	if (is_socket(q->op)) {
		if (q->op != OP_LISTEN)
			keep_address(q, s);
		return 0;
	}
	if (q->op == OP_SETXATTR)
		keep_text(q, 1);
	if (q->on_file || q->op == OP_IO_URING_OTHER)
		return 0;
	q->marks |= MARK_HAS_U1 | MARK_HAS_BASE1;
	keep_text(q, 0);
	keep_base(q, s, q->upath[0] == '/', q->dfd[0], 0);
	if (q->marks & MARK_HAS_BASE2) {
		keep_text(q, 1);
		keep_base(q, s, q->upath2[0] == '/', q->dfd[1], 1);
	}
	relative = q->upath[0] == '.' || (q->marks & MARK_HAS_BASE2 && q->upath2[0] == '.');
	if (relative && in_chroot(s))
		q->marks |= MARK_CHROOT;
	return 0;
}

/* Begins a request of the present task. Without memory for it, it is lost, and counted. */
INLINE struct request *begin_request(u32 at, u32 of_copy, struct counters *c)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 place = blank_of(at, of_copy);
	struct request *q = blank_at(place);

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
	q->apart = times_apart();
	return q;
}

#endif
