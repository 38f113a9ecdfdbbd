/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How a refusal by file rules is counted and recorded. */
#ifndef RUNNER_FILESRECORD_H
#define RUNNER_FILESRECORD_H

#include "files.h"

/* This object has scratch records of its own, a pool: a program that records a refusal
 * takes a free one, and can be preempted while it has it. Refusals are rare. */
#define POOL 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POOL);
	__type(key, u32);
	__type(value, u64);
} file_pool SEC(".maps");

static long claim_step(u32 i, struct claim *c)
{
	u32 key = (c->key + i) % POOL;
	u64 *used = bpf_map_lookup_elem(&file_pool, &key);

	if (!used || __sync_val_compare_and_swap(used, 0, 1) != 0)
		return 0;
	c->key = key;
	c->got = 1;
	return 1;
}

/* A walk up to the anchor of an object. */
struct object_walk {
	struct scratch *s;
	struct walk walk;
};

/* The components of an object's path up to the anchor, and the path of that. */
static long put_object_step(u32 i, struct object_walk *o)
{
	struct walk *w = &o->walk;
	struct scratch *s = o->s;
	u64 inode = POINTER(dentry, w->dentry, d_inode), off = w->off, n;
	struct file_anchor *a = NULL;
	struct links l;

	if (inode)
		a = bpf_map_lookup_elem(&file_anchors, &inode);
	if (!s)
		return 1;
	BARRIER(off);
	if (off >= w->end || off > BLOB_LAST)
		goto truncated;
	if (a) {
		n = a->len;
		BARRIER(n);
		n &= 511;
		if (bpf_probe_read_kernel(&s->blob[off], n, a->path))
			return 1;
		w->off = off + n;
		w->done = 1;
		return 1;
	}
	read_links(&l, w->dentry);
	if (!l.parent || !l.name)
		return 1;
	if (l.parent == w->dentry) { /* an empty component ends a path that is on no known file system */
		s->blob[off] = 0;
		w->off = off + 1;
		w->marks |= MARK_DETACHED;
		w->done = 1;
		return 1;
	}
	n = l.len;
	BARRIER(n);
	n &= 255;
	s->blob[off] = n;
	if (bpf_probe_read_kernel(&s->blob[off + 1], n, (void *)l.name))
		return 1;
	w->off = off + 1 + n;
	w->dentry = l.parent;
	return 0;
truncated:
	w->marks |= MARK_PTRUNC;
	w->done = 1;
	return 1;
}

GLOBAL u64 put_object(struct scratch *s, u64 off, u64 dentry)
{
	struct object_walk o = { .s = s, .walk = { .dentry = dentry, .off = off, .end = off + COMP_MAX } };
	struct walk *w = &o.walk;

	if (!s)
		return 0;
	bpf_loop(4200, put_object_step, &o, 0);
	if (!w->done)
		w->marks |= MARK_PFAULT;
	s->r.marks |= w->marks;
	return w->off - off;
}

INLINE void count_unresolved(void)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&file_unresolved, &zero);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Counts the refusal and sends a record of it: without a mount, the object's own path.
 * Without a free scratch record, the record is lost, as if the ring were full. */
GLOBAL u32 refuse_file(u64 mnt, u64 dentry, u32 hook, u32 verdict)
{
	struct claim claim = { .key = bpf_get_smp_processor_id() };
	u32 entry = verdict >> 1, op = OP_FILE_BLOCKED;
	u64 *n = bpf_map_lookup_elem(&file_hits, &entry), off;
	u32 *number = bpf_map_lookup_elem(&file_numbers, &entry);
	struct counters *c = counters_of(SLOT_FILES);
	u64 inode = POINTER(dentry, dentry, d_inode);
	struct scratch *s;
	u16 mode = 0;

	if (n)
		__sync_fetch_and_add(n, 1);
	if (!c)
		return 1;
	bpf_loop(POOL, claim_step, &claim, 0);
	s = scratch_at(claim.key);
	if (!claim.got || !s) {
		n = bpf_map_lookup_elem(&drops, &op);
		if (n)
			__sync_fetch_and_add(n, 1);
		__sync_fetch_and_add(&c->seen, 1);
		__sync_fetch_and_add(&c->dropped, 1);
		return 1;
	}
	begin(&s->r, OP_FILE_BLOCKED, 0);
	s->r.source = SOURCE_LSM;
	s->r.marks = MARK_NORET | MARK_HAS_PATH;
	s->r.aux1 = (u64)hook << 32 | (number ? *number : 0);
	if (inode) {
		READ_FIELD(mode, inode, inode, i_mode);
		s->r.marks |= leaf_marks(dentry);
	}
	s->r.i_mode = mode;
	off = mnt ? put_path(s, 0, mnt, dentry) : put_object(s, 0, dentry);
	s->r.clen1 = off;
	if (s->r.marks & MARK_DISCONN)
		s->r.marks |= MARK_UNNAMED;
	send_record(s, off, c, SLOT_FILES);
	n = bpf_map_lookup_elem(&file_pool, &claim.key);
	if (n)
		__sync_lock_test_and_set(n, 0);
	return 1;
}

#endif
