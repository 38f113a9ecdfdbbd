//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel finds when a path operation looks its path up: kept for the end of the
 * call (pathobj.h). These programs need trampolines (fexit), which hardened kernels
 * refuse. The loader (../pathobj_linux.go) chooses by the kernel's types, and tries what it
 * chose: a function that is in the types need not be the one that the calls use. */
#include "pathobj.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct nameidata {
	struct qstr last;
	s32 last_type;
	s32 dfd;
	struct nameidata *saved;
};

struct task_struct___lookup {
	struct nameidata *nameidata;
};
#pragma clang attribute pop

enum {
	PF_IO_WORKER = 0x10,
	PF_KTHREAD = 0x200000,
	ECHILD = 10,
	ESTALE = 116,
	/* what the last component of a path is (include/linux/namei.h) */
	LAST_NORM = 0,
	LAST_DOT = 2,
};

/* The thread of the loader that tries these programs, 0 for none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} tester SEC(".maps");

/* A thread's lookups before there are any. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_objects);
} no_objects SEC(".maps");

SEC("raw_tp/arm")
int on_arm_tester(u64 *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 zero = 0;
	u64 *thread = bpf_map_lookup_elem(&tester, &zero);

	if (thread)
		*thread = ctx[0] ? id : 0;
	return 0;
}

/* A lookup that has ended. */
struct looked_up {
	u64 at; /* a struct path */
	u64 last; /* of a parent: a struct qstr */
	s64 ret;
	s32 type;
	s32 dfd;
};

/* The lookups of the call that this thread is in; NULL if they are not kept. */
INLINE struct call_objects *present_call(enum lookup kind, u32 *op)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *thread, number = 0, nr = call_number(bpf_task_pt_regs(task));
	bool compat32 = is_compat(task), test;
	struct call_objects *o;
	struct mark_state *m;
	const struct desc *d;
	u32 zero = 0, call, tid;

	if (nr >= NCALLS || task->flags & (PF_IO_WORKER | PF_KTHREAD))
		return NULL; /* a worker has the registers of the task that it was made by */
	d = desc_of(nr, compat32);
	if (d->class != CLASS_PATH || d->path1 == NO || !lookups_of(d->op, kind))
		return NULL;
	thread = bpf_map_lookup_elem(&tester, &zero);
	test = thread && *thread && *thread == bpf_get_current_pid_tgid();
	if (!test && !run_is_known())
		return NULL;
	call = call_of(nr, compat32);
	if (copied_calls && !test) {
		m = bpf_task_storage_get(&marks, task, 0, 0);
		if (!m || m->pending != call)
			return NULL; /* its beginning was not seen */
		number = m->calls;
	}
	*op = d->op;
	tid = test ? 0 : bpf_get_current_pid_tgid(); /* no end of a call forgets those of a test */
	o = bpf_map_lookup_elem(&path_objects, &tid);
	if (!o) {
		o = bpf_map_lookup_elem(&no_objects, &zero);
		if (!o || bpf_map_update_elem(&path_objects, &tid, o, 0))
			return NULL;
		o = bpf_map_lookup_elem(&path_objects, &tid);
		if (!o)
			return NULL;
	}
	if (o->call != call || o->number != number) {
		o->call = call;
		o->number = number;
		o->torn = 0;
		o->of[0].runs = o->of[0].found = 0;
		o->of[1].runs = o->of[1].found = 0;
	}
	return o;
}

/* Where the result of a lookup belongs. A call that looks up two paths in the same way always
 * begins with the first. */
INLINE struct object *place(struct call_objects *o, u32 op, enum lookup kind, u64 at)
{
	struct object *x = &o->of[0];

	if (two_of_a_kind(op)) {
		if (x->runs)
			x = &o->of[1];
		if (x->runs || o->of[0].at == at)
			o->torn |= o->of[0].runs;
	} else {
		if (op == OP_LINK && kind == LOOKUP_PARENT)
			x = &o->of[1];
		if (x->runs && x->at != at)
			o->torn = 1;
	}
	return x;
}

/* Writes the last component to the scratch record. Returns the bytes, 0 if the object is the
 * parent itself, or a negative number if the name is none that an object has. */
