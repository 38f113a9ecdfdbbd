/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The context of a task: who it is, and where its names lead. Told where it begins and where it can change: of a new
 * task, at an exec, and at the end of a call that sets it. */
#ifndef RUNNER_CONTEXT_H
#define RUNNER_CONTEXT_H

#include "walk.h"

/* The effective ids, as the initial user namespace has them, and the mount namespace. */
INLINE void put_context(struct rec *r, u64 task)
{
	u64 cred = POINTER(task_struct, task, cred);
	u64 ns = POINTER(nsproxy, POINTER(task_struct, task, nsproxy), mnt_ns);
	u32 uid = 0, gid = 0, inum = 0;

	if (!cred || !ns)
		return;
	READ_FIELD(uid, cred, cred, euid.val);
	READ_FIELD(gid, cred, cred, egid.val);
	READ_FIELD(inum, mnt_namespace, ns, ns.inum);
	r->flags = (u64)uid << 32 | gid;
	r->resolve = inum;
	r->marks |= MARK_CONTEXT;
}

/* How deep pid namespaces can be: MAX_PID_NS_LEVEL. */
enum { MOST_LEVELS = 32 };

/* The number that a process has for itself, if it is in a pid namespace below the initial one: all other numbers of
 * records are those of the initial one. The task leads its threads. It keeps its namespace as long as it lives; only
 * children of one that unshares or enters another are in that. */
INLINE void put_number(struct rec *r, u64 task)
{
	u64 ids = POINTER(task_struct, task, thread_pid), at, ns;
	u32 level = 0, number = 0, inum = 0;

	if (!ids)
		return;
	READ_FIELD(level, pid, ids, level);
	if (!level || level > MOST_LEVELS)
		return;
	at = ids + OFFSET(struct pid, numbers) + level * SIZE(struct upid);
	READ_FIELD(number, upid, at, nr);
	ns = POINTER(upid, at, ns);
	READ_FIELD(inum, pid_namespace, ns, ns.inum);
	if (!number || !inum)
		return;
	r->mode = number;
	r->resolve |= (u64)inum << 32;
}

/* Appends the root directory of the current task, and says of how many bytes it is. What is wrong with that path is
 * not wrong with the others of the record: then there is none. */
GLOBAL u64 put_root(struct scratch *s, u64 off)
{
	struct path_pair p;
	u32 marks;
	u64 n;

	if (!s || off > BLOB_LAST - COMP_MAX)
		return 0;
	marks = s->r.marks;
	s->r.marks = 0;
	base_path(true, 0, &p);
	n = put_path(s, off, p.mnt, p.dentry);
	if (s->r.marks & (MARK_PTRUNC | MARK_PFAULT | MARK_DISCONN))
		n = 0;
	else
		marks |= MARK_ROOT;
	s->r.marks = marks;
	s->r.ret = n;
	return n;
}

/* Are arguments read? */
#ifdef SHARED
INLINE bool reads_arguments(void)
{
	struct run *r = the_run(run_at(SLOT_EXEC));

	return r && r->read_arguments;
}
#else
const volatile bool read_arguments; /* set by the loader */

INLINE bool reads_arguments(void)
{
	return read_arguments;
}
#endif

/* Appends what the current program was started with, as the kernel put it into its memory: the program itself has not run
 * yet. What it cannot read has length 0. */
GLOBAL u64 put_arguments(struct scratch *s, u64 off)
{
	u64 mm, from, n;

	BARRIER(off);
	if (!s || off > BLOB_LAST || !reads_arguments())
		return 0;
	mm = POINTER(task_struct, bpf_get_current_task(), mm);
	from = POINTER(mm_struct, mm, arg_start);
	n = POINTER(mm_struct, mm, arg_end) - from;
	s->r.args = n >> 32 ? ~0U : n;
	BARRIER(n);
	if (n > ARGS_MAX)
		n = ARGS_MAX;
	if (bpf_probe_read_user(&s->blob[off], n, (void *)from))
		return 0;
	s->r.alen = n;
	return n;
}

/* The end of a call that sets the context. What it was given does not matter, nor whether it was answered: this is
 * what it led to. */
GLOBAL u32 tell_context(struct scratch *s, struct counters *c)
{
	if (!s || !c)
		return 0;
	begin(&s->r, OP_CONTEXT, 0);
	put_context(&s->r, bpf_get_current_task());
	send_record(s, put_root(s, 0), c, SLOT_EXIT);
	return 0;
}

#endif
