/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The objects of path operations (unlink, mkdir, rename, chmod …), as the kernel found them.
 * pathobj.bpf.c keeps them when the kernel looks the path up, and on_sys_exit takes them
 * when the same call ends. A path without one is told by its text. */
#ifndef RUNNER_PATHOBJ_H
#define RUNNER_PATHOBJ_H

#include "taken.h"

/* Components of a path, as a record has them. A longer one is told by its text. */
#define OBJECT_MAX 4096

/* What one lookup of a call found. */
struct object {
	u64 at;	   /* where the kernel puts what this lookup finds; each lookup of a call has its own place */
	s32 dfd;   /* as the call gives it */
	u32 runs;  /* of this lookup: the kernel repeats some */
	u32 found; /* the last of them has the object */
	u32 len;
	u32 marks;
	u32 pad;
	u8 comps[OBJECT_MAX];
};

/* The lookups of the call that a thread is in. */
struct call_objects {
	u64 number; /* of the call, as the marks count the thread's calls; 0 where nothing counts them */
	u32 call;   /* as call_of gives it */
	u32 torn;   /* they do not fit together: some were not seen */
	struct object of[2];
};

/* By thread, from the lookup to the end of the call. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct call_objects);
} path_objects SEC(".maps");

/* The two ways in which the kernel looks a path up: to its last component, which need not
 * exist, or to the end. */
enum lookup { LOOKUP_PARENT, LOOKUP_WHOLE };

/* How many lookups of a kind a call makes. Calls that look up other names as well, in an
 * order that differs between kernels, have none here. */
INLINE u32 lookups_of(u32 op, enum lookup kind)
{
	switch (op) {
	case OP_UNLINK:
	case OP_RMDIR:
	case OP_MKDIR:
	case OP_MKNOD:
	case OP_SYMLINK:
		return kind == LOOKUP_PARENT;
	case OP_RENAME:
		return kind == LOOKUP_PARENT ? 2 : 0;
	case OP_LINK:
		return 1;
	case OP_TRUNCATE:
	case OP_CHMOD:
	case OP_CHOWN:
	case OP_UMOUNT:
	case OP_SETXATTR:
	case OP_REMOVEXATTR:
	case OP_MOUNT_SETATTR:
	case OP_OPEN_TREE:
	case OP_FSPICK:
		return kind == LOOKUP_WHOLE;
	case OP_PIVOT_ROOT:
		return kind == LOOKUP_WHOLE ? 2 : 0;
	}
	return 0;
}

INLINE bool two_of_a_kind(u32 op)
{
	return op == OP_RENAME || op == OP_PIVOT_ROOT;
}

INLINE struct call_objects *objects_of_thread(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&path_objects, &tid);
}

INLINE void forget_objects(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&path_objects, &tid);
}

/* Are these the lookups of the call that ends now? The end of every call that has some
 * forgets them. Where the program at the end can be skipped, calls are counted as well: of a
 * call whose beginning was not seen, nobody can know. */
INLINE bool of_this_call(struct call_objects *o, u32 call)
{
	struct mark_state *m;

	if (o->call != call || o->torn)
		return false;
	if (!copied_calls)
		return true;
	m = mark_of(bpf_get_current_task_btf());
	return m && m->ending && m->ending == o->number;
}

/* Appends the object of a call's first or second path at a blob offset. Returns the bytes
 * written and one, or 0 if the object is not known. */
GLOBAL u64 put_object(struct scratch *s, u64 off, u32 call, s32 dfd, u32 second)
{
	struct call_objects *o = objects_of_thread();
	struct object *x;
	u32 n;

	BARRIER(off);
	if (!s || !o || off > BLOB_LAST || !of_this_call(o, call))
		return 0;
	if (two_of_a_kind(s->r.op) && (o->of[0].runs != 1 || o->of[1].runs != 1))
		return 0;
	x = second ? &o->of[1] : &o->of[0];
	n = x->len;
	if (!x->found || x->dfd != dfd || n > OBJECT_MAX)
		return 0;
	BARRIER(n);
	if (n > OBJECT_MAX || bpf_probe_read_kernel(&s->blob[off], n, x->comps))
		return 0;
	s->r.marks |= x->marks;
	return (u64)n + 1;
}

/* Puts a path of a path operation: its text, and its object or the directory that the text
 * starts from. Returns the new offset. */
GLOBAL u64 put_operand(struct scratch *s, u64 off, u64 ptr, s32 dfd, u32 second)
{
	u64 n, c;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return off;
	n = put_text(s, off, ptr, second);
	c = put_object(s, off + n, s->call, dfd, second);
	if (!c)
		return put_user_path(s, off, ptr, dfd, second);
	if (second) {
		s->r.ulen2 = n;
		s->r.clen2 = c - 1;
		s->r.marks |= MARK_HAS_U2 | MARK_HAS_PATH2;
	} else {
		s->r.ulen1 = n;
		s->r.clen1 = c - 1;
		s->r.marks |= MARK_HAS_U1 | MARK_HAS_PATH;
	}
	return off + n + c - 1;
}

#endif