INLINE s64 put_last(struct scratch *s, struct looked_up *l)
{
	u64 as_dentry = l->last - OFFSET(struct dentry, d_name), name = POINTER(dentry, as_dentry, d_name.name);
	u32 n = 0;

	READ_FIELD(n, dentry, as_dentry, d_name.len);
	if (l->type == LAST_DOT)
		return 0;
	if (l->type != LAST_NORM || !n || n > 255)
		return -1;
	s->blob[0] = n;
	BARRIER(n);
	if (bpf_probe_read_kernel(&s->blob[1], n & 255, (void *)name))
		return -1;
	return n + 1;
}

INLINE void keep_object(struct object *x, struct looked_up *l, struct scratch *s, enum lookup kind)
{
	u64 mnt = POINTER(path, l->at, mnt), dentry = POINTER(path, l->at, dentry), n;
	s64 name = 0;

	if (!s)
		return;
	s->r.marks = 0;
	if (kind == LOOKUP_PARENT)
		name = put_last(s, l);
	if (name < 0 || name > 256)
		return;
	n = name;
	n += put_path(s, n, mnt, dentry);
	if (n > OBJECT_MAX || s->r.marks & (MARK_PFAULT | MARK_PTRUNC))
		return;
	BARRIER(n);
	if (n > OBJECT_MAX || bpf_probe_read_kernel(x->comps, n, s->blob))
		return;
	x->len = n;
	x->marks = s->r.marks | leaf_marks(dentry);
	x->found = 1;
}

INLINE int ended(struct looked_up *l, enum lookup kind)
{
	u32 op = 0;
	struct call_objects *o = present_call(kind, &op);
	struct object *x;

	if (!o)
		return 0;
	x = place(o, op, kind, l->at);
	x->runs++;
	x->found = 0;
	x->at = l->at;
	x->dfd = l->dfd;
	if (!l->ret)
		keep_object(x, l, scratch_at(kind * ncpus + bpf_get_smp_processor_id()), kind);
	return 0;
}

/* The lookup that this one is made for: of a file system that is mounted on the way. */
INLINE u64 outer_lookup(void)
{
	return POINTER(task_struct___lookup, bpf_get_current_task(), nameidata);
}

/* int __filename_parentat(int dfd, struct filename *name, unsigned int flags, struct path *parent,
 *			   struct qstr *last, int *type, const struct path *root) */
SEC("fexit/__filename_parentat")
int on_parent(u64 *ctx)
{
	struct looked_up l = { .at = address(ctx, 3), .last = address(ctx, 4), .ret = (s32)address(ctx, 7), .dfd = address(ctx, 0) };

	if (outer_lookup() || address(ctx, 6))
		return 0;
	bpf_probe_read_kernel(&l.type, sizeof(l.type), (void *)address(ctx, 5));
	return ended(&l, LOOKUP_PARENT);
}

/* int path_parentat(struct nameidata *nd, unsigned int flags, struct path *parent): the same on
 * kernels whose trampolines have no room for seven arguments. It runs again where it could
 * not do it without sleeping. */
SEC("fexit/path_parentat")
int on_parent_of_data(u64 *ctx)
{
	u64 nd = address(ctx, 0);
	struct looked_up l = { .at = address(ctx, 2), .last = nd + OFFSET(struct nameidata, last), .ret = (s32)address(ctx, 3) };

	if (POINTER(nameidata, nd, saved) || l.ret == -ECHILD || l.ret == -ESTALE)
		return 0;
	READ_FIELD(l.type, nameidata, nd, last_type);
	READ_FIELD(l.dfd, nameidata, nd, dfd);
	return ended(&l, LOOKUP_PARENT);
}

/* int filename_lookup(int dfd, struct filename *name, unsigned int flags, struct path *path,
 *		       const struct path *root) */
SEC("fexit/filename_lookup")
int on_whole(u64 *ctx)
{
	struct looked_up l = { .at = address(ctx, 3), .ret = (s32)address(ctx, 5), .dfd = address(ctx, 0) };

	if (outer_lookup() || address(ctx, 4))
		return 0;
	return ended(&l, LOOKUP_WHOLE);
}
